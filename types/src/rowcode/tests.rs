//! Tests of the row encoding: round trips, rows of older schemas, residues, and malformed bytes.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::datetime::Interval;
use crate::datum::{Array, Nested};
use crate::keycode::any_value;
use crate::numeric::Numeric;

const KINDS: &[DataType] = &[
    DataType::Bool,
    DataType::Int2,
    DataType::Int4,
    DataType::Int8,
    DataType::Float4,
    DataType::Float8,
    DataType::Numeric,
    DataType::Text,
    DataType::Char,
    DataType::Bytea,
    DataType::Date,
    DataType::Time,
    DataType::Timestamp,
    DataType::Timestamptz,
    DataType::Interval,
    DataType::Uuid,
    DataType::InternalChar,
    DataType::Timetz,
    DataType::Varbit,
];

fn column(data_type: &DataType, place: ColumnPlace) -> LayoutColumn {
    LayoutColumn { data_type: data_type.clone(), place, missing: Datum::Null }
}

fn key_column(column: usize) -> KeyColumn {
    KeyColumn { column, descending: false, nulls_first: false }
}

/// Returns the layout of a table with `key_count` key columns and the others in two families.
fn layout(kinds: &[DataType], key_count: usize) -> RowLayout {
    let mut slots = [0; 2];
    let columns = kinds.iter().enumerate().map(|(i, kind)| {
        if i < key_count {
            return column(kind, ColumnPlace::Key(i));
        }
        let family = i % 2;
        slots[family] += 1;
        column(kind, ColumnPlace::Packed { cell: family, slot: slots[family] - 1 })
    });
    RowLayout {
        salt_buckets: (kinds.len() % 3) as u16 * 4,
        schema_version: 300,
        ..RowLayout::new(
            columns.collect(),
            (0..key_count)
                .map(|i| KeyColumn { column: i, descending: i % 2 == 1, nulls_first: i % 3 == 1 })
                .collect(),
            2,
        )
    }
}

/// Returns the same layout with a cell for each column.
fn with_column_cells(layout: RowLayout) -> RowLayout {
    let mut layout = layout;
    for column in 0..layout.columns.len() {
        let ColumnPlace::Packed { cell: family, .. } = layout.columns[column].place else {
            continue;
        };
        let cell = layout.cell_count();
        layout.columns[column].place = ColumnPlace::Packed { cell, slot: 0 };
        let qualifier = column_qualifier(column as u16).to_vec();
        layout.column_cells.push(ColumnCell { column, family, qualifier });
    }
    layout
}

/// Returns the texts of values, which show differences between equal values.
fn shown(row: &[Datum]) -> Vec<String> {
    row.iter()
        .map(|value| match value {
            Datum::Float8(value) if value.is_nan() => "NaN".to_string(),
            Datum::Float4(value) if value.is_nan() => "NaN".to_string(),
            value => format!("{value:?}"),
        })
        .collect()
}

fn any_row() -> impl Strategy<Value = (Vec<DataType>, Vec<Datum>)> {
    proptest::collection::vec(proptest::sample::select(KINDS), 3..12).prop_flat_map(|kinds| {
        let row: Vec<_> = kinds.iter().map(any_value).collect();
        (Just(kinds), row)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn rows_round_trip_exactly((kinds, row) in any_row()) {
        let layout = layout(&kinds, 2);
        let key = layout.encode_key(&row).unwrap();
        let families = [layout.pack(0, &row).unwrap(), layout.pack(1, &row).unwrap()];
        let packed = [Some(&families[0][..]), Some(&families[1][..])];
        let back = layout.unpack(&key, &packed).unwrap();
        prop_assert_eq!(shown(&back), shown(&row));
        prop_assert_eq!(layout.encode_key_values(&row[..2]).unwrap(), key.clone());
        let columns: Vec<usize> = (0..kinds.len()).rev().collect();
        let mut vectors: Vec<Vector> =
            columns.iter().map(|&column| Vector::new(&kinds[column], 1)).collect();
        layout.unpack_into(&columns, &key, &packed, &mut vectors).unwrap();
        for (vector, &column) in vectors.iter().zip(&columns) {
            let one = layout.unpack_column(column, &key, &packed).unwrap();
            prop_assert_eq!(shown(&[vector.datum(0)]), shown(&row[column..=column]));
            prop_assert_eq!(shown(&[one]), shown(&row[column..=column]));
        }
    }

    #[test]
    fn column_cells_round_trip_and_are_read_alone((kinds, row) in any_row()) {
        let layout = with_column_cells(layout(&kinds, 2));
        let key = layout.encode_key(&row).unwrap();
        let cells: Vec<Option<Vec<u8>>> = (0..layout.cell_count())
            .map(|cell| {
                let named = layout.cell_named(layout.family_of_cell(cell), layout.qualifier_of_cell(cell));
                assert_eq!(named, Some(cell));
                let is_null = layout.column_of_cell(cell).is_some_and(|column| row[column].is_null());
                (!is_null).then(|| layout.pack(cell, &row).unwrap())
            })
            .collect();
        let packed: Vec<Option<&[u8]>> = cells.iter().map(Option::as_deref).collect();
        prop_assert_eq!(shown(&layout.unpack(&key, &packed).unwrap()), shown(&row));
        for column in 0..kinds.len() {
            let mut own = vec![None; packed.len()];
            own[0] = packed[0];
            if let ColumnPlace::Packed { cell, .. } = layout.columns[column].place {
                own[cell] = packed[cell];
            }
            let one = layout.unpack_column(column, &key, &own).unwrap();
            prop_assert_eq!(shown(&[one]), shown(&row[column..=column]));
        }
    }

    #[test]
    fn row_decoder_does_not_panic_on_changed_bytes((kinds, row) in any_row(), noise: Vec<(u16, u8)>, cut: u16) {
        let layout = layout(&kinds, 2);
        let mut parts = [layout.encode_key(&row).unwrap(), layout.pack(0, &row).unwrap()];
        for part in &mut parts {
            for &(at, byte) in &noise {
                let length = part.len();
                part[usize::from(at) % length] = byte;
            }
            let length = part.len();
            part.truncate(length - usize::from(cut) % 4 % length);
        }
        let _ = layout.unpack(&parts[0], &[Some(&parts[1]), None]);
        let _ = layout.decode_key(&parts[0]);
    }

    #[test]
    fn row_decoder_does_not_panic_on_random_bytes(kinds in proptest::collection::vec(proptest::sample::select(KINDS), 3..12),
                             key: Vec<u8>, mut bytes: Vec<u8>) {
        if let Some(first) = bytes.first_mut() {
            *first = 1 | (*first & 0x30);
        }
        let _ = layout(&kinds, 2).unpack(&key, &[Some(&bytes), Some(&bytes)]);
    }
}

#[test]
fn added_columns_have_their_default() {
    let mut layout = layout(&[DataType::Int4, DataType::Text, DataType::Text], 1);
    let row = [Datum::Int4(7), Datum::text("a"), Datum::text("b")];
    let key = layout.encode_key(&row).unwrap();
    let packed = [layout.pack(0, &row).unwrap(), layout.pack(1, &row).unwrap()];
    let packed = [Some(&packed[0][..]), Some(&packed[1][..])];
    layout.columns.push(LayoutColumn {
        data_type: DataType::Int8,
        place: ColumnPlace::Packed { cell: 0, slot: 1 },
        missing: Datum::Int8(42),
    });
    layout.schema_version += 1;
    let back = layout.unpack(&key, &packed).unwrap();
    assert_eq!(back, [row.to_vec(), vec![Datum::Int8(42)]].concat());
    assert_eq!(layout.unpack_column(3, &key, &packed).unwrap(), Datum::Int8(42));
    // A reader with the old schema reads rows that have the new column.
    let new_row = [row.to_vec(), vec![Datum::Null]].concat();
    let newer = layout.pack(0, &new_row).unwrap();
    layout.columns.pop();
    assert_eq!(layout.unpack(&key, &[Some(&newer), packed[1]]).unwrap(), row);
    // In a family without a cell all columns have their defaults.
    assert_eq!(layout.unpack_column(1, &key, &[Some(&newer), None]).unwrap(), Datum::Null);
}

#[test]
fn salted_key_begins_with_bucket() {
    let mut layout = layout(&[DataType::Int4, DataType::Int4, DataType::Int4], 1);
    layout.salt_buckets = 8;
    let mut seen = [false; 8];
    for i in 0..200 {
        let key = layout.encode_key_values(&[Datum::Int4(i)]).unwrap();
        assert_eq!(key[1..], layout.encode_key_prefix(&[Datum::Int4(i)]).unwrap());
        assert_eq!(key[0], layout.salt(&key[1..]));
        seen[usize::from(key[0])] = true;
        assert_eq!(layout.decode_key(&key).unwrap(), [Datum::Int4(i)]);
    }
    assert_eq!(seen, [true; 8]);
}

#[test]
fn wide_rows_use_four_byte_offsets() {
    let layout = RowLayout {
        schema_version: 1,
        ..RowLayout::new(
            vec![
                column(&DataType::Int4, ColumnPlace::Key(0)),
                column(&DataType::Text, ColumnPlace::Packed { cell: 0, slot: 1 }),
                column(&DataType::Text, ColumnPlace::Packed { cell: 0, slot: 0 }),
            ],
            vec![key_column(0)],
            1,
        )
    };
    let row = [Datum::Int4(1), Datum::text("x".repeat(70_000)), Datum::text("tail")];
    let key = layout.encode_key(&row).unwrap();
    let packed = layout.pack(0, &row).unwrap();
    assert_eq!(layout.unpack(&key, &[Some(&packed)]).unwrap(), row);
}

#[test]
fn wide_nested_values_use_four_byte_offsets() {
    let layout = RowLayout {
        schema_version: 1,
        ..RowLayout::new(
            vec![
                column(&DataType::Int4, ColumnPlace::Key(0)),
                column(
                    &DataType::array_of(&DataType::Text),
                    ColumnPlace::Packed { cell: 0, slot: 0 },
                ),
                column(&DataType::Text, ColumnPlace::Packed { cell: 0, slot: 1 }),
            ],
            vec![key_column(0)],
            1,
        )
    };
    for length in [10, 32_000, 32_766, 40_000, 200_000] {
        let array = Array::from_elements(vec![Datum::text("x".repeat(length)); 2]);
        let array = Datum::Nested(Nested::Array(Arc::new(array)));
        let row = [Datum::Int4(1), array, Datum::text("tail")];
        let key = layout.encode_key(&row).unwrap();
        let packed = layout.pack(0, &row).unwrap();
        assert_eq!(layout.unpack(&key, &[Some(&packed)]).unwrap(), row, "{length}");
    }
}

#[test]
fn documented_row_example_matches_encoder() {
    let layout = RowLayout {
        schema_version: 1,
        ..RowLayout::new(
            vec![
                column(&DataType::Numeric, ColumnPlace::Key(0)),
                column(&DataType::Int4, ColumnPlace::Packed { cell: 0, slot: 0 }),
                column(&DataType::Text, ColumnPlace::Packed { cell: 0, slot: 1 }),
                column(&DataType::Bool, ColumnPlace::Packed { cell: 0, slot: 2 }),
            ],
            vec![key_column(0)],
            1,
        )
    };
    let row = [
        Datum::Numeric(Numeric::parse("1.10").unwrap()),
        Datum::Int4(258),
        Datum::text("nile"),
        Datum::Null,
    ];
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    assert_eq!(hex(&layout.encode_key(&row).unwrap()), "024081020b00");
    assert_eq!(hex(&layout.pack(0, &row).unwrap()), "110103050104020100000004006e696c6500020200");
}

#[test]
fn intervals_preserve_months_days_and_micros() {
    let layout = RowLayout {
        schema_version: 1,
        ..RowLayout::new(
            vec![column(&DataType::Interval, ColumnPlace::Key(0))],
            vec![key_column(0)],
            1,
        )
    };
    for interval in [Interval::new(0, 30, 0), Interval::new(1, 0, 0), Interval::new(0, 0, -1)] {
        let row = [Datum::Interval(interval)];
        let key = layout.encode_key(&row).unwrap();
        let packed = layout.pack(0, &row).unwrap();
        let back = layout.unpack(&key, &[Some(&packed)]).unwrap();
        assert_eq!(shown(&back), shown(&row));
    }
}

#[test]
fn slot_without_column_is_error() {
    let mut layout = layout(&[DataType::Int4, DataType::Int4, DataType::Int4], 1);
    layout.columns[2].place = ColumnPlace::Packed { cell: 0, slot: 5 };
    assert_eq!(layout.pack(0, &vec![Datum::Null; 3]).unwrap_err().sqlstate, "XX001");
}

#[test]
fn missing_column_cell_has_default_unless_its_family_expires() {
    let mut layout =
        with_column_cells(layout(&[DataType::Int4, DataType::Int4, DataType::Int4], 1));
    layout.columns[2].missing = Datum::Int4(42);
    let row = [Datum::Int4(1), Datum::Int4(2), Datum::Null];
    let key = layout.encode_key(&row).unwrap();
    let none = vec![None; layout.cell_count()];
    assert_eq!(layout.unpack_column(2, &key, &none).unwrap(), Datum::Int4(42));
    layout.expiring = vec![0];
    assert_eq!(layout.unpack_column(2, &key, &none).unwrap(), Datum::Null);
    assert_eq!(layout.row_cells(), 0..2);
    assert_eq!(layout.cell_named(0, b"name"), None);
    assert_eq!(layout.cell_named(1, &column_qualifier(2)), None, "of another family");
}

#[test]
fn documented_column_cells_match_encoder() {
    let layout = with_column_cells(RowLayout {
        schema_version: 1,
        ..RowLayout::new(
            vec![
                column(&DataType::Numeric, ColumnPlace::Key(0)),
                column(&DataType::Int4, ColumnPlace::Packed { cell: 0, slot: 0 }),
                column(&DataType::Text, ColumnPlace::Packed { cell: 0, slot: 1 }),
                column(&DataType::Bool, ColumnPlace::Packed { cell: 0, slot: 2 }),
            ],
            vec![key_column(0)],
            1,
        )
    });
    let row = [
        Datum::Numeric(Numeric::parse("1.10").unwrap()),
        Datum::Int4(258),
        Datum::text("nile"),
        Datum::Null,
    ];
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let cell =
        |cell: usize| (hex(layout.qualifier_of_cell(cell)), hex(&layout.pack(cell, &row).unwrap()));
    let cell_of = |qualifier: &str, value: &str| (qualifier.to_owned(), value.to_owned());
    assert_eq!(cell(0), cell_of("", "010100000000020200"));
    assert_eq!(cell(1), cell_of("000001", "010101040002010000"));
    assert_eq!(cell(2), cell_of("000002", "010101000104006e696c65"));
}
