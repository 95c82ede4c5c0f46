//! Window aggregates: aggregate functions over frames.
//!
//! While frames only grow at their end, as the default frame does, rows are added incrementally.
//! Any other frame is aggregated from its rows; a long one, if the aggregate does not depend on
//! the order, from the states of a binary tree over the partition.

use std::ops::Range;

use types::aggregate::{Accumulator, Aggregate};
use types::expr::EvalContext;
use types::{Datum, Vector};

use crate::error::Result;
use crate::exec::memory;
use crate::exec::project::columns_of;
use crate::exec::window::frames::{FrameRanges, Frames};
use crate::exec::window::run::PartitionRun;

/// Maximum number of rows of a frame that is aggregated from its rows.
const SHORT_FRAME_ROWS: usize = 32;

/// Returns the value of an aggregate for each row.
pub(super) fn compute(
    aggregate: &Aggregate,
    frames: &Frames<'_>,
    run: &PartitionRun,
) -> Result<Vector> {
    let rows = AggregateInput::new(aggregate, run)?;
    let mut values = Vector::new(&aggregate.data_type, run.batch.row_count);
    for partition in &run.partitions {
        let mut over = FrameAggregate::new(&rows, partition.clone());
        for row in partition.clone() {
            run.context.check()?;
            over.turn(frames.pieces(partition, row), run)?;
            values.push(&over.value);
        }
    }
    Ok(values)
}

/// Input of the aggregate.
struct AggregateInput<'a> {
    aggregate: &'a Aggregate,
    context: &'a EvalContext,
    arguments: Vec<std::sync::Arc<Vector>>,
    /// FILTER; `None`: all rows qualify.
    passes: Option<Vec<bool>>,
}

impl<'a> AggregateInput<'a> {
    fn new(aggregate: &'a Aggregate, run: &'a PartitionRun) -> Result<AggregateInput<'a>> {
        let arguments = columns_of(&aggregate.arguments, &run.batch, &run.context.eval)?;
        let passes = match &aggregate.filter {
            None => None,
            Some(filter) => {
                let mut passes = vec![false; run.batch.row_count];
                for row in filter.filter_batch(&run.batch, &run.context.eval)? {
                    passes[row as usize] = true;
                }
                Some(passes)
            }
        };
        Ok(AggregateInput { aggregate, context: &run.context.eval, arguments, passes })
    }

    /// Adds rows to the group that `group` returns.
    fn feed(
        &self,
        range: Range<usize>,
        group: impl Fn(usize) -> u32,
        accumulator: &mut dyn Accumulator,
    ) -> Result<()> {
        let passes = |row: &usize| self.passes.as_ref().is_none_or(|passes| passes[*row]);
        let rows: Vec<u32> = range.filter(passes).map(|row| row as u32).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let groups: Vec<u32> = rows.iter().map(|row| group(*row as usize)).collect();
        let arguments: Vec<Vector> =
            self.arguments.iter().map(|argument| argument.take(&rows)).collect();
        let arguments: Vec<&Vector> = arguments.iter().collect();
        Ok(accumulator.update(&groups, &arguments)?)
    }

    fn accumulator(&self) -> Box<dyn Accumulator> {
        let mut accumulator = self.aggregate.accumulator(self.context);
        accumulator.resize(1);
        accumulator
    }
}

/// Aggregate over the frames of a partition, row by row.
struct FrameAggregate<'a> {
    rows: &'a AggregateInput<'a>,
    partition: Range<usize>,
    /// Frame of the present value; `None` at first.
    pieces: Option<FrameRanges>,
    /// Range that was aggregated incrementally, and its state.
    grown: Option<(Range<usize>, Box<dyn Accumulator>)>,
    tree: Option<AggregateTree>,
    value: Datum,
}

impl<'a> FrameAggregate<'a> {
    fn new(rows: &'a AggregateInput<'a>, partition: Range<usize>) -> FrameAggregate<'a> {
        FrameAggregate {
            rows,
            partition,
            pieces: None,
            grown: None,
            tree: None,
            value: Datum::Null,
        }
    }

    /// Computes the value over a frame.
    fn turn(&mut self, pieces: FrameRanges, run: &PartitionRun) -> Result<()> {
        if self.pieces.as_ref() == Some(&pieces) {
            return Ok(());
        }
        let row_count: usize = pieces.iter().map(Range::len).sum();
        self.value = match pieces.as_slice() {
            [one] if self.is_growth(one) => self.grow(one.clone())?,
            _ if row_count > SHORT_FRAME_ROWS && !self.rows.aggregate.depends_on_order() => {
                self.sum_of_tree(&pieces, run)?
            }
            _ => {
                let mut accumulator = self.rows.accumulator();
                for piece in &pieces {
                    self.rows.feed(piece.clone(), |_| 0, accumulator.as_mut())?;
                }
                accumulator.finish(0)?
            }
        };
        self.pieces = Some(pieces);
        Ok(())
    }

    /// Returns whether a frame extends the incremental range at its end, or starts with the
    /// partition.
    fn is_growth(&self, frame: &Range<usize>) -> bool {
        match &self.grown {
            Some((fed, _)) => fed.start == frame.start && fed.end <= frame.end,
            None => frame.start == self.partition.start,
        }
    }

    fn grow(&mut self, frame: Range<usize>) -> Result<Datum> {
        let (fed, accumulator) =
            self.grown.get_or_insert_with(|| (frame.start..frame.start, self.rows.accumulator()));
        self.rows.feed(fed.end..frame.end, |_| 0, accumulator.as_mut())?;
        *fed = frame;
        Ok(accumulator.finish(0)?)
    }

    fn sum_of_tree(&mut self, pieces: &FrameRanges, run: &PartitionRun) -> Result<Datum> {
        let tree = match self.tree.take() {
            Some(tree) => tree,
            None => AggregateTree::new(self.rows, self.partition.clone(), run)?,
        };
        let mut sum = self.rows.accumulator();
        for piece in pieces {
            tree.add_to(sum.as_mut(), piece)?;
        }
        self.tree = Some(tree);
        Ok(sum.finish(0)?)
    }
}

/// Aggregate states of a binary tree over a partition: node 1 has all rows, nodes 2n and 2n + 1
/// each half of those of node n; the last half of the nodes are leaves with one row each.
struct AggregateTree {
    states: Box<dyn Accumulator>,
    first: usize,
    leaf_count: usize,
}

impl AggregateTree {
    fn new(
        rows: &AggregateInput<'_>,
        partition: Range<usize>,
        run: &PartitionRun,
    ) -> Result<AggregateTree> {
        let leaf_count = partition.len().next_power_of_two();
        let first = partition.start;
        let mut states = rows.aggregate.accumulator(rows.context);
        states.resize(2 * leaf_count);
        rows.feed(partition, |row| (leaf_count + row - first) as u32, states.as_mut())?;
        for node in (1..leaf_count).rev() {
            for child in [2 * node, 2 * node + 1] {
                let state = states.partial(child)?;
                states.merge(node, &state)?;
            }
        }
        memory::check(run.byte_count() + states.byte_count(), run.context.work_mem())?;
        Ok(AggregateTree { states, first, leaf_count })
    }

    /// Merges the states of a range into group 0 of `sum`.
    fn add_to(&self, sum: &mut dyn Accumulator, range: &Range<usize>) -> Result<()> {
        let mut from = self.leaf_count + range.start - self.first;
        let mut to = self.leaf_count + range.end - self.first;
        while from < to {
            if from % 2 == 1 {
                sum.merge(0, &self.states.partial(from)?)?;
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                sum.merge(0, &self.states.partial(to)?)?;
            }
            from /= 2;
            to /= 2;
        }
        Ok(())
    }
}
