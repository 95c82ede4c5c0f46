//! Range reader: scans of row ranges, one after the other.
//!
//! Row feeds, index nested-loop joins and scan partitions read their ranges through it.

pub(super) mod distinct_prefix;

use std::collections::VecDeque;
use std::sync::Arc;

use coprocessors::columns::SectionsOfGet;
use coprocessors::row::ReadColumns;
use coprocessors::rows::StoredRows;
use store::admission::StatementTurn;
use store::transaction::{Scanner, TableReader};
use store::{CellBatch, Get, Scan};
use types::vector::BATCH_BYTES;

use crate::error::Result;
use crate::exec::key_range::RowRange;
use crate::exec::range_reader::distinct_prefix::{PrefixSkip, SkipReader};
use crate::exec::time_travel::ScanVersions;

/// Options of gets and scans, apart from the keys.
#[derive(Clone)]
pub(super) struct RowOptions {
    /// Cells to read.
    pub columns: ReadColumns,
    /// Value sections that gets read.
    pub sections: SectionsOfGet,
    /// Versions that are read; gets return the newest of them only.
    pub versions: ScanVersions,
    /// Maximum number of rows.
    pub limit: Option<u64>,
    /// Descending order.
    pub reverse: bool,
    /// Rows of the table whose entries of a local index are read; `None` for all.
    pub base_rows: Option<store::descriptor::RowRange>,
    /// Rule by which rows are skipped; there is no maximum number of rows then.
    pub skip: Option<Arc<PrefixSkip>>,
}

/// Reader of row ranges; see the module.
pub(super) struct RangeReader {
    table: Arc<TableReader>,
    options: RowOptions,
    /// Remaining ranges, in reading order.
    ranges: VecDeque<RowRange>,
    scanner: Option<Scanner>,
    skip: Option<SkipReader>,
}

impl RowOptions {
    /// Returns a get of a row.
    pub(super) fn get(&self, row: Vec<u8>) -> Get {
        Get {
            sections: self.sections.clone(),
            time_range: self.versions.range,
            ..self.columns.get(Get::new(row))
        }
    }
}

impl RangeReader {
    /// Returns a reader of ranges, which are ascending.
    pub(super) fn new(
        table: &Arc<TableReader>,
        ranges: impl IntoIterator<Item = RowRange>,
        options: &RowOptions,
    ) -> RangeReader {
        let mut ranges: VecDeque<RowRange> = ranges.into_iter().collect();
        debug_assert!(
            ranges
                .make_contiguous()
                .windows(2)
                .all(|pair| { pair[0].stop.as_ref().is_some_and(|stop| *stop <= pair[1].start) }),
            "ranges that are not ascending and disjoint"
        );
        if options.reverse {
            ranges.make_contiguous().reverse();
        }
        let skip = options.skip.as_ref().map(SkipReader::new);
        let (table, options) = (Arc::clone(table), options.clone());
        RangeReader { table, options, ranges, scanner: None, skip }
    }

    /// Takes an execution slot for reading, for a thread that has none.
    pub(super) fn turn(&self) -> StatementTurn {
        self.table.turn()
    }

    /// Opens the scan of the next range; `false` if there is none.
    fn advance(&mut self) -> Result<bool> {
        let Some(range) = self.ranges.pop_front() else { return Ok(false) };
        let scan = Scan {
            reverse: self.options.reverse,
            time_range: self.options.versions.range,
            row_versions: self.options.versions.of_rows,
            limit: self.options.limit,
            base_rows: self.options.base_rows.clone(),
            ..self.options.columns.scan(Scan::range(range.start, range.stop))
        };
        self.scanner = Some(self.table.scan(scan)?);
        Ok(true)
    }

    /// Replaces the content of `out` by the next rows, at most `row_limit`. Returns whether there
    /// are any. Short ranges share a batch.
    pub(super) fn next(&mut self, row_limit: usize, out: &mut StoredRows) -> Result<bool> {
        out.clear();
        if self.skip.is_some() {
            out.add_cells(|cells| self.next_cells(row_limit, cells).map(drop))?;
            return Ok(!out.is_empty());
        }
        while !out.is_full(row_limit) {
            if self.scanner.is_none() && !self.advance()? {
                break;
            }
            if let Some(scanner) = &mut self.scanner
                && !out.read(scanner, row_limit)?
            {
                self.scanner = None;
            }
        }
        Ok(!out.is_empty())
    }

    /// Reads the next rows as cells; each range has separate batches.
    pub(super) fn next_cells(&mut self, row_limit: usize, out: &mut CellBatch) -> Result<bool> {
        out.clear();
        if let Some(mut skip) = self.skip.take() {
            let read = self.next_distinct(&mut skip, row_limit, out);
            self.skip = Some(skip);
            return read;
        }
        loop {
            if self.scanner.is_none() && !self.advance()? {
                return Ok(false);
            }
            if let Some(scanner) = &mut self.scanner
                && scanner.next_batch(row_limit, out)?
            {
                return Ok(true);
            }
            self.scanner = None;
        }
    }

    /// Reads the next rows that the rule does not skip.
    fn next_distinct(
        &mut self,
        skip: &mut SkipReader,
        row_limit: usize,
        out: &mut CellBatch,
    ) -> Result<bool> {
        while out.row_count() < row_limit && out.byte_count() < BATCH_BYTES {
            if self.scanner.is_none() && !self.advance()? {
                break;
            }
            if let Some(scanner) = &mut self.scanner
                && !skip.read(scanner, row_limit - out.row_count(), out)?
            {
                skip.leave_range();
                self.scanner = None;
            }
        }
        Ok(!out.is_empty())
    }

    /// Returns the unread ranges, ascending.
    pub(super) fn rest(&mut self) -> Result<Vec<RowRange>> {
        let mut rest = Vec::with_capacity(self.ranges.len() + 1);
        if let Some(scanner) = &mut self.scanner {
            let (mut start, mut stop) = scanner.rest()?.bounds();
            if let Some(skip) = &self.skip {
                skip.bound_rest(&mut start, &mut stop);
            }
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
