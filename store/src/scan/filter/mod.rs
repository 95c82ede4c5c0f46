//! What can be asked of rows and cells while they are read: filters, as plain data.
//!
//! Filters see what [`crate::scan::retention`] lets through: live versions, at most VERSIONS of a
//! column, inside the time range, and only of the families and columns that the read names. Then
//! come the limits of the read: `max_versions`, the cells of a family, pieces, rows. So a filter by
//! value may let an older version through where it refuses the newest, as in HBase.
//!
//! How filters are run is in [`run`]: a row is asked about before its cells are read, and both a
//! row and a cell may be answered with the next place that is worth reading, so that what lies
//! between is skipped by seeks.

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
pub use ranges::RowRange;

/// A condition of user code on whole rows, after versions were resolved.
pub trait RowPredicate: Send + Sync {
    /// Returns whether the row is wanted.
    ///
    /// # Errors
    ///
    /// The scan fails with it.
    fn keep(&self, row: &RowRef<'_>) -> crate::Result<bool>;

    /// One line for EXPLAIN.
    fn describe(&self) -> String;
}

impl fmt::Debug for dyn RowPredicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

/// Which rows and cells a read lets through. Plain data, but for [`Filter::Custom`].
#[derive(Debug, Clone)]
pub enum Filter {
    /// Cells that all of these let through, of rows that all of them keep.
    All(Vec<Filter>),
    /// Cells that one of these lets through, of rows that one of them keeps.
    Any(Vec<Filter>),
    /// What the inner filter lets through, until it refuses something for the first time: there
    /// the scan ends.
    WhileMatch(Box<Filter>),
    /// Only rows of which the inner filter refuses no cell.
    Skip(Box<Filter>),

    /// Rows that begin with these bytes.
    RowPrefix(Vec<u8>),
    /// Rows inside of one of these ranges, which may overlap.
    RowRanges(Vec<RowRange>),
    /// Rows that match one of these patterns.
    FuzzyRow(Vec<FuzzyRow>),
    /// Rows whose key compares so.
    Row(Comparison),
    /// The first rows that are returned: exact over the whole scan, whatever its regions.
    Page(u64),

    /// Cells of families whose name compares so.
    Family(Comparison),
    /// Cells whose qualifier compares so.
    Qualifier(Comparison),
    /// Cells whose qualifier begins with one of these.
    ColumnPrefix(Vec<Vec<u8>>),
    /// Cells whose qualifier is inside of this range.
    ColumnRange {
        /// Where the range begins.
        start: Bound<Vec<u8>>,
        /// Where it ends.
        stop: Bound<Vec<u8>>,
    },
    /// The newest cell of some columns of each row, in cell order.
    ColumnPage {
        /// Columns let through.
        limit: u32,
        /// Where they begin.
        offset: ColumnOffset,
    },

    /// Cells whose value compares so.
    Value(Comparison),
    /// Cells of one column whose value compares so.
    ColumnValue {
        /// Index of the family.
        family: u8,
        /// The qualifier.
        qualifier: Vec<u8>,
        /// What the value must be.
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

    /// Rows of which one column's value compares so. The read must name the column if it names any.
    SingleColumnValue(Box<ColumnCondition>),
    /// Rows that user code keeps.
    Custom(Arc<dyn RowPredicate>),
}

/// Where a [`Filter::ColumnPage`] begins in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnOffset {
    /// After so many columns.
    Count(u32),
    /// With the first column at or after this qualifier, in each family.
    Qualifier(Vec<u8>),
}

/// A condition on a column that decides over its row.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnCondition {
    /// Index of the family.
    pub family: u8,
    /// The qualifier.
    pub qualifier: Vec<u8>,
    /// What the value must be.
    pub value: Comparison,
    /// Keeps rows that do not have the column.
    pub keep_if_missing: bool,
    /// Looks at older versions too; one that compares so is enough.
    pub any_version: bool,
    /// Leaves the column itself out of the answer.
    pub exclude_column: bool,
}

impl ColumnCondition {
    /// Returns the condition on the newest version; rows without the column are dropped.
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

/// How the bytes at hand (left) compare with those of the filter (right).
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
    /// Returns whether it holds between two values that compare so.
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

/// What bytes are compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparator {
    /// All of the bytes, unsigned.
    Binary(Vec<u8>),
    /// As many of the first bytes as are given.
    BinaryPrefix(Vec<u8>),
    /// As many bytes as are given, from an offset on. Bytes that end before are less.
    BinaryComponent {
        /// The bytes.
        bytes: Vec<u8>,
        /// Where they are to stand.
        offset: u32,
    },
    /// A big-endian two's complement number of 8 bytes. Other lengths are unequal, and less.
    Long(i64),
    /// Equal where some bit of the combination with the mask is set, and the lengths are the same.
    Bit {
        /// How the bytes are combined.
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

/// How a [`Comparator::Bit`] combines bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitOp {
    /// Both.
    And,
    /// Any.
    Or,
    /// One of the two.
    Xor,
}

/// A comparison of some bytes of a row or cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// How.
    pub op: CompareOp,
    /// With what.
    pub with: Comparator,
}

impl Comparison {
    /// Returns a comparison with all of the bytes.
    pub fn binary(op: CompareOp, bytes: impl Into<Vec<u8>>) -> Comparison {
        Comparison { op, with: Comparator::Binary(bytes.into()) }
    }
}

/// Returns the least bytes above everything that begins with `prefix`; `None` if nothing is above.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|byte| *byte < 0xff)?;
    let mut end = prefix[..=kept].to_vec();
    end[kept] += 1;
    Some(end)
}
