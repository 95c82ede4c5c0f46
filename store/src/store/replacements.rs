//! Splits and merges of the regions of a table.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::compaction::CompactionRequest;
use crate::descriptor::{RegionId, TableId};
use crate::error::Result;
use crate::manifest::ManifestEdit;
use crate::open::open_table;
use crate::region::{Region, RegionServices};
use crate::region_replacement::{self, RegionReplacement, SplitPoint};
use crate::store::Store;
use crate::table::Table;
use crate::table_link::{self, LinkedTable};

impl Store {
    /// Creates copies of tables, with these ids, which share their store files; durable on return.
    /// Later changes of either side do not affect the other. The copy of a table that is colocated
    /// with another of these is colocated with its copy.
    ///
    /// # Errors
    ///
    /// [`NoSuchTable`](crate::Error::NoSuchTable);
    /// [`InvalidRequest`](crate::Error::InvalidRequest) if an id is in use or a bulk load of a
    /// table is in progress, [`Corrupt`](crate::Error::Corrupt) if a region lacks a file,
    /// [`Io`](crate::Error::Io). Some of the copies may exist then.
    pub fn link_tables(&self, copies: &[(TableId, TableId)]) -> Result<()> {
        let _defining = self.engine.ddl_lock.lock();
        self.engine.check_running()?;
        let master = self.engine.observers.master();
        let mut linked = table_link::link_tables(&self.engine, copies)?;
        if let Some(master) = &master {
            linked.iter_mut().try_for_each(|table| {
                let descriptor = Arc::make_mut(&mut table.descriptor);
                let id = descriptor.id;
                let created = master.pre_create_table(descriptor);
                descriptor.id = id;
                created
            })?;
        }
        let edits: Vec<ManifestEdit> = linked.iter().map(LinkedTable::edit).collect();
        self.engine.append_edits(&edits)?;
        let (context, directory) = (&self.engine.context, &self.engine.regions_directory);
        for LinkedTable { descriptor, regions } in linked {
            let table = Arc::new(open_table(context, directory, descriptor, &regions)?);
            table.regions().all().iter().for_each(|region| region.describe(&table.descriptor()));
            self.set_replicas(&table)?;
            self.change_tables(|tables| {
                tables.insert(table.id(), Arc::clone(&table));
            });
            for region in table.regions().all() {
                self.engine.memory_changed(region);
                self.engine.schedule.schedule_policy(region);
            }
            if let Some(master) = &master {
                master.post_create_table(&table.descriptor());
            }
        }
        Ok(())
    }

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
