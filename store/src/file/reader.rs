//! Reader of store files. One open handle for each file; blocks are read through the block cache.
//!
//! A file that was marked obsolete is removed from disk when its last reader is dropped.

use std::cell::Cell;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::cache::{Block, FamilyCache};
use crate::cell::Sequence;
use crate::descriptor::colocation::Partitioning;
use crate::descriptor::{BloomFilter, FileIdentity, RowRange};
use crate::env::{Env, ReadFile};
use crate::error::{Error, Result};
use crate::file::bloom::{self, FilterResult, HashedRow};
use crate::file::columnar::KnownLayout;
use crate::file::encoding::{Malformed, prepare, prepare_front};
use crate::file::format::{
    BlockHandle, BlockKind, TRAILER_BYTES, open_block, open_front, open_trailer,
};
use crate::file::index::{TreeRoot, child};
use crate::file::piece_source::{BlockSource, PieceSource};
use crate::file::properties::FileProperties;
use crate::file::tree::{BlockTree, ChildBlock, HeldBlock, IndexBlock, Leaves};
use crate::read_statistics::note_read;
use crate::scan::merge::RowOrder;

/// Numbers of files in the cache, unique in the process.
static NEXT_FILE_NUMBER: AtomicU64 = AtomicU64::new(1);

/// An open store file.
pub struct StoreFile {
    env: Arc<dyn Env>,
    source: Arc<BlockSource>,
    byte_count: u64,
    properties_handle: BlockHandle,
    properties: FileProperties,
    adopted: Option<Sequence>,
    data_tree: OnceLock<BlockTree>,
    bloom_tree: OnceLock<BlockTree>,
    known_layout: KnownLayout,
    part: Option<HalfFileRange>,
    obsolete: AtomicBool,
}

/// The part of a file whose rows belong to the region.
#[derive(Debug, Clone)]
pub(super) struct HalfFileRange {
    pub(super) rows: RowRange,
    /// The assignment of rows to that range.
    pub(super) partitioning: Partitioning,
    /// Offset of its first data block.
    pub(super) from: u64,
    /// Offset of its last data block.
    pub(super) to: u64,
}

impl Drop for StoreFile {
    fn drop(&mut self) {
        if !*self.obsolete.get_mut() {
            return;
        }
        for tree in [&self.data_tree, &self.bloom_tree] {
            if let Some(tree) = tree.get() {
                self.forget(tree.root(), tree.levels());
            }
        }
        // If that fails, the next opening removes it: no manifest lists it.
        if let Err(error) = self.env.remove(&self.source.path) {
            tracing::warn!(%error, "could not remove an obsolete store file");
        }
    }
}

impl StoreFile {
    /// Opens a file and reads its properties.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if the trailer or the properties are invalid.
    pub fn open(env: Arc<dyn Env>, path: &Path, cache: Arc<FamilyCache>) -> Result<StoreFile> {
        let file = env.open(path)?;
        // Scans do their own read-ahead.
        file.expect_scattered_reads();
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
            source: Arc::new(BlockSource {
                file,
                path: path.to_owned(),
                cache,
                file_number: NEXT_FILE_NUMBER.fetch_add(1, Ordering::Relaxed),
            }),
            byte_count,
            properties_handle: handle,
            properties,
            adopted: None,
            data_tree: OnceLock::new(),
            bloom_tree: OnceLock::new(),
            known_layout: KnownLayout::default(),
            part: None,
            obsolete: AtomicBool::new(false),
        })
    }

    /// Returns the file with all its cells at this sequence, regardless of their keys: it was
    /// written before the commit that adopts it had its sequence.
    #[must_use]
    pub fn adopted_at(mut self, sequence: Sequence) -> StoreFile {
        self.properties.min_sequence = sequence;
        self.properties.max_sequence = sequence;
        self.adopted = Some(sequence);
        self
    }

    /// Returns the sequence of all its cells, if it is not that of their keys.
    pub fn adopted(&self) -> Option<Sequence> {
        self.adopted
    }

    /// Returns the recorded identity of the file, if any.
    pub fn identity(&self) -> Option<FileIdentity> {
        self.properties.identity
    }

    /// Returns the metadata of the file's cells.
    pub fn properties(&self) -> &FileProperties {
        &self.properties
    }

    /// Returns the size of the file; for a part, an estimate of its share.
    pub fn byte_count(&self) -> u64 {
        self.share_of(self.byte_count)
    }

    /// Returns the number of cells; for a part, an estimate.
    pub fn cell_count(&self) -> u64 {
        self.share_of(self.properties.cell_count)
    }

    /// Returns an estimate of the rows that the file adds to those of older files: the rows with
    /// cells in it, less twice those it deletes, if it deletes each as a whole.
    pub fn row_balance(&self) -> i64 {
        let deleted = self.properties.type_counts[4];
        let signed = |count: u64| self.share_of(count).try_into().unwrap_or(i64::MAX);
        signed(self.properties.row_count).saturating_sub(signed(deleted).saturating_mul(2))
    }

    fn share_of(&self, whole: u64) -> u64 {
        let Some(HalfFileRange { from, to, .. }) = &self.part else { return whole };
        let share = u128::from(whole) * u128::from(to.saturating_sub(*from).max(1));
        (share / u128::from(self.byte_count.max(1))) as u64
    }

    /// Returns whether the file has rows that do not belong to the region.
    pub fn is_part(&self) -> bool {
        self.part.is_some()
    }

    pub(super) fn part(&self) -> Option<&HalfFileRange> {
        self.part.as_ref()
    }

    /// Returns the range of rows that the file is restricted to, if it is one.
    pub(super) fn range(&self) -> Option<&RowRange> {
        let part = self.part.as_ref()?;
        (part.partitioning == Partitioning::Row).then_some(&part.rows)
    }

    /// Returns the range of base rows whose rows the file is restricted to, if it is one.
    pub(super) fn base_rows(&self) -> Option<&RowRange> {
        let part = self.part.as_ref()?;
        (part.partitioning == Partitioning::BaseRow).then_some(&part.rows)
    }

    /// Restricts the file and its properties to a part.
    pub(super) fn take_part(&mut self, part: HalfFileRange, first_row: Vec<u8>, last_row: Vec<u8>) {
        self.part = Some(part);
        self.properties.first_row = first_row;
        self.properties.last_row = last_row;
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.source.path
    }

    /// Has the file removed from disk when its last reader is dropped.
    pub fn mark_obsolete(&self) {
        self.obsolete.store(true, Ordering::Relaxed);
    }

    /// Returns whether the file may have a cell of a row, which must lie between its first and
    /// its last row.
    pub fn may_contain_row(&self, row: &[u8]) -> Result<bool> {
        Ok(self.admits_row(&HashedRow::new(row))?.may_contain())
    }

    /// As [`StoreFile::may_contain_row`], with the last step deferred.
    pub(crate) fn admits_row(&self, asked: &HashedRow<'_>) -> Result<FilterResult<'_>> {
        self.admits(asked.row, || asked.hash)
    }

    /// Returns whether the file may have a cell of a column of such a row. Family markers are not
    /// covered: if the file has any, call [`StoreFile::may_contain_row`].
    pub fn may_contain_column(&self, row: &[u8], qualifier: &[u8]) -> Result<bool> {
        Ok(self.admits_column(&HashedRow::new(row), qualifier)?.may_contain())
    }

    /// As [`StoreFile::may_contain_column`], with the last step deferred.
    pub(crate) fn admits_column(
        &self,
        asked: &HashedRow<'_>,
        qualifier: &[u8],
    ) -> Result<FilterResult<'_>> {
        match self.properties.bloom_filter {
            BloomFilter::RowCol => {
                self.admits(asked.row, || bloom::column_hash(asked.hash, qualifier))
            }
            _ => self.admits_row(asked),
        }
    }

    fn admits(&self, row: &[u8], hash: impl FnOnce() -> u64) -> Result<FilterResult<'_>> {
        if self.properties.bloom_index.levels == 0 {
            return Ok(FilterResult::Maybe);
        }
        let tree = self.bloom_tree()?;
        self.admits_below(tree, tree.root(), 1, row, hash)
    }

    /// Finds the filter for a row below an index block of a level of the filter tree; the root's
    /// level is 1.
    fn admits_below<'a>(
        &self,
        tree: &BlockTree,
        index: IndexBlock<'a>,
        level: usize,
        row: &[u8],
        hash: impl FnOnce() -> u64,
    ) -> Result<FilterResult<'a>> {
        let malformed = |offset| move |Malformed| self.malformed_index(offset);
        let entry = index.view.restarts_before_row(row).map_err(malformed(index.offset))?;
        if entry >= index.view.restart_count() {
            return Ok(FilterResult::No);
        }
        let below = self.below(tree, (index, level), entry, Caching::Keep)?;
        match below {
            ChildBlock::Kept(kept) => match kept.index() {
                Some(index) => self.admits_below(tree, index, level + 1, row, hash),
                None => Ok(FilterResult::of(kept.block().bytes(), hash())),
            },
            ChildBlock::Taken(block, _) if level == tree.levels() => {
                Ok(FilterResult::of(block.bytes(), hash()).evaluated())
            }
            ChildBlock::Taken(block, offset) => {
                let index = IndexBlock::of(&block, offset).map_err(malformed(offset))?;
                Ok(self.admits_below(tree, index, level + 1, row, hash)?.evaluated())
            }
        }
    }

    /// Returns the block of an entry of an index block of a level, which is not a data block. The
    /// root's level is 1.
    pub(super) fn below<'a>(
        &self,
        tree: &BlockTree,
        (index, level): (IndexBlock<'a>, usize),
        entry: usize,
        caching: Caching,
    ) -> Result<ChildBlock<'a>> {
        // The usual case, without decoding the handle of the block.
        if let Some(kept) = index.kept(entry) {
            return Ok(ChildBlock::Kept(kept));
        }
        let at =
            child(index.view, entry).map_err(|Malformed| self.malformed_index(index.offset))?;
        let kind = if level == tree.levels() { BlockKind::Bloom } else { BlockKind::Index };
        let block = self.block(kind, at, caching)?;
        if caching == Caching::Keep
            && let Some(slot) = index.slot(entry)
            && let Some(kept) = self.source.cache.keep(self.source.key(at), &block)
        {
            let kept =
                tree.kept(level, at, kept).map_err(|Malformed| self.malformed_index(at.offset))?;
            // Another reader may have been faster.
            return Ok(ChildBlock::Kept(slot.get_or_init(|| kept)));
        }
        Ok(ChildBlock::Taken(block, at.offset))
    }

    /// Returns the tree of data blocks.
    pub(super) fn data_tree(&self) -> Result<&BlockTree> {
        match self.data_tree.get() {
            Some(tree) => Ok(tree),
            None => self.open_tree(&self.data_tree, self.properties.data_index, Leaves::Data),
        }
    }

    /// Returns the tree of filters.
    fn bloom_tree(&self) -> Result<&BlockTree> {
        match self.bloom_tree.get() {
            Some(tree) => Ok(tree),
            None => self.open_tree(&self.bloom_tree, self.properties.bloom_index, Leaves::Filters),
        }
    }

    fn open_tree<'a>(
        &self,
        slot: &'a OnceLock<BlockTree>,
        at: TreeRoot,
        leaves: Leaves,
    ) -> Result<&'a BlockTree> {
        let root = self.read(BlockKind::Index, at.handle)?;
        let tree = BlockTree::new(at, root, leaves)
            .map_err(|Malformed| self.malformed_index(at.handle.offset))?;
        Ok(slot.get_or_init(|| tree))
    }

    /// Removes the blocks below an index block from the cache, as far as cached index blocks lead
    /// to them.
    fn forget(&self, index: IndexBlock<'_>, levels: usize) {
        for entry in 0..index.view.restart_count() {
            let Ok(at) = child(index.view, entry) else { continue };
            let key = self.source.key(at);
            if levels > 1 {
                if let Some(index) = index.kept(entry).and_then(HeldBlock::index) {
                    self.forget(index, levels - 1);
                } else if let Some(block) = self.source.cache.peek(key)
                    && let Ok(index) = IndexBlock::of(&block, at.offset)
                {
                    self.forget(index, levels - 1);
                }
            }
            self.source.cache.remove(key);
        }
    }

    /// Returns a block, from the cache if it is there.
    pub(super) fn block(
        &self,
        kind: BlockKind,
        handle: BlockHandle,
        caching: Caching,
    ) -> Result<Block> {
        self.block_or_read(kind, handle, caching, || self.read(kind, handle))
    }

    /// Returns a data block, from the cache, else from the read-ahead buffer, else from the file.
    pub(super) fn data_block(
        &self,
        handle: BlockHandle,
        caching: Caching,
        ahead: &mut BlockReadAhead,
    ) -> Result<Block> {
        self.block_or_read(BlockKind::Data, handle, caching, || {
            let range = self.checked(handle)?;
            if handle.front > 0 && caching == Caching::Keep {
                if let Some(next) = ahead.announce(&range, self.byte_count) {
                    self.source.file.expect_reads(next);
                }
                return self.front(handle);
            }
            if !ahead.holds(&range) {
                let range = ahead.choose(&range, self.byte_count);
                ahead.bytes.resize((range.end - range.start) as usize, 0);
                ahead.start = range.start;
                let read = self.source.file.read_at(range.start, &mut ahead.bytes);
                if let Err(error) = read {
                    ahead.bytes.clear();
                    return Err(error);
                }
            }
            let start = (range.start - ahead.start) as usize;
            let framed = &ahead.bytes[start..start + handle.size as usize];
            self.prepared(handle, open_checked(&self.source.path, BlockKind::Data, handle, framed)?)
        })
    }

    /// Reads the front of a data block.
    fn front(&self, handle: BlockHandle) -> Result<Block> {
        if handle.front > handle.size {
            return Err(self.corrupt(handle, "the block header is longer than the block"));
        }
        let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, handle.front as usize).collect();
        let buffer = Arc::get_mut(&mut bytes).expect("nobody else has it yet");
        self.source.file.read_at(handle.offset, buffer)?;
        let encoding = open_front(&bytes, handle.size)
            .map_err(|detail| Error::corrupt(&self.source.path, handle.offset, detail))?;
        let origin = PieceSource::new(&self.source, handle);
        prepare_front(Block::of_buffer(encoding, bytes), &self.known_layout, origin)
            .map_err(|Malformed| self.corrupt(handle, "the block is malformed"))
    }

    fn block_or_read(
        &self,
        kind: BlockKind,
        handle: BlockHandle,
        caching: Caching,
        read: impl FnOnce() -> Result<Block>,
    ) -> Result<Block> {
        let key = self.source.key(handle);
        let was_read = Cell::new(false);
        let read = || {
            was_read.set(true);
            read()
        };
        let block = match caching {
            Caching::Keep => {
                let enters = || kind != BlockKind::Data || self.source.cache.takes_data();
                self.source.cache.block_or_read(key, enters, read)
            }
            // A reader that bypasses the cache reads the whole block at once.
            Caching::Bypass if handle.front > 0 => read(),
            Caching::Bypass => self.source.cache.peek(key).map_or_else(read, Ok),
        };
        note_read(|figures| match was_read.get() {
            true => figures.blocks_read += 1,
            false => figures.blocks_cached += 1,
        });
        block
    }

    /// Returns the handle of the properties.
    pub(super) fn properties_handle(&self) -> BlockHandle {
        self.properties_handle
    }

    /// Returns a block as it is in the file, with its frame, unchecked.
    pub(super) fn framed(&self, handle: BlockHandle) -> Result<Vec<u8>> {
        self.checked(handle)?;
        let mut framed = vec![0; handle.size as usize];
        self.source.file.read_at(handle.offset, &mut framed)?;
        Ok(framed)
    }

    fn read(&self, kind: BlockKind, handle: BlockHandle) -> Result<Block> {
        let block =
            read_block(&*self.source.file, &self.source.path, self.byte_count, kind, handle)?;
        if kind == BlockKind::Data { self.prepared(handle, block) } else { Ok(block) }
    }

    fn prepared(&self, handle: BlockHandle, block: Block) -> Result<Block> {
        prepare(block, &self.known_layout)
            .map_err(|Malformed| self.corrupt(handle, "the block is malformed"))
    }

    fn checked(&self, handle: BlockHandle) -> Result<Range<u64>> {
        checked_range(&self.source.path, self.byte_count, handle)
    }

    pub(super) fn corrupt(&self, handle: BlockHandle, detail: &str) -> Error {
        self.source.corrupt(handle, detail)
    }

    pub(super) fn malformed_index(&self, offset: u64) -> Error {
        Error::corrupt(&self.source.path, offset, "the index is malformed")
    }
}

fn read_block(
    file: &dyn ReadFile,
    path: &Path,
    end: u64,
    kind: BlockKind,
    handle: BlockHandle,
) -> Result<Block> {
    checked_range(path, end, handle)?;
    let mut framed = vec![0; handle.size as usize];
    file.read_at(handle.offset, &mut framed)?;
    open_checked(path, kind, handle, &framed)
}

fn open_checked(path: &Path, kind: BlockKind, handle: BlockHandle, framed: &[u8]) -> Result<Block> {
    open_block(kind, framed).map_err(|detail| Error::corrupt(path, handle.offset, detail))
}

/// Returns the range of a block, if it is inside the file.
fn checked_range(path: &Path, end: u64, handle: BlockHandle) -> Result<Range<u64>> {
    match handle.offset.checked_add(u64::from(handle.size)) {
        Some(block_end) if block_end <= end => Ok(handle.offset..block_end),
        _ => Err(Error::corrupt(path, handle.offset, "the block is outside the file")),
    }
}

/// Cache policy of a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// Blocks that are read enter the cache, if the family allows it.
    Keep,
    /// Cached blocks are used, but blocks that are read do not enter the cache: for compactions.
    Bypass,
}

/// Maximal bytes per read of a cursor that reads consecutive blocks. A read from the page cache
/// costs most of a microsecond regardless of its size.
const AHEAD_BYTES_MAX: u64 = 256 << 10;
/// Bytes read when the second consecutive block is not in the cache.
const AHEAD_BYTES_MIN: u64 = 64 << 10;

/// Read-ahead buffer: bytes around the last block that was read, in the direction of the cursor.
pub(super) struct BlockReadAhead {
    order: RowOrder,
    start: u64,
    bytes: Vec<u8>,
    /// Size of the next read.
    next_bytes: u64,
    /// The range last announced to the system for prefetching.
    announced: Range<u64>,
}

impl BlockReadAhead {
    pub(super) fn new(order: RowOrder, caching: Caching) -> BlockReadAhead {
        let mut ahead =
            BlockReadAhead { order, start: 0, bytes: Vec::new(), next_bytes: 0, announced: 0..0 };
        ahead.interrupt(caching);
        ahead
    }

    /// Resets read-ahead before a random access. A reader that bypasses the cache usually reads
    /// everything.
    pub(super) fn interrupt(&mut self, caching: Caching) {
        self.next_bytes = match caching {
            Caching::Keep => 0,
            Caching::Bypass => AHEAD_BYTES_MAX,
        };
    }

    /// Returns the range that will be read soon, after some consecutive blocks that are only
    /// partly read. The system prefetches it.
    fn announce(&mut self, block: &Range<u64>, file_bytes: u64) -> Option<Range<u64>> {
        let is_first = self.next_bytes == 0;
        if is_first || self.announced.contains(&block.start) {
            self.next_bytes = self.next_bytes.max(AHEAD_BYTES_MIN);
            return None;
        }
        let wanted = self.choose(block, file_bytes);
        self.announced = wanted.clone();
        Some(wanted)
    }

    fn holds(&self, range: &Range<u64>) -> bool {
        range.start >= self.start && range.end <= self.start + self.bytes.len() as u64
    }

    /// Returns the range to read for a block.
    fn choose(&mut self, block: &Range<u64>, file_bytes: u64) -> Range<u64> {
        let wanted = self.next_bytes.max(block.end - block.start);
        self.next_bytes = (wanted * 2).clamp(AHEAD_BYTES_MIN, AHEAD_BYTES_MAX);
        match self.order {
            RowOrder::Forward => block.start..(block.start + wanted).min(file_bytes),
            RowOrder::Reverse => block.end.saturating_sub(wanted)..block.end,
        }
    }
}
