//! Tail of a join group: outer, semi and anti joins after the joins of its units.
//!
//! [`join_tree`](crate::planner::join_tree) applies them to the joined units in order, choosing
//! for each the build side or look-ups by key.

use types::expr::Expr;

use crate::logical::{JoinDecision, JoinKind, Logical};
use crate::planner::conjunct::{
    Columns, add_columns, columns_of, hashable, is_never_true, renumber, within,
};
use crate::planner::cost;
use crate::planner::estimate::Estimator;
use crate::planner::first_rows::FirstRows;
use crate::planner::join_group::{JoinUnit, TailJoin};
use crate::planner::join_part::{ColumnOwner, JoinPart, JoinPlanner, PushInto, read_cost};
use crate::planner::lookup::{LookupKey, filtered_table, lookup_sides};
use crate::planner::plan_properties::{is_empty, no_rows, padded};

/// Selectivity below which a semi or anti join on one unit is executed before the other joins.
pub(super) const EARLY_SEMI_JOIN: f64 = 0.5;
/// Assumed selectivity of a semi or anti join of the tail.
pub(super) const SEMI_JOIN: f64 = 0.5;
/// Assumed selectivity of a condition on the tail.
pub(super) const OF_TAIL: f64 = 1.0 / 3.0;

/// Returns the row goal of the joined units, before the tail joins.
pub(super) fn before_tail(first: FirstRows, tails: &[(TailJoin, Vec<Expr>)]) -> FirstRows {
    let part = |(tail, conjuncts): &(TailJoin, Vec<Expr>)| {
        part_of_tail(tail.kind) * OF_TAIL.powi(conjuncts.len().min(9) as i32)
    };
    let rows = first.rows / tails.iter().map(part).product::<f64>();
    FirstRows { rows, ..first }
}

impl TailJoin {
    /// Pushes conditions down into the right side, which is empty if the join condition is never
    /// true.
    pub(super) fn with_right(self, push_into: PushInto<'_>) -> TailJoin {
        let plan = match self.on.iter().any(is_never_true) {
            true => no_rows(self.right.plan.column_types()),
            false => push_into(self.right.plan, Vec::new()),
        };
        TailJoin { right: JoinUnit { plan, ..self.right }, ..self }
    }
}

/// Estimated result sizes of a join.
#[derive(Clone, Copy)]
pub(super) struct JoinSizes {
    /// All rows.
    pub rows: f64,
    /// Rows that the parent node reads; `None`: all.
    pub needed: Option<f64>,
}

impl JoinSizes {
    /// Returns the sizes after a join of the tail.
    pub(super) fn after(self, kind: JoinKind) -> JoinSizes {
        let part = part_of_tail(kind);
        let needed = self.needed.map(|needed| needed * part);
        JoinSizes { rows: (self.rows * part).max(1.0), needed }
    }
}

/// Returns the assumed selectivity of a tail join on the left rows.
pub(super) fn part_of_tail(kind: JoinKind) -> f64 {
    if kind == JoinKind::Left { 1.0 } else { SEMI_JOIN }
}

/// Executes a semi or anti join on the only unit whose columns it uses, if it drops many rows or
/// there are no other units. Otherwise returns it.
pub(super) fn apply_early(
    tail: TailJoin,
    parts: &mut [JoinPart],
    owners: &[ColumnOwner],
    chooser: JoinPlanner<'_>,
) -> Option<TailJoin> {
    let estimator = chooser.estimator;
    if !matches!(tail.kind, JoinKind::Semi | JoinKind::Anti) {
        return Some(tail);
    }
    let mut used = Columns::new();
    tail.on.iter().for_each(|conjunct| add_columns(conjunct, &mut used));
    used.retain(|column| !tail.right.columns.contains(column));
    let mut units = used.iter().map(|&column| owners[column]);
    let Some(ColumnOwner::Unit(unit)) = units.next() else { return Some(tail) };
    if units.any(|other| other != ColumnOwner::Unit(unit)) {
        return Some(tail);
    }
    let part = &mut parts[unit];
    let empty = Logical::Values { types: Vec::new(), rows: Vec::new() };
    let left =
        JoinPart { plan: std::mem::replace(&mut part.plan, empty), columns: part.columns.clone() };
    let before = estimator.rows(&left.plan);
    let right =
        JoinPart { plan: tail.right.plan.clone(), columns: tail.right.columns.clone().collect() };
    let joined = left.joined(tail.kind, right, tail.on.clone(), JoinDecision::default());
    let alone = parts.len() == 1;
    let rows = estimator.rows(&joined.plan);
    let JoinPart { plan: Logical::Join(mut join), columns } = joined else {
        unreachable!("it was joined above")
    };
    if alone || rows <= before * EARLY_SEMI_JOIN {
        let left = JoinSizes { rows: before, needed: None };
        join.choice = tail_choice(&tail, left, rows, chooser);
        parts[unit] = JoinPart { plan: Logical::Join(join), columns };
        return None;
    }
    parts[unit].plan = *join.left;
    Some(tail)
}

/// Adds a join of the tail.
pub(super) fn with_tail(
    left: JoinPart,
    tail: TailJoin,
    sizes: &mut JoinSizes,
    chooser: JoinPlanner<'_>,
) -> JoinPart {
    let before = std::mem::replace(sizes, sizes.after(tail.kind));
    if is_empty(&tail.right.plan) {
        let plan = padded(&[], left.plan, &tail.right.plan.column_types());
        return JoinPart {
            plan,
            columns: left.columns.into_iter().chain(tail.right.columns).collect(),
        };
    }
    let choice = tail_choice(&tail, before, sizes.rows, chooser);
    let is_larger = chooser.estimator.rows(&tail.right.plan) > before.rows;
    let right = JoinPart { plan: tail.right.plan, columns: tail.right.columns.collect() };
    match tail.kind {
        // The smaller side becomes the build side.
        JoinKind::Left if is_larger && choice.lookup.is_none() && before.needed.is_none() => {
            right.joined(JoinKind::Right, left, tail.on, choice)
        }
        kind => left.joined(kind, right, tail.on, choice),
    }
}

/// Returns the best method for a join of the tail. `left`: sizes of the left rows.
pub(super) fn tail_choice(
    tail: &TailJoin,
    left: JoinSizes,
    rows: f64,
    chooser: JoinPlanner<'_>,
) -> JoinDecision {
    let estimator = chooser.estimator;
    let right_rows = estimator.rows(&tail.right.plan);
    let kept = match (tail.kind, left.needed) {
        (JoinKind::Left, None) => left.rows.min(right_rows),
        _ => right_rows,
    };
    let left_rows_for_each = left.rows / rows;
    let needed = left.needed.unwrap_or(left.rows);
    let yielded = needed / left_rows_for_each;
    let pairs = match tail.on.iter().any(hashable) {
        true => cost::hash_join(needed, kept, yielded),
        false => cost::loop_join(needed, kept, yielded),
    };
    let whole = read_cost(&tail.right.plan, estimator) + pairs;
    let lookup = tail_lookup(tail, estimator)
        .filter(|lookup| cost::lookup_join(needed, *lookup, yielded) < whole)
        .map(|_| chooser.new_parameters(tail.on.len()));
    let merge = kept >= cost::MANY_KEPT && left.needed.is_none();
    let left_rows_for_each = Some(left_rows_for_each);
    JoinDecision { rows: Some(rows), left_rows_per_row: left_rows_for_each, lookup, merge }
}

/// Returns the cost of looking up the right rows of one left row; `None` if that is not possible.
pub(super) fn tail_lookup(tail: &TailJoin, estimator: Estimator<'_>) -> Option<f64> {
    let table = filtered_table(&tail.right.plan)?;
    let right = &tail.right.columns;
    let is_inner = |side: &Expr| within(side, right.clone());
    let is_outer = |side: &Expr| !columns_of(side).iter().any(|column| right.contains(column));
    let key = |conjunct: &Expr| {
        let found = lookup_sides(conjunct, &is_inner, &is_outer)?;
        let inner = renumber(found.inner.clone(), &|index| index - right.start);
        Some(LookupKey { inner, op: found.op, data_type: found.outer.data_type().clone() })
    };
    let keys: Vec<LookupKey> = tail.on.iter().filter_map(key).collect();
    table.key_path(&keys, estimator).map(|path| path.cost)
}
