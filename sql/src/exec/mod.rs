//! The executor: runs plans.
//!
//! Operators pull batches of at most about [`types::vector::BATCH_ROWS`] rows from those below
//! them. What changes data ([`modify()`]) runs to its end in one call; what is one get by key
//! ([`point()`]) has a path of its own, without batches or operators.
//!
//! Sorts, groups and hash joins that outgrow `work_mem` go on on disk ([`spill`](crate::spill)).
//! Other joins and subquery results are kept in memory: past a generous multiple of `work_mem`
//! ([`memory`]) a statement fails with 53200.

pub(crate) mod memory;
mod stage;
mod measured;
mod key_range;
mod range_reader;
mod part_reader;
mod feed;
mod history;
mod lock;
mod scan;
mod lock_rows;
mod region_aggregate;
mod endpoint;
mod system_rows;
mod values;
mod filter;
mod project;
mod widened;
mod project_set;
mod pairs;
mod partitions;
mod cut_groups;
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
mod point;
mod violation;
pub mod moved_rows;
mod row;
mod row_numbers;
mod target;
pub mod watch;
mod update;
mod conflict;
pub mod insert;
mod delete;
mod merge;
mod modify;

use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use ahash::AHashMap;
use parking_lot::Mutex;
use smallvec::SmallVec;
use store::transaction::{Parallelism, RowRange, Savepoint, StatementView, TableReader};
use store::{TableId, Transaction};
use types::expr::{EvalContext, Expr, Routine};
use types::{Batch, Datum};

use crate::batch_buffer::{BatchBuffer, Room};
use crate::catalog::table::Table;
use crate::error::{Error, Result, sqlstate};
use crate::exec::measured::measured;
use crate::exec::moved_rows::MovedRows;
use crate::exec::stage::Stage;
use crate::exec::watch::Watch;
use crate::logical::ApplyKind;
use crate::plan::profile::Profile;
use crate::plan::{Node, Plan, Root};
use crate::spill::Spill;

pub use apply::OnceAnswers;
pub use cte::NamedRows;
pub use history::HistoryBegin;
pub use modify::modify;
pub use point::point;

/// What a plan runs with.
#[derive(Clone)]
pub struct Context {
    /// Reads and writes.
    pub transaction: Arc<Transaction>,
    /// Parameters, clocks, time zone.
    pub eval: EvalContext,
    /// System views, row numbers.
    pub system: Arc<dyn SystemSource>,
    /// Rows of every scan come in the order of its keys: who changes rows locks them in one order,
    /// so that two such statements do not wait for each other. Set by the plan.
    pub ordered: bool,
    /// Rows that the statement locks are locked one by one, as they are asked for.
    pub locks_one_by_one: bool,
    /// Steps that have effects take rows one by one: their reader may stop before the end, or
    /// changes what functions see.
    pub row_by_row: bool,
    /// Region threads may join in; not where one of them runs a plan: it waits for no other one.
    pub side_by_side: bool,
    /// Where steps note what they do, for EXPLAIN ANALYZE.
    pub profile: Option<Arc<Profile>>,
    /// Rows of the named queries that can be read; empty at first.
    pub named: NamedRows,
    /// What subqueries said that are run once; empty at first.
    pub once: OnceAnswers,
    /// The setting `work_mem`, in bytes; what a step may keep says [`Context::work_mem`].
    pub work_mem: usize,
    /// Where it sets aside what is more.
    pub spill: Arc<Spill>,
    /// The rows that the statement has changed of tables that several parts of it change: a row is
    /// changed once.
    pub changed: Option<Arc<ChangedRows>>,
    /// The rows that get other keys.
    pub moved: Arc<MovedRows>,
    /// What foreign keys are about among the rows that the statement changes.
    pub watch: Option<Arc<Watch>>,
    /// How many statements were begun within others when this one began.
    pub inner_before: u64,
    /// What the statement sees, however late a step is opened; known once the plan is.
    pub view: SharedView,
}

/// What a statement sees, once that is known: functions that it calls are told.
pub type SharedView = Arc<OnceLock<StatementView>>;

/// Rows of the tables that several parts of a statement change.
pub struct ChangedRows {
    tables: SmallVec<[TableId; 2]>,
    /// The rows, each with the savepoint at which the statement's own write of it was staged.
    keys: Mutex<AHashMap<(TableId, Vec<u8>), Savepoint>>,
}

impl ChangedRows {
    /// Returns an empty set for a plan; `None` if no two parts of it change the same table.
    fn of(plan: &Plan) -> Option<Arc<ChangedRows>> {
        let roots = plan.before.iter().map(|step| &step.root).chain([&plan.root]);
        let changed: Vec<TableId> = roots.filter_map(Root::changed_table).collect();
        let is_shared = |at: &usize| changed[..*at].contains(&changed[*at]);
        let tables: SmallVec<_> =
            (0..changed.len()).filter(is_shared).map(|at| changed[at]).collect();
        (!tables.is_empty()).then(|| Arc::new(ChangedRows { tables, keys: Mutex::default() }))
    }
}

/// What the server gives to plans: rows of system views and table functions, row numbers.
pub trait SystemSource: Send + Sync {
    /// Returns all rows of a view, or of a table function called with these arguments.
    ///
    /// # Errors
    ///
    /// What the view or function raises.
    fn rows(&self, name: &str, arguments: &[Datum]) -> Result<Vec<Vec<Datum>>>;

    /// Returns the rows of a view that is made of nothing but the catalog, in columns of these
    /// types; `None` for other views.
    ///
    /// # Errors
    ///
    /// What the view raises.
    fn shared_rows(&self, _name: &str) -> Result<Option<Arc<Vec<Batch>>>> {
        Ok(None)
    }

    /// Returns where the history of a table begins, as far as these columns of it are shown.
    ///
    /// # Errors
    ///
    /// What reading the catalog raises.
    fn history_begin(&self, _table: &Table, _columns: &[usize]) -> Result<HistoryBegin> {
        Ok(HistoryBegin::NEVER)
    }

    /// Takes numbers for new rows of a table without a primary key, at least one and at most
    /// `count`.
    ///
    /// # Errors
    ///
    /// See [`RowIds`](crate::row_ids::RowIds).
    fn row_ids(&self, table: TableId, count: u64) -> Result<Range<u64>>;

    /// Calls a function of users and returns its rows.
    ///
    /// # Errors
    ///
    /// What its statements raise; 0A000 where none can be run.
    fn routine_rows(&self, routine: &Routine, _arguments: Vec<Datum>) -> Result<Vec<Vec<Datum>>> {
        let what = format!("a call of function \"{}\" in this place", routine.name);
        Err(Error::not_supported(what, "Call it in a statement of a session."))
    }

    /// Calls an endpoint and returns its answer.
    ///
    /// # Errors
    ///
    /// What the endpoint raises; 42704 if there is none.
    fn call_endpoint(&self, request: &EndpointRequest<'_>) -> Result<Vec<Vec<Datum>>> {
        let message = format!(
            "table \"{}\" has no endpoint \"{}\" attached",
            request.table.name, request.name
        );
        Err(Error::new(sqlstate::UNDEFINED_OBJECT, message))
    }
}

/// A call of an endpoint that is attached to a table.
pub struct EndpointRequest<'a> {
    /// The table.
    pub table: &'a Table,
    /// The name that the endpoint is attached by.
    pub name: &'a str,
    /// The arguments of the call, names and texts.
    pub arguments: Vec<(String, String)>,
    /// The rows that it is of.
    pub ranges: Vec<RowRange>,
}

/// A running step of a plan.
pub trait Operator: Send {
    /// Returns the next rows, at least one; `None` at the end.
    ///
    /// # Errors
    ///
    /// Whatever evaluation, the store or a cancellation raises; the operator is not to be used
    /// after that.
    fn next(&mut self) -> Result<Option<Batch>>;

    /// Returns whether [`Operator::attach`] would be of use now: batches are made side by side.
    fn takes_stages(&self) -> bool {
        false
    }

    /// Begins anew, after its end, over what the work table holds now. Returns `false` if it
    /// cannot: then it is of no use any more, and to be opened again.
    ///
    /// # Errors
    ///
    /// As for [`Operator::next`].
    fn rewind(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// Has each batch put through `stage` by the thread that makes it, before any was taken; what
    /// comes of it is yielded in its place. Returns `false`, and nothing has changed for who takes
    /// the batches, if that cannot be.
    ///
    /// # Errors
    ///
    /// As for [`Operator::next`]: a step below may have to be read for it.
    fn attach(&mut self, _stage: &Arc<dyn Stage>) -> Result<bool> {
        Ok(false)
    }
}

/// What a statement that changes data did.
#[derive(Default)]
pub struct ModifyOutcome {
    /// Rows inserted, updated or deleted.
    pub row_count: u64,
    /// The rows of RETURNING; empty without it.
    pub returning: BatchBuffer,
}

impl Context {
    /// Returns how regions may be read side by side; `None` if they may not.
    fn parallelism(&self) -> Option<Parallelism> {
        self.transaction.parallelism().filter(|_| self.side_by_side)
    }

    /// Returns the bytes that a step may keep in memory now.
    pub(crate) fn work_mem(&self) -> usize {
        memory::allowance(self.work_mem)
    }

    /// Returns where rows are kept, and how much of them in memory.
    pub(crate) fn room(&self) -> Room {
        Room { spill: Arc::clone(&self.spill), bytes: self.work_mem() }
    }

    /// Fails once the statement was cancelled.
    pub(crate) fn check(&self) -> Result<()> {
        Ok(self.eval.style.interrupt.check()?)
    }

    /// Returns the context as a plan needs it: with room for all its parameters.
    fn prepared_for(mut self, plan: &Plan) -> Result<Context> {
        if self.eval.parameters.len() < plan.parameter_count {
            self.eval.parameters.resize(plan.parameter_count, Datum::Null);
        }
        self.ordered = !plan.is_query() || plan.locks_rows;
        self.changed = ChangedRows::of(plan);
        self.row_by_row |= plan.row_by_row;
        self.statement_view()?;
        Ok(self)
    }

    /// Returns what the statement sees.
    fn statement_view(&self) -> Result<&StatementView> {
        if let Some(view) = self.view.get() {
            return Ok(view);
        }
        let view = self.transaction.view()?;
        Ok(self.view.get_or_init(|| view))
    }

    /// Returns whether a function that the statement calls has run statements, which may have
    /// changed rows.
    fn has_called(&self) -> bool {
        self.transaction.inner_statements() != self.inner_before
    }

    /// Returns a reader of a table that sees what the statement saw when it began: other statements
    /// of the session may run before a cursor comes to its end.
    fn reader(&self, table: TableId) -> Result<TableReader> {
        Ok(self.transaction.reader_of(self.statement_view()?, table)?)
    }

    /// Returns the rows that the statement has changed, if several parts of it change the table.
    fn shared_changes(&self, table: TableId) -> Option<&ChangedRows> {
        self.changed.as_deref().filter(|changed| changed.tables.contains(&table))
    }

    /// Notes that a part of the statement changes a row. Returns whether it is the first one.
    fn claims_row(&self, table: TableId, key: &[u8]) -> bool {
        let Some(shared) = self.shared_changes(table) else { return true };
        let mut keys = shared.keys.lock();
        let Entry::Vacant(claim) = keys.entry((table, key.to_vec())) else { return false };
        claim.insert(self.transaction.savepoint());
        true
    }

    /// Notes that what the statement has to write to rows that it has claimed is staged.
    fn wrote_rows(&self, table: TableId, keys: Vec<Vec<u8>>) {
        let Some(shared) = self.shared_changes(table) else { return };
        let (mut claims, place) = (shared.keys.lock(), self.transaction.savepoint());
        for key in keys {
            if let Some(written) = claims.get_mut(&(table, key)) {
                *written = place;
            }
        }
    }

    /// Returns whether a function that the statement calls has changed a row after the part of the
    /// statement that has claimed it.
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

    /// Computes an expression without columns.
    fn value(&self, expression: &Expr) -> Result<Datum> {
        Ok(expression.eval_row(&[], &self.eval)?)
    }
}

/// Opens a plan that yields rows.
///
/// # Errors
///
/// What computing its key ranges raises; XX000 if the plan changes data.
pub fn open(plan: &Arc<Plan>, context: Context) -> Result<Box<dyn Operator>> {
    let context = Arc::new(context.prepared_for(plan)?);
    match &plan.root {
        Root::Query(node) if plan.is_query() => build(node, &context),
        _ => Err(Error::new(
            sqlstate::INTERNAL_ERROR,
            "a statement that changes data was opened as a query",
        )),
    }
}

/// Opens a step.
fn build(node: &Node, context: &Arc<Context>) -> Result<Box<dyn Operator>> {
    if context.row_by_row && !node.passes_rows() {
        let context = Arc::new(Context { row_by_row: false, ..Context::clone(context) });
        return Ok(measured(node.address(), open_step(node, &context)?, &context));
    }
    Ok(measured(node.address(), open_step(node, context)?, context))
}

fn open_step(node: &Node, context: &Arc<Context>) -> Result<Box<dyn Operator>> {
    Ok(match node {
        Node::Scan(node) => Box::new(scan::TableScan::open(node, context)?),
        Node::RegionAggregate(node) => {
            Box::new(region_aggregate::RegionAggregate::open(node, context))
        }
        Node::RegionTopN(node) => Box::new(region_top_n::RegionTopN::open(node, context)?),
        Node::SystemRows(node) => system_rows::open(node, context)?,
        Node::Values(node) => Box::new(values::Values::open(node, context)),
        Node::Filter(node) => Box::new(filter::Filter::open(node, context)?),
        Node::Project(node) => Box::new(project::Project::open(node, context)?),
        Node::ProjectSet(node) => Box::new(project_set::ProjectSet::open(node, context)?),
        Node::HashJoin(node) => Box::new(hash_join::HashJoin::open(node, context)?),
        Node::LockRows(node) => Box::new(lock_rows::LockRows::open(node, context)?),
        Node::MergeJoin(node) => Box::new(merge_join::MergeJoin::open(node, context)?),
        Node::LookupJoin(node) => Box::new(lookup_join::LookupJoin::open(node, context)?),
        Node::LoopJoin(node) => Box::new(loop_join::LoopJoin::open(node, context)?),
        Node::Apply(node) if matches!(node.kind, ApplyKind::Rows { .. }) => {
            Box::new(lateral::LateralJoin::open(node, context)?)
        }
        Node::Apply(node) => Box::new(apply::Apply::open(node, context)?),
        Node::Aggregate(node) => Box::new(aggregate::HashAggregate::open(node, context)?),
        Node::GroupingSets(node) => Box::new(grouping_sets::GroupingSets::open(node, context)?),
        Node::Sort(node) => Box::new(sort::Sort::open(node, context)?),
        Node::Limit(node) => Box::new(limit::Limit::open(node, context)?),
        Node::Distinct(node) => distinct::open(node, context)?,
        Node::SetOperation(node) => Box::new(set_operation::HashSetOp::open(node, context)?),
        Node::WindowAgg(node) => Box::new(window::WindowAgg::open(node, context)?),
        Node::With(node) => cte::open_with(node, context)?,
        Node::CteScan(node) => Box::new(cte::CteScan::open(node, context)),
        Node::RecursiveUnion(node) => {
            Box::new(recursive_union::RecursiveUnion::open(node, context)?)
        }
        Node::Append(node) => Box::new(append::Append::open(node, context)?),
    })
}
