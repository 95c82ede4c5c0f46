//! Rule: conditions move down to where their columns come from.
//!
//! Conjuncts are carried down through projections (their expressions put in), joins (to the side
//! whose columns they use), groups (those over keys), sorts and unions, and stop above what they
//! cannot pass: limits, the outer side that a join pads with NULLs, the column a subquery adds.
//! Conditions that call volatile functions stay where they are.

use types::expr::Expr;

use crate::logical::{Apply, Join, JoinKind, Logical};
use crate::planner::conjunct::{
    all, as_column, boolean, columns_of, is_volatile, renumber, split, substitute, within,
};
use crate::planner::semi_join;
use crate::planner::shape::width_of;

/// Returns the plan with every condition as far down as it goes.
pub(super) fn push_down(plan: Logical) -> Logical {
    push(plan, Vec::new())
}

fn filter(input: Logical, conjuncts: Vec<Expr>) -> Logical {
    match all(conjuncts) {
        None => input,
        Some(predicate) => Logical::Filter { input: Box::new(input), predicate },
    }
}

fn boxed(plan: Logical, conjuncts: Vec<Expr>) -> Box<Logical> {
    Box::new(push(plan, conjuncts))
}

/// Returns `plan` with `conjuncts`, which are over its columns, applied to it.
fn push(plan: Logical, mut conjuncts: Vec<Expr>) -> Logical {
    match plan {
        Logical::Scan(_) | Logical::SystemRows(_) | Logical::Values { .. } => {
            filter(plan, conjuncts)
        }
        Logical::Filter { input, predicate } => {
            let mut own = Vec::new();
            split(predicate, &mut own);
            let (stay, mut go): (Vec<Expr>, Vec<Expr>) = own.into_iter().partition(is_volatile);
            if stay.is_empty() {
                go.append(&mut conjuncts);
                return push(*input, go);
            }
            let stay = stay.into_iter().chain(conjuncts).collect();
            filter(push(*input, go), stay)
        }
        Logical::Project { input, expressions } => push_project(*input, expressions, conjuncts),
        Logical::Join(join) => push_join(join, conjuncts),
        Logical::Apply(apply) => push_apply(apply, conjuncts),
        Logical::Aggregate { input, group_by, aggregates } => {
            let keys = group_by.len();
            let (go, stay): (Vec<Expr>, Vec<Expr>) =
                conjuncts.into_iter().partition(|conjunct| keys > 0 && within(conjunct, 0..keys));
            let go = go.into_iter().map(|conjunct| substitute(conjunct, &group_by)).collect();
            let input = boxed(*input, go);
            filter(Logical::Aggregate { input, group_by, aggregates }, stay)
        }
        Logical::Sort { input, keys } => Logical::Sort { input: boxed(*input, conjuncts), keys },
        Logical::Limit { input, limit, offset } => {
            let input = boxed(*input, Vec::new());
            filter(Logical::Limit { input, limit, offset }, conjuncts)
        }
        Logical::Distinct { input } => Logical::Distinct { input: boxed(*input, conjuncts) },
        Logical::Append { inputs } => Logical::Append {
            inputs: inputs.into_iter().map(|input| push(input, conjuncts.clone())).collect(),
        },
    }
}

fn push_project(input: Logical, expressions: Vec<Expr>, conjuncts: Vec<Expr>) -> Logical {
    let volatile: Vec<usize> = expressions
        .iter()
        .enumerate()
        .filter(|(_, expression)| is_volatile(expression))
        .map(|(position, _)| position)
        .collect();
    let (stay, go): (Vec<Expr>, Vec<Expr>) = conjuncts
        .into_iter()
        .partition(|conjunct| columns_of(conjunct).iter().any(|column| volatile.contains(column)));
    let go = go.into_iter().map(|conjunct| substitute(conjunct, &expressions)).collect();
    let input = Box::new(push(input, go));
    filter(Logical::Project { input, expressions }, stay)
}

fn push_join(join: Join, conjuncts: Vec<Expr>) -> Logical {
    let left_width = width_of(&join.left);
    let width = left_width + width_of(&join.right);
    let kind = join.kind;
    let mut on = Vec::new();
    split(join.on, &mut on);
    let (mut left, mut right, mut stay) = (Vec::new(), Vec::new(), Vec::new());
    let to_right = |conjunct: Expr| renumber(conjunct, &|index| index - left_width);
    let is_left = |conjunct: &Expr| within(conjunct, 0..left_width);
    let is_right = |conjunct: &Expr| within(conjunct, left_width..width);

    // Conditions above the join: they may go to a side that the join does not pad with NULLs.
    let (above_left, above_right) = match kind {
        JoinKind::Inner => (true, true),
        JoinKind::Left | JoinKind::Semi | JoinKind::Anti => (true, false),
        JoinKind::Right => (false, true),
        JoinKind::Full => (false, false),
    };
    for conjunct in conjuncts {
        if above_left && is_left(&conjunct) {
            left.push(conjunct);
        } else if above_right && is_right(&conjunct) {
            right.push(to_right(conjunct));
        } else if kind == JoinKind::Inner {
            on.push(conjunct);
        } else {
            stay.push(conjunct);
        }
    }
    // Conditions of the join: they may go to a side whose rows without a match are dropped.
    let (on_left, on_right) = match kind {
        JoinKind::Inner | JoinKind::Semi => (true, true),
        JoinKind::Left | JoinKind::Anti => (false, true),
        JoinKind::Right => (true, false),
        JoinKind::Full => (false, false),
    };
    let mut kept = Vec::new();
    for conjunct in on {
        if is_volatile(&conjunct) {
            kept.push(conjunct);
        } else if on_left && is_left(&conjunct) {
            left.push(conjunct);
        } else if on_right && is_right(&conjunct) {
            right.push(to_right(conjunct));
        } else {
            kept.push(conjunct);
        }
    }
    let on = all(kept).unwrap_or_else(|| boolean(true));
    let join = Join { kind, left: boxed(*join.left, left), right: boxed(*join.right, right), on };
    filter(Logical::Join(join), stay)
}

/// Conditions on the input's columns pass an apply. One that is the added column itself, or its
/// negation, may turn the apply into a semi or anti join.
fn push_apply(apply: Apply, conjuncts: Vec<Expr>) -> Logical {
    let width = width_of(&apply.input);
    let (go, mut stay): (Vec<Expr>, Vec<Expr>) =
        conjuncts.into_iter().partition(|conjunct| within(conjunct, 0..width));
    let wanted = stay.iter().enumerate().find_map(|(position, conjunct)| match conjunct {
        conjunct if as_column(conjunct) == Some(width) => Some((position, true)),
        Expr::Not(operand) if as_column(operand) == Some(width) => Some((position, false)),
        _ => None,
    });
    if let Some((position, wanted)) = wanted
        && let Some(join) = semi_join::from_apply(&apply, wanted)
    {
        stay.remove(position);
        return filter(push(join, go), stay);
    }
    let input = boxed(*apply.input, go);
    let subquery = boxed(*apply.subquery, Vec::new());
    filter(Logical::Apply(Apply { input, subquery, ..apply }), stay)
}
