//! `ALTER TABLE … ADD FAMILY` and `DROP FAMILY`.
//!
//! Families are known by their index. A new family gets the next one; a dropped one leaves its
//! index unused ([`FamilyDescriptor::dropped`]), so that its cells are never those of another
//! family. The store has a new family at once, and drops one after the commit. Families of
//! transactions that were rolled back are dropped at the rollback. If the server crashes, both
//! happens at the next start.

use std::sync::Arc;

use store::{FamilyDescriptor, TableDescriptor};

use crate::ast::{Ident, TableOption};
use crate::catalog::record::TableRecord;
use crate::catalog::table::Table;
use crate::ddl::Ddl;
use crate::ddl::create_table::set_value_layouts;
use crate::ddl::options::alter::{change_index_families, check_row_family};
use crate::ddl::options::check_cell_options;
use crate::ddl::options::{TableOptions, undefined_family};
use crate::error::{Error, Result, sqlstate};
use crate::relation_assembly;
use crate::storage_options::{OptionScope, storage};

/// Maximum number of families that a table can have in its life.
const FAMILIES_MAX: usize = 255;

impl Ddl<'_> {
    /// Adds a family. Existing rows have no cells in it.
    pub(in crate::ddl) fn add_family(
        &mut self,
        table: &Arc<Table>,
        record: TableRecord,
        (name, options, if_not_exists): (&Ident, &[TableOption], bool),
    ) -> Result<()> {
        let families = &record.descriptor.families;
        if families.iter().any(|family| family.name == name.value) {
            let error = err!(DUPLICATE_OBJECT: "column family \"{}\" of relation \"{}\" already exists", name.value, table.name);
            if !if_not_exists {
                return Err(error);
            }
            self.add_notice(sqlstate::DUPLICATE_OBJECT, format!("{}, skipping", error.message));
            return Ok(());
        }
        let Some(stored) = self.engine.store().table(table.id) else { return Ok(()) };
        if stored.families.len() == FAMILIES_MAX {
            bail!(PROGRAM_LIMIT_EXCEEDED: "tables can have at most {FAMILIES_MAX} column families";
                detail "Dropped column families count.");
        }
        let family = TableOptions::with_storage(storage(&record), options, OptionScope::Family)?
            .family(&name.value)?;
        let mut families = families.clone();
        // The family of a transaction that was rolled back has used an index of the store.
        families.resize(stored.families.len(), FamilyDescriptor::dropped());
        // Later statements of the transaction write to the family.
        let mut added = TableDescriptor::clone(&stored);
        added.families.push(family.clone());
        families.push(family);
        self.set_families(table, record, families)?;
        Ok(self.engine.store().alter_table(added)?)
    }

    /// Drops a family. With CASCADE its columns are dropped, too.
    pub(in crate::ddl) fn drop_family(
        &mut self,
        table: &Arc<Table>,
        record: TableRecord,
        (name, if_exists, cascade): (&Ident, bool, bool),
    ) -> Result<()> {
        let families = &record.descriptor.families;
        let Some(index) = families.iter().position(|family| family.name == name.value) else {
            return self.missing_object(undefined_family(&name.value, name.position), if_exists);
        };
        if families.iter().filter(|family| !family.is_dropped()).count() == 1 {
            bail!(INVALID_TABLE_DEFINITION: "cannot drop the only column family of table \"{}\"", table.name;
                at name.position);
        }
        if index == 0 {
            let what = format!("dropping the first column family of table \"{}\"", table.name);
            let hint = "Its cells represent the rows. Drop its columns instead, or create a table without it and copy the rows.";
            return Err(Error::not_supported(what, hint).at(name.position));
        }
        let is_in_family = |position: usize| {
            let column = &record.columns[position];
            usize::from(column.family) == index
                && !column.dropped
                && record.primary_key.iter().all(|key| key.column as usize != position)
        };
        let columns: Vec<usize> =
            (0..record.columns.len()).filter(|&position| is_in_family(position)).collect();
        let names = columns.iter().map(|&position| record.columns[position].name.as_str());
        if !columns.is_empty() && !cascade {
            let (family, table) = (&name.value, &table.name);
            let lines = names.map(|column| {
                format!("column {column} of table {table} depends on column family {family}")
            });
            bail!(DEPENDENT_OBJECTS_STILL_EXIST: "cannot drop column family \"{family}\" because other objects depend on it";
                detail lines.collect::<Vec<_>>().join("\n");
                hint "Use DROP ... CASCADE to drop the dependent objects too.");
        }
        let oid = table.oid;
        for column in names {
            let column = Ident { value: column.to_owned(), position: name.position };
            self.drop_column(oid, &column, (true, true))?;
        }
        let catalog = self.changes.catalog(self.engine);
        let Some(table) = catalog.table(oid).cloned() else { return Ok(()) };
        let record = TableRecord::clone(self.record_of(&catalog, &table)?.as_ref());
        let mut families = record.descriptor.families.clone();
        families[index] = FamilyDescriptor::dropped();
        self.set_families(&table, record, families)
    }

    /// Stores the families of a table, and rebuilds indexes whose entries would not expire with the
    /// rows.
    fn set_families(
        &mut self,
        table: &Arc<Table>,
        mut record: TableRecord,
        families: Vec<FamilyDescriptor>,
    ) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        check_row_family(&record.descriptor.families, &families)?;
        Arc::make_mut(&mut record.descriptor).families = families;
        check_cell_options(&record)?;
        let layout = relation_assembly::base_layout(&catalog, &record)?;
        set_value_layouts(&mut record, &layout)?;
        let rebuilt = change_index_families(&catalog, &mut record)?;
        self.changes.altered.push(table.oid);
        self.store_changed(table, record)?;
        rebuilt.into_iter().try_for_each(|index| self.rebuild_index((table.oid, index), false))
    }
}
