//! Cursor over the cells of a columnar block, which assembles only the current cell.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use crate::cache::Block;
use crate::cell::{
    CellType, KEY_TAIL_BYTES, KeyParts, Sequence, Timestamp, column_end_key, column_of, is_key,
    row_start_key, split_key,
};
use crate::file::columnar::block::{ColumnarBlock, Numbers};
use crate::file::columnar::builder::timestamp_of;
use crate::file::columnar::strings::{Strings, first_bytes};
use crate::file::encoding::{BlockCursor, BlockError, COLUMN_STEPS_MAX, Malformed};
use crate::layout::SectionSelection;

/// Initial capacity of the key buffer.
const KEY_BYTES_GUESS: usize = 64;

/// Cursor on a cell of a columnar block, or on none.
#[derive(Default)]
pub(in crate::file) struct ColumnarCursor {
    block: Option<Arc<ColumnarBlock>>,
    /// Index of the current cell, if `key` is not empty.
    index: usize,
    /// Empty if the cursor is on no cell.
    key: Vec<u8>,
    value: Vec<u8>,
    /// True if the value is not assembled yet.
    is_value_pending: bool,
    /// The sections to assemble; `None` for all.
    wanted: Option<Arc<SectionSelection>>,
}

/// Outcome of [`ColumnarCursor::walk_back`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::file) enum WalkBackOutcome {
    /// It has not moved.
    Nowhere,
    /// It moved to a cell that `show` accepted.
    ToShown,
    /// It moved to a cell that `show` rejected.
    ToRefused,
}

/// The keys of a block.
struct Keys<'b> {
    rows: Strings<'b>,
    qualifiers: Strings<'b>,
    timestamps: Numbers<'b>,
    sequences: Numbers<'b>,
    types: Numbers<'b>,
}

impl<'b> Keys<'b> {
    fn of(block: &'b ColumnarBlock) -> Result<Keys<'b>, Malformed> {
        Ok(Keys {
            rows: block.rows()?,
            qualifiers: block.qualifiers()?,
            timestamps: block.timestamps()?,
            sequences: block.sequences()?,
            types: block.types()?,
        })
    }

    /// Appends the encoded key of a cell.
    fn append(&self, index: usize, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let (prefix, row) = (self.rows.prefix(), self.rows.get(index)?);
        let tail = self.tail(index, prefix.len() + row.len())?;
        out.reserve(KEY_BYTES_GUESS);
        out.extend_from_slice(prefix);
        out.extend_from_slice(row);
        for part in [self.qualifiers.prefix(), self.qualifiers.get(index)?] {
            // Usually one of them is empty.
            if !part.is_empty() {
                out.extend_from_slice(part);
            }
        }
        out.extend_from_slice(&tail);
        Ok(())
    }

    fn is_same_column(&self, a: usize, b: usize) -> Result<bool, Malformed> {
        Ok(self.rows.get(a)? == self.rows.get(b)?
            && self.qualifiers.get(a)? == self.qualifiers.get(b)?)
    }

    fn tail(&self, index: usize, row_length: usize) -> Result<[u8; KEY_TAIL_BYTES], Malformed> {
        let code = u8::try_from(self.types.get(index)).map_err(|_| Malformed)?;
        let parts = KeyParts {
            row: &[],
            qualifier: &[],
            timestamp: Timestamp(timestamp_of(self.timestamps.get(index))),
            sequence: Sequence(self.sequences.get(index)),
            cell_type: CellType::from_code(code).ok_or(Malformed)?,
        };
        Ok(parts.tail(row_length))
    }

    /// Compares the key of a cell with a decoded key, its row without the prefix.
    fn compare(
        &self,
        index: usize,
        (row, qualifier, tail): (&[u8], &[u8], &[u8]),
    ) -> Result<Ordering, Malformed> {
        let rows = self.rows.get(index)?.cmp(row);
        if rows.is_ne() {
            return Ok(rows);
        }
        let qualifiers =
            compare_joined(self.qualifiers.prefix(), self.qualifiers.get(index)?, qualifier);
        if qualifiers.is_ne() {
            return Ok(qualifiers);
        }
        let own = self.tail(index, row.len())?;
        Ok(own[..KEY_TAIL_BYTES - 2].cmp(&tail[..KEY_TAIL_BYTES - 2]))
    }
}

/// Compares `prefix` followed by `rest` with `whole`.
fn compare_joined(prefix: &[u8], rest: &[u8], whole: &[u8]) -> Ordering {
    match whole.split_at_checked(prefix.len()) {
        Some((head, tail)) => prefix.cmp(head).then_with(|| rest.cmp(tail)),
        None => prefix[..whole.len()].cmp(whole).then(Ordering::Greater),
    }
}

impl ColumnarCursor {
    fn block(&self) -> Result<&ColumnarBlock, Malformed> {
        self.block.as_deref().ok_or(Malformed)
    }

    /// Until another block is opened, values are assembled from these sections only, if the block
    /// has them.
    pub(in crate::file) fn want(&mut self, wanted: &Arc<SectionSelection>) {
        let fits = self.block.as_ref().is_some_and(|block| wanted.fits(block.layout()));
        self.wanted = fits.then(|| Arc::clone(wanted));
    }

    /// Returns the number of cells of the block.
    pub(in crate::file) fn cell_count(&self) -> usize {
        self.block.as_ref().map_or(0, |block| block.cell_count())
    }

    /// Returns whether the current cell is the only one of its row and not the first of the
    /// block: certain for all but the first of a plain block.
    pub(in crate::file) fn is_alone_in_its_row(&self) -> bool {
        let is_plain = self.block.as_ref().is_some_and(|block| block.is_plain());
        is_plain && !self.key.is_empty() && self.index > 0
    }

    /// Moves to a cell, or to none if `index` is out of range.
    fn stand_on(&mut self, index: usize) -> Result<(), BlockError> {
        self.move_to(index)?;
        self.open_value()
    }

    /// As `stand_on`, without the value, which needs [`ColumnarCursor::open_value`].
    pub(in crate::file) fn move_to(&mut self, index: usize) -> Result<(), Malformed> {
        self.leave();
        if index >= self.cell_count() {
            return Ok(());
        }
        let mut key = std::mem::take(&mut self.key);
        Keys::of(self.block()?)?.append(index, &mut key)?;
        if !is_key(&key) {
            return Err(Malformed);
        }
        (self.key, self.index, self.is_value_pending) = (key, index, true);
        Ok(())
    }

    /// As [`BlockCursor::last`], without the value, like all moves by key.
    pub(in crate::file) fn last_key(&mut self) -> Result<(), Malformed> {
        self.move_to(self.cell_count().wrapping_sub(1))
    }

    /// As [`BlockCursor::advance`].
    pub(in crate::file) fn advance_key(&mut self) -> Result<(), Malformed> {
        if self.key.is_empty() { Ok(()) } else { self.move_to(self.index + 1) }
    }

    /// As [`BlockCursor::retreat`].
    pub(in crate::file) fn retreat_key(&mut self) -> Result<(), Malformed> {
        // The wrapped index is out of range.
        if self.key.is_empty() { Ok(()) } else { self.move_to(self.index.wrapping_sub(1)) }
    }

    /// As [`BlockCursor::seek_before`].
    pub(in crate::file) fn seek_key_before(&mut self, target: &[u8]) -> Result<(), Malformed> {
        let index = self.lower_bound(target);
        self.leave();
        self.move_to(index?.wrapping_sub(1))
    }

    /// From a cell that is alone in its row, moves backwards through such cells and passes them
    /// to `show`, while it returns `true`.
    pub(in crate::file) fn walk_back(
        &mut self,
        show: &mut impl FnMut(KeyParts<'_>, &[u8]) -> bool,
    ) -> Result<WalkBackOutcome, BlockError> {
        if !self.is_alone_in_its_row() {
            return Ok(WalkBackOutcome::Nowhere);
        }
        let block = Arc::clone(self.block.as_ref().ok_or(Malformed)?);
        let keys = Keys::of(&block)?;
        let (mut walked, mut index) = (WalkBackOutcome::Nowhere, self.index);
        // The row of the block's first cell may begin in the previous block.
        while walked != WalkBackOutcome::ToRefused && index > 1 {
            index -= 1;
            if let Err(error) = self.put_together(&block, &keys, index) {
                self.leave();
                return Err(error);
            }
            let parts = KeyParts::decode(&self.key).ok_or(Malformed)?;
            walked = match show(parts, &self.value) {
                true => WalkBackOutcome::ToShown,
                false => WalkBackOutcome::ToRefused,
            };
        }
        Ok(walked)
    }

    /// Moves to a cell of its block, whose keys are given.
    fn put_together(
        &mut self,
        block: &ColumnarBlock,
        keys: &Keys<'_>,
        index: usize,
    ) -> Result<(), BlockError> {
        self.leave();
        keys.append(index, &mut self.key)?;
        if !is_key(&self.key) {
            return Err(BlockError::Malformed);
        }
        self.index = index;
        block.append_value(index, self.wanted.as_deref(), &mut self.value)
    }

    /// Moves to no cell.
    fn leave(&mut self) {
        self.key.clear();
        self.value.clear();
        self.is_value_pending = false;
    }

    /// Assembles the value if that was not done yet.
    pub(in crate::file) fn open_value(&mut self) -> Result<(), BlockError> {
        if !self.is_value_pending {
            return Ok(());
        }
        let mut value = std::mem::take(&mut self.value);
        let built = match self.block() {
            Ok(block) => block.append_value(self.index, self.wanted.as_deref(), &mut value),
            Err(malformed) => Err(malformed.into()),
        };
        if let Err(error) = built {
            self.leave();
            return Err(error);
        }
        (self.value, self.is_value_pending) = (value, false);
        Ok(())
    }

    /// Returns the first cell behind the current column.
    fn end_of_column(&self) -> Result<usize, Malformed> {
        let block = self.block()?;
        if block.is_plain() {
            return Ok(self.index + 1);
        }
        let keys = Keys::of(block)?;
        let count = block.cell_count();
        for next in self.index + 1..count.min(self.index + COLUMN_STEPS_MAX) {
            if !keys.is_same_column(self.index, next)? {
                return Ok(next);
            }
        }
        let (row, qualifier) = column_of(&self.key);
        self.lower_bound(&column_end_key(row, qualifier))
    }

    /// Returns the first cell whose key is not less than `target`.
    fn lower_bound(&self, target: &[u8]) -> Result<usize, Malformed> {
        let keys = Keys::of(self.block()?)?;
        let target = split_key(target);
        let count = self.cell_count();
        // The common prefix decides for all rows, or need not be compared again.
        let prefix = keys.rows.prefix();
        let head = &target.0[..prefix.len().min(target.0.len())];
        match prefix.cmp(head) {
            Ordering::Less => return Ok(count),
            Ordering::Greater => return Ok(0),
            Ordering::Equal => {}
        }
        let target = (&target.0[prefix.len()..], target.1, target.2);
        // The first eight bytes usually decide, and are compared inline.
        let target_bytes = first_bytes(target.0);
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = usize::midpoint(low, high);
            let is_below = match keys.rows.first_bytes(middle)?.cmp(&target_bytes) {
                Ordering::Equal => keys.compare(middle, target)?.is_lt(),
                order => order.is_lt(),
            };
            if is_below {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}

/// Request for rows as columns.
pub(crate) struct WantedColumns<'a> {
    /// The row to stop before.
    pub(crate) stop: Option<&'a [u8]>,
    /// Maximal number of rows.
    pub(crate) row_limit: usize,
    /// Predicate: the reader sees every put of a block with this span.
    pub(crate) sees_all: &'a dyn Fn(&Span) -> bool,
}

/// Some rows of a plain block.
pub(in crate::file) struct BlockRows {
    pub(in crate::file) block: Arc<ColumnarBlock>,
    pub(in crate::file) rows: Range<usize>,
}

/// Ranges of timestamps and sequences of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) min_timestamp: Timestamp,
    pub(crate) max_timestamp: Timestamp,
    pub(crate) max_sequence: Sequence,
}

impl ColumnarCursor {
    /// Returns the requested rows from the current one on, if they can be read as columns. Does
    /// not move.
    pub(in crate::file) fn columns(
        &self,
        wanted: &WantedColumns<'_>,
    ) -> Result<Option<BlockRows>, Malformed> {
        let Some(block) = &self.block else { return Ok(None) };
        if self.key.is_empty() || !block.is_plain() || !(wanted.sees_all)(block.span()) {
            return Ok(None);
        }
        let end = match wanted.stop {
            Some(stop) => self.lower_bound(&row_start_key(stop))?,
            None => block.cell_count(),
        };
        let end = end.min(self.index.saturating_add(wanted.row_limit));
        Ok((end > self.index).then(|| BlockRows { block: block.clone(), rows: self.index..end }))
    }
}

impl BlockCursor for ColumnarCursor {
    fn open(&mut self, block: Block) -> Result<(), Malformed> {
        self.close();
        self.block = Some(block.prepared().ok_or(Malformed)?);
        Ok(())
    }

    fn close(&mut self) {
        self.block = None;
        self.leave();
    }

    fn key(&self) -> Option<&[u8]> {
        (!self.key.is_empty()).then_some(&self.key)
    }

    fn value(&self) -> &[u8] {
        debug_assert!(!self.is_value_pending, "a value is read before it is put together");
        &self.value
    }

    fn first(&mut self) -> Result<(), BlockError> {
        self.stand_on(0)
    }

    fn last(&mut self) -> Result<(), BlockError> {
        self.last_key()?;
        self.open_value()
    }

    fn advance(&mut self) -> Result<(), BlockError> {
        self.advance_key()?;
        self.open_value()
    }

    fn retreat(&mut self) -> Result<(), BlockError> {
        self.retreat_key()?;
        self.open_value()
    }

    /// The value of the then current cell is available only after [`ColumnarCursor::open_value`]:
    /// after a skipped column the next cell is usually not needed.
    fn skip_column(&mut self) -> Result<(), BlockError> {
        if self.key.is_empty() {
            return Ok(());
        }
        let index = self.end_of_column();
        self.leave();
        Ok(self.move_to(index?)?)
    }

    fn seek(&mut self, target: &[u8]) -> Result<(), BlockError> {
        let index = self.lower_bound(target);
        self.leave();
        self.stand_on(index?)
    }

    fn seek_before(&mut self, target: &[u8]) -> Result<(), BlockError> {
        self.seek_key_before(target)?;
        self.open_value()
    }
}
