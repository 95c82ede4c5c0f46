//! GROUPING SETS: the aggregates of each set, and shared subexpressions.

use types::Datum;
use types::aggregate::Aggregate;
use types::expr::Expr;

use crate::plan::GroupingSet;
use crate::planner::conjunct::column;

/// Returns whether aggregates have direct arguments that depend on the set's keys: each set then
/// needs separate aggregates.
pub(super) fn differ(aggregates: &[Aggregate]) -> bool {
    let of_group = |direct: &Expr| {
        let mut takes = false;
        direct.walk(&mut |part| takes |= matches!(part, Expr::Column { .. }));
        takes
    };
    aggregates.iter().flat_map(Aggregate::direct_arguments).any(of_group)
}

/// Returns the sets with their aggregates.
pub(super) fn with_aggregates(
    sets: Vec<Vec<usize>>,
    group_by: &[Expr],
    aggregates: &[Aggregate],
) -> Vec<GroupingSet> {
    let of_set = |keys: Vec<usize>| {
        let mut aggregates = aggregates.to_vec();
        for direct in aggregates.iter_mut().flat_map(Aggregate::direct_arguments_mut) {
            let whole = std::mem::replace(direct, Expr::constant(Datum::Null, direct.data_type()));
            *direct = as_grouped(whole, group_by, &keys);
        }
        GroupingSet { keys, aggregates }
    };
    sets.into_iter().map(of_set).collect()
}

/// Returns an expression over the keys for a group of a set: keys that the set does not have are
/// NULL.
fn as_grouped(expr: Expr, group_by: &[Expr], set: &[usize]) -> Expr {
    if matches!(expr, Expr::Constant { .. }) {
        return expr;
    }
    match group_by.iter().position(|key| *key == expr) {
        Some(key) if set.contains(&key) => expr,
        Some(_) => Expr::constant(Datum::Null, expr.data_type()),
        None => expr.map_children(&mut |child| as_grouped(child, group_by, set)),
    }
}

/// Extracts the row expressions of all sets, so that they are computed once: returns them, and
/// replaces them by columns.
pub(super) fn take_parts(group_by: &mut [Expr], sets: &mut [GroupingSet]) -> Vec<Expr> {
    let mut parts: Vec<Expr> = Vec::new();
    let of_sets = sets.iter_mut().flat_map(|set| &mut set.aggregates);
    for part in group_by.iter_mut().chain(of_sets.flat_map(Aggregate::expressions_mut)) {
        let at = parts.iter().position(|one| one == part).unwrap_or_else(|| {
            parts.push(part.clone());
            parts.len() - 1
        });
        *part = column(at, part.data_type());
    }
    parts
}
