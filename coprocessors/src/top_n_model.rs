//! Model test of the top-n endpoint: a store against a sort of the same rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use store::transaction::TransactionOptions;
use store::{Mutation, Options, Store, TimeRange, Transaction};
use types::expr::{CompareOp, EvalContext, Expr};
use types::order::SortKey;
use types::rowcode::RowLayout;
use types::{DataType, Datum};

use crate::fixture::*;
use crate::top_n::{Merger, TopNEndpoint, TopNRequest};

/// Returns the layout of `t (id int primary key, a int, b text)`, with `b` in the last of the
/// families.
fn base_layout(family_count: usize) -> Arc<RowLayout> {
    let columns = [(DataType::Int4, 0), (DataType::Int4, 0), (DataType::Text, family_count - 1)];
    Arc::new(layout(&columns, &[key(0, false)], 0))
}

type Rows = BTreeMap<i32, (Option<i32>, i32)>;

fn put(layout: &RowLayout, id: i32, (a, b): (Option<i32>, i32)) -> Mutation {
    let a = a.map_or(Datum::Null, Datum::Int4);
    put_row(layout, &[Datum::Int4(id), a, Datum::text(format!("{b:02}"))])
}

/// Returns a request over columns `(b, a, id)`, sorted by a, or by a and b; `id` is read only for
/// the answer.
fn request(layout: &Arc<RowLayout>, descending: bool, two_keys: bool) -> TopNRequest {
    let key = |index: usize, data_type: DataType| SortKey {
        expression: Expr::column(index, data_type),
        descending,
        nulls_first: descending,
    };
    let mut keys = vec![key(1, DataType::Int4), key(0, DataType::Text)];
    keys.truncate(1 + usize::from(two_keys));
    TopNRequest {
        layout: Arc::clone(layout),
        columns: vec![2, 1, 0],
        filter: None,
        keys,
        output: vec![2, 0],
        row_count: 0,
        time_range: TimeRange::ALL,
        context: EvalContext::default(),
    }
}

fn ask(transaction: &Transaction, request: &TopNRequest) -> Vec<i32> {
    let mut merger = Merger::new(request);
    let ranges = [(Vec::new(), None)];
    let called = transaction.call_endpoint(
        &transaction.reader(TABLE).unwrap(),
        &ranges,
        &TopNEndpoint,
        request,
        |response| {
            merger.add(response);
            Ok::<(), store::Error>(())
        },
    );
    called.unwrap();
    let (columns, order) = merger.finish();
    let ids = columns[0].take(&order);
    (0..order.len()).map(|row| ids.datum(row).as_i64().unwrap() as i32).collect()
}

fn sorted(rows: &Rows, request: &TopNRequest) -> Vec<i32> {
    let descends = request.keys[0].descending;
    let mut rows: Vec<(i32, (Option<i32>, i32))> = rows
        .iter()
        .map(|(id, row)| (*id, *row))
        .filter(|(_, (a, _))| request.filter.is_none() || a.is_some_and(|a| a > 1))
        .collect();
    rows.sort_by(|(_, x), (_, y)| {
        // NULL is the greatest value in both directions.
        let by_a = x.0.is_none().cmp(&y.0.is_none()).then(x.0.cmp(&y.0));
        let by_b = if request.keys.len() > 1 { x.1.cmp(&y.1) } else { std::cmp::Ordering::Equal };
        if descends { by_a.then(by_b).reverse() } else { by_a.then(by_b) }
    });
    rows.iter().take(request.row_count).map(|(id, _)| *id).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn region_top_n_matches_sort_model(
        committed in prop::collection::btree_map(
            0..300, (prop::option::of(0..8), 0..5), 0..200,
        ),
        own in prop::collection::btree_map(0..300, (prop::option::of(0..8), 0..5), 0..60),
        deleted in prop::collection::btree_set(0..300, 0..40),
        row_count in prop_oneof![0..20_usize, Just(100), Just(usize::MAX)],
        (flush, is_filtered, descending, two_keys) in any::<(bool, bool, bool, bool)>(),
        family_count in 1..3_usize,
        (endpoint_page_rows, parallel_after_rows) in (1..200_u64, 0..300_u64),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let options = Options {
            endpoint_page_rows,
            parallel_after_rows,
            parallel_piece_bytes: 1,
            ..Options::default()
        };
        let store = Store::open(directory.path(), options).unwrap();
        let layout = base_layout(family_count);
        three_regions(&store, &layout);
        let puts = |rows: &Rows| rows.iter().map(|(id, row)| put(&layout, *id, *row)).collect();
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
        let mut request = request(&layout, descending, two_keys);
        request.row_count = row_count;
        request.filter = is_filtered.then(|| {
            let one = Expr::constant(Datum::Int4(1), DataType::Int4);
            Expr::compare(CompareOp::Gt, Expr::column(1, DataType::Int4), one)
        });
        prop_assert_eq!(ask(&transaction, &request), sorted(&expected, &request));
    }
}
