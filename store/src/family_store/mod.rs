//! Store of one family of one region: its memstore and its store files (HBase's "store").
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
//! 3. Regions and commits assign sequences; this layer does not.
//!
//! The type ensures 1. [`FamilyStore::flush`] and [`FamilyStore::install_flush`] assert 2, the
//! inserts 3 in debug builds.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::Guard;
use parking_lot::Mutex;

use crate::cache::{CacheUse, FamilyCache};
use crate::cell::{Cell, KeyParts, Sequence, Timestamp};
use crate::compaction::{
    CellFilter, FilteredSink, NoProgress, OutputSpec, RewriteProgress, RunWriter, rewrite,
};
use crate::descriptor::colocation::Partitioning;
use crate::descriptor::{FamilyDescriptor, RegionId, RetiredRule, RowRange, TableId};
use crate::error::{Damage, Error, RESTORE, Result};
use crate::file::{FileProperties, StoreFile};
use crate::memstore::{Memstore, MemstoreCursor};
use crate::options::Options;
use crate::run::{FileRecord, LiveFile, Run, assemble};
use crate::scan::merge::{Cursor, Merge, RowOrder};
use crate::scan::retention::{Retention, RetentionKind, RewriteSpec};

use versioned::VersionedValue;
pub(crate) use versioned::at_one_moment;

pub use crate::descriptor::{DatabaseId, FileId, FileIdentity};
pub use crate::read_view::{FamilyScanner, ReadView};
pub use crate::scan::{Horizon, ReadSpec};

/// Context shared by all family stores of a process.
pub struct StoreContext {
    /// Settings, with the environment.
    pub options: Options,
    /// The block cache.
    pub cache: Arc<crate::cache::BlockCache>,
    /// The database that the files belong to.
    pub database: DatabaseId,
}

/// Location and identity of a family store.
#[derive(Debug, Clone)]
pub struct FamilyLocation {
    /// Directory of its files.
    pub directory: PathBuf,
    /// Its table.
    pub table: TableId,
    /// Its region.
    pub region: RegionId,
}

/// The store of one family of one region.
pub struct FamilyStore {
    context: Arc<StoreContext>,
    cache: Arc<FamilyCache>,
    place: FamilyLocation,
    family_index: u8,
    /// The rows of the region.
    rows: RowRange,
    view: VersionedValue<ReadView>,
    /// Held while the view is replaced.
    pending: Mutex<Pending>,
    /// Held while a memstore is written.
    flushing: Mutex<()>,
    /// Files that are inputs of compactions.
    busy: Arc<Mutex<HashSet<FileId>>>,
    /// Live files that could not be opened.
    unopened: Vec<FileRecord>,
    /// Retired rules that the files have no effect of, since a compaction of all of them.
    applied: Mutex<Vec<RetiredRule>>,
    counters: Counters,
}

/// Damage of a listed file without any row of the region.
const ROWLESS: &str = "the store file has no row of its region";

/// Flushes that are not part of the view yet.
struct Pending {
    next_file: u64,
    flush: Option<PendingFlush>,
}

struct PendingFlush {
    outcome: FlushOutcome,
    file: Option<LiveFile>,
    memstores: Vec<Arc<Memstore>>,
}

/// Result of a flush.
#[derive(Debug, Clone)]
pub struct FlushOutcome {
    /// The new file, or `None` if retention dropped all cells.
    pub file: Option<FileRecord>,
    /// Cells read from the memstore.
    pub cells_in: u64,
    /// Cells written.
    pub cells_out: u64,
    /// All commits up to here are in files.
    pub flushed: Sequence,
    /// Begin of the history of the written cells.
    pub history_begin: Timestamp,
}

/// Output of a rewrite.
pub(crate) struct RewriteOutput {
    /// The files with the index of their run.
    pub(crate) files: Vec<(usize, LiveFile)>,
    pub(crate) cells_in: u64,
    pub(crate) cells_out: u64,
    /// Begin of the history of the output.
    pub(crate) history_begin: Timestamp,
}

/// Statistics of a family store.
#[derive(Debug, Clone, Default)]
pub struct FamilyStatus {
    /// Bytes of all memstores.
    pub memstore_bytes: u64,
    /// Number of sorted runs.
    pub run_count: usize,
    /// Live store files, oldest first.
    pub files: Vec<FileStatus>,
    /// Block cache hits and misses of its reads.
    pub cache: CacheUse,
    /// The damage that prevents reads of the family, if any.
    pub damage: Option<Arc<Damage>>,
}

/// Status of a live store file.
#[derive(Debug, Clone)]
pub struct FileStatus {
    /// Its record in the manifest.
    pub record: FileRecord,
    /// Its bytes; an estimate for a part.
    pub byte_count: u64,
    /// True if the region has only a part of the file, which a split left in two regions.
    pub is_part: bool,
    /// Metadata of its cells; the counts are those of the whole file.
    pub properties: FileProperties,
}

impl FamilyStore {
    /// Opens the store with these files in its directory. Changes nothing there.
    ///
    /// A damaged file that cannot be opened prevents reads and compactions of the family, but not
    /// of the rest of the store: every read of the family returns the damage until the file is
    /// restored and the store is opened again. Flushes continue.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if a file is missing, or replaced by another one; [`Error::Io`].
    pub fn open(
        context: Arc<StoreContext>,
        place: FamilyLocation,
        (family_index, family): (u8, Arc<FamilyDescriptor>),
        (rows, partitioning): (RowRange, Partitioning),
        files: &[FileRecord],
    ) -> Result<FamilyStore> {
        let env = &context.options.env;
        let cache = Arc::new(FamilyCache::new(Arc::clone(&context.cache)));
        cache.set_takes_data(family.block_cache);
        cache.set_in_memory(family.in_memory);
        let mut live = Vec::with_capacity(files.len());
        let (mut unopened, mut damage) = (Vec::new(), None);
        for &record in files {
            let path = place.directory.join(file_name(family_index, record.id));
            let opened = match StoreFile::open(env.clone(), &path, cache.clone()) {
                Err(error) => Err(of_present(&path, error)?),
                Ok(file) => {
                    check_identity(&file, &record)?;
                    let within = match partitioning {
                        Partitioning::Row => file.within(&rows),
                        Partitioning::BaseRow => of_region(file, place.region, &rows).map(Some),
                    };
                    within.and_then(|file| file.ok_or_else(|| Error::corrupt(&path, 0, ROWLESS)))
                }
            };
            let mut file = match opened {
                Ok(file) => file,
                Err(error) => {
                    tracing::error!(%error, "could not open a store file");
                    let found = Arc::new(Damage::of(error)?);
                    damage.get_or_insert(found);
                    unopened.push(record);
                    continue;
                }
            };
            if let Some(sequence) = record.adopted {
                file = file.adopted_at(Sequence(sequence));
            }
            let file = Arc::new(file);
            let created_micros = record.created_micros;
            live.push((record, LiveFile { id: record.id, created_micros, file }));
        }
        check_runs(&live)?;
        // Above the ids of unlisted files, too, so that none is overwritten.
        let names = env.list(&place.directory)?;
        let named = names.iter().filter_map(|name| parse_file_name(name));
        let named = named.filter(|(family, _)| *family == family_index).map(|(_, file)| file.0);
        let next_file = files.iter().map(|record| record.id.0).chain(named).max().unwrap_or(0) + 1;
        let view = Arc::new(ReadView {
            family,
            family_index,
            active: Arc::default(),
            frozen: Vec::new(),
            runs: assemble(live),
            damage,
            history_begin: Timestamp(i64::MIN),
        });
        Ok(FamilyStore {
            context,
            cache,
            place,
            family_index,
            rows: match partitioning {
                Partitioning::Row => rows,
                Partitioning::BaseRow => RowRange::default(),
            },
            view: VersionedValue::new(view),
            pending: Mutex::new(Pending { next_file, flush: None }),
            flushing: Mutex::new(()),
            busy: Arc::default(),
            unopened,
            applied: Mutex::default(),
            counters: Counters::default(),
        })
    }

    /// Creates the directory of its files.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn create_directory(&self) -> Result<()> {
        self.context.options.env.create_directory(&self.place.directory)
    }

    /// Returns the family's files in its directory that the manifest does not list: leftovers of
    /// flushes and compactions that a crash interrupted. Other names there belong to others.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn unlisted_files(&self) -> Result<Vec<PathBuf>> {
        let listed = self.files();
        let names = self.context.options.env.list(&self.place.directory)?;
        let is_unlisted = |name: &PathBuf| {
            parse_file_name(name).is_some_and(|(family, file)| {
                family == self.family_index && !listed.iter().any(|record| record.id == file)
            })
        };
        let unlisted = names.into_iter().filter(is_unlisted);
        Ok(unlisted.map(|name| self.place.directory.join(name)).collect())
    }

    /// Checks that all files could be opened.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`].
    pub(crate) fn check_whole(&self) -> Result<()> {
        if self.unopened.is_empty() { Ok(()) } else { self.view.load().check_whole() }
    }

    /// Replaces the descriptor of the family, for views taken from now on, flushes and
    /// compactions.
    pub fn set_family(&self, family: Arc<FamilyDescriptor>) {
        self.cache.set_takes_data(family.block_cache);
        self.cache.set_in_memory(family.in_memory);
        self.change_view(|view| view.family = family);
    }

    /// Returns whether the family was dropped.
    pub(crate) fn is_dropped(&self) -> bool {
        self.view.load().family.is_dropped()
    }

    /// Marks its files, also one that is not part of the view yet, to be removed from disk when
    /// the last reader is dropped. The caller ensures that no flush or compaction adds files.
    pub(crate) fn remove_files(&self) {
        let pending = self.pending.lock();
        let flushed = pending.flush.iter().filter_map(|flush| flush.file.as_ref());
        self.view().files().chain(flushed).for_each(|live| live.file.mark_obsolete());
    }

    /// Raises the begin of the history to at least `begin`.
    pub(crate) fn begin_history(&self, begin: Timestamp) {
        self.change_view(|view| view.begin_history(begin));
    }

    /// Inserts cells, with sequence and timestamp set, into the active memstore. May be called
    /// concurrently; visibility is by sequence.
    pub fn apply(&self, cells: &[Cell]) {
        self.apply_all(cells.iter().map(|cell| (cell.key_parts(), cell.value.as_slice())));
    }

    /// As `apply`, for cells in any form: key and stored value.
    pub fn apply_all<'a>(&self, cells: impl Iterator<Item = (KeyParts<'a>, &'a [u8])>) {
        self.view.load().active.insert_all(cells.inspect(check_cell));
    }

    /// As `apply`, for cells of a commit with this time.
    pub fn apply_commit<'a>(
        &self,
        cells: impl Iterator<Item = (KeyParts<'a>, &'a [u8])>,
        time: Timestamp,
    ) {
        self.view.load().active.insert_commit(cells.inspect(check_cell), time);
    }

    /// Returns the bytes in use in all memstores.
    pub fn memstore_bytes(&self) -> u64 {
        self.view.load().memstores().map(|memstore| memstore.byte_count()).sum()
    }

    /// Returns the bytes of memory that all memstores hold.
    pub fn memstore_held_bytes(&self) -> u64 {
        self.view.load().memstores().map(|memstore| memstore.held_bytes()).sum()
    }

    /// Returns a consistent view of memstores and files.
    pub fn view(&self) -> Arc<ReadView> {
        self.view.load_full()
    }

    /// Returns the view as a guard, without a reference count.
    pub(crate) fn borrow_view(&self) -> Guard<Arc<ReadView>> {
        self.view.load()
    }

    /// Returns whether a view, taken from here, is still the present one.
    pub(crate) fn is_present(&self, view: &Arc<ReadView>) -> bool {
        self.view.is_present(view)
    }

    fn change_view(&self, change: impl FnOnce(&mut ReadView)) {
        let _pending = self.pending.lock();
        self.change_view_locked(change);
    }

    /// The caller holds `pending`.
    fn change_view_locked(&self, change: impl FnOnce(&mut ReadView)) {
        let mut view = ReadView::clone(&self.view.load());
        change(&mut view);
        let view = Arc::new(view);
        self.view.replace(view);
    }

    /// Freezes the active memstore, unless it is empty. The caller ensures that all commits up to
    /// `through` are applied and none above is (it holds the region's write gate).
    pub fn rotate(&self, through: Sequence) {
        self.change_view(|view| {
            if !view.active.is_empty() {
                let last = view.frozen.first().map(|(_, last)| *last);
                assert!(last.is_none_or(|last| last <= through), "memstores freeze in order");
                let memstore = std::mem::take(&mut view.active);
                view.frozen.insert(0, (memstore, through));
            }
        });
    }

    /// Writes the frozen memstores to a file and syncs it. The new file is part of the view only
    /// after [`FamilyStore::install_flush`], which the caller calls once the manifest lists it.
    /// `None` if nothing is frozen. Called again before that, it returns the same result.
    pub fn flush(&self, horizon: Horizon) -> Result<Option<FlushOutcome>> {
        self.flush_filtered(horizon, None)
    }

    /// As `flush`, with a filter of user code.
    pub(crate) fn flush_filtered(
        &self,
        horizon: Horizon,
        filter: Option<&mut (dyn CellFilter + 'static)>,
    ) -> Result<Option<FlushOutcome>> {
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
            kind: RetentionKind::Partial,
            horizon,
            earliest_put: Timestamp(i64::MIN),
            any_expiring: true,
        };
        // One file, regardless of its size: a flush is one run, and no larger than a memstore.
        let output = OutputSpec { cuts: Vec::new(), file_bytes: u64::MAX };
        let merge = Merge::new(sources, RowOrder::Forward)?;
        let mut written = self.write_runs(&view, merge, (spec, output, filter), &NoProgress)?;
        let file = written.files.pop().map(|(_, file)| file);
        assert!(written.files.is_empty(), "a flush writes one file");
        assert!(
            file.as_ref().is_none_or(|live| live.file.properties().max_sequence <= flushed),
            "a cell is newer than its frozen memstore"
        );
        let outcome = FlushOutcome {
            file: file.as_ref().map(FileRecord::of_alone),
            cells_in: written.cells_in,
            cells_out: written.cells_out,
            flushed,
            history_begin: written.history_begin,
        };
        let flush = PendingFlush { outcome: outcome.clone(), file, memstores };
        self.pending.lock().flush = Some(flush);
        Ok(Some(outcome))
    }

    /// Writes the cells of a merge that retention keeps.
    pub(crate) fn write_runs<C: Cursor>(
        &self,
        view: &ReadView,
        mut merge: Merge<C>,
        (spec, output, filter): (RewriteSpec, OutputSpec, Option<&mut (dyn CellFilter + 'static)>),
        progress: &impl RewriteProgress,
    ) -> Result<RewriteOutput> {
        let env = &self.context.options.env;
        let name_file = || {
            let (id, path) = self.name_file();
            (self.identity_of(id), path)
        };
        let mut writer = RunWriter::new(env.clone(), &view.family, output, &name_file);
        let mut retention = Retention::of_rewrite(&view.family, spec);
        let stop = self.rows.stop.as_deref();
        let mut filter_dropped = false;
        let rewritten = match filter {
            None => rewrite(&mut merge, stop, &mut retention, &mut writer, progress),
            Some(filter) => {
                let (family, dropped) = (self.family_index, &mut filter_dropped);
                let mut sink = FilteredSink { sink: &mut writer, filter, family, dropped };
                rewrite(&mut merge, stop, &mut retention, &mut sink, progress)
            }
        };
        let history_begin = match filter_dropped {
            // User code may drop visible cells.
            true => retention.history_begin().max(Timestamp(env.now_micros())),
            false => retention.history_begin(),
        };
        let rewritten = rewritten.and_then(|cells_in| Ok((cells_in, writer.finish()?)));
        let (cells_in, outputs) = match rewritten {
            Ok(rewritten) => rewritten,
            Err(error) => {
                writer.abandon();
                return Err(error);
            }
        };
        let mut files = Vec::with_capacity(outputs.len());
        for output in &outputs {
            match StoreFile::open(env.clone(), &output.path, self.cache.clone()) {
                Ok(file) => {
                    let created_micros = env.now_micros();
                    let live = LiveFile { id: output.id, created_micros, file: Arc::new(file) };
                    files.push((output.run, live));
                }
                Err(error) => {
                    outputs.iter().for_each(|output| drop(env.remove(&output.path)));
                    return Err(error);
                }
            }
        }
        let cells_out = writer.cell_count();
        debug_assert!(cells_out <= cells_in, "a rewrite adds no cell");
        Ok(RewriteOutput { files, cells_in, cells_out, history_begin })
    }

    /// Returns an unused file id, and the file's path.
    pub(crate) fn name_file(&self) -> (FileId, PathBuf) {
        let mut pending = self.pending.lock();
        let id = FileId(pending.next_file);
        pending.next_file += 1;
        (id, self.place.directory.join(file_name(self.family_index, id)))
    }

    /// Returns the identity that a new file records.
    pub(crate) fn identity_of(&self, file: FileId) -> FileIdentity {
        let FamilyLocation { table, region, .. } = self.place;
        let database = self.context.database;
        FileIdentity { database, table, region, family: self.family_index, file }
    }

    /// Opens files that were written elsewhere. All their cells get the sequence, if there is one.
    pub(crate) fn open_written(
        &self,
        files: &[(FileId, PathBuf)],
        sequence: Option<Sequence>,
    ) -> Result<Vec<LiveFile>> {
        let env = &self.context.options.env;
        let open = |(id, path): &(FileId, PathBuf)| {
            let mut file = StoreFile::open(env.clone(), path, self.cache.clone())?;
            if let Some(sequence) = sequence {
                file = file.adopted_at(sequence);
            }
            Ok(LiveFile { id: *id, created_micros: env.now_micros(), file: Arc::new(file) })
        };
        files.iter().map(open).collect()
    }

    /// Adds a run that the manifest lists to the view, as its newest.
    pub(crate) fn install_adopted(&self, run: Arc<Run>) {
        if self.is_dropped() {
            run.files().iter().for_each(|live| live.file.mark_obsolete());
            return;
        }
        self.change_view(|view| view.runs.push(run));
    }

    /// Replaces the frozen memstores by the file that [`FamilyStore::flush`] wrote. Does nothing
    /// if that was done before.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if there was no such flush.
    pub fn install_flush(&self, outcome: &FlushOutcome) -> Result<()> {
        let mut pending = self.pending.lock();
        let is_pending = |flush: &mut PendingFlush| {
            flush.outcome.flushed == outcome.flushed && flush.outcome.file == outcome.file
        };
        let Some(flush) = pending.flush.take_if(is_pending) else {
            return self.installed_before(outcome.file);
        };
        self.counters.flushed(flush.file.as_ref());
        self.change_view_locked(|view| {
            let flushed = |memstore: &Arc<Memstore>| {
                flush.memstores.iter().any(|flushed| Arc::ptr_eq(flushed, memstore))
            };
            let before = view.frozen.len();
            view.frozen.retain(|(memstore, _)| !flushed(memstore));
            let removed = before - view.frozen.len();
            assert_eq!(removed, flush.memstores.len(), "the memstores of the file are in the view");
            view.begin_history(flush.outcome.history_begin);
            view.runs.extend(flush.file.map(|file| Arc::new(Run::of_file(file))));
        });
        Ok(())
    }

    fn installed_before(&self, file: Option<FileRecord>) -> Result<()> {
        let view = self.view.load();
        match file {
            Some(FileRecord { id, .. }) if !view.files().any(|live| live.id == id) => {
                Err(Error::InvalidRequest(format!("store file {} is not live", id.0)))
            }
            _ => Ok(()),
        }
    }

    /// Returns the live store files, as the manifest must list them.
    pub fn files(&self) -> Vec<FileRecord> {
        let opened = self.view.load();
        let opened = opened.runs.iter().flat_map(|run| run.records());
        opened.chain(self.unopened.iter().copied()).collect()
    }

    /// Returns the statistics.
    pub fn status(&self) -> FamilyStatus {
        let view = self.view.load();
        let files = view.runs.iter().flat_map(|run| run.records().zip(run.files()));
        let files = files.map(|(record, LiveFile { file, .. })| FileStatus {
            record,
            byte_count: file.byte_count(),
            is_part: file.is_part(),
            properties: file.properties().clone(),
        });
        FamilyStatus {
            memstore_bytes: view.memstores().map(|memstore| memstore.byte_count()).sum(),
            run_count: view.runs.len(),
            files: files.collect(),
            cache: self.cache.usage(),
            damage: view.damage.clone(),
        }
    }
}

/// Asserts, in debug builds, that a cell for a memstore has a sequence.
fn check_cell((key, _): &(KeyParts<'_>, &[u8])) {
    debug_assert!(key.sequence > Sequence(0), "the cell has no sequence");
    debug_assert!(!key.sequence.is_staged(), "the cell is not committed");
}

/// Returns the error of an existing file; the error of a missing one is propagated by the caller,
/// because other files may be missing too.
fn of_present(path: &Path, error: Error) -> Result<Error> {
    match error {
        Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            let detail = format!("the manifest lists the file, but it does not exist; {RESTORE}");
            Err(Error::corrupt(path, 0, detail))
        }
        error => Ok(error),
    }
}

/// Checks that the files of each run are disjoint by row.
fn check_runs(live: &[(FileRecord, LiveFile)]) -> Result<()> {
    let mut files: Vec<&(FileRecord, LiveFile)> = live.iter().collect();
    let rows = |live: &LiveFile| live.file.properties().first_row.clone();
    files.sort_by_cached_key(|(record, live)| (record.level, record.run, rows(live)));
    for pair in files.windows(2) {
        let ((one, live), (other, next)) = (pair[0], pair[1]);
        let is_one_run = (one.level, one.run) == (other.level, other.run);
        if is_one_run && live.file.properties().last_row >= next.file.properties().first_row {
            let detail = format!("the file shares rows with file {} of its run", one.id.0);
            return Err(Error::corrupt(next.file.path(), 0, detail));
        }
    }
    Ok(())
}

/// Restricts a file of a region of a colocated table to its base rows, if another region wrote it.
fn of_region(file: StoreFile, region: RegionId, rows: &RowRange) -> Result<StoreFile> {
    let is_own = file.identity().is_some_and(|identity| identity.region == region);
    match is_own || rows.covers(&RowRange::default()) {
        true => Ok(file),
        false => file.of_base_rows(rows),
    }
}

/// Checks that a file is the one that the manifest lists.
fn check_identity(file: &StoreFile, record: &FileRecord) -> Result<()> {
    let found = file.identity();
    if found == record.identity {
        return Ok(());
    }
    let shown = |identity: Option<FileIdentity>| {
        identity.map_or("a file without an identity".to_owned(), |identity| identity.to_string())
    };
    let (found, listed) = (shown(found), shown(record.identity));
    let detail = format!("the manifest lists {listed}, but the file is {found}; {RESTORE}");
    Err(Error::corrupt(file.path(), 0, detail))
}

/// Returns the name of a family's file in its directory.
pub(crate) fn file_name(family_index: u8, file: FileId) -> String {
    format!("f{family_index:03}-{:010}.store", file.0)
}

fn parse_file_name(name: &Path) -> Option<(u8, FileId)> {
    let name = name.to_str()?.strip_prefix('f')?.strip_suffix(".store")?;
    let (family, file) = name.split_once('-')?;
    Some((family.parse().ok()?, FileId(file.parse().ok()?)))
}

mod versioned;

mod compact;

mod statistics;

pub use compact::CompactionOutcome;
pub(crate) use compact::{CompactionPlan, PlanInputs, RewriteRules};
pub use statistics::CompactionStatistics;
use statistics::Counters;

/// Synchronization primitives of [`versioned`].
mod sync {
    pub(super) use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};
    pub(super) use std::thread::yield_now;

    pub(super) use arc_swap::{ArcSwap, Guard};
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests;
