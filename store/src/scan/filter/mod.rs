//! Filters on rows and cells, as plain data.
//!
//! Filters see the output of [`crate::scan::retention`]: live versions, at most VERSIONS of a
//! column, inside the time range, and only of the families and columns that the read names. Then
//! the limits of the read apply: `max_versions`, the cells of a family, partial rows, rows. So a
//! filter by value may return an older version where it rejects the newest, as in HBase.
//!
//! [`run`] evaluates filters: a row is checked before its cells are read, and the result for a
//! row or a cell may name the next position that is worth reading, so that the cells between are
//! skipped by seeks.

mod compare;
mod fuzzy;
mod ranges;
pub mod run;

use std::cmp::Ordering;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use crate::cell::{RowRef, Timestamp};

pub use fuzzy::FuzzyRow;
pub use ranges::FilterRange;

/// A user-defined condition on whole rows, after versions were resolved.
pub trait RowPredicate: Send + Sync {
    /// Returns whether the row passes.
    ///
    /// # Errors
    ///
    /// The scan fails with the error.
    fn keep(&self, row: &RowRef<'_>) -> crate::Result<bool>;

    /// Describes the condition in one line for EXPLAIN.
    fn describe(&self) -> String;
}

impl fmt::Debug for dyn RowPredicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

/// A filter on the rows and cells of a read. Plain data, except for [`Filter::Custom`].
#[derive(Debug, Clone)]
pub enum Filter {
    /// Cells that pass all of these, of rows that pass all of them.
    All(Vec<Filter>),
    /// Cells that pass one of these, of rows that pass one of them.
    Any(Vec<Filter>),
    /// Cells that pass the inner filter, until it rejects something for the first time; the scan
    /// ends there.
    WhileMatch(Box<Filter>),
    /// Rows of which the inner filter rejects no cell.
    Skip(Box<Filter>),

    /// Rows that begin with these bytes.
    RowPrefix(Vec<u8>),
    /// Rows inside of one of these ranges, which may overlap.
    RowRanges(Vec<FilterRange>),
    /// Rows that match one of these patterns.
    FuzzyRow(Vec<FuzzyRow>),
    /// Rows whose key satisfies the comparison.
    Row(Comparison),
    /// The first rows of the result: exact over the whole scan, regardless of regions.
    Page(u64),

    /// Cells of families whose name satisfies the comparison.
    Family(Comparison),
    /// Cells whose qualifier satisfies the comparison.
    Qualifier(Comparison),
    /// Cells whose qualifier begins with one of these.
    ColumnPrefix(Vec<Vec<u8>>),
    /// Cells whose qualifier is inside of this range.
    ColumnRange {
        /// Start of the range.
        start: Bound<Vec<u8>>,
        /// End of the range.
        stop: Bound<Vec<u8>>,
    },
    /// The newest cell of some columns of each row, in cell order.
    ColumnPage {
        /// Maximal number of columns.
        limit: u32,
        /// First column.
        offset: ColumnOffset,
    },

    /// Cells whose value satisfies the comparison.
    Value(Comparison),
    /// Cells of one column whose value satisfies the comparison.
    ColumnValue {
        /// Index of the family.
        family: u8,
        /// The qualifier.
        qualifier: Vec<u8>,
        /// Condition on the value.
        value: Comparison,
    },
    /// Cells of these versions.
    Timestamps(Vec<Timestamp>),
    /// The first cell of each row.
    FirstKeyOnly,
    /// All cells, without their values.
    KeyOnly {
        /// The value is replaced by its length: 4 bytes, big endian.
        length_as_value: bool,
    },

    /// Rows in which one column's value satisfies the comparison. If the read names columns, it
    /// must name this one.
    SingleColumnValue(Box<ColumnCondition>),
    /// Rows that pass user code.
    Custom(Arc<dyn RowPredicate>),
}

/// Start of a [`Filter::ColumnPage`] in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnOffset {
    /// After this number of columns.
    Count(u32),
    /// At the first column at or after this qualifier, in each family.
    Qualifier(Vec<u8>),
}

/// A condition on a column that decides about its row.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnCondition {
    /// Index of the family.
    pub family: u8,
    /// The qualifier.
    pub qualifier: Vec<u8>,
    /// Condition on the value.
    pub value: Comparison,
    /// True to keep rows that do not have the column.
    pub keep_if_missing: bool,
    /// True to check older versions too; one that satisfies the comparison suffices.
    pub any_version: bool,
    /// True to omit the column itself from the result.
    pub exclude_column: bool,
}

impl ColumnCondition {
    /// Returns the condition on the newest version; rows without the column are rejected.
    pub fn new(family: u8, qualifier: impl Into<Vec<u8>>, value: Comparison) -> ColumnCondition {
        ColumnCondition {
            family,
            qualifier: qualifier.into(),
            value,
            keep_if_missing: false,
            any_version: false,
            exclude_column: false,
        }
    }
}

/// Comparison operator between the read bytes (left) and those of the filter (right).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompareOp {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `>=`
    GreaterOrEqual,
    /// `>`
    Greater,
}

impl CompareOp {
    /// Returns whether the operator holds for this ordering.
    pub fn holds(self, ordering: Ordering) -> bool {
        match self {
            CompareOp::Less => ordering.is_lt(),
            CompareOp::LessOrEqual => ordering.is_le(),
            CompareOp::Equal => ordering.is_eq(),
            CompareOp::NotEqual => ordering.is_ne(),
            CompareOp::GreaterOrEqual => ordering.is_ge(),
            CompareOp::Greater => ordering.is_gt(),
        }
    }
}

/// Right-hand side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparator {
    /// All of the bytes, unsigned.
    Binary(Vec<u8>),
    /// The first bytes, as many as given.
    BinaryPrefix(Vec<u8>),
    /// Bytes from an offset on, as many as given. Bytes that end before are less.
    BinaryComponent {
        /// The bytes.
        bytes: Vec<u8>,
        /// The offset.
        offset: u32,
    },
    /// A big-endian two's complement number of 8 bytes. Other lengths are unequal, and less.
    Long(i64),
    /// Equal where some bit of the combination with the mask is set, and the lengths are the same.
    Bit {
        /// Operator that combines the bytes.
        op: BitOp,
        /// The mask.
        mask: Vec<u8>,
    },
    /// Equal where there is no byte.
    Null,
    /// Equal where the text contains this, regardless of case.
    Substring(String),
    /// Equal where this regular expression finds something.
    Regex(String),
}

/// Operator by which a [`Comparator::Bit`] combines bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitOp {
    /// Both bits.
    And,
    /// Either bit.
    Or,
    /// Exactly one of the bits.
    Xor,
}

/// A comparison of bytes of a row or cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// The operator.
    pub op: CompareOp,
    /// The right-hand side.
    pub with: Comparator,
}

impl Comparison {
    /// Returns a comparison with all of the bytes.
    pub fn binary(op: CompareOp, bytes: impl Into<Vec<u8>>) -> Comparison {
        Comparison { op, with: Comparator::Binary(bytes.into()) }
    }
}

/// Returns the least bytes above all bytes that begin with `prefix`; `None` if there are none.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|byte| *byte < 0xff)?;
    let mut end = prefix[..=kept].to_vec();
    end[kept] += 1;
    Some(end)
}
