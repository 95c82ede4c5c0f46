//! What a transaction is asked to do to one row that depends on the row: increments, appends,
//! deletes of the newest version, all of it under a condition. Plain data.
//!
//! A [`RowMutation`] is carried out in its order, under the row's lock, whole or not at all;
//! [`crate::transaction::Transaction::mutate_row`] does it. What does not depend on the row, and
//! batches of many rows, are [`Mutation`](crate::mutation::Mutation)s.

use std::time::Duration;

use crate::mutation::Edit;
use crate::scan::TimeRange;
use crate::scan::filter::{CompareOp, Filter};

/// Names a column of a table, of whatever row.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnName {
    /// Index of the family.
    pub family: u8,
    /// The qualifier.
    pub qualifier: Vec<u8>,
}

impl ColumnName {
    /// Returns the column of a family with this qualifier.
    pub fn new(family: u8, qualifier: impl Into<Vec<u8>>) -> ColumnName {
        ColumnName { family, qualifier: qualifier.into() }
    }
}

/// Changes of one row, in order.
#[derive(Debug, Clone)]
pub struct RowMutation {
    /// The row key.
    pub row: Vec<u8>,
    /// What to do.
    pub changes: Vec<RowChange>,
    /// Versions that conditions, increments and appends look at.
    pub time_range: TimeRange,
    /// TTL of what increments and appends write; `None`: that of the version before, if it has one.
    pub ttl: Option<Duration>,
}

/// One change of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum RowChange {
    /// Puts or deletes, whatever the row is.
    Edit(Edit),
    /// Adds to a number of 64 bits, big endian, that begins at zero and wraps around.
    Increment {
        /// Where the number is.
        column: ColumnName,
        /// What to add.
        amount: i64,
    },
    /// Adds bytes to the end of a value, which begins as nothing.
    Append {
        /// Where the value is.
        column: ColumnName,
        /// The bytes.
        value: Vec<u8>,
    },
    /// Deletes the newest version of a column, so that the one before it is seen; the column must
    /// be read for that.
    DeleteNewest {
        /// The column.
        column: ColumnName,
    },
}

impl RowChange {
    /// Returns whether it is an increment or an append.
    pub(crate) fn reads_value(&self) -> bool {
        matches!(self, RowChange::Increment { .. } | RowChange::Append { .. })
    }
}

/// The value that an increment or append has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Where.
    pub column: ColumnName,
    /// The new value.
    pub value: Vec<u8>,
}

impl Written {
    /// Returns the value as the number that an increment writes; `None` if it is not 8 bytes long.
    pub fn number(&self) -> Option<i64> {
        self.value.as_slice().try_into().ok().map(i64::from_be_bytes)
    }
}

/// What must hold for a row.
#[derive(Debug, Clone)]
pub enum Condition {
    /// The row does not have the column.
    Absent(ColumnName),
    /// The row has the column, and its newest value (left) compares so with this one (right), byte
    /// by byte.
    Value {
        /// The column.
        column: ColumnName,
        /// How.
        op: CompareOp,
        /// With what.
        value: Vec<u8>,
    },
    /// The row has something that the filter lets through.
    Row(Filter),
}

impl RowMutation {
    /// Returns a mutation that does nothing yet and looks at all versions.
    pub fn new(row: impl Into<Vec<u8>>) -> RowMutation {
        RowMutation { row: row.into(), changes: Vec::new(), time_range: TimeRange::ALL, ttl: None }
    }

    /// Adds a change.
    #[must_use]
    pub fn with(mut self, change: RowChange) -> RowMutation {
        self.changes.push(change);
        self
    }

    /// Adds a put at the commit time.
    #[must_use]
    pub fn put(self, column: ColumnName, value: impl Into<Vec<u8>>) -> RowMutation {
        let ColumnName { family, qualifier } = column;
        let value = value.into();
        self.with(RowChange::Edit(Edit::Put {
            family,
            qualifier,
            timestamp: None,
            value,
            ttl: None,
        }))
    }

    /// Adds the delete of the whole row, up to the commit time.
    #[must_use]
    pub fn delete_row(self) -> RowMutation {
        self.with(RowChange::Edit(Edit::DeleteRow { timestamp: None }))
    }

    /// Adds the delete of all versions of a column, up to the commit time.
    #[must_use]
    pub fn delete_column(self, column: ColumnName) -> RowMutation {
        let ColumnName { family, qualifier } = column;
        self.with(RowChange::Edit(Edit::DeleteColumn { family, qualifier, timestamp: None }))
    }

    /// Adds the delete of the newest version of a column.
    #[must_use]
    pub fn delete_newest(self, column: ColumnName) -> RowMutation {
        self.with(RowChange::DeleteNewest { column })
    }

    /// Adds an increment.
    #[must_use]
    pub fn increment(self, column: ColumnName, amount: i64) -> RowMutation {
        self.with(RowChange::Increment { column, amount })
    }

    /// Adds an append.
    #[must_use]
    pub fn append(self, column: ColumnName, value: impl Into<Vec<u8>>) -> RowMutation {
        self.with(RowChange::Append { column, value: value.into() })
    }
}
