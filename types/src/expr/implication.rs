//! Implication between conditions: proves that a condition is true wherever others are, so that a
//! partial index can be used, and that a condition cannot be true where something is NULL.
//!
//! The proofs are sound but incomplete. They are based on the expressions alone; parameters may
//! have any value.

use std::cmp::Ordering;

use super::{CompareOp, EvalContext, Expr};
use crate::datatype::DataType;
use crate::datum::Datum;
use crate::function;

impl Expr {
    /// Returns whether the condition is implied by `conditions`: true wherever all of them are
    /// true.
    pub fn follows_from(&self, conditions: &[&Expr]) -> bool {
        match self {
            Expr::Constant { value, .. } => matches!(value, Datum::Bool(true)),
            Expr::And(operands) => operands.iter().all(|one| one.follows_from(conditions)),
            Expr::Or(operands) if operands.iter().any(|one| one.follows_from(conditions)) => true,
            _ => conditions.iter().any(|condition| follows(condition, self)),
        }
    }

    /// Returns whether the condition is never true where all parts selected by `is_null` are
    /// NULL.
    pub fn rejects_nulls(&self, is_null: &dyn Fn(&Expr) -> bool) -> bool {
        match self {
            Expr::Constant { value, .. } => !matches!(value, Datum::Bool(true)),
            Expr::And(operands) => operands.iter().any(|one| one.rejects_nulls(is_null)),
            Expr::Or(operands) => operands.iter().all(|one| one.rejects_nulls(is_null)),
            Expr::Not(operand) => match operand.as_ref() {
                Expr::IsNull(operand) => operand.becomes_null(is_null),
                operand => operand.becomes_null(is_null),
            },
            condition => condition.becomes_null(is_null),
        }
    }

    /// Returns whether the value is NULL where all selected parts are NULL.
    fn becomes_null(&self, is_null: &dyn Fn(&Expr) -> bool) -> bool {
        let null = |operand: &Expr| operand.becomes_null(is_null);
        if is_null(self) {
            return true;
        }
        match self {
            Expr::Constant { value, .. } => value.is_null(),
            Expr::Cast { operand, .. } | Expr::Not(operand) => null(operand),
            Expr::Call { function, arguments, .. } => {
                function::signature(*function).strict && arguments.iter().any(null)
            }
            Expr::InList { operand, list } => null(operand) && !list.is_empty(),
            // FALSE AND NULL is FALSE, TRUE OR NULL is TRUE.
            Expr::And(operands) | Expr::Or(operands) | Expr::Coalesce { operands, .. } => {
                operands.iter().all(null)
            }
            Expr::Column { .. }
            | Expr::Parameter { .. }
            | Expr::Routine { .. }
            | Expr::Domain { .. }
            | Expr::IsNull(_)
            | Expr::IsDistinct { .. }
            | Expr::Case { .. }
            | Expr::Unreadable { .. } => false,
        }
    }
}

/// Returns whether `known` implies `wanted`.
fn follows(known: &Expr, wanted: &Expr) -> bool {
    if known == wanted {
        return true;
    }
    match known {
        Expr::And(operands) => return operands.iter().any(|one| follows(one, wanted)),
        Expr::Or(operands) => return operands.iter().all(|one| follows(one, wanted)),
        Expr::InList { operand, list } if list.iter().all(is_value) => {
            return list.iter().all(|value| {
                follows_from_values(&Values { of: operand, op: CompareOp::Eq, value }, wanted)
            }) || wanted_not_null(known, wanted);
        }
        _ => {}
    }
    if let (Some(known), Some(wanted)) = (truth(known), truth(wanted))
        && known == wanted
    {
        return true;
    }
    let by_values = Values::of(known).is_some_and(|known| follows_from_values(&known, wanted));
    by_values || wanted_not_null(known, wanted)
}

/// Returns whether `wanted` is an IS NOT NULL test of a part that is not NULL where `known` is
/// true.
fn wanted_not_null(known: &Expr, wanted: &Expr) -> bool {
    match wanted {
        Expr::Not(operand) => match operand.as_ref() {
            Expr::IsNull(operand) => known.rejects_nulls(&|part| part == operand.as_ref()),
            _ => false,
        },
        Expr::Or(operands) => operands.iter().any(|one| wanted_not_null(known, one)),
        _ => false,
    }
}

fn is_value(expr: &Expr) -> bool {
    matches!(expr, Expr::Constant { value, .. } if !value.is_null())
}

/// Returns the boolean expression that a condition tests, and its value. `b`, `b = true` and
/// `b IS TRUE` are equivalent where they are true.
fn truth(condition: &Expr) -> Option<(&Expr, bool)> {
    let known = |value: &Expr| match value {
        Expr::Constant { value: Datum::Bool(value), .. } => Some(*value),
        _ => None,
    };
    match condition {
        Expr::Not(operand) => truth(operand).filter(|_| !is_test(operand)).map(|(b, v)| (b, !v)),
        Expr::IsDistinct { left, right, negated: true } => {
            known(right).map(|value| (left.as_ref(), value))
        }
        condition => match condition.as_comparison() {
            Some((left, CompareOp::Eq, right)) if known(right).is_some() => {
                known(right).map(|value| (left, value))
            }
            Some((left, CompareOp::Ne, right)) if known(right).is_some() => {
                known(right).map(|value| (left, !value))
            }
            _ => Some((condition, true)),
        },
    }
}

/// Returns whether a condition is false, not NULL, where its operand is NULL.
fn is_test(condition: &Expr) -> bool {
    matches!(condition, Expr::IsDistinct { .. } | Expr::IsNull(_))
}

/// A comparison with a constant.
struct Values<'e> {
    of: &'e Expr,
    op: CompareOp,
    value: &'e Expr,
}

impl Values<'_> {
    fn of(condition: &Expr) -> Option<Values<'_>> {
        if let Expr::Not(operand) = condition {
            let Values { of, op, value } = Values::of(operand)?;
            return Some(Values { of, op: op.negate(), value });
        }
        match condition.as_comparison()? {
            (of, op, value) if is_value(value) => Some(Values { of, op, value }),
            (value, op, of) if is_value(value) => Some(Values { of, op: op.flip(), value }),
            _ => None,
        }
    }

    /// Returns whether the comparison names one value, with which a condition is true:
    /// `b = 'tree'` implies `b LIKE 'tr%'`. Equal values must have the same form.
    fn is_true_with_value(&self, wanted: &Expr) -> bool {
        use DataType::{Bool, Date, Int2, Int4, Int8, Text, Timestamp, Timestamptz, Uuid, Varchar};
        let data_type = self.of.data_type();
        let has_one_form = matches!(
            data_type,
            Bool | Int2 | Int4 | Int8 | Text | Varchar | Date | Timestamp | Timestamptz | Uuid
        );
        if self.op != CompareOp::Eq || !has_one_form || data_type != self.value.data_type() {
            return false;
        }
        let put = |part: Expr| if part == *self.of { self.value.clone() } else { part };
        let condition = wanted.clone().transform(&mut { put }).fold(&EvalContext::default());
        matches!(condition, Expr::Constant { value: Datum::Bool(true), .. })
    }

    /// Returns whether this comparison implies the other one.
    fn imply(&self, wanted: &Values<'_>) -> bool {
        use CompareOp::{Eq, Ge, Gt, Le, Lt, Ne};
        if self.of != wanted.of {
            return false;
        }
        let Some(order) = order(self.value, wanted.value) else { return false };
        match (self.op, wanted.op) {
            (Eq, Eq) | (Ne, Ne) => order.is_eq(),
            (Eq, Ne) => order.is_ne(),
            (Eq | Lt | Le, Le) | (Lt, Lt | Ne) => order.is_le(),
            (Eq | Le, Lt) | (Le, Ne) => order.is_lt(),
            (Eq | Gt | Ge, Ge) | (Gt, Gt | Ne) => order.is_ge(),
            (Eq | Ge, Gt) | (Ge, Ne) => order.is_gt(),
            _ => false,
        }
    }
}

/// Returns the order of two constants, if they have the same type.
fn order(left: &Expr, right: &Expr) -> Option<Ordering> {
    let (Expr::Constant { value: a, data_type }, Expr::Constant { value: b, data_type: other }) =
        (left, right)
    else {
        return None;
    };
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ if data_type == other => Some(a.compare_typed(b, data_type)),
        _ => None,
    }
}

fn follows_from_values(known: &Values<'_>, wanted: &Expr) -> bool {
    follows_from_comparison(known, wanted) || known.is_true_with_value(wanted)
}

fn follows_from_comparison(known: &Values<'_>, wanted: &Expr) -> bool {
    match wanted {
        Expr::And(operands) => operands.iter().all(|one| follows_from_values(known, one)),
        Expr::Or(operands) => operands.iter().any(|one| follows_from_values(known, one)),
        Expr::InList { operand, list } => list
            .iter()
            .filter(|value| is_value(value))
            .any(|value| known.imply(&Values { of: operand, op: CompareOp::Eq, value })),
        Expr::Not(operand) => match operand.as_ref() {
            Expr::InList { operand, list } => list.iter().all(|value| {
                is_value(value) && known.imply(&Values { of: operand, op: CompareOp::Ne, value })
            }),
            _ => Values::of(wanted).is_some_and(|wanted| known.imply(&wanted)),
        },
        wanted => Values::of(wanted).is_some_and(|wanted| known.imply(&wanted)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn column(index: usize) -> Expr {
        Expr::column(index, DataType::Int4)
    }

    fn number(value: i32) -> Expr {
        Expr::constant(Datum::Int4(value), DataType::Int4)
    }

    fn is(op: CompareOp, value: i32) -> Expr {
        Expr::compare(op, column(0), number(value))
    }

    fn not(operand: Expr) -> Expr {
        Expr::Not(Box::new(operand))
    }

    fn is_null(index: usize) -> Expr {
        Expr::IsNull(Box::new(column(index)))
    }

    fn is_in(list: &[i32]) -> Expr {
        let list = Arc::new(list.iter().map(|value| number(*value)).collect());
        Expr::InList { operand: Box::new(column(0)), list }
    }

    #[test]
    fn comparison_implication_matches_exhaustive_model() {
        let holds = |op: CompareOp, value: i32, bound: i32| op.accepts(value.cmp(&bound));
        for known in CompareOp::ALL {
            for wanted in CompareOp::ALL {
                for (a, b) in [(3, 3), (3, 5), (5, 3)] {
                    let mut values = -10..20;
                    let expected =
                        values.all(|value| !holds(known, value, a) || holds(wanted, value, b));
                    let found = is(wanted, b).follows_from(&[&is(known, a)]);
                    // There is another integer between 3 and 5, so the result holds for all
                    // types.
                    assert_eq!(found, expected, "{known:?} {a} => {wanted:?} {b}");
                }
            }
        }
    }

    #[test]
    fn implication_of_in_lists_and_disjunctions() {
        assert!(is_in(&[1, 2, 3]).follows_from(&[&is(CompareOp::Eq, 2)]));
        assert!(!is_in(&[1, 2, 3]).follows_from(&[&is(CompareOp::Eq, 4)]));
        assert!(is_in(&[1, 2, 3]).follows_from(&[&is_in(&[1, 3])]));
        assert!(!is_in(&[1, 2]).follows_from(&[&is_in(&[1, 3])]));
        assert!(is(CompareOp::Gt, 0).follows_from(&[&is_in(&[1, 3])]));
        assert!(not(is_in(&[1, 2])).follows_from(&[&is(CompareOp::Gt, 2)]));
        let either = Expr::Or(vec![is(CompareOp::Lt, 0), is(CompareOp::Gt, 9)]);
        assert!(either.follows_from(&[&is(CompareOp::Gt, 10)]));
        assert!(is(CompareOp::Ne, 5).follows_from(&[&either]));
        assert!(!is(CompareOp::Gt, 5).follows_from(&[&either]));
        let both = Expr::And(vec![is(CompareOp::Gt, 0), is(CompareOp::Lt, 9)]);
        assert!(both.follows_from(&[&is(CompareOp::Gt, 1), &is(CompareOp::Lt, 8)]));
        assert!(!both.follows_from(&[&is(CompareOp::Gt, 1)]));
        assert!(not(is(CompareOp::Gt, 7)).follows_from(&[&is(CompareOp::Lt, 5)]));
    }

    #[test]
    fn value_implies_predicates_that_are_true_with_it() {
        let operands = vec![column(0), number(0)];
        let value = Expr::Coalesce { operands, data_type: DataType::Int4 };
        let wanted = Expr::compare(CompareOp::Gt, value, number(5));
        assert!(wanted.follows_from(&[&is(CompareOp::Eq, 6)]));
        assert!(wanted.follows_from(&[&is_in(&[6, 7])]));
        assert!(!wanted.follows_from(&[&is(CompareOp::Eq, 5)]));
        assert!(!wanted.follows_from(&[&is_in(&[5, 6])]));
        assert!(!wanted.follows_from(&[&is(CompareOp::Gt, 6)]));
    }

    #[test]
    fn strict_condition_implies_is_not_null() {
        let there = not(is_null(0));
        assert!(there.follows_from(&[&is(CompareOp::Gt, 1)]));
        assert!(there.follows_from(&[&is_in(&[1])]));
        assert!(!there.follows_from(&[&is_null(0)]));
        assert!(!there.follows_from(&[&not(is_null(1))]));
        let unknown = Expr::Parameter { index: 0, data_type: DataType::Int4 };
        let equal = Expr::compare(CompareOp::Eq, column(0), unknown);
        assert!(there.follows_from(&[&equal]));
        assert!(!is(CompareOp::Gt, 0).follows_from(&[&equal]));
    }

    #[test]
    fn implication_of_boolean_tests() {
        let flag = || Expr::column(1, DataType::Bool);
        let value = |value| Expr::constant(Datum::Bool(value), DataType::Bool);
        let is_bool = |expected| Expr::IsDistinct {
            left: Box::new(flag()),
            right: Box::new(value(expected)),
            negated: true,
        };
        let equals = |expected| Expr::compare(CompareOp::Eq, flag(), value(expected));
        for (wanted, expected) in [(flag(), true), (not(flag()), false)] {
            for known in [equals(expected), is_bool(expected)] {
                assert!(wanted.follows_from(&[&known]), "{known:?}");
                assert!(known.follows_from(&[&wanted]), "{known:?}");
            }
            assert!(!wanted.follows_from(&[&equals(!expected)]));
            // It is not true where b is NULL.
            assert!(!wanted.follows_from(&[&not(is_bool(!expected))]));
        }
    }

    #[test]
    fn comparisons_reject_nulls_but_null_tests_do_not() {
        let rejects = |condition: &Expr| {
            condition.rejects_nulls(
                &|part| matches!(part, Expr::Column { index, .. } if (2..4).contains(index)),
            )
        };
        let equal = Expr::compare(CompareOp::Eq, column(0), column(2));
        let left_only = Expr::compare(CompareOp::Eq, column(0), column(1));
        assert!(rejects(&equal));
        assert!(!rejects(&left_only));
        assert!(!rejects(&is_null(3)));
        assert!(rejects(&not(is_null(3))));
        assert!(rejects(&Expr::And(vec![left_only.clone(), equal.clone()])));
        assert!(!rejects(&Expr::Or(vec![left_only, equal.clone()])));
        assert!(rejects(&not(equal)));
        let coalesced =
            Expr::Coalesce { operands: vec![column(2), column(0)], data_type: DataType::Int4 };
        assert!(!rejects(&Expr::compare(CompareOp::Eq, coalesced, column(0))));
    }
}
