//! Service gate of a region, open unless a client holds the region. The feed of the replicas has
//! one, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::admission::holds_slot;
use crate::env::process::monotonic_now;
use crate::error::{Error, Result};
use crate::options::BlockingSection;

/// Interval at which a waiter checks for cancellation.
const CANCEL_POLL: Duration = Duration::from_millis(50);

/// Gate that admits calls to a region, or makes them wait while it is held. Each hold ends by
/// itself at its deadline.
#[derive(Default)]
pub(crate) struct ServiceGate {
    /// Number of entries in `holds`.
    holders: AtomicUsize,
    holds: Mutex<Vec<GateHold>>,
    opened: Condvar,
}

struct GateHold {
    number: u64,
    until: Instant,
}

impl ServiceGate {
    /// Closes the gate until a deadline or [`ServiceGate::release`]; returns the number of the
    /// hold.
    fn hold(&self, until: Instant) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut holds = self.holds.lock();
        holds.push(GateHold { number, until });
        self.holders.store(holds.len(), Ordering::SeqCst);
        number
    }

    /// Ends a hold, unless it has ended.
    fn release(&self, number: u64) {
        let mut holds = self.holds.lock();
        holds.retain(|hold| hold.number != number);
        self.holders.store(holds.len(), Ordering::SeqCst);
        self.opened.notify_all();
    }

    /// Returns the time until all holds end; `None` if there are none.
    pub(crate) fn held_for(&self) -> Option<Duration> {
        match self.holders.load(Ordering::SeqCst) {
            0 => None,
            _ => self.left(&mut self.holds.lock()),
        }
    }

    /// Removes holds whose deadline has passed; returns the time until the others end.
    fn left(&self, holds: &mut Vec<GateHold>) -> Option<Duration> {
        let now = monotonic_now();
        holds.retain(|hold| hold.until > now);
        self.holders.store(holds.len(), Ordering::SeqCst);
        let last = holds.iter().map(|hold| hold.until).max();
        last.map(|until| until.saturating_duration_since(now))
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
            let mut holds = self.holds.lock();
            outcome = loop {
                let Some(held) = self.left(&mut holds) else { break Ok(true) };
                if cancelled.iter().any(|flag| flag.load(Ordering::Relaxed)) {
                    break Err(Error::Cancelled);
                }
                let left = deadline.map(|at| at.saturating_duration_since(monotonic_now()));
                if left == Some(Duration::ZERO) {
                    break Ok(false);
                }
                let nap = left.map_or(CANCEL_POLL, |left| left.min(CANCEL_POLL)).min(held);
                self.opened.wait_for(&mut holds, nap);
            };
        });
        outcome
    }
}

/// An object with a service gate.
pub(crate) trait Gated: Send + Sync {
    /// Returns the gate.
    fn gate(&self) -> &ServiceGate;
}

/// Guard that holds a gate closed, until it is dropped or its deadline has passed.
pub struct HoldGuard {
    held: Arc<dyn Gated>,
    number: u64,
    until: Instant,
}

impl HoldGuard {
    /// Closes the gate for at most that long.
    pub(crate) fn new(held: Arc<dyn Gated>, limit: Duration) -> HoldGuard {
        let until = monotonic_now() + limit;
        let number = held.gate().hold(until);
        HoldGuard { held, number, until }
    }

    /// Returns whether its deadline is still to come.
    pub fn is_held(&self) -> bool {
        monotonic_now() < self.until
    }
}

impl Drop for HoldGuard {
    fn drop(&mut self) {
        self.held.gate().release(self.number);
    }
}
