//! Computing at plan time what does not depend on rows.

use super::{CompareOp, EvalContext, Expr};
use crate::cast;
use crate::datatype::DataType;
use crate::datetime::{MICROS_PER_DAY, is_finite_timestamp};
use crate::datum::Datum;
use crate::error::{Error, sqlstate};
use crate::function::{self, Volatility};

impl Expr {
    /// Returns the expression with immutable calls on constants computed, and with AND, OR, CASE
    /// and COALESCE shortened where a constant decides.
    ///
    /// An error leaves the node as it is.
    #[must_use]
    pub fn fold(self, context: &EvalContext) -> Expr {
        self.fold_noting(context, &mut None)
    }

    /// As [`Expr::fold`]; `failure` gets the first error of a constant, if it has none yet.
    ///
    /// The constants that are computed, and their order, are those of PostgreSQL's planner
    /// (`eval_const_expressions`, clauses.c): from left to right; what stands behind the constant
    /// that decides an AND, OR, CASE or COALESCE is not looked at. That a row would not get to a
    /// branch matters only if a constant says so.
    #[must_use]
    pub fn fold_noting(self, context: &EvalContext, failure: &mut Option<Error>) -> Expr {
        match self {
            Expr::And(operands) => shorten(operands, false, (context, failure)),
            Expr::Or(operands) => shorten(operands, true, (context, failure)),
            Expr::Case { branches, otherwise, data_type } => {
                case((branches, *otherwise), data_type, (context, failure))
            }
            Expr::Coalesce { operands, data_type } => {
                coalesce(operands, data_type, (context, failure))
            }
            leaf @ (Expr::Constant { .. } | Expr::Column { .. } | Expr::Parameter { .. }) => leaf,
            other => {
                let folded = other.map_children(&mut |child| child.fold_noting(context, failure));
                dated(compute(folded, context, failure))
            }
        }
    }

    /// Returns the expression with parameters replaced by their values, those that have one.
    #[must_use]
    pub fn with_parameters(self, value: &dyn Fn(usize) -> Option<Datum>) -> Expr {
        self.transform(&mut |node| match node {
            Expr::Parameter { index, data_type } => match value(index) {
                Some(value) => Expr::constant(value, data_type),
                None => node,
            },
            other => other,
        })
    }

    /// Returns whether some part is a constant once these parameters are known, and may fail then.
    pub fn may_fail_by_parameters(&self, is_known: &dyn Fn(usize) -> bool) -> bool {
        self.has_parameters() && self.parameter_failure(is_known).1
    }

    /// Returns whether parameters are all that the value depends on, and whether one that does
    /// may fail.
    fn parameter_failure(&self, is_known: &dyn Fn(usize) -> bool) -> (Known, bool) {
        match self {
            Expr::Constant { .. } => return (Known::Constant, false),
            Expr::Parameter { index, .. } if is_known(*index) => return (Known::Parameters, false),
            Expr::Column { .. } | Expr::Parameter { .. } => return (Known::Rows, false),
            _ => {}
        }
        let (mut known, mut fails) = (Known::Constant, false);
        self.for_each_child(&mut |child| {
            let (of_child, child_fails) = child.parameter_failure(is_known);
            known = known.max(of_child);
            fails |= child_fails;
        });
        fails |= known == Known::Parameters && self.node_may_fail();
        (known, fails)
    }
}

/// What a value depends on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Known {
    Constant,
    Parameters,
    Rows,
}

/// What folds the operands of a node: a context, and the first error so far.
type Folding<'a> = (&'a EvalContext, &'a mut Option<Error>);

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

/// Computes a node whose operands are all constants, if it is immutable. A strict call with a
/// constant NULL among its arguments is NULL, and the others are never computed.
fn compute(node: Expr, context: &EvalContext, failure: &mut Option<Error>) -> Expr {
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
        Err(error) => {
            // What takes long is left to the rows, and so are domains: their constraints change.
            if error.sqlstate != sqlstate::QUERY_CANCELED && !matches!(node, Expr::Domain { .. }) {
                failure.get_or_insert(error);
            }
            node
        }
    }
}

/// Shortens AND (`decisive` false) or OR (`decisive` true).
fn shorten(operands: Vec<Expr>, decisive: bool, (context, failure): Folding<'_>) -> Expr {
    let mut kept = Vec::with_capacity(operands.len());
    let mut unknown = false;
    for operand in operands {
        let operand = operand.fold_noting(context, failure);
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

fn case(
    (branches, otherwise): (Vec<(Expr, Expr)>, Expr),
    data_type: DataType,
    (context, failure): Folding<'_>,
) -> Expr {
    let mut kept = Vec::with_capacity(branches.len());
    let mut last = None;
    for (condition, result) in branches {
        let condition = condition.fold_noting(context, failure);
        match value(&condition) {
            Some(Datum::Bool(true)) => {
                last = Some(result);
                break;
            }
            Some(_) => {}
            None => kept.push((condition, result.fold_noting(context, failure))),
        }
    }
    let last = last.unwrap_or(otherwise).fold_noting(context, failure);
    if kept.is_empty() {
        return last;
    }
    Expr::Case { branches: kept, otherwise: Box::new(last), data_type }
}

fn coalesce(operands: Vec<Expr>, data_type: DataType, (context, failure): Folding<'_>) -> Expr {
    let mut kept = Vec::with_capacity(operands.len());
    for operand in operands {
        let operand = operand.fold_noting(context, failure);
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
