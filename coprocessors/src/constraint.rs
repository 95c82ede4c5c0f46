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

/// Checks the rows of a table as they are written.
pub struct ConstraintObserver {
    spec: ConstraintSpec,
}

impl ConstraintObserver {
    /// Returns an observer for these constraints.
    pub fn new(spec: ConstraintSpec) -> ConstraintObserver {
        ConstraintObserver { spec }
    }
}

impl store::observer::RegionObserver for ConstraintObserver {
    fn name(&self) -> &str {
        let _ = &self.spec;
        todo!("coprocessors/constraint")
    }
}

/// Returns the veto for a row whose primary key is taken: `23505`.
pub fn duplicate_key_veto(spec: &ConstraintSpec, row_key: &[u8]) -> store::error::Veto {
    let _ = (spec, row_key);
    todo!("coprocessors/constraint")
}
