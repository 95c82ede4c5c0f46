//! Properties of logical plans: width, emptiness, nullability and parameters; and constructors of
//! simple plans.

use types::expr::Expr;
use types::{DataType, Datum};

use crate::logical::{ApplyKind, LockRows, Logical, pseudo_column_type};
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

/// Returns whether a plan has no rows, for any content of the tables.
pub(super) fn is_empty(plan: &Logical) -> bool {
    match plan {
        Logical::Values { rows, .. } => rows.is_empty(),
        Logical::Filter { input, .. }
        | Logical::Barrier { input }
        | Logical::Project { input, .. }
        | Logical::Sort { input, .. }
        | Logical::Limit { input, .. }
        | Logical::Distinct { input, .. } => is_empty(input),
        Logical::Apply(apply) => is_empty(&apply.input),
        Logical::ProjectSet(sets) => is_empty(&sets.input),
        Logical::Window(window) => is_empty(&window.input),
        Logical::Aggregate { input, group_by, .. } => !group_by.is_empty() && is_empty(input),
        Logical::SetOperation(operation) => is_empty(&operation.left),
        Logical::Append { inputs } => inputs.iter().all(is_empty),
        _ => false,
    }
}

/// Returns a plan without rows.
pub(super) fn no_rows(types: Vec<DataType>) -> Logical {
    Logical::Values { types, rows: Vec::new() }
}

/// Returns a plan with NULL columns added before and after its own.
pub(super) fn padded(before: &[DataType], plan: Logical, after: &[DataType]) -> Logical {
    let null = |data_type: &DataType| Expr::constant(Datum::Null, data_type);
    let own = plan.column_types().into_iter().enumerate();
    let own = own.map(|(index, data_type)| Expr::column(index, data_type));
    let expressions = before.iter().map(null).chain(own).chain(after.iter().map(null)).collect();
    Logical::Project { input: Box::new(plan), expressions }
}

/// Returns whether a plan is one row of no columns.
pub(super) fn is_unit(plan: &Logical) -> bool {
    matches!(plan, Logical::Values { types, rows } if types.is_empty() && rows.len() == 1)
}

/// Returns whether a column of a plan is evidently never NULL.
pub(super) fn is_never_null(expression: &Expr, input: &Logical) -> bool {
    match expression {
        Expr::Constant { value, .. } => !matches!(value, Datum::Null),
        Expr::Cast { operand, .. } => is_never_null(operand, input),
        Expr::Column { index, .. } => match input {
            Logical::Scan(scan) => match scan.columns[*index] {
                column if pseudo_column_type(column).is_some() => true,
                column => scan.table.is_never_null(column),
            },
            Logical::Project { input, expressions } => is_never_null(&expressions[*index], input),
            Logical::Filter { input, .. }
            | Logical::Barrier { input }
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

/// Returns one more than the largest parameter index of a plan, including subquery bindings.
pub(super) fn parameters_of(plan: &Logical) -> usize {
    let mut count = 0;
    plan.for_each_expression(&mut |expression| count = count.max(parameter_count(expression)));
    bindings(plan, &mut |parameter| count = count.max(parameter + 1));
    count
}

/// Calls `visit` on every parameter in the bindings of subqueries.
pub(super) fn bindings(plan: &Logical, visit: &mut dyn FnMut(usize)) {
    plan.walk(&mut |step| {
        if let Logical::Apply(apply) = step {
            apply.bindings.iter().for_each(|(parameter, _)| visit(*parameter));
        }
    });
}
