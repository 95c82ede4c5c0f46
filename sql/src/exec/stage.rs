//! Pipeline stages: per-batch processing by the thread that produced the batch.
//!
//! ```text
//!   a region thread:  read -> decode, filter -> probe a hash join -> add to groups
//!   another one:      read -> decode, filter -> probe a hash join -> add to groups
//! ```
//!
//! A node that processes each batch independently attaches its stage to its input
//! ([`Operator::attach`]), and this one further down to a scan, whose batches are produced in
//! parallel.

use std::sync::Arc;

use types::Batch;

use crate::error::Result;
use crate::exec::{Context, Operator};

/// Pipeline stage; see the module.
pub trait PipelineStage: Send + Sync {
    /// Processes a batch; returns its output.
    ///
    /// # Errors
    ///
    /// Errors of the evaluation; they end the statement.
    fn begin(self: Arc<Self>, batch: Batch, context: &Arc<Context>) -> Result<StageOutput>;
}

/// Output of a stage for a batch.
pub enum StageOutput {
    /// No rows.
    None,
    /// One batch.
    Batch(Batch),
    /// Batches that are produced on demand, since all of them may exceed memory.
    Batches(Box<dyn Operator>),
}

impl From<Option<Batch>> for StageOutput {
    fn from(batch: Option<Batch>) -> StageOutput {
        batch.map_or(StageOutput::None, StageOutput::Batch)
    }
}

/// Stages in process for one batch: of each stage's output, one batch is in memory.
#[derive(Default)]
pub(super) struct Pipeline {
    /// Batch before the first stage.
    first: Option<Batch>,
    /// Open outputs of stages, innermost last, each with the number of the next stage.
    begun: Vec<(Box<dyn Operator>, usize)>,
}

impl Pipeline {
    /// Returns a batch before the first stage.
    pub(super) fn of(batch: Batch) -> Pipeline {
        Pipeline { first: Some(batch), begun: Vec::new() }
    }

    /// Returns the next batch after all stages, which must be the same in each call.
    pub(super) fn next(
        &mut self,
        stages: &[Arc<dyn PipelineStage>],
        context: &Arc<Context>,
    ) -> Result<Option<Batch>> {
        while let Some((batch, from)) = self.take(context)? {
            if let Some(batch) = self.put(batch, &stages[from..], from, context)? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// Returns the next batch of the innermost open output, and the number of its next stage.
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

    /// Processes a batch by stages, the first of which has the number `first`, up to one that
    /// returns several batches.
    fn put(
        &mut self,
        mut batch: Batch,
        stages: &[Arc<dyn PipelineStage>],
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

/// Input of a node: read batch by batch, or with the node's stage attached.
pub(super) struct StageInput {
    operator: Box<dyn Operator>,
    is_attached: bool,
}

impl StageInput {
    pub(super) fn new(operator: Box<dyn Operator>) -> StageInput {
        StageInput { operator, is_attached: false }
    }

    pub(super) fn takes_stages(&self) -> bool {
        self.operator.takes_stages()
    }

    /// Attaches `own`, the stage of the node that reads this input, unless it is attached.
    /// Returns whether it is.
    pub(super) fn attach_own(
        &mut self,
        own: impl FnOnce() -> Arc<dyn PipelineStage>,
    ) -> Result<bool> {
        if !self.is_attached && self.operator.takes_stages() {
            self.is_attached = self.operator.attach(&own())?;
        }
        Ok(self.is_attached)
    }

    /// Attaches `own`, then `stage`, which is the stage of a parent node.
    pub(super) fn attach(
        &mut self,
        own: impl FnOnce() -> Arc<dyn PipelineStage>,
        stage: &Arc<dyn PipelineStage>,
    ) -> Result<bool> {
        Ok(self.attach_own(own)? && self.operator.attach(stage)?)
    }

    /// Returns whether the node's stage is attached, so that its batches are already processed.
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

/// Batches of an input, split into single rows if the node has side effects that must not occur
/// for unread rows.
pub(super) struct SingleRowInput {
    is_wanted: bool,
    batch: Option<Batch>,
    next: u32,
}

impl SingleRowInput {
    pub(super) fn new(is_wanted: bool) -> SingleRowInput {
        SingleRowInput { is_wanted, batch: None, next: 0 }
    }

    /// Returns the next batch of `input`, or its next row.
    pub(super) fn next(&mut self, input: &mut StageInput) -> Result<Option<Batch>> {
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

    /// Drops the rest of a batch.
    pub(super) fn clear(&mut self) {
        self.batch = None;
    }
}
