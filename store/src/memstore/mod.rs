//! The memstore: the newest cells of one store, sorted, in memory.
//!
//! Also holds the staged cells of an open transaction, whose sequences have
//! [`Sequence::STAGED`](crate::cell::Sequence::STAGED) set.
//!
//! ```text
//!   insert --> writer's lock --> tree ------------------------> cursors, without locks
//!                                 nodes and cells in an arena
//! ```
//!
//! A B+-tree over an arena of chunks: one writer at a time adds cells and nodes, readers never
//! wait (see `tree` and `node`), and all memory is freed together with the memstore. A cursor
//! returns keys and values in the arena. docs/decisions/0005-memstore.md has the reasons for this
//! structure.
//!
//! # Invariants
//!
//! 1. A cell never changes; a cell with the same key replaces it.
//! 2. The bytes in use only grow while the memstore lives: replaced and removed cells are freed
//!    with it.
//!
//! A node asserts 1 when it replaces a cell, in debug builds.

mod arena;
mod cursor;
mod leaf_cells;
mod node;
mod prefix;
mod sync;
mod tree;

use std::convert::Infallible;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64};

use crate::cell::{CellType, KEY_TAIL_BYTES, KeyParts, Sequence, Timestamp};
use crate::scan::merge::Cursor;
use tree::{Growth, Tree};

pub use arena::{PoolPermit, release_spare};
pub use cursor::{MemstoreCursor, MemstoreHandle};

/// Cells that a batch inserts before it releases the lock to other writers.
const LOCKED_CELLS_MAX: usize = 256;

/// Returns a distinct bit for a type: the codes are below 16.
fn type_bit(cell_type: CellType) -> u16 {
    1 << cell_type as u8
}

/// Sorted cells in memory.
#[derive(Default)]
pub struct Memstore {
    tree: Tree,
    used_bytes: AtomicU64,
    held_bytes: AtomicU64,
    cell_count: AtomicU64,
    /// Bits of the cell types that were ever inserted.
    types: AtomicU16,
    /// True if a cell of a column with a higher timestamp may have a lower sequence: clients can
    /// choose timestamps.
    has_own_timestamps: AtomicBool,
}

impl Memstore {
    /// Returns an empty memstore; it holds no memory.
    pub fn new() -> Memstore {
        Memstore::default()
    }

    /// Inserts a cell. It replaces one with the same key.
    pub fn insert(&self, cell: &KeyParts<'_>, value: &[u8]) {
        self.note_own_timestamp();
        self.note_type(cell.cell_type);
        self.count(self.tree.insert(std::iter::once((*cell, value))));
    }

    /// Inserts cells, fastest if they are in order. Readers may see some of them before the others.
    pub fn insert_all<'a>(&self, cells: impl Iterator<Item = (KeyParts<'a>, &'a [u8])>) {
        self.note_own_timestamp();
        self.insert_noted(cells);
    }

    /// As [`Memstore::insert_all`], with the cells of a commit and its time, which is above that
    /// of every earlier commit.
    pub fn insert_commit<'a>(
        &self,
        cells: impl Iterator<Item = (KeyParts<'a>, &'a [u8])>,
        time: Timestamp,
    ) {
        self.insert_noted(cells.inspect(|(key, _)| {
            if key.timestamp != time {
                self.note_own_timestamp();
            }
        }));
    }

    fn insert_noted<'a>(&self, cells: impl Iterator<Item = (KeyParts<'a>, &'a [u8])>) {
        let mut cells = cells.inspect(|(key, _)| self.note_type(key.cell_type)).peekable();
        while cells.peek().is_some() {
            self.count(self.tree.insert(cells.by_ref().take(LOCKED_CELLS_MAX)));
        }
    }

    fn count(&self, growth: Growth) {
        debug_assert!(growth.used_bytes <= growth.held_bytes, "more is used than is held");
        // A reader of the count must find as many cells.
        self.cell_count.fetch_add(growth.cells, Release);
        // Writers may be here in another order than they inserted; the bytes never shrink.
        self.used_bytes.fetch_max(growth.used_bytes, Relaxed);
        self.held_bytes.fetch_max(growth.held_bytes, Relaxed);
    }

    /// Records, before the insert, that a cell has another timestamp than its commit.
    fn note_own_timestamp(&self) {
        if !self.has_own_timestamps.load(Relaxed) {
            self.has_own_timestamps.store(true, Release);
        }
    }

    fn note_type(&self, cell_type: CellType) {
        let bit = type_bit(cell_type);
        if self.types.load(Relaxed) & bit == 0 {
            self.types.fetch_or(bit, Relaxed);
        }
    }

    /// Returns whether a cell of this type was ever inserted.
    pub fn had(&self, cell_type: CellType) -> bool {
        self.types.load(Relaxed) & type_bit(cell_type) != 0
    }

    /// Returns whether a family marker was ever inserted.
    pub fn had_family_markers(&self) -> bool {
        self.had(CellType::DeleteFamily) || self.had(CellType::DeleteFamilyVersion)
    }

    /// Returns the bytes in use: of all cells ever inserted, with their lengths, padding and
    /// nodes. They decide about flushes.
    pub fn byte_count(&self) -> u64 {
        self.used_bytes.load(Relaxed)
    }

    /// Returns the bytes of memory held: those in use, and the free ones of its chunks.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Relaxed)
    }

    /// Returns the number of cells.
    pub fn cell_count(&self) -> u64 {
        self.cell_count.load(Acquire)
    }

    /// Returns whether there is no cell.
    pub fn is_empty(&self) -> bool {
        self.cell_count() == 0
    }

    /// Removes all cells whose sequence is `from` or above: the rollback to a savepoint. Visits
    /// every cell. Their bytes stay in use.
    pub fn remove_from(&self, from: Sequence) {
        let removed = self
            .tree
            .retain(|cell| KeyParts::decode(cell.key()).is_none_or(|parts| parts.sequence < from));
        let before = self.cell_count.fetch_sub(removed, Relaxed);
        debug_assert!(removed <= before, "more cells are removed than there are");
    }

    /// Returns the approximate bytes in use, without those of removed cells. Visits every cell.
    pub fn live_bytes(&self) -> u64 {
        /// Lengths and padding of a cell, and its share of a node.
        const CELL_OVERHEAD_BYTES: usize = 40;
        let mut live = 0;
        self.for_each(|key, value| {
            let key_bytes = key.row.len() + key.qualifier.len() + KEY_TAIL_BYTES;
            live += (key_bytes + value.len() + CELL_OVERHEAD_BYTES) as u64;
        });
        live
    }

    /// Returns a memstore of the same cells without the memory of removed ones.
    #[must_use]
    pub fn copy(&self) -> Memstore {
        let copy = Memstore::new();
        self.for_each(|key, value| copy.insert(&key, value));
        copy
    }

    /// Calls `visit` with every cell, in cell order.
    pub fn for_each(&self, mut visit: impl FnMut(KeyParts<'_>, &[u8])) {
        let Ok(()) = self.try_for_each(|key, value| -> Result<(), Infallible> {
            visit(key, value);
            Ok(())
        });
    }

    /// Calls `visit` with every cell, in cell order, up to its first error.
    ///
    /// # Errors
    ///
    /// That error.
    pub fn try_for_each<E>(
        &self,
        mut visit: impl FnMut(KeyParts<'_>, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut cursor = MemstoreCursor::forward(self, &[]);
        while let Some(key) = cursor.key() {
            if let Some(parts) = KeyParts::decode(key) {
                visit(parts, cursor.value())?;
            }
            if cursor.advance().is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the highest sequence of any cell of a row. Reads the first cell of each column, or
    /// all cells if clients have chosen timestamps.
    pub fn newest_sequence(&self, row: &[u8]) -> Option<Sequence> {
        let is_ordered = !self.has_own_timestamps.load(Acquire);
        let mut cursor = MemstoreCursor::over_row(self, row);
        let mut newest = None;
        while let Some(parts) = cursor.key().and_then(KeyParts::decode) {
            newest = newest.max(Some(parts.sequence));
            let moved = if is_ordered { cursor.skip_column() } else { cursor.advance() };
            if moved.is_err() {
                break;
            }
        }
        newest
    }

    /// Returns whether all cells are of rows below this one.
    pub fn ends_before(&self, row: &[u8]) -> bool {
        self.is_empty() || MemstoreCursor::forward(self, row).key().is_none()
    }

    /// Returns the lowest sequence above `after` of the matching cells of a row.
    pub fn next_sequence(
        &self,
        row: &[u8],
        after: Sequence,
        wanted: impl Fn(CellType) -> bool,
    ) -> Option<Sequence> {
        let mut cursor = MemstoreCursor::over_row(self, row);
        let mut next: Option<Sequence> = None;
        while let Some(parts) = cursor.key().and_then(KeyParts::decode) {
            if parts.sequence > after && wanted(parts.cell_type) {
                next = Some(next.map_or(parts.sequence, |next| next.min(parts.sequence)));
            }
            if cursor.advance().is_err() {
                break;
            }
        }
        next
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
