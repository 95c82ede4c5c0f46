//! The index of a file's blocks: the last key of each, and where it is.
//!
//! Raw bytes: for each block `offset (8) | size (4) | key length (4) | key`. The data index holds
//! encoded cell keys, the bloom index bare rows.

use crate::file::format::{BlockHandle, u32_at};

/// The blocks of a file in order.
#[derive(Debug, Default)]
pub(super) struct Index {
    keys: Vec<u8>,
    entries: Vec<IndexEntry>,
}

#[derive(Debug)]
struct IndexEntry {
    handle: BlockHandle,
    key_end: usize,
}

impl Index {
    pub(super) fn push(&mut self, key: &[u8], handle: BlockHandle) {
        self.keys.extend_from_slice(key);
        self.entries.push(IndexEntry { handle, key_end: self.keys.len() });
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn handle(&self, index: usize) -> Option<BlockHandle> {
        self.entries.get(index).map(|entry| entry.handle)
    }

    /// Returns the last key of a block.
    ///
    /// # Panics
    ///
    /// If there is no such block.
    pub(super) fn key(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.entries[before].key_end);
        &self.keys[start..self.entries[index].key_end]
    }

    /// Returns the first block whose last key is not `before` the target.
    pub(super) fn first_not(&self, before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.entries.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if before(self.key(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for (index, entry) in self.entries.iter().enumerate() {
            let key = self.key(index);
            out.extend_from_slice(&entry.handle.offset.to_le_bytes());
            out.extend_from_slice(&entry.handle.size.to_le_bytes());
            out.extend_from_slice(&(key.len() as u32).to_le_bytes());
            out.extend_from_slice(key);
        }
    }

    /// Returns the index of its raw bytes, or `None` if they are malformed.
    pub(super) fn decode(mut bytes: &[u8], is_key: impl Fn(&[u8]) -> bool) -> Option<Index> {
        let mut index = Index::default();
        while !bytes.is_empty() {
            let (head, rest) = bytes.split_at_checked(16)?;
            let offset = u64::from_le_bytes(head[..8].try_into().ok()?);
            let (key, rest) = rest.split_at_checked(u32_at(head, 12)? as usize)?;
            if !is_key(key) {
                return None;
            }
            index.push(key, BlockHandle { offset, size: u32_at(head, 8)? });
            bytes = rest;
        }
        Some(index)
    }
}
