//! Admission: who may work now, of the statements that read and write.
//!
//! As in HBase, short reads, writes and long scans have queues of their own with a number of
//! handlers each, by the settings `handlers`, `read_ratio` and `scan_ratio` (see
//! [`AdmissionOptions`](crate::options::AdmissionOptions)); so a table scan does not ruin the
//! times of point reads.
//!
//! # Who is admitted, and where
//!
//! Whoever runs a statement takes a [`Turn`] for each piece of it
//! ([`Transaction::turn`](crate::Transaction::turn)): the session while it makes the next batch of
//! rows or changes data, a region thread while it makes a page of an endpoint's answer. A turn
//! belongs to the thread, and whatever the thread calls meanwhile is part of it: a turn within a
//! turn is none. While rows travel to the client, nobody has a turn. A program that embeds the
//! store and takes none is not admitted by anybody, and pays nothing.
//!
//! ```text
//!   statement -- turn: Read --> works --+-- ends within SHORT_ROWS rows: a short read
//!                                       |
//!                                       +-- goes on: now a scan; looks every LOOK_ROWS rows
//!                                           whether others are to work, and queues up again
//! ```
//!
//! What is a scan is found out, not guessed: a statement is short until it has read [`SHORT_ROWS`]
//! rows, and long from then on, in all its turns. One that changes data stays in the queue of
//! writes unless what it reads makes it long.
//!
//! While nothing short has worked for 50 ms, scans use the handlers of short reads as well, as far
//! as there are region threads; and fall back at the next look when there is other work. Whether a
//! statement was short is known when it ends.
//!
//! # Nobody waits in a circle
//!
//! 1. A turn is never held during a wait: `SettingAside` stands around every wait of the store
//!    (row locks, memory, files, held regions, other threads of the call), gives the slot back
//!    before and goes on after, at once and beyond the limit if need be, for it may hold by then
//!    what others wait for. So who has a slot works, and leaves.
//! 2. A transaction may wait for a slot while it holds row locks: by 1, none of those who have the
//!    slots waits for them.
//! 3. Commits and rollbacks take no turn: they give locks back.
//!
//! What user code waits for without the store's knowledge, in an observer or an endpoint, counts as
//! work.

mod queues;

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;

use crate::admission::queues::Queues;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::options::{BlockingSection, Options};

pub use crate::admission::queues::{Queue, QueueStatus};

/// Rows that a statement may read before it is long.
pub const SHORT_ROWS: u64 = 4_096;
/// Rows between two looks whether others are to work.
const LOOK_ROWS: u64 = 512;
/// How often a waiter looks whether it was cancelled.
const CANCEL_POLL: Duration = Duration::from_millis(50);

/// What a turn is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// To read.
    Read,
    /// To change data.
    Write,
}

/// The queues of a store.
pub(crate) struct Admission {
    queues: Mutex<Queues<Arc<Ticket>>>,
    env: Arc<dyn Env>,
    /// The caller's own, without `SettingAside`.
    blocking: Arc<dyn BlockingSection>,
}

/// What one waits with.
#[derive(Default)]
struct Ticket {
    granted: Mutex<bool>,
    changed: Condvar,
}

/// Flags any of which ends a wait.
pub(crate) type StopFlags = SmallVec<[Arc<AtomicBool>; 2]>;

/// What a statement has done, in all its turns and threads.
#[derive(Debug, Default)]
pub(crate) struct StatementWork {
    /// Rows that it has read.
    rows: AtomicU64,
    had_turn: AtomicBool,
}

/// The turn that a thread has.
struct Held {
    admission: Arc<Admission>,
    queue: Queue,
    began_micros: i64,
    statement: Arc<StatementWork>,
    /// Rows read since the last look.
    unlooked: u64,
    /// Rows written since the last look.
    unlooked_writes: u64,
    stop: StopFlags,
}

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// The right to work; given back when it is dropped. It belongs to the thread that took it.
#[must_use]
pub struct Turn {
    /// Whether it is not within another turn of the thread.
    outermost: bool,
    _of_thread: PhantomData<*const ()>,
}

impl Admission {
    /// Returns queues with nobody in them, and the options with every wait setting turns aside.
    pub(crate) fn new(mut options: Options) -> (Arc<Admission>, Options) {
        let admission = Admission {
            queues: Mutex::new(Queues::new(&options.admission, options.region_threads)),
            env: Arc::clone(&options.env),
            blocking: Arc::clone(&options.blocking),
        };
        options.blocking = Arc::new(SettingAside { inner: options.blocking });
        (Arc::new(admission), options)
    }

    /// Takes a turn of a statement, once there is a slot.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`].
    pub(crate) fn turn(
        self: &Arc<Admission>,
        work: Work,
        statement: &Arc<StatementWork>,
        stop: StopFlags,
    ) -> Result<Turn> {
        if HELD.with_borrow(Option::is_some) {
            return Ok(Turn { outermost: false, _of_thread: PhantomData });
        }
        statement.had_turn.store(true, Ordering::Relaxed);
        let is_long = statement.rows.load(Ordering::Relaxed) >= SHORT_ROWS;
        let queue = match work {
            _ if is_long => Queue::Scan,
            Work::Read => Queue::Read,
            Work::Write => Queue::Write,
        };
        let began_micros = self.enter(queue, &stop)?;
        let (admission, statement) = (Arc::clone(self), Arc::clone(statement));
        HELD.set(Some(Held {
            admission,
            queue,
            began_micros,
            statement,
            unlooked: 0,
            unlooked_writes: 0,
            stop,
        }));
        Ok(Turn { outermost: true, _of_thread: PhantomData })
    }

    /// Returns the figures of the queues.
    pub(crate) fn status(&self) -> Vec<QueueStatus> {
        self.queues.lock().status()
    }

    /// Waits for a slot; returns when it was had.
    fn enter(&self, queue: Queue, stop: &StopFlags) -> Result<i64> {
        let now = self.env.now_micros();
        let ticket = {
            let mut queues = self.queues.lock();
            if queues.enter(queue, now) {
                return Ok(now);
            }
            let ticket = Arc::new(Ticket::default());
            queues.join(queue, Arc::clone(&ticket), now);
            ticket
        };
        let mut granted = false;
        self.blocking.run(&mut || granted = ticket.wait(stop));
        if !granted {
            let waiting = self.queues.lock().give_up(queue, |other| Arc::ptr_eq(other, &ticket));
            if !waiting {
                self.leave(queue);
            }
            return Err(Error::Cancelled);
        }
        Ok(self.env.now_micros())
    }

    /// Gives a slot back, before a wait or for good.
    fn leave(&self, queue: Queue) {
        let now = self.env.now_micros();
        let granted = self.queues.lock().leave(queue, now);
        granted.iter().for_each(|ticket| ticket.grant());
    }

    /// Ends a statement; its counts begin anew.
    pub(crate) fn end_statement(&self, statement: &StatementWork) {
        let rows = statement.rows.swap(0, Ordering::Relaxed);
        if statement.had_turn.swap(false, Ordering::Relaxed) && rows < SHORT_ROWS {
            self.queues.lock().note_short(self.env.now_micros());
        }
    }

    fn resume(&self, queue: Queue) {
        self.queues.lock().resume(queue);
    }
}

impl Ticket {
    fn grant(&self) {
        *self.granted.lock() = true;
        self.changed.notify_one();
    }

    /// Returns whether there is a slot now; otherwise the wait was stopped.
    fn wait(&self, stop: &StopFlags) -> bool {
        let mut granted = self.granted.lock();
        while !*granted {
            if stop.iter().any(|flag| flag.load(Ordering::Relaxed)) {
                return false;
            }
            self.changed.wait_for(&mut granted, CANCEL_POLL);
        }
        true
    }
}

impl Held {
    /// Lets others work, if it is their turn.
    fn look(&mut self) -> Result<()> {
        self.unlooked_writes = 0;
        let new = std::mem::take(&mut self.unlooked);
        let rows = self.statement.rows.fetch_add(new, Ordering::Relaxed) + new;
        let now = self.admission.env.now_micros();
        let granted = {
            let mut queues = self.admission.queues.lock();
            if self.queue != Queue::Scan && rows >= SHORT_ROWS && queues.has_scan_line() {
                let left = std::mem::replace(&mut self.queue, Queue::Scan);
                queues.leave(left, now)
            } else if queues.is_due(self.queue, self.began_micros, now) {
                queues.leave(self.queue, now)
            } else {
                return Ok(());
            }
        };
        granted.iter().for_each(|ticket| ticket.grant());
        self.began_micros = self.admission.enter(self.queue, &self.stop)?;
        Ok(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.outermost
            && let Some(held) = HELD.take()
        {
            held.statement.rows.fetch_add(held.unlooked, Ordering::Relaxed);
            held.admission.leave(held.queue);
        }
    }
}

/// Notes that the thread has read rows, and lets others work if it is their turn. Not to be called
/// with a lock that others may need, but for row locks.
///
/// # Errors
///
/// [`Error::Cancelled`] while it waits; the thread's turn is over then.
#[inline]
pub(crate) fn worked(rows: u64) -> Result<()> {
    note(rows, 0)
}

/// Notes that the thread has written rows, as [`worked`] does.
pub(crate) fn wrote(rows: u64) -> Result<()> {
    note(0, rows)
}

fn note(read: u64, written: u64) -> Result<()> {
    HELD.with_borrow_mut(|held| {
        let Some(turn) = held else { return Ok(()) };
        turn.unlooked += read;
        turn.unlooked_writes += written;
        if turn.unlooked + turn.unlooked_writes < LOOK_ROWS {
            return Ok(());
        }
        let looked = turn.look();
        if looked.is_err() {
            *held = None;
        }
        looked
    })
}

/// Gives the thread's slot back while `wait` waits for others.
pub(crate) fn set_aside<R>(wait: impl FnOnce() -> R) -> R {
    let held = HELD.take();
    if let Some(held) = &held {
        held.admission.leave(held.queue);
    }
    let result = wait();
    if let Some(held) = held {
        held.admission.resume(held.queue);
        HELD.set(Some(held));
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
