//! Staged cells of one family of one table: a memstore, and the sorted runs to which earlier
//! cells were spilled.
//!
//! The runs are ordinary store files, except that the sequences of their cells are staged ones
//! ([`Sequence::STAGED`](crate::Sequence::STAGED)), and that they are in the spill directory: see
//! [`crate::spill`]. Reads merge them with the memstore and with committed cells.
//!
//! # Invariants
//!
//! 1. A run is disjoint by row, as [`Run::new`] asserts; runs may overlap. Debug assertions check
//!    that all cells on disk are staged.
//! 2. Clones share memstore and files. A read with a clone sees the cells staged when it began,
//!    regardless of later spills and merges: the type ensures it.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::cell::{CellType, KeyParts, Sequence};
use crate::error::Result;
use crate::file::{Caching, FileCursor, StoreFile};
use crate::memstore::{Memstore, MemstoreCursor};
use crate::run::{FileSelection, Run, RunCursor};
use crate::scan::merge::{Cursor, Merge, RowOrder};
use crate::source::ScanSource;

/// The staged cells of one table, by family.
pub(crate) type StagedFamilies = SmallVec<[Option<StagedFamily>; 2]>;

/// The staged cells of one family.
#[derive(Clone, Default)]
pub struct StagedFamily {
    memstore: Arc<Memstore>,
    /// `None` while nothing was spilled.
    runs: Option<Arc<Vec<Arc<Run>>>>,
}

impl From<Arc<Memstore>> for StagedFamily {
    fn from(memstore: Arc<Memstore>) -> StagedFamily {
        StagedFamily { memstore, runs: None }
    }
}

impl StagedFamily {
    /// Returns the cells in memory.
    pub(crate) fn memstore(&self) -> &Arc<Memstore> {
        &self.memstore
    }

    /// Replaces the cells in memory.
    pub(crate) fn set_memstore(&mut self, memstore: Memstore) {
        self.memstore = Arc::new(memstore);
    }

    /// Returns the runs on disk.
    pub(crate) fn runs(&self) -> &[Arc<Run>] {
        self.runs.as_ref().map_or(&[], |runs| runs)
    }

    /// Replaces the runs on disk.
    pub(crate) fn set_runs(&mut self, runs: Vec<Arc<Run>>) {
        debug_assert!(
            runs.iter()
                .flat_map(|run| run.files())
                .all(|live| { live.file.properties().min_sequence.is_staged() }),
            "a run of staged cells has a committed one"
        );
        self.runs = (!runs.is_empty()).then(|| Arc::new(runs));
    }

    /// Returns whether there is no cell.
    pub(crate) fn is_empty(&self) -> bool {
        self.memstore.is_empty() && self.runs.is_none()
    }

    /// Returns whether all cells are of rows below this one.
    pub(crate) fn ends_before(&self, row: &[u8]) -> bool {
        self.memstore.ends_before(row) && self.runs().iter().all(|run| run.misses(row, None))
    }

    /// Returns whether a family marker was ever staged.
    pub(crate) fn had_family_markers(&self) -> bool {
        self.memstore.had_family_markers() || self.runs().iter().any(|run| run.has_family_markers())
    }

    /// Returns the files that may have cells of a row.
    pub(crate) fn files_of_row<'a>(
        &'a self,
        row: &'a [u8],
    ) -> impl Iterator<Item = Result<&'a Arc<StoreFile>>> {
        let files = self.runs().iter().filter_map(move |run| run.file_of_row(row));
        files.filter_map(move |file| match file.may_contain_row(row) {
            Ok(true) => Some(Ok(file)),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        })
    }

    /// Returns the lowest sequence above `after` of the matching cells of a row.
    pub(crate) fn next_sequence(
        &self,
        row: &[u8],
        after: Sequence,
        wanted: &impl Fn(CellType) -> bool,
    ) -> Result<Option<Sequence>> {
        let mut next = self.memstore.next_sequence(row, after, wanted);
        for file in self.files_of_row(row) {
            let mut cursor = FileCursor::forward(&**file?, row, Caching::Keep)?;
            while let Some(parts) = cursor.key().and_then(KeyParts::decode)
                && parts.row == row
            {
                if parts.sequence > after && wanted(parts.cell_type) {
                    next = Some(next.map_or(parts.sequence, |next| next.min(parts.sequence)));
                }
                cursor.advance()?;
            }
        }
        Ok(next)
    }

    /// Calls `visit` with every cell, in cell order, up to its first error.
    ///
    /// # Errors
    ///
    /// That error; errors of reading.
    pub(crate) fn try_for_each(
        &self,
        mut visit: impl FnMut(KeyParts<'_>, &[u8]) -> Result<()>,
    ) -> Result<()> {
        if self.runs.is_none() {
            return self.memstore.try_for_each(visit);
        }
        let mut cells = merge_of(Some(&self.memstore), self.runs())?;
        while let Some(key) = cells.key() {
            if let Some(parts) = KeyParts::decode(key) {
                visit(parts, cells.value())?;
            }
            cells.advance()?;
        }
        Ok(())
    }
}

/// Returns all cells of a memstore and of runs, in cell order.
///
/// # Errors
///
/// Errors of opening the runs.
pub(crate) fn merge_of(
    memstore: Option<&Arc<Memstore>>,
    runs: &[Arc<Run>],
) -> Result<Merge<ScanSource<Arc<Memstore>>>> {
    let mut sources: SmallVec<[ScanSource<Arc<Memstore>>; 1]> = SmallVec::new();
    if let Some(memstore) = memstore {
        sources.push(ScanSource::Memstore(MemstoreCursor::forward(Arc::clone(memstore), &[])));
    }
    for run in runs {
        let cursor = RunCursor::forward(Arc::clone(run), &[], FileSelection::ALL, Caching::Bypass)?;
        sources.push(ScanSource::Run(cursor));
    }
    Merge::new(sources, RowOrder::Forward)
}
