//! Executor: runs physical plans.
//!
//! Operators pull batches of about [`types::vector::BATCH_ROWS`] rows at most from their inputs.
//! Data-changing plans ([`modify()`]) run to completion in one call; a single get by key
//! ([`point()`]) has a separate path without batches or operators.
//!
//! Sorts, aggregation, hash joins, set operations and materialised rows that exceed `work_mem`
//! spill to disk ([`spill`](crate::spill)). Other operators fail with 53200 above a generous
//! multiple of `work_mem` ([`memory`]).

pub(crate) mod memory;
mod stage;
mod instrumentation;
mod checked;
mod key_range;
mod range_reader;
mod scan_partition_reader;
mod term_merge;
mod feed;
mod time_travel;
mod scan_lock;
mod scan;
mod lock_rows;
mod region_aggregate;
mod region_function;
mod system_rows;
mod values;
mod filter;
mod project;
mod widened_rows;
mod project_set;
mod join_core;
mod partitions;
mod partitioned_groups;
mod spilling_groups;
mod row_order;
mod merge_runs;
mod sort;
mod hash_join;
mod range_index;
mod lookup_join;
mod merge_join;
mod block_join;
mod loop_join;
mod apply_groups;
mod apply;
mod lateral;
mod aggregate;
mod grouping_sets;
mod region_top_n;
mod limit;
mod cte;
mod distinct;
mod seen_rows;
mod recursive_union;
mod window;
mod set_operation;
mod append;
mod point_get;
mod duplicate_key_errors;
pub mod key_updates;
mod row_writer;
mod hidden_keys;
mod target_rows;
pub mod triggers;
pub mod constraint_queue;
mod row_changes;
mod update;
mod conflict;
pub mod insert;
mod merge;
mod modify;

use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use ahash::AHashMap;
use parking_lot::Mutex;
use smallvec::SmallVec;
use store::transaction::{Parallelism, PartitionRange, Savepoint, StatementView, TableReader};
use store::{TableId, Timestamp, Transaction};
use types::expr::{EvalContext, Expr, Routine};
use types::{Batch, Datum};

use crate::batch_buffer::{BatchBuffer, BufferLimit};
use crate::catalog::table::{Index, Table};
use crate::error::{Error, Result};
use crate::exec::checked::checked;
use crate::exec::constraint_queue::ConstraintQueue;
use crate::exec::instrumentation::instrument;
use crate::exec::key_updates::KeyUpdates;
use crate::exec::stage::PipelineStage;
use crate::logical::ApplyKind;
use crate::plan::profile::ExecutionProfile;
use crate::plan::scan::{AccessPath, ScanNode};
use crate::plan::{Node, Plan, PlanRoot};
use crate::spill::StatementSpill;

pub use apply::UncorrelatedResults;
pub use cte::CteScope;
pub use modify::modify;
pub use point_get::point;
pub use time_travel::HistoryBegin;

/// Execution context of a plan.
#[derive(Clone)]
pub struct Context {
    /// Transaction for reads and writes.
    pub transaction: Arc<Transaction>,
    /// Evaluation context: parameters, clocks, time zone.
    pub eval: EvalContext,
    /// Source of system views, function results and row ids.
    pub system: Arc<dyn SystemSource>,
    /// True if every scan must return rows in key order: statements that change rows lock them in
    /// one order, which avoids deadlocks. Set by the plan.
    pub requires_key_order: bool,
    /// True if row locks are acquired one at a time, as rows are requested.
    pub locks_one_by_one: bool,
    /// True if operators with side effects must process rows one at a time: their reader may stop
    /// early, or changes what functions see.
    pub row_by_row: bool,
    /// True if region threads may be used for parallel scans; false where a region thread itself
    /// runs a plan, as it must not wait for another one.
    pub parallel: bool,
    /// Profile for EXPLAIN ANALYZE.
    pub profile: Option<Arc<ExecutionProfile>>,
    /// Rows of the named queries in scope; empty at first.
    pub cte_scope: CteScope,
    /// Results of subqueries that are executed once; empty at first.
    pub uncorrelated_results: UncorrelatedResults,
    /// Setting `work_mem` in bytes; the limit of an operator is [`Context::work_mem`].
    pub work_mem: usize,
    /// Spill area for the excess.
    pub spill: Arc<StatementSpill>,
    /// Rows changed in tables that several parts of the statement change: each row is changed
    /// once.
    pub changed_rows: Option<Arc<ChangedRows>>,
    /// Rows whose keys are updated.
    pub key_updates: Arc<KeyUpdates>,
    /// Constraint queue of the changed rows.
    pub constraint_queue: Option<Arc<ConstraintQueue>>,
    /// Number of nested statements in the transaction when this one began.
    pub nested_statements_before: u64,
    /// Snapshot of the statement, also for operators that are opened later; set once the plan is
    /// opened.
    pub view: SharedView,
    /// Views of the eventual indexes that it has read.
    pub followed_views: SharedFollowedViews,
}

/// Snapshot of a statement, once it is taken; shared with the functions that it calls.
pub type SharedView = Arc<OnceLock<StatementView>>;

/// Views of the eventual indexes that a statement reads, by number: each at one moment.
pub type SharedFollowedViews = Arc<Mutex<AHashMap<u32, FollowedViews>>>;

/// Views of one moment of a table: of its rows, and of the entries of an eventual index.
#[derive(Clone)]
pub struct FollowedViews {
    /// The position of the index: the last commit that its entries show.
    pub rows: StatementView,
    /// A later snapshot, which has the entries of that position.
    pub entries: StatementView,
    /// Time of the position, in microseconds since 1970: it shows all commits from before.
    pub time_micros: i64,
}

/// Changed rows of tables that several parts of a statement change.
pub struct ChangedRows {
    tables: SmallVec<[TableId; 2]>,
    /// Keys of the rows, each with the savepoint at which the statement's write was staged.
    keys: Mutex<AHashMap<(TableId, Vec<u8>), Savepoint>>,
}

impl ChangedRows {
    /// Returns an empty set for a plan; `None` if no two parts of it change the same table.
    fn of(plan: &Plan) -> Option<Arc<ChangedRows>> {
        let roots = plan.before.iter().map(|step| &step.root).chain([&plan.root]);
        let changed: Vec<TableId> = roots.filter_map(PlanRoot::changed_table).collect();
        let is_shared = |at: &usize| changed[..*at].contains(&changed[*at]);
        let tables: SmallVec<_> =
            (0..changed.len()).filter(is_shared).map(|at| changed[at]).collect();
        (!tables.is_empty()).then(|| Arc::new(ChangedRows { tables, keys: Mutex::default() }))
    }
}

/// Services of the server for plans: rows of system views and table functions, row ids, function
/// calls.
pub trait SystemSource: Send + Sync {
    /// Returns all rows of a view, or of a table function called with these arguments.
    ///
    /// # Errors
    ///
    /// Errors of the view or function.
    fn rows(&self, name: &str, arguments: &[Datum]) -> Result<Vec<Vec<Datum>>>;

    /// Returns the rows of a view that is a query or only depends on the catalog, as batches;
    /// `None` for other views. `run` executes the query.
    ///
    /// # Errors
    ///
    /// Errors of the view.
    fn shared_rows(
        &self,
        _name: &str,
        _run: &dyn Fn(&Arc<Plan>) -> Result<Vec<Batch>>,
    ) -> Result<Option<Arc<Vec<Batch>>>> {
        Ok(None)
    }

    /// Returns the begin of a table's history with respect to these columns.
    ///
    /// # Errors
    ///
    /// Errors of reading the catalog.
    fn history_begin(&self, _table: &Table, _columns: &[usize]) -> Result<HistoryBegin> {
        Ok(HistoryBegin::NEVER)
    }

    /// Returns the first time that the history of an index includes; [`Timestamp::LATEST`] for an
    /// index without history.
    fn index_history_begin(&self, _table: &Table, _index: &Index) -> Result<Timestamp> {
        Ok(Timestamp::LATEST)
    }

    /// Returns the present views of an eventual index, and waits for those that the session
    /// requires.
    ///
    /// # Errors
    ///
    /// 57014; 55000 if the index is not followed any more.
    fn followed_views(&self, index: &Index) -> Result<FollowedViews> {
        Err(not_followed(&index.name))
    }

    /// Allocates row ids for a table without a primary key, at least one and at most `count`.
    ///
    /// # Errors
    ///
    /// See [`RowIds`](crate::row_ids::RowIds).
    fn row_ids(&self, table: TableId, count: u64) -> Result<Range<u64>>;

    /// Calls a user-defined function and returns its rows.
    ///
    /// # Errors
    ///
    /// Errors of its statements; 0A000 where functions cannot be called.
    fn routine_rows(&self, routine: &Routine, _arguments: Vec<Datum>) -> Result<Vec<Vec<Datum>>> {
        let what = format!("calling function \"{}\" here", routine.name);
        Err(Error::not_supported(what, "Call it in a statement of a client session."))
    }

    /// Calls an endpoint and returns its result.
    ///
    /// # Errors
    ///
    /// Errors of the endpoint; 42704 if there is none.
    fn call_endpoint(&self, request: &EndpointRequest<'_>) -> Result<Vec<Vec<Datum>>> {
        bail!(UNDEFINED_OBJECT: "table \"{}\" has no endpoint \"{}\" attached", request.table.name, request.name)
    }
}

/// Returns the error for an eventual index that was rebuilt or dropped.
pub fn not_followed(index: &str) -> Error {
    err!(OBJECT_NOT_IN_PREREQUISITE_STATE: "eventual index \"{index}\" has changed";
        hint "Repeat the statement.")
}

/// Call of an endpoint of a table.
pub struct EndpointRequest<'a> {
    /// The table.
    pub table: &'a Table,
    /// Name under which the endpoint is attached.
    pub name: &'a str,
    /// Arguments: names and text values.
    pub arguments: Vec<(String, String)>,
    /// Row ranges of the call.
    pub ranges: Vec<PartitionRange>,
}

/// Plan operator: a running plan node.
pub trait Operator: Send {
    /// Returns the next rows, at least one; `None` at the end.
    ///
    /// # Errors
    ///
    /// Errors of the evaluation, the store or a cancellation; the operator must not be used after
    /// that.
    fn next(&mut self) -> Result<Option<Batch>>;

    /// Returns whether [`Operator::attach`] is useful now: batches are produced in parallel.
    fn takes_stages(&self) -> bool {
        false
    }

    /// Restarts, after the end, over the present content of the work table. Returns `false` if
    /// that is not possible: the operator must then be opened again.
    ///
    /// # Errors
    ///
    /// See [`Operator::next`].
    fn rewind(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// Attaches a stage, before any batch was read: each batch is processed by `stage` on the
    /// thread that produces it, and the output is returned instead. Returns `false`, with the
    /// output unchanged, if that is not possible.
    ///
    /// # Errors
    ///
    /// See [`Operator::next`]: an input may have to be read for it.
    fn attach(&mut self, _stage: &Arc<dyn PipelineStage>) -> Result<bool> {
        Ok(false)
    }
}

/// Result of a data-changing statement.
#[derive(Default)]
pub struct ModifyOutcome {
    /// Number of inserted, updated or deleted rows.
    pub row_count: u64,
    /// Rows of RETURNING; empty without it.
    pub returning: BatchBuffer,
}

impl Context {
    /// Returns the parameters of parallel scans; `None` if they must not be used.
    fn parallelism(&self) -> Option<Parallelism> {
        self.transaction.parallelism().filter(|_| self.parallel)
    }

    /// Returns the present memory limit of an operator in bytes.
    pub(crate) fn work_mem(&self) -> usize {
        memory::spill_limit(self.work_mem)
    }

    /// Returns the memory limit and spill area of materialised rows.
    pub(crate) fn room(&self) -> BufferLimit {
        BufferLimit { spill: Arc::clone(&self.spill), bytes: self.work_mem() }
    }

    /// Fails if the statement was cancelled.
    pub(crate) fn check(&self) -> Result<()> {
        Ok(self.eval.style.interrupt.check()?)
    }

    /// Returns the context prepared for a plan: with all its parameters and flags.
    fn prepared_for(mut self, plan: &Plan) -> Result<Context> {
        if self.eval.parameters.len() < plan.parameter_count {
            self.eval.parameters.resize(plan.parameter_count, Datum::Null);
        }
        self.requires_key_order = !plan.is_query() || plan.locks_rows;
        self.changed_rows = ChangedRows::of(plan);
        self.row_by_row |= plan.row_by_row;
        let view = self.statement_view()?;
        if self.requires_key_order || plan.has_locking_scan {
            // What it writes or locks must not depend on what replicas lack.
            view.fix();
        }
        Ok(self)
    }

    /// Returns the snapshot of the statement.
    fn statement_view(&self) -> Result<&StatementView> {
        if let Some(view) = self.view.get() {
            return Ok(view);
        }
        let view = self.transaction.view()?;
        Ok(self.view.get_or_init(|| view))
    }

    /// Returns whether a function that the statement calls has executed statements, which may
    /// have changed rows.
    fn has_called(&self) -> bool {
        self.transaction.inner_statements() != self.nested_statements_before
    }

    /// Returns a reader of a table with the statement's snapshot: other statements of the session
    /// may be executed while a cursor is open.
    fn reader(&self, table: TableId) -> Result<TableReader> {
        Ok(self.transaction.reader_of(self.statement_view()?, table)?)
    }

    /// Returns a reader of the store table of a path.
    fn path_reader(&self, path: &AccessPath) -> Result<TableReader> {
        match path.index.as_ref().filter(|index| index.is_followed) {
            None => self.reader(path.store_table),
            Some(index) => {
                let views = self.followed_views(index)?;
                Ok(self.transaction.reader_of(&views.entries, path.store_table)?)
            }
        }
    }

    /// Returns a reader of the rows that the entries of a path name.
    fn row_reader(&self, node: &ScanNode) -> Result<TableReader> {
        match node.path.index.as_ref().filter(|index| index.is_followed) {
            None => self.reader(node.table.id),
            Some(index) => {
                let views = self.followed_views(index)?;
                Ok(self.transaction.reader_of(&views.rows, node.table.id)?)
            }
        }
    }

    fn followed_views(&self, index: &Index) -> Result<FollowedViews> {
        if let Some(views) = self.followed_views.lock().get(&index.oid) {
            return Ok(views.clone());
        }
        let views = self.system.followed_views(index)?;
        Ok(self.followed_views.lock().entry(index.oid).or_insert(views).clone())
    }

    /// Returns the changed rows, if several parts of the statement change the table.
    fn shared_changes(&self, table: TableId) -> Option<&ChangedRows> {
        self.changed_rows.as_deref().filter(|changed| changed.tables.contains(&table))
    }

    /// Records that a part of the statement changes a row. Returns whether it is the first one.
    fn claims_row(&self, table: TableId, key: &[u8]) -> bool {
        let Some(shared) = self.shared_changes(table) else { return true };
        let mut keys = shared.keys.lock();
        let Entry::Vacant(claim) = keys.entry((table, key.to_vec())) else { return false };
        claim.insert(self.transaction.savepoint());
        true
    }

    /// Records that the writes of claimed rows are staged.
    fn wrote_rows(&self, table: TableId, keys: Vec<Vec<u8>>) {
        let Some(shared) = self.shared_changes(table) else { return };
        let (mut claims, place) = (shared.keys.lock(), self.transaction.savepoint());
        for key in keys {
            if let Some(written) = claims.get_mut(&(table, key)) {
                *written = place;
            }
        }
    }

    /// Returns whether a function that the statement calls has changed a row after a part of the
    /// statement has claimed it.
    fn was_changed_after_claim(&self, table: TableId, key: &[u8]) -> Result<bool> {
        let shared = self.shared_changes(table).filter(|_| self.has_called());
        let claim = shared.and_then(|shared| {
            let claims = shared.keys.lock();
            claims.get(&(table, key.to_vec())).copied()
        });
        claim.map_or(Ok(false), |place| Ok(self.transaction.has_changed(table, key, place)?))
    }

    /// Returns whether a part of the statement has changed a row.
    fn has_claimed(&self, table: TableId, key: &[u8]) -> bool {
        let shared = self.shared_changes(table);
        shared.is_some_and(|shared| shared.keys.lock().contains_key(&(table, key.to_vec())))
    }

    /// Evaluates an expression without columns.
    fn value(&self, expression: &Expr) -> Result<Datum> {
        Ok(expression.eval_row(&[], &self.eval)?)
    }
}

/// Opens a plan that returns rows.
///
/// # Errors
///
/// Errors of computing its key ranges; XX000 if the plan changes data.
pub fn open(plan: &Arc<Plan>, context: Context) -> Result<Box<dyn Operator>> {
    let context = Arc::new(context.prepared_for(plan)?);
    match &plan.root {
        PlanRoot::Query(node) if plan.is_query() => build(node, &context),
        _ => bail!(INTERNAL_ERROR: "a statement that changes data was opened as a query"),
    }
}

/// Opens a plan node.
fn build(node: &Node, context: &Arc<Context>) -> Result<Box<dyn Operator>> {
    if context.row_by_row && !node.passes_rows() {
        let context = Arc::new(Context { row_by_row: false, ..Context::clone(context) });
        let step = checked(node, open_step(node, &context)?);
        return Ok(instrument(node.address(), step, &context));
    }
    Ok(instrument(node.address(), checked(node, open_step(node, context)?), context))
}

fn open_step(node: &Node, context: &Arc<Context>) -> Result<Box<dyn Operator>> {
    Ok(match node {
        Node::Scan(node) => Box::new(scan::TableScanOperator::open(node, context)?),
        Node::RegionAggregate(node) => {
            Box::new(region_aggregate::RegionAggregate::open(node, context))
        }
        Node::RegionTopN(node) => Box::new(region_top_n::RegionTopN::open(node, context)?),
        Node::SystemRows(node) => system_rows::open(node, context)?,
        Node::Values(node) => Box::new(values::Values::open(node, context)),
        Node::Filter(node) => Box::new(filter::Filter::open(node, context)?),
        Node::Project(node) => Box::new(project::Project::open(node, context)?),
        Node::ProjectSet(node) => Box::new(project_set::ProjectSetOperator::open(node, context)?),
        Node::HashJoin(node) => Box::new(hash_join::HashJoin::open(node, context)?),
        Node::LockRows(node) => Box::new(lock_rows::LockRowsOperator::open(node, context)?),
        Node::MergeJoin(node) => Box::new(merge_join::MergeJoin::open(node, context)?),
        Node::LookupJoin(node) => lookup_join::LookupJoin::open(node, context)?,
        Node::LoopJoin(node) => Box::new(loop_join::LoopJoin::open(node, context)?),
        Node::Apply(node) if matches!(node.kind, ApplyKind::Rows { .. }) => {
            Box::new(lateral::LateralJoin::open(node, context)?)
        }
        Node::Apply(node) => Box::new(apply::ApplyOperator::open(node, context)?),
        Node::Aggregate(node) => Box::new(aggregate::HashAggregate::open(node, context)?),
        Node::GroupingSets(node) => {
            Box::new(grouping_sets::GroupingSetsOperator::open(node, context)?)
        }
        Node::Sort(node) => Box::new(sort::Sort::open(node, context)?),
        Node::Limit(node) => Box::new(limit::Limit::open(node, context)?),
        Node::Distinct(node) => distinct::open(node, context)?,
        Node::SetOperation(node) => Box::new(set_operation::HashSetOp::open(node, context)?),
        Node::WindowAgg(node) => Box::new(window::WindowAgg::open(node, context)?),
        Node::With(node) => cte::open_with(node, context)?,
        Node::CteScan(node) => Box::new(cte::CteScanOperator::open(node, context)),
        Node::RecursiveUnion(node) => {
            Box::new(recursive_union::RecursiveUnionOperator::open(node, context)?)
        }
        Node::Append(node) => Box::new(append::Append::open(node, context)?),
    })
}
