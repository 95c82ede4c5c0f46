//! Division of a region: split row, scan partitions, and the metrics for automatic splits.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Duration;

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

    /// Returns a row in the middle of the largest file of the largest family that has two rows, or
    /// of the files; `None` if the region has fewer than two rows in files. Not its first row.
    pub(crate) fn middle_row(&self) -> Result<Option<Vec<u8>>> {
        let families = self.families.load_full();
        let views: Vec<_> = families.iter().map(|family| family.view()).collect();
        let Some(largest) = views.iter().max_by_key(|view| file_bytes(view)) else {
            return Ok(None);
        };
        let mut files: Vec<_> = largest.files().collect();
        files.sort_by_key(|live| std::cmp::Reverse(live.file.byte_count()));
        for live in files {
            if let Some(row) = live.file.middle_row()?
                && row.as_slice() > self.start()
            {
                return Ok(Some(row));
            }
        }
        // Each file has one row.
        let files = views.iter().flat_map(|view| view.files());
        let mut rows: Vec<&[u8]> =
            files.map(|live| live.file.properties().first_row.as_slice()).collect();
        rows.retain(|row| self.rows().contains(row));
        rows.sort_unstable();
        rows.dedup();
        Ok(rows.get(rows.len().max(2) / 2).map(|row| row.to_vec()))
    }
}
