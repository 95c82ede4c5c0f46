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
                column => scan.table.is_never_null(column),
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

/// Returns one more than the largest parameter index of a plan, subquery bindings included.
pub(super) fn parameters_of(plan: &Logical) -> usize {
    let mut count = 0;
    plan.for_each_expression(&mut |expression| count = count.max(parameter_count(expression)));
    bindings(plan, &mut |parameter| count = count.max(parameter + 1));
    count
}

/// Calls `visit` on every parameter that a subquery of the plan is bound by.
pub(super) fn bindings(plan: &Logical, visit: &mut dyn FnMut(usize)) {
    plan.walk(&mut |step| {
        if let Logical::Apply(apply) = step {
            apply.bindings.iter().for_each(|(parameter, _)| visit(*parameter));
        }
    });
}
