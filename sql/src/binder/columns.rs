//! Column references: of the query at hand, or of one around it.

use types::expr::Expr;

use crate::ast::Ident;
use crate::binder::level::{Binder, Reference};
use crate::binder::scope::ScopeColumn;
use crate::binder::tree::for_each_column;
use crate::binder::typed::Typed;
use crate::error::{Error, Result, sqlstate};

impl Binder<'_> {
    /// Binds a column reference.
    pub(super) fn bind_column(&mut self, parts: &[Ident]) -> Result<Typed> {
        let position = parts.first().map_or(1, |part| part.position);
        for depth in (0..self.levels.len()).rev() {
            let found = self.levels[depth].scope.find(parts).map_err(|error| error.at(position))?;
            if let Some(column) = found.cloned() {
                return Ok(self.reference(depth, column, position));
            }
        }
        Err(self.no_column(parts).at(position))
    }

    /// Returns the value of a column of the level at `depth`.
    fn reference(&mut self, depth: usize, column: ScopeColumn, position: usize) -> Typed {
        let from_subquery = depth + 1 < self.levels.len();
        let level = &mut self.levels[depth];
        if level.clause.allows_aggregates() && !level.in_aggregate {
            for_each_column(&column.expr, &mut |index| {
                level.references.push(Reference { index, position, from_subquery });
            });
        }
        let sql_type = column.sql_type;
        if !from_subquery {
            return Typed { expr: column.expr, sql_type, position };
        }
        let bound = level.open_bindings.iter().find(|(_, value)| *value == column.expr);
        let index = match bound {
            Some((index, _)) => *index,
            None => {
                let index = self.parameters.outer();
                self.levels[depth].open_bindings.push((index, column.expr));
                index
            }
        };
        Typed { expr: Expr::Parameter { index, data_type: sql_type.base }, sql_type, position }
    }

    fn no_column(&self, parts: &[Ident]) -> Error {
        let Some(level) = self.levels.last() else { return unknown_column(parts) };
        let [qualifier @ .., name] = parts else { return unknown_column(parts) };
        if qualifier.is_empty() {
            if level.scope.relation(parts).is_some() {
                let what = format!("the row of table \"{}\" as a value", name.value);
                return Error::not_supported(what, "Name its columns, or write t.*.");
            }
            let error = unknown_column(parts);
            return match level.scope.hint_for(&name.value) {
                Some(hint) => error.with_hint(hint),
                None => error,
            };
        }
        self.no_relation(qualifier)
    }

    /// Returns the error of a qualifier that is not in FROM.
    pub(super) fn no_relation(&self, qualifier: &[Ident]) -> Error {
        let name = qualifier.last().map(|part| part.value.as_str()).unwrap_or_default();
        let relations = self.levels.iter().flat_map(|level| &level.scope.relations);
        let renamed = relations
            .filter(|relation| relation.alias != name)
            .filter(|relation| relation.table.as_ref().is_some_and(|table| table.name == name))
            .map(|relation| relation.alias.clone())
            .next();
        let (message, hint) = match renamed {
            Some(alias) => (
                format!("invalid reference to FROM-clause entry for table \"{name}\""),
                Some(format!("Perhaps you meant to reference the table alias \"{alias}\".")),
            ),
            None => (format!("missing FROM-clause entry for table \"{name}\""), None),
        };
        let error = Error::new(sqlstate::UNDEFINED_TABLE, message);
        match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

fn unknown_column(parts: &[Ident]) -> Error {
    let names: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
    let message = match names.as_slice() {
        [name] => format!("column \"{name}\" does not exist"),
        _ => format!("column {} does not exist", names.join(".")),
    };
    Error::new(sqlstate::UNDEFINED_COLUMN, message)
}
