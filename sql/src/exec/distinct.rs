//! DISTINCT and DISTINCT ON: the first row of each distinct key.
//!
//! [`HashDistinct`] yields rows as they come, and spills if there are too many:
//!
//! ```text
//!   rows -> not seen yet -> result
//!             |  once the seen keys exceed work_mem
//!             +--> partitions by key, on disk: each is processed in the same way
//! ```
//!
//! [`SortedDistinct`] is for rows that are sorted by the key; it retains one row.

use std::sync::Arc;

use types::aggregate::{GroupTable, key_hashes};
use types::expr::Expr;
use types::{Batch, DataType, Vector};

use crate::error::Result;
use crate::exec::partitions::{LEVEL_MAX, SpillPartitions, SpillScan};
use crate::exec::project::columns_of;
use crate::exec::{Context, Operator, build, memory};
use crate::plan::DistinctNode;
use crate::spill::SpillFile;

/// Hash-based DISTINCT over all columns, for rows in any order.
pub(super) struct HashDistinct {
    context: Arc<Context>,
    types: Arc<[DataType]>,
    /// Current input: the rows, or a partition of them.
    input: Box<dyn Operator>,
    /// Number of times that the current rows were partitioned.
    level: u32,
    seen: GroupTable,
    /// Partitions of rows that were not seen, once memory is full.
    aside: Option<SpillPartitions>,
    /// Pending partitions, with their levels.
    pending: Vec<(u32, Arc<SpillFile>)>,
    /// Buffer reused for each batch.
    groups: Vec<u32>,
}

/// DISTINCT of rows that are sorted by the key.
pub(super) struct SortedDistinct {
    node: Arc<DistinctNode>,
    context: Arc<Context>,
    input: Box<dyn Operator>,
    types: Vec<DataType>,
    /// Key of the last row.
    last: Option<Vec<Vector>>,
    /// Buffer reused for each batch.
    groups: Vec<u32>,
}

/// Opens the operator and its input.
pub(super) fn open(node: &Arc<DistinctNode>, context: &Arc<Context>) -> Result<Box<dyn Operator>> {
    let input = build(&node.input, context)?;
    let types: Vec<DataType> = node.on.iter().map(Expr::data_type).cloned().collect();
    let (context, groups) = (Arc::clone(context), Vec::new());
    Ok(match node.sorted {
        true => {
            let node = Arc::clone(node);
            Box::new(SortedDistinct { node, context, input, types, last: None, groups })
        }
        false => Box::new(HashDistinct {
            context,
            input,
            level: 0,
            seen: GroupTable::new(&types),
            types: types.into(),
            aside: None,
            pending: Vec::new(),
            groups,
        }),
    })
}

/// Returns the positions of the first rows of new groups.
pub(super) fn first_of_each(groups: &[u32], before: usize) -> Vec<u32> {
    let mut next = before as u32;
    let mut first = Vec::new();
    for (row, &group) in groups.iter().enumerate() {
        // Group numbers are assigned in order of appearance.
        if group == next {
            first.push(row as u32);
            next += 1;
        }
    }
    first
}

impl HashDistinct {
    /// Returns the rows of a batch that are new.
    fn first_rows(&mut self, batch: &Batch) -> Result<Vec<u32>> {
        let before = self.seen.group_count();
        let keys: Vec<&Vector> = batch.columns.iter().map(Arc::as_ref).collect();
        self.seen.assign(&keys, batch.row_count, &mut self.groups);
        let bytes = self.seen.byte_count();
        if bytes > self.context.work_mem() {
            if self.level == LEVEL_MAX {
                memory::check(bytes, self.context.work_mem())?;
            } else {
                self.aside = Some(SpillPartitions::new(&self.types, self.level));
            }
        }
        Ok(first_of_each(&self.groups, before))
    }

    /// Writes the rows that were not seen to partitions.
    fn set_aside(&mut self, batch: &Batch, aside: &mut SpillPartitions) -> Result<()> {
        let keys: Vec<&Vector> = batch.columns.iter().map(Arc::as_ref).collect();
        self.seen.find(&keys, batch.row_count, &mut self.groups);
        let count = self.seen.group_count() as u32;
        let rows = (0u32..).zip(&self.groups).filter(|(_, group)| **group >= count);
        let batch = batch.take(&rows.map(|(row, _)| row).collect::<Vec<u32>>());
        let keys: Vec<&Vector> = batch.columns.iter().map(Arc::as_ref).collect();
        let hashes = key_hashes(&keys, &self.types, batch.row_count);
        aside.add(&batch, &hashes, &self.context)
    }

    /// Advances to the next partition; returns whether there is one.
    fn turn(&mut self) -> Result<bool> {
        if let Some(aside) = self.aside.take() {
            let files = aside.finish()?.into_iter().flatten();
            self.pending.extend(files.map(|file| (self.level + 1, file)));
        }
        let Some((level, file)) = self.pending.pop() else { return Ok(false) };
        self.level = level;
        self.seen = GroupTable::new(&self.types);
        self.input = Box::new(SpillScan::open(Some(&file), &self.types, &self.context)?);
        Ok(true)
    }
}

impl Operator for HashDistinct {
    fn next(&mut self) -> Result<Option<Batch>> {
        loop {
            while let Some(batch) = self.input.next()? {
                self.context.check()?;
                if let Some(mut aside) = self.aside.take() {
                    self.set_aside(&batch, &mut aside)?;
                    self.aside = Some(aside);
                    continue;
                }
                let first = self.first_rows(&batch)?;
                if !first.is_empty() {
                    return Ok(Some(batch.take(&first)));
                }
            }
            if !self.turn()? {
                return Ok(None);
            }
        }
    }
}

impl Operator for SortedDistinct {
    fn next(&mut self) -> Result<Option<Batch>> {
        while let Some(batch) = self.input.next()? {
            self.context.check()?;
            let mut seen = GroupTable::new(&self.types);
            if let Some(last) = &self.last {
                seen.assign(&last.iter().collect::<Vec<_>>(), 1, &mut self.groups);
            }
            let before = seen.group_count();
            let keys = columns_of(&self.node.on, &batch, &self.context.eval)?;
            let keys: Vec<&Vector> = keys.iter().map(Arc::as_ref).collect();
            seen.assign(&keys, batch.row_count, &mut self.groups);
            let count = seen.group_count();
            self.last = (count > 0).then(|| seen.keys(count - 1..count));
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
    fn first_of_each_returns_rows_of_new_groups() {
        assert_eq!(first_of_each(&[0, 2, 1, 2, 3, 3], 2), vec![1, 4]);
    }
}
