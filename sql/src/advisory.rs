//! Advisory locks: application-defined locks on one 64-bit or two 32-bit numbers.
//!
//! A session-level lock is held until it has been released as often as it was acquired, or until
//! the session ends; a transaction-level lock is held until the transaction ends. The locks
//! themselves are entries of the store's row-lock table, which handles waiting, deadlock
//! detection and the snapshot of the next holder; this module counts the acquisitions of each
//! session. The functions `pg_advisory_*` call [`SessionLocks`]; `pg_locks` reads
//! [`AdvisoryLocks::lock_rows`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ahash::AHashMap;
use parking_lot::Mutex;
use store::transaction::{LockMode, LockWait, TableLockMode};
use store::{Sequence, SessionWait, Store, Transaction};

use crate::catalog::database::DEFAULT_DATABASE;
use crate::error::{Error, Result};

/// Lock key: one 64-bit number or two 32-bit numbers, which are separate key spaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AdvisoryKey {
    /// `pg_advisory_lock(bigint)`
    One(i64),
    /// `pg_advisory_lock(integer, integer)`
    Two(i32, i32),
}

impl AdvisoryKey {
    /// Returns the row key of the lock in the store. That of the default database has no number,
    /// as in locks of transactions that were prepared when there was no other one.
    fn row(self, database: u32) -> Vec<u8> {
        let row = match self {
            AdvisoryKey::One(number) => [&[1], &number.to_be_bytes()[..]].concat(),
            AdvisoryKey::Two(first, second) => {
                [&[2], &first.to_be_bytes()[..], &second.to_be_bytes()].concat()
            }
        };
        match database {
            DEFAULT_DATABASE => row,
            other => [&[3], &other.to_be_bytes()[..], &row].concat(),
        }
    }
}

/// Lock mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdvisoryMode {
    /// Conflicts with every other holder.
    Exclusive,
    /// Conflicts with exclusive holders only.
    Shared,
}

impl AdvisoryMode {
    fn lock_mode(self) -> LockMode {
        match self {
            AdvisoryMode::Exclusive => LockMode::Table(TableLockMode::Exclusive),
            AdvisoryMode::Shared => LockMode::Table(TableLockMode::Share),
        }
    }
}

/// Duration of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdvisoryLevel {
    /// Until it is released or the session ends.
    Session,
    /// Until the transaction ends.
    Transaction,
}

/// Wait limits of a lock request.
#[derive(Clone, Copy)]
pub struct AdvisoryWait<'a> {
    /// Limit of the whole wait; `None`: no limit.
    pub lock_timeout: Option<Duration>,
    /// Delay before deadlock detection.
    pub deadlock_timeout: Duration,
    /// Flag that ends the wait.
    pub cancelled: &'a AtomicBool,
}

/// Acquisitions of one lock by one session, in one mode.
#[derive(Debug)]
struct AdvisoryHolder {
    session: i32,
    mode: AdvisoryMode,
    /// Number of session-level acquisitions.
    by_session: u32,
    /// Number of transaction-level acquisitions.
    by_transaction: u32,
}

#[derive(Debug, Default)]
struct AdvisoryState {
    held: AHashMap<AdvisoryKey, Vec<AdvisoryHolder>>,
    waiting: AHashMap<i32, (AdvisoryKey, AdvisoryMode)>,
    /// Locks of prepared transactions, by transaction number.
    prepared: AHashMap<u64, Vec<(AdvisoryKey, AdvisoryMode)>>,
}

/// Advisory locks of all sessions.
pub struct AdvisoryLocks {
    store: Arc<Store>,
    /// Number of the database, in the keys of the store's locks.
    database: u32,
    state: Mutex<AdvisoryState>,
}

/// One row of `pg_locks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdvisoryLockRow {
    /// Key of the lock.
    pub key: AdvisoryKey,
    /// Session that holds the lock or waits for it; `None`: a prepared transaction holds it.
    pub session: Option<i32>,
    /// Mode of the lock.
    pub mode: AdvisoryMode,
    /// True if the lock is held, not waited for.
    pub granted: bool,
}

impl AdvisoryState {
    /// Returns the strongest mode in which a session holds a lock.
    fn mode_of(&self, session: i32, key: AdvisoryKey) -> Option<LockMode> {
        let holders = self.held.get(&key).into_iter().flatten();
        let own = holders.filter(|holder| holder.session == session);
        own.map(|holder| holder.mode.lock_mode()).max()
    }

    fn count(
        &mut self,
        session: i32,
        (key, mode, level): (AdvisoryKey, AdvisoryMode, AdvisoryLevel),
    ) {
        let holders = self.held.entry(key).or_default();
        let same = |holder: &AdvisoryHolder| holder.session == session && holder.mode == mode;
        let at = holders.iter().position(same).unwrap_or_else(|| {
            holders.push(AdvisoryHolder { session, mode, by_session: 0, by_transaction: 0 });
            holders.len() - 1
        });
        match level {
            AdvisoryLevel::Session => holders[at].by_session += 1,
            AdvisoryLevel::Transaction => holders[at].by_transaction += 1,
        }
        self.check(key);
    }

    /// Asserts in debug builds that each holder of a lock has acquisitions, and that a session has
    /// one entry for each mode.
    fn check(&self, key: AdvisoryKey) {
        let Some(holders) = self.held.get(&key) else { return };
        debug_assert!(!holders.is_empty(), "lock {key:?} without holders");
        for (at, holder) in holders.iter().enumerate() {
            let count = holder.by_session + holder.by_transaction;
            debug_assert!(count > 0, "{holder:?} of lock {key:?}");
            let same =
                |one: &AdvisoryHolder| one.session == holder.session && one.mode == holder.mode;
            debug_assert!(!holders[..at].iter().any(same), "{holder:?} is listed twice");
        }
    }

    /// Removes holders whose counts are zero.
    fn tidy(&mut self, key: AdvisoryKey) {
        if let Some(holders) = self.held.get_mut(&key) {
            holders.retain(|holder| holder.by_session + holder.by_transaction > 0);
            if holders.is_empty() {
                self.held.remove(&key);
            }
        }
        self.check(key);
    }
}

/// Returns the store's number of a session.
fn stored(session: i32) -> u32 {
    session.cast_unsigned()
}

impl AdvisoryLocks {
    /// Returns the advisory locks of a database; none is held.
    pub fn new(store: Arc<Store>, database: u32) -> AdvisoryLocks {
        AdvisoryLocks { store, database, state: Mutex::default() }
    }

    /// Acquires a lock and returns the commit up to which the session's next snapshot must see;
    /// `None` if the lock is held in a conflicting mode and `wait` says not to wait.
    fn acquire(
        &self,
        session: i32,
        lock: (AdvisoryKey, AdvisoryMode, AdvisoryLevel),
        wait: SessionWait<'_>,
    ) -> Result<Option<Sequence>> {
        let (key, mode, _) = lock;
        let mut state = self.state.lock();
        if state.mode_of(session, key) >= Some(mode.lock_mode()) {
            state.count(session, lock);
            return Ok(Some(Sequence(0)));
        }
        state.waiting.insert(session, (key, mode));
        drop(state);
        let number = stored(session);
        let taken =
            self.store.lock_for_session(number, &key.row(self.database), mode.lock_mode(), wait);
        let mut state = self.state.lock();
        state.waiting.remove(&session);
        if let Ok(Some(_)) = &taken {
            state.count(session, lock);
        }
        Ok(taken?)
    }

    /// Unlocks or downgrades a lock in the store after its counts were reduced. `before`: the
    /// mode that the session held.
    fn give_back(
        &self,
        state: &mut AdvisoryState,
        (session, key): (i32, AdvisoryKey),
        seen: Sequence,
    ) {
        let before = state.mode_of(session, key);
        state.tidy(key);
        let rest = state.mode_of(session, key);
        if rest < before {
            self.store.unlock_for_session(stored(session), &key.row(self.database), rest, seen);
        }
    }

    fn release(&self, session: i32, key: AdvisoryKey, mode: AdvisoryMode, seen: Sequence) -> bool {
        let mut state = self.state.lock();
        let Some(holders) = state.held.get_mut(&key) else { return false };
        let own = |holder: &&mut AdvisoryHolder| {
            holder.session == session && holder.mode == mode && holder.by_session > 0
        };
        let Some(holder) = holders.iter_mut().find(own) else { return false };
        holder.by_session -= 1;
        self.give_back(&mut state, (session, key), seen);
        true
    }

    /// Releases transaction-level acquisitions of a session, one for each entry of `taken`.
    fn release_of_transaction(
        &self,
        session: i32,
        taken: &[(AdvisoryKey, AdvisoryMode)],
        seen: Sequence,
    ) {
        let mut state = self.state.lock();
        for (key, mode) in taken {
            let Some(holders) = state.held.get_mut(key) else { continue };
            let own = |holder: &&mut AdvisoryHolder| {
                holder.session == session && holder.mode == *mode && holder.by_transaction > 0
            };
            if let Some(holder) = holders.iter_mut().find(own) {
                holder.by_transaction -= 1;
                self.give_back(&mut state, (session, *key), seen);
            }
        }
    }

    fn release_all(&self, session: i32, level: AdvisoryLevel, seen: Sequence) {
        let mut state = self.state.lock();
        let mut keys = Vec::new();
        for (key, holders) in &mut state.held {
            for holder in holders.iter_mut().filter(|holder| holder.session == session) {
                match level {
                    AdvisoryLevel::Session => holder.by_session = 0,
                    AdvisoryLevel::Transaction => holder.by_transaction = 0,
                }
                keys.push(*key);
            }
        }
        for key in keys {
            self.give_back(&mut state, (session, key), seen);
        }
    }

    /// Transfers the transaction-level locks of a session to its transaction, before PREPARE
    /// TRANSACTION.
    fn transfer_to(&self, session: i32, transaction: &Transaction) -> Result<()> {
        let mut state = self.state.lock();
        let has_both = |holders: &Vec<AdvisoryHolder>| {
            let own = || holders.iter().filter(|holder| holder.session == session);
            own().any(|one| one.by_session > 0) && own().any(|one| one.by_transaction > 0)
        };
        if state.held.values().any(has_both) {
            bail!(FEATURE_NOT_SUPPORTED: "cannot PREPARE while holding both session-level and transaction-level locks on the \
                same object");
        }
        let mut given = Vec::new();
        for (key, holders) in &mut state.held {
            let is_given =
                |holder: &AdvisoryHolder| holder.session == session && holder.by_transaction > 0;
            if !holders.iter().any(is_given) {
                continue;
            }
            transaction.adopt_session_lock(stored(session), &key.row(self.database));
            given.extend(holders.iter().filter(|one| is_given(one)).map(|one| (*key, one.mode)));
            holders.retain(|holder| !is_given(holder));
        }
        state.held.retain(|_, holders| !holders.is_empty());
        if !given.is_empty() {
            state.prepared.insert(transaction.id(), given);
        }
        Ok(())
    }

    /// Removes the locks of transactions that are not prepared, or no longer.
    pub fn forget_ended(&self, is_prepared: impl Fn(u64) -> bool) {
        self.state.lock().prepared.retain(|transaction, _| is_prepared(*transaction));
    }

    /// Returns all held and requested locks, by key and session.
    pub fn lock_rows(&self) -> Vec<AdvisoryLockRow> {
        let state = self.state.lock();
        let held = state.held.iter().flat_map(|(key, holders)| {
            let lock = |holder: &AdvisoryHolder| AdvisoryLockRow {
                key: *key,
                session: Some(holder.session),
                mode: holder.mode,
                granted: true,
            };
            holders.iter().map(lock)
        });
        let waiting = state.waiting.iter().map(|(session, (key, mode))| AdvisoryLockRow {
            key: *key,
            session: Some(*session),
            mode: *mode,
            granted: false,
        });
        let prepared = state.prepared.values().flatten().map(|(key, mode)| AdvisoryLockRow {
            key: *key,
            session: None,
            mode: *mode,
            granted: true,
        });
        let mut shown: Vec<AdvisoryLockRow> = held.chain(waiting).chain(prepared).collect();
        shown.sort_by_key(|lock| (lock.key, lock.session, lock.granted));
        shown
    }
}

/// Advisory locks of one session. Dropping it releases all of them.
pub struct SessionLocks {
    locks: Arc<AdvisoryLocks>,
    session: i32,
    /// True if the session ever acquired a lock; if not, releases are skipped.
    used: AtomicBool,
    /// Transaction-level acquisitions in order, one entry per acquisition.
    of_transaction: Mutex<Vec<(AdvisoryKey, AdvisoryMode)>>,
}

impl SessionLocks {
    /// Returns the advisory locks of a new session.
    pub fn new(locks: Arc<AdvisoryLocks>, session: i32) -> SessionLocks {
        let of_transaction = Mutex::default();
        SessionLocks { locks, session, used: AtomicBool::new(false), of_transaction }
    }

    /// Links a transaction to the session for deadlock detection: who waits for a lock of one of
    /// them waits for the other, too.
    pub fn link_transaction(&self, transaction: &Transaction) {
        if self.used.load(Ordering::Relaxed) {
            transaction.join_session(stored(self.session));
        }
    }

    /// Acquires a lock without waiting; returns whether it succeeded.
    ///
    /// # Errors
    ///
    /// None at present.
    pub fn try_acquire(
        &self,
        transaction: &Transaction,
        lock: (AdvisoryKey, AdvisoryMode, AdvisoryLevel),
    ) -> Result<bool> {
        let (wait, cancelled) = (LockWait::Skip, &AtomicBool::new(false));
        let timeouts = (None, Duration::ZERO);
        let (lock_timeout, deadlock_timeout) = timeouts;
        let wait = SessionWait { wait, lock_timeout, deadlock_timeout, cancelled };
        self.take(transaction, lock, wait)
    }

    /// Acquires a lock for the session of a transaction, waiting if necessary. The next snapshot
    /// shows the commits of the previous holders.
    ///
    /// # Errors
    ///
    /// 40P01 for a deadlock with this session, 55P03 when the time limit is reached, 57014 on
    /// cancellation.
    pub fn acquire(
        &self,
        transaction: &Transaction,
        lock: (AdvisoryKey, AdvisoryMode, AdvisoryLevel),
        wait: AdvisoryWait<'_>,
    ) -> Result<()> {
        let AdvisoryWait { lock_timeout, deadlock_timeout, cancelled } = wait;
        let wait = LockWait::Wait;
        let wait = SessionWait { wait, lock_timeout, deadlock_timeout, cancelled };
        self.take(transaction, lock, wait).map(drop)
    }

    fn take(
        &self,
        transaction: &Transaction,
        lock: (AdvisoryKey, AdvisoryMode, AdvisoryLevel),
        wait: SessionWait<'_>,
    ) -> Result<bool> {
        self.used.store(true, Ordering::Relaxed);
        self.link_transaction(transaction);
        let seen = self.locks.acquire(self.session, lock, wait)?;
        if let Some(seen) = seen {
            transaction.require_commit(seen);
            let (key, mode, level) = lock;
            if level == AdvisoryLevel::Transaction {
                self.of_transaction.lock().push((key, mode));
            }
        }
        Ok(seen.is_some())
    }

    /// Returns the number of transaction-level acquisitions, as a position for `release_after`.
    pub fn acquisition_count(&self) -> usize {
        self.of_transaction.lock().len()
    }

    /// Releases the transaction-level acquisitions after position `place`, for ROLLBACK TO
    /// SAVEPOINT. The session has seen the commits up to `seen`.
    pub fn release_after(&self, place: usize, seen: Sequence) {
        let mut taken = self.of_transaction.lock();
        let kept = place.min(taken.len());
        let released = taken.split_off(kept);
        drop(taken);
        if !released.is_empty() {
            self.locks.release_of_transaction(self.session, &released, seen);
        }
    }

    /// Transfers the transaction-level locks of the session to its transaction, before PREPARE
    /// TRANSACTION.
    ///
    /// # Errors
    ///
    /// 0A000 if the session holds one of them at session level, too.
    pub fn give_to(&self, transaction: &Transaction) -> Result<()> {
        if self.used.load(Ordering::Relaxed) {
            self.locks.transfer_to(self.session, transaction)?;
            self.of_transaction.lock().clear();
        }
        Ok(())
    }

    /// Releases one session-level acquisition; returns whether there was one. The session has
    /// seen the commits up to `seen`.
    pub fn release(&self, key: AdvisoryKey, mode: AdvisoryMode, seen: Sequence) -> bool {
        self.locks.release(self.session, key, mode, seen)
    }

    /// Releases all locks of the session at one level. The session has seen or made the commits
    /// up to `seen`.
    pub fn release_all(&self, level: AdvisoryLevel, seen: Sequence) {
        if self.used.load(Ordering::Relaxed) {
            if level == AdvisoryLevel::Transaction {
                self.of_transaction.lock().clear();
            }
            self.locks.release_all(self.session, level, seen);
        }
    }
}

impl Drop for SessionLocks {
    fn drop(&mut self) {
        self.release_all(AdvisoryLevel::Transaction, Sequence(0));
        self.release_all(AdvisoryLevel::Session, Sequence(0));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {

    use store::transaction::TransactionOptions;
    use store::{FamilyDescriptor, Options, TableDescriptor, TableId};

    use super::*;

    /// A store with a table and two sessions with one transaction each.
    struct World {
        _directory: tempfile::TempDir,
        store: Arc<Store>,
        locks: Arc<AdvisoryLocks>,
        sessions: [SessionLocks; 2],
        transactions: [Transaction; 2],
    }

    const TABLE: TableId = TableId(7);

    fn descriptor() -> TableDescriptor {
        TableDescriptor::new(TABLE, "t", vec![FamilyDescriptor::new("d")])
    }

    fn world() -> World {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), Options::default()).unwrap();
        store.create_table(descriptor()).unwrap();
        let locks = Arc::new(AdvisoryLocks::new(Arc::clone(&store), DEFAULT_DATABASE));
        let sessions = [1, 2].map(|number| SessionLocks::new(Arc::clone(&locks), number));
        let transactions = [(), ()].map(|()| store.begin(TransactionOptions::default()));
        World { _directory: directory, store, locks, sessions, transactions }
    }

    impl World {
        fn tries(&self, at: usize, mode: AdvisoryMode, level: AdvisoryLevel) -> bool {
            self.sessions[at].try_acquire(&self.transactions[at], (KEY, mode, level)).unwrap()
        }

        fn waits(&self, at: usize, key: AdvisoryKey, wait: AdvisoryWait<'_>) -> Result<()> {
            let lock = (key, AdvisoryMode::Exclusive, AdvisoryLevel::Session);
            self.sessions[at].acquire(&self.transactions[at], lock, wait)
        }

        fn release(&self, at: usize, mode: AdvisoryMode) -> bool {
            self.sessions[at].release(KEY, mode, Sequence(0))
        }

        fn until_waiting(&self) {
            while self.store.contended_locks().is_empty() {
                std::thread::yield_now();
            }
        }
    }

    const KEY: AdvisoryKey = AdvisoryKey::One(7);
    const SESSION: AdvisoryLevel = AdvisoryLevel::Session;
    static NEVER: AtomicBool = AtomicBool::new(false);
    const LONG: AdvisoryWait<'static> = AdvisoryWait {
        lock_timeout: None,
        deadlock_timeout: Duration::from_millis(1),
        cancelled: &NEVER,
    };

    #[test]
    fn advisory_lock_is_reentrant_and_counted() {
        let world = world();
        assert!(world.tries(0, AdvisoryMode::Exclusive, SESSION));
        assert!(world.tries(0, AdvisoryMode::Exclusive, SESSION));
        assert!(!world.tries(1, AdvisoryMode::Shared, SESSION));
        assert!(world.release(0, AdvisoryMode::Exclusive));
        assert!(!world.tries(1, AdvisoryMode::Exclusive, SESSION));
        assert!(
            world.release(0, AdvisoryMode::Exclusive) && !world.release(0, AdvisoryMode::Exclusive)
        );
        assert!(world.tries(1, AdvisoryMode::Exclusive, SESSION));
        let other = (AdvisoryKey::Two(0, 7), AdvisoryMode::Exclusive, SESSION);
        assert!(world.sessions[0].try_acquire(&world.transactions[0], other).unwrap());
    }

    #[test]
    fn shared_advisory_locks_coexist_until_transaction_end() {
        let world = world();
        assert!(world.tries(0, AdvisoryMode::Shared, AdvisoryLevel::Transaction));
        assert!(world.tries(1, AdvisoryMode::Shared, SESSION));
        assert!(!world.tries(0, AdvisoryMode::Exclusive, SESSION));
        assert_eq!(world.locks.lock_rows().len(), 2);
        // A transaction-level lock cannot be released by the session.
        assert!(!world.release(0, AdvisoryMode::Shared));
        world.sessions[0].release_all(AdvisoryLevel::Transaction, Sequence(0));
        assert!(world.tries(1, AdvisoryMode::Exclusive, SESSION));
        // The lock remains held in the weaker mode.
        assert!(world.release(1, AdvisoryMode::Exclusive));
        assert!(world.tries(0, AdvisoryMode::Shared, SESSION));
        assert!(!world.tries(0, AdvisoryMode::Exclusive, SESSION));
        let World { locks, sessions, .. } = world;
        drop(sessions);
        assert!(locks.lock_rows().is_empty());
    }

    #[test]
    fn advisory_grant_raises_required_commit() {
        let world = world();
        assert!(world.tries(0, AdvisoryMode::Shared, SESSION));
        assert!(world.sessions[0].release(KEY, AdvisoryMode::Shared, Sequence(5)));
        assert!(world.tries(1, AdvisoryMode::Shared, SESSION));
        assert_eq!(world.transactions[1].required_commit(), Sequence(0));
        assert!(world.tries(1, AdvisoryMode::Exclusive, SESSION));
        assert_eq!(world.transactions[1].required_commit(), Sequence(5));
    }

    #[test]
    fn advisory_wait_ends_by_grant_cancel_or_timeout() {
        let world = world();
        world.waits(0, KEY, LONG).unwrap();
        let short = AdvisoryWait { lock_timeout: Some(Duration::from_millis(1)), ..LONG };
        assert_eq!(world.waits(1, KEY, short).unwrap_err().sqlstate, "55P03");
        let stopped = AdvisoryWait { cancelled: &AtomicBool::new(true), ..LONG };
        assert_eq!(world.waits(1, KEY, stopped).unwrap_err().sqlstate, "57014");
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| world.waits(1, KEY, LONG));
            world.until_waiting();
            assert!(world.release(0, AdvisoryMode::Exclusive));
            waiter.join().unwrap().unwrap();
        });
        assert!(!world.tries(0, AdvisoryMode::Shared, SESSION));
    }

    #[test]
    fn advisory_deadlock_is_detected() {
        let world = world();
        world.waits(0, AdvisoryKey::One(1), LONG).unwrap();
        world.waits(1, AdvisoryKey::One(2), LONG).unwrap();
        std::thread::scope(|scope| {
            // Either session may detect the deadlock; it then releases the lock that the other
            // waits for.
            let wait = |session: usize, wanted: i64, held: i64| {
                let waited = world.waits(session, AdvisoryKey::One(wanted), LONG);
                if let Err(error) = &waited {
                    assert_eq!(error.sqlstate, "40P01");
                    let held = AdvisoryKey::One(held);
                    assert!(world.sessions[session].release(
                        held,
                        AdvisoryMode::Exclusive,
                        Sequence(0)
                    ));
                }
                waited.is_err()
            };
            let first = scope.spawn(move || wait(0, 2, 1));
            world.until_waiting();
            let second = wait(1, 1, 2);
            assert!(first.join().unwrap() != second, "one of the two ends with an error");
        });
    }

    #[test]
    fn deadlock_of_row_and_advisory_lock_is_detected() {
        let world = world();
        let [first, second] = &world.transactions;
        let row = |transaction: &Transaction| {
            transaction.lock_row(TABLE, b"r", LockMode::Exclusive, LockWait::Wait)
        };
        world.waits(0, KEY, LONG).unwrap();
        row(second).unwrap();
        std::thread::scope(|scope| {
            // Either session may detect the deadlock; it then releases the lock that the other
            // waits for.
            let waiter = scope.spawn(|| {
                let locked = row(first);
                if locked.is_err() {
                    assert!(world.sessions[0].release(KEY, AdvisoryMode::Exclusive, Sequence(0)));
                }
                locked.is_err()
            });
            world.until_waiting();
            let second_waited = world.waits(1, KEY, LONG);
            if let Err(error) = &second_waited {
                assert_eq!(error.sqlstate, "40P01");
                second.rollback();
            }
            assert!(waiter.join().unwrap() != second_waited.is_err(), "one of the two fails");
        });
    }
}
