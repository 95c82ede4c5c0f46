//! Splits and merges of the regions of a table.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::compaction::CompactionRequest;
use crate::descriptor::{RegionId, TableId};
use crate::error::Result;
use crate::region::Region;
use crate::region_replacement::{self, RegionReplacement, SplitPoint};
use crate::store::Store;
use crate::table::Table;

impl Store {
    /// Splits the region that holds a row, which becomes the first row of the right daughter;
    /// without a row, the given region near its middle. Running statements continue.
    ///
    /// # Errors
    ///
    /// Nothing has changed then: [`InvalidRequest`](crate::Error::InvalidRequest) if a region
    /// begins at the row already, or if the region has no two rows,
    /// [`NoSuchTable`](crate::Error::NoSuchTable), [`Corrupt`](crate::Error::Corrupt) if it lacks
    /// a file, [`Io`](crate::Error::Io).
    pub fn split_region(&self, table: TableId, point: SplitPoint) -> Result<RegionReplacement> {
        let _defining = self.engine.ddl_lock.lock();
        let table = self.engine.table(table)?;
        region_replacement::check_own_regions(&table)?;
        let row = match point {
            SplitPoint::At(row) => row,
            SplitPoint::Middle(region) => {
                region_replacement::middle_of(&self.engine, &table, region)?
            }
        };
        region_replacement::split(&self.engine, &table, &row)
    }

    /// Merges adjacent regions into one. Running statements continue.
    ///
    /// Half-files of an earlier split are rewritten first.
    ///
    /// # Errors
    ///
    /// Nothing has changed then: [`InvalidRequest`](crate::Error::InvalidRequest) if they are not
    /// adjacent, [`NoSuchTable`](crate::Error::NoSuchTable), [`Corrupt`](crate::Error::Corrupt)
    /// if one lacks a file, [`Io`](crate::Error::Io).
    pub fn merge_regions(&self, table: TableId, regions: &[RegionId]) -> Result<RegionReplacement> {
        let table = self.engine.table(table)?;
        region_replacement::check_own_regions(&table)?;
        self.rewrite_parts(&table, regions)?;
        self.rewrite_followers(&table, regions)?;
        let _defining = self.engine.ddl_lock.lock();
        let table = self.engine.table(table.id())?;
        region_replacement::merge(&self.engine, &table, regions)
    }

    /// Compacts the half-files of the tables colocated with a table that are in these of its
    /// regions.
    fn rewrite_followers(&self, table: &Table, regions: &[RegionId]) -> Result<()> {
        let map = Arc::clone(&table.regions());
        let merged: Vec<&Arc<Region>> = regions.iter().filter_map(|id| map.by_id(*id)).collect();
        let tables = Arc::clone(&self.engine.tables.load());
        for follower in tables.values() {
            if follower.descriptor().colocated_with != Some(table.id()) {
                continue;
            }
            let regions = Arc::clone(&follower.regions());
            let inside = regions
                .all()
                .iter()
                .filter(|region| merged.iter().any(|merged| merged.rows().covers(region.rows())));
            let inside: Vec<RegionId> = inside.map(|region| region.id()).collect();
            self.rewrite_parts(follower, &inside)?;
        }
        Ok(())
    }

    /// Compacts half-files of regions, which an earlier split has left.
    fn rewrite_parts(&self, table: &Table, regions: &[RegionId]) -> Result<()> {
        loop {
            let map = Arc::clone(&table.regions());
            let with_parts = |region: &&Arc<Region>| region.has_parts();
            let named = regions.iter().filter_map(|id| map.by_id(*id));
            let waiting: Vec<Arc<Region>> = named.filter(with_parts).cloned().collect();
            if waiting.is_empty() {
                return Ok(());
            }
            self.compact_regions(&waiting, CompactionRequest::Minor, &AtomicBool::new(false))?;
        }
    }
}
