//! What is made of the rows of a scan, and a part of one, read by a region thread.
//!
//! All reading, look-ups too, is of what the statement saw when the scan was opened: a cursor goes
//! on with it however many statements come between.

use std::sync::Arc;

use store::read_ahead::Producer;
use store::transaction::TableReader;
use store::{CellBatch, Get};
use types::expr::{EvalContext, Expr};
use types::vector::BATCH_ROWS;
use types::{Batch, Vector};

use crate::error::{Error, Result};
use crate::exec::Context;
use crate::exec::decode::Decoder;
use crate::exec::range_reader::RangeReader;
use crate::plan::scan::{Lookup, ScanNode};

/// Batches that a filter may refuse as a whole before the thread turns to others' work.
const BATCHES_REFUSED: usize = 16;

/// Makes batches of the rows of a scan: decoded, filtered, looked up.
pub(super) struct RowStage {
    /// The scan.
    node: Arc<ScanNode>,
    /// Decodes what it reads.
    decoder: Decoder,
    /// Where the rows are that index entries name.
    lookup: Option<RowLookup>,
    /// What its filters know beside the row.
    eval: EvalContext,
}

/// Reads the rows that index entries name.
struct RowLookup {
    table: TableReader,
    decoder: Decoder,
}

/// Rows that a scan wants.
pub(super) struct Wanted {
    /// The columns that were decoded last.
    pub batch: Batch,
    /// Those that pass the filters; `None`: all.
    pub selection: Option<Vec<u32>>,
}

/// See the module.
pub(super) struct PartReader {
    /// Gives the rows.
    pub reader: RangeReader,
    /// What is made of them; `None`: nothing.
    pub stage: Option<Arc<RowStage>>,
}

/// What comes of some rows.
pub(super) enum PartRows {
    /// The rows as they are.
    Cells(CellBatch),
    /// What the scan yields.
    Batch(Batch),
    /// No row was wanted, for a while.
    Nothing,
}

impl RowStage {
    /// Prepares what a scan does with its rows.
    pub(super) fn open(node: &Arc<ScanNode>, context: &Context) -> Result<RowStage> {
        let lookup = match &node.lookup {
            None => None,
            Some(lookup) => Some(RowLookup {
                table: context.reader(node.table.id)?,
                decoder: Decoder::new(&node.table.layout, &lookup.read),
            }),
        };
        Ok(RowStage {
            node: Arc::clone(node),
            decoder: Decoder::new(&node.path.layout, &node.read),
            lookup,
            eval: context.eval.clone(),
        })
    }

    /// Returns the families to read along the path.
    pub(super) fn families(&self) -> Option<Vec<u8>> {
        self.decoder.families()
    }

    /// Decodes, filters and looks up. Replaces `cells`, if there is a look-up, by the rows found.
    /// `None`: no row is wanted.
    pub(super) fn wanted(&self, cells: &mut CellBatch) -> Result<Option<Wanted>> {
        let batch = self.decoder.decode(cells, &self.eval)?;
        let wanted = self.filter(batch, self.node.filter.as_ref())?;
        let (Some(wanted), Some(lookup)) = (wanted.as_ref(), &self.lookup) else {
            return Ok(wanted);
        };
        let narrowed = wanted.selection.as_ref().map(|kept| wanted.batch.take(kept));
        let gets = self.gets(narrowed.as_ref().unwrap_or(&wanted.batch), lookup)?;
        cells.clear();
        lookup.table.multi_get(&gets, cells)?;
        let batch = lookup.decoder.decode(cells, &self.eval)?;
        self.filter(batch, self.node.lookup.as_ref().and_then(|lookup| lookup.filter.as_ref()))
    }

    fn filter(&self, batch: Batch, filter: Option<&Expr>) -> Result<Option<Wanted>> {
        let selection = match filter {
            None => None,
            Some(filter) => Some(filter.filter_batch(&batch, &self.eval)?),
        };
        let kept = selection.as_ref().map_or(batch.row_count, Vec::len);
        let selection = selection.filter(|_| kept < batch.row_count);
        Ok((kept > 0).then_some(Wanted { batch, selection }))
    }

    /// Returns what reads the rows that index entries name.
    fn gets(&self, entries: &Batch, lookup: &RowLookup) -> Result<Vec<Get>> {
        let Some(Lookup { key: columns, .. }) = &self.node.lookup else { return Ok(Vec::new()) };
        let families = lookup.decoder.families();
        let mut key = Vec::with_capacity(columns.len());
        let get = |row: usize| {
            key.clear();
            key.extend(columns.iter().map(|&column| entries.columns[column].datum(row)));
            let row = self.node.table.layout.encode_key_values(&key)?;
            Ok(Get { families: families.clone(), ..Get::new(row) })
        };
        (0..entries.row_count).map(get).collect()
    }

    /// Returns the columns that the scan yields of these rows.
    pub(super) fn output(&self, wanted: &Wanted) -> Batch {
        let batch = &wanted.batch;
        let columns = self.node.output.iter().map(|&column| Arc::clone(&batch.columns[column]));
        let output = Batch { columns: columns.collect(), row_count: batch.row_count };
        match &wanted.selection {
            Some(kept) => output.take(kept),
            None => output,
        }
    }
}

impl Producer for PartReader {
    type Item = PartRows;
    type Error = Error;

    fn next(&mut self) -> Result<Option<PartRows>> {
        let _turn = self.reader.turn()?;
        let mut cells = CellBatch::new();
        for refused in 1.. {
            if !self.reader.next(BATCH_ROWS, &mut cells)? {
                return Ok(None);
            }
            let Some(stage) = &self.stage else { break };
            if let Some(wanted) = stage.wanted(&mut cells)? {
                return Ok(Some(PartRows::Batch(stage.output(&wanted))));
            }
            if refused >= BATCHES_REFUSED {
                return Ok(Some(PartRows::Nothing));
            }
        }
        Ok(Some(PartRows::Cells(cells)))
    }

    fn byte_count(rows: &PartRows) -> usize {
        match rows {
            PartRows::Cells(cells) => cells.byte_count(),
            PartRows::Batch(batch) => {
                batch.columns.iter().map(|column: &Arc<Vector>| column.byte_count()).sum()
            }
            PartRows::Nothing => 0,
        }
    }
}
