//! Sources of a read: memstores, files, and runs, which a scan opens lazily.
//!
//! A run behind the first row of a scan is represented by a bound, without access to its files,
//! until all cells before it were read. A scan that ends early never opens it.

use std::sync::Arc;

use crate::cell::{CellType, KeyParts, SearchKey, row_of, row_start_key};
use crate::descriptor::BloomFilter;
use crate::error::Result;
use crate::file::{Admits, Asked, Caching, ColumnSlice, FileCursor, StoreFile, WantedColumns};
use crate::memstore::{MemstoreCursor, MemstoreHandle};
use crate::read_figures::note_read;
use crate::run::{Admission, LiveFile, Run, RunCursor};
use crate::scan::merge::{Cursor, RowOrder};

/// Range of rows of a scan: from `start` to before `stop`.
#[derive(Debug, Clone, Copy)]
pub struct RowSpan<'a> {
    /// The first row.
    pub start: &'a [u8],
    /// The row to stop before; `None` for none.
    pub stop: Option<&'a [u8]>,
    /// The order of the rows.
    pub order: RowOrder,
}

impl RowSpan<'_> {
    /// Returns the only row of the span, if it is a single one.
    pub(crate) fn only_row(&self) -> Option<&[u8]> {
        let (zero, row) = self.stop?.split_last()?;
        (*zero == 0 && row == self.start).then_some(row)
    }
}

/// A source of cells.
pub(crate) enum Source<M> {
    Memstore(MemstoreCursor<M>),
    File(FileCursor),
    Run(RunCursor),
    Late(LateRun),
}

/// A run that was not opened yet.
pub(crate) struct LateRun {
    run: Arc<Run>,
    admission: Admission,
    order: RowOrder,
    /// Sorts before every cell of the run in the span.
    bound: SearchKey,
    /// In reverse: the scan begins within the run, before the row of `bound`.
    inside: bool,
}

impl<M> Source<M> {
    /// Returns a source over the cells of a run in the span, or `None` if there can be none.
    pub(crate) fn of_run(
        run: &Arc<Run>,
        span: &RowSpan<'_>,
        admission: Admission,
    ) -> Option<Source<M>> {
        let (first, last) = (&run.files().first()?.file, &run.files().last()?.file);
        let (first, last) = (&first.properties().first_row[..], &last.properties().last_row[..]);
        let refused = |live: &LiveFile| !admission.admits(live.file.properties());
        if run.misses(span.start, span.stop) {
            return None;
        }
        if run.files().iter().all(refused) {
            note_read(|figures| figures.files_of_other_times += run.files().len() as u64);
            return None;
        }
        let (row, inside) = match (span.order, span.stop) {
            (RowOrder::Forward, _) => (first.max(span.start), false),
            (RowOrder::Reverse, Some(stop)) if stop <= last => (stop, true),
            (RowOrder::Reverse, _) => (last, false),
        };
        let (run, order, bound) = (run.clone(), span.order, row_start_key(row));
        Some(Source::Late(LateRun { run, admission, order, bound, inside }))
    }

    /// As [`FileCursor::take_columns`].
    pub(crate) fn take_columns(
        &mut self,
        wanted: &WantedColumns<'_>,
    ) -> Result<Option<ColumnSlice>> {
        match self {
            Source::File(cursor) => cursor.take_columns(wanted),
            Source::Run(cursor) => cursor.take_columns(wanted),
            Source::Memstore(_) | Source::Late(_) => Ok(None),
        }
    }
}

impl LateRun {
    fn open<M>(&self) -> Result<Source<M>> {
        let (row, keep) = (row_of(&self.bound), Caching::Keep);
        let stop = self.inside.then_some(row);
        let [only] = self.run.files() else {
            let run = self.run.clone();
            return Ok(Source::Run(match self.order {
                RowOrder::Forward => RunCursor::forward(run, row, self.admission, keep)?,
                RowOrder::Reverse => RunCursor::reverse(run, stop, self.admission, keep)?,
            }));
        };
        let file = only.file.clone();
        Ok(Source::File(match self.order {
            RowOrder::Forward => FileCursor::forward(file, row, keep)?,
            RowOrder::Reverse => FileCursor::reverse(file, stop, keep)?,
        }))
    }
}

/// Forwards a call to the cursor inside. A merge opens its sources before it moves them.
macro_rules! moved {
    ($source:expr, $cursor:ident => $call:expr) => {
        match $source {
            Source::Memstore($cursor) => $call,
            Source::File($cursor) => $call,
            Source::Run($cursor) => $call,
            Source::Late(_) => Ok(()),
        }
    };
}

impl<M: MemstoreHandle> Cursor for Source<M> {
    fn key(&self) -> Option<&[u8]> {
        match self {
            Source::Memstore(cursor) => cursor.key(),
            Source::File(cursor) => cursor.key(),
            Source::Run(cursor) => cursor.key(),
            Source::Late(late) => Some(&late.bound),
        }
    }

    fn value(&self) -> &[u8] {
        match self {
            Source::Memstore(cursor) => cursor.value(),
            Source::File(cursor) => cursor.value(),
            Source::Run(cursor) => cursor.value(),
            Source::Late(_) => &[],
        }
    }

    fn advance(&mut self) -> Result<()> {
        moved!(self, cursor => cursor.advance())
    }

    fn walk(&mut self, show: &mut impl FnMut(KeyParts<'_>, &[u8]) -> bool) -> Result<()> {
        moved!(self, cursor => cursor.walk(show))
    }

    fn skip_column(&mut self) -> Result<()> {
        moved!(self, cursor => cursor.skip_column())
    }

    fn seek_column(&mut self, qualifier: &[u8]) -> Result<()> {
        moved!(self, cursor => cursor.seek_column(qualifier))
    }

    fn skip_row(&mut self) -> Result<()> {
        moved!(self, cursor => cursor.skip_row())
    }

    fn seek_row(&mut self, row: &[u8]) -> Result<()> {
        moved!(self, cursor => cursor.seek_row(row))
    }

    fn open(&mut self) -> Result<bool> {
        match self {
            Source::Memstore(cursor) => cursor.open(),
            Source::File(cursor) => cursor.open(),
            Source::Run(cursor) => cursor.open(),
            Source::Late(late) => {
                *self = late.open()?;
                Ok(true)
            }
        }
    }
}

/// Returns the result of a file's filters for a read of one row, of these columns.
pub(crate) fn admits<'a>(
    file: &'a StoreFile,
    asked: &Asked<'_>,
    columns: Option<&[impl AsRef<[u8]>]>,
) -> Result<Admits<'a>> {
    let properties = file.properties();
    let Some(columns) = columns.filter(|_| properties.bloom_filter == BloomFilter::RowCol) else {
        return file.admits_row(asked);
    };
    // Family markers are not in the column filter, but mask the columns.
    let markers = [CellType::DeleteFamily, CellType::DeleteFamilyVersion];
    if markers.into_iter().any(|marker| properties.count_of(marker) > 0) {
        return file.admits_row(asked);
    }
    if let [column] = columns {
        return file.admits_column(asked, column.as_ref());
    }
    for column in columns {
        if file.admits_column(asked, column.as_ref())?.may_contain() {
            return Ok(Admits::Maybe);
        }
    }
    Ok(Admits::No)
}
