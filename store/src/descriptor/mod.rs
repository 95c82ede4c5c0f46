//! Descriptors of tables and column families: ids, rules of families, split points.

pub mod colocation;
mod compaction;
mod split;
mod tags;

pub use compaction::{CompactionOptions, CompactionPolicy};
pub use compaction::{DateTieredOptions, ExploringOptions, LeveledOptions};
pub use split::{SplitOptions, SplitPolicy};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::layout::ValueLayout;

/// Id of a table; never reused.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode,
)]
pub struct TableId(pub u32);

/// Id of a region; never reused.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode,
)]
pub struct RegionId(pub u64);

/// Id of a store file within its region and family; never reused.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode,
)]
pub struct FileId(pub u64);

/// Id of a database: chosen at random when its directory is created.
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

/// Identity of a store file, which it records; unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, bincode::Encode, bincode::Decode)]
pub struct FileIdentity {
    /// The database.
    pub database: DatabaseId,
    /// The table.
    pub table: TableId,
    /// The region that wrote it; splits may have passed it to others since.
    pub region: RegionId,
    /// Index of the family.
    pub family: u8,
    /// Its id there.
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
    /// Row after the last; `None` for no stop.
    pub stop: Option<Vec<u8>>,
}

impl RowRange {
    /// Returns whether a row lies before the stop.
    pub fn is_before_stop(&self, row: &[u8]) -> bool {
        self.stop.as_deref().is_none_or(|stop| row < stop)
    }

    /// Returns whether the range contains a row.
    pub fn contains(&self, row: &[u8]) -> bool {
        self.start.as_slice() <= row && self.is_before_stop(row)
    }

    /// Returns whether the range contains all rows of another one.
    pub fn covers(&self, other: &RowRange) -> bool {
        let ends_after = match (&self.stop, &other.stop) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(other)) => other <= own,
        };
        self.start <= other.start && ends_after
    }
}

/// Descriptor of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableDescriptor {
    /// Its id, chosen by the caller.
    pub id: TableId,
    /// A name for logs and errors.
    pub name: String,
    /// The families, sorted as cells sort; a cell names its family by index. Never empty.
    pub families: Vec<FamilyDescriptor>,
    /// Number of copies of each region, including the primary. At least 1.
    pub region_replication: u8,
    /// Durability of commits, unless the transaction overrides it.
    pub durability: Durability,
    /// First row of each region but the first, ascending; empty for one region.
    pub split_points: Vec<Vec<u8>>,
    /// Size of a region's memstores at which they are flushed. `None`: the store's default.
    pub memstore_flush_bytes: Option<u64>,
    /// Policy of automatic splits; a colocated table has none of its own.
    pub split: SplitOptions,
    /// The base table whose regions its regions follow ([`colocation`]); `None`: it has
    /// regions of its own.
    pub colocated_with: Option<TableId>,
}

/// Descriptor of a column family.
#[derive(Debug, Clone, PartialEq)]
pub struct FamilyDescriptor {
    /// Its name. Empty for a dropped family, which has no cells; its index is not used again.
    pub name: String,
    /// Maximal number of versions of each column. At least 1.
    pub versions: u32,
    /// Number of versions retained even when older than the TTL.
    pub min_versions: u32,
    /// Age at which cells expire; `None`: never.
    pub ttl: Option<Duration>,
    /// Visibility of deleted cells to reads with a time range before the delete.
    pub keep_deleted_cells: KeepDeletedCells,
    /// Minimal age at which a major compaction drops a marker, by its timestamp. Zero: a marker
    /// is dropped once it masks nothing.
    pub delete_purge_delay: Duration,
    /// Compression of blocks.
    pub compression: Compression,
    /// Kind of the Bloom filter.
    pub bloom_filter: BloomFilter,
    /// Size at which a block is closed.
    pub block_bytes: u32,
    /// Encoding of data blocks in files written from now on.
    pub data_block_encoding: DataBlockEncoding,
    /// Layout of values in columnar blocks.
    pub value_layout: Arc<ValueLayout>,
    /// Policy and limits of compactions.
    pub compaction: CompactionOptions,
    /// True if data blocks enter the block cache when read.
    pub block_cache: bool,
    /// True if blocks have priority in the block cache.
    pub in_memory: bool,
    /// Rules that changes of the descriptor have replaced, oldest first. The store sets them.
    pub retired: Vec<RetiredRule>,
}

/// Maximum number of retired rules of a family.
pub const RETIRED_RULES_MAX: usize = 64;

/// Rule of expiry and versions that a change of a family has replaced: what it had ended remains
/// ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RetiredRule {
    /// Sequence of the last commit under the rule.
    pub last_sequence: u64,
    /// Time of the change: microseconds since 1970.
    pub until_micros: i64,
    /// As [`FamilyDescriptor::versions`].
    pub versions: u32,
    /// As [`FamilyDescriptor::min_versions`].
    pub min_versions: u32,
    /// As [`FamilyDescriptor::ttl`].
    pub ttl: Option<Duration>,
}

impl TableDescriptor {
    /// Returns a table of one region, without replicas and automatic splits, whose commits are
    /// synced.
    pub fn new(
        id: TableId,
        name: impl Into<String>,
        families: Vec<FamilyDescriptor>,
    ) -> TableDescriptor {
        TableDescriptor {
            id,
            name: name.into(),
            families,
            region_replication: 1,
            durability: Durability::SyncWal,
            split_points: Vec::new(),
            memstore_flush_bytes: None,
            split: SplitOptions::disabled(),
            colocated_with: None,
        }
    }
}

impl FamilyDescriptor {
    /// Returns a family with the defaults: one version, no TTL, LZ4, row Bloom filter, 32 KiB
    /// blocks.
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
            value_layout: Arc::default(),
            compaction: CompactionOptions::default(),
            block_cache: true,
            in_memory: false,
            retired: Vec::new(),
        }
    }

    /// Returns the descriptor of a dropped family.
    pub fn dropped() -> FamilyDescriptor {
        FamilyDescriptor::new("")
    }

    /// Returns whether the newest version of a cell expires by the TTL.
    pub fn expires_rows(&self) -> bool {
        self.ttl.is_some() && self.min_versions == 0
    }

    /// Returns whether the family was dropped.
    pub fn is_dropped(&self) -> bool {
        self.name.is_empty()
    }
}

/// KEEP_DELETED_CELLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepDeletedCells {
    /// Markers mask regardless of the time range; compaction drops masked cells.
    False,
    /// Markers mask only when they are inside the time range; masked cells are not dropped.
    True,
    /// As `True` until the marker is older than the TTL.
    Ttl,
}

/// Compression of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Uncompressed.
    None,
    /// LZ4.
    Lz4,
    /// Zstandard at its first level: a third smaller than LZ4, two to three times its time.
    Zstd,
}

/// Kind of keys in a Bloom filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BloomFilter {
    /// No filter.
    None,
    /// Row keys.
    Row,
    /// Row keys with qualifiers, and row keys.
    RowCol,
}

/// Encoding of the cells of a data block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataBlockEncoding {
    /// Cells concatenated, keys prefix-compressed: best for point reads and short ranges.
    Rows,
    /// The keys together, then each section of the values separately, by the family's
    /// [`ValueLayout`]: best for scans of some sections.
    Columnar,
}

impl DataBlockEncoding {
    /// Returns the default size at which a block is closed. The fixed cost per block of a scan of
    /// some columns pays only for many rows.
    pub const fn default_block_bytes(self) -> u32 {
        match self {
            DataBlockEncoding::Rows => 32 << 10,
            DataBlockEncoding::Columnar => 64 << 10,
        }
    }
}

/// Durability of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The record is synced to disk.
    SyncWal,
    /// The record is passed to the operating system, and synced soon after.
    AsyncWal,
    /// Nothing is logged; a crash loses unflushed cells.
    SkipWal,
}
