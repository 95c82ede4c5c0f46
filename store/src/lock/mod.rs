//! Lock manager: row, table and advisory locks of transactions and sessions.
//!
//! A lock is an entry in one of many small hash tables (shards), keyed by a 128-bit hash of table
//! and row, so that a held lock costs some tens of bytes regardless of the length of the row.
//! (Two rows with the same hash would share a lock and wait for each other unnecessarily, without
//! other harm.) An entry without waiters has no queue. The queue is first come, first served,
//! with two exceptions: a holder that requests a stronger mode goes to the front, and a row lock
//! that is compatible with the holders is granted at once ([`entry`]).
//!
//! There are four modes of row locks and eight of table locks ([`LockMode`]). Sessions hold locks
//! in addition to those of their transactions: advisory locks, whose keys are the rows of a
//! pseudo-table ([`ADVISORY_LOCKS`]), in the modes of tables.
//!
//! A row lock is released when its holder's commit is applied, which is before the commit is
//! durable and visible to snapshots. So that the next holder sees it nevertheless, a release
//! records the holder's commit sequence as a mark, and a grant returns the mark if the two modes
//! conflict (`docs/decisions/0007-snapshots-after-locks.md`). Locks share a fixed number of
//! marks, by hash: two locks with one mark may cause an unnecessary wait, without other harm.
//!
//! ACCESS SHARE locks of tables are mostly recorded in a list of the session ([`fast_path`]).
//!
//! A waiter that must not block later requests waits for the transaction_ends of transactions
//! ([`transaction_ends`]).
//!
//! A transaction that locks very many rows in ascending order keeps them in a list
//! ([`lock_lists`]); one that has locked very many in no order spills their locks to disk
//! ([`spilled`]).
//!
//! A waiter checks for deadlocks after some time ([`deadlock`]).
//!
//! # Invariants
//!
//! 1. A transaction, or session, waits for one lock at a time.
//! 2. A waiter is in the queue of the entry and, from before the shard is unlocked until after it
//!    has woken up, in `waits`.
//!
//! Each wait asserts 1, and each deadlock check 2, in debug builds.
//!
//! # Lock order
//!
//! A list of a session, spilled or listed locks, shards in ascending order, then `waits`, then
//! `processes`, then a ticket. No other lock is taken under them, except in
//! [`LockTable::exclude`], which writes rows without locking them: the gate of a region and the
//! log's queue, none of whose holders ever requests a row lock.

mod deadlock;
mod entry;
mod fast_path;
mod transaction_ends;
mod ordered_rows;
mod lock_lists;
mod spilled;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

use crate::admission::holds_slot;
use crate::cell::Sequence;
use crate::descriptor::TableId;
use crate::env::process::monotonic_now;
use crate::error::{Error, Result};
use crate::lock::deadlock::{DeadlockOutcome, Graph, Processes, Waits};
use crate::lock::entry::{LockEntry, LockWaiter, Ticket};
pub(crate) use crate::lock::fast_path::READ;
use crate::lock::fast_path::{ALONE, Readers};
pub use crate::lock::fast_path::{LockName, ReadLocks};
use crate::lock::lock_lists::LockListRegistry;
pub(crate) use crate::lock::lock_lists::{ListedLockOutcome, LockList};
pub(crate) use crate::lock::spilled::HeldLocks;
use crate::lock::spilled::SpilledLockRegistry;
pub use crate::lock::transaction_ends::TRANSACTION_ENDS;
use crate::lock_mode::{LockMode, ModeSet};
use crate::mutation::LockWait;
use crate::options::BlockingSection;

const SHARDS: usize = 64;

/// Number of release marks of a shard, for each mode.
const MARKS: usize = 64;

/// A shard frees memory when its capacity is this many times its entries.
const SPARE: usize = 8;

/// Interval at which a waiter checks for cancellation.
const CANCEL_POLL: Duration = Duration::from_millis(50);

/// The table whose rows are the keys of advisory locks. No table has this number.
pub const ADVISORY_LOCKS: TableId = TableId(u32::MAX);

/// Lock owner: an open transaction, or a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Owner(pub(crate) u64);

impl Owner {
    /// Set in the number of an owner that is a session.
    const SESSION: u64 = 1 << 63;

    /// Returns a session as an owner.
    pub(crate) fn session(number: u32) -> Owner {
        Owner(Owner::SESSION | u64::from(number))
    }

    /// Returns the owner for views and messages.
    pub(crate) fn shown(self) -> LockOwner {
        match self.0 & Owner::SESSION {
            0 => LockOwner::Transaction(self.0),
            _ => LockOwner::Session(self.0 as u32),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shown() {
            LockOwner::Transaction(number) => write!(f, "Transaction {number}"),
            LockOwner::Session(number) => write!(f, "Session {number}"),
        }
    }
}

/// Holder of a lock or waiter, for system views.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LockOwner {
    /// A transaction, by [`Transaction::id`](crate::Transaction::id).
    Transaction(u64),
    /// A session.
    Session(u32),
}

/// A held lock or a waiting request, for system views.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockStatus {
    /// The holder or waiter.
    pub owner: LockOwner,
    /// The table of the locked row.
    pub table: TableId,
    /// Distinguishes the locks of one table.
    pub key: [u64; 2],
    /// The held or requested mode.
    pub mode: LockMode,
    /// Duration of the wait; `None`: the lock is held.
    pub waits: Option<Duration>,
    /// Holders whose mode conflicts with the requested one.
    pub blockers: Vec<LockOwner>,
    /// Earlier waiters in the queue whose mode conflicts with the requested one.
    pub ahead: Vec<LockOwner>,
}

/// Hash of table and row that identifies a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LockKey {
    high: u64,
    low: u64,
}

impl LockKey {
    /// Returns the key of a row's lock.
    pub(crate) fn new(table: TableId, row: &[u8]) -> LockKey {
        let hash = xxhash_rust::xxh3::xxh3_128_with_seed(row, u64::from(table.0));
        LockKey { high: (hash >> 64) as u64, low: hash as u64 }
    }

    /// Returns the key as bytes that are the same in every process.
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.high) << 64 | u128::from(self.low)).to_be_bytes()
    }

    /// Decodes a key.
    pub(crate) fn from_bytes(bytes: [u8; 16]) -> LockKey {
        let hash = u128::from_be_bytes(bytes);
        LockKey { high: (hash >> 64) as u64, low: hash as u64 }
    }

    fn shard(self) -> usize {
        self.high as usize % SHARDS
    }

    fn mark(self) -> usize {
        (self.high / SHARDS as u64) as usize % MARKS
    }
}

/// The key is a hash already.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("lock keys are two words");
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = self.0.rotate_left(32) ^ word;
    }
}

/// Outcome of a lock request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockOutcome {
    /// The lock is new to the transaction, which must release it.
    New,
    /// The transaction had it already.
    Held,
    /// The lock is not available, and the request was to skip it then.
    Skipped,
}

/// A request that did not fail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grant {
    /// The lock.
    pub(crate) key: LockKey,
    /// True if the transaction held it before.
    pub(crate) taken: LockOutcome,
    /// The highest commit that previous holders in conflicting modes may have made or seen.
    pub(crate) mark: Sequence,
    /// True if the row was deleted during the wait: a row that has its key now is a different
    /// one.
    pub(crate) row_was_deleted: bool,
    /// The modes held before, if a further one was added.
    pub(crate) before: Option<ModeSet>,
}

/// End of a transaction whose locks are released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransactionEnd {
    /// Its writes under them are committed.
    Committed,
    /// It wrote nothing, or its writes are undone.
    Undone,
}

/// Wait policy of a request.
#[derive(Clone, Copy)]
pub(crate) struct WaitPolicy<'a> {
    /// Wait, fail or skip.
    pub(crate) wait: LockWait,
    /// True if the row is changed under the lock.
    pub(crate) changes: bool,
    /// Maximal wait; `None` for no limit.
    pub(crate) timeout: Option<Duration>,
    /// Wait before the deadlock check.
    pub(crate) deadlock_after: Duration,
    /// Ends the wait when set.
    pub(crate) cancelled: &'a AtomicBool,
    /// Notified of the wait.
    pub(crate) blocking: &'a dyn BlockingSection,
    /// Called before a wait begins, to count it.
    pub(crate) on_wait: &'a (dyn Fn() + Sync),
}

/// All locks of a store.
pub(crate) struct LockTable {
    shards: Box<[Mutex<Shard>]>,
    waits: Mutex<Waits>,
    processes: Mutex<Processes>,
    /// ACCESS SHARE locks that are not in the table.
    pub(crate) readers: Readers,
    /// Locks that were spilled to disk.
    spilled: SpilledLockRegistry,
    /// Locks in lists of ordered rows.
    listed: LockListRegistry,
    /// Number of waiters for the end of a transaction.
    awaited: AtomicUsize,
}

/// The locks whose keys are in one part of the hash space.
struct Shard {
    entries: HashMap<LockKey, LockEntry, BuildHasherDefault<KeyHasher>>,
    /// For each mode, the highest commit that a holder in that mode had seen or made when it
    /// released its lock, over all locks that share a mark.
    marks: [[Sequence; MARKS]; LockMode::COUNT],
}

impl Default for Shard {
    fn default() -> Shard {
        Shard { entries: HashMap::default(), marks: [[Sequence(0); MARKS]; LockMode::COUNT] }
    }
}

impl Shard {
    /// Returns the mark of previous holders in modes that conflict with `mode`.
    fn mark(&self, key: LockKey, mode: LockMode) -> Sequence {
        let marks = mode.conflicting().map(|earlier| self.marks[earlier.index()][key.mark()]);
        marks.max().unwrap_or_default()
    }

    fn raise_marks(&mut self, key: LockKey, modes: ModeSet, to: Sequence) {
        for mode in modes.iter() {
            let mark = &mut self.marks[mode.index()][key.mark()];
            *mark = to.max(*mark);
        }
    }
}

/// Guard that prevents the locking of some rows, none of which is locked, until it is dropped.
///
/// For the short time in which a commit without reads is applied: cheaper than an entry for each
/// row, but other requests for them block on a mutex and cannot be cancelled.
pub(crate) struct Exclusion<'a> {
    shards: SmallVec<[MutexGuard<'a, Shard>; 1]>,
    keys: SmallVec<[LockKey; 1]>,
}

impl Exclusion<'_> {
    /// Releases the rows after their commit, which the next lock holders must see.
    pub(crate) fn release(mut self, commit: Sequence) {
        let one = self.shards.len() == 1;
        for key in &self.keys {
            let shard = &mut self.shards[if one { 0 } else { key.shard() }];
            shard.raise_marks(*key, ModeSet::of(LockMode::Exclusive), commit);
        }
    }
}

impl LockTable {
    /// Returns a table without locks.
    pub(crate) fn new() -> LockTable {
        LockTable {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            waits: Mutex::default(),
            processes: Mutex::default(),
            readers: Readers::new(),
            spilled: SpilledLockRegistry::default(),
            listed: LockListRegistry::default(),
            awaited: AtomicUsize::new(0),
        }
    }

    /// Takes a lock, waiting according to `patience`.
    ///
    /// # Errors
    ///
    /// [`Error::Deadlock`], [`Error::LockNotAvailable`], [`Error::Cancelled`]. The lock is not
    /// held then, or only in the modes held before.
    pub(crate) fn lock(
        &self,
        owner: Owner,
        (table, row): (TableId, &[u8]),
        mode: LockMode,
        patience: WaitPolicy<'_>,
    ) -> Result<Grant> {
        let key = LockKey::new(table, row);
        if mode == ALONE {
            return self.lock_key(owner, (key, table), mode, patience);
        }
        self.request(owner, (key, table, Some(row)), mode, patience)
    }

    /// Returns the table, the modes and the deletion flag of a lock that a transaction holds.
    pub(crate) fn held(&self, owner: Owner, key: LockKey) -> Option<(TableId, ModeSet, bool)> {
        let shard = self.shards[key.shard()].lock();
        let entry = shard.entries.get(&key).filter(|entry| entry.modes_of(owner).is_some());
        let Some(entry) = entry else {
            drop(shard);
            return self.held_spilled(owner, key);
        };
        Some((entry.table(), entry.modes_of(owner)?, entry.is_deleted_by(owner)))
    }

    /// Sets or clears the deletion flag of a lock that a transaction holds; returns whether it
    /// changed.
    pub(crate) fn set_deleted(&self, owner: Owner, key: LockKey, is_deleted: bool) -> bool {
        let mut shard = self.shards[key.shard()].lock();
        shard.entries.get_mut(&key).is_some_and(|entry| entry.set_deleted(owner, is_deleted))
    }

    /// Takes a lock, as [`LockTable::lock`] does, by its key alone: a table lock, or while there
    /// are no lists of locks.
    ///
    /// # Errors
    ///
    /// Those of [`LockTable::lock`].
    pub(crate) fn lock_key(
        &self,
        owner: Owner,
        (key, table): (LockKey, TableId),
        mode: LockMode,
        patience: WaitPolicy<'_>,
    ) -> Result<Grant> {
        if mode != ALONE {
            return self.request(owner, (key, table, None), mode, patience);
        }
        self.readers.divert_readers(key, |reader, lock| self.hold_to_read(reader, lock));
        let outcome = self.request(owner, (key, table, None), mode, patience);
        let had_it = |grant: &Grant| match grant.taken {
            LockOutcome::New => false,
            LockOutcome::Held => grant.before.is_none(),
            LockOutcome::Skipped => true,
        };
        if outcome.as_ref().map_or(true, had_it) {
            self.readers.end_diversion(key);
        }
        outcome
    }

    /// Adds a reading transaction as a holder in ACCESS SHARE; no transaction holds ACCESS
    /// EXCLUSIVE.
    fn hold_to_read(&self, owner: Owner, LockName { table, key }: LockName) {
        let mut shard = self.shards[key.shard()].lock();
        match shard.entries.entry(key) {
            Entry::Vacant(vacant) => drop(vacant.insert(LockEntry::new(table, owner, READ))),
            Entry::Occupied(mut entry) => {
                entry.get_mut().hold(owner, READ);
                entry.get().check();
            }
        }
    }

    /// Moves the read locks of a transaction to the lock table.
    pub(crate) fn hold_reads(&self, list: &ReadLocks, owner: Owner) {
        self.readers.hold_all(list, owner, |lock| self.hold_to_read(owner, lock));
    }

    /// Takes a lock, as [`LockTable::lock_key`] does, without moving read locks of sessions
    /// first.
    fn request(
        &self,
        owner: Owner,
        (key, table, row): (LockKey, TableId, Option<&[u8]>),
        mode: LockMode,
        patience: WaitPolicy<'_>,
    ) -> Result<Grant> {
        let mut shard = self.shard_with(owner, (key, table, row))?;
        let mark = shard.mark(key, mode);
        let grant = |taken| Grant { key, taken, mark, row_was_deleted: false, before: None };
        let entry = match shard.entries.entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert(LockEntry::new(table, owner, mode)).note_change(patience.changes);
                return Ok(grant(LockOutcome::New));
            }
            Entry::Occupied(entry) => entry.into_mut(),
        };
        let held = entry.modes_of(owner);
        let taken = if held.is_some() { LockOutcome::Held } else { LockOutcome::New };
        if held.is_some_and(|held| held.covers(mode)) {
            entry.note_change(patience.changes);
            return Ok(grant(taken));
        }
        if entry.try_grant(owner, mode) {
            entry.note_change(patience.changes);
            return Ok(Grant { before: held, ..grant(taken) });
        }
        match patience.wait {
            LockWait::NoWait => return Err(Error::LockNotAvailable { table, timed_out: false }),
            LockWait::Skip => {
                return Ok(Grant { mark: Sequence(0), ..grant(LockOutcome::Skipped) });
            }
            LockWait::Wait => {}
        }
        let ticket = Arc::new(Ticket::default());
        let since = monotonic_now();
        entry.enqueue(LockWaiter { owner, mode, since, ticket: Arc::clone(&ticket) });
        let other = self.waits.lock().insert(owner, key);
        debug_assert!(other.is_none(), "{owner} waits for two locks");
        drop(shard);
        (patience.on_wait)();
        let outcome = self.wait((owner, table), (&ticket, since), &patience);
        let mut shard = self.shards[key.shard()].lock();
        let waited = self.waits.lock().remove(&owner);
        debug_assert_eq!(waited, Some(key), "{owner} waited for another lock");
        if let Err(error) = outcome
            && let Entry::Occupied(mut entry) = shard.entries.entry(key)
            && entry.get_mut().leave(&ticket)
        {
            return Err(error);
        }
        // The lock may have been granted while the wait was ended.
        if let Some(entry) = shard.entries.get_mut(&key) {
            entry.note_change(patience.changes);
        }
        let is_gone = ticket.is_gone.load(Ordering::Acquire);
        Ok(Grant {
            key,
            taken,
            mark: shard.mark(key, mode),
            row_was_deleted: is_gone,
            before: held,
        })
    }

    /// Returns the shard of a lock, after restoring its entry if another transaction than `owner`
    /// has it listed or spilled.
    fn shard_with(
        &self,
        owner: Owner,
        (key, table, row): (LockKey, TableId, Option<&[u8]>),
    ) -> Result<MutexGuard<'_, Shard>> {
        loop {
            let (spills, lists) = (self.spills(), self.lists_opened());
            self.restore(owner, (key, table))?;
            if let Some(row) = row {
                self.restore_listed(owner, (key, table), row)?;
            }
            let shard = self.shards[key.shard()].lock();
            if self.spills() == spills && self.lists_opened() == lists {
                return Ok(shard);
            }
        }
    }

    /// Returns whether another transaction than `owner` has locked a row and changed it; also
    /// `true` for a lock that was listed or spilled, where it is unknown.
    ///
    /// # Errors
    ///
    /// Errors of reading spilled locks.
    pub(crate) fn is_changed_by_other(
        &self,
        owner: Owner,
        (table, row): (TableId, &[u8]),
    ) -> Result<bool> {
        let key = LockKey::new(table, row);
        let shard = self.shard_with(owner, (key, table, Some(row)))?;
        let entry = shard.entries.get(&key);
        Ok(entry.is_some_and(|entry| entry.is_changed_by_other(owner)))
    }

    /// Waits until the lock is granted.
    fn wait(
        &self,
        (owner, table): (Owner, TableId),
        (ticket, since): (&Ticket, Instant),
        patience: &WaitPolicy<'_>,
    ) -> Result<()> {
        let mut checked = false;
        let mut outcome = Ok(());
        patience.blocking.run(&mut || {
            debug_assert!(!holds_slot(), "a slot is held during a wait for a lock");
            let mut granted = ticket.granted.lock();
            outcome = loop {
                if *granted {
                    break Ok(());
                }
                if patience.cancelled.load(Ordering::Relaxed) {
                    break Err(Error::Cancelled);
                }
                let waited = since.elapsed();
                if patience.timeout.is_some_and(|timeout| waited >= timeout) {
                    break Err(Error::LockNotAvailable { table, timed_out: true });
                }
                if !checked && waited >= patience.deadlock_after {
                    checked = true;
                    drop(granted);
                    if let Err(error) = self.check_deadlock(owner) {
                        break Err(error);
                    }
                    granted = ticket.granted.lock();
                    continue;
                }
                let mut nap = CANCEL_POLL;
                if let Some(timeout) = patience.timeout {
                    nap = nap.min(timeout - waited);
                }
                if !checked {
                    nap = nap.min(patience.deadlock_after - waited);
                }
                ticket.changed.wait_for(&mut granted, nap);
            };
        });
        outcome
    }

    /// Checks for a cycle through a waiting owner; resolves it by reordering queues if possible.
    fn check_deadlock(&self, owner: Owner) -> Result<()> {
        let mut shards: Vec<MutexGuard<'_, Shard>> =
            self.shards.iter().map(|shard| shard.lock()).collect();
        let outcome = {
            let (waits, processes) = (self.waits.lock(), self.processes.lock());
            for (owner, key) in waits.iter() {
                let entry = shards[key.shard()].entries.get(key);
                let is_known = entry.is_some_and(|entry| {
                    entry.modes_of(*owner).is_some()
                        || entry.queue().any(|waiter| waiter.owner == *owner)
                });
                debug_assert!(is_known, "{owner} is not in the queue of its lock");
            }
            Graph { shards: &shards, waits: &waits, processes: &processes }.check(owner)
        };
        match outcome {
            DeadlockOutcome::Free => Ok(()),
            DeadlockOutcome::Deadlock(detail) => Err(Error::Deadlock { detail }),
            DeadlockOutcome::Reorder(orders) => {
                for (key, order) in orders {
                    if let Some(entry) = shards[key.shard()].entries.get_mut(&key) {
                        entry.reorder(&order);
                    }
                }
                Ok(())
            }
        }
    }

    /// Associates a transaction with a session that holds locks: for deadlock detection they are
    /// one process.
    pub(crate) fn join(&self, transaction: Owner, session: Owner) {
        self.processes.lock().join(transaction, session);
    }

    /// Removes the association of a transaction with its session.
    pub(crate) fn leave(&self, transaction: Owner) {
        self.processes.lock().leave(transaction);
    }

    /// Transfers a lock to another owner; returns whether `from` held it.
    pub(crate) fn hand_over(&self, key: LockKey, from: Owner, to: Owner) -> bool {
        let mut shard = self.shards[key.shard()].lock();
        shard.entries.get_mut(&key).is_some_and(|entry| entry.hand_over(from, to))
    }

    /// Prevents rows from being locked. Returns `None` if one of them is locked now.
    pub(crate) fn exclude<'r>(
        &self,
        table: TableId,
        mut rows: impl Iterator<Item = &'r [u8]>,
    ) -> Option<Exclusion<'_>> {
        let (first, second) = (rows.next(), rows.next());
        let (Some(row), None) = (first, second) else {
            return self.exclude_many(table, first.into_iter().chain(second).chain(rows));
        };
        let key = LockKey::new(table, row);
        let before = (self.spills(), self.lists_opened());
        let is_elsewhere = self.has_spilled(table) || self.has_list(table);
        let shard = self.shards[key.shard()].lock();
        let is_free = !is_elsewhere && (self.spills(), self.lists_opened()) == before;
        let is_free = is_free && !shard.entries.contains_key(&key);
        let keys = SmallVec::from_buf([key]);
        is_free.then(|| Exclusion { shards: SmallVec::from_buf([shard]), keys })
    }

    fn exclude_many<'r>(
        &self,
        table: TableId,
        rows: impl Iterator<Item = &'r [u8]>,
    ) -> Option<Exclusion<'_>> {
        debug_assert!(table != ADVISORY_LOCKS && table != TRANSACTION_ENDS, "no rows are written");
        let keys: SmallVec<[LockKey; 1]> = rows.map(|row| LockKey::new(table, row)).collect();
        let before = (self.spills(), self.lists_opened());
        let is_elsewhere = self.has_spilled(table) || self.has_list(table);
        let shards: SmallVec<[MutexGuard<'_, Shard>; 1]> =
            self.shards.iter().map(|shard| shard.lock()).collect();
        let is_free = !is_elsewhere && (self.spills(), self.lists_opened()) == before;
        let is_free =
            is_free && keys.iter().all(|key| !shards[key.shard()].entries.contains_key(key));
        is_free.then_some(Exclusion { shards, keys })
    }

    /// Releases locks and grants them to waiters, who must see the commits up to `mark`.
    pub(crate) fn release(
        &self,
        owner: Owner,
        keys: Vec<LockKey>,
        (end, mark): (TransactionEnd, Sequence),
    ) {
        if keys.len() < SHARDS {
            for key in keys {
                self.release_one(&mut self.shards[key.shard()].lock(), owner, key, (end, mark));
            }
            return;
        }
        // Many locks are released shard by shard, so that the shard's entries stay in the
        // processor's cache.
        let mut ends = [0; SHARDS];
        keys.iter().for_each(|key| ends[key.shard()] += 1);
        let mut begin = 0;
        for end in &mut ends {
            begin += std::mem::replace(end, begin);
        }
        let mut sorted = vec![LockKey { high: 0, low: 0 }; keys.len()];
        for key in &keys {
            let end = &mut ends[key.shard()];
            sorted[*end] = *key;
            *end += 1;
        }
        drop(keys);
        for keys in sorted.chunk_by(|left, right| left.shard() == right.shard()) {
            let mut shard = self.shards[keys[0].shard()].lock();
            keys.iter().for_each(|key| self.release_one(&mut shard, owner, *key, (end, mark)));
            // Frees the memory that a large transaction needed.
            let room = shard.entries.len().max(SHARDS);
            if shard.entries.capacity() / SPARE > room {
                shard.entries.shrink_to(room);
            }
        }
    }

    /// Reduces the modes in which a lock is held; without any, releases it.
    pub(crate) fn weaken(&self, owner: Owner, key: LockKey, to: ModeSet, mark: Sequence) {
        let mut shard = self.shards[key.shard()].lock();
        if to.is_empty() {
            return self.release_one(&mut shard, owner, key, (TransactionEnd::Undone, mark));
        }
        let Some(modes) = shard.entries.get(&key).and_then(|entry| entry.modes_of(owner)) else {
            return;
        };
        shard.raise_marks(key, modes, mark);
        if let Some(entry) = shard.entries.get_mut(&key) {
            entry.weaken(owner, to);
        }
        if modes.covers(ALONE) && !to.covers(ALONE) {
            self.readers.end_diversion(key);
        }
    }

    /// Releases one lock.
    fn release_one(
        &self,
        shard: &mut Shard,
        owner: Owner,
        key: LockKey,
        (end, mark): (TransactionEnd, Sequence),
    ) {
        let Some(entry) = shard.entries.get(&key) else { return };
        let Some(modes) = entry.modes_of(owner) else { return };
        if end == TransactionEnd::Committed {
            entry.tell_deleted(owner);
        }
        shard.raise_marks(key, modes, mark);
        if let Entry::Occupied(mut entry) = shard.entries.entry(key)
            && !entry.get_mut().release(owner)
        {
            entry.remove();
        }
        if modes.covers(ALONE) {
            self.readers.end_diversion(key);
        }
    }

    /// Returns the number of locked rows.
    pub(crate) fn held_count(&self) -> usize {
        let in_table: usize = self.shards.iter().map(|shard| shard.lock().entries.len()).sum();
        in_table + self.listed_count()
    }

    /// Returns the locks with waiters: holders and waiters.
    pub(crate) fn contended(&self) -> Vec<LockStatus> {
        let mut found = Vec::new();
        // Waiters are few, held locks may be many.
        let mut keys: Vec<LockKey> = self.waits.lock().values().copied().collect();
        keys.sort_unstable_by_key(|key| (key.shard(), key.high, key.low));
        keys.dedup();
        for key in keys {
            let shard = self.shards[key.shard()].lock();
            found.extend(shard.entries.get(&key).into_iter().flat_map(|entry| status(key, entry)));
        }
        found
    }

    /// Returns the holders of and the waiters for the lock of a row.
    pub(crate) fn status(&self, table: TableId, row: &[u8]) -> Vec<LockStatus> {
        let key = LockKey::new(table, row);
        let shard = self.shards[key.shard()].lock();
        shard.entries.get(&key).map_or_else(Vec::new, |entry| status(key, entry))
    }
}

/// Returns the holders of and the waiters for a lock.
fn status(key: LockKey, entry: &LockEntry) -> Vec<LockStatus> {
    let of = |owner: Owner, mode, waits| LockStatus {
        owner: owner.shown(),
        table: entry.table(),
        key: [key.high, key.low],
        mode,
        waits,
        blockers: Vec::new(),
        ahead: Vec::new(),
    };
    let held =
        entry.holders().flat_map(|(owner, modes)| modes.shown().map(move |mode| (owner, mode)));
    let mut found: Vec<LockStatus> = held.map(|(owner, mode)| of(owner, mode, None)).collect();
    for (place, waiter) in entry.queue().enumerate() {
        let (owner, mode) = (waiter.owner, waiter.mode);
        let ahead = entry.queue().take(place).filter(|other| mode.conflicts_with(other.mode));
        found.push(LockStatus {
            blockers: entry.conflicting_holders(owner, mode).map(Owner::shown).collect(),
            ahead: ahead.map(|other| other.owner.shown()).collect(),
            ..of(owner, mode, Some(waiter.since.elapsed()))
        });
    }
    found
}

#[cfg(test)]
mod tests;
