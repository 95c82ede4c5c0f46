//! Cached form of a columnar block: positions of the parts and heads of the key parts are decoded
//! once, not by every read. The cache holds the front of a block, together with the pieces that
//! were read since, each decompressed once.
//!
//! The layout of values is decoded once for a file, not for each of its blocks ([`KnownLayout`]),
//! so that random reads find it in the processor's cache.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::cache::{Block, PreparedBlock};
use crate::file::columnar::cursor::Span;
use crate::file::columnar::directory::{Chunks, DirectoryEntry, Head};
use crate::file::columnar::numbers::NumbersHead;
use crate::file::columnar::strings::{Strings, StringsHead};
use crate::file::columnar::{
    FIRST_SECTION, QUALIFIERS, ROWS, SEQUENCES, SHAPES, Storage, TIMESTAMPS, TYPES, WHOLE,
};
use crate::file::compression::{can_become, decompress_into};
use crate::file::encoding::{BlockError, Malformed};
use crate::file::format::{BLOCK_HEADER_BYTES, CHECKSUM_BYTES};
use crate::file::piece_source::PieceSource;
use crate::layout::{ReadLayout, SectionSelection};
use crate::prefetch::prefetch;

/// Range of a part that is stored uncompressed. For others the start is above the end, so that
/// the bounds check, which is made anyway, excludes them.
#[derive(Debug, Clone, Copy)]
struct PartRange {
    start: u32,
    end: u32,
}

const ELSEWHERE: PartRange = PartRange { start: 1, end: 0 };

/// The decoded heads of the parts that have an entry for every cell.
#[derive(Debug, Clone, Copy)]
struct CellHeads {
    rows: StringsHead,
    qualifiers: StringsHead,
    timestamps: NumbersHead,
    sequences: NumbersHead,
    types: NumbersHead,
    shapes: NumbersHead,
}

/// A columnar block with decoded head and directory.
#[derive(Debug)]
pub(in crate::file) struct ColumnarBlock {
    head: Head,
    layout: Arc<ReadLayout>,
    cells: OnceLock<CellHeads>,
    places: Box<[PartRange]>,
    /// The parts that are not in `bytes`, once they are opened; empty if there are none.
    opened: Box<[OpenedPart]>,
    /// Bytes of those parts of which the stored form is in `bytes`, when all are open.
    opened_bytes: usize,
    /// Uncompressed bytes of all parts.
    raw_bytes: usize,
    /// Bytes of pieces read since.
    read_bytes: AtomicUsize,
    bytes: Arc<[u8]>,
    /// Offset of the block in `bytes`, without the header of its frame.
    begin: usize,
    /// Source of the bytes that are not in `bytes`.
    origin: Option<PieceSource>,
}

/// Raw bytes of a piece, once it is opened.
pub(super) type OpenedBytes = OnceLock<Box<[u8]>>;

/// A part that is compressed or not in the bytes of its block.
#[derive(Debug, Default)]
struct OpenedPart {
    whole: OpenedBytes,
    chunks: OnceLock<Box<OpenedChunks>>,
}

/// The chunks of a part, some of which are open.
#[derive(Debug)]
struct OpenedChunks {
    chunks: Chunks,
    slots: Box<[OpenedBytes]>,
}

/// The layout of values of a file's blocks, known since the first of them was read. All have the
/// same one.
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

/// Decodes head and directory of a block and allocates slots for the parts that are opened later.
/// The block is loaded completely, without its frame; with an `origin`, which has the other bytes,
/// only its front is, with its frame.
pub(in crate::file) fn prepare(
    block: Block,
    known: &KnownLayout,
    origin: Option<PieceSource>,
) -> Result<Block, Malformed> {
    let bytes = Arc::clone(block.shared_bytes());
    let (begin, body_bytes) = match &origin {
        Some(origin) => (BLOCK_HEADER_BYTES, origin.body_bytes()),
        None => (0, bytes.len()),
    };
    let body = bytes.get(begin..).ok_or(Malformed)?;
    let head = Head::read(body, body_bytes).ok_or(Malformed)?;
    if origin.is_some() && Some(head.front_end) != body.len().checked_sub(CHECKSUM_BYTES) {
        return Err(Malformed);
    }
    let mut places = Vec::with_capacity(head.part_count());
    let (mut opened_bytes, mut raw_bytes) = (0, 0);
    let mut is_any_elsewhere = false;
    for part in 0..head.part_count() {
        let entry = DirectoryEntry::of(body, &head, part).ok_or(Malformed)?;
        let is_here = body.len() >= entry.end;
        raw_bytes += entry.raw_length;
        if entry.storage == Storage::Plain && is_here {
            let at = |offset| (begin + offset) as u32;
            places.push(PartRange { start: at(entry.start), end: at(entry.end) });
            continue;
        }
        places.push(ELSEWHERE);
        is_any_elsewhere = true;
        if is_here && (origin.is_none() || entry.storage != Storage::Chunks) {
            opened_bytes += entry.raw_length;
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
        opened: (0..slots).map(|_| OpenedPart::default()).collect(),
        opened_bytes,
        raw_bytes,
        read_bytes: AtomicUsize::new(0),
        bytes,
        begin,
        origin,
    }))
}

impl PreparedBlock for ColumnarBlock {
    fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// Counts all loaded parts as if they were open, and those read since.
    fn byte_count(&self) -> usize {
        let tables = size_of_val(&*self.places) + size_of_val(&*self.opened);
        let opened = self.opened_bytes + self.read_bytes.load(Ordering::Relaxed);
        size_of::<ColumnarBlock>() + tables + opened + self.bytes.len()
    }
}

impl ColumnarBlock {
    pub(super) fn cell_count(&self) -> usize {
        self.head.cell_count
    }

    /// Returns the uncompressed bytes of all parts.
    pub(super) fn raw_bytes(&self) -> usize {
        self.raw_bytes
    }

    pub(in crate::file) fn is_plain(&self) -> bool {
        self.head.is_plain
    }

    pub(in crate::file) fn span(&self) -> &Span {
        &self.head.span
    }

    pub(super) fn layout(&self) -> &ReadLayout {
        &self.layout
    }

    /// Prefetches the metadata of the sections of values.
    pub(super) fn prefetch_sections(&self) {
        self.opened.iter().skip(FIRST_SECTION).for_each(prefetch);
    }

    /// Prefetches the fields that a search in the block reads first.
    pub(in crate::file) fn prefetch(&self) {
        // Several cache lines.
        prefetch(&self.head);
        prefetch(&self.cells);
        prefetch(&self.places);
        prefetch(&self.origin);
    }

    /// Returns the block as far as it is loaded.
    fn body(&self) -> &[u8] {
        &self.bytes[self.begin..]
    }

    fn entry(&self, part: usize) -> Result<DirectoryEntry, Malformed> {
        DirectoryEntry::of(self.body(), &self.head, part).ok_or(Malformed)
    }

    /// Returns a part that is uncompressed in the bytes of the block.
    #[inline]
    fn plain_part(&self, part: usize) -> Result<Option<&[u8]>, Malformed> {
        let place = self.places.get(part).ok_or(Malformed)?;
        Ok(self.bytes.get(place.start as usize..place.end as usize))
    }

    #[inline]
    pub(super) fn part(&self, part: usize) -> Result<&[u8], BlockError> {
        match self.plain_part(part)? {
            Some(bytes) => Ok(bytes),
            None => self.opened_part(part),
        }
    }

    /// Returns a part of the keys, which is in the front.
    #[inline]
    fn key_part(&self, part: usize) -> Result<&[u8], Malformed> {
        match self.plain_part(part)? {
            Some(bytes) => Ok(bytes),
            None => self.opened_part(part).map_err(|_| Malformed),
        }
    }

    fn opened_part(&self, part: usize) -> Result<&[u8], BlockError> {
        let slot = self.opened.get(part).ok_or(Malformed)?;
        if let Some(bytes) = slot.whole.get() {
            return Ok(bytes);
        }
        let entry = self.entry(part)?;
        let opened = match entry.storage {
            Storage::Chunks => {
                self.open_chunks(&self.chunks_of(part, &entry)?, entry.raw_length)?
            }
            _ => self.open_piece(&entry)?,
        };
        let is_here = self.origin.is_none() || entry.end <= self.body().len();
        Ok(self.put(&slot.whole, opened, is_here && entry.storage != Storage::Chunks))
    }

    /// Stores opened bytes in their slot. Another reader may have been faster with the same
    /// bytes. Bytes that were not `counted` before increase the block's weight in the cache.
    fn put<'a>(&self, slot: &'a OpenedBytes, opened: Box<[u8]>, is_counted: bool) -> &'a [u8] {
        let byte_count = opened.len();
        let mut is_first = false;
        let bytes = slot.get_or_init(|| {
            is_first = true;
            opened
        });
        if let Some(origin) = &self.origin
            && is_first
            && !is_counted
        {
            self.read_bytes.fetch_add(byte_count, Ordering::Relaxed);
            origin.weigh();
        }
        bytes
    }

    /// Passes a range of the block to `open`, from memory or from the file; the caller verifies
    /// checksums by [`ColumnarBlock::checked`].
    fn with_bytes<R>(
        &self,
        range: Range<usize>,
        open: impl FnOnce(&[u8]) -> Result<R, BlockError>,
    ) -> Result<R, BlockError> {
        match (self.body().get(range.clone()), &self.origin) {
            (Some(bytes), _) => open(bytes),
            (None, Some(origin)) => origin.read(range, open),
            (None, None) => Err(BlockError::Malformed),
        }
    }

    /// Returns a piece without its checksum, which is verified if the piece was just read: in a
    /// completely loaded block that was done.
    fn checked<'a>(&self, piece: &'a [u8]) -> Result<&'a [u8], BlockError> {
        if let Some(origin) = &self.origin {
            origin.check(piece)?;
        }
        let (stored, _) = piece.split_last_chunk::<CHECKSUM_BYTES>().ok_or(Malformed)?;
        Ok(stored)
    }

    /// Opens a part that is not in chunks.
    fn open_piece(&self, entry: &DirectoryEntry) -> Result<Box<[u8]>, BlockError> {
        let is_behind = entry.start > self.head.front_end;
        let checksum = if is_behind { CHECKSUM_BYTES } else { 0 };
        self.with_bytes(entry.start..entry.end + checksum, |stored| {
            let stored = if is_behind { self.checked(stored)? } else { stored };
            if entry.storage == Storage::Repeated {
                let raw = stored.repeat(entry.raw_length / stored.len());
                return match raw.len() == entry.raw_length {
                    true => Ok(raw.into_boxed_slice()),
                    false => Err(BlockError::Malformed),
                };
            }
            let mut raw = vec![0; entry.raw_length].into_boxed_slice();
            decompress_into(entry.storage as u8, stored, &mut raw).ok_or(Malformed)?;
            Ok(raw)
        })
    }

    /// Returns the chunks of a part, if it is in chunks.
    fn chunks(&self, part: usize) -> Result<Option<&OpenedChunks>, Malformed> {
        let slot = self.opened.get(part).ok_or(Malformed)?;
        if let Some(chunks) = slot.chunks.get() {
            return Ok(Some(chunks));
        }
        let entry = self.entry(part)?;
        if entry.storage != Storage::Chunks {
            return Ok(None);
        }
        let chunks = self.chunks_of(part, &entry)?;
        let slots = (0..chunks.count()).map(|_| OnceLock::new()).collect();
        Ok(Some(slot.chunks.get_or_init(|| Box::new(OpenedChunks { chunks, slots }))))
    }

    fn chunks_of(&self, part: usize, entry: &DirectoryEntry) -> Result<Chunks, Malformed> {
        let section = part.checked_sub(FIRST_SECTION);
        let width = match section {
            Some(section) => usize::from(*self.layout.widths().get(section).ok_or(Malformed)?),
            None => 0,
        };
        Chunks::of(self.body(), &self.head, entry, width)
    }

    /// Opens all chunks of a part.
    fn open_chunks(&self, chunks: &Chunks, length: usize) -> Result<Box<[u8]>, BlockError> {
        let body = self.body();
        chunks.check_length(body, length)?;
        let all = chunks.stored_range(body)?;
        self.with_bytes(all.clone(), |stored| {
            let mut raw = vec![0; length].into_boxed_slice();
            let (head, rows) = raw.split_at_mut(chunks.head(body).len());
            head.copy_from_slice(chunks.head(body));
            for chunk in 0..chunks.count() {
                let (at, code) = chunks.stored(body, chunk)?;
                let piece = at.start - all.start..at.end - all.start;
                let piece = self.checked(stored.get(piece).ok_or(Malformed)?)?;
                let rows = rows.get_mut(chunks.raw_range(body, chunk)?).ok_or(Malformed)?;
                decompress_into(code, piece, rows).ok_or(Malformed)?;
            }
            Ok(raw)
        })
    }

    /// Returns the raw bytes of a chunk.
    #[inline]
    fn chunk<'a>(&'a self, opened: &'a OpenedChunks, chunk: usize) -> Result<&'a [u8], BlockError> {
        match opened.slots.get(chunk).ok_or(Malformed)?.get() {
            Some(bytes) => Ok(bytes),
            None => self.open_chunk(opened, chunk),
        }
    }

    #[cold]
    fn open_chunk<'a>(
        &'a self,
        opened: &'a OpenedChunks,
        chunk: usize,
    ) -> Result<&'a [u8], BlockError> {
        let OpenedChunks { chunks, slots } = opened;
        let (at, code) = chunks.stored(self.body(), chunk)?;
        let length = chunks.raw_range(self.body(), chunk)?.len();
        if !can_become(code, at.len() - CHECKSUM_BYTES, length) {
            return Err(BlockError::Malformed);
        }
        let bytes = self.with_bytes(at, |piece| {
            let mut raw = vec![0; length].into_boxed_slice();
            decompress_into(code, self.checked(piece)?, &mut raw).ok_or(Malformed)?;
            Ok(raw)
        })?;
        Ok(self.put(slots.get(chunk).ok_or(Malformed)?, bytes, false))
    }

    /// Prefetches a cell's entries in the sections of values, as far as they are open.
    pub(super) fn prefetch_value(&self, index: usize) {
        for (section, width) in self.layout.widths().iter().enumerate() {
            if let Some(bytes) = self.open_entry(FIRST_SECTION + section, (*width).into(), index)
                && let (Some(first), Some(last)) = (bytes.first(), bytes.last())
            {
                prefetch(first);
                prefetch(last);
            }
        }
    }

    /// As [`ColumnarBlock::entry_of`], for open parts only.
    fn open_entry(&self, part: usize, width: usize, index: usize) -> Option<&[u8]> {
        let whole = match self.plain_part(part).ok()? {
            Some(bytes) => bytes,
            None => {
                let slot = self.opened.get(part)?;
                match (slot.whole.get(), slot.chunks.get()) {
                    (Some(bytes), _) => bytes,
                    (None, Some(opened)) => {
                        let chunk = opened.slots.get(opened.chunks.chunk_of(index))?.get()?;
                        return chunk.get(opened.chunks.range_in_chunk(self.body(), index).ok()?);
                    }
                    (None, None) => return None,
                }
            }
        };
        match width {
            0 => Strings::open(whole, self.head.cell_count).ok()?.get(index).ok(),
            width => whole.get(index * width..(index + 1) * width),
        }
    }

    /// Returns a cell's entry in a part of values, whose entries have `width` bytes, or are
    /// strings if that is 0. In a part in chunks only the cell's chunk is opened.
    fn entry_of(&self, part: usize, width: usize, index: usize) -> Result<&[u8], BlockError> {
        let whole = match self.plain_part(part)? {
            Some(bytes) => bytes,
            None => match self.opened.get(part).and_then(|slot| slot.whole.get()) {
                Some(bytes) => bytes,
                None => match self.chunks(part)? {
                    Some(opened) => {
                        let bytes = self.chunk(opened, opened.chunks.chunk_of(index))?;
                        let range = opened.chunks.range_in_chunk(self.body(), index)?;
                        return Ok(bytes.get(range).ok_or(Malformed)?);
                    }
                    None => self.opened_part(part)?,
                },
            },
        };
        match width {
            0 => Ok(Strings::open(whole, self.head.cell_count)?.get(index)?),
            width => Ok(whole.get(index * width..(index + 1) * width).ok_or(Malformed)?),
        }
    }

    /// Returns a section of which only some rows are read. If they are few, and it is in chunks
    /// that are not open yet, only their chunks are opened: then the section is in `slot`, with
    /// zeros for the other rows.
    pub(super) fn section_of_rows<'a>(
        &'a self,
        section: usize,
        rows: &Range<usize>,
        slot: &'a OpenedBytes,
    ) -> Result<&'a [u8], BlockError> {
        let part = FIRST_SECTION + section;
        let is_open = || self.opened.get(part).is_some_and(|slot| slot.whole.get().is_some());
        let are_few = rows.len() * 2 <= self.head.cell_count;
        if !are_few || rows.is_empty() || self.plain_part(part)?.is_some() || is_open() {
            return self.part(part);
        }
        if let Some(opened) = slot.get() {
            return Ok(opened);
        }
        let Some(opened) = self.chunks(part)? else { return self.part(part) };
        let (chunks, body, length) = (&opened.chunks, self.body(), self.entry(part)?.raw_length);
        chunks.check_length(body, length)?;
        let mut raw = vec![0; length].into_boxed_slice();
        let (head, cells) = raw.split_at_mut(chunks.head(body).len());
        head.copy_from_slice(chunks.head(body));
        for chunk in chunks.chunk_of(rows.start)..=chunks.chunk_of(rows.end - 1) {
            let bytes = self.chunk(opened, chunk)?;
            cells.get_mut(chunks.raw_range(body, chunk)?).ok_or(Malformed)?.copy_from_slice(bytes);
        }
        Ok(slot.get_or_init(|| raw))
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
        let strings = |part| StringsHead::read(self.key_part(part)?, count);
        let numbers = |part| NumbersHead::read(self.key_part(part)?, count);
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
        Ok(self.cells()?.rows.of(self.key_part(ROWS)?))
    }

    pub(super) fn qualifiers(&self) -> Result<Strings<'_>, Malformed> {
        Ok(self.cells()?.qualifiers.of(self.key_part(QUALIFIERS)?))
    }

    pub(super) fn timestamps(&self) -> Result<Numbers<'_>, Malformed> {
        Ok(Numbers { head: self.cells()?.timestamps, part: self.key_part(TIMESTAMPS)? })
    }

    pub(super) fn sequences(&self) -> Result<Numbers<'_>, Malformed> {
        Ok(Numbers { head: self.cells()?.sequences, part: self.key_part(SEQUENCES)? })
    }

    pub(super) fn types(&self) -> Result<Numbers<'_>, Malformed> {
        Ok(Numbers { head: self.cells()?.types, part: self.key_part(TYPES)? })
    }

    pub(super) fn shapes(&self) -> Result<Numbers<'_>, Malformed> {
        Ok(Numbers { head: self.cells()?.shapes, part: self.key_part(SHAPES)? })
    }

    /// Appends the assembled value of a cell; if only some sections are `wanted`, the others are
    /// zeros or empty.
    pub(super) fn append_value(
        &self,
        index: usize,
        wanted: Option<&SectionSelection>,
        out: &mut Vec<u8>,
    ) -> Result<(), BlockError> {
        let Some(shape) = self.shapes()?.get(index).checked_sub(1) else {
            out.extend_from_slice(self.entry_of(WHOLE, 0, index)?);
            return Ok(());
        };
        let failure = Cell::new(None);
        let section = |section: usize, width: usize| {
            if let Some(other) = wanted.and_then(|wanted| wanted.stand_in(section, width)) {
                return Some(other);
            }
            let found = self.entry_of(FIRST_SECTION + section, width, index);
            found.map_err(|error| failure.set(Some(error))).ok()
        };
        match self.layout.join(shape as usize, section, out) {
            Some(()) => Ok(()),
            None => Err(failure.take().unwrap_or(BlockError::Malformed)),
        }
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
