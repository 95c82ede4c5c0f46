//! Records of regions and of their file changes in the manifest.

use bincode::de::Decoder;
use bincode::error::DecodeError;
use bincode::{Decode, Encode};

use crate::descriptor::{FileId, RegionId};
use crate::run::FileRecord;

/// Format version of the manifest from which regions have a time of creation.
const CREATION_VERSION: u32 = 10;

/// Format version of the manifest that a record is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManifestVersion(pub u32);

/// A region in the manifest.
#[derive(Debug, Clone, PartialEq, Encode)]
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
    /// Time at which the table, a split or a merge created it: microseconds since 1970, or
    /// [`UNKNOWN_CREATION`].
    pub created_micros: i64,
}

/// Time of creation of a region from before format version 10, or of a salvaged one. It is older
/// than any other.
pub const UNKNOWN_CREATION: i64 = 0;

impl Decode<ManifestVersion> for RegionRecord {
    fn decode<D: Decoder<Context = ManifestVersion>>(
        decoder: &mut D,
    ) -> Result<RegionRecord, DecodeError> {
        Ok(RegionRecord {
            id: Decode::decode(decoder)?,
            start: Decode::decode(decoder)?,
            stop: Decode::decode(decoder)?,
            flushed: Decode::decode(decoder)?,
            files: Decode::decode(decoder)?,
            history: Decode::decode(decoder)?,
            created_micros: match *decoder.context() {
                ManifestVersion(CREATION_VERSION..) => Decode::decode(decoder)?,
                _ => UNKNOWN_CREATION,
            },
        })
    }
}

bincode::impl_borrow_decode_with_context!(RegionRecord, ManifestVersion);

/// Begin of the history of a family without dropped versions.
pub const NO_BEGIN: i64 = i64::MIN;

/// File changes of one family.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
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
