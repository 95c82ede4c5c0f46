//! Advisory locks: on numbers whose meaning clients agree on.
//!
//! A session holds a lock as often as it took it, until it gives it back as often or ends; a
//! transaction until it ends. Who waits looks every few milliseconds whether it was cancelled, and
//! when it begins to wait whether those that it waits for wait for it.
//!
//! Who is granted a lock is to see what those have committed who kept it out before: a release
//! leaves behind how far they are in the order of commits, and a grant returns that. As with row
//! locks, locks share a fixed number of such marks by hash.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ahash::AHashMap;
use parking_lot::{Condvar, Mutex};
use store::Sequence;

use crate::error::{Error, Result, sqlstate};

/// How often a waiter looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(20);

/// Release marks for each mode.
const MARKS: usize = 256;

/// What is locked: one number of 64 bits or two of 32, which do not meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// `pg_advisory_lock(bigint)`
    One(i64),
    /// `pg_advisory_lock(integer, integer)`
    Two(i32, i32),
}

/// Who else may have the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nobody.
    Exclusive,
    /// Those who share it, too.
    Shared,
}

/// How long a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Until it is given back.
    Session,
    /// Until the transaction ends.
    Transaction,
}

/// One session's share of a lock.
#[derive(Debug)]
struct Holder {
    session: i32,
    mode: Mode,
    /// How often the session took it.
    by_session: u32,
    /// How often its transaction took it.
    by_transaction: u32,
}

#[derive(Debug)]
struct State {
    held: AHashMap<Key, Vec<Holder>>,
    waiting: AHashMap<i32, (Key, Mode)>,
    /// For each mode: up to which commit those were who released a lock that they had in it.
    marks: [[Sequence; MARKS]; 2],
}

impl Default for State {
    fn default() -> State {
        let marks = [[Sequence(0); MARKS]; 2];
        State { held: AHashMap::new(), waiting: AHashMap::new(), marks }
    }
}

impl Key {
    fn mark(self) -> usize {
        let number = match self {
            Key::One(number) => number as u64,
            Key::Two(first, second) => !((first as u64) << 32 ^ second as u64),
        };
        (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % MARKS
    }
}

/// The locks of all sessions.
#[derive(Debug, Default)]
pub struct AdvisoryLocks {
    state: Mutex<State>,
    released: Condvar,
}

/// A lock as `pg_locks` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShownLock {
    /// What is locked.
    pub key: Key,
    /// The session that has it or waits for it.
    pub session: i32,
    /// In which mode.
    pub mode: Mode,
    /// Whether the session has it.
    pub granted: bool,
}

impl State {
    /// Returns the sessions that keep another from a lock.
    fn in_the_way(&self, session: i32, key: Key, mode: Mode) -> impl Iterator<Item = i32> + '_ {
        let holders = self.held.get(&key).into_iter().flatten();
        let conflicts = move |holder: &&Holder| {
            holder.session != session && (mode == Mode::Exclusive || holder.mode == Mode::Exclusive)
        };
        holders.filter(conflicts).map(|holder| holder.session)
    }

    /// Returns up to which commit the new holder is to see.
    fn grant(&mut self, session: i32, key: Key, mode: Mode, level: Level) -> Sequence {
        let holders = self.held.entry(key).or_default();
        let same = |holder: &Holder| holder.session == session && holder.mode == mode;
        let at = holders.iter().position(same).unwrap_or_else(|| {
            holders.push(Holder { session, mode, by_session: 0, by_transaction: 0 });
            holders.len() - 1
        });
        match level {
            Level::Session => holders[at].by_session += 1,
            Level::Transaction => holders[at].by_transaction += 1,
        }
        let of = |mode: Mode| self.marks[mode as usize][key.mark()];
        match mode {
            Mode::Exclusive => of(Mode::Exclusive).max(of(Mode::Shared)),
            Mode::Shared => of(Mode::Exclusive),
        }
    }

    fn raise_mark(&mut self, key: Key, mode: Mode, to: Sequence) {
        let mark = &mut self.marks[mode as usize][key.mark()];
        *mark = to.max(*mark);
    }

    /// Returns whether somebody whom a session waits for waits for that session.
    fn is_deadlocked(&self, session: i32) -> bool {
        let mut seen = vec![session];
        let mut next = 0;
        while let Some(&waiter) = seen.get(next) {
            next += 1;
            let Some(&(key, mode)) = self.waiting.get(&waiter) else { continue };
            for other in self.in_the_way(waiter, key, mode) {
                if other == session {
                    return true;
                }
                if !seen.contains(&other) {
                    seen.push(other);
                }
            }
        }
        false
    }
}

impl AdvisoryLocks {
    fn try_acquire(&self, session: i32, key: Key, mode: Mode, level: Level) -> Option<Sequence> {
        let mut state = self.state.lock();
        let free = state.in_the_way(session, key, mode).next().is_none();
        free.then(|| state.grant(session, key, mode, level))
    }

    /// Waits for a lock.
    fn acquire(
        &self,
        session: i32,
        (key, mode, level): (Key, Mode, Level),
        cancelled: &AtomicBool,
        timeout: Option<Duration>,
    ) -> Result<Sequence> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut state = self.state.lock();
        state.waiting.insert(session, (key, mode));
        let result = loop {
            if state.in_the_way(session, key, mode).next().is_none() {
                break Ok(state.grant(session, key, mode, level));
            }
            if state.is_deadlocked(session) {
                break Err(Error::new(sqlstate::DEADLOCK_DETECTED, "deadlock detected"));
            }
            if cancelled.load(Ordering::Relaxed) {
                let message = "canceling statement due to user request";
                break Err(Error::new(sqlstate::QUERY_CANCELED, message));
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                let message = "canceling statement due to lock timeout";
                break Err(Error::new(sqlstate::LOCK_NOT_AVAILABLE, message));
            }
            self.released.wait_for(&mut state, LOOK);
        };
        state.waiting.remove(&session);
        result
    }

    fn release(&self, session: i32, key: Key, mode: Mode, seen: Sequence) -> bool {
        self.change(|state| {
            state.raise_mark(key, mode, seen);
            let Some(holders) = state.held.get_mut(&key) else { return false };
            let own = |holder: &&mut Holder| {
                holder.session == session && holder.mode == mode && holder.by_session > 0
            };
            let found = holders.iter_mut().find(own);
            found.map(|holder| holder.by_session -= 1).is_some()
        })
    }

    /// Changes holders, and wakes those who wait for what nobody holds any more.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let result = change(&mut state);
        state.held.retain(|_, holders| {
            holders.retain(|holder| holder.by_session + holder.by_transaction > 0);
            !holders.is_empty()
        });
        self.released.notify_all();
        result
    }

    fn release_all(&self, session: i32, level: Level, seen: Sequence) {
        self.change(|state| {
            let mut released = Vec::new();
            for (key, holders) in &mut state.held {
                for holder in holders.iter_mut().filter(|holder| holder.session == session) {
                    match level {
                        Level::Session => holder.by_session = 0,
                        Level::Transaction => holder.by_transaction = 0,
                    }
                    released.push((*key, holder.mode));
                }
            }
            released.into_iter().for_each(|(key, mode)| state.raise_mark(key, mode, seen));
        });
    }

    /// Returns whether a session waits for a lock.
    pub fn is_waiting(&self, session: i32) -> bool {
        self.state.lock().waiting.contains_key(&session)
    }

    /// Returns the sessions that a session waits for.
    pub fn blockers(&self, session: i32) -> Vec<i32> {
        let state = self.state.lock();
        let waiting = state.waiting.get(&session);
        waiting
            .map_or_else(Vec::new, |(key, mode)| state.in_the_way(session, *key, *mode).collect())
    }

    /// Returns who has locks and who waits, by key and session.
    pub fn shown(&self) -> Vec<ShownLock> {
        let state = self.state.lock();
        let held = state.held.iter().flat_map(|(key, holders)| {
            let lock = |holder: &Holder| ShownLock {
                key: *key,
                session: holder.session,
                mode: holder.mode,
                granted: true,
            };
            holders.iter().map(lock)
        });
        let waiting = state.waiting.iter().map(|(session, (key, mode))| ShownLock {
            key: *key,
            session: *session,
            mode: *mode,
            granted: false,
        });
        let mut shown: Vec<ShownLock> = held.chain(waiting).collect();
        shown.sort_by_key(|lock| (lock.key, lock.session, lock.granted));
        shown
    }
}

/// The locks of one session. What it still has is given back when it is dropped.
#[derive(Debug)]
pub struct SessionLocks {
    locks: Arc<AdvisoryLocks>,
    session: i32,
    /// Whether it ever took one: others need not look for what to give back.
    used: AtomicBool,
}

impl SessionLocks {
    /// Returns those of a session that has none yet.
    pub fn new(locks: Arc<AdvisoryLocks>, session: i32) -> SessionLocks {
        SessionLocks { locks, session, used: AtomicBool::new(false) }
    }

    /// Takes a lock if nobody is in the way; returns up to which commit the session's next snapshot
    /// is to show then.
    pub fn try_acquire(&self, key: Key, mode: Mode, level: Level) -> Option<Sequence> {
        self.used.store(true, Ordering::Relaxed);
        self.locks.try_acquire(self.session, key, mode, level)
    }

    /// Takes a lock, waiting for it if need be; returns up to which commit the session's next
    /// snapshot is to show.
    ///
    /// # Errors
    ///
    /// 40P01 if those who have it wait for this session, 55P03 when the time is up, 57014.
    pub fn acquire(
        &self,
        lock: (Key, Mode, Level),
        cancelled: &AtomicBool,
        timeout: Option<Duration>,
    ) -> Result<Sequence> {
        self.used.store(true, Ordering::Relaxed);
        self.locks.acquire(self.session, lock, cancelled, timeout)
    }

    /// Gives a lock of the session back, which has seen the commits up to `seen`; returns whether it
    /// had it.
    pub fn release(&self, key: Key, mode: Mode, seen: Sequence) -> bool {
        self.locks.release(self.session, key, mode, seen)
    }

    /// Gives all locks of the session, or of its transaction, back. It has seen or made the commits
    /// up to `seen`.
    pub fn release_all(&self, level: Level, seen: Sequence) {
        if self.used.load(Ordering::Relaxed) {
            self.locks.release_all(self.session, level, seen);
        }
    }
}

impl Drop for SessionLocks {
    fn drop(&mut self) {
        self.release_all(Level::Transaction, Sequence(0));
        self.release_all(Level::Session, Sequence(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions() -> (Arc<AdvisoryLocks>, SessionLocks, SessionLocks) {
        let locks = Arc::<AdvisoryLocks>::default();
        let session = |number| SessionLocks::new(Arc::clone(&locks), number);
        let (one, two) = (session(1), session(2));
        (locks, one, two)
    }

    const KEY: Key = Key::One(7);

    #[test]
    fn a_lock_is_given_back_as_often_as_it_was_taken() {
        let (_, one, two) = sessions();
        assert!(one.try_acquire(KEY, Mode::Exclusive, Level::Session).is_some());
        assert!(one.try_acquire(KEY, Mode::Exclusive, Level::Session).is_some());
        assert!(two.try_acquire(KEY, Mode::Shared, Level::Session).is_none());
        assert!(one.release(KEY, Mode::Exclusive, Sequence(0)));
        assert!(two.try_acquire(KEY, Mode::Exclusive, Level::Session).is_none());
        assert!(
            one.release(KEY, Mode::Exclusive, Sequence(0))
                && !one.release(KEY, Mode::Exclusive, Sequence(0))
        );
        assert!(two.try_acquire(KEY, Mode::Exclusive, Level::Session).is_some());
        assert!(one.try_acquire(Key::Two(0, 7), Mode::Exclusive, Level::Session).is_some());
    }

    #[test]
    fn shared_locks_meet_and_transactions_end() {
        let (locks, one, two) = sessions();
        assert!(one.try_acquire(KEY, Mode::Shared, Level::Transaction).is_some());
        assert!(two.try_acquire(KEY, Mode::Shared, Level::Session).is_some());
        assert!(two.try_acquire(KEY, Mode::Exclusive, Level::Session).is_none());
        assert_eq!(locks.shown().len(), 2);
        // It is not the session's to give back.
        assert!(!one.release(KEY, Mode::Shared, Sequence(0)));
        one.release_all(Level::Transaction, Sequence(0));
        assert!(two.try_acquire(KEY, Mode::Exclusive, Level::Session).is_some());
        drop(two);
        assert!(locks.shown().is_empty());
    }

    #[test]
    fn a_grant_returns_how_far_those_before_were() {
        let (_, one, two) = sessions();
        let take =
            |session: &SessionLocks, mode| session.try_acquire(KEY, mode, Level::Session).unwrap();
        assert_eq!(take(&one, Mode::Shared), Sequence(0));
        assert!(one.release(KEY, Mode::Shared, Sequence(5)));
        assert_eq!(take(&two, Mode::Shared), Sequence(0));
        assert_eq!(take(&two, Mode::Exclusive), Sequence(5));
        two.release_all(Level::Session, Sequence(8));
        assert_eq!(take(&one, Mode::Shared), Sequence(8));
    }

    #[test]
    fn who_waits_gets_it_is_cancelled_or_runs_out_of_time() {
        let (_, one, two) = sessions();
        let lock = (KEY, Mode::Exclusive, Level::Session);
        let cancelled = AtomicBool::new(false);
        one.acquire(lock, &cancelled, None).unwrap();
        let late = two.acquire(lock, &cancelled, Some(Duration::from_millis(1))).unwrap_err();
        assert_eq!(late.sqlstate, "55P03");
        let stopped = two.acquire(lock, &AtomicBool::new(true), None).unwrap_err();
        assert_eq!(stopped.sqlstate, "57014");
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| two.acquire(lock, &cancelled, None));
            assert!(one.release(KEY, Mode::Exclusive, Sequence(0)));
            waiter.join().unwrap().unwrap();
        });
        assert!(one.try_acquire(KEY, Mode::Shared, Level::Session).is_none());
    }

    #[test]
    fn a_circle_is_noticed() {
        let (locks, one, two) = sessions();
        let never = AtomicBool::new(false);
        let lock = |number| (Key::One(number), Mode::Exclusive, Level::Session);
        one.acquire(lock(1), &never, None).unwrap();
        two.acquire(lock(2), &never, None).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| one.acquire(lock(2), &never, None));
            while !locks.shown().iter().any(|lock| !lock.granted) {
                std::thread::yield_now();
            }
            let circle = two.acquire(lock(1), &never, None).unwrap_err();
            assert_eq!(circle.sqlstate, "40P01");
            assert!(two.release(Key::One(2), Mode::Exclusive, Sequence(0)));
            waiter.join().unwrap().unwrap();
        });
    }
}
