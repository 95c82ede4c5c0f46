//! Top-N pushdown: calls the top-n endpoint of the regions and merges their first rows in sort
//! order.
//!
//! If the row goal is too large, or the rows exceed `work_mem`, the fallback plan sorts in the
//! session.

use std::sync::Arc;

use coprocessors::top_n::{Merger, TopNEndpoint, TopNRequest};
use store::TimeRange;
use types::vector::RowSizes;
use types::{Batch, Vector};

use crate::error::{Error, Result};
use crate::exec::feed::endpoint_ranges;
use crate::exec::scan::goal_rows;
use crate::exec::{Context, Operator, build};
use crate::plan::RegionTopNNode;

/// Region top-N operator; see the module.
pub(super) struct RegionTopN {
    node: Arc<RegionTopNNode>,
    context: Arc<Context>,
    /// Number of rows of the row goal.
    row_count: Option<usize>,
    state: TopNState,
}

enum TopNState {
    /// Regions not called yet.
    Begun,
    /// Merged rows of the regions.
    Sorted(TopNRows),
    /// Fallback for too many or too large rows: a sort in the session.
    Otherwise(Box<dyn Operator>),
}

/// Reason of an early end of the call.
enum TopNFailure {
    /// The rows exceed `work_mem`.
    TooLarge,
    Failed(Box<Error>),
}

impl<E: Into<Error>> From<E> for TopNFailure {
    fn from(error: E) -> TopNFailure {
        TopNFailure::Failed(Box::new(error.into()))
    }
}

/// Rows and their sort order.
struct TopNRows {
    columns: Vec<Vector>,
    order: Vec<u32>,
    next: usize,
}

impl TopNRows {
    fn next(&mut self) -> Option<Batch> {
        let rest = &self.order[self.next..];
        let sizes = RowSizes::of(&self.columns);
        let rows = &rest[..sizes.batch_len(rest.iter().map(|row| *row as usize))];
        if rows.is_empty() {
            return None;
        }
        self.next += rows.len();
        let columns = self.columns.iter().map(|column| Arc::new(column.take(rows))).collect();
        Some(Batch { columns, row_count: rows.len() })
    }
}

impl RegionTopN {
    /// Opens the operator; the regions are called for the first batch.
    ///
    /// # Errors
    ///
    /// Errors of evaluating the row goal.
    pub(super) fn open(node: &Arc<RegionTopNNode>, context: &Arc<Context>) -> Result<RegionTopN> {
        let goal = goal_rows(&Some(node.goal.clone()), context)?;
        let goal = goal.and_then(|goal| usize::try_from(goal).ok());
        Ok(RegionTopN {
            node: Arc::clone(node),
            context: Arc::clone(context),
            row_count: goal.filter(|goal| *goal <= RegionTopNNode::ROWS_MAX),
            state: TopNState::Begun,
        })
    }

    fn begin(&self) -> Result<TopNState> {
        if let Some(row_count) = self.row_count {
            match self.call(row_count) {
                Ok(sorted) => return Ok(TopNState::Sorted(sorted)),
                Err(TopNFailure::Failed(error)) => return Err(*error),
                Err(TopNFailure::TooLarge) => {}
            }
        }
        Ok(TopNState::Otherwise(build(&self.node.otherwise, &self.context)?))
    }

    fn call(&self, row_count: usize) -> std::result::Result<TopNRows, TopNFailure> {
        let (node, context) = (&self.node, &self.context);
        context.check()?;
        let request = TopNRequest {
            layout: Arc::clone(&node.path.layout),
            columns: node.read.clone(),
            filter: node.filter.clone(),
            keys: node.keys.clone(),
            output: node.output.clone(),
            row_count,
            time_range: TimeRange::ALL,
            context: context.eval.clone(),
        };
        let ranges = endpoint_ranges(&node.path, context)?;
        let mut merger = Merger::new(&request);
        if !ranges.is_empty() {
            let take = |response| {
                merger.add(response);
                if merger.byte_count() > context.work_mem() {
                    Err(TopNFailure::TooLarge)
                } else {
                    Ok(())
                }
            };
            let table = context.path_reader(&node.path)?;
            context.transaction.call_endpoint(&table, &ranges, &TopNEndpoint, &request, take)?;
        }
        let (columns, order) = merger.finish();
        Ok(TopNRows { columns, order, next: 0 })
    }
}

impl Operator for RegionTopN {
    fn next(&mut self) -> Result<Option<Batch>> {
        if let TopNState::Begun = self.state {
            self.state = self.begin()?;
        }
        match &mut self.state {
            TopNState::Begun => Ok(None),
            TopNState::Sorted(sorted) => Ok(sorted.next()),
            TopNState::Otherwise(otherwise) => otherwise.next(),
        }
    }
}
