//! Widened rows: input rows repeated with additional columns, for ProjectSet and lateral joins.

use std::borrow::Borrow;
use std::sync::Arc;

use types::vector::{BATCH_BYTES, BATCH_ROWS, RowSizes};
use types::{Batch, DataType, Vector};

/// Output batch under construction.
pub(super) struct WidenedRows {
    /// Input row of each output row.
    pub rows: Vec<u32>,
    /// Additional columns, a value for each output row.
    pub columns: Vec<Vector>,
    /// Size of the repeated input rows in bytes.
    input_bytes: usize,
}

/// Number of rows produced before the size of the additional values is known.
const FIRST_ROWS: usize = 8;

/// Returns the size in bytes of an input row, which may be repeated.
pub(super) fn input_row_bytes(input: &Batch, row: usize) -> usize {
    RowSizes::repeated(&input.columns).byte_count(row)
}

impl WidenedRows {
    /// Returns no rows, with additional columns of these types.
    pub(super) fn new(types: impl IntoIterator<Item: Borrow<DataType>>) -> WidenedRows {
        let columns = types
            .into_iter()
            .map(|data_type| Vector::new(data_type.borrow(), BATCH_ROWS))
            .collect();
        WidenedRows { rows: Vec::new(), columns, input_bytes: 0 }
    }

    /// Returns the number of further rows that fit into the batch, for an input row of this size:
    /// at least one if the batch is empty.
    pub(super) fn room(&self, row_bytes: usize) -> usize {
        let count = self.rows.len();
        let rows = BATCH_ROWS.saturating_sub(count);
        let texts = || self.columns.iter().filter_map(Vector::as_bytes_vector);
        if texts().next().is_none() && row_bytes == 0 {
            return rows;
        }
        if count == 0 && row_bytes == 0 {
            return FIRST_ROWS;
        }
        let own_bytes: usize = texts().map(|values| values.bytes.len()).sum();
        let bytes = row_bytes + own_bytes.div_ceil(count.max(1));
        let left = BATCH_BYTES.saturating_sub(self.input_bytes + own_bytes);
        rows.min(left / bytes.max(1)).max(usize::from(count == 0))
    }

    /// Repeats an input row until there are `count` rows.
    pub(super) fn fill_rows(&mut self, count: usize, (row, row_bytes): (usize, usize)) {
        self.input_bytes += count.saturating_sub(self.rows.len()) * row_bytes;
        self.rows.resize(count, row as u32);
    }

    /// Returns the output batch for the input batch; unread input columns are NULL. `None` if
    /// there are no rows.
    pub(super) fn into_batch(self, input: &Batch, unread: &[usize]) -> Option<Batch> {
        let row_count = self.rows.len();
        debug_assert!(
            self.columns.iter().all(|column| column.len() == row_count),
            "additional columns of another length than their rows"
        );
        debug_assert!(self.rows.is_sorted(), "input rows are repeated out of order");
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
