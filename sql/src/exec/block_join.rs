//! Block nested-loop join: the right side is on disk, and is read once for each left batch.
//!
//! ```text
//! left batch  x  first right block, second one, ...  ->  pairs that match
//!             at the end: rows without a match
//! next left batch ...
//! ```
//!
//! Loop joins whose right side does not fit into memory continue as block joins, and hash joins
//! whose right rows all have the same key. Pairs do not have the order of the left rows, unless
//! left batches have one row.

use std::sync::Arc;

use types::Batch;

use crate::batch_buffer::BatchBuffer;
use crate::error::Result;
use crate::exec::join_core::{BlockProbe, JoinCandidates, RunningJoin};
use crate::exec::{Context, Operator};

/// Block nested-loop join operator; see the module.
pub(super) struct BlockJoin<C: JoinCandidates> {
    left: LeftBlocks,
    right: BatchBuffer,
    /// Number of the next right block.
    next_piece: usize,
    pieces: BlockProbe<C>,
    /// Match flag of each right row; empty if the join type does not need it.
    right_matched: Vec<bool>,
    /// Row numbers of the current right block.
    right_rows: std::ops::Range<usize>,
    /// True while there is a current left batch.
    has_left: bool,
    left_ended: bool,
    context: Arc<Context>,
}

/// Left side, batch by batch or row by row.
struct LeftBlocks {
    rows: Box<dyn Operator>,
    is_by_row: bool,
    batch: Option<(Batch, u32)>,
}

impl LeftBlocks {
    fn next(&mut self) -> Result<Option<Batch>> {
        if !self.is_by_row {
            return self.rows.next();
        }
        let (batch, row) = match self.batch.take() {
            Some(at_hand) => at_hand,
            None => match self.rows.next()? {
                Some(batch) => (batch, 0),
                None => return Ok(None),
            },
        };
        let one = batch.take(&[row]);
        if row as usize + 1 < batch.row_count {
            self.batch = Some((batch, row + 1));
        }
        Ok(Some(one))
    }
}

impl<C: JoinCandidates> BlockJoin<C> {
    /// Continues a join whose right side does not fit into memory and which has not yielded rows.
    ///
    /// `keeps_order`: its rows must have the order of the left rows.
    pub(super) fn of(
        join: RunningJoin<C>,
        keeps_order: bool,
        context: &Arc<Context>,
    ) -> Result<BlockJoin<C>> {
        let (left, mut side, mut more) = join.into_parts();
        let mut right = BatchBuffer::new(side.right_types().into());
        let room = context.room();
        let kept = side.take_rows();
        let rows: Vec<u32> = (0..kept.row_count as u32).collect();
        for some in kept.sizes().batches(&rows) {
            right.push(kept.batch(some), &room)?;
        }
        drop(kept);
        while let Some(batch) = more.next()? {
            context.check()?;
            right.push(batch, &room)?;
        }
        let yields_right = side.yields_right();
        Ok(BlockJoin {
            left: LeftBlocks { rows: left, is_by_row: keeps_order, batch: None },
            right_matched: vec![false; if yields_right { right.row_count() } else { 0 }],
            right,
            next_piece: 0,
            pieces: BlockProbe::of(side, Batch::default()),
            right_rows: 0..0,
            has_left: false,
            left_ended: false,
            context: Arc::clone(context),
        })
    }

    /// Advances to the next right block; `false` if the current left rows have been joined with
    /// all of them.
    fn turn_to_right(&mut self) -> Result<bool> {
        if self.pieces.is_decided() {
            return Ok(false);
        }
        let Some(piece) = self.right.batch(self.next_piece)? else { return Ok(false) };
        self.next_piece += 1;
        self.right_rows = self.right_rows.end..self.right_rows.end + piece.row_count;
        debug_assert!(self.right_rows.end <= self.right.row_count(), "{:?}", self.right_rows);
        self.pieces.turn_to_right(&piece, &self.context)?;
        Ok(true)
    }

    /// Advances to the next left batch; `false` if there is none.
    fn turn_to_left(&mut self) -> Result<bool> {
        let Some(batch) = self.left.next()? else { return Ok(false) };
        self.pieces.turn_to_left(batch);
        (self.next_piece, self.right_rows) = (0, 0..0);
        Ok(true)
    }

    /// Returns the next right rows without a match, padded with NULLs.
    fn unmatched_right(&mut self) -> Result<Option<Batch>> {
        while !self.right_matched.is_empty()
            && let Some(piece) = self.right.batch(self.next_piece)?
        {
            self.next_piece += 1;
            let start = self.right_rows.end;
            self.right_rows = start..start + piece.row_count;
            let is_unmatched = |row: &u32| !self.right_matched[start + *row as usize];
            let rows: Vec<u32> = (0..piece.row_count as u32).filter(is_unmatched).collect();
            if !rows.is_empty() {
                return Ok(Some(self.pieces.padded_left(&piece.take(&rows))));
            }
        }
        Ok(None)
    }
}

impl<C: JoinCandidates> Operator for BlockJoin<C> {
    fn next(&mut self) -> Result<Option<Batch>> {
        while !self.left_ended {
            self.context.check()?;
            if self.has_left {
                let matched = match self.right_matched.is_empty() {
                    true => &mut [][..],
                    false => &mut self.right_matched[self.right_rows.clone()],
                };
                if let Some(batch) = self.pieces.next(matched, &self.context)? {
                    return Ok(Some(batch));
                }
                if self.turn_to_right()? {
                    continue;
                }
                self.has_left = false;
                if let Some(batch) = self.pieces.rest() {
                    return Ok(Some(batch));
                }
            }
            self.has_left = self.turn_to_left()?;
            self.left_ended = !self.has_left;
            if self.left_ended {
                (self.next_piece, self.right_rows) = (0, 0..0);
            }
        }
        self.unmatched_right()
    }
}
