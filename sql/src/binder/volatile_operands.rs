//! Volatile values that an expression reads several times but evaluates once: the operand of a
//! simple CASE, the left side of NULLIF.
//!
//! `CASE random() …` becomes `CASE (SELECT random()) …`, whose value is a column below the
//! expression ([`Rows::place`](crate::binder::rows::Rows::place)), with the guard of the
//! expression. Where subqueries are not allowed, as in DEFAULT, the value is evaluated at each
//! reading.

use types::expr::Expr;

use crate::binder::level::{Binder, Clause, SUBQUERY, SUBQUERY_COLUMN, SubqueryUse};
use crate::binder::set_functions::calls_in;
use crate::binder::tree::for_each_column;
use crate::binder::typed::Typed;
use crate::error::Result;
use crate::logical::{ApplyKind, Logical};

impl SubqueryUse {
    /// Returns the expression of a subquery that is only `(SELECT value)`.
    pub(super) fn as_value(&self) -> Option<&Expr> {
        let Logical::Project { input, expressions } = &self.plan else { return None };
        let Logical::Values { types, rows } = input.as_ref() else { return None };
        let ([(parameter, value)], [Expr::Parameter { index, .. }]) =
            (self.bindings.as_slice(), expressions.as_slice())
        else {
            return None;
        };
        let is_row = types.is_empty() && rows.len() == 1;
        (self.kind == ApplyKind::Scalar && is_row && parameter == index).then_some(value)
    }
}

/// Returns whether a second evaluation of an expression may give another value or has effects,
/// including the values that are evaluated once for it.
pub(super) fn varies(expr: &Expr, subqueries: &[SubqueryUse]) -> bool {
    let mut found = expr.is_volatile();
    for_each_column(expr, &mut |index| {
        if (SUBQUERY..SUBQUERY_COLUMN).contains(&index) {
            let value = subqueries.get(index - SUBQUERY).and_then(SubqueryUse::as_value);
            found |= value.is_some_and(|value| varies(value, subqueries));
        }
    });
    found
}

impl Binder<'_> {
    /// Returns the replacement for a value that is read several times.
    pub(super) fn computed_once(&mut self, value: Typed) -> Result<Typed> {
        let has_place = matches!(
            self.level().clause,
            Clause::Select
                | Clause::Where
                | Clause::Having
                | Clause::OrderBy
                | Clause::Values
                | Clause::ValuesRow
                | Clause::Set
                | Clause::Returning
                | Clause::MergeWhen
                | Clause::Filter
        );
        if !has_place || !value.expr.is_volatile() || !calls_in(&value.expr).is_empty() {
            return Ok(value);
        }
        let (index, data_type) = (self.parameters.outer(), value.expr.data_type().clone());
        let one_row = Logical::Values { types: Vec::new(), rows: vec![Vec::new()] };
        let plan = Logical::Project {
            input: Box::new(one_row),
            expressions: vec![Expr::Parameter { index, data_type: data_type.clone() }],
        };
        let Typed { expr, sql_type, position } = value;
        let bindings = vec![(index, expr)];
        let subquery = SubqueryUse { plan, bindings, kind: ApplyKind::Scalar, position };
        let expr = self.add_subquery(subquery, data_type.clone())?;
        Ok(Typed { expr, sql_type, position })
    }
}
