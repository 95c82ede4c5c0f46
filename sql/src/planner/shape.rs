//! What can be read off a logical plan: the types of its columns, its expressions.

use types::Datum;
use types::expr::Expr;

use crate::logical::{ApplyKind, LockRows, Logical, TIMESTAMP_COLUMN};
use crate::planner::conjunct::parameter_count;

/// Returns the number of a plan's columns.
pub(super) fn width_of(plan: &Logical) -> usize {
    match plan {
        Logical::Scan(scan) => scan.columns.len(),
        Logical::Filter { input, .. }
        | Logical::Sort { input, .. }
        | Logical::Limit { input, .. }
        | Logical::Distinct { input, .. }
        | Logical::LockRows(LockRows { input, .. }) => width_of(input),
        Logical::SetOperation(operation) => width_of(&operation.left),
        Logical::Apply(apply) => match apply.kind {
            ApplyKind::Rows { .. } => width_of(&apply.input) + width_of(&apply.subquery),
            _ => width_of(&apply.input) + 1,
        },
        Logical::ProjectSet(sets) => width_of(&sets.input) + sets.set_types().count(),
        plan => plan.column_types().len(),
    }
}

/// Returns whether a plan is one row of no columns.
pub(super) fn is_unit(plan: &Logical) -> bool {
    matches!(plan, Logical::Values { types, rows } if types.is_empty() && rows.len() == 1)
}

/// Returns whether a column of a plan can never be NULL, as far as is easily seen.
pub(super) fn is_never_null(expression: &Expr, input: &Logical) -> bool {
    match expression {
        Expr::Constant { value, .. } => !matches!(value, Datum::Null),
        Expr::Cast { operand, .. } => is_never_null(operand, input),
        Expr::Column { index, .. } => match input {
            Logical::Scan(scan) => match scan.columns[*index] {
                TIMESTAMP_COLUMN => true,
                column => scan.table.columns[column].not_null,
            },
            Logical::Project { input, expressions } => is_never_null(&expressions[*index], input),
            Logical::Filter { input, .. }
            | Logical::Sort { input, .. }
            | Logical::Limit { input, .. }
            | Logical::Distinct { input, .. }
            | Logical::LockRows(LockRows { input, .. }) => is_never_null(expression, input),
            Logical::SetOperation(operation) => is_never_null(expression, &operation.left),
            Logical::With(with) => is_never_null(expression, &with.body),
            _ => false,
        },
        _ => false,
    }
}

/// Calls `visit` on every expression of a plan.
#[expect(clippy::too_many_lines, reason = "a flat match over the kinds of steps")]
pub(super) fn expressions(plan: &Logical, visit: &mut dyn FnMut(&Expr)) {
    match plan {
        Logical::Scan(scan) => scan.as_of.iter().for_each(visit),
        Logical::SystemRows(rows) => rows.arguments.iter().for_each(visit),
        Logical::Values { rows, .. } => rows.iter().flatten().for_each(visit),
        Logical::Filter { input, predicate } => {
            visit(predicate);
            expressions(input, visit);
        }
        Logical::Project { input, expressions: list } => {
            list.iter().for_each(&mut *visit);
            expressions(input, visit);
        }
        Logical::Join(join) => {
            visit(&join.on);
            expressions(&join.left, visit);
            expressions(&join.right, visit);
        }
        Logical::Apply(apply) => {
            apply.kind.condition().into_iter().for_each(&mut *visit);
            expressions(&apply.input, visit);
            expressions(&apply.subquery, visit);
        }
        Logical::Aggregate { input, group_by, aggregates } => {
            group_by.iter().for_each(&mut *visit);
            for aggregate in aggregates {
                aggregate.expressions().for_each(&mut *visit);
            }
            expressions(input, visit);
        }
        Logical::ProjectSet(sets) => {
            sets.arguments().for_each(&mut *visit);
            expressions(&sets.input, visit);
        }
        Logical::GroupingSets(grouping) => {
            grouping.group_by.iter().for_each(&mut *visit);
            for aggregate in &grouping.aggregates {
                aggregate.expressions().for_each(&mut *visit);
            }
            expressions(&grouping.input, visit);
        }
        Logical::Sort { input, keys } => {
            keys.iter().for_each(|key| visit(&key.expression));
            expressions(input, visit);
        }
        Logical::LockRows(lock) => {
            expressions(&lock.input, visit);
            expressions(&lock.again, visit);
        }
        Logical::Limit { input, limit, offset, ties } => {
            limit.iter().chain(offset).chain(ties).for_each(&mut *visit);
            expressions(input, visit);
        }
        Logical::Distinct { input, on } => {
            on.iter().for_each(&mut *visit);
            expressions(input, visit);
        }
        Logical::SetOperation(operation) => {
            expressions(&operation.left, visit);
            expressions(&operation.right, visit);
        }
        Logical::Window(window) => {
            window.for_each_expression(visit);
            expressions(&window.input, visit);
        }
        Logical::With(with) => {
            expressions(&with.query, visit);
            expressions(&with.body, visit);
        }
        Logical::CteScan(_) => {}
        Logical::RecursiveUnion(union) => {
            expressions(&union.start, visit);
            expressions(&union.step, visit);
        }
        Logical::Append { inputs } => {
            inputs.iter().for_each(|input| expressions(input, visit));
        }
    }
}

/// Returns one more than the largest parameter index of a plan, subquery bindings included.
pub(super) fn parameters_of(plan: &Logical) -> usize {
    let mut count = 0;
    expressions(plan, &mut |expression| count = count.max(parameter_count(expression)));
    bindings(plan, &mut |parameter| count = count.max(parameter + 1));
    count
}

/// Calls `visit` on every parameter that a subquery of the plan is bound by.
pub(super) fn bindings(plan: &Logical, visit: &mut dyn FnMut(usize)) {
    match plan {
        Logical::Scan(_)
        | Logical::SystemRows(_)
        | Logical::Values { .. }
        | Logical::CteScan(_) => {}
        Logical::Filter { input, .. }
        | Logical::Project { input, .. }
        | Logical::Aggregate { input, .. }
        | Logical::Sort { input, .. }
        | Logical::Limit { input, .. }
        | Logical::Distinct { input, .. } => bindings(input, visit),
        Logical::Join(join) => {
            bindings(&join.left, visit);
            bindings(&join.right, visit);
        }
        Logical::Apply(apply) => {
            apply.bindings.iter().for_each(|(parameter, _)| visit(*parameter));
            bindings(&apply.input, visit);
            bindings(&apply.subquery, visit);
        }
        Logical::LockRows(lock) => {
            bindings(&lock.input, visit);
            bindings(&lock.again, visit);
        }
        Logical::SetOperation(operation) => {
            bindings(&operation.left, visit);
            bindings(&operation.right, visit);
        }
        Logical::ProjectSet(sets) => bindings(&sets.input, visit),
        Logical::GroupingSets(grouping) => bindings(&grouping.input, visit),
        Logical::Window(window) => bindings(&window.input, visit),
        Logical::With(with) => {
            bindings(&with.query, visit);
            bindings(&with.body, visit);
        }
        Logical::RecursiveUnion(union) => {
            bindings(&union.start, visit);
            bindings(&union.step, visit);
        }
        Logical::Append { inputs } => inputs.iter().for_each(|input| bindings(input, visit)),
    }
}
