//! The write-ahead log: one for all regions of the process.
//!
//! A commit is one record, however many regions and tables it touches. Records are framed and
//! checksummed; a thread of its own writes and syncs whatever has gathered while it was busy (group
//! commit), so no commit waits on a timer. Byte by byte: `docs/formats/wal.md`.

mod record;
mod reader;
mod writer;

use std::io::ErrorKind;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{JoinHandle, Thread};

use parking_lot::Mutex;

use crate::cell::Cell;
use crate::cell::{Sequence, Timestamp};
use crate::descriptor::{Durability, RegionId};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::wal::reader::{recover, segment_path};
use crate::wal::writer::{Shared, Writer};

/// The cells of one region in a commit.
#[derive(Debug, Clone, PartialEq)]
pub struct RegionEdit {
    /// The region.
    pub region: RegionId,
    /// Its cells; their `sequence` and LATEST timestamps are replaced by the record's.
    pub cells: Vec<Cell>,
}

/// One commit in the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Its place in the order of commits.
    pub sequence: Sequence,
    /// Its commit time.
    pub timestamp: Timestamp,
    /// What it wrote.
    pub edits: Vec<RegionEdit>,
}

/// The open log. Dropping it writes what is queued.
pub struct Wal {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    next_ticket: AtomicU64,
}

/// Told, in commit order, of every record once it is durable (or handed over, for ASYNC): feeds
/// region replicas.
pub trait WalFollower: Send + Sync {
    /// Called on the log's thread; must be quick.
    fn follow(&self, record: &Arc<Record>);
}

impl Wal {
    /// Opens the log in `directory`, calls `replay` for each whole record with a sequence above
    /// `after`, in order, and makes it ready for appending in a new segment.
    ///
    /// A torn tail of the last segment is cut.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] for damage before the tail.
    pub fn open(
        env: Arc<dyn Env>,
        directory: &Path,
        segment_bytes: u64,
        after: Sequence,
        replay: &mut dyn FnMut(Record) -> Result<()>,
    ) -> Result<Wal> {
        env.create_directory(directory)?;
        let segments = recover(&*env, directory, after, replay)?;
        let highest = segments.iter().map(|segment| segment.highest).max().unwrap_or_default();
        let durable = highest.max(after);
        let shared = Shared::new(env, directory.to_owned(), segment_bytes, segments, durable);
        let shared = Arc::new(shared);
        let writer = Writer::begin(shared.clone())?;
        let thread = std::thread::Builder::new()
            .name("bennu-wal".to_owned())
            .spawn(move || writer.run())
            .map_err(|source| Error::io(directory, source))?;
        let thread = Mutex::new(Some(thread));
        Ok(Wal { shared, thread, next_ticket: AtomicU64::new(0) })
    }

    /// Queues a record; records are written in the order of this call. Returns at once.
    /// For `SkipWal` records nothing is written, but they take their place in the durable mark.
    pub fn append(&self, record: Arc<Record>, durability: Durability) {
        self.shared.append(record, durability);
    }

    /// Returns the highest sequence such that it and all before it are durable, or were appended
    /// with a weaker durability and handed to the system.
    pub fn durable(&self) -> Sequence {
        Sequence(self.shared.durable.load(Ordering::Acquire))
    }

    /// Returns a future (also waitable by a plain thread) that is ready when `sequence` is durable.
    pub fn wait_for(&self, sequence: Sequence) -> DurableTicket {
        let ticket = self.next_ticket.fetch_add(1, Ordering::Relaxed);
        DurableTicket { shared: self.shared.clone(), sequence, ticket, waits: false }
    }

    /// Adds a follower of all records appended from now on.
    pub fn follow(&self, follower: Arc<dyn WalFollower>) {
        self.shared.follow(follower);
    }

    /// Removes segments all of whose records are at or below `flushed`, after closing the active
    /// one if that is true of it. Waits for the log's thread then.
    pub fn release(&self, flushed: Sequence) -> Result<()> {
        let mut state = self.shared.state.lock();
        let active = &state.active;
        let usable = state.failed.is_none() && !state.stopping;
        if usable && active.highest > Sequence(0) && active.highest <= flushed {
            state.roll();
            let number = state.active.number;
            self.shared.work.notify_one();
            while state.written_number < number && state.failed.is_none() && !state.stopped {
                self.shared.rolled.wait(&mut state);
            }
        }
        drop(state);
        while let Some(number) = self.oldest_obsolete(flushed) {
            // One by one from the oldest on, each made durable before the next: a crash or a failure
            // in between must not leave a gap in the log.
            let path = segment_path(&self.shared.directory, number);
            match self.shared.env.remove(&path) {
                // Removed before, when the sync failed.
                Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
                removed => removed?,
            }
            self.shared.env.sync_directory(&self.shared.directory)?;
            self.shared.state.lock().closed.retain(|segment| segment.number != number);
        }
        Ok(())
    }

    /// Returns the oldest segment if nothing in it is needed and it is not written any more.
    fn oldest_obsolete(&self, flushed: Sequence) -> Option<u32> {
        let state = self.shared.state.lock();
        let oldest = state.closed.first()?;
        let obsolete = oldest.number < state.written_number && oldest.highest <= flushed;
        obsolete.then_some(oldest.number)
    }

    /// Returns the bytes of all live segments.
    pub fn byte_count(&self) -> u64 {
        let state = self.shared.state.lock();
        let closed: u64 = state.closed.iter().map(|segment| segment.byte_count).sum();
        closed + state.active.byte_count
    }

    /// Writes and syncs what is queued and stops the thread.
    pub fn shut_down(&self) {
        self.shared.state.lock().stopping = true;
        self.shared.work.notify_one();
        let Some(thread) = self.thread.lock().take() else { return };
        if thread.join().is_err() {
            // A bug of ours; those who wait must not wait for ever.
            let mut state = self.shared.state.lock();
            state.failed = Some("the log's thread panicked".to_owned());
            let waiters = std::mem::take(&mut state.waiters);
            drop(state);
            waiters.into_values().for_each(Waker::wake);
        }
    }
}

impl Drop for Wal {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// Ready when a commit is durable. A `Future`, and [`DurableTicket::wait`] for plain threads.
///
/// Fails with [`Error::LogFailed`] if the log could not be written: the commit's fate is then open
/// until the restart.
pub struct DurableTicket {
    shared: Arc<Shared>,
    sequence: Sequence,
    /// Tells waiters of one sequence apart.
    ticket: u64,
    /// Whether a waker was left with the log.
    waits: bool,
}

impl DurableTicket {
    /// Blocks until the commit is durable.
    pub fn wait(mut self) -> Result<()> {
        if self.is_ready() {
            return Ok(());
        }
        let waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(result) = Pin::new(&mut self).poll(&mut context) {
                return result;
            }
            std::thread::park();
        }
    }

    /// Returns whether it is durable already.
    pub fn is_ready(&self) -> bool {
        self.shared.durable.load(Ordering::Acquire) >= self.sequence.0
    }
}

impl Future for DurableTicket {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        if self.is_ready() {
            return Poll::Ready(Ok(()));
        }
        let key = (self.sequence.0, self.ticket);
        let shared = self.shared.clone();
        let mut state = shared.state.lock();
        if self.is_ready() {
            return Poll::Ready(Ok(()));
        }
        if let Some(detail) = &state.failed {
            return Poll::Ready(Err(Error::LogFailed { detail: detail.clone() }));
        }
        if state.stopped {
            return Poll::Ready(Err(Error::ShutDown));
        }
        state.waiters.insert(key, context.waker().clone());
        self.waits = true;
        Poll::Pending
    }
}

impl Drop for DurableTicket {
    fn drop(&mut self) {
        if self.waits && !self.is_ready() {
            self.shared.state.lock().waiters.remove(&(self.sequence.0, self.ticket));
        }
    }
}

struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<ThreadWaker>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests;
