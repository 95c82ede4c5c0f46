//! External merge sort: sorted runs on disk and their merge.
//!
//! A merge reads as many runs at once as `work_mem` allows, with a small batch of each in memory;
//! more runs are merged in several passes. Equal rows are returned in the order of their runs,
//! which is their input order.

use std::cmp::Ordering;
use std::sync::Arc;

use types::vector::{BATCH_BYTES, BATCH_ROWS, RowSizes};
use types::{Batch, DataType, Vector};

use crate::batch_buffer::byte_count;
use crate::error::Result;
use crate::exec::Context;
use crate::exec::row_order::RowOrder;
use crate::spill::{SpillFile, SpillReader, SpillWriter};

/// Approximate batch size of a run in bytes.
const RUN_BATCH_BYTES: usize = 32 << 10;
/// Approximate memory for reading a run, in bytes: its batch and its read buffer.
const RUN_BYTES: usize = 128 << 10;
/// Minimum and maximum number of runs that are merged at once.
const FAN_IN: std::ops::RangeInclusive<usize> = 4..=512;
const _: () = assert!(*FAN_IN.start() >= 2, "a merge of one run would not end");

/// Writer of a run.
pub(super) struct RunWriter {
    writer: SpillWriter,
}

/// Merge of runs.
pub(super) struct MergeRuns {
    order: Arc<RowOrder>,
    runs: Vec<Run>,
    /// Heap of the runs that have rows, with the first row on top.
    heap: Vec<usize>,
}

struct Run {
    reader: SpillReader,
    batch: Batch,
    row: usize,
}

impl RunWriter {
    /// Creates a run of rows with columns of these types.
    pub(super) fn create(types: &Arc<[DataType]>, context: &Context) -> Result<RunWriter> {
        Ok(RunWriter { writer: context.spill.create(types)? })
    }

    /// Appends rows, which sort after those before.
    pub(super) fn add(&mut self, batch: &Batch) -> Result<()> {
        let bytes = byte_count(batch);
        let pieces = bytes.div_ceil(RUN_BATCH_BYTES).max(1);
        let piece_rows = batch.row_count.div_ceil(pieces).max(1);
        let rows: Vec<u32> = (0..batch.row_count as u32).collect();
        let sizes = RowSizes::of(&batch.columns);
        let mut rest = &rows[..];
        while !rest.is_empty() {
            let some = rest.iter().take(piece_rows).map(|row| *row as usize);
            let (piece, others) = rest.split_at(sizes.len_within(RUN_BATCH_BYTES, some));
            self.writer.add(&batch.take(piece))?;
            rest = others;
        }
        Ok(())
    }

    /// Finishes the run.
    pub(super) fn finish(self) -> Result<Arc<SpillFile>> {
        self.writer.finish()
    }
}

/// Merges runs until the remaining ones can be merged at once.
pub(super) fn merge_until(
    mut runs: Vec<Arc<SpillFile>>,
    order: &Arc<RowOrder>,
    context: &Context,
) -> Result<Vec<Arc<SpillFile>>> {
    loop {
        // A batch of a run exists twice while it is read.
        let largest = runs.iter().map(|run| 2 * run.batch_bytes_max()).max().unwrap_or(0);
        let fan_in = context.work_mem() / largest.max(RUN_BYTES);
        let fan_in = fan_in.clamp(*FAN_IN.start(), *FAN_IN.end());
        if runs.len() <= fan_in {
            return Ok(runs);
        }
        let mut merged = Vec::with_capacity(runs.len().div_ceil(fan_in));
        for group in runs.chunks(fan_in) {
            let mut merge = MergeRuns::open(group, order)?;
            let mut run = RunWriter::create(&order.types, context)?;
            while let Some(batch) = merge.next()? {
                context.check()?;
                run.add(&batch)?;
            }
            merged.push(run.finish()?);
        }
        runs = merged;
    }
}

impl MergeRuns {
    /// Opens a merge.
    pub(super) fn open(files: &[Arc<SpillFile>], order: &Arc<RowOrder>) -> Result<MergeRuns> {
        let mut runs = Vec::with_capacity(files.len());
        for file in files {
            let mut reader = file.reader()?;
            if let Some(batch) = reader.next_batch()? {
                runs.push(Run { reader, batch, row: 0 });
            }
        }
        let heap = (0..runs.len()).collect();
        let mut merge = MergeRuns { order: Arc::clone(order), runs, heap };
        for place in (0..merge.heap.len() / 2).rev() {
            merge.sink(place);
        }
        Ok(merge)
    }

    /// Returns the next rows; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Batch>> {
        let mut columns: Vec<Vector> =
            self.order.types.iter().map(|data_type| Vector::new(data_type, BATCH_ROWS)).collect();
        let (mut row_count, mut bytes) = (0, 0);
        while row_count < BATCH_ROWS && bytes < BATCH_BYTES {
            let Some(&first) = self.heap.first() else { break };
            let run = &mut self.runs[first];
            let from = run.row;
            // Consecutive rows of one run are copied together.
            loop {
                self.runs[first].row += 1;
                row_count += 1;
                let run = &self.runs[first];
                if run.row == run.batch.row_count || row_count == BATCH_ROWS || !self.stays_first()
                {
                    break;
                }
            }
            let run = &mut self.runs[first];
            for (column, of_run) in columns.iter_mut().zip(&run.batch.columns) {
                column.append_rows(of_run, from..run.row);
            }
            bytes += byte_count(&run.batch) * (run.row - from) / run.batch.row_count;
            if run.row == run.batch.row_count {
                match run.reader.next_batch()? {
                    Some(batch) => (run.batch, run.row) = (batch, 0),
                    None => {
                        self.heap.swap_remove(0);
                    }
                }
            }
            self.sink(0);
        }
        debug_assert!(
            (1..row_count).all(|row| {
                self.order.compare((&columns[..], row - 1), (&columns[..], row)).is_le()
            }),
            "a merge of runs returned rows that are not in order"
        );
        let columns = columns.into_iter().map(Arc::new).collect();
        Ok((row_count > 0).then_some(Batch { columns, row_count }))
    }

    /// Compares the next rows of two runs.
    fn compare(&self, a: usize, b: usize) -> Ordering {
        let (run, other) = (&self.runs[a], &self.runs[b]);
        let of_run = (&run.batch.columns[..], run.row);
        self.order.compare(of_run, (&other.batch.columns[..], other.row)).then(a.cmp(&b))
    }

    /// Returns whether the run on top of the heap is still first.
    fn stays_first(&self) -> bool {
        let first = self.heap[0];
        self.heap.iter().skip(1).take(2).all(|&other| self.compare(first, other).is_lt())
    }

    /// Restores the heap order below a position.
    fn sink(&mut self, mut place: usize) {
        loop {
            let children = (2 * place + 1)..(2 * place + 3).min(self.heap.len());
            let Some(child) = children.min_by(|a, b| self.compare(self.heap[*a], self.heap[*b]))
            else {
                return;
            };
            if self.compare(self.heap[place], self.heap[child]).is_lt() {
                return;
            }
            self.heap.swap(place, child);
            place = child;
        }
    }
}
