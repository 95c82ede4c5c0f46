//! Cursor positions for FETCH and MOVE, and the row buffer of scrollable cursors.
//!
//! A cursor is before the first row (0), on a row, or after the last one. Scrollable cursors
//! buffer the rows that they have read.
//!
//! Source: PostgreSQL's `DoPortalRunFetch` (pquery.c).

use types::Datum;

use crate::ast::FetchDirection;
use crate::batch_buffer::{BatchBuffer, BufferLimit, byte_count};
use crate::error::Result;
use crate::rows::ResultRows;

/// Buffered rows of a cursor, and its position.
#[derive(Default)]
pub(super) struct ScrollBuffer {
    batches: BatchBuffer,
    /// Cumulated number of rows at the end of each batch.
    ends: Vec<usize>,
    bytes: usize,
    /// True once all rows have been read.
    complete: bool,
    position: usize,
}

/// Row range to return, in either direction.
#[derive(Debug, PartialEq, Eq)]
struct FetchRange {
    /// From 1.
    first: usize,
    count: usize,
    backward: bool,
}

impl ScrollBuffer {
    fn row_count(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns whether the buffer is too large for a cursor that was not declared SCROLL. A
    /// cursor on a row that it has moved back to retains its buffer.
    pub(super) fn is_full(&self, work_mem: usize) -> bool {
        self.bytes > work_mem / 4 && self.position >= self.row_count()
    }

    /// Returns whether the cursor is before the first row.
    pub(super) fn is_before(&self) -> bool {
        self.position == 0
    }

    /// Returns the number of the current row.
    pub(super) fn passed(&self) -> u64 {
        self.position as u64
    }

    /// Returns the current row.
    pub(super) fn current(&mut self) -> Result<Option<Vec<Datum>>> {
        let Some(row) = self.position.checked_sub(1) else { return Ok(None) };
        let batch = self.ends.partition_point(|end| *end <= row);
        let start = batch.checked_sub(1).map_or(0, |before| self.ends[before]);
        Ok(self.batches.batch(batch)?.map(|batch| batch.row(row - start)))
    }

    /// Reads rows until `wanted` are buffered, or to the end.
    fn read(&mut self, rows: &mut ResultRows, wanted: usize, room: &BufferLimit) -> Result<()> {
        while !self.complete && self.row_count() < wanted {
            let Some(batch) = rows.next_batch(wanted - self.row_count())? else {
                self.complete = true;
                break;
            };
            self.bytes += byte_count(&batch);
            self.ends.push(self.row_count() + batch.row_count);
            self.batches.push(batch, room)?;
        }
        Ok(())
    }

    /// Moves and returns the requested rows.
    pub(super) fn fetch(
        &mut self,
        rows: &mut ResultRows,
        direction: FetchDirection,
        room: &BufferLimit,
    ) -> Result<BatchBuffer> {
        let wanted = self.go(rows, direction, room)?;
        self.check();
        let found = self.rows(&wanted, room)?;
        debug_assert_eq!(found.row_count(), wanted.count, "rows of {wanted:?}");
        Ok(found)
    }

    /// Asserts in debug builds that the position is among the rows, or directly after them, and
    /// that the batches have the counted rows.
    fn check(&self) {
        debug_assert!(self.position <= self.row_count() + 1, "row {}", self.position);
        debug_assert_eq!(self.ends.len(), self.batches.len(), "ends of the batches");
        debug_assert_eq!(self.row_count(), self.batches.row_count(), "rows of the batches");
    }

    fn go(
        &mut self,
        rows: &mut ResultRows,
        direction: FetchDirection,
        room: &BufferLimit,
    ) -> Result<FetchRange> {
        let size = |count: i64| usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
        match direction {
            FetchDirection::Forward(0) | FetchDirection::Relative(0) => {
                let on_row = (1..=self.row_count()).contains(&self.position);
                let count = usize::from(on_row);
                Ok(FetchRange { first: self.position, count, backward: false })
            }
            FetchDirection::Forward(count @ 1..) => self.forward(rows, size(count), room),
            FetchDirection::ForwardAll => self.forward(rows, usize::MAX, room),
            FetchDirection::Forward(count) => Ok(self.backward(size(count))),
            FetchDirection::BackwardAll => Ok(self.backward(usize::MAX)),
            FetchDirection::Absolute(count @ 0..) => self.jump(rows, size(count), room),
            FetchDirection::Absolute(count) => {
                self.read(rows, usize::MAX, room)?;
                let target = (self.row_count() + 1).saturating_sub(size(count));
                self.jump(rows, target, room)
            }
            FetchDirection::Relative(count @ 1..) => {
                let target = self.position.saturating_add(size(count));
                self.jump(rows, target, room)
            }
            FetchDirection::Relative(count) => {
                let target = self.position.saturating_sub(size(count));
                self.jump(rows, target, room)
            }
        }
    }

    fn forward(
        &mut self,
        rows: &mut ResultRows,
        count: usize,
        room: &BufferLimit,
    ) -> Result<FetchRange> {
        let last = self.position.saturating_add(count);
        self.read(rows, last, room)?;
        let first = self.position + 1;
        let end = last.min(self.row_count());
        let count = (end + 1).saturating_sub(first);
        self.position = last.min(self.row_count() + 1);
        Ok(FetchRange { first, count, backward: false })
    }

    fn backward(&mut self, count: usize) -> FetchRange {
        let before = self.position.saturating_sub(1);
        let end = before.saturating_sub(count);
        self.position = if before < count { 0 } else { end + 1 };
        FetchRange { first: before, count: before - end, backward: true }
    }

    fn jump(
        &mut self,
        rows: &mut ResultRows,
        target: usize,
        room: &BufferLimit,
    ) -> Result<FetchRange> {
        self.read(rows, target, room)?;
        self.position = target.min(self.row_count() + 1);
        let count = usize::from((1..=self.row_count()).contains(&target));
        Ok(FetchRange { first: target, count, backward: false })
    }

    fn rows(&mut self, wanted: &FetchRange, room: &BufferLimit) -> Result<BatchBuffer> {
        let mut batches = BatchBuffer::default();
        let mut done = 0;
        while done < wanted.count {
            let row = match wanted.backward {
                true => wanted.first - done,
                false => wanted.first + done,
            } - 1;
            let batch = self.ends.partition_point(|end| *end <= row);
            let start = batch.checked_sub(1).map_or(0, |before| self.ends[before]);
            let at = row - start;
            let left = wanted.count - done;
            let selection: Vec<u32> = if wanted.backward {
                (0..=at).rev().take(left).map(|row| row as u32).collect()
            } else {
                (at..self.batches.rows_of(batch)).take(left).map(|row| row as u32).collect()
            };
            done += selection.len();
            let Some(batch) = self.batches.batch(batch)? else { break };
            batches.push(batch.take(&selection), room)?;
        }
        Ok(batches)
    }
}
