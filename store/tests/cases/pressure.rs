//! Background work: flushes by size, a bounded log, writers that wait for memory; and the ends of
//! tables and stores.

use std::path::Path;
use std::sync::Arc;

use store::env::fault::FaultEnv;
use store::transaction::{LockMode, LockWait};
use store::{CellBatch, Error, Mutation, Options, Store, Transaction};

use crate::cases::{TABLE, begin, descriptor, get, open, options, put, scan, value};

fn small(env: &FaultEnv) -> Arc<Store> {
    let options = Options {
        memory_bytes: 1 << 20,
        memstore_flush_bytes: 64 << 10,
        wal_segment_bytes: 64 << 10,
        ..options(env)
    };
    Store::open(Path::new("/data"), options).unwrap()
}

#[test]
fn memory_and_log_stay_bounded_and_nothing_is_lost() {
    let env = FaultEnv::new(1);
    let store = small(&env);
    store.create_table(descriptor(&["00500"], 1)).unwrap();
    let filling = "x".repeat(2000);
    for row in 0..1000 {
        put(&store, &format!("{row:05}"), &filling);
        let status = store.status();
        // Writers wait at one and a half times the limit; a memstore's next chunk may be as large
        // as all its chunks before.
        assert!(status.memstore_bytes < status.memstore_limit_bytes * 3, "{status:?}");
    }
    let files: usize = store.regions(TABLE).unwrap().iter().map(|region| region.file_count).sum();
    assert!(files > 0, "nothing was flushed");
    store.flush_table(TABLE).unwrap();
    assert_eq!(store.status().memstore_bytes, 0);
    assert!(store.status().log_bytes < 256 << 10, "{:?}", store.status());
    drop(store);
    let store = small(&env);
    assert_eq!(scan(&begin(&store)).unwrap().len(), 1000);
}

#[test]
fn the_region_that_holds_the_log_back_is_flushed() {
    let env = FaultEnv::new(1);
    let store = small(&env);
    store.create_table(descriptor(&["m"], 1)).unwrap();
    put(&store, "a", "the oldest");
    let filling = "x".repeat(2000);
    let oldest_bytes = || store.regions(TABLE).unwrap()[0].memstore_bytes;
    let mut row = 0;
    // The other region is flushed again and again for its own size; the first is too small for that
    // and memory is not short, but its only record is at the beginning of the log.
    while oldest_bytes() > 0 {
        assert!(row < 5000, "{:?}", store.status());
        row += 1;
        put(&store, &format!("z{row:05}"), &filling);
    }
    assert!(row > 100, "it was not the log that asked for it");
    store.flush_table(TABLE).unwrap();
    assert!(store.status().log_bytes < 256 << 10, "{:?}", store.status());
    assert_eq!(get(&begin(&store), "a").unwrap().as_deref(), Some("the oldest"));
}

#[test]
fn a_scan_goes_on_to_the_end_of_a_dropped_table() {
    let env = FaultEnv::new(1);
    let store = open(&env).unwrap();
    store.create_table(descriptor(&["m"], 1)).unwrap();
    put(&store, "a", "one");
    put(&store, "z", "two");
    store.flush_table(TABLE).unwrap();
    let transaction = begin(&store);
    let mut scanner = transaction.scan(TABLE, store::Scan::all()).unwrap();
    let mut batch = CellBatch::new();
    assert!(scanner.next_batch(1, &mut batch).unwrap());
    store.drop_table(TABLE).unwrap();
    assert!(scanner.next_batch(1, &mut batch).unwrap());
    assert_eq!(value(&batch).as_deref(), Some("two"));
    assert!(!scanner.next_batch(1, &mut batch).unwrap());
    assert!(matches!(get(&transaction, "a"), Err(Error::NoSuchTable(_))));
    store.create_table(descriptor(&[], 1)).unwrap();
    assert!(scan(&begin(&store)).unwrap().is_empty());
}

#[test]
fn a_stopped_store_refuses_and_a_locked_directory_too() {
    let env = FaultEnv::new(1);
    let store = open(&env).unwrap();
    store.create_table(descriptor(&[], 1)).unwrap();
    put(&store, "a", "one");
    assert!(matches!(open(&env), Err(Error::InUse { .. })));
    let late = begin(&store);
    late.mutate(TABLE, vec![Mutation::new("b").put(0, "q", "x".into())]).unwrap();
    store.shut_down().unwrap();
    assert!(matches!(late.commit(), Err(Error::ShutDown)));
    assert!(matches!(get(&begin(&store), "a"), Err(Error::ShutDown)));
    drop((late, store));
    assert_eq!(scan(&begin(&open(&env).unwrap())).unwrap().len(), 1);
}

/// Stages rows of 2,000 bytes until that is refused; returns how many were taken.
fn stage_until_refused(transaction: &Transaction, name: &str) -> usize {
    let filling = vec![7; 2000];
    let stage = |row: usize| {
        let mutation = Mutation::new(format!("{name}{row:06}")).put(0, "q", filling.clone());
        transaction.mutate(TABLE, vec![mutation])
    };
    let refused = (0..100_000).find_map(|row| stage(row).err().map(|error| (row, error)));
    let (row, error) = refused.unwrap();
    assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
    row
}

#[test]
fn a_transaction_too_large_is_refused_and_others_go_on() {
    let env = FaultEnv::new(1);
    let store = small(&env);
    store.create_table(descriptor(&["00500"], 1)).unwrap();
    let large = begin(&store);
    let rows = stage_until_refused(&large, "a");
    let held = store.status().transaction_bytes;
    // The next chunk of an arena is as large as all before.
    assert!(rows > 40 && held < 400 << 10, "{rows} rows, {held} bytes");
    // The refused row is not staged; the others are, until it is rolled back.
    assert_eq!(scan(&large).unwrap().len(), 0, "a statement does not see what it writes");
    large.begin_statement();
    assert_eq!(scan(&large).unwrap().len(), rows);
    put(&store, "other", "one");
    let second = begin(&store);
    assert!(stage_until_refused(&second, "b") < rows, "all share the limit");
    second.rollback();
    large.rollback();
    assert_eq!(store.status().transaction_bytes, 0);
    assert_eq!(scan(&begin(&store)).unwrap().len(), 1);
    let again = begin(&store);
    assert_eq!(stage_until_refused(&again, "c"), rows, "the memory is free again");
    again.commit().unwrap().durable.wait().unwrap();
    assert_eq!(store.status().transaction_bytes, 0);
    assert_eq!(scan(&begin(&store)).unwrap().len(), rows + 1);
}

#[test]
fn row_locks_count_too() {
    let env = FaultEnv::new(1);
    let store = small(&env);
    store.create_table(descriptor(&[], 1)).unwrap();
    let transaction = begin(&store);
    let lock = |row: u32| {
        transaction.lock_row(TABLE, &row.to_be_bytes(), LockMode::Shared, LockWait::Wait)
    };
    let refused = (0..100_000).find_map(|row| lock(row).err());
    assert!(matches!(refused, Some(Error::OutOfMemory { .. })), "{refused:?}");
    drop(transaction);
    assert_eq!(store.status().transaction_bytes, 0);
}

#[test]
fn a_rollback_to_a_savepoint_gives_memory_back() {
    let env = FaultEnv::new(1);
    let store = small(&env);
    store.create_table(descriptor(&[], 1)).unwrap();
    let transaction = begin(&store);
    let stage = |row: &str, bytes: usize| {
        let mutation = Mutation::new(row).put(0, "q", vec![b'x'; bytes]);
        transaction.mutate(TABLE, vec![mutation]).unwrap();
    };
    for round in 0..100 {
        stage(&format!("kept{round:03}"), 1);
        let savepoint = transaction.savepoint();
        (0..30).for_each(|row| stage(&format!("row{row:03}"), 2000));
        transaction.begin_statement();
        assert_eq!(scan(&transaction).unwrap().len(), round + 31);
        transaction.rollback_to(savepoint);
    }
    assert!(store.status().transaction_bytes < 64 << 10, "{:?}", store.status());
    transaction.commit().unwrap().durable.wait().unwrap();
    let rows = scan(&begin(&store)).unwrap();
    assert!(rows.len() == 100 && rows.iter().all(|(row, _)| row.starts_with("kept")));
}
