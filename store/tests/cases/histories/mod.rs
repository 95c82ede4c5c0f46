//! Randomised histories of a store against the model: row mutations of every kind at any time, in
//! transactions with savepoints, with flushes, compactions, restarts and crashes between them;
//! and reads of every kind, by new transactions, by the writing one, and by snapshots that stay
//! open.

mod as_of;
#[path = "../../model/mod.rs"]
pub(super) mod model;
mod reads;
mod row_versions;
mod writes;

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use store::cell::{CellType, split_expiring};
use store::descriptor::{
    BloomFilter, CompactionOptions, CompactionPolicy, Compression, DataBlockEncoding,
    DateTieredOptions, ExploringOptions, KeepDeletedCells, LeveledOptions, RetiredRule,
};
use store::env::Env;
use store::env::fault::{FaultEnv, Unsynced};
use store::family_store::ReadSpec;
use store::layout::{SectionKind, ValuePiece, ValueShape};
use store::store::SplitPoint;
use store::transaction::{Isolation, Savepoint, TransactionOptions};
use store::{
    Cell, CellBatch, Error, FamilyDescriptor, Get, Scan, Sequence, Store, TableDescriptor,
    TimeRange, Timestamp, Transaction, ValueLayout,
};

use crate::cases::histories::model::{allows_version_markers, families, hold};
use crate::cases::histories::reads::{FoundVersion, ModelRead, Standpoint, cells_of, read};
use crate::cases::histories::writes::{Write, collapsed, write};
use crate::cases::{TABLE, descriptor, open, staged_bytes_max};

const FAMILIES: u8 = 3;
const ROWS: u8 = 12;
/// Start time of histories. No commit has a time that a history may choose for a version.
const BEGIN: i64 = 600_007;
const REGRESSIONS: &str = "proptest-regressions/histories.txt";

fn row(number: u8) -> Vec<u8> {
    vec![b'a' + number / 4, b'0' + number % 4]
}

fn qualifier(number: u8) -> Vec<u8> {
    if number == 0 { Vec::new() } else { vec![b'q', b'0' + number] }
}

/// The reader.
#[derive(Debug, Clone, Copy)]
enum Who {
    New,
    Writer,
    Reader(usize),
}

#[derive(Debug, Clone)]
enum Step {
    Write(Write),
    Savepoint,
    RollBackTo,
    Commit,
    RollBack,
    OpenReader,
    CloseReader(usize),
    /// The clock advances by this many milliseconds.
    Wait(i64),
    Flush,
    Compact(bool),
    /// Changes the policy of a family.
    Alter(u8, CompactionOptions),
    /// Changes VERSIONS, MIN_VERSIONS and TTL of a family.
    ChangeRule(u8, (u32, u32, Option<Duration>)),
    /// The region of a row is split before it, if none begins there.
    Split(u8),
    /// The region of a row is merged with the next one, if there is one.
    Merge(u8),
    Reopen,
    Crash,
    Read(Who, ModelRead),
    /// Time travel to a moment: microseconds since 1970.
    ReadAsOf(Who, i64),
}

fn step() -> impl Strategy<Value = Step> {
    let who = prop_oneof![
        3 => Just(Who::New),
        2 => Just(Who::Writer),
        3 => (0..3usize).prop_map(Who::Reader),
    ];
    prop_oneof![
        40 => write().prop_map(Step::Write),
        3 => Just(Step::Savepoint),
        2 => Just(Step::RollBackTo),
        16 => Just(Step::Commit),
        1 => Just(Step::RollBack),
        3 => Just(Step::OpenReader),
        2 => (0..3usize).prop_map(Step::CloseReader),
        3 => (1..400i64).prop_map(Step::Wait),
        6 => Just(Step::Flush),
        5 => prop::bool::weighted(0.3).prop_map(Step::Compact),
        1 => (0..FAMILIES, families::compaction()).prop_map(|(f, policy)| Step::Alter(f, policy)),
        2 => (0..FAMILIES, rule()).prop_map(|(family, rule)| Step::ChangeRule(family, rule)),
        2 => (0..ROWS).prop_map(Step::Split),
        1 => (0..ROWS).prop_map(Step::Merge),
        1 => Just(Step::Reopen),
        1 => Just(Step::Crash),
        25 => (who.clone(), read()).prop_map(|(who, read)| Step::Read(who, read)),
        8 => (who, time()).prop_map(|(who, at)| Step::ReadAsOf(who, at)),
    ]
}

/// VERSIONS, MIN_VERSIONS and TTL.
fn rule() -> impl Strategy<Value = (u32, u32, Option<Duration>)> {
    let ttl = prop_oneof![
        2 => Just(None),
        1 => (1..6u64).prop_map(|tenths| Some(Duration::from_millis(tenths * 100))),
    ];
    (1..4u32, 0..3u32, ttl).prop_map(|(versions, min, ttl)| (versions, min.min(versions), ttl))
}

/// Times of versions, and of commits.
fn time() -> impl Strategy<Value = i64> {
    prop_oneof![(0..9i64).prop_map(|number| number * 100_000), BEGIN..BEGIN + 3_000_000]
}

/// A snapshot that stays open.
struct Reader {
    transaction: Transaction,
    standpoint: Standpoint,
}

struct World {
    env: FaultEnv,
    store: Option<Arc<Store>>,
    families: Vec<FamilyDescriptor>,
    /// All cells that were ever committed, by family.
    committed: Vec<Vec<Cell>>,
    /// Cells that the open transaction has staged, in order.
    staged: Vec<(u8, Cell)>,
    /// Number of edits that it has staged.
    edits: u64,
    transaction: Option<Transaction>,
    savepoint: Option<(Savepoint, u64)>,
    readers: Vec<Reader>,
    last: Sequence,
    /// True if a flush or compaction may have dropped something.
    was_rewritten: bool,
}

/// Adjusts a family to the requirements of a policy.
fn fitting(family: FamilyDescriptor, compaction: CompactionOptions) -> FamilyDescriptor {
    let refused = compaction.policy == CompactionPolicy::Fifo
        && (family.ttl.is_none() || family.min_versions > 0);
    match refused {
        true => FamilyDescriptor { compaction: CompactionOptions::default(), ..family },
        false => FamilyDescriptor { compaction, ..family },
    }
}

impl World {
    fn new(families: Vec<FamilyDescriptor>, split: bool) -> World {
        let env = FaultEnv::new(1);
        env.set_now(BEGIN);
        let families: Vec<FamilyDescriptor> = families
            .into_iter()
            .enumerate()
            .map(|(index, family)| FamilyDescriptor { name: format!("f{index}"), ..family })
            .map(|family| fitting(family.clone(), family.compaction))
            .collect();
        let mut world = World {
            store: Some(open(&env).unwrap()),
            env,
            committed: vec![Vec::new(); families.len()],
            families,
            staged: Vec::new(),
            edits: 0,
            transaction: None,
            savepoint: None,
            readers: Vec::new(),
            last: Sequence(0),
            was_rewritten: false,
        };
        let points: &[&str] = if split { &["b", "c2"] } else { &[] };
        world.store().create_table(world.table(points)).unwrap();
        world.begin();
        world
    }

    fn table(&self, points: &[&str]) -> TableDescriptor {
        TableDescriptor { families: self.families.clone(), ..descriptor(points, 1) }
    }

    fn store(&self) -> &Arc<Store> {
        self.store.as_ref().unwrap()
    }

    fn transaction(&self) -> &Transaction {
        self.transaction.as_ref().unwrap()
    }

    fn begin(&mut self) {
        self.transaction = Some(self.store().begin(TransactionOptions::default()));
        self.staged.clear();
        self.edits = 0;
        self.savepoint = None;
    }

    fn reopen(&mut self) {
        self.readers.clear();
        self.transaction = None;
        self.store = None;
        self.store = Some(open(&self.env).unwrap());
        self.begin();
    }

    /// Returns all cells, those of the open transaction behind the others.
    fn cells(&self) -> Vec<Vec<Cell>> {
        let mut cells = self.committed.clone();
        for (family, cell) in &self.staged {
            cells[usize::from(*family)].push(cell.clone());
        }
        cells
    }

    /// Changes the rule of a family, unless it is undefined then how many versions reappear.
    fn change_rule(&mut self, number: usize, rule: (u32, u32, Option<Duration>)) {
        let family = &self.families[number];
        let (versions, min_versions, ttl) = rule;
        let changed = FamilyDescriptor { versions, min_versions, ttl, ..family.clone() };
        if allows_version_markers(&changed) != allows_version_markers(family) {
            return;
        }
        let is_new = changed != *family;
        self.families[number] = fitting(changed.clone(), changed.compaction);
        self.store().alter_table(self.table(&[])).unwrap();
        // With the sequence and the time of the change. The store forgets rules that it has
        // applied, the model does not.
        let table = self.store().table(TABLE).unwrap();
        if is_new {
            let retired = table.families[number].retired.last().cloned();
            self.families[number].retired.extend(retired);
        }
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Write(write) => self.write(write),
            Step::Savepoint => {
                self.savepoint = Some((self.transaction().savepoint(), self.edits));
            }
            Step::RollBackTo => {
                if let Some((savepoint, edits)) = self.savepoint {
                    self.transaction().rollback_to(savepoint);
                    self.forget_staged(edits);
                }
            }
            Step::Commit => self.commit(),
            Step::RollBack => {
                self.transaction().rollback();
                self.begin();
            }
            Step::OpenReader if self.readers.len() < 3 => self.open_reader(),
            Step::OpenReader => {}
            Step::CloseReader(index) => {
                if *index < self.readers.len() {
                    self.readers.remove(*index);
                }
            }
            Step::Wait(milliseconds) => {
                self.env.set_now(self.env.now_micros() + milliseconds * 1000);
            }
            Step::Flush => self.rewrite(|store| store.flush(TABLE)),
            Step::Compact(major) => self.rewrite(|store| store.compact(TABLE, *major)),
            Step::Alter(family, compaction) => {
                let family = &mut self.families[usize::from(*family)];
                *family = fitting(family.clone(), compaction.clone());
                self.store().alter_table(self.table(&[])).unwrap();
            }
            Step::ChangeRule(family, rule) => self.change_rule(usize::from(*family), *rule),
            Step::Split(number) => self.split(row(*number)),
            Step::Merge(number) => self.merge(&row(*number)),
            Step::Reopen => self.reopen(),
            Step::Crash => {
                self.env = self.env.after_crash(Unsynced::Torn);
                self.reopen();
            }
            Step::Read(who, read) => self.read(*who, read),
            Step::ReadAsOf(who, at) => self.read_as_of(*who, Timestamp(*at)),
        }
    }

    fn rewrite(&mut self, rewrite: impl Fn(&Store) -> store::Result<()>) {
        self.was_rewritten = true;
        rewrite(self.store()).unwrap();
    }

    fn split(&mut self, row: Vec<u8>) {
        self.was_rewritten = true;
        let regions = self.store().regions(TABLE).unwrap();
        if regions.iter().all(|region| region.start != row) {
            let done = self.store().split_region(TABLE, SplitPoint::At(row)).unwrap();
            assert_eq!((done.removed.len(), done.added.len()), (1, 2));
        }
    }

    fn merge(&mut self, row: &[u8]) {
        self.was_rewritten = true;
        let regions = self.store().regions(TABLE).unwrap();
        let first = regions.partition_point(|region| region.start.as_slice() <= row) - 1;
        if let Some([a, b]) = regions.get(first..first + 2) {
            let done = self.store().merge_regions(TABLE, &[a.region, b.region]).unwrap();
            assert_eq!((done.removed.len(), done.added.len()), (2, 1));
        }
    }

    /// Removes the cells staged after `edits` edits.
    fn forget_staged(&mut self, edits: u64) {
        self.staged.retain(|(_, cell)| cell.sequence.0 <= Sequence::STAGED | edits);
    }

    fn commit(&mut self) {
        let commit = self.transaction().commit().unwrap();
        let staged = std::mem::take(&mut self.staged);
        assert_eq!(commit.sequence.is_some(), !staged.is_empty());
        if let Some(sequence) = commit.sequence {
            assert!(sequence > self.last, "sequences rise");
            self.last = sequence;
            commit.durable.wait().unwrap();
            for (family, cell) in collapsed(staged, sequence, commit.timestamp) {
                self.committed[usize::from(family)].push(cell);
            }
        }
        self.begin();
    }

    fn standpoint(&self, transaction: &Transaction) -> Standpoint {
        Standpoint {
            snapshot: transaction.snapshot().unwrap(),
            staged_through: Sequence(Sequence::STAGED),
            now_micros: self.env.now_micros(),
        }
    }

    fn open_reader(&mut self) {
        let isolation = Isolation::RepeatableRead;
        let options = TransactionOptions { isolation, ..TransactionOptions::default() };
        let transaction = self.store().begin(options);
        transaction.begin_statement();
        let standpoint = self.standpoint(&transaction);
        self.readers.push(Reader { transaction, standpoint });
    }

    fn read(&self, who: Who, read: &ModelRead) {
        match who {
            Who::Reader(index) if index < self.readers.len() => {
                let Reader { transaction, standpoint } = &self.readers[index];
                transaction.begin_statement();
                self.compare(transaction, *standpoint, read);
            }
            Who::Writer => {
                let transaction = self.transaction();
                transaction.begin_statement();
                let staged_through = Sequence(Sequence::STAGED | self.edits);
                let standpoint = Standpoint { staged_through, ..self.standpoint(transaction) };
                self.compare(transaction, standpoint, read);
            }
            Who::New | Who::Reader(_) => {
                let transaction = self.store().begin(TransactionOptions::default());
                transaction.begin_statement();
                let standpoint = self.standpoint(&transaction);
                self.compare(&transaction, standpoint, read);
                let (one, get) = read.get();
                let mut batch = CellBatch::new();
                self.store().get(TABLE, &get, &mut batch).unwrap();
                let expected = one.answer(&self.cells(), &self.families, standpoint).concat();
                assert_eq!(cells_of(&batch), expected, "a get of the store, {standpoint:?}");
            }
        }
    }

    fn read_as_of(&self, who: Who, at: Timestamp) {
        match who {
            Who::Reader(index) if index < self.readers.len() => {
                let Reader { transaction, standpoint } = &self.readers[index];
                transaction.begin_statement();
                self.compare_as_of(transaction, *standpoint, at);
            }
            Who::Writer => {
                let transaction = self.transaction();
                transaction.begin_statement();
                let staged_through = Sequence(Sequence::STAGED | self.edits);
                let standpoint = Standpoint { staged_through, ..self.standpoint(transaction) };
                self.compare_as_of(transaction, standpoint, at);
            }
            Who::New | Who::Reader(_) => {
                let transaction = self.store().begin(TransactionOptions::default());
                transaction.begin_statement();
                self.compare_as_of(&transaction, self.standpoint(&transaction), at);
            }
        }
    }

    /// Compares a time travel read with the model, family by family, by scan and get: it is
    /// correct, or returns an error because versions were dropped.
    fn compare_as_of(&self, transaction: &Transaction, standpoint: Standpoint, at: Timestamp) {
        if self.families.iter().all(allows_version_markers) {
            row_versions::compare(transaction, at);
        }
        let cells = self.cells();
        for family in 0..FAMILIES {
            let rules = &self.families[usize::from(family)];
            if !allows_version_markers(rules) || self.is_rewritten_past(family, at) {
                continue;
            }
            let spec = as_of::spec(standpoint);
            let all = model::visible_as_of(&cells[usize::from(family)], rules, (&spec, at));
            let scan = Scan { time_range: TimeRange::as_of(at), ..Scan::all().family(family) };
            let of_scan = as_of::scan(transaction, scan);
            self.check_as_of(of_scan, all.clone(), at);
            for number in 0..ROWS {
                let time_range = TimeRange::as_of(at);
                let get = Get { time_range, ..Get::new(row(number)).family(family) };
                let mut batch = CellBatch::new();
                let of_get = transaction.get(TABLE, &get, &mut batch).map(|_| batch);
                let expected = all.iter().filter(|cell| cell.0 == row(number)).cloned().collect();
                self.check_as_of(of_get.map(|batch| as_of::found(&batch)), expected, at);
            }
        }
    }

    /// Returns whether a commit has written cells with timestamps of an earlier time, whose rule
    /// the store has removed since. Commits have that time only if their timestamps are explicit.
    fn is_rewritten_past(&self, family: u8, at: Timestamp) -> bool {
        let table = self.store().table(TABLE).unwrap();
        let stored = &table.families[usize::from(family)].retired;
        let retired = &self.families[usize::from(family)].retired;
        let removed = retired.iter().rfind(|rule| !stored.contains(rule));
        removed.is_some_and(|rule| {
            let is_later = |cell: &Cell| cell.sequence.0 > rule.last_sequence;
            let cells = self.cells();
            let mut cells = cells[usize::from(family)].iter();
            at.0 < rule.until_micros && cells.any(|cell| is_later(cell) && cell.timestamp <= at)
        })
    }

    fn check_as_of(
        &self,
        found: store::Result<Vec<as_of::Version>>,
        expected: Vec<model::FoundCell>,
        at: Timestamp,
    ) {
        match found {
            Ok(found) => assert_eq!(found, as_of::versions(expected), "as of {at:?}"),
            Err(Error::BeforeHistory { begin_micros }) => {
                let begin = Timestamp(begin_micros);
                let whole = self.store().history_begin(TABLE).unwrap();
                // An adoption of files flushes its regions before.
                let was_rewritten = self.was_rewritten || staged_bytes_max().is_some();
                assert!(at < begin && begin <= whole && was_rewritten, "{at:?} {begin:?}");
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Compares a scan, a chain of continued scans, and a get with the model.
    fn compare(&self, transaction: &Transaction, standpoint: Standpoint, read: &ModelRead) {
        let cells = self.cells();
        let expected = read.answer(&cells, &self.families, standpoint).concat();
        let mut batch = CellBatch::new();
        let mut found: Vec<FoundVersion> = Vec::new();
        let mut scanner = transaction.scan(TABLE, read.scan()).unwrap();
        while scanner.next_batch(3, &mut batch).unwrap() {
            assert!(batch.rows().all(|row| row.cells().count() <= read.piece_cells()));
            found.extend(cells_of(&batch));
        }
        assert_eq!(found, expected, "{standpoint:?}");
        let mut chained: Vec<FoundVersion> = Vec::new();
        let mut scan = read.scan();
        loop {
            let mut scanner = transaction.scan(TABLE, scan).unwrap();
            if !scanner.next_batch(1, &mut batch).unwrap() {
                break;
            }
            chained.extend(cells_of(&batch));
            scan = scanner.rest().unwrap();
        }
        assert_eq!(chained, expected, "a chain, {standpoint:?}");
        let (one, get) = read.get();
        let expected = one.answer(&cells, &self.families, standpoint).concat();
        batch.clear();
        let is_there = transaction.get(TABLE, &get, &mut batch).unwrap();
        assert_eq!(cells_of(&batch), expected, "a get, {standpoint:?}");
        assert_eq!(is_there, !expected.is_empty());
        assert_eq!(transaction.exists(TABLE, &get).unwrap(), is_there);
    }

    fn check_readers(&self, read: &ModelRead) {
        self.read(Who::New, read);
        (0..self.readers.len()).for_each(|index| self.read(Who::Reader(index), read));
    }
}

#[test]
fn random_histories_match_model() {
    let families = prop::collection::vec(families::family(), usize::from(FAMILIES));
    let history = prop::collection::vec(step(), 1..150);
    let case = (families, any::<bool>(), history, read());
    hold(("histories of stores", REGRESSIONS), case, |(families, split, history, last)| {
        let mut world = World::new(families, split);
        history.iter().for_each(|step| world.run(step));
        let at_the_end = [Step::Commit, Step::Flush, Step::Compact(false), Step::Compact(true)];
        for step in &at_the_end {
            world.run(step);
            world.check_readers(&last);
        }
        // Reads are steps of the history, except those at the end.
        (history.len() + at_the_end.len()) as u64 + 4 * (1 + world.readers.len() as u64)
    });
}
