//! Records of regions and of their file changes in the manifest.

use crate::descriptor::{FileId, RegionId};
use crate::run::FileRecord;

/// A region in the manifest.
#[derive(Debug, Clone, PartialEq, bincode::Encode, bincode::Decode)]
pub struct RegionRecord {
    /// Its id.
    pub id: RegionId,
    /// First row.
    pub start: Vec<u8>,
    /// Row after the last; `None` for no stop.
    pub stop: Option<Vec<u8>>,
    /// All commits up to here are in its files.
    pub flushed: u64,
    /// Live files of each family.
    pub files: Vec<Vec<FileRecord>>,
    /// Begin of the history of each family; [`NO_BEGIN`] if nothing was dropped.
    pub history: Vec<i64>,
}

/// Begin of the history of a family without dropped versions.
pub const NO_BEGIN: i64 = i64::MIN;

/// File changes of one family.
#[derive(Debug, Clone, PartialEq, bincode::Encode, bincode::Decode)]
pub struct FamilyChange {
    /// Index of the family.
    pub family: u8,
    /// Files that are removed, or moved to another level.
    pub removed: Vec<FileId>,
    /// New files, and moved files: removals are applied first.
    pub added: Vec<FileRecord>,
    /// New begin of the history, if versions were dropped.
    pub history: Option<i64>,
}
