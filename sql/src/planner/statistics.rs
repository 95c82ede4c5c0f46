//! What the planner knows of the data: how many rows tables have.
//!
//! It is asked of whoever calls the planner, so that plans can be made, and tested, without a
//! store.

use store::TableId;

/// Rows of a table of which nothing is known.
pub const UNKNOWN_ROWS: f64 = 1_000.0;

/// Answers what the planner asks about data.
pub trait Statistics {
    /// Returns about how many rows a table or an index of the store has; `None` if that is not
    /// known. Cheap: it is asked for every table of a statement.
    fn row_count(&self, table: TableId) -> Option<f64>;
}

/// Knows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoStatistics;

impl Statistics for NoStatistics {
    fn row_count(&self, _table: TableId) -> Option<f64> {
        None
    }
}
