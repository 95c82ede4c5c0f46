//! Model test of the aggregate endpoint: a store of several regions against a fold over the same
//! rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use store::transaction::TransactionOptions;
use store::{Mutation, Options, Store, TimeRange, Transaction};
use types::aggregate::{Aggregate, AggregateKind, Groups};
use types::expr::{EvalContext, Expr};
use types::rowcode::RowLayout;
use types::vector::BATCH_ROWS;
use types::{Batch, DataType, Datum};

use crate::aggregate::{AggregateEndpoint, AggregateRequest, PAGE_BYTES};
use crate::fixture::*;
use crate::violation::value_error;

/// `t (id int primary key, g int, keep bool, v int)`, with `v` in the last of the families.
fn base_layout(family_count: usize) -> Arc<RowLayout> {
    let last = family_count - 1;
    let columns =
        [(DataType::Int4, 0), (DataType::Int4, 0), (DataType::Bool, 0), (DataType::Int4, last)];
    Arc::new(layout(&columns, &[key(0, false)], 0))
}

type Values = (Option<i32>, Option<bool>, Option<i32>);
type Rows = BTreeMap<i32, Values>;

/// Group, count of rows, count of values, sum, minimum, count and sum of distinct values.
type Answer = Vec<(Option<i32>, i64, i64, Option<i64>, Option<i32>, i64, Option<i64>)>;

fn fold(rows: &Rows, is_filtered: bool, is_grouped: bool) -> Answer {
    let mut groups: BTreeMap<Option<i32>, Vec<Option<i32>>> = BTreeMap::new();
    if !is_grouped {
        groups.insert(None, Vec::new());
    }
    for (group, keep, value) in rows.values() {
        if !is_filtered || *keep == Some(true) {
            groups.entry(group.filter(|_| is_grouped)).or_default().push(*value);
        }
    }
    let answer = |(group, values): (Option<i32>, Vec<Option<i32>>)| {
        let known = || values.iter().flatten().copied();
        let sum: i64 = known().map(i64::from).sum();
        let count = known().count() as i64;
        let distinct: BTreeSet<i32> = known().collect();
        let distinct_sum: i64 = distinct.iter().copied().map(i64::from).sum();
        (
            group,
            values.len() as i64,
            count,
            (count > 0).then_some(sum),
            known().min(),
            distinct.len() as i64,
            (count > 0).then_some(distinct_sum),
        )
    };
    groups.into_iter().map(answer).collect()
}

/// Returns a request over columns `(g, keep, v)`, which are not in table order.
fn request(layout: &Arc<RowLayout>, is_filtered: bool, is_grouped: bool) -> AggregateRequest {
    let layout = Arc::clone(layout);
    let at = |index: usize, data_type: DataType| Expr::Column { index, data_type };
    let aggregate = |kind: AggregateKind, data_type: DataType| Aggregate {
        kind,
        arguments: (kind != AggregateKind::CountRows)
            .then(|| at(0, DataType::Int4))
            .into_iter()
            .collect(),
        distinct: false,
        order_by: vec![],
        filter: None,
        data_type,
    };
    AggregateRequest {
        layout,
        columns: vec![3, 1, 2],
        filter: is_filtered.then(|| at(2, DataType::Bool)),
        group_by: if is_grouped { vec![at(1, DataType::Int4)] } else { vec![] },
        aggregates: vec![
            aggregate(AggregateKind::CountRows, DataType::Int8),
            aggregate(AggregateKind::Count, DataType::Int8),
            aggregate(AggregateKind::Sum, DataType::Int8),
            aggregate(AggregateKind::Min, DataType::Int4),
            Aggregate { distinct: true, ..aggregate(AggregateKind::Count, DataType::Int8) },
            Aggregate { distinct: true, ..aggregate(AggregateKind::Sum, DataType::Int8) },
        ],
        time_range: TimeRange::ALL,
        context: EvalContext::default(),
        page_bytes: PAGE_BYTES,
    }
}

fn ask(transaction: &Transaction, request: &AggregateRequest) -> Batch {
    let ranges = [(Vec::new(), None)];
    let mut groups = Groups::new(&request.group_by, &request.aggregates, &request.context);
    let called = transaction.call_endpoint(
        &transaction.reader(TABLE).unwrap(),
        &ranges,
        &AggregateEndpoint,
        request,
        |response| {
            groups
                .merge(&response.groups.into_groups())
                .map_err(|error| value_error("merge", error))
        },
    );
    called.unwrap();
    groups.finish(0..groups.group_count()).unwrap()
}

fn int4(datum: &Datum) -> Option<i32> {
    match datum {
        Datum::Null => None,
        Datum::Int4(value) => Some(*value),
        datum => panic!("{datum:?}"),
    }
}

fn int8(datum: &Datum) -> Option<i64> {
    match datum {
        Datum::Null => None,
        Datum::Int8(value) => Some(*value),
        datum => panic!("{datum:?}"),
    }
}

fn answer(batches: &[Batch], is_grouped: bool) -> Answer {
    let rows = batches.iter().flat_map(|batch| (0..batch.row_count).map(|row| batch.row(row)));
    let mut answer: Answer = rows
        .map(|row| {
            let (keys, results) = row.split_at(usize::from(is_grouped));
            let count = |position: usize| int8(&results[position]).unwrap();
            let group = keys.first().and_then(int4);
            let (sum, least) = (int8(&results[2]), int4(&results[3]));
            (group, count(0), count(1), sum, least, count(4), int8(&results[5]))
        })
        .collect();
    answer.sort_unstable();
    answer
}

fn put(layout: &RowLayout, id: i32, values: &Values) -> Mutation {
    let (group, keep, value) = values;
    let int = |value: &Option<i32>| value.map_or(Datum::Null, Datum::Int4);
    let keep = keep.map_or(Datum::Null, Datum::Bool);
    put_row(layout, &[Datum::Int4(id), int(group), keep, int(value)])
}

fn rows() -> impl Strategy<Value = Rows> {
    let values =
        (prop::option::of(0..5), prop::option::of(any::<bool>()), prop::option::of(any::<i32>()));
    prop::collection::btree_map(0..300, values, 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn region_aggregates_match_fold_model(
        committed in rows(),
        own in rows(),
        deleted in prop::collection::btree_set(0..300, 0..40),
        flush in any::<bool>(),
        family_count in 1..3_usize,
        (endpoint_page_rows, parallel_after_rows) in (1..200_u64, 0..300_u64),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let options =
            Options {
            endpoint_page_rows,
            parallel_after_rows,
            parallel_piece_bytes: 1,
            ..Options::default()
        };
        let store = Store::open(directory.path(), options).unwrap();
        let layout = base_layout(family_count);
        three_regions(&store, &layout);
        let puts = |rows: &Rows| rows.iter().map(|(id, row)| put(&layout, *id, row)).collect();
        let transaction = store.begin(TransactionOptions::default());
        transaction.mutate(TABLE, puts(&committed)).unwrap();
        transaction.commit().unwrap().durable.wait().unwrap();
        if flush {
            store.flush(TABLE).unwrap();
        }
        let transaction = store.begin(TransactionOptions::default());
        transaction.mutate(TABLE, puts(&own)).unwrap();
        let key = |id: &i32| layout.encode_key_values(&[Datum::Int4(*id)]).unwrap();
        let deletes = deleted.iter().map(|id| Mutation::new(key(id)).delete_row()).collect();
        transaction.mutate(TABLE, deletes).unwrap();
        transaction.begin_statement();

        let mut expected = committed;
        expected.extend(own);
        expected.retain(|id, _| !deleted.contains(id));
        for (is_filtered, is_grouped) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            let request = request(&layout, is_filtered, is_grouped);
            let found = answer(&[ask(&transaction, &request)], is_grouped);
            prop_assert_eq!(found, fold(&expected, is_filtered, is_grouped));
        }
    }
}

#[test]
fn large_distinct_sets_are_returned_in_pages() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path(), Options::default()).unwrap();
    let layout = Arc::new(layout(&[(DataType::Int4, 0), (DataType::Text, 0)], &[key(0, false)], 0));
    three_regions(&store, &layout);
    let transaction = store.begin(TransactionOptions::default());
    // Half a page for each batch, in the last region; all distinct except one.
    let bytes = PAGE_BYTES / 2 / BATCH_ROWS;
    let long = |id: i32| Datum::text(format!("{:04}", id.min(6_198)).repeat(bytes / 4));
    let rows = (200..6_200).map(|id| put_row(&layout, &[Datum::Int4(id), long(id)])).collect();
    transaction.mutate(TABLE, rows).unwrap();
    transaction.begin_statement();
    let request = AggregateRequest {
        layout,
        columns: vec![1],
        filter: None,
        group_by: vec![],
        aggregates: vec![Aggregate {
            kind: AggregateKind::Count,
            arguments: vec![Expr::Column { index: 0, data_type: DataType::Text }],
            distinct: true,
            order_by: vec![],
            filter: None,
            data_type: DataType::Int8,
        }],
        time_range: TimeRange::ALL,
        context: EvalContext::default(),
        page_bytes: PAGE_BYTES,
    };
    let mut groups = Groups::new(&request.group_by, &request.aggregates, &request.context);
    let (mut largest, mut pages) = (0, 0);
    let ranges = [(Vec::new(), None)];
    let called = transaction.call_endpoint(
        &transaction.reader(TABLE).unwrap(),
        &ranges,
        &AggregateEndpoint,
        &request,
        |page| {
            pages += 1;
            largest = largest.max(page.rows_scanned);
            groups.merge(&page.groups.into_groups()).map_err(|error| value_error("merge", error))
        },
    );
    called.unwrap();
    assert!(pages > 3 && largest < 6_000, "{pages} pages, {largest} rows in one");
    assert_eq!(groups.finish(0..1).unwrap().row(0), [Datum::Int8(5_999)]);
}

#[test]
fn count_star_decodes_no_columns() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path(), Options::default()).unwrap();
    let layout = base_layout(2);
    three_regions(&store, &layout);
    let mut count = request(&layout, false, false);
    count.columns.clear();
    count.aggregates.truncate(1);
    let transaction = store.begin(TransactionOptions::default());
    transaction.begin_statement();
    assert_eq!(ask(&transaction, &count).row(0), [Datum::Int8(0)]);
    // Bytes that are not a packed row: decoding them fails.
    let row = |id: i32| layout.encode_key_values(&[Datum::Int4(id)]).unwrap();
    let rows = (0..250).map(|id| Mutation::new(row(id)).put(0, b"", b"\xFF".to_vec())).collect();
    transaction.mutate(TABLE, rows).unwrap();
    transaction.begin_statement();
    assert_eq!(ask(&transaction, &count).row(0), [Datum::Int8(250)]);
}
