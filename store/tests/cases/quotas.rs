//! Tests of quotas: rejected statements, by the clock of the store.

use std::sync::Arc;
use std::time::Duration;

use store::env::fault::FaultEnv;
use store::quota::{Quota, QuotaKind, QuotaLimits};
use store::transaction::TransactionOptions;
use store::{CellBatch, Error, Get, Mutation, Result, Scan, Store, TableId, Transaction};

use crate::cases::{TABLE, begin, descriptor, open, put};

const START: i64 = 1_000_000;

fn limits(kind: QuotaKind, per_second: u64) -> QuotaLimits {
    let mut limits = QuotaLimits::default();
    limits.set(kind, Some(per_second));
    limits
}

fn request(transaction: &Transaction) {
    transaction.begin_statement();
    transaction.begin_request();
}

fn get(transaction: &Transaction, row: &str) -> Result<bool> {
    transaction.get(TABLE, &Get::new(row), &mut CellBatch::new())
}

fn refused<T>(result: Result<T>) -> (String, &'static str, Duration) {
    match result {
        Err(Error::QuotaExceeded { subject, quota, retry_after, .. }) => {
            (subject, quota, retry_after)
        }
        _ => panic!("not refused"),
    }
}

fn store_with_rows(env: &FaultEnv) -> Arc<Store> {
    let store = open(env).unwrap();
    store.create_table(descriptor(&["m"], 1)).unwrap();
    put(&store, "a", "1");
    put(&store, "z", "2");
    store
}

#[test]
fn statement_counts_as_one_quota_request() {
    let env = FaultEnv::new(1);
    let store = store_with_rows(&env);
    let quota = Quota::new("table \"t\"", limits(QuotaKind::Requests, 2));
    store.set_quotas(TABLE, vec![Arc::new(quota)]).unwrap();
    let reader = begin(&store);
    for _ in 0..2 {
        request(&reader);
        assert!(get(&reader, "a").unwrap() && get(&reader, "z").unwrap());
        let mut scanner = reader.scan(TABLE, Scan::all()).unwrap();
        assert!(scanner.next_batch(10, &mut CellBatch::new()).unwrap());
    }
    request(&reader);
    let half = Duration::from_millis(500);
    let expected = ("table \"t\"".to_owned(), "max_requests_per_second", half);
    assert_eq!(refused(get(&reader, "a")), expected);
    assert_eq!(refused(reader.scan(TABLE, Scan::all())), expected);
    assert_eq!(refused(reader.mutate(TABLE, vec![Mutation::new("b")])), expected);
    env.set_now(START + 500_000);
    get(&reader, "a").unwrap();
    reader.begin_statement();
    get(&reader, "a").expect("what is no request is held to nothing");
    store.set_quotas(TABLE, Vec::new()).unwrap();
    request(&reader);
    get(&reader, "a").unwrap();
}

#[test]
fn quota_bytes_are_charged_after_access() {
    let env = FaultEnv::new(1);
    let store = store_with_rows(&env);
    let mut both = limits(QuotaKind::ReadBytes, 10);
    both.set(QuotaKind::WriteBytes, Some(10));
    let quota = Arc::new(Quota::new("t", both));
    store.set_quotas(TABLE, vec![Arc::clone(&quota)]).unwrap();
    let available = || -> Vec<i64> {
        let now = env.now();
        quota.status(now).iter().map(|status| status.available).collect()
    };
    let client = begin(&store);
    request(&client);
    let mut row = CellBatch::new();
    assert!(client.get(TABLE, &Get::new("a"), &mut row).unwrap());
    assert_eq!(available(), [10 - row.byte_count() as i64, 10]);
    let mut scanner = client.scan(TABLE, Scan::all()).unwrap();
    let mut read = row.byte_count();
    while scanner.next_batch(1, &mut row).unwrap() {
        read += row.byte_count();
    }
    assert_eq!(available(), [10 - read as i64, 10]);
    let write =
        |value: usize| client.mutate(TABLE, vec![Mutation::new("b").put(0, "q", vec![0; value])]);
    write(28).unwrap();
    assert_eq!(available()[1], -20);
    write(1_000_000).expect("the statement is in");
    assert_eq!(available()[1], -100, "ten seconds' worth, no more");
    request(&client);
    get(&client, "a").unwrap();
    let (_, name, after) = refused(write(1));
    assert_eq!((name, after), ("max_write_bytes_per_second", Duration::from_micros(10_000_001)));
    env.set_now(START + 10_000_001);
    write(1).unwrap();
}

#[test]
fn role_quota_applies_to_all_tables() {
    let env = FaultEnv::new(1);
    let store = store_with_rows(&env);
    let other = TableId(2);
    store.create_table(store::TableDescriptor { id: other, ..descriptor(&[], 1) }).unwrap();
    let role = Arc::new(Quota::new("role \"r\"", limits(QuotaKind::Requests, 1)));
    let session = || {
        let quotas = [Some(Arc::clone(&role)), None];
        store.begin(TransactionOptions { quotas, ..TransactionOptions::default() })
    };
    let first = session();
    request(&first);
    get(&first, "a").unwrap();
    first.get(other, &Get::new("a"), &mut CellBatch::new()).expect("the same request");
    let second = session();
    request(&second);
    let found = second.get(other, &Get::new("a"), &mut CellBatch::new());
    assert_eq!(refused(found).0, "role \"r\"");
    let someone = begin(&store);
    request(&someone);
    get(&someone, "a").unwrap();
}
