//! Splits and merges: a split replaces one region by two, a merge replaces several adjacent ones
//! by one.
//!
//! ```text
//!   flush, until little is in memory
//!   hold files: no flush, no compaction ends
//!     links to the files in the directories of the new regions
//!     close the write gates of the old regions
//!       flush the remaining cells, link that file
//!       one manifest edit: adds the new regions, removes the old ones
//!       publish the new map, mark the old regions as dropped
//!     open the gates
//!   compactions rewrite the half-files of a new region
//! ```
//!
//! No data is copied, so the gates are closed for some milliseconds regardless of the size of the
//! regions. A commit that waited at a gate finds its region dropped and redirects its cells to
//! the new ones ([`Engine::commit_then`](crate::engine::Engine::commit_then)). A read that began
//! before continues in the old region, which has all cells visible to its snapshot.
//!
//! # Invariants
//!
//! 1. New and old regions cover the same rows, and the new ones hold the same cells.
//! 2. A crash leaves the old regions or the new ones: the next opening removes directories that
//!    the manifest does not list.
//! 3. While it is unknown which of them a restart would find, no commit is acknowledged.
//!
//! [`RegionReplacementJob::publish`] asserts 1: the manifest checks the rows, and the old regions
//! have no cells in memory only.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::descriptor::colocation::Partitioning;
use crate::descriptor::{FileId, FileIdentity, RegionId, RowRange, SplitPolicy};
use crate::engine::Engine;
use crate::env::process::monotonic_now;
use crate::error::{Error, Result};
use crate::family_store::file_name;
use crate::file::StoreFile;
use crate::manifest::{ManifestEdit, NO_BEGIN, RegionRecord};
use crate::observer::RegionRef;
use crate::region::{HeldFiles, Region, RegionMap, RegionServices, directory_of};
use crate::run::{FileRecord, LiveFile};
use crate::table::Table;

/// Bytes in memory that are flushed while writers wait.
const LITTLE_BYTES: u64 = 1 << 20;
/// Maximal number of flushes before the gates are closed: under many writers each leaves a
/// remainder.
const FLUSHES_MAX: usize = 4;

/// Position of a split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SplitPoint {
    /// At this row.
    At(Vec<u8>),
    /// Near the middle of this region.
    Middle(RegionId),
}

/// Result of a split or a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionReplacement {
    /// The replaced regions.
    pub removed: Vec<RegionId>,
    /// The new regions, in row order.
    pub added: Vec<RegionId>,
    /// Time for which writers of the regions had to wait.
    pub closed_for: Duration,
}

/// Splits the region that holds `at`, which becomes the first row of the right daughter. The
/// caller holds the DDL lock.
///
/// # Errors
///
/// Nothing has changed then: [`Error::InvalidRequest`] if a region begins there already or a bulk
/// load of the table is in progress, [`Error::Corrupt`] if the region lacks a file,
/// [`Error::Io`].
pub(crate) fn split(engine: &Engine, table: &Table, at: &[u8]) -> Result<RegionReplacement> {
    let map = table.regions();
    let region = Arc::clone(&map.all()[map.index_at(at)]);
    let RowRange { start, stop } = region.rows().clone();
    if start == at {
        return Err(Error::InvalidRequest(format!(
            "region {} of table \"{}\" already begins at that row",
            region.id().0,
            table.descriptor().name
        )));
    }
    let daughters =
        vec![RowRange { start, stop: Some(at.to_vec()) }, RowRange { start: at.to_vec(), stop }];
    let master = engine.observers.master();
    if let Some(master) = &master {
        master.pre_split(region.observer_ref(), at)?;
    }
    let (reshaped, added) = replace_regions(engine, table, &[Arc::clone(&region)], daughters)?;
    if let (Some(master), [left, right]) = (master, added.as_slice()) {
        master.post_split(region.observer_ref(), [left.observer_ref(), right.observer_ref()]);
    }
    follow(engine, table);
    Ok(reshaped)
}

/// Splits and merges the regions of the tables colocated with a table, so that they are those of
/// the table. The caller holds the DDL lock. What fails is logged, and repeated after a compaction
/// of the regions.
pub(crate) fn follow(engine: &Engine, base: &Table) {
    let tables = Arc::clone(&engine.tables.load());
    let is_follower = |table: &&Arc<Table>| table.descriptor().colocated_with == Some(base.id());
    for follower in tables.values().filter(is_follower) {
        if let Err(error) = align(engine, follower, base) {
            let table = &follower.descriptor().name;
            tracing::warn!(%error, %table, "could not move the regions of a colocated table");
        }
    }
}

/// Makes the regions of a colocated table those of its base table. The caller holds the DDL lock.
///
/// # Errors
///
/// As for [`split`] and [`merge`]: some regions are changed then.
pub(crate) fn align(engine: &Engine, follower: &Table, base: &Table) -> Result<()> {
    let starts = |table: &Table| -> Vec<Vec<u8>> {
        table.regions().all().iter().map(|region| region.start().to_vec()).collect()
    };
    let wanted = starts(base);
    for start in &wanted {
        if starts(follower).binary_search(start).is_err() {
            split(engine, follower, start)?;
        }
    }
    for group in 0..wanted.len() {
        let rows = RowRange { start: wanted[group].clone(), stop: wanted.get(group + 1).cloned() };
        let map = Arc::clone(&follower.regions());
        let inside = map.all().iter().filter(|region| rows.covers(region.rows()));
        let regions: Vec<RegionId> = inside.map(|region| region.id()).collect();
        if regions.len() > 1 {
            merge(engine, follower, &regions)?;
        }
    }
    Ok(())
}

/// Checks that a table has regions of its own.
///
/// # Errors
///
/// [`Error::InvalidRequest`].
pub(crate) fn check_own_regions(table: &Table) -> Result<()> {
    let descriptor = table.descriptor();
    match descriptor.colocated_with {
        None => Ok(()),
        Some(base) => Err(Error::InvalidRequest(format!(
            "the regions of table \"{}\" follow those of table {}",
            descriptor.name, base.0
        ))),
    }
}

/// Returns the row at which a statement splits a region: that of the split policy of its table, or
/// within the group if all its rows are in one.
///
/// # Errors
///
/// [`Error::InvalidRequest`] if it has fewer than two rows, or does not exist.
pub(crate) fn middle_of(engine: &Engine, table: &Table, region: RegionId) -> Result<Vec<u8>> {
    let map = table.regions();
    let region = map.by_id(region).ok_or_else(|| {
        let name = &table.descriptor().name;
        Error::InvalidRequest(format!("table \"{name}\" has no region {}", region.0))
    })?;
    // The row is computed from files only.
    region.flush(engine)?;
    let policies = [&table.descriptor().split.policy, &SplitPolicy::ConstantSize];
    let rows = policies.into_iter().map(|policy| region.split_row(policy).transpose());
    rows.flatten().next().unwrap_or_else(|| {
        Err(Error::InvalidRequest(format!(
            "region {} has no split point after its first row",
            region.id().0
        )))
    })
}

/// Merges adjacent regions into one. The caller holds the DDL lock.
///
/// # Errors
///
/// As for [`split`]; [`Error::InvalidRequest`] if they are not adjacent, or if one has half-files
/// of an earlier split, which must be compacted first.
pub(crate) fn merge(
    engine: &Engine,
    table: &Table,
    regions: &[RegionId],
) -> Result<RegionReplacement> {
    let refuse = |why: &str| {
        let name = &table.descriptor().name;
        Err(Error::InvalidRequest(format!("cannot merge regions of table \"{name}\": {why}")))
    };
    let map = table.regions();
    let mut old: Vec<Arc<Region>> = Vec::with_capacity(regions.len());
    for id in regions {
        match map.by_id(*id) {
            Some(region) => old.push(Arc::clone(region)),
            None => return refuse(&format!("region {} does not exist", id.0)),
        }
    }
    old.sort_by(|a, b| a.start().cmp(b.start()));
    old.dedup_by_key(|region| region.id());
    if old.len() < 2 {
        return refuse("at least two regions are required");
    }
    if old.windows(2).any(|pair| pair[0].stop() != Some(pair[1].start())) {
        return refuse("the regions are not adjacent");
    }
    let start = old[0].start().to_vec();
    let stop = old[old.len() - 1].stop().map(<[u8]>::to_vec);
    let master = engine.observers.master();
    let shown: Vec<RegionRef<'_>> = old.iter().map(|region| region.observer_ref()).collect();
    if let Some(master) = &master {
        master.pre_merge(&shown)?;
    }
    let whole = vec![RowRange { start, stop }];
    let (reshaped, added) = replace_regions(engine, table, &old, whole)?;
    if let (Some(master), [merged]) = (master, added.as_slice()) {
        master.post_merge(&shown, merged.observer_ref());
    }
    follow(engine, table);
    Ok(reshaped)
}

/// Replaces adjacent regions by regions of these rows, which cover the same rows. The caller
/// holds the DDL lock. Each new region begins or ends where an old one does.
///
/// # Errors
///
/// Nothing has changed then. [`Error::Corrupt`] if a region lacks a file, [`Error::Io`],
/// [`Error::InvalidRequest`] while a bulk load of the table is in progress, or if a file has rows
/// that belong to another region since a split.
fn replace_regions(
    engine: &Engine,
    table: &Table,
    old: &[Arc<Region>],
    new: Vec<RowRange>,
) -> Result<(RegionReplacement, Vec<Arc<Region>>)> {
    let _loads = table.hold_loads()?;
    let _attaching = table.attaching.lock();
    for region in old {
        region.check_whole()?;
        flush_most(engine, region)?;
    }
    // The order in which several write gates are taken.
    let mut by_id: Vec<&Arc<Region>> = old.iter().collect();
    by_id.sort_unstable_by_key(|region| region.id());
    let mut held = Vec::with_capacity(by_id.len());
    for region in &by_id {
        held.push((*region, region.hold_files(engine)?));
    }
    let mut reshaping = RegionReplacementJob::begin(engine, table, old, new)?;
    reshaping.link_all(&held)?;
    let observers = table.observers().chain();
    if let Some(observers) = &observers {
        reshaping.new.iter().try_for_each(|new| observers.pre_open(new.shown(table)))?;
        old.iter().for_each(|region| observers.pre_close(region.observer_ref()));
    }
    let began = monotonic_now();
    let gates: Vec<_> = by_id.iter().map(|region| region.close_write_gate()).collect();
    let through = engine.last_sequence();
    for (_, files) in &mut held {
        files.flush(through, engine)?;
    }
    reshaping.link_all(&held)?;
    let added = reshaping.publish(through.0)?;
    old.iter().for_each(|region| region.drop_data());
    drop(gates);
    let closed_for = began.elapsed();
    drop(held);
    for region in old {
        engine.reads.feed.remove(region.id());
        engine.schedule.forget(region.id());
        engine.pressure.add(region.forget_bytes());
    }
    for region in &added {
        engine.memory_changed(region);
        engine.schedule.schedule_policy(region);
    }
    if let Some(observers) = observers {
        old.iter().for_each(|region| observers.post_close(region.observer_ref()));
        added.iter().for_each(|region| observers.post_open(region.observer_ref()));
    }
    let ids = |regions: &[Arc<Region>]| regions.iter().map(|region| region.id()).collect();
    Ok((RegionReplacement { removed: ids(old), added: ids(&added), closed_for }, added))
}

/// Flushes a region, so that little remains to be flushed while writers wait.
pub(crate) fn flush_most(engine: &Engine, region: &Region) -> Result<()> {
    for _ in 0..FLUSHES_MAX {
        region.flush(engine)?;
        if region.memstore_bytes() <= LITTLE_BYTES {
            break;
        }
    }
    Ok(())
}

/// New regions under construction.
struct RegionReplacementJob<'a> {
    engine: &'a Engine,
    table: &'a Table,
    old: &'a [Arc<Region>],
    new: Vec<NewRegion>,
    published: bool,
}

/// A region under construction.
pub(crate) struct NewRegion {
    id: RegionId,
    rows: RowRange,
    directory: PathBuf,
    /// The linked files, by family.
    families: Vec<BTreeMap<Origin, Linked>>,
}

/// Origin of a file: the index of its region among the old ones, and its id there.
type Origin = (usize, FileId);

/// A linked file.
struct Linked {
    id: FileId,
    created_micros: i64,
    adopted: Option<u64>,
    identity: Option<FileIdentity>,
}

impl<'a> RegionReplacementJob<'a> {
    fn begin(
        engine: &'a Engine,
        table: &'a Table,
        old: &'a [Arc<Region>],
        new: Vec<RowRange>,
    ) -> Result<RegionReplacementJob<'a>> {
        // No other thread assigns region ids: the caller holds the DDL lock.
        let mut manifest = engine.manifest.lock();
        manifest.settle()?;
        let next = manifest.state().next_region;
        drop(manifest);
        let family_count = table.descriptor().families.len();
        assert_eq!(
            (old.first().map(|region| region.start()), old.last().map(|region| region.stop())),
            (
                new.first().map(|rows| rows.start.as_slice()),
                new.last().map(|rows| rows.stop.as_deref())
            ),
            "new regions begin and end where the old ones do"
        );
        assert!(
            new.windows(2).all(|pair| pair[0].stop.as_ref() == Some(&pair[1].start)),
            "new regions are adjacent"
        );
        let mut reshaping =
            RegionReplacementJob { engine, table, old, new: Vec::new(), published: false };
        for (rows, id) in new.into_iter().zip(next..) {
            reshaping.new.push(NewRegion::create(engine, RegionId(id), rows, family_count)?);
        }
        Ok(reshaping)
    }

    /// Links the files that are not linked yet.
    fn link_all(&mut self, held: &[(&Arc<Region>, HeldFiles<'_>)]) -> Result<()> {
        for (region, files) in held {
            let place = self.old.iter().position(|old| old.id() == region.id()).unwrap_or(0);
            for new in &mut self.new {
                new.link_files(self.engine, (place, region), files)?;
            }
        }
        for new in &self.new {
            new.sync(self.engine)?;
        }
        Ok(())
    }

    /// Replaces the old regions by the new ones. The gates of the old ones are closed, and all
    /// commits up to `flushed` are in their files.
    fn publish(&mut self, flushed: u64) -> Result<Vec<Arc<Region>>> {
        let engine = self.engine;
        let descriptor = self.table.descriptor();
        assert!(
            self.old.iter().all(|region| region.unflushed().is_none()),
            "cells that are in memory only would be lost"
        );
        assert!(
            self.old.iter().all(|region| region.flushed().0 <= flushed),
            "a new region has fewer commits in files than the old one"
        );
        let now_micros = engine.options().env.now_micros();
        let records = self.new.iter().map(|new| new.record(self.old, flushed, now_micros));
        let records: Vec<RegionRecord> = records.collect();
        let mut added = Vec::with_capacity(records.len());
        for record in &records {
            let directory = &engine.regions_directory;
            added.push(Arc::new(Region::open(&engine.context, directory, &descriptor, record)?));
        }
        let replica_count = usize::from(descriptor.region_replication.saturating_sub(1));
        for region in &added {
            region.begin_replicas(replica_count, region.flushed());
            region.join_feed(&engine.reads.feed);
        }
        let removed = self.old.iter().map(|region| region.id()).collect();
        let table = self.table.id();
        engine.append_decisive(&[ManifestEdit::ReplaceRegions {
            table,
            removed,
            added: records,
        }])?;
        self.published = true;
        added.iter().for_each(|region| region.describe(&descriptor));
        let map = self.table.regions();
        let first = map.index_at(self.old[0].start());
        let mut regions = map.all().to_vec();
        regions.splice(first..first + self.old.len(), added.iter().cloned());
        self.table.set_regions(RegionMap::new(regions));
        Ok(added)
    }
}

impl Drop for RegionReplacementJob<'_> {
    fn drop(&mut self) {
        if self.published {
            return;
        }
        for new in &self.new {
            self.engine.reads.feed.remove(new.id);
        }
        if !self.engine.manifest.lock().is_settled() {
            // A restart may find the new regions; otherwise it removes their files.
            return;
        }
        for new in &self.new {
            if let Err(error) = self.engine.options().env.remove_directory(&new.directory) {
                // The next opening removes files that the manifest does not list.
                tracing::warn!(%error, "could not remove the files of a region that was not created");
            }
        }
    }
}

impl NewRegion {
    /// Creates the directories of a region, which replace those that a failure has left.
    pub(crate) fn create(
        engine: &Engine,
        id: RegionId,
        rows: RowRange,
        family_count: usize,
    ) -> Result<NewRegion> {
        let directory = directory_of(&engine.regions_directory, id);
        let families = (0..family_count).map(|_| BTreeMap::new()).collect();
        let region = NewRegion { id, rows, directory, families };
        let leftovers = engine.options().env.list(&engine.regions_directory)?;
        if leftovers.iter().any(|name| region.directory.ends_with(name)) {
            engine.options().env.remove_directory(&region.directory)?;
        }
        region.create_directories(engine)?;
        Ok(region)
    }

    /// Links the files of an old region that have rows of this one and are not linked yet.
    pub(crate) fn link_files(
        &mut self,
        engine: &Engine,
        of: (usize, &Region),
        files: &HeldFiles<'_>,
    ) -> Result<()> {
        for (family, view) in files.views().iter().enumerate() {
            view.files().try_for_each(|live| self.link(engine, of, family, live))?;
        }
        Ok(())
    }

    /// Returns it in the form for observers.
    fn shown(&self, table: &Table) -> RegionRef<'_> {
        let RowRange { start, stop } = &self.rows;
        RegionRef { table: table.id(), region: self.id, start, stop: stop.as_deref() }
    }

    fn directory_of(&self, family: usize) -> PathBuf {
        self.directory.join(family.to_string())
    }

    fn create_directories(&self, engine: &Engine) -> Result<()> {
        let env = &engine.options().env;
        (0..self.families.len())
            .try_for_each(|family| env.create_directory(&self.directory_of(family)))
    }

    /// Makes the links durable.
    pub(crate) fn sync(&self, engine: &Engine) -> Result<()> {
        let env = &engine.options().env;
        (0..self.families.len())
            .try_for_each(|family| env.sync_directory(&self.directory_of(family)))
    }

    /// Links a file of an old region, if it has rows of this one and is not linked yet.
    fn link(
        &mut self,
        engine: &Engine,
        (place, region): (usize, &Region),
        family: usize,
        live: &LiveFile,
    ) -> Result<()> {
        let linked = &mut self.families[family];
        let is_elsewhere =
            region.partitioning() == Partitioning::Row && !has_rows(&live.file, &self.rows);
        if linked.contains_key(&(place, live.id)) || is_elsewhere {
            return Ok(());
        }
        if live.file.is_part() && !region.rows().covers(&self.rows) {
            return Err(Error::InvalidRequest(format!(
                "region {} cannot be merged before a compaction rewrites its reference files of a \
                 split",
                region.id().0
            )));
        }
        let id = FileId(linked.len() as u64 + 1);
        let path = self.directory_of(family).join(file_name(family as u8, id));
        engine.options().env.link(live.file.path(), &path)?;
        let adopted = live.file.adopted().map(|sequence| sequence.0);
        let created_micros = live.created_micros;
        let identity = live.file.identity();
        let linked = Linked { id, created_micros, adopted, identity };
        self.families[family].insert((place, live.id), linked);
        Ok(())
    }

    /// Returns the manifest record of the region.
    pub(crate) fn record(
        &self,
        old: &[Arc<Region>],
        flushed: u64,
        created_micros: i64,
    ) -> RegionRecord {
        let files = (0..self.families.len()).map(|family| self.files(old, family)).collect();
        let history = (0..self.families.len()).map(|family| self.history_begin(old, family));
        RegionRecord {
            id: self.id,
            start: self.rows.start.clone(),
            stop: self.rows.stop.clone(),
            flushed,
            files,
            history: history.collect(),
            created_micros,
        }
    }

    /// Returns the begin of a family's history: the maximum of all old regions with rows of this
    /// one.
    fn history_begin(&self, old: &[Arc<Region>], family: usize) -> i64 {
        let rows = &self.rows;
        let overlapping = old.iter().filter(|region| {
            rows.is_before_stop(region.start()) && region.rows().is_before_stop(&rows.start)
        });
        let begins = overlapping.filter_map(|region| Some(region.view(family)?.history_begin.0));
        begins.max().unwrap_or(NO_BEGIN)
    }

    /// Returns the file records of a family, with level and run.
    ///
    /// The files of one level of several regions form that level of the new one. Of level 0, the
    /// newest runs of all regions become one run, the next ones another, and so on: they are
    /// disjoint by row, and a newer run of a region is in a newer run. Those of a colocated table
    /// are not disjoint: each is a run of level 0.
    fn files(&self, old: &[Arc<Region>], family: usize) -> Vec<FileRecord> {
        let mut records: Vec<FileRecord> = Vec::new();
        let mut numbers: BTreeMap<usize, u64> = BTreeMap::new();
        for (place, region) in old.iter().enumerate() {
            let Some(view) = region.view(family) else { continue };
            let is_apart = old.len() > 1 && region.partitioning() == Partitioning::BaseRow;
            let mut age = 0;
            for run in view.runs.iter().rev() {
                let mut of_run = None;
                for live in run.files() {
                    let Some(linked) = self.families[family].get(&(place, live.id)) else {
                        continue;
                    };
                    let level = if is_apart { 0 } else { run.level() };
                    let run_number = match level {
                        0 if is_apart => *of_run.get_or_insert(linked.id.0),
                        0 => *numbers.entry(age).or_insert(linked.id.0),
                        _ => 0,
                    };
                    records.push(FileRecord {
                        id: linked.id,
                        level,
                        run: run_number,
                        created_micros: linked.created_micros,
                        adopted: linked.adopted,
                        identity: linked.identity,
                    });
                }
                age += usize::from(run.level() == 0);
            }
        }
        records
    }
}

/// Returns whether a file has any of these rows. The range begins or ends where the region of the
/// file does, so it cannot lie between two rows of the file.
fn has_rows(file: &StoreFile, rows: &RowRange) -> bool {
    rows.contains(&file.properties().first_row) || rows.contains(&file.properties().last_row)
}
