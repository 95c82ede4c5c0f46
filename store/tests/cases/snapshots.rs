//! Tests of long-lived snapshots: listed, counted, and closed at the limits.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use store::env::fault::FaultEnv;
use store::store::SnapshotPurpose;
use store::transaction::{Isolation, TransactionOptions};
use store::{Edit, Error, Mutation, Options, Scan, Store, Transaction};

use crate::cases::{TABLE, begin, descriptor, get, options, put, scan};

fn store_with(env: &FaultEnv, change: impl FnOnce(&mut Options)) -> Arc<Store> {
    let mut options = options(env);
    change(&mut options);
    let store = Store::open(Path::new("/data"), options).unwrap();
    store.create_table(descriptor(&["m"], 1)).unwrap();
    store
}

fn repeatable(store: &Arc<Store>) -> Transaction {
    let isolation = Isolation::RepeatableRead;
    let transaction =
        store.begin(TransactionOptions { isolation, ..TransactionOptions::default() });
    transaction.begin_statement();
    transaction
}

/// Versions that expire while a snapshot is open stay visible to it, despite flushes, merges and
/// files dropped whole.
#[test]
fn snapshot_sees_cells_that_expire_later() {
    let env = FaultEnv::new(1);
    let store = store_with(&env, |_| {});
    for (row, ttl) in [("a", 5), ("b", 500)] {
        let transaction = begin(&store);
        let put = Edit::Put {
            family: 0,
            qualifier: b"q".to_vec(),
            timestamp: None,
            value: row.into(),
            ttl: Some(Duration::from_secs(ttl)),
        };
        transaction.mutate(TABLE, vec![Mutation::new(row).with(put)]).unwrap();
        transaction.commit().unwrap().durable.wait().unwrap();
        if row == "a" {
            store.flush_table(TABLE).unwrap();
        }
    }
    let reader = repeatable(&store);
    env.set_now(8_000_000);
    assert_eq!(get(&begin(&store), "a").unwrap(), None);
    for step in 0..4 {
        assert_eq!(get(&reader, "a").unwrap().as_deref(), Some("a"), "step {step}");
        match step {
            0 => store.flush_table(TABLE).map(drop).unwrap(),
            1 => store.compact_table(TABLE, false).map(drop).unwrap(),
            _ => store.compact_table(TABLE, true).map(drop).unwrap(),
        }
    }
    assert_eq!(store.compaction_figures(None).unwrap().expired_files, 0);
    drop(reader);
    store.compact_table(TABLE, true).unwrap();
    assert_eq!(scan(&begin(&store)).unwrap(), [("b".to_owned(), "b".to_owned())]);
    assert_eq!(store.regions(TABLE).unwrap()[0].file_count, 1);
}

#[test]
fn reads_of_closed_old_snapshot_fail() {
    let env = FaultEnv::new(1);
    let store = store_with(&env, |options| {
        options.snapshot_age_max = Some(Duration::from_secs(10));
    });
    put(&store, "a", "old");
    put(&store, "z", "old");
    let forgotten = repeatable(&store);
    let mut scanner = forgotten.scan(TABLE, Scan::all()).unwrap();
    put(&store, "a", "new");
    env.set_now(8_000_000);
    // Not too old yet: a compaction retains its versions.
    store.flush_table(TABLE).unwrap();
    store.compact_table(TABLE, true).unwrap();
    assert_eq!(get(&forgotten, "a").unwrap().as_deref(), Some("old"));
    let younger = repeatable(&store);
    let snapshots = store.snapshots();
    assert_eq!(snapshots.len(), 2, "{snapshots:?}");
    assert_eq!(snapshots[0].opened_micros, 1_000_000);
    assert_eq!(snapshots[0].purpose, SnapshotPurpose::Transaction);
    assert!(snapshots.iter().all(|snapshot| !snapshot.is_closed && snapshot.transaction > 0));
    env.set_now(12_000_000);
    put(&store, "a", "newest");
    store.flush_table(TABLE).unwrap();
    store.compact_table(TABLE, true).unwrap();
    assert!(store.snapshots()[0].is_closed);
    let mut batch = store::CellBatch::new();
    assert!(matches!(get(&forgotten, "a"), Err(Error::SnapshotTooOld)));
    assert!(matches!(scan(&forgotten), Err(Error::SnapshotTooOld)));
    assert!(matches!(scanner.next_batch(9, &mut batch), Err(Error::SnapshotTooOld)));
    assert_eq!(get(&younger, "a").unwrap().as_deref(), Some("new"));
    assert_eq!(get(&begin(&store), "a").unwrap().as_deref(), Some("newest"));
    drop((scanner, forgotten, younger));
    assert_eq!(store.status().snapshots, 0);
}

#[test]
fn oldest_snapshot_is_closed_above_maximum_count() {
    let env = FaultEnv::new(1);
    let store = store_with(&env, |options| options.snapshot_count_max = Some(2));
    let open = |now: i64| {
        env.set_now(now);
        put(&store, "a", &now.to_string());
        repeatable(&store)
    };
    let held = [open(2_000_000), open(3_000_000), open(4_000_000)];
    store.flush_table(TABLE).unwrap();
    let read = held.each_ref().map(|transaction| get(transaction, "a").ok().flatten());
    assert_eq!(read, [None, Some("3000000".to_owned()), Some("4000000".to_owned())]);
}
