//! Properties of a store file: statistics and metadata of its cells.

use crate::cell::{CellType, KeyParts, Sequence, Timestamp, last_seen};
use crate::descriptor::{BloomFilter, DatabaseId, FileId, FileIdentity, RegionId, TableId};
use crate::file::format::{BlockHandle, u32_at, u64_at};
use crate::file::index::{LEVELS_MAX, TreeRoot};

/// Metadata of a file's cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProperties {
    /// First row.
    pub first_row: Vec<u8>,
    /// Last row.
    pub last_row: Vec<u8>,
    /// Lowest timestamp of any cell.
    pub min_timestamp: Timestamp,
    /// Highest timestamp of any cell.
    pub max_timestamp: Timestamp,
    /// Lowest timestamp of a put; `i64::MAX` if there is none.
    pub min_put_timestamp: Timestamp,
    /// Lowest sequence.
    pub min_sequence: Sequence,
    /// Highest sequence.
    pub max_sequence: Sequence,
    /// Number of cells.
    pub cell_count: u64,
    /// Number of distinct rows.
    pub row_count: u64,
    /// Number of cells of each type: put, delete, delete family version, delete column, delete
    /// family.
    pub type_counts: [u64; 5],
    /// Number of puts with a cell TTL.
    pub expiring_count: u64,
    /// The time at which the last cell expires by its cell TTL; the highest timestamp if a cell
    /// has none.
    pub last_seen: Timestamp,
    /// Bytes of keys and values before any compression.
    pub raw_bytes: u64,
    /// Identity of the file; `None` if not recorded.
    pub identity: Option<FileIdentity>,
    /// Kind of the Bloom filter.
    pub bloom_filter: BloomFilter,
    pub(super) data_index: TreeRoot,
    pub(super) bloom_index: TreeRoot,
}

// Tags of properties. A reader skips unknown ones.
const FIRST_ROW: u8 = 1;
const LAST_ROW: u8 = 2;
const NUMBERS: u8 = 3;
const TYPE_COUNTS: u8 = 4;
const BLOOM: u8 = 5;
const DATA_INDEX: u8 = 6;
const BLOOM_INDEX: u8 = 7;
const EXPIRY: u8 = 8;
const IDENTITY: u8 = 9;

fn type_slot(cell_type: CellType) -> usize {
    match cell_type {
        CellType::Put | CellType::ExpiringPut => 0,
        CellType::Delete => 1,
        CellType::DeleteFamilyVersion => 2,
        CellType::DeleteColumn => 3,
        CellType::DeleteFamily => 4,
    }
}

impl FileProperties {
    pub(super) fn new(bloom_filter: BloomFilter) -> FileProperties {
        FileProperties {
            first_row: Vec::new(),
            last_row: Vec::new(),
            min_timestamp: Timestamp(i64::MAX),
            max_timestamp: Timestamp(i64::MIN),
            min_put_timestamp: Timestamp(i64::MAX),
            min_sequence: Sequence(u64::MAX),
            max_sequence: Sequence(0),
            cell_count: 0,
            row_count: 0,
            type_counts: [0; 5],
            expiring_count: 0,
            last_seen: Timestamp(i64::MIN),
            raw_bytes: 0,
            identity: None,
            bloom_filter,
            data_index: TreeRoot::default(),
            bloom_index: TreeRoot::default(),
        }
    }

    /// Returns the number of cells of a type.
    pub fn count_of(&self, cell_type: CellType) -> u64 {
        self.type_counts[type_slot(cell_type)]
    }

    /// Returns the number of delete markers.
    pub fn marker_count(&self) -> u64 {
        self.type_counts[1..].iter().sum()
    }

    /// Returns the reason why the properties contradict themselves, if they do.
    pub(super) fn objection(&self) -> Option<&'static str> {
        let typed = self.type_counts.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count));
        match () {
            () if self.first_row > self.last_row => Some("the last row is below the first"),
            () if self.min_timestamp > self.max_timestamp => Some("timestamps contradict"),
            () if self.min_sequence > self.max_sequence => Some("sequences contradict"),
            () if self.row_count == 0 || self.row_count > self.cell_count => Some("row count"),
            () if typed != Some(self.cell_count) => Some("the types do not add up to the cells"),
            () if self.expiring_count > self.type_counts[0] => Some("expiring cells are no puts"),
            () => None,
        }
    }

    pub(super) fn count(&mut self, parts: &KeyParts<'_>, byte_count: usize) {
        self.min_timestamp = self.min_timestamp.min(parts.timestamp);
        self.max_timestamp = self.max_timestamp.max(parts.timestamp);
        if parts.cell_type.is_put() {
            self.min_put_timestamp = self.min_put_timestamp.min(parts.timestamp);
        }
        self.min_sequence = self.min_sequence.min(parts.sequence);
        self.max_sequence = self.max_sequence.max(parts.sequence);
        self.cell_count += 1;
        self.type_counts[type_slot(parts.cell_type)] += 1;
        self.raw_bytes += byte_count as u64;
    }

    /// Updates the expiry properties from a cell.
    pub(super) fn count_expiry(&mut self, parts: &KeyParts<'_>, stored: &[u8]) {
        let last = match parts.cell_type {
            CellType::ExpiringPut => {
                self.expiring_count += 1;
                last_seen(parts.timestamp, stored)
            }
            _ => Timestamp(i64::MAX),
        };
        self.last_seen = self.last_seen.max(last);
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let mut property = |tag: u8, parts: &[&[u8]]| {
            out.push(tag);
            let length: usize = parts.iter().map(|part| part.len()).sum();
            out.extend_from_slice(&(length as u32).to_le_bytes());
            parts.iter().for_each(|part| out.extend_from_slice(part));
        };
        property(FIRST_ROW, &[&self.first_row]);
        property(LAST_ROW, &[&self.last_row]);
        property(
            NUMBERS,
            &[
                &self.min_timestamp.0.to_le_bytes(),
                &self.max_timestamp.0.to_le_bytes(),
                &self.min_put_timestamp.0.to_le_bytes(),
                &self.min_sequence.0.to_le_bytes(),
                &self.max_sequence.0.to_le_bytes(),
                &self.cell_count.to_le_bytes(),
                &self.raw_bytes.to_le_bytes(),
                &self.row_count.to_le_bytes(),
            ],
        );
        let counts = self.type_counts.map(u64::to_le_bytes);
        property(TYPE_COUNTS, &[counts.as_flattened()]);
        let bloom = match self.bloom_filter {
            BloomFilter::None => 0,
            BloomFilter::Row => 1,
            BloomFilter::RowCol => 2,
        };
        property(BLOOM, &[&[bloom]]);
        for (tag, root) in [(DATA_INDEX, self.data_index), (BLOOM_INDEX, self.bloom_index)] {
            property(tag, &[&[root.levels], &root.handle.encode()]);
        }
        if self.expiring_count > 0 {
            let (count, last) = (self.expiring_count.to_le_bytes(), self.last_seen.0.to_le_bytes());
            property(EXPIRY, &[&count, &last]);
        }
        if let Some(FileIdentity { database, table, region, family, file }) = self.identity {
            property(
                IDENTITY,
                &[
                    &database.0.to_le_bytes(),
                    &table.0.to_le_bytes(),
                    &region.0.to_le_bytes(),
                    &file.0.to_le_bytes(),
                    &[family],
                ],
            );
        }
    }

    /// Decodes the properties block; `None` if it is malformed.
    pub(super) fn decode(mut bytes: &[u8]) -> Option<FileProperties> {
        let mut properties = FileProperties::new(BloomFilter::None);
        properties.last_seen = Timestamp(i64::MAX);
        let mut seen = 0_u32;
        while !bytes.is_empty() {
            let tag = bytes[0];
            let length = u32_at(bytes, 1)? as usize;
            let (value, rest) = bytes[5..].split_at_checked(length)?;
            bytes = rest;
            properties.take(tag, value)?;
            seen |= 1_u32.checked_shl(u32::from(tag)).unwrap_or(0);
        }
        let is_whole = seen & 0b1111_1110 == 0b1111_1110 && properties.objection().is_none();
        is_whole.then_some(properties)
    }

    fn take(&mut self, tag: u8, value: &[u8]) -> Option<()> {
        match tag {
            FIRST_ROW => self.first_row = value.to_vec(),
            LAST_ROW => self.last_row = value.to_vec(),
            NUMBERS => {
                self.min_timestamp = Timestamp(u64_at(value, 0)? as i64);
                self.max_timestamp = Timestamp(u64_at(value, 8)? as i64);
                self.min_put_timestamp = Timestamp(u64_at(value, 16)? as i64);
                self.min_sequence = Sequence(u64_at(value, 24)?);
                self.max_sequence = Sequence(u64_at(value, 32)?);
                self.cell_count = u64_at(value, 40)?;
                self.raw_bytes = u64_at(value, 48)?;
                self.row_count = u64_at(value, 56)?;
            }
            TYPE_COUNTS => {
                for (slot, count) in self.type_counts.iter_mut().enumerate() {
                    *count = u64_at(value, slot * 8)?;
                }
            }
            BLOOM => {
                self.bloom_filter = match value.first()? {
                    0 => BloomFilter::None,
                    1 => BloomFilter::Row,
                    2 => BloomFilter::RowCol,
                    _ => return None,
                }
            }
            DATA_INDEX => self.data_index = tree_root(value)?,
            BLOOM_INDEX => self.bloom_index = tree_root(value)?,
            EXPIRY => {
                self.expiring_count = u64_at(value, 0)?;
                self.last_seen = Timestamp(u64_at(value, 8)? as i64);
            }
            IDENTITY => self.identity = Some(identity(value)?),
            _ => {}
        }
        Some(())
    }
}

fn identity(value: &[u8]) -> Option<FileIdentity> {
    let (low, high) = (u64_at(value, 0)?, u64_at(value, 8)?);
    Some(FileIdentity {
        database: DatabaseId(u128::from(high) << 64 | u128::from(low)),
        table: TableId(u32_at(value, 16)?),
        region: RegionId(u64_at(value, 20)?),
        file: FileId(u64_at(value, 28)?),
        family: *value.get(36)?,
    })
}

fn tree_root(value: &[u8]) -> Option<TreeRoot> {
    let (&levels, handle) = value.split_first()?;
    let handle = BlockHandle::decode(handle)?;
    (levels <= LEVELS_MAX).then_some(TreeRoot { levels, handle })
}
