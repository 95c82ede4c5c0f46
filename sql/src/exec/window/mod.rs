//! Window functions over rows that come sorted by partition and order.
//!
//! Rows are read until some whole partitions are there, a batch or more ([`Run`]); then each
//! function is computed over them ([`functions`], [`aggregate`]), with the frame of each row
//! ([`frames`]). So no more than the largest partition is kept in memory.

mod run;
mod frames;
mod aggregate;
mod functions;

use std::sync::Arc;

use types::vector::{BATCH_BYTES, BATCH_ROWS, RowSizes};
use types::{Batch, DataType, Vector};

use crate::error::Result;
use crate::exec::pairs::Collected;
use crate::exec::project::columns_of;
use crate::exec::window::run::Run;
use crate::exec::{Context, Operator, build, memory};
use crate::plan::WindowAggNode;

/// See the module.
pub(super) struct WindowAgg {
    node: Arc<WindowAggNode>,
    context: Arc<Context>,
    /// `None` once all rows were read.
    input: Option<Box<dyn Operator>>,
    /// Rows read, and their partition keys.
    rows: Collected,
    keys: Collected,
    /// Where partitions start among them.
    starts: Vec<usize>,
    /// Rows with their results, and how many of them were yielded.
    ready: Option<(Batch, usize)>,
}

impl WindowAgg {
    /// Opens it and what is below.
    pub(super) fn open(node: &Arc<WindowAggNode>, context: &Arc<Context>) -> Result<WindowAgg> {
        Ok(WindowAgg {
            input: Some(build(&node.input, context)?),
            rows: Collected::new(&node.input_types),
            keys: empty_keys(node),
            starts: Vec::new(),
            ready: None,
            node: Arc::clone(node),
            context: Arc::clone(context),
        })
    }

    /// Adds a batch and finds where its partitions start.
    fn add(&mut self, batch: &Batch) -> Result<()> {
        let columns = columns_of(&self.node.partition_by, batch, &self.context.eval)?;
        let first = self.rows.row_count;
        self.rows.add(batch);
        self.keys.add(&Batch { columns, row_count: batch.row_count });
        for row in first..self.rows.row_count {
            if row == 0 || !self.is_same_partition(row - 1, row) {
                self.starts.push(row);
            }
        }
        let bytes = self.rows.byte_count() + self.keys.byte_count();
        memory::check(bytes, self.context.work_mem())
    }

    fn is_same_partition(&self, a: usize, b: usize) -> bool {
        let mut keys = self.node.partition_by.iter().zip(&self.keys.columns);
        keys.all(|(key, column)| column.compare_typed(a, column, b, key.data_type()).is_eq())
    }

    /// Returns whether what was read makes a batch or more.
    fn is_enough(&self) -> bool {
        self.rows.row_count >= BATCH_ROWS || self.rows.byte_count() >= BATCH_BYTES
    }

    /// Takes rows of whole partitions out of what was read: all if the input is at its end, else
    /// those before the last partition, whose end is not known yet.
    fn take_run(&mut self) -> Option<(Batch, Vec<usize>)> {
        let row_count = self.rows.row_count;
        let end = match (&self.input, self.starts.last()) {
            (Some(_), Some(&last)) if last > 0 && self.is_enough() => last,
            (None, Some(_)) => row_count,
            _ => return None,
        };
        let kept = self.starts.iter().copied().filter(|start| *start >= end);
        let rest_starts: Vec<usize> = kept.map(|start| start - end).collect();
        self.starts.retain(|start| *start < end);
        let starts = std::mem::replace(&mut self.starts, rest_starts);
        let rows = std::mem::replace(&mut self.rows, Collected::new(&self.node.input_types));
        let keys = std::mem::replace(&mut self.keys, empty_keys(&self.node));
        for (rest, all) in self.rows.columns.iter_mut().zip(&rows.columns) {
            rest.append_rows(all, end..row_count);
        }
        for (rest, all) in self.keys.columns.iter_mut().zip(&keys.columns) {
            rest.append_rows(all, end..row_count);
        }
        self.rows.row_count = row_count - end;
        self.keys.row_count = row_count - end;
        let whole = Batch { columns: rows.columns.into_iter().map(Arc::new).collect(), row_count };
        let run = if end == row_count {
            whole
        } else {
            let selection: Vec<u32> = (0..end as u32).collect();
            whole.take(&selection)
        };
        Some((run, starts))
    }

    fn compute(&self, mut batch: Batch, starts: Vec<usize>) -> Result<Batch> {
        let run = Run::new(batch.clone(), starts, &self.node.order_by, &self.context)?;
        let mut results: Vec<Vector> = Vec::with_capacity(self.node.functions.len());
        for function in &self.node.functions {
            results.push(functions::compute(function, &run)?);
            let bytes = results.iter().map(Vector::byte_count).sum::<usize>();
            memory::check(run.byte_count() + bytes, self.context.work_mem())?;
        }
        batch.columns.extend(results.into_iter().map(Arc::new));
        Ok(batch)
    }
}

fn empty_keys(node: &WindowAggNode) -> Collected {
    let types: Vec<DataType> = node.partition_by.iter().map(|key| key.data_type()).collect();
    Collected::new(&types)
}

impl Operator for WindowAgg {
    fn next(&mut self) -> Result<Option<Batch>> {
        loop {
            self.context.check()?;
            if let Some((batch, from)) = self.ready.take() {
                let sizes = RowSizes::of(&batch.columns);
                let to = from + sizes.batch_len(from..batch.row_count);
                if from == 0 && to == batch.row_count {
                    return Ok(Some(batch));
                }
                let selection: Vec<u32> = (from as u32..to as u32).collect();
                let part = batch.take(&selection);
                if to < batch.row_count {
                    self.ready = Some((batch, to));
                }
                return Ok(Some(part));
            }
            if let Some((batch, starts)) = self.take_run() {
                self.ready = Some((self.compute(batch, starts)?, 0));
                continue;
            }
            let Some(input) = &mut self.input else { return Ok(None) };
            match input.next()? {
                Some(batch) => self.add(&batch)?,
                None => self.input = None,
            }
        }
    }
}
