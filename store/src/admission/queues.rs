//! The queues of admission: who works, who waits, who is next. A plain state machine: time and
//! tickets are given to it, so that tests can play any order.
//!
//! # Invariants
//!
//! 1. When somebody has left, nobody waits in a queue that has a free slot.
//! 2. A queue is first come, first served.
//! 3. Short reads and writes never wait because of scans: scans use slots beyond their own only
//!    while nobody writes, and nothing short ended for [`QUIET_MICROS`], and give them back at
//!    their next look.

use std::collections::VecDeque;

use smallvec::SmallVec;

use crate::options::AdmissionOptions;

/// How long there must be neither short reads nor writes before scans use the slots of reads.
pub(super) const QUIET_MICROS: i64 = 50_000;
/// How long one works while others of its queue wait.
pub(super) const QUANTUM_MICROS: i64 = 5_000;

/// A queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// Changes of data.
    Write = 0,
    /// Reads that are short, or not yet long.
    Read = 1,
    /// Long reads.
    Scan = 2,
}

impl Queue {
    const ALL: [Queue; 3] = [Queue::Write, Queue::Read, Queue::Scan];
}

/// Figures of a queue, for system views.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueStatus {
    /// What goes through it.
    pub queue: Queue,
    /// Who may work at a time.
    pub handlers: usize,
    /// Who works now.
    pub active: usize,
    /// Who waits now.
    pub queued: usize,
    /// How often work was let in since start.
    pub admitted: u64,
    /// How often it had to wait before.
    pub waited: u64,
    /// Microseconds that those waited.
    pub waited_micros: u64,
}

/// The queues; `T` is what is waited with.
pub(super) struct Queues<T> {
    lines: [Line<T>; 3],
    /// Which line each queue goes by: a ratio of 0 lets two share one.
    line_of: [usize; 3],
    /// Scans that may work at a time when all else is quiet.
    scans_max: usize,
    last_short_micros: i64,
}

struct Line<T> {
    handlers: usize,
    active: usize,
    waiting: VecDeque<(T, i64)>,
    admitted: u64,
    waited: u64,
    waited_micros: u64,
}

impl<T> Queues<T> {
    /// Returns empty queues. `threads` is how many scans can work at once to any purpose.
    pub(super) fn new(options: &AdmissionOptions, threads: usize) -> Queues<T> {
        let handlers = options.handlers.max(1);
        let part = |whole: usize, ratio: f64| (whole as f64 * ratio.clamp(0.0, 1.0)) as usize;
        let (write, read) = match options.read_ratio > 0.0 {
            true => {
                let write = (handlers as f64 * (1.0 - options.read_ratio.min(1.0))).round();
                let write = (write as usize).max(1);
                (write, handlers.saturating_sub(write).max(1))
            }
            false => (handlers, handlers),
        };
        let scans_apart = options.read_ratio > 0.0 && options.scan_ratio > 0.0;
        let scan = part(read, options.scan_ratio).max(1);
        let short = if scans_apart { read.saturating_sub(scan).max(1) } else { read };
        let line = |handlers| Line {
            handlers,
            active: 0,
            waiting: VecDeque::new(),
            admitted: 0,
            waited: 0,
            waited_micros: 0,
        };
        Queues {
            lines: [line(write), line(short), line(scan)],
            line_of: match (options.read_ratio > 0.0, scans_apart) {
                (false, _) => [0, 0, 0],
                (true, false) => [0, 1, 1],
                (true, true) => [0, 1, 2],
            },
            scans_max: threads.clamp(scan, (short + scan).max(scan)),
            last_short_micros: i64::MIN,
        }
    }

    /// Lets work in if there is a slot and nobody waits for it. Else the caller joins the queue.
    pub(super) fn enter(&mut self, queue: Queue, now_micros: i64) -> bool {
        let index = self.line_of[queue as usize];
        let free = self.lines[index].waiting.is_empty() && self.has_room(index, now_micros);
        if free {
            let line = &mut self.lines[index];
            line.active += 1;
            line.admitted += 1;
        }
        free
    }

    /// Joins a queue at its end.
    pub(super) fn join(&mut self, queue: Queue, ticket: T, now_micros: i64) {
        let line = &mut self.lines[self.line_of[queue as usize]];
        line.waiting.push_back((ticket, now_micros));
    }

    /// Gives a slot back; returns the tickets of those who may work now.
    pub(super) fn leave(&mut self, queue: Queue, now_micros: i64) -> SmallVec<[T; 2]> {
        let line = &mut self.lines[self.line_of[queue as usize]];
        line.active = line.active.saturating_sub(1);
        self.grant(now_micros)
    }

    /// Notes that a short statement has ended.
    pub(super) fn note_short(&mut self, now_micros: i64) {
        self.last_short_micros = now_micros;
    }

    /// Goes on with work that was set aside, whether there is a slot or not.
    pub(super) fn resume(&mut self, queue: Queue) {
        self.lines[self.line_of[queue as usize]].active += 1;
    }

    /// Takes back a ticket that `is_it`. Returns whether it was still waiting; else it was granted.
    pub(super) fn give_up(&mut self, queue: Queue, is_it: impl Fn(&T) -> bool) -> bool {
        let waiting = &mut self.lines[self.line_of[queue as usize]].waiting;
        let place = waiting.iter().position(|(ticket, _)| is_it(ticket));
        place.is_some_and(|place| waiting.remove(place).is_some())
    }

    /// Returns whether work that began then is to let others work.
    pub(super) fn is_due(&self, queue: Queue, began_micros: i64, now_micros: i64) -> bool {
        let index = self.line_of[queue as usize];
        let line = &self.lines[index];
        let had_its_turn = now_micros.saturating_sub(began_micros) >= QUANTUM_MICROS;
        line.active > self.limit(index, now_micros) || (had_its_turn && !line.waiting.is_empty())
    }

    /// Returns whether a queue has a line of its own for long work.
    pub(super) fn has_scan_line(&self) -> bool {
        self.line_of[Queue::Scan as usize] == Queue::Scan as usize
    }

    /// Returns the figures of all queues that there are.
    pub(super) fn status(&self) -> Vec<QueueStatus> {
        let own = |queue: &Queue| self.line_of[*queue as usize] == *queue as usize;
        let figures = |queue: Queue| {
            let line = &self.lines[queue as usize];
            QueueStatus {
                queue,
                handlers: line.handlers,
                active: line.active,
                queued: line.waiting.len(),
                admitted: line.admitted,
                waited: line.waited,
                waited_micros: line.waited_micros,
            }
        };
        Queue::ALL.into_iter().filter(own).map(figures).collect()
    }

    fn has_room(&self, index: usize, now_micros: i64) -> bool {
        self.lines[index].active < self.limit(index, now_micros)
    }

    /// Returns how many may work in a line now.
    fn limit(&self, index: usize, now_micros: i64) -> usize {
        let own = self.lines[index].handlers;
        if index != Queue::Scan as usize {
            return own;
        }
        let [write, read, _] = &self.lines;
        let rest = now_micros.saturating_sub(self.last_short_micros);
        // A clock that was set back makes the rest negative, and the scans modest for once.
        let is_idle = |line: &Line<T>| line.active == 0 && line.waiting.is_empty();
        let is_quiet = is_idle(write) && read.waiting.is_empty() && rest >= QUIET_MICROS;
        if is_quiet { self.scans_max.max(own) } else { own }
    }

    fn grant(&mut self, now_micros: i64) -> SmallVec<[T; 2]> {
        let mut granted = SmallVec::new();
        for index in 0..self.lines.len() {
            while self.has_room(index, now_micros) {
                let line = &mut self.lines[index];
                let Some((ticket, since)) = line.waiting.pop_front() else { break };
                line.active += 1;
                line.admitted += 1;
                line.waited += 1;
                let waited = u64::try_from(now_micros.saturating_sub(since)).unwrap_or(0);
                line.waited_micros = line.waited_micros.saturating_add(waited);
                granted.push(ticket);
            }
        }
        granted
    }
}
