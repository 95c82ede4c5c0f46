//! Aggregate pushdown: calls the aggregate endpoint of the regions and merges their partial
//! groups.

use std::sync::Arc;

use coprocessors::aggregate::{AggregateEndpoint, AggregateRequest, PAGE_BYTES};
use store::TimeRange;
use types::Batch;
use types::aggregate::PartialGroupSet;

use crate::error::Result;
use crate::exec::feed::endpoint_ranges;
use crate::exec::spilling_groups::SpillingGroups;
use crate::exec::{Context, Operator};
use crate::plan::RegionAggregateNode;

/// Region aggregate operator; see the module.
pub(super) struct RegionAggregate {
    node: Arc<RegionAggregateNode>,
    context: Arc<Context>,
    /// Merged partial groups, once the regions were called.
    answers: Option<SpillingGroups>,
}

impl RegionAggregate {
    /// Opens the operator; the regions are called for the first batch.
    pub(super) fn open(node: &Arc<RegionAggregateNode>, context: &Arc<Context>) -> RegionAggregate {
        RegionAggregate { node: Arc::clone(node), context: Arc::clone(context), answers: None }
    }

    fn answers(&self) -> Result<SpillingGroups> {
        let (node, context) = (&self.node, &self.context);
        let mut groups = SpillingGroups::new(&node.group_by, &node.aggregates, context);
        call(node, context, |part| groups.merge(part))?;
        Ok(groups)
    }
}

/// Divisor of an operator's memory for one page of an answer: about as many pages exist at a
/// time.
const PAGES: usize = 4;
/// Minimum page size in bytes.
const PAGE_BYTES_LEAST: usize = 1 << 20;

/// Calls the regions; `add` receives their partial groups.
pub(super) fn call(
    node: &RegionAggregateNode,
    context: &Arc<Context>,
    mut add: impl FnMut(PartialGroupSet) -> Result<()>,
) -> Result<()> {
    context.check()?;
    let request = AggregateRequest {
        layout: Arc::clone(&node.path.layout),
        columns: node.read.clone(),
        filter: node.filter.clone(),
        group_by: node.group_by.clone(),
        aggregates: node.aggregates.clone(),
        time_range: TimeRange::ALL,
        context: context.eval.clone(),
        page_bytes: PAGE_BYTES.min((context.work_mem() / PAGES).max(PAGE_BYTES_LEAST)),
    };
    let ranges = endpoint_ranges(&node.path, context)?;
    if !ranges.is_empty() {
        context.transaction.call_endpoint(
            &context.path_reader(&node.path)?,
            &ranges,
            &AggregateEndpoint,
            &request,
            |response| add(response.groups),
        )?;
    }
    Ok(())
}

impl Operator for RegionAggregate {
    fn next(&mut self) -> Result<Option<Batch>> {
        let answers = match &mut self.answers {
            Some(answers) => answers,
            None => {
                let called = self.answers()?;
                self.answers.insert(called)
            }
        };
        answers.next()
    }
}
