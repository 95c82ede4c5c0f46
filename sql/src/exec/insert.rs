//! INSERT and UPSERT, and the sink that COPY feeds.

use std::sync::Arc;

use types::Datum;

use crate::catalog::table::Table;
use crate::error::Result;
use crate::exec::conflict::ConflictWriter;
use crate::exec::row::RowWriter;
use crate::exec::row_numbers::RowNumbers;
use crate::exec::target::Returned;
use crate::exec::watch::Watch;
use crate::exec::{Context, ModifyOutcome, build};
use crate::plan::InsertPlan;

/// Stages new rows of a table, about a thousand at a time.
pub struct RowSink {
    writer: RowWriter,
    numbers: RowNumbers,
    context: Context,
    row_count: u64,
}

impl RowSink {
    /// Returns a sink for a table.
    pub fn new(table: Arc<Table>, context: Context) -> RowSink {
        let (writer, numbers) = (RowWriter::new(&table), RowNumbers::new(&table));
        RowSink { writer, numbers, context, row_count: 0 }
    }

    /// Returns how many rows were pushed and are not staged yet: an error of the next push or of
    /// the end may be about any of them.
    pub fn pending_count(&self) -> usize {
        self.writer.pending_count()
    }

    /// Returns what foreign keys have to do with the rows.
    pub fn watch(&self) -> Option<Arc<Watch>> {
        self.context.watch.clone()
    }

    /// Adds a full row, in table order, of the columns' types. The hidden column of a table without
    /// a primary key is filled in here.
    ///
    /// # Errors
    ///
    /// 23505 if the key of this row, or of one pushed before it, is taken; what observers refuse.
    pub fn push(&mut self, values: &mut [Datum]) -> Result<()> {
        self.numbers.number(values, &self.context)?;
        self.writer.table().generate(values, &self.context.eval)?;
        self.writer.insert(values, &self.context)?;
        self.context.row_changed(self.writer.table(), None, Some(values))?;
        self.row_count += 1;
        Ok(())
    }

    /// Stages what is left and returns the number of rows.
    ///
    /// # Errors
    ///
    /// As [`RowSink::push`].
    pub fn finish(mut self) -> Result<u64> {
        self.writer.flush(&self.context)?;
        Ok(self.row_count)
    }
}

/// Runs an INSERT or UPSERT to its end.
pub(super) fn run(plan: &InsertPlan, context: &Arc<Context>) -> Result<ModifyOutcome> {
    let mut source = build(&plan.source, context)?;
    let mut writer = ConflictWriter::new(plan);
    let mut returned = Returned::new(&plan.returning);
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
