//! LIMIT pushdown below per-row computations, which are then computed for the returned rows only.

use crate::logical::{Apply, ApplyKind, Logical};
use crate::planner::conjunct::is_volatile;

/// Returns whether a node adds expensive or volatile columns to each row. Without `all`, an
/// OFFSET skips rows: volatile expressions must be evaluated for these, too.
pub(super) fn is_for_each_row(plan: &Logical, all: bool) -> bool {
    match plan {
        Logical::Project { input, expressions } => {
            let is_volatile = expressions.iter().any(is_volatile);
            (is_volatile && all) || (!is_volatile && is_for_each_row(input, all))
        }
        Logical::Apply(apply) => {
            !matches!(apply.kind, ApplyKind::Rows { .. }) && (all || !apply.subquery.has_effects())
        }
        _ => false,
    }
}

/// Inserts a node below those that add columns to each row.
pub(super) fn insert_below_columns(
    plan: Logical,
    put: impl FnOnce(Box<Logical>) -> Box<Logical>,
) -> Logical {
    match plan {
        Logical::Project { input, expressions } => {
            let input = Box::new(insert_below_columns(*input, put));
            Logical::Project { input, expressions }
        }
        Logical::Apply(apply) if !matches!(apply.kind, ApplyKind::Rows { .. }) => {
            Logical::Apply(Apply {
                input: Box::new(insert_below_columns(*apply.input, put)),
                ..apply
            })
        }
        other => *put(Box::new(other)),
    }
}
