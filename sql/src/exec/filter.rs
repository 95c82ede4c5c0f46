//! Rows for which a predicate is true.

use std::sync::Arc;

use types::Batch;

use crate::error::Result;
use crate::exec::stage::{Input, Stage};
use crate::exec::{Context, Operator, build};
use crate::plan::FilterNode;

/// Drops rows.
pub(super) struct Filter {
    node: Arc<FilterNode>,
    context: Arc<Context>,
    input: Input,
}

impl Filter {
    /// Opens it and what is below.
    pub(super) fn open(node: &Arc<FilterNode>, context: &Arc<Context>) -> Result<Filter> {
        let input = Input::new(build(&node.input, context)?);
        Ok(Filter { node: Arc::clone(node), context: Arc::clone(context), input })
    }
}

impl Stage for FilterNode {
    fn apply(&self, batch: Batch, context: &Context, out: &mut Vec<Batch>) -> Result<()> {
        let selection = self.predicate.filter_batch(&batch, &context.eval)?;
        if selection.len() == batch.row_count {
            out.push(batch);
        } else if !selection.is_empty() {
            out.push(batch.take(&selection));
        }
        Ok(())
    }
}

impl Operator for Filter {
    fn next(&mut self) -> Result<Option<Batch>> {
        if self.input.is_attached() {
            return self.input.next();
        }
        let mut passed = Vec::new();
        while let Some(batch) = self.input.next()? {
            self.context.check()?;
            self.node.apply(batch, &self.context, &mut passed)?;
            if let Some(batch) = passed.pop() {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    fn rewind(&mut self) -> Result<bool> {
        self.input.rewind()
    }

    fn takes_stages(&self) -> bool {
        !self.node.predicate.stays() && self.input.takes_stages()
    }

    fn attach(&mut self, stage: &Arc<dyn Stage>) -> Result<bool> {
        let own = || Arc::clone(&self.node) as Arc<dyn Stage>;
        Ok(!self.node.predicate.stays() && self.input.attach(own, stage)?)
    }
}
