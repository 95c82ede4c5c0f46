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
pub mod merge;
pub(crate) mod plain_rows;
pub mod request;
pub mod retention;
pub mod rows;

use crate::cell::{Sequence, Timestamp};

pub use filter::Filter;
pub use request::{CellPosition, CellWindow, FamilyRead, Get, Position, Scan};

/// Versions from `min` (inclusive) to `max` (exclusive).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// First timestamp inside.
    pub min: Timestamp,
    /// First timestamp outside. `Timestamp(i64::MAX)` also lets staged cells in.
    pub max: Timestamp,
}

impl TimeRange {
    /// All versions.
    pub const ALL: TimeRange = TimeRange { min: Timestamp(i64::MIN), max: Timestamp(i64::MAX) };

    /// Returns whether a timestamp is inside.
    pub fn contains(&self, timestamp: Timestamp) -> bool {
        timestamp >= self.min && self.is_before_max(timestamp)
    }

    /// Returns whether a timestamp is before the end of the range.
    pub fn is_before_max(&self, timestamp: Timestamp) -> bool {
        timestamp < self.max || self.max.0 == i64::MAX
    }

    /// Returns the range of all versions at or before `at`.
    pub fn as_of(at: Timestamp) -> TimeRange {
        TimeRange { min: Timestamp(i64::MIN), max: Timestamp(at.0.saturating_add(1)) }
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
}
