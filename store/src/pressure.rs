//! The memory of memstores and open transactions against its limits, and who is woken by it: the
//! flush threads, and writers that wait until memory is free or files are fewer.
//!
//! Staged cells count with the memstores, so that these are flushed earlier when transactions are
//! large. A transaction cannot be flushed: one that is large is refused more once all together have
//! their share, small ones never.
//!
//! # Invariants
//!
//! 1. Who waits for memory waits for memstores only, never for another transaction to end: however
//!    much those hold, [`MEMSTORE_LEAST`] of the hard limit is left for memstores.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::budget::Budget;
use crate::descriptor::RegionId;
use crate::error::{Error, Result, WriteFailure};
use crate::options::BlockingSection;

/// How often a waiting writer looks whether it was cancelled.
const CANCEL_POLL: Duration = Duration::from_millis(50);

/// The part of the hard limit that is for memstores, whatever transactions hold: an eighth.
const MEMSTORE_LEAST: u64 = 8;
/// A transaction that holds less than this part of what all may is not refused.
const SMALL_TRANSACTION: u64 = 16;
/// A transaction spills what is more than this part of what all may hold: a quarter.
const SPILLING_TRANSACTION: u64 = 4;
/// The part of the soft limit at which memstores are flushed while memory is short.
const SHORT_PART: u64 = 2;
/// What a commit takes while it is made, by what its cells take when they are staged: the record, a
/// copy of it in the log's queue, and the cells in the memstores.
const COMMIT_COPIES: u64 = 3;

/// Bytes of all memstores, and the wake-ups that follow from them.
pub(crate) struct Pressure {
    bytes: AtomicU64,
    /// Bytes of open transactions, and of commits that are being made.
    transaction_bytes: AtomicU64,
    soft_limit_bytes: u64,
    hard_limit_bytes: u64,
    transaction_limit_bytes: u64,
    /// Writers that had to wait for memory since start.
    stalls: AtomicU64,
    /// Whether memory is short: memstores are flushed at half of the soft limit then.
    is_short: AtomicBool,
    /// Writers that had to wait for compactions since start.
    file_stalls: AtomicU64,
    requests: Mutex<Requests>,
    flush_wanted: Condvar,
    relieved: Condvar,
}

#[derive(Default)]
struct Requests {
    flush: bool,
    /// Regions that a thread flushes.
    flushing: HashSet<RegionId>,
    /// Why the last flush failed; none if it did not.
    failure: Option<WriteFailure>,
    stopped: bool,
}

impl Pressure {
    /// Returns the gauge of a store with this memory budget.
    pub(crate) fn new(budget: &Budget) -> Pressure {
        Pressure {
            bytes: AtomicU64::new(0),
            transaction_bytes: AtomicU64::new(0),
            soft_limit_bytes: budget.memstore_soft,
            hard_limit_bytes: budget.memstore_hard,
            transaction_limit_bytes: budget.transactions,
            stalls: AtomicU64::new(0),
            is_short: AtomicBool::new(false),
            file_stalls: AtomicU64::new(0),
            requests: Mutex::default(),
            flush_wanted: Condvar::new(),
            relieved: Condvar::new(),
        }
    }

    /// Returns the bytes of all memstores.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the bytes of open transactions, as far as they are large enough to be counted.
    pub(crate) fn transaction_bytes(&self) -> u64 {
        self.transaction_bytes.load(Ordering::Relaxed)
    }

    /// Returns the bytes of staged cells that one transaction keeps in memory.
    pub(crate) fn staged_bytes_max(&self) -> u64 {
        self.transaction_limit_bytes / SPILLING_TRANSACTION
    }

    /// Returns what is held against the limits.
    fn held_bytes(&self) -> u64 {
        let most = self.hard_limit_bytes - self.hard_limit_bytes / MEMSTORE_LEAST;
        self.bytes() + self.transaction_bytes().min(most)
    }

    /// Returns whether memstores are to be flushed whatever their size.
    pub(crate) fn is_above_soft_limit(&self) -> bool {
        let least = self.hard_limit_bytes / MEMSTORE_LEAST;
        let limit = match self.is_short.load(Ordering::Relaxed) {
            true => self.soft_limit_bytes / SHORT_PART,
            false => self.soft_limit_bytes,
        };
        self.held_bytes() > limit && self.bytes() > least
    }

    /// Notes whether memory is short beyond what is counted here.
    pub(crate) fn set_short(&self, is_short: bool) {
        self.is_short.store(is_short, Ordering::Relaxed);
        if is_short && self.is_above_soft_limit() {
            self.want_flush();
        }
    }

    /// Returns the bytes at which memstores are flushed.
    pub(crate) fn soft_limit_bytes(&self) -> u64 {
        self.soft_limit_bytes
    }

    /// Returns how often a writer had to wait for memory.
    pub(crate) fn stalls(&self) -> u64 {
        self.stalls.load(Ordering::Relaxed)
    }

    /// Adds bytes; wraps around, so that it takes them away too. Returns whether that is too many.
    pub(crate) fn add(&self, bytes: u64) -> bool {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.is_above_soft_limit()
    }

    /// Wakes writers that wait for memory, after a flush.
    pub(crate) fn relieve(&self) {
        let _requests = self.requests.lock();
        self.relieved.notify_all();
    }

    /// Notes how the last flush ended: until one goes well, who waits for memory is told why there
    /// is none.
    pub(crate) fn note_flush(&self, failure: Option<WriteFailure>) {
        self.requests.lock().failure = failure;
    }

    /// Returns once memory is below the hard limit. A small commit may go above it.
    ///
    /// # Errors
    ///
    /// [`Error::FlushFailed`], [`Error::Cancelled`], [`Error::ShutDown`].
    pub(crate) fn wait_for_memory(
        &self,
        cancelled: &AtomicBool,
        blocking: &dyn BlockingSection,
    ) -> Result<()> {
        if self.held_bytes() <= self.hard_limit_bytes {
            return Ok(());
        }
        self.stalls.fetch_add(1, Ordering::Relaxed);
        self.want_flush();
        let mut outcome = Ok(());
        blocking.run(&mut || {
            let mut requests = self.requests.lock();
            outcome = loop {
                if self.held_bytes() <= self.hard_limit_bytes {
                    break Ok(());
                }
                if requests.stopped {
                    break Err(Error::ShutDown);
                }
                if cancelled.load(Ordering::Relaxed) {
                    break Err(Error::Cancelled);
                }
                if let Some(failure) = &requests.failure {
                    break Err(Error::FlushFailed(failure.clone()));
                }
                self.relieved.wait_for(&mut requests, CANCEL_POLL);
            };
        });
        outcome
    }

    /// Wakes the flush thread.
    pub(crate) fn want_flush(&self) {
        self.requests.lock().flush = true;
        self.flush_wanted.notify_one();
    }

    /// Returns how often a writer had to wait for compactions.
    pub(crate) fn file_stalls(&self) -> u64 {
        self.file_stalls.load(Ordering::Relaxed)
    }

    /// Returns once `clear` holds, or the time is over: files pile up in a region that is written
    /// faster than it is compacted.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`], [`Error::ShutDown`].
    pub(crate) fn wait_for_files(
        &self,
        clear: &dyn Fn() -> bool,
        longest: Duration,
        cancelled: &AtomicBool,
        blocking: &dyn BlockingSection,
    ) -> Result<()> {
        if clear() {
            return Ok(());
        }
        self.file_stalls.fetch_add(1, Ordering::Relaxed);
        let polls = longest.as_millis().div_ceil(CANCEL_POLL.as_millis());
        let mut outcome = Ok(());
        blocking.run(&mut || {
            for _ in 0..polls {
                if cancelled.load(Ordering::Relaxed) {
                    outcome = Err(Error::Cancelled);
                    return;
                }
                let mut requests = self.requests.lock();
                if requests.stopped {
                    outcome = Err(Error::ShutDown);
                    return;
                }
                self.relieved.wait_for(&mut requests, CANCEL_POLL);
                drop(requests);
                if clear() {
                    return;
                }
            }
        });
        outcome
    }

    /// Takes the flush of a region, unless another thread has.
    pub(crate) fn claim_flush(&self, region: RegionId) -> bool {
        self.requests.lock().flushing.insert(region)
    }

    /// Gives it back.
    pub(crate) fn release_flush(&self, region: RegionId) {
        self.requests.lock().flushing.remove(&region);
    }

    /// Waits until a flush is wanted; returns `false` when the store stops.
    pub(crate) fn next_flush(&self) -> bool {
        let mut requests = self.requests.lock();
        while !requests.flush && !requests.stopped {
            self.flush_wanted.wait(&mut requests);
        }
        requests.flush = false;
        !requests.stopped
    }

    /// Waits before work that failed is tried again; returns `false` when the store stops.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        let mut requests = self.requests.lock();
        if !requests.stopped {
            self.relieved.wait_for(&mut requests, time);
        }
        !requests.stopped
    }

    /// Lets all who wait go.
    pub(crate) fn stop(&self) {
        let mut requests = self.requests.lock();
        requests.stopped = true;
        self.flush_wanted.notify_all();
        self.relieved.notify_all();
    }
}

/// What an open transaction holds, until it is dropped.
pub(crate) struct Charge {
    pressure: Arc<Pressure>,
    bytes: u64,
}

impl Charge {
    /// Returns the charge of a transaction that holds nothing yet.
    pub(crate) fn new(pressure: &Arc<Pressure>) -> Charge {
        Charge { pressure: Arc::clone(pressure), bytes: 0 }
    }

    /// Returns the bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes note that the transaction holds so many bytes now.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] if it is more than before, too much, and not for others' fault. It is
    /// noted all the same, since the memory is there.
    pub(crate) fn hold(&mut self, bytes: u64) -> Result<()> {
        let more = bytes > self.bytes;
        let all = self.change(bytes);
        let limit_bytes = self.pressure.transaction_limit_bytes;
        if more && all > limit_bytes && bytes > limit_bytes / SMALL_TRANSACTION {
            return Err(Error::OutOfMemory { limit_bytes });
        }
        if more && self.pressure.is_above_soft_limit() {
            self.pressure.want_flush();
        }
        Ok(())
    }

    /// Takes note that the transaction is about to be committed: what that takes is counted, so
    /// that memstores are flushed for it.
    pub(crate) fn begin_commit(&mut self) {
        self.change(self.bytes.saturating_mul(COMMIT_COPIES));
    }

    fn change(&mut self, bytes: u64) -> u64 {
        let grown = bytes.wrapping_sub(self.bytes);
        self.bytes = bytes;
        let before = self.pressure.transaction_bytes.fetch_add(grown, Ordering::Relaxed);
        before.wrapping_add(grown)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let was_small = self.bytes < self.pressure.transaction_limit_bytes / SMALL_TRANSACTION;
        self.change(0);
        if !was_small {
            self.pressure.relieve();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::PlainWait;

    fn pressure(memory_bytes: u64) -> (Arc<Pressure>, Budget) {
        let budget = Budget::of(memory_bytes);
        (Arc::new(Pressure::new(&budget)), budget)
    }

    #[test]
    fn only_large_transactions_are_refused() {
        let (pressure, Budget { transactions: limit, .. }) = pressure(256 << 20);
        let [mut large, mut small] = [0, 1].map(|_| Charge::new(&pressure));
        large.hold(limit).unwrap();
        small.hold(limit / SMALL_TRANSACTION).unwrap();
        assert!(matches!(large.hold(limit + 1), Err(Error::OutOfMemory { .. })));
        assert!(matches!(small.hold(limit / 2), Err(Error::OutOfMemory { .. })));
        large.hold(limit / 4).unwrap();
        small.hold(limit / 2 + 1).unwrap();
        drop((large, small));
        assert_eq!(pressure.transaction_bytes(), 0);
    }

    #[test]
    fn transactions_count_and_leave_room_for_memstores() {
        let (pressure, budget) = pressure(256 << 20);
        let not_cancelled = AtomicBool::new(false);
        let wait = || pressure.wait_for_memory(&not_cancelled, &PlainWait);
        pressure.add(budget.memstore_soft);
        assert!(!pressure.is_above_soft_limit());
        let mut large = Charge::new(&pressure);
        large.hold(budget.transactions).unwrap();
        assert!(pressure.is_above_soft_limit());
        large.begin_commit();
        // More than all, and still nobody waits when the memstores are nearly empty.
        assert!(pressure.transaction_bytes() > budget.memstore_hard);
        pressure.add(0u64.wrapping_sub(budget.memstore_soft - budget.memstore_hard / 10));
        assert!(!pressure.is_above_soft_limit());
        wait().unwrap();
        pressure.add(budget.memstore_hard / 10);
        assert!(pressure.is_above_soft_limit());
        not_cancelled.store(true, Ordering::Relaxed);
        assert!(matches!(wait(), Err(Error::Cancelled)));
        drop(large);
        wait().unwrap();
    }

    #[test]
    fn who_waits_is_told_why_memstores_are_not_flushed() {
        let (pressure, budget) = pressure(256 << 20);
        let not_cancelled = AtomicBool::new(false);
        let wait = || pressure.wait_for_memory(&not_cancelled, &PlainWait);
        let failure = WriteFailure { detail: "no space".to_owned(), is_full: true };
        pressure.note_flush(Some(failure.clone()));
        wait().unwrap();
        pressure.add(budget.memstore_hard + 1);
        assert!(matches!(wait(), Err(Error::FlushFailed(why)) if why == failure));
        // Somebody who is waiting already is told, too, and nobody is once a flush goes well.
        pressure.note_flush(None);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(wait);
            while pressure.stalls() < 2 {
                std::thread::yield_now();
            }
            pressure.note_flush(Some(failure.clone()));
            pressure.relieve();
            assert!(matches!(waiter.join().unwrap(), Err(Error::FlushFailed(_))));
        });
        pressure.note_flush(None);
        pressure.add(0u64.wrapping_sub(budget.memstore_hard));
        wait().unwrap();
    }
}
