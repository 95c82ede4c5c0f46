//! Verification of the store files of a region: `CHECK STORE`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::descriptor::{FamilyDescriptor, FileId, RegionId};
use crate::error::{Error, Result};
use crate::file;

use super::Region;

/// Verified store file.
#[derive(Debug)]
pub struct FileCheck {
    /// The region that has it, or a part of it.
    pub region: RegionId,
    /// Its family.
    pub family: Arc<FamilyDescriptor>,
    /// Its id; `None` for a file that could not be opened with the store.
    pub file: Option<FileId>,
    /// Bytes that the region has of it.
    pub byte_count: u64,
    /// The first damage.
    pub damage: Option<Error>,
}

impl Region {
    /// Reads every block of the store files, beside the block cache, and passes each file to
    /// `found`. Files that are replaced meanwhile remain until they are read. `verified`: files
    /// that were read; one that a split left in two regions is read once.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`]. Damage and failed reads are results.
    pub(crate) fn check_files(
        &self,
        cancelled: &AtomicBool,
        verified: &mut BTreeSet<PathBuf>,
        found: &mut dyn FnMut(FileCheck),
    ) -> Result<()> {
        let families = self.families.load();
        for view in families.iter().map(|family| family.view()) {
            let check = |file, byte_count, damage| FileCheck {
                region: self.id,
                family: Arc::clone(view.family()),
                file,
                byte_count,
                damage,
            };
            if let Some(damage) = &view.damage {
                found(check(None, 0, Some(damage.error())));
            }
            for live in view.runs.iter().flat_map(|run| run.files()) {
                let (env, path) = (Arc::clone(&self.context.options.env), live.file.path());
                let outcome = match verified.insert(path.to_owned()) {
                    true => file::verify(env, path, cancelled),
                    false => Ok(()),
                };
                match outcome {
                    Err(Error::Cancelled) => return Err(Error::Cancelled),
                    outcome => found(check(Some(live.id), live.file.byte_count(), outcome.err())),
                }
            }
        }
        Ok(())
    }
}
