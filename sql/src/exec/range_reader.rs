//! Scans ranges of rows one after the other.

use std::collections::VecDeque;
use std::sync::Arc;

use store::admission::Turn;
use store::transaction::{Scanner, TableReader};
use store::{CellBatch, Scan, TimeRange};

use crate::error::Result;
use crate::exec::key_range::RowRange;

/// What is asked for, beside the keys.
#[derive(Clone)]
pub(super) struct RowOptions {
    /// Families by index; `None` for all.
    pub families: Option<Vec<u8>>,
    /// Versions considered.
    pub time_range: TimeRange,
    /// Rows wanted at most.
    pub limit: Option<u64>,
    /// From the last row to the first.
    pub reverse: bool,
}

/// See the module.
pub(super) struct RangeReader {
    table: Arc<TableReader>,
    options: RowOptions,
    /// In the order in which they are read.
    ranges: VecDeque<RowRange>,
    scanner: Option<Scanner>,
    scratch: CellBatch,
}

impl RangeReader {
    /// Returns a reader of ranges, ascending ones.
    pub(super) fn new(
        table: &Arc<TableReader>,
        ranges: impl IntoIterator<Item = RowRange>,
        options: &RowOptions,
    ) -> RangeReader {
        let mut ranges: VecDeque<RowRange> = ranges.into_iter().collect();
        if options.reverse {
            ranges.make_contiguous().reverse();
        }
        RangeReader {
            table: Arc::clone(table),
            options: options.clone(),
            ranges,
            scanner: None,
            scratch: CellBatch::new(),
        }
    }

    /// Takes a turn to read, for a thread that has none.
    pub(super) fn turn(&self) -> Result<Turn> {
        Ok(self.table.turn()?)
    }

    /// Opens the scan of the next range; `false` if there is none.
    fn advance(&mut self) -> Result<bool> {
        let Some(range) = self.ranges.pop_front() else { return Ok(false) };
        let scan = Scan {
            reverse: self.options.reverse,
            families: self.options.families.clone(),
            time_range: self.options.time_range,
            limit: self.options.limit,
            ..Scan::range(range.start, range.stop)
        };
        self.scanner = Some(self.table.scan(scan)?);
        Ok(true)
    }

    /// Replaces the content of `out` by the next rows, at most `row_limit`. Returns whether there
    /// may be more: `false` means that `out` is empty and the ranges at their end. Short ranges
    /// share a batch.
    pub(super) fn next(&mut self, row_limit: usize, out: &mut CellBatch) -> Result<bool> {
        out.clear();
        loop {
            let left = row_limit - out.row_count();
            let Some(scanner) = &mut self.scanner else {
                if !self.advance()? {
                    return Ok(!out.is_empty());
                }
                continue;
            };
            if out.is_empty() {
                if scanner.next_batch(left, out)? {
                    // A long range fills its batches by itself.
                    if self.ranges.is_empty() || out.row_count() * 2 >= row_limit {
                        return Ok(true);
                    }
                } else {
                    self.scanner = None;
                }
                continue;
            }
            if left == 0 {
                return Ok(true);
            }
            if scanner.next_batch(left, &mut self.scratch)? {
                self.scratch.rows().for_each(|row| copy_row(&row, out));
            } else {
                self.scanner = None;
            }
        }
    }

    /// Returns what was not read yet, ascending.
    pub(super) fn rest(&mut self) -> Result<Vec<RowRange>> {
        let mut rest = Vec::with_capacity(self.ranges.len() + 1);
        if let Some(scanner) = &mut self.scanner {
            let (start, stop) = scanner.rest()?.bounds();
            if stop.as_ref().is_none_or(|stop| start < *stop) {
                rest.push(RowRange { start, stop });
            }
        }
        rest.extend(self.ranges.iter().cloned());
        if self.options.reverse {
            rest.reverse();
        }
        Ok(rest)
    }
}

/// Appends a row to a batch.
pub(super) fn copy_row(row: &store::RowRef<'_>, out: &mut CellBatch) {
    out.start_row(row.key());
    row.cells().for_each(|cell| out.push(cell));
}
