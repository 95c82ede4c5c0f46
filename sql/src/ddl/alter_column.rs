//! ALTER TABLE of columns: ADD, DROP and RENAME COLUMN, defaults, NOT NULL.
//!
//! These changes rewrite no rows. An added column gets the next slot of its family; packed rows
//! written before have no such slot, and read as the value that its DEFAULT had when it was added.
//! A dropped column keeps its slot and its number; new rows have NULL there.

use coprocessors::row::packed_cells;
use store::{CellBatch, RowRef, Scan};
use types::expr::Expr;
use types::text::{self, TextStyle};
use types::{Datum, SqlType};

use crate::ast;
use crate::catalog::ignored_attributes::{IgnoredColumnAttributes, ReplicaIdentity};
use crate::catalog::object::Object;
use crate::catalog::record::{ColumnRecord, IndexRecord, TableRecord};
use crate::catalog::table::{COLUMNS_MAX, Table};
use crate::catalog::trigger::condition_with_name;
use crate::catalog::{Catalog, collation};
use crate::ddl::Ddl;
use crate::ddl::alter_table::without_position;
use crate::ddl::dependency;
use crate::ddl::generated;
use crate::ddl::identity::ColumnFill;
use crate::ddl::key_constraint::DEFAULT_FAMILY;
use crate::ddl::options::undefined_family;
use crate::ddl::sequence::bound_default;
use crate::error::{Error, Result};
use crate::parser;
use crate::relation_assembly;

/// The number of rows read in one batch.
const ROWS_AT_ONCE: usize = 1_000;

impl Ddl<'_> {
    pub(super) fn add_column(
        &mut self,
        table: &Table,
        record: &mut TableRecord,
        column: &ast::ColumnDefinition,
    ) -> Result<Option<ColumnFill>> {
        if table.visible_columns().count() >= COLUMNS_MAX {
            bail!(TOO_MANY_COLUMNS: "tables can have at most {COLUMNS_MAX} columns");
        }
        if record.column_cells && record.columns.len() > usize::from(u16::MAX) {
            bail!(PROGRAM_LIMIT_EXCEEDED: "table \"{}\" has had too many columns", table.name;
                detail "Dropped columns count."; hint "Create a table and copy the rows.");
        }
        let name = &column.name.name;
        if column.serial || column.identity.is_some() {
            return self.add_own_sequence(record, column).map(Some);
        }
        if column.generated.is_some() {
            return self.add_generated(record, column).map(Some);
        }
        let family = family_of(record, column)?;
        let catalog = self.changes.catalog(self.engine);
        let names = self.names(&catalog);
        let sql_type = catalog.type_named(&column.type_name, &self.path)?;
        let bound = column.default.as_ref();
        let bound = bound
            .map(|default| {
                bound_default(names, default, (&name.value, sql_type.clone()))
                    .map_err(without_position)
            })
            .transpose()?;
        let default = bound.as_ref().map(|(text, _)| text.clone());
        let mut filling = None;
        let mut value = match bound {
            None => self.value_of_domain(table, &sql_type)?,
            Some((_, bound)) => {
                if bound.is_volatile() {
                    filling = Some(ColumnFill::Default(bound));
                    Datum::Null
                } else {
                    bound.eval_row(&[], &self.eval)?
                }
            }
        };
        let expires = record.descriptor.families[usize::from(family)].ttl.is_some();
        if record.column_cells && expires && !value.is_null() {
            // A missing cell is then one that has expired.
            let (value, data_type) =
                (std::mem::replace(&mut value, Datum::Null), sql_type.base.clone());
            filling = Some(ColumnFill::Default(Expr::Constant { value, data_type }));
        }
        if column.not_null && value.is_null() && filling.is_none() && self.has_rows(table)? {
            bail!(NOT_NULL_VIOLATION: "column \"{}\" of relation \"{}\" contains null values", name.value, table.name;
                of_table &table.schema, &table.name; of_column &name.value);
        }
        if filling.is_none() {
            record.schema_version += 1;
        }
        record.columns.push(ColumnRecord {
            name: name.value.clone(),
            type_oid: sql_type.stored_oid_and_modifier().0,
            modifier: sql_type.stored_oid_and_modifier().1,
            not_null: column.not_null,
            default,
            family,
            missing: stored(&value, &sql_type)?,
            collation: collation::written(&column.type_name, &sql_type)?,
            retained: IgnoredColumnAttributes {
                compression: column.compression,
                ..IgnoredColumnAttributes::default()
            },
            ..Default::default()
        });
        Ok(filling)
    }

    fn add_generated(
        &self,
        record: &mut TableRecord,
        column: &ast::ColumnDefinition,
    ) -> Result<ColumnFill> {
        record.columns.push(self.column_record(record, column)?);
        let catalog = self.changes.catalog(self.engine);
        let families = record.family_names().into();
        let names = self.names(&catalog).with_families(&families);
        generated::check(names, &mut record.columns, |_| None)?;
        Ok(ColumnFill::Generated)
    }

    /// Returns the value of a new column without a default in existing rows.
    fn value_of_domain(&self, table: &Table, sql_type: &SqlType) -> Result<Datum> {
        let catalog = self.changes.catalog(self.engine);
        match sql_type.domain.and_then(|oid| catalog.domain(oid)) {
            Some(domain) if self.has_rows(table)? => {
                Ok(domain.default_expression().eval_row(&[], &self.eval)?)
            }
            _ => Ok(Datum::Null),
        }
    }

    /// Returns the record of a generated column that is added.
    fn column_record(
        &self,
        record: &TableRecord,
        column: &ast::ColumnDefinition,
    ) -> Result<ColumnRecord> {
        let catalog = self.changes.catalog(self.engine);
        let sql_type = catalog.type_named(&column.type_name, &self.path)?;
        Ok(ColumnRecord {
            name: column.name.name.value.clone(),
            type_oid: sql_type.stored_oid_and_modifier().0,
            modifier: sql_type.stored_oid_and_modifier().1,
            not_null: column.not_null,
            // `generated::check` replaces it by the stored text.
            generated: column.generated.as_ref().map(|made| made.text.clone()),
            family: family_of(record, column)?,
            collation: collation::written(&column.type_name, &sql_type)?,
            retained: IgnoredColumnAttributes {
                compression: column.compression,
                ..IgnoredColumnAttributes::default()
            },
            ..Default::default()
        })
    }

    pub(super) fn set_default(
        &self,
        table: &Table,
        record: &mut TableRecord,
        column: &ast::Ident,
        default: Option<&ast::SourceExpr>,
    ) -> Result<()> {
        let position = column_of(table, column)?;
        refuse_identity(table, position)?;
        generated::refuse_default(table, position, default.is_none())?;
        record.columns[position].default = match default {
            None => None,
            Some(default) => {
                let catalog = self.changes.catalog(self.engine);
                let of = (column.value.as_str(), table.columns[position].sql_type.clone());
                let bound = bound_default(self.names(&catalog), default, of);
                Some(bound.map_err(without_position)?.0)
            }
        };
        Ok(())
    }

    pub(super) fn set_not_null(
        &mut self,
        table: &Table,
        record: &mut TableRecord,
        column: &ast::Ident,
    ) -> Result<()> {
        let position = column_of(table, column)?;
        if record.columns[position].not_null {
            return Ok(());
        }
        let (column, name) = (&column.value, &table.name);
        self.each_row(table, &mut |row| match row[position].is_null() {
            false => Ok(()),
            true => {
                bail!(NOT_NULL_VIOLATION: "column \"{column}\" of relation \"{name}\" contains null values";
                    of_table &table.schema, name; of_column column)
            }
        })?;
        record.columns[position].not_null = true;
        Ok(())
    }

    /// Drops a column, with the indexes and checks that use it and other dependent objects.
    pub(super) fn drop_column(
        &mut self,
        oid: u32,
        column: &ast::Ident,
        (if_exists, cascade): (bool, bool),
    ) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let Some(table) = catalog.table(oid).cloned() else { return Ok(()) };
        let position = match column_of(&table, column) {
            Ok(position) => position,
            Err(missing) => return self.missing_object(missing, if_exists),
        };
        let named = [Object::Column(oid, position)];
        let going = dependency::dropped_objects(&catalog, self.system.as_ref(), &named);
        self.notices.extend(dependency::check(&catalog, &self.path, &going, cascade)?);
        // As in PostgreSQL, dependents of any owner go with their object.
        self.with_others(|ddl| {
            going.iter().try_for_each(|one| ddl.remove(&one.object, cascade, &[]))
        })
    }

    /// Removes a column whose other dependents were dropped before.
    pub(super) fn remove_column(&mut self, oid: u32, position: usize) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let Some(table) = catalog.table(oid).cloned() else { return Ok(()) };
        if table.columns[position].dropped {
            return Ok(());
        }
        if table.key_columns().any(|key| key == position) {
            self.drop_primary_key(oid)?;
        }
        self.refuse_coprocessors(&table, "DROP COLUMN")?;
        self.end_column_history(oid, &table.columns[position].name)?;
        let catalog = self.changes.catalog(self.engine);
        let sql_type = &table.columns[position].sql_type;
        let stored_as = SqlType::new(sql_type.base.storage_type(), sql_type.modifier);
        self.change_record(oid, |changes, record| {
            let uses = |text: &String| uses_column(&catalog, record, text, position);
            let checks: Vec<bool> = record.checks.iter().map(|one| uses(&one.predicate)).collect();
            let in_index = |index: &IndexRecord| {
                index.include.contains(&(position as u32)) || index.texts().any(uses)
            };
            let indexes: Vec<bool> = record.indexes.iter().map(in_index).collect();
            let mut gone = checks.into_iter();
            record.checks.retain(|_| !gone.next().unwrap_or(false));
            let dropped = record.indexes.iter().zip(&indexes).filter(|(_, gone)| **gone);
            changes.dropped.extend(dropped.map(|(index, _)| index.descriptor.id));
            let mut gone = indexes.into_iter();
            record.indexes.retain(|_| !gone.next().unwrap_or(false));
            let own = position as u32;
            record.foreign_keys.retain(|key| !key.columns.contains(&own));
            let column = &mut record.columns[position];
            column.name = format!("........pg.dropped.{}........", position + 1);
            (column.type_oid, column.modifier) = stored_as.stored_oid_and_modifier();
            column.not_null = false;
            column.default = None;
            column.generated = None;
            column.identity = None;
            column.missing = None;
            column.dropped = true;
            record.schema_version += 1;
        })
    }

    /// Renames a column, also in the expressions of the table that reference it.
    pub(super) fn rename_column(
        &mut self,
        table: &Table,
        record: &mut TableRecord,
        column: &ast::Ident,
        to: &ast::Ident,
    ) -> Result<()> {
        let position = column_of(table, column)
            .map_err(|_| err!(UNDEFINED_COLUMN: "column \"{}\" does not exist", column.value))?;
        refuse_system_column(&to.value)?;
        let catalog = self.changes.catalog(self.engine);
        let object = Object::Column(table.oid, position);
        dependency::refuse_named_in_body(&catalog, self.system.as_ref(), &object)?;
        if table.column_index(&to.value).is_some() {
            let (name, table) = (&to.value, &table.name);
            bail!(DUPLICATE_COLUMN: "column \"{name}\" of relation \"{table}\" already exists");
        }
        self.refuse_coprocessors(table, "RENAME COLUMN")?;
        let catalog = self.changes.catalog(self.engine);
        let old = catalog.columns_of(&record.columns)?;
        record.columns[position].name.clone_from(&to.value);
        let new = catalog.columns_of(&record.columns)?;
        let renamed = |text: &mut String| -> Result<()> {
            *text = rename_in(&catalog, text, (&column.value, &old), (&to.value, &new))?;
            Ok(())
        };
        for condition in record.triggers.iter_mut().filter_map(|one| one.condition.as_mut()) {
            *condition = condition_with_name(condition, &column.value, &to.value)?;
        }
        record.checks.iter_mut().try_for_each(|check| renamed(&mut check.predicate))?;
        let generated = record.columns.iter_mut().filter_map(|column| column.generated.as_mut());
        generated.into_iter().try_for_each(renamed)?;
        record.indexes.iter_mut().flat_map(IndexRecord::texts_mut).try_for_each(renamed)
    }

    /// Rejects a change of columns of a table with coprocessors, which know columns by name and
    /// position from their attachment.
    pub(super) fn refuse_coprocessors(&self, table: &Table, what: &str) -> Result<()> {
        let writers = self.engine.writers_to(table.id);
        let own = table.coprocessors.attached.first().map(|one| one.name.clone());
        let of_others = writers.first().map(|(_, writer)| writer.record.name.clone());
        let Some(name) = own.or(of_others) else { return Ok(()) };
        let what = format!("{what} of a table of coprocessor \"{name}\"");
        Err(Error::not_supported(what, "Detach the coprocessor first."))
    }

    /// Calls `visit` with each row of a table, in table order. The table's lock must be held, so
    /// that there is no concurrent writer.
    pub(super) fn each_row(
        &mut self,
        table: &Table,
        visit: &mut dyn FnMut(&[Datum]) -> Result<()>,
    ) -> Result<()> {
        self.each_stored_row(table, &mut |row, _| visit(row))
    }

    /// Calls `visit` with each row of a table, and with its cells.
    pub(super) fn each_stored_row(
        &mut self,
        table: &Table,
        visit: &mut dyn FnMut(&[Datum], &RowRef<'_>) -> Result<()>,
    ) -> Result<()> {
        self.engine.store().wait_for_commits()?;
        self.transaction.begin_statement();
        let mut scanner = self.transaction.scan(table.id, Scan::all())?;
        let mut batch = CellBatch::new();
        while scanner.next_batch(ROWS_AT_ONCE, &mut batch)? {
            for row in batch.rows() {
                let packed = packed_cells(&row, &table.layout);
                visit(&table.layout.unpack(row.key(), &packed)?, &row)?;
            }
        }
        Ok(())
    }

    /// Returns whether a table has any row. Its lock must be held, so that there is no concurrent
    /// writer.
    pub(super) fn has_rows(&self, table: &Table) -> Result<bool> {
        self.engine.store().wait_for_commits()?;
        self.transaction.begin_statement();
        let mut scanner = self.transaction.scan(table.id, Scan::all())?;
        let mut batch = CellBatch::new();
        Ok(scanner.next_batch(1, &mut batch)?)
    }
}

/// Returns the text of a value for the catalog; `None` for NULL.
fn stored(value: &Datum, sql_type: &SqlType) -> Result<Option<String>> {
    if value.is_null() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    text::write_short(value, &sql_type.base, &TextStyle::default(), &mut bytes);
    let text = String::from_utf8(bytes).unwrap_or_default();
    let again = text::parse(&text, &sql_type.base, &TextStyle::default())?;
    if again != *value {
        let what = format!("ADD COLUMN with a default of type {}", sql_type.base.sql_name());
        return Err(Error::not_supported(
            what,
            "Add the column without a default, then update the rows.",
        ));
    }
    Ok(Some(text))
}

/// Returns the column family of a new column.
pub(super) fn family_of(record: &TableRecord, column: &ast::ColumnDefinition) -> Result<u8> {
    let families = &record.descriptor.families;
    let position = match &column.name.family {
        None => families.iter().position(|one| one.name == DEFAULT_FAMILY).unwrap_or(0),
        Some(family) => {
            let found = families.iter().position(|one| one.name == family.value);
            found.ok_or_else(|| {
                let family = undefined_family(&family.value, family.position);
                family.with_hint("Use ALTER TABLE … ADD FAMILY first.")
            })?
        }
    };
    Ok(u8::try_from(position).expect("a table has at most 256 families"))
}

/// The system columns of tables. Only `tableoid` can be read.
const SYSTEM_COLUMNS: [&str; 6] = ["tableoid", "ctid", "xmin", "cmin", "xmax", "cmax"];

/// Rejects the name of a system column for a column of a table.
pub(super) fn refuse_system_column(name: &str) -> Result<()> {
    if !SYSTEM_COLUMNS.contains(&name) {
        return Ok(());
    }
    bail!(DUPLICATE_COLUMN: "column name \"{name}\" conflicts with a system column name")
}

/// Returns the position of a visible column.
pub(super) fn column_of(table: &Table, column: &ast::Ident) -> Result<usize> {
    table.column_index(&column.value).ok_or_else(|| {
        err!(UNDEFINED_COLUMN: "column \"{}\" of relation \"{}\" does not exist", column.value, table.name)
    })
}

fn refuse_identity(table: &Table, position: usize) -> Result<()> {
    let column = &table.columns[position];
    if column.identity.is_none() {
        return Ok(());
    }
    bail!(SYNTAX_ERROR: "column \"{}\" of relation \"{}\" is an identity column", column.name, table.name)
}

pub(super) fn drop_not_null(
    table: &Table,
    record: &mut TableRecord,
    column: &ast::Ident,
) -> Result<()> {
    let position = column_of(table, column)?;
    if table.primary_key().contains(&position) {
        bail!(INVALID_TABLE_DEFINITION: "column \"{}\" is in a primary key", column.value);
    }
    refuse_identity(table, position)?;
    if let ReplicaIdentity::Index(number) = record.retained.replica_identity {
        let index = table.indexes.iter().find(|index| index.oid == number);
        let mut keys = index.iter().flat_map(|index| &index.spec.keys);
        if keys.any(|key| matches!(key, Expr::Column { index, .. } if *index == position)) {
            bail!(INVALID_TABLE_DEFINITION: "column \"{}\" is in index used as replica identity", column.value);
        }
    }
    record.columns[position].not_null = false;
    Ok(())
}

/// Returns whether an expression of a table references a column.
pub(super) fn uses_column(
    catalog: &Catalog,
    record: &TableRecord,
    text: &str,
    position: usize,
) -> bool {
    let columns = catalog.columns_of(&record.columns);
    let bound =
        columns.and_then(|columns| relation_assembly::expression(catalog, text, &columns, None));
    bound.is_ok_and(|bound| bound.columns().contains(&position))
}

/// Returns an expression with a column renamed. The result is bound, to verify that its meaning is
/// unchanged.
fn rename_in(
    catalog: &Catalog,
    text: &str,
    (old, before): (&str, &[(String, SqlType)]),
    (new, after): (&str, &[(String, SqlType)]),
) -> Result<String> {
    let meant = relation_assembly::expression(catalog, text, before, None)?;
    let renamed = parser::rename_identifier(text, old, new)?;
    match relation_assembly::expression(catalog, &renamed, after, None) {
        Ok(means) if means == meant => Ok(renamed),
        _ => {
            let what = format!("renaming a column that \"{text}\" references in this form");
            Err(Error::not_supported(what, "Drop the constraint or index and create it again."))
        }
    }
}
