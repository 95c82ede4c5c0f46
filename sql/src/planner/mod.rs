//! Planner: from a bound statement to a physical plan, by rewrite rules and cost-based choices.
//!
//! ```text
//! Bound -> push_down (with semi_join, join_group, join_order, join_tree) -> prune
//!   -> combined_indexes -> build (with access, scan) -> Plan
//! ```
//!
//! * [`barrier`]: conditions that are not leakproof stay above row-level security policies.
//! * [`push_down`]: conditions move to the source of their columns; EXISTS and IN become joins;
//!   the join order has the lowest cost by [`estimate`] and [`statistics`].
//! * [`prune`]: unread columns are removed.
//! * [`index_combination`]: the entries of several indexes are united or intersected.
//! * [`build`]: plan nodes are chosen; each scan gets its access path, sorts that a key order
//!   replaces are removed, aggregates over a table are pushed down to its regions.
//! * [`validate`]: in debug builds, the plan is checked after each of these rules.

pub mod statistics;
mod conjunct;
mod barrier;
mod or_factoring;
mod plan_properties;
mod validate;
mod limit_pushdown;
mod order_preservation;
pub(crate) mod key_term;
mod semi_join;
mod equivalence;
mod sampled_selectivity;
mod estimate;
mod cost;
mod physical_properties;
mod access_paths;
mod lookup;
mod decorrelate;
mod lateral;
mod join_group;
mod join_order;
mod first_rows;
mod join_part;
mod join_tail;
mod join_tree;
mod scalar_subquery_first;
mod estimate_recording;
mod row_locking;
mod push_down;
mod index_combination;
mod prune;
mod scan;
mod region_pushdown;
mod join_method;
mod distinct_aggregates;
mod grouping_sets;
mod build;

use std::cell::Cell;
use std::sync::Arc;

use types::expr::Expr;

use crate::ast::CellAttributes;
use crate::catalog::table::Table;
use crate::error::Result;
use crate::logical::{
    BoundPlan, Delete, Insert, Logical, Merge, OnConflict, Returning, RowAtHand, RowCheck, Steps,
    Update,
};
use crate::plan::{
    Estimates, InsertPlan, MergePlan, Node, Plan, PlanRoot, RowAtHandPlan, RowChangePlan,
    RowCheckPlan, TargetRows, WithPart,
};
use crate::planner::conjunct::{column, parameter_count};
use crate::planner::estimate::Estimator;
use crate::planner::estimate_recording::{EstimateLog, EstimateRecorder};
use crate::planner::plan_properties::parameters_of;
use crate::planner::statistics::Statistics;

/// Inputs of the planner besides the statement.
#[derive(Clone, Copy)]
struct PlannerInputs<'a> {
    statistics: &'a dyn Statistics,
    /// Recorder of estimates for EXPLAIN.
    notes: EstimateRecorder<'a>,
}

/// Returns the plan of a bound statement.
///
/// # Errors
///
/// None at present; the binder rejects statements that cannot be planned.
pub fn plan(bound: &BoundPlan, statistics: &dyn Statistics) -> Result<Plan> {
    plan_with(bound, PlannerInputs { statistics, notes: EstimateRecorder::NONE })
}

/// Like [`plan`], with the estimated rows and costs of the plan nodes.
///
/// # Errors
///
/// See [`plan`].
pub fn estimated(bound: &BoundPlan, statistics: &dyn Statistics) -> Result<(Plan, Estimates)> {
    let notebook = EstimateLog::new(Estimator { statistics });
    let plan =
        plan_with(bound, PlannerInputs { statistics, notes: EstimateRecorder::of(&notebook) })?;
    Ok((plan, notebook.into_estimates()))
}

fn plan_with(bound: &BoundPlan, aids: PlannerInputs<'_>) -> Result<Plan> {
    let mut plan = plan_bound(bound, aids)?;
    plan.row_by_row = !plan.is_query() && bound.calls_volatile_routines();
    Ok(plan)
}

fn plan_bound(bound: &BoundPlan, aids: PlannerInputs<'_>) -> Result<Plan> {
    Ok(match bound {
        BoundPlan::Query(query) => {
            let mut count = parameters_of(&query.plan);
            let width = plan_properties::width_of(&query.plan);
            // Columns for sorting and locking may follow the result columns.
            let shown = query.columns.len();
            debug_assert!(shown <= width, "{shown} result columns of {width}");
            let node = plan_rows(query.plan.clone(), &mut count, aids);
            let point = scan::point_get(&node);
            Plan::new(PlanRoot::Query(node), query.columns.clone(), count, point)
        }
        BoundPlan::Insert(insert) => plan_insert(insert, aids),
        BoundPlan::Update(update) => plan_update(update, aids),
        BoundPlan::Delete(delete) => plan_delete(delete, aids),
        BoundPlan::Merge(merge) => plan_merge(merge, aids),
        BoundPlan::Steps(steps) => plan_steps(steps, aids)?,
    })
}

/// Plans each step separately; all share the parameters.
fn plan_steps(steps: &Steps, aids: PlannerInputs<'_>) -> Result<Plan> {
    let mut before = Vec::with_capacity(steps.before.len());
    let mut count = 0;
    for step in &steps.before {
        let planned = plan_with(&step.bound, aids)?;
        count = count.max(planned.parameter_count);
        before.push(WithPart { id: step.id, name: step.name.clone(), root: planned.root });
    }
    let mut last = plan_with(&steps.last, aids)?;
    last.parameter_count = last.parameter_count.max(count);
    last.before = before;
    last.point = None;
    Ok(last)
}

/// Plans rows. `parameter_count`: one more than the largest parameter; look-ups add theirs.
fn plan_rows(logical: Logical, parameter_count: &mut usize, aids: PlannerInputs<'_>) -> Node {
    let width = plan_properties::width_of(&logical);
    plan_columns(logical, width, parameter_count, aids)
}

/// Plans rows of which the first `wanted` columns are needed; others may follow them.
fn plan_columns(
    logical: Logical,
    wanted: usize,
    parameter_count: &mut usize,
    aids: PlannerInputs<'_>,
) -> Node {
    let next_parameter = Cell::new(*parameter_count);
    validate::logical("the binder", &logical, next_parameter.get());
    let mut logical = push_down::push_down(logical, aids.statistics, &next_parameter);
    barrier::open(&mut logical);
    validate::logical("push_down", &logical, next_parameter.get());
    let mut logical = prune::to_first(logical, wanted);
    validate::logical("prune", &logical, next_parameter.get());
    index_combination::combine(&mut logical, aids.statistics, &next_parameter);
    validate::logical("combined_indexes", &logical, next_parameter.get());
    *parameter_count = next_parameter.get();
    let types = if cfg!(debug_assertions) { logical.column_types() } else { Vec::new() };
    let node = build::build(logical, aids.notes);
    validate::physical("build", &node, &types);
    node
}

fn columns_of(returning: &Option<Returning>) -> Vec<crate::logical::OutputColumn> {
    returning.as_ref().map(|returning| returning.columns.clone()).unwrap_or_default()
}

/// Returns one more than the largest parameter of these expressions.
fn largest<'a>(expressions: impl Iterator<Item = &'a Expr>) -> usize {
    expressions.map(parameter_count).max().unwrap_or(0)
}

fn plan_insert(insert: &Insert, aids: PlannerInputs<'_>) -> Plan {
    let mut count = parameters_of(&insert.source);
    if let OnConflict::Update { assignments, predicate, .. } = &insert.on_conflict {
        let values = assignments.iter().map(|assignment| &assignment.value);
        count = count.max(largest(values.chain(predicate)));
    }
    let own = returned(&insert.returning).chain(insert.attributes.expressions());
    count = count.max(largest(own));
    let given = insert.checks.iter().flat_map(|check| &check.row).chain(&insert.conflict_row);
    count = given.map(|row| parameters_of(&row.plan)).fold(count, usize::max);
    debug_assert_eq!(
        plan_properties::width_of(&insert.source),
        insert.table.columns.len(),
        "columns of the rows that are inserted into {}",
        insert.table.name
    );
    let source = plan_rows(insert.source.clone(), &mut count, aids);
    let conflict_row = insert.conflict_row.as_deref();
    let conflict_row = conflict_row.map(|row| given_row(row, &mut count, aids));
    let checks = row_checks(&insert.checks, &mut count, aids);
    let root = PlanRoot::Insert(InsertPlan {
        table: Arc::clone(&insert.table),
        source,
        named_columns: insert.named_columns.clone(),
        attributes: insert.attributes.clone(),
        on_conflict: insert.on_conflict.clone(),
        conflict_row,
        checks,
        returning: insert.returning.clone(),
    });
    Plan::new(root, columns_of(&insert.returning), count, None)
}

fn returned(returning: &Option<Returning>) -> impl Iterator<Item = &Expr> {
    returning.iter().flat_map(|returning| &returning.expressions)
}

fn given_row(row: &RowAtHand, count: &mut usize, aids: PlannerInputs<'_>) -> RowAtHandPlan {
    let parameters = row.parameters.iter().filter_map(parameter_index).collect();
    RowAtHandPlan { parameters, node: plan_rows(row.plan.clone(), count, aids) }
}

fn row_checks(
    checks: &[RowCheck],
    count: &mut usize,
    aids: PlannerInputs<'_>,
) -> Vec<RowCheckPlan> {
    let plan = |check: &RowCheck| RowCheckPlan {
        subject: check.subject.clone(),
        predicate: check.predicate.clone(),
        row: check.row.as_deref().map(|row| given_row(row, count, aids)),
    };
    checks.iter().map(plan).collect()
}

fn parameter_index(parameter: &Expr) -> Option<usize> {
    match parameter {
        Expr::Parameter { index, .. } => Some(*index),
        _ => None,
    }
}

/// Plans the target rows: key columns and columns that subqueries added. Other columns are
/// re-read under the row lock.
fn target_rows(
    table: &Arc<Table>,
    source: &Logical,
    parameter_count: &mut usize,
    aids: PlannerInputs<'_>,
) -> TargetRows {
    let types = source.column_types();
    // A view has no key: its whole rows are read.
    let extra = if table.is_view { 0 } else { table.columns.len() }..types.len();
    let columns: Vec<usize> = table.key_columns().chain(extra.clone()).collect();
    let node = plan_rows(
        Logical::Project {
            input: Box::new(source.clone()),
            expressions: columns.iter().map(|&index| column(index, &types[index])).collect(),
        },
        parameter_count,
        aids,
    );
    let point = match &node {
        Node::Scan(scan) if extra.is_empty() => scan::point_key(scan),
        _ => None,
    };
    TargetRows { node, extra_types: types[extra].to_vec(), point }
}

fn plan_update(update: &Update, aids: PlannerInputs<'_>) -> Plan {
    let values = update.assignments.iter().map(|assignment| &assignment.value);
    let count = largest(values.chain(returned(&update.returning)).chain(&update.recheck));
    let mut count = count.max(parameters_of(&update.source));
    let given = update.checks.iter().flat_map(|check| &check.row);
    count = given.map(|row| parameters_of(&row.plan)).fold(count, usize::max);
    let root = PlanRoot::Change(RowChangePlan {
        table: Arc::clone(&update.table),
        source: target_rows(&update.table, &update.source, &mut count, aids),
        reads_timestamp: update.reads_timestamp,
        checks: row_checks(&update.checks, &mut count, aids),
        attributes: CellAttributes::default(),
        recheck: update.recheck.clone(),
        assignments: Some(update.assignments.clone()),
        repeats: update.repeats,
        returning: update.returning.clone(),
    });
    Plan::new(root, columns_of(&update.returning), count, None)
}

fn plan_delete(delete: &Delete, aids: PlannerInputs<'_>) -> Plan {
    let own = returned(&delete.returning).chain(&delete.recheck);
    let own = own.chain(delete.attributes.expressions());
    let mut count = largest(own).max(parameters_of(&delete.source));
    let root = PlanRoot::Change(RowChangePlan {
        table: Arc::clone(&delete.table),
        source: target_rows(&delete.table, &delete.source, &mut count, aids),
        reads_timestamp: delete.reads_timestamp,
        checks: Vec::new(),
        attributes: delete.attributes.clone(),
        recheck: delete.recheck.clone(),
        assignments: None,
        repeats: false,
        returning: delete.returning.clone(),
    });
    Plan::new(root, columns_of(&delete.returning), count, None)
}

fn plan_merge(merge: &Merge, aids: PlannerInputs<'_>) -> Plan {
    let conditions = merge.clauses.iter().flat_map(|clause| &clause.condition);
    let actions = merge.clauses.iter().flat_map(|clause| clause.action.expressions());
    let mut count = largest(conditions.chain(actions)).max(parameters_of(&merge.source));
    // Only rows that are changed are locked, by the MERGE node.
    let source = merge.source.clone();
    let (source, held) = match plan_columns(source, merge.width, &mut count, aids) {
        Node::LockRows(node) => {
            let node = Arc::into_inner(node).expect("a plan that was just made has one owner");
            (node.input, Some(node.held))
        }
        source => (source, None),
    };
    let given = merge.checks.iter().flat_map(|check| &check.row);
    count = given.map(|row| parameters_of(&row.plan)).fold(count, usize::max);
    let checks = row_checks(&merge.checks, &mut count, aids);
    let (table, clauses) = (Arc::clone(&merge.table), merge.clauses.clone());
    let root = PlanRoot::Merge(MergePlan { table, source, held, checks, clauses });
    Plan::new(root, Vec::new(), count, None)
}
