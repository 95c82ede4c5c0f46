//! Tests of splits and merges during reads and writes: no row is lost, duplicated or returned
//! twice, despite concurrent activity, and a crash at any step leaves one of the two states.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use store::descriptor::{RegionId, SplitOptions, SplitPolicy};
use store::env::fault::{Fault, FaultEnv, Operation, Unsynced};
use store::store::SplitPoint;
use store::{
    CellBatch, Error, FamilyDescriptor, Get, Mutation, Options, Result, Scan, Store,
    TableDescriptor,
};

use crate::cases::{TABLE, begin, descriptor, get, open, options, put, scan, value};

fn filled(env: &FaultEnv, count: usize) -> Arc<Store> {
    let store = open(env).unwrap();
    store.create_table(descriptor(&[], 1)).unwrap();
    (0..count).for_each(|n| put(&store, &format!("r{n:03}"), &n.to_string()));
    store
}

fn ids(store: &Store) -> Vec<RegionId> {
    store.regions(TABLE).unwrap().iter().map(|region| region.region).collect()
}

fn starts(store: &Store) -> Vec<String> {
    let regions = store.regions(TABLE).unwrap();
    regions.iter().map(|region| String::from_utf8_lossy(&region.start).into_owned()).collect()
}

fn split_at(store: &Store, row: &str) -> Result<()> {
    store.split_region(TABLE, SplitPoint::At(row.into())).map(drop)
}

#[test]
fn daughter_regions_have_parent_rows() {
    let env = FaultEnv::new(1);
    let store = filled(&env, 40);
    store.flush(TABLE).unwrap();
    put(&store, "r005", "new");
    put(&store, "r030", "new");
    let before = scan(&begin(&store)).unwrap();
    let old_reader = begin(&store);
    let parent = ids(&store)[0];
    split_at(&store, "r020").unwrap();
    assert_eq!(starts(&store), ["", "r020"]);
    assert!(!ids(&store).contains(&parent));
    assert_eq!(scan(&begin(&store)).unwrap(), before);
    put(&store, "r019", "left");
    put(&store, "r020", "right");
    assert_eq!(get(&begin(&store), "r019").unwrap().as_deref(), Some("left"));
    assert_eq!(get(&begin(&store), "r020").unwrap().as_deref(), Some("right"));
    assert_eq!(scan(&old_reader).unwrap(), before, "a snapshot from before the split");
    drop(old_reader);
    let after = scan(&begin(&store)).unwrap();
    // The half-files are rewritten, and the parent's files are removed.
    store.compact(TABLE, true).unwrap();
    assert_eq!(scan(&begin(&store)).unwrap(), after);
    for region in store.regions(TABLE).unwrap() {
        assert_eq!(region.file_count, 1);
    }
    let of_parent = format!("/data/regions/{}/", parent.0);
    assert!(env.paths().iter().all(|path| !path.starts_with(&of_parent)), "{:?}", env.paths());
    drop(store);
    let store = open(&env).unwrap();
    assert_eq!(starts(&store), ["", "r020"]);
    assert_eq!(scan(&begin(&store)).unwrap(), after);
    store.merge_regions(TABLE, &ids(&store)).unwrap();
    assert_eq!(starts(&store), [""]);
    assert_eq!(scan(&begin(&store)).unwrap(), after);
}

#[test]
fn region_is_split_at_midpoint() {
    let store = filled(&FaultEnv::new(1), 100);
    store.split_region(TABLE, SplitPoint::Middle(ids(&store)[0])).unwrap();
    let middle: usize = starts(&store)[1][1..].parse().unwrap();
    assert!((30..70).contains(&middle), "{middle}");
    // Again, though the files are not rewritten yet.
    store.split_region(TABLE, SplitPoint::Middle(ids(&store)[1])).unwrap();
    let quarter: usize = starts(&store)[2][1..].parse().unwrap();
    assert!((middle + 5..95).contains(&quarter), "{quarter} behind {middle}");
    assert_eq!(scan(&begin(&store)).unwrap().len(), 100);
}

#[test]
fn groups_of_rows_are_not_split() {
    let env = FaultEnv::new(1);
    let store = open(&env).unwrap();
    let policy = SplitPolicy::DelimitedKeyPrefix { delimiter: b"/".to_vec() };
    let split = SplitOptions { policy, ..SplitOptions::default() };
    store.create_table(TableDescriptor { split, ..descriptor(&[], 1) }).unwrap();
    let write = |users: std::ops::Range<u64>, count: u64| {
        let rows = users.flat_map(|user| (0..count).map(move |event| (user, event)));
        rows.for_each(|(user, event)| put(&store, &format!("user{user}/{event:03}"), "value"));
        store.flush(TABLE).unwrap();
    };
    // The middle of the largest file is in the first group.
    write(0..1, 200);
    write(1..2, 20);
    write(2..3, 30);
    let region = ids(&store)[0];
    store.split_region(TABLE, SplitPoint::Middle(region)).unwrap();
    assert_eq!(starts(&store), ["", "user2"]);
    // The middle of the only file is in the first group: its last group is the other region.
    store.compact(TABLE, true).unwrap();
    store.split_region(TABLE, SplitPoint::Middle(ids(&store)[0])).unwrap();
    assert_eq!(starts(&store), ["", "user1", "user2"]);
    // A statement divides a group that fills its region.
    store.split_region(TABLE, SplitPoint::Middle(ids(&store)[0])).unwrap();
    assert!(starts(&store)[1].starts_with("user0/"), "{:?}", starts(&store));
    assert_eq!(scan(&begin(&store)).unwrap().len(), 250);
}

#[test]
fn invalid_split_or_merge_is_rejected() {
    let store = filled(&FaultEnv::new(1), 3);
    ["r001", "r002"].iter().for_each(|row| split_at(&store, row).unwrap());
    let refused = |outcome: Result<()>, why: &str| match outcome {
        Err(Error::InvalidRequest(message)) => assert!(message.contains(why), "{message}"),
        outcome => panic!("{outcome:?}, not {why}"),
    };
    let regions = ids(&store);
    refused(split_at(&store, "r001"), "already begins at that row");
    refused(
        store.split_region(TABLE, SplitPoint::Middle(regions[1])).map(drop),
        "has no split point",
    );
    refused(store.split_region(TABLE, SplitPoint::Middle(RegionId(99))).map(drop), "region 99");
    let merge = |of: &[RegionId]| store.merge_regions(TABLE, of).map(drop);
    refused(merge(&[regions[0], regions[2]]), "not adjacent");
    refused(merge(&[regions[0], regions[0]]), "at least two regions");
    refused(merge(&[regions[0], RegionId(99)]), "region 99");
    let load = store.bulk_load(TABLE).unwrap();
    refused(split_at(&store, "r0015"), "bulk load");
    drop(load);
    split_at(&store, "r0015").unwrap();
    assert_eq!(scan(&begin(&store)).unwrap().len(), 3);
}

/// Waits until the table has at least `count` regions.
fn await_regions(store: &Store, count: usize) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while store.regions(TABLE).unwrap().len() < count {
        assert!(Instant::now() < deadline, "{:?}", store.regions(TABLE).unwrap());
        std::thread::yield_now();
    }
}

#[test]
fn grown_regions_are_split_by_policy() {
    let env = FaultEnv::new(1);
    let settings = Options { memstore_flush_bytes: 4 << 10, ..options(&env) };
    let store = Store::open(std::path::Path::new("/data"), settings).unwrap();
    let split = SplitOptions {
        policy: SplitPolicy::DelimitedKeyPrefix { delimiter: b"/".to_vec() },
        max_file_bytes: 16 << 10,
        ..SplitOptions::default()
    };
    store.create_table(TableDescriptor { split, ..descriptor(&[], 1) }).unwrap();
    let mut count = 0;
    for user in 0..40 {
        for event in 0..20 {
            // Incompressible.
            let value: String = (0..8).map(|n| format!("{:016x}", noise(count * 8 + n))).collect();
            put(&store, &format!("user{user:02}/{event:02}"), &value);
            count += 1;
        }
    }
    store.flush(TABLE).unwrap();
    await_regions(&store, 4);
    for start in &starts(&store)[1..] {
        assert!(start.starts_with("user") && start.len() == 6, "{start} cuts a user in two");
    }
    assert_eq!(scan(&begin(&store)).unwrap().len() as u64, count);
    let disabled = TableDescriptor { split: SplitOptions::disabled(), ..descriptor(&[], 1) };
    store.alter_table(disabled).unwrap();
}

#[test]
fn split_policy_change_takes_effect_immediately() {
    let env = FaultEnv::new(1);
    let settings = Options { memstore_flush_bytes: 4 << 10, ..options(&env) };
    let store = Store::open(std::path::Path::new("/data"), settings).unwrap();
    store.create_table(descriptor(&[], 1)).unwrap();
    for row in 0..400 {
        let value: String = (0..8).map(|n| format!("{:016x}", noise(row * 8 + n))).collect();
        put(&store, &format!("r{row:03}"), &value);
    }
    store.flush(TABLE).unwrap();
    assert_eq!(store.regions(TABLE).unwrap().len(), 1);
    // No flush and no compaction follows it.
    let split = SplitOptions {
        policy: SplitPolicy::ConstantSize,
        max_file_bytes: 16 << 10,
        ..SplitOptions::default()
    };
    store.alter_table(TableDescriptor { split, ..descriptor(&[], 1) }).unwrap();
    await_regions(&store, 2);
    assert_eq!(scan(&begin(&store)).unwrap().len(), 400);
}

/// Returns bits that cannot be compressed.
pub(super) fn noise(n: u64) -> u64 {
    let mixed = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

#[test]
fn partially_added_family_is_complete_after_split_and_restart() {
    let env = FaultEnv::new(1);
    let store = filled(&env, 12);
    let mut more = descriptor(&[], 1);
    more.families.push(FamilyDescriptor::new("g"));
    env.inject(Fault { operation: Operation::CreateDirectory, after: 0, count: 1 });
    store.alter_table(more).unwrap_err();
    split_at(&store, "r006").unwrap();
    drop(store);
    let store = open(&env.after_crash(Unsynced::Lost)).unwrap();
    let transaction = begin(&store);
    let put = Mutation::new("r009").put(1, b"q".to_vec(), b"new".to_vec());
    transaction.mutate(TABLE, vec![put]).unwrap();
    transaction.commit().unwrap().durable.wait().unwrap();
    store.flush(TABLE).unwrap();
    let store = open(&env.after_crash(Unsynced::Lost)).unwrap();
    assert_eq!(scan(&begin(&store)).unwrap().len(), 12);
}

/// Stops the disk after every number of changes that a split or a merge makes.
#[test]
fn split_and_merge_are_atomic_under_crash() {
    for merges in [false, true] {
        let mut step = 0;
        loop {
            let env = FaultEnv::new(step);
            let store = filled(&env, 12);
            split_at(&store, "r006").unwrap();
            store.compact(TABLE, true).unwrap();
            put(&store, "r003", "in memory");
            put(&store, "r009", "in memory");
            let before = scan(&begin(&store)).unwrap();
            env.fail_after(step);
            let done = match merges {
                true => store.merge_regions(TABLE, &ids(&store)).map(drop),
                false => split_at(&store, "r003"),
            };
            // The process continues, and does not acknowledge commits that might be lost.
            let written = begin(&store);
            let put = Mutation::new("r004").put(0, "q", b"after".to_vec());
            let acknowledged = written
                .mutate(TABLE, vec![put])
                .and_then(|()| written.commit())
                .and_then(|commit| commit.durable.wait())
                .is_ok();
            assert!(!acknowledged || done.is_ok() || step > 0);
            drop(written);
            drop(store);
            for unsynced in [Unsynced::Lost, Unsynced::Torn, Unsynced::Kept] {
                let env = env.after_crash(unsynced);
                let store = open(&env).unwrap();
                let found = scan(&begin(&store)).unwrap();
                let mut with_put = before.clone();
                with_put[4].1 = "after".into();
                assert!(
                    found == with_put || (!acknowledged && found == before),
                    "step {step}, {unsynced:?}, acknowledged {acknowledged}: {found:?}"
                );
                let count = ids(&store).len();
                let (old, new) = if merges { (2, 1) } else { (2, 3) };
                assert!(count == new || (done.is_err() && count == old), "{count} regions");
                // It succeeds now.
                if count == old {
                    match merges {
                        true => store.merge_regions(TABLE, &ids(&store)).map(drop).unwrap(),
                        false => split_at(&store, "r003").unwrap(),
                    }
                }
                assert_eq!(scan(&begin(&store)).unwrap(), found);
            }
            if done.is_ok() {
                break;
            }
            step += 1;
        }
        assert!(step > 8, "{step} steps");
    }
}

/// Number of values that writers increment; each key belongs to one writer.
const KEYS: u64 = 200;
const WRITERS: u64 = 8;
const READERS: usize = 8;

fn key(n: u64) -> String {
    format!("k{n:04}")
}

/// The last commit of each writer, by key; a reader may see that or a newer one.
struct Counters(Vec<AtomicU64>);

impl Counters {
    /// Checks a scan that began after `seen` was recorded.
    fn check(&self, seen: &[u64], found: &[(String, String)]) {
        let by_key: BTreeMap<&str, u64> =
            found.iter().map(|(row, value)| (row.as_str(), value.parse().unwrap())).collect();
        assert_eq!(by_key.len(), found.len(), "a row was seen twice");
        assert_eq!(found.len() as u64, KEYS, "a row is missing");
        for (n, seen) in seen.iter().enumerate() {
            let value = by_key[key(n as u64).as_str()];
            let last = self.0[n].load(Ordering::SeqCst);
            assert!(*seen <= value && value <= last + 1, "key {n}: {value}, not {seen} to {last}");
        }
    }

    fn seen(&self) -> Vec<u64> {
        self.0.iter().map(|counter| counter.load(Ordering::SeqCst)).collect()
    }
}

fn write(store: &Arc<Store>, n: u64, value: u64, plain: bool) -> Result<()> {
    if plain {
        let mut batch = store::PutBatch::new();
        let row = key(n);
        let column = store::Column { row: row.as_bytes(), family: 0, qualifier: b"q" };
        batch.put(column, store::Timestamp::LATEST, value.to_string().as_bytes());
        return store.put(TABLE, batch, None)?.durable.wait();
    }
    let transaction = begin(store);
    let mutation = Mutation::new(key(n)).put(0, "q", value.to_string().into_bytes());
    transaction.mutate(TABLE, vec![mutation])?;
    transaction.commit()?.durable.wait()
}

fn read_all(store: &Arc<Store>, reverse: bool, batch_rows: usize) -> Result<Vec<(String, String)>> {
    let transaction = begin(store);
    let mut scanner = transaction.scan(TABLE, Scan { reverse, ..Scan::all() })?;
    let (mut rows, mut batch) = (Vec::new(), CellBatch::new());
    while scanner.next_batch(batch_rows, &mut batch)? {
        for cell in batch.rows().flat_map(|row| row.cells()) {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            rows.push((text(cell.row), text(cell.value)));
        }
        // Lets other threads run in the middle of the scan.
        std::thread::yield_now();
    }
    Ok(rows)
}

/// Splits, merges, flushes and compacts until each has happened often enough.
fn reshape(store: &Store, reads: &AtomicU64) {
    let (mut splits, mut merges, mut turn) = (0, 0, 0_u64);
    while splits < 40 || merges < 20 || reads.load(Ordering::SeqCst) < 40 {
        let regions = store.regions(TABLE).unwrap();
        match turn % 5 {
            0..3 if regions.len() < 12 => {
                let at = key(turn * 37 % KEYS);
                if regions.iter().all(|region| region.start != at.as_bytes()) {
                    split_at(store, &at).unwrap();
                    splits += 1;
                }
            }
            3 => {
                let first = turn as usize % (regions.len() - 1).max(1);
                let named: Vec<RegionId> =
                    regions[first..].iter().take(3).map(|region| region.region).collect();
                if named.len() > 1 {
                    store.merge_regions(TABLE, &named).unwrap();
                    merges += 1;
                }
            }
            4 => store.flush(TABLE).unwrap(),
            _ => store.compact(TABLE, turn % 2 == 0).unwrap(),
        }
        turn += 1;
    }
}

/// Splits, merges, flushes and compacts during the writes and reads of sixteen clients.
#[test]
fn split_and_merge_preserve_rows_under_load() {
    let env = FaultEnv::new(7);
    let settings = Options { memstore_flush_bytes: 16 << 10, ..options(&env) };
    let store = Store::open(std::path::Path::new("/data"), settings).unwrap();
    store.create_table(descriptor(&["k0050"], 2)).unwrap();
    (0..KEYS).for_each(|n| write(&store, n, 0, false).unwrap());
    let counters = Counters((0..KEYS).map(|_| AtomicU64::new(0)).collect());
    let done = AtomicBool::new(false);
    let reads = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (store, counters, done) = (&store, &counters, &done);
            scope.spawn(move || {
                let mut turn = 0;
                while !done.load(Ordering::SeqCst) {
                    let n = (turn * 7 % (KEYS / WRITERS)) * WRITERS + writer;
                    let next = counters.0[n as usize].load(Ordering::SeqCst) + 1;
                    write(store, n, next, turn % 2 == 0).unwrap();
                    counters.0[n as usize].store(next, Ordering::SeqCst);
                    turn += 1;
                }
            });
        }
        for reader in 0..READERS {
            let (store, counters, done, reads) = (&store, &counters, &done, &reads);
            scope.spawn(move || {
                let mut turn = 0_u64;
                while !done.load(Ordering::SeqCst) {
                    let seen = counters.seen();
                    let found = read_all(store, reader % 2 == 1, 1 + reader * 5).unwrap();
                    counters.check(&seen, &found);
                    let n = turn * 31 % KEYS;
                    let seen = counters.0[n as usize].load(Ordering::SeqCst);
                    let mut batch = CellBatch::new();
                    assert!(store.get(TABLE, &Get::new(key(n)), &mut batch).unwrap());
                    let found: u64 = value(&batch).unwrap().parse().unwrap();
                    assert!(found >= seen, "key {n}: a get found {found}, {seen} was committed");
                    turn += 1;
                    reads.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        reshape(&store, &reads);
        done.store(true, Ordering::SeqCst);
    });
    counters.check(&counters.seen(), &scan(&begin(&store)).unwrap());
    assert_eq!(store.status().row_locks, 0);
    let before = scan(&begin(&store)).unwrap();
    drop(store);
    assert_eq!(scan(&begin(&open(&env).unwrap())).unwrap(), before);
}
