//! Reads: what can be asked ([`Get`], [`Scan`]), how sources are merged, what is visible, and which
//! of it passes the filter.
//!
//! A request is plain data, but for user code in its filter, which runs where the data is.
//!
//! # From cells to rows
//!
//! 1. [`merge`]: the cells of one family of one region, from all memstores and files, in order.
//! 2. [`retention`]: the live versions of the snapshot, at most VERSIONS of a column, inside the
//!    time range.
//! 3. [`filter`]: what the request wants of those. Rows are refused before their cells are read.
//! 4. [`rows`]: versions, cells and pieces are counted; what is left goes to the batch.
//!
//! Where neither 2 nor 3 needs to know more than one cell, [`plain_rows`] does all of it.

pub mod filter;
pub(crate) mod history;
pub mod merge;
pub(crate) mod plain_rows;
pub mod request;
pub mod retention;
pub mod rows;

use crate::cell::{KeyParts, Sequence, Timestamp};

pub use filter::Filter;
pub use request::{CellPosition, CellWindow, FamilyRead, Get, Position, Scan};

/// Versions from `min` (inclusive) to `max` (exclusive).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// First timestamp inside.
    pub min: Timestamp,
    /// First timestamp outside. `Timestamp(i64::MAX)` also lets staged cells in.
    pub max: Timestamp,
    /// Whether the state of the moment before `max` is wanted: what came later neither ends nor
    /// evicts a version, and what has expired since is there. An error where retention has dropped
    /// some of it: [`Error::BeforeHistory`](crate::Error::BeforeHistory).
    pub as_of: bool,
}

impl TimeRange {
    /// All versions.
    pub const ALL: TimeRange = TimeRange::new(Timestamp(i64::MIN), Timestamp(i64::MAX));

    /// Returns the range of the versions from `min` (inclusive) to `max` (exclusive) that there
    /// are now.
    pub const fn new(min: Timestamp, max: Timestamp) -> TimeRange {
        TimeRange { min, max, as_of: false }
    }

    /// Returns whether a timestamp is inside.
    pub fn contains(&self, timestamp: Timestamp) -> bool {
        timestamp >= self.min && self.is_before_max(timestamp)
    }

    /// Returns whether a timestamp is before the end of the range.
    pub fn is_before_max(&self, timestamp: Timestamp) -> bool {
        timestamp < self.max || self.max.0 == i64::MAX
    }

    /// Returns the range that shows the state of the moment `at`: of what was written at that time
    /// or before.
    pub fn as_of(at: Timestamp) -> TimeRange {
        let max = Timestamp(at.0.saturating_add(1));
        TimeRange { as_of: true, ..TimeRange::new(Timestamp(i64::MIN), max) }
    }
}

/// Which versions a read sees, within one family.
#[derive(Debug, Clone, Copy)]
pub struct ReadSpec {
    /// Commits up to here are visible.
    pub snapshot: Sequence,
    /// Staged cells up to here are visible; their sequences have
    /// [`Sequence::STAGED`] set. `Sequence(0)` hides all of them.
    pub staged_through: Sequence,
    /// Versions considered.
    pub time_range: TimeRange,
    /// Versions returned of each column; also bounded by the family.
    pub max_versions: u32,
    /// Markers too, and no retention.
    pub raw: bool,
    /// The time that decides expiry: microseconds since 1970.
    pub now_micros: i64,
}

/// How far back open reads look. What one of them may see is kept by flushes and compactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Horizon {
    /// No read that is open, or will be, has an older snapshot.
    pub snapshot: Sequence,
    /// None judges by an earlier time what has expired: microseconds since 1970.
    pub now_micros: i64,
}

impl ReadSpec {
    /// Returns whether the read may see what happened at `sequence`.
    pub fn sees(&self, sequence: Sequence) -> bool {
        sequence <= if sequence.is_staged() { self.staged_through } else { self.snapshot }
    }

    /// Returns whether a cell counts for the read, be it seen or not.
    #[inline]
    pub(crate) fn regards(&self, cell: &KeyParts<'_>) -> bool {
        self.sees(cell.sequence)
            && (!self.time_range.as_of || self.time_range.is_before_max(cell.timestamp))
    }

    /// Returns the time by which the read judges what has expired: microseconds since 1970.
    pub(crate) fn expires_micros(&self) -> i64 {
        match self.time_range.as_of {
            true => self.now_micros.min(self.time_range.max.0.saturating_sub(1)),
            false => self.now_micros,
        }
    }
}
