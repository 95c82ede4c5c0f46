//! Builder of columnar blocks.
//!
//! A cell is divided into parts when it is added; finishing a block only compresses them.

use std::ops::Range;

use crate::cell::{CellType, KeyParts};
use crate::descriptor::{Compression, DataBlockEncoding};
use crate::file::columnar::numbers::append_numbers;
use crate::file::columnar::strings::StringsBuilder;
use crate::file::columnar::{
    CELLS_MAX, ENTRY_BYTES, FIRST_SECTION, FRONT_LENGTH_AT, HEAD_BYTES, PLAIN, Storage,
};
use crate::file::compression::{Compressor, LZ4, ZSTD};
use crate::file::encoding::{BlockBuilder, encoding_code};
use crate::file::format::{BLOCK_HEADER_BYTES, CHECKSUM_BYTES, data_header, u32_at};
use crate::layout::{SectionKind, ValueLayout};

/// Limit of the front up to which sections are stored in it: the front is read for every row.
const FRONT_BYTES: usize = 8 << 10;
/// Approximate raw bytes of a chunk; a part has at least two.
const CHUNK_BYTES: usize = 4 << 10;
/// The same for compression by zstd.
const ZSTD_CHUNK_BYTES: usize = 16 << 10;

/// Builds columnar blocks.
pub(in crate::file) struct ColumnarBuilder {
    layout: ValueLayout,
    encoded_layout: Vec<u8>,
    compression: Compression,
    compressor: Compressor,
    /// For each shape, the sections that it has.
    present: Vec<Vec<bool>>,
    rows: StringsBuilder,
    /// Length of the common prefix of all rows.
    row_prefix: usize,
    qualifiers: StringsBuilder,
    qualifier_prefix: usize,
    timestamps: Vec<u64>,
    sequences: Vec<u64>,
    types: Vec<u64>,
    shapes: Vec<u64>,
    whole: StringsBuilder,
    sections: Vec<SectionBuilder>,
    /// Parts of the value that is being added.
    parts: Vec<Range<usize>>,
    /// Bytes of keys and values.
    byte_count: usize,
    is_plain: bool,
    scratch: Vec<u8>,
    behind: Vec<u8>,
}

enum SectionBuilder {
    Fixed { width: usize, bytes: Vec<u8> },
    Variable(StringsBuilder),
}

impl SectionBuilder {
    fn push(&mut self, part: Option<&[u8]>) {
        match self {
            SectionBuilder::Fixed { width, bytes } => match part {
                Some(part) => bytes.extend_from_slice(part),
                None => bytes.resize(bytes.len() + *width, 0),
            },
            SectionBuilder::Variable(strings) => strings.push(part.unwrap_or_default()),
        }
    }
}

impl ColumnarBuilder {
    /// Appends the raw bytes of a part and returns the width of its entries, 0 for strings and
    /// numbers.
    fn append_raw(&self, part: usize, raw: &mut Vec<u8>) -> usize {
        match part {
            super::LAYOUT => raw.extend_from_slice(&self.encoded_layout),
            super::ROWS => self.rows.append(self.row_prefix, raw),
            super::QUALIFIERS => self.qualifiers.append(self.qualifier_prefix, raw),
            super::TIMESTAMPS => append_numbers(&self.timestamps, raw),
            super::SEQUENCES => append_numbers(&self.sequences, raw),
            super::TYPES => append_numbers(&self.types, raw),
            super::SHAPES => append_numbers(&self.shapes, raw),
            super::WHOLE => self.whole.append(0, raw),
            _ => match &self.sections[part - FIRST_SECTION] {
                SectionBuilder::Fixed { width, bytes } => {
                    raw.extend_from_slice(bytes);
                    return *width;
                }
                SectionBuilder::Variable(strings) => strings.append(0, raw),
            },
        }
        0
    }

    /// Appends a part: to the front, or behind it as a piece or in chunks.
    fn append_part(
        &mut self,
        part: usize,
        unit: usize,
        raw: &[u8],
        divided: &mut DividedBlock<'_>,
    ) -> StoredPart {
        let start = divided.out.len();
        if let Some(storage) = append_repeated(raw, unit, divided.out) {
            return divided.in_front(start, storage, 0);
        }
        let compression = if part == super::LAYOUT { Compression::None } else { self.compression };
        if part < super::WHOLE {
            let storage = self.compress(compression, raw, divided.out);
            return divided.in_front(start, storage, 0);
        }
        let chunk_bytes = match self.compression {
            Compression::Zstd => ZSTD_CHUNK_BYTES,
            Compression::None | Compression::Lz4 => CHUNK_BYTES,
        };
        if raw.len() > 2 * chunk_bytes && self.types.len() > 1 {
            let bits = chunk_bits(self.types.len(), raw.len(), chunk_bytes);
            self.append_chunks(part, unit, raw, (bits, divided));
            return divided.in_front(start, Storage::Chunks, bits);
        }
        let behind = divided.behind.len();
        let mut stored = std::mem::take(&mut divided.behind);
        let storage = self.compress(compression, raw, &mut stored);
        divided.behind = stored;
        let length = divided.behind.len() - behind;
        if start - divided.start + length <= FRONT_BYTES {
            divided.out.extend_from_slice(&divided.behind[behind..]);
            divided.behind.truncate(behind);
            return divided.in_front(start, storage, 0);
        }
        append_checksum(&mut divided.behind, behind);
        StoredPart { start: behind, length, storage, chunk_bits: 0, is_behind: true }
    }

    /// Appends a part in chunks of `1 << bits` rows: its table to the front, the chunks behind
    /// it.
    fn append_chunks(
        &mut self,
        part: usize,
        unit: usize,
        raw: &[u8],
        (bits, divided): (u8, &mut DividedBlock<'_>),
    ) {
        let count = self.types.len();
        let strings = match part.checked_sub(FIRST_SECTION).map(|section| &self.sections[section]) {
            None => Some(&self.whole),
            Some(SectionBuilder::Variable(strings)) => Some(strings),
            Some(SectionBuilder::Fixed { .. }) => None,
        };
        let end_of =
            |index: usize| strings.map_or((index + 1) * unit, |strings| strings.end(index));
        let ends: Vec<usize> = (1..=count.div_ceil(1 << bits))
            .map(|chunk| end_of((chunk << bits).min(count) - 1))
            .collect();
        let (head, mut rows) = raw.split_at(raw.len() - end_of(count - 1));
        divided.out.extend_from_slice(&(head.len() as u32).to_le_bytes());
        divided.out.extend_from_slice(head);
        divided.begins_behind.push(divided.out.len());
        divided.out.extend_from_slice(&(divided.behind.len() as u32).to_le_bytes());
        let first = divided.behind.len();
        let mut begin = 0;
        for end in ends {
            let chunk;
            (chunk, rows) = rows.split_at(end - begin);
            begin = end;
            let at = divided.behind.len();
            let storage = self.compress(self.compression, chunk, &mut divided.behind);
            append_checksum(&mut divided.behind, at);
            let end = (divided.behind.len() - first) as u32;
            divided.out.extend_from_slice(&end.to_le_bytes());
            divided.out.push(storage as u8);
        }
    }

    /// Appends bytes, compressed only if that saves at least an eighth, because decompression
    /// costs more than reading.
    fn compress(&mut self, compression: Compression, raw: &[u8], out: &mut Vec<u8>) -> Storage {
        let limit = raw.len() - raw.len() / 8;
        match self.compressor.append_below(limit, compression, raw, out) {
            Some(LZ4) => Storage::Lz4,
            Some(ZSTD) => Storage::Zstd,
            _ => {
                out.extend_from_slice(raw);
                Storage::Plain
            }
        }
    }

    pub(in crate::file) fn new(layout: &ValueLayout, compression: Compression) -> ColumnarBuilder {
        let mut encoded_layout = Vec::new();
        layout.encode(&mut encoded_layout);
        let sections = layout.sections.iter().map(|kind| match kind {
            SectionKind::Fixed(width) => {
                SectionBuilder::Fixed { width: usize::from(*width), bytes: Vec::new() }
            }
            SectionKind::Variable => SectionBuilder::Variable(StringsBuilder::default()),
        });
        ColumnarBuilder {
            encoded_layout,
            compression,
            compressor: Compressor::default(),
            present: layout.shapes.iter().map(|shape| layout.sections_of(shape)).collect(),
            rows: StringsBuilder::default(),
            row_prefix: 0,
            qualifiers: StringsBuilder::default(),
            qualifier_prefix: 0,
            timestamps: Vec::new(),
            sequences: Vec::new(),
            types: Vec::new(),
            shapes: Vec::new(),
            whole: StringsBuilder::default(),
            sections: sections.collect(),
            parts: vec![0..0; layout.sections.len()],
            byte_count: 0,
            is_plain: true,
            scratch: Vec::new(),
            behind: Vec::new(),
            layout: layout.clone(),
        }
    }

    fn add_value(&mut self, value: &[u8], cell_type: CellType) {
        let shape = match cell_type {
            CellType::Put => self.layout.cut(value, &mut self.parts),
            _ => None,
        };
        self.shapes.push(shape.map_or(0, |shape| shape as u64 + 1));
        let Some(shape) = shape else {
            self.is_plain = false;
            self.whole.push(value);
            self.sections.iter_mut().for_each(|section| section.push(None));
            return;
        };
        self.whole.push(&[]);
        let present = &self.present[shape];
        for (number, section) in self.sections.iter_mut().enumerate() {
            section.push(present[number].then(|| &value[self.parts[number].clone()]));
        }
    }

    /// Asserts the invariants of the block.
    fn check(&self) {
        let count = self.types.len();
        assert!((1..=CELLS_MAX).contains(&count), "a block has from 1 to {CELLS_MAX} cells");
        assert!(
            [&self.timestamps, &self.sequences, &self.shapes].iter().all(|of| of.len() == count),
            "an entry of numbers for each cell"
        );
        assert!(
            [&self.rows, &self.qualifiers, &self.whole].iter().all(|of| of.count() == count),
            "an entry of strings for each cell"
        );
        assert!(
            self.sections.iter().all(|section| match section {
                SectionBuilder::Fixed { width, bytes } => bytes.len() == width * count,
                SectionBuilder::Variable(strings) => strings.count() == count,
            }),
            "an entry of each section for each cell"
        );
        if self.is_plain {
            debug_assert!(self.types.iter().all(|code| *code == CellType::Put as u64));
            debug_assert!(self.shapes.iter().all(|shape| *shape > 0), "a value is stored whole");
        }
    }

    fn head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.types.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.sections.len() as u16).to_le_bytes());
        out.extend_from_slice(&[if self.is_plain { PLAIN } else { 0 }, 0]);
        let timestamps = || self.timestamps.iter().map(|&sortable| timestamp_of(sortable));
        let least = timestamps().min().unwrap_or_default();
        let greatest = timestamps().max().unwrap_or_default();
        let last_sequence = self.sequences.iter().copied().max().unwrap_or_default();
        out.extend_from_slice(&least.to_le_bytes());
        out.extend_from_slice(&greatest.to_le_bytes());
        out.extend_from_slice(&last_sequence.to_le_bytes());
        // Length of the front, and zeros.
        out.extend_from_slice(&[0; HEAD_BYTES - FRONT_LENGTH_AT]);
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.qualifiers.clear();
        for numbers in
            [&mut self.timestamps, &mut self.sequences, &mut self.types, &mut self.shapes]
        {
            numbers.clear();
        }
        self.whole.clear();
        for section in &mut self.sections {
            match section {
                SectionBuilder::Fixed { bytes, .. } => bytes.clear(),
                SectionBuilder::Variable(strings) => strings.clear(),
            }
        }
        self.byte_count = 0;
        self.is_plain = true;
    }
}

/// A block under construction: the front, and the pieces behind it.
struct DividedBlock<'a> {
    /// Offset of the block in `out`.
    start: usize,
    /// The front.
    out: &'a mut Vec<u8>,
    /// The pieces behind it.
    behind: Vec<u8>,
    /// Offsets in `out` of positions relative to the pieces, which are resolved when the front is
    /// finished.
    begins_behind: Vec<usize>,
}

/// Directory entry of a part.
struct StoredPart {
    start: usize,
    length: usize,
    storage: Storage,
    chunk_bits: u8,
    /// True if `start` is relative to the first piece.
    is_behind: bool,
}

impl DividedBlock<'_> {
    /// Returns the entry of the part that was just added to the front.
    fn in_front(&self, start: usize, storage: Storage, chunk_bits: u8) -> StoredPart {
        let length = self.out.len() - start;
        let start = start - self.start;
        StoredPart { start, length, storage, chunk_bits, is_behind: false }
    }

    /// Writes a part's entry into the directory.
    fn enter(&mut self, part: usize, stored: &StoredPart, raw_length: usize) {
        let at = self.start + HEAD_BYTES + part * ENTRY_BYTES;
        if stored.is_behind {
            self.begins_behind.push(at);
        }
        let entry = &mut self.out[at..at + ENTRY_BYTES];
        entry[..4].copy_from_slice(&(stored.start as u32).to_le_bytes());
        entry[4..8].copy_from_slice(&(stored.length as u32).to_le_bytes());
        entry[8..12].copy_from_slice(&(raw_length as u32).to_le_bytes());
        entry[12] = stored.storage as u8;
        entry[13] = stored.chunk_bits;
    }

    /// Finishes the front, appends the pieces, and returns their buffer.
    fn finish(self) -> Vec<u8> {
        let DividedBlock { start, out, behind, begins_behind } = self;
        let front_end = out.len() - start + CHECKSUM_BYTES;
        for at in begins_behind {
            let begin = u32_at(out, at).unwrap_or_default() + front_end as u32;
            out[at..at + 4].copy_from_slice(&begin.to_le_bytes());
        }
        let front_bytes = (BLOCK_HEADER_BYTES + front_end) as u32;
        out[start + FRONT_LENGTH_AT..][..4].copy_from_slice(&front_bytes.to_le_bytes());
        let encoding = encoding_code(DataBlockEncoding::Columnar);
        let header = crc32c::crc32c(&data_header(encoding, front_end + behind.len()));
        let checksum = crc32c::crc32c_append(header, &out[start..]);
        out.extend_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(&behind);
        behind
    }
}

/// Returns the bytes of the front of a block, including the header of its frame.
pub(in crate::file) fn front_bytes(raw: &[u8]) -> u32 {
    u32_at(raw, FRONT_LENGTH_AT).unwrap_or_default()
}

/// Appends the checksum of all bytes from `start` on.
fn append_checksum(out: &mut Vec<u8>, start: usize) {
    let checksum = crc32c::crc32c(&out[start..]);
    out.extend_from_slice(&checksum.to_le_bytes());
}

/// Returns the binary logarithm of the rows of a chunk of about `chunk_bytes` bytes.
fn chunk_bits(row_count: usize, raw_bytes: usize, chunk_bytes: usize) -> u8 {
    (row_count * chunk_bytes / raw_bytes).max(1).ilog2() as u8
}

/// Returns a number that sorts as the timestamp does, so that differences are small.
pub(super) fn sortable(timestamp: i64) -> u64 {
    timestamp as u64 ^ (1 << 63)
}

/// Returns the timestamp of [`sortable`].
pub(super) fn timestamp_of(sortable: u64) -> i64 {
    (sortable ^ (1 << 63)) as i64
}

fn shared(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

impl BlockBuilder for ColumnarBuilder {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        let parts = KeyParts::decode(key).expect("the writer has checked that it is a key");
        match (self.rows.last(), self.qualifiers.last()) {
            (Some(row), Some(qualifier)) => {
                self.row_prefix = self.row_prefix.min(shared(row, parts.row));
                self.qualifier_prefix =
                    self.qualifier_prefix.min(shared(qualifier, parts.qualifier));
                self.is_plain &= row != parts.row && qualifier == parts.qualifier;
                debug_assert!((row, qualifier) <= (parts.row, parts.qualifier), "cells ascend");
            }
            _ => {
                self.row_prefix = parts.row.len();
                // Longer ones do not fit the two bytes of a prefix's length.
                self.qualifier_prefix = parts.qualifier.len().min(usize::from(u16::MAX));
            }
        }
        self.rows.push(parts.row);
        self.qualifiers.push(parts.qualifier);
        self.timestamps.push(sortable(parts.timestamp.0));
        self.sequences.push(parts.sequence.0);
        self.types.push(parts.cell_type as u64);
        self.add_value(value, parts.cell_type);
        self.byte_count += key.len() + value.len();
    }

    fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    fn byte_count(&self) -> usize {
        if self.types.len() < CELLS_MAX { self.byte_count } else { usize::MAX / 2 }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.check();
        let start = out.len();
        self.head(out);
        let mut divided = DividedBlock {
            start,
            out,
            behind: std::mem::take(&mut self.behind),
            begins_behind: Vec::new(),
        };
        divided.behind.clear();
        let part_count = FIRST_SECTION + self.sections.len();
        let directory_end = start + HEAD_BYTES + part_count * ENTRY_BYTES;
        divided.out.resize(directory_end, 0);
        let mut raw = std::mem::take(&mut self.scratch);
        for part in 0..part_count {
            raw.clear();
            let unit = self.append_raw(part, &mut raw);
            let entry = self.append_part(part, unit, &raw, &mut divided);
            divided.enter(part, &entry, raw.len());
        }
        self.scratch = raw;
        self.behind = divided.finish();
        self.clear();
    }
}

/// Appends one entry of a part whose entries, of `unit` bytes each, are all equal.
fn append_repeated(raw: &[u8], unit: usize, out: &mut Vec<u8>) -> Option<Storage> {
    if unit > 0 && raw.len() > unit && raw[unit..] == raw[..raw.len() - unit] {
        out.extend_from_slice(&raw[..unit]);
        return Some(Storage::Repeated);
    }
    None
}
