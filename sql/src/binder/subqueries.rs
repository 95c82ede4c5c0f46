//! Subqueries in expressions: scalar, EXISTS, IN, ANY and ALL.

use types::expr::Expr;
use types::{DataType, Datum};

use crate::ast::{self, ArraySource, BinaryOperator, Quantifier};
use crate::binder::bound_query::BoundQuery;
use crate::binder::expressions::negate;
use crate::binder::level::{Binder, SUBQUERY, SUBQUERY_COLUMN, SubqueryUse};
use crate::binder::operators::{all_of, any_of};
use crate::binder::typed::{Typed, boolean};
use crate::error::{Error, Result, sqlstate};
use crate::logical::ApplyKind;

impl Binder<'_> {
    /// Binds a query below the level at hand and returns it with what it takes from that level.
    fn bind_below(&mut self, query: &ast::Query) -> Result<(BoundQuery, Vec<(usize, Expr)>)> {
        let outer = std::mem::take(&mut self.level().open_bindings);
        let bound = self.without_recursion("within a subquery", |b| b.bind_query(query, true));
        let bindings = std::mem::replace(&mut self.level().open_bindings, outer);
        Ok((bound?, bindings))
    }

    fn add_subquery(&mut self, subquery: SubqueryUse, data_type: DataType) -> Expr {
        let subqueries = &mut self.level().subqueries;
        subqueries.push(subquery);
        Expr::Column { index: SUBQUERY + subqueries.len() - 1, data_type }
    }

    /// Binds `(query)` as a value.
    pub(super) fn bind_scalar_subquery(&mut self, query: &ast::Query) -> Result<Typed> {
        let (bound, bindings) = self.bind_below(query)?;
        let position = query.position;
        let [column] = bound.columns.as_slice() else {
            let message = "subquery must return only one column";
            return Err(Error::new(sqlstate::SYNTAX_ERROR, message).at(position));
        };
        let sql_type = column.sql_type;
        let plan = bound.plan;
        let subquery = SubqueryUse { plan, bindings, kind: ApplyKind::Scalar, position };
        let expr = self.add_subquery(subquery, sql_type.base);
        Ok(Typed { expr, sql_type, position })
    }

    /// Binds `(query)` as one value for each of its columns.
    pub(super) fn bind_columns_subquery(&mut self, query: &ast::Query) -> Result<Vec<Typed>> {
        let (bound, bindings) = self.bind_below(query)?;
        let position = query.position;
        let mut values = Vec::new();
        for (index, column) in bound.columns.iter().enumerate() {
            let data_type = column.sql_type.base;
            let plan = crate::logical::Logical::Project {
                input: Box::new(bound.plan.clone()),
                expressions: vec![Expr::Column { index, data_type }],
            };
            let bindings = bindings.clone();
            let subquery = SubqueryUse { plan, bindings, kind: ApplyKind::Scalar, position };
            let expr = self.add_subquery(subquery, data_type);
            values.push(Typed { expr, sql_type: column.sql_type, position });
        }
        Ok(values)
    }

    /// Binds `EXISTS (query)`.
    pub(super) fn bind_exists(&mut self, query: &ast::Query) -> Result<Typed> {
        let (bound, bindings) = self.bind_below(query)?;
        let (plan, position) = (bound.plan, query.position);
        let subquery = SubqueryUse { plan, bindings, kind: ApplyKind::Exists, position };
        Ok(Typed::boolean(self.add_subquery(subquery, DataType::Bool), position))
    }

    /// Binds `operand [NOT] IN (query)`.
    pub(super) fn bind_in_subquery(
        &mut self,
        operand: &ast::Expr,
        query: &ast::Query,
        negated: bool,
        position: usize,
    ) -> Result<Typed> {
        let pair = (BinaryOperator::Equal, Quantifier::Any);
        let value = self.bind_compared(operand, pair, query, position)?;
        Ok(Typed::boolean(negate(value.expr, negated), position))
    }

    fn bind_compared(
        &mut self,
        operand: &ast::Expr,
        (operator, quantifier): (BinaryOperator, Quantifier),
        query: &ast::Query,
        position: usize,
    ) -> Result<Typed> {
        let left = match operand {
            ast::Expr::Row { fields, .. } => self.bind_list(fields)?,
            other => vec![self.bind_expr(other)?],
        };
        let (bound, bindings) = self.bind_below(query)?;
        if bound.columns.len() != left.len() {
            let many = if bound.columns.len() > left.len() { "many" } else { "few" };
            let message = format!("subquery has too {many} columns");
            return Err(Error::new(sqlstate::SYNTAX_ERROR, message).at(position));
        }
        let right = bound.columns.iter().enumerate().map(|(index, column)| Typed {
            expr: Expr::Column { index: SUBQUERY_COLUMN + index, data_type: column.sql_type.base },
            sql_type: column.sql_type,
            position: query.position,
        });
        let mut right: Vec<Typed> = right.collect();
        let start = left.first().map_or(position, |value| value.position);
        let comparison = if let ast::Expr::Row { .. } = operand {
            self.compare_rows(operator, left, right, position)?
        } else {
            let (Some(left), Some(right)) = (left.into_iter().next(), right.pop()) else {
                let message = "subquery has too few columns";
                return Err(Error::new(sqlstate::SYNTAX_ERROR, message).at(position));
            };
            self.operator(operator.symbol(), left, right, position)?
        };
        let comparison = self.condition(comparison, "ANY")?;
        let kind = match quantifier {
            Quantifier::Any => ApplyKind::Any { comparison },
            Quantifier::All => ApplyKind::All { comparison },
        };
        let subquery = SubqueryUse { plan: bound.plan, bindings, kind, position };
        Ok(Typed::boolean(self.add_subquery(subquery, DataType::Bool), start))
    }

    /// Binds `left operator ANY|ALL (…)`.
    pub(super) fn bind_quantified(
        &mut self,
        left: &ast::Expr,
        (operator, quantifier): (BinaryOperator, Quantifier),
        right: &ArraySource,
        position: usize,
    ) -> Result<Typed> {
        let elements = match right {
            ArraySource::Subquery(query) => {
                return self.bind_compared(left, (operator, quantifier), query, position);
            }
            ArraySource::Elements(elements) => self.bind_list(elements)?,
            ArraySource::Value(value) => array_elements(value)?,
        };
        let left = self.bind_expr(left)?;
        let start = left.position;
        let expr = match (operator, quantifier) {
            _ if elements.is_empty() => boolean(quantifier == Quantifier::All),
            (BinaryOperator::Equal, Quantifier::Any) => self.in_list(left, elements, position)?,
            (BinaryOperator::NotEqual, Quantifier::All) => {
                negate(self.in_list(left, elements, position)?, true)
            }
            _ => {
                let compare = |one| {
                    let value = self.operator(operator.symbol(), left.clone(), one, position)?;
                    self.condition(value, "ANY")
                };
                let list = elements.into_iter().map(compare).collect::<Result<Vec<Expr>>>()?;
                if quantifier == Quantifier::Any { any_of(list) } else { all_of(list) }
            }
        };
        Ok(Typed::boolean(expr, start))
    }
}

/// Returns the elements of `'{a,b}'`.
fn array_elements(value: &ast::Expr) -> Result<Vec<Typed>> {
    let position = value.position();
    let ast::Expr::String { value: text, .. } = value else {
        let hint = "Write = ANY (ARRAY[…]), IN (…), or an array as a quoted literal.";
        return Err(Error::not_supported("an array as a value", hint).at(position));
    };
    let malformed = || {
        let message = format!("malformed array literal: \"{text}\"");
        Error::new(types::error::sqlstate::INVALID_TEXT_REPRESENTATION, message).at(position)
    };
    let body = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let body = body.ok_or_else(malformed)?;
    if body.trim().is_empty() {
        return Ok(Vec::new());
    }
    let mut elements = Vec::new();
    let mut rest = body;
    loop {
        let (element, after) = array_element(rest).ok_or_else(malformed)?;
        elements.push(Typed::constant(element, DataType::Unknown, position));
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(elements),
            None => return Err(malformed()),
        }
    }
}

/// Returns the first element and what follows it.
fn array_element(text: &str) -> Option<(Datum, &str)> {
    let text = text.trim_start();
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(',').unwrap_or(text.len());
        let element = text[..end].trim_end();
        if element.is_empty() || element.contains(['{', '}', '"', '\\']) {
            return None;
        }
        let null = element.eq_ignore_ascii_case("null");
        let value = if null { Datum::Null } else { Datum::Text(element.into()) };
        return Some((value, &text[end..]));
    };
    let mut element = String::new();
    let mut characters = quoted.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => return Some((Datum::Text(element.into()), quoted[index + 1..].trim_start())),
            '\\' => element.push(characters.next()?.1),
            other => element.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(text: &str) -> Option<Vec<Datum>> {
        let value = ast::Expr::String { value: text.to_owned(), position: 1 };
        let values = array_elements(&value).ok()?;
        let datum = |value: Typed| match value.expr {
            Expr::Constant { value, .. } => Some(value),
            _ => None,
        };
        values.into_iter().map(datum).collect()
    }

    #[test]
    fn array_literals() {
        let text = |text: &str| Datum::Text(text.into());
        assert_eq!(elements("{1, 2}"), Some(vec![text("1"), text("2")]));
        assert_eq!(elements("{}"), Some(Vec::new()));
        assert_eq!(
            elements(r#"{"a,b",NULL,"\""}"#),
            Some(vec![text("a,b"), Datum::Null, text("\"")])
        );
        assert_eq!(elements("{1,}"), None);
        assert_eq!(elements("{{1},{2}}"), None);
        assert_eq!(elements("1"), None);
    }
}
