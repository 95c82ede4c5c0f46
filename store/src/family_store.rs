//! One family of one region: its memstore and its store files ("store" in HBase's words).
//!
//! ```text
//!   apply --> active memstore --rotate--> frozen memstore --flush--> store file --compact--> …
//!                    \________________________ read view _______________________/
//! ```
//!
//! # Invariants
//!
//! 1. A read view is one consistent set of memstores and files; it never changes and keeps its files
//!    on disk until it is dropped.
//! 2. A cell is in a view's memstores or in its files, never in neither.
//! 3. Regions and commits decide sequences; this layer only obeys them.

use std::path::PathBuf;
use std::sync::Arc;

use crate::cell::Cell;
use crate::cell::CellBatch;
use crate::cell::Sequence;
use crate::descriptor::FamilyDescriptor;
use crate::error::Result;
use crate::options::Options;
use crate::scan::TimeRange;

/// What all family stores of a process share.
pub struct StoreContext {
    /// Settings, with the environment.
    pub options: Options,
    /// The block cache.
    pub cache: Arc<crate::cache::BlockCache>,
}

/// Names a store file within its region directory.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode,
)]
pub struct FileId(pub u64);

/// One family of one region.
pub struct FamilyStore {
    _private: (),
}

/// Which versions a read sees, within one family.
#[derive(Debug, Clone, Copy)]
pub struct ReadSpec {
    /// Commits up to here are visible.
    pub snapshot: Sequence,
    /// Versions considered.
    pub time_range: TimeRange,
    /// Versions returned of each column; also bounded by the family.
    pub max_versions: u32,
    /// Markers too, and no retention.
    pub raw: bool,
    /// The time that decides expiry: microseconds since 1970.
    pub now_micros: i64,
}

/// What a flush did.
#[derive(Debug, Clone)]
pub struct FlushOutcome {
    /// The new file, or `None` if retention left nothing to write.
    pub file: Option<FileId>,
    /// Cells read from the memstore.
    pub cells_in: u64,
    /// Cells written.
    pub cells_out: u64,
    /// All commits up to here are in files now.
    pub flushed: Sequence,
}

/// What a compaction did.
#[derive(Debug, Clone)]
pub struct CompactionOutcome {
    /// Files that were merged.
    pub inputs: Vec<FileId>,
    /// The file that replaces them, or `None` if nothing was left.
    pub output: Option<FileId>,
    /// Cells read.
    pub cells_in: u64,
    /// Cells written.
    pub cells_out: u64,
}

/// Figures of a family store.
#[derive(Debug, Clone, Default)]
pub struct FamilyStatus {
    /// Bytes of all memstores.
    pub memstore_bytes: u64,
    /// Live store files with their sizes in bytes.
    pub files: Vec<(u64, u64)>,
    /// Cells in files.
    pub file_cells: u64,
}

impl FamilyStore {
    /// Opens the store with these files in `directory`. Files there that are not listed are removed.
    pub fn open(
        context: Arc<StoreContext>,
        directory: PathBuf,
        family_index: u8,
        family: Arc<FamilyDescriptor>,
        files: &[FileId],
    ) -> Result<FamilyStore> {
        let _ = (context, directory, family_index, family, files);
        todo!("store/family_store")
    }

    /// Puts cells, with sequence and timestamp set, into the active memstore. Concurrent calls are
    /// fine; visibility is by sequence.
    pub fn apply(&self, cells: &[Cell]) {
        let _ = cells;
        todo!("store/family_store")
    }

    /// Returns the bytes of all memstores.
    pub fn memstore_bytes(&self) -> u64 {
        todo!("store/family_store")
    }

    /// Returns a consistent view of memstores and files.
    pub fn view(&self) -> Arc<ReadView> {
        todo!("store/family_store")
    }

    /// Freezes the active memstore. The caller knows that all commits up to `through` are applied and
    /// none above is (it holds the region's write gate).
    pub fn rotate(&self, through: Sequence) {
        let _ = through;
        todo!("store/family_store")
    }

    /// Writes the frozen memstore to a file and syncs it. The new file is part of the view only after
    /// [`FamilyStore::install_flush`], which the caller calls once the manifest lists it. `None` if
    /// nothing is frozen.
    pub fn flush(&self, oldest_snapshot: Sequence) -> Result<Option<FlushOutcome>> {
        let _ = oldest_snapshot;
        todo!("store/family_store")
    }

    /// Replaces the frozen memstore by the file that [`FamilyStore::flush`] wrote.
    pub fn install_flush(&self, outcome: &FlushOutcome) -> Result<()> {
        let _ = outcome;
        todo!("store/family_store")
    }

    /// Merges files into one and syncs it: all of them if `major`, else those that the policy picks.
    /// `None` if the policy picks none. Installed by [`FamilyStore::install_compaction`].
    pub fn compact(
        &self,
        major: bool,
        oldest_snapshot: Sequence,
    ) -> Result<Option<CompactionOutcome>> {
        let _ = (major, oldest_snapshot);
        todo!("store/family_store")
    }

    /// Replaces the inputs of a compaction by its output. Inputs are removed from disk when the last
    /// view that reads them is dropped.
    pub fn install_compaction(&self, outcome: &CompactionOutcome) -> Result<()> {
        let _ = outcome;
        todo!("store/family_store")
    }

    /// Returns the figures.
    pub fn status(&self) -> FamilyStatus {
        todo!("store/family_store")
    }
}

/// A consistent set of memstores and files of one family.
pub struct ReadView {
    _private: (),
}

impl ReadView {
    /// Returns a view with other memstores over the same files: the base of region replicas.
    pub fn files_only(&self) -> ReadView {
        todo!("store/family_store")
    }

    /// Appends the visible cells of one row to `out`, whose row the caller has begun. `staged` is an
    /// open transaction's own cells of this family, in cell order, if it has any.
    /// Returns whether there were any.
    pub fn get(
        &self,
        row: &[u8],
        spec: &ReadSpec,
        staged: Option<&crate::memstore::Memstore>,
        out: &mut CellBatch,
    ) -> Result<bool> {
        let _ = (row, spec, staged, out);
        todo!("store/family_store")
    }

    /// Returns the highest committed sequence of any cell of the row, if there is one: has the row
    /// changed since a snapshot?
    pub fn newest_sequence(&self, row: &[u8]) -> Result<Option<Sequence>> {
        let _ = row;
        todo!("store/family_store")
    }

    /// Returns a scanner over `start..stop`, from the end if `reverse`.
    pub fn scanner(
        self: &Arc<ReadView>,
        start: &[u8],
        stop: Option<&[u8]>,
        reverse: bool,
        spec: &ReadSpec,
        staged: Option<Arc<crate::memstore::Memstore>>,
    ) -> Result<FamilyScanner> {
        let _ = (start, stop, reverse, spec, staged);
        todo!("store/family_store")
    }
}

/// Reads the visible rows of one family in order.
pub struct FamilyScanner {
    _private: (),
}

impl FamilyScanner {
    /// Returns the key of the next row that has a visible cell, or `None` at the end.
    pub fn peek_row(&mut self) -> Result<Option<&[u8]>> {
        todo!("store/family_store")
    }

    /// Appends the visible cells of the next row to `out`, whose row the caller has begun.
    pub fn read_row(&mut self, out: &mut CellBatch) -> Result<()> {
        let _ = out;
        todo!("store/family_store")
    }

    /// Moves on so that the next row is at or after `row` (at or before it in reverse).
    pub fn seek(&mut self, row: &[u8]) -> Result<()> {
        let _ = row;
        todo!("store/family_store")
    }
}
