//! What a table is to the store: an id, families with their rules, and where its regions are cut.

mod compaction;
mod split;

pub use compaction::{CompactionOptions, CompactionPolicy};
pub use compaction::{DateTieredOptions, ExploringOptions, LeveledOptions};
pub use split::{SplitOptions, SplitPolicy};

use std::fmt;
use std::time::Duration;

use crate::layout::ValueLayout;

/// Names a table for ever; never reused.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode,
)]
pub struct TableId(pub u32);

/// Names a region for ever; never reused.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode,
)]
pub struct RegionId(pub u64);

/// Names a store file within its region and family; never reused.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode,
)]
pub struct FileId(pub u64);

/// Names a database for ever: chosen at random when its directory is created.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    bincode::Encode,
    bincode::Decode,
)]
pub struct DatabaseId(pub u128);

impl fmt::Display for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Identity of a store file: what it was written as. No two files have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, bincode::Encode, bincode::Decode)]
pub struct FileIdentity {
    /// The database.
    pub database: DatabaseId,
    /// The table.
    pub table: TableId,
    /// The region that wrote it; since then a split may have given it to others.
    pub region: RegionId,
    /// Index of the family.
    pub family: u8,
    /// The number that it had there.
    pub file: FileId,
}

impl fmt::Display for FileIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FileIdentity { database, table, region, family, file } = self;
        write!(
            f,
            "file {} of table {}, region {}, family {family}, database {database}",
            file.0, table.0, region.0
        )
    }
}

/// Rows from `start` to before `stop`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowRange {
    /// First row; empty for the first of all.
    pub start: Vec<u8>,
    /// Row after the last; `None` for open.
    pub stop: Option<Vec<u8>>,
}

impl RowRange {
    /// Returns whether a row lies before the stop.
    pub fn is_before_stop(&self, row: &[u8]) -> bool {
        self.stop.as_deref().is_none_or(|stop| row < stop)
    }

    /// Returns whether a row is one of them.
    pub fn contains(&self, row: &[u8]) -> bool {
        self.start.as_slice() <= row && self.is_before_stop(row)
    }

    /// Returns whether all rows of another range are among them.
    pub fn covers(&self, other: &RowRange) -> bool {
        let ends_after = match (&self.stop, &other.stop) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(other)) => other <= own,
        };
        self.start <= other.start && ends_after
    }
}

/// A table.
#[derive(Debug, Clone, PartialEq, bincode::Encode, bincode::Decode)]
pub struct TableDescriptor {
    /// Its id, chosen by the caller.
    pub id: TableId,
    /// A name for logs and errors.
    pub name: String,
    /// The families, sorted as cells sort; a cell names its family by index. Never empty.
    pub families: Vec<FamilyDescriptor>,
    /// Copies of each region, the primary included. At least 1.
    pub region_replication: u8,
    /// What a commit waits for, unless the transaction says otherwise.
    pub durability: Durability,
    /// First row of each region but the first, ascending; empty for one region.
    pub split_points: Vec<Vec<u8>>,
    /// Bytes of cells at which the memstores of a region are flushed. `None`: the store's default.
    pub memstore_flush_bytes: Option<u64>,
    /// How its regions are split by themselves.
    pub split: SplitOptions,
}

/// A column family.
#[derive(Debug, Clone, PartialEq, bincode::Encode, bincode::Decode)]
pub struct FamilyDescriptor {
    /// Its name.
    pub name: String,
    /// Versions kept of each column. At least 1.
    pub versions: u32,
    /// Versions kept even when older than the TTL.
    pub min_versions: u32,
    /// Age at which cells expire; `None`: never.
    pub ttl: Option<Duration>,
    /// Whether deleted cells can still be read with a time range from before the delete.
    pub keep_deleted_cells: KeepDeletedCells,
    /// How long a marker stays at least, by its timestamp: a major compaction that finds it younger
    /// keeps it. Zero: no longer than it masks anything.
    pub delete_purge_delay: Duration,
    /// How blocks are compressed.
    pub compression: Compression,
    /// What the bloom filter of a file holds.
    pub bloom_filter: BloomFilter,
    /// Bytes of cells at which a block is closed.
    pub block_bytes: u32,
    /// How the cells of a block are laid out in files written from now on.
    pub data_block_encoding: DataBlockEncoding,
    /// How columnar blocks cut the values.
    pub value_layout: ValueLayout,
    /// How store files are merged.
    pub compaction: CompactionOptions,
    /// Whether data blocks that are read stay in the block cache.
    pub block_cache: bool,
}

impl FamilyDescriptor {
    /// Returns a family with the defaults: one version, for ever, lz4, row bloom, 32 KiB blocks.
    pub fn new(name: impl Into<String>) -> FamilyDescriptor {
        FamilyDescriptor {
            name: name.into(),
            versions: 1,
            min_versions: 0,
            ttl: None,
            keep_deleted_cells: KeepDeletedCells::False,
            delete_purge_delay: Duration::ZERO,
            compression: Compression::Lz4,
            bloom_filter: BloomFilter::Row,
            block_bytes: DataBlockEncoding::Rows.default_block_bytes(),
            data_block_encoding: DataBlockEncoding::Rows,
            value_layout: ValueLayout::default(),
            compaction: CompactionOptions::default(),
            block_cache: true,
        }
    }
}

/// KEEP_DELETED_CELLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub enum KeepDeletedCells {
    /// Markers mask, whatever the time range; compaction drops what they mask.
    False,
    /// Markers mask only when they are inside the time range; nothing is dropped by a marker.
    True,
    /// As `True` until the marker is older than the TTL.
    Ttl,
}

/// Compression of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub enum Compression {
    /// As they are.
    None,
    /// LZ4.
    Lz4,
    /// Zstandard at its first level: a third smaller than LZ4, two to three times its time.
    Zstd,
}

/// What a bloom filter holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub enum BloomFilter {
    /// No filter.
    None,
    /// Row keys.
    Row,
    /// Row keys with qualifiers, and row keys.
    RowCol,
}

/// Layout of the cells of a data block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub enum DataBlockEncoding {
    /// One cell after the other, keys prefix-compressed: good at points and short ranges.
    Rows,
    /// The keys together, then each section of the values apart, after the family's
    /// [`ValueLayout`]: good at scans of some sections.
    Columnar,
}

impl DataBlockEncoding {
    /// Returns the bytes of cells at which a block is closed, where nobody says otherwise. What a
    /// scan of some columns has to do for each block is worth it only for many rows.
    pub const fn default_block_bytes(self) -> u32 {
        match self {
            DataBlockEncoding::Rows => 32 << 10,
            DataBlockEncoding::Columnar => 64 << 10,
        }
    }
}

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub enum Durability {
    /// The record is on disk.
    SyncWal,
    /// The record is handed to the log, which will write it soon.
    AsyncWal,
    /// Nothing is logged; a crash loses what was not flushed.
    SkipWal,
}
