//! Run of whole partitions: sorted rows with their peer groups.

use std::ops::Range;
use std::sync::Arc;

use types::{Batch, Vector};

use crate::error::Result;
use crate::exec::Context;
use crate::exec::project::columns_of;
use crate::logical::SortKey;

/// Rows of whole partitions; see the module.
pub(super) struct PartitionRun {
    /// Rows.
    pub(super) batch: Batch,
    /// Row ranges of the partitions.
    pub(super) partitions: Vec<Range<usize>>,
    /// Values of the sort keys.
    pub(super) keys: Vec<Arc<Vector>>,
    /// Sort keys.
    pub(super) order_by: Vec<SortKey>,
    /// Peer group of each row: rows of a partition with equal sort keys. Groups are numbered over
    /// the whole run.
    group_of: Vec<u32>,
    /// Start of each group, and the end of the last one.
    group_starts: Vec<usize>,
    /// Context of evaluations.
    pub(super) context: Arc<Context>,
}

impl PartitionRun {
    /// Returns the run of a batch whose partitions start at `starts`.
    pub(super) fn new(
        batch: Batch,
        starts: Vec<usize>,
        order_by: &[SortKey],
        context: &Arc<Context>,
    ) -> Result<PartitionRun> {
        let expressions: Vec<_> = order_by.iter().map(|key| key.expression.clone()).collect();
        let keys = columns_of(&expressions, &batch, &context.eval)?;
        let ends = starts.iter().skip(1).copied().chain([batch.row_count]);
        let partitions: Vec<Range<usize>> =
            starts.iter().zip(ends).map(|(&start, end)| start..end).collect();
        let mut group_starts = Vec::new();
        let mut group_of = Vec::with_capacity(batch.row_count);
        let is_peer = |row: usize| {
            let mut columns = order_by.iter().zip(&keys);
            columns.all(|(key, column)| {
                let data_type = key.expression.data_type();
                column.compare_typed(row - 1, column, row, data_type).is_eq()
            })
        };
        for partition in &partitions {
            for row in partition.clone() {
                if row == partition.start || !is_peer(row) {
                    group_starts.push(row);
                }
                group_of.push(group_starts.len() as u32 - 1);
            }
        }
        group_starts.push(batch.row_count);
        debug_assert!(
            starts.first().is_none_or(|first| *first == 0) && starts.is_sorted(),
            "partitions that do not cover the rows"
        );
        debug_assert_eq!(group_of.len(), batch.row_count, "peer groups of the rows");
        let (order_by, context) = (order_by.to_vec(), Arc::clone(context));
        Ok(PartitionRun { batch, partitions, keys, order_by, group_of, group_starts, context })
    }

    /// Returns the number of a row's peer group.
    pub(super) fn group_of(&self, row: usize) -> usize {
        self.group_of[row] as usize
    }

    /// Returns the rows of a peer group.
    pub(super) fn group(&self, group: usize) -> Range<usize> {
        self.group_starts[group]..self.group_starts[group + 1]
    }

    /// Returns the peers of a row, including itself.
    pub(super) fn peers(&self, row: usize) -> Range<usize> {
        self.group(self.group_of(row))
    }

    /// Returns the size in bytes.
    pub(super) fn byte_count(&self) -> usize {
        let columns = self.batch.columns.iter().chain(&self.keys);
        let vectors: usize = columns.map(|column| column.byte_count()).sum();
        vectors + self.group_of.len() * (size_of::<u32>() + size_of::<usize>())
    }
}
