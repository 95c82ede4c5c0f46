//! One family of one region: its memstore and its store files ("store" in HBase's words).
//!
//! ```text
//!   apply --> active memstore --rotate--> frozen memstore --flush--> store file --compact--> …
//!                    \________________________ read view _______________________/
//! ```
//!
//! # Invariants
//!
//! 1. A read view is one consistent set of memstores and files; it never changes and keeps its
//!    files on disk until it is dropped.
//! 2. A cell is in a view's memstores or in its files, never in neither.
//! 3. Regions and commits decide sequences; this layer only obeys them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::cell::Cell;
use crate::cell::{Sequence, Timestamp};
use crate::compaction::{Exploring, rewrite};
use crate::descriptor::FamilyDescriptor;
use crate::error::{Error, Result};
use crate::file::{Caching, FileCursor, FileWriter, StoreFile};
use crate::memstore::{Memstore, MemstoreCursor};
use crate::options::Options;
use crate::read_view::LiveFile;
use crate::scan::merge::{Merge, RowOrder};
use crate::scan::retention::{Retention, RewriteKind, RewriteSpec};

pub use crate::read_view::{FamilyScanner, FileId, ReadView};
pub use crate::scan::ReadSpec;

/// What all family stores of a process share.
pub struct StoreContext {
    /// Settings, with the environment.
    pub options: Options,
    /// The block cache.
    pub cache: Arc<crate::cache::BlockCache>,
}

/// One family of one region.
pub struct FamilyStore {
    context: Arc<StoreContext>,
    directory: PathBuf,
    family_index: u8,
    view: ArcSwap<ReadView>,
    /// Held while the view is replaced.
    pending: Mutex<Pending>,
    /// Held while a memstore is written.
    flushing: Mutex<()>,
    /// Held while files are merged.
    compacting: Mutex<()>,
}

/// What is written but not part of the view yet.
struct Pending {
    next_file: u64,
    flush: Option<PendingFlush>,
    compaction: Option<PendingCompaction>,
}

struct PendingFlush {
    outcome: FlushOutcome,
    file: Option<LiveFile>,
    memstores: Vec<Arc<Memstore>>,
}

struct PendingCompaction {
    outcome: CompactionOutcome,
    file: Option<LiveFile>,
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
    /// Opens the store with these files in `directory`, which is created if need be. Files of this
    /// family there that are not listed are removed.
    pub fn open(
        context: Arc<StoreContext>,
        directory: PathBuf,
        family_index: u8,
        family: Arc<FamilyDescriptor>,
        files: &[FileId],
    ) -> Result<FamilyStore> {
        let env = &context.options.env;
        env.create_directory(&directory)?;
        for name in env.list(&directory)? {
            if let Some((family, file)) = parse_file_name(&name)
                && family == family_index
                && !files.contains(&file)
            {
                env.remove(&directory.join(&name))?;
            }
        }
        let mut live = Vec::with_capacity(files.len());
        for &id in files {
            let path = directory.join(file_name(family_index, id));
            let file = StoreFile::open(env.clone(), &path, context.cache.clone())?;
            live.push(LiveFile { id, file: Arc::new(file) });
        }
        live.sort_by_key(|live| live.file.properties().max_sequence);
        let next_file = files.iter().map(|file| file.0 + 1).max().unwrap_or(1);
        let view = ReadView {
            family,
            family_index,
            active: Arc::default(),
            frozen: Vec::new(),
            files: live,
        };
        Ok(FamilyStore {
            context,
            directory,
            family_index,
            view: ArcSwap::from_pointee(view),
            pending: Mutex::new(Pending { next_file, flush: None, compaction: None }),
            flushing: Mutex::new(()),
            compacting: Mutex::new(()),
        })
    }

    /// Replaces the rules of the family: for views taken from now on, flushes and compactions.
    pub fn set_family(&self, family: Arc<FamilyDescriptor>) {
        self.change_view(|view| view.family = family);
    }

    /// Puts cells, with sequence and timestamp set, into the active memstore. Concurrent calls are
    /// fine; visibility is by sequence.
    pub fn apply(&self, cells: &[Cell]) {
        self.view.load().active.insert_cells(cells);
    }

    /// Returns the bytes of all memstores.
    pub fn memstore_bytes(&self) -> u64 {
        self.view.load().memstores().map(|memstore| memstore.byte_count()).sum()
    }

    /// Returns a consistent view of memstores and files.
    pub fn view(&self) -> Arc<ReadView> {
        self.view.load_full()
    }

    fn change_view(&self, change: impl FnOnce(&mut ReadView)) {
        let _pending = self.pending.lock();
        self.change_view_locked(change);
    }

    /// The caller holds `pending`.
    fn change_view_locked(&self, change: impl FnOnce(&mut ReadView)) {
        let mut view = ReadView::clone(&self.view.load());
        change(&mut view);
        self.view.store(Arc::new(view));
    }

    /// Freezes the active memstore, unless it is empty. The caller knows that all commits up to
    /// `through` are applied and none above is (it holds the region's write gate).
    pub fn rotate(&self, through: Sequence) {
        self.change_view(|view| {
            if !view.active.is_empty() {
                let memstore = std::mem::take(&mut view.active);
                view.frozen.insert(0, (memstore, through));
            }
        });
    }

    /// Writes what is frozen to a file and syncs it. The new file is part of the view only after
    /// [`FamilyStore::install_flush`], which the caller calls once the manifest lists it. `None` if
    /// nothing is frozen. Called again before that, it returns the same outcome again.
    pub fn flush(&self, oldest_snapshot: Sequence) -> Result<Option<FlushOutcome>> {
        let _flushing = self.flushing.lock();
        if let Some(flush) = &self.pending.lock().flush {
            return Ok(Some(flush.outcome.clone()));
        }
        let view = self.view();
        let Some(&(_, flushed)) = view.frozen.first() else { return Ok(None) };
        let memstores: Vec<Arc<Memstore>> =
            view.frozen.iter().map(|(memstore, _)| memstore.clone()).collect();
        let sources = memstores
            .iter()
            .map(|memstore| MemstoreCursor::forward(memstore.clone(), &[]))
            .collect();
        let spec = RewriteSpec {
            kind: RewriteKind::Partial,
            oldest_snapshot,
            now_micros: self.context.options.env.now_micros(),
            earliest_put: Timestamp(i64::MIN),
        };
        let (file, cells_in, cells_out) =
            self.write_file(&view, Merge::new(sources, RowOrder::Forward)?, spec)?;
        let outcome =
            FlushOutcome { file: file.as_ref().map(|file| file.id), cells_in, cells_out, flushed };
        let flush = PendingFlush { outcome: outcome.clone(), file, memstores };
        self.pending.lock().flush = Some(flush);
        Ok(Some(outcome))
    }

    /// Writes what retention keeps of a merge; returns the file, and the cells read and written.
    fn write_file<C: crate::scan::merge::Cursor>(
        &self,
        view: &ReadView,
        mut merge: Merge<C>,
        spec: RewriteSpec,
    ) -> Result<(Option<LiveFile>, u64, u64)> {
        let id = {
            let mut pending = self.pending.lock();
            pending.next_file += 1;
            FileId(pending.next_file - 1)
        };
        let env = &self.context.options.env;
        let path = self.directory.join(file_name(self.family_index, id));
        let mut writer = FileWriter::new(env.clone(), &path, &view.family);
        let mut retention = Retention::of_rewrite(&view.family, spec);
        let written = rewrite(&mut merge, &mut retention, &mut writer).and_then(|cells_in| {
            let cells_out = writer.cell_count();
            let Some(_properties) = writer.finish()? else { return Ok((None, cells_in, 0)) };
            let file = StoreFile::open(env.clone(), &path, self.context.cache.clone())?;
            Ok((Some(LiveFile { id, file: Arc::new(file) }), cells_in, cells_out))
        });
        if written.is_err() {
            // A part of the file may be there; the next start removes it if this does not.
            let _ = env.remove(&path);
        }
        written
    }

    /// Replaces the frozen memstores by the file that [`FamilyStore::flush`] wrote. Does nothing if
    /// that was done before.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if no such flush was made.
    pub fn install_flush(&self, outcome: &FlushOutcome) -> Result<()> {
        let mut pending = self.pending.lock();
        let is_pending = |flush: &mut PendingFlush| {
            flush.outcome.flushed == outcome.flushed && flush.outcome.file == outcome.file
        };
        let Some(flush) = pending.flush.take_if(is_pending) else {
            return self.installed_before(outcome.file);
        };
        self.change_view_locked(|view| {
            let flushed = |memstore: &Arc<Memstore>| {
                flush.memstores.iter().any(|flushed| Arc::ptr_eq(flushed, memstore))
            };
            view.frozen.retain(|(memstore, _)| !flushed(memstore));
            view.files.extend(flush.file);
        });
        Ok(())
    }

    fn installed_before(&self, file: Option<FileId>) -> Result<()> {
        let view = self.view.load();
        match file {
            Some(file) if !view.files.iter().any(|live| live.id == file) => {
                Err(Error::InvalidRequest(format!("store file {} is not to be installed", file.0)))
            }
            _ => Ok(()),
        }
    }

    /// Merges files into one and syncs it: all of them if `major`, else those that the policy
    /// picks.
    /// `None` if the policy picks none. Installed by [`FamilyStore::install_compaction`]; called
    /// again before that, it returns the same outcome again.
    pub fn compact(
        &self,
        major: bool,
        oldest_snapshot: Sequence,
    ) -> Result<Option<CompactionOutcome>> {
        let _compacting = self.compacting.lock();
        if let Some(compaction) = &self.pending.lock().compaction {
            return Ok(Some(compaction.outcome.clone()));
        }
        let view = self.view();
        let sizes: Vec<u64> = view.files.iter().map(|live| live.file.byte_count()).collect();
        let policy = Exploring::new(self.context.options.memstore_flush_bytes);
        let picked = if major { Some(0..sizes.len()) } else { policy.select(&sizes) };
        let Some(picked) = picked.filter(|picked| !picked.is_empty()) else { return Ok(None) };
        let inputs = &view.files[picked];
        let mut sources = SmallVec::new();
        for live in inputs {
            sources.push(FileCursor::forward(live.file.clone(), &[], Caching::Bypass)?);
        }
        let sees_all = inputs.len() == view.files.len();
        let puts = inputs.iter().map(|live| live.file.properties().min_put_timestamp);
        let spec = RewriteSpec {
            kind: if sees_all { RewriteKind::Major } else { RewriteKind::Partial },
            oldest_snapshot,
            now_micros: self.context.options.env.now_micros(),
            earliest_put: puts.min().unwrap_or(Timestamp(i64::MIN)),
        };
        let (file, cells_in, cells_out) =
            self.write_file(&view, Merge::new(sources, RowOrder::Forward)?, spec)?;
        let outcome = CompactionOutcome {
            inputs: inputs.iter().map(|live| live.id).collect(),
            output: file.as_ref().map(|file| file.id),
            cells_in,
            cells_out,
        };
        let compaction = PendingCompaction { outcome: outcome.clone(), file };
        self.pending.lock().compaction = Some(compaction);
        Ok(Some(outcome))
    }

    /// Replaces the inputs of a compaction by its output. Inputs are removed from disk when the
    /// last view that reads them is dropped. Does nothing if that was done before.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if no such compaction was made.
    pub fn install_compaction(&self, outcome: &CompactionOutcome) -> Result<()> {
        let mut pending = self.pending.lock();
        let is_pending = |compaction: &mut PendingCompaction| {
            compaction.outcome.output == outcome.output
                && compaction.outcome.inputs == outcome.inputs
        };
        let Some(compaction) = pending.compaction.take_if(is_pending) else {
            return self.installed_before(outcome.output);
        };
        self.change_view_locked(|view| {
            let is_input = |live: &LiveFile| outcome.inputs.contains(&live.id);
            let position = view.files.iter().position(is_input).unwrap_or(view.files.len());
            for live in view.files.iter().filter(|live| is_input(live)) {
                live.file.mark_obsolete();
            }
            view.files.retain(|live| !is_input(live));
            if let Some(file) = compaction.file {
                view.files.insert(position, file);
            }
        });
        Ok(())
    }

    /// Returns the live store files, oldest first: what the manifest must list.
    pub fn files(&self) -> Vec<FileId> {
        self.view.load().files.iter().map(|live| live.id).collect()
    }

    /// Returns whether the policy would pick files for a minor compaction.
    pub fn wants_compaction(&self) -> bool {
        let view = self.view.load();
        let sizes: Vec<u64> = view.files.iter().map(|live| live.file.byte_count()).collect();
        Exploring::new(self.context.options.memstore_flush_bytes).select(&sizes).is_some()
    }

    /// Returns the figures.
    pub fn status(&self) -> FamilyStatus {
        let view = self.view.load();
        FamilyStatus {
            memstore_bytes: view.memstores().map(|memstore| memstore.byte_count()).sum(),
            files: view.files.iter().map(|live| (live.id.0, live.file.byte_count())).collect(),
            file_cells: view.files.iter().map(|live| live.file.properties().cell_count).sum(),
        }
    }
}

fn file_name(family_index: u8, file: FileId) -> String {
    format!("f{family_index:03}-{:010}.store", file.0)
}

fn parse_file_name(name: &Path) -> Option<(u8, FileId)> {
    let name = name.to_str()?.strip_prefix('f')?.strip_suffix(".store")?;
    let (family, file) = name.split_once('-')?;
    Some((family.parse().ok()?, FileId(file.parse().ok()?)))
}

#[cfg(test)]
mod tests;
