//! Rows as values: `ROW(…)`, whole rows of tables, and their fields.
//!
//! A row is a call of ` row` with a record in front that describes the fields, so that fields of
//! rows that are made on the spot are known while binding.
//!
//! Source: PostgreSQL's `transformRowExpr`, `transformWholeRowRef` (parse_expr.c) and
//! `ParseComplexProjection` (parse_func.c).

use std::sync::Arc;

use types::datum::{Fields, Nested, Record};
use types::expr::Expr;
use types::{DataType, Datum};

use crate::ast::{self, Ident};
use crate::binder::level::Binder;
use crate::binder::typed::{Typed, null};
use crate::error::{Error, Result, sqlstate};

impl Binder<'_> {
    /// Binds `ROW(…)`.
    pub(super) fn bind_row(&mut self, fields: &[ast::Expr], position: usize) -> Result<Typed> {
        let mut values = Vec::new();
        for field in fields {
            match field {
                ast::Expr::WholeRow(relation) => {
                    let columns = self.columns_of(relation)?;
                    let columns = columns.ok_or_else(|| self.no_relation(relation))?;
                    values.extend(columns.values.into_iter().map(|(_, value)| value));
                }
                field => {
                    let value = self.bind_expr(field)?;
                    values.push(self.known(value)?);
                }
            }
        }
        let names = (1..).map(|number| Arc::from(format!("f{number}")));
        Ok(row_of(names.zip(values).collect(), position))
    }

    /// Binds `t.*` as a value.
    pub(super) fn bind_whole_row(&mut self, relation: &[Ident]) -> Result<Typed> {
        let row = self.whole_row(relation)?;
        let position = relation.first().map_or(1, |part| part.position);
        row.ok_or_else(|| self.no_relation(relation).at(position))
    }

    /// Returns the row of a relation; `None` if no level has one of the name.
    pub(super) fn whole_row(&mut self, name: &[Ident]) -> Result<Option<Typed>> {
        let position = name.first().map_or(1, |part| part.position);
        let Some(columns) = self.columns_of(name)? else { return Ok(None) };
        let missing = columns.is_padded.then(|| {
            let is_null = |(_, value): &(_, Typed)| Expr::IsNull(Box::new(value.expr.clone()));
            Expr::And(columns.values.iter().map(is_null).collect())
        });
        let mut row = row_of(columns.values, position);
        if let Some(missing) = missing {
            row.expr = Expr::Case {
                branches: vec![(missing, null(DataType::Record))],
                otherwise: Box::new(row.expr),
                data_type: DataType::Record,
            };
        }
        Ok(Some(row))
    }

    /// Returns the columns of a relation of the innermost level that has one of the name.
    fn columns_of(&mut self, name: &[Ident]) -> Result<Option<Columns>> {
        let position = name.first().map_or(1, |part| part.position);
        for depth in (0..self.levels.len()).rev() {
            let Some(relation) = self.levels[depth].scope.relation(name) else { continue };
            let (columns, is_padded) = (relation.columns.clone(), relation.is_padded);
            let value = |column: crate::binder::scope::ScopeColumn| {
                let name = Arc::from(column.name.as_str());
                (name, self.reference(depth, column, position))
            };
            let values = columns.into_iter().map(value).collect();
            return Ok(Some(Columns { values, is_padded }));
        }
        Ok(None)
    }

    /// Binds `(operand).name`.
    pub(super) fn bind_field(&mut self, operand: &ast::Expr, name: &Ident) -> Result<Typed> {
        let record = self.bind_expr(operand)?;
        let position = record.position;
        if record.base() != DataType::Record {
            let message = format!(
                "column notation .{} applied to type {}, which is not a composite type",
                name.value,
                record.base().sql_name()
            );
            return Err(Error::new(sqlstate::WRONG_OBJECT_TYPE, message).at(position));
        }
        let found = fields_of(&record.expr).and_then(|(fields, values)| {
            let index = fields.iter().position(|(field, _)| **field == *name.value)?;
            Some(Typed::new(values.get(index)?.clone(), fields[index].1, position))
        });
        found.ok_or_else(|| {
            let message = match operand {
                ast::Expr::Column(parts) if fields_of(&record.expr).is_some() => {
                    let relation: Vec<&str> = parts.iter().map(|part| &*part.value).collect();
                    format!("column {}.{} does not exist", relation.join("."), name.value)
                }
                _ => format!("could not identify column \"{}\" in record data type", name.value),
            };
            Error::new(sqlstate::UNDEFINED_COLUMN, message).at(position)
        })
    }
}

struct Columns {
    values: Vec<(Arc<str>, Typed)>,
    /// Whether the relation may be missing: all columns are NULL then.
    is_padded: bool,
}

/// Returns a row of values with their names.
pub(super) fn row_of(values: Vec<(Arc<str>, Typed)>, position: usize) -> Typed {
    let fields: Fields =
        values.iter().map(|(name, value)| (Arc::clone(name), value.base())).collect();
    let description = Record { fields, values: Vec::new() };
    let description = Datum::Nested(Nested::Record(Arc::new(description)));
    let mut arguments = vec![Expr::Constant { value: description, data_type: DataType::Record }];
    arguments.extend(values.into_iter().map(|(_, value)| value.expr));
    let signature = types::function::overloads(" row").first();
    let function = signature.expect("the function that makes rows is there").id;
    let expr = Expr::Call { function, arguments, data_type: DataType::Record };
    Typed::new(expr, DataType::Record, position)
}

/// Returns the fields of a row that is made on the spot, and their values.
pub(super) fn fields_of(expr: &Expr) -> Option<(Fields, &[Expr])> {
    match expr {
        Expr::Call { arguments, data_type: DataType::Record, .. } => match arguments.as_slice() {
            [
                Expr::Constant { value: Datum::Nested(Nested::Record(description)), .. },
                values @ ..,
            ] => Some((Arc::clone(&description.fields), values)),
            _ => None,
        },
        // A whole row that may be missing; its columns are NULL then.
        Expr::Case { otherwise, data_type: DataType::Record, .. } => fields_of(otherwise),
        _ => None,
    }
}
