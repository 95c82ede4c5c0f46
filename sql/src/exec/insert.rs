//! INSERT and UPSERT, and the row sink of COPY and CREATE TABLE AS.

use std::sync::Arc;

use types::Datum;

use crate::ast::TriggerEvent;
use crate::catalog::table::Table;
use crate::error::Result;
use crate::exec::conflict::ConflictWriter;
use crate::exec::constraint_queue::ConstraintQueue;
use crate::exec::row_changes::RowChanges;
use crate::exec::{Context, ModifyOutcome, build};
use crate::plan::InsertPlan;

/// Sink that stages new rows of a table, in batches of about a thousand.
pub struct RowSink {
    changes: RowChanges<'static>,
    table: Arc<Table>,
    context: Context,
}

impl RowSink {
    /// Returns a sink for a table.
    ///
    /// # Errors
    ///
    /// Errors of BEFORE STATEMENT triggers.
    pub fn new(table: Arc<Table>, context: Context) -> Result<RowSink> {
        context.call_before_statement(&table, (TriggerEvent::Insert, &[]))?;
        Ok(RowSink { changes: RowChanges::new(&table, "inserted", &[], None), table, context })
    }

    /// Returns the number of pushed rows that are not staged yet: an error of the next push or of
    /// `finish` may concern any of them.
    pub fn pending_count(&self) -> usize {
        self.changes.writer.pending_count()
    }

    /// Returns the constraint queue of the rows' foreign keys.
    pub fn watch(&self) -> Option<Arc<ConstraintQueue>> {
        self.context.constraint_queue.clone()
    }

    /// Adds a complete row, in table order, of the columns' types. Assigns the hidden key of a
    /// table without a primary key.
    ///
    /// # Errors
    ///
    /// 23505 if the key of this row, or of one pushed before, exists; errors of observers.
    pub fn push(&mut self, values: &mut [Datum]) -> Result<()> {
        if !self.changes.complete(values, &self.context)? {
            return Ok(());
        }
        self.changes.insert(values, &self.context)?;
        self.changes.add(values, &self.context)
    }

    /// Stages the remaining rows and returns the number of rows.
    ///
    /// # Errors
    ///
    /// See [`RowSink::push`].
    pub fn finish(self) -> Result<u64> {
        let outcome = self.changes.finish(&self.context)?;
        self.context.queue_after_statement(&self.table, (TriggerEvent::Insert, &[]))?;
        Ok(outcome.row_count)
    }
}

/// Executes an INSERT or UPSERT.
pub(super) fn run(plan: &InsertPlan, context: &Arc<Context>) -> Result<ModifyOutcome> {
    let mut source = build(&plan.source, context)?;
    let mut writer = ConflictWriter::new(plan, context)?;
    while let Some(batch) = source.next()? {
        context.check()?;
        for row in 0..batch.row_count {
            writer.write(batch.row_at(row, &mut context.eval.pace())?, context)?;
        }
    }
    writer.finish(context)
}
