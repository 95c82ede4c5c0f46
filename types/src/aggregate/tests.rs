//! Tests of the group table and of accumulators; results of aggregates are tested in
//! `tests/postgres.rs`.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{
    Aggregate, AggregateKind, AggregateStates, GroupTable, ResolvedAggregate, resolve,
    resolve_ordered,
};
use crate::datatype::DataType::{self, Bool, Char, Float8, Int4, Int8, Interval, Numeric, Text};
use crate::datetime;
use crate::datum::Datum;
use crate::expr::{CompareOp, EvalContext, Expr};
use crate::numeric;
use crate::order::SortKey;
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
fn equal_values_with_different_representations_form_one_group() {
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
        assert_eq!(group(std::slice::from_ref(&data_type), &rows).0, expected, "{values:?}");
        // The same with a second column, which uses the encoding as bytes.
        let rows: Vec<Vec<Datum>> =
            values.iter().map(|value| vec![value.clone(), Datum::text("x"), Datum::Null]).collect();
        assert_eq!(group(&[data_type, Text, Bool], &rows).0, expected, "{values:?}");
    }
}

#[test]
fn empty_group_key_makes_one_group() {
    let mut table = GroupTable::new(&[]);
    let mut groups = vec![7];
    table.assign(&[], 0, &mut groups);
    assert_eq!((groups.as_slice(), table.group_count()), (&[][..], 0));
    table.assign(&[], 3, &mut groups);
    assert_eq!((groups.as_slice(), table.group_count()), (&[0, 0, 0][..], 1));
}

proptest! {
    #[test]
    fn group_table_matches_map_model(
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
fn aggregate_update_applies_filter_and_group() {
    let late =
        Expr::compare(CompareOp::Gt, Expr::column(0, Int4), Expr::constant(Datum::Int4(1), Int4));
    let ResolvedAggregate { kind, arguments, data_type } = resolve("sum", &[Int4]).unwrap();
    assert_eq!((kind, arguments, data_type.clone()), (AggregateKind::Sum, vec![Int4], Int8));
    let sum = Aggregate {
        kind,
        arguments: vec![Expr::column(0, Int4)],
        distinct: false,
        order_by: vec![],
        filter: Some(late.clone()),
        data_type,
    };
    let rows = [Some(1), Some(2), None, Some(4), Some(5)]
        .map(|value| vec![value.map_or(Datum::Null, Datum::Int4)]);
    let batch = Batch::from_rows(&[Int4], &rows);
    let mut state = AggregateStates::new(&sum, &EvalContext::default());
    state.resize(3);
    let context = EvalContext::default();
    state.feed(&[0, 1, 1, 0, 1], &batch, &context).unwrap();
    let sums = state.finish(0..3).unwrap();
    let results: Vec<Datum> = (0..3).map(|group| sums.datum(group)).collect();
    assert_eq!(results, [Datum::Int8(4), Datum::Int8(7), Datum::Null]);

    let ResolvedAggregate { kind, data_type, .. } = resolve("count", &[]).unwrap();
    let count = Aggregate {
        kind,
        arguments: vec![],
        distinct: false,
        order_by: vec![],
        filter: Some(late),
        data_type,
    };
    let mut state = AggregateStates::new(&count, &EvalContext::default());
    state.resize(1);
    state.feed(&[0; 5], &batch, &context).unwrap();
    assert_eq!(state.finish(0..1).unwrap().datum(0), Datum::Int8(3));
    let names = |_: usize| "n".to_owned();
    assert_eq!(count.describe(&names), "count(*) FILTER (WHERE n > 1)");
}

/// Returns calls over `(bigint, double)` of all kinds except sketches, which have separate tests.
fn calls() -> Vec<Aggregate> {
    let mut calls = Vec::new();
    for name in [
        "count",
        "sum",
        "min",
        "max",
        "avg",
        "stddev_pop",
        "stddev_samp",
        "var_pop",
        "var_samp",
        "bool_and",
        "bool_or",
        "approx_count_distinct",
    ] {
        for (column, of) in [(0, Int8), (1, Float8)] {
            let argument = match name {
                "bool_and" | "bool_or" => Expr::IsNull(Box::new(Expr::column(column, of))),
                _ => Expr::column(column, of),
            };
            let ResolvedAggregate { kind, data_type, .. } =
                resolve(name, &[argument.data_type().clone()]).unwrap();
            for (distinct, is_filtered) in [(false, false), (true, false), (true, true)] {
                let one = Expr::constant(Datum::Int8(1), Int8);
                let late = Expr::compare(CompareOp::Gt, Expr::column(0, Int8), one);
                calls.push(Aggregate {
                    kind,
                    arguments: vec![argument.clone()],
                    distinct,
                    order_by: vec![],
                    filter: is_filtered.then_some(late),
                    data_type: data_type.clone(),
                });
            }
        }
    }
    calls.extend(pair_calls());
    calls
}

/// Returns calls with two arguments, and of integers alone.
fn pair_calls() -> Vec<Aggregate> {
    let integer = Expr::Cast {
        operand: Box::new(Expr::column(0, Int8)),
        from: Int8,
        to: Float8.into(),
        explicit: false,
    };
    let pair = vec![Expr::column(1, Float8), integer];
    let half = Expr::constant(Datum::Float8(0.5), Float8);
    let bits = ["bit_and", "bit_or", "bit_xor"].map(|name| (name, vec![Expr::column(0, Int8)]));
    let pairs = [
        "corr",
        "covar_pop",
        "covar_samp",
        "regr_avgx",
        "regr_avgy",
        "regr_count",
        "regr_intercept",
        "regr_r2",
        "regr_slope",
        "regr_sxx",
        "regr_sxy",
        "regr_syy",
    ]
    .map(|name| (name, pair.clone()));
    let percentile = ("approx_percentile", vec![Expr::column(1, Float8), half]);
    let mut calls = Vec::new();
    for (name, arguments) in bits.into_iter().chain(pairs).chain([percentile]) {
        let types: Vec<DataType> = arguments.iter().map(Expr::data_type).cloned().collect();
        let ResolvedAggregate { kind, data_type, .. } = resolve(name, &types).unwrap();
        for distinct in [false, true] {
            let arguments = arguments.clone();
            let order_by = vec![];
            calls.push(Aggregate {
                kind,
                arguments,
                distinct,
                order_by,
                filter: None,
                data_type: data_type.clone(),
            });
        }
    }
    calls
}

/// Returns calls over `(bigint, double)` that collect values without an order.
fn collecting_calls() -> Vec<Aggregate> {
    let integer = Expr::column(0, Int8);
    let comma = Expr::constant(Datum::text(", "), Text);
    let text = Expr::Cast {
        operand: Box::new(integer.clone()),
        from: Int8,
        to: Text.into(),
        explicit: true,
    };
    let one = Expr::constant(Datum::Int8(1), Int8);
    let key = Expr::Coalesce { operands: vec![integer.clone(), one], data_type: Int8 };
    [
        ("array_agg", vec![integer.clone()]),
        ("string_agg", vec![text, comma]),
        ("json_agg", vec![integer.clone()]),
        ("jsonb_agg", vec![integer.clone()]),
        ("json_object_agg", vec![key.clone(), integer.clone()]),
        ("jsonb_object_agg", vec![key, integer]),
    ]
    .into_iter()
    .map(|(name, arguments)| {
        let types: Vec<DataType> = arguments.iter().map(Expr::data_type).cloned().collect();
        let ResolvedAggregate { kind, data_type, .. } = resolve(name, &types).unwrap();
        let order_by = vec![];
        Aggregate { kind, arguments, distinct: false, order_by, filter: None, data_type }
    })
    .collect()
}

/// Returns calls that need their rows in a total order.
fn ordered() -> Vec<Aggregate> {
    let key = |column, data_type, descending| SortKey {
        expression: Expr::column(column, data_type),
        descending,
        nulls_first: descending,
    };
    let order_by = vec![key(0, Int8, true), key(1, Float8, false)];
    let mut calls: Vec<Aggregate> = collecting_calls()
        .into_iter()
        .map(|call| Aggregate { order_by: order_by.clone(), ..call })
        .collect();
    let distinct =
        |call: &Aggregate| Aggregate { distinct: true, order_by: vec![], ..call.clone() };
    calls.extend(calls[..4].to_vec().iter().map(distinct));
    let half = Expr::constant(Datum::Float8(0.5), Float8);
    let two = Expr::constant(Datum::Int8(2), Int8);
    for (name, direct, column, of) in [
        ("percentile_cont", Some(half.clone()), 1, Float8),
        ("percentile_disc", Some(half), 0, Int8),
        ("mode", None, 0, Int8),
        ("rank", Some(two.clone()), 0, Int8),
        ("dense_rank", Some(two.clone()), 0, Int8),
        ("percent_rank", Some(two.clone()), 0, Int8),
        ("cume_dist", Some(two), 0, Int8),
    ] {
        let direct: Vec<Expr> = direct.into_iter().collect();
        let direct_types: Vec<DataType> = direct.iter().map(Expr::data_type).cloned().collect();
        let found = resolve_ordered(name, &direct_types, std::slice::from_ref(&of)).unwrap();
        for descending in [false, true] {
            calls.push(Aggregate {
                kind: found.kind,
                arguments: [direct.clone(), vec![Expr::column(column, &of)]].concat(),
                distinct: false,
                order_by: vec![key(column, of.clone(), descending)],
                filter: None,
                data_type: found.data_type.clone(),
            });
        }
    }
    calls
}

/// Returns the states of some rows, grouped by the first column.
fn states_of(call: &Aggregate, rows: &[Vec<Datum>], group_count: usize) -> AggregateStates {
    let mut states = AggregateStates::new(call, &EvalContext::default());
    states.resize(group_count);
    for chunk in rows.chunks(5) {
        let groups: Vec<u32> = chunk.iter().map(|row| row[0].as_i64().unwrap() as u32).collect();
        let batch = Batch::from_rows(&[Int8, Int8, Float8], chunk);
        let batch = Batch { columns: batch.columns[1..].to_vec(), row_count: batch.row_count };
        states.feed(&groups, &batch, &EvalContext::default()).unwrap();
    }
    states
}

const GROUPS: usize = 3;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn merged_partial_states_equal_single_state(
        rows in prop::collection::vec(
            (
                0..GROUPS as i64,
                prop::option::of(-3..6_i64),
                prop::option::of(-3..6_i32),
                0..4_usize,
            ),
            0..60,
        ),
        turn in 0..GROUPS,
    ) {
        let part_of: Vec<usize> = rows.iter().map(|row| row.3).collect();
        let rows: Vec<Vec<Datum>> = rows
            .iter()
            .map(|(group, integer, float, _)| {
                let integer = integer.map_or(Datum::Null, Datum::Int8);
                // Sums of quarters are exact: whether all values are equal, and a correlation is
                // NULL, does not depend on the order of addition.
                let float = float.map(|value| Datum::Float8(f64::from(value) * 0.25));
                vec![Datum::Int8(*group), integer, float.unwrap_or(Datum::Null)]
            })
            .collect();
        for call in calls().into_iter().chain(ordered()) {
            let whole = states_of(&call, &rows, GROUPS).finish(0..GROUPS).unwrap();
            let mut merged = AggregateStates::new(&call, &EvalContext::default());
            merged.resize(GROUPS);
            for part in 0..4 {
                // Group g of the whole has another number in each part.
                let number = |group: usize| (group + part * turn) % GROUPS;
                let rows: Vec<Vec<Datum>> = (0..rows.len())
                    .filter(|row| part_of[*row] == part)
                    .map(|row| {
                        let group = rows[row][0].as_i64().unwrap() as usize;
                        let group = Datum::Int8(number(group) as i64);
                        [&[group], &rows[row][1..]].concat()
                    })
                    .collect();
                let mut groups = [0; GROUPS];
                (0..GROUPS).for_each(|group| groups[number(group)] = group as u32);
                let partial = states_of(&call, &rows, GROUPS).into_partial(GROUPS).unwrap();
                merged.merge(&partial, &groups).unwrap();
            }
            let merged = merged.finish(0..GROUPS).unwrap();
            for group in 0..GROUPS {
                let (a, b) = (whole.datum(group), merged.datum(group));
                let call_text = call.describe(&|_| "x".into());
                let what = format!("{call_text} of group {group}: {a:?} {b:?}");
                match (&a, &b) {
                    // Without DISTINCT floats are added in the order of the parts.
                    (Datum::Float8(a), Datum::Float8(b)) if !call.distinct => {
                        prop_assert!((a - b).abs() < 1e-9, "{}", what);
                    }
                    _ => prop_assert_eq!(&a, &b, "{}", what),
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn ordered_values_follow_partition_order_after_merge(
        rows in prop::collection::vec((0..2_i64, prop::option::of(-3..6_i64)), 0..20),
        cut in 0..20_usize,
    ) {
        let rows: Vec<Vec<Datum>> = rows
            .iter()
            .map(|(group, value)| {
                let value = value.map_or(Datum::Null, Datum::Int8);
                vec![Datum::Int8(*group), value, Datum::Null]
            })
            .collect();
        let (first, second) = rows.split_at(cut.min(rows.len()));
        for call in collecting_calls() {
            let whole = states_of(&call, &rows, 2).finish(0..2).unwrap();
            let mut merged = AggregateStates::new(&call, &EvalContext::default());
            merged.resize(2);
            for part in [first, second] {
                merged.merge(&states_of(&call, part, 2).into_partial(2).unwrap(), &[0, 1]).unwrap();
            }
            prop_assert_eq!(&whole, &merged.finish(0..2).unwrap(), "{}", call.describe(&|_| "x".into()));
        }
    }
}

#[test]
fn distinct_float_sum_adds_in_sorted_order() {
    let call = Aggregate {
        kind: AggregateKind::Sum,
        arguments: vec![Expr::column(1, Float8)],
        distinct: true,
        order_by: vec![],
        filter: None,
        data_type: Float8,
    };
    // From left to right 0.5; PostgreSQL returns 0, too.
    let rows = [1e17, -1e17, 0.5].map(|v| vec![Datum::Int8(0), Datum::Null, Datum::Float8(v)]);
    let mut states = states_of(&call, &rows, 1);
    assert_eq!(states.finish(0..1).unwrap().datum(0), Datum::Float8(0.0));
}

#[test]
fn numeric_sums_are_exact_at_all_sizes() {
    let parse = |text: &str| numeric::Numeric::parse(text).unwrap();
    let huge = "9".repeat(37);
    let lists: [&[&str]; 5] = [
        &["1.5", "2.25", "-3", "0.000"],
        &["9223372036854775807", "9223372036854775807", "0.01", "1"],
        // Exceeds the mantissa and returns.
        &[&huge, &huge, &huge, "1e40", "-1e40", "0.5", "12345678901234567890.5"],
        &["1e-30", "99999999999999999999", "1e300", "-1e300", "1e-200"],
        &["1", "Infinity", "2", "NaN"],
    ];
    let call = Aggregate {
        kind: AggregateKind::Sum,
        arguments: vec![Expr::column(0, Numeric)],
        distinct: false,
        order_by: vec![],
        filter: None,
        data_type: Numeric,
    };
    let context = EvalContext::default();
    let states = |values: &[numeric::Numeric]| {
        let rows: Vec<Vec<Datum>> =
            values.iter().map(|value| vec![Datum::Numeric(value.clone())]).collect();
        let mut states = AggregateStates::new(&call, &context);
        states.resize(1);
        let batch = Batch::from_rows(&[Numeric], &rows);
        states.feed(&vec![0; values.len()], &batch, &context).unwrap();
        states
    };
    for list in lists {
        let values: Vec<numeric::Numeric> = list.iter().map(|text| parse(text)).collect();
        let expected = values.iter().try_fold(parse("0"), |sum, value| sum.checked_add(value));
        let expected = expected.unwrap().to_string();
        for cut in 0..=values.len() {
            let (one, other) = values.split_at(cut);
            let mut whole = states(&[]);
            for part in [states(one), states(other)] {
                whole.merge(&part.into_partial(1).unwrap(), &[0]).unwrap();
            }
            let Datum::Numeric(sum) = whole.finish(0..1).unwrap().datum(0) else { panic!() };
            assert_eq!(sum.to_string(), expected, "{list:?} at {cut}");
        }
    }
}

#[test]
fn aggregate_resolution_matches_postgresql() {
    let found = |kind, argument, data_type| {
        Some(ResolvedAggregate { kind, arguments: vec![argument], data_type })
    };
    let varchar = resolve("min", &[DataType::Varchar]);
    assert_eq!(varchar, found(AggregateKind::Min, Text, Text));
    let average = resolve("avg", &[DataType::Float4]);
    assert_eq!(average, found(AggregateKind::Avg, DataType::Float4, Float8));
    for (name, argument) in [("sum", Text), ("max", Bool), ("avg", DataType::Date)] {
        assert_eq!(resolve(name, &[argument]), None);
    }
    assert_eq!(resolve("sum", &[]), None);
    assert_eq!(resolve("median", &[Int4]), None);
}
