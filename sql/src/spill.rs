//! Temporary files of statements that exceed their memory.
//!
//! A [`SpillArea`] is a subdirectory of the data directory, emptied at start. A statement's
//! [`StatementSpill`] creates files and accounts for their bytes; a file is written once, batch by
//! batch, read once or several times, and removed with its handle. Nothing is synced: temporary
//! files are not needed after a crash. Sorts, hash joins, aggregation and
//! [`BatchBuffer`](crate::batch_buffer::BatchBuffer) spill here.
//!
//! ```text
//! file  = frames
//! frame = length u32, CRC-32C u32, a batch as types::batchcode writes it
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use store::env::{AppendFile, Env, ReadFile, check_reserve};
use store::error::Veto;
use store::sorted_load::{ScratchFile, ScratchSpace};
use types::batchcode::{read_batch, write_batch};
use types::datatype::composite::Fields;
use types::vector::RowSizes;
use types::{Batch, DataType};

use crate::error::{Error, Result, sqlstate};

/// Buffer size of reads and writes, in bytes.
const CHUNK_BYTES: usize = 64 << 10;
/// Buffer capacity above which a buffer is not reused for the next batch.
const KEPT_BYTES: usize = 2 * CHUNK_BYTES;
/// Bytes written by all statements between two checks of the free disk space.
const LOOK_BYTES: u64 = 16 << 20;
/// Length and checksum.
const HEADER_BYTES: usize = 8;

/// Directory of temporary files of an engine.
pub struct SpillArea {
    env: Arc<dyn Env>,
    directory: PathBuf,
    next_file: AtomicU64,
    /// Bytes written since the last check of the free disk space.
    unseen_bytes: AtomicU64,
}

/// Temporary files of one statement, and their size limit.
pub struct StatementSpill {
    area: Arc<SpillArea>,
    bytes: AtomicU64,
    bytes_max: Option<u64>,
    written: AtomicU64,
}

/// Writer of a temporary file.
pub struct SpillWriter {
    file: SpillFile,
    to: Box<dyn AppendFile>,
    buffer: Vec<u8>,
}

/// A written file; dropping it removes it.
pub struct SpillFile {
    spill: Arc<StatementSpill>,
    types: Arc<[DataType]>,
    /// The fields of the records in it.
    fields: Vec<Fields>,
    path: PathBuf,
    byte_count: u64,
    row_count: u64,
    /// Size of its largest batch.
    batch_bytes_max: usize,
}

/// Temporary file of batches that are read in any order while more are appended.
pub struct SpillHeap {
    writer: SpillWriter,
    from: Arc<dyn ReadFile>,
}

/// Position of a batch in a [`SpillHeap`].
#[derive(Debug, Clone, Copy)]
pub struct HeapPlace {
    offset: u64,
    byte_count: usize,
}

/// Sequential reader of a temporary file.
pub struct SpillReader {
    file: Arc<SpillFile>,
    from: Arc<dyn ReadFile>,
    /// File offset of the end of `buffer`.
    offset: u64,
    buffer: Vec<u8>,
    next: usize,
}

impl SpillArea {
    /// Opens an area in a directory of its own, and removes the files that a previous process
    /// left.
    ///
    /// # Errors
    ///
    /// I/O errors.
    pub fn open(env: Arc<dyn Env>, directory: PathBuf) -> Result<Arc<SpillArea>> {
        if !env.list(&directory)?.is_empty() {
            env.remove_directory(&directory)?;
        }
        env.create_directory(&directory)?;
        let (next_file, unseen_bytes) = (AtomicU64::new(1), AtomicU64::new(0));
        Ok(Arc::new(SpillArea { env, directory, next_file, unseen_bytes }))
    }

    fn new_path(&self) -> PathBuf {
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        self.directory.join(format!("{number:010}.spill"))
    }

    /// Fails if writing `bytes` more would leave too little disk space for commits. Checks the
    /// disk only after every [`LOOK_BYTES`].
    fn check_disk(&self, bytes: u64) -> store::Result<()> {
        if self.unseen_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes < LOOK_BYTES {
            return Ok(());
        }
        check_reserve(&*self.env, &self.directory)?;
        self.unseen_bytes.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Starts the accounting of a statement, which may hold at most `bytes_max` at a time.
    pub fn begin(self: &Arc<SpillArea>, bytes_max: Option<u64>) -> Arc<StatementSpill> {
        let area = Arc::clone(self);
        Arc::new(StatementSpill {
            area,
            bytes: AtomicU64::new(0),
            bytes_max,
            written: AtomicU64::new(0),
        })
    }
}

impl StatementSpill {
    /// Creates a file of batches with columns of these types.
    ///
    /// # Errors
    ///
    /// I/O errors.
    pub fn create(self: &Arc<StatementSpill>, types: &Arc<[DataType]>) -> Result<SpillWriter> {
        let path = self.area.new_path();
        let to = self.area.env.create_temporary(&path)?;
        let (spill, types) = (Arc::clone(self), Arc::clone(types));
        let fields = Vec::new();
        let (byte_count, row_count, batch_bytes_max) = (0, 0, 0);
        let file = SpillFile { spill, types, fields, path, byte_count, row_count, batch_bytes_max };
        Ok(SpillWriter { file, to, buffer: Vec::new() })
    }

    /// Returns the bytes written so far, including removed files.
    pub fn written_bytes(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: u64) -> Result<()> {
        self.count(bytes).map_err(|SpillLimitReached { bytes_max }| {
            err!(CONFIGURATION_LIMIT_EXCEEDED: over_limit(bytes_max))
        })?;
        Ok(self.area.check_disk(bytes)?)
    }

    fn count(&self, bytes: u64) -> std::result::Result<(), SpillLimitReached> {
        self.written.fetch_add(bytes, Ordering::Relaxed);
        let held = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        match self.bytes_max {
            Some(bytes_max) if held > bytes_max => Err(SpillLimitReached { bytes_max }),
            _ => Ok(()),
        }
    }

    fn remove(&self, path: &Path, byte_count: u64) {
        let held = self.bytes.fetch_sub(byte_count, Ordering::Relaxed);
        debug_assert!(held >= byte_count, "{byte_count} of {held} bytes in files are removed");
        if let Err(error) = self.area.env.remove(path) {
            // The next start removes it.
            tracing::warn!(%error, "could not remove a temporary file");
        }
    }
}

/// Scratch space of a statement, for sorts of the store.
pub struct ScratchArea(pub Arc<StatementSpill>);

/// Writer of a scratch file, which holds bytes instead of batches.
struct RawWriter {
    file: RawFile,
    to: Box<dyn AppendFile>,
}

/// Reader of a scratch file.
struct RawReader {
    _file: RawFile,
    from: Arc<dyn ReadFile>,
}

/// A scratch file; dropping it removes it.
struct RawFile {
    spill: Arc<StatementSpill>,
    path: PathBuf,
    byte_count: u64,
}

impl ScratchSpace for ScratchArea {
    fn create(&self) -> store::Result<Box<dyn ScratchFile>> {
        let spill = Arc::clone(&self.0);
        let path = spill.area.new_path();
        let to = spill.area.env.create_temporary(&path)?;
        Ok(Box::new(RawWriter { file: RawFile { spill, path, byte_count: 0 }, to }))
    }
}

impl ScratchFile for RawWriter {
    fn append(&mut self, bytes: &[u8]) -> store::Result<()> {
        let length = bytes.len() as u64;
        self.file.byte_count += length;
        self.file.spill.count(length).map_err(|SpillLimitReached { bytes_max }| {
            store::Error::Vetoed(Box::new(Veto {
                code: sqlstate::CONFIGURATION_LIMIT_EXCEEDED.to_owned(),
                message: over_limit(bytes_max),
                ..Veto::default()
            }))
        })?;
        self.file.spill.area.check_disk(length)?;
        self.to.append(bytes)
    }

    fn finish(self: Box<Self>) -> store::Result<Arc<dyn ReadFile>> {
        let RawWriter { file, to } = *self;
        drop(to);
        let from = file.spill.area.env.open(&file.path)?;
        Ok(Arc::new(RawReader { _file: file, from }))
    }
}

impl ReadFile for RawReader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> store::Result<()> {
        self.from.read_at(offset, buffer)
    }

    fn byte_count(&self) -> store::Result<u64> {
        self.from.byte_count()
    }
}

impl Drop for RawFile {
    fn drop(&mut self) {
        self.spill.remove(&self.path, self.byte_count);
    }
}

/// Error: the statement has reached its size limit.
struct SpillLimitReached {
    bytes_max: u64,
}

fn over_limit(bytes_max: u64) -> String {
    format!("temporary file size exceeds temp_file_limit ({}kB)", bytes_max >> 10)
}

impl SpillWriter {
    /// Appends a batch.
    ///
    /// # Errors
    ///
    /// I/O errors; `53400` past the statement's limit.
    pub fn add(&mut self, batch: &Batch) -> Result<()> {
        if batch.row_count == 0 {
            return Ok(());
        }
        let sizes = RowSizes::of(&batch.columns);
        if sizes.is_short() {
            return self.add_whole(batch);
        }
        let rows: Vec<u32> = (0..batch.row_count as u32).collect();
        sizes.batches(&rows).try_for_each(|some| match some.len() {
            all if all == batch.row_count => self.add_whole(batch),
            _ => self.add_whole(&batch.take(some)),
        })
    }

    fn add_whole(&mut self, batch: &Batch) -> Result<()> {
        self.put(batch)?;
        self.flush_if_large()
    }

    fn put(&mut self, batch: &Batch) -> Result<()> {
        debug_assert_eq!(batch.columns.len(), self.file.types.len(), "columns of a spill file");
        let start = self.buffer.len();
        self.buffer.resize(start + HEADER_BYTES, 0);
        write_batch(batch, &self.file.types, &mut self.file.fields, &mut self.buffer);
        let frame = &mut self.buffer[start..];
        let checksum = crc32c::crc32c(&frame[HEADER_BYTES..]);
        let length = u32::try_from(frame.len() - HEADER_BYTES)
            .map_err(|_| err!(PROGRAM_LIMIT_EXCEEDED: "a batch of rows is larger than 4 GiB"))?;
        frame[..4].copy_from_slice(&length.to_le_bytes());
        frame[4..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
        self.file.row_count += batch.row_count as u64;
        self.file.batch_bytes_max = self.file.batch_bytes_max.max(length as usize);
        Ok(())
    }

    fn flush_if_large(&mut self) -> Result<()> {
        if self.buffer.len() >= CHUNK_BYTES { self.flush() } else { Ok(()) }
    }

    /// Returns the number of rows appended so far.
    pub fn row_count(&self) -> u64 {
        self.file.row_count
    }

    fn flush(&mut self) -> Result<()> {
        let bytes = self.buffer.len() as u64;
        self.file.byte_count += bytes;
        self.file.spill.take(bytes)?;
        self.to.append(&self.buffer)?;
        self.buffer.clear();
        if self.buffer.capacity() > KEPT_BYTES {
            self.buffer = Vec::new();
        }
        Ok(())
    }

    /// Finishes the file.
    ///
    /// # Errors
    ///
    /// See [`SpillWriter::add`].
    pub fn finish(mut self) -> Result<Arc<SpillFile>> {
        self.flush()?;
        Ok(Arc::new(self.file))
    }
}

impl SpillHeap {
    /// Creates a file.
    ///
    /// # Errors
    ///
    /// I/O errors.
    pub fn create(spill: &Arc<StatementSpill>) -> Result<SpillHeap> {
        let writer = spill.create(&Arc::from([]))?;
        let from = spill.area.env.open(&writer.file.path)?;
        Ok(SpillHeap { writer, from })
    }

    /// Appends a batch with columns of these types, and returns its position.
    ///
    /// # Errors
    ///
    /// See [`SpillWriter::add`].
    pub fn add(&mut self, batch: &Batch, types: &Arc<[DataType]>) -> Result<HeapPlace> {
        let writer = &mut self.writer;
        let start = writer.buffer.len();
        let offset = writer.file.byte_count + start as u64;
        writer.file.types = Arc::clone(types);
        writer.put(batch)?;
        let byte_count = writer.buffer.len() - start;
        writer.flush_if_large()?;
        Ok(HeapPlace { offset, byte_count })
    }

    /// Reads a batch with columns of these types.
    ///
    /// # Errors
    ///
    /// I/O errors; `XX001` for a wrong checksum.
    pub fn read(&mut self, place: HeapPlace, types: &[DataType]) -> Result<Batch> {
        if place.offset + place.byte_count as u64 > self.writer.file.byte_count {
            self.writer.flush()?;
        }
        let mut bytes = vec![0; place.byte_count];
        self.from.read_at(place.offset, &mut bytes)?;
        let (header, frame) = bytes.split_at(HEADER_BYTES);
        let checksum = header[4..].iter().rev().fold(0, |n, b| n << 8 | u32::from(*b));
        match crc32c::crc32c(frame) == checksum {
            true => Ok(read_batch(types, &self.writer.file.fields, frame)?),
            false => {
                let path = &self.writer.file.path;
                Err(store::Error::corrupt(path, place.offset, "checksum mismatch").into())
            }
        }
    }
}

impl SpillFile {
    /// Returns a reader at the start of the file.
    ///
    /// # Errors
    ///
    /// I/O errors.
    pub fn reader(self: &Arc<SpillFile>) -> Result<SpillReader> {
        let from = self.spill.area.env.open(&self.path)?;
        let file = Arc::clone(self);
        Ok(SpillReader { file, from, offset: 0, buffer: Vec::new(), next: 0 })
    }

    /// Returns the size of the largest batch in bytes.
    pub fn batch_bytes_max(&self) -> usize {
        self.batch_bytes_max
    }

    /// Returns the number of rows.
    pub fn row_count(&self) -> u64 {
        self.row_count
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        self.spill.remove(&self.path, self.byte_count);
    }
}

impl SpillReader {
    /// Returns the next batch as it was written; `None` at the end.
    ///
    /// # Errors
    ///
    /// I/O errors; `XX001` for a wrong checksum.
    pub fn next_batch(&mut self) -> Result<Option<Batch>> {
        let Some(header) = self.take(HEADER_BYTES)? else { return Ok(None) };
        let (length, checksum) = header.split_at(4);
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, b| n << 8 | u32::from(*b));
        let (length, checksum) = (number(length) as usize, number(checksum));
        let file = Arc::clone(&self.file);
        match self.take(length)? {
            Some(frame) if crc32c::crc32c(frame) == checksum => {
                Ok(Some(read_batch(&file.types, &file.fields, frame)?))
            }
            _ => {
                let path = &self.file.path;
                Err(store::Error::corrupt(path, self.offset, "checksum mismatch").into())
            }
        }
    }

    /// Returns the next `count` bytes; `None` if the file has fewer.
    fn take(&mut self, count: usize) -> Result<Option<&[u8]>> {
        if self.buffer.len() - self.next < count {
            self.buffer.drain(..self.next);
            self.next = 0;
            if self.buffer.capacity() > KEPT_BYTES {
                self.buffer.shrink_to(CHUNK_BYTES);
            }
            let missing = count - self.buffer.len();
            let left = usize::try_from(self.file.byte_count - self.offset).unwrap_or(usize::MAX);
            if left < missing {
                return Ok(None);
            }
            let start = self.buffer.len();
            let read = left.min(missing.max(CHUNK_BYTES));
            self.buffer.resize(start + read, 0);
            self.from.read_at(self.offset, &mut self.buffer[start..])?;
            self.offset += read as u64;
        }
        let taken = self.next..self.next + count;
        self.next = taken.end;
        Ok(Some(&self.buffer[taken]))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use store::env::RealEnv;
    use store::env::fault::FaultEnv;
    use types::Datum;

    /// Returns a batch of numbers and texts.
    pub(crate) fn batch(numbers: std::ops::Range<i64>) -> Batch {
        let row = |n| vec![Datum::Int8(n), Datum::text(format!("text {n}"))];
        let rows: Vec<_> = numbers.map(row).collect();
        Batch::from_rows(&[DataType::Int8, DataType::Text], &rows)
    }

    #[test]
    fn spill_files_return_batches_and_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let spilled = directory.path().join("spill");
        std::fs::create_dir_all(&spilled).unwrap();
        std::fs::write(spilled.join("0000000007.spill"), "left behind by a previous process")
            .unwrap();
        let files = || std::fs::read_dir(&spilled).unwrap().count();
        let area = SpillArea::open(Arc::new(RealEnv::default()), spilled.clone()).unwrap();
        assert_eq!(files(), 0);
        let spill = area.begin(Some(4 << 20));
        let types: Arc<[DataType]> = Arc::from([DataType::Int8, DataType::Text]);
        let mut writer = spill.create(&types).unwrap();
        let batches: Vec<Batch> = (0..100).map(|n| batch(n * 100..n * 100 + n)).collect();
        batches.iter().for_each(|batch| writer.add(batch).unwrap());
        let file = writer.finish().unwrap();
        assert_eq!((file.row_count(), files()), (4950, 1));
        for _ in 0..2 {
            let mut reader = file.reader().unwrap();
            for batch in batches.iter().skip(1) {
                assert_eq!(reader.next_batch().unwrap().as_ref(), Some(batch));
            }
            assert!(reader.next_batch().unwrap().is_none());
        }
        let mut damaged = std::fs::read(&file.path).unwrap();
        damaged[1000] ^= 1;
        std::fs::write(&file.path, damaged).unwrap();
        let mut reader = file.reader().unwrap();
        let error =
            std::iter::from_fn(|| reader.next_batch().transpose()).find_map(|found| found.err());
        assert_eq!(error.unwrap().sqlstate, "XX001");
        drop((reader, file));
        assert_eq!((files(), spill.bytes.load(Ordering::Relaxed)), (0, 0));
        let mut writer = spill.create(&types).unwrap();
        let error = (0..).find_map(|n| writer.add(&batch(n..n + 1000)).err()).unwrap();
        assert_eq!(error.sqlstate, "53400");
        drop(writer);
        assert_eq!(files(), 0);
    }

    #[test]
    fn spill_leaves_free_disk_space() {
        let env = FaultEnv::new(1);
        let area = SpillArea::open(Arc::new(env.clone()), "spill".into()).unwrap();
        env.leave_room(100 << 20);
        let types: Arc<[DataType]> = Arc::from([DataType::Int8, DataType::Text]);
        let mut writer = area.begin(None).create(&types).unwrap();
        let rows = batch(0..10_000);
        let error = std::iter::from_fn(|| Some(writer.add(&rows))).find_map(Result::err).unwrap();
        assert_eq!(error.sqlstate, "53100");
        assert!(error.message.contains("leave 5 MiB for commits"), "{}", error.message);
        assert!(area.env.disk_space(Path::new("spill")).unwrap().free_bytes < 20 << 20);
        // The disk is full for other statements, too, until the file is removed.
        let mut other = area.begin(None).create(&types).unwrap();
        assert!((0..50).find_map(|_| other.add(&rows).err()).is_some());
        drop(writer);
        other.add(&rows).unwrap();
    }
}
