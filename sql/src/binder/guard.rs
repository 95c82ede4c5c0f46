//! Guards: the conditions under which an expression evaluates the subqueries in it.
//!
//! ```text
//! CASE WHEN a THEN (s1) WHEN b THEN (s2) ELSE (s3) END
//!   s1: a      s2: a is not true, b      s3: a is not true, b is not true
//! COALESCE(a, (s))        a is NULL
//! a AND (s)               a is not false
//! a OR (s), a IN (b, (s)) a, or a = b, is not true
//! ```
//!
//! A subquery is evaluated in an Apply node below the expression
//! ([`Rows::place`](crate::binder::rows::Rows::place)), only for the rows for which its guard is
//! true. Volatile or long subexpressions of a guard are computed once, in a column that both the
//! guard and the expression read.

use types::Datum;
use types::expr::Expr;

use crate::binder::level::{SUBQUERY, SUBQUERY_COLUMN};
use crate::binder::tree::{conjunction, for_each_column};
use crate::binder::typed::boolean;

/// The maximum number of nodes of an expression that is evaluated twice: in the guard, and in the
/// expression.
const NODES_MAX: usize = 64;

/// The maximum number of conditions of a guard before they are combined into one column.
const TERMS_MAX: usize = 8;

/// The conditions, over a row, under which an expression is evaluated; none: always.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Guard(Vec<Expr>);

impl Guard {
    /// Returns the guard of an expression that is evaluated where a condition is true.
    pub(super) fn of(condition: Expr) -> Guard {
        Guard::default().and(condition)
    }

    /// Returns the guard with another condition. A condition over columns of a subquery, which
    /// only the subquery's comparison can read, is left out.
    pub(super) fn and(&self, condition: Expr) -> Guard {
        let mut terms = self.0.clone();
        if !is_of_subquery(&condition) {
            terms.push(condition);
        }
        Guard(terms)
    }

    /// Returns the condition; `None` if there is none.
    pub(super) fn condition(&self) -> Option<Expr> {
        qualification(self.0.clone())
    }

    /// Returns whether all rows for which `self` is true also satisfy `other`.
    pub(super) fn is_within(&self, other: &Guard) -> bool {
        other.0.iter().all(|term| self.0.contains(term))
    }

    /// Returns whether it has too many conditions, which then are to be combined into one column.
    pub(super) fn is_long(&self) -> bool {
        self.0.len() > TERMS_MAX
    }

    /// Returns an expression that is evaluated where the guard is true, and is NULL elsewhere.
    pub(super) fn guarded(&self, expr: Expr) -> Expr {
        match self.condition() {
            None => expr,
            Some(condition) => {
                let data_type = expr.data_type().clone();
                let otherwise = Box::new(Expr::constant(Datum::Null, &data_type));
                Expr::Case {
                    branches: vec![(condition, expr)],
                    otherwise,
                    data_type: data_type.clone(),
                }
            }
        }
    }
}

/// Returns the conjunction as PostgreSQL evaluates a qualification: it ends at the first condition
/// that is not true, while AND evaluates the operands behind a NULL. `None` if the list is empty.
pub(super) fn qualification(list: Vec<Expr>) -> Option<Expr> {
    let matters = |expr: &Expr| {
        let mut found = expr.may_fail() || expr.is_volatile();
        for_each_column(expr, &mut |index| found |= index >= SUBQUERY);
        found
    };
    let last = list.iter().rposition(matters).unwrap_or(0);
    let ends = |(at, expr): (usize, Expr)| match &expr {
        Expr::IsDistinct { .. } | Expr::IsNull(_) => expr,
        _ if at >= last => expr,
        _ => is_true(expr),
    };
    conjunction(list.into_iter().enumerate().map(ends).collect())
}

fn is_of_subquery(expr: &Expr) -> bool {
    let mut found = false;
    for_each_column(expr, &mut |index| found |= index >= SUBQUERY_COLUMN);
    found
}

/// Returns whether a subexpression of a guard becomes a column: it is volatile, has side effects,
/// or is long.
pub(super) fn is_computed_once(expr: &Expr) -> bool {
    let mut nodes = 0;
    expr.walk(&mut |_| nodes += 1);
    (expr.is_session_only() || nodes > NODES_MAX) && !is_of_subquery(expr)
}

/// `expr IS TRUE`
fn is_true(expr: Expr) -> Expr {
    Expr::IsDistinct { left: Box::new(expr), right: Box::new(boolean(true)), negated: true }
}

/// `expr IS NOT TRUE`
pub(super) fn is_not_true(expr: Expr) -> Expr {
    is_other_than(expr, true)
}

/// `expr IS NOT FALSE`
pub(super) fn is_not_false(expr: Expr) -> Expr {
    is_other_than(expr, false)
}

fn is_other_than(expr: Expr, value: bool) -> Expr {
    Expr::IsDistinct { left: Box::new(expr), right: Box::new(boolean(value)), negated: false }
}

/// `expr IS NULL`
pub(super) fn is_null(expr: Expr) -> Expr {
    Expr::IsNull(Box::new(expr))
}
