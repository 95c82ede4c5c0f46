//! What holds in every alternative of an OR.
//!
//! `(a AND x) OR (a AND y)` is `a AND (x OR y)`, NULLs included, and `a OR (a AND x)` is `a`. So a
//! condition that joins can stand outside of the alternatives. Where alternatives say something of
//! several units of a join each, what they say of one unit narrows it before the join.

use types::expr::Expr;

use crate::planner::conjunct::{all, is_volatile, split};

/// Alternatives above which an OR is left as it is.
const ALTERNATIVES_MAX: usize = 64;

/// Returns the conjuncts that all of the alternatives have, and what is left of the OR; `None` if
/// they have none in common.
pub(super) fn in_common(alternatives: &[Expr]) -> Option<(Vec<Expr>, Option<Expr>)> {
    let volatile = alternatives.iter().any(is_volatile);
    let is_conjunction = alternatives.iter().any(|one| matches!(one, Expr::And(_)));
    if volatile || !is_conjunction || alternatives.len() > ALTERNATIVES_MAX {
        return None;
    }
    let mut arms = conjuncts_of_each(alternatives);
    let mut common = arms.first()?.clone();
    common.retain(|conjunct| arms.iter().all(|arm| arm.contains(conjunct)));
    if common.is_empty() {
        return None;
    }
    arms.iter_mut().for_each(|arm| arm.retain(|conjunct| !common.contains(conjunct)));
    let rest: Option<Vec<Expr>> = arms.into_iter().map(all).collect();
    Some((common, rest.map(Expr::Or)))
}

/// Returns what an OR says by itself of the columns that `is_own` knows; `None` if some alternative
/// says nothing of them, or if it is over these columns alone.
pub(super) fn said_of(conjunct: &Expr, is_own: &dyn Fn(&Expr) -> bool) -> Option<Expr> {
    let Expr::Or(alternatives) = conjunct else { return None };
    if alternatives.len() > ALTERNATIVES_MAX || is_own(conjunct) {
        return None;
    }
    let own = |arm: Vec<Expr>| all(arm.into_iter().filter(|one| is_own(one)).collect());
    let arms: Option<Vec<Expr>> = conjuncts_of_each(alternatives).into_iter().map(own).collect();
    arms.map(Expr::Or)
}

/// Knows which part of the rows of a unit a condition is true for, if it is over that unit alone.
pub(super) type PartOfUnit<'a> = &'a dyn Fn(&Expr, usize) -> Option<f64>;

/// Returns about which part of the pairs of some units' rows a condition is true for: of those rows
/// that are left after what it says of each unit by itself ([`said_of`]). `blind` guesses where a
/// part of the condition is over several units.
pub(super) fn part_of_pairs(
    condition: &Expr,
    units: &[usize],
    part_of: PartOfUnit<'_>,
    blind: &dyn Fn(&Expr) -> f64,
) -> f64 {
    let of_all = part_of_all_pairs(condition, units, part_of, blind);
    let left = units.iter().filter_map(|&unit| {
        let said = said_of(condition, &|part| part_of(part, unit).is_some())?;
        part_of(&said, unit)
    });
    (of_all / left.product::<f64>().max(f64::MIN_POSITIVE)).min(1.0)
}

fn part_of_all_pairs(
    condition: &Expr,
    units: &[usize],
    part_of: PartOfUnit<'_>,
    blind: &dyn Fn(&Expr) -> f64,
) -> f64 {
    let of = |operand: &Expr| part_of_all_pairs(operand, units, part_of, blind);
    match condition {
        Expr::And(operands) => operands.iter().map(of).product(),
        Expr::Or(operands) => 1.0 - operands.iter().map(|one| 1.0 - of(one)).product::<f64>(),
        leaf => units.iter().find_map(|&unit| part_of(leaf, unit)).unwrap_or_else(|| blind(leaf)),
    }
}

fn conjuncts_of_each(alternatives: &[Expr]) -> Vec<Vec<Expr>> {
    let conjuncts = |alternative: &Expr| {
        let mut conjuncts = Vec::new();
        split(alternative.clone(), &mut conjuncts);
        conjuncts
    };
    alternatives.iter().map(conjuncts).collect()
}
