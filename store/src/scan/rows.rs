//! Row reader of one family: applies [`retention`](crate::scan::retention), column selection, the
//! filter and the limits to the cells of a merge, and appends the result to a batch.
//!
//! It depends on neither memstores nor files nor regions; [`crate::read_view`] builds the merge
//! over both, and [`crate::scanner`] combines families and regions.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::cell::{CellBatch, CellRef, CellType, KeyParts, equal_bytes, row_of};
use crate::error::Result;
use crate::layout::SectionSelection;
use crate::scan::filter::run::{FilterRun, Jump, Qualifier, ReturnedValue};
use crate::scan::merge::{Cursor, Merge};
use crate::scan::plain_rows::{BatchLimits, Gaps, PlainRows, RejectReason, RowLimits, WantedCells};
use crate::scan::request::{CellPosition, CellWindow};
use crate::scan::retention::{Retention, Verdict};
use crate::scan::{FamilyRead, ReadSpec};

/// Rules of a read for one family.
#[derive(Debug, Clone)]
pub struct FamilyRules<'a> {
    /// Visibility. Where a filter sees cells, `max_versions` is applied after it instead.
    pub spec: ReadSpec,
    /// Maximal number of versions of a column that pass the filter.
    pub versions_after_filter: u32,
    /// Columns to read, ascending; `None` for all.
    pub columns: Option<Cow<'a, [Vec<u8>]>>,
    /// Window of cells of a row.
    pub cells: CellWindow,
    /// True if the filter must see cells beyond the limits, because its decision depends on them.
    pub filter_sees_rest: bool,
    /// The sections of values to read: a hint to a get; `None` for all.
    pub sections: Option<&'a Arc<SectionSelection>>,
}

impl<'a> FamilyRules<'a> {
    /// Returns the rules of a read of whole rows.
    pub fn of_all_columns(spec: ReadSpec) -> FamilyRules<'a> {
        FamilyRules {
            spec,
            versions_after_filter: u32::MAX,
            columns: None,
            cells: CellWindow::ALL,
            filter_sees_rest: false,
            sections: None,
        }
    }

    /// Returns the rules for one family of a request.
    #[inline]
    pub(crate) fn of_request(
        mut spec: ReadSpec,
        family: u8,
        family_reads: &'a [FamilyRead],
        cells: CellWindow,
        filter: Option<&FilterRun>,
    ) -> FamilyRules<'a> {
        let mut versions_after_filter = u32::MAX;
        if filter.is_some_and(FilterRun::sees_cells) {
            versions_after_filter = std::mem::replace(&mut spec.max_versions, u32::MAX);
        }
        let own = family_reads.iter().find(|read| read.family == family);
        if let Some(time_range) = own.and_then(|read| read.time_range) {
            spec.time_range = time_range;
        }
        let columns = own.and_then(|read| read.columns.as_deref()).map(|columns| {
            let mut columns = Cow::Borrowed(columns);
            if !columns.is_sorted_by(|a, b| a < b) {
                columns.to_mut().sort_unstable();
                columns.to_mut().dedup();
            }
            columns
        });
        let filter_sees_rest = filter.is_some_and(FilterRun::decides_by_any_cell);
        FamilyRules {
            spec,
            versions_after_filter,
            columns,
            cells,
            filter_sees_rest,
            sections: None,
        }
    }

    /// Returns the same rules with owned columns, reading whole values.
    pub(crate) fn into_owned(self) -> FamilyRules<'static> {
        let columns = self.columns.map(|columns| Cow::Owned(columns.into_owned()));
        FamilyRules { columns, sections: None, ..self }
    }
}

/// Cost of a read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Number of cells read, visible or not.
    pub cells: u64,
    /// Number of seeks that skipped cells.
    pub seeks: u64,
}

impl ReadCounts {
    /// Adds the cost of another read.
    pub fn add(&mut self, other: ReadCounts) {
        self.cells += other.cells;
        self.seeks += other.seeks;
    }
}

/// Outcome of reading a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowEnd {
    /// The row has no more cells for the result.
    Done,
    /// The batch is full; the row may have more cells.
    Full,
}

/// Filter and batch of a read, shared by its families.
pub struct RowOutput<'a> {
    /// Filter of the cells.
    pub filter: Option<&'a mut FilterRun>,
    /// Batch whose last row receives the cells.
    pub batch: &'a mut CellBatch,
    /// Number of cells that still fit.
    pub room: u32,
}

/// Reads rows of a family.
pub struct RowReader<'a, C> {
    merge: Merge<C>,
    retention: Retention,
    family: u8,
    rules: FamilyRules<'a>,
    row: RowState,
    gaps: Gaps,
    counts: ReadCounts,
}

/// Progress of reading the present row.
#[derive(Default)]
struct RowState {
    /// Index of the first wanted column that was not passed.
    column: usize,
    /// Number of cells that passed all conditions.
    passed_cells: u32,
    /// The column of the last cell that passed the filter, and the number of its versions that
    /// did.
    passed_column: Qualifier,
    passed_versions: u32,
    /// The cell after which the result continues, and true if the cells before it may be skipped.
    resume: Option<(CellPosition, bool)>,
    /// True if the merge may be on cells that are not needed.
    unfinished: bool,
    /// True if the merge may be on a source that is not open.
    unopened: bool,
    /// True if a family marker may follow a put of the column without a name, so no jump may
    /// leave that column.
    expects_family_markers: bool,
    /// The jump that was deferred for this reason.
    held: Option<Jump>,
}

/// Movement of the merge after a cell.
enum Step {
    Advance,
    SkipColumn,
    SeekColumn(Qualifier),
    Leave,
}

impl<'a, C: Cursor> RowReader<'a, C> {
    /// Returns a reader over a merge that is on the first cell of a row.
    pub fn new(
        merge: Merge<C>,
        retention: Retention,
        family: u8,
        rules: FamilyRules<'a>,
    ) -> RowReader<'a, C> {
        let expects_family_markers = retention.expects_family_markers();
        let row = RowState { expects_family_markers, ..RowState::default() };
        let (gaps, counts) = (Gaps::new(), ReadCounts::default());
        RowReader { merge, retention, family, rules, row, gaps, counts }
    }

    /// Returns the cost so far.
    pub fn counts(&self) -> ReadCounts {
        self.counts
    }

    /// Returns the row of the next cell, which may not be visible.
    pub fn next_row(&mut self) -> Result<Option<&[u8]>> {
        self.leave_last_row()?;
        Ok(self.merge.key().map(row_of))
    }

    /// Moves to the first cell behind the row that was read.
    fn leave_last_row(&mut self) -> Result<()> {
        if std::mem::take(&mut self.row.unopened) {
            self.merge.open_first()?;
        }
        if std::mem::take(&mut self.row.unfinished) {
            self.counts.seeks += 1;
            self.merge.skip_row()?;
        }
        Ok(())
    }

    /// Appends the next rows to the batch by the fast path
    /// ([`plain_rows`](crate::scan::plain_rows)). The row behind them may need
    /// [`RowReader::read_row`], or may not be visible. Must not be called within a row, and only
    /// for reads without a filter. Returns the number of cells read.
    pub(crate) fn read_plain_rows(
        &mut self,
        limits: &RowLimits<'_>,
        batch: &mut CellBatch,
    ) -> Result<u64> {
        let Some(newest) = self.retention.newest_only() else { return Ok(0) };
        if self.rules.cells != CellWindow::ALL {
            return Ok(0);
        }
        self.leave_last_row()?;
        let before = self.counts.cells;
        loop {
            let seen = self.counts.cells - before;
            let cells = limits.full.cells.saturating_sub(seen);
            let limits = RowLimits { full: BatchLimits { cells, ..limits.full }, ..*limits };
            let columns = self.rules.columns.as_deref();
            let wanted = columns.map(|columns| WantedCells::new(columns, &mut self.gaps));
            let mut rows = PlainRows::new(newest, wanted, self.family, &limits, batch);
            let stop = loop {
                self.merge.walk(&mut |parts, value| rows.take(&parts, value))?;
                match rows.take_stop() {
                    Some(RejectReason::InColumn) => {
                        self.counts.seeks += 1;
                        self.merge.skip_column()?;
                    }
                    Some(RejectReason::InGap(next)) => {
                        self.counts.seeks += 1;
                        match columns.and_then(|columns| columns.get(next)) {
                            Some(column) => self.merge.seek_column(column)?,
                            None => self.merge.skip_row()?,
                        }
                        if self.merge.key().is_some_and(|key| rows.ends_at(row_of(key))) {
                            break Some(RejectReason::BeforeRow);
                        }
                    }
                    stop => break stop,
                }
            };
            self.counts.cells += rows.cells();
            match stop {
                Some(RejectReason::InRow) => self.finish_row(batch)?,
                _ => return Ok(self.counts.cells - before),
            }
        }
    }

    /// Continues in the last row of the batch, behind the column of its last cell.
    fn finish_row(&mut self, batch: &mut CellBatch) -> Result<()> {
        let Some((row, qualifier)) = batch.last_column() else { return Ok(()) };
        let row: SmallVec<[u8; 64]> = SmallVec::from_slice(row);
        self.start_row(None);
        self.retention.go_on_behind(qualifier);
        self.read_row(&row, &mut RowOutput { filter: None, batch, room: u32::MAX })?;
        self.leave_last_row()
    }

    /// Lets `take` consume whole rows of the first source, before the row of the next source,
    /// which is passed to it. `take` must return all columns of these rows, or nothing.
    pub fn take_rows<T>(
        &mut self,
        take: impl FnOnce(&mut C, Option<&[u8]>, &Retention) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let FamilyRules { columns, cells, .. } = &self.rules;
        if self.row.unfinished || columns.is_some() || *cells != CellWindow::ALL {
            return Ok(None);
        }
        let rival: Option<SmallVec<[u8; 64]>> = self.merge.rival_row().map(SmallVec::from_slice);
        let retention = &self.retention;
        let taken = self.merge.move_first(|source| take(source, rival.as_deref(), retention))?;
        self.row.unopened = true;
        Ok(taken.flatten())
    }

    /// Begins a row; with `resume`, after that cell. The flag allows skipping the cells before
    /// it: neither filter nor window counts them.
    pub fn start_row(&mut self, resume: Option<(&CellPosition, bool)>) {
        self.retention.start_row();
        self.row.column = 0;
        self.row.passed_cells = 0;
        self.row.passed_versions = 0;
        self.row.held = None;
        self.row.resume = resume.map(|(position, may_skip)| (position.clone(), may_skip));
    }

    /// Skips the remaining cells of a row.
    pub fn leave_row(&mut self, row: &[u8]) {
        self.row.unfinished = self.merge.key().is_some_and(|key| row_of(key) == row);
    }

    /// Moves on to the first row at or after `row`; in reverse, to the last row before it.
    pub fn seek_row(&mut self, row: &[u8]) -> Result<()> {
        self.row.unfinished = false;
        self.counts.seeks += 1;
        self.merge.seek_row(row)
    }

    /// Appends cells of the row that was begun to the batch. Called again after [`RowEnd::Full`],
    /// it continues. If the merge is on another row, nothing is appended.
    pub fn read_row(&mut self, row: &[u8], output: &mut RowOutput<'_>) -> Result<RowEnd> {
        while let Some(parts) = self.merge.key().and_then(KeyParts::decode) {
            if !equal_bytes(parts.row, row) {
                break;
            }
            if std::mem::take(&mut self.row.unopened) {
                self.merge.open_first()?;
                continue;
            }
            if output.room == 0 {
                return Ok(RowEnd::Full);
            }
            self.counts.cells += 1;
            let verdict = match self.row.before(&parts, self.family, &self.rules) {
                Some(step) => Some(step),
                None => match self.retention.judge(&parts, || self.merge.value()) {
                    Verdict::Keep => None,
                    Verdict::Skip => Some(Step::Advance),
                    Verdict::SkipColumn => Some(Step::SkipColumn),
                },
            };
            let step = match verdict {
                Some(step) => step,
                None => {
                    let cell = CellRef::of_stored(self.family, &parts, self.merge.value());
                    self.row.pass(&cell, &self.rules, output)
                }
            };
            match step {
                Step::Advance => self.merge.advance()?,
                Step::SkipColumn => self.skip_column()?,
                Step::SeekColumn(qualifier) => {
                    self.counts.seeks += 1;
                    self.merge.seek_column(&qualifier)?;
                }
                Step::Leave => {
                    self.row.unfinished = true;
                    break;
                }
            }
        }
        Ok(RowEnd::Done)
    }

    /// Skips the current column, up to the next one that is selected.
    fn skip_column(&mut self) -> Result<()> {
        self.counts.seeks += 1;
        let Some(columns) = &self.rules.columns else {
            self.row.unopened = true;
            return self.merge.leave_column();
        };
        self.row.column += 1;
        match columns.get(self.row.column) {
            Some(next) => self.merge.seek_column(next),
            None => self.merge.skip_row(),
        }
    }
}

impl RowState {
    /// Returns the movement over a cell that needs no decision, because its column is not
    /// selected or was returned before.
    fn before(
        &mut self,
        parts: &KeyParts<'_>,
        family: u8,
        rules: &FamilyRules<'_>,
    ) -> Option<Step> {
        if rules.columns.is_none() && self.resume.is_none() {
            return None;
        }
        let nameless = parts.qualifier.is_empty();
        if nameless && parts.cell_type.is_family_marker() {
            return None;
        }
        let may_jump = !nameless || !self.expects_family_markers;
        if let Some((position, true)) = &self.resume {
            match family.cmp(&position.family) {
                Ordering::Less if may_jump => return Some(Step::Leave),
                Ordering::Equal if may_jump && *parts.qualifier < position.qualifier[..] => {
                    return Some(Step::SeekColumn(Qualifier::from_slice(&position.qualifier)));
                }
                _ => {}
            }
        }
        let columns = rules.columns.as_deref()?;
        while columns.get(self.column).is_some_and(|column| column[..] < *parts.qualifier) {
            self.column += 1;
        }
        match columns.get(self.column) {
            Some(column) if equal_bytes(column, parts.qualifier) => None,
            _ if !may_jump => Some(Step::Advance),
            Some(column) => Some(Step::SeekColumn(Qualifier::from_slice(column))),
            None => Some(Step::Leave),
        }
    }

    /// Applies the filter, the limits and the resume position to a visible cell, and appends it
    /// to the batch.
    fn pass(
        &mut self,
        cell: &CellRef<'_>,
        rules: &FamilyRules<'_>,
        output: &mut RowOutput<'_>,
    ) -> Step {
        let (mut jump, mut value) = (Jump::Next, ReturnedValue::Whole);
        if let Some(filter) = &mut output.filter {
            if let Some(step) = self.over_held(cell) {
                return step;
            }
            let answer = filter.cell(cell);
            (jump, value) = (answer.jump, answer.value);
            if !answer.include {
                return self.step(cell, jump);
            }
            if rules.versions_after_filter != u32::MAX && cell.cell_type == CellType::Put {
                if self.passed_versions == 0 || self.passed_column[..] != *cell.qualifier {
                    self.passed_column = Qualifier::from_slice(cell.qualifier);
                    self.passed_versions = 0;
                }
                if self.passed_versions >= rules.versions_after_filter {
                    let next = if rules.filter_sees_rest { Jump::Next } else { Jump::Column };
                    return self.step(cell, jump.max(next));
                }
                self.passed_versions += 1;
            }
        }
        let CellWindow { offset, limit } = rules.cells;
        let end = offset.saturating_add(limit);
        if self.passed_cells >= end {
            return if rules.filter_sees_rest { self.step(cell, jump) } else { Step::Leave };
        }
        let is_in_window = self.passed_cells >= offset;
        self.passed_cells += 1;
        let returned_before =
            self.resume.as_ref().is_some_and(|(position, _)| !is_after(cell, position));
        if is_in_window && !returned_before {
            self.resume = None;
            output.room -= 1;
            push(cell, value, output.batch);
        }
        if self.passed_cells >= end && !rules.filter_sees_rest {
            return Step::Leave;
        }
        self.step(cell, jump)
    }

    /// Returns the movement over a cell that the filter has jumped over, though the reader has
    /// not.
    fn over_held(&mut self, cell: &CellRef<'_>) -> Option<Step> {
        self.held.as_ref()?;
        if cell.qualifier.is_empty() {
            return Some(Step::Advance);
        }
        match self.held.take() {
            Some(Jump::To(qualifier)) if *cell.qualifier < qualifier[..] => {
                Some(Step::SeekColumn(qualifier))
            }
            _ => None,
        }
    }

    fn step(&mut self, cell: &CellRef<'_>, jump: Jump) -> Step {
        let stays = cell.qualifier.is_empty() && self.expects_family_markers;
        match jump {
            Jump::Next => Step::Advance,
            Jump::Row => Step::Leave,
            Jump::Column | Jump::To(_) if stays => {
                self.held = Some(jump);
                Step::Advance
            }
            Jump::Column => Step::SkipColumn,
            Jump::To(qualifier) => Step::SeekColumn(qualifier),
        }
    }
}

fn push(cell: &CellRef<'_>, kept: ReturnedValue, batch: &mut CellBatch) {
    match kept {
        ReturnedValue::Whole => batch.push(*cell),
        ReturnedValue::Nothing => batch.push(CellRef { value: &[], ..*cell }),
        ReturnedValue::Length => {
            let length = (cell.value.len() as u32).to_be_bytes();
            batch.push(CellRef { value: &length, ..*cell });
        }
    }
}

/// Returns whether a cell is after a position in the same row.
fn is_after(cell: &CellRef<'_>, position: &CellPosition) -> bool {
    let type_code = |cell_type: CellType| cell_type as u8;
    cell.family
        .cmp(&position.family)
        .then_with(|| cell.qualifier.cmp(&position.qualifier))
        .then_with(|| position.timestamp.cmp(&cell.timestamp))
        .then_with(|| position.sequence.cmp(&cell.sequence))
        .then_with(|| type_code(position.cell_type).cmp(&type_code(cell.cell_type)))
        .is_gt()
}
