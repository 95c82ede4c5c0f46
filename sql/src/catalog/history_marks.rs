//! Marks in the catalog whose commit timestamps are the beginnings of table histories, for time
//! travel.
//!
//! The system table has a row for each table: its key is `b` and the table's number, its only cell
//! is empty. It is written when the table is created, and again when TRUNCATE or a rewrite
//! replaces the tables of the store; the cell has the commit timestamp. When a column is dropped,
//! a row with the name of the column after the number is written. When an index is complete, a row
//! with a zero byte and the number of the index after that of the table is written. A table without
//! a mark has a history of unknown begin, an index without one has none.

/// The key prefix of marks.
pub const HISTORY_PREFIX: &[u8] = b"b";

/// Returns the key of the mark of the table with this number.
pub fn history_key(oid: u32) -> Vec<u8> {
    [HISTORY_PREFIX, oid.to_be_bytes().as_slice()].concat()
}

/// Returns the key of the mark of a dropped column.
pub fn dropped_column_key(oid: u32, column: &str) -> Vec<u8> {
    [history_key(oid).as_slice(), column.as_bytes()].concat()
}

/// Returns the key of the mark of an index of a table.
pub fn index_history_key(table: u32, index: u32) -> Vec<u8> {
    [history_key(table).as_slice(), &[0], index.to_be_bytes().as_slice()].concat()
}
