//! Index observer: maintains one index while its table changes.
//!
//! For each changed row of a batch it adds the deletes of old entries and the puts of new ones to
//! the same transaction. An entry that does not change is not written.
//!
//! # Invariants
//!
//! 1. Every base row that satisfies the predicate (if any) has exactly one entry, in an inverted
//!    index one for each term, computed from its newest version, and no entry exists without its
//!    row. Both become visible in one commit.
//! 2. An entry that belongs to one row (its key contains the primary key) is covered by the lock
//!    of that row. A unique entry has its own lock, taken before the duplicate check, so that of
//!    two transactions with equal values the second waits and then fails.
//! 3. Within a batch deletes of entries precede puts, so that one statement may swap unique
//!    values.
//! 4. A cell of an entry has the timestamp and the TTL of the base data
//!    ([`families`](super::families)), so that both expire at the same time. If that timestamp is
//!    not later than the one of the replaced cell, the existing row is deleted first, so that the
//!    new cell is visible for any timestamps that clients choose.
//! 5. A cell with a TTL never replaces a base table cell that expires later: that cell would
//!    reappear without an entry. It is deleted first, in the same mutation.

use std::sync::Arc;

use ahash::{AHashMap, AHashSet};
use smallvec::SmallVec;
use store::observer::{Hook, Hooks, ObserverContext, RegionObserver};
use store::transaction::{Locking, PreviousRow, RowExpectation};
use store::{Edit, Mutation, Timestamp};
use types::Datum;
use types::expr::EvalContext;
use types::rowcode::RowLayout;

use super::IndexSpec;
use super::entry::{EntryCell, EntryCells, EntryWriter};
use super::entry::{base_columns, duplicate_veto, entries_equal, put};
use super::families::EntryFamily;
use crate::change::{Change, RowState, StoredCell};
use crate::change::{eval_context, load_previous, net_changes};
use crate::row;
use crate::violation::{self, DuplicateKey};

/// The observer that maintains one index.
pub struct IndexObserver {
    spec: Arc<IndexSpec>,
    /// Cells of the base row from which entries are computed.
    cells: Vec<usize>,
}

/// Mutations of the index table for one batch.
#[derive(Debug, Default)]
struct IndexMutations {
    deletes: Vec<Mutation>,
    puts: Vec<Mutation>,
}

impl IndexObserver {
    /// Creates the observer of an index.
    pub fn new(spec: impl Into<Arc<IndexSpec>>) -> IndexObserver {
        let spec = spec.into();
        IndexObserver { cells: row::cells_with(&spec.base_layout, &base_columns(&spec)), spec }
    }

    /// Returns the specification of the index.
    pub(super) fn spec(&self) -> &IndexSpec {
        &self.spec
    }

    /// Returns the mutations of the index, which is not unique, for changes of different rows.
    pub(super) fn mutations(
        &self,
        changes: &[Change<'_>],
        context: &EvalContext,
    ) -> types::Result<Vec<Mutation>> {
        Ok(self.additions(changes, context)?.into_mutations())
    }

    fn additions(
        &self,
        changes: &[Change<'_>],
        context: &EvalContext,
    ) -> types::Result<IndexMutations> {
        let mut writer = EntryWriter::new(&self.spec, context)?;
        let mut additions = IndexMutations::default();
        for change in changes {
            self.add_change(&mut writer, change, &mut additions)?;
        }
        Ok(additions)
    }

    fn add_change(
        &self,
        writer: &mut EntryWriter<'_>,
        change: &Change<'_>,
        additions: &mut IndexMutations,
    ) -> types::Result<()> {
        let Change { row, old, new, timestamp } = change;
        let both = old.exists() && new.exists();
        if both && old.same_bytes(new, &self.cells) && self.same_lives(old, new) {
            return Ok(());
        }
        let mut gone: SmallVec<[Mutation; 1]> = SmallVec::new();
        let mut old_cells = EntryCells::new();
        if old.exists() && writer.read(row, old)? {
            let keys = writer.entry_keys(row)?;
            old_cells = if both { writer.cells(old)? } else { EntryCells::new() };
            gone.extend(keys.into_iter().map(|key| self.delete(writer, key, *timestamp)));
        }
        if !(new.exists() && writer.read(row, new)?) {
            additions.deletes.extend(gone);
            return Ok(());
        }
        let mut cells = writer.cells(new)?;
        let mut gone = gone.into_iter().peekable();
        let mut keys = writer.entry_keys(row)?.into_iter().peekable();
        while let Some(key) = keys.next() {
            let own = match keys.peek() {
                Some(_) => cells.clone(),
                None => std::mem::take(&mut cells),
            };
            // Both ascend.
            while let Some(delete) = gone.next_if(|delete| delete.row < key) {
                additions.deletes.push(delete);
            }
            if gone.next_if(|delete| delete.row == key).is_none() {
                additions.puts.push(writer.put(key, own));
            } else if let Some(replacing) = self.replacing(key, &old_cells, own) {
                // The row lock covers the new version, because the entry belongs to one row.
                additions.puts.push(Mutation { locking: Locking::Covered, ..replacing });
            }
        }
        additions.deletes.extend(gone);
        Ok(())
    }

    /// Returns whether the cells behind the entry expire at the same time in both states.
    fn same_lives(&self, old: &RowState<'_>, new: &RowState<'_>) -> bool {
        let life = |cell: &StoredCell<'_>| (cell.timestamp, cell.ttl);
        let has_ttl = |state: &RowState<'_>| state.cells().any(|cell| cell.ttl.is_some());
        let any_ttl = has_ttl(old) || has_ttl(new);
        self.spec.families.all().iter().all(|family| match family {
            EntryFamily::Row => !any_ttl || old.cells().map(life).eq(new.cells().map(life)),
            EntryFamily::Of { cell, expires } => {
                let of = |state: &RowState<'_>| state.cell(*cell).map(life);
                !(*expires || any_ttl) || of(old) == of(new)
            }
        })
    }

    /// Returns the mutation that replaces an entry by another with the same key; `None` if they
    /// are equal.
    fn replacing(&self, key: Vec<u8>, old: &EntryCells, mut new: EntryCells) -> Option<Mutation> {
        if entries_equal(&self.spec, old, &new) {
            return None;
        }
        let clears = old.iter().zip(&new).any(|(old, new)| match (old, new) {
            (Some(old), Some(new)) => new.ttl.is_some() || new.timestamp < old.timestamp,
            (old, new) => old.is_some() || new.as_ref().is_some_and(|new| new.ttl.is_some()),
        });
        if !clears {
            let families = self.spec.families.all().iter();
            for (family, (old, new)) in families.zip(old.iter().zip(&mut new)) {
                let is_like = |old: &EntryCell, new: &EntryCell| old.is_like(new, *family);
                if old.as_ref().zip(new.as_ref()).is_some_and(|(old, new)| is_like(old, new)) {
                    *new = None;
                }
            }
        }
        Some(put(key, new, clears))
    }

    /// Returns the delete of an entry of the row that `writer` has read last.
    fn delete(
        &self,
        writer: &EntryWriter<'_>,
        key: Vec<u8>,
        timestamp: Option<Timestamp>,
    ) -> Mutation {
        let mut mutation = Mutation::new(key);
        mutation.edits.push(Edit::DeleteRow { timestamp });
        mutation.locking = match !self.spec.unique || writer.is_distinct_by_null() {
            true => Locking::Covered,
            false => Locking::Entry,
        };
        mutation
    }

    /// Returns the duplicate key error for the rows of a batch, one of which has this index key.
    fn duplicate(
        &self,
        changes: &[Change<'_>],
        index_key: &[u8],
        context: &EvalContext,
    ) -> store::Error {
        let wanted = self.keys_of(changes, index_key, context).ok().flatten();
        let wanted = (wanted.as_deref(), &context.style);
        let exists = |key: &DuplicateKey<'_>| key.exists_veto(&self.spec.name);
        match duplicate_veto(&self.spec, index_key, wanted, exists) {
            Ok(veto) => store::Error::Vetoed(Box::new(veto)),
            Err(error) => violation::value_error(&self.spec.name, error),
        }
    }

    /// Returns the index keys of the last row of a batch that has this index key.
    fn keys_of(
        &self,
        changes: &[Change<'_>],
        index_key: &[u8],
        context: &EvalContext,
    ) -> types::Result<Option<Vec<Datum>>> {
        let mut writer = EntryWriter::new(&self.spec, context)?;
        for change in changes.iter().rev().filter(|change| change.new.exists()) {
            if writer.read(change.row, &change.new)?
                && writer.entry_keys(change.row)?.iter().any(|key| key == index_key)
            {
                return Ok(Some(writer.keys().to_vec()));
            }
        }
        Ok(None)
    }
}

impl IndexMutations {
    /// Merges deletes and puts with the same key: an entry that is deleted for one row and put
    /// for another becomes a put that replaces it. Returns the key that two rows of the batch
    /// have, if any.
    fn merge_deletes_and_puts(&mut self) -> Option<Vec<u8>> {
        if self.puts.len() > 1 {
            let mut taken = AHashSet::with_capacity(self.puts.len());
            if let Some(put) = self.puts.iter().find(|put| !taken.insert(put.row.as_slice())) {
                return Some(put.row.clone());
            }
        }
        if self.puts.is_empty() || self.deletes.is_empty() {
            return None;
        }
        let mut going: AHashMap<&[u8], bool> =
            self.deletes.iter().map(|delete| (delete.row.as_slice(), false)).collect();
        for put in &mut self.puts {
            if let Some(is_replaced) = going.get_mut(put.row.as_slice()) {
                *is_replaced = true;
                put.expect = RowExpectation::Anything;
                clear_first(put);
            }
        }
        let replaced: Vec<bool> =
            self.deletes.iter().map(|delete| going[delete.row.as_slice()]).collect();
        let mut replaced = replaced.into_iter();
        self.deletes.retain(|_| !replaced.next().unwrap_or(false));
        None
    }

    /// Returns all mutations, deletes first.
    fn into_mutations(mut self) -> Vec<Mutation> {
        self.deletes.append(&mut self.puts);
        self.deletes
    }
}

/// Prepends a delete of the row to a put that an existing cell may hide.
fn clear_first(put: &mut Mutation) {
    let is_clearing = matches!(put.edits.first(), Some(Edit::DeleteRow { .. }));
    let may_be_hidden =
        put.edits.iter().any(|edit| matches!(edit, Edit::Put { timestamp: Some(_), .. }));
    if may_be_hidden && !is_clearing {
        put.edits.insert(0, Edit::DeleteRow { timestamp: None });
    }
}

/// Prepends deletes of the cells that puts with a TTL replace and that expire later. The previous
/// state of the rows is known.
fn delete_what_outlives(layout: &RowLayout, batch: &mut [Mutation]) -> store::Result<()> {
    for mutation in batch {
        let PreviousRow::Row(cells) = &mutation.previous else { continue };
        let old = RowState::of(&cells.row(0), layout);
        let mut covered = Vec::new();
        for edit in &mutation.edits {
            let Edit::Put { family, qualifier, timestamp, ttl: Some(ttl), .. } = edit else {
                continue;
            };
            let Some(cell) = layout.cell_named(usize::from(*family), qualifier) else { continue };
            if timestamp.is_some() {
                return Err(store::Error::InvalidRequest(
                    "cells cannot have both a TTL and a timestamp in a table with indexes".into(),
                ));
            }
            let outlives = |old: &StoredCell<'_>| old.ttl.is_none_or(|old| old > *ttl);
            if old.cell(cell).is_some_and(outlives) {
                let qualifier = qualifier.clone();
                covered.push(Edit::DeleteColumn { family: *family, qualifier, timestamp: None });
            }
        }
        let deletes_row = matches!(mutation.edits.first(), Some(Edit::DeleteRow { .. }));
        covered.retain(|delete| !deletes_row && !mutation.edits.contains(delete));
        mutation.edits.insert_many(0, covered);
    }
    Ok(())
}

impl RegionObserver for IndexObserver {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::PreBatch])
    }

    fn is_essential(&self) -> bool {
        true
    }

    fn pre_batch(
        &self,
        context: &dyn ObserverContext,
        batch: &mut [Mutation],
    ) -> store::Result<()> {
        load_previous(context, &self.spec.base_layout, batch, |_| true)?;
        delete_what_outlives(&self.spec.base_layout, batch)?;
        let changes = net_changes(&self.spec.base_layout, batch);
        let eval = eval_context(context);
        let mut additions = self
            .additions(&changes, &eval)
            .map_err(|error| violation::value_error(&self.spec.name, error))?;
        if let Some(index_key) = additions.merge_deletes_and_puts() {
            return Err(self.duplicate(&changes, &index_key, &eval));
        }
        let mutations = additions.into_mutations();
        if mutations.is_empty() {
            return Ok(());
        }
        match context.add(self.spec.store_table, mutations) {
            Err(store::Error::RowExists { table, row, .. }) if table == self.spec.store_table => {
                Err(self.duplicate(&changes, &row, &eval))
            }
            outcome => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::*;
    use crate::index::{base_key, index_row_key};
    use store::TableId;
    use types::expr::Expr;
    use types::numeric::Numeric;
    use types::{DataType, Datum};

    const INDEX_TABLE: TableId = TableId(2);

    /// Returns the layout of `t (id int primary key, a int, b text, f.c int)`.
    fn base(salt: u8) -> Arc<RowLayout> {
        let columns =
            [(DataType::Int4, 0), (DataType::Int4, 0), (DataType::Text, 0), (DataType::Int4, 1)];
        Arc::new(layout(&columns, &[key(0, false)], salt.into()))
    }

    fn row(id: i32, a: Option<i32>, b: &str, c: i32) -> Vec<Datum> {
        vec![Datum::Int4(id), a.map_or(Datum::Null, Datum::Int4), text(b), Datum::Int4(c)]
    }

    fn unique_a(base: &Arc<RowLayout>) -> IndexSpec {
        index(base, INDEX_TABLE, true, &[(column(base, 1), false)], &[3], 0)
    }

    fn plain_b(base: &Arc<RowLayout>) -> IndexSpec {
        index(base, INDEX_TABLE, false, &[(column(base, 2), true)], &[3], 0)
    }

    fn update(base: &RowLayout, old: &[Datum], new: &[Datum]) -> Mutation {
        with_previous(put_row(base, new), stored_row(base, old, 5))
    }

    /// Runs the observer and returns one line for each added mutation.
    fn added(spec: &IndexSpec, context: &FakeContext, mut batch: Vec<Mutation>) -> Vec<String> {
        IndexObserver::new(spec.clone()).pre_batch(context, &mut batch).unwrap();
        let added = context.added.borrow();
        assert!(added.len() <= 1, "one call a batch");
        added.iter().flat_map(|(_, mutations)| mutations.iter().map(|m| line(spec, m))).collect()
    }

    fn line(spec: &IndexSpec, mutation: &Mutation) -> String {
        let what = match &mutation.edits[..] {
            [Edit::DeleteRow { timestamp }] => {
                let key = spec.layout.decode_key(&mutation.row).unwrap();
                format!("delete {key:?} {timestamp:?}")
            }
            [Edit::Put { family: 0, value, timestamp, .. }] => {
                let row = spec.layout.unpack(&mutation.row, &[Some(value)]).unwrap();
                format!("put {row:?} {timestamp:?}")
            }
            edits => panic!("{edits:?}"),
        };
        format!("{what} {:?} {:?}", mutation.expect, mutation.locking)
    }

    #[test]
    fn insert_adds_and_delete_removes_index_entry() {
        let base = base(0);
        let new = row(1, Some(7), "x", 9);
        let insert = vec![put_row(&base, &new).expect_absent()];
        assert_eq!(
            added(&unique_a(&base), &FakeContext::default(), insert.clone()),
            ["put [Int4(7), Int4(1), Int4(9)] None Absent Row"]
        );
        assert_eq!(
            added(&plain_b(&base), &FakeContext::default(), insert),
            ["put [Text(\"x\"), Int4(1), Int4(9)] None Anything Covered"]
        );
        let key = base.encode_key(&new).unwrap();
        let delete =
            vec![with_previous(Mutation::new(key).delete_row(), stored_row(&base, &new, 5))];
        assert_eq!(
            added(&unique_a(&base), &FakeContext::default(), delete.clone()),
            ["delete [Int4(7)] None Anything Entry"]
        );
        assert_eq!(
            added(&plain_b(&base), &FakeContext::default(), delete),
            ["delete [Text(\"x\"), Int4(1)] None Anything Covered"]
        );
    }

    #[test]
    fn update_changes_index_only_when_entry_differs() {
        let base = base(0);
        let old = row(1, Some(7), "x", 9);
        let with = |new: Vec<Datum>| vec![update(&base, &old, &new)];
        let spec = unique_a(&base);
        let nothing: [&str; 0] = [];
        assert_eq!(added(&spec, &FakeContext::default(), with(row(1, Some(7), "y", 9))), nothing);
        assert_eq!(
            added(&spec, &FakeContext::default(), with(row(1, Some(7), "x", 10))),
            ["put [Int4(7), Int4(1), Int4(10)] None Anything Covered"]
        );
        assert_eq!(
            added(&spec, &FakeContext::default(), with(row(1, Some(8), "x", 9))),
            [
                "delete [Int4(7)] None Anything Entry",
                "put [Int4(8), Int4(1), Int4(9)] None Absent Row"
            ]
        );
        assert_eq!(
            added(&spec, &FakeContext::default(), with(row(1, None, "x", 9))),
            [
                "delete [Int4(7)] None Anything Entry",
                "put [Null, Int4(1), Int4(9)] None Anything Covered"
            ]
        );
    }

    #[test]
    fn unknown_previous_row_is_read_from_table() {
        let base = base(0);
        let old = row(1, Some(7), "x", 9);
        let mut context = FakeContext::default();
        context.rows.insert(base.encode_key(&old).unwrap(), stored_row(&base, &old, 5));
        let key = base.encode_key(&old).unwrap();
        assert_eq!(
            added(&unique_a(&base), &context, vec![Mutation::new(key).delete_row()]),
            ["delete [Int4(7)] None Anything Entry"]
        );
    }

    #[test]
    fn batch_may_swap_and_move_unique_values() {
        let base = base(0);
        let swap = vec![
            update(&base, &row(1, Some(1), "", 0), &row(1, Some(2), "", 0)),
            update(&base, &row(2, Some(2), "", 0), &row(2, Some(1), "", 0)),
        ];
        assert_eq!(
            added(&unique_a(&base), &FakeContext::default(), swap),
            [
                "put [Int4(2), Int4(1), Int4(0)] None Anything Row",
                "put [Int4(1), Int4(2), Int4(0)] None Anything Row"
            ]
        );
        let shift = vec![
            update(&base, &row(1, Some(1), "", 0), &row(1, Some(2), "", 0)),
            update(&base, &row(2, Some(2), "", 0), &row(2, Some(3), "", 0)),
        ];
        assert_eq!(
            added(&unique_a(&base), &FakeContext::default(), shift),
            [
                "delete [Int4(1)] None Anything Entry",
                "put [Int4(2), Int4(1), Int4(0)] None Anything Row",
                "put [Int4(3), Int4(2), Int4(0)] None Absent Row"
            ]
        );
    }

    fn refusal(
        spec: &IndexSpec,
        context: &FakeContext,
        mut batch: Vec<Mutation>,
    ) -> (String, String) {
        match IndexObserver::new(spec.clone()).pre_batch(context, &mut batch) {
            Err(store::Error::Vetoed(veto)) => {
                assert_eq!((veto.code.as_str(), veto.constraint.as_str()), ("23505", "i2"));
                (veto.message, veto.detail)
            }
            outcome => panic!("{outcome:?}"),
        }
    }

    #[test]
    fn duplicate_unique_value_is_rejected() {
        let base = base(0);
        let spec = unique_a(&base);
        let expected = (
            "duplicate key value violates unique constraint \"i2\"".to_owned(),
            "Key (k0)=(7) already exists.".to_owned(),
        );
        let one = put_row(&base, &row(1, Some(7), "", 0)).expect_absent();
        let two = put_row(&base, &row(2, Some(7), "", 0)).expect_absent();
        let within = refusal(&spec, &FakeContext::default(), vec![one.clone(), two]);
        assert_eq!(within, expected);
        let taken = index_row_key(&spec, &row(1, Some(7), "", 0), &EvalContext::default()).unwrap();
        let context = FakeContext { taken: Some(taken), ..FakeContext::default() };
        assert_eq!(refusal(&spec, &context, vec![one]), expected);
    }

    #[test]
    fn nulls_are_distinct_in_unique_index() {
        let base = base(0);
        let batch = vec![
            put_row(&base, &row(1, None, "", 0)).expect_absent(),
            put_row(&base, &row(2, None, "", 0)).expect_absent(),
        ];
        let context = FakeContext::default();
        added(&unique_a(&base), &context, batch);
        let mutations = &context.added.borrow()[0].1;
        assert_ne!(mutations[0].row, mutations[1].row);
    }

    #[test]
    fn index_entry_has_timestamp_of_row() {
        let base = base(0);
        let mut put = put_row(&base, &row(1, Some(7), "x", 9)).expect_absent();
        for edit in &mut put.edits {
            if let Edit::Put { timestamp, .. } = edit {
                *timestamp = Some(Timestamp(3));
            }
        }
        assert_eq!(
            added(&unique_a(&base), &FakeContext::default(), vec![put]),
            ["put [Int4(7), Int4(1), Int4(9)] Some(Timestamp(3)) Absent Row"]
        );
    }

    #[test]
    fn index_entry_preserves_key_representation() {
        let columns = [(DataType::Numeric, 0), (DataType::Int4, 0)];
        let base = Arc::new(layout(&columns, &[key(0, false)], 0));
        let spec = index(&base, INDEX_TABLE, false, &[(column(&base, 1), false)], &[], 0);
        let row = |mantissa: i128, scale: u32| {
            vec![Datum::Numeric(Numeric::from_mantissa(mantissa, scale)), Datum::Int4(7)]
        };
        let scale_of_entry = |batch: Vec<Mutation>| {
            let context = FakeContext::default();
            added(&spec, &context, batch);
            let mutation = &context.added.borrow()[0].1[0];
            let Edit::Put { value, .. } = &mutation.edits[0] else { panic!("no put") };
            match spec.layout.unpack_column(1, &mutation.row, &[Some(value)]) {
                Ok(Datum::Numeric(number)) => number.scale(),
                outcome => panic!("{outcome:?}"),
            }
        };
        assert_eq!(scale_of_entry(vec![put_row(&base, &row(150, 2)).expect_absent()]), 2);
        // An equal key in another textual form.
        assert_eq!(scale_of_entry(vec![update(&base, &row(150, 2), &row(15, 1))]), 1);
        let entry = crate::index::index_entry(&spec, &row(150, 2)).unwrap().unwrap();
        let context = FakeContext::default();
        added(&spec, &context, vec![put_row(&base, &row(150, 2)).expect_absent()]);
        assert_eq!(entry.edits, context.added.borrow()[0].1[0].edits);
    }

    #[test]
    fn index_entry_decodes_to_base_row_key() {
        for (base_salt, index_salt) in [(0, 0), (4, 0), (0, 4), (4, 4)] {
            let base = base(base_salt);
            let is_null = Expr::IsNull(Box::new(column(&base, 2)));
            let b = || (column(&base, 2), true);
            let specs = [
                index(&base, INDEX_TABLE, true, &[(column(&base, 1), false)], &[3], index_salt),
                index(&base, INDEX_TABLE, false, &[b()], &[], index_salt),
                index(&base, INDEX_TABLE, false, &[(is_null, false), b()], &[3], index_salt),
            ];
            for (spec, a) in specs.iter().flat_map(|spec| [(spec, Some(7)), (spec, None)]) {
                let values = row(1, a, "x", 9);
                let context = FakeContext::default();
                added(spec, &context, vec![put_row(&base, &values).expect_absent()]);
                let mutation = &context.added.borrow()[0].1[0];
                let Edit::Put { value, .. } = &mutation.edits[0] else { panic!("no put") };
                let cells = row_of_cells(&mutation.row, &[(0, value, 1)]);
                let expected = base.encode_key(&values).unwrap();
                assert_eq!(base_key(spec, &cells.row(0)).unwrap(), expected);
                let key = index_row_key(spec, &values, &EvalContext::default());
                assert_eq!(key.unwrap(), mutation.row);
                let entry = crate::index::index_entry(spec, &values).unwrap().unwrap();
                assert_eq!(line(spec, &entry), line(spec, mutation));
            }
        }
    }
}
