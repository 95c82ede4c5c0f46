//! Hash partitions on disk: rows split by the hashes of their keys, so that equal keys are in one
//! partition.
//!
//! Hash join, aggregation, DISTINCT and set operations that exceed memory process their input
//! partition by partition. A partition that does not fit is split again at the next level, by
//! other bits of the hashes.

use std::sync::Arc;

use types::vector::{BATCH_BYTES, BATCH_ROWS};
use types::{Batch, DataType};

use crate::error::Result;
use crate::exec::join_core::ColumnRows;
use crate::exec::{Context, Operator};
use crate::spill::{SpillFile, SpillReader, SpillWriter};

/// Number of partitions of one level.
const FAN_OUT: usize = 32;
/// Number of hash bits that select a partition.
const FAN_OUT_BITS: u32 = FAN_OUT.trailing_zeros();
/// Last level: what still does not fit has one key, or a few.
pub(super) const LEVEL_MAX: u32 = 6;
const _: () = assert!(FAN_OUT.is_power_of_two(), "the bits of a hash select a partition");
const _: () = assert!((LEVEL_MAX + 1) * FAN_OUT_BITS <= u64::BITS, "levels need separate bits");

/// Writers of the partitions of one level.
pub(super) struct SpillPartitions {
    types: Arc<[DataType]>,
    level: u32,
    writers: Vec<Option<SpillWriter>>,
}

/// Scan of a spill file as an operator; without a file it is empty.
pub(super) struct SpillScan {
    types: Arc<[DataType]>,
    reader: Option<SpillReader>,
    context: Arc<Context>,
}

impl SpillPartitions {
    /// Returns empty partitions of rows with columns of these types.
    pub(super) fn new(types: &Arc<[DataType]>, level: u32) -> SpillPartitions {
        debug_assert!(level <= LEVEL_MAX, "partitions of level {level}");
        let writers = (0..FAN_OUT).map(|_| None).collect();
        SpillPartitions { types: Arc::clone(types), level, writers }
    }

    /// Appends rows. `hashes`: the hashes of their keys.
    pub(super) fn add(&mut self, batch: &Batch, hashes: &[u64], context: &Context) -> Result<()> {
        debug_assert_eq!(batch.row_count, hashes.len(), "hashes of the rows");
        debug_assert_eq!(batch.columns.len(), self.types.len(), "columns of a partition");
        context.check()?;
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); FAN_OUT];
        for (row, hash) in (0u32..).zip(hashes) {
            rows[(hash >> (self.level * FAN_OUT_BITS)) as usize % FAN_OUT].push(row);
        }
        for (writer, rows) in self.writers.iter_mut().zip(rows) {
            if rows.is_empty() {
                continue;
            }
            let writer = match writer {
                Some(writer) => writer,
                None => writer.insert(context.spill.create(&self.types)?),
            };
            writer.add(&batch.take(&rows))?;
        }
        Ok(())
    }

    /// Finishes the partitions: one file for each that has rows.
    pub(super) fn finish(self) -> Result<Vec<Option<Arc<SpillFile>>>> {
        self.writers.into_iter().map(|writer| writer.map(SpillWriter::finish).transpose()).collect()
    }
}

impl SpillScan {
    /// Opens a file.
    pub(super) fn open(
        file: Option<&Arc<SpillFile>>,
        types: &Arc<[DataType]>,
        context: &Arc<Context>,
    ) -> Result<SpillScan> {
        let reader = file.map(SpillFile::reader).transpose()?;
        Ok(SpillScan { types: Arc::clone(types), reader, context: Arc::clone(context) })
    }
}

impl Operator for SpillScan {
    /// Partitions are written in small batches, which are combined again.
    fn next(&mut self) -> Result<Option<Batch>> {
        self.context.check()?;
        let Some(reader) = &mut self.reader else { return Ok(None) };
        let mut rows = ColumnRows::new(&self.types);
        while rows.row_count < BATCH_ROWS && rows.byte_count() < BATCH_BYTES {
            let Some(batch) = reader.next_batch()? else { break };
            rows.add(&batch);
        }
        Ok((rows.row_count > 0).then(|| rows.into_batch()))
    }
}
