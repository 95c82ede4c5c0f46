//! INTERSECT and EXCEPT: a hash table of row counts of the right side, probed with the left rows.
//!
//! ```text
//!   right -> counts --more than work_mem--> both sides to partitions by row, on disk
//!   left  -> result                         partition after partition -> counts, result
//! ```
//!
//! EXCEPT without ALL returns duplicate left rows; a Distinct node above removes them.

use std::sync::Arc;

use types::aggregate::{GroupTable, key_hashes};
use types::vector::{BATCH_ROWS, VectorData};
use types::{Batch, DataType, Vector};

use crate::error::Result;
use crate::exec::partitions::{LEVEL_MAX, SpillPartitions, SpillScan};
use crate::exec::{Context, Operator, build, memory};
use crate::logical::SetKind;
use crate::plan::SetOperationNode;
use crate::spill::SpillFile;

/// Hash set operation operator; see the module.
pub(super) struct HashSetOp {
    node: Arc<SetOperationNode>,
    context: Arc<Context>,
    /// Current left rows.
    left: Box<dyn Operator>,
    /// Right side until it was read. Rows of a partition have their count as last column.
    right: Option<Box<dyn Operator>>,
    types: Arc<[DataType]>,
    /// Number of times that the current rows were partitioned.
    level: u32,
    /// Pending partitions.
    pending: Vec<SetOpPartition>,
    groups: GroupTable,
    /// Number of unpaired right rows of each group.
    counts: Vec<u64>,
    /// Buffer reused for each batch.
    assigned: Vec<u32>,
}

/// Both sides of a partition.
struct SetOpPartition {
    level: u32,
    left: Arc<SpillFile>,
    right: Option<Arc<SpillFile>>,
}

impl HashSetOp {
    /// Opens the operator and its inputs.
    pub(super) fn open(node: &Arc<SetOperationNode>, context: &Arc<Context>) -> Result<HashSetOp> {
        Ok(HashSetOp {
            left: build(&node.left, context)?,
            right: Some(build(&node.right, context)?),
            types: node.types.clone().into(),
            level: 0,
            pending: Vec::new(),
            groups: GroupTable::new(&node.types),
            node: Arc::clone(node),
            context: Arc::clone(context),
            counts: Vec::new(),
            assigned: Vec::new(),
        })
    }

    fn counted_types(&self) -> Arc<[DataType]> {
        self.types.iter().cloned().chain([DataType::Int8]).collect()
    }

    /// Counts the right side, or writes both sides to partitions.
    fn read_right(&mut self, mut right: Box<dyn Operator>) -> Result<()> {
        while let Some(batch) = right.next()? {
            self.context.check()?;
            let batch = self.counted(batch);
            let (counts, keys) = parts(&batch);
            self.groups.assign(&keys, batch.row_count, &mut self.assigned);
            self.counts.resize(self.groups.group_count(), 0);
            for (&group, &count) in self.assigned.iter().zip(counts) {
                self.counts[group as usize] += count as u64;
            }
            let bytes = self.groups.byte_count() + self.counts.capacity() * size_of::<u64>();
            if bytes <= self.context.work_mem() {
                continue;
            }
            if self.level == LEVEL_MAX {
                memory::check(bytes, self.context.work_mem())?;
                continue;
            }
            return self.set_aside(right.as_mut());
        }
        Ok(())
    }

    /// Appends the counts to rows of the right side.
    fn counted(&self, mut batch: Batch) -> Batch {
        if batch.columns.len() == self.types.len() {
            let ones = VectorData::Int8(vec![1; batch.row_count]);
            batch.columns.push(Arc::new(Vector { data: ones, validity: None }));
        }
        batch
    }

    /// Writes both sides, as far as they were not processed, to partitions.
    fn set_aside(&mut self, right: &mut dyn Operator) -> Result<()> {
        let mut of_right = SpillPartitions::new(&self.counted_types(), self.level);
        let groups = std::mem::replace(&mut self.groups, GroupTable::new(&self.types));
        let counts: Vec<i64> =
            std::mem::take(&mut self.counts).into_iter().map(|count| count as i64).collect();
        for from in (0..counts.len()).step_by(BATCH_ROWS) {
            let range = from..counts.len().min(from + BATCH_ROWS);
            let counts = VectorData::Int8(counts[range.clone()].to_vec());
            let counts = Vector { data: counts, validity: None };
            let row_count = range.len();
            let columns = groups.keys(range).into_iter().chain([counts]).map(Arc::new).collect();
            self.add(&mut of_right, &Batch { columns, row_count })?;
        }
        drop(groups);
        while let Some(batch) = right.next()? {
            self.add(&mut of_right, &self.counted(batch))?;
        }
        let mut of_left = SpillPartitions::new(&self.types, self.level);
        while let Some(batch) = self.left.next()? {
            self.add(&mut of_left, &batch)?;
        }
        debug_assert!(self.level < LEVEL_MAX, "partitions of level {}", self.level);
        for (left, right) in of_left.finish()?.into_iter().zip(of_right.finish()?) {
            if let Some(left) = left {
                self.pending.push(SetOpPartition { level: self.level + 1, left, right });
            }
        }
        Ok(())
    }

    fn add(&self, to: &mut SpillPartitions, batch: &Batch) -> Result<()> {
        let keys: Vec<&Vector> =
            batch.columns[..self.types.len()].iter().map(Arc::as_ref).collect();
        to.add(batch, &key_hashes(&keys, &self.types, batch.row_count), &self.context)
    }

    /// Advances to the next partition; returns whether there is one.
    fn turn(&mut self) -> Result<bool> {
        let Some(SetOpPartition { level, left, right }) = self.pending.pop() else {
            return Ok(false);
        };
        self.level = level;
        self.groups = GroupTable::new(&self.types);
        self.counts.clear();
        self.left = Box::new(SpillScan::open(Some(&left), &self.types, &self.context)?);
        let right = SpillScan::open(right.as_ref(), &self.counted_types(), &self.context)?;
        self.right = Some(Box::new(right));
        Ok(true)
    }

    /// Returns whether the result includes the next left row of this group.
    fn takes(&mut self, group: u32) -> bool {
        let intersects = self.node.kind == SetKind::Intersect;
        let Some(count) = self.counts.get_mut(group as usize) else { return !intersects };
        match (intersects, self.node.all) {
            (true, false) => std::mem::take(count) > 0,
            (false, false) => false,
            (_, true) => {
                let paired = *count > 0;
                *count -= u64::from(paired);
                paired == intersects
            }
        }
    }
}

/// Splits counted rows into counts and columns.
fn parts(batch: &Batch) -> (&[i64], Vec<&Vector>) {
    let (counts, columns) = batch.columns.split_last().expect("the counts are there");
    let VectorData::Int8(counts) = &counts.data else { unreachable!("counts are bigints") };
    (counts, columns.iter().map(Arc::as_ref).collect())
}

impl Operator for HashSetOp {
    fn next(&mut self) -> Result<Option<Batch>> {
        loop {
            if let Some(right) = self.right.take() {
                self.read_right(right)?;
            }
            while let Some(batch) = self.left.next()? {
                self.context.check()?;
                let keys: Vec<&Vector> = batch.columns.iter().map(Arc::as_ref).collect();
                let mut assigned = std::mem::take(&mut self.assigned);
                self.groups.find(&keys, batch.row_count, &mut assigned);
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
            if !self.turn()? {
                return Ok(None);
            }
        }
    }
}
