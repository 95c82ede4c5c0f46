//! Merge of several sorted sources of cells into one, forwards or backwards by row.
//!
//! Backwards, rows come in descending order, but the cells *within* a row are still in cell
//! order: the newest version of a column always comes first, so that one rule
//! ([`crate::scan::retention`]) serves both directions.
//!
//! # Invariants
//!
//! 1. The heap holds exactly the sources that are positioned on a key.
//! 2. Its first entry is positioned on the least key in the order of the merge, and is open: on a
//!    cell.
//! 3. With several sources, the prefix of an entry is that of the current row of its source.
//!
//! `Merge::check` asserts them after each move in debug builds, for up to `CHECKED` sources.

use std::cmp::Ordering;

use smallvec::SmallVec;

use crate::cell::{KeyParts, KeyPlace, column_of, compare_keys, row_of, row_prefix};
use crate::error::Result;

/// Maximal number of sources that are checked in debug builds.
const CHECKED: usize = 8;

/// Cursor over a sorted source of cells.
pub trait Cursor {
    /// Returns the encoded key of the cell, or `None` at the end.
    fn key(&self) -> Option<&[u8]>;

    /// Returns the value of the cell; empty at the end.
    fn value(&self) -> &[u8];

    /// Moves to the next cell; in reverse, after the last cell of a row to the first cell of the
    /// row before it.
    fn advance(&mut self) -> Result<()>;

    /// Moves past all remaining cells of the current column.
    fn skip_column(&mut self) -> Result<()>;

    /// Moves to the first cell of the current row whose qualifier is not less than `qualifier`;
    /// if the row has none, to the next row. Never moves back.
    fn seek_column(&mut self, qualifier: &[u8]) -> Result<()>;

    /// Moves past all remaining cells of the current row.
    fn skip_row(&mut self) -> Result<()>;

    /// Moves on to the first cell of the first row at or after `row`; in reverse, of the last row
    /// *before* it. A merge never moves back.
    fn seek_row(&mut self, row: &[u8]) -> Result<()>;

    /// Passes the cells from the current one on to `show`, key and value, while it returns
    /// `true`. Then the cursor is on the first cell that it rejected, or at the end.
    ///
    /// Equivalent to repeated [`Cursor::advance`]; sources that can iterate faster override it.
    fn walk(&mut self, show: &mut impl FnMut(KeyParts<'_>, &[u8]) -> bool) -> Result<()>
    where
        Self: Sized,
    {
        while let Some(parts) = self.key().and_then(KeyParts::decode)
            && show(parts, self.value())
        {
            self.advance()?;
        }
        Ok(())
    }

    /// Opens a source that is not open yet, which is on a key that sorts before all of its cells:
    /// moves it to its first cell. Returns whether it was such a source.
    fn open(&mut self) -> Result<bool> {
        Ok(false)
    }
}

/// The order of rows.
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

/// Merge of sources; itself a cursor.
pub struct Merge<C> {
    sources: SmallVec<[C; 1]>,
    heap: SmallVec<[HeapEntry; 4]>,
    order: RowOrder,
}

/// A source in the heap, and the prefix of its current row, which decides most comparisons
/// without reading the key.
#[derive(Debug, Clone, Copy)]
struct HeapEntry {
    prefix: u128,
    source: u32,
}

/// Returns a number such that of two rows with different numbers the one with the lower comes
/// first in the order of the merge.
fn standing_prefix(order: RowOrder, row: &[u8]) -> u128 {
    match order {
        RowOrder::Forward => row_prefix(row),
        RowOrder::Reverse => !row_prefix(row),
    }
}

impl<C: Cursor> Merge<C> {
    /// Returns the merge of sources that are on their first cells and go in `order`.
    ///
    /// # Errors
    ///
    /// Errors of opening the sources that come first.
    pub fn new(sources: SmallVec<[C; 1]>, order: RowOrder) -> Result<Merge<C>> {
        let mut merge = Merge { sources, heap: SmallVec::new(), order };
        for (index, source) in merge.sources.iter().enumerate() {
            if let Some(key) = source.key() {
                let prefix = standing_prefix(order, row_of(key));
                merge.heap.push(HeapEntry { prefix, source: index as u32 });
            }
        }
        for position in (0..merge.heap.len() / 2).rev() {
            merge.sift_down(position);
        }
        merge.open_first()?;
        Ok(merge)
    }

    fn precedes(&self, a: HeapEntry, b: HeapEntry) -> bool {
        if a.prefix != b.prefix {
            return a.prefix < b.prefix;
        }
        let (a_key, b_key) =
            (self.sources[a.source as usize].key(), self.sources[b.source as usize].key());
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

    /// Returns the second source in order, if there is one.
    fn rival(&self) -> Option<HeapEntry> {
        match self.heap[..] {
            [] | [_] => None,
            [_, only] => Some(only),
            [_, a, b, ..] => Some(if self.precedes(b, a) { b } else { a }),
        }
    }

    /// Returns the row of the second source in order, if there is one.
    pub fn rival_row(&self) -> Option<&[u8]> {
        self.sources[self.rival()?.source as usize].key().map(row_of)
    }

    /// Walks over the cells of the first source up to the rival. Returns whether `show` accepts
    /// more.
    fn walk_first(
        &mut self,
        rival: HeapEntry,
        show: &mut impl FnMut(KeyParts<'_>, &[u8]) -> bool,
    ) -> Result<bool> {
        let order = self.order;
        let pair = [self.heap[0].source as usize, rival.source as usize];
        let [first, second] = self
            .sources
            .get_disjoint_mut(pair)
            .expect("the heap has a source just once and no source that there is not");
        let Some(place) = second.key().map(KeyPlace::of) else { return Ok(false) };
        let mut wants_more = true;
        first.walk(&mut |parts, value| {
            let prefix = standing_prefix(order, parts.row);
            // Of two equal prefixes the keys decide.
            let is_turn = if prefix == rival.prefix {
                match order {
                    RowOrder::Reverse if parts.row != place.row => parts.row > place.row,
                    _ => place.compare(&parts).is_ge(),
                }
            } else {
                prefix < rival.prefix
            };
            is_turn && {
                wants_more = show(parts, value);
                wants_more
            }
        })?;
        Ok(wants_more)
    }

    /// Moves the first source by `go`. The new first source may not be open: the caller must call
    /// [`Merge::open_first`] before it reads a cell.
    ///
    /// # Errors
    ///
    /// Errors of `go`.
    pub fn move_first<T>(&mut self, go: impl FnOnce(&mut C) -> Result<T>) -> Result<Option<T>> {
        let Some(first) = self.first() else { return Ok(None) };
        let outcome = go(first)?;
        self.sink_first();
        Ok(Some(outcome))
    }

    /// Moves past all remaining cells of the current column, as [`Cursor::skip_column`] does. The
    /// new first source may not be open: the caller must call [`Merge::open_first`] before it
    /// reads the cell. Usually it is of a row that is not needed.
    ///
    /// # Errors
    ///
    /// Errors of the sources.
    pub fn leave_column(&mut self) -> Result<()> {
        let Some((row, qualifier)) = self.key().map(column_of) else { return Ok(()) };
        let row: SmallVec<[u8; 64]> = SmallVec::from_slice(row);
        let qualifier: SmallVec<[u8; 32]> = SmallVec::from_slice(qualifier);
        while let Some(first) = self.first()
            && first.key().map(column_of) == Some((&row[..], &qualifier[..]))
        {
            if !first.open()? {
                first.skip_column()?;
            }
            self.sink_first();
        }
        Ok(())
    }

    fn first(&mut self) -> Option<&mut C> {
        self.heap.first().map(|first| &mut self.sources[first.source as usize])
    }

    /// Restores the heap after its first source was moved.
    fn settle_first(&mut self) -> Result<()> {
        self.sink_first();
        self.open_first()
    }

    fn sink_first(&mut self) {
        let Some(first) = self.heap.first() else { return };
        match self.sources[first.source as usize].key() {
            // A single source needs no order.
            Some(_) if self.heap.len() == 1 => return,
            Some(key) => self.heap[0].prefix = standing_prefix(self.order, row_of(key)),
            None => {
                self.heap.swap_remove(0);
            }
        }
        self.sift_down(0);
    }

    /// Opens the first source until it is one that was open.
    ///
    /// # Errors
    ///
    /// Errors of the sources.
    pub fn open_first(&mut self) -> Result<()> {
        while let Some(first) = self.first() {
            if !first.open()? {
                break;
            }
            self.sink_first();
        }
        self.check();
        Ok(())
    }

    /// Asserts the invariants, in debug builds.
    fn check(&self) {
        if !cfg!(debug_assertions) || self.sources.len() > CHECKED {
            return;
        }
        let positioned = self.sources.iter().filter(|source| source.key().is_some()).count();
        assert_eq!(self.heap.len(), positioned, "the heap has the sources that are on a key");
        let Some((first, others)) = self.heap.split_first() else { return };
        for other in others {
            assert!(other.source != first.source, "a source is in the heap twice");
            assert!(!self.precedes(*other, *first), "the first entry is the least");
        }
        for HeapEntry { prefix, source } in self.heap.iter().filter(|_| !others.is_empty()) {
            let row = self.sources[*source as usize].key().map(row_of);
            let current = row.map(|row| standing_prefix(self.order, row));
            assert_eq!(current, Some(*prefix), "the prefix of another row");
        }
    }

    /// Moves by `go` every source that is positioned before a key.
    fn move_those(
        &mut self,
        stands_before: impl Fn(&[u8]) -> bool,
        mut go: impl FnMut(&mut C) -> Result<()>,
    ) -> Result<()> {
        while let Some(first) = self.first()
            && first.key().is_some_and(&stands_before)
        {
            go(first)?;
            self.settle_first()?;
        }
        Ok(())
    }
}

impl<C: Cursor> Cursor for Merge<C> {
    fn key(&self) -> Option<&[u8]> {
        self.heap.first().and_then(|first| self.sources[first.source as usize].key())
    }

    fn value(&self) -> &[u8] {
        self.heap.first().map_or(&[], |first| self.sources[first.source as usize].value())
    }

    fn advance(&mut self) -> Result<()> {
        let Some(first) = self.first() else { return Ok(()) };
        first.advance()?;
        self.settle_first()
    }

    fn walk(&mut self, show: &mut impl FnMut(KeyParts<'_>, &[u8]) -> bool) -> Result<()> {
        while !self.heap.is_empty() {
            let wants_more = match self.rival() {
                Some(rival) => self.walk_first(rival, show)?,
                None => {
                    self.first().map_or(Ok(()), |only| only.walk(show))?;
                    false
                }
            };
            self.settle_first()?;
            if !wants_more {
                break;
            }
        }
        Ok(())
    }

    fn skip_column(&mut self) -> Result<()> {
        self.leave_column()?;
        self.open_first()
    }

    fn seek_column(&mut self, qualifier: &[u8]) -> Result<()> {
        let Some(row) = self.key().map(row_of) else { return Ok(()) };
        let row: SmallVec<[u8; 64]> = SmallVec::from_slice(row);
        self.move_those(
            |key| row_of(key) == &row[..] && column_of(key).1 < qualifier,
            |source| source.seek_column(qualifier),
        )
    }

    fn skip_row(&mut self) -> Result<()> {
        let Some(row) = self.key().map(row_of) else { return Ok(()) };
        let row: SmallVec<[u8; 64]> = SmallVec::from_slice(row);
        self.move_those(|key| row_of(key) == &row[..], C::skip_row)
    }

    fn seek_row(&mut self, row: &[u8]) -> Result<()> {
        let order = self.order;
        self.move_those(
            |key| match order {
                RowOrder::Forward => row_of(key) < row,
                RowOrder::Reverse => row_of(key) >= row,
            },
            |source| source.seek_row(row),
        )
    }
}

#[cfg(test)]
mod tests;
