//! Expression functions of the planner: conjuncts of predicates, used columns, renumbering and
//! substitution.

use std::collections::BTreeSet;

use types::expr::Expr;
use types::function::{FunctionId, signature};
use types::{DataType, Datum};

/// A set of column positions.
pub(super) type Columns = BTreeSet<usize>;

/// Appends the conjuncts of a predicate; TRUE has none.
pub(super) fn split(predicate: Expr, out: &mut Vec<Expr>) {
    match predicate {
        Expr::And(operands) => operands.into_iter().for_each(|operand| split(operand, out)),
        Expr::Constant { value: Datum::Bool(true), .. } => {}
        Expr::Not(operand) => match *operand {
            Expr::Not(inner) => split(*inner, out),
            // NOT (a OR b) is NOT a AND NOT b, including NULLs.
            Expr::Or(operands) => {
                operands.into_iter().for_each(|operand| split(Expr::Not(Box::new(operand)), out));
            }
            Expr::Constant { value: Datum::Bool(false), .. } => {}
            Expr::Constant { .. } => out.push(boolean(false)),
            operand => out.push(Expr::Not(Box::new(operand))),
        },
        predicate => out.push(predicate),
    }
}

/// Returns whether a conjunct is never true, so that the result is empty.
pub(super) fn is_never_true(conjunct: &Expr) -> bool {
    matches!(conjunct, Expr::Constant { value: Datum::Bool(false) | Datum::Null, .. })
}

/// Returns the conjunction; `None` if there are no conjuncts.
pub(super) fn all(mut conjuncts: Vec<Expr>) -> Option<Expr> {
    match conjuncts.len() {
        0 => None,
        1 => conjuncts.pop(),
        _ => Some(Expr::And(conjuncts)),
    }
}

/// Adds the columns that an expression uses.
pub(super) fn add_columns(expression: &Expr, out: &mut Columns) {
    expression.walk(&mut |part| {
        if let Expr::Column { index, .. } = part {
            out.insert(*index);
        }
    });
}

/// Returns the columns that an expression uses.
pub(super) fn columns_of(expression: &Expr) -> Columns {
    let mut columns = Columns::new();
    add_columns(expression, &mut columns);
    columns
}

/// Returns whether an expression uses columns of `range` only.
pub(super) fn within(expression: &Expr, range: std::ops::Range<usize>) -> bool {
    let mut inside = true;
    expression.walk(&mut |part| {
        if let Expr::Column { index, .. } = part {
            inside &= range.contains(index);
        }
    });
    inside
}

/// Returns whether an expression uses no column.
pub(super) fn is_free(expression: &Expr) -> bool {
    within(expression, 0..0)
}

/// Returns whether an expression is volatile (`random()`), or can only be evaluated in the
/// session.
pub(super) fn is_volatile(expression: &Expr) -> bool {
    expression.is_session_only()
}

/// Returns the column of a plain column reference.
pub(super) fn as_column(expression: &Expr) -> Option<usize> {
    match expression {
        Expr::Column { index, .. } => Some(*index),
        _ => None,
    }
}

/// Returns the expression with renumbered columns.
pub(super) fn renumber(expression: Expr, position: &dyn Fn(usize) -> usize) -> Expr {
    expression.transform(&mut |part| match part {
        Expr::Column { index, data_type } => Expr::Column { index: position(index), data_type },
        part => part,
    })
}

/// Returns the expression with each column replaced by the expression of that number.
pub(super) fn substitute(expression: Expr, by: &[Expr]) -> Expr {
    expression.transform(&mut |part| match part {
        Expr::Column { index, .. } => by[index].clone(),
        part => part,
    })
}

/// Returns a column.
pub(super) fn column(index: usize, data_type: impl Into<DataType>) -> Expr {
    Expr::column(index, data_type)
}

/// Returns a boolean constant.
pub(super) fn boolean(value: bool) -> Expr {
    Expr::Constant { value: Datum::Bool(value), data_type: DataType::Bool }
}

/// Returns the largest parameter index that an expression uses, plus one.
pub(super) fn parameter_count(expression: &Expr) -> usize {
    let mut count = 0;
    expression.walk(&mut |part| {
        if let Expr::Parameter { index, .. } = part {
            count = count.max(index + 1);
        }
    });
    count
}

/// Returns whether an expression uses one of these parameters.
pub(super) fn uses_parameters(expression: &Expr, parameters: &Columns) -> bool {
    let mut uses = false;
    expression.walk(&mut |part| {
        if let Expr::Parameter { index, .. } = part {
            uses |= parameters.contains(index);
        }
    });
    uses
}

/// Returns symbol and operands of a binary operator call; `=` only for types whose equality
/// agrees with their hashes, which excludes geometric types such as `box`.
pub(super) fn as_operator(expression: &Expr) -> Option<(&'static str, &Expr, &Expr)> {
    match expression {
        Expr::Call { function, arguments, .. } => match arguments.as_slice() {
            [left, right] => {
                let symbol = signature(*function).name;
                let is_so = symbol != "=" || left.data_type().has_equality();
                is_so.then_some((symbol, left, right))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Returns the operands of `left = ANY (array)`.
pub(super) fn as_equal_to_any(expression: &Expr) -> Option<(&Expr, &Expr)> {
    let Expr::Call { function, arguments, .. } = expression else { return None };
    let [Expr::Constant { value: Datum::Int4(comparison), .. }, left, array] = arguments.as_slice()
    else {
        return None;
    };
    let comparison = FunctionId(u16::try_from(*comparison).ok()?);
    let is_so = signature(*function).name == "any of" && signature(comparison).name == "=";
    let is_so = is_so && left.data_type().has_equality();
    is_so.then_some((left, array))
}

/// Returns whether a hash join can use a condition: an equality whose sides share no column.
pub(super) fn hashable(predicate: &Expr) -> bool {
    let Some(("=", left, right)) = as_operator(predicate) else { return false };
    columns_of(left).is_disjoint(&columns_of(right))
}
