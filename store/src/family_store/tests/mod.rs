//! Tests of a family store against a naive model: the same results before and after flushes and
//! compactions, forwards and backwards, at every snapshot, and for staged cells.

#[path = "../../../tests/model/mod.rs"]
mod model;

use std::borrow::Cow;
use std::time::Duration;

use proptest::prelude::*;
use smallvec::SmallVec;

use super::compact::CompactionPlan;
use super::*;
use crate::cache::BlockCache;
use crate::cell::{CellBatch, CellRef, CellType, expiring_value, split_expiring};
use crate::compaction::CompactionRequest;
use crate::descriptor::colocation::Partitioning;
use crate::descriptor::{
    BloomFilter, CompactionOptions, CompactionPolicy, Compression, DataBlockEncoding,
};
use crate::descriptor::{
    DateTieredOptions, ExploringOptions, KeepDeletedCells, LeveledOptions, RetiredRule, RowRange,
};
use crate::env::Env;
use crate::env::fault::FaultEnv;
use crate::file::ColumnSlice;
use crate::layout::{SectionKind, ValueLayout, ValuePiece, ValueShape};
use crate::read_view::{Newest, PlainGet};
use crate::scan::plain_rows::BatchLimits;
use crate::scan::rows::{FamilyRules, RowEnd, RowOutput};
use crate::scan::{Get, TimeRange};
use crate::source::RowSpan;
use crate::staged::StagedFamily;
use model::families::{compaction, family};
use model::{FoundCell, allows_version_markers, hold, visible};

mod columnar_rates;
mod columns;

const NOW: i64 = 600_000;
/// Columns of reads of some columns.
const SOME_COLUMNS: [&[&[u8]]; 4] = [&[b""], &[b"", b"\x02"], &[b"\x01", b"\x02"], &[b"\x02"]];
const REGRESSIONS: &str = "proptest-regressions/family_store/tests.txt";

fn context(env: &FaultEnv) -> Arc<StoreContext> {
    let options = Options {
        env: Arc::new(env.clone()),
        // No file is too small to be left as it is.
        memstore_flush_bytes: 8,
        ..Options::default()
    };
    let cache = Arc::new(BlockCache::new(1 << 20));
    Arc::new(StoreContext { options, cache, database: DatabaseId(1) })
}

fn new_env() -> FaultEnv {
    let env = FaultEnv::new(1);
    env.set_now(NOW);
    env
}

fn place(directory: impl Into<PathBuf>) -> FamilyLocation {
    FamilyLocation { directory: directory.into(), table: TableId(1), region: RegionId(1) }
}

fn open(env: &FaultEnv, family: &FamilyDescriptor, files: &[FileRecord]) -> FamilyStore {
    FamilyStore::open(
        context(env),
        place("/r1"),
        (0, Arc::new(family.clone())),
        (RowRange::default(), Partitioning::Row),
        files,
    )
    .unwrap()
}

fn cell(row: u8, qualifier: u8, timestamp: i64, sequence: u64, cell_type: CellType) -> Cell {
    let family_marker = cell_type.is_family_marker();
    let value = match cell_type {
        CellType::Put => format!("v{sequence}").into_bytes(),
        _ => Vec::new(),
    };
    Cell {
        row: vec![b'a' + row],
        family: 0,
        // Column 0 has an empty qualifier, as family markers have.
        qualifier: if family_marker || qualifier == 0 { Vec::new() } else { vec![qualifier] },
        timestamp: Timestamp(timestamp),
        sequence: Sequence(sequence),
        cell_type,
        value,
    }
}

fn take(batch: &CellBatch) -> Vec<FoundCell> {
    batch.rows().flat_map(|row| row.cells().collect::<Vec<_>>()).map(found_of).collect()
}

fn found_of(cell: CellRef<'_>) -> FoundCell {
    let (row, qualifier) = (cell.row.to_vec(), cell.qualifier.to_vec());
    (row, qualifier, cell.timestamp.0, cell.sequence.0, cell.value.to_vec())
}

fn scanner_of(
    view: &Arc<ReadView>,
    spec: &ReadSpec,
    staged: Option<&Arc<Memstore>>,
    (start, stop): (&[u8], Option<&[u8]>),
    reverse: bool,
) -> FamilyScanner {
    let order = if reverse { RowOrder::Reverse } else { RowOrder::Forward };
    let span = RowSpan { start, stop, order };
    view.scanner(&span, FamilyRules::of_all_columns(*spec), staged.cloned().map(Into::into))
        .unwrap()
}

/// A scanner of all rows, of these columns.
fn scanner_of_columns(
    view: &Arc<ReadView>,
    spec: &ReadSpec,
    staged: Option<&Arc<Memstore>>,
    columns: &[Vec<u8>],
    reverse: bool,
) -> FamilyScanner {
    let order = if reverse { RowOrder::Reverse } else { RowOrder::Forward };
    let span = RowSpan { start: b"", stop: None, order };
    let columns = Some(Cow::Owned(columns.to_vec()));
    let rules = FamilyRules { columns, ..FamilyRules::of_all_columns(*spec) };
    view.scanner(&span, rules, staged.cloned().map(Into::into)).unwrap()
}

/// Reads the next row that has a visible cell, alone into the batch.
fn next_row(scanner: &mut FamilyScanner, batch: &mut CellBatch) -> Option<Vec<u8>> {
    batch.clear();
    append_row(scanner, batch).then(|| batch.row(0).key().to_vec())
}

/// Appends the next row that has a visible cell; returns whether there is one.
fn append_row(scanner: &mut FamilyScanner, batch: &mut CellBatch) -> bool {
    let mut row = SmallVec::<[u8; 64]>::new();
    while let Some(next) = scanner.next_row().unwrap() {
        row.clear();
        row.extend_from_slice(next);
        batch.start_row(&row);
        scanner.reader().start_row(None);
        let mut output = RowOutput { filter: None, batch, room: u32::MAX };
        assert_eq!(scanner.reader().read_row(&row, &mut output).unwrap(), RowEnd::Done);
        if batch.last_cell().is_some() {
            return true;
        }
        batch.cancel_row();
    }
    false
}

/// A read of the newest version of each column, above all that is written.
fn newest_versions() -> ReadSpec {
    ReadSpec {
        snapshot: Sequence(100),
        staged_through: Sequence(0),
        time_range: TimeRange::ALL,
        max_versions: 1,
        raw: false,
        now_micros: NOW,
    }
}

/// Reads one row; returns whether it has a visible cell.
fn get(view: &ReadView, row: &[u8], spec: &ReadSpec, staged: Option<&Arc<Memstore>>) -> CellBatch {
    let staged = staged.cloned().map(StagedFamily::from);
    let staged = staged.as_ref();
    let mut batch = CellBatch::new();
    batch.start_row(row);
    let mut output = RowOutput { filter: None, batch: &mut batch, room: u32::MAX };
    view.get(row, FamilyRules::of_all_columns(*spec), staged, &mut output).unwrap();
    check_newest(view, (row, &batch), spec, staged);
    check_plain(view, (row, &batch), spec, staged);
    batch
}

/// Checks that the fast path of a get of a whole row, if it answers, agrees with the merge.
/// Returns whether it answers.
fn check_plain(
    view: &ReadView,
    (row, merged): (&[u8], &CellBatch),
    spec: &ReadSpec,
    staged: Option<&StagedFamily>,
) -> bool {
    let get = Get::new(row);
    let begun = PlainGet::begin(view, (&get, spec), staged).unwrap();
    let Some(mut begun) = begun else { return false };
    begun.choose_block(row).unwrap();
    begun.look_into_block(spec).unwrap();
    begun.find(row).unwrap();
    let mut found = CellBatch::new();
    found.start_row(row);
    let answers = begun.answer(&get, &mut found).unwrap();
    assert!(!answers || found.row(0).cells().eq(merged.row(0).cells()), "plain, {spec:?}");
    answers
}

/// Checks that the fast path of a get of one column, if it answers, agrees with the merge.
fn check_newest(
    view: &ReadView,
    (row, merged): (&[u8], &CellBatch),
    spec: &ReadSpec,
    staged: Option<&StagedFamily>,
) {
    let merged: Vec<_> = match merged.last_cell() {
        Some(_) => merged.row(0).cells().collect(),
        None => Vec::new(),
    };
    let columns = merged.iter().map(|cell| cell.qualifier).chain([b"none".as_slice()]);
    for column in columns {
        let get = Get::new(row).column(view.family_index, column);
        let Some(newest) = Newest::of(&get, spec, view.family_index) else { return };
        let mut found = CellBatch::new();
        found.start_row(row);
        if newest.answer(view, staged, &mut found).unwrap() {
            let wanted = merged.iter().find(|cell| cell.qualifier == column);
            let cell = found.last_cell().map(|_| found.row(0).cells().next().unwrap());
            assert_eq!(cell, wanted.copied(), "column {column:?}");
        }
    }
}

fn scan(
    view: &Arc<ReadView>,
    spec: &ReadSpec,
    staged: Option<&Arc<Memstore>>,
    range: (&[u8], Option<&[u8]>),
    reverse: bool,
) -> Vec<FoundCell> {
    let mut scanner = scanner_of(view, spec, staged, range, reverse);
    let mut batch = CellBatch::new();
    let mut found: Vec<Vec<FoundCell>> = Vec::new();
    while next_row(&mut scanner, &mut batch).is_some() {
        found.push(take(&batch));
    }
    if reverse {
        found.reverse();
    }
    found.concat()
}

/// A scan that takes columns where possible; `row_limit` rows at once.
fn scan_columns(
    view: &Arc<ReadView>,
    spec: &ReadSpec,
    staged: Option<&Arc<Memstore>>,
    range: (&[u8], Option<&[u8]>),
    row_limit: usize,
) -> Vec<FoundCell> {
    let mut scanner = scanner_of(view, spec, staged, range, false);
    let mut found: Vec<FoundCell> = Vec::new();
    let mut batch = CellBatch::new();
    loop {
        if let Some(slice) = scanner.take_columns(row_limit).unwrap() {
            assert!((1..=row_limit).contains(&slice.row_count()));
            take_slice(&slice, &mut found);
            continue;
        }
        if next_row(&mut scanner, &mut batch).is_none() {
            return found;
        }
        found.extend(take(&batch));
    }
}

/// A scan that uses the fast path of plain rows where possible, with this limit of rows.
fn scan_plain_rows(mut scanner: FamilyScanner, rows: usize, reverse: bool) -> Vec<FoundCell> {
    let mut batch = CellBatch::new();
    let mut found: Vec<Vec<FoundCell>> = Vec::new();
    loop {
        batch.clear();
        let limits = BatchLimits { rows, bytes: usize::MAX, cells: 3 };
        let cells = scanner.read_plain_rows(limits, &mut batch).unwrap();
        assert!(batch.row_count() <= rows && cells >= batch.cell_count() as u64);
        for row in batch.rows() {
            found.push(row.cells().map(found_of).collect());
        }
        if next_row(&mut scanner, &mut batch).is_none() {
            break;
        }
        found.push(take(&batch));
    }
    if reverse {
        found.reverse();
    }
    found.concat()
}

fn take_slice(slice: &ColumnSlice, found: &mut Vec<FoundCell>) {
    let (mut keys, mut ends) = (Vec::new(), Vec::new());
    slice.append_row_keys(0..slice.row_count(), &mut keys, &mut ends).unwrap();
    let versions = slice.timestamps().unwrap().zip(slice.sequences().unwrap());
    let section = slice.variable(0).unwrap();
    assert!(slice.fixed(0).is_err() && slice.variable(1).is_err());
    assert_eq!(slice.only_shape().unwrap(), Some(0));
    let mut start = 0;
    for (row, (timestamp, sequence)) in versions.enumerate() {
        let end = ends[row] as usize;
        let mut value = Vec::new();
        slice.append_value(row, &mut value).unwrap();
        assert_eq!(section.get(row).unwrap(), value);
        let qualifier = slice.qualifier().unwrap().to_vec();
        found.push((keys[start..end].to_vec(), qualifier, timestamp.0, sequence.0, value));
        start = end;
    }
}

fn check_reads(
    store: &FamilyStore,
    cells: &[Cell],
    spec: &ReadSpec,
    staged: Option<&Arc<Memstore>>,
) {
    let view = store.view();
    let expected = visible(cells, view.family(), spec);
    let context = format!("{spec:?}");
    assert_eq!(scan(&view, spec, staged, (b"", None), false), expected, "forward, {context}");
    assert_eq!(scan(&view, spec, staged, (b"", None), true), expected, "reverse, {context}");
    let part: Vec<FoundCell> = expected
        .iter()
        .filter(|cell| cell.0 >= b"b".to_vec() && cell.0 < b"d".to_vec())
        .cloned()
        .collect();
    for reverse in [false, true] {
        assert_eq!(scan(&view, spec, staged, (b"b", Some(b"d")), reverse), part, "{context}");
    }
    for row_limit in [1, 2, 100] {
        let columns = |range| scan_columns(&view, spec, staged, range, row_limit);
        assert_eq!(columns((b"", None)), expected, "columns, {context}");
        assert_eq!(columns((b"b", Some(b"d"))), part, "columns, {context}");
        for reverse in [false, true] {
            let scanner = scanner_of(&view, spec, staged, (b"", None), reverse);
            let found = scan_plain_rows(scanner, row_limit, reverse);
            assert_eq!(found, expected, "plain rows, reverse: {reverse}, {context}");
            // A raw scan returns the markers of the family with any column.
            for columns in SOME_COLUMNS.iter().filter(|_| !spec.raw) {
                let columns: Vec<Vec<u8>> = columns.iter().map(|one| one.to_vec()).collect();
                let of_columns = expected.iter().filter(|cell| columns.contains(&cell.1));
                let scanner = scanner_of_columns(&view, spec, staged, &columns, reverse);
                let found = scan_plain_rows(scanner, row_limit, reverse);
                let wanted: Vec<FoundCell> = of_columns.cloned().collect();
                assert_eq!(found, wanted, "{columns:?}, reverse: {reverse}, {context}");
            }
        }
    }
    for row in [b"a", b"c"] {
        let batch = get(&view, row, spec, staged);
        let any = batch.cell_count() > 0;
        let of_row: Vec<FoundCell> =
            expected.iter().filter(|cell| cell.0 == row).cloned().collect();
        assert_eq!(any, !of_row.is_empty());
        assert_eq!(if any { take(&batch) } else { Vec::new() }, of_row, "get, {context}");
    }
    // A skip scan: from each row it seeks past the next.
    let mut batch = CellBatch::new();
    let mut scanner = scanner_of(&view, spec, staged, (b"", None), false);
    scanner.reader().seek_row(b"b").unwrap();
    let first = next_row(&mut scanner, &mut batch);
    let expected_first = expected.iter().map(|cell| &cell.0).find(|row| ***row >= b"b"[..]);
    assert_eq!(first.as_ref(), expected_first);
    let mut scanner = scanner_of(&view, spec, staged, (b"", None), true);
    scanner.reader().seek_row(b"c\0").unwrap();
    let first = next_row(&mut scanner, &mut batch);
    let expected_first = expected.iter().map(|cell| &cell.0).rfind(|row| ***row <= b"c"[..]);
    assert_eq!(first.as_ref(), expected_first);
}

/// A cell to be written.
#[derive(Debug, Clone)]
struct Write {
    row: u8,
    qualifier: u8,
    at: i64,
    kind: CellType,
    /// Cell TTL in milliseconds.
    ttl: u64,
    new_commit: bool,
}

impl Write {
    fn cell(&self, sequence: u64) -> Cell {
        let mut cell = cell(self.row, self.qualifier, self.at, sequence, self.kind);
        if self.kind == CellType::ExpiringPut {
            let value = format!("v{sequence}");
            cell.value = expiring_value(Duration::from_millis(self.ttl), value.as_bytes());
        }
        cell
    }
}

fn write(exact: bool) -> impl Strategy<Value = Write> {
    (0..4_u8, 0..3_u8, 1..7_i64, cell_type(exact), 0..8_u64, any::<bool>()).prop_map(
        |(row, qualifier, at, kind, ttl, new_commit)| Write {
            row,
            qualifier,
            at: at * 100_000,
            kind,
            ttl: ttl * 100 + 1,
            new_commit,
        },
    )
}

/// An event in the history of a store.
#[derive(Debug, Clone)]
enum Event {
    Write(Write),
    /// The clock advances by this many milliseconds.
    Wait(i64),
    Flush,
    Compact(bool),
    /// Plans a compaction that stays in progress.
    Begin(bool),
    /// Finishes one of these.
    End(usize),
    /// Changes the policy.
    Alter(CompactionOptions),
    /// Open snapshots are closed: rewrites may drop versions visible only to them.
    Advance,
    Reopen,
}

fn cell_type(exact: bool) -> BoxedStrategy<CellType> {
    let ranges = prop_oneof![
        5 => Just(CellType::Put),
        2 => Just(CellType::ExpiringPut),
        1 => Just(CellType::DeleteColumn),
        1 => Just(CellType::DeleteFamily),
    ];
    let points = prop_oneof![Just(CellType::Delete), Just(CellType::DeleteFamilyVersion)];
    if exact { prop_oneof![4 => ranges, 1 => points].boxed() } else { ranges.boxed() }
}

fn event(exact: bool) -> impl Strategy<Value = Event> {
    prop_oneof![
        20 => write(exact).prop_map(Event::Write),
        2 => (1..400_i64).prop_map(Event::Wait),
        3 => Just(Event::Flush),
        4 => prop::bool::weighted(0.3).prop_map(Event::Compact),
        2 => prop::bool::weighted(0.2).prop_map(Event::Begin),
        2 => (0..3_usize).prop_map(Event::End),
        1 => compaction().prop_map(Event::Alter),
        2 => Just(Event::Advance),
        1 => Just(Event::Reopen),
    ]
}

#[derive(Debug, Clone)]
struct Read {
    /// Steps below the newest sequence.
    age: u64,
    min: i64,
    max: i64,
    max_versions: u32,
}

fn read() -> impl Strategy<Value = Read> {
    let bounds = prop_oneof![
        2 => Just((i64::MIN, i64::MAX)),
        1 => (0..7_i64, 0..7_i64).prop_map(|(a, b)| (a.min(b) * 100_000, a.max(b) * 100_000 + 1)),
    ];
    (0..12_u64, bounds, 1..5_u32).prop_map(|(age, (min, max), max_versions)| Read {
        age,
        min,
        max,
        max_versions,
    })
}

fn case() -> impl Strategy<Value = (FamilyDescriptor, Vec<Event>, Vec<Read>)> {
    family().prop_flat_map(|family| {
        let exact = allows_version_markers(&family);
        let events = prop::collection::vec(event(exact), 1..60);
        (Just(family), events, prop::collection::vec(read(), 1..4))
    })
}

/// Reads use the present time for expiry.
fn horizon(store: &FamilyStore, oldest_snapshot: u64) -> Horizon {
    let now_micros = store.context.options.env.now_micros();
    Horizon { snapshot: Sequence(oldest_snapshot), now_micros }
}

fn flush(store: &FamilyStore, newest: u64, oldest_snapshot: u64) {
    store.rotate(Sequence(newest));
    if let Some(outcome) = store.flush(horizon(store, oldest_snapshot)).unwrap() {
        assert_eq!(outcome.flushed, Sequence(newest));
        store.install_flush(&outcome).unwrap();
        store.install_flush(&outcome).unwrap();
    }
}

fn plan_inputs(store: &FamilyStore) -> PlanInputs {
    let flush_bytes = store.context.options.memstore_flush_bytes;
    let (horizon, through) = (horizon(store, 0), Sequence(0));
    PlanInputs { off_peak: false, horizon, through, flush_bytes }
}

fn try_compact(
    store: &FamilyStore,
    major: bool,
    oldest_snapshot: u64,
) -> Result<Option<(CompactionPlan, CompactionOutcome)>> {
    let request = if major { CompactionRequest::Major } else { CompactionRequest::Minor };
    let Some(plan) = store.plan_compaction(request, plan_inputs(store)) else {
        return Ok(None);
    };
    let outcome =
        store.run_compaction(&plan, horizon(store, oldest_snapshot).into(), &NoProgress)?;
    Ok(Some((plan, outcome)))
}

fn end(store: &FamilyStore, plan: CompactionPlan, oldest_snapshot: u64) {
    let outcome =
        store.run_compaction(&plan, horizon(store, oldest_snapshot).into(), &NoProgress).unwrap();
    store.install_compaction(&outcome).unwrap();
}

fn compact(store: &FamilyStore, major: bool, oldest_snapshot: u64) {
    if let Some((_plan, outcome)) = try_compact(store, major, oldest_snapshot).unwrap() {
        store.install_compaction(&outcome).unwrap();
    }
}

fn spec(env: &FaultEnv, read: &Read, newest: u64, oldest_snapshot: u64) -> ReadSpec {
    ReadSpec {
        snapshot: Sequence(newest.saturating_sub(read.age).max(oldest_snapshot)),
        staged_through: Sequence(0),
        time_range: TimeRange::new(Timestamp(read.min), Timestamp(read.max)),
        max_versions: read.max_versions,
        raw: false,
        now_micros: env.now_micros(),
    }
}

fn request_of(major: bool) -> CompactionRequest {
    if major { CompactionRequest::Major } else { CompactionRequest::Minor }
}

fn run(family: &FamilyDescriptor, events: &[Event], reads: &[Read]) {
    let env = new_env();
    let mut family = family.clone();
    let mut store = open(&env, &family, &[]);
    let mut cells: Vec<Cell> = Vec::new();
    let mut plans: Vec<CompactionPlan> = Vec::new();
    let (mut newest, mut oldest_snapshot) = (1, 0);
    for event in events {
        match event {
            Event::Write(write) => {
                // One commit writes a cell once.
                let again =
                    |cell: &Cell| cell.sequence.0 == newest && cell.row == [b'a' + write.row];
                if write.new_commit || cells.iter().any(again) {
                    newest += 1;
                }
                let cell = write.cell(newest);
                store.apply(std::slice::from_ref(&cell));
                cells.push(cell);
                continue;
            }
            Event::Flush => {
                flush(&store, newest, oldest_snapshot);
                newest += 1;
            }
            Event::Compact(major) => compact(&store, *major, oldest_snapshot),
            Event::Begin(major) => {
                let request = request_of(*major);
                plans.extend(store.plan_compaction(request, plan_inputs(&store)));
                continue;
            }
            Event::End(index) => {
                if *index < plans.len() {
                    end(&store, plans.remove(*index), oldest_snapshot);
                }
            }
            Event::Alter(compaction) => {
                let compaction = compaction.clone();
                family = FamilyDescriptor { compaction, ..family };
                store.set_family(Arc::new(family.clone()));
            }
            Event::Wait(milliseconds) => env.set_now(env.now_micros() + milliseconds * 1000),
            Event::Advance => oldest_snapshot = newest,
            Event::Reopen => {
                plans.clear();
                flush(&store, newest, oldest_snapshot);
                newest += 1;
                let files = store.files();
                drop(store);
                store = open(&env, &family, &files);
                assert_eq!(store.files(), files, "the runs are as they were");
            }
        }
        for read in reads {
            check_reads(&store, &cells, &spec(&env, read, newest, oldest_snapshot), None);
        }
    }
    let check = |store: &FamilyStore, oldest_snapshot| {
        for read in reads {
            check_reads(store, &cells, &spec(&env, read, newest, oldest_snapshot), None);
        }
    };
    check(&store, oldest_snapshot);
    plans.into_iter().for_each(|plan| end(&store, plan, oldest_snapshot));
    check(&store, oldest_snapshot);
    flush(&store, newest, oldest_snapshot);
    check(&store, oldest_snapshot);
    compact(&store, false, oldest_snapshot);
    check(&store, oldest_snapshot);
    compact(&store, true, newest);
    check(&store, newest);
    // The files on disk are those that are listed.
    assert_eq!(env.list("/r1".as_ref()).unwrap().len(), store.files().len());
}

#[test]
fn reads_are_independent_of_flushes_and_compactions() {
    let name = "families before and after flushes and compactions";
    hold((name, REGRESSIONS), case(), |(family, events, reads)| {
        run(&family, &events, &reads);
        // Reads follow after these events, and five times at the end.
        let changes = |event: &&Event| !matches!(event, Event::Write(_) | Event::Begin(_));
        let compared = (events.iter().filter(changes).count() + 5) * reads.len();
        (events.len() + compared) as u64
    });
}

#[test]
fn deleted_cells_stay_masked_with_uncertain_evictions() {
    let family = FamilyDescriptor { versions: 2, min_versions: 1, ..FamilyDescriptor::new("f") };
    let w = |row, qualifier, at, kind| {
        Event::Write(Write { row, qualifier, at, kind, ttl: 1, new_commit: false })
    };
    let events = [
        w(0, 1, 200_000, CellType::Put),
        w(0, 1, 600_000, CellType::ExpiringPut),
        w(0, 1, 300_000, CellType::Put),
        w(0, 0, 600_000, CellType::DeleteFamilyVersion),
        w(0, 1, 100_000, CellType::Put),
        w(0, 0, 100_000, CellType::DeleteFamily),
    ];
    let reads = [Read { age: 0, min: i64::MIN, max: i64::MAX, max_versions: 2 }];
    run(&family, &events, &reads);
}

/// Staged cells act as commits after the snapshot; `staged_through` cuts them.
#[test]
fn staged_cells_are_visible_to_their_transaction() {
    let writes = family().prop_flat_map(|family| {
        let write = write(allows_version_markers(&family));
        (Just(family), prop::collection::vec(write, 1..30))
    });
    let case = (writes, 0..30_usize, 0..30_u64, read());
    hold(
        ("families with staged cells", REGRESSIONS),
        case,
        |((family, writes), committed, through, read)| {
            let operations = writes.len() as u64 + 3;
            let env = new_env();
            let store = open(&env, &family, &[]);
            let staged = Arc::new(Memstore::new());
            let mut cells = Vec::new();
            for (index, mut write) in writes.into_iter().enumerate() {
                let sequence = index as u64 + 1;
                if index < committed {
                    cells.push(write.cell(sequence));
                    store.apply(&cells[index..]);
                } else {
                    write.at = if write.at == 600_000 { i64::MAX } else { write.at };
                    cells.push(write.cell(Sequence::STAGED | sequence));
                    staged.insert(&cells[index].key_parts(), &cells[index].value);
                }
            }
            let spec = ReadSpec {
                snapshot: Sequence(30),
                staged_through: Sequence(Sequence::STAGED | through),
                time_range: TimeRange::new(Timestamp(read.min), Timestamp(read.max)),
                max_versions: read.max_versions,
                raw: false,
                now_micros: NOW,
            };
            check_reads(&store, &cells, &spec, Some(&staged));
            flush(&store, 30, 30);
            check_reads(&store, &cells, &spec, Some(&staged));
            staged.remove_from(Sequence(Sequence::STAGED | 20));
            cells.retain(|cell| cell.sequence.0 < (Sequence::STAGED | 20));
            check_reads(&store, &cells, &spec, Some(&staged));
            operations
        },
    );
}

#[test]
fn merge_skips_files_without_overlap() {
    let env = new_env();
    let mut family = FamilyDescriptor::new("f");
    let within = ExploringOptions { min_bytes: Some(1 << 20), ..ExploringOptions::default() };
    family.compaction = CompactionOptions::of(CompactionPolicy::Exploring(within));
    let store = open(&env, &family, &[]);
    let spec = newest_versions();
    let mut cells = Vec::new();
    let mut write = |rows: &[u8]| {
        for row in rows {
            let sequence = cells.len() as u64 + 1;
            cells.push(cell(*row, 1, sequence as i64, sequence, CellType::Put));
            store.apply(&cells[cells.len() - 1..]);
        }
        flush(&store, cells.len() as u64, 0);
        check_reads(&store, &cells, &spec, None);
    };
    write(&[0, 1]);
    write(&[2, 3]);
    write(&[4, 5]);
    let written = store.files();
    let (plan, outcome) = try_compact(&store, false, 0).unwrap().unwrap();
    assert_eq!((plan.byte_count(), plan.cell_count()), (0, 0));
    assert_eq!((outcome.cells_in, outcome.bytes_out, outcome.outputs.len()), (0, 0, 3));
    store.install_compaction(&outcome).unwrap();
    drop(plan);
    assert_eq!(store.view().runs.len(), 1);
    let ids = |files: &[FileRecord]| files.iter().map(|file| file.id).collect::<Vec<_>>();
    assert_eq!(ids(&store.files()), ids(&written));
    write(&[3]);
    write(&[6, 7]);
    let (plan, outcome) = try_compact(&store, false, 100).unwrap().unwrap();
    assert_eq!((plan.cell_count(), outcome.cells_in, outcome.cells_out), (3, 3, 2));
    store.install_compaction(&outcome).unwrap();
    drop(plan);
    assert_eq!(store.view().runs.len(), 1);
    // The manifest's records agree.
    let records = store.files();
    assert_eq!(records.len(), 4);
    assert_eq!(store.compaction_figures().moved_files, 6);
    drop(store);
    let store = open(&env, &family, &records);
    assert_eq!(store.view().runs.len(), 1);
    check_reads(&store, &cells, &spec, None);
}

#[test]
fn failed_flush_or_compaction_leaves_store_unchanged() {
    let env = new_env();
    let family = FamilyDescriptor::new("f");
    let store = open(&env, &family, &[]);
    let mut cells = Vec::new();
    let spec = newest_versions();
    for sequence in 1..=40 {
        cells.push(cell(sequence as u8 % 4, 1, sequence as i64, sequence, CellType::Put));
        store.apply(&cells[sequence as usize - 1..]);
        if sequence % 10 != 0 {
            continue;
        }
        store.rotate(Sequence(sequence));
        for count in 0.. {
            env.fail_after(count);
            let flushed = store.flush(horizon(&store, 0));
            env.fail_after(u64::MAX >> 1);
            check_reads(&store, &cells, &spec, None);
            if let Ok(Some(outcome)) = flushed {
                assert!(count > 2);
                // Not installed yet: the same flush again.
                assert_eq!(store.flush(horizon(&store, 0)).unwrap().unwrap().file, outcome.file);
                store.install_flush(&outcome).unwrap();
                break;
            }
        }
    }
    for count in 0.. {
        env.fail_after(count);
        let compacted = try_compact(&store, false, 40);
        env.fail_after(u64::MAX >> 1);
        check_reads(&store, &cells, &spec, None);
        if let Ok(outcome) = compacted {
            let (_plan, outcome) = outcome.unwrap();
            assert_eq!((outcome.inputs.len(), outcome.cells_in, outcome.cells_out), (4, 40, 4));
            store.install_compaction(&outcome).unwrap();
            assert!(store.install_compaction(&outcome).is_err(), "installed twice");
            break;
        }
    }
    check_reads(&store, &cells, &spec, None);
    // Leftovers of failed flushes are found at the next opening, and are not overwritten.
    let files = store.files();
    drop(store);
    let store = open(&env, &family, &files);
    check_reads(&store, &cells, &spec, None);
    let unlisted = store.unlisted_files().unwrap();
    assert_eq!(env.list("/r1".as_ref()).unwrap().len(), unlisted.len() + 1);
    let (_, next) = store.name_file();
    assert!(env.bytes(&next).is_none());
}

#[test]
fn views_stay_readable_after_compaction() {
    let env = new_env();
    let store = open(&env, &FamilyDescriptor::new("f"), &[]);
    for sequence in 1..=3 {
        store.apply(&[cell(0, 1, sequence, sequence as u64, CellType::Put)]);
        flush(&store, sequence as u64, 0);
    }
    let view = store.view();
    compact(&store, true, 3);
    assert_eq!(store.view().newest_sequence(b"a").unwrap(), Some(Sequence(3)));
    assert_eq!(view.newest_sequence(b"a").unwrap(), Some(Sequence(3)));
    assert_eq!(view.newest_sequence(b"b").unwrap(), None);
    assert_eq!(env.list("/r1".as_ref()).unwrap().len(), 4);
    drop(view);
    assert_eq!(env.list("/r1".as_ref()).unwrap().len(), 1);
}

#[test]
fn scans_seek_past_old_versions_but_not_markers() {
    let store = open(&new_env(), &FamilyDescriptor::new("f"), &[]);
    let cells_of = |row: u8| {
        (0..2).flat_map(move |qualifier| {
            (0..100).map(move |version| {
                let sequence = u64::from(row) * 1000 + u64::from(qualifier) * 100 + version + 2;
                cell(row, qualifier, version as i64 + 2, sequence, CellType::Put)
            })
        })
    };
    let mut cells: Vec<Cell> = (0..3).flat_map(cells_of).collect();
    store.apply(&cells);
    let spec = ReadSpec {
        snapshot: Sequence(9000),
        staged_through: Sequence(0),
        time_range: TimeRange::ALL,
        max_versions: 1,
        raw: false,
        now_micros: NOW,
    };
    check_reads(&store, &cells, &spec, None);
    let mut scanner = scanner_of(&store.view(), &spec, None, (b"", None), false);
    let limits = BatchLimits { rows: 3, bytes: usize::MAX, cells: u64::MAX };
    let seen = scanner.read_plain_rows(limits, &mut CellBatch::new()).unwrap();
    assert!((6..200).contains(&seen), "600 cells, {seen} looked at");
    // Masks all of the other column, from behind the versions of the nameless one.
    cells.push(cell(1, 0, 101, 8000, CellType::DeleteFamily));
    let newer = cell(1, 0, 102, 8001, CellType::Put);
    cells.push(newer);
    store.apply(&cells[600..]);
    check_reads(&store, &cells, &spec, None);
    flush(&store, 9000, 0);
    check_reads(&store, &cells, &spec, None);
}

#[test]
fn raw_scan_returns_markers_and_masked_cells() {
    let env = new_env();
    let store = open(&env, &FamilyDescriptor::new("f"), &[]);
    let kinds = [CellType::Put, CellType::Put, CellType::DeleteColumn, CellType::Put];
    for (index, kind) in kinds.into_iter().enumerate() {
        store.apply(&[cell(0, 1, index as i64 + 1, index as u64 + 1, kind)]);
    }
    let spec = ReadSpec {
        snapshot: Sequence(3),
        staged_through: Sequence(0),
        time_range: TimeRange::ALL,
        max_versions: 10,
        raw: true,
        now_micros: NOW,
    };
    let sequences = |spec: &ReadSpec| {
        let found = scan(&store.view(), spec, None, (b"", None), false);
        found.iter().map(|cell| cell.3).collect::<Vec<_>>()
    };
    assert_eq!(sequences(&spec), [3, 2, 1], "not what is after the snapshot");
    assert_eq!(sequences(&ReadSpec { max_versions: 1, ..spec }), [3, 2]);
    let time_range = TimeRange::new(Timestamp(1), Timestamp(3));
    assert_eq!(sequences(&ReadSpec { time_range, ..spec }), [2, 1]);
    flush(&store, 4, 3);
    // The masked versions are dropped; the marker stays, and so do cells above every snapshot.
    assert_eq!(sequences(&ReadSpec { snapshot: Sequence(4), ..spec }), [4, 3]);
    compact(&store, true, 4);
    assert_eq!(sequences(&ReadSpec { snapshot: Sequence(4), ..spec }), [4]);
}

/// Prints rates: `cargo test --release -p bennu-store family_store_throughput -- --ignored
/// --nocapture`.
#[test]
#[ignore = "measures, proves nothing"]
fn family_store_throughput() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options::default();
    let cache = Arc::new(BlockCache::new(200 << 20));
    let context = Arc::new(StoreContext { options, cache, database: DatabaseId(1) });
    let family = Arc::new(FamilyDescriptor::new("f"));
    let store = FamilyStore::open(
        context,
        place(directory.path()),
        (0, family),
        (RowRange::default(), Partitioning::Row),
        &[],
    )
    .unwrap();
    let count = 1_000_000_u64;
    let row = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec();
    let measure = |what: &str, work: &mut dyn FnMut()| {
        let start = std::time::Instant::now();
        work();
        println!("{what}: {} ns a cell", start.elapsed().as_nanos() as u64 / count);
    };
    let mut cells: Vec<Cell> = (0..count)
        .map(|n| Cell { row: row(n), value: vec![n as u8; 64], ..cell(0, 1, 1, 1, CellType::Put) })
        .collect();
    measure("insert", &mut || cells.chunks(10).for_each(|cells| store.apply(cells)));
    cells.clear();
    println!("memstore: {} bytes", store.memstore_bytes());
    let spec = ReadSpec {
        snapshot: Sequence(9),
        staged_through: Sequence(0),
        time_range: TimeRange::ALL,
        max_versions: 1,
        raw: false,
        now_micros: NOW,
    };
    let mut batch = CellBatch::new();
    let mut scan = |reverse| {
        let view = store.view();
        let mut scanner = scanner_of(&view, &spec, None, (b"", None), reverse);
        let mut found = 0;
        while next_row(&mut scanner, &mut batch).is_some() {
            found += 1;
        }
        assert_eq!(found, count);
    };
    measure("scan of the memstore", &mut || scan(false));
    measure("reverse scan of the memstore", &mut || scan(true));
    let get = |n| assert_eq!(get(&store.view(), &row(n), &spec, None).cell_count(), 1);
    measure("get from the memstore", &mut || (0..count).for_each(get));
    measure("flush", &mut || flush(&store, 1, 1));
    println!("files: {:?}", store.status().files);
    measure("scan of the file, cold", &mut || scan(false));
    measure("scan of the file, warm", &mut || scan(false));
    measure("reverse scan of the file", &mut || scan(true));
    measure("get from the file", &mut || (0..count).for_each(get));
    measure("major compaction", &mut || compact(&store, true, 1));
}

#[test]
fn running_compaction_does_not_retain_memstore() {
    let (env, family) = (new_env(), FamilyDescriptor::new("f"));
    let store = open(&env, &family, &[]);
    for sequence in 1..3 {
        store.apply(&[cell(1, 1, 5, sequence, CellType::Put)]);
        flush(&store, sequence, 0);
    }
    store.apply(&[cell(2, 1, 5, 3, CellType::Put)]);
    let memstore = Arc::downgrade(&store.view().active);
    let plan = store.plan_compaction(CompactionRequest::Major, plan_inputs(&store)).unwrap();
    flush(&store, 3, 0);
    assert_eq!(memstore.strong_count(), 0, "its memory is still taken");
    end(&store, plan, 0);
}
