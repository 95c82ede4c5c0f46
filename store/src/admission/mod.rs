//! Admission control: limits the number of long statements that compute concurrently.
//!
//! Threads share the cores by the operating system's scheduling, which favours a thread that
//! wakes up over those that compute, unless there are many of those. So a statement that has
//! computed for [`LONG_MICROS`] needs one of a few execution slots to continue, by the setting
//! `handlers` (see [`AdmissionOptions`](crate::options::AdmissionOptions)). Short statements need
//! none, and cost two writes to a thread-local variable.
//!
//! # Checks
//!
//! A thread that runs a statement takes a [`StatementTurn`] for each portion of it
//! ([`Transaction::turn`](crate::Transaction::turn)): the session while it computes the next
//! batch of rows or changes data, a region thread while it computes a page of an endpoint's
//! answer. A turn belongs to the thread and includes all calls of the thread; a nested turn has
//! no effect. While rows are sent to the client, no turn is held. A program that embeds the store
//! and takes no turns is not limited, and pays nothing.
//!
//! ```text
//!   statement -- turn --> works --+-- ends within LONG_MICROS: needs no slot
//!                                 |
//!                                 +-- continues: takes a slot, or queues for one
//!                                        |  after QUANTUM_MICROS, while others wait:
//!                                        +-- releases it, and queues again
//! ```
//!
//! A turn checks the time where the store has read or written rows ([`count_rows`]), and where a
//! computation checks for cancellation ([`yield_slot`]); not at each of these points, but after
//! about as many as took a millisecond before. The time is the CPU time of all threads and turns
//! of the statement.
//!
//! # Deadlock freedom
//!
//! 1. A slot is never held during a wait: `SlotReleasingWait` wraps every wait of the store (row
//!    locks, memory, files, held regions, other threads of the call), and releases it. The next
//!    check after the wait takes one again. So a thread with a slot always makes progress.
//! 2. A transaction may wait for a slot while it holds row locks: by 1, no slot holder waits for
//!    them.
//! 3. Commits and rollbacks take no turn: they release locks.
//! 4. No wait for a slot exceeds [`WAIT_MAX`]; then the thread continues beyond the limit. So a
//!    mutex that a computation holds at a check, against the rules, only costs time.
//!
//! Waits of user code in an observer or an endpoint that the store does not know count only by
//! their CPU time.
//!
//! The waits of the store assert 1 in debug builds ([`holds_slot`]); `Ticket::wait` keeps 4.

mod slots;

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;

use crate::admission::slots::Slots;
use crate::env::Env;
use crate::env::process::monotonic_now;
use crate::error::{Error, Result};
use crate::options::{BlockingSection, Options};

pub use crate::admission::slots::AdmissionStatus;

/// CPU time after which a statement is long, in microseconds.
pub const LONG_MICROS: u64 = 5_000;
/// Time slice of a slot holder while others wait.
const QUANTUM_MICROS: i64 = 5_000;
/// Maximal wait for a slot.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Interval at which a waiter checks for cancellation.
const CANCEL_POLL: Duration = Duration::from_millis(50);

/// Steps, of about a row each, before the first check of a turn.
const FIRST_STRIDE: u32 = 256;
/// Maximal number of steps between two checks.
const STRIDE_MAX: u32 = 1 << 14;
/// Steps that a cancellation check of a computation counts as: much may have been done since the
/// last.
const COMPUTED_STEPS: u32 = 16;
/// Target interval between checks, in microseconds, by which the stride is chosen.
const INTERVAL_MICROS: std::ops::Range<i64> = 500..2_000;

/// The execution slots of a store.
pub(crate) struct Admission {
    slots: Mutex<Slots<Arc<Ticket>>>,
    /// Number of waiters: a copy, to be read without the lock.
    queued: AtomicUsize,
    env: Arc<dyn Env>,
}

/// Wake-up state of a waiter.
#[derive(Default)]
struct Ticket {
    granted: Mutex<bool>,
    changed: Condvar,
}

/// Outcome of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotWaitOutcome {
    Granted,
    Stopped,
    /// The wait reached [`WAIT_MAX`].
    Enough,
}

/// Flags that end a wait if one is set.
pub(crate) type StopFlags = SmallVec<[Arc<AtomicBool>; 2]>;

/// CPU time of a statement, over all its turns and threads.
#[derive(Debug, Default)]
pub(crate) struct StatementWork {
    /// CPU microseconds of its threads at their last checks; 0 before the first.
    micros: AtomicU64,
    /// Steps before the first check, in turns that have ended.
    unlooked: AtomicU32,
}

/// The current turn of a thread.
struct ThreadTurn {
    admission: Arc<Admission>,
    statement: Arc<StatementWork>,
    stop: StopFlags,
    /// The time at which it got its slot, if it has one.
    slot_since: Option<i64>,
    /// The thread's CPU time that is included in the statement's; `None` before the first check
    /// of a statement.
    counted_to: Option<u64>,
    /// Steps until the next check.
    until_look: u32,
    stride: u32,
    /// Time of the last check.
    looked_at: Option<i64>,
}

thread_local! {
    static HELD: RefCell<Option<ThreadTurn>> = const { RefCell::new(None) };
}

/// Guard of a thread's work on a statement.
#[must_use]
pub struct StatementTurn {
    /// True if it is not nested in another turn of the thread.
    outermost: bool,
    _of_thread: PhantomData<*const ()>,
}

impl Admission {
    /// Returns free slots, and the options with every wait wrapped to release the slot.
    pub(crate) fn new(mut options: Options) -> (Arc<Admission>, Options) {
        let admission = Admission {
            slots: Mutex::new(Slots::new(options.admission.handlers)),
            queued: AtomicUsize::new(0),
            env: Arc::clone(&options.env),
        };
        options.blocking = Arc::new(SlotReleasingWait { inner: options.blocking });
        (Arc::new(admission), options)
    }

    /// Begins a turn of a statement.
    pub(crate) fn turn(
        self: &Arc<Admission>,
        statement: &Arc<StatementWork>,
        stop: StopFlags,
    ) -> StatementTurn {
        HELD.with_borrow_mut(|held| {
            let outermost = held.is_none();
            if outermost {
                let has_looked = statement.micros.load(Ordering::Relaxed) > 0;
                let unlooked = statement.unlooked.load(Ordering::Relaxed);
                *held = Some(ThreadTurn {
                    admission: Arc::clone(self),
                    statement: Arc::clone(statement),
                    stop,
                    slot_since: None,
                    counted_to: has_looked.then(|| self.env.thread_micros()),
                    until_look: match has_looked {
                        true => COMPUTED_STEPS,
                        false => FIRST_STRIDE.saturating_sub(unlooked),
                    },
                    stride: FIRST_STRIDE,
                    looked_at: None,
                });
            }
            StatementTurn { outermost, _of_thread: PhantomData }
        })
    }

    /// Returns the statistics of the slots.
    pub(crate) fn status(&self) -> AdmissionStatus {
        self.slots.lock().status()
    }

    /// Waits for a slot; returns the time at which it was granted.
    fn enter(&self, stop: &StopFlags) -> Result<i64> {
        let since = self.env.now_micros();
        let ticket = {
            let mut slots = self.slots.lock();
            if slots.enter() {
                return Ok(since);
            }
            let ticket = Arc::new(Ticket::default());
            slots.join(Arc::clone(&ticket), since);
            self.queued.store(slots.queued(), Ordering::Relaxed);
            ticket
        };
        let waited = ticket.wait(stop);
        let now = self.env.now_micros();
        if waited != SlotWaitOutcome::Granted {
            let mut slots = self.slots.lock();
            let was_waiting = slots.remove_waiter(|other| Arc::ptr_eq(other, &ticket));
            self.queued.store(slots.queued(), Ordering::Relaxed);
            if waited == SlotWaitOutcome::Enough && was_waiting {
                slots.enter_beyond_limit(since, now);
            }
            drop(slots);
            if waited == SlotWaitOutcome::Stopped {
                if !was_waiting {
                    self.leave();
                }
                return Err(Error::Cancelled);
            }
        }
        Ok(now)
    }

    /// Releases a slot.
    fn leave(&self) {
        let now = self.env.now_micros();
        let granted = {
            let mut slots = self.slots.lock();
            let granted = slots.leave(now);
            self.queued.store(slots.queued(), Ordering::Relaxed);
            granted
        };
        granted.iter().for_each(|ticket| ticket.grant());
    }
}

impl StatementWork {
    /// Ends a statement and resets its time. Within a turn, it was nested in another statement,
    /// which continues.
    pub(crate) fn end_statement(&self) {
        if HELD.with_borrow(Option::is_some) {
            return;
        }
        self.micros.store(0, Ordering::Relaxed);
        self.unlooked.store(0, Ordering::Relaxed);
    }
}

impl Ticket {
    fn grant(&self) {
        *self.granted.lock() = true;
        self.changed.notify_one();
    }

    fn wait(&self, stop: &StopFlags) -> SlotWaitOutcome {
        let until = monotonic_now() + WAIT_MAX;
        let mut granted = self.granted.lock();
        while !*granted {
            if stop.iter().any(|flag| flag.load(Ordering::Relaxed)) {
                return SlotWaitOutcome::Stopped;
            }
            let rest = until.saturating_duration_since(monotonic_now());
            if rest.is_zero() {
                return SlotWaitOutcome::Enough;
            }
            self.changed.wait_for(&mut granted, rest.min(CANCEL_POLL));
        }
        SlotWaitOutcome::Granted
    }
}

impl ThreadTurn {
    /// Counts steps, and checks the time when there were enough.
    #[inline]
    fn spend(&mut self, steps: u32) -> Result<()> {
        match self.until_look.checked_sub(steps) {
            Some(left) => {
                self.until_look = left;
                Ok(())
            }
            None => self.look(),
        }
    }

    /// Takes a slot if the statement has become long, and yields to waiters if its time slice is
    /// over.
    #[cold]
    fn look(&mut self) -> Result<()> {
        let now = self.admission.env.now_micros();
        self.set_stride(now);
        match self.slot_since {
            Some(since) => {
                let had_its_turn = now.saturating_sub(since) >= QUANTUM_MICROS;
                if !had_its_turn || self.admission.queued.load(Ordering::Relaxed) == 0 {
                    return Ok(());
                }
                self.leave();
            }
            None => {
                if self.count_time() < LONG_MICROS {
                    return Ok(());
                }
            }
        }
        debug_assert!(self.slot_since.is_none(), "a slot holder waits for another slot");
        let entered = self.admission.enter(&self.stop)?;
        (self.slot_since, self.looked_at) = (Some(entered), Some(entered));
        Ok(())
    }

    /// Chooses the number of steps to the next check.
    fn set_stride(&mut self, now: i64) {
        if let Some(before) = self.looked_at.replace(now) {
            let interval = now.saturating_sub(before);
            if interval < INTERVAL_MICROS.start {
                self.stride = (self.stride * 2).min(STRIDE_MAX);
            } else if interval >= INTERVAL_MICROS.end {
                self.stride = (self.stride / 4).max(1);
            }
        }
        self.until_look = self.stride;
    }

    /// Adds the thread's CPU time since the last check; returns the statement's total, at least
    /// 1: 0 means that there was no check.
    fn count_time(&mut self) -> u64 {
        let now = self.admission.env.thread_micros();
        let since = self.counted_to.replace(now).map_or(0, |before| now.saturating_sub(before));
        let new = since.max(1);
        self.statement.micros.fetch_add(new, Ordering::Relaxed) + new
    }

    fn leave(&mut self) {
        if self.slot_since.take().is_some() {
            self.admission.leave();
        }
    }
}

impl Drop for StatementTurn {
    fn drop(&mut self) {
        if self.outermost
            && let Some(mut held) = HELD.take()
        {
            match held.counted_to {
                Some(_) => drop(held.count_time()),
                None => {
                    let unlooked = FIRST_STRIDE.saturating_sub(held.until_look);
                    held.statement.unlooked.store(unlooked, Ordering::Relaxed);
                }
            }
            held.leave();
        }
    }
}

/// Records that the thread has read or written rows, and may wait for a slot. Must not be called
/// with a lock that others may need, except row locks.
///
/// # Errors
///
/// [`Error::Cancelled`] while it waits.
#[inline]
pub(crate) fn count_rows(rows: u64) -> Result<()> {
    spend(u32::try_from(rows).unwrap_or(u32::MAX))
}

/// Checkpoint of a computation, at its cancellation checks: may wait for a slot. A cancellation
/// during the wait is found by the next cancellation check.
#[inline]
pub fn yield_slot() {
    let _ = spend(COMPUTED_STEPS);
}

#[inline]
fn spend(steps: u32) -> Result<()> {
    HELD.with_borrow_mut(|held| match held {
        Some(held) => held.spend(steps),
        None => Ok(()),
    })
}

/// Returns whether the thread holds a slot: waits assert that it does not.
pub(crate) fn holds_slot() -> bool {
    HELD.with_borrow(|held| held.as_ref().is_some_and(|held| held.slot_since.is_some()))
}

/// Releases the thread's slot while `wait` waits for others.
pub(crate) fn without_slot<R>(wait: impl FnOnce() -> R) -> R {
    let mut held = HELD.take();
    if let Some(held) = &mut held {
        held.leave();
    }
    let result = wait();
    if held.is_some() {
        HELD.set(held);
    }
    result
}

/// Wrapper of every wait that releases the thread's slot.
struct SlotReleasingWait {
    inner: Arc<dyn BlockingSection>,
}

impl BlockingSection for SlotReleasingWait {
    fn run(&self, wait: &mut dyn FnMut()) {
        without_slot(|| self.inner.run(wait));
    }
}
