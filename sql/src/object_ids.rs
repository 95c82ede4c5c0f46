//! Object ids: numbers of catalog objects and of store tables, reserved in blocks.
//!
//! ```text
//! catalog row ──reserves 64──▶ ObjectIds (one per process) ──takes 1, 2, 3 …──▶ definition
//! ```
//!
//! All ids come from one counter. A reservation is a separate transaction that is durable before
//! an id of it is used: neither a rollback nor a crash leads to a second allocation of an id, and
//! concurrent definitions do not wait for each other. Ids that a rollback or a crash leaves
//! unused are lost; a clean shutdown returns unused reserved ids.

use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use store::transaction::TransactionOptions;
use store::{CellBatch, Get, Mutation, Store};

use crate::catalog::record::{CATALOG_TABLE, FIRST_USER_TABLE, NEXT_ID_KEY};
use crate::error::{Error, Result};

/// Number of ids reserved at once.
const RESERVED: u32 = 64;

/// Id allocator of a store's catalog.
pub struct ObjectIds {
    store: Arc<Store>,
    reserved: Mutex<Range<u32>>,
}

impl ObjectIds {
    /// Returns the allocator of a store's catalog; nothing is reserved yet.
    pub fn new(store: &Arc<Store>) -> ObjectIds {
        ObjectIds { store: Arc::clone(store), reserved: Mutex::default() }
    }

    /// Allocates consecutive ids and returns the first. A reservation waits for the disk.
    ///
    /// # Errors
    ///
    /// Errors of the store; 54000 if there are none left.
    pub fn take(&self, count: u32) -> Result<u32> {
        let mut reserved = self.reserved.lock();
        if reserved.end - reserved.start < count {
            let more = self.reserve(count.max(RESERVED))?;
            assert!(more.start >= reserved.end, "object ids {more:?} after {reserved:?}");
            *reserved = match more.start == reserved.end {
                true => reserved.start..more.end,
                false => more,
            };
        }
        let first = reserved.start;
        reserved.start += count;
        assert!(reserved.start <= reserved.end, "{count} object ids beyond {reserved:?}");
        Ok(first)
    }

    /// Returns reserved, unused ids to the catalog.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub fn return_reserved(&self) -> Result<()> {
        let mut reserved = self.reserved.lock();
        if !reserved.is_empty() {
            self.change(|end| Some(if end == reserved.end { reserved.start } else { end }))?;
        }
        *reserved = 0..0;
        Ok(())
    }

    fn reserve(&self, count: u32) -> Result<Range<u32>> {
        self.change(|start| start.checked_add(count))
    }

    /// Changes the first unreserved id; returns its old and its new value.
    fn change(&self, change: impl FnOnce(u32) -> Option<u32>) -> Result<Range<u32>> {
        let transaction = self.store.begin(TransactionOptions::default());
        transaction.begin_statement();
        let mut batch = CellBatch::new();
        let start =
            match transaction.get_locked(CATALOG_TABLE, &Get::new(NEXT_ID_KEY), &mut batch)? {
                false => FIRST_USER_TABLE,
                true => {
                    let value = batch.row(0).value(0, b"").and_then(|value| value.try_into().ok());
                    value
                        .map(u32::from_be_bytes)
                        .ok_or_else(|| err!(DATA_CORRUPTED: "damaged counter of table ids"))?
                }
            };
        let end = change(start).ok_or_else(
            || err!(PROGRAM_LIMIT_EXCEEDED: "object identifiers of the catalog are exhausted"),
        )?;
        let row = Mutation::new(NEXT_ID_KEY).put(0, Vec::new(), end.to_be_bytes().to_vec());
        transaction.mutate(CATALOG_TABLE, vec![row])?;
        transaction.commit()?.durable.wait()?;
        Ok(start..end)
    }
}

#[cfg(test)]
mod tests {
    use store::Options;

    use super::*;
    use crate::engine::Engine;
    use crate::open::EngineOptions;

    fn open(directory: &tempfile::TempDir) -> Arc<Store> {
        let store = Store::open(directory.path(), Options::default()).unwrap();
        Engine::open(Arc::clone(&store), EngineOptions::default()).unwrap();
        store
    }

    #[test]
    fn object_ids_are_sequential_and_unique() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory);
        let ids = ObjectIds::new(&store);
        let first = ids.take(1).unwrap();
        assert_eq!(ids.take(60).unwrap(), first + 1);
        assert_eq!(ids.take(200).unwrap(), first + 61, "a block across two reservations");
        assert_eq!(ids.take(1).unwrap(), first + 261);
        // A process that finds the counter after a crash does not allocate the reserved ids.
        let after_crash = ObjectIds::new(&store).take(1).unwrap();
        assert!(after_crash > first + 261);
    }

    #[test]
    fn clean_shutdown_returns_reserved_object_ids() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory);
        let ids = ObjectIds::new(&store);
        let first = ids.take(3).unwrap();
        ids.return_reserved().unwrap();
        assert_eq!(ObjectIds::new(&store).take(1).unwrap(), first + 3);
        // Another allocator has reserved since: no id of its block is allocated again.
        assert!(ids.take(1).unwrap() >= first + 64);
        ids.return_reserved().unwrap();
    }
}
