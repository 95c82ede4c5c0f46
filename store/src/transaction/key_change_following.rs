//! Following a row whose key was changed by other transactions (the update chain of
//! EvalPlanQual).

use crate::cell::{CellBatch, Sequence};
use crate::descriptor::TableId;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::key_changes::{NetKeyChange, StagedKeyChange, net};
use crate::lock::LockKey;
use crate::lock_mode::LockMode;
use crate::mutation::LockWait;
use crate::region::RegionServices;
use crate::scan::Get;
use crate::table::Table;
use crate::transaction::staging::Staging;
use crate::transaction::{Savepoint, SeenLock, SeenRow, StatementView, Transaction};

/// Outcome of following a row that a statement saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowedRow {
    /// The key is unchanged, if there is still a row with it.
    Same,
    /// It was deleted; another row may have its key by now.
    Gone,
    /// Its key was changed; the row at the new key is locked, too.
    Moved(Vec<u8>),
    /// Its key was changed, and another transaction holds the lock there.
    Skipped,
}

/// A row that an open transaction has deleted.
pub(super) struct StagedDeletion {
    /// Edits staged before it.
    pub(super) before: u64,
    /// Its lock.
    pub(super) key: LockKey,
}

/// Publishes the key changes of a commit, whose locks are still held.
pub(super) fn publish(engine: &Engine, moved: Vec<NetKeyChange>, commit: Sequence) {
    if !moved.is_empty() {
        engine.key_changes.add(moved, commit, || engine.horizon().snapshot);
    }
}

impl Transaction {
    /// Records that the edits staged since `before` changed the key of a row: transactions that
    /// wait for the row continue at the new key.
    pub fn note_move(&self, before: Savepoint, table: TableId, (from, to): (Vec<u8>, Vec<u8>)) {
        let (before, place) = (before.0, self.staging.lock().count());
        self.moved.lock().push(StagedKeyChange { before, place, table, from, to });
    }

    /// Removes the key changes that were staged after the first `count` edits.
    pub(super) fn unmove(&self, count: u64) {
        self.moved.lock().retain(|one| one.place <= count);
    }

    /// Takes the net key changes of the staged edits, for publication.
    ///
    /// # Errors
    ///
    /// Errors of reading spilled cells.
    pub(super) fn net_moves(&self, staging: &Staging) -> Result<Vec<NetKeyChange>> {
        let moved = std::mem::take(&mut *self.moved.lock());
        net(moved, |table, row, after| staging.deletion_after(table, row, after))
    }

    /// Marks a row as about to be deleted; its lock was taken for that.
    pub(super) fn note_deleted(&self, table: &Table, row: &[u8]) {
        if table.is_private_to(self.owner) {
            return;
        }
        if self.note_listed_deleted(table, row) {
            return;
        }
        let key = LockKey::new(table.id(), row);
        if self.engine.locks.set_deleted(self.owner, key, true) {
            let before = self.staging.lock().count();
            self.deleted.lock().push(StagedDeletion { before, key });
        }
    }

    /// Removes the marks of deletions staged after the first `count` edits, up to `through`.
    pub(super) fn undelete(&self, count: u64, through: u64) {
        let held = self.held.lock();
        if let Some(spilled) = &held.spilled {
            spilled.undelete((count, through), &self.engine.locks);
        }
        for list in &held.lists {
            if let Err(error) = list.undelete(count, &self.engine.locks) {
                tracing::warn!(%error, "could not remove the record of an undone deletion");
            }
        }
        drop(held);
        let mut deleted = self.deleted.lock();
        let kept = deleted.partition_point(|one| one.before < count);
        for StagedDeletion { key, .. } in deleted.drain(kept..) {
            self.engine.locks.set_deleted(self.owner, key, false);
        }
    }

    /// Returns whether the key of a row was changed since a snapshot.
    pub(super) fn has_moved(&self, table: TableId, row: &[u8], since: Sequence) -> bool {
        let moves = &self.engine.key_changes;
        !moves.is_empty() && moves.next(LockKey::new(table, row), since).is_some()
    }

    /// Follows a row that a statement saw and locked, with the outcome of the lock request, to
    /// its present key. The lock of a former key is released.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::lock_row`]; [`Error::Serialization`] if there is no such row any
    /// more, and so many key changes were published since that some of them were discarded.
    pub fn follow_row(
        &self,
        (table, row, mut lock): (TableId, &[u8], SeenLock),
        (mode, wait): (LockMode, LockWait),
        view: &StatementView,
    ) -> Result<FollowedRow> {
        let moves = &self.engine.key_changes;
        let mut after: Sequence = view.sequence();
        let mut key: Option<Vec<u8>> = None;
        while lock.row != SeenRow::Skipped && !moves.is_empty() {
            let present = key.as_deref().unwrap_or(row);
            let Some((at, to)) = moves.next(LockKey::new(table, present), after) else { break };
            self.release_row_lock(table, present, lock)?;
            let Some(to) = to else { return Ok(FollowedRow::Gone) };
            lock = self.lock_seen_row(table, &to, mode, wait)?;
            (after, key) = (at, Some(to));
        }
        if key.is_none() && moves.lost() > view.sequence() {
            let mut cells = CellBatch::new();
            if !self.get_locked(table, &Get::new(row), &mut cells)? {
                let detail = "due to concurrent update of many keys".to_owned();
                return Err(Error::Serialization { detail });
            }
        }
        Ok(match (lock.row, key) {
            (SeenRow::Skipped, _) => FollowedRow::Skipped,
            (SeenRow::Gone, _) => FollowedRow::Gone,
            (SeenRow::Locked, None) => FollowedRow::Same,
            (SeenRow::Locked, Some(key)) => FollowedRow::Moved(key),
        })
    }
}
