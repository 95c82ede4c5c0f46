//! Tests of the group table and of feeding; results of aggregates are in `tests/postgres.rs`.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Aggregate, AggregateKind, GroupTable, feed, resolve};
use crate::datatype::DataType::{self, Bool, Char, Float8, Int4, Int8, Interval, Numeric, Text};
use crate::datetime;
use crate::datum::Datum;
use crate::expr::{CompareOp, EvalContext, Expr};
use crate::numeric;
use crate::vector::{Batch, Vector};

/// Groups one batch and returns the groups of its rows and the keys.
fn group(types: &[DataType], rows: &[Vec<Datum>]) -> (Vec<u32>, GroupTable) {
    let batch = Batch::from_rows(types, rows);
    let keys: Vec<&Vector> = batch.columns.iter().map(AsRef::as_ref).collect();
    let mut table = GroupTable::new(types);
    let mut groups = Vec::new();
    table.assign(&keys, batch.row_count, &mut groups);
    (groups, table)
}

#[test]
fn equal_values_are_one_group_however_they_look() {
    let cases: Vec<(DataType, Vec<Datum>, Vec<u32>)> = vec![
        (
            Float8,
            [0.0, -0.0, f64::NAN, -f64::NAN, 1.0].map(Datum::Float8).to_vec(),
            vec![0, 0, 1, 1, 2],
        ),
        (
            Numeric,
            ["1.0", "1.00", "1", "10", "100", "NaN", "1e60", "1.0e60", "NaN"]
                .map(|text| Datum::Numeric(numeric::Numeric::parse(text).unwrap()))
                .to_vec(),
            vec![0, 0, 0, 1, 2, 3, 4, 4, 3],
        ),
        (Char, ["a ", "a", "b"].map(Datum::text).to_vec(), vec![0, 0, 1]),
        (Text, ["a ", "a", "", "a"].map(Datum::text).to_vec(), vec![0, 1, 2, 1]),
        (
            Interval,
            [(1, 0), (0, 30), (0, 31)]
                .map(|(months, days)| Datum::Interval(datetime::Interval::new(months, days, 0)))
                .to_vec(),
            vec![0, 0, 1],
        ),
        (Int4, vec![Datum::Null, Datum::Int4(0), Datum::Null], vec![0, 1, 0]),
        (Text, vec![Datum::Null, Datum::text(""), Datum::Null], vec![0, 1, 0]),
    ];
    for (data_type, values, expected) in cases {
        let rows: Vec<Vec<Datum>> = values.iter().map(|value| vec![value.clone()]).collect();
        assert_eq!(group(&[data_type], &rows).0, expected, "{values:?}");
        // The same in the company of another column, which takes the path of bytes.
        let rows: Vec<Vec<Datum>> =
            values.iter().map(|value| vec![value.clone(), Datum::text("x"), Datum::Null]).collect();
        assert_eq!(group(&[data_type, Text, Bool], &rows).0, expected, "{values:?}");
    }
}

#[test]
fn no_key_columns_make_one_group() {
    let mut table = GroupTable::new(&[]);
    let mut groups = vec![7];
    table.assign(&[], 0, &mut groups);
    assert_eq!((groups.as_slice(), table.group_count()), (&[][..], 0));
    table.assign(&[], 3, &mut groups);
    assert_eq!((groups.as_slice(), table.group_count()), (&[0, 0, 0][..], 1));
}

proptest! {
    #[test]
    fn groups_are_those_of_a_map(
        rows in prop::collection::vec((0..4_i32, prop::option::of(-2..3_i64), 0..3_usize), 0..80),
        wide in any::<bool>(),
    ) {
        let texts = ["", "a", "aa"];
        let types: &[DataType] = if wide { &[Int4, Int8, Text] } else { &[Int4, Int8] };
        let rows: Vec<Vec<Datum>> = rows
            .iter()
            .map(|(a, b, c)| {
                let b = b.map_or(Datum::Null, Datum::Int8);
                let mut row = vec![Datum::Int4(*a), b];
                if wide {
                    row.push(Datum::text(texts[*c]));
                }
                row
            })
            .collect();
        let mut expected: BTreeMap<String, u32> = BTreeMap::new();
        let mut table = GroupTable::new(types);
        for chunk in rows.chunks(7) {
            let batch = Batch::from_rows(types, chunk);
            let keys: Vec<&Vector> = batch.columns.iter().map(AsRef::as_ref).collect();
            let mut groups = Vec::new();
            table.assign(&keys, batch.row_count, &mut groups);
            for (row, group) in chunk.iter().zip(groups) {
                let next = expected.len() as u32;
                prop_assert_eq!(*expected.entry(format!("{row:?}")).or_insert(next), group);
                let keys = table.keys(group as usize..group as usize + 1);
                let key: Vec<Datum> = keys.iter().map(|column| column.datum(0)).collect();
                prop_assert_eq!(&key, row);
            }
        }
        prop_assert_eq!(table.group_count(), expected.len());
    }
}

#[test]
fn feeding_filters_and_groups() {
    let late =
        Expr::compare(CompareOp::Gt, Expr::column(0, Int4), Expr::constant(Datum::Int4(1), Int4));
    let (kind, taken, data_type) = resolve("sum", Some(Int4)).unwrap();
    assert_eq!((kind, taken, data_type), (AggregateKind::Sum, Int4, Int8));
    let sum = Aggregate {
        kind,
        argument: Some(Expr::column(0, Int4)),
        distinct: false,
        filter: Some(late.clone()),
        data_type,
    };
    let rows = [Some(1), Some(2), None, Some(4), Some(5)]
        .map(|value| vec![value.map_or(Datum::Null, Datum::Int4)]);
    let batch = Batch::from_rows(&[Int4], &rows);
    let mut state = sum.accumulator();
    state.resize(3);
    let context = EvalContext::default();
    feed(&sum, state.as_mut(), &[0, 1, 1, 0, 1], &batch, &context).unwrap();
    let results: Vec<Datum> = (0..3).map(|group| state.finish(group).unwrap()).collect();
    assert_eq!(results, [Datum::Int8(4), Datum::Int8(7), Datum::Null]);

    let (kind, _, data_type) = resolve("count", None).unwrap();
    let count = Aggregate { kind, argument: None, distinct: false, filter: Some(late), data_type };
    let mut state = count.accumulator();
    state.resize(1);
    feed(&count, state.as_mut(), &[0; 5], &batch, &context).unwrap();
    assert_eq!(state.finish(0).unwrap(), Datum::Int8(3));
    let names = |_: usize| "n".to_owned();
    assert_eq!(count.describe(&names), "count(*) FILTER (WHERE n > 1)");
}

#[test]
fn aggregates_resolve_as_in_postgres() {
    let varchar = resolve("min", Some(DataType::Varchar));
    assert_eq!(varchar, Some((AggregateKind::Min, Text, Text)));
    let average = resolve("avg", Some(DataType::Float4));
    assert_eq!(average, Some((AggregateKind::Avg, DataType::Float4, Float8)));
    for (name, argument) in [("sum", Text), ("max", Bool), ("avg", DataType::Date)] {
        assert_eq!(resolve(name, Some(argument)), None);
    }
    assert_eq!(resolve("sum", None), None);
    assert_eq!(resolve("median", Some(Int4)), None);
}
