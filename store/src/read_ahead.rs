//! Reads the parts of something large on the region threads, ahead of the one who takes what comes.
//!
//! A part is a [`Producer`]: the rows of one region, the pages of an endpoint call. Region threads
//! take turns at the parts; the caller takes the items, of any part or of a certain one.
//!
//! ```text
//!   part 0  [item][item]      <- full: nobody works on it until an item is taken
//!   part 1  [item]            <- a region thread makes the next
//!   part 2                    <- the caller waits for it: makes the next itself if nobody does
//!   part 3                    <- beyond the window: not begun
//! ```
//!
//! # Invariants
//!
//! 1. Nobody holds a region thread while it waits for room: a full part is put aside, and goes on
//!    when the caller has taken something. So a caller that does not take stops all reading.
//! 2. A task makes at most [`Bounds::items`] items, then goes to the end of the pool's queue; only
//!    the caller, never a region thread, queues tasks. So statements take turns.
//! 3. The caller waits only for an item that a thread is making right now. What nobody works on it
//!    works on itself, so that it goes on without any region thread, and a pool that is full of
//!    others' work cannot block it.
//! 4. Until the caller says otherwise (`go_parallel`) it does all itself: what is short costs no
//!    other thread.
//! 5. After an error, or once dropped, no part is begun again; a producer that runs sees its flag.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::memory::AccountId;
use crate::options::BlockingSection;
use crate::read_figures::{ReadFigures, RegionReads, add_read_figures, add_region_reads};
use crate::read_figures::{is_read_by_region, read_by_region, read_figures};

/// Makes the items of a part, one after the other.
pub trait Producer: Send {
    /// What it makes.
    type Item: Send;
    /// Why it cannot.
    type Error: Send;

    /// Returns the next item; `None` at the end.
    fn next(&mut self) -> Result<Option<Self::Item>, Self::Error>;

    /// Returns the memory that an item takes, in bytes.
    fn byte_count(item: &Self::Item) -> usize;
}

/// How far ahead is read.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Items of one part that were made and not taken.
    pub items: usize,
    /// Bytes of all items that were made and not taken, after which none is begun but what the
    /// caller waits for. Exceeded by what is being made then.
    pub bytes: usize,
    /// Parts that are begun and not at their end; the first so many.
    pub parts: usize,
}

/// What all statements together have made ahead and not taken, in bytes.
#[derive(Debug)]
pub(crate) struct Gauge {
    used: AtomicUsize,
    /// Above it none reads ahead any more but what its caller waits for.
    limit: usize,
}

impl Gauge {
    /// Returns a gauge that nothing counts with yet.
    pub(crate) fn new(limit: usize) -> Gauge {
        Gauge { used: AtomicUsize::new(0), limit }
    }

    /// Returns the bytes.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// Which item the caller wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// Whatever there is.
    Any,
    /// The next of the first part that is not at its end.
    InOrder,
    /// The next of this part.
    Of(usize),
}

/// Parts that are read ahead. See the module.
pub(crate) struct Shared<P: Producer> {
    state: Mutex<State<P>>,
    /// Something happened to a part.
    changed: Condvar,
    bounds: Bounds,
    /// Set to stop the producers, which look at it.
    stopped: Arc<AtomicBool>,
    /// Shared with others' parts.
    gauge: Arc<Gauge>,
    /// The caller wants to know what each region gave.
    by_region: bool,
    /// The memory account of the caller.
    account: AccountId,
}

struct State<P: Producer> {
    parts: Vec<Part<P>>,
    /// Parts before this one are at their end, and all their items taken.
    first: usize,
    /// Bytes of the items of all parts.
    bytes: usize,
    parallel: bool,
    failure: Option<Failure<P::Error>>,
    /// What other threads' reads have cost, until the caller takes it over.
    figures: ReadFigures,
    /// And what regions gave to them.
    regions: RegionReads,
}

struct Part<P: Producer> {
    /// What makes the next item, unless that is being done or it is at its end.
    producer: Option<P>,
    /// In the pool's queue.
    queued: bool,
    ended: bool,
    items: VecDeque<P::Item>,
}

/// Which thread makes an item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Caller,
    Pool,
}

enum Failure<E> {
    Error(E),
    Panic(Box<dyn Any + Send>),
}

impl<P: Producer> Part<P> {
    fn is_done(&self) -> bool {
        self.ended && self.items.is_empty()
    }
}

impl<P: Producer> State<P> {
    /// Returns the parts that may be worked on.
    fn window(&self, bounds: &Bounds) -> Vec<usize> {
        let unfinished = (self.first..self.parts.len()).filter(|&part| !self.parts[part].is_done());
        unfinished.take(bounds.parts.max(1)).collect()
    }

    fn advance(&mut self) {
        while self.parts.get(self.first).is_some_and(Part::is_done) {
            self.first += 1;
        }
    }

    /// Returns the parts of which the caller would take an item, the best first.
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

/// What the caller is to do.
enum Step<P: Producer> {
    Take(usize, P::Item),
    Make(usize, P),
    Wait,
    End,
}

impl<P: Producer> Shared<P> {
    /// Returns parts of which nothing was read yet. The producers are to look at `stopped`.
    pub(crate) fn new(
        producers: impl IntoIterator<Item = P>,
        bounds: Bounds,
        stopped: Arc<AtomicBool>,
        gauge: Arc<Gauge>,
    ) -> Shared<P> {
        let part = |producer| Part {
            producer: Some(producer),
            queued: false,
            ended: false,
            items: VecDeque::new(),
        };
        let state = State {
            parts: producers.into_iter().map(part).collect(),
            first: 0,
            bytes: 0,
            parallel: false,
            failure: None,
            figures: ReadFigures::default(),
            regions: RegionReads::default(),
        };
        Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
            bounds,
            stopped,
            gauge,
            by_region: is_read_by_region(),
            account: AccountId::current(),
        }
    }

    /// Lets region threads work, too. Returns whether they did not until now.
    pub(crate) fn go_parallel(&self) -> bool {
        !std::mem::replace(&mut self.state.lock().parallel, true)
    }

    /// Ends all work: what runs sees the flag, nothing is begun any more.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        let mut state = self.state.lock();
        let parts = std::mem::take(&mut state.parts);
        state.first = 0;
        self.gauge.used.fetch_sub(std::mem::take(&mut state.bytes), Ordering::Relaxed);
        drop(state);
        drop(parts);
    }

    /// Returns the next item, with the part it is of; `None` if there is none any more. `queue`
    /// puts a part into the pool's queue, for [`Shared::work`].
    ///
    /// # Errors
    ///
    /// The first of any part. A producer's panic goes on here.
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
                Step::Make(part, producer) => self.make(part, producer, 1, By::Caller),
                Step::Wait => blocking.run(&mut || self.wait(take)),
                Step::End => return Ok(None),
            }
        }
    }

    /// Decides what the caller does next.
    fn step(&self, state: &mut State<P>, take: Take) -> Step<P> {
        state.advance();
        let candidates = state.candidates(take, &self.bounds);
        for &part in &candidates {
            if let Some(item) = state.parts[part].items.pop_front() {
                let bytes = P::byte_count(&item);
                state.bytes -= bytes;
                self.gauge.used.fetch_sub(bytes, Ordering::Relaxed);
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

    /// Marks the parts that are to be queued, and returns them.
    fn queue_more(&self, state: &mut State<P>) -> Vec<usize> {
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

    /// Returns when there may be something to do for the caller.
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
            self.changed.wait(&mut state);
        }
    }

    fn has_room(&self, state: &State<P>, part: usize) -> bool {
        state.parts[part].items.len() < self.bounds.items
            && state.bytes < self.bounds.bytes
            && self.gauge.used() < self.gauge.limit
    }

    /// Works on a part, as the pool's queue has it.
    pub(crate) fn work(&self, part: usize) {
        let _account = self.account.enter();
        let mut state = self.state.lock();
        let Some(queued) = state.parts.get_mut(part) else { return };
        queued.queued = false;
        // The caller may have been quicker, and what was taken may have been made again.
        if !self.has_room(&state, part) || self.stopped.load(Ordering::Relaxed) {
            return;
        }
        let producer = state.parts[part].producer.take();
        drop(state);
        if let Some(producer) = producer {
            self.make(part, producer, self.bounds.items, By::Pool);
        }
    }

    /// Makes items of a part until there are `count`, or no room for more.
    fn make(&self, part: usize, mut producer: P, count: usize, by: By) {
        for made in 1..=count {
            let before = read_figures();
            let mut make = || catch_unwind(AssertUnwindSafe(|| producer.next()));
            let (next, regions) = match self.by_region && by == By::Pool {
                true => read_by_region(make),
                false => (make(), RegionReads::default()),
            };
            let mut state = self.state.lock();
            if by == By::Pool {
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
                // Those that were stopped by the first failure fail too; the first one counts.
                if !self.stopped.swap(true, Ordering::Relaxed) {
                    state.failure = Some(failure);
                }
            }
            self.leave(state, part);
            return;
        }
    }

    /// Adds what was made; returns whether anybody wants it.
    fn keep(
        &self,
        state: &mut MutexGuard<'_, State<P>>,
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
            state.parts[part].items.push_back(item);
        }
        true
    }

    /// Notes that nothing comes of a part any more.
    fn leave(&self, mut state: MutexGuard<'_, State<P>>, part: usize) {
        if let Some(part) = state.parts.get_mut(part) {
            part.ended = true;
        }
        self.changed.notify_all();
    }
}

impl<P: Producer> Drop for Shared<P> {
    fn drop(&mut self) {
        self.gauge.used.fetch_sub(self.state.get_mut().bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
