//! WITH RECURSIVE: the first term, then the second one over what the round before has given, until
//! a round gives nothing.

use std::sync::Arc;

use types::Batch;

use crate::batch_buffer::BatchBuffer;
use crate::error::Result;
use crate::exec::cte::KeptRows;
use crate::exec::seen_rows::SeenRows;
use crate::exec::{Context, Operator, build};
use crate::plan::RecursiveUnionNode;

/// See the module.
pub(super) struct RecursiveUnion {
    node: Arc<RecursiveUnionNode>,
    context: Arc<Context>,
    /// The round at hand: the first term, then the second one, which is begun anew where it can be.
    round: Option<Box<dyn Operator>>,
    /// What the round reads, and what it runs with; `None` in the first.
    step: Option<(Arc<KeptRows>, Arc<Context>)>,
    /// What the round has given so far: the work table of the next one.
    given: BatchBuffer,
    /// Without ALL: the rows given in any round.
    seen: Option<SeenRows>,
}

impl RecursiveUnion {
    /// Opens it and the first term.
    pub(super) fn open(
        node: &Arc<RecursiveUnionNode>,
        context: &Arc<Context>,
    ) -> Result<RecursiveUnion> {
        Ok(RecursiveUnion {
            round: Some(build(&node.start, context)?),
            seen: (!node.all).then(|| SeenRows::new(&node.types)),
            step: None,
            node: Arc::clone(node),
            context: Arc::clone(context),
            given: BatchBuffer::default(),
        })
    }

    /// Begins the next round, unless the last one has given nothing.
    fn turn(&mut self) -> Result<()> {
        let mut last = self.round.take();
        if self.given.is_empty() {
            return Ok(());
        }
        let given = std::mem::take(&mut self.given);
        let Some((work_table, context)) = &self.step else {
            let work_table = Arc::new(KeptRows::ready(given));
            let context = self.context.with_work_table(self.node.id, Arc::clone(&work_table));
            self.round = Some(build(&self.node.step, &context)?);
            self.step = Some((work_table, context));
            return Ok(());
        };
        self.given = work_table.replace(given);
        self.given.clear();
        if !last.as_mut().map_or(Ok(false), |step| step.rewind())? {
            drop(last);
            last = Some(build(&self.node.step, context)?);
        }
        self.round = last;
        Ok(())
    }

    /// Returns the rows of a batch that no round has returned; all of them with ALL.
    fn new_rows(&mut self, batch: Batch) -> Result<Option<Batch>> {
        match &mut self.seen {
            Some(seen) => seen.insert(&batch, &self.context),
            None => Ok(Some(batch)),
        }
    }
}

impl Operator for RecursiveUnion {
    fn next(&mut self) -> Result<Option<Batch>> {
        while let Some(round) = &mut self.round {
            self.context.check()?;
            let Some(batch) = round.next()? else {
                self.turn()?;
                continue;
            };
            let Some(batch) = self.new_rows(batch)? else { continue };
            self.given.push(batch.clone(), &self.context.room())?;
            return Ok(Some(batch));
        }
        Ok(None)
    }
}
