//! Half-files: the part of a store file that belongs to a region after a split.
//!
//! Both daughters link to the whole file until a compaction rewrites their part. A cursor begins
//! in the part, and readers of a region stop at its end, so no cursor checks it. The file's
//! properties (first and last row, size, cells) are those of the part.
//!
//! The rows of one region of a colocated table are not adjacent in such a file: a cursor skips the
//! others, and the properties are those of the whole file.

use std::ops::Range;

use crate::cell::{row_of, row_start_key};
use crate::descriptor::RowRange;
use crate::descriptor::colocation::Partitioning;
use crate::error::Result;
use crate::file::cursor::FileCursor;
use crate::file::index_cursor::IndexCursor;
use crate::file::reader::{Caching, HalfFileRange, StoreFile};
use crate::scan::merge::Cursor;

impl StoreFile {
    /// Restricts the file to the rows of a region; `None` if it has none of them.
    ///
    /// # Errors
    ///
    /// Errors of reading the blocks at the ends.
    pub fn within(mut self, rows: &RowRange) -> Result<Option<StoreFile>> {
        let properties = self.properties();
        if rows.contains(&properties.first_row) && rows.contains(&properties.last_row) {
            return Ok(Some(self));
        }
        let row = |cursor: FileCursor<&StoreFile>| cursor.key().map(|key| row_of(key).to_vec());
        let first = row(FileCursor::forward(&self, &rows.start, Caching::Keep)?);
        let last = row(FileCursor::reverse(&self, rows.stop.as_deref(), Caching::Keep)?);
        let (Some(first), Some(last)) = (first, last) else { return Ok(None) };
        if first > last {
            return Ok(None);
        }
        let (from, to) = (self.offset_of(Some(&first))?, self.offset_of(Some(&last))?);
        debug_assert!(rows.contains(&first) && rows.contains(&last), "the part is of the region");
        let partitioning = Partitioning::Row;
        let part = HalfFileRange { rows: rows.clone(), partitioning, from, to };
        self.take_part(part, first, last);
        Ok(Some(self))
    }

    /// Restricts a file of a colocated table to the rows of these base rows.
    ///
    /// # Errors
    ///
    /// Errors of reading the index.
    pub fn of_base_rows(mut self, rows: &RowRange) -> Result<StoreFile> {
        let Range { start: from, end: to } = self.extent()?;
        let (first, last) = {
            let properties = self.properties();
            (properties.first_row.clone(), properties.last_row.clone())
        };
        let partitioning = Partitioning::BaseRow;
        let part = HalfFileRange { rows: rows.clone(), partitioning, from, to };
        self.take_part(part, first, last);
        Ok(self)
    }

    /// Returns a row in the middle of the file, or of its part: about as many bytes are before it
    /// as behind it, and at least one row is before it.
    ///
    /// # Errors
    ///
    /// Errors of reading the index and a block.
    pub fn middle_row(&self) -> Result<Option<Vec<u8>>> {
        let Range { start: from, end: to } = self.extent()?;
        let mut index = IndexCursor::default();
        index.seek_offset(self, from.midpoint(to), Caching::Keep)?;
        let Some(end) = index.key(self).map(|key| row_of(key).to_vec()) else { return Ok(None) };
        index.previous(self, Caching::Keep)?;
        let begin = index.key(self).map_or_else(Vec::new, |key| row_of(key).to_vec());
        let properties = self.properties();
        let mut rows: Vec<Vec<u8>> = Vec::new();
        let mut cursor = FileCursor::forward(self, &begin, Caching::Keep)?;
        while let Some(row) = cursor.key().map(row_of)
            && row <= end.as_slice()
            && row <= properties.last_row.as_slice()
        {
            if row > properties.first_row.as_slice() {
                rows.push(row.to_vec());
            }
            cursor.skip_row()?;
        }
        let middle = rows.len() / 2;
        Ok((!rows.is_empty()).then(|| rows.swap_remove(middle)))
    }

    /// Returns the offsets of the first and the last block of the rows from `start` to before
    /// `stop`.
    ///
    /// # Errors
    ///
    /// Errors of reading the index.
    pub fn offsets(&self, start: &[u8], stop: Option<&[u8]>) -> Result<Range<u64>> {
        let extent = self.extent()?;
        let within = |offset: u64| offset.clamp(extent.start, extent.end);
        let start = within(self.offset_of(Some(start))?);
        let end = stop.map_or(Ok(extent.end), |stop| self.offset_of(Some(stop)).map(within))?;
        Ok(start..end.max(start))
    }

    /// Returns the last row of the first block at or after an offset.
    ///
    /// # Errors
    ///
    /// Errors of reading the index.
    pub fn row_at(&self, offset: u64) -> Result<Option<Vec<u8>>> {
        let mut index = IndexCursor::default();
        index.seek_offset(self, offset, Caching::Keep)?;
        Ok(index.key(self).map(|key| row_of(key).to_vec()))
    }

    /// Returns the offsets of the first and the last block of the file, or of its part.
    fn extent(&self) -> Result<Range<u64>> {
        Ok(match self.part() {
            Some(part) => part.from..part.to,
            None => 0..self.offset_of(None)?,
        })
    }

    /// Returns the offset of the block of a row; for `None` or a row behind the end, of the last
    /// block.
    fn offset_of(&self, row: Option<&[u8]>) -> Result<u64> {
        let mut index = IndexCursor::default();
        let found = match row {
            Some(row) => index.seek(self, &row_start_key(row), Caching::Keep)?,
            None => None,
        };
        let block = match found {
            Some(block) => Some(block),
            None => index.last(self, Caching::Keep)?,
        };
        Ok(block.map_or(0, |block| block.offset))
    }
}
