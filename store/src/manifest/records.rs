//! Records of regions and of their file changes in the manifest.

use bincode::de::{Decode, Decoder};
use bincode::error::DecodeError;

use crate::descriptor::{FileId, RegionId};
use crate::run::{FileRecord, RecordLayout};

/// A region in the manifest.
#[derive(Debug, Clone, PartialEq, bincode::Encode)]
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
#[derive(Debug, Clone, PartialEq, bincode::Encode)]
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

bincode::impl_borrow_decode_with_context!(RegionRecord, RecordLayout);

impl Decode<RecordLayout> for RegionRecord {
    fn decode<D: Decoder<Context = RecordLayout>>(
        decoder: &mut D,
    ) -> Result<RegionRecord, DecodeError> {
        let mut record = RegionRecord {
            id: Decode::decode(decoder)?,
            start: Decode::decode(decoder)?,
            stop: Decode::decode(decoder)?,
            flushed: Decode::decode(decoder)?,
            files: Decode::decode(decoder)?,
            history: Vec::new(),
        };
        if *decoder.context() >= RecordLayout::HISTORIES {
            record.history = Decode::decode(decoder)?;
        }
        record.resize(record.files.len());
        Ok(record)
    }
}

bincode::impl_borrow_decode_with_context!(FamilyChange, RecordLayout);

impl Decode<RecordLayout> for FamilyChange {
    fn decode<D: Decoder<Context = RecordLayout>>(
        decoder: &mut D,
    ) -> Result<FamilyChange, DecodeError> {
        Ok(FamilyChange {
            family: Decode::decode(decoder)?,
            removed: Decode::decode(decoder)?,
            added: Decode::decode(decoder)?,
            history: match *decoder.context() >= RecordLayout::HISTORIES {
                true => Decode::decode(decoder)?,
                false => None,
            },
        })
    }
}

impl RegionRecord {
    /// Adjusts the number of families; new ones have no files.
    pub(super) fn resize(&mut self, family_count: usize) {
        self.files.resize(family_count, Vec::new());
        self.history.resize(family_count, NO_BEGIN);
    }
}
