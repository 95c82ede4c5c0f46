//! Tests of replicas: results of TIMELINE and STRONG reads while the primary is held.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use store::env::fault::{FaultEnv, Unsynced};
use store::transaction::{Consistency, TransactionOptions};
use store::{Error, Store, Transaction};

use crate::cases::{TABLE, begin, descriptor, get, open, put, scan_rows as scan};

fn timeline(store: &Arc<Store>) -> Transaction {
    let consistency = Consistency::Timeline { timeout: Duration::from_millis(1) };
    store.begin(TransactionOptions { consistency, ..TransactionOptions::default() })
}

/// Waits until the replicas have all visible commits.
fn await_replica(store: &Arc<Store>) {
    let visible = store.status().visible;
    while store.regions(TABLE).unwrap().iter().any(|r| r.replicas[0].applied < visible) {
        std::thread::yield_now();
    }
}

fn check_held(store: &Arc<Store>, expected: &[(&str, &str)]) {
    await_replica(store);
    let regions = store.regions(TABLE).unwrap();
    let holds: Vec<_> =
        regions.iter().map(|region| store.hold_region(region.region).unwrap()).collect();
    let reader = timeline(store);
    let expected: Vec<(String, String)> =
        expected.iter().map(|(row, value)| ((*row).into(), (*value).into())).collect();
    assert_eq!(scan(&reader).unwrap(), expected);
    for (row, value) in &expected {
        assert_eq!(get(&reader, row).unwrap().as_ref(), Some(value));
    }
    let read = store.regions(TABLE).unwrap();
    assert!(read.iter().map(|r| r.replicas[0].rows_read).sum::<u64>() > 0, "{read:?}");
    drop(holds);
}

#[test]
fn replica_reads_memory_and_files() {
    let env = FaultEnv::new(1);
    let store = open(&env).unwrap();
    store.create_table(descriptor(&["m"], 2)).unwrap();
    put(&store, "a", "one");
    put(&store, "z", "two");
    check_held(&store, &[("a", "one"), ("z", "two")]);
    store.flush_table(TABLE).unwrap();
    let replica_bytes = |store: &Arc<Store>| {
        store.regions(TABLE).unwrap().iter().map(|r| r.replicas[0].memstore_bytes).sum::<u64>()
    };
    assert_eq!(replica_bytes(&store), 0, "the files took the place of the memstores");
    check_held(&store, &[("a", "one"), ("z", "two")]);
    put(&store, "a", "three");
    check_held(&store, &[("a", "three"), ("z", "two")]);
    store.flush_table(TABLE).unwrap();
    store.compact_table(TABLE, true).unwrap();
    check_held(&store, &[("a", "three"), ("z", "two")]);
    put(&store, "b", "four");
    drop(store);
    let store = open(&env.after_crash(Unsynced::Lost)).unwrap();
    check_held(&store, &[("a", "three"), ("b", "four"), ("z", "two")]);
}

#[test]
fn replicas_follow_table_descriptor() {
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(descriptor(&[], 1)).unwrap();
    put(&store, "a", "one");
    store.alter_table(descriptor(&[], 3)).unwrap();
    put(&store, "b", "two");
    assert_eq!(store.regions(TABLE).unwrap()[0].replicas.len(), 2);
    check_held(&store, &[("a", "one"), ("b", "two")]);
    store.alter_table(descriptor(&[], 1)).unwrap();
    let region = store.regions(TABLE).unwrap().remove(0);
    assert!(region.replicas.is_empty());
    let hold = store.hold_region(region.region).unwrap();
    let refused = get(&timeline(&store), "a");
    assert!(matches!(refused, Err(Error::RegionTimeout { .. })), "{refused:?}");
    drop(hold);
    assert_eq!(get(&timeline(&store), "a").unwrap().as_deref(), Some("one"));
}

#[test]
fn strong_reads_and_writes_wait_for_primary() {
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(descriptor(&[], 2)).unwrap();
    put(&store, "a", "one");
    let region = store.regions(TABLE).unwrap()[0].region;
    let hold = store.hold_region(region).unwrap();
    let cancelled = Arc::new(AtomicBool::new(false));
    let options = TransactionOptions { cancelled: cancelled.clone(), ..Default::default() };
    std::thread::scope(|scope| {
        let impatient = store.begin(options);
        let stopped = scope.spawn(move || get(&impatient, "a"));
        let reader = scope.spawn(|| get(&begin(&store), "a"));
        let writer = scope.spawn(|| put(&store, "a", "two"));
        cancelled.store(true, Ordering::Relaxed);
        assert!(matches!(stopped.join().unwrap(), Err(Error::Cancelled)));
        assert!(!reader.is_finished() && !writer.is_finished());
        drop(hold);
        assert!(reader.join().unwrap().unwrap().is_some());
        writer.join().unwrap();
    });
    assert_eq!(get(&begin(&store), "a").unwrap().as_deref(), Some("two"));
}

/// Writers move an amount between two rows in two regions; every read at a replica has the
/// correct sum.
#[test]
fn replica_shows_consistent_prefix() {
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(descriptor(&["m"], 2)).unwrap();
    let done = AtomicBool::new(false);
    let write = |from: i64| {
        let transaction = begin(&store);
        let cell =
            |row: &str, value: i64| store::Mutation::new(row).put(0, "q", value.to_string().into());
        transaction.mutate(TABLE, vec![cell("a", from), cell("z", -from)]).unwrap();
        transaction.commit().unwrap().durable.wait().unwrap();
    };
    write(0);
    await_replica(&store);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for amount in 1..200 {
                write(amount);
                if amount % 40 == 0 {
                    store.flush_table(TABLE).unwrap();
                }
                if amount % 100 == 0 {
                    store.compact_table(TABLE, true).unwrap();
                }
            }
            done.store(true, Ordering::SeqCst);
        });
        while !done.load(Ordering::SeqCst) {
            // Held together only briefly: the writer waits meanwhile.
            let regions = store.regions(TABLE).unwrap();
            let holds: Vec<_> =
                regions.iter().map(|region| store.hold_region(region.region).unwrap()).collect();
            let rows = scan(&timeline(&store)).unwrap();
            drop(holds);
            let sum: i64 = rows.iter().map(|(_, value)| value.parse::<i64>().unwrap()).sum();
            assert_eq!((rows.len(), sum), (2, 0), "{rows:?}");
        }
    });
}
