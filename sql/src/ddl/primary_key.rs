//! ALTER TABLE ADD and DROP of a primary key.
//!
//! The primary key is the row key, so the rows are rewritten. A table without a primary key, or
//! with a deferrable one, has a hidden key column
//! ([`ROW_ID_NAME`](crate::catalog::table::ROW_ID_NAME)). When a primary key is added, that column
//! becomes a dropped column, so that all others retain their positions.

use std::sync::Arc;

use types::Datum;

use crate::ast;
use crate::ast::TableConstraint;
use crate::catalog::record::{KeyRecord, TableRecord};
use crate::catalog::table::Table;
use crate::ddl::Ddl;

use crate::ddl::key_constraint::{key_records, retain_key, row_id_column};
use crate::ddl::{foreign_key, name};
use crate::error::{Error, Result};
use crate::storage_options::has_nullable_key;

impl Ddl<'_> {
    /// Adds a primary key to a table without one. The table's lock must be held.
    pub(super) fn add_primary_key(
        &mut self,
        table: &Arc<Table>,
        mut record: TableRecord,
        (constraint, key): (&TableConstraint, &[ast::KeyColumn]),
    ) -> Result<()> {
        if table.has_primary_key() {
            bail!(INVALID_TABLE_DEFINITION: "multiple primary keys for table \"{}\" are not allowed", table.name);
        }
        let allows_null = has_nullable_key(&record.retained.parameters);
        for one in key.iter().take(if allows_null { 1 } else { key.len() }) {
            self.set_not_null(table, &mut record, &one.name.name)?;
        }
        if let Some(key) = constraint.index_key() {
            return self.add_unique(table, record, (constraint, &key));
        }
        self.refuse_coprocessors(table, "ADD PRIMARY KEY")?;
        let catalog = self.changes.catalog(self.engine);
        let keys = key_records(&catalog, key, (&record.columns, constraint))?;
        let taken = name::NamesInUse::of(&catalog, &record.schema);
        let key_name = name::of_index(constraint, &taken, || name::primary_key(&table.name))?;
        if foreign_key::has_constraint(&record, &key_name) {
            return Err(foreign_key::duplicate(&record, &key_name));
        }
        if let Some(hidden) = table.row_id_column() {
            let column = &mut record.columns[hidden];
            column.name = format!("........pg.dropped.{}........", hidden + 1);
            column.not_null = false;
            column.dropped = true;
            column.family = 0;
        }
        record.primary_key_name = key_name;
        retain_key(constraint, &mut record)?;
        self.rewrite_under(table, record, keys)
    }

    /// Drops the primary key of a table; its columns remain NOT NULL. The table's lock must be
    /// held, and no foreign key may reference the key.
    pub(super) fn drop_primary_key(&mut self, oid: u32) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let Some(table) = catalog.table(oid).cloned() else { return Ok(()) };
        if table.primary_key_name.is_empty() {
            return Ok(());
        }
        self.refuse_coprocessors(&table, "dropping the primary key")?;
        let mut record = TableRecord::clone(self.record_of(&catalog, &table)?.as_ref());
        record.primary_key_name.clear();
        record.retained.key_include.clear();
        record.retained.key_parameters.clear();
        let column = record.columns.len() as u32;
        record.columns.push(row_id_column());
        let keys = vec![KeyRecord { column, ..Default::default() }];
        self.rewrite_under(&table, record, keys)
    }

    /// Rewrites the rows of a table under another row key.
    fn rewrite_under(
        &mut self,
        table: &Table,
        mut record: TableRecord,
        keys: Vec<KeyRecord>,
    ) -> Result<()> {
        let width = record.columns.len();
        record.primary_key = keys;
        record.schema_version += 1;
        if record.salt_buckets == 0 {
            // They were keys of the old form.
            Arc::make_mut(&mut record.descriptor).split_points.clear();
        }
        let hidden = table.row_id_column();
        self.rewrite(table, record, &mut |row| {
            if let Some(hidden) = hidden {
                row[hidden] = Datum::Null;
            }
            row.resize(width, Datum::Null);
            Ok(())
        })
    }
}
