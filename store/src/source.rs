//! Sources of a read: memstores, files, and runs, which a scan opens lazily.
//!
//! A run behind the first row of a scan is represented by a bound, without access to its files,
//! until all cells before it were read. A scan that ends early never opens it.

use std::sync::Arc;

use crate::cell::{CellType, KeyParts, SearchKey, row_of, row_start_key};
use crate::descriptor::BloomFilter;
use crate::error::Result;
use crate::file::{
    Caching, ColumnSlice, FileCursor, FilterResult, HashedRow, StoreFile, WantedColumns,
};
use crate::memstore::{MemstoreCursor, MemstoreHandle};
use crate::read_statistics::note_read;
use crate::run::{FileSelection, LiveFile, Run, RunCursor};
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
pub(crate) enum ScanSource<M> {
    Memstore(MemstoreCursor<M>),
    File(FileCursor),
    Run(RunCursor),
    Late(UnopenedRun),
}

/// A run that was not opened yet.
pub(crate) struct UnopenedRun {
    run: Arc<Run>,
    admission: FileSelection,
    order: RowOrder,
    /// Sorts before every cell of the run in the span.
    bound: SearchKey,
    /// In reverse: the scan begins within the run, before the row of `bound`.
    inside: bool,
}

impl<M> ScanSource<M> {
    /// Returns a source over the cells of a run in the span, or `None` if there can be none.
    pub(crate) fn of_run(
        run: &Arc<Run>,
        span: &RowSpan<'_>,
        admission: FileSelection,
    ) -> Option<ScanSource<M>> {
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
        Some(ScanSource::Late(UnopenedRun { run, admission, order, bound, inside }))
    }

    /// As [`FileCursor::take_columns`].
    pub(crate) fn take_columns(
        &mut self,
        wanted: &WantedColumns<'_>,
    ) -> Result<Option<ColumnSlice>> {
        match self {
            ScanSource::File(cursor) => cursor.take_columns(wanted),
            ScanSource::Run(cursor) => cursor.take_columns(wanted),
            ScanSource::Memstore(_) | ScanSource::Late(_) => Ok(None),
        }
    }
}

impl UnopenedRun {
    fn open<M>(&self) -> Result<ScanSource<M>> {
        let (row, keep) = (row_of(&self.bound), Caching::Keep);
        let stop = self.inside.then_some(row);
        let [only] = self.run.files() else {
            let run = self.run.clone();
            return Ok(ScanSource::Run(match self.order {
                RowOrder::Forward => RunCursor::forward(run, row, self.admission, keep)?,
                RowOrder::Reverse => RunCursor::reverse(run, stop, self.admission, keep)?,
            }));
        };
        let file = only.file.clone();
        Ok(ScanSource::File(match self.order {
            RowOrder::Forward => FileCursor::forward(file, row, keep)?,
            RowOrder::Reverse => FileCursor::reverse(file, stop, keep)?,
        }))
    }
}

/// Forwards a call to the cursor inside. A merge opens its sources before it moves them.
macro_rules! moved {
    ($source:expr, $cursor:ident => $call:expr) => {
        match $source {
            ScanSource::Memstore($cursor) => $call,
            ScanSource::File($cursor) => $call,
            ScanSource::Run($cursor) => $call,
            ScanSource::Late(_) => Ok(()),
        }
    };
}

impl<M: MemstoreHandle> Cursor for ScanSource<M> {
    fn key(&self) -> Option<&[u8]> {
        match self {
            ScanSource::Memstore(cursor) => cursor.key(),
            ScanSource::File(cursor) => cursor.key(),
            ScanSource::Run(cursor) => cursor.key(),
            ScanSource::Late(late) => Some(&late.bound),
        }
    }

    fn value(&self) -> &[u8] {
        match self {
            ScanSource::Memstore(cursor) => cursor.value(),
            ScanSource::File(cursor) => cursor.value(),
            ScanSource::Run(cursor) => cursor.value(),
            ScanSource::Late(_) => &[],
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
            ScanSource::Memstore(cursor) => cursor.open(),
            ScanSource::File(cursor) => cursor.open(),
            ScanSource::Run(cursor) => cursor.open(),
            ScanSource::Late(late) => {
                *self = late.open()?;
                Ok(true)
            }
        }
    }
}

/// Returns the result of a file's filters for a read of one row, of these columns.
pub(crate) fn admits<'a>(
    file: &'a StoreFile,
    asked: &HashedRow<'_>,
    columns: Option<&[impl AsRef<[u8]>]>,
) -> Result<FilterResult<'a>> {
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
            return Ok(FilterResult::Maybe);
        }
    }
    Ok(FilterResult::No)
}
