//! Definitions of a change of SALT_BUCKETS: the empty store table of the new form, and the exchange
//! of the store tables once all rows are copied.
//!
//! The index entries of a table have its keys without salt, so its indexes stay as they are. The
//! copy has the timestamps and sequences of the rows: the history goes on, and older snapshots
//! read it.

use std::sync::Arc;

use store::transaction::TableLockMode;
use store::{TableDescriptor, TableId};

use crate::ast::{AlterOptions, TableName};
use crate::catalog::record::TableRecord;
use crate::catalog::{CatalogEntry, CatalogObject, CatalogRelation};
use crate::ddl::pre_split::salt_points;
use crate::ddl::{Ddl, IndexOf, undefined_table};
use crate::error::{Error, Result};
use crate::relation_assembly;

/// A change of the salt buckets of a table that has begun.
#[derive(Debug, Clone, Copy)]
pub struct TableSalting {
    /// The number of the table.
    pub table: u32,
    /// The present store table, and the new one.
    pub store_tables: (TableId, TableId),
    /// The present number of buckets, and the new one.
    pub buckets: (u16, u16),
}

impl Ddl<'_> {
    /// Locks a table against other changes, but not against writers, and creates the empty store
    /// table of its rows with another number of salt buckets. `None` if it has that number, or if
    /// there is no such table and the statement says IF EXISTS.
    ///
    /// # Errors
    ///
    /// 42P01; 0A000 for a table that coprocessors of other tables write to.
    pub fn begin_salting(
        &mut self,
        statement: &AlterOptions,
        name: &TableName,
        buckets: u16,
    ) -> Result<Option<TableSalting>> {
        let catalog = self.catalog();
        let table = match self.table(&catalog, name) {
            Ok(table) => table,
            Err(error) => {
                self.if_relation_exists(Err(error), statement.if_exists)?;
                return Ok(None);
            }
        };
        self.lock_table(table.id, TableLockMode::ShareUpdateExclusive)?;
        // The exchange must not wait for other definitions while it blocks writers.
        self.lock_observed_table(table.oid)?;
        let present = table.layout.salt_buckets;
        if present == buckets {
            return Ok(None);
        }
        if let Some((_, writer)) = self.engine.writers_to(table.id).first() {
            let what = format!(
                "SALT_BUCKETS of a table that coprocessor \"{}\" writes to",
                writer.record.name
            );
            return Err(Error::not_supported(what, "Detach the coprocessor first."));
        }
        if let Some(index) = table.indexes.iter().find(|index| index.spec.local) {
            let hint = format!("Drop index {} first, and create it again.", index.name);
            return Err(Error::not_supported("SALT_BUCKETS of a table with local indexes", hint));
        }
        if table.is_maintained() {
            let hint = "Create the view again, with the option salt_buckets.";
            return Err(Error::not_supported(
                "a change of SALT_BUCKETS of a maintained view",
                hint,
            ));
        }
        let Some(stored) = self.engine.store().table(table.id) else { return Ok(None) };
        let id = TableId(self.take_ids(1)?);
        let mut descriptor = TableDescriptor::clone(&stored);
        descriptor.id = id;
        descriptor.split_points = salt_points(buckets);
        self.create_in_store(&Arc::new(descriptor))?;
        Ok(Some(TableSalting {
            table: table.oid,
            store_tables: (table.id, id),
            buckets: (present, buckets),
        }))
    }

    /// Replaces the store table of a table by the copy, which is complete. The table is locked
    /// against writers.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub fn finish_salting(&mut self, salting: TableSalting) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let Some(table) = catalog.table(salting.table).cloned() else { return Ok(()) };
        let (from, to) = salting.store_tables;
        let mut record = TableRecord::clone(self.record_of(&catalog, &table)?.as_ref());
        record.salt_buckets = salting.buckets.1;
        let descriptor = Arc::make_mut(&mut record.descriptor);
        descriptor.id = to;
        descriptor.split_points = salt_points(salting.buckets.1);
        self.changes.dropped.push(from);
        if let Some(statistics) = catalog.statistics(from).cloned() {
            self.remove_object(&CatalogEntry::Statistics(from))?;
            self.store_object(CatalogObject::Statistics(to, statistics))?;
        }
        self.move_quota(from, to)?;
        self.engine.row_ids.copy((from, to), self.transaction)?;
        let catalog = self.changes.catalog(self.engine);
        let changed = relation_assembly::table(&catalog, &record, Arc::clone(&table.coprocessors))?;
        self.lock_observed_table(table.oid)?;
        self.store_record(&catalog, changed, record)
    }

    /// Returns the index whose number of salt buckets changes; `None` if it has that number, or if
    /// there is no such index and the statement says IF EXISTS.
    ///
    /// # Errors
    ///
    /// 42P01, 42809; 0A000 for a deferrable constraint or a primary key.
    pub fn index_to_salt(
        &mut self,
        statement: &AlterOptions,
        name: &TableName,
        buckets: u16,
    ) -> Result<Option<IndexOf>> {
        let catalog = self.catalog();
        let (table, index) = match self.find(&catalog, name) {
            Some(CatalogRelation::Index(table, index)) => (table, index),
            Some(CatalogRelation::PrimaryKey(table)) => {
                let hint =
                    format!("Use ALTER TABLE {} SET (salt_buckets = {buckets}).", table.name);
                return Err(Error::not_supported("SALT_BUCKETS of a primary key", hint));
            }
            Some(_) => bail!(WRONG_OBJECT_TYPE: "\"{}\" is not an index", name.name.value),
            None => {
                let missing = Err(undefined_table(name));
                return self.if_relation_exists(missing, statement.if_exists).map(|()| None);
            }
        };
        if index.spec.layout.salt_buckets == buckets {
            return Ok(None);
        }
        if index.spec.local {
            let hint = format!("Change those of the table: ALTER TABLE {} SET (…).", table.name);
            return Err(Error::not_supported("SALT_BUCKETS of a local index", hint));
        }
        if index.spec.deferrable_unique {
            // Equal keys must be neighbours for the check at the end of a transaction.
            return Err(Error::not_supported(
                "SALT_BUCKETS of a deferrable constraint",
                "Use a constraint that is NOT DEFERRABLE.",
            ));
        }
        self.engine.store().check_copy_space(index.spec.store_table)?;
        Ok(Some((table.oid, index.oid)))
    }
}
