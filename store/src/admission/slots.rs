//! State machine of the execution slots: holders, waiters, and order of grants. Time and tickets
//! are arguments, so that tests can run any schedule.
//!
//! # Invariants
//!
//! 1. There is no waiter while a slot is free.
//!
//! `Slots::check` asserts it in debug builds. Grants are first come, first served.

use std::collections::VecDeque;

use smallvec::SmallVec;

/// Statistics of the slots, for system views.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionStatus {
    /// Maximal number of long statements that work concurrently.
    pub handlers: usize,
    /// Number of slots in use.
    pub active: usize,
    /// Number of waiters.
    pub queued: usize,
    /// Number of grants since the start.
    pub admitted: u64,
    /// Number of grants after a wait.
    pub waited: u64,
    /// Total time of these waits in microseconds.
    pub waited_micros: u64,
}

/// The slots; `T` is the ticket of a waiter.
pub(super) struct Slots<T> {
    handlers: usize,
    active: usize,
    waiting: VecDeque<(T, i64)>,
    admitted: u64,
    waited: u64,
    waited_micros: u64,
}

impl<T> Slots<T> {
    /// Returns free slots, at least one.
    pub(super) fn new(handlers: usize) -> Slots<T> {
        Slots {
            handlers: handlers.max(1),
            active: 0,
            waiting: VecDeque::new(),
            admitted: 0,
            waited: 0,
            waited_micros: 0,
        }
    }

    /// Takes a slot if one is free and there is no waiter. Otherwise the caller joins the queue.
    pub(super) fn enter(&mut self) -> bool {
        let free = self.waiting.is_empty() && self.active < self.handlers;
        if free {
            self.take();
        }
        free
    }

    /// Joins the queue at its end.
    pub(super) fn join(&mut self, ticket: T, now_micros: i64) {
        self.waiting.push_back((ticket, now_micros));
        self.check();
    }

    /// Returns the number of waiters.
    pub(super) fn queued(&self) -> usize {
        self.waiting.len()
    }

    /// Releases a slot; returns the tickets of the waiters that are granted one.
    pub(super) fn leave(&mut self, now_micros: i64) -> SmallVec<[T; 2]> {
        debug_assert!(self.active > 0, "who leaves had a slot");
        self.active = self.active.saturating_sub(1);
        let mut granted = SmallVec::new();
        while self.active < self.handlers
            && let Some((ticket, since)) = self.waiting.pop_front()
        {
            self.take();
            self.note_wait(since, now_micros);
            granted.push(ticket);
        }
        self.check();
        granted
    }

    /// Removes the ticket for which `is_it` holds. Returns whether it was still waiting;
    /// otherwise it was granted.
    pub(super) fn remove_waiter(&mut self, is_it: impl Fn(&T) -> bool) -> bool {
        let place = self.waiting.iter().position(|(ticket, _)| is_it(ticket));
        let was_waiting = place.is_some_and(|place| self.waiting.remove(place).is_some());
        self.check();
        was_waiting
    }

    /// Takes a slot beyond the limit, after a wait since `since_micros` that reached its maximum.
    pub(super) fn enter_beyond_limit(&mut self, since_micros: i64, now_micros: i64) {
        self.take();
        self.note_wait(since_micros, now_micros);
    }

    /// Returns the statistics.
    pub(super) fn status(&self) -> AdmissionStatus {
        AdmissionStatus {
            handlers: self.handlers,
            active: self.active,
            queued: self.waiting.len(),
            admitted: self.admitted,
            waited: self.waited,
            waited_micros: self.waited_micros,
        }
    }

    fn check(&self) {
        debug_assert!(self.waiting.is_empty() || self.active >= self.handlers, "a slot is free");
        debug_assert!(self.active as u64 <= self.admitted, "a slot was not granted");
        debug_assert!(self.waited <= self.admitted, "more grants after a wait than grants");
    }

    fn take(&mut self) {
        self.active += 1;
        self.admitted += 1;
    }

    fn note_wait(&mut self, since_micros: i64, now_micros: i64) {
        self.waited += 1;
        let waited = u64::try_from(now_micros.saturating_sub(since_micros)).unwrap_or(0);
        self.waited_micros = self.waited_micros.saturating_add(waited);
    }
}
