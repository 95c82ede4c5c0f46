//! Distinct-prefix skip: one row for each combination of values of leading key columns.
//!
//! ```text
//!  a  b                  a distinct
//!  1  1   read, then seek to the rows after a = 1
//!  1  2
//!  1  …
//!  2  1   read, then seek to the rows after a = 2
//! ```
//!
//! After a seek a few rows are read. If the next combination begins among them, they are stepped
//! over, and the next read takes twice as many; so combinations with few rows cost no more than a
//! scan. Conditions on the columns behind lead to a second seek, within the combination.
//!
//! Source: Phoenix's `DistinctPrefixFilter`, with HBase's hint of the next row. Here the reader
//! of the ranges seeks.

use std::sync::Arc;

use store::CellBatch;
use store::transaction::Scanner;
use types::expr::EvalContext;
use types::keycode::prefix_end;
use types::rowcode::RowLayout;
use types::vector::{BATCH_BYTES, BATCH_ROWS};

use crate::error::Result;
use crate::exec::key_range::SuffixSpans;
use crate::plan::scan::AccessPath;

/// Rows that are read after a seek, at first.
const STEP_ROWS: usize = 8;

/// Rule by which rows are skipped.
pub(in crate::exec) struct PrefixSkip {
    layout: Arc<RowLayout>,
    /// Number of columns.
    columns: usize,
    /// Values of the columns behind.
    suffix: SuffixSpans,
    has_suffix: bool,
    reverse: bool,
}

/// Progress of a scan with a [`PrefixSkip`].
pub(in crate::exec) struct SkipReader {
    rule: Arc<PrefixSkip>,
    /// Rows that were read, and the number of those that were processed.
    rows: CellBatch,
    next: usize,
    /// Rows before this bound are skipped: those below it, in reverse those at or above it.
    bound: Option<Vec<u8>>,
    /// Number of rows to read at once.
    step_rows: usize,
    /// Number of wanted rows among those that were read.
    taken_of_rows: usize,
}

/// Decision about a row that is not before the bound.
enum SkipDecision {
    /// It is the first one of its combination that is wanted.
    Take,
    /// It is not wanted. The next one that may be is not before this bound; `None`: there is none.
    Skip(Option<Vec<u8>>),
}

impl PrefixSkip {
    /// Returns the rule of a path, if it has one.
    pub(in crate::exec) fn of(
        path: &AccessPath,
        context: &EvalContext,
    ) -> Result<Option<Arc<PrefixSkip>>> {
        let Some(distinct) = &path.distinct else { return Ok(None) };
        Ok(Some(Arc::new(PrefixSkip {
            layout: Arc::clone(&path.layout),
            columns: distinct.columns,
            suffix: SuffixSpans::of(&distinct.conditions, context)?,
            has_suffix: !distinct.conditions.is_empty(),
            reverse: path.reverse,
        })))
    }

    /// Returns the bound behind all rows with a prefix.
    fn after(&self, prefix: &[u8]) -> Option<Vec<u8>> {
        if self.reverse { Some(prefix.to_vec()) } else { prefix_end(prefix) }
    }

    fn is_before(&self, key: &[u8], bound: &[u8]) -> bool {
        if self.reverse { key >= bound } else { key < bound }
    }

    fn decide(&self, key: &[u8], prefix: &[u8]) -> SkipDecision {
        if !self.has_suffix {
            return SkipDecision::Take;
        }
        let mut ranges = self.suffix.ranges(prefix);
        let is_below = |stop: &Option<Vec<u8>>| stop.as_ref().is_none_or(|stop| key < stop);
        if self.reverse {
            ranges.reverse();
            return match ranges.into_iter().find(|range| range.start.as_slice() <= key) {
                Some(range) if is_below(&range.stop) => SkipDecision::Take,
                Some(range) => SkipDecision::Skip(range.stop),
                None => SkipDecision::Skip(self.after(prefix)),
            };
        }
        match ranges.into_iter().find(|range| is_below(&range.stop)) {
            Some(range) if range.start.as_slice() <= key => SkipDecision::Take,
            Some(range) => SkipDecision::Skip(Some(range.start)),
            None => SkipDecision::Skip(self.after(prefix)),
        }
    }
}

impl SkipReader {
    /// Returns the reader of a scan from its start on.
    pub(in crate::exec) fn new(rule: &Arc<PrefixSkip>) -> SkipReader {
        SkipReader {
            rule: Arc::clone(rule),
            rows: CellBatch::new(),
            next: 0,
            bound: None,
            step_rows: STEP_ROWS,
            taken_of_rows: 0,
        }
    }

    /// Appends the next wanted rows to a batch, at most `row_limit`, from the scanner of a range.
    /// Returns `false` at the end of the range.
    pub(in crate::exec) fn read(
        &mut self,
        scanner: &mut Scanner,
        row_limit: usize,
        out: &mut CellBatch,
    ) -> Result<bool> {
        let most = out.row_count() + row_limit;
        while out.row_count() < most && out.byte_count() < BATCH_BYTES {
            if self.next == self.rows.row_count() && !self.refill(scanner)? {
                return Ok(false);
            }
            let row = self.rows.row(self.next);
            let key = row.key();
            if self.bound.as_ref().is_some_and(|bound| self.rule.is_before(key, bound)) {
                self.next += 1;
                continue;
            }
            let length = self.rule.layout.key_prefix_length(key, self.rule.columns)?;
            let bound = match self.rule.decide(key, &key[..length]) {
                SkipDecision::Take => {
                    out.start_row(key);
                    row.cells().for_each(|cell| out.push(cell));
                    self.taken_of_rows += 1;
                    self.rule.after(&key[..length])
                }
                SkipDecision::Skip(bound) => bound,
            };
            self.next += 1;
            if bound.is_none() {
                self.next = self.rows.row_count();
                return Ok(false);
            }
            self.bound = bound;
        }
        Ok(true)
    }

    /// Reads the next rows; after a seek, unless the last ones were of several combinations.
    fn refill(&mut self, scanner: &mut Scanner) -> Result<bool> {
        if let Some(bound) = self.bound.as_ref().filter(|_| !self.rows.is_empty()) {
            if self.taken_of_rows > 1 {
                self.step_rows = (self.step_rows * 2).min(BATCH_ROWS);
            } else {
                self.step_rows = STEP_ROWS;
                match self.rule.reverse {
                    true => scanner.seek_before(bound)?,
                    false => scanner.seek(bound)?,
                }
            }
        }
        (self.next, self.taken_of_rows) = (0, 0);
        Ok(scanner.next_batch(self.step_rows, &mut self.rows)?)
    }

    /// Forgets the rows of a range that has ended.
    pub(in crate::exec) fn leave_range(&mut self) {
        self.rows.clear();
        (self.next, self.taken_of_rows) = (0, 0);
    }

    /// Sets the bounds of the unread rest of a range to those of the rows that may be wanted.
    pub(in crate::exec) fn bound_rest(&self, start: &mut Vec<u8>, stop: &mut Option<Vec<u8>>) {
        let next = (self.next < self.rows.row_count()).then(|| self.rows.row(self.next));
        let bound = self.bound.iter().cloned();
        match self.rule.reverse {
            false => {
                let from = next.map_or(std::mem::take(start), |row| row.key().to_vec());
                *start = bound.fold(from, Vec::max);
            }
            true => {
                let to = next.map(|row| [row.key(), &[0]].concat()).or_else(|| stop.take());
                *stop = to.into_iter().chain(bound).min();
            }
        }
    }
}
