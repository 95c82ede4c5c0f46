//! Index nested-loop join (`RightLookup join` in EXPLAIN): right rows are read by key, for left
//! batches.
//!
//! ```text
//! left batch -> its distinct keys -> gets or ranges -> right rows -> hash join with the batch
//!        \--- more right rows than [`RIGHT_BYTES`]: its first half, then the other one
//!        \--- one left row that has more: it is joined with them block by block
//! ```
//!
//! Ranges whose bounds are values of the left rows are read in the same way; their right rows are
//! joined by a [`RangeIndex`]. If there are too many, the batch is halved, and the right rows of
//! a single left row are joined as they come, without a buffer.
//!
//! The right table is read in the snapshot from the opening of the join.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use store::transaction::TableReader;
use types::aggregate::GroupTable;
use types::vector::{BATCH_BYTES, BATCH_ROWS};
use types::{Batch, DataType, Vector};

use crate::error::{Error, Result};
use crate::exec::feed::{read_points, with_salt, with_salts};
use crate::exec::hash_join::JoinHashTable;
use crate::exec::instrumentation::instrument;
use crate::exec::join_core::{BlockProbe, ColumnRows, JoinCandidates, JoinParts, RunningJoin};
use crate::exec::key_range::{PathKeys, merge_overlapping, resolve};
use crate::exec::project::columns_of;
use crate::exec::range_index::RangeIndex;
use crate::exec::range_reader::{RangeReader, RowOptions};
use crate::exec::scan::first_rows;
use crate::exec::scan_partition_reader::{PathRows, RowStage};
use crate::exec::stage::{PipelineStage, StageInput, StageOutput};
use crate::exec::time_travel::{self, ScanVersions};
use crate::exec::{Context, Operator, build};
use crate::logical::JoinKind;
use crate::plan::scan::ScanNode;
use crate::plan::{KeyRange, LookupJoinNode, Node};

/// Size of the right rows that are buffered for the current left rows, in bytes.
const RIGHT_BYTES: usize = 4 * BATCH_BYTES;
/// Number of left rows collected before their keys are looked up; fewer at first with a row goal.
const GATHERED_ROWS: usize = 256;
/// Number of left rows collected at first for ranges.
const FIRST_RANGES: usize = 16;
/// Approximate number of right rows of ranges that are read for a batch.
const RANGE_ROWS: usize = 4096;

/// Index nested-loop join operator; see the module.
pub(super) struct LookupJoin {
    left: StageInput,
    lookup: Arc<RightLookup>,
    /// Join of the current left rows with their right rows.
    pairs: Option<Box<dyn Operator>>,
    /// Remaining parts of a halved batch.
    halves: VecDeque<Batch>,
    was_begun: bool,
    /// Number of left rows to collect next.
    gathered_rows: usize,
}

/// Look-up of the right rows of left batches.
struct RightLookup {
    node: Arc<LookupJoinNode>,
    scan: Arc<ScanNode>,
    context: Arc<Context>,
    table: Arc<TableReader>,
    stage: Arc<RowStage>,
    options: RowOptions,
    /// Estimated number of left rows whose right rows fit into the buffer.
    left_rows: AtomicUsize,
}

/// A left batch, joined with its right rows part by part.
struct LookupBatch {
    lookup: Arc<RightLookup>,
    left: Batch,
    /// Next row of `left`.
    next: usize,
    pairs: Option<Box<dyn Operator>>,
}

/// One left row with too many right rows for the buffer: it is joined with them block by block.
struct LookupRow {
    pieces: BlockProbe<JoinHashTable>,
    /// Right rows that were already read.
    first: Option<Batch>,
    right: Box<dyn Operator>,
    is_done: bool,
    context: Arc<Context>,
}

impl LookupJoin {
    /// Opens the operator and its left input, or the
    /// [alternative](LookupJoinNode::before_index_history) for a time before the history of its
    /// index.
    pub(super) fn open(
        node: &Arc<LookupJoinNode>,
        context: &Arc<Context>,
    ) -> Result<Box<dyn Operator>> {
        let Node::Scan(scan) = &node.right else {
            bail!(INTERNAL_ERROR: "a look-up reads no table");
        };
        let versions = time_travel::versions(scan, context)?;
        match &node.before_index_history {
            Some(before) if !time_travel::is_in_index(scan, &versions, context)? => {
                build(before, context)
            }
            _ => Ok(Box::new(LookupJoin::of(node, (scan, versions), context)?)),
        }
    }

    fn of(
        node: &Arc<LookupJoinNode>,
        (scan, versions): (&Arc<ScanNode>, ScanVersions),
        context: &Arc<Context>,
    ) -> Result<LookupJoin> {
        let stage = Arc::new(RowStage::open(scan, versions.range, context)?);
        let options = RowOptions {
            columns: stage.read_columns(),
            sections: stage.sections()?,
            versions,
            limit: None,
            reverse: false,
            base_rows: None,
            skip: None,
        };
        let lookup = RightLookup {
            table: Arc::new(context.path_reader(&scan.path)?),
            stage,
            options,
            scan: Arc::clone(scan),
            node: Arc::clone(node),
            context: Arc::clone(context),
            left_rows: AtomicUsize::new(BATCH_ROWS),
        };
        let first = first_rows(&node.goal, context)?;
        let most = if node.range.is_some() { FIRST_RANGES } else { GATHERED_ROWS };
        Ok(LookupJoin {
            gathered_rows: first.unwrap_or(most).clamp(1, most),
            halves: VecDeque::new(),
            left: StageInput::new(build(&node.left, context)?),
            lookup: Arc::new(lookup),
            pairs: None,
            was_begun: false,
        })
    }

    /// Collects the next left rows.
    fn gather(&mut self) -> Result<Option<Batch>> {
        let wanted = self.gathered_rows;
        self.gathered_rows = (wanted * 4).min(GATHERED_ROWS);
        let Some(first) = self.left.next()? else { return Ok(None) };
        if first.row_count >= wanted {
            return Ok(Some(first));
        }
        let mut all = ColumnRows::new(&self.lookup.node.left_types);
        all.add(&first);
        while all.row_count < wanted && all.byte_count() < BATCH_BYTES {
            let Some(batch) = self.left.next()? else { break };
            all.add(&batch);
        }
        let columns = all.columns.into_iter().map(Arc::new).collect();
        Ok(Some(Batch { columns, row_count: all.row_count }))
    }

    /// Opens the join of a left batch, or of its first half, with right rows in ranges.
    fn turn_to_ranges(&mut self, batch: Batch, range: &KeyRange) -> Result<Box<dyn Operator>> {
        let lookup = &self.lookup;
        let index = RangeIndex::new(&lookup.node, range);
        let mut pairs = lookup.pairs(batch.clone(), lookup.right_rows(&batch)?, index);
        if pairs.read_right(Some(lookup.context.work_mem()))? {
            let fitting = batch.row_count * RANGE_ROWS / pairs.right_row_count().max(1);
            self.gathered_rows = self.gathered_rows.min(fitting).max(1);
            return Ok(Box::new(pairs));
        }
        drop(pairs);
        self.gathered_rows = 1;
        if batch.row_count == 1 {
            let right = lookup.right_rows(&batch)?;
            let lookup = Arc::clone(lookup);
            return Ok(Box::new(OneLeftRow {
                lookup,
                left: batch,
                right,
                state: OneRowState::Unmatched,
            }));
        }
        let middle = batch.row_count as u32 / 2;
        let (first, second): (Vec<u32>, Vec<u32>) =
            (0..batch.row_count as u32).partition(|row| *row < middle);
        self.halves.push_front(batch.take(&second));
        self.turn_to_ranges(batch.take(&first), range)
    }

    /// Opens the join of the next left batch; `None` if there is none.
    fn next_pairs(&mut self) -> Result<Option<Box<dyn Operator>>> {
        let next = match self.halves.pop_front() {
            Some(half) => Some(half),
            None => self.gather()?,
        };
        let Some(batch) = next else { return Ok(None) };
        match self.lookup.node.range.clone() {
            Some(range) => self.turn_to_ranges(batch, &range).map(Some),
            None => Ok(Some(Box::new(LookupBatch::of(batch, &self.lookup)))),
        }
    }

    fn own_stage(lookup: &Arc<RightLookup>) -> Arc<dyn PipelineStage> {
        Arc::clone(lookup) as Arc<dyn PipelineStage>
    }
}

impl RightLookup {
    /// Computes the distinct keys of a batch.
    fn keys(&self, batch: &Batch) -> Result<PathKeys> {
        let expressions: Vec<_> = self.node.bindings.iter().map(|(_, e)| e.clone()).collect();
        let types: Vec<DataType> = expressions.iter().map(|e| e.data_type().clone()).collect();
        let columns = columns_of(&expressions, batch, &self.context.eval)?;
        let values: Vec<&Vector> = columns.iter().map(Arc::as_ref).collect();
        let (mut groups, mut known) = (Vec::new(), 0);
        GroupTable::new(&types).assign(&values, batch.row_count, &mut groups);
        let mut eval = self.context.eval.clone();
        let (mut points, mut ranges) = (Vec::new(), Vec::new());
        for (row, &group) in groups.iter().enumerate() {
            // Group numbers are assigned in order of appearance.
            if group < known {
                continue;
            }
            known = group + 1;
            for ((parameter, _), column) in self.node.bindings.iter().zip(&columns) {
                eval.parameters[*parameter] = column.datum(row);
            }
            match resolve(&self.scan.path, &eval)? {
                PathKeys::Points(more) => points.extend(more),
                PathKeys::Ranges(more) => ranges.extend(more),
            }
        }
        let points: BTreeSet<Vec<u8>> = points.into_iter().collect();
        match ranges.is_empty() {
            true => Ok(PathKeys::Points(points.into_iter().collect())),
            false => Ok(PathKeys::Ranges(merge_overlapping(ranges))),
        }
    }

    /// Opens the join of a left batch with its right rows.
    fn turn_to(&self, batch: Batch) -> Result<RunningJoin<JoinHashTable>> {
        let right = self.right_rows(&batch)?;
        Ok(self.pairs(batch, right, self.key_index()))
    }

    fn key_index(&self) -> JoinHashTable {
        JoinHashTable::new(self.node.left_keys.clone(), self.node.right_keys.clone())
    }

    /// Joins a left batch with right rows.
    fn pairs<C: JoinCandidates>(
        &self,
        batch: Batch,
        right: Box<dyn Operator>,
        candidates: C,
    ) -> RunningJoin<C> {
        let kind = self.node.kind;
        RunningJoin::new(self.parts(kind, batch, right, candidates), &self.context)
    }

    fn parts<C>(
        &self,
        kind: JoinKind,
        batch: Batch,
        right: Box<dyn Operator>,
        candidates: C,
    ) -> JoinParts<C> {
        JoinParts {
            kind,
            left: Box::new(OneBatch(Some(batch))),
            right,
            candidates,
            on: self.node.residual.clone(),
            left_types: self.node.left_types.clone(),
            right_types: self.node.right_types.clone(),
        }
    }

    /// Opens the right rows of a left batch.
    fn right_rows(&self, batch: &Batch) -> Result<Box<dyn Operator>> {
        let layout = &self.scan.path.layout;
        let source = match self.keys(batch)? {
            PathKeys::Points(keys) => RightRowsSource::Points(with_salt(layout, keys).into_iter()),
            PathKeys::Ranges(ranges) => {
                let ranges = with_salts(layout, ranges);
                RightRowsSource::Ranges(Box::new(RangeReader::new(
                    &self.table,
                    ranges,
                    &self.options,
                )))
            }
        };
        let right = RightRows {
            scan: Arc::clone(&self.scan),
            context: Arc::clone(&self.context),
            table: Arc::clone(&self.table),
            stage: Arc::clone(&self.stage),
            options: self.options.clone(),
            source,
            rows: PathRows::default(),
        };
        Ok(instrument(self.node.right.address(), Box::new(right), &self.context))
    }
}

impl PipelineStage for RightLookup {
    fn begin(self: Arc<Self>, batch: Batch, _: &Arc<Context>) -> Result<StageOutput> {
        Ok(StageOutput::Batches(Box::new(LookupBatch::of(batch, &self))))
    }
}

impl LookupBatch {
    fn of(left: Batch, lookup: &Arc<RightLookup>) -> LookupBatch {
        LookupBatch { lookup: Arc::clone(lookup), left, next: 0, pairs: None }
    }

    /// Advances to the next left rows whose right rows fit into the buffer, or to one row;
    /// `false` at the end.
    fn advance(&mut self) -> Result<bool> {
        let left = self.left.row_count - self.next;
        let known = &self.lookup.left_rows;
        let mut count = left.min(known.load(Relaxed));
        while count > 0 {
            let batch = match count == self.left.row_count {
                true => self.left.clone(),
                false => {
                    let rows = self.next as u32..(self.next + count) as u32;
                    self.left.take(&rows.collect::<Vec<u32>>())
                }
            };
            let mut pairs = self.lookup.turn_to(batch.clone())?;
            if pairs.read_right(Some(RIGHT_BYTES))? {
                if count < BATCH_ROWS && pairs.right_bytes() < RIGHT_BYTES / 4 {
                    known.store((2 * count).max(known.load(Relaxed)).min(BATCH_ROWS), Relaxed);
                }
                self.pairs = Some(Box::new(pairs));
                break;
            }
            if count == 1 {
                let row = LookupRow::of(batch, pairs, &self.lookup.context);
                self.pairs = Some(Box::new(row));
                break;
            }
            count = count.div_ceil(2);
            known.store(count, Relaxed);
        }
        self.next += count;
        Ok(count > 0)
    }
}

impl Operator for LookupBatch {
    fn next(&mut self) -> Result<Option<Batch>> {
        loop {
            if let Some(pairs) = &mut self.pairs {
                if let Some(batch) = pairs.next()? {
                    return Ok(Some(batch));
                }
                self.pairs = None;
            }
            if !self.advance()? {
                return Ok(None);
            }
        }
    }
}

impl LookupRow {
    /// Continues a join of one left row whose right rows filled the buffer.
    fn of(left: Batch, pairs: RunningJoin<JoinHashTable>, context: &Arc<Context>) -> LookupRow {
        let (_, mut side, right) = pairs.into_parts();
        let first = Some(side.take_rows().into_batch());
        let (pieces, context) = (BlockProbe::of(side, left), Arc::clone(context));
        LookupRow { pieces, first, right, is_done: false, context }
    }
}

impl Operator for LookupRow {
    fn next(&mut self) -> Result<Option<Batch>> {
        while !self.is_done {
            if let Some(batch) = self.pieces.next(&mut [], &self.context)? {
                return Ok(Some(batch));
            }
            let piece = match self.first.take() {
                _ if self.pieces.is_decided() => None,
                None => self.right.next()?,
                first => first,
            };
            let Some(piece) = piece else {
                self.is_done = true;
                return Ok(self.pieces.rest());
            };
            self.pieces.turn_to_right(&piece, &self.context)?;
        }
        Ok(None)
    }
}

impl Operator for LookupJoin {
    /// The pairs of a batch are produced in one go, which is too much with ranges.
    fn takes_stages(&self) -> bool {
        self.lookup.node.range.is_none() && self.left.takes_stages()
    }

    fn attach(&mut self, stage: &Arc<dyn PipelineStage>) -> Result<bool> {
        if self.lookup.node.range.is_some() {
            return Ok(false);
        }
        self.was_begun = true;
        self.left.attach(|| LookupJoin::own_stage(&self.lookup), stage)
    }

    fn rewind(&mut self) -> Result<bool> {
        self.pairs = None;
        self.halves.clear();
        self.left.rewind()
    }

    fn next(&mut self) -> Result<Option<Batch>> {
        if !std::mem::replace(&mut self.was_begun, true) && self.lookup.node.range.is_none() {
            self.left.attach_own(|| LookupJoin::own_stage(&self.lookup))?;
        }
        if self.left.is_attached() {
            return self.left.next();
        }
        loop {
            if let Some(pairs) = &mut self.pairs {
                if let Some(batch) = pairs.next()? {
                    return Ok(Some(batch));
                }
                self.pairs = None;
            }
            self.pairs = self.next_pairs()?;
            if self.pairs.is_none() {
                return Ok(None);
            }
        }
    }
}

/// One left row with right rows that are not buffered.
struct OneLeftRow {
    lookup: Arc<RightLookup>,
    left: Batch,
    right: Box<dyn Operator>,
    state: OneRowState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OneRowState {
    Unmatched,
    Matched,
    Ended,
}

impl OneLeftRow {
    /// Returns the pairs with some right rows, if there are any.
    fn pairs_with(&self, kind: JoinKind, right: Option<Batch>) -> Result<Option<Batch>> {
        let RightLookup { context, node, .. } = &*self.lookup;
        let right = Box::new(OneBatch(right));
        let parts = self.lookup.parts(kind, self.left.clone(), right, self.lookup.key_index());
        let mut pairs = RunningJoin::new(parts, context);
        let types: Vec<DataType> =
            node.left_types.iter().chain(&node.right_types).cloned().collect();
        let mut all = ColumnRows::new(&types);
        while let Some(batch) = pairs.next()? {
            all.add(&batch);
        }
        Ok((all.row_count > 0).then(|| all.into_batch()))
    }
}

impl Operator for OneLeftRow {
    fn next(&mut self) -> Result<Option<Batch>> {
        let kind = self.lookup.node.kind;
        while self.state != OneRowState::Ended {
            self.lookup.context.check()?;
            let right = self.right.next()?;
            let is_last = right.is_none();
            let pairs = match right {
                Some(right) => self.pairs_with(JoinKind::Inner, Some(right))?,
                None => None,
            };
            if pairs.is_some() {
                self.state = OneRowState::Matched;
            }
            let is_matched = self.state == OneRowState::Matched;
            let is_decided = is_matched && matches!(kind, JoinKind::Semi | JoinKind::Anti);
            if is_last || is_decided {
                self.state = OneRowState::Ended;
            }
            match kind {
                JoinKind::Semi if is_matched => return Ok(Some(self.left.clone())),
                JoinKind::Anti if is_last && !is_matched => return Ok(Some(self.left.clone())),
                JoinKind::Left if is_last && !is_matched => {
                    return self.pairs_with(JoinKind::Left, None);
                }
                JoinKind::Semi | JoinKind::Anti => {}
                _ if pairs.is_some() => return Ok(pairs),
                _ => {}
            }
        }
        Ok(None)
    }
}

/// Operator that returns one batch.
pub(super) struct OneBatch(pub(super) Option<Batch>);

impl Operator for OneBatch {
    fn next(&mut self) -> Result<Option<Batch>> {
        Ok(self.0.take())
    }
}

enum RightRowsSource {
    Points(std::vec::IntoIter<Vec<u8>>),
    Ranges(Box<RangeReader>),
}

/// Right rows of a left batch.
struct RightRows {
    scan: Arc<ScanNode>,
    context: Arc<Context>,
    table: Arc<TableReader>,
    stage: Arc<RowStage>,
    options: RowOptions,
    source: RightRowsSource,
    rows: PathRows,
}

impl RightRows {
    /// Reads the next rows; returns whether there are any.
    fn read(&mut self) -> Result<bool> {
        let rows = &mut self.rows.stored;
        rows.clear();
        match &mut self.source {
            RightRowsSource::Points(keys) => {
                read_points(keys, &self.table, BATCH_ROWS, &self.options, rows)
            }
            RightRowsSource::Ranges(ranges) => ranges.next(BATCH_ROWS, rows),
        }
    }

    fn next_batch(&mut self) -> Result<Option<Batch>> {
        loop {
            self.context.check()?;
            if !self.rows.has_more() && !self.read()? {
                return Ok(None);
            }
            if let Some(wanted) = self.stage.process(&mut self.rows)? {
                return Ok(Some(self.stage.output(&wanted.batch)));
            }
        }
    }
}

impl Operator for RightRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        let batch = self.next_batch();
        let versions = self.options.versions;
        batch.map_err(|error| {
            time_travel::with_history_begin(error, (&self.scan, versions), &self.context)
        })
    }
}
