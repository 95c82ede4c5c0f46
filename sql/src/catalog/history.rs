//! Where the histories of tables begin: marks in the catalog whose commit times say it.
//!
//! A row of the system table for each table: its key is `b` and the table's number, its one cell is
//! empty. It is written when the table is created, and again when TRUNCATE or a rewrite puts new
//! tables of the store in the place of the old ones; the timestamp of the cell is that of the
//! commit. A row with the name of a column behind the number is written when that one is dropped.
//! Tables of older builds have none: nothing is known of their beginning.

/// What the keys of marks begin with.
const HISTORY_PREFIX: &[u8] = b"b";

/// Returns the key of the mark of the table with this number.
pub fn history_key(oid: u32) -> Vec<u8> {
    [HISTORY_PREFIX, oid.to_be_bytes().as_slice()].concat()
}

/// Returns the key of the mark of a column that was dropped.
pub fn dropped_column_key(oid: u32, column: &str) -> Vec<u8> {
    [history_key(oid).as_slice(), column.as_bytes()].concat()
}
