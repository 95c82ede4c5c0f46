//! Rows for which a predicate is true.

use std::sync::Arc;

use types::Batch;

use crate::error::Result;
use crate::exec::{Context, Operator, build};
use crate::plan::FilterNode;

/// Drops rows.
pub(super) struct Filter {
    node: Arc<FilterNode>,
    context: Arc<Context>,
    input: Box<dyn Operator>,
}

impl Filter {
    /// Opens it and what is below.
    pub(super) fn open(node: &Arc<FilterNode>, context: &Arc<Context>) -> Result<Filter> {
        let input = build(&node.input, context)?;
        Ok(Filter { node: Arc::clone(node), context: Arc::clone(context), input })
    }
}

impl Operator for Filter {
    fn next(&mut self) -> Result<Option<Batch>> {
        while let Some(batch) = self.input.next()? {
            self.context.check()?;
            let selection = self.node.predicate.filter_batch(&batch, &self.context.eval)?;
            if selection.len() == batch.row_count {
                return Ok(Some(batch));
            }
            if !selection.is_empty() {
                return Ok(Some(batch.take(&selection)));
            }
        }
        Ok(None)
    }
}
