//! Store: tables, their regions, the WAL, and background threads.
//!
//! ```text
//! DIR/LOCK                                held while the store is open
//! DIR/MANIFEST                            list of tables, regions and files
//! DIR/wal/                                the WAL
//! DIR/regions/<region>/<family>/<file>    store files
//! ```

pub mod change_feed;
mod replacements;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::admission::AdmissionStatus;
use crate::applied_rules;
use crate::background::Background;
use crate::bulk_load::BulkLoad;
use crate::bulk_load::table_copy::{SaltChange, TableCopy};
use crate::cell::{Sequence, Timestamp};
use crate::checkpoint;
use crate::compaction::CompactionRequest;
use crate::descriptor::colocation::Partitioning;
use crate::descriptor::{RETIRED_RULES_MAX, RegionId, TableDescriptor, TableId};
use crate::engine::{Engine, Tables};
use crate::env::{Env, check_space};
use crate::error::{Error, Result};
use crate::manifest::{ManifestEdit, NO_BEGIN, RegionRecord};
use crate::memory;
use crate::memstore::release_spare;
use crate::observer::RewriteKind;
use crate::open::{open_engine, open_table};
use crate::options::{AdmissionOptions, CoprocessorLimits, Options};
use crate::quota::Quota;
use crate::read_view::RowEstimate;
use crate::region::{Region, RewriteTotals};
use crate::region_replacement;
use crate::snapshot::Snapshot;
use crate::sorted_load::{EntrySorter, ScratchSpace};
use crate::table::{Table, check_descriptor};
use crate::transaction::{PreparedTransaction, Transaction, TransactionOptions};

/// Number of edits of the manifest from which one rewrite of it replaces as many appends.
const REWRITE_EDITS_MIN: usize = 16;

/// Number of steps in which the block cache regains the bytes that it lent while memory was
/// short.
const CACHE_REFILLS: u64 = 16;

pub use crate::cache::{CacheStatus, CacheUse};
pub use crate::checkpoint::Checkpoint;
pub use crate::endpoint_calls::EndpointCallStatus;
pub use crate::family_store::{CompactionStatistics, FamilyStatus, FileStatus};
pub use crate::region::{
    FileCheck, LoadStatistics, RegionFamilyStatus, RegionStatus, ReplicaStatus,
};
pub use crate::region_replacement::{RegionReplacement, SplitPoint};
pub use crate::replica::service_gate::HoldGuard;
pub use crate::schedule::CompactionStatus;
pub use crate::snapshot::{SnapshotPurpose, SnapshotStatus};

/// An open data directory.
pub struct Store {
    engine: Arc<Engine>,
    background: Mutex<Background>,
    /// Retains all versions that were found at the opening.
    recovered: Mutex<Option<Snapshot>>,
}

/// Statistics of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreStatus {
    /// Bytes in memstores, including those of replicas.
    pub memstore_bytes: u64,
    /// Bytes at which memstores are flushed.
    pub memstore_limit_bytes: u64,
    /// Bytes of open transactions: staged cells and row locks, if they are more than a few, and
    /// the read and write sets of SERIALIZABLE ones.
    pub transaction_bytes: u64,
    /// Bytes of rows that region threads have read ahead of statements.
    pub read_ahead_bytes: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// True if the log cannot be written at present, so that commits are rejected.
    pub log_failed: bool,
    /// Number of times that records were rewritten to a new segment after a failure.
    pub log_failures_mended: u64,
    /// Number of rows locked at present.
    pub row_locks: usize,
    /// Number of waits of commits for memory since the start.
    pub memory_stalls: u64,
    /// Number of waits of commits for compactions since the start.
    pub file_stalls: u64,
    /// Number of running compactions.
    pub running_compactions: usize,
    /// Number of stores queued for a compaction, or for a check.
    pub queued_compactions: usize,
    /// Number of failed compactions since the start; they are retried.
    pub failed_compactions: u64,
    /// The newest commit visible to new snapshots.
    pub visible: Sequence,
    /// Number of regions with a file that was missing or damaged when the store was opened; see
    /// [`RegionStatus::damage`].
    pub damaged_regions: usize,
    /// Number of open snapshots; [`Store::snapshots`] lists them.
    pub snapshots: usize,
}

impl Store {
    /// Opens a data directory, creating it if need be, and replays the log.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`], [`Error::Corrupt`], [`Error::Io`].
    pub fn open(directory: &Path, options: Options) -> Result<Arc<Store>> {
        let holds_versions = options.holds_recovered_versions;
        let engine = Arc::new(open_engine(directory, options)?);
        let recovered = holds_versions.then(|| engine.hold_all_versions());
        if engine.regions().iter().any(|region| !region.replicas().is_empty()) {
            engine.reads.feed.follow_log(&engine.wal);
        }
        let store = Store {
            background: Mutex::new(Background::start(&engine)?),
            recovered: Mutex::new(recovered),
            engine,
        };
        for region in store.engine.regions() {
            region.join_feed(&store.engine.reads.feed);
        }
        store.engine.pressure.want_flush();
        for region in store.engine.regions() {
            store.engine.schedule.schedule_policy(&region);
            if region.partitioning() == Partitioning::BaseRow {
                store.engine.splits.want(region.id());
            }
        }
        Ok(Arc::new(store))
    }

    /// Creates a table with its regions; durable on return.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if the descriptor is invalid or the id is in use.
    pub fn create_table(&self, descriptor: impl Into<Arc<TableDescriptor>>) -> Result<()> {
        let mut descriptor = descriptor.into();
        let master = self.engine.observers.master();
        if let Some(master) = &master {
            let id = descriptor.id;
            let changed = Arc::make_mut(&mut descriptor);
            master.pre_create_table(changed)?;
            changed.id = id;
        }
        self.create_unobserved(&descriptor)?;
        if let Some(master) = master {
            master.post_create_table(&descriptor);
        }
        Ok(())
    }

    fn create_unobserved(&self, descriptor: &Arc<TableDescriptor>) -> Result<()> {
        check_descriptor(descriptor)?;
        let _defining = self.engine.ddl_lock.lock();
        self.engine.check_running()?;
        if self.engine.tables.load().contains_key(&descriptor.id) {
            let id = descriptor.id.0;
            return Err(Error::InvalidRequest(format!("table {id} already exists")));
        }
        let mut manifest = self.engine.manifest.lock();
        let next_region = manifest.state().next_region;
        let base = descriptor.colocated_with.and_then(|base| self.engine.table(base).ok());
        let descriptor = match &base {
            Some(base) => &Arc::new(divided_as(descriptor, base)),
            None => descriptor,
        };
        let regions = region_records(descriptor, next_region, self.now_micros());
        manifest.note_log(self.engine.wal.synced());
        let appended = manifest.append(&ManifestEdit::PutTable {
            descriptor: Arc::clone(descriptor),
            regions: regions.clone(),
        });
        self.engine.after_append(manifest, appended)?;
        let (context, directory) = (&self.engine.context, &self.engine.regions_directory);
        let table = open_table(context, directory, Arc::clone(descriptor), &regions)?;
        let table = Arc::new(table);
        table.regions().all().iter().try_for_each(|region| region.create_directories())?;
        table.regions().all().iter().for_each(|region| region.describe(&table.descriptor()));
        self.set_replicas(&table)?;
        self.change_tables(|tables| {
            tables.insert(table.id(), Arc::clone(&table));
        });
        region_replacement::follow(&self.engine, &table);
        Ok(())
    }

    /// Removes a table and its data; durable on return. Open scans of it continue to their end.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if that could not be written: the table stays then, though it may be dropped
    /// after a restart unless a later commit succeeds.
    pub fn drop_table(&self, table: TableId) -> Result<()> {
        self.drop_together(&[table])
    }

    /// Drops tables as [`Store::drop_table`] does; many of them together, with one rewrite of the
    /// manifest.
    ///
    /// # Errors
    ///
    /// Those of [`Store::drop_table`]. Of few tables, the first ones may be dropped then.
    pub fn drop_tables(&self, tables: &[TableId]) -> Result<()> {
        edit_groups(tables).try_for_each(|tables| self.drop_together(tables))
    }

    fn drop_together(&self, tables: &[TableId]) -> Result<()> {
        let master = self.engine.observers.master();
        let descriptor = |table: &TableId| Ok(Arc::clone(&self.engine.table(*table)?.descriptor()));
        let descriptors: Vec<_> = tables.iter().map(descriptor).collect::<Result<_>>()?;
        if let Some(master) = &master {
            descriptors.iter().try_for_each(|descriptor| master.pre_drop_table(descriptor))?;
        }
        self.drop_unobserved(tables)?;
        if let Some(master) = master {
            descriptors.iter().for_each(|descriptor| master.post_drop_table(descriptor));
        }
        Ok(())
    }

    fn drop_unobserved(&self, tables: &[TableId]) -> Result<()> {
        let _defining = self.engine.ddl_lock.lock();
        let dropped = tables.iter().map(|table| self.engine.table(*table));
        let dropped: Vec<Arc<Table>> = dropped.collect::<Result<_>>()?;
        dropped.iter().for_each(|table| self.begin_closing(table));
        let edits = tables.iter().map(|&table| ManifestEdit::DropTable { table });
        self.engine.append_decisive(&edits.collect::<Vec<_>>())?;
        self.change_tables(|remaining| {
            for table in tables {
                remaining.remove(table);
            }
        });
        for region in dropped.iter().flat_map(|table| table.regions().all().to_vec()) {
            self.engine.reads.feed.remove(region.id());
            region.drop_data();
            self.engine.schedule.forget(region.id());
            self.engine.pressure.add(region.forget_bytes());
        }
        self.engine.pressure.relieve();
        dropped.iter().for_each(|table| self.end_closing(table));
        Ok(())
    }

    /// Replaces the descriptors of a table's families and its other settings. Its regions stay,
    /// so split points are ignored. Families can be added behind the present ones, and be replaced
    /// by [`FamilyDescriptor::dropped`](crate::FamilyDescriptor::dropped): their cells are gone.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if a present family is missing or renamed. After an
    /// [`Error::Io`] the change may have happened, for some regions or after a restart; it can be
    /// retried.
    pub fn alter_table(&self, descriptor: TableDescriptor) -> Result<()> {
        self.alter_tables(vec![descriptor])
    }

    /// As [`Store::alter_table`], for several tables at the same time: a table and its indexes,
    /// whose cells expire together.
    ///
    /// # Errors
    ///
    /// Those of [`Store::alter_table`].
    pub fn alter_tables(&self, mut descriptors: Vec<TableDescriptor>) -> Result<()> {
        let Some(master) = self.engine.observers.master() else {
            return self.alter_unobserved(descriptors);
        };
        let mut before = Vec::new();
        for descriptor in &mut descriptors {
            let present = Arc::clone(&self.engine.table(descriptor.id)?.descriptor());
            master.pre_alter_table(&present, descriptor)?;
            descriptor.id = present.id;
            before.push(present);
        }
        self.alter_unobserved(descriptors)?;
        for before in before {
            master.post_alter_table(&before, &self.engine.table(before.id)?.descriptor());
        }
        Ok(())
    }

    fn alter_unobserved(&self, mut descriptors: Vec<TableDescriptor>) -> Result<()> {
        let _defining = self.engine.ddl_lock.lock();
        // Flushes and compactions by the present rules drop nothing that a reader at the time of
        // the change sees, until the new rules are set everywhere.
        let change = self.engine.open_snapshot(SnapshotPurpose::Statement, 0);
        let mut tables = Vec::new();
        for descriptor in &mut descriptors {
            let table = self.engine.table(descriptor.id)?;
            take_over(&table.descriptor(), descriptor, &change)?;
            check_descriptor(descriptor)?;
            tables.push(table);
        }
        let descriptors: Vec<_> = descriptors.into_iter().map(Arc::new).collect();
        self.engine
            .append_edits(&[ManifestEdit::AlterTables { descriptors: descriptors.clone() }])?;
        tables.iter().zip(descriptors).try_for_each(|(table, new)| self.set_descriptor(table, new))
    }

    /// Applies a new descriptor, which the manifest has, to an open table.
    fn set_descriptor(&self, table: &Table, descriptor: Arc<TableDescriptor>) -> Result<()> {
        for region in table.regions().all() {
            region.alter(&descriptor, &*self.engine)?;
            self.engine.schedule.schedule_policy(region);
        }
        let splits_otherwise = table.descriptor().split != descriptor.split;
        table.set_descriptor(descriptor);
        if splits_otherwise {
            table.regions().all().iter().for_each(|region| self.engine.splits.want(region.id()));
        }
        self.set_replicas(table)
    }

    /// Returns the descriptors of all tables.
    pub fn tables(&self) -> Vec<Arc<TableDescriptor>> {
        let tables = self.engine.tables.load();
        let mut descriptors: Vec<Arc<TableDescriptor>> =
            tables.values().map(|table| Arc::clone(&table.descriptor())).collect();
        descriptors.sort_by_key(|descriptor| descriptor.id);
        descriptors
    }

    /// Returns the descriptor of a table, if it exists.
    pub fn table(&self, table: TableId) -> Option<Arc<TableDescriptor>> {
        self.engine.tables.load().get(&table).map(|table| Arc::clone(&table.descriptor()))
    }

    /// Returns the environment: clock and files.
    pub fn env(&self) -> Arc<dyn Env> {
        Arc::clone(&self.engine.options().env)
    }

    /// Returns the data directory. Other users of it must use separate subdirectories.
    pub fn directory(&self) -> &Path {
        self.engine.regions_directory.parent().unwrap_or(Path::new(""))
    }

    /// Returns the engine, which its transactions share.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns whether all versions since the opening are retained.
    pub fn retains_recovered_versions(&self) -> bool {
        self.recovered.lock().is_some()
    }

    /// Ends the retention of all versions since the opening
    /// ([`Options::holds_recovered_versions`]). Views that were opened before retain theirs.
    pub fn release_recovered_versions(&self) {
        self.recovered.lock().take();
    }

    /// Begins a transaction.
    pub fn begin(self: &Arc<Store>, options: TransactionOptions) -> Transaction {
        Transaction::begin(Arc::clone(&self.engine), self.clone(), options)
    }

    /// Returns the transactions that a READ ONLY DEFERRABLE one waits for.
    pub fn safe_snapshot_blockers(&self, transaction: u64) -> Vec<u64> {
        self.engine.serializable.safe_snapshot_blockers(transaction)
    }

    /// Re-creates a transaction that was prepared before a restart from its encoding, with its
    /// locks.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if the bytes are malformed; [`Error::NoSuchTable`];
    /// [`Error::LockNotAvailable`] if another transaction has one of its locks.
    pub fn recover_prepared(self: &Arc<Store>, bytes: &[u8]) -> Result<PreparedTransaction> {
        PreparedTransaction::recover(&self.engine, self.clone(), bytes)
    }

    /// Waits until every commit so far is visible to new snapshots.
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

    /// Runs `wait`, which waits for something outside of the store: the thread's execution slot
    /// is released meanwhile, and a server moves its other clients to another thread.
    pub fn wait_without_slot(&self, wait: &mut dyn FnMut()) {
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

    /// Returns the stores of a table: those of each family of each region, in row order.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`].
    pub fn stores(&self, table: TableId) -> Result<Vec<RegionFamilyStatus>> {
        let regions = self.engine.table(table)?.regions();
        Ok(regions.all().iter().flat_map(|region| region.stores()).collect())
    }

    /// Verifies the store files of a table, and passes each to `found`.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`], [`Error::Cancelled`].
    pub fn check_files(
        &self,
        table: TableId,
        cancelled: &AtomicBool,
        found: &mut dyn FnMut(FileCheck),
    ) -> Result<()> {
        let regions = self.engine.table(table)?.regions();
        let mut verified = BTreeSet::new();
        let mut check = |region: &Arc<Region>| region.check_files(cancelled, &mut verified, found);
        regions.all().iter().try_for_each(&mut check)
    }

    /// Returns an estimate of the rows of a table: from the counts of store files and memstores,
    /// without reading them. Rows written several times since the last compaction count several
    /// times.
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

    /// Returns the time from which on the history of a table is complete. Versions dropped by
    /// VERSIONS, TTL or deletes were visible until then at the latest; `Timestamp(i64::MIN)` if
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

    /// Returns the highest sequence visible to new snapshots: all commits up to it are durable
    /// and applied.
    pub fn visible(&self) -> Sequence {
        self.engine.visible()
    }

    /// Returns the statistics of the store; takes time in proportion to the number of regions.
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

    /// Returns the statistics of the block cache. Hits and misses of a table are in the status of
    /// its regions.
    pub fn cache(&self) -> CacheStatus {
        self.engine.context.cache.status()
    }

    /// Releases memory that the store does not need for a while: pooled chunks for the next
    /// memstore, blocks of the cache, and, by earlier flushes, memstores. `wanted`: bytes beyond
    /// those that it has released before; `None`: memory is free again, and the store regains the
    /// released bytes, some at each call. Returns whether there are any left to regain.
    pub fn release_memory(&self, wanted: Option<u64>) -> bool {
        let (cache, pressure) = (&self.engine.context.cache, &self.engine.pressure);
        let (lent, capacity) = (cache.lent_bytes(), cache.status().capacity_bytes);
        pressure.set_short(wanted.is_some());
        match wanted {
            Some(bytes) => {
                let before = memory::total_bytes() as u64;
                release_spare();
                let released = before.saturating_sub(memory::total_bytes() as u64);
                cache.set_lent_bytes(lent.saturating_add(bytes.saturating_sub(released)));
            }
            None => cache.set_lent_bytes(lent.saturating_sub((capacity / CACHE_REFILLS).max(1))),
        }
        cache.lent_bytes() > 0
    }

    /// Sets the quotas of a table, which other tables may share. They are not persistent.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`], [`Error::ShutDown`].
    pub fn set_quotas(&self, table: TableId, quotas: Vec<Arc<Quota>>) -> Result<()> {
        self.engine.table(table)?.set_quotas(quotas);
        Ok(())
    }

    /// Returns the statistics of the execution slots.
    pub fn admission(&self) -> AdmissionStatus {
        self.engine.admission.status()
    }

    /// Returns the limits of concurrent long statements.
    pub fn admission_options(&self) -> AdmissionOptions {
        self.engine.options().admission
    }

    /// Returns the limits of coprocessors.
    pub fn coprocessor_limits(&self) -> &CoprocessorLimits {
        &self.engine.options().coprocessors
    }

    /// Returns the open snapshots, oldest first, which retain old versions.
    pub fn snapshots(&self) -> Vec<SnapshotStatus> {
        self.engine.reads.snapshots.status()
    }

    /// Returns the running endpoint calls, oldest first.
    pub fn endpoint_calls(&self) -> Vec<EndpointCallStatus> {
        self.engine.endpoint_calls.status()
    }

    /// Flushes the memstores of a table to store files.
    pub fn flush(&self, table: TableId) -> Result<()> {
        self.flush_until(table, &AtomicBool::new(false))
    }

    /// Flushes the memstores of a table to store files, region by region, until `cancelled` is
    /// set.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`]; the earlier regions are flushed then.
    pub fn flush_until(&self, table: TableId, cancelled: &AtomicBool) -> Result<()> {
        let done = self.flush_regions(table, cancelled)?;
        self.engine.release_log()?;
        self.report_flush(table, &done);
        for region in self.engine.table(table)?.regions().all() {
            self.engine.schedule.schedule_policy(region);
        }
        Ok(())
    }

    /// Flushes the memstores of a table and returns the result; schedules no compaction.
    pub fn flush_table(&self, table: TableId) -> Result<RewriteTotals> {
        let done = self.flush_regions(table, &AtomicBool::new(false))?;
        self.engine.release_log()?;
        self.report_flush(table, &done);
        Ok(done)
    }

    fn flush_regions(&self, table: TableId, cancelled: &AtomicBool) -> Result<RewriteTotals> {
        if let Some(master) = self.engine.observers.master() {
            master.pre_flush_table(table)?;
        }
        let mut done = RewriteTotals::default();
        for region in self.engine.table(table)?.regions().all() {
            if cancelled.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            done += region.flush(&*self.engine)?;
            self.engine.pressure.relieve();
        }
        Ok(done)
    }

    /// Tells the observers that a table was flushed.
    fn report_flush(&self, table: TableId, done: &RewriteTotals) {
        if let Some(master) = self.engine.observers.master() {
            master.post_flush_table(table, &(*done).into());
        }
    }

    /// Flushes the memstores of all tables, so that the next opening has no log to replay.
    pub fn flush_all(&self) -> Result<()> {
        for table in self.tables() {
            match self.flush_regions(table.id, &AtomicBool::new(false)) {
                // Dropped meanwhile.
                Err(Error::NoSuchTable(_)) => {}
                done => self.report_flush(table.id, &done?),
            }
        }
        // This looks at all regions, so it is done once.
        self.engine.release_log()
    }

    /// Compacts the store files of a table: all of a store's files into one if `major`.
    pub fn compact(&self, table: TableId, major: bool) -> Result<()> {
        self.compact_table(table, major).map(|_| ())
    }

    /// Compacts the store files of a table, as soon as a compaction thread is free, and returns
    /// the result.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`], [`Error::ShutDown`], errors of a compaction.
    pub fn compact_table(&self, table: TableId, major: bool) -> Result<RewriteTotals> {
        self.compact_until(table, major, &AtomicBool::new(false))
    }

    /// As [`Store::compact_table`], until `cancelled` is set.
    ///
    /// # Errors
    ///
    /// Also [`Error::Cancelled`]: the remaining compactions are skipped.
    pub fn compact_until(
        &self,
        table: TableId,
        major: bool,
        cancelled: &AtomicBool,
    ) -> Result<RewriteTotals> {
        let request = if major { CompactionRequest::Major } else { CompactionRequest::Minor };
        let table = self.engine.table(table)?;
        let kind = if major { RewriteKind::Major } else { RewriteKind::Minor };
        let master = self.engine.observers.master();
        if let Some(master) = &master {
            master.pre_compact_table(table.id(), kind)?;
        }
        let done = self.compact_regions(table.regions().all(), request, cancelled)?;
        if major {
            let defining = self.engine.ddl_lock.lock();
            applied_rules::remove(&self.engine, table.id(), &defining)?;
        }
        if let Some(master) = master {
            master.post_compact_table(table.id(), kind, &done.into());
        }
        Ok(done)
    }

    fn compact_regions(
        &self,
        regions: &[Arc<Region>],
        request: CompactionRequest,
        cancelled: &AtomicBool,
    ) -> Result<RewriteTotals> {
        let mut answer = Some(self.engine.schedule.schedule_request(regions, request));
        let mut result = Ok(RewriteTotals::default());
        self.engine.options().blocking.run(&mut || {
            if let Some(answer) = answer.take() {
                result = answer.wait(cancelled);
            }
        });
        result
    }

    /// Returns the running compactions.
    pub fn compactions(&self) -> Vec<CompactionStatus> {
        self.engine.schedule.running()
    }

    /// Returns the statistics of flushes and compactions, of one table or of all.
    pub fn compaction_figures(&self, table: Option<TableId>) -> Result<CompactionStatistics> {
        let regions = match table {
            Some(table) => self.engine.table(table)?.regions().all().to_vec(),
            None => self.engine.regions(),
        };
        let mut figures = CompactionStatistics::default();
        regions.iter().for_each(|region| figures += region.compaction_figures());
        Ok(figures)
    }

    /// Makes a copy of the store in `directory`, which must not exist, while the store is in use.
    /// Store files are linked, not copied, if the system supports it. The copy has all commits up
    /// to one sequence and none above; it is complete once it has its name, and can be opened as
    /// a store.
    ///
    /// The memstores are flushed for it. DDL waits for that; commits wait only while the
    /// memstores are frozen.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if the directory exists, [`Error::Io`], [`Error::ShutDown`]. The
    /// incomplete copy has the suffix `.tmp` and is removed by the next call for the same name.
    pub fn checkpoint(&self, directory: &Path) -> Result<Checkpoint> {
        let Some(master) = self.engine.observers.master() else {
            return checkpoint::write(&self.engine, directory);
        };
        master.pre_checkpoint(directory)?;
        let written = checkpoint::write(&self.engine, directory)?;
        master.post_checkpoint(directory);
        Ok(written)
    }

    /// Begins a bulk load of a table: sorted cells, written directly to store files and adopted
    /// by one commit.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`], [`Error::ShutDown`].
    pub fn bulk_load(self: &Arc<Store>, table: TableId) -> Result<BulkLoad> {
        let table = self.engine.table(table)?;
        Ok(BulkLoad::begin(Arc::clone(&self.engine), self.clone(), table))
    }

    /// Begins a copy of a table to one that is empty and has a region for each new salt bucket.
    /// `transaction` is shown with its progress.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`]; [`Error::Io`] of a full disk if a copy has no space on it.
    pub fn copy_table(
        self: &Arc<Store>,
        tables: (TableId, TableId),
        salt: SaltChange,
        transaction: u64,
    ) -> Result<TableCopy> {
        TableCopy::begin(Arc::clone(&self.engine), self.clone(), tables, salt, transaction)
    }

    /// Checks that the disk has space for a copy of a table.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`]; [`Error::Io`] of a full disk.
    pub fn check_copy_space(&self, table: TableId) -> Result<()> {
        let bytes = self.table_bytes(table)?;
        check_space(&*self.engine.options().env, &self.engine.regions_directory, bytes)
    }

    /// Records that the rows of a table are now in another one, before any transaction knows that:
    /// a SERIALIZABLE one that has read the one conflicts with those that write the other.
    pub fn exchange_tables(&self, old: TableId, new: TableId) {
        self.engine.serializable.exchange(old, new);
    }

    /// Returns a sorter of entries for a bulk load.
    pub fn sorter(&self, scratch: Arc<dyn ScratchSpace>) -> EntrySorter {
        EntrySorter::new(Arc::clone(&self.engine), scratch)
    }

    /// Holds the primary of a region until the guard is dropped, at most for `limit`: calls wait,
    /// or time out if they have a timeout. For tests and demonstrations of the clients' view of a
    /// stalled region.
    pub fn hold_region(&self, region: RegionId, limit: Duration) -> Result<HoldGuard> {
        let found = self.engine.region(region);
        let region = found
            .ok_or_else(|| Error::InvalidRequest(format!("region {} does not exist", region.0)))?;
        Ok(HoldGuard::new(region, limit))
    }

    /// Lets the region replicas of all tables apply no commits until the guard is dropped, at
    /// most for `limit`. For tests and demonstrations of stale reads.
    pub fn hold_replicas(&self, limit: Duration) -> HoldGuard {
        HoldGuard::new(self.engine.reads.feed.clone(), limit)
    }

    /// Requires TIMELINE snapshots from now on to include the commits up to `sequence`: statements
    /// are planned for a catalog that was published with them.
    pub fn require_for_timeline(&self, sequence: Sequence) {
        self.engine.reads.feed.require(sequence);
    }

    /// Stops background work, syncs the log and rejects new work. It is not required for
    /// durability; it makes the next opening faster.
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

/// Returns the groups in which the manifest is changed: each item alone, or many together.
fn edit_groups<T>(items: &[T]) -> std::slice::Chunks<'_, T> {
    items.chunks(if items.len() < REWRITE_EDITS_MIN { 1 } else { items.len() })
}

/// Returns the descriptor of a colocated table with the regions of its base table.
fn divided_as(descriptor: &TableDescriptor, base: &Table) -> TableDescriptor {
    let map = base.regions();
    let starts = map.all().iter().skip(1).map(|region| region.start().to_vec());
    TableDescriptor { split_points: starts.collect(), ..descriptor.clone() }
}

/// Completes a new descriptor of a table by what the store decides: split points and retired
/// rules.
fn take_over(
    present: &TableDescriptor,
    descriptor: &mut TableDescriptor,
    change: &Snapshot,
) -> Result<()> {
    descriptor.split_points.clone_from(&present.split_points);
    descriptor.colocated_with = present.colocated_with;
    let mut after = descriptor.families.iter_mut();
    for family in &present.families {
        let after = after.next();
        if after.as_ref().is_some_and(|after| after.is_dropped()) {
            continue;
        }
        let Some(kept) = after.filter(|kept| kept.name == family.name) else {
            return Err(Error::InvalidRequest(format!(
                "column family \"{}\" cannot be removed, renamed or moved",
                family.name
            )));
        };
        kept.retired.clone_from(&family.retired);
        if kept.has_other_rule(family) {
            // The clock may have stepped back.
            let last = family.retired.last().map_or(i64::MIN, |rule| rule.until_micros);
            let until = change.opened_micros().max(last);
            kept.retired.push(family.retire(change.sequence().0, until));
        }
        if kept.retired.len() > RETIRED_RULES_MAX {
            return Err(Error::InvalidRequest(format!(
                "rules of column family \"{}\" were changed more than {RETIRED_RULES_MAX} times",
                family.name
            )));
        }
    }
    Ok(())
}

/// Returns the region records of a new table.
fn region_records(
    descriptor: &TableDescriptor,
    next_region: u64,
    now_micros: i64,
) -> Vec<RegionRecord> {
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
            created_micros: now_micros,
        })
        .collect()
}
