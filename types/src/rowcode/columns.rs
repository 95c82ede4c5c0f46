//! Packed rows in sections, for columnar storage, which stores the null bitmap bytes of many rows
//! together, and the values of each slot.
//!
//! [`PackedSections`] describes the sections of a packed row, independently of the store;
//! [`ColumnReader`] decodes many values of one slot into a vector.

use super::packed::{self, CellPlan, Slot};
use super::{ColumnPlace, RowLayout, corrupt, value};
use crate::datatype::DataType;
use crate::error::Result;
use crate::vector::{Vector, VectorData};

/// The structure of the packed rows of a family.
///
/// ```text
/// header | null bitmap, if there are NULLs | fixed slots, in order
/// | ends of the variable slots | variable slots | residues
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedSections {
    /// The width of each slot in bytes; `None` if it is variable.
    pub widths: Vec<Option<usize>>,
    /// All possible headers of packed rows with this schema.
    pub headers: Vec<PackedHeader>,
}

/// A header of a packed row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedHeader {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// A null bitmap follows.
    pub has_nulls: bool,
    /// Ends have 4 bytes, not 2.
    pub is_wide: bool,
}

impl RowLayout {
    /// Returns the structure of the packed rows of a family.
    ///
    /// # Errors
    ///
    /// `XX001` if a slot of the family belongs to no column.
    pub fn packed_sections(&self, family: usize) -> Result<PackedSections> {
        let plan = CellPlan::new(self, family)?;
        let headers = [(false, false), (true, false), (false, true), (true, true)];
        let header = |(has_nulls, is_wide)| {
            let mut bytes = Vec::new();
            packed::write_header(&plan, has_nulls, is_wide, &mut bytes);
            PackedHeader { bytes, has_nulls, is_wide }
        };
        Ok(PackedSections {
            widths: plan.slots.iter().map(|slot| slot.width).collect(),
            headers: headers.map(header).into(),
        })
    }
}

/// Slots per byte of the null bitmap.
pub const SLOTS_A_NULL_BYTE: usize = 8;

/// Returns the number of slots of a packed row, given the row or its header.
///
/// # Errors
///
/// `XX001` if it is malformed.
pub fn slot_count(header: &[u8]) -> Result<usize> {
    packed::slot_count(header)
}

/// Decoder of many values of one slot.
#[derive(Debug, Clone)]
pub struct ColumnReader {
    slot: Slot,
}

impl ColumnReader {
    /// Returns the readers of some columns (indexes in table order); `None` for key columns.
    ///
    /// # Errors
    ///
    /// `XX001` if a slot of a family belongs to no column.
    pub fn of_columns(layout: &RowLayout, columns: &[usize]) -> Result<Vec<Option<ColumnReader>>> {
        let mut plans: Vec<(usize, CellPlan)> = Vec::new();
        let mut readers = Vec::with_capacity(columns.len());
        for &column in columns {
            let ColumnPlace::Packed { cell, slot } = layout.columns[column].place else {
                readers.push(None);
                continue;
            };
            let known = plans.iter().position(|(of, _)| *of == cell);
            let at = match known {
                Some(at) => at,
                None => {
                    plans.push((cell, CellPlan::new(layout, cell)?));
                    plans.len() - 1
                }
            };
            readers.push(Some(ColumnReader { slot: plans[at].1.slots[slot].clone() }));
        }
        Ok(readers)
    }

    /// Returns the slot.
    pub fn slot(&self) -> usize {
        self.slot.number
    }

    /// Returns the width of the slot in bytes; `None` if it is variable.
    pub fn width(&self) -> Option<usize> {
        self.slot.width
    }

    /// Returns the index of the null bitmap byte of the slot.
    pub fn null_byte(&self) -> usize {
        self.slot.number / SLOTS_A_NULL_BYTE
    }

    /// Returns whether a row is NULL in the slot; `nulls` has the bitmap bytes of all rows, or is
    /// empty if no row has a NULL.
    fn is_null(&self, nulls: &[u8], row: usize) -> bool {
        let byte = nulls.get(row).copied().unwrap_or(0);
        byte >> (self.slot.number % SLOTS_A_NULL_BYTE) & 1 == 1
    }

    /// Appends the values of a fixed-width slot, stored end to end.
    ///
    /// # Errors
    ///
    /// `XX001` if they are malformed; some of them may have been appended.
    pub fn read_fixed(&self, values: &[u8], nulls: &[u8], vector: &mut Vector) -> Result<()> {
        let width = self.slot.width.ok_or_else(|| corrupt("a slot does not have a fixed width"))?;
        let row_count = values.len() / width;
        let has_null = !nulls.is_empty() && (0..row_count).any(|row| self.is_null(nulls, row));
        if !has_null && append_numbers(&mut vector.data, values) {
            if let Some(validity) = &mut vector.validity {
                validity.resize(validity.len() + row_count, true);
            }
            return Ok(());
        }
        for (row, bytes) in values.chunks_exact(width).enumerate() {
            match has_null && self.is_null(nulls, row) {
                true => vector.push_null(),
                false => value::read(bytes, &self.slot.data_type, &[], vector)?,
            }
        }
        Ok(())
    }

    /// Appends texts that are stored end to end, with their ends, if the slot's type is a text
    /// type; returns whether it is.
    ///
    /// # Errors
    ///
    /// `XX001` if they are not valid texts; none of them has been appended.
    pub fn read_texts(&self, bytes: &[u8], ends: &[u32], vector: &mut Vector) -> Result<bool> {
        let VectorData::Text(texts) = &mut vector.data else { return Ok(false) };
        if !matches!(self.slot.data_type, DataType::Text | DataType::Varchar) {
            return Ok(false);
        }
        let all = std::str::from_utf8(bytes).map_err(|_| corrupt("invalid UTF-8 text"))?;
        if !texts.append_texts(all, ends) {
            return Err(corrupt("texts are not contiguous"));
        }
        let row_count = texts.len();
        if let Some(validity) = &mut vector.validity {
            validity.resize(row_count, true);
        }
        Ok(true)
    }

    /// Appends the value of row `row` in the slot.
    ///
    /// # Errors
    ///
    /// `XX001` if the bytes are malformed.
    #[inline]
    pub fn read_one(
        &self,
        row: usize,
        bytes: &[u8],
        nulls: &[u8],
        vector: &mut Vector,
    ) -> Result<()> {
        match self.is_null(nulls, row) {
            true => vector.push_null(),
            false => value::read(bytes, &self.slot.data_type, &[], vector)?,
        }
        Ok(())
    }
}

/// Appends little-endian numbers to a vector with the same representation, and returns whether it
/// has it.
fn append_numbers(data: &mut VectorData, bytes: &[u8]) -> bool {
    macro_rules! append {
        ($to:expr, $number:ty) => {{
            let (numbers, _) = bytes.as_chunks::<{ size_of::<$number>() }>();
            $to.extend(numbers.iter().map(|number| <$number>::from_le_bytes(*number)));
        }};
    }
    match data {
        VectorData::Int2(to) => append!(to, i16),
        VectorData::Int4(to) | VectorData::Date(to) => append!(to, i32),
        VectorData::Int8(to)
        | VectorData::Time(to)
        | VectorData::Timestamp(to)
        | VectorData::Timestamptz(to) => append!(to, i64),
        VectorData::Float4(to) => append!(to, f32),
        VectorData::Float8(to) => append!(to, f64),
        _ => return false,
    }
    true
}
