//! One row of a plain block: found without a cursor, and read without its key being put together.
//!
//! Looking it up goes in steps, each of which has the processor fetch what the next one looks at,
//! so that who looks up many rows waits for several at once.

use std::cmp::Ordering;

use crate::cell::{CellType, KeyParts, Sequence, Timestamp};
use crate::file::columnar::block::ColumnarBlock;
use crate::file::columnar::builder::timestamp_of;
use crate::file::columnar::strings::first_bytes;
use crate::file::encoding::{BlockError, Malformed};
use crate::layout::WantedSections;

/// What a block says about a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::file) enum RowSearch {
    /// It is not there.
    Absent,
    /// It is this cell, the only one of its row.
    Found(usize),
    /// Its cell is the last of the block: the row may go on in the next one.
    Last,
}

impl ColumnarBlock {
    /// Brings near what [`ColumnarBlock::find_row`] looks at first.
    pub(in crate::file) fn prefetch_rows(&self) -> Result<(), Malformed> {
        self.rows()?.prefetch();
        self.prefetch_sections();
        Ok(())
    }

    /// Searches for a row in a plain block. No block before it has cells of the row.
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

    /// Returns the key of a cell of a plain block, whose row is known; `None` if it has to be put
    /// together.
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

    /// Brings near what [`ColumnarBlock::append_value_of`] looks at.
    pub(in crate::file) fn prefetch_value_of(&self, index: usize) {
        self.prefetch_value(index);
    }

    /// Appends the value of a cell of a plain block; if only some sections are `wanted`, the others
    /// are zeros or empty.
    pub(in crate::file) fn append_value_of(
        &self,
        index: usize,
        wanted: Option<&WantedSections>,
        out: &mut Vec<u8>,
    ) -> Result<(), BlockError> {
        self.append_value(index, wanted.filter(|wanted| wanted.fits(self.layout())), out)
    }
}
