//! Logical plans: the output of the binder and the input of the planner.
//!
//! Every node yields rows of a fixed width; expressions refer to the columns of their input by
//! position. The columns of a join are those of the left side followed by those of the right
//! side.
//!
//! Subqueries in expressions become [`Logical::Apply`] nodes below the node that uses them; the
//! expression then refers to the column that the apply adds. Outer columns that a subquery uses
//! are parameters of it ([`Apply::bindings`]).

pub mod cells;
mod current_row;
mod locks;
mod merge;
mod row_check;
mod data_changing_with;
mod traversal;
mod window;

use std::sync::Arc;

use store::TableId;
use types::aggregate::Aggregate;
use types::expr::{Expr, Routine};
use types::function::FunctionId;
use types::rowcode::RowLayout;
use types::{Batch, DataType, Datum, SqlType};

use crate::ast::{CellAttributes, SystemTime};
use crate::catalog::statistics::TableStatistics;
use crate::catalog::table::{Index, Table};

pub use current_row::{CurrentRow, CursorTable};
pub use data_changing_with::{NamedStep, Steps};
pub use locks::{LockRows, LockedTable, LockedTables, RowLock};
pub use merge::{Merge, MergeAction, MergeClause};
pub use row_check::{CheckSubject, CheckTime, RowCheck};
pub use types::order::SortKey;
pub use window::{
    Exclusion, Frame, FrameBound, FrameUnits, RangeFrameBound, Window, WindowFunction, WindowKind,
    sort_keys,
};

/// An output column of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputColumn {
    /// Name that the client sees, or that an outer query refers to.
    pub name: String,
    /// Type.
    pub sql_type: SqlType,
    /// Origin of an unchanged column: relation and column position, for RowDescription.
    pub origin: Option<(Origin, usize)>,
}

impl OutputColumn {
    /// Returns computed columns with these names and types.
    pub fn computed(columns: &[(&str, DataType)]) -> Vec<OutputColumn> {
        let column = |(name, data_type): &(&str, DataType)| OutputColumn {
            name: (*name).to_owned(),
            sql_type: data_type.into(),
            origin: None,
        };
        columns.iter().map(column).collect()
    }
}

/// Relation that a column originates from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A table or view, by its number in the catalog.
    Relation(u32),
    /// A system relation, by its OID.
    System(u32),
}

/// Constant rows, stored by column.
#[derive(Debug, Clone, PartialEq)]
pub struct ConstantRows {
    /// Types of the columns.
    pub types: Vec<DataType>,
    /// The rows.
    pub rows: Arc<Batch>,
}

/// Logical plan node; yields rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Logical {
    /// Some columns of all rows of a table.
    Scan(TableScan),
    /// A system view or table function, whose rows are computed at execution.
    SystemRows(SystemRows),
    /// Constant rows. A SELECT without FROM reads one row of no columns.
    Values {
        /// Types of the columns.
        types: Vec<DataType>,
        /// The rows; expressions without columns.
        rows: Vec<Vec<Expr>>,
    },
    /// A long VALUES list of constants.
    Constants(ConstantRows),
    /// Rows that satisfy a predicate.
    Filter {
        /// Input.
        input: Box<Logical>,
        /// Boolean predicate over the input.
        predicate: Expr,
    },
    /// Rows that the statement may see: filtered by row-level security policies, or those of a view
    /// with `security_barrier`. A condition above the node moves below it only if it is leakproof:
    /// others must not see more rows.
    Barrier {
        /// The filtered rows.
        input: Box<Logical>,
    },
    /// Computed columns.
    Project {
        /// Input.
        input: Box<Logical>,
        /// One expression for each output column.
        expressions: Vec<Expr>,
    },
    /// Rows of set-returning functions, for each row of the input.
    ProjectSet(ProjectSet),
    /// Join of two inputs.
    Join(Join),
    /// Subquery that is executed for each row of the input.
    Apply(Apply),
    /// Groups. Output: the group keys, then the aggregates. Without keys: exactly one row.
    Aggregate {
        /// Input.
        input: Box<Logical>,
        /// Group keys over the input.
        group_by: Vec<Expr>,
        /// Aggregates over the input.
        aggregates: Vec<Aggregate>,
    },
    /// GROUPING SETS, ROLLUP and CUBE.
    GroupingSets(GroupingSets),
    /// Sorted rows.
    Sort {
        /// Input.
        input: Box<Logical>,
        /// Most significant first.
        keys: Vec<SortKey>,
    },
    /// FOR UPDATE and FOR SHARE: locks the rows that it returns.
    LockRows(LockRows),
    /// LIMIT and OFFSET.
    Limit {
        /// Input.
        input: Box<Logical>,
        /// bigint without columns; `None` or NULL: no limit.
        limit: Option<Expr>,
        /// bigint without columns.
        offset: Option<Expr>,
        /// `WITH TIES`: the sort keys, over the input. Rows after the last one are returned while
        /// they are equal to it in these. Empty: no WITH TIES.
        ties: Vec<Expr>,
    },
    /// First row of each distinct value, in the order of the input.
    Distinct {
        /// Input.
        input: Box<Logical>,
        /// DISTINCT ON expressions; empty: all columns.
        on: Vec<Expr>,
    },
    /// INTERSECT or EXCEPT.
    SetOperation(SetOperation),
    /// Window functions.
    Window(Window),
    /// WITH: a query that its body reads by number.
    With(With),
    /// Rows of a [`With`], or of a work table.
    CteScan(CteScan),
    /// WITH RECURSIVE.
    RecursiveUnion(RecursiveUnion),
    /// UNION ALL: rows of all inputs, which have the same types. (UNION is Distinct over it.)
    Append {
        /// The inputs.
        inputs: Vec<Logical>,
    },
}

/// GROUPING SETS. Output: the keys, which are NULL in groups of sets without them, the
/// aggregates, then one column for each GROUPING call. A set without keys is one group, even of
/// an empty input.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupingSets {
    /// Input.
    pub input: Box<Logical>,
    /// Keys of all sets.
    pub group_by: Vec<Expr>,
    /// Aggregates over the input.
    pub aggregates: Vec<Aggregate>,
    /// Keys of each set, by position, ascending.
    pub sets: Vec<Vec<usize>>,
    /// Arguments of each GROUPING call, as key positions: its result has a bit set, the first
    /// key's highest, for each key that the group's set does not have.
    pub grouping_calls: Vec<Vec<usize>>,
}

/// Set-returning functions, called for each row of the input: functions in FROM, over one row of
/// no columns or laterally over preceding items, and in a select list. Output: the input's
/// columns, those of the functions, then the ordinality.
///
/// The nth rows of all functions form one row; a function that has ended yields NULL.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectSet {
    /// Input; the functions are called for each of its rows.
    pub input: Box<Logical>,
    /// The functions.
    pub functions: Vec<SetFunction>,
    /// `WITH ORDINALITY`: a bigint that numbers the rows of each call.
    pub ordinality: bool,
    /// True if an input row without function rows is returned, with NULLs.
    pub outer: bool,
    /// Columns of the input that only the functions read and that the output need not repeat.
    pub unread: Vec<usize>,
}

/// A function of [`ProjectSet`].
#[derive(Debug, Clone, PartialEq)]
pub struct SetFunction {
    /// The call.
    pub call: SetCall,
    /// Columns of its rows.
    pub columns: Vec<OutputColumn>,
}

/// Call of a set-returning function.
#[derive(Debug, Clone, PartialEq)]
pub enum SetCall {
    /// A built-in function of [`types::function::sets`].
    Set {
        /// Function.
        function: FunctionId,
        /// Arguments over the input.
        arguments: Vec<Expr>,
    },
    /// A scalar over the input, as one row.
    Value(Expr),
    /// A user-defined function.
    Routine {
        /// Function.
        routine: Arc<Routine>,
        /// Arguments over the input.
        arguments: Vec<Expr>,
        /// True if it returns a set; otherwise it yields one row, of NULLs if the body returns
        /// none.
        is_set: bool,
    },
}

/// INTERSECT or EXCEPT. NULLs are equal to each other.
#[derive(Debug, Clone, PartialEq)]
pub struct SetOperation {
    /// Kind of the operation.
    pub kind: SetKind,
    /// `ALL`: of n equal rows on the left and m on the right, INTERSECT returns min(n, m) and
    /// EXCEPT max(n - m, 0). Otherwise each row once.
    pub all: bool,
    /// Left side.
    pub left: Box<Logical>,
    /// Right side; has the same types.
    pub right: Box<Logical>,
}

/// Kind of a set operation other than UNION.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetKind {
    /// Rows of both sides.
    Intersect,
    /// Rows of the left side only.
    Except,
}

/// WITH: a query that is computed once and that the body reads by its number.
#[derive(Debug, Clone, PartialEq)]
pub struct With {
    /// Number of the query within the statement.
    pub id: usize,
    /// Name, for EXPLAIN.
    pub name: String,
    /// The query.
    pub query: Box<Logical>,
    /// Body; yields the rows of the node.
    pub body: Box<Logical>,
}

/// Scan of a WITH query or of a work table.
#[derive(Debug, Clone, PartialEq)]
pub struct CteScan {
    /// Number of a [`With`] or [`RecursiveUnion`] above.
    pub id: usize,
    /// Name, for EXPLAIN.
    pub name: String,
    /// All columns of the query.
    pub columns: Vec<OutputColumn>,
    /// True if it is the work table of a recursive query.
    pub is_work_table: bool,
    /// The planner's estimate of the rows.
    pub rows: Option<f64>,
}

/// WITH RECURSIVE: the rows of `start`, then those of `step` over the rows of the previous
/// iteration, until there are none.
#[derive(Debug, Clone, PartialEq)]
pub struct RecursiveUnion {
    /// Number of its work table.
    pub id: usize,
    /// Name, for EXPLAIN.
    pub name: String,
    /// UNION ALL: whether duplicates of earlier rows are retained.
    pub all: bool,
    /// Non-recursive term.
    pub start: Box<Logical>,
    /// Recursive term, of the same types; reads the work table.
    pub step: Box<Logical>,
}

/// Scan of a table in FROM.
#[derive(Debug, Clone, PartialEq)]
pub struct TableScan {
    /// The table.
    pub table: Arc<Table>,
    /// Alias in the statement, for EXPLAIN.
    pub alias: String,
    /// Output columns, by position in the table. [`TIMESTAMP_COLUMN`] is `_timestamp`.
    pub columns: Vec<usize>,
    /// `FOR SYSTEM_TIME`: timestamptz values without columns.
    pub system_time: Option<SystemTime<Expr>>,
    /// Lock mode of `FOR UPDATE` / `FOR SHARE`: set until the binder has added [`LockRows`], and
    /// where the planner has moved the locking into the scan.
    pub lock: Option<RowLock>,
    /// `/*+ INDEX(t i) */`: only these indexes may be used; `NO_INDEX`: an empty list.
    pub index_hint: Option<Vec<String>>,
    /// Statistics of ANALYZE, where the planner chooses among access paths by them.
    pub statistics: Option<Arc<ScanStatistics>>,
    /// The row-level security policies that filter it, by their number in the binder: set until
    /// the binder has added [`Logical::Barrier`].
    pub policies: Option<usize>,
}

/// Statistics of a table's rows.
#[derive(Debug, PartialEq)]
pub struct ScanStatistics {
    /// Number of rows.
    pub rows: f64,
    /// Fraction of them in columnar blocks.
    pub columnar_part: f64,
    /// Column statistics.
    pub statistics: Arc<TableStatistics>,
}

/// Value in [`TableScan::columns`] for the pseudo-column `_timestamp` (timestamptz): the commit
/// time of the row version.
pub const TIMESTAMP_COLUMN: usize = coprocessors::rows::TIMESTAMP_COLUMN;

/// Value in [`TableScan::columns`] for the pseudo-column `_operation` (text) of row versions:
/// `PUT`, or `DELETE` for a deletion.
pub const OPERATION_COLUMN: usize = coprocessors::rows::OPERATION_COLUMN;

/// Returns the type of a pseudo-column; `None` for a column of the table.
pub fn pseudo_column_type(column: usize) -> Option<DataType> {
    coprocessors::rows::pseudo_column_type(column)
}

/// Rows computed by the server: system views and table functions.
#[derive(Debug, Clone, PartialEq)]
pub struct SystemRows {
    /// Name of the view or function, for EXPLAIN and the executor's dispatch, for example
    /// `bennu.regions`, `cells`.
    pub name: String,
    /// Arguments of a table function, without columns.
    pub arguments: Vec<Expr>,
    /// Target of a function over the regions of a table.
    pub target: Option<Arc<RegionFunctionTarget>>,
    /// The columns.
    pub columns: Vec<OutputColumn>,
}

/// Function over the regions of a table or index.
#[derive(Debug, Clone, PartialEq)]
pub enum RegionFunction {
    /// `endpoint`: the name under which the endpoint is attached.
    Endpoint(String),
    /// `cells`: the index, or `None` for the table itself.
    Cells(Option<Arc<Index>>),
}

/// Target of a [`RegionFunction`]. The arguments of the call are those named here, then the key
/// values of the range's start, then those of its end.
#[derive(Debug, Clone, PartialEq)]
pub struct RegionFunctionTarget {
    /// The table.
    pub table: Arc<Table>,
    /// The function.
    pub function: RegionFunction,
    /// Names of the arguments.
    pub arguments: Vec<String>,
    /// Number of leading key columns that give the range's start; 0: the first row.
    pub start_count: usize,
    /// Number of those that give the range's end; 0: after the last row.
    pub stop_count: usize,
}

impl RegionFunctionTarget {
    /// Returns the layout of the rows.
    pub fn layout(&self) -> &Arc<RowLayout> {
        match &self.function {
            RegionFunction::Cells(Some(index)) => &index.spec.layout,
            RegionFunction::Cells(None) | RegionFunction::Endpoint(_) => &self.table.layout,
        }
    }

    /// Returns the store's table.
    pub fn store_table(&self) -> TableId {
        match &self.function {
            RegionFunction::Cells(Some(index)) => index.spec.store_table,
            RegionFunction::Cells(None) | RegionFunction::Endpoint(_) => self.table.id,
        }
    }

    /// Returns the names of the columns of the rows, by position in the layout.
    pub fn column_names(&self) -> Vec<String> {
        match &self.function {
            RegionFunction::Cells(Some(index)) => self.table.index_column_names(index),
            RegionFunction::Cells(None) => {
                let columns = 0..self.table.columns.len();
                columns.map(|column| self.table.qualifier_name(column).to_owned()).collect()
            }
            RegionFunction::Endpoint(_) => {
                self.table.columns.iter().map(|column| column.listed_name().to_owned()).collect()
            }
        }
    }
}

/// Join type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// Matching pairs.
    Inner,
    /// Also left rows without a match.
    Left,
    /// Also right rows without a match.
    Right,
    /// Also left and right rows without a match.
    Full,
    /// Left rows with a match, once, left columns only.
    Semi,
    /// Left rows without a match, left columns only.
    Anti,
}

/// A join.
#[derive(Debug, Clone, PartialEq)]
pub struct Join {
    /// Join type.
    pub kind: JoinKind,
    /// Left side.
    pub left: Box<Logical>,
    /// Right side.
    pub right: Box<Logical>,
    /// Condition over the left columns followed by the right columns; `true` for a cross join.
    pub on: Expr,
    /// Decisions of the planner.
    pub choice: JoinDecision,
}

impl Join {
    /// Returns whether the join can preserve the order of the left rows.
    pub(crate) fn keeps_order(&self) -> bool {
        !matches!(self.kind, JoinKind::Right | JoinKind::Full)
    }
}

/// Decisions and estimates of the planner for a join; the binder leaves them empty.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct JoinDecision {
    /// Estimated number of output rows.
    pub rows: Option<f64>,
    /// Estimated number of left rows per output row.
    pub left_rows_per_row: Option<f64>,
    /// Index look-up join: the right side, a table with conditions, is looked up by key for each
    /// left row. The values of the left row are statement parameters from this index on, one for
    /// each equality of the join in order.
    pub lookup: Option<usize>,
    /// Merge join: the right side is large, so both are merged if they are sorted, instead of
    /// building a hash table.
    pub merge: bool,
}

/// Subquery that is executed for each input row, with columns of that row as parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Apply {
    /// Outer rows.
    pub input: Box<Logical>,
    /// The subquery.
    pub subquery: Box<Logical>,
    /// Parameter index (in the statement's parameter list, above the client's own) and the input
    /// column that supplies its value. Empty for an uncorrelated subquery.
    pub bindings: Vec<(usize, usize)>,
    /// Columns that are added to the input's.
    pub kind: ApplyKind,
    /// Condition over the input's columns under which the subquery is evaluated: where the
    /// enclosing expression needs its value. Other rows get NULL, which is not read. `None`: all
    /// rows.
    pub guard: Option<Expr>,
    /// Decorrelated form, which the planner adds.
    pub groups: Option<Box<ApplyGroups>>,
}

/// Decorrelated form of a subquery: its values for all outer rows, as groups by what it compares
/// with outer columns.
///
/// A row finds its group by its keys. If computing the groups fails, the subquery is executed for
/// each row instead: the error may come from a group that no row uses.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplyGroups {
    /// Plan that yields the keys, then the aggregates.
    pub plan: Logical,
    /// Expressions that the keys are equal to, over the input's columns.
    pub keys: Vec<Expr>,
    /// Value of the subquery, over the input's columns followed by those of the plan, which are
    /// NULL for a row without a group.
    pub value: Expr,
}

impl Apply {
    /// Returns the guard and the condition of its kind.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        self.guard.iter().chain(self.kind.condition())
    }

    /// Returns the guard and the condition of its kind.
    pub fn expressions_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.guard.iter_mut().chain(self.kind.condition_mut())
    }
}

/// Kind of an apply: the columns that it adds to the input's.
#[derive(Debug, Clone, PartialEq)]
pub enum ApplyKind {
    /// Scalar subquery: the column of its only row, NULL if there is none; more rows are an error
    /// (21000).
    Scalar,
    /// ARRAY subquery: the values of its only column, as an array of this type; empty without
    /// rows.
    Array {
        /// Type of the array.
        data_type: DataType,
    },
    /// EXISTS: whether there is a row.
    Exists,
    /// `operand IN (subquery)` / `operand op ANY (subquery)` in three-valued logic. `comparison`
    /// is over the input's columns followed by the subquery's.
    Any {
        /// Comparison with a subquery row.
        comparison: Expr,
    },
    /// `operand op ALL (subquery)`, likewise.
    All {
        /// Comparison with a subquery row.
        comparison: Expr,
    },
    /// LATERAL: all its columns. The input's row is returned once for each matching subquery row.
    Rows {
        /// Join condition over the input's columns followed by the subquery's.
        on: Expr,
        /// LEFT JOIN LATERAL: whether an input row without a match is returned, with NULLs.
        outer: bool,
    },
}

impl SetFunction {
    /// Returns the argument expressions of the call.
    pub fn arguments(&self) -> &[Expr] {
        match &self.call {
            SetCall::Set { arguments, .. } | SetCall::Routine { arguments, .. } => arguments,
            SetCall::Value(value) => std::slice::from_ref(value),
        }
    }

    /// Returns the argument expressions of the call.
    pub fn arguments_mut(&mut self) -> &mut [Expr] {
        match &mut self.call {
            SetCall::Set { arguments, .. } | SetCall::Routine { arguments, .. } => arguments,
            SetCall::Value(value) => std::slice::from_mut(value),
        }
    }
}

impl ProjectSet {
    /// Returns the types of the columns after the input's.
    pub fn set_types(&self) -> impl Iterator<Item = DataType> {
        let columns = self.functions.iter().flat_map(|function| &function.columns);
        let ordinality = self.ordinality.then_some(DataType::Int8);
        columns.map(|column| column.sql_type.base.clone()).chain(ordinality)
    }

    /// Returns the argument expressions of all calls.
    pub fn arguments(&self) -> impl Iterator<Item = &Expr> {
        self.functions.iter().flat_map(SetFunction::arguments)
    }

    /// Returns the argument expressions of all calls.
    pub fn arguments_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.functions.iter_mut().flat_map(SetFunction::arguments_mut)
    }
}

impl ApplyKind {
    /// Returns the types of the columns that an apply adds for a subquery with these column
    /// types.
    pub fn added_types(&self, subquery: Vec<DataType>) -> Vec<DataType> {
        match self {
            ApplyKind::Scalar => vec![subquery.first().cloned().unwrap_or(DataType::Unknown)],
            ApplyKind::Array { data_type } => vec![data_type.clone()],
            ApplyKind::Exists | ApplyKind::Any { .. } | ApplyKind::All { .. } => {
                vec![DataType::Bool]
            }
            ApplyKind::Rows { .. } => subquery,
        }
    }

    /// Returns the expression over the input's columns followed by the subquery's.
    pub fn condition(&self) -> Option<&Expr> {
        match self {
            ApplyKind::Any { comparison: condition }
            | ApplyKind::All { comparison: condition }
            | ApplyKind::Rows { on: condition, .. } => Some(condition),
            ApplyKind::Scalar | ApplyKind::Exists | ApplyKind::Array { .. } => None,
        }
    }

    /// Returns the expression over the input's columns followed by the subquery's.
    pub fn condition_mut(&mut self) -> Option<&mut Expr> {
        match self {
            ApplyKind::Any { comparison: condition }
            | ApplyKind::All { comparison: condition }
            | ApplyKind::Rows { on: condition, .. } => Some(condition),
            ApplyKind::Scalar | ApplyKind::Exists | ApplyKind::Array { .. } => None,
        }
    }
}

impl GroupingSets {
    /// Returns whether all sets have a key.
    pub fn is_in_all(&self, key: usize) -> bool {
        self.sets.iter().all(|set| set.contains(&key))
    }

    /// Returns the result of a GROUPING call in the groups of a set.
    pub fn grouping(asked: &[usize], set: &[usize]) -> i32 {
        asked.iter().fold(0, |bits, key| bits << 1 | i32::from(!set.contains(key)))
    }
}

/// Bound statement that reads or writes rows.
#[derive(Debug, Clone)]
pub enum BoundPlan {
    /// SELECT, VALUES.
    Query(Query),
    /// INSERT and UPSERT.
    Insert(Insert),
    /// UPDATE.
    Update(Update),
    /// DELETE.
    Delete(Delete),
    /// MERGE.
    Merge(Merge),
    /// Statements in sequence; the last one's result is returned.
    Steps(Steps),
}

impl BoundPlan {
    /// Returns the columns of the result rows, if the statement returns rows.
    pub fn columns(&self) -> Option<&[OutputColumn]> {
        let returning = match self {
            BoundPlan::Query(query) => return Some(&query.columns),
            BoundPlan::Steps(steps) => return steps.last.columns(),
            BoundPlan::Insert(insert) => &insert.returning,
            BoundPlan::Update(update) => &update.returning,
            BoundPlan::Delete(delete) => &delete.returning,
            BoundPlan::Merge(_) => return None,
        };
        returning.as_ref().map(|returning| returning.columns.as_slice())
    }
}

/// A query and its result columns.
#[derive(Debug, Clone)]
pub struct Query {
    /// The plan.
    pub plan: Logical,
    /// Result columns.
    pub columns: Vec<OutputColumn>,
}

/// RETURNING: expressions over the row in table order, followed by the columns that its statement
/// adds.
#[derive(Debug, Clone)]
pub struct Returning {
    /// The expressions.
    pub expressions: Vec<Expr>,
    /// Result columns.
    pub columns: Vec<OutputColumn>,
}

/// INSERT or UPSERT.
#[derive(Debug, Clone)]
pub struct Insert {
    /// The table.
    pub table: Arc<Table>,
    /// Source of full rows in table order, with defaults, cast to the columns' types.
    pub source: Logical,
    /// UPSERT: the columns that the statement names; in an existing row the others retain their
    /// values.
    pub named_columns: Vec<usize>,
    /// Action for an existing row.
    pub on_conflict: OnConflict,
    /// Input row of the conflict action, where it has subqueries.
    pub conflict_row: Option<Box<RowAtHand>>,
    /// Attributes of the written cells.
    pub attributes: CellAttributes<Expr>,
    /// Check options of the views that the statement goes through, and policies.
    pub checks: Vec<RowCheck>,
    /// RETURNING.
    pub returning: Option<Returning>,
}

impl Insert {
    /// Returns the row-at-hand plans of the statement's parts.
    pub fn given_rows_mut(&mut self) -> impl Iterator<Item = &mut RowAtHand> {
        let of_checks = self.checks.iter_mut().flat_map(|check| &mut check.row);
        self.conflict_row.iter_mut().chain(of_checks).map(Box::as_mut)
    }
}

/// ON CONFLICT action of an insert.
#[derive(Debug, Clone)]
pub enum OnConflict {
    /// Error 23505.
    Error,
    /// UPSERT: the named columns are overwritten.
    Overwrite,
    /// DO NOTHING: the existing row is unchanged.
    Ignore {
        /// Arbiter constraints.
        target: ConflictTarget,
    },
    /// DO UPDATE: the existing row is updated.
    Update {
        /// Arbiter constraints.
        target: ConflictTarget,
        /// Assignments over the existing row in table order followed by the proposed row
        /// (`excluded`).
        assignments: Vec<Assignment>,
        /// WHERE, over the same columns.
        predicate: Option<Expr>,
        /// False if a row that does not exist is not inserted.
        inserts: bool,
    },
}

/// A row that the executor has at hand, extended by subquery values. For a conflict action with
/// subqueries it is the existing row, the proposed row, then the values of the subqueries.
#[derive(Debug, Clone)]
pub struct RowAtHand {
    /// Parameters that are set from the row at hand.
    pub parameters: Vec<Expr>,
    /// Plan that yields the one row.
    pub plan: Logical,
}

/// Arbiters of an ON CONFLICT clause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConflictTarget {
    /// Any unique constraint or index.
    Any,
    /// Specified ones.
    These(Box<Arbiters>),
}

/// Unique keys that an ON CONFLICT clause specifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arbiters {
    /// True if the primary key is one of them.
    pub primary_key: bool,
    /// Unique indexes, by name.
    pub indexes: Vec<String>,
}

/// SET clause `column = expression`.
#[derive(Debug, Clone)]
pub struct Assignment {
    /// Position of the column in the table.
    pub column: usize,
    /// New value, cast to the column's type.
    pub value: Expr,
}

/// UPDATE.
#[derive(Debug, Clone)]
pub struct Update {
    /// The table.
    pub table: Arc<Table>,
    /// Source of the rows to change: all columns of the table in table order, then the used
    /// columns of FROM, and those that subqueries add.
    pub source: Logical,
    /// True if `_timestamp` follows the table's columns.
    pub reads_timestamp: bool,
    /// Predicate over the same columns, which is re-evaluated on the locked row (EvalPlanQual);
    /// `None` if it needs a subquery (the row is then used without a check).
    pub recheck: Option<Expr>,
    /// Assignments over the source's columns.
    pub assignments: Vec<Assignment>,
    /// True if the source may yield a row of the table more than once, because of FROM: only the
    /// first counts.
    pub repeats: bool,
    /// Check options of the views that the statement goes through, and policies.
    pub checks: Vec<RowCheck>,
    /// RETURNING over the source's columns, with the new values of the table's columns.
    pub returning: Option<Returning>,
}

impl Update {
    /// Returns the row-at-hand plans of the statement's parts.
    pub fn given_rows_mut(&mut self) -> impl Iterator<Item = &mut RowAtHand> {
        self.checks.iter_mut().flat_map(|check| &mut check.row).map(Box::as_mut)
    }
}

/// DELETE.
#[derive(Debug, Clone)]
pub struct Delete {
    /// The table.
    pub table: Arc<Table>,
    /// See [`Update::source`].
    pub source: Logical,
    /// See [`Update::reads_timestamp`].
    pub reads_timestamp: bool,
    /// See [`Update::recheck`].
    pub recheck: Option<Expr>,
    /// Attributes of the delete markers.
    pub attributes: CellAttributes<Expr>,
    /// RETURNING.
    pub returning: Option<Returning>,
}

/// Types of the statement's parameters, `$1` first, declared or inferred.
pub type ParameterTypes = Vec<SqlType>;

/// Values of the statement's parameters.
pub type ParameterValues = Vec<Datum>;

impl TableScan {
    /// Returns the type of one of [`TableScan::columns`].
    pub fn column_type(&self, column: usize) -> DataType {
        pseudo_column_type(column)
            .unwrap_or_else(|| self.table.layout.columns[column].data_type.clone())
    }

    /// Returns whether the rows are versions, of which several have one key.
    pub fn has_versions(&self) -> bool {
        self.system_time.as_ref().is_some_and(SystemTime::has_versions)
    }
}

impl Logical {
    /// Returns the types of the plan's columns.
    pub fn column_types(&self) -> Vec<DataType> {
        match self {
            Logical::Scan(scan) => {
                scan.columns.iter().map(|&column| scan.column_type(column)).collect()
            }
            Logical::SystemRows(rows) => {
                rows.columns.iter().map(|column| column.sql_type.base.clone()).collect()
            }
            Logical::Values { types, .. } => types.clone(),
            Logical::Constants(constants) => constants.types.clone(),
            Logical::Filter { input, .. }
            | Logical::Barrier { input }
            | Logical::Sort { input, .. }
            | Logical::Limit { input, .. }
            | Logical::Distinct { input, .. }
            | Logical::LockRows(LockRows { input, .. }) => input.column_types(),
            Logical::Project { expressions, .. } => {
                expressions.iter().map(Expr::data_type).cloned().collect()
            }
            Logical::Join(join) => {
                let mut types = join.left.column_types();
                if !matches!(join.kind, JoinKind::Semi | JoinKind::Anti) {
                    types.extend(join.right.column_types());
                }
                types
            }
            Logical::Apply(apply) => {
                let mut types = apply.input.column_types();
                types.extend(apply.kind.added_types(apply.subquery.column_types()));
                types
            }
            Logical::Aggregate { group_by, aggregates, .. } => group_by
                .iter()
                .map(Expr::data_type)
                .cloned()
                .chain(aggregates.iter().map(|aggregate| aggregate.data_type.clone()))
                .collect(),
            Logical::ProjectSet(sets) => {
                let mut types = sets.input.column_types();
                types.extend(sets.set_types());
                types
            }
            Logical::GroupingSets(grouping) => grouping
                .group_by
                .iter()
                .map(Expr::data_type)
                .cloned()
                .chain(grouping.aggregates.iter().map(|aggregate| aggregate.data_type.clone()))
                .chain(grouping.grouping_calls.iter().map(|_| DataType::Int4))
                .collect(),
            Logical::SetOperation(operation) => operation.left.column_types(),
            Logical::Window(window) => {
                let mut types = window.input.column_types();
                types.extend(window.functions.iter().map(|function| function.data_type.clone()));
                types
            }
            Logical::With(with) => with.body.column_types(),
            Logical::CteScan(scan) => {
                scan.columns.iter().map(|column| column.sql_type.base.clone()).collect()
            }
            Logical::RecursiveUnion(union) => union.start.column_types(),
            Logical::Append { inputs } => {
                inputs.first().map(Logical::column_types).unwrap_or_default()
            }
        }
    }
}
