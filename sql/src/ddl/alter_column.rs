//! ALTER TABLE of columns: ADD COLUMN, SET and DROP DEFAULT, DROP NOT NULL.
//!
//! No row is written again. A column that is added takes the next slot of its family; rows packed
//! before have no such slot, and read as the value that its DEFAULT had when it was added.

use std::sync::Arc;

use store::descriptor::DataBlockEncoding;
use store::transaction::LockMode;
use store::{CellBatch, Scan};
use types::text::{self, TextStyle};
use types::{Datum, SqlType};

use crate::assemble;
use crate::ast;
use crate::ast::AlterTableAction;
use crate::binder;
use crate::catalog::enumeration::EnumRecord;
use crate::catalog::record::{ColumnRecord, TableRecord};
use crate::catalog::table::Table;
use crate::ddl::create_table::{COLUMNS_MAX, DEFAULT_FAMILY};
use crate::ddl::sequence::kept_default;
use crate::ddl::{Ddl, lock_table};
use crate::error::{Error, Result, sqlstate};

impl Ddl<'_> {
    /// Changes the columns of a table.
    pub fn alter_columns(&mut self, statement: &ast::AlterTable) -> Result<()> {
        let catalog = self.lock_catalog()?;
        let name = &statement.name.name.value;
        let table = self.table(&catalog, &statement.name)?;
        let mut record = TableRecord::clone(self.record_of(&catalog, &table)?.as_ref());
        let record = &mut record;
        lock_table(self.transaction, table.id, LockMode::Exclusive)?;
        match &statement.action {
            AlterTableAction::AddColumn { if_not_exists, column } => {
                let column_name = &column.name.name.value;
                if table.column_index(column_name).is_some() {
                    let message =
                        format!("column \"{column_name}\" of relation \"{name}\" already exists");
                    if *if_not_exists {
                        self.note(sqlstate::DUPLICATE_COLUMN, format!("{message}, skipping"));
                        return Ok(());
                    }
                    return Err(Error::new(sqlstate::DUPLICATE_COLUMN, message));
                }
                self.add_column(&table, record, column)?;
            }
            AlterTableAction::ColumnDefault { column, default } => {
                self.set_default(&table, record, column, default.as_ref())?;
            }
            AlterTableAction::DropNotNull(column) => drop_not_null(&table, record, column)?,
            _ => unreachable!("the caller passes what changes columns only"),
        }
        let changed = assemble::table(record, Arc::clone(&table.coprocessors))?;
        self.changes.touched.push(table.oid);
        self.store_record(&catalog, changed, record.clone())
    }

    fn add_column(
        &mut self,
        table: &Table,
        record: &mut TableRecord,
        column: &ast::ColumnDefinition,
    ) -> Result<()> {
        if table.visible_columns().count() >= COLUMNS_MAX {
            return Err(Error::new(
                "54011",
                format!("tables can have at most {COLUMNS_MAX} columns"),
            ));
        }
        let name = &column.name.name;
        if column.serial || column.identity.is_some() {
            let hint = "Create a sequence, add the column, and set its default.";
            return Err(Error::not_supported("ADD COLUMN with a sequence", hint).at(name.position));
        }
        let family = family_of(record, column)?;
        let catalog = self.changes.catalog(self.engine);
        let default = column.default.as_ref();
        let default =
            default.map(|default| kept_default(&catalog, &self.path, default)).transpose()?;
        let sql_type = catalog.type_named(&column.type_name)?;
        let value = match &column.default {
            None => Datum::Null,
            Some(default) => {
                let bound = binder::bind_table_expression(&default.expr, &[], Some(sql_type))?;
                if bound.is_volatile() {
                    let hint = "Add the column without a default, set it, and update the rows.";
                    let what = "ADD COLUMN with a default that differs from row to row";
                    return Err(Error::not_supported(what, hint).at(default.expr.position()));
                }
                bound.eval_row(&[], &self.eval)?
            }
        };
        if column.not_null && value.is_null() && self.has_rows(table)? {
            let message = format!(
                "column \"{}\" of relation \"{}\" contains null values",
                name.value, table.name
            );
            return Err(Error::new(sqlstate::NOT_NULL_VIOLATION, message));
        }
        record.schema_version += 1;
        record.columns.push(ColumnRecord {
            name: name.value.clone(),
            type_oid: sql_type.base.oid(),
            modifier: sql_type.modifier,
            not_null: column.not_null,
            default,
            family,
            identity: None,
            missing: stored(&value, sql_type)?,
            enumeration: EnumRecord::within(sql_type.base),
            dropped: false,
        });
        Ok(())
    }

    fn set_default(
        &self,
        table: &Table,
        record: &mut TableRecord,
        column: &ast::Ident,
        default: Option<&ast::SourceExpr>,
    ) -> Result<()> {
        let position = column_of(table, column)?;
        refuse_identity(table, position)?;
        record.columns[position].default = match default {
            None => None,
            Some(default) => {
                let target = Some(table.columns[position].sql_type);
                binder::bind_table_expression(&default.expr, &[], target)?;
                let catalog = self.changes.catalog(self.engine);
                Some(kept_default(&catalog, &self.path, default)?)
            }
        };
        Ok(())
    }

    /// Returns whether a table has any row. No writer is under way: its lock is held.
    fn has_rows(&self, table: &Table) -> Result<bool> {
        self.engine.store().wait_for_commits()?;
        self.transaction.begin_statement();
        let mut scanner = self.transaction.scan(table.id, Scan::all())?;
        let mut batch = CellBatch::new();
        Ok(scanner.next_batch(1, &mut batch)?)
    }
}

/// Returns the text that the catalog keeps of a value; `None` for NULL.
fn stored(value: &Datum, sql_type: SqlType) -> Result<Option<String>> {
    if value.is_null() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    text::write(value, sql_type.base, &TextStyle::default(), &mut bytes);
    let text = String::from_utf8(bytes).unwrap_or_default();
    let again = text::parse(&text, sql_type.base, &TextStyle::default())?;
    if again != *value {
        let what = format!("ADD COLUMN with a default of type {}", sql_type.base.sql_name());
        return Err(Error::not_supported(what, "Add it without a default, and update the rows."));
    }
    Ok(Some(text))
}

/// Returns the family that a new column goes to.
fn family_of(record: &TableRecord, column: &ast::ColumnDefinition) -> Result<u8> {
    let families = &record.descriptor.families;
    let position = match &column.name.family {
        None => families.iter().position(|one| one.name == DEFAULT_FAMILY).unwrap_or(0),
        Some(family) => {
            let found = families.iter().position(|one| one.name == family.value);
            found.ok_or_else(|| {
                let hint = "Add the column to a family that the table has.";
                let what = "a new column family in ALTER TABLE";
                Error::not_supported(what, hint).at(family.position)
            })?
        }
    };
    if families[position].data_block_encoding == DataBlockEncoding::Columnar {
        let what = "ADD COLUMN to a family with columnar blocks";
        return Err(Error::not_supported(what, "Add the column to another family."));
    }
    Ok(u8::try_from(position).expect("a table has at most 256 families"))
}

fn column_of(table: &Table, column: &ast::Ident) -> Result<usize> {
    table.column_index(&column.value).ok_or_else(|| {
        let message =
            format!("column \"{}\" of relation \"{}\" does not exist", column.value, table.name);
        Error::new(sqlstate::UNDEFINED_COLUMN, message)
    })
}

fn refuse_identity(table: &Table, position: usize) -> Result<()> {
    let column = &table.columns[position];
    if column.identity.is_none() {
        return Ok(());
    }
    let message =
        format!("column \"{}\" of relation \"{}\" is an identity column", column.name, table.name);
    Err(Error::new(sqlstate::SYNTAX_ERROR, message))
}

fn drop_not_null(table: &Table, record: &mut TableRecord, column: &ast::Ident) -> Result<()> {
    let position = column_of(table, column)?;
    if table.key_columns().any(|key| key == position) {
        let message = format!("column \"{}\" is in a primary key", column.value);
        return Err(Error::new(sqlstate::INVALID_TABLE_DEFINITION, message));
    }
    refuse_identity(table, position)?;
    record.columns[position].not_null = false;
    Ok(())
}
