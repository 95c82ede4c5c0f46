//! Prefix-compressed list of rows in ascending order, some bytes per row.
//!
//! ```text
//!   chunk of 4 KiB: [shared bytes: u16][other bytes: u16][other bytes] ...   chunk ...   chunk
//! ```
//!
//! A row is stored without the prefix that it shares with the row before it in its chunk. All
//! chunks but the newest can be written to disk; then only their first rows stay in memory.
//!
//! # Invariants
//!
//! 1. Rows ascend strictly, so that a row is in at most one chunk.
//! 2. Only the last chunk grows.
//!
//! `OrderedRows::push` asserts 1, `OrderedRows::check` 2, in debug builds.

use std::path::PathBuf;
use std::sync::Arc;

use crate::env::{Env, ReadFile};
use crate::error::{Error, Result};
use crate::spill::SpillDirectory;

/// Size at which a chunk is full.
const CHUNK_BYTES: usize = 4 << 10;
/// Memory of a chunk without its rows.
const CHUNK_OVERHEAD_BYTES: usize = size_of::<Chunk>() + 32;

/// Rows in ascending order.
#[derive(Default)]
pub(super) struct OrderedRows {
    chunks: Vec<Chunk>,
    /// The last row.
    last: Vec<u8>,
    count: u64,
    held_bytes: usize,
    /// Position of the last row found: look-ups usually come in order, too.
    found: Option<RowPosition>,
}

struct Chunk {
    /// Number of rows before it.
    before: u64,
    first_row: Vec<u8>,
    rows: ChunkRows,
}

enum ChunkRows {
    Held(Vec<u8>),
    Written { file: Arc<ChunkFile>, offset: u64, byte_count: usize, checksum: u32 },
}

/// A file of chunks; it is removed with the last of them.
struct ChunkFile {
    env: Arc<dyn Env>,
    path: PathBuf,
    file: Arc<dyn ReadFile>,
}

impl Drop for ChunkFile {
    fn drop(&mut self) {
        // If that fails, the next opening removes it.
        if let Err(error) = self.env.remove(&self.path) {
            tracing::warn!(%error, "could not remove spilled locks");
        }
    }
}

/// Position of a row in a chunk.
#[derive(Default)]
struct RowPosition {
    chunk: usize,
    /// Offset behind the row.
    end: usize,
    row: Vec<u8>,
}

impl RowPosition {
    /// Moves to the next row of the chunk; returns whether there is one.
    fn advance(&mut self, rows: &[u8]) -> bool {
        let Some((header, rest)) = rows.get(self.end..).and_then(<[u8]>::split_first_chunk::<4>)
        else {
            return false;
        };
        let [a, b, c, d] = *header;
        let shared = usize::from(u16::from_le_bytes([a, b]));
        let other = usize::from(u16::from_le_bytes([c, d]));
        self.row.truncate(shared);
        self.row.extend_from_slice(&rest[..other]);
        self.end += header.len() + other;
        true
    }
}

impl Chunk {
    fn held_bytes(&self) -> usize {
        let rows = match &self.rows {
            ChunkRows::Held(rows) => rows.capacity(),
            ChunkRows::Written { .. } => 0,
        };
        rows + self.first_row.len() + CHUNK_OVERHEAD_BYTES
    }

    /// Calls `visit` with the encoded rows, which may have to be read from disk.
    fn with_rows<T>(&self, visit: impl FnOnce(&[u8]) -> T) -> Result<T> {
        match &self.rows {
            ChunkRows::Held(rows) => Ok(visit(rows)),
            ChunkRows::Written { file, offset, byte_count, checksum } => {
                let mut rows = vec![0; *byte_count];
                file.file.read_at(*offset, &mut rows)?;
                if crc32c::crc32c(&rows) != *checksum {
                    return Err(Error::corrupt(&file.path, *offset, "spilled locks are damaged"));
                }
                Ok(visit(&rows))
            }
        }
    }
}

impl OrderedRows {
    /// Returns the number of rows.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the bytes of memory in use.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Returns the approximate number of bytes that [`OrderedRows::spill`] would free.
    pub(super) fn spillable_bytes(&self) -> usize {
        self.held_bytes.saturating_sub(self.chunks.len() * (CHUNK_OVERHEAD_BYTES + 64))
    }

    /// Returns whether a row sorts behind all rows of the list.
    pub(super) fn is_before(&self, row: &[u8]) -> bool {
        self.count == 0 || self.last.as_slice() < row
    }

    /// Returns whether a row is the last one.
    pub(super) fn is_last(&self, row: &[u8]) -> bool {
        self.count > 0 && self.last.as_slice() == row
    }

    /// Appends a row, which sorts behind all others.
    pub(super) fn push(&mut self, row: &[u8]) {
        debug_assert!(self.is_before(row));
        debug_assert!(u16::try_from(row.len()).is_ok(), "the length of a row fits");
        let is_full = |chunk: &Chunk| match &chunk.rows {
            ChunkRows::Held(rows) => rows.len() >= CHUNK_BYTES,
            ChunkRows::Written { .. } => true,
        };
        if self.chunks.last().is_none_or(is_full) {
            let rows = ChunkRows::Held(Vec::with_capacity(CHUNK_BYTES + 64));
            let chunk = Chunk { before: self.count, first_row: row.to_vec(), rows };
            self.held_bytes += chunk.held_bytes();
            self.chunks.push(chunk);
            self.last.clear();
            self.check();
        }
        if let Some(Chunk { rows: ChunkRows::Held(rows), .. }) = self.chunks.last_mut() {
            let same = self.last.iter().zip(row).take_while(|(last, new)| last == new).count();
            let shared = same.min(usize::from(u16::MAX));
            let before = rows.capacity();
            rows.extend_from_slice(&(shared as u16).to_le_bytes());
            rows.extend_from_slice(&((row.len() - shared) as u16).to_le_bytes());
            rows.extend_from_slice(&row[shared..]);
            self.held_bytes += rows.capacity() - before;
        }
        self.last.clear();
        self.last.extend_from_slice(row);
        self.count += 1;
    }

    /// Returns whether the list contains a row; fast for look-ups in order.
    ///
    /// # Errors
    ///
    /// Errors of reading spilled chunks.
    pub(super) fn contains(&mut self, row: &[u8]) -> Result<bool> {
        if self.count == 0 || row > self.last.as_slice() {
            return Ok(false);
        }
        let chunk = self.chunks.partition_point(|chunk| chunk.first_row.as_slice() <= row);
        let Some(chunk) = chunk.checked_sub(1) else { return Ok(false) };
        let mut place = match self.found.take() {
            Some(found) if found.chunk == chunk && found.row.as_slice() < row => found,
            Some(found) if found.chunk == chunk && found.row == row => {
                self.found = Some(found);
                return Ok(true);
            }
            _ => RowPosition { chunk, ..RowPosition::default() },
        };
        let is_there = self.chunks[chunk].with_rows(|rows| {
            while place.advance(rows) {
                if place.row.as_slice() >= row {
                    return place.row == row;
                }
            }
            false
        })?;
        self.found = is_there.then_some(place);
        Ok(is_there)
    }

    /// Calls `visit` with every row.
    ///
    /// # Errors
    ///
    /// Errors of reading spilled chunks.
    pub(super) fn for_each(&self, mut visit: impl FnMut(&[u8])) -> Result<()> {
        self.chunks.iter().try_for_each(|chunk| {
            let mut place = RowPosition::default();
            chunk.with_rows(|rows| {
                while place.advance(rows) {
                    visit(&place.row);
                }
            })
        })
    }

    /// Removes all but the first `count` rows.
    ///
    /// # Errors
    ///
    /// Errors of reading spilled chunks; the list is unchanged then.
    pub(super) fn truncate(&mut self, count: u64) -> Result<()> {
        if count >= self.count {
            return Ok(());
        }
        let kept = self.chunks.partition_point(|chunk| chunk.before < count);
        let mut place = RowPosition::default();
        let mut left = None;
        if let Some(chunk) = kept.checked_sub(1).map(|last| &self.chunks[last]) {
            left = Some(chunk.with_rows(|rows| {
                for _ in chunk.before..count {
                    place.advance(rows);
                }
                rows[..place.end].to_vec()
            })?);
        }
        self.chunks.truncate(kept);
        if let (Some(chunk), Some(rows)) = (self.chunks.last_mut(), left) {
            chunk.rows = ChunkRows::Held(rows);
        }
        self.last = place.row;
        self.count = count;
        self.found = None;
        self.held_bytes = self.chunks.iter().map(Chunk::held_bytes).sum();
        self.check();
        Ok(())
    }

    /// Asserts, in debug builds, that only the last chunk has room, and that chunks ascend.
    fn check(&self) {
        if cfg!(debug_assertions) {
            for pair in self.chunks.windows(2) {
                assert!(pair[0].before < pair[1].before, "a chunk without rows");
                assert!(pair[0].first_row < pair[1].first_row, "chunks ascend");
                let is_full = match &pair[0].rows {
                    ChunkRows::Held(rows) => rows.len() >= CHUNK_BYTES,
                    ChunkRows::Written { .. } => true,
                };
                assert!(is_full, "a chunk with room is not the last");
            }
            assert!(self.chunks.last().is_none_or(|last| last.before <= self.count), "row count");
        }
    }

    /// Writes all chunks but the last to a file.
    ///
    /// # Errors
    ///
    /// Errors of writing; all chunks stay in memory then.
    pub(super) fn spill(&mut self, files: &SpillDirectory) -> Result<()> {
        let full = self.chunks.len().saturating_sub(1);
        let is_held = |chunk: &Chunk| matches!(chunk.rows, ChunkRows::Held(_));
        let Some(first) = self.chunks[..full].iter().position(is_held) else { return Ok(()) };
        let (env, path) = (Arc::clone(files.env()), files.name_file()?.1);
        let write = || {
            let mut file = env.create(&path)?;
            for chunk in &self.chunks[first..full] {
                if let ChunkRows::Held(rows) = &chunk.rows {
                    file.append(rows)?;
                }
            }
            drop(file);
            env.open(&path)
        };
        let file = write().inspect_err(|_| {
            // The file may not exist.
            let _ = env.remove(&path);
        })?;
        let file = Arc::new(ChunkFile { env, path, file });
        let mut offset = 0;
        for chunk in &mut self.chunks[first..full] {
            let ChunkRows::Held(rows) = &chunk.rows else { continue };
            let (byte_count, checksum) = (rows.len(), crc32c::crc32c(rows));
            let file = Arc::clone(&file);
            chunk.rows = ChunkRows::Written { file, offset, byte_count, checksum };
            offset += byte_count as u64;
        }
        self.held_bytes = self.chunks.iter().map(Chunk::held_bytes).sum();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::BlockCache;
    use crate::env::RealEnv;

    fn row(number: u64) -> Vec<u8> {
        [b"row-".as_slice(), &(number * 3).to_be_bytes()].concat()
    }

    fn all(rows: &OrderedRows) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        rows.for_each(|row| all.push(row.to_vec())).unwrap();
        all
    }

    #[test]
    fn ordered_rows_are_found_in_memory_and_spilled() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Arc::new(BlockCache::new(1 << 20));
        let files = SpillDirectory::new(
            Arc::new(RealEnv::default()),
            directory.path().join("staged"),
            &cache,
        );
        let mut rows = OrderedRows::default();
        assert!(!rows.contains(b"").unwrap() && rows.is_before(b""));
        for number in 0..5_000 {
            rows.push(&row(number));
            if number % 1_500 == 1_499 {
                let before = rows.held_bytes();
                rows.spill(&files).unwrap();
                assert!(rows.held_bytes() < before);
            }
        }
        assert_eq!(rows.count(), 5_000);
        assert!(!rows.is_before(&row(4_999)) && rows.is_before(&row(5_000)));
        for number in (0..5_000).chain((0..5_000).rev()).chain((0..5_000).step_by(77)) {
            assert!(rows.contains(&row(number)).unwrap(), "{number}");
            let mut other = row(number);
            other.push(0);
            assert!(!rows.contains(&other).unwrap());
            other.truncate(5);
            assert!(!rows.contains(&other).unwrap());
        }
        let expected: Vec<Vec<u8>> = (0..5_000).map(row).collect();
        assert_eq!(all(&rows), expected);
        for count in [4_999, 3_000, 2_999, 700, 1, 0] {
            rows.truncate(count).unwrap();
            assert_eq!(all(&rows), expected[..count as usize]);
            assert!(!rows.contains(&row(count)).unwrap());
            rows.push(&row(count));
            assert!(rows.contains(&row(count)).unwrap());
            assert_eq!(all(&rows), expected[..=count as usize]);
        }
        drop(rows);
        let left = std::fs::read_dir(directory.path().join("staged")).unwrap().count();
        assert_eq!(left, 0, "files go with their rows");
    }
}
