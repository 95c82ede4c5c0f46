//! Concurrent clients: counters lose no increments, sums are constant, deadlocks have one victim.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use store::env::fault::FaultEnv;
use store::transaction::{Isolation, LockMode, LockWait, TransactionOptions};
use store::{CellBatch, Error, Get, Mutation, Result, Store, Transaction};

use crate::cases::{TABLE, begin, descriptor, get, open, put, scan, value};

fn lock_and_read(transaction: &Transaction, row: &str) -> Result<i64> {
    transaction.lock_row(TABLE, row.as_bytes(), LockMode::Exclusive, LockWait::Wait)?;
    let mut found = CellBatch::new();
    transaction.get_locked(TABLE, &Get::new(row), &mut found)?;
    Ok(value(&found).unwrap().parse().unwrap())
}

fn cell(row: &str, amount: i64) -> Mutation {
    Mutation::new(row).put(0, "q", amount.to_string().into())
}

#[test]
fn concurrent_increments_of_hot_row_are_not_lost() {
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(descriptor(&[], 1)).unwrap();
    put(&store, "counter", "0");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let transaction = begin(&store);
                    transaction
                        .lock_row(TABLE, b"counter", LockMode::Exclusive, LockWait::Wait)
                        .unwrap();
                    let mut row = CellBatch::new();
                    transaction.get_locked(TABLE, &Get::new("counter"), &mut row).unwrap();
                    let next = value(&row).unwrap().parse::<u64>().unwrap() + 1;
                    let mutation = Mutation::new("counter").put(0, "q", next.to_string().into());
                    transaction.mutate(TABLE, vec![mutation]).unwrap();
                    transaction.commit().unwrap().durable.wait().unwrap();
                }
            });
        }
    });
    assert_eq!(get(&begin(&store), "counter").unwrap().as_deref(), Some("400"));
    assert_eq!(store.status().row_locks, 0);
}

fn transfer(store: &Arc<Store>, isolation: Isolation, (from, to): (&str, &str)) -> Result<()> {
    let transaction = store.begin(TransactionOptions { isolation, ..Default::default() });
    transaction.begin_statement();
    let left = lock_and_read(&transaction, from)? - 1;
    transaction.mutate(TABLE, vec![cell(from, left)])?;
    let right = lock_and_read(&transaction, to)? + 1;
    transaction.mutate(TABLE, vec![cell(to, right)])?;
    transaction.commit()?.durable.wait()
}

/// Clients move amounts between rows of three regions, some with deadlocks, some with
/// serialization failures; every snapshot has the same sum, regardless of flushes and
/// compactions.
#[test]
fn snapshots_see_atomic_commits() {
    let env = FaultEnv::new(1);
    let store = open(&env).unwrap();
    store.create_table(descriptor(&["b", "c"], 1)).unwrap();
    let rows = ["a1", "a2", "b1", "b2", "c1", "c2"];
    rows.iter().for_each(|row| put(&store, row, "100"));
    let (running, done) = (AtomicUsize::new(4), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for client in 0..4_usize {
            let (store, running, done) = (&store, &running, &done);
            scope.spawn(move || {
                for turn in 0..60 {
                    let from = rows[(client * 5 + turn * 7) % 6];
                    let to = rows[(client + turn * 5 + 1) % 6];
                    let isolation = match client % 2 {
                        0 => Isolation::ReadCommitted,
                        _ => Isolation::RepeatableRead,
                    };
                    if from != to {
                        let moved = transfer(store, isolation, (from, to));
                        let expected = matches!(
                            moved,
                            Ok(()) | Err(Error::Deadlock { .. } | Error::Serialization { .. })
                        );
                        assert!(expected, "{moved:?}");
                    }
                }
                if running.fetch_sub(1, Ordering::SeqCst) == 1 {
                    done.store(true, Ordering::SeqCst);
                }
            });
        }
        while !done.load(Ordering::SeqCst) {
            let found = scan(&begin(&store)).unwrap();
            let sum: i64 = found.iter().map(|(_, amount)| amount.parse::<i64>().unwrap()).sum();
            assert_eq!((found.len(), sum), (6, 600), "{found:?}");
            store.flush(TABLE).unwrap();
        }
    });
    assert_eq!(store.status().row_locks, 0);
    let before = scan(&begin(&store)).unwrap();
    drop(store);
    assert_eq!(scan(&begin(&open(&env).unwrap())).unwrap(), before);
}

#[test]
fn cancelled_commit_writes_nothing() {
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(descriptor(&[], 1)).unwrap();
    let cancelled = Arc::new(AtomicBool::new(false));
    let options =
        TransactionOptions { cancelled: Arc::clone(&cancelled), ..TransactionOptions::default() };
    let transaction = store.begin(options);
    for number in 0..1000 {
        let row = format!("{number:04}");
        transaction.lock_row(TABLE, row.as_bytes(), LockMode::Exclusive, LockWait::NoWait).unwrap();
        transaction.mutate(TABLE, vec![cell(&row, 1)]).unwrap();
    }
    cancelled.store(true, Ordering::Relaxed);
    let refused = transaction.commit();
    assert!(matches!(refused, Err(Error::Cancelled)));
    transaction.rollback();
    assert_eq!(scan(&begin(&store)).unwrap(), []);
    put(&store, "0007", "free again");
}
