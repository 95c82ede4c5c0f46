//! The store: tables, their regions, the log, and what runs in the background.
//!
//! ```text
//! DIR/LOCK                                held while the store is open
//! DIR/MANIFEST                            what is alive
//! DIR/wal/                                the log
//! DIR/regions/<region>/<family>/<file>    store files
//! ```

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::admission::AdmissionStatus;
use crate::background::Background;
use crate::bulk_load::BulkLoad;
use crate::cell::{Sequence, Timestamp};
use crate::checkpoint;
use crate::compaction::Request;
use crate::descriptor::{RegionId, TableDescriptor, TableId};
use crate::engine::{Engine, Tables};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::manifest::{ManifestEdit, NO_BEGIN, RegionRecord};
use crate::memory;
use crate::memstore::release_spare;
use crate::observer::RewriteKind;
use crate::open::{open_engine, open_table};
use crate::options::{AdmissionOptions, CoprocessorLimits, Options};
use crate::quota::Quota;
use crate::read_view::RowEstimate;
use crate::region::{Region, Upkeep};
use crate::reshape;
use crate::sorted_load::{EntrySorter, ScratchSpace};
use crate::table::{Table, check_descriptor};
use crate::transaction::{PreparedTransaction, Transaction, TransactionOptions};

/// In so many steps the block cache takes back what it has given while memory was short.
const CACHE_REFILLS: u64 = 16;

pub use crate::cache::{CacheStatus, CacheUse};
pub use crate::checkpoint::Checkpoint;
pub use crate::endpoint_calls::EndpointCallStatus;
pub use crate::family_store::CompactionFigures;
pub use crate::region::{HoldGuard, Load, RegionStatus, ReplicaStatus};
pub use crate::reshape::{Reshaped, SplitPoint};
pub use crate::schedule::CompactionStatus;
pub use crate::snapshot::{SnapshotPurpose, SnapshotStatus};

/// An open data directory.
pub struct Store {
    engine: Arc<Engine>,
    background: Mutex<Background>,
}

/// Figures of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreStatus {
    /// Bytes in memstores, those of replicas included.
    pub memstore_bytes: u64,
    /// Bytes at which memstores are flushed.
    pub memstore_limit_bytes: u64,
    /// Bytes that open transactions hold: staged cells and row locks, of those that have more than
    /// a few, and what SERIALIZABLE ones have noted of their reads and writes.
    pub transaction_bytes: u64,
    /// Bytes of rows that region threads have read ahead of statements.
    pub read_ahead_bytes: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Whether the log cannot be written at present, so that commits are refused.
    pub log_failed: bool,
    /// How often records had to be written again to a new segment after a failure.
    pub log_failures_mended: u64,
    /// Rows that are locked now.
    pub row_locks: usize,
    /// How often a commit had to wait for memory since start.
    pub memory_stalls: u64,
    /// How often a commit had to wait for compactions since start.
    pub file_stalls: u64,
    /// Compactions that run now.
    pub running_compactions: usize,
    /// Stores that wait for a compaction, or to be asked whether they need one.
    pub queued_compactions: usize,
    /// Compactions that failed since start; they are tried again.
    pub failed_compactions: u64,
    /// The last commit that new snapshots see.
    pub visible: Sequence,
    /// Regions of which a file was missing or damaged when the store was opened;
    /// [`RegionStatus::damage`] says which.
    pub damaged_regions: usize,
    /// Open snapshots; [`Store::snapshots`] lists them.
    pub snapshots: usize,
}

impl Store {
    /// Opens a data directory, creating it if need be, and replays the log.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`], [`Error::Corrupt`], [`Error::Io`].
    pub fn open(directory: &Path, options: Options) -> Result<Arc<Store>> {
        let engine = Arc::new(open_engine(directory, options)?);
        if engine.regions().iter().any(|region| !region.replicas().is_empty()) {
            engine.reads.feed.follow_log(&engine.wal);
        }
        let store = Store { background: Mutex::new(Background::start(&engine)?), engine };
        for region in store.engine.regions() {
            region.join_feed(&store.engine.reads.feed);
        }
        store.engine.pressure.want_flush();
        for region in store.engine.regions() {
            store.engine.schedule.want(&region);
        }
        Ok(Arc::new(store))
    }

    /// Creates a table with its regions; durable on return.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if the descriptor makes no sense or the id is taken.
    pub fn create_table(&self, mut descriptor: TableDescriptor) -> Result<()> {
        let master = self.engine.observers.master();
        if let Some(master) = &master {
            let id = descriptor.id;
            master.pre_create_table(&mut descriptor)?;
            descriptor.id = id;
        }
        self.create_unobserved(descriptor.clone())?;
        if let Some(master) = master {
            master.post_create_table(&descriptor);
        }
        Ok(())
    }

    fn create_unobserved(&self, descriptor: TableDescriptor) -> Result<()> {
        check_descriptor(&descriptor)?;
        let _defining = self.engine.defining.lock();
        self.engine.check_running()?;
        if self.engine.tables.load().contains_key(&descriptor.id) {
            let id = descriptor.id.0;
            return Err(Error::InvalidRequest(format!("table {id} exists already")));
        }
        let mut manifest = self.engine.manifest.lock();
        let regions = region_records(&descriptor, manifest.state().next_region);
        manifest.note_log(self.engine.wal.synced());
        let appended = manifest.append(&ManifestEdit::PutTable {
            descriptor: descriptor.clone(),
            regions: regions.clone(),
        });
        self.engine.after_append(manifest, appended)?;
        let table =
            open_table(&self.engine.context, &self.engine.regions_directory, descriptor, &regions)?;
        let table = Arc::new(table);
        table.regions().all().iter().try_for_each(|region| region.create_directories())?;
        table.regions().all().iter().for_each(|region| region.describe(&table.descriptor()));
        self.set_replicas(&table)?;
        self.change_tables(|tables| {
            tables.insert(table.id(), Arc::clone(&table));
        });
        Ok(())
    }

    /// Removes a table and its data; durable on return. Open scans of it go on to their end.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if that could not be written: the table goes on then, though it may be gone
    /// after a restart unless a later commit succeeds.
    pub fn drop_table(&self, table: TableId) -> Result<()> {
        let master = self.engine.observers.master();
        let descriptor = Arc::clone(&self.engine.table(table)?.descriptor());
        if let Some(master) = &master {
            master.pre_drop_table(&descriptor)?;
        }
        self.drop_unobserved(table)?;
        if let Some(master) = master {
            master.post_drop_table(&descriptor);
        }
        Ok(())
    }

    fn drop_unobserved(&self, table: TableId) -> Result<()> {
        let _defining = self.engine.defining.lock();
        let dropped = self.engine.table(table)?;
        self.begin_closing(&dropped);
        self.engine.drop_from_manifest(table)?;
        self.change_tables(|tables| {
            tables.remove(&table);
        });
        for region in dropped.regions().all() {
            self.engine.reads.feed.remove(region.id());
            region.drop_data();
            self.engine.schedule.forget(region.id());
            self.engine.pressure.add(region.forget_bytes());
        }
        self.engine.pressure.relieve();
        self.end_closing(&dropped);
        Ok(())
    }

    /// Replaces the rules of a table's families and its other settings. Its regions stay, so split
    /// points are not looked at. Families can be added behind the present ones.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if a present family is missing or named otherwise. After an
    /// [`Error::Io`] the change may be there, for some regions or after a restart; it can be made
    /// again.
    pub fn alter_table(&self, mut descriptor: TableDescriptor) -> Result<()> {
        let Some(master) = self.engine.observers.master() else {
            return self.alter_unobserved(descriptor);
        };
        let before = Arc::clone(&self.engine.table(descriptor.id)?.descriptor());
        master.pre_alter_table(&before, &mut descriptor)?;
        descriptor.id = before.id;
        self.alter_unobserved(descriptor)?;
        master.post_alter_table(&before, &self.engine.table(before.id)?.descriptor());
        Ok(())
    }

    fn alter_unobserved(&self, mut descriptor: TableDescriptor) -> Result<()> {
        let _defining = self.engine.defining.lock();
        let table = self.engine.table(descriptor.id)?;
        descriptor.split_points.clone_from(&table.descriptor().split_points);
        check_descriptor(&descriptor)?;
        let mut after = descriptor.families.iter();
        for family in &table.descriptor().families {
            if after.next().is_none_or(|kept| kept.name != family.name) {
                return Err(Error::InvalidRequest(format!(
                    "column family \"{}\" cannot be removed, renamed or moved",
                    family.name
                )));
            }
        }
        let edit = ManifestEdit::AlterTable { descriptor: descriptor.clone() };
        self.engine.append_edit(&edit)?;
        for region in table.regions().all() {
            region.alter(&descriptor, &*self.engine)?;
            self.engine.schedule.want(region);
        }
        let splits_otherwise = table.descriptor().split != descriptor.split;
        table.set_descriptor(Arc::new(descriptor));
        if splits_otherwise {
            table.regions().all().iter().for_each(|region| self.engine.splits.want(region.id()));
        }
        self.set_replicas(&table)
    }

    /// Splits the region that holds a row, which becomes the first row of the right one of the two;
    /// without a row, the given region about its middle. Statements that run go on.
    ///
    /// # Errors
    ///
    /// Nothing has changed then: [`Error::InvalidRequest`] if a region begins at the row already,
    /// or if the region has no two rows, [`Error::NoSuchTable`], [`Error::Corrupt`] if it lacks a
    /// file, [`Error::Io`].
    pub fn split_region(&self, table: TableId, point: SplitPoint) -> Result<Reshaped> {
        let _defining = self.engine.defining.lock();
        let table = self.engine.table(table)?;
        let row = match point {
            SplitPoint::At(row) => row,
            SplitPoint::Middle(region) => reshape::middle_of(&self.engine, &table, region)?,
        };
        reshape::split(&self.engine, &table, &row)
    }

    /// Merges regions, which are neighbours, into one. Statements that run go on.
    ///
    /// Files of which a split has left the regions a part are written anew first.
    ///
    /// # Errors
    ///
    /// Nothing has changed then: [`Error::InvalidRequest`] if they are no neighbours,
    /// [`Error::NoSuchTable`], [`Error::Corrupt`] if one lacks a file, [`Error::Io`].
    pub fn merge_regions(&self, table: TableId, regions: &[RegionId]) -> Result<Reshaped> {
        self.rewrite_parts(&*self.engine.table(table)?, regions)?;
        let _defining = self.engine.defining.lock();
        let table = self.engine.table(table)?;
        reshape::merge(&self.engine, &table, regions)
    }

    /// Has the files of regions written anew of which a split has left them a part.
    fn rewrite_parts(&self, table: &Table, regions: &[RegionId]) -> Result<()> {
        loop {
            let map = Arc::clone(&table.regions());
            let with_parts = |region: &&Arc<Region>| region.has_parts();
            let named = regions.iter().filter_map(|id| map.by_id(*id));
            let waiting: Vec<Arc<Region>> = named.filter(with_parts).cloned().collect();
            if waiting.is_empty() {
                return Ok(());
            }
            self.compact_regions(&waiting, Request::Minor, &AtomicBool::new(false))?;
        }
    }

    /// Returns the descriptors of all tables.
    pub fn tables(&self) -> Vec<Arc<TableDescriptor>> {
        let tables = self.engine.tables.load();
        let mut descriptors: Vec<Arc<TableDescriptor>> =
            tables.values().map(|table| Arc::clone(&table.descriptor())).collect();
        descriptors.sort_by_key(|descriptor| descriptor.id);
        descriptors
    }

    /// Returns the system that it runs on: clock and files.
    pub fn env(&self) -> Arc<dyn Env> {
        Arc::clone(&self.engine.options().env)
    }

    /// Returns the data directory. What others keep in it they keep in directories of their own.
    pub fn directory(&self) -> &Path {
        self.engine.regions_directory.parent().unwrap_or(Path::new(""))
    }

    /// Returns what its transactions share.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Begins a transaction.
    pub fn begin(self: &Arc<Store>, options: TransactionOptions) -> Transaction {
        Transaction::begin(Arc::clone(&self.engine), self.clone(), options)
    }

    /// Returns the transactions that a READ ONLY DEFERRABLE one waits for.
    pub fn safe_snapshot_blockers(&self, transaction: u64) -> Vec<u64> {
        self.engine.serializable.safe_snapshot_blockers(transaction)
    }

    /// Makes a transaction that was prepared before a restart of its bytes, with its locks.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if the bytes are none; [`Error::NoSuchTable`];
    /// [`Error::LockNotAvailable`] if somebody else has one of its locks.
    pub fn recover_prepared(self: &Arc<Store>, bytes: &[u8]) -> Result<PreparedTransaction> {
        PreparedTransaction::recover(&self.engine, self.clone(), bytes)
    }

    /// Returns when every commit made so far is visible to new snapshots.
    ///
    /// # Errors
    ///
    /// [`Error::LogFailed`] if the log could not be written.
    pub fn wait_for_commits(&self) -> Result<()> {
        let last = self.engine.clock().sequence;
        self.engine.wait_applied(last);
        if last <= self.engine.visible() {
            return Ok(());
        }
        let mut ticket = Some(self.engine.wal.wait_for(last));
        let mut result = Ok(());
        self.engine.options().blocking.run(&mut || {
            if let Some(ticket) = ticket.take() {
                result = ticket.wait();
            }
        });
        result
    }

    /// Runs what waits for something outside of the store: the thread's turn goes to others
    /// meanwhile, and a server moves its other clients to another thread.
    pub fn wait_aside(&self, wait: &mut dyn FnMut()) {
        self.engine.options().blocking.run(wait);
    }

    /// Returns the time by the store's clock: microseconds since 1970-01-01 UTC.
    pub fn now_micros(&self) -> i64 {
        self.engine.options().env.now_micros()
    }

    /// Returns the regions of a table in row order.
    pub fn regions(&self, table: TableId) -> Result<Vec<RegionStatus>> {
        let table = self.engine.table(table)?;
        let feed = &self.engine.reads.feed;
        Ok(table.regions().all().iter().map(|region| region.status(feed)).collect())
    }

    /// Returns about how many rows a table has: from the counts that store files and memstores
    /// keep, without reading any. Rows written several times since the last compaction count
    /// several times.
    pub fn row_estimate(&self, table: TableId) -> Result<RowEstimate> {
        let table = self.engine.table(table)?;
        let regions = table.regions();
        let mut all = RowEstimate::default();
        for view in regions.all().iter().filter_map(|region| region.view(0)) {
            let RowEstimate { rows, columnar } = view.row_estimate();
            all.rows += rows;
            all.columnar += columnar;
        }
        Ok(all)
    }

    /// Returns the bytes of a table: of its store files and memstores.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`].
    pub fn table_bytes(&self, table: TableId) -> Result<u64> {
        let regions = self.engine.table(table)?.regions();
        let bytes = regions
            .all()
            .iter()
            .map(|region| region.compaction_figures().file_bytes + region.memstore_bytes());
        Ok(bytes.sum())
    }

    /// Returns the time from which on all states of a table are whole. What was dropped before,
    /// by VERSIONS, TTL or deletes, was visible until then at the latest; `Timestamp(i64::MIN)` if
    /// nothing was dropped.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`].
    pub fn history_begin(&self, table: TableId) -> Result<Timestamp> {
        let regions = self.engine.table(table)?.regions();
        let begins = regions.all().iter().map(|region| region.history_begin());
        Ok(begins.max().unwrap_or(Timestamp(NO_BEGIN)))
    }

    /// Returns the figures of the store.
    pub fn status(&self) -> StoreStatus {
        let log = self.engine.wal.status();
        StoreStatus {
            memstore_bytes: self.engine.pressure.bytes(),
            memstore_limit_bytes: self.engine.pressure.soft_limit_bytes(),
            transaction_bytes: self.engine.pressure.transaction_bytes()
                + self.engine.serializable.held_bytes(),
            read_ahead_bytes: self.engine.read_ahead.used() as u64,
            log_bytes: log.byte_count,
            log_failed: log.failed.is_some(),
            log_failures_mended: log.new_segments,
            row_locks: self.engine.locks.held_count(),
            memory_stalls: self.engine.pressure.stalls(),
            file_stalls: self.engine.pressure.file_stalls(),
            running_compactions: self.engine.schedule.running().len(),
            queued_compactions: self.engine.schedule.queued_count(),
            failed_compactions: self.engine.schedule.failures(),
            visible: self.engine.visible(),
            damaged_regions: {
                let regions = self.engine.regions();
                regions.iter().filter(|region| region.check_whole().is_err()).count()
            },
            snapshots: self.snapshots().len(),
        }
    }

    /// Returns the figures of the block cache. What reads of a table found in it is in the figures
    /// of its regions.
    pub fn cache(&self) -> CacheStatus {
        self.engine.context.cache.status()
    }

    /// Gives memory back that the store can do without for a while: chunks that wait for the next
    /// memstore, blocks of the cache, and, by flushing them earlier, memstores. `wanted`: bytes
    /// beyond those that it has given before; `None`: memory is free again, and the store takes
    /// back what it has given, some at each call. Returns whether there is anything left to take
    /// back.
    pub fn relieve_memory(&self, wanted: Option<u64>) -> bool {
        let (cache, pressure) = (&self.engine.context.cache, &self.engine.pressure);
        let (lent, capacity) = (cache.lent_bytes(), cache.status().capacity_bytes);
        pressure.set_short(wanted.is_some());
        match wanted {
            Some(bytes) => {
                let before = memory::total_bytes() as u64;
                release_spare();
                let released = before.saturating_sub(memory::total_bytes() as u64);
                cache.lend(lent.saturating_add(bytes.saturating_sub(released)));
            }
            None => cache.lend(lent.saturating_sub((capacity / CACHE_REFILLS).max(1))),
        }
        cache.lent_bytes() > 0
    }

    /// Replaces the quota of a table, which it may share with others. It is not kept on disk.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`], [`Error::ShutDown`].
    pub fn set_quota(&self, table: TableId, quota: Option<Arc<Quota>>) -> Result<()> {
        self.engine.table(table)?.set_quota(quota);
        Ok(())
    }

    /// Returns the figures of the queues of statements.
    pub fn admission(&self) -> AdmissionStatus {
        self.engine.admission.status()
    }

    /// Returns how many statements work at a time.
    pub fn admission_options(&self) -> AdmissionOptions {
        self.engine.options().admission
    }

    /// Returns how much is borne with coprocessors.
    pub fn coprocessor_limits(&self) -> &CoprocessorLimits {
        &self.engine.options().coprocessors
    }

    /// Returns the open snapshots, oldest first: who keeps old versions from being forgotten.
    pub fn snapshots(&self) -> Vec<SnapshotStatus> {
        self.engine.reads.snapshots.status()
    }

    /// Returns the endpoint calls that run, oldest first.
    pub fn endpoint_calls(&self) -> Vec<EndpointCallStatus> {
        self.engine.endpoint_calls.status()
    }

    /// Flushes the memstores of a table to store files.
    pub fn flush(&self, table: TableId) -> Result<()> {
        self.flush_until(table, &AtomicBool::new(false))
    }

    /// Flushes the memstores of a table to store files, one region after the other while nobody
    /// sets `cancelled`.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`]; the regions before are flushed then.
    pub fn flush_until(&self, table: TableId, cancelled: &AtomicBool) -> Result<()> {
        self.flush_regions(table, cancelled)?;
        for region in self.engine.table(table)?.regions().all() {
            self.engine.schedule.want(region);
        }
        Ok(())
    }

    /// Flushes the memstores of a table and returns what was done; asks for no compaction.
    pub fn flush_table(&self, table: TableId) -> Result<Upkeep> {
        self.flush_regions(table, &AtomicBool::new(false))
    }

    fn flush_regions(&self, table: TableId, cancelled: &AtomicBool) -> Result<Upkeep> {
        let master = self.engine.observers.master();
        if let Some(master) = &master {
            master.pre_flush_table(table)?;
        }
        let mut done = Upkeep::default();
        for region in self.engine.table(table)?.regions().all() {
            if cancelled.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            done += region.flush(&*self.engine)?;
            self.engine.pressure.relieve();
        }
        self.engine.release_log()?;
        if let Some(master) = master {
            master.post_flush_table(table, &done.into());
        }
        Ok(done)
    }

    /// Flushes the memstores of all tables: the next start has no log to replay.
    pub fn flush_all(&self) -> Result<()> {
        for table in self.tables() {
            match self.flush_table(table.id) {
                // Dropped meanwhile.
                Err(Error::NoSuchTable(_)) => {}
                done => drop(done?),
            }
        }
        Ok(())
    }

    /// Compacts the store files of a table: all of a store's files into one if `major`.
    pub fn compact(&self, table: TableId, major: bool) -> Result<()> {
        self.compact_table(table, major).map(|_| ())
    }

    /// Compacts the store files of a table, as soon as a compaction thread is free, and returns
    /// what was done.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`], [`Error::ShutDown`], and what made a compaction fail.
    pub fn compact_table(&self, table: TableId, major: bool) -> Result<Upkeep> {
        self.compact_until(table, major, &AtomicBool::new(false))
    }

    /// As [`Store::compact_table`], while nobody sets `cancelled`.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`], too: what was not done by then is not done.
    pub fn compact_until(
        &self,
        table: TableId,
        major: bool,
        cancelled: &AtomicBool,
    ) -> Result<Upkeep> {
        let request = if major { Request::Major } else { Request::Minor };
        let table = self.engine.table(table)?;
        let kind = if major { RewriteKind::Major } else { RewriteKind::Minor };
        let master = self.engine.observers.master();
        if let Some(master) = &master {
            master.pre_compact_table(table.id(), kind)?;
        }
        let done = self.compact_regions(table.regions().all(), request, cancelled)?;
        if let Some(master) = master {
            master.post_compact_table(table.id(), kind, &done.into());
        }
        Ok(done)
    }

    fn compact_regions(
        &self,
        regions: &[Arc<Region>],
        request: Request,
        cancelled: &AtomicBool,
    ) -> Result<Upkeep> {
        let mut answer = Some(self.engine.schedule.order(regions, request));
        let mut result = Ok(Upkeep::default());
        self.engine.options().blocking.run(&mut || {
            if let Some(answer) = answer.take() {
                result = answer.wait(cancelled);
            }
        });
        result
    }

    /// Returns the compactions that run now.
    pub fn compactions(&self) -> Vec<CompactionStatus> {
        self.engine.schedule.running()
    }

    /// Returns the figures of flushes and compactions, of one table or of all.
    pub fn compaction_figures(&self, table: Option<TableId>) -> Result<CompactionFigures> {
        let regions = match table {
            Some(table) => self.engine.table(table)?.regions().all().to_vec(),
            None => self.engine.regions(),
        };
        let mut figures = CompactionFigures::default();
        regions.iter().for_each(|region| figures += region.compaction_figures());
        Ok(figures)
    }

    /// Makes a copy of the store in `directory`, which must not exist, while the store is used.
    /// Store files are linked, not copied, where the system can. The copy holds all commits up to
    /// one sequence and none above; it is whole once it has its name, and can be opened as a store.
    ///
    /// What is in memory is flushed for it. Changes of tables wait for that; commits wait only for
    /// the memstores to be frozen.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if the directory exists, [`Error::Io`], [`Error::ShutDown`]. What
    /// was written by then has `.tmp` behind its name and is removed by the next call for the same
    /// name.
    pub fn checkpoint(&self, directory: &Path) -> Result<Checkpoint> {
        let Some(master) = self.engine.observers.master() else {
            return checkpoint::write(&self.engine, directory);
        };
        master.pre_checkpoint(directory)?;
        let written = checkpoint::write(&self.engine, directory)?;
        master.post_checkpoint(directory);
        Ok(written)
    }

    /// Begins a bulk load of a table: cells in order, written straight to store files and adopted
    /// by one commit.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`], [`Error::ShutDown`].
    pub fn bulk_load(self: &Arc<Store>, table: TableId) -> Result<BulkLoad> {
        let table = self.engine.table(table)?;
        Ok(BulkLoad::begin(Arc::clone(&self.engine), self.clone(), table))
    }

    /// Begins to sort entries that are to be bulk loaded.
    pub fn sorter(&self, scratch: Arc<dyn ScratchSpace>) -> EntrySorter {
        EntrySorter::new(Arc::clone(&self.engine), scratch)
    }

    /// Stops a region from answering until the guard is dropped: calls wait, or time out where they
    /// carry a time-out. For tests of what clients see when a region stalls.
    pub fn hold_region(&self, region: RegionId) -> Result<HoldGuard> {
        let found = self.engine.region(region);
        let region = found
            .ok_or_else(|| Error::InvalidRequest(format!("there is no region {}", region.0)))?;
        Ok(HoldGuard::new(region))
    }

    /// Stops background work, syncs the log and refuses new work. Nothing acknowledged is lost
    /// without it; it makes the next start quicker.
    pub fn shut_down(&self) -> Result<()> {
        let mut background = self.background.lock();
        let tables = self.engine.tables.load();
        if self.engine.check_running().is_ok() {
            tables.values().for_each(|table| self.begin_closing(table));
        }
        self.engine.stop();
        background.stop(&self.engine);
        self.engine.wal.shut_down();
        self.engine.close_manifest();
        self.engine.reads.feed.stop();
        tables.values().for_each(|table| self.end_closing(table));
        Ok(())
    }

    fn set_replicas(&self, table: &Table) -> Result<()> {
        let count = usize::from(table.descriptor().region_replication.saturating_sub(1));
        if count > 0 {
            self.engine.reads.feed.follow_log(&self.engine.wal);
        }
        for region in table.regions().all() {
            region.set_replicas(count, &self.engine.reads.feed, &*self.engine)?;
        }
        Ok(())
    }

    fn change_tables(&self, change: impl Fn(&mut Tables)) {
        let mut tables = self.engine.tables.load().as_ref().clone();
        change(&mut tables);
        self.engine.tables.store(Arc::new(tables));
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Err(error) = self.shut_down() {
            tracing::error!(%error, "could not stop the store cleanly");
        }
    }
}

/// Returns the regions of a new table.
fn region_records(descriptor: &TableDescriptor, next_region: u64) -> Vec<RegionRecord> {
    let points = &descriptor.split_points;
    let starts = std::iter::once(&[][..]).chain(points.iter().map(Vec::as_slice));
    let stops = points.iter().cloned().map(Some).chain(std::iter::once(None));
    starts
        .zip(stops)
        .zip(next_region..)
        .map(|((start, stop), id)| RegionRecord {
            id: RegionId(id),
            start: start.to_vec(),
            stop,
            flushed: 0,
            files: vec![Vec::new(); descriptor.families.len()],
            history: vec![NO_BEGIN; descriptor.families.len()],
        })
        .collect()
}
