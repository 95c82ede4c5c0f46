//! INTERSECT and EXCEPT: a hash table counts the rows of the right side, and the rows of the left
//! side are held against it as they come.

use std::sync::Arc;

use types::aggregate::GroupTable;
use types::{Batch, Vector};

use crate::error::Result;
use crate::exec::{Context, Operator, build, memory};
use crate::logical::SetKind;
use crate::plan::SetOperationNode;

/// See the module.
pub(super) struct HashSetOp {
    node: Arc<SetOperationNode>,
    context: Arc<Context>,
    left: Box<dyn Operator>,
    /// Until it was read.
    right: Option<Box<dyn Operator>>,
    groups: GroupTable,
    /// Of each group: with ALL the rows of the right side that no row of the left side was set
    /// against yet; else 1 until the group's fate is decided.
    counts: Vec<u64>,
    /// The groups that are on the right side come before this one.
    right_groups: usize,
    /// Reused from batch to batch.
    assigned: Vec<u32>,
}

impl HashSetOp {
    /// Opens it and what is below.
    pub(super) fn open(node: &Arc<SetOperationNode>, context: &Arc<Context>) -> Result<HashSetOp> {
        Ok(HashSetOp {
            left: build(&node.left, context)?,
            right: Some(build(&node.right, context)?),
            groups: GroupTable::new(&node.types),
            node: Arc::clone(node),
            context: Arc::clone(context),
            counts: Vec::new(),
            right_groups: 0,
            assigned: Vec::new(),
        })
    }

    /// Finds the group of each row of a batch.
    fn assign(&mut self, batch: &Batch) -> Result<()> {
        self.context.check()?;
        let keys: Vec<&Vector> = batch.columns.iter().map(Arc::as_ref).collect();
        self.groups.assign(&keys, batch.row_count, &mut self.assigned);
        self.counts.resize(self.groups.group_count(), 0);
        let bytes = self.groups.byte_count() + self.counts.capacity() * size_of::<u64>();
        memory::check(bytes, self.context.work_mem)
    }

    fn read_right(&mut self, right: &mut dyn Operator) -> Result<()> {
        while let Some(batch) = right.next()? {
            self.assign(&batch)?;
            for &group in &self.assigned {
                self.counts[group as usize] += 1;
            }
        }
        self.right_groups = self.groups.group_count();
        Ok(())
    }

    /// Returns whether the next row of the left side, of this group, is in the answer.
    fn takes(&mut self, group: u32) -> bool {
        let group = group as usize;
        let on_right = group < self.right_groups;
        match (self.node.kind, self.node.all) {
            (SetKind::Intersect, false) => std::mem::take(&mut self.counts[group]) > 0,
            (SetKind::Except, false) => {
                let first = self.counts[group] == 0;
                self.counts[group] = 1;
                first && !on_right
            }
            (kind, true) => {
                let paired = self.counts[group] > 0;
                self.counts[group] -= u64::from(paired);
                paired == (kind == SetKind::Intersect)
            }
        }
    }
}

impl Operator for HashSetOp {
    fn next(&mut self) -> Result<Option<Batch>> {
        if let Some(mut right) = self.right.take() {
            self.read_right(right.as_mut())?;
        }
        while let Some(batch) = self.left.next()? {
            self.assign(&batch)?;
            let assigned = std::mem::take(&mut self.assigned);
            let rows = (0u32..).zip(&assigned).filter(|(_, group)| self.takes(**group));
            let taken: Vec<u32> = rows.map(|(row, _)| row).collect();
            self.assigned = assigned;
            if taken.len() == batch.row_count {
                return Ok(Some(batch));
            }
            if !taken.is_empty() {
                return Ok(Some(batch.take(&taken)));
            }
        }
        Ok(None)
    }
}
