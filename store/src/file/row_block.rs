//! Row blocks: prefix-compressed cells, concatenated, with restart points.
//!
//! ```text
//!   restart count | shared row bytes | restarts: head, offset | entries
//! ```
//!
//! An entry is `shared, unshared, value length` (varints), then the unshared end of the key, then
//! the value. A restart entry shares nothing. The *head* of a restart is the eight bytes of its
//! row behind the common prefix of all rows of the block. Heads are adjacent, each with the
//! offset of its entry, so that a search reads a few cache lines of them, then the entries of one
//! restart.
//!
//! Index blocks ([`crate::file::index`]) have the same layout with every entry a restart.
//!
//! # Invariants
//!
//! 1. `valid`: `key` and `value` are those of the entry at `at`, and `next` is the offset of the
//!    entry after it.
//! 2. `slots`, unless empty, are of the current block.
//!
//! `RowBlockCursor::check` asserts in debug builds that `at`, `value` and `next` are an entry of
//! the current block, and that `key` is a key.

use std::cmp::Ordering;
use std::hint::select_unpredictable;
use std::ops::Range;

use crate::cache::Block;
use crate::cell::{KeyParts, compare_keys, is_key, row_of};
use crate::codec::{Input, push_varint};
use crate::file::encoding::{BlockBuilder, BlockCursor, BlockError, Malformed};
use crate::file::format::u32_at;
use crate::file::row_slots::RowSlots;

/// Maximal number of entries between restart points in data blocks.
pub(super) const RESTART_ENTRIES: usize = 16;
/// Bytes of entries after which the next entry is a restart: eight cache lines to search.
const RESTART_BYTES: usize = 512;
/// Maximal length of the common prefix of the rows of a block: it is stored in one byte.
const PREFIX_BYTES_MAX: usize = 255;
/// Restart count and length of the prefix.
const HEADER_BYTES: usize = 4 + 1;
/// Bytes of a restart: head and offset.
const RESTART_COST: usize = 8 + 4;

/// Builder of row blocks, reusing one buffer.
pub(super) struct RowBlockBuilder {
    restart_entries: usize,
    entries: Vec<u8>,
    restarts: Vec<Restart>,
    /// Entries since the last restart.
    run: usize,
    previous: Vec<u8>,
}

struct Restart {
    offset: u32,
    key_at: u32,
    row_length: u16,
}

impl Default for RowBlockBuilder {
    fn default() -> RowBlockBuilder {
        RowBlockBuilder::new(RESTART_ENTRIES)
    }
}

impl RowBlockBuilder {
    /// Returns a builder that begins a restart after at most `restart_entries` entries.
    pub(super) fn new(restart_entries: usize) -> RowBlockBuilder {
        RowBlockBuilder {
            restart_entries,
            entries: Vec::new(),
            restarts: Vec::new(),
            run: 0,
            previous: Vec::new(),
        }
    }

    fn wants_restart(&self) -> bool {
        self.restarts.last().is_none_or(|restart| {
            self.run >= self.restart_entries
                || self.entries.len() - restart.offset as usize >= RESTART_BYTES
        })
    }
}

impl BlockBuilder for RowBlockBuilder {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        debug_assert!(
            self.is_empty() || compare_keys(&self.previous, key).is_lt(),
            "the keys of a block ascend"
        );
        let offset = self.entries.len() as u32;
        let is_restart = self.wants_restart();
        let shared = if is_restart { 0 } else { shared_bytes(&self.previous, key) };
        push_varint(&mut self.entries, shared as u64);
        push_varint(&mut self.entries, (key.len() - shared) as u64);
        push_varint(&mut self.entries, value.len() as u64);
        if is_restart {
            let (key_at, row_length) = (self.entries.len() as u32, row_of(key).len() as u16);
            self.restarts.push(Restart { offset, key_at, row_length });
            self.run = 0;
        }
        self.entries.extend_from_slice(&key[shared..]);
        self.entries.extend_from_slice(value);
        self.run += 1;
        self.previous.clear();
        self.previous.extend_from_slice(key);
    }

    fn is_empty(&self) -> bool {
        self.restarts.is_empty()
    }

    fn byte_count(&self) -> usize {
        HEADER_BYTES + self.restarts.len() * RESTART_COST + self.entries.len()
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        assert!(!self.restarts.is_empty(), "a block has an entry");
        assert!(u32::try_from(self.entries.len()).is_ok(), "offsets of entries fit");
        let row = |restart: &Restart| {
            let start = restart.key_at as usize;
            &self.entries[start..start + usize::from(restart.row_length)]
        };
        let first_row = self.restarts.first().map_or(&[][..], row);
        // Rows ascend: the common prefix of the first and the last is that of all.
        let shared = shared_bytes(first_row, row_of(&self.previous)).min(PREFIX_BYTES_MAX);
        out.reserve(self.byte_count() + shared);
        out.extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        out.push(shared as u8);
        out.extend_from_slice(&first_row[..shared]);
        for restart in &self.restarts {
            out.extend_from_slice(&head_of(&row(restart)[shared..]).to_le_bytes());
            out.extend_from_slice(&restart.offset.to_le_bytes());
        }
        out.extend_from_slice(&self.entries);
        self.entries.clear();
        self.restarts.clear();
        self.run = 0;
    }
}

/// Returns the length of the common prefix.
fn shared_bytes(a: &[u8], b: &[u8]) -> usize {
    let mut shared = 0;
    for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        let word = |bytes: &[u8]| u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i| bytes[i]));
        let difference = word(a) ^ word(b);
        if difference != 0 {
            return shared + (difference.trailing_zeros() / 8) as usize;
        }
        shared += 8;
    }
    shared + a[shared..].iter().zip(&b[shared..]).take_while(|(a, b)| a == b).count()
}

/// Returns the first eight bytes, padded with zeros, as a number that sorts as they do.
fn head_of(row: &[u8]) -> u64 {
    if let Some(head) = row.first_chunk() {
        return u64::from_be_bytes(*head);
    }
    let mut head = [0; 8];
    let length = row.len().min(8);
    head[..length].copy_from_slice(&row[..length]);
    u64::from_be_bytes(head)
}

/// Offsets of the parts of a block, validated once when it is opened.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RowBlockLayout {
    restart_count: usize,
    restarts_at: usize,
    entries_at: usize,
}

impl RowBlockLayout {
    fn of(bytes: &[u8]) -> Result<RowBlockLayout, Malformed> {
        let restart_count = u32_at(bytes, 0).ok_or(Malformed)? as usize;
        let restarts_at = HEADER_BYTES + usize::from(*bytes.get(4).ok_or(Malformed)?);
        let entries_at = restarts_at + restart_count * RESTART_COST;
        if restart_count == 0 || entries_at >= bytes.len() {
            return Err(Malformed);
        }
        Ok(RowBlockLayout { restart_count, restarts_at, entries_at })
    }
}

/// The raw bytes of a row block.
#[derive(Clone, Copy)]
pub(super) struct RowBlock<'a> {
    bytes: &'a [u8],
    layout: RowBlockLayout,
}

impl<'a> RowBlock<'a> {
    /// Returns the block in these bytes.
    pub(super) fn of(bytes: &'a [u8]) -> Result<RowBlock<'a>, Malformed> {
        Ok(RowBlock { bytes, layout: RowBlockLayout::of(bytes)? })
    }

    /// Returns the block in these bytes, which have this layout.
    pub(super) fn new(bytes: &'a [u8], layout: RowBlockLayout) -> RowBlock<'a> {
        RowBlock { bytes, layout }
    }

    /// Returns the offsets of its parts.
    pub(super) fn layout(&self) -> RowBlockLayout {
        self.layout
    }

    /// Returns the number of restart entries.
    pub(super) fn restart_count(&self) -> usize {
        self.layout.restart_count
    }

    /// Returns key and value of a restart entry.
    pub(super) fn restart(&self, restart: usize) -> Result<(&'a [u8], &'a [u8]), Malformed> {
        let entry = read_entry(self.entries(), self.offset(restart)?).ok_or(Malformed)?;
        let key = &self.entries()[entry.key_at..entry.value_at];
        if entry.shared != 0 || !is_key(key) {
            return Err(Malformed);
        }
        Ok((key, &self.entries()[entry.value_at..entry.end]))
    }

    /// Returns the number of restart entries whose key is less than `target`.
    pub(super) fn restarts_before(&self, target: &[u8]) -> Result<usize, Malformed> {
        self.restarts_below(row_of(target), |key| compare_keys(key, target).is_lt())
    }

    /// Returns the number of restart entries whose row is less than `row`.
    pub(super) fn restarts_before_row(&self, row: &[u8]) -> Result<usize, Malformed> {
        self.restarts_below(row, |key| row_of(key) < row)
    }

    /// Returns the number of restart entries below a position in a row; `is_below` decides if the
    /// heads are equal.
    fn restarts_below(
        &self,
        row: &[u8],
        is_below: impl Fn(&[u8]) -> bool,
    ) -> Result<usize, Malformed> {
        let prefix = &self.bytes[HEADER_BYTES..self.layout.restarts_at];
        match row[..row.len().min(prefix.len())].cmp(prefix) {
            Ordering::Less => return Ok(0),
            Ordering::Greater => return Ok(self.layout.restart_count),
            Ordering::Equal => {}
        }
        let head = head_of(&row[prefix.len()..]);
        let (restarts, _) =
            self.bytes[self.layout.restarts_at..self.layout.entries_at].as_chunks::<RESTART_COST>();
        let first = heads_below(restarts, head);
        let is_tied = |restart: usize| restarts.get(restart).is_some_and(|at| head_in(at) == head);
        if !is_tied(first) {
            return Ok(first);
        }
        // Usually only one head is equal, or few.
        if !is_tied(first + 1) {
            return Ok(first + usize::from(is_below(self.restart(first)?.0)));
        }
        let all = first + 1..restarts.len();
        let tied = partition(all, |restart| Ok(is_tied(restart)))?;
        partition(first..tied, |restart| Ok(is_below(self.restart(restart)?.0)))
    }

    fn entries(&self) -> &'a [u8] {
        &self.bytes[self.layout.entries_at..]
    }

    fn offset(&self, restart: usize) -> Result<usize, Malformed> {
        let offset = u32_at(self.bytes, self.layout.restarts_at + restart * RESTART_COST + 8);
        offset.map(|offset| offset as usize).ok_or(Malformed)
    }

    /// Returns the range of a restart's entries.
    pub(super) fn restart_range(&self, restart: usize) -> Result<Range<usize>, Malformed> {
        let end = match restart + 1 < self.layout.restart_count {
            true => self.offset(restart + 1)?,
            false => self.entries().len(),
        };
        Ok(self.offset(restart)?..end)
    }

    /// Returns the entry at an offset.
    pub(super) fn entry(&self, at: usize) -> Result<RowBlockEntry, Malformed> {
        read_entry(self.entries(), at).ok_or(Malformed)
    }

    /// Returns the unshared end of an entry's key.
    pub(super) fn unshared(&self, entry: &RowBlockEntry) -> &'a [u8] {
        &self.entries()[entry.key_at..entry.value_at]
    }
}

/// Returns the head of a restart.
fn head_in(restart: &[u8; RESTART_COST]) -> u64 {
    restart.first_chunk().map_or(0, |head| u64::from_le_bytes(*head))
}

/// Returns the number of restarts whose head is less than `head`. With branches: the processor
/// then prefetches the next lines of a large block speculatively, which is worth more than the
/// cost of mispredictions.
fn heads_below(restarts: &[[u8; RESTART_COST]], head: u64) -> usize {
    // The next half is unpredictable, so it is not a branch.
    let (mut low, mut count) = (0, restarts.len());
    while count > 1 {
        let half = count / 2;
        let is_upper = head_in(&restarts[low + half - 1]) < head;
        low = select_unpredictable(is_upper, low + half, low);
        count -= half;
    }
    low + usize::from(restarts.get(low).is_some_and(|at| head_in(at) < head))
}

/// Returns the first index of a range for which `is_before` does not hold.
fn partition(
    range: Range<usize>,
    is_before: impl Fn(usize) -> Result<bool, Malformed>,
) -> Result<usize, Malformed> {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = usize::midpoint(low, high);
        if is_before(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// Offsets of the parts of an entry.
pub(super) struct RowBlockEntry {
    /// Bytes of its key shared with the previous key.
    pub(super) shared: usize,
    key_at: usize,
    pub(super) value_at: usize,
    pub(super) end: usize,
}

impl RowBlockEntry {
    /// Completes the key of the entry from the previous key.
    #[inline]
    fn complete(&self, entries: &[u8], key: &mut Vec<u8>) -> Result<(), Malformed> {
        if self.shared > key.len() {
            return Err(Malformed);
        }
        key.truncate(self.shared);
        key.extend_from_slice(&entries[self.key_at..self.value_at]);
        Ok(())
    }
}

#[inline]
fn read_entry(entries: &[u8], at: usize) -> Option<RowBlockEntry> {
    let (key_at, [shared, unshared, value_length]) = match entries.get(at..at + 3) {
        // Usually each length is one byte.
        Some(&[shared, unshared, value_length]) if (shared | unshared | value_length) < 0x80 => {
            (at + 3, [shared, unshared, value_length].map(usize::from))
        }
        _ => long_lengths(entries, at)?,
    };
    let value_at = key_at + unshared;
    let end = value_at + value_length;
    (end <= entries.len()).then_some(RowBlockEntry { shared, key_at, value_at, end })
}

/// Returns the lengths of an entry, and the offset behind them.
#[cold]
fn long_lengths(entries: &[u8], at: usize) -> Option<(usize, [usize; 3])> {
    let mut input = Input { bytes: entries.get(at..)? };
    let mut length = || u32::try_from(input.varint()?).ok().map(|length| length as usize);
    let lengths = [length()?, length()?, length()?];
    Some((entries.len() - input.bytes.len(), lengths))
}

/// Cursor on a cell of a row block, or on none.
#[derive(Default)]
pub(super) struct RowBlockCursor {
    block: Option<Block>,
    layout: RowBlockLayout,
    /// Offset of the current entry.
    at: usize,
    /// Offset of the next entry.
    next: usize,
    key: Vec<u8>,
    value: (usize, usize),
    valid: bool,
    /// Decoded entries around the cursor, for moves backwards.
    slots: RowSlots,
}

/// A row within a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowExtent {
    pub(super) cell_count: usize,
    /// Number of cells from the current one to the end of the row; at least 1.
    pub(super) left: usize,
}

impl BlockCursor for RowBlockCursor {
    fn open(&mut self, block: Block) -> Result<(), Malformed> {
        self.close();
        self.layout = RowBlockLayout::of(block.bytes())?;
        self.block = Some(block);
        Ok(())
    }

    fn close(&mut self) {
        self.block = None;
        self.valid = false;
        self.slots.clear();
    }

    fn key(&self) -> Option<&[u8]> {
        self.valid.then_some(&self.key)
    }

    fn value(&self) -> &[u8] {
        match &self.block {
            Some(block) if self.valid => {
                &block.bytes()[self.layout.entries_at..][self.value.0..self.value.1]
            }
            _ => &[],
        }
    }

    fn first(&mut self) -> Result<(), BlockError> {
        self.restart_at(0);
        Ok(self.read_next()?)
    }

    fn last(&mut self) -> Result<(), BlockError> {
        self.valid = false;
        let last = self.layout.restart_count.checked_sub(1).ok_or(Malformed)?;
        self.fill_slots(last)?;
        Ok(self.take_slot(self.slots.len() - 1)?)
    }

    fn advance(&mut self) -> Result<(), BlockError> {
        if self.valid { Ok(self.read_next()?) } else { Ok(()) }
    }

    fn walk(
        &mut self,
        show: &mut impl FnMut(KeyParts<'_>, &[u8]) -> bool,
    ) -> Result<(), BlockError> {
        if !self.valid {
            return Ok(());
        }
        let Some(block) = &self.block else { return Ok(()) };
        let entries = &block.bytes()[self.layout.entries_at..];
        loop {
            self.valid = false;
            let parts = KeyParts::decode(&self.key).ok_or(Malformed)?;
            if !show(parts, &entries[self.value.0..self.value.1]) {
                self.valid = true;
                self.check();
                return Ok(());
            }
            if self.next >= entries.len() {
                return Ok(());
            }
            let entry = read_entry(entries, self.next).ok_or(Malformed)?;
            entry.complete(entries, &mut self.key)?;
            self.at = self.next;
            self.next = entry.end;
            self.value = (entry.value_at, entry.end);
        }
    }

    fn retreat(&mut self) -> Result<(), BlockError> {
        if !self.valid {
            return Ok(());
        }
        let at = self.at;
        if !self.slots.covers(at) {
            self.valid = false;
            let block = self.view()?;
            let restarts = 0..self.layout.restart_count;
            let behind = partition(restarts, |restart| Ok(block.offset(restart)? <= at))?;
            self.fill_slots(behind.checked_sub(1).ok_or(Malformed)?)?;
        }
        self.valid = false;
        if let Some(before) = self.slots.before(at).checked_sub(1) {
            return Ok(self.take_slot(before)?);
        }
        let Some(restart) = self.slots.first_restart().checked_sub(1) else { return Ok(()) };
        self.fill_slots(restart)?;
        Ok(self.take_slot(self.slots.len() - 1)?)
    }

    fn seek(&mut self, target: &[u8]) -> Result<(), BlockError> {
        self.valid = false;
        self.slots.interrupt();
        let block = self.view()?;
        let offset = match block.restarts_before(target)?.checked_sub(1) {
            Some(restart) => block.offset(restart)?,
            None => 0,
        };
        self.restart_at(offset);
        loop {
            self.read_next()?;
            if self.key().is_none_or(|key| compare_keys(key, target).is_ge()) {
                return Ok(());
            }
        }
    }

    fn seek_before(&mut self, target: &[u8]) -> Result<(), BlockError> {
        self.seek(target)?;
        if self.valid { self.retreat() } else { self.last() }
    }
}

impl RowBlockCursor {
    fn view(&self) -> Result<RowBlock<'_>, Malformed> {
        let block = self.block.as_ref().ok_or(Malformed)?;
        Ok(RowBlock { bytes: block.bytes(), layout: self.layout })
    }

    /// Moves to the entry at `next`.
    fn read_next(&mut self) -> Result<(), Malformed> {
        self.valid = false;
        let Some(block) = &self.block else { return Ok(()) };
        let entries = &block.bytes()[self.layout.entries_at..];
        if self.next >= entries.len() {
            return Ok(());
        }
        let entry = read_entry(entries, self.next).ok_or(Malformed)?;
        entry.complete(entries, &mut self.key)?;
        if !is_key(&self.key) {
            return Err(Malformed);
        }
        self.at = self.next;
        self.next = entry.end;
        self.value = (entry.value_at, entry.end);
        self.valid = true;
        self.check();
        Ok(())
    }

    /// Asserts, in debug builds, that the current entry is one of the current block.
    fn check(&self) {
        if cfg!(debug_assertions) && self.valid {
            let entries = self.view().map_or(0, |block| block.entries().len());
            assert!(self.at < self.value.0, "the entry {} has no value", self.at);
            assert!(self.value.0 <= self.value.1 && self.value.1 == self.next, "end of the value");
            assert!(self.next <= entries, "the entry is of another block");
            assert!(is_key(&self.key), "the entry has no key");
        }
    }

    /// Prepares to read from the entry at an offset, which shares nothing.
    fn restart_at(&mut self, offset: usize) {
        self.next = offset;
        self.valid = false;
        self.key.clear();
    }

    /// Decodes the entries of a restart. There is at least one.
    fn fill_slots(&mut self, restart: usize) -> Result<(), Malformed> {
        let block = self.block.as_ref().ok_or(Malformed)?;
        self.slots.fill(RowBlock { bytes: block.bytes(), layout: self.layout }, restart)
    }

    fn take_slot(&mut self, index: usize) -> Result<(), Malformed> {
        let slot = self.slots.slot(index)?;
        self.key.clear();
        self.key.extend_from_slice(self.slots.key(slot));
        (self.at, self.next) = (slot.at, slot.end);
        self.value = (slot.value_at, slot.end);
        self.valid = true;
        self.check();
        Ok(())
    }

    /// From the first cell of a row, passes the cells of the preceding rows, row by row, to
    /// `show`, while it returns `true`. Returns the extent in its row of the cell that was
    /// rejected, which is the current one then. `None`: the cursor is on the first cell of a row
    /// that was passed, and the start of the preceding row is not known.
    pub(super) fn walk_rows_back(
        &mut self,
        show: &mut impl FnMut(KeyParts<'_>, &[u8]) -> bool,
    ) -> Result<Option<RowExtent>, Malformed> {
        if !self.valid || !self.slots.covers(self.at) {
            return Ok(None);
        }
        self.valid = false;
        let block = self.block.as_ref().ok_or(Malformed)?;
        let entries = &block.bytes()[self.layout.entries_at..];
        let mut first = self.slots.before(self.at);
        while let Some(row) = self.slots.row_before(first) {
            for index in row.clone() {
                let slot = self.slots.slot(index)?;
                let parts = KeyParts::decode(self.slots.key(slot)).ok_or(Malformed)?;
                if !show(parts, &entries[slot.value_at..slot.end]) {
                    self.take_slot(index)?;
                    return Ok(Some(RowExtent { cell_count: row.len(), left: row.end - index }));
                }
            }
            first = row.start;
        }
        self.take_slot(first)?;
        Ok(None)
    }
}
