//! Plan of a table's normalisation: a pure function of the sizes and ages of its regions.
//!
//! HBase's `SimpleRegionNormalizer`. With T the target size,
//!
//! ```text
//!   split   a region above 2 T
//!   merge   a run of adjacent regions of at most T together; an empty region joins any neighbour
//! ```
//!
//! T is the target size of the table, its size divided by the target number of regions, or the
//! average of its regions.
//!
//! # Invariants
//!
//! 1. A region is in one action at most.
//! 2. With a target size or number, no action undoes another one: a merged region has at most T, or
//!    the size of one of its regions, and the halves of a split region have more than T together.
//! 3. No merged region is split automatically because of its size: it has at most
//!    [`unsplit_bytes`] for the number of regions after all merges.
//!    The halves of a region that was split automatically have more together, and that limit does
//!    not decrease as regions are added, so they are not merged before rows are removed.
//!
//! [`plan`] asserts 1 and 3. A property test checks 2, and that repeated normalisation ends also
//! for the average.
//!
//! # Differences from HBase
//!
//! Sizes are bytes instead of whole megabytes. A merged region never exceeds the size at which the
//! split policy splits. Merges do not reduce the regions below the target number. With the average,
//! regions up to the flush size are not split.

use crate::descriptor::{RegionId, RowRange, SplitOptions, SplitPolicy};
use crate::region::unsplit_bytes;

/// Number of regions below which a table's regions are not merged: HBase's default.
const MERGE_TABLE_REGIONS_MIN: usize = 3;
/// Maximal number of regions of one merge: HBase's default.
const MERGE_REGIONS_MAX: usize = 100;

/// Region of a table that is normalised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SizedRegion {
    pub(super) region: RegionId,
    /// Bytes of its files and memstores.
    pub(super) bytes: u64,
    /// Time from which it may be merged: microseconds since 1970. `None`: at any time.
    pub(super) mergeable_from: Option<i64>,
    /// Its rows.
    pub(super) rows: RowRange,
    /// True if it cannot be split or merged at present.
    pub(super) is_blocked: bool,
}

/// Table that is normalised.
pub(super) struct SizedTable<'a> {
    /// Its regions in row order.
    pub(super) regions: &'a [SizedRegion],
    pub(super) options: &'a SplitOptions,
    /// Size at which the memstores of a region are flushed.
    pub(super) flush_bytes: u64,
    /// Length of the prefix of first rows that merged regions have in common.
    pub(super) prefix_bytes: usize,
    pub(super) now_micros: i64,
}

/// Action of the normaliser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NormalizerAction {
    /// Its kind.
    pub kind: NormalizerActionKind,
    /// The merged regions in row order, or the region that is split.
    pub regions: Vec<RegionId>,
    /// Their sizes: bytes of files and memstores.
    pub region_bytes: Vec<u64>,
    /// Their rows.
    pub rows: RowRange,
    /// Size above which the merged region would be split again.
    pub bytes_max: u64,
    /// Time from which the regions are old enough: microseconds since 1970. `None`: at any time.
    pub due_micros: Option<i64>,
}

/// Kind of an action of the normaliser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormalizerActionKind {
    /// Adjacent regions become one.
    Merge,
    /// A region is split near its middle.
    Split,
}

impl NormalizerAction {
    /// Returns the size of its regions together.
    pub fn bytes(&self) -> u64 {
        self.region_bytes.iter().sum()
    }
}

impl SizedTable<'_> {
    /// Returns the target size of a region.
    pub(super) fn target_bytes(&self) -> u64 {
        let total: u64 = self.regions.iter().map(|region| region.bytes).sum();
        let count =
            self.options.normalizer_target_regions.map_or(self.regions.len() as u64, u64::from);
        self.options.normalizer_target_bytes.unwrap_or_else(|| (total / count.max(1)).max(1))
    }

    /// Returns whether two regions may be merged by their first rows.
    fn has_common_prefix(&self, one: &SizedRegion, next: &SizedRegion) -> bool {
        // The first row of a table is empty: the prefix is one of zeros.
        let prefix = |region: &SizedRegion| {
            let start = region.rows.start.iter().copied().chain(std::iter::repeat(0));
            start.take(self.prefix_bytes).collect::<Vec<u8>>()
        };
        prefix(one) == prefix(next)
    }

    fn has_target(&self) -> bool {
        let options = self.options;
        options.normalizer_target_bytes.is_some() || options.normalizer_target_regions.is_some()
    }

    /// Returns the size that a region must exceed to be split.
    fn split_above(&self) -> u64 {
        let twice = self.target_bytes().saturating_mul(2);
        match (&self.options.policy, self.has_target()) {
            (SplitPolicy::Disabled, _) => u64::MAX,
            (_, true) => twice,
            (_, false) => twice.max(self.flush_bytes),
        }
    }

    /// Returns the size of a merged region that is not split automatically in a table of `count`
    /// regions.
    fn unsplit_bytes(&self, count: usize) -> u64 {
        unsplit_bytes(self.options, count as u64, self.flush_bytes)
    }
}

/// Returns the actions that normalise a table: splits, merges that are due, then merges whose
/// regions are too young, as if nothing else changed.
pub(super) fn plan(table: &SizedTable<'_>) -> Vec<NormalizerAction> {
    let above = table.split_above();
    let splits = (0..table.regions.len())
        .filter(|&index| !table.regions[index].is_blocked && table.regions[index].bytes > above)
        .collect::<Vec<_>>();
    let mut count_before = table.regions.len();
    loop {
        let limit = table.unsplit_bytes(count_before);
        let merges = merges(table, &splits, limit);
        let removed: usize = merges.iter().map(|indexes| indexes.len() - 1).sum();
        let count = table.regions.len() - removed;
        // Fewer regions may have a lower limit, which allows fewer merges.
        if table.unsplit_bytes(count) >= limit {
            let splits = splits
                .iter()
                .map(|index| (NormalizerActionKind::Split, std::slice::from_ref(index)));
            let merges = merges.iter().map(|run| (NormalizerActionKind::Merge, run.as_slice()));
            let actions: Vec<_> =
                splits.chain(merges).map(|chosen| action(table, limit, chosen)).collect();
            debug_assert_eq!(check(table, &actions, count), Ok(()));
            return actions;
        }
        count_before = count;
    }
}

/// Returns the runs of regions to be merged, none of more than `limit` bytes.
fn merges(table: &SizedTable<'_>, splits: &[usize], limit: u64) -> Vec<Vec<usize>> {
    let regions = table.regions;
    if regions.len() < MERGE_TABLE_REGIONS_MIN {
        return Vec::new();
    }
    let least = table.options.normalizer_target_regions.map_or(1, |count| count as usize);
    let mut search = RunSearch {
        table,
        limit,
        target: table.target_bytes(),
        removable: regions.len().saturating_sub(least),
        taken: regions.iter().map(|region| region.is_blocked).collect(),
        runs: Vec::new(),
    };
    splits.iter().for_each(|&index| search.taken[index] = true);
    let is_due =
        |region: &SizedRegion| region.mergeable_from.is_none_or(|at| at <= table.now_micros);
    search.find(is_due);
    search.find(|_| true);
    search.runs
}

/// Search for runs of regions to be merged.
struct RunSearch<'a> {
    table: &'a SizedTable<'a>,
    limit: u64,
    target: u64,
    /// Number of regions by which merges may reduce the table.
    removable: usize,
    /// The regions that are in a run or cannot be.
    taken: Vec<bool>,
    runs: Vec<Vec<usize>>,
}

impl RunSearch<'_> {
    /// Adds the runs of regions that `may` holds for.
    fn find(&mut self, may: impl Fn(&SizedRegion) -> bool) {
        let mut run: Vec<usize> = Vec::new();
        for (index, region) in self.table.regions.iter().enumerate() {
            if self.taken[index] || !may(region) {
                self.close(&mut run);
                continue;
            }
            if !self.fits(&run, region) {
                self.close(&mut run);
            }
            run.push(index);
        }
        self.close(&mut run);
    }

    /// Returns whether a region can be added to a run.
    fn fits(&self, run: &[usize], next: &SizedRegion) -> bool {
        let Some(&first) = run.first() else { return true };
        let bytes: u64 = run.iter().map(|&index| self.table.regions[index].bytes).sum();
        let together = bytes + next.bytes;
        // An empty region makes the others no larger.
        let grows = bytes > 0 && next.bytes > 0;
        run.len() < MERGE_REGIONS_MAX.min(self.removable + 1)
            && self.table.has_common_prefix(&self.table.regions[first], next)
            && together <= self.limit
            && (!grows || together <= self.target)
    }

    fn close(&mut self, run: &mut Vec<usize>) {
        if run.len() > 1 {
            self.removable -= run.len() - 1;
            run.iter().for_each(|&index| self.taken[index] = true);
            self.runs.push(std::mem::take(run));
        }
        run.clear();
    }
}

fn action(
    table: &SizedTable<'_>,
    limit: u64,
    (kind, indexes): (NormalizerActionKind, &[usize]),
) -> NormalizerAction {
    let regions: Vec<&SizedRegion> = indexes.iter().map(|&index| &table.regions[index]).collect();
    let due = regions.iter().filter_map(|region| region.mergeable_from).max();
    let (first, last) = (regions[0], regions[regions.len() - 1]);
    let bytes: u64 = regions.iter().map(|region| region.bytes).sum();
    NormalizerAction {
        kind,
        rows: RowRange { start: first.rows.start.clone(), stop: last.rows.stop.clone() },
        bytes_max: table.target_bytes().min(limit).max(bytes),
        regions: regions.iter().map(|region| region.region).collect(),
        region_bytes: regions.iter().map(|region| region.bytes).collect(),
        due_micros: due.filter(|_| kind == NormalizerActionKind::Merge),
    }
}

/// Checks the invariants of a plan that leaves `count` regions if no region is split.
fn check(
    table: &SizedTable<'_>,
    actions: &[NormalizerAction],
    count: usize,
) -> Result<(), &'static str> {
    let mut regions: Vec<RegionId> =
        actions.iter().flat_map(|action| action.regions.iter().copied()).collect();
    regions.sort_unstable();
    if regions.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err("a region is in two actions");
    }
    let limit = table.unsplit_bytes(count);
    let is_small = |action: &NormalizerAction| {
        action.kind == NormalizerActionKind::Split || action.bytes() <= limit
    };
    match actions.iter().all(is_small) {
        true => Ok(()),
        false => Err("a merged region would be split automatically"),
    }
}

#[cfg(test)]
mod tests;
