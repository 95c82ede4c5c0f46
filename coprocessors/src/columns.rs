//! Rows as columnar blocks hold them: packed rows cut into sections, and decoded a block at a time.
//!
//! Section 0 of the layout of a family holds null bitmaps, section `1 + n` slot `n`, and the last
//! one what follows the columns in a packed row.

use std::sync::Arc;

use store::ColumnSlice;
use store::ValueLayout;
use store::layout::{EndWidth, Piece, SectionKind, ValueShape};
use types::rowcode::{ColumnReader, Place, RowDecoder, RowLayout, key_forgets};
use types::{DataType, Vector};

use crate::row::RowError;

/// Section of the null bitmaps.
const NULLS: u16 = 0;

fn section_of(slot: usize) -> u16 {
    slot as u16 + 1
}

/// Returns how columnar blocks cut the packed rows of a family.
///
/// # Errors
///
/// `XX001` if a slot of the family belongs to no column.
pub fn value_layout(layout: &RowLayout, family: usize) -> types::Result<ValueLayout> {
    let packed = layout.packed_sections(family)?;
    if packed.widths.is_empty() {
        // Nothing to read apart.
        return Ok(ValueLayout::default());
    }
    let slots = |is_fixed: bool| {
        let slots = packed.widths.iter().enumerate();
        slots
            .filter(move |(_, width)| width.is_some() == is_fixed)
            .map(|(slot, _)| section_of(slot))
    };
    let mut sections = vec![SectionKind::Fixed(packed.null_bytes as u16)];
    sections.extend(packed.widths.iter().map(|width| match width {
        Some(width) => SectionKind::Fixed(*width as u16),
        None => SectionKind::Variable,
    }));
    sections.push(SectionKind::Variable);
    let shapes = packed.headers.iter().map(|header| {
        let mut pieces = Vec::new();
        if header.has_nulls {
            pieces.push(Piece::Fixed(NULLS));
        }
        pieces.extend(slots(true).map(Piece::Fixed));
        let ends = if header.is_wide { EndWidth::Four } else { EndWidth::Two };
        pieces.push(Piece::Variable { ends, sections: slots(false).collect() });
        pieces.push(Piece::Rest(section_of(packed.widths.len())));
        ValueShape { prefix: header.bytes.clone(), pieces }
    });
    Ok(ValueLayout { shapes: shapes.collect(), sections })
}

/// Decodes some columns of many slices: what is wanted of each, found once.
pub(crate) struct SliceDecoder {
    layout: Arc<RowLayout>,
    columns: Vec<usize>,
    /// The layout whose sections are read; values of others are put together again.
    encoded: Vec<u8>,
    /// Whether sections and keys are enough.
    is_direct: bool,
    readers: Vec<(usize, ColumnReader)>,
    /// The key columns, by position in the table and by output.
    key_columns: Vec<usize>,
    key_outputs: Vec<usize>,
}

/// Row keys, end to end.
#[derive(Default)]
struct RowKeys {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<u32>,
}

impl RowKeys {
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
            encoded: value_layout(layout, 0)?.encoded(),
            is_direct: true,
            readers: Vec::new(),
            key_columns: Vec::new(),
            key_outputs: Vec::new(),
        };
        for (output, &column) in columns.iter().enumerate() {
            match (layout.columns[column].place, ColumnReader::new(layout, column)?) {
                (Place::Packed { family, .. }, Some(reader)) => {
                    decoder.is_direct &= family == 0;
                    decoder.readers.push((output, reader));
                }
                _ => {
                    // The looks of such a key are in the packed row.
                    decoder.is_direct &= !key_forgets(layout.columns[column].data_type);
                    decoder.key_columns.push(column);
                    decoder.key_outputs.push(output);
                }
            }
        }
        Ok(decoder)
    }

    /// Appends the rows of a slice of family 0 with these numbers (ascending), or all of them, to
    /// `vectors`, one for each wanted column.
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
        let is_direct = self.is_direct && slice.layout() == &self.encoded[..];
        let mut keys = RowKeys::default();
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
        let mut nulls = slice.fixed(usize::from(NULLS))?;
        if nulls.iter().all(|byte| *byte == 0) {
            nulls = &[];
        }
        // Bytes of the rows wanted, end to end.
        let (mut chosen_nulls, mut chosen) = (Vec::new(), Vec::new());
        if let Some(selection) = selection {
            let width = nulls.len() / slice.row_count();
            choose(nulls, width, selection, &mut chosen_nulls);
            nulls = &chosen_nulls;
        }
        for (output, reader) in &self.readers {
            let (section, vector) = (usize::from(section_of(reader.slot())), &mut vectors[*output]);
            if let Some(width) = reader.width() {
                let mut values = slice.fixed(section)?;
                if let Some(selection) = selection {
                    choose(values, width, selection, &mut chosen);
                    values = &chosen;
                }
                reader.read_fixed(values, nulls, vector)?;
                continue;
            }
            let values = slice.variable(section)?;
            for (place, row) in numbers(selection, slice.row_count()).enumerate() {
                reader.read_variable(place, values.get(row)?, nulls, vector)?;
            }
        }
        Ok(())
    }

    fn decode_keys(&self, keys: &RowKeys, vectors: &mut [Vector]) -> types::Result<()> {
        if self.key_columns.is_empty() {
            return Ok(());
        }
        let decoder = RowDecoder::new(&self.layout, &self.key_columns)?;
        let empty = || Vector::new(DataType::Bool, 0);
        let take = |&output: &usize| std::mem::replace(&mut vectors[output], empty());
        let mut columns: Vec<Vector> = self.key_outputs.iter().map(take).collect();
        let decoded = keys.iter().try_for_each(|key| decoder.decode(key, &[], &mut columns));
        for (&output, vector) in self.key_outputs.iter().zip(columns) {
            vectors[output] = vector;
        }
        decoded
    }

    /// Puts the packed rows together again.
    fn decode_rows(
        &self,
        slice: &ColumnSlice,
        selection: Option<&[u32]>,
        keys: &RowKeys,
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

/// Replaces `out` by the values of some rows, where those of all rows lie end to end.
fn choose(values: &[u8], width: usize, rows: &[u32], out: &mut Vec<u8>) {
    out.clear();
    if !values.is_empty() {
        rows.iter().for_each(|&row| {
            out.extend_from_slice(&values[row as usize * width..][..width]);
        });
    }
}

/// Returns the numbers of the rows wanted of so many.
pub(crate) fn numbers(selection: Option<&[u32]>, row_count: usize) -> impl Iterator<Item = usize> {
    let all = if selection.is_none() { 0..row_count } else { 0..0 };
    all.chain(selection.unwrap_or_default().iter().map(|row| *row as usize))
}
