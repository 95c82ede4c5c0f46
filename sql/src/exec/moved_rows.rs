//! Rows that a transaction has given other keys: how a cursor finds the row that it stands on.
//!
//! A row that gets another key is deleted and inserted by the store; PostgreSQL knows it for the
//! same row, and `WHERE CURRENT OF` follows it. So the moves of rows are noted once a cursor is
//! there that may ask. A row that was deleted, and another one that has its key
//! since, are told apart by what the transaction has staged.
//!
//! Source: PostgreSQL's `table_tuple_get_latest_tid`, as `TidNext` (nodeTidscan.c) calls it.

use std::sync::atomic::{AtomicBool, Ordering};

use ahash::AHashMap;
use parking_lot::Mutex;
use store::transaction::Savepoint;
use store::{TableId, Transaction};

use crate::error::Result;
use crate::exec::memory;

/// See the module; of one transaction.
#[derive(Default)]
pub struct MovedRows {
    is_wanted: AtomicBool,
    noted: Mutex<Noted>,
}

#[derive(Default)]
struct Noted {
    moves: AHashMap<(TableId, Vec<u8>), Vec<Move>>,
    bytes: usize,
}

/// A row got another key. What was rolled back stays here, and is found no more: nothing of it is
/// staged.
struct Move {
    /// The places before and after what was staged for it.
    before: Savepoint,
    after: Savepoint,
    /// The other key.
    key: Vec<u8>,
}

impl MovedRows {
    /// Has moves noted from now on.
    pub fn follow(&self) {
        self.is_wanted.store(true, Ordering::Relaxed);
    }

    /// Notes that a row got the key `to` by what was staged since `before`, if moves are to be
    /// noted.
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
        noted.bytes += row.1.len() + to.len() + size_of::<(TableId, Vec<Move>, Move)>();
        memory::check(noted.bytes, work_mem)?;
        let moved = Move { before, after: transaction.savepoint(), key: to };
        noted.moves.entry(row).or_default().push(moved);
        Ok(())
    }

    /// Returns the key that a row has now which had `key` at the place `since`; `None` if it was
    /// deleted.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::deletion_after`].
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
