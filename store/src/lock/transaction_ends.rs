//! Waiting for the ends of transactions, without blocking later lock requests.
//!
//! A waiter in the queue of a table lock blocks later requests. A waiter for the transactions
//! that hold the table lock does not: it waits for a pseudo-lock that represents the end of each
//! of them. A transaction has no such lock until a waiter needs it; the waiter makes the
//! transaction its holder, and the end of the transaction releases it. Otherwise it is an
//! ordinary lock, with timeouts, cancellation, deadlock detection and system views.
//!
//! ```text
//! waiter:       awaited + 1, make the other the holder  [ table still held? no: release ]  wait
//! transaction:  releases its locks   [ awaited is 0? nothing : release that lock ]
//! ```
//!
//! A waiter may wake up too early when another waiter stops waiting, so the caller checks again.
//!
//! Source: PostgreSQL's `WaitForLockers` (lmgr.c).

use std::collections::hash_map::Entry;
use std::sync::atomic::Ordering;

use crate::cell::Sequence;
use crate::descriptor::TableId;
use crate::error::Result;
use crate::lock::entry::LockEntry;
use crate::lock::{LockKey, LockOutcome, LockTable, Owner, TransactionEnd, WaitPolicy};
use crate::lock_mode::{LockMode, TableLockMode};

/// Pseudo-table whose rows represent the ends of transactions. No table has this number.
pub const TRANSACTION_ENDS: TableId = TableId(u32::MAX - 1);

const HELD: LockMode = LockMode::Table(TableLockMode::Exclusive);
const WANTED: LockMode = LockMode::Table(TableLockMode::Share);

fn end_of(owner: Owner) -> LockKey {
    LockKey::new(TRANSACTION_ENDS, &owner.0.to_be_bytes())
}

impl LockTable {
    /// Returns the transactions that hold a lock in a mode that conflicts.
    pub(crate) fn holders_against(&self, owner: Owner, key: LockKey, mode: LockMode) -> Vec<Owner> {
        let shard = self.shards[key.shard()].lock();
        let entry = shard.entries.get(&key);
        entry.map_or_else(Vec::new, |entry| entry.conflicting_holders(owner, mode).collect())
    }

    /// Waits until a transaction has ended, or no longer holds a lock in a conflicting mode.
    ///
    /// # Errors
    ///
    /// Those of [`LockTable::lock`].
    pub(crate) fn await_end(
        &self,
        owner: Owner,
        other: Owner,
        (key, mode): (LockKey, LockMode),
        patience: WaitPolicy<'_>,
    ) -> Result<()> {
        assert!(owner != other, "a transaction waits for its own end");
        let end = end_of(other);
        self.awaited.fetch_add(1, Ordering::SeqCst);
        if let Entry::Vacant(vacant) = self.shards[end.shard()].lock().entries.entry(end) {
            vacant.insert(LockEntry::new(TRANSACTION_ENDS, other, HELD));
        }
        let outcome = match self.holders_against(owner, key, mode).contains(&other) {
            true => self.request(owner, (end, TRANSACTION_ENDS, None), WANTED, patience).map(Some),
            false => Ok(None),
        };
        match &outcome {
            Ok(Some(grant)) if grant.taken == LockOutcome::New => self.give_back(owner, end),
            // There may be no other waiter that has it released.
            _ => self.give_back(other, end),
        }
        let awaited = self.awaited.fetch_sub(1, Ordering::SeqCst);
        assert!(awaited > 0, "the wait for an end was not counted");
        outcome.map(drop)
    }

    /// Wakes the waiters for the end of a transaction, whose locks have been released.
    pub(crate) fn end(&self, owner: Owner) {
        if self.awaited.load(Ordering::SeqCst) > 0 {
            self.give_back(owner, end_of(owner));
        }
    }

    fn give_back(&self, owner: Owner, end: LockKey) {
        let mut shard = self.shards[end.shard()].lock();
        self.release_one(&mut shard, owner, end, (TransactionEnd::Undone, Sequence(0)));
    }
}
