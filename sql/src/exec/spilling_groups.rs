//! Aggregation with spilling to disk.
//!
//! ```text
//!   rows, partial groups -> groups --many--> partitions in memory --too many--> on disk
//!   at the end: groups                                  -> batches
//!               partitions in memory, by region threads -> batches
//!               partition on disk after partition       -> groups -> ...
//! ```
//!
//! Partial groups are spilled, with the states of their aggregates, so that many rows of one
//! group take no more space than one. Groups are returned in no particular order.

use std::sync::Arc;

use types::aggregate::{
    AdaptiveGroups, Aggregate, Groups, PartialGroupSet, PartialGroups, PartialStates, key_hashes,
};
use types::expr::Expr;
use types::vector::{BATCH_ROWS, RowSizes, VectorData};
use types::{Batch, DataType, Vector};

use crate::error::Result;
use crate::exec::partitioned_groups::{MergePartitions, MergedGroups};
use crate::exec::partitions::{LEVEL_MAX, SpillPartitions};
use crate::exec::{Context, memory};
use crate::spill::SpillFile;

/// Size above which groups are partitioned: a larger hash table does not fit into the processor's
/// caches.
pub(super) const WHOLE_BYTES: usize = 4 << 20;

/// Spilling groups; see the module.
pub(super) struct SpillingGroups {
    shape: GroupShape,
    context: Arc<Context>,
    groups: AdaptiveGroups,
    /// Partitioned groups of the current rows.
    cut: MergePartitions,
    /// Merge of the partitioned groups, once all rows were read.
    merged: Option<MergedGroups>,
    /// Number of times that the current rows were partitioned on disk.
    level: u32,
    /// Partitions on disk that are being written.
    aside: Option<SpilledGroups<SpillPartitions>>,
    /// Pending partitions, with their levels.
    pending: Vec<(u32, SpilledGroups<Option<Arc<SpillFile>>>)>,
    /// Next group to return, once all rows were read.
    next: Option<usize>,
}

/// Keys and aggregates.
struct GroupShape {
    group_by: Vec<Expr>,
    aggregates: Vec<Aggregate>,
    key_types: Vec<DataType>,
}

/// Partial groups on disk.
struct SpilledGroups<F> {
    /// Keys, then states of the aggregates that have fixed-size states.
    states: F,
    /// For each aggregate that retains rows, with its number: keys, then the retained values.
    rows: Vec<(usize, F)>,
}

impl GroupShape {
    /// Returns the numbers of the aggregates that retain rows.
    fn keeping_rows(&self) -> impl Iterator<Item = usize> {
        let aggregates = self.aggregates.iter().enumerate();
        aggregates.filter(|(_, aggregate)| aggregate.buffers_rows()).map(|(number, _)| number)
    }

    fn state_types(&self) -> Arc<[DataType]> {
        let states = self.aggregates.iter().filter(|aggregate| !aggregate.buffers_rows());
        let states = states.flat_map(Aggregate::partial_types);
        self.key_types.iter().cloned().chain(states).collect()
    }

    fn row_types(&self, aggregate: usize) -> Arc<[DataType]> {
        let kept = self.aggregates[aggregate].buffered_types().into_iter().skip(1);
        self.key_types.iter().cloned().chain(kept).collect()
    }
}

impl SpillingGroups {
    /// Returns empty groups.
    pub(super) fn new(
        group_by: &[Expr],
        aggregates: &[Aggregate],
        context: &Arc<Context>,
    ) -> SpillingGroups {
        SpillingGroups {
            shape: GroupShape {
                group_by: group_by.to_vec(),
                aggregates: aggregates.to_vec(),
                key_types: group_by.iter().map(Expr::data_type).cloned().collect(),
            },
            context: Arc::clone(context),
            groups: AdaptiveGroups::new(Groups::new(group_by, aggregates, &context.eval)),
            cut: MergePartitions::new(group_by, aggregates, context),
            merged: None,
            level: 0,
            aside: None,
            pending: Vec::new(),
            next: None,
        }
    }

    /// Adds rows.
    pub(super) fn feed(&mut self, batch: &Batch) -> Result<()> {
        debug_assert!(self.next.is_none(), "rows are added after groups were returned");
        self.groups.feed(batch, &self.context.eval)?;
        self.keep_small()
    }

    /// Adds partial groups.
    pub(super) fn merge(&mut self, part: PartialGroupSet) -> Result<()> {
        debug_assert!(self.next.is_none(), "groups are merged after groups were returned");
        match part {
            PartialGroupSet::Whole(part) => self.groups.merge(&part)?,
            PartialGroupSet::Cut(part) => self.cut.push(part),
        }
        self.keep_small()
    }

    /// Partitions the groups if there are many, and spills them if they exceed memory.
    fn keep_small(&mut self) -> Result<()> {
        let bytes = self.groups.byte_count();
        if bytes > WHOLE_BYTES && self.groups.may_partition() {
            self.cut_groups()?;
        }
        let bytes = self.groups.byte_count() + self.cut.byte_count();
        if bytes <= self.context.work_mem() {
            return Ok(());
        }
        // A single group cannot be partitioned.
        if self.shape.group_by.is_empty() || self.level == LEVEL_MAX {
            return memory::check(bytes, self.context.work_mem());
        }
        self.context.check()?;
        if !self.cut.is_empty() && self.cut.merge_early(self.context.work_mem())? {
            return Ok(());
        }
        self.set_aside()
    }

    fn cut_groups(&mut self) -> Result<()> {
        match self.groups.take(&self.context.eval)? {
            PartialGroupSet::Cut(part) => self.cut.push(part),
            PartialGroupSet::Whole(part) => self.groups.merge(&part)?,
        }
        Ok(())
    }

    fn set_aside(&mut self) -> Result<()> {
        let part = self.groups.take(&self.context.eval)?.into_groups();
        self.set_part_aside(&part)?;
        let parts = self.cut.take_groups();
        parts.into_iter().try_for_each(|part| self.set_part_aside(&part))
    }

    fn set_part_aside(&mut self, part: &PartialGroups) -> Result<()> {
        self.context.check()?;
        let keys: Vec<&Vector> = part.keys.iter().collect();
        let hashes = key_hashes(&keys, &self.shape.key_types, part.group_count);
        let (shape, level) = (&self.shape, self.level);
        let aside = self.aside.get_or_insert_with(|| SpilledGroups {
            states: SpillPartitions::new(&shape.state_types(), level),
            rows: shape
                .keeping_rows()
                .map(|number| (number, SpillPartitions::new(&shape.row_types(number), level)))
                .collect(),
        });
        let groups: Vec<u32> = (0..part.group_count as u32).collect();
        let states = part.partials.iter().flat_map(|partial| match partial {
            PartialStates::States(columns) => &columns[..],
            PartialStates::Rows(_) => &[],
        });
        let columns: Vec<&Vector> = part.keys.iter().chain(states).collect();
        for some in RowSizes::of(&columns).batches(&groups) {
            let batch = states_batch(shape, part, some);
            let hashes = &hashes[some[0] as usize..][..some.len()];
            aside.states.add(&batch, hashes, &self.context)?;
        }
        for (number, partitions) in &mut aside.rows {
            let PartialStates::Rows(columns) = &part.partials[*number] else { continue };
            let VectorData::Int8(of_row) = &columns[0].data else { continue };
            let rows: Vec<u32> = (0..of_row.len() as u32).collect();
            for some in RowSizes::of(&columns[1..]).batches(&rows) {
                let groups: Vec<u32> =
                    some.iter().map(|&row| of_row[row as usize] as u32).collect();
                let keys = part.keys.iter().map(|key| key.take(&groups));
                let arguments = columns[1..].iter().map(|column| column.take(some));
                let columns = keys.chain(arguments).map(Arc::new).collect();
                let batch = Batch { columns, row_count: some.len() };
                let hashes: Vec<u64> = groups.iter().map(|group| hashes[*group as usize]).collect();
                partitions.add(&batch, &hashes, &self.context)?;
            }
        }
        Ok(())
    }

    /// Returns the next groups, once all were added: their keys, then the results of the
    /// aggregates.
    pub(super) fn next(&mut self) -> Result<Option<Batch>> {
        loop {
            self.context.check()?;
            let from = match self.next {
                Some(next) => next,
                None => {
                    self.end_rows()?;
                    0
                }
            };
            if let Some(merged) = &mut self.merged {
                if let Some(batch) = merged.next()? {
                    return Ok(Some(batch));
                }
                self.merged = None;
            }
            let groups = self.groups.groups();
            let to = groups.group_count().min(from + BATCH_ROWS);
            self.next = Some(to);
            if from < to {
                let batch = groups.finish(from..to)?;
                memory::check(groups.byte_count(), self.context.work_mem())?;
                return Ok(Some(batch));
            }
            let Some((level, partition)) = self.pending.pop() else { return Ok(None) };
            let eval = &self.context.eval;
            let groups = Groups::new(&self.shape.group_by, &self.shape.aggregates, eval);
            self.groups = AdaptiveGroups::new(groups);
            (self.level, self.next) = (level, None);
            self.read(&partition)?;
        }
    }

    /// Ends the input: if groups were spilled or partitioned, so are the remaining ones.
    fn end_rows(&mut self) -> Result<()> {
        if self.aside.is_none() {
            if !self.groups.is_fully_grouped() || !self.cut.is_empty() {
                let rest = self.groups.take(&self.context.eval)?;
                self.merged = Some(self.cut.finish(rest));
            }
            return Ok(());
        }
        self.set_aside()?;
        let Some(SpilledGroups { states, rows }) = self.aside.take() else { return Ok(()) };
        let finish = |(number, partitions): (usize, SpillPartitions)| {
            Ok((number, partitions.finish()?.into_iter()))
        };
        let mut rows = rows.into_iter().map(finish).collect::<Result<Vec<_>>>()?;
        for states in states.finish()? {
            let rows = rows.iter_mut().map(|(number, files)| (*number, files.next().flatten()));
            let partition = SpilledGroups { states, rows: rows.collect() };
            if partition.states.is_some() {
                self.pending.push((self.level + 1, partition));
            }
        }
        Ok(())
    }

    /// Reads a partition.
    fn read(&mut self, partition: &SpilledGroups<Option<Arc<SpillFile>>>) -> Result<()> {
        let none = |aggregate: &Aggregate| match aggregate.buffers_rows() {
            true => PartialStates::Rows(no_rows(aggregate)),
            false => PartialStates::States(Vec::new()),
        };
        let key_count = self.shape.key_types.len();
        if let Some(file) = &partition.states {
            let mut reader = file.reader()?;
            while let Some(batch) = reader.next_batch()? {
                let part = part_of_states(&self.shape, batch);
                self.merge(PartialGroupSet::Whole(part))?;
            }
        }
        for (number, file) in &partition.rows {
            let Some(file) = file else { continue };
            let mut reader = file.reader()?;
            while let Some(batch) = reader.next_batch()? {
                let group_count = batch.row_count;
                let mut columns = batch.columns.into_iter().map(Arc::unwrap_or_clone);
                let keys = columns.by_ref().take(key_count).collect();
                let numbers = (0..group_count as i64).collect();
                let numbers = Vector { data: VectorData::Int8(numbers), validity: None };
                let mut partials: Vec<PartialStates> =
                    self.shape.aggregates.iter().map(none).collect();
                let rows = std::iter::once(numbers).chain(columns).collect();
                partials[*number] = PartialStates::Rows(rows);
                self.merge(PartialGroupSet::Whole(PartialGroups { keys, partials, group_count }))?;
            }
        }
        Ok(())
    }
}

/// Returns the keys and states of some groups.
fn states_batch(shape: &GroupShape, part: &PartialGroups, groups: &[u32]) -> Batch {
    let mut columns: Vec<Arc<Vector>> =
        part.keys.iter().map(|key| Arc::new(key.take(groups))).collect();
    for (aggregate, partial) in shape.aggregates.iter().zip(&part.partials) {
        if let (false, PartialStates::States(states)) = (aggregate.buffers_rows(), partial) {
            columns.extend(states.iter().map(|column| Arc::new(column.take(groups))));
        }
    }
    Batch { columns, row_count: groups.len() }
}

/// Returns the partial groups of a batch from [`states_batch`].
fn part_of_states(shape: &GroupShape, batch: Batch) -> PartialGroups {
    let group_count = batch.row_count;
    let mut columns = batch.columns.into_iter().map(Arc::unwrap_or_clone);
    let keys = columns.by_ref().take(shape.key_types.len()).collect();
    let partial = |aggregate: &Aggregate| match aggregate.buffers_rows() {
        true => PartialStates::Rows(no_rows(aggregate)),
        false => {
            let width = aggregate.partial_types().len();
            PartialStates::States(columns.by_ref().take(width).collect())
        }
    };
    let partials = shape.aggregates.iter().map(partial).collect();
    debug_assert_eq!(columns.count(), 0, "columns after the states of all aggregates");
    PartialGroups { keys, partials, group_count }
}

/// Returns empty columns of an aggregate that retains rows.
fn no_rows(aggregate: &Aggregate) -> Vec<Vector> {
    aggregate.buffered_types().into_iter().map(|data_type| Vector::new(&data_type, 0)).collect()
}
