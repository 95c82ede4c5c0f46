//! Builds columnar blocks, one after the other.
//!
//! A cell is taken apart when it is added; what is left for the end of the block is to compress.

use std::ops::Range;

use crate::cell::{CellType, KeyParts};
use crate::descriptor::Compression;
use crate::file::columnar::numbers::append_numbers;
use crate::file::columnar::strings::StringsBuilder;
use crate::file::columnar::{CELLS_MAX, ENTRY_BYTES, FIRST_SECTION, PLAIN, Storage};
use crate::file::compression::{Compressor, LZ4, ZSTD};
use crate::file::encoding::BlockBuilder;
use crate::layout::{SectionKind, ValueLayout};

/// Builds columnar blocks.
pub(in crate::file) struct ColumnarBuilder {
    layout: ValueLayout,
    encoded_layout: Vec<u8>,
    compression: Compression,
    compressor: Compressor,
    /// For each shape, whether it has each section.
    present: Vec<Vec<bool>>,
    rows: StringsBuilder,
    /// Bytes that all rows begin with.
    row_prefix: usize,
    qualifiers: StringsBuilder,
    qualifier_prefix: usize,
    timestamps: Vec<u64>,
    sequences: Vec<u64>,
    types: Vec<u64>,
    shapes: Vec<u64>,
    whole: StringsBuilder,
    sections: Vec<SectionBuilder>,
    /// Of the value that is being added.
    parts: Vec<Range<usize>>,
    /// Of keys and values.
    byte_count: usize,
    is_plain: bool,
    scratch: Vec<u8>,
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
    /// Appends a part. Opening it costs more than reading it, so it must get smaller by an eighth.
    fn append_part(&mut self, compression: Compression, raw: &[u8], out: &mut Vec<u8>) -> Storage {
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
        self.head(out);
        let part_count = FIRST_SECTION + self.sections.len();
        let directory = out.len();
        out.resize(directory + part_count * ENTRY_BYTES, 0);
        let mut raw = std::mem::take(&mut self.scratch);
        for part in 0..part_count {
            raw.clear();
            let mut unit = 0;
            match part {
                super::LAYOUT => raw.extend_from_slice(&self.encoded_layout),
                super::ROWS => self.rows.append(self.row_prefix, &mut raw),
                super::QUALIFIERS => self.qualifiers.append(self.qualifier_prefix, &mut raw),
                super::TIMESTAMPS => append_numbers(&self.timestamps, &mut raw),
                super::SEQUENCES => append_numbers(&self.sequences, &mut raw),
                super::TYPES => append_numbers(&self.types, &mut raw),
                super::SHAPES => append_numbers(&self.shapes, &mut raw),
                super::WHOLE => self.whole.append(0, &mut raw),
                _ => match &self.sections[part - FIRST_SECTION] {
                    SectionBuilder::Fixed { width, bytes } => {
                        unit = *width;
                        raw.extend_from_slice(bytes);
                    }
                    SectionBuilder::Variable(strings) => strings.append(0, &mut raw),
                },
            }
            let storage = match append_repeated(&raw, unit, out) {
                Some(storage) => storage,
                None if part == super::LAYOUT => self.append_part(Compression::None, &raw, out),
                None => self.append_part(self.compression, &raw, out),
            };
            let end = (out.len() - directory - part_count * ENTRY_BYTES) as u32;
            let entry = &mut out[directory + part * ENTRY_BYTES..][..ENTRY_BYTES];
            entry[..4].copy_from_slice(&end.to_le_bytes());
            entry[4..8].copy_from_slice(&(raw.len() as u32).to_le_bytes());
            entry[8] = storage as u8;
        }
        self.scratch = raw;
        self.clear();
    }
}

/// Appends one entry of a part whose entries, of `unit` bytes each, are all the same.
fn append_repeated(raw: &[u8], unit: usize, out: &mut Vec<u8>) -> Option<Storage> {
    if unit > 0 && raw.len() > unit && raw[unit..] == raw[..raw.len() - unit] {
        out.extend_from_slice(&raw[..unit]);
        return Some(Storage::Repeated);
    }
    None
}
