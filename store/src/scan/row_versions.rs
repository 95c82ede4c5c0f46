//! Row versions: the states that a row had in a time range, for scans with
//! [`RowVersions`](crate::RowVersions).
//!
//! ```text
//! all cells of the row, with markers     10 put a   20 put b   30 delete
//! states in [15, 40)                     [ state of 15: a ] [ 20: b ] [ 30: deleted ]
//! ```
//!
//! The first version is the state at the begin of the range, if the row existed then. Each later
//! timestamp in the range at which a cell of the row was written, and at which the state of the
//! row changed, gives another version. The state of each time is what a read as of that time sees:
//! [`Retention`] decides about it with the cells up to the time, so the two cannot disagree.
//!
//! # Form in a batch
//!
//! Each version is a row of the batch with the key of the row. Its first cell is of
//! [`VERSION_FAMILY`] and has the timestamp of the version: a put, or a DeleteFamily marker if the
//! row was deleted then. The cells of the state follow; for a deletion, those of the state that it
//! ended. Versions ascend by time.
//!
//! # Expiry
//!
//! A row that expires has no version for that: no cell is written. The next put begins a version.
//!
//! # Cost
//!
//! The cells of one row are in memory together. Each version takes a binary search in each column,
//! and a look at the markers that precede its newest visible cell.

use std::ops::Range;
use std::sync::Arc;

use crate::cell::{CellBatch, CellRef, CellType, KeyParts, Timestamp, expiring_value};
use crate::descriptor::FamilyDescriptor;
use crate::scan::retention::{Retention, Verdict};
use crate::scan::{ReadSpec, TimeRange};

/// Index of the family of the cell that begins each version; no table has so many families.
pub const VERSION_FAMILY: u8 = u8::MAX;

/// Reader of the versions of rows.
pub(crate) struct VersionReader {
    spec: ReadSpec,
    /// First time of the range.
    min: Timestamp,
    /// First time behind the range.
    max: Timestamp,
    families: Vec<VersionFamily>,
    /// Families without which a row does not exist.
    required: Vec<u8>,
}

/// Family of a row whose versions are read.
struct VersionFamily {
    index: u8,
    descriptor: Arc<FamilyDescriptor>,
}

/// Cells of one column of a row, by position.
struct ColumnCells {
    /// Position of the family among those read.
    family: usize,
    cells: Range<usize>,
}

/// Cells of a state, by position in the row.
type RowState = Vec<usize>;

/// Cells of a row, in cell order.
struct RowCells<'a> {
    cells: Vec<CellRef<'a>>,
    columns: Vec<ColumnCells>,
}

impl VersionReader {
    /// Returns a reader of the versions from `min` to before `max`, for a snapshot.
    pub(crate) fn new(spec: ReadSpec, (min, max): (Timestamp, Timestamp)) -> VersionReader {
        VersionReader { spec, min, max, families: Vec::new(), required: Vec::new() }
    }

    /// Sets the families without which a row does not exist.
    pub(crate) fn require(mut self, families: &[u8]) -> VersionReader {
        self.required = families.to_vec();
        self
    }

    /// Adds a family.
    pub(crate) fn add_family(&mut self, index: u8, descriptor: &Arc<FamilyDescriptor>) {
        self.families.push(VersionFamily { index, descriptor: Arc::clone(descriptor) });
    }

    /// Appends the versions of the last row of `cells`, which has all cells of the families with
    /// their markers, to `out`. Returns their number.
    pub(crate) fn append(&self, cells: &CellBatch, out: &mut CellBatch) -> u64 {
        let Some(last) = cells.row_count().checked_sub(1) else { return 0 };
        if !self.is_before_max(self.min) {
            return 0;
        }
        let row = self.row_cells(cells.row(last).cells().collect());
        let before = out.row_count();
        let mut state = self.state(&row, self.min);
        if let Some(newest) = row.newest(&state) {
            row.push((newest, CellType::Put), &state, out);
        }
        for time in self.times(&row) {
            let former = self.former_state(&row, time, state);
            let next = self.state(&row, time);
            if !next.is_empty() && next != former {
                row.push((time, CellType::Put), &next, out);
            } else if next.is_empty() && !former.is_empty() && row.has_marker(time) {
                row.push((time, CellType::DeleteFamily), &former, out);
            }
            state = next;
        }
        (out.row_count() - before) as u64
    }

    fn is_before_max(&self, time: Timestamp) -> bool {
        TimeRange::new(self.min, self.max).is_before_max(time)
    }

    /// Returns the timestamps after the begin of the range at which cells were written.
    fn times(&self, row: &RowCells<'_>) -> Vec<Timestamp> {
        let is_inside = |time: &Timestamp| *time > self.min && self.is_before_max(*time);
        let mut times: Vec<Timestamp> =
            row.cells.iter().map(|cell| cell.timestamp).filter(is_inside).collect();
        times.sort_unstable();
        times.dedup();
        times
    }

    /// Returns the state immediately before a time, where `state` is that of the last version.
    fn former_state(&self, row: &RowCells<'_>, time: Timestamp, state: RowState) -> RowState {
        let may_expire = self.families.iter().any(|family| family.descriptor.has_ttl())
            || row.cells.iter().any(|cell| cell.ttl.is_some());
        match (may_expire, time) {
            (false, _) => state,
            // A read as of one microsecond before sees staged cells without a timestamp, too.
            (true, Timestamp::LATEST) => self.state(row, Timestamp(time.0 - 2)),
            (true, time) => self.state(row, Timestamp(time.0 - 1)),
        }
    }

    fn row_cells<'a>(&self, cells: Vec<CellRef<'a>>) -> RowCells<'a> {
        let mut columns: Vec<ColumnCells> = Vec::new();
        let mut start = 0;
        let is_same =
            |a: &CellRef<'_>, b: &CellRef<'_>| a.family == b.family && a.qualifier == b.qualifier;
        for column in cells.chunk_by(is_same) {
            let end = start + column.len();
            let of_column = |family: &VersionFamily| family.index == column[0].family;
            if let Some(family) = self.families.iter().position(of_column) {
                columns.push(ColumnCells { family, cells: start..end });
            }
            start = end;
        }
        RowCells { cells, columns }
    }

    /// Returns the cells that a read as of a time sees; none if the row did not exist.
    fn state(&self, row: &RowCells<'_>, at: Timestamp) -> RowState {
        let spec =
            ReadSpec { time_range: TimeRange::as_of(at), max_versions: 1, raw: false, ..self.spec };
        let mut state = RowState::new();
        for columns in row.columns.chunk_by(|a, b| a.family == b.family) {
            let family = &self.families[columns[0].family];
            let mut retention = Retention::of_read(&family.descriptor, spec);
            retention.start_row();
            for column in columns {
                visible(row, column, (&mut retention, at), &mut state);
            }
        }
        let has = |family: &u8| state.iter().any(|&cell| row.cells[cell].family == *family);
        if !self.required.iter().all(has) {
            state.clear();
        }
        state
    }
}

/// Appends the visible cell of a column at a time, if there is one.
fn visible(
    row: &RowCells<'_>,
    column: &ColumnCells,
    (retention, at): (&mut Retention, Timestamp),
    state: &mut RowState,
) {
    let Range { start, end } = column.cells;
    let is_later = |cell: &CellRef<'_>| cell.timestamp > at;
    let first = start + row.cells[start..end].partition_point(is_later);
    for position in first..end {
        let cell = &row.cells[position];
        let stored = cell.ttl.map(|ttl| expiring_value(ttl, &[]));
        let parts = KeyParts {
            row: cell.row,
            qualifier: cell.qualifier,
            timestamp: cell.timestamp,
            sequence: cell.sequence,
            cell_type: if stored.is_some() { CellType::ExpiringPut } else { cell.cell_type },
        };
        match retention.judge(&parts, || stored.as_deref().unwrap_or(cell.value)) {
            Verdict::Keep => state.push(position),
            Verdict::Skip => {}
            Verdict::SkipColumn => return,
        }
    }
}

impl RowCells<'_> {
    /// Returns the highest timestamp of a state.
    fn newest(&self, state: &RowState) -> Option<Timestamp> {
        state.iter().map(|&cell| self.cells[cell].timestamp).max()
    }

    fn has_marker(&self, time: Timestamp) -> bool {
        self.cells.iter().any(|cell| cell.timestamp == time && !cell.cell_type.is_put())
    }

    /// Appends a version.
    fn push(
        &self,
        (timestamp, cell_type): (Timestamp, CellType),
        state: &RowState,
        out: &mut CellBatch,
    ) {
        let Some(first) = self.cells.first() else { return };
        out.start_row(first.row);
        let event = CellRef {
            family: VERSION_FAMILY,
            qualifier: &[],
            timestamp,
            cell_type,
            value: &[],
            ttl: None,
            ..*first
        };
        out.push(event);
        state.iter().for_each(|&cell| out.push(self.cells[cell]));
    }
}
