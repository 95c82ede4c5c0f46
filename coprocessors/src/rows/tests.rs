//! Tests of decoding: columns from cells and from slices, for all rows and for selections, are
//! equal.

use super::*;
use crate::columns::value_layout;
use crate::fixture::{TABLE, columnar_family, key, layout, put_row};
use crate::row::decode_batch;
use proptest::prelude::*;
use store::descriptor::{Durability, FamilyDescriptor};
use store::transaction::TransactionOptions;
use store::{Mutation, Options, Scan, Store, TableDescriptor};
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

fn value(data_type: &DataType, n: u64) -> Datum {
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
        // Occasionally so long that ends take four bytes.
        DataType::Text if n.is_multiple_of(97) => Datum::Text("x".repeat(70_000).into()),
        DataType::Text => Datum::Text(format!("text {}", n % 1000).into()),
        DataType::Bytea => Datum::Bytea(vec![n as u8; n as usize % 20].into()),
        other => panic!("{other:?}"),
    }
}

/// Creates a table of columnar blocks.
fn create(store: &Arc<Store>, family: FamilyDescriptor) {
    let table = TableDescriptor {
        durability: Durability::AsyncWal,
        ..TableDescriptor::new(TABLE, "t", vec![family])
    };
    store.create_table(table).unwrap();
}

/// Commits rows of one schema.
fn put(store: &Arc<Store>, rows: impl Iterator<Item = Mutation>) {
    let transaction = store.begin(TransactionOptions::default());
    transaction.mutate(TABLE, rows.collect()).unwrap();
    transaction.commit().unwrap().durable.wait().unwrap();
}

fn row(id: i64, seed: u64, nulls: u16) -> Vec<Datum> {
    let columns = TYPES.iter().enumerate().map(|(column, data_type)| {
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

/// Checks that all columns of all rows, and of selections, equal those from cells; returns the
/// number of rows that were read as slices.
fn read(store: &Arc<Store>, layout: &Arc<RowLayout>, columns: &[usize]) -> usize {
    let transaction = store.begin(TransactionOptions::default());
    transaction.begin_statement();
    let context = EvalContext::default();
    let mut cells = CellBatch::new();
    let mut expected = vectors_for(layout, columns, 1);
    let mut scanner = transaction.scan(TABLE, Scan::all()).unwrap();
    while scanner.next_batch(1000, &mut cells).unwrap() {
        decode_batch(layout, columns, &cells, &mut expected).unwrap();
    }
    let decoder = Decoder::new(layout, columns).unwrap();
    let mut rows = StoredRows::new();
    let mut scanner = transaction.scan(TABLE, Scan::all()).unwrap();
    let (mut start, mut count, mut more) = (0, 0, true);
    while more {
        rows.clear();
        // The limit cuts blocks.
        more = rows.read(&mut scanner, 7).unwrap();
        let all: Vec<u32> = (start..start + rows.row_count() as u32).collect();
        for some in [None, Some(vec![]), Some((0..rows.row_count() as u32).step_by(3).collect())] {
            let found = decoder.decode(&rows, some.as_deref(), &context).unwrap();
            let wanted: Vec<u32> = match &some {
                None => all.clone(),
                Some(some) => some.iter().map(|row| start + row).collect(),
            };
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(**found, expected.take(&wanted));
            }
            let keys = rows.row_keys(some.as_deref()).unwrap();
            assert_eq!(keys.len(), wanted.len());
            assert!(keys.is_sorted());
        }
        let slices = rows.pieces.iter().filter(|piece| matches!(piece, StoredRowsChunk::Slice(_)));
        count += slices.map(StoredRowsChunk::row_count).sum::<usize>();
        start += rows.row_count() as u32;
    }
    count
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn column_reads_match_row_reads(
        rows in prop::collection::vec((any::<u64>(), prop_oneof![Just(0), any::<u16>()]), 1..60),
        old_schema in any::<bool>(),
    ) {
        let columns = TYPES.map(|data_type| (data_type, 0));
        let layout = Arc::new(layout(&columns, &[key(0, false), key(1, false)], 0));
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), Options::default()).unwrap();
        let mut blocks = RowLayout::clone(&layout);
        blocks.schema_version += u32::from(old_schema);
        create(&store, columnar_family(&blocks));
        put(&store, rows.iter().enumerate().map(|(id, (seed, nulls))| {
            put_row(&layout, &row(id as i64, *seed, *nulls))
        }));
        store.flush(TABLE).unwrap();
        let all: Vec<usize> = (0..TYPES.len()).collect();
        // Rows of a schema unknown to the layout are stored whole and read as rows.
        let as_columns = if old_schema { 0 } else { rows.len() };
        for columns in [&all[..], &[0], &[9, 5, 3], &[15, 0, 2], &[]] {
            prop_assert_eq!(read(&store, &layout, columns), as_columns);
        }
    }

    /// Rows that were written before columns were added are in separate blocks, and after the
    /// next compaction in blocks with others. They have the default of an added column.
    #[test]
    fn added_columns_are_readable_in_all_rows(
        rows in prop::collection::vec((any::<u64>(), any::<u16>(), any::<bool>()), 1..60),
        column_count in 3_usize..16,
    ) {
        let layouts = schemas(column_count);
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), Options::default()).unwrap();
        create(&store, columnar_family(&layouts[0]));
        let all: Vec<usize> = (0..TYPES.len()).collect();
        for (layout, is_added) in layouts.iter().zip([false, true]) {
            let known = store.tables().iter().find(|known| known.id == TABLE).cloned().unwrap();
            let mut descriptor = TableDescriptor::clone(&known);
            let layouts = &mut descriptor.families[0].value_layout;
            *layouts = value_layout(layout, 0, layouts).unwrap().into();
            store.alter_table(descriptor).unwrap();
            let rows = rows.iter().enumerate().filter(|(_, (_, _, added))| *added == is_added);
            put(&store, rows.map(|(id, (seed, nulls, _))| {
                put_row(layout, &row(id as i64, *seed, *nulls)[..layout.columns.len()])
            }));
            store.flush(TABLE).unwrap();
        }
        for is_merged in [false, true] {
            for columns in [&all[..], &[0], &[15, 3], &[15, 0, 2], &[]] {
                let as_columns = read(&store, &layouts[1], columns);
                // With two files, rows between those of the other file are read as rows.
                prop_assert!(!is_merged || as_columns == rows.len());
            }
            store.compact(TABLE, true).unwrap();
        }
    }
}

/// Returns two layouts: of the first columns, and of all with the others added later.
fn schemas(column_count: usize) -> [Arc<RowLayout>; 2] {
    let columns = TYPES.map(|data_type| (data_type, 0));
    let keys = [key(0, false), key(1, false)];
    let before = layout(&columns[..column_count], &keys, 0);
    let mut after = layout(&columns, &keys, 0);
    after.schema_version += 1;
    for (position, column) in after.columns.iter_mut().enumerate().skip(column_count) {
        if position % 2 == 0 {
            column.missing = value(&column.data_type, 5);
        }
    }
    [Arc::new(before), Arc::new(after)]
}
