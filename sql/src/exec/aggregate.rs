//! Hash aggregate: groups in the session, for rows that do not come from the regions of one table.

use std::sync::Arc;

use types::Batch;

use crate::error::Result;
use crate::exec::spilling_groups::SpillingGroups;
use crate::exec::{Context, Operator, build};
use crate::plan::AggregateNode;

/// See the module.
pub(super) struct HashAggregate {
    context: Arc<Context>,
    /// `None` once all rows were read.
    input: Option<Box<dyn Operator>>,
    groups: SpillingGroups,
}

impl HashAggregate {
    /// Opens it and what is below.
    pub(super) fn open(node: &Arc<AggregateNode>, context: &Arc<Context>) -> Result<HashAggregate> {
        Ok(HashAggregate {
            input: Some(build(&node.input, context)?),
            groups: SpillingGroups::new(&node.group_by, &node.aggregates, context),
            context: Arc::clone(context),
        })
    }
}

impl Operator for HashAggregate {
    fn next(&mut self) -> Result<Option<Batch>> {
        if let Some(mut input) = self.input.take() {
            while let Some(batch) = input.next()? {
                self.context.check()?;
                self.groups.feed(&batch)?;
            }
        }
        self.groups.next()
    }
}
