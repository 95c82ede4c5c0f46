//! WindowAgg: window functions over rows that are sorted by partition and order.
//!
//! Rows are buffered until at least a batch of whole partitions is available ([`PartitionRun`]).
//! Each function is then computed over the run ([`functions`], [`aggregate`]), with the frame of
//! each row ([`frames`]).
//!
//! ```text
//!   input rows --+--> BatchBuffer: in memory, then on disk ------+--> rows with results
//!                +--> columns that functions and keys read --> run --> results
//! ```
//!
//! The rows of a large partition spill. The columns that the functions read, the partition keys
//! and the results of the largest partition stay in memory, because frames refer to any row of
//! it.
//!
//! # Invariants
//!
//! 1. `rows` and `front` together hold the rows of `results` that were not returned, then the
//!    rows of `inputs`, in input order.

mod run;
mod frames;
mod aggregate;
mod functions;

use std::sync::Arc;

use types::expr::Expr;
use types::vector::{BATCH_BYTES, BATCH_ROWS, RowSizes};
use types::{Batch, DataType, Vector};

use crate::batch_buffer::BatchBuffer;
use crate::error::Result;
use crate::exec::join_core::ColumnRows;
use crate::exec::project::columns_of;
use crate::exec::window::run::PartitionRun;
use crate::exec::{Context, Operator, build, memory};
use crate::logical::{SortKey, WindowFunction};
use crate::plan::WindowAggNode;

/// WindowAgg operator; see the module.
pub(super) struct WindowAgg {
    computation: Computation,
    context: Arc<Context>,
    /// Input; `None` once all rows were read.
    input: Option<Box<dyn Operator>>,
    /// Rows that were not returned yet.
    rows: BatchBuffer,
    /// Rows taken out of `rows` that were not returned yet.
    front: Option<Batch>,
    /// Columns that the computation reads, of the rows without results.
    inputs: ColumnRows,
    /// Partition keys of the same rows.
    keys: ColumnRows,
    /// First row of each partition among them.
    starts: Vec<usize>,
    results: Option<RunResults>,
    /// Rows with their results, and the number of rows that were returned.
    ready: Option<(Batch, usize)>,
}

/// Expressions of a node, over the input columns that they read.
struct Computation {
    /// Positions of these columns in the input, ascending.
    columns: Vec<usize>,
    types: Vec<DataType>,
    partition_by: Vec<Expr>,
    order_by: Vec<SortKey>,
    functions: Vec<WindowFunction>,
}

/// Results of the functions for the rows of a run.
struct RunResults {
    columns: Vec<Vector>,
    row_count: usize,
    /// Number of rows that were combined with their results.
    next: usize,
}

impl Computation {
    fn new(node: &WindowAggNode) -> Computation {
        let mut columns: Vec<usize> = Vec::new();
        let mut visit = |expression: &Expr| columns.extend(expression.columns());
        node.partition_by.iter().for_each(&mut visit);
        node.order_by.iter().for_each(|key| visit(&key.expression));
        node.functions.iter().for_each(|function| function.for_each_expression(&mut visit));
        columns.sort_unstable();
        columns.dedup();
        let position = |column| columns.partition_point(|other| *other < column);
        let remap =
            |expression: &mut Expr| *expression = expression.clone().remap_columns(&position);
        let mut partition_by = node.partition_by.clone();
        partition_by.iter_mut().for_each(remap);
        let mut order_by = node.order_by.clone();
        order_by.iter_mut().for_each(|key| remap(&mut key.expression));
        let mut functions = node.functions.clone();
        functions.iter_mut().for_each(|function| function.for_each_expression_mut(&mut { remap }));
        let types = columns.iter().map(|column| node.input_types[*column]).collect();
        Computation { columns, types, partition_by, order_by, functions }
    }

    /// Returns the columns of an input batch that the computation reads.
    fn inputs(&self, batch: &Batch) -> Batch {
        let columns = self.columns.iter().map(|column| Arc::clone(&batch.columns[*column]));
        Batch { columns: columns.collect(), row_count: batch.row_count }
    }

    fn no_inputs(&self) -> ColumnRows {
        ColumnRows::new(&self.types)
    }

    fn no_keys(&self) -> ColumnRows {
        let types: Vec<DataType> = self.partition_by.iter().map(Expr::data_type).collect();
        ColumnRows::new(&types)
    }
}

impl WindowAgg {
    /// Opens the operator and its input.
    pub(super) fn open(node: &Arc<WindowAggNode>, context: &Arc<Context>) -> Result<WindowAgg> {
        let computation = Computation::new(node);
        Ok(WindowAgg {
            input: Some(build(&node.input, context)?),
            rows: BatchBuffer::new(node.input_types.clone().into()),
            front: None,
            inputs: computation.no_inputs(),
            keys: computation.no_keys(),
            starts: Vec::new(),
            results: None,
            ready: None,
            computation,
            context: Arc::clone(context),
        })
    }

    /// Buffers a batch and finds its partition starts.
    fn add(&mut self, batch: Batch) -> Result<()> {
        let inputs = self.computation.inputs(&batch);
        let columns = columns_of(&self.computation.partition_by, &inputs, &self.context.eval)?;
        let first = self.inputs.row_count;
        self.inputs.add(&inputs);
        self.keys.add(&Batch { columns, row_count: batch.row_count });
        for row in first..self.inputs.row_count {
            if row == 0 || !self.is_same_partition(row - 1, row) {
                self.starts.push(row);
            }
        }
        self.rows.push(batch, &self.context.room())?;
        self.check();
        let bytes = self.inputs.byte_count() + self.keys.byte_count();
        memory::check(bytes, self.context.work_mem())
    }

    /// Asserts invariant 1.
    fn check(&self) {
        let front = self.front.as_ref().map_or(0, |batch| batch.row_count);
        let results = self.results.as_ref().map_or(0, |results| results.row_count - results.next);
        debug_assert_eq!(front + self.rows.row_count(), results + self.inputs.row_count);
    }

    fn is_same_partition(&self, a: usize, b: usize) -> bool {
        let mut keys = self.computation.partition_by.iter().zip(&self.keys.columns);
        keys.all(|(key, column)| column.compare_typed(a, column, b, key.data_type()).is_eq())
    }

    /// Returns whether the buffered rows make up at least a batch.
    fn is_enough(&self) -> bool {
        self.inputs.row_count >= BATCH_ROWS || self.rows.byte_count() >= BATCH_BYTES
    }

    /// Removes and returns the inputs of whole partitions: all if the input has ended, otherwise
    /// those before the last partition, which may continue.
    fn take_run(&mut self) -> Option<(Batch, Vec<usize>)> {
        let row_count = self.inputs.row_count;
        let end = match (&self.input, self.starts.last()) {
            (Some(_), Some(&last)) if last > 0 && self.is_enough() => last,
            (None, Some(_)) => row_count,
            _ => return None,
        };
        let incomplete = self.starts.iter().copied().filter(|start| *start >= end);
        let incomplete: Vec<usize> = incomplete.map(|start| start - end).collect();
        self.starts.retain(|start| *start < end);
        let starts = std::mem::replace(&mut self.starts, incomplete);
        let inputs = std::mem::replace(&mut self.inputs, self.computation.no_inputs());
        let keys = std::mem::replace(&mut self.keys, self.computation.no_keys());
        for (rest, all) in self.inputs.columns.iter_mut().zip(&inputs.columns) {
            rest.append_rows(all, end..row_count);
        }
        for (rest, all) in self.keys.columns.iter_mut().zip(&keys.columns) {
            rest.append_rows(all, end..row_count);
        }
        self.inputs.row_count = row_count - end;
        self.keys.row_count = row_count - end;
        Some((first_rows(inputs.into_batch(), end).0, starts))
    }

    fn compute(&self, inputs: Batch, starts: Vec<usize>) -> Result<RunResults> {
        debug_assert!(self.results.is_none(), "results of the previous run are not returned");
        let row_count = inputs.row_count;
        let run = PartitionRun::new(inputs, starts, &self.computation.order_by, &self.context)?;
        let mut columns: Vec<Vector> = Vec::with_capacity(self.computation.functions.len());
        for function in &self.computation.functions {
            columns.push(functions::compute(function, &run)?);
            debug_assert_eq!(columns.last().map(Vector::len), Some(row_count), "results of a run");
            let bytes = columns.iter().map(Vector::byte_count).sum::<usize>();
            memory::check(run.byte_count() + bytes, self.context.work_mem())?;
        }
        Ok(RunResults { columns, row_count, next: 0 })
    }

    /// Combines the next buffered rows with their results; returns `false` if there are no
    /// results.
    fn combine(&mut self) -> Result<bool> {
        let Some(results) = &mut self.results else { return Ok(false) };
        let batch = match self.front.take() {
            Some(batch) => Some(batch),
            None => self.rows.pop_front()?,
        };
        let Some(batch) = batch else { return Ok(false) };
        let (mut batch, rest) = first_rows(batch, results.row_count - results.next);
        self.front = rest;
        let to = results.next + batch.row_count;
        let selection: Vec<u32> = (results.next as u32..to as u32).collect();
        let columns = results.columns.iter().map(|column| Arc::new(column.take(&selection)));
        batch.columns.extend(columns);
        results.next = to;
        if to == results.row_count {
            self.results = None;
        }
        self.ready = Some((batch, 0));
        self.check();
        Ok(true)
    }
}

/// Splits a batch after its first `count` rows; `None` if no rows follow.
fn first_rows(batch: Batch, count: usize) -> (Batch, Option<Batch>) {
    if count >= batch.row_count {
        return (batch, None);
    }
    let take = |from: usize, to: usize| {
        let selection: Vec<u32> = (from as u32..to as u32).collect();
        batch.take(&selection)
    };
    (take(0, count), Some(take(count, batch.row_count)))
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
            if self.combine()? {
                continue;
            }
            if let Some((inputs, starts)) = self.take_run() {
                self.results = Some(self.compute(inputs, starts)?);
                continue;
            }
            let Some(input) = &mut self.input else { return Ok(None) };
            match input.next()? {
                Some(batch) => self.add(batch)?,
                None => self.input = None,
            }
        }
    }
}
