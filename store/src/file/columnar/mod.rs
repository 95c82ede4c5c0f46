//! Columnar blocks: the keys of some cells together, then each section of their values apart.
//!
//! ```text
//!   head | directory | layout | rows | qualifiers | timestamps | sequences | types | shapes
//!        | whole values | section 0 | section 1 | …
//! ```
//!
//! How values are cut is the family's [`ValueLayout`](crate::layout::ValueLayout). Every section
//! has an entry for every cell, so that cell `i` is entry `i` everywhere: of a fixed section that
//! is `i * width`. A marker, or a value that follows no shape of the layout, is kept whole and has
//! zeros and nothing in the sections.
//!
//! Each part is compressed on its own and opened when it is asked for first; the cache holds it
//! open from then on. So a scan of two columns touches only those, and a get rebuilds one value.
//! Byte by byte: `docs/formats/store-file.md`.
//!
//! # Invariants
//!
//! 1. A block that is *plain* has only puts of different rows, all of one qualifier, and no value
//!    that is kept whole: what [`ColumnSlice`] can hand out.
//! 2. All parts have as many entries as the block has cells.
//!
//! The builder is in [`builder`], reading cell by cell in [`cursor`], reading whole columns in
//! [`mod@slice`], and what parts are made of in [`numbers`] and [`strings`].

mod numbers;
mod strings;
mod builder;
mod cursor;
mod slice;

use crate::cache::Block;
use crate::cell::{Sequence, Timestamp};
use crate::file::columnar::numbers::Numbers;
use crate::file::columnar::strings::Strings;
use crate::file::compression::{LZ4, ZSTD, can_become, decompress_into};
use crate::file::encoding::Malformed;
use crate::file::format::{u32_at, u64_at};
use crate::layout::EncodedLayout;

pub(super) use builder::ColumnarBuilder;
pub(super) use cursor::{BlockRows, ColumnarCursor};
pub(crate) use cursor::{Span, WantedColumns};
pub use slice::{ColumnSlice, VariableColumn};

/// Cells of a block at most.
const CELLS_MAX: usize = 1 << 16;
/// Bytes before the directory.
const HEAD_BYTES: usize = 4 + 2 + 1 + 1 + 8 + 8 + 8;
/// Bytes of a part in the directory.
const ENTRY_BYTES: usize = 4 + 4 + 1;
/// The block is plain.
const PLAIN: u8 = 1;

// The parts by number.
const LAYOUT: usize = 0;
const ROWS: usize = 1;
const QUALIFIERS: usize = 2;
const TIMESTAMPS: usize = 3;
const SEQUENCES: usize = 4;
const TYPES: usize = 5;
const SHAPES: usize = 6;
const WHOLE: usize = 7;
const FIRST_SECTION: usize = 8;

/// How a part is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storage {
    Plain = 0,
    Lz4 = 1,
    Zstd = 2,
    /// The stored bytes again and again.
    Repeated = 3,
}

/// What the head of a block says.
#[derive(Debug, Clone, Copy)]
struct Head {
    cell_count: usize,
    section_count: usize,
    is_plain: bool,
    span: Span,
}

impl Head {
    fn read(bytes: &[u8]) -> Option<Head> {
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
        })
    }

    fn part_count(&self) -> usize {
        FIRST_SECTION + self.section_count
    }
}

/// A columnar block, its head read.
#[derive(Clone, Copy)]
struct View<'b> {
    block: &'b Block,
    head: Head,
}

impl<'b> View<'b> {
    #[inline]
    fn part(self, part: usize) -> Result<&'b [u8], Malformed> {
        let (stored, storage) =
            stored_part(self.block.bytes(), &self.head, part).ok_or(Malformed)?;
        if storage == Storage::Plain as u8 {
            return Ok(stored);
        }
        self.open_part(part)
    }

    fn open_part(self, part: usize) -> Result<&'b [u8], Malformed> {
        let open = || {
            let (stored, raw_length, storage) = entry(self.block.bytes(), &self.head, part)?;
            open_part(stored, raw_length, storage)
        };
        self.block.part(part, open).ok_or(Malformed)
    }

    fn layout(self) -> Result<EncodedLayout<'b>, Malformed> {
        Ok(EncodedLayout(self.part(LAYOUT)?))
    }

    /// Appends the value of a cell, put together again.
    fn append_value(self, index: usize, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let count = self.head.cell_count;
        let shape = Numbers::open(self.part(SHAPES)?, count)?.get(index);
        let Some(shape) = shape.checked_sub(1) else {
            out.extend_from_slice(Strings::open(self.part(WHOLE)?, count)?.get(index)?);
            return Ok(());
        };
        let section = |section: usize, width: usize| {
            let part = self.part(FIRST_SECTION + section).ok()?;
            match width {
                0 => Strings::open(part, count).ok()?.get(index).ok(),
                width => part.get(index * width..(index + 1) * width),
            }
        };
        self.layout()?.join(shape as usize, section, out).ok_or(Malformed)
    }
}

/// Returns the stored bytes of a part and the code of how it is stored.
#[inline]
fn stored_part<'b>(bytes: &'b [u8], head: &Head, part: usize) -> Option<(&'b [u8], u8)> {
    if part >= head.part_count() {
        return None;
    }
    let directory = bytes.get(HEAD_BYTES..)?;
    let (directory, parts) = directory.split_at_checked(head.part_count() * ENTRY_BYTES)?;
    let at = part * ENTRY_BYTES;
    let start = if part == 0 { 0 } else { u32_at(directory, at - ENTRY_BYTES)? as usize };
    let end = u32_at(directory, at)? as usize;
    Some((parts.get(start..end)?, *directory.get(at + 8)?))
}

/// Returns the stored bytes of a part, its length when opened and how it is stored.
fn entry<'b>(bytes: &'b [u8], head: &Head, part: usize) -> Option<(&'b [u8], usize, Storage)> {
    let (stored, storage) = stored_part(bytes, head, part)?;
    let raw_length = u32_at(bytes, HEAD_BYTES + part * ENTRY_BYTES + 4)? as usize;
    let storage = match storage {
        0 if stored.len() == raw_length => Storage::Plain,
        1 if can_become(LZ4, stored.len(), raw_length) => Storage::Lz4,
        2 if can_become(ZSTD, stored.len(), raw_length) => Storage::Zstd,
        3 if !stored.is_empty() && raw_length / stored.len() <= CELLS_MAX => Storage::Repeated,
        _ => return None,
    };
    Some((stored, raw_length, storage))
}

fn open_part(stored: &[u8], raw_length: usize, storage: Storage) -> Option<Box<[u8]>> {
    match storage {
        Storage::Plain => Some(stored.into()),
        Storage::Lz4 | Storage::Zstd => {
            let mut raw = vec![0; raw_length].into_boxed_slice();
            decompress_into(storage as u8, stored, &mut raw).map(|()| raw)
        }
        Storage::Repeated => {
            let raw = stored.repeat(raw_length / stored.len());
            (raw.len() == raw_length).then(|| raw.into_boxed_slice())
        }
    }
}

/// Checks the directory of a block and makes room for the parts that are opened later.
pub(super) fn prepare(block: Block) -> Result<Block, Malformed> {
    let head = Head::read(block.bytes()).ok_or(Malformed)?;
    let mut later_bytes = 0;
    for part in 0..head.part_count() {
        let (_, raw_length, storage) = entry(block.bytes(), &head, part).ok_or(Malformed)?;
        if storage != Storage::Plain {
            later_bytes += raw_length;
        }
    }
    Ok(block.with_parts(head.part_count(), later_bytes))
}

#[cfg(test)]
mod tests;
