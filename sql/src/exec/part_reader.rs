//! What is made of the rows of a scan, and a part of one, read by a region thread.
//!
//! All reading, look-ups too, is of what the statement saw when the scan was opened: a cursor goes
//! on with it however many statements come between.

use std::sync::Arc;

use coprocessors::columns::SectionsOfGet;
use coprocessors::rows::{FilteredDecoder, Passed, StoredRows};
use parking_lot::RwLock;
use store::read_ahead::Producer;
use store::transaction::TableReader;
use store::{CellBatch, Get};
use types::Batch;
use types::vector::{BATCH_BYTES, BATCH_ROWS};

use crate::batch_buffer::byte_count;
use crate::error::{Error, Result};
use crate::exec::Context;
use crate::exec::range_reader::RangeReader;
use crate::exec::stage::{Pipeline, Stage};
use crate::plan::scan::{Lookup, ScanNode};

/// Batches that a filter may refuse as a whole before the thread turns to others' work.
const BATCHES_REFUSED: usize = 16;

/// Makes batches of the rows of a scan: decoded, filtered, looked up.
pub(super) struct RowStage {
    /// The scan.
    node: Arc<ScanNode>,
    /// Decodes what it reads, and filters.
    decoder: FilteredDecoder,
    /// Where the rows are that index entries name.
    lookup: Option<RowLookup>,
    context: Arc<Context>,
    /// What is done with the batches that it yields.
    after: RwLock<Vec<Arc<dyn Stage>>>,
}

/// Reads the rows that index entries name.
struct RowLookup {
    table: TableReader,
    decoder: FilteredDecoder,
}

/// See the module.
pub(super) struct PartReader {
    /// Gives the rows.
    pub reader: RangeReader,
    /// What is made of them; `None`: nothing.
    pub stage: Option<Arc<RowStage>>,
    /// Those at hand.
    pub rows: PathRows,
    /// Those on their way through the stages above.
    pub pipeline: Pipeline,
}

/// Rows along a path, then those that index entries among them name: a few at a time if they are
/// long.
#[derive(Default)]
pub(super) struct PathRows {
    /// The rows at hand.
    pub stored: StoredRows,
    /// The gets of the rows that entries name.
    gets: Vec<Get>,
    /// The number of gets that were made.
    made: usize,
    /// The error of a condition over the entry after these.
    failure: Option<types::Error>,
}

impl PathRows {
    /// Returns whether entries name rows that were not read yet.
    pub(super) fn has_more(&self) -> bool {
        self.made < self.gets.len()
    }
}

/// What comes of some rows.
pub(super) enum PartRows {
    /// The rows as they are.
    Cells(CellBatch),
    /// What the scan yields.
    Batches(Vec<Batch>),
    /// No row was wanted, for a while.
    Nothing,
}

impl RowStage {
    /// Prepares what a scan does with its rows.
    pub(super) fn open(node: &Arc<ScanNode>, context: &Arc<Context>) -> Result<RowStage> {
        let lookup = match &node.lookup {
            None => None,
            Some(lookup) => Some(RowLookup {
                table: context.reader(node.table.id)?,
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
            context: Arc::clone(context),
            after: RwLock::default(),
        })
    }

    /// Returns the families to read along the path.
    pub(super) fn families(&self) -> Option<Vec<u8>> {
        self.decoder.families()
    }

    /// Returns what gets along the path look at of values: of an index entry with a look-up, all.
    pub(super) fn sections(&self) -> Result<SectionsOfGet> {
        match self.lookup {
            None => Ok(self.node.sections()?),
            Some(_) => Ok(None),
        }
    }

    /// Decodes, filters and looks up. Replaces `rows`, if there is a look-up, by those found; as
    /// long as they [have more](PathRows::has_more), the next call goes on with these entries.
    /// `None`: no row is wanted.
    pub(super) fn wanted(&self, rows: &mut PathRows) -> Result<Option<Passed>> {
        let mut wanted = self.wanted_until(rows)?;
        match wanted.as_mut().and_then(|wanted| wanted.failure.take()) {
            Some(failure) => Err(failure.into()),
            None => Ok(wanted),
        }
    }

    /// As [`RowStage::wanted`], with what is wanted before a condition fails.
    pub(super) fn wanted_until(&self, rows: &mut PathRows) -> Result<Option<Passed>> {
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
                Ok(Some(Passed { failure, ..found }))
            }
            (None, Some(failure)) => Err(failure.into()),
            (None, None) => Ok(None),
        }
    }

    /// Returns what reads the rows that index entries name.
    fn gets(&self, entries: &Batch, lookup: &RowLookup) -> Result<Vec<Get>> {
        let Some(Lookup { key: columns, .. }) = &self.node.lookup else { return Ok(Vec::new()) };
        let (families, sections) = (lookup.decoder.families(), self.node.sections()?);
        let mut key = Vec::with_capacity(columns.len());
        let get = |row: usize| {
            key.clear();
            key.extend(columns.iter().map(|&column| entries.columns[column].datum(row)));
            let row = self.node.table.layout.encode_key_values(&key)?;
            let (families, sections) = (families.clone(), sections.clone());
            Ok(Get { families, sections, ..Get::new(row) })
        };
        (0..entries.row_count).map(get).collect()
    }

    /// Returns the columns that the scan yields of these rows.
    pub(super) fn output(&self, wanted: &Batch) -> Batch {
        let columns = self.node.output.iter().map(|&column| Arc::clone(&wanted.columns[column]));
        Batch { columns: columns.collect(), row_count: wanted.row_count }
    }
}

impl RowStage {
    /// Has what the scan yields put through `stage` from now on.
    pub(super) fn attach(&self, stage: &Arc<dyn Stage>) {
        self.after.write().push(Arc::clone(stage));
    }

    /// Returns the columns that the scan yields of these rows, before the attached stages.
    pub(super) fn pipeline(&self, wanted: &Batch) -> Pipeline {
        Pipeline::of(self.output(wanted))
    }

    /// Returns the next batch that has gone through the attached stages.
    pub(super) fn staged(&self, pipeline: &mut Pipeline) -> Result<Option<Batch>> {
        pipeline.next(&self.after.read(), &self.context)
    }

    /// Returns the next batches of a mebibyte.
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

impl Producer for PartReader {
    type Item = PartRows;
    type Error = Error;

    fn next(&mut self) -> Result<Option<PartRows>> {
        let _turn = self.reader.turn();
        let Some(stage) = &self.stage else {
            let mut cells = CellBatch::new();
            let some = self.reader.next_cells(BATCH_ROWS, &mut cells)?;
            return Ok(some.then_some(PartRows::Cells(cells)));
        };
        let mut made = PartRows::Nothing;
        for _ in 0..BATCHES_REFUSED {
            let batches = stage.some_staged(&mut self.pipeline)?;
            if !batches.is_empty() {
                made = PartRows::Batches(batches);
                break;
            }
            let rows = &mut self.rows;
            if !rows.has_more() && !self.reader.next(BATCH_ROWS, &mut rows.stored)? {
                return Ok(None);
            }
            if let Some(wanted) = stage.wanted(rows)? {
                self.pipeline = stage.pipeline(&wanted.batch);
            }
        }
        if !self.rows.has_more() {
            self.rows = PathRows::default();
        }
        Ok(Some(made))
    }

    fn byte_count(rows: &PartRows) -> usize {
        match rows {
            PartRows::Cells(cells) => cells.byte_count(),
            PartRows::Batches(batches) => batches.iter().map(byte_count).sum(),
            PartRows::Nothing => 0,
        }
    }
}
