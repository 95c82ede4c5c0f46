//! Names of columns in definitions, replaced by those of the catalog: `f.x` becomes the name of
//! column `x` of family `f`, as [`column_family`] defines it.
//!
//! Expressions are bound with the families ([`NameContext::families`]), and their texts are stored
//! with the names of the catalog.
//!
//! [`NameContext::families`]: crate::binder::NameContext::families

use crate::ast::{
    ColumnDefinition, ColumnName, ConstraintKind, CreateTable, Ident, TableChange, TableConstraint,
};
use crate::catalog::column_family::{self, qualified_name};
use crate::catalog::record::TableRecord;
use crate::catalog::table::Table;
use crate::ddl::options::TableOptions;
use crate::error::{Error, Result};
use crate::relation_assembly::DEFAULT_FAMILY;
use crate::storage_options::{OptionScope, RowStorage};

/// Returns the definition of a table with the names that its columns get.
///
/// # Errors
///
/// 42703 for a column that does not exist, 42702 for an ambiguous one, 42P16 for a family of a key
/// column; errors of options.
pub(super) fn in_definition(statement: &CreateTable) -> Result<CreateTable> {
    let options =
        TableOptions::with_storage(RowStorage::Row, &statement.options, OptionScope::Table)?;
    let mut plain = statement.clone();
    let mut columns: Vec<(String, String)> = Vec::with_capacity(statement.columns.len());
    for column in &mut plain.columns {
        let ColumnName { family, name } = &mut column.name;
        let mut others = statement.columns.iter().map(|other| &other.name.name.value);
        let of_option = || options.family_of(&name.value).unwrap_or(DEFAULT_FAMILY).to_owned();
        let of = family.as_ref().map_or_else(of_option, |family| family.value.clone());
        let is_shared = others.by_ref().filter(|other| **other == name.value).count() > 1;
        if is_shared && family.is_some() {
            name.value = qualified_name(&of, &name.value);
        }
        columns.push((name.value.clone(), of));
    }
    for constraint in &mut plain.constraints {
        in_constraint(constraint, &columns)?;
        refuse_family_of_key(constraint, &plain.columns)?;
    }
    Ok(plain)
}

/// Replaces the names in a constraint of a table by those of the catalog.
///
/// # Errors
///
/// See [`in_definition`].
pub(super) fn in_constraint(
    constraint: &mut TableConstraint,
    columns: &[(String, String)],
) -> Result<()> {
    let columns = columns.iter().map(|(name, family)| (name.as_str(), family.as_str()));
    for name in names_of(constraint) {
        let found = column_family::named(columns.clone(), name)?;
        let found = found.and_then(|found| columns.clone().nth(found));
        match (found, &name.family) {
            (Some((found, _)), _) => *name = plain(found, name),
            (None, Some(family)) => {
                bail!(UNDEFINED_COLUMN: "column \"{}.{}\" named in key does not exist", family.value, name.name.value;
                    at name.position())
            }
            // The check of the constraint reports it.
            (None, None) => {}
        }
    }
    Ok(())
}

/// As [`in_constraint`], for a constraint of an existing table.
///
/// # Errors
///
/// See [`in_definition`].
pub(super) fn in_constraint_of(
    record: &TableRecord,
    constraint: &TableConstraint,
) -> Result<TableConstraint> {
    let mut constraint = constraint.clone();
    let columns = record.columns.iter().map(|column| column.shown_name().to_owned());
    let columns: Vec<_> = columns.zip(record.family_names()).collect();
    in_constraint(&mut constraint, &columns)?;
    Ok(constraint)
}

/// Returns a change of a table with the name of its column in the catalog.
///
/// # Errors
///
/// 42703 for a column that does not exist in its family, 42702 for an ambiguous one.
pub(super) fn in_change(table: &Table, change: &TableChange) -> Result<TableChange> {
    let mut change = change.clone();
    if let Some(name) = change.column_mut() {
        *name = of_table(table, name)?;
    }
    Ok(change)
}

/// Returns the name of a column in the catalog. An unqualified name need not exist.
///
/// # Errors
///
/// See [`in_change`].
pub(super) fn of_table(table: &Table, name: &ColumnName) -> Result<ColumnName> {
    match (table.find_column(name)?, &name.family) {
        (Some(found), _) => Ok(plain(&table.columns[found].name, name)),
        (None, None) => Ok(name.clone()),
        (None, Some(family)) => {
            let (family, name) = (&family.value, &name.name.value);
            bail!(UNDEFINED_COLUMN: "column \"{family}.{name}\" of relation \"{}\" does not exist", table.name)
        }
    }
}

fn plain(name: &str, written: &ColumnName) -> ColumnName {
    let name = Ident { value: name.to_owned(), position: written.name.position };
    ColumnName { family: None, name }
}

/// Rejects a family of a column of the primary key, which is stored in the row key.
fn refuse_family_of_key(constraint: &TableConstraint, columns: &[ColumnDefinition]) -> Result<()> {
    let ConstraintKind::PrimaryKey(key) = &constraint.kind else { return Ok(()) };
    if constraint.index_key().is_some() {
        return Ok(());
    }
    let named = |column: &&ColumnDefinition| {
        column.name.family.is_some()
            && key.iter().any(|one| one.name.name.value == column.name.name.value)
    };
    match columns.iter().find(named) {
        None => Ok(()),
        Some(column) => {
            let name = &column.name.name.value;
            bail!(INVALID_TABLE_DEFINITION: "column \"{name}\" of the primary key cannot be in a column family";
                detail "The row key contains it.";
                hint "Declare the column without a family.";
                at column.name.position())
        }
    }
}

/// Returns the names of columns of its table in a constraint.
fn names_of(constraint: &mut TableConstraint) -> Vec<&mut ColumnName> {
    let mut names: Vec<&mut ColumnName> = match &mut constraint.kind {
        ConstraintKind::PrimaryKey(columns) => {
            columns.iter_mut().map(|key| &mut key.name).collect()
        }
        ConstraintKind::Unique(key) => key.columns.iter_mut().map(|key| &mut key.name).collect(),
        ConstraintKind::ForeignKey(key) => {
            key.columns.iter_mut().chain(&mut key.delete_columns).collect()
        }
        ConstraintKind::Check(_) => Vec::new(),
    };
    names.extend(&mut constraint.index.include);
    names
}
