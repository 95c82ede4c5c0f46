//! Takes rows off a merge cell by cell, where each cell is decided as soon as it is seen: newest
//! versions that nothing masks ([`NewestOnly`]), of all columns or of one, past no filter. Such are
//! most rows of most scans.
//!
//! A merge shows its cells to [`PlainRows::take`] ([`Cursor::walk`](crate::scan::merge::Cursor)),
//! which puts them into the batch until it meets one that must be judged beside others. With that
//! one [`RowReader`](crate::scan::rows::RowReader) goes on, cell by cell, to the end of its row.
//!
//! # Invariants
//!
//! 1. While `in_row` is set, the last row of the batch was begun here, and the cell shown last
//!    belongs to it. The newest version of the column of its last cell was taken.
//! 2. A cell that was refused changed nothing.

use crate::cell::{CellBatch, CellRef, KeyParts};
use crate::scan::merge::RowOrder;
use crate::scan::retention::NewestOnly;

/// Older versions that are stepped over one by one.
const VERSION_STEPS_MAX: u32 = 16;

/// Where a caller wants to be asked again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchLimits {
    /// Rows in the batch.
    pub(crate) rows: usize,
    /// Bytes in the batch, if it has a row.
    pub(crate) bytes: usize,
    /// Cells looked at.
    pub(crate) cells: u64,
}

/// How far rows are taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowLimits<'a> {
    /// The batch takes no further row then.
    pub(crate) full: BatchLimits,
    /// Forwards, the row to stop before; in reverse, the last row.
    pub(crate) end: Option<&'a [u8]>,
    /// The way through the rows.
    pub(crate) order: RowOrder,
}

/// Returns whether a row lies behind the end of a range: forwards the row to stop before, in
/// reverse the last row.
#[inline]
pub(crate) fn is_beyond(row: &[u8], end: Option<&[u8]>, order: RowOrder) -> bool {
    match (end, order) {
        (None, _) => false,
        (Some(stop), RowOrder::Forward) => row >= stop,
        (Some(start), RowOrder::Reverse) => row < start,
    }
}

/// Why a cell was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// A limit is reached, or the row is not one to be taken here.
    BeforeRow,
    /// The cell, of the row taken last, must be judged.
    InRow,
    /// The column has many versions, of which none is wanted.
    InColumn,
}

/// Takes rows into a batch.
pub(super) struct PlainRows<'a> {
    newest: NewestOnly,
    /// `None`: all columns.
    only_column: Option<&'a [u8]>,
    family: u8,
    limits: &'a RowLimits<'a>,
    batch: &'a mut CellBatch,
    in_row: bool,
    /// Older versions stepped over since the last cell that was taken.
    version_steps: u32,
    /// Cells looked at.
    cells: u64,
    stop: Option<Stop>,
}

impl<'a> PlainRows<'a> {
    /// Returns a taker that has taken nothing.
    pub(super) fn new(
        newest: NewestOnly,
        only_column: Option<&'a [u8]>,
        family: u8,
        limits: &'a RowLimits<'a>,
        batch: &'a mut CellBatch,
    ) -> PlainRows<'a> {
        PlainRows {
            newest,
            only_column,
            family,
            limits,
            batch,
            in_row: false,
            version_steps: 0,
            cells: 0,
            stop: None,
        }
    }

    /// Takes a cell, or steps over it; returns `false` if it is neither.
    #[inline]
    pub(super) fn take(&mut self, cell: &KeyParts<'_>, value: &[u8]) -> bool {
        let last = self.batch.last_column().filter(|_| self.in_row);
        let goes_on = last.is_some_and(|(row, _)| row == cell.row);
        if goes_on {
            let same_column = last.is_some_and(|(_, qualifier)| qualifier == cell.qualifier);
            if same_column && !cell.cell_type.is_family_marker() {
                return self.step_over_version(cell);
            }
        } else {
            self.in_row = false;
            if self.is_full() || is_beyond(cell.row, self.limits.end, self.limits.order) {
                return self.refuse(Stop::BeforeRow);
            }
        }
        if self.newest.regards(cell) {
            let is_wanted = self.only_column.is_none_or(|only| only == cell.qualifier);
            if !is_wanted || !self.newest.takes(cell) {
                return self.refuse(if goes_on { Stop::InRow } else { Stop::BeforeRow });
            }
            if !goes_on {
                self.batch.start_row(cell.row);
                self.in_row = true;
            }
            self.batch.push(CellRef::of_stored(self.family, cell, value));
            self.version_steps = 0;
        }
        self.cells += 1;
        true
    }

    /// Steps over a version of a column whose newest was taken.
    fn step_over_version(&mut self, cell: &KeyParts<'_>) -> bool {
        if self.version_steps >= VERSION_STEPS_MAX && self.newest.may_leave(cell.qualifier) {
            return self.refuse(Stop::InColumn);
        }
        self.version_steps += 1;
        self.cells += 1;
        true
    }

    fn is_full(&self) -> bool {
        let BatchLimits { rows, bytes, cells } = self.limits.full;
        self.batch.row_count() >= rows
            || self.cells >= cells
            || (self.batch.byte_count() >= bytes && !self.batch.is_empty())
    }

    fn refuse(&mut self, stop: Stop) -> bool {
        self.stop = Some(stop);
        false
    }

    /// Returns the cells looked at.
    pub(super) fn cells(&self) -> u64 {
        self.cells
    }

    /// Returns why the cell on which the merge stands was refused, once; `None` at the end.
    pub(super) fn take_stop(&mut self) -> Option<Stop> {
        self.version_steps = 0;
        self.stop.take()
    }
}
