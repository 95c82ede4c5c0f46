//! Errors of constant folding, which PostgreSQL raises at planning even if no row would evaluate
//! the expression.
//!
//! The last pass ([`prune`](crate::binder::prune)) folds each expression of a statement and
//! records here those in which a constant subexpression fails. A statement may be bound long
//! before PostgreSQL would plan it: a prepared statement is planned when its parameters have
//! values, which then are constants, too (a custom plan). So expressions that may fail with
//! certain parameter values are stored, and folded again with the values; other statements have no
//! such cost.
//!
//! An expression of a subquery counts only if the enclosing expression may evaluate the subquery:
//! its guards are folded first.
//!
//! Source: PostgreSQL's `preprocess_expression` (planner.c) and `eval_const_expressions`
//! (clauses.c).

use types::Datum;
use types::expr::{EvalContext, Expr};

use crate::error::{Error, Result};

/// The errors of a statement's constants, in the order of folding.
#[derive(Debug, Clone, Default)]
pub struct ConstantErrors {
    failures: Vec<Failure>,
    /// The parameters whose values are known when the statement starts.
    known: KnownParameters,
}

/// The parameters that are not outer references of subqueries.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownParameters {
    /// The number of parameters of the client.
    pub(super) client_count: usize,
    /// The parameters that stand for PL/pgSQL variables.
    pub(super) variables: Vec<usize>,
}

impl KnownParameters {
    fn contains(&self, index: usize) -> bool {
        index < self.client_count || self.variables.contains(&index)
    }

    fn are_in(&self, expr: &Expr) -> bool {
        expr.has_parameter(&|index| self.contains(index))
    }
}

#[derive(Debug, Clone)]
struct Failure {
    /// The error without parameter values.
    error: Option<types::Error>,
    /// The guards and the expression to fold with the values; `None` if they use no parameters.
    open: Option<(Vec<Expr>, Expr)>,
}

impl ConstantErrors {
    /// Returns a list without errors.
    pub(super) fn new(known: KnownParameters) -> ConstantErrors {
        ConstantErrors { failures: Vec::new(), known }
    }

    /// Records a folded expression, with its error if it failed and its guards.
    pub(super) fn note(&mut self, expr: &Expr, error: Option<types::Error>, guards: &[Expr]) {
        let known = |index| self.known.contains(index);
        if error.is_none() && !expr.may_fail_by_parameters(&known) {
            return;
        }
        let depends = self.known.are_in(expr) || guards.iter().any(|one| self.known.are_in(one));
        let open = depends.then(|| (guards.to_vec(), expr.clone()));
        self.failures.push(Failure { error, open });
    }

    /// Raises the first error of an expression that uses no parameters.
    ///
    /// # Errors
    ///
    /// The first such error.
    pub fn check_fixed(&self) -> Result<()> {
        let fixed = self.failures.iter().filter(|failure| failure.open.is_none());
        raise(fixed.filter_map(|failure| failure.error.as_ref()).next())
    }

    /// Raises the first error of a generic plan, which has no parameter values: for the body of a
    /// function.
    ///
    /// # Errors
    ///
    /// The first such error.
    pub fn check_generic(&self) -> Result<()> {
        raise(self.failures.iter().filter_map(|failure| failure.error.as_ref()).next())
    }

    /// Raises the first error with the values of the parameters.
    ///
    /// # Errors
    ///
    /// The first such error.
    pub fn check(&self, values: &[Datum]) -> Result<()> {
        self.failures.iter().try_for_each(|failure| match &failure.open {
            None => raise(failure.error.as_ref()),
            Some((guards, expr)) => self.check_open((guards, expr), values),
        })
    }

    fn check_open(&self, (guards, expr): (&[Expr], &Expr), values: &[Datum]) -> Result<()> {
        let context = EvalContext::planning();
        let value = |index| match self.known.contains(index) {
            true => values.get(index).cloned(),
            false => None,
        };
        let mut failure = None;
        for guard in guards {
            let guard = guard.clone().with_parameters(&value).fold(&context);
            if is_never_true(&guard) {
                return Ok(());
            }
        }
        drop(expr.clone().with_parameters(&value).fold_with_error(&context, &mut failure));
        raise(failure.as_ref())
    }
}

fn raise(error: Option<&types::Error>) -> Result<()> {
    error.map_or(Ok(()), |error| Err(Error::from(error.clone())))
}

/// Returns whether a condition is a constant other than true.
pub(super) fn is_never_true(condition: &Expr) -> bool {
    matches!(condition, Expr::Constant { value, .. } if *value != Datum::Bool(true))
}
