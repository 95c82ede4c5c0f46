//! Physical plans: the output of the planner and the input of the executor.
//!
//! ```text
//! logical::Bound --planner--> Plan --exec--> batches
//! ```
//!
//! A [`Plan`] is immutable and shared: prepared statements cache it, and several executions may
//! use it concurrently. It does not depend on parameter values; key ranges are expressions
//! ([`scan::KeyCondition`]) that are evaluated when the plan is opened.
//!
//! Nodes refer to the columns of their input by position, as [`crate::logical`] does.

pub mod scan;
mod estimates;
mod column_types;
mod expression;
mod grouping_sets;
mod explain;
pub mod profile;
pub mod document;
mod with_dependencies;
mod side_effects;
mod render;
mod window;

use std::sync::Arc;

use coprocessors::columns::SectionsOfGet;
use coprocessors::row::ReadColumns;
use store::TableId;
use types::aggregate::Aggregate;
use types::expr::{Expr, Routine};
use types::{Batch, DataType};

use crate::ast::CellAttributes;
use crate::catalog::table::Table;
use crate::logical::{
    ApplyKind, Assignment, CheckSubject, JoinKind, LockedTable, MergeClause, OnConflict,
    OutputColumn, RegionFunctionTarget, Returning, SetFunction, SetKind, SortKey, WindowFunction,
};
use crate::plan::scan::{AccessPath, ScanNode};

pub use crate::plan::estimates::{Estimate, Estimates};
pub use crate::plan::grouping_sets::{GroupingSet, GroupingSetsNode};
pub use crate::plan::render::ExplainContent;

pub(crate) use crate::plan::expression::constant as literal;

/// Executable plan of a statement.
#[derive(Debug)]
pub struct Plan {
    /// Parts of data-changing WITH, and the queries that they and the statement read.
    pub before: Vec<WithPart>,
    /// Main plan.
    pub root: PlanRoot,
    columns: Vec<OutputColumn>,
    /// One more than the largest parameter index in the plan, including subquery bindings.
    pub parameter_count: usize,
    /// Point get by the whole primary key, without operators.
    pub point: Option<PointGet>,
    /// True if a node locks rows of its input.
    pub locks_rows: bool,
    /// True if a scan locks the rows that it reads.
    pub has_locking_scan: bool,
    /// True if the statement changes rows and calls functions that see the changes: each row is
    /// produced and staged before the next one.
    pub row_by_row: bool,
}

impl Plan {
    /// Returns the procedure of CALL and its arguments, if the plan is one of CALL.
    pub fn called(&self) -> Option<(&Arc<Routine>, &[Expr])> {
        let PlanRoot::Query(node) = &self.root else { return None };
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

/// Part of WITH, whose rows later ones may read by its number.
#[derive(Debug)]
pub struct WithPart {
    /// Number.
    pub id: usize,
    /// Name.
    pub name: String,
    /// A query, computed on demand, or a change, executed to completion.
    pub root: PlanRoot,
}

/// Topmost node of a plan.
#[derive(Debug)]
pub enum PlanRoot {
    /// Query.
    Query(Node),
    /// INSERT, UPSERT.
    Insert(InsertPlan),
    /// UPDATE, DELETE.
    Change(RowChangePlan),
    /// MERGE.
    Merge(MergePlan),
}

/// Plan node that yields rows. Cheap to clone.
#[derive(Debug, Clone)]
pub enum Node {
    /// Table or index scan.
    Scan(Arc<ScanNode>),
    /// Aggregate pushdown to the regions of a table.
    RegionAggregate(Arc<RegionAggregateNode>),
    /// Top-N pushdown to the regions of a table.
    RegionTopN(Arc<RegionTopNNode>),
    /// A system view or table function.
    SystemRows(Arc<SystemRowsNode>),
    /// Constant rows.
    Values(Arc<ValuesNode>),
    /// Rows that satisfy a predicate.
    Filter(Arc<FilterNode>),
    /// Computed columns.
    Project(Arc<ProjectNode>),
    /// Set-returning functions, for each row of the input.
    ProjectSet(Arc<ProjectSetNode>),
    /// Hash join.
    HashJoin(Arc<KeyJoinNode>),
    /// Merge join, of inputs that are sorted by the keys.
    MergeJoin(Arc<KeyJoinNode>),
    /// Index nested-loop join: right rows are looked up by key.
    LookupJoin(Arc<LookupJoinNode>),
    /// Nested-loop join over all pairs.
    LoopJoin(Arc<LoopJoinNode>),
    /// Subquery that is executed for each row.
    Apply(Arc<ApplyNode>),
    /// Hash aggregate.
    Aggregate(Arc<AggregateNode>),
    /// GROUPING SETS.
    GroupingSets(Arc<GroupingSetsNode>),
    /// Sorted rows.
    Sort(Arc<SortNode>),
    /// Row locks, with re-evaluation of changed rows.
    LockRows(Arc<LockRowsNode>),
    /// LIMIT and OFFSET.
    Limit(Arc<LimitNode>),
    /// DISTINCT.
    Distinct(Arc<DistinctNode>),
    /// INTERSECT and EXCEPT.
    SetOperation(Arc<SetOperationNode>),
    /// Window functions.
    WindowAgg(Arc<WindowAggNode>),
    /// WITH: a named query for its body.
    With(Arc<WithNode>),
    /// Scan of a named query.
    CteScan(Arc<CteScanNode>),
    /// WITH RECURSIVE.
    RecursiveUnion(Arc<RecursiveUnionNode>),
    /// UNION ALL.
    Append(Arc<AppendNode>),
}

/// See [`Node::RegionAggregate`]. Output: group keys, then aggregates.
#[derive(Debug)]
pub struct RegionAggregateNode {
    /// The table.
    pub table: Arc<Table>,
    /// Alias.
    pub alias: String,
    /// Access path to the table or a covering index.
    pub path: AccessPath,
    /// Decoded columns, by position in the layout of the path; the expressions below refer to
    /// them.
    pub read: Vec<usize>,
    /// Filter.
    pub filter: Option<Expr>,
    /// Group keys.
    pub group_by: Vec<Expr>,
    /// Aggregates.
    pub aggregates: Vec<Aggregate>,
}

/// See [`Node::RegionTopN`].
#[derive(Debug)]
pub struct RegionTopNNode {
    /// The table.
    pub table: Arc<Table>,
    /// Alias.
    pub alias: String,
    /// Access path to the table or a covering index.
    pub path: AccessPath,
    /// Decoded columns, by position in the layout of the path; the expressions below refer to
    /// them.
    pub read: Vec<usize>,
    /// Filter.
    pub filter: Option<Expr>,
    /// Sort keys, most significant first.
    pub keys: Vec<SortKey>,
    /// Output columns, by position in `read`.
    pub output: Vec<usize>,
    /// Number of rows.
    pub goal: RowGoal,
    /// Fallback with the same result if the number of rows exceeds [`RegionTopNNode::ROWS_MAX`]
    /// or `work_mem`: a sort, which can spill.
    pub otherwise: Node,
}

impl RegionTopNNode {
    /// Number of rows above which the session sorts: much of the table would be sent anyway.
    pub const ROWS_MAX: usize = 10_000;
}

/// See [`Node::SystemRows`].
#[derive(Debug)]
pub struct SystemRowsNode {
    /// Name of the view or function.
    pub name: String,
    /// Arguments of a table function.
    pub arguments: Vec<Expr>,
    /// Target of a function over the regions of a table.
    pub target: Option<Arc<RegionFunctionTarget>>,
    /// Column types.
    pub types: Vec<DataType>,
    /// Column names, for EXPLAIN.
    pub names: Vec<String>,
}

/// See [`Node::Values`].
#[derive(Debug)]
pub struct ValuesNode {
    /// Column types.
    pub types: Vec<DataType>,
    /// Rows of expressions.
    pub rows: Vec<Vec<Expr>>,
    /// Columns of a long list of constants, instead of `rows`.
    pub constants: Option<Arc<Batch>>,
}

/// See [`Node::Filter`].
#[derive(Debug)]
pub struct FilterNode {
    /// Input.
    pub input: Node,
    /// Predicate.
    pub predicate: Expr,
}

/// See [`Node::Project`].
#[derive(Debug)]
pub struct ProjectNode {
    /// Input.
    pub input: Node,
    /// One expression for each output column.
    pub expressions: Vec<Expr>,
}

/// See [`Node::ProjectSet`].
#[derive(Debug)]
pub struct ProjectSetNode {
    /// Input.
    pub input: Node,
    /// Functions over the input.
    pub functions: Vec<SetFunction>,
    /// WITH ORDINALITY.
    pub ordinality: bool,
    /// True if an input row without function rows is returned.
    pub outer: bool,
    /// Unread columns of the input, which are NULL in the output.
    pub unread: Vec<usize>,
}

/// See [`Node::HashJoin`] and [`Node::MergeJoin`]. The right side is in memory: in a hash table,
/// or the group of equal keys that matches the current left rows. A merge join is an inner, left,
/// semi or anti join with ascending keys, NULLS LAST.
#[derive(Debug)]
pub struct KeyJoinNode {
    /// Join type.
    pub kind: JoinKind,
    /// Probe side.
    pub left: Node,
    /// Build side.
    pub right: Node,
    /// Keys over the left columns.
    pub left_keys: Vec<Expr>,
    /// Keys over the right columns, of the same types.
    pub right_keys: Vec<Expr>,
    /// Remaining join condition, over left columns followed by right columns.
    pub join_filter: Option<Expr>,
    /// Types of the left columns.
    pub left_types: Vec<DataType>,
    /// Types of the right columns.
    pub right_types: Vec<DataType>,
    /// Required order of the result, which the left rows provide; a hash join must sort if it
    /// spills. Empty: any.
    pub order: Vec<SortKey>,
}

/// See [`Node::LookupJoin`]. For each batch of left rows, the right rows with their keys are read
/// and joined as in a hash join.
#[derive(Debug)]
pub struct LookupJoinNode {
    /// Join type: inner, left, semi or anti.
    pub kind: JoinKind,
    /// Outer side.
    pub left: Node,
    /// A [`Node::Scan`] whose path uses the parameters of [`LookupJoinNode::bindings`]; no other
    /// part of it does.
    pub right: Node,
    /// Parameter index, and the expression over the left columns that sets it.
    pub bindings: Vec<(usize, Expr)>,
    /// Keys over the left columns.
    pub left_keys: Vec<Expr>,
    /// Keys over the right columns, of the same types.
    pub right_keys: Vec<Expr>,
    /// Range of right rows for each left row, among those with its keys.
    pub range: Option<KeyRange>,
    /// Remaining join condition, over left columns followed by right columns; includes the bounds
    /// of the range.
    pub residual: Option<Expr>,
    /// Types of the left columns.
    pub left_types: Vec<DataType>,
    /// Types of the right columns.
    pub right_types: Vec<DataType>,
    /// Row goal of the parent node, in left rows whose pairs are returned.
    pub goal: Option<RowGoal>,
    /// The same join without look-ups, for a time before the history of their index.
    pub before_index_history: Option<Node>,
}

/// Range of the right rows of a join, with bounds from the left row.
#[derive(Debug, Clone)]
pub struct KeyRange {
    /// Bounded value, over the right columns.
    pub key: Expr,
    /// Lower bound.
    pub low: Option<RangeBound>,
    /// Upper bound.
    pub high: Option<RangeBound>,
}

/// A bound of a [`KeyRange`].
#[derive(Debug, Clone)]
pub struct RangeBound {
    /// Value over the left columns.
    pub value: Expr,
    /// True if the bound is inclusive.
    pub is_inclusive: bool,
}

impl KeyRange {
    /// Returns a range without bounds.
    pub fn of(key: Expr) -> KeyRange {
        KeyRange { key, low: None, high: None }
    }
}

/// See [`Node::LoopJoin`]. The right side is in memory, as far as it fits.
#[derive(Debug)]
pub struct LoopJoinNode {
    /// Join type.
    pub kind: JoinKind,
    /// Outer side.
    pub left: Node,
    /// Inner side.
    pub right: Node,
    /// Join condition, over left columns followed by right columns; `None`: all pairs.
    pub on: Option<Expr>,
    /// Types of the left columns.
    pub left_types: Vec<DataType>,
    /// Types of the right columns.
    pub right_types: Vec<DataType>,
    /// True if the result must have the order of the left rows.
    pub keeps_order: bool,
}

/// See [`Node::Apply`].
#[derive(Debug)]
pub struct ApplyNode {
    /// Outer rows.
    pub input: Node,
    /// The subquery.
    pub subquery: Node,
    /// Parameter indexes, each with the input column that sets it.
    pub bindings: Vec<(usize, usize)>,
    /// Kind of the added columns.
    pub kind: ApplyKind,
    /// True if its value may differ for equal rows: results are not cached.
    pub is_volatile: bool,
    /// True if it is uncorrelated: it is executed once for the statement.
    pub is_uncorrelated: bool,
    /// Condition over the input's columns under which the subquery is executed; `None`: always.
    pub guard: Option<Expr>,
    /// Decorrelated form, if it is tried first.
    pub groups: Option<ApplyGroupsNode>,
    /// Types of the input's columns.
    pub input_types: Vec<DataType>,
    /// Types of the subquery's columns.
    pub subquery_types: Vec<DataType>,
}

/// Decorrelated subquery: groups in which rows find their value
/// ([`ApplyGroups`](crate::logical::ApplyGroups)).
#[derive(Debug)]
pub struct ApplyGroupsNode {
    /// Plan that yields keys, then aggregates.
    pub plan: Node,
    /// Column types of the plan.
    pub types: Vec<DataType>,
    /// Expressions that the keys are equal to, over the input's columns.
    pub keys: Vec<Expr>,
    /// Value over the input's columns followed by those of the plan.
    pub value: Expr,
}

/// See [`Node::Aggregate`].
#[derive(Debug)]
pub struct AggregateNode {
    /// Input.
    pub input: Node,
    /// Group keys.
    pub group_by: Vec<Expr>,
    /// Aggregates.
    pub aggregates: Vec<Aggregate>,
}

/// See [`Node::Sort`].
#[derive(Debug)]
pub struct SortNode {
    /// Input.
    pub input: Node,
    /// Most significant first.
    pub keys: Vec<SortKey>,
    /// Number of first rows that are needed.
    pub goal: Option<RowGoal>,
    /// Column types.
    pub types: Vec<DataType>,
}

/// See [`Node::LockRows`].
#[derive(Debug)]
pub struct LockRowsNode {
    /// Input, with the keys of the tables.
    pub input: Node,
    /// Locked tables, and the re-evaluation of a changed row.
    pub held: LockedTablesNode,
    /// Row goal of the parent node.
    pub goal: Option<RowGoal>,
}

/// See [`crate::logical::LockedTables`].
#[derive(Debug)]
pub struct LockedTablesNode {
    /// Locked tables, in locking order.
    pub tables: Vec<LockedTable>,
    /// Parameters of `again`, and the columns of the row that set them.
    pub copies: Vec<(usize, usize)>,
    /// Plan that re-evaluates the row, if it still qualifies.
    pub again: Node,
}

/// See [`Node::Limit`].
#[derive(Debug)]
pub struct LimitNode {
    /// Input.
    pub input: Node,
    /// Limit; `None` or NULL: no limit.
    pub limit: Option<Expr>,
    /// Number of skipped rows.
    pub offset: Option<Expr>,
    /// WITH TIES: sort keys that further rows must share with the last one; empty: no ties.
    pub ties: Vec<Expr>,
    /// True if an input has side effects that must not occur for rows beyond the limit.
    pub row_by_row: bool,
}

/// See [`Node::Distinct`].
#[derive(Debug)]
pub struct DistinctNode {
    /// Input.
    pub input: Node,
    /// Distinct keys.
    pub on: Vec<Expr>,
    /// True if the rows are sorted by the keys. If not, the keys are all columns.
    pub sorted: bool,
}

/// See [`Node::SetOperation`]. EXCEPT returns duplicate left rows.
#[derive(Debug)]
pub struct SetOperationNode {
    /// Kind of the operation.
    pub kind: SetKind,
    /// ALL: with duplicates.
    pub all: bool,
    /// Left side, whose rows are returned.
    pub left: Node,
    /// Right side, which is counted.
    pub right: Node,
    /// Column types of both sides.
    pub types: Vec<DataType>,
}

/// See [`Node::WindowAgg`]. The input is sorted by partition and order.
#[derive(Debug)]
pub struct WindowAggNode {
    /// Input.
    pub input: Node,
    /// PARTITION BY expressions.
    pub partition_by: Vec<Expr>,
    /// Sort order within a partition.
    pub order_by: Vec<SortKey>,
    /// The functions.
    pub functions: Vec<WindowFunction>,
    /// Types of the input's columns.
    pub input_types: Vec<DataType>,
}

/// See [`Node::With`]. The query is computed on demand and materialised.
#[derive(Debug)]
pub struct WithNode {
    /// Number of the query.
    pub id: usize,
    /// Name of the query.
    pub name: String,
    /// The query.
    pub query: Node,
    /// Body, which yields the rows.
    pub body: Node,
}

/// See [`Node::CteScan`].
#[derive(Debug)]
pub struct CteScanNode {
    /// Number of the query.
    pub id: usize,
    /// Name of the query.
    pub name: String,
    /// Names of its columns.
    pub names: Vec<String>,
    /// Types of its columns.
    pub types: Vec<DataType>,
    /// True for the work table of a recursive query.
    pub is_work_table: bool,
}

/// See [`Node::RecursiveUnion`].
#[derive(Debug)]
pub struct RecursiveUnionNode {
    /// Number of the work table.
    pub id: usize,
    /// Name of the query.
    pub name: String,
    /// UNION ALL: whether duplicates are retained.
    pub all: bool,
    /// Non-recursive term.
    pub start: Node,
    /// Recursive term, which reads the work table.
    pub step: Node,
    /// Column types.
    pub types: Vec<DataType>,
}

/// See [`Node::Append`].
#[derive(Debug)]
pub struct AppendNode {
    /// The inputs.
    pub inputs: Vec<Node>,
}

/// Row goal: the number of rows that the parent node reads, limit plus offset of a LIMIT.
#[derive(Debug, Clone, PartialEq)]
pub struct RowGoal {
    /// Limit, bigint without columns. NULL: no goal.
    pub limit: Expr,
    /// Offset.
    pub offset: Option<Expr>,
    /// Estimated number of the node's rows per row of the limit, if nodes above drop or add rows.
    /// `None`: the goal is exact, and no row beyond it is read.
    pub rows_per_row: Option<f64>,
}

/// Get by the whole primary key whose result is plain columns of the row.
#[derive(Debug)]
pub struct PointGet {
    /// The table.
    pub table: Arc<Table>,
    /// Key values in key order: constants and parameters of the key columns' types, or integers
    /// of another width.
    pub key: Vec<Expr>,
    /// Result columns, by position in the table.
    pub columns: Vec<usize>,
    /// Cells to read.
    pub read: ReadColumns,
    /// Value sections to read.
    pub sections: SectionsOfGet,
}

/// INSERT, UPSERT.
#[derive(Debug)]
pub struct InsertPlan {
    /// The table.
    pub table: Arc<Table>,
    /// Source of full rows in table order.
    pub source: Node,
    /// Columns that an UPSERT names.
    pub named_columns: Vec<usize>,
    /// Action for an existing row.
    pub on_conflict: OnConflict,
    /// Input row of the action, where it has subqueries.
    pub conflict_row: Option<RowAtHandPlan>,
    /// Attributes of the written cells.
    pub attributes: CellAttributes<Expr>,
    /// Check options of the views that the statement goes through.
    pub checks: Vec<RowCheckPlan>,
    /// RETURNING.
    pub returning: Option<Returning>,
}

/// Row at hand with subquery values; see [`crate::logical::RowAtHand`].
#[derive(Debug)]
pub struct RowAtHandPlan {
    /// Parameters that are set from the row at hand.
    pub parameters: Vec<usize>,
    /// Plan that yields the one row.
    pub node: Node,
}

/// Check of written rows; see [`crate::logical::RowCheck`].
#[derive(Debug)]
pub struct RowCheckPlan {
    /// Object that has the condition.
    pub subject: CheckSubject,
    /// Condition over the row in table order; with `row`, over the output of that.
    pub predicate: Expr,
    /// Plan for the subqueries of the condition.
    pub row: Option<RowAtHandPlan>,
}

/// UPDATE, DELETE.
#[derive(Debug)]
pub struct RowChangePlan {
    /// The table.
    pub table: Arc<Table>,
    /// Target rows.
    pub source: TargetRows,
    /// True if `_timestamp` follows the table's columns.
    pub reads_timestamp: bool,
    /// Condition that is re-evaluated on the locked row.
    pub recheck: Option<Expr>,
    /// Assignments over the row in table order, followed by [`TargetRows::extra_types`] columns;
    /// `None` for DELETE.
    pub assignments: Option<Vec<Assignment>>,
    /// True if a row may occur more than once; only the first counts.
    pub repeats: bool,
    /// Attributes of the delete markers.
    pub attributes: CellAttributes<Expr>,
    /// Check options of the views that the statement goes through.
    pub checks: Vec<RowCheckPlan>,
    /// RETURNING.
    pub returning: Option<Returning>,
}

impl RowChangePlan {
    /// Returns the name of the plan node.
    pub(super) fn verb(&self) -> &'static str {
        if self.assignments.is_some() { "Update" } else { "Delete" }
    }
}

/// MERGE; see [`crate::logical::Merge`].
#[derive(Debug)]
pub struct MergePlan {
    /// The table.
    pub table: Arc<Table>,
    /// Source: the table's columns, then those of USING and subqueries.
    pub source: Node,
    /// Re-evaluation of a row whose table row has changed; `None` if the source locks the table's
    /// rows itself.
    pub held: Option<LockedTablesNode>,
    /// Policies of written rows.
    pub checks: Vec<RowCheckPlan>,
    /// WHEN clauses.
    pub clauses: Vec<MergeClause>,
}

/// Target rows of UPDATE and DELETE.
#[derive(Debug)]
pub struct TargetRows {
    /// Plan that yields the key columns in key order, then the columns of FROM and subqueries.
    pub node: Node,
    /// Types of the latter.
    pub extra_types: Vec<DataType>,
    /// Key of a single row, if the statement only specifies a whole key: no plan is executed.
    pub point: Option<Vec<Expr>>,
}

impl Plan {
    /// Returns a plan. Called by the planner.
    pub(crate) fn new(
        root: PlanRoot,
        columns: Vec<OutputColumn>,
        parameter_count: usize,
        point: Option<PointGet>,
    ) -> Plan {
        let locks_rows = matches!(&root, PlanRoot::Query(node) if node.locks_rows());
        let has_locking_scan = matches!(&root, PlanRoot::Query(node) if node.has_locking_scan());
        Plan {
            before: Vec::new(),
            root,
            columns,
            parameter_count,
            point,
            locks_rows,
            has_locking_scan,
            row_by_row: false,
        }
    }

    /// Returns the result columns of a query or of RETURNING; empty for a statement without rows.
    pub fn columns(&self) -> &[OutputColumn] {
        &self.columns
    }

    /// Returns whether the plan is executed by [`exec::open`](crate::exec::open); others are by
    /// [`exec::modify`](crate::exec::modify).
    pub fn is_query(&self) -> bool {
        self.before.is_empty() && matches!(self.root, PlanRoot::Query(_))
    }

    /// Returns whether each result row is a row of a scanned table.
    pub fn is_simple_scan(&self) -> bool {
        let PlanRoot::Query(node) = &self.root else { return false };
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

    /// Returns the EXPLAIN text, one line per node, the topmost first. `regions` returns the
    /// present number of regions of a store table; where it is unknown, the initial number is
    /// shown.
    pub fn explain(&self, regions: &dyn Fn(TableId) -> Option<usize>) -> Vec<String> {
        self.explain_run(regions, ExplainContent::default())
    }

    /// Like [`Plan::explain`], with the options of EXPLAIN and the statistics of an execution.
    pub fn explain_run(
        &self,
        regions: &dyn Fn(TableId) -> Option<usize>,
        shown: ExplainContent<'_>,
    ) -> Vec<String> {
        render::text(&explain::tree(self, regions), shown)
    }

    /// Returns the plan as a document, with the content of [`Plan::explain_run`]; `summary` has
    /// additional members.
    pub fn explain_document(
        &self,
        regions: &dyn Fn(TableId) -> Option<usize>,
        shown: ExplainContent<'_>,
        summary: &[(&str, document::SummaryValue)],
        format: document::Format,
    ) -> String {
        render::document(&explain::tree(self, regions), shown, summary, format)
    }

    /// Returns a one-line summary of the plan: access paths and operations.
    pub fn summary(&self) -> String {
        explain::summary(self)
    }
}

impl RowGoal {
    /// Returns the estimated number of rows.
    pub(crate) fn estimate(&self) -> f64 {
        /// Assumed limit if it is not a constant.
        const USUAL: f64 = 100.0;
        let rows = |count: &Expr| match count {
            Expr::Constant { value, .. } => value.as_i64().map_or(USUAL, |count| count as f64),
            _ => USUAL,
        };
        let wanted = rows(&self.limit) + self.offset.as_ref().map_or(0.0, rows);
        wanted * self.rows_per_row.unwrap_or(1.0)
    }

    /// Returns whether no row beyond the goal is read.
    pub fn is_exact(&self) -> bool {
        self.rows_per_row.is_none()
    }

    /// Returns the goal of an input, of which the node reads about `rows_for_each` rows per row
    /// that it yields.
    pub(crate) fn below(self, rows_for_each: f64) -> RowGoal {
        let rows_for_each = Some(self.rows_per_row.unwrap_or(1.0) * rows_for_each);
        RowGoal { rows_per_row: rows_for_each, ..self }
    }

    /// Returns the goal of a LIMIT.
    pub fn of(limit: &Option<Expr>, offset: &Option<Expr>) -> Option<RowGoal> {
        let (limit, offset) = (limit.clone()?, offset.clone());
        Some(RowGoal { limit, offset, rows_per_row: None })
    }
}

impl Node {
    /// Returns an address that identifies the node within its plan.
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

    fn has_locking_scan(&self) -> bool {
        matches!(self, Node::Scan(scan) if scan.lock.is_some())
            || self.inputs().into_iter().any(Node::has_locking_scan)
    }

    /// Returns the inputs of the node.
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
