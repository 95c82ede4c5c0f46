//! WITH RECURSIVE: the non-recursive term, then the recursive term over the rows of the previous
//! iteration, until it returns no rows.

use std::sync::Arc;

use types::Batch;

use crate::batch_buffer::BatchBuffer;
use crate::error::Result;
use crate::exec::cte::CteRows;
use crate::exec::seen_rows::SeenRows;
use crate::exec::{Context, Operator, build};
use crate::plan::RecursiveUnionNode;

/// Recursive union operator; see the module.
pub(super) struct RecursiveUnionOperator {
    node: Arc<RecursiveUnionNode>,
    context: Arc<Context>,
    /// Current iteration: the non-recursive term, then the recursive one, which is rewound if
    /// possible.
    round: Option<Box<dyn Operator>>,
    /// Work table and context of the recursive term; `None` in the first iteration.
    step: Option<(Arc<CteRows>, Arc<Context>)>,
    /// Rows of the current iteration: the work table of the next one.
    given: BatchBuffer,
    /// UNION: all rows returned so far.
    seen: Option<SeenRows>,
}

impl RecursiveUnionOperator {
    /// Opens the operator and the non-recursive term.
    pub(super) fn open(
        node: &Arc<RecursiveUnionNode>,
        context: &Arc<Context>,
    ) -> Result<RecursiveUnionOperator> {
        Ok(RecursiveUnionOperator {
            round: Some(build(&node.start, context)?),
            seen: (!node.all).then(|| SeenRows::new(&node.types)),
            step: None,
            node: Arc::clone(node),
            context: Arc::clone(context),
            given: BatchBuffer::default(),
        })
    }

    /// Starts the next iteration, unless the last one returned no rows.
    fn turn(&mut self) -> Result<()> {
        let mut last = self.round.take();
        if self.given.is_empty() {
            return Ok(());
        }
        let given = std::mem::take(&mut self.given);
        let Some((work_table, context)) = &self.step else {
            let work_table = Arc::new(CteRows::ready(given));
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

    /// Returns the rows of a batch that were not returned before; all of them with UNION ALL.
    fn new_rows(&mut self, batch: Batch) -> Result<Option<Batch>> {
        match &mut self.seen {
            Some(seen) => seen.insert(&batch, &self.context),
            None => Ok(Some(batch)),
        }
    }
}

impl Operator for RecursiveUnionOperator {
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
