//! Fast path for reading rows from a merge: each cell is decided when it is seen. For reads of
//! the newest version ([`NewestOnly`]), of all columns or of one, without a filter, and without
//! markers. Most rows of most scans qualify.
//!
//! A merge passes its cells to [`PlainRows::take`]
//! ([`Cursor::walk`](crate::scan::merge::Cursor)), which appends them to the batch until it meets
//! one that needs [`Retention`](crate::scan::retention). From that one on
//! [`RowReader`](crate::scan::rows::RowReader) reads cell by cell to the end of the row.
//!
//! # Invariants
//!
//! 1. While `in_row` is set, the last row of the batch was begun here, and the last cell seen
//!    belongs to it. The newest version of the column of its last cell was taken.
//! 2. A rejected cell does not change the batch.
//!
//! Debug assertions in [`PlainRows::take`] check 1.

use crate::cell::{CellBatch, CellRef, KeyParts};
use crate::scan::merge::RowOrder;
use crate::scan::retention::NewestOnly;

/// Number of older versions that are skipped one by one.
const VERSION_STEPS_MAX: u32 = 16;

/// Limits at which control returns to the caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchLimits {
    /// Maximal number of rows in the batch.
    pub(crate) rows: usize,
    /// Maximal bytes in the batch, if it has a row.
    pub(crate) bytes: usize,
    /// Maximal number of cells read.
    pub(crate) cells: u64,
}

/// Limits of reading rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowLimits<'a> {
    /// Limits of the batch.
    pub(crate) full: BatchLimits,
    /// Forwards, the row to stop before; in reverse, the last row.
    pub(crate) end: Option<&'a [u8]>,
    /// The order of the rows.
    pub(crate) order: RowOrder,
}

/// Returns whether a row is beyond the end of a range: forwards the row to stop before, in
/// reverse the last row.
#[inline]
pub(crate) fn is_beyond(row: &[u8], end: Option<&[u8]>, order: RowOrder) -> bool {
    match (end, order) {
        (None, _) => false,
        (Some(stop), RowOrder::Forward) => row >= stop,
        (Some(start), RowOrder::Reverse) => row < start,
    }
}

/// Reason for rejecting a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RejectReason {
    /// A limit is reached, or the row does not qualify for the fast path.
    BeforeRow,
    /// The cell, of the row taken last, needs retention.
    InRow,
    /// The column has many further versions, none of which is needed.
    InColumn,
}

/// Appends rows to a batch.
pub(super) struct PlainRows<'a> {
    newest: NewestOnly,
    /// `None`: all columns.
    only_column: Option<&'a [u8]>,
    family: u8,
    limits: &'a RowLimits<'a>,
    batch: &'a mut CellBatch,
    in_row: bool,
    /// Number of older versions skipped since the last cell that was taken.
    version_steps: u32,
    /// Number of cells read.
    cells: u64,
    stop: Option<RejectReason>,
}

impl<'a> PlainRows<'a> {
    /// Returns the state before the first row.
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

    /// Takes or skips a cell; returns `false` if it can do neither.
    #[inline]
    pub(super) fn take(&mut self, cell: &KeyParts<'_>, value: &[u8]) -> bool {
        let last = self.batch.last_column().filter(|_| self.in_row);
        debug_assert_eq!(last.is_some(), self.in_row, "the last row of the batch has a cell");
        let goes_on = last.is_some_and(|(row, _)| row == cell.row);
        if goes_on {
            let same_column = last.is_some_and(|(_, qualifier)| qualifier == cell.qualifier);
            if same_column && !cell.cell_type.is_family_marker() {
                return self.step_over_version(cell);
            }
        } else {
            self.in_row = false;
            if self.is_full() || is_beyond(cell.row, self.limits.end, self.limits.order) {
                return self.refuse(RejectReason::BeforeRow);
            }
        }
        if self.newest.regards(cell) {
            let is_wanted = self.only_column.is_none_or(|only| only == cell.qualifier);
            if !is_wanted || !self.newest.takes(cell) {
                return self.refuse(if goes_on {
                    RejectReason::InRow
                } else {
                    RejectReason::BeforeRow
                });
            }
            if !goes_on {
                debug_assert!(!self.in_row, "a row begins within another one");
                self.batch.start_row(cell.row);
                self.in_row = true;
            }
            self.batch.push(CellRef::of_stored(self.family, cell, value));
            self.version_steps = 0;
        }
        self.cells += 1;
        true
    }

    /// Skips a version of a column whose newest version was taken.
    fn step_over_version(&mut self, cell: &KeyParts<'_>) -> bool {
        if self.version_steps >= VERSION_STEPS_MAX && self.newest.may_leave(cell.qualifier) {
            return self.refuse(RejectReason::InColumn);
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

    fn refuse(&mut self, stop: RejectReason) -> bool {
        self.stop = Some(stop);
        false
    }

    /// Returns the number of cells read.
    pub(super) fn cells(&self) -> u64 {
        self.cells
    }

    /// Takes the reason for rejecting the current cell; `None` at the end.
    pub(super) fn take_stop(&mut self) -> Option<RejectReason> {
        self.version_steps = 0;
        self.stop.take()
    }
}
