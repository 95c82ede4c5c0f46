//! Join core shared by hash, loop and index nested-loop joins: pairs of left rows and right
//! candidates.
//!
//! The right side is in memory. For each left batch, the pairs of rows and candidates are
//! produced a batch at a time, filtered by the remaining join condition, and returned; match
//! flags of rows are maintained if the join type needs them. The result has the order of the left
//! rows; right rows without a match come last.

use std::sync::Arc;

use types::expr::Expr;
use types::vector::{BATCH_BYTES, BATCH_ROWS, RowSizes};
use types::{Batch, DataType, Vector};

use crate::error::{Error, Result};
use crate::exec::stage::{PipelineStage, StageOutput};
use crate::exec::{Context, Operator, memory};
use crate::logical::JoinKind;

/// Candidate look-up: the right rows that may match a left row.
pub(super) trait JoinCandidates: Send + Sync {
    /// Look-up state of a left batch.
    type LeftProbe: Send;

    /// Removes all right rows.
    fn clear(&mut self);
    /// Adds right rows; their numbers continue those before.
    fn add(&mut self, batch: &Batch, context: &Context) -> Result<()>;
    /// Prepares the look-up for a left batch.
    fn probe(&self, batch: &Batch, context: &Context) -> Result<Self::LeftProbe>;
    /// Returns the first candidate of a row of the batch.
    fn first(&self, probe: &Self::LeftProbe, left_row: usize) -> Option<u32>;
    /// Returns the next candidate of a row of the batch.
    fn after(&self, probe: &Self::LeftProbe, left_row: usize, candidate: u32) -> Option<u32>;
    /// Returns the right row of a candidate.
    fn row(&self, candidate: u32) -> u32 {
        candidate
    }
    /// Returns the size in bytes.
    fn byte_count(&self) -> usize;
}

/// All rows of an input, stored by column.
pub(super) struct ColumnRows {
    pub(super) columns: Vec<Vector>,
    pub(super) row_count: usize,
    /// Bytes of values outside of the columns.
    heap_bytes: usize,
}

impl ColumnRows {
    pub(super) fn new(types: &[DataType]) -> ColumnRows {
        let columns = types.iter().map(|data_type| Vector::new(data_type, 0)).collect();
        ColumnRows { columns, row_count: 0, heap_bytes: 0 }
    }

    pub(super) fn add(&mut self, batch: &Batch) {
        debug_assert_eq!(self.columns.len(), batch.columns.len(), "columns of collected rows");
        for (all, one) in self.columns.iter_mut().zip(&batch.columns) {
            all.append(one);
            self.heap_bytes += heap_bytes(one);
        }
        self.row_count += batch.row_count;
    }

    pub(super) fn byte_count(&self) -> usize {
        self.columns.iter().map(Vector::flat_byte_count).sum::<usize>() + self.heap_bytes
    }

    /// Returns some of the rows, in this order.
    pub(super) fn batch(&self, rows: &[u32]) -> Batch {
        Batch { columns: self.take(rows).collect(), row_count: rows.len() }
    }

    /// Returns the row sizes, each row taken once.
    pub(super) fn sizes(&self) -> RowSizes<'_> {
        RowSizes::of(&self.columns)
    }

    /// Returns all rows.
    pub(super) fn into_batch(self) -> Batch {
        let columns = self.columns.into_iter().map(Arc::new).collect();
        Batch { columns, row_count: self.row_count }
    }

    /// Retains only these rows, in this order.
    pub(super) fn keep(&mut self, rows: &[u32]) {
        self.columns.iter_mut().for_each(|column| *column = column.take(rows));
        self.heap_bytes = self.columns.iter().map(heap_bytes).sum();
        self.row_count = rows.len();
    }

    fn take(&self, rows: &[u32]) -> impl Iterator<Item = Arc<Vector>> {
        self.columns.iter().map(|column| Arc::new(column.take(rows)))
    }
}

fn heap_bytes(column: &Vector) -> usize {
    column.byte_count() - column.flat_byte_count()
}

/// Inputs and condition of a join.
pub(super) struct JoinParts<C> {
    pub(super) kind: JoinKind,
    pub(super) left: Box<dyn Operator>,
    pub(super) right: Box<dyn Operator>,
    pub(super) candidates: C,
    /// Remaining join condition, over left columns followed by right columns.
    pub(super) on: Option<Expr>,
    pub(super) left_types: Vec<DataType>,
    pub(super) right_types: Vec<DataType>,
}

/// Right rows of a join, with the join condition.
pub(super) struct BuildSide<C> {
    kind: JoinKind,
    candidates: C,
    on: Option<Expr>,
    left_types: Vec<DataType>,
    right_types: Vec<DataType>,
    rows: ColumnRows,
}

/// A running join.
pub(super) struct RunningJoin<C: JoinCandidates> {
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    /// Right side, as far as it was read.
    side: BuildSide<C>,
    context: Arc<Context>,
    /// True once the right side was read completely.
    has_right: bool,
    /// Match flags of the right rows, if the join type needs them.
    right_matched: Vec<bool>,
    /// Number of right rows checked for the final pass of unmatched rows.
    right_done: usize,
    probe: Option<Probe<C>>,
}

/// Outcome of moving a join to the threads of its left side.
pub(super) enum ProbePushdown<C: JoinCandidates> {
    /// Left side, which now returns the pairs.
    Left(Box<dyn Operator>),
    /// The join, unchanged.
    Kept(Box<RunningJoin<C>>),
}

/// Current left batch.
pub(super) struct Probe<C: JoinCandidates> {
    batch: Batch,
    found: C::LeftProbe,
    matched: Vec<bool>,
    row: usize,
    /// Next candidate of `row`.
    candidate: Option<u32>,
    /// Number of rows that were returned, as pairs or padded with NULLs.
    yielded: usize,
}

/// Matching pairs, in the order of the left rows.
struct MatchedPairs {
    batch: Batch,
    /// Left row of each pair.
    left: Vec<u32>,
}

impl<C: JoinCandidates> BuildSide<C> {
    /// Starts the join of a left batch.
    pub(super) fn start_batch(&self, batch: Batch, context: &Context) -> Result<Probe<C>> {
        debug_assert!(batch.row_count > 0, "a left batch without rows");
        let found = self.candidates.probe(&batch, context)?;
        Ok(Probe {
            matched: vec![false; batch.row_count],
            row: 0,
            candidate: self.candidates.first(&found, 0),
            found,
            batch,
            yielded: 0,
        })
    }

    /// Returns the next rows for the current left batch; clears `probe` at its end.
    pub(super) fn next_of(
        &self,
        probe: &mut Option<Probe<C>>,
        right_matched: &mut [bool],
        context: &Context,
    ) -> Result<Option<Batch>> {
        while let Some(at_hand) = probe {
            context.check()?;
            let (left, right) = self.pairs(at_hand);
            let is_last = left.is_empty();
            let pairs = match is_last {
                true => None,
                false => self.check(at_hand, (left, &right), right_matched, context)?,
            };
            let batch = match self.kind {
                JoinKind::Left | JoinKind::Full => self.with_unmatched(at_hand, pairs),
                JoinKind::Semi | JoinKind::Anti if is_last => self.decided(at_hand),
                _ => pairs.map(|pairs| pairs.batch),
            };
            if is_last {
                *probe = None;
            }
            if batch.is_some() {
                return Ok(batch);
            }
        }
        Ok(None)
    }

    /// Produces the next candidate pairs of a batch.
    fn pairs(&self, probe: &mut Probe<C>) -> (Vec<u32>, Vec<u32>) {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        // For semi and anti joins, one match decides.
        let once = matches!(self.kind, JoinKind::Semi | JoinKind::Anti);
        let unconditional = once && self.on.is_none();
        let left_sizes = RowSizes::repeated(&probe.batch.columns);
        let right_sizes = RowSizes::repeated(&self.rows.columns);
        let mut bytes = 0;
        while left.len() < BATCH_ROWS && bytes < BATCH_BYTES && probe.row < probe.batch.row_count {
            match probe.candidate.filter(|_| !(once && probe.matched[probe.row])) {
                Some(candidate) => {
                    let right_row = self.candidates.row(candidate);
                    bytes += left_sizes.byte_count(probe.row);
                    bytes += right_sizes.byte_count(right_row as usize);
                    left.push(probe.row as u32);
                    right.push(right_row);
                    probe.candidate = match unconditional {
                        true => None,
                        false => self.candidates.after(&probe.found, probe.row, candidate),
                    };
                }
                None => {
                    probe.row += 1;
                    if probe.row < probe.batch.row_count {
                        probe.candidate = self.candidates.first(&probe.found, probe.row);
                    }
                }
            }
        }
        (left, right)
    }

    /// Filters candidate pairs by the condition; returns the matching ones, if the join returns
    /// pairs.
    fn check(
        &self,
        probe: &mut Probe<C>,
        (left, right): (Vec<u32>, &[u32]),
        right_matched: &mut [bool],
        context: &Context,
    ) -> Result<Option<MatchedPairs>> {
        let yields = !matches!(self.kind, JoinKind::Semi | JoinKind::Anti);
        if !yields && self.on.is_none() {
            left.iter().for_each(|&row| probe.matched[row as usize] = true);
            return Ok(None);
        }
        // Rows of a large table often have exactly one match in a small referenced table.
        let each_once = left.len() == probe.batch.row_count
            && (0u32..).zip(&left).all(|(row, left)| row == *left);
        let columns = probe.batch.columns.iter().map(|column| match each_once {
            true => Arc::clone(column),
            false => Arc::new(column.take(&left)),
        });
        let columns = columns.chain(self.rows.take(right)).collect();
        let mut pairs = Batch { columns, row_count: left.len() };
        let selection = match &self.on {
            None => None,
            Some(on) => Some(on.filter_batch(&pairs, &context.eval)?),
        };
        let mut mark = |pair: usize| {
            probe.matched[left[pair] as usize] = true;
            if let Some(matched) = right_matched.get_mut(right[pair] as usize) {
                *matched = true;
            }
        };
        match &selection {
            _ if self.kind == JoinKind::Inner => {}
            None => (0..left.len()).for_each(&mut mark),
            Some(selection) => selection.iter().for_each(|&pair| mark(pair as usize)),
        }
        let mut left = left;
        if let Some(selection) = selection
            && yields
            && selection.len() < pairs.row_count
        {
            pairs = pairs.take(&selection);
            left = selection.iter().map(|&pair| left[pair as usize]).collect();
        }
        let is_some = yields && pairs.row_count > 0;
        Ok(is_some.then_some(MatchedPairs { batch: pairs, left }))
    }

    /// Returns pairs merged with the left rows, padded with NULLs, that turned out to have no
    /// match.
    fn with_unmatched(&self, probe: &mut Probe<C>, pairs: Option<MatchedPairs>) -> Option<Batch> {
        debug_assert!(probe.yielded <= probe.row, "left rows are returned twice");
        let decided = std::mem::replace(&mut probe.yielded, probe.row)..probe.row;
        let is_unmatched = |row: &u32| !probe.matched[*row as usize];
        let unmatched: Vec<u32> =
            (decided.start as u32..decided.end as u32).filter(is_unmatched).collect();
        if unmatched.is_empty() {
            return pairs.map(|pairs| pairs.batch);
        }
        let mut padded = probe.batch.take(&unmatched);
        padded.columns.extend(nulls(&self.right_types, unmatched.len()));
        let Some(MatchedPairs { batch, left }) = pairs else { return Some(padded) };
        let mut order: Vec<u32> = (0..(left.len() + unmatched.len()) as u32).collect();
        let rows = [left, unmatched].concat();
        order.sort_by_key(|&position| rows[position as usize]);
        let types: Vec<DataType> =
            self.left_types.iter().chain(&self.right_types).cloned().collect();
        let mut all = ColumnRows::new(&types);
        all.add(&batch);
        all.add(&padded);
        Some(all.batch(&order))
    }

    /// Returns the left rows of a completely processed batch that a semi or anti join returns.
    fn decided(&self, probe: &Probe<C>) -> Option<Batch> {
        let wanted = self.kind == JoinKind::Semi;
        let rows = (0u32..).zip(&probe.matched);
        let rows: Vec<u32> =
            rows.filter(|(_, matched)| **matched == wanted).map(|(row, _)| row).collect();
        (!rows.is_empty()).then(|| probe.batch.take(&rows))
    }

    /// Returns whether the join returns right rows without a match.
    pub(super) fn yields_right(&self) -> bool {
        matches!(self.kind, JoinKind::Right | JoinKind::Full)
    }
}

impl<C: JoinCandidates> RunningJoin<C> {
    pub(super) fn new(parts: JoinParts<C>, context: &Arc<Context>) -> RunningJoin<C> {
        RunningJoin {
            left: parts.left,
            right: parts.right,
            side: BuildSide {
                kind: parts.kind,
                candidates: parts.candidates,
                on: parts.on,
                rows: ColumnRows::new(&parts.right_types),
                left_types: parts.left_types,
                right_types: parts.right_types,
            },
            has_right: false,
            context: Arc::clone(context),
            right_matched: Vec::new(),
            right_done: 0,
            probe: None,
        }
    }

    /// Reads the right side, once. Returns `false` if it exceeds `bytes_max`: the join can then
    /// only be continued from its parts. `None`: fails beyond the memory limit of an operator.
    pub(super) fn read_right(&mut self, bytes_max: Option<usize>) -> Result<bool> {
        let side = &mut self.side;
        while !self.has_right {
            self.context.check()?;
            let Some(batch) = self.right.next()? else {
                if side.yields_right() {
                    self.right_matched = vec![false; side.rows.row_count];
                }
                self.has_right = true;
                break;
            };
            side.candidates.add(&batch, &self.context)?;
            side.rows.add(&batch);
            let bytes = side.rows.byte_count() + side.candidates.byte_count();
            match bytes_max {
                Some(bytes_max) if bytes > bytes_max => return Ok(false),
                Some(_) => {}
                None => memory::check(bytes, self.context.work_mem())?,
            }
        }
        Ok(true)
    }

    /// Returns the number of right rows that were read.
    pub(super) fn right_row_count(&self) -> usize {
        self.side.rows.row_count
    }

    /// Returns the size in bytes of the right side, as far as it was read.
    pub(super) fn right_bytes(&self) -> usize {
        self.side.rows.byte_count() + self.side.candidates.byte_count()
    }

    /// Returns whether the left side takes stages.
    pub(super) fn left_takes_stages(&self) -> bool {
        self.left.takes_stages()
    }

    /// Restarts with the left side, and the right side unchanged; see [`Operator::rewind`].
    pub(super) fn rewind(&mut self) -> Result<bool> {
        self.probe = None;
        Ok(BuildSide::<C>::is_by_left_rows(self.side.kind) && self.left.rewind()?)
    }

    /// Moves the probe of the right rows, which were read, to the threads of the left side. The
    /// left side may decline: a join in it whose right side does not fit into memory.
    pub(super) fn push_probe_down(self, context: &Arc<Context>) -> Result<ProbePushdown<C>>
    where
        C: 'static,
    {
        let (mut left, side, right) = self.into_parts();
        let side = Arc::new(side);
        let stage: Arc<dyn PipelineStage> = Arc::clone(&side) as Arc<dyn PipelineStage>;
        if left.attach(&stage)? {
            return Ok(ProbePushdown::Left(left));
        }
        drop(stage);
        let Some(side) = Arc::into_inner(side) else {
            bail!(INTERNAL_ERROR: "a step keeps a stage it declined");
        };
        let context = Arc::clone(context);
        let (right_matched, right_done, probe) = (Vec::new(), 0, None);
        let join = RunningJoin {
            left,
            right,
            side,
            context,
            has_right: true,
            right_matched,
            right_done,
            probe,
        };
        Ok(ProbePushdown::Kept(Box::new(join)))
    }

    /// Returns the parts of a join that has returned nothing: its left side, the right rows that
    /// were read, and the rest of the right side.
    pub(super) fn into_parts(self) -> (Box<dyn Operator>, BuildSide<C>, Box<dyn Operator>) {
        (self.left, self.side, self.right)
    }

    /// Returns the next right rows without a match, padded with NULLs.
    fn unmatched_right(&mut self) -> Option<Batch> {
        if !self.side.yields_right() {
            return None;
        }
        let right = &self.side.rows;
        let (sizes, mut bytes, mut rows) = (RowSizes::repeated(&right.columns), 0, Vec::new());
        while rows.len() < BATCH_ROWS && bytes < BATCH_BYTES && self.right_done < right.row_count {
            if !self.right_matched[self.right_done] {
                bytes += sizes.byte_count(self.right_done);
                rows.push(self.right_done as u32);
            }
            self.right_done += 1;
        }
        if rows.is_empty() {
            return None;
        }
        let columns = nulls(&self.side.left_types, rows.len()).chain(right.take(&rows)).collect();
        Some(Batch { columns, row_count: rows.len() })
    }
}

/// Returns columns of NULLs.
fn nulls(types: &[DataType], row_count: usize) -> impl Iterator<Item = Arc<Vector>> {
    types.iter().map(move |data_type| {
        let mut vector = Vector::new(data_type, row_count);
        (0..row_count).for_each(|_| vector.push_null());
        Arc::new(vector)
    })
}

impl<C: JoinCandidates> Operator for RunningJoin<C> {
    fn next(&mut self) -> Result<Option<Batch>> {
        self.read_right(None)?;
        loop {
            let batch =
                self.side.next_of(&mut self.probe, &mut self.right_matched, &self.context)?;
            if batch.is_some() {
                return Ok(batch);
            }
            let Some(batch) = self.left.next()? else { return Ok(self.unmatched_right()) };
            self.probe = Some(self.side.start_batch(batch, &self.context)?);
        }
    }
}

impl<C> BuildSide<C> {
    /// Returns the types of the right columns.
    pub(super) fn right_types(&self) -> &[DataType] {
        &self.right_types
    }

    /// Takes the rows.
    pub(super) fn take_rows(&mut self) -> ColumnRows {
        std::mem::replace(&mut self.rows, ColumnRows::new(&self.right_types))
    }

    /// Returns whether every result row stems from a left row.
    pub(super) fn is_by_left_rows(kind: JoinKind) -> bool {
        !matches!(kind, JoinKind::Right | JoinKind::Full)
    }
}

/// Join of a left batch with right rows that come in blocks, one of which is in memory at a time.
pub(super) struct BlockProbe<C: JoinCandidates> {
    /// Current right block.
    side: BuildSide<C>,
    left: Batch,
    /// Match flags of the left rows, from the blocks before.
    matched: Vec<bool>,
    /// Probe of the current block.
    probe: Option<Probe<C>>,
}

impl<C: JoinCandidates> BlockProbe<C> {
    /// Returns the join of a left batch, without right rows. The rows in `side` are ignored.
    pub(super) fn of(side: BuildSide<C>, left: Batch) -> BlockProbe<C> {
        BlockProbe { side, matched: vec![false; left.row_count], left, probe: None }
    }

    /// Starts another left batch.
    pub(super) fn turn_to_left(&mut self, left: Batch) {
        self.matched = vec![false; left.row_count];
        (self.left, self.probe) = (left, None);
    }

    /// Replaces the right block.
    pub(super) fn turn_to_right(&mut self, piece: &Batch, context: &Context) -> Result<()> {
        self.side.take_rows();
        self.side.candidates.clear();
        self.side.candidates.add(piece, context)?;
        self.side.rows.add(piece);
        let probe = self.side.start_batch(self.left.clone(), context)?;
        self.probe = Some(Probe { matched: std::mem::take(&mut self.matched), ..probe });
        Ok(())
    }

    /// Returns the next matching pairs, if the join returns pairs.
    pub(super) fn next(
        &mut self,
        right_matched: &mut [bool],
        context: &Context,
    ) -> Result<Option<Batch>> {
        while let Some(probe) = &mut self.probe {
            context.check()?;
            let (left, right) = self.side.pairs(probe);
            if left.is_empty() {
                self.matched = std::mem::take(&mut probe.matched);
                self.probe = None;
                break;
            }
            let pairs = self.side.check(probe, (left, &right), right_matched, context)?;
            if let Some(pairs) = pairs {
                return Ok(Some(pairs.batch));
            }
        }
        Ok(None)
    }

    /// Returns whether the result for the left batch no longer depends on further right rows.
    pub(super) fn is_decided(&self) -> bool {
        let once = matches!(self.side.kind, JoinKind::Semi | JoinKind::Anti);
        once && self.probe.is_none() && self.matched.iter().all(|matched| *matched)
    }

    /// Returns the left rows to be returned besides pairs, after the last block.
    pub(super) fn rest(&self) -> Option<Batch> {
        let (wanted, kind) = (self.side.kind == JoinKind::Semi, self.side.kind);
        if matches!(kind, JoinKind::Inner | JoinKind::Right) {
            return None;
        }
        let rows = (0u32..).zip(&self.matched);
        let rows: Vec<u32> =
            rows.filter(|(_, matched)| **matched == wanted).map(|(row, _)| row).collect();
        let mut rest = self.left.take(&rows);
        if matches!(kind, JoinKind::Left | JoinKind::Full) {
            rest.columns.extend(nulls(&self.side.right_types, rows.len()));
        }
        (!rows.is_empty()).then_some(rest)
    }

    /// Returns right rows with NULLs for the left columns.
    pub(super) fn padded_left(&self, right: &Batch) -> Batch {
        let columns = nulls(&self.side.left_types, right.row_count);
        let columns = columns.chain(right.columns.iter().cloned()).collect();
        Batch { columns, row_count: right.row_count }
    }
}

/// A left batch that is probed by the thread that has produced it.
struct ProbedBatch<C: JoinCandidates> {
    side: Arc<BuildSide<C>>,
    probe: Option<Probe<C>>,
    context: Arc<Context>,
}

impl<C: JoinCandidates + 'static> PipelineStage for BuildSide<C> {
    fn begin(self: Arc<Self>, batch: Batch, context: &Arc<Context>) -> Result<StageOutput> {
        let probe = Some(self.start_batch(batch, context)?);
        let context = Arc::clone(context);
        Ok(StageOutput::Batches(Box::new(ProbedBatch { side: self, probe, context })))
    }
}

impl<C: JoinCandidates> Operator for ProbedBatch<C> {
    fn next(&mut self) -> Result<Option<Batch>> {
        self.side.next_of(&mut self.probe, &mut [], &self.context)
    }
}
