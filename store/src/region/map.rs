//! Map from rows to the regions of a table. [`RegionMap::new`] asserts that they cover all rows
//! once.

use std::sync::Arc;

use crate::descriptor::RegionId;
use crate::region::Region;

/// The regions of a table in row order, without gaps.
pub(crate) struct RegionMap {
    regions: Vec<Arc<Region>>,
}

impl RegionMap {
    /// Returns the map of these regions.
    ///
    /// # Panics
    ///
    /// If they do not cover all rows exactly once: the manifest was checked when it was read.
    pub(crate) fn new(regions: Vec<Arc<Region>>) -> RegionMap {
        assert!(covers_all_rows(&regions), "regions must cover all rows once");
        RegionMap { regions }
    }

    /// Returns the regions in row order.
    pub(crate) fn all(&self) -> &[Arc<Region>] {
        &self.regions
    }

    /// Returns the index of the region that holds a row.
    pub(crate) fn index_of(&self, row: &[u8]) -> usize {
        // The first region starts at the empty row, so the partition point is never 0.
        self.regions.partition_point(|region| region.start() <= row) - 1
    }

    /// Returns the index of the region that holds the rows right before `row`; `None` if there are
    /// none.
    pub(crate) fn last_before(&self, row: &[u8]) -> Option<usize> {
        match row.is_empty() {
            true => None,
            false => self.regions.partition_point(|region| region.start() < row).checked_sub(1),
        }
    }

    /// Returns the region that holds a row.
    pub(crate) fn of_row(&self, row: &[u8]) -> &Arc<Region> {
        match self.regions.as_slice() {
            [only] => only,
            regions => &regions[self.index_of(row)],
        }
    }

    /// Returns the indexes of the regions that overlap `start..stop`.
    pub(crate) fn overlapping(&self, start: &[u8], stop: Option<&[u8]>) -> std::ops::Range<usize> {
        let first = self.index_of(start);
        let end = match stop {
            Some(stop) => self.regions.partition_point(|region| region.start() < stop),
            None => self.regions.len(),
        };
        first..end.max(first)
    }

    /// Returns a region by its id.
    pub(crate) fn by_id(&self, id: RegionId) -> Option<&Arc<Region>> {
        self.regions.iter().find(|region| region.id() == id)
    }
}

fn covers_all_rows(regions: &[Arc<Region>]) -> bool {
    regions.first().is_some_and(|first| first.start().is_empty())
        && regions.last().is_some_and(|last| last.stop().is_none())
        && regions.windows(2).all(|pair| pair[0].stop() == Some(pair[1].start()))
}
