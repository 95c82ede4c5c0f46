//! Row changes: inserts, updates and deletes of rows, as all data-changing statements make them.
//!
//! INSERT, UPSERT, UPDATE, DELETE, MERGE and COPY determine the rows; existing ones are locked and
//! re-read before ([`target_rows`](crate::exec::target_rows)). [`RowChanges`] queues the
//! constraint checks of each changed row, checks row-level security policies, stages it, checks
//! WITH CHECK OPTION, computes RETURNING and counts the row.

use std::sync::Arc;

use smallvec::SmallVec;
use store::CellBatch;
use store::transaction::{LockMode, LockWait};
use types::Datum;

use crate::ast::{TriggerEvent, TriggerTiming};
use crate::catalog::table::Table;
use crate::error::Result;
use crate::exec::hidden_keys::RowIdAllocator;
use crate::exec::row_writer::{RowWriter, WrittenCells, previous};
use crate::exec::target_rows::{ReturningCollector, check_row, refuse_changed};
use crate::exec::triggers::TriggerRows;
use crate::exec::{Context, ModifyOutcome};
use crate::logical::{Assignment, CheckTime, Returning};
use crate::plan::RowCheckPlan;

/// Changes of the rows of one table by one statement.
pub(super) struct RowChanges<'a> {
    table: Arc<Table>,
    /// Timing of the row triggers that are called at once.
    timing: TriggerTiming,
    checks: &'a [RowCheckPlan],
    returned: ReturningCollector<'a>,
    numbers: RowIdAllocator,
    /// Writer of the changed rows.
    pub(super) writer: RowWriter,
    /// Cells of the existing row that was read last.
    pub(super) cells: CellBatch,
    row_count: u64,
    /// Participle of the changes of existing rows, for error messages.
    done: &'static str,
}

impl<'a> RowChanges<'a> {
    /// Returns the changes of a table, none so far. `done`: participle of the changes
    /// of existing rows, for error messages.
    pub(super) fn new(
        table: &Arc<Table>,
        done: &'static str,
        checks: &'a [RowCheckPlan],
        returning: Option<&'a Returning>,
    ) -> RowChanges<'a> {
        RowChanges {
            table: Arc::clone(table),
            timing: match table.is_view {
                true => TriggerTiming::InsteadOf,
                false => TriggerTiming::Before,
            },
            checks,
            returned: ReturningCollector::new(returning),
            numbers: RowIdAllocator::new(table),
            writer: RowWriter::new(table),
            cells: CellBatch::new(),
            row_count: 0,
            done,
        }
    }

    /// Assigns the hidden key of a new row, calls BEFORE or INSTEAD OF triggers and computes
    /// generated columns. Returns false if a trigger skips the row.
    pub(super) fn complete(&mut self, values: &mut [Datum], context: &Context) -> Result<bool> {
        self.numbers.assign(values, context)?;
        if context.has_row_triggers(&self.table, self.timing) {
            // The triggers see the rows before.
            self.writer.flush(context)?;
            self.clear_generated(values);
            let rows = TriggerRows { old: None, new: Some(&*values), assigned: &[] };
            let kind = (self.timing, TriggerEvent::Insert);
            let new = context.call_row_triggers(&self.table, kind, rows)?;
            let Some(new) = new else { return Ok(false) };
            values.clone_from_slice(&new);
        }
        self.table.generate(values, &context.eval)?;
        self.check(CheckTime::Insert, values, context)?;
        Ok(true)
    }

    /// Checks a row of the table by the policies of a time.
    pub(super) fn check(
        &mut self,
        time: CheckTime,
        row: &[Datum],
        context: &Context,
    ) -> Result<()> {
        match self.checks {
            [] => Ok(()),
            checks => check_row((checks, Some(time)), row, &mut self.writer, context),
        }
    }

    /// Returns whether policies check existing rows that ON CONFLICT or UPSERT updates.
    pub(super) fn checks_existing(&self) -> bool {
        let mut times = self.checks.iter().map(|check| check.subject.time());
        times.any(|time| time == Some(CheckTime::Conflict))
    }

    /// Raises the error for a row that a function has changed; the rows of a view are in no store
    /// table.
    fn refuse_changed(&self, key: &[u8], context: &Context) -> Result<()> {
        match self.table.is_view {
            true => Ok(()),
            false => refuse_changed((&self.table, key), self.done, context),
        }
    }

    /// Generated columns are computed after BEFORE triggers.
    fn clear_generated(&self, row: &mut [Datum]) {
        self.table.generated.iter().for_each(|column| row[*column] = Datum::Null);
    }

    /// Inserts a complete row that must not exist.
    pub(super) fn insert(&mut self, values: &[Datum], context: &Context) -> Result<()> {
        if self.table.is_view {
            return Ok(());
        }
        self.writer.refuse_nulls(values, context)?;
        let rows = TriggerRows { old: None, new: Some(values), assigned: &[] };
        context.row_changed(&self.table, rows)?;
        self.writer.insert(values, context)
    }

    /// Updates a row that is locked and was read into `cells`, and returns the new values; `None`
    /// if a BEFORE trigger skips it. The assignments are evaluated over `row`; `old` has the row's
    /// values in front.
    pub(super) fn update(
        &mut self,
        key: Vec<u8>,
        (old, row): (&[Datum], &[Datum]),
        assignments: &[Assignment],
        context: &Context,
    ) -> Result<Option<Vec<Datum>>> {
        let mut new = old[..self.table.columns.len()].to_vec();
        for assignment in assignments {
            new[assignment.column] = assignment.value.eval_row(row, &context.eval)?;
        }
        let columns = assignments.iter().map(|assignment| assignment.column).collect();
        self.update_to(key, (old, new), columns, context)
    }

    /// Updates a row as [`RowChanges::update`] does, given the new values of the assigned columns.
    pub(super) fn update_to(
        &mut self,
        key: Vec<u8>,
        (old, mut new): (&[Datum], Vec<Datum>),
        columns: SmallVec<[usize; 8]>,
        context: &Context,
    ) -> Result<Option<Vec<Datum>>> {
        let mut changed = columns.clone();
        if context.has_row_triggers(&self.table, self.timing) {
            self.refuse_changed(&key, context)?;
            self.writer.flush(context)?;
            self.clear_generated(&mut new);
            let rows = TriggerRows { old: Some(old), new: Some(&new), assigned: &columns };
            let kind = (self.timing, TriggerEvent::Update);
            let given = context.call_row_triggers(&self.table, kind, rows)?;
            let Some(given) = given else { return Ok(None) };
            if self.table.is_view {
                return Ok(Some(given));
            }
            new = given;
            changed.extend((0..new.len()).filter(|at| old[*at] != new[*at]));
        }
        self.table.generate(&mut new, &context.eval)?;
        self.check(CheckTime::Update, &new, context)?;
        refuse_changed((&self.table, &key), self.done, context)?;
        let rows = TriggerRows { old: Some(old), new: Some(&new), assigned: &columns };
        context.row_changed(&self.table, rows)?;
        self.replace(key, (old, &new), changed, context)?;
        Ok(Some(new))
    }

    /// Stages the new version of a row that is locked and was read into `cells`, with changes of
    /// these columns; a new key means a delete and an insert.
    fn replace(
        &mut self,
        key: Vec<u8>,
        (old, new): (&[Datum], &[Datum]),
        columns: impl IntoIterator<Item = usize>,
        context: &Context,
    ) -> Result<()> {
        let (table, writer) = (&*self.table, &mut self.writer);
        let is_changed = |column: usize| old[column] != new[column];
        let transaction = &context.transaction;
        // Foreign keys can reference the changed columns.
        if (0..table.columns.len()).any(|column| is_changed(column) && table.is_referable(column)) {
            transaction.lock_row(table.id, &key, LockMode::Exclusive, LockWait::Wait)?;
        }
        let previous = previous(table, &mut self.cells);
        if !table.key_columns().any(is_changed) || table.layout.encode_key(new)? == key {
            let written = WrittenCells::by_change(table, columns);
            return writer.overwrite((key, written), new, previous, context);
        }
        writer.flush(context)?;
        let (to, from) = (table.layout.encode_key(new)?, key.clone());
        let before = transaction.savepoint();
        // One after the other: the new key may be that of a row updated before.
        writer.delete_for_key_update(key, previous, context)?;
        writer.flush(context)?;
        writer.refuse_nulls(new, context)?;
        writer.insert(new, context)?;
        writer.flush(context)?;
        transaction.note_move(before, table.id, (from.clone(), to.clone()));
        let row = (table.id, from);
        context.key_updates.note(transaction, before, row, to, context.work_mem())
    }

    /// Deletes a row that is locked and was read into `cells`. Returns false if a BEFORE trigger
    /// skips it.
    pub(super) fn delete(
        &mut self,
        key: Vec<u8>,
        old: &[Datum],
        context: &Context,
    ) -> Result<bool> {
        let rows = TriggerRows { old: Some(old), new: None, assigned: &[] };
        if context.has_row_triggers(&self.table, self.timing) {
            self.refuse_changed(&key, context)?;
            self.writer.flush(context)?;
            let kind = (self.timing, TriggerEvent::Delete);
            if context.call_row_triggers(&self.table, kind, rows)?.is_none() {
                return Ok(false);
            }
            if self.table.is_view {
                return Ok(true);
            }
        }
        self.refuse_changed(&key, context)?;
        let previous = previous(&self.table, &mut self.cells);
        self.writer.delete((key, old), previous, context)?;
        context.row_changed(&self.table, rows)?;
        Ok(true)
    }

    /// Counts a changed row, after the check options of views; computes RETURNING over its values
    /// in table order, followed by additional columns.
    pub(super) fn add(&mut self, row: &[Datum], context: &Context) -> Result<()> {
        let columns = &row[..self.table.columns.len()];
        check_row((self.checks, None), columns, &mut self.writer, context)?;
        self.row_count += 1;
        self.returned.add(row, context)
    }

    /// Stages pending rows and returns the result of the statement.
    pub(super) fn finish(mut self, context: &Context) -> Result<ModifyOutcome> {
        self.writer.flush(context)?;
        let returning = self.returned.finish(context)?;
        Ok(ModifyOutcome { row_count: self.row_count, returning })
    }
}
