//! Cursors over a memstore, which return keys and values in its arena without copying.
//!
//! A cursor copies the pointers of a leaf's cells and iterates over them; backwards it visits the
//! cells of each row forwards ([`crate::scan::merge`] gives the reason). Cells inserted meanwhile
//! may or may not be returned: their sequences are above those that the reader sees.

#![allow(unsafe_code, reason = "a cursor holds the memstore into which it points; run under Miri")]

use std::ops::Deref;
use std::sync::Arc;

use super::Memstore;
use super::arena::ArenaCell;
use super::leaf_cells::LeafCells;
use super::prefix::Probe;
use super::tree::Tree;
use crate::cell::{SearchKey, column_of, row_of};
use crate::error::Result;
use crate::scan::merge::Cursor;

/// Reference that keeps a memstore alive.
///
/// # Safety
///
/// As long as a value lives, it dereferences to the same memstore, and that memstore lives.
pub unsafe trait MemstoreHandle: Deref<Target = Memstore> {}

// SAFETY: the reference outlives the value.
unsafe impl MemstoreHandle for &Memstore {}
// SAFETY: the value is one of those that keep the memstore.
unsafe impl MemstoreHandle for Arc<Memstore> {}

/// Cursor on a cell of a memstore.
pub struct MemstoreCursor<M> {
    /// The memstore's tree, which lives as long as `_memstore`. No reference with this lifetime
    /// leaves the cursor: its methods return references with the lifetime of its borrow.
    tree: &'static Tree,
    cells: LeafCells<'static>,
    /// Index into `cells` of the current cell; beyond them at the end.
    position: usize,
    way: CursorDirection,
    _memstore: M,
}

/// Direction and extent of the iteration.
#[derive(Clone, Copy)]
enum CursorDirection {
    /// From cell to cell, to the end.
    Forward,
    /// From cell to cell, to the end of the row.
    OneRow,
    /// Through the copied cells `start..end`, which are a row, and then to the previous row.
    Reverse { start: usize, end: usize },
    /// From cell to cell to the end of a row that spans several leaves, and then to the previous
    /// row.
    ReverseLongRow,
}

impl<M: MemstoreHandle> MemstoreCursor<M> {
    fn new(memstore: M, way: CursorDirection) -> MemstoreCursor<M> {
        let tree: *const Tree = &memstore.tree;
        // SAFETY: the cursor has the handle, so the memstore outlives the cursor; see `tree`.
        let tree = unsafe { &*tree };
        MemstoreCursor { tree, cells: LeafCells::new(), position: 0, way, _memstore: memstore }
    }

    /// Returns a cursor over the cells of one row.
    pub fn over_row(memstore: M, row: &[u8]) -> MemstoreCursor<M> {
        let mut cursor = MemstoreCursor::new(memstore, CursorDirection::OneRow);
        if !cursor.tree.is_outside(row) {
            cursor.tree.seek_row(row, &mut cursor.cells);
            if cursor.current().is_some_and(|cell| row_of(cell.key()) != row) {
                cursor.end();
            }
        }
        cursor
    }

    /// Returns a cursor that begins with the first row at or after `start`.
    pub fn forward(memstore: M, start: &[u8]) -> MemstoreCursor<M> {
        let mut cursor = MemstoreCursor::new(memstore, CursorDirection::Forward);
        cursor.tree.seek(&Probe::row_start(start), &mut cursor.cells);
        cursor
    }

    /// Returns a cursor that begins with the last row before `stop` and moves backwards.
    pub fn reverse(memstore: M, stop: Option<&[u8]>) -> MemstoreCursor<M> {
        let mut cursor =
            MemstoreCursor::new(memstore, CursorDirection::Reverse { start: 0, end: 0 });
        cursor.seek_back(stop.map(Probe::row_start).as_ref());
        cursor
    }

    fn current(&self) -> Option<ArenaCell<'static>> {
        self.cells.cell(self.position)
    }

    fn end(&mut self) {
        self.cells.clear();
        self.position = 0;
    }

    /// Moves to the next cell in cell order.
    fn step(&mut self, standing: ArenaCell<'static>) {
        self.position += 1;
        if self.position == self.cells.len() {
            self.cells.go_on(&Probe::key(standing.key()));
            self.position = 0;
        }
    }

    /// Moves to the first cell after the current one for which `is_there`, which holds for all
    /// cells after `place`, and for those of rows after `row`, the current row.
    fn move_on(&mut self, row: &[u8], is_there: impl Fn(&[u8]) -> bool, place: &Probe<'_>) {
        let end = match self.way {
            CursorDirection::Reverse { end, .. } => end,
            _ => self.cells.len(),
        };
        let found = (self.position + 1..end)
            .find(|&at| self.cells.cell(at).is_some_and(|cell| is_there(cell.key())));
        match (found, self.way) {
            (Some(position), _) => self.position = position,
            (None, CursorDirection::Reverse { start, .. }) => return self.enter_row_before(start),
            (None, CursorDirection::OneRow) if !self.cells.goes_on() => self.end(),
            (None, _) => {
                self.tree.seek(place, &mut self.cells);
                self.position = 0;
            }
        }
        self.settle(row);
    }

    /// Ends the row, or the iteration, if the current cell is of another row than `row`.
    fn settle(&mut self, row: &[u8]) {
        let left = self.current().is_none_or(|cell| row_of(cell.key()) != row);
        match self.way {
            CursorDirection::OneRow if left => self.end(),
            CursorDirection::ReverseLongRow if left => self.seek_back(Some(&Probe::row_start(row))),
            _ => {}
        }
    }

    /// Moves to the first cell of the last row before `probe`.
    fn seek_back(&mut self, probe: Option<&Probe<'_>>) {
        self.tree.seek_before(probe, &mut self.cells);
        self.enter_row_before(self.cells.len());
    }

    /// Moves to the first cell of the row whose last cell is before `end` in the cells.
    fn enter_row_before(&mut self, mut end: usize) {
        if end == 0 {
            self.cells.go_back();
            end = self.cells.len();
        }
        let Some(last) = end.checked_sub(1).and_then(|last| self.cells.cell(last)) else {
            self.end();
            return;
        };
        let row = row_of(last.key());
        let of_row = |cell: ArenaCell<'_>| row_of(cell.key()) == row;
        let mut start = end - 1;
        while start > 0 && self.cells.cell(start - 1).is_some_and(of_row) {
            start -= 1;
        }
        if start == 0 {
            let mut before = self.cells.clone();
            before.go_back();
            if before.last().is_some_and(of_row) {
                self.way = CursorDirection::ReverseLongRow;
                self.tree.seek(&Probe::row_start(row), &mut self.cells);
                self.position = 0;
                return;
            }
        }
        self.way = CursorDirection::Reverse { start, end };
        self.position = start;
    }
}

impl<M: MemstoreHandle> Cursor for MemstoreCursor<M> {
    fn key(&self) -> Option<&[u8]> {
        self.current().map(ArenaCell::key)
    }

    fn value(&self) -> &[u8] {
        self.current().map_or(&[], ArenaCell::value)
    }

    fn advance(&mut self) -> Result<()> {
        let Some(standing) = self.current() else { return Ok(()) };
        match self.way {
            CursorDirection::Forward => self.step(standing),
            CursorDirection::OneRow | CursorDirection::ReverseLongRow => {
                self.step(standing);
                self.settle(row_of(standing.key()));
            }
            CursorDirection::Reverse { start, end } => {
                self.position += 1;
                if self.position == end {
                    self.enter_row_before(start);
                }
            }
        }
        Ok(())
    }

    fn skip_column(&mut self) -> Result<()> {
        let Some(standing) = self.current() else { return Ok(()) };
        let (row, qualifier) = column_of(standing.key());
        let is_there = |key: &[u8]| column_of(key) != (row, qualifier);
        self.move_on(row, is_there, &Probe::column_end(row, qualifier));
        Ok(())
    }

    fn seek_column(&mut self, qualifier: &[u8]) -> Result<()> {
        let Some(standing) = self.current() else { return Ok(()) };
        let (row, at) = column_of(standing.key());
        if at < qualifier {
            let is_there = |key: &[u8]| row_of(key) != row || column_of(key).1 >= qualifier;
            self.move_on(row, is_there, &Probe::column_start(row, qualifier));
        }
        Ok(())
    }

    fn skip_row(&mut self) -> Result<()> {
        let Some(standing) = self.current() else { return Ok(()) };
        let row = row_of(standing.key());
        match self.way {
            CursorDirection::OneRow => self.end(),
            CursorDirection::ReverseLongRow => self.seek_back(Some(&Probe::row_start(row))),
            CursorDirection::Forward | CursorDirection::Reverse { .. } => {
                // The least row above it.
                let mut above = SearchKey::from_slice(row);
                above.push(0);
                self.move_on(row, |key| row_of(key) != row, &Probe::row_start(&above));
            }
        }
        Ok(())
    }

    fn seek_row(&mut self, row: &[u8]) -> Result<()> {
        match self.way {
            CursorDirection::Forward | CursorDirection::OneRow => {
                let is_before =
                    |cell: Option<ArenaCell<'_>>| cell.is_some_and(|c| row_of(c.key()) < row);
                // Only forwards, and only if the target is among the copied cells.
                if is_before(self.current()) && !is_before(self.cells.last()) {
                    while is_before(self.current()) {
                        self.position += 1;
                    }
                } else {
                    self.tree.seek(&Probe::row_start(row), &mut self.cells);
                    self.position = 0;
                }
            }
            CursorDirection::Reverse { .. } | CursorDirection::ReverseLongRow => {
                self.seek_back(Some(&Probe::row_start(row)));
            }
        }
        Ok(())
    }
}
