//! ProjectSet: set-returning functions, called for each row of the input.
//!
//! The functions of a node advance in lockstep: the nth rows of all of them form one row; a
//! function that has ended yields NULL. Rows are produced on demand, so that a series is only
//! computed as far as it is read.

use std::sync::Arc;

use smallvec::SmallVec;
use types::expr::Routine;
use types::function::sets::{self, SetRows};
use types::{Batch, DataType, Datum, Vector};

use crate::error::Result;
use crate::exec::project::columns_of;
use crate::exec::stage::{SingleRowInput, StageInput};
use crate::exec::widened_rows::{WidenedRows, input_row_bytes};
use crate::exec::{Context, Operator, build};
use crate::logical::{SetCall, SetFunction};
use crate::plan::ProjectSetNode;

/// ProjectSet operator; see the module.
pub(super) struct ProjectSetOperator {
    node: Arc<ProjectSetNode>,
    context: Arc<Context>,
    input: StageInput,
    rows: SingleRowInput,
    /// Current batch of input rows.
    batch: Option<SetInput>,
}

/// Input rows, with the evaluated arguments of the functions.
struct SetInput {
    batch: Batch,
    /// Argument columns of each function.
    arguments: Vec<Vec<Arc<Vector>>>,
    /// Current row.
    row: usize,
    /// Calls for the current row; `None`: not called yet.
    calls: Option<SetCalls>,
}

/// Calls of the functions for one row.
struct SetCalls {
    functions: SmallVec<[SetSource; 1]>,
    /// Number of rows that they have produced.
    count: i64,
}

/// Source of the rows of a function.
enum SetSource {
    Set(SetRows),
    Value(Datum),
    /// All rows of a user-defined function.
    Rows(std::vec::IntoIter<Vec<Datum>>),
    Ended,
}

impl SetSource {
    /// Appends up to `limit` next rows to the function's columns; returns their number.
    fn append(&mut self, columns: &mut [Vector], limit: usize, context: &Context) -> Result<usize> {
        let count = match self {
            SetSource::Set(rows) => rows.append(columns, limit, &context.eval)?,
            SetSource::Value(value) => {
                columns.iter_mut().for_each(|column| column.push(value));
                *self = SetSource::Ended;
                1
            }
            SetSource::Rows(rows) => {
                let mut count = 0;
                for row in rows.by_ref().take(limit) {
                    for (index, column) in columns.iter_mut().enumerate() {
                        column.push(row.get(index).unwrap_or(&Datum::Null));
                    }
                    count += 1;
                }
                count
            }
            SetSource::Ended => return Ok(0),
        };
        if count < limit {
            *self = SetSource::Ended;
        }
        Ok(count)
    }
}

impl SetInput {
    fn new(node: &ProjectSetNode, batch: Batch, context: &Context) -> Result<SetInput> {
        let compute =
            |function: &SetFunction| columns_of(function.arguments(), &batch, &context.eval);
        let arguments = node.functions.iter().map(compute).collect::<Result<_>>()?;
        Ok(SetInput { batch, arguments, row: 0, calls: None })
    }

    fn call(&self, node: &ProjectSetNode, context: &Context) -> Result<SetCalls> {
        let functions = node.functions.iter().zip(&self.arguments).map(|(function, arguments)| {
            let mut values = arguments.iter().map(|column| column.datum(self.row));
            Ok(match &function.call {
                SetCall::Set { function, .. } => {
                    let values: SmallVec<[Datum; 3]> = values.collect();
                    SetSource::Set(sets::open(*function, &values, &context.eval)?)
                }
                SetCall::Value(_) => SetSource::Value(values.next().unwrap_or(Datum::Null)),
                SetCall::Routine { routine, is_set, .. } => {
                    let rows = routine_rows(routine, values.collect(), *is_set, context)?;
                    SetSource::Rows(rows.into_iter())
                }
            })
        });
        Ok(SetCalls { functions: functions.collect::<Result<_>>()?, count: 0 })
    }

    /// Adds rows until the batch is full; returns whether all input rows were processed.
    fn fill(
        &mut self,
        node: &ProjectSetNode,
        context: &Context,
        output: &mut WidenedRows,
    ) -> Result<bool> {
        while self.row < self.batch.row_count {
            let mut calls = match self.calls.take() {
                Some(calls) => calls,
                None => self.call(node, context)?,
            };
            let row_bytes = input_row_bytes(&self.batch, self.row);
            if calls.append(node, context, (self.row, row_bytes), output)? {
                self.row += 1;
                continue;
            }
            self.calls = Some(calls);
            if output.room(row_bytes) == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns the rows of a user-defined function; a non-set function always has one.
fn routine_rows(
    routine: &Routine,
    arguments: Vec<Datum>,
    is_set: bool,
    context: &Context,
) -> Result<Vec<Vec<Datum>>> {
    let mut rows = match routine.strict && arguments.iter().any(Datum::is_null) {
        true => Vec::new(),
        false => context.system.routine_rows(routine, arguments)?,
    };
    if !is_set && rows.is_empty() {
        rows.push(Vec::new());
    }
    Ok(rows)
}

impl SetCalls {
    /// Adds rows until the batch is full; returns whether all functions have ended.
    fn append(
        &mut self,
        node: &ProjectSetNode,
        context: &Context,
        (row, row_bytes): (usize, usize),
        output: &mut WidenedRows,
    ) -> Result<bool> {
        let (before, limit) = (output.rows.len(), output.room(row_bytes));
        if limit == 0 {
            return Ok(false);
        }
        let mut columns = output.columns.as_mut_slice();
        let mut count = 0;
        for (function, source) in node.functions.iter().zip(&mut self.functions) {
            let (own, others) = columns.split_at_mut(function.columns.len());
            count = count.max(source.append(own, limit, context)?);
            columns = others;
        }
        for column in columns {
            (0..count as i64).for_each(|nth| column.push_i64(self.count + nth + 1));
        }
        self.count += count as i64;
        // In an outer row without function rows, the ordinality is NULL, too.
        let rows = if node.outer && self.count == 0 { 1 } else { count };
        output.fill_rows(before + rows, (row, row_bytes));
        for column in &mut output.columns {
            (column.len()..before + rows).for_each(|_| column.push_null());
        }
        Ok(count < limit)
    }
}

impl ProjectSetOperator {
    /// Opens the operator and its input.
    pub(super) fn open(
        node: &Arc<ProjectSetNode>,
        context: &Arc<Context>,
    ) -> Result<ProjectSetOperator> {
        let input = StageInput::new(build(&node.input, context)?);
        let rows = SingleRowInput::new(context.row_by_row && node.has_effects());
        let (node, context) = (Arc::clone(node), Arc::clone(context));
        Ok(ProjectSetOperator { node, context, input, rows, batch: None })
    }

    /// Returns empty output columns: those of the functions, then the ordinality.
    fn output(&self) -> WidenedRows {
        let types = self.node.functions.iter().flat_map(|function| &function.columns);
        let types = types.map(|column| column.sql_type.base.clone());
        let ordinality = self.node.ordinality.then_some(DataType::Int8);
        WidenedRows::new(types.chain(ordinality))
    }
}

impl Operator for ProjectSetOperator {
    fn rewind(&mut self) -> Result<bool> {
        self.batch = None;
        self.rows.clear();
        self.input.rewind()
    }

    fn next(&mut self) -> Result<Option<Batch>> {
        loop {
            self.context.check()?;
            let mut input = match self.batch.take() {
                Some(input) => input,
                None => match self.rows.next(&mut self.input)? {
                    Some(batch) => SetInput::new(&self.node, batch, &self.context)?,
                    None => return Ok(None),
                },
            };
            let mut output = self.output();
            let ended = input.fill(&self.node, &self.context, &mut output)?;
            let batch = output.into_batch(&input.batch, &self.node.unread);
            if !ended {
                self.batch = Some(input);
            }
            if batch.is_some() {
                return Ok(batch);
            }
        }
    }
}
