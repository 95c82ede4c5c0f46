//! LIMIT and OFFSET.

use std::sync::Arc;

use types::Batch;
use types::expr::Expr;

use crate::error::{Error, Result};
use crate::exec::{Context, Operator, build};
use crate::plan::LimitNode;

/// `invalid_row_count_in_limit_clause`
const BAD_LIMIT: &str = "2201W";
/// `invalid_row_count_in_result_offset_clause`
const BAD_OFFSET: &str = "2201X";

/// Skips and stops.
pub(super) struct Limit {
    input: Option<Box<dyn Operator>>,
    /// `None`: all.
    left: Option<u64>,
    skip: u64,
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
    /// Computes the numbers; opens what is below only if there is something to read.
    pub(super) fn open(node: &Arc<LimitNode>, context: &Arc<Context>) -> Result<Limit> {
        let left = count(&node.limit, context, (BAD_LIMIT, "LIMIT must not be negative"))?;
        let skip = count(&node.offset, context, (BAD_OFFSET, "OFFSET must not be negative"))?;
        let input = match left {
            Some(0) => None,
            _ => Some(build(&node.input, context)?),
        };
        Ok(Limit { input, left, skip: skip.unwrap_or(0) })
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
            let take = self.left.map_or(rows - skip, |left| left.min(rows - skip));
            if let Some(left) = &mut self.left {
                *left -= take;
                if *left == 0 {
                    self.input = None;
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
