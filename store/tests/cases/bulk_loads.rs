//! Tests of bulk loads: adopted completely or not at all, at one position in the order of
//! commits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use store::bulk_load::{BulkCell, BulkLoad};
use store::cell::CellType;
use store::env::fault::{Fault, FaultEnv, Operation, Unsynced};
use store::transaction::{Isolation, TransactionOptions};
use store::{CellBatch, Error, Mutation, Result, Scan, Store, TableDescriptor, Timestamp};

use crate::cases::{TABLE, begin, columnar_family, descriptor, get, open, put, scan};

fn cell<'a>(row: &'a str, value: &'a str) -> BulkCell<'a> {
    BulkCell {
        row: row.as_bytes(),
        family: 0,
        qualifier: b"q",
        timestamp: None,
        cell_type: CellType::Put,
        value: value.as_bytes(),
    }
}

fn begin_load(store: &Arc<Store>, rows: &[&str], value: &str) -> Result<BulkLoad> {
    let mut load = store.bulk_load(TABLE)?;
    rows.iter().try_for_each(|row| load.add(cell(row, value)))?;
    Ok(load)
}

fn rows(store: &Arc<Store>) -> BTreeMap<String, String> {
    scan(&begin(store)).unwrap().into_iter().collect()
}

fn expected(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(row, value)| ((*row).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn bulk_load_is_newer_than_earlier_commits() {
    // The clock is fixed; commit times advance without it.
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(descriptor(&[], 1)).unwrap();
    (0..3).for_each(|number| put(&store, "a", &number.to_string()));
    begin_load(&store, &["a"], "loaded").unwrap().adopt().unwrap();
    assert_eq!(rows(&store), expected(&[("a", "loaded")]));
    put(&store, "a", "after");
    assert_eq!(rows(&store), expected(&[("a", "after")]));
}

#[test]
fn bulk_load_commits_atomically_across_regions() {
    let env = FaultEnv::new(1);
    let store = open(&env).unwrap();
    store.create_table(descriptor(&["m"], 1)).unwrap();
    env.set_now(2_000_000);
    put(&store, "a", "before");
    put(&store, "b", "before");
    let isolation = Isolation::RepeatableRead;
    let reader = store.begin(TransactionOptions { isolation, ..TransactionOptions::default() });
    reader.begin_statement();
    env.set_now(3_000_000);
    let load = begin_load(&store, &["a", "c", "z"], "loaded").unwrap();
    assert_eq!(rows(&store), expected(&[("a", "before"), ("b", "before")]));
    env.set_now(4_000_000);
    put(&store, "c", "meanwhile");
    let loaded = load.adopt().unwrap();
    assert_eq!((loaded.file_count, loaded.cell_count), (2, 3));
    // A version that was written meanwhile is newer than the load's.
    let all = expected(&[("a", "loaded"), ("b", "before"), ("c", "meanwhile"), ("z", "loaded")]);
    assert_eq!(rows(&store), all);
    assert_eq!(get(&reader, "a").unwrap().as_deref(), Some("before"));
    assert_eq!(get(&reader, "z").unwrap(), None);
    let locked = reader.lock_row(
        TABLE,
        b"z",
        store::transaction::LockMode::Exclusive,
        store::transaction::LockWait::NoWait,
    );
    assert!(matches!(locked, Err(Error::Serialization { .. })), "{locked:?}");
    store.compact_table(TABLE, true).unwrap();
    assert_eq!(rows(&store), all);
    assert_eq!(get(&reader, "a").unwrap().as_deref(), Some("before"));
    assert_eq!(scan(&reader).unwrap().len(), 2);
    drop(reader);
    env.set_now(5_000_000);
    let transaction = begin(&store);
    transaction.mutate(TABLE, vec![Mutation::new("a").delete_row()]).unwrap();
    transaction.commit().unwrap().durable.wait().unwrap();
    drop((transaction, store));
    let store = open(&env.after_crash(Unsynced::Lost)).unwrap();
    let all = expected(&[("b", "before"), ("c", "meanwhile"), ("z", "loaded")]);
    assert_eq!(rows(&store), all);
}

#[test]
fn bulk_loaded_rows_are_readable_in_reverse() {
    for columnar in [false, true] {
        let store = open(&FaultEnv::new(1)).unwrap();
        let plain = descriptor(&[], 1);
        let families = if columnar { vec![columnar_family()] } else { plain.families.clone() };
        store.create_table(TableDescriptor { families, ..plain }).unwrap();
        begin_load(&store, &["b", "d", "f"], "loaded").unwrap().adopt().unwrap();
        ["a", "c", "e", "g"].iter().for_each(|row| put(&store, row, "put"));
        let transaction = begin(&store);
        let mut scanner = transaction.scan(TABLE, Scan { reverse: true, ..Scan::all() }).unwrap();
        let (mut batch, mut found) = (CellBatch::new(), String::new());
        while scanner.next_batch(3, &mut batch).unwrap() {
            batch.rows().for_each(|row| found.push_str(std::str::from_utf8(row.key()).unwrap()));
        }
        assert_eq!(found, "gfedcba");
    }
}

#[test]
fn equal_timestamps_are_ordered_by_commit() {
    let env = FaultEnv::new(1);
    let store = open(&env).unwrap();
    store.create_table(descriptor(&[], 1)).unwrap();
    let mut at_7 = cell("a", "first");
    at_7.timestamp = Some(Timestamp(7));
    let load_one = |value| {
        let mut load = store.bulk_load(TABLE).unwrap();
        load.add(BulkCell { value, ..at_7 }).unwrap();
        load
    };
    let (first, second) = (load_one(b"first"), load_one(b"second"));
    second.adopt().unwrap();
    first.adopt().unwrap();
    assert_eq!(get(&begin(&store), "a").unwrap().as_deref(), Some("first"));
    store.compact_table(TABLE, true).unwrap();
    assert_eq!(get(&begin(&store), "a").unwrap().as_deref(), Some("first"));
    drop(load_one(b"never"));
    assert_eq!(get(&begin(&store), "a").unwrap().as_deref(), Some("first"));
    let stores = |env: &FaultEnv| {
        let paths = env.paths();
        paths.iter().filter(|path| path.extension().is_some_and(|name| name == "store")).count()
    };
    assert_eq!(stores(&env), 1, "{:?}", env.paths());
}

#[test]
fn unsorted_bulk_load_is_rejected() {
    let env = FaultEnv::new(1);
    let store = open(&env).unwrap();
    store.create_table(descriptor(&["m"], 1)).unwrap();
    let refused = |outcome: Result<()>| assert!(matches!(outcome, Err(Error::InvalidRequest(_))));
    let mut load = begin_load(&store, &["b", "n"], "x").unwrap();
    refused(load.add(cell("n", "again")));
    refused(load.add(cell("c", "back")));
    refused(load.add(cell("", "no row")));
    refused(load.add(BulkCell { family: 1, ..cell("z", "x") }));
    assert_eq!(load.adopt().unwrap().cell_count, 2);
    let empty = store.bulk_load(TABLE).unwrap().adopt().unwrap();
    assert_eq!((empty.sequence, empty.file_count), (None, 0));
    let late = begin_load(&store, &["b"], "y").unwrap();
    store.drop_table(TABLE).unwrap();
    assert!(matches!(late.adopt(), Err(Error::NoSuchTable(_))));
}

#[test]
fn bulk_load_is_atomic_under_crash() {
    let prepare = |env: &FaultEnv| {
        let store = open(env).unwrap();
        store.create_table(descriptor(&["m"], 1)).unwrap();
        put(&store, "a", "before");
        store
    };
    let run = |store: &Arc<Store>| begin_load(store, &["a", "b", "z"], "loaded")?.adopt();
    let calm = FaultEnv::new(1);
    let store = prepare(&calm);
    let before = calm.operation_count();
    run(&store).unwrap();
    let operations = calm.operation_count() - before;
    let (mut whole, mut absent) = (0, 0);
    for failing in 0..=operations {
        for unsynced in [Unsynced::Lost, Unsynced::Kept, Unsynced::Torn, Unsynced::Holed] {
            let env = FaultEnv::new(failing * 4 + whole + absent);
            let store = prepare(&env);
            env.fail_after(failing);
            let adopted = run(&store).is_ok();
            drop(store);
            let env = env.after_crash(unsynced);
            let store = open(&env).unwrap();
            let found = rows(&store);
            if found.len() == 1 {
                assert!(!adopted, "failing at {failing}");
                assert_eq!(found, expected(&[("a", "before")]));
                absent += 1;
            } else {
                let all = expected(&[("a", "loaded"), ("b", "loaded"), ("z", "loaded")]);
                assert_eq!(found, all, "failing at {failing}");
                whole += 1;
            }
            put(&store, "n", "after");
            assert_eq!(get(&begin(&store), "n").unwrap().as_deref(), Some("after"));
        }
    }
    assert!(whole > 3 && absent > 3, "{whole} whole, {absent} absent");
}

#[test]
fn bulk_load_is_atomic_under_sync_failure() {
    let (mut whole, mut absent) = (0, 0);
    for after in 0..12 {
        for seed in 0..10 {
            let env = FaultEnv::new(seed);
            let store = open(&env).unwrap();
            store.create_table(descriptor(&["m"], 1)).unwrap();
            put(&store, "a", "before");
            // Removal of files still works, for a load that seems to have failed.
            env.inject(Fault { operation: Operation::Sync, after, count: 1000 });
            let adopted = begin_load(&store, &["a", "b", "z"], "loaded").and_then(BulkLoad::adopt);
            drop(store);
            let store = open(&env.after_crash(Unsynced::Holed)).unwrap();
            match rows(&store).len() {
                1 => absent += usize::from(adopted.is_err()),
                found => {
                    assert_eq!(found, 3, "after {after} syncs, seed {seed}");
                    whole += usize::from(adopted.is_err());
                }
            }
        }
    }
    assert!(whole > 0 && absent > 0, "{whole} whole, {absent} absent");
}

#[test]
fn bulk_loads_are_atomic_among_concurrent_writers() {
    let env = FaultEnv::new(1);
    let store = open(&env).unwrap();
    store.create_table(descriptor(&["m"], 1)).unwrap();
    let ended = AtomicBool::new(false);
    let write = |row: &'static str| {
        let mut number = 0;
        while !ended.load(Ordering::SeqCst) {
            number += 1;
            put(&store, row, &number.to_string());
            assert_eq!(get(&begin(&store), row).unwrap(), Some(number.to_string()));
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| write("c"));
        scope.spawn(|| write("x"));
        scope.spawn(|| {
            while !ended.load(Ordering::SeqCst) {
                let found = rows(&store);
                assert_eq!(found.get("a"), found.get("z"), "half a load");
                store.flush_table(TABLE).unwrap();
                store.compact_table(TABLE, true).unwrap();
            }
        });
        for number in 0..20 {
            env.set_now(10_000_000 + number);
            let value = number.to_string();
            begin_load(&store, &["a", "z"], &value).unwrap().adopt().unwrap();
            assert_eq!(get(&begin(&store), "z").unwrap(), Some(value));
        }
        ended.store(true, Ordering::SeqCst);
    });
}
