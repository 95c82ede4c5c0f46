//! Duplicate elimination for WITH RECURSIVE … UNION: the set of rows returned so far, with
//! spilling.
//!
//! The rows are in memory up to `work_mem`. Beyond it they are moved to a [`SpillHeap`], in
//! frames of at most [`FRAME_ROWS`] rows; an index from the hash of a row to its frame remains in
//! memory. A row with a new hash is new. A row with a known hash is compared with the rows of its
//! frame; rows of an input batch with the same frame are compared together, so that a frame is
//! read at most once per batch.
//!
//! # Invariants
//!
//! 1. A returned row is in the heap, with its hash in the index, or in `rows`. While there is a
//!    heap, `rows` only has rows that share their hash with another row. `SeenRows::insert` asserts
//!    in debug builds that both together have as many rows as were returned.
//!
//! The index takes about 30 bytes per row; it does not spill.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use ahash::AHashMap;
use types::aggregate::{GroupTable, key_hashes};
use types::vector::RowSizes;
use types::{Batch, DataType, Vector};

use crate::error::Result;
use crate::exec::distinct::first_of_each;
use crate::exec::{Context, memory};
use crate::spill::{HeapPlace, SpillHeap};

/// Number of rows that are written and read together.
const FRAME_ROWS: usize = 128;

/// Set of returned rows; see the module.
pub(super) struct SeenRows {
    types: Arc<[DataType]>,
    rows: GroupTable,
    spilled: Option<SpilledRows>,
    /// Number of returned rows.
    returned: usize,
    /// Buffer reused for each batch.
    groups: Vec<u32>,
}

/// Rows on disk, with their index.
struct SpilledRows {
    heap: SpillHeap,
    frames: Vec<HeapPlace>,
    /// Frame of each row, by the row's hash.
    frame_of: AHashMap<u64, u32>,
}

fn columns(batch: &Batch) -> Vec<&Vector> {
    batch.columns.iter().map(Arc::as_ref).collect()
}

impl SeenRows {
    /// Returns an empty set of rows with columns of these types.
    pub(super) fn new(types: &[DataType]) -> SeenRows {
        let rows = GroupTable::new(types);
        SeenRows { types: types.into(), rows, spilled: None, returned: 0, groups: Vec::new() }
    }

    /// Inserts the rows of a batch and returns the new ones, in order; `None` if there are none.
    ///
    /// # Errors
    ///
    /// I/O errors; 53200 if the index exceeds the memory limit of an operator.
    pub(super) fn insert(&mut self, batch: &Batch, context: &Context) -> Result<Option<Batch>> {
        let new = match self.spilled.take() {
            None => {
                let before = self.rows.group_count();
                self.rows.assign(&columns(batch), batch.row_count, &mut self.groups);
                first_of_each(&self.groups, before)
            }
            Some(mut spilled) => {
                let new = self.insert_spilled(batch, &mut spilled, context);
                self.spilled = Some(spilled);
                new?
            }
        };
        self.limit_memory(context)?;
        self.returned += new.len();
        let on_disk = self.spilled.as_ref().map_or(0, |spilled| spilled.frame_of.len());
        debug_assert_eq!(self.returned, on_disk + self.rows.group_count(), "returned rows");
        Ok((!new.is_empty()).then(|| batch.take(&new)))
    }

    /// Moves the rows to disk if they exceed `work_mem`.
    fn limit_memory(&mut self, context: &Context) -> Result<()> {
        let bytes = self.rows.byte_count();
        if let Some(spilled) = &self.spilled {
            return memory::check(bytes + spilled.byte_count(), context.work_mem());
        }
        if bytes <= context.work_mem() || self.types.is_empty() {
            return Ok(());
        }
        let rows = std::mem::replace(&mut self.rows, GroupTable::new(&self.types));
        let (frames, frame_of) = (Vec::new(), AHashMap::with_capacity(rows.group_count()));
        let mut spilled =
            SpilledRows { heap: SpillHeap::create(&context.spill)?, frames, frame_of };
        let row_count = rows.group_count();
        for from in (0..row_count).step_by(FRAME_ROWS) {
            context.check()?;
            let to = row_count.min(from + FRAME_ROWS);
            let columns = rows.keys(from..to).into_iter().map(Arc::new).collect();
            self.write(&Batch { columns, row_count: to - from }, &mut spilled)?;
        }
        self.spilled = Some(spilled);
        Ok(())
    }

    /// Writes new rows in frames; rows with a known hash go to `rows`.
    fn write(&mut self, batch: &Batch, spilled: &mut SpilledRows) -> Result<()> {
        let hashes = key_hashes(&columns(batch), &self.types, batch.row_count);
        let rows: Vec<u32> = (0..batch.row_count as u32).collect();
        let sizes = RowSizes::of(&batch.columns);
        for frame_rows in rows.chunks(FRAME_ROWS).flat_map(|rows| sizes.batches(rows)) {
            let frame = spilled.frames.len() as u32;
            let (mut unique, mut colliding) = (Vec::new(), Vec::new());
            for &row in frame_rows {
                match spilled.frame_of.entry(hashes[row as usize]) {
                    Entry::Vacant(entry) => {
                        entry.insert(frame);
                        unique.push(row);
                    }
                    Entry::Occupied(_) => colliding.push(row),
                }
            }
            let colliding = batch.take(&colliding);
            self.rows.assign(&columns(&colliding), colliding.row_count, &mut self.groups);
            if !unique.is_empty() {
                spilled.frames.push(spilled.heap.add(&batch.take(&unique), &self.types)?);
            }
        }
        Ok(())
    }

    /// Inserts the rows of a batch after spilling; returns the positions of the new ones,
    /// ascending.
    fn insert_spilled(
        &mut self,
        batch: &Batch,
        spilled: &mut SpilledRows,
        context: &Context,
    ) -> Result<Vec<u32>> {
        let mut distinct = GroupTable::new(&self.types);
        distinct.assign(&columns(batch), batch.row_count, &mut self.groups);
        let first = first_of_each(&self.groups, 0);
        self.rows.find(&columns(batch), batch.row_count, &mut self.groups);
        let hashes = key_hashes(&columns(batch), &self.types, batch.row_count);
        let mut new = Vec::new();
        let mut candidates: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for row in first.into_iter().filter(|row| self.groups[*row as usize] == u32::MAX) {
            match spilled.frame_of.get(&hashes[row as usize]) {
                Some(frame) => candidates.entry(*frame).or_default().push(row),
                None => new.push(row),
            }
        }
        for (frame, rows) in candidates {
            context.check()?;
            let frame = spilled.heap.read(spilled.frames[frame as usize], &self.types)?;
            debug_assert!(frame.row_count > 0, "a frame without rows");
            let mut known = GroupTable::new(&self.types);
            known.assign(&columns(&frame), frame.row_count, &mut self.groups);
            let some = batch.take(&rows);
            known.find(&columns(&some), some.row_count, &mut self.groups);
            let is_new = |(row, group): (u32, &u32)| (*group == u32::MAX).then_some(row);
            new.extend(rows.into_iter().zip(&self.groups).filter_map(is_new));
        }
        new.sort_unstable();
        self.write(&batch.take(&new), spilled)?;
        Ok(new)
    }
}

impl SpilledRows {
    /// Returns the size of the index in bytes.
    fn byte_count(&self) -> usize {
        self.frame_of.capacity() * (size_of::<(u64, u32)>() + 1)
            + self.frames.capacity() * size_of::<HeapPlace>()
    }
}
