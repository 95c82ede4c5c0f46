//! A step whose rows and time are counted, for EXPLAIN ANALYZE.

use std::sync::Arc;
use std::time::Instant;

use store::read_figures;
use types::Batch;

use crate::error::Result;
use crate::exec::{Context, Operator};
use crate::plan::profile::Profile;

struct Measured {
    inner: Box<dyn Operator>,
    step: usize,
    profile: Arc<Profile>,
}

/// Returns a step that counts what it does, if that is asked for.
pub(super) fn measured(
    step: usize,
    inner: Box<dyn Operator>,
    context: &Context,
) -> Box<dyn Operator> {
    match &context.profile {
        None => inner,
        Some(profile) => {
            profile.open(step);
            Box::new(Measured { inner, step, profile: Arc::clone(profile) })
        }
    }
}

impl Operator for Measured {
    fn next(&mut self) -> Result<Option<Batch>> {
        let (began, before) = (Instant::now(), read_figures());
        let batch = self.inner.next();
        let rows = match &batch {
            Ok(Some(batch)) => batch.row_count as u64,
            _ => 0,
        };
        self.profile.add(self.step, rows, began.elapsed(), read_figures() - before);
        batch
    }
}
