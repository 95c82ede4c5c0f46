//! SERIALIZABLE transactions: tracking of reads and validation at commit; see
//! [`crate::serializable`].

use std::sync::Arc;

use crate::descriptor::TableId;
use crate::engine::{CommitWrites, Engine, UNPLACED};
use crate::error::{Error, Result};
use crate::lock::Owner;
use crate::mutation::{Consistency, Mutation};
use crate::serializable::{PendingCommit, ReadTracker, SerializableMode, Validation, WriteSet};
use crate::snapshot::{Snapshot, SnapshotPurpose};
use crate::table::Table;
use crate::transaction::{Isolation, Transaction, TransactionOptions, is_newer};
use crate::wal::CommitClock;

/// Returns the tracker that a transaction with these options needs. Replicas may show older rows
/// than the snapshot, so reads are restricted to primaries.
pub(super) fn tracker(
    engine: &Engine,
    options: &mut TransactionOptions,
) -> Option<Arc<ReadTracker>> {
    if !matches!(options.isolation, Isolation::Serializable(_)) {
        return None;
    }
    options.consistency = Consistency::Strong;
    Some(engine.serializable.tracker())
}

/// Registers a prepared SERIALIZABLE transaction after a restart.
pub(super) fn recover(engine: &Engine, owner: Owner, writes: &CommitWrites) {
    let tables: Vec<TableId> = engine.tables.load().keys().copied().collect();
    engine.serializable.recover(owner.0, &tables, write_set(engine, writes));
}

fn write_set(engine: &Engine, writes: &CommitWrites) -> WriteSet {
    let mut set = engine.serializable.write_set();
    for part in &writes.regions {
        let table = part.region.table();
        let mut before: Option<&[u8]> = None;
        for cell in part.cells.of(UNPLACED) {
            if before != Some(cell.key.row) {
                set.add_row(table, cell.key.row);
                before = Some(cell.key.row);
            }
        }
    }
    set.finish();
    set
}

impl Transaction {
    /// Opens a snapshot of what is visible now.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if the wait for a safe one was ended.
    pub(super) fn open_snapshot(&self, purpose: SnapshotPurpose) -> Result<Snapshot> {
        let open = || self.engine.open_snapshot(purpose, self.owner.0);
        let (Some(tracker), Isolation::Serializable(mode)) =
            (&self.tracker, self.options.isolation)
        else {
            return Ok(match self.consistency() {
                Consistency::Strong => open(),
                Consistency::Timeline { .. } => {
                    let (owner, progress) = ((purpose, self.owner.0), &self.options.progress);
                    self.engine.open_timeline_snapshot(owner, self.timeline_floor(), progress)
                }
            });
        };
        let (serializable, this) = (&self.engine.serializable, (self.owner.0, &**tracker));
        if mode == SerializableMode::Deferrable {
            let blocking = &*self.engine.options().blocking;
            let cancelled = &self.options.cancelled;
            return serializable.begin_deferrable(this, open, cancelled, blocking);
        }
        Ok(serializable.begin(this, mode != SerializableMode::ReadWrite, open))
    }

    /// Tracks a row that the transaction reads.
    pub(super) fn note_row(&self, table: TableId, row: &[u8]) {
        if let Some(tracker) = &self.tracker {
            tracker.note_row(table, row);
        }
    }

    /// Tracks a read of the newest version of a row, if that is newer than the snapshot.
    pub(super) fn note_newest(&self, table: &Table, row: &[u8]) -> Result<()> {
        if let Some(tracker) = &self.tracker
            && is_newer(table, row, self.own_snapshot()?)?
        {
            tracker.note_newer();
        }
        Ok(())
    }

    /// Checks, before a row is inserted, that the transaction has not read its absence while
    /// another transaction inserted it.
    pub(super) fn check_newer(&self, table: &Table, row: &[u8]) -> Result<()> {
        let Some(tracker) = &self.tracker else { return Ok(()) };
        if !is_newer(table, row, self.own_snapshot()?)? {
            return Ok(());
        }
        if tracker.has_read(table.id(), row) {
            let reason = "Canceled on conflict out to a row that was inserted or deleted.";
            return Err(Error::Dependencies { reason: reason.to_owned() });
        }
        tracker.note_newer();
        Ok(())
    }

    /// Checks that the transaction could still commit with these mutations.
    pub(super) fn check_writes(&self, table: TableId, batch: &[Mutation]) -> Result<()> {
        let Some(tracker) = &self.tracker else { return Ok(()) };
        let mut writes = self.engine.serializable.write_set();
        batch.iter().for_each(|mutation| writes.add_row(table, &mutation.row));
        writes.finish();
        let snapshot = self.own_snapshot()?;
        self.engine.serializable.check_writes(snapshot, tracker, &writes)
    }

    /// Validates the transaction with these writes.
    pub(super) fn validate(&self, writes: &CommitWrites) -> Result<Option<PendingCommit<'_>>> {
        let Some(tracker) = &self.tracker else { return Ok(None) };
        if writes.regions.is_empty() && self.statement.lock().snapshot.is_none() {
            return Ok(None);
        }
        self.validate_set(tracker, write_set(&self.engine, writes))
    }

    /// Returns the write set for the rows about to be committed; `None` if not SERIALIZABLE.
    pub(super) fn write_set(&self) -> Option<WriteSet> {
        self.tracker.as_ref().map(|_| self.engine.serializable.write_set())
    }

    /// Validates the transaction with the rows of [`Transaction::write_set`].
    pub(super) fn validate_spilled(
        &self,
        writes: Option<WriteSet>,
    ) -> Result<Option<PendingCommit<'_>>> {
        let (Some(tracker), Some(mut writes)) = (&self.tracker, writes) else { return Ok(None) };
        writes.finish();
        self.validate_set(tracker, writes)
    }

    fn validate_set<'a>(
        &'a self,
        tracker: &'a ReadTracker,
        writes: WriteSet,
    ) -> Result<Option<PendingCommit<'a>>> {
        let asked = Validation {
            transaction: self.owner.0,
            snapshot: self.own_snapshot()?,
            tracker,
            writes,
        };
        let clock = || {
            let CommitClock { sequence, .. } = self.engine.clock();
            sequence
        };
        self.engine.serializable.validate(asked, clock, || self.engine.visible())
    }

    /// Ends tracking: the transaction has ended.
    pub(super) fn end_tracking(&self) {
        if let Some(tracker) = &self.tracker {
            self.engine.serializable.end(self.owner.0, tracker);
        }
    }
}
