//! Instrumentation of an operator for EXPLAIN ANALYZE: rows and time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use store::{ReadFigures, read_figures};
use types::Batch;

use crate::error::Result;
use crate::exec::stage::{Stage, StageOutput};
use crate::exec::{Context, Operator};
use crate::plan::profile::Profile;

struct Measured {
    inner: Box<dyn Operator>,
    counter: Arc<Counter>,
    /// True if the rows are counted on the threads that produce them.
    is_attached: bool,
}

/// Counter of an operator's rows.
struct Counter {
    step: usize,
    profile: Arc<Profile>,
}

impl Stage for Counter {
    fn begin(self: Arc<Self>, batch: Batch, _: &Arc<Context>) -> Result<StageOutput> {
        let rows = batch.row_count as u64;
        self.profile.add(self.step, rows, Duration::ZERO, ReadFigures::default());
        Ok(StageOutput::Batch(batch))
    }
}

/// Wraps an operator with instrumentation, if a profile is requested.
pub(super) fn measured(
    step: usize,
    inner: Box<dyn Operator>,
    context: &Context,
) -> Box<dyn Operator> {
    match &context.profile {
        None => inner,
        Some(profile) => {
            profile.open(step);
            let counter = Arc::new(Counter { step, profile: Arc::clone(profile) });
            Box::new(Measured { inner, counter, is_attached: false })
        }
    }
}

impl Operator for Measured {
    fn next(&mut self) -> Result<Option<Batch>> {
        let (began, before) = (Instant::now(), read_figures());
        let batch = self.inner.next();
        let rows = match &batch {
            Ok(Some(batch)) if !self.is_attached => batch.row_count as u64,
            _ => 0,
        };
        let Counter { step, profile } = &*self.counter;
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

    fn attach(&mut self, stage: &Arc<dyn Stage>) -> Result<bool> {
        let (began, before) = (Instant::now(), read_figures());
        if !self.is_attached {
            let counter: Arc<dyn Stage> = Arc::clone(&self.counter) as Arc<dyn Stage>;
            self.is_attached = self.inner.attach(&counter)?;
        }
        let attached = self.is_attached && self.inner.attach(stage)?;
        let Counter { step, profile } = &*self.counter;
        profile.add(*step, 0, began.elapsed(), read_figures() - before);
        Ok(attached)
    }
}
