//! Waiting for the ends of transactions, out of the way of others.
//!
//! Who waits in the queue of a table holds up those who come later. Who waits for the transactions
//! that have the table now does not: it waits for a lock that stands for the end of each of them. A
//! transaction has no such lock until somebody waits for it; whoever does makes it its holder, and
//! the end of the transaction gives it back. The rest is as with all locks: time-outs, cancelling,
//! deadlocks and views.
//!
//! ```text
//! waiter:       awaited + 1, make the other the holder  [ has it the table? no: give back ]  wait
//! transaction:  gives its locks back   [ awaited is 0? nothing : give that lock back ]
//! ```
//!
//! Who is waiting wakes up too early at times, when another waiter gives up; so it looks again.
//!
//! Source: PostgreSQL's `WaitForLockers` (lmgr.c).

use std::collections::hash_map::Entry;
use std::sync::atomic::Ordering;

use crate::cell::Sequence;
use crate::descriptor::TableId;
use crate::error::Result;
use crate::lock::entry::LockEntry;
use crate::lock::{End, LockKey, LockTable, Owner, Patience, Taken};
use crate::lock_mode::{LockMode, TableLockMode};

/// The table whose rows stand for the ends of transactions. No table has this number.
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

    /// Waits until a transaction has ended, or no longer holds a lock in a mode that conflicts.
    ///
    /// # Errors
    ///
    /// Those of [`LockTable::lock`].
    pub(crate) fn await_end(
        &self,
        owner: Owner,
        other: Owner,
        (key, mode): (LockKey, LockMode),
        patience: Patience<'_>,
    ) -> Result<()> {
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
            Ok(Some(grant)) if grant.taken == Taken::New => self.give_back(owner, end),
            // Nobody else may be there to have it given back.
            _ => self.give_back(other, end),
        }
        self.awaited.fetch_sub(1, Ordering::SeqCst);
        outcome.map(drop)
    }

    /// Lets those go on who wait for the end of a transaction, whose locks are given back.
    pub(crate) fn end(&self, owner: Owner) {
        if self.awaited.load(Ordering::SeqCst) > 0 {
            self.give_back(owner, end_of(owner));
        }
    }

    fn give_back(&self, owner: Owner, end: LockKey) {
        let mut shard = self.shards[end.shard()].lock();
        self.release_one(&mut shard, owner, end, (End::Undone, Sequence(0)));
    }
}
