//! Generated columns: validation of their expressions, and ALTER TABLE of them.

use types::SqlType;

use crate::ast;
use crate::binder::{self, NameContext, TableClause};
use crate::catalog::record::{ColumnRecord, TableRecord};
use crate::catalog::table::Table;
use crate::ddl::Ddl;
use crate::ddl::alter_column::column_of;
use crate::ddl::user_type::stored_text;
use crate::error::{Error, Result, sqlstate};
use crate::parser;
use crate::relation_assembly;

impl Ddl<'_> {
    /// Turns a generated column into a plain one; returns whether it was generated.
    pub(super) fn drop_expression(
        &mut self,
        table: &Table,
        record: &mut TableRecord,
        column: &ast::Ident,
        if_exists: bool,
    ) -> Result<bool> {
        let position = column_of(table, column)?;
        if record.columns[position].generated.take().is_some() {
            return Ok(true);
        }
        let missing = err!(OBJECT_NOT_IN_PREREQUISITE_STATE: "column \"{}\" of relation \"{}\" is not a stored generated \
            column", column.value, table.name);
        self.missing_object(missing, if_exists).map(|()| false)
    }

    /// Rewrites the rows of a table, with the value of a generated column appended.
    pub(super) fn rewrite_generated(
        &mut self,
        table: &Table,
        mut record: TableRecord,
    ) -> Result<()> {
        record.schema_version += 1;
        let Some(column) = record.columns.last() else { return Ok(()) };
        let catalog = self.changes.catalog(self.engine);
        let (text, target) =
            (column.generated.clone().unwrap_or_default(), catalog.column_type(column)?);
        let columns = catalog.columns_of(&record.columns)?;
        let value = relation_assembly::expression(&catalog, &text, &columns, Some(target))?;
        let eval = self.eval.clone();
        self.rewrite(table, record, &mut |row| {
            row.push(value.eval_row(row, &eval)?);
            Ok(())
        })
    }
}

/// Checks the expressions of all generated columns of a table, and replaces the texts by those to
/// store. `written` returns the expression of a column in the statement.
///
/// # Errors
///
/// PostgreSQL's: 42P17 for one that is not immutable or reads a generated column, 42804 for one of
/// another type.
pub(super) fn check<'w>(
    names: NameContext<'_>,
    columns: &mut [ColumnRecord],
    written: impl Fn(&str) -> Option<&'w ast::Expr>,
) -> Result<()> {
    if columns.iter().all(|column| column.generated.is_none()) {
        return Ok(());
    }
    let types = names.catalog.columns_of(columns)?;
    for at in 0..columns.len() {
        let column = &columns[at];
        let Some(text) = &column.generated else { continue };
        let written = written(&column.name);
        let parsed = written.is_none().then(|| parser::parse_expression(text)).transpose()?;
        let Some(expression) = written.or(parsed.as_ref()) else { continue };
        let target = names.catalog.column_type(column)?;
        let bound = binder::bind_table_expression(
            TableClause::Generation,
            expression,
            &types,
            Some(target.clone()),
            names,
        );
        // Positions in the text of the expression are not positions in the statement.
        let bound = bound.map_err(|error| Error {
            position: error.position.filter(|_| written.is_some()),
            ..mistyped(error, column, expression, &types, names)
        })?;
        let invalid = |message: String| err!(INVALID_OBJECT_DEFINITION: message);
        if let Some(other) = bound.columns().iter().find(|one| columns[**one].generated.is_some()) {
            let name = &columns[*other].name;
            let message =
                format!("cannot use generated column \"{name}\" in column generation expression");
            let detail = "A generated column cannot reference another generated column.";
            return Err(invalid(message).with_detail(detail));
        }
        if !bound.is_immutable() {
            return Err(invalid("generation expression is not immutable".to_owned()));
        }
        let kept = stored_text(names, text, &types, Some(target))?;
        columns[at].generated = Some(kept);
    }
    Ok(())
}

/// Returns an error with the wording for a column.
fn mistyped(
    error: Error,
    column: &ColumnRecord,
    expression: &ast::Expr,
    columns: &[(String, SqlType)],
    names: NameContext<'_>,
) -> Error {
    if error.sqlstate.as_ref() != sqlstate::DATATYPE_MISMATCH {
        return error;
    }
    let from =
        binder::bind_table_expression(TableClause::Generation, expression, columns, None, names);
    let (Ok(from), Ok(to)) = (from, names.catalog.column_type(column)) else { return error };
    let shown = |sql_type: &SqlType| names.catalog.shown_type_of(sql_type, names.path);
    let (from, to) = (shown(&from.data_type().into()), shown(&to));
    let message = format!(
        "column \"{}\" is of type {to} but default expression is of type {from}",
        column.name
    );
    Error { message, ..error }
}

/// Rejects a default for a generated column.
pub(super) fn refuse_default(table: &Table, position: usize, drops: bool) -> Result<()> {
    let column = &table.columns[position];
    if column.generated.is_none() {
        return Ok(());
    }
    let error = err!(SYNTAX_ERROR: "column \"{}\" of relation \"{}\" is a generated column", column.name, table.name);
    Err(match drops {
        true => error.with_hint("Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead."),
        false => error,
    })
}

/// Rejects USING for a generated column.
pub(super) fn refuse_using(table: &Table, position: usize, using: bool) -> Result<()> {
    let column = &table.columns[position];
    if column.generated.is_some() && using {
        bail!(INVALID_COLUMN_DEFINITION: "cannot specify USING when altering type of generated column";
            detail "Column \"{}\" is a generated column.", column.name);
    }
    Ok(())
}

/// Rejects a type change of a column that a generated column reads.
pub(super) fn refuse_type(table: &Table, position: usize) -> Result<()> {
    let column = &table.columns[position];
    let mut others = table.columns.iter();
    let user = others.find(|other| {
        other.generated.as_ref().is_some_and(|made| made.columns().contains(&position))
    });
    let Some(user) = user else { return Ok(()) };
    bail!(FEATURE_NOT_SUPPORTED: "cannot alter type of a column used by a generated column";
        detail "Column \"{}\" is used by generated column \"{}\".", column.name, user.name)
}
