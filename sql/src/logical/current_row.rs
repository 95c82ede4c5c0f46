//! Current row of a cursor: the target of `WHERE CURRENT OF`.
//!
//! The rows of a cursor contain, after the visible columns, the keys of the tables whose rows can
//! be changed. The data-changing statement finds the row by that key, whose values are
//! parameters.

use store::TableId;

/// Table whose keys a cursor's rows contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CursorTable {
    /// The table.
    pub table: TableId,
    /// Columns of the cursor's rows that are its key.
    pub columns: Vec<usize>,
}

/// Row that a statement changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentRow {
    /// Name of the cursor.
    pub cursor: String,
    /// The table.
    pub table: TableId,
    /// Name of the table, for messages.
    pub table_name: String,
    /// Parameters for the key values.
    pub parameters: Vec<usize>,
}
