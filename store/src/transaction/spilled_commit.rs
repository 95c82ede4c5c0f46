//! Commit of a transaction that has spilled: its final state is written to store files of the
//! regions and adopted by one manifest edit, as in a bulk load.
//!
//! ```text
//!   time T   --> runs and memstores merged, final state to files at T
//!            --> validated  --> adopted at sequence S  --> runs removed
//! ```
//!
//! All tables of the transaction are committed this way, so that there is one edit. The cells
//! have the time at which the commit began, a unique timestamp above those of all commits whose
//! rows the transaction has locked. Until S is assigned no other transaction writes these rows,
//! so that their versions are in the order of their times.

use std::ops::Range;
use std::sync::Arc;

use crate::bulk_load::{BulkCell, BulkLoad, adopt_all};
use crate::cell::{KeyParts, Sequence, Timestamp, compare_keys};
use crate::descriptor::Durability;
use crate::engine::CommitClock;
use crate::error::{Error, Result, WriteFailure};
use crate::serializable::WriteSet;
use crate::transaction::Transaction;
use crate::transaction::final_state::for_each_cell;
use crate::transaction::staging::{StagedTable, Staging};

impl Transaction {
    /// Commits the spilled cells and those still in memory; returns the commit's clock, `None` if
    /// the final state is empty.
    pub(super) fn write_spilled(&self, staging: Staging) -> Result<Option<CommitClock>> {
        staging.check()?;
        let engine = &self.engine;
        engine.settle_tables()?;
        for staged in staging.tables() {
            // It may have been dropped and even re-created meanwhile.
            if !Arc::ptr_eq(&engine.table(staged.table.id())?, &staged.table) {
                return Err(Error::NoSuchTable(staged.table.id()));
            }
        }
        let now = Timestamp(engine.options().env.now_micros());
        let CommitClock { sequence, timestamp } =
            engine.wal.append(now, Durability::SkipWal, &[], None)?;
        engine.note_applied(sequence);
        let mut writes = self.write_set();
        let mut loads = Vec::with_capacity(staging.tables().len());
        for staged in staging.tables() {
            loads.push(self.load(staged, timestamp, &mut writes)?);
        }
        drop(staging);
        let pending = self.validate_spilled(writes)?;
        let adopted = adopt_all(loads).map_err(|error| self.outcome_of(error));
        let Some(place) = adopted? else { return Ok(None) };
        if let Some(pending) = pending {
            pending.committed(place.sequence);
        }
        Ok(Some(CommitClock { timestamp, ..place }))
    }

    /// Returns the error of a failed commit, marked if its outcome is unknown until a restart.
    fn outcome_of(&self, error: Error) -> Error {
        match self.engine.manifest.lock().is_settled() {
            true => error,
            false => {
                Error::LogFailed { failure: WriteFailure::from(&error), outcome_unknown: true }
            }
        }
    }

    /// Writes the final state of a table to files.
    fn load(
        &self,
        staged: &StagedTable,
        time: Timestamp,
        writes: &mut Option<WriteSet>,
    ) -> Result<BulkLoad> {
        let (engine, store) = (Arc::clone(&self.engine), Arc::clone(&self._store));
        let mut load = BulkLoad::begin_at(engine, store, Arc::clone(&staged.table), time);
        for (family, cells) in staged.families.iter().enumerate() {
            let Some(cells) = cells.as_ref().filter(|_| family < load.family_count()) else {
                continue;
            };
            load.rewind()?;
            let mut row = RowCells::new(family as u8, time);
            let cancelled = &self.options.cancelled;
            for_each_cell(cells, cancelled, |parts, value, (is_new_row, is_kept)| {
                if is_new_row {
                    row.add_to(&mut load)?;
                    if let Some(writes) = writes {
                        writes.add_row(staged.table.id(), parts.row);
                    }
                }
                if is_kept {
                    row.push(parts, value);
                }
                Ok(())
            })?;
            row.add_to(&mut load)?;
        }
        Ok(load)
    }
}

/// The cells of one row and family, with the time of the commit.
struct RowCells {
    family: u8,
    time: Timestamp,
    bytes: Vec<u8>,
    cells: Vec<StagedCell>,
}

/// Positions of key and value of a cell, and its staging sequence.
struct StagedCell {
    key: Range<usize>,
    value: Range<usize>,
    sequence: Sequence,
}

impl RowCells {
    fn new(family: u8, time: Timestamp) -> RowCells {
        RowCells { family, time, bytes: Vec::new(), cells: Vec::new() }
    }

    fn push(&mut self, parts: &KeyParts<'_>, value: &[u8]) {
        let timestamp = match parts.timestamp {
            Timestamp::LATEST => self.time,
            own => own,
        };
        let key_at = self.bytes.len();
        KeyParts { timestamp, sequence: Sequence(0), ..*parts }.encode(&mut self.bytes);
        let value_at = self.bytes.len();
        self.bytes.extend_from_slice(value);
        let (key, value) = (key_at..value_at, value_at..self.bytes.len());
        self.cells.push(StagedCell { key, value, sequence: parts.sequence });
    }

    /// Adds the row to a load, and clears it.
    fn add_to(&mut self, load: &mut BulkLoad) -> Result<()> {
        let RowCells { family, bytes, cells, .. } = self;
        let key = |cell: &StagedCell| &bytes[cell.key.clone()];
        if cells.len() > 1 {
            // Cells with the commit's time have another position among those with explicit
            // timestamps, and cell types count now that all have one sequence. Of two cells of
            // one version the later one stays.
            cells.sort_unstable_by(|a, b| {
                compare_keys(key(a), key(b)).then(b.sequence.cmp(&a.sequence))
            });
            cells.dedup_by(|later, earlier| key(later) == key(earlier));
        }
        for cell in cells.iter() {
            let Some(parts) = KeyParts::decode(key(cell)) else { continue };
            load.add(BulkCell {
                row: parts.row,
                family: *family,
                qualifier: parts.qualifier,
                timestamp: Some(parts.timestamp),
                cell_type: parts.cell_type,
                value: &bytes[cell.value.clone()],
            })?;
        }
        cells.clear();
        bytes.clear();
        Ok(())
    }
}
