//! Measures the cost of scans, by counting instructions: `valgrind --tool=callgrind
//! target/release/examples/scan_cost forward 2`. A table of 100,000 rows in one store file
//! (16-byte keys, one cell of 100 bytes) is scanned completely in each round, `forward` or in
//! `reverse`; for `open`, a scanner is opened and one row read 10,000 times in each round. The
//! difference of two numbers of rounds is the cost of one.

#![allow(clippy::disallowed_methods, reason = "tests use the system directly")]
#![expect(clippy::unwrap_used, reason = "a program for measuring")]

use std::path::Path;
use std::sync::Arc;

use store::descriptor::Durability;
use store::env::fault::FaultEnv;
use store::transaction::TransactionOptions;
use store::{
    CellBatch, FamilyDescriptor, Mutation, Options, Scan, Store, TableDescriptor, TableId,
};

const TABLE: TableId = TableId(1);
const ROWS: u64 = 100_000;
const OPENS: u64 = 10_000;

fn key(number: u64) -> Vec<u8> {
    format!("{number:016}").into_bytes()
}

fn filled() -> Arc<Store> {
    let options =
        Options { env: Arc::new(FaultEnv::new(1)), memory_bytes: 256 << 20, ..Options::default() };
    let store = Store::open(Path::new("/data"), options).unwrap();
    let descriptor = TableDescriptor {
        durability: Durability::SkipWal,
        ..TableDescriptor::new(TABLE, "t", vec![FamilyDescriptor::new("f")])
    };
    store.create_table(descriptor).unwrap();
    for first in (0..ROWS).step_by(1000) {
        let transaction = store.begin(TransactionOptions::default());
        transaction.begin_statement();
        let puts =
            (first..first + 1000).map(|row| Mutation::new(key(row)).put(0, "q", vec![7; 100]));
        transaction.mutate(TABLE, puts.collect()).unwrap();
        transaction.commit().unwrap().durable.wait().unwrap();
    }
    store.flush(TABLE).unwrap();
    store
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap();
    let rounds: u64 = arguments.next().unwrap().parse().unwrap();
    let store = filled();
    let transaction = store.begin(TransactionOptions::default());
    transaction.begin_statement();
    let mut batch = CellBatch::new();
    for round in 0..rounds {
        if what == "open" {
            for number in 0..OPENS {
                let start = key((round + number * 7919) % ROWS);
                let mut scanner = transaction.scan(TABLE, Scan::range(start, None)).unwrap();
                assert!(scanner.next_batch(1, &mut batch).unwrap());
            }
            continue;
        }
        let scan = Scan { reverse: what == "reverse", ..Scan::all() };
        let mut scanner = transaction.scan(TABLE, scan).unwrap();
        let mut rows = 0;
        while scanner.next_batch(1024, &mut batch).unwrap() {
            rows += batch.row_count() as u64;
        }
        assert_eq!(rows, ROWS);
    }
}
