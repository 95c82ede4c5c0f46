//! Selection of a compaction: asks the family's policy for the next action.

use crate::cell::Sequence;
use crate::cell::Timestamp;
use crate::compaction::exploring::{self, Candidate, Rules};
use crate::compaction::layout::{FileFacts, Layout};
use crate::compaction::{date_tiered, leveled};
use crate::descriptor::{CompactionOptions, CompactionPolicy, ExploringOptions, FileId};

/// Requested kind of compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactionRequest {
    /// The policy's choice.
    Minor,
    /// A merge of all files.
    Major,
}

/// Reason of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// All cells of its files have expired.
    Expired,
    /// Some of their rows went to another region by a split.
    Split,
    /// A major compaction was requested.
    Major,
    /// The oldest file is older than the period of major compactions.
    Period,
    /// The policy's choice.
    Policy,
}

/// Action on the inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The files are removed without being read.
    Drop,
    /// The files move to another level unchanged.
    Move {
        /// The level.
        level: u8,
    },
    /// They are merged.
    Merge {
        /// The level of the output.
        level: u8,
        /// Sequences at which the output is divided into runs: a run has the cells up to and
        /// including each of these sequences, and the last one the rest. Ascending.
        cuts: Vec<Sequence>,
    },
}

/// Choice of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The files.
    pub inputs: Vec<FileId>,
    /// The action.
    pub action: Action,
    /// The reason.
    pub reason: Reason,
}

/// Inputs of a selection, except the files.
#[derive(Debug, Clone, Copy)]
pub struct SelectionInputs {
    /// The time: microseconds since 1970.
    pub now_micros: i64,
    /// No open read uses an earlier time for expiry.
    pub read_micros: i64,
    /// Cells below have expired by the family's TTL, and so have files without newer ones.
    /// `i64::MIN` if no file may be dropped for that.
    pub expiry: Timestamp,
    /// Size of a flush.
    pub flush_bytes: u64,
    /// True in off-peak hours.
    pub off_peak: bool,
}

impl Action {
    /// Returns a merge into one run.
    pub fn merge(level: u8) -> Action {
        Action::Merge { level, cuts: Vec::new() }
    }
}

/// Returns the next action on the files of a store, `None` if there is none.
pub fn select(
    layout: &Layout<'_>,
    options: &CompactionOptions,
    request: CompactionRequest,
    occasion: &SelectionInputs,
) -> Option<Selection> {
    if let Some(expired) = select_expired(layout, occasion) {
        return Some(expired);
    }
    let is_fifo = options.policy == CompactionPolicy::Fifo;
    if request == CompactionRequest::Major && !is_fifo {
        return select_all(layout, options, Reason::Major, occasion);
    }
    if let Some(parts) = select_parts(layout) {
        return Some(parts);
    }
    if is_fifo {
        return None;
    }
    if major_is_due(layout, options, occasion)
        && let Some(all) = select_all(layout, options, Reason::Period, occasion)
    {
        return Some(all);
    }
    let (inputs, action) = match &options.policy {
        CompactionPolicy::Exploring(exploring) => {
            let rules = rules(options, exploring, occasion);
            let runs: Vec<Candidate> = layout
                .runs
                .iter()
                .map(|run| Candidate { byte_count: run.byte_count(), barred: run.is_busy() })
                .collect();
            let range = exploring::select(&runs, &rules)?;
            (layout.ids(range.clone()), Action::merge(layout.level_of(range)))
        }
        CompactionPolicy::Leveled(leveled) => {
            let choice = leveled::select(layout, leveled)?;
            (choice.inputs, choice.action)
        }
        CompactionPolicy::DateTiered(tiered) => {
            let rules = rules(options, &tiered.within, occasion);
            let range = date_tiered::select(layout, tiered, &rules, occasion.now_micros)?;
            (layout.ids(range.clone()), Action::merge(layout.level_of(range)))
        }
        CompactionPolicy::Fifo => return None,
    };
    Some(Selection { inputs, action, reason: Reason::Policy })
}

fn rules(
    options: &CompactionOptions,
    exploring: &ExploringOptions,
    occasion: &SelectionInputs,
) -> Rules {
    Rules {
        options: *exploring,
        off_peak: occasion.off_peak,
        min_bytes: exploring.min_bytes.unwrap_or(occasion.flush_bytes),
        blocking_files: options.blocking_files as usize,
    }
}

/// Chooses the files all of whose cells have expired, by the family's TTL or by cell TTLs.
fn select_expired(layout: &Layout<'_>, occasion: &SelectionInputs) -> Option<Selection> {
    let has_expired = |file: &FileFacts<'_>| {
        file.max_timestamp < occasion.expiry || file.last_seen.0 < occasion.read_micros
    };
    let inputs: Vec<FileId> =
        layout.files().filter(|file| !file.busy && has_expired(file)).map(|file| file.id).collect();
    let expired = Selection { inputs, action: Action::Drop, reason: Reason::Expired };
    (!expired.inputs.is_empty()).then_some(expired)
}

/// Chooses the half-files of a run that a split has left, to be rewritten.
fn select_parts(layout: &Layout<'_>) -> Option<Selection> {
    let parts = layout.runs.iter().map(|run| {
        let files = run.files.iter().filter(|file| file.is_part && !file.busy);
        (run.level, files.map(|file| file.id).collect::<Vec<FileId>>())
    });
    let (level, inputs) = parts.into_iter().find(|(_, inputs)| !inputs.is_empty())?;
    Some(Selection { inputs, action: Action::merge(level), reason: Reason::Split })
}

/// Selects all files, unless some of them are being compacted.
fn select_all(
    layout: &Layout<'_>,
    options: &CompactionOptions,
    reason: Reason,
    occasion: &SelectionInputs,
) -> Option<Selection> {
    if layout.runs.is_empty() || layout.files().any(|file| file.busy) {
        return None;
    }
    let action = match &options.policy {
        CompactionPolicy::Leveled(_) => Action::merge(leveled::LAST_LEVEL),
        CompactionPolicy::DateTiered(tiered) => {
            let cuts = date_tiered::cuts(layout, tiered, occasion.now_micros);
            Action::Merge { level: 0, cuts }
        }
        _ => Action::merge(0),
    };
    Some(Selection { inputs: layout.ids(0..layout.runs.len()), action, reason })
}

/// Returns whether the oldest file is older than the period, and a merge of all would have an
/// effect.
fn major_is_due(
    layout: &Layout<'_>,
    options: &CompactionOptions,
    occasion: &SelectionInputs,
) -> bool {
    let Some(period) = options.major_period else { return false };
    let Some(oldest) = layout.files().min_by_key(|file| (file.created_micros, file.id)) else {
        return false;
    };
    let gains = layout.runs.len() > 1
        || layout.files().any(|f| f.marker_count > 0 || f.min_timestamp < occasion.expiry);
    let period = i64::try_from(period.as_micros()).unwrap_or(i64::MAX);
    let reach = i128::from(period) * i128::from(options.major_jitter_percent) / 100;
    // Derived from the file, so that repeated calls give the same answer: from -reach to +reach.
    let spread = oldest.id.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let moved = i128::from(spread) * (2 * reach) / i128::from(u32::MAX) - reach;
    let age = i128::from(occasion.now_micros) - i128::from(oldest.created_micros);
    gains && age > i128::from(period) + moved
}

/// Returns the priority of compactions of a store: the number of runs left before writers wait.
/// Negative when they wait.
pub fn priority(layout: &Layout<'_>, options: &CompactionOptions) -> i64 {
    let burdens = layout.runs.iter().filter(|run| run.level == 0).count();
    i64::from(options.blocking_files) - burdens as i64
}
