//! Reads store files. One open handle for each file; blocks come through the cache.
//!
//! A file that was marked obsolete is removed from disk when its last reader lets go of it.

use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::cache::{Block, BlockKey, FamilyCache, KeptBlock};
use crate::cell::Sequence;
use crate::descriptor::BloomFilter;
use crate::env::{Env, ReadFile};
use crate::error::{Error, Result};
use crate::file::bloom;
use crate::file::columnar::KnownLayout;
use crate::file::encoding::{Malformed, prepare};
use crate::file::format::{BlockHandle, BlockKind, TRAILER_BYTES, open_block, open_trailer};
use crate::file::index::{TreeRoot, child};
use crate::file::properties::FileProperties;
use crate::file::row_block::{RowBlock, RowBlockLayout};
use crate::scan::merge::RowOrder;

/// Numbers for the cache: no two files of a process share one.
static NEXT_FILE_NUMBER: AtomicU64 = AtomicU64::new(1);

/// An open store file.
pub struct StoreFile {
    env: Arc<dyn Env>,
    cache: Arc<FamilyCache>,
    path: PathBuf,
    file: Arc<dyn ReadFile>,
    file_number: u64,
    byte_count: u64,
    properties_handle: BlockHandle,
    properties: FileProperties,
    adopted: Option<Sequence>,
    data_tree: OnceLock<Tree>,
    bloom_tree: OnceLock<Tree>,
    known_layout: KnownLayout,
    obsolete: AtomicBool,
}

/// A tree of index blocks, as far as an open file has it at hand: the root, and the blocks below
/// it that are no data blocks while the cache has room to keep them.
pub(super) struct Tree {
    /// Where the root is, and how many levels of index blocks there are.
    at: TreeRoot,
    root: Block,
    /// Of the root.
    layout: RowBlockLayout,
    /// One for each entry of the root; none if those are data blocks.
    kept: Box<[OnceLock<KeptBlock>]>,
}

/// A block below a root: kept by the file, or from the cache.
pub(super) enum Below<'a> {
    Kept(&'a Block),
    Taken(Block),
}

impl Deref for Below<'_> {
    type Target = Block;

    fn deref(&self) -> &Block {
        match self {
            Below::Kept(block) => block,
            Below::Taken(block) => block,
        }
    }
}

impl Tree {
    /// Returns the root.
    pub(super) fn root(&self) -> RowBlock<'_> {
        RowBlock::new(self.root.bytes(), self.layout)
    }

    /// Returns where the root is.
    pub(super) fn handle(&self) -> BlockHandle {
        self.at.handle
    }

    /// Returns the number of levels of index blocks.
    pub(super) fn levels(&self) -> usize {
        usize::from(self.at.levels)
    }

    /// Returns the block of an entry of the root, if the file keeps it.
    pub(super) fn kept(&self, entry: usize) -> Option<&Block> {
        self.kept.get(entry)?.get().map(|kept| &**kept)
    }
}

impl Drop for StoreFile {
    fn drop(&mut self) {
        if !*self.obsolete.get_mut() {
            return;
        }
        for tree in [&self.data_tree, &self.bloom_tree] {
            if let Some(tree) = tree.get() {
                self.forget(&tree.root, tree.at.levels, &tree.kept);
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
    pub fn open(env: Arc<dyn Env>, path: &Path, cache: Arc<FamilyCache>) -> Result<StoreFile> {
        let file = env.open(path)?;
        // Scans read ahead themselves.
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
            cache,
            path: path.to_owned(),
            file,
            file_number: NEXT_FILE_NUMBER.fetch_add(1, Ordering::Relaxed),
            byte_count,
            properties_handle: handle,
            properties,
            adopted: None,
            data_tree: OnceLock::new(),
            bloom_tree: OnceLock::new(),
            known_layout: KnownLayout::default(),
            obsolete: AtomicBool::new(false),
        })
    }

    /// Returns the file with all its cells at this sequence, whatever their keys say: it was
    /// written before the commit that adopts it had its place.
    #[must_use]
    pub fn adopted_at(mut self, sequence: Sequence) -> StoreFile {
        self.properties.min_sequence = sequence;
        self.properties.max_sequence = sequence;
        self.adopted = Some(sequence);
        self
    }

    /// Returns the sequence of all its cells, if their keys do not say it.
    pub fn adopted(&self) -> Option<Sequence> {
        self.adopted
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

    /// Returns whether the file may have a cell of a row, which lies between its first and its
    /// last.
    pub fn may_contain_row(&self, row: &[u8]) -> Result<bool> {
        self.bloom_admits(row, || bloom::row_hash(row))
    }

    /// Returns whether the file may have a cell of a column of such a row. A family marker is not
    /// one: ask [`StoreFile::may_contain_row`] if the file has any.
    pub fn may_contain_column(&self, row: &[u8], qualifier: &[u8]) -> Result<bool> {
        if self.properties.bloom_filter != BloomFilter::RowCol {
            return self.may_contain_row(row);
        }
        self.bloom_admits(row, || bloom::column_hash(bloom::row_hash(row), qualifier))
    }

    fn bloom_admits(&self, row: &[u8], hash: impl FnOnce() -> u64) -> Result<bool> {
        if self.properties.bloom_index.levels == 0 {
            return Ok(true);
        }
        let tree = self.bloom_tree()?;
        let root = tree.root();
        let malformed = |Malformed| self.malformed_index(tree.handle().offset);
        let entry = root.restarts_before_row(row).map_err(malformed)?;
        if entry >= root.restart_count() {
            return Ok(false);
        }
        match tree.kept(entry) {
            // The usual case: not even the place of the filter is asked for.
            Some(filter) if tree.levels() == 1 => Ok(bloom::may_contain(filter.bytes(), hash())),
            _ => match self.filter_below(tree, entry, row)? {
                Some(filter) => Ok(bloom::may_contain(filter.bytes(), hash())),
                None => Ok(false),
            },
        }
    }

    /// Returns the filter for a row, below an entry of the root.
    fn filter_below<'a>(
        &self,
        tree: &'a Tree,
        entry: usize,
        row: &[u8],
    ) -> Result<Option<Below<'a>>> {
        let kind_at = |level: usize| match level == tree.levels() {
            true => BlockKind::Bloom,
            false => BlockKind::Index,
        };
        let malformed = |at: BlockHandle| move |Malformed| self.malformed_index(at.offset);
        let mut at = child(tree.root(), entry).map_err(malformed(tree.handle()))?;
        let mut block = self.below_root(tree, entry, (kind_at(1), at), Caching::Keep)?;
        for level in 2..=tree.levels() {
            let view = RowBlock::of(block.bytes()).map_err(malformed(at))?;
            let entry = view.restarts_before_row(row).map_err(malformed(at))?;
            if entry >= view.restart_count() {
                return Ok(None);
            }
            at = child(view, entry).map_err(malformed(at))?;
            block = Below::Taken(self.block(kind_at(level), at, Caching::Keep)?);
        }
        Ok(Some(block))
    }

    /// Returns the block of an entry of a root, which is no data block.
    pub(super) fn below_root<'a>(
        &self,
        tree: &'a Tree,
        entry: usize,
        (kind, at): (BlockKind, BlockHandle),
        caching: Caching,
    ) -> Result<Below<'a>> {
        if let Some(block) = tree.kept(entry) {
            return Ok(Below::Kept(block));
        }
        let block = self.block(kind, at, caching)?;
        if caching == Caching::Keep
            && let Some(slot) = tree.kept.get(entry)
            && let Some(kept) = self.cache.keep(self.block_key(at), &block)
        {
            // Another reader may have been faster.
            return Ok(Below::Kept(slot.get_or_init(|| kept)));
        }
        Ok(Below::Taken(block))
    }

    /// Returns the tree of data blocks.
    pub(super) fn data_tree(&self) -> Result<&Tree> {
        match self.data_tree.get() {
            Some(tree) => Ok(tree),
            None => self.open_tree(&self.data_tree, (self.properties.data_index, true)),
        }
    }

    /// Returns the tree of filters.
    fn bloom_tree(&self) -> Result<&Tree> {
        match self.bloom_tree.get() {
            Some(tree) => Ok(tree),
            None => self.open_tree(&self.bloom_tree, (self.properties.bloom_index, false)),
        }
    }

    fn open_tree<'a>(
        &self,
        slot: &'a OnceLock<Tree>,
        (at, is_data): (TreeRoot, bool),
    ) -> Result<&'a Tree> {
        let root = self.read(BlockKind::Index, at.handle)?;
        let view = RowBlock::of(root.bytes())
            .map_err(|Malformed| self.malformed_index(at.handle.offset))?;
        let layout = view.layout();
        let kept_count = if is_data && at.levels == 1 { 0 } else { view.restart_count() };
        let kept = (0..kept_count).map(|_| OnceLock::new()).collect();
        Ok(slot.get_or_init(|| Tree { at, root, layout, kept }))
    }

    /// Takes the blocks below an index block out of the cache, as far as it has the way to them.
    fn forget(&self, index: &Block, levels: u8, kept: &[OnceLock<KeptBlock>]) {
        let Ok(view) = RowBlock::of(index.bytes()) else { return };
        for entry in 0..view.restart_count() {
            let Ok(handle) = child(view, entry) else { continue };
            let key = self.block_key(handle);
            if levels > 1 {
                let kept = kept.get(entry).and_then(OnceLock::get).map(|kept| Block::clone(kept));
                if let Some(block) = kept.or_else(|| self.cache.peek(key)) {
                    self.forget(&block, levels - 1, &[]);
                }
            }
            self.cache.remove(key);
        }
    }

    fn block_key(&self, handle: BlockHandle) -> BlockKey {
        BlockKey { file_number: self.file_number, offset: handle.offset }
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

    /// Returns a data block, from the cache, else from what was read ahead, else from the file.
    pub(super) fn data_block(
        &self,
        handle: BlockHandle,
        caching: Caching,
        ahead: &mut ReadAhead,
    ) -> Result<Block> {
        self.block_or_read(BlockKind::Data, handle, caching, || {
            let range = self.checked(handle)?;
            if !ahead.holds(&range) {
                let range = ahead.choose(&range, self.byte_count);
                ahead.bytes.resize((range.end - range.start) as usize, 0);
                ahead.start = range.start;
                let read = self.file.read_at(range.start, &mut ahead.bytes);
                if let Err(error) = read {
                    ahead.bytes.clear();
                    return Err(error);
                }
            }
            let start = (range.start - ahead.start) as usize;
            let framed = &ahead.bytes[start..start + handle.size as usize];
            self.prepared(handle, open_checked(&self.path, BlockKind::Data, handle, framed)?)
        })
    }

    fn block_or_read(
        &self,
        kind: BlockKind,
        handle: BlockHandle,
        caching: Caching,
        read: impl FnOnce() -> Result<Block>,
    ) -> Result<Block> {
        let key = self.block_key(handle);
        match caching {
            Caching::Keep => {
                let enters = || kind != BlockKind::Data || self.cache.takes_data();
                self.cache.block_or_read(key, enters, read)
            }
            Caching::Bypass => self.cache.peek(key).map_or_else(read, Ok),
        }
    }

    /// Returns where the properties are.
    pub(super) fn properties_handle(&self) -> BlockHandle {
        self.properties_handle
    }

    /// Returns a block as it is in the file, frame and all, unchecked.
    pub(super) fn framed(&self, handle: BlockHandle) -> Result<Vec<u8>> {
        self.checked(handle)?;
        let mut framed = vec![0; handle.size as usize];
        self.file.read_at(handle.offset, &mut framed)?;
        Ok(framed)
    }

    fn read(&self, kind: BlockKind, handle: BlockHandle) -> Result<Block> {
        let block = read_block(&*self.file, &self.path, self.byte_count, kind, handle)?;
        if kind == BlockKind::Data { self.prepared(handle, block) } else { Ok(block) }
    }

    fn prepared(&self, handle: BlockHandle, block: Block) -> Result<Block> {
        prepare(block, &self.known_layout)
            .map_err(|Malformed| self.corrupt(handle, "the block is malformed"))
    }

    fn checked(&self, handle: BlockHandle) -> Result<Range<u64>> {
        checked_range(&self.path, self.byte_count, handle)
    }

    pub(super) fn corrupt(&self, handle: BlockHandle, detail: &str) -> Error {
        Error::corrupt(&self.path, handle.offset, detail)
    }

    pub(super) fn malformed_index(&self, offset: u64) -> Error {
        Error::corrupt(&self.path, offset, "the index is malformed")
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

/// Returns where a block is, if that is inside of the file.
fn checked_range(path: &Path, end: u64, handle: BlockHandle) -> Result<Range<u64>> {
    match handle.offset.checked_add(u64::from(handle.size)) {
        Some(block_end) if block_end <= end => Ok(handle.offset..block_end),
        _ => Err(Error::corrupt(path, handle.offset, "the block lies outside of the file")),
    }
}

/// How a cursor keeps blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// Blocks that are read stay in the cache, if the family's may.
    Keep,
    /// Blocks in the cache are used, those that are read do not enter it: for compactions.
    Bypass,
}

/// Bytes that a cursor reads at once when it has read some blocks in a row. A read from the page
/// cache costs most of a microsecond whatever its size.
const AHEAD_BYTES_MAX: u64 = 256 << 10;
/// Bytes read at once when the second block in a row is not in the cache.
const AHEAD_BYTES_MIN: u64 = 64 << 10;

/// Bytes of the file around the block that was read last, on the side the cursor goes to.
pub(super) struct ReadAhead {
    order: RowOrder,
    start: u64,
    bytes: Vec<u8>,
    /// Bytes to read next time.
    next_bytes: u64,
}

impl ReadAhead {
    pub(super) fn new(order: RowOrder, caching: Caching) -> ReadAhead {
        let mut ahead = ReadAhead { order, start: 0, bytes: Vec::new(), next_bytes: 0 };
        ahead.interrupt(caching);
        ahead
    }

    /// The next block is one that was searched for. Who goes past the cache reads all, as a rule.
    pub(super) fn interrupt(&mut self, caching: Caching) {
        self.next_bytes = match caching {
            Caching::Keep => 0,
            Caching::Bypass => AHEAD_BYTES_MAX,
        };
    }

    fn holds(&self, range: &Range<u64>) -> bool {
        range.start >= self.start && range.end <= self.start + self.bytes.len() as u64
    }

    /// Returns what to read to have a block.
    fn choose(&mut self, block: &Range<u64>, file_bytes: u64) -> Range<u64> {
        let wanted = self.next_bytes.max(block.end - block.start);
        self.next_bytes = (wanted * 2).clamp(AHEAD_BYTES_MIN, AHEAD_BYTES_MAX);
        match self.order {
            RowOrder::Forward => block.start..(block.start + wanted).min(file_bytes),
            RowOrder::Reverse => block.end.saturating_sub(wanted)..block.end,
        }
    }
}
