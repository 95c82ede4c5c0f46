//! Directory of a columnar block: position and storage of each part.
//!
//! Parts behind the front are pieces, each followed by its checksum: a whole part, or, for a
//! large one, chunks of some rows. The front has the table of such a part:
//!
//! `length of the head (4) | head | start of the first chunk (4) | for each chunk its end,
//! relative to that start (4), and its storage (1)`

use std::ops::Range;

use crate::cell::{Sequence, Timestamp};
use crate::file::columnar::strings::StringsHead;
use crate::file::columnar::{
    CELLS_MAX, ENTRY_BYTES, FIRST_SECTION, FRONT_LENGTH_AT, HEAD_BYTES, LAYOUT, PLAIN, Span,
    Storage, WHOLE,
};
use crate::file::compression::{LZ4, NONE, ZSTD, can_become};
use crate::file::encoding::Malformed;
use crate::file::format::{BLOCK_HEADER_BYTES, CHECKSUM_BYTES, u32_at, u64_at};

/// Bytes of a chunk entry in the table of its part.
pub(super) const CHUNK_ENTRY_BYTES: usize = 4 + 1;

/// Decoded head of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) cell_count: usize,
    pub(super) section_count: usize,
    pub(super) is_plain: bool,
    pub(super) span: Span,
    /// End of the front, before its checksum.
    pub(super) front_end: usize,
    /// Bytes of the block.
    body_bytes: usize,
}

impl Head {
    /// Decodes the head of a block of `body_bytes` bytes, of which `bytes` is the beginning.
    pub(super) fn read(bytes: &[u8], body_bytes: usize) -> Option<Head> {
        let cell_count = u32_at(bytes, 0)? as usize;
        let [low, high, flags, 0] = *bytes.get(4..8)? else { return None };
        if cell_count == 0 || cell_count > CELLS_MAX || flags & !PLAIN != 0 {
            return None;
        }
        Some(Head {
            cell_count,
            section_count: usize::from(u16::from_le_bytes([low, high])),
            is_plain: flags & PLAIN != 0,
            span: Span {
                min_timestamp: Timestamp(u64_at(bytes, 8)? as i64),
                max_timestamp: Timestamp(u64_at(bytes, 16)? as i64),
                max_sequence: Sequence(u64_at(bytes, 24)?),
            },
            front_end: front_end(bytes).filter(|end| *end <= body_bytes)?,
            body_bytes,
        })
    }

    pub(super) fn part_count(&self) -> usize {
        FIRST_SECTION + self.section_count
    }
}

/// Returns the end of the front of a block, before its checksum.
fn front_end(bytes: &[u8]) -> Option<usize> {
    let front_bytes = u32_at(bytes, FRONT_LENGTH_AT)? as usize;
    front_bytes.checked_sub(BLOCK_HEADER_BYTES + CHECKSUM_BYTES)
}

/// Directory entry of a part.
#[derive(Debug)]
pub(super) struct DirectoryEntry {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) raw_length: usize,
    pub(super) storage: Storage,
    /// Binary logarithm of the rows of a chunk.
    chunk_bits: u8,
}

impl DirectoryEntry {
    /// Decodes an entry; `bytes` must include the front of the block.
    pub(super) fn of(bytes: &[u8], head: &Head, part: usize) -> Option<DirectoryEntry> {
        let at = HEAD_BYTES + part * ENTRY_BYTES;
        let start = u32_at(bytes, at)? as usize;
        let end = start + u32_at(bytes, at + 4)? as usize;
        let [storage, chunk_bits, 0, 0] = *bytes.get(at + 12..at + ENTRY_BYTES)? else {
            return None;
        };
        let is_in_front =
            start >= HEAD_BYTES + head.part_count() * ENTRY_BYTES && end <= head.front_end;
        let is_behind = part >= WHOLE
            && start >= head.front_end + CHECKSUM_BYTES
            && end + CHECKSUM_BYTES <= head.body_bytes;
        if !(is_in_front || is_behind) || usize::from(chunk_bits) > CELLS_MAX.ilog2() as usize {
            return None;
        }
        let entry = DirectoryEntry {
            start,
            end,
            raw_length: u32_at(bytes, at + 8)? as usize,
            storage: Storage::of(storage)?,
            chunk_bits,
        };
        let stored = entry.end - entry.start;
        let fits = match entry.storage {
            Storage::Plain => stored == entry.raw_length,
            Storage::Lz4 => can_become(LZ4, stored, entry.raw_length),
            Storage::Zstd => can_become(ZSTD, stored, entry.raw_length),
            Storage::Repeated => stored > 0 && entry.raw_length / stored <= CELLS_MAX,
            Storage::Chunks => part >= WHOLE && entry.end <= head.front_end,
        };
        (fits && (part != LAYOUT || entry.storage == Storage::Plain)).then_some(entry)
    }
}

/// A part in chunks: its decoded table, and the table's position. Its methods take the block, as
/// far as it is loaded.
#[derive(Debug)]
pub(super) struct Chunks {
    /// The beginning of its raw bytes, before those of the rows.
    head: Range<usize>,
    /// Head of a string part.
    strings: Option<StringsHead>,
    /// Width of a fixed section.
    width: usize,
    first: usize,
    table: usize,
    bits: u8,
    cell_count: usize,
    body_bytes: usize,
}

impl Chunks {
    /// Decodes the table of a part, whose entries have `width` bytes, or are strings if that is
    /// 0.
    pub(super) fn of(
        body: &[u8],
        head: &Head,
        entry: &DirectoryEntry,
        width: usize,
    ) -> Result<Chunks, Malformed> {
        let table = body.get(entry.start..entry.end).ok_or(Malformed)?;
        let head_length = u32_at(table, 0).ok_or(Malformed)? as usize;
        let (part_head, table) = table[4..].split_at_checked(head_length).ok_or(Malformed)?;
        let (first, table) = table.split_first_chunk::<4>().ok_or(Malformed)?;
        let strings = match width {
            0 => Some(StringsHead::of_head(part_head, head.cell_count)?),
            _ if part_head.is_empty() => None,
            _ => return Err(Malformed),
        };
        let chunks = Chunks {
            head: entry.start + 4..entry.start + 4 + head_length,
            strings,
            width,
            first: u32::from_le_bytes(*first) as usize,
            table: entry.end - table.len(),
            bits: entry.chunk_bits,
            cell_count: head.cell_count,
            body_bytes: head.body_bytes,
        };
        if table.len() != chunks.count() * CHUNK_ENTRY_BYTES {
            return Err(Malformed);
        }
        Ok(chunks)
    }

    /// Returns the beginning of the raw bytes, before those of the rows.
    pub(super) fn head<'b>(&self, body: &'b [u8]) -> &'b [u8] {
        body.get(self.head.clone()).unwrap_or_default()
    }

    /// Returns the number of chunks.
    pub(super) fn count(&self) -> usize {
        self.cell_count.div_ceil(1 << self.bits)
    }

    /// Returns the chunk of an entry of the part.
    pub(super) fn chunk_of(&self, index: usize) -> usize {
        index >> self.bits
    }

    /// Returns the range of an entry in the raw bytes of its chunk.
    #[inline]
    pub(super) fn range_in_chunk(
        &self,
        body: &[u8],
        index: usize,
    ) -> Result<Range<usize>, Malformed> {
        let base = self.end_before(body, self.chunk_of(index) << self.bits)?;
        let start = self.end_before(body, index)?.checked_sub(base).ok_or(Malformed)?;
        let end = self.end_before(body, index + 1)?.checked_sub(base).ok_or(Malformed)?;
        Ok(start..end)
    }

    /// Returns the range of a chunk in the raw bytes of the rows.
    pub(super) fn raw_range(&self, body: &[u8], chunk: usize) -> Result<Range<usize>, Malformed> {
        let start = self.end_before(body, chunk << self.bits)?;
        let end = self.end_before(body, ((chunk + 1) << self.bits).min(self.cell_count))?;
        if start <= end { Ok(start..end) } else { Err(Malformed) }
    }

    #[inline]
    fn end_before(&self, body: &[u8], index: usize) -> Result<usize, Malformed> {
        match self.strings {
            None => Ok(index * self.width),
            Some(strings) => match index.checked_sub(1) {
                None => Ok(0),
                Some(last) => strings.of(self.head(body)).end(last).ok_or(Malformed),
            },
        }
    }

    /// Returns the stored range of a chunk with its checksum, and its storage.
    pub(super) fn stored(
        &self,
        body: &[u8],
        chunk: usize,
    ) -> Result<(Range<usize>, u8), Malformed> {
        let at = |chunk: usize| self.table + chunk * CHUNK_ENTRY_BYTES;
        let end_of = |chunk: usize| u32_at(body, at(chunk));
        let start = match chunk.checked_sub(1) {
            None => 0,
            Some(before) => end_of(before).ok_or(Malformed)? as usize,
        };
        let end = end_of(chunk).ok_or(Malformed)? as usize;
        let code = *body.get(at(chunk) + 4).ok_or(Malformed)?;
        let is_inside = start + CHECKSUM_BYTES <= end && self.first + end <= self.body_bytes;
        if chunk >= self.count() || !is_inside || !matches!(code, NONE | LZ4 | ZSTD) {
            return Err(Malformed);
        }
        Ok((self.first + start..self.first + end, code))
    }

    /// Checks that head and chunks together decompress to `length` bytes: checked before
    /// allocating the length that a table claims.
    pub(super) fn check_length(&self, body: &[u8], length: usize) -> Result<(), Malformed> {
        let mut found = self.head.len();
        for chunk in 0..self.count() {
            let (stored, code) = self.stored(body, chunk)?;
            let raw = self.raw_range(body, chunk)?;
            if !can_become(code, stored.len() - CHECKSUM_BYTES, raw.len()) {
                return Err(Malformed);
            }
            found += raw.len();
        }
        if found == length { Ok(()) } else { Err(Malformed) }
    }

    /// Returns the stored range of all chunks.
    pub(super) fn stored_range(&self, body: &[u8]) -> Result<Range<usize>, Malformed> {
        let (last, _) = self.stored(body, self.count() - 1)?;
        if self.first <= last.end { Ok(self.first..last.end) } else { Err(Malformed) }
    }
}
