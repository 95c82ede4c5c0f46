//! Row changes of a batch: the state of each row before and after its mutation.
//!
//! Observers (constraints, indexes, audit, summary) compute the changes of the batch that they
//! are called with and derive checks and further mutations from them.
//!
//! # Rules
//!
//! 1. A put or marker with an explicit timestamp changes the newest version only if that version
//!    is not newer. Without a timestamp it is written at the commit time and always changes it;
//!    versions in the future are not supported.
//! 2. The edits of a mutation apply in order: a marker masks the puts before it, not those after
//!    it.
//! 3. If a batch changes a row twice, the second change starts from the outcome of the first. An
//!    observer that derives other rows uses [`net_changes`].

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ahash::{AHashMap, AHashSet};
use smallvec::SmallVec;
use store::observer::ObserverContext;
use store::transaction::{PreviousRow, RowExpectation};
use store::{CellBatch, Edit, Get, Mutation, RowRef, Timestamp};
use types::expr::EvalContext;
use types::rowcode::RowLayout;

use crate::row::{PackedCells, ReadColumns};

/// The packed row of a cell, with its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredCell<'a> {
    /// The packed row.
    pub packed: &'a [u8],
    /// Its version; [`Timestamp::LATEST`] stands for the time of the pending commit.
    pub timestamp: Timestamp,
    /// TTL of the cell.
    pub ttl: Option<Duration>,
}

/// The newest packed row of each cell of the layout, with its version.
#[derive(Debug, Clone, PartialEq)]
pub struct RowState<'a> {
    cells: SmallVec<[Option<StoredCell<'a>>; 2]>,
}

/// One row of a batch, before and after.
#[derive(Debug)]
pub struct Change<'a> {
    /// The row key.
    pub row: &'a [u8],
    /// State before the mutation.
    pub old: RowState<'a>,
    /// State after the mutation.
    pub new: RowState<'a>,
    /// Timestamp for mutations that are derived from this change; `None` is the commit time.
    pub timestamp: Option<Timestamp>,
}

/// Returns the evaluation context for expressions over written rows: the one that the session
/// attached to the write, or the default if there is no session.
pub fn eval_context<'a>(context: &'a dyn ObserverContext) -> Cow<'a, EvalContext> {
    let given = context.attachment().and_then(|given| given.downcast_ref::<EvalContext>());
    given.map_or_else(Cow::default, Cow::Borrowed)
}

impl<'a> RowState<'a> {
    /// Returns the state of a row that does not exist.
    pub fn absent(layout: &RowLayout) -> RowState<'a> {
        RowState { cells: SmallVec::from_elem(None, layout.cell_count()) }
    }

    /// Returns the state of a row read from the store.
    pub fn of(row: &RowRef<'a>, layout: &RowLayout) -> RowState<'a> {
        let mut state = RowState::absent(layout);
        for cell in row.cells() {
            if let Some(number) = layout.cell_named(usize::from(cell.family), cell.qualifier)
                && let Some(slot) = state.cells.get_mut(number)
                && slot.is_none()
            {
                let (packed, timestamp, ttl) = (cell.value, cell.timestamp, cell.ttl);
                *slot = Some(StoredCell { packed, timestamp, ttl });
            }
        }
        state
    }

    /// Returns whether the row exists.
    pub fn exists(&self) -> bool {
        self.cells.iter().any(Option::is_some)
    }

    /// Returns the packed rows, by cell.
    pub fn packed(&self) -> PackedCells<'a> {
        self.cells.iter().map(|cell| cell.map(|cell| cell.packed)).collect()
    }

    /// Returns a cell by its number in the layout.
    pub fn cell(&self, number: usize) -> Option<&StoredCell<'a>> {
        self.cells.get(number)?.as_ref()
    }

    /// Returns the cells that the row has.
    pub fn cells(&self) -> impl Iterator<Item = &StoredCell<'a>> {
        self.cells.iter().flatten()
    }

    /// Returns whether both hold the same bytes in these cells.
    pub fn same_bytes(&self, other: &RowState<'a>, cells: &[usize]) -> bool {
        let bytes = |state: &RowState<'a>, cell: usize| state.cells[cell].map(|c| c.packed);
        cells.iter().all(|&cell| bytes(self, cell) == bytes(other, cell))
    }

    /// Returns the newest version among the cells, or `None` for the commit time.
    pub fn timestamp(&self) -> Option<Timestamp> {
        let newest = self.cells().map(|cell| cell.timestamp).max();
        newest.filter(|&at| at != Timestamp::LATEST)
    }

    fn clear(&mut self, number: usize, at: Timestamp) {
        if let Some(cell) = self.cells.get_mut(number)
            && cell.is_some_and(|cell| cell.timestamp <= at)
        {
            *cell = None;
        }
    }

    fn put(&mut self, number: usize, put: StoredCell<'a>) {
        if let Some(cell) = self.cells.get_mut(number)
            && cell.is_none_or(|cell| cell.timestamp <= put.timestamp)
        {
            *cell = Some(put);
        }
    }

    /// Applies the edits of a mutation that deletes no single versions.
    fn apply(&mut self, edits: &'a [Edit], layout: &RowLayout) {
        for edit in edits {
            for number in cells_of(edit, layout) {
                match StoredCell::of(edit) {
                    Some(put) => self.put(number, put),
                    None => self.clear(number, time(edit.timestamp())),
                }
            }
        }
    }

    /// Returns the state after a mutation that deletes single versions, which may expose older
    /// ones: replays its edits over the versions of the previous row.
    fn after_deleted_versions(mutation: &'a Mutation, layout: &RowLayout) -> RowState<'a> {
        let mut versions: Vec<BTreeMap<Timestamp, StoredCell<'a>>> =
            vec![BTreeMap::new(); layout.cell_count()];
        let previous = match &mutation.previous {
            PreviousRow::Row(cells) if !cells.is_empty() => Some(cells.row(0)),
            _ => None,
        };
        for cell in previous.iter().flat_map(RowRef::cells) {
            let (packed, timestamp, ttl) = (cell.value, cell.timestamp, cell.ttl);
            if let Some(number) = layout.cell_named(usize::from(cell.family), cell.qualifier) {
                versions[number].insert(timestamp, StoredCell { packed, timestamp, ttl });
            }
        }
        for edit in &mutation.edits {
            let at = time(edit.timestamp());
            for number in cells_of(edit, layout) {
                match (StoredCell::of(edit), is_of_version(edit)) {
                    (Some(put), _) => {
                        versions[number].insert(at, put);
                    }
                    (None, true) => {
                        versions[number].remove(&at);
                    }
                    (None, false) => versions[number].retain(|own, _| *own > at),
                }
            }
        }
        let newest = versions.iter().map(|cell| cell.last_key_value().map(|(_, cell)| *cell));
        RowState { cells: newest.collect() }
    }
}

impl<'a> StoredCell<'a> {
    /// Returns the cell of a put; `None` for a delete.
    fn of(edit: &'a Edit) -> Option<StoredCell<'a>> {
        let Edit::Put { timestamp, value, ttl, .. } = edit else { return None };
        Some(StoredCell { packed: value, timestamp: time(*timestamp), ttl: *ttl })
    }
}

/// Returns the numbers of the cells that an edit concerns. Cells that the layout does not have
/// are no part of the state.
fn cells_of(edit: &Edit, layout: &RowLayout) -> SmallVec<[usize; 8]> {
    match edit {
        Edit::Put { family, qualifier, .. }
        | Edit::DeleteColumn { family, qualifier, .. }
        | Edit::DeleteVersion { family, qualifier, .. } => {
            layout.cell_named(usize::from(*family), qualifier).into_iter().collect()
        }
        Edit::DeleteRow { .. } => (0..layout.cell_count()).collect(),
        Edit::DeleteFamily { family, .. } | Edit::DeleteFamilyVersion { family, .. } => {
            let family = usize::from(*family);
            (0..layout.cell_count()).filter(|cell| layout.family_of_cell(*cell) == family).collect()
        }
    }
}

fn is_of_version(edit: &Edit) -> bool {
    matches!(edit, Edit::DeleteVersion { .. } | Edit::DeleteFamilyVersion { .. })
}

/// Returns whether a mutation deletes single versions.
fn deletes_versions(mutation: &Mutation) -> bool {
    mutation.edits.iter().any(is_of_version)
}

fn time(timestamp: Option<Timestamp>) -> Timestamp {
    timestamp.unwrap_or(Timestamp::LATEST)
}

/// Returns an error if `derived` data cannot be maintained for an edit of the batch: a put with a
/// cell TTL.
pub fn reject_unmaintainable_edits(derived: &str, batch: &[Mutation]) -> store::Result<()> {
    let mut edits = batch.iter().flat_map(|mutation| &mutation.edits);
    if edits.any(|edit| matches!(edit, Edit::Put { ttl: Some(_), .. })) {
        let message = format!("per-cell TTL is not supported in a table with {derived}");
        return Err(store::Error::InvalidRequest(message));
    }
    Ok(())
}

/// Returns the error of a bulk load, for `pre_bulk_load` of observers that must see every row.
pub fn bulk_load_error(derived: &str) -> store::Error {
    store::Error::InvalidRequest(format!("cannot bulk load a table with {derived}"))
}

/// Reads the previous state of the mutations for which `is_needed` and that have none, and stores
/// it in them, so that later observers need not read it again: all versions for a mutation that
/// deletes single ones.
///
/// # Errors
///
/// Errors of the store; [`InvalidRequest`](store::Error::InvalidRequest) for a batch that deletes
/// single versions of a row and changes it a second time.
pub fn load_previous(
    context: &dyn ObserverContext,
    layout: &RowLayout,
    batch: &mut [Mutation],
    is_needed: impl Fn(&Mutation) -> bool,
) -> store::Result<()> {
    let mut columns = None;
    check_version_deletes(batch)?;
    for mutation in batch {
        if !matches!(mutation.previous, PreviousRow::Unknown) || !is_needed(mutation) {
            continue;
        }
        if mutation.expect == RowExpectation::Absent {
            mutation.previous = PreviousRow::Absent;
            continue;
        }
        let mut cells = CellBatch::new();
        let columns = columns.get_or_insert_with(|| ReadColumns::of_whole_rows(layout));
        let mut get = columns.get(Get::new(mutation.row.as_slice()));
        if deletes_versions(mutation) {
            get.max_versions = u32::MAX;
        }
        mutation.previous = if context.get(context.table(), &get, &mut cells)? {
            PreviousRow::Row(Arc::new(cells))
        } else {
            PreviousRow::Absent
        };
    }
    Ok(())
}

fn check_version_deletes(batch: &[Mutation]) -> store::Result<()> {
    if batch.len() < 2 || !batch.iter().any(deletes_versions) {
        return Ok(());
    }
    let mut rows = AHashSet::with_capacity(batch.len());
    match batch.iter().all(|mutation| rows.insert(mutation.row.as_slice())) {
        true => Ok(()),
        false => Err(store::Error::InvalidRequest(
            "a batch that deletes single versions must change each row once".into(),
        )),
    }
}

/// Returns the changes of a batch, in its order. An unknown previous state counts as absent: see
/// [`load_previous`].
pub fn changes<'a>(layout: &RowLayout, batch: &'a [Mutation]) -> Vec<Change<'a>> {
    let is_ascending = batch.is_sorted_by(|a, b| a.row < b.row);
    let mut last_of_row: AHashMap<&[u8], usize> = AHashMap::new();
    let mut changes: Vec<Change<'a>> = Vec::with_capacity(batch.len());
    for (position, mutation) in batch.iter().enumerate() {
        let row = mutation.row.as_slice();
        // Ascending rows are all different, so no row has an earlier change.
        let earlier = if is_ascending { None } else { last_of_row.insert(row, position) };
        let old = match (earlier, &mutation.previous) {
            (Some(earlier), _) => changes[earlier].new.clone(),
            (None, PreviousRow::Row(cells)) if !cells.is_empty() => {
                RowState::of(&cells.row(0), layout)
            }
            (None, _) => RowState::absent(layout),
        };
        let new = if deletes_versions(mutation) {
            RowState::after_deleted_versions(mutation, layout)
        } else {
            let mut new = old.clone();
            new.apply(&mutation.edits, layout);
            new
        };
        let edited = mutation
            .edits
            .iter()
            .map(|edit| time(edit.timestamp()))
            .max()
            .unwrap_or(Timestamp::LATEST);
        let existing = old.cells().map(|cell| cell.timestamp).max();
        let newest = existing.map_or(edited, |at| at.max(edited));
        let timestamp = (newest != Timestamp::LATEST).then_some(newest);
        changes.push(Change { row, old, new, timestamp });
    }
    changes
}

/// Returns the net changes of a batch: one per row, from before the batch to after it.
pub fn net_changes<'a>(layout: &RowLayout, batch: &'a [Mutation]) -> Vec<Change<'a>> {
    let changes = changes(layout, batch);
    if changes.is_sorted_by(|a, b| a.row < b.row) {
        return changes;
    }
    let mut position_of_row: AHashMap<&[u8], usize> = AHashMap::with_capacity(changes.len());
    let mut net: Vec<Change<'a>> = Vec::with_capacity(changes.len());
    for change in changes {
        if let Some(&position) = position_of_row.get(change.row) {
            let first = &mut net[position];
            first.new = change.new;
            // `None` is the commit time, which is later than all others.
            first.timestamp = first.timestamp.zip(change.timestamp).map(|(a, b)| a.max(b));
        } else {
            position_of_row.insert(change.row, net.len());
            net.push(change);
        }
    }
    net
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{
        FakeContext, key, layout, row_of_cells, stored_row, with_column_cells, with_previous,
    };
    use types::{DataType, Datum};

    fn two_families() -> RowLayout {
        let columns = [(DataType::Int4, 0), (DataType::Text, 0), (DataType::Int8, 1)];
        layout(&columns, &[key(0, false)], 0)
    }

    fn put(mutation: Mutation, family: u8, timestamp: Option<i64>, value: &[u8]) -> Mutation {
        let mut mutation = mutation;
        mutation.edits.push(Edit::Put {
            family,
            qualifier: Vec::new(),
            timestamp: timestamp.map(Timestamp),
            value: value.to_vec(),
            ttl: None,
        });
        mutation
    }

    fn new_cells(batch: &[Mutation]) -> Vec<Vec<Option<&[u8]>>> {
        changes(&two_families(), batch).iter().map(|change| change.new.packed().to_vec()).collect()
    }

    fn before() -> CellBatch {
        row_of_cells(b"r", &[(0, b"zero", 10), (1, b"one", 20)])
    }

    #[test]
    fn deleted_version_exposes_older_one() {
        let of_version =
            |at: i64| Edit::DeleteFamilyVersion { family: 1, timestamp: Timestamp(at) };
        let mut context = FakeContext::default();
        let versions = row_of_cells(b"r", &[(0, b"zero", 10), (1, b"two", 20), (1, b"one", 15)]);
        context.rows.insert(b"r".to_vec(), versions);
        let after = |edits: &[Edit]| {
            let mut mutation = Mutation::new(b"r");
            mutation.edits.extend(edits.iter().cloned());
            let mut batch = [mutation];
            load_previous(&context, &two_families(), &mut batch, |_| true).unwrap();
            let cells = new_cells(&batch)[0][1].map(<[u8]>::to_vec);
            cells.map(|cell| String::from_utf8(cell).unwrap())
        };
        assert_eq!(after(&[of_version(20)]).as_deref(), Some("one"));
        assert_eq!(after(&[of_version(15)]).as_deref(), Some("two"));
        assert_eq!(after(&[of_version(20), of_version(15)]), None);
        let range = Edit::DeleteFamily { family: 1, timestamp: Some(Timestamp(15)) };
        assert_eq!(after(&[range, of_version(20)]), None);
        let mut twice = [Mutation::new(b"r").with(of_version(20)), Mutation::new(b"r")];
        assert!(load_previous(&context, &two_families(), &mut twice, |_| true).is_err());
    }

    #[test]
    fn delete_of_family_removes_its_column_cells() {
        let layout = with_column_cells(two_families());
        let row = [Datum::Int4(1), Datum::text("x"), Datum::Int8(2)];
        let before = stored_row(&layout, &row, 10);
        let delete = Edit::DeleteFamily { family: 1, timestamp: None };
        let batch = [with_previous(Mutation::new(b"r").with(delete), before)];
        let new = changes(&layout, &batch)[0].new.packed();
        let present: Vec<bool> = new.iter().map(Option::is_some).collect();
        assert_eq!(present, [true, false, true, false]);
    }

    #[test]
    fn put_of_one_family_preserves_other_families() {
        let batch = [with_previous(put(Mutation::new(b"r"), 1, None, b"new"), before())];
        assert_eq!(new_cells(&batch), [[Some(&b"zero"[..]), Some(&b"new"[..])]]);
        assert_eq!(changes(&two_families(), &batch)[0].timestamp, None);
    }

    #[test]
    fn older_version_does_not_change_row() {
        let batch = [with_previous(put(Mutation::new(b"r"), 1, Some(19), b"new"), before())];
        assert_eq!(new_cells(&batch), [[Some(&b"zero"[..]), Some(&b"one"[..])]]);
        let batch = [with_previous(put(Mutation::new(b"r"), 0, Some(15), b"new"), before())];
        let changes = changes(&two_families(), &batch);
        assert_eq!(changes[0].new.packed()[0], Some(&b"new"[..]));
        assert_eq!(changes[0].timestamp, Some(Timestamp(20)), "not behind the other family");
    }

    #[test]
    fn delete_markers_remove_cells_up_to_their_timestamp() {
        let marker = |edit: Edit| {
            let mut mutation = Mutation::new(b"r");
            mutation.edits.push(edit);
            [with_previous(mutation, before())]
        };
        let batch = marker(Edit::DeleteRow { timestamp: Some(Timestamp(10)) });
        assert_eq!(new_cells(&batch), [[None, Some(&b"one"[..])]]);
        let batch = marker(Edit::DeleteFamily { family: 1, timestamp: None });
        assert_eq!(new_cells(&batch), [[Some(&b"zero"[..]), None]]);
        let batch = marker(Edit::DeleteColumn { family: 0, qualifier: vec![], timestamp: None });
        assert_eq!(new_cells(&batch), [[None, Some(&b"one"[..])]]);
        let batch = marker(Edit::DeleteRow { timestamp: None });
        assert!(!changes(&two_families(), &batch)[0].new.exists());
    }

    #[test]
    fn edits_apply_in_order() {
        let mutation = put(Mutation::new(b"r").delete_row(), 0, None, b"new");
        assert_eq!(new_cells(&[with_previous(mutation, before())]), [[Some(&b"new"[..]), None]]);
        let mutation = put(Mutation::new(b"r"), 0, None, b"new").delete_row();
        assert!(!changes(&two_families(), &[with_previous(mutation, before())])[0].new.exists());
    }

    #[test]
    fn repeated_changes_of_row_chain_old_and_new_values() {
        let batch = [
            put(Mutation::new(b"r"), 0, None, b"first"),
            put(Mutation::new(b"q"), 0, None, b"other"),
            put(Mutation::new(b"r"), 1, None, b"second"),
        ];
        let changes = changes(&two_families(), &batch);
        assert!(!changes[0].old.exists());
        assert_eq!(changes[2].old, changes[0].new);
        assert_eq!(changes[2].new.packed()[..], [Some(&b"first"[..]), Some(&b"second"[..])]);
    }

    #[test]
    fn net_change_spans_whole_batch() {
        let batch = [
            with_previous(put(Mutation::new(b"r"), 0, None, b"first"), before()),
            put(Mutation::new(b"q"), 0, Some(5), b"other"),
            put(Mutation::new(b"r"), 0, None, b"second"),
        ];
        let net = net_changes(&two_families(), &batch);
        assert_eq!(net.iter().map(|change| change.row).collect::<Vec<_>>(), [b"r", b"q"]);
        assert_eq!(net[0].old.packed()[..], [Some(&b"zero"[..]), Some(&b"one"[..])]);
        assert_eq!(net[0].new.packed()[..], [Some(&b"second"[..]), Some(&b"one"[..])]);
        assert_eq!((net[0].timestamp, net[1].timestamp), (None, Some(Timestamp(5))));
    }

    #[test]
    fn unknown_previous_rows_are_read_once() {
        let mut context = FakeContext::default();
        context.rows.insert(b"r".to_vec(), before());
        let mut batch = [
            Mutation::new(b"r"),
            Mutation::new(b"absent"),
            Mutation::new(b"new").expect_absent(),
            with_previous(Mutation::new(b"known"), row_of_cells(b"known", &[(0, b"", 1)])),
        ];
        load_previous(&context, &two_families(), &mut batch, |_| true).unwrap();
        load_previous(&context, &two_families(), &mut batch, |_| true).unwrap();
        assert_eq!(*context.read.borrow(), [b"r".to_vec(), b"absent".to_vec()]);
        assert!(matches!(&batch[0].previous, PreviousRow::Row(cells) if cells.cell_count() == 2));
        assert!(matches!(batch[1].previous, PreviousRow::Absent));
        assert!(matches!(batch[2].previous, PreviousRow::Absent));
    }
}
