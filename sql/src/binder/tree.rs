//! Visitors for bound expressions and plans.

use types::DataType;
use types::expr::Expr;

use crate::logical::{ApplyKind, BoundPlan, JoinKind, LockRows, Logical, OnConflict, Returning};

/// Calls `visit` on the index of each column in an expression.
pub(super) fn for_each_column(expr: &Expr, visit: &mut dyn FnMut(usize)) {
    expr.walk(&mut |node| {
        if let Expr::Column { index, .. } = node {
            visit(*index);
        }
    });
}

/// Replaces the index of each column in an expression.
pub(super) fn map_columns(expr: &mut Expr, map: &dyn Fn(usize) -> usize) {
    expr.walk_mut(&mut |node| {
        if let Expr::Column { index, .. } = node {
            *index = map(*index);
        }
    });
}

/// Returns the conjuncts of a predicate.
pub(super) fn conjuncts(predicate: Expr) -> Vec<Expr> {
    match predicate {
        Expr::And(list) => list.into_iter().flat_map(conjuncts).collect(),
        other => vec![other],
    }
}

/// Returns the conjunction; `None` if the list is empty.
pub(super) fn conjunction(mut list: Vec<Expr>) -> Option<Expr> {
    match list.len() {
        0 | 1 => list.pop(),
        _ => Some(Expr::And(list)),
    }
}

/// Returns a column reference for each of the leading columns of a row.
pub(super) fn identity(types: &[DataType]) -> Vec<Expr> {
    let column = |(index, data_type): (usize, &DataType)| Expr::Column {
        index,
        data_type: data_type.clone(),
    };
    types.iter().enumerate().map(column).collect()
}

/// Returns the number of columns of a plan.
pub(super) fn width(plan: &Logical) -> usize {
    match plan {
        Logical::Scan(scan) => scan.columns.len(),
        Logical::SystemRows(rows) => rows.columns.len(),
        Logical::Values { types, .. } => types.len(),
        Logical::Constants(constants) => constants.types.len(),
        Logical::Filter { input, .. }
        | Logical::Barrier { input }
        | Logical::Sort { input, .. }
        | Logical::Limit { input, .. }
        | Logical::Distinct { input, .. }
        | Logical::LockRows(LockRows { input, .. }) => width(input),
        Logical::SetOperation(operation) => width(&operation.left),
        Logical::Window(window) => width(&window.input) + window.functions.len(),
        Logical::With(with) => width(&with.body),
        Logical::CteScan(scan) => scan.columns.len(),
        Logical::RecursiveUnion(union) => width(&union.start),
        Logical::Project { expressions, .. } => expressions.len(),
        Logical::Join(join) => match join.kind {
            JoinKind::Semi | JoinKind::Anti => width(&join.left),
            _ => width(&join.left) + width(&join.right),
        },
        Logical::Apply(apply) => match apply.kind {
            ApplyKind::Rows { .. } => width(&apply.input) + width(&apply.subquery),
            _ => width(&apply.input) + 1,
        },
        Logical::ProjectSet(sets) => width(&sets.input) + sets.set_types().count(),
        Logical::Aggregate { group_by, aggregates, .. } => group_by.len() + aggregates.len(),
        Logical::GroupingSets(grouping) => {
            grouping.group_by.len() + grouping.aggregates.len() + grouping.grouping_calls.len()
        }
        Logical::Append { inputs } => inputs.first().map_or(0, width),
    }
}

/// Calls `visit` on each plan directly below a plan.
pub(super) fn for_each_input<'p>(plan: &'p mut Logical, visit: &mut dyn FnMut(&'p mut Logical)) {
    match plan {
        Logical::Scan(_)
        | Logical::SystemRows(_)
        | Logical::Values { .. }
        | Logical::Constants(_)
        | Logical::CteScan(_) => {}
        Logical::Filter { input, .. }
        | Logical::Barrier { input }
        | Logical::Project { input, .. }
        | Logical::Aggregate { input, .. }
        | Logical::Sort { input, .. }
        | Logical::Limit { input, .. }
        | Logical::Distinct { input, .. } => visit(input),
        Logical::Join(join) => {
            visit(&mut join.left);
            visit(&mut join.right);
        }
        Logical::Apply(apply) => {
            visit(&mut apply.input);
            visit(&mut apply.subquery);
        }
        Logical::SetOperation(operation) => {
            visit(&mut operation.left);
            visit(&mut operation.right);
        }
        Logical::LockRows(lock) => {
            visit(&mut lock.input);
            visit(&mut lock.re_evaluation);
        }
        Logical::ProjectSet(sets) => visit(&mut sets.input),
        Logical::GroupingSets(grouping) => visit(&mut grouping.input),
        Logical::Window(window) => visit(&mut window.input),
        Logical::With(with) => {
            visit(&mut with.query);
            visit(&mut with.body);
        }
        Logical::RecursiveUnion(union) => {
            visit(&mut union.start);
            visit(&mut union.step);
        }
        Logical::Append { inputs } => inputs.iter_mut().for_each(visit),
    }
}

/// Calls `visit` on each expression of a plan node itself, not of its inputs.
pub(super) fn for_each_expression(plan: &mut Logical, visit: &mut dyn FnMut(&mut Expr)) {
    match plan {
        Logical::Scan(scan) => {
            scan.system_time.iter_mut().flat_map(|time| &mut time.times).for_each(visit);
        }
        Logical::SystemRows(rows) => rows.arguments.iter_mut().for_each(visit),
        Logical::Constants(_) => {}
        Logical::Values { rows, .. } => rows.iter_mut().flatten().for_each(visit),
        Logical::Filter { predicate, .. } => visit(predicate),
        Logical::Project { expressions, .. } => expressions.iter_mut().for_each(visit),
        Logical::Join(join) => visit(&mut join.on),
        Logical::Apply(apply) => apply.expressions_mut().for_each(visit),
        Logical::ProjectSet(sets) => sets.arguments_mut().for_each(visit),
        Logical::Aggregate { group_by, aggregates, .. } => {
            group_by.iter_mut().for_each(&mut *visit);
            for aggregate in aggregates {
                aggregate.expressions_mut().for_each(&mut *visit);
            }
        }
        Logical::GroupingSets(grouping) => {
            grouping.group_by.iter_mut().for_each(&mut *visit);
            for aggregate in &mut grouping.aggregates {
                aggregate.expressions_mut().for_each(&mut *visit);
            }
        }
        Logical::Sort { keys, .. } => keys.iter_mut().for_each(|key| visit(&mut key.expression)),
        Logical::Limit { limit, offset, ties, .. } => {
            limit.iter_mut().chain(offset).chain(ties).for_each(visit);
        }
        Logical::Distinct { on, .. } => on.iter_mut().for_each(visit),
        Logical::Window(window) => window.for_each_expression_mut(visit),
        Logical::SetOperation(_)
        | Logical::LockRows(_)
        | Logical::With(_)
        | Logical::CteScan(_)
        | Logical::RecursiveUnion(_)
        | Logical::Barrier { .. }
        | Logical::Append { .. } => {}
    }
}

/// Calls `visit` on each plan node, parents first.
pub(super) fn walk_plan(plan: &mut Logical, visit: &mut dyn FnMut(&mut Logical)) {
    visit(plan);
    for_each_input(plan, &mut |input| walk_plan(input, visit));
}

/// Calls `visit` on the statement, or on each of its steps if it has several.
pub(super) fn for_each_step(bound: &mut BoundPlan, visit: &mut dyn FnMut(&mut BoundPlan)) {
    match bound {
        BoundPlan::Steps(steps) => {
            steps.before.iter_mut().for_each(|step| for_each_step(&mut step.bound, visit));
            for_each_step(&mut steps.last, visit);
        }
        bound => visit(bound),
    }
}

/// Calls `visit` on the source plan of a statement, and of each of its steps.
pub(super) fn for_each_source(bound: &mut BoundPlan, visit: &mut dyn FnMut(&mut Logical)) {
    for_each_step(bound, &mut |step| match step {
        BoundPlan::Query(query) => visit(&mut query.plan),
        BoundPlan::Insert(insert) => {
            visit(&mut insert.source);
            insert.given_rows_mut().for_each(|row| visit(&mut row.plan));
        }
        BoundPlan::Update(update) => {
            visit(&mut update.source);
            update.given_rows_mut().for_each(|row| visit(&mut row.plan));
        }
        BoundPlan::Delete(delete) => visit(&mut delete.source),
        BoundPlan::Merge(merge) => {
            visit(&mut merge.source);
            merge.given_rows_mut().for_each(|row| visit(&mut row.plan));
        }
        BoundPlan::Steps(_) => {}
    });
}

/// Calls `visit` on each expression of a single-step statement outside of its source plan.
pub(super) fn for_each_statement_expression(
    bound: &mut BoundPlan,
    visit: &mut dyn FnMut(&mut Expr),
) {
    let returning_of = |returning: &mut Option<Returning>, visit: &mut dyn FnMut(&mut Expr)| {
        returning.iter_mut().flat_map(|one| &mut one.expressions).for_each(visit);
    };
    match bound {
        BoundPlan::Query(_) | BoundPlan::Steps(_) => {}
        BoundPlan::Insert(insert) => {
            if let OnConflict::Update { assignments, predicate, .. } = &mut insert.on_conflict {
                assignments.iter_mut().for_each(|one| visit(&mut one.value));
                predicate.iter_mut().for_each(&mut *visit);
            }
            insert.given_rows_mut().flat_map(|row| &mut row.parameters).for_each(&mut *visit);
            insert.checks.iter_mut().for_each(|check| visit(&mut check.predicate));
            returning_of(&mut insert.returning, visit);
        }
        BoundPlan::Update(update) => {
            update.recheck.iter_mut().for_each(&mut *visit);
            update.assignments.iter_mut().for_each(|one| visit(&mut one.value));
            update.given_rows_mut().flat_map(|row| &mut row.parameters).for_each(&mut *visit);
            update.checks.iter_mut().for_each(|check| visit(&mut check.predicate));
            returning_of(&mut update.returning, visit);
        }
        BoundPlan::Merge(merge) => {
            merge.clauses.iter_mut().for_each(|clause| clause.for_each_expression_mut(visit));
            merge.given_rows_mut().flat_map(|row| &mut row.parameters).for_each(&mut *visit);
            merge.checks.iter_mut().for_each(|check| visit(&mut check.predicate));
        }
        BoundPlan::Delete(delete) => {
            delete.recheck.iter_mut().for_each(&mut *visit);
            returning_of(&mut delete.returning, visit);
        }
    }
}
