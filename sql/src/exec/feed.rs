//! Row feed: stored rows of an access path, by gets, range scans or a merge of ranges.
//!
//! # Parallel scans
//!
//! A feed starts on the session's thread. Once it has read a number of rows without nearing its
//! end, region threads take over: the rest is split by regions, large ones into several scan
//! partitions, which are read ahead by a few batches. If order is required, the partitions are
//! returned in order, or ranges are merged; otherwise batches are returned as they are
//! produced. Region threads also decode, filter and fetch from the base table; the rows of merged
//! ranges are not decoded there.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use coprocessors::rows::StoredRows;
use store::read_ahead::{Bounds, Take};
use store::transaction::{Parallelism, RowReadAhead, TableReader};
use store::{CellBatch, Get, RowVersions};
use types::Batch;
use types::inverted::TermQuery;
use types::rowcode::RowLayout;
use types::vector::{BATCH_BYTES, BATCH_ROWS};

use crate::error::{Error, Result};
use crate::exec::Context;
use crate::exec::key_range::{MergedRanges, PathKeys, RowRange, resolve, resolve_merged, salted};
use crate::exec::range_reader::distinct_prefix::PrefixSkip;
use crate::exec::range_reader::{RangeReader, RowOptions, copy_row};
use crate::exec::scan_partition_reader::{PartitionRows, PathRows, RowStage, ScanPartitionReader};
use crate::exec::stage::Pipeline;
use crate::exec::term_merge::{self, TermMerge};
use crate::plan::scan::AccessPath;

/// Number of batches of a scan partition that wait for the session.
const BATCHES_AHEAD: usize = 4;
/// Size of all batches that wait for a session, in bytes.
const BYTES_AHEAD: usize = 4 << 20;

/// Rows of an access path, in the path's order.
pub(super) struct RowFeed {
    context: Arc<Context>,
    /// Reader with the statement's snapshot of the path's table.
    table: Arc<TableReader>,
    /// Flag that ends all reading.
    stopped: Arc<AtomicBool>,
    options: RowOptions,
    source: FeedSource,
    left: Option<u64>,
    /// Parameters for the switch to region threads; `None` if it does not apply or has happened.
    joining: Option<ParallelStart>,
    rows_read: u64,
    /// True if the keys begin with a salt byte.
    is_salted: bool,
    /// Key of the last row, without the bytes over which ranges are merged. Only set in debug
    /// builds.
    last_key: Option<Vec<u8>>,
}

/// Parameters for the switch to region threads.
struct ParallelStart {
    parallelism: Parallelism,
    take: Take,
    /// Processing of the rows on the region threads.
    stage: Arc<RowStage>,
}

/// Result of a read from a feed.
pub(super) enum FeedOutput {
    /// Stored rows, possibly none yet.
    Rows,
    /// Batches that a [`RowStage`] produced.
    Batches(Vec<Batch>),
    /// End of the feed.
    End,
}

enum FeedSource {
    /// Whole row keys, salted.
    Points(std::vec::IntoIter<Vec<u8>>),
    /// Ranges, in sequence.
    Ranges(Box<RangeReader>),
    Ahead(RowReadAhead<ScanPartitionReader>, Take),
    Merge(RangeMerge),
    /// Rows with several terms of an inverted index.
    Terms(TermMerge),
}

/// Merge of ranges by the key after their common bytes: the salt byte, and the values of the
/// leading columns that the order ignores.
struct RangeMerge {
    inputs: Vec<MergeInput>,
    /// Length of the common bytes, if it is that of all inputs.
    common_prefix: Option<usize>,
    reverse: bool,
    /// Read-ahead of the inputs by region threads, by their number, once it is used.
    ahead: Option<RowReadAhead<ScanPartitionReader>>,
}

struct MergeInput {
    number: usize,
    /// Length of the bytes that all keys begin with.
    prefix: usize,
    /// Reader of the session; `None` once the ranges are read ahead.
    reader: Option<RangeReader>,
    cells: CellBatch,
    next: usize,
}

fn salted_ranges(bucket: u8, ranges: &[RowRange]) -> impl Iterator<Item = RowRange> {
    ranges.iter().map(move |range| range.salted(bucket))
}

/// Prepends the salt bytes to whole keys, if the table is salted.
pub(super) fn with_salt(layout: &RowLayout, mut keys: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    if layout.salt_buckets > 0 {
        for key in &mut keys {
            *key = salted(layout.salt(key), key);
        }
    }
    keys
}

/// Returns the ranges in every salt bucket, if the table is salted.
pub(super) fn with_salts(layout: &RowLayout, ranges: Vec<RowRange>) -> Vec<RowRange> {
    match layout.salt_buckets {
        0 => ranges,
        buckets => {
            let buckets = (0..buckets).map(|bucket| bucket as u8);
            buckets.flat_map(|bucket| salted_ranges(bucket, &ranges)).collect()
        }
    }
}

/// Returns the row ranges that a path reads, including salt bytes, ascending.
fn row_ranges(path: &AccessPath, context: &Context) -> Result<Vec<RowRange>> {
    let ranges = match resolve(path, &context.eval)? {
        PathKeys::Ranges(ranges) => ranges,
        PathKeys::Points(points) => points.into_iter().map(RowRange::of_row).collect(),
    };
    Ok(with_salts(&path.layout, ranges))
}

/// Returns [`row_ranges`] in the form of endpoint calls: start and stop.
pub(super) fn endpoint_ranges(
    path: &AccessPath,
    context: &Context,
) -> Result<Vec<store::transaction::PartitionRange>> {
    let ranges = row_ranges(path, context)?.into_iter();
    Ok(ranges.map(|range| (range.start, range.stop)).collect())
}

impl FeedSource {
    fn of_keys(
        path: &AccessPath,
        (table, options): (&Arc<TableReader>, &RowOptions),
        context: &Context,
    ) -> Result<FeedSource> {
        let layout = &path.layout;
        let keys = match resolve(path, &context.eval)? {
            // A get returns one version of a row.
            PathKeys::Points(points) if options.versions.of_rows != RowVersions::Newest => {
                PathKeys::Ranges(points.into_iter().map(RowRange::of_row).collect())
            }
            keys => keys,
        };
        let is_merged = path.ordered && (layout.salt_buckets > 0 || path.merged > 0);
        Ok(match keys {
            PathKeys::Ranges(ranges) if is_merged => {
                let groups = match path.merged {
                    0 => vec![MergedRanges { prefix: 0, ranges }],
                    _ => resolve_merged(path, &context.eval)?,
                };
                FeedSource::Merge(RangeMerge::new(groups, layout, table, options))
            }
            PathKeys::Points(mut points) => {
                if options.reverse {
                    points.reverse();
                }
                FeedSource::Points(with_salt(layout, points).into_iter())
            }
            PathKeys::Ranges(ranges) => {
                let ranges = with_salts(layout, ranges);
                FeedSource::Ranges(Box::new(RangeReader::new(table, ranges, options)))
            }
        })
    }

    /// Returns the source of the rows with terms; of one term, region threads may read them.
    fn of_terms(
        query: &TermQuery,
        path: &AccessPath,
        (table, options): (&Arc<TableReader>, &RowOptions),
    ) -> Result<FeedSource> {
        let layout = &path.layout;
        if let TermQuery::Term(term) = query {
            let ranges = with_salts(layout, vec![term_merge::range_of(term)?]);
            return Ok(FeedSource::Ranges(Box::new(RangeReader::new(table, ranges, options))));
        }
        TermMerge::open(query, layout, (table, options)).map(FeedSource::Terms)
    }
}

impl RowFeed {
    /// Computes the keys of the path. `stage`: processing of its rows by region threads; `None`
    /// if they must not be used.
    pub(super) fn open(
        path: &AccessPath,
        mut options: RowOptions,
        stage: Option<&Arc<RowStage>>,
        context: &Arc<Context>,
    ) -> Result<RowFeed> {
        let left = options.limit;
        options.skip = PrefixSkip::of(path, &context.eval)?;
        if options.skip.is_some() {
            options.limit = None;
        }
        let stopped: Arc<AtomicBool> = Arc::default();
        let table = Arc::new(context.path_reader(path)?.until(&stopped));
        let source = match &path.inverted {
            Some(condition) => {
                let query = term_merge::query(condition, path, &context.eval)?;
                FeedSource::of_terms(&query, path, (&table, &options))?
            }
            None => FeedSource::of_keys(path, (&table, &options), context)?,
        };
        // Statements that change rows lock them in one order, to avoid deadlocks.
        let take =
            if path.ordered || context.requires_key_order { Take::InOrder } else { Take::Any };
        let joining = match (&source, stage) {
            (FeedSource::Ranges(_) | FeedSource::Merge(_), Some(stage)) => {
                let joining =
                    |parallelism| ParallelStart { parallelism, take, stage: Arc::clone(stage) };
                context.parallelism().map(joining)
            }
            _ => None,
        };
        Ok(RowFeed {
            context: Arc::clone(context),
            table,
            stopped,
            options,
            source,
            left,
            joining,
            rows_read: 0,
            is_salted: path.layout.salt_buckets > 0,
            last_key: None,
        })
    }

    /// Returns whether region threads may take over.
    pub(super) fn may_run_in_parallel(&self) -> bool {
        self.joining.is_some() && self.rows_read == 0
    }

    /// Replaces the content of `out` by the next rows, at most `row_limit`. Region threads return
    /// batches of their own size, which may exceed the limit of the feed.
    pub(super) fn next(&mut self, row_limit: usize, out: &mut StoredRows) -> Result<FeedOutput> {
        out.clear();
        let row_limit = match self.left {
            Some(0) => return Ok(FeedOutput::End),
            Some(left) => row_limit.min(usize::try_from(left).unwrap_or(usize::MAX)),
            None => row_limit,
        };
        self.join()?;
        let more = match &mut self.source {
            FeedSource::Points(keys) => {
                read_points(keys, &self.table, row_limit, &self.options, out)?
            }
            FeedSource::Ranges(ranges) => ranges.next(row_limit, out)?,
            FeedSource::Merge(merge) => {
                let mut more = false;
                out.add_cells(|cells| merge.next(row_limit, cells).map(|some| more = some))?;
                more
            }
            FeedSource::Terms(merge) => {
                let (mut more, context) = (false, &self.context);
                out.add_cells(|cells| {
                    merge.next(row_limit, cells, context).map(|some| more = some)
                })?;
                more
            }
            FeedSource::Ahead(ahead, take) => match ahead.next(*take)? {
                None => false,
                Some((_, PartitionRows::Batches(batches))) => {
                    return Ok(FeedOutput::Batches(batches));
                }
                Some((_, PartitionRows::Cells(cells))) => {
                    out.add_cells(|out| {
                        *out = cells;
                        Ok::<(), Error>(())
                    })?;
                    true
                }
                Some((_, PartitionRows::Nothing)) => true,
            },
        };
        if cfg!(debug_assertions) {
            self.check_order(out);
        }
        self.rows_read += out.row_count() as u64;
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(out.row_count() as u64);
        }
        Ok(if more { FeedOutput::Rows } else { FeedOutput::End })
    }

    /// Asserts that the keys of rows that the session reads ascend, or descend in a reverse scan.
    fn check_order(&mut self, rows: &StoredRows) {
        let salt_bytes = usize::from(self.is_salted);
        let (skipped, may_tie) = match &self.source {
            FeedSource::Points(_) => (salt_bytes, false),
            FeedSource::Merge(merge) => match merge.common_prefix {
                Some(prefix) => (prefix, prefix > salt_bytes),
                None => return,
            },
            FeedSource::Ranges(_) => (0, false),
            FeedSource::Ahead(..) | FeedSource::Terms(_) => return,
        };
        let Ok(keys) = rows.row_keys(None) else { return };
        for key in keys {
            let key = key[skipped..].to_vec();
            if let Some(last) = self.last_key.replace(key) {
                let is_after = self.last_key.as_ref().is_some_and(|key| *key > last);
                let is_before = self.last_key.as_ref().is_some_and(|key| *key < last);
                let may_repeat = may_tie || self.options.versions.of_rows != RowVersions::Newest;
                let is_version = may_repeat && self.last_key.as_ref() == Some(&last);
                let is_next = is_version || if self.options.reverse { is_before } else { is_after };
                debug_assert!(is_next, "key {:?} follows {last:?} in a scan", self.last_key);
            }
        }
    }

    /// Switches to region threads, once enough rows were read and if enough are left.
    fn join(&mut self) -> Result<()> {
        let due = |joining: &mut ParallelStart| self.rows_read >= joining.parallelism.after_rows;
        let Some(joining) = self.joining.take_if(due) else { return Ok(()) };
        // For a few remaining rows, threads cost more than they save.
        if self.left.is_some_and(|left| left < joining.parallelism.after_rows) {
            return Ok(());
        }
        let transaction = &self.context.transaction;
        match &mut self.source {
            FeedSource::Ranges(ranges) => {
                let rest = ranges.rest()?;
                let rest: Vec<_> =
                    rest.into_iter().map(|range| (range.start, range.stop)).collect();
                let mut parts = self.table.cut(&rest, joining.parallelism);
                if parts.len() < 2 {
                    return Ok(());
                }
                if self.options.reverse {
                    parts.reverse();
                }
                let parts = parts.into_iter().map(|part| {
                    let part = part.into_iter().map(|(start, stop)| RowRange { start, stop });
                    let reader = RangeReader::new(&self.table, part, &self.options);
                    ScanPartitionReader {
                        reader,
                        stage: Some(Arc::clone(&joining.stage)),
                        rows: PathRows::default(),
                        pipeline: Pipeline::default(),
                    }
                });
                let bounds = Bounds {
                    items: BATCHES_AHEAD,
                    bytes: BYTES_AHEAD,
                    parts: joining.parallelism.threads + 1,
                };
                let ahead = transaction.read_ahead(parts, bounds, &self.stopped);
                self.source = FeedSource::Ahead(ahead, joining.take);
            }
            FeedSource::Merge(merge) if merge.inputs.len() > 1 => {
                // Each input also has one current batch.
                let bounds = Bounds { items: 1, bytes: BYTES_AHEAD, parts: usize::MAX };
                let readers = merge.inputs.iter_mut().enumerate().filter_map(|(number, input)| {
                    input.number = number;
                    input.reader.take().map(|reader| ScanPartitionReader {
                        reader,
                        stage: None,
                        rows: PathRows::default(),
                        pipeline: Pipeline::default(),
                    })
                });
                let ahead = transaction.read_ahead(readers, bounds, &self.stopped);
                merge.ahead = Some(ahead);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Executes the next gets, at most `row_limit`; returns whether there were any.
pub(super) fn read_points(
    keys: &mut std::vec::IntoIter<Vec<u8>>,
    table: &TableReader,
    row_limit: usize,
    options: &RowOptions,
    out: &mut StoredRows,
) -> Result<bool> {
    let wanted = keys.as_slice().iter().take(row_limit);
    let gets: Vec<Get> = wanted.map(|row| options.get(row.clone())).collect();
    let mut made = 0;
    out.add_cells(|cells| {
        table.multi_get_some(&gets, BATCH_BYTES, cells).map(|count| made = count)
    })?;
    keys.by_ref().take(made).for_each(drop);
    Ok(!gets.is_empty())
}

impl RangeMerge {
    /// Returns the merge of the groups, each in every salt bucket.
    fn new(
        groups: Vec<MergedRanges>,
        layout: &RowLayout,
        table: &Arc<TableReader>,
        options: &RowOptions,
    ) -> RangeMerge {
        let salts = match layout.salt_buckets {
            0 => vec![None],
            buckets => (0..buckets).map(|bucket| Some(bucket as u8)).collect(),
        };
        let of_salt = |salt: Option<u8>| {
            groups.iter().map(move |group| match salt {
                None => (group.prefix, RangeReader::new(table, group.ranges.clone(), options)),
                Some(salt) => {
                    let ranges = salted_ranges(salt, &group.ranges);
                    (group.prefix + 1, RangeReader::new(table, ranges, options))
                }
            })
        };
        let readers = salts.into_iter().flat_map(of_salt);
        let inputs = readers.enumerate().map(|(number, (prefix, reader))| MergeInput {
            number,
            prefix,
            reader: Some(reader),
            cells: CellBatch::new(),
            next: 0,
        });
        let inputs: Vec<MergeInput> = inputs.collect();
        let first = inputs.first().map(|input| input.prefix);
        let is_common = inputs.iter().all(|input| Some(input.prefix) == first);
        let common_prefix = first.filter(|_| is_common);
        RangeMerge { inputs, common_prefix, reverse: options.reverse, ahead: None }
    }

    fn next(&mut self, row_limit: usize, out: &mut CellBatch) -> Result<bool> {
        let batch_rows = row_limit.clamp(1, BATCH_ROWS);
        while out.row_count() < row_limit && out.byte_count() < BATCH_BYTES {
            for input in &mut self.inputs {
                if input.next == input.cells.row_count() {
                    input.refill(batch_rows, &mut self.ahead)?;
                }
            }
            self.inputs.retain(|input| !input.cells.is_empty());
            // Merges until an input's batch is exhausted.
            while out.row_count() < row_limit && out.byte_count() < BATCH_BYTES {
                let Some(first) = self.first() else { return Ok(!out.is_empty()) };
                let input = &mut self.inputs[first];
                copy_row(&input.cells.row(input.next), out);
                input.next += 1;
                if input.next == input.cells.row_count() {
                    break;
                }
            }
        }
        Ok(true)
    }

    /// Returns the input with the first key.
    fn first(&self) -> Option<usize> {
        let inputs = self.inputs.iter().enumerate();
        let first = if self.reverse {
            inputs.max_by(|(_, a), (_, b)| key_of(a).cmp(key_of(b)))
        } else {
            inputs.min_by(|(_, a), (_, b)| key_of(a).cmp(key_of(b)))
        };
        first.map(|(position, _)| position)
    }
}

impl MergeInput {
    /// Reads the next rows; at the end there are none.
    fn refill(
        &mut self,
        batch_rows: usize,
        ahead: &mut Option<RowReadAhead<ScanPartitionReader>>,
    ) -> Result<()> {
        self.next = 0;
        self.cells.clear();
        match (&mut self.reader, ahead) {
            (Some(reader), _) => {
                reader.next_cells(batch_rows, &mut self.cells)?;
            }
            (None, Some(ahead)) => {
                if let Some((_, PartitionRows::Cells(cells))) = ahead.next(Take::Of(self.number))? {
                    self.cells = cells;
                }
            }
            (None, None) => {}
        }
        Ok(())
    }
}

/// Returns the part of an input's next key that is compared.
fn key_of(input: &MergeInput) -> &[u8] {
    &input.cells.row(input.next).key()[input.prefix..]
}
