//! Filter: the rows that satisfy a predicate.

use std::sync::Arc;

use types::Batch;

use crate::error::{Error, Result};
use crate::exec::stage::{PipelineStage, SingleRowInput, StageInput, StageOutput};
use crate::exec::{Context, Operator, build};
use crate::plan::FilterNode;

/// Filter operator.
pub(super) struct Filter {
    node: Arc<FilterNode>,
    context: Arc<Context>,
    input: StageInput,
    rows: SingleRowInput,
    /// Error of the predicate on the row after those that were returned.
    failure: Option<Error>,
}

impl Filter {
    /// Opens the operator and its input.
    pub(super) fn open(node: &Arc<FilterNode>, context: &Arc<Context>) -> Result<Filter> {
        let input = StageInput::new(build(&node.input, context)?);
        let rows = SingleRowInput::new(context.row_by_row && node.predicate.is_session_only());
        let (node, context) = (Arc::clone(node), Arc::clone(context));
        Ok(Filter { node, context, input, rows, failure: None })
    }
}

impl PipelineStage for FilterNode {
    fn begin(self: Arc<Self>, batch: Batch, context: &Arc<Context>) -> Result<StageOutput> {
        let selection = self.predicate.filter_batch(&batch, &context.eval)?;
        Ok(taken(batch, &selection).into())
    }
}

/// Returns the rows at these positions; `None` if there are none.
fn taken(batch: Batch, selection: &[u32]) -> Option<Batch> {
    match selection.len() {
        0 => None,
        all if all == batch.row_count => Some(batch),
        _ => Some(batch.take(selection)),
    }
}

impl Operator for Filter {
    fn next(&mut self) -> Result<Option<Batch>> {
        if self.input.is_attached() {
            return self.input.next();
        }
        loop {
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
            let Some(batch) = self.rows.next(&mut self.input)? else { return Ok(None) };
            self.context.check()?;
            let (passed, failure) = self.node.predicate.filter_until(&batch, &self.context.eval);
            self.failure = failure.map(Error::from);
            if let Some(batch) = taken(batch, &passed) {
                return Ok(Some(batch));
            }
        }
    }

    fn rewind(&mut self) -> Result<bool> {
        self.rows.clear();
        self.input.rewind()
    }

    fn takes_stages(&self) -> bool {
        !self.node.predicate.is_session_only() && self.input.takes_stages()
    }

    fn attach(&mut self, stage: &Arc<dyn PipelineStage>) -> Result<bool> {
        let own = || Arc::clone(&self.node) as Arc<dyn PipelineStage>;
        Ok(!self.node.predicate.is_session_only() && self.input.attach(own, stage)?)
    }
}
