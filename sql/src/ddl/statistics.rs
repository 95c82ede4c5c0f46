//! Storage of ANALYZE's statistics in the catalog.

use std::sync::Arc;

use store::TableId;
use store::transaction::TableLockMode;

use crate::catalog::CatalogObject;
use crate::catalog::statistics::TableStatistics;
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
        self.store_object(CatalogObject::Statistics(table, Arc::new(statistics)))
    }
}
