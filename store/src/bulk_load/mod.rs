//! Bulk load: sorted cells, written directly to store files, adopted by one commit.
//!
//! ```text
//!   add, add, … --> files in the directories of the regions, divided by region and size
//!   adopt       --> target regions flushed
//!               --> their gates closed, sequence S, memstores frozen, gates open
//!               --> log synced up to S, frozen memstores written, one manifest edit, views
//!               --> S applied: visible to new snapshots
//! ```
//!
//! Cells that are sorted by several threads form several streams ([`LoadStream`]), each written
//! by its own thread to separate files, and concatenated before the adoption.
//!
//! The files are written before S is known; the manifest records S for each file. The cost of the
//! adoption is that of the files' trailers, one edit, and a flush of the target regions'
//! memstores. Other commits are acknowledged only once S is applied.
//!
//! # Guarantees
//!
//! 1. All cells are adopted, or none, even in a crash. Files that were not adopted are removed
//!    when the load is dropped, or by the next opening.
//! 2. A snapshot sees all of it or nothing.
//! 3. It counts as one commit at S. It takes no row locks: a transaction that has read a row and
//!    writes it in a later commit does not notice, unless it runs at REPEATABLE READ and takes
//!    the row's lock after the adoption. Observers see the load and its files, not its cells.

pub mod table_copy;

use std::any::Any;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use crate::cell::{CellType, KeyParts, ROW_BYTES_MAX, Sequence, TTL_BYTES, Timestamp};
use crate::cell::{compare_keys, row_of};
use crate::descriptor::{Durability, FileId, TableId};
use crate::engine::{CommitClock, Engine};
use crate::error::{Error, Result};
use crate::file::FileWriter;
use crate::manifest::{FamilyChange, ManifestEdit, RegionChanges};
use crate::observer::{BulkLoadRef, FileOrigin, RegionRef, StoreFileRef};
use crate::region::{HeldFlushes, Region, RegionMap, RegionServices};
use crate::run::{LiveFile, Run};
use crate::table::Table;

/// Size at which a file is closed once its row is complete.
const FILE_BYTES: u64 = 256 << 20;

/// A cell to load.
#[derive(Debug, Clone, Copy)]
pub struct BulkCell<'a> {
    /// The row key.
    pub row: &'a [u8],
    /// Index of the family.
    pub family: u8,
    /// The qualifier; empty for family markers.
    pub qualifier: &'a [u8],
    /// The timestamp; `None` for the time at which the load began.
    pub timestamp: Option<Timestamp>,
    /// The type.
    pub cell_type: CellType,
    /// The value; empty for markers. That of an [`ExpiringPut`](CellType::ExpiringPut) is in
    /// stored form, see [`expiring_value`](crate::cell::expiring_value).
    pub value: &'a [u8],
}

/// Result of a bulk load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BulkLoaded {
    /// Its commit sequence; `None` if it had no cell.
    pub sequence: Option<Sequence>,
    /// Number of files adopted.
    pub file_count: u64,
    /// Number of cells in them.
    pub cell_count: u64,
}

/// Writer of the files of a bulk load. Dropping it without adoption removes them.
pub struct BulkLoad {
    engine: Arc<Engine>,
    /// Keeps the store from stopping.
    _store: Arc<dyn Any + Send + Sync>,
    table: Arc<Table>,
    cells: LoadStream,
}

/// Ascending cells of a bulk load. Dropping it without [appending](BulkLoad::append) removes its
/// files.
pub struct LoadStream {
    map: Arc<RegionMap>,
    started: Timestamp,
    /// Index of the current region.
    region: usize,
    families: Vec<FamilyLoad>,
    files: Files,
    first_row: Vec<u8>,
    row: Vec<u8>,
    cell_count: u64,
}

#[derive(Default)]
struct FamilyLoad {
    /// Open files, by region: one, except of a colocated table.
    writers: BTreeMap<usize, FileWriter>,
    last_key: Vec<u8>,
    /// Buffer for a key while it is compared with the last one.
    key: Vec<u8>,
}

/// Files that are not adopted yet, by region and family.
struct Files {
    engine: Arc<Engine>,
    written: BTreeMap<(usize, u8), Vec<(FileId, PathBuf)>>,
}

impl Drop for Files {
    fn drop(&mut self) {
        if !self.written.is_empty() && !self.engine.manifest.lock().is_settled() {
            // A restart may find that they were adopted; otherwise it removes them.
            return;
        }
        for (_, path) in self.written.values().flatten() {
            // It may not exist yet. If the removal fails, the next opening removes it.
            let _ = self.engine.options().env.remove(path);
        }
    }
}

impl Drop for BulkLoad {
    fn drop(&mut self) {
        self.table.end_load();
    }
}

impl BulkLoad {
    pub(crate) fn begin(
        engine: Arc<Engine>,
        store: Arc<dyn Any + Send + Sync>,
        table: Arc<Table>,
    ) -> BulkLoad {
        let map = table.begin_load();
        // Not below earlier commits, whose times may be ahead of the clock.
        let started = Timestamp(engine.options().env.now_micros()).max(engine.last_timestamp());
        let family_count = table.descriptor().families.len();
        let cells = LoadStream::new(Arc::clone(&engine), map, started, family_count);
        BulkLoad { engine, _store: store, table, cells }
    }

    /// As [`BulkLoad::begin`], with a time chosen by the caller.
    pub(crate) fn begin_at(
        engine: Arc<Engine>,
        store: Arc<dyn Any + Send + Sync>,
        table: Arc<Table>,
        time: Timestamp,
    ) -> BulkLoad {
        let mut load = BulkLoad::begin(engine, store, table);
        load.cells.started = time;
        load
    }

    /// Restarts at the first row, for cells of families that have none yet.
    ///
    /// # Errors
    ///
    /// Errors of writing.
    pub(crate) fn rewind(&mut self) -> Result<()> {
        self.cells.families.iter_mut().try_for_each(close)?;
        self.cells.row.clear();
        self.cells.region = 0;
        Ok(())
    }

    /// Returns the number of families that the table had when the load began.
    pub(crate) fn family_count(&self) -> usize {
        self.cells.families.len()
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Adds a cell. Rows ascend; within a row the cells of each family are in cell order.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if it is not above the previous cells or is invalid,
    /// [`Error::Io`].
    pub fn add(&mut self, cell: BulkCell<'_>) -> Result<()> {
        self.cells.add(cell)
    }

    /// Returns a stream of cells, which another thread may write.
    pub fn stream(&self) -> LoadStream {
        let (engine, map) = (Arc::clone(&self.engine), Arc::clone(&self.cells.map));
        LoadStream::new(engine, map, self.cells.started, self.cells.families.len())
    }

    /// Appends the cells of a stream, whose rows must be above all rows so far.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if they are not, [`Error::Io`].
    pub fn append(&mut self, mut stream: LoadStream) -> Result<()> {
        if stream.cell_count == 0 {
            return Ok(());
        }
        let cells = &mut self.cells;
        if cells.cell_count > 0 && stream.first_row <= cells.row {
            return Err(Error::InvalidRequest(
                "rows of a bulk load must be in ascending order".into(),
            ));
        }
        cells.families.iter_mut().try_for_each(close)?;
        stream.families.iter_mut().try_for_each(close)?;
        for (of, files) in std::mem::take(&mut stream.files.written) {
            cells.files.written.entry(of).or_default().extend(files);
        }
        if cells.cell_count == 0 {
            cells.first_row = std::mem::take(&mut stream.first_row);
        }
        cells.region = stream.region;
        cells.row = std::mem::take(&mut stream.row);
        cells.cell_count += stream.cell_count;
        Ok(())
    }

    /// Adopts the cells: on return they are on disk and visible to new snapshots.
    ///
    /// # Errors
    ///
    /// Nothing is adopted then, unless the manifest could not be written: then the load may exist
    /// after a restart, if no commit succeeds before. [`Error::NoSuchTable`] if the table was
    /// dropped,
    /// [`Error::Io`], [`Error::LogFailed`], [`Error::ShutDown`].
    pub fn adopt(mut self) -> Result<BulkLoaded> {
        self.cells.families.iter_mut().try_for_each(close)?;
        let (cell_count, file_count) = (
            self.cells.cell_count,
            self.cells.files.written.values().map(Vec::len).sum::<usize>() as u64,
        );
        if file_count == 0 {
            return Ok(BulkLoaded { sequence: None, file_count, cell_count });
        }
        let chain = self.table.observers().chain();
        let loads = std::slice::from_mut(&mut self);
        let targets = targets_of(loads)?;
        let shown: Vec<RegionRef<'_>> =
            targets.iter().map(|target| target.region.observer_ref()).collect();
        let load = BulkLoadRef { regions: &shown, file_count, cell_count };
        if let Some(chain) = &chain {
            chain.pre_bulk_load(&load)?;
        }
        let clock = adopt_into(&loads[0].engine, &targets)?;
        if let Some(chain) = &chain {
            chain.post_bulk_load(&load);
        }
        drop((shown, targets));
        self.cells.files.written.clear();
        Ok(BulkLoaded { sequence: Some(clock.sequence), file_count, cell_count })
    }
}

/// Adopts the loads of several tables, as one commit. `None` if they are empty.
///
/// # Errors
///
/// As [`BulkLoad::adopt`].
pub(crate) fn adopt_all(mut loads: Vec<BulkLoad>) -> Result<Option<CommitClock>> {
    for load in &mut loads {
        load.cells.families.iter_mut().try_for_each(close)?;
    }
    let targets = targets_of(&loads)?;
    let Some(first) = targets.first() else { return Ok(None) };
    let clock = adopt_into(&first.load.engine, &targets)?;
    drop(targets);
    loads.iter_mut().for_each(|load| load.cells.files.written.clear());
    Ok(Some(clock))
}

/// A region that adopts files.
struct Target<'a> {
    load: &'a BulkLoad,
    /// Its index in the map of the load.
    index: usize,
    region: &'a Arc<Region>,
}

impl<'a> Target<'a> {
    /// Returns the files in the form for observers.
    fn new_files(&self) -> impl Iterator<Item = StoreFileRef<'a>> {
        let of_region =
            self.load.cells.files.written.range((self.index, 0)..=(self.index, u8::MAX));
        let region: &'a Region = self.region;
        of_region.flat_map(move |((_, family), files)| {
            files.iter().map(move |(file, _)| StoreFileRef {
                region: region.observer_ref(),
                family: *family,
                file: *file,
                origin: FileOrigin::BulkLoad,
            })
        })
    }

    fn open_runs(&self, sequence: Sequence) -> Result<Vec<(u8, Arc<Run>)>> {
        let of_region =
            self.load.cells.files.written.range((self.index, 0)..=(self.index, u8::MAX));
        of_region
            .map(|((_, family), files)| {
                let live: Vec<LiveFile> = self.region.open_adopted(*family, files, sequence)?;
                let number = files.first().map_or(0, |(id, _)| id.0);
                Ok((*family, Arc::new(Run::new(0, number, live))))
            })
            .collect()
    }
}

/// Returns the regions with files of the loads, in the order in which commits take their gates.
///
/// # Errors
///
/// [`Error::NoSuchTable`] if a table was dropped.
fn targets_of(loads: &[BulkLoad]) -> Result<Vec<Target<'_>>> {
    let mut targets = Vec::new();
    for load in loads {
        let indexes: BTreeSet<usize> =
            load.cells.files.written.keys().map(|(region, _)| *region).collect();
        if !indexes.is_empty() && !Arc::ptr_eq(&load.engine.table(load.table.id())?, &load.table) {
            return Err(Error::NoSuchTable(load.table.id()));
        }
        let region = |index| Target { load, index, region: &load.cells.map.all()[index] };
        targets.extend(indexes.into_iter().map(region));
    }
    targets.sort_unstable_by_key(|target| target.region.id());
    debug_assert!(
        targets.windows(2).all(|pair| pair[0].region.id() != pair[1].region.id()),
        "the gate of a region is closed once"
    );
    Ok(targets)
}

fn adopt_into(engine: &Engine, targets: &[Target<'_>]) -> Result<CommitClock> {
    let mut held = Vec::with_capacity(targets.len());
    for Target { region, .. } in targets {
        region.check_whole()?;
        // Most of the memstores' content, before any writer waits.
        region.flush(engine)?;
    }
    for Target { region, .. } in targets {
        held.push(region.hold_flushes(engine)?);
    }
    engine.settle_tables()?;
    let gates: Vec<_> = targets.iter().map(|target| target.region.close_write_gate()).collect();
    let now = Timestamp(engine.options().env.now_micros());
    let clock = engine.wal.append(now, Durability::SkipWal, &[], None)?;
    assert!(
        targets.iter().all(|target| target.region.flushed() < clock.sequence),
        "a load is newer than every cell of its regions"
    );
    held.iter_mut().for_each(|held| held.freeze(clock.sequence));
    drop(gates);
    let adopted = write_edit(engine, targets, held, clock);
    // Regardless of the outcome: other commits wait for this sequence.
    engine.note_applied(clock.sequence);
    // Other threads may still be applying earlier commits, which new snapshots include.
    engine.wait_applied(clock.sequence);
    adopted?;
    for target in targets {
        if let Some(chain) = target.load.table.observers().chain() {
            target.new_files().for_each(|file| chain.post_commit_store_file(&file));
        }
        engine.schedule.schedule_policy(target.region);
        engine.splits.want(target.region.id());
    }
    Ok(clock)
}

fn write_edit(
    engine: &Engine,
    targets: &[Target<'_>],
    mut held: Vec<HeldFlushes<'_>>,
    CommitClock { sequence, timestamp }: CommitClock,
) -> Result<()> {
    engine.wait_durable(sequence)?;
    let mut runs: Vec<Vec<(u8, Arc<Run>)>> = Vec::with_capacity(targets.len());
    let mut edits: BTreeMap<TableId, RegionChanges> = BTreeMap::new();
    for (target, held) in targets.iter().zip(&mut held) {
        held.flush(engine)?;
        let opened = target.open_runs(sequence)?;
        let change = |(family, run): &(u8, Arc<Run>)| FamilyChange {
            family: *family,
            removed: Vec::new(),
            added: run.records().collect(),
            history: None,
        };
        let changes = opened.iter().map(change).collect();
        edits.entry(target.load.table.id()).or_default().push((target.region.id(), changes));
        runs.push(opened);
    }
    for target in targets {
        if let Some(chain) = target.load.table.observers().chain() {
            target.new_files().try_for_each(|file| chain.pre_commit_store_file(&file))?;
        }
    }
    let (sequence, timestamp) = (sequence.0, timestamp.0);
    let mut tables: Vec<(TableId, RegionChanges)> = edits.into_iter().collect();
    let edit = match tables.pop() {
        Some((table, regions)) if tables.is_empty() => {
            ManifestEdit::Adopt { table, regions, sequence, timestamp }
        }
        last => {
            tables.extend(last);
            ManifestEdit::AdoptAll { tables, sequence, timestamp }
        }
    };
    engine.append_decisive(&[edit])?;
    for (held, runs) in held.into_iter().zip(runs) {
        held.adopt(runs, engine);
    }
    Ok(())
}

impl LoadStream {
    fn new(
        engine: Arc<Engine>,
        map: Arc<RegionMap>,
        started: Timestamp,
        family_count: usize,
    ) -> LoadStream {
        let mut families = Vec::new();
        families.resize_with(family_count, FamilyLoad::default);
        LoadStream {
            map,
            started,
            region: 0,
            families,
            files: Files { engine, written: BTreeMap::new() },
            first_row: Vec::new(),
            row: Vec::new(),
            cell_count: 0,
        }
    }

    /// Returns whether the last cell of a family is of this row.
    pub(crate) fn is_last(&self, row: &[u8], family: u8) -> bool {
        let last = self.families.get(usize::from(family)).map(|last| last.last_key.as_slice());
        self.row == row && last.is_some_and(|key| !key.is_empty() && row_of(key) == row)
    }

    /// Adds a cell. Rows ascend; within a row the cells of each family are in cell order.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if it is not above the previous cells or is invalid,
    /// [`Error::Io`].
    pub fn add(&mut self, cell: BulkCell<'_>) -> Result<()> {
        self.check(&cell)?;
        let is_new_row = self.cell_count == 0 || cell.row != self.row;
        if is_new_row {
            self.begin_row(cell.row)?;
        }
        let parts = KeyParts {
            row: cell.row,
            qualifier: cell.qualifier,
            timestamp: cell.timestamp.unwrap_or(self.started),
            // The manifest has the sequence of the adoption.
            sequence: Sequence(0),
            cell_type: cell.cell_type,
        };
        let family = &mut self.families[usize::from(cell.family)];
        family.key.clear();
        parts.encode(&mut family.key);
        let is_behind = is_new_row
            || family.last_key.is_empty()
            || compare_keys(&family.last_key, &family.key).is_lt();
        if !is_behind {
            return Err(Error::InvalidRequest(
                "cells of a bulk load must be in ascending order".into(),
            ));
        }
        let region = &self.map.all()[self.region];
        let writer = match family.writers.entry(self.region) {
            Entry::Occupied(writer) => writer.into_mut(),
            Entry::Vacant(vacant) => {
                let (id, path, writer) = region.begin_file(cell.family)?;
                self.files.written.entry((self.region, cell.family)).or_default().push((id, path));
                vacant.insert(writer)
            }
        };
        debug_assert!(
            region.partitioning().holds(region.rows(), cell.row),
            "a cell is written to the region of its row"
        );
        writer.add(&family.key, cell.value)?;
        std::mem::swap(&mut family.last_key, &mut family.key);
        self.cell_count += 1;
        Ok(())
    }

    fn check(&self, cell: &BulkCell<'_>) -> Result<()> {
        let refuse = |why: &str| Err(Error::InvalidRequest(why.to_owned()));
        if usize::from(cell.family) >= self.families.len() {
            return refuse(&format!("column family {} does not exist", cell.family));
        }
        if cell.row.is_empty() || cell.row.len() > ROW_BYTES_MAX {
            return refuse("a row key must have from 1 to 32767 bytes");
        }
        if cell.timestamp == Some(Timestamp::LATEST) {
            return refuse("the highest timestamp cannot be loaded");
        }
        if cell.cell_type.is_family_marker() && !cell.qualifier.is_empty() {
            return refuse("a family delete marker must not have a qualifier");
        }
        let is_short = cell.value.len() < TTL_BYTES;
        match cell.cell_type {
            CellType::Put => Ok(()),
            CellType::ExpiringPut if is_short => {
                refuse("an expiring value must begin with its TTL")
            }
            CellType::ExpiringPut => Ok(()),
            _ if !cell.value.is_empty() => refuse("a delete marker must not have a value"),
            _ => Ok(()),
        }
    }

    fn begin_row(&mut self, row: &[u8]) -> Result<()> {
        if self.cell_count == 0 {
            self.first_row = row.to_vec();
        }
        if row < &self.row[..] {
            return Err(Error::InvalidRequest(
                "rows of a bulk load must be in ascending order".into(),
            ));
        }
        let region = self.map.index_of(row);
        let leaves = region != self.region && !self.map.is_colocated();
        for family in &mut self.families {
            let is_full = |writer: &FileWriter| writer.byte_count() >= FILE_BYTES;
            if leaves {
                close(family)?;
            } else if family.writers.get(&region).is_some_and(is_full)
                && let Some(full) = family.writers.remove(&region)
            {
                full.finish()?;
            }
        }
        self.region = region;
        self.row.clear();
        self.row.extend_from_slice(row);
        Ok(())
    }
}

fn close(family: &mut FamilyLoad) -> Result<()> {
    for writer in std::mem::take(&mut family.writers).into_values() {
        debug_assert!(!row_of(&family.last_key).is_empty());
        writer.finish()?;
    }
    Ok(())
}
