//! Read-ahead: region threads process the partitions of a large read ahead of its caller.
//!
//! A partition is a [`Producer`]: the rows of one region, the pages of an endpoint call. Region
//! threads are shared by the partitions; the caller takes the items, of any partition or of a
//! certain one.
//!
//! ```text
//!   part 0  [item][item]      <- full: no thread works on it until an item is taken
//!   part 1  [item]            <- a region thread produces the next
//!   part 2                    <- the caller waits for it: produces the next if no thread does
//!   part 3                    <- beyond the window: not started
//! ```
//!
//! # Invariants
//!
//! 1. No region thread waits for room: a full partition leaves the queue, and is queued again
//!    when the caller has taken an item. So a caller that does not take stops all reading.
//! 2. A task produces at most [`Bounds::items`] items, then goes to the end of the pool's queue;
//!    only the caller, never a region thread, queues tasks. So statements share the pool fairly.
//! 3. The caller waits only for an item that a thread is producing at present. It processes idle
//!    partitions itself, so that it progresses without any region thread, and a pool that is full
//!    of other work cannot block it.
//! 4. Until the caller calls `go_parallel` it does all work itself, so that short reads use no
//!    other thread.
//! 5. After an error or a drop, no partition is started; a running producer sees its flag.
//!
//! Debug assertions check the bound of 2, and 3 before the caller waits. `read_ahead/tests.rs`
//! checks 1, 4 and 5.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::admission::holds_slot;
use crate::memory::AccountId;
use crate::options::BlockingSection;
use crate::read_statistics::{ReadStatistics, RegionReads, add_read_figures, add_region_reads};
use crate::read_statistics::{is_read_by_region, read_by_region, read_figures};

/// Producer of the items of a partition.
pub trait Producer: Send {
    /// Type of the items.
    type Item: Send;
    /// Type of the errors.
    type Error: Send;

    /// Returns the next item; `None` at the end.
    fn next(&mut self) -> Result<Option<Self::Item>, Self::Error>;

    /// Returns the memory that an item takes, in bytes.
    fn byte_count(item: &Self::Item) -> usize;
}

/// Limits of read-ahead.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Produced items of one partition that are not taken.
    pub items: usize,
    /// Bytes of all produced items that are not taken, above which only the item that the caller
    /// waits for is started. Exceeded by items in production.
    pub bytes: usize,
    /// Number of partitions that are started and not at their end.
    pub parts: usize,
}

/// Bytes of produced items that are not taken, over all statements.
#[derive(Debug)]
pub(crate) struct ReadAheadBytes {
    used: AtomicUsize,
    /// Limit above which only items that a caller waits for are started.
    limit: usize,
}

impl ReadAheadBytes {
    /// Returns a gauge at zero.
    pub(crate) fn new(limit: usize) -> ReadAheadBytes {
        ReadAheadBytes { used: AtomicUsize::new(0), limit }
    }

    /// Returns the bytes.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn release(&self, bytes: usize) {
        let before = self.used.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "{bytes} bytes are released, {before} were counted");
    }
}

/// Item that the caller requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// Any available item.
    Any,
    /// The next item of the first partition that is not at its end.
    InOrder,
    /// The next item of this partition.
    Of(usize),
}

/// Partitions that are read ahead. See the module.
pub(crate) struct ReadAheadQueue<P: Producer> {
    state: Mutex<QueueState<P>>,
    /// Signalled when a partition changes.
    changed: Condvar,
    bounds: Bounds,
    /// Set to stop the producers, which check it.
    stopped: Arc<AtomicBool>,
    /// Shared by all statements.
    gauge: Arc<ReadAheadBytes>,
    /// True if the caller collects statistics by region.
    by_region: bool,
    /// The memory account of the caller.
    account: AccountId,
}

struct QueueState<P: Producer> {
    parts: Vec<ReadPartition<P>>,
    /// Partitions before this one are at their end, and all their items taken.
    first: usize,
    /// Bytes of the items of all partitions.
    bytes: usize,
    parallel: bool,
    failure: Option<Failure<P::Error>>,
    /// Cost of other threads' reads, until the caller takes it over.
    figures: ReadStatistics,
    /// The same by region.
    regions: RegionReads,
}

struct ReadPartition<P: Producer> {
    /// The producer, unless it is running or at its end.
    producer: Option<P>,
    /// True while it is in the pool's queue.
    queued: bool,
    ended: bool,
    items: VecDeque<P::Item>,
}

/// Thread that produces an item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProducingThread {
    Caller,
    Pool,
}

enum Failure<E> {
    Error(E),
    Panic(Box<dyn Any + Send>),
}

impl<P: Producer> ReadPartition<P> {
    fn is_done(&self) -> bool {
        self.ended && self.items.is_empty()
    }
}

impl<P: Producer> QueueState<P> {
    /// Returns the partitions that may be processed.
    fn window(&self, bounds: &Bounds) -> Vec<usize> {
        let unfinished = (self.first..self.parts.len()).filter(|&part| !self.parts[part].is_done());
        unfinished.take(bounds.parts.max(1)).collect()
    }

    fn advance(&mut self) {
        while self.parts.get(self.first).is_some_and(ReadPartition::is_done) {
            self.first += 1;
        }
    }

    /// Returns the partitions from which the caller would take an item, the best first.
    fn candidates(&self, take: Take, bounds: &Bounds) -> Vec<usize> {
        match take {
            Take::Any => self.window(bounds),
            Take::InOrder => {
                let next = Some(self.first).filter(|&part| part < self.parts.len());
                next.into_iter().collect()
            }
            Take::Of(part) => {
                let open = self.parts.get(part).is_some_and(|part| !part.is_done());
                if open { vec![part] } else { Vec::new() }
            }
        }
    }
}

/// Next action of the caller.
enum Step<P: Producer> {
    Take(usize, P::Item),
    Make(usize, P),
    Wait,
    End,
}

impl<P: Producer> ReadAheadQueue<P> {
    /// Returns partitions that are not started. The producers must check `stopped`.
    pub(crate) fn new(
        producers: impl IntoIterator<Item = P>,
        bounds: Bounds,
        stopped: Arc<AtomicBool>,
        gauge: Arc<ReadAheadBytes>,
    ) -> ReadAheadQueue<P> {
        let part = |producer| ReadPartition {
            producer: Some(producer),
            queued: false,
            ended: false,
            items: VecDeque::new(),
        };
        let state = QueueState {
            parts: producers.into_iter().map(part).collect(),
            first: 0,
            bytes: 0,
            parallel: false,
            failure: None,
            figures: ReadStatistics::default(),
            regions: RegionReads::default(),
        };
        ReadAheadQueue {
            state: Mutex::new(state),
            changed: Condvar::new(),
            bounds,
            stopped,
            gauge,
            by_region: is_read_by_region(),
            account: AccountId::current(),
        }
    }

    /// Allows region threads to join. Returns whether they were not allowed before.
    pub(crate) fn go_parallel(&self) -> bool {
        !std::mem::replace(&mut self.state.lock().parallel, true)
    }

    /// Stops all work: running producers see the flag, none is started.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        let mut state = self.state.lock();
        let parts = std::mem::take(&mut state.parts);
        state.first = 0;
        self.gauge.release(std::mem::take(&mut state.bytes));
        drop(state);
        drop(parts);
    }

    /// Returns the next item, with its partition; `None` at the end. `queue` submits a partition
    /// to the pool, for [`ReadAheadQueue::work`].
    ///
    /// # Errors
    ///
    /// The first one of any partition. A producer's panic is resumed here.
    pub(crate) fn next(
        &self,
        take: Take,
        blocking: &dyn BlockingSection,
        queue: &mut dyn FnMut(usize),
    ) -> Result<Option<(usize, P::Item)>, P::Error> {
        loop {
            let mut state = self.state.lock();
            if let Some(failure) = state.failure.take() {
                self.stopped.store(true, Ordering::Relaxed);
                drop(state);
                match failure {
                    Failure::Error(error) => return Err(error),
                    Failure::Panic(panic) => resume_unwind(panic),
                }
            }
            let step = self.step(&mut state, take);
            let wanted = self.queue_more(&mut state);
            add_read_figures(std::mem::take(&mut state.figures));
            add_region_reads(&std::mem::take(&mut state.regions));
            drop(state);
            wanted.into_iter().for_each(&mut *queue);
            match step {
                Step::Take(part, item) => return Ok(Some((part, item))),
                Step::Make(part, producer) => self.make(part, producer, 1, ProducingThread::Caller),
                Step::Wait => blocking.run(&mut || self.wait(take)),
                Step::End => return Ok(None),
            }
        }
    }

    /// Decides about the next action of the caller.
    fn step(&self, state: &mut QueueState<P>, take: Take) -> Step<P> {
        state.advance();
        let candidates = state.candidates(take, &self.bounds);
        for &part in &candidates {
            if let Some(item) = state.parts[part].items.pop_front() {
                let bytes = P::byte_count(&item);
                debug_assert!(bytes <= state.bytes, "an item has grown since it was counted");
                state.bytes -= bytes;
                self.gauge.release(bytes);
                return Step::Take(part, item);
            }
        }
        for &part in &candidates {
            if let Some(producer) = state.parts[part].producer.take() {
                return Step::Make(part, producer);
            }
        }
        if candidates.is_empty() { Step::End } else { Step::Wait }
    }

    /// Marks and returns the partitions to be queued.
    fn queue_more(&self, state: &mut QueueState<P>) -> Vec<usize> {
        if !state.parallel || state.failure.is_some() {
            return Vec::new();
        }
        let mut wanted = state.window(&self.bounds);
        wanted.retain(|&part| {
            let idle = state.parts[part].producer.is_some() && !state.parts[part].queued;
            idle && self.has_room(state, part)
        });
        wanted.iter().for_each(|&part| state.parts[part].queued = true);
        wanted
    }

    /// Waits until there may be an action for the caller.
    fn wait(&self, take: Take) {
        let mut state = self.state.lock();
        while state.failure.is_none() {
            state.advance();
            let candidates = state.candidates(take, &self.bounds);
            let ready = |&part: &usize| {
                let part = &state.parts[part];
                !part.items.is_empty() || part.producer.is_some()
            };
            if candidates.is_empty() || candidates.iter().any(ready) {
                return;
            }
            debug_assert!(!holds_slot(), "a slot is held during a wait for a region thread");
            debug_assert!(
                candidates.iter().all(|&part| !state.parts[part].ended),
                "no thread produces the item"
            );
            self.changed.wait(&mut state);
        }
    }

    fn has_room(&self, state: &QueueState<P>, part: usize) -> bool {
        state.parts[part].items.len() < self.bounds.items
            && state.bytes < self.bounds.bytes
            && self.gauge.used() < self.gauge.limit
    }

    /// Processes a partition on a pool thread.
    pub(crate) fn work(&self, part: usize) {
        let _account = self.account.enter();
        let mut state = self.state.lock();
        let Some(queued) = state.parts.get_mut(part) else { return };
        queued.queued = false;
        // The caller may have been faster, and the room may be used up again.
        if !self.has_room(&state, part) || self.stopped.load(Ordering::Relaxed) {
            return;
        }
        let producer = state.parts[part].producer.take();
        drop(state);
        if let Some(producer) = producer {
            self.make(part, producer, self.bounds.items, ProducingThread::Pool);
        }
    }

    /// Produces items of a partition until there are `count`, or no room for more.
    fn make(&self, part: usize, mut producer: P, count: usize, by: ProducingThread) {
        for made in 1..=count {
            let before = read_figures();
            let mut make = || catch_unwind(AssertUnwindSafe(|| producer.next()));
            let (next, regions) = match self.by_region && by == ProducingThread::Pool {
                true => read_by_region(make),
                false => (make(), RegionReads::default()),
            };
            let mut state = self.state.lock();
            if by == ProducingThread::Pool {
                state.figures = state.figures + (read_figures() - before);
                state.regions.merge(&regions);
            }
            let failure = match next {
                Ok(Ok(next)) => {
                    let ended = next.is_none();
                    let kept = self.keep(&mut state, part, next);
                    let goes_on = kept && !ended && made < count;
                    if goes_on && self.has_room(&state, part) {
                        self.changed.notify_all();
                        continue;
                    }
                    if kept && !ended {
                        state.parts[part].producer = Some(producer);
                        self.changed.notify_all();
                        return;
                    }
                    None
                }
                Ok(Err(error)) => Some(Failure::Error(error)),
                Err(panic) => Some(Failure::Panic(panic)),
            };
            if let Some(failure) = failure {
                // Producers stopped by the first failure fail too; the first one counts.
                if !self.stopped.swap(true, Ordering::Relaxed) {
                    state.failure = Some(failure);
                }
            }
            self.leave(state, part);
            return;
        }
    }

    /// Stores an item; returns whether more are needed.
    fn keep(
        &self,
        state: &mut MutexGuard<'_, QueueState<P>>,
        part: usize,
        item: Option<P::Item>,
    ) -> bool {
        if state.parts.get(part).is_none() {
            return false;
        }
        if let Some(item) = item {
            let bytes = P::byte_count(&item);
            state.bytes += bytes;
            self.gauge.used.fetch_add(bytes, Ordering::Relaxed);
            let part = &mut state.parts[part];
            part.items.push_back(item);
            debug_assert!(part.items.len() <= self.bounds.items.max(1), "items of a partition");
            debug_assert!(!part.ended && part.producer.is_none(), "two producers of a partition");
        }
        true
    }

    /// Ends a partition without further items.
    fn leave(&self, mut state: MutexGuard<'_, QueueState<P>>, part: usize) {
        if let Some(part) = state.parts.get_mut(part) {
            part.ended = true;
        }
        self.changed.notify_all();
    }
}

impl<P: Producer> Drop for ReadAheadQueue<P> {
    fn drop(&mut self) {
        self.gauge.release(self.state.get_mut().bytes);
    }
}

#[cfg(test)]
mod tests;
