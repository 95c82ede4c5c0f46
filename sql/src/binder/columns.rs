//! Binding of column references, including outer references to enclosing query levels.

use types::DataType;
use types::expr::Expr;

use crate::ast::{self, Ident};
use crate::binder::column_hints;
use crate::binder::level::{Binder, ColumnVisibility, LateralBar, QueryLevel, Reference};
use crate::binder::scope::{ScopeColumn, ScopeRelation, system_column};
use crate::binder::tree::for_each_column;
use crate::binder::typed::Typed;
use crate::error::{Error, Result, sqlstate};

impl Binder<'_> {
    /// Binds a column reference or a PL/pgSQL variable.
    pub(super) fn bind_column(&mut self, parts: &[Ident]) -> Result<Typed> {
        match self.visible_variables() {
            Some(scope) => self.variable_or_column(scope, parts),
            None => self.bind_sql_column(parts),
        }
    }

    /// Binds a column reference. Setting `phoenix_compatibility` allows an unknown one to be found
    /// in lower case.
    pub(super) fn bind_sql_column(&mut self, parts: &[Ident]) -> Result<Typed> {
        let bound = self.bind_column_as_written(parts);
        match bound {
            Err(error) if self.search_path().ignores_case() => {
                let mut lower = parts.to_vec();
                // The qualifier may be an alias in upper case, so the column is first.
                for at in (0..parts.len()).rev() {
                    lower[at].value = lower[at].value.to_lowercase();
                    if let Ok(found) = self.bind_column_as_written(&lower) {
                        return Ok(found);
                    }
                }
                Err(error)
            }
            bound => bound,
        }
    }

    fn bind_column_as_written(&mut self, parts: &[Ident]) -> Result<Typed> {
        let position = parts.first().map_or(1, |part| part.position);
        for depth in (0..self.levels.len()).rev() {
            let level = &self.levels[depth];
            if level.reach == ColumnVisibility::Hidden {
                continue;
            }
            let found = level.scope.find(parts).map_err(|error| error.at(position));
            let found = match found {
                Err(error) if error.sqlstate.as_ref() == sqlstate::UNDEFINED_COLUMN => {
                    let value = self.function_of_row(parts)?;
                    return value.ok_or_else(|| self.with_hint(error, parts));
                }
                found => found?,
            };
            if let Some(column) = found.cloned() {
                if let Some(barred) = level.barred {
                    let qualifier = &parts[..parts.len() - 1];
                    return Err(self.barred(depth, qualifier, barred, parts.last()).at(position));
                }
                self.note_column(&column);
                self.note_reference(depth, parts, &column);
                return Ok(self.reference(depth, column, position));
            }
        }
        if let Some(row) = self.whole_row(parts)? {
            return Ok(row);
        }
        if let Some(field) = self.parameter_field(parts) {
            return Ok(field);
        }
        if let Some(value) = self.function_of_row(parts)? {
            return Ok(value);
        }
        match self.parameter_named(parts) {
            Some(value) => Ok(value),
            None => match self.aliased(parts) {
                Some(expr) => self.bind_expr(&expr),
                None => Err(self.no_column(parts).at(position)),
            },
        }
    }

    /// Takes the value of an alias that HAVING names.
    fn aliased(&mut self, parts: &[Ident]) -> Option<ast::Expr> {
        let [name] = parts else { return None };
        let aliases = &self.levels.last()?.aliases;
        aliases.iter().find(|(alias, _)| *alias == name.value).map(|(_, expr)| expr.clone())
    }

    /// Returns the field for `parameter.field` in the body of a function.
    fn parameter_field(&self, parts: &[Ident]) -> Option<Typed> {
        let [parameter @ .., field] = parts else { return None };
        let row = self.parameter_named(parameter).filter(|_| !parameter.is_empty())?;
        self.field_named(&row, &field.value)
    }

    /// Returns the value of `t.f` if `f` is a function that accepts rows of `t`.
    fn function_of_row(&mut self, parts: &[Ident]) -> Result<Option<Typed>> {
        let [relation @ .., name] = parts else { return Ok(None) };
        let path = self.search_path();
        if relation.is_empty() || self.catalog.functions_named(None, &name.value, path).is_empty() {
            return Ok(None);
        }
        let Some(row) = self.whole_row(relation)? else { return Ok(None) };
        match self.function_of(name, row) {
            Err(error) if error.sqlstate.as_ref() == sqlstate::UNDEFINED_FUNCTION => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// Returns the error for a reference, by qualifier or unqualified column, to a relation that
    /// is not visible: LATERAL to the other side of a right or full join, or to the target table
    /// of the statement.
    pub(super) fn barred(
        &self,
        depth: usize,
        qualifier: &[Ident],
        barred: LateralBar,
        column: Option<&Ident>,
    ) -> Error {
        let scope = &self.levels[depth].scope;
        let of_column = |relation: &&ScopeRelation| {
            let named = |one: &ScopeColumn| column.is_some_and(|name| name.value == one.name);
            relation.columns.iter().any(named)
        };
        let found = scope.relations.iter().find(of_column).map(|relation| relation.alias.as_str());
        let name = qualifier.last().map(|name| name.value.as_str()).or(found).unwrap_or_default();
        let error = err!(INVALID_COLUMN_REFERENCE: "invalid reference to FROM-clause entry for table \"{name}\"");
        match barred {
            LateralBar::Optional => error.with_detail(
                "The combining JOIN type must be INNER or LEFT for a LATERAL reference.",
            ),
            LateralBar::Changed => error.with_hint(format!(
                "There is an entry for table \"{name}\", but it cannot be referenced from this \
                 part of the query."
            )),
        }
    }

    /// Returns the value of a column of the query level at `depth`.
    pub(super) fn reference(
        &mut self,
        depth: usize,
        column: ScopeColumn,
        position: usize,
    ) -> Typed {
        let from_subquery = depth + 1 < self.levels.len();
        let level = &mut self.levels[depth];
        if level.clause.records_columns() && !level.in_aggregate {
            for_each_column(&column.expr, &mut |index| {
                level.references.push(Reference { index, position, from_subquery });
            });
        }
        let sql_type = &column.sql_type;
        if !from_subquery {
            return Typed { expr: column.expr, sql_type: sql_type.clone(), position };
        }
        let expr = self.outer_reference(depth, column.expr, &sql_type.base);
        Typed { expr, sql_type: sql_type.clone(), position }
    }

    /// Returns the outer reference by which a subquery reads a value of the enclosing query level
    /// at `depth`.
    pub(super) fn outer_reference(
        &mut self,
        depth: usize,
        value: Expr,
        data_type: &DataType,
    ) -> Expr {
        let mut bindings = self.levels[depth].open_bindings.iter();
        let index = match bindings.find(|(_, bound)| *bound == value) {
            Some((index, _)) => *index,
            None => {
                let index = self.parameters.outer();
                self.levels[depth].open_bindings.push((index, value));
                index
            }
        };
        Expr::Parameter { index, data_type: data_type.clone() }
    }

    /// Returns a mark: the numbers of references that each query level has recorded.
    pub(super) fn marks(&self) -> Vec<[usize; 3]> {
        let mark = |level: &QueryLevel| {
            [level.open_bindings.len(), level.references.len(), level.subqueries.len()]
        };
        self.levels.iter().map(mark).collect()
    }

    /// Removes the references that were recorded after a mark.
    pub(super) fn restore_marks(&mut self, marks: &[[usize; 3]]) {
        for (level, [bindings, references, subqueries]) in self.levels.iter_mut().zip(marks) {
            level.open_bindings.truncate(*bindings);
            level.references.truncate(*references);
            level.subqueries.truncate(*subqueries);
        }
    }

    fn no_column(&self, parts: &[Ident]) -> Error {
        match parts {
            [qualifier @ .., _] if self.is_family(qualifier) => {
                self.with_hint(unknown_column(parts), parts)
            }
            [qualifier @ .., _] if !qualifier.is_empty() => self.no_relation(qualifier),
            [name] if let Some(error) = system_column(&name.value) => error,
            _ => self.with_hint(unknown_column(parts), parts),
        }
    }

    fn is_family(&self, qualifier: &[Ident]) -> bool {
        let mut levels = self.levels.iter().filter(|level| level.reach != ColumnVisibility::Hidden);
        levels.any(|level| matches!(level.scope.star(qualifier), Ok(Some(_)) | Err(_)))
    }

    /// Returns the error for the row of a relation that is not in FROM.
    pub(super) fn no_row(&self, qualifier: &[Ident]) -> Error {
        if !self.is_family(qualifier) {
            return self.no_relation(qualifier);
        }
        Error::not_supported("a column family as a row", "Name its columns.")
    }

    /// Adds a hint with the most similar column name.
    fn with_hint(&self, error: Error, parts: &[Ident]) -> Error {
        let [qualifier @ .., name] = parts else { return error };
        let alias = qualifier.last().map(|alias| alias.value.as_str());
        let levels = self.levels.iter().rev();
        let relations = levels.flat_map(|level| level.scope.all_relations());
        match column_hints::hint(relations, alias, &name.value) {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }

    /// Returns the error for a qualifier that is not in FROM.
    pub(super) fn no_relation(&self, qualifier: &[Ident]) -> Error {
        let name = qualifier.last().map(|part| part.value.as_str()).unwrap_or_default();
        let levels = self.levels.iter().rev();
        let mut relations = levels.flat_map(|level| level.scope.all_relations());
        let is_meant = |relation: &&ScopeRelation| {
            let table = relation.table.as_ref();
            relation.alias == name || table.is_some_and(|table| table.name == name)
        };
        let Some(found) = relations.find(is_meant) else {
            return err!(UNDEFINED_TABLE: "missing FROM-clause entry for table \"{name}\"");
        };
        let message = format!("invalid reference to FROM-clause entry for table \"{name}\"");
        let mut visible =
            self.levels.iter().filter(|level| level.reach != ColumnVisibility::Hidden);
        let is_visible = visible.any(|level| level.scope.has_alias(&found.alias));
        let alias = &found.alias;
        let hint = match alias != name && is_visible {
            true => format!("Perhaps you meant to reference the table alias \"{alias}\"."),
            false => format!(
                "There is an entry for table \"{alias}\", but it cannot be referenced from this \
                 part of the query."
            ),
        };
        err!(UNDEFINED_TABLE: message; hint hint)
    }
}

fn unknown_column(parts: &[Ident]) -> Error {
    let names: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
    let message = match names.as_slice() {
        [name] => format!("column \"{name}\" does not exist"),
        _ => format!("column {} does not exist", names.join(".")),
    };
    err!(UNDEFINED_COLUMN: message)
}
