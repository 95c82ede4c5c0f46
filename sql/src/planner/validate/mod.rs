//! Plan validation in debug builds: the column references, types and orders of a plan after each
//! rule.
//!
//! A rule that renumbers columns wrongly yields a plan whose execution reads another column of the
//! same type, which no later step detects. [`fn@logical`] and [`fn@physical`] therefore panic with
//! the name of the rule and an outline of the plan.
//!
//! # Invariants
//!
//! 1. A column reference is below the width of its input and has the type of the input's column.
//! 2. Predicates, join conditions, guards and operands of AND, OR and NOT are boolean; the operands
//!    of other expressions have the types that the expression states.
//! 3. A parameter that a node binds is used within the plan that the node executes, with the type
//!    of the bound column. All parameters are below the number of the statement's parameters.
//! 4. The inputs of a set operation and of an append have equal types, as do the query of a WITH
//!    and its scans.
//! 5. The inputs of a merge join, of a DISTINCT ON, of window functions, and of a join with a
//!    required order provide the order that the node relies on.
//!
//! 1 to 4 are checked for logical plans; 1, 2, 4 and 5 for physical plans.

mod expression;
mod logical;
mod physical;
mod sorted;

use types::DataType;

use crate::logical::Logical;
use crate::plan::Node;

/// Result of a check; the error describes the violation.
type Validation<T> = Result<T, String>;

/// Checks a logical plan in debug builds. `parameter_count`: the number of the statement's
/// parameters, including those that the planner added.
///
/// # Panics
///
/// If the rule that made the plan violates an invariant of the module header.
pub(super) fn logical(rule: &str, plan: &Logical, parameter_count: usize) {
    if cfg!(debug_assertions) {
        let violation = logical::check(plan, parameter_count).err();
        let outline = || {
            let mut outline = String::new();
            outline_logical(plan, 1, &mut outline);
            outline
        };
        assert!(
            violation.is_none(),
            "{rule} made an invalid plan: {}\n{}",
            violation.unwrap_or_default(),
            outline()
        );
    }
}

/// Checks a physical plan in debug builds. `types`: the types of the logical plan's columns.
///
/// # Panics
///
/// See [`fn@logical`].
pub(super) fn physical(rule: &str, plan: &Node, types: &[DataType]) {
    if cfg!(debug_assertions) {
        let checked = physical::check(plan).and_then(|own| same("output", &own, types));
        let outline = || {
            let mut outline = String::new();
            outline_physical(plan, 1, &mut outline);
            outline
        };
        let violation = checked.err();
        assert!(
            violation.is_none(),
            "{rule} made an invalid plan: {}\n{}",
            violation.unwrap_or_default(),
            outline()
        );
    }
}

/// Checks that two lists of column types are equal.
fn same(what: &str, found: &[DataType], required: &[DataType]) -> Validation<()> {
    match found == required {
        true => Ok(()),
        false => Err(format!("{what} has the types {found:?} instead of {required:?}")),
    }
}

/// Returns an error unless the condition holds.
fn require(condition: bool, violation: impl FnOnce() -> String) -> Validation<()> {
    if condition { Ok(()) } else { Err(violation()) }
}

/// Returns the name of an enum's variant.
fn variant(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.split(['(', ' ', '{']).next().unwrap_or_default().to_owned()
}

fn outline_logical(plan: &Logical, depth: usize, out: &mut String) {
    let mut expressions = Vec::new();
    plan.for_each_own_expression(&mut |one| {
        expressions.push(one.describe(&|index| format!("#{index}")));
    });
    let (pad, types) = ("  ".repeat(depth), plan.column_types());
    out.push_str(&format!("{pad}{} [{}] {types:?}\n", variant(plan), expressions.join(", ")));
    plan.inputs().into_iter().for_each(|input| outline_logical(input, depth + 1, out));
}

fn outline_physical(plan: &Node, depth: usize, out: &mut String) {
    let types = physical::check(plan).unwrap_or_default();
    out.push_str(&format!("{}{} {types:?}\n", "  ".repeat(depth), variant(plan)));
    plan.inputs().into_iter().for_each(|input| outline_physical(input, depth + 1, out));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use types::expr::Expr;
    use types::{DataType, Datum};

    use super::*;
    use crate::logical::{Apply, ApplyKind, JoinKind, SortKey};
    use crate::plan::{DistinctNode, KeyJoinNode, SortNode, ValuesNode};

    const INT: DataType = DataType::Int4;

    fn rows(types: &[DataType]) -> Logical {
        Logical::Values { types: types.to_vec(), rows: Vec::new() }
    }

    fn filter(input: Logical, predicate: Expr) -> Logical {
        Logical::Filter { input: Box::new(input), predicate }
    }

    fn is_null(operand: Expr) -> Expr {
        Expr::IsNull(Box::new(operand))
    }

    fn violation(plan: &Logical) -> String {
        logical::check(plan, 2).err().unwrap_or_default()
    }

    #[test]
    fn plan_columns_and_types_are_validated() {
        let of = |predicate| violation(&filter(rows(&[INT]), predicate));
        assert_eq!(of(is_null(Expr::column(0, INT))), "");
        assert_eq!(of(is_null(Expr::column(1, INT))), "column 1 of type Int4 over [Int4]");
        assert!(of(is_null(Expr::column(0, DataType::Text))).contains("column 0 of type Text"));
        assert!(of(Expr::column(0, INT)).contains("is Int4 instead of Bool"));
        assert!(of(Expr::And(vec![Expr::column(0, INT)])).contains("is Int4 instead of Bool"));
        let coalesce = Expr::Coalesce {
            operands: vec![Expr::constant(Datum::Int8(1), DataType::Int8)],
            data_type: DataType::Bool,
        };
        assert!(of(coalesce).contains("is Int8 instead of Bool"));
        let append = Logical::Append { inputs: vec![rows(&[INT]), rows(&[DataType::Int8])] };
        assert_eq!(violation(&append), "an input has the types [Int8] instead of [Int4]");
    }

    #[test]
    fn parameters_must_be_bound_where_used() {
        let uses = |index, data_type| is_null(Expr::Parameter { index, data_type });
        let apply = |input: Logical, subquery: Logical| {
            Logical::Apply(Apply {
                input: Box::new(input),
                subquery: Box::new(subquery),
                bindings: vec![(1, 0)],
                kind: ApplyKind::Exists,
                guard: None,
                groups: None,
            })
        };
        let with = |predicate| filter(rows(&[INT]), predicate);
        assert_eq!(violation(&apply(rows(&[INT]), with(uses(1, INT)))), "");
        assert_eq!(violation(&apply(with(uses(0, INT)), rows(&[INT]))), "");
        let found = violation(&apply(with(uses(1, INT)), rows(&[INT])));
        assert!(found.contains("parameter 1 is used outside"), "{found}");
        let found = violation(&apply(rows(&[INT]), with(uses(1, DataType::Text))));
        assert_eq!(found, "parameter 1 is Int4 and used as Text");
        assert_eq!(violation(&with(uses(2, INT))), "parameter 2 of 2");
        assert!(violation(&apply(rows(&[]), rows(&[]))).contains("binding of column 0"));
    }

    #[test]
    #[should_panic(expected = "push_down made an invalid plan: column 1")]
    fn plan_violation_names_rewrite_rule() {
        logical("push_down", &filter(rows(&[INT]), is_null(Expr::column(1, INT))), 0);
    }

    fn two_rows() -> Node {
        let row = || vec![Expr::constant(Datum::Int4(1), INT)];
        let (types, rows) = (vec![INT], vec![row(), row()]);
        Node::Values(Arc::new(ValuesNode { types, rows, constants: None }))
    }

    fn sorted(descending: bool) -> Node {
        let expression = Expr::column(0, INT);
        let keys = vec![SortKey { expression, descending, nulls_first: descending }];
        let input = two_rows();
        Node::Sort(Arc::new(SortNode { input, keys, goal: None, types: vec![INT] }))
    }

    fn merged(left: Node, right: Node) -> String {
        let keys = || vec![Expr::column(0, INT)];
        let node = Node::MergeJoin(Arc::new(KeyJoinNode {
            kind: JoinKind::Inner,
            left,
            right,
            left_keys: keys(),
            right_keys: keys(),
            join_filter: None,
            left_types: vec![INT],
            right_types: vec![INT],
            order: Vec::new(),
        }));
        physical::check(&node).err().unwrap_or_default()
    }

    #[test]
    fn required_orders_must_be_provided() {
        assert_eq!(merged(sorted(false), sorted(false)), "");
        assert!(merged(sorted(false), two_rows()).contains("a merge join does not provide"));
        assert!(merged(sorted(true), sorted(false)).contains("a merge join does not provide"));
        let distinct = |input| {
            let on = vec![Expr::column(0, INT)];
            let node = Node::Distinct(Arc::new(DistinctNode { input, on, sorted: true }));
            physical::check(&node).is_ok()
        };
        assert!(distinct(sorted(true)) && distinct(sorted(false)));
        assert!(!distinct(two_rows()));
    }
}
