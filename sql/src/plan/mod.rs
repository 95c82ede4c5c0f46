//! Physical plans: what the planner makes of a logical plan, and what the executor runs.
//!
//! ```text
//! logical::Bound --planner--> Plan --exec--> batches
//! ```
//!
//! A [`Plan`] is immutable and shared: prepared statements keep it, any number of executions run it
//! at once. Nothing in it depends on parameter values; key ranges are expressions
//! ([`scan::KeyCondition`]) that are computed when the plan is opened.
//!
//! Nodes refer to the columns of their input by position, as [`crate::logical`] does.

pub mod scan;
mod estimates;
mod expression;
mod grouping_sets;
mod explain;
pub mod profile;
pub mod document;
mod reads;
mod row_by_row;
mod render;
mod window;

use std::sync::Arc;

use coprocessors::columns::SectionsOfGet;
use store::TableId;
use types::aggregate::Aggregate;
use types::expr::{Expr, Routine};
use types::{Batch, DataType};

use crate::catalog::table::Table;
use crate::logical::{
    ApplyKind, Assignment, EndpointTarget, JoinKind, LockedTable, MergeClause, OnConflict,
    OutputColumn, Returning, SetFunction, SetKind, SortKey, WindowFunction,
};
use crate::plan::scan::{AccessPath, ScanNode};

pub use crate::plan::estimates::{Estimate, Estimates};
pub use crate::plan::grouping_sets::{GroupingSet, GroupingSetsNode};
pub use crate::plan::render::Shown;

pub(crate) use crate::plan::expression::constant as literal;

/// A statement, ready to run.
#[derive(Debug)]
pub struct Plan {
    /// What runs before it: the parts of WITH that change data, and what they and it read.
    pub before: Vec<PlanStep>,
    /// What runs.
    pub root: Root,
    columns: Vec<OutputColumn>,
    /// One more than the largest parameter index in the plan, subquery bindings included.
    pub parameter_count: usize,
    /// The short path of a single-key get.
    pub point: Option<PointGet>,
    /// Whether a step of it locks the rows of what is below.
    pub locks_rows: bool,
    /// It changes rows, and calls functions that see what it has changed: each row is made and
    /// staged before the next one.
    pub row_by_row: bool,
}

impl Plan {
    /// Returns the function that CALL calls, and its arguments, if the plan is one of CALL.
    pub fn called(&self) -> Option<(&Arc<Routine>, &[Expr])> {
        let Root::Query(node) = &self.root else { return None };
        let sets = match node {
            Node::ProjectSet(sets) => sets,
            Node::Project(project) => match &project.input {
                Node::ProjectSet(sets) => sets,
                _ => return None,
            },
            _ => return None,
        };
        match sets.functions.as_slice() {
            [
                SetFunction {
                    call: crate::logical::SetCall::Routine { routine, arguments, .. },
                    ..
                },
            ] => Some((routine, arguments)),
            _ => None,
        }
    }
}

/// A part of WITH, whose rows later ones may read by its number.
#[derive(Debug)]
pub struct PlanStep {
    /// The number.
    pub id: usize,
    /// Its name.
    pub name: String,
    /// A query, computed as far as it is read, or a change, which runs to its end.
    pub root: Root,
}

/// What a plan does.
#[derive(Debug)]
pub enum Root {
    /// Yields rows.
    Query(Node),
    /// INSERT, UPSERT.
    Insert(InsertPlan),
    /// UPDATE.
    Update(UpdatePlan),
    /// DELETE.
    Delete(DeletePlan),
    /// MERGE.
    Merge(MergePlan),
}

/// A step that yields rows. Cheap to clone.
#[derive(Debug, Clone)]
pub enum Node {
    /// Rows of a table, by key or index.
    Scan(Arc<ScanNode>),
    /// Aggregates computed in the regions of a table.
    RegionAggregate(Arc<RegionAggregateNode>),
    /// The first rows of a table in an order, found in its regions.
    RegionTopN(Arc<RegionTopNNode>),
    /// A system view or table function.
    SystemRows(Arc<SystemRowsNode>),
    /// Constant rows.
    Values(Arc<ValuesNode>),
    /// Rows for which a predicate is true.
    Filter(Arc<FilterNode>),
    /// New columns out of old.
    Project(Arc<ProjectNode>),
    /// Rows of functions, for each row of the input.
    ProjectSet(Arc<ProjectSetNode>),
    /// Pairs of rows with equal keys.
    HashJoin(Arc<KeyJoinNode>),
    /// The same, of sides that come in the order of the keys.
    MergeJoin(Arc<KeyJoinNode>),
    /// Pairs of rows, the right ones looked up by key.
    LookupJoin(Arc<LookupJoinNode>),
    /// Pairs of rows, all of them tried.
    LoopJoin(Arc<LoopJoinNode>),
    /// A subquery for each row.
    Apply(Arc<ApplyNode>),
    /// Groups.
    Aggregate(Arc<AggregateNode>),
    /// Groups by several sets of keys.
    GroupingSets(Arc<GroupingSetsNode>),
    /// Sorted rows.
    Sort(Arc<SortNode>),
    /// Rows that are locked, and made again if something of them has changed.
    LockRows(Arc<LockRowsNode>),
    /// Some of the rows.
    Limit(Arc<LimitNode>),
    /// The first row of each kind.
    Distinct(Arc<DistinctNode>),
    /// INTERSECT and EXCEPT.
    SetOperation(Arc<SetOperationNode>),
    /// Window functions.
    WindowAgg(Arc<WindowAggNode>),
    /// Rows with a name, for what is below.
    With(Arc<WithNode>),
    /// Rows with a name.
    CteScan(Arc<CteScanNode>),
    /// WITH RECURSIVE.
    RecursiveUnion(Arc<RecursiveUnionNode>),
    /// The rows of all inputs.
    Append(Arc<AppendNode>),
}

/// See [`Node::RegionAggregate`]. Output: group keys, then aggregates.
#[derive(Debug)]
pub struct RegionAggregateNode {
    /// The table.
    pub table: Arc<Table>,
    /// The name it goes by.
    pub alias: String,
    /// Which rows of the table or of a covering index.
    pub path: AccessPath,
    /// Columns read, by position in the layout of the path; what the expressions below refer to.
    pub read: Vec<usize>,
    /// Rows wanted.
    pub filter: Option<Expr>,
    /// The keys.
    pub group_by: Vec<Expr>,
    /// The aggregates.
    pub aggregates: Vec<Aggregate>,
}

/// See [`Node::RegionTopN`].
#[derive(Debug)]
pub struct RegionTopNNode {
    /// The table.
    pub table: Arc<Table>,
    /// The name it goes by.
    pub alias: String,
    /// Which rows of the table or of a covering index.
    pub path: AccessPath,
    /// Columns read, by position in the layout of the path; what the expressions below refer to.
    pub read: Vec<usize>,
    /// Rows wanted.
    pub filter: Option<Expr>,
    /// The order, most significant key first.
    pub keys: Vec<SortKey>,
    /// Columns yielded, by position in `read`.
    pub output: Vec<usize>,
    /// How many rows are wanted.
    pub goal: RowGoal,
    /// What yields the same if they turn out to be more than [`RegionTopNNode::ROWS_MAX`], or not
    /// to fit into `work_mem`: a sort goes on on disk.
    pub otherwise: Node,
}

impl RegionTopNNode {
    /// More rows than these are sorted by the session: much of the table would be sent anyhow.
    pub const ROWS_MAX: usize = 10_000;
}

/// See [`Node::SystemRows`].
#[derive(Debug)]
pub struct SystemRowsNode {
    /// Which.
    pub name: String,
    /// Arguments of a table function.
    pub arguments: Vec<Expr>,
    /// What `endpoint` calls.
    pub endpoint: Option<Arc<EndpointTarget>>,
    /// Types of the columns.
    pub types: Vec<DataType>,
}

/// See [`Node::Values`].
#[derive(Debug)]
pub struct ValuesNode {
    /// Types of the columns.
    pub types: Vec<DataType>,
    /// The rows.
    pub rows: Vec<Vec<Expr>>,
    /// Or, where they are many constants, their columns.
    pub constants: Option<Arc<Batch>>,
}

/// See [`Node::Filter`].
#[derive(Debug)]
pub struct FilterNode {
    /// Where the rows come from.
    pub input: Node,
    /// Boolean.
    pub predicate: Expr,
}

/// See [`Node::Project`].
#[derive(Debug)]
pub struct ProjectNode {
    /// Where the rows come from.
    pub input: Node,
    /// One for each output column.
    pub expressions: Vec<Expr>,
}

/// See [`Node::ProjectSet`].
#[derive(Debug)]
pub struct ProjectSetNode {
    /// Where the rows come from.
    pub input: Node,
    /// The functions, over the input.
    pub functions: Vec<SetFunction>,
    /// Whether the rows of each call are counted.
    pub ordinality: bool,
    /// Whether a row for which no function yields one stays.
    pub outer: bool,
    /// Columns of the input that nobody above reads: NULLs stand there.
    pub unread: Vec<usize>,
}

/// See [`Node::HashJoin`] and [`Node::MergeJoin`]. The right side is kept: all of it in a hash
/// table, or the stretch of it that may match the left rows at hand. A merge join is an inner,
/// left, semi or anti one, and its keys ascend, NULLs last.
#[derive(Debug)]
pub struct KeyJoinNode {
    /// How rows pair up.
    pub kind: JoinKind,
    /// Probes.
    pub left: Node,
    /// Is built from.
    pub right: Node,
    /// Keys over the left columns.
    pub left_keys: Vec<Expr>,
    /// Keys over the right columns, of the same types.
    pub right_keys: Vec<Expr>,
    /// What must hold besides, over left columns followed by right columns.
    pub residual: Option<Expr>,
    /// Types of the left columns.
    pub left_types: Vec<DataType>,
    /// Types of the right columns.
    pub right_types: Vec<DataType>,
    /// The order that the rows must come in, which is one that the left rows have; a hash join has
    /// to sort them if the right side does not fit into memory. Empty: any.
    pub order: Vec<SortKey>,
}

/// See [`Node::LookupJoin`]. For each batch of left rows the right rows with their keys are read,
/// and paired with them as a hash join does it.
#[derive(Debug)]
pub struct LookupJoinNode {
    /// How rows pair up: inner, left, semi, anti.
    pub kind: JoinKind,
    /// Outer side.
    pub left: Node,
    /// A [`Node::Scan`] whose path uses the parameters of [`LookupJoinNode::bindings`]; nothing
    /// else in it does.
    pub right: Node,
    /// Parameter index, and the expression over the left columns that it takes its value from.
    pub bindings: Vec<(usize, Expr)>,
    /// Keys over the left columns.
    pub left_keys: Vec<Expr>,
    /// Keys over the right columns, of the same types.
    pub right_keys: Vec<Expr>,
    /// The range of right rows that each left row has, among those with its keys.
    pub range: Option<KeyRange>,
    /// Other conditions, over left columns followed by right columns; the bounds of the range are
    /// among them.
    pub residual: Option<Expr>,
    /// Types of the left columns.
    pub left_types: Vec<DataType>,
    /// Types of the right columns.
    pub right_types: Vec<DataType>,
    /// Number of left rows whose pairs the step above will take.
    pub goal: Option<RowGoal>,
}

/// A range of the right rows of a join, with bounds of the left row.
#[derive(Debug, Clone)]
pub struct KeyRange {
    /// The value within the bounds, over the right columns.
    pub key: Expr,
    /// The lower bound.
    pub low: Option<RangeBound>,
    /// The upper bound.
    pub high: Option<RangeBound>,
}

/// A bound of a [`KeyRange`].
#[derive(Debug, Clone)]
pub struct RangeBound {
    /// Its value, over the left columns.
    pub value: Expr,
    /// The value itself is in the range.
    pub is_inclusive: bool,
}

impl KeyRange {
    /// Returns a range without bounds.
    pub fn of(key: Expr) -> KeyRange {
        KeyRange { key, low: None, high: None }
    }
}

/// See [`Node::LoopJoin`]. The right side is kept in memory, as far as it fits.
#[derive(Debug)]
pub struct LoopJoinNode {
    /// How rows pair up.
    pub kind: JoinKind,
    /// Outer side.
    pub left: Node,
    /// Inner side.
    pub right: Node,
    /// What must hold, over left columns followed by right columns; `None`: all pairs.
    pub on: Option<Expr>,
    /// Types of the left columns.
    pub left_types: Vec<DataType>,
    /// Types of the right columns.
    pub right_types: Vec<DataType>,
    /// True if the rows must come in the order of the left ones.
    pub keeps_order: bool,
}

/// See [`Node::Apply`].
#[derive(Debug)]
pub struct ApplyNode {
    /// The outer rows.
    pub input: Node,
    /// The subquery.
    pub subquery: Node,
    /// Parameter index and the input column it takes its value from.
    pub bindings: Vec<(usize, usize)>,
    /// What is added.
    pub kind: ApplyKind,
    /// Whether it may give another value for the same row: what it gave is not remembered.
    pub varies: bool,
    /// Whether it depends on nothing of the steps around: it is run once for the statement.
    pub once: bool,
    /// For which rows the subquery is run, over the input's columns; `None`: all.
    pub guard: Option<Expr>,
    /// Its values for all rows at once, if that is tried first.
    pub groups: Option<ApplyGroupsNode>,
    /// Types of the input's columns.
    pub input_types: Vec<DataType>,
    /// Types of the subquery's columns.
    pub subquery_types: Vec<DataType>,
}

/// Groups in which rows find the value of their subquery
/// ([`ApplyGroups`](crate::logical::ApplyGroups)).
#[derive(Debug)]
pub struct ApplyGroupsNode {
    /// Yields keys, then aggregates.
    pub plan: Node,
    /// Types of its columns.
    pub types: Vec<DataType>,
    /// What each key equals, over the input's columns.
    pub keys: Vec<Expr>,
    /// The value, over the input's columns followed by those of the plan.
    pub value: Expr,
}

/// See [`Node::Aggregate`].
#[derive(Debug)]
pub struct AggregateNode {
    /// Where the rows come from.
    pub input: Node,
    /// The keys.
    pub group_by: Vec<Expr>,
    /// The aggregates.
    pub aggregates: Vec<Aggregate>,
}

/// See [`Node::Sort`].
#[derive(Debug)]
pub struct SortNode {
    /// Where the rows come from.
    pub input: Node,
    /// Most significant first.
    pub keys: Vec<SortKey>,
    /// Only so many of the first rows are wanted.
    pub goal: Option<RowGoal>,
    /// Types of the columns.
    pub types: Vec<DataType>,
}

/// See [`Node::LockRows`].
#[derive(Debug)]
pub struct LockRowsNode {
    /// Yields the rows, with the keys of the tables.
    pub input: Node,
    /// What is locked, and how a row of which something has changed is made again.
    pub held: HeldNode,
    /// How many rows the step above will take.
    pub goal: Option<RowGoal>,
}

/// See [`crate::logical::HeldRows`].
#[derive(Debug)]
pub struct HeldNode {
    /// The tables whose rows are locked, in this order.
    pub tables: Vec<LockedTable>,
    /// Parameters of `again`, and the columns of the row that they take.
    pub copies: Vec<(usize, usize)>,
    /// Yields the row as it is now, if it is still wanted.
    pub again: Node,
}

/// See [`Node::Limit`].
#[derive(Debug)]
pub struct LimitNode {
    /// Where the rows come from.
    pub input: Node,
    /// `None` or NULL: all.
    pub limit: Option<Expr>,
    /// Rows to skip.
    pub offset: Option<Expr>,
    /// What later rows must share with the last one to count as well; empty: none do.
    pub ties: Vec<Expr>,
    /// A step below has effects that rows behind the last one are not to have.
    pub row_by_row: bool,
}

/// See [`Node::Distinct`].
#[derive(Debug)]
pub struct DistinctNode {
    /// Where the rows come from.
    pub input: Node,
    /// What the rows must differ in.
    pub on: Vec<Expr>,
    /// The rows are sorted by that. If not, it is all of their columns.
    pub sorted: bool,
}

/// See [`Node::SetOperation`]. EXCEPT yields a row as often as the left side has it.
#[derive(Debug)]
pub struct SetOperationNode {
    /// Which.
    pub kind: SetKind,
    /// Each row as often as it is there.
    pub all: bool,
    /// The rows.
    pub left: Node,
    /// What they are held against.
    pub right: Node,
    /// Types of the columns of both.
    pub types: Vec<DataType>,
}

/// See [`Node::WindowAgg`]. The rows come sorted by partition and order.
#[derive(Debug)]
pub struct WindowAggNode {
    /// Where the rows come from.
    pub input: Node,
    /// Rows that agree in these are a partition.
    pub partition_by: Vec<Expr>,
    /// The order within a partition.
    pub order_by: Vec<SortKey>,
    /// The functions.
    pub functions: Vec<WindowFunction>,
    /// Types of the input's columns.
    pub input_types: Vec<DataType>,
}

/// See [`Node::With`]. The query is computed as far as the body reads it, and kept.
#[derive(Debug)]
pub struct WithNode {
    /// The query's number.
    pub id: usize,
    /// Its name.
    pub name: String,
    /// The query.
    pub query: Node,
    /// Gives the rows.
    pub body: Node,
}

/// See [`Node::CteScan`].
#[derive(Debug)]
pub struct CteScanNode {
    /// The query's number.
    pub id: usize,
    /// Its name.
    pub name: String,
    /// Names of its columns.
    pub names: Vec<String>,
    /// Types of its columns.
    pub types: Vec<DataType>,
    /// Whether it is the work table of a recursive query.
    pub is_work_table: bool,
}

/// See [`Node::RecursiveUnion`].
#[derive(Debug)]
pub struct RecursiveUnionNode {
    /// The number of the work table.
    pub id: usize,
    /// The query's name.
    pub name: String,
    /// Whether rows that were there before count again.
    pub all: bool,
    /// The first term.
    pub start: Node,
    /// The second term, which reads the work table.
    pub step: Node,
    /// Types of the columns.
    pub types: Vec<DataType>,
}

/// See [`Node::Append`].
#[derive(Debug)]
pub struct AppendNode {
    /// The inputs.
    pub inputs: Vec<Node>,
}

/// How many rows the step above will take: limit plus offset of a LIMIT.
#[derive(Debug, Clone, PartialEq)]
pub struct RowGoal {
    /// The limit; bigint without columns. NULL: no goal.
    pub limit: Expr,
    /// The offset.
    pub offset: Option<Expr>,
    /// About how many rows of the step are read for each row that is wanted, where steps above it
    /// drop or add some. `None`: none does, and no row beyond the goal is read.
    pub rows_for_each: Option<f64>,
}

/// A get by the whole primary key whose answer is plain columns of the row.
#[derive(Debug)]
pub struct PointGet {
    /// The table.
    pub table: Arc<Table>,
    /// The key, in key order; constants and parameters of the key columns' own representation, or
    /// integers of another width.
    pub key: Vec<Expr>,
    /// Columns of the answer, by position in the table.
    pub columns: Vec<usize>,
    /// Families to read; `None` for all.
    pub families: Option<Vec<u8>>,
    /// What is looked at of their values.
    pub sections: SectionsOfGet,
}

/// INSERT, UPSERT.
#[derive(Debug)]
pub struct InsertPlan {
    /// The table.
    pub table: Arc<Table>,
    /// Yields full rows in table order.
    pub source: Node,
    /// Columns that an UPSERT names.
    pub named_columns: Vec<usize>,
    /// What happens when the row exists.
    pub on_conflict: OnConflict,
    /// What its action is over, where that has subqueries.
    pub conflict_row: Option<GivenRowPlan>,
    /// What views that it goes through ask of the rows.
    pub checks: Vec<ViewCheckPlan>,
    /// RETURNING.
    pub returning: Option<Returning>,
}

/// A row at hand with what subqueries add; see [`crate::logical::GivenRow`].
#[derive(Debug)]
pub struct GivenRowPlan {
    /// Indexes of the parameters that take the values of the row at hand.
    pub parameters: Vec<usize>,
    /// Yields the one row.
    pub node: Node,
}

/// A condition of rows that are written through a view; see [`crate::logical::ViewCheck`].
#[derive(Debug)]
pub struct ViewCheckPlan {
    /// The view whose condition it is.
    pub view: String,
    /// Over the row in table order; with `row` over that.
    pub predicate: Expr,
    /// The row with what subqueries say of it.
    pub row: Option<GivenRowPlan>,
}

/// UPDATE.
#[derive(Debug)]
pub struct UpdatePlan {
    /// The table.
    pub table: Arc<Table>,
    /// Which rows.
    pub source: TargetRows,
    /// The first column behind the table's is `_timestamp`.
    pub reads_timestamp: bool,
    /// Checked again on the locked row.
    pub recheck: Option<Expr>,
    /// Over the row in table order, followed by [`TargetRows::extra_types`] columns.
    pub assignments: Vec<Assignment>,
    /// Whether a row may come more than once, of which the first time counts.
    pub repeats: bool,
    /// What views that it goes through ask of the rows.
    pub checks: Vec<ViewCheckPlan>,
    /// RETURNING.
    pub returning: Option<Returning>,
}

/// DELETE.
#[derive(Debug)]
pub struct DeletePlan {
    /// The table.
    pub table: Arc<Table>,
    /// Which rows.
    pub source: TargetRows,
    /// The first column behind the table's is `_timestamp`.
    pub reads_timestamp: bool,
    /// Checked again on the locked row.
    pub recheck: Option<Expr>,
    /// RETURNING.
    pub returning: Option<Returning>,
}

/// MERGE; see [`crate::logical::Merge`].
#[derive(Debug)]
pub struct MergePlan {
    /// The table.
    pub table: Arc<Table>,
    /// Yields the table's columns, then those of USING and subqueries.
    pub source: Node,
    /// Makes a row again whose part of the table has changed meanwhile; `None` if the source has
    /// locked the table's rows itself.
    pub held: Option<HeldNode>,
    /// What is done with a row.
    pub clauses: Vec<MergeClause>,
}

/// The rows that UPDATE and DELETE change.
#[derive(Debug)]
pub struct TargetRows {
    /// Yields the key columns in key order, then the columns that FROM and subqueries added.
    pub node: Node,
    /// Types of the latter.
    pub extra_types: Vec<DataType>,
    /// Set if there is one row and its key is all that the statement says of it: the short path.
    pub point: Option<Vec<Expr>>,
}

impl Plan {
    /// Returns a plan; the planner's part.
    pub(crate) fn new(
        root: Root,
        columns: Vec<OutputColumn>,
        parameter_count: usize,
        point: Option<PointGet>,
    ) -> Plan {
        let locks_rows = matches!(&root, Root::Query(node) if node.locks_rows());
        Plan {
            before: Vec::new(),
            root,
            columns,
            parameter_count,
            point,
            locks_rows,
            row_by_row: false,
        }
    }

    /// Returns the columns of the result: of a query, or of RETURNING; empty for a statement that
    /// returns no rows.
    pub fn columns(&self) -> &[OutputColumn] {
        &self.columns
    }

    /// Returns whether the plan yields rows, and is for [`exec::open`](crate::exec::open); other
    /// plans are for [`exec::modify`](crate::exec::modify).
    pub fn is_query(&self) -> bool {
        self.before.is_empty() && matches!(self.root, Root::Query(_))
    }

    /// Returns whether each row that it yields is one of a table that it scans.
    pub fn is_simple_scan(&self) -> bool {
        let Root::Query(node) = &self.root else { return false };
        let mut node = node;
        loop {
            node = match node {
                Node::Filter(of) => &of.input,
                Node::Project(of) => &of.input,
                Node::Limit(of) => &of.input,
                Node::Apply(of) => &of.input,
                Node::Scan(_) => return true,
                _ => return false,
            }
        }
    }

    /// Returns the plan as text, a line for each step, the last step first. `regions` tells how
    /// many a table of the store has now; where it does not, the text is of those at first.
    pub fn explain(&self, regions: &dyn Fn(TableId) -> Option<usize>) -> Vec<String> {
        self.explain_run(regions, Shown::default())
    }

    /// As [`Plan::explain`], with what its steps did when it ran.
    pub fn explain_run(
        &self,
        regions: &dyn Fn(TableId) -> Option<usize>,
        shown: Shown<'_>,
    ) -> Vec<String> {
        render::text(&explain::tree(self, regions), shown)
    }

    /// Returns the plan as a document, as [`Plan::explain_run`] shows it; `summary` has other
    /// members.
    pub fn explain_document(
        &self,
        regions: &dyn Fn(TableId) -> Option<usize>,
        shown: Shown<'_>,
        summary: &[(&str, document::Figure)],
        format: document::Format,
    ) -> String {
        render::document(&explain::tree(self, regions), shown, summary, format)
    }

    /// Returns the plan in one line: how rows are found, and what happens to them.
    pub fn summary(&self) -> String {
        explain::summary(self)
    }
}

impl RowGoal {
    /// Returns about how many rows that are.
    pub(crate) fn estimate(&self) -> f64 {
        /// What a client asks for that does not say it in the text.
        const USUAL: f64 = 100.0;
        let rows = |count: &Expr| match count {
            Expr::Constant { value, .. } => value.as_i64().map_or(USUAL, |count| count as f64),
            _ => USUAL,
        };
        let wanted = rows(&self.limit) + self.offset.as_ref().map_or(0.0, rows);
        wanted * self.rows_for_each.unwrap_or(1.0)
    }

    /// Returns whether no row beyond the goal is read.
    pub fn is_exact(&self) -> bool {
        self.rows_for_each.is_none()
    }

    /// Returns the goal of a step below one that takes so many of its rows, about, for each that it
    /// yields.
    pub(crate) fn below(self, rows_for_each: f64) -> RowGoal {
        let rows_for_each = Some(self.rows_for_each.unwrap_or(1.0) * rows_for_each);
        RowGoal { rows_for_each, ..self }
    }

    /// Returns the goal of a LIMIT without columns.
    pub fn of(limit: &Option<Expr>, offset: &Option<Expr>) -> Option<RowGoal> {
        let (limit, offset) = (limit.clone()?, offset.clone());
        Some(RowGoal { limit, offset, rows_for_each: None })
    }
}

impl Node {
    /// Returns what tells the step from all others of its plan.
    pub fn address(&self) -> usize {
        match self {
            Node::Scan(node) => Arc::as_ptr(node) as usize,
            Node::RegionAggregate(node) => Arc::as_ptr(node) as usize,
            Node::RegionTopN(node) => Arc::as_ptr(node) as usize,
            Node::SystemRows(node) => Arc::as_ptr(node) as usize,
            Node::Values(node) => Arc::as_ptr(node) as usize,
            Node::Filter(node) => Arc::as_ptr(node) as usize,
            Node::Project(node) => Arc::as_ptr(node) as usize,
            Node::ProjectSet(node) => Arc::as_ptr(node) as usize,
            Node::HashJoin(node) | Node::MergeJoin(node) => Arc::as_ptr(node) as usize,
            Node::LookupJoin(node) => Arc::as_ptr(node) as usize,
            Node::LoopJoin(node) => Arc::as_ptr(node) as usize,
            Node::Apply(node) => Arc::as_ptr(node) as usize,
            Node::Aggregate(node) => Arc::as_ptr(node) as usize,
            Node::GroupingSets(node) => Arc::as_ptr(node) as usize,
            Node::Sort(node) => Arc::as_ptr(node) as usize,
            Node::LockRows(node) => Arc::as_ptr(node) as usize,
            Node::Limit(node) => Arc::as_ptr(node) as usize,
            Node::Distinct(node) => Arc::as_ptr(node) as usize,
            Node::SetOperation(node) => Arc::as_ptr(node) as usize,
            Node::WindowAgg(node) => Arc::as_ptr(node) as usize,
            Node::With(node) => Arc::as_ptr(node) as usize,
            Node::CteScan(node) => Arc::as_ptr(node) as usize,
            Node::RecursiveUnion(node) => Arc::as_ptr(node) as usize,
            Node::Append(node) => Arc::as_ptr(node) as usize,
        }
    }

    fn locks_rows(&self) -> bool {
        matches!(self, Node::LockRows(_)) || self.inputs().into_iter().any(Node::locks_rows)
    }

    /// Returns the steps below this one.
    pub fn inputs(&self) -> Vec<&Node> {
        match self {
            Node::Scan(_)
            | Node::RegionAggregate(_)
            | Node::RegionTopN(_)
            | Node::SystemRows(_)
            | Node::Values(_)
            | Node::CteScan(_) => Vec::new(),
            Node::Filter(node) => vec![&node.input],
            Node::Project(node) => vec![&node.input],
            Node::ProjectSet(node) => vec![&node.input],
            Node::HashJoin(node) | Node::MergeJoin(node) => vec![&node.left, &node.right],
            Node::LookupJoin(node) => vec![&node.left, &node.right],
            Node::LoopJoin(node) => vec![&node.left, &node.right],
            Node::Apply(node) => {
                let groups = node.groups.iter().map(|groups| &groups.plan);
                [&node.input, &node.subquery].into_iter().chain(groups).collect()
            }
            Node::Aggregate(node) => vec![&node.input],
            Node::GroupingSets(node) => vec![&node.input],
            Node::Sort(node) => vec![&node.input],
            Node::LockRows(node) => vec![&node.input],
            Node::Limit(node) => vec![&node.input],
            Node::Distinct(node) => vec![&node.input],
            Node::SetOperation(node) => vec![&node.left, &node.right],
            Node::WindowAgg(node) => vec![&node.input],
            Node::With(node) => vec![&node.query, &node.body],
            Node::RecursiveUnion(node) => vec![&node.start, &node.step],
            Node::Append(node) => node.inputs.iter().collect(),
        }
    }
}
