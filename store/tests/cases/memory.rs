//! Tests of the process's memory against the budget. Each measurement needs a separate process:
//! the tests of the normal run start this program again with one of the ignored tests.
//!
//! Larger: `cargo test --release -p bennu-store --test scripts memory::measured -- --ignored
//! --nocapture --test-threads=1`, with `BENNU_MEMORY_DATA` and `BENNU_MEMORY_BUDGET` in MiB.

use std::io::Write as _;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use store::descriptor::Durability;
use store::env::RealEnv;
use store::transaction::TransactionOptions;
use store::{CellBatch, Get, Mutation, Options, Scan, Store};

use crate::cases::{TABLE, begin, descriptor};

const VALUE_BYTES: usize = 1000;
const ROW_BYTES: u64 = VALUE_BYTES as u64 + 16;
const BATCH_ROWS: u64 = 50;
const WRITERS: u64 = 2;

/// Returns a size of this process in bytes: `VmRSS` now, `RssAnon` without mapped files, `VmHWM`
/// the highest since it was reset.
fn status_bytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap()) << 20
}

fn say(text: &str) {
    std::io::stderr().write_all(text.as_bytes()).unwrap();
}

/// Runs one of the tests below in a separate process.
fn measure(name: &str, variables: &[(&str, &str)]) {
    let name = format!("cases::memory::measured::{name}");
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program)
        .args(["--exact", &name, "--ignored", "--nocapture"])
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    let count = String::from_utf8_lossy(&output.stdout);
    assert!(count.contains("1 passed"), "{count}");
}

#[test]
fn empty_regions_use_little_memory() {
    measure("child_hundred_empty_regions", &[]);
}

#[test]
fn load_compaction_and_scan_stay_within_budget() {
    let variables = [("BENNU_MEMORY_DATA", "128"), ("BENNU_MEMORY_BUDGET", "192")];
    measure("child_load_compaction_and_scan", &variables);
}

/// The steps of a run, and their maximal memory.
struct Watch {
    budget: u64,
    since: Instant,
    highest: u64,
}

impl Watch {
    fn note(&mut self, what: &str, store: &Store) {
        let highest = status_bytes("VmHWM");
        // So that the next step is measured separately.
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        self.highest = self.highest.max(highest);
        let parts = [
            highest,
            status_bytes("VmRSS"),
            status_bytes("RssFile"),
            store.status().memstore_bytes,
            store.cache().byte_count,
        ];
        let [highest, now, file, memstores, cache] = parts.map(|bytes| bytes >> 20);
        let seconds = std::mem::replace(&mut self.since, Instant::now()).elapsed().as_secs_f64();
        say(&format!(
            "{what:32} {seconds:7.1} s  at most {highest:4} MiB, now {now:4} \
             (mapped files {file}, memstores {memstores}, cache {cache})\n"
        ));
    }

    fn check(&self) {
        let Watch { budget, highest, .. } = self;
        say(&format!("at most {:.2} times the budget\n", *highest as f64 / *budget as f64));
        assert!(*highest <= budget / 4 * 5, "{} MiB are too many", highest >> 20);
    }
}

fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

fn row(number: u64) -> String {
    format!("{:016x}", mix(number))
}

/// A put that cannot be compressed.
fn put(number: u64) -> Mutation {
    let mut random = mix(!number) | 1;
    let mut value = Vec::with_capacity(VALUE_BYTES);
    while value.len() < VALUE_BYTES {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        value.extend_from_slice(&random.to_le_bytes());
    }
    Mutation::new(row(number)).put(0, "q", value)
}

/// Writes batches with several threads, each of which also reads an existing row per batch, so
/// that the cache stays full, if possible.
fn load(store: &Arc<Store>, batches: std::ops::Range<u64>) {
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let batches = batches.clone().filter(move |batch| batch % WRITERS == writer);
            scope.spawn(move || {
                for batch in batches {
                    let durability = Some(Durability::AsyncWal);
                    let options = TransactionOptions { durability, ..Default::default() };
                    let transaction = store.begin(options);
                    transaction.begin_statement();
                    if batch >= WRITERS {
                        let get = Get::new(row(mix(batch) % ((batch - 1) / 2 * BATCH_ROWS + 1)));
                        transaction.get(TABLE, &get, &mut CellBatch::new()).unwrap();
                    }
                    let rows = batch * BATCH_ROWS..(batch + 1) * BATCH_ROWS;
                    transaction.mutate(TABLE, rows.map(put).collect()).unwrap();
                    transaction.commit().unwrap();
                }
            });
        }
    });
}

fn scan(store: &Arc<Store>) -> u64 {
    let transaction = begin(store);
    let mut scanner = transaction.scan(TABLE, Scan::all()).unwrap();
    let (mut batch, mut found) = (CellBatch::new(), 0);
    while scanner.next_batch(1000, &mut batch).unwrap() {
        found += batch.row_count() as u64;
    }
    found
}

/// Run in separate processes.
mod measured {
    use super::*;

    #[test]
    #[ignore = "measures a process of its own"]
    fn child_hundred_empty_regions() {
        let directory = tempfile::tempdir().unwrap();
        let before = status_bytes("RssAnon");
        let env = Arc::new(RealEnv::default());
        let store = Store::open(directory.path(), Options { env, ..Options::default() }).unwrap();
        let points: Vec<String> = (1..100).map(|number| format!("{number:02}")).collect();
        let points: Vec<&str> = points.iter().map(String::as_str).collect();
        store.create_table(descriptor(&points, 1)).unwrap();
        let taken = status_bytes("RssAnon") - before;
        say(&format!("a hundred regions take {} KiB\n", taken >> 10));
        assert!(taken < 16 << 20);
    }

    #[test]
    #[ignore = "measures a process of its own"]
    fn child_load_compaction_and_scan() {
        let batches = setting("BENNU_MEMORY_DATA", 5 << 10) / ROW_BYTES / BATCH_ROWS;
        let budget = setting("BENNU_MEMORY_BUDGET", 256);
        let directory = tempfile::tempdir().unwrap();
        let env = Arc::new(RealEnv::default());
        let options = Options { env, memory_bytes: budget, ..Options::default() };
        let store = Store::open(directory.path(), options).unwrap();
        store.create_table(descriptor(&["4", "8", "c"], 1)).unwrap();
        let mut watch = Watch { budget, since: Instant::now(), highest: 0 };
        load(&store, 0..batches / 2);
        watch.note("half loaded", &store);
        assert_eq!(scan(&store), batches / 2 * BATCH_ROWS);
        watch.note("scanned", &store);
        // Now with a full cache.
        load(&store, batches / 2..batches);
        watch.note("all loaded", &store);
        store.flush_table(TABLE).unwrap();
        watch.note("flushed", &store);
        store.compact_table(TABLE, true).unwrap();
        watch.note("compacted", &store);
        assert_eq!(scan(&store), batches * BATCH_ROWS);
        watch.note("scanned", &store);
        let status = store.status();
        say(&format!(
            "{} waits for memory, {} for files\n",
            status.memory_stalls, status.file_stalls
        ));
        watch.check();
    }
}
