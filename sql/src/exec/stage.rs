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
    /// Turns to a batch; returns what becomes of it.
    ///
    /// # Errors
    ///
    /// Whatever evaluation raises; it ends the statement.
    fn begin(self: Arc<Self>, batch: Batch, context: &Arc<Context>) -> Result<StageOutput>;
}

/// The output of a stage for a batch.
pub enum StageOutput {
    /// Nothing.
    None,
    /// One batch.
    Batch(Batch),
    /// Batches that are made as they are asked for, since all of them may be more than fits into
    /// memory.
    Batches(Box<dyn Operator>),
}

impl From<Option<Batch>> for StageOutput {
    fn from(batch: Option<Batch>) -> StageOutput {
        batch.map_or(StageOutput::None, StageOutput::Batch)
    }
}

/// A batch on its way through stages: of what each of them makes, one batch is in memory.
#[derive(Default)]
pub(super) struct Pipeline {
    /// The batch before the first stage.
    first: Option<Batch>,
    /// The outputs that stages have begun, the last one last, each with the number of the next
    /// stage.
    begun: Vec<(Box<dyn Operator>, usize)>,
}

impl Pipeline {
    /// Returns a batch before the first stage.
    pub(super) fn of(batch: Batch) -> Pipeline {
        Pipeline { first: Some(batch), begun: Vec::new() }
    }

    /// Returns the next batch that has gone through all stages, which are the same each time.
    pub(super) fn next(
        &mut self,
        stages: &[Arc<dyn Stage>],
        context: &Arc<Context>,
    ) -> Result<Option<Batch>> {
        while let Some((batch, from)) = self.take(context)? {
            if let Some(batch) = self.put(batch, &stages[from..], from, context)? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// Takes the next batch of the last stage that has begun, and the number of the stage that it
    /// goes to.
    fn take(&mut self, context: &Context) -> Result<Option<(Batch, usize)>> {
        if let Some(batch) = self.first.take() {
            return Ok(Some((batch, 0)));
        }
        while let Some((batches, to)) = self.begun.last_mut() {
            context.check()?;
            if let Some(batch) = batches.next()? {
                return Ok(Some((batch, *to)));
            }
            self.begun.pop();
        }
        Ok(None)
    }

    /// Puts a batch through stages, the first of which has this number, up to one that makes
    /// several batches of it.
    fn put(
        &mut self,
        mut batch: Batch,
        stages: &[Arc<dyn Stage>],
        first: usize,
        context: &Arc<Context>,
    ) -> Result<Option<Batch>> {
        for (number, stage) in (first..).zip(stages) {
            match Arc::clone(stage).begin(batch, context)? {
                StageOutput::Batch(next) => batch = next,
                StageOutput::Batches(batches) => {
                    self.begun.push((batches, number + 1));
                    return Ok(None);
                }
                StageOutput::None => return Ok(None),
            }
        }
        Ok(Some(batch))
    }
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
