//! Engine: state shared by the transactions of a store, and the commit path.
//!
//! ```text
//!   staged cells, by region
//!     -> write gates of the regions
//!     -> the log: sequence and timestamp assigned, record queued
//!     -> memstores
//!     -> gates left, applied mark, row locks released
//!     -> ticket: durable, and visible to new snapshots
//! ```
//!
//! # Invariants
//!
//! 1. Sequences and timestamps rise strictly, in the order of the log.
//! 2. An assigned sequence is applied, once: no step between the two can fail.
//! 3. No commit waits for the disk or for another commit while it is in a write gate. A flush, a
//!    split or a bulk load may, which has closed the gate.
//!
//! Assertions: 1 when the log assigns a sequence, 2 in [`AppliedMark`], 3 in debug builds where a
//! thread waits ([`WriteGuard`]).

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use imbl::OrdMap;
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

use crate::admission::Admission;
use crate::budget::Budget;
use crate::cell::{Sequence, Timestamp};
use crate::descriptor::{Durability, RegionId, TableId};
use crate::endpoint_calls::EndpointCalls;
use crate::error::{Error, Result};
use crate::family_store::StoreContext;
use crate::key_changes::KeyChanges;
use crate::lock::{LockTable, Owner};
use crate::manifest::{Manifest, ManifestEdit};
use crate::memory_limits::Pressure;
use crate::memstore::PoolPermit;
use crate::observer::{RegionChain, ServerObservers, WalChain, WalCommit, WalEdit};
use crate::options::Options;
use crate::read_ahead::ReadAheadBytes;
use crate::read_path::ReadPath;
use crate::region::{Region, RegionServices, Volume, WriteGuard};
use crate::scan::Horizon;
use crate::schedule::Schedule;
use crate::serializable::Serializable;
use crate::snapshot::TimelineProgress;
use crate::snapshot::{AppliedMark, ExportedSnapshots, Snapshot, SnapshotPurpose};
use crate::spill::SpillDirectory;
use crate::split_queue::SplitQueue;
use crate::table::Table;
use crate::wal::{Cells, RegionEdit, Wal};

pub(crate) use crate::wal::CommitClock;

/// The clock of cells that are not committed yet.
pub(crate) const UNPLACED: CommitClock =
    CommitClock { sequence: Sequence(0), timestamp: Timestamp::LATEST };

/// The tables by id, in a persistent map: a definition shares all other tables with the one
/// before it.
pub(crate) type Tables = OrdMap<TableId, Arc<Table>>;

/// State shared by the transactions of a store.
pub(crate) struct Engine {
    /// The observers of the log and of definitions, and the runtime shared by all observers.
    pub(crate) observers: Arc<ServerObservers>,
    /// Read path: settings, snapshots and replicas.
    pub(crate) reads: Arc<ReadPath>,
    /// Execution slots of long statements.
    pub(crate) admission: Arc<Admission>,
    /// Context of the regions.
    pub(crate) context: Arc<StoreContext>,
    /// Directory of the regions' files.
    pub(crate) regions_directory: PathBuf,
    /// Directory of the spill files of open transactions.
    pub(crate) spill: Arc<SpillDirectory>,
    /// The tables.
    pub(crate) tables: ArcSwap<Tables>,
    /// Lock manager.
    pub(crate) locks: LockTable,
    /// Key changes of recent commits.
    pub(crate) key_changes: KeyChanges,
    /// Snapshots that transactions have exported.
    pub(crate) exported: ExportedSnapshots,
    /// SERIALIZABLE transactions.
    pub(crate) serializable: Serializable,
    /// The WAL.
    pub(crate) wal: Wal,
    /// Memory accounting, and its waiters.
    pub(crate) pressure: Arc<Pressure>,
    /// Compaction scheduler.
    pub(crate) schedule: Schedule,
    /// The manifest.
    pub(crate) manifest: Mutex<Manifest>,
    /// Regions to be checked for a split.
    pub(crate) splits: SplitQueue,
    /// DDL lock: held while the set of tables, a table's settings or its regions change.
    pub(crate) ddl_lock: Mutex<()>,
    applied: AppliedMark,
    next_owner: AtomicU64,
    stopped: AtomicBool,
    /// True if a failed drop of a table or bulk load may be on disk all the same.
    outcome_unknown: AtomicBool,
    /// Running endpoint calls.
    pub(crate) endpoint_calls: Arc<EndpointCalls>,
    /// Bytes that region threads have read ahead of statements.
    pub(crate) read_ahead: Arc<ReadAheadBytes>,
    /// Bytes in memory of sorted loads.
    pub(crate) sorting: AtomicUsize,
    pool: OnceLock<rayon_core::ThreadPool>,
    /// Permission to pool chunks of dropped memstores.
    _spare: PoolPermit,
    _directory_lock: Box<dyn Send + Sync>,
}

/// The cells of a commit, by region.
#[derive(Default)]
pub(crate) struct CommitWrites {
    /// One entry for each region.
    pub(crate) regions: Vec<RegionWrites>,
}

impl CommitWrites {
    /// Returns the index of the entry of a region; adds it if need be, after `first`.
    pub(crate) fn slot_of(&mut self, region: &Arc<Region>, first: usize) -> usize {
        let found = self.regions[first..].iter().position(|part| Arc::ptr_eq(&part.region, region));
        found.map_or_else(
            || {
                let region = Arc::clone(region);
                self.regions.push(RegionWrites { region, cells: Cells::default(), row_count: 0 });
                self.regions.len() - 1
            },
            |index| first + index,
        )
    }
}

/// The cells of a commit in one region.
pub(crate) struct RegionWrites {
    /// The region.
    pub(crate) region: Arc<Region>,
    /// The cells; those of a family are adjacent.
    pub(crate) cells: Cells,
    /// Number of distinct rows.
    pub(crate) row_count: u64,
}

impl RegionWrites {
    fn shown(&self) -> WalEdit<'_> {
        let (table, region) = (self.region.table(), self.region.id());
        WalEdit { table, region, row_count: self.row_count, cells: &self.cells }
    }
}

/// Components of an engine.
pub(crate) struct EngineComponents {
    pub(crate) reads: Arc<ReadPath>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) context: Arc<StoreContext>,
    pub(crate) regions_directory: PathBuf,
    pub(crate) spill: Arc<SpillDirectory>,
    pub(crate) tables: Tables,
    pub(crate) wal: Wal,
    pub(crate) manifest: Manifest,
    pub(crate) directory_lock: Box<dyn Send + Sync>,
}

impl Engine {
    /// Returns the engine of an opened directory.
    pub(crate) fn new(parts: EngineComponents) -> Engine {
        let last = parts.wal.clock().sequence;
        let options = &parts.context.options;
        let budget = Budget::of(options.memory_bytes);
        let limits = options.coprocessors.clone();
        let observers = Arc::new(ServerObservers::new(Arc::clone(&options.env), limits));
        parts.wal.watch_rolls(observers.clone());
        Engine {
            observers,
            schedule: Schedule::new(&parts.context.options),
            pressure: Arc::new(Pressure::new(&budget)),
            reads: parts.reads,
            admission: parts.admission,
            context: parts.context,
            regions_directory: parts.regions_directory,
            spill: parts.spill,
            tables: ArcSwap::from_pointee(parts.tables),
            locks: LockTable::new(),
            key_changes: KeyChanges::default(),
            exported: ExportedSnapshots::default(),
            serializable: Serializable::new(budget.serializable),
            wal: parts.wal,
            manifest: Mutex::new(parts.manifest),
            splits: SplitQueue::default(),
            ddl_lock: Mutex::new(()),
            applied: AppliedMark::new(last),
            next_owner: AtomicU64::new(1),
            stopped: AtomicBool::new(false),
            outcome_unknown: AtomicBool::new(false),
            endpoint_calls: Arc::default(),
            read_ahead: Arc::new(ReadAheadBytes::new(budget.read_ahead as usize)),
            sorting: AtomicUsize::new(0),
            pool: OnceLock::new(),
            _spare: PoolPermit::within(budget.memstore_hard),
            _directory_lock: parts.directory_lock,
        }
    }

    /// Returns the settings.
    pub(crate) fn options(&self) -> &Options {
        &self.reads.options
    }

    /// Returns a table.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`], [`Error::ShutDown`].
    pub(crate) fn table(&self, id: TableId) -> Result<Arc<Table>> {
        self.check_running()?;
        self.tables.load().get(&id).cloned().ok_or(Error::NoSuchTable(id))
    }

    /// Returns a region of any table.
    pub(crate) fn region(&self, id: RegionId) -> Option<Arc<Region>> {
        let tables = self.tables.load();
        tables.values().find_map(|table| table.regions().by_id(id).cloned())
    }

    /// Returns all regions of all tables.
    pub(crate) fn regions(&self) -> Vec<Arc<Region>> {
        let tables = self.tables.load();
        tables.values().flat_map(|table| table.regions().all().to_vec()).collect()
    }

    /// Returns the owner of a new transaction.
    pub(crate) fn new_owner(&self) -> Owner {
        Owner(self.next_owner.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the highest sequence visible to new snapshots: all commits up to it are durable
    /// and applied.
    pub(crate) fn visible(&self) -> Sequence {
        self.wal.durable().min(self.applied.current())
    }

    /// Opens a snapshot that retains all versions.
    pub(crate) fn hold_all_versions(&self) -> Snapshot {
        let now_micros = self.options().env.now_micros();
        self.reads
            .snapshots
            .open(SnapshotPurpose::Statement, 0, || Horizon { snapshot: Sequence(0), now_micros })
    }

    /// Opens a snapshot of the commits up to `sequence`, whose versions are retained.
    pub(crate) fn open_snapshot_at(&self, sequence: Sequence) -> Snapshot {
        let now_micros = self.options().env.now_micros();
        let snapshot = sequence.min(self.visible());
        self.reads
            .snapshots
            .open(SnapshotPurpose::Statement, 0, || Horizon { snapshot, now_micros })
    }

    /// Opens a snapshot of what is visible now.
    pub(crate) fn open_snapshot(&self, purpose: SnapshotPurpose, transaction: u64) -> Snapshot {
        let env = &self.options().env;
        self.reads.snapshots.open(purpose, transaction, || Horizon {
            snapshot: self.visible(),
            now_micros: env.now_micros(),
        })
    }

    /// Opens a TIMELINE snapshot that includes the commits up to `floor`, which are visible: the
    /// first read fixes it between what the replicas have applied and what is visible now.
    pub(crate) fn open_timeline_snapshot(
        &self,
        (purpose, transaction): (SnapshotPurpose, u64),
        floor: Sequence,
        progress: &Arc<TimelineProgress>,
    ) -> Snapshot {
        let env = &self.options().env;
        let mut newest = Sequence(0);
        let snapshot = self.reads.snapshots.open(purpose, transaction, || {
            newest = self.visible();
            let oldest = self.reads.feed.applied().max(floor).min(newest);
            Horizon { snapshot: oldest, now_micros: env.now_micros() }
        });
        snapshot.up_to(newest, Arc::clone(progress))
    }

    /// Returns the time of the last commit.
    pub(crate) fn last_timestamp(&self) -> Timestamp {
        self.clock().timestamp
    }

    /// Returns the sequence and time of the last commit.
    pub(crate) fn clock(&self) -> CommitClock {
        self.wal.clock()
    }

    /// Rejects new work from now on.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.wal.reject_commits();
    }

    /// Returns [`Error::ShutDown`] once the store is stopped.
    pub(crate) fn check_running(&self) -> Result<()> {
        match self.stopped.load(Ordering::Relaxed) {
            true => Err(Error::ShutDown),
            false => Ok(()),
        }
    }

    /// Ensures that a table whose drop failed still exists after a restart, before a commit that
    /// would be lost with it.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the manifest cannot be written.
    pub(crate) fn settle_tables(&self) -> Result<()> {
        if self.outcome_unknown.load(Ordering::Relaxed) {
            let mut manifest = self.manifest.lock();
            manifest.settle()?;
            self.outcome_unknown.store(false, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Returns the pool of region threads; `None` if there is none.
    pub(crate) fn pool(&self) -> Option<&rayon_core::ThreadPool> {
        let threads = self.options().region_threads;
        if threads <= 1 {
            return None;
        }
        if let Some(pool) = self.pool.get() {
            return Some(pool);
        }
        let builder = rayon_core::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|index| format!("bennu-region-{index}"));
        match builder.build() {
            Ok(pool) => Some(self.pool.get_or_init(|| pool)),
            Err(error) => {
                tracing::warn!(%error, "could not start region threads");
                None
            }
        }
    }

    /// Commits: encodes the record, assigns its sequence, queues it, applies it. On return an
    /// ASYNC commit has been passed to the operating system.
    ///
    /// # Errors
    ///
    /// Nothing was committed then: [`Error::ShutDown`], [`Error::LogFailed`].
    pub(crate) fn commit(
        &self,
        writes: CommitWrites,
        durability: Durability,
    ) -> Result<CommitClock> {
        self.commit_then(writes, durability, |_| ())
    }

    /// Commits like [`Engine::commit`], and calls `applied` as soon as the cells are applied,
    /// before any disk access.
    pub(crate) fn commit_then(
        &self,
        writes: CommitWrites,
        durability: Durability,
        applied: impl FnOnce(Sequence),
    ) -> Result<CommitClock> {
        let observers = self.observers.of_commits();
        if let Some(observers) = &observers {
            let edits: Vec<WalEdit<'_>> = writes.regions.iter().map(RegionWrites::shown).collect();
            observers.pre_append(&WalCommit { durability, edits: &edits })?;
        }
        self.write_commit(writes, durability, applied, observers.as_deref())
    }

    fn write_commit(
        &self,
        mut writes: CommitWrites,
        durability: Durability,
        applied: impl FnOnce(Sequence),
        observers: Option<&WalChain>,
    ) -> Result<CommitClock> {
        // All commits take gates in one order, so that commits and flushes cannot deadlock.
        writes.regions.sort_unstable_by_key(|part| part.region.id());
        let mut regions: SmallVec<[(Arc<Region>, u64); 2]> = SmallVec::new();
        let mut edits: SmallVec<[RegionEdit; 2]> = SmallVec::new();
        for part in writes.regions {
            edits.push(RegionEdit { region: part.region.id(), cells: part.cells });
            regions.push((part.region, part.row_count));
        }
        debug_assert!(
            regions.is_sorted_by(|(one, _), (next, _)| one.id() < next.id()),
            "the regions of a commit are sorted, each once"
        );
        let gates: SmallVec<[WriteGuard<'_>; 2]> =
            regions.iter().map(|(region, _)| region.enter_write()).collect();
        if self.outcome_unknown.load(Ordering::Relaxed)
            || regions.iter().any(|(r, _)| r.is_dropped())
        {
            drop(gates);
            self.settle_tables()?;
            let writes = self.reroute(regions.into_iter().zip(edits))?;
            return self.write_commit(writes, durability, applied, observers);
        }
        // Within the gates: a region that gets replicas closes its gate before it relies on this.
        let followed =
            self.wal.is_followed().then(|| Arc::new(std::mem::take(&mut edits).into_vec()));
        let edits = followed.as_deref().map_or(&edits[..], Vec::as_slice);
        let now = Timestamp(self.options().env.now_micros());
        let clock = self.wal.append(now, durability, edits, followed.as_ref())?;
        for ((region, rows), edit) in regions.iter().zip(edits) {
            debug_assert!(
                edit.cells
                    .of(clock)
                    .all(|cell| { region.partitioning().holds(region.rows(), cell.key.row) }),
                "a cell is written to the region of its row"
            );
            region.apply(clock.sequence, edit.cells.of(clock));
            region.load().wrote(Volume {
                rows: *rows,
                cells: edit.cells.cell_count() as u64,
                bytes: edit.cells.byte_count() as u64,
            });
        }
        drop(gates);
        applied(clock.sequence);
        self.applied.applied(clock.sequence);
        for (region, _) in &regions {
            self.memory_changed(region);
        }
        if let Some(observers) = observers {
            let shown = regions.iter().zip(edits).map(|((region, row_count), edit)| WalEdit {
                table: region.table(),
                region: region.id(),
                row_count: *row_count,
                cells: &edit.cells,
            });
            let shown: Vec<WalEdit<'_>> = shown.collect();
            observers.post_append(&WalCommit { durability, edits: &shown }, clock);
        }
        if durability != Durability::SyncWal && self.wal.write_through(clock.sequence) {
            // A failure is returned by the commit's ticket.
            WriteGuard::check_none();
            let wait = &mut || drop(self.wal.sync_through(clock.sequence));
            self.options().blocking.run(wait);
        }
        Ok(clock)
    }

    /// Redirects the cells for regions that were split or merged meanwhile to the regions that
    /// replaced them.
    fn reroute(
        &self,
        parts: impl Iterator<Item = ((Arc<Region>, u64), RegionEdit)>,
    ) -> Result<CommitWrites> {
        let mut writes = CommitWrites::default();
        let mut gone = Vec::new();
        for ((region, row_count), RegionEdit { cells, .. }) in parts {
            let part = RegionWrites { region, cells, row_count };
            if part.region.is_dropped() { gone.push(part) } else { writes.regions.push(part) }
        }
        for part in gone {
            let table = self.table(part.region.table())?;
            let map = table.regions();
            for cell in part.cells.of(UNPLACED) {
                let slot = writes.slot_of(map.of_row(cell.key.row), 0);
                let part = &mut writes.regions[slot];
                part.row_count += u64::from(part.cells.push(cell.family, &cell.key, cell.value));
            }
        }
        Ok(writes)
    }

    /// Waits until compactions have caught up with a region that has too many files, or cannot,
    /// or the time limit is reached.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`], [`Error::ShutDown`].
    pub(crate) fn wait_for_files(&self, part: &RegionWrites, cancelled: &AtomicBool) -> Result<()> {
        let region = &*part.region;
        if !region.has_too_many_files() {
            return Ok(());
        }
        region.count_blocked(part.row_count);
        let options = self.options();
        let longest = options.compactions.stall_max;
        let clear = || !region.has_too_many_files() || !self.schedule.works_on(region.id());
        self.pressure.wait_for_files(&clear, longest, cancelled, &*options.blocking)
    }

    /// Records that a sequence, which was assigned outside of [`Engine::commit`], has no cells
    /// left to apply.
    pub(crate) fn note_applied(&self, sequence: Sequence) {
        self.applied.applied(sequence);
    }

    /// Appends edits that later commits depend on: if their outcome is unknown, none is
    /// acknowledged until it is known.
    pub(crate) fn append_decisive(&self, edits: &[ManifestEdit]) -> Result<()> {
        let mut manifest = self.manifest.lock();
        manifest.note_log(self.wal.synced());
        let appended = manifest.append_all(edits);
        if !manifest.is_settled() {
            self.outcome_unknown.store(true, Ordering::SeqCst);
        }
        self.after_append(manifest, appended)
    }

    /// Appends edits; they are on disk when this returns, and the log records the manifest's
    /// length.
    ///
    /// # Errors
    ///
    /// Those of [`Manifest::append`].
    pub(crate) fn append_edits(&self, edits: &[ManifestEdit]) -> Result<()> {
        let mut manifest = self.manifest.lock();
        manifest.note_log(self.wal.synced());
        let appended = manifest.append_all(edits);
        self.after_append(manifest, appended)
    }

    /// Logs the length of the manifest, which is still locked.
    pub(crate) fn after_append(
        &self,
        manifest: MutexGuard<'_, Manifest>,
        appended: Result<()>,
    ) -> Result<()> {
        let mark = manifest.mark();
        drop(manifest);
        appended?;
        if let Err(error) = self.wal.note_manifest(mark) {
            // It is logged when the log can be written again.
            tracing::debug!(%error, "could not record the manifest in the write-ahead log");
        }
        Ok(())
    }

    /// Records the end of the log in the manifest, after it was shut down, so that the next
    /// opening can detect a missing part.
    pub(crate) fn close_manifest(&self) {
        let mut manifest = self.manifest.lock();
        let Some(end) = self.wal.end() else { return };
        if !manifest.is_closed()
            && let Err(error) = manifest.close(end)
        {
            tracing::warn!(%error, "could not close the manifest; the next start will perform \
                                    crash recovery");
        }
    }

    /// Waits until all commits up to `sequence` are applied.
    pub(crate) fn wait_applied(&self, sequence: Sequence) {
        WriteGuard::check_none();
        debug_assert!(sequence <= self.clock().sequence, "the commit does not exist");
        self.applied.wait_for(sequence, &*self.options().blocking);
    }

    /// Waits until new snapshots include all commits up to `sequence`.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`]; [`Error::LogFailed`], [`Error::ShutDown`].
    pub(crate) fn wait_visible(&self, sequence: Sequence, cancelled: &AtomicBool) -> Result<()> {
        if self.visible() >= sequence {
            return Ok(());
        }
        self.wait_applied(sequence);
        let (mut ticket, mut result) = (Some(self.wal.wait_for(sequence)), Ok(()));
        self.options().blocking.run(&mut || {
            if let Some(ticket) = ticket.take() {
                result = ticket.wait_unless(&|| cancelled.load(Ordering::Relaxed));
            }
        });
        result
    }

    /// Removes log segments whose commits are in store files.
    pub(crate) fn release_log(&self) -> Result<()> {
        // First the mark, then the regions: a commit at or below the mark is included in its
        // region's value.
        let mark = self.applied.current();
        let oldest = self.regions().iter().filter_map(|region| region.unflushed()).min();
        let released = oldest.map_or(mark, |oldest| Sequence(oldest.0 - 1).min(mark));
        let clock = self.clock();
        let mut manifest = self.manifest.lock();
        if manifest.state().released >= released.0 {
            return Ok(());
        }
        assert!(released <= clock.sequence, "the log is released up to its last commit at most");
        let marks = ManifestEdit::Marks {
            next_region: 0,
            last_sequence: clock.sequence.0,
            last_timestamp: clock.timestamp.0,
            released: released.0,
        };
        manifest.note_log(self.wal.synced());
        let appended = manifest.append(&marks);
        self.after_append(manifest, appended)?;
        self.wal.release(released)
    }
}

impl RegionServices for Engine {
    fn last_sequence(&self) -> Sequence {
        self.clock().sequence
    }

    fn wait_durable(&self, sequence: Sequence) -> Result<()> {
        WriteGuard::check_none();
        self.wal.sync_through(sequence)
    }

    fn horizon(&self) -> Horizon {
        // Mark and time before the open snapshots: they only rise.
        let snapshot = self.visible().min(self.reads.feed.applied());
        let now_micros = self.options().env.now_micros();
        self.reads.snapshots.horizon(Horizon { snapshot, now_micros })
    }

    fn append_edit(&self, edit: &ManifestEdit) -> Result<()> {
        self.append_edits(std::slice::from_ref(edit))
    }

    fn observers(&self, table: TableId) -> Option<Arc<RegionChain>> {
        self.tables.load().get(&table)?.observers().chain()
    }

    fn memory_changed(&self, region: &Region) {
        let (own_bytes, grown) = region.report_bytes();
        let too_many = self.pressure.add(grown);
        if too_many || own_bytes > region.flush_bytes() {
            self.pressure.want_flush();
        }
    }
}
