//! From cells to column vectors, `_timestamp` included.

use std::sync::Arc;

use coprocessors::row::{decode_batch, families_of, vectors_for};
use store::{CellBatch, Timestamp};
use types::expr::EvalContext;
use types::rowcode::RowLayout;
use types::vector::VectorData;
use types::{Batch, Vector};

use crate::error::Result;
use crate::logical::TIMESTAMP_COLUMN;

/// Microseconds from 1970-01-01 to 2000-01-01: cells count from the one, SQL from the other.
pub(super) const EPOCH_MICROSECONDS: i64 = 946_684_800_000_000;

/// Decodes some columns of a layout.
pub(super) struct Decoder {
    layout: Arc<RowLayout>,
    /// The columns that are stored.
    stored: Vec<usize>,
    /// Where `_timestamp` goes.
    timestamps: Vec<usize>,
}

impl Decoder {
    /// Returns a decoder of `columns`, positions in the layout or
    /// [`TIMESTAMP_COLUMN`].
    pub(super) fn new(layout: &Arc<RowLayout>, columns: &[usize]) -> Decoder {
        let stored = columns.iter().copied().filter(|&column| column != TIMESTAMP_COLUMN).collect();
        let timestamps = columns
            .iter()
            .enumerate()
            .filter(|(_, column)| **column == TIMESTAMP_COLUMN)
            .map(|(position, _)| position)
            .collect();
        Decoder { layout: Arc::clone(layout), stored, timestamps }
    }

    /// Returns the families to read.
    pub(super) fn families(&self) -> Option<Vec<u8>> {
        families_of(&self.layout, &self.stored)
    }

    /// Decodes all rows.
    pub(super) fn decode(&self, cells: &CellBatch, eval: &EvalContext) -> Result<Batch> {
        let row_count = cells.row_count();
        let mut vectors = vectors_for(&self.layout, &self.stored, row_count);
        decode_batch(&self.layout, &self.stored, cells, &mut vectors)?;
        let mut columns: Vec<Arc<Vector>> = vectors.into_iter().map(Arc::new).collect();
        if !self.timestamps.is_empty() {
            let times = Arc::new(timestamps(cells, eval));
            for &position in &self.timestamps {
                columns.insert(position, Arc::clone(&times));
            }
        }
        Ok(Batch { columns, row_count })
    }
}

/// When each row was committed; a row that is not yet has the transaction's own time.
fn timestamps(cells: &CellBatch, eval: &EvalContext) -> Vector {
    let time = |row: store::RowRef<'_>| {
        let newest = row.cells().map(|cell| cell.timestamp).max();
        match newest {
            None | Some(Timestamp::LATEST) => eval.transaction_timestamp,
            Some(Timestamp(time)) => time.saturating_sub(EPOCH_MICROSECONDS),
        }
    };
    Vector { data: VectorData::Timestamptz(cells.rows().map(time).collect()), validity: None }
}
