//! What the planner knows of the data: how many rows tables have, and what ANALYZE found out.
//!
//! It is asked of whoever calls the planner, so that plans can be made, and tested, without a
//! store. What a plan was made with is kept with it ([`Sizes`]): a prepared statement is planned
//! again when its tables have another size.

use std::cell::RefCell;
use std::sync::Arc;

use store::TableId;

use crate::catalog::statistics::TableStatistics;
use crate::logical::KnownTable;

/// Rows of a table of which nothing is known.
pub const UNKNOWN_ROWS: f64 = 1_000.0;

/// Answers what the planner asks about data.
pub trait Statistics {
    /// Returns about how many rows a table or an index of the store has; `None` if that is not
    /// known. Cheap: it is asked for the tables of every join.
    fn row_count(&self, table: TableId) -> Option<f64>;

    /// Returns about which part of a table's rows is in columnar blocks, 0 to 1. Cheap, too.
    fn columnar_part(&self, table: TableId) -> f64;

    /// Returns what ANALYZE found out about a table, if it did.
    fn table(&self, table: TableId) -> Option<Arc<TableStatistics>>;
}

/// A table that has grown or shrunk by such a factor is another one.
const CHANGE: f64 = 8.0;
/// So many rows more or less never matter.
const FEW_ROWS: f64 = 1_000.0;

/// What a plan was made with: the rows that tables had.
#[derive(Debug, Default)]
pub struct Sizes(Vec<(TableId, f64)>);

impl Sizes {
    /// Returns whether the tables still have about as many rows.
    pub fn hold(&self, statistics: &dyn Statistics) -> bool {
        self.0.iter().all(|&(table, then)| match statistics.row_count(table) {
            Some(now) => now.max(then) <= CHANGE * now.min(then) + FEW_ROWS,
            // It is gone, and so is the plan: the catalog says so.
            None => true,
        })
    }
}

/// Statistics that take note of what is asked.
pub struct Noted<'a> {
    statistics: &'a dyn Statistics,
    asked: RefCell<Sizes>,
}

impl<'a> Noted<'a> {
    /// Returns statistics of which nothing was asked yet.
    pub fn new(statistics: &'a dyn Statistics) -> Noted<'a> {
        Noted { statistics, asked: RefCell::default() }
    }

    /// Returns what was asked.
    pub fn into_sizes(self) -> Sizes {
        self.asked.into_inner()
    }
}

impl Statistics for Noted<'_> {
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

impl Statistics for KnownTable {
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

/// Knows nothing.
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
