//! HBase's date-tiered policy: time windows that become wider with age; only runs of one window
//! are merged with each other.
//!
//! A run belongs to the window of its newest cell, but never to a newer one than the later runs,
//! so that the runs of a window are adjacent regardless of the clients' timestamps. A major
//! compaction keeps the windows separate: the sequence of a cell shows the window of the run that
//! it came from. Files of an old window then expire as a whole.

use std::ops::Range;

use crate::cell::Sequence;
use crate::compaction::exploring::{self, Candidate, Rules};
use crate::compaction::layout::Layout;
use crate::descriptor::DateTieredOptions;

/// A time window: `number` windows of this width after 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    width_micros: i64,
    number: i64,
}

impl Window {
    fn newest(now_micros: i64, options: &DateTieredOptions) -> Window {
        let width_micros =
            i64::try_from(options.base_window.as_micros()).unwrap_or(i64::MAX).max(1);
        Window { width_micros, number: now_micros.div_euclid(width_micros) }
    }

    fn start(self) -> i64 {
        self.number.saturating_mul(self.width_micros)
    }

    /// Returns the preceding window: of the same width, or wider if a tier is full.
    fn earlier(self, cutoff_micros: i64, options: &DateTieredOptions) -> Window {
        let per_tier = i64::from(options.windows_per_tier);
        if self.start() < cutoff_micros || self.number.rem_euclid(per_tier) > 0 {
            return Window { number: self.number - 1, ..self };
        }
        let number = self.number.div_euclid(per_tier) - 1;
        match self.width_micros.checked_mul(per_tier) {
            Some(width_micros) => Window { width_micros, number },
            None => Window { number: self.number - 1, ..self },
        }
    }
}

/// Returns the runs of each window, newest window first.
fn windows(layout: &Layout<'_>, now_micros: i64, options: &DateTieredOptions) -> Vec<Range<usize>> {
    let cutoff = options.max_age.map_or(i64::MIN, |age| {
        now_micros.saturating_sub(i64::try_from(age.as_micros()).unwrap_or(i64::MAX))
    });
    let mut newest = i64::MIN;
    // An earlier run is not newer than a later one.
    let times: Vec<i64> = layout
        .runs
        .iter()
        .map(|run| {
            newest = newest.max(run.max_timestamp().0);
            newest
        })
        .collect();
    let mut window = Window::newest(now_micros, options);
    let mut ranges = Vec::new();
    let mut end = times.len();
    while end > 0 {
        // In the distant past windows are skipped by tiers, not one by one.
        while times[end - 1] < window.start() && window.start() > i64::MIN / 2 {
            window = match times[end - 1] < cutoff && window.start() < cutoff {
                true => Window { number: times[end - 1].div_euclid(window.width_micros), ..window },
                false => window.earlier(cutoff, options),
            };
        }
        let start = times[..end].iter().rposition(|time| *time < window.start());
        let start = start.map_or(0, |last| last + 1);
        ranges.push(start..end);
        end = start;
    }
    ranges
}

/// Returns the runs to merge: those of the newest window with enough runs.
pub(super) fn select(
    layout: &Layout<'_>,
    options: &DateTieredOptions,
    rules: &Rules,
    now_micros: i64,
) -> Option<Range<usize>> {
    let incoming_start = Window::newest(now_micros, options).start();
    for range in windows(layout, now_micros, options) {
        let candidates: Vec<Candidate> = layout.runs[range.clone()]
            .iter()
            .map(|run| Candidate { byte_count: run.byte_count(), barred: run.is_busy() })
            .collect();
        let newest = layout.runs[range.clone()].iter().map(|run| run.max_timestamp().0).max();
        let mut rules = *rules;
        if newest.is_some_and(|newest| newest >= incoming_start) {
            rules.options.min_files = options.incoming_files;
            rules.options.max_files = rules.options.max_files.max(options.incoming_files);
        }
        if let Some(found) = exploring::select(&candidates, &rules) {
            return Some(range.start + found.start..range.start + found.end);
        }
    }
    None
}

/// Returns the sequences that end each window except the newest: the cuts of a major compaction.
pub(super) fn cuts(
    layout: &Layout<'_>,
    options: &DateTieredOptions,
    now_micros: i64,
) -> Vec<Sequence> {
    let mut ends: Vec<Sequence> = windows(layout, now_micros, options)
        .into_iter()
        .skip(1)
        .filter_map(|range| layout.runs[range].iter().map(|run| run.max_sequence()).max())
        .collect();
    ends.sort();
    ends.dedup();
    ends
}
