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
                busy_regions(engine).into_iter().for_each(|region| look(engine, region))
            }
            SplitTask::Stop => return,
        }
    }
}

fn busy_regions(engine: &Engine) -> Vec<RegionId> {
    let tables = engine.tables.load();
    let busy = tables.values().filter(|table| table.descriptor().split.policy == SplitPolicy::Busy);
    busy.flat_map(|table| table.regions().all().to_vec()).map(|region| region.id()).collect()
}

fn look(engine: &Engine, region: RegionId) {
    let Some(region) = engine.region(region) else { return };
    let Ok(table) = engine.table(region.table()) else { return };
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
    let Some(point) = split_point(region, &options.policy)? else { return Ok(None) };
    let _defining = engine.ddl_lock.lock();
    if region.is_dropped() {
        return Ok(None);
    }
    region_replacement::split(engine, table, &point).map(Some)
}

/// Returns the row at which a policy splits a region; `None` if all its rows belong to one group,
/// or there are fewer than two.
///
/// # Errors
///
/// [`Error::Corrupt`](crate::Error::Corrupt) if it lacks a file.
pub(crate) fn split_point(region: &Region, policy: &SplitPolicy) -> Result<Option<Vec<u8>>> {
    region.check_whole()?;
    let Some(middle) = region.middle_row()? else { return Ok(None) };
    let point = policy.point(middle);
    let is_inside = point.as_slice() > region.start() && region.rows().contains(&point);
    Ok(is_inside.then_some(point))
}
