//! The index of a file's blocks: a tree of index blocks, written while the file streams out and
//! read through the cache ([`crate::file::index_cursor`]), so that neither needs memory that grows
//! with the file.
//!
//! An index block is a row block ([`crate::file::row_block`]) with every entry a restart: the key
//! is the last cell key below a child, the value is the child's handle. Leaves point at data blocks
//! or, in the tree of blooms, at bloom blocks. What an open file keeps of it:
//! [`crate::file::tree`].

use crate::file::encoding::{BlockBuilder, Malformed};
use crate::file::format::BlockHandle;
use crate::file::row_block::{RowBlock, RowBlockBuilder};

/// Bytes at which an index block is closed: some hundred children.
const INDEX_BLOCK_BYTES: usize = 16 << 10;
/// Levels that a reader takes: more than any file that could be written has.
pub(super) const LEVELS_MAX: u8 = 12;

/// Where a tree begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TreeRoot {
    /// Levels of index blocks; 0: there is no tree.
    pub(super) levels: u8,
    pub(super) handle: BlockHandle,
}

/// Builds a tree from its leaves up.
#[derive(Default)]
pub(super) struct IndexWriter {
    /// The open block of each level, leaves first.
    levels: Vec<RowBlockBuilder>,
    raw: Vec<u8>,
    last_key: Vec<u8>,
}

impl IndexWriter {
    /// Adds a block whose last key is `key`. `write` is given each index block that is full.
    pub(super) fn push(
        &mut self,
        key: &[u8],
        handle: BlockHandle,
        mut write: impl FnMut(&[u8]) -> BlockHandle,
    ) {
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        let mut child = handle;
        for level in 0.. {
            if level == self.levels.len() {
                self.levels.push(RowBlockBuilder::new(1));
            }
            let builder = &mut self.levels[level];
            builder.add(key, &child.encode());
            if builder.byte_count() < INDEX_BLOCK_BYTES {
                return;
            }
            self.raw.clear();
            builder.finish(&mut self.raw);
            child = write(&self.raw);
        }
    }

    /// Writes the blocks that are open and returns the root.
    pub(super) fn finish(&mut self, mut write: impl FnMut(&[u8]) -> BlockHandle) -> TreeRoot {
        for level in 0..self.levels.len() {
            if self.levels[level].is_empty() {
                continue;
            }
            self.raw.clear();
            self.levels[level].finish(&mut self.raw);
            let handle = write(&self.raw);
            match self.levels.get_mut(level + 1) {
                Some(above) => above.add(&self.last_key, &handle.encode()),
                None => return TreeRoot { levels: level as u8 + 1, handle },
            }
        }
        TreeRoot::default()
    }
}

/// Returns the handle that an entry of an index block holds.
pub(super) fn child(block: RowBlock<'_>, entry: usize) -> Result<BlockHandle, Malformed> {
    BlockHandle::decode(block.restart(entry)?.1).ok_or(Malformed)
}
