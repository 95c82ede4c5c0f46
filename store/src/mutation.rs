//! What a transaction is asked: what to write, row by row, how to lock rows, where to read. Plain
//! data.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use crate::cell::CellBatch;
use crate::cell::Timestamp;

/// The change of one row of a table.
#[derive(Debug, Clone)]
pub struct Mutation {
    /// The row key.
    pub row: Vec<u8>,
    /// The cells to write.
    pub edits: SmallVec<[Edit; 1]>,
    /// What must hold for the row now.
    pub expect: Expect,
    /// The row's state before, if the caller has read it under the row's lock: observers need not
    /// read it again.
    pub previous: Previous,
    /// Who keeps others from changing the row.
    pub locking: Locking,
}

/// One change within a row. A `None` timestamp is the commit time.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// Writes a version of a column.
    Put {
        /// Index of the family.
        family: u8,
        /// The column.
        qualifier: Vec<u8>,
        /// The version.
        timestamp: Option<Timestamp>,
        /// The value.
        value: Vec<u8>,
        /// How long after its timestamp it expires, at least a millisecond; `None`: when the
        /// family says so. The family's TTL counts too if it is the shorter one.
        ttl: Option<Duration>,
    },
    /// Deletes all columns of all families, up to a version.
    DeleteRow {
        /// The version.
        timestamp: Option<Timestamp>,
    },
    /// Deletes all columns of a family, up to a version.
    DeleteFamily {
        /// Index of the family.
        family: u8,
        /// The version.
        timestamp: Option<Timestamp>,
    },
    /// Deletes the versions of a family's columns that have exactly this timestamp;
    /// [`Timestamp::LATEST`] is that of what the transaction has put at the commit time.
    DeleteFamilyVersion {
        /// Index of the family.
        family: u8,
        /// The version.
        timestamp: Timestamp,
    },
    /// Deletes all versions of a column, up to a version.
    DeleteColumn {
        /// Index of the family.
        family: u8,
        /// The column.
        qualifier: Vec<u8>,
        /// The version.
        timestamp: Option<Timestamp>,
    },
    /// Deletes the version of a column that has exactly this timestamp; [`Timestamp::LATEST`] as
    /// above.
    DeleteVersion {
        /// Index of the family.
        family: u8,
        /// The column.
        qualifier: Vec<u8>,
        /// The version.
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

    /// Returns its version; `None` for the commit time.
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

/// What must hold for a row when its mutation is staged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing.
    Anything,
    /// There is no such row; else [`Error::RowExists`](crate::Error::RowExists) and nothing of the
    /// batch is staged. Checked after the lock is taken, against own writes and the newest commits,
    /// before the observers run.
    Absent,
}

/// A row's state before its mutation.
#[derive(Debug, Clone)]
pub enum Previous {
    /// Not known: who needs it reads it.
    Unknown,
    /// There was no row.
    Absent,
    /// The row as it was: all families, newest version; a batch of one row.
    Row(Arc<CellBatch>),
}

/// Who keeps others from changing a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locking {
    /// The row's own lock, taken when the mutation is staged.
    Row,
    /// The same, in the mode of those who do not change the row's key
    /// ([`LockMode::NoKeyExclusive`](crate::lock_mode::LockMode::NoKeyExclusive)).
    RowKeepsKey,
    /// The same as [`Locking::Row`], of a delete: who waits for the row is not to take another one
    /// that gets its key.
    RowGoes,
    /// The row's own lock, whatever has become of the row since the snapshot: for index entries
    /// that several data rows may want, whose present data row is locked and has not changed.
    Entry,
    /// The lock of another row, held already: for index entries that only one data row can own.
    Covered,
}

impl Mutation {
    /// Returns a mutation without edits, which expects nothing and takes the row's lock.
    pub fn new(row: impl Into<Vec<u8>>) -> Mutation {
        Mutation {
            row: row.into(),
            edits: SmallVec::new(),
            expect: Expect::Anything,
            previous: Previous::Unknown,
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

    /// Returns about how many bytes it takes.
    pub fn byte_count(&self) -> usize {
        let value_bytes = |edit: &Edit| match edit {
            Edit::Put { qualifier, value, .. } => qualifier.len() + value.len(),
            _ => 0,
        };
        let edits = self.edits.iter().map(|edit| value_bytes(edit) + size_of::<Edit>());
        let previous = match &self.previous {
            Previous::Row(cells) => cells.byte_count(),
            Previous::Unknown | Previous::Absent => 0,
        };
        self.row.len() + size_of::<Mutation>() + edits.sum::<usize>() + previous
    }

    /// Returns the values that are put, with their families.
    pub fn puts(&self) -> Vec<(u8, Vec<u8>)> {
        let put = |edit: &Edit| match edit {
            Edit::Put { family, value, .. } => Some((*family, value.clone())),
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

    /// Returns the mutation with the expectation that there is no such row.
    #[must_use]
    pub fn expect_absent(mut self) -> Mutation {
        self.expect = Expect::Absent;
        self
    }
}

/// What to do when a row lock is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockWait {
    /// Wait, up to the transaction's lock time-out.
    Wait,
    /// Fail with [`Error::LockNotAvailable`](crate::Error::LockNotAvailable).
    NoWait,
    /// Give up the row: [`Transaction::lock_row`](crate::Transaction::lock_row) returns `false`.
    Skip,
}

/// Where reads may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// The primary only.
    Strong,
    /// To a replica, if the primary's region does not answer within the time.
    Timeline {
        /// `primary_call_timeout`
        timeout: Duration,
    },
}
