//! The memstore: the newest cells of one store, sorted, in memory.
//!
//! Also holds the staged cells of an open transaction, whose sequences have
//! [`Sequence::STAGED`](crate::cell::Sequence::STAGED) set.
//!
//! A B-tree behind a lock: writers hold it for a batch, readers for a few hundred cells, which they
//! copy into a buffer of their own ([`MemstoreCursor`]). A reader is thus never in the way for
//! long, and what is inserted meanwhile is above its snapshot.
//!
//! # Invariants
//!
//! 1. `byte_count` is the sum of [`entry_bytes`] over the cells.
//! 2. An entry never changes; a cell with the same key replaces it.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::{Bound, Deref};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::RwLock;
use smallvec::SmallVec;

use crate::cell::{Cell, CellType, KEY_TAIL_BYTES, KeyParts, SearchKey, Sequence};
use crate::cell::{column_end_key, column_of, column_start_key, compare_keys};
use crate::cell::{row_end_key, row_of, row_start_key};
use crate::error::Result;
use crate::scan::merge::{Cursor, RowOrder};
use crate::scan::retention::Survivors;

/// What a cell costs beside its key and value: its place in the tree and the allocator's header.
const ENTRY_OVERHEAD_BYTES: usize = 64;

/// Cells that a cursor copies at a time: few at first, because many reads want few.
const CHUNK_CELLS_FIRST: usize = 8;
const CHUNK_CELLS_MAX: usize = 256;
/// Bytes at which a chunk ends however few its cells.
const CHUNK_BYTES_MAX: usize = 64 << 10;

/// Sorted cells in memory.
#[derive(Default)]
pub struct Memstore {
    cells: RwLock<BTreeSet<Entry>>,
    byte_count: AtomicU64,
    cell_count: AtomicU64,
    family_marker_count: AtomicU64,
}

/// One cell: key, then value, in one allocation.
struct Entry {
    /// The start of the row: most comparisons end here, without a look at `bytes`.
    prefix: RowPrefix,
    bytes: Box<[u8]>,
    key_length: u32,
}

impl Entry {
    fn key(&self) -> &[u8] {
        &self.bytes[..self.key_length as usize]
    }

    fn value(&self) -> &[u8] {
        &self.bytes[self.key_length as usize..]
    }
}

/// The first 16 bytes of a row, as numbers that order as the bytes do; shorter rows are filled with
/// zeros, so that equal prefixes say nothing and different ones decide.
type RowPrefix = [u64; 2];

fn row_prefix(row: &[u8]) -> RowPrefix {
    let mut bytes = [0; 16];
    let length = row.len().min(bytes.len());
    bytes[..length].copy_from_slice(&row[..length]);
    let prefix = u128::from_be_bytes(bytes);
    [(prefix >> 64) as u64, prefix as u64]
}

/// What can be searched for: an entry or a bare key.
trait Keyed {
    fn prefix(&self) -> RowPrefix;
    fn key(&self) -> &[u8];
}

impl Keyed for Entry {
    fn prefix(&self) -> RowPrefix {
        self.prefix
    }

    fn key(&self) -> &[u8] {
        Entry::key(self)
    }
}

/// A bare key to search for.
struct Probe<'a> {
    prefix: RowPrefix,
    key: &'a [u8],
}

impl<'a> Probe<'a> {
    fn new(key: &'a [u8]) -> Probe<'a> {
        Probe { prefix: row_prefix(row_of(key)), key }
    }
}

impl Keyed for Probe<'_> {
    fn prefix(&self) -> RowPrefix {
        self.prefix
    }

    fn key(&self) -> &[u8] {
        self.key
    }
}

impl Ord for dyn Keyed + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        let prefixes = self.prefix().cmp(&other.prefix());
        prefixes.then_with(|| compare_keys(self.key(), other.key()))
    }
}

impl PartialOrd for dyn Keyed + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn Keyed + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for dyn Keyed + '_ {}

impl<'a> Borrow<dyn Keyed + 'a> for Entry {
    fn borrow(&self) -> &(dyn Keyed + 'a) {
        self
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        let prefixes = self.prefix.cmp(&other.prefix);
        prefixes.then_with(|| compare_keys(self.key(), other.key()))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

/// Returns the bytes by which a cell is accounted for.
pub fn entry_bytes(key_length: usize, value_length: usize) -> u64 {
    (key_length + value_length + ENTRY_OVERHEAD_BYTES) as u64
}

fn new_entry(cell: &KeyParts<'_>, value: &[u8]) -> Entry {
    let key_bytes = cell.row.len() + cell.qualifier.len() + KEY_TAIL_BYTES;
    let mut bytes = Vec::with_capacity(key_bytes + value.len());
    cell.encode(&mut bytes);
    bytes.extend_from_slice(value);
    Entry {
        prefix: row_prefix(cell.row),
        bytes: bytes.into_boxed_slice(),
        key_length: key_bytes as u32,
    }
}

impl Memstore {
    /// Returns an empty memstore; it holds no memory.
    pub fn new() -> Memstore {
        Memstore::default()
    }

    /// Inserts a cell. One with the same key is replaced.
    pub fn insert(&self, cell: &KeyParts<'_>, value: &[u8]) {
        let entry = new_entry(cell, value);
        self.count_family_markers(cell.cell_type);
        self.insert_entries(std::iter::once(entry));
    }

    /// Inserts cells under one lock. Their families are not looked at.
    pub fn insert_cells<'a>(&self, cells: impl IntoIterator<Item = &'a Cell>) {
        let entries: Vec<Entry> = cells
            .into_iter()
            .map(|cell| {
                self.count_family_markers(cell.cell_type);
                new_entry(&cell.key_parts(), &cell.value)
            })
            .collect();
        self.insert_entries(entries.into_iter());
    }

    /// Inserts cells under one lock.
    pub fn insert_all<'a>(&self, cells: impl Iterator<Item = (KeyParts<'a>, &'a [u8])>) {
        let entries: SmallVec<[Entry; 4]> = cells
            .map(|(key, value)| {
                self.count_family_markers(key.cell_type);
                new_entry(&key, value)
            })
            .collect();
        self.insert_entries(entries.into_iter());
    }

    fn insert_entries(&self, entries: impl Iterator<Item = Entry>) {
        let (mut added_bytes, mut removed_bytes, mut added_cells) = (0, 0, 0);
        {
            let mut cells = self.cells.write();
            for entry in entries {
                added_bytes += entry_bytes(entry.key().len(), entry.value().len());
                match cells.replace(entry) {
                    Some(old) => removed_bytes += entry_bytes(old.key().len(), old.value().len()),
                    None => added_cells += 1,
                }
            }
        }
        self.byte_count.fetch_add(added_bytes, Relaxed);
        self.byte_count.fetch_sub(removed_bytes, Relaxed);
        self.cell_count.fetch_add(added_cells, Relaxed);
    }

    fn count_family_markers(&self, cell_type: CellType) {
        if cell_type.is_family_marker() {
            self.family_marker_count.fetch_add(1, Relaxed);
        }
    }

    /// Returns whether a family marker was ever inserted.
    pub fn had_family_markers(&self) -> bool {
        self.family_marker_count.load(Relaxed) > 0
    }

    /// Returns the bytes of all cells, with what holding them costs.
    pub fn byte_count(&self) -> u64 {
        self.byte_count.load(Relaxed)
    }

    /// Returns the number of cells.
    pub fn cell_count(&self) -> u64 {
        self.cell_count.load(Relaxed)
    }

    /// Returns whether there is no cell.
    pub fn is_empty(&self) -> bool {
        self.cell_count() == 0
    }

    /// Removes all cells whose sequence is `from` or above: the way back to a savepoint. Looks at
    /// every cell.
    pub fn remove_from(&self, from: Sequence) {
        let (mut removed_bytes, mut removed_cells) = (0, 0);
        self.cells.write().retain(|entry| {
            let keep = KeyParts::decode(entry.key()).is_none_or(|parts| parts.sequence < from);
            if !keep {
                removed_bytes += entry_bytes(entry.key().len(), entry.value().len());
                removed_cells += 1;
            }
            keep
        });
        self.byte_count.fetch_sub(removed_bytes, Relaxed);
        self.cell_count.fetch_sub(removed_cells, Relaxed);
    }

    /// Calls `visit` with every cell, in cell order, under the read lock.
    pub fn for_each(&self, mut visit: impl FnMut(KeyParts<'_>, &[u8])) {
        for entry in self.cells.read().iter() {
            if let Some(parts) = KeyParts::decode(entry.key()) {
                visit(parts, entry.value());
            }
        }
    }

    /// Returns the cells that a commit of these staged cells consists of, in cell order: without
    /// those that a later write of the same transaction has masked or replaced.
    ///
    /// At commit all cells get one sequence, and a marker masks only what is strictly older; so
    /// what the transaction itself deleted or wrote again must go now.
    pub fn commit_cells(&self, family: u8) -> Vec<Cell> {
        let mut survivors = Survivors::default();
        let mut cells = Vec::with_capacity(self.cell_count() as usize);
        let mut row: Option<Vec<u8>> = None;
        self.for_each(|parts, value| {
            if row.as_deref() != Some(parts.row) {
                survivors.start_row();
                row = Some(parts.row.to_vec());
            }
            if survivors.survives(&parts) {
                cells.push(Cell {
                    row: parts.row.to_vec(),
                    family,
                    qualifier: parts.qualifier.to_vec(),
                    timestamp: parts.timestamp,
                    sequence: parts.sequence,
                    cell_type: parts.cell_type,
                    value: value.to_vec(),
                });
            }
        });
        cells
    }

    /// Returns the highest sequence of any cell of a row.
    pub fn newest_sequence(&self, row: &[u8]) -> Option<Sequence> {
        let start = row_start_key(row);
        let cells = self.cells.read();
        cells
            .range::<dyn Keyed, _>((
                Bound::Included(&Probe::new(&start) as &dyn Keyed),
                Bound::Unbounded,
            ))
            .take_while(|entry| row_of(entry.key()) == row)
            .filter_map(|entry| KeyParts::decode(entry.key()))
            .map(|parts| parts.sequence)
            .max()
    }
}

/// Stands on a copy of a cell of a memstore. `M` is a reference or an `Arc`.
pub struct MemstoreCursor<M> {
    memstore: M,
    order: RowOrder,
    /// Ends with the row it began with.
    one_row: bool,
    /// The cells copied last.
    bytes: Vec<u8>,
    cells: Vec<Copied>,
    /// Index into `cells` of the one it stands on.
    position: usize,
    /// Cells to copy next time.
    chunk_cells: usize,
    /// Nothing is left behind the copied cells.
    exhausted: bool,
}

#[derive(Clone, Copy)]
struct Copied {
    start: u32,
    key_length: u32,
    value_length: u32,
}

impl<M: Deref<Target = Memstore>> MemstoreCursor<M> {
    fn empty(memstore: M, order: RowOrder, one_row: bool) -> MemstoreCursor<M> {
        MemstoreCursor {
            memstore,
            order,
            one_row,
            bytes: Vec::new(),
            cells: Vec::new(),
            position: 0,
            chunk_cells: CHUNK_CELLS_FIRST,
            exhausted: false,
        }
    }

    /// Returns a cursor over the cells of one row. Allocates nothing if there are none.
    pub fn over_row(memstore: M, row: &[u8]) -> MemstoreCursor<M> {
        let mut cursor = MemstoreCursor::empty(memstore, RowOrder::Forward, true);
        let start = row_start_key(row);
        cursor.fill_forward(&start, Some(row));
        cursor
    }

    /// Returns a cursor that begins with the first row at or after `start`.
    pub fn forward(memstore: M, start: &[u8]) -> MemstoreCursor<M> {
        let mut cursor = MemstoreCursor::empty(memstore, RowOrder::Forward, false);
        cursor.fill_forward(&row_start_key(start), None);
        cursor
    }

    /// Returns a cursor that begins with the last row before `stop` and goes back.
    pub fn reverse(memstore: M, stop: Option<&[u8]>) -> MemstoreCursor<M> {
        let mut cursor = MemstoreCursor::empty(memstore, RowOrder::Reverse, false);
        cursor.fill_reverse(None, stop.map(row_start_key));
        cursor
    }

    fn copied_key(&self, copied: Copied) -> &[u8] {
        &self.bytes[copied.start as usize..][..copied.key_length as usize]
    }

    fn begin_chunk(&mut self) {
        self.bytes.clear();
        self.cells.clear();
        self.position = 0;
        self.exhausted = false;
    }

    /// Copies cells after `after`; with `row`, only of that row.
    fn fill_forward(&mut self, after: &[u8], row: Option<&[u8]>) {
        self.begin_chunk();
        let cells = self.memstore.cells.read();
        let range = cells.range::<dyn Keyed, _>((
            Bound::Excluded(&Probe::new(after) as &dyn Keyed),
            Bound::Unbounded,
        ));
        self.exhausted = true;
        for entry in range {
            if row.is_some_and(|row| row_of(entry.key()) != row) {
                break;
            }
            if copy_entry(&mut self.bytes, &mut self.cells, entry, self.chunk_cells) {
                self.exhausted = false;
                break;
            }
        }
        drop(cells);
        self.chunk_cells = (self.chunk_cells * 2).min(CHUNK_CELLS_MAX);
    }

    /// Copies the rest of the row of `after` (if given), then rows that end before `before`.
    fn fill_reverse(&mut self, after: Option<&[u8]>, before: Option<SearchKey>) {
        self.begin_chunk();
        let cells = self.memstore.cells.read();
        let mut full = false;
        if let Some(after) = after {
            let rest = cells
                .range::<dyn Keyed, _>((
                    Bound::Excluded(&Probe::new(after) as &dyn Keyed),
                    Bound::Unbounded,
                ))
                .take_while(|entry| row_of(entry.key()) == row_of(after));
            for entry in rest {
                full = copy_entry(&mut self.bytes, &mut self.cells, entry, self.chunk_cells);
                if full {
                    break;
                }
            }
        }
        let mut before = before;
        while !full {
            let end = before.as_deref().map(Probe::new);
            let last = match &end {
                Some(end) => cells
                    .range::<dyn Keyed, _>((Bound::Unbounded, Bound::Excluded(end as &dyn Keyed)))
                    .next_back(),
                None => cells.last(),
            };
            let Some(last) = last else {
                self.exhausted = true;
                break;
            };
            let row = row_of(last.key());
            let start = row_start_key(row);
            let cells_of_row = cells
                .range::<dyn Keyed, _>((
                    Bound::Excluded(&Probe::new(&start) as &dyn Keyed),
                    Bound::Unbounded,
                ))
                .take_while(|entry| row_of(entry.key()) == row);
            for entry in cells_of_row {
                full = copy_entry(&mut self.bytes, &mut self.cells, entry, self.chunk_cells);
                if full {
                    break;
                }
            }
            before = Some(start);
        }
        drop(cells);
        self.chunk_cells = (self.chunk_cells * 2).min(CHUNK_CELLS_MAX);
    }

    /// Returns the position of the first copied cell ahead for whose key `is_there`.
    fn ahead(&self, is_there: impl Fn(&[u8]) -> bool) -> Option<usize> {
        (self.position + 1..self.cells.len())
            .find(|&index| is_there(self.copied_key(self.cells[index])))
    }

    /// Moves to a copied cell, or else to the first cell after a key.
    fn move_to(&mut self, position: Option<usize>, after: Option<SearchKey>) {
        match (position, after) {
            (Some(position), _) => self.position = position,
            (None, Some(after)) if !self.exhausted => {
                self.chunk_cells = CHUNK_CELLS_FIRST;
                self.refill_after(&after);
            }
            _ => self.position = self.cells.len(),
        }
    }

    fn refill_after(&mut self, after: &[u8]) {
        match self.order {
            RowOrder::Forward => {
                let row = self.one_row.then(|| row_of(after));
                self.fill_forward(after, row);
            }
            RowOrder::Reverse => {
                self.fill_reverse(Some(after), Some(row_start_key(row_of(after))));
            }
        }
    }
}

/// Copies a cell and returns whether the chunk is full now.
fn copy_entry(
    bytes: &mut Vec<u8>,
    cells: &mut Vec<Copied>,
    entry: &Entry,
    chunk_cells: usize,
) -> bool {
    cells.push(Copied {
        start: bytes.len() as u32,
        key_length: entry.key_length,
        value_length: entry.value().len() as u32,
    });
    bytes.extend_from_slice(&entry.bytes);
    cells.len() >= chunk_cells || bytes.len() >= CHUNK_BYTES_MAX
}

impl<M: Deref<Target = Memstore>> Cursor for MemstoreCursor<M> {
    fn key(&self) -> Option<&[u8]> {
        self.cells.get(self.position).map(|&copied| self.copied_key(copied))
    }

    fn value(&self) -> &[u8] {
        self.cells.get(self.position).map_or(&[], |copied| {
            &self.bytes[(copied.start + copied.key_length) as usize..]
                [..copied.value_length as usize]
        })
    }

    fn advance(&mut self) -> Result<()> {
        if self.position + 1 < self.cells.len() || self.exhausted {
            self.position = self.cells.len().min(self.position + 1);
            return Ok(());
        }
        let Some(key) = self.key() else { return Ok(()) };
        let after = SearchKey::from_slice(key);
        self.refill_after(&after);
        Ok(())
    }

    fn skip_column(&mut self) -> Result<()> {
        let Some(key) = self.key() else { return Ok(()) };
        let (row, qualifier) = column_of(key);
        let found = self.ahead(|key| column_of(key) != (row, qualifier));
        let end = found.is_none().then(|| column_end_key(row, qualifier));
        self.move_to(found, end);
        Ok(())
    }

    fn seek_column(&mut self, qualifier: &[u8]) -> Result<()> {
        let Some((row, at)) = self.key().map(column_of) else { return Ok(()) };
        if at >= qualifier {
            return Ok(());
        }
        let found = self.ahead(|key| row_of(key) != row || column_of(key).1 >= qualifier);
        let start = found.is_none().then(|| column_start_key(row, qualifier));
        self.move_to(found, start);
        Ok(())
    }

    fn skip_row(&mut self) -> Result<()> {
        let Some(row) = self.key().map(row_of) else { return Ok(()) };
        let found = self.ahead(|key| row_of(key) != row);
        let bound = match (found, self.order) {
            (Some(_), _) => None,
            (None, RowOrder::Forward) => Some(row_end_key(row)),
            (None, RowOrder::Reverse) => Some(row_start_key(row)),
        };
        match (bound, self.order) {
            (Some(start), RowOrder::Reverse) if !self.exhausted => {
                self.chunk_cells = CHUNK_CELLS_FIRST;
                self.fill_reverse(None, Some(start));
            }
            // Nothing of another row is wanted.
            (Some(_), _) if self.one_row => self.position = self.cells.len(),
            (bound, _) => self.move_to(found, bound),
        }
        Ok(())
    }

    fn seek_row(&mut self, row: &[u8]) -> Result<()> {
        self.chunk_cells = CHUNK_CELLS_FIRST;
        match self.order {
            RowOrder::Forward => {
                let ahead = &self.cells[self.position.min(self.cells.len())..];
                let steps = ahead.partition_point(|&copied| row_of(self.copied_key(copied)) < row);
                // Only forwards, and only if the answer is among the copied cells.
                if 0 < steps && (steps < ahead.len() || self.exhausted) {
                    self.position += steps;
                } else {
                    self.fill_forward(&row_start_key(row), None);
                }
            }
            RowOrder::Reverse => self.fill_reverse(None, Some(row_start_key(row))),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cell::Timestamp;

    fn put(memstore: &Memstore, row: &str, qualifier: &str, sequence: u64, value: &str) {
        let key = KeyParts {
            row: row.as_bytes(),
            qualifier: qualifier.as_bytes(),
            timestamp: Timestamp(sequence as i64),
            sequence: Sequence(sequence),
            cell_type: CellType::Put,
        };
        memstore.insert(&key, value.as_bytes());
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
    fn cursors_go_both_ways_through_many_chunks() {
        let memstore = Arc::new(Memstore::new());
        let mut expected = Vec::new();
        for row in 0..400_u64 {
            for version in 0..row % 40 + 1 {
                put(&memstore, &format!("{row:04}"), "q", version, "v");
            }
            expected.push(
                (0..row % 40 + 1).rev().map(|v| format!("{row:04}:q@{v}")).collect::<Vec<_>>(),
            );
        }
        let forward = collect(&mut MemstoreCursor::forward(memstore.clone(), b""));
        assert_eq!(forward, expected.concat());
        expected.reverse();
        let reverse = collect(&mut MemstoreCursor::reverse(memstore.clone(), None));
        assert_eq!(reverse, expected.concat());
        let reverse = collect(&mut MemstoreCursor::reverse(memstore.clone(), Some(b"0003")));
        assert_eq!(reverse, expected[397..].concat());
        let mut cursor = MemstoreCursor::reverse(memstore.clone(), None);
        cursor.seek_row(b"0002x\0").unwrap();
        assert_eq!(collect(&mut cursor), expected[397..].concat());
        let one = collect(&mut MemstoreCursor::over_row(&*memstore, b"0039"));
        assert_eq!(one, expected[400 - 40]);
        assert_eq!(memstore.newest_sequence(b"0039"), Some(Sequence(39)));
        assert_eq!(memstore.newest_sequence(b"0039x"), None);
    }

    #[test]
    fn columns_are_skipped() {
        let memstore = Memstore::new();
        for sequence in 0..1000 {
            put(&memstore, "r", "a", sequence, "v");
            put(&memstore, "r", "b", sequence, "v");
        }
        put(&memstore, "s", "a", 5, "v");
        for order in [RowOrder::Forward, RowOrder::Reverse] {
            let mut cursor = match order {
                RowOrder::Forward => MemstoreCursor::forward(&memstore, b"r"),
                RowOrder::Reverse => MemstoreCursor::reverse(&memstore, Some(b"s")),
            };
            cursor.skip_column().unwrap();
            let parts = KeyParts::decode(cursor.key().unwrap()).unwrap();
            assert_eq!((parts.qualifier, parts.sequence), (&b"b"[..], Sequence(999)));
            cursor.skip_column().unwrap();
            let expected = (order == RowOrder::Forward).then_some(&b"s"[..]);
            assert_eq!(cursor.key().map(row_of), expected);
        }
    }

    #[test]
    fn bytes_are_accounted_for_exactly() {
        let memstore = Memstore::new();
        put(&memstore, "r", "q", 1, "value");
        put(&memstore, "r", "q", 1, "longer value");
        put(&memstore, "r", "q", Sequence::STAGED | 7, "x");
        assert_eq!(memstore.cell_count(), 2);
        assert_eq!(memstore.byte_count(), 2 * entry_bytes(2 + 19, 0) + 12 + 1);
        memstore.remove_from(Sequence(Sequence::STAGED | 7));
        assert_eq!(memstore.cell_count(), 1);
        memstore.remove_from(Sequence(0));
        assert_eq!((memstore.byte_count(), memstore.cell_count()), (0, 0));
    }
}
