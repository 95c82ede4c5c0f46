//! Binding of expressions: from the syntax tree to [`types::expr::Expr`].
//!
//! [`Binder::bind_expr`] dispatches on the syntactic form; larger forms have modules of their own.

use std::sync::Arc;

use types::expr::Expr;
use types::interrupt::check_planned;
use types::{DataType, Datum, SqlType};

use crate::ast::constant_run::ConstantRun;
use crate::ast::{self, TruthTest, TypeName};
use crate::binder::arrays::internal;
use crate::binder::level::{Binder, Clause};
use crate::binder::operators::{all_of, any_of, number};
use crate::binder::records::fields_of;
use crate::binder::typed::{Typed, boolean, null};
use crate::catalog::collation;
use crate::error::{Error, Result};

impl Binder<'_> {
    /// Binds an expression over the base row of the current query level.
    #[expect(clippy::too_many_lines, reason = "one arm for each form of expression")]
    pub(super) fn bind_expr(&mut self, expr: &ast::Expr) -> Result<Typed> {
        check_planned()?;
        let value = match expr {
            ast::Expr::Null { position } => {
                Ok(Typed::constant(Datum::Null, DataType::Unknown, *position))
            }
            ast::Expr::Boolean { value, position } => {
                Ok(Typed::boolean(boolean(*value), *position))
            }
            ast::Expr::Number { text, position } => number(text, *position),
            ast::Expr::Constants(run) => Err(
                err!(SYNTAX_ERROR: "a list of constants stands where one value is expected"; at run.position),
            ),
            ast::Expr::String { value, position } => {
                let value = Datum::Text(value.as_str().into());
                Ok(Typed::constant(value, DataType::Unknown, *position))
            }
            ast::Expr::TypedString { type_name, value, position } => {
                let literal = ast::Expr::String { value: value.clone(), position: *position };
                self.bind_cast(&literal, type_name, type_name.position)
            }
            ast::Expr::Parameter { number, position } => {
                let number = usize::try_from(*number).unwrap_or(usize::MAX);
                if let Some(value) = self.parameter_at(number, *position) {
                    return value;
                }
                if let Some(value) = self.numbered_variable(number, *position) {
                    return value;
                }
                let mut value = self.parameters.client(number, *position)?;
                value.expr = self.with_checked_parts(value.expr);
                Ok(value)
            }
            ast::Expr::Column(parts) => self.bind_column(parts),
            ast::Expr::Row { fields, position } => self.bind_row(fields, *position),
            ast::Expr::WholeRow(relation) => self.bind_whole_row(relation),
            ast::Expr::Field { operand, name } => self.bind_field(operand, name),
            ast::Expr::Unary { operator, operand, position } => {
                self.bind_unary(*operator, operand, *position)
            }
            ast::Expr::Binary { operator, left, right, position } => {
                self.bind_binary(*operator, (left, right), *position)
            }
            ast::Expr::And(operands) => {
                Ok(Typed::boolean(Expr::And(self.conditions(operands, "AND")?), expr.position()))
            }
            ast::Expr::Or(operands) => {
                Ok(Typed::boolean(Expr::Or(self.conditions(operands, "OR")?), expr.position()))
            }
            ast::Expr::Not(operand) => {
                let value = self.bind_expr(operand)?;
                let position = value.position;
                let operand = self.condition(value, "NOT")?;
                Ok(Typed::boolean(Expr::Not(Box::new(operand)), position))
            }
            ast::Expr::IsNull { operand, negated } => self.bind_is_null(operand, *negated),
            ast::Expr::IsTruth { operand, test, negated } => {
                self.bind_truth(operand, *test, *negated)
            }
            ast::Expr::IsDistinct { left, right, negated, position } => {
                self.bind_distinct((left, right), *negated, *position)
            }
            ast::Expr::Between { operand, low, high, negated, position } => {
                self.bind_between(operand, (low, high), *negated, *position)
            }
            ast::Expr::InList { operand, list, negated, position } => {
                self.bind_in_list(operand, list, *negated, *position)
            }
            ast::Expr::InSubquery { operand, query, negated, position } => {
                self.bind_in_subquery(operand, query, *negated, *position)
            }
            ast::Expr::Exists(query) => self.bind_exists(query),
            ast::Expr::Subquery(query) => self.bind_scalar_subquery(query),
            ast::Expr::Quantified { left, operator, quantifier, right, position } => {
                self.bind_quantified(left, (*operator, *quantifier), right, *position)
            }
            ast::Expr::Like { kind, operand, pattern, escape, negated, position } => {
                self.bind_like(*kind, (operand, pattern, escape.as_deref()), *negated, *position)
            }
            ast::Expr::Case { operand, branches, otherwise, position } => {
                let bind = |binder: &mut Self| {
                    binder.bind_case(operand.as_deref(), branches, otherwise.as_deref(), *position)
                };
                self.without_sets("CASE", bind)
            }
            ast::Expr::Cast { operand, type_name, position } => {
                self.bind_cast(operand, type_name, *position)
            }
            ast::Expr::Collate { operand, position, .. } => {
                let operand = self.bind_expr(operand)?;
                collation::check(&operand.sql_type, *position)?;
                Ok(operand)
            }
            ast::Expr::Coalesce { operands, position } => {
                let operands =
                    self.without_sets("COALESCE", |binder| binder.bind_list(operands))?;
                let (operands, sql_type) = self.unify(operands, "COALESCE")?;
                let expr = Expr::Coalesce { operands, data_type: sql_type.base.clone() };
                Ok(Typed { expr, sql_type, position: *position })
            }
            ast::Expr::NullIf { left, right, position } => {
                self.bind_null_if(left, right, *position)
            }
            ast::Expr::MinMax { kind, operands, position } => {
                let operands = self.bind_list(operands)?;
                self.bind_min_max(*kind, operands, *position)
            }
            ast::Expr::SqlValue { function, precision, position } => {
                self.bind_sql_value(*function, *precision, *position)
            }
            ast::Expr::Call(call) => self.bind_call(call),
            ast::Expr::Array { elements, position } => self.bind_array(elements, *position),
            ast::Expr::ArraySubquery { query, position } => {
                self.bind_array_subquery(query, *position)
            }
            ast::Expr::Subscript { operand, subscripts } => {
                self.bind_subscripts(operand, subscripts)
            }
        };
        self.note_type(expr, &value);
        value
    }

    /// Binds expressions.
    pub(super) fn bind_list(&mut self, list: &[ast::Expr]) -> Result<Vec<Typed>> {
        list.iter().map(|expr| self.bind_expr(expr)).collect()
    }

    /// Binds a condition of a clause.
    pub(super) fn bind_condition(&mut self, expr: &ast::Expr, clause: Clause) -> Result<Expr> {
        self.level().clause = clause;
        let value = self.bind_expr(expr)?;
        let place = if clause == Clause::JoinOn { "JOIN/ON" } else { clause.name() };
        self.condition(value, place)
    }

    fn conditions(&mut self, operands: &[ast::Expr], place: &str) -> Result<Vec<Expr>> {
        let bind = |operand| {
            let value = self.bind_expr(operand)?;
            self.condition(value, place)
        };
        operands.iter().map(bind).collect()
    }

    fn bind_cast(
        &mut self,
        operand: &ast::Expr,
        type_name: &TypeName,
        position: usize,
    ) -> Result<Typed> {
        let sql_type = self.catalog.type_named(type_name, self.search_path())?;
        if let (ast::Expr::Array { elements, position: start }, Some(element)) =
            (operand, self.catalog.element_of(&sql_type))
        {
            let below = sql_type.domain_array_type();
            let array = self.bind_array_as(elements, &element, &below, *start)?;
            let expr = self.explicit(array, &sql_type, position)?;
            return Ok(Typed { expr, sql_type, position: *start });
        }
        let value = self.bind_expr(operand)?;
        let start = value.position.min(position);
        if sql_type.base.is_polymorphic() && !value.is_unknown() {
            return self.as_pseudo_type(value, &sql_type, position);
        }
        let value = self.phoenix_cast(value, &sql_type.base)?;
        let expr = self.explicit(value, &sql_type, position)?;
        Ok(Typed { expr, sql_type, position: start })
    }

    /// Casts to a pseudo-type, which only checks the kind of the value's type.
    fn as_pseudo_type(&mut self, value: Typed, to: &SqlType, position: usize) -> Result<Typed> {
        let base = value.base();
        let is_kind = match to.base {
            DataType::AnyArray | DataType::CompatibleArray => base.element().is_some(),
            DataType::AnyNonArray | DataType::CompatibleNonArray => base.element().is_none(),
            DataType::AnyEnum => matches!(base, DataType::Enum(_)),
            _ => true,
        };
        if !is_kind {
            self.explicit(value, to, position)?;
            bail!(CANNOT_COERCE: "no value has a pseudo-type");
        }
        Ok(value)
    }

    fn bind_is_null(&mut self, operand: &ast::Expr, negated: bool) -> Result<Typed> {
        // A row IS NULL if all fields are NULL, and IS NOT NULL if none is.
        if let ast::Expr::Row { fields, position } = operand {
            let fields = self.bind_list(fields)?.into_iter();
            let test = |field: Typed| negate(Expr::IsNull(Box::new(field.expr)), negated);
            return Ok(Typed::boolean(all_of(fields.map(test).collect()), *position));
        }
        let value = self.bind_expr(operand)?;
        let position = value.position;
        let Some((_, values)) = fields_of(&value.expr) else {
            let expr = match (value.base().is_row(), negated) {
                (true, false) => internal(" is null row", vec![value.expr], DataType::Bool),
                (true, true) => internal(" is full row", vec![value.expr], DataType::Bool),
                _ => negate(Expr::IsNull(Box::new(value.expr)), negated),
            };
            return Ok(Typed::boolean(expr, position));
        };
        // A row is NULL if all of its fields are, and NOT NULL if none is.
        let field = |field: &Expr| negate(Expr::IsNull(Box::new(field.clone())), negated);
        let expr = all_of(values.iter().map(field).collect());
        Ok(Typed::boolean(expr, position))
    }

    fn bind_truth(&mut self, operand: &ast::Expr, test: TruthTest, negated: bool) -> Result<Typed> {
        let value = self.bind_expr(operand)?;
        let position = value.position;
        let place = match (test, negated) {
            (TruthTest::True, false) => "IS TRUE",
            (TruthTest::True, true) => "IS NOT TRUE",
            (TruthTest::False, false) => "IS FALSE",
            (TruthTest::False, true) => "IS NOT FALSE",
            (TruthTest::Unknown, false) => "IS UNKNOWN",
            (TruthTest::Unknown, true) => "IS NOT UNKNOWN",
        };
        let left = Box::new(self.condition(value, place)?);
        let expr = match test {
            TruthTest::Unknown => negate(Expr::IsNull(left), negated),
            TruthTest::True | TruthTest::False => {
                let right = Box::new(boolean(test == TruthTest::True));
                Expr::IsDistinct { left, right, negated: !negated }
            }
        };
        Ok(Typed::boolean(expr, position))
    }

    fn bind_distinct(
        &mut self,
        sides: (&ast::Expr, &ast::Expr),
        negated: bool,
        position: usize,
    ) -> Result<Typed> {
        if let (ast::Expr::Row { fields: left, .. }, ast::Expr::Row { fields: right, .. }) = sides {
            if left.len() != right.len() {
                bail!(SYNTAX_ERROR: "unequal number of entries in row expressions"; at position);
            }
            let pairs = left.iter().zip(right);
            let distinct = pairs.map(|pair| Ok(self.bind_distinct(pair, false, position)?.expr));
            let distinct = any_of(distinct.collect::<Result<_>>()?);
            return Ok(Typed::boolean(negate(distinct, negated), sides.0.position()));
        }
        let left = self.bind_expr(sides.0)?;
        let right = self.bind_expr(sides.1)?;
        let start = left.position;
        let expr = self.operator("=", left, right, position)?.expr;
        if let Expr::Call { arguments, .. } = &expr
            && arguments.iter().any(|side| !side.data_type().has_equality())
        {
            return Ok(Typed::boolean(negate(differ_by(expr), negated), start));
        }
        let Expr::Call { function, mut arguments, .. } = expr else {
            return Err(Error::not_supported(
                "IS DISTINCT FROM of these types",
                "Cast the operands to a common type.",
            ));
        };
        let signature = types::function::signature(function);
        let (Some(right), Some(left)) = (arguments.pop(), arguments.pop()) else {
            return Err(Error::not_supported(
                "IS DISTINCT FROM of these types",
                "Cast the operands to a common type.",
            ));
        };
        let (left, right) = if signature.arguments.first() == signature.arguments.last() {
            (left, right)
        } else {
            let both = vec![
                Typed::new(left, signature.arguments[0].clone(), start),
                Typed::new(right, signature.arguments[1].clone(), start),
            ];
            let (mut both, _) = self.unify(both, "IS DISTINCT FROM")?;
            let right = both.pop().unwrap_or_else(|| null(DataType::Text));
            (both.pop().unwrap_or_else(|| null(DataType::Text)), right)
        };
        let expr = Expr::IsDistinct { left: Box::new(left), right: Box::new(right), negated };
        Ok(Typed::boolean(expr, start))
    }

    fn bind_between(
        &mut self,
        operand: &ast::Expr,
        bounds: (&ast::Expr, &ast::Expr),
        negated: bool,
        position: usize,
    ) -> Result<Typed> {
        if let (ast::Expr::Row { .. }, ast::Expr::Row { .. }, ast::Expr::Row { .. }) =
            (operand, bounds.0, bounds.1)
        {
            let above = (operand, bounds.0);
            let above = self.bind_binary(ast::BinaryOperator::GreaterOrEqual, above, position)?;
            let below = (operand, bounds.1);
            let below = self.bind_binary(ast::BinaryOperator::LessOrEqual, below, position)?;
            let both = Expr::And(vec![above.expr, below.expr]);
            return Ok(Typed::boolean(negate(both, negated), operand.position()));
        }
        let value = self.bind_expr(operand)?;
        let low = self.bind_expr(bounds.0)?;
        let high = self.bind_expr(bounds.1)?;
        let start = value.position;
        let (first, second) = if negated { ("<", ">") } else { (">=", "<=") };
        let above = self.operator(first, value.clone(), low, position)?.expr;
        let below = self.operator(second, value, high, position)?.expr;
        let both = vec![above, below];
        let expr = if negated { Expr::Or(both) } else { Expr::And(both) };
        Ok(Typed::boolean(expr, start))
    }

    fn bind_in_list(
        &mut self,
        operand: &ast::Expr,
        list: &[ast::Expr],
        negated: bool,
        position: usize,
    ) -> Result<Typed> {
        if let [ast::Expr::Constants(run)] = list {
            return self.bind_in_run(operand, run, negated, position);
        }
        if let ast::Expr::Row { fields, .. } = operand {
            let left = self.bind_list(fields)?;
            let mut rows = Vec::new();
            for row in list {
                let ast::Expr::Row { fields, .. } = row else {
                    bail!(DATATYPE_MISMATCH: "a row can only be compared with rows"; at row.position());
                };
                let right = self.bind_list(fields)?;
                let equal = ast::BinaryOperator::Equal;
                rows.push(self.compare_rows(equal, left.clone(), right, position)?.expr);
            }
            return Ok(Typed::boolean(negate(any_of(rows), negated), operand.position()));
        }
        let value = self.bind_expr(operand)?;
        let start = value.position;
        let list = self.bind_list(list)?;
        if negated && !value.base().has_equality() {
            let differs = |one| Ok(self.operator("<>", value.clone(), one, position)?.expr);
            let each = list.into_iter().map(differs).collect::<Result<_>>()?;
            return Ok(Typed::boolean(all_of(each), start));
        }
        let expr = self.in_list(value, list, position)?;
        Ok(Typed::boolean(negate(expr, negated), start))
    }

    fn bind_in_run(
        &mut self,
        operand: &ast::Expr,
        run: &ConstantRun,
        negated: bool,
        position: usize,
    ) -> Result<Typed> {
        if !matches!(operand, ast::Expr::Row { .. }) {
            let value = self.bind_expr(operand)?;
            let start = value.position;
            if let Some(expr) = self.in_run(&value, run)? {
                return Ok(Typed::boolean(negate(expr, negated), start));
            }
        }
        let list: Vec<ast::Expr> = run.rows().flatten().collect();
        self.bind_in_list(operand, &list, negated, position)
    }

    /// Returns `value IN (list)`.
    pub(super) fn in_list(
        &mut self,
        value: Typed,
        list: Vec<Typed>,
        position: usize,
    ) -> Result<Expr> {
        let list = match list.len() {
            1 => {
                let equal = list
                    .into_iter()
                    .map(|one| Ok(self.operator("=", value.clone(), one, position)?.expr));
                return Ok(all_of(equal.collect::<Result<_>>()?));
            }
            _ => narrowed(&value, list),
        };
        let mut all = Vec::with_capacity(list.len() + 1);
        all.push(value);
        all.extend(list);
        let probe = crate::binder::coercion::common_type(&all, "IN");
        // Arrays are compared with each element separately.
        let comparable = probe.as_ref().is_ok_and(|common| {
            common.element().is_none()
                && common.has_equality()
                && matches!(
                    crate::binder::overload_resolution::resolve_operator(
                        "=",
                        &[common.clone(), common.clone()]
                    ),
                    crate::binder::overload_resolution::Match::One(_)
                )
        });
        if !comparable {
            let mut all = all.into_iter();
            let Some(value) = all.next() else { return Ok(boolean(false)) };
            let each = all.map(|one| Ok(self.operator("=", value.clone(), one, position)?.expr));
            return Ok(any_of(each.collect::<Result<_>>()?));
        }
        let mut common = probe?;
        if common == DataType::Varchar {
            common = DataType::Text;
        }
        let cast = all.into_iter().map(|one| self.implicit(one, &common));
        let mut cast = cast.collect::<Result<Vec<Expr>>>()?;
        let operand = Box::new(cast.remove(0));
        Ok(Expr::InList { operand, list: Arc::new(cast) })
    }

    fn bind_case(
        &mut self,
        operand: Option<&ast::Expr>,
        branches: &[(ast::Expr, ast::Expr)],
        otherwise: Option<&ast::Expr>,
        position: usize,
    ) -> Result<Typed> {
        let operand = operand.map(|operand| self.bind_expr(operand)).transpose()?;
        let operand = operand.map(|value| self.resolve_unknown(value)).transpose()?;
        let operand = operand.map(|value| self.computed_once(value)).transpose()?;
        let mut conditions = Vec::new();
        let mut results = Vec::new();
        for (condition, result) in branches {
            let at = condition.position();
            let condition = self.bind_expr(condition)?;
            conditions.push(match &operand {
                Some(value) => self.operator("=", value.clone(), condition, at)?.expr,
                None => self.condition(condition, "CASE/WHEN")?,
            });
            results.push(self.bind_expr(result)?);
        }
        let otherwise = match otherwise {
            Some(otherwise) => self.bind_expr(otherwise)?,
            None => Typed::constant(Datum::Null, DataType::Unknown, position),
        };
        let mut all = vec![otherwise];
        all.extend(results);
        let (mut all, sql_type) = self.unify(all, "CASE")?;
        let otherwise = Box::new(all.remove(0));
        let branches = conditions.into_iter().zip(all).collect();
        let expr = Expr::Case { branches, otherwise, data_type: sql_type.base.clone() };
        Ok(Typed { expr, sql_type, position })
    }

    fn bind_null_if(
        &mut self,
        left: &ast::Expr,
        right: &ast::Expr,
        position: usize,
    ) -> Result<Typed> {
        let left = self.bind_expr(left)?;
        let left = self.computed_once(left)?;
        let right = self.bind_expr(right)?;
        let modifier = left.sql_type.clone();
        let equal = self.operator("=", left, right, position)?.expr;
        // NULLIF returns the left side as converted for the comparison.
        let value = match &equal {
            Expr::Call { arguments, .. } => arguments.first().cloned(),
            _ => None,
        };
        let value = value.unwrap_or_else(|| null(DataType::Text));
        let data_type = value.data_type().clone();
        let is_same = modifier.base == data_type;
        let sql_type = if is_same { modifier } else { SqlType::from(&data_type) };
        let branches = vec![(equal, null(&data_type))];
        let expr = Expr::Case { branches, otherwise: Box::new(value), data_type };
        Ok(Typed { expr, sql_type, position })
    }
}

/// Returns `IS DISTINCT FROM` for the sides of an `=`.
fn differ_by(equality: Expr) -> Expr {
    let Expr::Call { arguments, .. } = &equality else { return negate(equality, true) };
    let is_null = |side: usize| Expr::IsNull(Box::new(arguments[side].clone()));
    let branches = vec![(is_null(0), negate(is_null(1), true)), (is_null(1), boolean(true))];
    let otherwise = Box::new(negate(equality, true));
    Expr::Case { branches, otherwise, data_type: DataType::Bool }
}

/// Returns an expression or its negation.
pub(super) fn negate(expr: Expr, negated: bool) -> Expr {
    if negated { Expr::Not(Box::new(expr)) } else { expr }
}

/// Converts integer constants to the type of the compared value if they fit, so that the value
/// itself needs no cast.
fn narrowed(value: &Typed, list: Vec<Typed>) -> Vec<Typed> {
    let fits = |one: &Typed| match &one.expr {
        Expr::Constant { value: constant, .. } => narrow(constant, value.base()),
        _ => None,
    };
    let Some(narrow) = list.iter().map(fits).collect::<Option<Vec<Datum>>>() else { return list };
    let constant =
        |(datum, one): (Datum, Typed)| Typed::constant(datum, value.base(), one.position);
    narrow.into_iter().zip(list).map(constant).collect()
}

pub(super) fn narrow(constant: &Datum, to: &DataType) -> Option<Datum> {
    let wide = match constant {
        Datum::Int2(value) => i64::from(*value),
        Datum::Int4(value) => i64::from(*value),
        Datum::Int8(value) => *value,
        _ => return None,
    };
    match to {
        DataType::Int2 => i16::try_from(wide).ok().map(Datum::Int2),
        DataType::Int4 => i32::try_from(wide).ok().map(Datum::Int4),
        DataType::Int8 => Some(Datum::Int8(wide)),
        _ => None,
    }
}
