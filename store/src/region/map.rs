//! Map from rows to the regions of a table. [`RegionMap::new`] asserts that they cover all rows
//! once.
//!
//! A scan passes the sections of a map: each region, or all regions of a colocated table together.

use std::sync::Arc;

use crate::descriptor::RegionId;
use crate::descriptor::colocation::{Partitioning, base_row};
use crate::region::Region;

/// The regions of a table in row order, without gaps.
pub(crate) struct RegionMap {
    regions: Vec<Arc<Region>>,
    partitioning: Partitioning,
}

/// Regions whose rows a scan merges.
#[derive(Clone, Copy)]
pub(crate) struct MapSection<'a> {
    /// The regions; never empty.
    pub(crate) regions: &'a [Arc<Region>],
    /// First row; empty for the first of all.
    pub(crate) start: &'a [u8],
    /// Row after the last; `None` for no stop.
    pub(crate) stop: Option<&'a [u8]>,
}

impl RegionMap {
    /// Returns the map of these regions.
    ///
    /// # Panics
    ///
    /// If they do not cover all rows exactly once: the manifest was checked when it was read.
    pub(crate) fn new(regions: Vec<Arc<Region>>) -> RegionMap {
        assert!(covers_all_rows(&regions), "regions must cover all rows once");
        let partitioning = regions[0].partitioning();
        RegionMap { regions, partitioning }
    }

    /// Returns whether the regions are ranges of base rows.
    pub(crate) fn is_colocated(&self) -> bool {
        self.partitioning == Partitioning::BaseRow
    }

    /// Returns the regions in row order.
    pub(crate) fn all(&self) -> &[Arc<Region>] {
        &self.regions
    }

    /// Returns the index of the region that holds a row.
    pub(crate) fn index_of(&self, row: &[u8]) -> usize {
        match self.partitioning {
            Partitioning::Row => self.index_at(row),
            Partitioning::BaseRow => self.index_at(&base_row(row)),
        }
    }

    /// Returns the index of the region whose range includes this point.
    pub(crate) fn index_at(&self, point: &[u8]) -> usize {
        // The first region starts at the empty row, so the partition point is never 0.
        self.regions.partition_point(|region| region.start() <= point) - 1
    }

    /// Returns a section.
    pub(crate) fn section(&self, index: usize) -> MapSection<'_> {
        match self.partitioning {
            Partitioning::Row => {
                let region = &self.regions[index];
                let regions = std::slice::from_ref(region);
                MapSection { regions, start: region.start(), stop: region.stop() }
            }
            Partitioning::BaseRow => MapSection { regions: &self.regions, start: &[], stop: None },
        }
    }

    /// Returns the number of sections.
    pub(crate) fn section_count(&self) -> usize {
        match self.partitioning {
            Partitioning::Row => self.regions.len(),
            Partitioning::BaseRow => 1,
        }
    }

    /// Returns the index of the section that holds a row.
    pub(crate) fn section_of(&self, row: &[u8]) -> usize {
        match self.partitioning {
            Partitioning::Row => self.index_at(row),
            Partitioning::BaseRow => 0,
        }
    }

    /// Returns the index of the section that holds the rows right before `row`; `None` if there
    /// are none.
    pub(crate) fn last_before(&self, row: &[u8]) -> Option<usize> {
        match (row.is_empty(), self.partitioning) {
            (true, _) => None,
            (false, Partitioning::BaseRow) => Some(0),
            (false, Partitioning::Row) => {
                self.regions.partition_point(|region| region.start() < row).checked_sub(1)
            }
        }
    }

    /// Returns the region that holds a row.
    pub(crate) fn of_row(&self, row: &[u8]) -> &Arc<Region> {
        match self.regions.as_slice() {
            [only] => only,
            regions => &regions[self.index_of(row)],
        }
    }

    /// Returns the indexes of the sections that overlap `start..stop`.
    pub(crate) fn overlapping(&self, start: &[u8], stop: Option<&[u8]>) -> std::ops::Range<usize> {
        match self.partitioning {
            Partitioning::Row => self.overlapping_regions(start, stop),
            Partitioning::BaseRow => 0..1,
        }
    }

    /// Returns the indexes of the regions whose ranges overlap `start..stop`.
    pub(crate) fn overlapping_regions(
        &self,
        start: &[u8],
        stop: Option<&[u8]>,
    ) -> std::ops::Range<usize> {
        let first = self.index_at(start);
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
