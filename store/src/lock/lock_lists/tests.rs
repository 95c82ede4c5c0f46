//! Tests of lists of row locks.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::*;
use crate::error::Error;
use crate::lock::{Grant, LockOutcome, TransactionEnd, WaitPolicy};
use crate::mutation::LockWait;
use crate::options::PlainWait;

const TABLE: TableId = TableId(7);
const MODE: LockMode = LockMode::NoKeyExclusive;
static NEVER: AtomicBool = AtomicBool::new(false);

fn policy(wait: LockWait) -> WaitPolicy<'static> {
    WaitPolicy {
        wait,
        changes: false,
        timeout: None,
        deadlock_after: Duration::from_secs(60),
        cancelled: &NEVER,
        blocking: &PlainWait,
        on_wait: &|| {},
    }
}

fn lock(locks: &LockTable, owner: u64, row: &[u8], wait: LockWait) -> Result<Grant> {
    locks.lock(Owner(owner), (TABLE, row), MODE, policy(wait))
}

fn is_taken(locks: &LockTable, owner: u64, row: &[u8]) -> bool {
    let refused = lock(locks, owner, row, LockWait::NoWait);
    matches!(refused, Err(Error::LockNotAvailable { timed_out: false, .. }))
}

fn open(locks: &LockTable, owner: u64) -> Option<Arc<LockList>> {
    locks.open_list(Owner(owner), (TABLE, MODE)).map(|(list, _)| list)
}

fn take(list: &LockList, row: &[u8], place: u64, locks: &LockTable) -> ListedLockOutcome {
    list.take(row, (MODE, place), locks).unwrap()
}

fn end(locks: &LockTable, list: &Arc<LockList>, mark: u64) {
    let keys = locks.end_list(list, Sequence(mark));
    locks.release(list.owner, keys, (TransactionEnd::Committed, Sequence(mark)));
}

#[test]
fn conflicting_request_searches_and_closes_lock_list() {
    let locks = LockTable::new();
    let list = open(&locks, 1).unwrap();
    assert!(open(&locks, 2).is_none(), "one list of a table");
    for row in [b"a", b"c", b"e"] {
        assert_eq!(take(&list, row, 0, &locks), ListedLockOutcome::Added);
        assert_eq!(take(&list, row, 0, &locks), ListedLockOutcome::Held);
    }
    assert_eq!(take(&list, b"b", 0, &locks), ListedLockOutcome::Elsewhere);
    assert_eq!(locks.held_count(), 3);
    assert!(list.has(b"c", LockMode::Shared).unwrap());
    assert!(!list.has(b"c", LockMode::Exclusive).unwrap() && !list.has(b"d", MODE).unwrap());
    assert!(locks.exclude(TABLE, [b"x".as_slice()].into_iter()).is_none());
    assert!(locks.exclude(TABLE, [b"x".as_slice(), b"y"].into_iter()).is_none());
    assert_eq!(take(&list, b"f", 0, &locks), ListedLockOutcome::Added);
    assert!(is_taken(&locks, 2, b"c"));
    assert_eq!(
        take(&list, b"g", 0, &locks),
        ListedLockOutcome::Elsewhere,
        "somebody else has come"
    );
    assert_eq!(take(&list, b"f", 0, &locks), ListedLockOutcome::Held);
    assert_eq!(lock(&locks, 2, b"g", LockWait::NoWait).unwrap().taken, LockOutcome::New);
    assert_eq!(locks.held_count(), 5);
    end(&locks, &list, 30);
    assert_eq!(locks.held_count(), 1);
    for row in [b"a", b"c", b"f"] {
        let grant = lock(&locks, 2, row, LockWait::NoWait).unwrap();
        assert_eq!((grant.taken, grant.mark), (LockOutcome::New, Sequence(30)));
    }
}

#[test]
fn lock_list_requires_table_without_foreign_locks() {
    let locks = LockTable::new();
    lock(&locks, 1, b"mine", LockWait::Wait).unwrap();
    lock(&locks, 2, b"r", LockWait::Wait).unwrap();
    assert!(open(&locks, 1).is_none());
    let keys = vec![LockKey::new(TABLE, b"r")];
    locks.release(Owner(2), keys, (TransactionEnd::Committed, Sequence(9)));
    let (_, mark) = locks.open_list(Owner(1), (TABLE, MODE)).unwrap();
    assert_eq!(mark, Sequence(9), "its owner sees what others have committed");
}

#[test]
fn waiter_is_granted_row_when_lock_list_ends() {
    let locks = LockTable::new();
    let list = open(&locks, 1).unwrap();
    take(&list, b"a", 0, &locks);
    take(&list, b"b", 0, &locks);
    assert!(list.set_deleted(b"a", 0, &locks).unwrap());
    assert!(!list.set_deleted(b"z", 0, &locks).unwrap());
    std::thread::scope(|scope| {
        let waiters = [b"a", b"b"].map(|row| {
            scope
                .spawn(|| lock(&locks, row[0].into(), row, LockWait::Wait).unwrap().row_was_deleted)
        });
        while locks.waits.lock().len() < 2 {
            std::thread::yield_now();
        }
        end(&locks, &list, 1);
        assert_eq!(waiters.map(|waiter| waiter.join().unwrap()), [true, false]);
    });
}

#[test]
fn lock_list_rollback_undoes_later_locks_and_deletions() {
    let locks = LockTable::new();
    let list = open(&locks, 1).unwrap();
    for (row, place) in [(b"a", 0), (b"b", 0), (b"c", 1), (b"d", 2), (b"e", 2)] {
        take(&list, row, place, &locks);
        list.set_deleted(row, 10 + place, &locks).unwrap();
    }
    // One row is requested in a stronger mode, two by other transactions.
    let stronger = list.take(b"d", (LockMode::Exclusive, 2), &locks).unwrap();
    assert_eq!(stronger, ListedLockOutcome::Elsewhere);
    assert!(is_taken(&locks, 2, b"b") && is_taken(&locks, 2, b"e"));
    let deleted = |row: &[u8]| locks.held(Owner(1), LockKey::new(TABLE, row)).map(|held| held.2);
    let all = [b"b", b"d", b"e"].map(|row| deleted(row));
    assert_eq!(all, [Some(true); 3]);
    list.undelete(12, &locks).unwrap();
    assert_eq!([b"b", b"d", b"e"].map(|row| deleted(row)), [Some(true), Some(false), Some(false)]);
    let released = locks.release_listed(&list, 1, Sequence(0));
    assert_eq!(released.len(), 2);
    locks.release(Owner(1), released, (TransactionEnd::Undone, Sequence(0)));
    for (row, taken) in [(b"a", true), (b"b", true), (b"c", true), (b"d", false), (b"e", false)] {
        assert_eq!(is_taken(&locks, 3, row), taken);
    }
    list.undelete(0, &locks).unwrap();
    assert_eq!(deleted(b"b"), Some(false));
    let keys = locks.dissolve_list(&list).unwrap();
    assert_eq!(keys.len(), 3);
    assert!(is_taken(&locks, 4, b"c"), "a list that is dissolved leaves entries");
    locks.release(Owner(1), keys, (TransactionEnd::Undone, Sequence(0)));
    assert!(!is_taken(&locks, 4, b"c"));
}

#[test]
fn exclusive_row_lock_has_one_owner_with_lock_lists() {
    const ROWS: u64 = 300;
    let locks = LockTable::new();
    let owners: Vec<AtomicU64> = (0..ROWS).map(|_| AtomicU64::new(0)).collect();
    let next = AtomicU64::new(1);
    let transaction = |step: u64| {
        let owner = next.fetch_add(1, Ordering::Relaxed);
        let (mut keys, mut list, mut rows) = (Vec::new(), None, Vec::new());
        for row in (owner % 7..ROWS).step_by(step as usize) {
            // Opened midway, as by a transaction that has taken some locks.
            if list.is_none() && row > ROWS / 5 {
                list = open(&locks, owner);
            }
            let bytes = row.to_be_bytes();
            let listed = list.as_ref().map(|list| take(list, &bytes, 0, &locks));
            if !matches!(listed, Some(ListedLockOutcome::Added | ListedLockOutcome::Held)) {
                let grant = lock(&locks, owner, &bytes, LockWait::Wait).unwrap();
                keys.push(grant.key);
            }
            let before = owners[row as usize].swap(owner, Ordering::SeqCst);
            assert_eq!(before, 0, "row {row}");
            rows.push(row);
        }
        for row in rows {
            owners[row as usize].store(0, Ordering::SeqCst);
        }
        if let Some(list) = &list {
            keys.extend(locks.end_list(list, Sequence(owner)));
        }
        locks.release(Owner(owner), keys, (TransactionEnd::Committed, Sequence(owner)));
    };
    std::thread::scope(|scope| {
        for step in [1, 2, 5, 40] {
            let transaction = &transaction;
            scope.spawn(move || (0..300).for_each(|_| transaction(step)));
        }
    });
    assert_eq!(locks.held_count(), 0);
    assert_eq!(locks.listed.count.load(Ordering::SeqCst), 0);
}
