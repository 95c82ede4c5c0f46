//! Readers of one table with a statement's snapshot, for scans that are opened later or by other
//! threads.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use smallvec::SmallVec;

use crate::admission::{Admission, StatementTurn, StatementWork, count_rows};
use crate::cell::{CellBatch, Sequence};
use crate::descriptor::TableId;
use crate::engine::Engine;
use crate::error::Result;
use crate::family_store::ReadSpec;
use crate::mutation::Consistency;
use crate::observer::{Hooks, RegionChain};
use crate::quota::{Access, Charged, charge};
use crate::read_ahead::{Bounds, Producer, ReadAheadQueue, Take};
use crate::read_path::{
    GETS_AT_ONCE, ReadCaller, ReadPath, ReadTarget, RequiredFamilies, views_of,
};
use crate::read_view::Views;
use crate::region::{Region, RegionMap};
use crate::scan::{Get, Scan, TimeRange};
use crate::scanner::{ScanRules, Scanner};
use crate::serializable::ReadTracker;
use crate::snapshot::{Snapshot, SnapshotPurpose};
use crate::staged::StagedFamilies;
use crate::table::Table;
use crate::transaction::scan_partitions::{PartitionRange, cut};
use crate::transaction::{Savepoint, Transaction, show_scan};

/// Flags that end a read.
type StopRefs<'a> = SmallVec<[&'a AtomicBool; 2]>;

/// A reader of one table: opens scans and gets rows, all with the snapshot of the statement in
/// which it was made, and the writes that the transaction had staged before. Keeps the snapshot
/// open.
#[derive(Clone)]
pub struct TableReader {
    table: Arc<Table>,
    path: Arc<ReadPath>,
    snapshot: Arc<Snapshot>,
    spec: ReadSpec,
    staged: StagedFamilies,
    consistency: Consistency,
    cancelled: SmallVec<[Arc<AtomicBool>; 2]>,
    admission: Arc<Admission>,
    /// Execution slots and rows read of the statement.
    work: Arc<StatementWork>,
    /// Quotas that its reads are charged to.
    charged: Charged,
    /// Tracker of the transaction's reads, at SERIALIZABLE.
    tracker: Option<Arc<ReadTracker>>,
}

/// An opened region for gets.
struct OpenRegion<'a> {
    region: &'a Arc<Region>,
    source: ReadTarget,
    snapshot: Sequence,
    views: Views,
    /// Families that the gets read; `None` for all.
    families: Option<&'a [u8]>,
}

/// Snapshot and staged writes that a statement sees. Keeps its snapshot open.
#[derive(Clone)]
pub struct StatementView {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) spec: ReadSpec,
}

impl StatementView {
    /// Opens a view of what is visible now, or of the commits up to a sequence, without the writes
    /// of any transaction.
    pub(crate) fn open(engine: &Engine, at: Option<Sequence>) -> StatementView {
        let snapshot = match at {
            Some(sequence) => engine.open_snapshot_at(sequence),
            None => engine.open_snapshot(SnapshotPurpose::Statement, 0),
        };
        let spec = ReadSpec {
            snapshot: snapshot.sequence(),
            staged_through: Sequence(Sequence::STAGED),
            time_range: TimeRange::ALL,
            max_versions: 1,
            raw: false,
            now_micros: snapshot.opened_micros(),
        };
        StatementView { snapshot: Arc::new(snapshot), spec }
    }

    /// Returns the newest commit that it shows.
    pub fn commit(&self) -> Sequence {
        self.spec.snapshot
    }

    /// Returns its opening time: microseconds since 1970.
    pub fn opened_micros(&self) -> i64 {
        self.spec.now_micros
    }

    /// Returns the savepoint at the beginning of the statement.
    pub fn place(&self) -> Savepoint {
        Savepoint(self.spec.staged_through.0 & !Sequence::STAGED)
    }

    /// Fixes a TIMELINE snapshot at the newest commit that was visible when it was taken:
    /// replicas answer only once they have applied that.
    pub fn fix(&self) {
        self.sequence();
    }

    /// Returns the newest commit that is visible, which no longer changes.
    pub(super) fn sequence(&self) -> Sequence {
        self.snapshot.sequence()
    }

    /// Checks that its snapshot was open throughout.
    pub(super) fn check(&self) -> Result<()> {
        self.snapshot.check()
    }
}

/// Limits for reading regions in parallel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parallelism {
    /// Region threads, which all statements share.
    pub threads: usize,
    /// Rows that a statement reads alone first.
    pub after_rows: u64,
    /// Bytes of files per scan partition.
    pub piece_bytes: u64,
}

/// Partitions of a statement's work that region threads process ahead of it; see
/// [`read_ahead`](crate::read_ahead). Dropping it stops the work: running producers see the flag
/// and end, and no others are started.
pub struct RowReadAhead<P: Producer + 'static> {
    parts: Arc<ReadAheadQueue<P>>,
    engine: Arc<Engine>,
}

impl TableReader {
    /// Returns a reader whose scans also end when `stopped` is set.
    pub fn until(mut self, stopped: &Arc<AtomicBool>) -> TableReader {
        self.cancelled.push(Arc::clone(stopped));
        self
    }

    /// Requests an execution slot for reading: see [`crate::admission`].
    pub fn turn(&self) -> StatementTurn {
        self.admission.turn(&self.work, self.cancelled.clone())
    }

    /// Opens a scan over all regions of its range, in row order.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`](crate::Error::InvalidRequest) if it names an unknown family;
    /// errors of observers.
    pub fn scan(&self, mut scan: Scan) -> Result<Scanner> {
        let observers = self.show(&mut scan)?;
        self.open(scan, observers)
    }

    /// Appends the existing rows to `out`, in the order of `gets`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`](crate::Error::InvalidRequest) if a get names an unknown family;
    /// errors of observers.
    pub fn multi_get(&self, gets: &[Get], out: &mut CellBatch) -> Result<()> {
        self.multi_get_some(gets, usize::MAX, out).map(drop)
    }

    /// As [`TableReader::multi_get`], until about `bytes_max` bytes were read; returns the number
    /// of gets that were executed, at least one if there are any.
    ///
    /// # Errors
    ///
    /// As for [`TableReader::multi_get`].
    pub fn multi_get_some(
        &self,
        gets: &[Get],
        bytes_max: usize,
        out: &mut CellBatch,
    ) -> Result<usize> {
        let bytes_before = out.byte_count();
        let bytes_max = bytes_before.saturating_add(bytes_max);
        let observers = self.table.observers().chain_for(Hooks::GET);
        let read = match &observers {
            None => self.read_rows(gets, bytes_max, out),
            Some(chain) => self.read_watched(gets, bytes_max, chain, out),
        };
        let bytes = out.byte_count().saturating_sub(bytes_before);
        charge(&self.charged, Access::Read, bytes as u64, &*self.path.options.env);
        let count = read?;
        self.snapshot.check()?;
        Ok(count)
    }

    fn caller<'a>(&'a self, cancelled: &'a [&'a AtomicBool]) -> ReadCaller<'a> {
        ReadCaller { consistency: self.consistency, snapshot: Some(&self.snapshot), cancelled }
    }

    /// Reads rows one by one with their observers.
    fn read_watched(
        &self,
        gets: &[Get],
        bytes_max: usize,
        chain: &RegionChain,
        out: &mut CellBatch,
    ) -> Result<usize> {
        for (at, get) in gets.iter().enumerate() {
            chain.around_get(get, out, |get, row| self.read_row(get, row))?;
            if out.byte_count() >= bytes_max {
                return Ok(at + 1);
            }
        }
        Ok(gets.len())
    }

    /// Reads rows without their observers. Consecutive gets of one region are read from the same
    /// views.
    fn read_rows(&self, gets: &[Get], bytes_max: usize, out: &mut CellBatch) -> Result<usize> {
        let cancelled: StopRefs<'_> = self.cancelled.iter().map(|flag| &**flag).collect();
        let caller = self.caller(&cancelled);
        let map = self.table.regions();
        let required = RequiredFamilies(self.table.required());
        let mut open: Option<OpenRegion<'_>> = None;
        let mut rest = gets;
        while let Some(first) = rest.first() {
            let region = map.of_row(&first.row);
            let families = first.families.as_deref();
            let is_at = |get: &Get, region: &Arc<Region>| {
                Arc::ptr_eq(map.of_row(&get.row), region) && get.families.as_deref() == families
            };
            let at = match &open {
                Some(open) if open.families == families && is_at(first, open.region) => open,
                _ => {
                    let newest = self.spec.snapshot;
                    let (source, snapshot) =
                        self.path.enter(region, self.table.id(), newest, &caller)?;
                    let views = views_of(region, source, required.with(families).as_deref())?;
                    open.insert(OpenRegion { region, source, snapshot, views, families })
                }
            };
            let together = rest.iter().take(GETS_AT_ONCE);
            let count = together.take_while(|get| is_at(get, region)).count();
            let (together, others) = rest.split_at(count);
            self.read_together(at, together, &required, out)?;
            rest = others;
            if out.byte_count() >= bytes_max {
                break;
            }
        }
        Ok(gets.len() - rest.len())
    }

    /// Reads consecutive rows of one region.
    fn read_together(
        &self,
        at: &OpenRegion<'_>,
        gets: &[Get],
        required: &RequiredFamilies,
        out: &mut CellBatch,
    ) -> Result<()> {
        if let Some(tracker) = &self.tracker {
            gets.iter().for_each(|get| tracker.note_row(self.table.id(), &get.row));
        }
        let staged = Some(&self.staged);
        let asked: SmallVec<[(&Get, ReadSpec); GETS_AT_ONCE]> =
            gets.iter().map(|get| (get, self.spec_of(get, at.snapshot))).collect();
        let begun = ReadPath::begin((at.region, at.source), &at.views, &asked, staged)?;
        for ((get, spec), begun) in asked.iter().zip(begun) {
            let asked = (*get, spec, begun);
            let found = self.path.get((at.region, at.source), &at.views, asked, staged, out)?;
            if found {
                required.keep_last(out);
            }
            count_rows(1)?;
        }
        Ok(())
    }

    /// Returns the read specification of a get.
    fn spec_of(&self, get: &Get, snapshot: Sequence) -> ReadSpec {
        let (time_range, max_versions) = (get.time_range, get.max_versions);
        ReadSpec { snapshot, time_range, max_versions, raw: false, ..self.spec }
    }

    /// Reads a row without its observers.
    fn read_row(&self, get: &Get, out: &mut CellBatch) -> Result<bool> {
        let spec = self.spec_of(get, self.spec.snapshot);
        if let Some(tracker) = &self.tracker {
            tracker.note_row(self.table.id(), &get.row);
        }
        let cancelled: StopRefs<'_> = self.cancelled.iter().map(|flag| &**flag).collect();
        let caller = self.caller(&cancelled);
        let staged = Some(&self.staged);
        let found = get_in(&self.path, (&self.table, &caller), (get, &spec), staged, out)?;
        count_rows(1)?;
        Ok(found)
    }

    /// Calls the observers of the table before a scan, which they may change. Returns them if
    /// they also observe its rows.
    pub(super) fn show(&self, scan: &mut Scan) -> Result<Option<Arc<RegionChain>>> {
        show_scan(&self.table, scan)
    }

    /// Opens a scan after its observers were called.
    pub(super) fn open(&self, scan: Scan, observers: Option<Arc<RegionChain>>) -> Result<Scanner> {
        let rules = ScanRules {
            table: self.table.id(),
            path: Arc::clone(&self.path),
            snapshot: Arc::clone(&self.snapshot),
            spec: ReadSpec {
                time_range: scan.time_range,
                max_versions: scan.max_versions,
                raw: scan.raw,
                ..self.spec
            },
            staged: self.staged.clone(),
            consistency: self.consistency,
            cancelled: self.cancelled.clone(),
            charged: self.charged.clone(),
            required: RequiredFamilies(self.table.required()),
            observers,
            tracker: self.tracker.clone(),
        };
        Scanner::open(self.regions(), scan, &self.table.descriptor(), rules)
    }

    /// Returns the table.
    pub(super) fn table(&self) -> TableId {
        self.table.id()
    }

    /// Returns the current regions of the table.
    pub(super) fn regions(&self) -> Arc<RegionMap> {
        Arc::clone(&self.table.regions())
    }

    /// Cuts ranges (half-open, ascending, disjoint) into scan partitions that can be read in
    /// parallel: at the present region boundaries, with large regions in several partitions. A
    /// hint for sharing work: a scan of a partition is correct even if regions change. Returns
    /// one partition if observers of the table observe scans, because they must see one scan.
    pub fn cut(
        &self,
        ranges: &[PartitionRange],
        parallelism: Parallelism,
    ) -> Vec<Vec<PartitionRange>> {
        if self.table.observers().chain_for(Hooks::SCAN).is_some() {
            return vec![ranges.to_vec()];
        }
        let cut = cut(ranges, &self.table.regions(), Some(parallelism.piece_bytes));
        cut.parts.into_iter().map(|part| part.ranges).collect()
    }
}

/// Reads a row of a table on behalf of a caller.
pub(super) fn get_in(
    path: &ReadPath,
    (table, caller): (&Table, &ReadCaller<'_>),
    (get, spec): (&Get, &ReadSpec),
    staged: Option<&StagedFamilies>,
    out: &mut CellBatch,
) -> Result<bool> {
    let map = table.regions();
    let region = map.of_row(&get.row);
    let (source, snapshot) = path.enter(region, table.id(), spec.snapshot, caller)?;
    let spec = &ReadSpec { snapshot, ..*spec };
    let required = RequiredFamilies(table.required());
    let wanted = required.with(get.families.as_deref());
    let views = views_of(region, source, wanted.as_deref())?;
    let begun = ReadPath::begin_one((region, source), &views, (get, spec), staged)?;
    let found = path.get((region, source), &views, (get, spec, begun), staged, out)?;
    Ok(found && required.keep_last(out))
}

impl Transaction {
    /// Returns the snapshot and visibility of the present statement, for readers that are made
    /// later, possibly during another statement.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`](crate::Error::Cancelled) or
    /// [`Error::LogFailed`](crate::Error::LogFailed) if no snapshot could be taken.
    pub fn view(&self) -> Result<StatementView> {
        let mut statement = self.statement.lock();
        let snapshot = match statement.shown() {
            Some(snapshot) => Arc::clone(snapshot),
            None => self.take_snapshot(&mut statement)?,
        };
        let spec = statement.spec(snapshot.newest());
        Ok(StatementView { snapshot, spec })
    }

    /// Resumes a statement after nested ones, with its former snapshot and visibility.
    pub fn resume_statement(&self, view: &StatementView) {
        let mut statement = self.statement.lock();
        statement.staged_through = view.spec.staged_through;
        statement.now_micros = view.spec.now_micros;
        if statement.newest.is_none() {
            statement.snapshot = Some(Arc::clone(&view.snapshot));
        }
    }

    /// Returns a reader of a table with the snapshot of the present statement.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`](crate::Error::NoSuchTable);
    /// [`Error::QuotaExceeded`](crate::Error::QuotaExceeded).
    pub fn reader(&self, table: TableId) -> Result<TableReader> {
        self.reader_of(&self.view()?, table)
    }

    /// Returns a reader of a table with the snapshot of a given statement of the transaction.
    ///
    /// # Errors
    ///
    /// As for [`Transaction::reader`].
    pub fn reader_of(&self, view: &StatementView, table: TableId) -> Result<TableReader> {
        let table = self.engine.table(table)?;
        let charged = self.touch(&table, Access::Read)?;
        Ok(TableReader {
            path: Arc::clone(&self.engine.reads),
            snapshot: Arc::clone(&view.snapshot),
            spec: view.spec,
            staged: self.staged_of(table.id())?.unwrap_or_default(),
            consistency: self.consistency(),
            cancelled: SmallVec::from_iter([Arc::clone(&self.options.cancelled)]),
            admission: Arc::clone(&self.engine.admission),
            work: Arc::clone(&self.work),
            charged,
            tracker: self.tracker.clone(),
            table,
        })
    }

    /// Returns the limits for reading regions in parallel; `None` if that is not allowed: there
    /// are no region threads.
    pub fn parallelism(&self) -> Option<Parallelism> {
        let options = self.engine.options();
        let (threads, after_rows) = (options.region_threads, options.parallel_after_rows);
        let piece_bytes = options.parallel_piece_bytes;
        (threads > 1).then_some(Parallelism { threads, after_rows, piece_bytes })
    }

    /// Starts region threads on these partitions, ahead of the caller, who takes the items. The
    /// producers must end when `stopped` is set.
    pub fn read_ahead<P: Producer + 'static>(
        &self,
        parts: impl IntoIterator<Item = P>,
        bounds: Bounds,
        stopped: &Arc<AtomicBool>,
    ) -> RowReadAhead<P> {
        let gauge = Arc::clone(&self.engine.read_ahead);
        let parts = ReadAheadQueue::new(parts, bounds, Arc::clone(stopped), gauge);
        if self.engine.pool().is_some() {
            parts.go_parallel();
        }
        RowReadAhead { parts: Arc::new(parts), engine: Arc::clone(&self.engine) }
    }
}

impl<P: Producer + 'static> RowReadAhead<P> {
    /// Returns the next item, with its partition; `None` at the end.
    ///
    /// # Errors
    ///
    /// The first one of any partition; the object must not be used after that.
    pub fn next(&mut self, take: Take) -> std::result::Result<Option<(usize, P::Item)>, P::Error> {
        let pool = self.engine.pool();
        let queue = &mut |part| {
            let Some(pool) = pool else { return };
            // Only the partitions are shared: the engine must not be dropped on one of its own
            // threads.
            let parts = Arc::clone(&self.parts);
            pool.spawn(move || parts.work(part));
        };
        self.parts.next(take, &*self.engine.options().blocking, queue)
    }
}

impl<P: Producer + 'static> Drop for RowReadAhead<P> {
    fn drop(&mut self) {
        self.parts.stop();
    }
}
