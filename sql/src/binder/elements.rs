//! SET lists, parts of columns as targets, and the subscripts of `jsonb`.
//!
//! A part is stored by storing the whole column with the part replaced: `a[1] = x` is
//! `a = «a with element 1 as x»`. Source: PostgreSQL's `transformAssignmentSubscripts`
//! (parse_target.c) and `jsonb_subscript_transform` (jsonbsubs.c).

use types::cast::CastContext;
use types::expr::Expr;
use types::{DataType, Datum, SqlType};

use crate::ast::{self, AssignedValue, Subscript, TargetColumn};
use crate::binder::arrays::{internal, no_subscripts};
use crate::binder::assignment::{Field, check_identity, default_of_field};
use crate::binder::level::Binder;
use crate::binder::typed::{Typed, boolean};
use crate::binder::written::Written;
use crate::catalog::Catalog;
use crate::catalog::table::Column;
use crate::error::{Error, Result, sqlstate};
use crate::logical::Assignment;

impl Binder<'_> {
    /// Binds a SET list over the level at hand.
    pub(super) fn bind_set(
        &mut self,
        written: &Written,
        list: &[ast::Assignment],
    ) -> Result<Vec<Assignment>> {
        // Each with whether it is of parts of its column.
        let mut bound: Vec<(Assignment, bool)> = Vec::new();
        for assignment in list {
            match assignment {
                ast::Assignment::Column { column: target, value } => {
                    self.bind_assignment(
                        written,
                        target,
                        &mut bound,
                        |binder, (column, field), old| match old {
                            None if is_default(value) && written.is_view() => {
                                let own = written.default_of_view(column).cloned();
                                Ok(own.unwrap_or_else(|| no_value(column)))
                            }
                            None => binder.assigned(value, column),
                            Some(old) => binder.assigned_part((target, column, field), value, old),
                        },
                    )?;
                }
                ast::Assignment::Subquery { columns, query } => {
                    let values = self.bind_columns_subquery(query)?;
                    if values.len() != columns.len() {
                        let message = "number of columns does not match number of values";
                        return Err(Error::new(sqlstate::SYNTAX_ERROR, message).at(query.position));
                    }
                    for (target, value) in columns.iter().zip(values) {
                        self.bind_assignment(
                            written,
                            target,
                            &mut bound,
                            |binder, (column, field), old| {
                                check_identity(column)?;
                                match old {
                                    None => binder.assign(value, column),
                                    Some(old) => {
                                        binder.assign_part((target, column, field), value, old)
                                    }
                                }
                            },
                        )?;
                    }
                }
            }
        }
        Ok(bound.into_iter().map(|(assignment, _)| assignment).collect())
    }

    /// Adds the assignment to a target: of a part of a column together with those to other parts.
    /// `bind` gets the column, and what it was before if only a part is assigned.
    fn bind_assignment(
        &mut self,
        written: &Written,
        target: &TargetColumn,
        bound: &mut Vec<(Assignment, bool)>,
        bind: impl FnOnce(&mut Self, (&Column, Option<Field>), Option<Expr>) -> Result<Expr>,
    ) -> Result<()> {
        let field = self.target_field(written, target)?;
        let index = match field {
            Some((column, _)) => column,
            None => written.target(&target.column)?,
        };
        let field = field.map(|(_, field)| field);
        let column = &written.table.columns[index];
        let before = bound.iter().position(|(one, _)| one.column == index);
        let old = match (target.subscripts.is_empty() && field.is_none(), before) {
            (true, None) => None,
            (false, None) => Some(Expr::column(index, column.sql_type.base)),
            (false, Some(at)) if bound[at].1 => Some(bound[at].0.value.clone()),
            _ => {
                let name = &target.column.name;
                let message = format!("multiple assignments to same column \"{}\"", name.value);
                return Err(Error::new(sqlstate::SYNTAX_ERROR, message));
            }
        };
        let in_parts = old.is_some();
        let value = bind(self, (column, field), old)?;
        match before {
            Some(at) => bound[at].0.value = value,
            None => bound.push((Assignment { column: index, value }, in_parts)),
        }
        Ok(())
    }

    /// Binds the value of a part of a column; returns what the column becomes from what it is.
    pub(super) fn assigned_part(
        &mut self,
        (target, column, field): (&TargetColumn, &Column, Option<Field>),
        value: &AssignedValue,
        old: Expr,
    ) -> Result<Expr> {
        check_identity(column)?;
        let value = match value {
            AssignedValue::Expr(expr) => self.bind_expr(expr)?,
            AssignedValue::Default { position } if field.is_some() => {
                return Err(default_of_field(*position));
            }
            AssignedValue::Default { .. } => {
                let message = "cannot set an array element to DEFAULT";
                return Err(Error::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
                    .at(target.column.name.position));
            }
        };
        self.assign_part((target, column, field), value, old)
    }

    /// Returns what a column becomes with a part of it replaced by a value.
    pub(super) fn assign_part(
        &mut self,
        (target, column, field): (&TargetColumn, &Column, Option<Field>),
        value: Typed,
        old: Expr,
    ) -> Result<Expr> {
        if let Some(field) = field {
            if !target.subscripts.is_empty() {
                let error = Error::not_supported("a subscript of a field", "Assign the field.");
                return Err(error.at(target.column.name.position));
            }
            return self.with_field(old, field, value);
        }
        let (from, position) = (value.sql_type, value.position);
        let wanted = part_type(self.catalog, target, column, None)?;
        let value = self.coerce(value, wanted, CastContext::Assignment)?.ok_or_else(|| {
            let message = format!(
                "subscripted assignment to \"{}\" requires type {} but expression is of type {}",
                column.name,
                self.shown(wanted),
                self.shown(from)
            );
            Error::new(sqlstate::DATATYPE_MISMATCH, message)
                .with_hint("You will need to rewrite or cast the expression.")
                .at(position)
        })?;
        let base = column.sql_type.base;
        let mut arguments = vec![old, value];
        let function = if base == DataType::Jsonb {
            let (is_index, path) = self.bind_jsonb_subscripts(&target.subscripts)?;
            arguments.push(boolean(is_index));
            arguments.extend(path);
            "jsonb with element"
        } else {
            let (sliced, bounds) = self.bind_array_subscripts(&target.subscripts)?;
            arguments.extend(bounds);
            if sliced { "array with slice" } else { "array with element" }
        };
        let whole = internal(function, arguments, base);
        // What is put into an array of a domain is checked, what else is in there was.
        let domain = column.domain.as_ref();
        let domain = domain.filter(|_| !column.sql_type.is_domain_array());
        Ok(domain.map_or(whole.clone(), |domain| domain.checked(whole, false)))
    }

    /// Returns the column and the field of it that a target means; `None` if it means no field.
    pub(super) fn target_field(
        &self,
        written: &Written,
        target: &TargetColumn,
    ) -> Result<Option<(usize, Field)>> {
        match written.is_view() {
            true => Ok(None),
            false => self.field_target(&written.table, &target.column),
        }
    }

    /// Binds the subscripts of a `jsonb` as a path; returns, too, whether the first is a number.
    pub(super) fn bind_jsonb_subscripts(
        &mut self,
        subscripts: &[Subscript],
    ) -> Result<(bool, Vec<Expr>)> {
        let mut is_index = false;
        let mut path = Vec::with_capacity(subscripts.len());
        for (at, subscript) in subscripts.iter().enumerate() {
            let index = match subscript {
                Subscript::Index(index) => index,
                Subscript::Slice { lower, upper } => {
                    let message = "jsonb subscript does not support slices";
                    let error = Error::new(sqlstate::DATATYPE_MISMATCH, message);
                    let bound = lower.as_ref().or(upper.as_ref());
                    return Err(match bound {
                        Some(bound) => error.at(bound.position()),
                        None => error,
                    });
                }
            };
            let step = self.bind_expr(index)?;
            let (base, position) = (step.base(), step.position);
            let is_number = matches!(base, DataType::Int2 | DataType::Int4);
            is_index |= is_number && at == 0;
            let step = match is_number {
                true => Some(self.explicit(step, DataType::Text.into(), position)?),
                false => self.coerce(step, DataType::Text.into(), CastContext::Implicit)?,
            };
            path.push(step.ok_or_else(|| {
                let name = base.sql_name();
                let message = format!("subscript type {name} is not supported");
                let hint = "jsonb subscript must be coercible to either integer or text.";
                Error::new(sqlstate::DATATYPE_MISMATCH, message).with_hint(hint).at(position)
            })?);
        }
        Ok((is_index, path))
    }
}

fn is_default(value: &AssignedValue) -> bool {
    matches!(value, AssignedValue::Default { .. })
}

/// Returns the type of what a target takes: that of its column, or of the part.
pub(super) fn part_type(
    catalog: &Catalog,
    target: &TargetColumn,
    column: &Column,
    field: Option<Field>,
) -> Result<SqlType> {
    if let Some((of, at)) = field {
        return Ok(of.attributes()[at].sql_type);
    }
    let base = column.sql_type.base;
    let sliced = target.subscripts.iter().any(|one| matches!(one, Subscript::Slice { .. }));
    if target.subscripts.is_empty() || base == DataType::Jsonb {
        return Ok(column.sql_type);
    }
    let element = catalog.element_of(column.sql_type);
    let element = element.ok_or_else(|| no_subscripts(base, target.column.name.position))?;
    Ok(if sliced { column.sql_type.array_below() } else { element })
}

/// Returns the NULL that a part is put into where there is no row yet.
pub(super) fn no_value(column: &Column) -> Expr {
    Expr::constant(Datum::Null, column.sql_type.base)
}
