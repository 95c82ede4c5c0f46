//! Mutations of one row that depend on its content: increments, appends, deletes of the newest
//! version, optionally under a condition. Plain data.
//!
//! [`crate::transaction::Transaction::mutate_row`] executes a [`RowMutation`] in order, under the
//! row's lock, atomically. Mutations that do not depend on the row, and batches of many rows, are
//! [`Mutation`](crate::mutation::Mutation)s.

use std::time::Duration;

use crate::mutation::Edit;
use crate::scan::TimeRange;
use crate::scan::filter::{CompareOp, Filter};

/// A column of a table.
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
    /// The changes.
    pub changes: Vec<RowChange>,
    /// Time range of the versions that conditions, increments and appends read.
    pub time_range: TimeRange,
    /// TTL of the results of increments and appends; `None`: that of the previous version, if it
    /// has one.
    pub ttl: Option<Duration>,
}

/// One change of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum RowChange {
    /// Puts or deletes that do not depend on the row.
    Edit(Edit),
    /// Adds to a 64-bit big-endian integer, which starts at zero and wraps around.
    Increment {
        /// The column.
        column: ColumnName,
        /// The amount to add.
        amount: i64,
    },
    /// Appends bytes to a value, which starts empty.
    Append {
        /// The column.
        column: ColumnName,
        /// The bytes.
        value: Vec<u8>,
    },
    /// Deletes the newest version of a column, so that the previous one becomes visible; this
    /// requires a read of the column.
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

/// The result of an increment or append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenValue {
    /// The column.
    pub column: ColumnName,
    /// The new value.
    pub value: Vec<u8>,
}

impl WrittenValue {
    /// Returns the value as the number that an increment writes; `None` if it is not 8 bytes long.
    pub fn number(&self) -> Option<i64> {
        self.value.as_slice().try_into().ok().map(i64::from_be_bytes)
    }
}

/// Condition on a row.
#[derive(Debug, Clone)]
pub enum Condition {
    /// The row does not have the column.
    Absent(ColumnName),
    /// The row has the column, and the comparison of its newest value (left) with this one
    /// (right), byte by byte, holds.
    Value {
        /// The column.
        column: ColumnName,
        /// The operator.
        op: CompareOp,
        /// The right-hand side.
        value: Vec<u8>,
    },
    /// The row passes the filter.
    Row(Filter),
}

impl RowMutation {
    /// Returns a mutation without changes, with an unlimited time range.
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
