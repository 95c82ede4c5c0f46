//! Measures splits and merges: `splits ROWS [WRITERS] [ROUNDS]`. ROWS rows of 16 + 100 bytes are
//! loaded into one region; then, while WRITERS threads put rows and one reads them, the largest
//! region is split and all regions are merged into one, alternately. Prints for each the time
//! that writers of the region had to wait, the duration of the call, and the longest put and get
//! meanwhile.
//!
//! The data directory is `$BENNU_DIRECTORY`, or a new one in the working directory.

#![allow(clippy::disallowed_methods, reason = "tests use the system directly")]
#![expect(clippy::print_stdout, reason = "this is its purpose")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on fails")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use store::bulk_load::BulkCell;
use store::descriptor::Durability;
use store::store::SplitPoint;
use store::{
    CellBatch, CellType, Column, FamilyDescriptor, Get, Options, PutBatch, Store, TableDescriptor,
    TableId, Timestamp,
};

const TABLE: TableId = TableId(1);

fn main() {
    let words: Vec<u64> = std::env::args().skip(1).map(|word| word.parse().unwrap()).collect();
    let number = |index: usize, default: u64| words.get(index).copied().unwrap_or(default);
    let (rows, writers, rounds) = (number(0, 1_000_000), number(1, 2), number(2, 4));
    let directory = std::env::var_os("BENNU_DIRECTORY").map_or("splits-data".into(), PathBuf::from);
    drop(std::fs::remove_dir_all(&directory));
    let store = Store::open(&directory, Options::default()).unwrap();
    store
        .create_table(TableDescriptor {
            durability: Durability::AsyncWal,
            ..TableDescriptor::new(TABLE, "t", vec![FamilyDescriptor::new("f")])
        })
        .unwrap();
    load(&store, rows);
    let status = store.regions(TABLE).unwrap();
    println!(
        "{rows} rows, {} MB in {} files",
        status[0].file_bytes / 1_000_000,
        status[0].file_count
    );
    let watch = Watch::default();
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let (store, watch) = (&store, &watch);
            scope.spawn(move || write(store, watch, writer, rows));
        }
        scope.spawn(|| read(&store, &watch, rows));
        (0..rounds).for_each(|round| reshape(&store, &watch, round));
        watch.done.store(true, Ordering::Relaxed);
    });
    drop(store);
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Measurements of the threads that write and read.
#[derive(Default)]
struct Watch {
    done: AtomicBool,
    longest_put: AtomicU64,
    longest_get: AtomicU64,
}

/// Records the duration of a call.
fn note(longest: &AtomicU64, call: impl FnOnce()) {
    let began = Instant::now();
    call();
    longest.fetch_max(began.elapsed().as_micros() as u64, Ordering::Relaxed);
}

fn next(n: u64) -> u64 {
    n.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f)
}

fn write(store: &Arc<Store>, watch: &Watch, writer: u64, rows: u64) {
    let mut n = writer;
    while !watch.done.load(Ordering::Relaxed) {
        n = next(n);
        let mut batch = PutBatch::new();
        let row = row(n % rows);
        let column = Column { row: &row, family: 0, qualifier: b"" };
        batch.put(column, Timestamp::LATEST, &[7; 100]);
        note(&watch.longest_put, || drop(store.put(TABLE, batch, None).unwrap()));
    }
}

fn read(store: &Store, watch: &Watch, rows: u64) {
    let (mut n, mut batch) = (1, CellBatch::new());
    while !watch.done.load(Ordering::Relaxed) {
        n = next(n);
        batch.clear();
        let get = Get::new(row(n % rows));
        note(&watch.longest_get, || assert!(store.get(TABLE, &get, &mut batch).unwrap()));
    }
}

/// Splits the largest region, or merges all.
fn reshape(store: &Store, watch: &Watch, round: u64) {
    watch.longest_put.store(0, Ordering::Relaxed);
    watch.longest_get.store(0, Ordering::Relaxed);
    let regions = store.regions(TABLE).unwrap();
    let began = Instant::now();
    let (what, reshaped) = match round % 2 {
        0 => {
            let largest = regions.iter().max_by_key(|region| region.file_bytes).unwrap();
            ("split", store.split_region(TABLE, SplitPoint::Middle(largest.region)))
        }
        _ => {
            let all: Vec<_> = regions.iter().map(|region| region.region).collect();
            ("merge", store.merge_regions(TABLE, &all))
        }
    };
    println!(
        "{what}: closed for {:.1} ms, {:.0} ms in all; longest put {:.1} ms, get {:.1} ms",
        reshaped.unwrap().closed_for.as_secs_f64() * 1e3,
        began.elapsed().as_secs_f64() * 1e3,
        watch.longest_put.load(Ordering::Relaxed) as f64 / 1e3,
        watch.longest_get.load(Ordering::Relaxed) as f64 / 1e3,
    );
}

fn row(n: u64) -> [u8; 16] {
    let mut row = [0; 16];
    row[8..].copy_from_slice(&n.to_be_bytes());
    row
}

fn load(store: &Arc<Store>, rows: u64) {
    let mut load = store.bulk_load(TABLE).unwrap();
    let mut value = [0; 100];
    for n in 0..rows {
        value[..8].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
        let cell = BulkCell {
            row: &row(n),
            family: 0,
            qualifier: b"",
            timestamp: None,
            cell_type: CellType::Put,
            value: &value,
        };
        load.add(cell).unwrap();
    }
    load.adopt().unwrap();
}
