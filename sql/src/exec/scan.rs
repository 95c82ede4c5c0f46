//! Table scan: rows along a path, decoded, filtered, looked up, locked.
//!
//! ```text
//! feed (gets, ranges, merged buckets) -> decode -> filter
//!     [-> key of the row -> multi-get -> decode -> filter]     after an index
//!     [-> lock -> read again -> check again]                   FOR UPDATE
//! -> the columns yielded
//! ```
//!
//! Only the columns that are yielded or checked are decoded. With a row goal batches begin small
//! and grow, so that a LIMIT does not read a thousand rows for one.

use std::sync::Arc;

use store::{CellBatch, Get, TimeRange, Timestamp};
use types::vector::BATCH_ROWS;
use types::{Batch, Datum};

use crate::error::Result;
use crate::exec::decode::{Decoder, EPOCH_MICROSECONDS};
use crate::exec::feed::{Fed, RowFeed};
use crate::exec::lock::lock_rows;
use crate::exec::range_reader::RowOptions;
use crate::exec::{Context, Operator};
use crate::plan::RowGoal;
use crate::plan::scan::{Lookup, ScanNode};

/// Rows of the first batch when only a few are wanted and some may be dropped.
const FIRST_BATCH_ROWS: usize = 32;

/// See the module.
pub(super) struct TableScan {
    node: Arc<ScanNode>,
    context: Arc<Context>,
    feed: RowFeed,
    decoder: Decoder,
    lookup_decoder: Option<Decoder>,
    cells: CellBatch,
    rows: CellBatch,
    batch_rows: usize,
    /// Rows still wanted.
    left: Option<u64>,
}

/// Returns the number of rows that will be taken; `None` for all.
pub(super) fn goal_rows(goal: &Option<RowGoal>, context: &Context) -> Result<Option<u64>> {
    let Some(goal) = goal else { return Ok(None) };
    let count = |datum: Datum| datum.as_i64().map(|count| count.max(0).unsigned_abs());
    let Some(limit) = count(context.value(&goal.limit)?) else { return Ok(None) };
    let offset = match &goal.offset {
        None => 0,
        Some(offset) => count(context.value(offset)?).unwrap_or(0),
    };
    Ok(Some(limit.saturating_add(offset)))
}

/// Returns the versions that `FOR SYSTEM_TIME AS OF` asks for.
pub(super) fn time_range(
    as_of: &Option<types::expr::Expr>,
    context: &Context,
) -> Result<TimeRange> {
    let Some(as_of) = as_of else { return Ok(TimeRange::ALL) };
    Ok(match context.value(as_of)? {
        Datum::Timestamptz(time) => {
            TimeRange::as_of(Timestamp(time.saturating_add(EPOCH_MICROSECONDS)))
        }
        // Nothing is known of an unknown time.
        _ => TimeRange { min: Timestamp(i64::MIN), max: Timestamp(i64::MIN) },
    })
}

impl TableScan {
    /// Computes the keys and opens the scan.
    pub(super) fn open(node: &Arc<ScanNode>, context: &Arc<Context>) -> Result<TableScan> {
        let decoder = Decoder::new(&node.path.layout, &node.read);
        let left = goal_rows(&node.goal, context)?;
        let exact = !node.has_filter();
        let options = RowOptions {
            families: decoder.families(),
            time_range: time_range(&node.as_of, context)?,
            limit: left.filter(|_| exact),
            reverse: node.path.reverse,
        };
        let by_itself = node.lookup.is_none() && node.lock.is_none();
        let scan = by_itself.then(|| Arc::clone(node));
        let batch_rows = match left {
            Some(left) => {
                let least = if exact { 1 } else { FIRST_BATCH_ROWS };
                usize::try_from(left).unwrap_or(BATCH_ROWS).clamp(least, BATCH_ROWS)
            }
            None => BATCH_ROWS,
        };
        Ok(TableScan {
            feed: RowFeed::open(&node.path, options, scan, node.lock.is_none(), context)?,
            lookup_decoder: node
                .lookup
                .as_ref()
                .map(|lookup| Decoder::new(&node.table.layout, &lookup.read)),
            node: Arc::clone(node),
            context: Arc::clone(context),
            decoder,
            cells: CellBatch::new(),
            rows: CellBatch::new(),
            batch_rows,
            left,
        })
    }

    /// Decodes and filters what the feed gave. `None`: nothing is left of it.
    fn process(&mut self) -> Result<Option<Batch>> {
        let node = Arc::clone(&self.node);
        let context = &self.context;
        let mut batch = self.decoder.decode(&self.cells, &context.eval)?;
        let mut selection = None;
        if let Some(filter) = &node.filter {
            let kept = filter.filter_batch(&batch, &context.eval)?;
            if kept.is_empty() {
                return Ok(None);
            }
            selection = Some(kept).filter(|kept| kept.len() < batch.row_count);
        }
        let mut of_rows = &self.cells;
        if let (Some(lookup), Some(decoder)) = (&node.lookup, &self.lookup_decoder) {
            let narrowed = selection.take().map(|kept| batch.take(&kept));
            let entries = narrowed.as_ref().unwrap_or(&batch);
            look_up(&node, lookup, entries, decoder, context, &mut self.rows)?;
            of_rows = &self.rows;
            batch = decoder.decode(of_rows, &context.eval)?;
            if let Some(filter) = &lookup.filter {
                let kept = filter.filter_batch(&batch, &context.eval)?;
                selection = Some(kept).filter(|kept| kept.len() < batch.row_count);
            }
        }
        if let Some(lock) = &node.lock {
            let kept = selection
                .take()
                .unwrap_or_else(|| (0..batch.row_count as u32).collect::<Vec<u32>>());
            let keys = kept.iter().map(|&row| of_rows.row(row as usize).key());
            batch = lock_rows(&node, lock, keys, self.left.unwrap_or(u64::MAX), context)?;
        }
        let columns = node.output.iter().map(|&column| Arc::clone(&batch.columns[column]));
        let batch = Batch { columns: columns.collect(), row_count: batch.row_count };
        let batch = match selection {
            Some(kept) => batch.take(&kept),
            None => batch,
        };
        Ok((batch.row_count > 0).then_some(batch))
    }
}

/// Reads the rows that index entries name into `rows`.
fn look_up(
    node: &ScanNode,
    lookup: &Lookup,
    entries: &Batch,
    decoder: &Decoder,
    context: &Context,
    rows: &mut CellBatch,
) -> Result<()> {
    let families = decoder.families();
    let mut key = Vec::with_capacity(lookup.key.len());
    let mut gets = Vec::with_capacity(entries.row_count);
    for row in 0..entries.row_count {
        key.clear();
        key.extend(lookup.key.iter().map(|&column| entries.columns[column].datum(row)));
        let row = node.table.layout.encode_key_values(&key)?;
        gets.push(Get { families: families.clone(), ..Get::new(row) });
    }
    rows.clear();
    context.transaction.multi_get(node.table.id, &gets, rows)?;
    Ok(())
}

impl Operator for TableScan {
    fn next(&mut self) -> Result<Option<Batch>> {
        loop {
            self.context.check()?;
            if self.left == Some(0) {
                return Ok(None);
            }
            let batch = match self.feed.next(self.batch_rows, &mut self.cells)? {
                Fed::End => return Ok(None),
                Fed::Batch(batch) => Some(batch).filter(|batch| batch.row_count > 0),
                Fed::Cells if self.cells.is_empty() => None,
                Fed::Cells => self.process()?,
            };
            if self.left.is_some() {
                self.batch_rows = (self.batch_rows * 4).min(BATCH_ROWS);
            }
            if let Some(batch) = batch {
                if let Some(left) = &mut self.left {
                    *left = left.saturating_sub(batch.row_count as u64);
                }
                return Ok(Some(batch));
            }
        }
    }
}
