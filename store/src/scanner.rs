//! Scanner over the rows of a scan: region by region, and in each a join of its families by row.
//!
//! # Invariants
//!
//! 1. A scanner keeps its snapshot open, so that the remaining versions are not compacted away,
//!    and its regions, so that it can continue to the end of a table that is dropped meanwhile.
//! 2. In each region it reads one set of views.
//! 3. There is one filter for the whole scan, so that its counts are correct.
//! 4. All regions are read at one sequence, which the first one fixes.
//! 5. While `inside` is set, `row` was begun and its families are in it or behind it.
//!
//! The types ensure 1 to 3, and the snapshot 4. Debug assertions check 5, and the order of the rows
//! of a batch.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::SmallVec;

use crate::admission::count_rows;
use crate::cell::{CellBatch, Sequence};
use crate::descriptor::colocation::Partitioning;
use crate::descriptor::{RowRange, TableDescriptor, TableId};
use crate::error::{Error, Result};
use crate::family_store::{FamilyScanner, ReadSpec, ReadView};
use crate::file::ColumnSlice;
use crate::mutation::Consistency;
use crate::observer::{Flow, Hooks, RegionChain};
use crate::quota::{Access, Charged, charge};
use crate::read_path::{BatchMark, check_families, count_read, view_of};
use crate::read_path::{ReadCaller, ReadPath, ReadTarget, RequiredFamilies};
use crate::read_statistics::RegionMark;
use crate::region::{MapSection, Region, RegionMap, Volume};
use crate::scan::filter::run::{FilterRun, RowAnswer};
use crate::scan::merge::RowOrder;
use crate::scan::plain_rows::BatchLimits;
use crate::scan::row_versions::VersionReader;
use crate::scan::rows::{FamilyRules, ReadCounts, RowEnd, RowOutput};
use crate::scan::{CellPosition, CellWindow, RowVersions, Scan, ScanPosition, TimeRange};
use crate::serializable::ReadTracker;
use crate::snapshot::Snapshot;
use crate::source::RowSpan;
use crate::staged::StagedFamilies;

/// Rows between two checks of the cancel flags, if a filter passes few rows.
const ROWS_BETWEEN_CHECKS: usize = 512;

/// Parameters of a scanner, which it shares with others of its transaction.
pub(crate) struct ScanRules {
    /// The table, for errors.
    pub(crate) table: TableId,
    /// Context of all reads.
    pub(crate) path: Arc<ReadPath>,
    /// Snapshot, held open.
    pub(crate) snapshot: Arc<Snapshot>,
    /// Read specification.
    pub(crate) spec: ReadSpec,
    /// The transaction's staged cells.
    pub(crate) staged: StagedFamilies,
    /// Copies of a region that may serve reads.
    pub(crate) consistency: Consistency,
    /// Flags that end the scan when set.
    pub(crate) cancelled: SmallVec<[Arc<AtomicBool>; 2]>,
    /// Quotas that the scan is charged to.
    pub(crate) charged: Charged,
    /// Families that a row requires.
    pub(crate) required: RequiredFamilies,
    /// The observers of the table, if they observe scans.
    pub(crate) observers: Option<Arc<RegionChain>>,
    /// Tracker of the ranges read, at SERIALIZABLE.
    pub(crate) tracker: Option<Arc<ReadTracker>>,
}

/// The part of a scan's range that is not tracked yet.
struct TrackedRange {
    tracker: Arc<ReadTracker>,
    start: Vec<u8>,
    stop: Option<Vec<u8>>,
}

/// A scan with observers.
struct ObservedScan {
    chain: Arc<RegionChain>,
    scan: Scan,
    /// Rows that may still be returned, if observers may remove some; otherwise the scanner
    /// counts them.
    rows_left: Option<u64>,
}

impl Drop for ObservedScan {
    fn drop(&mut self) {
        self.chain.post_scanner_close(&self.scan);
    }
}

impl ScanRules {
    /// Charges the quotas for a volume.
    fn charge(&self, volume: Volume) {
        charge(&self.charged, Access::Read, volume.bytes, &*self.path.options.env);
    }
}

/// Scanner over the rows of a scan, batch by batch. Holds the snapshot it was opened with.
pub struct Scanner {
    rules: ScanRules,
    scan: Scan,
    order: RowOrder,
    /// The remaining range: from `start` to before `stop`.
    start: Vec<u8>,
    stop: Option<Vec<u8>>,
    map: Arc<RegionMap>,
    /// Indexes of the sections still to be opened.
    ahead: std::ops::Range<usize>,
    current: Option<RegionScanner>,
    filter: Option<FilterRun>,
    /// Number of rows that may still be begun.
    rows_left: u64,
    /// The current row.
    row: Vec<u8>,
    /// The family, by its position in the list, in which a partial `row` ended, and the last
    /// cell.
    inside: Option<(usize, CellPosition)>,
    /// The cell after which the first row continues.
    resume: Option<CellPosition>,
    /// True if a part of `row` was returned, by this scan or by the one that it continues.
    begun: bool,
    /// Cost of the completed regions.
    counts: ReadCounts,
    /// Number of rows to read before columns are tried again.
    row_run: usize,
    watched: Option<ObservedScan>,
    tracked: Option<TrackedRange>,
}

/// Result of [`Scanner::next_columns`].
pub enum ScanStep {
    /// Some rows, column by column.
    Columns(ColumnSlice),
    /// Some rows, in the batch.
    Rows,
    /// There are no more rows.
    End,
}

/// The part of a scan in one section of the map: a region, or those of a colocated table.
struct RegionScanner {
    /// The index of the section.
    index: usize,
    /// The region; of a section of several, the first one.
    region: Arc<Region>,
    /// The other regions of the section.
    others: Vec<Arc<Region>>,
    source: ReadTarget,
    families: Vec<FamilyScanner>,
    /// The base rows of the scan, if the regions have others too.
    base_rows: Option<RowRange>,
    /// Reader of row versions, if the scan returns them; the families return raw cells then.
    versions: Option<VersionReader>,
}

impl RegionScanner {
    fn regions(&self) -> impl Iterator<Item = &Arc<Region>> {
        std::iter::once(&self.region).chain(&self.others)
    }
}

/// Outcome for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowOutcome {
    /// It was returned, completely or partly, or rejected.
    Taken,
    /// There was none in the region.
    RegionEnd,
    /// No later row can match.
    ScanEnd,
}

impl Scanner {
    /// Opens a scanner over the regions of its range.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if the scan names unknown families or contradicts itself.
    pub(crate) fn open(
        map: Arc<RegionMap>,
        mut scan: Scan,
        table: &TableDescriptor,
        rules: ScanRules,
    ) -> Result<Scanner> {
        let order = if scan.reverse { RowOrder::Reverse } else { RowOrder::Forward };
        let filter = match &scan.filter {
            Some(filter) => Some(FilterRun::new(filter, &table.families, order)?),
            None => None,
        };
        check(&scan, filter.as_ref(), table)?;
        if scan.base_rows.is_some() && !map.is_colocated() {
            let why = format!("table \"{}\" is not colocated with another one", table.name);
            return Err(Error::InvalidRequest(why));
        }
        let wanted = rules.required.with(scan.families.as_deref());
        scan.families = wanted.map(Cow::into_owned);
        let (start, stop) = scan.bounds();
        let tracked = rules.tracker.clone().map(|tracker| {
            let (start, stop) = (start.clone(), stop.clone());
            TrackedRange { tracker, start, stop }
        });
        let nothing = stop.as_ref().is_some_and(|stop| *stop <= start);
        let ahead = if nothing { 0..0 } else { map.overlapping(&start, stop.as_deref()) };
        let resume = match &scan.position {
            ScanPosition::Inside(position) => Some(position.clone()),
            _ => None,
        };
        let watched = rules.observers.clone().map(|chain| {
            let filters = chain.wants(Hooks::SCAN_NEXT) && scan.batch.is_none();
            let rows_left = filters.then(|| scan.limit.unwrap_or(u64::MAX));
            ObservedScan { chain, scan: scan.clone(), rows_left }
        });
        if let Some(watched) = &watched {
            watched.chain.post_scanner_open(&watched.scan)?;
        }
        let counted = watched.as_ref().is_some_and(|watched| watched.rows_left.is_some());
        Ok(Scanner {
            rows_left: if counted { u64::MAX } else { scan.limit.unwrap_or(u64::MAX) },
            watched,
            rules,
            order,
            start,
            stop,
            map,
            ahead,
            current: None,
            filter,
            row: Vec::new(),
            inside: None,
            resume,
            begun: false,
            counts: ReadCounts::default(),
            row_run: 1,
            tracked,
            scan,
        })
    }

    /// Replaces the content of `out` by the next rows, or partial rows, at most `row_limit` and
    /// about [`Scan::batch_bytes`] of them. Returns whether there were any.
    pub fn next_batch(&mut self, row_limit: usize, out: &mut CellBatch) -> Result<bool> {
        match self.watched.take() {
            None => self.read_batch(row_limit, out),
            Some(mut watched) => {
                let read = self.next_watched(&mut watched, row_limit, out);
                self.watched = Some(watched);
                read
            }
        }
    }

    /// Reads the next batch with the hooks around it, repeatedly while they remove all rows.
    fn next_watched(
        &mut self,
        watched: &mut ObservedScan,
        row_limit: usize,
        out: &mut CellBatch,
    ) -> Result<bool> {
        loop {
            out.clear();
            let rows_left = watched.rows_left.unwrap_or(u64::MAX);
            let room = row_limit.min(usize::try_from(rows_left).unwrap_or(usize::MAX));
            if room == 0 {
                return Ok(false);
            }
            self.check_cancelled()?;
            let flow = watched.chain.pre_scanner_next(&watched.scan, out)?;
            let more = match flow {
                Flow::Bypass(()) => false,
                Flow::Proceed => {
                    let more = self.read_batch(room, out)?;
                    watched.chain.post_scanner_next(&watched.scan, out)?;
                    more
                }
            };
            if !out.is_empty() || !more {
                let rows = out.row_count() as u64;
                watched.rows_left = watched.rows_left.map(|left| left.saturating_sub(rows));
                return Ok(!out.is_empty());
            }
        }
    }

    fn read_batch(&mut self, row_limit: usize, out: &mut CellBatch) -> Result<bool> {
        out.clear();
        while out.row_count() < row_limit && !self.is_full(out) {
            self.check_cancelled()?;
            if self.current.is_none() && !self.open_next_region()? {
                break;
            }
            match self.fill(row_limit, out)? {
                RowOutcome::Taken => {}
                RowOutcome::RegionEnd => self.leave_region(),
                RowOutcome::ScanEnd => self.end(),
            }
        }
        self.rules.snapshot.check()?;
        debug_assert!(self.is_in_order(out), "the rows of a scan are in its order");
        self.track_rows(out);
        Ok(!out.is_empty())
    }

    /// Returns whether the rows of a batch are in the order of the scan; parts of one row follow
    /// each other.
    fn is_in_order(&self, out: &CellBatch) -> bool {
        let row = |index: usize| out.row(index);
        (1..out.row_count()).all(|index| match self.order {
            RowOrder::Forward => row(index - 1).key() <= row(index).key(),
            RowOrder::Reverse => row(index - 1).key() >= row(index).key(),
        })
    }

    /// Tracks the rows of a batch.
    fn track_rows(&self, out: &CellBatch) {
        if self.tracked.is_some() {
            let last = out.row_count().checked_sub(1).map(|last| out.row(last));
            self.track(last.as_ref().map(|row| row.key()));
        }
    }

    /// Tracks the range read so far: up to the last returned row; all of it if there are no more.
    /// A row that reached the limit is the last one that was read.
    fn track(&self, last: Option<&[u8]>) {
        let Some(TrackedRange { tracker, start, stop }) = &self.tracked else { return };
        let ended = self.current.is_none() && self.ahead.is_empty() && self.rows_left > 0;
        let (start, stop) = match (last, self.order) {
            (Some(last), RowOrder::Forward) if !ended => {
                (start.clone(), Some([last, &[0]].concat()))
            }
            (Some(last), RowOrder::Reverse) if !ended => (last.to_vec(), stop.clone()),
            (None, _) if self.rows_left == 0 => return,
            _ => (start.clone(), stop.clone()),
        };
        tracker.note_range(self.rules.table, start, stop);
    }

    /// Reads on, by block where rows are in columnar blocks and not hidden or changed by other
    /// sources, by row elsewhere: returns either some rows as columns, or replaces the content of
    /// `out` by some rows. At most `row_limit`, in the order of the scan.
    ///
    /// # Errors
    ///
    /// As [`Scanner::next_batch`].
    pub fn next_columns(&mut self, row_limit: usize, out: &mut CellBatch) -> Result<ScanStep> {
        let filters = |watched: &ObservedScan| watched.chain.wants(Hooks::SCAN_NEXT);
        if self.watched.as_ref().is_some_and(filters) {
            // Observers see rows.
            let some = self.next_batch(row_limit.min(ROWS_BETWEEN_CHECKS), out)?;
            return Ok(if some { ScanStep::Rows } else { ScanStep::End });
        }
        out.clear();
        while out.row_count() < row_limit {
            self.check_cancelled()?;
            if self.current.is_none() && !self.open_next_region()? {
                break;
            }
            if !self.may_take_columns() {
                let some = self.read_batch(row_limit, out)?;
                return Ok(if some { ScanStep::Rows } else { ScanStep::End });
            }
            if let Some(slice) = self.take_columns(row_limit)? {
                self.row_run = 1;
                self.rules.snapshot.check()?;
                self.rows_left -= slice.row_count() as u64;
                self.track_columns(&slice)?;
                return Ok(ScanStep::Columns(slice));
            }
            // The longer there are no columns, the less often they are tried.
            let turn = self.fill(row_limit.min(self.row_run), out)?;
            self.row_run = (self.row_run * 2).min(ROWS_BETWEEN_CHECKS);
            match turn {
                RowOutcome::Taken => {}
                RowOutcome::RegionEnd => {
                    self.leave_region();
                    self.row_run = 1;
                }
                RowOutcome::ScanEnd => self.end(),
            }
            if !out.is_empty() {
                self.rules.snapshot.check()?;
                self.track_rows(out);
                return Ok(ScanStep::Rows);
            }
        }
        self.track(None);
        Ok(ScanStep::End)
    }

    /// Tracks rows that are returned as columns.
    fn track_columns(&self, slice: &ColumnSlice) -> Result<()> {
        if self.tracked.is_none() {
            return Ok(());
        }
        let (mut keys, mut ends) = (Vec::new(), Vec::new());
        slice.append_row_keys([0, slice.row_count() - 1], &mut keys, &mut ends)?;
        let (first, last) = keys.split_at(ends.first().map_or(0, |end| *end as usize));
        self.track(Some(match self.order {
            RowOrder::Forward => first.max(last),
            RowOrder::Reverse => first.min(last),
        }));
        Ok(())
    }

    /// Returns whether rows of the current region may be returned as columns.
    fn may_take_columns(&self) -> bool {
        let families = self.current.as_ref().map(|current| current.families.as_slice());
        let is_newest = self.scan.row_versions == RowVersions::Newest;
        is_newest
            && self.filter.is_none()
            && self.base_rows().is_none()
            && matches!(families, Some([only]) if only.may_have_columns())
    }

    fn take_columns(&mut self, row_limit: usize) -> Result<Option<ColumnSlice>> {
        let row_limit = row_limit.min(usize::try_from(self.rows_left).unwrap_or(usize::MAX));
        if self.inside.is_some() || self.resume.is_some() || row_limit == 0 {
            return Ok(None);
        }
        let Some(mut current) = self.current.take() else { return Ok(None) };
        let since = RegionMark::now();
        let held = current.source == ReadTarget::Primary
            && self.enter(current.regions())?.0 == ReadTarget::Replica;
        let slice = match current.families.as_mut_slice() {
            [only] if !held => only.take_columns(row_limit)?,
            _ => None,
        };
        let rows = slice.as_ref().map_or(0, |slice| slice.row_count() as u64);
        if let Some(slice) = &slice {
            let volume = Volume { rows, cells: rows, bytes: slice.stored_bytes() };
            self.rules.charge(volume);
            count_read((&current.region, current.source), since, 0, volume);
        }
        self.current = Some(current);
        count_rows(rows)?;
        Ok(slice)
    }

    /// Seeks so that the next row is at or after `row` (at or before it in reverse): the hint of
    /// a skip scan. Skips the rest of a partial row.
    pub fn seek(&mut self, row: &[u8]) -> Result<()> {
        self.leave_row();
        match self.order {
            RowOrder::Forward => self.seek_row(row),
            RowOrder::Reverse => self.seek_row(&[row, &[0]].concat()),
        }
    }

    /// Seeks in reverse so that the next row is before `row`. Skips the rest of a partial row.
    pub fn seek_before(&mut self, row: &[u8]) -> Result<()> {
        debug_assert_eq!(self.order, RowOrder::Reverse, "a forward scan is not sought from behind");
        self.leave_row();
        self.seek_row(row)
    }

    /// Returns the position of the scan: a new scan of the same range that begins there returns
    /// the remaining rows. Rows that a filter rejected are passed, too.
    pub fn position(&mut self) -> Result<ScanPosition> {
        let position = self.find_position()?;
        // The range between the last row and the position was found to be empty, or rejected.
        match &position {
            ScanPosition::At(row) | ScanPosition::After(row) => self.track(Some(row)),
            ScanPosition::Inside(_) => {}
            ScanPosition::Start | ScanPosition::End => self.track(None),
        }
        Ok(position)
    }

    fn find_position(&mut self) -> Result<ScanPosition> {
        if let Some((_, position)) = &self.inside {
            return Ok(ScanPosition::Inside(position.clone()));
        }
        if let Some(position) = &self.resume {
            return Ok(ScanPosition::Inside(position.clone()));
        }
        if self.next_row()? {
            return Ok(ScanPosition::At(self.row.clone()));
        }
        let next = match self.order {
            RowOrder::Forward => self.ahead.clone().next(),
            RowOrder::Reverse => self.ahead.clone().next_back(),
        };
        let Some(section) = next.map(|index| self.map.section(index)) else {
            return Ok(ScanPosition::End);
        };
        Ok(match (self.order, lower_end(self.stop.as_deref(), section.stop)) {
            (RowOrder::Forward, _) => {
                ScanPosition::At(self.start.as_slice().max(section.start).into())
            }
            (RowOrder::Reverse, Some(stop)) => ScanPosition::After(stop.into()),
            (RowOrder::Reverse, None) => ScanPosition::Start,
        })
    }

    /// Returns a scan of the remaining rows, as plain data: with the position, and with the
    /// remaining limit and counts of the filter.
    pub fn rest(&mut self) -> Result<Scan> {
        let position = self.position()?;
        let mut rest = self.scan.clone();
        let of_watched = self.watched.as_ref().and_then(|watched| watched.rows_left);
        rest.limit = rest.limit.map(|_| of_watched.unwrap_or(self.rows_left));
        if let (Some(run), Some(filter)) = (&self.filter, &self.scan.filter) {
            rest.filter = Some(run.rest(filter));
        }
        rest.position = position;
        Ok(rest)
    }

    /// Returns the cost of the scan so far.
    pub fn counts(&mut self) -> ReadCounts {
        let mut counts = self.counts;
        for family in self.current.iter_mut().flat_map(|current| &mut current.families) {
            counts.add(family.reader().counts());
        }
        counts
    }

    fn is_full(&self, out: &CellBatch) -> bool {
        out.byte_count() >= self.scan.batch_bytes && !out.is_empty()
    }

    fn check_cancelled(&self) -> Result<()> {
        match self.rules.cancelled.iter().any(|flag| flag.load(Ordering::Relaxed)) {
            true => Err(Error::Cancelled),
            false => Ok(()),
        }
    }

    fn leave_region(&mut self) {
        self.counts = self.counts();
        self.current = None;
    }

    fn end(&mut self) {
        self.leave_region();
        self.ahead = 0..0;
    }

    /// Skips the rest of a partial row.
    fn leave_row(&mut self) {
        self.resume = None;
        if let (Some((first, _)), Some(current)) = (self.inside.take(), &mut self.current) {
            let families = current.families[first..].iter_mut();
            families.for_each(|family| family.reader().leave_row(&self.row));
        }
    }

    /// Moves to the first row at or after `row`; in reverse, to the last row before it. Never
    /// moves back.
    fn seek_row(&mut self, row: &[u8]) -> Result<()> {
        let target = match self.order {
            RowOrder::Forward if row <= self.start.as_slice() => return Ok(()),
            RowOrder::Forward => self.map.section_of(row),
            RowOrder::Reverse if self.stop.as_deref().is_some_and(|stop| row >= stop) => {
                return Ok(());
            }
            RowOrder::Reverse => match self.map.last_before(row) {
                Some(target) => target,
                None => {
                    self.end();
                    return Ok(());
                }
            },
        };
        if let Some(current) = &mut self.current {
            let passed = match self.order {
                RowOrder::Forward => current.index > target,
                RowOrder::Reverse => current.index < target,
            };
            if passed {
                return Ok(());
            }
            if current.index == target {
                let mut families = current.families.iter_mut();
                return families.try_for_each(|family| family.reader().seek_row(row));
            }
            self.leave_region();
        }
        self.begin_at(target, row);
        Ok(())
    }

    /// Sets the next region to be opened, and the row in it.
    fn begin_at(&mut self, region: usize, row: &[u8]) {
        match self.order {
            RowOrder::Forward => {
                self.ahead.start = self.ahead.start.max(region).min(self.ahead.end);
                self.start = row.to_vec();
            }
            RowOrder::Reverse => {
                self.ahead.end = self.ahead.end.min(region + 1).max(self.ahead.start);
                self.stop = Some(row.to_vec());
            }
        }
    }

    /// Opens the next region; returns whether there was one.
    fn open_next_region(&mut self) -> Result<bool> {
        let next = match self.order {
            RowOrder::Forward => self.ahead.next(),
            RowOrder::Reverse => self.ahead.next_back(),
        };
        let Some(index) = next else { return Ok(false) };
        let map = Arc::clone(&self.map);
        let section = map.section(index);
        let regions = self.regions_of(section);
        let Some((region, others)) = regions.split_first() else { return Ok(false) };
        let (source, snapshot) = self.enter(regions.iter())?;
        let since = RegionMark::now();
        let spec = ReadSpec { snapshot, ..self.rules.spec };
        // Staged cells are not divided by region, so the range must end where the region does.
        let span = RowSpan {
            start: self.start.as_slice().max(section.start),
            stop: lower_end(self.stop.as_deref(), section.stop),
            order: self.order,
        };
        let mut families = Vec::new();
        let mut history = RegionHistory::of(&self.scan);
        let mut open = |family: usize| -> Result<()> {
            let staged = self.rules.staged.get(family).cloned().flatten();
            let mut view = view_of(region, source, family)?;
            for other in others {
                let other = view_of(other, source, family)?;
                Arc::make_mut(&mut view).join(&other);
            }
            let spec = match &mut history {
                None => spec,
                Some(history) => history.include(&view, spec)?,
            };
            let rules = FamilyRules::of_request(
                spec,
                family as u8,
                &self.scan.family_reads,
                self.scan.cells,
                self.filter.as_ref(),
            );
            families.push(view.scanner(&span, rules, staged)?);
            Ok(())
        };
        match &self.scan.families {
            None => (0..region.family_count()).try_for_each(&mut open)?,
            Some(list) => list.iter().try_for_each(|family| open(usize::from(*family)))?,
        }
        count_read((region, source), since, 1, Volume::default());
        for other in others {
            count_read((other, source), RegionMark::now(), 1, Volume::default());
        }
        let required = self.rules.required.0.as_deref().map_or(&[][..], Vec::as_slice);
        let versions = history.map(|history| history.reader(spec).require(required));
        let has_others =
            |rows: &&RowRange| !regions.iter().all(|region| rows.covers(region.rows()));
        let base_rows = self.scan.base_rows.as_ref().filter(has_others).cloned();
        let (region, others) = (Arc::clone(region), others.to_vec());
        self.current =
            Some(RegionScanner { index, region, others, source, families, base_rows, versions });
        Ok(true)
    }

    /// Returns the base rows of the scan, if the current regions have others too.
    fn base_rows(&self) -> Option<&RowRange> {
        self.current.as_ref()?.base_rows.as_ref()
    }

    /// Returns the regions of a section that may have rows of the scan.
    fn regions_of(&self, section: MapSection<'_>) -> Vec<Arc<Region>> {
        let Some(rows) = &self.scan.base_rows else { return section.regions.to_vec() };
        self.map.all()[self.map.overlapping_regions(&rows.start, rows.stop.as_deref())].to_vec()
    }

    /// Enters the regions of a section. A colocated table has no replicas.
    fn enter<'a>(
        &self,
        regions: impl Iterator<Item = &'a Arc<Region>>,
    ) -> Result<(ReadTarget, Sequence)> {
        let mut entered = (ReadTarget::Primary, self.rules.spec.snapshot);
        for region in regions {
            entered = self.enter_region(region)?;
        }
        Ok(entered)
    }

    fn enter_region(&self, region: &Region) -> Result<(ReadTarget, Sequence)> {
        let flags: SmallVec<[&AtomicBool; 2]> =
            self.rules.cancelled.iter().map(|flag| &**flag).collect();
        let caller = ReadCaller {
            consistency: match self.map.is_colocated() {
                true => Consistency::Strong,
                false => self.rules.consistency,
            },
            snapshot: Some(&self.rules.snapshot),
            cancelled: &flags,
        };
        self.rules.path.enter(region, self.rules.table, self.rules.spec.snapshot, &caller)
    }

    /// Appends rows of the current region to `out`, until it is full or the region has no more.
    fn fill(&mut self, row_limit: usize, out: &mut CellBatch) -> Result<RowOutcome> {
        let (before, since) = (BatchMark::of(out), RegionMark::now());
        if let Some(current) = &self.current
            && current.source == ReadTarget::Primary
            && self.enter(current.regions())?.0 == ReadTarget::Replica
        {
            // The region was held since the last batch; a replica is not left again.
            self.resume_on_replica()?;
            return Ok(RowOutcome::Taken);
        }
        let mut turn = RowOutcome::Taken;
        let mut looks = ROWS_BETWEEN_CHECKS as u64;
        while looks > 0 {
            looks = looks.saturating_sub(1 + self.take_plain_rows(row_limit, looks, out)?);
            if out.row_count() >= row_limit || self.is_full(out) {
                break;
            }
            turn = self.take_row(out)?;
            if turn != RowOutcome::Taken || self.current.is_none() {
                break;
            }
        }
        if let Some(current) = &self.current {
            let volume = before.until(out);
            self.rules.charge(volume);
            count_read((&current.region, current.source), since, 0, volume);
            count_rows(ROWS_BETWEEN_CHECKS as u64 - looks)?;
        }
        Ok(turn)
    }

    /// The primary stopped answering within the region: continues at a replica, from the current
    /// position.
    fn resume_on_replica(&mut self) -> Result<()> {
        let position = self.position()?;
        let Some(current) = &self.current else { return Ok(()) };
        let index = current.index;
        self.leave_region();
        self.inside = None;
        let (ScanPosition::At(row) | ScanPosition::Inside(CellPosition { row, .. })) = &position
        else {
            return Ok(());
        };
        // Opened by the next iteration of the caller's loop, at a replica if the primary is still
        // held.
        match self.order {
            RowOrder::Forward => {
                self.ahead.start = index;
                self.start.clone_from(row);
            }
            RowOrder::Reverse => {
                self.ahead.end = index + 1;
                self.stop = Some([row.as_slice(), &[0]].concat());
            }
        }
        if let ScanPosition::Inside(position) = position {
            self.resume = Some(position);
        }
        Ok(())
    }

    /// Finds the next row of the current region, visible or not; returns whether there is one.
    fn next_row(&mut self) -> Result<bool> {
        let Some(current) = &mut self.current else { return Ok(false) };
        let mut found = false;
        for family in &mut current.families {
            let Some(next) = family.next_row()? else { continue };
            let nearer = match self.order {
                RowOrder::Forward => *next < self.row[..],
                RowOrder::Reverse => *next > self.row[..],
            };
            if !found || nearer {
                self.row.clear();
                self.row.extend_from_slice(next);
                found = true;
            }
        }
        Ok(found)
    }

    /// Appends the next row of the current region to `out`, or the next part of it, unless the
    /// filter rejects it.
    fn take_row(&mut self, out: &mut CellBatch) -> Result<RowOutcome> {
        if self.inside.is_none() {
            if self.rows_left == 0 {
                return Ok(RowOutcome::ScanEnd);
            }
            if !self.next_row()? {
                return Ok(RowOutcome::RegionEnd);
            }
            if let Some(rows) = self.base_rows()
                && !Partitioning::BaseRow.holds(rows, &self.row)
            {
                return self.refuse_row();
            }
            match self.filter.as_mut().map(|filter| filter.start_row(&self.row)) {
                None | Some(RowAnswer::Read) => {}
                Some(RowAnswer::Refuse) => return self.refuse_row(),
                Some(RowAnswer::Seek(row)) => {
                    self.seek_row(&row)?;
                    return Ok(RowOutcome::Taken);
                }
                Some(RowAnswer::End) => return Ok(RowOutcome::ScanEnd),
            }
            self.start_row();
        }
        self.read_row(out)
    }

    /// Appends rows of the current region to `out` by the fast path of plain rows. Returns the
    /// number of cells read, about `looks` at most.
    fn take_plain_rows(
        &mut self,
        row_limit: usize,
        looks: u64,
        out: &mut CellBatch,
    ) -> Result<u64> {
        let is_plain =
            self.filter.is_none() && self.scan.batch.is_none() && self.base_rows().is_none();
        let Some(current) = &mut self.current else { return Ok(0) };
        let [only] = current.families.as_mut_slice() else { return Ok(0) };
        if !is_plain || self.inside.is_some() || self.resume.is_some() {
            return Ok(0);
        }
        let rows_before = out.row_count();
        let rows_left = usize::try_from(self.rows_left).unwrap_or(usize::MAX);
        let rows = row_limit.min(rows_before.saturating_add(rows_left));
        let full = BatchLimits { rows, bytes: self.scan.batch_bytes, cells: looks };
        let seen = only.read_plain_rows(full, out)?;
        self.rows_left -= (out.row_count() - rows_before) as u64;
        Ok(seen)
    }

    fn refuse_row(&mut self) -> Result<RowOutcome> {
        let families = self.current.iter_mut().flat_map(|current| &mut current.families);
        families.for_each(|family| family.reader().leave_row(&self.row));
        Ok(RowOutcome::Taken)
    }

    fn start_row(&mut self) {
        let resume = self.resume.take().filter(|position| position.row == self.row);
        self.begun = resume.is_some();
        let may_skip = self.filter.is_none() && self.scan.cells == CellWindow::ALL;
        for family in self.current.iter_mut().flat_map(|current| &mut current.families) {
            family.reader().start_row(resume.as_ref().map(|position| (position, may_skip)));
        }
    }

    fn read_row(&mut self, out: &mut CellBatch) -> Result<RowOutcome> {
        let Some(current) = &mut self.current else { return Ok(RowOutcome::RegionEnd) };
        debug_assert!(
            self.inside.as_ref().is_none_or(|(family, position)| {
                *family < current.families.len() && position.row == self.row
            }),
            "the scan is in another row"
        );
        debug_assert!(self.inside.is_none() || self.begun, "a row goes on that was not begun");
        if let Some(versions) = &current.versions {
            let mut cells = CellBatch::new();
            cells.start_row(&self.row);
            let mut output = RowOutput { filter: None, batch: &mut cells, room: u32::MAX };
            for family in &mut current.families {
                family.reader().read_row(&self.row, &mut output)?;
            }
            self.rows_left = self.rows_left.saturating_sub(versions.append(&cells, out));
            return Ok(RowOutcome::Taken);
        }
        let first = self.inside.take().map_or(0, |(family, _)| family);
        out.start_row(&self.row);
        let room = self.scan.batch.map_or(u32::MAX, |cells| cells.max(1));
        let mut output = RowOutput { filter: self.filter.as_mut(), batch: out, room };
        let mut full_in = None;
        for (index, family) in current.families.iter_mut().enumerate().skip(first) {
            if family.reader().read_row(&self.row, &mut output)? == RowEnd::Full {
                full_in = Some(index);
                break;
            }
        }
        let Some(last) = out.last_cell() else {
            out.cancel_row();
            if self.begun {
                self.count_row();
            }
            return Ok(RowOutcome::Taken);
        };
        if let Some(index) = full_in {
            self.inside = Some((index, CellPosition::of(&last)));
        }
        let is_whole = !self.scan.raw && self.scan.batch.is_none();
        if is_whole && !self.rules.required.keep_last(out) {
            return Ok(RowOutcome::Taken);
        }
        let piece = out.row(out.row_count() - 1);
        let keeps = match &mut self.filter {
            Some(filter) => filter.keeps_row(&piece)?,
            None => true,
        };
        if !keeps {
            out.cancel_row();
        } else if full_in.is_some() {
            self.begun = true;
        } else {
            self.count_row();
        }
        Ok(RowOutcome::Taken)
    }

    /// Counts a row of the result.
    fn count_row(&mut self) {
        self.rows_left = self.rows_left.saturating_sub(1);
        if let Some(filter) = &mut self.filter {
            filter.row_returned();
        }
    }
}

/// The history of a region, for a scan of row versions.
struct RegionHistory {
    row_versions: RowVersions,
    time_range: TimeRange,
    views: Vec<Arc<ReadView>>,
}

impl RegionHistory {
    /// Returns the history for a scan that returns row versions.
    fn of(scan: &Scan) -> Option<RegionHistory> {
        let Scan { row_versions, time_range, .. } = *scan;
        let history = RegionHistory { row_versions, time_range, views: Vec::new() };
        (row_versions != RowVersions::Newest).then_some(history)
    }

    /// Adds a family, and returns the specification by which its cells are read: all, up to the
    /// end of the range.
    fn include(&mut self, view: &Arc<ReadView>, spec: ReadSpec) -> Result<ReadSpec> {
        match self.row_versions {
            RowVersions::Retained => {
                self.time_range.min = self.time_range.min.max(view.history_begin);
            }
            _ => view.check_history(TimeRange::as_of(self.time_range.min))?,
        }
        self.views.push(Arc::clone(view));
        let time_range = TimeRange { max: self.time_range.max, ..TimeRange::ALL };
        Ok(ReadSpec { time_range, max_versions: u32::MAX, raw: true, ..spec })
    }

    fn reader(self, spec: ReadSpec) -> VersionReader {
        let mut reader = VersionReader::new(spec, (self.time_range.min, self.time_range.max));
        for view in &self.views {
            reader.add_family(view.family_index, view.family());
        }
        reader
    }
}

/// Checks that a scan names existing families, and does not contradict itself.
fn check(scan: &Scan, filter: Option<&FilterRun>, table: &TableDescriptor) -> Result<()> {
    check_families(scan.families.as_deref(), &scan.family_reads, table)?;
    if scan.raw && scan.family_reads.iter().any(|read| read.columns.is_some()) {
        return Err(Error::InvalidRequest("cannot specify columns for a raw scan".into()));
    }
    let is_whole = !scan.raw
        && scan.batch.is_none()
        && scan.filter.is_none()
        && scan.family_reads.is_empty()
        && scan.cells == CellWindow::ALL;
    if scan.row_versions != RowVersions::Newest && !is_whole {
        return Err(Error::InvalidRequest("row versions are returned whole and unfiltered".into()));
    }
    if scan.batch.is_some() && filter.is_some_and(FilterRun::needs_whole_rows) {
        return Err(Error::InvalidRequest(
            "cannot return partial rows with a filter that evaluates whole rows".into(),
        ));
    }
    Ok(())
}

fn lower_end<'a>(a: Option<&'a [u8]>, b: Option<&'a [u8]>) -> Option<&'a [u8]> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
