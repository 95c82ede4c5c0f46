//! The way of a get through a file of which it is known that no other source has the row, if the
//! row lies in a plain columnar block: no cursor, no merge, one put.
//!
//! In steps ([`StoreFile::plain_block_of`], [`StoreFile::prefetch_rows`], [`StoreFile::find_in`],
//! [`PlainRow::prefetch`], [`StoreFile::append_plain`]): what a step looks at, the one before has
//! had fetched, so that who takes some rows through each step together waits for all of them at
//! once.

use std::sync::Arc;

use crate::cell::{CellBatch, row_start_key};
use crate::error::{Error, Result};
use crate::file::columnar::{ColumnarBlock, RowSearch, Span};
use crate::file::encoding::BlockError;
use crate::file::format::BlockHandle;
use crate::file::index_cursor::IndexCursor;
use crate::file::reader::{Caching, ReadAhead, StoreFile};
use crate::layout::WantedSections;
use crate::scan::merge::RowOrder;

/// A columnar block that has a row if the file has it.
pub(crate) struct PlainBlock {
    block: Arc<ColumnarBlock>,
    handle: BlockHandle,
}

/// The only cell of a row.
pub(crate) struct PlainRow {
    block: PlainBlock,
    index: usize,
}

/// What is known of a row.
pub(crate) enum Found {
    /// It is not in the file.
    Nothing,
    /// This is all of it.
    Row(PlainRow),
    /// A cursor has to look.
    Undecided,
}

impl PlainRow {
    /// Brings near what [`StoreFile::append_plain`] looks at.
    pub(crate) fn prefetch(&self) {
        self.block.block.prefetch_value_of(self.index);
    }
}

impl StoreFile {
    /// Returns the block that has a row if the file has it; `None` if that is for a cursor.
    pub(crate) fn plain_block_of(&self, row: &[u8]) -> Result<Option<PlainBlock>> {
        let start = row_start_key(row);
        let found = IndexCursor::default().seek(self, &start, Caching::Keep)?;
        let Some(handle) = found else { return Ok(None) };
        let mut ahead = ReadAhead::new(RowOrder::Forward, Caching::Keep);
        let block = self.data_block(handle, Caching::Keep, &mut ahead)?;
        let Some(block) = block.take_prepared::<ColumnarBlock>() else { return Ok(None) };
        block.prefetch();
        Ok(Some(PlainBlock { block, handle }))
    }

    /// Brings near what a search in the block looks at. Returns whether the block is plain and all
    /// its cells are such as `sees_all` says.
    pub(crate) fn prefetch_rows(
        &self,
        PlainBlock { block, handle }: &PlainBlock,
        sees_all: impl FnOnce(&Span) -> bool,
    ) -> Result<bool> {
        let span = *block.span();
        // In an adopted file the sequences of the block are not those of its cells.
        let max_sequence = self.adopted().unwrap_or(span.max_sequence);
        if !block.is_plain() || !sees_all(&Span { max_sequence, ..span }) {
            return Ok(false);
        }
        block.prefetch_rows().map_err(|malformed| self.failed_at(*handle, malformed))?;
        Ok(true)
    }

    /// Searches for a row in a block of [`StoreFile::plain_block_of`] that is plain.
    pub(crate) fn find_in(&self, block: PlainBlock, row: &[u8]) -> Result<Found> {
        let found = block.block.find_row(row);
        Ok(match found.map_err(|malformed| self.failed_at(block.handle, malformed))? {
            RowSearch::Absent => Found::Nothing,
            RowSearch::Found(index) => Found::Row(PlainRow { block, index }),
            RowSearch::Last => Found::Undecided,
        })
    }

    /// Appends a row that was found to the row begun last; returns whether it could. Of its value
    /// sections that are not `wanted` may be missing.
    pub(crate) fn append_plain(
        &self,
        found: &PlainRow,
        (row, family): (&[u8], u8),
        wanted: Option<&WantedSections>,
        out: &mut CellBatch,
    ) -> Result<bool> {
        let PlainRow { block: PlainBlock { block, handle }, index } = found;
        let put = block.put_of(*index, row);
        let put = put.map_err(|malformed| self.failed_at(*handle, malformed))?;
        let Some(mut put) = put else { return Ok(false) };
        if let Some(sequence) = self.adopted() {
            put.sequence = sequence;
        }
        out.push_put(family, &put, |value| block.append_value_of(*index, wanted, value))
            .map_err(|error| self.failed_at(*handle, error))?;
        Ok(true)
    }

    fn failed_at(&self, handle: BlockHandle, error: impl Into<BlockError>) -> Error {
        match error.into() {
            BlockError::Malformed => self.corrupt(handle, "the block is malformed"),
            BlockError::Failed(error) => *error,
        }
    }
}
