//! The write-ahead log, shared by all regions of the process.
//!
//! A commit is one record, regardless of how many regions and tables it touches. The order of
//! records is the order of commits, so the log assigns each commit its sequence and timestamp.
//! Group commit: a thread that waits for the disk becomes leader and writes and syncs all queued
//! records; no commit waits for a timer. The byte format is in `docs/formats/wal.md`.
//!
//! # Durability
//!
//! * `SyncWal`: waits until its record and all before it are on disk. Survives power loss.
//! * `AsyncWal`: waits until its record has been passed to the operating system by one write,
//!   made by the committing thread or by one that writes for several. Survives the death of the
//!   process, not of the machine. The log's background thread syncs it within 50 ms or 4 MiB; the
//!   commit does not wait for that unless 64 MiB of records are unsynced. New snapshots include
//!   commits in sequence order, so an ASYNC commit behind a SYNC commit that is still being
//!   synced becomes visible together with it.
//! * `SkipWal`: nothing is logged. Cells that are not flushed are lost when the process ends.
//!
//! # Write and sync failures
//!
//! Records that are not known to be on disk are retained in memory. After a failed write or sync
//! they are written to a new segment at once, and no commit fails. If that fails too (the disk is
//! full), new commits are rejected with [`Error::LogFailed`] before they get a sequence, and
//! waiting commits return the same error with their outcome unknown. The background thread
//! retries every half second; when a retry succeeds, the commits with unknown outcome are
//! committed, and new commits are accepted again.

mod sync;
mod cells;
mod record;
mod reader;
mod rescue;
mod writer;
mod queue;
mod log;
mod ticket;
pub(crate) mod fuzzing;

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use crate::cell::{Sequence, Timestamp};
use crate::descriptor::Durability;
use crate::error::{Error, RESTORE, Result};
use crate::wal::log::Log;
use crate::wal::reader::{ExpectedLog, recover, segment_path, warn_of_other_files};
use crate::wal::sync::{Builder, JoinHandle, Mutex};
use crate::wal::writer::{Writer, prepare};

pub use crate::wal::cells::{Cells, CommitClock, FamilyCells, LoggedCell, LoggedCells, RegionEdit};
pub use crate::wal::reader::{LogPosition, WalReader};
pub use crate::wal::record::{Edits, ManifestMark, Record};
pub(crate) use crate::wal::rescue::rescue;
pub use crate::wal::ticket::DurableTicket;
pub use crate::wal::writer::WalOptions;

/// The open log. Dropping it writes and syncs what is queued.
pub struct Wal {
    log: Arc<Log>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Held while segments are removed.
    releasing: Mutex<()>,
}

/// Receiver of commits, in sequence order, each once it has its requested durability: feeds
/// region replicas.
pub trait WalFollower: Send + Sync {
    /// Called by the thread that wrote the log; must return quickly. `edits` is `None` for a
    /// commit that was appended before there were followers.
    fn follow(&self, clock: CommitClock, edits: Option<&Arc<Vec<RegionEdit>>>);
}

/// Receiver of segment rolls.
pub(crate) trait RollWatcher: Send + Sync {
    /// Called by the thread that wrote the log, without a lock. Two rolls may be reported as one
    /// call.
    fn rolled(&self, closed: u32, opened: u32);
}

/// Statistics of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalStatus {
    /// Bytes of all segments.
    pub byte_count: u64,
    /// All commits up to here are on disk, regardless of their durability.
    pub synced: Sequence,
    /// The reason why commits are rejected at present, if they are.
    pub failed: Option<String>,
    /// Number of times that records were rewritten to a new segment after a failure.
    pub new_segments: u64,
}

/// State of a log that the caller of [`Wal::open`] knows from other files.
#[derive(Debug, Clone, Default)]
pub struct ManifestLogState {
    /// Commits at or below this sequence are in store files.
    pub released: Sequence,
    /// The last commit that was made, in the log or not.
    pub last: CommitClock,
    /// The log was on disk up to here.
    pub durable: Option<LogPosition>,
    /// Length of the manifest that was read.
    pub manifest: ManifestMark,
    /// Path of that manifest, for errors.
    pub manifest_path: PathBuf,
    /// True if segments outside the chain are to be left in place, because other damage was
    /// found.
    pub keeps_strays: bool,
}

impl Wal {
    /// Opens the log, calls `replay` in order for each complete record with a sequence above the
    /// released one, and starts a new segment for appends. The last commit is the known one, or
    /// that of the last record if that is later.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] for damage before the tail, for a log or a manifest that is known to
    /// have been longer, and the errors of `replay`. Nothing was changed then.
    pub fn open(
        options: WalOptions,
        known: &ManifestLogState,
        replay: &mut dyn FnMut(&Record<'_>) -> Result<()>,
    ) -> Result<Wal> {
        let env = Arc::clone(&options.env);
        let directory = options.directory.clone();
        let mut clock = known.last;
        let expected = ExpectedLog {
            released: known.released,
            durable: known.durable,
            database: Some(options.database),
        };
        let found = recover(&env, &directory, expected, &mut |record| {
            let place = record.clock();
            clock.sequence = clock.sequence.max(place.sequence);
            clock.timestamp = clock.timestamp.max(place.timestamp);
            replay(record)
        })?;
        known.check_manifest(found.manifest)?;
        env.create_directory(&directory)?;
        warn_of_other_files(&*env, &directory)?;
        let begun = (found.last_number + 1, found.last);
        let last = (clock.sequence, known.manifest);
        let writer = Writer::begin(options, found.segments, begun, last)?;
        if !found.strays.is_empty() {
            // They are removed below, which needs the new segment: the manifest may refer to them.
            writer.check()?;
        }
        if !known.keeps_strays {
            // Only now: until the new segment is on disk they are part of the chain that defines
            // the log.
            for number in &found.strays {
                env.remove(&segment_path(&directory, *number))?;
            }
            if !found.strays.is_empty() {
                env.sync_directory(&directory)?;
            }
        }
        let log = Arc::new(Log::new(writer, clock));
        let log_of_thread = Arc::clone(&log);
        #[expect(clippy::disallowed_methods, reason = "threads of the log are modelled")]
        let thread = Builder::new()
            .name("bennu-wal".to_owned())
            .spawn(move || log_of_thread.run())
            .map_err(|source| Error::io(&directory, source))?;
        Ok(Wal { log, thread: Mutex::new(Some(thread)), releasing: Mutex::new(()) })
    }

    /// Assigns a commit its sequence and time, not before `now`, and queues its record. The caller
    /// then calls [`Wal::write_through`] or waits for the commit. `shared` is the same edits, for
    /// followers; required if [`Wal::is_followed`].
    ///
    /// # Errors
    ///
    /// Nothing is committed then: [`Error::LogFailed`], [`Error::ShutDown`],
    /// [`Error::InvalidRequest`] if the commit is too long for a record.
    pub fn append(
        &self,
        now: Timestamp,
        durability: Durability,
        edits: &[RegionEdit],
        shared: Option<&Arc<Vec<RegionEdit>>>,
    ) -> Result<CommitClock> {
        self.log.append(now, durability, edits, shared)
    }

    /// Returns when all commits up to `sequence` have been passed to the operating system, by
    /// this thread unless another one has done so. Returns whether so many bytes are unsynced
    /// that the caller has to wait for the sync with [`Wal::sync_through`].
    pub fn write_through(&self, sequence: Sequence) -> bool {
        self.log.hand_over(sequence)
    }

    /// Returns when all commits up to `sequence` are on disk, regardless of their durability.
    ///
    /// # Errors
    ///
    /// [`Error::LogFailed`], [`Error::ShutDown`].
    pub fn sync_through(&self, sequence: Sequence) -> Result<()> {
        self.log.sync_through(sequence)
    }

    /// Logs the length of the manifest that is on disk, and returns when that record is synced. A
    /// later opening then detects a manifest that was cut.
    ///
    /// # Errors
    ///
    /// [`Error::LogFailed`], [`Error::ShutDown`].
    pub fn note_manifest(&self, manifest: ManifestMark) -> Result<()> {
        self.log.note_manifest(manifest)
    }

    /// Returns the position up to which the log is on disk.
    pub fn synced(&self) -> LogPosition {
        self.log.writer.lock().synced().into()
    }

    /// Returns the end of the log once the log is shut down and all of it is on disk.
    pub fn end(&self) -> Option<LogPosition> {
        let state = self.log.state.lock();
        let ended = state.stopped && state.failed.is_none();
        drop(state);
        ended.then(|| self.log.writer.lock().synced_end()).flatten().map(LogPosition::from)
    }

    /// Returns the highest sequence such that it and all before it have their requested
    /// durability.
    pub fn durable(&self) -> Sequence {
        self.log.durable()
    }

    /// Returns the sequence and time of the last commit.
    pub fn clock(&self) -> CommitClock {
        self.log.state.lock().clock
    }

    /// Returns a future (also waitable by a plain thread) that is ready when the commit at
    /// `sequence` has its requested durability.
    pub fn wait_for(&self, sequence: Sequence) -> DurableTicket {
        DurableTicket::new(Arc::clone(&self.log), sequence)
    }

    /// Adds a follower of all commits from now on; returns the last one before.
    pub fn follow(&self, follower: Arc<dyn WalFollower>) -> CommitClock {
        self.log.follow(follower)
    }

    /// Sets the watcher of segment rolls; only the first call has an effect.
    pub(crate) fn watch_rolls(&self, watcher: Arc<dyn RollWatcher>) {
        self.log.watch_rolls(watcher);
    }

    /// Returns whether there is a follower.
    pub fn is_followed(&self) -> bool {
        self.log.is_followed()
    }

    /// Removes, or moves to the archive, the segments all of whose commits are at or below
    /// `flushed`, after closing the active one if that holds for it too.
    pub fn release(&self, flushed: Sequence) -> Result<()> {
        // Otherwise one call would remove a segment that another is about to move to the archive.
        let _releasing = self.releasing.lock();
        self.close_active(flushed)?;
        let (env, directory, archive) = {
            let writer = self.log.writer.lock();
            let options = writer.options();
            (Arc::clone(&options.env), options.directory.clone(), options.archive.clone())
        };
        let mut removed = false;
        if self.oldest_obsolete(flushed).is_some() {
            // The segment after it must be part of the log on disk before this one is removed.
            self.log.sync_all()?;
        }
        while let Some(number) = self.oldest_obsolete(flushed) {
            let path = segment_path(&directory, number);
            if let Some(archive) = &archive {
                env.create_directory(archive)?;
                env.link(&path, &segment_path(archive, number))
                    .or_else(ignore(ErrorKind::AlreadyExists))?;
                env.sync_directory(archive)?;
            }
            env.remove(&path).or_else(ignore(ErrorKind::NotFound))?;
            let mut writer = self.log.writer.lock();
            writer.forget(number);
            self.log.note(&writer);
            removed = true;
        }
        if removed { env.sync_directory(&directory) } else { Ok(()) }
    }

    fn close_active(&self, flushed: Sequence) -> Result<()> {
        let (options, number) = {
            let mut writer = self.log.writer.lock();
            if !writer.active_is_obsolete(flushed) {
                return Ok(());
            }
            (writer.options().clone(), writer.new_number())
        };
        // Without the lock, so that commits continue meanwhile.
        let next = prepare(&options, number)?;
        let mut writer = self.log.writer.lock();
        if !writer.active_is_obsolete(flushed) {
            drop(writer);
            self.log.state.lock().prepared = Some(next);
            return Ok(());
        }
        let closed = writer.close_active(next);
        self.log.note(&writer);
        drop(writer);
        self.log.tell_rolls();
        closed
    }

    fn oldest_obsolete(&self, flushed: Sequence) -> Option<u32> {
        self.log.writer.lock().oldest_obsolete(flushed)
    }

    /// Returns the bytes of all live segments.
    pub fn byte_count(&self) -> u64 {
        self.log.byte_count()
    }

    /// Returns the statistics.
    pub fn status(&self) -> WalStatus {
        let (synced, new_segments) = {
            let writer = self.log.writer.lock();
            (writer.synced_through(), writer.new_segments())
        };
        let failed = self.log.state.lock().failed.clone().map(|failure| failure.detail);
        WalStatus { byte_count: self.byte_count(), synced, failed, new_segments }
    }

    /// Rejects further commits.
    pub fn reject_commits(&self) {
        self.log.state.lock().refusing = true;
    }

    /// Rejects further commits, writes and syncs the queued ones and stops the thread.
    pub fn shut_down(&self) {
        self.log.state.lock().stopping = true;
        self.log.work.notify_one();
        let Some(thread) = self.thread.lock().take() else { return };
        if thread.join().is_err() {
            // A bug in this crate; waiters must not block forever.
            self.log.fail_all_waiters("WAL thread panicked");
        }
    }
}

impl ManifestLogState {
    /// Checks that the manifest is as long as the log knows that it was.
    fn check_manifest(&self, noted: ManifestMark) -> Result<()> {
        if noted <= self.manifest {
            return Ok(());
        }
        let found = self.manifest.byte_count;
        let detail = if noted.generation > self.manifest.generation {
            format!(
                "the manifest is outdated: the write-ahead log refers to a later one; {RESTORE}"
            )
        } else {
            format!(
                "the manifest is truncated: it has {found} bytes of complete edits, expected at \
                 least {}; {RESTORE}",
                noted.byte_count
            )
        };
        Err(Error::corrupt(&self.manifest_path, found, detail))
    }
}

impl Drop for Wal {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// Treats an error of this kind as success.
fn ignore(kind: ErrorKind) -> impl Fn(Error) -> Result<()> {
    move |error| match error {
        Error::Io { source, .. } if source.kind() == kind => Ok(()),
        error => Err(error),
    }
}

#[cfg(test)]
#[cfg(feature = "model-check")]
mod model;
#[cfg(test)]
#[cfg(not(feature = "model-check"))]
mod tests;
