//! INSERT and UPSERT, and the row sink of COPY and CREATE TABLE AS.

use std::sync::Arc;

use types::Datum;

use crate::catalog::table::Table;
use crate::error::Result;
use crate::exec::conflict::ConflictWriter;
use crate::exec::constraint_queue::ConstraintQueue;
use crate::exec::hidden_keys::RowIdAllocator;
use crate::exec::row_writer::RowWriter;
use crate::exec::target_rows::ReturningCollector;
use crate::exec::{Context, ModifyOutcome, build};
use crate::plan::InsertPlan;

/// Sink that stages new rows of a table, in batches of about a thousand.
pub struct RowSink {
    writer: RowWriter,
    numbers: RowIdAllocator,
    context: Context,
    row_count: u64,
}

impl RowSink {
    /// Returns a sink for a table.
    pub fn new(table: Arc<Table>, context: Context) -> RowSink {
        let (writer, numbers) = (RowWriter::new(&table), RowIdAllocator::new(&table));
        RowSink { writer, numbers, context, row_count: 0 }
    }

    /// Returns the number of pushed rows that are not staged yet: an error of the next push or of
    /// `finish` may concern any of them.
    pub fn pending_count(&self) -> usize {
        self.writer.pending_count()
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
        self.numbers.assign(values, &self.context)?;
        self.writer.table().generate(values, &self.context.eval)?;
        self.writer.insert(values, &self.context)?;
        self.context.row_changed(self.writer.table(), None, Some(values))?;
        self.row_count += 1;
        Ok(())
    }

    /// Stages the remaining rows and returns the number of rows.
    ///
    /// # Errors
    ///
    /// See [`RowSink::push`].
    pub fn finish(mut self) -> Result<u64> {
        self.writer.flush(&self.context)?;
        Ok(self.row_count)
    }
}

/// Executes an INSERT or UPSERT.
pub(super) fn run(plan: &InsertPlan, context: &Arc<Context>) -> Result<ModifyOutcome> {
    let mut source = build(&plan.source, context)?;
    let mut writer = ConflictWriter::new(plan);
    let mut returned = ReturningCollector::new(&plan.returning);
    let mut row_count = 0;
    while let Some(batch) = source.next()? {
        context.check()?;
        for row in 0..batch.row_count {
            let values = batch.row_at(row, &mut context.eval.pace())?;
            if let Some(written) = writer.write(values, context)? {
                returned.add(&written, context)?;
                row_count += 1;
            }
        }
    }
    writer.flush(context)?;
    Ok(ModifyOutcome { row_count, returning: returned.finish(context)? })
}
