//! Measures the commit path: `commits DURABILITY THREADS COMMITS [PUTS]`, with durability `sync`,
//! `async` or `skip`, the number of commits per thread and of puts per commit.
//!
//! The data directory is `$BENNU_DIRECTORY`, or a new one in the working directory. Prints the
//! duration of a commit, and of the replay of the log; `strace -c -f` counts its system calls and
//! `perf stat` its instructions.

#![allow(clippy::disallowed_methods, reason = "tests use the system directly")]
#![expect(clippy::print_stdout, reason = "this is its purpose")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on fails")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use store::descriptor::Durability;
use store::{
    Column, FamilyDescriptor, Options, PutBatch, Store, TableDescriptor, TableId, Timestamp,
};

const TABLE: TableId = TableId(1);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| {
        words.get(index).map_or(default, |word| word.parse::<u64>().unwrap())
    };
    let durability = match words.first().map(String::as_str) {
        Some("sync") | None => Durability::SyncWal,
        Some("async") => Durability::AsyncWal,
        Some("skip") => Durability::SkipWal,
        Some(other) => panic!("unknown durability {other}"),
    };
    let (threads, commits, puts) = (number(1, 1), number(2, 10_000), number(3, 1));
    let directory =
        std::env::var_os("BENNU_DIRECTORY").map_or("commits-data".into(), PathBuf::from);
    drop(std::fs::remove_dir_all(&directory));
    let store = Store::open(&directory, Options::default()).unwrap();
    store
        .create_table(TableDescriptor {
            durability,
            ..TableDescriptor::new(TABLE, "t", vec![FamilyDescriptor::new("f")])
        })
        .unwrap();
    let start = Instant::now();
    let mut times: Vec<Duration> = std::thread::scope(|scope| {
        let run = |thread: u64| {
            let store = Arc::clone(&store);
            scope.spawn(move || work(&store, thread, commits, puts))
        };
        let running: Vec<_> = (0..threads).map(run).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let elapsed = start.elapsed();
    times.sort_unstable();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e6;
    println!(
        "{durability:?} x{threads}, {puts} a commit: {:.0} commits/s, p50 {:.1} µs, p99 {:.1} µs, \
         p99.9 {:.1} µs, max {:.1} µs",
        times.len() as f64 / elapsed.as_secs_f64(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
    let log_bytes = store.status().log_bytes;
    drop(store);
    let start = Instant::now();
    let store = Store::open(&directory, Options::default()).unwrap();
    let elapsed = start.elapsed();
    println!(
        "opened again in {:.1} ms: {:.0} MB/s of log, {:.0} commits/s",
        elapsed.as_secs_f64() * 1e3,
        log_bytes as f64 / elapsed.as_secs_f64() / 1e6,
        times.len() as f64 / elapsed.as_secs_f64()
    );
    drop(store);
    drop(std::fs::remove_dir_all(&directory));
}

fn work(store: &Arc<Store>, thread: u64, commits: u64, puts: u64) -> Vec<Duration> {
    let value = vec![7; 100];
    let mut next = thread << 40;
    let mut times = Vec::with_capacity(commits as usize);
    for _ in 0..commits {
        let begun = Instant::now();
        let mut batch = PutBatch::with_capacity(puts as usize * 128);
        for _ in 0..puts {
            next += 1;
            // Scattered, unlike the keys of a bulk load.
            let key = next.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let row = (u128::from(key) << 64 | u128::from(next)).to_be_bytes();
            let column = Column { row: &row, family: 0, qualifier: b"" };
            batch.put(column, Timestamp::LATEST, &value);
        }
        store.put(TABLE, batch, None).unwrap().durable.wait().unwrap();
        times.push(begun.elapsed());
    }
    times
}
