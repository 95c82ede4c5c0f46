//! The short way of a get that wants just the newest version of one column: the first source that
//! has the row decides, as a rule, and nothing is merged.
//!
//! Sources are asked from the newest to the oldest. All cells of a row in an older source have
//! lower sequences, so its markers mask nothing in a newer one, and its versions come before that
//! of a newer one only with a higher timestamp, which the properties of a file rule out. Where that
//! does not decide (a marker comes first, the version is not visible, expires by itself, or may not
//! be the newest), [`ReadView::get`] merges.

use super::ReadView;
use crate::cell::{CellRef, CellType, KeyParts, row_of};
use crate::error::Result;
use crate::file::{Caching, FileCursor};
use crate::memstore::{Memstore, MemstoreCursor};
use crate::scan::merge::Cursor;
use crate::scan::retention::expiry;
use crate::scan::rows::{FamilyRules, Output};
use crate::scan::{ReadSpec, TimeRange};
use crate::source::may_contain;

/// A get of the newest version of one column.
pub(super) struct Newest<'a> {
    row: &'a [u8],
    column: &'a [u8],
    spec: &'a ReadSpec,
}

/// What a source says about the row.
enum Said {
    /// It has no cell of the row.
    Nothing,
    /// Its newest version was appended, or there is none at all.
    Answered,
    /// It does not decide alone.
    Undecided,
}

impl<'a> Newest<'a> {
    /// Returns the get, if it is one of this kind: of one column, whatever its time, and nothing
    /// else of the row.
    pub(super) fn of(
        row: &'a [u8],
        rules: &'a FamilyRules<'_>,
        output: &Output<'_>,
    ) -> Option<Newest<'a>> {
        let (spec, cells) = (&rules.spec, rules.cells);
        let is_one = spec.max_versions == 1
            && !spec.raw
            && spec.time_range == TimeRange::ALL
            && (cells.offset, output.filter.is_some()) == (0, false)
            && cells.limit.min(output.room) > 0;
        match rules.columns.as_deref() {
            Some([column]) if is_one => Some(Newest { row, column, spec }),
            _ => None,
        }
    }

    /// Answers, if it can: returns whether it has.
    pub(super) fn answer(
        &self,
        view: &ReadView,
        staged: Option<&Memstore>,
        output: &mut Output<'_>,
    ) -> Result<bool> {
        if view.had_family_markers(staged) {
            return Ok(false);
        }
        let memstores = staged.into_iter().chain(view.memstores().map(|memstore| &**memstore));
        let mut memstores = memstores.filter(|memstore| !memstore.is_empty());
        while let Some(memstore) = memstores.next() {
            let mut cursor = MemstoreCursor::over_row(memstore, self.row);
            let is_newest =
                || memstores.all(|older| MemstoreCursor::over_row(older, self.row).key().is_none());
            match self.ask(&mut cursor, (view, view.runs.len()), is_newest, output)? {
                Said::Nothing => {}
                Said::Answered => return Ok(true),
                Said::Undecided => return Ok(false),
            }
        }
        let admission = view.admission(self.spec);
        for (older, run) in view.runs.iter().enumerate().rev() {
            let Some(file) = run.file_of_row(self.row) else { continue };
            let columns = std::slice::from_ref(&self.column);
            if !admission.admits(file.properties()) || !may_contain(file, self.row, Some(columns))?
            {
                continue;
            }
            let mut cursor = FileCursor::forward(&**file, self.row, Caching::Keep)?;
            match self.ask(&mut cursor, (view, older), || true, output)? {
                Said::Nothing => {}
                Said::Answered => return Ok(true),
                Said::Undecided => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Asks the source of a cursor that stands on the first cell of the row, if it has the row.
    /// Behind it are memstores, of which `is_newest` knows, and the runs before `older`.
    fn ask(
        &self,
        cursor: &mut impl Cursor,
        (view, older): (&ReadView, usize),
        is_newest: impl FnOnce() -> bool,
        output: &mut Output<'_>,
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
        output.batch.push(CellRef::of_stored(view.family_index, &parts, cursor.value()));
        output.room -= 1;
        Ok(Said::Answered)
    }
}
