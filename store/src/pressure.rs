//! The memory of memstores against its limits, and who is woken by it: the flush threads, and
//! writers that wait until memory is free or files are fewer.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::descriptor::RegionId;
use crate::error::{Error, Result};
use crate::options::BlockingSection;

/// How often a waiting writer looks whether it was cancelled.
const CANCEL_POLL: Duration = Duration::from_millis(50);

/// Bytes of all memstores, and the wake-ups that follow from them.
pub(crate) struct Pressure {
    bytes: AtomicU64,
    soft_limit_bytes: u64,
    hard_limit_bytes: u64,
    /// Writers that had to wait for memory since start.
    stalls: AtomicU64,
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
    stopped: bool,
}

impl Pressure {
    /// Returns the gauge of a store with this memory budget: 40 % of it is for memstores, and
    /// writers wait at one and a half times that.
    pub(crate) fn new(memory_bytes: u64) -> Pressure {
        let soft_limit_bytes = memory_bytes / 5 * 2;
        Pressure {
            bytes: AtomicU64::new(0),
            soft_limit_bytes,
            hard_limit_bytes: soft_limit_bytes + soft_limit_bytes / 2,
            stalls: AtomicU64::new(0),
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
        let now = self.bytes.fetch_add(bytes, Ordering::Relaxed).wrapping_add(bytes);
        now > self.soft_limit_bytes
    }

    /// Wakes writers that wait for memory, after a flush.
    pub(crate) fn relieve(&self) {
        let _requests = self.requests.lock();
        self.relieved.notify_all();
    }

    /// Returns once memory is below the hard limit. A single commit may go above it.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`], [`Error::ShutDown`].
    pub(crate) fn wait_for_memory(
        &self,
        cancelled: &AtomicBool,
        blocking: &dyn BlockingSection,
    ) -> Result<()> {
        if self.bytes() <= self.hard_limit_bytes {
            return Ok(());
        }
        self.stalls.fetch_add(1, Ordering::Relaxed);
        self.want_flush();
        let mut outcome = Ok(());
        blocking.run(&mut || {
            let mut requests = self.requests.lock();
            outcome = loop {
                if self.bytes() <= self.hard_limit_bytes {
                    break Ok(());
                }
                if requests.stopped {
                    break Err(Error::ShutDown);
                }
                if cancelled.load(Ordering::Relaxed) {
                    break Err(Error::Cancelled);
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
