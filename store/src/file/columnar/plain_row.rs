//! Point look-up of a row in a plain block: without a cursor, and without assembling its key.
//!
//! The look-up is divided into steps, each of which prefetches the memory that the next one
//! reads, so that the look-ups of many rows overlap their cache misses.

use std::cmp::Ordering;

use crate::cell::{CellType, KeyParts, Sequence, Timestamp};
use crate::file::columnar::block::ColumnarBlock;
use crate::file::columnar::builder::timestamp_of;
use crate::file::columnar::strings::first_bytes;
use crate::file::encoding::{BlockError, Malformed};
use crate::layout::SectionSelection;

/// Result of searching a row in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::file) enum RowSearch {
    /// The row does not exist.
    Absent,
    /// The row has only this cell.
    Found(usize),
    /// Its cell is the last of the block: the row may continue in the next one.
    Last,
}

impl ColumnarBlock {
    /// Prefetches the memory that [`ColumnarBlock::find_row`] reads first.
    pub(in crate::file) fn prefetch_rows(&self) -> Result<(), Malformed> {
        self.rows()?.prefetch();
        self.prefetch_sections();
        Ok(())
    }

    /// Searches for a row in a plain block. No earlier block may have cells of the row.
    pub(in crate::file) fn find_row(&self, row: &[u8]) -> Result<RowSearch, Malformed> {
        let rows = self.rows()?;
        let Some(wanted) = row.strip_prefix(rows.prefix()) else { return Ok(RowSearch::Absent) };
        let wanted_bytes = first_bytes(wanted);
        let (mut low, mut high) = (0, self.cell_count());
        while low < high {
            let middle = usize::midpoint(low, high);
            let order = match rows.first_bytes(middle)?.cmp(&wanted_bytes) {
                Ordering::Equal => rows.get(middle)?.cmp(wanted),
                order => order,
            };
            match order {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal if middle + 1 == self.cell_count() => return Ok(RowSearch::Last),
                Ordering::Equal => return Ok(RowSearch::Found(middle)),
            }
        }
        Ok(RowSearch::Absent)
    }

    /// Returns the key of a cell of a plain block, whose row is known; `None` if it has to be
    /// assembled.
    pub(in crate::file) fn put_of<'b>(
        &'b self,
        index: usize,
        row: &'b [u8],
    ) -> Result<Option<KeyParts<'b>>, Malformed> {
        // All have the same one.
        let Some(qualifier) = self.qualifiers()?.only() else { return Ok(None) };
        Ok(Some(KeyParts {
            row,
            qualifier,
            timestamp: Timestamp(timestamp_of(self.timestamps()?.get(index))),
            sequence: Sequence(self.sequences()?.get(index)),
            cell_type: CellType::Put,
        }))
    }

    /// Prefetches the memory that [`ColumnarBlock::append_value_of`] reads.
    pub(in crate::file) fn prefetch_value_of(&self, index: usize) {
        self.prefetch_value(index);
    }

    /// Appends the value of a cell of a plain block; if only some sections are `wanted`, the
    /// others are zeros or empty.
    pub(in crate::file) fn append_value_of(
        &self,
        index: usize,
        wanted: Option<&SectionSelection>,
        out: &mut Vec<u8>,
    ) -> Result<(), BlockError> {
        self.append_value(index, wanted.filter(|wanted| wanted.fits(self.layout())), out)
    }
}
