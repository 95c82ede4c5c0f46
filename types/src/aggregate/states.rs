//! States of one aggregate for all groups of an operator, with FILTER, DISTINCT and ORDER BY.
//!
//! ```text
//!   region:  feed, feed, ... -> into_partial --\
//!   region:  feed, feed, ... -> into_partial ----> merge, merge -> finish
//! ```
//!
//! Rows are fed directly to the [`Accumulator`], unless the aggregate needs all of them: with
//! DISTINCT, or an ORDER BY that affects the result, they are buffered ([`AggregateRowBuffer`]) and
//! fed at the end, and a partial result consists of the rows. If the order of addition affects the
//! last digit (floats), distinct values are fed in sorted order, as in PostgreSQL, so that the
//! result does not depend on the distribution of rows over regions.

use std::ops::Range;
use std::sync::Arc;

use super::row_buffer::{AggregateRowBuffer, group_numbers};
use super::{Accumulator, Aggregate};
use crate::error::Result;
use crate::expr::{EvalContext, Expr};
use crate::vector::{Batch, Vector};

/// The states of one aggregate.
pub struct AggregateStates {
    aggregate: Aggregate,
    accumulator: Box<dyn Accumulator>,
    /// The buffered rows, if the aggregate keeps rows; `None` after the end.
    kept: Option<AggregateRowBuffer>,
}

/// Partial states of all groups.
#[derive(Debug, Clone)]
pub enum PartialStates {
    /// Columns of [`Aggregate::partial_types`]; no columns if there are no groups.
    States(Vec<Vector>),
    /// Columns of the buffered rows ([`Aggregate::buffered_types`]), of aggregates that keep rows
    /// ([`Aggregate::buffers_rows`]).
    Rows(Vec<Vector>),
}

impl AggregateStates {
    /// Creates states without groups.
    pub fn new(aggregate: &Aggregate, context: &EvalContext) -> AggregateStates {
        AggregateStates {
            aggregate: aggregate.clone(),
            accumulator: aggregate.accumulator(context),
            kept: AggregateRowBuffer::new(aggregate, &context.style.interrupt),
        }
    }

    /// Resizes to groups `0..group_count`.
    pub fn resize(&mut self, group_count: usize) {
        self.accumulator.resize(group_count);
    }

    /// Asserts that the states are not finished: the rows of an aggregate that keeps rows are gone
    /// then.
    fn check_unfinished(&self) {
        debug_assert_eq!(self.kept.is_some(), self.aggregate.buffers_rows(), "it is finished");
    }

    /// Feeds the rows of a batch that pass FILTER; row `i` belongs to `groups[i]`.
    ///
    /// # Errors
    ///
    /// Those of the expressions, and overflow of a state.
    pub fn feed(&mut self, groups: &[u32], batch: &Batch, context: &EvalContext) -> Result<()> {
        self.check_unfinished();
        debug_assert_eq!(groups.len(), batch.row_count, "a group for each row");
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
        let arguments = match &self.kept {
            None => &self.aggregate.arguments,
            Some(kept) => &kept.expressions,
        };
        let arguments = arguments.iter().map(evaluate);
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
        debug_assert!(
            arguments.iter().all(|argument| argument.len() == groups.len()),
            "a group for each argument"
        );
        match &mut self.kept {
            None => self.accumulator.update(groups, arguments),
            Some(kept) => {
                kept.add(groups, arguments);
                Ok(())
            }
        }
    }

    /// Returns the states of all groups, for [`AggregateStates::merge`].
    ///
    /// # Errors
    ///
    /// `57014` if the interrupt flag is set.
    pub fn into_partial(self, group_count: usize) -> Result<PartialStates> {
        self.check_unfinished();
        Ok(match self.kept {
            Some(kept) => PartialStates::Rows(kept.into_columns()),
            None => {
                let types = self.aggregate.partial_types();
                PartialStates::States(self.accumulator.partial_columns(group_count, &types)?)
            }
        })
    }

    /// Merges the states of other rows, whose group `i` is `groups[i]` here.
    ///
    /// # Errors
    ///
    /// Overflow of a state; `XX001` for a malformed state.
    pub fn merge(&mut self, partial: &PartialStates, groups: &[u32]) -> Result<()> {
        self.check_unfinished();
        match partial {
            // There are no states.
            PartialStates::States(columns) if columns.is_empty() => Ok(()),
            PartialStates::States(columns) => self.accumulator.merge_columns(groups, columns),
            PartialStates::Rows(columns) => {
                let groups: Vec<u32> =
                    group_numbers(&columns[0]).map(|group| groups[group]).collect();
                self.update(&groups, &columns[1..].iter().collect::<Vec<&Vector>>())
            }
        }
    }

    /// Returns the results of some groups. Nothing can be fed afterwards.
    ///
    /// # Errors
    ///
    /// Those of the aggregate, for example `22003` for a sum out of range.
    pub fn finish(&mut self, groups: Range<usize>) -> Result<Vector> {
        if let Some(kept) = self.kept.take() {
            kept.feed(self.accumulator.as_mut())?;
        }
        let mut results = Vector::new(&self.aggregate.data_type, groups.len());
        let count = groups.len();
        self.accumulator.finish_all(groups, &mut results)?;
        debug_assert_eq!(results.len(), count, "a result for each group");
        Ok(results)
    }

    /// Returns the bytes held.
    pub fn byte_count(&self) -> usize {
        self.accumulator.byte_count() + self.kept.as_ref().map_or(0, AggregateRowBuffer::byte_count)
    }
}
