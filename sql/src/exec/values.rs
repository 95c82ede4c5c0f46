//! VALUES: constant rows.

use std::sync::Arc;

use types::vector::{BATCH_ROWS, RowSizes};
use types::{Batch, Vector};

use crate::error::Result;
use crate::exec::{Context, Operator};
use crate::plan::ValuesNode;

/// VALUES operator.
pub(super) struct Values {
    node: Arc<ValuesNode>,
    context: Arc<Context>,
    next: usize,
    /// Maximum number of rows in a batch.
    row_limit: usize,
}

impl Values {
    /// Opens the operator.
    pub(super) fn open(node: &Arc<ValuesNode>, context: &Arc<Context>) -> Values {
        let row_limit = match context.row_by_row && node.has_effects() {
            true => 1,
            false => BATCH_ROWS,
        };
        Values { node: Arc::clone(node), context: Arc::clone(context), next: 0, row_limit }
    }
}

impl Operator for Values {
    fn next(&mut self) -> Result<Option<Batch>> {
        self.context.check()?;
        if let Some(constants) = &self.node.constants {
            let sizes = RowSizes::of(&constants.columns);
            let to = self.next + sizes.batch_len(self.next..constants.row_count);
            let rows: Vec<u32> = (self.next as u32..to as u32).collect();
            self.next = to;
            return Ok((!rows.is_empty()).then(|| constants.take(&rows)));
        }
        let rest = &self.node.rows[self.next..];
        let rows = &rest[..rest.len().min(self.row_limit)];
        if rows.is_empty() {
            return Ok(None);
        }
        self.next += rows.len();
        let mut columns: Vec<Vector> =
            self.node.types.iter().map(|data_type| Vector::new(data_type, rows.len())).collect();
        for row in rows {
            for (column, value) in columns.iter_mut().zip(row) {
                column.push(&value.eval_row(&[], &self.context.eval)?);
            }
        }
        let columns = columns.into_iter().map(Arc::new).collect();
        Ok(Some(Batch { columns, row_count: rows.len() }))
    }
}
