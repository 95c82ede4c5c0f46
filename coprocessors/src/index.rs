//! The secondary index observer: index rows written in the transaction that writes the data row.

use std::sync::Arc;

use store::TableId;
use types::expr::Expr;
use types::rowcode::RowLayout;

/// One index, as the observer and the planner know it.
///
/// The index is stored as a table with [`IndexSpec::layout`]. Its columns are, in this order: the
/// index keys; the base table's primary key columns, in key order; the included columns.
///
/// * Not unique: the row key is the index keys followed by the primary key.
/// * Unique: the row key is the index keys; primary key and included columns are packed. If an index
///   key is NULL, the encoded primary key is appended to the row key, because NULLs do not collide;
///   `RowLayout::decode_key` ignores bytes after the last key column.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexSpec {
    /// Its name.
    pub name: String,
    /// Name of the base table, for messages.
    pub table_name: String,
    /// Where index rows live.
    pub store_table: TableId,
    /// No two rows agree in all index keys, unless one is NULL.
    pub unique: bool,
    /// The index keys, over the base row in table order; a plain column for most.
    pub keys: Vec<Expr>,
    /// Names of the keys, for messages: `Key (mail)=(a@x) already exists.`
    pub key_names: Vec<String>,
    /// Included columns of the base table, by position.
    pub include: Vec<usize>,
    /// How base rows are stored.
    pub base_layout: Arc<RowLayout>,
    /// How index rows are stored.
    pub layout: Arc<RowLayout>,
}

impl IndexSpec {
    /// Returns the base table's columns that the index holds: for each, its position in the base
    /// table and in the index's layout. A functional key holds no column.
    pub fn covered_columns(&self) -> Vec<(usize, usize)> {
        let keys = self.keys.iter().enumerate().filter_map(|(position, key)| match key {
            Expr::Column { index, .. } => Some((*index, position)),
            _ => None,
        });
        let primary_key = self.base_layout.key.iter().map(|key| key.column);
        let rest = primary_key.chain(self.include.iter().copied()).enumerate();
        let first = self.keys.len();
        keys.chain(rest.map(|(offset, column)| (column, first + offset))).collect()
    }
}

/// Keeps one index in step with its table.
pub struct IndexObserver {
    spec: Arc<IndexSpec>,
}

impl IndexObserver {
    /// Returns an observer for this index.
    pub fn new(spec: Arc<IndexSpec>) -> IndexObserver {
        IndexObserver { spec }
    }
}

impl store::observer::RegionObserver for IndexObserver {
    fn name(&self) -> &str {
        let _ = &self.spec;
        todo!("coprocessors/index")
    }
}

/// Returns the row key of the index entry of a base row (in table order).
pub fn index_row_key(spec: &IndexSpec, base_row: &[types::Datum]) -> types::Result<Vec<u8>> {
    let _ = (spec, base_row);
    todo!("coprocessors/index")
}

/// Returns the put of the index entry of a base row (in table order); `None` if the row is not in the
/// index.
pub fn index_entry(
    spec: &IndexSpec,
    base_row: &[types::Datum],
) -> types::Result<Option<store::Mutation>> {
    let _ = (spec, base_row);
    todo!("coprocessors/index")
}

/// Returns the base table's row key, salt included, of an index row.
pub fn base_key(spec: &IndexSpec, index_row: &store::RowRef<'_>) -> types::Result<Vec<u8>> {
    let _ = (spec, index_row);
    todo!("coprocessors/index")
}

/// Fills the index from all rows of the base table in the caller's transaction, and returns the
/// number of entries. The caller keeps other writers away from the table until it has committed.
///
/// # Errors
///
/// `23505` `could not create unique index "i"` if a key occurs twice.
pub fn index_build(
    transaction: &store::Transaction,
    base_table: TableId,
    spec: &IndexSpec,
) -> store::Result<u64> {
    let _ = (transaction, base_table, spec);
    todo!("coprocessors/index")
}
