//! Fast path of a get in a file if no other source has the row and it is in a plain columnar
//! block: no cursor, no merge, one put.
//!
//! It has steps ([`StoreFile::plain_block_of`], [`StoreFile::prefetch_rows`],
//! [`StoreFile::find_in`], [`PlainRow::prefetch`], [`StoreFile::append_plain`]): each step
//! prefetches the memory that the next one reads, so that a batch of rows that goes through each
//! step together overlaps its cache misses.

use std::sync::Arc;

use crate::cell::{CellBatch, row_start_key};
use crate::error::{Error, Result};
use crate::file::columnar::{ColumnarBlock, RowSearch, Span};
use crate::file::encoding::BlockError;
use crate::file::format::BlockHandle;
use crate::file::index_cursor::IndexCursor;
use crate::file::reader::{BlockReadAhead, Caching, StoreFile};
use crate::layout::SectionSelection;
use crate::scan::merge::RowOrder;

/// The columnar block that has a row if the file has it.
pub(crate) struct PlainBlock {
    block: Arc<ColumnarBlock>,
    handle: BlockHandle,
}

/// The only cell of a row.
pub(crate) struct PlainRow {
    block: PlainBlock,
    index: usize,
}

/// Result of a search for a row.
pub(crate) enum RowSearchResult {
    /// The file does not have it.
    Nothing,
    /// The whole row.
    Row(PlainRow),
    /// A cursor is required.
    Undecided,
}

impl PlainRow {
    /// Prefetches the memory that [`StoreFile::append_plain`] reads.
    pub(crate) fn prefetch(&self) {
        self.block.block.prefetch_value_of(self.index);
    }
}

impl StoreFile {
    /// Returns the block that has a row if the file has it; `None` if a cursor is required.
    pub(crate) fn plain_block_of(&self, row: &[u8]) -> Result<Option<PlainBlock>> {
        let start = row_start_key(row);
        let found = IndexCursor::default().seek(self, &start, Caching::Keep)?;
        let Some(handle) = found else { return Ok(None) };
        let mut ahead = BlockReadAhead::new(RowOrder::Forward, Caching::Keep);
        let block = self.data_block(handle, Caching::Keep, &mut ahead)?;
        let Some(block) = block.take_prepared::<ColumnarBlock>() else { return Ok(None) };
        block.prefetch();
        Ok(Some(PlainBlock { block, handle }))
    }

    /// Prefetches the memory that a search in the block reads. Returns whether the block is plain
    /// and all its cells satisfy `sees_all`.
    pub(crate) fn prefetch_rows(
        &self,
        PlainBlock { block, handle }: &PlainBlock,
        sees_all: impl FnOnce(&Span) -> bool,
    ) -> Result<bool> {
        let span = *block.span();
        // In an adopted file the sequences in the block are not those of its cells.
        let max_sequence = self.adopted().unwrap_or(span.max_sequence);
        if !block.is_plain() || !sees_all(&Span { max_sequence, ..span }) {
            return Ok(false);
        }
        block.prefetch_rows().map_err(|malformed| self.failed_at(*handle, malformed))?;
        Ok(true)
    }

    /// Searches for a row in a plain block of [`StoreFile::plain_block_of`].
    pub(crate) fn find_in(&self, block: PlainBlock, row: &[u8]) -> Result<RowSearchResult> {
        let found = block.block.find_row(row);
        Ok(match found.map_err(|malformed| self.failed_at(block.handle, malformed))? {
            RowSearch::Absent => RowSearchResult::Nothing,
            RowSearch::Found(index) => RowSearchResult::Row(PlainRow { block, index }),
            RowSearch::Last => RowSearchResult::Undecided,
        })
    }

    /// Appends a found row to the last row of the batch; returns whether it could. Sections that
    /// are not `wanted` may be missing in its value.
    pub(crate) fn append_plain(
        &self,
        found: &PlainRow,
        (row, family): (&[u8], u8),
        wanted: Option<&SectionSelection>,
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
