//! In-memory part of a file's trees of index blocks ([`crate::file::index`]): the roots, and
//! every block below them except data blocks, while the cache has room.
//!
//! # Invariants
//!
//! 1. A [`Node`] that holds blocks has a slot for each entry of its index block, filled at most
//!    once: readers access the slots without a lock. A debug assertion checks their number.

use std::sync::OnceLock;

use crate::cache::{Block, PinnedBlock};
use crate::file::encoding::Malformed;
use crate::file::format::BlockHandle;
use crate::file::index::TreeRoot;
use crate::file::row_block::{RowBlock, RowBlockLayout};

/// A tree of index blocks: over data blocks, or over filters.
pub(super) struct BlockTree {
    at: TreeRoot,
    root: Block,
    node: Node,
    leaves: Leaves,
}

/// Children of the index blocks of the last level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaves {
    /// Data blocks, which the cache owns.
    Data,
    /// Filters, which the file holds.
    Filters,
}

/// Decoded layout of an index block, and its children.
struct Node {
    offset: u64,
    layout: RowBlockLayout,
    /// One slot for each entry; none if the children are data blocks.
    below: Box<[OnceLock<HeldBlock>]>,
}

/// A block that the file holds.
pub(super) struct HeldBlock {
    block: PinnedBlock,
    /// `None` for a filter.
    node: Option<Node>,
}

/// An index block and its children that the file holds.
#[derive(Clone, Copy)]
pub(super) struct IndexBlock<'a> {
    pub(super) view: RowBlock<'a>,
    pub(super) offset: u64,
    below: &'a [OnceLock<HeldBlock>],
}

/// A child of an index block: held by the file, or from the cache.
pub(super) enum ChildBlock<'a> {
    Kept(&'a HeldBlock),
    /// With its offset.
    Taken(Block, u64),
}

impl BlockTree {
    /// Returns the tree of a root.
    pub(super) fn new(at: TreeRoot, root: Block, leaves: Leaves) -> Result<BlockTree, Malformed> {
        let keeps = at.levels > 1 || leaves == Leaves::Filters;
        let node = Node::of(&root, at.handle.offset, keeps)?;
        Ok(BlockTree { at, root, node, leaves })
    }

    /// Returns the root.
    pub(super) fn root(&self) -> IndexBlock<'_> {
        self.node.index(&self.root)
    }

    /// Returns the number of levels of index blocks.
    pub(super) fn levels(&self) -> usize {
        usize::from(self.at.levels)
    }

    /// Wraps a block below an index block of a level, for the file to hold; the root's level is
    /// 1.
    pub(super) fn kept(
        &self,
        level: usize,
        at: BlockHandle,
        block: PinnedBlock,
    ) -> Result<HeldBlock, Malformed> {
        debug_assert!((1..=self.levels()).contains(&level), "level {level} of the tree");
        let node = match self.levels() - level {
            0 => None,
            levels_below => {
                let keeps = levels_below > 1 || self.leaves == Leaves::Filters;
                Some(Node::of(&block, at.offset, keeps)?)
            }
        };
        Ok(HeldBlock { block, node })
    }
}

impl Node {
    fn of(block: &Block, offset: u64, keeps: bool) -> Result<Node, Malformed> {
        let view = RowBlock::of(block.bytes())?;
        let count = if keeps { view.restart_count() } else { 0 };
        let below = (0..count).map(|_| OnceLock::new()).collect();
        Ok(Node { offset, layout: view.layout(), below })
    }

    fn index<'a>(&'a self, block: &'a Block) -> IndexBlock<'a> {
        let view = RowBlock::new(block.bytes(), self.layout);
        debug_assert!(
            self.below.is_empty() || self.below.len() == view.restart_count(),
            "a slot for each entry"
        );
        IndexBlock { view, offset: self.offset, below: &self.below }
    }
}

impl HeldBlock {
    /// Returns the block.
    pub(super) fn block(&self) -> &Block {
        &self.block
    }

    /// Returns the block as an index block, unless it is a filter.
    pub(super) fn index(&self) -> Option<IndexBlock<'_>> {
        Some(self.node.as_ref()?.index(&self.block))
    }
}

impl<'a> IndexBlock<'a> {
    /// Returns an index block whose children the file does not hold.
    pub(super) fn of(block: &'a Block, offset: u64) -> Result<IndexBlock<'a>, Malformed> {
        Ok(IndexBlock { view: RowBlock::of(block.bytes())?, offset, below: &[] })
    }

    /// Returns the slot for the block of an entry, if the file may hold it.
    pub(super) fn slot(&self, entry: usize) -> Option<&'a OnceLock<HeldBlock>> {
        self.below.get(entry)
    }

    /// Returns the block of an entry, if the file holds it.
    pub(super) fn kept(&self, entry: usize) -> Option<&'a HeldBlock> {
        self.slot(entry)?.get()
    }
}
