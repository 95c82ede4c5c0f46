//! Read view of one family of one region: a consistent set of memstores and files, with gets and
//! scans over it.
//!
//! A view never changes and keeps its files on disk until it is dropped. [`crate::family_store`]
//! creates views; [`crate::scan::retention`] decides which of their cells are visible.

use std::sync::Arc;

use arc_swap::Guard;
use smallvec::{Array, SmallVec};

use crate::cell::{CellBatch, CellType, KeyParts, Sequence, Timestamp, row_of};
use crate::descriptor::{DataBlockEncoding, FamilyDescriptor};
use crate::error::{Damage, Error, Result};
use crate::file::{
    Caching, ColumnSlice, FileCursor, FilterResult, HashedRow, Span, StoreFile, WantedColumns,
};
use crate::memstore::{Memstore, MemstoreCursor};
use crate::read_statistics::note_read;
use crate::run::{FileSelection, LiveFile, Run};
use crate::scan::merge::{Cursor, Merge, RowOrder};
use crate::scan::plain_rows::{BatchLimits, RowLimits, is_beyond};
use crate::scan::retention::Retention;
use crate::scan::rows::{FamilyRules, RowOutput, RowReader};
use crate::scan::{ReadSpec, TimeRange};
use crate::source::{RowSpan, ScanSource, admits};
use crate::staged::StagedFamily;

mod newest;
mod plain;

pub(crate) use newest::Newest;
pub(crate) use plain::PlainGet;

/// Estimate of the number of rows, from counts of files and memstores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowEstimate {
    /// The total.
    pub rows: u64,
    /// Rows in files of families with columnar blocks.
    pub columnar: u64,
}

/// A consistent set of memstores and files of one family.
#[derive(Clone)]
pub struct ReadView {
    pub(crate) family: Arc<FamilyDescriptor>,
    pub(crate) family_index: u8,
    pub(crate) active: Arc<Memstore>,
    /// Frozen memstores, which wait for their flush, newest first, with the highest sequence in
    /// each.
    pub(crate) frozen: Vec<(Arc<Memstore>, Sequence)>,
    /// Oldest first: for any one row a later run is newer.
    pub(crate) runs: Vec<Arc<Run>>,
    /// A missing file: no read of the family can be answered.
    pub(crate) damage: Option<Arc<Damage>>,
    /// The history is complete from this time on.
    pub(crate) history_begin: Timestamp,
}

/// Views of families, with their indexes: arc-swap guards, which avoid contention on reference
/// counts.
pub(crate) type Views = SmallVec<[(u8, Guard<Arc<ReadView>>); 1]>;

/// Files of one row, oldest first.
type FilesOfRow<'a> = SmallVec<[FileOfRow<'a>; 8]>;

/// A file that may have a row.
struct FileOfRow<'a> {
    /// Index of its run.
    run: usize,
    file: &'a Arc<StoreFile>,
    /// Result of its filter for the row.
    says: FilterResult<'a>,
}

/// Removes the files whose filters exclude the row.
fn settle<'a, A: Array<Item = FileOfRow<'a>>>(files: &mut SmallVec<A>) {
    let asked = files.len();
    files.retain(|file| file.says.may_contain());
    if files.len() < asked {
        note_read(|figures| figures.files_without_row += (asked - files.len()) as u64);
    }
}

impl ReadView {
    /// Returns a view of the same files without the memstores: the base of region replicas.
    pub fn files_only(&self) -> ReadView {
        ReadView { active: Arc::default(), frozen: Vec::new(), ..self.clone() }
    }

    /// Returns the view with `memstore` as its only memstore: what a region replica reads.
    pub fn with_memstore(&self, memstore: Arc<Memstore>) -> ReadView {
        ReadView { active: memstore, ..self.files_only() }
    }

    /// Adds the memstores and files of another region of a colocated table, whose rows are
    /// others. For scans only.
    pub(crate) fn join(&mut self, other: &ReadView) {
        let others = other.memstores().filter(|memstore| !memstore.is_empty());
        self.frozen.extend(others.map(|memstore| (Arc::clone(memstore), Sequence(0))));
        self.runs.extend(other.runs.iter().cloned());
        self.damage = self.damage.take().or_else(|| other.damage.clone());
        self.history_begin = self.history_begin.max(other.history_begin);
    }

    /// Returns the family of the view.
    pub fn family(&self) -> &Arc<FamilyDescriptor> {
        &self.family
    }

    /// Returns the memstores, newest first.
    pub(crate) fn memstores(&self) -> impl Iterator<Item = &Arc<Memstore>> {
        std::iter::once(&self.active).chain(self.frozen.iter().map(|(memstore, _)| memstore))
    }

    /// Returns the files, in no particular order.
    pub(crate) fn files(&self) -> impl Iterator<Item = &LiveFile> {
        self.runs.iter().flat_map(|run| run.files())
    }

    /// Returns whether all cells are of rows below this one.
    pub(crate) fn ends_before(&self, row: &[u8]) -> bool {
        self.memstores().all(|memstore| memstore.ends_before(row))
            && self.runs.iter().all(|run| run.misses(row, None))
    }

    /// Returns the criteria by which files may have cells for a read.
    fn admission(&self, spec: &ReadSpec) -> FileSelection {
        let live_from = match spec.raw {
            true => spec.time_range.min,
            false => {
                let rules = self.family.rules_at(spec.expires_micros());
                spec.time_range.min.max(rules.dead_below())
            }
        };
        let seen_from = Timestamp(if spec.raw { i64::MIN } else { spec.expires_micros() });
        FileSelection { snapshot: spec.snapshot, live_from, seen_from }
    }

    /// Returns the files that may have cells for a read of one row, of these columns.
    fn files_of_row(
        &self,
        row: &[u8],
        spec: &ReadSpec,
        columns: Option<&[impl AsRef<[u8]>]>,
    ) -> Result<FilesOfRow<'_>> {
        let mut files = FilesOfRow::new();
        self.ask_files(row, spec, columns, &mut files)?;
        // All filters were looked up before any result is used.
        settle(&mut files);
        Ok(files)
    }

    /// Appends the files that may have a row by their range, with their filter results.
    fn ask_files<'a, A: Array<Item = FileOfRow<'a>>>(
        &'a self,
        row: &[u8],
        spec: &ReadSpec,
        columns: Option<&[impl AsRef<[u8]>]>,
        files: &mut SmallVec<A>,
    ) -> Result<()> {
        let admission = self.admission(spec);
        let asked = HashedRow::new(row);
        for (run, of) in self.runs.iter().enumerate() {
            let Some(file) = of.file_of_row(row) else { continue };
            if admission.admits(file.properties()) {
                files.push(FileOfRow { run, file, says: admits(file, &asked, columns)? });
            } else {
                note_read(|figures| figures.files_of_other_times += 1);
            }
        }
        Ok(())
    }

    fn retention(&self, spec: &ReadSpec, staged: Option<&StagedFamily>) -> Retention {
        let retention = Retention::of_read(&self.family, *spec);
        match self.had_family_markers(staged) {
            true => retention,
            false => retention.without_family_markers(),
        }
    }

    /// Returns whether there may be a marker that masks all columns of a row.
    fn had_family_markers(&self, staged: Option<&StagedFamily>) -> bool {
        self.memstores().any(|memstore| memstore.had_family_markers())
            || staged.is_some_and(StagedFamily::had_family_markers)
            || self.runs.iter().any(|run| run.has_family_markers())
    }

    /// Returns an estimate of the number of rows, from the counts of files and memstores. A row
    /// with cells in several of them counts several times.
    pub(crate) fn row_estimate(&self) -> RowEstimate {
        let in_files: i64 = self.files().map(|live| live.file.row_balance()).sum();
        let in_files = u64::try_from(in_files).unwrap_or(0);
        let in_memory = self.memstores().map(|memstore| match memstore.had_family_markers() {
            // About half of them may be markers.
            true => memstore.cell_count() / 2,
            false => memstore.cell_count(),
        });
        let columnar = match self.family.data_block_encoding {
            DataBlockEncoding::Columnar => in_files,
            DataBlockEncoding::Rows => 0,
        };
        RowEstimate { rows: in_files + in_memory.sum::<u64>(), columnar }
    }

    /// Checks that no file is missing.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`].
    pub(crate) fn check_whole(&self) -> Result<()> {
        self.damage.as_ref().map_or(Ok(()), |damage| Err(damage.error()))
    }

    /// Raises the begin of the history to at least `begin`.
    pub(crate) fn begin_history(&mut self, begin: Timestamp) {
        self.history_begin = self.history_begin.max(begin);
    }

    /// Checks that the history includes the state that a read asks for.
    pub(crate) fn check_history(&self, range: TimeRange) -> Result<()> {
        let begin = self.history_begin;
        match range.as_of && range.max <= begin {
            true => Err(Error::BeforeHistory { begin_micros: begin.0 }),
            false => Ok(()),
        }
    }

    /// Returns whether the result of a read depends on its time.
    pub(crate) fn may_expire(&self) -> bool {
        self.family.has_ttl()
            || self.memstores().any(|memstore| memstore.had(CellType::ExpiringPut))
            || self.runs.iter().any(|run| run.has_expiring())
    }

    /// Appends the cells of one row to the output. `staged` is an open transaction's own cells of
    /// this family, in cell order, if it has any.
    pub fn get(
        &self,
        row: &[u8],
        rules: FamilyRules<'_>,
        staged: Option<&StagedFamily>,
        output: &mut RowOutput<'_>,
    ) -> Result<()> {
        self.check_history(rules.spec.time_range)?;
        let mut sources: SmallVec<[ScanSource<&Memstore>; 1]> = SmallVec::new();
        let memstores = self.memstores().map(|memstore| &**memstore);
        let own = staged.map(|staged| &**staged.memstore());
        for memstore in own.into_iter().chain(memstores) {
            let cursor = MemstoreCursor::over_row(memstore, row);
            if cursor.key().is_some() {
                sources.push(ScanSource::Memstore(cursor));
            }
        }
        for file in staged.into_iter().flat_map(|staged| staged.files_of_row(row)) {
            let cursor = FileCursor::at_row(Arc::clone(file?), row, None)?;
            if cursor.key().is_some_and(|key| row_of(key) == row) {
                sources.push(ScanSource::File(cursor));
            }
        }
        for of in self.files_of_row(row, &rules.spec, rules.columns.as_deref())? {
            let cursor = FileCursor::at_row(of.file.clone(), row, rules.sections)?;
            if cursor.key().is_some_and(|key| row_of(key) == row) {
                sources.push(ScanSource::File(cursor));
            }
        }
        if sources.is_empty() {
            return Ok(());
        }
        let merge = Merge::new(sources, RowOrder::Forward)?;
        let retention = self.retention(&rules.spec, staged);
        let mut reader = RowReader::new(merge, retention, self.family_index, rules);
        reader.start_row(None);
        reader.read_row(row, output).map(|_| ())
    }

    /// Returns the highest committed sequence of any cell of the row, if there is one: shows if
    /// the row has changed since a snapshot. Correct for snapshots that compactions still
    /// respect.
    pub fn newest_sequence(&self, row: &[u8]) -> Result<Option<Sequence>> {
        self.check_whole()?;
        // Newest first: the first source that has the row decides.
        for memstore in self.memstores() {
            if let Some(sequence) = memstore.newest_sequence(row) {
                return Ok(Some(sequence));
            }
        }
        for file in self.runs.iter().rev().filter_map(|run| run.file_of_row(row)) {
            if !file.may_contain_row(row)? {
                continue;
            }
            let mut cursor = FileCursor::forward(&**file, row, Caching::Keep)?;
            let mut newest = None;
            while let Some(parts) = cursor.key().and_then(KeyParts::decode) {
                if parts.row != row {
                    break;
                }
                newest = newest.max(Some(parts.sequence));
                cursor.advance()?;
            }
            if newest.is_some() {
                return Ok(newest);
            }
        }
        Ok(None)
    }

    /// Returns a scanner over a span of rows.
    pub fn scanner(
        self: &Arc<ReadView>,
        span: &RowSpan<'_>,
        rules: FamilyRules<'_>,
        staged: Option<StagedFamily>,
    ) -> Result<FamilyScanner> {
        self.check_whole()?;
        self.check_history(rules.spec.time_range)?;
        let retention = self.retention(&rules.spec, staged.as_ref());
        let mut sources: SmallVec<[ScanSource<Arc<Memstore>>; 1]> = SmallVec::new();
        let own = staged.as_ref().map(StagedFamily::memstore);
        for memstore in own.into_iter().chain(self.memstores()).cloned() {
            if memstore.is_empty() {
                continue;
            }
            sources.push(ScanSource::Memstore(match span.order {
                RowOrder::Forward => MemstoreCursor::forward(memstore, span.start),
                RowOrder::Reverse => MemstoreCursor::reverse(memstore, span.stop),
            }));
        }
        for run in staged.iter().flat_map(|staged| staged.runs()) {
            sources.extend(ScanSource::of_run(run, span, FileSelection::ALL));
        }
        let admission = self.admission(&rules.spec);
        for run in &self.runs {
            if let Some(row) = span.only_row()
                && let Some(file) = run.file_of_row(row)
                && !admits(file, &HashedRow::new(row), rules.columns.as_deref())?.may_contain()
            {
                note_read(|figures| figures.files_without_row += 1);
                continue;
            }
            sources.extend(ScanSource::of_run(run, span, admission));
        }
        let merge = Merge::new(sources, span.order)?;
        Ok(FamilyScanner {
            reader: RowReader::new(merge, retention, self.family_index, rules.into_owned()),
            end: match span.order {
                RowOrder::Forward => span.stop.map(<[u8]>::to_vec),
                RowOrder::Reverse => (!span.start.is_empty()).then(|| span.start.to_vec()),
            },
            order: span.order,
            view: self.clone(),
        })
    }
}

/// Scanner over the rows of one family.
pub struct FamilyScanner {
    reader: RowReader<'static, ScanSource<Arc<Memstore>>>,
    /// Forwards, the row to stop before; in reverse, the last row. `None`: the table's end.
    end: Option<Vec<u8>>,
    order: RowOrder,
    /// Keeps the files on disk.
    view: Arc<ReadView>,
}

impl FamilyScanner {
    /// Returns the key of the next row that has a cell, visible or not; `None` at the end.
    pub fn next_row(&mut self) -> Result<Option<&[u8]>> {
        let Some(row) = self.reader.next_row()? else { return Ok(None) };
        Ok((!is_beyond(row, self.end.as_deref(), self.order)).then_some(row))
    }

    /// As [`RowReader::read_plain_rows`], up to the end of the scanner.
    pub(crate) fn read_plain_rows(
        &mut self,
        full: BatchLimits,
        batch: &mut CellBatch,
    ) -> Result<u64> {
        let limits = RowLimits { full, end: self.end.as_deref(), order: self.order };
        self.reader.read_plain_rows(&limits, batch)
    }

    /// Returns whether rows may be returned as columns.
    pub(crate) fn may_have_columns(&self) -> bool {
        self.order == RowOrder::Forward
            && self.view.family.data_block_encoding == DataBlockEncoding::Columnar
    }

    /// Takes the next rows as columns of a block, at most `row_limit`, if they are the only cells
    /// of their rows and all visible; otherwise the caller must read rows. Forward only.
    pub fn take_columns(&mut self, row_limit: usize) -> Result<Option<ColumnSlice>> {
        if !self.may_have_columns() {
            return Ok(None);
        }
        let stop = self.end.as_deref();
        self.reader.take_rows(|source, rival, retention| {
            let stop = match (rival, stop) {
                (Some(rival), Some(stop)) => Some(rival.min(stop)),
                (rival, stop) => rival.or(stop),
            };
            let wanted = WantedColumns {
                stop,
                row_limit,
                sees_all: &|span: &Span| {
                    retention.sees_all((span.min_timestamp, span.max_timestamp), span.max_sequence)
                },
            };
            source.take_columns(&wanted)
        })
    }

    /// Returns the reader of the rows.
    pub(crate) fn reader(&mut self) -> &mut RowReader<'static, ScanSource<Arc<Memstore>>> {
        &mut self.reader
    }
}
