//! Rows as columnar blocks hold them: packed rows cut into sections, and decoded a block at a time.
//!
//! Section 0 of the layout of a family holds null bitmaps, section `1 + n` slot `n`, and the last
//! one what follows the columns in a packed row.

use store::ColumnSlice;
use store::ValueLayout;
use store::layout::{EndWidth, Piece, SectionKind, ValueShape};
use types::rowcode::{ColumnReader, Place, RowDecoder, RowLayout, key_forgets};
use types::{DataType, Vector};

use crate::violation;

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
pub(crate) struct SliceDecoder<'l> {
    layout: &'l RowLayout,
    columns: &'l [usize],
    /// The layout whose sections are read; values of others are put together again.
    encoded: Vec<u8>,
    /// Whether sections and keys are enough.
    is_direct: bool,
    readers: Vec<(usize, ColumnReader)>,
    /// The key columns, by position in the table and by output.
    key_columns: Vec<usize>,
    key_outputs: Vec<usize>,
    /// Row keys end to end and where each ends; reused.
    keys: Vec<u8>,
    ends: Vec<u32>,
}

impl<'l> SliceDecoder<'l> {
    /// Returns the decoder of `columns` (positions in table order).
    ///
    /// # Errors
    ///
    /// `XX001` if a slot of a family belongs to no column.
    pub(crate) fn new(
        layout: &'l RowLayout,
        columns: &'l [usize],
    ) -> types::Result<SliceDecoder<'l>> {
        let mut decoder = SliceDecoder {
            layout,
            columns,
            encoded: value_layout(layout, 0)?.encoded(),
            is_direct: true,
            readers: Vec::new(),
            key_columns: Vec::new(),
            key_outputs: Vec::new(),
            keys: Vec::new(),
            ends: Vec::new(),
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

    /// Appends all rows of a slice of family 0 to `vectors`, one for each wanted column. `caller`
    /// is named in errors.
    ///
    /// # Errors
    ///
    /// Those of the slice; `XX001` if the bytes do not decode.
    pub(crate) fn decode(
        &mut self,
        caller: &str,
        slice: &ColumnSlice,
        vectors: &mut [Vector],
    ) -> store::Result<()> {
        if self.columns.is_empty() {
            return Ok(());
        }
        if !self.is_direct || !self.key_columns.is_empty() {
            self.keys.clear();
            self.ends.clear();
            slice.append_row_keys(&mut self.keys, &mut self.ends)?;
        }
        if !self.is_direct || slice.layout() != &self.encoded[..] {
            return self.decode_rows(caller, slice, vectors);
        }
        let value_error = |error| violation::value_error(caller, error);
        self.decode_keys(vectors).map_err(value_error)?;
        let mut nulls = slice.fixed(usize::from(NULLS))?;
        if nulls.iter().all(|byte| *byte == 0) {
            nulls = &[];
        }
        for (output, reader) in &self.readers {
            let (section, vector) = (usize::from(section_of(reader.slot())), &mut vectors[*output]);
            if reader.width().is_some() {
                reader.read_fixed(slice.fixed(section)?, nulls, vector).map_err(value_error)?;
                continue;
            }
            let values = slice.variable(section)?;
            for row in 0..slice.row_count() {
                let bytes = values.get(row)?;
                reader.read_variable(row, bytes, nulls, vector).map_err(value_error)?;
            }
        }
        Ok(())
    }

    fn row_keys(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let key = &self.keys[start..end as usize];
            start = end as usize;
            key
        })
    }

    fn decode_keys(&self, vectors: &mut [Vector]) -> types::Result<()> {
        if self.key_columns.is_empty() {
            return Ok(());
        }
        let decoder = RowDecoder::new(self.layout, &self.key_columns)?;
        let empty = || Vector::new(DataType::Bool, 0);
        let take = |&output: &usize| std::mem::replace(&mut vectors[output], empty());
        let mut keys: Vec<Vector> = self.key_outputs.iter().map(take).collect();
        let decoded = self.row_keys().try_for_each(|key| decoder.decode(key, &[], &mut keys));
        for (&output, vector) in self.key_outputs.iter().zip(keys) {
            vectors[output] = vector;
        }
        decoded
    }

    /// Puts the packed rows together again.
    fn decode_rows(
        &self,
        caller: &str,
        slice: &ColumnSlice,
        vectors: &mut [Vector],
    ) -> store::Result<()> {
        let value_error = |error| violation::value_error(caller, error);
        let decoder = RowDecoder::new(self.layout, self.columns).map_err(value_error)?;
        let (mut packed, mut ends) = (Vec::new(), self.row_keys());
        for row in 0..slice.row_count() {
            packed.clear();
            slice.append_value(row, &mut packed)?;
            let key = ends.next().unwrap_or_default();
            decoder.decode(key, &[Some(&packed)], vectors).map_err(value_error)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{TABLE, columnar_family, key, layout, put_row};
    use crate::row::{decode_batch, vectors_for};
    use proptest::prelude::*;
    use store::descriptor::Durability;
    use store::scanner::ScanStep;
    use store::transaction::TransactionOptions;
    use store::{CellBatch, Options, Scan, Store, TableDescriptor};
    use types::datetime::Interval;
    use types::numeric::Numeric;
    use types::{DataType, Datum};

    const TYPES: [DataType; 16] = [
        DataType::Int8,
        DataType::Numeric,
        DataType::Bool,
        DataType::Int2,
        DataType::Int4,
        DataType::Text,
        DataType::Float4,
        DataType::Float8,
        DataType::Date,
        DataType::Time,
        DataType::Bytea,
        DataType::Timestamp,
        DataType::Timestamptz,
        DataType::Interval,
        DataType::Uuid,
        DataType::Numeric,
    ];

    fn value(data_type: DataType, n: u64) -> Datum {
        let signed = n as i64;
        match data_type {
            DataType::Bool => Datum::Bool(n.is_multiple_of(2)),
            DataType::Int2 => Datum::Int2(n as i16),
            DataType::Int4 => Datum::Int4(n as i32),
            DataType::Int8 => Datum::Int8(signed),
            DataType::Float4 => Datum::Float4(n as f32),
            DataType::Float8 => Datum::Float8(n as f64),
            DataType::Date => Datum::Date(n as i32 % 10_000),
            DataType::Time => Datum::Time(signed.rem_euclid(86_400)),
            DataType::Timestamp => Datum::Timestamp(signed >> 20),
            DataType::Timestamptz => Datum::Timestamptz(signed >> 20),
            DataType::Interval => {
                Datum::Interval(Interval::new(n as i32 % 9, n as i32 % 7, signed >> 30))
            }
            DataType::Uuid => Datum::Uuid([n as u8; 16]),
            DataType::Numeric => {
                Datum::Numeric(Numeric::from_mantissa(i128::from(signed % 1000), n as u32 % 4))
            }
            // Now and then so long that ends take four bytes.
            DataType::Text if n.is_multiple_of(97) => Datum::Text("x".repeat(70_000).into()),
            DataType::Text => Datum::Text(format!("text {}", n % 1000).into()),
            DataType::Bytea => Datum::Bytea(vec![n as u8; n as usize % 20].into()),
            other => panic!("{other:?}"),
        }
    }

    fn row(id: i64, seed: u64, nulls: u16) -> Vec<Datum> {
        let columns = TYPES.iter().enumerate().map(|(column, &data_type)| {
            let n = seed.wrapping_mul(2 * column as u64 + 0x9e37_79b9_7f4a_7c15);
            match column {
                0 => Datum::Int8(id),
                1 => value(data_type, n),
                _ if nulls >> column & 1 == 1 => Datum::Null,
                _ => value(data_type, n),
            }
        });
        columns.collect()
    }

    /// Returns the columns of all rows, and how many rows came as columns.
    fn read(store: &std::sync::Arc<Store>, layout: &RowLayout, columns: &[usize]) -> usize {
        let transaction = store.begin(TransactionOptions::default());
        transaction.begin_statement();
        let mut cells = CellBatch::new();
        let mut expected = vectors_for(layout, columns, 1);
        let mut scanner = transaction.scan(TABLE, Scan::all()).unwrap();
        while scanner.next_batch(1000, &mut cells).unwrap() {
            decode_batch(layout, columns, &cells, &mut expected).unwrap();
        }
        let mut found = vectors_for(layout, columns, 1);
        let mut decoder = SliceDecoder::new(layout, columns).unwrap();
        let mut scanner = transaction.scan(TABLE, Scan::all()).unwrap();
        let mut count = 0;
        loop {
            match scanner.next_columns(1000, &mut cells).unwrap() {
                ScanStep::End => break,
                ScanStep::Rows => decode_batch(layout, columns, &cells, &mut found).unwrap(),
                ScanStep::Columns(slice) => {
                    decoder.decode("test", &slice, &mut found).unwrap();
                    count += slice.row_count();
                }
            }
        }
        assert_eq!(found, expected);
        count
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

        #[test]
        fn columns_hold_what_rows_hold(
            rows in prop::collection::vec((any::<u64>(), prop_oneof![Just(0), any::<u16>()]), 1..60),
            old_schema in any::<bool>(),
        ) {
            let columns = TYPES.map(|data_type| (data_type, 0));
            let layout = layout(&columns, &[key(0, false), key(1, false)], 0);
            let directory = tempfile::tempdir().unwrap();
            let store = Store::open(directory.path(), Options::default()).unwrap();
            let mut blocks = layout.clone();
            blocks.schema_version += u32::from(old_schema);
            store
                .create_table(TableDescriptor {
                    id: TABLE,
                    name: "t".to_owned(),
                    families: vec![columnar_family(&blocks)],
                    region_replication: 1,
                    durability: Durability::AsyncWal,
                    split_points: Vec::new(),
                    memstore_flush_bytes: None,
                    split: store::descriptor::SplitOptions::disabled(),
                })
                .unwrap();
            let transaction = store.begin(TransactionOptions::default());
            let puts = rows.iter().enumerate().map(|(id, (seed, nulls))| {
                put_row(&layout, &row(id as i64, *seed, *nulls))
            });
            transaction.mutate(TABLE, puts.collect()).unwrap();
            transaction.commit().unwrap().durable.wait().unwrap();
            store.flush(TABLE).unwrap();
            let all: Vec<usize> = (0..TYPES.len()).collect();
            // Rows of another schema are kept whole and read as rows.
            let as_columns = if old_schema { 0 } else { rows.len() };
            for columns in [&all[..], &[0], &[9, 5, 3], &[15, 0, 2], &[]] {
                prop_assert_eq!(read(&store, &layout, columns), as_columns);
            }
        }
    }
}
