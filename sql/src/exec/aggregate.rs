//! Hash aggregate: groups in the session, for rows that do not come from the regions of one table.

use std::sync::Arc;

use types::aggregate::{AggregateStates, GroupTable};
use types::expr::Expr;
use types::vector::BATCH_ROWS;
use types::{Batch, DataType, Vector};

use crate::error::Result;
use crate::exec::project::columns_of;
use crate::exec::{Context, Operator, build, memory};
use crate::plan::AggregateNode;

/// See the module.
pub(super) struct HashAggregate {
    node: Arc<AggregateNode>,
    context: Arc<Context>,
    input: Box<dyn Operator>,
    groups: GroupTable,
    states: Vec<AggregateStates>,
    /// The next group to yield, once all rows were read.
    next: Option<usize>,
}

impl HashAggregate {
    /// Opens it and what is below.
    pub(super) fn open(node: &Arc<AggregateNode>, context: &Arc<Context>) -> Result<HashAggregate> {
        let key_types: Vec<DataType> = node.group_by.iter().map(Expr::data_type).collect();
        Ok(HashAggregate {
            input: build(&node.input, context)?,
            groups: GroupTable::new(&key_types),
            states: node.aggregates.iter().map(AggregateStates::new).collect(),
            node: Arc::clone(node),
            context: Arc::clone(context),
            next: None,
        })
    }

    fn read_all(&mut self) -> Result<()> {
        let node = Arc::clone(&self.node);
        let mut groups = Vec::new();
        if node.group_by.is_empty() {
            self.states.iter_mut().for_each(|states| states.resize(1));
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
            for states in &mut self.states {
                states.resize(group_count);
                states.feed(&groups, &batch, &self.context.eval)?;
            }
            let bytes = self.states.iter().map(AggregateStates::byte_count).sum::<usize>();
            memory::check(bytes + self.groups.byte_count(), self.context.work_mem)?;
        }
        Ok(())
    }

    fn group_count(&self) -> usize {
        if self.node.group_by.is_empty() { 1 } else { self.groups.group_count() }
    }

    fn finish(&mut self, from: usize, to: usize) -> Result<Batch> {
        let mut columns: Vec<Arc<Vector>> = Vec::new();
        if !self.node.group_by.is_empty() {
            columns.extend(self.groups.keys(from..to).into_iter().map(Arc::new));
        }
        for states in &mut self.states {
            columns.push(Arc::new(states.finish(from..to)?));
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
