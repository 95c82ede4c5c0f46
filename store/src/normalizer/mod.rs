//! Region normaliser: merges regions that have become small, and splits those that are large
//! compared with others (HBase's `normalize`).
//!
//! ```text
//!   regions of a table: sizes, ages --> plan --> actions, which a caller shows or runs
//! ```
//!
//! The caller decides when an action runs: the plan is visible before. Sizes change meanwhile, so
//! an action that no longer fits has no effect.
//!
//! # Out of scope
//!
//! The period, and the choice of tables: the server. Salt buckets: the caller passes the length of
//! their prefix.

mod plan;

use std::sync::Arc;
use std::time::Duration;

pub use plan::{NormalizerAction, NormalizerActionKind};

use crate::descriptor::{TableDescriptor, TableId};
use crate::error::Result;
use crate::manifest::UNKNOWN_CREATION;
use crate::normalizer::plan::{SizedRegion, SizedTable, plan};
use crate::region::Region;
use crate::region_replacement::{self, RegionReplacement};
use crate::store::Store;
use crate::table::Table;

/// Conditions of merges that do not depend on a table's options.
#[derive(Debug, Clone, Copy)]
pub struct NormalizerRules {
    /// Regions are not merged if the first bytes of their rows differ, up to this length: that of a
    /// salt.
    pub prefix_bytes: usize,
    /// Age from which a region is merged.
    pub min_age: Duration,
}

/// Plan of a table's normalisation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NormalizerPlan {
    /// True if the table is normalised automatically.
    pub enabled: bool,
    /// Size at which the actions aim.
    pub target_bytes: u64,
    /// The actions: splits first.
    pub actions: Vec<NormalizerAction>,
}

impl Store {
    /// Returns the age from which regions are merged automatically.
    pub fn normalizer_min_age(&self) -> Duration {
        self.engine().options().normalizer_min_age
    }

    /// Returns what would normalise a table, whether it is enabled for the table or not. Takes an
    /// index look-up for each split.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`](crate::Error::NoSuchTable), [`Error::Io`](crate::Error::Io).
    pub fn normalizer_plan(
        &self,
        table: TableId,
        rules: NormalizerRules,
    ) -> Result<NormalizerPlan> {
        let table = self.engine().table(table)?;
        let descriptor = Arc::clone(&table.descriptor());
        if descriptor.colocated_with.is_some() {
            // Its regions follow those of its base table.
            return Ok(NormalizerPlan { enabled: false, target_bytes: 0, actions: Vec::new() });
        }
        let map = Arc::clone(&table.regions());
        let regions: Vec<SizedRegion> =
            map.all().iter().map(|region| sized(region, rules.min_age)).collect();
        let sized = SizedTable {
            regions: &regions,
            options: &descriptor.split,
            flush_bytes: map.all().iter().map(|region| region.flush_bytes()).min().unwrap_or(0),
            prefix_bytes: rules.prefix_bytes,
            now_micros: self.now_micros(),
        };
        let mut actions = Vec::new();
        for action in plan(&sized) {
            let region = action.regions.first().and_then(|region| map.by_id(*region));
            let runs = match (action.kind, region) {
                (NormalizerActionKind::Split, Some(region)) => {
                    region.split_row(&descriptor.split.policy)?.is_some()
                }
                _ => true,
            };
            actions.extend(runs.then_some(action));
        }
        let target_bytes = sized.target_bytes();
        Ok(NormalizerPlan { enabled: descriptor.split.normalization, target_bytes, actions })
    }

    /// Runs an action of a table's plan. `None` if the regions have changed so that it does not fit
    /// any more: nothing has changed then.
    ///
    /// # Errors
    ///
    /// As [`Store::merge_regions`] and [`Store::split_region`]: nothing has changed.
    pub fn normalize(
        &self,
        table: TableId,
        action: &NormalizerAction,
    ) -> Result<Option<RegionReplacement>> {
        let _defining = self.engine().ddl_lock.lock();
        let table = self.engine().table(table)?;
        let Some(regions) = present_regions(&table, action) else { return Ok(None) };
        let bytes: u64 = regions.iter().map(|region| bytes(region)).sum();
        match action.kind {
            NormalizerActionKind::Merge if bytes > action.bytes_max => Ok(None),
            NormalizerActionKind::Merge => {
                region_replacement::merge(self.engine(), &table, &action.regions).map(Some)
            }
            NormalizerActionKind::Split => {
                let descriptor: Arc<TableDescriptor> = Arc::clone(&table.descriptor());
                let point = regions[0].split_row(&descriptor.split.policy)?;
                let split =
                    point.map(|point| region_replacement::split(self.engine(), &table, &point));
                split.transpose()
            }
        }
    }
}

/// Returns the regions of an action; `None` if one was replaced, or has half-files of a split.
fn present_regions(table: &Table, action: &NormalizerAction) -> Option<Vec<Arc<Region>>> {
    let map = table.regions();
    let present = action.regions.iter().map(|region| {
        let region = map.by_id(*region)?;
        (!region.has_parts()).then(|| Arc::clone(region))
    });
    present.collect()
}

fn sized(region: &Region, min_age: Duration) -> SizedRegion {
    let age = i64::try_from(min_age.as_micros()).unwrap_or(i64::MAX);
    let created = Some(region.created_micros()).filter(|created| *created != UNKNOWN_CREATION);
    SizedRegion {
        region: region.id(),
        bytes: bytes(region),
        mergeable_from: created.map(|created| created.saturating_add(age)),
        rows: region.rows().clone(),
        // A merge would fail.
        is_blocked: region.has_parts() || region.check_whole().is_err(),
    }
}

fn bytes(region: &Region) -> u64 {
    region.compaction_figures().file_bytes + region.memstore_bytes()
}
