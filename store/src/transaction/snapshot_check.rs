//! Check of locked rows at REPEATABLE READ: the row is unchanged since the transaction's
//! snapshot, or the transaction fails with a serialization error.
//!
//! FOR KEY SHARE only protects the key, so such a lock accepts a newer version of the row. The
//! caller, which knows the columns, checks if the change affects a key other than the row key.
//! Source: PostgreSQL's `heap_lock_tuple`.

use crate::cell::{CellBatch, CellType, Sequence};
use crate::error::{Error, Result};
use crate::family_store::ReadSpec;
use crate::lock_mode::LockMode;
use crate::mutation::Consistency;
use crate::scan::{Get, TimeRange};
use crate::table::Table;
use crate::transaction::{Transaction, is_newer};

impl Transaction {
    /// Checks that a locked row is unchanged since the transaction's snapshot, or, if it was
    /// locked as [`LockMode::KeyShared`], that at least its row key is.
    pub(super) fn check_unchanged(
        &self,
        table: &Table,
        row: &[u8],
        (mode, is_gone): (LockMode, bool),
    ) -> Result<()> {
        let snapshot = self.spec(TimeRange::ALL, 1, false)?.snapshot;
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
        self.get_in(table, (&get, &spec), Consistency::Strong, None, &mut cells)?;
        let is_marker = |kind| kind == CellType::DeleteFamily;
        Ok(cells
            .rows()
            .any(|row| row.cells().any(|cell| is_marker(cell.cell_type) && cell.sequence > since)))
    }
}
