//! The merge of several sorted sources of cells into one, forwards or backwards by row.
//!
//! Backwards, rows come in descending order, but the cells *within* a row in cell order still: the
//! newest version of a column always comes first, so that one rule ([`crate::scan::retention`])
//! serves both directions.
//!
//! # Invariants
//!
//! 1. The heap holds the indexes of exactly the sources that stand on a cell.
//! 2. Its first entry stands on the least key in the order of the merge.

use std::cmp::Ordering;

use smallvec::SmallVec;

use crate::cell::{column_of, compare_keys, row_of};
use crate::error::Result;

/// Stands on a cell of a sorted source, or at its end.
pub trait Cursor {
    /// Returns the encoded key of the cell, or `None` at the end.
    fn key(&self) -> Option<&[u8]>;

    /// Returns the value of the cell; empty at the end.
    fn value(&self) -> &[u8];

    /// Moves to the next cell; in reverse, after the last cell of a row to the first cell of the
    /// row before it.
    fn advance(&mut self) -> Result<()>;

    /// Moves past all remaining cells of the column it stands on.
    fn skip_column(&mut self) -> Result<()>;

    /// Moves, in either direction, to the first cell of the first row at or after `row` (in
    /// reverse: of the last row at or before it).
    fn seek_row(&mut self, row: &[u8]) -> Result<()>;
}

/// The way through the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowOrder {
    /// From the first row to the last.
    Forward,
    /// From the last row to the first.
    Reverse,
}

impl RowOrder {
    /// Compares two encoded keys in the order in which a merge yields them.
    pub fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            RowOrder::Forward => compare_keys(a, b),
            RowOrder::Reverse => row_of(b).cmp(row_of(a)).then_with(|| compare_keys(a, b)),
        }
    }
}

/// Merges sources; itself a cursor.
pub struct Merge<C> {
    sources: SmallVec<[C; 4]>,
    heap: SmallVec<[u32; 8]>,
    order: RowOrder,
}

impl<C: Cursor> Merge<C> {
    /// Returns the merge of sources that stand on their first cells and go in `order`.
    pub fn new(sources: SmallVec<[C; 4]>, order: RowOrder) -> Merge<C> {
        let mut merge = Merge { sources, heap: SmallVec::new(), order };
        merge.rebuild();
        merge
    }

    fn rebuild(&mut self) {
        self.heap.clear();
        for (index, source) in self.sources.iter().enumerate() {
            if source.key().is_some() {
                self.heap.push(index as u32);
            }
        }
        for position in (0..self.heap.len() / 2).rev() {
            self.sift_down(position);
        }
    }

    fn precedes(&self, a: u32, b: u32) -> bool {
        let (a_key, b_key) = (self.sources[a as usize].key(), self.sources[b as usize].key());
        match (a_key, b_key) {
            (Some(a_key), Some(b_key)) => self.order.compare(a_key, b_key).is_lt(),
            (a_key, _) => a_key.is_some(),
        }
    }

    fn sift_down(&mut self, mut position: usize) {
        loop {
            let mut child = 2 * position + 1;
            if child >= self.heap.len() {
                return;
            }
            if child + 1 < self.heap.len() && self.precedes(self.heap[child + 1], self.heap[child])
            {
                child += 1;
            }
            if !self.precedes(self.heap[child], self.heap[position]) {
                return;
            }
            self.heap.swap(position, child);
            position = child;
        }
    }

    /// Restores the heap after its first source was moved.
    fn settle_first(&mut self) {
        let Some(&first) = self.heap.first() else { return };
        if self.sources[first as usize].key().is_none() {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
    }
}

impl<C: Cursor> Cursor for Merge<C> {
    fn key(&self) -> Option<&[u8]> {
        self.heap.first().and_then(|&first| self.sources[first as usize].key())
    }

    fn value(&self) -> &[u8] {
        self.heap.first().map_or(&[], |&first| self.sources[first as usize].value())
    }

    fn advance(&mut self) -> Result<()> {
        let Some(&first) = self.heap.first() else { return Ok(()) };
        self.sources[first as usize].advance()?;
        self.settle_first();
        Ok(())
    }

    fn skip_column(&mut self) -> Result<()> {
        let Some(key) = self.key() else { return Ok(()) };
        let (row, qualifier) = column_of(key);
        let (row, qualifier): (SmallVec<[u8; 64]>, SmallVec<[u8; 32]>) =
            (SmallVec::from_slice(row), SmallVec::from_slice(qualifier));
        while let Some(&first) = self.heap.first() {
            let source = &mut self.sources[first as usize];
            if source.key().is_none_or(|key| column_of(key) != (&row[..], &qualifier[..])) {
                return Ok(());
            }
            source.skip_column()?;
            self.settle_first();
        }
        Ok(())
    }

    fn seek_row(&mut self, row: &[u8]) -> Result<()> {
        for source in &mut self.sources {
            source.seek_row(row)?;
        }
        self.rebuild();
        Ok(())
    }
}
