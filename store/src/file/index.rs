//! Index of a file's blocks: a tree of index blocks, written while the file is written and read
//! through the cache ([`crate::file::index_cursor`]), so that neither needs memory proportional
//! to the file.
//!
//! An index block is a row block ([`crate::file::row_block`]) with every entry a restart: the key
//! is the last cell key below a child, the value is the child's handle. Leaves point at data
//! blocks or, in the filter tree, at Bloom blocks. The part that an open file holds in memory is
//! in [`crate::file::tree`].

use crate::cell::compare_keys;
use crate::file::encoding::{BlockBuilder, Malformed};
use crate::file::format::BlockHandle;
use crate::file::row_block::{RowBlock, RowBlockBuilder};

/// Size at which an index block is closed: some hundred children.
const INDEX_BLOCK_BYTES: usize = 16 << 10;
/// Maximal number of levels that a reader accepts: more than any writable file has.
pub(super) const LEVELS_MAX: u8 = 12;

/// Root of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TreeRoot {
    /// Number of levels of index blocks; 0: there is no tree.
    pub(super) levels: u8,
    pub(super) handle: BlockHandle,
}

/// Builder of a tree, bottom up.
#[derive(Default)]
pub(super) struct IndexWriter {
    /// The open block of each level, leaves first.
    levels: Vec<RowBlockBuilder>,
    raw: Vec<u8>,
    last_key: Vec<u8>,
}

impl IndexWriter {
    /// Adds a block whose last key is `key`. `write` is called with each full index block.
    pub(super) fn push(
        &mut self,
        key: &[u8],
        handle: BlockHandle,
        mut write: impl FnMut(&[u8]) -> BlockHandle,
    ) {
        assert!(
            self.last_key.is_empty() || compare_keys(&self.last_key, key).is_lt(),
            "the blocks of a tree ascend"
        );
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

    /// Writes the open blocks and returns the root.
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
                None => {
                    assert!(level < usize::from(LEVELS_MAX), "a reader accepts the levels");
                    return TreeRoot { levels: level as u8 + 1, handle };
                }
            }
        }
        TreeRoot::default()
    }
}

/// Returns the handle in an entry of an index block.
pub(super) fn child(block: RowBlock<'_>, entry: usize) -> Result<BlockHandle, Malformed> {
    BlockHandle::decode(block.restart(entry)?.1).ok_or(Malformed)
}
