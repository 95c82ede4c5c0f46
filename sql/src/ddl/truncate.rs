//! TRUNCATE: a table and its indexes get new, empty store tables; the old ones are dropped after
//! the commit. The cost does not depend on the number of rows, and a rollback costs nothing.

use std::sync::Arc;

use store::TableId;
use store::transaction::TableLockMode;

use crate::ast;
use crate::catalog::access::object_access::AccessSubject;
use crate::catalog::access::privilege;
use crate::catalog::quota::QuotaSubject;
use crate::catalog::record::TableRecord;
use crate::catalog::table::Table;
use crate::catalog::{Catalog, CatalogEntry, CatalogObject};
use crate::ddl::Ddl;
use crate::error::{Error, Result, sqlstate};
use crate::maintained_views;
use crate::relation_assembly;

impl Ddl<'_> {
    /// Returns the tables that a statement empties, with CASCADE those that reference them.
    pub fn tables_to_truncate(&mut self, statement: &ast::Truncate) -> Result<Vec<Arc<Table>>> {
        let catalog = self.catalog();
        let mut tables: Vec<Arc<Table>> = Vec::new();
        for name in &statement.names {
            let table =
                self.any_table(&catalog, name).map_err(|error| match error.sqlstate.as_ref() {
                    sqlstate::WRONG_OBJECT_TYPE => Error {
                        message: format!("\"{}\" is not a table", name.name.value),
                        ..error
                    },
                    _ => error,
                })?;
            if table.is_materialized() {
                bail!(WRONG_OBJECT_TYPE: "\"{}\" is not a table", table.name);
            }
            self.check_may_truncate(&catalog, &table)?;
            if !tables.iter().any(|other| other.oid == table.oid) {
                tables.push(table);
            }
        }
        if statement.cascade {
            self.add_referencing(&catalog, &mut tables);
            tables.iter().try_for_each(|table| self.check_may_truncate(&catalog, table))?;
        }
        Ok(tables)
    }

    /// Empties tables.
    pub fn truncate(&mut self, statement: &ast::Truncate) -> Result<()> {
        let tables = self.tables_to_truncate(statement)?;
        let catalog = self.changes.catalog(self.engine);
        for table in &tables {
            self.lock_table(table.id, TableLockMode::AccessExclusive)?;
            self.refuse_pending(table, "TRUNCATE")?;
            self.check_unwatched(table)?;
        }
        self.refuse_referenced(&catalog, &tables)?;
        for table in &tables {
            // The right to truncate was checked.
            self.with_others(|ddl| {
                ddl.empty_views(table)?;
                ddl.empty(table)
            })?;
            if statement.restart_identity {
                self.restart_sequences(table)?;
            }
        }
        Ok(())
    }

    /// Empties the maintained views of a table, which is emptied next.
    pub(super) fn empty_views(&mut self, table: &Table) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        for (view, _) in maintained_views::views_of(&catalog, table.oid) {
            self.lock_table(view.id, TableLockMode::AccessExclusive)?;
            self.empty(&view)?;
        }
        Ok(())
    }

    /// Adds the tables with foreign keys to these, transitively.
    fn add_referencing(&mut self, catalog: &Catalog, tables: &mut Vec<Arc<Table>>) {
        let mut next = 0;
        while let Some(oid) = tables.get(next).map(|table| table.oid) {
            next += 1;
            for (referencing, _) in catalog.referencing(oid) {
                if !tables.iter().any(|known| known.oid == referencing.oid) {
                    let message = format!("truncate cascades to table \"{}\"", referencing.name);
                    self.add_notice(sqlstate::SUCCESSFUL_COMPLETION, message);
                    tables.push(Arc::clone(referencing));
                }
            }
        }
    }

    fn check_may_truncate(&self, catalog: &Catalog, table: &Table) -> Result<()> {
        let subject = AccessSubject::Relation(table.oid);
        match catalog.privileges_on(self.roles.current.number, subject).0 & privilege::TRUNCATE {
            0 => Err(catalog.denied(subject)),
            _ => Ok(()),
        }
    }

    /// Rejects tables whose coprocessors maintain state about rows, which would become stale.
    fn check_unwatched(&self, table: &Table) -> Result<()> {
        let hint = "Use DELETE FROM, which calls coprocessors for each row, or detach the \
                    coprocessor first.";
        let attached = self.engine.attached(table.id).unwrap_or_default();
        for one in attached.iter() {
            let name = &one.record.name;
            if !one.writes.is_empty() || self.engine.coprocessors.stores_every_row(&one.record) {
                let what = format!("TRUNCATE of a table with coprocessor \"{name}\"");
                return Err(Error::not_supported(what, hint));
            }
        }
        let writers = self.engine.writers_to(table.id);
        let Some((_, writer)) = writers.iter().find(|(by, _)| !self.changes.drops(*by)) else {
            return Ok(());
        };
        let what =
            format!("TRUNCATE of a table that coprocessor \"{}\" writes to", writer.record.name);
        Err(Error::not_supported(what, "Use DELETE FROM, or detach the coprocessor first."))
    }

    /// Replaces the store tables of a table and its indexes by empty ones. The table's lock must
    /// be held.
    pub(super) fn empty(&mut self, table: &Table) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let record = TableRecord::clone(self.record_of(&catalog, table)?.as_ref());
        self.store_emptied(table, record)
    }

    /// Stores the record of a table with new, empty store tables for it and its indexes.
    pub(super) fn store_emptied(&mut self, table: &Table, mut record: TableRecord) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let first = self.take_ids(1 + record.indexes.len() as u32)?;
        let indexes = record.indexes.iter_mut().map(|index| &mut index.descriptor);
        let descriptors = std::iter::once(&mut record.descriptor).chain(indexes).map(Arc::make_mut);
        for (id, descriptor) in (first..).zip(descriptors) {
            self.changes.dropped.push(descriptor.id);
            descriptor.id = TableId(id);
        }
        for at in 0..record.indexes.len() {
            relation_assembly::set_index_families(&catalog, &mut record, at)?;
        }
        self.create_in_store(&record.descriptor)?;
        for index in &record.indexes {
            self.create_in_store(&index.descriptor)?;
        }
        self.begin_history(table.oid)?;
        self.remove_object(&CatalogEntry::Statistics(table.id))?;
        self.move_quota(table.id, record.descriptor.id)?;
        let catalog = self.changes.catalog(self.engine);
        let changed = relation_assembly::table(&catalog, &record, Arc::clone(&table.coprocessors))?;
        self.lock_observed_table(table.oid)?;
        self.store_record(&catalog, changed, record)
    }

    /// Moves the quota of a table to its new store table.
    pub(super) fn move_quota(&mut self, from: TableId, to: TableId) -> Result<()> {
        let from = QuotaSubject::Table(from);
        let catalog = self.changes.catalog(self.engine);
        let Some(limits) = catalog.quota(&from) else { return Ok(()) };
        self.store_object(CatalogObject::Quota(QuotaSubject::Table(to), limits))?;
        self.remove_object(&CatalogEntry::Quota(from))
    }

    /// Restarts the sequences owned by a table.
    fn restart_sequences(&mut self, table: &Table) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let owned = catalog.sequences();
        for sequence in owned.filter(|one| one.owned_by.is_some_and(|by| by.0 == table.oid)) {
            let start = sequence.start;
            self.restart_sequence(sequence.as_ref().clone(), start)?;
        }
        Ok(())
    }
}
