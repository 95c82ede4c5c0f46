//! Segment files of the log: the active segment, the unsynced records, and recovery from write
//! failures.
//!
//! ```text
//!   queue --take all--> sealed for the segment --write--> unsynced --sync--> syncing --> dropped
//!                                                            |                  |
//!                                 a write or a sync fails:   `--- rewritten ----'
//!                                                               to a new segment
//! ```
//!
//! # Invariants
//!
//! 1. Records are written in the order of their sequences, each to one segment.
//! 2. Records that are not known to be on disk are retained in memory. After a failed write or
//!    sync the file is not synced again: all retained records go to a new segment, whose first
//!    record says where the log before it ends, and only then is a commit acknowledged.
//! 3. A length of the file that a record states is on disk, so that a truncated file is detected.
//! 4. One thread syncs at a time, without the writer's lock, so that others can write meanwhile.
//!
//! Small synced records overwrite zeros that were written ahead and are usually on disk already.
//!
//! [`Writer::write`] and [`Writer::end_sync`] assert 1 and that the synced marks rise,
//! `Writer::check_lengths` asserts 3, [`Writer::begin_sync`] 4 in debug builds.
//!
//! The leader and committing threads ([`super::log`]) call it; the reader of the same files is
//! [`super::reader`].

use std::path::PathBuf;
use std::sync::Arc;

use crate::cell::Sequence;
use crate::descriptor::DatabaseId;
use crate::env::{Env, SegmentFile};
use crate::error::{Error, Result, WriteFailure};
use crate::wal::queue::{Batch, LogState};
use crate::wal::reader::{Segment, segment_path};
use crate::wal::record::{
    LogEnd, ManifestMark, SEGMENT_HEADER_BYTES, START_BYTES, StatedLengths, push_mark, push_start,
    seal, segment_header,
};

/// Zeros that are written ahead of small synced records: a sync of bytes inside the file's length
/// does not have to change file system metadata, and a truncated file can be detected.
const AHEAD_BYTES_MAX: u64 = 256 << 10;
/// Batch size from which no zeros are written ahead.
const SMALL_BATCH_BYTES: usize = 32 << 10;
/// Batch size from which a batch is retained as one chunk; smaller ones are gathered in chunks of
/// this size, which are reused.
const KEPT_CHUNK_BYTES: usize = 256 << 10;

/// Location of the log and sizes of its segments.
#[derive(Clone)]
pub struct WalOptions {
    /// Files and clock.
    pub env: Arc<dyn Env>,
    /// Directory of the segments.
    pub directory: PathBuf,
    /// Database that the segments belong to.
    pub database: DatabaseId,
    /// Size at which a segment is closed and the next one started.
    pub segment_bytes: u64,
    /// Directory to which obsolete segments are moved; `None`: they are removed.
    pub archive: Option<PathBuf>,
    /// Bytes of unsynced records, which are retained in memory, from which ASYNC commits wait for
    /// the disk.
    pub unsynced_bytes_max: u64,
}

/// A segment that was created in advance.
pub(super) struct Prepared {
    number: u32,
    file: Arc<dyn SegmentFile>,
    allocated_bytes: u64,
}

/// Retained records that are not known to be on disk.
#[derive(Debug)]
struct Unsynced {
    chunks: Vec<Vec<u8>>,
    byte_count: u64,
    /// The first sequence among them that must be on disk before it is acknowledged.
    first_synced: Option<Sequence>,
    /// Empty chunks for reuse, and the maximal number of them.
    free: Vec<Vec<u8>>,
    free_max: usize,
}

impl Unsynced {
    /// Returns an empty list; `bytes_max` is the limit of unsynced bytes.
    fn new(bytes_max: u64) -> Unsynced {
        // There are two lists, which are swapped.
        let free_max = (bytes_max / 4 / KEPT_CHUNK_BYTES as u64).clamp(1, 64) as usize;
        Unsynced {
            chunks: Vec::new(),
            byte_count: 0,
            first_synced: None,
            free: Vec::new(),
            free_max,
        }
    }

    /// Adds the records of a batch.
    fn keep(&mut self, batch: &mut Batch) {
        self.byte_count += batch.bytes.len() as u64;
        self.first_synced = self.first_synced.or(batch.first_synced);
        let length = batch.bytes.len();
        match self.chunks.last_mut() {
            _ if length == 0 => {}
            _ if length >= KEPT_CHUNK_BYTES => self.chunks.push(std::mem::take(&mut batch.bytes)),
            Some(last) if last.capacity() - last.len() >= length => {
                last.extend_from_slice(&batch.bytes);
            }
            _ => {
                let chunk = self.free.pop();
                let mut chunk = chunk.unwrap_or_else(|| Vec::with_capacity(KEPT_CHUNK_BYTES));
                chunk.extend_from_slice(&batch.bytes);
                self.chunks.push(chunk);
            }
        }
        batch.clear();
    }

    fn clear(&mut self) {
        for mut chunk in self.chunks.drain(..) {
            if chunk.capacity() == KEPT_CHUNK_BYTES && self.free.len() < self.free_max {
                chunk.clear();
                self.free.push(chunk);
            }
        }
        self.byte_count = 0;
        self.first_synced = None;
    }
}

/// A sync to be executed, with the state of the writer when it was requested.
pub(super) struct SyncJob {
    files: Vec<Arc<dyn SegmentFile>>,
    synced: LogEnd,
    last_logged: Sequence,
    written: Sequence,
    epoch: u64,
    allocated_bytes: u64,
    marks: u64,
}

impl SyncJob {
    /// Syncs the files; blocks.
    pub(super) fn run(&self) -> Result<()> {
        self.files.iter().try_for_each(|file| file.sync())
    }
}

/// The file of a log that was opened on a full disk, before a segment could be created.
struct MissingSegment;

impl SegmentFile for MissingSegment {
    fn write_at(&self, _: u64, _: &[u8]) -> Result<()> {
        let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
        Err(Error::io("the write-ahead log", source))
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

/// The files of the log.
pub(super) struct Writer {
    options: WalOptions,
    file: Arc<dyn SegmentFile>,
    /// The segment that is appended to.
    active: Segment,
    /// Length of the active file, including unused zeros …
    allocated_bytes: u64,
    /// … the part of it that is known to be on disk, and the part that a record states to be.
    allocated_synced: u64,
    allocated_noted: u64,
    /// Length of the manifest on disk.
    manifest: ManifestMark,
    /// Number of marks written, and number on disk.
    written_marks: u64,
    synced_marks: u64,
    /// Segments that are closed, oldest first.
    closed: Vec<Segment>,
    /// Files of closed segments that are not known to be on disk.
    closing: Vec<Arc<dyn SegmentFile>>,
    /// The log is on disk up to here …
    synced: LogEnd,
    /// … with this sequence as the last one in it …
    synced_logged: Sequence,
    /// … and all commits up to this one.
    synced_through: Sequence,
    unsynced: Unsynced,
    syncing: Unsynced,
    /// All commits up to here have been passed to the operating system.
    written: Sequence,
    batch: Batch,
    /// The last segment number that was assigned.
    last_number: u32,
    /// Changes when records were rewritten: the result of an earlier sync is then obsolete.
    epoch: u64,
    /// Number of times that records were rewritten to a new segment.
    new_segments: u64,
    health: Health,
}

/// State of the log: writable or failed.
#[derive(Debug, Clone, Default)]
pub(super) struct Health {
    /// Rises with each change.
    pub(super) version: u64,
    /// The reason why nothing can be written at present.
    pub(super) failed: Option<WriteFailure>,
}

impl Writer {
    /// Creates a new segment behind `closed`, the segments that exist. The last commit is `last`,
    /// the last one in the log `logged`; the manifest is on disk up to `manifest`.
    ///
    /// Without space on the disk the log opens as after a failed write: the database can be read,
    /// and commits fail until a new segment can be created.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], on a full disk only if no segment exists.
    pub(super) fn begin(
        options: WalOptions,
        mut closed: Vec<Segment>,
        (number, logged): (u32, Sequence),
        (last, manifest): (Sequence, ManifestMark),
    ) -> Result<Writer> {
        let end = closed.last().map_or(LogEnd { segment: 0, byte_count: 0 }, Segment::end);
        let before = PreviousLog { end, last: logged, manifest };
        let mut health = Health::default();
        let (file, active, synced, allocated_bytes) =
            match begin_segment(&options, number, before, &mut []) {
                Ok((file, synced, allocated_bytes)) => {
                    let byte_count = synced.byte_count;
                    let active = Segment { number, byte_count, highest: logged, before: logged };
                    (file, active, synced, allocated_bytes)
                }
                Err(error) => {
                    let failure = WriteFailure::from(&error);
                    let last_segment = closed.pop().filter(|_| failure.is_full);
                    let Some(active) = last_segment else { return Err(error) };
                    tracing::warn!(%error, "could not write the write-ahead log; the database is \
                                            read-only");
                    drop(options.env.remove(&segment_path(&options.directory, number)));
                    (health.version, health.failed) = (1, Some(failure));
                    (Arc::new(MissingSegment) as Arc<dyn SegmentFile>, active, end, 0)
                }
            };
        let [unsynced, syncing] = [0, 1].map(|_| Unsynced::new(options.unsynced_bytes_max));
        Ok(Writer {
            options,
            file,
            active,
            allocated_bytes,
            allocated_synced: allocated_bytes,
            allocated_noted: allocated_bytes,
            manifest,
            written_marks: 0,
            synced_marks: 0,
            closed,
            closing: Vec::new(),
            synced,
            synced_logged: logged,
            synced_through: last,
            unsynced,
            syncing,
            written: last,
            batch: Batch::default(),
            last_number: number,
            epoch: 0,
            new_segments: 0,
            health,
        })
    }

    /// Returns the empty batch to be swapped with the queue.
    pub(super) fn batch(&mut self) -> &mut Batch {
        &mut self.batch
    }

    /// Writes the batch. Records that cannot be written are retained.
    ///
    /// # Errors
    ///
    /// Nothing can be written at present, to a new segment either.
    pub(super) fn write(&mut self, roll: Roll) -> Result<()> {
        let last = self.batch.last;
        assert!(last >= self.written, "records are written in the order of their sequences");
        self.manifest = self.manifest.max(self.batch.manifest.unwrap_or_default());
        self.written_marks = self.batch.mark_count;
        if self.batch.bytes.is_empty() && self.batch.manifest.is_none() {
            self.written = last;
            return self.check();
        }
        // A batch with only a mark has the last sequence of an earlier batch.
        let last_logged = self.batch.last_logged.max(self.active.highest);
        assert!(last_logged <= last, "a record is logged before it has a sequence");
        assert!(
            self.batch.first_synced.is_none_or(|first| self.written < first && first <= last),
            "a commit of the batch was written before"
        );
        let outcome = self.check().and_then(|()| self.roll(roll)).and_then(|()| self.write_batch());
        self.unsynced.keep(&mut self.batch);
        self.active.highest = last_logged;
        self.written = last;
        match outcome {
            Ok(()) => Ok(()),
            Err(error) => self.recover_from_failure(&error),
        }
    }

    /// Returns an error if nothing can be written at present.
    pub(super) fn check(&self) -> Result<()> {
        match &self.health.failed {
            Some(failure) => {
                Err(Error::LogFailed { failure: failure.clone(), outcome_unknown: false })
            }
            None => Ok(()),
        }
    }

    /// Returns whether the log can be written.
    pub(super) fn health(&self) -> Health {
        self.health.clone()
    }

    /// Returns the settings.
    pub(super) fn options(&self) -> &WalOptions {
        &self.options
    }

    fn write_batch(&mut self) -> Result<()> {
        let start = self.active.byte_count;
        let small = self.batch.first_synced.is_some() && self.batch.bytes.len() < SMALL_BATCH_BYTES;
        if self.batch.manifest.is_some() || self.allocated_synced > self.allocated_noted {
            self.allocated_noted = self.allocated_synced;
            let known = self.known();
            push_mark(&mut self.batch.bytes, known);
        }
        let bytes = &mut self.batch.bytes;
        seal(bytes, self.active.number, self.synced);
        self.file.write_at(start, bytes)?;
        self.active.byte_count += bytes.len() as u64;
        self.allocated_bytes = self.allocated_bytes.max(self.active.byte_count);
        // While there is still room, so that the zeros are synced before they are needed.
        let ahead_bytes = ahead_bytes(&self.options);
        if small && self.active.byte_count + ahead_bytes / 2 > self.allocated_bytes {
            self.allocated_bytes = allocate_ahead(&*self.file, self.allocated_bytes, ahead_bytes);
        }
        self.check_lengths();
        Ok(())
    }

    /// Asserts that the length that a record states is on disk.
    fn check_lengths(&self) {
        assert!(
            self.allocated_noted <= self.allocated_synced
                && self.allocated_synced <= self.allocated_bytes,
            "a record states a length that is not on disk"
        );
        debug_assert!(self.synced <= self.active.end(), "more is synced than was written");
    }

    /// Returns the lengths of manifest and active segment that a record may state.
    fn known(&self) -> StatedLengths {
        StatedLengths {
            manifest: self.manifest,
            segment: self.active.number,
            allocated_bytes: self.allocated_synced,
        }
    }

    /// Rolls to the next segment if the active one is full. Does not wait for a segment that is
    /// not prepared, unless the active one has twice its size.
    fn roll(&mut self, roll: Roll) -> Result<()> {
        let next = match roll {
            Roll::No => return Ok(()),
            Roll::To(prepared) if prepared.number > self.active.number => prepared,
            Roll::To(_) | Roll::IfLong => {
                // A prepared one that came too late is removed when the log is next opened.
                if self.active.byte_count < self.options.segment_bytes * 2 {
                    return Ok(());
                }
                let number = self.new_number();
                prepare(&self.options, number)?
            }
        };
        assert!(next.number > self.active.number, "segments are numbered in order");
        let mut start = Vec::new();
        let highest = self.active.highest;
        let known = StatedLengths {
            manifest: self.manifest,
            segment: next.number,
            allocated_bytes: next.allocated_bytes,
        };
        push_start(&mut start, (self.active.end(), highest), known);
        seal(&mut start, next.number, self.synced);
        next.file.write_at(SEGMENT_HEADER_BYTES as u64, &start)?;
        let (number, byte_count) = (next.number, START_BYTES);
        let opened = Segment { number, byte_count, highest, before: highest };
        self.closing.push(std::mem::replace(&mut self.file, next.file));
        self.closed.push(std::mem::replace(&mut self.active, opened));
        self.allocated_bytes = next.allocated_bytes;
        self.allocated_synced = next.allocated_bytes;
        self.allocated_noted = next.allocated_bytes;
        Ok(())
    }

    /// Returns the number of the segment that is written.
    pub(super) fn active_number(&self) -> u32 {
        self.active.number
    }

    /// Returns whether the next segment is needed soon.
    pub(super) fn is_half_full(&self) -> bool {
        self.active.byte_count >= self.options.segment_bytes / 2
    }

    /// Returns whether the next segment is needed now.
    pub(super) fn is_full(&self) -> bool {
        self.active.byte_count >= self.options.segment_bytes
    }

    /// Returns a number for a new segment.
    pub(super) fn new_number(&mut self) -> u32 {
        self.last_number += 1;
        self.last_number
    }

    /// Returns the sync that the waiters need, `None` if all is on disk.
    pub(super) fn begin_sync(&mut self) -> Option<SyncJob> {
        if self.check().is_err() {
            return None;
        }
        if self.unsynced.byte_count == 0 && self.closing.is_empty() {
            self.synced_through = self.written;
            self.synced_marks = self.written_marks;
            return None;
        }
        // Empty unless an earlier sync failed, and then a new segment has cleared it.
        debug_assert!(self.syncing.byte_count == 0, "two syncs at a time");
        std::mem::swap(&mut self.syncing, &mut self.unsynced);
        let mut files = std::mem::take(&mut self.closing);
        files.push(Arc::clone(&self.file));
        Some(SyncJob {
            files,
            synced: self.active.end(),
            last_logged: self.active.highest,
            written: self.written,
            epoch: self.epoch,
            allocated_bytes: self.allocated_bytes,
            marks: self.written_marks,
        })
    }

    /// Records the result of a sync.
    pub(super) fn end_sync(&mut self, job: &SyncJob, result: Result<()>) -> Result<()> {
        if job.epoch != self.epoch {
            // All of it was rewritten to a new segment and synced meanwhile.
            return Ok(());
        }
        match result {
            Ok(()) => {
                assert!(
                    self.synced <= job.synced
                        && self.synced_through <= job.written
                        && self.synced_logged <= job.last_logged,
                    "the synced end of the log goes back"
                );
                assert!(job.written <= self.written, "more is synced than was written");
                self.synced = job.synced;
                self.synced_logged = job.last_logged;
                self.synced_through = job.written;
                self.synced_marks = job.marks;
                self.syncing.clear();
                if job.synced.segment == self.active.number {
                    self.allocated_synced = job.allocated_bytes;
                }
                Ok(())
            }
            Err(error) => self.recover_from_failure(&error),
        }
    }

    /// Writes all records that are not known to be on disk to a new segment.
    fn recover_from_failure(&mut self, error: &Error) -> Result<()> {
        tracing::warn!(%error, "could not write the write-ahead log; retrying with a new segment");
        self.rewrite_unsynced().inspect_err(|_| {
            self.health.version += 1;
            self.health.failed = Some(WriteFailure::from(error));
        })
    }

    /// Rewrites the retained records to a new segment.
    pub(super) fn rewrite_unsynced(&mut self) -> Result<()> {
        let number = self.new_number();
        let mut chunks: Vec<&mut [u8]> = Vec::new();
        for kept in [&mut self.syncing, &mut self.unsynced] {
            chunks.extend(kept.chunks.iter_mut().map(Vec::as_mut_slice));
        }
        let (end, last, manifest) = (self.synced, self.synced_logged, self.manifest);
        let before = PreviousLog { end, last, manifest };
        let begun = begin_segment(&self.options, number, before, &mut chunks);
        let (file, synced, allocated_bytes) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                // The content of the failed segment is unknown.
                let path = segment_path(&self.options.directory, number);
                drop(self.options.env.remove(&path));
                return Err(error);
            }
        };
        self.forget_after_synced();
        let highest = self.active.highest;
        self.active = Segment { number, byte_count: synced.byte_count, highest, before: last };
        self.file = file;
        self.allocated_bytes = allocated_bytes;
        self.allocated_synced = allocated_bytes;
        self.allocated_noted = allocated_bytes;
        self.synced_marks = self.written_marks;
        self.closing.clear();
        self.unsynced.clear();
        self.syncing.clear();
        self.synced = synced;
        self.synced_logged = highest;
        self.synced_through = self.written;
        self.epoch += 1;
        self.new_segments += 1;
        self.health.version += 1;
        self.health.failed = None;
        Ok(())
    }

    /// Drops the segments behind the synced mark, whose records are in the new segment.
    fn forget_after_synced(&mut self) {
        self.closed.push(self.active.clone());
        for segment in &mut self.closed {
            if segment.number == self.synced.segment {
                segment.byte_count = self.synced.byte_count;
                segment.highest = self.synced_logged;
            }
        }
        let synced = self.synced.segment;
        for gone in self.closed.extract_if(.., |segment| segment.number > synced) {
            let path = segment_path(&self.options.directory, gone.number);
            if let Err(error) = self.options.env.remove(&path) {
                // The next opening finds that it is not in the chain.
                tracing::warn!(%error, "could not remove an abandoned WAL segment");
            }
        }
    }

    /// Returns the highest sequence such that it and all before it have their requested
    /// durability.
    pub(super) fn durable(&self) -> Sequence {
        let waiting = self.syncing.first_synced.or(self.unsynced.first_synced);
        match waiting {
            _ if self.health.failed.is_some() => Sequence(0),
            Some(first) => Sequence(first.0 - 1),
            None => self.written,
        }
    }

    /// Returns whether a commit waits for the disk.
    pub(super) fn wants_sync(&self) -> bool {
        self.unsynced.first_synced.is_some()
    }

    /// Returns the bytes that are not known to be on disk.
    pub(super) fn unsynced_bytes(&self) -> u64 {
        self.unsynced.byte_count + self.syncing.byte_count
    }

    /// Returns the last commit that is on disk with all before it.
    pub(super) fn synced_through(&self) -> Sequence {
        self.synced_through
    }

    /// Returns the number of marks on disk.
    pub(super) fn synced_marks(&self) -> u64 {
        self.synced_marks
    }

    /// Returns the position up to which the log is on disk.
    pub(super) fn synced(&self) -> LogEnd {
        self.synced
    }

    /// Returns the end of the log, if all of it is on disk.
    pub(super) fn synced_end(&self) -> Option<LogEnd> {
        let end = self.active.end();
        (self.check().is_ok() && self.closing.is_empty() && self.synced == end).then_some(end)
    }

    /// Returns the last commit that was passed to the operating system.
    pub(super) fn written(&self) -> Sequence {
        self.written
    }

    /// Returns the bytes of all segments.
    pub(super) fn byte_count(&self) -> u64 {
        let closed: u64 = self.closed.iter().map(|segment| segment.byte_count).sum();
        closed + self.active.byte_count
    }

    /// Returns whether the active segment holds commits, all of them at or below `flushed`.
    pub(super) fn active_is_obsolete(&self, flushed: Sequence) -> bool {
        let holds_any = self.active.has_commits();
        self.check().is_ok() && holds_any && self.active.highest <= flushed
    }

    /// Closes the active segment.
    pub(super) fn close_active(&mut self, next: Prepared) -> Result<()> {
        match self.roll(Roll::To(next)) {
            Ok(()) => Ok(()),
            Err(error) => self.recover_from_failure(&error),
        }
    }

    /// Returns the oldest segment, if it is closed and all its commits are at or below `flushed`.
    pub(super) fn oldest_obsolete(&self, flushed: Sequence) -> Option<u32> {
        let oldest = self.closed.first()?;
        (oldest.highest <= flushed).then_some(oldest.number)
    }

    /// Removes a closed segment from the list after its file was removed.
    pub(super) fn forget(&mut self, number: u32) {
        assert!(number != self.active.number, "the active segment is removed");
        self.closed.retain(|segment| segment.number != number);
    }

    /// Returns how often records had to be written again to a new segment.
    pub(super) fn new_segments(&self) -> u64 {
        self.new_segments
    }
}

/// Decision whether to roll to the next segment.
pub(super) enum Roll {
    /// The active one is not full.
    No,
    /// It is full, and this is the prepared next one.
    To(Prepared),
    /// It is full, and the next one is not prepared yet.
    IfLong,
}

impl Roll {
    /// Returns the decision for a full segment.
    pub(super) fn of_full(state: &mut LogState) -> Roll {
        state.prepared.take().map_or(Roll::IfLong, Roll::To)
    }
}

/// Returns the number of zeros to write ahead of small records.
fn ahead_bytes(options: &WalOptions) -> u64 {
    AHEAD_BYTES_MAX.min(options.segment_bytes / 16)
}

/// Writes zeros behind the end of a file; returns its bytes then.
fn allocate_ahead(file: &dyn SegmentFile, byte_count: u64, ahead_bytes: u64) -> u64 {
    const ZEROS_BYTES: usize = (AHEAD_BYTES_MAX + START_BYTES) as usize;
    static ZEROS: [u8; ZEROS_BYTES] = [0; ZEROS_BYTES];
    let zeros = &ZEROS[..ahead_bytes as usize];
    // Failing to write them is no error.
    match file.write_at(byte_count, zeros) {
        Ok(()) => byte_count + ahead_bytes,
        Err(_) => byte_count,
    }
}

/// Creates a segment without records; it is on disk with its name on return.
pub(super) fn prepare(options: &WalOptions, number: u32) -> Result<Prepared> {
    let file = options.env.create_segment(&segment_path(&options.directory, number))?;
    let header = segment_header(number, options.database);
    file.write_at(0, &header)?;
    let ahead_bytes = START_BYTES - header.len() as u64 + ahead_bytes(options);
    let allocated_bytes = allocate_ahead(&*file, header.len() as u64, ahead_bytes);
    file.sync()?;
    options.env.sync_directory(&options.directory)?;
    Ok(Prepared { number, file, allocated_bytes })
}

/// The log before a new segment.
struct PreviousLog {
    /// The end of the log.
    end: LogEnd,
    /// The last sequence there.
    last: Sequence,
    /// Length of the manifest on disk.
    manifest: ManifestMark,
}

/// Creates a segment with these records behind the given end of the log. The segment and its
/// directory entry are on disk on return. Returns the file, its end, and its length.
fn begin_segment(
    options: &WalOptions,
    number: u32,
    PreviousLog { end, last, manifest }: PreviousLog,
    chunks: &mut [&mut [u8]],
) -> Result<(Arc<dyn SegmentFile>, LogEnd, u64)> {
    assert!(number > end.segment, "a segment follows one with a lower number");
    let file = options.env.create_segment(&segment_path(&options.directory, number))?;
    let mut byte_count = START_BYTES;
    for chunk in chunks.iter_mut() {
        seal(chunk, number, end);
        file.write_at(byte_count, chunk)?;
        byte_count += chunk.len() as u64;
    }
    let allocated_bytes = allocate_ahead(&*file, byte_count, ahead_bytes(options));
    file.sync()?;
    // Last: the start record makes this segment the successor of the log up to `end`.
    let mut start = segment_header(number, options.database).to_vec();
    push_start(
        &mut start,
        (end, last),
        StatedLengths { manifest, segment: number, allocated_bytes },
    );
    seal(&mut start[SEGMENT_HEADER_BYTES..], number, end);
    file.write_at(0, &start)?;
    file.sync()?;
    options.env.sync_directory(&options.directory)?;
    Ok((file, LogEnd { segment: number, byte_count }, allocated_bytes))
}
