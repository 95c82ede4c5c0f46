//! A table's primary key, given and taken by ALTER TABLE.
//!
//! The key is where rows lie, so they are written anew under the other one. A table without a
//! primary key, or with one that is deferrable, has a hidden one
//! ([`ROW_ID_NAME`](crate::catalog::table::ROW_ID_NAME)): it goes when a primary key comes, as a
//! column that is dropped does, so that all others keep their places.

use std::sync::Arc;

use types::Datum;

use crate::ast;
use crate::ast::TableConstraint;
use crate::catalog::record::{KeyRecord, TableRecord};
use crate::catalog::table::Table;
use crate::ddl::Ddl;

use crate::ddl::key_constraint::{key_records, retain_key, row_id_column};
use crate::ddl::{foreign_key, name};
use crate::error::{Error, Result, sqlstate};

impl Ddl<'_> {
    /// Gives a table that has none a primary key. The table's lock is held.
    pub(super) fn add_primary_key(
        &mut self,
        table: &Arc<Table>,
        mut record: TableRecord,
        (constraint, key): (&TableConstraint, &[ast::KeyColumn]),
    ) -> Result<()> {
        if table.has_primary_key() {
            let message =
                format!("multiple primary keys for table \"{}\" are not allowed", table.name);
            return Err(Error::new(sqlstate::INVALID_TABLE_DEFINITION, message));
        }
        for one in key {
            self.set_not_null(table, &mut record, &one.name.name)?;
        }
        if let Some(key) = constraint.index_key() {
            return self.add_unique(table, record, (constraint, &key));
        }
        self.refuse_coprocessors(table, "ADD PRIMARY KEY")?;
        let catalog = self.changes.catalog(self.engine);
        let keys = key_records(&catalog, key, (&record.columns, constraint))?;
        let taken = name::Taken::of(&catalog, &record.schema);
        let key_name = name::of_index(constraint, &taken, || name::primary_key(&table.name))?;
        if foreign_key::taken(&record, &key_name) {
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

    /// Takes the primary key of a table away; its columns stay NOT NULL. The table's lock is held,
    /// and nothing refers to the key.
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
        let keys = vec![KeyRecord { column, descending: false, nulls_first: false }];
        self.rewrite_under(&table, record, keys)
    }

    /// Writes the rows of a table anew, under another key.
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
            // They were keys of the old kind.
            record.descriptor.split_points.clear();
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
