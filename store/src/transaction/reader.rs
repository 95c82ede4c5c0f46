//! What a statement sees of one table, for scans that are opened later, or by other threads.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use smallvec::SmallVec;

use crate::admission::{Admission, StatementWork, Turn, worked};
use crate::cell::{CellBatch, Sequence};
use crate::descriptor::TableId;
use crate::engine::Engine;
use crate::error::Result;
use crate::family_store::ReadSpec;
use crate::mutation::Consistency;
use crate::observer::{Hooks, RegionChain};
use crate::quota::{Access, Charged, charge};
use crate::read_ahead::{Bounds, Producer, Shared, Take};
use crate::read_path::{Caller, GETS_AT_ONCE, ReadPath, RequiredFamilies, Source, views_of};
use crate::read_view::Views;
use crate::region::{Region, RegionMap};
use crate::scan::{Get, Scan};
use crate::scanner::{ScanRules, Scanner};
use crate::serializable::ReadTracker;
use crate::snapshot::Snapshot;
use crate::staged::StagedFamilies;
use crate::table::Table;
use crate::transaction::parts::{RowRange, cut};
use crate::transaction::{Savepoint, Transaction, show_scan};

/// Flags that end a read.
type StopRefs<'a> = SmallVec<[&'a AtomicBool; 2]>;

/// Opens scans of one table, and gets its rows, which all see what the statement saw that the
/// reader was made in: one snapshot, and what the transaction had staged before. Keeps the snapshot
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
    /// Rows that the statement has read in its turns.
    work: Arc<StatementWork>,
    /// What its reading is charged to.
    charged: Charged,
    /// What the transaction reads, at SERIALIZABLE.
    tracker: Option<Arc<ReadTracker>>,
}

/// A region that gets are answered from.
struct OpenRegion<'a> {
    region: &'a Arc<Region>,
    source: Source,
    views: Views,
    /// Those that the gets want.
    families: Option<&'a [u8]>,
}

/// What a statement sees. Keeps its snapshot open.
#[derive(Clone)]
pub struct StatementView {
    snapshot: Arc<Snapshot>,
    spec: ReadSpec,
}

impl StatementView {
    /// Returns the place before what the transaction has staged since the statement began.
    pub fn place(&self) -> Savepoint {
        Savepoint(self.spec.staged_through.0 & !Sequence::STAGED)
    }

    /// Returns the newest commit that it sees.
    pub(super) fn sequence(&self) -> Sequence {
        self.spec.snapshot
    }

    /// Checks that its snapshot was open all the time.
    pub(super) fn check(&self) -> Result<()> {
        self.snapshot.check()
    }
}

/// How a transaction may read regions side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parallelism {
    /// Region threads, which all statements share.
    pub threads: usize,
    /// Rows that a statement is to read by itself first.
    pub after_rows: u64,
    /// Bytes of files that one thread takes at a time.
    pub piece_bytes: u64,
}

/// Parts of a statement's work that region threads do ahead of it; see
/// [`read_ahead`](crate::read_ahead). Dropping it ends the work: what runs sees its flag and reads
/// no more, nothing else is begun.
pub struct ReadAhead<P: Producer + 'static> {
    parts: Arc<Shared<P>>,
    engine: Arc<Engine>,
}

impl TableReader {
    /// Returns a reader whose scans also end when `stopped` is set.
    pub fn until(mut self, stopped: &Arc<AtomicBool>) -> TableReader {
        self.cancelled.push(Arc::clone(stopped));
        self
    }

    /// Begins a turn, to read a piece of what the statement reads: see [`crate::admission`].
    pub fn turn(&self) -> Turn {
        self.admission.turn(&self.work, self.cancelled.clone())
    }

    /// Opens a scan over all regions of its range, in row order.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`](crate::Error::InvalidRequest) if it asks for what there is not;
    /// what observers refuse.
    pub fn scan(&self, mut scan: Scan) -> Result<Scanner> {
        let observers = self.show(&mut scan)?;
        self.open(scan, observers)
    }

    /// Appends those of the rows that exist to `out`, in the order of `gets`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`](crate::Error::InvalidRequest) if a get asks for what there is not;
    /// what observers refuse.
    pub fn multi_get(&self, gets: &[Get], out: &mut CellBatch) -> Result<()> {
        self.multi_get_some(gets, usize::MAX, out).map(drop)
    }

    /// As [`TableReader::multi_get`], until about so many bytes were read; returns how many of the
    /// gets were made, at least one if there are any.
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

    /// Reads rows, each with its observers around it.
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

    /// Reads rows without their observers. Those of one region that follow each other are read from
    /// the same views of it.
    fn read_rows(&self, gets: &[Get], bytes_max: usize, out: &mut CellBatch) -> Result<usize> {
        let cancelled: StopRefs<'_> = self.cancelled.iter().map(|flag| &**flag).collect();
        let caller = Caller { consistency: self.consistency, cancelled: &cancelled };
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
                    let snapshot = self.spec.snapshot;
                    let source = self.path.enter(region, self.table.id(), snapshot, &caller)?;
                    let views = views_of(region, &source, required.with(families).as_deref())?;
                    open.insert(OpenRegion { region, source, views, families })
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

    /// Reads a few rows of one region.
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
            gets.iter().map(|get| (get, self.spec_of(get))).collect();
        let begun = ReadPath::begin((at.region, &at.source), &at.views, &asked, staged)?;
        for ((get, spec), begun) in asked.iter().zip(begun) {
            let asked = (*get, spec, begun);
            let found = self.path.get((at.region, &at.source), &at.views, asked, staged, out)?;
            if found {
                required.keep_last(out);
            }
            worked(1)?;
        }
        Ok(())
    }

    /// Returns what a get sees.
    fn spec_of(&self, get: &Get) -> ReadSpec {
        let (time_range, max_versions) = (get.time_range, get.max_versions);
        ReadSpec { time_range, max_versions, raw: false, ..self.spec }
    }

    /// Reads a row without its observers.
    fn read_row(&self, get: &Get, out: &mut CellBatch) -> Result<bool> {
        let spec = self.spec_of(get);
        if let Some(tracker) = &self.tracker {
            tracker.note_row(self.table.id(), &get.row);
        }
        let cancelled: StopRefs<'_> = self.cancelled.iter().map(|flag| &**flag).collect();
        let caller = Caller { consistency: self.consistency, cancelled: &cancelled };
        let staged = Some(&self.staged);
        let found = get_in(&self.path, (&self.table, &caller), (get, &spec), staged, out)?;
        worked(1)?;
        Ok(found)
    }

    /// Shows a scan to the observers of the table, who may change it. Returns them if they are to
    /// see its rows, too.
    pub(super) fn show(&self, scan: &mut Scan) -> Result<Option<Arc<RegionChain>>> {
        show_scan(&self.table, scan)
    }

    /// Opens a scan that these observers were shown.
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

    /// Returns the regions of the table now.
    pub(super) fn regions(&self) -> Arc<RegionMap> {
        Arc::clone(&self.table.regions())
    }

    /// Returns the region that holds a row now.
    pub(super) fn region_of(&self, row: &[u8]) -> Arc<Region> {
        Arc::clone(self.table.regions().of_row(row))
    }

    /// Returns the ranges (half-open, ascending, disjoint) in parts that can be read side by side:
    /// by the regions in which they lie now, large regions in several. A hint for sharing work: a
    /// scan of a part is right whatever becomes of the regions. One part if observers of the table
    /// see scans: what they see as one stays one.
    pub fn cut(&self, ranges: &[RowRange], parallelism: Parallelism) -> Vec<Vec<RowRange>> {
        if self.table.observers().chain_for(Hooks::SCAN).is_some() {
            return vec![ranges.to_vec()];
        }
        let cut = cut(ranges, &self.table.regions(), Some(parallelism.piece_bytes));
        cut.parts.into_iter().map(|part| part.ranges).collect()
    }
}

/// Reads a row of a table for somebody.
pub(super) fn get_in(
    path: &ReadPath,
    (table, caller): (&Table, &Caller<'_>),
    (get, spec): (&Get, &ReadSpec),
    staged: Option<&StagedFamilies>,
    out: &mut CellBatch,
) -> Result<bool> {
    let map = table.regions();
    let region = map.of_row(&get.row);
    let source = path.enter(region, table.id(), spec.snapshot, caller)?;
    let required = RequiredFamilies(table.required());
    let wanted = required.with(get.families.as_deref());
    let views = views_of(region, &source, wanted.as_deref())?;
    let begun = ReadPath::begin_one((region, &source), &views, (get, spec), staged)?;
    let found = path.get((region, &source), &views, (get, spec, begun), staged, out)?;
    Ok(found && required.keep_last(out))
}

impl Transaction {
    /// Returns what the present statement sees, for readers that are made later, when perhaps
    /// another statement has begun.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`](crate::Error::Cancelled) or
    /// [`Error::LogFailed`](crate::Error::LogFailed) if there could be no snapshot.
    pub fn view(&self) -> Result<StatementView> {
        let mut statement = self.statement.lock();
        let snapshot = match &statement.snapshot {
            Some(snapshot) => Arc::clone(snapshot),
            None => self.take_snapshot(&mut statement)?,
        };
        let spec = statement.spec(snapshot.sequence());
        Ok(StatementView { snapshot, spec })
    }

    /// Goes on with a statement, after others within it: what it sees is what it saw.
    pub fn resume_statement(&self, view: &StatementView) {
        let mut statement = self.statement.lock();
        statement.staged_through = view.spec.staged_through;
        statement.now_micros = view.spec.now_micros;
        statement.snapshot = Some(Arc::clone(&view.snapshot));
    }

    /// Returns a reader of a table that sees what the present statement sees.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`](crate::Error::NoSuchTable);
    /// [`Error::QuotaExceeded`](crate::Error::QuotaExceeded).
    pub fn reader(&self, table: TableId) -> Result<TableReader> {
        self.reader_of(&self.view()?, table)
    }

    /// Returns a reader of a table that sees what a statement of the transaction saw.
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

    /// Returns how regions may be read side by side; `None` if they may not: there are no threads
    /// for it, or a replica may answer, and rows are to be a prefix of the history all the same.
    pub fn parallelism(&self) -> Option<Parallelism> {
        let options = self.engine.options();
        let (threads, after_rows) = (options.region_threads, options.parallel_after_rows);
        let piece_bytes = options.parallel_piece_bytes;
        let allowed = threads > 1 && self.consistency() == Consistency::Strong;
        allowed.then_some(Parallelism { threads, after_rows, piece_bytes })
    }

    /// Has region threads work on these parts from now on, ahead of the caller, who takes what they
    /// make. The producers are to end when `stopped` is set.
    pub fn read_ahead<P: Producer + 'static>(
        &self,
        parts: impl IntoIterator<Item = P>,
        bounds: Bounds,
        stopped: &Arc<AtomicBool>,
    ) -> ReadAhead<P> {
        let gauge = Arc::clone(&self.engine.read_ahead);
        let parts = Shared::new(parts, bounds, Arc::clone(stopped), gauge);
        if self.engine.pool().is_some() {
            parts.go_parallel();
        }
        ReadAhead { parts: Arc::new(parts), engine: Arc::clone(&self.engine) }
    }
}

impl<P: Producer + 'static> ReadAhead<P> {
    /// Returns the next item, with the part it is of; `None` if there is none any more.
    ///
    /// # Errors
    ///
    /// The first of any part; it is not to be used after that.
    pub fn next(&mut self, take: Take) -> std::result::Result<Option<(usize, P::Item)>, P::Error> {
        let pool = self.engine.pool();
        let queue = &mut |part| {
            let Some(pool) = pool else { return };
            // No more than the parts: the engine must not end on one of its own threads.
            let parts = Arc::clone(&self.parts);
            pool.spawn(move || parts.work(part));
        };
        self.parts.next(take, &*self.engine.options().blocking, queue)
    }
}

impl<P: Producer + 'static> Drop for ReadAhead<P> {
    fn drop(&mut self) {
        self.parts.stop();
    }
}
