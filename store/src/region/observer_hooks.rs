//! Observer hooks around a region's flushes and compactions.

use std::sync::Arc;

use crate::compaction::CellFilter;
use crate::descriptor::FileId;
use crate::error::Result;
use crate::family_store::{CompactionOutcome, CompactionPlan, FlushOutcome};
use crate::observer::{
    FileOrigin, RegionChain, RegionRef, Rewrite, RewriteKind, Rewritten, StoreFileRef,
};
use crate::region::RewriteTotals;
use crate::scan::Horizon;

/// A flush with its observers.
pub(super) struct FlushHooks<'a> {
    pub(super) region: RegionRef<'a>,
    pub(super) chain: Option<Arc<RegionChain>>,
}

/// A compaction of a family with its observers.
pub(super) struct CompactionHooks<'a> {
    pub(super) chain: Option<Arc<RegionChain>>,
    pub(super) rewrite: Rewrite<'a>,
}

impl From<RewriteTotals> for Rewritten {
    fn from(done: RewriteTotals) -> Rewritten {
        let RewriteTotals { cells_in, cells_out, files_out } = done;
        Rewritten { cells_in, cells_out, files_out }
    }
}

impl FlushHooks<'_> {
    /// Calls the hooks before anything is written.
    pub(super) fn begin(&self) -> Result<()> {
        self.chain.as_ref().map_or(Ok(()), |chain| chain.pre_flush(self.region))
    }

    /// Calls the hooks before a family is written; returns the filter of its cells.
    pub(super) fn filter(
        &self,
        family: u8,
        horizon: Horizon,
    ) -> Result<Option<Box<dyn CellFilter>>> {
        let Some(chain) = &self.chain else { return Ok(None) };
        let (region, kind) = (self.region, RewriteKind::Flush);
        chain.pre_flush_store(&Rewrite { region, family, kind, inputs: &[], horizon })
    }

    /// Calls the hooks before the files are added to the manifest.
    pub(super) fn commit(&self, outcomes: &[(usize, FlushOutcome)]) -> Result<()> {
        let Some(chain) = &self.chain else { return Ok(()) };
        self.files(outcomes).try_for_each(|file| chain.pre_commit_store_file(&file))
    }

    /// Calls the hooks after the files are live.
    pub(super) fn end(&self, outcomes: &[(usize, FlushOutcome)], done: RewriteTotals) {
        let Some(chain) = &self.chain else { return };
        self.files(outcomes).for_each(|file| chain.post_commit_store_file(&file));
        chain.post_flush(self.region, &done.into());
    }

    fn files(&self, outcomes: &[(usize, FlushOutcome)]) -> impl Iterator<Item = StoreFileRef<'_>> {
        outcomes.iter().filter_map(|(family, outcome)| {
            let (region, origin) = (self.region, FileOrigin::Flush);
            Some(StoreFileRef { region, family: *family as u8, file: outcome.file?.id, origin })
        })
    }
}

impl<'a> CompactionHooks<'a> {
    /// Calls the hooks before the files are read; returns the handle and the filter of the cells.
    pub(super) fn begin(
        chain: Option<Arc<RegionChain>>,
        region: RegionRef<'a>,
        (family, plan): (usize, &'a CompactionPlan),
        horizon: Horizon,
    ) -> Result<(CompactionHooks<'a>, Option<Box<dyn CellFilter>>)> {
        let kind = if plan.sees_oldest() { RewriteKind::Major } else { RewriteKind::Minor };
        let inputs = plan.selection().inputs.as_slice();
        let rewrite = Rewrite { region, family: family as u8, kind, inputs, horizon };
        let filter = chain.as_ref().map_or(Ok(None), |chain| chain.pre_compact(&rewrite))?;
        Ok((CompactionHooks { chain, rewrite }, filter))
    }

    /// Calls the hooks before the files are added to the manifest.
    pub(super) fn commit(&self, outcome: &CompactionOutcome) -> Result<()> {
        let Some(chain) = &self.chain else { return Ok(()) };
        self.files(outcome).try_for_each(|file| chain.pre_commit_store_file(&file))
    }

    /// Calls the hooks after the files are live.
    pub(super) fn end(&self, outcome: &CompactionOutcome, done: RewriteTotals) {
        let Some(chain) = &self.chain else { return };
        self.files(outcome).for_each(|file| chain.post_commit_store_file(&file));
        chain.post_compact(&self.rewrite, &done.into());
    }

    /// Returns the new files, without moved ones.
    fn files(&self, outcome: &CompactionOutcome) -> impl Iterator<Item = StoreFileRef<'_>> {
        let is_new = |file: &FileId| !outcome.inputs.contains(file);
        outcome.outputs.iter().map(|record| record.id).filter(is_new).map(|file| {
            let Rewrite { region, family, .. } = self.rewrite;
            StoreFileRef { region, family, file, origin: FileOrigin::Compaction }
        })
    }
}
