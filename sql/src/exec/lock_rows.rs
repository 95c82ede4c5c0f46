//! Rows locked one after the other as the step above takes them, read again, checked again, and
//! yielded as they are now.

use std::collections::VecDeque;
use std::sync::Arc;

use types::{Batch, Datum};

use crate::error::Result;
use crate::exec::lock::lock_rows;
use crate::exec::scan::goal_rows;
use crate::exec::{Context, Operator, build};
use crate::plan::LockRowsNode;

/// See the module.
pub(super) struct LockEach {
    node: Arc<LockRowsNode>,
    context: Arc<Context>,
    /// Yields the keys of the rows.
    input: Box<dyn Operator>,
    /// Keys of rows that are not locked yet.
    unlocked: VecDeque<Vec<u8>>,
    /// Rows still wanted.
    left: Option<u64>,
}

impl LockEach {
    /// Opens it and its input.
    pub(super) fn open(node: &Arc<LockRowsNode>, context: &Arc<Context>) -> Result<LockEach> {
        Ok(LockEach {
            input: build(&node.input, context)?,
            left: goal_rows(&node.goal, context)?,
            unlocked: VecDeque::new(),
            node: Arc::clone(node),
            context: Arc::clone(context),
        })
    }

    fn keys(&self, batch: &Batch) -> Result<VecDeque<Vec<u8>>> {
        let layout = &self.node.scan.table.layout;
        let mut values: Vec<Datum> = Vec::with_capacity(self.node.key.len());
        let key = |row: usize| {
            values.clear();
            values.extend(self.node.key.iter().map(|&column| batch.columns[column].datum(row)));
            Ok(layout.encode_key_values(&values)?)
        };
        (0..batch.row_count).map(key).collect()
    }
}

impl Operator for LockEach {
    fn next(&mut self) -> Result<Option<Batch>> {
        let scan = &self.node.scan;
        let Some(lock) = &scan.lock else { return Ok(None) };
        while self.left != Some(0) {
            if self.unlocked.is_empty() {
                let Some(batch) = self.input.next()? else { return Ok(None) };
                self.unlocked = self.keys(&batch)?;
            }
            let limit = self.left.unwrap_or(u64::MAX);
            let rows = lock_rows(scan, lock, &mut self.unlocked, limit, &self.context)?;
            if rows.row_count > 0 {
                let column = |&column: &usize| Arc::clone(&rows.columns[column]);
                let columns = scan.output.iter().map(column).collect();
                if let Some(left) = &mut self.left {
                    *left = left.saturating_sub(rows.row_count as u64);
                }
                return Ok(Some(Batch { columns, row_count: rows.row_count }));
            }
        }
        Ok(None)
    }
}
