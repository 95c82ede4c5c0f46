//! The states of one aggregate for all groups of an operator, with its FILTER and DISTINCT.
//!
//! ```text
//!   region:  feed, feed, ... -> into_partial --\
//!   region:  feed, feed, ... -> into_partial ----> merge, merge -> finish
//! ```
//!
//! Without DISTINCT rows go to the [`Accumulator`] as they come. With it the pairs of group and
//! arguments are kept in a hash table, and go there once each, at the end: a part of an answer is
//! then the pairs themselves. Where the order of addition shows in the last digit (floats), they go
//! in the order of their values, as in PostgreSQL, so that the answer is the same however rows were
//! spread over regions.

use std::ops::Range;
use std::sync::Arc;

use super::group_table::GroupTable;
use super::{Accumulator, Aggregate};
use crate::datatype::DataType;
use crate::datum::Datum;
use crate::error::Result;
use crate::expr::{EvalContext, Expr};
use crate::vector::{Batch, Vector, VectorData};

/// See the module.
pub struct AggregateStates {
    aggregate: Aggregate,
    accumulator: Box<dyn Accumulator>,
    /// What was fed, once each, if that matters to the aggregate; `None` after the end as well.
    distinct: Option<GroupTable>,
}

/// The states of all groups as one part of the rows has them.
#[derive(Debug, Clone)]
pub enum PartialStates {
    /// One after the other; each takes [`Aggregate::partial_types`].
    States(Vec<Datum>),
    /// Of DISTINCT: the number of the group (bigint), then the arguments. A row for each pair.
    Rows(Vec<Vector>),
}

impl AggregateStates {
    /// Returns states of no group.
    pub fn new(aggregate: &Aggregate) -> AggregateStates {
        let types: Vec<DataType> = [DataType::Int8]
            .into_iter()
            .chain(aggregate.arguments.iter().map(Expr::data_type))
            .collect();
        let keeps = aggregate.distinct && !aggregate.kind.ignores_duplicates();
        AggregateStates {
            aggregate: aggregate.clone(),
            accumulator: aggregate.accumulator(),
            distinct: keeps.then(|| GroupTable::new(&types)),
        }
    }

    /// Makes room for groups `0..group_count`.
    pub fn resize(&mut self, group_count: usize) {
        self.accumulator.resize(group_count);
    }

    /// Feeds the rows of a batch that pass FILTER; row `i` belongs to `groups[i]`.
    ///
    /// # Errors
    ///
    /// Those of the expressions, and overflow of a state.
    pub fn feed(&mut self, groups: &[u32], batch: &Batch, context: &EvalContext) -> Result<()> {
        let selection = match &self.aggregate.filter {
            None => None,
            Some(filter) => {
                let selection = filter.filter_batch(batch, context)?;
                (selection.len() < batch.row_count).then_some(selection)
            }
        };
        let evaluate = |argument: &Expr| match &selection {
            None => argument.eval_column(batch, context),
            Some(selection) => argument.eval_selected(batch, selection, context).map(Arc::new),
        };
        let arguments = self.aggregate.arguments.iter().map(evaluate);
        let arguments = arguments.collect::<Result<Vec<Arc<Vector>>>>()?;
        let arguments: Vec<&Vector> = arguments.iter().map(Arc::as_ref).collect();
        match &selection {
            None => self.update(groups, &arguments),
            Some(selection) => {
                let groups: Vec<u32> = selection.iter().map(|row| groups[*row as usize]).collect();
                self.update(&groups, &arguments)
            }
        }
    }

    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()> {
        let Some(distinct) = &mut self.distinct else {
            return self.accumulator.update(groups, arguments);
        };
        let numbers = groups.iter().map(|group| i64::from(*group)).collect();
        let numbers = Vector { data: VectorData::Int8(numbers), validity: None };
        let columns: Vec<&Vector> =
            [&numbers].into_iter().chain(arguments.iter().copied()).collect();
        distinct.assign(&columns, groups.len(), &mut Vec::new());
        Ok(())
    }

    /// Returns the states of all groups, for [`AggregateStates::merge`].
    pub fn into_partial(self, group_count: usize) -> PartialStates {
        match self.distinct {
            Some(distinct) => PartialStates::Rows(distinct.into_keys()),
            None => {
                let states = (0..group_count).flat_map(|group| self.accumulator.partial(group));
                PartialStates::States(states.collect())
            }
        }
    }

    /// Adds the states of another part of the rows, whose group `i` is `groups[i]` here.
    ///
    /// # Errors
    ///
    /// Overflow of a state; `XX001` for a state that is none.
    pub fn merge(&mut self, partial: &PartialStates, groups: &[u32]) -> Result<()> {
        match partial {
            PartialStates::States(states) => {
                let width = self.aggregate.partial_width().max(1);
                for (state, group) in states.chunks_exact(width).zip(groups) {
                    self.accumulator.merge(*group as usize, state)?;
                }
                Ok(())
            }
            PartialStates::Rows(columns) => {
                let groups: Vec<u32> =
                    group_numbers(&columns[0]).map(|group| groups[group]).collect();
                self.update(&groups, &columns[1..].iter().collect::<Vec<&Vector>>())
            }
        }
    }

    /// Returns the results of some groups. Nothing can be fed any more.
    ///
    /// # Errors
    ///
    /// What the aggregate raises, for example `22003` for a sum out of range.
    pub fn finish(&mut self, groups: Range<usize>) -> Result<Vector> {
        if let Some(distinct) = self.distinct.take() {
            self.feed_distinct(distinct.into_keys())?;
        }
        let mut results = Vector::new(self.aggregate.data_type, groups.len());
        for group in groups {
            results.push(&self.accumulator.finish(group)?);
        }
        Ok(results)
    }

    /// Feeds what was kept.
    fn feed_distinct(&mut self, mut columns: Vec<Vector>) -> Result<()> {
        if self.aggregate.depends_on_order() {
            let argument_type = |column: usize| self.aggregate.arguments[column].data_type();
            let mut order: Vec<u32> = (0..columns[0].len() as u32).collect();
            order.sort_unstable_by(|&a, &b| {
                let compare = |column: usize| {
                    let (values, data_type) = (&columns[column + 1], argument_type(column));
                    values.compare_typed(a as usize, values, b as usize, data_type)
                };
                let orders = (0..columns.len() - 1).map(compare);
                orders.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
            });
            columns.iter_mut().for_each(|column| *column = column.take(&order));
        }
        let groups: Vec<u32> = group_numbers(&columns[0]).map(|group| group as u32).collect();
        self.accumulator.update(&groups, &columns[1..].iter().collect::<Vec<&Vector>>())
    }

    /// Returns the bytes held.
    pub fn byte_count(&self) -> usize {
        let distinct = self.distinct.as_ref().map_or(0, GroupTable::byte_count);
        self.accumulator.byte_count() + distinct
    }
}

/// Returns the group numbers of pairs.
fn group_numbers(column: &Vector) -> impl Iterator<Item = usize> {
    let VectorData::Int8(numbers) = &column.data else {
        unreachable!("group numbers are kept as bigint");
    };
    numbers.iter().map(|number| usize::try_from(*number).expect("groups are numbered from 0"))
}
