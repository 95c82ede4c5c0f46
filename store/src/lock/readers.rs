//! Locks of those who only read, which cost next to nothing.
//!
//! ACCESS SHARE conflicts with ACCESS EXCLUSIVE alone, which hardly anybody wants. So who reads a
//! table notes that in a list of its session ([`ReadLocks`]), which nobody else looks at, and takes
//! no lock of the table of locks. Who wants ACCESS EXCLUSIVE says so first, in a counter that many
//! locks share; then it moves the notes of that lock, those of all sessions, to the table of locks,
//! and waits there like everybody. Who reads while the counter is not zero goes to the table of
//! locks, too.
//!
//! ```text
//! reader:  own list locked   [ counter is 0? note : lock table ]   own list unlocked
//! other:   counter + 1, then each list locked [ notes to the lock table ], then lock table
//! ```
//!
//! # Invariants
//!
//! 1. A note is either in a list alone, or the transaction is a holder in the table of locks and
//!    the note says so.
//! 2. While somebody has ACCESS EXCLUSIVE, or waits for it, no note of that lock is in a list
//!    alone.
//! 3. The notes of a transaction are in the order in which it took its locks: going back to a
//!    savepoint forgets the last of them.
//!
//! Source: PostgreSQL's fast-path locks (`lmgr/README`, `lock.c`).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::descriptor::TableId;
use crate::lock::{LockKey, Owner};
use crate::lock_mode::{LockMode, TableLockMode};

/// Counters of those who have or want a lock alone; locks share them by hash.
const COUNTERS: usize = 1024;

/// The mode of those who only read.
pub(crate) const READ: LockMode = LockMode::Table(TableLockMode::AccessShare);
/// The mode that keeps them out.
pub(super) const ALONE: LockMode = LockMode::Table(TableLockMode::AccessExclusive);

/// Names a lock that is taken again and again.
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

/// What the open transactions of a session read. See the module.
#[derive(Default)]
pub struct ReadLocks {
    notes: Mutex<SmallVec<[Note; 8]>>,
}

/// Somebody reads.
#[derive(Clone, Copy)]
struct Note {
    owner: Owner,
    lock: LockName,
    /// The owner is a holder in the table of locks.
    is_in_table: bool,
}

impl ReadLocks {
    /// Returns whether a transaction reads under a lock already.
    fn has(notes: &[Note], owner: Owner, key: LockKey) -> bool {
        notes.iter().any(|note| note.lock.key == key && note.owner == owner)
    }

    /// Returns whether a transaction reads under a lock.
    pub(crate) fn reads(&self, owner: Owner, lock: LockName) -> bool {
        ReadLocks::has(&self.notes.lock(), owner, lock.key)
    }

    /// Notes that a transaction reads, whose lock is in the table of locks.
    pub(crate) fn add_held(&self, owner: Owner, lock: LockName) {
        let mut notes = self.notes.lock();
        match notes.iter_mut().find(|note| note.lock == lock && note.owner == owner) {
            Some(note) => note.is_in_table = true,
            None => notes.push(Note { owner, lock, is_in_table: true }),
        }
    }

    /// Returns how many locks a transaction reads under.
    pub(crate) fn count(&self, owner: Owner) -> usize {
        self.notes.lock().iter().filter(|note| note.owner == owner).count()
    }

    /// Forgets all but the first locks under which a transaction reads, and calls `act` with those
    /// in the table of locks, kept and forgotten. No other one is moved there meanwhile.
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

    /// Forgets what a transaction reads; returns its locks that are in the table of locks.
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

/// The lists of all sessions, and who keeps readers out.
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

    /// Notes that a transaction reads; returns whether that is enough.
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

    /// Begins to keep readers out; `hold` makes a reader a holder in the table of locks.
    pub(super) fn keep_out(&self, key: LockKey, mut hold: impl FnMut(Owner, LockName)) {
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
    }

    /// Ends what [`Readers::keep_out`] has begun.
    pub(super) fn let_in(&self, key: LockKey) {
        self.counter(key).fetch_sub(1, Ordering::Release);
    }

    /// Moves the locks of a transaction to the table of locks.
    pub(super) fn hold_all(&self, list: &ReadLocks, owner: Owner, mut hold: impl FnMut(LockName)) {
        let mut notes = list.notes.lock();
        for note in notes.iter_mut().filter(|note| note.owner == owner && !note.is_in_table) {
            hold(note.lock);
            note.is_in_table = true;
        }
    }

    /// Returns who reads and has no lock in the table of locks.
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
