//! History marks of tables for time travel, and the notice when a history restarts.

use store::{CellBatch, Mutation, Scan};

use crate::catalog::history_marks::{dropped_column_key, history_key, index_history_key};
use crate::ddl::Ddl;
use crate::error::{Result, sqlstate};

impl Ddl<'_> {
    /// Begins the history of a table at the commit of this transaction.
    pub(super) fn begin_history(&self, oid: u32) -> Result<()> {
        self.mark_history(history_key(oid))
    }

    /// Begins the history of an index: its entries are complete at the commit of this transaction.
    pub(super) fn begin_index_history(&self, table: u32, index: u32) -> Result<()> {
        self.mark_history(index_history_key(table, index))
    }

    /// Removes the mark of a dropped index.
    pub(super) fn forget_index_history(&self, table: u32, index: u32) -> Result<()> {
        let row = Mutation::new(index_history_key(table, index)).delete_row();
        self.transaction.mutate(self.engine.catalog_table, vec![row])?;
        Ok(())
    }

    /// Marks a column as dropped, so that older states are not shown under a new column of the
    /// same name.
    pub(super) fn end_column_history(&self, oid: u32, column: &str) -> Result<()> {
        self.mark_history(dropped_column_key(oid, column))
    }

    fn mark_history(&self, key: Vec<u8>) -> Result<()> {
        let row = Mutation::new(key).put(0, Vec::new(), Vec::new());
        self.transaction.mutate(self.engine.catalog_table, vec![row])?;
        Ok(())
    }

    /// Removes the marks of a dropped table.
    pub(super) fn forget_history(&self, oid: u32) -> Result<()> {
        let mut scanner =
            self.transaction.scan(self.engine.catalog_table, Scan::prefix(history_key(oid)))?;
        let mut batch = CellBatch::new();
        let mut rows: Vec<Mutation> = Vec::new();
        while scanner.next_batch(1_000, &mut batch)? {
            rows.extend(batch.rows().map(|row| Mutation::new(row.key()).delete_row()));
        }
        self.transaction.mutate(self.engine.catalog_table, rows)?;
        Ok(())
    }

    /// Adds the notice that older states of a table cannot be read any more, because its rows are
    /// rewritten.
    pub(super) fn note_end_of_history(&mut self, table: &str) {
        let message =
            format!("history of table \"{table}\" restarts because its rows are rewritten");
        self.add_notice(sqlstate::SUCCESSFUL_COMPLETION, message);
    }
}
