//! Reads the cells of rows of one family: what [`retention`](crate::scan::retention) lets through
//! of a merge, of the columns asked for, past the filter, into a batch.
//!
//! Knows neither memstores nor files nor regions; [`crate::read_view`] puts it over both, and
//! [`crate::scanner`] joins families and regions.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::cell::{CellBatch, CellRef, CellType, KeyParts, row_of};
use crate::error::Result;
use crate::layout::WantedSections;
use crate::scan::filter::run::{FilterRun, Jump, Qualifier, ValueKept};
use crate::scan::merge::{Cursor, Merge};
use crate::scan::plain_rows::{BatchLimits, PlainRows, RowLimits, Stop};
use crate::scan::request::{CellPosition, CellWindow};
use crate::scan::retention::{Retention, Verdict};
use crate::scan::{FamilyRead, ReadSpec};

/// What a read wants of the rows of one family.
#[derive(Debug, Clone)]
pub struct FamilyRules<'a> {
    /// What is visible. Where a filter sees cells, `max_versions` is counted after it instead.
    pub spec: ReadSpec,
    /// Versions of a column that pass the filter.
    pub versions_after_filter: u32,
    /// Only these columns, ascending.
    pub columns: Option<Cow<'a, [Vec<u8>]>>,
    /// Cells of a row.
    pub cells: CellWindow,
    /// Whether the filter must see cells that the limits leave out, because it decides by them.
    pub filter_sees_rest: bool,
    /// The sections of values that are looked at: a hint to a get; `None` for all.
    pub sections: Option<&'a Arc<WantedSections>>,
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

    /// Returns the same rules, with columns of their own, of whole values.
    pub(crate) fn into_owned(self) -> FamilyRules<'static> {
        let columns = self.columns.map(|columns| Cow::Owned(columns.into_owned()));
        FamilyRules { columns, sections: None, ..self }
    }
}

/// What a read cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Cells looked at, visible or not.
    pub cells: u64,
    /// Jumps over cells that were not looked at.
    pub seeks: u64,
}

impl ReadCounts {
    /// Adds what another read cost.
    pub fn add(&mut self, other: ReadCounts) {
        self.cells += other.cells;
        self.seeks += other.seeks;
    }
}

/// How the reading of a row ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowEnd {
    /// The row has no more cells for the answer.
    Done,
    /// There was no room for more; the row may have none.
    Full,
}

/// The filter and the batch of a read, which its families share.
pub struct Output<'a> {
    /// What the cells must pass.
    pub filter: Option<&'a mut FilterRun>,
    /// Where they go, into the row begun last.
    pub batch: &'a mut CellBatch,
    /// Cells that still fit.
    pub room: u32,
}

/// Reads rows of a family.
pub struct RowReader<'a, C> {
    merge: Merge<C>,
    retention: Retention,
    family: u8,
    rules: FamilyRules<'a>,
    row: RowState,
    counts: ReadCounts,
}

/// How far the present row was read.
#[derive(Default)]
struct RowState {
    /// Index of the first wanted column that was not passed.
    column: usize,
    /// Cells that passed everything.
    passed_cells: u32,
    /// The column of the cell that passed the filter last, and how many of it did.
    passed_column: Qualifier,
    passed_versions: u32,
    /// The cell after which the answer goes on, and whether what stands before it can be skipped.
    resume: Option<(CellPosition, bool)>,
    /// The merge may stand on cells that are not wanted.
    unfinished: bool,
    /// The merge may stand on a source that is not open.
    unopened: bool,
    /// A family marker may follow a put of the column without a name, so no jump leaves that.
    expects_family_markers: bool,
    /// The jump that was not taken therefore.
    held: Option<Jump>,
}

/// What to do after a cell.
enum Step {
    Advance,
    SkipColumn,
    SeekColumn(Qualifier),
    Leave,
}

impl<'a, C: Cursor> RowReader<'a, C> {
    /// Returns a reader over a merge that stands on the first cell of a row.
    pub fn new(
        merge: Merge<C>,
        retention: Retention,
        family: u8,
        rules: FamilyRules<'a>,
    ) -> RowReader<'a, C> {
        let expects_family_markers = retention.expects_family_markers();
        let row = RowState { expects_family_markers, ..RowState::default() };
        RowReader { merge, retention, family, rules, row, counts: ReadCounts::default() }
    }

    /// Returns what was read until now.
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

    /// Appends the next rows to the batch, as long as each cell is decided as soon as it is seen
    /// ([`plain_rows`](crate::scan::plain_rows)). The row behind them may be one that is not, or
    /// none that is wanted: that is for [`RowReader::read_row`]. Not in the middle of a row, and
    /// only for reads without a filter. Returns the cells looked at.
    pub(crate) fn read_plain_rows(
        &mut self,
        limits: &RowLimits<'_>,
        batch: &mut CellBatch,
    ) -> Result<u64> {
        let Some(newest) = self.retention.newest_only() else { return Ok(0) };
        let only_column = match self.rules.columns.as_deref() {
            None => None,
            Some([only]) => Some(Qualifier::from_slice(only)),
            Some(_) => return Ok(0),
        };
        if self.rules.cells != CellWindow::ALL {
            return Ok(0);
        }
        self.leave_last_row()?;
        let before = self.counts.cells;
        loop {
            let seen = self.counts.cells - before;
            let cells = limits.full.cells.saturating_sub(seen);
            let limits = RowLimits { full: BatchLimits { cells, ..limits.full }, ..*limits };
            let mut rows =
                PlainRows::new(newest, only_column.as_deref(), self.family, &limits, batch);
            let stop = loop {
                self.merge.walk(&mut |parts, value| rows.take(&parts, value))?;
                match rows.take_stop() {
                    Some(Stop::InColumn) => {
                        self.counts.seeks += 1;
                        self.merge.skip_column()?;
                    }
                    stop => break stop,
                }
            };
            self.counts.cells += rows.cells();
            match stop {
                Some(Stop::InRow) => self.finish_row(batch)?,
                _ => return Ok(self.counts.cells - before),
            }
        }
    }

    /// Reads on in the last row of the batch, behind the column of its last cell.
    fn finish_row(&mut self, batch: &mut CellBatch) -> Result<()> {
        let Some((row, qualifier)) = batch.last_column() else { return Ok(()) };
        let row: SmallVec<[u8; 64]> = SmallVec::from_slice(row);
        self.start_row(None);
        self.retention.go_on_behind(qualifier);
        self.read_row(&row, &mut Output { filter: None, batch, room: u32::MAX })?;
        self.leave_last_row()
    }

    /// Lets `take` move the source that comes first over whole rows, all of which it answers for:
    /// none at or after the row of the next source, which it is told. Reads all columns, or
    /// nothing.
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

    /// Begins a row; with `resume`, after that cell. `may_skip` allows not to look at the cells
    /// before it: neither filter nor window counts them.
    pub fn start_row(&mut self, resume: Option<(&CellPosition, bool)>) {
        self.retention.start_row();
        self.row.column = 0;
        self.row.passed_cells = 0;
        self.row.passed_versions = 0;
        self.row.held = None;
        self.row.resume = resume.map(|(position, may_skip)| (position.clone(), may_skip));
    }

    /// Gives up what is left of a row.
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
    /// it goes on. Another row has none.
    pub fn read_row(&mut self, row: &[u8], output: &mut Output<'_>) -> Result<RowEnd> {
        while let Some(parts) = self.merge.key().and_then(KeyParts::decode) {
            if parts.row != row {
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

    /// Leaves the column it stands on, for the next one that is wanted.
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
    /// Returns the way past a cell that need not be judged, because its column is not wanted or
    /// was returned before.
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
            Some(column) if column[..] == *parts.qualifier => None,
            _ if !may_jump => Some(Step::Advance),
            Some(column) => Some(Step::SeekColumn(Qualifier::from_slice(column))),
            None => Some(Step::Leave),
        }
    }

    /// Takes a visible cell past the filter, the limits and the place where the answer goes on,
    /// into the batch.
    fn pass(
        &mut self,
        cell: &CellRef<'_>,
        rules: &FamilyRules<'_>,
        output: &mut Output<'_>,
    ) -> Step {
        let (mut jump, mut value) = (Jump::Next, ValueKept::Whole);
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

    /// Returns the step over a cell that the filter has jumped over, though the reader has not.
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

fn push(cell: &CellRef<'_>, kept: ValueKept, batch: &mut CellBatch) {
    match kept {
        ValueKept::Whole => batch.push(*cell),
        ValueKept::Nothing => batch.push(CellRef { value: &[], ..*cell }),
        ValueKept::Length => {
            let length = (cell.value.len() as u32).to_be_bytes();
            batch.push(CellRef { value: &length, ..*cell });
        }
    }
}

/// Returns whether a cell stands after a place in the same row.
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
