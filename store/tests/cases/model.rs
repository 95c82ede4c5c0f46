//! Property test of transactions against a sorted map: staged, rolled back and committed writes,
//! and reads by snapshots and after reopening, agree with the map.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use store::env::fault::{FaultEnv, Unsynced};
use store::transaction::{Isolation, TransactionOptions};
use store::{Mutation, Scan, Store, TableDescriptor, Transaction};

use crate::cases::{TABLE, columnar_family, descriptor, get, open, scan};

#[derive(Debug, Clone)]
enum Step {
    Put(u8, u16),
    Delete(u8),
    /// A put and a delete in one mutation.
    Replace(u8, u16),
    Savepoint,
    RollBackTo,
    Commit,
    RollBack,
    /// A reader holds the present state.
    OpenReader,
    CheckReaders,
    ReadRange(u8, u8),
    Flush,
    Compact,
    Reopen,
    Crash,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..24u8, any::<u16>()).prop_map(|(row, value)| Step::Put(row, value)),
        4 => (0..24u8).prop_map(Step::Delete),
        2 => (0..24u8, any::<u16>()).prop_map(|(row, value)| Step::Replace(row, value)),
        2 => Just(Step::Savepoint),
        1 => Just(Step::RollBackTo),
        4 => Just(Step::Commit),
        1 => Just(Step::RollBack),
        2 => Just(Step::OpenReader),
        2 => Just(Step::CheckReaders),
        2 => (0..24u8, 0..24u8).prop_map(|(start, stop)| Step::ReadRange(start, stop)),
        2 => Just(Step::Flush),
        1 => Just(Step::Compact),
        1 => Just(Step::Reopen),
        1 => Just(Step::Crash),
    ];
    prop::collection::vec(step, 1..80)
}

type Rows = BTreeMap<String, String>;

struct World {
    env: FaultEnv,
    store: Option<Arc<Store>>,
    transaction: Option<Transaction>,
    committed: Rows,
    present: Rows,
    savepoint: Option<(store::transaction::Savepoint, Rows)>,
    readers: Vec<(Transaction, Rows)>,
}

fn row(number: u8) -> String {
    format!("{number:03}")
}

impl World {
    fn new() -> World {
        let env = FaultEnv::new(1);
        let store = open(&env).unwrap();
        let families = vec![columnar_family()];
        let table = TableDescriptor { families, ..descriptor(&["008", "016"], 1) };
        store.create_table(table).unwrap();
        let mut world = World {
            env,
            store: Some(store),
            transaction: None,
            committed: Rows::new(),
            present: Rows::new(),
            savepoint: None,
            readers: Vec::new(),
        };
        world.begin();
        world
    }

    fn store(&self) -> &Arc<Store> {
        self.store.as_ref().unwrap()
    }

    fn begin(&mut self) {
        let transaction = self.store().begin(TransactionOptions::default());
        transaction.begin_statement();
        self.transaction = Some(transaction);
        self.present = self.committed.clone();
        self.savepoint = None;
    }

    fn reopen(&mut self) {
        self.readers.clear();
        self.transaction = None;
        self.store = None;
        self.store = Some(open(&self.env).unwrap());
        self.begin();
    }

    fn mutate(&mut self, mutation: Mutation) {
        self.transaction.as_ref().unwrap().mutate(TABLE, vec![mutation]).unwrap();
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Put(number, value) => {
                self.mutate(Mutation::new(row(number)).put(0, "q", value.to_string().into()));
                self.present.insert(row(number), value.to_string());
            }
            Step::Delete(number) => {
                self.mutate(Mutation::new(row(number)).delete_row());
                self.present.remove(&row(number));
            }
            Step::Replace(number, value) => {
                let mutation = Mutation::new(row(number)).delete_row();
                self.mutate(mutation.put(0, "q", value.to_string().into()));
                self.present.insert(row(number), value.to_string());
            }
            Step::Savepoint => {
                let savepoint = self.transaction.as_ref().unwrap().savepoint();
                self.savepoint = Some((savepoint, self.present.clone()));
            }
            Step::RollBackTo => {
                if let Some((savepoint, rows)) = self.savepoint.clone() {
                    self.transaction.as_ref().unwrap().rollback_to(savepoint);
                    self.present = rows;
                }
            }
            Step::Commit => {
                let commit = self.transaction.take().unwrap().commit().unwrap();
                commit.durable.wait().unwrap();
                self.committed = self.present.clone();
                self.begin();
            }
            Step::RollBack => {
                self.transaction.take().unwrap().rollback();
                self.begin();
            }
            Step::OpenReader => {
                let isolation = Isolation::RepeatableRead;
                let options = TransactionOptions { isolation, ..TransactionOptions::default() };
                let reader = self.store().begin(options);
                reader.begin_statement();
                self.readers.push((reader, self.committed.clone()));
            }
            Step::CheckReaders => {
                for (reader, rows) in &self.readers {
                    reader.begin_statement();
                    let found: Rows = scan(reader).unwrap().into_iter().collect();
                    assert_eq!(found, *rows);
                }
            }
            Step::ReadRange(start, stop) => self.read_range(&row(start), &row(stop)),
            Step::Flush => self.store().flush(TABLE).unwrap(),
            Step::Compact => self.store().compact(TABLE, true).unwrap(),
            Step::Reopen => self.reopen(),
            Step::Crash => {
                self.env = self.env.after_crash(Unsynced::Torn);
                self.reopen();
            }
        }
    }

    fn read_range(&self, start: &str, stop: &str) {
        let transaction = self.transaction.as_ref().unwrap();
        transaction.begin_statement();
        for number in 0..24 {
            assert_eq!(
                get(transaction, &row(number)).unwrap().as_ref(),
                self.present.get(&row(number))
            );
        }
        let mut expected: Vec<&String> = match start < stop {
            true => self.present.range(start.to_owned()..stop.to_owned()).map(|(k, _)| k).collect(),
            false => Vec::new(),
        };
        for reverse in [false, true] {
            let mut request = Scan::range(start, Some(stop.into()));
            request.reverse = reverse;
            let mut scanner = transaction.scan(TABLE, request).unwrap();
            let mut batch = store::CellBatch::new();
            let mut found = Vec::new();
            while scanner.next_batch(3, &mut batch).unwrap() {
                found.extend(batch.rows().map(|row| String::from_utf8(row.key().into()).unwrap()));
            }
            assert_eq!(found.iter().collect::<Vec<_>>(), expected, "reverse: {reverse}");
            expected.reverse();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn transactions_match_sorted_map_model(steps in steps()) {
        let mut world = World::new();
        for step in steps {
            world.run(step);
        }
        world.run(Step::CheckReaders);
        world.run(Step::ReadRange(0, 23));
    }
}
