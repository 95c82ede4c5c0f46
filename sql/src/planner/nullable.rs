//! What becomes of an expression where some columns are NULL: whether an outer join above which a
//! condition stands might as well be an inner one.

use std::ops::Range;

use types::Datum;
use types::expr::Expr;

/// Returns whether a condition is never true in rows in which all these columns are NULL.
pub(super) fn rejects_nulls(condition: &Expr, columns: &Range<usize>) -> bool {
    match condition {
        Expr::Constant { value, .. } => !matches!(value, Datum::Bool(true)),
        Expr::And(operands) => operands.iter().any(|operand| rejects_nulls(operand, columns)),
        Expr::Or(operands) => operands.iter().all(|operand| rejects_nulls(operand, columns)),
        Expr::Not(operand) => match operand.as_ref() {
            Expr::IsNull(operand) => is_null(operand, columns),
            operand => is_null(operand, columns),
        },
        condition => is_null(condition, columns),
    }
}

/// Returns whether an expression is NULL in rows in which all these columns are NULL.
fn is_null(expression: &Expr, columns: &Range<usize>) -> bool {
    let null = |operand: &Expr| is_null(operand, columns);
    match expression {
        Expr::Constant { value, .. } => value.is_null(),
        Expr::Column { index, .. } => columns.contains(index),
        Expr::Cast { operand, .. } | Expr::Not(operand) => null(operand),
        Expr::Call { function, arguments, .. } => {
            types::function::signature(*function).strict && arguments.iter().any(null)
        }
        Expr::InList { operand, list } => null(operand) && !list.is_empty(),
        // FALSE AND NULL is FALSE, TRUE OR NULL is TRUE.
        Expr::And(operands) | Expr::Or(operands) | Expr::Coalesce { operands, .. } => {
            operands.iter().all(null)
        }
        Expr::Parameter { .. }
        | Expr::Routine { .. }
        | Expr::Domain { .. }
        | Expr::IsNull(_)
        | Expr::IsDistinct { .. }
        | Expr::Case { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use types::DataType;
    use types::function::CompareOp;

    use super::*;

    fn column(index: usize) -> Expr {
        Expr::column(index, DataType::Int4)
    }

    fn is_null_test(index: usize) -> Expr {
        Expr::IsNull(Box::new(column(index)))
    }

    #[test]
    fn comparisons_reject_nulls_and_tests_for_null_do_not() {
        let right = 2..4;
        let equal = Expr::compare(CompareOp::Eq, column(0), column(2));
        let left_only = Expr::compare(CompareOp::Eq, column(0), column(1));
        assert!(rejects_nulls(&equal, &right));
        assert!(!rejects_nulls(&left_only, &right));
        assert!(!rejects_nulls(&is_null_test(3), &right));
        assert!(rejects_nulls(&Expr::Not(Box::new(is_null_test(3))), &right));
        assert!(rejects_nulls(&Expr::And(vec![left_only.clone(), equal.clone()]), &right));
        assert!(!rejects_nulls(&Expr::Or(vec![left_only, equal.clone()]), &right));
        assert!(rejects_nulls(&Expr::Not(Box::new(equal)), &right));
        let coalesced =
            Expr::Coalesce { operands: vec![column(2), column(0)], data_type: DataType::Int4 };
        assert!(!rejects_nulls(&Expr::compare(CompareOp::Eq, coalesced, column(0)), &right));
    }
}
