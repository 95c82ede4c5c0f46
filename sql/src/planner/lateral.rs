//! Rule: LATERAL becomes a plain step where the rows need not be computed for each row apart.
//!
//! ```text
//! t, LATERAL (SELECT … FROM u WHERE u.k = t.k)   t JOIN u ON u.k = t.k
//! t, unnest(t.a)                                 functions called for the rows of t
//! ```
//!
//! A subquery may use the columns before it in its conditions and, of an inner join, in its select
//! list. One that groups, limits or sorts out duplicates is left as it is.

use types::expr::Expr;
use types::{DataType, Datum};

use crate::logical::{
    Apply, ApplyKind, Join, JoinChoice, JoinKind, Logical, ProjectSet, SetFunction,
};
use crate::planner::conjunct::{
    Columns, all, as_column, boolean, column, is_volatile, split, substitute, uses_parameters,
};
use crate::planner::semi_join::{Inner, bind, pull_up, shift, take_input};
use crate::planner::shape::is_unit;

/// Returns the plan that stands for an apply that yields rows, if there is a simpler one. It has
/// the apply's input, which the apply is without then.
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
    let inner = pull_up(&apply.subquery, &parameters)?;
    let own = |output: &Expr| as_column(output).is_some() && !uses_parameters(output, &parameters);
    if outer && !inner.output.iter().all(own) {
        return None;
    }
    Some(join(apply, inner, (&on, outer), &types))
}

fn join(
    apply: &mut Apply,
    inner: Inner,
    (on, outer): (&Expr, bool),
    types: &[DataType],
) -> Logical {
    let width = types.len();
    let over_both = |expression: Expr| bind(shift(expression, width), apply, types);
    let mut output: Vec<Expr> =
        types.iter().enumerate().map(|(index, &data_type)| column(index, data_type)).collect();
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
            choice: JoinChoice::default(),
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
