//! A part of a scan, read by a region thread: rows, decoded and filtered there where that needs
//! nothing but the row.

use std::sync::Arc;

use store::CellBatch;
use store::read_ahead::Producer;
use types::expr::EvalContext;
use types::vector::BATCH_ROWS;
use types::{Batch, Vector};

use crate::error::{Error, Result};
use crate::exec::decode::Decoder;
use crate::exec::range_reader::RangeReader;
use crate::plan::scan::ScanNode;

/// Batches that a filter may refuse as a whole before the thread turns to others' work.
const BATCHES_REFUSED: usize = 16;

/// Makes the columns that a scan yields of its rows.
pub(super) struct RowStage {
    /// The scan; it looks nothing up and locks nothing.
    pub node: Arc<ScanNode>,
    /// Decodes what it reads.
    pub decoder: Decoder,
    /// What its filter knows beside the row.
    pub eval: EvalContext,
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
    /// What the scan yields; perhaps nothing.
    Batch(Batch),
}

impl RowStage {
    /// Decodes and filters rows, and picks the columns that are yielded.
    fn process(&self, cells: &CellBatch) -> Result<Batch> {
        let batch = self.decoder.decode(cells, &self.eval)?;
        let kept = match &self.node.filter {
            None => None,
            Some(filter) => Some(filter.filter_batch(&batch, &self.eval)?),
        };
        let columns = self.node.output.iter().map(|&column| Arc::clone(&batch.columns[column]));
        let output = Batch { columns: columns.collect(), row_count: batch.row_count };
        Ok(match kept {
            Some(kept) if kept.len() < output.row_count => output.take(&kept),
            _ => output,
        })
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
            let batch = stage.process(&cells)?;
            if batch.row_count > 0 || refused >= BATCHES_REFUSED {
                return Ok(Some(PartRows::Batch(batch)));
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
        }
    }
}
