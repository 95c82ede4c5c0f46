//! Reads: what can be asked ([`Get`], [`Scan`]), how sources are merged, and what is visible.
//!
//! A request is plain data, but for its filter, which runs where the data is.

pub mod merge;
pub mod retention;

use std::sync::Arc;

use crate::cell::RowRef;
use crate::cell::{Sequence, Timestamp};

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

impl ReadSpec {
    /// Returns whether the read may see what happened at `sequence`.
    pub fn sees(&self, sequence: Sequence) -> bool {
        sequence <= if sequence.is_staged() { self.staged_through } else { self.snapshot }
    }
}

/// A filter that runs in the region, on whole rows after versions were resolved.
pub trait Filter: Send + Sync {
    /// Returns whether the row is wanted.
    ///
    /// # Errors
    ///
    /// The scan fails with it.
    fn keep(&self, row: &RowRef<'_>) -> crate::Result<bool>;

    /// One line for EXPLAIN.
    fn describe(&self) -> String;
}

/// Reads one row.
#[derive(Clone)]
pub struct Get {
    /// The row key.
    pub row: Vec<u8>,
    /// Families by index; `None` for all.
    pub families: Option<Vec<u8>>,
    /// Versions considered.
    pub time_range: TimeRange,
    /// Versions returned of each column.
    pub max_versions: u32,
}

impl Get {
    /// Returns a get of the newest version of all columns.
    pub fn new(row: impl Into<Vec<u8>>) -> Get {
        Get { row: row.into(), families: None, time_range: TimeRange::ALL, max_versions: 1 }
    }
}

/// Reads a range of rows.
#[derive(Clone)]
pub struct Scan {
    /// First row; empty for the first of the table.
    pub start: Vec<u8>,
    /// Row to stop before; `None` for none.
    pub stop: Option<Vec<u8>>,
    /// From the last row to the first.
    pub reverse: bool,
    /// Families by index; `None` for all. A row without a cell in them is not returned.
    pub families: Option<Vec<u8>>,
    /// Versions considered.
    pub time_range: TimeRange,
    /// Versions returned of each column.
    pub max_versions: u32,
    /// Returns markers and everything not yet dropped; retention does not apply.
    pub raw: bool,
    /// Rows to return at most.
    pub limit: Option<u64>,
    /// Rows wanted.
    pub filter: Option<Arc<dyn Filter>>,
}

impl Scan {
    /// Returns a forward scan of the newest versions of `start..stop`.
    pub fn range(start: impl Into<Vec<u8>>, stop: Option<Vec<u8>>) -> Scan {
        Scan {
            start: start.into(),
            stop,
            reverse: false,
            families: None,
            time_range: TimeRange::ALL,
            max_versions: 1,
            raw: false,
            limit: None,
            filter: None,
        }
    }

    /// Returns a forward scan of the newest versions of all rows.
    pub fn all() -> Scan {
        Scan::range(Vec::new(), None)
    }
}
