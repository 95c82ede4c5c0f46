//! Row ids: hidden bigint keys of tables without a primary key, reserved in blocks.
//!
//! ```text
//! catalog row ──reserves 65,536──▶ RowIds (one per process) ──takes 1, 2, 4 … 1,024──▶ statement
//! ```
//!
//! A reservation is a separate transaction that is durable before an id of it is used, so that a
//! crash does not lead to a second allocation of an id. Ids that a statement or the process
//! leaves unused are lost: ids are unique and ascend within a session, with gaps. Between two
//! reservations an allocation only locks a counter in memory for one addition.

use std::ops::Range;
use std::sync::Arc;

use ahash::AHashMap;
use parking_lot::Mutex;
use store::transaction::TransactionOptions;
use store::{CellBatch, Get, Mutation, Store, TableId, Transaction};

use crate::catalog::record::row_ids_key;
use crate::error::{Error, Result};

/// Number of ids reserved at once.
const RESERVED: u64 = 65_536;

/// Row id allocator of the tables of a database.
pub struct RowIds {
    store: Arc<Store>,
    catalog_table: TableId,
    tables: Mutex<AHashMap<TableId, Arc<Mutex<Range<u64>>>>>,
}

impl RowIds {
    /// Returns the allocator of the tables in a catalog table; nothing is reserved yet.
    pub fn new(store: &Arc<Store>, catalog_table: TableId) -> RowIds {
        RowIds { store: Arc::clone(store), catalog_table, tables: Mutex::default() }
    }

    /// Allocates ids of a table, at least one and at most `count`. A reservation waits for the
    /// disk.
    ///
    /// # Errors
    ///
    /// Errors of the store; 2200H if the table has none left.
    pub fn take(&self, table: TableId, count: u64) -> Result<Range<u64>> {
        let reserved = Arc::clone(self.tables.lock().entry(table).or_default());
        let mut reserved = reserved.lock();
        if reserved.is_empty() {
            let more = self.reserve(table)?;
            debug_assert!(more.start >= reserved.end, "row ids {more:?} after {reserved:?}");
            *reserved = more;
        }
        let end = reserved.end.min(reserved.start + count);
        let taken = reserved.start..end;
        reserved.start = end;
        assert!(!taken.is_empty(), "no row ids of {count} for table {}", table.0);
        Ok(taken)
    }

    fn reserve(&self, table: TableId) -> Result<Range<u64>> {
        let key = row_ids_key(table);
        let transaction = self.store.begin(TransactionOptions::default());
        transaction.begin_statement();
        let mut batch = CellBatch::new();
        let start =
            match transaction.get_locked(self.catalog_table, &Get::new(key.clone()), &mut batch)? {
                false => 1,
                true => {
                    let value = batch.row(0).value(0, b"").and_then(|value| value.try_into().ok());
                    value.map(u64::from_be_bytes).ok_or_else(
                        || err!(DATA_CORRUPTED: "damaged row ID counter in the catalog"),
                    )?
                }
            };
        let end = start.saturating_add(RESERVED).min(i64::MAX as u64);
        if start >= end {
            bail!(SEQUENCE_GENERATOR_LIMIT_EXCEEDED: "row identifiers of the table are exhausted");
        }
        let row = Mutation::new(key).put(0, Vec::new(), end.to_be_bytes().to_vec());
        transaction.mutate(self.catalog_table, vec![row])?;
        transaction.commit()?.durable.wait()?;
        Ok(start..end)
    }

    /// Copies the counter of a table, if it has one, in a transaction under whose locks no id is
    /// allocated.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub fn copy(&self, (from, to): (TableId, TableId), transaction: &Transaction) -> Result<()> {
        let mut batch = CellBatch::new();
        if transaction.get_locked(self.catalog_table, &Get::new(row_ids_key(from)), &mut batch)? {
            let value = batch.row(0).value(0, b"").unwrap_or_default().to_vec();
            let row = Mutation::new(row_ids_key(to)).put(0, Vec::new(), value);
            transaction.mutate(self.catalog_table, vec![row])?;
        }
        Ok(())
    }

    /// Removes the counter of a dropped table.
    ///
    /// # Errors
    ///
    /// Errors of the store: a row of the catalog is then left, which the next start removes.
    pub fn remove(&self, table: TableId) -> Result<()> {
        self.tables.lock().remove(&table);
        let key = row_ids_key(table);
        let transaction = self.store.begin(TransactionOptions::default());
        transaction.begin_statement();
        if transaction.exists(self.catalog_table, &Get::new(key.clone()))? {
            transaction.mutate(self.catalog_table, vec![Mutation::new(key).delete_row()])?;
        }
        transaction.commit()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use store::Options;

    use super::*;
    use crate::catalog::record::CATALOG_TABLE;
    use crate::engine::Engine;
    use crate::open::EngineOptions;

    /// Opens the store in a directory and creates its catalog table.
    fn open(directory: &tempfile::TempDir) -> Arc<Store> {
        let store = Store::open(directory.path(), Options::default()).unwrap();
        Engine::open(Arc::clone(&store), EngineOptions::default()).unwrap();
        store
    }

    const TABLE: TableId = TableId(1_234);

    #[test]
    fn row_ids_are_unique_across_restarts() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory);
        let ids = RowIds::new(&store, CATALOG_TABLE);
        assert_eq!(ids.take(TABLE, 10).unwrap(), 1..11);
        assert_eq!(ids.take(TABLE, RESERVED).unwrap(), 11..RESERVED + 1);
        assert_eq!(ids.take(TABLE, 2).unwrap(), RESERVED + 1..RESERVED + 3);
        assert_eq!(ids.take(TableId(1_235), 2).unwrap(), 1..3);
        // Reserved and unused ids are lost.
        let again = RowIds::new(&store, CATALOG_TABLE);
        assert_eq!(again.take(TABLE, 1).unwrap().start, 2 * RESERVED + 1);
        again.remove(TABLE).unwrap();
        assert_eq!(again.take(TABLE, 1).unwrap().start, 1);
    }

    #[test]
    fn concurrent_sessions_get_distinct_row_ids() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory);
        let ids = RowIds::new(&store, CATALOG_TABLE);
        let taken: Vec<u64> = std::thread::scope(|scope| {
            let work = || (0..200).flat_map(|_| ids.take(TABLE, 700).unwrap()).collect::<Vec<_>>();
            let sessions: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
            sessions.into_iter().flat_map(|session| session.join().unwrap()).collect()
        });
        let distinct: std::collections::BTreeSet<u64> = taken.iter().copied().collect();
        assert_eq!(distinct.len(), taken.len());
    }

    #[test]
    fn row_ids_are_exhausted_at_maximum() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory);
        let transaction = store.begin(TransactionOptions::default());
        transaction.begin_statement();
        let next = (i64::MAX as u64 - 2).to_be_bytes().to_vec();
        let row = Mutation::new(row_ids_key(TABLE)).put(0, Vec::new(), next);
        transaction.mutate(CATALOG_TABLE, vec![row]).unwrap();
        transaction.commit().unwrap();
        let ids = RowIds::new(&store, CATALOG_TABLE);
        assert_eq!(ids.take(TABLE, 10).unwrap(), i64::MAX as u64 - 2..i64::MAX as u64);
        assert_eq!(ids.take(TABLE, 1).unwrap_err().sqlstate, "2200H");
    }
}
