//! Partitioned merge of many partial groups in memory.
//!
//! Partial groups from regions and threads come cut into partitions by their keys
//! ([`PartitionedGroups`]). They are merged once all have come, or when they take too much memory;
//! then region threads merge one partition each, whose groups fit into the processor's caches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use store::read_ahead::{Bounds, Producer, Take};
use store::transaction::RowReadAhead;
use types::aggregate::{
    Aggregate, Groups, PARTITION_COUNT, PartialGroupSet, PartialGroups, PartitionedGroups,
};
use types::expr::Expr;
use types::vector::BATCH_ROWS;
use types::{Batch, DataType};

use crate::error::{Error, Result};
use crate::exec::Context;

/// Number of groups collected from several parts before they are merged into a partition.
const GATHERED_GROUPS: usize = 16_384;
/// Number of finished batches per partition that wait for the session.
const BATCHES_AHEAD: usize = 64;
/// Size of all batches that wait for the session, in bytes.
const BYTES_AHEAD: usize = 16 << 20;

/// Partial groups cut into partitions.
pub(super) struct MergePartitions {
    shape: Arc<MergeShape>,
    context: Arc<Context>,
    /// Unmerged parts, in order of arrival.
    parts: Vec<PartitionedGroups>,
    part_bytes: usize,
    /// Groups merged before, by partition.
    merged: Vec<PartialGroups>,
    merged_bytes: usize,
}

/// Keys and aggregates.
struct MergeShape {
    group_by: Vec<Expr>,
    aggregates: Vec<Aggregate>,
}

/// Merged and finished groups of all partitions, in batches.
pub(super) struct MergedGroups {
    ahead: RowReadAhead<GroupPartition>,
}

impl MergePartitions {
    /// Returns an empty set.
    pub(super) fn new(
        group_by: &[Expr],
        aggregates: &[Aggregate],
        context: &Arc<Context>,
    ) -> MergePartitions {
        let (group_by, aggregates) = (group_by.to_vec(), aggregates.to_vec());
        MergePartitions {
            shape: Arc::new(MergeShape { group_by, aggregates }),
            context: Arc::clone(context),
            parts: Vec::new(),
            part_bytes: 0,
            merged: Vec::new(),
            merged_bytes: 0,
        }
    }

    /// Adds partial groups.
    pub(super) fn push(&mut self, part: PartitionedGroups) {
        self.part_bytes += part.byte_count();
        self.parts.push(part);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.merged.is_empty()
    }

    /// Returns the size in bytes.
    pub(super) fn byte_count(&self) -> usize {
        self.part_bytes + self.merged_bytes
    }

    /// Merges what has come. Returns whether the result takes at most half of `bytes_max`.
    pub(super) fn merge_early(&mut self, bytes_max: usize) -> Result<bool> {
        debug_assert!(!self.is_empty(), "an empty set cannot become smaller");
        // Merging again would hardly reduce it.
        if self.part_bytes < self.merged_bytes {
            return Ok(false);
        }
        let mut ahead = self.merge(MergeResultKind::Groups);
        let mut merged = Vec::with_capacity(PARTITION_COUNT);
        while let Some((_, made)) = ahead.next(Take::InOrder)? {
            if let MergeResult::Groups(groups) = made {
                merged.push(groups);
            }
        }
        self.merged_bytes = merged.iter().map(PartialGroups::byte_count).sum();
        self.merged = merged;
        Ok(self.byte_count() <= bytes_max / 2)
    }

    /// Removes and returns all groups. A key may occur several times.
    pub(super) fn take_groups(&mut self) -> Vec<PartialGroups> {
        (self.part_bytes, self.merged_bytes) = (0, 0);
        let parts = std::mem::take(&mut self.parts).into_iter();
        let parts = parts.map(|part| PartialGroupSet::Cut(part).into_groups());
        parts.chain(std::mem::take(&mut self.merged)).collect()
    }

    /// Merges all groups, with those of `rest`, into the result.
    pub(super) fn finish(&mut self, rest: PartialGroupSet) -> MergedGroups {
        let types: Vec<DataType> =
            self.shape.group_by.iter().map(Expr::data_type).cloned().collect();
        self.push(match rest {
            PartialGroupSet::Whole(groups) => PartitionedGroups::new(&groups, &types),
            PartialGroupSet::Cut(cut) => cut,
        });
        MergedGroups { ahead: self.merge(MergeResultKind::Batches) }
    }

    /// Starts merging all groups, which are removed.
    fn merge(&mut self, outcome: MergeResultKind) -> RowReadAhead<GroupPartition> {
        let stopped: Arc<AtomicBool> = Arc::default();
        let parts = Arc::new(std::mem::take(&mut self.parts));
        let mut merged = std::mem::take(&mut self.merged).into_iter();
        (self.part_bytes, self.merged_bytes) = (0, 0);
        let partitions: Vec<GroupPartition> = (0..PARTITION_COUNT)
            .map(|number| GroupPartition {
                number,
                before: merged.next().unwrap_or_default(),
                parts: Arc::clone(&parts),
                shape: Arc::clone(&self.shape),
                context: Arc::clone(&self.context),
                stopped: Arc::clone(&stopped),
                outcome,
                groups: None,
                next: 0,
            })
            .collect();
        let threads = self.context.parallelism().map_or(1, |found| found.threads);
        let bounds = Bounds { items: BATCHES_AHEAD, bytes: BYTES_AHEAD, parts: threads + 1 };
        self.context.transaction.read_ahead(partitions, bounds, &stopped)
    }
}

impl MergedGroups {
    /// Returns the next groups: their keys, then the results of the aggregates.
    pub(super) fn next(&mut self) -> Result<Option<Batch>> {
        Ok(match self.ahead.next(Take::Any)? {
            Some((_, MergeResult::Batch(batch))) => Some(batch),
            Some((_, MergeResult::Groups(_))) | None => None,
        })
    }
}

/// Result form of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MergeResultKind {
    /// Partial groups, to which others can be added.
    Groups,
    /// Finished groups.
    Batches,
}

/// A partition to be merged.
struct GroupPartition {
    number: usize,
    /// Groups merged before.
    before: PartialGroups,
    parts: Arc<Vec<PartitionedGroups>>,
    shape: Arc<MergeShape>,
    context: Arc<Context>,
    /// Set when the result is not needed any more.
    stopped: Arc<AtomicBool>,
    outcome: MergeResultKind,
    /// Merged groups.
    groups: Option<Groups>,
    /// Next group to return.
    next: usize,
}

/// Result of merging a partition.
enum MergeResult {
    Groups(PartialGroups),
    Batch(Batch),
}

impl GroupPartition {
    fn merge(&mut self) -> Result<Groups> {
        let (shape, eval) = (&self.shape, &self.context.eval);
        let mut groups = Groups::new(&shape.group_by, &shape.aggregates, eval);
        groups.merge(&std::mem::take(&mut self.before))?;
        let mut gathered = PartialGroups::default();
        for part in self.parts.iter() {
            part.append_to(self.number, &mut gathered);
            if gathered.group_count >= GATHERED_GROUPS {
                groups.merge(&gathered)?;
                gathered.clear();
                self.context.check()?;
                if self.stopped.load(Ordering::Relaxed) {
                    break;
                }
            }
        }
        groups.merge(&gathered)?;
        Ok(groups)
    }
}

impl Producer for GroupPartition {
    type Item = MergeResult;
    type Error = Error;

    fn next(&mut self) -> Result<Option<MergeResult>> {
        self.context.check()?;
        if self.groups.is_none() {
            if self.next > 0 {
                return Ok(None);
            }
            let groups = self.merge()?;
            if self.outcome == MergeResultKind::Groups {
                self.next = 1;
                return Ok(Some(MergeResult::Groups(groups.into_partial()?)));
            }
            self.groups = Some(groups);
        }
        let Some(groups) = &mut self.groups else { return Ok(None) };
        let from = self.next;
        self.next = groups.group_count().min(from + BATCH_ROWS);
        if from == self.next {
            self.groups = None;
            return Ok(None);
        }
        Ok(Some(MergeResult::Batch(groups.finish(from..self.next)?)))
    }

    fn byte_count(made: &MergeResult) -> usize {
        match made {
            MergeResult::Groups(groups) => groups.byte_count(),
            MergeResult::Batch(batch) => {
                batch.columns.iter().map(|column| column.byte_count()).sum()
            }
        }
    }
}
