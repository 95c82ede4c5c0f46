//! The write-ahead log: one for all regions of the process.
//!
//! A commit is one record, however many regions and tables it touches. Records are framed and
//! checksummed; a thread of its own writes and syncs whatever has gathered while it was busy (group
//! commit), so no commit waits on a timer. Byte by byte: `docs/formats/wal.md`.

use std::path::Path;
use std::sync::Arc;

use crate::cell::Cell;
use crate::cell::{Sequence, Timestamp};
use crate::descriptor::{Durability, RegionId};
use crate::env::Env;
use crate::error::Result;

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

/// The open log.
pub struct Wal {
    _private: (),
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
    /// [`Error::Corrupt`](crate::Error::Corrupt) for damage before the tail.
    pub fn open(
        env: Arc<dyn Env>,
        directory: &Path,
        segment_bytes: u64,
        after: Sequence,
        replay: &mut dyn FnMut(Record) -> Result<()>,
    ) -> Result<Wal> {
        let _ = (env, directory, segment_bytes, after, replay);
        todo!("store/wal")
    }

    /// Queues a record; records are written in the order of this call. Returns at once.
    /// For `SkipWal` records nothing is written, but they take their place in the durable mark.
    pub fn append(&self, record: Arc<Record>, durability: Durability) {
        let _ = (record, durability);
        todo!("store/wal")
    }

    /// Returns the highest sequence such that it and all before it are durable, or were appended with
    /// a weaker durability and handed to the system.
    pub fn durable(&self) -> Sequence {
        todo!("store/wal")
    }

    /// Returns a future (also waitable by a plain thread) that is ready when `sequence` is durable.
    pub fn wait_for(&self, sequence: Sequence) -> DurableTicket {
        let _ = sequence;
        todo!("store/wal")
    }

    /// Adds a follower of all records appended from now on.
    pub fn follow(&self, follower: Arc<dyn WalFollower>) {
        let _ = follower;
        todo!("store/wal")
    }

    /// Removes segments all of whose records are at or below `flushed`.
    pub fn release(&self, flushed: Sequence) -> Result<()> {
        let _ = flushed;
        todo!("store/wal")
    }

    /// Returns the bytes of all live segments.
    pub fn byte_count(&self) -> u64 {
        todo!("store/wal")
    }

    /// Writes and syncs what is queued and stops the thread.
    pub fn shut_down(&self) {
        todo!("store/wal")
    }
}

/// Ready when a commit is durable. A `Future`, and [`DurableTicket::wait`] for plain threads.
///
/// Fails with [`Error::LogFailed`](crate::Error::LogFailed) if the log could not be written: the
/// commit's fate is then open until the restart.
pub struct DurableTicket {
    _private: (),
}

impl DurableTicket {
    /// Blocks until the commit is durable.
    pub fn wait(self) -> Result<()> {
        todo!("store/wal")
    }

    /// Returns whether it is durable already.
    pub fn is_ready(&self) -> bool {
        todo!("store/wal")
    }
}

impl Future for DurableTicket {
    type Output = Result<()>;
    fn poll(
        self: std::pin::Pin<&mut Self>,
        _context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<()>> {
        todo!("store/wal")
    }
}
