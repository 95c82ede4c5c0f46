//! PL/pgSQL variables in the statements and expressions of a body.
//!
//! A variable is a parameter of the statement; a `record`, whose fields are known only at
//! execution, is one parameter for each field. A name that matches both a column and a variable is
//! an error, unless the body sets `#variable_conflict`.
//!
//! Source: PostgreSQL's `resolve_column_ref` and `plpgsql_post_column_ref` (pl_comp.c).

use std::sync::Arc;

use types::cast::CastContext;
use types::datatype::composite::Fields;
use types::expr::Expr;
use types::{DataType, Datum, SqlType};

use crate::ast::{Ident, Statement, TableAlias, TableName, TableRef, TargetStep};
use crate::binder::BoundStatement;
use crate::binder::function_body::single_expression;
use crate::binder::level::{Binder, Clause};
use crate::binder::parameters::Parameters;
use crate::binder::records::{fields, row_of};
use crate::binder::rows::Rows;
use crate::binder::scope::Scope;
use crate::binder::system::{SessionConstants, SystemCatalog};
use crate::binder::typed::Typed;
use crate::catalog::Catalog;
use crate::catalog::trigger::transition_variable;
use crate::error::{Error, Result, sqlstate};
use crate::logical::{BoundPlan, Logical, OutputColumn, Query};
use crate::parser;
use crate::plpgsql::body_tree::VariableConflict;
use crate::plpgsql::scopes::{BodyScopes, ScopePosition};

/// The variables that are visible to a statement of a body.
#[derive(Debug, Clone, Copy)]
pub struct VariableScope<'a> {
    /// The names declared in the body.
    pub names: &'a BodyScopes,
    /// The block that contains the statement.
    pub place: ScopePosition,
    /// The types of the variables, by number.
    pub shapes: &'a [VariableSignature],
    /// The resolution of a name that is also a column.
    pub conflict: VariableConflict,
}

/// The name and type of a variable.
#[derive(Debug, Clone, PartialEq)]
pub struct VariableSignature {
    /// Its name.
    pub name: String,
    /// Its type.
    pub sql_type: SqlType,
    /// The fields of a `record`; none before the first assignment.
    pub fields: Option<Fields>,
}

impl VariableSignature {
    /// Returns whether it has fields.
    pub fn is_row(&self) -> bool {
        self.sql_type.base.is_row()
    }

    /// Returns whether its fields are known only at execution.
    pub fn is_record(&self) -> bool {
        self.sql_type.base == DataType::Record
    }
}

/// A parameter that stands for a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VariableUse {
    /// Its index.
    pub parameter: usize,
    /// The variable.
    pub variable: usize,
    /// The field, for a `record`.
    pub field: Option<usize>,
}

/// The target of an expression of a body.
#[derive(Debug, Clone, Copy)]
pub enum BodyTarget<'a> {
    /// A target of any type.
    Any,
    /// A target of a type, to which the value is converted.
    Type(&'a SqlType),
    /// A part of a variable: the result is the variable with the part replaced; for a `record`,
    /// the field in the first step.
    Part(usize, &'a [TargetStep]),
}

/// A bound expression of a body.
#[derive(Debug)]
pub struct BodyValue {
    /// The query that computes it.
    pub bound: BoundStatement,
    /// The type of the value.
    pub sql_type: SqlType,
    /// The value, if it needs no query.
    pub simple: Option<Expr>,
}

/// The fields of a row.
type NamedValues = Vec<(Arc<str>, Typed)>;

type World<'a> = (&'a Catalog, &'a dyn SystemCatalog, &'a SessionConstants);

/// Binds a statement of a body.
///
/// # Errors
///
/// PostgreSQL's, with the position in the statement.
pub fn bind_in_body(
    statement: &Statement,
    scope: &VariableScope<'_>,
    (catalog, system, constants): World<'_>,
    types: &[Option<SqlType>],
) -> Result<BoundStatement> {
    let mut binder = Binder::new(catalog, system, constants, Parameters::new(types));
    binder.variables = Some(scope);
    let bound = binder.bind_statement(statement)?;
    binder.finish(bound)
}

/// Binds an expression of a body: a query with one column. `shown` is its text.
///
/// # Errors
///
/// PostgreSQL's, with the position in the query.
pub fn bind_body_value(
    (query, shown): (&Statement, &str),
    target: BodyTarget<'_>,
    scope: &VariableScope<'_>,
    (catalog, system, constants): World<'_>,
) -> Result<BodyValue> {
    let mut binder = Binder::new(catalog, system, constants, Parameters::none());
    binder.variables = Some(scope);
    let (plan, columns, position) = match query {
        // A literal gets the type of the assignment's target.
        Statement::Query(bare) if single_expression(bare).is_some() => {
            let bound = binder.bind_query_body(bare, false)?;
            let position = bound.positions.first().copied().unwrap_or(1);
            (bound.plan, bound.columns, position)
        }
        query => match binder.bind_statement(query)? {
            BoundPlan::Query(Query { plan, columns }) => (plan, columns, 1),
            _ => {
                let hint = "Run it as a separate statement.";
                return Err(Error::not_supported("a data-modifying expression", hint));
            }
        },
    };
    let [column] = columns.as_slice() else {
        let count = columns.len();
        let noun = if count == 1 { "column" } else { "columns" };
        bail!(SYNTAX_ERROR: "query \"{shown}\" returned {count} {noun}");
    };
    let (plan, sql_type) = binder.for_target(plan, (column, position), target)?;
    let columns = vec![OutputColumn { sql_type: sql_type.clone(), ..column.clone() }];
    let bound = binder.finish(BoundPlan::Query(Query { plan, columns }))?;
    let simple = match &bound.bound {
        BoundPlan::Query(Query { plan: Logical::Project { input, expressions }, .. }) => {
            let is_one = matches!(&**input, Logical::Values { types, rows }
                if types.is_empty() && rows.len() == 1);
            expressions.first().filter(|_| is_one).cloned()
        }
        _ => None,
    };
    Ok(BodyValue { bound, sql_type, simple })
}

/// Returns the assignment conversion of parameter 0 from one type to another; `None` if there is
/// none.
///
/// # Errors
///
/// Those of a domain's constraints.
pub fn bind_conversion(
    from: &SqlType,
    to: &SqlType,
    (catalog, system, constants): World<'_>,
) -> Result<Option<Expr>> {
    let parameters = Parameters::new(&[Some(from.clone())]);
    let mut binder = Binder::new(catalog, system, constants, parameters);
    let expr = Expr::Parameter { index: 0, data_type: from.base.clone() };
    binder.converted(Typed::new(expr, from, 1), to)
}

impl<'a> Binder<'a> {
    /// Returns the visible variables: none in the texts of views and functions.
    pub(super) fn visible_variables(&self) -> Option<&'a VariableScope<'a>> {
        self.variables.filter(|_| self.frame.is_none() && self.view.is_none())
    }

    /// Returns the rows of a transition table of this name, which are a variable.
    pub(super) fn transition_rows(
        &self,
        name: &TableName,
        alias: Option<&TableAlias>,
    ) -> Result<Option<TableRef>> {
        let scope = self.visible_variables().filter(|_| name.schema.is_none());
        let Some(scope) = scope else { return Ok(None) };
        let variable = transition_variable(&name.name.value);
        if scope.names.find(scope.place, &[variable.as_str()], |_| false).is_none() {
            return Ok(None);
        }
        let rows = format!("SELECT * FROM unnest({})", parser::quoted(&variable));
        let query = Box::new(parser::parse_query(&rows)?);
        let own = || TableAlias { name: name.name.clone(), columns: Vec::new() };
        let alias = Some(alias.cloned().unwrap_or_else(own));
        Ok(Some(TableRef::Subquery { query, lateral: false, alias }))
    }

    /// Binds a name that may be a variable.
    pub(super) fn variable_or_column(
        &mut self,
        scope: &VariableScope<'_>,
        parts: &[Ident],
    ) -> Result<Typed> {
        let position = parts.first().map_or(1, |part| part.position);
        if scope.conflict == VariableConflict::Variable
            && let Some(value) = self.variable_named(parts)?
        {
            return Ok(value);
        }
        match self.bind_sql_column(parts) {
            Ok(_)
                if scope.conflict == VariableConflict::Error && self.is_variable(scope, parts) =>
            {
                let names: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
                bail!(AMBIGUOUS_COLUMN: "column reference \"{}\" is ambiguous", names.join(".");
                    detail "It could refer to either a PL/pgSQL variable or a table column."; at position)
            }
            Err(error)
                if [sqlstate::UNDEFINED_COLUMN, sqlstate::UNDEFINED_TABLE]
                    .contains(&error.sqlstate.as_ref()) =>
            {
                self.variable_named(parts)?.ok_or(error)
            }
            column => column,
        }
    }

    fn is_variable(&self, scope: &VariableScope<'_>, parts: &[Ident]) -> bool {
        let names: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
        let is_row = |variable: usize| scope.shapes[variable].is_row();
        let Some(found) = scope.names.find(scope.place, &names, is_row) else { return false };
        let Some(field) = names.get(found.parts) else { return true };
        let shape = &scope.shapes[found.variable];
        match (&shape.fields, &shape.sql_type.base) {
            (Some(fields), _) => fields.iter().any(|(name, _)| **name == **field),
            (None, DataType::Composite(of)) => {
                of.attributes().iter().any(|one| *one.name == **field)
            }
            (None, _) => true,
        }
    }

    /// Returns the value of a variable or of its field.
    pub(super) fn variable_named(&mut self, parts: &[Ident]) -> Result<Option<Typed>> {
        let Some(scope) = self.visible_variables() else { return Ok(None) };
        let names: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
        let is_row = |variable: usize| scope.shapes[variable].is_row();
        let Some(found) = scope.names.find(scope.place, &names, is_row) else { return Ok(None) };
        let position = parts.first().map_or(1, |part| part.position);
        let rest = &names[found.parts..];
        self.variable_field(scope, found.variable, rest, position).map(Some)
    }

    fn variable_field(
        &mut self,
        scope: &VariableScope<'_>,
        variable: usize,
        path: &[&str],
        position: usize,
    ) -> Result<Typed> {
        let shape = &scope.shapes[variable];
        if !shape.is_record() {
            let mut value = self.variable_value((variable, None), &shape.sql_type, position);
            for field in path {
                let no_field = || no_field(&shape.name, field);
                value = self.field_named(&value, field).ok_or_else(no_field)?;
            }
            return Ok(Typed { position, ..value });
        }
        let Some(fields) = &shape.fields else {
            if !path.is_empty() {
                return Err(unassigned(&shape.name));
            }
            // It is NULL. The use is recorded, so that the statement is planned again after an
            // assignment.
            return Ok(self.variable_value((variable, None), DataType::Record, position));
        };
        let Some((first, rest)) = path.split_first() else {
            let field = |(at, (name, base)): (usize, &(Arc<str>, DataType))| {
                let value = self.variable_value((variable, Some(at)), base, position);
                (Arc::clone(name), value)
            };
            return Ok(row_of(fields.iter().enumerate().map(field).collect(), position));
        };
        let at = fields.iter().position(|(name, _)| **name == **first);
        let at = at.ok_or_else(|| no_field(&shape.name, first))?;
        let mut value = self.variable_value((variable, Some(at)), &fields[at].1, position);
        for field in rest {
            value = self.field_named(&value, field).ok_or_else(|| no_field(&shape.name, field))?;
        }
        Ok(value)
    }

    /// Returns the parameter of a variable.
    fn variable_value(
        &mut self,
        (variable, field): (usize, Option<usize>),
        sql_type: impl Into<SqlType>,
        position: usize,
    ) -> Typed {
        let mut uses = self.variable_uses.iter();
        let known = uses.find(|one| one.variable == variable && one.field == field);
        let parameter = match known.map(|one| one.parameter) {
            Some(parameter) => parameter,
            None => {
                let parameter = self.parameters.outer();
                self.variable_uses.push(VariableUse { parameter, variable, field });
                parameter
            }
        };
        let sql_type = sql_type.into();
        let expr = Expr::Parameter { index: parameter, data_type: sql_type.base.clone() };
        Typed { expr, sql_type, position }
    }

    /// Returns the value of `$number` in a body.
    pub(super) fn numbered_variable(
        &mut self,
        number: usize,
        position: usize,
    ) -> Option<Result<Typed>> {
        let scope = self.visible_variables()?;
        let found = scope.names.find(scope.place, &[&format!("${number}")], |_| true)?;
        Some(self.variable_field(scope, found.variable, &[], position))
    }

    /// Returns the fields of `variable.*`.
    pub(super) fn variable_fields(&mut self, name: &[Ident]) -> Result<Option<NamedValues>> {
        Ok(self.variable_named(name)?.as_ref().and_then(fields))
    }

    /// Returns a plan whose value is converted to the type of a target, and that type.
    fn for_target(
        &mut self,
        plan: Logical,
        (column, position): (&OutputColumn, usize),
        target: BodyTarget<'_>,
    ) -> Result<(Logical, SqlType)> {
        let sql_type = &column.sql_type;
        let (input, expr) = match plan {
            Logical::Project { input, mut expressions } if expressions.len() == 1 => {
                let expr = expressions.pop();
                (input, expr.unwrap_or_else(|| Expr::column(0, &sql_type.base)))
            }
            plan => (Box::new(plan), Expr::column(0, &sql_type.base)),
        };
        let value = Typed::new(expr, sql_type, position);
        let (expr, sql_type) = match target {
            BodyTarget::Any => {
                let value = self.resolve_unknown(value)?;
                (value.expr, value.sql_type)
            }
            // The type of a row is known only at execution.
            BodyTarget::Type(to) if to.base.is_row() && !value.is_unknown() => {
                (value.expr, value.sql_type)
            }
            BodyTarget::Type(to) if to.base == DataType::Record => {
                let value = self.resolve_unknown(value)?;
                (value.expr, value.sql_type)
            }
            BodyTarget::Type(to) => (self.assigned_value(value, to)?, to.clone()),
            BodyTarget::Part(variable, path) => {
                let (rows, value) = match &*input {
                    Logical::Values { types, .. } if types.is_empty() => {
                        (Rows::new(*input, Vec::new()), value)
                    }
                    _ => {
                        let mut rows = Rows::new(*input, Vec::new());
                        rows.project(vec![value.expr]);
                        (rows, Typed { expr: Expr::column(0, &sql_type.base), ..value })
                    }
                };
                return self.for_part(rows, value, (variable, path));
            }
        };
        let plan = Logical::Project { input, expressions: vec![expr] };
        Ok((plan, sql_type))
    }

    /// Replaces a part of a variable by a value over some rows.
    fn for_part(
        &mut self,
        mut rows: Rows,
        value: Typed,
        (variable, path): (usize, &[TargetStep]),
    ) -> Result<(Logical, SqlType)> {
        let assign = |binder: &mut Self| binder.assigned_variable(value, variable, path);
        let ((expr, sql_type), level) = self.in_new_level(Scope::default(), Clause::Set, assign)?;
        let expr = rows.place(expr, &level.subqueries);
        rows.project(vec![expr]);
        Ok((rows.plan, sql_type))
    }

    fn assigned_value(&mut self, value: Typed, to: &SqlType) -> Result<Expr> {
        let from = value.sql_type.clone();
        self.converted(value, to)?.ok_or_else(|| {
            err!(CANNOT_COERCE: "cannot cast type {} to {}", self.type_name(&from), self.type_name(to))
        })
    }

    /// Converts a value as an assignment to a variable does: through text if there is no cast.
    fn converted(&mut self, value: Typed, to: &SqlType) -> Result<Option<Expr>> {
        let context = CastContext::Assignment;
        if let Some(expr) = self.coerce(value.clone(), to, context)? {
            return Ok(Some(expr));
        }
        let position = value.position;
        let text = SqlType::from(DataType::Text);
        let Some(expr) = self.coerce(value, &text, CastContext::Explicit)? else { return Ok(None) };
        let written = Typed { expr, sql_type: text, position };
        self.coerce(written, to, CastContext::Explicit)
    }

    /// Returns a variable with a part replaced by a value; for a `record`, the field.
    fn assigned_variable(
        &mut self,
        value: Typed,
        variable: usize,
        path: &[TargetStep],
    ) -> Result<(Expr, SqlType)> {
        let Some(scope) = self.variables else {
            bail!(INTERNAL_ERROR: "there are no variables");
        };
        let shape = &scope.shapes[variable];
        let (old, rest) = match path {
            [TargetStep::Field(name), rest @ ..] if shape.is_record() => {
                let field = name.value.as_str();
                (self.variable_field(scope, variable, &[field], 1)?, rest)
            }
            path => (self.variable_field(scope, variable, &[], 1)?, path),
        };
        let to = old.sql_type.clone();
        if rest.is_empty() {
            return Ok((self.assigned_value(value, &to)?, to));
        }
        let expr = self.with_part(old, rest, &shape.name, value)?;
        Ok((expr, to))
    }
}

fn no_field(variable: &str, field: &str) -> Error {
    err!(UNDEFINED_COLUMN: "record \"{variable}\" has no field \"{field}\"")
}

/// Returns the error for the fields of an unassigned record.
fn unassigned(name: &str) -> Error {
    err!(OBJECT_NOT_IN_PREREQUISITE_STATE: "record \"{name}\" is not assigned yet";
        detail "The tuple structure of a not-yet-assigned record is indeterminate.")
}

/// Returns the value of a field of a row.
pub fn field_value(row: &Datum, at: usize) -> Datum {
    match row {
        Datum::Nested(types::datum::Nested::Record(record)) => {
            record.values.get(at).cloned().unwrap_or(Datum::Null)
        }
        _ => Datum::Null,
    }
}
