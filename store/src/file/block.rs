//! Data blocks: prefix-compressed cells with restart points.
//!
//! An entry is `shared, unshared, value length` (varints), then the unshared end of the key, then
//! the value. Every [`RESTART_INTERVAL`]th entry shares nothing, and its offset is listed at the
//! end of the block, so that a search halves the restarts and then reads at most that many entries.

use std::sync::Arc;

use crate::cache::Block;
use crate::cell::{compare_keys, is_key};
use crate::file::format::{push_varint, read_varint, u32_at};

/// Entries from one restart point to the next.
const RESTART_INTERVAL: usize = 16;

/// Builds data blocks, one after the other, in one buffer.
#[derive(Default)]
pub(super) struct BlockBuilder {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    entry_count: usize,
}

impl BlockBuilder {
    /// Adds a cell. `previous` is the key of the cell before it, of this block or an earlier one.
    pub(super) fn add(&mut self, previous: &[u8], key: &[u8], value: &[u8]) {
        let shared = if self.entry_count.is_multiple_of(RESTART_INTERVAL) {
            self.restarts.push(self.bytes.len() as u32);
            0
        } else {
            previous.iter().zip(key).take_while(|(a, b)| a == b).count()
        };
        push_varint(&mut self.bytes, shared as u32);
        push_varint(&mut self.bytes, (key.len() - shared) as u32);
        push_varint(&mut self.bytes, value.len() as u32);
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(value);
        self.entry_count += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entry_count == 0
    }

    pub(super) fn byte_count(&self) -> usize {
        self.bytes.len() + self.restarts.len() * 4 + 4
    }

    /// Returns the finished block; [`BlockBuilder::clear`] begins the next.
    pub(super) fn finish(&mut self) -> &[u8] {
        for restart in &self.restarts {
            self.bytes.extend_from_slice(&restart.to_le_bytes());
        }
        self.bytes.extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        &self.bytes
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.restarts.clear();
        self.entry_count = 0;
    }
}

/// The block is not what its writer makes, though its checksum is right.
#[derive(Debug)]
pub(super) struct Malformed;

/// Stands on a cell of a data block, or at its end.
#[derive(Default)]
pub(super) struct BlockCursor {
    block: Option<Arc<Block>>,
    /// Where entries end and restarts begin.
    entries_end: usize,
    restart_count: usize,
    /// Offset of the entry after the one it stands on.
    next: usize,
    key: Vec<u8>,
    value: (usize, usize),
    valid: bool,
}

impl BlockCursor {
    /// Takes a block; stands at no entry until moved.
    pub(super) fn set_block(&mut self, block: Arc<Block>) -> Result<(), Malformed> {
        let bytes = block.bytes();
        let count_at = bytes.len().checked_sub(4).ok_or(Malformed)?;
        let restart_count = u32_at(bytes, count_at).ok_or(Malformed)? as usize;
        let entries_end = restart_count
            .checked_mul(4)
            .and_then(|restart_bytes| count_at.checked_sub(restart_bytes))
            .ok_or(Malformed)?;
        self.restart_count = restart_count;
        self.entries_end = entries_end;
        self.block = Some(block);
        self.next = 0;
        self.valid = false;
        self.key.clear();
        Ok(())
    }

    /// Gives up the block.
    pub(super) fn clear(&mut self) {
        self.block = None;
        self.valid = false;
    }

    pub(super) fn key(&self) -> Option<&[u8]> {
        self.valid.then_some(&self.key)
    }

    pub(super) fn value(&self) -> &[u8] {
        match &self.block {
            Some(block) if self.valid => &block.bytes()[self.value.0..self.value.1],
            _ => &[],
        }
    }

    /// Moves to the next cell; before the first move, to the first.
    pub(super) fn advance(&mut self) -> Result<(), Malformed> {
        self.valid = false;
        let Some(block) = &self.block else { return Ok(()) };
        if self.next >= self.entries_end {
            return Ok(());
        }
        let bytes = &block.bytes()[..self.entries_end];
        let mut at = self.next;
        let shared = read_varint(bytes, &mut at).ok_or(Malformed)? as usize;
        let unshared = read_varint(bytes, &mut at).ok_or(Malformed)? as usize;
        let value_length = read_varint(bytes, &mut at).ok_or(Malformed)? as usize;
        let suffix = bytes.get(at..at + unshared).ok_or(Malformed)?;
        let value_at = at + unshared;
        if shared > self.key.len() || bytes.len() - value_at < value_length {
            return Err(Malformed);
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(suffix);
        if !is_key(&self.key) {
            return Err(Malformed);
        }
        self.value = (value_at, value_at + value_length);
        self.next = value_at + value_length;
        self.valid = true;
        Ok(())
    }

    /// Moves to the first cell whose key is not less than `target`; at the end if there is none.
    pub(super) fn seek(&mut self, target: &[u8]) -> Result<(), Malformed> {
        self.restart_before(target)?;
        loop {
            self.advance()?;
            if self.key().is_none_or(|key| compare_keys(key, target).is_ge()) {
                return Ok(());
            }
        }
    }

    /// Returns the last key less than `target`, if the block has one. Stands anywhere then.
    pub(super) fn last_before(
        &mut self,
        target: &[u8],
        found: &mut Vec<u8>,
    ) -> Result<bool, Malformed> {
        self.restart_before(target)?;
        let mut any = false;
        loop {
            self.advance()?;
            match self.key() {
                Some(key) if compare_keys(key, target).is_lt() => {
                    found.clear();
                    found.extend_from_slice(key);
                    any = true;
                }
                _ => return Ok(any),
            }
        }
    }

    /// Prepares to read from the last restart point whose key is less than `target`.
    fn restart_before(&mut self, target: &[u8]) -> Result<(), Malformed> {
        let (mut low, mut high) = (0, self.restart_count);
        while low < high {
            let middle = usize::midpoint(low, high);
            if compare_keys(self.restart_key(middle)?, target).is_lt() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.next = match low.checked_sub(1) {
            Some(restart) => self.restart_offset(restart)?,
            None => 0,
        };
        self.valid = false;
        self.key.clear();
        Ok(())
    }

    fn restart_offset(&self, restart: usize) -> Result<usize, Malformed> {
        let block = self.block.as_ref().ok_or(Malformed)?;
        let offset = u32_at(block.bytes(), self.entries_end + restart * 4).ok_or(Malformed)?;
        Ok(offset as usize)
    }

    fn restart_key(&self, restart: usize) -> Result<&[u8], Malformed> {
        let mut at = self.restart_offset(restart)?;
        let block = self.block.as_ref().ok_or(Malformed)?;
        let bytes = &block.bytes()[..self.entries_end];
        let shared = read_varint(bytes, &mut at).ok_or(Malformed)?;
        let unshared = read_varint(bytes, &mut at).ok_or(Malformed)? as usize;
        read_varint(bytes, &mut at).ok_or(Malformed)?;
        let key = bytes.get(at..at + unshared).ok_or(Malformed)?;
        if shared == 0 && is_key(key) { Ok(key) } else { Err(Malformed) }
    }
}
