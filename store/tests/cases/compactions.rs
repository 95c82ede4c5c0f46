//! Tests of background compactions: the number of files stays small, statements wait for their
//! compactions, writers wait for a reduction of files, failures are retried, and drops and
//! shutdowns end compactions promptly.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use store::descriptor::{CompactionOptions, CompactionPolicy, ExploringOptions, LeveledOptions};
use store::descriptor::{KeepDeletedCells, RETIRED_RULES_MAX};
use store::env::Env;
use store::env::fault::{FaultEnv, Unsynced};
use store::options::{CompactionLimits, Throughput};
use store::store::SplitPoint;
use store::{Edit, Error, Mutation, Options, Store, TableDescriptor};

use crate::cases::{TABLE, begin, descriptor, open, options, put, scan};

fn with(compaction: CompactionOptions) -> TableDescriptor {
    let mut table = descriptor(&[], 1);
    table.families[0].compaction = compaction;
    table
}

fn leveled() -> CompactionOptions {
    let small = LeveledOptions { level0_files: 2, base_bytes: 4000, multiplier: 2 };
    CompactionOptions {
        file_bytes: 1000,
        ..CompactionOptions::of(CompactionPolicy::Leveled(small))
    }
}

/// Never selects a merge on its own.
fn lazy(blocking_files: u32) -> CompactionOptions {
    let lazy = ExploringOptions { min_files: 1000, max_files: 1000, ..ExploringOptions::default() };
    let policy = CompactionPolicy::Exploring(lazy);
    CompactionOptions { blocking_files, ..CompactionOptions::of(policy) }
}

fn fill(store: &Arc<Store>, flushes: u32, rows: u32) {
    for flush in 0..flushes {
        for row in 0..rows {
            put(
                store,
                &format!("{:04}", (row * 37 + flush * 11) % (3 * rows)),
                &format!("{flush}"),
            );
        }
        store.flush_table(TABLE).unwrap();
    }
}

/// Waits until no compaction runs or is queued.
fn await_idle(store: &Arc<Store>) {
    while store.status().running_compactions + store.status().queued_compactions > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn compaction_policies_bound_file_count_and_preserve_rows() {
    let policies = [CompactionOptions::default(), leveled()];
    for compaction in policies {
        let env = FaultEnv::new(1);
        let store = open(&env).unwrap();
        store.create_table(with(compaction.clone())).unwrap();
        for flush in 0..12 {
            for row in 0..20 {
                put(&store, &format!("{:04}", row * 7 + flush), "value");
            }
            store.flush(TABLE).unwrap();
        }
        await_idle(&store);
        let before = scan(&begin(&store)).unwrap();
        let figures = store.compaction_figures(Some(TABLE)).unwrap();
        assert!(figures.runs < 6, "{figures:?}");
        assert!(figures.compactions > 0 && figures.flushed_bytes > 0, "{figures:?}");
        assert!(figures.write_amplification() > 1.0 && figures.space_amplification() >= 1.0);
        // Another policy takes over the files of this one.
        let other = if compaction == leveled() { CompactionOptions::default() } else { leveled() };
        store.alter_table(with(other)).unwrap();
        await_idle(&store);
        assert_eq!(scan(&begin(&store)).unwrap(), before);
        store.compact_table(TABLE, true).unwrap();
        let figures = store.compaction_figures(None).unwrap();
        assert_eq!(figures.runs, 1, "{figures:?}");
        drop(store);
        let store = open(&env.after_crash(Unsynced::Torn)).unwrap();
        assert_eq!(scan(&begin(&store)).unwrap(), before);
    }
}

/// Changes VERSIONS of the table, which adds a retired rule.
fn change_versions(store: &Store, versions: u32) -> store::Result<()> {
    let mut table = with(lazy(1000));
    table.families[0].versions = versions;
    store.alter_table(table)
}

fn retired_rules(store: &Store) -> usize {
    store.table(TABLE).unwrap().families[0].retired.len()
}

#[test]
fn major_compaction_of_all_regions_removes_retired_rules() {
    let env = FaultEnv::new(1);
    let store = open(&env).unwrap();
    store.create_table(with(lazy(1000))).unwrap();
    store.split_region(TABLE, SplitPoint::At(b"5".to_vec())).unwrap();
    for change in 0..200 {
        put(&store, "1", &format!("{change}"));
        change_versions(&store, 2 + change % 2).unwrap();
        if change % 50 == 49 {
            // Rows in the memstore still need the rules.
            store.compact_table(TABLE, true).unwrap();
            assert!(retired_rules(&store) > 40);
            store.flush_table(TABLE).unwrap();
            store.compact_table(TABLE, true).unwrap();
            // The other region has no rows.
            assert_eq!(retired_rules(&store), 0);
        }
    }
    let rules = RETIRED_RULES_MAX as u32;
    (0..rules).for_each(|change| change_versions(&store, 4 + change % 2).unwrap());
    assert!(matches!(change_versions(&store, 9), Err(Error::InvalidRequest(_))));
    // An open reader may need them.
    let reader = begin(&store);
    assert_eq!(scan(&reader).unwrap().len(), 1);
    store.compact_table(TABLE, true).unwrap();
    drop(reader);
    drop(store);
    let store = open(&env.after_crash(Unsynced::Torn)).unwrap();
    assert_eq!(retired_rules(&store), 0);
    assert_eq!(scan(&begin(&store)).unwrap().len(), 1);
}

#[test]
fn expiry_by_removed_rule_remains() {
    let env = FaultEnv::new(1);
    let store = open(&env).unwrap();
    let mut table = with(lazy(1000));
    table.families[0].ttl = Some(Duration::from_secs(1));
    store.create_table(table).unwrap();
    fill(&store, 1, 5);
    env.set_now(30_000_000);
    change_versions(&store, 1).unwrap();
    change_versions(&store, 2).unwrap();
    assert_eq!(scan(&begin(&store)).unwrap().len(), 0);
    store.compact_table(TABLE, true).unwrap();
    // A write with a timestamp that had expired must not become visible.
    assert_eq!(retired_rules(&store), 1);
    assert_eq!(scan(&begin(&store)).unwrap().len(), 0);
}

#[test]
fn invalid_compaction_policy_is_rejected() {
    let store = open(&FaultEnv::new(1)).unwrap();
    let refused = store.create_table(with(CompactionOptions::of(CompactionPolicy::Fifo)));
    assert!(
        matches!(&refused, Err(Error::InvalidRequest(why)) if why.contains("TTL")),
        "{refused:?}"
    );
    store.create_table(with(CompactionOptions::default())).unwrap();
    let none = CompactionOptions { blocking_files: 0, ..CompactionOptions::default() };
    assert!(store.alter_table(with(none)).is_err());
}

#[test]
fn fully_expired_files_are_dropped_unread() {
    let env = FaultEnv::new(1);
    let store = open(&env).unwrap();
    let mut table = with(CompactionOptions::of(CompactionPolicy::Fifo));
    table.families[0].ttl = Some(Duration::from_secs(60));
    store.create_table(table).unwrap();
    fill(&store, 3, 5);
    env.set_now(30_000_000);
    fill(&store, 2, 5);
    assert_eq!(store.compaction_figures(None).unwrap().files, 5);
    env.set_now(70_000_000);
    store.compact_table(TABLE, false).unwrap();
    let figures = store.compaction_figures(None).unwrap();
    assert_eq!((figures.files, figures.expired_files), (2, 3));
    assert_eq!(figures.compacted_in_bytes, 0);
    env.set_now(200_000_000);
    // Without a request: the clock suffices.
    put(&store, "x", "y");
    while store.compaction_figures(None).unwrap().files > 0 {
        store.flush(TABLE).unwrap();
        env.set_now(store.now_micros() + 100_000_000);
    }
    env.set_now(store.now_micros() + 100_000_000);
    assert_eq!(scan(&begin(&store)).unwrap().len(), 0);
}

#[test]
fn files_past_cell_ttl_are_dropped_unread() {
    let env = FaultEnv::new(1);
    let store = open(&env).unwrap();
    let mut table = with(lazy(100));
    // Neither retains cells that count as never written.
    table.families[0].min_versions = 1;
    table.families[0].keep_deleted_cells = KeepDeletedCells::True;
    store.create_table(table).unwrap();
    let commit = |rows: &[&str], ttl: Option<Duration>| {
        let transaction = begin(&store);
        let put = |row: &&str| {
            let (qualifier, value) = (b"q".to_vec(), b"value".to_vec());
            let put = Edit::Put { family: 0, qualifier, timestamp: None, value, ttl };
            Mutation::new(row.as_bytes()).with(put)
        };
        transaction.mutate(TABLE, rows.iter().map(put).collect()).unwrap();
        transaction.commit().unwrap().durable.wait().unwrap();
    };
    let (short, long) = (Some(Duration::from_secs(1)), Some(Duration::from_secs(100)));
    commit(&["a", "b", "c"], None);
    store.flush_table(TABLE).unwrap();
    commit(&["a", "b"], short);
    store.flush_table(TABLE).unwrap();
    commit(&["b"], short);
    commit(&["c"], long);
    store.flush_table(TABLE).unwrap();
    let rows = scan(&begin(&store)).unwrap();
    env.set_now(env.now_micros() + 2_000_000);
    store.compact_table(TABLE, false).unwrap();
    let figures = store.compaction_figures(None).unwrap();
    assert_eq!((figures.files, figures.expired_files), (2, 1), "one has a cell that goes on");
    assert_eq!(figures.compacted_in_bytes, 0);
    assert_eq!(scan(&begin(&store)).unwrap(), rows, "what they had replaced is seen again");
    env.set_now(env.now_micros() + 200_000_000);
    store.compact_table(TABLE, false).unwrap();
    let figures = store.compaction_figures(None).unwrap();
    assert_eq!((figures.files, figures.expired_files), (1, 2));
    assert_eq!(scan(&begin(&store)).unwrap(), rows);
}

#[test]
fn write_stall_on_file_count_is_bounded() {
    let env = FaultEnv::new(1);
    let mut options = options(&env);
    options.compactions.stall_max = Duration::from_millis(1);
    let store = Store::open(Path::new("/data"), options).unwrap();
    store.create_table(with(lazy(4))).unwrap();
    fill(&store, 6, 5);
    // No compaction is running, so waiting would be useless.
    put(&store, "a", "b");
    assert_eq!(store.status().file_stalls, 0);
    // A compaction that cannot progress.
    env.fail_after(0);
    assert!(store.compact_table(TABLE, true).is_err());
    assert_eq!(store.status().failed_compactions, 1);
    env.fail_after(u64::MAX >> 1);
    store.compact_table(TABLE, true).unwrap();
    assert_eq!(store.compaction_figures(None).unwrap().files, 1);
}

/// A store whose compactions may read one byte per second: they never finish without
/// cancellation.
fn store_with_slow_compactions(env: &FaultEnv) -> Arc<Store> {
    let slow = Some(Throughput { low_bytes: 1, high_bytes: 1 });
    let compactions = CompactionLimits {
        throughput: slow,
        stall_max: Duration::from_millis(1),
        ..CompactionLimits::default()
    };
    let options = Options { compactions, ..options(env) };
    let store = Store::open(Path::new("/data"), options).unwrap();
    store.create_table(with(lazy(100))).unwrap();
    fill(&store, 4, 5);
    store
}

fn await_compaction(store: &Arc<Store>) {
    while store.compactions().iter().all(|running| running.cells_done == 0) {
        std::thread::yield_now();
    }
}

#[test]
fn compaction_stops_when_table_or_store_closes() {
    for stops in [false, true] {
        let env = FaultEnv::new(1);
        let store = store_with_slow_compactions(&env);
        std::thread::scope(|scope| {
            let major = scope.spawn(|| store.compact_table(TABLE, true));
            await_compaction(&store);
            let running = store.compactions();
            assert_eq!((running.len(), running[0].files), (1, 4), "{running:?}");
            assert!(running[0].cells_total >= 20 && running[0].bytes_total > 0);
            // A second one waits behind it.
            let behind = scope.spawn(|| store.compact_table(TABLE, true));
            while store.status().queued_compactions == 0 {
                std::thread::yield_now();
            }
            match stops {
                true => store.shut_down().unwrap(),
                false => store.drop_table(TABLE).unwrap(),
            }
            for answer in [major.join().unwrap(), behind.join().unwrap()] {
                assert_eq!(matches!(answer, Err(Error::ShutDown)), stops, "{answer:?}");
                assert_eq!(answer.is_ok(), !stops);
            }
        });
        drop(store);
        let files = env.paths();
        assert_eq!(
            files
                .iter()
                .filter(|path| path.extension().is_some_and(|extension| extension == "store"))
                .count(),
            if stops { 4 } else { 0 },
            "{files:?}"
        );
    }
}

#[test]
fn cancelled_compaction_stops_early() {
    let env = FaultEnv::new(1);
    let store = store_with_slow_compactions(&env);
    let before = scan(&begin(&store)).unwrap();
    let cancelled = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let major = scope.spawn(|| store.compact_until(TABLE, true, &cancelled));
        await_compaction(&store);
        let behind = scope.spawn(|| store.compact_until(TABLE, true, &cancelled));
        while store.status().queued_compactions == 0 {
            std::thread::yield_now();
        }
        cancelled.store(true, Ordering::Relaxed);
        for answer in [major.join().unwrap(), behind.join().unwrap()] {
            assert!(matches!(answer, Err(Error::Cancelled)), "{answer:?}");
        }
    });
    while !store.compactions().is_empty() || store.status().queued_compactions > 0 {
        std::thread::yield_now();
    }
    assert_eq!(store.status().failed_compactions, 0);
    assert_eq!(scan(&begin(&store)).unwrap(), before);
}

#[test]
fn writers_stall_during_blocking_compaction() {
    let env = FaultEnv::new(1);
    let store = store_with_slow_compactions(&env);
    store.alter_table(with(lazy(4))).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| store.compact_table(TABLE, true));
        await_compaction(&store);
        put(&store, "a", "late");
        assert!(store.status().file_stalls > 0);
        store.shut_down().unwrap();
    });
}

/// A crash at every write, sync and rename of flushes and compactions, with every policy.
#[test]
fn flush_and_compaction_are_atomic_under_crash() {
    for compaction in [CompactionOptions::default(), leveled()] {
        for crash_at in 0.. {
            let env = FaultEnv::new(crash_at);
            let store = open(&env).unwrap();
            store.create_table(with(compaction.clone())).unwrap();
            fill(&store, 4, 8);
            let before = scan(&begin(&store)).unwrap();
            env.fail_after(crash_at);
            let done = store.compact_table(TABLE, false).is_ok()
                && store.compact_table(TABLE, true).is_ok();
            let unsynced = [Unsynced::Lost, Unsynced::Torn, Unsynced::Holed];
            let after = env.after_crash(unsynced[crash_at as usize % 3]);
            drop(store);
            let store = open(&after).unwrap();
            assert_eq!(scan(&begin(&store)).unwrap(), before, "crash at {crash_at}");
            // Sometimes the store has compacted automatically before, and little was left to do.
            if done && crash_at > 10 {
                break;
            }
        }
    }
}
