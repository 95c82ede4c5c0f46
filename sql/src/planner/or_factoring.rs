//! Factoring of OR: conditions that all alternatives imply.
//!
//! `(a AND x) OR (a AND y)` is `a AND (x OR y)`, including NULLs, and `a OR (a AND x)` is `a`. So
//! a join condition can be factored out of the alternatives. If each alternative restricts
//! several units of a join, the restrictions of one unit filter it before the join.

use types::expr::Expr;

use crate::planner::conjunct::{all, is_volatile, split};

/// Maximum number of alternatives of an OR that is factored.
const ALTERNATIVES_MAX: usize = 64;

/// Returns the conjuncts that all alternatives have in common, and the rest of the OR; `None` if
/// they have none in common.
pub(super) fn factor_common(alternatives: &[Expr]) -> Option<(Vec<Expr>, Option<Expr>)> {
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

/// Returns the restriction that an OR implies for the columns of `is_own`; `None` if an
/// alternative does not restrict them, or if the OR only uses these columns.
pub(super) fn restriction_on(conjunct: &Expr, is_own: &dyn Fn(&Expr) -> bool) -> Option<Expr> {
    let Expr::Or(alternatives) = conjunct else { return None };
    if alternatives.len() > ALTERNATIVES_MAX || is_own(conjunct) {
        return None;
    }
    let own = |arm: Vec<Expr>| all(arm.into_iter().filter(|one| is_own(one)).collect());
    let arms: Option<Vec<Expr>> = conjuncts_of_each(alternatives).into_iter().map(own).collect();
    arms.map(Expr::Or)
}

/// Returns the selectivity of a condition for a unit's rows, if it only uses that unit.
pub(super) type PartOfUnit<'a> = &'a dyn Fn(&Expr, usize) -> Option<f64>;

/// Estimates the selectivity of a condition over pairs of rows of several units, after its
/// restrictions of single units ([`restriction_on`]). `blind` estimates parts of the condition over
/// several units.
pub(super) fn pair_selectivity(
    condition: &Expr,
    units: &[usize],
    part_of: PartOfUnit<'_>,
    blind: &dyn Fn(&Expr) -> f64,
) -> f64 {
    let of_all = part_of_all_pairs(condition, units, part_of, blind);
    let left = units.iter().filter_map(|&unit| {
        let said = restriction_on(condition, &|part| part_of(part, unit).is_some())?;
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
