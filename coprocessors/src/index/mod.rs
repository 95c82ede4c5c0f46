//! Secondary indexes: index rows written in the transaction that writes the data row, so that they
//! can never disagree.
//!
//! * [`families`]: how long it lives.
//! * [`entry`]: the index row of a base row, and the way back.
//! * [`observer`]: keeps the index in step with its table.
//! * [`build`]: fills it from rows that are there already.
//! * [`verify`]: compares both.

use std::sync::Arc;

use store::TableId;
use types::expr::{EvalContext, Expr};
use types::rowcode::{Place, RowLayout};
use types::{Datum, Result};

use crate::violation::TableName;

pub mod families;
pub mod entry;
pub mod observer;
pub mod build;
pub mod verify;

pub use build::{BuildEnvironment, index_build, index_fill};
pub use entry::{base_key, duplicate_key, index_entry, index_row_key, key_prefix};
pub use families::{EntryFamilies, EntryFamily};
pub use observer::IndexObserver;
pub use verify::{IndexDifference, check};

/// One index, as the observer and the planner know it.
///
/// The index is stored as a table with [`IndexSpec::layout`]. Its columns are, in this order: the
/// index keys; the base table's primary key columns, in key order; the included columns.
///
/// * Not unique: the row key is the index keys followed by the primary key.
/// * Unique: the row key is the index keys; primary key and included columns are packed. If an
///   index key is NULL, the encoded primary key is appended to the row key, because NULLs do not
///   collide, but where they are not distinct;
///   `RowLayout::decode_key` ignores bytes after the last key column.
///
/// A partial index has entries of the rows only of which its predicate is true.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexSpec {
    /// Its name.
    pub name: String,
    /// The base table, for messages.
    pub table: TableName,
    /// Where index rows live.
    pub store_table: TableId,
    /// No two rows agree in all index keys, unless one is NULL.
    pub unique: bool,
    /// They do not either, but somebody else looks at that, when a statement or a transaction ends:
    /// the entries are those of an index that is not unique.
    pub unique_later: bool,
    /// Nor if one is NULL.
    pub nulls_not_distinct: bool,
    /// The index keys, over the base row in table order; a plain column for most.
    pub keys: Vec<Expr>,
    /// Names of the keys, for messages: `Key (mail)=(a@x) already exists.`
    pub key_names: Vec<String>,
    /// Included columns of the base table, by position.
    pub include: Vec<usize>,
    /// What holds of the base rows, in table order, that have an entry; `None` for all rows.
    pub predicate: Option<Expr>,
    /// How base rows are stored.
    pub base_layout: Arc<RowLayout>,
    /// How index rows are stored.
    pub layout: Arc<RowLayout>,
    /// The families of index rows.
    pub families: EntryFamilies,
}

impl IndexSpec {
    /// Returns whether rows with these keys do not collide, because one of them is NULL.
    pub fn are_apart(&self, keys: &[Datum]) -> bool {
        !self.nulls_not_distinct && keys.iter().any(Datum::is_null)
    }

    /// Returns the columns of the base table that decide about the keys of an entry and whether
    /// there is one, but for those of the primary key; ascending.
    pub fn inputs(&self) -> Vec<usize> {
        let mut columns = Vec::new();
        for read in self.keys.iter().chain(&self.predicate) {
            columns.extend(read.columns());
        }
        columns.retain(|&column| {
            matches!(self.base_layout.columns[column].place, Place::Packed { .. })
        });
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// Returns the columns among the [inputs](Self::inputs) that may expire while the row goes on:
    /// it has no entry then.
    pub fn expiring_inputs(&self) -> Vec<usize> {
        let mut columns = self.inputs();
        columns.retain(|&column| self.base_layout.expires_apart(column));
        columns
    }

    /// Returns whether a base row, in table order, has an entry.
    ///
    /// # Errors
    ///
    /// What the predicate raises.
    pub fn has_entry(&self, base_row: &[Datum], context: &EvalContext) -> Result<bool> {
        match &self.predicate {
            None => Ok(true),
            Some(predicate) => Ok(predicate.eval_row(base_row, context)?.as_bool() == Some(true)),
        }
    }

    /// Returns whether no two rows of the table agree in the keys, for all that NULLs do.
    pub fn is_unique_everywhere(&self) -> bool {
        self.unique && self.predicate.is_none()
    }

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
