//! Copy of a table to an empty one with another number of salt buckets, while the table is read
//! and written.
//!
//! ```text
//!   pass 1   snapshot S1: the cells up to S1            --> the oldest run of each new region
//!   pass 2   flush, snapshot S2: those above S1, to S2  --> the next run
//!   …        until little is left
//!   last     the caller has stopped the writers: the remaining cells
//! ```
//!
//! A cell keeps its family, qualifier, timestamp, sequence, type and value; only the salt byte in
//! front of its row changes. So every snapshot and every time of the history reads the same rows
//! in both tables.
//!
//! The rows of a bucket ascend also without their salt byte. The buckets are merged by that order,
//! so each new bucket receives its rows in ascending order, and nothing is sorted. If memory does
//! not suffice for an open file in each bucket, groups of old buckets are merged, and the rows of
//! groups of new buckets written, one pair of groups after the other.
//!
//! # Invariants
//!
//! 1. Each cell of the table is copied once: a pass copies the sequences from its predecessor's
//!    snapshot, exclusive, to its own.
//! 2. The snapshot of a pass is open until the next pass has its views. So no flush and no
//!    compaction drops a cell above it, and no marker is lost whose cells were copied.
//! 3. Later passes write later runs, as flushes do.
//! 4. The regions of the new table do not change meanwhile.
//!
//! [`TableCopy::advance`] checks 2 after the views were taken, and fails if the snapshot was closed
//! because of its age.
//!
//! # Out of scope
//!
//! The exchange of the tables, and the removal of the new one after a failure: the catalog.

use std::any::Any;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::SmallVec;

use crate::cell::{KeyParts, ROW_BYTES_MAX, Sequence, Timestamp, row_of};
use crate::descriptor::{FileId, RowRange, TableId};
use crate::endpoint_calls::{EndpointCallStatus, RunningCall};
use crate::engine::Engine;
use crate::env::check_space;
use crate::error::{Error, Result};
use crate::file::{Caching, FileWriter, PendingFile};
use crate::manifest::{FamilyChange, ManifestEdit, NO_BEGIN};
use crate::memory;
use crate::memstore::{Memstore, MemstoreCursor};
use crate::read_view::ReadView;
use crate::region::{Region, RegionMap};
use crate::run::{FileSelection, Run, RunCursor};
use crate::scan::merge::{Cursor, Merge, RowOrder};
use crate::snapshot::{Snapshot, SnapshotPurpose};
use crate::source::ScanSource;
use crate::table::Table;

/// Size at which a file is closed once its row is complete.
const FILE_BYTES: u64 = 256 << 20;
/// Number of rows between two checks for cancellation and free disk space.
const CHECK_ROWS: u64 = 1 << 12;
/// Bytes of memory of an open file, in blocks.
const FILE_BLOCKS: usize = 4;
/// Number of files that are read and written at a time even if memory is short.
const FILES_MIN: usize = 8;
/// Number of files that are synced concurrently.
const SYNCS_MAX: usize = 16;

/// Change of the number of salt buckets of a table.
#[derive(Debug, Clone, Copy)]
pub struct SaltChange {
    /// The present number; 0: rows have no salt byte.
    pub from: u16,
    /// The new number.
    pub to: u16,
    /// Returns the salt byte of an unsalted row, for a number of buckets above 0.
    pub bucket: fn(&[u8], u16) -> u8,
}

/// Copy of a table; see the module.
pub struct TableCopy {
    engine: Arc<Engine>,
    /// Keeps the store from stopping.
    _store: Arc<dyn Any + Send + Sync>,
    from: Arc<Table>,
    to: Arc<Table>,
    /// The regions of the new table: one for each bucket.
    regions: Arc<RegionMap>,
    salt: SaltChange,
    /// The snapshot of the last pass.
    last: Option<Snapshot>,
    call: RunningCall,
}

impl Drop for TableCopy {
    fn drop(&mut self) {
        self.to.end_load();
    }
}

impl TableCopy {
    /// Begins a copy from `from` to `to`, which is empty and has one region for each bucket. The
    /// progress is that of an endpoint call of `transaction`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] of a full disk if it has no space for a copy; [`Error::NoSuchTable`].
    pub(crate) fn begin(
        engine: Arc<Engine>,
        store: Arc<dyn Any + Send + Sync>,
        (from, to): (TableId, TableId),
        salt: SaltChange,
        transaction: u64,
    ) -> Result<TableCopy> {
        let (from, to) = (engine.table(from)?, engine.table(to)?);
        let sources = Arc::clone(&from.regions());
        let bytes: u64 = sources.all().iter().map(|region| bytes_of(region)).sum();
        check_space(&*engine.options().env, &engine.regions_directory, bytes)?;
        let call = engine.endpoint_calls.begin(EndpointCallStatus {
            call: 0,
            table: from.id(),
            endpoint: "salt".to_owned(),
            transaction,
            started_micros: engine.options().env.now_micros(),
            rows: 0,
            pages: 0,
            regions_done: 0,
            regions: sources.all().len() as u64,
        });
        let regions = to.begin_load();
        let copy = TableCopy { engine, _store: store, from, to, regions, salt, last: None, call };
        assert_eq!(
            copy.regions.all().len(),
            usize::from(salt.to.max(1)),
            "the new table has a region for each bucket"
        );
        Ok(copy)
    }

    /// Copies the cells that are not copied yet and visible to new snapshots. Except for the
    /// first and the last pass, the caller flushes the table before it.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`], [`Error::SnapshotTooOld`], [`Error::Corrupt`], [`Error::Io`]; the
    /// new table is incomplete then.
    pub fn advance(&mut self, cancelled: &AtomicBool) -> Result<()> {
        let snapshot = self.engine.open_snapshot(SnapshotPurpose::Statement, 0);
        let map = Arc::clone(&self.from.regions());
        map.all().iter().try_for_each(|region| region.check_whole())?;
        let family_count = self.to.descriptor().families.len();
        let views: Vec<Vec<Arc<ReadView>>> = (0..family_count)
            .map(|family| map.all().iter().filter_map(|region| region.view(family)).collect())
            .collect();
        if let Some(last) = &self.last {
            last.check()?;
        }
        let range = CopiedSequences {
            above: self.last.as_ref().map_or(Sequence(0), Snapshot::sequence),
            through: snapshot.sequence(),
        };
        let mut written = WrittenRuns::new();
        for (family, views) in views.iter().enumerate() {
            let descriptor = self.to.descriptor();
            if descriptor.families[family].is_dropped() {
                continue;
            }
            let block_bytes = descriptor.families[family].block_bytes;
            let sources = groups(usize::from(self.salt.from.max(1)), block_bytes);
            for source in sources {
                for group in groups(self.regions.all().len(), block_bytes) {
                    let mut target = FamilyTarget::new(self, (family as u8, group), cancelled);
                    let streams = source.clone().map(|bucket| {
                        let bucket = (self.salt.from > 0).then_some(bucket as u16);
                        BucketStream::new(bucket, map.all(), views, range)
                    });
                    copy_streams(streams.collect(), &mut target)?;
                    for (region, files) in target.finish()?.into_iter().enumerate() {
                        if !files.is_empty() {
                            written.entry((region, family as u8)).or_default().push(files);
                        }
                    }
                }
            }
        }
        let begins: Vec<Timestamp> = views
            .iter()
            .map(|views| views.iter().map(|view| view.history_begin).max())
            .map(|begin| begin.unwrap_or(Timestamp(NO_BEGIN)))
            .collect();
        self.adopt(written, &begins, range.through)?;
        self.call.progress().add_page();
        self.last = Some(snapshot);
        Ok(())
    }

    /// Returns the bytes in memory and in files that may have cells which are not copied yet.
    pub fn pending_bytes(&self) -> u64 {
        let above = self.last.as_ref().map_or(Sequence(0), Snapshot::sequence);
        let mut bytes = 0;
        for region in self.from.regions().all() {
            bytes += region.memstore_bytes();
            let views = (0..region.family_count()).filter_map(|family| region.view(family));
            for view in views {
                let runs = view.runs.iter().filter(|run| run.max_sequence() > above);
                bytes += runs.map(|run| run.byte_count()).sum::<u64>();
            }
        }
        bytes
    }

    /// Flushes the table, so that the next pass reads few cells a second time.
    ///
    /// # Errors
    ///
    /// Errors of the flush.
    pub fn flush(&self) -> Result<()> {
        let map = Arc::clone(&self.from.regions());
        map.all().iter().try_for_each(|region| region.flush(&*self.engine).map(drop))
    }

    /// Ends the copy after the exchange of the tables: regions of the new one may be compacted and
    /// split.
    pub fn end(self) {
        for region in self.regions.all() {
            self.engine.schedule.schedule_policy(region);
            self.engine.splits.want(region.id());
        }
    }

    /// Adds the files of a pass to the new regions, and raises the begin of their history.
    fn adopt(
        &self,
        mut written: WrittenRuns,
        begins: &[Timestamp],
        through: Sequence,
    ) -> Result<()> {
        let mut edits = Vec::new();
        let mut adopted: Vec<Vec<(u8, Vec<Arc<Run>>)>> = Vec::new();
        for (index, region) in self.regions.all().iter().enumerate() {
            let mut families = Vec::new();
            for (begin, family) in begins.iter().zip(0u8..) {
                let runs = written.remove(&(index, family)).unwrap_or_default();
                let open = |files: Vec<(FileId, PathBuf)>| {
                    let number = files.first().map_or(0, |(id, _)| id.0);
                    Ok(Arc::new(Run::new(0, number, region.open_written(family, &files)?)))
                };
                let runs = runs.into_iter().map(open).collect::<Result<Vec<_>>>()?;
                if !runs.is_empty() || begin.0 != NO_BEGIN {
                    families.push((family, runs));
                }
            }
            let change = |(family, runs): &(u8, Vec<Arc<Run>>)| FamilyChange {
                family: *family,
                removed: Vec::new(),
                added: runs.iter().flat_map(|run| run.records()).collect(),
                history: Some(begins[usize::from(*family)].0).filter(|begin| *begin != NO_BEGIN),
            };
            if !families.is_empty() {
                edits.push(ManifestEdit::Region {
                    table: self.to.id(),
                    region: region.id(),
                    changes: families.iter().map(change).collect(),
                    flushed: Some(through.0),
                });
            }
            adopted.push(families);
        }
        debug_assert!(written.is_empty(), "files of regions that do not exist");
        if edits.is_empty() {
            return Ok(());
        }
        self.engine.append_edits(&edits)?;
        for (region, families) in self.regions.all().iter().zip(adopted) {
            if !families.is_empty() {
                let families = families.into_iter();
                let families =
                    families.map(|(family, runs)| (family, runs, begins[usize::from(family)]));
                region.adopt_written(families, through, &*self.engine);
            }
        }
        Ok(())
    }
}

/// The files of a pass by region and family: a run for each group of the old buckets, whose rows
/// are disjoint.
type WrittenRuns = BTreeMap<(usize, u8), Vec<Vec<(FileId, PathBuf)>>>;

/// Divides buckets into groups, each so small that its open files fit the free memory.
fn groups(count: usize, block_bytes: u32) -> Vec<Range<usize>> {
    let file_bytes = (block_bytes as usize).saturating_mul(FILE_BLOCKS).max(1);
    let size = (memory::free_bytes() / 4 / file_bytes).max(FILES_MIN);
    (0..count).step_by(size).map(|first| first..count.min(first.saturating_add(size))).collect()
}

/// Copies streams, merged by row.
fn copy_streams(mut streams: Vec<BucketStream>, target: &mut FamilyTarget<'_>) -> Result<()> {
    let mut heap = BinaryHeap::with_capacity(streams.len());
    for (index, stream) in streams.iter_mut().enumerate() {
        if let Some(row) = stream.row()? {
            heap.push(Reverse((row.to_vec(), index)));
        }
    }
    while let Some(Reverse((mut row, index))) = heap.pop() {
        let rival = heap.peek().map(|Reverse((row, _))| row.as_slice());
        if rival == Some(&row) {
            return Err(Error::InvalidRequest("a row is in two salt buckets".to_owned()));
        }
        streams[index].pass_rows(rival, target)?;
        if let Some(next) = streams[index].row()? {
            row.clear();
            row.extend_from_slice(next);
            heap.push(Reverse((row, index)));
        }
    }
    Ok(())
}

/// Returns the bytes of a region's files and memstores.
fn bytes_of(region: &Region) -> u64 {
    region.compaction_figures().file_bytes + region.memstore_bytes()
}

/// The sequences that a pass copies.
#[derive(Debug, Clone, Copy)]
struct CopiedSequences {
    above: Sequence,
    through: Sequence,
}

impl CopiedSequences {
    fn has(self, sequence: Sequence) -> bool {
        self.above < sequence && sequence <= self.through
    }
}

/// The cells of one family in one bucket, over its regions.
struct BucketStream {
    /// Bytes of the salt.
    salt_bytes: usize,
    range: CopiedSequences,
    /// The views that follow, each with the rows to read.
    views: VecDeque<(Arc<ReadView>, RowRange)>,
    cells: Option<Merge<ScanSource<Arc<Memstore>>>>,
    /// The row before which `cells` ends.
    stop: Option<Vec<u8>>,
}

impl BucketStream {
    /// Returns the stream of a bucket; `None`: of all rows of a table without salt.
    fn new(
        bucket: Option<u16>,
        regions: &[Arc<Region>],
        views: &[Arc<ReadView>],
        range: CopiedSequences,
    ) -> BucketStream {
        let start = bucket.map_or(Vec::new(), |bucket| vec![bucket as u8]);
        let stop = bucket.and_then(|bucket| Some(vec![(bucket as u8).checked_add(1)?]));
        let mut clipped = VecDeque::new();
        for (region, view) in regions.iter().zip(views) {
            let first = region.start().max(&start[..]).to_vec();
            let end = match (region.stop(), stop.as_deref()) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
            if end.is_none_or(|end| first.as_slice() < end) {
                let rows = RowRange { start: first, stop: end.map(<[u8]>::to_vec) };
                clipped.push_back((Arc::clone(view), rows));
            }
        }
        let salt_bytes = usize::from(bucket.is_some());
        BucketStream { salt_bytes, range, views: clipped, cells: None, stop: None }
    }

    /// Returns the row of the next cell, without its salt; `None` at the end.
    fn row(&mut self) -> Result<Option<&[u8]>> {
        loop {
            let stop = self.stop.as_deref();
            let next = self.cells.as_ref().and_then(Cursor::key).map(row_of);
            if next.is_some_and(|row| stop.is_none_or(|stop| row < stop)) {
                break;
            }
            let Some((view, rows)) = self.views.pop_front() else { return Ok(None) };
            self.cells = Some(cells_of(&view, &rows, self.range.above)?);
            self.stop = rows.stop;
        }
        let row = self.cells.as_ref().and_then(Cursor::key).map(row_of);
        Ok(row.map(|row| row.get(self.salt_bytes..).unwrap_or_default()))
    }

    /// Passes the cells of rows before `rival`, both without salt, to the target.
    fn pass_rows(&mut self, rival: Option<&[u8]>, target: &mut FamilyTarget<'_>) -> Result<()> {
        let Some(cells) = &mut self.cells else { return Ok(()) };
        let (stop, range, salt_bytes) = (self.stop.as_deref(), self.range, self.salt_bytes);
        let mut outcome = Ok(());
        cells.walk(&mut |parts, value| {
            let row = parts.row.get(salt_bytes..).unwrap_or_default();
            if stop.is_some_and(|stop| parts.row >= stop) || rival.is_some_and(|rival| row >= rival)
            {
                return false;
            }
            if range.has(parts.sequence) {
                outcome = target.add(&KeyParts { row, ..parts }, value);
            }
            outcome.is_ok()
        })?;
        outcome
    }
}

/// Returns the cells of some rows of a view: of memstores and of the runs with sequences above
/// `above`.
pub(crate) fn cells_of(
    view: &ReadView,
    rows: &RowRange,
    above: Sequence,
) -> Result<Merge<ScanSource<Arc<Memstore>>>> {
    let (start, stop) = (rows.start.as_slice(), rows.stop.as_deref());
    let mut sources: SmallVec<[ScanSource<Arc<Memstore>>; 1]> = SmallVec::new();
    for memstore in view.memstores().filter(|memstore| !memstore.is_empty()) {
        let cursor = MemstoreCursor::forward(Arc::clone(memstore), start);
        sources.push(ScanSource::Memstore(cursor));
    }
    for run in view.runs.iter().filter(|run| run.max_sequence() > above) {
        if !run.misses(start, stop) {
            let (run, bypass) = (Arc::clone(run), Caching::Bypass);
            let cursor = RunCursor::forward(run, start, FileSelection::ALL, bypass)?;
            sources.push(ScanSource::Run(cursor));
        }
    }
    Merge::new(sources, RowOrder::Forward)
}

/// The files of one family that a pass writes, by region.
struct FamilyTarget<'a> {
    copy: &'a TableCopy,
    family: u8,
    /// The regions whose rows are written; others are skipped.
    group: Range<usize>,
    cancelled: &'a AtomicBool,
    regions: Vec<RegionTarget>,
    /// The present row without salt, and in its new form.
    row: Vec<u8>,
    new_row: Vec<u8>,
    /// Its region.
    region: usize,
    key: Vec<u8>,
    /// Rows read, and those of the group among them.
    row_count: u64,
    copied_count: u64,
}

/// The files of a region.
#[derive(Default)]
struct RegionTarget {
    writer: Option<FileWriter>,
    files: Vec<(FileId, PathBuf)>,
}

impl<'a> FamilyTarget<'a> {
    fn new(
        copy: &'a TableCopy,
        (family, group): (u8, Range<usize>),
        cancelled: &'a AtomicBool,
    ) -> FamilyTarget<'a> {
        let mut regions = Vec::new();
        regions.resize_with(copy.regions.all().len(), RegionTarget::default);
        FamilyTarget {
            copy,
            family,
            group,
            cancelled,
            regions,
            row: Vec::new(),
            new_row: Vec::new(),
            region: 0,
            key: Vec::new(),
            row_count: 0,
            copied_count: 0,
        }
    }

    /// Adds a cell, whose row is unsalted. Rows ascend.
    fn add(&mut self, parts: &KeyParts<'_>, value: &[u8]) -> Result<()> {
        if self.new_row.is_empty() || parts.row != self.row {
            self.begin_row(parts.row)?;
        }
        if !self.group.contains(&self.region) {
            return Ok(());
        }
        self.key.clear();
        KeyParts { row: &self.new_row, ..*parts }.encode(&mut self.key);
        let target = &mut self.regions[self.region];
        let writer = match &mut target.writer {
            Some(writer) => writer,
            None => {
                let region = &self.copy.regions.all()[self.region];
                let (id, path, writer) = region.begin_file(self.family)?;
                target.files.push((id, path));
                target.writer.insert(writer)
            }
        };
        writer.add(&self.key, value)
    }

    fn begin_row(&mut self, row: &[u8]) -> Result<()> {
        debug_assert!(self.new_row.is_empty() || self.row.as_slice() < row, "rows ascend");
        let salt = self.copy.salt;
        let mut region = 0;
        self.row_count += 1;
        if self.row_count.is_multiple_of(CHECK_ROWS) {
            self.report();
            if self.cancelled.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            check_space(&*self.copy.engine.options().env, &self.copy.engine.regions_directory, 0)?;
        }
        self.row.clear();
        self.row.extend_from_slice(row);
        self.new_row.clear();
        if salt.to > 0 {
            let bucket = (salt.bucket)(row, salt.to);
            self.new_row.push(bucket);
            region = usize::from(bucket);
        }
        self.new_row.extend_from_slice(row);
        if self.new_row.len() > ROW_BYTES_MAX {
            return Err(Error::InvalidRequest(format!(
                "a row key of {ROW_BYTES_MAX} bytes has no room for a salt byte"
            )));
        }
        self.region = region;
        self.copied_count += u64::from(self.group.contains(&region));
        let target = &mut self.regions[region];
        if let Some(full) = target.writer.take_if(|writer| writer.byte_count() >= FILE_BYTES) {
            full.finish()?;
        }
        Ok(())
    }

    /// Adds the rows to the progress; those of the first family, which are all.
    fn report(&mut self) {
        let rows = std::mem::take(&mut self.copied_count);
        if self.family == 0 {
            self.copy.call.progress().add_rows(rows);
        }
    }

    /// Closes the files, and returns them by region.
    fn finish(mut self) -> Result<Vec<Vec<(FileId, PathBuf)>>> {
        self.report();
        let writers: Vec<FileWriter> =
            self.regions.iter_mut().filter_map(|target| target.writer.take()).collect();
        let mut pending: VecDeque<PendingFile> = VecDeque::new();
        for writer in writers {
            if pending.len() >= SYNCS_MAX
                && let Some(first) = pending.pop_front()
            {
                first.wait()?;
            }
            pending.push_back(writer.finish_on_thread());
        }
        pending.into_iter().try_for_each(PendingFile::wait)?;
        Ok(self.regions.into_iter().map(|target| target.files).collect())
    }
}
