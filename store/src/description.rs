//! Descriptions of regions: a copy of a region's manifest record in its directory (HBase's
//! `.regioninfo`). Only the salvage of a directory without a manifest reads them.
//!
//! They are written after the manifest and not synced, so that they cost little; a missing one is
//! written at the next opening.

use std::path::Path;

use crate::codec;
use crate::descriptor::{DatabaseId, RegionId, RowRange, TableDescriptor};
use crate::env::Env;
use crate::error::Result;

/// Name of the file in the region's directory.
const NAME: &str = "REGION";
/// Magic, and version of the content.
const HEAD: [u8; 12] = *b"bennu-rg\x02\0\0\0";

/// Metadata of a region without the manifest.
#[derive(Debug, Clone, PartialEq, bincode::Encode, bincode::Decode)]
pub(crate) struct RegionDescription {
    /// The database.
    pub(crate) database: DatabaseId,
    /// The table's descriptor when the description was written.
    pub(crate) table: TableDescriptor,
    /// The region.
    pub(crate) region: RegionId,
    start: Vec<u8>,
    stop: Option<Vec<u8>>,
}

impl RegionDescription {
    /// Returns the description of a region with these rows.
    pub(crate) fn new(
        database: DatabaseId,
        table: TableDescriptor,
        region: RegionId,
        rows: &RowRange,
    ) -> RegionDescription {
        let RowRange { start, stop } = rows.clone();
        RegionDescription { database, table, region, start, stop }
    }

    /// Returns the rows of the region.
    pub(crate) fn rows(&self) -> RowRange {
        RowRange { start: self.start.clone(), stop: self.stop.clone() }
    }

    /// Writes the description to the region's directory, replacing an existing one.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Io`].
    pub(crate) fn write(&self, env: &dyn Env, directory: &Path) -> Result<()> {
        let mut bytes = HEAD.to_vec();
        codec::append_record(self, &mut bytes);
        env.create(&directory.join(NAME))?.append(&bytes)
    }

    /// Returns whether a region's directory has a description.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Io`].
    pub(crate) fn exists(env: &dyn Env, directory: &Path) -> Result<bool> {
        Ok(env.list(directory)?.iter().any(|name| name.as_os_str() == NAME))
    }

    /// Returns the description in a region's directory; `None` if there is none or it is
    /// unreadable.
    pub(crate) fn read(env: &dyn Env, directory: &Path) -> Option<RegionDescription> {
        let file = env.open(&directory.join(NAME)).ok()?;
        let mut bytes = vec![0; file.byte_count().ok()? as usize];
        file.read_at(0, &mut bytes).ok()?;
        let record = bytes.strip_prefix(&HEAD)?;
        codec::read_record(record, ()).ok().map(|(description, _)| description)
    }
}
