//! Row batches, column by column.

use std::sync::Arc;

use super::Vector;
use crate::datatype::DataType;
use crate::datum::Datum;
use crate::error::Result;
use crate::interruptible::InterruptPacer;

/// A batch of rows, column by column. Columns are shared, so that a projection copies nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// The columns.
    pub columns: Vec<Arc<Vector>>,
    /// The number of rows.
    pub row_count: usize,
}

impl Batch {
    /// Creates a batch from rows of datums, with columns of these types.
    pub fn from_rows(types: &[DataType], rows: &[Vec<Datum>]) -> Batch {
        let columns = types.iter().enumerate().map(|(column, data_type)| {
            let mut vector = Vector::new(data_type, rows.len());
            for row in rows {
                vector.push(&row[column]);
            }
            Arc::new(vector)
        });
        Batch { columns: columns.collect(), row_count: rows.len() }
    }

    /// Asserts that all columns have as many rows as the batch.
    pub fn check(&self) {
        debug_assert!(
            self.columns.iter().all(|column| column.len() == self.row_count),
            "columns of {:?} rows in a batch of {}",
            self.columns.iter().map(|column| column.len()).collect::<Vec<usize>>(),
            self.row_count
        );
    }

    /// Returns row `index` as datums.
    pub fn row(&self, index: usize) -> Vec<Datum> {
        self.columns.iter().map(|column| column.datum(index)).collect()
    }

    /// Returns row `index`, with values of any length, as [`Batch::row`] does.
    ///
    /// # Errors
    ///
    /// `57014` if the interrupt flag is set.
    pub fn row_at(&self, index: usize, pace: &mut InterruptPacer<'_>) -> Result<Vec<Datum>> {
        self.columns.iter().map(|column| column.datum_at(index, pace)).collect()
    }

    /// Returns the rows of `selection`, in its order.
    #[must_use]
    pub fn take(&self, selection: &[u32]) -> Batch {
        self.check();
        Batch {
            columns: self.columns.iter().map(|column| Arc::new(column.take(selection))).collect(),
            row_count: selection.len(),
        }
    }
}
