//! Fast path of a get for only the newest version of one column: usually the first source that
//! has the row decides, without a merge.
//!
//! Sources are searched from the newest to the oldest. All cells of a row in an older source have
//! lower sequences, so its markers mask nothing in a newer one, and its versions come before that
//! of a newer one only with a higher timestamp, which the properties of a file rule out. If that
//! does not decide (a marker comes first, the version is not visible, has a TTL, or may not be
//! the newest), [`ReadView::get`] merges.

use super::ReadView;
use crate::cell::{CellBatch, CellRef, CellType, KeyParts, row_of};
use crate::error::Result;
use crate::file::{Caching, FileCursor};
use crate::memstore::MemstoreCursor;
use crate::scan::merge::Cursor;
use crate::scan::retention::expiry;
use crate::scan::{Get, ReadSpec, TimeRange};
use crate::staged::StagedFamily;

/// A get of the newest version of one column.
pub(crate) struct Newest<'a> {
    pub(crate) row: &'a [u8],
    pub(crate) column: &'a [u8],
    pub(crate) spec: &'a ReadSpec,
}

/// Result of one source for the row.
enum Said {
    /// It has no cell of the row.
    Nothing,
    /// Its newest version was appended.
    Answered,
    /// A merge is required.
    Undecided,
}

impl<'a> Newest<'a> {
    /// Returns the request if a get qualifies for a family: the newest version of one column,
    /// without a time range, and nothing else.
    pub(crate) fn of(get: &'a Get, spec: &'a ReadSpec, family: u8) -> Option<Newest<'a>> {
        let is_newest = spec.max_versions == 1
            && !spec.raw
            && spec.time_range == TimeRange::ALL
            && get.filter.is_none()
            && get.cells.offset == 0
            && get.cells.limit > 0;
        let own = get.family_reads.iter().find(|read| read.family == family)?;
        match own.columns.as_deref() {
            Some([column]) if is_newest && own.time_range.is_none() => {
                Some(Newest { row: &get.row, column, spec })
            }
            _ => None,
        }
    }

    /// Answers the get, if it can; returns whether it has.
    pub(crate) fn answer(
        &self,
        view: &ReadView,
        staged: Option<&StagedFamily>,
        batch: &mut CellBatch,
    ) -> Result<bool> {
        if view.had_family_markers(staged) {
            return Ok(false);
        }
        if let Some(file) = staged.and_then(|staged| staged.files_of_row(self.row).next()) {
            return file.map(|_| false);
        }
        let own = staged.map(|staged| &**staged.memstore());
        let memstores = own.into_iter().chain(view.memstores().map(|memstore| &**memstore));
        let mut memstores = memstores.filter(|memstore| !memstore.is_empty());
        while let Some(memstore) = memstores.next() {
            let mut cursor = MemstoreCursor::over_row(memstore, self.row);
            let is_newest =
                || memstores.all(|older| MemstoreCursor::over_row(older, self.row).key().is_none());
            match self.ask(&mut cursor, (view, view.runs.len()), is_newest, batch)? {
                Said::Nothing => {}
                Said::Answered => return Ok(true),
                Said::Undecided => return Ok(false),
            }
        }
        let columns = std::slice::from_ref(&self.column);
        for of in view.files_of_row(self.row, self.spec, Some(columns))?.iter().rev() {
            let mut cursor = FileCursor::forward(&**of.file, self.row, Caching::Keep)?;
            match self.ask(&mut cursor, (view, of.run), || true, batch)? {
                Said::Nothing => {}
                Said::Answered => return Ok(true),
                Said::Undecided => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Searches a source by its cursor, which is on the first cell of the row if the source has
    /// it. Behind it are memstores, which `is_newest` takes into account, and the runs before
    /// `older`.
    fn ask(
        &self,
        cursor: &mut impl Cursor,
        (view, older): (&ReadView, usize),
        is_newest: impl FnOnce() -> bool,
        batch: &mut CellBatch,
    ) -> Result<Said> {
        if cursor.key().is_none_or(|key| row_of(key) != self.row) {
            return Ok(Said::Nothing);
        }
        cursor.seek_column(self.column)?;
        cursor.open()?;
        let Some(parts) = cursor.key().and_then(KeyParts::decode) else {
            return Ok(Said::Undecided);
        };
        let mut files = view.runs[..older].iter().filter_map(|run| run.file_of_row(self.row));
        let decides = (parts.row, parts.qualifier) == (self.row, self.column)
            && parts.cell_type == CellType::Put
            && self.spec.sees(parts.sequence)
            && parts.timestamp >= expiry(&view.family, self.spec.now_micros)
            && files.all(|file| file.properties().max_timestamp <= parts.timestamp)
            && is_newest();
        if !decides {
            return Ok(Said::Undecided);
        }
        batch.push(CellRef::of_stored(view.family_index, &parts, cursor.value()));
        Ok(Said::Answered)
    }
}
