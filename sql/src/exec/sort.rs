//! Sort with spilling to disk.
//!
//! With a row goal only the first rows are retained while reading. Rows that exceed `work_mem`
//! are sorted in parts, written as runs, and merged ([`merge_runs`](crate::exec::merge_runs)).

use std::sync::Arc;

use types::vector::BATCH_ROWS;
use types::{Batch, DataType};

use crate::error::Result;
use crate::exec::join_core::ColumnRows;
use crate::exec::merge_runs::{MergeRuns, RunWriter, merge_until};
use crate::exec::row_order::RowOrder;
use crate::exec::scan::goal_rows;
use crate::exec::{Context, Operator, build};
use crate::logical::SortKey;
use crate::plan::SortNode;
use crate::spill::SpillFile;

/// Number of rows beyond the goal that are collected before they are cut to the goal.
const SLACK_ROWS: usize = 8 * BATCH_ROWS;

/// Sort operator; see the module.
pub(super) struct Sort {
    context: Arc<Context>,
    input: Box<dyn Operator>,
    /// Number of output columns; computed sort keys follow them.
    width: usize,
    goal: Option<usize>,
    order: Arc<RowOrder>,
    sorted: Option<SortResult>,
}

/// Sorted result.
enum SortResult {
    /// All rows and their order.
    Memory { rows: ColumnRows, order: Vec<u32>, next: usize },
    /// Runs on disk.
    Disk(MergeRuns),
}

impl Sort {
    /// Opens the operator and its input.
    pub(super) fn open(node: &Arc<SortNode>, context: &Arc<Context>) -> Result<Sort> {
        let goal = goal_rows(&node.goal, context)?;
        let goal = goal.map(|goal| usize::try_from(goal).unwrap_or(usize::MAX));
        let input = build(&node.input, context)?;
        Ok(Sort { goal, ..Sort::of(input, (&node.keys, &node.types), context) })
    }

    /// Returns the sort of an operator's rows by these keys. `types`: the column types.
    pub(super) fn of(
        input: Box<dyn Operator>,
        (keys, types): (&[SortKey], &[DataType]),
        context: &Arc<Context>,
    ) -> Sort {
        Sort {
            input,
            order: Arc::new(RowOrder::new(keys, types)),
            width: types.len(),
            context: Arc::clone(context),
            goal: None,
            sorted: None,
        }
    }

    fn read_all(&mut self) -> Result<SortResult> {
        let (order, interrupt) = (Arc::clone(&self.order), &self.context.eval.style.interrupt);
        let mut rows = ColumnRows::new(&order.types);
        let mut runs: Vec<Arc<SpillFile>> = Vec::new();
        while let Some(batch) = self.input.next()? {
            self.context.check()?;
            rows.add(&order.complete(batch, &self.context)?);
            let full = |goal: usize| rows.row_count >= goal.saturating_add(SLACK_ROWS.max(goal));
            if let Some(goal) = self.goal
                && full(goal)
            {
                let first = order.sort(&rows, Some(goal), interrupt)?;
                rows.keep(&first);
            }
            if rows.byte_count() + rows.row_count * RowOrder::ROW_BYTES > self.context.work_mem() {
                runs.push(self.set_aside(&rows)?);
                rows = ColumnRows::new(&order.types);
            }
        }
        if runs.is_empty() {
            let order = order.sort(&rows, self.goal, interrupt)?;
            return Ok(SortResult::Memory { rows, order, next: 0 });
        }
        runs.push(self.set_aside(&rows)?);
        drop(rows);
        let runs = merge_until(runs, &order, &self.context)?;
        Ok(SortResult::Disk(MergeRuns::open(&runs, &order)?))
    }

    /// Writes rows as a sorted run.
    fn set_aside(&self, rows: &ColumnRows) -> Result<Arc<SpillFile>> {
        let order = self.order.sort(rows, self.goal, &self.context.eval.style.interrupt)?;
        let mut run = RunWriter::create(&self.order.types, &self.context)?;
        for part in rows.sizes().batches(&order) {
            self.context.check()?;
            run.add(&rows.batch(part))?;
        }
        run.finish()
    }

    /// Removes the computed sort keys.
    fn yielded(&self, mut batch: Batch) -> Batch {
        batch.columns.truncate(self.width);
        batch
    }
}

impl Operator for Sort {
    fn next(&mut self) -> Result<Option<Batch>> {
        if self.sorted.is_none() {
            self.sorted = Some(self.read_all()?);
        }
        self.context.check()?;
        let batch = match &mut self.sorted {
            None => None,
            Some(SortResult::Disk(runs)) => runs.next()?,
            Some(SortResult::Memory { rows, order, next }) => {
                let rest = &order[*next..];
                let count = rows.sizes().batch_len(rest.iter().map(|row| *row as usize));
                *next += count;
                (count > 0).then(|| rows.batch(&rest[..count]))
            }
        };
        Ok(batch.map(|batch| self.yielded(batch)))
    }
}
