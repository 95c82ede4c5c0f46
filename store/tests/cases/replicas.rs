//! Tests of replicas: results of TIMELINE and STRONG reads while the primary is held.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use store::descriptor::Durability;
use store::env::fault::{FaultEnv, Unsynced};
use store::transaction::{Consistency, Isolation, TransactionOptions};
use store::{Error, Store, Transaction};
use store::{TimelineProgress, TimelineRead};

use crate::cases::{TABLE, begin, descriptor, get, open, put, scan_rows as scan};

/// Limit of holds that end with their guard.
const LONG: Duration = Duration::from_secs(600);

fn timeline(store: &Arc<Store>) -> Transaction {
    let consistency =
        Consistency::Timeline { timeout: Duration::from_millis(1), max_staleness: None };
    store.begin(TransactionOptions { consistency, ..TransactionOptions::default() })
}

/// Begins a TIMELINE transaction of a session.
fn timeline_of(
    store: &Arc<Store>,
    progress: &Arc<TimelineProgress>,
    max_staleness: Option<Duration>,
) -> Transaction {
    let consistency = Consistency::Timeline { timeout: Duration::from_millis(1), max_staleness };
    let (progress, durability) = (Arc::clone(progress), Some(Durability::SyncWal));
    store.begin(TransactionOptions { consistency, progress, durability, ..Default::default() })
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
        regions.iter().map(|region| store.hold_region(region.region, LONG).unwrap()).collect();
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
    let hold = store.hold_region(region.region, LONG).unwrap();
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
    let hold = store.hold_region(region, LONG).unwrap();
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
            let holds: Vec<_> = regions
                .iter()
                .map(|region| store.hold_region(region.region, LONG).unwrap())
                .collect();
            let rows = scan(&timeline(&store)).unwrap();
            drop(holds);
            let sum: i64 = rows.iter().map(|(_, value)| value.parse::<i64>().unwrap()).sum();
            assert_eq!((rows.len(), sum), (2, 0), "{rows:?}");
        }
    });
}

/// Puts one value into several rows.
fn put_all(store: &Arc<Store>, rows: &[&str], value: &str) {
    let transaction = begin(store);
    let row = |row: &&str| store::Mutation::new(*row).put(0, "q", value.as_bytes().into());
    transaction.mutate(TABLE, rows.iter().map(row).collect()).unwrap();
    transaction.commit().unwrap().durable.wait().unwrap();
}

#[test]
fn statement_over_held_and_answering_region_reads_one_state() {
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(descriptor(&["m"], 2)).unwrap();
    put_all(&store, &["a", "z"], "old");
    await_replica(&store);
    let lag = store.hold_replicas(LONG);
    put_all(&store, &["a", "z"], "new");
    let old = [("a".to_owned(), "old".to_owned()), ("z".to_owned(), "old".to_owned())];
    let new = [("a".to_owned(), "new".to_owned()), ("z".to_owned(), "new".to_owned())];
    let regions = store.regions(TABLE).unwrap();
    let progress = Arc::<TimelineProgress>::default();
    // The first region does not answer: the statement reads what the replicas have applied, also
    // in the region that answers.
    let hold = store.hold_region(regions[0].region, LONG).unwrap();
    store.flush_table(TABLE).unwrap();
    store.compact_table(TABLE, true).unwrap();
    assert_eq!(scan(&timeline_of(&store, &progress, None)).unwrap(), old);
    let read = progress.end_statement().unwrap();
    assert!(read.replica_requests > 0 && read.is_stale(), "{read:?}");
    let reader = timeline_of(&store, &progress, None);
    assert_eq!(get(&reader, "a").unwrap().as_deref(), Some("old"));
    assert_eq!(get(&reader, "z").unwrap().as_deref(), Some("old"), "of one statement");
    reader.begin_statement();
    assert_eq!(get(&reader, "z").unwrap().as_deref(), Some("new"), "of the next statement");
    drop(hold);
    // The first region has answered: the replica of the second one must catch up first.
    let _hold = store.hold_region(regions[1].region, LONG).unwrap();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| scan(&timeline(&store)).unwrap());
        std::thread::sleep(Duration::from_millis(30));
        assert!(!reader.is_finished(), "the replica has not applied the snapshot");
        drop(lag);
        assert_eq!(reader.join().unwrap(), new);
    });
}

#[test]
fn staleness_above_limit_waits_for_primary() {
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(descriptor(&[], 2)).unwrap();
    put(&store, "a", "old");
    await_replica(&store);
    let _lag = store.hold_replicas(LONG);
    put(&store, "a", "new");
    let region = store.regions(TABLE).unwrap()[0].region;
    let hold = store.hold_region(region, LONG).unwrap();
    let progress = Arc::<TimelineProgress>::default();
    let minute = Some(Duration::from_secs(60));
    let read = |limit| get(&timeline_of(&store, &progress, limit), "a").unwrap();
    assert_eq!(read(minute).as_deref(), Some("old"));
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read(Some(Duration::ZERO)));
        std::thread::sleep(Duration::from_millis(30));
        assert!(!reader.is_finished(), "no replica is fresh enough");
        progress.end_statement();
        drop(hold);
        assert_eq!(reader.join().unwrap().as_deref(), Some("new"));
    });
    let read = progress.end_statement();
    assert_eq!(read, Some(TimelineRead::default()), "the primary has answered");
    assert_eq!((progress.end_statement(), progress.last_read()), (None, read));
}

#[test]
fn hold_ends_at_its_limit() {
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(descriptor(&[], 1)).unwrap();
    put(&store, "a", "one");
    let region = store.regions(TABLE).unwrap()[0].region;
    let _hold = store.hold_region(region, Duration::from_millis(30)).unwrap();
    let held = store.regions(TABLE).unwrap()[0].held_for;
    assert!(held.is_some_and(|held| held <= Duration::from_millis(30)), "{held:?}");
    assert_eq!(get(&begin(&store), "a").unwrap().as_deref(), Some("one"));
    assert_eq!(store.regions(TABLE).unwrap()[0].held_for, None);
}

/// A repeatable generator of numbers.
struct Steps(u64);

impl Steps {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

const ROWS: [&str; 6] = ["a", "d", "h", "n", "s", "y"];

/// Commit `n` puts `n` into row `n % 6`; the rows are in three regions. Checks that some rows are
/// those after commit `n` for one `n`, and returns it.
fn prefix_of(rows: &[(String, String)]) -> u64 {
    let values: Vec<u64> = rows.iter().map(|(_, value)| value.parse().unwrap()).collect();
    let newest = values.iter().copied().max().unwrap();
    for ((row, _), value) in rows.iter().zip(values) {
        let position = ROWS.iter().position(|name| name == row).unwrap() as u64;
        let expected = newest - (newest + 6 - position) % 6;
        assert_eq!(value, expected, "{rows:?} is no prefix");
    }
    assert_eq!(rows.len(), ROWS.len(), "{rows:?}");
    newest
}

fn run_sessions(seed: u64) -> u64 {
    let mut steps = Steps(seed);
    let mut env = FaultEnv::new(seed);
    let mut store = open(&env).unwrap();
    store.create_table(descriptor(&["g", "p"], 2)).unwrap();
    let write = |store: &Arc<Store>, n: u64, progress: &Arc<TimelineProgress>| {
        let writer = timeline_of(store, progress, None);
        let row = store::Mutation::new(ROWS[n as usize % 6]).put(0, "q", n.to_string().into());
        writer.mutate(TABLE, vec![row]).unwrap();
        writer.commit().unwrap().durable.wait().unwrap();
    };
    let new_sessions = || [(); 3].map(|()| (Arc::<TimelineProgress>::default(), 0_u64));
    let mut sessions = new_sessions();
    (0..6).for_each(|n| write(&store, n, &Arc::default()));
    await_replica(&store);
    let (mut count, mut stale) = (6, 0);
    let mut holds = Vec::new();
    let mut lag = None;
    for _ in 0..120 {
        let (progress, seen) = &mut sessions[steps.below(3) as usize];
        match steps.below(12) {
            0..=3 => {
                holds.clear();
                write(&store, count, progress);
                (*seen, count) = (count, count + 1);
            }
            4 => {
                let regions = store.regions(TABLE).unwrap();
                let region = regions[steps.below(3) as usize].region;
                holds.push(store.hold_region(region, LONG).unwrap());
            }
            5 => {
                holds.clear();
                // Limited: a session that requires its own commits waits for its end.
                lag = Some(store.hold_replicas(Duration::from_millis(10)));
                write(&store, count, progress);
                (*seen, count) = (count, count + 1);
                // Other sessions read the replica of the first region, which is behind.
                let first = store.regions(TABLE).unwrap()[0].region;
                holds.push(store.hold_region(first, LONG).unwrap());
            }
            6 => drop(store.flush_table(TABLE)),
            7 if steps.below(4) == 0 => drop(store.compact_table(TABLE, true)),
            8 if steps.below(8) == 0 => {
                holds.clear();
                lag = None;
                drop(store);
                env = env.after_crash(Unsynced::Lost);
                store = open(&env).unwrap();
                await_replica(&store);
                sessions = new_sessions();
            }
            _ => {
                let reader = timeline_of(&store, progress, None);
                let shown = prefix_of(&scan(&reader).unwrap());
                let by_key = ROWS.map(|row| {
                    let value = get(&reader, row).unwrap().unwrap();
                    (row.to_owned(), value)
                });
                assert_eq!(prefix_of(&by_key), shown, "of one statement");
                assert!(shown >= *seen, "seed {seed}: {shown} after {seen}");
                *seen = shown;
                stale += u64::from(shown + 1 < count);
            }
        }
    }
    drop(lag);
    stale
}

/// Sessions write and read at TIMELINE consistency while primaries are held and replicas lag:
/// each statement shows a prefix of the history, which includes what its session has written and
/// read before.
#[test]
fn timeline_sessions_read_growing_prefixes() {
    let stale: u64 = (1..=12).map(run_sessions).sum();
    assert!(stale > 0, "no read was behind");
}

#[test]
fn repeatable_read_transaction_keeps_its_timeline_snapshot() {
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(descriptor(&["m"], 2)).unwrap();
    put_all(&store, &["a", "z"], "old");
    await_replica(&store);
    let _lag = store.hold_replicas(LONG);
    put_all(&store, &["a", "z"], "new");
    let hold = store.hold_region(store.regions(TABLE).unwrap()[0].region, LONG).unwrap();
    let reader = store.begin(TransactionOptions {
        isolation: Isolation::RepeatableRead,
        consistency: Consistency::Timeline {
            timeout: Duration::from_millis(1),
            max_staleness: None,
        },
        ..TransactionOptions::default()
    });
    assert_eq!(get(&reader, "a").unwrap().as_deref(), Some("old"));
    drop(hold);
    reader.begin_statement();
    assert_eq!(get(&reader, "z").unwrap().as_deref(), Some("old"), "at the primary");
    // The row has changed since the snapshot.
    let row = store::Mutation::new("z").put(0, "q", "mine".into());
    let refused = reader.mutate(TABLE, vec![row]);
    assert!(matches!(refused, Err(Error::Serialization { .. })), "{refused:?}");
}
