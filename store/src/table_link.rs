//! Linked copies of tables: tables with the cells of others, which share their store files.
//!
//! Each region of a source gets a copy with the same rows. Its memstores are flushed, its files are
//! linked into the directory of the copy, and one manifest edit for each table adds the copies. No
//! data is copied, so the time depends on the number of files, not on their size. Either side
//! can be compacted, changed or dropped afterwards: the file system counts the links.
//!
//! The cells keep their sequences and timestamps. A crash leaves some of the copies; what they are
//! for decides whether they stay.
//!
//! Splits link files in the same way: [`region_replacement`](crate::region_replacement).

use std::sync::Arc;

use crate::descriptor::{RegionId, TableDescriptor, TableId};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::manifest::{ManifestEdit, RegionRecord};
use crate::region::{Region, RegionServices};
use crate::region_replacement::{NewRegion, flush_most};

/// A copy that the manifest is about to list.
pub(crate) struct LinkedTable {
    /// Its descriptor.
    pub(crate) descriptor: Arc<TableDescriptor>,
    /// Its regions.
    pub(crate) regions: Vec<RegionRecord>,
}

/// Links the files of tables into the directories of copies with these ids. The caller holds the
/// DDL lock, and adds them to the manifest.
///
/// # Errors
///
/// [`Error::NoSuchTable`], [`Error::InvalidRequest`] if an id is in use or a bulk load of a table
/// is in progress, [`Error::Corrupt`] if a region lacks a file, [`Error::Io`].
pub(crate) fn link_tables(
    engine: &Engine,
    copies: &[(TableId, TableId)],
) -> Result<Vec<LinkedTable>> {
    let mut manifest = engine.manifest.lock();
    manifest.settle()?;
    let mut next = manifest.state().next_region;
    drop(manifest);
    let new_id =
        |id: TableId| copies.iter().find(|(from, _)| *from == id).map_or(id, |(_, to)| *to);
    let mut linked = Vec::with_capacity(copies.len());
    for (from, to) in copies {
        let table = engine.table(*from)?;
        if engine.tables.load().contains_key(to) {
            return Err(Error::InvalidRequest(format!("table {} already exists", to.0)));
        }
        let _loads = table.hold_loads()?;
        let mut descriptor = TableDescriptor::clone(&table.descriptor());
        descriptor.id = *to;
        descriptor.colocated_with = descriptor.colocated_with.map(new_id);
        let mut regions = Vec::new();
        for region in table.regions().all() {
            regions.push(link_region(engine, region, RegionId(next))?);
            next += 1;
        }
        linked.push(LinkedTable { descriptor: Arc::new(descriptor), regions });
    }
    Ok(linked)
}

impl LinkedTable {
    /// Returns the edit of the manifest that adds it.
    pub(crate) fn edit(&self) -> ManifestEdit {
        let descriptor = Arc::clone(&self.descriptor);
        ManifestEdit::PutTable { descriptor, regions: self.regions.clone() }
    }
}

/// Links the files of a region into the directory of a copy; returns its record.
fn link_region(engine: &Engine, region: &Arc<Region>, id: RegionId) -> Result<RegionRecord> {
    region.check_whole()?;
    flush_most(engine, region)?;
    let mut files = region.hold_files(engine)?;
    let mut new = NewRegion::create(engine, id, region.rows().clone(), region.family_count())?;
    new.link_files(engine, (0, region), &files)?;
    let gate = region.close_write_gate();
    let through = engine.last_sequence();
    files.flush(through, engine)?;
    new.link_files(engine, (0, region), &files)?;
    drop(gate);
    new.sync(engine)?;
    let now_micros = engine.options().env.now_micros();
    Ok(new.record(std::slice::from_ref(region), through.0, now_micros))
}
