//! Statistics interface of the planner: row counts of tables, and the results of ANALYZE.
//!
//! The caller of the planner implements it, so that planning can be tested without a store. The
//! sizes that a plan depends on are stored with it ([`TableSizes`]): a prepared statement is
//! replanned when table sizes have changed.

use std::cell::RefCell;
use std::sync::Arc;

use store::TableId;

use crate::catalog::statistics::TableStatistics;
use crate::logical::ScanStatistics;

/// Assumed rows of a table without statistics.
pub const UNKNOWN_ROWS: f64 = 1_000.0;

/// Source of statistics.
pub trait Statistics {
    /// Returns the estimated number of rows of a store table; `None` if it is unknown. Must be
    /// cheap: it is called for the tables of every join.
    fn row_count(&self, table: TableId) -> Option<f64>;

    /// Returns the estimated fraction of a table's rows in columnar blocks, 0 to 1. Must be
    /// cheap, too.
    fn columnar_part(&self, table: TableId) -> f64;

    /// Returns the results of ANALYZE for a table, if there are any.
    fn table(&self, table: TableId) -> Option<Arc<TableStatistics>>;
}

/// Factor by which a table must grow or shrink to invalidate a plan.
const CHANGE: f64 = 8.0;
/// Change in rows that never invalidates a plan.
const FEW_ROWS: f64 = 1_000.0;

/// Row counts that a plan was made with.
#[derive(Debug, Default)]
pub struct TableSizes(Vec<(TableId, f64)>);

impl TableSizes {
    /// Returns whether the row counts are still similar.
    pub fn are_similar(&self, statistics: &dyn Statistics) -> bool {
        self.0.iter().all(|&(table, then)| match statistics.row_count(table) {
            Some(now) => now.max(then) <= CHANGE * now.min(then) + FEW_ROWS,
            // The table was dropped; the catalog version invalidates the plan.
            None => true,
        })
    }
}

/// Statistics source that records the requested row counts.
pub struct RecordingStatistics<'a> {
    statistics: &'a dyn Statistics,
    asked: RefCell<TableSizes>,
}

impl<'a> RecordingStatistics<'a> {
    /// Returns a recorder without any requests.
    pub fn new(statistics: &'a dyn Statistics) -> RecordingStatistics<'a> {
        RecordingStatistics { statistics, asked: RefCell::default() }
    }

    /// Returns the recorded row counts.
    pub fn into_sizes(self) -> TableSizes {
        self.asked.into_inner()
    }
}

impl Statistics for RecordingStatistics<'_> {
    fn row_count(&self, table: TableId) -> Option<f64> {
        let mut asked = self.asked.borrow_mut();
        if let Some(&(_, rows)) = asked.0.iter().find(|(known, _)| *known == table) {
            return Some(rows);
        }
        let rows = self.statistics.row_count(table)?;
        asked.0.push((table, rows));
        Some(rows)
    }

    fn columnar_part(&self, table: TableId) -> f64 {
        self.statistics.columnar_part(table)
    }

    fn table(&self, table: TableId) -> Option<Arc<TableStatistics>> {
        self.statistics.table(table)
    }
}

impl Statistics for ScanStatistics {
    fn row_count(&self, _table: TableId) -> Option<f64> {
        Some(self.rows)
    }

    fn columnar_part(&self, _table: TableId) -> f64 {
        self.columnar_part
    }

    fn table(&self, _table: TableId) -> Option<Arc<TableStatistics>> {
        Some(Arc::clone(&self.statistics))
    }
}

/// Statistics source without any statistics.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoStatistics;

impl Statistics for NoStatistics {
    fn row_count(&self, _table: TableId) -> Option<f64> {
        None
    }

    fn columnar_part(&self, _table: TableId) -> f64 {
        0.0
    }

    fn table(&self, _table: TableId) -> Option<Arc<TableStatistics>> {
        None
    }
}
