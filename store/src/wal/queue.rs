//! Queue of appended records that are not written yet, and the waiters for commits. No file
//! access here.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use crate::cell::{Sequence, Timestamp};
use crate::descriptor::Durability;
use crate::error::{Error, Result, WriteFailure};
use crate::wal::cells::{CommitClock, RegionEdit};
use crate::wal::record::{Body, ManifestMark, push_commit};
use crate::wal::sync::{AtomicBool, Thread, current, park};
use crate::wal::writer::{Health, Prepared};

/// Records in the order of their commits, not written yet.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    /// The last sequence that was assigned, logged or not.
    pub(super) last: Sequence,
    /// The last sequence in `bytes`.
    pub(super) last_logged: Sequence,
    /// The first sequence that must be on disk before it is acknowledged.
    pub(super) first_synced: Option<Sequence>,
    /// Length of the manifest on disk, to be logged behind the records.
    pub(super) manifest: Option<ManifestMark>,
    /// Number of marks requested so far.
    pub(super) mark_count: u64,
}

impl Batch {
    /// Empties the batch; its buffer is reused unless it is large.
    pub(super) fn clear(&mut self) {
        const KEPT_BYTES_MAX: usize = 1 << 20;
        if self.bytes.capacity() > KEPT_BYTES_MAX {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.first_synced = None;
        self.manifest = None;
    }
}

/// A commit as it is passed to followers.
pub(super) struct FollowedCommit {
    pub(super) clock: CommitClock,
    /// `None` if there was no follower when the commit was appended.
    pub(super) edits: Option<Arc<Vec<RegionEdit>>>,
}

/// A parked thread.
pub(super) struct ParkedThread {
    thread: Thread,
    /// Set when it becomes the leader.
    appointed: AtomicBool,
    /// Set when its condition is to be checked again.
    released: AtomicBool,
}

impl ParkedThread {
    /// Makes it the leader.
    pub(super) fn appoint(&self) {
        self.appointed.store(true, Ordering::Release);
        self.thread.unpark();
    }

    /// Parks until it is woken or made leader; returns whether it is the leader.
    pub(super) fn wait(&self) -> bool {
        loop {
            if self.appointed.load(Ordering::Acquire) {
                return true;
            }
            if self.released.load(Ordering::Acquire) {
                return false;
            }
            park();
        }
    }
}

/// A waiter for a commit: a thread or a task.
pub(super) enum Waiter {
    Thread(Arc<ParkedThread>),
    Task(Waker),
}

impl Waiter {
    /// Returns the calling thread as a waiter.
    pub(super) fn of_this_thread() -> (Arc<ParkedThread>, Waiter) {
        let (appointed, released) = (AtomicBool::new(false), AtomicBool::new(false));
        let parked = Arc::new(ParkedThread { thread: current(), appointed, released });
        (Arc::clone(&parked), Waiter::Thread(parked))
    }

    /// Wakes the waiter, which checks its condition again.
    pub(super) fn wake(self) {
        match self {
            Waiter::Task(waker) => waker.wake(),
            Waiter::Thread(parked) => {
                parked.released.store(true, Ordering::Release);
                parked.thread.unpark();
            }
        }
    }
}

/// State of the log behind its mutex.
pub(super) struct LogState {
    pub(super) clock: CommitClock,
    pub(super) queue: Batch,
    /// Commits that are passed to followers once they are durable.
    pub(super) followed: VecDeque<FollowedCommit>,
    pub(super) is_followed: bool,
    /// True if there is a leader, which writes and syncs for all.
    pub(super) led: bool,
    /// True if the background thread was made leader and has not started yet.
    pub(super) thread_appointed: bool,
    /// Waiters for the durability of a sequence, by sequence and ticket.
    pub(super) waiters: BTreeMap<(u64, u64), Waiter>,
    /// Waiters until all queued records are on disk.
    pub(super) sync_waiters: Vec<Waiter>,
    pub(super) next_ticket: u64,
    /// True if the background thread was notified that records are to be synced soon.
    pub(super) armed: bool,
    /// True if so many bytes are unsynced that the background thread syncs at once.
    pub(super) crowded: bool,
    /// True if the background thread is to prepare the next segment.
    pub(super) wants_segment: bool,
    pub(super) prepared: Option<Prepared>,
    /// The reason why nothing can be written at present.
    pub(super) failed: Option<WriteFailure>,
    /// The version of `failed`: the writer's own is ahead until it is copied here.
    pub(super) health_version: u64,
    /// True if the timed wait of the background thread has timed out.
    pub(super) elapsed: bool,
    /// True if commits are rejected because the store is stopping.
    pub(super) refusing: bool,
    pub(super) stopping: bool,
    pub(super) stopped: bool,
}

impl LogState {
    /// Returns the state of a log whose last commit is at `clock`.
    pub(super) fn new(clock: CommitClock) -> LogState {
        LogState {
            clock,
            queue: Batch { last: clock.sequence, ..Batch::default() },
            followed: VecDeque::new(),
            is_followed: false,
            led: false,
            thread_appointed: false,
            waiters: BTreeMap::new(),
            sync_waiters: Vec::new(),
            next_ticket: 0,
            armed: false,
            crowded: false,
            wants_segment: false,
            prepared: None,
            failed: None,
            health_version: 0,
            elapsed: false,
            refusing: false,
            stopping: false,
            stopped: false,
        }
    }

    /// Returns an error if the log has failed or is stopped.
    pub(super) fn check(&self) -> Result<()> {
        if let Some(failure) = &self.failed {
            return Err(Error::LogFailed { failure: failure.clone(), outcome_unknown: false });
        }
        if self.stopped { Err(Error::ShutDown) } else { Ok(()) }
    }

    /// Returns an error if a commit cannot be waited for.
    pub(super) fn check_given(&self, sequence: Sequence) -> Result<()> {
        self.check().map_err(|error| match error {
            Error::LogFailed { failure, .. } => Error::LogFailed { failure, outcome_unknown: true },
            error => error,
        })?;
        if sequence > self.clock.sequence {
            return Err(Error::InvalidRequest(format!("commit {} does not exist", sequence.0)));
        }
        Ok(())
    }

    /// Returns a number that distinguishes waiters for one sequence. Never 0.
    pub(super) fn new_ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket
    }

    /// Updates `failed` from the writer's health, unless a newer version is known.
    pub(super) fn note_health(&mut self, health: Health) {
        if health.version <= self.health_version {
            return;
        }
        self.health_version = health.version;
        match (&self.failed, &health.failed) {
            (None, Some(WriteFailure { detail, .. })) => {
                tracing::error!(%detail, "could not write the write-ahead log; commits are rejected");
            }
            (Some(_), None) => tracing::info!("the write-ahead log is writable again"),
            _ => {}
        }
        self.failed = health.failed;
    }

    /// Assigns a commit its sequence and time, and queues it.
    pub(super) fn append(
        &mut self,
        now: Timestamp,
        durability: Durability,
        (body, edits): (Body, &[RegionEdit]),
    ) -> CommitClock {
        let sequence = Sequence(self.clock.sequence.0 + 1);
        let timestamp = now.max(Timestamp(self.clock.timestamp.0 + 1));
        let clock = CommitClock { sequence, timestamp };
        debug_assert!(!sequence.is_staged(), "all sequences are used up");
        debug_assert!(timestamp < Timestamp::LATEST, "the highest timestamp is no time");
        self.clock = clock;
        let queue = &mut self.queue;
        debug_assert!(queue.last < sequence && queue.last_logged < sequence, "sequences rise");
        queue.last = sequence;
        if durability != Durability::SkipWal {
            push_commit(&mut queue.bytes, clock, body, edits);
            queue.last_logged = sequence;
        }
        if durability == Durability::SyncWal {
            queue.first_synced.get_or_insert(sequence);
        }
        clock
    }

    /// Queues a mark with the length of the manifest on disk; returns its number.
    pub(super) fn note_manifest(&mut self, manifest: ManifestMark) -> u64 {
        self.queue.manifest = self.queue.manifest.max(Some(manifest));
        self.new_mark()
    }

    /// Returns the number of a mark; the mark is on disk once all records queued before it are.
    pub(super) fn new_mark(&mut self) -> u64 {
        self.queue.mark_count += 1;
        self.queue.mark_count
    }

    /// Exchanges the queue with an empty one.
    pub(super) fn take_queue(&mut self, batch: &mut Batch) {
        batch.last = self.queue.last;
        batch.mark_count = self.queue.mark_count;
        debug_assert!(batch.bytes.is_empty() && batch.manifest.is_none(), "a batch is lost");
        std::mem::swap(batch, &mut self.queue);
    }

    /// Asserts, in debug builds, that waiters have a leader.
    pub(super) fn check_led(&self) {
        debug_assert!(
            self.waiters.is_empty() || self.led || self.failed.is_some() || self.stopped,
            "nobody leads for the waiters"
        );
        debug_assert!(!self.thread_appointed || self.led, "a leader was appointed twice");
    }

    /// Removes and returns the waiters for sequences up to `durable`; all of them if the log has
    /// failed.
    pub(super) fn take_ready(&mut self, durable: Sequence) -> BTreeMap<(u64, u64), Waiter> {
        if self.waiters.is_empty() || self.failed.is_some() || self.stopped {
            return std::mem::take(&mut self.waiters);
        }
        let later = self.waiters.split_off(&(durable.0.saturating_add(1), 0));
        std::mem::replace(&mut self.waiters, later)
    }

    /// Chooses the next leader: a waiting thread, else the background thread if any task waits,
    /// else none. Returns the thread to wake.
    pub(super) fn appoint(&mut self) -> Option<Arc<ParkedThread>> {
        self.led = !self.waiters.is_empty();
        let thread = self.waiters.iter().find_map(|(key, waiter)| match waiter {
            Waiter::Thread(parked) => Some((*key, Arc::clone(parked))),
            Waiter::Task(_) => None,
        });
        let Some((key, parked)) = thread else {
            self.thread_appointed = self.led;
            return None;
        };
        self.waiters.remove(&key);
        Some(parked)
    }
}
