//! Reads against a model: families joined, both ways, over regions and files, with columns, time
//! ranges, versions, limits, pieces and filters, and as a chain of scans that go on from each
//! other.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use proptest::prelude::*;
use store::env::fault::FaultEnv;
use store::scan::filter::{CompareOp, Comparison, FuzzyRow, RowRange};
use store::scan::{CellWindow, FamilyRead};
use store::{
    CellBatch, Edit, FamilyDescriptor, Filter, Mutation, Scan, Store, TableDescriptor, TimeRange,
    Timestamp,
};

use crate::cases::{TABLE, begin, descriptor, open};

const VERSIONS: u32 = 3;
const FAMILIES: u8 = 3;

/// Row, family, qualifier, timestamp, value: cells of the answer, in order.
type Found = (String, u8, String, i64, String);

/// What a history does.
#[derive(Debug, Clone)]
enum Step {
    Put { row: u8, family: u8, qualifier: u8, at: i64, value: u8 },
    DeleteFamily { row: u8, family: u8, at: i64 },
    DeleteColumn { row: u8, family: u8, qualifier: u8, at: i64 },
    Flush,
    Compact,
}

fn row(number: u8) -> String {
    format!("{}{}", char::from(b'a' + number / 4), number % 4)
}

fn qualifier(number: u8) -> String {
    if number == 0 { String::new() } else { format!("q{number}") }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = || (0..16u8, 0..FAMILIES, 0..5u8, 1..8i64);
    let step = prop_oneof![
        24 => (place(), 0..10u8).prop_map(|((row, family, qualifier, at), value)| {
            Step::Put { row, family, qualifier, at, value }
        }),
        2 => place().prop_map(|(row, family, _, at)| Step::DeleteFamily { row, family, at }),
        2 => place().prop_map(|(row, family, qualifier, at)| {
            Step::DeleteColumn { row, family, qualifier, at }
        }),
        2 => Just(Step::Flush),
        1 => Just(Step::Compact),
    ];
    prop::collection::vec(step, 1..120)
}

/// The versions of each column, oldest commit first, as one commit after the other leaves them.
#[derive(Default)]
struct Model {
    columns: BTreeMap<(String, u8, String), BTreeMap<i64, String>>,
}

impl Model {
    fn apply(&mut self, step: &Step) {
        match step {
            Step::Put { row: r, family, qualifier: q, at, value } => {
                let versions = self.columns.entry((row(*r), *family, qualifier(*q))).or_default();
                versions.insert(*at, value.to_string());
                if versions.len() > VERSIONS as usize {
                    versions.pop_first();
                }
            }
            Step::DeleteFamily { row: r, family, at } => {
                let marked = self
                    .columns
                    .iter_mut()
                    .filter(|((of, in_family, _), _)| *of == row(*r) && in_family == family);
                marked.for_each(|(_, versions)| versions.retain(|version, _| version > at));
            }
            Step::DeleteColumn { row: r, family, qualifier: q, at } => {
                let column = (row(*r), *family, qualifier(*q));
                if let Some(versions) = self.columns.get_mut(&column) {
                    versions.retain(|version, _| version > at);
                }
            }
            Step::Flush | Step::Compact => {}
        }
    }

    /// Answers a scan without pieces, by the plain meaning of each of its words.
    fn answer(&self, read: &Read) -> Vec<Vec<Found>> {
        let mut rows: BTreeMap<&String, Vec<Found>> = BTreeMap::new();
        for ((row, family, qualifier), versions) in &self.columns {
            let in_range = *row >= read.start && *row < read.stop;
            let wanted = read.families.as_ref().is_none_or(|families| families.contains(family))
                && read.columns.get(family).is_none_or(|columns| columns.contains(qualifier));
            if !in_range || !wanted {
                continue;
            }
            let times = read.times.get(family).unwrap_or(&read.time_range);
            let passed = versions
                .iter()
                .rev()
                .filter(|(at, _)| (times.0..times.1).contains(at))
                .filter(|(at, value)| read.filter.passes(row, *family, qualifier, **at, value))
                .take(read.max_versions as usize);
            let cells = passed
                .map(|(at, value)| (row.clone(), *family, qualifier.clone(), *at, value.clone()));
            rows.entry(row).or_default().extend(cells);
        }
        let mut rows: Vec<Vec<Found>> = rows.into_values().collect();
        for cells in &mut rows {
            let mut kept = Vec::new();
            for family in 0..FAMILIES {
                let of_family = cells.iter().filter(|cell| cell.1 == family);
                let window = of_family.skip(read.cells.0 as usize).take(read.cells.1 as usize);
                kept.extend(window.cloned());
            }
            *cells = kept;
        }
        rows.retain(|cells| !cells.is_empty());
        if read.reverse {
            rows.reverse();
        }
        rows.truncate(read.limit as usize);
        rows
    }
}

/// A filter whose meaning a line can say.
#[derive(Debug, Clone)]
enum Condition {
    True,
    RowPrefix(u8),
    Rows(Vec<(u8, u8)>),
    Fuzzy(u8),
    Columns(u8, u8),
    Value(u8),
    At(Vec<i64>),
    InFamily(u8),
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

impl Condition {
    fn passes(&self, row_key: &str, family: u8, column: &str, at: i64, value: &str) -> bool {
        let inner = |one: &Condition| one.passes(row_key, family, column, at, value);
        match self {
            Condition::True => true,
            Condition::RowPrefix(letter) => row_key.as_bytes()[0] == *letter,
            Condition::Rows(ranges) => {
                ranges.iter().any(|(a, b)| (row(*a)..row(*b)).contains(&row_key.to_owned()))
            }
            Condition::Fuzzy(digit) => row_key.as_bytes()[1] == *digit,
            Condition::Columns(a, b) => {
                (qualifier(*a)..=qualifier(*b)).contains(&column.to_owned())
            }
            Condition::Value(least) => value >= least.to_string().as_str(),
            Condition::At(times) => times.contains(&at),
            Condition::InFamily(wanted) => family == *wanted,
            Condition::All(list) => list.iter().all(inner),
            Condition::Any(list) => list.iter().any(inner),
        }
    }

    fn filter(&self) -> Filter {
        let list = |list: &[Condition]| list.iter().map(Condition::filter).collect();
        match self {
            Condition::True => Filter::All(Vec::new()),
            Condition::RowPrefix(letter) => Filter::RowPrefix(vec![*letter]),
            Condition::Rows(ranges) => Filter::RowRanges(
                ranges.iter().map(|(a, b)| RowRange::new(row(*a), row(*b))).collect(),
            ),
            Condition::Fuzzy(digit) => Filter::FuzzyRow(vec![FuzzyRow(vec![None, Some(*digit)])]),
            Condition::Columns(a, b) => Filter::ColumnRange {
                start: Bound::Included(qualifier(*a).into()),
                stop: Bound::Included(qualifier(*b).into()),
            },
            Condition::Value(least) => {
                Filter::Value(Comparison::binary(CompareOp::GreaterOrEqual, least.to_string()))
            }
            Condition::At(times) => {
                Filter::Timestamps(times.iter().map(|at| Timestamp(*at)).collect())
            }
            Condition::InFamily(family) => {
                Filter::Family(Comparison::binary(CompareOp::Equal, format!("f{family}")))
            }
            Condition::All(inner) => Filter::All(list(inner)),
            Condition::Any(inner) => Filter::Any(list(inner)),
        }
    }
}

fn condition() -> impl Strategy<Value = Condition> {
    let leaf = prop_oneof![
        Just(Condition::True),
        (b'a'..=b'e').prop_map(Condition::RowPrefix),
        prop::collection::vec((0..16u8, 0..17u8), 0..4).prop_map(Condition::Rows),
        (b'0'..=b'4').prop_map(Condition::Fuzzy),
        (0..5u8, 0..5u8).prop_map(|(a, b)| Condition::Columns(a, b)),
        (0..10u8).prop_map(Condition::Value),
        prop::collection::vec(1..8i64, 0..4).prop_map(Condition::At),
        (0..FAMILIES).prop_map(Condition::InFamily),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Condition::All),
            prop::collection::vec(inner, 0..4).prop_map(Condition::Any),
        ]
    })
}

/// A scan that the model understands.
#[derive(Debug, Clone)]
struct Read {
    start: String,
    stop: String,
    reverse: bool,
    families: Option<Vec<u8>>,
    columns: BTreeMap<u8, Vec<String>>,
    times: BTreeMap<u8, (i64, i64)>,
    time_range: (i64, i64),
    max_versions: u32,
    cells: (u32, u32),
    limit: u64,
    batch: Option<u32>,
    filter: Condition,
}

fn reads() -> impl Strategy<Value = Read> {
    let times = || prop_oneof![3 => Just((0, 100)), 2 => (1..8i64, 1..9i64)];
    let columns = prop::collection::vec(0..5u8, 0..4)
        .prop_map(|list| list.into_iter().map(qualifier).collect::<Vec<_>>());
    let families = prop::option::of(prop::collection::btree_set(0..FAMILIES, 1..3));
    let limits = (
        prop_oneof![Just(1), Just(2), Just(u32::MAX)],
        prop_oneof![3 => Just((0, u32::MAX)), 1 => (0..3u32, 0..4u32)],
        prop_oneof![3 => Just(u64::MAX), 1 => 0..5u64],
        prop::option::of(1..4u32),
    );
    let range = (0..16u8, 1..17u8, any::<bool>());
    let of_families = (
        families,
        prop::collection::btree_map(0..FAMILIES, columns, 0..2),
        prop::collection::btree_map(0..FAMILIES, times(), 0..2),
    );
    (range, of_families, times(), limits, condition()).prop_map(
        |((start, stop, reverse), (families, columns, own), time_range, limits, filter)| Read {
            start: row(start),
            stop: row(stop),
            reverse,
            families: families.map(|families| families.into_iter().collect()),
            columns,
            times: own,
            time_range,
            max_versions: limits.0,
            cells: limits.1,
            limit: limits.2,
            batch: limits.3,
            filter,
        },
    )
}

impl Read {
    fn scan(&self) -> Scan {
        let range = |(min, max)| TimeRange { min: Timestamp(min), max: Timestamp(max) };
        let family_reads = (0..FAMILIES).map(|family| FamilyRead {
            family,
            columns: self
                .columns
                .get(&family)
                .map(|columns| columns.iter().map(|column| column.as_bytes().to_vec()).collect()),
            time_range: self.times.get(&family).copied().map(range),
        });
        let (offset, limit) = self.cells;
        Scan {
            reverse: self.reverse,
            families: self.families.clone(),
            family_reads: family_reads.collect(),
            time_range: range(self.time_range),
            max_versions: self.max_versions,
            cells: CellWindow { offset, limit },
            limit: (self.limit < u64::MAX).then_some(self.limit),
            batch: self.batch,
            filter: Some(self.filter.filter()),
            ..Scan::range(self.start.as_str(), Some(self.stop.clone().into()))
        }
    }
}

fn table(split_points: &[&str]) -> TableDescriptor {
    let family = |index| FamilyDescriptor {
        versions: VERSIONS,
        block_bytes: 200,
        ..FamilyDescriptor::new(format!("f{index}"))
    };
    TableDescriptor { families: (0..FAMILIES).map(family).collect(), ..descriptor(split_points, 1) }
}

fn commit(store: &Arc<Store>, step: &Step) {
    let at = |at: i64| Some(Timestamp(at));
    let (row_number, edit) = match step {
        Step::Put { row, family, qualifier: q, at: version, value } => {
            let (qualifier, value) = (qualifier(*q).into(), value.to_string().into());
            (
                row,
                Edit::Put { family: *family, qualifier, timestamp: at(*version), value, ttl: None },
            )
        }
        Step::DeleteFamily { row, family, at: version } => {
            (row, Edit::DeleteFamily { family: *family, timestamp: at(*version) })
        }
        Step::DeleteColumn { row, family, qualifier: q, at: version } => {
            let qualifier = qualifier(*q).into();
            (row, Edit::DeleteColumn { family: *family, qualifier, timestamp: at(*version) })
        }
        Step::Flush => return store.flush(TABLE).unwrap(),
        Step::Compact => return store.compact(TABLE, false).unwrap(),
    };
    let transaction = begin(store);
    let mut mutation = Mutation::new(row(*row_number));
    mutation.edits.push(edit);
    transaction.mutate(TABLE, vec![mutation]).unwrap();
    transaction.commit().unwrap().durable.wait().unwrap();
}

fn cells_of(batch: &CellBatch) -> Vec<Found> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let cells = batch.rows().flat_map(|row| row.cells().collect::<Vec<_>>());
    cells
        .map(|cell| {
            let (at, value) = (cell.timestamp.0, text(cell.value));
            (text(cell.row), cell.family, text(cell.qualifier), at, value)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scans_agree_with_their_plain_meaning(
        steps in steps(),
        reads in prop::collection::vec(reads(), 1..12),
        split in any::<bool>(),
    ) {
        let store = open(&FaultEnv::new(1)).unwrap();
        store.create_table(table(if split { &["b", "c2"] } else { &[] })).unwrap();
        let mut model = Model::default();
        for step in &steps {
            commit(&store, step);
            model.apply(step);
        }
        let transaction = begin(&store);
        let mut batch = CellBatch::new();
        for read in &reads {
            let expected = model.answer(read).concat();
            let mut found = Vec::new();
            let mut scanner = transaction.scan(TABLE, read.scan()).unwrap();
            while scanner.next_batch(3, &mut batch).unwrap() {
                let cells_max = read.batch.unwrap_or(u32::MAX) as usize;
                prop_assert!(batch.rows().all(|row| row.cells().count() <= cells_max));
                found.extend(cells_of(&batch));
            }
            prop_assert_eq!(&found, &expected, "{:?}", read);
            let mut chained = Vec::new();
            let mut scan = read.scan();
            loop {
                let mut scanner = transaction.scan(TABLE, scan).unwrap();
                if !scanner.next_batch(1, &mut batch).unwrap() {
                    break;
                }
                chained.extend(cells_of(&batch));
                scan = scanner.rest().unwrap();
            }
            prop_assert_eq!(&chained, &expected, "a chain, {:?}", read);
        }
    }
}

/// Rows `0000|00` to `0999|99`: a hundred thousand, in files.
fn hundred_thousand() -> Arc<Store> {
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(descriptor(&["0300", "0700"], 1)).unwrap();
    for first in 0..1000 {
        let transaction = begin(&store);
        let rows = (0..100).map(|second| format!("{first:04}|{second:02}"));
        let puts = rows.map(|row| Mutation::new(row).put(0, "q", b"value".to_vec()));
        transaction.mutate(TABLE, puts.collect()).unwrap();
        transaction.commit().unwrap();
    }
    store.flush(TABLE).unwrap();
    store
}

#[test]
fn hints_save_work() {
    let store = hundred_thousand();
    let transaction = begin(&store);
    let mut batch = CellBatch::new();
    let mut run = |scan: Scan| {
        let mut scanner = transaction.scan(TABLE, scan).unwrap();
        let mut rows = 0;
        while scanner.next_batch(1000, &mut batch).unwrap() {
            rows += batch.row_count();
        }
        (rows, scanner.counts())
    };
    let fuzzy = |pattern: &str| {
        let bytes = pattern.bytes().map(|byte| (byte != b'?').then_some(byte));
        Filter::FuzzyRow(vec![FuzzyRow(bytes.collect())])
    };
    for reverse in [false, true] {
        let mut with = |filter: Filter| run(Scan { filter: Some(filter), reverse, ..Scan::all() });
        let (rows, counts) = with(fuzzy("????|07"));
        assert_eq!(rows, 1000);
        assert!(counts.cells <= 1000 && counts.seeks < 5000, "{counts:?}");
        let (rows, counts) = with(fuzzy("05?5|99"));
        assert_eq!(rows, 10);
        assert!(counts.cells <= 10 && counts.seeks < 60, "{counts:?}");
        let (rows, counts) = with(Filter::RowPrefix(b"0420|".to_vec()));
        assert_eq!(rows, 100);
        assert!(counts.cells <= 100 && counts.seeks < 5, "{counts:?}");
        let ranges = [("0100", "0101"), ("0999|9", "1"), ("0100|5", "0102")];
        let (rows, counts) = with(Filter::RowRanges(
            ranges.iter().map(|(start, stop)| RowRange::new(*start, *stop)).collect(),
        ));
        assert_eq!(rows, 210);
        assert!(counts.cells <= 210 && counts.seeks < 8, "{counts:?}");
        let (rows, counts) = with(Filter::Page(7));
        assert_eq!(rows, 7);
        assert!(counts.cells <= 7, "{counts:?}");
    }
}
