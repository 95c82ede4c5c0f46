//! A family store against a naive model: the same answers before and after flushes and compactions,
//! forwards and backwards, at every snapshot, and for staged cells.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::cache::BlockCache;
use crate::cell::{CellBatch, CellType};
use crate::descriptor::{BloomFilter, Compression, KeepDeletedCells};
use crate::env::Env;
use crate::env::fault::FaultEnv;
use crate::scan::TimeRange;

const NOW: i64 = 1_000_000;

fn context(env: &FaultEnv) -> Arc<StoreContext> {
    let options = Options { env: Arc::new(env.clone()), ..Options::default() };
    Arc::new(StoreContext { options, cache: Arc::new(BlockCache::new(1 << 20)) })
}

fn open(env: &FaultEnv, family: &FamilyDescriptor, files: &[FileId]) -> FamilyStore {
    env.set_now(NOW);
    FamilyStore::open(context(env), "/r1".into(), 0, Arc::new(family.clone()), files).unwrap()
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

/// Row, qualifier, timestamp, sequence, value.
type Found = (Vec<u8>, Vec<u8>, i64, u64, Vec<u8>);

/// The rule of `scan::retention`, as it is written there: commit after commit.
fn model(cells: &[Cell], family: &FamilyDescriptor, spec: &ReadSpec) -> Vec<Found> {
    let mut seen: Vec<&Cell> = cells.iter().filter(|cell| spec.sees(cell.sequence)).collect();
    // Within a commit markers come first: they mask older commits only.
    seen.sort_by_key(|cell| (cell.sequence, cell.cell_type == CellType::Put));
    let keeps_deleted = family.keep_deleted_cells != KeepDeletedCells::False;
    let expiry = family.ttl.map_or(i64::MIN, |ttl| spec.now_micros - ttl.as_micros() as i64);
    let mut columns: BTreeMap<(Vec<u8>, Vec<u8>), BTreeMap<i64, (u64, Vec<u8>)>> = BTreeMap::new();
    for cell in &seen {
        let at = cell.timestamp.0;
        if cell.cell_type == CellType::Put {
            let versions = columns.entry((cell.row.clone(), cell.qualifier.clone())).or_default();
            versions.insert(at, (cell.sequence.0, cell.value.clone()));
            while versions.len() > family.versions as usize {
                versions.pop_first();
            }
        } else if !keeps_deleted {
            for (_, versions) in columns.iter_mut().filter(|(column, _)| marks(cell, column)) {
                versions.retain(|&version, _| !covers(cell, version));
            }
        }
    }
    let mut found = Vec::new();
    for (column, versions) in columns {
        let mut returned = 0;
        for (index, (at, (sequence, value))) in versions.into_iter().rev().enumerate() {
            let masked = keeps_deleted
                && seen.iter().any(|marker| {
                    let in_time = spec.time_range.is_before_max(marker.timestamp);
                    let outlived = family.keep_deleted_cells == KeepDeletedCells::Ttl
                        && marker.timestamp.0 < expiry;
                    marker.cell_type != CellType::Put
                        && (in_time || outlived)
                        && marks(marker, &column)
                        && covers(marker, at)
                        && marker.sequence.0 > sequence
                });
            let expired = at < expiry && index >= family.min_versions as usize;
            let wanted = spec.time_range.contains(Timestamp(at)) && returned < spec.max_versions;
            if !masked && !expired && wanted {
                returned += 1;
                found.push((column.0.clone(), column.1.clone(), at, sequence, value));
            }
        }
    }
    found
}

fn marks(marker: &Cell, column: &(Vec<u8>, Vec<u8>)) -> bool {
    marker.row == column.0 && (marker.cell_type.is_family_marker() || marker.qualifier == column.1)
}

fn covers(marker: &Cell, version: i64) -> bool {
    match marker.cell_type {
        CellType::DeleteFamily | CellType::DeleteColumn => version <= marker.timestamp.0,
        CellType::Delete | CellType::DeleteFamilyVersion => version == marker.timestamp.0,
        CellType::Put => false,
    }
}

fn take(batch: &CellBatch) -> Vec<Found> {
    let cells = batch.rows().flat_map(|row| row.cells().collect::<Vec<_>>());
    cells
        .map(|cell| {
            let (row, qualifier) = (cell.row.to_vec(), cell.qualifier.to_vec());
            (row, qualifier, cell.timestamp.0, cell.sequence.0, cell.value.to_vec())
        })
        .collect()
}

fn scan(
    view: &Arc<ReadView>,
    spec: &ReadSpec,
    staged: Option<&Arc<Memstore>>,
    range: (&[u8], Option<&[u8]>),
    reverse: bool,
) -> Vec<Found> {
    let mut scanner = view.scanner(range.0, range.1, reverse, spec, staged.cloned()).unwrap();
    let mut batch = CellBatch::new();
    let mut found: Vec<Vec<Found>> = Vec::new();
    while let Some(row) = scanner.peek_row().unwrap() {
        batch.clear();
        let row = row.to_vec();
        batch.start_row(&row);
        scanner.read_row(&mut batch).unwrap();
        assert!(batch.cell_count() > 0, "a row that was announced has no cell");
        found.push(take(&batch));
    }
    if reverse {
        found.reverse();
    }
    found.concat()
}

fn check_reads(
    store: &FamilyStore,
    cells: &[Cell],
    spec: &ReadSpec,
    staged: Option<&Arc<Memstore>>,
) {
    let view = store.view();
    let expected = model(cells, view.family(), spec);
    let context = format!("{spec:?}");
    assert_eq!(scan(&view, spec, staged, (b"", None), false), expected, "forward, {context}");
    assert_eq!(scan(&view, spec, staged, (b"", None), true), expected, "reverse, {context}");
    let part: Vec<Found> = expected
        .iter()
        .filter(|cell| cell.0 >= b"b".to_vec() && cell.0 < b"d".to_vec())
        .cloned()
        .collect();
    for reverse in [false, true] {
        assert_eq!(scan(&view, spec, staged, (b"b", Some(b"d")), reverse), part, "{context}");
    }
    for row in [b"a", b"c"] {
        let mut batch = CellBatch::new();
        batch.start_row(row);
        let any = view.get(row, spec, staged.map(|staged| &**staged), &mut batch).unwrap();
        let of_row: Vec<Found> = expected.iter().filter(|cell| cell.0 == row).cloned().collect();
        assert_eq!(any, !of_row.is_empty());
        assert_eq!(if any { take(&batch) } else { Vec::new() }, of_row, "get, {context}");
    }
    // A skip scan: from each row it seeks past the next.
    let mut scanner = view.scanner(b"", None, false, spec, staged.cloned()).unwrap();
    scanner.seek(b"b").unwrap();
    let first = scanner.peek_row().unwrap().map(<[u8]>::to_vec);
    let expected_first = expected.iter().map(|cell| &cell.0).find(|row| ***row >= b"b"[..]);
    assert_eq!(first.as_ref(), expected_first);
    let mut scanner = view.scanner(b"", None, true, spec, staged.cloned()).unwrap();
    scanner.seek(b"c").unwrap();
    let first = scanner.peek_row().unwrap().map(<[u8]>::to_vec);
    let expected_first = expected.iter().map(|cell| &cell.0).rfind(|row| ***row <= b"c"[..]);
    assert_eq!(first.as_ref(), expected_first);
}

/// What happens to a store.
#[derive(Debug, Clone)]
enum Event {
    /// Row, qualifier, timestamp, type, and whether a new commit begins.
    Write(u8, u8, i64, CellType, bool),
    Flush,
    Compact(bool),
    /// Open snapshots end: rewrites may forget what only they could see.
    Advance,
    Reopen,
}

fn cell_type(exact: bool) -> BoxedStrategy<CellType> {
    let ranges = prop_oneof![
        6 => Just(CellType::Put),
        1 => Just(CellType::DeleteColumn),
        1 => Just(CellType::DeleteFamily),
    ];
    let points = prop_oneof![Just(CellType::Delete), Just(CellType::DeleteFamilyVersion)];
    if exact { prop_oneof![4 => ranges, 1 => points].boxed() } else { ranges.boxed() }
}

fn event(exact: bool) -> impl Strategy<Value = Event> {
    prop_oneof![
        20 => (0..4_u8, 0..3_u8, 1..7_i64, cell_type(exact), any::<bool>())
            .prop_map(|(row, qualifier, at, kind, new)| {
                Event::Write(row, qualifier, at * 100_000, kind, new)
            }),
        3 => Just(Event::Flush),
        2 => any::<bool>().prop_map(Event::Compact),
        2 => Just(Event::Advance),
        1 => Just(Event::Reopen),
    ]
}

fn family() -> impl Strategy<Value = FamilyDescriptor> {
    let keep = prop_oneof![
        3 => Just(KeepDeletedCells::False),
        1 => Just(KeepDeletedCells::True),
        1 => Just(KeepDeletedCells::Ttl),
    ];
    let bloom =
        prop_oneof![Just(BloomFilter::None), Just(BloomFilter::Row), Just(BloomFilter::RowCol)];
    // Cells have timestamps from 100,000 to 600,000; it is 1,000,000 now.
    let ttl = prop_oneof![2 => Just(None), 1 => Just(Some(Duration::from_micros(650_000)))];
    (1..4_u32, 0..3_u32, ttl, keep, bloom, any::<bool>()).prop_map(
        |(versions, min_versions, ttl, keep_deleted_cells, bloom_filter, lz4)| FamilyDescriptor {
            versions,
            min_versions: min_versions.min(versions),
            ttl,
            keep_deleted_cells,
            bloom_filter,
            compression: if lz4 { Compression::Lz4 } else { Compression::None },
            // So small that a block holds few cells.
            block_bytes: 120,
            ..FamilyDescriptor::new("f")
        },
    )
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
        // Expiry happens in time and the rest in history: which MIN_VERSIONS a marker of one version
        // leaves depends on when the others were dropped.
        let exact = family.min_versions == 0 || family.ttl.is_none();
        let events = prop::collection::vec(event(exact), 1..60);
        (Just(family), events, prop::collection::vec(read(), 1..4))
    })
}

fn flush(store: &FamilyStore, newest: u64, oldest_snapshot: u64) {
    store.rotate(Sequence(newest));
    if let Some(outcome) = store.flush(Sequence(oldest_snapshot)).unwrap() {
        assert_eq!(outcome.flushed, Sequence(newest));
        store.install_flush(&outcome).unwrap();
        store.install_flush(&outcome).unwrap();
    }
}

fn compact(store: &FamilyStore, major: bool, oldest_snapshot: u64) {
    if let Some(outcome) = store.compact(major, Sequence(oldest_snapshot)).unwrap() {
        store.install_compaction(&outcome).unwrap();
    }
}

fn run(family: &FamilyDescriptor, events: &[Event], reads: &[Read]) {
    let env = FaultEnv::new(1);
    let mut store = open(&env, family, &[]);
    let mut cells: Vec<Cell> = Vec::new();
    let (mut newest, mut oldest_snapshot) = (1, 0);
    let spec = |read: &Read, newest: u64, oldest_snapshot: u64| ReadSpec {
        snapshot: Sequence(newest.saturating_sub(read.age).max(oldest_snapshot)),
        staged_through: Sequence(0),
        time_range: TimeRange { min: Timestamp(read.min), max: Timestamp(read.max) },
        max_versions: read.max_versions,
        raw: false,
        now_micros: NOW,
    };
    for event in events {
        match event {
            Event::Write(row, qualifier, at, kind, new_commit) => {
                // One commit writes a cell once.
                let again = |cell: &Cell| cell.sequence.0 == newest && cell.row == [b'a' + row];
                if *new_commit || cells.iter().any(again) {
                    newest += 1;
                }
                let cell = cell(*row, *qualifier, *at, newest, *kind);
                store.apply(std::slice::from_ref(&cell));
                cells.push(cell);
                continue;
            }
            Event::Flush => {
                flush(&store, newest, oldest_snapshot);
                newest += 1;
            }
            Event::Compact(major) => compact(&store, *major, oldest_snapshot),
            Event::Advance => oldest_snapshot = newest,
            Event::Reopen => {
                flush(&store, newest, oldest_snapshot);
                newest += 1;
                let files = store.files();
                drop(store);
                store = open(&env, family, &files);
            }
        }
        for read in reads {
            check_reads(&store, &cells, &spec(read, newest, oldest_snapshot), None);
        }
    }
    let check = |store: &FamilyStore, oldest_snapshot| {
        for read in reads {
            check_reads(store, &cells, &spec(read, newest, oldest_snapshot), None);
        }
    };
    check(&store, oldest_snapshot);
    flush(&store, newest, oldest_snapshot);
    check(&store, oldest_snapshot);
    compact(&store, false, oldest_snapshot);
    check(&store, oldest_snapshot);
    compact(&store, true, newest);
    check(&store, newest);
    // What is on disk is what is listed.
    assert_eq!(env.list("/r1".as_ref()).unwrap().len(), store.files().len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn answers_do_not_depend_on_flushes_and_compactions((family, events, reads) in case()) {
        run(&family, &events, &reads);
    }

    /// Staged cells are commits that follow the snapshot; `staged_through` cuts them.
    #[test]
    fn staged_cells_are_seen_by_their_owner(
        family in family(),
        writes in prop::collection::vec((0..4_u8, 0..3_u8, 1..7_i64, cell_type(true)), 1..30),
        committed in 0..30_usize,
        through in 0..30_u64,
        read in read(),
    ) {
        let env = FaultEnv::new(1);
        let store = open(&env, &family, &[]);
        let staged = Arc::new(Memstore::new());
        let mut cells = Vec::new();
        for (index, (row, qualifier, at, kind)) in writes.into_iter().enumerate() {
            let sequence = index as u64 + 1;
            if index < committed {
                cells.push(cell(row, qualifier, at * 100_000, sequence, kind));
                store.apply(&cells[index..]);
            } else {
                let at = if at == 6 { i64::MAX } else { at * 100_000 };
                cells.push(cell(row, qualifier, at, Sequence::STAGED | sequence, kind));
                staged.insert_cells(&cells[index..]);
            }
        }
        let spec = ReadSpec {
            snapshot: Sequence(30),
            staged_through: Sequence(Sequence::STAGED | through),
            time_range: TimeRange { min: Timestamp(read.min), max: Timestamp(read.max) },
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
    }
}
