//! Rows of an input, each as often as it is wanted, with further columns beside its own.

use std::sync::Arc;

use types::vector::{BATCH_BYTES, BATCH_ROWS, RowSizes};
use types::{Batch, DataType, Vector};

/// Widened rows in the making.
pub(super) struct Widened {
    /// The input row of each.
    pub rows: Vec<u32>,
    /// The further columns, a value for each of `rows`.
    pub columns: Vec<Vector>,
    /// Bytes of the input rows, each as often as it is wanted.
    input_bytes: usize,
}

/// Rows that are made before it is known how long the values of the further columns are.
const FIRST_ROWS: usize = 8;

/// Returns the bytes of a row of an input, each of which may be wanted any number of times.
pub(super) fn input_row_bytes(input: &Batch, row: usize) -> usize {
    RowSizes::repeated(&input.columns).byte_count(row)
}

impl Widened {
    /// Returns no rows, with further columns of these types.
    pub(super) fn new(types: impl IntoIterator<Item = DataType>) -> Widened {
        let column = |data_type| Vector::new(data_type, BATCH_ROWS);
        let columns = types.into_iter().map(column).collect();
        Widened { rows: Vec::new(), columns, input_bytes: 0 }
    }

    /// Returns how many more rows a batch has room for whose input row has so many bytes: at least
    /// one if it has none yet.
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

    /// Adds an input row of so many bytes up to this number of rows.
    pub(super) fn fill_rows(&mut self, count: usize, (row, row_bytes): (usize, usize)) {
        self.input_bytes += count.saturating_sub(self.rows.len()) * row_bytes;
        self.rows.resize(count, row as u32);
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
