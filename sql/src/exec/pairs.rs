//! What hash and loop joins share: pairing rows of the left side with candidates of the right.
//!
//! The right side is kept in memory. For each left batch the pairs of a row and its candidates are
//! made a batch at a time, checked against what must hold besides, and yielded; which rows found a
//! match is remembered as far as the kind of join asks for it.

use std::sync::Arc;

use types::expr::Expr;
use types::vector::BATCH_ROWS;
use types::{Batch, DataType, Vector};

use crate::error::Result;
use crate::exec::{Context, Operator, memory};
use crate::logical::JoinKind;

/// Which right rows may match a left row.
pub(super) trait Candidates: Send {
    /// Adds right rows, which are numbered on.
    fn add(&mut self, batch: &Batch, context: &Context) -> Result<()>;
    /// Turns to a left batch.
    fn probe(&mut self, batch: &Batch, context: &Context) -> Result<()>;
    /// Returns the first candidate of a row of that batch.
    fn first(&self, left_row: usize) -> Option<u32>;
    /// Returns the candidate after `right_row`.
    fn after(&self, right_row: u32) -> Option<u32>;
    /// Returns the bytes held.
    fn byte_count(&self) -> usize;
}

/// All rows of an input, column by column.
pub(super) struct Collected {
    pub(super) columns: Vec<Vector>,
    pub(super) row_count: usize,
}

impl Collected {
    pub(super) fn new(types: &[DataType]) -> Collected {
        let columns = types.iter().map(|&data_type| Vector::new(data_type, 0)).collect();
        Collected { columns, row_count: 0 }
    }

    pub(super) fn add(&mut self, batch: &Batch) {
        self.columns.iter_mut().zip(&batch.columns).for_each(|(all, one)| all.append(one));
        self.row_count += batch.row_count;
    }

    pub(super) fn byte_count(&self) -> usize {
        self.columns.iter().map(Vector::byte_count).sum()
    }

    /// Returns some of the rows, in this order.
    pub(super) fn batch(&self, rows: &[u32]) -> Batch {
        Batch { columns: self.take(rows).collect(), row_count: rows.len() }
    }

    /// Returns all rows.
    pub(super) fn into_batch(self) -> Batch {
        let columns = self.columns.into_iter().map(Arc::new).collect();
        Batch { columns, row_count: self.row_count }
    }

    /// Keeps some of the rows, in this order.
    pub(super) fn keep(&mut self, rows: &[u32]) {
        self.columns.iter_mut().for_each(|column| *column = column.take(rows));
        self.row_count = rows.len();
    }

    fn take(&self, rows: &[u32]) -> impl Iterator<Item = Arc<Vector>> {
        self.columns.iter().map(|column| Arc::new(column.take(rows)))
    }
}

/// What a join is made of.
pub(super) struct JoinParts<C> {
    pub(super) kind: JoinKind,
    pub(super) left: Box<dyn Operator>,
    pub(super) right: Box<dyn Operator>,
    pub(super) candidates: C,
    /// Must hold, over left columns followed by right columns.
    pub(super) on: Option<Expr>,
    pub(super) left_types: Vec<DataType>,
    pub(super) right_types: Vec<DataType>,
}

/// A running join.
pub(super) struct PairJoin<C> {
    parts: JoinParts<C>,
    context: Arc<Context>,
    /// The right side, as far as it was read.
    right: Collected,
    /// Whether that is all.
    has_right: bool,
    right_matched: Vec<bool>,
    /// Right rows up to here were yielded without a match.
    right_done: usize,
    probe: Option<Probe>,
}

/// The left batch at hand.
struct Probe {
    batch: Batch,
    matched: Vec<bool>,
    row: usize,
    /// The next candidate of `row`.
    candidate: Option<u32>,
}

impl<C: Candidates> PairJoin<C> {
    pub(super) fn new(parts: JoinParts<C>, context: &Arc<Context>) -> PairJoin<C> {
        PairJoin {
            right: Collected::new(&parts.right_types),
            has_right: false,
            parts,
            context: Arc::clone(context),
            right_matched: Vec::new(),
            right_done: 0,
            probe: None,
        }
    }

    /// Reads the right side, once. Returns whether it fits into so many bytes: if not, the join can
    /// only be taken apart. `None`: past what a statement may keep at all, it fails.
    pub(super) fn read_right(&mut self, bytes_max: Option<usize>) -> Result<bool> {
        while !self.has_right {
            self.context.check()?;
            let Some(batch) = self.parts.right.next()? else {
                self.right_matched = vec![false; self.right.row_count];
                self.has_right = true;
                break;
            };
            self.parts.candidates.add(&batch, &self.context)?;
            self.right.add(&batch);
            let bytes = self.right.byte_count() + self.parts.candidates.byte_count();
            match bytes_max {
                Some(bytes_max) if bytes > bytes_max => return Ok(false),
                Some(_) => {}
                None => memory::check(bytes, self.context.work_mem)?,
            }
        }
        Ok(true)
    }

    /// Takes the join apart: what is left of its sides, and what was read of the right one.
    pub(super) fn into_parts(self) -> (JoinParts<C>, Collected) {
        (self.parts, self.right)
    }

    /// Makes the next pairs of the batch at hand.
    fn pairs(&mut self) -> (Vec<u32>, Vec<u32>) {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let Some(probe) = &mut self.probe else { return (left, right) };
        // One match is enough for these.
        let once = matches!(self.parts.kind, JoinKind::Semi | JoinKind::Anti);
        let unconditional = once && self.parts.on.is_none();
        while left.len() < BATCH_ROWS && probe.row < probe.batch.row_count {
            match probe.candidate.filter(|_| !(once && probe.matched[probe.row])) {
                Some(candidate) => {
                    left.push(probe.row as u32);
                    right.push(candidate);
                    probe.candidate = match unconditional {
                        true => None,
                        false => self.parts.candidates.after(candidate),
                    };
                }
                None => {
                    probe.row += 1;
                    if probe.row < probe.batch.row_count {
                        probe.candidate = self.parts.candidates.first(probe.row);
                    }
                }
            }
        }
        (left, right)
    }

    /// Checks pairs; returns those that match, if the join yields pairs.
    fn check(&mut self, left: &[u32], right: &[u32]) -> Result<Option<Batch>> {
        let Some(probe) = &mut self.probe else { return Ok(None) };
        let yields = !matches!(self.parts.kind, JoinKind::Semi | JoinKind::Anti);
        if !yields && self.parts.on.is_none() {
            left.iter().for_each(|&row| probe.matched[row as usize] = true);
            return Ok(None);
        }
        // A row of a large table often has just one match, in the small one that it refers to.
        let each_once = left.len() == probe.batch.row_count
            && (0u32..).zip(left).all(|(row, left)| row == *left);
        let columns = probe.batch.columns.iter().map(|column| match each_once {
            true => Arc::clone(column),
            false => Arc::new(column.take(left)),
        });
        let columns = columns.chain(self.right.take(right)).collect();
        let mut pairs = Batch { columns, row_count: left.len() };
        let selection = match &self.parts.on {
            None => None,
            Some(on) => Some(on.filter_batch(&pairs, &self.context.eval)?),
        };
        let mut mark = |pair: usize| {
            probe.matched[left[pair] as usize] = true;
            self.right_matched[right[pair] as usize] = true;
        };
        match &selection {
            None => (0..left.len()).for_each(&mut mark),
            Some(selection) => selection.iter().for_each(|&pair| mark(pair as usize)),
        }
        if let Some(selection) = selection
            && yields
            && selection.len() < pairs.row_count
        {
            pairs = pairs.take(&selection);
        }
        Ok((yields && pairs.row_count > 0).then_some(pairs))
    }

    /// What the left batch yields when all its pairs were made.
    fn finish_probe(&mut self) -> Option<Batch> {
        let probe = self.probe.take()?;
        let wanted = match self.parts.kind {
            JoinKind::Inner | JoinKind::Right => return None,
            JoinKind::Semi => true,
            JoinKind::Left | JoinKind::Full | JoinKind::Anti => false,
        };
        let rows = (0u32..).zip(&probe.matched);
        let rows: Vec<u32> =
            rows.filter(|(_, matched)| **matched == wanted).map(|(row, _)| row).collect();
        if rows.is_empty() {
            return None;
        }
        let mut batch = probe.batch.take(&rows);
        if matches!(self.parts.kind, JoinKind::Left | JoinKind::Full) {
            batch.columns.extend(nulls(&self.parts.right_types, rows.len()));
        }
        Some(batch)
    }

    /// Right rows without a match, padded with NULLs.
    fn unmatched_right(&mut self) -> Option<Batch> {
        let right = &self.right;
        if !matches!(self.parts.kind, JoinKind::Right | JoinKind::Full) {
            return None;
        }
        let mut rows = Vec::new();
        while rows.len() < BATCH_ROWS && self.right_done < right.row_count {
            if !self.right_matched[self.right_done] {
                rows.push(self.right_done as u32);
            }
            self.right_done += 1;
        }
        if rows.is_empty() {
            return None;
        }
        let columns = nulls(&self.parts.left_types, rows.len()).chain(right.take(&rows)).collect();
        Some(Batch { columns, row_count: rows.len() })
    }
}

/// Columns of NULLs.
fn nulls(types: &[DataType], row_count: usize) -> impl Iterator<Item = Arc<Vector>> {
    types.iter().map(move |&data_type| {
        let mut vector = Vector::new(data_type, row_count);
        (0..row_count).for_each(|_| vector.push_null());
        Arc::new(vector)
    })
}

impl<C: Candidates> Operator for PairJoin<C> {
    fn next(&mut self) -> Result<Option<Batch>> {
        self.read_right(None)?;
        loop {
            self.context.check()?;
            if self.probe.is_some() {
                let (left, right) = self.pairs();
                let batch =
                    if left.is_empty() { self.finish_probe() } else { self.check(&left, &right)? };
                if batch.is_some() {
                    return Ok(batch);
                }
                continue;
            }
            let Some(batch) = self.parts.left.next()? else { return Ok(self.unmatched_right()) };
            self.parts.candidates.probe(&batch, &self.context)?;
            self.probe = Some(Probe {
                matched: vec![false; batch.row_count],
                row: 0,
                candidate: self.parts.candidates.first(0),
                batch,
            });
        }
    }
}
