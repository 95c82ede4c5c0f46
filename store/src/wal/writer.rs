//! The thread that writes the log, and what it shares with those who append and wait.
//!
//! ```text
//!   append --> queue (bytes, records) --take all--> write --> fdatasync --> durable mark
//!                 ^  gathers while the thread is busy                         |
//!                 `-------------- group commit              wake tickets, call followers
//! ```
//!
//! # Invariants
//!
//! 1. Bytes are queued, written and acknowledged in the order of the calls of `append`.
//! 2. A record lies in one segment. A segment is synced before the next one is created.
//! 3. `durable` never passes a record that could not be written.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

use parking_lot::{Condvar, Mutex};

use crate::cell::Sequence;
use crate::descriptor::Durability;
use crate::env::{AppendFile, Env};
use crate::error::Result;
use crate::wal::reader::{Segment, segment_path};
use crate::wal::record::{SEGMENT_HEADER_BYTES, append_frames, segment_header};
use crate::wal::{Record, WalFollower};

/// A buffer that grew beyond this is given back after use.
const BUFFER_BYTES_KEPT: usize = 4 << 20;

/// What the thread shares with the callers.
pub(super) struct Shared {
    pub(super) env: Arc<dyn Env>,
    pub(super) directory: PathBuf,
    pub(super) segment_bytes: u64,
    pub(super) durable: AtomicU64,
    pub(super) state: Mutex<State>,
    /// Signalled when there is work or the end for the thread.
    pub(super) work: Condvar,
    /// Signalled when the thread has closed a segment, failed or ended.
    pub(super) rolled: Condvar,
}

pub(super) struct State {
    pub(super) queue: Queue,
    /// The segment that appends go to, and its bytes and highest sequence, queued ones included.
    pub(super) active: Segment,
    /// Bytes of the active segment known to be on disk.
    synced_bytes: u64,
    /// Segments not written any more, ascending.
    pub(super) closed: Vec<Segment>,
    /// The segment that the thread writes.
    pub(super) written_number: u32,
    pub(super) failed: Option<String>,
    pub(super) stopping: bool,
    pub(super) stopped: bool,
    /// By sequence and ticket.
    pub(super) waiters: BTreeMap<(u64, u64), Waker>,
    followers: Vec<(u64, Arc<dyn WalFollower>)>,
    /// Calls of `append` so far.
    append_count: u64,
    payload: Vec<u8>,
    /// An empty buffer for the next chunk.
    spare: Vec<u8>,
}

/// What was appended since the thread looked last.
#[derive(Default)]
pub(super) struct Queue {
    /// Bytes for each segment, ascending; a new number begins a new segment.
    chunks: Vec<(u32, Vec<u8>)>,
    records: Vec<(u64, Arc<Record>)>,
    highest: Sequence,
    wants_sync: bool,
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.records.is_empty()
    }
}

impl Shared {
    /// Returns the state of a log whose first record goes to segment `number`.
    pub(super) fn new(
        env: Arc<dyn Env>,
        directory: PathBuf,
        segment_bytes: u64,
        closed: Vec<Segment>,
        durable: Sequence,
    ) -> Shared {
        let number = closed.last().map_or(1, |last| last.number + 1);
        Shared {
            env,
            directory,
            segment_bytes,
            durable: AtomicU64::new(durable.0),
            state: Mutex::new(State {
                queue: Queue::default(),
                active: new_segment(number),
                synced_bytes: SEGMENT_HEADER_BYTES as u64,
                closed,
                written_number: number,
                failed: None,
                stopping: false,
                stopped: false,
                waiters: BTreeMap::new(),
                followers: Vec::new(),
                append_count: 0,
                payload: Vec::new(),
                spare: Vec::new(),
            }),
            work: Condvar::new(),
            rolled: Condvar::new(),
        }
    }

    /// Queues a record.
    pub(super) fn append(&self, record: Arc<Record>, durability: Durability) {
        let mut state = self.state.lock();
        if state.failed.is_some() || state.stopping {
            return;
        }
        if durability != Durability::SkipWal {
            if state.active.byte_count >= self.segment_bytes {
                state.roll();
            }
            state.queue_bytes(&record);
        }
        state.queue.wants_sync |= durability == Durability::SyncWal;
        state.queue.highest = state.queue.highest.max(record.sequence);
        let index = state.append_count;
        state.append_count += 1;
        state.queue.records.push((index, record));
        drop(state);
        self.work.notify_one();
    }

    /// Adds a follower of what is appended from now on.
    pub(super) fn follow(&self, follower: Arc<dyn WalFollower>) {
        let mut state = self.state.lock();
        let from = state.append_count;
        state.followers.push((from, follower));
    }

    fn fail(&self, detail: String) {
        tracing::error!(%detail, "the write-ahead log has failed");
        let mut state = self.state.lock();
        state.failed = Some(detail);
        state.queue = Queue::default();
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        self.rolled.notify_all();
        waiters.into_values().for_each(Waker::wake);
    }

    fn publish(&self, queue: &Queue) {
        let mut state = self.state.lock();
        let durable = self.durable.load(Ordering::Relaxed).max(queue.highest.0);
        self.durable.store(durable, Ordering::Release);
        let later = state.waiters.split_off(&(durable.saturating_add(1), 0));
        let ready = std::mem::replace(&mut state.waiters, later);
        let followers = state.followers.clone();
        drop(state);
        ready.into_values().for_each(Waker::wake);
        for (index, record) in &queue.records {
            for (from, follower) in &followers {
                // A follower that panics must not take the log with it.
                let call = AssertUnwindSafe(|| follower.follow(record));
                if index >= from && catch_unwind(call).is_err() {
                    tracing::error!(sequence = record.sequence.0, "a follower of the log panicked");
                }
            }
        }
    }
}

fn new_segment(number: u32) -> Segment {
    Segment { number, byte_count: SEGMENT_HEADER_BYTES as u64, highest: Sequence(0) }
}

impl State {
    /// Lets the records that follow go to a new segment.
    pub(super) fn roll(&mut self) {
        let number = self.active.number + 1;
        let closed = std::mem::replace(&mut self.active, new_segment(number));
        self.closed.push(closed);
        self.synced_bytes = SEGMENT_HEADER_BYTES as u64;
        self.queue.chunks.push((number, Vec::new()));
    }

    fn queue_bytes(&mut self, record: &Record) {
        let number = self.active.number;
        if self.queue.chunks.last().is_none_or(|(last, _)| *last != number) {
            let buffer = std::mem::take(&mut self.spare);
            self.queue.chunks.push((number, buffer));
        }
        let Some((_, bytes)) = self.queue.chunks.last_mut() else { return };
        let length_before = bytes.len();
        append_frames(record, number, self.synced_bytes, &mut self.payload, bytes);
        self.active.byte_count += (bytes.len() - length_before) as u64;
        self.active.highest = self.active.highest.max(record.sequence);
        if self.payload.capacity() > BUFFER_BYTES_KEPT {
            self.payload = Vec::new();
        }
    }
}

/// The thread's side.
pub(super) struct Writer {
    shared: Arc<Shared>,
    file: Box<dyn AppendFile>,
    number: u32,
    byte_count: u64,
    /// Whether bytes were written since the last sync.
    dirty: bool,
}

impl Writer {
    /// Creates the first segment to write.
    pub(super) fn begin(shared: Arc<Shared>) -> Result<Writer> {
        let number = shared.state.lock().active.number;
        let file = create_segment(&shared, number)?;
        let byte_count = SEGMENT_HEADER_BYTES as u64;
        Ok(Writer { shared, file, number, byte_count, dirty: false })
    }

    /// Writes until told to stop.
    pub(super) fn run(mut self) {
        loop {
            let queue = {
                let mut state = self.shared.state.lock();
                while state.queue.is_empty() && !state.stopping {
                    self.shared.work.wait(&mut state);
                }
                if state.queue.is_empty() {
                    break;
                }
                std::mem::take(&mut state.queue)
            };
            if let Err(error) = self.write(&queue) {
                self.shared.fail(error.to_string());
                break;
            }
            self.shared.publish(&queue);
            self.recycle(queue);
        }
        // What was appended without a sync must not depend on the system's mercy any longer.
        if self.shared.state.lock().failed.is_none()
            && let Err(error) = self.sync()
        {
            self.shared.fail(error.to_string());
        }
        let mut state = self.shared.state.lock();
        state.stopping = true;
        state.stopped = true;
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        self.shared.rolled.notify_all();
        waiters.into_values().for_each(Waker::wake);
    }

    fn write(&mut self, queue: &Queue) -> Result<()> {
        for (number, bytes) in &queue.chunks {
            if *number != self.number {
                self.sync()?;
                self.file = create_segment(&self.shared, *number)?;
                self.number = *number;
                self.byte_count = SEGMENT_HEADER_BYTES as u64;
                self.shared.state.lock().written_number = *number;
                self.shared.rolled.notify_all();
            }
            if !bytes.is_empty() {
                self.dirty = true;
                self.file.append(bytes)?;
                self.byte_count += bytes.len() as u64;
            }
        }
        if queue.wants_sync { self.sync() } else { Ok(()) }
    }

    fn sync(&mut self) -> Result<()> {
        if self.dirty {
            self.file.sync()?;
            self.dirty = false;
            let mut state = self.shared.state.lock();
            if state.active.number == self.number {
                state.synced_bytes = self.byte_count;
            }
        }
        Ok(())
    }

    /// Gives the buffer back, so that steady work allocates nothing.
    fn recycle(&self, mut queue: Queue) {
        let Some((_, mut bytes)) = queue.chunks.pop() else { return };
        bytes.clear();
        if bytes.capacity() > BUFFER_BYTES_KEPT {
            return;
        }
        self.shared.state.lock().spare = bytes;
    }
}

fn create_segment(shared: &Shared, number: u32) -> Result<Box<dyn AppendFile>> {
    let mut file = shared.env.create(&segment_path(&shared.directory, number))?;
    file.append(&segment_header(number))?;
    file.sync()?;
    shared.env.sync_directory(&shared.directory)?;
    Ok(file)
}
