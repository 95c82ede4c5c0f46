//! Dynamic columns: columns of a table with STORAGE = CELL that only a statement declares, as in
//! Phoenix: `SELECT k, c FROM t (c int)`, `UPSERT INTO t (k, c int) VALUES (…)`.
//!
//! The statement is bound to a copy of the table that has them behind the declared columns. The
//! qualifier of their cells is the name without the family, which is never that of a declared
//! column ([`column_qualifier`](types::rowcode::column_qualifier)). The catalog, and with it
//! constraints and indexes, does not know them.

use std::sync::Arc;

use types::Datum;
use types::rowcode::{ColumnCell, ColumnPlace, LayoutColumn};

use crate::ast::DynamicColumn;
use crate::binder::level::Binder;
use crate::binder::scope::{RelationKind, ScopeRelation};
use crate::catalog::collation;
use crate::catalog::table::{COLUMNS_MAX, Column, Table};
use crate::error::{Error, Result};

impl Binder<'_> {
    /// Returns a table with dynamic columns in addition; the table itself without any.
    ///
    /// # Errors
    ///
    /// 0A000 for a table of another storage and in definitions; 42701 for a column that exists.
    pub(super) fn with_dynamic_columns(
        &self,
        table: &Arc<Table>,
        columns: &[DynamicColumn],
    ) -> Result<Arc<Table>> {
        let Some(first) = columns.first() else { return Ok(Arc::clone(table)) };
        let position = first.name.name.position;
        if !table.column_cells {
            let what = format!("a dynamic column of table \"{}\" with STORAGE = ROW", table.name);
            let hint = "Create the table with STORAGE = CELL.";
            return Err(Error::not_supported(what, hint).at(position));
        }
        if self.trace.is_some() {
            let hint = "Declare the columns with ALTER TABLE.";
            return Err(Error::not_supported("a view with a dynamic column", hint).at(position));
        }
        let mut table = Table::clone(table);
        if table.columns.len() + columns.len() > COLUMNS_MAX {
            bail!(TOO_MANY_COLUMNS: "tables can have at most {COLUMNS_MAX} columns"; at position);
        }
        columns.iter().try_for_each(|column| self.add_dynamic_column(&mut table, column))?;
        Ok(Arc::new(table))
    }

    fn add_dynamic_column(&self, table: &mut Table, column: &DynamicColumn) -> Result<()> {
        let qualifier = &column.name.name;
        let families = &table.descriptor.families;
        let family = match &column.name.family {
            None => 0,
            Some(family) => {
                let is_it = |same: fn(&str, &str) -> bool| {
                    families.iter().position(|one| same(&one.name, &family.value))
                };
                let found = is_it(str::eq).or_else(|| is_it(str::eq_ignore_ascii_case));
                found.ok_or_else(|| {
                    err!(UNDEFINED_OBJECT: "column family \"{}\" does not exist", family.value;
                        at family.position)
                })?
            }
        };
        let name = table.name_of_added(&column.name);
        let found = table.column_in_family(&families[family].name, &qualifier.value);
        if found.is_some() || table.column_index(&name).is_some() {
            bail!(DUPLICATE_COLUMN: "column \"{name}\" of relation \"{}\" already exists", table.name;
                at qualifier.position);
        }
        let sql_type = self.catalog.type_named(&column.type_name, self.search_path())?;
        let layout = Arc::make_mut(&mut table.layout);
        layout.columns.push(LayoutColumn {
            data_type: sql_type.base.clone(),
            place: ColumnPlace::Packed { cell: layout.cell_count(), slot: 0 },
            missing: Datum::Null,
        });
        layout.column_cells.push(ColumnCell {
            column: table.columns.len(),
            family,
            qualifier: qualifier.value.clone().into_bytes(),
        });
        table.columns.push(Column {
            name,
            not_null: false,
            default: None,
            identity: None,
            generated: None,
            domain: sql_type.domain.and_then(|oid| self.catalog.domain(oid)).cloned(),
            collation: collation::written(&column.type_name, &sql_type)?
                .or_else(|| collation::of(self.catalog, &sql_type)),
            dropped: false,
            sql_type,
        });
        Ok(())
    }
}

/// Checks that relations with dynamic columns are tables.
///
/// # Errors
///
/// 0A000 for another relation.
pub(super) fn check_relations(
    columns: &[DynamicColumn],
    relations: &[ScopeRelation],
) -> Result<()> {
    // A table with dynamic columns has no row type.
    let is_extended = |relation: &ScopeRelation| {
        relation.kind == RelationKind::Table && relation.row_type.is_none()
    };
    match columns.first() {
        Some(column) if !relations.iter().all(is_extended) => Err(refusal(column)),
        _ => Ok(()),
    }
}

/// Returns the error for a dynamic column of a relation that is no table.
pub(super) fn refusal(column: &DynamicColumn) -> Error {
    let hint = "Use the table, which must have STORAGE = CELL.";
    Error::not_supported("a dynamic column of a relation that is not a table", hint)
        .at(column.name.name.position)
}
