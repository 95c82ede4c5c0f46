//! Rows whose keys a transaction has updated, for WHERE CURRENT OF.
//!
//! An update of a key deletes and inserts the row in the store; in PostgreSQL it is still the
//! same row, and `WHERE CURRENT OF` follows it. So key updates are recorded once a cursor exists
//! that may need them. A deleted row and another row inserted with its key are distinguished by
//! the staged writes of the transaction.
//!
//! Source: PostgreSQL's `table_tuple_get_latest_tid`, as `TidNext` (nodeTidscan.c) calls it.

use std::sync::atomic::{AtomicBool, Ordering};

use ahash::AHashMap;
use parking_lot::Mutex;
use store::transaction::Savepoint;
use store::{TableId, Transaction};

use crate::error::Result;
use crate::exec::memory;

/// Key updates of one transaction; see the module.
#[derive(Default)]
pub struct KeyUpdates {
    is_wanted: AtomicBool,
    noted: Mutex<KeyUpdateLog>,
}

#[derive(Default)]
struct KeyUpdateLog {
    moves: AHashMap<(TableId, Vec<u8>), Vec<KeyUpdate>>,
    bytes: usize,
}

/// A key update. Entries of rolled-back updates remain, and are not found: their writes are not
/// staged.
struct KeyUpdate {
    /// Savepoints before and after its staged writes.
    before: Savepoint,
    after: Savepoint,
    /// New key.
    key: Vec<u8>,
}

impl KeyUpdates {
    /// Starts recording key updates.
    pub fn start_recording(&self) {
        self.is_wanted.store(true, Ordering::Relaxed);
    }

    /// Records that a row got the key `to` by the writes staged since `before`, if key updates
    /// are recorded.
    ///
    /// # Errors
    ///
    /// 53200 if there are too many.
    pub(super) fn note(
        &self,
        transaction: &Transaction,
        before: Savepoint,
        row: (TableId, Vec<u8>),
        to: Vec<u8>,
        work_mem: usize,
    ) -> Result<()> {
        if !self.is_wanted.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut noted = self.noted.lock();
        noted.bytes += row.1.len() + to.len() + size_of::<(TableId, Vec<KeyUpdate>, KeyUpdate)>();
        memory::check(noted.bytes, work_mem)?;
        let moved = KeyUpdate { before, after: transaction.savepoint(), key: to };
        noted.moves.entry(row).or_default().push(moved);
        Ok(())
    }

    /// Returns the present key of a row that had `key` at savepoint `since`; `None` if it was
    /// deleted.
    ///
    /// # Errors
    ///
    /// See [`Transaction::deletion_after`].
    pub fn present_key(
        &self,
        transaction: &Transaction,
        table: TableId,
        mut key: Vec<u8>,
        mut since: Savepoint,
    ) -> store::Result<Option<Vec<u8>>> {
        let noted = self.noted.lock();
        while let Some(gone) = transaction.deletion_after(table, &key, since)? {
            let moves = noted.moves.get(&(table, key)).into_iter().flatten();
            let mut moves = moves.filter(|one| one.before < gone && gone <= one.after);
            let Some(moved) = moves.next() else { return Ok(None) };
            (key, since) = (moved.key.clone(), moved.after);
        }
        Ok(Some(key))
    }
}
