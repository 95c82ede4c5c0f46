//! Group commit for the write-ahead log: leader, waiters, background thread.
//!
//! ```text
//!   append --> queue --.
//!                       \            lead: write all queued records, sync, publish the durable
//!   ticket.wait() -------+--> leader       sequence, appoint the next leader, wake the waiters
//!   ticket polled --> the background thread leads, if there is no leader
//!   ASYNC commit --> writes the queued records itself, without being leader
//! ```
//!
//! Records that are appended while the leader waits for the disk gather in the queue, and the
//! next leader writes all of them. No commit waits for a timer. A thread that has to wait anyway
//! leads, because a hand-over to another thread and back would cost half as much as the sync. The
//! background thread leads for waiters that are not threads, syncs ASYNC commits soon after they
//! were written, prepares segments, and retries after failures. The log ([`super::Wal`]) calls
//! this module; records go to [`Writer`], waiters to [`LogState`].
//!
//! # Invariants
//!
//! 1. There is at most one leader ([`LogState::led`]); only a leader syncs. While there is a
//!    waiter, there is a leader or the log has failed.
//!
//! [`LogState::check_led`] asserts it in debug builds. Lock order: writer, then state.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::cell::{Sequence, Timestamp};
use crate::descriptor::Durability;
use crate::error::{Error, Result, WriteFailure};
use crate::wal::cells::{CommitClock, RegionEdit};
use crate::wal::queue::{FollowedCommit, LogState, Waiter};
use crate::wal::record::{Body, ManifestMark};
use crate::wal::sync::{AtomicBool, AtomicU64, Condvar, Mutex};
use crate::wal::writer::{Health, Roll, Writer, prepare};
use crate::wal::{RollWatcher, WalFollower};

/// Delay before records of ASYNC commits are synced.
const SYNC_DELAY: Duration = Duration::from_millis(50);
/// Unsynced bytes from which a sync starts without the delay; a quarter of the limit of unsynced
/// bytes, if that is less.
const SYNC_SOON_BYTES: u64 = 4 << 20;
/// Interval between attempts to write a failed log.
const RETRY: Duration = Duration::from_millis(500);

/// The log, shared by committing threads, tickets and the background thread.
pub(super) struct Log {
    durable: AtomicU64,
    /// All commits up to here have been passed to the operating system.
    written: AtomicU64,
    /// All commits up to here are on disk, regardless of their durability.
    synced: AtomicU64,
    /// Number of marks that are on disk.
    synced_marks: AtomicU64,
    /// Bytes of all segments.
    byte_count: AtomicU64,
    /// True if there is a follower.
    is_followed: AtomicBool,
    /// Unsynced bytes from which ASYNC commits wait for the disk.
    unsynced_bytes_max: u64,
    pub(super) state: Mutex<LogState>,
    pub(super) writer: Mutex<Writer>,
    followers: Mutex<Vec<(Sequence, Arc<dyn WalFollower>)>>,
    roll_watcher: OnceLock<Arc<dyn RollWatcher>>,
    /// Number of the active segment, and of the one last reported to the watcher.
    active_segment: AtomicU64,
    told_segment: AtomicU64,
    /// Signalled when the background thread has a task.
    pub(super) work: Condvar,
}

impl Log {
    pub(super) fn new(writer: Writer, clock: CommitClock) -> Log {
        let mut state = LogState::new(clock);
        // A log that was opened on a full disk has failed.
        state.note_health(writer.health());
        Log {
            durable: AtomicU64::new(clock.sequence.0),
            written: AtomicU64::new(clock.sequence.0),
            synced: AtomicU64::new(clock.sequence.0),
            synced_marks: AtomicU64::new(0),
            byte_count: AtomicU64::new(writer.byte_count()),
            is_followed: AtomicBool::new(false),
            unsynced_bytes_max: writer.options().unsynced_bytes_max,
            state: Mutex::new(state),
            followers: Mutex::new(Vec::new()),
            roll_watcher: OnceLock::new(),
            active_segment: AtomicU64::new(u64::from(writer.active_number())),
            told_segment: AtomicU64::new(u64::from(writer.active_number())),
            writer: Mutex::new(writer),
            work: Condvar::new(),
        }
    }

    pub(super) fn durable(&self) -> Sequence {
        Sequence(self.durable.load(Ordering::Acquire))
    }

    pub(super) fn byte_count(&self) -> u64 {
        self.byte_count.load(Ordering::Relaxed)
    }

    pub(super) fn is_followed(&self) -> bool {
        self.is_followed.load(Ordering::Acquire)
    }

    /// Assigns a commit its sequence and time, and queues its record.
    pub(super) fn append(
        &self,
        now: Timestamp,
        durability: Durability,
        edits: &[RegionEdit],
        shared: Option<&Arc<Vec<RegionEdit>>>,
    ) -> Result<CommitClock> {
        let body = match durability {
            Durability::SkipWal => Body::default(),
            Durability::SyncWal | Durability::AsyncWal => Body::of(edits)?,
        };
        let mut state = self.state.lock();
        if state.stopping || state.refusing {
            return Err(Error::ShutDown);
        }
        state.check()?;
        let clock = state.append(now, durability, (body, edits));
        if state.is_followed {
            state.followed.push_back(FollowedCommit { clock, edits: shared.cloned() });
        }
        if durability == Durability::SyncWal && !state.armed {
            // Ensures a sync even if no one waits for this commit.
            state.armed = true;
            self.work.notify_one();
        }
        Ok(clock)
    }

    /// Returns when all commits up to `sequence` have been passed to the operating system, and
    /// writes them if need be. Returns whether so many bytes are unsynced that the caller has to
    /// wait for the disk too.
    pub(super) fn hand_over(&self, sequence: Sequence) -> bool {
        if self.written.load(Ordering::Acquire) >= sequence.0 {
            return false;
        }
        let mut writer = self.writer.lock();
        if writer.written() >= sequence {
            return false;
        }
        // A failure is returned by the ticket.
        drop(self.write_queued(&mut writer));
        let unsynced_bytes = writer.unsynced_bytes();
        let health = self.note(&writer);
        drop(writer);
        self.publish(health, unsynced_bytes);
        unsynced_bytes > self.unsynced_bytes_max
    }

    /// Returns when all commits up to `sequence` are on disk, regardless of their durability.
    pub(super) fn sync_through(&self, sequence: Sequence) -> Result<()> {
        self.sync_until(
            || self.synced.load(Ordering::Acquire) >= sequence.0,
            |state| state.check_given(sequence),
        )
    }

    /// Logs the length of the manifest on disk; returns when that record is synced.
    pub(super) fn note_manifest(&self, manifest: ManifestMark) -> Result<()> {
        let mark = self.state.lock().note_manifest(manifest);
        self.sync_until(|| self.synced_marks.load(Ordering::Acquire) >= mark, LogState::check)
    }

    /// Returns when all written records are on disk, including the start of the active segment.
    pub(super) fn sync_all(&self) -> Result<()> {
        let mark = self.state.lock().new_mark();
        self.sync_until(|| self.synced_marks.load(Ordering::Acquire) >= mark, LogState::check)
    }

    fn sync_until(
        &self,
        is_synced: impl Fn() -> bool,
        check: impl Fn(&LogState) -> Result<()>,
    ) -> Result<()> {
        loop {
            let mut state = self.state.lock();
            if is_synced() {
                return Ok(());
            }
            check(&state)?;
            if !state.led {
                state.led = true;
                drop(state);
                self.lead(SyncMode::Always);
                continue;
            }
            let (parked, waiter) = Waiter::of_this_thread();
            state.sync_waiters.push(waiter);
            drop(state);
            parked.wait();
        }
    }

    /// Returns when `sequence` has its requested durability.
    pub(super) fn wait_durable(&self, sequence: Sequence) -> Result<()> {
        while self.durable() < sequence {
            let mut state = self.state.lock();
            if self.durable() >= sequence {
                break;
            }
            state.check_given(sequence)?;
            if !state.led {
                state.led = true;
                drop(state);
                self.lead(SyncMode::IfWanted);
                continue;
            }
            let (parked, waiter) = Waiter::of_this_thread();
            let key = (sequence.0, state.new_ticket());
            state.waiters.insert(key, waiter);
            state.check_led();
            drop(state);
            if parked.wait() {
                self.lead(SyncMode::IfWanted);
            }
        }
        Ok(())
    }

    /// Checks whether `sequence` has its requested durability; if not, `waker` is called when the
    /// state may have changed. `ticket` is the number of its waiter, 0 if there is none yet.
    pub(super) fn poll_durable(
        &self,
        sequence: Sequence,
        ticket: &mut u64,
        waker: &Waker,
    ) -> Poll<Result<()>> {
        let mut state = self.state.lock();
        if self.durable() >= sequence {
            return Poll::Ready(Ok(()));
        }
        if let Err(error) = state.check_given(sequence) {
            return Poll::Ready(Err(error));
        }
        if *ticket == 0 {
            *ticket = state.new_ticket();
        }
        state.waiters.insert((sequence.0, *ticket), Waiter::Task(waker.clone()));
        if !state.led {
            state.led = true;
            state.thread_appointed = true;
            self.work.notify_one();
        }
        state.check_led();
        Poll::Pending
    }

    /// Writes the queued records, syncs them if a commit waits for that, wakes the waiters, and
    /// appoints the next leader. The caller was made leader.
    pub(super) fn lead(&self, sync: SyncMode) {
        debug_assert!(self.state.lock().led, "the caller was made leader");
        let leading = LeaderGuard { log: self };
        let mut writer = self.writer.lock();
        let written = self.write_queued(&mut writer);
        let wanted = sync == SyncMode::Always || writer.wants_sync();
        if written.is_ok()
            && wanted
            && let Some(job) = writer.begin_sync()
        {
            drop(writer);
            let result = job.run();
            writer = self.writer.lock();
            // The outcome is in the writer's health.
            drop(writer.end_sync(&job, result));
        }
        let health = self.note(&writer);
        drop(writer);
        std::mem::forget(leading);
        self.resign(health);
    }

    /// Retries a failed write. The caller was made leader.
    fn retry(&self) {
        let leading = LeaderGuard { log: self };
        let mut writer = self.writer.lock();
        if writer.check().is_err()
            && let Err(error) = writer.rewrite_unsynced()
        {
            tracing::warn!(%error, "still could not write the write-ahead log");
        }
        let health = self.note(&writer);
        drop(writer);
        std::mem::forget(leading);
        self.resign(health);
    }

    fn write_queued(&self, writer: &mut Writer) -> Result<()> {
        let mut roll = Roll::No;
        let mut state = self.state.lock();
        state.take_queue(writer.batch());
        if writer.is_half_full() {
            if writer.is_full() {
                roll = Roll::of_full(&mut state);
            }
            if state.prepared.is_none() && !state.wants_segment && state.failed.is_none() {
                state.wants_segment = true;
                self.work.notify_one();
            }
        }
        drop(state);
        writer.write(roll)
    }

    /// Raises the published sequences to those of the writer.
    pub(super) fn note(&self, writer: &Writer) -> Health {
        // The writer's lock is held, so no other thread raises them.
        let raise = |mark: &AtomicU64, to: Sequence| {
            if mark.load(Ordering::Relaxed) < to.0 {
                mark.store(to.0, Ordering::Release);
            }
        };
        raise(&self.written, writer.written());
        raise(&self.synced, writer.synced_through());
        raise(&self.durable, writer.durable());
        if self.synced_marks.load(Ordering::Relaxed) < writer.synced_marks() {
            self.synced_marks.store(writer.synced_marks(), Ordering::Release);
        }
        self.byte_count.store(writer.byte_count(), Ordering::Relaxed);
        self.active_segment.store(u64::from(writer.active_number()), Ordering::Relaxed);
        writer.health()
    }

    /// Wakes the waiters whose commits are durable, after a write without a sync.
    fn publish(&self, health: Health, unsynced_bytes: u64) {
        let mut state = self.state.lock();
        state.note_health(health);
        let ready = state.take_ready(self.durable());
        state.crowded |= unsynced_bytes > SYNC_SOON_BYTES.min(self.unsynced_bytes_max / 4);
        if unsynced_bytes > 0 && (!state.armed || state.crowded) {
            state.armed = true;
            self.work.notify_one();
        }
        drop(state);
        wake_all(ready);
        self.tell_followers();
        self.tell_rolls();
    }

    /// Wakes the waiters with the outcome, and appoints the next leader.
    fn resign(&self, health: Health) {
        let mut state = self.state.lock();
        state.note_health(health);
        let ready = state.take_ready(self.durable());
        let sync_waiters = std::mem::take(&mut state.sync_waiters);
        let next = state.appoint();
        state.check_led();
        if state.thread_appointed || state.failed.is_some() || state.stopping {
            self.work.notify_one();
        }
        drop(state);
        if let Some(next) = next {
            // Before the others are woken, so that the disk is not idle meanwhile.
            next.appoint();
        }
        wake_all(ready);
        sync_waiters.into_iter().for_each(Waiter::wake);
        self.tell_followers();
        self.tell_rolls();
    }

    /// Adds a follower of all commits appended from now on; returns the last one before.
    pub(super) fn follow(&self, follower: Arc<dyn WalFollower>) -> CommitClock {
        let mut followers = self.followers.lock();
        let mut state = self.state.lock();
        state.is_followed = true;
        self.is_followed.store(true, Ordering::Release);
        followers.push((state.clock.sequence, follower));
        state.clock
    }

    /// Sets the watcher of segment rolls.
    pub(super) fn watch_rolls(&self, watcher: Arc<dyn RollWatcher>) {
        // There is one watcher for each log.
        drop(self.roll_watcher.set(watcher));
    }

    /// Calls the watcher if the active segment has changed.
    pub(super) fn tell_rolls(&self) {
        let opened = self.active_segment.load(Ordering::Relaxed);
        if self.told_segment.load(Ordering::Relaxed) >= opened {
            return;
        }
        let closed = self.told_segment.fetch_max(opened, Ordering::Relaxed);
        let Some(watcher) = self.roll_watcher.get() else { return };
        if closed < opened {
            // Segments are numbered with 32 bits.
            watcher.rolled(closed as u32, opened as u32);
        }
    }

    fn tell_followers(&self) {
        if !self.is_followed() {
            return;
        }
        // Held during the calls, which are thus in sequence order.
        let followers = self.followers.lock();
        loop {
            let durable = self.durable();
            let mut state = self.state.lock();
            let next = state.followed.front().is_some_and(|next| next.clock.sequence <= durable);
            let Some(commit) = next.then(|| state.followed.pop_front()).flatten() else { return };
            drop(state);
            for (after, follower) in followers.iter() {
                if commit.clock.sequence <= *after {
                    continue;
                }
                // A follower that panics must not stop the log.
                let edits = commit.edits.as_ref();
                let call = AssertUnwindSafe(|| follower.follow(commit.clock, edits));
                if catch_unwind(call).is_err() {
                    let sequence = commit.clock.sequence.0;
                    tracing::error!(sequence, "a subscriber of the write-ahead log panicked");
                }
            }
        }
    }

    /// Runs the background thread until the log is shut down.
    pub(super) fn run(&self) {
        let mut synced_at_end = false;
        loop {
            let mut state = self.state.lock();
            match state.next_task(&mut synced_at_end) {
                ThreadTask::End => break,
                ThreadTask::Wait => {
                    self.work.wait(&mut state);
                }
                ThreadTask::WaitFor(time) => {
                    if self.work.wait_for(&mut state, time).timed_out() {
                        state.elapsed = true;
                    }
                }
                ThreadTask::Lead(sync) => {
                    drop(state);
                    self.lead(sync);
                }
                ThreadTask::Retry => {
                    drop(state);
                    self.retry();
                }
                ThreadTask::Prepare => {
                    drop(state);
                    self.prepare_segment();
                }
            }
        }
        let mut state = self.state.lock();
        state.stopped = true;
        let waiters = std::mem::take(&mut state.waiters);
        let sync_waiters = std::mem::take(&mut state.sync_waiters);
        drop(state);
        wake_all(waiters);
        sync_waiters.into_iter().for_each(Waiter::wake);
    }

    fn prepare_segment(&self) {
        let (options, number) = {
            let mut writer = self.writer.lock();
            (writer.options().clone(), writer.new_number())
        };
        let prepared = prepare(&options, number);
        let mut state = self.state.lock();
        state.wants_segment = false;
        match prepared {
            Ok(prepared) => state.prepared = Some(prepared),
            // The next write requests it again.
            Err(error) => tracing::warn!(%error, "could not preallocate a WAL segment"),
        }
    }

    /// Ends all waits with an error, because of a bug in this module.
    pub(super) fn fail_all_waiters(&self, detail: &str) {
        let mut state = self.state.lock();
        state.failed = Some(WriteFailure { detail: detail.to_owned(), is_full: false });
        state.health_version = u64::MAX;
        state.stopping = true;
        state.stopped = true;
        let waiters = std::mem::take(&mut state.waiters);
        let sync_waiters = std::mem::take(&mut state.sync_waiters);
        drop(state);
        wake_all(waiters);
        sync_waiters.into_iter().for_each(Waiter::wake);
    }
}

/// Condition under which a leader syncs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SyncMode {
    /// If a commit waits for it.
    IfWanted,
    /// Unconditionally.
    Always,
}

/// Next task of the background thread.
pub(super) enum ThreadTask {
    Lead(SyncMode),
    Retry,
    Prepare,
    Wait,
    WaitFor(Duration),
    End,
}

impl LogState {
    fn next_task(&mut self, synced_at_end: &mut bool) -> ThreadTask {
        if std::mem::take(&mut self.thread_appointed) {
            return ThreadTask::Lead(SyncMode::IfWanted);
        }
        let elapsed = std::mem::take(&mut self.elapsed);
        if self.stopping {
            if self.led {
                return ThreadTask::Wait;
            }
            if *synced_at_end {
                return ThreadTask::End;
            }
            *synced_at_end = true;
            self.led = true;
            return if self.failed.is_some() {
                ThreadTask::Retry
            } else {
                ThreadTask::Lead(SyncMode::Always)
            };
        }
        if self.failed.is_some() {
            if elapsed && !self.led {
                self.led = true;
                return ThreadTask::Retry;
            }
            return ThreadTask::WaitFor(RETRY);
        }
        if self.wants_segment {
            return ThreadTask::Prepare;
        }
        if self.armed && (elapsed || self.crowded) && !self.led {
            self.armed = false;
            self.crowded = false;
            self.led = true;
            return ThreadTask::Lead(SyncMode::Always);
        }
        if self.armed { ThreadTask::WaitFor(SYNC_DELAY) } else { ThreadTask::Wait }
    }
}

/// Guard that ends all waits if the leader panics.
struct LeaderGuard<'a> {
    log: &'a Log,
}

impl Drop for LeaderGuard<'_> {
    fn drop(&mut self) {
        self.log.fail_all_waiters("group commit leader panicked");
    }
}

fn wake_all(waiters: BTreeMap<(u64, u64), Waiter>) {
    waiters.into_values().for_each(Waiter::wake);
}
