//! Cursor over the tree of index blocks ([`crate::file::index`]): descends to the data block that
//! may hold a key, and moves between neighbouring data blocks.

use smallvec::SmallVec;

use crate::cache::Block;
use crate::error::Result;
use crate::file::encoding::Malformed;
use crate::file::format::BlockHandle;
use crate::file::index::child;
use crate::file::reader::{Caching, StoreFile};
use crate::file::row_block::RowBlock;
use crate::file::tree::{ChildBlock, HeldBlock, IndexBlock};

/// Cursor on a data block of a file, in index order, or on none.
#[derive(Default)]
pub(super) struct IndexCursor {
    /// The blocks from the root down to a leaf; empty if the cursor is on none.
    path: SmallVec<[IndexPosition; 3]>,
}

/// Position in an index block.
struct IndexPosition {
    /// The block and its offset; `None` if the file holds it, or it is the root: reference
    /// counting such blocks on every read would make the processors contend for the counter.
    taken: Option<(Block, u64)>,
    entry: usize,
}

impl IndexCursor {
    /// Moves to the first block whose last key is not less than `target`.
    pub(super) fn seek(
        &mut self,
        file: &StoreFile,
        target: &[u8],
        caching: Caching,
    ) -> Result<Option<BlockHandle>> {
        self.start();
        self.descend(file, caching, |block| block.restarts_before(target))
    }

    /// Moves to the first block that begins at or after an offset, or else to the last.
    pub(super) fn seek_offset(
        &mut self,
        file: &StoreFile,
        offset: u64,
        caching: Caching,
    ) -> Result<Option<BlockHandle>> {
        self.start();
        // An index block is written behind its children.
        self.descend(file, caching, |block| {
            let last = block.restart_count() - 1;
            let mut entries = 0..last;
            while !entries.is_empty() {
                let middle = usize::midpoint(entries.start, entries.end);
                match child(block, middle)?.offset < offset {
                    true => entries.start = middle + 1,
                    false => entries.end = middle,
                }
            }
            Ok(entries.start)
        })
    }

    /// Moves to the last block.
    pub(super) fn last(
        &mut self,
        file: &StoreFile,
        caching: Caching,
    ) -> Result<Option<BlockHandle>> {
        self.start();
        self.descend(file, caching, |block| Ok(block.restart_count() - 1))
    }

    /// Moves to the next block.
    pub(super) fn next(
        &mut self,
        file: &StoreFile,
        caching: Caching,
    ) -> Result<Option<BlockHandle>> {
        if !self.ascend(file, |entry, count| (entry + 1 < count).then_some(entry + 1))? {
            return Ok(None);
        }
        self.descend(file, caching, |_| Ok(0))
    }

    /// Moves to the previous block.
    pub(super) fn previous(
        &mut self,
        file: &StoreFile,
        caching: Caching,
    ) -> Result<Option<BlockHandle>> {
        if !self.ascend(file, |entry, _| entry.checked_sub(1))? {
            return Ok(None);
        }
        self.descend(file, caching, |block| Ok(block.restart_count() - 1))
    }

    /// Returns the last key of the current block.
    pub(super) fn key<'a>(&'a self, file: &'a StoreFile) -> Option<&'a [u8]> {
        self.key_at(file, Some)
    }

    /// Returns the last key of the previous block, if it is in the same index block.
    pub(super) fn previous_key<'a>(&'a self, file: &'a StoreFile) -> Option<&'a [u8]> {
        self.key_at(file, |entry| entry.checked_sub(1))
    }

    fn key_at<'a>(
        &'a self,
        file: &'a StoreFile,
        choose: impl FnOnce(usize) -> Option<usize>,
    ) -> Option<&'a [u8]> {
        let entry = choose(self.path.last()?.entry)?;
        let index = self.index(file, self.path.len()).ok()?;
        index.view.restart(entry).ok().map(|(key, _)| key)
    }

    /// Moves to the root, on no entry yet.
    fn start(&mut self) {
        self.path.clear();
        self.path.push(IndexPosition { taken: None, entry: usize::MAX });
    }

    /// Ascends to the first block that has an entry to step to, and steps there.
    fn ascend(
        &mut self,
        file: &StoreFile,
        step: impl Fn(usize, usize) -> Option<usize>,
    ) -> Result<bool> {
        while let Some(last) = self.path.last() {
            let index = self.index(file, self.path.len())?;
            let next = step(last.entry, index.view.restart_count());
            match (next, self.path.last_mut()) {
                (Some(entry), Some(last)) => {
                    last.entry = entry;
                    return Ok(true);
                }
                _ => self.path.pop(),
            };
        }
        Ok(false)
    }

    /// Descends to a leaf, through the current entry and then through those chosen.
    fn descend(
        &mut self,
        file: &StoreFile,
        caching: Caching,
        choose: impl Fn(RowBlock<'_>) -> std::result::Result<usize, Malformed>,
    ) -> Result<Option<BlockHandle>> {
        let tree = file.data_tree()?;
        while let Some(last) = self.path.last() {
            let level = self.path.len();
            let index = self.index(file, level)?;
            let malformed = |Malformed| file.malformed_index(index.offset);
            let entry = match last.entry {
                usize::MAX => choose(index.view).map_err(malformed)?,
                entry => entry,
            };
            if entry >= index.view.restart_count() {
                self.path.clear();
                break;
            }
            if level == tree.levels() {
                let data = child(index.view, entry).map_err(malformed)?;
                self.path[level - 1].entry = entry;
                return Ok(Some(data));
            }
            let taken = match file.below(tree, (index, level), entry, caching)? {
                ChildBlock::Kept(_) => None,
                ChildBlock::Taken(block, offset) => Some((block, offset)),
            };
            self.path[level - 1].entry = entry;
            self.path.push(IndexPosition { taken, entry: usize::MAX });
        }
        Ok(None)
    }

    /// Returns the index block of a level of the path; the root's level is 1.
    fn index<'a>(&'a self, file: &'a StoreFile, level: usize) -> Result<IndexBlock<'a>> {
        let mut index = file.data_tree()?.root();
        for (above, standing) in self.path[..level].iter().zip(&self.path[1..level]) {
            index = match &standing.taken {
                Some((block, offset)) => IndexBlock::of(block, *offset).ok(),
                None => index.kept(above.entry).and_then(HeldBlock::index),
            }
            .ok_or_else(|| file.malformed_index(index.offset))?;
        }
        Ok(index)
    }
}
