//! Secondary indexes. Entries are written in the transaction that writes the row and in the same
//! log record, so index and table are always consistent.
//!
//! * [`families`]: column families and lifetimes of entries.
//! * [`entry`]: the index row of a base row, and the base row's key of an index row.
//! * [`observer`]: maintains the index while its table changes.
//! * [`follow`]: changes the entries of rows that commits have changed, after the commits.
//! * [`build`]: fills an index from existing rows.
//! * [`fill`]: fills an index from existing rows, with concurrent writers.
//! * [`verify`]: compares an index with its table.
//! * [`mod@repair`]: corrects the differences.

use std::sync::Arc;

use store::TableId;
use types::expr::{EvalContext, Expr};
use types::inverted::InvertedClass;
use types::rowcode::{ColumnPlace, RowLayout};
use types::{Datum, Result};

use crate::violation::TableName;

pub mod families;
pub mod entry;
pub mod observer;
pub mod follow;
pub mod build;
pub mod fill;
pub mod verify;
pub mod repair;

pub use build::{BuildEnvironment, BuildProgress, index_build};
pub use entry::{base_key, duplicate_key, index_entry, index_row_key, key_prefix};
pub use families::{EntryFamilies, EntryFamily};
pub use fill::{IndexFill, index_fill};
pub use follow::follow_rows;
pub use observer::IndexObserver;
pub use repair::{RepairOutcome, repair};
pub use verify::{CheckCounts, DifferenceKind, IndexCheck, IndexDifference, check};

/// The definition of one index, for the observer and the planner.
///
/// The index is stored as a table with [`IndexSpec::layout`]. Its columns are, in this order: the
/// index keys; the base table's primary key columns, in key order; the included columns.
///
/// * Not unique: the row key is the index keys followed by the primary key.
/// * Unique: the row key is the index keys; primary key and included columns are packed. If an
///   index key is NULL (and NULLS NOT DISTINCT is not set), the encoded primary key is appended
///   to the row key, because NULLs are distinct; `RowLayout::decode_key` ignores bytes after the
///   last key column.
/// * Local: as not unique, with the base row's key behind the index keys in the form of a
///   [colocated table](store::descriptor::colocation). It may be declared unique if its keys
///   include the primary key, so that nothing has to be checked.
///
/// * Inverted: not unique, with one key. A row has an entry for each term of the key's value
///   ([`types::inverted`]), a bytea, in place of the value; possibly none.
///
/// A partial index has entries only for rows that satisfy its predicate.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexSpec {
    /// Name of the index.
    pub name: String,
    /// The base table, for messages.
    pub table: TableName,
    /// The store table of index rows.
    pub store_table: TableId,
    /// No two rows agree in all index keys, unless one is NULL.
    pub unique: bool,
    /// A deferrable unique index: entries have the form of an index that is not unique, and the
    /// session checks uniqueness at the end of a statement or transaction.
    pub deferrable_unique: bool,
    /// Its entries are in the regions of their rows.
    pub local: bool,
    /// NULLS NOT DISTINCT: NULL keys are equal to each other.
    pub nulls_not_distinct: bool,
    /// The index keys, over the base row in table order; mostly plain columns.
    pub keys: Vec<Expr>,
    /// The operator class of an inverted index.
    pub inverted: Option<InvertedClass>,
    /// Names of the keys, for messages: `Key (mail)=(a@x) already exists.`
    pub key_names: Vec<String>,
    /// Included columns of the base table, by position.
    pub include: Vec<usize>,
    /// The condition on base rows, in table order, of a partial index; `None` indexes all rows.
    pub predicate: Option<Expr>,
    /// Storage layout of base rows.
    pub base_layout: Arc<RowLayout>,
    /// Storage layout of index rows.
    pub layout: Arc<RowLayout>,
    /// The families of index rows.
    pub families: EntryFamilies,
}

impl IndexSpec {
    /// Returns whether rows with these keys are distinct because one key is NULL.
    pub fn is_distinct_by_null(&self, keys: &[Datum]) -> bool {
        !self.nulls_not_distinct && keys.iter().any(Datum::is_null)
    }

    /// Returns the columns of the base table that determine the keys of an entry and its
    /// existence, without those of the primary key; ascending.
    pub fn inputs(&self) -> Vec<usize> {
        let mut columns = Vec::new();
        for read in self.keys.iter().chain(&self.predicate) {
            columns.extend(read.columns());
        }
        columns.retain(|&column| {
            matches!(self.base_layout.columns[column].place, ColumnPlace::Packed { .. })
        });
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// Returns the columns among the [inputs](Self::inputs) that may expire before the row, which
    /// then has no entry.
    pub fn expiring_inputs(&self) -> Vec<usize> {
        let mut columns = self.inputs();
        columns.retain(|&column| self.base_layout.may_expire_before_row(column));
        columns
    }

    /// Returns whether a base row, in table order, has entries.
    ///
    /// # Errors
    ///
    /// Those of the predicate.
    pub fn has_entry(&self, base_row: &[Datum], context: &EvalContext) -> Result<bool> {
        match &self.predicate {
            None => Ok(true),
            Some(predicate) => Ok(predicate.eval_row(base_row, context)?.as_bool() == Some(true)),
        }
    }

    /// Returns whether no two rows of the table agree in the keys, except for NULLs.
    pub fn is_unique_everywhere(&self) -> bool {
        self.unique && self.predicate.is_none()
    }

    /// Returns the base table's columns that the index stores, as positions in the base table and
    /// in the index's layout. Functional keys and the key of an inverted index are not included.
    pub fn covered_columns(&self) -> Vec<(usize, usize)> {
        let keys = self.keys.iter().enumerate().filter_map(|(position, key)| match key {
            Expr::Column { index, .. } if self.inverted.is_none() => Some((*index, position)),
            _ => None,
        });
        let primary_key = self.base_layout.key.iter().map(|key| key.column);
        let rest = primary_key.chain(self.include.iter().copied()).enumerate();
        let first = self.keys.len();
        keys.chain(rest.map(|(offset, column)| (column, first + offset))).collect()
    }
}
