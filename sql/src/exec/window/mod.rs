//! WindowAgg: window functions over rows that are sorted by partition and order.
//!
//! Rows are buffered until at least a batch of whole partitions is available ([`PartitionRun`]).
//! Each function is then computed over the run ([`functions`], [`aggregate`]), with the frame of
//! each row ([`frames`]). Functions that return a value of another row compute its position, and
//! read the value from the buffer ([`references`]).
//!
//! ```text
//!   input rows --+--> BatchBuffer: in memory, then on disk ------+--> rows with results
//!                +--> columns that functions and keys read --> run --> results, positions
//! ```
//!
//! The rows of a large partition spill. The columns that aggregates, frames and keys read, and
//! the results and positions of the largest partition stay in memory, because frames refer to any
//! row of it.
//!
//! # Invariants
//!
//! 1. `rows` holds `skip` rows that were returned, then the rows of `results`, then the rows of
//!    `inputs`, in input order. Batches are removed when all their rows were returned and no run
//!    refers to them.

mod run;
mod frames;
mod aggregate;
mod functions;
mod references;

use std::sync::Arc;

use types::expr::Expr;
use types::vector::{BATCH_BYTES, BATCH_ROWS, RowSizes};
use types::{Batch, DataType};

use crate::batch_buffer::BatchBuffer;
use crate::error::Result;
use crate::exec::join_core::ColumnRows;
use crate::exec::project::columns_of;
use crate::exec::window::functions::FunctionResults;
use crate::exec::window::references::{GatheredValues, InputColumns, ReferencedArgument};
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
    /// Rows of the present run and those after it.
    rows: BatchBuffer,
    /// Number of leading rows of `rows` that precede the run.
    skip: usize,
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
    /// These columns.
    columns: InputColumns,
    types: Vec<DataType>,
    partition_by: Vec<Expr>,
    order_by: Vec<SortKey>,
    /// Functions, without the arguments that are evaluated at other rows.
    functions: Vec<WindowFunction>,
    /// These arguments, by function.
    arguments: Vec<Option<ReferencedArgument>>,
}

/// Results of the functions for the rows of a run.
struct RunResults {
    functions: Vec<FunctionResults>,
    row_count: usize,
    /// Number of rows that were combined with their results.
    next: usize,
    /// First row of each batch of the buffer that has rows of the run.
    batch_starts: Vec<usize>,
    /// Batch of the buffer that was read last, and its number.
    front: Option<(usize, Batch)>,
}

impl RunResults {
    /// Returns the number of the batch with a row of the buffer, and the row in it.
    fn locate(&self, row: usize) -> (usize, usize) {
        let number = self.batch_starts.partition_point(|start| *start <= row) - 1;
        (number, row - self.batch_starts[number])
    }
}

impl Computation {
    fn new(node: &WindowAggNode) -> Computation {
        let mut functions = node.functions.clone();
        let arguments = functions.iter_mut().map(ReferencedArgument::take_from).collect();
        let mut columns: Vec<usize> = Vec::new();
        let mut visit = |expression: &Expr| columns.extend(expression.columns());
        node.partition_by.iter().for_each(&mut visit);
        node.order_by.iter().for_each(|key| visit(&key.expression));
        functions.iter().for_each(|function| function.for_each_expression(&mut visit));
        let columns = InputColumns::new(columns);
        let remap = |expression: &mut Expr| columns.renumber(expression);
        let mut partition_by = node.partition_by.clone();
        partition_by.iter_mut().for_each(remap);
        let mut order_by = node.order_by.clone();
        order_by.iter_mut().for_each(|key| remap(&mut key.expression));
        functions.iter_mut().for_each(|function| function.for_each_expression_mut(&mut { remap }));
        let types = columns.types(&node.input_types);
        Computation { columns, types, partition_by, order_by, functions, arguments }
    }

    /// Returns the columns of an input batch that the computation reads.
    fn inputs(&self, batch: &Batch) -> Batch {
        let columns = self.columns.of(batch).map(Arc::clone);
        Batch { columns: columns.collect(), row_count: batch.row_count }
    }

    fn no_inputs(&self) -> ColumnRows {
        ColumnRows::new(&self.types)
    }

    fn no_keys(&self) -> ColumnRows {
        let types: Vec<DataType> = self.partition_by.iter().map(Expr::data_type).cloned().collect();
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
            skip: 0,
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
        let results = self.results.as_ref().map_or(0, |results| results.row_count);
        let row_count = self.skip + results + self.inputs.row_count;
        debug_assert_eq!(self.rows.row_count(), row_count);
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
        Some((first_rows(inputs.into_batch(), end), starts))
    }

    fn compute(&self, inputs: Batch, starts: Vec<usize>) -> Result<RunResults> {
        debug_assert!(self.results.is_none(), "results of the previous run are not returned");
        let row_count = inputs.row_count;
        let run = PartitionRun::new(inputs, starts, &self.computation.order_by, &self.context)?;
        let mut functions: Vec<FunctionResults> = Vec::new();
        for function in &self.computation.functions {
            let results = functions::compute(function, &run)?;
            debug_assert_eq!(results.len(), row_count, "results of a run");
            functions.push(results);
            let bytes = functions.iter().map(FunctionResults::byte_count).sum::<usize>();
            memory::check(run.byte_count() + bytes, self.context.work_mem())?;
        }
        let (mut batch_starts, mut end) = (Vec::new(), 0);
        while end < self.skip + row_count {
            batch_starts.push(end);
            end += self.rows.rows_of(batch_starts.len() - 1);
        }
        Ok(RunResults { functions, row_count, next: 0, batch_starts, front: None })
    }

    /// Combines the next buffered rows with their results; returns `false` if there are no
    /// results.
    fn combine(&mut self) -> Result<bool> {
        let Some(mut results) = self.results.take() else { return Ok(false) };
        let (number, first) = results.locate(self.skip + results.next);
        let batch = match results.front.take() {
            Some((front, batch)) if front == number => batch,
            _ => self.rows.batch(number)?.unwrap_or_default(),
        };
        let mut count = (batch.row_count - first).min(results.row_count - results.next);
        let mut gathered: Vec<Option<GatheredValues>> = Vec::new();
        for (argument, function) in self.computation.arguments.iter().zip(&results.functions) {
            let (Some(argument), FunctionResults::References { sources, .. }) =
                (argument, function)
            else {
                gathered.push(None);
                continue;
            };
            let locate = |row: u32| {
                let (batch, row) = results.locate(self.skip + row as usize);
                (batch, row as u32)
            };
            let sources = &sources[results.next..results.next + count];
            let values = argument.gather(sources, locate, &mut self.rows, &self.context)?;
            count = values.batch_len(count);
            gathered.push(Some(values));
        }
        let rows = results.next..results.next + count;
        let selection: Vec<u32> = (first as u32..(first + count) as u32).collect();
        let is_whole = count == batch.row_count;
        let mut combined = if is_whole { batch.clone() } else { batch.take(&selection) };
        for (function, gathered) in results.functions.iter().zip(gathered) {
            let column = match (function, gathered) {
                (FunctionResults::References { sources, defaults }, Some(values)) => {
                    let defaults = defaults.as_ref().map(|defaults| (&**defaults, rows.start));
                    values.into_vector(&sources[rows.clone()], defaults)
                }
                (FunctionResults::Values(values), _) => {
                    let selection: Vec<u32> = (rows.start as u32..rows.end as u32).collect();
                    values.take(&selection)
                }
                (FunctionResults::References { .. }, None) => continue,
            };
            combined.columns.push(Arc::new(column));
        }
        results.next = rows.end;
        results.front = Some((number, batch));
        match results.next == results.row_count {
            true => self.end_run(results.row_count),
            false => self.results = Some(results),
        }
        self.ready = Some((combined, 0));
        self.check();
        Ok(true)
    }

    /// Removes the batches whose rows were all returned.
    fn end_run(&mut self, row_count: usize) {
        self.skip += row_count;
        while self.skip > 0 && self.rows.rows_of(0) <= self.skip {
            self.skip -= self.rows.rows_of(0);
            self.rows.remove_front();
        }
    }
}

/// Returns the first `count` rows of a batch.
fn first_rows(batch: Batch, count: usize) -> Batch {
    if count >= batch.row_count {
        return batch;
    }
    let selection: Vec<u32> = (0..count as u32).collect();
    batch.take(&selection)
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
