//! Append: the rows of several inputs in sequence (UNION ALL, partitions).

use std::sync::Arc;

use types::Batch;

use crate::error::Result;
use crate::exec::{Context, Operator, build};
use crate::plan::AppendNode;

/// Append operator; opens each input when the one before it has ended.
pub(super) struct Append {
    node: Arc<AppendNode>,
    context: Arc<Context>,
    next: usize,
    current: Option<Box<dyn Operator>>,
}

impl Append {
    /// Opens the operator; inputs are opened later, one at a time.
    pub(super) fn open(node: &Arc<AppendNode>, context: &Arc<Context>) -> Result<Append> {
        Ok(Append { node: Arc::clone(node), context: Arc::clone(context), next: 0, current: None })
    }
}

impl Operator for Append {
    fn next(&mut self) -> Result<Option<Batch>> {
        loop {
            if let Some(current) = &mut self.current {
                if let Some(batch) = current.next()? {
                    return Ok(Some(batch));
                }
                self.current = None;
            }
            let Some(input) = self.node.inputs.get(self.next) else { return Ok(None) };
            self.current = Some(build(input, &self.context)?);
            self.next += 1;
        }
    }
}
