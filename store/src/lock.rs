//! Row locks: who may change a row until the end of which transaction.
//!
//! A lock is an entry in one of many small hash tables, keyed by a 128-bit hash of table and row,
//! so that a held lock costs some tens of bytes whatever the length of the row. (Two rows with the
//! same hash would share a lock: they would wait for each other without need, nothing worse.) An
//! entry without waiters has no queue; the queue is first come, first served, but for a holder that
//! wants its shared lock to be exclusive, who goes to the front.
//!
//! A row lock is released when its holder's commit is applied, which is before it is durable and
//! before snapshots show it. So that the next holder sees it nevertheless, a release leaves behind
//! how far the holder's commit is in the order of commits, and a grant returns that if the two modes
//! conflict (`docs/decisions/0007-snapshots-after-locks.md`). Locks share a fixed number of such
//! marks, by hash: two locks with one mark cost a wait that was not needed, nothing worse.
//!
//! Who waits stands in a graph of waiting transactions. Before a transaction waits it looks there
//! for a way from those it would wait for back to itself; if there is one, it is the victim.
//!
//! # Invariants
//!
//! 1. Locks are given back only at the end of a transaction, all of them; so a transaction that no
//!    longer exists waits for nobody, and old edges to it do no harm.
//! 2. A transaction waits for one lock at a time.
//! 3. Lock order: a shard, then the graph. No other lock is taken under either, but by who writes
//!    rows without locking them ([`LockTable::exclude`]): several shards in ascending order, then
//!    the gate of a region and the log's queue, none of whose holders ever wants a row lock.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use smallvec::SmallVec;

use crate::cell::Sequence;
use crate::descriptor::TableId;
use crate::error::{Error, Result};
use crate::mutation::{LockMode, LockWait};
use crate::options::BlockingSection;

const SHARDS: usize = 64;

/// Release marks of a shard.
const MARKS: usize = 64;

/// A shard gives memory back when it has room for so many times its entries.
const SPARE: usize = 8;

/// How often a waiter looks whether it was cancelled.
const CANCEL_POLL: Duration = Duration::from_millis(50);

/// Names a transaction among the open ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Owner(pub(crate) u64);

/// Names the lock of a row.
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

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The lock is new to the transaction, which must give it back.
    New,
    /// The transaction had it already.
    Held,
    /// Not to be had, and the caller wanted to skip it then.
    Skipped,
}

/// How a request waits.
#[derive(Clone, Copy)]
pub(crate) struct Patience<'a> {
    /// Whether to wait at all.
    pub(crate) wait: LockWait,
    /// For how long; `None` for ever.
    pub(crate) timeout: Option<Duration>,
    /// Ends the wait when set.
    pub(crate) cancelled: &'a AtomicBool,
    /// Told of the wait.
    pub(crate) blocking: &'a dyn BlockingSection,
    /// Called before a wait begins, to count it.
    pub(crate) on_wait: &'a (dyn Fn() + Sync),
}

/// All row locks of a store.
pub(crate) struct LockTable {
    shards: Box<[Mutex<Shard>]>,
    waits: Mutex<HashMap<Owner, SmallVec<[Owner; 2]>>>,
}

/// The locks whose keys are in one part of the space of hashes.
struct Shard {
    entries: HashMap<LockKey, Entry, BuildHasherDefault<KeyHasher>>,
    /// For each mode: up to which commit a holder in that mode has seen or made when it released
    /// its lock, the highest of all locks that share a mark.
    marks: [[Sequence; MARKS]; LockMode::COUNT],
}

impl Default for Shard {
    fn default() -> Shard {
        Shard { entries: HashMap::default(), marks: [[Sequence(0); MARKS]; LockMode::COUNT] }
    }
}

impl Shard {
    /// Returns how far those were who held a lock before and would have kept this mode out.
    fn mark(&self, key: LockKey, mode: LockMode) -> Sequence {
        let earlier = LockMode::ALL.into_iter().filter(|earlier| mode.conflicts_with(*earlier));
        let marks = earlier.map(|earlier| self.marks[earlier as usize][key.mark()]);
        marks.max().unwrap_or_default()
    }

    fn raise_mark(&mut self, key: LockKey, mode: LockMode, to: Sequence) {
        let mark = &mut self.marks[mode as usize][key.mark()];
        *mark = to.max(*mark);
    }
}

struct Entry {
    /// The only holder, or the first of several sharers.
    holder: Owner,
    mode: LockMode,
    crowd: Option<Box<Crowd>>,
}

/// Keeps anybody from locking some rows, all of which nobody has locked, until it is dropped.
///
/// For the instant in which a commit is applied that reads nothing: cheaper than an entry for each
/// row, but others wait for it without being able to give up.
pub(crate) struct Exclusion<'a> {
    shards: SmallVec<[MutexGuard<'a, Shard>; 1]>,
    keys: SmallVec<[LockKey; 1]>,
}

impl Exclusion<'_> {
    /// Ends it after a commit of the rows, which whoever locks one of them next has to see.
    pub(crate) fn release(mut self, commit: Sequence) {
        let one = self.shards.len() == 1;
        for key in &self.keys {
            self.shards[if one { 0 } else { key.shard() }].raise_mark(
                *key,
                LockMode::Exclusive,
                commit,
            );
        }
    }
}

/// What an entry has only when several transactions want it.
#[derive(Default)]
struct Crowd {
    /// Sharers beside the holder.
    sharers: SmallVec<[Owner; 4]>,
    queue: VecDeque<Waiter>,
}

struct Waiter {
    owner: Owner,
    mode: LockMode,
    ticket: Arc<Ticket>,
}

#[derive(Default)]
struct Ticket {
    granted: Mutex<bool>,
    changed: Condvar,
}

impl Entry {
    fn new(holder: Owner, mode: LockMode) -> Entry {
        Entry { holder, mode, crowd: None }
    }

    fn sharers(&self) -> &[Owner] {
        self.crowd.as_ref().map_or(&[], |crowd| &crowd.sharers)
    }

    fn is_held_by(&self, owner: Owner) -> bool {
        self.holder == owner || self.sharers().contains(&owner)
    }

    fn queue_is_empty(&self) -> bool {
        self.crowd.as_ref().is_none_or(|crowd| crowd.queue.is_empty())
    }

    fn crowd(&mut self) -> &mut Crowd {
        self.crowd.get_or_insert_default()
    }

    /// Takes a holder out; returns whether there is another.
    fn remove_holder(&mut self, owner: Owner) -> bool {
        if self.holder != owner {
            self.crowd().sharers.retain(|sharer| *sharer != owner);
            return true;
        }
        match self.crowd.as_mut().and_then(|crowd| crowd.sharers.pop()) {
            Some(next) => {
                self.holder = next;
                true
            }
            None => false,
        }
    }

    /// Gives the lock to those in the queue who may have it now. `held` says whether anybody has
    /// it. Returns whether anybody has it afterwards.
    fn grant(&mut self, mut held: bool) -> bool {
        while let Some(crowd) = self.crowd.as_mut() {
            let Some(first) = crowd.queue.front() else { break };
            let upgrade = held && self.holder == first.owner && crowd.sharers.is_empty();
            let shared = self.mode == LockMode::Shared && first.mode == LockMode::Shared;
            if held && !upgrade && !shared {
                break;
            }
            let waiter = crowd.queue.pop_front().expect("looked at above");
            if held && shared {
                if self.holder != waiter.owner && !crowd.sharers.contains(&waiter.owner) {
                    crowd.sharers.push(waiter.owner);
                }
            } else {
                self.holder = waiter.owner;
                self.mode = waiter.mode;
            }
            held = true;
            *waiter.ticket.granted.lock() = true;
            waiter.ticket.changed.notify_one();
        }
        if self.crowd.as_ref().is_some_and(|c| c.queue.is_empty() && c.sharers.is_empty()) {
            self.crowd = None;
        }
        held
    }

    /// Returns those that a new waiter at `place` of the queue has to wait for.
    fn blockers(&self, owner: Owner, mode: LockMode, place: usize) -> SmallVec<[Owner; 2]> {
        let conflicts = |other: LockMode| mode.conflicts_with(other);
        let mut blockers = SmallVec::new();
        if conflicts(self.mode) {
            blockers.push(self.holder);
            blockers.extend_from_slice(self.sharers());
        }
        if let Some(crowd) = &self.crowd {
            let ahead = crowd.queue.iter().take(place).filter(|waiter| conflicts(waiter.mode));
            blockers.extend(ahead.map(|waiter| waiter.owner));
        }
        blockers.retain(|blocker| *blocker != owner);
        blockers
    }
}

impl LockTable {
    /// Returns a table without locks.
    pub(crate) fn new() -> LockTable {
        LockTable {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            waits: Mutex::default(),
        }
    }

    /// Takes a lock, waiting for it as `patience` says. Returns also its release mark: the commits
    /// up to there are those that the last holders may have made or seen.
    ///
    /// # Errors
    ///
    /// [`Error::Deadlock`], [`Error::LockNotAvailable`], [`Error::Cancelled`]. The lock is not held
    /// then.
    pub(crate) fn lock(
        &self,
        owner: Owner,
        (table, row): (TableId, &[u8]),
        mode: LockMode,
        patience: Patience<'_>,
    ) -> Result<(LockKey, Taken, Sequence)> {
        let key = LockKey::new(table, row);
        let mut shard = self.shards[key.shard()].lock();
        let mark = shard.mark(key, mode);
        let entry = match shard.entries.entry(key) {
            std::collections::hash_map::Entry::Vacant(vacant) => {
                vacant.insert(Entry::new(owner, mode));
                return Ok((key, Taken::New, mark));
            }
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
        };
        let holds = entry.is_held_by(owner);
        if holds && (entry.mode == LockMode::Exclusive || mode == LockMode::Shared) {
            return Ok((key, Taken::Held, mark));
        }
        if holds && entry.sharers().is_empty() {
            entry.mode = LockMode::Exclusive;
            return Ok((key, Taken::Held, mark));
        }
        let share = entry.mode == LockMode::Shared && mode == LockMode::Shared;
        if share && entry.queue_is_empty() {
            entry.crowd().sharers.push(owner);
            return Ok((key, Taken::New, mark));
        }
        match patience.wait {
            LockWait::NoWait => return Err(Error::LockNotAvailable { table, timed_out: false }),
            LockWait::Skip => return Ok((key, Taken::Skipped, Sequence(0))),
            LockWait::Wait => {}
        }
        let place = if holds { 0 } else { entry.crowd().queue.len() };
        self.begin_wait(owner, entry.blockers(owner, mode, place), table)?;
        let ticket = Arc::new(Ticket::default());
        let waiter = Waiter { owner, mode, ticket: Arc::clone(&ticket) };
        entry.crowd().queue.insert(place, waiter);
        drop(shard);
        (patience.on_wait)();
        let outcome = wait(&ticket, table, &patience);
        self.waits.lock().remove(&owner);
        let taken = if holds { Taken::Held } else { Taken::New };
        match outcome {
            Ok(()) => Ok((key, taken, self.shards[key.shard()].lock().mark(key, mode))),
            Err(error) => {
                self.leave_queue(key, owner, &ticket, holds);
                Err(error)
            }
        }
    }

    /// Keeps rows from being locked. `None` if one of them is locked now.
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
        let shard = self.shards[key.shard()].lock();
        let is_free = !shard.entries.contains_key(&key);
        let keys = SmallVec::from_buf([key]);
        is_free.then(|| Exclusion { shards: SmallVec::from_buf([shard]), keys })
    }

    fn exclude_many<'r>(
        &self,
        table: TableId,
        rows: impl Iterator<Item = &'r [u8]>,
    ) -> Option<Exclusion<'_>> {
        let keys: SmallVec<[LockKey; 1]> = rows.map(|row| LockKey::new(table, row)).collect();
        let shards: SmallVec<[MutexGuard<'_, Shard>; 1]> =
            self.shards.iter().map(|shard| shard.lock()).collect();
        let is_free = keys.iter().all(|key| !shards[key.shard()].entries.contains_key(key));
        is_free.then_some(Exclusion { shards, keys })
    }

    /// Gives locks back and hands them to those who wait, who are to see the commits up to `mark`.
    pub(crate) fn release(&self, owner: Owner, keys: Vec<LockKey>, mark: Sequence) {
        if keys.len() < SHARDS {
            for key in keys {
                release_one(&mut self.shards[key.shard()].lock(), owner, key, mark);
            }
            return;
        }
        // Of many, those of one shard after the other: its entries stay in the processor's cache.
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
            keys.iter().for_each(|key| release_one(&mut shard, owner, *key, mark));
            // What a large transaction has made it grow to is not kept.
            let room = shard.entries.len().max(SHARDS);
            if shard.entries.capacity() / SPARE > room {
                shard.entries.shrink_to(room);
            }
        }
    }

    /// Returns how many rows are locked.
    pub(crate) fn held_count(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().entries.len()).sum()
    }

    /// Returns the transactions that wait for a lock, each with those that it waits for: holders,
    /// and who stands before it in the queue.
    pub(crate) fn waiting(&self) -> Vec<(Owner, SmallVec<[Owner; 2]>)> {
        let mut waiting = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            for entry in shard.entries.values() {
                let queue = entry.crowd.iter().flat_map(|crowd| crowd.queue.iter());
                waiting.extend(queue.enumerate().map(|(place, waiter)| {
                    (waiter.owner, entry.blockers(waiter.owner, waiter.mode, place))
                }));
            }
        }
        waiting
    }

    /// Takes back a waiter that gave up; if it was granted the lock meanwhile, gives that back too.
    fn leave_queue(&self, key: LockKey, owner: Owner, ticket: &Arc<Ticket>, held_before: bool) {
        let mut shard = self.shards[key.shard()].lock();
        let std::collections::hash_map::Entry::Occupied(mut occupied) = shard.entries.entry(key)
        else {
            return;
        };
        let entry = occupied.get_mut();
        if *ticket.granted.lock() {
            // A holder that was upgraded meanwhile keeps the stronger lock: giving it back would
            // take the shared one away too.
            if !held_before {
                let held = entry.remove_holder(owner);
                if !entry.grant(held) {
                    occupied.remove();
                }
            }
            return;
        }
        entry.crowd().queue.retain(|waiter| !Arc::ptr_eq(&waiter.ticket, ticket));
        // Those behind may have waited for this one only.
        if !entry.grant(true) {
            occupied.remove();
        }
    }

    /// Notes whom `owner` is about to wait for, unless that would close a circle.
    fn begin_wait(
        &self,
        owner: Owner,
        blockers: SmallVec<[Owner; 2]>,
        table: TableId,
    ) -> Result<()> {
        let mut waits = self.waits.lock();
        if let Some(path) = path_back(&waits, owner, &blockers) {
            return Err(Error::Deadlock { detail: circle(owner, &path, table) });
        }
        waits.insert(owner, blockers);
        Ok(())
    }
}

/// Gives one lock back.
fn release_one(shard: &mut Shard, owner: Owner, key: LockKey, mark: Sequence) {
    if let Some(mode) = shard.entries.get(&key).map(|entry| entry.mode) {
        shard.raise_mark(key, mode, mark);
    }
    let std::collections::hash_map::Entry::Occupied(mut occupied) = shard.entries.entry(key) else {
        return;
    };
    let entry = occupied.get_mut();
    if entry.crowd.is_none() {
        if entry.holder == owner {
            occupied.remove();
        }
        return;
    }
    let held = entry.remove_holder(owner);
    if !entry.grant(held) {
        occupied.remove();
    }
}

/// Returns the transactions on a way from one of `blockers` to `owner`, if there is one.
fn path_back(
    waits: &HashMap<Owner, SmallVec<[Owner; 2]>>,
    owner: Owner,
    blockers: &[Owner],
) -> Option<Vec<Owner>> {
    let mut came_from: HashMap<Owner, Option<Owner>> =
        blockers.iter().map(|blocker| (*blocker, None)).collect();
    let mut open: Vec<Owner> = blockers.to_vec();
    while let Some(at) = open.pop() {
        for next in waits.get(&at).into_iter().flatten() {
            if *next == owner {
                let mut path = vec![at];
                while let Some(Some(before)) = came_from.get(path.last().expect("not empty")) {
                    path.push(*before);
                }
                path.reverse();
                return Some(path);
            }
            if !came_from.contains_key(next) {
                came_from.insert(*next, Some(at));
                open.push(*next);
            }
        }
    }
    None
}

/// Says who waits for whom, in the manner of PostgreSQL's detail of a deadlock.
fn circle(owner: Owner, path: &[Owner], table: TableId) -> String {
    let mut lines = Vec::new();
    let mut waiter = owner;
    for blocker in path.iter().chain(std::iter::once(&owner)) {
        let what = if waiter == owner {
            format!("a row of table {}", table.0)
        } else {
            "a row".to_owned()
        };
        lines.push(format!(
            "Transaction {} waits for the lock of {what}; blocked by transaction {}.",
            waiter.0, blocker.0
        ));
        waiter = *blocker;
    }
    lines.join("\n")
}

fn wait(ticket: &Ticket, table: TableId, patience: &Patience<'_>) -> Result<()> {
    let deadline = patience.timeout.map(|timeout| Instant::now() + timeout);
    let mut outcome = Ok(());
    patience.blocking.run(&mut || {
        let mut granted = ticket.granted.lock();
        outcome = loop {
            if *granted {
                break Ok(());
            }
            if patience.cancelled.load(Ordering::Relaxed) {
                break Err(Error::Cancelled);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                break Err(Error::LockNotAvailable { table, timed_out: true });
            }
            let nap = left.map_or(CANCEL_POLL, |left| left.min(CANCEL_POLL));
            ticket.changed.wait_for(&mut granted, nap);
        };
    });
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::PlainWait;
    use std::sync::mpsc;

    const TABLE: TableId = TableId(1);
    static NEVER: AtomicBool = AtomicBool::new(false);

    fn patience(wait: LockWait) -> Patience<'static> {
        Patience { wait, timeout: None, cancelled: &NEVER, blocking: &PlainWait, on_wait: &|| {} }
    }

    fn exclusive(locks: &LockTable, owner: u64, row: &[u8], wait: LockWait) -> Result<Taken> {
        locks
            .lock(Owner(owner), (TABLE, row), LockMode::Exclusive, patience(wait))
            .map(|(_, taken, _)| taken)
    }

    fn shared(locks: &LockTable, owner: u64, row: &[u8], wait: LockWait) -> Result<Taken> {
        locks
            .lock(Owner(owner), (TABLE, row), LockMode::Shared, patience(wait))
            .map(|(_, taken, _)| taken)
    }

    fn release(locks: &LockTable, owner: u64, row: &[u8]) {
        locks.release(Owner(owner), vec![LockKey::new(TABLE, row)], Sequence(0));
    }

    /// Returns when `count` transactions wait.
    fn until_waiting(locks: &LockTable, count: usize) {
        while locks.waits.lock().len() != count {
            std::thread::yield_now();
        }
    }

    #[test]
    fn exclusive_keeps_others_out_until_released() {
        let locks = LockTable::new();
        assert_eq!(exclusive(&locks, 1, b"r", LockWait::Wait).unwrap(), Taken::New);
        assert_eq!(exclusive(&locks, 1, b"r", LockWait::Wait).unwrap(), Taken::Held);
        assert_eq!(exclusive(&locks, 2, b"r", LockWait::Skip).unwrap(), Taken::Skipped);
        let refused = shared(&locks, 2, b"r", LockWait::NoWait);
        assert!(matches!(refused, Err(Error::LockNotAvailable { timed_out: false, .. })));
        release(&locks, 1, b"r");
        assert_eq!(locks.held_count(), 0);
        assert_eq!(exclusive(&locks, 2, b"r", LockWait::NoWait).unwrap(), Taken::New);
    }

    #[test]
    fn many_locks_go_at_once_and_leave_no_memory_behind() {
        let locks = LockTable::new();
        let row = |number: u32| number.to_be_bytes();
        let keys: Vec<LockKey> = (0..100_000)
            .map(|number| {
                exclusive(&locks, 1, &row(number), LockWait::NoWait).unwrap();
                LockKey::new(TABLE, &row(number))
            })
            .collect();
        // One of another transaction's, and one that it waits for.
        exclusive(&locks, 2, b"other", LockWait::NoWait).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| exclusive(&locks, 2, &row(77), LockWait::Wait));
            until_waiting(&locks, 1);
            locks.release(Owner(1), keys, Sequence(0));
            assert_eq!(waiter.join().unwrap().unwrap(), Taken::New);
        });
        assert_eq!(locks.held_count(), 2);
        let room: usize = locks.shards.iter().map(|shard| shard.lock().entries.capacity()).sum();
        assert!(room < 4 * SHARDS * SHARDS, "{room}");
    }

    #[test]
    fn rows_that_nobody_has_locked_can_be_excluded() {
        let locks = LockTable::new();
        exclusive(&locks, 1, b"held", LockWait::Wait).unwrap();
        let exclude = |rows: &[&'static [u8]]| locks.exclude(TABLE, rows.iter().copied()).is_some();
        assert!(exclude(&[b"free"]));
        assert!(!exclude(&[b"held"]));
        assert!(exclude(&[b"free", b"too"]));
        assert!(!exclude(&[b"free", b"held"]));
        release(&locks, 1, b"held");
        let exclusion = locks.exclude(TABLE, [&b"held"[..]].into_iter());
        std::thread::scope(|scope| {
            let locker = scope.spawn(|| exclusive(&locks, 2, b"held", LockWait::Wait));
            drop(exclusion);
            assert_eq!(locker.join().unwrap().unwrap(), Taken::New);
        });
    }

    #[test]
    fn a_grant_returns_how_far_the_last_holders_were() {
        let locks = LockTable::new();
        let mark = |owner: u64, mode: LockMode| {
            locks.lock(Owner(owner), (TABLE, b"r"), mode, patience(LockWait::Wait)).unwrap().2
        };
        let release = |owner: u64, commit: u64| {
            locks.release(Owner(owner), vec![LockKey::new(TABLE, b"r")], Sequence(commit));
        };
        assert_eq!(mark(1, LockMode::Exclusive), Sequence(0));
        release(1, 5);
        assert_eq!(mark(1, LockMode::Shared), Sequence(5));
        release(1, 7);
        // Who shared it has kept out nobody who wants to share it.
        assert_eq!(mark(2, LockMode::Shared), Sequence(5));
        assert_eq!(mark(3, LockMode::Shared), Sequence(5));
        // One that has seen less takes nothing away.
        release(3, 0);
        assert_eq!(mark(2, LockMode::Exclusive), Sequence(7));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| mark(4, LockMode::Exclusive));
            until_waiting(&locks, 1);
            release(2, 9);
            assert_eq!(waiter.join().unwrap(), Sequence(9));
        });
        release(4, 0);
        // Rows that were written without locks count, too.
        for rows in [&[&b"r"[..]][..], &[b"r", b"s"]] {
            let held = locks.exclude(TABLE, rows.iter().copied()).unwrap();
            held.release(Sequence(9 + rows.len() as u64));
        }
        assert_eq!(mark(5, LockMode::Exclusive), Sequence(11));
    }

    #[test]
    fn sharers_share_and_one_alone_may_upgrade() {
        let locks = LockTable::new();
        shared(&locks, 1, b"r", LockWait::NoWait).unwrap();
        shared(&locks, 2, b"r", LockWait::NoWait).unwrap();
        assert!(exclusive(&locks, 1, b"r", LockWait::NoWait).is_err());
        release(&locks, 2, b"r");
        assert_eq!(exclusive(&locks, 1, b"r", LockWait::NoWait).unwrap(), Taken::Held);
        assert!(shared(&locks, 2, b"r", LockWait::NoWait).is_err());
        release(&locks, 1, b"r");
        assert_eq!(locks.held_count(), 0);
    }

    #[test]
    fn the_queue_is_first_come_first_served() {
        let locks = LockTable::new();
        exclusive(&locks, 1, b"r", LockWait::Wait).unwrap();
        let (order, arrivals) = mpsc::channel();
        std::thread::scope(|scope| {
            for owner in 2..6 {
                let (locks, order) = (&locks, order.clone());
                scope.spawn(move || {
                    exclusive(locks, owner, b"r", LockWait::Wait).unwrap();
                    order.send(owner).unwrap();
                    release(locks, owner, b"r");
                });
                until_waiting(locks, owner as usize - 1);
            }
            release(&locks, 1, b"r");
        });
        assert_eq!(arrivals.try_iter().collect::<Vec<_>>(), [2, 3, 4, 5]);
        assert_eq!(locks.held_count(), 0);
    }

    #[test]
    fn the_one_who_closes_the_circle_is_the_victim() {
        let locks = LockTable::new();
        exclusive(&locks, 1, b"a", LockWait::Wait).unwrap();
        exclusive(&locks, 2, b"b", LockWait::Wait).unwrap();
        exclusive(&locks, 3, b"c", LockWait::Wait).unwrap();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| exclusive(&locks, 1, b"b", LockWait::Wait));
            until_waiting(&locks, 1);
            let second = scope.spawn(|| exclusive(&locks, 2, b"c", LockWait::Wait));
            until_waiting(&locks, 2);
            let Err(Error::Deadlock { detail }) = exclusive(&locks, 3, b"a", LockWait::Wait) else {
                panic!("no deadlock seen");
            };
            assert_eq!(
                detail,
                "Transaction 3 waits for the lock of a row of table 1; blocked by transaction 1.\n\
                 Transaction 1 waits for the lock of a row; blocked by transaction 2.\n\
                 Transaction 2 waits for the lock of a row; blocked by transaction 3."
            );
            release(&locks, 3, b"c");
            assert_eq!(second.join().unwrap().unwrap(), Taken::New);
            release(&locks, 2, b"b");
            release(&locks, 2, b"c");
            assert_eq!(first.join().unwrap().unwrap(), Taken::New);
        });
    }

    #[test]
    fn two_upgrades_are_a_deadlock() {
        let locks = LockTable::new();
        shared(&locks, 1, b"r", LockWait::Wait).unwrap();
        shared(&locks, 2, b"r", LockWait::Wait).unwrap();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| exclusive(&locks, 1, b"r", LockWait::Wait));
            until_waiting(&locks, 1);
            let second = exclusive(&locks, 2, b"r", LockWait::Wait);
            assert!(matches!(second, Err(Error::Deadlock { .. })));
            release(&locks, 2, b"r");
            assert_eq!(first.join().unwrap().unwrap(), Taken::Held);
        });
        release(&locks, 1, b"r");
        assert_eq!(locks.held_count(), 0);
    }

    #[test]
    fn waits_end_by_time_and_by_cancel() {
        let locks = LockTable::new();
        exclusive(&locks, 1, b"r", LockWait::Wait).unwrap();
        let hurried =
            Patience { timeout: Some(Duration::from_millis(5)), ..patience(LockWait::Wait) };
        let late = locks.lock(Owner(2), (TABLE, b"r"), LockMode::Exclusive, hurried);
        assert!(matches!(late, Err(Error::LockNotAvailable { timed_out: true, .. })));
        let cancelled = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let stopped = Patience { cancelled: &cancelled, ..patience(LockWait::Wait) };
            let locks = &locks;
            let waiter =
                scope.spawn(move || locks.lock(Owner(2), (TABLE, b"r"), LockMode::Shared, stopped));
            until_waiting(locks, 1);
            let behind = scope.spawn(|| shared(locks, 3, b"r", LockWait::Wait));
            until_waiting(locks, 2);
            cancelled.store(true, Ordering::Relaxed);
            assert!(matches!(waiter.join().unwrap(), Err(Error::Cancelled)));
            release(locks, 1, b"r");
            assert_eq!(behind.join().unwrap().unwrap(), Taken::New);
        });
        release(&locks, 3, b"r");
        assert_eq!(locks.held_count(), 0);
    }

    #[test]
    fn a_million_locks_are_little_memory() {
        assert!(size_of::<(LockKey, Entry)>() <= 48);
    }
}
