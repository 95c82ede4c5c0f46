//! Lateral join: nested loop over a subquery whose parameters are columns of the outer row.
//!
//! The subquery is executed again for each outer row, and read only as far as its rows are
//! needed; nothing is retained. The planner has rewritten those that can be joins or function
//! calls (`planner/lateral.rs`).

use std::sync::Arc;

use types::expr::Expr;
use types::{Batch, Datum};

use crate::error::Result;
use crate::exec::widened_rows::{WidenedRows, input_row_bytes};
use crate::exec::{Context, Operator, build};
use crate::logical::ApplyKind;
use crate::plan::ApplyNode;

/// Lateral join operator; see the module.
pub(super) struct LateralJoin {
    node: Arc<ApplyNode>,
    context: Arc<Context>,
    input: Box<dyn Operator>,
    batch: Option<LateralInput>,
}

/// Current batch of outer rows.
struct LateralInput {
    batch: Batch,
    row: usize,
    /// Subquery of the current row; `None`: not opened yet.
    subquery: Option<Box<dyn Operator>>,
    /// Unpaired rest of its last batch, and the number of rows that were paired.
    rest: Option<(Batch, usize)>,
    /// True if the current row has a match.
    matched: bool,
}

impl LateralJoin {
    /// Opens the operator and its input.
    pub(super) fn open(node: &Arc<ApplyNode>, context: &Arc<Context>) -> Result<LateralJoin> {
        Ok(LateralJoin {
            input: build(&node.input, context)?,
            node: Arc::clone(node),
            context: Arc::clone(context),
            batch: None,
        })
    }

    fn run(&self, input: &LateralInput) -> Result<Box<dyn Operator>> {
        let mut context = self.context.as_ref().clone();
        for &(parameter, column) in &self.node.bindings {
            context.eval.parameters[parameter] = input.batch.columns[column].datum(input.row);
        }
        build(&self.node.subquery, &Arc::new(context))
    }

    /// Adds rows until the batch is full; returns whether all outer rows were processed.
    fn fill(&self, input: &mut LateralInput, output: &mut WidenedRows) -> Result<bool> {
        let ApplyKind::Rows { on, outer } = &self.node.kind else { return Ok(true) };
        while input.row < input.batch.row_count {
            self.context.check()?;
            let row_bytes = input_row_bytes(&input.batch, input.row);
            let room = output.room(row_bytes);
            let is_enough = self.context.row_by_row && !output.rows.is_empty();
            if is_enough || room == 0 {
                return Ok(false);
            }
            if let Some(rows) = input.rest.take() {
                self.pair(rows, room, input, (on, row_bytes), output)?;
                continue;
            }
            let mut subquery = match input.subquery.take() {
                Some(subquery) => subquery,
                None => self.run(input)?,
            };
            let Some(rows) = subquery.next()? else {
                if *outer && !input.matched {
                    output.fill_rows(output.rows.len() + 1, (input.row, row_bytes));
                    output.columns.iter_mut().for_each(|column| column.push(&Datum::Null));
                }
                input.row += 1;
                input.matched = false;
                continue;
            };
            input.subquery = Some(subquery);
            self.pair((rows, 0), room, input, (on, row_bytes), output)?;
        }
        Ok(true)
    }

    /// Pairs rows of the subquery with the current outer row.
    fn pair(
        &self,
        (mut rows, from): (Batch, usize),
        room: usize,
        input: &mut LateralInput,
        (on, row_bytes): (&Expr, usize),
        output: &mut WidenedRows,
    ) -> Result<()> {
        let to = rows.row_count.min(from + room);
        if to - from < rows.row_count {
            let some: Vec<u32> = (from as u32..to as u32).collect();
            let paired = rows.take(&some);
            let all = std::mem::replace(&mut rows, paired);
            input.rest = (to < all.row_count).then_some((all, to));
        }
        let same: Vec<u32> = vec![input.row as u32; rows.row_count];
        let mut both = input.batch.take(&same);
        both.columns.extend(rows.columns);
        let matches = on.filter_batch(&both, &self.context.eval)?;
        if matches.is_empty() {
            return Ok(());
        }
        input.matched = true;
        output.fill_rows(output.rows.len() + matches.len(), (input.row, row_bytes));
        let added = &both.columns[self.node.input_types.len()..];
        for (column, from) in output.columns.iter_mut().zip(added) {
            column.append(&from.take(&matches));
        }
        Ok(())
    }
}

impl Operator for LateralJoin {
    fn next(&mut self) -> Result<Option<Batch>> {
        loop {
            let mut input = match self.batch.take() {
                Some(input) => input,
                None => match self.input.next()? {
                    None => return Ok(None),
                    Some(batch) => {
                        LateralInput { batch, row: 0, subquery: None, rest: None, matched: false }
                    }
                },
            };
            let mut output = WidenedRows::new(&*self.node.subquery_types);
            let ended = self.fill(&mut input, &mut output)?;
            let batch = output.into_batch(&input.batch, &[]);
            if !ended {
                self.batch = Some(input);
            }
            if batch.is_some() {
                return Ok(batch);
            }
        }
    }
}
