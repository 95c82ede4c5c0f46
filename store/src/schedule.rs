//! Which compaction runs when.
//!
//! ```text
//!   flush, start, clock, statement --> queue of stores --> plan --> a compaction thread --.
//!                                          ^-------- more to do, or failed: later --------'
//! ```
//!
//! A job names a store (a family of a region); what is merged is planned only when a thread is
//! free, so that it fits the files of that moment. Stores that are nearest to making writers wait
//! come first, then those that asked first. Compactions that read much never take the last thread,
//! so that they do not starve small ones.
//!
//! # Invariants
//!
//! 1. A job without a waiter is in the queue once for each store.
//! 2. Who waits gets exactly one answer, also when the store stops or the table is dropped.
//! 3. A job that failed rests, twice as long each time, and stays in the queue.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::compaction::{Progress, Reason, Request, TokenBucket, rate};
use crate::descriptor::{RegionId, TableId};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::family_store::CompactionPlan;
use crate::options::{CompactionLimits, Options};
use crate::region::{Region, Surroundings, Upkeep};

/// How often all stores are asked whether time alone has given them something to do.
const TICK_MICROS: i64 = 10_000_000;
/// How often who waits for a compaction looks whether to go on.
const CANCEL_POLL: Duration = Duration::from_millis(50);
/// How long work that failed rests at first, and at most.
const REST_MICROS: (i64, i64) = (1_000_000, 60_000_000);
/// Flushes whose bytes together make a compaction a long one: HBase's throttle point.
const LONG_FLUSHES: u64 = 20;
/// How long a throttled compaction sleeps at most before it looks whether it was cancelled.
const THROTTLE_POLL: Duration = Duration::from_millis(100);

/// A compaction that runs, for system views.
#[derive(Debug, Clone)]
pub struct CompactionStatus {
    /// The table.
    pub table: TableId,
    /// The region.
    pub region: RegionId,
    /// Index of the family.
    pub family: u8,
    /// Why it was chosen.
    pub reason: Reason,
    /// Files it reads.
    pub files: u64,
    /// When it began: microseconds since 1970.
    pub started_micros: i64,
    /// Cells read so far.
    pub cells_done: u64,
    /// Cells to read.
    pub cells_total: u64,
    /// Bytes of cells read so far, as they are in memory.
    pub bytes_done: u64,
    /// Bytes of the files to read.
    pub bytes_total: u64,
}

/// The queue, and what runs.
pub(crate) struct Schedule {
    env: Arc<dyn Env>,
    limits: CompactionLimits,
    long_bytes: u64,
    state: Mutex<State>,
    /// Something was queued or ended, or the store stops.
    changed: Condvar,
    stopped: AtomicBool,
    bucket: Mutex<TokenBucket>,
    /// How near stores are to making writers wait, in thousandths.
    pressure: AtomicU64,
    failures: AtomicU64,
}

#[derive(Default)]
struct State {
    queued: Vec<Job>,
    running: Vec<Arc<Running>>,
    rests: HashMap<(RegionId, usize), Rest>,
    next_tick_micros: i64,
}

struct Rest {
    until_micros: i64,
    length_micros: i64,
}

/// A wish for a compaction.
struct Job {
    region: Arc<Region>,
    family: usize,
    request: Request,
    asked_micros: i64,
    /// What earlier steps of the job have done.
    done: Option<Upkeep>,
    waiter: Option<Waiter>,
}

/// Who waits for a job.
struct Waiter {
    sender: mpsc::Sender<Result<Option<Upkeep>>>,
    /// Set when nobody waits any more: the job is not to be begun, or to be ended.
    has_left: Arc<AtomicBool>,
}

/// A compaction that a thread is to carry out.
pub(crate) struct Task {
    job: Job,
    pub(crate) plan: CompactionPlan,
    running: Arc<Running>,
}

struct Running {
    status: CompactionStatus,
    is_long: bool,
    cells_done: AtomicU64,
    bytes_done: AtomicU64,
}

/// The answer to who waits for compactions. Those that are not done when it is dropped are not
/// wanted any more.
pub(crate) struct Answer {
    parts: Vec<mpsc::Receiver<Result<Option<Upkeep>>>>,
    has_left: Arc<AtomicBool>,
}

impl Answer {
    /// Returns what was done once all is.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`], [`Error::ShutDown`], and what made a compaction fail.
    pub(crate) fn wait(self, cancelled: &AtomicBool) -> Result<Upkeep> {
        let mut done = Upkeep::default();
        for part in &self.parts {
            let answer = loop {
                match part.recv_timeout(CANCEL_POLL) {
                    Ok(answer) => break answer,
                    // A sender is dropped without an answer only when the store stops.
                    Err(mpsc::RecvTimeoutError::Disconnected) => break Err(Error::ShutDown),
                    Err(_) if cancelled.load(Ordering::Relaxed) => break Err(Error::Cancelled),
                    Err(_) => {}
                }
            };
            done += answer?.unwrap_or_default();
        }
        Ok(done)
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.has_left.store(true, Ordering::Relaxed);
    }
}

impl Job {
    /// Returns what policies may want of a family, which nobody waits for.
    fn wish(region: &Arc<Region>, family: usize, now: i64) -> Job {
        Job {
            region: Arc::clone(region),
            family,
            request: Request::Minor,
            asked_micros: now,
            done: None,
            waiter: None,
        }
    }

    fn store(&self) -> (RegionId, usize) {
        (self.region.id(), self.family)
    }

    /// Returns whether somebody asked for it and does not want it any more.
    fn is_forsaken(&self) -> bool {
        self.waiter.as_ref().is_some_and(|waiter| waiter.has_left.load(Ordering::Relaxed))
    }

    fn answer(&self, answer: Result<Option<Upkeep>>) {
        if let Some(waiter) = &self.waiter {
            // Who has stopped waiting does not want to know.
            let _ = waiter.sender.send(answer);
        }
    }

    /// Lower goes first.
    fn rank(&self) -> (i64, i64) {
        let left = self.region.runs_left(self.family).unwrap_or(i64::MAX);
        // What somebody waits for yields only to what writers are about to wait for.
        let left = if self.waiter.is_some() { left.min(1) } else { left };
        (left, self.asked_micros)
    }
}

impl Task {
    /// Returns the region.
    pub(crate) fn region(&self) -> &Arc<Region> {
        &self.job.region
    }

    /// Returns the index of the family.
    pub(crate) fn family(&self) -> usize {
        self.job.family
    }
}

impl Schedule {
    /// Returns an empty schedule.
    pub(crate) fn new(options: &Options) -> Schedule {
        // Who opens a store asks for all of them.
        let next_tick_micros = options.env.now_micros().saturating_add(TICK_MICROS);
        Schedule {
            env: Arc::clone(&options.env),
            limits: options.compactions.clone(),
            long_bytes: options.memstore_flush_bytes.saturating_mul(LONG_FLUSHES),
            state: Mutex::new(State { next_tick_micros, ..State::default() }),
            changed: Condvar::new(),
            stopped: AtomicBool::new(false),
            bucket: Mutex::default(),
            pressure: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        }
    }

    /// Asks for what the policies of a region find to do.
    pub(crate) fn want(&self, region: &Arc<Region>) {
        let now = self.env.now_micros();
        let mut state = self.state.lock();
        self.raise_pressure(region);
        for family in 0..region.family_count() {
            state.want(region, family, now);
        }
        self.changed.notify_all();
    }

    /// Asks for a compaction of all families of a region, ahead of what policies want. The answer
    /// comes when it was done.
    pub(crate) fn order(&self, regions: &[Arc<Region>], request: Request) -> Answer {
        let now = self.env.now_micros();
        let mut parts = Vec::new();
        let has_left = Arc::new(AtomicBool::new(false));
        let mut state = self.state.lock();
        if !self.stopped.load(Ordering::SeqCst) {
            for region in regions {
                for family in 0..region.family_count() {
                    let (sender, receiver) = mpsc::channel();
                    parts.push(receiver);
                    state.queued.push(Job {
                        region: Arc::clone(region),
                        family,
                        request,
                        asked_micros: now,
                        done: None,
                        waiter: Some(Waiter { sender, has_left: Arc::clone(&has_left) }),
                    });
                }
            }
        }
        self.changed.notify_all();
        Answer { parts, has_left }
    }

    /// Waits until there is a compaction to carry out; `None` when the store stops. `regions` are
    /// all there are.
    pub(crate) fn next(
        &self,
        regions: &dyn Fn() -> Vec<Arc<Region>>,
        surroundings: &dyn Surroundings,
    ) -> Option<Task> {
        let mut state = self.state.lock();
        loop {
            if self.stopped.load(Ordering::SeqCst) {
                return None;
            }
            let now = self.env.now_micros();
            if now >= state.next_tick_micros {
                state.next_tick_micros = now.saturating_add(TICK_MICROS);
                state.want_all(regions(), now);
            }
            if let Some(task) = self.pick(&mut state, now, surroundings) {
                return Some(task);
            }
            // Time alone makes rests end and files expire.
            let micros = u64::try_from(state.next_event_micros().saturating_sub(now)).unwrap_or(0);
            let wait = Duration::from_micros(micros.clamp(10_000, TICK_MICROS.unsigned_abs()));
            self.changed.wait_for(&mut state, wait);
        }
    }

    /// Takes the first job that has something to do now, and answers those that never will.
    fn pick(&self, state: &mut State, now: i64, surroundings: &dyn Surroundings) -> Option<Task> {
        state.queued.sort_by_cached_key(Job::rank);
        let horizon = surroundings.horizon();
        // Stores that begin nothing more until a merge of all their files can have its turn.
        let mut reserved: Vec<(RegionId, usize)> = Vec::new();
        let mut jobs = std::mem::take(&mut state.queued).into_iter();
        let mut found = None;
        for job in jobs.by_ref() {
            if job.region.is_dropped() || job.is_forsaken() {
                job.answer(Ok(job.done));
                continue;
            }
            if let Err(damage) = job.region.check_family(job.family) {
                job.answer(Err(damage));
                continue;
            }
            let resting = state.rests.get(&job.store()).is_some_and(|rest| rest.until_micros > now);
            if reserved.contains(&job.store()) || (resting && job.waiter.is_none()) {
                state.queued.push(job);
                continue;
            }
            let off_peak = self.limits.is_off_peak(now);
            match job.region.plan_compaction(job.family, job.request, off_peak, horizon) {
                Some(plan) if self.may_run(state, &plan) => {
                    found = Some((job, plan));
                    break;
                }
                // Its turn comes when another one ends.
                Some(_) => state.queued.push(job),
                None if state.runs_any_of(job.store()) => {
                    if job.request == Request::Major {
                        reserved.push(job.store());
                    }
                    state.queued.push(job);
                }
                None => {
                    job.answer(Ok(job.done));
                }
            }
        }
        state.queued.extend(jobs);
        found.map(|(job, plan)| self.begin(state, job, plan, now))
    }

    fn may_run(&self, state: &State, plan: &CompactionPlan) -> bool {
        let long_running = state.running.iter().filter(|running| running.is_long).count();
        plan.byte_count() <= self.long_bytes
            || long_running < self.limits.threads.saturating_sub(1).max(1)
    }

    fn begin(&self, state: &mut State, job: Job, plan: CompactionPlan, now: i64) -> Task {
        let bytes_total = plan.byte_count();
        let running = Arc::new(Running {
            status: CompactionStatus {
                table: job.region.table(),
                region: job.region.id(),
                family: job.family as u8,
                reason: plan.selection().reason,
                files: plan.selection().inputs.len() as u64,
                started_micros: now,
                cells_done: 0,
                cells_total: plan.cell_count(),
                bytes_done: 0,
                bytes_total,
            },
            is_long: bytes_total > self.long_bytes,
            cells_done: AtomicU64::new(0),
            bytes_done: AtomicU64::new(0),
        });
        state.running.push(Arc::clone(&running));
        Task { job, plan, running }
    }

    /// Takes note of how a task ended, and queues what follows from it.
    pub(crate) fn end(&self, task: Task, result: Result<Upkeep>) {
        let Task { mut job, plan, running } = task;
        let reason = plan.selection().reason;
        // Its inputs are free before anybody is woken.
        drop(plan);
        let now = self.env.now_micros();
        let mut state = self.state.lock();
        state.running.retain(|other| !Arc::ptr_eq(other, &running));
        self.raise_pressure(&job.region);
        match result {
            Ok(upkeep) => {
                state.rests.remove(&job.store());
                let mut done = job.done.unwrap_or_default();
                done += upkeep;
                job.done = Some(done);
                if job.request == Request::Major && reason == Reason::Expired {
                    // That went first and was not what is wanted.
                    state.queued.push(job);
                } else {
                    job.answer(Ok(job.done));
                    state.want(&job.region, job.family, now);
                }
            }
            Err(error) => {
                if !matches!(error, Error::ShutDown | Error::Cancelled) {
                    self.failures.fetch_add(1, Ordering::Relaxed);
                    let region = job.region.id().0;
                    tracing::error!(%error, region, family = job.family, "could not compact");
                    state.rest(job.store(), now);
                    state.want(&job.region, job.family, now);
                } else if job.is_forsaken() {
                    state.want(&job.region, job.family, now);
                }
                let answer = if job.region.is_dropped() { Ok(job.done) } else { Err(error) };
                job.answer(answer);
            }
        }
        self.changed.notify_all();
    }

    /// Lets writers and compactions know how near stores are to too many files.
    fn raise_pressure(&self, region: &Region) {
        // The nearest of late: what is far sinks slowly, so that no store needs to be asked again.
        let now = (region.compaction_pressure() * 1000.0) as u64;
        let before = self.pressure.load(Ordering::Relaxed);
        self.pressure.store(now.max(before - before / 4), Ordering::Relaxed);
    }

    /// Returns whether a compaction of the region runs or is about to.
    pub(crate) fn works_on(&self, region: RegionId) -> bool {
        let state = self.state.lock();
        let now = self.env.now_micros();
        let resting =
            |job: &Job| state.rests.get(&job.store()).is_some_and(|rest| rest.until_micros > now);
        state.running.iter().any(|running| running.status.region == region)
            || state.queued.iter().any(|job| job.region.id() == region && !resting(job))
    }

    /// Returns what runs.
    pub(crate) fn running(&self) -> Vec<CompactionStatus> {
        let state = self.state.lock();
        let of = |running: &Arc<Running>| CompactionStatus {
            cells_done: running.cells_done.load(Ordering::Relaxed),
            bytes_done: running.bytes_done.load(Ordering::Relaxed),
            ..running.status.clone()
        };
        state.running.iter().map(of).collect()
    }

    /// Returns how many jobs wait.
    pub(crate) fn queued_count(&self) -> usize {
        self.state.lock().queued.len()
    }

    /// Returns how many compactions failed since start.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Wakes compactions of a region that was dropped, so that they end.
    pub(crate) fn forget(&self, region: RegionId) {
        let mut state = self.state.lock();
        state.rests.retain(|store, _| store.0 != region);
        self.changed.notify_all();
    }

    /// Ends what runs, and answers all who wait.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        self.stopped.store(true, Ordering::SeqCst);
        for job in state.queued.drain(..) {
            job.answer(Err(Error::ShutDown));
        }
        self.changed.notify_all();
    }

    fn check(&self, job: &Job) -> Result<()> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Error::ShutDown);
        }
        let is_wanted = !job.region.is_dropped() && !job.is_forsaken();
        if is_wanted { Ok(()) } else { Err(Error::Cancelled) }
    }

    /// Waits until a compaction may go on after it has read so many bytes.
    fn pace(&self, bytes: u64, job: &Job) -> Result<()> {
        let Some(throughput) = self.limits.throughput else { return Ok(()) };
        let mut taken = bytes;
        loop {
            self.check(job)?;
            let pressure = self.pressure.load(Ordering::Relaxed) as f64 / 1000.0;
            let bounds = (throughput.low_bytes, throughput.high_bytes);
            let Some(rate) = rate(bounds.0, bounds.1, pressure) else { return Ok(()) };
            let micros = self.bucket.lock().take(taken, rate, self.env.now_micros());
            if micros == 0 {
                return Ok(());
            }
            taken = 0;
            let mut state = self.state.lock();
            if !self.stopped.load(Ordering::SeqCst) {
                self.changed.wait_for(&mut state, THROTTLE_POLL.min(Duration::from_micros(micros)));
            }
        }
    }
}

impl State {
    fn want(&mut self, region: &Arc<Region>, family: usize, now: i64) {
        let waits = |job: &Job| job.waiter.is_none() && job.store() == (region.id(), family);
        if !self.queued.iter().any(waits) {
            self.queued.push(Job::wish(region, family, now));
        }
    }

    /// As [`State::want`], of all families of many regions.
    fn want_all(&mut self, regions: Vec<Arc<Region>>, now: i64) {
        let waiting = self.queued.iter().filter(|job| job.waiter.is_none()).map(Job::store);
        let waiting: HashSet<(RegionId, usize)> = waiting.collect();
        for region in regions {
            let families = 0..region.family_count();
            let missing = families.filter(|&family| !waiting.contains(&(region.id(), family)));
            self.queued.extend(missing.map(|family| Job::wish(&region, family, now)));
        }
    }

    fn rest(&mut self, store: (RegionId, usize), now: i64) {
        let (first, longest) = REST_MICROS;
        let before = self.rests.get(&store).map_or(0, |rest| rest.length_micros);
        let length_micros = (before * 2).clamp(first, longest);
        let until_micros = now.saturating_add(length_micros);
        self.rests.insert(store, Rest { until_micros, length_micros });
    }

    fn runs_any_of(&self, (region, family): (RegionId, usize)) -> bool {
        let same = |running: &Arc<Running>| {
            running.status.region == region && usize::from(running.status.family) == family
        };
        self.running.iter().any(same)
    }

    fn next_event_micros(&self) -> i64 {
        let rests = self.rests.values().map(|rest| rest.until_micros);
        rests.min().unwrap_or(i64::MAX).min(self.next_tick_micros)
    }
}

/// Watches one compaction: counts, throttles, cancels.
pub(crate) struct Watch<'a> {
    schedule: &'a Schedule,
    running: &'a Running,
    job: &'a Job,
}

impl<'a> Watch<'a> {
    /// Returns the watch over a task.
    pub(crate) fn over(schedule: &'a Schedule, task: &'a Task) -> Watch<'a> {
        Watch { schedule, running: &task.running, job: &task.job }
    }
}

impl Progress for Watch<'_> {
    fn advanced(&self, cells: u64, bytes: u64) -> Result<()> {
        self.running.cells_done.fetch_add(cells, Ordering::Relaxed);
        self.running.bytes_done.fetch_add(bytes, Ordering::Relaxed);
        self.schedule.check(self.job)?;
        self.schedule.pace(bytes, self.job)
    }
}
