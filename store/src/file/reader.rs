//! Reads store files. One open handle for each file; blocks come through the cache.
//!
//! A file that was marked obsolete is removed from disk when its last reader lets go of it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::cache::{Block, BlockCache, BlockKey};
use crate::cell::{SearchKey, column_end_key, column_of, column_start_key, compare_keys, is_key};
use crate::cell::{row_end_key, row_of, row_start_key};
use crate::descriptor::BloomFilter;
use crate::env::{Env, ReadFile};
use crate::error::{Error, Result};
use crate::file::bloom;
use crate::file::encoding::{AnyCursor, BlockCursor, Malformed, prepare};
use crate::file::format::{BlockHandle, BlockKind, FileProperties, TRAILER_BYTES};
use crate::file::format::{open_block, open_trailer};
use crate::file::index::Index;
use crate::scan::merge::{Cursor, RowOrder};

/// Steps that a cursor takes towards a key further on in the row before it searches for it.
const STEPS_MAX: usize = 16;

/// Numbers for the cache: no two files of a process share one.
static NEXT_FILE_NUMBER: AtomicU64 = AtomicU64::new(1);

/// An open store file.
pub struct StoreFile {
    env: Arc<dyn Env>,
    cache: Arc<BlockCache>,
    path: PathBuf,
    file: Arc<dyn ReadFile>,
    file_number: u64,
    byte_count: u64,
    properties: FileProperties,
    data_index: OnceLock<Index>,
    bloom_index: OnceLock<Index>,
    obsolete: AtomicBool,
}

impl Drop for StoreFile {
    fn drop(&mut self) {
        if !*self.obsolete.get_mut() {
            return;
        }
        for index in [self.data_index.get(), self.bloom_index.get()].into_iter().flatten() {
            for handle in (0..index.len()).filter_map(|block| index.handle(block)) {
                self.cache.remove(self.block_key(handle));
            }
        }
        // If it stays, the next start removes it: no manifest lists it.
        if let Err(error) = self.env.remove(&self.path) {
            tracing::warn!(%error, "could not remove an obsolete store file");
        }
    }
}

impl StoreFile {
    /// Opens a file and reads its properties.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if the trailer or the properties are not right.
    pub fn open(env: Arc<dyn Env>, path: &Path, cache: Arc<BlockCache>) -> Result<StoreFile> {
        let file = env.open(path)?;
        let byte_count = file.byte_count()?;
        let Some(trailer_at) = byte_count.checked_sub(TRAILER_BYTES as u64) else {
            return Err(Error::corrupt(path, 0, "the file is too short for a store file"));
        };
        let mut trailer = [0; TRAILER_BYTES];
        file.read_at(trailer_at, &mut trailer)?;
        let handle = open_trailer(&trailer, byte_count)
            .map_err(|detail| Error::corrupt(path, trailer_at, detail))?;
        let raw = read_block(&*file, path, trailer_at, BlockKind::Properties, handle)?;
        let properties = FileProperties::decode(raw.bytes())
            .ok_or_else(|| Error::corrupt(path, handle.offset, "the properties are malformed"))?;
        Ok(StoreFile {
            env,
            cache,
            path: path.to_owned(),
            file,
            file_number: NEXT_FILE_NUMBER.fetch_add(1, Ordering::Relaxed),
            byte_count,
            properties,
            data_index: OnceLock::new(),
            bloom_index: OnceLock::new(),
            obsolete: AtomicBool::new(false),
        })
    }

    /// Returns what the file knows about its cells.
    pub fn properties(&self) -> &FileProperties {
        &self.properties
    }

    /// Returns the size of the file.
    pub fn byte_count(&self) -> u64 {
        self.byte_count
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets the file be removed from disk when its last reader lets go of it.
    pub fn mark_obsolete(&self) {
        self.obsolete.store(true, Ordering::Relaxed);
    }

    /// Returns whether the file may have a cell of a row.
    pub fn may_contain_row(&self, row: &[u8]) -> Result<bool> {
        if row < &self.properties.first_row[..] || row > &self.properties.last_row[..] {
            return Ok(false);
        }
        self.bloom_admits(row, bloom::row_hash(row))
    }

    /// Returns whether the file may have a cell of a column of a row. A family marker is not one:
    /// ask [`StoreFile::may_contain_row`] if the file has any.
    pub fn may_contain_column(&self, row: &[u8], qualifier: &[u8]) -> Result<bool> {
        if self.properties.bloom_filter != BloomFilter::RowCol {
            return self.may_contain_row(row);
        }
        if row < &self.properties.first_row[..] || row > &self.properties.last_row[..] {
            return Ok(false);
        }
        self.bloom_admits(row, bloom::column_hash(bloom::row_hash(row), qualifier))
    }

    fn bloom_admits(&self, row: &[u8], hash: u64) -> Result<bool> {
        if self.properties.bloom_filter == BloomFilter::None {
            return Ok(true);
        }
        let index = self.index(&self.bloom_index, self.properties.bloom_index, |_| true)?;
        let Some(handle) = index.handle(index.first_not(|last_row| last_row < row)) else {
            return Ok(false);
        };
        let filter = self.block(BlockKind::Bloom, handle)?;
        Ok(bloom::may_contain(filter.bytes(), hash))
    }

    fn data_index(&self) -> Result<&Index> {
        self.index(&self.data_index, self.properties.data_index, is_key)
    }

    fn index<'a>(
        &self,
        slot: &'a OnceLock<Index>,
        handle: BlockHandle,
        is_key: impl Fn(&[u8]) -> bool,
    ) -> Result<&'a Index> {
        if let Some(index) = slot.get() {
            return Ok(index);
        }
        let raw = self.read(BlockKind::Index, handle)?;
        let index = Index::decode(raw.bytes(), is_key)
            .ok_or_else(|| self.corrupt(handle, "the index is malformed"))?;
        Ok(slot.get_or_init(|| index))
    }

    fn block_key(&self, handle: BlockHandle) -> BlockKey {
        BlockKey { file_number: self.file_number, offset: handle.offset }
    }

    fn block(&self, kind: BlockKind, handle: BlockHandle) -> Result<Arc<Block>> {
        self.cache.block_or_read(self.block_key(handle), || self.read(kind, handle))
    }

    fn read(&self, kind: BlockKind, handle: BlockHandle) -> Result<Block> {
        read_block(&*self.file, &self.path, self.byte_count, kind, handle)
    }

    fn corrupt(&self, handle: BlockHandle, detail: &str) -> Error {
        Error::corrupt(&self.path, handle.offset, detail)
    }
}

fn read_block(
    file: &dyn ReadFile,
    path: &Path,
    end: u64,
    kind: BlockKind,
    handle: BlockHandle,
) -> Result<Block> {
    let block_end = handle.offset.checked_add(u64::from(handle.size));
    if block_end.is_none_or(|block_end| block_end > end) {
        return Err(Error::corrupt(path, handle.offset, "the block lies outside of the file"));
    }
    let mut framed = vec![0; handle.size as usize];
    file.read_at(handle.offset, &mut framed)?;
    let block =
        open_block(kind, framed).map_err(|detail| Error::corrupt(path, handle.offset, detail))?;
    if kind != BlockKind::Data {
        return Ok(block);
    }
    prepare(block)
        .map_err(|Malformed| Error::corrupt(path, handle.offset, "the block is malformed"))
}

/// How a cursor keeps blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// Blocks that are read stay in the cache.
    Keep,
    /// Blocks in the cache are used, those that are read do not enter it: for compactions.
    Bypass,
}

/// Stands on a cell of a store file.
pub struct FileCursor {
    file: Arc<StoreFile>,
    order: RowOrder,
    caching: Caching,
    cursor: AnyCursor,
    /// Index of the block in the cursor.
    block: usize,
    /// The row it stands on; kept in reverse only.
    row: Vec<u8>,
}

impl FileCursor {
    fn new(file: Arc<StoreFile>, order: RowOrder, caching: Caching) -> FileCursor {
        let cursor = AnyCursor::default();
        FileCursor { file, order, caching, cursor, block: usize::MAX, row: Vec::new() }
    }

    /// Returns a cursor that begins with the first row at or after `start`.
    pub fn forward(file: Arc<StoreFile>, start: &[u8], caching: Caching) -> Result<FileCursor> {
        let mut cursor = FileCursor::new(file, RowOrder::Forward, caching);
        cursor.seek_key(&row_start_key(start))?;
        Ok(cursor)
    }

    /// Returns a cursor that begins with the last row before `stop` and goes back.
    pub fn reverse(
        file: Arc<StoreFile>,
        stop: Option<&[u8]>,
        caching: Caching,
    ) -> Result<FileCursor> {
        let mut cursor = FileCursor::new(file, RowOrder::Reverse, caching);
        cursor.seek_before(stop.map(row_start_key))?;
        Ok(cursor)
    }

    fn malformed(&self) -> Error {
        let handle = self.file.data_index.get().and_then(|index| index.handle(self.block));
        self.file.corrupt(handle.unwrap_or_default(), "the block is malformed")
    }

    /// Loads a block and returns whether there is one.
    fn load(&mut self, block: usize) -> Result<bool> {
        if self.block == block {
            return Ok(true);
        }
        let Some(handle) = self.file.data_index()?.handle(block) else {
            self.cursor.close();
            self.block = usize::MAX;
            return Ok(false);
        };
        let bytes = match self.caching {
            Caching::Keep => self.file.block(BlockKind::Data, handle)?,
            Caching::Bypass => match self.file.cache.peek(self.file.block_key(handle)) {
                Some(block) => block,
                None => Arc::new(self.file.read(BlockKind::Data, handle)?),
            },
        };
        self.block = block;
        self.cursor.open(bytes).map_err(|Malformed| self.malformed()).map(|()| true)
    }

    /// Moves to the first cell whose key is not less than `target`.
    fn seek_key(&mut self, target: &[u8]) -> Result<()> {
        let index = self.file.data_index()?;
        let block = index.first_not(|last| compare_keys(last, target).is_lt());
        if self.load(block)? {
            self.cursor.seek(target).map_err(|Malformed| self.malformed())?;
            // Cannot be at the end: the index says that the block's last key is not less.
            if self.cursor.key().is_none() {
                return Err(self.malformed());
            }
        }
        Ok(())
    }

    /// Moves to the first cell of the last row that lies before a row's start.
    fn seek_before(&mut self, before: Option<SearchKey>) -> Result<()> {
        let index = self.file.data_index()?;
        let block = match &before {
            Some(before) => index.first_not(|last| compare_keys(last, before).is_lt()),
            None => index.len(),
        };
        if let Some(before) = &before
            && self.load(block)?
        {
            self.cursor.seek_before(before).map_err(|Malformed| self.malformed())?;
        }
        let is_inside = before.is_some() && self.cursor.key().is_some();
        if !is_inside {
            let Some(block) = block.checked_sub(1) else {
                self.cursor.close();
                self.block = usize::MAX;
                return Ok(());
            };
            self.load(block)?;
            self.cursor.last().map_err(|Malformed| self.malformed())?;
        }
        let last = self.cursor.key().ok_or_else(|| self.malformed())?;
        self.row.clear();
        self.row.extend_from_slice(row_of(last));
        self.seek_key(&row_start_key(&self.row))
    }

    /// Moves to the next cell in the order of the file.
    fn step(&mut self) -> Result<()> {
        self.cursor.advance().map_err(|Malformed| self.malformed())?;
        self.enter_next_block()
    }

    /// Moves to the first cell of the next block if the last one is behind.
    fn enter_next_block(&mut self) -> Result<()> {
        if self.cursor.key().is_none() && self.block != usize::MAX && self.load(self.block + 1)? {
            self.cursor.first().map_err(|Malformed| self.malformed())?;
        }
        Ok(())
    }

    /// Moves on to the first cell at or after `target`, which is not far as a rule.
    fn step_or_seek(&mut self, target: &[u8]) -> Result<()> {
        for _ in 0..STEPS_MAX {
            self.step()?;
            if self.key().is_none_or(|key| compare_keys(key, target).is_ge()) {
                return Ok(());
            }
        }
        self.seek_key(target)
    }

    /// In reverse, goes back a row if it has left the one it was in.
    fn turn_back(&mut self) -> Result<()> {
        if self.order == RowOrder::Reverse
            && self.key().is_none_or(|key| row_of(key) != &self.row[..])
        {
            let start = row_start_key(&self.row);
            self.seek_before(Some(start))?;
        }
        Ok(())
    }
}

impl Cursor for FileCursor {
    fn key(&self) -> Option<&[u8]> {
        self.cursor.key()
    }

    fn value(&self) -> &[u8] {
        self.cursor.value()
    }

    fn advance(&mut self) -> Result<()> {
        if self.key().is_none() {
            return Ok(());
        }
        self.step()?;
        self.turn_back()
    }

    fn skip_column(&mut self) -> Result<()> {
        if self.key().is_none() {
            return Ok(());
        }
        self.cursor.skip_column().map_err(|Malformed| self.malformed())?;
        if self.cursor.key().is_none() && self.block != usize::MAX {
            // The rest of the block is of the column, so its last key is, and the next block may be.
            let (row, qualifier) = column_of(self.file.data_index()?.key(self.block));
            let end = column_end_key(row, qualifier);
            self.seek_key(&end)?;
        }
        self.turn_back()
    }

    fn seek_column(&mut self, qualifier: &[u8]) -> Result<()> {
        let Some((row, at)) = self.key().map(column_of) else { return Ok(()) };
        if at >= qualifier {
            return Ok(());
        }
        let start = column_start_key(row, qualifier);
        self.step_or_seek(&start)?;
        self.turn_back()
    }

    fn skip_row(&mut self) -> Result<()> {
        let Some(key) = self.key() else { return Ok(()) };
        match self.order {
            RowOrder::Forward => {
                let end = row_end_key(row_of(key));
                self.step_or_seek(&end)
            }
            RowOrder::Reverse => {
                let start = row_start_key(row_of(key));
                self.seek_before(Some(start))
            }
        }
    }

    fn seek_row(&mut self, row: &[u8]) -> Result<()> {
        match self.order {
            RowOrder::Forward => self.seek_key(&row_start_key(row)),
            RowOrder::Reverse => self.seek_before(Some(row_start_key(row))),
        }
    }
}
