//! Hash aggregate: groups in the session, for rows that the regions of one table do not group.
//!
//! The rows come from joins and other nodes. Where the input is a pipeline, each thread that
//! produces rows groups them itself ([`stage`](crate::exec::stage)), and the partial groups are
//! merged.

use std::sync::Arc;

use parking_lot::Mutex;
use types::Batch;
use types::aggregate::{AdaptiveGroups, Aggregate, AggregateKind, Groups};
use types::expr::Expr;

use crate::error::Result;
use crate::exec::spilling_groups::{SpillingGroups, WHOLE_BYTES};
use crate::exec::stage::{PipelineStage, StageOutput};
use crate::exec::{Context, Operator, build};
use crate::plan::AggregateNode;

/// Hash aggregate operator; see the module.
pub(super) struct HashAggregate {
    /// Input; `None` once all rows were read.
    input: Option<Box<dyn Operator>>,
    gathered: Arc<ThreadGroups>,
    context: Arc<Context>,
}

/// Groups, with separate partial groups for each thread that produces rows.
struct ThreadGroups {
    node: Arc<AggregateNode>,
    /// Partial groups of threads; each set is used by at most one thread at a time.
    own: Mutex<Vec<AdaptiveGroups>>,
    all: Mutex<SpillingGroups>,
}

impl ThreadGroups {
    /// Merges the partial groups of a thread.
    fn add(&self, groups: &mut AdaptiveGroups, context: &Context) -> Result<()> {
        let part = groups.take(&context.eval)?;
        self.all.lock().merge(part)
    }
}

impl PipelineStage for ThreadGroups {
    fn begin(self: Arc<Self>, batch: Batch, context: &Arc<Context>) -> Result<StageOutput> {
        let own = self.own.lock().pop();
        let mut own = own.unwrap_or_else(|| {
            let AggregateNode { group_by, aggregates, .. } = &*self.node;
            AdaptiveGroups::new(Groups::new(group_by, aggregates, &context.eval))
        });
        own.feed(&batch, &context.eval)?;
        if own.byte_count() > WHOLE_BYTES {
            self.add(&mut own, context)?;
        }
        self.own.lock().push(own);
        Ok(StageOutput::None)
    }
}

impl HashAggregate {
    /// Opens the operator and its input.
    pub(super) fn open(node: &Arc<AggregateNode>, context: &Arc<Context>) -> Result<HashAggregate> {
        Ok(HashAggregate {
            input: Some(build(&node.input, context)?),
            gathered: Arc::new(ThreadGroups {
                node: Arc::clone(node),
                own: Mutex::default(),
                all: Mutex::new(SpillingGroups::new(&node.group_by, &node.aggregates, context)),
            }),
            context: Arc::clone(context),
        })
    }

    /// Returns whether several threads may group the rows: whether the result is independent of
    /// their order.
    fn may_be_shared(&self) -> bool {
        let node = &self.gathered.node;
        let any_order = |aggregate: &Aggregate| {
            !aggregate.buffers_rows()
                && !aggregate.is_partial_unreduced()
                && aggregate.kind != AggregateKind::AnyValue
        };
        let expressions = node.aggregates.iter().flat_map(Aggregate::expressions);
        node.aggregates.iter().all(any_order)
            && !expressions.chain(&node.group_by).any(Expr::is_session_only)
    }

    fn read(&mut self, mut input: Box<dyn Operator>) -> Result<()> {
        let gathered = Arc::clone(&self.gathered) as Arc<dyn PipelineStage>;
        if self.may_be_shared() && input.takes_stages() && input.attach(&gathered)? {
            while input.next()?.is_some() {
                self.context.check()?;
            }
            drop(input);
            let own = std::mem::take(&mut *self.gathered.own.lock());
            return own
                .into_iter()
                .try_for_each(|mut groups| self.gathered.add(&mut groups, &self.context));
        }
        let mut all = self.gathered.all.lock();
        while let Some(batch) = input.next()? {
            self.context.check()?;
            all.feed(&batch)?;
        }
        Ok(())
    }
}

impl Operator for HashAggregate {
    fn next(&mut self) -> Result<Option<Batch>> {
        if let Some(input) = self.input.take() {
            self.read(input)?;
        }
        self.gathered.all.lock().next()
    }
}
