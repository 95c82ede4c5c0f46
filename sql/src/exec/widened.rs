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

    /// Returns how many more rows a batch has room for.
    pub(super) fn room(&self) -> usize {
        BATCH_ROWS.saturating_sub(self.rows.len())
    }

    /// Returns the rows, given the input that their numbers are of, and which columns of it nobody
    /// reads: they are NULL. `None` if there are no rows.
    pub(super) fn into_batch(self, input: &Batch, unread: &[usize]) -> Option<Batch> {
        let row_count = self.rows.len();
        let nulls = |column: &Vector| {
            let mut nulls = column.take(&[]);
            (0..row_count).for_each(|_| nulls.push_null());
            nulls
        };
        let columns = input.columns.iter().enumerate().map(|(at, column)| match at {
            at if unread.contains(&at) => Arc::new(nulls(column)),
            _ => Arc::new(column.take(&self.rows)),
        });
        let mut columns: Vec<Arc<Vector>> = columns.collect();
        columns.extend(self.columns.into_iter().map(Arc::new));
        (row_count > 0).then_some(Batch { columns, row_count })
    }
}
