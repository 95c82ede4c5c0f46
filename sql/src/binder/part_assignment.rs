//! SET lists, assignment to parts of columns, and the subscripts of `jsonb`.
//!
//! An assignment to a part stores the whole column with the part replaced: `a[1] = x` is `a = «a
//! with element 1 as x»`, and `c.f[1] = x` is `c = «c with f as «(c).f with element 1 as x»»`.
//! Source: PostgreSQL's `transformAssignmentSubscripts` (parse_target.c) and
//! `jsonb_subscript_transform` (jsonbsubs.c).

use std::sync::Arc;

use types::cast::CastContext;
use types::datatype::composite::CompositeType;
use types::expr::Expr;
use types::{DataType, Datum, SqlType};

use crate::ast::{self, AssignedValue, ColumnName, Ident, Subscript, TargetColumn, TargetStep};
use crate::binder::arrays::{internal, no_subscripts};
use crate::binder::assignment::check_identity;
use crate::binder::level::Binder;
use crate::binder::typed::{Typed, boolean, null};
use crate::binder::update_target::UpdateTarget;
use crate::catalog::access::privilege::UPDATE;
use crate::catalog::table::Column;
use crate::error::{Error, Result};
use crate::logical::Assignment;

/// A field of a composite type, by its position.
type Field = (Arc<CompositeType>, usize);

/// A resolved target: a column, or a part of it.
#[derive(Debug, Clone)]
pub(super) struct AssignmentPart {
    /// The column, in table order.
    pub(super) column: usize,
    /// The path to the part; empty for the whole column.
    pub(super) steps: Vec<TargetStep>,
    /// The position of the target in the statement.
    pub(super) position: usize,
}

impl Binder<'_> {
    /// Binds a SET list at the current query level.
    pub(super) fn bind_set(
        &mut self,
        written: &UpdateTarget,
        list: &[ast::AssignmentClause],
    ) -> Result<Vec<Assignment>> {
        // The assignments, each with true if it assigns parts of its column.
        let mut bound: Vec<(Assignment, bool)> = Vec::new();
        for assignment in list {
            match assignment {
                ast::AssignmentClause::Column { column: target, value } => {
                    self.bind_assignment(
                        written,
                        target,
                        &mut bound,
                        |binder, (column, part), old| match old {
                            None if is_default(value) && written.is_through_view() => {
                                let own = written.default_of_view(column).cloned();
                                Ok(own.unwrap_or_else(|| no_value(column)))
                            }
                            None => binder.assigned(value, column),
                            Some(old) => binder.assigned_part((column, part), value, old),
                        },
                    )?;
                }
                ast::AssignmentClause::Subquery { columns, query } => {
                    let values = self.bind_columns_subquery(query)?;
                    if values.len() != columns.len() {
                        bail!(SYNTAX_ERROR: "number of columns does not match number of values"; at query.position);
                    }
                    for (target, value) in columns.iter().zip(values) {
                        self.bind_assignment(
                            written,
                            target,
                            &mut bound,
                            |binder, (column, part), old| {
                                check_identity(column)?;
                                match old {
                                    None => binder.assign(value, column),
                                    Some(old) => binder.assign_part((column, part), value, old),
                                }
                            },
                        )?;
                    }
                }
            }
        }
        let whole = |(one, in_parts): (Assignment, bool)| match in_parts {
            true => {
                let value = in_domain(&written.table.columns[one.column], one.value);
                Assignment { value, ..one }
            }
            false => one,
        };
        Ok(bound.into_iter().map(whole).collect())
    }

    /// Adds the assignment to a target; assignments to several parts of a column are combined into
    /// one. `bind` gets the column, and its old value if only a part is assigned.
    fn bind_assignment(
        &mut self,
        written: &UpdateTarget,
        target: &TargetColumn,
        bound: &mut Vec<(Assignment, bool)>,
        bind: impl FnOnce(&mut Self, (&Column, &AssignmentPart), Option<Expr>) -> Result<Expr>,
    ) -> Result<()> {
        let part = self.target_part(written, target)?;
        let index = part.column;
        let column = &written.table.columns[index];
        self.note_written(&written.table, index);
        if !written.is_through_view() {
            self.request_written(written.table.oid, UPDATE, index);
        }
        let before = bound.iter().position(|(one, _)| one.column == index);
        let old = match (part.steps.is_empty(), before) {
            (true, None) => None,
            (false, None) => Some(Expr::column(index, &column.sql_type.base)),
            (false, Some(at)) if bound[at].1 => Some(bound[at].0.value.clone()),
            _ => bail!(SYNTAX_ERROR: "multiple assignments to same column \"{}\"", column.name),
        };
        let in_parts = old.is_some();
        let value = bind(self, (column, &part), old)?;
        match before {
            Some(at) => bound[at].0.value = value,
            None => bound.push((Assignment { column: index, value }, in_parts)),
        }
        Ok(())
    }

    /// Binds the assignment of a part of a column; returns the new value of the whole column.
    pub(super) fn assigned_part(
        &mut self,
        (column, part): (&Column, &AssignmentPart),
        value: &AssignedValue,
        old: Expr,
    ) -> Result<Expr> {
        check_identity(column)?;
        let value = match (value, part.steps.first()) {
            (AssignedValue::Expr(expr), _) => self.bind_expr(expr)?,
            (AssignedValue::Default { .. }, first) => {
                let message = match first {
                    Some(TargetStep::Subscripts(_)) => "cannot set an array element to DEFAULT",
                    _ => "cannot set a subfield to DEFAULT",
                };
                bail!(FEATURE_NOT_SUPPORTED: message; at part.position);
            }
        };
        self.assign_part((column, part), value, old)
    }

    /// Returns the new value of a column with a part replaced. The caller applies [`in_domain`]
    /// after the last part.
    pub(super) fn assign_part(
        &mut self,
        (column, part): (&Column, &AssignmentPart),
        value: Typed,
        old: Expr,
    ) -> Result<Expr> {
        let old = Typed { expr: old, sql_type: column.sql_type.clone(), position: part.position };
        self.with_part(old, &part.steps, &column.name, value)
    }

    /// Returns a value with the part at the path replaced; `owner` is its name in messages.
    pub(super) fn with_part(
        &mut self,
        old: Typed,
        steps: &[TargetStep],
        owner: &str,
        value: Typed,
    ) -> Result<Expr> {
        match steps {
            [] => Ok(value.expr),
            [TargetStep::Field(name), rest @ ..] => {
                let (of, at) = self.field_of((owner, &old.sql_type), name, old.position)?;
                let attribute = &of.attributes()[at];
                if rest.is_empty() {
                    return self.with_field(old.expr, (&of, at), value);
                }
                let inner = self.field_named(&old, &name.value).unwrap_or_else(|| {
                    let nothing = null(&attribute.sql_type.base);
                    Typed::new(nothing, &attribute.sql_type, old.position)
                });
                let inner = Typed { position: old.position, ..inner };
                let position = value.position;
                let new = self.with_part(inner, rest, &attribute.name, value)?;
                let new = Typed { expr: new, sql_type: attribute.sql_type.base_type(), position };
                self.with_field(old.expr, (&of, at), new)
            }
            [TargetStep::Subscripts(subscripts), rest @ ..] => {
                self.with_element(old, (subscripts, rest), owner, value)
            }
        }
    }

    fn with_element(
        &mut self,
        old: Typed,
        (subscripts, rest): (&[Subscript], &[TargetStep]),
        owner: &str,
        value: Typed,
    ) -> Result<Expr> {
        let base = old.base().clone();
        let wanted = self.element_type(&old.sql_type, subscripts, old.position)?;
        let mut arguments = vec![old.expr.clone()];
        let (function, read, bounds) = if base == DataType::Jsonb {
            let (is_index, path) = self.bind_jsonb_subscripts(subscripts)?;
            let bounds = std::iter::once(boolean(is_index)).chain(path).collect();
            ("jsonb with element", "", bounds)
        } else {
            match self.bind_array_subscripts(subscripts)? {
                (true, bounds) => ("array with slice", "array slice", bounds),
                (false, bounds) => ("array with element", "array element", bounds),
            }
        };
        let value = if rest.is_empty() {
            self.as_element(value, &wanted, owner)?
        } else {
            let expr = match read {
                "" => old.expr,
                read => {
                    let of = std::iter::once(old.expr).chain(bounds.iter().cloned());
                    internal(read, of.collect(), &wanted.base)
                }
            };
            let inner = Typed::new(expr, &wanted, old.position);
            let position = value.position;
            let new = self.with_part(inner, rest, owner, value)?;
            let new = Typed { expr: new, sql_type: wanted.base_type(), position };
            self.as_element(new, &wanted, owner)?
        };
        arguments.push(value);
        arguments.extend::<Vec<Expr>>(bounds);
        Ok(internal(function, arguments, base))
    }

    fn as_element(&mut self, value: Typed, wanted: &SqlType, owner: &str) -> Result<Expr> {
        let (from, position) = (value.sql_type.clone(), value.position);
        self.coerce(value, wanted, CastContext::Assignment)?.ok_or_else(|| {
            err!(DATATYPE_MISMATCH: "subscripted assignment to \"{owner}\" requires type {} but expression is of type {}",
                self.type_name(wanted), self.type_name(&from); hint "You will need to rewrite or cast the expression.";
                at position)
        })
    }

    /// Resolves a target.
    pub(super) fn target_part(
        &self,
        written: &UpdateTarget,
        target: &TargetColumn,
    ) -> Result<AssignmentPart> {
        let position = target.column.position();
        let owner = target.column.family.as_ref();
        let owner = owner.map(|owner| written.column_with_fields(owner)).transpose()?.flatten();
        let (column, first) = match owner {
            Some(column) => (column, Some(TargetStep::Field(target.column.name.clone()))),
            None => (self.target(written, &target.column)?, None),
        };
        let steps = first.into_iter().chain(target.path.iter().cloned()).collect();
        Ok(AssignmentPart { column, steps, position })
    }

    /// Returns the position of a target column. Setting `phoenix_compatibility` allows an unknown
    /// one to be found in lower case.
    fn target(&self, written: &UpdateTarget, name: &ColumnName) -> Result<usize> {
        let found = written.target(name);
        match found {
            Err(error) if self.search_path().ignores_case() => {
                let lower = |part: &Ident| Ident { value: part.value.to_lowercase(), ..*part };
                let family = name.family.as_ref().map(lower);
                let lower = ColumnName { family, name: lower(&name.name) };
                written.target(&lower).map_err(|_| error)
            }
            found => found,
        }
    }

    /// Returns the type of a target: of the column, or of the part.
    pub(super) fn part_type(&self, column: &Column, part: &AssignmentPart) -> Result<SqlType> {
        let (mut sql_type, mut owner) = (column.sql_type.clone(), column.name.as_str());
        for step in &part.steps {
            sql_type = match step {
                TargetStep::Field(name) => {
                    let (of, at) = self.field_of((owner, &sql_type), name, part.position)?;
                    owner = &name.value;
                    of.attributes()[at].sql_type.clone()
                }
                TargetStep::Subscripts(of) => self.element_type(&sql_type, of, part.position)?,
            };
        }
        Ok(sql_type)
    }

    fn element_type(
        &self,
        of: &SqlType,
        subscripts: &[Subscript],
        position: usize,
    ) -> Result<SqlType> {
        if of.base == DataType::Jsonb {
            return Ok(of.clone());
        }
        let element = self.catalog.element_of(of);
        let element = element.ok_or_else(|| no_subscripts(&of.base, position))?;
        let sliced = subscripts.iter().any(|one| matches!(one, Subscript::Slice { .. }));
        Ok(if sliced { of.domain_array_type() } else { element })
    }

    /// Returns the field of a composite type by name.
    fn field_of(
        &self,
        (owner, sql_type): (&str, &SqlType),
        name: &Ident,
        position: usize,
    ) -> Result<Field> {
        let (field, shown) = (&name.value, self.type_name(sql_type));
        let cannot = format!("cannot assign to field \"{field}\" of column \"{owner}\"");
        let DataType::Composite(of) = &sql_type.base else {
            bail!(DATATYPE_MISMATCH: "{cannot} because its type {shown} is not a composite type"; at position);
        };
        let at = of.attributes().iter().position(|one| *one.name == **field);
        let at = at.ok_or_else(|| {
            err!(UNDEFINED_COLUMN: "{cannot} because there is no such column in data type {shown}"; at position)
        })?;
        Ok((Arc::clone(of), at))
    }

    /// Binds the subscripts of a `jsonb` as a path; also returns whether the first is a number.
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
                    let error = err!(DATATYPE_MISMATCH: "jsonb subscript does not support slices");
                    let bound = lower.as_ref().or(upper.as_ref());
                    return Err(match bound {
                        Some(bound) => error.at(bound.position()),
                        None => error,
                    });
                }
            };
            let step = self.bind_expr(index)?;
            let (base, position) = (step.base().clone(), step.position);
            let is_number = matches!(base, DataType::Int2 | DataType::Int4);
            is_index |= is_number && at == 0;
            let step = match is_number {
                true => Some(self.explicit(step, DataType::Text, position)?),
                false => self.coerce(step, &DataType::Text.into(), CastContext::Implicit)?,
            };
            path.push(step.ok_or_else(|| {
                let name = base.sql_name();
                let hint = "jsonb subscript must be coercible to either integer or text.";
                err!(DATATYPE_MISMATCH: "subscript type {name} is not supported"; with_type_mention base; hint hint; at position)
            })?);
        }
        Ok((is_index, path))
    }
}

/// Returns the new value of a column after all its parts were assigned, with one check of its
/// domain.
pub(super) fn in_domain(column: &Column, whole: Expr) -> Expr {
    // For an array of a domain, each assigned element was checked on assignment.
    match column.domain.as_ref().filter(|_| !column.sql_type.is_domain_array()) {
        Some(domain) => domain.checked(whole, false),
        None => whole,
    }
}

fn is_default(value: &AssignedValue) -> bool {
    matches!(value, AssignedValue::Default { .. })
}

/// Returns the NULL that replaces the old value of a column where no row exists yet.
pub(super) fn no_value(column: &Column) -> Expr {
    Expr::constant(Datum::Null, &column.sql_type.base)
}
