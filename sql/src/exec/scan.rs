//! Table scan: rows of an access path, decoded, filtered, fetched from the base table and locked.
//!
//! ```text
//! feed (gets, ranges, merged buckets) -> decode, filter
//!     [-> row key -> multi-get -> decode, filter]       index scan
//!     [-> lock -> re-read -> re-evaluate]               FOR UPDATE
//! -> output columns
//! ```
//!
//! Only the columns that are returned or filtered are decoded, from columnar blocks without
//! reading the others; columns that are not filtered only for the rows that pass. With a row
//! goal, batches begin small and grow, so that a LIMIT 1 does not read a thousand rows; if the
//! goal is an estimate, the scan continues as long as rows are requested.

use std::collections::VecDeque;
use std::sync::Arc;

use coprocessors::row::ReadColumns;
use store::RowVersions;
use types::vector::BATCH_ROWS;
use types::{Batch, Datum};

use crate::error::{Error, Result};
use crate::exec::feed::{FeedOutput, RowFeed};
use crate::exec::key_range::base_rows;
use crate::exec::range_reader::RowOptions;
use crate::exec::scan_lock::lock_rows;
use crate::exec::scan_partition_reader::{PathRows, RowStage};
use crate::exec::stage::{Pipeline, PipelineStage};
use crate::exec::term_merge;
use crate::exec::time_travel::{self, ScanVersions};
use crate::exec::{Context, Operator};
use crate::plan::RowGoal;
use crate::plan::scan::ScanNode;

/// Number of rows in the first batch when only a few are needed and a filter may drop some.
const FIRST_BATCH_ROWS: usize = 32;

/// Table scan operator; see the module.
pub(super) struct TableScanOperator {
    node: Arc<ScanNode>,
    context: Arc<Context>,
    feed: RowFeed,
    stage: Arc<RowStage>,
    rows: PathRows,
    /// Keys of qualifying rows that are not locked yet.
    unlocked: VecDeque<Vec<u8>>,
    /// Batch in process by the stages of parent nodes.
    pipeline: Pipeline,
    /// Batches of region threads, not returned yet.
    ready: VecDeque<Batch>,
    /// Error of the filter on the row after these.
    failure: Option<Error>,
    batch_rows: usize,
    /// Remaining rows of the row goal.
    left: Option<u64>,
    /// Versions that are read.
    versions: ScanVersions,
}

/// Returns the exact row goal; `None` for all rows, or for an estimate.
pub(super) fn goal_rows(goal: &Option<RowGoal>, context: &Context) -> Result<Option<u64>> {
    match goal.as_ref().filter(|goal| goal.is_exact()) {
        Some(goal) => wanted_rows(goal, context),
        None => Ok(None),
    }
}

/// Returns the approximate number of rows that are read at first; `None` for all.
pub(super) fn first_rows(goal: &Option<RowGoal>, context: &Context) -> Result<Option<usize>> {
    let Some(goal) = goal else { return Ok(None) };
    let Some(wanted) = wanted_rows(goal, context)? else { return Ok(None) };
    Ok(Some((wanted as f64 * goal.rows_per_row.unwrap_or(1.0)).ceil() as usize))
}

fn wanted_rows(goal: &RowGoal, context: &Context) -> Result<Option<u64>> {
    let count = |datum: Datum| datum.as_i64().map(|count| count.max(0).unsigned_abs());
    let Some(limit) = count(context.value(&goal.limit)?) else { return Ok(None) };
    let offset = match &goal.offset {
        None => 0,
        Some(offset) => count(context.value(offset)?).unwrap_or(0),
    };
    Ok(Some(limit.saturating_add(offset)))
}

impl TableScanOperator {
    /// Computes the keys and opens the scan.
    pub(super) fn open(node: &Arc<ScanNode>, context: &Arc<Context>) -> Result<TableScanOperator> {
        let (node, versions) = time_travel::covered(node, context)?;
        let node = term_merge::restricted(node, versions, context)?;
        let stage = Arc::new(RowStage::open(&node, versions.range, context)?);
        let left = goal_rows(&node.goal, context)?;
        let first = first_rows(&node.goal, context)?;
        let exact = !node.has_filter();
        let has_versions = versions.of_rows != RowVersions::Newest;
        let options = RowOptions {
            // A change of any family is a version of the row.
            columns: match has_versions {
                true => ReadColumns::default(),
                false => stage.read_columns(),
            },
            sections: stage.sections()?,
            versions,
            limit: left.filter(|_| exact && !has_versions),
            reverse: node.path.reverse,
            base_rows: base_rows(&node.path, &context.eval)?,
            skip: None,
        };
        // Rows are locked on the session's thread.
        let side_by_side = node.lock.is_none();
        let least = if exact && left.is_some() { 1 } else { FIRST_BATCH_ROWS };
        let batch_rows = first.map_or(BATCH_ROWS, |rows| rows.clamp(least, BATCH_ROWS));
        Ok(TableScanOperator {
            feed: RowFeed::open(&node.path, options, side_by_side.then_some(&stage), context)?,
            node,
            context: Arc::clone(context),
            stage,
            rows: PathRows::default(),
            unlocked: VecDeque::new(),
            pipeline: Pipeline::default(),
            ready: VecDeque::new(),
            failure: None,
            batch_rows,
            left,
            versions,
        })
    }

    /// Processes the next rows of the feed.
    fn process(&mut self) -> Result<()> {
        let Some(wanted) = self.stage.wanted_until(&mut self.rows)? else { return Ok(()) };
        self.failure = wanted.failure.map(Error::from);
        if self.node.lock.is_some() {
            self.unlocked.extend(self.rows.stored.row_keys(wanted.selection.as_deref())?);
            return self.lock();
        }
        self.pipeline = self.stage.pipeline(&wanted.batch);
        Ok(())
    }

    fn next_batch(&mut self) -> Result<Option<Batch>> {
        loop {
            self.context.check()?;
            if self.left == Some(0) {
                return Ok(None);
            }
            let ready = match self.ready.pop_front() {
                None => self.stage.staged(&mut self.pipeline)?,
                ready => ready,
            };
            if let Some(batch) = ready {
                if let Some(left) = &mut self.left {
                    *left = left.saturating_sub(batch.row_count as u64);
                }
                return Ok(Some(batch));
            }
            if !self.unlocked.is_empty() {
                self.lock()?;
                continue;
            }
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
            if self.rows.has_more() {
                self.process()?;
                continue;
            }
            match self.feed.next(self.batch_rows, &mut self.rows.stored)? {
                FeedOutput::End => return Ok(None),
                FeedOutput::Batches(batches) => self.ready.extend(batches),
                FeedOutput::Rows if self.rows.stored.is_empty() => {}
                FeedOutput::Rows => self.process()?,
            }
            self.batch_rows = (self.batch_rows * 4).min(BATCH_ROWS);
        }
    }

    /// Locks the next rows, which become the current ones.
    fn lock(&mut self) -> Result<()> {
        let Some(lock) = &self.node.lock else { return Ok(()) };
        let limit = self.left.unwrap_or(u64::MAX);
        let batch = lock_rows(&self.node, lock, &mut self.unlocked, limit, &self.context)?;
        if batch.row_count > 0 {
            self.pipeline = self.stage.pipeline(&batch);
        }
        Ok(())
    }
}

impl Operator for TableScanOperator {
    fn next(&mut self) -> Result<Option<Batch>> {
        let batch = self.next_batch();
        batch.map_err(|error| {
            time_travel::with_history_begin(error, (&self.node, self.versions), &self.context)
        })
    }

    /// With an exact row goal few rows are read, and the session ends the scan.
    fn takes_stages(&self) -> bool {
        self.left.is_none() && self.feed.may_run_in_parallel()
    }

    fn attach(&mut self, stage: &Arc<dyn PipelineStage>) -> Result<bool> {
        if !self.takes_stages() {
            return Ok(false);
        }
        self.stage.attach(stage);
        Ok(true)
    }
}
