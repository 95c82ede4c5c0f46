//! Rows of an input, each as often as it is wanted, with further columns beside its own.

use std::sync::Arc;

use types::vector::BATCH_ROWS;
use types::{Batch, DataType, Vector};

/// Widened rows in the making.
pub(super) struct Widened {
    /// The input row of each.
    pub rows: Vec<u32>,
    /// The further columns, a value for each of `rows`.
    pub columns: Vec<Vector>,
}

impl Widened {
    /// Returns no rows, with further columns of these types.
    pub(super) fn new(types: impl IntoIterator<Item = DataType>) -> Widened {
        let column = |data_type| Vector::new(data_type, BATCH_ROWS);
        Widened { rows: Vec::new(), columns: types.into_iter().map(column).collect() }
    }

    /// Returns whether they are enough for a batch.
    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= BATCH_ROWS
    }

    /// Returns the rows, given the input that their numbers are of; `None` if there are none.
    pub(super) fn into_batch(self, input: &Batch) -> Option<Batch> {
        let row_count = self.rows.len();
        let mut columns = input.take(&self.rows).columns;
        columns.extend(self.columns.into_iter().map(Arc::new));
        (row_count > 0).then_some(Batch { columns, row_count })
    }
}
