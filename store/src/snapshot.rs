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

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;

use crate::cell::Sequence;
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

/// Sequences in use with how often.
type Shard = Mutex<SmallVec<[(u64, u32); 4]>>;

/// The open snapshots.
#[derive(Default)]
pub(crate) struct Snapshots {
    shards: [Shard; SHARDS],
}

/// An open snapshot; closed when dropped.
pub(crate) struct Snapshot {
    registry: Arc<Snapshots>,
    shard: usize,
    sequence: Sequence,
}

impl Snapshots {
    /// Opens a snapshot at what `read` returns, which must never go back.
    pub(crate) fn open(self: &Arc<Snapshots>, read: impl FnOnce() -> Sequence) -> Snapshot {
        let shard = shard_of_thread();
        let mut open = self.shards[shard].lock();
        let sequence = read();
        match open.iter_mut().find(|(at, _)| *at == sequence.0) {
            Some((_, count)) => *count += 1,
            None => open.push((sequence.0, 1)),
        }
        drop(open);
        Snapshot { registry: Arc::clone(self), shard, sequence }
    }

    /// Returns the oldest open snapshot, or `mark`, which the caller has read before, if that is
    /// older.
    pub(crate) fn oldest(&self, mark: Sequence) -> Sequence {
        let mut oldest = mark.0;
        for shard in &self.shards {
            for (sequence, _) in shard.lock().iter() {
                oldest = oldest.min(*sequence);
            }
        }
        Sequence(oldest)
    }
}

impl Snapshot {
    /// Returns the sequence up to which commits are visible.
    pub(crate) fn sequence(&self) -> Sequence {
        self.sequence
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut open = self.registry.shards[self.shard].lock();
        if let Some(index) = open.iter().position(|(at, _)| *at == self.sequence.0) {
            open[index].1 -= 1;
            if open[index].1 == 0 {
                open.swap_remove(index);
            }
        }
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

    #[test]
    fn the_oldest_snapshot_counts_each_holder() {
        let snapshots = Arc::new(Snapshots::default());
        assert_eq!(snapshots.oldest(Sequence(9)), Sequence(9));
        let first = snapshots.open(|| Sequence(3));
        let second = snapshots.open(|| Sequence(3));
        drop(first);
        assert_eq!(snapshots.oldest(Sequence(9)), Sequence(3));
        drop(second);
        assert_eq!(snapshots.oldest(Sequence(9)), Sequence(9));
    }
}
