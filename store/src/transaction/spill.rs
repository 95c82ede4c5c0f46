//! Spilled runs of staged cells: writing, merging, and rollback to a savepoint.
//!
//! The staged cells in memory become a run once they exceed their limit. A run that starts behind
//! the end of another in row order is appended to it, so that rows written in order form one run
//! regardless of their number. Of overlapping runs, [`RUNS_MAX`] of about one size are merged to
//! one, so that a get probes few Bloom filters.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cell::Sequence;
use crate::descriptor::FamilyDescriptor;
use crate::error::{Error, Result};
use crate::file::Caching;
use crate::memstore::{Memstore, MemstoreCursor};
use crate::run::{FileSelection, LiveFile, Run, RunCursor};
use crate::spill::SpillDirectory;
use crate::staged::{StagedFamily, merge_of};

/// Number of runs of one level that are merged to one of the next.
const RUNS_MAX: usize = 12;

/// Writes the cells in memory to a run.
///
/// # Errors
///
/// Errors of writing; the cells are still in memory then.
pub(super) fn spill(
    staged: &mut StagedFamily,
    family: &FamilyDescriptor,
    files: &SpillDirectory,
) -> Result<()> {
    if staged.memstore().is_empty() {
        return Ok(());
    }
    let mut cells = MemstoreCursor::forward(&**staged.memstore(), &[]);
    if let Some(file) = files.write(family, &mut cells, |_| Ok(true))? {
        let mut runs = staged.runs().to_vec();
        add(&mut runs, file);
        staged.set_runs(runs);
    }
    staged.set_memstore(Memstore::new());
    Ok(())
}

/// Adds a file as a run, or appends it to a run that ends before it begins.
fn add(runs: &mut Vec<Arc<Run>>, file: LiveFile) {
    let first_row = &file.file.properties().first_row;
    let last_row = |run: &Arc<Run>| {
        let last = run.files().last().map(|live| live.file.properties().last_row.clone());
        last.unwrap_or_default()
    };
    let before = runs.iter().enumerate().filter(|(_, run)| last_row(run) < *first_row);
    let nearest = before.max_by_key(|(_, run)| last_row(run)).map(|(index, _)| index);
    let number = file.id.0;
    match nearest {
        Some(index) => {
            let run = &runs[index];
            let mut all = run.files().to_vec();
            all.push(file);
            runs[index] = Arc::new(Run::new(run.level(), number, all));
        }
        None => runs.push(Arc::new(Run::new(0, number, vec![file]))),
    }
}

/// Merges runs while a level has many.
///
/// # Errors
///
/// Errors of reading and writing, [`Error::Cancelled`]: the runs are unchanged then.
pub(super) fn merge(
    staged: &mut StagedFamily,
    family: &FamilyDescriptor,
    files: &SpillDirectory,
    cancelled: &AtomicBool,
) -> Result<()> {
    for level in 0..u8::MAX {
        let of_level = |run: &&Arc<Run>| run.level() == level;
        let inputs: Vec<Arc<Run>> = staged.runs().iter().filter(of_level).cloned().collect();
        if inputs.len() < RUNS_MAX {
            break;
        }
        let mut cells = merge_of(None, &inputs)?;
        let merged =
            files.write(family, &mut cells, |_| match cancelled.load(Ordering::Relaxed) {
                true => Err(Error::Cancelled),
                false => Ok(true),
            })?;
        let others = staged.runs().iter().filter(|run| run.level() != level).cloned();
        let merged = merged.map(|file| Arc::new(Run::new(level + 1, file.id.0, vec![file])));
        staged.set_runs(others.chain(merged).collect());
    }
    Ok(())
}

/// Removes all cells whose sequence is `from` or above from the runs: the rollback to a
/// savepoint. Files with only such cells are removed, those with some are rewritten without them.
///
/// # Errors
///
/// Errors of reading and writing; the runs may be unchanged then.
pub(super) fn remove_from(
    staged: &mut StagedFamily,
    from: Sequence,
    family: Option<&FamilyDescriptor>,
    files: &SpillDirectory,
) -> Result<()> {
    let has_newer = |live: &LiveFile| live.file.properties().max_sequence >= from;
    if !staged.runs().iter().flat_map(|run| run.files()).any(has_newer) {
        return Ok(());
    }
    let mut left = Vec::new();
    for run in staged.runs() {
        let mut kept = Vec::new();
        for live in run.files() {
            if !has_newer(live) {
                kept.push(live.clone());
            } else if live.file.properties().min_sequence < from
                && let Some(family) = family
            {
                let alone = Arc::new(Run::of_file(live.clone()));
                let mut cells =
                    RunCursor::forward(alone, &[], FileSelection::ALL, Caching::Bypass)?;
                kept.extend(files.write(family, &mut cells, |parts| Ok(parts.sequence < from))?);
            }
        }
        if let Some(first) = kept.first() {
            left.push(Arc::new(Run::new(run.level(), first.id.0, kept)));
        }
    }
    staged.set_runs(left);
    Ok(())
}
