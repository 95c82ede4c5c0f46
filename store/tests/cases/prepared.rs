//! Tests of prepared transactions: stored in rows of a table, recovered from their encoding, and
//! ended.

use std::sync::Arc;
use std::time::Duration;

use store::env::fault::{FaultEnv, Unsynced};
use store::transaction::{
    FollowedRow, LockMode, LockWait, PreparedTransaction, TransactionOptions,
};
use store::{Error, Get, Mutation, Result, Store};

use crate::cases::{TABLE, begin, descriptor, get, open, put, scan};

/// The row that stores the encoding.
const KEPT: &str = "~prepared";

fn created(env: &FaultEnv) -> Arc<Store> {
    let store = open(env).unwrap();
    store.create_table(descriptor(&["m"], 1)).unwrap();
    store
}

/// Prepares a change of two rows, and the lock of a third one.
fn prepare(store: &Arc<Store>) -> PreparedTransaction {
    let transaction = begin(store);
    let mutations =
        vec![Mutation::new("b").delete_row(), Mutation::new("n").put(0, "q", "new".into())];
    transaction.mutate(TABLE, mutations).unwrap();
    let shared = transaction.lock_row(TABLE, b"s", LockMode::Shared, LockWait::Wait);
    assert!(shared.unwrap());
    transaction.prepare().unwrap()
}

fn keep(store: &Arc<Store>, prepared: &PreparedTransaction) -> Result<()> {
    let transaction = begin(store);
    let row = Mutation::new(KEPT).put(0, "q", prepared.encode()?);
    transaction.mutate(TABLE, vec![row])?;
    transaction.commit()?.durable.wait()
}

fn recover(store: &Arc<Store>) -> Result<Option<PreparedTransaction>> {
    let mut row = store::CellBatch::new();
    if !begin(store).get(TABLE, &Get::new(KEPT), &mut row)? {
        return Ok(None);
    }
    let bytes = row.row(0).value(0, b"q").unwrap().to_vec();
    store.recover_prepared(&bytes).map(Some)
}

fn end(prepared: &PreparedTransaction) -> Result<()> {
    prepared.commit((TABLE, vec![KEPT.into()]))?.durable.wait()
}

/// Returns whether a row cannot be locked in a mode now.
fn is_locked(store: &Arc<Store>, row: &str, mode: LockMode) -> bool {
    let options = TransactionOptions { lock_timeout: Some(Duration::ZERO), ..Default::default() };
    let locked = store.begin(options).lock_row(TABLE, row.as_bytes(), mode, LockWait::NoWait);
    match locked {
        Ok(_) => false,
        Err(Error::LockNotAvailable { .. }) => true,
        Err(error) => panic!("{error}"),
    }
}

fn rows(store: &Arc<Store>) -> Vec<String> {
    let rows = scan(&begin(store)).unwrap().into_iter();
    rows.filter(|(row, _)| row != KEPT).map(|(row, value)| format!("{row}={value}")).collect()
}

#[test]
fn prepared_transaction_recovers_locks_and_cells() {
    let env = FaultEnv::new(1);
    let store = created(&env);
    put(&store, "a", "1");
    put(&store, "b", "2");
    let prepared = prepare(&store);
    keep(&store, &prepared).unwrap();
    for again in 0..3 {
        assert_eq!(rows(&store), ["a=1", "b=2"], "start {again}");
        for (row, exclusive, shared) in
            [("a", false, false), ("b", true, true), ("n", true, true), ("s", true, false)]
        {
            assert_eq!(is_locked(&store, row, LockMode::Exclusive), exclusive, "{row}");
            assert_eq!(is_locked(&store, row, LockMode::Shared), shared, "{row}");
        }
    }
    drop(prepared);
    drop(store);
    let store = open(&env.after_crash(Unsynced::Lost)).unwrap();
    let prepared = recover(&store).unwrap().unwrap();
    assert!(is_locked(&store, "b", LockMode::Shared));
    assert!(is_locked(&store, "s", LockMode::Exclusive));
    assert!(!is_locked(&store, "s", LockMode::Shared));
    let bytes = prepared.encode().unwrap();
    end(&prepared).unwrap();
    assert_eq!(rows(&store), ["a=1", "n=new"]);
    assert_eq!(get(&begin(&store), KEPT).unwrap(), None);
    assert!(["b", "n", "s"].iter().all(|row| !is_locked(&store, row, LockMode::Exclusive)));
    assert!(matches!(end(&prepared), Err(Error::InvalidRequest(_))));
    // Malformed bytes are rejected.
    for length in 0..bytes.len() {
        assert!(store.recover_prepared(&bytes[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn rolled_back_prepared_transaction_leaves_nothing() {
    let store = created(&FaultEnv::new(1));
    put(&store, "b", "2");
    let prepared = prepare(&store);
    prepared.rollback();
    prepared.rollback();
    assert_eq!(rows(&store), ["b=2"]);
    assert!(!is_locked(&store, "b", LockMode::Exclusive));
    assert!(matches!(prepared.encode(), Err(Error::InvalidRequest(_))));
}

#[test]
fn prepared_put_after_delete_is_recovered() {
    let store = created(&FaultEnv::new(1));
    put(&store, "b", "2");
    let transaction = begin(&store);
    let delete = Mutation::new("b").delete_row();
    transaction.mutate(TABLE, vec![delete]).unwrap();
    transaction.mutate(TABLE, vec![Mutation::new("b").put(0, "q", "3".into())]).unwrap();
    let bytes = transaction.prepare().unwrap().encode().unwrap();
    let other = created(&FaultEnv::new(2));
    put(&other, "b", "2");
    end(&other.recover_prepared(&bytes).unwrap()).unwrap();
    assert_eq!(rows(&other), ["b=3"]);
}

#[test]
fn documented_prepared_transaction_example_matches_encoder() {
    let store = created(&FaultEnv::new(1));
    let prepared = prepare(&store);
    let hex: Vec<String> =
        prepared.encode().unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    let document = include_str!("../../../docs/formats/prepared-transaction.md");
    let example = document.split("```hex").nth(1).unwrap().split("```").next().unwrap();
    let example: Vec<&str> = example
        .lines()
        .flat_map(|line| line.split('|').next().unwrap().split_whitespace())
        .collect();
    assert_eq!(hex.join(" "), example.join(" "));
}

#[test]
fn prepared_transaction_preserves_key_changes() {
    let store = created(&FaultEnv::new(1));
    put(&store, "b", "2");
    let transaction = begin(&store);
    let before = transaction.savepoint();
    let row = |row: &str| Mutation::new(row);
    transaction.mutate(TABLE, vec![row("b").delete_row()]).unwrap();
    transaction.mutate(TABLE, vec![row("z").put(0, "q", "2".into())]).unwrap();
    transaction.note_move(before, TABLE, (b"b".to_vec(), b"z".to_vec()));
    let bytes = transaction.prepare().unwrap().encode().unwrap();
    let other = created(&FaultEnv::new(2));
    put(&other, "b", "2");
    let prepared = other.recover_prepared(&bytes).unwrap();
    assert_eq!(prepared.encode().unwrap(), bytes);
    let reader = begin(&other);
    let view = reader.view().unwrap();
    end(&prepared).unwrap();
    let lock = (LockMode::Exclusive, LockWait::Wait);
    let seen = reader.lock_seen_row(TABLE, b"b", lock.0, lock.1).unwrap();
    let followed = reader.follow_row((TABLE, b"b", seen), lock, &view).unwrap();
    assert_eq!(followed, FollowedRow::Moved(b"z".to_vec()));
}

#[test]
fn prepared_transaction_end_is_atomic_under_crash() {
    let mut step = 0;
    loop {
        let env = FaultEnv::new(step);
        let store = created(&env);
        put(&store, "a", "1");
        put(&store, "b", "2");
        let prepared = prepare(&store);
        env.fail_after(step);
        let kept = keep(&store, &prepared);
        let ended = kept.as_ref().ok().map(|()| end(&prepared));
        drop((prepared, store));
        let mut is_done = false;
        for unsynced in [Unsynced::Lost, Unsynced::Torn, Unsynced::Kept] {
            let store = open(&env.after_crash(unsynced)).unwrap();
            let found = recover(&store).unwrap();
            let (before, after) = (["a=1", "b=2"], ["a=1", "n=new"]);
            let acknowledged = matches!(ended, Some(Ok(())));
            match &found {
                // Acknowledged, or on disk by chance.
                None if rows(&store) == after => assert!(kept.is_ok(), "step {step}"),
                None => assert!(kept.is_err() && rows(&store) == before, "step {step}"),
                Some(prepared) => {
                    assert!(!acknowledged && rows(&store) == before, "step {step}");
                    assert!(is_locked(&store, "b", LockMode::Shared));
                    end(prepared).unwrap();
                    assert_eq!(rows(&store), after);
                }
            }
            is_done = acknowledged;
        }
        if is_done {
            break;
        }
        step += 1;
    }
    assert!(step > 1, "{step} steps");
}
