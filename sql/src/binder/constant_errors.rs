//! Errors of constants: what PostgreSQL raises while it plans a statement, whether or not a row
//! would come to it.
//!
//! The last pass ([`prune`](crate::binder::prune)) folds each expression of a statement and notes
//! here those in which a constant fails. A statement may be bound long before it is planned in
//! PostgreSQL's sense: what is parsed or PREPAREd is planned when it gets values, and then they are
//! constants, too (a custom plan). So expressions that fail by parameters are kept, to be folded
//! with their values; other statements pay nothing for that.
//!
//! Expressions of a subquery count where the expression around it may come to it: its guards are
//! folded first.
//!
//! Source: PostgreSQL's `preprocess_expression` (planner.c) and `eval_const_expressions`
//! (clauses.c).

use types::Datum;
use types::expr::{EvalContext, Expr};

use crate::error::{Error, Result};

/// The errors of a statement's constants, in the order in which they are come upon.
#[derive(Debug, Clone, Default)]
pub struct ConstantErrors {
    failures: Vec<Failure>,
    /// The parameters whose values are known when a statement starts.
    known: KnownParameters,
}

/// The parameters that are not those of subqueries.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownParameters {
    /// How many the client has.
    pub(super) client_count: usize,
    /// Those that stand for variables of a procedural body.
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
    /// What is raised where no values are known.
    error: Option<types::Error>,
    /// What is folded with the values, and the guards around it; `None` if it has no parameters.
    open: Option<(Vec<Expr>, Expr)>,
}

impl ConstantErrors {
    /// Returns that nothing fails.
    pub(super) fn new(known: KnownParameters) -> ConstantErrors {
        ConstantErrors { failures: Vec::new(), known }
    }

    /// Notes an expression that was folded, with the error of a constant in it, if there was one,
    /// and the guards around it.
    pub(super) fn note(&mut self, expr: &Expr, error: Option<types::Error>, guards: &[Expr]) {
        let known = |index| self.known.contains(index);
        if error.is_none() && !expr.may_fail_by_parameters(&known) {
            return;
        }
        let depends = self.known.are_in(expr) || guards.iter().any(|one| self.known.are_in(one));
        let open = depends.then(|| (guards.to_vec(), expr.clone()));
        self.failures.push(Failure { error, open });
    }

    /// Fails if a constant does that is one whatever the values of the parameters are.
    ///
    /// # Errors
    ///
    /// The first such error.
    pub fn check_fixed(&self) -> Result<()> {
        let fixed = self.failures.iter().filter(|failure| failure.open.is_none());
        raise(fixed.filter_map(|failure| failure.error.as_ref()).next())
    }

    /// Fails if a constant does in a plan for any values: that of a function's body.
    ///
    /// # Errors
    ///
    /// The first such error.
    pub fn check_generic(&self) -> Result<()> {
        raise(self.failures.iter().filter_map(|failure| failure.error.as_ref()).next())
    }

    /// Fails if a constant does, with the values of the parameters.
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
        let context = EvalContext::hasty();
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
        drop(expr.clone().with_parameters(&value).fold_noting(&context, &mut failure));
        raise(failure.as_ref())
    }
}

fn raise(error: Option<&types::Error>) -> Result<()> {
    error.map_or(Ok(()), |error| Err(Error::from(error.clone())))
}

/// Returns whether a condition is a constant, and not true.
pub(super) fn is_never_true(condition: &Expr) -> bool {
    matches!(condition, Expr::Constant { value, .. } if *value != Datum::Bool(true))
}
