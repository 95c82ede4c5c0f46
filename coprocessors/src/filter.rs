//! A condition over a row's columns that runs in the region, row by row.
//!
//! For conditions so selective that most rows should never leave the region; where most rows pass,
//! filtering whole batches in the session costs less.

use std::sync::Arc;

use smallvec::SmallVec;
use store::RowRef;
use store::scan::Filter;
use types::Datum;
use types::expr::{EvalContext, Expr};
use types::rowcode::RowLayout;

use crate::row;
use crate::violation;

/// Keeps the rows for which a condition is true.
#[derive(Debug, Clone)]
pub struct RowFilter {
    layout: Arc<RowLayout>,
    columns: Vec<usize>,
    predicate: Expr,
    context: EvalContext,
    description: String,
}

impl RowFilter {
    /// Returns a filter by `predicate`, whose input row is `columns` (positions in table order).
    /// `description` is what EXPLAIN shows.
    ///
    /// The scan must read the families of the columns, see [`row::families_of`].
    pub fn new(
        layout: Arc<RowLayout>,
        columns: Vec<usize>,
        predicate: Expr,
        context: EvalContext,
        description: impl Into<String>,
    ) -> RowFilter {
        RowFilter { layout, columns, predicate, context, description: description.into() }
    }

    fn matches(&self, row: &RowRef<'_>) -> types::Result<bool> {
        let packed = row::packed_cells(row, self.layout.family_count);
        let mut values: SmallVec<[Datum; 8]> = SmallVec::with_capacity(self.columns.len());
        for &column in &self.columns {
            values.push(self.layout.unpack_column(column, row.key(), &packed)?);
        }
        let outcome = self.predicate.eval_row(&values, &self.context)?;
        Ok(matches!(outcome, Datum::Bool(true)))
    }
}

impl Filter for RowFilter {
    fn keep(&self, row: &RowRef<'_>) -> store::Result<bool> {
        self.matches(row).map_err(|error| violation::value_error("filter", error))
    }

    fn describe(&self) -> String {
        self.description.clone()
    }
}
