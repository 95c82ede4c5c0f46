//! Column slices: some rows of a plain columnar block, read column by column.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::cell::{Sequence, Timestamp};
use crate::error::{Error, Result};
use crate::file::StoreFile;
use crate::file::columnar::block::{ColumnarBlock, OpenedBytes};
use crate::file::columnar::builder::timestamp_of;
use crate::file::columnar::cursor::BlockRows;
use crate::file::columnar::strings::Strings;
use crate::file::encoding::{BlockError, Malformed};
use crate::file::format::BlockHandle;

/// Rows of a store file, column by column: each has one cell, a put of one qualifier, whose value
/// matches the family's layout. Sections that are not read stay compressed.
///
/// Keeps the block in memory and its file on disk.
pub struct ColumnSlice {
    block: Arc<ColumnarBlock>,
    rows: Range<usize>,
    file: Arc<StoreFile>,
    handle: BlockHandle,
    /// Sections of which only these rows are open; allocated on first use.
    opened: OnceLock<Box<[OpenedBytes]>>,
}

const MALFORMED: &str = "the block is malformed";

/// A variable section of the rows of a [`ColumnSlice`].
pub struct VariableColumn<'a> {
    slice: &'a ColumnSlice,
    strings: Strings<'a>,
}

impl ColumnSlice {
    /// Returns a slice of a plain block.
    pub(in crate::file) fn new(
        BlockRows { block, rows }: BlockRows,
        file: Arc<StoreFile>,
        handle: BlockHandle,
    ) -> ColumnSlice {
        ColumnSlice { block, rows, file, handle, opened: OnceLock::new() }
    }

    fn read<'a, T>(
        &'a self,
        read: impl FnOnce(&'a ColumnarBlock) -> std::result::Result<T, Malformed>,
    ) -> Result<T> {
        read(&self.block).map_err(|Malformed| self.malformed())
    }

    /// As [`ColumnSlice::read`], for bytes that may have to be read from the file.
    fn fetch<'a, T>(
        &'a self,
        read: impl FnOnce(&'a ColumnarBlock) -> std::result::Result<T, BlockError>,
    ) -> Result<T> {
        read(&self.block).map_err(|error| match error {
            BlockError::Malformed => self.malformed(),
            BlockError::Failed(error) => *error,
        })
    }

    #[cold]
    fn malformed(&self) -> Error {
        Error::corrupt(self.file.path(), self.handle.offset, MALFORMED)
    }

    /// Returns the number of rows; at least 1.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Returns the rows' share of the stored bytes of the block.
    pub fn stored_bytes(&self) -> u64 {
        let (rows, block_rows) = (self.rows.len() as u64, self.block.cell_count() as u64);
        u64::from(self.handle.size) * rows / block_rows.max(1)
    }

    /// Returns the rows' share of the uncompressed bytes of the block.
    pub fn value_bytes(&self) -> u64 {
        let (rows, block_rows) = (self.rows.len() as u64, self.block.cell_count() as u64);
        self.block.raw_bytes() as u64 * rows / block_rows.max(1)
    }

    /// Returns the width of each section of the values' layout, 0 for variable ones. It is the
    /// family's layout when the file was written.
    pub fn section_widths(&self) -> &[u16] {
        self.block.layout().widths()
    }

    /// Returns the prefix of the values of each shape of that layout.
    pub fn shape_prefixes(&self) -> impl Iterator<Item = &[u8]> {
        self.block.layout().prefixes()
    }

    /// Returns the qualifier of all cells.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`]; the same for all methods that read.
    pub fn qualifier(&self) -> Result<&[u8]> {
        self.read(|block| block.qualifiers()?.only().ok_or(Malformed))
    }

    /// Appends the keys of some rows to `keys`, concatenated, and the end of each to `ends`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if there is no such row; [`Error::Corrupt`].
    pub fn append_row_keys(
        &self,
        rows: impl IntoIterator<Item = usize>,
        keys: &mut Vec<u8>,
        ends: &mut Vec<u32>,
    ) -> Result<()> {
        let beyond = self.read(|block| {
            let strings = block.rows()?;
            for row in rows {
                if row >= self.rows.len() {
                    return Ok(Some(row));
                }
                keys.extend_from_slice(strings.prefix());
                keys.extend_from_slice(strings.get(self.rows.start + row)?);
                ends.push(keys.len() as u32);
            }
            Ok(None)
        })?;
        beyond.map_or(Ok(()), |row| Err(no_row(row)))
    }

    /// Returns the timestamp of each row.
    pub fn timestamps(&self) -> Result<impl Iterator<Item = Timestamp>> {
        let numbers = self.read(ColumnarBlock::timestamps)?;
        Ok(self.rows.clone().map(move |row| Timestamp(timestamp_of(numbers.get(row)))))
    }

    /// Returns the commit sequence of each row.
    pub fn sequences(&self) -> Result<impl Iterator<Item = Sequence>> {
        let numbers = self.read(ColumnarBlock::sequences)?;
        let adopted = self.file.adopted();
        Ok(self.rows.clone().map(move |row| adopted.unwrap_or_else(|| Sequence(numbers.get(row)))))
    }

    /// Returns the index of the shape that the value of each row matches.
    pub fn shapes(&self) -> Result<impl Iterator<Item = usize>> {
        let numbers = self.read(ColumnarBlock::shapes)?;
        Ok(self.rows.clone().map(move |row| (numbers.get(row) as usize).wrapping_sub(1)))
    }

    /// Returns the index of the common shape of all values, if they have one.
    pub fn only_shape(&self) -> Result<Option<usize>> {
        Ok(self.read(ColumnarBlock::shapes)?.only().map(|shape| (shape as usize).wrapping_sub(1)))
    }

    /// Appends the whole value of a row, for callers that need more than some sections.
    pub fn append_value(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        if row >= self.rows.len() {
            return Err(no_row(row));
        }
        self.fetch(|block| block.append_value(self.rows.start + row, None, out))
    }

    /// Returns a section of fixed width: the bytes of all rows concatenated, so that those of row
    /// `n` are `n * width .. (n + 1) * width`. Zeros if a value's shape does not have the
    /// section.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if the layout has no such section of a fixed width.
    pub fn fixed(&self, section: usize) -> Result<&[u8]> {
        let width = self.width(section)?;
        if width == 0 {
            return Err(wrong_kind(section));
        }
        self.fetch(|block| {
            let part = self.section(block, section)?;
            if part.len() != width * block.cell_count() {
                return Err(BlockError::Malformed);
            }
            Ok(&part[self.rows.start * width..self.rows.end * width])
        })
    }

    /// Returns a section of variable length.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if the layout has no such variable section.
    pub fn variable(&self, section: usize) -> Result<VariableColumn<'_>> {
        if self.width(section)? != 0 {
            return Err(wrong_kind(section));
        }
        let strings = self
            .fetch(|block| Ok(Strings::open(self.section(block, section)?, block.cell_count())?))?;
        Ok(VariableColumn { slice: self, strings })
    }

    fn section<'a>(
        &'a self,
        block: &'a ColumnarBlock,
        section: usize,
    ) -> std::result::Result<&'a [u8], BlockError> {
        let count = block.layout().section_count();
        let opened = self.opened.get_or_init(|| (0..count).map(|_| OnceLock::new()).collect());
        block.section_of_rows(section, &self.rows, opened.get(section).ok_or(Malformed)?)
    }

    fn width(&self, section: usize) -> Result<usize> {
        self.block.layout().width(section).ok_or_else(|| wrong_kind(section))
    }
}

impl VariableColumn<'_> {
    /// Returns the bytes of a row; empty if its value's shape does not have the section.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`].
    pub fn get(&self, row: usize) -> Result<&[u8]> {
        let string = self.strings.get(self.slice.rows.start + row);
        string.map_err(|Malformed| self.slice.malformed())
    }

    /// Returns the bytes of all rows concatenated, and appends the end of each row's bytes to
    /// `ends`, ascending.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`].
    pub fn all(&self, ends: &mut Vec<u32>) -> Result<&[u8]> {
        let run = self.strings.run(self.slice.rows.clone(), ends);
        run.map_err(|Malformed| self.slice.malformed())
    }
}

#[cold]
fn no_row(row: usize) -> Error {
    Error::InvalidRequest(format!("row {row} does not exist"))
}

#[cold]
fn wrong_kind(section: usize) -> Error {
    Error::InvalidRequest(format!("the layout has no section {section} of this kind"))
}
