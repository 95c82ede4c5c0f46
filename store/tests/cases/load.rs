//! Tests of the load statistics of regions.

use std::time::Duration;

use store::env::fault::FaultEnv;
use store::store::LoadStatistics;
use store::transaction::{LockMode, LockWait, TransactionOptions};
use store::{CellBatch, Error, Get, Mutation, Scan, Store};

use crate::cases::{TABLE, begin, descriptor, open, put};

fn loads(store: &Store) -> Vec<LoadStatistics<u64>> {
    store.regions(TABLE).unwrap().into_iter().map(|region| region.load).collect()
}

#[test]
fn reads_and_writes_are_counted_per_region() {
    let env = FaultEnv::new(1);
    let store = open(&env).unwrap();
    store.create_table(descriptor(&["m"], 1)).unwrap();
    assert_eq!(loads(&store), [LoadStatistics::default(); 2]);
    let batch = begin(&store);
    let row = |row: &str| Mutation::new(row).put(0, "q", vec![7; 10]).put(0, "r", vec![8; 10]);
    batch.mutate(TABLE, vec![row("a"), row("b"), row("z")]).unwrap();
    batch.commit().unwrap().durable.wait().unwrap();
    let [low, high] = loads(&store)[..] else { panic!("there are two regions") };
    assert_eq!((low.write_requests, low.rows_written, low.cells_written), (1, 2, 4));
    assert_eq!((high.write_requests, high.rows_written, high.cells_written), (1, 1, 2));
    assert_eq!((low.read_requests, high.read_requests), (0, 0));
    assert!(high.bytes_written >= 23 && low.bytes_written == 2 * high.bytes_written);

    let mut out = CellBatch::new();
    assert!(store.get(TABLE, &Get::new("a"), &mut out).unwrap());
    let returned = out.byte_count() as u64;
    assert!(!store.get(TABLE, &Get::new("nothing"), &mut out).unwrap());
    let [low, high] = loads(&store)[..] else { panic!("there are two regions") };
    assert_eq!((low.read_requests, low.rows_read, low.cells_read), (1, 1, 2));
    assert_eq!(low.bytes_read, returned);
    assert_eq!((high.read_requests, high.rows_read, high.bytes_read), (1, 0, 0));

    let reader = begin(&store);
    let mut scanner = reader.scan(TABLE, Scan::all()).unwrap();
    while scanner.next_batch(1, &mut out).unwrap() {}
    let [low, high] = loads(&store)[..] else { panic!("there are two regions") };
    assert_eq!((low.read_requests, low.rows_read, low.cells_read), (2, 3, 6));
    assert_eq!((high.read_requests, high.rows_read, high.cells_read), (2, 1, 2));
    assert_eq!(low.bytes_read, 3 * returned);
}

#[test]
fn row_estimate_uses_file_and_memstore_statistics() {
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(descriptor(&["m"], 1)).unwrap();
    let rows = || store.row_estimate(TABLE).unwrap().rows;
    assert_eq!(rows(), 0);
    let change = |range: std::ops::Range<u32>, change: fn(Mutation) -> Mutation| {
        let batch = begin(&store);
        let mutations = range.map(|row| change(Mutation::new(format!("{row:03}z"))));
        batch.mutate(TABLE, mutations.collect()).unwrap();
        batch.commit().unwrap().durable.wait().unwrap();
    };
    change(0..60, |row| row.put(0, "q", vec![7]));
    assert_eq!(rows(), 60, "in memory");
    store.flush(TABLE).unwrap();
    assert_eq!(rows(), 60, "in a file");
    change(60..100, |row| row.put(0, "q", vec![7]));
    assert_eq!(rows(), 100, "in both");
    store.flush(TABLE).unwrap();
    change(0..80, |row| row.delete_row());
    store.flush(TABLE).unwrap();
    assert_eq!(rows(), 20, "deleted");
    store.compact(TABLE, true).unwrap();
    assert_eq!(rows(), 20, "compacted");
    let unknown = store::TableId(77);
    assert!(store.row_estimate(unknown).is_err());
}

#[test]
fn load_rates_use_store_clock() {
    let env = FaultEnv::new(1);
    let store = open(&env).unwrap();
    store.create_table(descriptor(&[], 1)).unwrap();
    put(&store, "a", "1");
    env.set_now(1_000_000 + 4_000_000);
    let rate = || store.regions(TABLE).unwrap()[0].rates.rows_written;
    assert!((rate() - 0.25).abs() < 1e-9, "one row in four seconds");
    env.set_now(1_000_000 + 3_600_000_000);
    assert!(rate() < 1e-6, "an hour ago");
}

#[test]
fn lock_waits_are_counted_per_region() {
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(descriptor(&["m"], 1)).unwrap();
    let holder = begin(&store);
    let lock = LockMode::Exclusive;
    assert!(holder.lock_row(TABLE, b"a", lock, LockWait::Wait).unwrap());
    let options =
        TransactionOptions { lock_timeout: Some(Duration::from_millis(1)), ..Default::default() };
    let late = store.begin(options);
    assert!(!late.lock_row(TABLE, b"a", lock, LockWait::Skip).unwrap());
    let refused = late.lock_row(TABLE, b"a", lock, LockWait::Wait);
    assert!(matches!(refused, Err(Error::LockNotAvailable { timed_out: true, .. })));
    let waits: Vec<u64> = loads(&store).iter().map(|load| load.lock_waits).collect();
    assert_eq!(waits, [1, 0], "only the one that waited, only in its region");
}
