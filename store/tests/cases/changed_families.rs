//! Model checking of tables whose families come and go: ADD and DROP FAMILY and changes of options
//! between writes, flushes, compactions, splits, merges, clock steps and restarts.
//!
//! The model is a map. `BENNU_CASES` multiplies the number of cases.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use store::descriptor::{CompactionOptions, CompactionPolicy, ExploringOptions};
use store::env::Env;
use store::env::fault::{FaultEnv, Unsynced};
use store::store::SplitPoint;
use store::{CellBatch, FamilyDescriptor, Mutation, Scan, Store, TableDescriptor, Transaction};

use crate::cases::histories::model;
use crate::cases::{TABLE, begin, descriptor, open};

const ROWS: u8 = 8;
/// More than a test adds.
const FAMILIES_MAX: usize = 200;

#[derive(Debug, Clone)]
enum Step {
    /// Puts a value into some families of a row: bits of a mask, from the newest family on.
    Put(u8, u8),
    DeleteRow(u8),
    AddFamily,
    /// Drops one of the families behind the first.
    DropFamily(usize),
    /// Changes options of a family.
    Alter(usize, Change),
    Replicas(u8),
    Flush,
    Compact(bool),
    Split(u8),
    Merge,
    /// The clock advances by this many seconds.
    Wait(i64),
    OpenReader,
    CloseReader,
    Restart,
    Crash,
}

#[derive(Debug, Clone)]
enum Change {
    Versions(u32),
    Ttl(bool),
    InMemory(bool),
    BlockCache(bool),
    ManyFiles(bool),
}

/// Rows with the values of their families, by index.
type Rows = BTreeMap<u8, BTreeMap<u8, u64>>;

struct World {
    env: FaultEnv,
    store: Option<Arc<Store>>,
    families: Vec<FamilyDescriptor>,
    replicas: u8,
    rows: Rows,
    readers: Vec<(Transaction, Rows)>,
    writes: u64,
}

fn step() -> impl Strategy<Value = Step> {
    let change = prop_oneof![
        3 => (1..4u32).prop_map(Change::Versions),
        2 => any::<bool>().prop_map(Change::Ttl),
        1 => any::<bool>().prop_map(Change::InMemory),
        1 => any::<bool>().prop_map(Change::BlockCache),
        1 => any::<bool>().prop_map(Change::ManyFiles),
    ];
    prop_oneof![
        30 => (0..ROWS, 1..8u8).prop_map(|(row, mask)| Step::Put(row, mask)),
        4 => (0..ROWS).prop_map(Step::DeleteRow),
        6 => Just(Step::AddFamily),
        5 => (0..4usize).prop_map(Step::DropFamily),
        4 => (0..4usize, change).prop_map(|(family, change)| Step::Alter(family, change)),
        1 => (1..3u8).prop_map(Step::Replicas),
        7 => Just(Step::Flush),
        5 => any::<bool>().prop_map(Step::Compact),
        2 => (0..ROWS).prop_map(Step::Split),
        1 => Just(Step::Merge),
        2 => (1..100i64).prop_map(Step::Wait),
        2 => Just(Step::OpenReader),
        2 => Just(Step::CloseReader),
        2 => Just(Step::Restart),
        2 => Just(Step::Crash),
    ]
}

fn key(row: u8) -> String {
    format!("r{row}")
}

impl World {
    fn new() -> World {
        let env = FaultEnv::new(1);
        env.set_now(1_000_000);
        let store = open(&env).unwrap();
        let table = descriptor(&[], 1);
        store.create_table(table.clone()).unwrap();
        World {
            env,
            store: Some(store),
            families: table.families,
            replicas: 1,
            rows: Rows::new(),
            readers: Vec::new(),
            writes: 0,
        }
    }

    fn store(&self) -> &Arc<Store> {
        self.store.as_ref().unwrap()
    }

    /// Returns the indexes of the families that were not dropped.
    fn living(&self) -> Vec<usize> {
        let families = 0..self.families.len();
        families.filter(|&family| !self.families[family].is_dropped()).collect()
    }

    fn alter(&self) {
        let families = self.families.clone();
        let table = TableDescriptor { families, ..descriptor(&[], self.replicas) };
        self.store().alter_table(table).unwrap();
    }

    fn write(&mut self, mutation: Mutation) {
        let transaction = begin(self.store());
        transaction.mutate(TABLE, vec![mutation]).unwrap();
        transaction.commit().unwrap().durable.wait().unwrap();
    }

    fn put(&mut self, row: u8, mask: u8) {
        self.writes += 1;
        let value = self.writes;
        let mut mutation = Mutation::new(key(row));
        let living = self.living();
        for (bit, &family) in living.iter().rev().enumerate() {
            if bit < 8 && mask & (1 << bit) != 0 {
                mutation = mutation.put(family as u8, "q", value.to_string().into());
                self.rows.entry(row).or_default().insert(family as u8, value);
            }
        }
        if !mutation.edits.is_empty() {
            self.write(mutation);
        }
    }

    fn change(&mut self, number: usize, change: &Change) {
        let living = self.living();
        let family = &mut self.families[living[number % living.len()]];
        match change {
            Change::Versions(versions) => family.versions = *versions,
            // Longer than the clock goes.
            Change::Ttl(set) => family.ttl = set.then_some(Duration::from_secs(1_000_000)),
            Change::InMemory(set) => family.in_memory = *set,
            Change::BlockCache(set) => family.block_cache = *set,
            Change::ManyFiles(set) => {
                let lazy = ExploringOptions { min_files: 9, ..ExploringOptions::default() };
                let policy = CompactionPolicy::Exploring(lazy);
                family.compaction =
                    if *set { CompactionOptions::of(policy) } else { CompactionOptions::default() };
            }
        }
        self.alter();
    }

    fn drop_family(&mut self, number: usize) {
        let living = self.living();
        let Some(&family) = living.get(1 + number) else { return };
        self.families[family] = FamilyDescriptor::dropped();
        self.alter();
        // Readers read the present families, of their snapshots.
        let readers = self.readers.iter_mut().map(|(_, rows)| rows);
        for rows in readers.chain([&mut self.rows]) {
            for cells in rows.values_mut() {
                cells.remove(&(family as u8));
            }
            rows.retain(|_, cells| !cells.is_empty());
        }
    }

    fn reopen(&mut self) {
        self.readers.clear();
        self.store = None;
        self.store = Some(open(&self.env).unwrap());
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Put(row, mask) => self.put(*row, *mask),
            Step::DeleteRow(row) => {
                self.rows.remove(row);
                self.write(Mutation::new(key(*row)).delete_row());
            }
            Step::AddFamily if self.families.len() < FAMILIES_MAX => {
                // The name of a dropped family may return.
                let name = format!("f{}", self.families.len() % 3);
                let name = match self.families.iter().any(|family| family.name == name) {
                    true => format!("g{}", self.families.len()),
                    false => name,
                };
                self.families.push(FamilyDescriptor::new(name));
                self.alter();
            }
            Step::AddFamily => {}
            Step::DropFamily(number) => self.drop_family(*number),
            Step::Alter(number, change) => self.change(*number, change),
            Step::Replicas(count) => {
                self.replicas = *count;
                self.alter();
            }
            Step::Flush => self.store().flush(TABLE).unwrap(),
            Step::Compact(major) => self.store().compact(TABLE, *major).unwrap(),
            Step::Split(row) => {
                // Rejected if a region begins there.
                let _ = self.store().split_region(TABLE, SplitPoint::At(key(*row).into()));
            }
            Step::Merge => {
                let regions = self.store().regions(TABLE).unwrap();
                if let [first, second, ..] = regions.as_slice() {
                    self.store().merge_regions(TABLE, &[first.region, second.region]).unwrap();
                }
            }
            Step::Wait(seconds) => self.env.set_now(self.env.now_micros() + seconds * 1_000_000),
            Step::OpenReader => {
                let reader = begin(self.store());
                self.readers.push((reader, self.rows.clone()));
            }
            Step::CloseReader => drop(self.readers.pop()),
            Step::Restart => self.reopen(),
            Step::Crash => {
                self.env = self.env.after_crash(Unsynced::Torn);
                self.reopen();
            }
        }
    }

    fn check(&self) {
        assert_eq!(read(&begin(self.store())), self.rows);
        for (reader, rows) in &self.readers {
            assert_eq!(read(reader), *rows, "at an earlier snapshot");
        }
        let stored = self.store().table(TABLE).unwrap();
        let names = |families: &[FamilyDescriptor]| -> Vec<String> {
            families.iter().map(|family| family.name.clone()).collect()
        };
        assert_eq!(names(&stored.families), names(&self.families));
    }
}

/// Returns all cells that a transaction sees.
fn read(transaction: &Transaction) -> Rows {
    let mut rows = Rows::new();
    let mut scanner = transaction.scan(TABLE, Scan::all()).unwrap();
    let mut batch = CellBatch::new();
    while scanner.next_batch(3, &mut batch).unwrap() {
        for cell in batch.rows().flat_map(|row| row.cells()) {
            let row = cell.row[1] - b'0';
            let value = std::str::from_utf8(cell.value).unwrap().parse().unwrap();
            rows.entry(row).or_default().insert(cell.family, value);
        }
    }
    rows
}

#[test]
fn tables_with_changed_families_match_model() {
    let regressions = "proptest-regressions/changed_families.txt";
    model::hold(
        ("tables with changed families", regressions),
        prop::collection::vec(step(), 1..80),
        |steps| {
            let mut world = World::new();
            for step in &steps {
                world.run(step);
                world.check();
            }
            // A step and a read that is compared.
            2 * steps.len() as u64
        },
    );
}
