//! Row blocks: prefix-compressed cells, one after the other, with restart points.
//!
//! An entry is `shared, unshared, value length` (varints), then the unshared end of the key, then
//! the value. Every [`RESTART_INTERVAL`]th entry shares nothing, and its offset is listed at the
//! end of the block, so that a search halves the restarts and then reads at most that many entries.

use std::sync::Arc;

use crate::cache::Block;
use crate::cell::{compare_keys, is_key};
use crate::file::encoding::{BlockBuilder, BlockCursor, Malformed};
use crate::file::format::{push_varint, read_varint, u32_at};

/// Entries from one restart point to the next.
const RESTART_INTERVAL: usize = 16;

/// Builds row blocks, one after the other, in one buffer.
#[derive(Default)]
pub(super) struct RowBlockBuilder {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    entry_count: usize,
    previous: Vec<u8>,
}

impl BlockBuilder for RowBlockBuilder {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        let shared = if self.entry_count.is_multiple_of(RESTART_INTERVAL) {
            self.restarts.push(self.bytes.len() as u32);
            0
        } else {
            self.previous.iter().zip(key).take_while(|(a, b)| a == b).count()
        };
        push_varint(&mut self.bytes, shared as u32);
        push_varint(&mut self.bytes, (key.len() - shared) as u32);
        push_varint(&mut self.bytes, value.len() as u32);
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(value);
        self.entry_count += 1;
        self.previous.clear();
        self.previous.extend_from_slice(key);
    }

    fn is_empty(&self) -> bool {
        self.entry_count == 0
    }

    fn byte_count(&self) -> usize {
        self.bytes.len() + self.restarts.len() * 4 + 4
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes);
        for restart in &self.restarts {
            out.extend_from_slice(&restart.to_le_bytes());
        }
        out.extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        self.bytes.clear();
        self.restarts.clear();
        self.entry_count = 0;
    }
}

/// Stands on a cell of a row block, or on none.
#[derive(Default)]
pub(super) struct RowBlockCursor {
    block: Option<Arc<Block>>,
    /// Where entries end and restarts begin.
    entries_end: usize,
    restart_count: usize,
    /// Offset of the entry that it stands on.
    at: usize,
    /// Offset of the entry after that.
    next: usize,
    key: Vec<u8>,
    value: (usize, usize),
    valid: bool,
}

impl BlockCursor for RowBlockCursor {
    fn open(&mut self, block: Arc<Block>) -> Result<(), Malformed> {
        self.close();
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
        Ok(())
    }

    fn close(&mut self) {
        self.block = None;
        self.valid = false;
    }

    fn key(&self) -> Option<&[u8]> {
        self.valid.then_some(&self.key)
    }

    fn value(&self) -> &[u8] {
        match &self.block {
            Some(block) if self.valid => &block.bytes()[self.value.0..self.value.1],
            _ => &[],
        }
    }

    fn first(&mut self) -> Result<(), Malformed> {
        self.restart_at(0);
        self.read_next()
    }

    fn last(&mut self) -> Result<(), Malformed> {
        let last = self.restart_count.checked_sub(1).ok_or(Malformed)?;
        self.restart_at(self.restart_offset(last)?);
        self.read_until(self.entries_end)
    }

    fn advance(&mut self) -> Result<(), Malformed> {
        if self.valid { self.read_next() } else { Ok(()) }
    }

    fn retreat(&mut self) -> Result<(), Malformed> {
        if !self.valid {
            return Ok(());
        }
        let end = self.at;
        let (mut low, mut high) = (0, self.restart_count);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.restart_offset(middle)? < end {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.valid = false;
        let Some(restart) = low.checked_sub(1) else { return Ok(()) };
        self.restart_at(self.restart_offset(restart)?);
        self.read_until(end)
    }

    fn seek(&mut self, target: &[u8]) -> Result<(), Malformed> {
        self.restart_before(target)?;
        loop {
            self.read_next()?;
            if self.key().is_none_or(|key| compare_keys(key, target).is_ge()) {
                return Ok(());
            }
        }
    }

    fn seek_before(&mut self, target: &[u8]) -> Result<(), Malformed> {
        self.seek(target)?;
        if self.valid { self.retreat() } else { self.last() }
    }
}

impl RowBlockCursor {
    /// Moves to the entry at `next`.
    fn read_next(&mut self) -> Result<(), Malformed> {
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
        self.at = self.next;
        self.next = value_at + value_length;
        self.valid = true;
        Ok(())
    }

    /// Reads on to the entry that ends at `end`.
    fn read_until(&mut self, end: usize) -> Result<(), Malformed> {
        loop {
            self.read_next()?;
            if !self.valid || self.next >= end {
                return Ok(());
            }
        }
    }

    /// Prepares to read from the entry at an offset, which shares nothing.
    fn restart_at(&mut self, offset: usize) {
        self.next = offset;
        self.valid = false;
        self.key.clear();
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
        let offset = match low.checked_sub(1) {
            Some(restart) => self.restart_offset(restart)?,
            None => 0,
        };
        self.restart_at(offset);
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
