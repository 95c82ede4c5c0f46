//! Aggregation of rows by group: group keys with the states of each aggregate. Regions compute
//! partial groups, and the session merges them.

use std::ops::Range;
use std::sync::Arc;

use super::Aggregate;
use super::group_table::GroupTable;
use super::states::{AggregateStates, PartialStates};
use crate::datatype::DataType;
use crate::error::Result;
use crate::expr::{EvalContext, Expr};
use crate::vector::{Batch, Vector};

/// The groups of an aggregation.
pub struct Groups {
    group_by: Vec<Expr>,
    aggregates: Vec<Aggregate>,
    /// `None` without group keys: there is exactly one group, even without rows.
    table: Option<GroupTable>,
    states: Vec<AggregateStates>,
    /// Group numbers of a batch; reused.
    numbers: Vec<u32>,
}

/// Partial result of a part of the rows.
#[derive(Debug, Clone, Default)]
pub struct PartialGroups {
    /// The group keys: group `g` is row `g` of each vector.
    pub keys: Vec<Vector>,
    /// For each aggregate the states of all groups, by group number.
    pub partials: Vec<PartialStates>,
    /// The number of groups. Without group keys 1, even if there was no row.
    pub group_count: usize,
}

impl PartialGroups {
    /// Returns an empty result with the same columns.
    pub(super) fn empty_like(&self) -> PartialGroups {
        let none = |columns: &[Vector]| columns.iter().map(|column| column.take(&[])).collect();
        let partials = self.partials.iter().map(|partial| match partial {
            PartialStates::States(columns) => PartialStates::States(none(columns)),
            PartialStates::Rows(columns) => PartialStates::Rows(none(columns)),
        });
        PartialGroups { keys: none(&self.keys), partials: partials.collect(), group_count: 0 }
    }

    /// Appends some groups of another result with the same columns, whose aggregates keep no
    /// rows. Keys may repeat.
    pub(super) fn append_rows(&mut self, other: &PartialGroups, groups: Range<usize>) {
        debug_assert_eq!(self.partials.len(), other.partials.len(), "the same aggregates");
        let append = |to: &mut [Vector], from: &[Vector]| {
            debug_assert_eq!(to.len(), from.len(), "the same columns");
            to.iter_mut().zip(from).for_each(|(to, from)| to.append_rows(from, groups.clone()));
        };
        append(&mut self.keys, &other.keys);
        for (to, from) in self.partials.iter_mut().zip(&other.partials) {
            if let (PartialStates::States(to), PartialStates::States(from)) = (to, from) {
                append(to, from);
            }
        }
        self.group_count += groups.len();
    }

    /// Removes all groups and retains the memory.
    pub fn clear(&mut self) {
        let partials = self.partials.iter_mut().flat_map(|partial| match partial {
            PartialStates::States(columns) | PartialStates::Rows(columns) => columns,
        });
        self.keys.iter_mut().chain(partials).for_each(Vector::clear);
        self.group_count = 0;
    }

    /// Returns the bytes held.
    pub fn byte_count(&self) -> usize {
        let partials = self.partials.iter().flat_map(|partial| match partial {
            PartialStates::States(columns) | PartialStates::Rows(columns) => columns,
        });
        self.keys.iter().chain(partials).map(Vector::byte_count).sum()
    }
}

impl Groups {
    /// Creates an empty aggregation; without group keys it has one group.
    pub fn new(group_by: &[Expr], aggregates: &[Aggregate], context: &EvalContext) -> Groups {
        let key_types: Vec<DataType> = group_by.iter().map(Expr::data_type).cloned().collect();
        let table = (!key_types.is_empty()).then(|| GroupTable::new(&key_types));
        let mut states: Vec<AggregateStates> =
            aggregates.iter().map(|one| AggregateStates::new(one, context)).collect();
        if table.is_none() {
            states.iter_mut().for_each(|states| states.resize(1));
        }
        Groups {
            group_by: group_by.to_vec(),
            aggregates: aggregates.to_vec(),
            table,
            states,
            numbers: Vec::new(),
        }
    }

    /// Adds the rows of a batch, the input of key and argument expressions.
    ///
    /// # Errors
    ///
    /// Those of the expressions, and overflow of a state.
    pub fn feed(&mut self, batch: &Batch, context: &EvalContext) -> Result<()> {
        batch.check();
        let keys = self.group_by.iter().map(|key| key.eval_column(batch, context));
        let keys = keys.collect::<Result<Vec<Arc<Vector>>>>()?;
        self.assign(&keys.iter().map(Arc::as_ref).collect::<Vec<&Vector>>(), batch.row_count);
        let states = self.states.iter_mut();
        states.into_iter().try_for_each(|states| states.feed(&self.numbers, batch, context))
    }

    /// Merges a partial result of other rows.
    ///
    /// # Errors
    ///
    /// Overflow of a state; `XX001` for a malformed state.
    pub fn merge(&mut self, part: &PartialGroups) -> Result<()> {
        if part.group_count == 0 {
            return Ok(());
        }
        self.assign(&part.keys.iter().collect::<Vec<&Vector>>(), part.group_count);
        debug_assert_eq!(part.partials.len(), self.states.len(), "the same aggregates");
        let states = self.states.iter_mut().zip(&part.partials);
        states.into_iter().try_for_each(|(states, partial)| states.merge(partial, &self.numbers))
    }

    /// Assigns group numbers to rows and resizes the states for new groups.
    fn assign(&mut self, keys: &[&Vector], row_count: usize) {
        let Some(table) = &mut self.table else {
            self.numbers.clear();
            self.numbers.resize(row_count, 0);
            return;
        };
        let before = table.group_count();
        table.assign(keys, row_count, &mut self.numbers);
        let after = table.group_count();
        if after > before {
            self.states.iter_mut().for_each(|states| states.resize(after));
        }
    }

    /// Returns the number of groups.
    pub fn group_count(&self) -> usize {
        self.table.as_ref().map_or(1, GroupTable::group_count)
    }

    /// Returns the bytes held.
    pub fn byte_count(&self) -> usize {
        let states = self.states.iter().map(AggregateStates::byte_count);
        self.table.as_ref().map_or(0, GroupTable::byte_count) + states.sum::<usize>()
    }

    /// Returns each row of a batch as a separate group; keys may repeat. For rows with few common
    /// groups, and aggregates that keep no rows.
    ///
    /// # Errors
    ///
    /// Those of [`Groups::feed`].
    pub fn ungrouped_partials(
        &self,
        batch: &Batch,
        context: &EvalContext,
    ) -> Result<PartialGroups> {
        let keys = self.group_by.iter().map(|key| key.eval_column(batch, context));
        let keys =
            keys.map(|key| key.map(Arc::unwrap_or_clone)).collect::<Result<Vec<Vector>>>()?;
        let group_count = batch.row_count;
        let numbers: Vec<u32> = (0..group_count as u32).collect();
        let partial = |aggregate: &Aggregate| {
            let mut states = AggregateStates::new(aggregate, context);
            states.resize(group_count);
            states.feed(&numbers, batch, context)?;
            states.into_partial(group_count)
        };
        let partials = self.aggregates.iter().map(partial).collect::<Result<Vec<_>>>()?;
        Ok(PartialGroups { keys, partials, group_count })
    }

    /// Returns whether an aggregate buffers rows until the end.
    pub fn buffers_rows(&self) -> bool {
        self.aggregates.iter().any(Aggregate::buffers_rows)
    }

    /// Returns the partial result and starts with no groups again.
    ///
    /// # Errors
    ///
    /// Those of [`Groups::into_partial`].
    pub fn take_partial(&mut self, context: &EvalContext) -> Result<PartialGroups> {
        let fresh = Groups::new(&self.group_by, &self.aggregates, context);
        std::mem::replace(self, fresh).into_partial()
    }

    /// Returns the types of the keys.
    pub fn key_types(&self) -> Vec<DataType> {
        self.group_by.iter().map(Expr::data_type).cloned().collect()
    }

    /// Returns the partial result.
    ///
    /// # Errors
    ///
    /// `57014` if the interrupt flag is set.
    pub fn into_partial(self) -> Result<PartialGroups> {
        let group_count = self.group_count();
        let keys = self.table.map_or_else(Vec::new, GroupTable::into_keys);
        let states = self.states.into_iter();
        let partials =
            states.map(|states| states.into_partial(group_count)).collect::<Result<_>>()?;
        Ok(PartialGroups { keys, partials, group_count })
    }

    /// Returns some groups: their keys, then the results of the aggregates. No rows can be added
    /// afterwards.
    ///
    /// # Errors
    ///
    /// Those of the aggregates, for example `22003` for a sum out of range.
    pub fn finish(&mut self, groups: Range<usize>) -> Result<Batch> {
        let row_count = groups.len();
        let keys = self.table.as_ref().map_or_else(Vec::new, |table| table.keys(groups.clone()));
        let mut columns: Vec<Arc<Vector>> = keys.into_iter().map(Arc::new).collect();
        for states in &mut self.states {
            columns.push(Arc::new(states.finish(groups.clone())?));
        }
        Ok(Batch { columns, row_count })
    }
}
