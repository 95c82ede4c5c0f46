//! Read requests: one row ([`Get`]), a range of rows ([`Scan`]). Plain data, except for user code
//! in a filter.

use std::sync::Arc;

use crate::cell::{CellRef, CellType, Sequence, Timestamp};
use crate::descriptor::RowRange;
use crate::layout::SectionSelection;
use crate::scan::TimeRange;
use crate::scan::filter::{Filter, prefix_end};

/// Overrides of a read for one family.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FamilyRead {
    /// Index of the family.
    pub family: u8,
    /// Columns to read; `None` for all.
    pub columns: Option<Vec<Vec<u8>>>,
    /// Range of timestamps, instead of that of the read.
    pub time_range: Option<TimeRange>,
}

/// Offset and limit of the cells of a row in one family, applied after all other conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellWindow {
    /// Number of cells skipped at the beginning.
    pub offset: u32,
    /// Maximal number of cells returned after those.
    pub limit: u32,
}

impl CellWindow {
    /// All cells.
    pub const ALL: CellWindow = CellWindow { offset: 0, limit: u32::MAX };
    /// The first cell.
    pub const FIRST: CellWindow = CellWindow { offset: 0, limit: 1 };
}

/// Request for one row.
#[derive(Debug, Clone)]
pub struct Get {
    /// The row key.
    pub row: Vec<u8>,
    /// Families by index; `None` for all.
    pub families: Option<Vec<u8>>,
    /// Overrides for single families.
    pub family_reads: Vec<FamilyRead>,
    /// Range of timestamps.
    pub time_range: TimeRange,
    /// Maximal number of versions of each column.
    pub max_versions: u32,
    /// Window of cells of each family.
    pub cells: CellWindow,
    /// Filter on the row and its cells.
    pub filter: Option<Filter>,
    /// The sections of values to read, for families with a value layout: a hint that avoids
    /// reading the others, which are returned as zeros and empty values if the value is in a
    /// columnar block. Whole values are returned where a filter or an observer sees them.
    pub sections: Option<Arc<[Arc<SectionSelection>]>>,
}

impl Get {
    /// Returns a get of the newest version of all columns.
    pub fn new(row: impl Into<Vec<u8>>) -> Get {
        Get {
            row: row.into(),
            families: None,
            family_reads: Vec::new(),
            time_range: TimeRange::ALL,
            max_versions: 1,
            cells: CellWindow::ALL,
            filter: None,
            sections: None,
        }
    }

    /// Returns a get that finds out whether a row exists: of the first cell of each family.
    pub(crate) fn of_existence(row: impl Into<Vec<u8>>) -> Get {
        Get { cells: CellWindow::FIRST, ..Get::new(row) }
    }

    /// Adds a family to those read; until one is added, all are.
    pub fn family(mut self, family: u8) -> Get {
        add_family(&mut self.families, family);
        self
    }

    /// Adds a column to those read. Of its family only the columns added are returned.
    pub fn column(mut self, family: u8, qualifier: impl Into<Vec<u8>>) -> Get {
        add_family(&mut self.families, family);
        add_column(&mut self.family_reads, family, qualifier.into());
        self
    }
}

/// Versions of rows that a scan returns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RowVersions {
    /// The newest one.
    #[default]
    Newest,
    /// All states that the row had in the time range: the one of its begin, and one for each later
    /// change. Each is a row of the result, ascending by time, whose first cell is of
    /// [`VERSION_FAMILY`](crate::VERSION_FAMILY). An error where retention has dropped versions
    /// of the range: [`Error::BeforeHistory`](crate::Error::BeforeHistory).
    Complete,
    /// As `Complete`, from the begin of the history of each region on.
    Retained,
}

/// Request for a range of rows.
#[derive(Debug, Clone)]
pub struct Scan {
    /// First row; empty for the first of the table.
    pub start: Vec<u8>,
    /// True if `start` itself is included.
    pub start_inclusive: bool,
    /// Row to stop at; `None` for no stop.
    pub stop: Option<Vec<u8>>,
    /// True if `stop` itself is included.
    pub stop_inclusive: bool,
    /// True to read from the last row to the first. `start` is still the lower bound.
    pub reverse: bool,
    /// Families by index; `None` for all. A row without a cell in them is not returned.
    pub families: Option<Vec<u8>>,
    /// Overrides for single families.
    pub family_reads: Vec<FamilyRead>,
    /// Range of timestamps.
    pub time_range: TimeRange,
    /// Maximal number of versions of each column.
    pub max_versions: u32,
    /// True to return markers and all cells not yet dropped, without retention. Columns cannot be
    /// named then.
    pub raw: bool,
    /// Versions of rows. Those other than the newest are returned whole: without filter, without
    /// limits of cells, and with all versions of a row in one batch.
    pub row_versions: RowVersions,
    /// Window of cells of each row and family.
    pub cells: CellWindow,
    /// Maximal number of rows.
    pub limit: Option<u64>,
    /// Maximal number of cells returned as one row: a longer row is returned as several partial
    /// rows, each with the row key. `None`: rows are returned whole.
    pub batch: Option<u32>,
    /// Bytes of rows at which a batch ends; at least one row, or partial row, is returned.
    pub batch_bytes: usize,
    /// Filter on rows and cells.
    pub filter: Option<Filter>,
    /// Base rows to whose rows a scan of a colocated table is restricted; `None` for all.
    pub base_rows: Option<RowRange>,
    /// Position within the range at which the scan begins: set by
    /// [`Scanner::rest`](crate::scanner::Scanner::rest).
    pub position: ScanPosition,
}

impl Scan {
    /// Returns a forward scan of the newest versions of `start..stop`.
    pub fn range(start: impl Into<Vec<u8>>, stop: Option<Vec<u8>>) -> Scan {
        Scan {
            start: start.into(),
            start_inclusive: true,
            stop,
            stop_inclusive: false,
            reverse: false,
            families: None,
            family_reads: Vec::new(),
            time_range: TimeRange::ALL,
            max_versions: 1,
            raw: false,
            row_versions: RowVersions::Newest,
            cells: CellWindow::ALL,
            limit: None,
            batch: None,
            batch_bytes: 256 << 10,
            filter: None,
            base_rows: None,
            position: ScanPosition::Start,
        }
    }

    /// Returns a forward scan of the newest versions of all rows.
    pub fn all() -> Scan {
        Scan::range(Vec::new(), None)
    }

    /// Returns a forward scan of the newest versions of the rows that begin with `prefix`.
    pub fn prefix(prefix: impl Into<Vec<u8>>) -> Scan {
        let prefix = prefix.into();
        let stop = prefix_end(&prefix);
        Scan::range(prefix, stop)
    }

    /// Adds a family to those read; until one is added, all are.
    pub fn family(mut self, family: u8) -> Scan {
        add_family(&mut self.families, family);
        self
    }

    /// Adds a column to those read. Of its family only the columns added are returned.
    pub fn column(mut self, family: u8, qualifier: impl Into<Vec<u8>>) -> Scan {
        add_family(&mut self.families, family);
        add_column(&mut self.family_reads, family, qualifier.into());
        self
    }

    /// Returns the first row and the row to stop before; `None`: to the end.
    pub fn bounds(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        let after = |row: &[u8]| [row, &[0]].concat();
        let start = match self.start_inclusive {
            true => self.start.clone(),
            false => after(&self.start),
        };
        let stop = match (&self.stop, self.stop_inclusive) {
            (Some(stop), true) => Some(after(stop)),
            (stop, _) => stop.clone(),
        };
        match (&self.position, self.reverse) {
            (ScanPosition::Start, _) => (start, stop),
            (ScanPosition::End, _) => (start.clone(), Some(start)),
            (ScanPosition::At(row) | ScanPosition::Inside(CellPosition { row, .. }), false) => {
                (start.max(row.clone()), stop)
            }
            (ScanPosition::After(row), false) => (start.max(after(row)), stop),
            (ScanPosition::At(row) | ScanPosition::Inside(CellPosition { row, .. }), true) => {
                (start, lower(stop, after(row)))
            }
            (ScanPosition::After(row), true) => (start, lower(stop, row.clone())),
        }
    }
}

fn lower(stop: Option<Vec<u8>>, other: Vec<u8>) -> Option<Vec<u8>> {
    Some(match stop {
        Some(stop) => stop.min(other),
        None => other,
    })
}

fn add_family(families: &mut Option<Vec<u8>>, family: u8) {
    let families = families.get_or_insert_default();
    if let Err(at) = families.binary_search(&family) {
        families.insert(at, family);
    }
}

fn add_column(reads: &mut Vec<FamilyRead>, family: u8, qualifier: Vec<u8>) {
    let at = reads.iter().position(|read| read.family == family).unwrap_or_else(|| {
        reads.push(FamilyRead { family, ..FamilyRead::default() });
        reads.len() - 1
    });
    reads[at].columns.get_or_insert_default().push(qualifier);
}

/// A position in the result of a scan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ScanPosition {
    /// Before everything.
    #[default]
    Start,
    /// Before this row.
    At(Vec<u8>),
    /// Within a row, after one of its cells.
    Inside(CellPosition),
    /// After this row.
    After(Vec<u8>),
    /// After everything.
    End,
}

/// Identifies a cell of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellPosition {
    /// The row key.
    pub row: Vec<u8>,
    /// Index of the family.
    pub family: u8,
    /// The qualifier.
    pub qualifier: Vec<u8>,
    /// The timestamp.
    pub timestamp: Timestamp,
    /// The commit sequence.
    pub sequence: Sequence,
    /// Its type.
    pub cell_type: CellType,
}

impl CellPosition {
    /// Returns the position of a cell.
    pub fn of(cell: &CellRef<'_>) -> CellPosition {
        CellPosition {
            row: cell.row.to_vec(),
            family: cell.family,
            qualifier: cell.qualifier.to_vec(),
            timestamp: cell.timestamp,
            sequence: cell.sequence,
            cell_type: cell.cell_type,
        }
    }
}
