//! Compactions of one store, in three steps: plan, run, install.
//!
//! From planning to the end of the plan its inputs are busy: no other plan takes them, so several
//! compactions of a store may run concurrently. The outputs are part of the view only after the
//! caller has added them to the manifest and installs them.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::cell::{CellType, Sequence, Timestamp};
use crate::compaction::{
    Action, CellFilter, CompactionRequest, FileFacts, Layout, OutputSpec, RewriteProgress,
    SelectionInputs,
};
use crate::compaction::{Portion, Reason, RunFacts, Selection, select};
use crate::descriptor::{
    CompactionPolicy, FamilyDescriptor, FileId, KeepDeletedCells, RetiredRule,
};
use crate::error::{Error, Result};
use crate::family_store::{CompactionStatistics, FamilyStore, Horizon, ReadView, RewriteOutput};
use crate::file::Caching;
use crate::run::{FileRecord, FileSelection, LiveFile, Run, RunCursor, sort_runs};
use crate::scan::history::begin_without;
use crate::scan::merge::{Merge, RowOrder};
use crate::scan::retention::{RetentionKind, RewriteSpec};

/// A file is left as it is in a merge only if it has this fraction of the bytes of a flush: small
/// files are worth merging.
const KEPT_FILE_FRACTION: u64 = 8;

/// A selected compaction. Its inputs are busy until it is dropped.
pub(crate) struct CompactionPlan {
    selection: Selection,
    /// The files of the view that it was selected from: holds the inputs on disk. Without the
    /// memstores, whose memory a long merge would hold as well.
    view: ReadView,
    /// The inputs to be merged, by portions: of each run the selected ones.
    merged: Vec<Vec<Arc<Run>>>,
    /// The inputs that are left as they are.
    kept: Vec<LiveFile>,
    sees_oldest: bool,
    /// True if all files of the store are merged.
    is_whole: bool,
    /// The files have all cells up to here.
    through: Sequence,
    busy: Arc<Mutex<HashSet<FileId>>>,
}

/// Conditions for the selection of a compaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanInputs {
    /// True in off-peak hours.
    pub(crate) off_peak: bool,
    /// Oldest snapshot and time of open reads.
    pub(crate) horizon: Horizon,
    /// The files have all cells up to here, and perhaps later ones.
    pub(crate) through: Sequence,
    /// Size of the table's memstores at which they are flushed.
    pub(crate) flush_bytes: u64,
}

/// Parameters of a rewrite.
pub(crate) struct RewriteRules<'a> {
    /// Oldest snapshot and time of open reads.
    pub(crate) horizon: Horizon,
    /// Filter of user code.
    pub(crate) filter: Option<&'a mut (dyn CellFilter + 'static)>,
}

impl From<Horizon> for RewriteRules<'_> {
    fn from(horizon: Horizon) -> Self {
        RewriteRules { horizon, filter: None }
    }
}

/// Result of a compaction.
#[derive(Clone)]
pub struct CompactionOutcome {
    /// Files that are replaced.
    pub inputs: Vec<FileId>,
    /// The new files.
    pub outputs: Vec<FileRecord>,
    /// Cells read.
    pub cells_in: u64,
    /// Cells written.
    pub cells_out: u64,
    /// Bytes of the files that were read.
    pub bytes_in: u64,
    /// Bytes of the files that were written.
    pub bytes_out: u64,
    /// Begin of the history without the dropped cells.
    pub history_begin: Timestamp,
    /// Retired rules that the files have no effect of once it is installed.
    applied: Vec<RetiredRule>,
    live: Vec<(FileRecord, LiveFile)>,
}

impl CompactionPlan {
    /// Returns the bytes of the inputs that must be read.
    pub(crate) fn byte_count(&self) -> u64 {
        self.merged_files().map(|live| live.file.byte_count()).sum()
    }

    /// Returns whether no older file is left out, in its rows.
    pub(crate) fn sees_oldest(&self) -> bool {
        self.sees_oldest
    }

    /// Returns the selection.
    pub(crate) fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Returns the number of cells of the inputs that must be read.
    pub(crate) fn cell_count(&self) -> u64 {
        self.merged_files().map(|live| live.file.cell_count()).sum()
    }

    /// Asserts, in debug builds, that no file that is left as it is shares rows with a file that
    /// is merged.
    fn check(&self) {
        let kept = || self.kept.iter().map(|live| live.file.properties());
        for merged in self.merged_files().map(|live| live.file.properties()) {
            debug_assert!(
                kept().all(|kept| {
                    kept.last_row < merged.first_row || merged.last_row < kept.first_row
                }),
                "a file is left between cells of its rows"
            );
        }
    }

    fn merged_files(&self) -> impl Iterator<Item = &LiveFile> {
        self.merged.iter().flatten().flat_map(|run| run.files())
    }
}

impl Drop for CompactionPlan {
    fn drop(&mut self) {
        let mut busy = self.busy.lock();
        for input in &self.selection.inputs {
            busy.remove(input);
        }
    }
}

/// Returns the layout of the files of a view.
pub(crate) fn layout<'a>(view: &'a ReadView, busy: &HashSet<FileId>) -> Layout<'a> {
    let runs = view.runs.iter().map(|run| RunFacts {
        level: run.level(),
        files: run.files().iter().map(|live| facts(live, busy)).collect(),
    });
    Layout { runs: runs.collect() }
}

fn facts<'a>(live: &'a LiveFile, busy: &HashSet<FileId>) -> FileFacts<'a> {
    let properties = live.file.properties();
    FileFacts {
        id: live.id,
        byte_count: live.file.byte_count(),
        first_row: &properties.first_row,
        last_row: &properties.last_row,
        min_timestamp: properties.min_timestamp,
        max_timestamp: properties.max_timestamp,
        last_seen: properties.last_seen,
        max_sequence: properties.max_sequence,
        marker_count: properties.cell_count - properties.count_of(CellType::Put),
        created_micros: live.created_micros,
        is_part: live.file.is_part(),
        busy: busy.contains(&live.id),
    }
}

impl FamilyStore {
    /// Selects a compaction, `None` if there is none that can run now.
    pub(crate) fn plan_compaction(
        &self,
        request: CompactionRequest,
        inputs: PlanInputs,
    ) -> Option<CompactionPlan> {
        // Under the lock, so that two plans cannot select the same files; and the view after it,
        // so that files that are no longer busy are no longer in it.
        let PlanInputs { off_peak, horizon, through, flush_bytes } = inputs;
        let mut busy = self.busy.lock();
        let view = self.view();
        if view.damage.is_some() {
            // Unknown markers of a damaged file could mask cells of the others.
            return None;
        }
        let layout = layout(&view, &busy);
        let occasion = SelectionInputs {
            now_micros: self.context.options.env.now_micros(),
            read_micros: horizon.now_micros,
            expiry: file_expiry(&view, horizon.now_micros),
            flush_bytes,
            off_peak,
        };
        let selection = select(&layout, &view.family.compaction, request, &occasion)?;
        let drops = selection.action == Action::Drop;
        if !drops && !layout.keeps_order(&selection.inputs) {
            tracing::error!(
                ?selection,
                "compaction selection would break the age order of store files"
            );
            return None;
        }
        let sees_oldest = layout.sees_oldest(&selection.inputs);
        let (mut merged, mut kept) = (Vec::new(), Vec::new());
        for portion in portions(&layout, &selection, &occasion) {
            let runs = chosen(&view, &portion.inputs);
            match portion.merged {
                true => merged.push(runs),
                false => kept.extend(runs.iter().flat_map(|run| run.files()).cloned()),
            }
        }
        assert!(!selection.inputs.is_empty(), "a compaction without inputs");
        for input in &selection.inputs {
            let was_idle = busy.insert(*input);
            assert!(was_idle, "file {} is an input of two compactions", input.0);
        }
        let is_whole = view.files().count() == selection.inputs.len()
            && kept.is_empty()
            && matches!(selection.action, Action::Merge { .. });
        let busy = Arc::clone(&self.busy);
        let view = view.files_only();
        Some(CompactionPlan { selection, merged, kept, sees_oldest, is_whole, through, busy, view })
    }

    /// Executes a plan: writes the new files, if any, and syncs them.
    pub(crate) fn run_compaction(
        &self,
        plan: &CompactionPlan,
        mut rules: RewriteRules<'_>,
        progress: &impl RewriteProgress,
    ) -> Result<CompactionOutcome> {
        let (level, cuts) = match &plan.selection.action {
            Action::Drop => {
                let history_begin = begin_without_inputs(plan);
                return Ok(CompactionOutcome {
                    history_begin,
                    ..outcome(plan, Vec::new(), (0, 0))
                });
            }
            Action::Move { level } => (*level, Vec::new()),
            Action::Merge { level, cuts } => (*level, cuts.clone()),
        };
        plan.check();
        // The family of the view may be older than the horizon. A change of this one ends after
        // it, and retains what its readers see.
        let view = ReadView { family: Arc::clone(&self.view().family), ..plan.view.clone() };
        let applied = rules_without_effect(plan, &view.family, rules.horizon);
        // Files that are left as they are belong to the first run: with cuts there are none.
        let mut files: Vec<(usize, LiveFile)> =
            plan.kept.iter().map(|live| (0, live.clone())).collect();
        let mut cells = (0, 0);
        let mut history_begin = Timestamp(i64::MIN);
        for inputs in &plan.merged {
            let file_bytes = view.family.compaction.file_bytes;
            let output = OutputSpec { cuts: cuts.clone(), file_bytes };
            match self.merge((plan, &view), inputs, (&mut rules, output), progress) {
                Ok(written) => {
                    files.extend(written.files);
                    history_begin = history_begin.max(written.history_begin);
                    cells = (cells.0 + written.cells_in, cells.1 + written.cells_out);
                }
                Err(error) => {
                    // The output of the earlier portions will never be installed.
                    self.discard_compaction(&outcome(plan, place(files, level), cells));
                    return Err(error);
                }
            }
        }
        let done = outcome(plan, place(files, level), cells);
        Ok(CompactionOutcome { history_begin, applied, ..done })
    }

    fn merge(
        &self,
        (plan, view): (&CompactionPlan, &ReadView),
        inputs: &[Arc<Run>],
        (rules, output): (&mut RewriteRules<'_>, OutputSpec),
        progress: &impl RewriteProgress,
    ) -> Result<RewriteOutput> {
        let mut sources = SmallVec::new();
        for run in inputs {
            let bypass = Caching::Bypass;
            let start = &self.rows.start;
            sources.push(RunCursor::forward(run.clone(), start, FileSelection::ALL, bypass)?);
        }
        let files = || inputs.iter().flat_map(|run| run.files());
        let puts = files().map(|live| live.file.properties().min_put_timestamp);
        let spec = RewriteSpec {
            kind: if plan.sees_oldest { RetentionKind::Major } else { RetentionKind::Partial },
            horizon: rules.horizon,
            earliest_put: puts.min().unwrap_or(Timestamp(i64::MIN)),
            any_expiring: files().any(|live| live.file.properties().expiring_count > 0),
        };
        let merge = Merge::new(sources, RowOrder::Forward)?;
        let filter = rules.filter.as_deref_mut();
        self.write_runs(view, merge, (spec, output, filter), progress)
    }

    /// Replaces the inputs of a compaction by its outputs. Inputs are removed from disk when the
    /// last view that reads them is dropped. The caller has added the change to the manifest.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if some of the inputs are missing: it was installed before.
    pub(crate) fn install_compaction(&self, outcome: &CompactionOutcome) -> Result<()> {
        let _pending = self.pending.lock();
        let view = self.view();
        let is_input = |live: &LiveFile| outcome.inputs.contains(&live.id);
        if view.files().filter(|live| is_input(live)).count() != outcome.inputs.len() {
            let inputs = &outcome.inputs;
            return Err(Error::InvalidRequest(format!(
                "not all of the store files {inputs:?} exist"
            )));
        }
        let moved = |live: &LiveFile| outcome.outputs.iter().any(|output| output.id == live.id);
        for live in view.files().filter(|live| is_input(live) && !moved(live)) {
            live.file.mark_obsolete();
        }
        let file_count = view.files().count() - outcome.inputs.len() + outcome.outputs.len();
        self.change_view_locked(|view| {
            view.begin_history(outcome.history_begin);
            replace(&mut view.runs, outcome);
            debug_assert_eq!(view.files().count(), file_count, "files of the view");
        });
        if !outcome.applied.is_empty() {
            self.applied.lock().clone_from(&outcome.applied);
        }
        self.counters.compacted(outcome);
        Ok(())
    }

    /// Returns the number of retired rules, from the oldest on, that have no effect on any cell of
    /// the store. The files have all cells up to `through`.
    pub(crate) fn applied_rules(&self, through: Sequence) -> usize {
        let view = self.view();
        let retired = &view.family.retired;
        if view.damage.is_none() && view.files().next().is_none() {
            return retired.iter().take_while(|rule| rule.last_sequence <= through.0).count();
        }
        let applied = self.applied.lock();
        retired.iter().zip(&*applied).take_while(|(rule, applied)| rule == applied).count()
    }

    /// Returns the number of runs left before writers wait; `None` if they never do.
    pub(crate) fn runs_left(&self) -> Option<i64> {
        let view = self.view.load();
        if view.family.compaction.policy == CompactionPolicy::Fifo {
            return None;
        }
        let burden = view.runs.iter().filter(|run| run.level() == 0).count();
        Some(i64::from(view.family.compaction.blocking_files) - burden as i64)
    }

    /// Returns the compaction pressure: 0 if no merge is due, 1 at the limit at which writers
    /// wait, more above it.
    pub(crate) fn compaction_pressure(&self) -> f64 {
        let Some(left) = self.runs_left() else { return 0.0 };
        let options = &self.view.load().family.compaction;
        let blocking = f64::from(options.blocking_files);
        let due = match &options.policy {
            CompactionPolicy::Exploring(exploring) => exploring.min_files,
            CompactionPolicy::Leveled(leveled) => leveled.level0_files,
            CompactionPolicy::DateTiered(tiered) => tiered.incoming_files,
            CompactionPolicy::Fifo => 0,
        };
        let due = f64::from(due);
        ((blocking - left as f64 - due) / (blocking - due).max(1.0)).max(0.0)
    }

    /// Returns the statistics since the start.
    pub(crate) fn compaction_figures(&self) -> CompactionStatistics {
        let view = self.view.load();
        self.counters.figures(&view.runs)
    }

    /// Removes the output of a compaction that will never be installed.
    pub(crate) fn discard_compaction(&self, outcome: &CompactionOutcome) {
        for (record, live) in &outcome.live {
            if !outcome.inputs.contains(&record.id) {
                live.file.mark_obsolete();
            }
        }
    }
}

/// Returns the retired rules, from the oldest on, that the files of a store have no effect of once
/// all of them are merged: all cells that they end are dropped. Cell TTLs, and markers that do not
/// end cells, keep some of those.
fn rules_without_effect(
    plan: &CompactionPlan,
    family: &FamilyDescriptor,
    horizon: Horizon,
) -> Vec<RetiredRule> {
    let drops_all = plan.merged_files().map(|live| live.file.properties()).all(|file| {
        file.expiring_count == 0
            && (family.keep_deleted_cells == KeepDeletedCells::False
                || file.cell_count == file.count_of(CellType::Put))
    });
    if !plan.is_whole || !drops_all {
        return Vec::new();
    }
    let through = plan.through.min(horizon.snapshot).0;
    let is_applied = |rule: &&RetiredRule| {
        rule.last_sequence <= through && rule.until_micros <= horizon.now_micros
    };
    family.retired.iter().take_while(is_applied).cloned().collect()
}

/// Returns the timestamp below which files may be dropped without being read, `i64::MIN` if none
/// may. Files expired by cell TTLs may be dropped in any case: their cells count as never
/// written.
pub(crate) fn file_expiry(view: &ReadView, now_micros: i64) -> Timestamp {
    view.family.rules_at(now_micros).dead_below()
}

/// Returns the begin of the history without the inputs of a plan, all of whose cells have
/// expired.
fn begin_without_inputs(plan: &CompactionPlan) -> Timestamp {
    let inputs = plan.view.files().filter(|live| plan.selection.inputs.contains(&live.id));
    let begins = inputs.map(|live| {
        let properties = live.file.properties();
        begin_without(&plan.view.family, (properties.max_timestamp, properties.last_seen))
    });
    begins.max().unwrap_or(Timestamp(i64::MIN))
}

/// Divides the inputs of a compaction into portions.
fn portions(
    layout: &Layout<'_>,
    selection: &Selection,
    occasion: &SelectionInputs,
) -> Vec<Portion> {
    let inputs = &selection.inputs;
    let one = |merged| vec![Portion { inputs: inputs.clone(), merged }];
    match &selection.action {
        Action::Drop => Vec::new(),
        Action::Move { .. } => one(false),
        Action::Merge { cuts, .. } if selection.reason == Reason::Policy && cuts.is_empty() => {
            let file_bytes_min = occasion.flush_bytes / KEPT_FILE_FRACTION;
            layout.portions(inputs, |file| {
                file.byte_count >= file_bytes_min
                    && file.marker_count == 0
                    && file.min_timestamp >= occasion.expiry
            })
        }
        Action::Merge { .. } => one(true),
    }
}

fn chosen(view: &ReadView, inputs: &[FileId]) -> Vec<Arc<Run>> {
    let of_run = |run: &Arc<Run>| {
        let files: Vec<LiveFile> =
            run.files().iter().filter(|live| inputs.contains(&live.id)).cloned().collect();
        (!files.is_empty()).then(|| Arc::new(Run::new(run.level(), 0, files)))
    };
    view.runs.iter().filter_map(of_run).collect()
}

fn record_of(live: &LiveFile, level: u8, run: u64) -> FileRecord {
    let adopted = live.file.adopted().map(|sequence| sequence.0);
    let (id, created_micros) = (live.id, live.created_micros);
    FileRecord { id, level, run, created_micros, adopted, identity: live.file.identity() }
}

/// Assigns the files of a merge to runs of a level.
fn place(files: Vec<(usize, LiveFile)>, level: u8) -> Vec<(FileRecord, LiveFile)> {
    // A run of level 0 has the number of one of its files, so that numbers are unique.
    let mut numbers: Vec<(usize, u64)> = Vec::new();
    let mut number_of = |run: usize, id: FileId| match numbers.iter().find(|(of, _)| *of == run) {
        Some((_, number)) => *number,
        None => {
            numbers.push((run, id.0));
            id.0
        }
    };
    files
        .into_iter()
        .map(|(run, live)| {
            let number = if level == 0 { number_of(run, live.id) } else { 0 };
            (record_of(&live, level, number), live)
        })
        .collect()
}

fn outcome(
    plan: &CompactionPlan,
    live: Vec<(FileRecord, LiveFile)>,
    (cells_in, cells_out): (u64, u64),
) -> CompactionOutcome {
    debug_assert!(cells_out <= cells_in, "a compaction adds no cell");
    let is_written = |live: &&LiveFile| !plan.selection.inputs.contains(&live.id);
    CompactionOutcome {
        history_begin: Timestamp(i64::MIN),
        applied: Vec::new(),
        inputs: plan.selection.inputs.clone(),
        outputs: live.iter().map(|(record, _)| *record).collect(),
        cells_in,
        cells_out,
        bytes_in: plan.byte_count(),
        bytes_out: live
            .iter()
            .map(|(_, live)| live)
            .filter(is_written)
            .map(|live| live.file.byte_count())
            .sum(),
        live,
    }
}

/// Replaces files of runs by others.
fn replace(runs: &mut Vec<Arc<Run>>, outcome: &CompactionOutcome) {
    let is_changed = |run: &Arc<Run>| {
        run.files().iter().any(|live| outcome.inputs.contains(&live.id))
            || outcome.outputs.iter().any(|output| output.level > 0 && output.level == run.level())
    };
    let (changed, kept): (Vec<Arc<Run>>, Vec<Arc<Run>>) = runs.drain(..).partition(is_changed);
    let left = changed.iter().flat_map(|run| run.records().zip(run.files().iter().cloned()));
    let mut files: Vec<(FileRecord, LiveFile)> =
        left.filter(|(record, _)| !outcome.inputs.contains(&record.id)).collect();
    files.extend(outcome.live.iter().cloned());
    *runs = kept;
    runs.extend(crate::run::assemble(files));
    sort_runs(runs);
}
