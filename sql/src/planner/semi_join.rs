//! Rule: `WHERE [NOT] EXISTS (…)` and `WHERE … [NOT] IN (…)` become semi and anti joins.
//!
//! The subquery's conditions on outer columns become the join condition. The rule does not apply
//! where it would change the result: if outer columns are used outside of WHERE, if the subquery
//! limits or groups its rows, and for NOT IN unless neither side can be NULL. Nor does it apply
//! without an equality for hashing.
//!
//! `EXISTS (… WHERE a = x OR b = y)` has no equality for hashing, but is `EXISTS (… WHERE a = x)
//! OR EXISTS (… WHERE b = y)` ([`by_alternatives`]), each of which may become a join.
//!
//! The apply's column is replaced by a constant, since it has the required value in every
//! remaining row; [`prune`](super::prune) removes it if it is not read.

use types::DataType;
use types::expr::Expr;

use crate::logical::{Apply, ApplyKind, Join, JoinDecision, JoinKind, Logical};
use crate::planner::conjunct::{
    Columns, all, as_operator, boolean, column, is_free, is_volatile, renumber, split, substitute,
    uses_parameters, within,
};
use crate::planner::plan_properties::{is_never_null, width_of};

/// Maximum number of alternatives of an EXISTS that each become an apply.
const ALTERNATIVES_MAX: usize = 8;

/// Returns the join that replaces the apply under the condition that its column is `wanted`. It
/// takes over the apply's input.
pub(super) fn from_apply(apply: &mut Apply, wanted: bool) -> Option<Logical> {
    if apply.guard.is_some() {
        return None;
    }
    let comparison = match &apply.kind {
        ApplyKind::Exists if apply.bindings.is_empty() => return None,
        ApplyKind::Exists => None,
        ApplyKind::Any { comparison } => Some(comparison),
        ApplyKind::Scalar
        | ApplyKind::Array { .. }
        | ApplyKind::All { .. }
        | ApplyKind::Rows { .. } => return None,
    };
    let left_types = apply.input.column_types();
    let left_width = left_types.len();
    if let Some(comparison) = comparison
        && !wanted
        && !comparison_is_never_null(comparison, apply, left_width)
    {
        return None;
    }
    let outer: Columns = apply.bindings.iter().map(|(parameter, _)| *parameter).collect();
    let UncorrelatedSubquery { plan, output, correlated } =
        extract_correlated(&apply.subquery, &outer)?;
    let mut on: Vec<Expr> = Vec::new();
    for conjunct in correlated {
        on.push(bind(shift(conjunct, left_width), apply, &left_types));
    }
    if let Some(comparison) = comparison {
        let mut by: Vec<Expr> =
            left_types.iter().enumerate().map(|(index, t)| column(index, t)).collect();
        by.extend(output.into_iter().map(|e| bind(shift(e, left_width), apply, &left_types)));
        split(substitute(comparison.clone(), &by), &mut on);
    }
    let width = left_width + width_of(&plan);
    if on.iter().any(is_volatile) {
        return None;
    }
    if !on.iter().any(|conjunct| is_hash_key(conjunct, left_width, width)) {
        return None;
    }
    let join = Join {
        kind: if wanted { JoinKind::Semi } else { JoinKind::Anti },
        left: take_input(apply),
        right: Box::new(plan),
        on: all(on).unwrap_or_else(|| boolean(true)),
        choice: JoinDecision::default(),
    };
    let mut output: Vec<Expr> =
        left_types.iter().enumerate().map(|(index, t)| column(index, t)).collect();
    output.push(boolean(wanted));
    Some(Logical::Project { input: Box::new(Logical::Join(join)), expressions: output })
}

/// An EXISTS split by the alternatives of its condition.
pub(super) struct SplitExists {
    /// Plan that adds the value of each alternative.
    pub plan: Logical,
    /// Columns of the original apply, over the plan's.
    pub columns: Vec<Expr>,
}

/// Returns an EXISTS whose condition on outer columns is a disjunction as nested applies, one for
/// each alternative. `None` if an alternative has no equality between inner and outer columns, or
/// if another condition has one.
pub(super) fn by_alternatives(apply: &mut Apply) -> Option<SplitExists> {
    let is_plain = apply.guard.is_none() && matches!(apply.kind, ApplyKind::Exists);
    if !is_plain || apply.bindings.is_empty() || !may_be_repeated(&apply.subquery) {
        return None;
    }
    let outer: Columns = apply.bindings.iter().map(|(parameter, _)| *parameter).collect();
    let UncorrelatedSubquery { plan, correlated, .. } =
        extract_correlated(&apply.subquery, &outer)?;
    let is_key = |conjunct: &Expr| is_key_of_alternative(conjunct, &outer);
    if correlated.iter().any(is_key) {
        return None;
    }
    let has_key = |alternative: &Expr| {
        let mut conjuncts = Vec::new();
        split(alternative.clone(), &mut conjuncts);
        conjuncts.iter().any(is_key)
    };
    let position = correlated.iter().position(|conjunct| match conjunct {
        Expr::Or(operands) => operands.len() <= ALTERNATIVES_MAX && operands.iter().all(has_key),
        _ => false,
    })?;
    let Expr::Or(alternatives) = &correlated[position] else { return None };
    let width = width_of(&apply.input);
    let mut input = take_input(apply);
    for alternative in alternatives {
        let mut conjuncts = correlated.clone();
        conjuncts[position] = alternative.clone();
        let predicate = all(conjuncts).unwrap_or_else(|| boolean(true));
        let subquery = Box::new(Logical::Filter { input: Box::new(plan.clone()), predicate });
        let (bindings, kind) = (apply.bindings.clone(), ApplyKind::Exists);
        let exists = Apply { input, subquery, bindings, kind, guard: None, groups: None };
        input = Box::new(Logical::Apply(exists));
    }
    let values = (0..alternatives.len()).map(|at| column(width + at, DataType::Bool)).collect();
    let types = input.column_types().into_iter().take(width).enumerate();
    let columns = types.map(|(index, data_type)| column(index, data_type));
    let columns = columns.chain([Expr::Or(values)]).collect();
    Some(SplitExists { plan: *input, columns })
}

/// Returns whether a plan may be duplicated.
fn may_be_repeated(plan: &Logical) -> bool {
    let mut is_named = false;
    plan.walk(&mut |step| {
        is_named |= matches!(step, Logical::With(_) | Logical::RecursiveUnion(_));
    });
    !is_named && !plan.has_effects()
}

/// Returns whether a condition is an equality of inner columns and outer parameters.
fn is_key_of_alternative(conjunct: &Expr, outer: &Columns) -> bool {
    let Some(("=", a, b)) = as_operator(conjunct) else { return false };
    let sides = |inner: &Expr, value: &Expr| {
        !uses_parameters(inner, outer) && !is_free(inner) && is_free(value)
    };
    sides(a, b) || sides(b, a)
}

/// Takes the input out of an apply, for its replacement: it may be large.
pub(super) fn take_input(apply: &mut Apply) -> Box<Logical> {
    let nothing = Box::new(Logical::Append { inputs: Vec::new() });
    std::mem::replace(&mut apply.input, nothing)
}

/// A subquery without its conditions on outer columns.
pub(super) struct UncorrelatedSubquery {
    /// Remaining plan.
    pub plan: Logical,
    /// Columns of the subquery, over the plan's.
    pub output: Vec<Expr>,
    /// Conditions over the plan's columns and the outer parameters.
    pub correlated: Vec<Expr>,
}

/// Extracts the conditions on outer parameters from a subquery; `None` if these are used
/// elsewhere.
pub(super) fn extract_correlated(
    subquery: &Logical,
    outer: &Columns,
) -> Option<UncorrelatedSubquery> {
    match subquery {
        // Volatile expressions are evaluated for each row, not only for matching ones.
        Logical::Project { input, expressions } if !expressions.iter().any(is_volatile) => {
            let inner = extract_correlated(input, outer)?;
            let output: Vec<Expr> =
                expressions.iter().map(|e| substitute(e.clone(), &inner.output)).collect();
            Some(UncorrelatedSubquery { output, ..inner })
        }
        Logical::Filter { input, predicate } if !is_volatile(predicate) => {
            let mut inner = extract_correlated(input, outer)?;
            let mut conjuncts = Vec::new();
            split(substitute(predicate.clone(), &inner.output), &mut conjuncts);
            let (correlated, plain): (Vec<Expr>, Vec<Expr>) =
                conjuncts.into_iter().partition(|conjunct| uses_parameters(conjunct, outer));
            inner.correlated.extend(correlated);
            if let Some(predicate) = all(plain) {
                inner.plan = Logical::Filter { input: Box::new(inner.plan), predicate };
            }
            Some(inner)
        }
        Logical::Join(join) if join.kind == JoinKind::Inner => {
            let (left, right) =
                (extract_correlated(&join.left, outer)?, extract_correlated(&join.right, outer)?);
            let width = width_of(&left.plan);
            let shifted = |e: Vec<Expr>| e.into_iter().map(|e| shift(e, width)).collect::<Vec<_>>();
            let mut inner = UncorrelatedSubquery {
                plan: left.plan,
                output: left.output,
                correlated: left.correlated,
            };
            inner.output.extend(shifted(right.output));
            inner.correlated.extend(shifted(right.correlated));
            let mut conjuncts = Vec::new();
            split(substitute(join.on.clone(), &inner.output), &mut conjuncts);
            let (correlated, plain): (Vec<Expr>, Vec<Expr>) =
                conjuncts.into_iter().partition(|conjunct| uses_parameters(conjunct, outer));
            inner.correlated.extend(correlated);
            let (left, right) = (Box::new(inner.plan), Box::new(right.plan));
            let on = all(plain).unwrap_or_else(|| boolean(true));
            inner.plan = Logical::Join(Join { left, right, on, ..*join });
            Some(inner)
        }
        Logical::Values { rows, types } if rows.len() == 1 && !types.is_empty() => {
            let output = rows[0].clone();
            if output.iter().any(is_volatile) {
                return None;
            }
            let plan = Logical::Values { types: Vec::new(), rows: vec![Vec::new()] };
            Some(UncorrelatedSubquery { plan, output, correlated: Vec::new() })
        }
        // EXISTS and IN do not depend on the order.
        Logical::Sort { input, .. } => extract_correlated(input, outer),
        plan => {
            let mut correlated = false;
            plan.for_each_expression(&mut |e| correlated |= uses_parameters(e, outer));
            let output =
                plan.column_types().iter().enumerate().map(|(i, t)| column(i, t)).collect();
            (!correlated).then(|| UncorrelatedSubquery {
                plan: plan.clone(),
                output,
                correlated: Vec::new(),
            })
        }
    }
}

/// Shifts the columns of an expression to the right.
pub(super) fn shift(expression: Expr, by: usize) -> Expr {
    renumber(expression, &|index| index + by)
}

/// Replaces outer parameters by the outer columns.
pub(super) fn bind(expression: Expr, apply: &Apply, left_types: &[DataType]) -> Expr {
    expression.transform(&mut |part| match part {
        Expr::Parameter { index, data_type } => {
            match apply.bindings.iter().find(|(parameter, _)| *parameter == index) {
                Some(&(_, input)) => column(input, &left_types[input]),
                None => Expr::Parameter { index, data_type },
            }
        }
        part => part,
    })
}

/// Returns whether a comparison `operand = column` can never be NULL.
fn comparison_is_never_null(comparison: &Expr, apply: &Apply, left_width: usize) -> bool {
    let Some(("=", left, right)) = as_operator(comparison) else { return false };
    let never_null = |side: &Expr| {
        if within(side, 0..left_width) {
            is_never_null(side, &apply.input)
        } else if within(side, left_width..usize::MAX) {
            let side = renumber(side.clone(), &|index| index - left_width);
            is_never_null(&side, &apply.subquery)
        } else {
            false
        }
    };
    never_null(left) && never_null(right)
}

/// Returns whether a join condition is an equality between the sides.
fn is_hash_key(conjunct: &Expr, left_width: usize, width: usize) -> bool {
    let Some(("=", a, b)) = as_operator(conjunct) else { return false };
    let sides = |a: &Expr, b: &Expr| within(a, 0..left_width) && within(b, left_width..width);
    sides(a, b) || sides(b, a)
}
