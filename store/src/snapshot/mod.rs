//! Snapshots: the applied mark of commits, and the registry of open snapshots.
//!
//! Commits get their sequences in order and are applied in any order. [`AppliedMark`] is the
//! highest sequence such that it and all before it are applied; new snapshots are taken at the
//! lower of it and the log's durable mark. [`Snapshots`] registers the open ones, so that flushes
//! and compactions retain the versions visible to them.
//!
//! A TIMELINE snapshot is not fixed at first. It is registered at the oldest commit that it may
//! end at, which is what the region replicas have applied, and the first read fixes it: at the
//! newest visible commit if the primary answers, at what the replicas have applied otherwise. From
//! then on all reads show that state, at whichever copy.
//!
//! # Invariants
//!
//! 1. [`Snapshots::horizon`] is never above a snapshot that is open or will be opened: a snapshot
//!    is read and registered under one shard lock, and the caller of `horizon` has read the mark
//!    before it reads the shards. [`Snapshots::open`] asserts it in debug builds.
//! 2. A snapshot that `horizon` ignored because of its age or number is closed permanently, and
//!    that is published before any version is dropped. Readers call [`Snapshot::check`] after
//!    they have read, so they return either retained versions or an error.

mod timeline;

pub use timeline::{TimelineProgress, TimelineRead};

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ahash::AHashMap;
use parking_lot::{Condvar, Mutex};

use crate::admission::holds_slot;
use crate::cell::Sequence;
use crate::error::{Error, Result};
use crate::options::BlockingSection;
use crate::scan::Horizon;

/// The highest sequence up to which all commits are applied.
pub(crate) struct AppliedMark {
    mark: AtomicU64,
    /// Applied sequences above the mark, with gaps.
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

    /// Records that a commit is applied.
    pub(crate) fn applied(&self, sequence: Sequence) {
        let mut ahead = self.ahead.lock();
        let mut mark = self.mark.load(Ordering::Relaxed);
        assert!(sequence.0 > mark, "commit {} is applied twice", sequence.0);
        if sequence.0 != mark + 1 {
            ahead.push(Reverse(sequence.0));
            return;
        }
        mark += 1;
        while ahead.peek() == Some(&Reverse(mark + 1)) {
            ahead.pop();
            mark += 1;
        }
        debug_assert!(ahead.peek().is_none_or(|Reverse(next)| *next > mark), "applied twice");
        self.mark.store(mark, Ordering::SeqCst);
        drop(ahead);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.advanced.notify_all();
        }
    }

    /// Waits until the mark has reached `sequence`, that is, for commits that other threads are
    /// applying at present.
    pub(crate) fn wait_for(&self, sequence: Sequence, blocking: &dyn BlockingSection) {
        if self.current() >= sequence {
            return;
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        blocking.run(&mut || {
            debug_assert!(!holds_slot(), "a slot is held during a wait for a commit");
            let mut ahead = self.ahead.lock();
            while self.current() < sequence {
                self.advanced.wait(&mut ahead);
            }
        });
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

const SHARDS: usize = 16;

/// Purpose of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotPurpose {
    /// A statement of a transaction at READ COMMITTED, or a scan that has outlived it.
    Statement,
    /// A transaction at REPEATABLE READ.
    Transaction,
}

/// An open snapshot, for system views.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotStatus {
    /// The newest visible commit; versions visible to the snapshot are retained.
    pub sequence: Sequence,
    /// Its purpose.
    pub purpose: SnapshotPurpose,
    /// Id of its transaction; 0 for a read without one.
    pub transaction: u64,
    /// Opening time: microseconds since 1970.
    pub opened_micros: i64,
    /// True if it was too old, or one too many: reads with it fail.
    pub is_closed: bool,
}

/// Name of an exported snapshot: its transaction and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExportedSnapshot {
    /// Id of the transaction.
    pub transaction: u64,
    /// The number among the transaction's exported snapshots, from 1 on.
    pub number: u32,
}

/// The exported snapshots of open transactions, for import by others.
#[derive(Default)]
pub(crate) struct ExportedSnapshots {
    by_name: Mutex<AHashMap<ExportedSnapshot, Arc<Snapshot>>>,
}

impl ExportedSnapshots {
    /// Adds a snapshot, until its transaction ends.
    pub(crate) fn add(&self, name: ExportedSnapshot, snapshot: Arc<Snapshot>) {
        let before = self.by_name.lock().insert(name, snapshot);
        debug_assert!(before.is_none(), "two exported snapshots have one name");
    }

    /// Returns a snapshot; `None` if its transaction has ended, or never existed.
    pub(crate) fn find(&self, name: ExportedSnapshot) -> Option<Arc<Snapshot>> {
        self.by_name.lock().get(&name).cloned()
    }

    /// Removes those of an ending transaction. Its importers keep their references.
    pub(crate) fn end(&self, transaction: u64) {
        self.by_name.lock().retain(|name, _| name.transaction != transaction);
    }
}

/// Limits of age and number of open snapshots.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SnapshotLimits {
    pub(crate) age_max: Option<Duration>,
    pub(crate) count_max: Option<usize>,
}

/// Registry of open snapshots.
pub(crate) struct Snapshots {
    limits: SnapshotLimits,
    /// Snapshots opened before this time are closed: their versions are not retained. Never
    /// decreases.
    closed_before_micros: AtomicI64,
    /// The highest sequence that `horizon` has returned, in debug builds.
    passed: AtomicU64,
    shards: [Shard; SHARDS],
}

/// Aligned to cache lines, to avoid false sharing.
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
    view: Horizon,
    purpose: SnapshotPurpose,
    /// Id of the transaction; 0 for none.
    transaction: u64,
}

/// An open snapshot; closed when dropped.
pub(crate) struct Snapshot {
    registry: Arc<Snapshots>,
    shard: u32,
    slot: u32,
    view: Horizon,
    /// Choice of a TIMELINE snapshot; `None`: it is fixed at `view`.
    choice: Option<SnapshotChoice>,
}

/// The commits between which a TIMELINE snapshot is fixed, and the one that was chosen.
struct SnapshotChoice {
    newest: Sequence,
    fixed: OnceLock<FixedSnapshot>,
    progress: Arc<TimelineProgress>,
}

#[derive(Clone, Copy)]
struct FixedSnapshot {
    sequence: Sequence,
    staleness: Duration,
}

impl Snapshots {
    /// Returns an empty registry.
    pub(crate) fn new(limits: SnapshotLimits) -> Snapshots {
        Snapshots {
            limits,
            closed_before_micros: AtomicI64::new(i64::MIN),
            passed: AtomicU64::new(0),
            shards: Default::default(),
        }
    }

    /// Opens a snapshot with the result of `read`, which must never decrease. `transaction` is 0
    /// for none.
    pub(crate) fn open(
        self: &Arc<Snapshots>,
        purpose: SnapshotPurpose,
        transaction: u64,
        read: impl FnOnce() -> Horizon,
    ) -> Snapshot {
        let shard = shard_of_thread();
        let mut slots = self.shards[shard].0.lock();
        let view = read();
        debug_assert!(
            view.snapshot.0 >= self.passed.load(Ordering::SeqCst),
            "versions that are visible to the snapshot may be dropped"
        );
        let entry = Some(Entry { view, purpose, transaction });
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
        Snapshot { registry, shard, slot, view, choice: None }
    }

    /// Closes snapshots that are too old or too many; returns the horizon of the others, or
    /// `present`, which the caller has read before, if that is lower.
    pub(crate) fn horizon(&self, present: Horizon) -> Horizon {
        self.enforce_limits(present.now_micros);
        let closed_before = self.closed_before_micros.load(Ordering::SeqCst);
        let mut horizon = present;
        self.visit(|Entry { view, .. }| {
            if view.now_micros >= closed_before {
                horizon.snapshot = horizon.snapshot.min(view.snapshot);
                horizon.now_micros = horizon.now_micros.min(view.now_micros);
            }
        });
        if cfg!(debug_assertions) {
            self.passed.fetch_max(horizon.snapshot.0, Ordering::SeqCst);
        }
        horizon
    }

    fn enforce_limits(&self, now_micros: i64) {
        let mut close_before = i64::MIN;
        if let Some(age_max) = self.limits.age_max {
            let age_max = i64::try_from(age_max.as_micros()).unwrap_or(i64::MAX);
            close_before = now_micros.saturating_sub(age_max);
        }
        if let Some(count_max) = self.limits.count_max {
            let mut opened = Vec::new();
            self.visit(|entry| opened.push(entry.view.now_micros));
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

    /// Returns the open snapshots, oldest first, including those closed because of the limits.
    pub(crate) fn status(&self) -> Vec<SnapshotStatus> {
        let closed_before = self.closed_before_micros.load(Ordering::SeqCst);
        let mut found = Vec::new();
        self.visit(|entry| {
            found.push(SnapshotStatus {
                sequence: entry.view.snapshot,
                purpose: entry.purpose,
                transaction: entry.transaction,
                opened_micros: entry.view.now_micros,
                is_closed: entry.view.now_micros < closed_before,
            });
        });
        found.sort_by_key(|status| (status.opened_micros, status.sequence));
        found
    }
}

impl Snapshot {
    /// Lets the first read fix the snapshot, at `newest` at the latest.
    pub(crate) fn up_to(mut self, newest: Sequence, progress: Arc<TimelineProgress>) -> Snapshot {
        debug_assert!(self.view.snapshot <= newest, "a snapshot is registered above its range");
        self.choice = Some(SnapshotChoice { newest, fixed: OnceLock::new(), progress });
        self
    }

    /// Returns the newest visible commit; fixes the snapshot at the newest possible one if
    /// nothing has fixed it yet.
    pub(crate) fn sequence(&self) -> Sequence {
        match &self.choice {
            None => self.view.snapshot,
            Some(choice) => self.fix(choice.newest, Duration::ZERO),
        }
    }

    /// Returns the newest visible commit, unless the snapshot is still to be fixed.
    pub(crate) fn fixed(&self) -> Option<Sequence> {
        match &self.choice {
            None => Some(self.view.snapshot),
            Some(choice) => choice.fixed.get().map(|fixed| fixed.sequence),
        }
    }

    /// Returns the oldest commit that the newest visible one may be.
    pub(crate) fn oldest(&self) -> Sequence {
        self.fixed().unwrap_or(self.view.snapshot)
    }

    /// Returns the newest commit that the newest visible one may be.
    pub(crate) fn newest(&self) -> Sequence {
        self.fixed().or(self.choice.as_ref().map(|choice| choice.newest)).unwrap_or_default()
    }

    /// Fixes the snapshot within its range, as old as given, unless it is fixed already. Returns
    /// the newest visible commit.
    pub(crate) fn fix(&self, at: Sequence, staleness: Duration) -> Sequence {
        let Some(choice) = &self.choice else { return self.view.snapshot };
        let fixed = choice.fixed.get_or_init(|| {
            let sequence = at.max(self.view.snapshot).min(choice.newest);
            choice.progress.see(sequence);
            FixedSnapshot { sequence, staleness }
        });
        fixed.sequence
    }

    /// Records reads at this many replicas for the session.
    pub(crate) fn note_read(&self, replica_requests: u64) {
        if let Some(choice) = &self.choice
            && let Some(fixed) = choice.fixed.get()
        {
            choice.progress.note(replica_requests, fixed.staleness);
        }
    }

    /// Returns its opening time, which its readers use for expiry.
    pub(crate) fn opened_micros(&self) -> i64 {
        self.view.now_micros
    }

    /// Checks that the snapshot was open during all reads so far.
    ///
    /// # Errors
    ///
    /// [`Error::SnapshotTooOld`].
    pub(crate) fn check(&self) -> Result<()> {
        if self.view.now_micros < self.registry.closed_before_micros.load(Ordering::Acquire) {
            return Err(Error::SnapshotTooOld);
        }
        Ok(())
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut slots = self.registry.shards[self.shard as usize].0.lock();
        let entry = slots.entries[self.slot as usize].take();
        debug_assert!(
            entry.is_some_and(|entry| entry.view == self.view),
            "another snapshot's slot"
        );
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
    fn applied_mark_stops_before_gap() {
        let mark = AppliedMark::new(Sequence(4));
        mark.applied(Sequence(7));
        mark.applied(Sequence(6));
        assert_eq!(mark.current(), Sequence(4));
        mark.applied(Sequence(5));
        assert_eq!(mark.current(), Sequence(7));
    }

    #[test]
    fn applied_mark_wait_ends_when_gap_closes() {
        let mark = AppliedMark::new(Sequence(0));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| mark.wait_for(Sequence(2), &crate::options::PlainWait));
            mark.applied(Sequence(2));
            mark.applied(Sequence(1));
            waiter.join().unwrap();
        });
        assert_eq!(mark.current(), Sequence(2));
    }

    fn horizon(snapshot: u64, now_micros: i64) -> Horizon {
        Horizon { snapshot: Sequence(snapshot), now_micros }
    }

    fn open(snapshots: &Arc<Snapshots>, snapshot: u64, now_micros: i64) -> Snapshot {
        snapshots.open(SnapshotPurpose::Statement, 7, || horizon(snapshot, now_micros))
    }

    fn registry(age_max: Option<u64>, count_max: Option<usize>) -> Arc<Snapshots> {
        let age_max = age_max.map(Duration::from_micros);
        Arc::new(Snapshots::new(SnapshotLimits { age_max, count_max }))
    }

    #[test]
    fn snapshot_horizon_counts_each_holder() {
        let snapshots = registry(None, None);
        let present = horizon(9, 20);
        assert_eq!(registry(None, None).horizon(present), present);
        let first = open(&snapshots, 3, 12);
        let second = open(&snapshots, 3, 12);
        // At the same sequence, or a later one: the expiry time is separate.
        let early = open(&snapshots, 5, 11);
        drop(first);
        assert_eq!(snapshots.horizon(present), horizon(3, 11));
        second.check().unwrap();
        assert_eq!((early.sequence(), early.opened_micros()), (Sequence(5), 11));
        drop((second, early));
        assert_eq!(snapshots.horizon(present), present);
        assert!(snapshots.status().is_empty());
    }

    #[test]
    fn snapshots_beyond_maximum_age_are_closed() {
        let snapshots = registry(Some(100), None);
        let old = open(&snapshots, 3, 1000);
        let young = open(&snapshots, 5, 1050);
        assert_eq!(snapshots.horizon(horizon(9, 1100)), horizon(3, 1000));
        old.check().unwrap();
        assert_eq!(snapshots.horizon(horizon(9, 1101)), horizon(5, 1050));
        assert!(matches!(old.check(), Err(Error::SnapshotTooOld)));
        young.check().unwrap();
        let closed: Vec<bool> = snapshots.status().iter().map(|status| status.is_closed).collect();
        assert_eq!(closed, [true, false]);
        // A clock that goes back reopens nothing.
        assert_eq!(snapshots.horizon(horizon(9, 0)), horizon(5, 0));
        assert!(old.check().is_err());
    }

    #[test]
    fn oldest_snapshots_are_closed_above_maximum_count() {
        let snapshots = registry(None, Some(2));
        let held = [1, 2, 3].map(|at| open(&snapshots, at, at as i64));
        assert_eq!(snapshots.horizon(horizon(9, 9)), horizon(2, 2));
        assert_eq!(held.each_ref().map(|snapshot| snapshot.check().is_ok()), [false, true, true]);
        let status = snapshots.status();
        assert_eq!((status.len(), status[0].transaction), (3, 7));
    }

    /// Benchmark without assertions: `cargo test --release -p bennu-store opening -- --ignored`.
    #[test]
    #[ignore = "measures, proves nothing"]
    fn snapshot_open_and_close_throughput() {
        let snapshots = registry(None, None);
        let start = std::time::Instant::now();
        let count = 10_000_000_u32;
        for _ in 0..count {
            let snapshot = open(&snapshots, 3, 1);
            std::hint::black_box(&snapshot).check().unwrap();
        }
        let each = start.elapsed() / count;
        assert!(each < Duration::from_micros(1), "{each:?}");
        std::io::Write::write_all(&mut std::io::stderr(), format!("{each:?}\n").as_bytes())
            .unwrap();
    }
}
