//! Check of locked rows at REPEATABLE READ: the row is unchanged since the transaction's
//! snapshot, or the transaction fails with a serialization error.
//!
//! Checks of constraints read the newest commits, not the snapshot of their transaction
//! ([`Transaction::read_newest`]). A row that they only lock is unchanged since the newer
//! snapshot; a row that they change, also since the transaction's own. Source: the crosscheck
//! snapshot of PostgreSQL's `ri_PerformCheck`.
//!
//! FOR KEY SHARE only protects the key, so such a lock accepts a newer version of the row. The
//! caller, which knows the columns, checks if the change affects a key other than the row key.
//! Source: PostgreSQL's `heap_lock_tuple`.

use std::sync::Arc;

use crate::cell::{CellBatch, CellType, Sequence};
use crate::error::{Error, Result};
use crate::family_store::ReadSpec;
use crate::lock_mode::LockMode;
use crate::mutation::Consistency;
use crate::scan::Get;
use crate::snapshot::SnapshotPurpose;
use crate::table::Table;
use crate::transaction::{Isolation, Transaction, is_newer};

/// Reads of the newest commits by the present statement of a transaction, until it is dropped.
pub struct NewestReads<'a>(&'a Transaction);

impl Drop for NewestReads<'_> {
    fn drop(&mut self) {
        self.0.statement.lock().newest = None;
    }
}

impl Transaction {
    /// Lets the present statement read what is committed now, at REPEATABLE READ and in a TIMELINE
    /// session too. Otherwise its own snapshot shows that.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::snapshot`].
    pub fn read_newest(&self) -> Result<NewestReads<'_>> {
        let is_strong = self.consistency() == Consistency::Strong;
        if self.options.isolation != Isolation::ReadCommitted || !is_strong {
            let own = self.own_snapshot()?;
            self.engine.wait_visible(self.required_commit(), &self.options.cancelled)?;
            let newest = self.engine.open_snapshot(SnapshotPurpose::Statement, self.owner.0);
            if let Some(tracker) = &self.tracker
                && newest.sequence() > own
            {
                tracker.note_newer();
            }
            self.options.progress.see(newest.sequence());
            self.statement.lock().newest = Some(Arc::new(newest));
        }
        Ok(NewestReads(self))
    }

    /// Returns the snapshot of the transaction, or, at READ COMMITTED, of the present statement.
    pub(super) fn own_snapshot(&self) -> Result<Sequence> {
        let own = self.statement.lock().snapshot.clone();
        own.map_or_else(|| self.snapshot(), |snapshot| Ok(snapshot.sequence()))
    }

    /// Checks that a locked row is unchanged since the transaction's snapshot, or, if it was
    /// locked as [`LockMode::KeyShared`], that at least its row key is.
    pub(super) fn check_unchanged(
        &self,
        table: &Table,
        row: &[u8],
        (mode, is_gone): (LockMode, bool),
    ) -> Result<()> {
        let snapshot = match mode {
            LockMode::KeyShared => self.snapshot()?,
            _ => self.own_snapshot()?,
        };
        if is_newer(table, row, snapshot)? {
            let has_moved = self.has_moved(table.id(), row, snapshot);
            let is_there =
                !is_gone && self.get_newest(table, &Get::new(row), &mut CellBatch::new())?;
            let keeps_key = mode == LockMode::KeyShared && is_there && !has_moved;
            if !keeps_key || self.was_deleted(table, row, snapshot)? {
                let what = if has_moved || is_there { "update" } else { "delete" };
                return Err(Error::Serialization { detail: format!("due to concurrent {what}") });
            }
        }
        self.check_snapshot()
    }

    /// Returns whether a row was deleted since a snapshot, even if its key was reused.
    fn was_deleted(&self, table: &Table, row: &[u8], since: Sequence) -> Result<bool> {
        let get = Get { max_versions: u32::MAX, ..Get::new(row) };
        let spec = ReadSpec { raw: true, ..self.newest_spec(&get) };
        let mut cells = CellBatch::new();
        self.get_in(table, (&get, &spec, None), None, &mut cells)?;
        let is_marker = |kind| kind == CellType::DeleteFamily;
        Ok(cells
            .rows()
            .any(|row| row.cells().any(|cell| is_marker(cell.cell_type) && cell.sequence > since)))
    }
}
