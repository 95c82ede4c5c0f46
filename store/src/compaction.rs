//! Compaction: which files to merge, and the loop that flush and compaction share.
//!
//! Files are ordered by sequence, oldest first, and only neighbours are merged, so that the
//! sequences of a store's files never overlap ([`crate::scan::retention`] relies on it).

use std::ops::Range;

use crate::cell::{KeyParts, compare_keys, row_of};
use crate::error::Result;
use crate::file::FileWriter;
use crate::scan::merge::Cursor;
use crate::scan::retention::{Retention, Verdict};

/// HBase's exploring policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exploring {
    /// Files merged at least.
    pub min_files: usize,
    /// Files merged at most.
    pub max_files: usize,
    /// A file joins only if it is no larger than this many times the others together.
    pub ratio: f64,
    /// Files that are smaller together are merged whatever the ratio.
    pub min_bytes: u64,
    /// Files at which the smallest set is merged even if no set is in ratio.
    pub blocking_files: usize,
}

impl Exploring {
    /// Returns the policy with HBase's defaults; `min_bytes` is the size of a flush.
    pub fn new(min_bytes: u64) -> Exploring {
        Exploring { min_files: 3, max_files: 10, ratio: 1.2, min_bytes, blocking_files: 16 }
    }

    /// Returns the files to merge, as a range of `sizes` (in bytes, oldest first): of all runs of
    /// neighbours in ratio the one with the most files, then the smallest. `None` if there is none.
    pub fn select(&self, sizes: &[u64]) -> Option<Range<usize>> {
        let mut best: Option<(Range<usize>, u64)> = None;
        let mut smallest: Option<(Range<usize>, u64)> = None;
        for start in 0..sizes.len() {
            for end in start + self.min_files..=sizes.len().min(start + self.max_files) {
                let window = &sizes[start..end];
                let total: u64 = window.iter().sum();
                if smallest.as_ref().is_none_or(|(_, bytes)| total < *bytes) {
                    smallest = Some((start..end, total));
                }
                if total >= self.min_bytes && !self.in_ratio(window, total) {
                    continue;
                }
                let better = best.as_ref().is_none_or(|(range, bytes)| {
                    window.len() > range.len() || (window.len() == range.len() && total < *bytes)
                });
                if better {
                    best = Some((start..end, total));
                }
            }
        }
        let stuck = sizes.len() >= self.blocking_files;
        best.or(smallest.filter(|_| stuck)).map(|(range, _)| range)
    }

    fn in_ratio(&self, window: &[u64], total: u64) -> bool {
        window.iter().all(|&size| size as f64 <= (total - size) as f64 * self.ratio)
    }
}

/// Streams what retention keeps of a source into a file, and returns the number of cells read.
pub fn rewrite(
    source: &mut impl Cursor,
    retention: &mut Retention,
    writer: &mut FileWriter,
) -> Result<u64> {
    let mut cells_in = 0;
    let mut previous: Vec<u8> = Vec::new();
    while let Some(key) = source.key() {
        // The same cell in two sources: once is enough.
        let is_first = previous.is_empty();
        if is_first || compare_keys(&previous, key).is_ne() {
            cells_in += 1;
            if is_first || row_of(&previous) != row_of(key) {
                retention.start_row();
            }
            let keep =
                KeyParts::decode(key).is_some_and(|parts| retention.judge(&parts) == Verdict::Keep);
            if keep {
                writer.add(key, source.value())?;
            }
            previous.clear();
            previous.extend_from_slice(key);
        }
        source.advance()?;
    }
    Ok(cells_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exploring_takes_the_most_files_in_ratio() {
        let policy = Exploring::new(10);
        assert_eq!(policy.select(&[100, 100]), None);
        assert_eq!(policy.select(&[100, 100, 100]), Some(0..3));
        // The old large file is left alone.
        assert_eq!(policy.select(&[1000, 20, 20, 20]), Some(1..4));
        assert_eq!(policy.select(&[1000, 300, 90, 27]), None);
        // Small ones are merged whatever the ratio.
        assert_eq!(policy.select(&[6, 1, 1]), Some(0..3));
        assert_eq!(policy.select(&[10; 25]).map(|range| range.len()), Some(10));
        // Too many files, none in ratio: the smallest set.
        let stuck: Vec<u64> = (0..16).map(|n| 4_u64.pow(20 - n)).collect();
        assert_eq!(policy.select(&stuck), Some(13..16));
    }
}
