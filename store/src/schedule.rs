//! Compaction scheduler: queue of stores, priorities, limits, and retries.
//!
//! ```text
//!   flush, open, clock, statement --> queue of stores --> plan --> a compaction thread --.
//!                                          ^-------- more to do, or failed: later --------'
//! ```
//!
//! A job names a store (a family of a region); the merge is planned only when a thread is free,
//! so that it fits the present files. Stores with the fewest runs left before writers wait come
//! first, then the oldest jobs. Compactions that read much never take the last thread, so that
//! they do not starve small ones.
//!
//! # Invariants
//!
//! 1. A job without a waiter is in the queue at most once for each store.
//! 2. A waiter gets at most one answer. The store stops or drops its job otherwise, and the waiter
//!    returns [`Error::ShutDown`].
//!
//! `SchedulerState::check` asserts 1 and `Job::answer` 2, in debug builds. A failed store pauses,
//! twice as long each time, and has a job in the queue.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::compaction::{CompactionRequest, Reason, RewriteProgress, TokenBucket, rate};
use crate::descriptor::{RegionId, TableId};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::family_store::CompactionPlan;
use crate::options::{CompactionLimits, Options};
use crate::region::{Region, RegionServices, RewriteTotals};

/// Interval at which all stores are checked for compactions that are due by time.
const TICK_MICROS: i64 = 10_000_000;
/// Interval at which a waiter for a compaction checks for cancellation.
const CANCEL_POLL: Duration = Duration::from_millis(50);
/// Initial and maximal pause after a failure.
const REST_MICROS: (i64, i64) = (1_000_000, 60_000_000);
/// Number of flushes whose bytes make a compaction a long one: HBase's throttle point.
const LONG_FLUSHES: u64 = 20;
/// Maximal sleep of a throttled compaction before it checks for cancellation.
const THROTTLE_POLL: Duration = Duration::from_millis(100);

/// A running compaction, for system views.
#[derive(Debug, Clone)]
pub struct CompactionStatus {
    /// The table.
    pub table: TableId,
    /// The region.
    pub region: RegionId,
    /// Index of the family.
    pub family: u8,
    /// The reason of its selection.
    pub reason: Reason,
    /// Number of files it reads.
    pub files: u64,
    /// Start time: microseconds since 1970.
    pub started_micros: i64,
    /// Cells read so far.
    pub cells_done: u64,
    /// Cells to read.
    pub cells_total: u64,
    /// Uncompressed bytes of cells read so far.
    pub bytes_done: u64,
    /// Bytes of the files to read.
    pub bytes_total: u64,
}

/// The scheduler: queue and running compactions.
pub(crate) struct Schedule {
    env: Arc<dyn Env>,
    limits: CompactionLimits,
    long_bytes: u64,
    state: Mutex<SchedulerState>,
    /// Signalled when a job is queued or ends, or the store stops.
    changed: Condvar,
    stopped: AtomicBool,
    bucket: Mutex<TokenBucket>,
    /// Compaction pressure of the stores, in thousandths.
    pressure: AtomicU64,
    failures: AtomicU64,
}

#[derive(Default)]
struct SchedulerState {
    queued: Vec<Job>,
    running: Vec<Arc<Running>>,
    rests: HashMap<(RegionId, usize), RetryPause>,
    next_tick_micros: i64,
}

struct RetryPause {
    until_micros: i64,
    length_micros: i64,
}

/// A request for a compaction of a store.
struct Job {
    region: Arc<Region>,
    family: usize,
    request: CompactionRequest,
    asked_micros: i64,
    /// Result of the earlier steps of the job.
    done: Option<RewriteTotals>,
    waiter: Option<Waiter>,
}

/// Waiter for a job.
struct Waiter {
    sender: mpsc::Sender<Result<Option<RewriteTotals>>>,
    is_answered: AtomicBool,
    /// Set when the waiter has left: the job is to be skipped, or to be stopped.
    has_left: Arc<AtomicBool>,
}

/// A compaction to be run by a thread.
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

/// The pending answer to a waiter for compactions. Dropping it cancels those that are not done.
pub(crate) struct Answer {
    parts: Vec<mpsc::Receiver<Result<Option<RewriteTotals>>>>,
    has_left: Arc<AtomicBool>,
}

impl Answer {
    /// Returns the result once all are done.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`], [`Error::ShutDown`], errors of a compaction.
    pub(crate) fn wait(self, cancelled: &AtomicBool) -> Result<RewriteTotals> {
        let mut done = RewriteTotals::default();
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
    /// Returns a job without a waiter for the policy's choice.
    fn wish(region: &Arc<Region>, family: usize, now: i64) -> Job {
        Job {
            region: Arc::clone(region),
            family,
            request: CompactionRequest::Minor,
            asked_micros: now,
            done: None,
            waiter: None,
        }
    }

    fn store(&self) -> (RegionId, usize) {
        (self.region.id(), self.family)
    }

    /// Returns whether its waiter has left.
    fn is_forsaken(&self) -> bool {
        self.waiter.as_ref().is_some_and(|waiter| waiter.has_left.load(Ordering::Relaxed))
    }

    fn answer(&self, answer: Result<Option<RewriteTotals>>) {
        if let Some(waiter) = &self.waiter {
            let before = waiter.is_answered.swap(true, Ordering::Relaxed);
            debug_assert!(!before, "a waiter gets two answers");
            // A waiter that has left ignores the answer.
            let _ = waiter.sender.send(answer);
        }
    }

    /// Returns the sort key; lower goes first.
    fn rank(&self) -> (i64, i64) {
        let left = self.region.runs_left(self.family).unwrap_or(i64::MAX);
        // A job with a waiter is preceded only by stores for which writers are about to wait.
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
        // The opening of a store schedules all of them.
        let next_tick_micros = options.env.now_micros().saturating_add(TICK_MICROS);
        Schedule {
            env: Arc::clone(&options.env),
            limits: options.compactions.clone(),
            long_bytes: options.memstore_flush_bytes.saturating_mul(LONG_FLUSHES),
            state: Mutex::new(SchedulerState { next_tick_micros, ..SchedulerState::default() }),
            changed: Condvar::new(),
            stopped: AtomicBool::new(false),
            bucket: Mutex::default(),
            pressure: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        }
    }

    /// Schedules the compactions that a region's policies select.
    pub(crate) fn schedule_policy(&self, region: &Arc<Region>) {
        let now = self.env.now_micros();
        let mut state = self.state.lock();
        self.raise_pressure(region);
        for family in 0..region.family_count() {
            state.want(region, family, now);
        }
        state.check();
        self.changed.notify_all();
    }

    /// Schedules a compaction of all families of regions, ahead of the policies' choices. The
    /// answer is returned when it is done.
    pub(crate) fn schedule_request(
        &self,
        regions: &[Arc<Region>],
        request: CompactionRequest,
    ) -> Answer {
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
                        waiter: Some(Waiter {
                            sender,
                            is_answered: AtomicBool::new(false),
                            has_left: Arc::clone(&has_left),
                        }),
                    });
                }
            }
        }
        self.changed.notify_all();
        Answer { parts, has_left }
    }

    /// Waits for a compaction to run; `None` when the store stops. `regions` returns all regions.
    pub(crate) fn next(
        &self,
        regions: &dyn Fn() -> Vec<Arc<Region>>,
        surroundings: &dyn RegionServices,
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
            // Pauses end and files expire by time alone.
            let micros = u64::try_from(state.next_event_micros().saturating_sub(now)).unwrap_or(0);
            let wait = Duration::from_micros(micros.clamp(10_000, TICK_MICROS.unsigned_abs()));
            self.changed.wait_for(&mut state, wait);
        }
    }

    /// Takes the first job that can run now, and answers those that never will.
    fn pick(
        &self,
        state: &mut SchedulerState,
        now: i64,
        surroundings: &dyn RegionServices,
    ) -> Option<Task> {
        state.queued.sort_by_cached_key(Job::rank);
        let horizon = surroundings.horizon();
        // Stores that start no more compactions until a merge of all their files can run.
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
                // It runs when another one ends.
                Some(_) => state.queued.push(job),
                None if state.runs_any_of(job.store()) => {
                    if job.request == CompactionRequest::Major {
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
        state.check();
        found.map(|(job, plan)| self.begin(state, job, plan, now))
    }

    fn may_run(&self, state: &SchedulerState, plan: &CompactionPlan) -> bool {
        let long_running = state.running.iter().filter(|running| running.is_long).count();
        plan.byte_count() <= self.long_bytes
            || long_running < self.limits.threads.saturating_sub(1).max(1)
    }

    fn begin(&self, state: &mut SchedulerState, job: Job, plan: CompactionPlan, now: i64) -> Task {
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

    /// Records the end of a task, and queues follow-up jobs.
    pub(crate) fn end(&self, task: Task, result: Result<RewriteTotals>) {
        let Task { mut job, plan, running } = task;
        let reason = plan.selection().reason;
        // Its inputs are free before a waiter is woken.
        drop(plan);
        let now = self.env.now_micros();
        let mut state = self.state.lock();
        let count = state.running.len();
        state.running.retain(|other| !Arc::ptr_eq(other, &running));
        debug_assert_eq!(state.running.len() + 1, count, "the compaction was running");
        self.raise_pressure(&job.region);
        match result {
            Ok(upkeep) => {
                state.rests.remove(&job.store());
                let mut done = job.done.unwrap_or_default();
                done += upkeep;
                job.done = Some(done);
                if job.request == CompactionRequest::Major && reason == Reason::Expired {
                    // An earlier compaction of the store, not the requested one.
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

    /// Updates the compaction pressure, which writers and compactions use.
    fn raise_pressure(&self, region: &Region) {
        // The maximum of recent values, which decays slowly, so that stores need not be polled.
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

    /// Returns the running compactions.
    pub(crate) fn running(&self) -> Vec<CompactionStatus> {
        let state = self.state.lock();
        let of = |running: &Arc<Running>| CompactionStatus {
            cells_done: running.cells_done.load(Ordering::Relaxed),
            bytes_done: running.bytes_done.load(Ordering::Relaxed),
            ..running.status.clone()
        };
        state.running.iter().map(of).collect()
    }

    /// Returns the number of queued jobs.
    pub(crate) fn queued_count(&self) -> usize {
        self.state.lock().queued.len()
    }

    /// Returns the number of failed compactions since the start.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Wakes compactions of a region that was dropped, so that they end.
    pub(crate) fn forget(&self, region: RegionId) {
        let mut state = self.state.lock();
        state.rests.retain(|store, _| store.0 != region);
        self.changed.notify_all();
    }

    /// Stops running compactions, and answers all waiters.
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

    /// Throttles a compaction after it has read `bytes` bytes.
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

impl SchedulerState {
    fn want(&mut self, region: &Arc<Region>, family: usize, now: i64) {
        let waits = |job: &Job| job.waiter.is_none() && job.store() == (region.id(), family);
        if !self.queued.iter().any(waits) {
            self.queued.push(Job::wish(region, family, now));
        }
    }

    /// Asserts invariant 1, and that pauses are within their bounds, in debug builds.
    fn check(&self) {
        if cfg!(debug_assertions) {
            let mut stores = HashSet::new();
            for job in self.queued.iter().filter(|job| job.waiter.is_none()) {
                assert!(stores.insert(job.store()), "two jobs of a store are in the queue");
            }
            let (first, longest) = REST_MICROS;
            let is_bounded = |rest: &RetryPause| (first..=longest).contains(&rest.length_micros);
            assert!(self.rests.values().all(is_bounded), "a pause is out of its bounds");
        }
    }

    /// As [`SchedulerState::want`], for all families of many regions.
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
        self.rests.insert(store, RetryPause { until_micros, length_micros });
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

/// Progress observer of one compaction: counts, throttles, cancels.
pub(crate) struct CompactionProgress<'a> {
    schedule: &'a Schedule,
    running: &'a Running,
    job: &'a Job,
}

impl<'a> CompactionProgress<'a> {
    /// Returns the progress observer of a task.
    pub(crate) fn over(schedule: &'a Schedule, task: &'a Task) -> CompactionProgress<'a> {
        CompactionProgress { schedule, running: &task.running, job: &task.job }
    }
}

impl RewriteProgress for CompactionProgress<'_> {
    fn advanced(&self, cells: u64, bytes: u64) -> Result<()> {
        self.running.cells_done.fetch_add(cells, Ordering::Relaxed);
        self.running.bytes_done.fetch_add(bytes, Ordering::Relaxed);
        self.schedule.check(self.job)?;
        self.schedule.pace(bytes, self.job)
    }
}
