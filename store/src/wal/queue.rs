//! What was appended and not written yet, and who waits for it. No files here.

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
    /// The last sequence that was given, whether it is in the log or not.
    pub(super) last: Sequence,
    /// The last sequence in `bytes`.
    pub(super) last_logged: Sequence,
    /// The first sequence that must be on disk before it is acknowledged.
    pub(super) first_synced: Option<Sequence>,
    /// How much of the manifest is on disk, to be noted behind the records.
    pub(super) manifest: Option<ManifestMark>,
    /// How often that was to be noted so far.
    pub(super) mark_count: u64,
}

impl Batch {
    /// Forgets what is in it and keeps its memory, unless that is much.
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

/// What a commit is to a follower.
pub(super) struct Followed {
    pub(super) clock: CommitClock,
    /// `None` if nobody followed when the commit began.
    pub(super) edits: Option<Arc<Vec<RegionEdit>>>,
}

/// A thread that waits.
pub(super) struct Parked {
    thread: Thread,
    /// Set when it is to lead.
    appointed: AtomicBool,
    /// Set when there is something to look at.
    released: AtomicBool,
}

impl Parked {
    /// Makes it the leader.
    pub(super) fn appoint(&self) {
        self.appointed.store(true, Ordering::Release);
        self.thread.unpark();
    }

    /// Waits until it is woken or made leader; returns whether it is the leader.
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

/// Who waits for a commit.
pub(super) enum Waiter {
    Thread(Arc<Parked>),
    Task(Waker),
}

impl Waiter {
    /// Returns the calling thread as a waiter.
    pub(super) fn of_this_thread() -> (Arc<Parked>, Waiter) {
        let (appointed, released) = (AtomicBool::new(false), AtomicBool::new(false));
        let parked = Arc::new(Parked { thread: current(), appointed, released });
        (Arc::clone(&parked), Waiter::Thread(parked))
    }

    /// Lets it look again.
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

/// What is behind the log's mutex.
pub(super) struct State {
    pub(super) clock: CommitClock,
    pub(super) queue: Batch,
    /// Commits that followers are to be told of once they are durable.
    pub(super) followed: VecDeque<Followed>,
    pub(super) is_followed: bool,
    /// Whether somebody leads: writes and syncs for all.
    pub(super) led: bool,
    /// Whether the log's own thread was made leader and has not begun yet.
    pub(super) thread_appointed: bool,
    /// Who waits for a sequence to be durable, by that and the ticket.
    pub(super) waiters: BTreeMap<(u64, u64), Waiter>,
    /// Who waits for all before to be on disk.
    pub(super) sync_waiters: Vec<Waiter>,
    pub(super) next_ticket: u64,
    /// Whether the log's own thread knows that there is something to sync soon.
    pub(super) armed: bool,
    /// Whether so much waits for the disk that the log's own thread is not to wait any longer.
    pub(super) crowded: bool,
    /// Whether the next segment is to be prepared.
    pub(super) wants_segment: bool,
    pub(super) prepared: Option<Prepared>,
    /// Why nothing can be written at present.
    pub(super) failed: Option<WriteFailure>,
    /// The version of `failed`: the writer's own is ahead until it is told here.
    pub(super) health_version: u64,
    /// Whether the time that the log's own thread waited for has passed.
    pub(super) elapsed: bool,
    /// Whether commits are refused because the store stops.
    pub(super) refusing: bool,
    pub(super) stopping: bool,
    pub(super) stopped: bool,
}

impl State {
    /// Returns the state of a log whose last commit is at `clock`.
    pub(super) fn new(clock: CommitClock) -> State {
        State {
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

    /// Returns an error if nobody can be served.
    pub(super) fn check(&self) -> Result<()> {
        if let Some(failure) = &self.failed {
            return Err(Error::LogFailed { failure: failure.clone(), is_open: false });
        }
        if self.stopped { Err(Error::ShutDown) } else { Ok(()) }
    }

    /// Returns an error if a commit cannot be waited for.
    pub(super) fn check_given(&self, sequence: Sequence) -> Result<()> {
        self.check().map_err(|error| match error {
            Error::LogFailed { failure, .. } => Error::LogFailed { failure, is_open: true },
            error => error,
        })?;
        if sequence > self.clock.sequence {
            return Err(Error::InvalidRequest(format!("there is no commit {}", sequence.0)));
        }
        Ok(())
    }

    /// Returns a number that tells waiters for one sequence apart. Never 0.
    pub(super) fn new_ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket
    }

    /// Takes note of how the writer is, unless something newer is known.
    pub(super) fn note_health(&mut self, health: Health) {
        if health.version <= self.health_version {
            return;
        }
        self.health_version = health.version;
        match (&self.failed, &health.failed) {
            (None, Some(WriteFailure { detail, .. })) => {
                tracing::error!(%detail, "the write-ahead log cannot be written; commits are refused");
            }
            (Some(_), None) => tracing::info!("the write-ahead log can be written again"),
            _ => {}
        }
        self.failed = health.failed;
    }

    /// Gives a commit its place and queues it.
    pub(super) fn append(
        &mut self,
        now: Timestamp,
        durability: Durability,
        (body, edits): (Body, &[RegionEdit]),
    ) -> CommitClock {
        let sequence = Sequence(self.clock.sequence.0 + 1);
        let timestamp = now.max(Timestamp(self.clock.timestamp.0 + 1));
        let clock = CommitClock { sequence, timestamp };
        self.clock = clock;
        let queue = &mut self.queue;
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

    /// Queues a note of how much of the manifest is on disk; returns its number.
    pub(super) fn note_manifest(&mut self, manifest: ManifestMark) -> u64 {
        self.queue.manifest = self.queue.manifest.max(Some(manifest));
        self.new_mark()
    }

    /// Returns a number that is on disk once all that was queued before is.
    pub(super) fn new_mark(&mut self) -> u64 {
        self.queue.mark_count += 1;
        self.queue.mark_count
    }

    /// Exchanges the queue with an empty one.
    pub(super) fn take_queue(&mut self, batch: &mut Batch) {
        batch.last = self.queue.last;
        batch.mark_count = self.queue.mark_count;
        std::mem::swap(batch, &mut self.queue);
    }

    /// Takes those who wait for what is durable up to `durable`; all if the log has failed.
    pub(super) fn take_ready(&mut self, durable: Sequence) -> BTreeMap<(u64, u64), Waiter> {
        if self.waiters.is_empty() || self.failed.is_some() || self.stopped {
            return std::mem::take(&mut self.waiters);
        }
        let later = self.waiters.split_off(&(durable.0.saturating_add(1), 0));
        std::mem::replace(&mut self.waiters, later)
    }

    /// Chooses who leads next among those who still wait: a thread that waits anyway, else the
    /// log's own, else nobody. Returns the thread to wake.
    pub(super) fn appoint(&mut self) -> Option<Arc<Parked>> {
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
