//! Admission: how many statements that take long work at a time.
//!
//! Threads share the cores by the operating system's scheduling, which lets a thread that wakes go
//! ahead of those that compute. That holds while there are not many of those. So a statement that
//! has computed for [`LONG_MICROS`] needs one of a few slots to go on, by the setting `handlers`
//! (see [`AdmissionOptions`](crate::options::AdmissionOptions)); what is short needs none, and pays
//! for two writes to a thread-local variable.
//!
//! # Who looks, and where
//!
//! Whoever runs a statement takes a [`Turn`] for each piece of it
//! ([`Transaction::turn`](crate::Transaction::turn)): the session while it makes the next batch of
//! rows or changes data, a region thread while it makes a page of an endpoint's answer. A turn
//! belongs to the thread, and whatever the thread calls meanwhile is part of it: a turn within a
//! turn is none. While rows travel to the client, nobody has a turn. A program that embeds the
//! store and takes none is not admitted by anybody, and pays nothing.
//!
//! ```text
//!   statement -- turn --> works --+-- ends within LONG_MICROS: nothing was asked
//!                                 |
//!                                 +-- goes on: takes a slot, or queues up for one
//!                                        |  after QUANTUM_MICROS, while others wait:
//!                                        +-- gives it back, and queues up again
//! ```
//!
//! A turn looks at the time where the store has read or written rows ([`worked`]), and where a
//! computation looks whether it was cancelled ([`give_way`]); not at each of them, but after as
//! many as took a millisecond or so before. What counts is the time that the thread has had a core,
//! in all turns and threads of the statement.
//!
//! # Nobody waits in a circle
//!
//! 1. A slot is never held during a wait: `SettingAside` stands around every wait of the store
//!    (row locks, memory, files, held regions, other threads of the call), and gives it back. The
//!    next look after the wait takes one again. So who has a slot works, and leaves.
//! 2. A transaction may wait for a slot while it holds row locks: by 1, none of those who have the
//!    slots waits for them.
//! 3. Commits and rollbacks take no turn: they give locks back.
//! 4. No wait for a slot lasts longer than [`WAIT_MAX`]; then the work goes on beyond the limit. So
//!    a mutex that a computation holds at a look, against the rules, costs time and no more.
//!
//! What user code waits for without the store's knowledge, in an observer or an endpoint, counts
//! only as far as it computes.

mod slots;

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;

use crate::admission::slots::Slots;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::options::{BlockingSection, Options};

pub use crate::admission::slots::AdmissionStatus;

/// What a statement may compute before it is long, in microseconds.
pub const LONG_MICROS: u64 = 5_000;
/// How long one works while others wait.
const QUANTUM_MICROS: i64 = 5_000;
/// How long one waits for a slot at most.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// How often a waiter looks whether it was cancelled.
const CANCEL_POLL: Duration = Duration::from_millis(50);

/// Steps, of about a row each, before the first look of a turn at the time.
const FIRST_STRIDE: u32 = 256;
/// Steps between two looks at most.
const STRIDE_MAX: u32 = 1 << 14;
/// Steps that a look of a computation at its flag counts as: it may have done much since the last.
const COMPUTED_STEPS: u32 = 16;
/// The stride is chosen so that a look comes at intervals between these, in microseconds.
const INTERVAL_MICROS: std::ops::Range<i64> = 500..2_000;

/// The slots of a store.
pub(crate) struct Admission {
    slots: Mutex<Slots<Arc<Ticket>>>,
    /// How many wait for one: a copy, to be read without the lock.
    queued: AtomicUsize,
    env: Arc<dyn Env>,
}

/// What one waits with.
#[derive(Default)]
struct Ticket {
    granted: Mutex<bool>,
    changed: Condvar,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waited {
    Granted,
    Stopped,
    /// It lasted [`WAIT_MAX`].
    Enough,
}

/// Flags any of which ends a wait.
pub(crate) type StopFlags = SmallVec<[Arc<AtomicBool>; 2]>;

/// What a statement has done, in all its turns and threads.
#[derive(Debug, Default)]
pub(crate) struct StatementWork {
    /// Microseconds that its threads have computed, as of their last looks; 0 before the first.
    micros: AtomicU64,
    /// Steps before the first look, in turns that have ended.
    unlooked: AtomicU32,
}

/// The turn that a thread has.
struct Held {
    admission: Arc<Admission>,
    statement: Arc<StatementWork>,
    stop: StopFlags,
    /// Since when it has a slot, if it has one.
    slot_since: Option<i64>,
    /// The thread's time up to which the statement's is counted; `None` before the first look of a
    /// statement.
    counted_to: Option<u64>,
    /// Steps until the next look.
    until_look: u32,
    stride: u32,
    /// When the last look was.
    looked_at: Option<i64>,
}

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// A piece of a statement, by the thread that took it.
#[must_use]
pub struct Turn {
    /// Whether it is not within another turn of the thread.
    outermost: bool,
    _of_thread: PhantomData<*const ()>,
}

impl Admission {
    /// Returns slots that nobody has, and the options with every wait setting turns aside.
    pub(crate) fn new(mut options: Options) -> (Arc<Admission>, Options) {
        let admission = Admission {
            slots: Mutex::new(Slots::new(options.admission.handlers)),
            queued: AtomicUsize::new(0),
            env: Arc::clone(&options.env),
        };
        options.blocking = Arc::new(SettingAside { inner: options.blocking });
        (Arc::new(admission), options)
    }

    /// Begins a turn of a statement.
    pub(crate) fn turn(
        self: &Arc<Admission>,
        statement: &Arc<StatementWork>,
        stop: StopFlags,
    ) -> Turn {
        HELD.with_borrow_mut(|held| {
            let outermost = held.is_none();
            if outermost {
                let has_looked = statement.micros.load(Ordering::Relaxed) > 0;
                let unlooked = statement.unlooked.load(Ordering::Relaxed);
                *held = Some(Held {
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
            Turn { outermost, _of_thread: PhantomData }
        })
    }

    /// Returns the figures of the slots.
    pub(crate) fn status(&self) -> AdmissionStatus {
        self.slots.lock().status()
    }

    /// Waits for a slot; returns when it was had.
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
        if waited != Waited::Granted {
            let mut slots = self.slots.lock();
            let was_waiting = slots.give_up(|other| Arc::ptr_eq(other, &ticket));
            self.queued.store(slots.queued(), Ordering::Relaxed);
            if waited == Waited::Enough && was_waiting {
                slots.insist(since, now);
            }
            drop(slots);
            if waited == Waited::Stopped {
                if !was_waiting {
                    self.leave();
                }
                return Err(Error::Cancelled);
            }
        }
        Ok(now)
    }

    /// Gives a slot back.
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
    /// Ends a statement; its time begins anew. Within a turn it was a part of another statement,
    /// which goes on.
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

    fn wait(&self, stop: &StopFlags) -> Waited {
        let until = Instant::now() + WAIT_MAX;
        let mut granted = self.granted.lock();
        while !*granted {
            if stop.iter().any(|flag| flag.load(Ordering::Relaxed)) {
                return Waited::Stopped;
            }
            let rest = until.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return Waited::Enough;
            }
            self.changed.wait_for(&mut granted, rest.min(CANCEL_POLL));
        }
        Waited::Granted
    }
}

impl Held {
    /// Counts steps, and looks at the time when there were enough.
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

    /// Takes a slot if the statement has become long, and lets others work if it is their turn.
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
        let entered = self.admission.enter(&self.stop)?;
        (self.slot_since, self.looked_at) = (Some(entered), Some(entered));
        Ok(())
    }

    /// Chooses when the next look is to be.
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

    /// Counts the thread's time since the last look; returns what the statement has had, 1 at
    /// least: 0 says that nobody has looked.
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

impl Drop for Turn {
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

/// Notes that the thread has read or written rows, and lets others work if it is their turn. Not to
/// be called with a lock that others may need, but for row locks.
///
/// # Errors
///
/// [`Error::Cancelled`] while it waits.
#[inline]
pub(crate) fn worked(rows: u64) -> Result<()> {
    spend(u32::try_from(rows).unwrap_or(u32::MAX))
}

/// Lets others work if it is their turn: for computations, where they look whether they were
/// cancelled. If they were while it waits, the next look shows it.
#[inline]
pub fn give_way() {
    let _ = spend(COMPUTED_STEPS);
}

#[inline]
fn spend(steps: u32) -> Result<()> {
    HELD.with_borrow_mut(|held| match held {
        Some(held) => held.spend(steps),
        None => Ok(()),
    })
}

/// Gives the thread's slot back while `wait` waits for others.
pub(crate) fn set_aside<R>(wait: impl FnOnce() -> R) -> R {
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

/// Sets the thread's turn aside around every wait.
struct SettingAside {
    inner: Arc<dyn BlockingSection>,
}

impl BlockingSection for SettingAside {
    fn run(&self, wait: &mut dyn FnMut()) {
        set_aside(|| self.inner.run(wait));
    }
}
