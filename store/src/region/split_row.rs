//! Division of a region: split row, scan partitions, and the metrics for automatic splits.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::descriptor::SplitPolicy;
use crate::error::Result;
use crate::read_view::ReadView;
use crate::region::{Region, SplitFacts};
use crate::run::Run;

/// Maximal number of scan partitions of a region.
const PIECES_MAX: u64 = 64;

fn file_bytes(view: &ReadView) -> u64 {
    view.files().map(|live| live.file.byte_count()).sum()
}

impl Region {
    /// Returns whether it has half-files of an earlier split.
    pub(crate) fn has_parts(&self) -> bool {
        let families = self.families.load();
        families.iter().any(|family| family.view().files().any(|live| live.file.is_part()))
    }

    /// Returns the metrics for the split policy, as if it were the only region of its table.
    pub(crate) fn split_facts(&self, now_micros: i64) -> SplitFacts {
        let families = self.families.load();
        let age = now_micros.saturating_sub(self.opened_micros);
        let counts = (self.rows_blocked.load(Ordering::Relaxed), self.load.totals().rows_written);
        SplitFacts {
            region: self.id,
            bytes: families.iter().map(|family| file_bytes(&family.view())).max().unwrap_or(0),
            table_regions: 1,
            flush_bytes: self.flush_bytes(),
            age: Duration::from_micros(u64::try_from(age).unwrap_or(0)),
            blocked_share: self.blocked_share.lock().note(now_micros, counts),
        }
    }

    /// Returns rows that divide the range from `start` to before `stop` into partitions of about
    /// `piece_bytes` bytes of the largest run of files, ascending; fewer if there would be too
    /// many. Costs an index look-up for each.
    pub(crate) fn piece_starts(
        &self,
        start: &[u8],
        stop: Option<&[u8]>,
        piece_bytes: u64,
    ) -> Result<Vec<Vec<u8>>> {
        let families = self.families.load();
        let views: Vec<_> = families.iter().map(|family| family.view()).collect();
        let runs = views.iter().flat_map(|view| &view.runs);
        let bytes = |run: &Run| run.files().iter().map(|live| live.file.byte_count()).sum::<u64>();
        let Some(largest) = runs.max_by_key(|run| bytes(run)) else { return Ok(Vec::new()) };
        if bytes(largest) < 2 * piece_bytes {
            return Ok(Vec::new());
        }
        let files = largest.files().iter().map(|live| &live.file);
        let files = files.filter(|file| {
            let properties = file.properties();
            properties.last_row.as_slice() >= start
                && stop.is_none_or(|stop| properties.first_row.as_slice() < stop)
        });
        let spans = files.map(|file| Ok((file, file.offsets(start, stop)?)));
        let spans: Vec<(_, Range<u64>)> = spans.collect::<Result<_>>()?;
        let total: u64 = spans.iter().map(|(_, span)| span.end - span.start).sum();
        let step = piece_bytes.max(total / PIECES_MAX).max(1);
        let mut starts: Vec<Vec<u8>> = Vec::new();
        let (mut passed, mut next) = (0, step);
        for (file, span) in spans {
            let length = span.end - span.start;
            while next < passed + length {
                let row = file.row_at(span.start + (next - passed))?;
                let ahead = |row: &Vec<u8>| starts.last().is_none_or(|last| last < row);
                starts.extend(row.filter(ahead));
                next += step;
            }
            passed += length;
        }
        Ok(starts)
    }

    /// Returns the row at which a policy splits the region, near the middle of its bytes: the
    /// median of the middles of its files, weighted by their sizes. `None` if all its rows in files
    /// are in one group of the policy, or there are fewer than two.
    ///
    /// A file whose middle is in the first group of the region contributes the group of its last
    /// row.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`](crate::Error::Corrupt) if it lacks a file; errors of reading a file.
    pub(crate) fn split_row(&self, policy: &SplitPolicy) -> Result<Option<Vec<u8>>> {
        self.check_whole()?;
        let families = self.families.load_full();
        let views: Vec<_> = families.iter().map(|family| family.view()).collect();
        let files = || views.iter().flat_map(|view| view.files()).map(|live| &live.file);
        let first_rows = files().map(|file| file.properties().first_row.as_slice());
        let Some(first) = first_rows.filter(|row| self.rows().contains(row)).min() else {
            return Ok(None);
        };
        let mut candidates: Vec<(Vec<u8>, u64)> = Vec::new();
        for file in files() {
            let rows = [file.middle_row()?, Some(file.properties().last_row.clone())];
            let mut points = rows.into_iter().flatten().map(|row| policy.point(row));
            let point =
                points.find(|point| point.as_slice() > first && self.rows().contains(point));
            candidates.extend(point.map(|point| (point, file.byte_count())));
        }
        candidates.sort_unstable();
        let total: u64 = candidates.iter().map(|(_, weight)| weight).sum();
        let mut counted = 0;
        let median = candidates.into_iter().find(|(_, weight)| {
            counted += weight;
            counted >= total.div_ceil(2)
        });
        Ok(median.map(|(point, _)| point))
    }
}
