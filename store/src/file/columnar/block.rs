//! A columnar block as the cache holds it: which part lies where, and what the heads of the parts
//! of keys say, is found out once, not by every read.
//!
//! The layout of values is taken apart once for a file, not for each of its blocks
//! ([`KnownLayout`]), so that reads at random find it near.

use std::sync::{Arc, OnceLock};

use crate::cache::{Block, PreparedBlock};
use crate::cell::{Sequence, Timestamp};
use crate::file::columnar::cursor::Span;
use crate::file::columnar::numbers::NumbersHead;
use crate::file::columnar::strings::{Strings, StringsHead};
use crate::file::columnar::{
    CELLS_MAX, ENTRY_BYTES, FIRST_SECTION, HEAD_BYTES, LAYOUT, PLAIN, QUALIFIERS, ROWS, SEQUENCES,
    SHAPES, Storage, TIMESTAMPS, TYPES, WHOLE,
};
use crate::file::compression::{LZ4, ZSTD, can_become, decompress_into};
use crate::file::encoding::Malformed;
use crate::file::format::{u32_at, u64_at};
use crate::layout::{ReadLayout, WantedSections};

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

/// Where a part lies that is stored as it is. Of others the start is behind the end, so that they
/// are found to be none by the check of the bounds that there is anyway.
#[derive(Debug, Clone, Copy)]
struct Place {
    start: u32,
    end: u32,
}

const ELSEWHERE: Place = Place { start: 1, end: 0 };

/// The heads of the parts that every cell has something of.
#[derive(Debug, Clone, Copy)]
struct CellHeads {
    rows: StringsHead,
    qualifiers: StringsHead,
    timestamps: NumbersHead,
    sequences: NumbersHead,
    types: NumbersHead,
    shapes: NumbersHead,
}

/// A columnar block whose head and directory were read.
#[derive(Debug)]
pub(in crate::file) struct ColumnarBlock {
    head: Head,
    layout: Arc<ReadLayout>,
    cells: OnceLock<CellHeads>,
    places: Box<[Place]>,
    /// The parts that lie elsewhere, once they are opened; empty if there are none.
    opened: Box<[OnceLock<Box<[u8]>>]>,
    /// Bytes of `opened` when all are open.
    opened_bytes: usize,
    bytes: Arc<[u8]>,
}

/// The layout of values of a file's blocks, known since the first of them was read. All have the
/// same.
#[derive(Debug, Default)]
pub(in crate::file) struct KnownLayout(OnceLock<Arc<ReadLayout>>);

impl KnownLayout {
    fn read(&self, encoded: &[u8]) -> Result<Arc<ReadLayout>, Malformed> {
        if let Some(known) = self.0.get()
            && known.encoded() == encoded
        {
            return Ok(known.clone());
        }
        let layout = Arc::new(ReadLayout::decode(encoded).ok_or(Malformed)?);
        let _ = self.0.set(layout.clone());
        Ok(layout)
    }
}

/// Reads head and directory of a block and makes room for the parts that are opened later.
pub(in crate::file) fn prepare(block: Block, known: &KnownLayout) -> Result<Block, Malformed> {
    let bytes = Arc::clone(block.shared_bytes());
    let head = Head::read(&bytes).ok_or(Malformed)?;
    let mut places = Vec::with_capacity(head.part_count());
    let mut opened_bytes = 0;
    let mut is_any_elsewhere = false;
    for part in 0..head.part_count() {
        let entry = Entry::of(&bytes, &head, part).ok_or(Malformed)?;
        if entry.storage == Storage::Plain {
            places.push(Place { start: entry.start as u32, end: entry.end as u32 });
        } else {
            places.push(ELSEWHERE);
            opened_bytes += entry.raw_length;
            is_any_elsewhere = true;
        }
    }
    let slots = if is_any_elsewhere { places.len() } else { 0 };
    let layout = match places.first() {
        Some(place) => bytes.get(place.start as usize..place.end as usize).ok_or(Malformed)?,
        None => return Err(Malformed),
    };
    let layout = known.read(layout)?;
    if layout.section_count() != head.section_count {
        return Err(Malformed);
    }
    Ok(block.into_prepared(ColumnarBlock {
        head,
        layout,
        cells: OnceLock::new(),
        places: places.into(),
        opened: (0..slots).map(|_| OnceLock::new()).collect(),
        opened_bytes,
        bytes,
    }))
}

impl PreparedBlock for ColumnarBlock {
    fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// As if all parts were open.
    fn byte_count(&self) -> usize {
        let tables = size_of_val(&*self.places) + size_of_val(&*self.opened);
        size_of::<ColumnarBlock>() + tables + self.opened_bytes + self.bytes.len()
    }
}

impl ColumnarBlock {
    pub(super) fn cell_count(&self) -> usize {
        self.head.cell_count
    }

    pub(super) fn is_plain(&self) -> bool {
        self.head.is_plain
    }

    pub(super) fn span(&self) -> &Span {
        &self.head.span
    }

    pub(super) fn layout(&self) -> &ReadLayout {
        &self.layout
    }

    #[inline]
    pub(super) fn part(&self, part: usize) -> Result<&[u8], Malformed> {
        let place = self.places.get(part).ok_or(Malformed)?;
        match self.bytes.get(place.start as usize..place.end as usize) {
            Some(bytes) => Ok(bytes),
            None => self.opened_part(part),
        }
    }

    fn opened_part(&self, part: usize) -> Result<&[u8], Malformed> {
        let slot = self.opened.get(part).ok_or(Malformed)?;
        if let Some(bytes) = slot.get() {
            return Ok(bytes);
        }
        let entry = Entry::of(&self.bytes, &self.head, part).ok_or(Malformed)?;
        let opened = entry.open(&self.bytes).ok_or(Malformed)?;
        // Another reader may have been faster; both opened the same.
        Ok(slot.get_or_init(|| opened))
    }

    /// Returns a section.
    #[inline]
    pub(super) fn section(&self, section: usize) -> Result<&[u8], Malformed> {
        self.part(FIRST_SECTION + section)
    }

    /// Returns a section of strings.
    pub(super) fn strings(&self, section: usize) -> Result<Strings<'_>, Malformed> {
        Strings::open(self.section(section)?, self.head.cell_count)
    }

    #[inline]
    fn cells(&self) -> Result<&CellHeads, Malformed> {
        match self.cells.get() {
            Some(cells) => Ok(cells),
            None => self.read_cells(),
        }
    }

    #[cold]
    fn read_cells(&self) -> Result<&CellHeads, Malformed> {
        let count = self.head.cell_count;
        let strings = |part| StringsHead::read(self.part(part)?, count);
        let numbers = |part| NumbersHead::read(self.part(part)?, count);
        let cells = CellHeads {
            rows: strings(ROWS)?,
            qualifiers: strings(QUALIFIERS)?,
            timestamps: numbers(TIMESTAMPS)?,
            sequences: numbers(SEQUENCES)?,
            types: numbers(TYPES)?,
            shapes: numbers(SHAPES)?,
        };
        Ok(self.cells.get_or_init(|| cells))
    }

    pub(super) fn rows(&self) -> Result<Strings<'_>, Malformed> {
        Ok(self.cells()?.rows.of(self.part(ROWS)?))
    }

    pub(super) fn qualifiers(&self) -> Result<Strings<'_>, Malformed> {
        Ok(self.cells()?.qualifiers.of(self.part(QUALIFIERS)?))
    }

    pub(super) fn timestamps(&self) -> Result<Numbers<'_>, Malformed> {
        Ok(Numbers { head: self.cells()?.timestamps, part: self.part(TIMESTAMPS)? })
    }

    pub(super) fn sequences(&self) -> Result<Numbers<'_>, Malformed> {
        Ok(Numbers { head: self.cells()?.sequences, part: self.part(SEQUENCES)? })
    }

    pub(super) fn types(&self) -> Result<Numbers<'_>, Malformed> {
        Ok(Numbers { head: self.cells()?.types, part: self.part(TYPES)? })
    }

    pub(super) fn shapes(&self) -> Result<Numbers<'_>, Malformed> {
        Ok(Numbers { head: self.cells()?.shapes, part: self.part(SHAPES)? })
    }

    /// Appends the value of a cell, put together again; if only some sections are `wanted`, the
    /// others are zeros or empty.
    pub(super) fn append_value(
        &self,
        index: usize,
        wanted: Option<&WantedSections>,
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        let Some(shape) = self.shapes()?.get(index).checked_sub(1) else {
            let whole = Strings::open(self.part(WHOLE)?, self.head.cell_count)?;
            out.extend_from_slice(whole.get(index)?);
            return Ok(());
        };
        let section = |section: usize, width: usize| {
            if let Some(other) = wanted.and_then(|wanted| wanted.stand_in(section, width)) {
                return Some(other);
            }
            match width {
                0 => self.strings(section).ok()?.get(index).ok(),
                width => self.section(section).ok()?.get(index * width..(index + 1) * width),
            }
        };
        self.layout.join(shape as usize, section, out).ok_or(Malformed)
    }
}

/// Numbers of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers<'b> {
    head: NumbersHead,
    part: &'b [u8],
}

impl Numbers<'_> {
    #[inline]
    pub(super) fn get(&self, index: usize) -> u64 {
        self.head.get(self.part, index)
    }

    pub(super) fn only(&self) -> Option<u64> {
        self.head.only()
    }
}

/// What the directory says of a part.
struct Entry {
    start: usize,
    end: usize,
    raw_length: usize,
    storage: Storage,
}

impl Entry {
    fn of(bytes: &[u8], head: &Head, part: usize) -> Option<Entry> {
        let directory = bytes.get(HEAD_BYTES..)?;
        let (directory, parts) = directory.split_at_checked(head.part_count() * ENTRY_BYTES)?;
        let at = part * ENTRY_BYTES;
        let start = if part == 0 { 0 } else { u32_at(directory, at - ENTRY_BYTES)? as usize };
        let end = u32_at(directory, at)? as usize;
        let raw_length = u32_at(directory, at + 4)? as usize;
        let stored = parts.get(start..end)?.len();
        let storage = match *directory.get(at + 8)? {
            0 if stored == raw_length => Storage::Plain,
            1 if can_become(LZ4, stored, raw_length) => Storage::Lz4,
            2 if can_become(ZSTD, stored, raw_length) => Storage::Zstd,
            3 if stored > 0 && raw_length / stored <= CELLS_MAX => Storage::Repeated,
            _ => return None,
        };
        if part == LAYOUT && storage != Storage::Plain {
            return None;
        }
        let parts_at = HEAD_BYTES + head.part_count() * ENTRY_BYTES;
        Some(Entry { start: parts_at + start, end: parts_at + end, raw_length, storage })
    }

    fn open(&self, bytes: &[u8]) -> Option<Box<[u8]>> {
        let stored = bytes.get(self.start..self.end)?;
        match self.storage {
            Storage::Plain => Some(stored.into()),
            Storage::Lz4 | Storage::Zstd => {
                let mut raw = vec![0; self.raw_length].into_boxed_slice();
                decompress_into(self.storage as u8, stored, &mut raw).map(|()| raw)
            }
            Storage::Repeated => {
                let raw = stored.repeat(self.raw_length / stored.len());
                (raw.len() == self.raw_length).then(|| raw.into_boxed_slice())
            }
        }
    }
}
