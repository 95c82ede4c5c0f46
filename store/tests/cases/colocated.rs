//! Property test of a colocated table against a sorted map: splits and merges of its base table,
//! which it follows, writes, flushes, compactions, bulk loads, reopening and crashes. Its rows are
//! in the regions of their base rows, and scans return all of them in order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use store::descriptor::colocation::{append_base_row, base_row};
use store::descriptor::{RegionId, RowRange};
use store::env::fault::{FaultEnv, Unsynced};
use store::store::SplitPoint;
use store::{
    CellBatch, Error, FamilyDescriptor, Get, Mutation, Result, Scan, Store, TableDescriptor,
    TableId, Transaction,
};

use crate::cases::{
    Rows, TABLE, begin, check_scans, columnar_family, descriptor, load_rows, open, scanned,
};

/// The colocated table.
const INDEX: TableId = TableId(2);

#[derive(Debug, Clone)]
enum Step {
    /// A row with this prefix, of this base row.
    Put(u8, u8, u16),
    Delete(u8, u8),
    /// The rows of one commit larger than memory, or of a bulk load.
    Load(Vec<(u8, u8)>),
    Split(u8),
    Merge(u8),
    Flush,
    Compact,
    MajorCompact,
    OpenReader,
    CheckReaders,
    ReadBaseRows(u8, u8),
    ReadRange(u8, u8),
    Reopen,
    Crash,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let of = 0..16u8;
    let pair = (0..12u8, of.clone());
    let step = prop_oneof![
        10 => (0..12u8, of.clone(), any::<u16>()).prop_map(|(a, b, value)| Step::Put(a, b, value)),
        5 => pair.clone().prop_map(|(a, b)| Step::Delete(a, b)),
        1 => prop::collection::vec(pair, 1..20).prop_map(Step::Load),
        2 => of.clone().prop_map(Step::Split),
        2 => of.clone().prop_map(Step::Merge),
        3 => Just(Step::Flush),
        1 => Just(Step::Compact),
        1 => Just(Step::MajorCompact),
        1 => Just(Step::OpenReader),
        1 => Just(Step::CheckReaders),
        2 => (of.clone(), of).prop_map(|(first, stop)| Step::ReadBaseRows(first, stop)),
        2 => (0..12u8, 0..12u8).prop_map(|(first, stop)| Step::ReadRange(first, stop)),
        1 => Just(Step::Reopen),
        1 => Just(Step::Crash),
    ];
    prop::collection::vec(step, 1..80)
}

fn base(number: u8) -> Vec<u8> {
    format!("b{number:02}").into_bytes()
}

/// Returns the row of a prefix and a base row; that of an odd one has its first byte last.
fn row(prefix: u8, of: u8) -> Vec<u8> {
    let mut row = format!("p{prefix:02}").into_bytes();
    append_base_row(&base(of), of % 2 == 1, &mut row);
    row
}

fn read(transaction: &Transaction, scan: Scan) -> Vec<(Vec<u8>, Vec<u8>)> {
    scanned(transaction, INDEX, scan)
}

fn check(transaction: &Transaction, rows: &Rows) {
    check_scans(transaction, INDEX, rows);
    for of in 0..16 {
        let key = row(of % 12, of);
        let mut out = CellBatch::new();
        let found = transaction.get(INDEX, &Get::new(key.clone()), &mut out).unwrap();
        assert_eq!(found, rows.contains_key(&key), "{key:?}");
    }
}

struct World {
    env: FaultEnv,
    store: Option<Arc<Store>>,
    rows: Rows,
    readers: Vec<(Transaction, Rows)>,
}

fn tables(family: &FamilyDescriptor) -> [TableDescriptor; 2] {
    let base = descriptor(&["b04", "b08"], 1);
    let index = TableDescriptor {
        id: INDEX,
        name: "i".into(),
        families: vec![family.clone()],
        colocated_with: Some(TABLE),
        ..descriptor(&[], 1)
    };
    [base, index]
}

fn starts(store: &Store, table: TableId) -> Vec<Vec<u8>> {
    store.regions(table).unwrap().into_iter().map(|region| region.start).collect()
}

impl World {
    fn new(columnar: bool) -> World {
        let env = FaultEnv::new(1);
        let store = open(&env).unwrap();
        let family = if columnar { columnar_family() } else { FamilyDescriptor::new("d") };
        for table in tables(&family) {
            store.create_table(table).unwrap();
        }
        assert_eq!(starts(&store, INDEX), starts(&store, TABLE));
        World { env, store: Some(store), rows: Rows::new(), readers: Vec::new() }
    }

    fn store(&self) -> &Arc<Store> {
        self.store.as_ref().unwrap()
    }

    fn commit(&mut self, mutation: Mutation) {
        let transaction = begin(self.store());
        transaction.mutate(INDEX, vec![mutation]).unwrap();
        transaction.commit().unwrap().durable.wait().unwrap();
    }

    fn load(&mut self, pairs: &[(u8, u8)]) {
        let rows: Rows =
            pairs.iter().map(|(prefix, of)| (row(*prefix, *of), b"loaded".to_vec())).collect();
        load_rows(self.store(), INDEX, &rows);
        self.rows.extend(rows);
    }

    fn merge(&self, at: u8) {
        let regions = self.store().regions(TABLE).unwrap();
        let ids: Vec<RegionId> = regions.iter().map(|region| region.region).collect();
        if ids.len() > 1 {
            let at = usize::from(at) % (ids.len() - 1);
            self.store().merge_regions(TABLE, &ids[at..at + 2]).unwrap();
        }
    }

    fn reopen(&mut self) {
        self.readers.clear();
        self.store = None;
        self.store = Some(open(&self.env).unwrap());
    }

    fn read_base_rows(&self, first: u8, stop: u8) {
        let (start, stop) = (base(first.min(stop)), base(first.max(stop)));
        let range = RowRange { start, stop: Some(stop) };
        let expected = self.rows.iter().filter(|(row, _)| range.contains(&base_row(row)));
        let expected: Vec<_> = expected.map(|(row, value)| (row.clone(), value.clone())).collect();
        let scan = Scan { base_rows: Some(range), ..Scan::all() };
        assert_eq!(read(&begin(self.store()), scan), expected);
    }

    fn read_range(&self, first: u8, stop: u8) {
        let (first, stop) = (row(first.min(stop), 3), row(first.max(stop), 3));
        let expected = self.rows.range(first.clone()..stop.clone());
        let expected: Vec<_> = expected.map(|(row, value)| (row.clone(), value.clone())).collect();
        assert_eq!(read(&begin(self.store()), Scan::range(first, Some(stop))), expected);
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Put(prefix, of, value) => {
                let (row, value) = (row(prefix, of), value.to_string().into_bytes());
                self.commit(Mutation::new(row.clone()).put(0, "q", value.clone()));
                self.rows.insert(row, value);
            }
            Step::Delete(prefix, of) => {
                let row = row(prefix, of);
                self.commit(Mutation::new(row.clone()).delete_row());
                self.rows.remove(&row);
            }
            Step::Load(pairs) => self.load(&pairs),
            Step::Split(at) => {
                // A region may begin there.
                let _ = self.store().split_region(TABLE, SplitPoint::At(base(at)));
            }
            Step::Merge(at) => self.merge(at),
            Step::Flush => self.store().flush(INDEX).unwrap(),
            Step::Compact => self.store().compact(INDEX, false).unwrap(),
            Step::MajorCompact => self.store().compact(INDEX, true).unwrap(),
            Step::OpenReader => {
                let reader = begin(self.store());
                check(&reader, &self.rows);
                self.readers.push((reader, self.rows.clone()));
            }
            Step::CheckReaders => {
                self.readers.iter().for_each(|(reader, rows)| check(reader, rows));
            }
            Step::ReadBaseRows(first, stop) => self.read_base_rows(first, stop),
            Step::ReadRange(first, stop) => self.read_range(first, stop),
            Step::Reopen => self.reopen(),
            Step::Crash => {
                self.env = self.env.after_crash(Unsynced::Torn);
                self.reopen();
            }
        }
    }
}

fn run(steps: Vec<Step>, columnar: bool) {
    let mut world = World::new(columnar);
    for step in steps {
        world.step(step);
        check(&begin(world.store()), &world.rows);
        assert_eq!(starts(world.store(), INDEX), starts(world.store(), TABLE));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn colocated_table_follows_its_base_table(steps in steps(), columnar: bool) {
        run(steps, columnar);
    }
}

#[test]
fn writers_and_readers_go_on_during_splits_and_merges() {
    let world = World::new(false);
    let store = Arc::clone(world.store());
    let written = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut written = Rows::new();
            for number in 0..200u16 {
                let (row, value) =
                    (row((number % 12) as u8, (number % 16) as u8), number.to_string());
                let mutation = Mutation::new(row.clone()).put(0, "q", value.clone().into_bytes());
                let transaction = begin(&store);
                transaction.mutate(INDEX, vec![mutation]).unwrap();
                transaction.commit().unwrap().durable.wait().unwrap();
                written.insert(row, value.into_bytes());
                check(&begin(&store), &written);
            }
            written
        });
        let mut at = 0;
        while !writer.is_finished() {
            at = (at + 5) % 16;
            let _ = store.split_region(TABLE, SplitPoint::At(base(at)));
            if at % 3 == 0 {
                world.merge(at);
            }
        }
        writer.join().unwrap()
    });
    check(&begin(&store), &written);
}

/// Stops the disk after every number of changes that a split with the move of the colocated
/// regions makes. No row is lost, and the regions are in line soon after the next opening.
#[test]
fn interrupted_split_is_completed() {
    let mut step = 0;
    loop {
        let mut world = World::new(false);
        (0..30u8).for_each(|n| world.step(Step::Put(n % 12, n % 16, u16::from(n))));
        world.step(Step::Flush);
        (0..6u8).for_each(|n| world.step(Step::Delete(n, n)));
        world.env.fail_after(step);
        let split = world.store().split_region(TABLE, SplitPoint::At(base(6)));
        let is_complete =
            split.is_ok() && starts(world.store(), INDEX) == starts(world.store(), TABLE);
        world.env = world.env.after_crash(Unsynced::Lost);
        world.reopen();
        check(&begin(world.store()), &world.rows);
        let deadline = Instant::now() + Duration::from_secs(60);
        while starts(world.store(), INDEX) != starts(world.store(), TABLE) {
            assert!(Instant::now() < deadline, "step {step}");
            std::thread::yield_now();
        }
        check(&begin(world.store()), &world.rows);
        if is_complete {
            break;
        }
        step += 1;
    }
    assert!(step > 16, "{step} steps");
}

#[test]
fn regions_of_a_colocated_table_are_not_split_alone() {
    let world = World::new(false);
    let store = world.store();
    let refused = |outcome: Result<()>| match outcome {
        Err(Error::InvalidRequest(message)) => assert!(message.contains("follow"), "{message}"),
        outcome => panic!("{outcome:?}"),
    };
    refused(store.split_region(INDEX, SplitPoint::At(base(1))).map(drop));
    let ids: Vec<RegionId> =
        store.regions(INDEX).unwrap().iter().map(|region| region.region).collect();
    refused(store.merge_regions(INDEX, &ids[..2]).map(drop));
}
