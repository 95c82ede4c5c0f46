//! Scan nodes and access paths: the keys that are read, and the columns that are decoded.
//!
//! # From conditions to keys
//!
//! A [`KeyCondition`] is the conjunction of its terms on one key column. When the plan is opened,
//! each term becomes a set of disjoint byte ranges of the column's key encoding, the sets of the
//! terms are intersected, and the sets of the columns are concatenated: leading columns with
//! points give one prefix for each combination, and the first column with a range ends the key.
//! The result is a list of sorted, disjoint row ranges, or of whole keys.

use std::sync::{Arc, OnceLock};

use coprocessors::columns::{SectionsOfGet, wanted_sections};
use store::TableId;
use types::DataType;
use types::expr::{EvalContext, Expr};
use types::inverted::{TermOperator, TermQuery};
use types::rowcode::{KeyColumn, RowLayout};

use crate::ast::SystemTime;
use crate::catalog::table::{Index, Table};
use crate::logical::{RowLock, pseudo_column_type};
use crate::plan::RowGoal;

/// Scan of a table or an index.
#[derive(Debug)]
pub struct ScanNode {
    /// The table.
    pub table: Arc<Table>,
    /// Alias.
    pub alias: String,
    /// Access path.
    pub path: AccessPath,
    /// Decoded columns, by position in the layout of the path; the table's `_timestamp` is
    /// [`TIMESTAMP_COLUMN`](crate::logical::TIMESTAMP_COLUMN).
    pub read: Vec<usize>,
    /// Filter over `read`.
    pub filter: Option<Expr>,
    /// Fetch from the base table by the keys in index entries.
    pub lookup: Option<BaseTableFetchNode>,
    /// Output columns: positions in `read`, or in [`BaseTableFetchNode::read`] with a base-table
    /// fetch.
    pub output: Vec<usize>,
    /// Types of the output columns.
    pub types: Vec<DataType>,
    /// `FOR SYSTEM_TIME`.
    pub system_time: Option<SystemTime<Expr>>,
    /// The same scan without its index: for a time before the history of the index, and if its
    /// terms do not restrict the scan of an inverted index.
    pub without_index: Option<Arc<ScanNode>>,
    /// Number of rows with the terms of an inverted index above which the scan
    /// [without it](ScanNode::without_index) is cheaper.
    pub index_rows_max: Option<u64>,
    /// Row locks.
    pub lock: Option<ScanLock>,
    /// Row goal of the parent node.
    pub goal: Option<RowGoal>,
    /// Cached result of [`ScanNode::sections`].
    pub sections: OnceLock<SectionsOfGet>,
}

/// Base-table fetch of an index scan.
#[derive(Debug)]
pub struct BaseTableFetchNode {
    /// Positions of the primary key in [`ScanNode::read`], in key order.
    pub key: Vec<usize>,
    /// Decoded columns, by position in the table.
    pub read: Vec<usize>,
    /// Filter over `read`.
    pub filter: Option<Expr>,
}

/// Row locks of a scan: FOR UPDATE, FOR NO KEY UPDATE, FOR SHARE or FOR KEY SHARE.
#[derive(Debug)]
pub struct ScanLock {
    /// Lock mode, and behaviour for a held lock.
    pub lock: RowLock,
    /// Complete condition over the table columns read; re-evaluated on the newest version.
    pub recheck: Option<Expr>,
}

/// Access path: the keys that are read, and their order.
#[derive(Debug)]
pub struct AccessPath {
    /// Index, or `None` for the table itself.
    pub index: Option<Arc<Index>>,
    /// Store table.
    pub store_table: TableId,
    /// Row layout of the store table.
    pub layout: Arc<RowLayout>,
    /// Conditions on the leading key columns; empty for a full scan.
    pub conditions: Vec<KeyCondition>,
    /// Alternatives instead of `conditions`, which are then empty: the union of their keys is
    /// read. Empty: no alternatives.
    pub branches: Vec<Vec<KeyCondition>>,
    /// Condition on the terms of an inverted index, which has no other.
    pub inverted: Option<InvertedCondition>,
    /// Of a local index: conditions on the leading columns of the table's key, which restrict the
    /// regions that are read.
    pub base_conditions: Vec<KeyCondition>,
    /// Number of keys or ranges, as far as the plan determines it.
    pub shape: PathShape,
    /// Descending key order.
    pub reverse: bool,
    /// True if the rows must have key order, also across salt buckets.
    pub ordered: bool,
    /// Number of leading key columns that the order ignores: ranges with different values of them
    /// are merged.
    pub merged: usize,
    /// Leading key columns of which one row for each combination of values is read.
    pub distinct: Option<DistinctPrefix>,
    /// Estimated cost, for a look-up that of one combination of values; for EXPLAIN, and for a
    /// choice among several paths with `distinct`.
    pub cost: Option<f64>,
}

/// Leading key columns of which a path reads the first row for each combination of values, in its
/// order; of salted keys the first row in each bucket. Rows that follow may be read, too.
#[derive(Debug, Clone)]
pub struct DistinctPrefix {
    /// Number of these columns.
    pub columns: usize,
    /// Conditions on the key columns after them, each of which is within them.
    pub conditions: Vec<KeyCondition>,
}

/// Condition on the value that an inverted index has the terms of.
#[derive(Debug, Clone, PartialEq)]
pub enum InvertedCondition {
    /// An operator of the index's operator class.
    Operator {
        /// The operator, with the indexed value on the left.
        operator: TermOperator,
        /// The right side, without columns; evaluated once, when the plan is opened.
        operand: Expr,
        /// The condition over table columns, for EXPLAIN.
        condition: Expr,
    },
    /// Conjunction.
    All(Vec<InvertedCondition>),
    /// Disjunction.
    Any(Vec<InvertedCondition>),
}

impl InvertedCondition {
    /// Returns the terms that the condition needs, by `of_operator` for an operator and its
    /// operand.
    pub fn query<E>(
        &self,
        of_operator: &dyn Fn(TermOperator, &Expr) -> Result<TermQuery, E>,
    ) -> Result<TermQuery, E> {
        let all = |conditions: &[InvertedCondition]| {
            let queries = conditions.iter().map(|condition| condition.query(of_operator));
            queries.collect::<Result<Vec<TermQuery>, E>>()
        };
        Ok(match self {
            InvertedCondition::Operator { operator, operand, .. } => {
                of_operator(*operator, operand)?
            }
            InvertedCondition::All(conditions) => TermQuery::all_of(all(conditions)?),
            InvertedCondition::Any(conditions) => TermQuery::any_of(all(conditions)?),
        })
    }

    /// Returns the conditions with operators.
    pub fn operators(&self) -> Vec<&InvertedCondition> {
        match self {
            InvertedCondition::Operator { .. } => vec![self],
            InvertedCondition::All(conditions) | InvertedCondition::Any(conditions) => {
                conditions.iter().flat_map(InvertedCondition::operators).collect()
            }
        }
    }
}

/// Form of the keys of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathShape {
    /// Whole keys: gets. The number is the product of the lists' lengths.
    Points(usize),
    /// Ranges, with their maximum number.
    Ranges(usize),
    /// All rows.
    Full,
}

/// Condition on one key column.
#[derive(Debug, Clone)]
pub struct KeyCondition {
    /// Conjunction of terms.
    pub terms: Vec<KeyTerm>,
    /// Type of the key column.
    pub data_type: DataType,
    /// Sort order of the key column.
    pub key: KeyColumn,
    /// Compared expression, for EXPLAIN.
    pub name: String,
    /// True if no condition of the statement restricts the column: its definition does.
    pub by_definition: bool,
}

/// Term on one key column. Values have no columns and are evaluated once, when the plan is
/// opened.
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
    /// `<`, `<=`, `>` or `>=` with a value.
    Compare(Comparison, Expr),
    /// `LIKE pattern`: values with the prefix before the pattern's first wildcard.
    Like(Expr),
    /// Values that an integer expression can have.
    Computed(Arc<ComputedValues>),
    /// Disjunction of terms.
    Any(Vec<KeyTerm>),
}

/// Integer expression that a key column is computed by, and the bounds of its only source column:
/// they determine the values that rows can have.
#[derive(Debug, Clone, PartialEq)]
pub struct ComputedValues {
    /// Expression over table columns.
    pub expression: Expr,
    /// Bounds of the source.
    pub bounds: Vec<(Comparison, Expr)>,
    /// Values as far as the plan determines them.
    pub planned: Vec<IntegerRange>,
    /// Maximum number of values; `None` for many, which are read as ranges.
    pub count: Option<usize>,
}

/// Integers from `first` to `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct IntegerRange {
    /// Least.
    pub first: i64,
    /// Greatest.
    pub last: i64,
}

impl ComputedValues {
    /// Returns the expression for a value of the source.
    pub fn of(&self, source: &Expr) -> Expr {
        let computed = self.expression.clone().transform(&mut |part| match part {
            Expr::Column { .. } => source.clone(),
            part => part,
        });
        computed.fold(&EvalContext::default())
    }
}

/// Assumed number of elements of an unknown array: PostgreSQL's default.
pub const ARRAY_VALUES: usize = 10;

/// Inequality with the key column on the left.
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
    /// Returns whether it is an upper bound.
    pub fn is_upper(self) -> bool {
        matches!(self, Comparison::Less | Comparison::LessOrEqual)
    }

    /// Returns the operator symbol.
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
    /// Returns the maximum number of values of the term, for an array an estimate; `None` if it
    /// is not a list of values.
    pub fn point_count(&self) -> Option<usize> {
        match self {
            KeyTerm::Equal(_) | KeyTerm::IsNull => Some(1),
            KeyTerm::In(values) => Some(values.len()),
            KeyTerm::InArray(_) => Some(ARRAY_VALUES),
            KeyTerm::Computed(values) => values.count,
            KeyTerm::Any(terms) => terms.iter().map(KeyTerm::point_count).sum(),
            KeyTerm::IsNotNull | KeyTerm::Compare(..) | KeyTerm::Like(_) => None,
        }
    }

    /// Returns the maximum number of ranges of the term.
    pub fn range_count(&self) -> usize {
        match self {
            KeyTerm::In(values) => values.len(),
            KeyTerm::InArray(_) => ARRAY_VALUES,
            // Several intervals come from a remainder, whose values are counted.
            KeyTerm::Computed(values) => values.count.unwrap_or(1),
            KeyTerm::Any(terms) => terms.iter().map(KeyTerm::range_count).sum(),
            KeyTerm::Equal(_)
            | KeyTerm::IsNull
            | KeyTerm::IsNotNull
            | KeyTerm::Compare(..)
            | KeyTerm::Like(_) => 1,
        }
    }

    /// Returns whether the number of values is only known at execution.
    pub fn has_array(&self) -> bool {
        match self {
            KeyTerm::InArray(_) => true,
            KeyTerm::Any(terms) => terms.iter().any(KeyTerm::has_array),
            _ => false,
        }
    }

    /// Returns whether NULL may be one of the values.
    pub fn allows_null(&self) -> bool {
        match self {
            KeyTerm::IsNull => true,
            KeyTerm::Any(terms) => terms.iter().any(KeyTerm::allows_null),
            _ => false,
        }
    }
}

impl KeyCondition {
    /// Returns the maximum number of values of the column; `None` if they are not a list.
    pub fn point_count(&self) -> Option<usize> {
        self.terms.iter().filter_map(KeyTerm::point_count).min()
    }

    /// Returns the maximum number of ranges of the condition.
    pub fn range_count(&self) -> usize {
        // The intersection of sets of a and b ranges has at most a + b - 1.
        let total: usize = self.terms.iter().map(KeyTerm::range_count).sum();
        self.point_count().unwrap_or(total + 1 - self.terms.len().max(1)).max(1)
    }

    /// Returns whether the number of values is only known at execution.
    pub fn has_array(&self) -> bool {
        self.terms.iter().any(KeyTerm::has_array)
    }

    /// Returns whether the column has a single value.
    pub fn is_single_point(&self) -> bool {
        self.point_count() == Some(1)
    }
}

impl ScanNode {
    /// Returns the value sections that gets of the rows read: of the base-table rows, if they are
    /// fetched.
    pub fn sections(&self) -> types::Result<SectionsOfGet> {
        if let Some(sections) = self.sections.get() {
            return Ok(sections.clone());
        }
        let (layout, read) = match &self.lookup {
            Some(lookup) => (&self.table.layout, &lookup.read),
            None => (&self.path.layout, &self.read),
        };
        let stored: Vec<usize> =
            read.iter().copied().filter(|&column| pseudo_column_type(column).is_none()).collect();
        let sections = wanted_sections(layout, &stored)?;
        Ok(self.sections.get_or_init(|| sections).clone())
    }

    /// Returns whether rows are filtered or locked after the keys were read.
    pub fn has_filter(&self) -> bool {
        self.filter.is_some()
            || self.lookup.as_ref().is_some_and(|lookup| lookup.filter.is_some())
            || self.lock.is_some()
    }
}

impl AccessPath {
    /// Returns the number of regions that the table or index had when it was created.
    pub fn region_count(&self, table: &Table) -> usize {
        match &self.index {
            None => table.descriptor.split_points.len() + 1,
            Some(_) => usize::from(self.layout.salt_buckets).max(1),
        }
    }
}
