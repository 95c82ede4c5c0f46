//! The memory of memstores against its limits, and who is woken by it: the flush thread, the
//! compaction thread, and writers that wait until memory is free.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, Result};
use crate::options::BlockingSection;
use crate::region::Region;

/// How often a waiting writer looks whether it was cancelled.
const CANCEL_POLL: Duration = Duration::from_millis(50);

/// Bytes of all memstores, and the wake-ups that follow from them.
pub(crate) struct Pressure {
    bytes: AtomicU64,
    soft_limit_bytes: u64,
    hard_limit_bytes: u64,
    /// Writers that had to wait since start.
    stalls: AtomicU64,
    requests: Mutex<Requests>,
    flush_wanted: Condvar,
    compaction_wanted: Condvar,
    relieved: Condvar,
}

#[derive(Default)]
struct Requests {
    flush: bool,
    compactions: VecDeque<Arc<Region>>,
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
            requests: Mutex::default(),
            flush_wanted: Condvar::new(),
            compaction_wanted: Condvar::new(),
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

    /// Wakes the compaction thread for a region.
    pub(crate) fn want_compaction(&self, region: &Arc<Region>) {
        let mut requests = self.requests.lock();
        if !requests.compactions.iter().any(|other| Arc::ptr_eq(other, region)) {
            requests.compactions.push_back(Arc::clone(region));
        }
        self.compaction_wanted.notify_one();
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

    /// Waits until a compaction is wanted; returns `None` when the store stops.
    pub(crate) fn next_compaction(&self) -> Option<Arc<Region>> {
        let mut requests = self.requests.lock();
        loop {
            if requests.stopped {
                return None;
            }
            if let Some(region) = requests.compactions.pop_front() {
                return Some(region);
            }
            self.compaction_wanted.wait(&mut requests);
        }
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
        requests.compactions.clear();
        self.flush_wanted.notify_all();
        self.compaction_wanted.notify_all();
        self.relieved.notify_all();
    }
}
