//! Tests of background work: flushes by size, a bounded log, writers that wait for memory; and
//! the ends of tables and stores.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use store::env::Env;
use store::env::fault::{FaultEnv, Unsynced};
use store::transaction::{LockMode, LockWait, Locking, SeenRow};
use store::{
    CellBatch, Column, Error, Get, Mutation, Options, PutBatch, Store, Timestamp, Transaction,
};

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
fn memory_and_log_stay_bounded_without_data_loss() {
    let env = FaultEnv::new(1);
    let store = small(&env);
    store.create_table(descriptor(&["00500"], 1)).unwrap();
    let filling = "x".repeat(2000);
    for row in 0..1000 {
        put(&store, &format!("{row:05}"), &filling);
        let status = store.status();
        // Writers wait at one and a half times the limit; a memstore's next chunk may be as large
        // as all its previous chunks.
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
fn region_retaining_oldest_log_is_flushed() {
    let env = FaultEnv::new(1);
    let store = small(&env);
    store.create_table(descriptor(&["m"], 1)).unwrap();
    put(&store, "a", "the oldest");
    let filling = "x".repeat(2000);
    let oldest_bytes = || store.regions(TABLE).unwrap()[0].memstore_bytes;
    let mut row = 0;
    // The other region is flushed repeatedly because of its size; the first is too small for that
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
fn open_scan_completes_on_dropped_table() {
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
fn stopped_store_and_locked_directory_reject_requests() {
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

/// Stages rows of 2,000 bytes.
fn stage_rows(transaction: &Transaction, name: &str, count: usize) {
    let filling = vec![7; 2000];
    for row in 0..count {
        let mutation = Mutation::new(format!("{name}{row:06}")).put(0, "q", filling.clone());
        transaction.mutate(TABLE, vec![mutation]).unwrap();
    }
}

fn staged_files(env: &FaultEnv) -> usize {
    env.list(Path::new("/data/staged")).unwrap().len()
}

#[test]
fn transaction_larger_than_memory_spills_and_commits_atomically() {
    let env = FaultEnv::new(1);
    let store = small(&env);
    store.create_table(descriptor(&["a00100"], 1)).unwrap();
    let [large, second] = [begin(&store), begin(&store)];
    stage_rows(&large, "a", 300);
    stage_rows(&second, "b", 200);
    let held = store.status().transaction_bytes;
    assert!(held < 400 << 10, "{held} bytes");
    assert!(staged_files(&env) > 0);
    assert_eq!(scan(&large).unwrap().len(), 0, "a statement does not see what it writes");
    large.begin_statement();
    assert_eq!(scan(&large).unwrap().len(), 300);
    put(&store, "other", "one");
    second.rollback();
    drop(second);
    assert_eq!(scan(&begin(&store)).unwrap().len(), 1);
    let commit = large.commit().unwrap();
    commit.durable.wait().unwrap();
    assert!(commit.sequence.is_some());
    assert_eq!((store.status().transaction_bytes, staged_files(&env)), (0, 0));
    assert_eq!(scan(&begin(&store)).unwrap().len(), 301);
    drop((large, store));
    let store = small(&env.after_crash(Unsynced::Lost));
    assert_eq!(scan(&begin(&store)).unwrap().len(), 301);
}

#[test]
fn savepoint_rollback_removes_spilled_cells() {
    let env = FaultEnv::new(1);
    let store = small(&env);
    store.create_table(descriptor(&[], 1)).unwrap();
    let transaction = begin(&store);
    stage_rows(&transaction, "a", 90);
    let savepoint = transaction.savepoint();
    stage_rows(&transaction, "b", 90);
    let delete = |row: &str| transaction.mutate(TABLE, vec![Mutation::new(row).delete_row()]);
    delete("a000007").unwrap();
    stage_rows(&transaction, "c", 90);
    assert!(transaction.has_changed(TABLE, b"a000007", savepoint).unwrap());
    transaction.rollback_to(savepoint);
    assert!(!transaction.has_changed(TABLE, b"a000007", savepoint).unwrap());
    transaction.begin_statement();
    assert_eq!(scan(&transaction).unwrap().len(), 90);
    stage_rows(&transaction, "d", 90);
    delete("a000008").unwrap();
    transaction.begin_statement();
    assert_eq!(scan(&transaction).unwrap().len(), 179);
    transaction.commit().unwrap().durable.wait().unwrap();
    let after = begin(&store);
    assert_eq!(scan(&after).unwrap().len(), 179);
    assert!(get(&after, "a000007").unwrap().is_some());
    assert!(get(&after, "a000008").unwrap().is_none());
}

#[test]
fn spilled_deletes_and_puts_leave_last_state() {
    let env = FaultEnv::new(1);
    let store = small(&env);
    store.create_table(descriptor(&["a000050"], 2)).unwrap();
    (0..100).for_each(|row| put(&store, &format!("a{row:06}"), "old"));
    let transaction = begin(&store);
    stage_rows(&transaction, "a", 100);
    for row in 0..60 {
        let mutation = Mutation::new(format!("a{row:06}")).delete_row();
        transaction.mutate(TABLE, vec![mutation]).unwrap();
    }
    for row in 0..30 {
        let mutation = Mutation::new(format!("a{row:06}")).put(0, "q", vec![9; 1900]);
        transaction.mutate(TABLE, vec![mutation]).unwrap();
    }
    transaction.commit().unwrap().durable.wait().unwrap();
    let rows = scan(&begin(&store)).unwrap();
    assert_eq!(rows.len(), 70);
    let read = |row: usize| get(&begin(&store), &format!("a{row:06}")).unwrap();
    assert_eq!(read(0).map(|value| value.len()), Some(1900));
    assert_eq!(read(59), None);
    assert_eq!(read(60).map(|value| value.len()), Some(2000));
    store.compact(TABLE, true).unwrap();
    assert_eq!(scan(&begin(&store)).unwrap(), rows);
}

#[test]
fn spilled_transaction_cannot_be_prepared() {
    let env = FaultEnv::new(1);
    let store = small(&env);
    store.create_table(descriptor(&[], 1)).unwrap();
    let transaction = begin(&store);
    stage_rows(&transaction, "a", 200);
    assert!(matches!(transaction.prepare(), Err(Error::PreparedTooLarge)));
    transaction.rollback();
    assert_eq!(scan(&begin(&store)).unwrap().len(), 0);
}

/// Returns the number of waiters for locks.
fn waiting(store: &Store) -> usize {
    store.contended_locks().iter().filter(|lock| lock.waits.is_some()).count()
}

fn locked(
    transaction: &Transaction,
    row: u32,
    mode: LockMode,
    wait: LockWait,
) -> store::Result<SeenRow> {
    transaction.lock_seen_row(TABLE, &row.to_be_bytes(), mode, wait).map(|lock| lock.row)
}

#[test]
fn spilled_row_locks_block_other_transactions() {
    let env = FaultEnv::new(1);
    let store = small(&env);
    store.create_table(descriptor(&[], 1)).unwrap();
    let (many, other) = (begin(&store), begin(&store));
    for row in 0..5000_u32 {
        let mode = if row % 2 == 0 { LockMode::Exclusive } else { LockMode::Shared };
        assert_eq!(locked(&many, row, mode, LockWait::Wait).unwrap(), SeenRow::Locked);
    }
    assert!(store.status().transaction_bytes < 100 << 10);
    assert!(staged_files(&env) > 0);
    for row in (0..5010).step_by(7) {
        let is_free = row >= 5000;
        let skipped = locked(&other, row, LockMode::Exclusive, LockWait::Skip).unwrap();
        assert_eq!(skipped == SeenRow::Locked, is_free, "row {row}");
        let shared = locked(&other, row, LockMode::Shared, LockWait::NoWait);
        assert_eq!(shared.is_ok(), is_free || row % 2 == 1, "row {row}");
        assert_eq!(many.has_lock(TABLE, &row.to_be_bytes(), LockMode::Shared), !is_free);
    }
    // Its own locks do not conflict, and a put without a lock waits for them.
    locked(&many, 2, LockMode::Exclusive, LockWait::NoWait).unwrap();
    let (started, done) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            started.store(true, Ordering::SeqCst);
            let mut batch = PutBatch::new();
            let column = Column { row: &4_u32.to_be_bytes(), family: 0, qualifier: b"q" };
            batch.put(column, Timestamp::LATEST, b"x");
            store.put(TABLE, batch, None).unwrap();
            done.store(true, Ordering::SeqCst);
        });
        while waiting(&store) == 0 {
            std::thread::yield_now();
        }
        assert!(started.load(Ordering::SeqCst) && !done.load(Ordering::SeqCst));
        many.rollback();
    });
    assert_eq!(locked(&other, 6, LockMode::Exclusive, LockWait::NoWait).unwrap(), SeenRow::Locked);
    drop((many, other));
    assert_eq!((store.status().transaction_bytes, staged_files(&env)), (0, 0));
}

#[test]
fn new_spilled_lock_is_releasable_and_older_stays() {
    let env = FaultEnv::new(1);
    let store = small(&env);
    store.create_table(descriptor(&[], 1)).unwrap();
    let put = |row: u32| Mutation::new(row.to_be_bytes()).put(0, "q", "1".into());
    let fill = begin(&store);
    fill.mutate(TABLE, vec![put(0), put(7000)]).unwrap();
    fill.commit().unwrap().durable.wait().unwrap();
    let (many, other) = (begin(&store), begin(&store));
    let mode = LockMode::Exclusive;
    let give_back = |row: u32| {
        let key = row.to_be_bytes();
        let lock = many.lock_seen_row(TABLE, &key, mode, LockWait::Wait).unwrap();
        many.release_row_lock(TABLE, &key, lock).unwrap();
    };
    // In the lock table, then in a list.
    for rows in [0..10_u32, 10..3000] {
        for row in rows.clone() {
            locked(&many, row, mode, LockWait::Wait).unwrap();
        }
        give_back(rows.end - 1);
        give_back(6000);
        assert_eq!(locked(&many, 6000, mode, LockWait::Wait).unwrap(), SeenRow::Locked);
        give_back(6000);
        assert!(many.has_lock(TABLE, &6000_u32.to_be_bytes(), mode));
        give_back(6001);
        assert!(!many.has_lock(TABLE, &6001_u32.to_be_bytes(), mode));
    }
    for (row, expected) in
        [(9, SeenRow::Skipped), (2999, SeenRow::Skipped), (6000, SeenRow::Skipped)]
    {
        assert_eq!(locked(&other, row, mode, LockWait::Skip).unwrap(), expected, "row {row}");
    }
    assert_eq!(locked(&other, 6001, mode, LockWait::NoWait).unwrap(), SeenRow::Locked);
    // An insert of an existing key needs no lock, one of an absent key does.
    assert!(!other.lock_absent_row(TABLE, &7000_u32.to_be_bytes()).unwrap());
    assert!(other.lock_absent_row(TABLE, &7001_u32.to_be_bytes()).unwrap());
    assert_eq!(locked(&many, 7000, mode, LockWait::NoWait).unwrap(), SeenRow::Locked);
    assert_eq!(locked(&many, 7001, mode, LockWait::Skip).unwrap(), SeenRow::Skipped);
}

#[test]
fn savepoint_rollback_releases_spilled_locks() {
    let env = FaultEnv::new(1);
    let store = small(&env);
    store.create_table(descriptor(&[], 1)).unwrap();
    let (many, other) = (begin(&store), begin(&store));
    let lock = |rows: std::ops::Range<u32>| {
        rows.for_each(|row| {
            locked(&many, row, LockMode::Exclusive, LockWait::Wait).unwrap();
        });
    };
    lock(0..1000);
    let place = many.lock_place();
    lock(1000..3000);
    assert_eq!(
        locked(&other, 2000, LockMode::Exclusive, LockWait::Skip).unwrap(),
        SeenRow::Skipped
    );
    many.release_locks_after(place);
    lock(3000..3500);
    for row in (0..4000).step_by(13) {
        let expected = if row < 1000 || (3000..3500).contains(&row) {
            SeenRow::Skipped
        } else {
            SeenRow::Locked
        };
        let found = locked(&other, row, LockMode::Exclusive, LockWait::Skip).unwrap();
        assert_eq!(found, expected, "row {row}");
    }
    many.commit().unwrap();
    locked(&other, 5, LockMode::Exclusive, LockWait::NoWait).unwrap();
}

#[test]
fn upgraded_row_locks_are_spilled() {
    let env = FaultEnv::new(1);
    let store = small(&env);
    store.create_table(descriptor(&[], 1)).unwrap();
    let (many, other) = (begin(&store), begin(&store));
    let lock = |rows: std::ops::Range<u32>| {
        for row in rows {
            locked(&many, row, LockMode::NoKeyExclusive, LockWait::Wait).unwrap();
            locked(&many, row, LockMode::Exclusive, LockWait::Wait).unwrap();
        }
    };
    locked(&many, 0, LockMode::NoKeyExclusive, LockWait::Wait).unwrap();
    let place = many.lock_place();
    // Before the position, so that it is weak again afterwards.
    lock(0..5000);
    assert!(store.status().transaction_bytes < 100 << 10, "{}", store.status().transaction_bytes);
    assert!(store.status().row_locks < 2000, "{}", store.status().row_locks);
    let key_shared = |row| locked(&other, row, LockMode::KeyShared, LockWait::Skip).unwrap();
    assert_eq!([0, 1, 4999].map(key_shared), [SeenRow::Skipped; 3]);
    many.release_locks_after(place);
    assert_eq!([0, 1, 4999].map(key_shared), [SeenRow::Locked; 3]);
    let shared = locked(&other, 0, LockMode::Shared, LockWait::Skip).unwrap();
    assert_eq!(shared, SeenRow::Skipped);
}

#[test]
fn spilled_lock_waiter_sees_deletion_and_commit() {
    let env = FaultEnv::new(1);
    let store = small(&env);
    store.create_table(descriptor(&[], 1)).unwrap();
    let fill = begin(&store);
    let rows = 0..2000_u32;
    fill.mutate(
        TABLE,
        rows.clone()
            .map(|row| Mutation::new(row.to_be_bytes()).put(0, "q", "old".into()))
            .collect(),
    )
    .unwrap();
    fill.commit().unwrap().durable.wait().unwrap();
    let many = begin(&store);
    for row in rows {
        let mut mutation = Mutation::new(row.to_be_bytes());
        mutation = match row % 2 {
            0 => mutation.delete_row(),
            _ => mutation.put(0, "q", "new".into()),
        };
        mutation.locking = if row % 2 == 0 { Locking::RowGoes } else { Locking::Row };
        many.mutate(TABLE, vec![mutation]).unwrap();
    }
    // Another row with the key of a deleted row whose lock was spilled.
    let again = Mutation::new(102_u32.to_be_bytes()).put(0, "q", "again".into());
    many.mutate(TABLE, vec![again]).unwrap();
    std::thread::scope(|scope| {
        let wait = |row: u32| {
            let other = begin(&store);
            let seen = locked(&other, row, LockMode::Exclusive, LockWait::Wait).unwrap();
            other.begin_statement();
            let mut found = CellBatch::new();
            let is_there = other.get(TABLE, &Get::new(row.to_be_bytes()), &mut found).unwrap();
            (seen, is_there.then(|| value(&found)).flatten())
        };
        let waiters = [100, 101, 102].map(|row| scope.spawn(move || wait(row)));
        while waiting(&store) < 3 {
            std::thread::yield_now();
        }
        many.commit().unwrap();
        let [gone, changed, again] = waiters.map(|waiter| waiter.join().unwrap());
        assert_eq!(gone, (SeenRow::Gone, None));
        assert_eq!(changed, (SeenRow::Locked, Some("new".to_owned())));
        assert_eq!(again, (SeenRow::Gone, Some("again".to_owned())));
    });
}

#[test]
fn savepoint_rollback_releases_memory() {
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
