//! Rule: LATERAL becomes a join, a ProjectSet or a projection, where rows need not be computed
//! per outer row.
//!
//! ```text
//! t, LATERAL (SELECT … FROM u WHERE u.k = t.k)   t JOIN u ON u.k = t.k
//! t, unnest(t.a)                                 functions called for the rows of t
//! t, LATERAL (VALUES (t.k + 1))                  a projection
//! t, LATERAL (s JOIN u ON …)                     (t, LATERAL s) JOIN u ON …
//! ```
//!
//! A subquery may use outer columns in its conditions and, for an inner join, in its select list.
//! A subquery with grouping, LIMIT or DISTINCT is not changed.

use types::expr::Expr;
use types::{DataType, Datum};

use crate::logical::{
    Apply, ApplyKind, Join, JoinDecision, JoinKind, Logical, ProjectSet, SetFunction,
};
use crate::planner::conjunct::{
    Columns, all, as_column, boolean, column, is_volatile, renumber, split, substitute,
    uses_parameters,
};
use crate::planner::plan_properties::{is_unit, width_of};
use crate::planner::semi_join::{
    UncorrelatedSubquery, bind, extract_correlated, shift, take_input,
};

/// Returns the replacement of an apply of kind rows, if there is one. It takes over the apply's
/// input.
pub(super) fn joined(apply: &mut Apply) -> Option<Logical> {
    let ApplyKind::Rows { on, outer } = apply.kind.clone() else { return None };
    let types = apply.input.column_types();
    if let Logical::ProjectSet(sets) = apply.subquery.as_ref()
        && is_unit(&sets.input)
        && (!outer || is_true(&on))
    {
        let sets = sets.clone();
        return Some(filtered(called(apply, &sets, outer, &types), vec![on]));
    }
    let mut volatile = false;
    apply.subquery.for_each_expression(&mut |expression| volatile |= is_volatile(expression));
    if volatile {
        return None;
    }
    let parameters: Columns = apply.bindings.iter().map(|(parameter, _)| *parameter).collect();
    let Some(inner) = extract_correlated(&apply.subquery, &parameters) else {
        return if outer { None } else { reassociated(apply, on, &parameters, &types) };
    };
    // A subquery that yields exactly one row does not need OUTER.
    let outer = outer && !(is_unit(&inner.plan) && inner.correlated.is_empty() && is_true(&on));
    let own = |output: &Expr| as_column(output).is_some() && !uses_parameters(output, &parameters);
    if outer && !inner.output.iter().all(own) {
        return None;
    }
    Some(join(apply, inner, (&on, outer), &types))
}

/// Reassociates a join in the subquery of which one side is uncorrelated: `a, LATERAL (s JOIN b)`
/// is `(a, LATERAL s) JOIN b`.
fn reassociated(
    apply: &mut Apply,
    on: Expr,
    parameters: &Columns,
    types: &[DataType],
) -> Option<Logical> {
    let mut conjuncts = Vec::new();
    let (inner, outputs) = join_below(&apply.subquery, &mut conjuncts)?;
    let takes = |plan: &Logical| {
        let mut takes = false;
        plan.for_each_expression(&mut |e| takes |= uses_parameters(e, parameters));
        takes
    };
    let is_left = match (takes(&inner.left), takes(&inner.right)) {
        (true, false) => true,
        (false, true) => false,
        _ => return None,
    };
    let (width, left_width) = (types.len(), width_of(&inner.left));
    let right_width = width_of(&inner.right);
    // Column order: the input, the correlated side, the other side.
    let place = |index: usize| match (is_left, index < left_width) {
        (true, _) => width + index,
        (false, true) => width + right_width + index,
        (false, false) => width + index - left_width,
    };
    let over_all = |expression: Expr| bind(renumber(expression, &place), apply, types);
    let mut output: Vec<Expr> =
        types.iter().enumerate().map(|(index, data_type)| column(index, data_type)).collect();
    output.extend(outputs.into_iter().map(over_all));
    let mut matches: Vec<Expr> = conjuncts.into_iter().map(over_all).collect();
    split(substitute(on, &output), &mut matches);
    let (taking, other) = match is_left {
        true => (inner.left.clone(), inner.right.clone()),
        false => (inner.right.clone(), inner.left.clone()),
    };
    let beside = Logical::Apply(Apply {
        input: take_input(apply),
        subquery: taking,
        bindings: apply.bindings.clone(),
        kind: ApplyKind::Rows { on: boolean(true), outer: false },
        guard: None,
        groups: None,
    });
    let join = Logical::Join(Join {
        kind: JoinKind::Inner,
        left: Box::new(beside),
        right: other,
        on: all(matches).unwrap_or_else(|| boolean(true)),
        choice: JoinDecision::default(),
    });
    Some(Logical::Project { input: Box::new(join), expressions: output })
}

/// Returns the inner join that a query selects from, and its select list over that; appends its
/// conditions to `conjuncts`.
fn join_below<'p>(plan: &'p Logical, conjuncts: &mut Vec<Expr>) -> Option<(&'p Join, Vec<Expr>)> {
    match plan {
        Logical::Join(join) if join.kind == JoinKind::Inner => {
            split(join.on.clone(), conjuncts);
            let types = plan.column_types();
            let columns = types.iter().enumerate().map(|(index, t)| column(index, t));
            Some((join, columns.collect()))
        }
        Logical::Project { input, expressions } => {
            let (join, below) = join_below(input, conjuncts)?;
            let over = |expression: &Expr| substitute(expression.clone(), &below);
            Some((join, expressions.iter().map(over).collect()))
        }
        Logical::Filter { input, predicate } => {
            let (join, below) = join_below(input, conjuncts)?;
            split(substitute(predicate.clone(), &below), conjuncts);
            Some((join, below))
        }
        _ => None,
    }
}

fn join(
    apply: &mut Apply,
    inner: UncorrelatedSubquery,
    (on, outer): (&Expr, bool),
    types: &[DataType],
) -> Logical {
    let width = types.len();
    let over_both = |expression: Expr| bind(shift(expression, width), apply, types);
    let mut output: Vec<Expr> =
        types.iter().enumerate().map(|(index, data_type)| column(index, data_type)).collect();
    output.extend(inner.output.into_iter().map(over_both));
    let mut conjuncts: Vec<Expr> = inner.correlated.into_iter().map(over_both).collect();
    split(substitute(on.clone(), &output), &mut conjuncts);
    let input = match is_unit(&inner.plan) && !outer {
        true => filtered(*take_input(apply), conjuncts),
        false => Logical::Join(Join {
            kind: if outer { JoinKind::Left } else { JoinKind::Inner },
            left: take_input(apply),
            right: Box::new(inner.plan),
            on: all(conjuncts).unwrap_or_else(|| boolean(true)),
            choice: JoinDecision::default(),
        }),
    };
    Logical::Project { input: Box::new(input), expressions: output }
}

fn called(apply: &mut Apply, sets: &ProjectSet, outer: bool, types: &[DataType]) -> Logical {
    let mut functions = sets.functions.clone();
    for argument in functions.iter_mut().flat_map(SetFunction::arguments_mut) {
        *argument = bind(argument.clone(), apply, types);
    }
    let (input, ordinality) = (take_input(apply), sets.ordinality);
    Logical::ProjectSet(ProjectSet { input, functions, ordinality, outer, unread: Vec::new() })
}

fn filtered(input: Logical, conjuncts: Vec<Expr>) -> Logical {
    let conjuncts = conjuncts.into_iter().filter(|conjunct| !is_true(conjunct)).collect();
    match all(conjuncts) {
        None => input,
        Some(predicate) => Logical::Filter { input: Box::new(input), predicate },
    }
}

fn is_true(expression: &Expr) -> bool {
    matches!(expression, Expr::Constant { value: Datum::Bool(true), .. })
}
