//! The row that a cursor stands on: what `WHERE CURRENT OF` changes.
//!
//! The rows of a cursor have, behind the columns that are shown, the keys of the tables of which
//! such a row can be changed. The statement that changes it finds it by the key, whose values are
//! parameters.

use store::TableId;

/// A table of whose rows a cursor keeps the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CursorTable {
    /// The table.
    pub table: TableId,
    /// The columns of the cursor's rows that are its key.
    pub columns: Vec<usize>,
}

/// The row that a statement changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentRow {
    /// The name of the cursor.
    pub cursor: String,
    /// The table.
    pub table: TableId,
    /// Its name, for messages.
    pub table_name: String,
    /// The parameters that take the key.
    pub parameters: Vec<usize>,
}
