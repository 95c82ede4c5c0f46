//! Cells, their order, their encoded keys, and batches of cells.
//!
//! A cell is `(row, family, qualifier, timestamp, sequence, type, value)`. A memstore or store file
//! belongs to one family of one region, so the family is not part of the key inside it.
//!
//! # Order
//!
//! Row ascending, (family ascending,) qualifier ascending, timestamp *descending*, sequence
//! *descending*, then type (markers before puts). A scan therefore reads the newest version of a
//! column first. Family markers have an empty qualifier, so they come before the row's columns.
//!
//! # The encoded key
//!
//! `row | qualifier | !timestamp (8) | !sequence (8) | type (1) | row length (2)`: integers big
//! endian, the timestamp with its sign bit flipped before it is inverted. [`compare_keys`] compares
//! row, then qualifier, then the 17 bytes after it as plain bytes.

use std::cmp::Ordering;
use std::time::Duration;

use smallvec::SmallVec;

/// Timestamp of a version, as visible to the user: microseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Placeholder for the commit time in uncommitted cells; sorts before all other timestamps.
    pub const LATEST: Timestamp = Timestamp(i64::MAX);
}

/// Commit sequence: the position in the order of commits. It decides visibility; it is never
/// visible to the user.
///
/// Sequences of cells staged by an open transaction have the top bit set ([`Sequence::STAGED`]) and
/// count the transaction's own writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sequence(pub u64);

impl Sequence {
    /// Added to the sequence of staged cells.
    pub const STAGED: u64 = 1 << 63;

    /// Returns whether the cell is staged by an open transaction.
    pub fn is_staged(self) -> bool {
        self.0 & Sequence::STAGED != 0
    }
}

/// Type of a cell. The number is the code on disk; larger codes sort first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CellType {
    /// A version of a column.
    Put = 4,
    /// A version of a column with a cell TTL. Its stored value begins with the TTL: see
    /// [`expiring_value`]. Readers receive it as a `Put` with [`CellRef::ttl`].
    ExpiringPut = 5,
    /// Masks the version of the column with exactly this timestamp.
    Delete = 8,
    /// Masks all versions of the family's columns with exactly this timestamp.
    DeleteFamilyVersion = 10,
    /// Masks all versions of the column up to this timestamp.
    DeleteColumn = 12,
    /// Masks all versions of all columns of the family up to this timestamp.
    DeleteFamily = 14,
}

impl CellType {
    /// Returns its name, as the HBase shell shows it.
    pub fn name(self) -> &'static str {
        match self {
            CellType::Put | CellType::ExpiringPut => "Put",
            CellType::Delete => "Delete",
            CellType::DeleteFamilyVersion => "DeleteFamilyVersion",
            CellType::DeleteColumn => "DeleteColumn",
            CellType::DeleteFamily => "DeleteFamily",
        }
    }

    /// Returns whether it can mask cells of all columns of a family.
    pub fn is_family_marker(self) -> bool {
        matches!(self, CellType::DeleteFamily | CellType::DeleteFamilyVersion)
    }

    /// Returns whether it is a version of a column.
    pub fn is_put(self) -> bool {
        matches!(self, CellType::Put | CellType::ExpiringPut)
    }

    /// Returns the type of a code on disk.
    pub fn from_code(code: u8) -> Option<CellType> {
        match code {
            4 => Some(CellType::Put),
            5 => Some(CellType::ExpiringPut),
            8 => Some(CellType::Delete),
            10 => Some(CellType::DeleteFamilyVersion),
            12 => Some(CellType::DeleteColumn),
            14 => Some(CellType::DeleteFamily),
            _ => None,
        }
    }
}

/// Bytes of the TTL in front of the stored value of an [`CellType::ExpiringPut`].
pub const TTL_BYTES: usize = 8;

/// Returns the stored value of an [`CellType::ExpiringPut`]: the TTL in milliseconds (8 bytes, big
/// endian), then the value.
pub fn expiring_value(ttl: Duration, value: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(TTL_BYTES + value.len());
    let milliseconds = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
    stored.extend_from_slice(&milliseconds.to_be_bytes());
    stored.extend_from_slice(value);
    stored
}

/// Splits the stored value of an [`CellType::ExpiringPut`] into TTL and value.
pub fn split_expiring(stored: &[u8]) -> Option<(Duration, &[u8])> {
    let (milliseconds, value) = stored.split_first_chunk::<TTL_BYTES>()?;
    Some((Duration::from_millis(u64::from_be_bytes(*milliseconds)), value))
}

/// Returns the last moment at which an [`CellType::ExpiringPut`] is visible.
pub fn last_seen(timestamp: Timestamp, stored: &[u8]) -> Timestamp {
    let Some((ttl, _)) = split_expiring(stored) else { return Timestamp(i64::MAX) };
    let micros = i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX);
    Timestamp(timestamp.0.saturating_add(micros))
}

/// Bytes of the encoded key after row and qualifier.
pub const KEY_TAIL_BYTES: usize = 8 + 8 + 1 + 2;

/// The longest row key: its length must fit two bytes.
pub const ROW_BYTES_MAX: usize = 32 * 1024 - 1;
const _: () = assert!(ROW_BYTES_MAX <= u16::MAX as usize && KEY_TAIL_BYTES == 19);

/// The parts of an encoded key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyParts<'a> {
    /// The row key.
    pub row: &'a [u8],
    /// The qualifier; empty for family markers.
    pub qualifier: &'a [u8],
    /// The timestamp.
    pub timestamp: Timestamp,
    /// The commit sequence.
    pub sequence: Sequence,
    /// The type.
    pub cell_type: CellType,
}

impl<'a> KeyParts<'a> {
    /// Appends the encoded key.
    pub fn encode(&self, out: &mut Vec<u8>) {
        debug_assert!(self.row.len() <= ROW_BYTES_MAX, "row key too long");
        out.extend_from_slice(self.row);
        out.extend_from_slice(self.qualifier);
        out.extend_from_slice(&self.tail(self.row.len()));
    }

    /// Writes the encoded key to `out`, which must have the length of the key.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub(crate) fn encode_into(&self, out: &mut [u8]) {
        debug_assert!(self.row.len() <= ROW_BYTES_MAX, "row key too long");
        let (row, rest) = out.split_at_mut(self.row.len());
        let (qualifier, tail) = rest.split_at_mut(self.qualifier.len());
        row.copy_from_slice(self.row);
        qualifier.copy_from_slice(self.qualifier);
        tail.copy_from_slice(&self.tail(self.row.len()));
    }

    /// Returns the encoded key behind row and qualifier, for a row of this length.
    pub(crate) fn tail(&self, row_length: usize) -> [u8; KEY_TAIL_BYTES] {
        let mut tail = [0; KEY_TAIL_BYTES];
        let timestamp = !((self.timestamp.0 as u64) ^ (1 << 63));
        tail[..8].copy_from_slice(&timestamp.to_be_bytes());
        tail[8..16].copy_from_slice(&(!self.sequence.0).to_be_bytes());
        // Larger codes sort first, so the code is stored inverted.
        tail[16] = !(self.cell_type as u8);
        tail[17..].copy_from_slice(&(row_length as u16).to_be_bytes());
        tail
    }

    /// Decodes a key; `None` if the bytes are malformed.
    pub fn decode(key: &'a [u8]) -> Option<KeyParts<'a>> {
        let head_length = key.len().checked_sub(KEY_TAIL_BYTES)?;
        let (head, tail) = key.split_at(head_length);
        let row_length = usize::from(u16::from_be_bytes([tail[17], tail[18]]));
        if row_length > head.len() {
            return None;
        }
        let timestamp = u64::from_be_bytes(tail[0..8].try_into().ok()?);
        let sequence = u64::from_be_bytes(tail[8..16].try_into().ok()?);
        Some(KeyParts {
            row: &head[..row_length],
            qualifier: &head[row_length..],
            timestamp: Timestamp((!timestamp ^ (1 << 63)) as i64),
            sequence: Sequence(!sequence),
            cell_type: CellType::from_code(!tail[16])?,
        })
    }
}

/// Sort position of an encoded key. Search keys have one, too, though they cannot be decoded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyPlace<'a> {
    pub(crate) row: &'a [u8],
    qualifier: &'a [u8],
    /// Timestamp, sequence and type in their stored form, which ascends.
    rest: (u64, u64, u8),
}

impl<'a> KeyPlace<'a> {
    /// Returns the sort position of an encoded key.
    ///
    /// # Panics
    ///
    /// If the bytes are too short for one.
    pub(crate) fn of(key: &'a [u8]) -> KeyPlace<'a> {
        let (row, qualifier, tail) = split_key(key);
        let word = |at: usize| u64::from_be_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i| tail[at + i]));
        KeyPlace { row, qualifier, rest: (word(0), word(8), tail[16]) }
    }

    /// Compares with a decoded key.
    pub(crate) fn compare(&self, parts: &KeyParts<'_>) -> Ordering {
        let rest = (
            !((parts.timestamp.0 as u64) ^ (1 << 63)),
            !parts.sequence.0,
            !(parts.cell_type as u8),
        );
        self.row
            .cmp(parts.row)
            .then_with(|| self.qualifier.cmp(parts.qualifier))
            .then_with(|| self.rest.cmp(&rest))
    }
}

/// Compares rows or qualifiers, as `a.cmp(b)` does. They are short, often empty, and a cursor has
/// usually just written them: a masked read of whole vectors by `memcmp` then takes many times as
/// long as the comparison.
#[inline]
pub(crate) fn compare_bytes(a: &[u8], b: &[u8]) -> Ordering {
    let ((a_words, a_rest), (b_words, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    for (a, b) in a_words.iter().zip(b_words) {
        let (a, b) = (u64::from_be_bytes(*a), u64::from_be_bytes(*b));
        if a != b {
            return a.cmp(&b);
        }
    }
    match a_words.len().cmp(&b_words.len()) {
        Ordering::Equal => compare_each(a_rest, b_rest),
        // The other one ends within this word.
        Ordering::Less => compare_each(a_rest, &b_words[a_words.len()]),
        Ordering::Greater => compare_each(&a_words[b_words.len()], b_rest),
    }
}

fn compare_each(a: &[u8], b: &[u8]) -> Ordering {
    let difference = a.iter().zip(b).find(|(a, b)| a != b);
    difference.map_or_else(|| a.len().cmp(&b.len()), |(a, b)| a.cmp(b))
}

/// Returns whether rows or qualifiers are equal; see [`compare_bytes`].
#[inline]
pub(crate) fn equal_bytes(a: &[u8], b: &[u8]) -> bool {
    let ((a_words, a_rest), (b_words, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let word = |word: &[u8; 8]| u64::from_ne_bytes(*word);
    a.len() == b.len()
        && a_words.iter().zip(b_words).all(|(a, b)| word(a) == word(b))
        && a_rest.iter().zip(b_rest).all(|(a, b)| a == b)
}

/// Compares two encoded keys in cell order.
pub fn compare_keys(a: &[u8], b: &[u8]) -> Ordering {
    let (a_row, a_qualifier, a_tail) = split_key(a);
    let (b_row, b_qualifier, b_tail) = split_key(b);
    compare_bytes(a_row, b_row)
        .then_with(|| compare_bytes(a_qualifier, b_qualifier))
        .then_with(|| a_tail[..17].cmp(&b_tail[..17]))
}

/// Replaces the sequence in an encoded key.
pub fn set_sequence(key: &mut [u8], sequence: Sequence) {
    debug_assert!(is_key(key), "the bytes are no key");
    let start = key.len() - KEY_TAIL_BYTES + 8;
    key[start..start + 8].copy_from_slice(&(!sequence.0).to_be_bytes());
}

/// Returns the first 16 bytes of a row, padded with zeros, as a number: of two rows with
/// different numbers the one with the lower comes first.
pub fn row_prefix(row: &[u8]) -> u128 {
    match row.first_chunk::<16>() {
        Some(bytes) => u128::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; 16];
            bytes[..row.len()].copy_from_slice(row);
            u128::from_be_bytes(bytes)
        }
    }
}

/// Returns the row of an encoded key.
pub fn row_of(key: &[u8]) -> &[u8] {
    split_key(key).0
}

/// Returns row and qualifier of an encoded key.
pub fn column_of(key: &[u8]) -> (&[u8], &[u8]) {
    let (row, qualifier, _) = split_key(key);
    (row, qualifier)
}

/// Returns whether the bytes are an encoded key: valid for [`compare_keys`] and
/// [`KeyParts::decode`].
pub fn is_key(bytes: &[u8]) -> bool {
    let Some(head_length) = bytes.len().checked_sub(KEY_TAIL_BYTES) else { return false };
    let tail = &bytes[head_length..];
    usize::from(u16::from_be_bytes([tail[17], tail[18]])) <= head_length
        && CellType::from_code(!tail[16]).is_some()
}

/// A search key, usually without a heap allocation.
pub type SearchKey = SmallVec<[u8; 128]>;

/// Returns a key that sorts before every cell of a row and after every cell of the rows before it.
pub fn row_start_key(row: &[u8]) -> SearchKey {
    search_key(row, &[], 0)
}

/// Returns a key that sorts before every cell of a column and after every cell of the columns
/// before it in the row.
pub fn column_start_key(row: &[u8], qualifier: &[u8]) -> SearchKey {
    search_key(row, qualifier, 0)
}

/// Returns a key that sorts after every cell of a row and before every cell of the rows after it.
pub fn row_end_key(row: &[u8]) -> SearchKey {
    // The least row above it.
    let mut above = SearchKey::from_slice(row);
    above.push(0);
    search_key(&above, &[], 0)
}

/// Returns a key that sorts after every cell of a column and before every cell of the next one.
pub fn column_end_key(row: &[u8], qualifier: &[u8]) -> SearchKey {
    search_key(row, qualifier, 0xff)
}

fn search_key(row: &[u8], qualifier: &[u8], fill: u8) -> SearchKey {
    let mut key = SearchKey::from_slice(row);
    key.extend_from_slice(qualifier);
    key.extend_from_slice(&[fill; KEY_TAIL_BYTES - 2]);
    key.extend_from_slice(&(row.len() as u16).to_be_bytes());
    key
}

/// Splits an encoded key into row, qualifier and tail.
///
/// # Panics
///
/// If the bytes are too short for a key: keys come from our own encoder or from blocks whose
/// checksum was verified.
pub(crate) fn split_key(key: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let (head, tail) = key.split_at(key.len() - KEY_TAIL_BYTES);
    let row_length = usize::from(u16::from_be_bytes([tail[17], tail[18]]));
    let (row, qualifier) = head.split_at(row_length);
    (row, qualifier, tail)
}

/// A cell that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The row key.
    pub row: Vec<u8>,
    /// Index of the family in the table's descriptor.
    pub family: u8,
    /// The qualifier.
    pub qualifier: Vec<u8>,
    /// The timestamp.
    pub timestamp: Timestamp,
    /// The commit sequence.
    pub sequence: Sequence,
    /// The type.
    pub cell_type: CellType,
    /// The stored value; empty for markers.
    pub value: Vec<u8>,
}

impl Cell {
    /// Returns its key within its family.
    pub fn key_parts(&self) -> KeyParts<'_> {
        KeyParts {
            row: &self.row,
            qualifier: &self.qualifier,
            timestamp: self.timestamp,
            sequence: self.sequence,
            cell_type: self.cell_type,
        }
    }
}

/// Cells of some rows, in order, in one buffer: the result of scans and gets.
///
/// Reused by callers from batch to batch, so that a scan allocates nothing per row.
#[derive(Debug, Clone, Default)]
pub struct CellBatch {
    bytes: Vec<u8>,
    cells: Vec<CellEntry>,
    /// Index into `cells` of the first cell of each row.
    rows: Vec<u32>,
    /// Offset of the last row's key in `bytes`.
    row_start: u32,
}

#[derive(Debug, Clone, Copy)]
struct CellEntry {
    row_start: u32,
    row_length: u16,
    qualifier_start: u32,
    qualifier_length: u32,
    value_start: u32,
    value_length: u32,
    family: u8,
    /// For `ExpiringPut`, the TTL is stored before the value.
    cell_type: CellType,
    timestamp: Timestamp,
    sequence: Sequence,
}

/// One row of a [`CellBatch`].
#[derive(Clone, Copy)]
pub struct RowRef<'a> {
    batch: &'a CellBatch,
    first: usize,
    end: usize,
}

/// One cell of a [`CellBatch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellRef<'a> {
    /// The row key.
    pub row: &'a [u8],
    /// Index of the family.
    pub family: u8,
    /// The qualifier.
    pub qualifier: &'a [u8],
    /// The timestamp.
    pub timestamp: Timestamp,
    /// The commit sequence.
    pub sequence: Sequence,
    /// The type; always `Put` unless the scan was raw. Never `ExpiringPut`.
    pub cell_type: CellType,
    /// The value.
    pub value: &'a [u8],
    /// The cell TTL, relative to the timestamp; in milliseconds.
    pub ttl: Option<Duration>,
}

impl<'a> CellRef<'a> {
    /// Returns a cell in the form for readers.
    #[inline]
    pub fn of_stored(family: u8, key: &KeyParts<'a>, stored: &'a [u8]) -> CellRef<'a> {
        let expiring = match key.cell_type {
            CellType::ExpiringPut => split_expiring(stored),
            _ => None,
        };
        let (ttl, value) = expiring.map_or((None, stored), |(ttl, value)| (Some(ttl), value));
        CellRef {
            row: key.row,
            family,
            qualifier: key.qualifier,
            timestamp: key.timestamp,
            sequence: key.sequence,
            cell_type: if key.cell_type.is_put() { CellType::Put } else { key.cell_type },
            value,
            ttl,
        }
    }
}

impl CellBatch {
    /// Returns an empty batch.
    pub fn new() -> CellBatch {
        CellBatch::default()
    }

    /// Empties the batch; its memory is reused.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.cells.clear();
        self.rows.clear();
    }

    /// Begins a row; the cells pushed next belong to it.
    #[inline]
    pub fn start_row(&mut self, row: &[u8]) {
        debug_assert!(u32::try_from(self.bytes.len()).is_ok(), "offsets of a batch fit");
        self.rows.push(self.cells.len() as u32);
        self.row_start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(row);
    }

    /// Removes the last row, with its cells.
    pub fn cancel_row(&mut self) {
        let Some(first) = self.rows.pop() else { return };
        self.bytes.truncate(self.row_start as usize);
        self.cells.truncate(first as usize);
    }

    /// Adds a cell to the last row.
    #[inline]
    pub fn push(&mut self, cell: CellRef<'_>) {
        debug_assert!(self.is_in_last_row(cell.row), "a cell of another row");
        let qualifier_start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(cell.qualifier);
        let cell_type = match cell.ttl {
            None => cell.cell_type,
            Some(ttl) => {
                self.bytes.extend_from_slice(&expiring_value(ttl, &[]));
                CellType::ExpiringPut
            }
        };
        let value_start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(cell.value);
        self.cells.push(CellEntry {
            row_start: self.row_start,
            row_length: cell.row.len() as u16,
            qualifier_start,
            qualifier_length: cell.qualifier.len() as u32,
            value_start,
            value_length: cell.value.len() as u32,
            family: cell.family,
            cell_type,
            timestamp: cell.timestamp,
            sequence: cell.sequence,
        });
    }

    fn is_in_last_row(&self, row: &[u8]) -> bool {
        !self.rows.is_empty() && self.bytes[self.row_start as usize..].starts_with(row)
    }

    /// Adds a put to the last row, whose value `append` appends. Adds nothing if that fails.
    pub(crate) fn push_put<E>(
        &mut self,
        family: u8,
        put: &KeyParts<'_>,
        append: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        debug_assert!(self.is_in_last_row(put.row), "a cell of another row");
        let qualifier_start = self.bytes.len();
        self.bytes.extend_from_slice(put.qualifier);
        let value_start = self.bytes.len();
        if let Err(error) = append(&mut self.bytes) {
            self.bytes.truncate(qualifier_start);
            return Err(error);
        }
        self.cells.push(CellEntry {
            row_start: self.row_start,
            row_length: put.row.len() as u16,
            qualifier_start: qualifier_start as u32,
            qualifier_length: put.qualifier.len() as u32,
            value_start: value_start as u32,
            value_length: (self.bytes.len() - value_start) as u32,
            family,
            cell_type: CellType::Put,
            timestamp: put.timestamp,
            sequence: put.sequence,
        });
        Ok(())
    }

    /// Returns the number of rows.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number of cells.
    pub fn cell_count(&self) -> usize {
        self.cells.len()
    }

    /// Returns the bytes held.
    pub fn byte_count(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns row `index`.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn row(&self, index: usize) -> RowRef<'_> {
        let first = self.rows[index] as usize;
        let end = self.rows.get(index + 1).map_or(self.cells.len(), |&next| next as usize);
        RowRef { batch: self, first, end }
    }

    /// Returns the last cell of the last row, if it has one.
    pub fn last_cell(&self) -> Option<CellRef<'_>> {
        let first = *self.rows.last()? as usize;
        self.cells[first..].last().map(|entry| self.cell(entry))
    }

    /// Returns row and qualifier of the last cell of the last row, if it has one.
    #[inline]
    pub(crate) fn last_column(&self) -> Option<(&[u8], &[u8])> {
        let entry = self.cells.get(*self.rows.last()? as usize..)?.last()?;
        let slice =
            |start: u32, length: u32| self.bytes.get(start as usize..(start + length) as usize);
        let row = slice(entry.row_start, u32::from(entry.row_length))?;
        Some((row, slice(entry.qualifier_start, entry.qualifier_length)?))
    }

    /// Returns the rows in order.
    pub fn rows(&self) -> impl Iterator<Item = RowRef<'_>> {
        (0..self.rows.len()).map(|index| self.row(index))
    }

    /// Adds copies of the rows of another batch.
    pub fn append(&mut self, other: &CellBatch) {
        for row in other.rows().filter(|row| row.first < row.end) {
            self.start_row(row.key());
            row.cells().for_each(|cell| self.push(cell));
        }
    }

    /// Keeps the rows for which `keep` returns `true`.
    pub fn retain_rows(&mut self, mut keep: impl FnMut(RowRef<'_>) -> bool) {
        let kept: Vec<bool> = self.rows().map(&mut keep).collect();
        if kept.contains(&false) {
            let whole = std::mem::take(self);
            for (row, _) in whole.rows().zip(kept).filter(|(_, kept)| *kept) {
                self.start_row(row.key());
                row.cells().for_each(|cell| self.push(cell));
            }
        }
    }

    /// Keeps the first `row_count` rows.
    pub fn truncate(&mut self, row_count: usize) {
        if let Some(&first) = self.rows.get(row_count) {
            self.cells.truncate(first as usize);
            self.rows.truncate(row_count);
        }
    }

    fn cell(&self, entry: &CellEntry) -> CellRef<'_> {
        let slice =
            |start: u32, length: u32| &self.bytes[start as usize..(start + length) as usize];
        let (cell_type, ttl) = match entry.cell_type {
            CellType::ExpiringPut => {
                let stored = &self.bytes[..entry.value_start as usize];
                let ttl = split_expiring(&stored[stored.len() - TTL_BYTES..]);
                (CellType::Put, ttl.map(|(ttl, _)| ttl))
            }
            cell_type => (cell_type, None),
        };
        CellRef {
            row: slice(entry.row_start, u32::from(entry.row_length)),
            family: entry.family,
            qualifier: slice(entry.qualifier_start, entry.qualifier_length),
            timestamp: entry.timestamp,
            sequence: entry.sequence,
            cell_type,
            value: slice(entry.value_start, entry.value_length),
            ttl,
        }
    }
}

impl<'a> RowRef<'a> {
    /// Returns the row key.
    #[inline]
    pub fn key(&self) -> &'a [u8] {
        let entry = &self.batch.cells[self.first];
        &self.batch.bytes[entry.row_start as usize..][..usize::from(entry.row_length)]
    }

    /// Returns the values of this qualifier with their families, in cell order.
    #[inline]
    pub fn values(&self, qualifier: &[u8]) -> impl Iterator<Item = (u8, &'a [u8])> {
        let batch = self.batch;
        let slice =
            |start: u32, length: u32| &batch.bytes[start as usize..(start + length) as usize];
        batch.cells[self.first..self.end].iter().filter_map(move |entry| {
            // Most are empty. A memcmp of empty slices does a masked read from a dangling
            // address, which is slow on some processors.
            let same = entry.qualifier_length as usize == qualifier.len()
                && (qualifier.is_empty()
                    || slice(entry.qualifier_start, entry.qualifier_length) == qualifier);
            same.then(|| (entry.family, slice(entry.value_start, entry.value_length)))
        })
    }

    /// Returns the cells of the row, in cell order.
    pub fn cells(&self) -> impl Iterator<Item = CellRef<'a>> + use<'a> {
        let batch = self.batch;
        batch.cells[self.first..self.end].iter().map(move |entry| batch.cell(entry))
    }

    /// Returns the newest value of a column, if the row has one.
    pub fn value(&self, family: u8, qualifier: &[u8]) -> Option<&'a [u8]> {
        self.cells()
            .find(|cell| cell.family == family && cell.qualifier == qualifier)
            .map(|cell| cell.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_compared_as_slices_are() {
        let mut texts: Vec<Vec<u8>> = vec![Vec::new()];
        for length in 1..=18 {
            for last in [0, 1, 255] {
                let mut text = vec![7; length];
                text[length - 1] = last;
                texts.push(text.clone());
                text[length / 2] = last;
                texts.push(text);
            }
        }
        for a in &texts {
            for b in &texts {
                assert_eq!(compare_bytes(a, b), a.cmp(b), "{a:?} {b:?}");
                assert_eq!(equal_bytes(a, b), a == b, "{a:?} {b:?}");
            }
        }
    }
}
