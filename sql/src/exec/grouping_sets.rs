//! GROUPING SETS: groups by several sets of keys, in one pass over the rows.
//!
//! ```text
//!   rows ──┬──▶ groups by (a, b) ──┐
//!          ├──▶ groups by (a)    ──┼──▶ one set after the other
//!          └──▶ groups of all    ──┘
//! ```
//!
//! Each set has a separate hash table, which spills to disk beyond its share of `work_mem`
//! ([`spilling_groups`](crate::exec::spilling_groups)). If the regions group by all keys, their
//! partial groups are merged into each set instead of the rows.

use std::sync::Arc;

use types::aggregate::PartialGroupSet;
use types::{Batch, DataType, Datum, Vector};

use crate::error::Result;
use crate::exec::region_aggregate;
use crate::exec::spilling_groups::SpillingGroups;
use crate::exec::{Context, Operator, build};
use crate::logical::GroupingSets as Sets;
use crate::plan::{GroupingSet, GroupingSetsNode, Node};

/// Minimum memory of a set in bytes, for any number of sets.
const SET_BYTES_MIN: usize = 64 * 1024;

/// Grouping sets operator; see the module.
pub(super) struct GroupingSetsOperator {
    node: Arc<GroupingSetsNode>,
    context: Arc<Context>,
    /// Input; `None` once all rows were read.
    input: Option<GroupingInput>,
    /// Groups of each set.
    groups: Vec<SpillingGroups>,
    /// Next set to return.
    next: usize,
}

enum GroupingInput {
    Rows(Box<dyn Operator>),
    Regions,
}

impl GroupingSetsOperator {
    /// Opens the operator and its input.
    pub(super) fn open(
        node: &Arc<GroupingSetsNode>,
        context: &Arc<Context>,
    ) -> Result<GroupingSetsOperator> {
        let mut share = context.as_ref().clone();
        share.work_mem = (context.work_mem() / node.sets.len().max(1)).max(SET_BYTES_MIN);
        let share = Arc::new(share);
        let of_set = |set: &GroupingSet| {
            let keys: Vec<_> = set.keys.iter().map(|&key| node.group_by[key].clone()).collect();
            SpillingGroups::new(&keys, &set.aggregates, &share)
        };
        let input = match node.in_regions {
            true => GroupingInput::Regions,
            false => GroupingInput::Rows(build(&node.input, context)?),
        };
        Ok(GroupingSetsOperator {
            groups: node.sets.iter().map(of_set).collect(),
            node: Arc::clone(node),
            context: Arc::clone(context),
            input: Some(input),
            next: 0,
        })
    }

    fn read(&mut self, input: GroupingInput) -> Result<()> {
        let mut operator = match input {
            GroupingInput::Rows(operator) => operator,
            GroupingInput::Regions => return self.call_regions(),
        };
        while let Some(batch) = operator.next()? {
            self.context.check()?;
            self.groups.iter_mut().try_for_each(|groups| groups.feed(&batch))?;
        }
        Ok(())
    }

    fn call_regions(&mut self) -> Result<()> {
        let node = Arc::clone(&self.node);
        let Node::RegionAggregate(regions) = &node.input else { return Ok(()) };
        region_aggregate::call(regions, &self.context, |part| {
            let mut part = part.into_groups();
            let keys = std::mem::take(&mut part.keys);
            for (set, groups) in node.sets.iter().zip(&mut self.groups) {
                part.keys = set.keys.iter().map(|&key| keys[key].clone()).collect();
                groups.merge(PartialGroupSet::Whole(part.clone()))?;
            }
            Ok(())
        })
    }

    /// Converts groups of a set to rows of all keys, aggregates and GROUPING calls.
    fn widened(&self, set: &[usize], groups: Batch) -> Batch {
        let row_count = groups.row_count;
        let (keys, aggregates) = groups.columns.split_at(set.len());
        let same = |value: Datum, data_type: &DataType| {
            let mut column = Vector::new(data_type, row_count);
            (0..row_count).for_each(|_| column.push(&value));
            Arc::new(column)
        };
        let keys = self.node.group_by.iter().enumerate().map(|(key, expression)| {
            match set.iter().position(|&one| one == key) {
                Some(at) => Arc::clone(&keys[at]),
                None => same(Datum::Null, expression.data_type()),
            }
        });
        let grouping =
            |asked: &Vec<usize>| same(Datum::Int4(Sets::grouping(asked, set)), &DataType::Int4);
        let groupings = self.node.groupings.iter().map(grouping);
        let columns = keys.chain(aggregates.iter().cloned()).chain(groupings).collect();
        Batch { columns, row_count }
    }
}

impl Operator for GroupingSetsOperator {
    fn next(&mut self) -> Result<Option<Batch>> {
        if let Some(input) = self.input.take() {
            self.read(input)?;
        }
        while let Some(groups) = self.groups.get_mut(self.next) {
            if let Some(batch) = groups.next()? {
                return Ok(Some(self.widened(&self.node.sets[self.next].keys, batch)));
            }
            self.next += 1;
        }
        Ok(None)
    }
}
