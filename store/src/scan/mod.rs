//! Reads: requests ([`Get`], [`Scan`]), merging of sources, visibility, and filtering.
//!
//! A request is plain data, except for user code in its filter, which runs where the data is.
//!
//! # Pipeline
//!
//! 1. [`merge`]: merges the cells of one family of one region, from all memstores and files, in
//!    order.
//! 2. [`retention`]: selects the live versions of the snapshot, at most VERSIONS of a column,
//!    inside the time range.
//! 3. [`filter`]: applies the filter of the request. Rows are rejected before their cells are
//!    read.
//! 4. [`rows`]: applies the limits on versions, cells and partial rows, and fills the batch.
//!
//! A scan with [`RowVersions`] reads raw cells by steps 1 and 4, and [`row_versions`] applies
//! step 2 for each version of a row.
//!
//! If steps 2 and 3 need to know only one cell at a time, [`plain_rows`] does all of it.

pub mod filter;
pub(crate) mod rules;
pub(crate) mod history;
pub mod merge;
pub(crate) mod plain_rows;
pub mod request;
pub mod retention;
pub(crate) mod row_versions;
pub mod rows;

use crate::cell::{KeyParts, Sequence, Timestamp};

pub use filter::Filter;
pub use request::{CellPosition, CellWindow, FamilyRead, Get, RowVersions, Scan, ScanPosition};
pub use row_versions::VERSION_FAMILY;

/// Versions from `min` (inclusive) to `max` (exclusive).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// First timestamp inside.
    pub min: Timestamp,
    /// First timestamp outside. `Timestamp(i64::MAX)` also includes staged cells.
    pub max: Timestamp,
    /// True for time travel to the moment before `max`: later cells neither end nor evict a
    /// version, and versions that have expired since are visible. An error where retention has
    /// dropped versions that were visible then:
    /// [`Error::BeforeHistory`](crate::Error::BeforeHistory).
    pub as_of: bool,
}

impl TimeRange {
    /// All versions.
    pub const ALL: TimeRange = TimeRange::new(Timestamp(i64::MIN), Timestamp(i64::MAX));

    /// Returns the range of the present versions from `min` (inclusive) to `max` (exclusive).
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

    /// Returns the range for the state at the moment `at`: of cells written at that time or
    /// before.
    pub fn as_of(at: Timestamp) -> TimeRange {
        let max = Timestamp(at.0.saturating_add(1));
        TimeRange { as_of: true, ..TimeRange::new(Timestamp(i64::MIN), max) }
    }
}

/// Read specification: the versions that a read sees within one family.
#[derive(Debug, Clone, Copy)]
pub struct ReadSpec {
    /// Commits up to here are visible.
    pub snapshot: Sequence,
    /// Staged cells up to here are visible; their sequences have
    /// [`Sequence::STAGED`] set. `Sequence(0)` hides all of them.
    pub staged_through: Sequence,
    /// Range of timestamps.
    pub time_range: TimeRange,
    /// Maximal number of versions of each column; also limited by the family.
    pub max_versions: u32,
    /// True to return markers too, without retention.
    pub raw: bool,
    /// Time for expiry: microseconds since 1970.
    pub now_micros: i64,
}

/// Oldest snapshot and time of open reads. Flushes and compactions retain the cells visible to
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Horizon {
    /// No open or future read has an older snapshot.
    pub snapshot: Sequence,
    /// No open or future read uses an earlier time for expiry: microseconds since 1970.
    pub now_micros: i64,
}

impl ReadSpec {
    /// Returns whether cells with this sequence are visible to the read.
    pub fn sees(&self, sequence: Sequence) -> bool {
        sequence <= if sequence.is_staged() { self.staged_through } else { self.snapshot }
    }

    /// Returns whether a cell is relevant for the read, even if not returned.
    #[inline]
    pub(crate) fn is_relevant(&self, cell: &KeyParts<'_>) -> bool {
        self.sees(cell.sequence)
            && (!self.time_range.as_of || self.time_range.is_before_max(cell.timestamp))
    }

    /// Returns the time by which the read decides expiry: microseconds since 1970.
    pub(crate) fn expires_micros(&self) -> i64 {
        match self.time_range.as_of {
            true => self.now_micros.min(self.time_range.max.0.saturating_sub(1)),
            false => self.now_micros,
        }
    }
}
