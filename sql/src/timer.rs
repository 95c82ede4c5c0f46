//! Statement timeouts: one thread that cancels statements at their deadline.
//!
//! It also has the cancellation flags of a session ([`StopFlag`]), which cancel requests,
//! timeouts, the memory governor and `pg_terminate_backend` set and which the executor polls.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use types::interrupt::Interrupt;

use store::env::process::{monotonic_now, spawn_thread};

/// Cancellation state of a session: the flag and its reason.
#[derive(Debug, Default)]
pub struct StopFlag {
    /// Flag that the running statement polls.
    pub stop: Arc<AtomicBool>,
    /// Set with `stop` on a statement timeout.
    timed_out: AtomicBool,
    /// Set with `stop` if the statement is cancelled for memory; the detail is in `shortage`.
    out_of_memory: AtomicBool,
    shortage: Mutex<Option<Box<MemoryShortage>>>,
    /// Set once, with `stop`, when the session is terminated.
    terminated: AtomicBool,
    /// Callback on termination, which wakes the thread that waits for the client.
    on_terminate: OnceLock<TerminationListener>,
    /// Store's number of the open transaction, or of the last one if none is open.
    transaction: AtomicU64,
    /// Deadline of the running statement.
    due: Mutex<StatementDeadline>,
}

/// Reason for cancelling a statement to free its memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryShortage {
    /// DETAIL: memory by session.
    pub detail: String,
}

/// Callback on the termination of a session.
struct TerminationListener(Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for TerminationListener {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("TerminationListener")
    }
}

#[derive(Debug, Default)]
struct StatementDeadline {
    at: Option<Instant>,
    /// True if the timer's queue has an entry for this flag. The entry checks `at` when it is
    /// due, so a session has at most one entry.
    queued: bool,
}

impl StopFlag {
    /// Returns an interrupt that polls the flag, yields the execution slot, and checks the memory
    /// limit.
    pub fn interrupt(&self) -> Interrupt {
        Interrupt::new(Arc::clone(&self.stop))
            .with_yield_hook(store::admission::yield_slot)
            .with_allocation_hook(store::memory::may_take)
    }

    /// Clears the flag for the next statement.
    pub fn begin_statement(&self) {
        self.due.lock().at = None;
        self.timed_out.store(false, Ordering::Relaxed);
        self.out_of_memory.store(false, Ordering::Relaxed);
        self.stop.store(self.is_terminated(), Ordering::Relaxed);
    }

    /// Clears the flag for the clean-up after the session's end, terminated or not.
    pub fn clear_for_cleanup(&self) {
        self.begin_statement();
        self.stop.store(false, Ordering::Relaxed);
    }

    /// Cancels the running statement and terminates the session.
    pub fn terminate(&self) {
        self.terminated.store(true, Ordering::SeqCst);
        self.stop.store(true, Ordering::SeqCst);
        if let Some(TerminationListener(wake)) = self.on_terminate.get() {
            wake();
        }
    }

    /// Returns whether the session is terminated.
    pub fn is_terminated(&self) -> bool {
        self.terminated.load(Ordering::SeqCst)
    }

    /// Sets the callback for the termination; only the first call has an effect.
    pub fn on_terminate(&self, wake: Box<dyn Fn() + Send + Sync>) {
        // A session has one server, which sets the callback once.
        let _ = self.on_terminate.set(TerminationListener(wake));
    }

    /// Records the number of a transaction that the session has begun.
    pub fn set_transaction(&self, number: u64) {
        self.transaction.store(number, Ordering::Relaxed);
    }

    /// Returns the number of the open transaction, or of the last one if none is open; 0 if there
    /// was none.
    pub fn transaction(&self) -> u64 {
        self.transaction.load(Ordering::Relaxed)
    }

    /// Returns whether the statement was cancelled by its timeout.
    pub fn timed_out(&self) -> bool {
        self.timed_out.load(Ordering::Relaxed)
    }

    /// Cancels the running statement to free its memory.
    pub fn stop_for_memory(&self, shortage: MemoryShortage) {
        *self.shortage.lock() = Some(Box::new(shortage));
        self.out_of_memory.store(true, Ordering::Relaxed);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns the reason if the statement was cancelled to free its memory.
    pub fn memory_shortage(&self) -> Option<MemoryShortage> {
        let stopped = self.out_of_memory.load(Ordering::Relaxed);
        stopped.then(|| self.shortage.lock().as_deref().cloned()).flatten()
    }

    /// Handles a due entry: cancels the statement if its deadline has passed, or returns the time
    /// of the next check.
    fn look(&self, now: Instant) -> Option<Instant> {
        let mut due = self.due.lock();
        match due.at {
            Some(at) if at > now => return Some(at),
            Some(_) => {
                self.timed_out.store(true, Ordering::Relaxed);
                self.stop.store(true, Ordering::Relaxed);
                due.at = None;
            }
            None => {}
        }
        due.queued = false;
        None
    }
}

struct Deadline {
    at: Instant,
    flag: Weak<StopFlag>,
}

impl PartialEq for Deadline {
    fn eq(&self, other: &Deadline) -> bool {
        self.at == other.at
    }
}

impl Eq for Deadline {}

impl PartialOrd for Deadline {
    fn partial_cmp(&self, other: &Deadline) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Deadline {
    fn cmp(&self, other: &Deadline) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

#[derive(Default)]
struct TimerQueue {
    deadlines: BinaryHeap<Reverse<Deadline>>,
    closed: bool,
}

#[derive(Default)]
struct TimerShared {
    queue: Mutex<TimerQueue>,
    changed: Condvar,
}

/// Timer thread and its queue. The thread starts with the first timeout.
#[derive(Default)]
pub struct Timer {
    shared: Arc<TimerShared>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Timer {
    /// Cancels the current statement of `flag` after `timeout`, unless another has begun.
    pub fn stop_after(&self, timeout: Duration, flag: &Arc<StopFlag>) {
        let at = monotonic_now() + timeout;
        {
            let mut due = flag.due.lock();
            due.at = Some(at);
            if std::mem::replace(&mut due.queued, true) {
                return;
            }
        }
        let deadline = Deadline { at, flag: Arc::downgrade(flag) };
        self.shared.queue.lock().deadlines.push(Reverse(deadline));
        self.shared.changed.notify_one();
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            *thread = spawn_thread("statement-timer", move || run(&shared))
                .map_err(|error| tracing::error!(%error, "could not start the statement timer"))
                .ok();
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.shared.queue.lock().closed = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.lock().take() {
            // The thread cannot panic; if it did, there is nothing left to stop.
            let _ = thread.join();
        }
    }
}

fn run(shared: &TimerShared) {
    let mut queue = shared.queue.lock();
    while !queue.closed {
        let now = monotonic_now();
        match queue.deadlines.peek() {
            None => shared.changed.wait(&mut queue),
            Some(Reverse(next)) if next.at > now => {
                let at = next.at;
                shared.changed.wait_until(&mut queue, at);
            }
            Some(_) => {
                let Some(Reverse(due)) = queue.deadlines.pop() else { continue };
                let Some(flag) = due.flag.upgrade() else { continue };
                if let Some(at) = flag.look(now) {
                    queue.deadlines.push(Reverse(Deadline { at, ..due }));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits for a flag that another thread sets.
    fn wait_for(flag: &AtomicBool) -> bool {
        let end = Instant::now() + Duration::from_secs(20);
        while Instant::now() < end {
            if flag.load(Ordering::Relaxed) {
                return true;
            }
            std::thread::yield_now();
        }
        false
    }

    #[test]
    fn timer_stops_only_running_statement() {
        let timer = Timer::default();
        let ended = Arc::new(StopFlag::default());
        timer.stop_after(Duration::from_millis(1), &ended);
        ended.begin_statement();
        let slow = Arc::new(StopFlag::default());
        timer.stop_after(Duration::from_millis(2), &slow);
        assert!(wait_for(&slow.stop));
        assert!(slow.timed_out());
        assert!(!ended.timed_out());
    }

    #[test]
    fn timer_keeps_one_entry_per_stop_flag() {
        let timer = Timer::default();
        let flag = Arc::new(StopFlag::default());
        for _ in 0..100 {
            flag.begin_statement();
            timer.stop_after(Duration::from_secs(3_600), &flag);
        }
        assert_eq!(timer.shared.queue.lock().deadlines.len(), 1);
    }
}
