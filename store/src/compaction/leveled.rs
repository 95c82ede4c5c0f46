//! The leveled policy, after RocksDB's with dynamic level sizes.
//!
//! Flushes make runs of level 0. The last level holds nearly all data, each level above a tenth
//! of the one below; so levels between level 0 and the first one that is needed are empty. The
//! level that exceeds its target size most passes one file to the next, the one with the least
//! overlap there; a file without overlap is moved without being read.

use crate::compaction::layout::{FileFacts, Layout, RunFacts};
use crate::compaction::select::Action;
use crate::descriptor::{FileId, LeveledOptions};

/// The deepest level.
pub(super) const LAST_LEVEL: u8 = 6;

/// Target sizes of levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Targets {
    /// The level that level 0 is merged into.
    pub(super) base: u8,
    /// Bytes of each level.
    pub(super) bytes: [u64; LAST_LEVEL as usize + 1],
}

/// Selected action.
pub(super) struct Choice {
    pub(super) inputs: Vec<FileId>,
    pub(super) action: Action,
}

/// Returns the present target sizes of levels.
pub(super) fn targets(layout: &Layout<'_>, options: &LeveledOptions) -> Targets {
    let bytes_of = |level| -> u64 { layout.level(level).iter().map(|file| file.byte_count).sum() };
    let first_used = (1..=LAST_LEVEL).find(|&level| bytes_of(level) > 0).unwrap_or(LAST_LEVEL);
    let multiplier = u64::from(options.multiplier);
    let (mut base, mut size) = (LAST_LEVEL, (1..=LAST_LEVEL).map(bytes_of).max().unwrap_or(0));
    while base > 1 && size > options.base_bytes {
        base -= 1;
        size /= multiplier;
    }
    let mut bytes = [0; LAST_LEVEL as usize + 1];
    let mut level_bytes = size.max(options.base_bytes / multiplier).max(1);
    for level in base..=LAST_LEVEL {
        bytes[usize::from(level)] = level_bytes;
        level_bytes = level_bytes.saturating_mul(multiplier);
    }
    // Data that shrank, or was written with other parameters: upper levels are drained.
    Targets { base: base.min(first_used), bytes }
}

/// Returns the next action, `None` if every level is within its target size or the excess cannot
/// be merged now.
pub(super) fn select(layout: &Layout<'_>, options: &LeveledOptions) -> Option<Choice> {
    let targets = targets(layout, options);
    let mut scores: Vec<(f64, u8)> =
        (1..LAST_LEVEL).map(|level| (score_of_level(layout, &targets, level), level)).collect();
    scores.push((score_of_level0(layout, options), 0));
    // The highest score first; of equal ones the upper level.
    scores.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scores.into_iter().filter(|(score, _)| *score >= 1.0).find_map(|(_, level)| match level {
        0 => from_level0(layout, &targets, options),
        level => from_level(layout, level),
    })
}

fn score_of_level0(layout: &Layout<'_>, options: &LeveledOptions) -> f64 {
    let runs: Vec<&RunFacts<'_>> = layout.runs.iter().filter(|run| run.level == 0).collect();
    let bytes: u64 = runs.iter().map(|run| run.byte_count()).sum();
    let by_count = runs.len() as f64 / f64::from(options.level0_files);
    let by_bytes = bytes as f64 / options.base_bytes as f64;
    // A single run is no burden for reads, regardless of its size.
    if runs.len() > 1 { by_count.max(by_bytes) } else { by_count }
}

fn score_of_level(layout: &Layout<'_>, targets: &Targets, level: u8) -> f64 {
    let idle = layout.level(level).iter().filter(|file| !file.busy);
    let bytes: u64 = idle.map(|file| file.byte_count).sum();
    match targets.bytes[usize::from(level)] {
        0 if bytes > 0 => f64::MAX,
        0 => 0.0,
        target => bytes as f64 / target as f64,
    }
}

/// Merges level 0 into the base level, or, if that is not possible now, some of its runs into
/// one.
fn from_level0(layout: &Layout<'_>, targets: &Targets, options: &LeveledOptions) -> Option<Choice> {
    let start = layout.runs.iter().position(|run| run.level == 0)?;
    let runs = &layout.runs[start..];
    let idle = runs.iter().take_while(|run| !run.is_busy()).count();
    if idle > 0 {
        let files = || runs[..idle].iter().flat_map(|run| &run.files);
        let first = files().map(|file| file.first_row).min()?;
        let last = files().map(|file| file.last_row).max()?;
        let below: Vec<&FileFacts<'_>> =
            layout.level(targets.base).iter().filter(|file| file.overlaps(first, last)).collect();
        if below.iter().all(|file| !file.busy) {
            let inputs = below.into_iter().chain(files()).map(|file| file.id).collect();
            return Some(Choice { inputs, action: Action::merge(targets.base) });
        }
    }
    // The newest runs, behind those that are being merged.
    let newest = runs.iter().rev().take_while(|run| !run.is_busy()).count();
    if newest < options.level0_files as usize {
        return None;
    }
    let range = layout.runs.len() - newest..layout.runs.len();
    Some(Choice { inputs: layout.ids(range), action: Action::merge(0) })
}

/// Moves a file down a level.
fn from_level(layout: &Layout<'_>, level: u8) -> Option<Choice> {
    let next = layout.level(level + 1);
    let mut best: Option<(f64, &FileFacts<'_>, Vec<FileId>)> = None;
    for file in layout.level(level).iter().filter(|file| !file.busy) {
        let overlapping = next.iter().filter(|other| other.overlaps(file.first_row, file.last_row));
        let (mut bytes, mut ids, mut barred) = (0, Vec::new(), false);
        for other in overlapping {
            bytes += other.byte_count;
            ids.push(other.id);
            barred |= other.busy;
        }
        let ratio = bytes as f64 / file.byte_count.max(1) as f64;
        if !barred && best.as_ref().is_none_or(|(least, _, _)| ratio < *least) {
            best = Some((ratio, file, ids));
        }
    }
    let (_, file, mut inputs) = best?;
    // A merge drops markers that cover the oldest cells of their rows.
    let moves = inputs.is_empty() && (file.marker_count == 0 || !layout.sees_oldest(&[file.id]));
    inputs.push(file.id);
    let action = if moves { Action::Move { level: level + 1 } } else { Action::merge(level + 1) };
    Some(Choice { inputs, action })
}
