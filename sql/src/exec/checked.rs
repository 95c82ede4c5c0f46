//! Checks of operators in debug builds: the batches that they return, and the order of their
//! calls.
//!
//! # Invariants
//!
//! 1. A batch has at least one row, and each of its columns has a value for each row.
//! 2. The columns of a batch have the representations of the node's column types, unless a stage
//!    of a parent node is attached.
//! 3. An operator is not called after an error.
//! 4. A stage is attached before a batch was read.
//!
//! `CheckedOperator` asserts 1 to 4. Release builds have no such operators.

use std::mem::discriminant;
use std::sync::Arc;

use types::Batch;
use types::vector::VectorData;

use crate::error::Result;
use crate::exec::Operator;
use crate::exec::stage::PipelineStage;
use crate::plan::Node;

/// Operator whose batches are checked.
struct CheckedOperator {
    inner: Box<dyn Operator>,
    /// Empty columns of the node; `None` where a stage is attached.
    columns: Option<Vec<VectorData>>,
    has_failed: bool,
    has_returned: bool,
}

/// Wraps an operator with checks, in debug builds.
pub(super) fn checked(node: &Node, inner: Box<dyn Operator>) -> Box<dyn Operator> {
    if !cfg!(debug_assertions) {
        return inner;
    }
    let types = node.column_types().into_iter();
    let columns = Some(types.map(|data_type| VectorData::for_type(&data_type, 0)).collect());
    Box::new(CheckedOperator { inner, columns, has_failed: false, has_returned: false })
}

impl CheckedOperator {
    fn check(&self, batch: &Batch) {
        let row_count = batch.row_count;
        debug_assert_ne!(row_count, 0, "an operator returned a batch without rows");
        for column in &batch.columns {
            debug_assert_eq!(column.len(), row_count, "values of a column in a batch");
        }
        let Some(columns) = &self.columns else { return };
        debug_assert_eq!(batch.columns.len(), columns.len(), "columns of a batch");
        for (at, (found, required)) in batch.columns.iter().zip(columns).enumerate() {
            debug_assert_eq!(
                discriminant(&found.data),
                discriminant(required),
                "column {at} has the values {:?} instead of {required:?}",
                found.data
            );
        }
    }
}

impl Operator for CheckedOperator {
    fn next(&mut self) -> Result<Option<Batch>> {
        debug_assert!(!self.has_failed, "an operator was called after an error");
        let batch = self.inner.next();
        match &batch {
            Ok(Some(batch)) => {
                self.check(batch);
                self.has_returned = true;
            }
            Ok(None) => {}
            Err(_) => self.has_failed = true,
        }
        batch
    }

    fn takes_stages(&self) -> bool {
        self.inner.takes_stages()
    }

    fn rewind(&mut self) -> Result<bool> {
        self.inner.rewind()
    }

    fn attach(&mut self, stage: &Arc<dyn PipelineStage>) -> Result<bool> {
        debug_assert!(!self.has_returned, "a stage was attached after a batch was read");
        let is_attached = self.inner.attach(stage)?;
        if is_attached {
            self.columns = None;
        }
        Ok(is_attached)
    }
}
