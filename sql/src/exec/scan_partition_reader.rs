//! Scan partition reader for region threads, and the row stage of a scan: decode, filter,
//! base-table fetch.
//!
//! All reads, including base-table fetches, use the snapshot from the opening of the scan: a
//! cursor continues with it after other statements.

use std::sync::Arc;

use coprocessors::columns::SectionsOfGet;
use coprocessors::row::ReadColumns;
use coprocessors::rows::{FilteredDecoder, FilteredRows, StoredRows};
use parking_lot::RwLock;
use store::read_ahead::Producer;
use store::transaction::TableReader;
use store::{CellBatch, Get, TimeRange};
use types::Batch;
use types::vector::{BATCH_BYTES, BATCH_ROWS};

use crate::batch_buffer::byte_count;
use crate::error::{Error, Result};
use crate::exec::Context;
use crate::exec::range_reader::RangeReader;
use crate::exec::stage::{Pipeline, PipelineStage};
use crate::plan::scan::{BaseTableFetchNode, ScanNode};

/// Number of completely filtered batches after which a thread yields its execution slot.
const BATCHES_REFUSED: usize = 16;

/// Row stage of a scan: decodes, filters and fetches from the base table.
pub(super) struct RowStage {
    /// Scan node.
    node: Arc<ScanNode>,
    /// Decoder and filter of the path's rows.
    decoder: FilteredDecoder,
    /// Base-table fetch for index entries.
    lookup: Option<BaseTableFetch>,
    /// Time range of the versions of fetched rows.
    time_range: TimeRange,
    context: Arc<Context>,
    /// Stages that process the scan's batches.
    after: RwLock<Vec<Arc<dyn PipelineStage>>>,
}

/// Base-table fetch by the keys in index entries.
struct BaseTableFetch {
    table: TableReader,
    decoder: FilteredDecoder,
}

/// Reader of a scan partition; see the module.
pub(super) struct ScanPartitionReader {
    /// Source of stored rows.
    pub reader: RangeReader,
    /// Row stage; `None`: the rows are returned undecoded.
    pub stage: Option<Arc<RowStage>>,
    /// Current rows.
    pub rows: PathRows,
    /// Batch in process by the stages of parent nodes.
    pub pipeline: Pipeline,
}

/// Rows of a path, then the base-table rows of index entries among them: a few at a time if they
/// are long.
#[derive(Default)]
pub(super) struct PathRows {
    /// Current rows.
    pub stored: StoredRows,
    /// Gets of the base-table rows.
    gets: Vec<Get>,
    /// Number of executed gets.
    made: usize,
    /// Error of a condition on the entry after these.
    failure: Option<types::Error>,
}

impl PathRows {
    /// Returns whether some base-table rows were not fetched yet.
    pub(super) fn has_more(&self) -> bool {
        self.made < self.gets.len()
    }
}

/// Result of reading some rows.
pub(super) enum PartitionRows {
    /// Undecoded rows.
    Cells(CellBatch),
    /// Output batches of the scan.
    Batches(Vec<Batch>),
    /// No row passed the filter for a while.
    Nothing,
}

impl RowStage {
    /// Opens the row stage of a scan.
    pub(super) fn open(
        node: &Arc<ScanNode>,
        time_range: TimeRange,
        context: &Arc<Context>,
    ) -> Result<RowStage> {
        let lookup = match &node.lookup {
            None => None,
            Some(lookup) => Some(BaseTableFetch {
                table: context.row_reader(node)?,
                decoder: FilteredDecoder::new(
                    &node.table.layout,
                    &lookup.read,
                    lookup.filter.as_ref(),
                )?,
            }),
        };
        Ok(RowStage {
            node: Arc::clone(node),
            decoder: FilteredDecoder::new(&node.path.layout, &node.read, node.filter.as_ref())?,
            lookup,
            time_range,
            context: Arc::clone(context),
            after: RwLock::default(),
        })
    }

    /// Returns the cells to read along the path.
    pub(super) fn read_columns(&self) -> ReadColumns {
        self.decoder.read_columns()
    }

    /// Returns the value sections that gets along the path read: for an index entry with
    /// base-table fetch, all.
    pub(super) fn sections(&self) -> Result<SectionsOfGet> {
        match self.lookup {
            None => Ok(self.node.sections()?),
            Some(_) => Ok(None),
        }
    }

    /// Decodes, filters and fetches. With a base-table fetch, replaces `rows` by the fetched
    /// rows; while they [have more](PathRows::has_more), the next call continues with the same
    /// entries. `None`: no row qualifies.
    pub(super) fn process(&self, rows: &mut PathRows) -> Result<Option<FilteredRows>> {
        let mut wanted = self.wanted_until(rows)?;
        match wanted.as_mut().and_then(|wanted| wanted.failure.take()) {
            Some(failure) => Err(failure.into()),
            None => Ok(wanted),
        }
    }

    /// Like [`RowStage::process`]; if a condition fails, also returns the rows before the failure.
    pub(super) fn wanted_until(&self, rows: &mut PathRows) -> Result<Option<FilteredRows>> {
        if !rows.has_more() {
            let mut passed = self.decoder.decode_until(&rows.stored, &self.context.eval)?;
            let (Some(entries), Some(lookup)) = (passed.as_mut(), &self.lookup) else {
                return Ok(passed);
            };
            rows.failure = entries.failure.take();
            (rows.gets, rows.made) = (self.gets(&entries.batch, lookup)?, 0);
        }
        let Some(lookup) = &self.lookup else { return Ok(None) };
        rows.stored.clear();
        let (stored, gets, made) = (&mut rows.stored, &rows.gets[rows.made..], &mut rows.made);
        stored.add_cells(|cells| {
            let read = lookup.table.multi_get_some(gets, BATCH_BYTES, cells);
            read.map(|count| *made += count)
        })?;
        let failure = if rows.has_more() { None } else { rows.failure.take() };
        match (lookup.decoder.decode_until(&rows.stored, &self.context.eval)?, failure) {
            (Some(found), failure) => {
                let failure = found.failure.or(failure);
                Ok(Some(FilteredRows { failure, ..found }))
            }
            (None, Some(failure)) => Err(failure.into()),
            (None, None) => Ok(None),
        }
    }

    /// Returns the gets of the base-table rows of index entries.
    fn gets(&self, entries: &Batch, lookup: &BaseTableFetch) -> Result<Vec<Get>> {
        let Some(BaseTableFetchNode { key: columns, .. }) = &self.node.lookup else {
            return Ok(Vec::new());
        };
        let (read, sections) = (lookup.decoder.read_columns(), self.node.sections()?);
        let mut key = Vec::with_capacity(columns.len());
        let get = |row: usize| {
            key.clear();
            key.extend(columns.iter().map(|&column| entries.columns[column].datum(row)));
            let row = self.node.table.layout.encode_key_values(&key)?;
            let (sections, time_range) = (sections.clone(), self.time_range);
            Ok(Get { sections, time_range, ..read.get(Get::new(row)) })
        };
        (0..entries.row_count).map(get).collect()
    }

    /// Returns the output columns of the scan for these rows.
    pub(super) fn output(&self, wanted: &Batch) -> Batch {
        let columns = self.node.output.iter().map(|&column| Arc::clone(&wanted.columns[column]));
        Batch { columns: columns.collect(), row_count: wanted.row_count }
    }
}

impl RowStage {
    /// Adds a stage for the scan's output batches.
    pub(super) fn attach(&self, stage: &Arc<dyn PipelineStage>) {
        self.after.write().push(Arc::clone(stage));
    }

    /// Returns the output columns of these rows as input of the attached stages.
    pub(super) fn pipeline(&self, wanted: &Batch) -> Pipeline {
        Pipeline::of(self.output(wanted))
    }

    /// Returns the next batch from the attached stages.
    pub(super) fn staged(&self, pipeline: &mut Pipeline) -> Result<Option<Batch>> {
        pipeline.next(&self.after.read(), &self.context)
    }

    /// Returns the next batches, up to about a mebibyte.
    fn some_staged(&self, pipeline: &mut Pipeline) -> Result<Vec<Batch>> {
        let (mut batches, mut bytes) = (Vec::new(), 0);
        while bytes < BATCH_BYTES
            && let Some(batch) = self.staged(pipeline)?
        {
            bytes += byte_count(&batch);
            batches.push(batch);
        }
        Ok(batches)
    }
}

impl Producer for ScanPartitionReader {
    type Item = PartitionRows;
    type Error = Error;

    fn next(&mut self) -> Result<Option<PartitionRows>> {
        let _turn = self.reader.turn();
        let Some(stage) = &self.stage else {
            let mut cells = CellBatch::new();
            let some = self.reader.next_cells(BATCH_ROWS, &mut cells)?;
            return Ok(some.then_some(PartitionRows::Cells(cells)));
        };
        let mut made = PartitionRows::Nothing;
        for _ in 0..BATCHES_REFUSED {
            let batches = stage.some_staged(&mut self.pipeline)?;
            if !batches.is_empty() {
                made = PartitionRows::Batches(batches);
                break;
            }
            let rows = &mut self.rows;
            if !rows.has_more() && !self.reader.next(BATCH_ROWS, &mut rows.stored)? {
                return Ok(None);
            }
            if let Some(wanted) = stage.process(rows)? {
                self.pipeline = stage.pipeline(&wanted.batch);
            }
        }
        if !self.rows.has_more() {
            self.rows = PathRows::default();
        }
        Ok(Some(made))
    }

    fn byte_count(rows: &PartitionRows) -> usize {
        match rows {
            PartitionRows::Cells(cells) => cells.byte_count(),
            PartitionRows::Batches(batches) => batches.iter().map(byte_count).sum(),
            PartitionRows::Nothing => 0,
        }
    }
}
