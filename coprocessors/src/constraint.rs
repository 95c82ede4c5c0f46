//! The constraint observer: NOT NULL and CHECK, checked where the row is written.

use std::sync::Arc;

use types::expr::Expr;
use types::rowcode::RowLayout;

/// The constraints of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct ConstraintSpec {
    /// Name of the table, for messages.
    pub table_name: String,
    /// Names of the columns, in table order, for messages.
    pub column_names: Vec<String>,
    /// How rows are stored.
    pub layout: Arc<RowLayout>,
    /// Columns that refuse NULL, by position.
    pub not_null: Vec<usize>,
    /// CHECK constraints.
    pub checks: Vec<Check>,
    /// Name of the primary key constraint, for duplicate keys.
    pub primary_key_name: String,
}

/// One CHECK constraint.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Its name.
    pub name: String,
    /// Over the row in table order; a row is refused if it is false (NULL passes).
    pub predicate: Expr,
}
