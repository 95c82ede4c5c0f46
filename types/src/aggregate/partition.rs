//! Partitioning of partial groups by the hashes of their keys.
//!
//! ```text
//!   groups of some rows  --cut-->  partition 0 | partition 1 | ... | partition 63
//!   groups of others     --cut-->  partition 0 | partition 1 | ... | partition 63
//!                                       |             |
//!                                     merged        merged ...
//! ```
//!
//! Equal keys are in one partition, so that partitions are merged independently: by several
//! threads, in hash tables that fit the CPU caches.

use super::group_table::key_hashes;
use super::groups::PartialGroups;
use super::states::PartialStates;
use crate::datatype::DataType;
use crate::vector::Vector;

/// Number of partitions.
pub const PARTITION_COUNT: usize = 64;
/// Shift to the bits of a hash that select the partition: the highest, which neither hash tables
/// nor the partitioning on disk use first.
const SHIFT: u32 = u64::BITS - PARTITION_COUNT.trailing_zeros();

/// The partial groups of some rows.
#[derive(Debug, Clone)]
pub enum PartialGroupSet {
    /// Few groups, or groups with aggregates that keep rows.
    Whole(PartialGroups),
    /// Many groups, partitioned. Keys may repeat.
    Cut(PartitionedGroups),
}

impl Default for PartialGroupSet {
    fn default() -> PartialGroupSet {
        PartialGroupSet::Whole(PartialGroups::default())
    }
}

impl PartialGroupSet {
    /// Returns the groups, in any order.
    pub fn into_groups(self) -> PartialGroups {
        match self {
            PartialGroupSet::Whole(groups) => groups,
            PartialGroupSet::Cut(cut) => cut.groups,
        }
    }
}

/// Groups in the order of their partitions. None of their aggregates keeps rows.
#[derive(Debug, Clone)]
pub struct PartitionedGroups {
    groups: PartialGroups,
    /// End of each partition.
    ends: Vec<u32>,
}

impl PartitionedGroups {
    /// Partitions groups with keys of these types.
    ///
    /// # Panics
    ///
    /// If an aggregate keeps rows.
    pub fn new(groups: &PartialGroups, key_types: &[DataType]) -> PartitionedGroups {
        let keys: Vec<&Vector> = groups.keys.iter().collect();
        let hashes = key_hashes(&keys, key_types, groups.group_count);
        let mut counts = [0; PARTITION_COUNT];
        hashes.iter().for_each(|hash| counts[(hash >> SHIFT) as usize] += 1);
        let mut start = 0;
        let mut next = counts.map(|count: u32| {
            let first = start;
            start += count;
            first
        });
        let mut order = vec![0; groups.group_count];
        for (group, hash) in (0u32..).zip(&hashes) {
            let place = &mut next[(hash >> SHIFT) as usize];
            order[*place as usize] = group;
            *place += 1;
        }
        // The position after a partition's last group is its end.
        let ends = next.to_vec();
        debug_assert!(ends.is_sorted(), "partitions follow each other");
        debug_assert_eq!(ends.last().copied(), Some(start), "the last partition ends at the end");
        let take = |columns: &[Vector]| columns.iter().map(|column| column.take(&order)).collect();
        let partials = groups.partials.iter().map(|partial| match partial {
            PartialStates::States(columns) => PartialStates::States(take(columns)),
            PartialStates::Rows(_) => unreachable!("rows that are kept are not cut"),
        });
        let partials = partials.collect();
        let group_count = groups.group_count;
        PartitionedGroups {
            groups: PartialGroups { keys: take(&groups.keys), partials, group_count },
            ends,
        }
    }

    /// Appends the groups of a partition to `out`, which is empty or has the same columns.
    pub fn append_to(&self, partition: usize, out: &mut PartialGroups) {
        let start = if partition == 0 { 0 } else { self.ends[partition - 1] as usize };
        let rows = start..self.ends[partition] as usize;
        if rows.is_empty() {
            return;
        }
        if out.keys.is_empty() {
            *out = self.groups.empty_like();
        }
        out.append_rows(&self.groups, rows);
    }

    /// Returns the bytes held.
    pub fn byte_count(&self) -> usize {
        self.groups.byte_count()
    }
}
