//! Settings of a table or an index: the fields that the options of [`table`](super::table) set.

use std::sync::Arc;

use store::descriptor::{DataBlockEncoding, Durability, SplitOptions, TableDescriptor};
use store::quota::QuotaLimits;
use store::{FamilyDescriptor, TableId};

use crate::catalog::record::TableRecord;
use crate::storage_options::value::{
    IndexConsistency, RowStorage, SplitAlgorithm, TimestampSource,
};

/// Settings of a table or an index, of one of its families, and quotas of a table or a role.
#[derive(Debug, Clone, PartialEq)]
pub struct StorageSettings {
    /// Salt buckets; 0 for none.
    pub salt_buckets: u16,
    /// The algorithm of pre-splitting into [`StorageSettings::split_regions`] regions.
    pub split_algorithm: Option<SplitAlgorithm>,
    /// The initial number of regions, with an algorithm.
    pub split_regions: Option<u32>,
    /// The mapping of rows to cells.
    pub storage: RowStorage,
    /// Families with the names of their columns.
    pub column_families: Vec<(String, Vec<String>)>,
    /// The family of the columns without one, in CREATE TABLE.
    pub default_family: Option<String>,
    /// Source of timestamps.
    pub timestamps: TimestampSource,
    /// Statements may set TTLs of cells.
    pub cell_ttl: bool,
    /// Consistency of an index with its table.
    pub consistency: IndexConsistency,
    /// Each change of its table maintains the materialized view.
    pub maintained: bool,
    /// The table, without its families.
    pub table: TableDescriptor,
    /// One family, or the options of all families.
    pub family: FamilyDescriptor,
    /// The quotas.
    pub quota: QuotaLimits,
}

impl Default for StorageSettings {
    fn default() -> StorageSettings {
        StorageSettings::of(RowStorage::Row)
    }
}

impl RowStorage {
    /// Returns the default of DATA_BLOCK_ENCODING: the values of column cells have no columns to
    /// store separately.
    pub fn default_encoding(self) -> DataBlockEncoding {
        match self {
            RowStorage::Row => DataBlockEncoding::Columnar,
            RowStorage::Cell => DataBlockEncoding::Rows,
        }
    }
}

impl StorageSettings {
    /// Returns the settings of a table without other options.
    pub fn of(storage: RowStorage) -> StorageSettings {
        let data_block_encoding = storage.default_encoding();
        StorageSettings {
            storage,
            salt_buckets: 0,
            split_algorithm: None,
            split_regions: None,
            column_families: Vec::new(),
            default_family: None,
            timestamps: TimestampSource::Commit,
            cell_ttl: false,
            consistency: IndexConsistency::Strong,
            maintained: false,
            table: TableDescriptor {
                split: SplitOptions::default(),
                ..TableDescriptor::new(TableId(0), String::new(), Vec::new())
            },
            family: FamilyDescriptor {
                data_block_encoding,
                block_bytes: data_block_encoding.default_block_bytes(),
                ..FamilyDescriptor::new("0")
            },
            quota: QuotaLimits::default(),
        }
    }

    /// Returns the settings without options; the encoding is that of the storage of these
    /// settings, and the size of blocks that of
    /// their encoding.
    pub fn defaults(&self) -> StorageSettings {
        let mut defaults = StorageSettings::of(self.storage);
        defaults.storage = RowStorage::Row;
        defaults.family.block_bytes = self.family.data_block_encoding.default_block_bytes();
        defaults
    }
}

/// Returns the storage of a table.
pub(crate) fn storage(record: &TableRecord) -> RowStorage {
    match record.column_cells {
        true => RowStorage::Cell,
        false => RowStorage::Row,
    }
}

/// Sets the durability of UNLOGGED, which is ASYNC_WAL, unless the options say SKIP_WAL.
pub(crate) fn set_unlogged(record: &mut TableRecord, unlogged: bool) {
    let indexes = record.indexes.iter_mut().map(|index| &mut index.descriptor);
    for descriptor in std::iter::once(&mut record.descriptor).chain(indexes).map(Arc::make_mut) {
        descriptor.durability = match (descriptor.durability, unlogged) {
            (Durability::SyncWal, true) => Durability::AsyncWal,
            (Durability::AsyncWal, false) => Durability::SyncWal,
            (other, _) => other,
        };
    }
}
