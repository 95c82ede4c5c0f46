//! Validation of expressions: column references, parameters and operand types.

use types::DataType;
use types::aggregate::Aggregate;
use types::expr::Expr;
use types::function::{Signature, signature};

use crate::logical::SortKey;
use crate::planner::validate::{Validation, require};

/// Rows that an expression is evaluated over.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    /// Types of their columns.
    pub columns: &'a [DataType],
    /// Check of a parameter and the type of its use.
    pub parameter: &'a dyn Fn(usize, &DataType) -> Validation<()>,
}

impl Row<'_> {
    /// Checks an expression.
    pub(super) fn check(self, expression: &Expr) -> Validation<()> {
        match expression {
            Expr::Column { index, data_type } => {
                let found = self.columns.get(*index);
                return require(found == Some(data_type), || {
                    format!("column {index} of type {data_type:?} over {:?}", self.columns)
                });
            }
            Expr::Parameter { index, data_type } => {
                return (self.parameter)(*index, data_type);
            }
            other => operands(other)?,
        }
        let mut checked = Ok(());
        expression.for_each_child(&mut |child| {
            if checked.is_ok() {
                checked = self.check(child);
            }
        });
        checked
    }

    /// Checks expressions, and returns their types.
    pub(super) fn check_all(self, expressions: &[Expr]) -> Validation<Vec<DataType>> {
        let check = |one: &Expr| self.check(one).map(|()| one.data_type().clone());
        expressions.iter().map(check).collect()
    }

    /// Checks a predicate.
    pub(super) fn check_predicate(self, predicate: &Expr) -> Validation<()> {
        self.check(predicate)?;
        boolean(predicate)
    }

    /// Checks sort keys.
    pub(super) fn check_keys(self, keys: &[SortKey]) -> Validation<()> {
        keys.iter().try_for_each(|key| self.check(&key.expression))
    }

    /// Checks aggregates, and returns their types.
    pub(super) fn check_aggregates(self, aggregates: &[Aggregate]) -> Validation<Vec<DataType>> {
        let check = |one: &Aggregate| {
            one.expressions().try_for_each(|part| self.check(part))?;
            one.filter.iter().try_for_each(boolean)?;
            Ok(one.data_type.clone())
        };
        aggregates.iter().map(check).collect()
    }
}

fn describe(expression: &Expr) -> String {
    expression.describe(&|index| format!("#{index}"))
}

/// Checks that an expression is boolean.
pub(super) fn boolean(expression: &Expr) -> Validation<()> {
    of_type(expression, &DataType::Bool)
}

fn of_type(expression: &Expr, data_type: &DataType) -> Validation<()> {
    let found = expression.data_type();
    require(found == data_type, || {
        format!("{} is {found:?} instead of {data_type:?}", describe(expression))
    })
}

/// Returns whether values of two types have one representation and one order.
pub(super) fn alike(a: &DataType, b: &DataType) -> bool {
    a == b || (a.is_text() && b.is_text())
}

/// Checks the types of an expression's direct operands.
fn operands(expression: &Expr) -> Validation<()> {
    let same = |a: &Expr, b: &Expr| {
        let (of_a, of_b) = (a.data_type(), b.data_type());
        require(alike(of_a, of_b), || {
            format!("{of_a:?} and {of_b:?} are the operands of {}", describe(expression))
        })
    };
    match expression {
        Expr::And(operands) | Expr::Or(operands) => operands.iter().try_for_each(boolean),
        Expr::Not(operand) => boolean(operand),
        Expr::IsDistinct { left, right, .. } => same(left, right),
        Expr::InList { operand, list } => list.iter().try_for_each(|one| same(operand, one)),
        Expr::Cast { operand, from, .. } => of_type(operand, from),
        Expr::Case { branches, otherwise, data_type } => {
            branches.iter().try_for_each(|(condition, result)| {
                boolean(condition)?;
                of_type(result, data_type)
            })?;
            of_type(otherwise, data_type)
        }
        Expr::Coalesce { operands, data_type } => {
            operands.iter().try_for_each(|one| of_type(one, data_type))
        }
        Expr::Call { function, arguments, .. } => call(signature(*function), arguments),
        Expr::Constant { .. }
        | Expr::Column { .. }
        | Expr::Parameter { .. }
        | Expr::Routine { .. }
        | Expr::Domain { .. }
        | Expr::IsNull(_)
        | Expr::Unreadable { .. } => Ok(()),
    }
}

/// Checks the number and the types of a built-in function's arguments.
fn call(signature: &Signature, arguments: &[Expr]) -> Validation<()> {
    let (fixed, rest) = match signature.arguments.split_last() {
        Some((last, fixed)) if signature.variadic => (fixed, Some(last)),
        _ => (signature.arguments, None),
    };
    let name = signature.name;
    let count_fits =
        arguments.len() == fixed.len() || (arguments.len() > fixed.len() && rest.is_some());
    require(count_fits, || format!("{} arguments of {name}", arguments.len()))?;
    let required = fixed.iter().chain(rest.into_iter().cycle());
    arguments.iter().zip(required).try_for_each(|(argument, data_type)| {
        let found = argument.data_type();
        // Rows of a composite type are held as any record is.
        let is_any = data_type.is_polymorphic() || (data_type.is_row() && found.is_row());
        require(is_any || alike(found, data_type), || {
            format!("{name}: {} is {found:?} instead of {data_type:?}", describe(argument))
        })
    })
}
