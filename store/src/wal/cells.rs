//! Encoded cells of a commit in one region: the log's format, also used to fill memstores.
//!
//! A commit encodes its cells once. The same bytes are copied to the log's queue, decoded into
//! the memstores ([`crate::memstore`]), and passed to followers. The byte format is in
//! `docs/formats/wal.md`.

use crate::cell::{CellType, KeyParts, Sequence, Timestamp};
use crate::codec::{Input, push_varint};
use crate::descriptor::RegionId;

const TIMESTAMP_FOLLOWS: u8 = 0x80;
const ROW_AS_BEFORE: u8 = 0x40;

/// The cells that a commit writes to one region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionEdit {
    /// The region.
    pub region: RegionId,
    /// Its cells.
    pub cells: Cells,
}

/// Cells in the log's format; a cell without its own timestamp has that of its commit.
#[derive(Debug, Clone, Default)]
pub struct Cells {
    bytes: Vec<u8>,
    /// Offset of the last cell's row in `bytes`.
    row_start: usize,
    row_length: usize,
    cell_count: usize,
}

impl PartialEq for Cells {
    fn eq(&self, other: &Cells) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Cells {}

/// Sequence and time of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitClock {
    /// The position in the order of commits.
    pub sequence: Sequence,
    /// Its time.
    pub timestamp: Timestamp,
}

impl Default for CommitClock {
    /// Returns the clock of a store without commits.
    fn default() -> CommitClock {
        CommitClock { sequence: Sequence(0), timestamp: Timestamp(0) }
    }
}

/// One cell of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedCell<'a> {
    /// Index of the family.
    pub family: u8,
    /// Its key within the family.
    pub key: KeyParts<'a>,
    /// The value as it is stored.
    pub value: &'a [u8],
}

/// Iterator over the cells of a commit in one region.
#[derive(Debug, Clone)]
pub struct LoggedCells<'a> {
    input: Input<'a>,
    row: &'a [u8],
    clock: CommitClock,
}

impl Cells {
    /// Returns an empty list with a capacity of `byte_count` bytes.
    pub fn with_capacity(byte_count: usize) -> Cells {
        Cells { bytes: Vec::with_capacity(byte_count), ..Cells::default() }
    }

    /// Appends a cell. Its sequence is ignored, and [`Timestamp::LATEST`] stands for the time of
    /// the commit. Cells of a family must be adjacent; families may come in any order. Returns
    /// whether the cell begins another row.
    pub fn push(&mut self, family: u8, key: &KeyParts<'_>, value: &[u8]) -> bool {
        let own_timestamp = key.timestamp != Timestamp::LATEST;
        let before = self.bytes.get(self.row_start..self.row_start + self.row_length);
        let same_row = !self.bytes.is_empty() && before == Some(key.row);
        // One exact reservation: the buffer may have been allocated at its final size.
        let own_bytes = if own_timestamp { 2 + 8 } else { 2 };
        let parts = [key.row, key.qualifier, value];
        let part_bytes = |part: &&[u8]| varint_bytes(part.len()) + part.len();
        self.bytes.reserve(own_bytes + parts.iter().map(part_bytes).sum::<usize>());
        let mut code = key.cell_type as u8;
        code |= if own_timestamp { TIMESTAMP_FOLLOWS } else { 0 };
        code |= if same_row { ROW_AS_BEFORE } else { 0 };
        self.bytes.extend_from_slice(&[code, family]);
        if own_timestamp {
            self.bytes.extend_from_slice(&key.timestamp.0.to_le_bytes());
        }
        if !same_row {
            push_varint(&mut self.bytes, key.row.len() as u64);
            (self.row_start, self.row_length) = (self.bytes.len(), key.row.len());
            self.bytes.extend_from_slice(key.row);
        }
        push_varint(&mut self.bytes, key.qualifier.len() as u64);
        self.bytes.extend_from_slice(key.qualifier);
        push_varint(&mut self.bytes, value.len() as u64);
        self.bytes.extend_from_slice(value);
        self.cell_count += 1;
        !same_row
    }

    /// Returns the number of cells.
    pub fn cell_count(&self) -> usize {
        self.cell_count
    }

    /// Returns the bytes that the cells take in the log.
    pub fn byte_count(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether there is no cell.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the cells with the clock of a commit.
    pub fn of(&self, clock: CommitClock) -> LoggedCells<'_> {
        LoggedCells::new(&self.bytes, clock)
    }

    /// Decodes cells with the clock of a commit; `None` if the bytes are malformed.
    pub(crate) fn parse(bytes: &[u8], clock: CommitClock) -> Option<LoggedCells<'_>> {
        let cells = LoggedCells::new(bytes, clock);
        cells.is_whole().then_some(cells)
    }

    /// Returns the encoded bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<'a> LoggedCells<'a> {
    pub(super) fn new(bytes: &'a [u8], clock: CommitClock) -> LoggedCells<'a> {
        LoggedCells { input: Input { bytes }, row: &[], clock }
    }

    /// Returns whether the bytes are cells up to their end.
    pub(super) fn is_whole(&self) -> bool {
        let mut cells = self.clone();
        while cells.next().is_some() {}
        cells.input.bytes.is_empty()
    }

    /// Takes the leading cells that have the family of the first one.
    pub fn next_family(&mut self) -> Option<(u8, FamilyCells<'_, 'a>)> {
        let family = self.family()?;
        Some((family, FamilyCells { cells: self, family }))
    }

    fn family(&self) -> Option<u8> {
        self.input.bytes.get(1).copied()
    }
}

impl<'a> Iterator for LoggedCells<'a> {
    type Item = LoggedCell<'a>;

    /// Ends at the first malformed byte; bytes from a file were validated before.
    #[inline]
    fn next(&mut self) -> Option<LoggedCell<'a>> {
        let mut input = Input { bytes: self.input.bytes };
        let [code, family] = input.array()?;
        let cell_type = CellType::from_code(code & !(TIMESTAMP_FOLLOWS | ROW_AS_BEFORE))?;
        let timestamp = match code & TIMESTAMP_FOLLOWS {
            0 => self.clock.timestamp,
            _ => Timestamp(i64::from_le_bytes(input.array()?)),
        };
        if code & ROW_AS_BEFORE == 0 {
            self.row = input.slice()?;
        }
        let qualifier = input.slice()?;
        let value = input.slice()?;
        self.input = input;
        let sequence = self.clock.sequence;
        let key = KeyParts { row: self.row, qualifier, timestamp, sequence, cell_type };
        Some(LoggedCell { family, key, value })
    }
}

/// Iterator over the cells of one family; dropping it skips the remaining ones.
pub struct FamilyCells<'b, 'a> {
    cells: &'b mut LoggedCells<'a>,
    family: u8,
}

impl FamilyCells<'_, '_> {
    /// Returns the time of the commit.
    pub(crate) fn time(&self) -> Timestamp {
        self.cells.clock.timestamp
    }
}

impl<'a> Iterator for FamilyCells<'_, 'a> {
    type Item = (KeyParts<'a>, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<(KeyParts<'a>, &'a [u8])> {
        if self.cells.family() != Some(self.family) {
            return None;
        }
        self.cells.next().map(|cell| (cell.key, cell.value))
    }
}

impl Drop for FamilyCells<'_, '_> {
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}

fn varint_bytes(value: usize) -> usize {
    (usize::BITS - (value | 1).leading_zeros()).div_ceil(7) as usize
}
