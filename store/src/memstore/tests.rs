//! Tests of the memstore against a sorted map, and of its statistics.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::cell::{Cell, SearchKey, Timestamp, column_of, compare_keys, row_of};
use crate::scan::merge::RowOrder;

/// A key that compares in cell order.
#[derive(Clone, PartialEq, Eq)]
struct Key(Vec<u8>);

impl Ord for Key {
    fn cmp(&self, other: &Key) -> std::cmp::Ordering {
        compare_keys(&self.0, &other.0)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Expected content of a memstore.
#[derive(Default, Clone)]
struct Model(BTreeMap<Key, Vec<u8>>);

impl Model {
    /// Returns the cells in the order of a scan.
    fn ordered(&self, order: RowOrder) -> Vec<(&[u8], &[u8])> {
        let mut cells: Vec<_> =
            self.0.iter().map(|(key, value)| (&key.0[..], &value[..])).collect();
        cells.sort_by(|a, b| order.compare(a.0, b.0));
        cells
    }
}

fn parts<'a>(row: &'a [u8], qualifier: &'a [u8], version: u64) -> KeyParts<'a> {
    KeyParts {
        row,
        qualifier,
        timestamp: Timestamp(version as i64 / 2),
        sequence: Sequence(version),
        cell_type: CellType::Put,
    }
}

fn put(memstore: &Memstore, row: &str, qualifier: &str, sequence: u64, value: &str) {
    memstore.insert(&parts(row.as_bytes(), qualifier.as_bytes(), sequence), value.as_bytes());
}

fn collect(cursor: &mut dyn Cursor) -> Vec<String> {
    let mut found = Vec::new();
    while let Some(key) = cursor.key() {
        let parts = KeyParts::decode(key).unwrap();
        found.push(format!(
            "{}:{}@{}",
            String::from_utf8_lossy(parts.row),
            String::from_utf8_lossy(parts.qualifier),
            parts.sequence.0
        ));
        cursor.advance().unwrap();
    }
    found
}

#[test]
fn newest_row_sequence_is_taken_from_first_cells() {
    let memstore = Memstore::new();
    let cell = |qualifier: &'static str, timestamp, sequence| KeyParts {
        row: b"r",
        qualifier: qualifier.as_bytes(),
        timestamp: Timestamp(timestamp),
        sequence: Sequence(sequence),
        cell_type: CellType::Put,
    };
    let commit = |cells: &[KeyParts<'static>], time| {
        let cells = cells.iter().map(|cell| (*cell, b"v".as_slice()));
        memstore.insert_commit(cells, Timestamp(time));
    };
    // Applied in another order than they were committed.
    for sequence in (1..500).rev() {
        commit(&[cell("q", sequence, sequence as u64)], sequence);
    }
    commit(&[cell("s", 777, 777), cell("t", 777, 777)], 777);
    commit(&[cell("q", 600, 600), cell("t", 600, 600)], 600);
    assert_eq!(memstore.newest_sequence(b"r"), Some(Sequence(777)));
    commit(&[cell("q", 3, 900)], 900);
    assert_eq!(memstore.newest_sequence(b"r"), Some(Sequence(900)));
}

#[test]
fn cursors_traverse_leaves_in_both_directions() {
    let memstore = Arc::new(Memstore::new());
    let mut expected = Vec::new();
    let (rows, versions) = if cfg!(miri) { (50, 5) } else { (400_u64, 40) };
    for row in 0..rows {
        for version in 0..row % versions + 1 {
            put(&memstore, &format!("{row:04}"), "q", version, "v");
        }
        expected.push(
            (0..row % versions + 1).rev().map(|v| format!("{row:04}:q@{v}")).collect::<Vec<_>>(),
        );
    }
    let forward = collect(&mut MemstoreCursor::forward(memstore.clone(), b""));
    assert_eq!(forward, expected.concat());
    expected.reverse();
    let reverse = collect(&mut MemstoreCursor::reverse(memstore.clone(), None));
    assert_eq!(reverse, expected.concat());
    let last = expected.len() - 3;
    let reverse = collect(&mut MemstoreCursor::reverse(memstore.clone(), Some(b"0003")));
    assert_eq!(reverse, expected[last..].concat());
    let mut cursor = MemstoreCursor::reverse(memstore.clone(), None);
    cursor.seek_row(b"0002x").unwrap();
    assert_eq!(collect(&mut cursor), expected[last..].concat());
    let one = collect(&mut MemstoreCursor::over_row(&*memstore, b"0039"));
    assert_eq!(one, expected[rows as usize - 40]);
    assert_eq!(memstore.newest_sequence(b"0039"), Some(Sequence(39 % versions)));
    assert_eq!(memstore.newest_sequence(b"0039x"), None);
    assert_eq!(memstore.newest_sequence(b"9"), None);
}

#[test]
fn cursor_skips_long_columns_and_rows() {
    let memstore = Memstore::new();
    let versions = if cfg!(miri) { 30 } else { 1000 };
    for sequence in 0..versions {
        put(&memstore, "r", "a", sequence, "v");
        put(&memstore, "r", "b", sequence, "v");
    }
    put(&memstore, "s", "a", 5, "v");
    for order in [RowOrder::Forward, RowOrder::Reverse] {
        let begin = || match order {
            RowOrder::Forward => MemstoreCursor::forward(&memstore, b"r"),
            RowOrder::Reverse => MemstoreCursor::reverse(&memstore, Some(b"s")),
        };
        let expected = (order == RowOrder::Forward).then_some(&b"s"[..]);
        let mut cursor = begin();
        cursor.skip_column().unwrap();
        let parts = KeyParts::decode(cursor.key().unwrap()).unwrap();
        assert_eq!((parts.qualifier, parts.sequence), (&b"b"[..], Sequence(versions - 1)));
        cursor.skip_column().unwrap();
        assert_eq!(cursor.key().map(row_of), expected);
        let mut cursor = begin();
        cursor.seek_column(b"aa").unwrap();
        assert_eq!(cursor.key().map(column_of), Some((&b"r"[..], &b"b"[..])));
        cursor.skip_row().unwrap();
        assert_eq!(cursor.key().map(row_of), expected);
    }
}

#[test]
fn memstore_byte_count_is_exact() {
    let memstore = Memstore::new();
    assert_eq!((memstore.byte_count(), memstore.held_bytes()), (0, 0));
    let size = |row: usize, value: usize| (8 + row + 1 + 19 + value).next_multiple_of(8) as u64;
    let node = size_of::<node::Node>() as u64;
    put(&memstore, "r", "q", 1, "value");
    let mut expected = node + size(1, 5);
    assert_eq!((memstore.byte_count(), memstore.held_bytes()), (expected, 1 << 10));
    put(&memstore, "r", "q", 1, "longer value");
    put(&memstore, "r", "q", Sequence::STAGED | 7, "x");
    expected += size(1, 12) + size(1, 1);
    assert_eq!((memstore.byte_count(), memstore.held_bytes()), (expected, 1 << 10));
    assert_eq!(memstore.cell_count(), 2);
    let large = vec![7; 3 << 20];
    memstore.insert(&parts(b"s", b"q", 1), &large);
    assert_eq!(memstore.byte_count(), expected + size(1, 3 << 20));
    assert_eq!(memstore.held_bytes(), (1 << 10) + size(1, 3 << 20));
    let cursor = MemstoreCursor::over_row(&memstore, b"s");
    assert_eq!(cursor.value(), large);
    memstore.remove_from(Sequence(Sequence::STAGED | 7));
    assert_eq!(memstore.cell_count(), 2);
    memstore.remove_from(Sequence(0));
    assert!(memstore.is_empty());
    assert!(MemstoreCursor::forward(&memstore, b"").key().is_none());
    assert!(MemstoreCursor::reverse(&memstore, None).key().is_none());
}

#[test]
fn arena_overhead_is_bounded() {
    let memstore = Memstore::new();
    let mut cells = 0_u64;
    while memstore.byte_count() < if cfg!(miri) { 20 << 10 } else { 9 << 20 } {
        put(&memstore, &format!("{:08}", cells * 7919 % 1_000_003), "q", cells, &"v".repeat(100));
        cells += 1;
        let (used, held) = (memstore.byte_count(), memstore.held_bytes());
        assert!(used <= held && held <= (used * 5 / 2).max(1 << 10), "{used} of {held}");
        assert!(held <= used + (2 << 20) + (64 << 10), "{used} of {held}");
    }
    assert_eq!(memstore.cell_count(), cells);
}

/// Rows and qualifiers of few letters, so that many share prefixes, some longer than eight bytes.
fn bytes(length: usize) -> impl Strategy<Value = Vec<u8>> {
    let letter = prop_oneof![Just(0_u8), Just(b'a'), Just(b'b'), Just(0xff)];
    let shared = prop_oneof![Just(0_usize), Just(7), Just(8), Just(13)];
    (shared, prop::collection::vec(letter, 0..length)).prop_map(|(shared, mut rest)| {
        let mut bytes = vec![b'x'; shared];
        bytes.append(&mut rest);
        bytes
    })
}

#[derive(Debug, Clone)]
enum Step {
    Insert {
        row: Vec<u8>,
        qualifier: Vec<u8>,
        version: u64,
    },
    /// Ascending rows after this one.
    Run {
        row: Vec<u8>,
        count: usize,
    },
    RemoveFrom(u64),
    /// Reads all cells, and moves the cursors.
    Check {
        row: Vec<u8>,
        qualifier: Vec<u8>,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        40 => (bytes(4), bytes(3), 0..60_u64)
            .prop_map(|(row, qualifier, version)| Step::Insert { row, qualifier, version }),
        10 => (0..60_u64).prop_map(|version| Step::Insert {
            row: b"xxxxxxxxxxxxxhot".to_vec(),
            qualifier: b"counter".to_vec(),
            version,
        }),
        2 => (bytes(3), 0..70_usize).prop_map(|(row, count)| Step::Run { row, count }),
        1 => (40..60_u64).prop_map(Step::RemoveFrom),
        2 => (bytes(4), bytes(3)).prop_map(|(row, qualifier)| Step::Check { row, qualifier }),
    ]
}

fn encoded(parts: &KeyParts<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    parts.encode(&mut key);
    key
}

/// Compares a cursor with the expected cells, for all moves of a cursor.
fn check_moves(
    cursor: &mut dyn Cursor,
    expected: &[(&[u8], &[u8])],
    order: RowOrder,
    (row, qualifier): (&[u8], &[u8]),
) {
    let mut at = 0;
    for turn in 0.. {
        assert_eq!(cursor.key(), expected.get(at).map(|cell| cell.0));
        assert_eq!(cursor.value(), expected.get(at).map_or(&b""[..], |cell| cell.1));
        let Some(&(key, _)) = expected.get(at) else { return };
        let find = |is_there: &dyn Fn(&[u8]) -> bool| {
            (at + 1..expected.len()).find(|&at| is_there(expected[at].0)).unwrap_or(expected.len())
        };
        at = match turn % 7 {
            2 => {
                cursor.skip_column().unwrap();
                find(&|other| column_of(other) != column_of(key))
            }
            4 => {
                cursor.seek_column(qualifier).unwrap();
                match column_of(key).1 >= qualifier {
                    true => at,
                    false => find(&|other| {
                        row_of(other) != row_of(key) || column_of(other).1 >= qualifier
                    }),
                }
            }
            5 if turn % 3 == 0 => {
                cursor.skip_row().unwrap();
                find(&|other| row_of(other) != row_of(key))
            }
            6 if turn == 6 => {
                cursor.seek_row(row).unwrap();
                let is_there = |other: &[u8]| match order {
                    RowOrder::Forward => row_of(other) >= row,
                    RowOrder::Reverse => row_of(other) < row,
                };
                (0..expected.len()).find(|&at| is_there(expected[at].0)).unwrap_or(expected.len())
            }
            _ => {
                cursor.advance().unwrap();
                at + 1
            }
        };
    }
}

fn check(memstore: &Memstore, model: &Model, row: &[u8], qualifier: &[u8]) {
    let forward = model.ordered(RowOrder::Forward);
    let reverse = model.ordered(RowOrder::Reverse);
    assert_eq!(memstore.cell_count(), forward.len() as u64);
    let after: Vec<_> = forward.iter().filter(|cell| row_of(cell.0) >= row).copied().collect();
    let before: Vec<_> = reverse.iter().filter(|cell| row_of(cell.0) < row).copied().collect();
    let same: Vec<_> = forward.iter().filter(|cell| row_of(cell.0) == row).copied().collect();
    let place = (row, qualifier);
    check_moves(&mut MemstoreCursor::forward(memstore, b""), &forward, RowOrder::Forward, place);
    check_moves(&mut MemstoreCursor::reverse(memstore, None), &reverse, RowOrder::Reverse, place);
    let mut cursor = MemstoreCursor::forward(memstore, row);
    for expected in after {
        assert_eq!((cursor.key(), cursor.value()), (Some(expected.0), expected.1));
        cursor.advance().unwrap();
    }
    assert_eq!(cursor.key(), None);
    let mut cursor = MemstoreCursor::reverse(memstore, Some(row));
    for expected in before {
        assert_eq!((cursor.key(), cursor.value()), (Some(expected.0), expected.1));
        cursor.advance().unwrap();
    }
    assert_eq!(cursor.key(), None);
    let mut cursor = MemstoreCursor::over_row(memstore, row);
    for expected in &same {
        assert_eq!((cursor.key(), cursor.value()), (Some(expected.0), expected.1));
        cursor.advance().unwrap();
    }
    assert_eq!(cursor.key(), None);
    let newest = same.iter().filter_map(|cell| KeyParts::decode(cell.0)).map(|p| p.sequence).max();
    assert_eq!(memstore.newest_sequence(row), newest);
    let mut cursor = MemstoreCursor::over_row(memstore, row);
    cursor.seek_column(qualifier).unwrap();
    let found = same.iter().find(|cell| column_of(cell.0).1 >= qualifier);
    assert_eq!(cursor.key(), found.map(|cell| cell.0));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 64 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn memstore_matches_sorted_map_model(steps in prop::collection::vec(step(), 0..if cfg!(miri) { 40 } else { 600 })) {
        let memstore = Memstore::new();
        let mut model = Model::default();
        for (number, step) in steps.into_iter().enumerate() {
            let value = number.to_string().into_bytes();
            match step {
                Step::Insert { row, qualifier, version } => {
                    let parts = parts(&row, &qualifier, version);
                    memstore.insert(&parts, &value);
                    model.0.insert(Key(encoded(&parts)), value);
                }
                Step::Run { row, count } => {
                    let cells: Vec<Cell> = (0..count).map(|at| {
                        let mut row = SearchKey::from_slice(&row);
                        row.extend_from_slice(&(at as u16).to_be_bytes());
                        Cell {
                            row: row.to_vec(),
                            family: 0,
                            qualifier: b"q".to_vec(),
                            timestamp: Timestamp(1),
                            sequence: Sequence(1),
                            cell_type: CellType::Put,
                            value: value.clone(),
                        }
                    }).collect();
                    memstore.insert_all(cells.iter().map(|cell| (cell.key_parts(), &cell.value[..])));
                    for cell in &cells {
                        model.0.insert(Key(encoded(&cell.key_parts())), cell.value.clone());
                    }
                }
                Step::RemoveFrom(version) => {
                    memstore.remove_from(Sequence(version));
                    model.0.retain(|key, _| KeyParts::decode(&key.0).unwrap().sequence.0 < version);
                }
                Step::Check { row, qualifier } => check(&memstore, &model, &row, &qualifier),
            }
        }
        check(&memstore, &model, b"xxxxxxxxxxxxxhot", b"b");
    }
}

/// Readers scan the memstore while writers insert: each sees its cells in order, and all that
/// were inserted before it began.
#[test]
fn concurrent_readers_see_all_earlier_inserts() {
    let memstore = Arc::new(Memstore::new());
    let (writers, cells) = if cfg!(miri) { (2_u64, 60) } else { (4, 6_000) };
    let row = |writer: u64, cell: u64| {
        let number = cell.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16 << 3 | writer;
        format!("shared-prefix-{number:020}")
    };
    std::thread::scope(|scope| {
        let mut writing = Vec::new();
        for writer in 0..writers {
            let memstore = &memstore;
            writing.push(scope.spawn(move || {
                for cell in 0..cells {
                    put(memstore, &row(writer, cell), "q", cell, "value");
                    if cell % 16 == 0 {
                        let back = cell / 2;
                        let found = memstore.newest_sequence(row(writer, back).as_bytes());
                        assert_eq!(found, Some(Sequence(back)));
                    }
                }
            }));
        }
        for order in [RowOrder::Forward, RowOrder::Reverse] {
            let memstore = &memstore;
            scope.spawn(move || {
                loop {
                    let before = memstore.cell_count();
                    let mut cursor = match order {
                        RowOrder::Forward => MemstoreCursor::forward(&**memstore, b""),
                        RowOrder::Reverse => MemstoreCursor::reverse(&**memstore, None),
                    };
                    let (mut found, mut last) = (0, Vec::new());
                    while let Some(key) = cursor.key() {
                        assert!(found == 0 || order.compare(&last, key).is_lt());
                        last.clear();
                        last.extend_from_slice(key);
                        found += 1;
                        cursor.advance().unwrap();
                    }
                    assert!(found >= before, "{found} of {before}");
                    if before == writers * cells {
                        return;
                    }
                }
            });
        }
    });
    assert_eq!(memstore.cell_count(), writers * cells);
}
