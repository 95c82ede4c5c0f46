//! The first row of each kind, in order of appearance: DISTINCT, DISTINCT ON.

use std::sync::Arc;

use types::aggregate::GroupTable;
use types::expr::Expr;
use types::{Batch, DataType, Vector};

use crate::error::Result;
use crate::exec::project::columns_of;
use crate::exec::{Context, Operator, build, memory};
use crate::plan::DistinctNode;

/// Keeps what was seen in a hash table.
pub(super) struct Distinct {
    node: Arc<DistinctNode>,
    context: Arc<Context>,
    input: Box<dyn Operator>,
    seen: GroupTable,
    /// Reused from batch to batch.
    groups: Vec<u32>,
}

/// Returns the positions of the rows whose group was not there before, the first of each.
pub(super) fn first_of_each(groups: &[u32], before: usize) -> Vec<u32> {
    let mut next = before as u32;
    let mut first = Vec::new();
    for (row, &group) in groups.iter().enumerate() {
        // Groups are numbered in order of appearance.
        if group == next {
            first.push(row as u32);
            next += 1;
        }
    }
    first
}

impl Distinct {
    /// Opens it and what is below.
    pub(super) fn open(node: &Arc<DistinctNode>, context: &Arc<Context>) -> Result<Distinct> {
        let types: Vec<DataType> = node.on.iter().map(Expr::data_type).collect();
        Ok(Distinct {
            node: Arc::clone(node),
            context: Arc::clone(context),
            input: build(&node.input, context)?,
            seen: GroupTable::new(&types),
            groups: Vec::new(),
        })
    }
}

impl Operator for Distinct {
    fn next(&mut self) -> Result<Option<Batch>> {
        while let Some(batch) = self.input.next()? {
            self.context.check()?;
            let before = self.seen.group_count();
            let keys = columns_of(&self.node.on, &batch, &self.context.eval)?;
            let keys: Vec<&Vector> = keys.iter().map(Arc::as_ref).collect();
            self.seen.assign(&keys, batch.row_count, &mut self.groups);
            memory::check(self.seen.byte_count(), self.context.work_mem)?;
            let first = first_of_each(&self.groups, before);
            if !first.is_empty() {
                return Ok(Some(batch.take(&first)));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::first_of_each;

    #[test]
    fn only_new_groups_count() {
        assert_eq!(first_of_each(&[0, 2, 1, 2, 3, 3], 2), vec![1, 4]);
    }
}
