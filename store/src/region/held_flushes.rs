//! Held flushes of a region, so that its files can be taken at a sequence: for checkpoints and
//! adoption of files.
//!
//! ```text
//!   hold_flushes --> (write gates of all regions) freeze --> write --> views, flushes resume
//! ```
//!
//! Meanwhile commits continue into new memstores; no other thread flushes.

use std::sync::Arc;

use parking_lot::{MutexGuard, RwLockWriteGuard};

use crate::cell::Sequence;
use crate::error::Result;
use crate::family_store::ReadView;
use crate::region::{Flushing, Region, RegionServices};
use crate::run::Run;

/// A region whose flushes are held.
pub(crate) struct HeldFlushes<'a> {
    region: &'a Region,
    flushing: MutexGuard<'a, Flushing>,
}

impl Region {
    /// Prevents other flushes. The remains of an earlier flush are written first.
    pub(crate) fn hold_flushes(
        &self,
        surroundings: &dyn RegionServices,
    ) -> Result<HeldFlushes<'_>> {
        let mut flushing = self.flushing.lock();
        self.flush_frozen(&mut flushing, surroundings)?;
        Ok(HeldFlushes { region: self, flushing })
    }

    /// Closes the write gate: no commit is in progress in the region until the guard is dropped.
    /// Several gates must be closed in the order of region ids.
    pub(crate) fn close_write_gate(&self) -> RwLockWriteGuard<'_, ()> {
        self.write_gate.write()
    }
}

impl HeldFlushes<'_> {
    /// Freezes the memstores. The caller has closed the write gate; `through` is the last
    /// assigned sequence.
    pub(crate) fn freeze(&mut self, through: Sequence) {
        self.region.freeze(&mut self.flushing, through);
    }

    /// Writes the frozen memstores and returns a view of each family, whose files hold exactly
    /// the commits up to the sequence of [`HeldFlushes::freeze`]. The views keep the files on
    /// disk.
    pub(crate) fn write(mut self, surroundings: &dyn RegionServices) -> Result<Vec<Arc<ReadView>>> {
        self.region.flush_frozen(&mut self.flushing, surroundings)?;
        let views = self.region.families.load().iter().map(|family| family.view()).collect();
        drop(self.flushing);
        surroundings.memory_changed(self.region);
        Ok(views)
    }

    /// Writes the frozen memstores, as files older than those that are to be adopted.
    pub(crate) fn flush(&mut self, surroundings: &dyn RegionServices) -> Result<()> {
        self.region.flush_frozen(&mut self.flushing, surroundings).map(drop)
    }

    /// Adds runs that the manifest lists to their families' views.
    pub(crate) fn adopt(self, runs: Vec<(u8, Arc<Run>)>, surroundings: &dyn RegionServices) {
        let families = self.region.families.load_full();
        for (family, run) in runs {
            families[usize::from(family)].install_adopted(run);
        }
        self.region.feed_files_to_replicas();
        drop(self.flushing);
        surroundings.memory_changed(self.region);
    }
}

/// A region whose files do not change: flushes and compactions are held.
pub(crate) struct HeldFiles<'a> {
    flushes: HeldFlushes<'a>,
    _installing: MutexGuard<'a, ()>,
}

impl Region {
    /// Holds the files. The remains of an earlier flush are written first.
    pub(crate) fn hold_files(&self, surroundings: &dyn RegionServices) -> Result<HeldFiles<'_>> {
        let flushes = self.hold_flushes(surroundings)?;
        Ok(HeldFiles { flushes, _installing: self.installing.lock() })
    }
}

impl HeldFiles<'_> {
    /// Writes the memstores, with all commits up to `through`, the last assigned sequence. The
    /// caller has closed the write gate.
    pub(crate) fn flush(
        &mut self,
        through: Sequence,
        surroundings: &dyn RegionServices,
    ) -> Result<()> {
        if self.flushes.region.unflushed().is_none() {
            return Ok(());
        }
        self.flushes.freeze(through);
        self.flushes.flush(surroundings)
    }

    /// Returns the views of the families.
    pub(crate) fn views(&self) -> Vec<Arc<ReadView>> {
        self.flushes.region.families.load().iter().map(|family| family.view()).collect()
    }
}
