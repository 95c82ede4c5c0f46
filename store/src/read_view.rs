//! Reads of one family of one region: a consistent set of memstores and files, gets and scans over
//! it.
//!
//! A view never changes and keeps its files on disk until it is dropped. [`crate::family_store`]
//! makes views; which cells of them are visible is decided in [`crate::scan::retention`].

use std::sync::Arc;

use smallvec::SmallVec;

use crate::cell::{CellBatch, CellRef, KeyParts, Sequence, row_of};
use crate::descriptor::{DataBlockEncoding, FamilyDescriptor};
use crate::error::Result;
use crate::file::{Caching, ColumnSlice, FileCursor, Span, WantedColumns};
use crate::memstore::{Memstore, MemstoreCursor, MemstoreHandle};
use crate::run::{Admission, LiveFile, Run, RunCursor};
use crate::scan::ReadSpec;
use crate::scan::merge::{Cursor, Merge, RowOrder};
use crate::scan::retention::{Retention, Verdict, expiry};

/// A consistent set of memstores and files of one family.
#[derive(Clone)]
pub struct ReadView {
    pub(crate) family: Arc<FamilyDescriptor>,
    pub(crate) family_index: u8,
    pub(crate) active: Arc<Memstore>,
    /// Memstores that wait for their flush, newest first, with the highest sequence in each.
    pub(crate) frozen: Vec<(Arc<Memstore>, Sequence)>,
    /// Oldest first: for any one row a later run is newer.
    pub(crate) runs: Vec<Arc<Run>>,
}

/// A source of cells: memory, a file, or a run of several files.
enum Source<M> {
    Memstore(MemstoreCursor<M>),
    File(FileCursor),
    Run(RunCursor),
}

impl<M: MemstoreHandle> Cursor for Source<M> {
    fn key(&self) -> Option<&[u8]> {
        match self {
            Source::Memstore(cursor) => cursor.key(),
            Source::File(cursor) => cursor.key(),
            Source::Run(cursor) => cursor.key(),
        }
    }

    fn value(&self) -> &[u8] {
        match self {
            Source::Memstore(cursor) => cursor.value(),
            Source::File(cursor) => cursor.value(),
            Source::Run(cursor) => cursor.value(),
        }
    }

    fn advance(&mut self) -> Result<()> {
        match self {
            Source::Memstore(cursor) => cursor.advance(),
            Source::File(cursor) => cursor.advance(),
            Source::Run(cursor) => cursor.advance(),
        }
    }

    fn skip_column(&mut self) -> Result<()> {
        match self {
            Source::Memstore(cursor) => cursor.skip_column(),
            Source::File(cursor) => cursor.skip_column(),
            Source::Run(cursor) => cursor.skip_column(),
        }
    }

    fn seek_column(&mut self, qualifier: &[u8]) -> Result<()> {
        match self {
            Source::Memstore(cursor) => cursor.seek_column(qualifier),
            Source::File(cursor) => cursor.seek_column(qualifier),
            Source::Run(cursor) => cursor.seek_column(qualifier),
        }
    }

    fn skip_row(&mut self) -> Result<()> {
        match self {
            Source::Memstore(cursor) => cursor.skip_row(),
            Source::File(cursor) => cursor.skip_row(),
            Source::Run(cursor) => cursor.skip_row(),
        }
    }

    fn seek_row(&mut self, row: &[u8]) -> Result<()> {
        match self {
            Source::Memstore(cursor) => cursor.seek_row(row),
            Source::File(cursor) => cursor.seek_row(row),
            Source::Run(cursor) => cursor.seek_row(row),
        }
    }

    fn open(&mut self) -> Result<bool> {
        match self {
            Source::Memstore(cursor) => cursor.open(),
            Source::File(cursor) => cursor.open(),
            Source::Run(cursor) => cursor.open(),
        }
    }
}

impl ReadView {
    /// Returns a view with other memstores over the same files: the base of region replicas.
    pub fn files_only(&self) -> ReadView {
        ReadView { active: Arc::default(), frozen: Vec::new(), ..self.clone() }
    }

    /// Returns the view with `memstore` as its only memstore: what a region replica reads.
    pub fn with_memstore(&self, memstore: Arc<Memstore>) -> ReadView {
        ReadView { active: memstore, ..self.files_only() }
    }

    /// Returns the family whose rules the view follows.
    pub fn family(&self) -> &Arc<FamilyDescriptor> {
        &self.family
    }

    /// Returns the memstores, newest first.
    pub(crate) fn memstores(&self) -> impl Iterator<Item = &Arc<Memstore>> {
        std::iter::once(&self.active).chain(self.frozen.iter().map(|(memstore, _)| memstore))
    }

    /// Returns the files, in no order that means anything.
    pub(crate) fn files(&self) -> impl Iterator<Item = &LiveFile> {
        self.runs.iter().flat_map(|run| run.files())
    }

    /// Returns which files may have something for a read.
    fn admission(&self, spec: &ReadSpec) -> Admission {
        let live_from = if spec.raw || self.family.min_versions > 0 {
            spec.time_range.min
        } else {
            spec.time_range.min.max(expiry(&self.family, spec.now_micros))
        };
        Admission { snapshot: spec.snapshot, live_from }
    }

    fn retention(&self, spec: &ReadSpec, staged: Option<&Memstore>) -> Retention {
        let retention = Retention::of_read(&self.family, *spec);
        let any_markers = self.memstores().any(|memstore| memstore.had_family_markers())
            || staged.is_some_and(Memstore::had_family_markers)
            || self.runs.iter().any(|run| run.has_family_markers());
        if any_markers { retention } else { retention.without_family_markers() }
    }

    /// Appends the visible cells of one row to `out`, whose row the caller has begun. `staged` is
    /// an open transaction's own cells of this family, in cell order, if it has any.
    /// Returns whether there were any.
    pub fn get(
        &self,
        row: &[u8],
        spec: &ReadSpec,
        staged: Option<&Memstore>,
        out: &mut CellBatch,
    ) -> Result<bool> {
        let mut sources: SmallVec<[Source<&Memstore>; 1]> = SmallVec::new();
        let memstores = self.memstores().map(|memstore| &**memstore);
        for memstore in staged.into_iter().chain(memstores) {
            let cursor = MemstoreCursor::over_row(memstore, row);
            if cursor.key().is_some() {
                sources.push(Source::Memstore(cursor));
            }
        }
        let admission = self.admission(spec);
        for file in self.runs.iter().filter_map(|run| run.file_of_row(row)) {
            if admission.admits(file.properties()) && file.may_contain_row(row)? {
                let cursor = FileCursor::forward(file.clone(), row, Caching::Keep)?;
                if cursor.key().is_some_and(|key| row_of(key) == row) {
                    sources.push(Source::File(cursor));
                }
            }
        }
        if sources.is_empty() {
            return Ok(false);
        }
        let mut merge = Merge::new(sources, RowOrder::Forward)?;
        let mut retention = self.retention(spec, staged);
        retention.start_row();
        let mut any = false;
        while let Some(parts) = merge.key().and_then(KeyParts::decode) {
            if parts.row != row {
                break;
            }
            match retention.judge(&parts) {
                Verdict::Keep => {
                    push(out, self.family_index, &parts, merge.value());
                    any = true;
                    merge.advance()?;
                }
                Verdict::Skip => merge.advance()?,
                Verdict::SkipColumn => merge.skip_column()?,
            }
        }
        Ok(any)
    }

    /// Returns the highest committed sequence of any cell of the row, if there is one: has the row
    /// changed since a snapshot? Right for snapshots that compactions still respect.
    pub fn newest_sequence(&self, row: &[u8]) -> Result<Option<Sequence>> {
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
            let mut cursor = FileCursor::forward(file.clone(), row, Caching::Keep)?;
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

    /// Returns a scanner over `start..stop`, from the end if `reverse`.
    pub fn scanner(
        self: &Arc<ReadView>,
        start: &[u8],
        stop: Option<&[u8]>,
        reverse: bool,
        spec: &ReadSpec,
        staged: Option<Arc<Memstore>>,
    ) -> Result<FamilyScanner> {
        let retention = self.retention(spec, staged.as_deref());
        let mut sources: SmallVec<[Source<Arc<Memstore>>; 1]> = SmallVec::new();
        for memstore in staged.into_iter().chain(self.memstores().cloned()) {
            if memstore.is_empty() {
                continue;
            }
            sources.push(Source::Memstore(match reverse {
                false => MemstoreCursor::forward(memstore, start),
                true => MemstoreCursor::reverse(memstore, stop),
            }));
        }
        let admission = self.admission(spec);
        for run in self.runs.iter().filter(|run| !run.misses(start, stop)) {
            sources.extend(source_of_run(run, (start, stop), reverse, admission)?);
        }
        let order = if reverse { RowOrder::Reverse } else { RowOrder::Forward };
        Ok(FamilyScanner {
            merge: Merge::new(sources, order)?,
            retention,
            family_index: self.family_index,
            order,
            start: start.to_vec(),
            stop: stop.map(<[u8]>::to_vec),
            row: Vec::new(),
            state: RowState::Outside,
            layout: None,
            is_first_open: true,
            view: self.clone(),
        })
    }
}

/// Returns a source over what a run may have for a scan, or `None` if it has nothing.
fn source_of_run<M>(
    run: &Arc<Run>,
    (start, stop): (&[u8], Option<&[u8]>),
    reverse: bool,
    admission: Admission,
) -> Result<Option<Source<M>>> {
    let keep = Caching::Keep;
    let [only] = run.files() else {
        return Ok(Some(Source::Run(match reverse {
            false => RunCursor::forward(run.clone(), start, admission, keep)?,
            true => RunCursor::reverse(run.clone(), stop, admission, keep)?,
        })));
    };
    if !admission.admits(only.file.properties()) {
        return Ok(None);
    }
    Ok(Some(Source::File(match reverse {
        false => FileCursor::forward(only.file.clone(), start, keep)?,
        true => FileCursor::reverse(only.file.clone(), stop, keep)?,
    })))
}

fn push(out: &mut CellBatch, family: u8, parts: &KeyParts<'_>, value: &[u8]) {
    out.push(CellRef {
        row: parts.row,
        family,
        qualifier: parts.qualifier,
        timestamp: parts.timestamp,
        sequence: parts.sequence,
        cell_type: parts.cell_type,
        value,
    });
}

/// Reads the visible rows of one family in order.
pub struct FamilyScanner {
    merge: Merge<Source<Arc<Memstore>>>,
    retention: Retention,
    family_index: u8,
    order: RowOrder,
    start: Vec<u8>,
    stop: Option<Vec<u8>>,
    /// The row that is being judged.
    row: Vec<u8>,
    state: RowState,
    /// The encoded layout of values, once columns were asked for.
    layout: Option<Vec<u8>>,
    /// Columns were taken, after which the merge may stand on a cell that is not open.
    is_first_open: bool,
    /// Keeps the files on disk.
    view: Arc<ReadView>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowState {
    /// The next cell begins a row.
    Outside,
    /// The next cell may go on with `row`, of which no cell is known to be visible.
    Inside,
    /// The next cell belongs to `row` and was judged visible.
    Ready,
}

impl FamilyScanner {
    /// Takes the next rows as columns of a block, at most `row_limit`, if they are the only cells of
    /// their rows and all visible; the caller reads rows if there are none such. Forward only.
    pub fn take_columns(&mut self, row_limit: usize) -> Result<Option<ColumnSlice>> {
        if self.state != RowState::Outside
            || self.order != RowOrder::Forward
            || self.view.family.data_block_encoding != DataBlockEncoding::Columnar
        {
            return Ok(None);
        }
        let layout = self.layout.get_or_insert_with(|| {
            let mut encoded = Vec::new();
            self.view.family.value_layout.encode(&mut encoded);
            encoded
        });
        let stop = match (self.merge.rival_row(), self.stop.as_deref()) {
            (Some(rival), Some(stop)) => Some(rival.min(stop)),
            (rival, stop) => rival.or(stop),
        };
        let stop: Option<SmallVec<[u8; 64]>> = stop.map(SmallVec::from_slice);
        let retention = &self.retention;
        let wanted = WantedColumns {
            layout,
            stop: stop.as_deref(),
            row_limit,
            sees_all: &|span: &Span| {
                retention.sees_all((span.min_timestamp, span.max_timestamp), span.max_sequence)
            },
        };
        let taken = self.merge.move_first(|source| match source {
            Source::Memstore(_) => Ok(None),
            Source::File(cursor) => cursor.take_columns(&wanted),
            Source::Run(cursor) => cursor.take_columns(&wanted),
        })?;
        self.is_first_open = false;
        Ok(taken.flatten())
    }

    /// Returns the key of the next row that has a visible cell, or `None` at the end.
    pub fn peek_row(&mut self) -> Result<Option<&[u8]>> {
        if !self.is_first_open {
            self.is_first_open = true;
            self.merge.open_first()?;
        }
        while self.state != RowState::Ready {
            let Some(parts) = self.merge.key().and_then(KeyParts::decode) else {
                return Ok(None);
            };
            if self.state == RowState::Outside || parts.row != &self.row[..] {
                let beyond = match self.order {
                    RowOrder::Forward => {
                        self.stop.as_ref().is_some_and(|stop| parts.row >= &stop[..])
                    }
                    RowOrder::Reverse => parts.row < &self.start[..],
                };
                if beyond {
                    return Ok(None);
                }
                self.row.clear();
                self.row.extend_from_slice(parts.row);
                self.state = RowState::Inside;
                self.retention.start_row();
            }
            match self.retention.judge(&parts) {
                Verdict::Keep => self.state = RowState::Ready,
                Verdict::Skip => self.merge.advance()?,
                Verdict::SkipColumn => self.merge.skip_column()?,
            }
        }
        Ok(Some(&self.row))
    }

    /// Appends the visible cells of the next row to `out`, whose row the caller has begun.
    pub fn read_row(&mut self, out: &mut CellBatch) -> Result<()> {
        if self.peek_row()?.is_none() {
            return Ok(());
        }
        let mut verdict = Verdict::Keep;
        while let Some(parts) = self.merge.key().and_then(KeyParts::decode) {
            if self.state == RowState::Inside {
                if parts.row != &self.row[..] {
                    break;
                }
                verdict = self.retention.judge(&parts);
            }
            self.state = RowState::Inside;
            match verdict {
                Verdict::Keep => {
                    push(out, self.family_index, &parts, self.merge.value());
                    self.merge.advance()?;
                }
                Verdict::Skip => self.merge.advance()?,
                Verdict::SkipColumn => self.merge.skip_column()?,
            }
        }
        self.state = RowState::Outside;
        Ok(())
    }

    /// Moves on so that the next row is at or after `row` (at or before it in reverse). Never moves
    /// back.
    pub fn seek(&mut self, row: &[u8]) -> Result<()> {
        let there = match self.merge.key().map(row_of) {
            None => true,
            Some(next) => match self.order {
                RowOrder::Forward => next >= row,
                RowOrder::Reverse => next <= row,
            },
        };
        if !there {
            match self.order {
                RowOrder::Forward => self.merge.seek_row(row)?,
                // Before the least row above it.
                RowOrder::Reverse => self.merge.seek_row(&[row, &[0]].concat())?,
            }
            self.state = RowState::Outside;
        }
        Ok(())
    }
}
