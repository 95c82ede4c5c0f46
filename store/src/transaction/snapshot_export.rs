//! Export and import of snapshots: one transaction exports its snapshot, others import it before
//! they read anything.
//!
//! Source: PostgreSQL's `ExportSnapshot` and `ImportSnapshot` (snapmgr.c). Uncommitted writes of
//! the exporting transaction are not visible to the others. A snapshot stays open while any
//! transaction reads it; it can be imported until the exporting transaction ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::Result;
use crate::snapshot::ExportedSnapshot;
use crate::transaction::{Isolation, Transaction};

impl Transaction {
    /// Exports the snapshot of the present statement, until the transaction ends.
    ///
    /// # Errors
    ///
    /// As for [`Transaction::snapshot`].
    pub fn export_snapshot(&self) -> Result<ExportedSnapshot> {
        let mut statement = self.statement.lock();
        let snapshot = match &statement.snapshot {
            Some(snapshot) => Arc::clone(snapshot),
            None => self.take_snapshot(&mut statement)?,
        };
        let number = self.exported.fetch_add(1, Ordering::AcqRel) + 1;
        let name = ExportedSnapshot { transaction: self.owner.0, number };
        self.engine.exported.add(name, snapshot);
        Ok(name)
    }

    /// Returns whether it has exported a snapshot.
    pub fn has_exported(&self) -> bool {
        self.exported.load(Ordering::Acquire) > 0
    }

    /// Sets the snapshot to one that another transaction has exported. Returns `false` if that
    /// transaction has ended.
    ///
    /// # Panics
    ///
    /// Unless the transaction is one at REPEATABLE READ that has read nothing yet.
    pub fn import_snapshot(&self, name: ExportedSnapshot) -> bool {
        assert_eq!(self.options.isolation, Isolation::RepeatableRead, "each statement has its own");
        let Some(snapshot) = self.engine.exported.find(name) else { return false };
        let mut statement = self.statement.lock();
        assert!(statement.snapshot.is_none(), "the transaction has read another snapshot");
        self.options.progress.see(snapshot.sequence());
        statement.now_micros = snapshot.opened_micros();
        statement.snapshot = Some(snapshot);
        true
    }

    /// Withdraws the exported snapshots, at the end of the transaction.
    pub(super) fn end_exports(&self) {
        if self.exported.swap(0, Ordering::AcqRel) > 0 {
            self.engine.exported.end(self.owner.0);
        }
    }
}
