//! LIMIT goes below what is computed for each row: it is computed for the rows that are asked for.

use crate::logical::{Apply, ApplyKind, Logical};
use crate::planner::conjunct::is_volatile;

/// Returns whether a step adds columns to each row, in ways that cost or that have effects. Without
/// `all`, the first rows are skipped: what has effects has them for these, too.
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

/// Puts a step below those that add columns to each row.
pub(super) fn below_values(
    plan: Logical,
    put: impl FnOnce(Box<Logical>) -> Box<Logical>,
) -> Logical {
    match plan {
        Logical::Project { input, expressions } => {
            let input = Box::new(below_values(*input, put));
            Logical::Project { input, expressions }
        }
        Logical::Apply(apply) if !matches!(apply.kind, ApplyKind::Rows { .. }) => {
            Logical::Apply(Apply { input: Box::new(below_values(*apply.input, put)), ..apply })
        }
        other => *put(Box::new(other)),
    }
}
