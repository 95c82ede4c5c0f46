//! Cursor over a store file, in both directions.
//!
//! Backwards, a cursor is positioned on the first cell of a row and moves forwards through the
//! row ([`crate::scan::merge`]). If a row lies within a block and has few cells, the cursor
//! counts them when it enters the row from behind, so that it can step back over them without a
//! search; otherwise it searches for the start of the row.

use std::ops::Deref;
use std::sync::Arc;

use crate::cell::{KeyParts, SearchKey, column_end_key, column_of, column_start_key, compare_keys};
use crate::cell::{row_end_key, row_of, row_start_key, set_sequence};
use crate::descriptor::colocation::Partitioning;
use crate::error::{Error, Result};
use crate::file::columnar::{ColumnSlice, Span, WalkBackOutcome, WantedColumns};
use crate::file::encoding::{AnyCursor, BlockCursor, BlockError, Malformed};
use crate::file::format::BlockHandle;
use crate::file::index_cursor::IndexCursor;
use crate::file::reader::{BlockReadAhead, Caching, StoreFile};
use crate::file::row_block::RowExtent;
use crate::layout::SectionSelection;
use crate::scan::merge::{Cursor, RowOrder};

/// Maximal steps towards a later key in the row before a search.
const STEPS_MAX: usize = 16;
/// Maximal cells of a row over which a backwards cursor steps instead of searching.
const ROW_CELLS_MAX: usize = 32;

/// Cursor on a cell of a store file, which it shares or borrows.
pub struct FileCursor<F = Arc<StoreFile>> {
    file: F,
    order: RowOrder,
    caching: Caching,
    index: IndexCursor,
    cursor: AnyCursor,
    /// Handle of the block in the cursor.
    handle: BlockHandle,
    ahead: BlockReadAhead,
    /// The current row, in reverse only; for a get its row.
    row: Vec<u8>,
    /// True for a get: values of other rows are not read.
    is_of_one_row: bool,
    /// Position in that row, if known.
    extent: Option<RowExtent>,
    /// The key with the sequence of an adopted file.
    stamped: Option<Vec<u8>>,
    /// The sections of values to read; `None` for all.
    wanted: Option<Arc<SectionSelection>>,
}

impl<F: Deref<Target = StoreFile>> FileCursor<F> {
    fn new(file: F, order: RowOrder, caching: Caching) -> FileCursor<F> {
        FileCursor {
            file,
            order,
            caching,
            index: IndexCursor::default(),
            cursor: AnyCursor::default(),
            handle: BlockHandle::default(),
            ahead: BlockReadAhead::new(order, caching),
            row: Vec::new(),
            is_of_one_row: false,
            extent: None,
            stamped: None,
            wanted: None,
        }
    }

    /// In an adopted file, copies the current key with the file's sequence.
    fn stamp(&mut self) {
        let Some(sequence) = self.file.adopted() else { return };
        self.stamped = self.cursor.key().map(|key| {
            let mut stamped = self.stamped.take().unwrap_or_default();
            stamped.clear();
            stamped.extend_from_slice(key);
            set_sequence(&mut stamped, sequence);
            stamped
        });
    }

    /// Ends a move: skips the rows of other regions, and stamps the key.
    fn arrive(&mut self, mut moved: Result<()>) -> Result<()> {
        while moved.is_ok() && self.is_elsewhere() {
            moved = self.skip_row_unstamped();
        }
        self.stamp();
        moved
    }

    /// Returns whether the current row belongs to another region, which has the file, too. Not for
    /// a get: its row is of the region.
    fn is_elsewhere(&self) -> bool {
        let Some(rows) = self.file.base_rows().filter(|_| !self.is_of_one_row) else {
            return false;
        };
        self.cursor.key().is_some_and(|key| !Partitioning::BaseRow.holds(rows, row_of(key)))
    }

    /// Returns a cursor that begins with the first row at or after `start`.
    pub fn forward(file: F, start: &[u8], caching: Caching) -> Result<FileCursor<F>> {
        FileCursor::new(file, RowOrder::Forward, caching).at(start)
    }

    /// Returns a cursor for a get: it begins with the first row at or after `row`, whose values
    /// have at least these sections. Values behind that row may be missing.
    pub fn at_row(
        file: F,
        row: &[u8],
        wanted: Option<&Arc<SectionSelection>>,
    ) -> Result<FileCursor<F>> {
        let mut cursor = FileCursor::new(file, RowOrder::Forward, Caching::Keep);
        cursor.wanted = wanted.cloned();
        cursor.row.extend_from_slice(row);
        cursor.is_of_one_row = true;
        cursor.at(row)
    }

    fn at(mut self, start: &[u8]) -> Result<FileCursor<F>> {
        let start = self.file.range().map_or(start, |rows| start.max(&rows.start));
        let start = row_start_key(start);
        let moved = self.seek_key(&start);
        self.arrive(moved)?;
        Ok(self)
    }

    /// Returns a cursor that begins with the last row before `stop` and moves backwards.
    pub fn reverse(file: F, stop: Option<&[u8]>, caching: Caching) -> Result<FileCursor<F>> {
        let end = file.range().and_then(|rows| rows.stop.as_deref());
        let before = stop.into_iter().chain(end).min().map(row_start_key);
        let mut cursor = FileCursor::new(file, RowOrder::Reverse, caching);
        let moved = cursor.seek_before(before);
        cursor.arrive(moved)?;
        Ok(cursor)
    }

    fn malformed(&self) -> Error {
        self.file.corrupt(self.handle, "the block is malformed")
    }

    fn failed(&self, error: impl Into<BlockError>) -> Error {
        match error.into() {
            BlockError::Malformed => self.malformed(),
            BlockError::Failed(error) => *error,
        }
    }

    /// Loads a block into the cursor, unless it is the current one.
    fn load(&mut self, handle: BlockHandle) -> Result<()> {
        if self.handle != handle {
            let block = self.file.data_block(handle, self.caching, &mut self.ahead)?;
            self.handle = handle;
            self.cursor.open(block).map_err(|error| self.failed(error))?;
            if let (Some(wanted), AnyCursor::Columnar(cursor)) = (&self.wanted, &mut self.cursor) {
                cursor.want(wanted);
            }
        }
        Ok(())
    }

    /// Moves to no cell.
    fn close(&mut self) {
        self.cursor.close();
        self.handle = BlockHandle::default();
    }

    /// Moves to the first cell whose key is not less than `target`.
    fn seek_key(&mut self, target: &[u8]) -> Result<()> {
        // Within the current block, the index is not needed.
        let is_onwards = self.cursor.key().is_some_and(|key| compare_keys(key, target).is_le())
            && self.index.key(&self.file).is_some_and(|last| compare_keys(last, target).is_ge());
        if !is_onwards {
            match self.index.seek(&self.file, target, self.caching)? {
                Some(handle) => self.load(handle)?,
                None => {
                    self.close();
                    return Ok(());
                }
            }
        }
        self.cursor.seek(target).map_err(|error| self.failed(error))?;
        // Cannot be at the end: by the index, the block's last key is not less.
        if self.cursor.key().is_none() {
            return Err(self.malformed());
        }
        Ok(())
    }

    /// Moves to the first cell of the last row before a row's start.
    fn seek_before(&mut self, before: Option<SearchKey>) -> Result<()> {
        let found = match &before {
            Some(before) => self.index.seek(&self.file, before, self.caching)?,
            None => None,
        };
        let (Some(before), Some(handle)) = (before, found) else {
            let last = self.index.last(&self.file, self.caching)?;
            return self.enter_block_from_behind(last);
        };
        self.load(handle)?;
        self.cursor.seek_key_before(&before).map_err(|error| self.failed(error))?;
        if self.cursor.key().is_some() {
            return self.enter_row();
        }
        let previous = self.index.previous(&self.file, self.caching)?;
        self.enter_block_from_behind(previous)
    }

    /// Moves to the first cell of the last row of a block; to none if there is no block.
    fn enter_block_from_behind(&mut self, handle: Option<BlockHandle>) -> Result<()> {
        let Some(handle) = handle else {
            self.close();
            return Ok(());
        };
        self.load(handle)?;
        self.cursor.last_key().map_err(|error| self.failed(error))?;
        self.enter_row()
    }

    /// Moves from the last cell of a row, whose value may not be loaded, to its first.
    fn enter_row(&mut self) -> Result<()> {
        self.enter_row_by_key()?;
        self.cursor.open_value().map_err(|error| self.failed(error))
    }

    fn enter_row_by_key(&mut self) -> Result<()> {
        let last = self.cursor.key().ok_or_else(|| self.malformed())?;
        self.row.clear();
        self.row.extend_from_slice(row_of(last));
        if let AnyCursor::Columnar(cursor) = &self.cursor
            && cursor.is_alone_in_its_row()
        {
            self.extent = Some(RowExtent { cell_count: 1, left: 1 });
            return Ok(());
        }
        for cell_count in 1..=ROW_CELLS_MAX {
            self.cursor.retreat_key().map_err(|error| self.failed(error))?;
            match self.cursor.key() {
                Some(key) if row_of(key) == &self.row[..] => {}
                Some(_) => {
                    self.extent = Some(RowExtent { cell_count, left: cell_count });
                    return self.cursor.advance_key().map_err(|error| self.failed(error));
                }
                None => match self.index.previous_key(&self.file) {
                    Some(before) if row_of(before) != &self.row[..] => {
                        self.extent = Some(RowExtent { cell_count, left: cell_count });
                        return self.cursor.first_key().map_err(|error| self.failed(error));
                    }
                    // The row may begin in an earlier block.
                    _ => break,
                },
            }
        }
        self.extent = None;
        self.seek_key(&row_start_key(&self.row))
    }

    /// Moves back from a row whose extent is known to the previous row.
    fn leave_row(&mut self, extent: RowExtent) -> Result<()> {
        for _ in extent.left..=extent.cell_count {
            self.cursor.retreat_key().map_err(|error| self.failed(error))?;
        }
        if self.cursor.key().is_some() {
            return self.enter_row();
        }
        let previous = self.index.previous(&self.file, self.caching)?;
        self.enter_block_from_behind(previous)
    }

    /// Moves to the next cell in file order.
    fn step(&mut self) -> Result<()> {
        self.cursor.advance_key().map_err(|error| self.failed(error))?;
        match self.cursor.key() {
            None => self.enter_next_block().map(drop),
            // The value of another row is not needed.
            Some(key) if self.is_of_one_row && row_of(key) != &self.row[..] => Ok(()),
            Some(_) => self.cursor.open_value().map_err(|error| self.failed(error)),
        }
    }

    /// Moves to the first cell of the next block; returns whether there is one.
    fn enter_next_block(&mut self) -> Result<bool> {
        match self.index.next(&self.file, self.caching)? {
            Some(handle) => {
                self.load(handle)?;
                self.cursor.first().map_err(|error| self.failed(error))?;
                Ok(true)
            }
            None => {
                self.close();
                Ok(false)
            }
        }
    }

    /// Moves to the first cell at or after `target`, which is usually near.
    fn step_or_seek(&mut self, target: &[u8]) -> Result<()> {
        for _ in 0..STEPS_MAX {
            self.step()?;
            if self.cursor.key().is_none_or(|key| compare_keys(key, target).is_ge()) {
                return Ok(());
            }
        }
        self.ahead.interrupt(self.caching);
        self.seek_key(target)
    }

    /// In reverse, moves back a row after leaving the current one. Its extent is not known.
    fn turn_back(&mut self) -> Result<()> {
        if self.order == RowOrder::Reverse
            && self.cursor.key().is_none_or(|key| row_of(key) != &self.row[..])
        {
            let start = row_start_key(&self.row);
            self.seek_before(Some(start))?;
        }
        Ok(())
    }

    /// In reverse, in a row whose extent is known: moves to the first cell of the row whose
    /// qualifier satisfies `is_right`, or to the previous row. Returns whether the extent is
    /// known.
    fn walk_row(&mut self, is_right: impl Fn(&[u8]) -> bool) -> Result<bool> {
        while let Some(extent) = &mut self.extent {
            if extent.left == 1 {
                let extent = *extent;
                return self.leave_row(extent).map(|()| true);
            }
            extent.left -= 1;
            self.cursor.advance().map_err(|error| self.failed(error))?;
            if self.cursor.key().is_none_or(|key| is_right(column_of(key).1)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl FileCursor {
    /// Takes the rows from the current one on, as far as they lie in one columnar block and each
    /// has a single cell, and moves past them. Returns `None`, without moving, if the next row
    /// does not qualify. Forward only; the value of the then current cell is available only after
    /// [`Cursor::open`].
    pub(crate) fn take_columns(
        &mut self,
        wanted: &WantedColumns<'_>,
    ) -> Result<Option<ColumnSlice>> {
        let AnyCursor::Columnar(cursor) = &self.cursor else { return Ok(None) };
        if self.file.base_rows().is_some() {
            return Ok(None);
        }
        // In an adopted file the sequences in the block are not those of its cells.
        let adopted = self.file.adopted();
        let sees_all = |span: &Span| {
            let max_sequence = adopted.unwrap_or(span.max_sequence);
            (wanted.sees_all)(&Span { max_sequence, ..*span })
        };
        // Usually the whole block is before the stop, which its last key shows without a search.
        let stop = wanted
            .stop
            .filter(|stop| self.index.key(&self.file).is_none_or(|last| row_of(last) >= *stop));
        let wanted = WantedColumns { stop, sees_all: &sees_all, ..*wanted };
        let columns = cursor.columns(&wanted).map_err(|error| self.failed(error))?;
        let Some(mut columns) = columns else { return Ok(None) };
        let at = self.handle;
        if columns.rows.end == cursor.cell_count() {
            if self.leave_block()? {
                // The last row continues in the next block.
                columns.rows.end -= 1;
                self.index.previous(&self.file, self.caching)?;
                self.load(at)?;
                self.move_to(columns.rows.end)?;
            }
        } else {
            self.move_to(columns.rows.end)?;
        }
        self.stamp();
        if columns.rows.is_empty() {
            self.open()?;
            return Ok(None);
        }
        Ok(Some(ColumnSlice::new(columns, self.file.clone(), at)))
    }

    /// Moves to the first cell of the next block; its value may not be loaded yet. Returns
    /// whether it belongs to the last row of the previous block.
    fn leave_block(&mut self) -> Result<bool> {
        let last = self.index.key(&self.file).ok_or_else(|| self.malformed())?;
        let last_row = SearchKey::from_slice(row_of(last));
        let Some(handle) = self.index.next(&self.file, self.caching)? else {
            self.close();
            return Ok(false);
        };
        self.load(handle)?;
        self.cursor.first_key().map_err(|error| self.failed(error))?;
        Ok(self.cursor.key().is_some_and(|key| row_of(key) == &last_row[..]))
    }

    /// Moves to a cell of a columnar block; its value is not loaded yet.
    fn move_to(&mut self, index: usize) -> Result<()> {
        match &mut self.cursor {
            AnyCursor::Columnar(cursor) => cursor.move_to(index),
            AnyCursor::Rows(_) => Err(Malformed),
        }
        .map_err(|error| self.failed(error))
    }
}

/// The moves of [`Cursor`], on the keys as stored in the file.
impl<F: Deref<Target = StoreFile>> FileCursor<F> {
    fn advance_unstamped(&mut self) -> Result<()> {
        if self.cursor.key().is_none() || self.walk_row(|_| true)? {
            return Ok(());
        }
        self.step()?;
        self.turn_back()
    }

    fn walk_unstamped(&mut self, show: &mut impl FnMut(KeyParts<'_>, &[u8]) -> bool) -> Result<()> {
        match self.order {
            RowOrder::Forward => self.walk_on(show),
            RowOrder::Reverse => self.walk_back(show),
        }
    }

    fn walk_on(&mut self, show: &mut impl FnMut(KeyParts<'_>, &[u8]) -> bool) -> Result<()> {
        while self.cursor.key().is_some() {
            self.cursor.walk(show).map_err(|error| self.failed(error))?;
            if self.cursor.key().is_some() || !self.enter_next_block()? {
                break;
            }
        }
        Ok(())
    }

    fn walk_back(&mut self, show: &mut impl FnMut(KeyParts<'_>, &[u8]) -> bool) -> Result<()> {
        while let Some(parts) = self.cursor.key().and_then(KeyParts::decode)
            && show(parts, self.cursor.value())
        {
            let cursor = match &mut self.cursor {
                AnyCursor::Rows(cursor) => cursor,
                // The row of the last cell of a block may continue in the next block.
                AnyCursor::Columnar(_) if self.extent.is_none_or(|row| row.cell_count > 1) => {
                    self.advance_unstamped()?;
                    continue;
                }
                AnyCursor::Columnar(cursor) => {
                    let walked = cursor.walk_back(show).map_err(|error| self.failed(error))?;
                    if walked != WalkBackOutcome::Nowhere {
                        self.enter_row()?;
                    }
                    if walked == WalkBackOutcome::ToRefused {
                        return Ok(());
                    }
                    self.advance_unstamped()?;
                    continue;
                }
            };
            let Some(RowExtent { cell_count, left: 1 }) = self.extent else {
                self.advance_unstamped()?;
                continue;
            };
            let walked = (1..cell_count)
                .try_for_each(|_| cursor.retreat())
                .and_then(|()| Ok(cursor.walk_rows_back(show)?));
            match walked.map_err(|error| self.failed(error))? {
                None => self.leave_row(RowExtent { cell_count: 1, left: 1 })?,
                Some(extent) => {
                    let key = self.cursor.key().ok_or_else(|| self.malformed())?;
                    self.row.clear();
                    self.row.extend_from_slice(row_of(key));
                    self.extent = Some(extent);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn skip_column_unstamped(&mut self) -> Result<()> {
        let Some(key) = self.cursor.key() else { return Ok(()) };
        if self.extent.is_some() {
            let qualifier: SearchKey = SearchKey::from_slice(column_of(key).1);
            self.walk_row(|next| next != &qualifier[..])?;
            return Ok(());
        }
        self.cursor.skip_column().map_err(|error| self.failed(error))?;
        if self.cursor.key().is_none() {
            // The rest of the block is of the column: so is its last key, and the next block may
            // be.
            let last = self.index.key(&self.file).ok_or_else(|| self.malformed())?;
            let (row, qualifier) = column_of(last);
            let end = column_end_key(row, qualifier);
            self.seek_key(&end)?;
        }
        self.turn_back()
    }

    fn seek_column_unstamped(&mut self, qualifier: &[u8]) -> Result<()> {
        let Some((row, at)) = self.cursor.key().map(column_of) else { return Ok(()) };
        if at >= qualifier {
            return Ok(());
        }
        let start = column_start_key(row, qualifier);
        if self.walk_row(|next| next >= qualifier)? {
            return Ok(());
        }
        self.step_or_seek(&start)?;
        self.turn_back()
    }

    fn skip_row_unstamped(&mut self) -> Result<()> {
        let Some(key) = self.cursor.key() else { return Ok(()) };
        match (self.order, self.extent) {
            (RowOrder::Forward, _) => {
                let end = row_end_key(row_of(key));
                self.step_or_seek(&end)
            }
            (RowOrder::Reverse, Some(extent)) => self.leave_row(extent),
            (RowOrder::Reverse, None) => {
                let start = row_start_key(row_of(key));
                self.seek_before(Some(start))
            }
        }
    }

    fn seek_row_unstamped(&mut self, row: &[u8]) -> Result<()> {
        self.ahead.interrupt(self.caching);
        match self.order {
            RowOrder::Forward => self.seek_key(&row_start_key(row)),
            RowOrder::Reverse => self.seek_before(Some(row_start_key(row))),
        }
    }
}

impl<F: Deref<Target = StoreFile>> Cursor for FileCursor<F> {
    fn key(&self) -> Option<&[u8]> {
        match &self.stamped {
            Some(key) => Some(key),
            None => self.cursor.key(),
        }
    }

    fn value(&self) -> &[u8] {
        self.cursor.value()
    }

    fn advance(&mut self) -> Result<()> {
        let moved = self.advance_unstamped();
        self.arrive(moved)
    }

    fn walk(&mut self, show: &mut impl FnMut(KeyParts<'_>, &[u8]) -> bool) -> Result<()> {
        if self.file.base_rows().is_some() {
            while let Some(parts) = self.key().and_then(KeyParts::decode)
                && show(parts, self.value())
            {
                self.advance()?;
            }
            return Ok(());
        }
        let walked = match self.file.adopted() {
            None => self.walk_unstamped(show),
            Some(sequence) => {
                self.walk_unstamped(&mut |parts, value| show(KeyParts { sequence, ..parts }, value))
            }
        };
        self.stamp();
        walked
    }

    fn skip_column(&mut self) -> Result<()> {
        let moved = self.skip_column_unstamped();
        self.arrive(moved)
    }

    fn seek_column(&mut self, qualifier: &[u8]) -> Result<()> {
        let moved = self.seek_column_unstamped(qualifier);
        self.arrive(moved)
    }

    fn skip_row(&mut self) -> Result<()> {
        let moved = self.skip_row_unstamped();
        self.arrive(moved)
    }

    fn seek_row(&mut self, row: &[u8]) -> Result<()> {
        let moved = self.seek_row_unstamped(row);
        self.arrive(moved)
    }

    fn open(&mut self) -> Result<bool> {
        self.cursor.open_value().map_err(|error| self.failed(error)).map(|()| false)
    }
}
