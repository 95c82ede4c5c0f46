//! Nested-loop join over materialised right rows, for joins without an equality.
//!
//! The right side is in memory, or on disk if it does not fit
//! ([`block_join`](crate::exec::block_join)).

use std::sync::Arc;

use types::Batch;

use crate::error::{Error, Result};
use crate::exec::block_join::BlockJoin;
use crate::exec::join_core::{JoinCandidates, JoinParts, RunningJoin};
use crate::exec::{Context, Operator, build};
use crate::plan::LoopJoinNode;

/// Candidates of a loop join: all right rows.
pub(super) struct AllRows {
    row_count: u32,
}

/// Loop join operator; see the module.
pub(super) struct LoopJoin {
    node: Arc<LoopJoinNode>,
    context: Arc<Context>,
    /// Join in memory; `None` once the right side has turned out too large.
    pairs: Option<RunningJoin<AllRows>>,
    blocks: Option<BlockJoin<AllRows>>,
    /// True if the right side is retained from one iteration of a recursive query to the next.
    keeps: bool,
}

impl LoopJoin {
    /// Opens the operator and both inputs.
    pub(super) fn open(node: &Arc<LoopJoinNode>, context: &Arc<Context>) -> Result<LoopJoin> {
        let parts = JoinParts {
            kind: node.kind,
            left: build(&node.left, context)?,
            right: build(&node.right, context)?,
            candidates: AllRows { row_count: 0 },
            on: node.on.clone(),
            left_types: node.left_types.clone(),
            right_types: node.right_types.clone(),
        };
        let keeps = context.is_iteration_invariant(&node.right);
        Ok(LoopJoin {
            pairs: Some(RunningJoin::new(parts, context)),
            blocks: None,
            keeps,
            node: Arc::clone(node),
            context: Arc::clone(context),
        })
    }
}

impl Operator for LoopJoin {
    fn next(&mut self) -> Result<Option<Batch>> {
        loop {
            if let Some(blocks) = &mut self.blocks {
                return blocks.next();
            }
            let Some(mut pairs) = self.pairs.take() else { return Ok(None) };
            if pairs.read_right(Some(self.context.work_mem()))? {
                return self.pairs.insert(pairs).next();
            }
            self.blocks = Some(BlockJoin::of(pairs, self.node.keeps_order, &self.context)?);
        }
    }

    fn rewind(&mut self) -> Result<bool> {
        match &mut self.pairs {
            Some(pairs) => Ok(self.keeps && pairs.rewind()?),
            None => Ok(false),
        }
    }
}

impl JoinCandidates for AllRows {
    type LeftProbe = ();

    fn clear(&mut self) {
        self.row_count = 0;
    }

    fn add(&mut self, batch: &Batch, _context: &Context) -> Result<()> {
        let count = self.row_count.checked_add(batch.row_count as u32).ok_or_else(
            || err!(PROGRAM_LIMIT_EXCEEDED: "too many rows on one side of a nested loop join"),
        )?;
        self.row_count = count;
        Ok(())
    }

    fn probe(&self, _batch: &Batch, _context: &Context) -> Result<()> {
        Ok(())
    }

    fn first(&self, _probe: &(), _left_row: usize) -> Option<u32> {
        (self.row_count > 0).then_some(0)
    }

    fn after(&self, _probe: &(), _left_row: usize, right_row: u32) -> Option<u32> {
        (right_row + 1 < self.row_count).then_some(right_row + 1)
    }

    fn byte_count(&self) -> usize {
        0
    }
}
