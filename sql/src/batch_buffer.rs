//! Batch buffer with spilling to disk: materialised rows of WITH, cursors and RETURNING.
//!
//! ```text
//!   push ──> in memory ──more than the limit──> on disk ([`SpillHeap`])
//!   batch(n), pop_front  <── in insertion order
//! ```
//!
//! # Invariants
//!
//! 1. A batch is either in memory or on disk, and is written at most once. The counters of rows
//!    and of bytes in memory are the sums over the batches.
//! 2. A batch is read with the rows and columns with which it was pushed. Columns whose values
//!    cannot be read back without a type that the buffer does not know (arrays, composite values)
//!    stay in memory.
//!
//! `BatchBuffer::check` asserts 1 and `BatchBuffer::batch` 2 in debug builds.

use std::collections::VecDeque;
use std::sync::Arc;

use types::vector::VectorData;
use types::{Batch, DataType, Vector};

use crate::error::Result;
use crate::spill::{HeapPlace, SpillHeap, StatementSpill};

/// Memory limit of a buffer, and its spill area.
pub struct BufferLimit {
    /// Spill area for the batches beyond the limit.
    pub spill: Arc<StatementSpill>,
    /// Limit of the batches in memory, in bytes.
    pub bytes: usize,
}

/// Batch buffer; see the module.
#[derive(Default)]
pub struct BatchBuffer {
    /// Known types of the leading columns.
    types: Arc<[DataType]>,
    batches: VecDeque<BufferedBatch>,
    row_count: usize,
    /// Size of the batches in memory, in bytes.
    bytes: usize,
    heap: Option<SpillHeap>,
    /// Number of leading columns that are read; `None`: all.
    shown: Option<usize>,
}

enum BufferedBatch {
    Memory { batch: Batch, bytes: usize },
    Disk { place: HeapPlace, row_count: usize, types: Arc<[DataType]> },
}

impl BatchBuffer {
    /// Returns an empty buffer for batches whose leading columns have these types.
    pub fn new(types: Arc<[DataType]>) -> BatchBuffer {
        BatchBuffer { types, ..BatchBuffer::default() }
    }

    /// Returns the number of batches.
    pub fn len(&self) -> usize {
        self.batches.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Returns the number of rows.
    pub fn row_count(&self) -> usize {
        self.row_count
    }

    /// Returns the size of the batches in memory, in bytes.
    pub fn byte_count(&self) -> usize {
        self.bytes
    }

    /// Removes all batches.
    pub fn clear(&mut self) {
        self.batches.clear();
        (self.row_count, self.bytes, self.heap) = (0, 0, None);
    }

    /// Appends a batch to memory, regardless of the limit.
    pub fn push_small(&mut self, batch: Batch) {
        let bytes = byte_count(&batch);
        self.row_count += batch.row_count;
        self.bytes += bytes;
        self.batches.push_back(BufferedBatch::Memory { batch, bytes });
        self.check();
    }

    /// Appends a batch; spills it if memory would exceed the limit.
    ///
    /// # Errors
    ///
    /// I/O errors; `53400` past `temp_file_limit`.
    pub fn push(&mut self, batch: Batch, room: &BufferLimit) -> Result<()> {
        let bytes = byte_count(&batch);
        let types = match self.bytes + bytes <= room.bytes {
            true => None,
            false => self.types_of(&batch),
        };
        let Some(types) = types else {
            self.push_small(batch);
            return Ok(());
        };
        debug_assert_eq!(types.len(), batch.columns.len(), "types of the columns on disk");
        let heap = match &mut self.heap {
            Some(heap) => heap,
            none => none.insert(SpillHeap::create(&room.spill)?),
        };
        let (place, row_count) = (heap.add(&batch, &types)?, batch.row_count);
        self.row_count += row_count;
        self.batches.push_back(BufferedBatch::Disk { place, row_count, types });
        self.check();
        Ok(())
    }

    /// Asserts the first invariant of the module header in debug builds. Long buffers are checked
    /// at some lengths only.
    fn check(&self) {
        if !cfg!(debug_assertions) || !self.batches.len().is_power_of_two() {
            return;
        }
        let (mut row_count, mut bytes) = (0, 0);
        for batch in &self.batches {
            match batch {
                BufferedBatch::Memory { batch, bytes: own } => {
                    row_count += batch.row_count;
                    bytes += own;
                }
                BufferedBatch::Disk { row_count: own, .. } => {
                    debug_assert!(self.heap.is_some(), "a batch on disk without a file");
                    row_count += own;
                }
            }
        }
        debug_assert_eq!((self.row_count, self.bytes), (row_count, bytes), "rows and bytes");
    }

    /// Returns a batch by its number.
    ///
    /// # Errors
    ///
    /// I/O errors.
    pub fn batch(&mut self, number: usize) -> Result<Option<Batch>> {
        let batch = match (self.batches.get(number), &mut self.heap) {
            (Some(BufferedBatch::Memory { batch, .. }), _) => batch.clone(),
            (Some(BufferedBatch::Disk { place, row_count, types }), Some(heap)) => {
                let batch = heap.read(*place, types)?;
                debug_assert_eq!(
                    (batch.row_count, batch.columns.len()),
                    (*row_count, types.len()),
                    "rows and columns of a batch that was read from disk"
                );
                batch
            }
            _ => return Ok(None),
        };
        Ok(Some(self.shown(batch)))
    }

    /// Returns the number of rows of a batch.
    pub fn rows_of(&self, number: usize) -> usize {
        match self.batches.get(number) {
            Some(BufferedBatch::Memory { batch, .. }) => batch.row_count,
            Some(BufferedBatch::Disk { row_count, .. }) => *row_count,
            None => 0,
        }
    }

    /// Returns the last batch.
    ///
    /// # Errors
    ///
    /// I/O errors.
    pub fn last(&mut self) -> Result<Option<Batch>> {
        match self.len().checked_sub(1) {
            Some(last) => self.batch(last),
            None => Ok(None),
        }
    }

    /// Truncates batches to their first `column_count` columns when they are read.
    pub fn truncate_columns(&mut self, column_count: usize) {
        self.shown = Some(column_count);
    }

    fn shown(&self, mut batch: Batch) -> Batch {
        if let Some(count) = self.shown {
            batch.columns.truncate(count);
        }
        batch
    }

    /// Removes and returns the first batch.
    ///
    /// # Errors
    ///
    /// I/O errors.
    pub fn pop_front(&mut self) -> Result<Option<Batch>> {
        let batch = self.batch(0)?;
        self.remove_front();
        Ok(batch)
    }

    /// Removes the first batch without reading it.
    pub fn remove_front(&mut self) {
        self.row_count -= self.rows_of(0);
        if let Some(BufferedBatch::Memory { bytes, .. }) = self.batches.pop_front() {
            self.bytes -= bytes;
        }
        self.check();
    }

    /// Returns the types of all columns of a batch, if they are known.
    fn types_of(&self, batch: &Batch) -> Option<Arc<[DataType]>> {
        let count = batch.columns.len();
        if self.types.len() == count {
            return Some(Arc::clone(&self.types));
        }
        let known = self.types.iter().cloned().map(Some).chain(std::iter::repeat(None));
        batch
            .columns
            .iter()
            .zip(known)
            .map(|(column, known)| known.or_else(|| type_of(column)))
            .collect::<Option<Vec<_>>>()
            .map(Arc::from)
    }
}

impl FromIterator<Batch> for BatchBuffer {
    /// Collects batches that are small or already in memory.
    fn from_iter<I: IntoIterator<Item = Batch>>(batches: I) -> BatchBuffer {
        let mut buffer = BatchBuffer::default();
        batches.into_iter().for_each(|batch| buffer.push_small(batch));
        buffer
    }
}

/// Returns the size of a batch in bytes.
pub(crate) fn byte_count(batch: &Batch) -> usize {
    batch.columns.iter().map(|column| column.byte_count()).sum()
}

/// Returns a type with the same in-memory representation as a column, if the data determine one.
fn type_of(column: &Vector) -> Option<DataType> {
    Some(match &column.data {
        VectorData::Bool(_) => DataType::Bool,
        VectorData::Int2(_) => DataType::Int2,
        VectorData::Int4(_) => DataType::Int4,
        VectorData::Int8(_) => DataType::Int8,
        VectorData::Float4(_) => DataType::Float4,
        VectorData::Float8(_) => DataType::Float8,
        VectorData::Numeric(_) => DataType::Numeric,
        VectorData::Text(_) => DataType::Text,
        VectorData::Bytea(_) => DataType::Bytea,
        VectorData::Date(_) => DataType::Date,
        VectorData::Time(_) => DataType::Time,
        VectorData::Timestamp(_) => DataType::Timestamp,
        VectorData::Timestamptz(_) => DataType::Timestamptz,
        VectorData::Interval(_) => DataType::Interval,
        VectorData::Uuid(_) => DataType::Uuid,
        VectorData::Nested(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spill::SpillArea;
    use crate::spill::tests::batch;
    use store::env::RealEnv;

    #[test]
    fn buffered_batches_keep_order_across_spill() {
        let directory = tempfile::tempdir().unwrap();
        let files = || std::fs::read_dir(directory.path()).unwrap().count();
        let area = SpillArea::open(Arc::new(RealEnv::default()), directory.path().into()).unwrap();
        let spill = area.begin(None);
        let batches: Vec<Batch> = (0..100).map(|n| batch(n * 100..n * 100 + n + 1)).collect();
        for (known, bytes) in [(true, 0), (false, 0), (false, 20_000), (true, usize::MAX)] {
            let types = [DataType::Int8, DataType::Text];
            let mut buffer = BatchBuffer::new(Arc::from(&types[..if known { 2 } else { 0 }]));
            let room = BufferLimit { spill: Arc::clone(&spill), bytes };
            for (number, batch) in batches.iter().enumerate() {
                buffer.push(batch.clone(), &room).unwrap();
                let earlier = number / 2;
                assert_eq!(buffer.batch(earlier).unwrap().as_ref(), Some(&batches[earlier]));
                assert_eq!(buffer.rows_of(earlier), earlier + 1);
            }
            assert_eq!((buffer.len(), buffer.row_count()), (100, 5050));
            assert!(buffer.byte_count() <= bytes);
            assert_eq!(files(), usize::from(bytes < usize::MAX));
            for batch in &batches {
                assert_eq!(buffer.pop_front().unwrap().as_ref(), Some(batch));
            }
            assert!(buffer.pop_front().unwrap().is_none());
            assert_eq!((buffer.row_count(), buffer.byte_count()), (0, 0));
            drop(buffer);
            assert_eq!(files(), 0);
        }
    }
}
