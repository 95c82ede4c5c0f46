//! Descriptions of regions: what the manifest says of a region, once more in its directory
//! (HBase's `.regioninfo`). Nobody reads them but who salvages a directory without a manifest.
//!
//! They are written after the manifest and not synced, so that they cost little; one that is
//! missing is written by the next start.

use std::path::Path;

use crate::codec;
use crate::descriptor::{DatabaseId, RegionId, RowRange, TableDescriptor};
use crate::env::Env;
use crate::error::Result;

/// What the file in the region's directory is called.
const NAME: &str = "REGION";
/// Its first bytes, and the version of what follows.
const HEAD: [u8; 12] = *b"bennu-rg\x01\0\0\0";

/// What is known of a region without the manifest.
#[derive(Debug, Clone, PartialEq, bincode::Encode, bincode::Decode)]
pub(crate) struct RegionDescription {
    /// The database.
    pub(crate) database: DatabaseId,
    /// The table, as it was when the description was written.
    pub(crate) table: TableDescriptor,
    /// The region.
    pub(crate) region: RegionId,
    start: Vec<u8>,
    stop: Option<Vec<u8>>,
}

impl RegionDescription {
    /// Returns the description of a region of these rows.
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

    /// Writes the description to the region's directory, over one that is there.
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

    /// Returns the description in a region's directory; `None` if it has none that can be read.
    pub(crate) fn read(env: &dyn Env, directory: &Path) -> Option<RegionDescription> {
        let file = env.open(&directory.join(NAME)).ok()?;
        let mut bytes = vec![0; file.byte_count().ok()? as usize];
        file.read_at(0, &mut bytes).ok()?;
        let record = bytes.strip_prefix(&HEAD)?;
        codec::read_record(record).ok().map(|(description, _)| description)
    }
}
