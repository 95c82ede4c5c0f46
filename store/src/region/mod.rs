//! A region: a range of rows of a table, with its memstores and store files.
//!
//! ```text
//!   commit:  write gate (shared)    --> sequence assigned --> applied --> gate left
//!   flush:   write gate (exclusive) --> rotate at the last assigned sequence --> gate left
//!            --> log durable so far --> files written --> manifest --> files installed
//! ```
//!
//! # Invariants
//!
//! 1. While the write gate is held exclusively, every assigned sequence that touches the region
//!    is applied, and the region has no cells of later ones. So a rotation is exact.
//! 2. A file is listed in the manifest only once the log is durable up to its last sequence: a
//!    crash never leaves part of a commit in files.
//! 3. Flushes of a region are serialized; compactions of disjoint files may run concurrently with
//!    them and with each other.
//! 4. `unflushed` is not above the sequence of any cell that is in memory only.
//!
//! [`Region::freeze`] asserts 1 and 4, in debug builds by the highest applied sequence; each flush
//! asserts 2. The mutex `flushing` ensures 3.

mod compact;
mod file_check;
mod gate;
mod held_flushes;
mod load;
mod observer_hooks;
mod map;
mod split_row;
mod split_policy;

pub use file_check::FileCheck;
pub(crate) use gate::WriteGuard;
pub(crate) use held_flushes::{HeldFiles, HeldFlushes};
pub use load::LoadStatistics;
pub(crate) use load::Volume;
pub(crate) use map::{MapSection, RegionMap};
pub(crate) use split_policy::{SplitMetrics as SplitFacts, is_due as is_split_due, unsplit_bytes};

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use parking_lot::{Mutex, RwLock};

use crate::cache::CacheUse;
use crate::cell::{Sequence, Timestamp};
use crate::description::RegionDescription;
use crate::descriptor::colocation::Partitioning;
use crate::descriptor::{FamilyDescriptor, FileId, RegionId, RowRange, TableDescriptor, TableId};
use crate::error::{Error, Result};
use crate::family_store::{
    FamilyLocation, FamilyStatus, FamilyStore, FlushOutcome, ReadView, StoreContext, at_one_moment,
};
use crate::file::FileWriter;
use crate::manifest::{FamilyChange, ManifestEdit, NO_BEGIN, RegionRecord};
use crate::observer::{RegionChain, RegionRef};
use crate::read_view::Views;
use crate::region::load::LoadCounters;
use crate::region::observer_hooks::FlushHooks;
use crate::region::split_policy::BlockedShare;
use crate::replica::service_gate::{Gated, ServiceGate};
use crate::replica::{Replica, ReplicaFeed, Replicated};
use crate::run::{FileRecord, LiveFile, Run};
use crate::scan::Horizon;
use crate::wal::LoggedCells;

/// Status of one replica, for system views.
#[derive(Debug, Clone)]
pub struct ReplicaStatus {
    /// Its number; the primary is 0.
    pub replica: u8,
    /// It has applied all commits up to here.
    pub applied: Sequence,
    /// The time of that commit.
    pub applied_timestamp: Timestamp,
    /// Number of commits that the replicas of the store have still to apply.
    pub lag_commits: u64,
    /// Bytes of the cells of these commits.
    pub lag_bytes: u64,
    /// Commit time of the oldest of these commits.
    pub lag_since: Option<Timestamp>,
    /// Time until the replicas of the store apply commits again; `None` if they are not held.
    pub held_for: Option<Duration>,
    /// Bytes in its own memstores.
    pub memstore_bytes: u64,
    /// Number of rows that it has returned since its creation.
    pub rows_read: u64,
}

/// Status of one region, for system views.
#[derive(Debug, Clone)]
pub struct RegionStatus {
    /// The region.
    pub region: RegionId,
    /// Its table.
    pub table: TableId,
    /// First row.
    pub start: Vec<u8>,
    /// Row after the last; `None` for no stop.
    pub stop: Option<Vec<u8>>,
    /// Bytes in memstores.
    pub memstore_bytes: u64,
    /// Store files of all families.
    pub file_count: usize,
    /// Their bytes.
    pub file_bytes: u64,
    /// Load since it was opened: when the store was, or when a split or merge created it.
    pub load: LoadStatistics<u64>,
    /// Decayed rates per second: weights fall to a third within a minute.
    pub rates: LoadStatistics<f64>,
    /// Block cache hits and misses of its reads since the start.
    pub cache: CacheUse,
    /// The damage of a file, if any was missing or damaged when the store was opened: reads of
    /// its family and writes of the region fail with it.
    pub damage: Option<String>,
    /// Its replicas, without the primary.
    pub replicas: Vec<ReplicaStatus>,
    /// Time until the primary serves calls again; `None` if it is not held.
    pub held_for: Option<Duration>,
}

/// Status of the store of one family of one region, for system views.
#[derive(Debug, Clone)]
pub struct RegionFamilyStatus {
    /// The region.
    pub region: RegionId,
    /// The descriptor of the family.
    pub family: Arc<FamilyDescriptor>,
    /// Its memstores and files.
    pub status: FamilyStatus,
}

/// Result of a flush or compaction of a region, summed over its families.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RewriteTotals {
    /// Cells read.
    pub cells_in: u64,
    /// Cells written.
    pub cells_out: u64,
    /// Files written.
    pub files_out: u64,
}

impl std::ops::AddAssign for RewriteTotals {
    fn add_assign(&mut self, other: RewriteTotals) {
        self.cells_in += other.cells_in;
        self.cells_out += other.cells_out;
        self.files_out += other.files_out;
    }
}

/// Services that a region needs to flush and compact.
pub(crate) trait RegionServices {
    /// Returns the last assigned sequence.
    fn last_sequence(&self) -> Sequence;
    /// Waits until the log is durable up to `sequence`.
    fn wait_durable(&self, sequence: Sequence) -> Result<()>;
    /// Returns the oldest snapshot and time of open and future reads.
    fn horizon(&self) -> Horizon;
    /// Writes an edit of the manifest.
    fn append_edit(&self, edit: &ManifestEdit) -> Result<()>;
    /// Returns the observers of a table, if it has any.
    fn observers(&self, table: TableId) -> Option<Arc<RegionChain>>;
    /// Reports that the bytes of memstores changed.
    fn memory_changed(&self, region: &Region);
}

/// A range of rows of a table.
pub(crate) struct Region {
    id: RegionId,
    table: TableId,
    rows: RowRange,
    partitioning: Partitioning,
    directory: PathBuf,
    context: Arc<StoreContext>,
    families: ArcSwap<Vec<Arc<FamilyStore>>>,
    write_gate: RwLock<()>,
    service: ServiceGate,
    flushing: Mutex<Flushing>,
    /// The lowest sequence in the active memstores; `u64::MAX` if they are empty.
    unflushed: AtomicU64,
    /// The same for the frozen memstores.
    unflushed_frozen: AtomicU64,
    /// The highest sequence that was applied, in debug builds.
    highest_applied: AtomicU64,
    /// All commits up to here are in files.
    flushed: AtomicU64,
    /// Memstore bytes at the last report.
    reported_bytes: AtomicU64,
    replicas: ArcSwap<Vec<Replica>>,
    /// Memstore bytes at which they are flushed.
    flush_bytes: AtomicU64,
    /// Held while the outputs of a compaction replace its inputs.
    installing: Mutex<()>,
    /// Held while replicas adopt files, so that they adopt them in the order of creation.
    adopting: Mutex<()>,
    load: LoadCounters,
    /// Rows that waited for compactions of the region.
    rows_blocked: AtomicU64,
    blocked_share: Mutex<BlockedShare>,
    created_micros: i64,
    opened_micros: i64,
    dropped: AtomicBool,
    /// True if writers must wait until compactions have reduced the number of files.
    too_many_files: AtomicBool,
}

/// State that a failed flush leaves for the next one.
#[derive(Default)]
struct Flushing {
    /// The memstores are frozen at this sequence and not flushed yet.
    frozen: Option<Sequence>,
}

impl Region {
    /// Opens a region with the files that the manifest lists.
    pub(crate) fn open(
        context: &Arc<StoreContext>,
        regions_directory: &Path,
        descriptor: &TableDescriptor,
        record: &RegionRecord,
    ) -> Result<Region> {
        let directory = directory_of(regions_directory, record.id);
        let rows = RowRange { start: record.start.clone(), stop: record.stop.clone() };
        let mut families = Vec::with_capacity(descriptor.families.len());
        for index in 0..descriptor.families.len() {
            let files = record.files.get(index).map_or(&[][..], Vec::as_slice);
            let place = FamilyLocation {
                directory: directory.join(index.to_string()),
                table: descriptor.id,
                region: record.id,
            };
            let family = open_family(context, place, &rows, (descriptor, index), files)?;
            let begin = record.history.get(index).copied().unwrap_or(NO_BEGIN);
            family.begin_history(Timestamp(begin));
            families.push(family);
        }
        let region = Region {
            id: record.id,
            table: descriptor.id,
            rows,
            partitioning: Partitioning::of(descriptor),
            directory,
            context: Arc::clone(context),
            families: ArcSwap::from_pointee(families),
            write_gate: RwLock::new(()),
            service: ServiceGate::default(),
            flushing: Mutex::default(),
            too_many_files: AtomicBool::new(false),
            unflushed: AtomicU64::new(u64::MAX),
            unflushed_frozen: AtomicU64::new(u64::MAX),
            highest_applied: AtomicU64::new(0),
            flushed: AtomicU64::new(record.flushed),
            reported_bytes: AtomicU64::new(0),
            replicas: ArcSwap::default(),
            flush_bytes: AtomicU64::new(flush_bytes(context, descriptor)),
            installing: Mutex::default(),
            adopting: Mutex::default(),
            load: LoadCounters::new(context.options.env.now_micros()),
            rows_blocked: AtomicU64::new(0),
            blocked_share: Mutex::default(),
            created_micros: record.created_micros,
            opened_micros: context.options.env.now_micros(),
            dropped: AtomicBool::new(false),
        };
        region.count_files();
        Ok(region)
    }

    fn place_of(&self, family: usize) -> FamilyLocation {
        let directory = self.directory.join(family.to_string());
        FamilyLocation { directory, table: self.table, region: self.id }
    }

    /// Creates the directories of its files.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub(crate) fn create_directories(&self) -> Result<()> {
        self.families.load().iter().try_for_each(|family| family.create_directory())
    }

    /// Writes the region's description to its directory, replacing an existing one, for salvage.
    /// Errors are ignored, because the manifest has the same content.
    pub(crate) fn describe(&self, table: &TableDescriptor) {
        let database = self.context.database;
        let description = RegionDescription::new(database, table.clone(), self.id, &self.rows);
        if let Err(error) = description.write(&*self.context.options.env, &self.directory) {
            tracing::debug!(%error, region = self.id.0, "could not write the region descriptor");
        }
    }

    /// As `describe`, if there is no description yet.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the directory cannot be read.
    pub(crate) fn describe_once(&self, table: &TableDescriptor) -> Result<()> {
        if !RegionDescription::exists(&*self.context.options.env, &self.directory)? {
            self.describe(table);
        }
        Ok(())
    }

    /// Returns the files in its directories that have names of its families' files, and that the
    /// manifest does not list.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub(crate) fn unlisted_files(&self) -> Result<Vec<PathBuf>> {
        let mut unlisted = Vec::new();
        for family in self.families.load().iter() {
            unlisted.extend(family.unlisted_files()?);
        }
        Ok(unlisted)
    }

    /// Returns its id.
    pub(crate) fn id(&self) -> RegionId {
        self.id
    }

    /// Returns the assignment of the table's rows to regions.
    pub(crate) fn partitioning(&self) -> Partitioning {
        self.partitioning
    }

    /// Returns its table.
    pub(crate) fn table(&self) -> TableId {
        self.table
    }

    /// Returns its first row.
    pub(crate) fn start(&self) -> &[u8] {
        &self.rows.start
    }

    /// Returns the row after its last, or `None` for no stop.
    pub(crate) fn stop(&self) -> Option<&[u8]> {
        self.rows.stop.as_deref()
    }

    /// Returns its rows.
    pub(crate) fn rows(&self) -> &RowRange {
        &self.rows
    }

    /// Returns the time of its creation, or `UNKNOWN_CREATION`.
    pub(crate) fn created_micros(&self) -> i64 {
        self.created_micros
    }

    /// Returns the region in the form for observers.
    pub(crate) fn observer_ref(&self) -> RegionRef<'_> {
        RegionRef { table: self.table, region: self.id, start: self.start(), stop: self.stop() }
    }

    /// Returns the service gate.
    pub(crate) fn service(&self) -> &ServiceGate {
        &self.service
    }

    /// Returns the sequence up to which all commits are in files.
    pub(crate) fn flushed(&self) -> Sequence {
        Sequence(self.flushed.load(Ordering::Acquire))
    }

    /// Returns the lowest sequence that may be in memory only.
    pub(crate) fn unflushed(&self) -> Option<Sequence> {
        // In this order: a rotation writes the frozen one before it clears the active one.
        let active = self.unflushed.load(Ordering::SeqCst);
        let lowest = active.min(self.unflushed_frozen.load(Ordering::SeqCst));
        (lowest != u64::MAX).then_some(Sequence(lowest))
    }

    /// Returns the number of families.
    pub(crate) fn family_count(&self) -> usize {
        self.families.load().len()
    }

    /// Returns the time from which on the histories of all families are complete.
    pub(crate) fn history_begin(&self) -> Timestamp {
        let families = self.families.load();
        let begins = families.iter().map(|family| family.borrow_view().history_begin);
        begins.max().unwrap_or(Timestamp(NO_BEGIN))
    }

    /// Returns the primary's present view of a family.
    pub(crate) fn view(&self, family: usize) -> Option<Arc<ReadView>> {
        self.families.load().get(family).map(|store| store.view())
    }

    /// Checks that no file of any family is missing, so that written cells can be read.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`].
    pub(crate) fn check_whole(&self) -> Result<()> {
        self.families.load().iter().try_for_each(|family| family.check_whole())
    }

    /// Returns the present views of the existing ones of these families, or of all.
    pub(crate) fn views(&self, wanted: Option<&[u8]>) -> Views {
        borrow_views(&self.families.load(), wanted)
    }

    /// Returns views that were all present at one moment, and the result of `visible`, which
    /// never decreases, at that moment.
    ///
    /// A read of these views at that sequence needs no open snapshot: versions that a flush or a
    /// compaction dropped from the views were invisible before the views were installed, and
    /// every commit that became visible later is above the sequence.
    pub(crate) fn views_of_now(
        &self,
        wanted: Option<&[u8]>,
        visible: impl Fn() -> Sequence,
    ) -> (Views, Sequence) {
        let families = self.families.load();
        // Otherwise a visible commit might be in a memstore that the views do not include.
        at_one_moment(
            || borrow_views(&families, wanted),
            visible,
            |views| {
                let is_present = |(family, view): &(u8, Guard<Arc<ReadView>>)| {
                    families[usize::from(*family)].is_present(view)
                };
                views.iter().all(is_present)
            },
        )
    }

    /// Returns the replicas.
    pub(crate) fn replicas(&self) -> Guard<Arc<Vec<Replica>>> {
        self.replicas.load()
    }

    /// Creates a store file of a family that is written elsewhere, to be adopted.
    pub(crate) fn begin_file(&self, family: u8) -> Result<(FileId, PathBuf, FileWriter)> {
        let store = self.family(family)?;
        let (id, path) = store.name_file();
        let env = Arc::clone(&self.context.options.env);
        let writer = FileWriter::new(env, &path, store.view().family());
        let writer = writer.identified(store.identity_of(id));
        Ok((id, path, writer))
    }

    /// Opens files that were written elsewhere, all of whose cells get this sequence.
    pub(crate) fn open_adopted(
        &self,
        family: u8,
        files: &[(FileId, PathBuf)],
        sequence: Sequence,
    ) -> Result<Vec<LiveFile>> {
        self.family(family)?.open_written(files, Some(sequence))
    }

    /// Opens files that were written elsewhere, with the sequences of their cells.
    pub(crate) fn open_written(
        &self,
        family: u8,
        files: &[(FileId, PathBuf)],
    ) -> Result<Vec<LiveFile>> {
        self.family(family)?.open_written(files, None)
    }

    /// Adds runs that the manifest lists to a region without memstores, and raises the begins of
    /// its families' histories. All commits up to `through` are in files then.
    pub(crate) fn adopt_written(
        &self,
        runs: impl Iterator<Item = (u8, Vec<Arc<Run>>, Timestamp)>,
        through: Sequence,
        surroundings: &dyn RegionServices,
    ) {
        assert!(self.unflushed().is_none(), "cells in memory would be older than a file");
        let families = self.families.load_full();
        for (family, runs, history_begin) in runs {
            let family = &families[usize::from(family)];
            family.begin_history(history_begin);
            runs.into_iter().for_each(|run| family.install_adopted(run));
        }
        self.flushed.fetch_max(through.0, Ordering::AcqRel);
        self.count_files();
        self.feed_files_to_replicas();
        surroundings.memory_changed(self);
    }

    fn family(&self, family: u8) -> Result<Arc<FamilyStore>> {
        let found = self.families.load().get(usize::from(family)).cloned();
        found.ok_or_else(|| Error::InvalidRequest(format!("column family {family} does not exist")))
    }

    /// Enters the write gate: sequences for cells of the region may be assigned until the guard
    /// is dropped.
    pub(crate) fn enter_write(&self) -> WriteGuard<'_> {
        WriteGuard::new(self.write_gate.read())
    }

    /// Applies the region's cells of a commit. The caller holds the write gate.
    pub(crate) fn apply(&self, sequence: Sequence, mut cells: LoggedCells<'_>) {
        debug_assert!(sequence > self.flushed(), "a commit that is in files is applied again");
        if cfg!(debug_assertions) {
            self.highest_applied.fetch_max(sequence.0, Ordering::SeqCst);
        }
        self.unflushed.fetch_min(sequence.0, Ordering::SeqCst);
        let families = self.families.load();
        while let Some((family, cells)) = cells.next_family() {
            // Cells of a dropped family are of a commit that began before.
            if let Some(family) = families.get(usize::from(family))
                && !family.is_dropped()
            {
                let time = cells.time();
                family.apply_commit(cells, time);
            }
        }
    }

    /// Returns its load counters.
    pub(crate) fn load(&self) -> &LoadCounters {
        &self.load
    }

    /// Counts rows that wait for compactions.
    pub(crate) fn count_blocked(&self, rows: u64) {
        self.rows_blocked.fetch_add(rows, Ordering::Relaxed);
    }

    /// Returns the bytes of the memstores of all families.
    pub(crate) fn memstore_bytes(&self) -> u64 {
        self.families.load().iter().map(|family| family.memstore_bytes()).sum()
    }

    /// Returns the memstore bytes at which they are flushed.
    pub(crate) fn flush_bytes(&self) -> u64 {
        self.flush_bytes.load(Ordering::Relaxed)
    }

    /// Returns the bytes in use in the primary's memstores, and the growth of the memory held by
    /// them and by the replicas' memstores since the last call; the growth wraps around.
    pub(crate) fn report_bytes(&self) -> (u64, u64) {
        let replicas: u64 = self.replicas.load().iter().map(Replica::memstore_held_bytes).sum();
        let families = self.families.load();
        let own: u64 = families.iter().map(|family| family.memstore_bytes()).sum();
        let held: u64 = families.iter().map(|family| family.memstore_held_bytes()).sum();
        let now = held + replicas;
        let mut grown = now.wrapping_sub(self.reported_bytes.swap(now, Ordering::SeqCst));
        if self.dropped.load(Ordering::SeqCst) {
            // The region may have been removed just before: the last call removes its bytes
            // permanently.
            grown = grown.wrapping_add(self.forget_bytes());
        }
        (own, grown)
    }

    /// Returns the growth that removes the region from the sum of memstores.
    pub(crate) fn forget_bytes(&self) -> u64 {
        0u64.wrapping_sub(self.reported_bytes.swap(0, Ordering::SeqCst))
    }

    /// Flushes all memstores. Returns the result, zeros if they were empty.
    pub(crate) fn flush(&self, surroundings: &dyn RegionServices) -> Result<RewriteTotals> {
        let mut flushing = self.flushing.lock();
        let mut upkeep = self.flush_frozen(&mut flushing, surroundings)?;
        if self.rotate(&mut flushing, surroundings) {
            upkeep += self.flush_frozen(&mut flushing, surroundings)?;
        }
        drop(flushing);
        surroundings.memory_changed(self);
        Ok(upkeep)
    }

    /// Freezes the active memstores, unless they are empty.
    fn rotate(&self, flushing: &mut Flushing, surroundings: &dyn RegionServices) -> bool {
        let _gate = self.write_gate.write();
        if self.unflushed.load(Ordering::SeqCst) == u64::MAX {
            return false;
        }
        self.freeze(flushing, surroundings.last_sequence());
        true
    }

    /// Freezes the active memstores. The caller holds the write gate exclusively, and `through`
    /// is the last assigned sequence.
    fn freeze(&self, flushing: &mut Flushing, through: Sequence) {
        assert!(flushing.frozen.is_none(), "memstores are frozen twice without a flush");
        assert!(through >= self.flushed(), "a rotation before the last flush");
        let lowest = self.unflushed.load(Ordering::SeqCst);
        assert!(lowest == u64::MAX || lowest <= through.0, "a cell is newer than the rotation");
        debug_assert!(
            self.highest_applied.load(Ordering::SeqCst) <= through.0,
            "a cell is newer than the rotation"
        );
        for family in self.families.load().iter() {
            family.rotate(through);
        }
        for replica in self.replicas.load().iter() {
            replica.rotate(through);
        }
        self.unflushed_frozen.store(lowest, Ordering::SeqCst);
        self.unflushed.store(u64::MAX, Ordering::SeqCst);
        flushing.frozen = Some(through);
    }

    fn flush_frozen(
        &self,
        flushing: &mut Flushing,
        surroundings: &dyn RegionServices,
    ) -> Result<RewriteTotals> {
        let mut upkeep = RewriteTotals::default();
        let Some(through) = flushing.frozen else { return Ok(upkeep) };
        surroundings.wait_durable(through)?;
        let watch =
            FlushHooks { region: self.observer_ref(), chain: surroundings.observers(self.table) };
        watch.begin()?;
        let families = self.families.load_full();
        let horizon = surroundings.horizon();
        let mut outcomes: Vec<(usize, FlushOutcome)> = Vec::new();
        for (index, family) in families.iter().enumerate() {
            let mut filter = watch.filter(index as u8, horizon)?;
            if let Some(outcome) = family.flush_filtered(horizon, filter.as_deref_mut())? {
                upkeep.cells_in += outcome.cells_in;
                upkeep.cells_out += outcome.cells_out;
                upkeep.files_out += u64::from(outcome.file.is_some());
                outcomes.push((index, outcome));
            }
        }
        watch.commit(&outcomes)?;
        assert!(
            outcomes.iter().all(|(_, outcome)| outcome.flushed <= through),
            "a file holds commits that may not be durable"
        );
        let changes = outcomes.iter().filter_map(|(index, outcome)| {
            let (added, history) = (Vec::from_iter(outcome.file), outcome.history_begin);
            let (family, history) = (*index as u8, begin_in_manifest(history));
            let says = !added.is_empty() || history.is_some();
            says.then(|| FamilyChange { family, added, removed: Vec::new(), history })
        });
        self.append_edit(surroundings, changes.collect(), Some(through))?;
        for (index, outcome) in &outcomes {
            families[*index].install_flush(outcome)?;
        }
        flushing.frozen = None;
        self.flushed.fetch_max(through.0, Ordering::AcqRel);
        self.unflushed_frozen.store(u64::MAX, Ordering::SeqCst);
        self.count_files();
        self.feed_files_to_replicas();
        watch.end(&outcomes, upkeep);
        tracing::debug!(region = self.id.0, through = through.0, ?upkeep, "flushed");
        Ok(upkeep)
    }

    fn append_edit(
        &self,
        surroundings: &dyn RegionServices,
        changes: Vec<FamilyChange>,
        flushed: Option<Sequence>,
    ) -> Result<()> {
        if self.dropped.load(Ordering::Acquire) {
            return Ok(());
        }
        let appended = surroundings.append_edit(&ManifestEdit::Region {
            table: self.table,
            region: self.id,
            changes,
            flushed: flushed.map(|sequence| sequence.0),
        });
        match appended {
            // The table was dropped while the files were written.
            Err(_) if self.dropped.load(Ordering::SeqCst) => Ok(()),
            appended => appended,
        }
    }

    fn feed_files_to_replicas(&self) {
        let _adopting = self.adopting.lock();
        for replica in self.replicas.load().iter() {
            replica.adopt(self.file_views(), self.flushed());
        }
    }

    fn file_views(&self) -> Vec<Arc<ReadView>> {
        self.families.load().iter().map(|family| Arc::new(family.view().files_only())).collect()
    }

    /// Sets the number of replicas besides the primary, fed from now on.
    ///
    /// New ones start from the files, so the memstores are flushed first; writers wait for the
    /// last part of that.
    pub(crate) fn set_replicas(
        self: &Arc<Region>,
        count: usize,
        feed: &Arc<ReplicaFeed>,
        surroundings: &dyn RegionServices,
    ) -> Result<()> {
        if self.replicas.load().len() == count {
            return Ok(());
        }
        if count == 0 {
            feed.remove(self.id);
            self.replicas.store(Arc::default());
            return Ok(());
        }
        loop {
            self.flush(surroundings)?;
            let _flushing = self.flushing.lock();
            let _gate = self.write_gate.write();
            if self.unflushed().is_none() {
                // The memstores are empty, so the files have all commits so far.
                self.begin_replicas(count, surroundings.last_sequence().max(self.flushed()));
                self.join_feed(feed);
                return Ok(());
            }
        }
    }

    /// Creates replicas over the files, which have all commits up to `through`. The caller
    /// ensures that the memstores are empty and stay so meanwhile.
    pub(crate) fn begin_replicas(&self, count: usize, through: Sequence) {
        let _adopting = self.adopting.lock();
        let replicas = (0..count).map(|_| Replica::new(self.file_views(), through)).collect();
        self.replicas.store(Arc::new(replicas));
    }

    /// Subscribes to the feed if there are replicas.
    pub(crate) fn join_feed(self: &Arc<Region>, feed: &Arc<ReplicaFeed>) {
        if !self.replicas.load().is_empty() {
            let replicated: Arc<dyn Replicated> = self.clone();
            feed.add(self.id, Arc::downgrade(&replicated));
        }
    }

    /// Sets the descriptors of its families, and adds families behind the present ones. The files
    /// of dropped families are removed when the last reader is dropped.
    pub(crate) fn alter(
        &self,
        descriptor: &TableDescriptor,
        surroundings: &dyn RegionServices,
    ) -> Result<()> {
        let mut families = self.families.load().as_ref().clone();
        let mut dropped = Vec::new();
        for (index, wanted) in descriptor.families.iter().enumerate() {
            match families.get_mut(index) {
                Some(family) if wanted.is_dropped() && !family.is_dropped() => {
                    let empty = self.empty_family(descriptor, index)?;
                    dropped.push(std::mem::replace(family, empty));
                }
                Some(family) => family.set_family(Arc::new(wanted.clone())),
                None => families.push(self.empty_family(descriptor, index)?),
            }
        }
        // Frozen memstores of other families are unaffected: a new family has none.
        let _flushing = self.flushing.lock();
        let installing = self.installing.lock();
        self.families.store(Arc::new(families));
        dropped.iter().for_each(|family| family.remove_files());
        drop(installing);
        self.describe(descriptor);
        self.flush_bytes.store(flush_bytes(&self.context, descriptor), Ordering::Relaxed);
        self.count_files();
        self.feed_files_to_replicas();
        surroundings.memory_changed(self);
        Ok(())
    }

    fn empty_family(&self, table: &TableDescriptor, index: usize) -> Result<Arc<FamilyStore>> {
        let place = self.place_of(index);
        let family = open_family(&self.context, place, &self.rows, (table, index), &[])?;
        family.create_directory()?;
        Ok(family)
    }

    /// Marks the region as dropped: its files are removed when the last reader is dropped. If
    /// other regions have its rows now, the caller has closed the write gate: no commit is in
    /// progress in it.
    pub(crate) fn drop_data(&self) {
        self.dropped.store(true, Ordering::SeqCst);
    }

    /// Returns the stores of its families, without those of dropped ones.
    pub(crate) fn stores(&self) -> Vec<RegionFamilyStatus> {
        let families = self.families.load();
        let store = |family: &Arc<FamilyStore>| {
            let descriptor = Arc::clone(family.view().family());
            let live = !descriptor.is_dropped();
            live.then(|| RegionFamilyStatus {
                region: self.id,
                family: descriptor,
                status: family.status(),
            })
        };
        families.iter().filter_map(store).collect()
    }

    /// Returns the statistics.
    pub(crate) fn status(&self, feed: &ReplicaFeed) -> RegionStatus {
        let (load, rates) = self.load.totals_and_rates(self.context.options.env.now_micros());
        let (mut file_count, mut file_bytes) = (0, 0);
        let mut cache = CacheUse::default();
        let mut damage = None;
        for family in self.families.load().iter() {
            let status = family.status();
            file_count += status.files.len();
            file_bytes += status.files.iter().map(|file| file.byte_count).sum::<u64>();
            cache += status.cache;
            damage = damage.or(status.damage.map(|damage| damage.error().to_string()));
        }
        let (lag_commits, lag_bytes) = feed.backlog();
        let replicas = self.replicas.load();
        let replicas = replicas.iter().zip(1..).map(|(replica, number)| ReplicaStatus {
            replica: number,
            applied: feed.applied(),
            applied_timestamp: feed.applied_timestamp(),
            lag_commits,
            lag_bytes,
            lag_since: feed.queued_since(),
            held_for: feed.held_for(),
            memstore_bytes: replica.memstore_bytes(),
            rows_read: replica.rows_read(),
        });
        RegionStatus {
            region: self.id,
            table: self.table,
            start: self.rows.start.clone(),
            stop: self.rows.stop.clone(),
            memstore_bytes: self.memstore_bytes(),
            file_count,
            file_bytes,
            load,
            rates,
            cache,
            damage,
            replicas: replicas.collect(),
            held_for: self.service.held_for(),
        }
    }
}

/// Returns the directory of a region's files.
pub(crate) fn directory_of(regions_directory: &Path, region: RegionId) -> PathBuf {
    regions_directory.join(region.0.to_string())
}

/// Returns the begin of a history in the form of manifest edits.
fn begin_in_manifest(begin: Timestamp) -> Option<i64> {
    (begin.0 != NO_BEGIN).then_some(begin.0)
}

fn flush_bytes(context: &StoreContext, descriptor: &TableDescriptor) -> u64 {
    descriptor.memstore_flush_bytes.unwrap_or(context.options.memstore_flush_bytes)
}

fn open_family(
    context: &Arc<StoreContext>,
    place: FamilyLocation,
    rows: &RowRange,
    (descriptor, index): (&TableDescriptor, usize),
    files: &[FileRecord],
) -> Result<Arc<FamilyStore>> {
    let store = FamilyStore::open(
        Arc::clone(context),
        place,
        (index as u8, Arc::new(descriptor.families[index].clone())),
        (rows.clone(), Partitioning::of(descriptor)),
        files,
    )?;
    Ok(Arc::new(store))
}

impl Replicated for Region {
    fn apply_to_replicas(&self, sequence: Sequence, cells: &LoggedCells<'_>) {
        for replica in self.replicas.load().iter() {
            replica.apply(sequence, cells.clone());
        }
    }
}

impl Gated for Region {
    fn gate(&self) -> &ServiceGate {
        &self.service
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if !*self.dropped.get_mut() {
            return;
        }
        let env = &self.context.options.env;
        if let Err(error) = env.remove_directory(&self.directory) {
            // The next opening removes unlisted directories.
            tracing::warn!(%error, region = self.id.0, "could not remove the region's files");
        }
    }
}
fn borrow_views(families: &[Arc<FamilyStore>], wanted: Option<&[u8]>) -> Views {
    let mut views = Views::new();
    let mut borrow = |family: usize| {
        if let Some(store) = families.get(family) {
            views.push((family as u8, store.borrow_view()));
        }
    };
    match wanted {
        Some(wanted) => wanted.iter().for_each(|family| borrow(usize::from(*family))),
        None => (0..families.len()).for_each(borrow),
    }
    views
}
