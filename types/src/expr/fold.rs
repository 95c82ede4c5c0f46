//! Computing at plan time what does not depend on rows.

use super::{CompareOp, EvalContext, Expr};
use crate::cast;
use crate::datatype::DataType;
use crate::datetime::{MICROS_PER_DAY, is_finite_timestamp};
use crate::datum::Datum;
use crate::function::{self, Volatility};

impl Expr {
    /// Returns the expression with immutable calls on constants computed, and with AND, OR, CASE
    /// and COALESCE shortened where a constant decides.
    ///
    /// An error leaves the node as it is: it will be raised when a row gets there.
    #[must_use]
    pub fn fold(self, context: &EvalContext) -> Expr {
        self.transform(&mut |node| match node {
            Expr::And(operands) => shorten(operands, false),
            Expr::Or(operands) => shorten(operands, true),
            Expr::Case { branches, otherwise, data_type } => case(branches, *otherwise, data_type),
            Expr::Coalesce { operands, data_type } => coalesce(operands, data_type),
            other => dated(compute(other, context)),
        })
    }
}

/// Makes a comparison of a date with a constant timestamp one of two dates: faster, and a bound of
/// a key of dates.
fn dated(node: Expr) -> Expr {
    let Some((left, op, right)) = node.as_comparison() else { return node };
    let (date, op, bound) = match (left.data_type(), right.data_type()) {
        (DataType::Date, DataType::Timestamp) => (left, op, right),
        (DataType::Timestamp, DataType::Date) => (right, op.flip(), left),
        _ => return node,
    };
    let Some(Datum::Timestamp(time)) = value(bound) else { return node };
    let day = time.div_euclid(MICROS_PER_DAY);
    let op = match (op, time.rem_euclid(MICROS_PER_DAY) == 0) {
        (op, true) => op,
        (CompareOp::Lt, false) => CompareOp::Le,
        (CompareOp::Ge, false) => CompareOp::Gt,
        (CompareOp::Le | CompareOp::Gt, false) => op,
        // No day begins then.
        (CompareOp::Eq | CompareOp::Ne, false) => return node,
    };
    match i32::try_from(day) {
        Ok(day) if is_finite_timestamp(*time) => {
            Expr::compare(op, date.clone(), Expr::constant(Datum::Date(day), DataType::Date))
        }
        _ => node,
    }
}

fn value(expr: &Expr) -> Option<&Datum> {
    match expr {
        Expr::Constant { value, .. } => Some(value),
        _ => None,
    }
}

/// Returns whether the expression depends on nothing and is still no constant: it raises an error.
fn is_failing_constant(expr: &Expr) -> bool {
    value(expr).is_none()
        && expr.is_immutable()
        && !expr.has_parameters()
        && expr.columns().is_empty()
}

/// Computes a node whose operands are all constants, if it is immutable and raises no error. A
/// strict call with a constant NULL among its arguments is NULL, and the others are never computed.
fn compute(node: Expr, context: &EvalContext) -> Expr {
    let ready = match &node {
        Expr::Constant { .. }
        | Expr::Column { .. }
        | Expr::Parameter { .. }
        | Expr::Routine { .. }
        | Expr::Unreadable { .. } => false,
        Expr::Call { function, arguments, .. } => {
            let signature = function::signature(*function);
            let null = signature.strict
                && arguments.iter().any(|argument| value(argument) == Some(&Datum::Null));
            if null && !arguments.iter().any(is_failing_constant) {
                return Expr::constant(Datum::Null, node.data_type());
            }
            signature.volatility == Volatility::Immutable
                && arguments.iter().all(|argument| value(argument).is_some())
        }
        Expr::Cast { operand, from, to, .. } => {
            value(operand).is_some() && cast::is_foldable(*from, to.base)
        }
        Expr::Domain { operand, checks, .. } => value(operand).is_some() && checks.is_foldable(),
        Expr::Not(operand) | Expr::IsNull(operand) => value(operand).is_some(),
        Expr::IsDistinct { left, right, .. } => value(left).is_some() && value(right).is_some(),
        Expr::InList { operand, list } => {
            value(operand).is_some() && list.iter().all(|item| value(item).is_some())
        }
        Expr::And(_) | Expr::Or(_) | Expr::Case { .. } | Expr::Coalesce { .. } => false,
    };
    if !ready {
        return node;
    }
    match node.eval_row(&[], context) {
        Ok(value) => Expr::constant(value, node.data_type()),
        Err(_) => node,
    }
}

/// Shortens AND (`decisive` false) or OR (`decisive` true).
fn shorten(operands: Vec<Expr>, decisive: bool) -> Expr {
    let mut kept = Vec::with_capacity(operands.len());
    let mut unknown = false;
    for operand in operands {
        match value(&operand) {
            Some(Datum::Bool(value)) if *value == decisive => {
                return Expr::constant(Datum::Bool(decisive), DataType::Bool);
            }
            Some(Datum::Bool(_)) => {}
            Some(_) => unknown = true,
            None => kept.push(operand),
        }
    }
    if unknown {
        kept.push(Expr::constant(Datum::Null, DataType::Bool));
    }
    match kept.len() {
        0 => Expr::constant(Datum::Bool(!decisive), DataType::Bool),
        1 => kept.remove(0),
        _ if decisive => Expr::Or(kept),
        _ => Expr::And(kept),
    }
}

fn case(branches: Vec<(Expr, Expr)>, otherwise: Expr, data_type: DataType) -> Expr {
    let mut kept = Vec::with_capacity(branches.len());
    let mut last = otherwise;
    for (condition, result) in branches {
        match value(&condition) {
            Some(Datum::Bool(true)) => {
                last = result;
                break;
            }
            Some(_) => {}
            None => kept.push((condition, result)),
        }
    }
    if kept.is_empty() {
        return last;
    }
    Expr::Case { branches: kept, otherwise: Box::new(last), data_type }
}

fn coalesce(operands: Vec<Expr>, data_type: DataType) -> Expr {
    let mut kept = Vec::with_capacity(operands.len());
    for operand in operands {
        match value(&operand) {
            Some(Datum::Null) => {}
            Some(_) => {
                kept.push(operand);
                break;
            }
            None => kept.push(operand),
        }
    }
    match kept.len() {
        0 => Expr::constant(Datum::Null, data_type),
        1 => kept.remove(0),
        _ => Expr::Coalesce { operands: kept, data_type },
    }
}
