//! HBase's exploring policy: of all windows of adjacent runs in ratio it selects the one with the
//! most runs, then the smallest.

use std::ops::Range;

use crate::descriptor::ExploringOptions;

/// Factor by which a window must be better to be preferred when there are too many runs.
const REPLACE_IF_BETTER_BY: f64 = 1.05;

/// A run as seen by the policy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) byte_count: u64,
    /// True if it cannot be selected now.
    pub(super) barred: bool,
}

/// Parameters of a selection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) options: ExploringOptions,
    pub(super) off_peak: bool,
    /// Size below which the ratio is ignored.
    pub(super) min_bytes: u64,
    /// Number of runs at which writers wait.
    pub(super) blocking_files: usize,
}

/// Returns the runs to merge, as a range of `runs`, oldest first. `None` if there are none.
pub(super) fn select(runs: &[Candidate], rules: &Rules) -> Option<Range<usize>> {
    let options = &rules.options;
    let stuck = runs.len() >= rules.blocking_files;
    let max_bytes = options.max_bytes.unwrap_or(u64::MAX);
    let mut best: Option<(Range<usize>, u64)> = None;
    let mut smallest: Option<(Range<usize>, u64)> = None;
    let (min, max) = (options.min_files as usize, options.max_files as usize);
    for start in 0..runs.len() {
        for end in start + min..=runs.len().min(start.saturating_add(max)) {
            let window = &runs[start..end];
            let total: u64 = window.iter().map(|run| run.byte_count).sum();
            if window.iter().any(|run| run.barred) || total > max_bytes {
                break;
            }
            if smallest.as_ref().is_none_or(|(_, bytes)| total < *bytes) {
                smallest = Some((start..end, total));
            }
            if total >= rules.min_bytes && !in_ratio(window, total, rules) {
                continue;
            }
            if best.as_ref().is_none_or(|best| is_better(best, (end - start, total), stuck)) {
                best = Some((start..end, total));
            }
        }
    }
    best.or(smallest.filter(|_| stuck)).map(|(range, _)| range)
}

fn in_ratio(window: &[Candidate], total: u64, rules: &Rules) -> bool {
    let percent = match rules.off_peak {
        false => rules.options.ratio_percent,
        true => rules.options.off_peak_ratio_percent,
    };
    window.iter().all(|run| {
        u128::from(run.byte_count) * 100 <= u128::from(total - run.byte_count) * u128::from(percent)
    })
}

fn is_better(best: &(Range<usize>, u64), (length, total): (usize, u64), stuck: bool) -> bool {
    if stuck && best.1 > 0 && total > 0 {
        // Many small runs first: that reduces their number with the least writing.
        let threshold = best.0.len() as f64 / best.1 as f64 * REPLACE_IF_BETTER_BY;
        return threshold < length as f64 / total as f64;
    }
    length > best.0.len() || (length == best.0.len() && total < best.1)
}
