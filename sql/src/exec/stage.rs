//! What is done with each batch of a step by itself: by the thread that made the batch.
//!
//! ```text
//!   a region thread:  read -> decode, filter -> pair with a join's right side -> add to groups
//!   another one:      read -> decode, filter -> pair with a join's right side -> add to groups
//! ```
//!
//! A step that takes a batch at a time without regard to others hands itself down to the step that
//! it reads ([`Operator::attach`]), and that one further, down to a scan, whose batches are made
//! side by side.

use std::sync::Arc;

use types::Batch;

use crate::error::Result;
use crate::exec::{Context, Operator};

/// See the module.
pub trait Stage: Send + Sync {
    /// Puts what becomes of a batch to `out`.
    ///
    /// # Errors
    ///
    /// Whatever evaluation raises; it ends the statement.
    fn apply(&self, batch: Batch, context: &Context, out: &mut Vec<Batch>) -> Result<()>;
}

/// The step that another one reads: batch by batch, or with the other one handed down to it.
pub(super) struct Input {
    operator: Box<dyn Operator>,
    is_attached: bool,
}

impl Input {
    pub(super) fn new(operator: Box<dyn Operator>) -> Input {
        Input { operator, is_attached: false }
    }

    pub(super) fn takes_stages(&self) -> bool {
        self.operator.takes_stages()
    }

    /// Hands `own`, the stage of the step that reads this one, down, unless it was. Returns whether
    /// that was possible.
    pub(super) fn attach_own(&mut self, own: impl FnOnce() -> Arc<dyn Stage>) -> Result<bool> {
        if !self.is_attached && self.operator.takes_stages() {
            self.is_attached = self.operator.attach(&own())?;
        }
        Ok(self.is_attached)
    }

    /// Does the same, then hands `stage` down, which is of a step above.
    pub(super) fn attach(
        &mut self,
        own: impl FnOnce() -> Arc<dyn Stage>,
        stage: &Arc<dyn Stage>,
    ) -> Result<bool> {
        Ok(self.attach_own(own)? && self.operator.attach(stage)?)
    }

    /// Returns whether what comes has gone through the stage of the step that reads this one.
    pub(super) fn is_attached(&self) -> bool {
        self.is_attached
    }

    /// See [`Operator::rewind`].
    pub(super) fn rewind(&mut self) -> Result<bool> {
        Ok(!self.is_attached && self.operator.rewind()?)
    }

    pub(super) fn next(&mut self) -> Result<Option<Batch>> {
        self.operator.next()
    }
}

/// The batches of an input, cut into single rows where a step has effects that rows nobody asks for
/// are not to have.
pub(super) struct RowByRow {
    is_wanted: bool,
    batch: Option<Batch>,
    next: u32,
}

impl RowByRow {
    pub(super) fn new(is_wanted: bool) -> RowByRow {
        RowByRow { is_wanted, batch: None, next: 0 }
    }

    /// Returns the next batch of `input`, or the next row.
    pub(super) fn next(&mut self, input: &mut Input) -> Result<Option<Batch>> {
        if !self.is_wanted {
            return input.next();
        }
        loop {
            match &self.batch {
                Some(batch) if (self.next as usize) < batch.row_count => {
                    self.next += 1;
                    return Ok(Some(batch.take(&[self.next - 1])));
                }
                _ => {}
            }
            let Some(batch) = input.next()? else { return Ok(None) };
            (self.batch, self.next) = (Some(batch), 0);
        }
    }

    /// Forgets what is left of a batch.
    pub(super) fn clear(&mut self) {
        self.batch = None;
    }
}
