//! Functions that return sets, called for each row of the input.
//!
//! The functions of a step go side by side: the nth rows of all of them are one row, NULL where a
//! function has ended before the others. Rows are made as they are asked for, so that a series need
//! not be made to its end.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use types::expr::Routine;
use types::function::sets::{self, SetRow, SetRows};
use types::{Batch, DataType, Datum, Vector};

use crate::error::Result;
use crate::exec::project::columns_of;
use crate::exec::widened::Widened;
use crate::exec::{Context, Operator, build};
use crate::logical::{SetCall, SetFunction};
use crate::plan::ProjectSetNode;

/// See the module.
pub(super) struct ProjectSet {
    node: Arc<ProjectSetNode>,
    context: Arc<Context>,
    input: Box<dyn Operator>,
    /// The input's rows at hand.
    batch: Option<InputRows>,
}

/// Rows of the input, with the arguments of the functions.
struct InputRows {
    batch: Batch,
    /// Of each function, its arguments.
    arguments: Vec<Vec<Arc<Vector>>>,
    /// The row at hand.
    row: usize,
    /// What the functions yield for it; `None`: they are not called yet.
    calls: Option<Calls>,
}

/// The calls of the functions for one row.
struct Calls {
    functions: SmallVec<[Source; 1]>,
    /// How many rows they have yielded.
    count: i64,
}

/// Where the rows of a function come from.
enum Source {
    Set(SetRows),
    Value(Datum),
    /// All rows of a function of users.
    Rows(std::vec::IntoIter<Vec<Datum>>),
    Ended,
}

impl Source {
    fn next(&mut self, context: &Context) -> Result<Option<SetRow>> {
        let row = match self {
            Source::Set(rows) => rows.next(&context.eval)?,
            Source::Value(value) => Some(smallvec![std::mem::replace(value, Datum::Null)]),
            Source::Rows(rows) => rows.next().map(SetRow::from_vec),
            Source::Ended => return Ok(None),
        };
        if row.is_none() || matches!(self, Source::Value(_)) {
            *self = Source::Ended;
        }
        Ok(row)
    }
}

impl InputRows {
    fn new(node: &ProjectSetNode, batch: Batch, context: &Context) -> Result<InputRows> {
        let compute =
            |function: &SetFunction| columns_of(function.arguments(), &batch, &context.eval);
        let arguments = node.functions.iter().map(compute).collect::<Result<_>>()?;
        Ok(InputRows { batch, arguments, row: 0, calls: None })
    }

    fn call(&self, node: &ProjectSetNode, context: &Context) -> Result<Calls> {
        let functions = node.functions.iter().zip(&self.arguments).map(|(function, arguments)| {
            let mut values = arguments.iter().map(|column| column.datum(self.row));
            Ok(match &function.call {
                SetCall::Set { function, .. } => {
                    Source::Set(sets::open(*function, values.collect(), &context.eval)?)
                }
                SetCall::Value(_) => Source::Value(values.next().unwrap_or(Datum::Null)),
                SetCall::Routine { routine, is_set, .. } => {
                    let rows = routine_rows(routine, values.collect(), *is_set, context)?;
                    Source::Rows(rows.into_iter())
                }
            })
        });
        Ok(Calls { functions: functions.collect::<Result<_>>()?, count: 0 })
    }

    /// Adds rows until there are enough; returns whether the input's rows have come to their end.
    fn fill(
        &mut self,
        node: &ProjectSetNode,
        context: &Context,
        output: &mut Widened,
    ) -> Result<bool> {
        while self.row < self.batch.row_count {
            let mut calls = match self.calls.take() {
                Some(calls) => calls,
                None => self.call(node, context)?,
            };
            loop {
                if output.is_full() {
                    self.calls = Some(calls);
                    return Ok(false);
                }
                if !calls.add_row(node, context, self.row, output)? {
                    break;
                }
            }
            self.row += 1;
        }
        Ok(true)
    }
}

/// Returns the rows of a function of users; one that returns no set always has one.
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

impl Calls {
    /// Adds the next row; returns whether there was one.
    fn add_row(
        &mut self,
        node: &ProjectSetNode,
        context: &Context,
        input_row: usize,
        output: &mut Widened,
    ) -> Result<bool> {
        let mut rows: SmallVec<[Option<SetRow>; 2]> = SmallVec::new();
        for function in &mut self.functions {
            rows.push(function.next(context)?);
        }
        let is_none = rows.iter().all(Option::is_none);
        if is_none && !(node.outer && self.count == 0) {
            return Ok(false);
        }
        self.count += 1;
        output.rows.push(input_row as u32);
        let mut columns = output.columns.iter_mut();
        for (function, row) in node.functions.iter().zip(&rows) {
            for index in 0..function.columns.len() {
                let value = row.as_ref().and_then(|row| row.get(index)).unwrap_or(&Datum::Null);
                columns.next().into_iter().for_each(|column| column.push(value));
            }
        }
        let number = if is_none { Datum::Null } else { Datum::Int8(self.count) };
        columns.for_each(|column| column.push(&number));
        Ok(!is_none)
    }
}

impl ProjectSet {
    /// Opens it and what is below.
    pub(super) fn open(node: &Arc<ProjectSetNode>, context: &Arc<Context>) -> Result<ProjectSet> {
        let input = build(&node.input, context)?;
        Ok(ProjectSet { node: Arc::clone(node), context: Arc::clone(context), input, batch: None })
    }

    /// The columns of the functions, then the ordinality.
    fn output(&self) -> Widened {
        let types = self.node.functions.iter().flat_map(|function| &function.columns);
        let types = types.map(|column| column.sql_type.base);
        let ordinality = self.node.ordinality.then_some(DataType::Int8);
        Widened::new(types.chain(ordinality))
    }
}

impl Operator for ProjectSet {
    fn next(&mut self) -> Result<Option<Batch>> {
        loop {
            self.context.check()?;
            let mut input = match self.batch.take() {
                Some(input) => input,
                None => match self.input.next()? {
                    Some(batch) => InputRows::new(&self.node, batch, &self.context)?,
                    None => return Ok(None),
                },
            };
            let mut output = self.output();
            let ended = input.fill(&self.node, &self.context, &mut output)?;
            let batch = output.into_batch(&input.batch);
            if !ended {
                self.batch = Some(input);
            }
            if batch.is_some() {
                return Ok(batch);
            }
        }
    }
}
