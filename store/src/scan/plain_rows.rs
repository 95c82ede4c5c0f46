//! Fast path for reading rows from a merge: each cell is decided when it is seen. For reads of
//! the newest version ([`NewestOnly`]) without a filter, and without markers. Most rows of most
//! scans qualify.
//!
//! A merge passes its cells to [`PlainRows::take`]
//! ([`Cursor::walk`](crate::scan::merge::Cursor)), which appends them to the batch until it meets
//! one that needs [`Retention`](crate::scan::retention). From that one on
//! [`RowReader`](crate::scan::rows::RowReader) reads cell by cell to the end of the row.
//!
//! Of a read of some columns the cells of the others are stepped over: that takes a fraction of a
//! seek. Where many were, the reader seeks ([`Gaps`]).
//!
//! # Invariants
//!
//! 1. While `in_row` is set, the last row of the batch was begun here, and the last wanted cell
//!    seen belongs to it. The newest version of the column of its last cell was taken.
//! 2. A rejected cell does not change the batch.
//!
//! Debug assertions in [`PlainRows::take`] check 1.

use std::cmp::Ordering;

use smallvec::SmallVec;

use crate::cell::{CellBatch, CellRef, KeyParts, compare_bytes, equal_bytes};
use crate::scan::merge::RowOrder;
use crate::scan::retention::NewestOnly;

/// Number of older versions that are skipped one by one.
const VERSION_STEPS_MAX: u32 = 16;

/// Number of cells of other columns that are stepped over before a seek.
const GAP_STEPS_MAX: u32 = if cfg!(test) { 1 } else { 24 };

/// Number of seeks over a gap until its cells are stepped over again.
const GAP_SEEKS: u32 = if cfg!(test) { 2 } else { 64 };

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
    /// Many cells of other columns come before that of the wanted column with this index, or
    /// before the next row if there is none.
    InGap(usize),
}

/// The wanted columns, and the gaps before each of them and behind the last.
#[derive(Debug)]
pub(super) struct WantedCells<'a> {
    /// Ascending.
    columns: &'a [Vec<u8>],
    /// That of each column.
    heads: SmallVec<[QualifierHead; 8]>,
    /// Index of the first one that was not passed.
    next: usize,
    gaps: &'a mut Gaps,
    /// Number of cells stepped over since the last cell that was taken.
    steps: u32,
}

/// Gaps between wanted columns: for each the number of seeks that are left until the cells of
/// the gap are stepped over again; 0 while they are.
pub(super) type Gaps = SmallVec<[u32; 8]>;

/// The first eight bytes of a qualifier, padded with zeros, and its length, at most nine. Two that
/// differ are in the order of their qualifiers; two that are equal are equal up to a length of
/// eight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct QualifierHead {
    bytes: u64,
    length: usize,
}

impl QualifierHead {
    #[inline]
    fn of(qualifier: &[u8]) -> QualifierHead {
        let mut bytes = 0;
        for at in 0..8 {
            bytes = bytes << 8 | u64::from(qualifier.get(at).copied().unwrap_or(0));
        }
        QualifierHead { bytes, length: qualifier.len().min(9) }
    }
}

impl<'a> WantedCells<'a> {
    /// Returns the state before the first row.
    pub(super) fn new(columns: &'a [Vec<u8>], gaps: &'a mut Gaps) -> WantedCells<'a> {
        gaps.resize(columns.len() + 1, 0);
        let heads = columns.iter().map(|column| QualifierHead::of(column)).collect();
        WantedCells { columns, heads, next: 0, gaps, steps: 0 }
    }

    /// Compares a wanted column with a qualifier.
    #[inline]
    fn compare(&self, index: usize, qualifier: &[u8], head: QualifierHead) -> Ordering {
        match self.heads[index].cmp(&head) {
            Ordering::Equal if head.length > 8 => compare_bytes(&self.columns[index], qualifier),
            order => order,
        }
    }

    /// Returns whether the column is wanted.
    #[inline]
    fn includes(&mut self, qualifier: &[u8]) -> bool {
        // A smaller column than the last one is of another row.
        let head = QualifierHead::of(qualifier);
        if self.next > 0 && self.compare(self.next - 1, qualifier, head).is_ge() {
            self.next = 0;
        }
        while self.next < self.heads.len() {
            match self.compare(self.next, qualifier, head) {
                Ordering::Less => self.next += 1,
                Ordering::Equal => return true,
                Ordering::Greater => return false,
            }
        }
        false
    }

    /// Steps over a cell of another column. Returns whether the next cell is to be read, too.
    #[inline]
    fn step(&mut self) -> bool {
        let left = &mut self.gaps[self.next];
        if *left > 0 {
            *left -= 1;
            return false;
        }
        self.steps += 1;
        if self.steps > GAP_STEPS_MAX {
            *left = GAP_SEEKS;
            return false;
        }
        true
    }
}

/// Appends rows to a batch.
pub(super) struct PlainRows<'a> {
    newest: NewestOnly,
    /// `None`: all columns.
    wanted: Option<WantedCells<'a>>,
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
        wanted: Option<WantedCells<'a>>,
        family: u8,
        limits: &'a RowLimits<'a>,
        batch: &'a mut CellBatch,
    ) -> PlainRows<'a> {
        PlainRows {
            newest,
            wanted,
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
        // The row of an unwanted cell does not matter: see [`PlainRows::ends_at`].
        if let Some(wanted) = &mut self.wanted
            && !cell.cell_type.is_family_marker()
            && !wanted.includes(cell.qualifier)
        {
            // A family marker may follow in the column without a name.
            let may_seek = self.newest.may_leave(cell.qualifier);
            if !wanted.step() && may_seek {
                let next = wanted.next;
                wanted.steps = 0;
                return self.refuse(RejectReason::InGap(next));
            }
            self.cells += 1;
            return true;
        }
        let last = self.batch.last_column().filter(|_| self.in_row);
        debug_assert_eq!(last.is_some(), self.in_row, "the last row of the batch has a cell");
        let goes_on = last.is_some_and(|(row, _)| equal_bytes(row, cell.row));
        if goes_on {
            let same_column =
                last.is_some_and(|(_, qualifier)| equal_bytes(qualifier, cell.qualifier));
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
            if !self.newest.takes(cell) {
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
            if let Some(wanted) = &mut self.wanted {
                wanted.steps = 0;
            }
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

    /// Returns whether the limits end the reading at a row, which is reached by a seek.
    pub(super) fn ends_at(&self, row: &[u8]) -> bool {
        let goes_on = self.in_row && self.batch.last_column().is_some_and(|(last, _)| last == row);
        !goes_on && (self.is_full() || is_beyond(row, self.limits.end, self.limits.order))
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
