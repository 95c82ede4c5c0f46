//! Reads the rows of a scan: region after region, and in each a join of its families by row.
//!
//! # Invariants
//!
//! 1. A scanner keeps its snapshot open, so that what it has still to read is not compacted away,
//!    and its regions, so that it goes on to the end of a table that was dropped meanwhile.
//! 2. In each region it reads one set of views.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::SmallVec;

use crate::cell::CellBatch;
use crate::descriptor::TableId;
use crate::error::{Error, Result};
use crate::family_store::{FamilyScanner, ReadSpec};
use crate::file::ColumnSlice;
use crate::mutation::Consistency;
use crate::read_path::{Caller, ReadPath, Source, StagedFamilies, count_rows, view_of};
use crate::region::{Region, RegionMap};
use crate::scan::Scan;
use crate::snapshot::Snapshot;

/// Bytes at which a batch ends.
const BATCH_BYTES: usize = 256 << 10;
/// Rows between two looks at the cancel flags, where a filter lets few rows through.
const ROWS_BETWEEN_CHECKS: usize = 512;

/// How a scanner reads; what it shares with others of its transaction.
pub(crate) struct ScanRules {
    /// The table, for errors.
    pub(crate) table: TableId,
    /// What all reads share.
    pub(crate) path: Arc<ReadPath>,
    /// Kept open.
    pub(crate) snapshot: Arc<Snapshot>,
    /// What is visible.
    pub(crate) spec: ReadSpec,
    /// The transaction's own cells.
    pub(crate) staged: StagedFamilies,
    /// Where reads may go.
    pub(crate) consistency: Consistency,
    /// Any of them set ends the scan.
    pub(crate) cancelled: SmallVec<[Arc<AtomicBool>; 2]>,
}

/// Reads the rows of a scan, batch by batch. Keeps the snapshot it was opened with.
pub struct Scanner {
    rules: ScanRules,
    scan: Scan,
    map: Arc<RegionMap>,
    /// Indexes of the regions still to be opened.
    ahead: std::ops::Range<usize>,
    current: Option<RegionScanner>,
    rows_left: u64,
    /// The row at which a join of families stands.
    row: Vec<u8>,
    /// Rows read in a row before columns are looked for again.
    row_run: usize,
}

/// What [`Scanner::next_columns`] came to.
pub enum ScanStep {
    /// Some rows, column by column.
    Columns(ColumnSlice),
    /// Some rows, in the batch.
    Rows,
    /// Nothing: there are no more rows.
    End,
}

/// The part of a scan in one region.
struct RegionScanner {
    index: usize,
    region: Arc<Region>,
    source: Source,
    families: SmallVec<[FamilyScanner; 1]>,
}

impl Scanner {
    /// Opens a scanner over the regions of its range.
    pub(crate) fn open(map: Arc<RegionMap>, scan: Scan, rules: ScanRules) -> Scanner {
        let nothing = scan.stop.as_ref().is_some_and(|stop| *stop <= scan.start);
        let ahead = match nothing {
            true => 0..0,
            false => map.overlapping(&scan.start, scan.stop.as_deref()),
        };
        Scanner {
            rows_left: scan.limit.unwrap_or(u64::MAX),
            rules,
            scan,
            map,
            ahead,
            current: None,
            row: Vec::new(),
            row_run: 1,
        }
    }

    /// Replaces the content of `out` by the next rows, at most `row_limit` and about 256 KiB of
    /// them. Returns whether there were any.
    pub fn next_batch(&mut self, row_limit: usize, out: &mut CellBatch) -> Result<bool> {
        out.clear();
        let row_limit = row_limit.min(usize::try_from(self.rows_left).unwrap_or(usize::MAX));
        while out.row_count() < row_limit && out.byte_count() < BATCH_BYTES {
            self.check_cancelled()?;
            if self.current.is_none() && !self.open_next_region()? {
                break;
            }
            let ended = self.fill(row_limit, out)?;
            if ended {
                self.current = None;
            }
            if out.is_empty() {
                // What the filter refused may have left bytes behind.
                out.clear();
            }
        }
        self.rules.snapshot.check()?;
        self.rows_left -= out.row_count() as u64;
        Ok(!out.is_empty())
    }

    /// Reads on, block by block where rows lie in columnar blocks and nothing hides or changes them,
    /// row by row elsewhere: either gives some rows as columns, or replaces the content of `out` by
    /// some rows. At most `row_limit`, in the order of the scan.
    ///
    /// # Errors
    ///
    /// As [`Scanner::next_batch`].
    pub fn next_columns(&mut self, row_limit: usize, out: &mut CellBatch) -> Result<ScanStep> {
        out.clear();
        let row_limit = row_limit.min(usize::try_from(self.rows_left).unwrap_or(usize::MAX));
        if row_limit == 0 {
            return Ok(ScanStep::End);
        }
        loop {
            self.check_cancelled()?;
            if self.current.is_none() && !self.open_next_region()? {
                return Ok(ScanStep::End);
            }
            if let Some(slice) = self.take_columns(row_limit)? {
                self.row_run = 1;
                self.rows_left -= slice.row_count() as u64;
                return Ok(ScanStep::Columns(slice));
            }
            // The longer there are no columns, the less often they are looked for.
            let ended = self.fill(row_limit.min(self.row_run), out)?;
            self.row_run = (self.row_run * 2).min(ROWS_BETWEEN_CHECKS);
            if ended {
                self.current = None;
                self.row_run = 1;
            }
            if !out.is_empty() {
                self.rows_left -= out.row_count() as u64;
                return Ok(ScanStep::Rows);
            }
            out.clear();
        }
    }

    fn take_columns(&mut self, row_limit: usize) -> Result<Option<ColumnSlice>> {
        if self.scan.filter.is_some() {
            return Ok(None);
        }
        let Some(mut current) = self.current.take() else { return Ok(None) };
        let held = matches!(current.source, Source::Primary)
            && matches!(self.enter(&current.region)?, Source::Replica(_));
        let slice = match current.families.as_mut_slice() {
            [only] if !held => only.take_columns(row_limit)?,
            _ => None,
        };
        let row_count = slice.as_ref().map_or(0, ColumnSlice::row_count);
        count_rows(&current.region, &current.source, row_count as u64);
        self.current = Some(current);
        Ok(slice)
    }

    /// Moves on so that the next row is at or after `row` (at or before it in reverse): the hint of
    /// a skip scan.
    pub fn seek(&mut self, row: &[u8]) -> Result<()> {
        let ahead_of_range = match self.scan.reverse {
            false => row <= self.scan.start.as_slice(),
            true => self.scan.stop.as_deref().is_some_and(|stop| row >= stop),
        };
        if ahead_of_range {
            return Ok(());
        }
        let target = self.map.index_of(row);
        if let Some(current) = &mut self.current {
            let passed =
                if self.scan.reverse { current.index < target } else { current.index > target };
            if passed {
                return Ok(());
            }
            if current.index == target {
                return current.families.iter_mut().try_for_each(|family| family.seek(row));
            }
            self.current = None;
        }
        if self.scan.reverse {
            self.ahead.end = self.ahead.end.min(target + 1).max(self.ahead.start);
            // The row itself is still wanted, so the range stops right after it.
            let mut stop = row.to_vec();
            stop.push(0);
            self.scan.stop = Some(stop);
        } else {
            self.ahead.start = self.ahead.start.max(target).min(self.ahead.end);
            self.scan.start = row.to_vec();
        }
        Ok(())
    }

    fn check_cancelled(&self) -> Result<()> {
        match self.rules.cancelled.iter().any(|flag| flag.load(Ordering::Relaxed)) {
            true => Err(Error::Cancelled),
            false => Ok(()),
        }
    }

    /// Opens the next region; returns whether there was one.
    fn open_next_region(&mut self) -> Result<bool> {
        let next = if self.scan.reverse { self.ahead.next_back() } else { self.ahead.next() };
        let Some(index) = next else { return Ok(false) };
        let region = Arc::clone(&self.map.all()[index]);
        let source = self.enter(&region)?;
        let mut spec = self.rules.spec;
        if let Source::Replica(snapshot) = &source {
            spec.snapshot = snapshot.sequence();
        }
        // Staged cells know no regions, so the range must end where the region does.
        let start = self.scan.start.as_slice().max(region.start());
        let stop = match (self.scan.stop.as_deref(), region.stop()) {
            (Some(stop), Some(end)) => Some(stop.min(end)),
            (stop, end) => stop.or(end),
        };
        let mut families = SmallVec::new();
        let mut open = |family: usize| -> Result<()> {
            let staged = self.rules.staged.get(family).cloned().flatten();
            let view = view_of(&region, &source, family)?;
            families.push(view.scanner(start, stop, self.scan.reverse, &spec, staged)?);
            Ok(())
        };
        match &self.scan.families {
            None => (0..region.family_count()).try_for_each(&mut open)?,
            Some(list) => list.iter().try_for_each(|family| open(usize::from(*family)))?,
        }
        self.current = Some(RegionScanner { index, region, source, families });
        Ok(true)
    }

    fn enter(&self, region: &Region) -> Result<Source> {
        let flags: SmallVec<[&AtomicBool; 2]> =
            self.rules.cancelled.iter().map(|flag| &**flag).collect();
        let caller = Caller { consistency: self.rules.consistency, cancelled: &flags };
        let snapshot = self.rules.snapshot.sequence();
        self.rules.path.enter(region, self.rules.table, snapshot, &caller)
    }

    /// Adds rows of the current region to `out`; returns whether the region has no more.
    fn fill(&mut self, row_limit: usize, out: &mut CellBatch) -> Result<bool> {
        let rows_before = out.row_count();
        let Some(mut current) = self.current.take() else { return Ok(true) };
        if matches!(current.source, Source::Primary) {
            // A region may have been held since the last batch; a replica is not left again.
            if let Source::Replica(_) = self.enter(&current.region)? {
                return self.resume_on_replica(&mut current);
            }
        }
        let mut ended = false;
        for _ in 0..ROWS_BETWEEN_CHECKS {
            if out.row_count() >= row_limit || out.byte_count() >= BATCH_BYTES {
                break;
            }
            let read = match current.families.as_mut_slice() {
                [only] => read_row(only, out)?,
                families => join_row(families, self.scan.reverse, &mut self.row, out)?,
            };
            if !read {
                ended = true;
                break;
            }
            if let Some(filter) = &self.scan.filter {
                let keep = filter.keep(&out.row(out.row_count() - 1))?;
                if !keep {
                    out.cancel_row();
                }
            }
        }
        count_rows(&current.region, &current.source, (out.row_count() - rows_before) as u64);
        self.current = Some(current);
        Ok(ended)
    }

    /// The primary stopped answering in the middle of the region: goes on at a replica, from where
    /// the scan stands.
    fn resume_on_replica(&mut self, current: &mut RegionScanner) -> Result<bool> {
        let mut next: Option<Vec<u8>> = None;
        for family in &mut current.families {
            if let Some(row) = family.peek_row()? {
                let nearer = next.as_deref().is_none_or(|best| match self.scan.reverse {
                    false => row < best,
                    true => row > best,
                });
                if nearer {
                    next = Some(row.to_vec());
                }
            }
        }
        let Some(row) = next else { return Ok(true) };
        match self.scan.reverse {
            true => self.ahead.end = current.index + 1,
            false => self.ahead.start = current.index,
        }
        self.seek(&row)?;
        // Opened by the next turn of the caller's loop, at a replica if the primary is still held.
        Ok(true)
    }
}

/// Reads the next row of a single family; returns whether there was one.
fn read_row(family: &mut FamilyScanner, out: &mut CellBatch) -> Result<bool> {
    match family.peek_row()? {
        None => return Ok(false),
        Some(row) => out.start_row(row),
    }
    family.read_row(out)?;
    Ok(true)
}

/// Reads the next row of several families; returns whether there was one.
fn join_row(
    families: &mut [FamilyScanner],
    reverse: bool,
    row: &mut Vec<u8>,
    out: &mut CellBatch,
) -> Result<bool> {
    let mut found = false;
    for family in families.iter_mut() {
        let Some(next) = family.peek_row()? else { continue };
        let nearer = if reverse { next > row.as_slice() } else { next < row.as_slice() };
        if !found || nearer {
            row.clear();
            row.extend_from_slice(next);
            found = true;
        }
    }
    if !found {
        return Ok(false);
    }
    out.start_row(row);
    for family in families.iter_mut() {
        if family.peek_row()? == Some(row.as_slice()) {
            family.read_row(out)?;
        }
    }
    Ok(true)
}
