//! Hash aggregate: groups in the session, DISTINCT aggregates included.

use std::sync::Arc;

use types::aggregate::{Accumulator, Aggregate, GroupTable, feed};
use types::expr::Expr;
use types::vector::{BATCH_ROWS, VectorData};
use types::{Batch, DataType, Vector};

use crate::error::Result;
use crate::exec::distinct::first_of_each;
use crate::exec::project::{column_of, columns_of};
use crate::exec::{Context, Operator, build, memory};
use crate::plan::AggregateNode;

/// See the module.
pub(super) struct HashAggregate {
    node: Arc<AggregateNode>,
    context: Arc<Context>,
    input: Box<dyn Operator>,
    groups: GroupTable,
    states: Vec<State>,
    /// The next group to yield, once all rows were read.
    next: Option<usize>,
}

/// One aggregate of all groups.
struct State {
    accumulator: Box<dyn Accumulator>,
    /// For DISTINCT: the pairs of group and value that were fed.
    seen: Option<GroupTable>,
}

impl State {
    fn new(aggregate: &Aggregate) -> State {
        let seen = aggregate
            .argument
            .as_ref()
            .filter(|_| aggregate.distinct)
            .map(|argument| GroupTable::new(&[DataType::Int8, argument.data_type()]));
        State { accumulator: aggregate.accumulator(), seen }
    }

    /// Feeds a batch, whose rows belong to `groups`.
    fn feed(
        &mut self,
        aggregate: &Aggregate,
        groups: &[u32],
        batch: &Batch,
        context: &Context,
    ) -> Result<()> {
        let (Some(seen), Some(argument)) = (&mut self.seen, &aggregate.argument) else {
            feed(aggregate, self.accumulator.as_mut(), groups, batch, &context.eval)?;
            return Ok(());
        };
        let (narrowed, narrowed_groups);
        let (batch, groups) = match &aggregate.filter {
            None => (batch, groups),
            Some(filter) => {
                let kept = filter.filter_batch(batch, &context.eval)?;
                narrowed = batch.take(&kept);
                narrowed_groups =
                    kept.iter().map(|&row| groups[row as usize]).collect::<Vec<u32>>();
                (&narrowed, narrowed_groups.as_slice())
            }
        };
        let values = column_of(argument, batch, &context.eval)?;
        let of_group = groups.iter().map(|&group| i64::from(group)).collect();
        let of_group = Vector { data: VectorData::Int8(of_group), validity: None };
        let before = seen.group_count();
        let mut pairs = Vec::new();
        seen.assign(&[&of_group, &values], batch.row_count, &mut pairs);
        let first = first_of_each(&pairs, before);
        let groups: Vec<u32> = first.iter().map(|&row| groups[row as usize]).collect();
        self.accumulator.update(&groups, Some(&values.take(&first)))?;
        Ok(())
    }

    fn byte_count(&self) -> usize {
        self.accumulator.byte_count() + self.seen.as_ref().map_or(0, GroupTable::byte_count)
    }
}

impl HashAggregate {
    /// Opens it and what is below.
    pub(super) fn open(node: &Arc<AggregateNode>, context: &Arc<Context>) -> Result<HashAggregate> {
        let key_types: Vec<DataType> = node.group_by.iter().map(Expr::data_type).collect();
        Ok(HashAggregate {
            input: build(&node.input, context)?,
            groups: GroupTable::new(&key_types),
            states: node.aggregates.iter().map(State::new).collect(),
            node: Arc::clone(node),
            context: Arc::clone(context),
            next: None,
        })
    }

    fn read_all(&mut self) -> Result<()> {
        let node = Arc::clone(&self.node);
        let mut groups = Vec::new();
        if node.group_by.is_empty() {
            self.states.iter_mut().for_each(|state| state.accumulator.resize(1));
        }
        while let Some(batch) = self.input.next()? {
            self.context.check()?;
            if node.group_by.is_empty() {
                groups.clear();
                groups.resize(batch.row_count, 0);
            } else {
                let keys = columns_of(&node.group_by, &batch, &self.context.eval)?;
                let keys: Vec<&Vector> = keys.iter().map(Arc::as_ref).collect();
                self.groups.assign(&keys, batch.row_count, &mut groups);
            }
            let group_count = self.group_count();
            for (state, aggregate) in self.states.iter_mut().zip(&node.aggregates) {
                state.accumulator.resize(group_count);
                state.feed(aggregate, &groups, &batch, &self.context)?;
            }
            let bytes = self.states.iter().map(State::byte_count).sum::<usize>();
            memory::check(bytes + self.groups.byte_count(), self.context.work_mem)?;
        }
        Ok(())
    }

    fn group_count(&self) -> usize {
        if self.node.group_by.is_empty() { 1 } else { self.groups.group_count() }
    }

    fn finish(&self, from: usize, to: usize) -> Result<Batch> {
        let mut columns: Vec<Arc<Vector>> = Vec::new();
        if !self.node.group_by.is_empty() {
            columns.extend(self.groups.keys(from..to).into_iter().map(Arc::new));
        }
        for (state, aggregate) in self.states.iter().zip(&self.node.aggregates) {
            let mut column = Vector::new(aggregate.data_type, to - from);
            for group in from..to {
                column.push(&state.accumulator.finish(group)?);
            }
            columns.push(Arc::new(column));
        }
        Ok(Batch { columns, row_count: to - from })
    }
}

impl Operator for HashAggregate {
    fn next(&mut self) -> Result<Option<Batch>> {
        let from = match self.next {
            Some(next) => next,
            None => {
                self.read_all()?;
                0
            }
        };
        let to = self.group_count().min(from + BATCH_ROWS);
        self.next = Some(to);
        if from == to {
            return Ok(None);
        }
        Ok(Some(self.finish(from, to)?))
    }
}
