//! Compactions of a region's families: plan, run, manifest edit, installation.

use std::sync::atomic::Ordering;

use crate::cell::Sequence;
use crate::compaction::{CompactionRequest, RewriteProgress};
use crate::error::{Error, Result};
use crate::family_store::{
    CompactionOutcome, CompactionPlan, CompactionStatistics, FamilyStore, PlanInputs, RewriteRules,
};
use crate::manifest::FamilyChange;
use crate::region::observer_hooks::CompactionHooks;
use crate::region::{Region, RegionServices, RewriteTotals, begin_in_manifest};
use crate::scan::Horizon;

impl Region {
    /// Returns the number of runs a family has left before writers wait; `None` if they never do.
    pub(crate) fn runs_left(&self, family: usize) -> Option<i64> {
        self.families.load().get(family)?.runs_left()
    }

    /// Returns the compaction pressure of the region: 0 if no merge is due, 1 at the limit at
    /// which writers wait, more above it.
    pub(crate) fn compaction_pressure(&self) -> f64 {
        let families = self.families.load();
        families.iter().map(|family| family.compaction_pressure()).fold(0.0, f64::max)
    }

    /// Returns whether writers must wait for compactions.
    pub(crate) fn has_too_many_files(&self) -> bool {
        self.too_many_files.load(Ordering::Relaxed)
    }

    pub(super) fn count_files(&self) {
        let families = self.families.load();
        let blocked =
            families.iter().any(|family| family.runs_left().is_some_and(|left| left <= 0));
        self.too_many_files.store(blocked, Ordering::Relaxed);
    }

    /// Returns whether the region was dropped.
    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    /// Returns the statistics of all families.
    pub(crate) fn compaction_figures(&self) -> CompactionStatistics {
        let mut figures = CompactionStatistics::default();
        for family in self.families.load().iter() {
            figures += family.compaction_figures();
        }
        figures
    }

    /// Checks that no file of a family is missing: otherwise it is not compacted.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`].
    pub(crate) fn check_family(&self, family: usize) -> Result<()> {
        self.families.load().get(family).map_or(Ok(()), |family| family.check_whole())
    }

    /// Selects a compaction of a family, `None` if there is none that can run now.
    pub(crate) fn plan_compaction(
        &self,
        family: usize,
        request: CompactionRequest,
        off_peak: bool,
        horizon: Horizon,
    ) -> Option<CompactionPlan> {
        // Before the files are listed: a later flush moves cells into other files.
        let through = self.durable_through(horizon.snapshot);
        let inputs = PlanInputs { off_peak, horizon, through, flush_bytes: self.flush_bytes() };
        self.families.load().get(family)?.plan_compaction(request, inputs)
    }

    /// Returns the last sequence, at most `visible`, up to which all commits are in files. All
    /// commits up to `visible` have been applied.
    fn durable_through(&self, visible: Sequence) -> Sequence {
        let lowest = self.unflushed().map_or(u64::MAX, |lowest| lowest.0);
        visible.min(Sequence(lowest.saturating_sub(1)))
    }

    /// Returns for each family the number of its retired rules, from the oldest on, that have no
    /// effect on any cell of the region. All commits up to `visible` have been applied.
    pub(crate) fn applied_rules(&self, visible: Sequence) -> Vec<usize> {
        let through = self.durable_through(visible);
        self.families.load().iter().map(|family| family.applied_rules(through)).collect()
    }

    /// Executes a plan of a family.
    pub(crate) fn compact(
        &self,
        index: usize,
        plan: &CompactionPlan,
        surroundings: &dyn RegionServices,
        progress: &impl RewriteProgress,
    ) -> Result<RewriteTotals> {
        let families = self.families.load_full();
        let Some(family) = families.get(index) else { return Ok(RewriteTotals::default()) };
        let (horizon, chain) = (surroundings.horizon(), surroundings.observers(self.table));
        let (watch, mut filter) =
            CompactionHooks::begin(chain, self.observer_ref(), (index, plan), horizon)?;
        let rules = RewriteRules { horizon, filter: filter.as_deref_mut() };
        let outcome = family.run_compaction(plan, rules, progress)?;
        watch.commit(&outcome).inspect_err(|_| family.discard_compaction(&outcome))?;
        self.install_compaction(index, family, &outcome, surroundings)?;
        let done = RewriteTotals {
            cells_in: outcome.cells_in,
            cells_out: outcome.cells_out,
            files_out: outcome.outputs.len() as u64,
        };
        watch.end(&outcome, done);
        Ok(done)
    }

    fn install_compaction(
        &self,
        index: usize,
        family: &FamilyStore,
        outcome: &CompactionOutcome,
        surroundings: &dyn RegionServices,
    ) -> Result<()> {
        let _installing = self.installing.lock();
        let present = self.families.load();
        let is_present = present.get(index).is_some_and(|present| std::ptr::eq(&**present, family));
        if self.is_dropped() || !is_present {
            // The table or the family was dropped, or other regions have its rows and link to its
            // inputs.
            family.discard_compaction(outcome);
            return Ok(());
        }
        let change = FamilyChange {
            family: index as u8,
            removed: outcome.inputs.clone(),
            added: outcome.outputs.clone(),
            history: begin_in_manifest(outcome.history_begin),
        };
        match self.append_edit(surroundings, vec![change], None) {
            Ok(()) => {}
            Err(error @ Error::InvalidRequest(_)) => {
                family.discard_compaction(outcome);
                return Err(error);
            }
            // The outcome of the edit is unknown. Its files stay until the next opening, which
            // removes unlisted ones.
            Err(error) => return Err(error),
        }
        family.install_compaction(outcome)?;
        self.count_files();
        self.feed_files_to_replicas();
        tracing::debug!(
            region = self.id.0,
            inputs = ?outcome.inputs,
            outputs = ?outcome.outputs,
            "compacted"
        );
        Ok(())
    }
}
