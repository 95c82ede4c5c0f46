//! Aggregation of rows that may have few groups in common.
//!
//! A hash table of groups reduces the data where many rows belong to one group. Otherwise each
//! row becomes a separate group here, and groups are merged only after all rows of a partition
//! have been collected ([`partition`](super::partition)).

use super::groups::{Groups, PartialGroups};
use super::partition::{PartialGroupSet, PartitionedGroups};
use crate::error::Result;
use crate::expr::EvalContext;
use crate::vector::Batch;

/// Number of groups from which on the reduction is checked; their states fit the CPU caches.
const GROUPS_TOLD_APART: usize = 16_384;
/// Average rows per group that make grouping worthwhile.
const ROWS_OF_GROUP: usize = 2;
/// Minimum number of groups that are partitioned.
const GROUPS_CUT: usize = 4_096;

/// Aggregation that falls back to ungrouped rows.
pub struct AdaptiveGroups {
    groups: Groups,
    /// Rows that were added to `groups`.
    row_count: usize,
    /// Rows may become separate groups.
    may_stand_alone: bool,
    /// Rows that are separate groups.
    alone: PartialGroups,
    alone_bytes: usize,
}

impl AdaptiveGroups {
    /// Creates it from `groups`, which must be empty.
    pub fn new(groups: Groups) -> AdaptiveGroups {
        debug_assert!(groups.key_types().is_empty() || groups.group_count() == 0, "not empty");
        AdaptiveGroups {
            row_count: 0,
            may_stand_alone: !groups.key_types().is_empty() && !groups.buffers_rows(),
            groups,
            alone: PartialGroups::default(),
            alone_bytes: 0,
        }
    }

    /// Adds the rows of a batch.
    ///
    /// # Errors
    ///
    /// Those of [`Groups::feed`].
    pub fn feed(&mut self, batch: &Batch, context: &EvalContext) -> Result<()> {
        let count = self.groups.group_count();
        let tells_little = count >= GROUPS_TOLD_APART && count * ROWS_OF_GROUP > self.row_count;
        if !self.may_stand_alone || !tells_little {
            self.row_count += batch.row_count;
            return self.groups.feed(batch, context);
        }
        let rows = self.groups.ungrouped_partials(batch, context)?;
        self.alone_bytes += rows.byte_count();
        if self.alone.group_count == 0 {
            self.alone = rows;
        } else {
            self.alone.append_rows(&rows, 0..rows.group_count);
        }
        Ok(())
    }

    /// Merges a partial result of other rows.
    ///
    /// # Errors
    ///
    /// Those of [`Groups::merge`].
    pub fn merge(&mut self, part: &PartialGroups) -> Result<()> {
        self.groups.merge(part)
    }

    /// Returns whether [`AdaptiveGroups::take`] would partition the groups.
    pub fn may_partition(&self) -> bool {
        let count = self.groups.group_count() + self.alone.group_count;
        self.may_stand_alone && count >= GROUPS_CUT
    }

    /// Returns the bytes held.
    pub fn byte_count(&self) -> usize {
        self.groups.byte_count() + self.alone_bytes
    }

    /// Returns the partial groups and starts with no groups again.
    ///
    /// # Errors
    ///
    /// Those of [`Groups::into_partial`].
    pub fn take(&mut self, context: &EvalContext) -> Result<PartialGroupSet> {
        let may_be_cut = self.may_partition();
        let mut part = self.groups.take_partial(context)?;
        let alone = std::mem::take(&mut self.alone);
        (self.row_count, self.alone_bytes) = (0, 0);
        if alone.group_count > 0 {
            part.append_rows(&alone, 0..alone.group_count);
        }
        Ok(match may_be_cut {
            true => PartialGroupSet::Cut(PartitionedGroups::new(&part, &self.groups.key_types())),
            false => PartialGroupSet::Whole(part),
        })
    }

    /// Returns the grouped rows, for finishing; rows that are separate groups are not included.
    pub fn groups(&mut self) -> &mut Groups {
        &mut self.groups
    }

    /// Returns whether all rows are grouped.
    pub fn is_fully_grouped(&self) -> bool {
        self.alone.group_count == 0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::aggregate::{Aggregate, AggregateKind, PARTITION_COUNT};
    use crate::datatype::DataType::{self, Int4, Int8, Text};
    use crate::datum::Datum;
    use crate::expr::Expr;
    use crate::vector::BATCH_ROWS;

    fn aggregate(kind: AggregateKind, argument: Option<Expr>) -> Aggregate {
        Aggregate {
            kind,
            arguments: argument.into_iter().collect(),
            distinct: false,
            order_by: Vec::new(),
            filter: None,
            data_type: Int8,
        }
    }

    /// Aggregates `row_count` rows in two parts; returns these, and groups to merge them into.
    /// Row `i` has key `i % key_count`, NULL for 0, and value `i`.
    fn parts(
        key_type: &DataType,
        row_count: i32,
        key_count: i32,
    ) -> (Vec<PartialGroupSet>, Groups) {
        let context = EvalContext::default();
        let value = Expr::column(1, Int4);
        let aggregates =
            [aggregate(AggregateKind::CountRows, None), aggregate(AggregateKind::Sum, Some(value))];
        let group_by = [Expr::column(0, key_type)];
        let groups = || Groups::new(&group_by, &aggregates, &context);
        let mut plenty = AdaptiveGroups::new(groups());
        let mut parts = Vec::new();
        let rows: Vec<i32> = (0..row_count).collect();
        for (number, some) in rows.chunks(BATCH_ROWS).enumerate() {
            let row = |i: &i32| {
                let key = match i % key_count {
                    0 => Datum::Null,
                    key if *key_type == Int4 => Datum::Int4(key),
                    key => Datum::text(key.to_string()),
                };
                vec![key, Datum::Int4(*i)]
            };
            let rows: Vec<Vec<Datum>> = some.iter().map(row).collect();
            plenty.feed(&Batch::from_rows(&[key_type.clone(), Int4], &rows), &context).unwrap();
            if number == 40 {
                parts.push(plenty.take(&context).unwrap());
            }
        }
        parts.push(plenty.take(&context).unwrap());
        (parts, groups())
    }

    fn check(key_type: &DataType, row_count: i32, key_count: i32) {
        let (parts, _) = parts(key_type, row_count, key_count);
        let mut found = BTreeMap::new();
        for partition in 0..PARTITION_COUNT {
            let (_, mut groups) = self::parts(key_type, 0, 1);
            let mut all = PartialGroups::default();
            for part in &parts {
                let PartialGroupSet::Cut(part) = part else { panic!("many groups are cut") };
                part.append_to(partition, &mut all);
            }
            groups.merge(&all).unwrap();
            let batch = groups.finish(0..groups.group_count()).unwrap();
            for row in 0..batch.row_count {
                let row = batch.row(row);
                let is_new = found.insert(format!("{:?}", row[0]), row[1..].to_vec()).is_none();
                assert!(is_new, "{:?} is in two partitions", row[0]);
            }
        }
        assert_eq!(found.len(), key_count as usize);
        for key in 0..key_count {
            let name = match (key, key_type) {
                (0, _) => format!("{:?}", Datum::Null),
                (_, Int4) => format!("{:?}", Datum::Int4(key)),
                _ => format!("{:?}", Datum::text(key.to_string())),
            };
            let values = (key..row_count).step_by(key_count as usize).map(i64::from);
            let (count, sum) = (values.clone().count() as i64, values.sum());
            assert_eq!(found[&name], [Datum::Int8(count), Datum::Int8(sum)], "{name}");
        }
    }

    #[test]
    fn high_cardinality_groups_are_partitioned() {
        check(&Int4, 60_000, 35_000);
        check(&Text, 60_000, 35_000);
    }

    #[test]
    fn low_cardinality_groups_are_not_partitioned() {
        let (parts, mut groups) = parts(&Int4, 50_000, 100);
        assert_eq!(parts.len(), 2);
        for part in parts {
            let PartialGroupSet::Whole(part) = part else { panic!("few groups are not cut") };
            groups.merge(&part).unwrap();
        }
        assert_eq!(groups.group_count(), 100);
    }
}
