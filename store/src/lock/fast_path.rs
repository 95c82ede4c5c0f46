//! Fast-path ACCESS SHARE locks, recorded in a list of the session.
//!
//! ACCESS SHARE conflicts only with ACCESS EXCLUSIVE, which is rarely requested. So a reader of a
//! table notes the lock in a list of its session ([`ReadLocks`]), which is uncontended, and takes
//! no lock in the lock table. A request for ACCESS EXCLUSIVE first increments a counter that many
//! locks share; then it moves the notes of that lock from the lists of all sessions to the lock
//! table, and waits there. While the counter is not zero, readers use the lock table, too.
//!
//! ```text
//! reader:  own list locked   [ counter is 0? note : lock table ]   own list unlocked
//! other:   counter + 1, then each list locked [ notes to the lock table ], then lock table
//! ```
//!
//! # Invariants
//!
//! 1. A note is either only in a list, or the transaction is a holder in the lock table and the
//!    note says so.
//! 2. While ACCESS EXCLUSIVE is held or waited for, no note of that lock is only in a list.
//! 3. The notes of a transaction are in the order in which it took its locks: rolling back to a
//!    savepoint removes the last of them.
//!
//! The flag of a note ensures 1, appending 3. `Readers::divert_readers` asserts 2 in debug builds.
//!
//! Source: PostgreSQL's fast-path locks (`lmgr/README`, `lock.c`).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::descriptor::TableId;
use crate::lock::{LockKey, Owner};
use crate::lock_mode::{LockMode, TableLockMode};

/// Number of counters of ACCESS EXCLUSIVE requests and holders; locks share them by hash.
const COUNTERS: usize = 1024;

/// The mode of readers.
pub(crate) const READ: LockMode = LockMode::Table(TableLockMode::AccessShare);
/// The mode that conflicts with readers.
pub(super) const ALONE: LockMode = LockMode::Table(TableLockMode::AccessExclusive);

/// Precomputed name of a lock that is taken repeatedly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LockName {
    pub(crate) table: TableId,
    pub(crate) key: LockKey,
}

impl LockName {
    /// Returns the name of a row's lock.
    pub fn new(table: TableId, row: &[u8]) -> LockName {
        LockName { table, key: LockKey::new(table, row) }
    }
}

/// Read locks of the open transactions of a session. See the module.
#[derive(Default)]
pub struct ReadLocks {
    notes: Mutex<SmallVec<[Note; 8]>>,
}

/// A read lock of one transaction.
#[derive(Clone, Copy)]
struct Note {
    owner: Owner,
    lock: LockName,
    /// True if the owner is a holder in the lock table.
    is_in_table: bool,
}

impl ReadLocks {
    /// Returns whether a transaction has a read lock already.
    fn has(notes: &[Note], owner: Owner, key: LockKey) -> bool {
        notes.iter().any(|note| note.lock.key == key && note.owner == owner)
    }

    /// Returns whether a transaction has a read lock.
    pub(crate) fn reads(&self, owner: Owner, lock: LockName) -> bool {
        ReadLocks::has(&self.notes.lock(), owner, lock.key)
    }

    /// Adds a read lock that the transaction holds in the lock table.
    pub(crate) fn add_held(&self, owner: Owner, lock: LockName) {
        let mut notes = self.notes.lock();
        debug_assert!(
            notes.iter().all(|note| note.lock.key != lock.key || note.lock == lock),
            "a lock has two names"
        );
        match notes.iter_mut().find(|note| note.lock == lock && note.owner == owner) {
            Some(note) => note.is_in_table = true,
            None => notes.push(Note { owner, lock, is_in_table: true }),
        }
    }

    /// Returns the number of read locks of a transaction.
    pub(crate) fn count(&self, owner: Owner) -> usize {
        self.notes.lock().iter().filter(|note| note.owner == owner).count()
    }

    /// Removes all but the first `kept_count` read locks of a transaction, and calls `act` with
    /// the retained and the removed ones that are in the lock table. No other one is moved there
    /// meanwhile.
    pub(crate) fn forget_after(
        &self,
        owner: Owner,
        kept_count: usize,
        act: impl FnOnce(&[LockKey], &[LockKey]),
    ) {
        let mut notes = self.notes.lock();
        let (mut kept, mut forgotten) = (SmallVec::<[LockKey; 4]>::new(), SmallVec::new());
        let mut place = 0;
        notes.retain(|note| {
            if note.owner != owner {
                return true;
            }
            place += 1;
            let is_kept = place <= kept_count;
            if note.is_in_table {
                let found: &mut SmallVec<[LockKey; 4]> =
                    if is_kept { &mut kept } else { &mut forgotten };
                found.push(note.lock.key);
            }
            is_kept
        });
        act(&kept, &forgotten);
    }

    /// Removes the read locks of a transaction; returns those that are in the lock table.
    pub(crate) fn end(&self, owner: Owner) -> SmallVec<[LockKey; 4]> {
        let mut held = SmallVec::new();
        self.notes.lock().retain(|note| {
            let is_own = note.owner == owner;
            if is_own && note.is_in_table {
                held.push(note.lock.key);
            }
            !is_own
        });
        held
    }
}

/// The lists of all sessions, and the counters of ACCESS EXCLUSIVE requests.
pub(crate) struct Readers {
    lists: Mutex<Vec<Weak<ReadLocks>>>,
    alone: Box<[AtomicU32]>,
}

impl Readers {
    pub(super) fn new() -> Readers {
        let alone = (0..COUNTERS).map(|_| AtomicU32::new(0)).collect();
        Readers { lists: Mutex::default(), alone }
    }

    /// Returns the list of a new session.
    pub(crate) fn list(&self) -> Arc<ReadLocks> {
        let list = Arc::default();
        let mut lists = self.lists.lock();
        lists.retain(|known| known.strong_count() > 0);
        lists.push(Arc::downgrade(&list));
        list
    }

    fn counter(&self, key: LockKey) -> &AtomicU32 {
        &self.alone[key.low as usize % COUNTERS]
    }

    /// Notes a read lock; returns `false` if the lock must be taken in the lock table.
    pub(crate) fn note(&self, list: &ReadLocks, owner: Owner, lock: LockName) -> bool {
        let mut notes = list.notes.lock();
        if ReadLocks::has(&notes, owner, lock.key) {
            return true;
        }
        let is_free = self.counter(lock.key).load(Ordering::Acquire) == 0;
        if is_free {
            notes.push(Note { owner, lock, is_in_table: false });
        }
        is_free
    }

    /// Directs readers to the lock table; `hold` adds a noted reader as a holder there.
    pub(super) fn divert_readers(&self, key: LockKey, mut hold: impl FnMut(Owner, LockName)) {
        self.counter(key).fetch_add(1, Ordering::SeqCst);
        let lists: Vec<Arc<ReadLocks>> =
            self.lists.lock().iter().filter_map(Weak::upgrade).collect();
        for list in lists {
            let mut notes = list.notes.lock();
            for note in notes.iter_mut().filter(|note| note.lock.key == key && !note.is_in_table) {
                hold(note.owner, note.lock);
                note.is_in_table = true;
            }
        }
        debug_assert!(
            self.noted().iter().all(|(_, lock)| lock.key != key),
            "a reader is not in the lock table"
        );
    }

    /// Ends the effect of [`Readers::divert_readers`].
    pub(super) fn end_diversion(&self, key: LockKey) {
        let before = self.counter(key).fetch_sub(1, Ordering::Release);
        assert!(before > 0, "readers are let in twice");
    }

    /// Moves the locks of a transaction to the lock table.
    pub(super) fn hold_all(&self, list: &ReadLocks, owner: Owner, mut hold: impl FnMut(LockName)) {
        let mut notes = list.notes.lock();
        for note in notes.iter_mut().filter(|note| note.owner == owner && !note.is_in_table) {
            hold(note.lock);
            note.is_in_table = true;
        }
    }

    /// Returns the read locks that are not in the lock table.
    pub(crate) fn noted(&self) -> Vec<(Owner, LockName)> {
        let lists: Vec<Arc<ReadLocks>> =
            self.lists.lock().iter().filter_map(Weak::upgrade).collect();
        let mut found = Vec::new();
        for list in lists {
            let notes = list.notes.lock();
            let noted = notes.iter().filter(|note| !note.is_in_table);
            found.extend(noted.map(|note| (note.owner, note.lock)));
        }
        found
    }
}
