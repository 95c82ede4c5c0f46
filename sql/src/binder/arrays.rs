//! Binding of arrays: `ARRAY[…]`, subscripts, and comparisons with ANY and ALL of an array.

use std::sync::Arc;

use types::datum::{MAX_DIMENSIONS, Nested};
use types::expr::Expr;
use types::{DataType, Datum, SqlType};

use crate::ast::{self, BinaryOperator, Quantifier, Subscript};
use crate::binder::level::Binder;
use crate::binder::subqueries::yields_boolean;
use crate::binder::typed::Typed;
use crate::error::{Error, Result};

impl Binder<'_> {
    /// Binds `ARRAY[…]`.
    pub(super) fn bind_array(&mut self, elements: &[ast::Expr], position: usize) -> Result<Typed> {
        if elements.is_empty() {
            bail!(INDETERMINATE_DATATYPE: "cannot determine type of empty array";
                hint "Explicitly cast to the desired type, for example ARRAY[]::integer[]."; at position);
        }
        let elements = self.bind_list(elements)?;
        let (values, sql_type) = self.unify(elements, "ARRAY")?;
        let base = &sql_type.base;
        let is_vector = matches!(base, DataType::Int2Vector | DataType::OidVector);
        let (function, array) = match base.element().filter(|_| !is_vector) {
            Some(_) => ("array of arrays", Some(sql_type.domain_array_type())),
            None => ("array of", self.catalog.array_of(&sql_type)),
        };
        let array = array.ok_or_else(|| no_array(base, position))?;
        let expr = internal(function, values, &array.base);
        Ok(Typed { expr, sql_type: array, position })
    }

    /// Binds `ARRAY[…]::type`: the cast applies to each element.
    pub(super) fn bind_array_as(
        &mut self,
        elements: &[ast::Expr],
        element: &SqlType,
        sql_type: &SqlType,
        position: usize,
    ) -> Result<Typed> {
        let is_vector = matches!(sql_type.base, DataType::Int2Vector | DataType::OidVector);
        let is_flat = !matches!(elements.first(), None | Some(ast::Expr::Array { .. }));
        if is_vector && !is_flat {
            bail!(DATATYPE_MISMATCH: "array is not a valid {}", sql_type.base.sql_name());
        }
        let nested = matches!(elements.first(), Some(ast::Expr::Array { .. }));
        let mut values = Vec::with_capacity(elements.len());
        for one in elements {
            values.push(match one {
                ast::Expr::Array { elements, position } if nested => {
                    self.bind_array_as(elements, element, sql_type, *position)?.expr
                }
                one => {
                    let value = self.bind_expr(one)?;
                    // An element that is an array adds a dimension.
                    let to = if value.base().element().is_some() { sql_type } else { element };
                    self.explicit(value, to, position)?
                }
            });
        }
        let arrays = values.first().is_some_and(|value| *value.data_type() == sql_type.base);
        let function = match sql_type.base {
            DataType::Int2Vector => "int2vector of",
            DataType::OidVector => "oidvector of",
            _ if arrays => "array of arrays",
            _ => "array of",
        };
        let expr = internal(function, values, &sql_type.base);
        Ok(Typed { expr, sql_type: sql_type.clone(), position })
    }

    /// Binds `operand[1][2:3]`.
    pub(super) fn bind_subscripts(
        &mut self,
        operand: &ast::Expr,
        subscripts: &[Subscript],
    ) -> Result<Typed> {
        let array = self.bind_expr(operand)?;
        let position = array.position;
        let sql_type = &array.sql_type;
        if sql_type.base == DataType::Jsonb {
            let (_, path) = self.bind_jsonb_subscripts(subscripts)?;
            let mut arguments = vec![array.expr];
            arguments.extend(path);
            let expr = internal("jsonb_extract_path", arguments, DataType::Jsonb);
            return Ok(Typed { expr, sql_type: sql_type.clone(), position });
        }
        if let (DataType::Name, [Subscript::Index(index)]) = (&sql_type.base, subscripts) {
            let index = self.bind_bound(index)?;
            let expr = internal("name element", vec![array.expr, index], DataType::InternalChar);
            return Ok(Typed::new(expr, DataType::InternalChar, position));
        }
        let element = self.catalog.element_of(sql_type);
        let element = element.ok_or_else(|| no_subscripts(&sql_type.base, position))?;
        let (sliced, bounds) = self.bind_array_subscripts(subscripts)?;
        let mut arguments = vec![array.expr];
        arguments.extend(bounds);
        let (function, sql_type) = match sliced {
            true => ("array slice", sql_type.domain_array_type()),
            false => ("array element", element),
        };
        let expr = internal(function, arguments, &sql_type.base);
        Ok(Typed { expr, sql_type, position })
    }

    /// Binds the subscripts of an array. Returns whether they are a slice; if so, there are two
    /// bounds for each dimension, with the extremes of `integer` for omitted ones.
    pub(super) fn bind_array_subscripts(
        &mut self,
        subscripts: &[Subscript],
    ) -> Result<(bool, Vec<Expr>)> {
        if subscripts.len() > MAX_DIMENSIONS {
            bail!(PROGRAM_LIMIT_EXCEEDED: "number of array dimensions ({}) exceeds the maximum allowed ({MAX_DIMENSIONS})",
                subscripts.len());
        }
        let sliced = subscripts.iter().any(|one| matches!(one, Subscript::Slice { .. }));
        let mut bounds = Vec::with_capacity(subscripts.len() * 2);
        for subscript in subscripts {
            match subscript {
                Subscript::Index(index) if !sliced => bounds.push(self.bind_bound(index)?),
                // In a slice, a plain index `n` means `1:n`.
                Subscript::Index(index) => {
                    bounds.push(Expr::constant(Datum::Int4(1), DataType::Int4));
                    bounds.push(self.bind_bound(index)?);
                }
                Subscript::Slice { lower, upper } => {
                    for (bound, open) in [(lower, i32::MIN), (upper, i32::MAX)] {
                        bounds.push(match bound {
                            Some(bound) => self.bind_bound(bound)?,
                            None => Expr::constant(Datum::Int4(open), DataType::Int4),
                        });
                    }
                }
            }
        }
        Ok((sliced, bounds))
    }

    fn bind_bound(&mut self, bound: &ast::Expr) -> Result<Expr> {
        let value = self.bind_expr(bound)?;
        let position = value.position;
        let to = DataType::Int4.into();
        let bound = self.coerce(value, &to, types::cast::CastContext::Assignment)?;
        bound.ok_or_else(
            || err!(DATATYPE_MISMATCH: "array subscript must have type integer"; at position),
        )
    }

    /// Binds `left operator ANY|ALL (array)`.
    pub(super) fn bind_array_comparison(
        &mut self,
        left: Typed,
        (operator, quantifier): (BinaryOperator, Quantifier),
        array: Typed,
        position: usize,
    ) -> Result<Typed> {
        let (start, at) = (left.position, array.position);
        // An array of unknown type gets the type of the left side as element type.
        let array = if array.is_unknown() {
            let element = if left.is_unknown() { &DataType::Text } else { left.base() };
            let base = element.array().ok_or_else(|| no_array(element, at))?;
            Typed::new(self.implicit(array, &base)?, base, at)
        } else {
            array
        };
        if let (
            Expr::Constant { value: Datum::Nested(Nested::Array(constant)), .. },
            Some(element),
        ) = (&array.expr, array.base().element())
        {
            let constant = Arc::clone(constant);
            let value = |value: &Datum| Typed::constant(value.clone(), element, at);
            let elements = constant.elements.iter().map(value).collect();
            return self.compare_elements(left, (operator, quantifier), elements, position);
        }
        let Some(element) = array.base().element() else {
            bail!(WRONG_OBJECT_TYPE: "op ANY/ALL (array) requires array on right side"; at position);
        };
        let probe = Typed::new(Expr::constant(Datum::Null, element), element, at);
        let compared = self.operator(operator.symbol(), left, probe, position)?;
        yields_boolean(&compared, position)?;
        let Expr::Call { function, arguments, .. } = compared.expr else {
            return Err(no_array(element, position));
        };
        let mut sides = arguments.into_iter();
        let (Some(left), Some(right)) = (sides.next(), sides.next()) else {
            return Err(no_array(element, position));
        };
        // Operator resolution may have cast the element type.
        let wanted = right.data_type();
        let base = wanted.array().ok_or_else(|| no_array(wanted, at))?;
        let array = self.implicit(array, base)?;
        let name = if quantifier == Quantifier::Any { "any of" } else { "all of" };
        let id = Expr::constant(Datum::Int4(function.0.into()), DataType::Int4);
        let expr = internal(name, vec![id, left, array], DataType::Bool);
        Ok(Typed::boolean(expr, start))
    }
}

/// Returns a call of the internal function that implements a syntactic form.
pub(super) fn internal(name: &str, arguments: Vec<Expr>, data_type: impl Into<DataType>) -> Expr {
    let function = types::function::overloads(name)[0].id;
    Expr::Call { function, arguments, data_type: data_type.into() }
}

pub(super) fn no_subscripts(data_type: &DataType, position: usize) -> Error {
    err!(DATATYPE_MISMATCH: "cannot subscript type {} because it does not support subscripting", data_type.sql_name();
        with_type_mention data_type; at position)
}

pub(super) fn no_array(element: &DataType, position: usize) -> Error {
    err!(UNDEFINED_OBJECT: "could not find array type for data type {}", element.sql_name(); with_type_mention element;
        at position)
}
