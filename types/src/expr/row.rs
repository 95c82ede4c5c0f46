//! Row evaluation: computes an expression for one row. The reference implementation.

use smallvec::SmallVec;

use super::{EvalContext, Expr};
use crate::cast;
use crate::datatype::DataType;
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::function;

impl Expr {
    /// Computes the value for one row.
    ///
    /// # Errors
    ///
    /// As PostgreSQL for the same values.
    pub fn eval_row(&self, row: &[Datum], context: &EvalContext) -> Result<Datum> {
        match self {
            Expr::Constant { value, .. } => Ok(value.clone()),
            Expr::Column { index, .. } => Ok(row[*index].clone()),
            Expr::Parameter { index, .. } => Ok(context.parameters[*index].clone()),
            Expr::Call { function, arguments, .. } => {
                let mut values: SmallVec<[Datum; 4]> = SmallVec::with_capacity(arguments.len());
                for argument in arguments {
                    values.push(argument.eval_row(row, context)?);
                }
                function::call(*function, &values, first_type(arguments), context)
            }
            Expr::Routine { routine, arguments } => {
                let values = arguments.iter().map(|argument| argument.eval_row(row, context));
                routine.call(values.collect::<Result<_>>()?, context)
            }
            Expr::Cast { operand, from, to, explicit } => {
                let value = operand.eval_row(row, context)?;
                cast::cast(&value, from, to, *explicit, context)
            }
            Expr::Domain { operand, checks, .. } => {
                let value = operand.eval_row(row, context)?;
                checks.check(&value, context)?;
                Ok(value)
            }
            Expr::And(operands) => connect(operands, false, row, context),
            Expr::Or(operands) => connect(operands, true, row, context),
            Expr::Not(operand) => Ok(match operand.eval_row(row, context)? {
                Datum::Bool(value) => Datum::Bool(!value),
                _ => Datum::Null,
            }),
            Expr::IsNull(operand) => {
                Ok(Datum::Bool(operand.eval_row(row, context)? == Datum::Null))
            }
            Expr::IsDistinct { left, right, negated } => {
                let data_type = left.data_type();
                let left = left.eval_row(row, context)?;
                let right = right.eval_row(row, context)?;
                Ok(Datum::Bool(is_distinct(&left, &right, data_type) != *negated))
            }
            Expr::InList { operand, list } => in_list(operand, list, row, context),
            Expr::Case { branches, otherwise, .. } => {
                for (condition, result) in branches {
                    if condition.accepts_row(row, context)? {
                        return result.eval_row(row, context);
                    }
                }
                otherwise.eval_row(row, context)
            }
            Expr::Unreadable { reason, .. } => Err(unreadable(reason)),
            Expr::Coalesce { operands, .. } => {
                for operand in operands {
                    let value = operand.eval_row(row, context)?;
                    if value != Datum::Null {
                        return Ok(value);
                    }
                }
                Ok(Datum::Null)
            }
        }
    }

    /// Returns whether a boolean expression is true for a row (neither false nor NULL).
    ///
    /// # Errors
    ///
    /// Those of [`Expr::eval_row`].
    pub fn accepts_row(&self, row: &[Datum], context: &EvalContext) -> Result<bool> {
        Ok(self.eval_row(row, context)? == Datum::Bool(true))
    }

    /// Returns whether a row passes a filter. Unlike [`Expr::accepts_row`], conjuncts after a
    /// NULL one are not computed, as in PostgreSQL's WHERE.
    pub(super) fn passes_row(&self, row: &[Datum], context: &EvalContext) -> Result<bool> {
        if let Expr::And(conjuncts) = self {
            for conjunct in conjuncts {
                if !conjunct.passes_row(row, context)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        self.accepts_row(row, context)
    }
}

/// Returns the error of an unreadable expression.
fn unreadable(reason: &str) -> Error {
    err!(DATA_CORRUPTED: reason; hint "It was written by another version. Drop the object and create it again.")
}

/// Returns the type of a call's first argument.
pub(super) fn first_type(arguments: &[Expr]) -> &DataType {
    arguments.first().map_or(&DataType::Unknown, Expr::data_type)
}

/// Computes AND (`decisive` false) or OR (`decisive` true): the first decisive operand determines
/// the result.
fn connect(
    operands: &[Expr],
    decisive: bool,
    row: &[Datum],
    context: &EvalContext,
) -> Result<Datum> {
    let mut unknown = false;
    for operand in operands {
        match operand.eval_row(row, context)? {
            Datum::Bool(value) if value == decisive => return Ok(Datum::Bool(decisive)),
            Datum::Bool(_) => {}
            _ => unknown = true,
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(!decisive) })
}

fn in_list(operand: &Expr, list: &[Expr], row: &[Datum], context: &EvalContext) -> Result<Datum> {
    let value = operand.eval_row(row, context)?;
    if value == Datum::Null && !list.is_empty() {
        return Ok(Datum::Null);
    }
    let data_type = operand.data_type();
    let mut unknown = false;
    for item in list {
        match item.eval_row(row, context)? {
            Datum::Null => unknown = true,
            item if !is_distinct(&value, &item, data_type) => return Ok(Datum::Bool(true)),
            _ => {}
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(false) })
}

/// Returns whether two values of a type are distinct; NULL is distinct from all values but NULL.
pub(super) fn is_distinct(left: &Datum, right: &Datum, data_type: &DataType) -> bool {
    match (left, right) {
        (Datum::Null, Datum::Null) => false,
        (Datum::Null, _) | (_, Datum::Null) => true,
        _ => left.compare_typed(right, data_type).is_ne(),
    }
}
