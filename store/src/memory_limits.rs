//! Memory limits of memstores and open transactions, and the wake-ups of flush threads and of
//! writers that wait for memory or for compactions.
//!
//! Staged cells count with the memstores, so that these are flushed earlier when transactions are
//! large. A transaction cannot be flushed: a large one is rejected once all together have used up
//! their share, small ones never.
//!
//! # Invariants
//!
//! 1. A writer that waits for memory waits only for memstores, never for the end of another
//!    transaction: [`MEMSTORE_LEAST`] of the hard limit is always left for memstores. Asserted by
//!    [`Pressure::new`] for the limits.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::admission::holds_slot;
use crate::budget::Budget;
use crate::descriptor::RegionId;
use crate::error::{Error, Result, WriteFailure};
use crate::options::BlockingSection;

/// Interval at which a waiting writer checks for cancellation.
const CANCEL_POLL: Duration = Duration::from_millis(50);

/// Divisor of the hard limit: the part reserved for memstores regardless of transactions, an
/// eighth.
const MEMSTORE_LEAST: u64 = 8;
/// Divisor: a transaction with less than this part of the limit of all is never rejected.
const SMALL_TRANSACTION: u64 = 16;
/// Divisor: a transaction spills above this part of the limit of all, a quarter.
const SPILLING_TRANSACTION: u64 = 4;
/// Divisor of the soft limit at which memstores are flushed while memory is short.
const SHORT_PART: u64 = 2;
/// Memory of a commit relative to its staged cells: the record, a copy of it in the log's queue,
/// and the cells in the memstores.
const COMMIT_COPIES: u64 = 3;

/// Accounting of memstore bytes, and the wake-ups that depend on them.
pub(crate) struct Pressure {
    bytes: AtomicU64,
    /// Bytes of open transactions, and of commits in progress.
    transaction_bytes: AtomicU64,
    soft_limit_bytes: u64,
    hard_limit_bytes: u64,
    transaction_limit_bytes: u64,
    /// Number of waits of writers for memory since the start.
    stalls: AtomicU64,
    /// True if memory is short: memstores are then flushed at half of the soft limit.
    is_short: AtomicBool,
    /// Number of waits of writers for compactions since the start.
    file_stalls: AtomicU64,
    requests: Mutex<Requests>,
    flush_wanted: Condvar,
    relieved: Condvar,
}

#[derive(Default)]
struct Requests {
    flush: bool,
    /// Regions that are being flushed.
    flushing: HashSet<RegionId>,
    /// The failure of the last flush, if it failed.
    failure: Option<WriteFailure>,
    stopped: bool,
}

impl Pressure {
    /// Returns the accounting of a store with this memory budget.
    pub(crate) fn new(budget: &Budget) -> Pressure {
        assert!(
            budget.transactions <= budget.memstore_hard - budget.memstore_hard / MEMSTORE_LEAST,
            "transactions leave memory to memstores"
        );
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

    /// Returns the bytes of open transactions that are large enough to be counted.
    pub(crate) fn transaction_bytes(&self) -> u64 {
        self.transaction_bytes.load(Ordering::Relaxed)
    }

    /// Returns the limit of staged cells in memory of one transaction.
    pub(crate) fn staged_bytes_max(&self) -> u64 {
        self.transaction_limit_bytes / SPILLING_TRANSACTION
    }

    /// Returns the bytes counted against the limits.
    fn held_bytes(&self) -> u64 {
        let most = self.hard_limit_bytes - self.hard_limit_bytes / MEMSTORE_LEAST;
        self.bytes() + self.transaction_bytes().min(most)
    }

    /// Returns whether memstores are to be flushed regardless of their size.
    pub(crate) fn is_above_soft_limit(&self) -> bool {
        let least = self.hard_limit_bytes / MEMSTORE_LEAST;
        let limit = match self.is_short.load(Ordering::Relaxed) {
            true => self.soft_limit_bytes / SHORT_PART,
            false => self.soft_limit_bytes,
        };
        self.held_bytes() > limit && self.bytes() > least
    }

    /// Sets the flag for short memory, from outside of this accounting.
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

    /// Returns the number of waits of writers for memory.
    pub(crate) fn stalls(&self) -> u64 {
        self.stalls.load(Ordering::Relaxed)
    }

    /// Adds bytes; wraps around, so that it can subtract too. Returns whether the soft limit is
    /// exceeded.
    pub(crate) fn add(&self, bytes: u64) -> bool {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.is_above_soft_limit()
    }

    /// Wakes writers that wait for memory, after a flush.
    pub(crate) fn relieve(&self) {
        let _requests = self.requests.lock();
        self.relieved.notify_all();
    }

    /// Records the outcome of the last flush: until one succeeds, writers that wait for memory
    /// return its failure.
    pub(crate) fn note_flush(&self, failure: Option<WriteFailure>) {
        self.requests.lock().failure = failure;
    }

    /// Waits until memory is below the hard limit. A small commit may exceed it.
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
            debug_assert!(!holds_slot(), "a slot is held during a wait for memory");
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

    /// Returns the number of waits of writers for compactions.
    pub(crate) fn file_stalls(&self) -> u64 {
        self.file_stalls.load(Ordering::Relaxed)
    }

    /// Waits until `clear` holds, or the time is over: a region that is written faster than it is
    /// compacted accumulates files.
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
            debug_assert!(!holds_slot(), "a slot is held during a wait for compactions");
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

    /// Claims the flush of a region, unless another thread has.
    pub(crate) fn claim_flush(&self, region: RegionId) -> bool {
        self.requests.lock().flushing.insert(region)
    }

    /// Releases the claim.
    pub(crate) fn release_flush(&self, region: RegionId) {
        let was_claimed = self.requests.lock().flushing.remove(&region);
        debug_assert!(was_claimed, "the flush of region {} was not claimed", region.0);
    }

    /// Waits until a flush is requested; returns `false` when the store stops.
    pub(crate) fn next_flush(&self) -> bool {
        let mut requests = self.requests.lock();
        while !requests.flush && !requests.stopped {
            self.flush_wanted.wait(&mut requests);
        }
        requests.flush = false;
        !requests.stopped
    }

    /// Waits before failed work is retried; returns `false` when the store stops.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        let mut requests = self.requests.lock();
        if !requests.stopped {
            self.relieved.wait_for(&mut requests, time);
        }
        !requests.stopped
    }

    /// Ends all waits.
    pub(crate) fn stop(&self) {
        let mut requests = self.requests.lock();
        requests.stopped = true;
        self.flush_wanted.notify_all();
        self.relieved.notify_all();
    }
}

/// Accounting of one open transaction's memory, until it is dropped.
pub(crate) struct TransactionMemory {
    pressure: Arc<Pressure>,
    bytes: u64,
}

impl TransactionMemory {
    /// Returns the charge of a transaction without memory.
    pub(crate) fn new(pressure: &Arc<Pressure>) -> TransactionMemory {
        TransactionMemory { pressure: Arc::clone(pressure), bytes: 0 }
    }

    /// Returns the bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sets the bytes of the transaction.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] if the bytes increase, exceed the limit, and the transaction is not
    /// small. They are counted all the same, since the memory is allocated.
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

    /// Adds the memory of the coming commit, so that memstores are flushed for it.
    pub(crate) fn begin_commit(&mut self) {
        self.change(self.bytes.saturating_mul(COMMIT_COPIES));
    }

    fn change(&mut self, bytes: u64) -> u64 {
        let grown = bytes.wrapping_sub(self.bytes);
        self.bytes = bytes;
        let before = self.pressure.transaction_bytes.fetch_add(grown, Ordering::Relaxed);
        let all = before.wrapping_add(grown);
        debug_assert!(all >= bytes, "{all} bytes of all transactions, {bytes} of one");
        all
    }
}

impl Drop for TransactionMemory {
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
    fn memory_limit_rejects_only_large_transactions() {
        let (pressure, Budget { transactions: limit, .. }) = pressure(256 << 20);
        let [mut large, mut small] = [0, 1].map(|_| TransactionMemory::new(&pressure));
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
    fn transaction_memory_counts_towards_write_pressure() {
        let (pressure, budget) = pressure(256 << 20);
        let not_cancelled = AtomicBool::new(false);
        let wait = || pressure.wait_for_memory(&not_cancelled, &PlainWait);
        pressure.add(budget.memstore_soft);
        assert!(!pressure.is_above_soft_limit());
        let mut large = TransactionMemory::new(&pressure);
        large.hold(budget.transactions).unwrap();
        assert!(pressure.is_above_soft_limit());
        large.begin_commit();
        // More than the limit, and still no writer waits when the memstores are nearly empty.
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
    fn memory_wait_reports_flush_failure() {
        let (pressure, budget) = pressure(256 << 20);
        let not_cancelled = AtomicBool::new(false);
        let wait = || pressure.wait_for_memory(&not_cancelled, &PlainWait);
        let failure = WriteFailure { detail: "no space".to_owned(), is_full: true };
        pressure.note_flush(Some(failure.clone()));
        wait().unwrap();
        pressure.add(budget.memstore_hard + 1);
        assert!(matches!(wait(), Err(Error::FlushFailed(why)) if why == failure));
        // A writer that is waiting already returns the error, too; none does once a flush
        // succeeds.
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
