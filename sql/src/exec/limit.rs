//! LIMIT and OFFSET, with or without WITH TIES.
//!
//! It stops reading its input at the limit; the planner also passes the limit to the nodes below
//! as a row goal.

use std::sync::Arc;

use types::expr::Expr;
use types::{Batch, DataType, Datum};

use crate::error::{Error, Result, sqlstate};
use crate::exec::project::columns_of;
use crate::exec::{Context, Operator, build};
use crate::plan::LimitNode;

/// Limit operator.
pub(super) struct Limit {
    input: Option<Box<dyn Operator>>,
    /// Remaining rows; `None`: no limit.
    left: Option<u64>,
    skip: u64,
    node: Arc<LimitNode>,
    context: Arc<Context>,
    /// WITH TIES: sort key of the last row, once the limit was reached.
    tie: Option<Vec<Datum>>,
}

fn count(
    expression: &Option<Expr>,
    context: &Context,
    refusal: (&'static str, &str),
) -> Result<Option<u64>> {
    let Some(expression) = expression else { return Ok(None) };
    match context.value(expression)?.as_i64() {
        None => Ok(None),
        Some(count) => match u64::try_from(count) {
            Ok(count) => Ok(Some(count)),
            Err(_) => Err(Error::new(refusal.0, refusal.1)),
        },
    }
}

impl Limit {
    /// Evaluates the limits; opens the input only if rows are needed.
    pub(super) fn open(node: &Arc<LimitNode>, context: &Arc<Context>) -> Result<Limit> {
        let bad_limit = sqlstate::INVALID_ROW_COUNT_IN_LIMIT_CLAUSE;
        let bad_offset = sqlstate::INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE;
        let left = count(&node.limit, context, (bad_limit, "LIMIT must not be negative"))?;
        let skip = count(&node.offset, context, (bad_offset, "OFFSET must not be negative"))?;
        let input = match left {
            Some(0) => None,
            _ if node.row_by_row && !context.row_by_row => {
                let context = Context { row_by_row: true, ..Context::clone(context) };
                Some(build(&node.input, &Arc::new(context))?)
            }
            _ => Some(build(&node.input, context)?),
        };
        let (node, context) = (Arc::clone(node), Arc::clone(context));
        Ok(Limit { input, left, skip: skip.unwrap_or(0), node, context, tie: None })
    }

    /// Returns the number of rows of a batch, starting at `from`, that tie with the last row.
    fn tied(&mut self, batch: &Batch, from: usize) -> Result<usize> {
        let columns = columns_of(&self.node.ties, batch, &self.context.eval)?;
        let values = |row: usize| columns.iter().map(move |column| column.datum(row));
        let tie = match self.tie.take() {
            Some(tie) => tie,
            None => {
                debug_assert!(from > 0, "ties with a row before the batch");
                values(from - 1).collect()
            }
        };
        let types: Vec<DataType> = self.node.ties.iter().map(Expr::data_type).cloned().collect();
        let same = |row: &usize| {
            let mut pairs = values(*row).zip(&tie).zip(&types);
            pairs.all(|((value, tie), data_type)| value.compare_typed(tie, data_type).is_eq())
        };
        let count = (from..batch.row_count).take_while(same).count();
        self.tie = Some(tie);
        Ok(count)
    }
}

impl Operator for Limit {
    fn next(&mut self) -> Result<Option<Batch>> {
        while let Some(input) = &mut self.input {
            let Some(batch) = input.next()? else {
                self.input = None;
                break;
            };
            let rows = batch.row_count as u64;
            let skip = self.skip.min(rows);
            self.skip -= skip;
            let mut take = self.left.map_or(rows - skip, |left| left.min(rows - skip));
            if let Some(left) = &mut self.left {
                *left -= take;
                if *left == 0 {
                    let end = skip + take;
                    if !self.node.ties.is_empty() {
                        take += self.tied(&batch, end as usize)? as u64;
                    }
                    if self.node.ties.is_empty() || skip + take < rows {
                        self.input = None;
                    }
                }
            }
            if take == rows {
                return Ok(Some(batch));
            }
            if take > 0 {
                let wanted: Vec<u32> = (skip as u32..(skip + take) as u32).collect();
                return Ok(Some(batch.take(&wanted)));
            }
        }
        Ok(None)
    }
}
