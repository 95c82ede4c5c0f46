//! Packed rows in columnar blocks: the value layout that cuts them into sections, and the decoder
//! of slices.
//!
//! Section 0 of the layout of a family holds the bytes that follow the columns in a packed row.
//! For every eight slots there is then a section with their byte of the null bitmap, and one
//! section for each slot:
//!
//! ```text
//! residue | nulls of 0-7 | slot 0 | … | slot 7 | nulls of 8-15 | slot 8 | …
//! ```
//!
//! # Invariants
//!
//! 1. A column has the same section number in all layouts that contain it: added columns add
//!    sections at the end. Blocks that were written before are therefore read by their sections,
//!    too.
//! 2. Each schema has its own shapes. A shape's prefix (the header of the packed value) contains
//!    the slot count, which identifies the values that were packed before a column was added.
//!
//! [`value_layout`] asserts in debug builds that the sections of its slots are those of the
//! layout, and that no two shapes have the same prefix.

use std::sync::Arc;

use store::layout::{EndWidth, SectionKind, ValuePiece, ValueShape};
use store::{ColumnSlice, SectionSelection, ValueLayout, VariableColumn};
use types::rowcode::{
    ColumnPlace, ColumnReader, PackedHeader, RowDecoder, RowLayout, SLOTS_A_NULL_BYTE,
    key_loses_form, slot_count,
};
use types::vector::ValueSink;
use types::{DataType, Datum, Vector};

use crate::row::RowError;

/// Section of the bytes that follow the columns.
const REST: u16 = 0;
/// Maximum number of shapes of a layout: those of the last eight schemas. Each block stores the
/// layout.
const SHAPES_MAX: usize = 32;

/// Returns the section of one byte of the null bitmap.
fn section_of_nulls(byte: usize) -> u16 {
    (1 + byte * (SLOTS_A_NULL_BYTE + 1)) as u16
}

fn section_of(slot: usize) -> u16 {
    section_of_nulls(slot / SLOTS_A_NULL_BYTE) + 1 + (slot % SLOTS_A_NULL_BYTE) as u16
}

/// Returns the value layout of the packed rows of a family, with the shapes of this schema and of
/// earlier ones, whose layout was `before`.
///
/// # Errors
///
/// `XX001` if a slot of the family belongs to no column.
pub fn value_layout(
    layout: &RowLayout,
    family: usize,
    before: &ValueLayout,
) -> types::Result<ValueLayout> {
    let packed = layout.packed_sections(family)?;
    let sections = sections(&packed.widths);
    let mut shapes: Vec<ValueShape> =
        packed.headers.iter().map(|header| shape(header, &packed.widths)).collect();
    if sections.starts_with(&before.sections) {
        let older = before
            .shapes
            .iter()
            .filter(|shape| packed.headers.iter().all(|header| header.bytes != shape.prefix));
        shapes.extend(older.cloned());
        shapes.truncate(SHAPES_MAX);
    }
    debug_assert!(
        packed.widths.is_empty()
            || usize::from(section_of(packed.widths.len() - 1)) + 1 == sections.len(),
        "a section for each slot"
    );
    debug_assert!(
        shapes
            .iter()
            .enumerate()
            .all(|(at, shape)| { shapes[..at].iter().all(|other| other.prefix != shape.prefix) }),
        "two shapes with the same prefix"
    );
    Ok(ValueLayout { sections, shapes })
}

/// The sections of values that a get reads, see [`store::Get::sections`].
pub type SectionsOfGet = Option<Arc<[Arc<SectionSelection>]>>;

/// Returns the sections that are needed to decode some columns (positions in table order); all
/// for CELL storage, whose blocks have none.
///
/// # Errors
///
/// `XX001` if a slot of a family belongs to no column.
pub fn wanted_sections(layout: &RowLayout, columns: &[usize]) -> types::Result<SectionsOfGet> {
    if layout.has_column_cells() {
        return Ok(None);
    }
    let readers = ColumnReader::of_columns(layout, columns)?;
    let mut families = Vec::with_capacity(layout.family_count);
    for family in 0..layout.family_count {
        let mut wanted = Vec::new();
        for (&column, reader) in columns.iter().zip(&readers) {
            let column = &layout.columns[column];
            match (column.place, reader) {
                (ColumnPlace::Packed { cell, .. }, Some(reader)) if cell == family => {
                    let nulls = section_of_nulls(reader.null_byte());
                    wanted.extend([nulls, section_of(reader.slot())]);
                }
                // The residue behind the columns holds the original form of such a key.
                (ColumnPlace::Key(_), _) if key_loses_form(&column.data_type) => wanted.push(REST),
                _ => {}
            }
        }
        let sections = sections(&layout.packed_sections(family)?.widths);
        families.push(Arc::new(SectionSelection::new(family as u8, &sections, wanted)));
    }
    Ok(Some(families.into()))
}

fn sections(widths: &[Option<usize>]) -> Vec<SectionKind> {
    let mut sections = vec![SectionKind::Variable];
    for slots in widths.chunks(SLOTS_A_NULL_BYTE) {
        sections.push(SectionKind::Fixed(1));
        sections.extend(slots.iter().map(|width| match width {
            Some(width) => SectionKind::Fixed(*width as u16),
            None => SectionKind::Variable,
        }));
    }
    sections
}

fn shape(header: &PackedHeader, widths: &[Option<usize>]) -> ValueShape {
    let slots = |is_fixed: bool| {
        let slots = widths.iter().enumerate();
        slots
            .filter(move |(_, width)| width.is_some() == is_fixed)
            .map(|(slot, _)| section_of(slot))
    };
    let mut pieces = Vec::new();
    if header.has_nulls {
        let null_bytes = 0..widths.len().div_ceil(SLOTS_A_NULL_BYTE);
        pieces.extend(null_bytes.map(|byte| ValuePiece::Fixed(section_of_nulls(byte))));
    }
    pieces.extend(slots(true).map(ValuePiece::Fixed));
    let ends = if header.is_wide { EndWidth::Four } else { EndWidth::Two };
    pieces.push(ValuePiece::Variable { ends, sections: slots(false).collect() });
    pieces.push(ValuePiece::Rest(REST));
    pieces.shrink_to_fit();
    ValueShape { prefix: header.bytes.clone(), pieces }
}

/// Decoder of some columns for many slices, with column readers that are set up once.
pub(crate) struct SliceDecoder {
    layout: Arc<RowLayout>,
    columns: Vec<usize>,
    /// The width of each section if all columns are present; 0 for variable ones.
    widths: Vec<u16>,
    /// Sections and keys suffice: no packed row has to be reassembled.
    is_direct: bool,
    readers: Vec<(usize, ColumnReader)>,
    /// The key columns, by position in the table and in the output.
    key_columns: Vec<usize>,
    key_outputs: Vec<usize>,
}

/// Row keys, end to end.
#[derive(Default)]
struct RowKeyBuffer {
    bytes: Vec<u8>,
    /// End offset of each key.
    ends: Vec<u32>,
}

impl RowKeyBuffer {
    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let key = &self.bytes[start..end as usize];
            start = end as usize;
            key
        })
    }
}

impl SliceDecoder {
    /// Returns the decoder of `columns` (positions in table order).
    ///
    /// # Errors
    ///
    /// `XX001` if a slot of a family belongs to no column.
    pub(crate) fn new(layout: &Arc<RowLayout>, columns: &[usize]) -> types::Result<SliceDecoder> {
        let mut decoder = SliceDecoder {
            layout: Arc::clone(layout),
            columns: columns.to_vec(),
            widths: section_widths(layout)?,
            is_direct: true,
            readers: Vec::new(),
            key_columns: Vec::new(),
            key_outputs: Vec::new(),
        };
        let readers = ColumnReader::of_columns(layout, columns)?;
        for (output, (&column, reader)) in columns.iter().zip(readers).enumerate() {
            match (layout.columns[column].place, reader) {
                (ColumnPlace::Packed { cell, .. }, Some(reader)) => {
                    decoder.is_direct &= cell == 0;
                    decoder.readers.push((output, reader));
                }
                _ => {
                    // The packed row holds the original form of such a key.
                    decoder.is_direct &= !key_loses_form(&layout.columns[column].data_type);
                    decoder.key_columns.push(column);
                    decoder.key_outputs.push(output);
                }
            }
        }
        Ok(decoder)
    }

    /// Appends the rows of a slice of family 0 with these numbers (ascending), or all rows, to
    /// `vectors`, one for each requested column.
    ///
    /// # Errors
    ///
    /// Those of the slice; `XX001` if the bytes do not decode.
    pub(crate) fn decode(
        &self,
        slice: &ColumnSlice,
        selection: Option<&[u32]>,
        vectors: &mut [Vector],
    ) -> Result<(), RowError> {
        if self.columns.is_empty() {
            return Ok(());
        }
        // A block may have another layout if the rows of the table have been rewritten since.
        let is_known = self.widths.starts_with(slice.section_widths());
        let is_direct = self.is_direct && is_known;
        let mut keys = RowKeyBuffer::default();
        if !is_direct || !self.key_columns.is_empty() {
            let rows = numbers(selection, slice.row_count());
            slice.append_row_keys(rows, &mut keys.bytes, &mut keys.ends)?;
        }
        if !is_direct {
            return self.decode_rows(slice, selection, &keys, vectors);
        }
        self.decode_keys(&keys, vectors)?;
        if self.readers.is_empty() {
            return Ok(());
        }
        let slots = SlotCounts::of(slice)?;
        for (output, reader) in &self.readers {
            let vector = &mut vectors[*output];
            if reader.slot() < slots.least() {
                decode_slot(reader, slice, selection, vector)?;
            } else {
                let column = &self.layout.columns[self.columns[*output]];
                decode_added(reader, &column.missing, (slice, &slots), selection, vector)?;
            }
        }
        Ok(())
    }

    fn decode_keys(&self, keys: &RowKeyBuffer, vectors: &mut [Vector]) -> types::Result<()> {
        if self.key_columns.is_empty() {
            return Ok(());
        }
        let decoder = RowDecoder::new(&self.layout, &self.key_columns)?;
        let empty = || Vector::new(&DataType::Bool, 0);
        let take = |&output: &usize| std::mem::replace(&mut vectors[output], empty());
        let mut columns: Vec<Vector> = self.key_outputs.iter().map(take).collect();
        let decoded = keys.iter().try_for_each(|key| decoder.decode(key, &[], &mut columns));
        for (&output, vector) in self.key_outputs.iter().zip(columns) {
            vectors[output] = vector;
        }
        decoded
    }

    /// Reassembles the packed rows and decodes them.
    fn decode_rows(
        &self,
        slice: &ColumnSlice,
        selection: Option<&[u32]>,
        keys: &RowKeyBuffer,
        vectors: &mut [Vector],
    ) -> Result<(), RowError> {
        let decoder = RowDecoder::new(&self.layout, &self.columns)?;
        let mut packed = Vec::new();
        for (row, key) in numbers(selection, slice.row_count()).zip(keys.iter()) {
            packed.clear();
            slice.append_value(row, &mut packed)?;
            decoder.decode(key, &[Some(&packed)], vectors)?;
        }
        Ok(())
    }
}

/// Returns the width of each section of the blocks of family 0 if all columns are present.
fn section_widths(layout: &RowLayout) -> types::Result<Vec<u16>> {
    let sections = sections(&layout.packed_sections(0)?.widths);
    let width = |section: &SectionKind| match section {
        SectionKind::Fixed(width) => *width,
        SectionKind::Variable => 0,
    };
    Ok(sections.iter().map(width).collect())
}

/// The number of slots of the rows of a slice.
enum SlotCounts {
    /// The same for all rows.
    Only(usize),
    /// The minimum, and the number of each row.
    Mixed(usize, Vec<usize>),
}

impl SlotCounts {
    fn of(slice: &ColumnSlice) -> Result<SlotCounts, RowError> {
        let counts: Vec<usize> =
            slice.shape_prefixes().map(slot_count).collect::<types::Result<_>>()?;
        // Each row of a plain block follows a shape.
        let of_shape = |shape: usize| counts.get(shape).copied().unwrap_or(0);
        if let [first, rest @ ..] = &counts[..]
            && rest.iter().all(|count| count == first)
        {
            return Ok(SlotCounts::Only(*first));
        }
        if let Some(shape) = slice.only_shape()? {
            return Ok(SlotCounts::Only(of_shape(shape)));
        }
        let counts: Vec<usize> = slice.shapes()?.map(of_shape).collect();
        Ok(SlotCounts::Mixed(counts.iter().copied().min().unwrap_or(0), counts))
    }

    fn least(&self) -> usize {
        match self {
            SlotCounts::Only(count) | SlotCounts::Mixed(count, _) => *count,
        }
    }

    fn most(&self) -> usize {
        match self {
            SlotCounts::Only(count) => *count,
            SlotCounts::Mixed(_, counts) => counts.iter().copied().max().unwrap_or(0),
        }
    }

    fn of_row(&self, row: usize) -> usize {
        match self {
            SlotCounts::Only(count) => *count,
            SlotCounts::Mixed(_, counts) => counts.get(row).copied().unwrap_or(0),
        }
    }
}

/// Returns the bytes of the null bitmap for a reader; empty if no row has a NULL there.
fn nulls_of<'s>(reader: &ColumnReader, slice: &'s ColumnSlice) -> store::Result<&'s [u8]> {
    let nulls = slice.fixed(usize::from(section_of_nulls(reader.null_byte())))?;
    Ok(if nulls.iter().all(|byte| *byte == 0) { &[] } else { nulls })
}

/// Appends a column that all rows of a slice have.
fn decode_slot(
    reader: &ColumnReader,
    slice: &ColumnSlice,
    selection: Option<&[u32]>,
    vector: &mut Vector,
) -> Result<(), RowError> {
    let section = usize::from(section_of(reader.slot()));
    let mut nulls = nulls_of(reader, slice)?;
    // Bytes of the selected rows, end to end.
    let (mut chosen_nulls, mut chosen) = (Vec::new(), Vec::new());
    if let Some(selection) = selection {
        choose(nulls, 1, selection, &mut chosen_nulls);
        nulls = &chosen_nulls;
    }
    let Some(width) = reader.width() else {
        let values = slice.variable(section)?;
        if selection.is_none() && nulls.is_empty() {
            let mut ends = Vec::with_capacity(slice.row_count());
            let bytes = values.all(&mut ends)?;
            if reader.read_texts(bytes, &ends, vector)? {
                return Ok(());
            }
        }
        for (place, row) in numbers(selection, slice.row_count()).enumerate() {
            reader.read_one(place, values.get(row)?, nulls, vector)?;
        }
        return Ok(());
    };
    let mut values = slice.fixed(section)?;
    if let Some(selection) = selection {
        choose(values, width, selection, &mut chosen);
        values = &chosen;
    }
    Ok(reader.read_fixed(values, nulls, vector)?)
}

/// Appends a column that was added after some rows of a slice were written.
fn decode_added(
    reader: &ColumnReader,
    missing: &Datum,
    (slice, slots): (&ColumnSlice, &SlotCounts),
    selection: Option<&[u32]>,
    vector: &mut Vector,
) -> Result<(), RowError> {
    let rows = numbers(selection, slice.row_count());
    // The file may be older than the column and have no section for it.
    if slots.most() <= reader.slot() {
        rows.for_each(|_| vector.put_datum(missing));
        return Ok(());
    }
    let section = usize::from(section_of(reader.slot()));
    let nulls = nulls_of(reader, slice)?;
    let values = match reader.width() {
        Some(width) => SlotValues::Fixed(slice.fixed(section)?, width),
        None => SlotValues::Variable(slice.variable(section)?),
    };
    for row in rows {
        if slots.of_row(row) <= reader.slot() {
            vector.put_datum(missing);
            continue;
        }
        let bytes = match &values {
            SlotValues::Fixed(bytes, width) => &bytes[row * width..][..*width],
            SlotValues::Variable(values) => values.get(row)?,
        };
        reader.read_one(row, bytes, nulls, vector)?;
    }
    Ok(())
}

/// The values of a slot.
enum SlotValues<'s> {
    /// Fixed width in bytes.
    Fixed(&'s [u8], usize),
    Variable(VariableColumn<'s>),
}

/// Replaces `out` with the values of some rows; `values` holds those of all rows, end to end.
fn choose(values: &[u8], width: usize, rows: &[u32], out: &mut Vec<u8>) {
    out.clear();
    if !values.is_empty() {
        rows.iter().for_each(|&row| {
            out.extend_from_slice(&values[row as usize * width..][..width]);
        });
    }
}

/// Returns the numbers of the selected rows out of `row_count`.
pub(crate) fn numbers(selection: Option<&[u32]>, row_count: usize) -> impl Iterator<Item = usize> {
    let all = if selection.is_none() { 0..row_count } else { 0..0 };
    all.chain(selection.unwrap_or_default().iter().map(|row| *row as usize))
}
