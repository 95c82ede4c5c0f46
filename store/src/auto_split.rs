//! Automatic splits of regions that have become too large or too busy, on a separate thread.
//!
//! A region is checked after its flushes and compactions, and periodically if its writes may have
//! had to wait. One that has half-files of its last split waits until they are rewritten.

use std::sync::Arc;

use crate::descriptor::{RegionId, SplitPolicy};
use crate::engine::Engine;
use crate::error::Result;
use crate::region::{Region, SplitFacts, is_split_due};
use crate::region_replacement;
use crate::split_queue::SplitTask;
use crate::table::Table;

/// Splits regions until the store stops.
pub(crate) fn run(engine: &Engine) {
    loop {
        match engine.splits.next() {
            SplitTask::Look(region) => look(engine, region),
            SplitTask::Tick => {
                regions_by_time(engine).into_iter().for_each(|region| look(engine, region))
            }
            SplitTask::Stop => return,
        }
    }
}

/// Returns the regions that may be due by time: those of the policy by load, and one of each
/// colocated table.
fn regions_by_time(engine: &Engine) -> Vec<RegionId> {
    let tables = engine.tables.load();
    let regions = tables.values().flat_map(|table| {
        let descriptor = table.descriptor();
        let count = match descriptor.colocated_with {
            Some(_) => 1,
            None if descriptor.split.policy == SplitPolicy::Busy => usize::MAX,
            None => 0,
        };
        table.regions().all().iter().take(count).map(|region| region.id()).collect::<Vec<_>>()
    });
    regions.collect()
}

fn look(engine: &Engine, region: RegionId) {
    let Some(region) = engine.region(region) else { return };
    let Ok(table) = engine.table(region.table()) else { return };
    if let Some(base) = table.descriptor().colocated_with {
        let Ok(base) = engine.table(base) else { return };
        follow_if_due(engine, &table, &base);
        return;
    }
    match split_if_due(engine, &table, &region) {
        Ok(None) => {}
        Ok(Some(reshaped)) => {
            tracing::info!(region = region.id().0, ?reshaped, "split a region");
            reshaped.added.iter().for_each(|region| engine.splits.want(*region));
        }
        // It is checked again after the next flush.
        Err(error) => tracing::warn!(%error, region = region.id().0, "could not split a region"),
    }
}

/// Repeats a split or merge of a table's base table that the table did not follow.
fn follow_if_due(engine: &Engine, table: &Table, base: &Table) {
    let starts = |table: &Table| -> Vec<Vec<u8>> {
        table.regions().all().iter().map(|region| region.start().to_vec()).collect()
    };
    if starts(table) == starts(base) {
        return;
    }
    let _defining = engine.ddl_lock.lock();
    if let Err(error) = region_replacement::align(engine, table, base) {
        // It is repeated after the next flush or compaction.
        let table = &table.descriptor().name;
        tracing::warn!(%error, %table, "could not move the regions of a colocated table");
    }
}

fn split_if_due(
    engine: &Engine,
    table: &Table,
    region: &Arc<Region>,
) -> Result<Option<region_replacement::RegionReplacement>> {
    let descriptor = Arc::clone(&table.descriptor());
    let options = &descriptor.split;
    if options.policy == SplitPolicy::Disabled || region.has_parts() {
        return Ok(None);
    }
    let now = engine.options().env.now_micros();
    let facts =
        SplitFacts { table_regions: table.regions().all().len() as u64, ..region.split_facts(now) };
    if !is_split_due(options, &facts) {
        return Ok(None);
    }
    let Some(point) = region.split_row(&options.policy)? else { return Ok(None) };
    let _defining = engine.ddl_lock.lock();
    if region.is_dropped() {
        return Ok(None);
    }
    region_replacement::split(engine, table, &point).map(Some)
}
