//! Aggregates computed in the regions: calls the aggregate endpoint and puts the answers together.

use std::sync::Arc;

use coprocessors::aggregate::{AggregateEndpoint, AggregateRequest, Merger};
use store::TimeRange;
use types::Batch;

use crate::error::{Error, Result};
use crate::exec::feed::row_ranges;
use crate::exec::{Context, Operator, memory};
use crate::plan::RegionAggregateNode;

/// See the module.
pub(super) struct RegionAggregate {
    node: Arc<RegionAggregateNode>,
    context: Arc<Context>,
    answers: Option<std::vec::IntoIter<Batch>>,
}

impl RegionAggregate {
    /// Opens it; the regions are called for the first batch.
    pub(super) fn open(node: &Arc<RegionAggregateNode>, context: &Arc<Context>) -> RegionAggregate {
        RegionAggregate { node: Arc::clone(node), context: Arc::clone(context), answers: None }
    }

    fn call(&self) -> Result<Vec<Batch>> {
        let (node, context) = (&self.node, &self.context);
        context.check()?;
        let request = AggregateRequest {
            layout: Arc::clone(&node.path.layout),
            columns: node.read.clone(),
            filter: node.filter.clone(),
            group_by: node.group_by.clone(),
            aggregates: node.aggregates.clone(),
            time_range: TimeRange::ALL,
            context: context.eval.clone(),
            memory_bytes_max: Some(memory::limit(context.work_mem)),
        };
        let ranges: Vec<(Vec<u8>, Option<Vec<u8>>)> = row_ranges(&node.path, context)?
            .into_iter()
            .map(|range| (range.start, range.stop))
            .collect();
        let mut merger = Merger::new(&request);
        if !ranges.is_empty() {
            context.transaction.call_endpoint(
                node.path.store_table,
                &ranges,
                &AggregateEndpoint,
                &request,
                |response| merger.add(response).map_err(Error::from),
            )?;
        }
        Ok(merger.finish()?)
    }
}

impl Operator for RegionAggregate {
    fn next(&mut self) -> Result<Option<Batch>> {
        if self.answers.is_none() {
            self.answers = Some(self.call()?.into_iter());
        }
        Ok(self.answers.as_mut().and_then(Iterator::next))
    }
}
