//! Model checking of the tree: shuttle runs it in many interleavings of its atomic operations.
//!
//! The structure's files are compiled a second time here, with shuttle's atomics and lock and
//! with nodes of three entries, so that a few cells cause splits on several levels. Shuttle
//! interleaves whole operations with sequential consistency; the argument that the weaker
//! orderings suffice is in `node.rs` and `tree.rs`, and Miri tests the real code.

#[path = "arena.rs"]
#[allow(dead_code, clippy::duplicate_mod, reason = "compiled again, for a part of it")]
mod arena;
#[path = "leaf_cells.rs"]
#[allow(dead_code, clippy::duplicate_mod, reason = "compiled again, for a part of it")]
mod leaf_cells;
#[path = "node.rs"]
#[allow(dead_code, clippy::duplicate_mod, reason = "compiled again, for a part of it")]
mod node;
#[path = "prefix.rs"]
#[allow(dead_code, clippy::duplicate_mod, reason = "compiled again, for a part of it")]
mod prefix;
#[path = "tree.rs"]
#[allow(dead_code, clippy::duplicate_mod, reason = "compiled again, for a part of it")]
mod tree;

/// Replacement of `super::sync` for the structure.
mod sync {
    pub(super) use shuttle::sync::MutexGuard;
    pub(super) use shuttle::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

    pub(super) const SLOTS: usize = 3;

    pub(super) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(super) fn new(value: T) -> Mutex<T> {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        pub(super) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("no thread panics while it holds the lock")
        }
    }
}

use std::sync::Arc;

use leaf_cells::LeafCells;
use prefix::Probe;
use tree::Tree;

use crate::cell::{CellType, KeyParts, Sequence, Timestamp, row_of};

fn insert(tree: &Tree, row: &str) {
    let key = KeyParts {
        row: row.as_bytes(),
        qualifier: b"",
        timestamp: Timestamp(0),
        sequence: Sequence(1),
        cell_type: CellType::Put,
    };
    tree.insert(std::iter::once((key, &b"value"[..])));
}

/// Returns the rows of the whole tree, forwards.
fn forwards(tree: &Tree) -> Vec<Vec<u8>> {
    let (mut cells, mut rows) = (LeafCells::new(), Vec::new());
    tree.seek(&Probe::row_start(b""), &mut cells);
    while let Some(last) = cells.last() {
        rows.extend(
            (0..cells.len()).filter_map(|at| cells.cell(at)).map(|c| row_of(c.key()).to_vec()),
        );
        cells.go_on(&Probe::key(last.key()));
    }
    rows
}

/// Returns the rows of the whole tree, backwards.
fn backwards(tree: &Tree) -> Vec<Vec<u8>> {
    let (mut cells, mut rows) = (LeafCells::new(), Vec::new());
    tree.seek_before(None, &mut cells);
    while !cells.is_empty() {
        let here = (0..cells.len()).rev().filter_map(|at| cells.cell(at));
        rows.extend(here.map(|cell| row_of(cell.key()).to_vec()));
        cells.go_back();
    }
    rows
}

/// Asserts that rows are in order, without duplicates, and include these.
fn check_rows(rows: &[Vec<u8>], wanted: &[&str]) {
    assert!(rows.is_sorted_by(|a, b| a < b), "{rows:?}");
    assert!(wanted.iter().all(|row| rows.iter().any(|found| found == row.as_bytes())), "{rows:?}");
}

fn has(tree: &Tree, row: &str) -> bool {
    let mut cells = LeafCells::new();
    tree.seek_row(row.as_bytes(), &mut cells);
    cells.cell(0).is_some_and(|cell| row_of(cell.key()) == row.as_bytes())
}

/// Checks that readers see all rows inserted before they began, in order and once, despite a
/// concurrent writer.
fn readers_beside_a_writer(before: &'static [&'static str], during: &'static [&'static str]) {
    let tree = Arc::new(Tree::default());
    for row in before {
        insert(&tree, row);
    }
    let writer = {
        let tree = Arc::clone(&tree);
        shuttle::thread::spawn(move || during.iter().for_each(|row| insert(&tree, row)))
    };
    let reader = {
        let tree = Arc::clone(&tree);
        shuttle::thread::spawn(move || {
            check_rows(&forwards(&tree), before);
        })
    };
    let reverse_reader = {
        let tree = Arc::clone(&tree);
        shuttle::thread::spawn(move || {
            let mut rows = backwards(&tree);
            rows.reverse();
            check_rows(&rows, before);
        })
    };
    assert!(before.iter().all(|row| has(&tree, row)));
    writer.join().expect("the writer does not panic");
    reader.join().expect("the reader does not panic");
    reverse_reader.join().expect("the reader does not panic");
    assert_eq!(forwards(&tree).len(), before.len() + during.len());
    assert!(during.iter().all(|row| has(&tree, row)));
}

/// Shuttle prints the schedule of a failure, which `shuttle::replay` runs again.
fn explore(before: &'static [&'static str], during: &'static [&'static str]) {
    let body = move || readers_beside_a_writer(before, during);
    shuttle::check_random(body, 300);
    shuttle::check_pct(body, 300, 3);
}

/// One split, whose free slot the inserted cell reuses, of a leaf that a reader reaches from the
/// previous one.
#[test]
fn freed_leaf_slot_is_reused_under_concurrent_reader() {
    const BEFORE: [&str; 6] = ["0", "1", "2", "a", "c", "e"];
    let body = || {
        let tree = Arc::new(Tree::default());
        BEFORE.iter().for_each(|row| insert(&tree, row));
        let writer = {
            let tree = Arc::clone(&tree);
            shuttle::thread::spawn(move || insert(&tree, "b"))
        };
        check_rows(&forwards(&tree), &BEFORE);
        writer.join().expect("the writer does not panic");
        assert!(has(&tree, "b"));
    };
    shuttle::check_random(body, 4_000);
    shuttle::check_pct(body, 1_000, 3);
}

#[test]
fn leaf_splits_in_middle_under_reader() {
    explore(&["b", "d", "f", "h", "j", "l", "n"], &["c", "e", "e1", "e2", "i", "g"]);
}

#[test]
fn leaf_and_root_split_at_end_under_reader() {
    explore(&["a", "b"], &["c", "d", "e", "f", "g", "h"]);
}

#[test]
fn nodes_are_replaced_when_prefix_grows_under_reader() {
    explore(
        &["long-prefix-a", "long-prefix-c", "long-prefix-e", "long-prefix-g"],
        &["long-prefix-i", "long-prefix-k", "long-prefix-b", "long-prefix-d", "long-prefix-d1"],
    );
}
