//! Mutations of rows, lock wait policies, and read consistency: requests to a transaction as
//! plain data.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use crate::cell::CellBatch;
use crate::cell::Timestamp;
use crate::error::RejectedPut;

/// Mutation of one row of a table.
#[derive(Debug, Clone)]
pub struct Mutation {
    /// The row key.
    pub row: Vec<u8>,
    /// The edits.
    pub edits: SmallVec<[Edit; 1]>,
    /// Expectation about the present row.
    pub expect: RowExpectation,
    /// The row's previous state, if the caller has read it under the row's lock, so that
    /// observers need not read it again.
    pub previous: PreviousRow,
    /// The lock that excludes other writers.
    pub locking: Locking,
}

/// One change within a row. A `None` timestamp means the commit time.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// Writes a version of a column.
    Put {
        /// Index of the family.
        family: u8,
        /// The column.
        qualifier: Vec<u8>,
        /// The timestamp.
        timestamp: Option<Timestamp>,
        /// The value.
        value: Vec<u8>,
        /// Cell TTL, relative to the timestamp, at least a millisecond; `None`: only the family's
        /// TTL. Otherwise the shorter one applies.
        ttl: Option<Duration>,
    },
    /// Deletes all columns of all families, up to a timestamp.
    DeleteRow {
        /// The timestamp.
        timestamp: Option<Timestamp>,
    },
    /// Deletes all columns of a family, up to a timestamp.
    DeleteFamily {
        /// Index of the family.
        family: u8,
        /// The timestamp.
        timestamp: Option<Timestamp>,
    },
    /// Deletes the versions of a family's columns that have exactly this timestamp;
    /// [`Timestamp::LATEST`] means the transaction's own puts at the commit time.
    DeleteFamilyVersion {
        /// Index of the family.
        family: u8,
        /// The timestamp.
        timestamp: Timestamp,
    },
    /// Deletes all versions of a column, up to a timestamp.
    DeleteColumn {
        /// Index of the family.
        family: u8,
        /// The column.
        qualifier: Vec<u8>,
        /// The timestamp.
        timestamp: Option<Timestamp>,
    },
    /// Deletes the version of a column that has exactly this timestamp; [`Timestamp::LATEST`] as
    /// above.
    DeleteVersion {
        /// Index of the family.
        family: u8,
        /// The column.
        qualifier: Vec<u8>,
        /// The timestamp.
        timestamp: Timestamp,
    },
}

impl Edit {
    /// Returns the family that it changes; `None` for all.
    pub fn family(&self) -> Option<u8> {
        match self {
            Edit::DeleteRow { .. } => None,
            Edit::Put { family, .. }
            | Edit::DeleteFamily { family, .. }
            | Edit::DeleteFamilyVersion { family, .. }
            | Edit::DeleteColumn { family, .. }
            | Edit::DeleteVersion { family, .. } => Some(*family),
        }
    }

    /// Returns its timestamp; `None` for the commit time.
    pub fn timestamp(&self) -> Option<Timestamp> {
        match self {
            Edit::Put { timestamp, .. }
            | Edit::DeleteRow { timestamp }
            | Edit::DeleteFamily { timestamp, .. }
            | Edit::DeleteColumn { timestamp, .. } => *timestamp,
            Edit::DeleteFamilyVersion { timestamp, .. } | Edit::DeleteVersion { timestamp, .. } => {
                Some(*timestamp)
            }
        }
    }
}

/// Expectation about a row when its mutation is staged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowExpectation {
    /// Nothing.
    Anything,
    /// The row does not exist; otherwise [`Error::RowExists`](crate::Error::RowExists), and
    /// nothing of the batch is staged. Checked after the lock is taken, against own writes and
    /// the newest commits, before the observers run.
    Absent,
}

/// Known state of a row before its mutation.
#[derive(Debug, Clone)]
pub enum PreviousRow {
    /// Unknown: readers must read it.
    Unknown,
    /// The row did not exist.
    Absent,
    /// The row: all families, newest version; a batch of one row.
    Row(Arc<CellBatch>),
}

/// Lock that excludes other writers of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locking {
    /// The row's own lock, taken when the mutation is staged.
    Row,
    /// As `Row`, in the mode for changes that keep the row's key
    /// ([`LockMode::NoKeyExclusive`](crate::lock_mode::LockMode::NoKeyExclusive)).
    RowKeepsKey,
    /// As [`Locking::Row`], for a delete: waiters for the row must not take another one that gets
    /// its key.
    RowGoes,
    /// The row's own lock, regardless of changes since the snapshot: for index entries that
    /// several data rows may need, whose present data row is locked and unchanged.
    Entry,
    /// The lock of another row, which is held already: for index entries that belong to one data
    /// row.
    Covered,
}

impl Mutation {
    /// Returns a mutation without edits and expectation, which takes the row's lock.
    pub fn new(row: impl Into<Vec<u8>>) -> Mutation {
        Mutation {
            row: row.into(),
            edits: SmallVec::new(),
            expect: RowExpectation::Anything,
            previous: PreviousRow::Unknown,
            locking: Locking::Row,
        }
    }

    /// Adds an edit.
    #[must_use]
    pub fn with(mut self, edit: Edit) -> Mutation {
        self.edits.push(edit);
        self
    }

    /// Adds a put at the commit time.
    #[must_use]
    pub fn put(self, family: u8, qualifier: impl Into<Vec<u8>>, value: Vec<u8>) -> Mutation {
        let qualifier = qualifier.into();
        self.with(Edit::Put { family, qualifier, timestamp: None, value, ttl: None })
    }

    /// Returns its approximate size.
    pub fn byte_count(&self) -> usize {
        let value_bytes = |edit: &Edit| match edit {
            Edit::Put { qualifier, value, .. } => qualifier.len() + value.len(),
            _ => 0,
        };
        let edits = self.edits.iter().map(|edit| value_bytes(edit) + size_of::<Edit>());
        let previous = match &self.previous {
            PreviousRow::Row(cells) => cells.byte_count(),
            PreviousRow::Unknown | PreviousRow::Absent => 0,
        };
        self.row.len() + size_of::<Mutation>() + edits.sum::<usize>() + previous
    }

    /// Returns the values of its puts, with their families.
    pub fn puts(&self) -> Vec<RejectedPut> {
        let put = |edit: &Edit| match edit {
            Edit::Put { family, qualifier, value, .. } => Some(RejectedPut {
                family: *family,
                qualifier: qualifier.clone(),
                value: value.clone(),
            }),
            _ => None,
        };
        self.edits.iter().filter_map(put).collect()
    }

    /// Adds the delete of the whole row, up to the commit time.
    #[must_use]
    pub fn delete_row(self) -> Mutation {
        self.with(Edit::DeleteRow { timestamp: None })
    }

    /// Adds the delete of a family, up to the commit time.
    #[must_use]
    pub fn delete_family(self, family: u8) -> Mutation {
        self.with(Edit::DeleteFamily { family, timestamp: None })
    }

    /// Adds the delete of a column, up to the commit time.
    #[must_use]
    pub fn delete_column(self, family: u8, qualifier: impl Into<Vec<u8>>) -> Mutation {
        self.with(Edit::DeleteColumn { family, qualifier: qualifier.into(), timestamp: None })
    }

    /// Returns the mutation with the expectation that the row does not exist.
    #[must_use]
    pub fn expect_absent(mut self) -> Mutation {
        self.expect = RowExpectation::Absent;
        self
    }
}

/// Wait policy for a row lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockWait {
    /// Wait, up to the transaction's lock timeout.
    Wait,
    /// Fail with [`Error::LockNotAvailable`](crate::Error::LockNotAvailable).
    NoWait,
    /// Skip the row: [`Transaction::lock_row`](crate::Transaction::lock_row) returns `false`.
    Skip,
}

/// Copies of a region that may serve reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// The primary only.
    Strong,
    /// A replica, if the primary's region does not answer within the time.
    Timeline {
        /// `primary_call_timeout`
        timeout: Duration,
        /// `max_staleness`: a statement whose snapshot would be staler is not answered by
        /// replicas; `None`: no limit.
        max_staleness: Option<Duration>,
    },
}
