//! Security barriers: the rows that row-level security policies, and views with `security_barrier`,
//! let through.
//!
//! A condition of the statement moves below a [`Logical::Barrier`] only if it is leakproof: it has
//! no effect other than its value, and raises no error that depends on its operands. All others,
//! above all user-defined functions, are evaluated for the rows that the policies let through.
//!
//! The leakproof functions are those that PostgreSQL marks (`pg_proc.proleakproof`): comparisons of
//! most types, and conversions to wider types. User-defined LEAKPROOF functions, which only
//! superusers create, are among them.

use types::DataType;
use types::expr::Expr;
use types::function::signature;

use crate::logical::Logical;

/// Comparison operators.
const COMPARISONS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];

/// Removes the barriers that no condition is above of: no later rule moves one there.
pub(super) fn open(plan: &mut Logical) {
    open_below(plan, false);
}

fn open_below(plan: &mut Logical, is_filtered: bool) {
    while !is_filtered && let Logical::Barrier { input } = plan {
        let input = std::mem::replace(&mut **input, Logical::Append { inputs: Vec::new() });
        *plan = input;
    }
    let filters = matches!(plan, Logical::Filter { .. });
    plan.inputs_mut().into_iter().for_each(|input| open_below(input, filters));
}

/// Returns whether a condition may be evaluated for rows that policies hide.
pub(super) fn is_leakproof(expression: &Expr) -> bool {
    let is_own = match expression {
        Expr::Constant { .. }
        | Expr::Column { .. }
        | Expr::Parameter { .. }
        | Expr::And(_)
        | Expr::Or(_)
        | Expr::Not(_)
        | Expr::IsNull(_)
        | Expr::Coalesce { .. }
        | Expr::Case { .. } => true,
        Expr::IsDistinct { left, .. } => is_comparable(left.data_type()),
        Expr::InList { operand, .. } => is_comparable(operand.data_type()),
        Expr::Call { function, arguments, .. } => {
            COMPARISONS.contains(&signature(*function).name)
                && matches!(arguments.as_slice(), [left, right]
                    if are_comparable(left.data_type(), right.data_type()))
        }
        Expr::Cast { from, to, .. } => to.modifier < 0 && is_widening(from, &to.base),
        Expr::Routine { routine, .. } => routine.is_leakproof,
        Expr::Domain { .. } | Expr::Unreadable { .. } => false,
    };
    let mut all = is_own;
    expression.for_each_child(&mut |child| all = all && is_leakproof(child));
    all
}

/// Returns whether PostgreSQL marks the comparisons of values of two types as leakproof.
fn are_comparable(left: &DataType, right: &DataType) -> bool {
    use DataType as T;
    let is_integer: fn(&DataType) -> bool = |one| matches!(one, T::Int2 | T::Int4 | T::Int8);
    let is_float: fn(&DataType) -> bool = |one| matches!(one, T::Float4 | T::Float8);
    let is_string: fn(&DataType) -> bool = |one| matches!(one, T::Text | T::Varchar | T::Name);
    is_comparable(left) && left == right
        || [is_integer, is_float, is_string].iter().any(|is| is(left) && is(right))
}

/// Returns whether PostgreSQL marks the comparisons of a type as leakproof.
fn is_comparable(data_type: &DataType) -> bool {
    use DataType as T;
    matches!(
        data_type,
        T::Bool
            | T::Int2
            | T::Int4
            | T::Int8
            | T::Float4
            | T::Float8
            | T::Text
            | T::Varchar
            | T::Char
            | T::Name
            | T::Bytea
            | T::Date
            | T::Time
            | T::Timetz
            | T::Timestamp
            | T::Timestamptz
            | T::Interval
            | T::Uuid
            | T::Oid
            | T::InternalChar
            | T::Bit
            | T::Varbit
    )
}

/// Returns whether a conversion cannot fail and PostgreSQL marks it as leakproof.
fn is_widening(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    let is_string = |one: &DataType| matches!(one, T::Text | T::Varchar | T::Char | T::Name);
    match (from, to) {
        (from, to) if from == to => true,
        (from, T::Text | T::Varchar) => is_string(from),
        (T::Int2, T::Int4 | T::Int8 | T::Float4 | T::Float8 | T::Numeric) => true,
        (T::Int4, T::Int8 | T::Float4 | T::Float8 | T::Numeric) => true,
        (T::Int8, T::Float4 | T::Float8 | T::Numeric) => true,
        (T::Float4, T::Float8) => true,
        (T::Bool, T::Int4) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_comparisons_and_widening_conversions_are_leakproof() {
        let column = Expr::column(0, DataType::Int4);
        let wide = |to: DataType| Expr::Cast {
            operand: Box::new(column.clone()),
            from: DataType::Int4,
            to: to.into(),
            explicit: false,
        };
        assert!(is_leakproof(&Expr::IsNull(Box::new(wide(DataType::Int8)))));
        assert!(!is_leakproof(&wide(DataType::Int2)));
        assert!(!is_leakproof(&wide(DataType::Text)));
        let call = |name: &str, of: DataType| {
            let found = types::function::overloads(name);
            let found = found.iter().find(|one| one.arguments == [of.clone(), of.clone()]);
            let arguments = vec![Expr::column(0, of.clone()), Expr::column(1, of)];
            let function = found.expect("a function of this name").id;
            Expr::Call { function, arguments, data_type: DataType::Bool }
        };
        assert!(is_leakproof(&call("=", DataType::Text)));
        assert!(!is_leakproof(&call("=", DataType::Numeric)));
        assert!(!is_leakproof(&call("/", DataType::Int4)));
        assert!(!is_leakproof(&call("~~", DataType::Text)));
    }
}
