//! INSERT … ON CONFLICT and UPSERT: row writer that looks up and locks a conflicting row before
//! it writes.
//!
//! The arbiters are the primary key and unique indexes. If there is no conflicting row, their
//! keys are locked, so that no other transaction can insert one before this transaction ends.

use std::sync::Arc;

use ahash::AHashSet;
use coprocessors::index::{IndexSpec, base_key, index_row_key};
use store::transaction::{LockMode, LockWait, PreviousRow};
use store::{CellBatch, Get, TableId};
use types::Datum;
use types::rowcode::ColumnPlace;

use crate::catalog::table::{Index, Table};
use crate::error::{Error, Result};
use crate::exec::row_changes::RowChanges;
use crate::exec::row_writer::{CellStamp, WrittenCells};
use crate::exec::target_rows::{lock_and_read, with_subqueries};
use crate::exec::triggers::TriggerRows;
use crate::exec::{Context, ModifyOutcome};
use crate::logical::{Assignment, CheckTime, ConflictTarget, OnConflict};
use crate::plan::InsertPlan;
use types::expr::Expr;

/// Writer of rows that may already exist.
pub(super) struct ConflictWriter<'a> {
    plan: &'a InsertPlan,
    table: &'a Arc<Table>,
    changes: RowChanges<'a>,
    /// Keys of the rows that the statement has inserted or updated.
    touched: AHashSet<Vec<u8>>,
    /// True if UPSERT names every non-key column: nothing of an old row remains.
    names_all: bool,
    /// True if UPSERT need not know the old row to write the named columns.
    is_blind: bool,
}

/// A conflicting row, locked: its key and values. Its cells are in [`RowChanges::cells`].
struct ConflictingRow {
    key: Vec<u8>,
    row: Vec<Datum>,
}

impl<'a> ConflictWriter<'a> {
    /// Returns a writer with no staged rows.
    ///
    /// # Errors
    ///
    /// Those of [`CellStamp::of`]; 0A000 where the table or the columns do not allow the
    /// attributes.
    pub(super) fn new(plan: &'a InsertPlan, context: &Context) -> Result<ConflictWriter<'a>> {
        let table = &plan.table;
        let keys: Vec<usize> = table.key_columns().collect();
        let names_all = (0..table.columns.len())
            .filter(|column| table.columns[*column].generated.is_none())
            .all(|column| keys.contains(&column) || plan.named_columns.contains(&column));
        let mut changes = RowChanges::new(table, "updated", &plan.checks, plan.returning.as_ref());
        let stamp = CellStamp::of(&plan.attributes, context)?;
        if stamp.timestamp.is_some() && !names_all && !names_whole_cells(plan) {
            return Err(Error::not_supported(
                "UPSERT … WITH TIMESTAMP of some columns of a packed row",
                "Name all columns of the column family: its packed row has one timestamp.",
            ));
        }
        let is_blind = stamp.ttl.is_none() && is_blind(plan);
        changes.writer.stamp = stamp;
        let touched = AHashSet::new();
        Ok(ConflictWriter { plan, table, changes, touched, names_all, is_blind })
    }

    /// Stages pending rows and returns the result of the statement.
    pub(super) fn finish(self, context: &Context) -> Result<ModifyOutcome> {
        self.changes.finish(context)
    }

    /// Writes a row, unless an existing row is to be left unchanged.
    pub(super) fn write(&mut self, mut values: Vec<Datum>, context: &Context) -> Result<()> {
        if !self.changes.complete(&mut values, context)? {
            return Ok(());
        }
        let check = |values: &[Datum]| self.table.constraints.check_row(values, &context.eval);
        match &self.plan.on_conflict {
            OnConflict::Error => self.changes.insert(&values, context)?,
            OnConflict::Overwrite => {
                let Some(new) = self.upsert(values, context)? else { return Ok(()) };
                values = new;
            }
            OnConflict::Ignore { target } => {
                // Constraints apply to the proposed row, even if it conflicts.
                check(&values)?;
                if self.is_taken(target, &values, context)? {
                    return Ok(());
                }
                self.changes.insert(&values, context)?;
            }
            OnConflict::Update { target, assignments, predicate, inserts } => {
                if *inserts {
                    check(&values)?;
                }
                match self.existing(target, &values, context)? {
                    Some(existing) => {
                        let set = (assignments.as_slice(), predicate.as_ref());
                        let written = self.update(existing, values, set, context)?;
                        let Some(new) = written else { return Ok(()) };
                        values = new;
                    }
                    None if !inserts => return Ok(()),
                    None => {
                        self.touched.insert(self.table.layout.encode_key(&values)?);
                        self.changes.insert(&values, context)?;
                    }
                }
            }
        }
        self.changes.add(&values, context)
    }

    fn upsert(&mut self, mut values: Vec<Datum>, context: &Context) -> Result<Option<Vec<Datum>>> {
        let (table, changes) = (self.table, &mut self.changes);
        let key = table.layout.encode_key(&values)?;
        context.claims_row(table.id, &key);
        changes.writer.flush_row(&key, context)?;
        let (mut previous, mut written) = (PreviousRow::Unknown, WrittenCells::All);
        if changes.writer.stamp.timestamp.is_some() {
            // Observers check the newest version only.
            table.constraints.check_row(&values, &context.eval)?;
        }
        if !self.names_all && self.is_blind {
            written = WrittenCells::by_change(table, self.plan.named_columns.iter().copied());
        }
        let is_checked = changes.checks_existing();
        if !(self.names_all || self.is_blind) || is_checked || context.watches(table) {
            let mode = LockMode::NoKeyExclusive;
            let old = lock_and_read((table, &key), mode, &mut changes.cells, context)?;
            if let Some(old) = old {
                changes.check(CheckTime::Conflict, &old, context)?;
                let mut new = old.clone();
                let named = self.plan.named_columns.iter().copied();
                for column in named.clone() {
                    new[column] = std::mem::replace(&mut values[column], Datum::Null);
                }
                return changes.update_to(key, (&old, new), named.collect(), context);
            }
            let rows = TriggerRows { old: None, new: Some(&values), assigned: &[] };
            context.row_changed(table, rows)?;
            (previous, written) = (PreviousRow::Absent, WrittenCells::Fresh);
        }
        changes.writer.overwrite((key, written), &values, previous, context)?;
        Ok(Some(values))
    }

    fn update(
        &mut self,
        existing: ConflictingRow,
        mut excluded: Vec<Datum>,
        (assignments, predicate): (&[Assignment], Option<&Expr>),
        context: &Context,
    ) -> Result<Option<Vec<Datum>>> {
        if self.touched.contains(&existing.key) || context.has_claimed(self.table.id, &existing.key)
        {
            bail!(CARDINALITY_VIOLATION: "ON CONFLICT DO UPDATE command cannot affect row a second time";
                hint "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.");
        }
        let mut both = existing.row;
        self.changes.check(CheckTime::Conflict, &both, context)?;
        both.append(&mut excluded);
        if let Some(row) = &self.plan.conflict_row {
            both = with_subqueries(row, &both, context)?;
        }
        if let Some(predicate) = predicate
            && predicate.eval_row(&both, &context.eval)?.as_bool() != Some(true)
        {
            return Ok(None);
        }
        self.touched.insert(existing.key.clone());
        context.claims_row(self.table.id, &existing.key);
        self.changes.update(existing.key, (&both, &both), assignments, context)
    }

    /// Returns whether a row conflicts with a new one; if not, locks the keys of the new one. The
    /// conflicting row is not locked: as in PostgreSQL, only an open transaction that inserts or
    /// deletes it is waited for.
    fn is_taken(
        &mut self,
        target: &ConflictTarget,
        values: &[Datum],
        context: &Context,
    ) -> Result<bool> {
        let table = self.table;
        let (key, indexes) = self.arbiters(target);
        if key {
            let key = table.layout.encode_key(values)?;
            self.changes.writer.flush_row(&key, context)?;
            if !context.transaction.lock_absent_row(table.id, &key)? {
                check_visible(table.id, &key, context)?;
                return Ok(true);
            }
        }
        for index in indexes {
            // Index entries of earlier rows are staged with their rows.
            self.changes.writer.flush(context)?;
            let Some(entry) = unique_entry(&index.spec, values, context)? else { continue };
            let entries = index.spec.store_table;
            if !context.transaction.lock_absent_row(entries, &entry)? {
                check_visible(entries, &entry, context)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Finds the conflicting row and locks it; if there is none, locks the keys of the new one.
    fn existing(
        &mut self,
        target: &ConflictTarget,
        values: &[Datum],
        context: &Context,
    ) -> Result<Option<ConflictingRow>> {
        let (table, transaction) = (self.table, &context.transaction);
        let (key, indexes) = self.arbiters(target);
        if key {
            let key = table.layout.encode_key(values)?;
            self.changes.writer.flush_row(&key, context)?;
            // The snapshot may show a row that has been deleted since.
            let is_absent = transaction.isolation().is_repeatable()
                && transaction.lock_absent_row(table.id, &key)?;
            let mode = LockMode::NoKeyExclusive;
            if !is_absent
                && let Some(row) =
                    lock_and_read((table, &key), mode, &mut self.changes.cells, context)?
            {
                return Ok(Some(ConflictingRow { key, row }));
            }
        }
        for index in indexes {
            self.changes.writer.flush(context)?;
            if let Some(existing) = self.by_index(&index.spec, values, context)? {
                return Ok(Some(existing));
            }
        }
        Ok(None)
    }

    /// Returns the arbiters: whether the primary key is one, and the unique indexes.
    fn arbiters(&self, target: &ConflictTarget) -> (bool, Vec<&'a Arc<Index>>) {
        let indexes = self.table.indexes.iter();
        let (by_key, indexes) = match target {
            ConflictTarget::Any => (true, indexes.filter(|index| index.spec.unique).collect()),
            ConflictTarget::These(these) => {
                let is_named = |index: &&Arc<Index>| these.indexes.contains(&index.name);
                (these.primary_key, indexes.filter(is_named).collect())
            }
        };
        // A newly assigned hidden key cannot conflict.
        (by_key && self.table.row_id_column().is_none(), indexes)
    }

    /// Finds a row with the same values in a unique index, and locks it; if there is none, locks
    /// the values. The owner of the entry is known for sure only once that row is locked.
    fn by_index(
        &mut self,
        spec: &IndexSpec,
        values: &[Datum],
        context: &Context,
    ) -> Result<Option<ConflictingRow>> {
        let Some(entry) = unique_entry(spec, values, context)? else { return Ok(None) };
        let transaction = &context.transaction;
        let (get, mut entries) = (Get::new(entry.as_slice()), CellBatch::new());
        let mut locked: Option<ConflictingRow> = None;
        let mut waited = None;
        loop {
            context.check()?;
            entries.clear();
            if !transaction.get_locked(spec.store_table, &get, &mut entries)? {
                if transaction.lock_absent_row(spec.store_table, &entry)? {
                    return Ok(None);
                }
                continue;
            }
            let key = base_key(spec, &entries.row(0))?;
            if locked.as_ref().is_some_and(|locked| locked.key == key) {
                return Ok(locked);
            }
            let mode = LockMode::NoKeyExclusive;
            // A row that was deleted since the snapshot does not conflict: the entry is read again
            // before the changes of the row count.
            if transaction.isolation().is_repeatable() && waited.as_ref() != Some(&key) {
                transaction.lock_present_row(self.table.id, &key, mode, LockWait::Wait)?;
                waited = Some(key);
                continue;
            }
            let row = lock_and_read((self.table, &key), mode, &mut self.changes.cells, context)?;
            locked = row.map(|row| ConflictingRow { key, row });
        }
    }
}

/// Returns whether an UPSERT can write the columns that it names without the old row: they have
/// cells of their own, a new row has NULL in the others, and nothing is computed from the row.
fn is_blind(plan: &InsertPlan) -> bool {
    let table = &plan.table;
    let is_null_in_new_row = |column: usize| {
        let definition = &table.columns[column];
        !definition.not_null
            && definition.default_expression().is_none()
            && table.layout.columns[column].missing.is_null()
    };
    let keys: Vec<usize> = table.key_columns().collect();
    // If the first family may expire before others, a new row has a cell in each family.
    let layout = &table.layout;
    let lives_alike = !layout.expiring.contains(&0) || layout.living_families() == 1;
    layout.has_column_cells()
        && lives_alike
        && table.generated.is_empty()
        && plan.returning.is_none()
        && plan.checks.is_empty()
        && (0..table.columns.len()).all(|column| {
            keys.contains(&column)
                || plan.named_columns.contains(&column)
                || is_null_in_new_row(column)
        })
}

/// Returns whether an UPSERT names all columns of the cells that it writes.
fn names_whole_cells(plan: &InsertPlan) -> bool {
    let (table, named) = (&plan.table, &plan.named_columns);
    let WrittenCells::Only(cells) = WrittenCells::by_change(table, named.iter().copied()) else {
        return false;
    };
    let is_written = |column: usize| match table.layout.columns[column].place {
        ColumnPlace::Packed { cell, .. } => cells.contains(&cell),
        ColumnPlace::Key(_) => false,
    };
    (0..table.columns.len()).all(|column| named.contains(&column) || !is_written(column))
}

/// Returns the key of a new row's entry in a unique index; `None` if it has none, or one that
/// cannot conflict: NULLs are distinct, unless the index is NULLS NOT DISTINCT.
fn unique_entry(spec: &IndexSpec, values: &[Datum], context: &Context) -> Result<Option<Vec<u8>>> {
    if !spec.has_entry(values, &context.eval)? {
        return Ok(None);
    }
    for part in spec.keys.iter().filter(|_| !spec.nulls_not_distinct) {
        if part.eval_row(values, &context.eval)?.is_null() {
            return Ok(None);
        }
    }
    Ok(Some(index_row_key(spec, values, &context.eval)?))
}

/// Checks, at REPEATABLE READ, that a conflicting row is visible to the snapshot.
///
/// # Errors
///
/// 40001, as PostgreSQL's `ExecCheckTupleVisible` raises it.
fn check_visible(table: TableId, row: &[u8], context: &Context) -> Result<()> {
    let transaction = &context.transaction;
    if let Some(view) = context.view.get()
        && transaction.isolation().is_repeatable()
        && transaction.is_newer(table, row, view)?
    {
        let detail = "due to concurrent update".to_owned();
        return Err(store::Error::Serialization { detail }.into());
    }
    Ok(())
}
