//! Sorted load: entries in any order, sorted by several threads and bulk loaded.
//!
//! ```text
//!   region threads        caller                              all threads
//!   [EntryChunk] --\
//!   [EntryChunk] ---+--> EntrySorter -- memory full --> runs --+--> merge of a range --> stream
//!   [EntryChunk] --/          \--------- chunks --------------+--> merge of a range --> stream
//! ```
//!
//! The producers of the entries sort them, chunk by chunk. Chunks beyond
//! [`EntrySorter::bytes_max`] are merged to a run on disk, and many runs to a longer one. At the
//! end the key space is divided into ranges of about equal size, by a sample of the rows, and
//! each range is merged by a separate thread directly into files of a [`BulkLoad`].
//!
//! # Invariants
//!
//! 1. Entries of one row are in one range, so that two with the same row and family meet in a
//!    merge: they are a duplicate ([`SortedLoad::Duplicate`]).
//! 2. The entries of a run and of a merge ascend.
//!
//! Debug assertions check 1 when a range is loaded, and 2 when a run is written. A run is read once
//! for each range; only one frame per reader and the first row of each frame are in memory.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering as Memory};

use parking_lot::Mutex;

use crate::admission::{count_rows, without_slot};
use crate::bulk_load::{BulkCell, BulkLoad, LoadStream};
use crate::cell::{CellType, Timestamp, row_prefix};
use crate::engine::Engine;
use crate::env::ReadFile;
use crate::error::{Error, Result};
use crate::memory::{self, AccountId};
use crate::transaction::Transaction;

/// Bytes of an entry before its row: the row's length, the value's, timestamp, family and type.
const HEADER_BYTES: usize = 2 + 4 + 8 + 1 + 1;
/// Bytes of a run per write and read.
const FRAME_BYTES: usize = 64 << 10;
/// Runs of one level that are merged to one of the next.
const RUNS_MAX: usize = 32;
/// Entries merged between two checks for cancellation.
const LOOK_ENTRIES: usize = 4_096;
/// Number of entries from which several threads merge.
const PARALLEL_ENTRIES: u64 = 20_000;
/// Entries of a chunk per mark.
const MARKED_ENTRIES: usize = 32;
/// Rows of the sample that divides the key space, for each chunk in memory.
const CHUNK_SAMPLES: usize = 64;

/// Temporary storage of sorts.
pub trait ScratchSpace: Send + Sync {
    /// Creates a file.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    fn create(&self) -> Result<Box<dyn ScratchFile>>;
}

/// A file of a [`ScratchSpace`] during writing; dropping it removes the file.
pub trait ScratchFile: Send {
    /// Appends bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; an exceeded limit of temporary files.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Completes the file, which is removed when the result is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    fn finish(self: Box<Self>) -> Result<Arc<dyn ReadFile>>;
}

/// Unsorted entries: cells without a qualifier, one for each row and family.
#[derive(Default)]
pub struct EntryChunk {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    row_count: usize,
}

/// Position of an entry, with the first bytes of its row, which decide most comparisons.
#[derive(Clone, Copy)]
struct Slot {
    prefix: u128,
    start: u32,
}

#[derive(Clone, Copy)]
struct Entry<'a> {
    row: &'a [u8],
    value: &'a [u8],
    timestamp: Timestamp,
    family: u8,
    cell_type: CellType,
    byte_count: usize,
}

impl<'a> Entry<'a> {
    /// Decodes the entry at the start of some bytes; `None` if it is incomplete.
    fn read(bytes: &'a [u8]) -> Option<Entry<'a>> {
        let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let [a, b, c, d, e, f, timestamp @ .., family, code] = *header;
        let row_length = usize::from(u16::from_le_bytes([a, b]));
        let value_length = u32::from_le_bytes([c, d, e, f]) as usize;
        let (row, rest) = rest.split_at_checked(row_length)?;
        Some(Entry {
            row,
            value: rest.get(..value_length)?,
            timestamp: Timestamp(i64::from_le_bytes(timestamp)),
            family,
            cell_type: CellType::from_code(code)?,
            byte_count: HEADER_BYTES + row_length + value_length,
        })
    }

    fn order(&self, other: &Entry<'_>) -> Ordering {
        self.row.cmp(other.row).then_with(|| self.family.cmp(&other.family))
    }

    fn cell(&self) -> BulkCell<'a> {
        BulkCell {
            row: self.row,
            family: self.family,
            qualifier: &[],
            timestamp: (self.timestamp != Timestamp::LATEST).then_some(self.timestamp),
            cell_type: self.cell_type,
            value: self.value,
        }
    }
}

impl EntryChunk {
    /// Returns an empty chunk.
    pub fn new() -> EntryChunk {
        EntryChunk::default()
    }

    /// Adds an entry. The cell has no qualifier, and its row fewer than 65,536 bytes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if it has a qualifier or a longer row, or a chunk cannot hold
    /// it.
    pub fn push(&mut self, cell: BulkCell<'_>) -> Result<()> {
        let refuse = |why: &str| Error::InvalidRequest(why.to_owned());
        let row_length = u16::try_from(cell.row.len());
        let row_length = row_length.map_err(|_| refuse("a row key is too long"))?;
        let start = u32::try_from(self.bytes.len()).map_err(|_| refuse("a chunk is full"))?;
        let value_length = u32::try_from(cell.value.len());
        let value_length = value_length.map_err(|_| refuse("a value is too long"))?;
        if !cell.qualifier.is_empty() {
            return Err(refuse("entries to be sorted must not have a qualifier"));
        }
        let last = self.slots.last().map(|slot| entry_at(&self.bytes, slot.start).row);
        self.row_count += usize::from(last.is_none_or(|last| last != cell.row));
        self.slots.push(Slot { prefix: row_prefix(cell.row), start });
        self.bytes.reserve(HEADER_BYTES + cell.row.len() + cell.value.len());
        self.bytes.extend_from_slice(&row_length.to_le_bytes());
        self.bytes.extend_from_slice(&value_length.to_le_bytes());
        let timestamp = cell.timestamp.unwrap_or(Timestamp::LATEST);
        self.bytes.extend_from_slice(&timestamp.0.to_le_bytes());
        self.bytes.extend_from_slice(&[cell.family, cell.cell_type as u8]);
        self.bytes.extend_from_slice(cell.row);
        self.bytes.extend_from_slice(cell.value);
        Ok(())
    }

    /// Returns the memory that it takes, in bytes.
    pub fn byte_count(&self) -> usize {
        self.bytes.capacity() + self.slots.capacity() * size_of::<Slot>()
    }

    /// Returns the number of rows, if the cells of each were added consecutively.
    pub fn row_count(&self) -> usize {
        self.row_count
    }

    /// Returns the entries in order, copied, so that a merge reads them sequentially.
    pub fn sort(mut self) -> SortedChunk {
        let unsorted = &self.bytes;
        self.slots.sort_unstable_by(|a, b| {
            a.prefix
                .cmp(&b.prefix)
                .then_with(|| entry_at(unsorted, a.start).order(&entry_at(unsorted, b.start)))
        });
        let mut sorted = SortedChunk {
            bytes: Vec::with_capacity(unsorted.len()),
            marks: Vec::with_capacity(self.slots.len().div_ceil(MARKED_ENTRIES)),
            cell_count: self.slots.len(),
            row_count: self.row_count,
        };
        for (number, slot) in self.slots.iter().enumerate() {
            if number % MARKED_ENTRIES == 0 {
                sorted.marks.push(sorted.bytes.len() as u32);
            }
            let start = slot.start as usize;
            let byte_count = entry_at(unsorted, slot.start).byte_count;
            sorted.bytes.extend_from_slice(&unsorted[start..start + byte_count]);
        }
        debug_assert_eq!(sorted.bytes.len(), unsorted.len(), "all entries are copied");
        sorted
    }
}

/// Sorted entries.
#[derive(Default)]
pub struct SortedChunk {
    bytes: Vec<u8>,
    /// Offset of each [`MARKED_ENTRIES`]th entry.
    marks: Vec<u32>,
    cell_count: usize,
    row_count: usize,
}

impl SortedChunk {
    /// Returns the memory that it takes, in bytes.
    pub fn byte_count(&self) -> usize {
        self.bytes.capacity() + self.marks.capacity() * size_of::<u32>()
    }

    /// Returns the number of rows, see [`EntryChunk::row_count`].
    pub fn row_count(&self) -> usize {
        self.row_count
    }

    /// Returns the cells in order.
    pub fn cells(&self) -> impl Iterator<Item = BulkCell<'_>> {
        let mut rest = self.bytes.as_slice();
        std::iter::from_fn(move || {
            let entry = Entry::read(rest)?;
            rest = &rest[entry.byte_count..];
            Some(entry.cell())
        })
    }

    /// Returns the offset of the first entry whose row is not below this one.
    fn position(&self, row: &[u8]) -> usize {
        let below = self.marks.partition_point(|&mark| entry_at(&self.bytes, mark).row < row);
        let mut at = self.marks[..below].last().map_or(0, |&mark| mark as usize);
        while let Some(entry) = Entry::read(&self.bytes[at..])
            && entry.row < row
        {
            at += entry.byte_count;
        }
        at
    }
}

fn entry_at(bytes: &[u8], start: u32) -> Entry<'_> {
    let entry = bytes.get(start as usize..).and_then(Entry::read);
    entry.expect("entries are where they were added")
}

/// Sorted entries on disk: frames of whole entries, each followed by its CRC-32C.
struct ScratchRun {
    file: Arc<dyn ReadFile>,
    frames: Vec<Frame>,
    /// Number of merges that the entries went through.
    level: u32,
}

struct Frame {
    offset: u64,
    byte_count: usize,
    first_row: Vec<u8>,
}

struct RunWriter {
    file: Box<dyn ScratchFile>,
    frames: Vec<Frame>,
    offset: u64,
    frame: Vec<u8>,
    first_row: Vec<u8>,
}

impl RunWriter {
    fn create(space: &dyn ScratchSpace) -> Result<RunWriter> {
        let (file, frames) = (space.create()?, Vec::new());
        Ok(RunWriter { file, frames, offset: 0, frame: Vec::new(), first_row: Vec::new() })
    }

    fn add(&mut self, row: &[u8], entry: &[u8]) -> Result<()> {
        if !self.frame.is_empty() && self.frame.len() + entry.len() > FRAME_BYTES {
            self.end_frame()?;
        }
        if self.frame.is_empty() {
            let before = self.frames.last().map(|frame| frame.first_row.as_slice());
            debug_assert!(before.is_none_or(|before| before <= row), "the rows of a run ascend");
            self.first_row = row.to_vec();
        }
        self.frame.extend_from_slice(entry);
        Ok(())
    }

    fn end_frame(&mut self) -> Result<()> {
        let checksum = crc32c::crc32c(&self.frame);
        self.frame.extend_from_slice(&checksum.to_le_bytes());
        self.file.append(&self.frame)?;
        let (offset, byte_count) = (self.offset, self.frame.len());
        self.frames.push(Frame {
            offset,
            byte_count,
            first_row: std::mem::take(&mut self.first_row),
        });
        self.offset += byte_count as u64;
        self.frame.clear();
        Ok(())
    }

    fn finish(mut self, level: u32) -> Result<ScratchRun> {
        if !self.frame.is_empty() {
            self.end_frame()?;
        }
        Ok(ScratchRun { file: self.file.finish()?, frames: self.frames, level })
    }
}

/// Cursor over one sorted sequence of entries.
enum Cursor<'a> {
    /// The bytes from the current entry on.
    Chunk(&'a [u8]),
    Run(RunCursor<'a>),
}

struct RunCursor<'a> {
    run: &'a ScratchRun,
    /// The next frame to read.
    frame: usize,
    buffer: Vec<u8>,
    at: usize,
    stop: Option<&'a [u8]>,
}

impl<'a> Cursor<'a> {
    fn of_chunk(chunk: &'a SortedChunk, (start, stop): Range<'_>) -> Cursor<'a> {
        let start = start.map_or(0, |row| chunk.position(row));
        let stop = stop.map_or(chunk.bytes.len(), |row| chunk.position(row));
        Cursor::Chunk(&chunk.bytes[start..stop])
    }

    fn of_run(run: &'a ScratchRun, (start, stop): Range<'a>) -> Result<Cursor<'a>> {
        // The first row may begin in the frame before the one that starts with it.
        let below = |frame: &Frame| start.is_some_and(|row| frame.first_row.as_slice() < row);
        let frame = run.frames.partition_point(below).saturating_sub(1);
        let (buffer, at) = (Vec::new(), 0);
        let mut cursor = RunCursor { run, frame, buffer, at, stop };
        cursor.settle()?;
        while let Some(start) = start
            && let Some(entry) = Entry::read(&cursor.buffer[cursor.at..])
            && entry.row < start
        {
            cursor.at += entry.byte_count;
            cursor.settle()?;
        }
        Ok(Cursor::Run(cursor))
    }

    /// Returns the current entry; `None` at the end.
    fn entry(&self) -> Option<Entry<'_>> {
        match self {
            Cursor::Chunk(rest) => Entry::read(rest),
            Cursor::Run(run) => run.entry(),
        }
    }

    /// Returns the bytes from the current entry on.
    fn rest(&self) -> &[u8] {
        match self {
            Cursor::Chunk(rest) => rest,
            Cursor::Run(run) => &run.buffer[run.at..],
        }
    }

    fn prefix(&self) -> Option<u128> {
        self.entry().map(|entry| row_prefix(entry.row))
    }

    fn advance(&mut self) -> Result<()> {
        match self {
            Cursor::Chunk(rest) => {
                let byte_count = Entry::read(rest).map_or(rest.len(), |entry| entry.byte_count);
                *rest = &rest[byte_count..];
                Ok(())
            }
            Cursor::Run(run) => run.advance(),
        }
    }
}

impl RunCursor<'_> {
    fn entry(&self) -> Option<Entry<'_>> {
        let entry = Entry::read(&self.buffer[self.at..])?;
        self.stop.is_none_or(|stop| entry.row < stop).then_some(entry)
    }

    fn advance(&mut self) -> Result<()> {
        self.at += self.entry().map_or(0, |entry| entry.byte_count);
        self.settle()
    }

    /// Reads the next frame once this one is consumed.
    fn settle(&mut self) -> Result<()> {
        if self.at < self.buffer.len() {
            return Ok(());
        }
        self.at = 0;
        self.buffer.clear();
        let Some(frame) = self.run.frames.get(self.frame) else { return Ok(()) };
        self.buffer.resize(frame.byte_count, 0);
        self.run.file.read_at(frame.offset, &mut self.buffer)?;
        self.frame += 1;
        let whole = self.buffer.split_last_chunk::<4>().is_some_and(|(entries, checksum)| {
            crc32c::crc32c(entries) == u32::from_le_bytes(*checksum)
        });
        if !whole {
            return Err(Error::corrupt("a temporary file", frame.offset, "checksum mismatch"));
        }
        self.buffer.truncate(frame.byte_count - 4);
        Ok(())
    }
}

/// Rows from the first (or all) to below the second (or all).
type Range<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// Merge of cursors by a heap.
struct Merge<'a> {
    cursors: Vec<Cursor<'a>>,
    /// The prefix of the current entry of each cursor that is not at its end, and its number; the
    /// root has the first entry.
    heap: Vec<(u128, usize)>,
}

impl<'a> Merge<'a> {
    fn new(cursors: Vec<Cursor<'a>>) -> Merge<'a> {
        let heads = cursors.iter().enumerate();
        let heap: Vec<(u128, usize)> =
            heads.filter_map(|(at, cursor)| Some((cursor.prefix()?, at))).collect();
        let mut merge = Merge { cursors, heap };
        (0..merge.heap.len() / 2).rev().for_each(|at| merge.sift_down(at));
        merge
    }

    fn is_before(&self, a: (u128, usize), b: (u128, usize)) -> bool {
        let by_entry = || {
            let entries = (self.cursors[a.1].entry(), self.cursors[b.1].entry());
            match entries {
                (Some(one), Some(other)) => one.order(&other),
                _ => Ordering::Equal,
            }
        };
        a.0.cmp(&b.0).then_with(by_entry).then_with(|| a.1.cmp(&b.1)).is_lt()
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.is_before(self.heap[child], self.heap[least]) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }

    /// Returns the cursor with the first entry.
    fn first(&self) -> Option<&Cursor<'a>> {
        self.heap.first().map(|&(_, at)| &self.cursors[at])
    }

    fn advance(&mut self) -> Result<()> {
        let Some(&(_, at)) = self.heap.first() else { return Ok(()) };
        self.cursors[at].advance()?;
        match self.cursors[at].prefix() {
            Some(prefix) => self.heap[0].0 = prefix,
            None => {
                self.heap.swap_remove(0);
            }
        }
        self.sift_down(0);
        Ok(())
    }
}

/// Outcome of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SortedLoad {
    /// All entries are in the bulk load; their number.
    Loaded(u64),
    /// Two entries have this row and one family.
    Duplicate {
        /// The row.
        row: Vec<u8>,
        /// The family.
        family: u8,
        /// The value of one of them.
        value: Vec<u8>,
    },
}

/// Sorter that collects sorted chunks. See the module.
pub struct EntrySorter {
    engine: Arc<Engine>,
    scratch: Arc<dyn ScratchSpace>,
    chunks: Vec<SortedChunk>,
    /// Bytes of the chunks.
    held: usize,
    runs: Vec<ScratchRun>,
    entry_count: u64,
}

impl Drop for EntrySorter {
    fn drop(&mut self) {
        let before = self.engine.sorting.fetch_sub(self.held, Memory::Relaxed);
        debug_assert!(before >= self.held, "bytes of all sorters");
    }
}

impl EntrySorter {
    pub(crate) fn new(engine: Arc<Engine>, scratch: Arc<dyn ScratchSpace>) -> EntrySorter {
        let (chunks, runs) = (Vec::new(), Vec::new());
        EntrySorter { engine, scratch, chunks, held: 0, runs, entry_count: 0 }
    }

    /// Returns the limit of the bytes in memory of all sorters of the store: an eighth of the
    /// budget, and at most a quarter of the free memory.
    pub fn bytes_max(&self) -> usize {
        let part = self.engine.options().memory_bytes / 8;
        usize::try_from(part).unwrap_or(usize::MAX).min(memory::free_bytes() / 4)
    }

    /// Returns the preferred size of a chunk: sorted within the cache of a core.
    pub fn chunk_bytes(&self) -> usize {
        (self.engine.options().memory_bytes / 128).clamp(64 << 10, 2 << 20) as usize
    }

    /// Returns the number of entries.
    pub fn entry_count(&self) -> u64 {
        self.entry_count
    }

    /// Adds a chunk. Spills all chunks to disk if memory is full.
    ///
    /// # Errors
    ///
    /// Errors of the [`ScratchSpace`].
    pub fn add(&mut self, chunk: SortedChunk) -> Result<()> {
        if chunk.cell_count == 0 {
            return Ok(());
        }
        let bytes = chunk.byte_count();
        self.entry_count += chunk.cell_count as u64;
        self.chunks.push(chunk);
        self.held += bytes;
        let all = self.engine.sorting.fetch_add(bytes, Memory::Relaxed) + bytes;
        // With many concurrent sorters each keeps about a chunk.
        if all > self.bytes_max() && self.held > self.chunk_bytes() {
            self.spill()?;
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        let run = self.write_run(Merge::new(self.chunk_cursors((None, None))), 0)?;
        self.runs.push(run);
        self.chunks.clear();
        self.engine.sorting.fetch_sub(std::mem::take(&mut self.held), Memory::Relaxed);
        let mut level = 0;
        loop {
            let of_level = |run: &ScratchRun| run.level == level;
            if self.runs.iter().filter(|run| of_level(run)).count() < RUNS_MAX {
                return Ok(());
            }
            let cursors = self.runs.iter().filter(|run| of_level(run));
            let cursors: Result<Vec<_>> =
                cursors.map(|run| Cursor::of_run(run, (None, None))).collect();
            let merged = self.write_run(Merge::new(cursors?), level + 1)?;
            self.runs.retain(|run| !of_level(run));
            self.runs.push(merged);
            level += 1;
        }
    }

    fn write_run(&self, mut merge: Merge<'_>, level: u32) -> Result<ScratchRun> {
        let mut writer = RunWriter::create(&*self.scratch)?;
        while let Some(cursor) = merge.first()
            && let Some(entry) = cursor.entry()
        {
            writer.add(entry.row, &cursor.rest()[..entry.byte_count])?;
            merge.advance()?;
        }
        writer.finish(level)
    }

    fn chunk_cursors<'a>(&'a self, range: Range<'_>) -> Vec<Cursor<'a>> {
        self.chunks.iter().map(|chunk| Cursor::of_chunk(chunk, range)).collect()
    }

    /// Returns whether all entries are in memory, and take no more than the preferred size of a
    /// chunk.
    pub fn is_small(&self) -> bool {
        self.runs.is_empty() && self.held <= self.chunk_bytes()
    }

    /// Returns the chunks that are in memory.
    pub fn chunks(&self) -> impl Iterator<Item = &SortedChunk> {
        self.chunks.iter()
    }

    fn merge<'a>(&'a self, range: Range<'a>) -> Result<Merge<'a>> {
        let mut cursors = self.chunk_cursors(range);
        for run in &self.runs {
            cursors.push(Cursor::of_run(run, range)?);
        }
        Ok(Merge::new(cursors))
    }

    /// Adds all entries to a bulk load, with the store's region threads. They take execution
    /// slots of the transaction's statement, which may be cancelled.
    ///
    /// # Errors
    ///
    /// Errors of the files; [`Error::Cancelled`].
    pub fn load(&self, into: &mut BulkLoad, transaction: &Transaction) -> Result<SortedLoad> {
        let bounds = self.bounds();
        let starts = std::iter::once(None).chain(bounds.iter().map(|row| Some(row.as_slice())));
        let stops = bounds.iter().map(|row| Some(row.as_slice())).chain(std::iter::once(None));
        let ranges: Vec<Mutex<(Range<'_>, LoadStream)>> =
            starts.zip(stops).map(|range| Mutex::new((range, into.stream()))).collect();
        let progress = Progress::default();
        let account = AccountId::current();
        // Any free thread takes the next range, so that a busy pool does not delay the load.
        let work = || {
            let _account = account.enter();
            while let Some(range) = ranges.get(progress.next.fetch_add(1, Memory::Relaxed)) {
                let (range, stream) = &mut *range.lock();
                let end = self.load_range(*range, stream, transaction, &progress);
                if !matches!(end, Ok(None)) {
                    progress.stopped.store(true, Memory::Relaxed);
                    progress.failure.lock().get_or_insert(end);
                }
            }
        };
        match into.engine().pool().filter(|_| ranges.len() > 1) {
            None => work(),
            Some(pool) => without_slot(|| {
                pool.in_place_scope(|scope| {
                    (1..ranges.len()).for_each(|_| scope.spawn(|_| work()));
                    work();
                });
            }),
        }
        if let Some(failure) = progress.failure.into_inner() {
            return failure.map(|end| end.unwrap_or(SortedLoad::Loaded(0)));
        }
        for range in ranges {
            into.append(range.into_inner().1)?;
        }
        Ok(SortedLoad::Loaded(self.entry_count))
    }

    /// Merges a range of rows into a stream; returns a duplicate, if there is one.
    fn load_range(
        &self,
        range: Range<'_>,
        stream: &mut LoadStream,
        transaction: &Transaction,
        progress: &Progress,
    ) -> Result<Option<SortedLoad>> {
        let mut merge = self.merge(range)?;
        let _turn = transaction.turn();
        while !progress.stopped.load(Memory::Relaxed) {
            transaction.check_cancelled()?;
            count_rows(LOOK_ENTRIES as u64)?;
            for _ in 0..LOOK_ENTRIES {
                let Some(entry) = merge.first().and_then(Cursor::entry) else { return Ok(None) };
                if stream.is_last(entry.row, entry.family) {
                    let (row, value) = (entry.row.to_vec(), entry.value.to_vec());
                    return Ok(Some(SortedLoad::Duplicate { row, family: entry.family, value }));
                }
                debug_assert!(
                    range.0.is_none_or(|start| start <= entry.row)
                        && range.1.is_none_or(|stop| entry.row < stop),
                    "a row of another range"
                );
                stream.add(entry.cell())?;
                merge.advance()?;
            }
        }
        Ok(None)
    }

    /// Returns the first rows of the ranges, except the first range, that threads are to merge.
    fn bounds(&self) -> Vec<Vec<u8>> {
        let threads = self.engine.options().region_threads;
        if threads <= 1 || self.entry_count < PARALLEL_ENTRIES {
            return Vec::new();
        }
        // Each row of the sample represents about the same number of bytes as any other of its
        // kind.
        let mut sample: Vec<(&[u8], usize)> = Vec::new();
        for chunk in &self.chunks {
            let step = chunk.marks.len().div_ceil(CHUNK_SAMPLES);
            let weight = chunk.bytes.len() * step / chunk.marks.len().max(1);
            let marks = chunk.marks.iter().step_by(step.max(1));
            sample.extend(marks.map(|&mark| (entry_at(&chunk.bytes, mark).row, weight)));
        }
        for run in &self.runs {
            let frames = run.frames.iter();
            sample.extend(frames.map(|frame| (frame.first_row.as_slice(), frame.byte_count)));
        }
        sample.sort_unstable();
        let whole: usize = sample.iter().map(|(_, weight)| weight).sum();
        let mut bounds: Vec<Vec<u8>> = Vec::new();
        let mut before = 0;
        for (row, weight) in sample {
            if before * threads >= whole * (bounds.len() + 1)
                && bounds.last().is_none_or(|last| last.as_slice() < row)
            {
                bounds.push(row.to_vec());
            }
            before += weight;
        }
        bounds
    }
}

/// Progress of the threads of a load.
#[derive(Default)]
struct Progress {
    /// The next range that no thread has taken.
    next: AtomicUsize,
    stopped: AtomicBool,
    /// The reason.
    failure: Mutex<Option<Result<Option<SortedLoad>>>>,
}
