//! Gates of a region: the service gate, open unless a test holds the region, and the guard of a
//! commit in the write gate.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, RwLockReadGuard};

use crate::admission::holds_slot;
use crate::env::process::monotonic_now;
use crate::error::{Error, Result};
use crate::options::BlockingSection;

/// Interval at which a waiter checks for cancellation.
const CANCEL_POLL: Duration = Duration::from_millis(50);

/// Gate that admits calls to a region, or makes them wait.
#[derive(Default)]
pub(crate) struct ServiceGate {
    holders: AtomicUsize,
    closed: Mutex<()>,
    opened: Condvar,
}

impl ServiceGate {
    /// Closes the gate until [`ServiceGate::release`].
    pub(crate) fn hold(&self) {
        self.holders.fetch_add(1, Ordering::SeqCst);
    }

    /// Releases one hold.
    pub(crate) fn release(&self) {
        let _closed = self.closed.lock();
        let holders = self.holders.fetch_sub(1, Ordering::SeqCst);
        assert!(holders > 0, "a gate is released that is not held");
        self.opened.notify_all();
    }

    /// Waits for the gate; returns `true` if it is open, `false` if it did not open within
    /// `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`].
    pub(crate) fn enter(
        &self,
        timeout: Option<Duration>,
        cancelled: &[&AtomicBool],
        blocking: &dyn BlockingSection,
    ) -> Result<bool> {
        if self.holders.load(Ordering::SeqCst) == 0 {
            return Ok(true);
        }
        let deadline = timeout.map(|timeout| monotonic_now() + timeout);
        let mut outcome = Ok(false);
        blocking.run(&mut || {
            debug_assert!(!holds_slot(), "a slot is held during a wait for a region");
            let mut closed = self.closed.lock();
            outcome = loop {
                if self.holders.load(Ordering::SeqCst) == 0 {
                    break Ok(true);
                }
                if cancelled.iter().any(|flag| flag.load(Ordering::Relaxed)) {
                    break Err(Error::Cancelled);
                }
                let left = deadline.map(|at| at.saturating_duration_since(monotonic_now()));
                if left == Some(Duration::ZERO) {
                    break Ok(false);
                }
                let nap = left.map_or(CANCEL_POLL, |left| left.min(CANCEL_POLL));
                self.opened.wait_for(&mut closed, nap);
            };
        });
        outcome
    }
}

/// An object with a service gate.
pub(crate) trait GatedRegion: Send + Sync {
    /// Returns the gate.
    fn gate(&self) -> &ServiceGate;
}

thread_local! {
    /// Number of write gates that the thread is in, in debug builds.
    static WRITE_GATES: Cell<u32> = const { Cell::new(0) };
}

/// Guard of a commit in the write gate of a region.
pub(crate) struct WriteGuard<'a> {
    _gate: RwLockReadGuard<'a, ()>,
}

impl<'a> WriteGuard<'a> {
    pub(super) fn new(gate: RwLockReadGuard<'a, ()>) -> WriteGuard<'a> {
        if cfg!(debug_assertions) {
            WRITE_GATES.set(WRITE_GATES.get() + 1);
        }
        WriteGuard { _gate: gate }
    }

    /// Asserts, in debug builds, that the thread is in no write gate: it is about to wait.
    pub(crate) fn check_none() {
        debug_assert_eq!(WRITE_GATES.get(), 0, "a commit waits while it is in a write gate");
    }
}

impl Drop for WriteGuard<'_> {
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            WRITE_GATES.set(WRITE_GATES.get() - 1);
        }
    }
}

/// Guard that holds a region's gate closed.
pub struct HoldGuard {
    held: Arc<dyn GatedRegion>,
}

impl HoldGuard {
    pub(crate) fn new(held: Arc<dyn GatedRegion>) -> HoldGuard {
        held.gate().hold();
        HoldGuard { held }
    }
}

impl Drop for HoldGuard {
    fn drop(&mut self) {
        self.held.gate().release();
    }
}
