//! Tests of the lock table.

use super::*;
use crate::lock_mode::TableLockMode;
use crate::options::PlainWait;
use std::sync::mpsc;

const TABLE: TableId = TableId(1);
const ROW_MODES: [LockMode; 4] =
    [LockMode::KeyShared, LockMode::Shared, LockMode::NoKeyExclusive, LockMode::Exclusive];
static NEVER: AtomicBool = AtomicBool::new(false);

fn policy(wait: LockWait) -> WaitPolicy<'static> {
    WaitPolicy {
        wait,
        changes: false,
        timeout: None,
        deadlock_after: Duration::ZERO,
        cancelled: &NEVER,
        blocking: &PlainWait,
        on_wait: &|| {},
    }
}

fn exclusive(locks: &LockTable, owner: u64, row: &[u8], wait: LockWait) -> Result<LockOutcome> {
    locks
        .lock(Owner(owner), (TABLE, row), LockMode::Exclusive, policy(wait))
        .map(|grant| grant.taken)
}

/// Locks exclusively like [`exclusive`], without a check for deadlocks.
fn exclusive_without_check(locks: &LockTable, owner: u64, row: &[u8]) -> Result<LockOutcome> {
    let policy = WaitPolicy { deadlock_after: Duration::MAX, ..policy(LockWait::Wait) };
    locks.lock(Owner(owner), (TABLE, row), LockMode::Exclusive, policy).map(|grant| grant.taken)
}

fn shared(locks: &LockTable, owner: u64, row: &[u8], wait: LockWait) -> Result<LockOutcome> {
    locks.lock(Owner(owner), (TABLE, row), LockMode::Shared, policy(wait)).map(|grant| grant.taken)
}

fn release(locks: &LockTable, owner: u64, row: &[u8]) {
    locks.release(
        Owner(owner),
        vec![LockKey::new(TABLE, row)],
        (TransactionEnd::Committed, Sequence(0)),
    );
}

/// Waits until `count` transactions wait for locks.
fn await_waiters(locks: &LockTable, count: usize) {
    while locks.waits.lock().len() != count {
        std::thread::yield_now();
    }
}

#[test]
fn exclusive_lock_blocks_others_until_release() {
    let locks = LockTable::new();
    assert_eq!(exclusive(&locks, 1, b"r", LockWait::Wait).unwrap(), LockOutcome::New);
    assert_eq!(exclusive(&locks, 1, b"r", LockWait::Wait).unwrap(), LockOutcome::Held);
    assert_eq!(exclusive(&locks, 2, b"r", LockWait::Skip).unwrap(), LockOutcome::Skipped);
    let refused = shared(&locks, 2, b"r", LockWait::NoWait);
    assert!(matches!(refused, Err(Error::LockNotAvailable { timed_out: false, .. })));
    release(&locks, 1, b"r");
    assert_eq!(locks.held_count(), 0);
    assert_eq!(exclusive(&locks, 2, b"r", LockWait::NoWait).unwrap(), LockOutcome::New);
}

#[test]
fn bulk_release_frees_lock_table_memory() {
    let locks = LockTable::new();
    let row = |number: u32| number.to_be_bytes();
    let keys: Vec<LockKey> = (0..100_000)
        .map(|number| {
            exclusive(&locks, 1, &row(number), LockWait::NoWait).unwrap();
            LockKey::new(TABLE, &row(number))
        })
        .collect();
    // One lock of another transaction, and one that it waits for.
    exclusive(&locks, 2, b"other", LockWait::NoWait).unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| exclusive(&locks, 2, &row(77), LockWait::Wait));
        await_waiters(&locks, 1);
        locks.release(Owner(1), keys, (TransactionEnd::Committed, Sequence(0)));
        assert_eq!(waiter.join().unwrap().unwrap(), LockOutcome::New);
    });
    assert_eq!(locks.held_count(), 2);
    let room: usize = locks.shards.iter().map(|shard| shard.lock().entries.capacity()).sum();
    assert!(room < 4 * SHARDS * SHARDS, "{room}");
}

#[test]
fn unlocked_rows_can_be_excluded() {
    let locks = LockTable::new();
    exclusive(&locks, 1, b"held", LockWait::Wait).unwrap();
    let exclude = |rows: &[&'static [u8]]| locks.exclude(TABLE, rows.iter().copied()).is_some();
    assert!(exclude(&[b"free"]));
    assert!(!exclude(&[b"held"]));
    assert!(exclude(&[b"free", b"too"]));
    assert!(!exclude(&[b"free", b"held"]));
    release(&locks, 1, b"held");
    let exclusion = locks.exclude(TABLE, [&b"held"[..]].into_iter());
    std::thread::scope(|scope| {
        let locker = scope.spawn(|| exclusive(&locks, 2, b"held", LockWait::Wait));
        drop(exclusion);
        assert_eq!(locker.join().unwrap().unwrap(), LockOutcome::New);
    });
}

#[test]
fn grant_returns_commit_sequence_of_last_holders() {
    let locks = LockTable::new();
    let mark = |owner: u64, mode: LockMode| {
        locks.lock(Owner(owner), (TABLE, b"r"), mode, policy(LockWait::Wait)).unwrap().mark
    };
    let release = |owner: u64, commit: u64| {
        locks.release(
            Owner(owner),
            vec![LockKey::new(TABLE, b"r")],
            (TransactionEnd::Committed, Sequence(commit)),
        );
    };
    assert_eq!(mark(1, LockMode::Exclusive), Sequence(0));
    release(1, 5);
    assert_eq!(mark(1, LockMode::Shared), Sequence(5));
    release(1, 7);
    // A shared holder has not blocked other shared holders.
    assert_eq!(mark(2, LockMode::Shared), Sequence(5));
    assert_eq!(mark(3, LockMode::Shared), Sequence(5));
    // A holder that has seen less does not lower the mark.
    release(3, 0);
    assert_eq!(mark(2, LockMode::Exclusive), Sequence(7));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| mark(4, LockMode::Exclusive));
        await_waiters(&locks, 1);
        release(2, 9);
        assert_eq!(waiter.join().unwrap(), Sequence(9));
    });
    release(4, 0);
    // Rows written without locks raise the mark, too.
    for rows in [&[&b"r"[..]][..], &[b"r", b"s"]] {
        let held = locks.exclude(TABLE, rows.iter().copied()).unwrap();
        held.release(Sequence(9 + rows.len() as u64));
    }
    assert_eq!(mark(5, LockMode::Exclusive), Sequence(11));
}

#[test]
fn sole_shared_holder_may_upgrade() {
    let locks = LockTable::new();
    shared(&locks, 1, b"r", LockWait::NoWait).unwrap();
    shared(&locks, 2, b"r", LockWait::NoWait).unwrap();
    assert!(exclusive(&locks, 1, b"r", LockWait::NoWait).is_err());
    release(&locks, 2, b"r");
    assert_eq!(exclusive(&locks, 1, b"r", LockWait::NoWait).unwrap(), LockOutcome::Held);
    assert!(shared(&locks, 2, b"r", LockWait::NoWait).is_err());
    release(&locks, 1, b"r");
    assert_eq!(locks.held_count(), 0);
}

#[test]
fn transaction_end_can_be_awaited_under_other_locks() {
    let locks = LockTable::new();
    let (writes, builds) =
        (LockMode::Table(TableLockMode::RowExclusive), LockMode::Table(TableLockMode::Share));
    let write =
        |owner: u64| locks.lock(Owner(owner), (TABLE, b"t"), writes, policy(LockWait::NoWait));
    let lock = (LockKey::new(TABLE, b"t"), builds);
    write(1).unwrap();
    let against = |owner: u64| locks.holders_against(Owner(owner), lock.0, builds);
    assert_eq!(against(2), [Owner(1)]);
    std::thread::scope(|scope| {
        let locks = &locks;
        let wait = |owner: u64| {
            move || locks.await_end(Owner(owner), Owner(1), lock, policy(LockWait::Wait))
        };
        let waiters = [scope.spawn(wait(2)), scope.spawn(wait(4))];
        await_waiters(locks, 2);
        // Later requests are not queued behind them.
        write(3).unwrap();
        assert_eq!(locks.contended().iter().filter(|one| one.waits.is_some()).count(), 2);
        let briefly =
            WaitPolicy { timeout: Some(Duration::from_millis(1)), ..policy(LockWait::Wait) };
        release(locks, 1, b"t");
        locks.end(Owner(1));
        assert!(waiters.into_iter().all(|waiter| waiter.join().unwrap().is_ok()));
        let given_up = locks.await_end(Owner(2), Owner(3), lock, briefly);
        assert!(matches!(given_up, Err(Error::LockNotAvailable { timed_out: true, .. })));
    });
    // A transaction that has released the lock is not waited for.
    assert_eq!(against(2), [Owner(3)]);
    locks.await_end(Owner(2), Owner(1), lock, policy(LockWait::Wait)).unwrap();
    release(&locks, 3, b"t");
    locks.end(Owner(3));
    assert_eq!((locks.held_count(), locks.awaited.load(Ordering::SeqCst)), (0, 0));
}

#[test]
fn lock_queue_is_fifo() {
    let locks = LockTable::new();
    exclusive(&locks, 1, b"r", LockWait::Wait).unwrap();
    let (order, arrivals) = mpsc::channel();
    std::thread::scope(|scope| {
        for owner in 2..6 {
            let (locks, order) = (&locks, order.clone());
            scope.spawn(move || {
                exclusive(locks, owner, b"r", LockWait::Wait).unwrap();
                order.send(owner).unwrap();
                release(locks, owner, b"r");
            });
            await_waiters(locks, owner as usize - 1);
        }
        release(&locks, 1, b"r");
    });
    assert_eq!(arrivals.try_iter().collect::<Vec<_>>(), [2, 3, 4, 5]);
    assert_eq!(locks.held_count(), 0);
}

#[test]
fn deadlock_victim_is_request_that_closes_cycle() {
    let locks = LockTable::new();
    exclusive(&locks, 1, b"a", LockWait::Wait).unwrap();
    exclusive(&locks, 2, b"b", LockWait::Wait).unwrap();
    exclusive(&locks, 3, b"c", LockWait::Wait).unwrap();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| exclusive_without_check(&locks, 1, b"b"));
        await_waiters(&locks, 1);
        let second = scope.spawn(|| exclusive_without_check(&locks, 2, b"c"));
        await_waiters(&locks, 2);
        let Err(Error::Deadlock { detail }) = exclusive(&locks, 3, b"a", LockWait::Wait) else {
            panic!("no deadlock seen");
        };
        assert_eq!(
            detail,
            "Transaction 3 waits for the lock of a row of table 1; blocked by transaction 1.\n\
             Transaction 1 waits for the lock of a row of table 1; blocked by transaction 2.\n\
             Transaction 2 waits for the lock of a row of table 1; blocked by transaction 3."
        );
        release(&locks, 3, b"c");
        assert_eq!(second.join().unwrap().unwrap(), LockOutcome::New);
        release(&locks, 2, b"b");
        release(&locks, 2, b"c");
        assert_eq!(first.join().unwrap().unwrap(), LockOutcome::New);
    });
}

#[test]
fn concurrent_upgrades_deadlock() {
    let locks = LockTable::new();
    shared(&locks, 1, b"r", LockWait::Wait).unwrap();
    shared(&locks, 2, b"r", LockWait::Wait).unwrap();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| exclusive_without_check(&locks, 1, b"r"));
        await_waiters(&locks, 1);
        let second = exclusive(&locks, 2, b"r", LockWait::Wait);
        assert!(matches!(second, Err(Error::Deadlock { .. })));
        release(&locks, 2, b"r");
        assert_eq!(first.join().unwrap().unwrap(), LockOutcome::Held);
    });
    release(&locks, 1, b"r");
    assert_eq!(locks.held_count(), 0);
}

#[test]
fn lock_wait_ends_on_timeout_or_cancel() {
    let locks = LockTable::new();
    exclusive(&locks, 1, b"r", LockWait::Wait).unwrap();
    let hurried = WaitPolicy { timeout: Some(Duration::from_millis(5)), ..policy(LockWait::Wait) };
    let late = locks.lock(Owner(2), (TABLE, b"r"), LockMode::Exclusive, hurried);
    assert!(matches!(late, Err(Error::LockNotAvailable { timed_out: true, .. })));
    let cancelled = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stopped = WaitPolicy { cancelled: &cancelled, ..policy(LockWait::Wait) };
        let locks = &locks;
        let waiter =
            scope.spawn(move || locks.lock(Owner(2), (TABLE, b"r"), LockMode::Shared, stopped));
        await_waiters(locks, 1);
        let behind = scope.spawn(|| shared(locks, 3, b"r", LockWait::Wait));
        await_waiters(locks, 2);
        cancelled.store(true, Ordering::Relaxed);
        assert!(matches!(waiter.join().unwrap(), Err(Error::Cancelled)));
        release(locks, 1, b"r");
        assert_eq!(behind.join().unwrap().unwrap(), LockOutcome::New);
    });
    release(&locks, 3, b"r");
    assert_eq!(locks.held_count(), 0);
}

#[test]
fn lock_table_entry_is_at_most_48_bytes() {
    assert!(size_of::<(LockKey, LockEntry)>() <= 48);
}

/// Takes a lock in a mode without waiting; returns whether it was granted.
fn takes(locks: &LockTable, owner: u64, mode: LockMode) -> bool {
    let taken = locks.lock(Owner(owner), (TABLE, b"r"), mode, policy(LockWait::Skip));
    taken.unwrap().taken != LockOutcome::Skipped
}

#[test]
fn row_lock_conflicts_match_postgresql() {
    use LockMode::{Exclusive, KeyShared, NoKeyExclusive, Shared};
    let conflicts: [(LockMode, &[LockMode]); 4] = [
        (KeyShared, &[Exclusive]),
        (Shared, &[NoKeyExclusive, Exclusive]),
        (NoKeyExclusive, &[Shared, NoKeyExclusive, Exclusive]),
        (Exclusive, &[KeyShared, Shared, NoKeyExclusive, Exclusive]),
    ];
    for (held, others) in conflicts {
        for wanted in ROW_MODES {
            let locks = LockTable::new();
            assert!(takes(&locks, 1, held));
            assert_eq!(takes(&locks, 2, wanted), !others.contains(&wanted), "{held:?} {wanted:?}");
            // Its own held modes do not conflict.
            assert!(takes(&locks, 1, held));
        }
    }
}

#[test]
fn key_shared_lock_coexists_with_no_key_exclusive() {
    let locks = LockTable::new();
    assert!(takes(&locks, 1, LockMode::KeyShared));
    assert!(takes(&locks, 2, LockMode::NoKeyExclusive));
    assert!(takes(&locks, 3, LockMode::KeyShared));
    assert!(!takes(&locks, 1, LockMode::Shared));
    assert!(!takes(&locks, 2, LockMode::Exclusive));
    release(&locks, 1, b"r");
    release(&locks, 3, b"r");
    assert!(takes(&locks, 2, LockMode::Exclusive));
    assert!(!takes(&locks, 1, LockMode::KeyShared));
    release(&locks, 2, b"r");
    assert_eq!(locks.held_count(), 0);
}

#[test]
fn queue_deadlock_is_resolved_by_reordering_waiters() {
    let locks = LockTable::new();
    let wait = |owner: u64, row: &'static [u8], mode: LockMode| {
        locks.lock(Owner(owner), (TABLE, row), mode, policy(LockWait::Wait)).map(|_| ())
    };
    let [shares, alone] =
        [TableLockMode::Share, TableLockMode::AccessExclusive].map(LockMode::Table);
    wait(1, b"r", shares).unwrap();
    wait(2, b"s", alone).unwrap();
    std::thread::scope(|scope| {
        // 3 waits for 1, and 1 for 2.
        let writer = scope.spawn(|| wait(3, b"r", alone));
        await_waiters(&locks, 1);
        let reader = scope.spawn(|| wait(1, b"s", shares));
        await_waiters(&locks, 2);
        // 2 would wait for 3, but was not queued behind it: it may share the lock with 1.
        wait(2, b"r", shares).unwrap();
        locks.release(
            Owner(2),
            vec![LockKey::new(TABLE, b"r"), LockKey::new(TABLE, b"s")],
            (TransactionEnd::Committed, Sequence(0)),
        );
        reader.join().unwrap().unwrap();
        locks.release(
            Owner(1),
            vec![LockKey::new(TABLE, b"r"), LockKey::new(TABLE, b"s")],
            (TransactionEnd::Committed, Sequence(0)),
        );
        writer.join().unwrap().unwrap();
    });
    release(&locks, 3, b"r");
    assert_eq!(locks.held_count(), 0);
}

#[test]
fn compatible_request_bypasses_conflicting_waiters() {
    let locks = LockTable::new();
    let lock = |owner: u64, mode: LockMode, wait: LockWait| {
        locks.lock(Owner(owner), (TABLE, b"r"), mode, policy(wait)).map(|grant| grant.taken)
    };
    lock(1, LockMode::KeyShared, LockWait::Wait).unwrap();
    std::thread::scope(|scope| {
        let deletes = scope.spawn(|| exclusive(&locks, 2, b"r", LockWait::Wait));
        await_waiters(&locks, 1);
        assert_eq!(lock(3, LockMode::Shared, LockWait::NoWait).unwrap(), LockOutcome::New);
        assert_eq!(lock(4, LockMode::KeyShared, LockWait::NoWait).unwrap(), LockOutcome::New);
        // One of them upgrades to delete the row, and precedes the earlier waiter, which waits
        // for it.
        release(&locks, 4, b"r");
        let upgrades = scope.spawn(|| exclusive(&locks, 3, b"r", LockWait::Wait));
        await_waiters(&locks, 2);
        release(&locks, 1, b"r");
        assert_eq!(upgrades.join().unwrap().unwrap(), LockOutcome::Held);
        release(&locks, 3, b"r");
        assert_eq!(deletes.join().unwrap().unwrap(), LockOutcome::New);
    });
    release(&locks, 2, b"r");
    assert_eq!(locks.held_count(), 0);
}

#[test]
fn contended_locks_list_waiters_and_holders() {
    let locks = LockTable::new();
    exclusive(&locks, 1, b"r", LockWait::Wait).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| exclusive(&locks, 2, b"r", LockWait::Wait));
        await_waiters(&locks, 1);
        let reader = scope.spawn(|| shared(&locks, 3, b"r", LockWait::Wait));
        await_waiters(&locks, 2);
        let shown = locks.contended();
        let waits =
            |at: usize| (shown[at].owner, shown[at].blockers.clone(), shown[at].ahead.clone());
        let [one, two, three] = [1, 2, 3].map(LockOwner::Transaction);
        assert!(shown[0].waits.is_none() && shown[1].waits.is_some());
        assert_eq!(waits(0), (one, vec![], vec![]));
        assert_eq!(waits(1), (two, vec![one], vec![]));
        assert_eq!(waits(2), (three, vec![one], vec![two]));
        assert_eq!(locks.status(TABLE, b"r").len(), 3);
        release(&locks, 1, b"r");
        writer.join().unwrap().unwrap();
        release(&locks, 2, b"r");
        reader.join().unwrap().unwrap();
    });
    assert!(locks.contended().is_empty());
}

/// Random steps of transactions in separate threads. A shadow of the holders checks that no
/// conflicting modes are held together; deadlocks are resolved automatically.
#[test]
fn random_row_locks_respect_conflicts_and_terminate() {
    const OWNERS: u64 = 6;
    const ROWS: [&[u8]; 3] = [b"a", b"b", b"c"];
    for seed in 0..20_u64 {
        let locks = LockTable::new();
        let shadow: Mutex<HashMap<(u64, usize), LockMode>> = Mutex::default();
        std::thread::scope(|scope| {
            for owner in 1..=OWNERS {
                let (locks, shadow) = (&locks, &shadow);
                scope.spawn(move || {
                    let mut random = seed * 1000 + owner + 1;
                    let mut draw = |below: u64| {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        random % below
                    };
                    for _ in 0..30 {
                        transact(locks, shadow, owner, &ROWS, &mut draw);
                    }
                });
            }
        });
        assert_eq!(locks.held_count(), 0, "seed {seed}");
        assert!(locks.waits.lock().is_empty(), "seed {seed}");
    }
}

/// Takes some locks and releases them.
fn transact(
    locks: &LockTable,
    shadow: &Mutex<HashMap<(u64, usize), LockMode>>,
    owner: u64,
    rows: &[&[u8]],
    draw: &mut dyn FnMut(u64) -> u64,
) {
    let mut keys = Vec::new();
    for _ in 0..draw(4) {
        let at = draw(rows.len() as u64) as usize;
        let mode = ROW_MODES[draw(4) as usize];
        let policy =
            WaitPolicy { deadlock_after: Duration::from_micros(200), ..policy(LockWait::Wait) };
        match locks.lock(Owner(owner), (TABLE, rows[at]), mode, policy) {
            Ok(Grant { key, taken, .. }) => {
                if taken == LockOutcome::New {
                    keys.push(key);
                }
                let mut shadow = shadow.lock();
                for ((other, row), held) in shadow.iter() {
                    let meets = *row == at && *other != owner && held.conflicts_with(mode);
                    assert!(!meets, "{owner} has {mode:?} beside {held:?} of {other}");
                }
                let held = shadow.entry((owner, at)).or_insert(mode);
                *held = mode.max(*held);
            }
            Err(Error::Deadlock { .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    shadow.lock().retain(|(holder, _), _| *holder != owner);
    locks.release(Owner(owner), keys, (TransactionEnd::Committed, Sequence(0)));
}

#[test]
fn waiter_learns_of_row_deletion() {
    let locks = LockTable::new();
    let key = LockKey::new(TABLE, b"r");
    let lock = |owner: u64| {
        let policy = policy(LockWait::Wait);
        locks
            .lock(Owner(owner), (TABLE, b"r"), LockMode::Exclusive, policy)
            .unwrap()
            .row_was_deleted
    };
    for (end, undone, is_gone) in [
        (TransactionEnd::Committed, false, true),
        (TransactionEnd::Committed, true, false),
        (TransactionEnd::Undone, false, false),
    ] {
        assert!(!lock(1));
        locks.set_deleted(Owner(1), key, true);
        if undone {
            locks.set_deleted(Owner(1), key, false);
        }
        std::thread::scope(|scope| {
            let second = scope.spawn(|| lock(2));
            await_waiters(&locks, 1);
            let third = scope.spawn(|| lock(3));
            await_waiters(&locks, 2);
            locks.release(Owner(1), vec![key], (end, Sequence(0)));
            assert_eq!(second.join().unwrap(), is_gone, "{end:?} {undone}");
            release(&locks, 2, b"r");
            assert_eq!(third.join().unwrap(), is_gone, "{end:?} {undone}");
            release(&locks, 3, b"r");
        });
        // A later request finds the entry.
        assert!(!lock(4));
        release(&locks, 4, b"r");
    }
}

#[test]
fn table_lock_holder_bypasses_queued_conflicting_waiters() {
    use TableLockMode::{AccessExclusive, AccessShare, RowExclusive, Share};
    let locks = LockTable::new();
    let lock = |owner: u64, mode: TableLockMode, wait: LockWait| {
        let mode = LockMode::Table(mode);
        locks.lock(Owner(owner), (TABLE, b"t"), mode, policy(wait)).unwrap().taken
    };
    assert_eq!(lock(1, AccessShare, LockWait::Wait), LockOutcome::New);
    assert_eq!(lock(2, RowExclusive, LockWait::Wait), LockOutcome::New);
    std::thread::scope(|scope| {
        // Waits for 2; the mode of 1 does not conflict.
        let share = scope.spawn(|| lock(3, Share, LockWait::Wait));
        await_waiters(&locks, 1);
        assert_eq!(lock(1, RowExclusive, LockWait::Skip), LockOutcome::Skipped);
        let whole = scope.spawn(|| lock(4, AccessExclusive, LockWait::Wait));
        await_waiters(&locks, 2);
        // It is not queued behind the one that waits for it.
        assert_eq!(lock(1, Share, LockWait::Skip), LockOutcome::Skipped);
        release(&locks, 2, b"t");
        assert_eq!(share.join().unwrap(), LockOutcome::New);
        assert_eq!(lock(1, Share, LockWait::Skip), LockOutcome::Held);
        release(&locks, 1, b"t");
        release(&locks, 3, b"t");
        assert_eq!(whole.join().unwrap(), LockOutcome::New);
    });
    release(&locks, 4, b"t");
    assert_eq!(locks.held_count(), 0);
}

/// Random table locks, in all modes, several of one transaction on one table.
#[test]
fn random_table_locks_respect_conflicts_and_terminate() {
    const OWNERS: u64 = 5;
    const TABLES: [&[u8]; 2] = [b"a", b"b"];
    for seed in 0..20_u64 {
        let locks = LockTable::new();
        let shadow: Mutex<Vec<(u64, usize, LockMode)>> = Mutex::default();
        std::thread::scope(|scope| {
            for owner in 1..=OWNERS {
                let (locks, shadow) = (&locks, &shadow);
                scope.spawn(move || {
                    let mut random = seed * 1000 + owner + 7;
                    let mut draw = |below: usize| {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        (random % below as u64) as usize
                    };
                    for _ in 0..30 {
                        lock_tables(locks, shadow, owner, (&TABLES, &mut draw));
                    }
                });
            }
        });
        assert_eq!(locks.held_count(), 0, "seed {seed}");
        assert!(locks.waits.lock().is_empty(), "seed {seed}");
    }
}

/// Takes some table locks and releases them.
fn lock_tables(
    locks: &LockTable,
    shadow: &Mutex<Vec<(u64, usize, LockMode)>>,
    owner: u64,
    (tables, draw): (&[&[u8]], &mut dyn FnMut(usize) -> usize),
) {
    let mut keys = Vec::new();
    for _ in 0..draw(4) {
        let at = draw(tables.len());
        let mode = LockMode::ALL[ROW_MODES.len() + draw(LockMode::COUNT - ROW_MODES.len())];
        let policy =
            WaitPolicy { deadlock_after: Duration::from_micros(200), ..policy(LockWait::Wait) };
        match locks.lock(Owner(owner), (TABLE, tables[at]), mode, policy) {
            Ok(Grant { key, taken, .. }) => {
                if taken == LockOutcome::New {
                    keys.push(key);
                }
                let mut shadow = shadow.lock();
                for (other, table, held) in shadow.iter() {
                    let meets = *table == at && *other != owner && held.conflicts_with(mode);
                    assert!(!meets, "{owner} has {mode:?} beside {held:?} of {other}");
                }
                shadow.push((owner, at, mode));
            }
            Err(Error::Deadlock { .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    shadow.lock().retain(|(holder, _, _)| *holder != owner);
    locks.release(Owner(owner), keys, (TransactionEnd::Undone, Sequence(0)));
}
