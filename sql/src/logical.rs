//! Logical plans: what the binder makes of a statement and the planner starts from.
//!
//! Every node yields rows of a fixed width; expressions refer to the columns of their input by
//! position. For a join, that is the left side's columns followed by the right side's.
//!
//! Subqueries in expressions become [`Logical::Apply`] nodes below the node that uses them; the
//! expression then refers to the column that the apply adds. Outer columns that a subquery uses are
//! parameters of it ([`Apply::bindings`]).

mod current_row;
mod locks;
mod merge;
mod steps;
mod walk;
mod window;

use std::sync::Arc;

use types::aggregate::Aggregate;
use types::expr::{Expr, Routine};
use types::function::FunctionId;
use types::{Batch, DataType, Datum, SqlType};

use crate::catalog::statistics::TableStatistics;
use crate::catalog::table::Table;

pub use current_row::{CurrentRow, CursorTable};
pub use locks::{HeldRows, LockRows, LockedTable, RowLock};
pub use merge::{Merge, MergeAction, MergeClause};
pub use steps::{NamedStep, Steps};
pub use types::order::SortKey;
pub use window::{
    Exclusion, Frame, FrameBound, FrameUnits, Reach, Window, WindowFunction, WindowKind, sort_keys,
};

/// A column of a plan's output.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputColumn {
    /// The name that the client sees, or that the level above may refer to.
    pub name: String,
    /// Its type.
    pub sql_type: SqlType,
    /// Relation and column (position) it comes from unchanged, for RowDescription.
    pub origin: Option<(Origin, usize)>,
}

/// A relation that columns come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A table or view, by its number in the catalog.
    Relation(u32),
    /// A relation of the system, by its OID.
    System(u32),
}

/// Rows of values, column by column.
#[derive(Debug, Clone, PartialEq)]
pub struct ConstantRows {
    /// Types of the columns.
    pub types: Vec<DataType>,
    /// The rows.
    pub rows: Arc<Batch>,
}

/// A plan that yields rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Logical {
    /// All rows of a table, some columns.
    Scan(TableScan),
    /// A system view or table function: rows computed when it runs.
    SystemRows(SystemRows),
    /// Constant rows. A SELECT without FROM is over one row of no columns.
    Values {
        /// Types of the columns.
        types: Vec<DataType>,
        /// The rows; expressions without columns.
        rows: Vec<Vec<Expr>>,
    },
    /// The rows of VALUES, where they are many.
    Constants(ConstantRows),
    /// Rows for which the predicate is true.
    Filter {
        /// Where the rows come from.
        input: Box<Logical>,
        /// Boolean.
        predicate: Expr,
    },
    /// New columns out of old.
    Project {
        /// Where the rows come from.
        input: Box<Logical>,
        /// One for each output column.
        expressions: Vec<Expr>,
    },
    /// Rows of functions, for each row of the input.
    ProjectSet(ProjectSet),
    /// Pairs of rows.
    Join(Join),
    /// A subquery, run for each row of the input.
    Apply(Apply),
    /// Groups. Output: the group keys, then the aggregates. Without keys: exactly one row.
    Aggregate {
        /// Where the rows come from.
        input: Box<Logical>,
        /// The keys.
        group_by: Vec<Expr>,
        /// The aggregates, over the input.
        aggregates: Vec<Aggregate>,
    },
    /// Groups by several sets of keys.
    GroupingSets(GroupingSets),
    /// Sorted rows.
    Sort {
        /// Where the rows come from.
        input: Box<Logical>,
        /// Most significant first.
        keys: Vec<SortKey>,
    },
    /// Rows that are locked as they are taken.
    LockRows(LockRows),
    /// Some of the rows.
    Limit {
        /// Where the rows come from.
        input: Box<Logical>,
        /// bigint without columns; `None` or NULL: all.
        limit: Option<Expr>,
        /// bigint without columns.
        offset: Option<Expr>,
        /// `WITH TIES`: rows after the last one count as well while they agree with it in these,
        /// over the input, by which it is sorted. Empty: they do not.
        ties: Vec<Expr>,
    },
    /// The first row of each kind, in the order of the input.
    Distinct {
        /// Where the rows come from.
        input: Box<Logical>,
        /// What the rows must differ in; empty: in any column.
        on: Vec<Expr>,
    },
    /// Rows of the left side by how often they are in the right one.
    SetOperation(SetOperation),
    /// Window functions.
    Window(Window),
    /// Rows with a name, for what is below.
    With(With),
    /// The rows of a [`With`], or of a work table.
    CteScan(CteScan),
    /// WITH RECURSIVE.
    RecursiveUnion(RecursiveUnion),
    /// The rows of all inputs, which have the same types; UNION ALL. (UNION is Distinct over it.)
    Append {
        /// The inputs.
        inputs: Vec<Logical>,
    },
}

/// Groups by several sets of keys. Output: the keys, NULL in groups of sets that do not have them,
/// the aggregates, then a column for each call of GROUPING. A set without keys is one group, also
/// of no rows.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupingSets {
    /// Where the rows come from.
    pub input: Box<Logical>,
    /// The keys of all sets.
    pub group_by: Vec<Expr>,
    /// The aggregates, over the input.
    pub aggregates: Vec<Aggregate>,
    /// The keys of each set, by position, ascending.
    pub sets: Vec<Vec<usize>>,
    /// The keys that each call of GROUPING asks of, by position: the bits of its result, the first
    /// one the highest, are set where the group's set does not have them.
    pub groupings: Vec<Vec<usize>>,
}

/// Rows of functions, called for each row of the input: functions in FROM, over one row of no
/// columns or over the rows before them, and in a select list. Output: the input's columns, those
/// of the functions, then the ordinality.
///
/// The nth rows of all functions are one row, NULL where a function has ended before the others.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectSet {
    /// The rows that the functions are called for.
    pub input: Box<Logical>,
    /// The functions.
    pub functions: Vec<SetFunction>,
    /// `WITH ORDINALITY`: a bigint that counts the rows of each call.
    pub ordinality: bool,
    /// Whether a row of the input for which no function yields one stays, with NULLs.
    pub outer: bool,
    /// Columns of the input that only the functions read: they need not be repeated for each row.
    pub unread: Vec<usize>,
}

/// A function of [`ProjectSet`].
#[derive(Debug, Clone, PartialEq)]
pub struct SetFunction {
    /// What is called.
    pub call: SetCall,
    /// The columns of its rows.
    pub columns: Vec<OutputColumn>,
}

/// What is called for rows.
#[derive(Debug, Clone, PartialEq)]
pub enum SetCall {
    /// One of [`types::function::sets`].
    Set {
        /// Which.
        function: FunctionId,
        /// Its arguments, over the input.
        arguments: Vec<Expr>,
    },
    /// A value, over the input: one row of it.
    Value(Expr),
    /// A function of users.
    Routine {
        /// Which.
        routine: Arc<Routine>,
        /// Its arguments, over the input.
        arguments: Vec<Expr>,
        /// Whether it returns any number of rows; else there is one, of NULLs if it yields none.
        is_set: bool,
    },
}

/// INTERSECT or EXCEPT. NULLs are equal to each other.
#[derive(Debug, Clone, PartialEq)]
pub struct SetOperation {
    /// Which of them.
    pub kind: SetKind,
    /// `ALL`: n equal rows on one side and m on the other make the smaller of n and m, or n less
    /// m. Else each row once.
    pub all: bool,
    /// Left side.
    pub left: Box<Logical>,
    /// Right side, of the same types.
    pub right: Box<Logical>,
}

/// A set operation that is not UNION.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetKind {
    /// Rows that are on both sides.
    Intersect,
    /// Rows that are on the left side only.
    Except,
}

/// WITH: a query that the body may read by its number, computed once.
#[derive(Debug, Clone, PartialEq)]
pub struct With {
    /// Its number within the statement.
    pub id: usize,
    /// Its name, for EXPLAIN.
    pub name: String,
    /// The query.
    pub query: Box<Logical>,
    /// What reads it; gives the rows of the whole.
    pub body: Box<Logical>,
}

/// The rows of a named query.
#[derive(Debug, Clone, PartialEq)]
pub struct CteScan {
    /// The number of a [`With`] or [`RecursiveUnion`] above.
    pub id: usize,
    /// Its name, for EXPLAIN.
    pub name: String,
    /// All its columns.
    pub columns: Vec<OutputColumn>,
    /// Whether it is the work table of a recursive query.
    pub is_work_table: bool,
    /// The planner's estimate of the rows.
    pub rows: Option<f64>,
}

/// A recursive query: the rows of `start`, then those of `step` over the rows of the round before,
/// until there are none.
#[derive(Debug, Clone, PartialEq)]
pub struct RecursiveUnion {
    /// The number of its work table.
    pub id: usize,
    /// Its name, for EXPLAIN.
    pub name: String,
    /// Whether rows that were there before count again.
    pub all: bool,
    /// The first term.
    pub start: Box<Logical>,
    /// The second term, of the same types; reads the work table.
    pub step: Box<Logical>,
}

/// A table in FROM.
#[derive(Debug, Clone, PartialEq)]
pub struct TableScan {
    /// The table.
    pub table: Arc<Table>,
    /// The name it goes by in the statement, for EXPLAIN.
    pub alias: String,
    /// The columns it yields, by position in the table. [`TIMESTAMP_COLUMN`] is `_timestamp`.
    pub columns: Vec<usize>,
    /// `FOR SYSTEM_TIME AS OF`: a timestamptz without columns.
    pub as_of: Option<Expr>,
    /// `FOR UPDATE` / `FOR SHARE`: until the binder has put [`LockRows`] above, and where the
    /// planner has found that the scan can as well lock the rows.
    pub lock: Option<RowLock>,
    /// `/*+ INDEX(t i) */`: these indexes only; `NO_INDEX`: an empty list.
    pub index_hint: Option<Vec<String>>,
    /// What ANALYZE found out, where the planner is to choose among paths by it.
    pub known: Option<Arc<KnownTable>>,
}

/// What is known of a table's rows.
#[derive(Debug, PartialEq)]
pub struct KnownTable {
    /// How many there are.
    pub rows: f64,
    /// Which part of them is in columnar blocks.
    pub columnar_part: f64,
    /// What they are like.
    pub statistics: Arc<TableStatistics>,
}

/// In [`TableScan::columns`], stands for the pseudo-column `_timestamp` (timestamptz): when the row
/// version was committed.
pub const TIMESTAMP_COLUMN: usize = coprocessors::rows::TIMESTAMP_COLUMN;

/// Rows that the server computes: system views and table functions.
#[derive(Debug, Clone, PartialEq)]
pub struct SystemRows {
    /// Which, for EXPLAIN and for the executor's dispatch, for example `bennu.regions`,
    /// `cells`.
    pub name: String,
    /// Arguments of a table function; no columns.
    pub arguments: Vec<Expr>,
    /// What `endpoint('t', 'name', …)` calls.
    pub endpoint: Option<Arc<EndpointTarget>>,
    /// The columns.
    pub columns: Vec<OutputColumn>,
}

/// What the table function `endpoint` calls. Its arguments are those of the endpoint, as text, then
/// the values of the key where the range starts, then those where it stops.
#[derive(Debug, Clone, PartialEq)]
pub struct EndpointTarget {
    /// The table.
    pub table: Arc<Table>,
    /// The name that the endpoint is attached by.
    pub name: String,
    /// The names of its arguments.
    pub arguments: Vec<String>,
    /// How many leading columns of the key say where the range starts; 0: at the first row.
    pub start_count: usize,
    /// How many say where it stops; 0: after the last row.
    pub stop_count: usize,
}

/// How rows pair up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// Pairs that match.
    Inner,
    /// Also left rows without a match.
    Left,
    /// Also right rows without a match.
    Right,
    /// Both.
    Full,
    /// Left rows with a match, once, left columns only.
    Semi,
    /// Left rows without a match, left columns only.
    Anti,
}

/// A join.
#[derive(Debug, Clone, PartialEq)]
pub struct Join {
    /// How rows pair up.
    pub kind: JoinKind,
    /// Left side.
    pub left: Box<Logical>,
    /// Right side.
    pub right: Box<Logical>,
    /// Over left columns followed by right columns; `true` for a cross join.
    pub on: Expr,
    /// What the planner has found out.
    pub choice: JoinChoice,
}

impl Join {
    /// Returns whether rows can be yielded in the order of the left ones.
    pub(crate) fn keeps_order(&self) -> bool {
        !matches!(self.kind, JoinKind::Right | JoinKind::Full)
    }
}

/// What the planner has found out about a join; the binder says nothing of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct JoinChoice {
    /// About how many rows come out.
    pub rows: Option<f64>,
    /// About how many left rows there are for each of them.
    pub left_rows_for_each: Option<f64>,
    /// The rows of the right side, a table with conditions, are looked up by key for each left row.
    /// The values of the left row are parameters of the statement, from this index on, one for each
    /// equality of the join in turn.
    pub lookup: Option<usize>,
    /// The right side is large: rather than keep it, both are merged if they come in order.
    pub merge: bool,
}

/// A subquery, run for each row of the input with that row's columns as parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Apply {
    /// The outer rows.
    pub input: Box<Logical>,
    /// The subquery.
    pub subquery: Box<Logical>,
    /// Parameter index (in the statement's parameter list, above the client's own) and the input
    /// column that it takes its value from. Empty for a subquery that does not depend on its row.
    pub bindings: Vec<(usize, usize)>,
    /// What is added to the input's columns.
    pub kind: ApplyKind,
    /// For which rows the subquery is computed, over the input's columns: those for which the
    /// expression around it comes to it. The others get NULL, which nothing reads. `None`: all.
    pub guard: Option<Expr>,
    /// Its values for all rows at once; the planner adds them.
    pub groups: Option<Box<ApplyGroups>>,
}

/// The values of a subquery for all rows at once: groups by what it compares with outer columns.
///
/// A row finds its group by its keys. If making the groups fails, the subquery is run for each row
/// instead: there may be groups that no row asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplyGroups {
    /// Yields keys, then aggregates.
    pub plan: Logical,
    /// What each key equals, over the input's columns.
    pub keys: Vec<Expr>,
    /// The value, over the input's columns followed by those of the plan, which are NULL for a row
    /// without a group.
    pub value: Expr,
}

impl Apply {
    /// Returns its expressions: the guard, and the condition of its kind.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        self.guard.iter().chain(self.kind.condition())
    }

    /// Returns its expressions: the guard, and the condition of its kind.
    pub fn expressions_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.guard.iter_mut().chain(self.kind.condition_mut())
    }
}

/// What an apply adds to the input's columns.
#[derive(Debug, Clone, PartialEq)]
pub enum ApplyKind {
    /// The one column of its one row, NULL if there is none; more rows are an error (21000).
    Scalar,
    /// The values of its one column, as an array of this type; no rows make an empty one.
    Array {
        /// The type of the array.
        data_type: DataType,
    },
    /// Whether there is a row.
    Exists,
    /// The value of `operand IN (subquery)` / `operand op ANY (subquery)` with three-valued logic.
    /// `comparison` is over the input's columns followed by the subquery's.
    Any {
        /// For each subquery row: does it match?
        comparison: Expr,
    },
    /// The value of `operand op ALL (subquery)`, likewise.
    All {
        /// For each subquery row: does it match?
        comparison: Expr,
    },
    /// All its columns: LATERAL. The input's row comes once for each subquery row that matches.
    Rows {
        /// Which subquery rows match, over the input's columns followed by the subquery's.
        on: Expr,
        /// Whether an input row without a match comes, too, with NULLs: LEFT JOIN LATERAL.
        outer: bool,
    },
}

impl SetFunction {
    /// Returns the expressions of the call.
    pub fn arguments(&self) -> &[Expr] {
        match &self.call {
            SetCall::Set { arguments, .. } | SetCall::Routine { arguments, .. } => arguments,
            SetCall::Value(value) => std::slice::from_ref(value),
        }
    }

    /// Returns the expressions of the call.
    pub fn arguments_mut(&mut self) -> &mut [Expr] {
        match &mut self.call {
            SetCall::Set { arguments, .. } | SetCall::Routine { arguments, .. } => arguments,
            SetCall::Value(value) => std::slice::from_mut(value),
        }
    }
}

impl ProjectSet {
    /// Returns the types of the columns behind the input's.
    pub fn set_types(&self) -> impl Iterator<Item = DataType> {
        let columns = self.functions.iter().flat_map(|function| &function.columns);
        let ordinality = self.ordinality.then_some(DataType::Int8);
        columns.map(|column| column.sql_type.base).chain(ordinality)
    }

    /// Returns the expressions of all calls.
    pub fn arguments(&self) -> impl Iterator<Item = &Expr> {
        self.functions.iter().flat_map(SetFunction::arguments)
    }

    /// Returns the expressions of all calls.
    pub fn arguments_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.functions.iter_mut().flat_map(SetFunction::arguments_mut)
    }
}

impl ApplyKind {
    /// Returns the types of the columns that are added to those of the input, of a subquery with
    /// columns of these types.
    pub fn added_types(&self, subquery: Vec<DataType>) -> Vec<DataType> {
        match self {
            ApplyKind::Scalar => vec![subquery.first().copied().unwrap_or(DataType::Unknown)],
            ApplyKind::Array { data_type } => vec![*data_type],
            ApplyKind::Exists | ApplyKind::Any { .. } | ApplyKind::All { .. } => {
                vec![DataType::Bool]
            }
            ApplyKind::Rows { .. } => subquery,
        }
    }

    /// Returns the expression that is over the input's columns followed by the subquery's.
    pub fn condition(&self) -> Option<&Expr> {
        match self {
            ApplyKind::Any { comparison: condition }
            | ApplyKind::All { comparison: condition }
            | ApplyKind::Rows { on: condition, .. } => Some(condition),
            ApplyKind::Scalar | ApplyKind::Exists | ApplyKind::Array { .. } => None,
        }
    }

    /// Returns the expression that is over the input's columns followed by the subquery's.
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

    /// Returns the result of a call of GROUPING in the groups of a set.
    pub fn grouping(asked: &[usize], set: &[usize]) -> i32 {
        asked.iter().fold(0, |bits, key| bits << 1 | i32::from(!set.contains(key)))
    }
}

/// A statement that reads or writes rows.
#[derive(Debug, Clone)]
pub enum Bound {
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
    /// Statements one after the other, the last of which is what the client asked for.
    Steps(Steps),
}

impl Bound {
    /// Returns the columns of the rows that it returns, if it returns any.
    pub fn columns(&self) -> Option<&[OutputColumn]> {
        let returning = match self {
            Bound::Query(query) => return Some(&query.columns),
            Bound::Steps(steps) => return steps.last.columns(),
            Bound::Insert(insert) => &insert.returning,
            Bound::Update(update) => &update.returning,
            Bound::Delete(delete) => &delete.returning,
            Bound::Merge(_) => return None,
        };
        returning.as_ref().map(|returning| returning.columns.as_slice())
    }
}

/// A query and what the client sees of it.
#[derive(Debug, Clone)]
pub struct Query {
    /// The plan.
    pub plan: Logical,
    /// Its columns.
    pub columns: Vec<OutputColumn>,
}

/// RETURNING: expressions over the row in table order, and what its statement says comes after.
#[derive(Debug, Clone)]
pub struct Returning {
    /// The expressions.
    pub expressions: Vec<Expr>,
    /// What the client sees.
    pub columns: Vec<OutputColumn>,
}

/// INSERT or UPSERT.
#[derive(Debug, Clone)]
pub struct Insert {
    /// The table.
    pub table: Arc<Table>,
    /// Yields full rows in table order, defaults filled in, cast to the columns' types.
    pub source: Logical,
    /// For UPSERT: which columns the statement names; the others keep their value if the row
    /// exists.
    pub named_columns: Vec<usize>,
    /// What happens when the row exists.
    pub on_conflict: OnConflict,
    /// What the action of a conflict is over, where it has subqueries.
    pub conflict_row: Option<Box<GivenRow>>,
    /// What views that it goes through ask of the rows.
    pub checks: Vec<ViewCheck>,
    /// RETURNING.
    pub returning: Option<Returning>,
}

impl Insert {
    /// Returns the rows at hand that parts of the statement are over.
    pub fn given_rows_mut(&mut self) -> impl Iterator<Item = &mut GivenRow> {
        let of_checks = self.checks.iter_mut().flat_map(|check| &mut check.row);
        self.conflict_row.iter_mut().chain(of_checks).map(Box::as_mut)
    }
}

/// A condition that rows must meet that are written through a view.
#[derive(Debug, Clone)]
pub struct ViewCheck {
    /// The view whose condition it is.
    pub view: String,
    /// Over the row in table order; with `row` over that.
    pub predicate: Expr,
    /// The row with what the subqueries of the condition say of it, where there are any: that is
    /// one column.
    pub row: Option<Box<GivenRow>>,
}

/// What an insert does when a row with its key exists.
#[derive(Debug, Clone)]
pub enum OnConflict {
    /// Error 23505.
    Error,
    /// UPSERT: the named columns are overwritten.
    Overwrite,
    /// Nothing: the row is left as it is. `constraint` `None`: any unique constraint or index.
    Ignore {
        /// The index that decides; `None` with `any` false: the primary key.
        target: ConflictTarget,
    },
    /// The existing row is updated.
    Update {
        /// Which constraint decides.
        target: ConflictTarget,
        /// Over the existing row in table order followed by the row that was to be inserted
        /// (`excluded`).
        assignments: Vec<Assignment>,
        /// WHERE, over the same.
        predicate: Option<Expr>,
    },
}

/// A row that the executor has at hand, with what subqueries add to it. The action of a conflict is
/// over one where it has subqueries: the existing row and the one that was to be inserted, then
/// what the subqueries add.
#[derive(Debug, Clone)]
pub struct GivenRow {
    /// Parameters that take the values of the row at hand.
    pub parameters: Vec<Expr>,
    /// Yields the one row.
    pub plan: Logical,
}

/// Which uniqueness an ON CONFLICT is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConflictTarget {
    /// Any.
    Any,
    /// Certain ones.
    These(Box<Arbiters>),
}

/// Unique keys that an ON CONFLICT is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arbiters {
    /// The primary key is one.
    pub primary_key: bool,
    /// Unique indexes, by name.
    pub indexes: Vec<String>,
}

/// `column = expression`.
#[derive(Debug, Clone)]
pub struct Assignment {
    /// Position of the column in the table.
    pub column: usize,
    /// The new value, cast to the column's type.
    pub value: Expr,
}

/// UPDATE.
#[derive(Debug, Clone)]
pub struct Update {
    /// The table.
    pub table: Arc<Table>,
    /// Yields the rows to change: all columns of the table, in table order, then those of FROM that
    /// are used, and what subqueries add.
    pub source: Logical,
    /// `_timestamp` comes right behind the table's columns.
    pub reads_timestamp: bool,
    /// The predicate alone, over the same columns, to be checked again on the locked row; `None` if
    /// it needs a subquery (then the row is taken as it is).
    pub recheck: Option<Expr>,
    /// Over the source's columns.
    pub assignments: Vec<Assignment>,
    /// Whether the source may yield a row of the table more than once, as FROM makes it: the first
    /// time counts.
    pub repeats: bool,
    /// What views that it goes through ask of the rows.
    pub checks: Vec<ViewCheck>,
    /// RETURNING, over the source's columns, with the new values of the table's.
    pub returning: Option<Returning>,
}

impl Update {
    /// Returns the rows at hand that parts of the statement are over.
    pub fn given_rows_mut(&mut self) -> impl Iterator<Item = &mut GivenRow> {
        self.checks.iter_mut().flat_map(|check| &mut check.row).map(Box::as_mut)
    }
}

/// DELETE.
#[derive(Debug, Clone)]
pub struct Delete {
    /// The table.
    pub table: Arc<Table>,
    /// As for [`Update::source`].
    pub source: Logical,
    /// As for [`Update::reads_timestamp`].
    pub reads_timestamp: bool,
    /// As for [`Update::recheck`].
    pub recheck: Option<Expr>,
    /// RETURNING.
    pub returning: Option<Returning>,
}

/// Types of the statement's parameters, `$1` first, as given or as found.
pub type ParameterTypes = Vec<SqlType>;

/// Values of the statement's parameters.
pub type ParameterValues = Vec<Datum>;

impl TableScan {
    /// Returns the type of one of [`TableScan::columns`].
    pub fn column_type(&self, column: usize) -> DataType {
        match column {
            TIMESTAMP_COLUMN => DataType::Timestamptz,
            column => self.table.layout.columns[column].data_type,
        }
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
                rows.columns.iter().map(|column| column.sql_type.base).collect()
            }
            Logical::Values { types, .. } => types.clone(),
            Logical::Constants(constants) => constants.types.clone(),
            Logical::Filter { input, .. }
            | Logical::Sort { input, .. }
            | Logical::Limit { input, .. }
            | Logical::Distinct { input, .. }
            | Logical::LockRows(LockRows { input, .. }) => input.column_types(),
            Logical::Project { expressions, .. } => {
                expressions.iter().map(Expr::data_type).collect()
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
                .chain(aggregates.iter().map(|aggregate| aggregate.data_type))
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
                .chain(grouping.aggregates.iter().map(|aggregate| aggregate.data_type))
                .chain(grouping.groupings.iter().map(|_| DataType::Int4))
                .collect(),
            Logical::SetOperation(operation) => operation.left.column_types(),
            Logical::Window(window) => {
                let mut types = window.input.column_types();
                types.extend(window.functions.iter().map(|function| function.data_type));
                types
            }
            Logical::With(with) => with.body.column_types(),
            Logical::CteScan(scan) => {
                scan.columns.iter().map(|column| column.sql_type.base).collect()
            }
            Logical::RecursiveUnion(union) => union.start.column_types(),
            Logical::Append { inputs } => {
                inputs.first().map(Logical::column_types).unwrap_or_default()
            }
        }
    }
}
