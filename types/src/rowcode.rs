//! How a SQL row becomes a cell and comes back: the row key and the packed row.
//!
//! A [`RowLayout`] is everything about a table (or an index, which is stored as a table) that is
//! needed to do so, and nothing else: no names, no defaults. Coprocessors are built from it.
//!
//! Key columns live in the row key alone, order-preserving ([`keycode`](crate::keycode)), after the
//! salt byte if the table is salted. All other columns of a family live in one cell, as a packed row:
//! null bitmap, fixed-width section, offsets of the rest, schema version; so that reading column 17 of
//! 40 touches neither the other 39 nor the heap. Byte by byte: `docs/formats/packed-row.md`.
//!
//! Columns added later are NULL (or their `missing` default) in rows packed before; dropped columns
//! keep their slot.

use crate::datatype::DataType;
use crate::datum::Datum;
use crate::error::Result;
use crate::vector::Vector;

/// One column of a table, as storage sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct LayoutColumn {
    /// Its type.
    pub data_type: DataType,
    /// Where the value lives.
    pub place: Place,
    /// The value in rows packed before the column was added.
    pub missing: Datum,
}

/// Where a column's value lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the row key; the number is its position among the key columns.
    Key(usize),
    /// In the packed row of a family.
    Packed {
        /// Index of the family in [`RowLayout::families`].
        family: usize,
        /// Slot in the packed row of that family; slots are never reused.
        slot: usize,
    },
}

/// One column of the row key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyColumn {
    /// Index into [`RowLayout::columns`].
    pub column: usize,
    /// Sorted from large to small.
    pub descending: bool,
    /// NULLs before all values of this column (in the order of the key, whatever `descending` is).
    pub nulls_first: bool,
}

/// How the rows of one table are stored.
#[derive(Debug, Clone, PartialEq)]
pub struct RowLayout {
    /// The columns, in table order.
    pub columns: Vec<LayoutColumn>,
    /// The key columns, in key order. Never empty.
    pub key: Vec<KeyColumn>,
    /// The number of families. Family 0 always has a cell in every row, even if all else is NULL, so
    /// that the row exists.
    pub family_count: usize,
    /// Number of salt buckets; 0 for an unsalted table.
    pub salt_buckets: u8,
    /// Grows with every change of the columns; written into packed rows.
    pub schema_version: u32,
}

/// A bound of the leading key columns: the values that are fixed, in key order.
pub type KeyPrefix = [Datum];

impl RowLayout {
    /// Returns the row key of a full row (`values` in table order), salt byte included.
    ///
    /// # Errors
    ///
    /// If a value does not fit a key (none today; the type leaves room).
    pub fn encode_key(&self, values: &[Datum]) -> Result<Vec<u8>> {
        let _ = values;
        todo!("types/rowcode")
    }

    /// Returns the row key of key values given in key order, salt byte included.
    pub fn encode_key_values(&self, key_values: &[Datum]) -> Result<Vec<u8>> {
        let _ = key_values;
        todo!("types/rowcode")
    }

    /// Returns the bytes that all keys with these leading key values begin with, without salt byte.
    /// The caller prepends each bucket in turn on a salted table.
    pub fn encode_key_prefix(&self, prefix: &KeyPrefix) -> Result<Vec<u8>> {
        let _ = prefix;
        todo!("types/rowcode")
    }

    /// Returns the key values of a row key, in key order.
    pub fn decode_key(&self, row_key: &[u8]) -> Result<Vec<Datum>> {
        let _ = row_key;
        todo!("types/rowcode")
    }

    /// Returns the packed row of one family for a full row (`values` in table order).
    pub fn pack(&self, family: usize, values: &[Datum]) -> Result<Vec<u8>> {
        let _ = (family, values);
        todo!("types/rowcode")
    }

    /// Returns the full row, in table order. `packed[family]` is `None` where the family has no cell.
    pub fn unpack(&self, row_key: &[u8], packed: &[Option<&[u8]>]) -> Result<Vec<Datum>> {
        let _ = (row_key, packed);
        todo!("types/rowcode")
    }

    /// Returns the value of one column.
    pub fn unpack_column(
        &self,
        column: usize,
        row_key: &[u8],
        packed: &[Option<&[u8]>],
    ) -> Result<Datum> {
        let _ = (column, row_key, packed);
        todo!("types/rowcode")
    }

    /// Appends one row to `vectors`, which stand for `columns` (indexes in table order), decoding
    /// only those, straight from the bytes.
    pub fn unpack_into(
        &self,
        columns: &[usize],
        row_key: &[u8],
        packed: &[Option<&[u8]>],
        vectors: &mut [Vector],
    ) -> Result<()> {
        let _ = (columns, row_key, packed, vectors);
        todo!("types/rowcode")
    }

    /// Returns the salt byte of a key without salt: its xxh3 hash modulo the buckets.
    pub fn salt(&self, unsalted_key: &[u8]) -> u8 {
        let _ = unsalted_key;
        todo!("types/rowcode")
    }
}
