//! Storage of ANALYZE's statistics in the catalog.

use store::transaction::TableLockMode;
use store::{Mutation, TableId};

use crate::catalog::Catalog;
use crate::catalog::record::{CATALOG_TABLE, encode};
use crate::catalog::statistics::{TableStatistics, statistics_key};
use crate::ddl::Ddl;
use crate::error::Result;

impl Ddl<'_> {
    /// Replaces the statistics of a table. A table that was dropped meanwhile is ignored.
    pub fn set_statistics(&mut self, table: TableId, statistics: TableStatistics) -> Result<()> {
        let catalog = self.catalog();
        if catalog.table_stored(table).is_none() {
            return Ok(());
        }
        // This mode does not block writers, but excludes a concurrent drop.
        self.lock_table(table, TableLockMode::ShareUpdateExclusive)?;
        let value = encode(&statistics);
        let row = Mutation::new(statistics_key(table)).put(0, Vec::new(), value);
        self.transaction.mutate(CATALOG_TABLE, vec![row])?;
        self.changes.set_catalog(catalog.with_statistics(table, Some(statistics)));
        Ok(())
    }

    /// Removes the statistics of a dropped table from a catalog.
    pub(super) fn drop_statistics(&self, catalog: Catalog, table: TableId) -> Result<Catalog> {
        if catalog.statistics(table).is_none() {
            return Ok(catalog);
        }
        let row = Mutation::new(statistics_key(table)).delete_row();
        self.transaction.mutate(CATALOG_TABLE, vec![row])?;
        Ok(catalog.with_statistics(table, None))
    }
}
