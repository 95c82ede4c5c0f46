//! Order preservation where an apply is replaced by a join.
//!
//! Expensive or volatile expressions are computed above a sort ([`Apply`](crate::logical::Apply),
//! projections). An apply preserves the order of its rows; the join that replaces it need not, so
//! the rows are sorted again above the join.

use types::expr::Expr;

use crate::logical::{ApplyKind, Logical, SortKey};
use crate::planner::conjunct::{as_column, column, columns_of, is_volatile, renumber};

/// Order of rows.
pub(super) enum RowOrdering {
    /// No required order.
    None,
    /// Sorted by these keys, over the columns.
    By(Vec<SortKey>),
    /// Sorted by expressions that are not among the columns.
    Lost,
}

/// Returns the order of a plan's rows.
pub(super) fn order_of(plan: &Logical) -> RowOrdering {
    match plan {
        Logical::Sort { keys, .. } => match keys.iter().any(|key| is_volatile(&key.expression)) {
            true => RowOrdering::Lost,
            false => RowOrdering::By(keys.clone()),
        },
        Logical::Filter { input, .. }
        | Logical::Limit { input, .. }
        | Logical::Distinct { input, .. } => order_of(input),
        Logical::Apply(apply) if !matches!(apply.kind, ApplyKind::Rows { .. }) => {
            order_of(&apply.input)
        }
        Logical::ProjectSet(sets) => order_of(&sets.input),
        Logical::Project { input, expressions } => match order_of(input) {
            RowOrdering::By(keys) => projected(keys, expressions),
            other => other,
        },
        _ => RowOrdering::None,
    }
}

/// Converts sort keys over the input of a projection to its output columns.
fn projected(mut keys: Vec<SortKey>, expressions: &[Expr]) -> RowOrdering {
    let place = |index: usize| expressions.iter().position(|one| as_column(one) == Some(index));
    for key in &mut keys {
        if let Some(at) = expressions.iter().position(|one| *one == key.expression) {
            key.expression = column(at, key.expression.data_type());
        } else if columns_of(&key.expression).iter().all(|&index| place(index).is_some()) {
            let expression =
                std::mem::replace(&mut key.expression, column(0, types::DataType::Bool));
            key.expression = renumber(expression, &|index| place(index).unwrap_or(index));
        } else {
            return RowOrdering::Lost;
        }
    }
    RowOrdering::By(keys)
}
