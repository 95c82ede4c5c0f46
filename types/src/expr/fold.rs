//! Constant folding at plan time.

use super::{CompareOp, EvalContext, Expr};
use crate::cast;
use crate::datatype::DataType;
use crate::datetime::{MICROS_PER_DAY, is_finite_timestamp};
use crate::datum::Datum;
use crate::error::{Error, sqlstate};
use crate::function::{self, Volatility};

impl Expr {
    /// Returns the expression with immutable calls on constants computed, and with AND, OR, CASE
    /// and COALESCE simplified where a constant decides.
    ///
    /// A node that raises an error is left unchanged.
    #[must_use]
    pub fn fold(self, context: &EvalContext) -> Expr {
        self.fold_with_error(context, &mut None)
    }

    /// As [`Expr::fold`]; stores the first error of a constant expression in `failure` if it is
    /// `None`.
    ///
    /// The constants that are computed, and their order, are those of PostgreSQL's planner
    /// (`eval_const_expressions`, clauses.c): from left to right. Operands after the constant
    /// that decides an AND, OR, CASE or COALESCE are skipped. Reachability of a branch is
    /// considered only if a constant decides it.
    #[must_use]
    pub fn fold_with_error(self, context: &EvalContext, failure: &mut Option<Error>) -> Expr {
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
                let folded =
                    other.map_children(&mut |child| child.fold_with_error(context, failure));
                dated(compute(folded, context, failure))
            }
        }
    }

    /// Returns the expression with parameters replaced by their values, if they have one.
    #[must_use]
    pub fn with_parameters(self, value: &dyn Fn(usize) -> Option<Datum>) -> Expr {
        self.transform(&mut |node| match node {
            Expr::Parameter { index, data_type } => match value(index) {
                Some(value) => Expr::constant(value, data_type),
                None => Expr::Parameter { index, data_type },
            },
            other => other,
        })
    }

    /// Returns whether a part becomes constant when these parameters are known, and may then
    /// fail.
    pub fn may_fail_by_parameters(&self, is_known: &dyn Fn(usize) -> bool) -> bool {
        self.has_parameters() && self.parameter_failure(is_known).1
    }

    /// Returns the dependency of the value, and whether a part that depends only on parameters
    /// may fail.
    fn parameter_failure(&self, is_known: &dyn Fn(usize) -> bool) -> (Dependency, bool) {
        match self {
            Expr::Constant { .. } => return (Dependency::Constant, false),
            Expr::Parameter { index, .. } if is_known(*index) => {
                return (Dependency::Parameters, false);
            }
            Expr::Column { .. } | Expr::Parameter { .. } => return (Dependency::Rows, false),
            _ => {}
        }
        let (mut known, mut fails) = (Dependency::Constant, false);
        self.for_each_child(&mut |child| {
            let (of_child, child_fails) = child.parameter_failure(is_known);
            known = known.max(of_child);
            fails |= child_fails;
        });
        fails |= known == Dependency::Parameters && self.node_may_fail();
        (known, fails)
    }
}

/// Dependency of a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Dependency {
    Constant,
    Parameters,
    Rows,
}

/// State of folding the operands of a node: the context, and the first error.
type Folding<'a> = (&'a EvalContext, &'a mut Option<Error>);

/// Rewrites a comparison of a date with a constant timestamp as a comparison of two dates, which
/// is faster and can be a bound of a date key.
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
        // No day begins at that time.
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

/// Returns whether the expression depends on nothing but is not a constant because it raises an
/// error.
fn is_failing_constant(expr: &Expr) -> bool {
    value(expr).is_none()
        && expr.is_immutable()
        && !expr.has_parameters()
        && expr.columns().is_empty()
}

/// Computes an immutable node whose operands are constants. A strict call with a constant NULL
/// argument is NULL, and its other arguments are not computed.
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
            value(operand).is_some() && cast::is_foldable(from, &to.base)
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
            // Long computations are left to the execution, and so are domains, whose constraints
            // may change.
            if error.sqlstate != sqlstate::QUERY_CANCELED && !matches!(node, Expr::Domain { .. }) {
                failure.get_or_insert(error);
            }
            node
        }
    }
}

/// Simplifies AND (`decisive` false) or OR (`decisive` true).
fn shorten(operands: Vec<Expr>, decisive: bool, (context, failure): Folding<'_>) -> Expr {
    let mut kept = Vec::with_capacity(operands.len());
    let mut unknown = false;
    for operand in operands {
        let operand = operand.fold_with_error(context, failure);
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
        let condition = condition.fold_with_error(context, failure);
        match value(&condition) {
            Some(Datum::Bool(true)) => {
                last = Some(result);
                break;
            }
            Some(_) => {}
            None => kept.push((condition, result.fold_with_error(context, failure))),
        }
    }
    let last = last.unwrap_or(otherwise).fold_with_error(context, failure);
    if kept.is_empty() {
        return last;
    }
    Expr::Case { branches: kept, otherwise: Box::new(last), data_type }
}

fn coalesce(operands: Vec<Expr>, data_type: DataType, (context, failure): Folding<'_>) -> Expr {
    let mut kept = Vec::with_capacity(operands.len());
    for operand in operands {
        let operand = operand.fold_with_error(context, failure);
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
