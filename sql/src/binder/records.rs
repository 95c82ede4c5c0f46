//! Row values: `ROW(…)`, whole-row references, and their fields.
//!
//! A row is a call of ` row` whose first argument is a record that describes the fields, so that
//! the binder knows the fields of anonymous rows.
//!
//! Source: PostgreSQL's `transformRowExpr`, `transformWholeRowRef` (parse_expr.c) and
//! `ParseComplexProjection` (parse_func.c).

use std::cmp::Ordering;
use std::sync::Arc;

use types::cast::CastContext;
use types::datatype::composite::{Attribute, CompositeType};
use types::datum::{Fields, Nested, Record};
use types::expr::Expr;
use types::{DataType, Datum, SqlType};

use crate::ast::{self, AssignedValue, Ident};
use crate::binder::arrays::internal;
use crate::binder::level::{Binder, ColumnVisibility};
use crate::binder::typed::{Typed, null};
use crate::error::{Error, Result, sqlstate};
use crate::logical::Origin;

impl Binder<'_> {
    /// Binds `ROW(…)`.
    pub(super) fn bind_row(&mut self, fields: &[ast::Expr], position: usize) -> Result<Typed> {
        let mut values = Vec::new();
        for field in fields {
            // A value of unknown type may get the type of an attribute later.
            self.bind_entry(field, &mut values)?;
        }
        let names = (1..).map(|number| Arc::from(format!("f{number}")));
        Ok(row_of(names.zip(values).collect(), position))
    }

    /// Binds an entry of a list of values, which may expand to several.
    pub(super) fn bind_entry(&mut self, entry: &ast::Expr, values: &mut Vec<Typed>) -> Result<()> {
        match entry {
            ast::Expr::WholeRow(relation) => values.extend(self.row_values(relation)?),
            ast::Expr::Field { operand, name } if name.value == ast::ALL_FIELDS => {
                let fields = self.bind_fields(operand, operand.position())?;
                values.extend(fields.into_iter().map(|(_, value)| value));
            }
            entry => values.push(self.bind_expr(entry)?),
        }
        Ok(())
    }

    /// Returns the values of a row of INSERT, with `(row).*` expanded.
    pub(super) fn expanded_values(&mut self, row: &[AssignedValue]) -> Result<Vec<AssignedValue>> {
        let mut values = Vec::with_capacity(row.len());
        for value in row {
            match value {
                AssignedValue::Expr(ast::Expr::Field { operand, name })
                    if name.value == ast::ALL_FIELDS =>
                {
                    for (field, _) in self.bind_fields(operand, operand.position())? {
                        let name = Ident { value: field.to_string(), ..name.clone() };
                        let operand = operand.clone();
                        values.push(AssignedValue::Expr(ast::Expr::Field { operand, name }));
                    }
                }
                value => values.push(value.clone()),
            }
        }
        Ok(values)
    }

    /// Returns the values that `t.*` expands to in a list.
    pub(super) fn row_values(&mut self, relation: &[Ident]) -> Result<Vec<Typed>> {
        let position = relation.first().map_or(1, |part| part.position);
        let columns = self.columns_of(relation)?;
        let columns = columns.ok_or_else(|| self.no_row(relation).at(position))?;
        Ok(columns.values.into_iter().map(|(_, value)| value).collect())
    }

    /// Binds `t.*` as a row value.
    pub(super) fn bind_whole_row(&mut self, relation: &[Ident]) -> Result<Typed> {
        let row = match self.whole_row(relation)? {
            None => self.variable_named(relation)?,
            row => row,
        };
        let position = relation.first().map_or(1, |part| part.position);
        row.ok_or_else(|| self.no_row(relation).at(position))
    }

    /// Returns the row of a relation; `None` if no query level has a relation of this name.
    pub(super) fn whole_row(&mut self, name: &[Ident]) -> Result<Option<Typed>> {
        let position = name.first().map_or(1, |part| part.position);
        if let Some(value) = self.value_of_relation(name, position) {
            return Ok(Some(value));
        }
        let Some(columns) = self.columns_of(name)? else { return Ok(None) };
        let of_relation = columns.row_type;
        if let Some(relation) = of_relation {
            // Of all columns, also those that are not visible.
            self.request_column(Some((Origin::Relation(relation), usize::MAX)));
        }
        let missing = columns.is_padded.then(|| {
            let is_null = |(_, value): &(_, Typed)| Expr::IsNull(Box::new(value.expr.clone()));
            Expr::And(columns.values.iter().map(is_null).collect())
        });
        let mut row = row_of(columns.values, position);
        let row_type = of_relation.and_then(|number| self.catalog.row_type(number));
        if let Some(SqlType { base: DataType::Composite(of), .. }) = row_type
            && let Some((fields, values)) = fields_of(&row.expr)
            && fields.iter().map(|one| &one.1).eq(of.fields().iter().map(|one| &one.1))
        {
            let expr = row_expr(Record::of_type(&of, Vec::new()), values.to_vec());
            row = Typed::new(expr, DataType::Composite(of), position);
        }
        if let Some(missing) = missing {
            row.expr = Expr::Case {
                branches: vec![(missing, null(row.base()))],
                data_type: row.base().clone(),
                otherwise: Box::new(row.expr),
            };
        }
        self.note_row(name, &row);
        Ok(Some(row))
    }

    /// Returns the value of a function in FROM that is referenced by the relation's name and
    /// returns scalar values.
    fn value_of_relation(&mut self, name: &[Ident], position: usize) -> Option<Typed> {
        let named = |depth: &usize| {
            let level = &self.levels[*depth];
            level.reach != ColumnVisibility::Hidden && level.scope.relation(name).is_some()
        };
        let depth = (0..self.levels.len()).rev().find(named)?;
        let relation = self.levels[depth].scope.relation(name).filter(|one| one.is_value)?;
        let column = relation.columns.first()?.clone();
        self.note_reference(depth, name, &column);
        Some(self.reference(depth, column, position))
    }

    /// Returns the columns of the relation of this name at the innermost query level that has one.
    fn columns_of(&mut self, name: &[Ident]) -> Result<Option<Columns>> {
        let position = name.first().map_or(1, |part| part.position);
        for depth in (0..self.levels.len()).rev() {
            let level = &self.levels[depth];
            if level.reach == ColumnVisibility::Hidden {
                continue;
            }
            let Some(relation) = level.scope.relation(name) else { continue };
            if let Some(barred) = level.barred {
                return Err(self.barred(depth, name, barred, None).at(position));
            }
            let (columns, is_padded) = (relation.row_columns(), relation.is_padded);
            let row_type = relation.row_type;
            let value = |column: crate::binder::scope::ScopeColumn| {
                let name = Arc::from(column.name.as_str());
                (name, self.reference(depth, column, position))
            };
            let values = columns.into_iter().map(value).collect();
            return Ok(Some(Columns { values, is_padded, row_type }));
        }
        Ok(None)
    }

    /// Binds `(operand).name`.
    pub(super) fn bind_field(&mut self, operand: &ast::Expr, name: &Ident) -> Result<Typed> {
        let record = self.bind_expr(operand)?;
        let position = record.position;
        if name.value == ast::ALL_FIELDS && record.base().is_row() {
            bail!(FEATURE_NOT_SUPPORTED: "row expansion via \"*\" is not supported here"; at position);
        }
        if !record.base().is_row() {
            bail!(WRONG_OBJECT_TYPE: "column notation .{} applied to type {}, which is not a composite type",
                name.value, self.type_name(&record.sql_type); at position);
        }
        let shown = self.type_name(&record.sql_type);
        let is_made_here = fields_of(&record.expr).is_some();
        let mut fields = self.fields_of_row(operand, &record)?.unwrap_or_default().into_iter();
        if let Some((_, value)) = fields.find(|(field, _)| **field == *name.value) {
            return Ok(value);
        }
        let path = self.search_path();
        if !self.catalog.functions_named(None, &name.value, path).is_empty() {
            match self.function_of(name, record.clone()) {
                Err(error) if error.sqlstate.as_ref() == sqlstate::UNDEFINED_FUNCTION => {}
                answer => return answer,
            }
        }
        Err({
            let message = match operand {
                ast::Expr::Column(parts) if is_made_here => {
                    let relation: Vec<&str> = parts.iter().map(|part| &*part.value).collect();
                    format!("column {}.{} does not exist", relation.join("."), name.value)
                }
                _ if matches!(record.base(), DataType::Composite(_)) => {
                    format!("column \"{}\" not found in data type {shown}", name.value)
                }
                _ => format!("could not identify column \"{}\" in record data type", name.value),
            };
            err!(UNDEFINED_COLUMN: message; at position)
        })
    }

    /// Returns the field of a row that function notation refers to, if there is one.
    pub(super) fn field_named(&self, row: &Typed, name: &str) -> Option<Typed> {
        let DataType::Composite(_) = row.base() else { return None };
        let mut fields = fields(row)?.into_iter();
        fields.find(|(field, _)| **field == *name).map(|(_, value)| value)
    }

    /// Binds `(operand).*`.
    pub(super) fn bind_fields(
        &mut self,
        operand: &ast::Expr,
        position: usize,
    ) -> Result<Vec<(Arc<str>, Typed)>> {
        let row = self.bind_expr(operand)?;
        if !row.base().is_row() {
            bail!(WRONG_OBJECT_TYPE: "type {} is not composite", self.type_name(&row.sql_type); at position);
        }
        self.fields_of_row(operand, &row)?.ok_or_else(
            || err!(WRONG_OBJECT_TYPE: "record type has not been registered"; at position),
        )
    }

    /// Converts an anonymous row to a composite type, field by field; `None` for other rows.
    pub(super) fn row_as(
        &mut self,
        row: &Typed,
        of: &Arc<CompositeType>,
        context: CastContext,
    ) -> Result<Option<Expr>> {
        let Some((fields, values)) = fields_of(&row.expr) else { return Ok(None) };
        let to = DataType::Composite(Arc::clone(of));
        let shown = to.sql_name();
        let cannot = |detail: String| {
            err!(CANNOT_COERCE: "cannot cast type record to {shown}"; with_type_mention &to; detail detail;
                at row.position)
        };
        match fields.len().cmp(&of.attributes().len()) {
            Ordering::Less => return Err(cannot("Input has too few columns.".to_owned())),
            Ordering::Greater => return Err(cannot("Input has too many columns.".to_owned())),
            Ordering::Equal => {}
        }
        let mut converted = Vec::with_capacity(values.len());
        for (at, (value, attribute)) in values.iter().cloned().zip(of.attributes()).enumerate() {
            let from = &fields[at].1;
            let value = Typed::new(value, from, row.position);
            let value = self.coerce(value, &attribute.sql_type, context)?.ok_or_else(|| {
                let (from, to) =
                    (self.type_name(&from.into()), self.type_name(&attribute.sql_type));
                cannot(format!("Cannot cast type {from} to {to} in column {}.", at + 1))
            })?;
            converted.push(value);
        }
        let made = row_expr(Record::of_type(of, Vec::new()), converted);
        // The condition under which the whole row is NULL is retained.
        Ok(Some(match &row.expr {
            Expr::Case { branches, .. } => {
                let missing = branches.iter().map(|(when, _)| (when.clone(), null(&to)));
                let branches = missing.collect();
                Expr::Case { branches, otherwise: Box::new(made), data_type: to }
            }
            _ => made,
        }))
    }

    /// Adds domain checks for the fields of a row or the elements of an array. It is for values
    /// that come from text, from a client, or from another type.
    pub(super) fn with_checked_parts(&self, value: Expr) -> Expr {
        match self.catalog.element_checks(value.data_type()) {
            Some(checks) => Expr::Domain { operand: Box::new(value), checks, explicit: false },
            None => value,
        }
    }

    /// Returns a row with the value of one field replaced.
    pub(super) fn with_field(
        &mut self,
        row: Expr,
        (of, at): (&Arc<CompositeType>, usize),
        value: Typed,
    ) -> Result<Expr> {
        let (from, position) = (value.sql_type.clone(), value.position);
        let attribute = &of.attributes()[at];
        let value = self.coerce(value, &attribute.sql_type, CastContext::Assignment)?;
        let value = value.ok_or_else(|| {
            err!(DATATYPE_MISMATCH: "subfield \"{}\" is of type {} but expression is of type {}",
                attribute.name, self.type_name(&attribute.sql_type), self.type_name(&from);
                hint "You will need to rewrite or cast the expression."; at position)
        })?;
        let data_type = DataType::Composite(Arc::clone(of));
        let arguments = vec![
            description(Record::of_type(of, Vec::new())),
            row,
            Expr::constant(Datum::Int4(at as i32), DataType::Int4),
            value,
        ];
        Ok(internal(" with field", arguments, data_type))
    }
}

/// Returns the fields of a row if they are known to the binder.
pub(super) fn fields(row: &Typed) -> Option<Vec<(Arc<str>, Typed)>> {
    let position = row.position;
    let declared = match row.base() {
        DataType::Composite(of) => Some(of.attributes()),
        _ => None,
    };
    if let Some((fields, values)) = fields_of(&row.expr) {
        let named = fields.iter().zip(values).enumerate();
        let field = |(at, ((name, data_type), value)): (usize, (&(Arc<str>, DataType), &Expr))| {
            let sql_type = declared.and_then(|all| all.get(at)).map(|one| one.sql_type.clone());
            let sql_type = sql_type.unwrap_or_else(|| data_type.into());
            (Arc::clone(name), Typed { expr: value.clone(), sql_type, position })
        };
        return Some(named.map(field).collect());
    }
    if let Expr::Routine { routine, .. } = &row.expr
        && let Some(fields) = &routine.fields
    {
        let field = |(at, (name, base)): (usize, &(Arc<str>, DataType))| {
            let expr = field_of(row.expr.clone(), at, base);
            (Arc::clone(name), Typed::new(expr, base, position))
        };
        return Some(fields.iter().enumerate().map(field).collect());
    }
    let field = |(at, attribute): (usize, &Attribute)| {
        let sql_type = attribute.sql_type.clone();
        let expr = field_of(row.expr.clone(), at, &sql_type.base);
        (Arc::clone(&attribute.name), Typed { expr, sql_type, position })
    };
    Some(declared?.iter().enumerate().map(field).collect())
}

/// Returns the field of a row at a position.
pub(super) fn field_of(row: Expr, at: usize, data_type: impl Into<DataType>) -> Expr {
    let at = Expr::constant(Datum::Int4(at as i32), DataType::Int4);
    internal(" field", vec![row, at], data_type)
}

fn description(record: Record) -> Expr {
    let data_type = record.of.clone().map_or(DataType::Record, DataType::Composite);
    let value = Datum::Nested(Nested::Record(Arc::new(record)));
    Expr::Constant { value, data_type }
}

/// Returns a row of values; the record, without values, describes the fields.
pub(super) fn row_expr(record: Record, values: Vec<Expr>) -> Expr {
    let data_type = record.of.clone().map_or(DataType::Record, DataType::Composite);
    let mut arguments = vec![description(record)];
    arguments.extend(values);
    internal(" row", arguments, data_type)
}

struct Columns {
    values: Vec<(Arc<str>, Typed)>,
    /// True if the relation is on the nullable side of a join; all columns are NULL if it is
    /// missing.
    is_padded: bool,
    /// The table or view whose rows these are.
    row_type: Option<u32>,
}

/// Returns an anonymous row of named values.
pub(super) fn row_of(values: Vec<(Arc<str>, Typed)>, position: usize) -> Typed {
    let fields: Fields =
        values.iter().map(|(name, value)| (Arc::clone(name), value.base().clone())).collect();
    let record = Record { of: None, fields, values: Vec::new() };
    let values = values.into_iter().map(|(_, value)| value.expr).collect();
    Typed::new(row_expr(record, values), DataType::Record, position)
}

/// Returns the fields and values of a row constructor.
pub(super) fn fields_of(expr: &Expr) -> Option<(Fields, &[Expr])> {
    match expr {
        Expr::Call { function, arguments, data_type } if data_type.is_row() => {
            if types::function::signature(*function).name != " row" {
                return None;
            }
            match arguments.as_slice() {
                [
                    Expr::Constant { value: Datum::Nested(Nested::Record(description)), .. },
                    values @ ..,
                ] => Some((Arc::clone(&description.fields), values)),
                _ => None,
            }
        }
        // The whole row of a relation that may be null-extended; its columns are then NULL.
        Expr::Case { otherwise, data_type, .. } if data_type.is_row() => fields_of(otherwise),
        _ => None,
    }
}
