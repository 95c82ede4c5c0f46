//! Numbers for the objects of the catalog and for tables of the store.
//!
//! ```text
//! catalog row ──reserves 64──▶ ObjectIds (one a process) ──takes 1, 2, 3 …──▶ definition
//! ```
//!
//! All are of one count. A reservation is a transaction of its own and durable before a number of
//! it is used: no number comes twice, whatever is rolled back and whatever crashes, and definitions
//! of several transactions do not wait for each other's numbers. What a rollback or a crash leaves
//! over is lost; a clean stop gives back what was reserved and not taken.

use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use store::transaction::TransactionOptions;
use store::{CellBatch, Get, Mutation, Store};

use crate::catalog::record::{CATALOG_TABLE, FIRST_USER_TABLE, NEXT_ID_KEY};
use crate::error::{Error, Result, sqlstate};

/// Numbers reserved at once.
const RESERVED: u32 = 64;

/// The numbers of a store's catalog.
pub struct ObjectIds {
    store: Arc<Store>,
    reserved: Mutex<Range<u32>>,
}

impl ObjectIds {
    /// Returns the numbers of a store's catalog; nothing is reserved yet.
    pub fn new(store: &Arc<Store>) -> ObjectIds {
        ObjectIds { store: Arc::clone(store), reserved: Mutex::default() }
    }

    /// Takes numbers that follow each other; returns the first. Waits for the disk if they have to
    /// be reserved.
    ///
    /// # Errors
    ///
    /// What the store reports; 54000 if there are none left.
    pub fn take(&self, count: u32) -> Result<u32> {
        let mut reserved = self.reserved.lock();
        if reserved.end - reserved.start < count {
            let more = self.reserve(count.max(RESERVED))?;
            *reserved = match more.start == reserved.end {
                true => reserved.start..more.end,
                false => more,
            };
        }
        let first = reserved.start;
        reserved.start += count;
        Ok(first)
    }

    /// Gives back what was not taken.
    ///
    /// # Errors
    ///
    /// What the store reports.
    pub fn give_back(&self) -> Result<()> {
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

    /// Changes the first number that is not reserved; returns it as it was and as it is.
    fn change(&self, change: impl FnOnce(u32) -> Option<u32>) -> Result<Range<u32>> {
        let transaction = self.store.begin(TransactionOptions::default());
        transaction.begin_statement();
        let mut batch = CellBatch::new();
        let start =
            match transaction.get_locked(CATALOG_TABLE, &Get::new(NEXT_ID_KEY), &mut batch)? {
                false => FIRST_USER_TABLE,
                true => {
                    let value = batch.row(0).value(0, b"").and_then(|value| value.try_into().ok());
                    value.map(u32::from_be_bytes).ok_or_else(|| {
                        Error::new(sqlstate::DATA_CORRUPTED, "damaged counter of table ids")
                    })?
                }
            };
        let end = change(start)
            .ok_or_else(|| Error::new("54000", "the catalog has no object numbers left"))?;
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
    fn numbers_follow_each_other_and_never_come_twice() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory);
        let ids = ObjectIds::new(&store);
        let first = ids.take(1).unwrap();
        assert_eq!(ids.take(60).unwrap(), first + 1);
        assert_eq!(ids.take(200).unwrap(), first + 61, "a block across two reservations");
        assert_eq!(ids.take(1).unwrap(), first + 261);
        // What was reserved is not given out by a process that finds the counter as a crash left
        // it.
        let after_crash = ObjectIds::new(&store).take(1).unwrap();
        assert!(after_crash > first + 261);
    }

    #[test]
    fn a_clean_stop_leaves_no_gap() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory);
        let ids = ObjectIds::new(&store);
        let first = ids.take(3).unwrap();
        ids.give_back().unwrap();
        assert_eq!(ObjectIds::new(&store).take(1).unwrap(), first + 3);
        // Another one has reserved since: nothing of its block is given out again.
        assert!(ids.take(1).unwrap() >= first + 64);
        ids.give_back().unwrap();
    }
}
