//! Row encoding: SQL rows to row keys and packed rows, and back.
//!
//! A [`RowLayout`] is everything about a table (or an index, which is stored as a table) that the
//! encoding depends on, without names and defaults. Coprocessors are built from it.
//!
//! Key columns are stored only in the row key, order-preserving ([`keycode`]), after the salt
//! byte if the table is salted. All other columns are stored in cells, each of which holds a packed
//! row of its columns: null bitmap, fixed-width section, offsets of variable values, schema
//! version; so that reading column 17 of 40 touches neither the other 39 nor the heap. Byte by
//! byte: `docs/formats/packed-row.md`.
//!
//! ```text
//!   cells of a layout        ROW storage                    CELL storage
//!   0 .. family_count        columns of the family          no columns: the row exists
//!   family_count ..          (none)                         one column each
//! ```
//!
//! Added columns are NULL (or their `missing` default) in rows packed before. Dropped columns
//! keep their slot, and remain in [`RowLayout::columns`], because the position of a slot depends
//! on the widths of the slots before it.
//!
//! A key does not preserve the form of a value: `1.0` and `1.00` are one key. The lost
//! information (the scale of a `numeric`, the parts of an `interval`, the sign of a float's zero,
//! the trailing blanks of a `char`) is stored at the end of the packed row of cell 0, as
//! residues, and restored when the row is decoded.
//!
//! A [`RowDecoder`] is built once for many rows; the unpacking methods of [`RowLayout`] build one
//! per call.

mod packed;
mod nested;
mod residue;
pub(crate) mod value;
mod columns;

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;
use xxhash_rust::xxh3::xxh3_64;

pub use self::columns::{
    ColumnReader, PackedHeader, PackedSections, SLOTS_A_NULL_BYTE, slot_count,
};
use self::packed::CellPlan;
use self::packed::PackedRow;
use self::residue::Residues;
use crate::datatype::DataType;
use crate::datum::Datum;
use crate::error::Result;
use crate::error::corrupt;
use crate::interruptible::InterruptPacer;
use crate::keycode;
use crate::vector::ValueSink;
use crate::vector::Vector;

/// Storage of one column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct LayoutColumn {
    /// Its type.
    pub data_type: DataType,
    /// Location of the value.
    pub place: ColumnPlace,
    /// The default in rows packed before the column was added.
    pub missing: Datum,
}

/// Location of a column's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnPlace {
    /// In the row key, by position among the key columns.
    Key(usize),
    /// In the packed row of a cell.
    Packed {
        /// Number of the cell, below [`RowLayout::cell_count`].
        cell: usize,
        /// Slot in the packed row of that cell; slots are never reused.
        slot: usize,
    },
}

/// A cell with a single column, of CELL storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnCell {
    /// Index into [`RowLayout::columns`].
    pub column: usize,
    /// Index of its family.
    pub family: usize,
    /// Its qualifier.
    pub qualifier: Vec<u8>,
}

impl ColumnCell {
    /// Returns whether its column is dynamic: declared by a statement only.
    pub fn is_dynamic(&self) -> bool {
        self.qualifier.first() != Some(&0)
    }
}

/// Returns the type and the value in the cell of a dynamic column; `None` if the type is not
/// built in.
///
/// # Errors
///
/// XX001 if the bytes do not decode.
pub fn dynamic_value(packed: &[u8]) -> Result<Option<(DataType, Datum)>> {
    packed::dynamic_value(packed)
}

/// Returns the qualifier of the cell of a declared column, by its position in the table. No name
/// of a column begins with its first byte, so that it is never the qualifier of a dynamic column.
pub fn column_qualifier(column: u16) -> [u8; 3] {
    let [high, low] = column.to_be_bytes();
    [0, high, low]
}

/// One column of the row key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyColumn {
    /// Index into [`RowLayout::columns`].
    pub column: usize,
    /// Descending.
    pub descending: bool,
    /// NULLs sort before all values in the row key, also if `descending`.
    pub nulls_first: bool,
}

/// Storage layout of the rows of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct RowLayout {
    /// The columns, in table order.
    pub columns: Vec<LayoutColumn>,
    /// The key columns, in key order. Empty only for a view, which has no rows in the store.
    pub key: Vec<KeyColumn>,
    /// The number of families. Each has a cell with an empty qualifier, of the same number. If
    /// family 0 [is permanent](RowLayout::is_first_family_permanent), every row has that cell of
    /// it, even if all its columns are NULL, so that the row exists.
    pub family_count: usize,
    /// The cells of single columns, numbered from [`RowLayout::family_count`] on; empty for ROW
    /// storage.
    pub column_cells: Vec<ColumnCell>,
    /// Families whose cells may expire before the row, by the TTL of the family or of the cell,
    /// ascending: their columns then become NULL. A row exists as long as any family has a cell.
    pub expiring: Vec<usize>,
    /// Statements may delete single versions of rows that have several cells, so that any of the
    /// cells may be missing. A row exists as long as any family has a cell.
    pub has_version_deletes: bool,
    /// Dropped families, ascending: no row has a cell in them.
    pub dropped: Vec<usize>,
    /// Number of salt buckets; 0 for an unsalted table.
    pub salt_buckets: u16,
    /// Incremented with every change of the columns; stored in packed rows.
    pub schema_version: u32,
}

/// Values of the leading key columns, in key order.
pub type KeyPrefix = [Datum];

impl RowLayout {
    /// Returns the layout of packed rows without salt, dropped families and expiring families.
    pub fn new(columns: Vec<LayoutColumn>, key: Vec<KeyColumn>, family_count: usize) -> RowLayout {
        RowLayout {
            columns,
            key,
            family_count,
            column_cells: Vec::new(),
            expiring: Vec::new(),
            has_version_deletes: false,
            dropped: Vec::new(),
            salt_buckets: 0,
            schema_version: 0,
        }
    }

    /// Returns whether a column may become NULL because its family expires before the row.
    pub fn may_expire_before_row(&self, column: usize) -> bool {
        self.family_of(column).is_some_and(|family| self.expiring.contains(&family))
    }

    /// Returns whether a column may be NULL because an existing row has no cell for it.
    pub fn may_lose_cell(&self, column: usize) -> bool {
        self.may_expire_before_row(column)
            || (self.has_version_deletes && self.family_of(column).is_some())
    }

    /// Returns whether each column has a cell of its own.
    pub fn has_column_cells(&self) -> bool {
        !self.column_cells.is_empty()
    }

    /// Returns the number of cells of a row that has all.
    pub fn cell_count(&self) -> usize {
        self.family_count + self.column_cells.len()
    }

    /// Returns the cells one of which every row has: that of family 0 if it is permanent, otherwise
    /// those of all families.
    pub fn row_cells(&self) -> Range<usize> {
        0..if self.is_first_family_permanent() { 1 } else { self.family_count }
    }

    /// Returns the cells that a new row always has: that of family 0, or if this may expire before
    /// the row, those of all families.
    pub fn new_row_cells(&self) -> Range<usize> {
        0..if self.expiring.contains(&0) { self.family_count } else { 1 }
    }

    /// Returns whether rows may have a cell: its family was not dropped.
    pub fn is_stored(&self, cell: usize) -> bool {
        !self.dropped.contains(&self.family_of_cell(cell))
    }

    /// Returns the family of a cell.
    pub fn family_of_cell(&self, cell: usize) -> usize {
        self.column_cell(cell).map_or(cell, |of_column| of_column.family)
    }

    /// Returns the qualifier of a cell.
    pub fn qualifier_of_cell(&self, cell: usize) -> &[u8] {
        self.column_cell(cell).map_or(&[], |of_column| of_column.qualifier.as_slice())
    }

    /// Returns the only column of a cell; `None` for the cell of a family.
    pub fn column_of_cell(&self, cell: usize) -> Option<usize> {
        self.column_cell(cell).map(|of_column| of_column.column)
    }

    /// Returns a cell with a single column; `None` for that of a family.
    fn column_cell(&self, cell: usize) -> Option<&ColumnCell> {
        self.column_cells.get(cell.checked_sub(self.family_count)?)
    }

    /// Returns the number of the cell with this name, if the layout has it.
    #[inline]
    pub fn cell_named(&self, family: usize, qualifier: &[u8]) -> Option<usize> {
        match qualifier.is_empty() {
            true => (family < self.family_count).then_some(family),
            false => self.column_cell_named(family, qualifier),
        }
    }

    fn column_cell_named(&self, family: usize, qualifier: &[u8]) -> Option<usize> {
        let is_it = |cell: &ColumnCell| cell.family == family && cell.qualifier == qualifier;
        if let [0, high, low] = *qualifier {
            let column = usize::from(u16::from_be_bytes([high, low]));
            let ColumnPlace::Packed { cell, .. } = self.columns.get(column)?.place else {
                return None;
            };
            return self.column_cell(cell).is_some_and(is_it).then_some(cell);
        }
        let of_column = self.column_cells.iter().rposition(is_it);
        of_column.map(|position| self.family_count + position)
    }

    /// Returns the family of a column; `None` for a key column.
    pub fn family_of(&self, column: usize) -> Option<usize> {
        match self.columns[column].place {
            ColumnPlace::Key(_) => None,
            ColumnPlace::Packed { cell, .. } => Some(self.family_of_cell(cell)),
        }
    }

    /// Returns the number of families that were not dropped.
    pub fn living_families(&self) -> usize {
        self.family_count - self.dropped.len()
    }

    /// Returns whether family 0 has a cell as long as the row exists.
    pub fn is_first_family_permanent(&self) -> bool {
        !self.has_version_deletes && !self.expiring.contains(&0)
    }

    /// Returns the row key of a full row (`values` in table order), salt byte included.
    ///
    /// # Errors
    ///
    /// `42804` if a value is not of its column's type.
    pub fn encode_key(&self, values: &[Datum]) -> Result<Vec<u8>> {
        let mut key = Vec::with_capacity(self.key.len() * 12);
        self.encode_key_into(values, &mut key)?;
        Ok(key)
    }

    /// Appends the row key of a full row (`values` in table order), salt byte included.
    pub fn encode_key_into(&self, values: &[Datum], out: &mut Vec<u8>) -> Result<()> {
        self.with_salt(out, |out| {
            self.key.iter().try_for_each(|key| self.encode_one(key, &values[key.column], out))
        })
    }

    /// Appends a row key of the first key values and the encoded bytes of the others, salt byte
    /// included.
    ///
    /// # Errors
    ///
    /// `42804` if a value is not of its column's type.
    pub fn encode_key_with_tail(
        &self,
        prefix: &KeyPrefix,
        tail: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.with_salt(out, |out| {
            self.encode_prefix_into(prefix, out)?;
            out.extend_from_slice(tail);
            Ok(())
        })
    }

    /// Returns the row key of key values in key order, salt byte included.
    pub fn encode_key_values(&self, key_values: &[Datum]) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(self.key.len() * 12);
        self.with_salt(&mut out, |out| self.encode_prefix_into(key_values, out))?;
        Ok(out)
    }

    /// Returns the common prefix of all keys with these leading key values, without salt byte.
    /// For a salted table the caller prepends each bucket in turn.
    pub fn encode_key_prefix(&self, prefix: &KeyPrefix) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(prefix.len() * 12);
        self.encode_prefix_into(prefix, &mut out)?;
        Ok(out)
    }

    fn encode_prefix_into(&self, prefix: &KeyPrefix, out: &mut Vec<u8>) -> Result<()> {
        self.key.iter().zip(prefix).try_for_each(|(key, value)| self.encode_one(key, value, out))
    }

    fn encode_one(&self, key: &KeyColumn, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
        let data_type = &self.columns[key.column].data_type;
        keycode::encode(value, data_type, key.descending, key.nulls_first, out)
    }

    /// Prepends the salt byte to the bytes that `write` appends, if the table is salted.
    fn with_salt(
        &self,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        if self.salt_buckets == 0 {
            return write(out);
        }
        let start = out.len();
        out.push(0);
        write(out)?;
        out[start] = self.salt(&out[start + 1..]);
        Ok(())
    }

    /// Returns the row key without its salt byte.
    fn without_salt<'k>(&self, row_key: &'k [u8]) -> &'k [u8] {
        if self.salt_buckets == 0 { row_key } else { row_key.get(1..).unwrap_or_default() }
    }

    /// Returns the key values of a row key, in key order. Bytes after the last key column are
    /// ignored (unique indexes have some).
    ///
    /// # Errors
    ///
    /// `XX001` if the bytes do not decode; likewise for all decoding functions.
    pub fn decode_key(&self, row_key: &[u8]) -> Result<Vec<Datum>> {
        let mut rest = self.without_salt(row_key);
        let mut values = Vec::with_capacity(self.key.len());
        for key in &self.key {
            let data_type = &self.columns[key.column].data_type;
            let (value, taken) = keycode::decode(rest, data_type, key.descending, key.nulls_first)?;
            values.push(value);
            rest = &rest[taken..];
        }
        Ok(values)
    }

    /// Returns the length of the first `columns` key columns of a row key, with the salt byte.
    ///
    /// # Errors
    ///
    /// See [`RowLayout::decode_key`].
    pub fn key_prefix_length(&self, row_key: &[u8], columns: usize) -> Result<usize> {
        let mut rest = self.without_salt(row_key);
        for key in &self.key[..columns] {
            let data_type = &self.columns[key.column].data_type;
            let (_, taken) = keycode::decode(rest, data_type, key.descending, key.nulls_first)?;
            rest = &rest[taken..];
        }
        Ok(row_key.len() - rest.len())
    }

    /// Returns the packed row of one cell for a full row (`values` in table order).
    ///
    /// # Errors
    ///
    /// `42804` if a value is not of its column's type.
    pub fn pack(&self, cell: usize, values: &[Datum]) -> Result<Vec<u8>> {
        let plan = CellPlan::new(self, cell)?;
        let mut out = Vec::with_capacity(64);
        packed::write(
            self,
            &plan,
            cell,
            values,
            (&mut out, &mut InterruptPacer::without_interrupt()),
        )?;
        Ok(out)
    }

    /// Returns the full row, in table order. `packed[cell]` is `None` where the row has no such
    /// cell.
    pub fn unpack(&self, row_key: &[u8], packed: &[Option<&[u8]>]) -> Result<Vec<Datum>> {
        let columns: SmallVec<[usize; 32]> = (0..self.columns.len()).collect();
        let mut values = vec![Datum::Null; self.columns.len()];
        RowDecoder::new(self, &columns)?.decode(row_key, packed, &mut values)?;
        Ok(values)
    }

    /// Returns the value of one column.
    pub fn unpack_column(
        &self,
        column: usize,
        row_key: &[u8],
        packed: &[Option<&[u8]>],
    ) -> Result<Datum> {
        let mut value = [Datum::Null];
        RowDecoder::new(self, &[column])?.decode(row_key, packed, &mut value)?;
        let [value] = value;
        Ok(value)
    }

    /// Appends one row to `vectors`, one for each of `columns` (indexes in table order), decoding
    /// only those, directly from the bytes. After an error the vectors have different lengths.
    pub fn unpack_into(
        &self,
        columns: &[usize],
        row_key: &[u8],
        packed: &[Option<&[u8]>],
        vectors: &mut [Vector],
    ) -> Result<()> {
        RowDecoder::new(self, columns)?.decode(row_key, packed, vectors)
    }

    /// Returns the salt byte of an unsalted key: its xxh3 hash modulo the buckets.
    pub fn salt(&self, unsalted_key: &[u8]) -> u8 {
        salt_of(unsalted_key, self.salt_buckets)
    }
}

/// Returns the salt byte of an unsalted key for a number of buckets; 0 for none.
pub fn salt_of(unsalted_key: &[u8], buckets: u16) -> u8 {
    match buckets {
        0 => 0,
        buckets => (xxh3_64(unsalted_key) % u64::from(buckets)) as u8,
    }
}

/// Returns whether keys of this type do not preserve the form of a value, so that the packed row
/// stores a residue.
pub fn key_loses_form(data_type: &DataType) -> bool {
    residue::possible(data_type)
}

/// Decoder of some columns for many rows, with column locations computed once.
pub struct RowDecoder<'l> {
    layout: &'l RowLayout,
    /// Key positions with their output positions, in key order.
    key: SmallVec<[(usize, usize); 4]>,
    families: SmallVec<[FamilyTargets; 2]>,
    /// The decoded columns that have cells of their own, with the cells.
    column_cells: Vec<(usize, DecodeTarget)>,
    /// One of the decoded key columns has a type with residues.
    may_have_residues: bool,
}

/// The decoded columns in the cell of one family.
struct FamilyTargets {
    family: usize,
    targets: SmallVec<[DecodeTarget; 16]>,
}

/// A decoded column: its slot and output position.
struct DecodeTarget {
    slot: packed::Slot,
    output: usize,
}

impl<'l> RowDecoder<'l> {
    /// Creates the decoder of `columns` (indexes in table order).
    ///
    /// # Errors
    ///
    /// `XX001` if a slot of a cell belongs to no column.
    pub fn new(layout: &'l RowLayout, columns: &[usize]) -> Result<RowDecoder<'l>> {
        let mut decoder = RowDecoder {
            layout,
            key: SmallVec::new(),
            families: SmallVec::new(),
            column_cells: Vec::new(),
            may_have_residues: false,
        };
        for (output, &column) in columns.iter().enumerate() {
            match layout.columns[column].place {
                ColumnPlace::Key(position) => {
                    decoder.may_have_residues |=
                        residue::possible(&layout.columns[column].data_type);
                    decoder.key.push((position, output));
                }
                ColumnPlace::Packed { cell, slot } if cell >= layout.family_count => {
                    let slot = CellPlan::new(layout, cell)?.slot(slot)?;
                    decoder.column_cells.push((cell, DecodeTarget { slot, output }));
                }
                ColumnPlace::Packed { cell, .. } => {
                    if !decoder.families.iter().any(|targets| targets.family == cell) {
                        decoder.add_family(cell, columns)?;
                    }
                }
            }
        }
        decoder.key.sort_unstable();
        Ok(decoder)
    }

    fn add_family(&mut self, family: usize, columns: &[usize]) -> Result<()> {
        let plan = CellPlan::new(self.layout, family)?;
        let targets = columns.iter().enumerate().filter_map(|(output, &column)| {
            match self.layout.columns[column].place {
                ColumnPlace::Packed { cell, slot } if cell == family => {
                    Some(DecodeTarget { slot: plan.slots[slot].clone(), output })
                }
                _ => None,
            }
        });
        let targets = targets.collect();
        self.families.push(FamilyTargets { family, targets });
        Ok(())
    }

    /// Decodes one row into `sinks`, one for each column. After an error some sinks have received
    /// a value and some have not.
    #[inline]
    pub fn decode<S: ValueSink>(
        &self,
        row_key: &[u8],
        packed: &[Option<&[u8]>],
        sinks: &mut [S],
    ) -> Result<()> {
        if !self.key.is_empty() {
            self.decode_key(row_key, packed, sinks)?;
        }
        for family in &self.families {
            let Some(bytes) = packed.get(family.family).copied().flatten() else {
                let has_expired = self.layout.expiring.contains(&family.family);
                for target in &family.targets {
                    match has_expired {
                        true => sinks[target.output].put_datum(&Datum::Null),
                        false => self.put_missing(target, sinks),
                    }
                }
                continue;
            };
            let row = PackedRow::parse(bytes)?;
            for target in &family.targets {
                if target.slot.number < row.slot_count {
                    row.read(&target.slot, &mut sinks[target.output])?;
                } else {
                    self.put_missing(target, sinks);
                }
            }
        }
        for (cell, target) in &self.column_cells {
            match packed.get(*cell).copied().flatten() {
                Some(bytes) => {
                    let row = PackedRow::parse(bytes)?;
                    if let Some(dynamic) =
                        self.layout.column_cell(*cell).filter(|cell| cell.is_dynamic())
                    {
                        row.check_dynamic(&target.slot, &dynamic.qualifier)?;
                    }
                    row.read(&target.slot, &mut sinks[target.output])?;
                }
                None if self.layout.expiring.contains(&self.layout.family_of_cell(*cell)) => {
                    sinks[target.output].put_datum(&Datum::Null);
                }
                None => self.put_missing(target, sinks),
            }
        }
        Ok(())
    }

    fn put_missing<S: ValueSink>(&self, target: &DecodeTarget, sinks: &mut [S]) {
        sinks[target.output].put_datum(&self.layout.columns[target.slot.column].missing);
    }

    fn decode_key<S: ValueSink>(
        &self,
        row_key: &[u8],
        packed: &[Option<&[u8]>],
        sinks: &mut [S],
    ) -> Result<()> {
        let residues = match packed.first().copied().flatten() {
            Some(bytes) if self.may_have_residues => PackedRow::parse(bytes)?.residues(),
            _ => Residues::default(),
        };
        let mut rest = self.layout.without_salt(row_key);
        let mut wanted = self.key.iter().peekable();
        for (position, key) in self.layout.key.iter().enumerate() {
            let data_type = &self.layout.columns[key.column].data_type;
            let (descending, nulls_first) = (key.descending, key.nulls_first);
            let mut taken = None;
            while let Some((_, output)) = wanted.next_if(|(wanted, _)| *wanted == position) {
                let sink = &mut sinks[*output];
                taken = Some(match residues.find(position)? {
                    Some(residue) => {
                        let (value, taken) =
                            keycode::decode(rest, data_type, descending, nulls_first)?;
                        sink.put_datum(&residue::apply(value, &residue)?);
                        taken
                    }
                    None => keycode::decode_into(rest, data_type, descending, nulls_first, sink)?,
                });
            }
            if wanted.peek().is_none() {
                return Ok(());
            }
            let taken = match taken {
                Some(taken) => taken,
                None => keycode::decode_into(rest, data_type, descending, nulls_first, &mut ())?,
            };
            rest = &rest[taken..];
        }
        Ok(())
    }
}

/// Encoder of the packed rows of one cell, with the layout computed once.
pub struct RowPacker {
    layout: Arc<RowLayout>,
    plan: CellPlan,
    cell: usize,
}

impl RowPacker {
    /// Creates the packer of a cell.
    ///
    /// # Errors
    ///
    /// `XX001` if a slot of the cell belongs to no column.
    pub fn new(layout: &Arc<RowLayout>, cell: usize) -> Result<RowPacker> {
        let plan = CellPlan::new(layout, cell)?;
        Ok(RowPacker { layout: Arc::clone(layout), plan, cell })
    }

    /// Returns the packed row of a full row (`values` in table order), whose values may be long.
    ///
    /// # Errors
    ///
    /// `42804` if a value is not of its column's type; `57014` if the interrupt flag is set.
    pub fn pack(&self, values: &[Datum], pace: &mut InterruptPacer<'_>) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(64);
        self.pack_into(values, pace, &mut out)?;
        Ok(out)
    }

    /// Appends the packed row of a full row, as [`RowPacker::pack`] returns it.
    ///
    /// # Errors
    ///
    /// As for [`RowPacker::pack`].
    pub fn pack_into(
        &self,
        values: &[Datum],
        pace: &mut InterruptPacer<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        packed::write(&self.layout, &self.plan, self.cell, values, (out, pace))
    }
}

#[cfg(test)]
mod tests;
