//! How rows of a table are found: the access path and what is read along it.
//!
//! # From conditions to keys
//!
//! A [`KeyCondition`] says what is known of one key column; its terms are ANDed. When the plan is
//! opened each term becomes a set of disjoint byte ranges of the column's key form, the terms'
//! sets are intersected, and the columns' sets are strung together: leading columns that are
//! points give one prefix for each combination, the first column that is not ends the key. What
//! comes out is a list of sorted, disjoint row ranges, or of whole keys.

use std::sync::{Arc, OnceLock};

use coprocessors::columns::{SectionsOfGet, wanted_sections};
use store::TableId;
use types::DataType;
use types::expr::Expr;
use types::rowcode::{KeyColumn, RowLayout};

use crate::catalog::table::{Index, Table};
use crate::logical::{RowLock, TIMESTAMP_COLUMN};
use crate::plan::RowGoal;

/// Rows of a table.
#[derive(Debug)]
pub struct ScanNode {
    /// The table.
    pub table: Arc<Table>,
    /// The name it goes by.
    pub alias: String,
    /// Which rows are met, in which order.
    pub path: AccessPath,
    /// Columns decoded, by position in the layout of the path; the table's `_timestamp` is
    /// [`TIMESTAMP_COLUMN`].
    pub read: Vec<usize>,
    /// Rows wanted, over `read`.
    pub filter: Option<Expr>,
    /// The rows that index entries name are read from the table.
    pub lookup: Option<Lookup>,
    /// Columns yielded: positions in `read`, or in [`Lookup::read`] if there is a look-up.
    pub output: Vec<usize>,
    /// Types of the columns yielded.
    pub types: Vec<DataType>,
    /// `FOR SYSTEM_TIME AS OF`.
    pub as_of: Option<Expr>,
    /// Rows are locked and read again.
    pub lock: Option<LockRows>,
    /// How many rows the step above will take.
    pub goal: Option<RowGoal>,
    /// What [`ScanNode::sections`] found.
    pub sections: OnceLock<SectionsOfGet>,
}

/// The second half of an index scan.
#[derive(Debug)]
pub struct Lookup {
    /// Where the primary key stands in [`ScanNode::read`], in key order.
    pub key: Vec<usize>,
    /// Columns decoded, by position in the table.
    pub read: Vec<usize>,
    /// Rows wanted, over `read`.
    pub filter: Option<Expr>,
}

/// FOR UPDATE and its kin.
#[derive(Debug)]
pub struct LockRows {
    /// Mode, and what to do when the row is locked.
    pub lock: RowLock,
    /// All that is asked of the row, over the table columns read; checked on the newest version.
    pub recheck: Option<Expr>,
}

/// Which keys are read, and in which order.
#[derive(Debug)]
pub struct AccessPath {
    /// The index, or `None` for the table itself.
    pub index: Option<Arc<Index>>,
    /// The table in the store.
    pub store_table: TableId,
    /// How its rows are stored.
    pub layout: Arc<RowLayout>,
    /// What is known of the leading key columns; empty for a full scan.
    pub conditions: Vec<KeyCondition>,
    /// Alternatives in the place of `conditions`, which are empty then: what one of them or another
    /// lets through is read. Empty: there are none.
    pub branches: Vec<Vec<KeyCondition>>,
    /// How many keys or ranges come out, if the plan alone says.
    pub shape: PathShape,
    /// From the last key to the first.
    pub reverse: bool,
    /// The rows must come in key order, across salt buckets too.
    pub ordered: bool,
    /// What reading it costs by estimate, of one combination of values if it is looked up; for
    /// EXPLAIN.
    pub cost: Option<f64>,
}

/// What comes out of the conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathShape {
    /// Whole keys: gets. The number is the product of the lists' lengths.
    Points(usize),
    /// Ranges, so many at most.
    Ranges(usize),
    /// Everything.
    Full,
}

/// What is known of one key column.
#[derive(Debug, Clone)]
pub struct KeyCondition {
    /// All of them hold.
    pub terms: Vec<KeyTerm>,
    /// Type of the key column.
    pub data_type: DataType,
    /// Order of the key column.
    pub key: KeyColumn,
    /// What is compared, for EXPLAIN.
    pub name: String,
}

/// A condition on one key column. Values have no columns and are computed once, at open.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyTerm {
    /// `= value`
    Equal(Expr),
    /// `IN (values)`
    In(Vec<Expr>),
    /// `= ANY (array)`
    InArray(Expr),
    /// `IS NULL`
    IsNull,
    /// `IS NOT NULL`
    IsNotNull,
    /// `< value` and its kin.
    Compare(Comparison, Expr),
    /// `LIKE pattern`: the values that begin with what precedes the pattern's first wildcard.
    Like(Expr),
    /// One of these holds.
    Any(Vec<KeyTerm>),
}

/// So many elements an array is taken to have before it is known: PostgreSQL's guess.
pub const ARRAY_VALUES: usize = 10;

/// An inequality, with the key column on the left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// Returns the operator's symbol.
    pub fn symbol(self) -> &'static str {
        match self {
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }
}

impl KeyTerm {
    /// Returns how many values the term allows at most, of an array about how many; `None` if it is
    /// not a list of values.
    pub fn point_count(&self) -> Option<usize> {
        match self {
            KeyTerm::Equal(_) | KeyTerm::IsNull => Some(1),
            KeyTerm::In(values) => Some(values.len()),
            KeyTerm::InArray(_) => Some(ARRAY_VALUES),
            KeyTerm::Any(terms) => terms.iter().map(KeyTerm::point_count).sum(),
            KeyTerm::IsNotNull | KeyTerm::Compare(..) | KeyTerm::Like(_) => None,
        }
    }

    /// Returns how many ranges the term makes at most.
    pub fn range_count(&self) -> usize {
        match self {
            KeyTerm::In(values) => values.len(),
            KeyTerm::InArray(_) => ARRAY_VALUES,
            KeyTerm::Any(terms) => terms.iter().map(KeyTerm::range_count).sum(),
            KeyTerm::Equal(_)
            | KeyTerm::IsNull
            | KeyTerm::IsNotNull
            | KeyTerm::Compare(..)
            | KeyTerm::Like(_) => 1,
        }
    }

    /// Returns whether only the run tells how many values there are.
    pub fn has_array(&self) -> bool {
        match self {
            KeyTerm::InArray(_) => true,
            KeyTerm::Any(terms) => terms.iter().any(KeyTerm::has_array),
            _ => false,
        }
    }

    /// Returns whether NULL may be among the values.
    pub fn allows_null(&self) -> bool {
        match self {
            KeyTerm::IsNull => true,
            KeyTerm::Any(terms) => terms.iter().any(KeyTerm::allows_null),
            _ => false,
        }
    }
}

impl KeyCondition {
    /// Returns how many values the column may have at most; `None` if that is not a list.
    pub fn point_count(&self) -> Option<usize> {
        self.terms.iter().filter_map(KeyTerm::point_count).min()
    }

    /// Returns how many ranges the condition makes at most.
    pub fn range_count(&self) -> usize {
        // Intersecting sets of a and b ranges gives at most a + b - 1.
        let total: usize = self.terms.iter().map(KeyTerm::range_count).sum();
        self.point_count().unwrap_or(total + 1 - self.terms.len().max(1)).max(1)
    }

    /// Returns whether only the run tells how many values there are.
    pub fn has_array(&self) -> bool {
        self.terms.iter().any(KeyTerm::has_array)
    }

    /// Returns whether the column is fixed to one value.
    pub fn is_single_point(&self) -> bool {
        self.point_count() == Some(1)
    }
}

impl ScanNode {
    /// Returns what gets of the rows look at of their values: of the rows that index entries name,
    /// if there is a look-up.
    pub fn sections(&self) -> types::Result<SectionsOfGet> {
        if let Some(sections) = self.sections.get() {
            return Ok(sections.clone());
        }
        let (layout, read) = match &self.lookup {
            Some(lookup) => (&self.table.layout, &lookup.read),
            None => (&self.path.layout, &self.read),
        };
        let stored: Vec<usize> =
            read.iter().copied().filter(|&column| column != TIMESTAMP_COLUMN).collect();
        let sections = wanted_sections(layout, &stored)?;
        Ok(self.sections.get_or_init(|| sections).clone())
    }

    /// Returns all that is left to be checked after the keys were read.
    pub fn has_filter(&self) -> bool {
        self.filter.is_some()
            || self.lookup.as_ref().is_some_and(|lookup| lookup.filter.is_some())
            || self.lock.is_some()
    }
}

impl AccessPath {
    /// Returns how many regions the table that is read had when it was created.
    pub fn region_count(&self, table: &Table) -> usize {
        match &self.index {
            None => table.descriptor.split_points.len() + 1,
            Some(_) => usize::from(self.layout.salt_buckets).max(1),
        }
    }
}
