//! Instrumentation of an operator for EXPLAIN ANALYZE: rows and time.

use std::sync::Arc;
use std::time::Duration;

use store::env::process::monotonic_now;
use store::{ReadStatistics, read_figures};
use types::Batch;

use crate::error::Result;
use crate::exec::stage::{PipelineStage, StageOutput};
use crate::exec::{Context, Operator};
use crate::plan::profile::ExecutionProfile;

struct InstrumentedOperator {
    inner: Box<dyn Operator>,
    counter: Arc<OperatorCounter>,
    /// True if the rows are counted on the threads that produce them.
    is_attached: bool,
}

/// Counter of an operator's rows.
struct OperatorCounter {
    step: usize,
    profile: Arc<ExecutionProfile>,
}

impl PipelineStage for OperatorCounter {
    fn begin(self: Arc<Self>, batch: Batch, _: &Arc<Context>) -> Result<StageOutput> {
        let rows = batch.row_count as u64;
        self.profile.add(self.step, rows, Duration::ZERO, ReadStatistics::default());
        Ok(StageOutput::Batch(batch))
    }
}

/// Wraps an operator with instrumentation, if a profile is requested.
pub(super) fn instrument(
    step: usize,
    inner: Box<dyn Operator>,
    context: &Context,
) -> Box<dyn Operator> {
    match &context.profile {
        None => inner,
        Some(profile) => {
            profile.open(step);
            let counter = Arc::new(OperatorCounter { step, profile: Arc::clone(profile) });
            Box::new(InstrumentedOperator { inner, counter, is_attached: false })
        }
    }
}

impl Operator for InstrumentedOperator {
    fn next(&mut self) -> Result<Option<Batch>> {
        let (began, before) = (monotonic_now(), read_figures());
        let batch = self.inner.next();
        let rows = match &batch {
            Ok(Some(batch)) if !self.is_attached => batch.row_count as u64,
            _ => 0,
        };
        let OperatorCounter { step, profile } = &*self.counter;
        profile.add(*step, rows, began.elapsed(), read_figures() - before);
        batch
    }

    fn rewind(&mut self) -> Result<bool> {
        let rewound = self.inner.rewind()?;
        if rewound {
            self.counter.profile.open(self.counter.step);
        }
        Ok(rewound)
    }

    fn takes_stages(&self) -> bool {
        self.inner.takes_stages()
    }

    fn attach(&mut self, stage: &Arc<dyn PipelineStage>) -> Result<bool> {
        let (began, before) = (monotonic_now(), read_figures());
        if !self.is_attached {
            let counter: Arc<dyn PipelineStage> =
                Arc::clone(&self.counter) as Arc<dyn PipelineStage>;
            self.is_attached = self.inner.attach(&counter)?;
        }
        let attached = self.is_attached && self.inner.attach(stage)?;
        let OperatorCounter { step, profile } = &*self.counter;
        profile.add(*step, 0, began.elapsed(), read_figures() - before);
        Ok(attached)
    }
}
