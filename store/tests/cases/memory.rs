//! The memory of the process against the budget. Measures this process, so each runs alone:
//! `cargo test --release -p bennu-store --test scripts memory::load -- --ignored --nocapture`,
//! with `BENNU_MEMORY_DATA` and `BENNU_MEMORY_BUDGET` in MiB.

use std::io::Write as _;
use std::sync::Arc;

use store::descriptor::Durability;
use store::env::RealEnv;
use store::transaction::TransactionOptions;
use store::{CellBatch, Mutation, Options, Scan, Store};

use crate::cases::{TABLE, begin, descriptor};

/// Returns a figure of this process in bytes: `VmRSS` now, `VmHWM` the highest so far.
fn figure(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap()) << 20
}

fn note(what: &str) {
    let (now, highest) = (figure("VmRSS") >> 20, figure("VmHWM") >> 20);
    let text = format!("{what}: {now} MiB resident, at most {highest} MiB so far\n");
    std::io::stderr().write_all(text.as_bytes()).unwrap();
}

#[test]
#[ignore = "measures a process of its own"]
fn a_hundred_empty_regions_take_little() {
    let directory = tempfile::tempdir().unwrap();
    let before = figure("VmRSS");
    let env = Arc::new(RealEnv::default());
    let store = Store::open(directory.path(), Options { env, ..Options::default() }).unwrap();
    let points: Vec<String> = (1..100).map(|number| format!("{number:02}")).collect();
    let points: Vec<&str> = points.iter().map(String::as_str).collect();
    store.create_table(descriptor(&points, 1)).unwrap();
    note("a hundred regions");
    assert!(figure("VmRSS") - before < 20 << 20);
}

#[test]
#[ignore = "measures a process of its own"]
fn load_compaction_and_scan_stay_within_the_budget() {
    let data_bytes = setting("BENNU_MEMORY_DATA", 1024);
    let budget = setting("BENNU_MEMORY_BUDGET", 64);
    let directory = tempfile::tempdir().unwrap();
    let env = Arc::new(RealEnv::default());
    let options = Options { env, memory_bytes: budget, ..Options::default() };
    let store = Store::open(directory.path(), options).unwrap();
    store.create_table(descriptor(&["4", "8", "c"], 1)).unwrap();
    let mut random = 1_u64;
    let rows = data_bytes / 1016;
    for _ in 0..rows / 50 {
        let durability = Some(Durability::AsyncWal);
        let transaction = store.begin(TransactionOptions { durability, ..Default::default() });
        transaction.begin_statement();
        let batch = (0..50).map(|_| {
            let mut value = Vec::with_capacity(1000);
            while value.len() < 1000 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                value.extend_from_slice(&random.to_le_bytes());
            }
            Mutation::new(format!("{random:016x}")).put(0, "q", value)
        });
        transaction.mutate(TABLE, batch.collect()).unwrap();
        transaction.commit().unwrap();
    }
    note("loaded");
    store.flush_table(TABLE).unwrap();
    store.compact_table(TABLE, true).unwrap();
    note("compacted");
    let transaction = begin(&store);
    let mut scanner = transaction.scan(TABLE, Scan::all()).unwrap();
    let (mut batch, mut found) = (CellBatch::new(), 0);
    while scanner.next_batch(1000, &mut batch).unwrap() {
        found += batch.row_count() as u64;
    }
    note("scanned");
    let status = store.status();
    let text = format!("{found} rows, {} stalls, {:?}\n", status.memory_stalls, store.cache());
    std::io::stderr().write_all(text.as_bytes()).unwrap();
    assert_eq!(found, rows / 50 * 50);
    assert!(figure("VmHWM") <= budget / 4 * 5, "more than 1.25 times the budget");
}
