//! Hash join with spilling to disk. NULL keys match nothing.
//!
//! The right side is the build side. If the left side is a scan, region threads probe with its
//! rows as they read them ([`stage`](crate::exec::stage)). If the build side exceeds memory, both
//! sides are partitioned on disk by the hashes of their keys and joined partition by partition;
//! this loses the order of the left rows, which is restored by a sort where it is required.

use std::sync::Arc;

use types::aggregate::{GroupTable, key_hashes};
use types::expr::Expr;
use types::{Batch, DataType, Vector};

use crate::error::Result;
use crate::exec::block_join::BlockJoin;
use crate::exec::join_core::{BuildSide, JoinCandidates, JoinParts, ProbePushdown, RunningJoin};
use crate::exec::partitions::{LEVEL_MAX, SpillPartitions, SpillScan};
use crate::exec::project::columns_of;
use crate::exec::sort::Sort;
use crate::exec::stage::PipelineStage;
use crate::exec::{Context, Operator, build};
use crate::logical::{JoinKind, SortKey};
use crate::plan::KeyJoinNode;
use crate::spill::SpillFile;

/// Marker of a group without rows, and of a row without a group.
const NONE: u32 = u32::MAX;

/// Hash table of the right rows.
pub(super) struct JoinHashTable {
    left_keys: Arc<[Expr]>,
    right_keys: Arc<[Expr]>,
    table: GroupTable,
    /// Last right row of each group.
    tails: Vec<u32>,
    /// Next right row in the group of each row, of the last one the first: a group yields its rows
    /// in the order in which they came.
    chain: Vec<u32>,
}

/// Probe keys of a batch.
pub(super) struct ProbedKeys {
    /// Group of each row.
    groups: Vec<u32>,
    /// NULL flag of each row: set if one of its keys is NULL.
    has_null: Vec<bool>,
}

/// Hash join operator; see the module.
pub(super) struct HashJoin {
    node: Arc<KeyJoinNode>,
    context: Arc<Context>,
    left_types: Arc<[DataType]>,
    right_types: Arc<[DataType]>,
    /// Current join: of all rows, or of a partition.
    running: Option<RunningJoin<JoinHashTable>>,
    /// Current block join, for a partition with one key that exceeds memory.
    blocks: Option<BlockJoin<JoinHashTable>>,
    /// Number of times that the current rows were partitioned.
    level: u32,
    /// Pending partitions.
    pending: Vec<JoinPartition>,
    /// Left side, if its threads probe.
    piped: Option<Box<dyn Operator>>,
    /// True once that was attempted.
    was_begun: bool,
    /// True if the build side is retained from one iteration of a recursive query to the next.
    keeps: bool,
    /// Order that the result of the partitions must be sorted in.
    order: Vec<SortKey>,
    /// Sort of the partitions' result, if an order is required.
    sorted: Option<Box<Sort>>,
}

/// Rows of both sides with hashes of one partition.
struct JoinPartition {
    level: u32,
    left: Option<Arc<SpillFile>>,
    right: Option<Arc<SpillFile>>,
}

impl HashJoin {
    /// Opens the operator and both inputs.
    pub(super) fn open(node: &Arc<KeyJoinNode>, context: &Arc<Context>) -> Result<HashJoin> {
        let mut join = HashJoin {
            node: Arc::clone(node),
            context: Arc::clone(context),
            left_types: node.left_types.as_slice().into(),
            right_types: node.right_types.as_slice().into(),
            running: None,
            blocks: None,
            level: 0,
            pending: Vec::new(),
            piped: None,
            was_begun: false,
            keeps: context.is_iteration_invariant(&node.right),
            order: node.order.clone(),
            sorted: None,
        };
        join.run(build(&node.left, context)?, build(&node.right, context)?);
        Ok(join)
    }

    fn run(&mut self, left: Box<dyn Operator>, right: Box<dyn Operator>) {
        let node = &self.node;
        let parts = JoinParts {
            kind: node.kind,
            left,
            right,
            candidates: JoinHashTable::new(node.left_keys.clone(), node.right_keys.clone()),
            on: node.join_filter.clone(),
            left_types: node.left_types.clone(),
            right_types: node.right_types.clone(),
        };
        self.running = Some(RunningJoin::new(parts, &self.context));
    }

    /// Advances to the next partition; `false` if there is none.
    fn advance(&mut self) -> Result<bool> {
        let Some(JoinPartition { level, left, right }) = self.pending.pop() else {
            return Ok(false);
        };
        let left = SpillScan::open(left.as_ref(), &self.left_types, &self.context)?;
        let right = SpillScan::open(right.as_ref(), &self.right_types, &self.context)?;
        debug_assert!(level > 0 && level <= LEVEL_MAX, "a partition of level {level}");
        self.level = level;
        self.run(Box::new(left), Box::new(right));
        Ok(true)
    }

    /// Sorts the result of the partitions, if an order is required.
    fn sort_partitions(&mut self) {
        let keys = std::mem::take(&mut self.order);
        if keys.is_empty() {
            return;
        }
        let mut types = self.left_types.to_vec();
        if !matches!(self.node.kind, JoinKind::Semi | JoinKind::Anti) {
            types.extend_from_slice(&self.right_types);
        }
        let partitioned = HashJoin {
            node: Arc::clone(&self.node),
            context: Arc::clone(&self.context),
            left_types: Arc::clone(&self.left_types),
            right_types: Arc::clone(&self.right_types),
            running: None,
            blocks: None,
            level: self.level,
            pending: std::mem::take(&mut self.pending),
            piped: None,
            was_begun: true,
            keeps: false,
            order: Vec::new(),
            sorted: None,
        };
        let sort = Sort::of(Box::new(partitioned), (&keys, &types), &self.context);
        self.sorted = Some(Box::new(sort));
    }

    /// Partitions the remaining rows of a join.
    fn cut(&mut self, join: RunningJoin<JoinHashTable>) -> Result<()> {
        let (mut left, mut side, mut more) = join.into_parts();
        let right = side.take_rows();
        drop(side);
        let (node, context) = (&self.node, &self.context);
        let mut of_right = SpillPartitions::new(&self.right_types, self.level);
        let rows: Vec<u32> = (0..right.row_count as u32).collect();
        for some in right.sizes().batches(&rows) {
            add(&mut of_right, &right.batch(some), &node.right_keys, context)?;
        }
        drop(right);
        while let Some(batch) = more.next()? {
            add(&mut of_right, &batch, &node.right_keys, context)?;
        }
        let mut of_left = SpillPartitions::new(&self.left_types, self.level);
        while let Some(batch) = left.next()? {
            add(&mut of_left, &batch, &node.left_keys, context)?;
        }
        let of_right = of_right.finish()?;
        // All rows in one partition: there is only one key, or a few.
        let level = match of_right.iter().flatten().count() {
            1 => LEVEL_MAX,
            _ => self.level + 1,
        };
        for (left, right) in of_left.finish()?.into_iter().zip(of_right) {
            if left.is_some() || right.is_some() {
                self.pending.push(JoinPartition { level, left, right });
            }
        }
        Ok(())
    }
}

/// Adds rows to the partitions of their keys.
fn add(to: &mut SpillPartitions, batch: &Batch, keys: &[Expr], context: &Context) -> Result<()> {
    let types: Vec<DataType> = keys.iter().map(Expr::data_type).cloned().collect();
    let keys = columns_of(keys, batch, &context.eval)?;
    let keys: Vec<&Vector> = keys.iter().map(Arc::as_ref).collect();
    to.add(batch, &key_hashes(&keys, &types, batch.row_count), context)
}

impl HashJoin {
    /// Builds the hash table and lets the left side's threads probe it, if it fits and they can.
    fn begin(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.was_begun, true)
            || !BuildSide::<JoinHashTable>::is_by_left_rows(self.node.kind)
        {
            return Ok(());
        }
        let Some(mut join) = self.running.take() else { return Ok(()) };
        let is_handed_down =
            join.left_takes_stages() && join.read_right(Some(self.context.work_mem()))?;
        if !is_handed_down {
            self.running = Some(join);
            return Ok(());
        }
        match join.push_probe_down(&self.context)? {
            ProbePushdown::Left(left) => self.piped = Some(left),
            ProbePushdown::Kept(join) => self.running = Some(*join),
        }
        Ok(())
    }
}

impl Operator for HashJoin {
    fn takes_stages(&self) -> bool {
        match &self.piped {
            Some(_) => true,
            None => {
                !self.was_begun
                    && BuildSide::<JoinHashTable>::is_by_left_rows(self.node.kind)
                    && self.running.as_ref().is_some_and(RunningJoin::left_takes_stages)
            }
        }
    }

    fn attach(&mut self, stage: &Arc<dyn PipelineStage>) -> Result<bool> {
        self.begin()?;
        match &mut self.piped {
            Some(left) => left.attach(stage),
            None => Ok(false),
        }
    }

    fn next(&mut self) -> Result<Option<Batch>> {
        self.begin()?;
        if let Some(left) = &mut self.piped {
            return left.next();
        }
        loop {
            if let Some(sorted) = &mut self.sorted {
                return sorted.next();
            }
            if let Some(blocks) = &mut self.blocks {
                if let Some(batch) = blocks.next()? {
                    return Ok(Some(batch));
                }
                self.blocks = None;
            }
            let Some(mut join) = self.running.take() else {
                if self.advance()? {
                    continue;
                }
                return Ok(None);
            };
            if !join.read_right(Some(self.context.work_mem()))? {
                if self.level < LEVEL_MAX {
                    self.cut(join)?;
                    self.sort_partitions();
                } else {
                    // One key, or a few.
                    self.blocks = Some(BlockJoin::of(join, false, &self.context)?);
                }
                continue;
            }
            if let Some(batch) = join.next()? {
                self.running = Some(join);
                return Ok(Some(batch));
            }
            if self.keeps && self.level == 0 {
                self.running = Some(join);
                return Ok(None);
            }
        }
    }

    fn rewind(&mut self) -> Result<bool> {
        match &mut self.running {
            Some(join) if self.keeps && self.level == 0 => join.rewind(),
            _ => Ok(false),
        }
    }
}

impl JoinHashTable {
    /// Returns an empty hash table for these keys, which have the same types.
    pub(super) fn new(left_keys: Vec<Expr>, right_keys: Vec<Expr>) -> JoinHashTable {
        JoinHashTable::of(left_keys.into(), right_keys.into())
    }

    fn of(left_keys: Arc<[Expr]>, right_keys: Arc<[Expr]>) -> JoinHashTable {
        debug_assert_eq!(left_keys.len(), right_keys.len(), "keys of both sides");
        let key_types: Vec<_> = right_keys.iter().map(Expr::data_type).cloned().collect();
        JoinHashTable {
            left_keys,
            right_keys,
            table: GroupTable::new(&key_types),
            tails: Vec::new(),
            chain: Vec::new(),
        }
    }
}

/// Computes the keys of a batch, and the rows with a NULL among them.
fn keys_of(
    keys: &[Expr],
    batch: &Batch,
    context: &Context,
) -> Result<(Vec<Arc<Vector>>, Vec<bool>)> {
    let keys = columns_of(keys, batch, &context.eval)?;
    let mut has_null = vec![false; batch.row_count];
    for key in &keys {
        if let Some(validity) = &key.validity {
            let rows = has_null.iter_mut().zip(validity);
            rows.for_each(|(has_null, valid)| *has_null |= !valid);
        }
    }
    Ok((keys, has_null))
}

impl JoinCandidates for JoinHashTable {
    type LeftProbe = ProbedKeys;

    fn clear(&mut self) {
        *self = JoinHashTable::of(Arc::clone(&self.left_keys), Arc::clone(&self.right_keys));
    }

    fn add(&mut self, batch: &Batch, context: &Context) -> Result<()> {
        let (keys, has_null) = keys_of(&self.right_keys, batch, context)?;
        let keys: Vec<&Vector> = keys.iter().map(Arc::as_ref).collect();
        debug_assert!(self.chain.len() + batch.row_count < NONE as usize, "rows of a hash table");
        let mut groups = Vec::new();
        self.table.assign(&keys, batch.row_count, &mut groups);
        debug_assert_eq!(groups.len(), batch.row_count, "groups of the rows");
        self.tails.resize(self.table.group_count(), NONE);
        for (group, has_null) in groups.into_iter().zip(has_null) {
            let row = self.chain.len() as u32;
            if has_null {
                self.chain.push(NONE);
                continue;
            }
            let tail = &mut self.tails[group as usize];
            let first = match *tail {
                NONE => row,
                last => std::mem::replace(&mut self.chain[last as usize], row),
            };
            self.chain.push(first);
            *tail = row;
        }
        Ok(())
    }

    fn probe(&self, batch: &Batch, context: &Context) -> Result<ProbedKeys> {
        let (keys, has_null) = keys_of(&self.left_keys, batch, context)?;
        let keys: Vec<&Vector> = keys.iter().map(Arc::as_ref).collect();
        let mut groups = Vec::new();
        self.table.find(&keys, batch.row_count, &mut groups);
        Ok(ProbedKeys { groups, has_null })
    }

    fn first(&self, probe: &ProbedKeys, left_row: usize) -> Option<u32> {
        if *probe.has_null.get(left_row)? {
            return None;
        }
        // Keys that only occur on the left side are after all tails.
        let tail = *self.tails.get(probe.groups[left_row] as usize)?;
        (tail != NONE).then(|| self.chain[tail as usize])
    }

    fn after(&self, probe: &ProbedKeys, left_row: usize, right_row: u32) -> Option<u32> {
        let tail = self.tails[probe.groups[left_row] as usize];
        (right_row != tail).then(|| self.chain[right_row as usize])
    }

    fn byte_count(&self) -> usize {
        self.table.byte_count() + (self.tails.len() + self.chain.len()) * size_of::<u32>()
    }
}
