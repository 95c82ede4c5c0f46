//! Row filter: a condition over columns that is evaluated in the region, row by row.
//!
//! The planner uses it for conditions so selective that most rows should not leave the region;
//! otherwise, filtering whole batches in the session costs less.

use std::sync::Arc;

use smallvec::SmallVec;
use store::RowRef;
use store::scan::filter::RowPredicate;
use types::Datum;
use types::expr::{EvalContext, Expr};
use types::rowcode::{RowDecoder, RowLayout};

use crate::row;
use crate::violation;

/// A predicate that selects the rows for which a condition is true.
#[derive(Debug, Clone)]
pub struct RowFilter {
    layout: Arc<RowLayout>,
    columns: Vec<usize>,
    predicate: Expr,
    context: EvalContext,
    description: String,
}

impl RowFilter {
    /// Creates a filter by `predicate`, whose input row is `columns` (positions in table order).
    /// `description` is shown by EXPLAIN.
    ///
    /// The scan must read the columns, see [`row::ReadColumns`].
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
        let packed = row::packed_cells(row, &self.layout);
        let mut values: SmallVec<[Datum; 8]> = SmallVec::from_elem(Datum::Null, self.columns.len());
        RowDecoder::new(&self.layout, &self.columns)?.decode(row.key(), &packed, &mut values)?;
        let outcome = self.predicate.eval_row(&values, &self.context)?;
        Ok(matches!(outcome, Datum::Bool(true)))
    }
}

impl RowPredicate for RowFilter {
    fn keep(&self, row: &RowRef<'_>) -> store::Result<bool> {
        self.matches(row).map_err(|error| violation::value_error("filter", error))
    }

    fn describe(&self) -> String {
        self.description.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{column, key, layout, stored_row};
    use types::DataType;

    #[test]
    fn row_filter_rejects_false_and_null() {
        let columns = [(DataType::Int4, 0), (DataType::Int4, 0), (DataType::Bool, 1)];
        let layout = Arc::new(layout(&columns, &[key(0, false)], 0));
        let is_kept = |keep: Datum| {
            let predicate = Expr::Column { index: 0, data_type: DataType::Bool };
            let filter = RowFilter::new(
                Arc::clone(&layout),
                vec![2],
                predicate,
                EvalContext::default(),
                "keep",
            );
            let cells = stored_row(&layout, &[Datum::Int4(1), Datum::Null, keep], 1);
            filter.keep(&cells.row(0)).unwrap()
        };
        assert!(is_kept(Datum::Bool(true)));
        assert!(!is_kept(Datum::Bool(false)));
        assert!(!is_kept(Datum::Null));
    }

    #[test]
    fn undecodable_cell_fails_scan() {
        let layout = Arc::new(layout(&[(DataType::Text, 0)], &[key(0, false)], 0));
        let predicate = Expr::IsNull(Box::new(column(&layout, 0)));
        let context = EvalContext::default();
        let filter = RowFilter::new(layout, vec![0], predicate, context, "a is null");
        let cells = crate::fixture::row_of_cells(b"\xEE", &[(0, b"", 1)]);
        let outcome = filter.keep(&cells.row(0));
        assert!(matches!(outcome, Err(store::Error::Vetoed(veto)) if veto.code == "XX001"));
    }
}
