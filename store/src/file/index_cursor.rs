//! The way through the tree of index blocks ([`crate::file::index`]): down to the data block that
//! may hold a key, and from one data block to its neighbours.

use smallvec::SmallVec;

use crate::cache::Block;
use crate::error::Result;
use crate::file::encoding::Malformed;
use crate::file::format::{BlockHandle, BlockKind};
use crate::file::index::child;
use crate::file::reader::{Below, Caching, StoreFile};
use crate::file::row_block::RowBlock;

/// Stands on a data block of a file, as the index lists them, or on none.
#[derive(Default)]
pub(super) struct IndexCursor {
    /// The blocks from the root down to a leaf; empty if it stands on none.
    path: SmallVec<[Standing; 3]>,
}

struct Standing {
    block: Held,
    offset: u64,
    entry: usize,
}

/// Who holds an index block. To count the owners of those that the file keeps, for every read,
/// would make the processors fight for the count.
enum Held {
    /// The root of the tree, held by the file.
    Root,
    /// The block of an entry of the root, which the file keeps.
    Kept(usize),
    Taken(Block),
}

impl IndexCursor {
    /// Moves to the first block whose last key is not less than `target`.
    pub(super) fn seek(
        &mut self,
        file: &StoreFile,
        target: &[u8],
        caching: Caching,
    ) -> Result<Option<BlockHandle>> {
        self.start(file)?;
        self.descend(file, caching, |block| block.restarts_before(target))
    }

    /// Moves to the last block.
    pub(super) fn last(
        &mut self,
        file: &StoreFile,
        caching: Caching,
    ) -> Result<Option<BlockHandle>> {
        self.start(file)?;
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

    /// Moves to the block before.
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

    /// Returns the last key of the block it stands on.
    pub(super) fn key<'a>(&'a self, file: &'a StoreFile) -> Option<&'a [u8]> {
        let standing = self.path.last()?;
        let view = standing.view(file).ok()?;
        view.restart(standing.entry).ok().map(|(key, _)| key)
    }

    /// Returns the last key of the block before the one it stands on, if that is at hand.
    pub(super) fn previous_key<'a>(&'a self, file: &'a StoreFile) -> Option<&'a [u8]> {
        let standing = self.path.last()?;
        let view = standing.view(file).ok()?;
        view.restart(standing.entry.checked_sub(1)?).ok().map(|(key, _)| key)
    }

    fn start(&mut self, file: &StoreFile) -> Result<()> {
        let offset = file.data_tree()?.handle().offset;
        self.path.clear();
        self.path.push(Standing { block: Held::Root, offset, entry: usize::MAX });
        Ok(())
    }

    /// Goes up to the first block that has an entry to step to, and steps there.
    fn ascend(
        &mut self,
        file: &StoreFile,
        step: impl Fn(usize, usize) -> Option<usize>,
    ) -> Result<bool> {
        while let Some(standing) = self.path.last_mut() {
            match step(standing.entry, standing.view(file)?.restart_count()) {
                Some(entry) => {
                    standing.entry = entry;
                    return Ok(true);
                }
                None => self.path.pop(),
            };
        }
        Ok(false)
    }

    /// Goes down to a leaf, through the entry it stands on and then through those chosen.
    fn descend(
        &mut self,
        file: &StoreFile,
        caching: Caching,
        choose: impl Fn(RowBlock<'_>) -> std::result::Result<usize, Malformed>,
    ) -> Result<Option<BlockHandle>> {
        loop {
            let depth = self.path.len();
            let Some(standing) = self.path.last_mut() else { return Ok(None) };
            let offset = standing.offset;
            let malformed = |Malformed| file.malformed_index(offset);
            let view = standing.view(file)?;
            let entry = match standing.entry {
                usize::MAX => choose(view).map_err(malformed)?,
                entry => entry,
            };
            if entry >= view.restart_count() {
                self.path.clear();
                return Ok(None);
            }
            let handle = child(view, entry).map_err(malformed)?;
            standing.entry = entry;
            let tree = file.data_tree()?;
            if depth >= tree.levels() {
                return Ok(Some(handle));
            }
            let block = match depth {
                1 => match file.below_root(tree, entry, (BlockKind::Index, handle), caching)? {
                    Below::Kept(_) => Held::Kept(entry),
                    Below::Taken(block) => Held::Taken(block),
                },
                _ => Held::Taken(file.block(BlockKind::Index, handle, caching)?),
            };
            self.path.push(Standing { block, offset: handle.offset, entry: usize::MAX });
        }
    }
}

impl Standing {
    fn view<'a>(&'a self, file: &'a StoreFile) -> Result<RowBlock<'a>> {
        let malformed = || file.malformed_index(self.offset);
        let tree = file.data_tree()?;
        let block = match &self.block {
            Held::Root => return Ok(tree.root()),
            Held::Kept(entry) => tree.kept(*entry).ok_or_else(malformed)?,
            Held::Taken(block) => block,
        };
        RowBlock::of(block.bytes()).map_err(|Malformed| malformed())
    }
}
