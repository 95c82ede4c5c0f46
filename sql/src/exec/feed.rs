//! Raw rows along a path: gets, scans of ranges one after the other, or of salt buckets merged.

use std::collections::VecDeque;
use std::sync::Arc;

use store::transaction::Scanner;
use store::{CellBatch, Get, Scan, TableId, TimeRange};
use types::vector::BATCH_ROWS;

use crate::error::Result;
use crate::exec::Context;
use crate::exec::key_range::{Keys, RowRange, resolve};
use crate::plan::scan::AccessPath;

/// What a feed asks the store for, beside the keys.
pub(super) struct FeedOptions {
    /// Families by index; `None` for all.
    pub families: Option<Vec<u8>>,
    /// Versions considered.
    pub time_range: TimeRange,
    /// Rows wanted at most.
    pub limit: Option<u64>,
}

/// The rows of a path, in the order of the path.
pub(super) struct RowFeed {
    context: Arc<Context>,
    table: TableId,
    options: FeedOptions,
    source: Source,
    left: Option<u64>,
}

enum Source {
    /// Whole keys, salted.
    Points(std::vec::IntoIter<Vec<u8>>),
    Ranges(Box<RangeReader>),
    Merge(Merge),
}

/// Scans ranges one after the other.
struct RangeReader {
    ranges: VecDeque<RowRange>,
    scanner: Option<Scanner>,
    reverse: bool,
    scratch: CellBatch,
}

/// The salt buckets, each in key order, as one.
struct Merge {
    buckets: Vec<Bucket>,
    reverse: bool,
}

struct Bucket {
    reader: RangeReader,
    cells: CellBatch,
    next: usize,
}

/// Puts the salt byte before a key.
fn salted(bucket: u8, key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len() + 1);
    out.push(bucket);
    out.extend_from_slice(key);
    out
}

fn salted_ranges(bucket: u8, ranges: &[RowRange]) -> impl Iterator<Item = RowRange> {
    ranges.iter().map(move |range| RowRange {
        start: salted(bucket, &range.start),
        stop: match &range.stop {
            Some(stop) => Some(salted(bucket, stop)),
            None => types::keycode::prefix_end(&[bucket]),
        },
    })
}

/// Returns the ranges of rows that a path reads, salt bytes included, ascending.
pub(super) fn row_ranges(path: &AccessPath, context: &Context) -> Result<Vec<RowRange>> {
    let ranges = match resolve(path, &context.eval)? {
        Keys::Ranges(ranges) => ranges,
        Keys::Points(points) => points
            .into_iter()
            .map(|start| RowRange { stop: Some([start.as_slice(), &[0]].concat()), start })
            .collect(),
    };
    Ok(match path.layout.salt_buckets {
        0 => ranges,
        buckets => (0..buckets).flat_map(|bucket| salted_ranges(bucket, &ranges)).collect(),
    })
}

impl RowFeed {
    /// Computes the keys of the path.
    pub(super) fn open(
        path: &AccessPath,
        options: FeedOptions,
        context: &Arc<Context>,
    ) -> Result<RowFeed> {
        let layout = &path.layout;
        let buckets = layout.salt_buckets;
        let reverse = path.reverse;
        let source = match resolve(path, &context.eval)? {
            Keys::Points(mut points) => {
                if reverse {
                    points.reverse();
                }
                if buckets > 0 {
                    for key in &mut points {
                        *key = salted(layout.salt(key), key);
                    }
                }
                Source::Points(points.into_iter())
            }
            Keys::Ranges(ranges) if buckets == 0 => {
                Source::Ranges(Box::new(RangeReader::new(ranges, reverse)))
            }
            Keys::Ranges(ranges) if path.ordered => {
                let bucket = |bucket| Bucket {
                    reader: RangeReader::new(salted_ranges(bucket, &ranges).collect(), reverse),
                    cells: CellBatch::new(),
                    next: 0,
                };
                Source::Merge(Merge { buckets: (0..buckets).map(bucket).collect(), reverse })
            }
            Keys::Ranges(ranges) => {
                let ranges = (0..buckets).flat_map(|bucket| salted_ranges(bucket, &ranges));
                Source::Ranges(Box::new(RangeReader::new(ranges.collect(), reverse)))
            }
        };
        let left = options.limit;
        Ok(RowFeed { context: Arc::clone(context), table: path.store_table, options, source, left })
    }

    /// Replaces the content of `out` by the next rows, at most `row_limit`. Returns whether there
    /// may be more: `false` means that `out` is empty and the feed at its end.
    pub(super) fn next(&mut self, row_limit: usize, out: &mut CellBatch) -> Result<bool> {
        out.clear();
        let row_limit = match self.left {
            Some(0) => return Ok(false),
            Some(left) => row_limit.min(usize::try_from(left).unwrap_or(usize::MAX)),
            None => row_limit,
        };
        let (context, options) = (self.context.as_ref(), &self.options);
        let more = match &mut self.source {
            Source::Points(keys) => {
                read_points(keys, self.table, row_limit, options, context, out)?
            }
            Source::Ranges(reader) => reader.next(self.table, row_limit, options, context, out)?,
            Source::Merge(merge) => merge.next(self.table, row_limit, options, context, out)?,
        };
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(out.row_count() as u64);
        }
        Ok(more)
    }
}

fn read_points(
    keys: &mut std::vec::IntoIter<Vec<u8>>,
    table: TableId,
    row_limit: usize,
    options: &FeedOptions,
    context: &Context,
    out: &mut CellBatch,
) -> Result<bool> {
    let get = |row| Get {
        families: options.families.clone(),
        time_range: options.time_range,
        ..Get::new(row)
    };
    let mut gets: Vec<Get> = keys.by_ref().take(row_limit).map(get).collect();
    match gets.len() {
        0 => return Ok(false),
        1 => {
            let get = gets.pop().expect("there is one");
            context.transaction.get(table, &get, out)?;
        }
        _ => context.transaction.multi_get(table, &gets, out)?,
    }
    Ok(true)
}

impl RangeReader {
    fn new(ranges: Vec<RowRange>, reverse: bool) -> RangeReader {
        let mut ranges: VecDeque<RowRange> = ranges.into();
        if reverse {
            ranges.make_contiguous().reverse();
        }
        RangeReader { ranges, scanner: None, reverse, scratch: CellBatch::new() }
    }

    /// Opens the scan of the next range; `false` if there is none.
    fn advance(
        &mut self,
        table: TableId,
        options: &FeedOptions,
        context: &Context,
    ) -> Result<bool> {
        let Some(range) = self.ranges.pop_front() else { return Ok(false) };
        let scan = Scan {
            reverse: self.reverse,
            families: options.families.clone(),
            time_range: options.time_range,
            limit: options.limit,
            ..Scan::range(range.start, range.stop)
        };
        self.scanner = Some(context.transaction.scan(table, scan)?);
        Ok(true)
    }

    /// As [`RowFeed::next`]. Short ranges share a batch.
    fn next(
        &mut self,
        table: TableId,
        row_limit: usize,
        options: &FeedOptions,
        context: &Context,
        out: &mut CellBatch,
    ) -> Result<bool> {
        out.clear();
        loop {
            let left = row_limit - out.row_count();
            let Some(scanner) = &mut self.scanner else {
                if !self.advance(table, options, context)? {
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
                context.check()?;
                continue;
            }
            if left == 0 {
                return Ok(true);
            }
            if scanner.next_batch(left, &mut self.scratch)? {
                self.scratch.rows().for_each(|row| copy_row(&row, out));
            } else {
                self.scanner = None;
                context.check()?;
            }
        }
    }
}

fn copy_row(row: &store::RowRef<'_>, out: &mut CellBatch) {
    out.start_row(row.key());
    row.cells().for_each(|cell| out.push(cell));
}

impl Merge {
    fn next(
        &mut self,
        table: TableId,
        row_limit: usize,
        options: &FeedOptions,
        context: &Context,
        out: &mut CellBatch,
    ) -> Result<bool> {
        let batch_rows = row_limit.clamp(1, BATCH_ROWS);
        while out.row_count() < row_limit {
            for bucket in &mut self.buckets {
                if bucket.next == bucket.cells.row_count() {
                    bucket.next = 0;
                    bucket.reader.next(table, batch_rows, options, context, &mut bucket.cells)?;
                }
            }
            self.buckets.retain(|bucket| !bucket.cells.is_empty());
            // Take rows until a bucket runs dry.
            while out.row_count() < row_limit {
                let Some(first) = self.first() else { return Ok(!out.is_empty()) };
                let bucket = &mut self.buckets[first];
                copy_row(&bucket.cells.row(bucket.next), out);
                bucket.next += 1;
                if bucket.next == bucket.cells.row_count() {
                    break;
                }
            }
        }
        Ok(true)
    }

    /// Returns the bucket whose next row comes first.
    fn first(&self) -> Option<usize> {
        let buckets = self.buckets.iter().enumerate();
        let first = if self.reverse {
            buckets.max_by(|(_, a), (_, b)| key_of(a).cmp(key_of(b)))
        } else {
            buckets.min_by(|(_, a), (_, b)| key_of(a).cmp(key_of(b)))
        };
        first.map(|(position, _)| position)
    }
}

/// Returns a bucket's next key without its salt byte.
fn key_of(bucket: &Bucket) -> &[u8] {
    &bucket.cells.row(bucket.next).key()[1..]
}
