//! Snapshots: how far commits are applied, and which snapshots are open.
//!
//! Commits get their sequences in order and are applied in any order. [`AppliedMark`] is the
//! highest sequence such that it and all before it are applied; new snapshots are taken at the
//! lower of it and the log's durable mark. [`Snapshots`] knows the open ones, so that flushes and
//! compactions keep what they can still see.
//!
//! # Invariants
//!
//! 1. [`Snapshots::oldest`] is never above a snapshot that is open or will be opened: a snapshot is
//!    read and registered under one shard lock, and `oldest` looks at the mark before at the
//!    shards.
//! 2. A snapshot that `oldest` passed over because of its age or number is closed for good, and
//!    that is known before anything is forgotten. Readers ask [`Snapshot::check`] after they have
//!    read, so they return what was kept for them or an error, nothing else.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::cell::Sequence;
use crate::error::{Error, Result};
use crate::options::BlockingSection;

/// How far commits are applied without a gap.
pub(crate) struct AppliedMark {
    mark: AtomicU64,
    /// Applied, but not the next after the mark.
    ahead: Mutex<BinaryHeap<Reverse<u64>>>,
    advanced: Condvar,
    waiting: AtomicUsize,
}

impl AppliedMark {
    /// Returns a mark at `start`.
    pub(crate) fn new(start: Sequence) -> AppliedMark {
        AppliedMark {
            mark: AtomicU64::new(start.0),
            ahead: Mutex::default(),
            advanced: Condvar::new(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Returns the mark.
    pub(crate) fn current(&self) -> Sequence {
        Sequence(self.mark.load(Ordering::SeqCst))
    }

    /// Notes that a commit is applied.
    pub(crate) fn applied(&self, sequence: Sequence) {
        let mut ahead = self.ahead.lock();
        let mut mark = self.mark.load(Ordering::Relaxed);
        if sequence.0 != mark + 1 {
            ahead.push(Reverse(sequence.0));
            return;
        }
        mark += 1;
        while ahead.peek() == Some(&Reverse(mark + 1)) {
            ahead.pop();
            mark += 1;
        }
        self.mark.store(mark, Ordering::SeqCst);
        drop(ahead);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.advanced.notify_all();
        }
    }

    /// Returns when the mark has reached `sequence`. Waits only for commits that other threads are
    /// applying right now.
    pub(crate) fn wait_for(&self, sequence: Sequence, blocking: &dyn BlockingSection) {
        if self.current() >= sequence {
            return;
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        blocking.run(&mut || {
            let mut ahead = self.ahead.lock();
            while self.current() < sequence {
                self.advanced.wait(&mut ahead);
            }
        });
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

const SHARDS: usize = 16;

/// What a snapshot is open for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotPurpose {
    /// A statement of a transaction at READ COMMITTED, or a scan that has outlived it.
    Statement,
    /// A transaction at REPEATABLE READ.
    Transaction,
    /// A read from a region replica.
    Replica,
}

/// Who opens a snapshot, and when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Holder {
    pub(crate) purpose: SnapshotPurpose,
    /// The number of the transaction; 0 for none.
    pub(crate) transaction: u64,
    /// Microseconds since 1970.
    pub(crate) opened_micros: i64,
}

/// An open snapshot, for system views.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotStatus {
    /// It sees all commits up to here; versions that it can see are kept.
    pub sequence: Sequence,
    /// What it is open for.
    pub purpose: SnapshotPurpose,
    /// The number of its transaction; 0 for a read without one.
    pub transaction: u64,
    /// When it was opened: microseconds since 1970.
    pub opened_micros: i64,
    /// Whether it was too old, or one too many: reads with it fail.
    pub is_closed: bool,
}

/// How old and how many open snapshots may be.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SnapshotLimits {
    pub(crate) age_max: Option<Duration>,
    pub(crate) count_max: Option<usize>,
}

/// The open snapshots.
pub(crate) struct Snapshots {
    limits: SnapshotLimits,
    /// Snapshots that were opened before are closed: nothing is kept for them. Never goes back.
    closed_before_micros: AtomicI64,
    shards: [Shard; SHARDS],
}

/// On cache lines of its own, so that threads do not meet.
#[derive(Default)]
#[repr(align(128))]
struct Shard(Mutex<Slots>);

#[derive(Default)]
struct Slots {
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    sequence: Sequence,
    holder: Holder,
}

/// An open snapshot; closed when dropped.
pub(crate) struct Snapshot {
    registry: Arc<Snapshots>,
    shard: u32,
    slot: u32,
    sequence: Sequence,
    opened_micros: i64,
}

impl Snapshots {
    /// Returns the registry of a store without open snapshots.
    pub(crate) fn new(limits: SnapshotLimits) -> Snapshots {
        Snapshots {
            limits,
            closed_before_micros: AtomicI64::new(i64::MIN),
            shards: Default::default(),
        }
    }

    /// Opens a snapshot at what `read` returns, which must never go back.
    pub(crate) fn open(
        self: &Arc<Snapshots>,
        holder: Holder,
        read: impl FnOnce() -> Sequence,
    ) -> Snapshot {
        let shard = shard_of_thread();
        let mut slots = self.shards[shard].0.lock();
        let sequence = read();
        let entry = Some(Entry { sequence, holder });
        let slot = match slots.free.pop() {
            Some(slot) => {
                slots.entries[slot as usize] = entry;
                slot
            }
            None => {
                slots.entries.push(entry);
                slots.entries.len() as u32 - 1
            }
        };
        drop(slots);
        let (registry, shard) = (Arc::clone(self), shard as u32);
        Snapshot { registry, shard, slot, sequence, opened_micros: holder.opened_micros }
    }

    /// Closes snapshots that are too old or too many; returns the oldest of the others, or `mark`,
    /// which the caller has read before, if that is older.
    pub(crate) fn oldest(&self, mark: Sequence, now_micros: i64) -> Sequence {
        self.enforce_limits(now_micros);
        let closed_before = self.closed_before_micros.load(Ordering::SeqCst);
        let mut oldest = mark;
        self.visit(|entry| {
            if entry.holder.opened_micros >= closed_before {
                oldest = oldest.min(entry.sequence);
            }
        });
        oldest
    }

    fn enforce_limits(&self, now_micros: i64) {
        let mut close_before = i64::MIN;
        if let Some(age_max) = self.limits.age_max {
            let age_max = i64::try_from(age_max.as_micros()).unwrap_or(i64::MAX);
            close_before = now_micros.saturating_sub(age_max);
        }
        if let Some(count_max) = self.limits.count_max {
            let mut opened = Vec::new();
            self.visit(|entry| opened.push(entry.holder.opened_micros));
            opened.sort_unstable();
            if let Some(last) = opened.len().checked_sub(count_max + 1) {
                close_before = close_before.max(opened[last].saturating_add(1));
            }
        }
        self.closed_before_micros.fetch_max(close_before, Ordering::SeqCst);
    }

    fn visit(&self, mut visit: impl FnMut(&Entry)) {
        for shard in &self.shards {
            shard.0.lock().entries.iter().flatten().for_each(&mut visit);
        }
    }

    /// Returns the open snapshots, oldest first, those that were closed on their holders included.
    pub(crate) fn status(&self) -> Vec<SnapshotStatus> {
        let closed_before = self.closed_before_micros.load(Ordering::SeqCst);
        let mut found = Vec::new();
        self.visit(|entry| {
            found.push(SnapshotStatus {
                sequence: entry.sequence,
                purpose: entry.holder.purpose,
                transaction: entry.holder.transaction,
                opened_micros: entry.holder.opened_micros,
                is_closed: entry.holder.opened_micros < closed_before,
            });
        });
        found.sort_by_key(|status| (status.opened_micros, status.sequence));
        found
    }
}

impl Snapshot {
    /// Returns the sequence up to which commits are visible.
    pub(crate) fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// Checks that what was read until now is right: the snapshot was open all the time.
    ///
    /// # Errors
    ///
    /// [`Error::SnapshotTooOld`].
    pub(crate) fn check(&self) -> Result<()> {
        if self.opened_micros < self.registry.closed_before_micros.load(Ordering::Acquire) {
            return Err(Error::SnapshotTooOld);
        }
        Ok(())
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut slots = self.registry.shards[self.shard as usize].0.lock();
        slots.entries[self.slot as usize] = None;
        slots.free.push(self.slot);
    }
}

fn shard_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static SHARD: Cell<usize> = const { Cell::new(usize::MAX) });
    SHARD.with(|shard| {
        if shard.get() == usize::MAX {
            shard.set(NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
        }
        shard.get()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_waits_for_gaps() {
        let mark = AppliedMark::new(Sequence(4));
        mark.applied(Sequence(7));
        mark.applied(Sequence(6));
        assert_eq!(mark.current(), Sequence(4));
        mark.applied(Sequence(5));
        assert_eq!(mark.current(), Sequence(7));
    }

    #[test]
    fn waiting_ends_when_the_gap_closes() {
        let mark = AppliedMark::new(Sequence(0));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| mark.wait_for(Sequence(2), &crate::options::PlainWait));
            mark.applied(Sequence(2));
            mark.applied(Sequence(1));
            waiter.join().unwrap();
        });
        assert_eq!(mark.current(), Sequence(2));
    }

    fn holder(opened_micros: i64) -> Holder {
        Holder { purpose: SnapshotPurpose::Statement, transaction: 7, opened_micros }
    }

    fn registry(age_max: Option<u64>, count_max: Option<usize>) -> Arc<Snapshots> {
        let age_max = age_max.map(Duration::from_micros);
        Arc::new(Snapshots::new(SnapshotLimits { age_max, count_max }))
    }

    #[test]
    fn the_oldest_snapshot_counts_each_holder() {
        let snapshots = registry(None, None);
        assert_eq!(snapshots.oldest(Sequence(9), 0), Sequence(9));
        let first = snapshots.open(holder(1), || Sequence(3));
        let second = snapshots.open(holder(1), || Sequence(3));
        drop(first);
        assert_eq!(snapshots.oldest(Sequence(9), i64::MAX), Sequence(3));
        second.check().unwrap();
        drop(second);
        assert_eq!(snapshots.oldest(Sequence(9), 0), Sequence(9));
        assert!(snapshots.status().is_empty());
    }

    #[test]
    fn old_snapshots_are_closed_and_know_it() {
        let snapshots = registry(Some(100), None);
        let old = snapshots.open(holder(1000), || Sequence(3));
        let young = snapshots.open(holder(1050), || Sequence(5));
        assert_eq!(snapshots.oldest(Sequence(9), 1100), Sequence(3));
        old.check().unwrap();
        assert_eq!(snapshots.oldest(Sequence(9), 1101), Sequence(5));
        assert!(matches!(old.check(), Err(Error::SnapshotTooOld)));
        young.check().unwrap();
        let closed: Vec<bool> = snapshots.status().iter().map(|status| status.is_closed).collect();
        assert_eq!(closed, [true, false]);
        // A clock that goes back opens nothing again.
        assert_eq!(snapshots.oldest(Sequence(9), 0), Sequence(5));
        assert!(old.check().is_err());
    }

    #[test]
    fn of_too_many_snapshots_the_oldest_are_closed() {
        let snapshots = registry(None, Some(2));
        let open = |at: u64| snapshots.open(holder(at as i64), || Sequence(at));
        let held = [open(1), open(2), open(3)];
        assert_eq!(snapshots.oldest(Sequence(9), 9), Sequence(2));
        assert_eq!(held.each_ref().map(|snapshot| snapshot.check().is_ok()), [false, true, true]);
        let status = snapshots.status();
        assert_eq!((status.len(), status[0].transaction), (3, 7));
    }

    /// Measures, proves nothing: `cargo test --release -p bennu-store opening -- --ignored`.
    #[test]
    #[ignore = "measures, proves nothing"]
    fn opening_and_closing() {
        let snapshots = registry(None, None);
        let start = std::time::Instant::now();
        let count = 10_000_000_u32;
        for _ in 0..count {
            let snapshot = snapshots.open(holder(1), || Sequence(3));
            std::hint::black_box(&snapshot).check().unwrap();
        }
        let each = start.elapsed() / count;
        assert!(each < Duration::from_micros(1), "{each:?}");
        std::io::Write::write_all(&mut std::io::stderr(), format!("{each:?}\n").as_bytes())
            .unwrap();
    }
}
