//! Measures the cost of observers, by counting instructions: `valgrind --tool=callgrind
//! target/release/examples/observer_cost get none 10000`.
//!
//! The operation is `get` (of one cell), `put` (a commit that skips the log), `mutate` (the same
//! in a transaction) or `scan` (of a row among many); the observer is `none`, `others` (one that
//! declares other hooks only) or `all` (one with all hooks, without effect). The difference of
//! two numbers of rounds is the cost of the rounds between.

#![allow(clippy::disallowed_methods, reason = "tests use the system directly")]
#![expect(clippy::unwrap_used, reason = "a program for measuring")]

use std::path::Path;
use std::sync::Arc;

use store::descriptor::Durability;
use store::env::fault::FaultEnv;
use store::observer::{Hook, Hooks, RegionObserver};
use store::transaction::TransactionOptions;
use store::{
    CellBatch, Column, FamilyDescriptor, Get, Mutation, Options, PutBatch, Scan, Store,
    TableDescriptor, TableId, Timestamp,
};

const TABLE: TableId = TableId(1);
const ROWS: u64 = 10_000;

/// Observer with these hooks, which have no effect.
struct Idle(Hooks);

impl RegionObserver for Idle {
    fn name(&self) -> &str {
        "idle"
    }

    fn hooks(&self) -> Hooks {
        self.0
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("{:016}", number % ROWS).into_bytes()
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
    (0..ROWS).for_each(|row| put(&store, row));
    store
}

fn put(store: &Arc<Store>, row: u64) {
    let mut batch = PutBatch::new();
    let key = key(row);
    let column = Column { row: &key, family: 0, qualifier: b"q" };
    batch.put(column, Timestamp::LATEST, &[7; 100]);
    store.put(TABLE, batch, None).unwrap();
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (what, who) = (arguments.next().unwrap(), arguments.next().unwrap());
    let rounds: u64 = arguments.next().unwrap().parse().unwrap();
    let store = filled();
    let hooks = match who.as_str() {
        "none" => None,
        "others" => Some(Hooks::of(&[Hook::PreBulkLoad])),
        "all" => Some(Hooks::ALL),
        other => panic!("who is {other}"),
    };
    let observer = |hooks| (0, Arc::new(Idle(hooks)) as Arc<dyn RegionObserver>);
    store.set_observers(TABLE, hooks.map(observer).into_iter().collect()).unwrap();
    let mut batch = CellBatch::new();
    let transaction = store.begin(TransactionOptions::default());
    transaction.begin_statement();
    match what.as_str() {
        "get" => {
            for round in 0..rounds {
                batch.clear();
                assert!(store.get(TABLE, &Get::new(key(round * 7919)), &mut batch).unwrap());
            }
        }
        "put" => (0..rounds).for_each(|round| put(&store, round * 7919)),
        "mutate" => {
            for round in 0..rounds {
                let transaction = store.begin(TransactionOptions::default());
                let mutation = Mutation::new(key(round * 7919)).put(0, "q", vec![7; 100]);
                transaction.mutate(TABLE, vec![mutation]).unwrap();
                transaction.commit().unwrap();
            }
        }
        "scan" => {
            let mut left = rounds;
            while left > 0 {
                let limit = Some(left.min(ROWS));
                let scan = Scan { limit, ..Scan::all() };
                let mut scanner = transaction.scan(TABLE, scan).unwrap();
                while scanner.next_batch(1000, &mut batch).unwrap() {
                    left -= batch.row_count() as u64;
                }
            }
        }
        other => panic!("what is {other}"),
    }
}
