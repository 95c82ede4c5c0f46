//! Following rows to the keys that other transactions have given them.

use crate::cell::{CellBatch, Sequence};
use crate::descriptor::TableId;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::lock::LockKey;
use crate::lock_mode::LockMode;
use crate::moves::{NetMove, StagedMove, net};
use crate::mutation::LockWait;
use crate::region::Surroundings;
use crate::scan::Get;
use crate::table::Table;
use crate::transaction::staging::Staging;
use crate::transaction::{Savepoint, SeenLock, SeenRow, StatementView, Transaction};

/// What has become of a row that a statement saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowedRow {
    /// It has the key that it had, unless nothing has that key.
    Same,
    /// It was deleted, whatever has its key by now.
    Gone,
    /// It has another key; the row there is locked, too.
    Moved(Vec<u8>),
    /// It has another key, and somebody else has locked it there.
    Skipped,
}

/// A row that an open transaction has deleted.
pub(super) struct StagedDeletion {
    /// Edits staged before it.
    pub(super) before: u64,
    /// Its lock.
    pub(super) key: LockKey,
}

/// Tells others of the keys that a commit has changed, whose locks are still held.
pub(super) fn publish(engine: &Engine, moved: Vec<NetMove>, commit: Sequence) {
    if !moved.is_empty() {
        engine.moves.add(moved, commit, || engine.horizon().snapshot);
    }
}

impl Transaction {
    /// Notes that a row got another key by what was staged since `before`: who waits for it is to
    /// go on with it.
    pub fn note_move(&self, before: Savepoint, table: TableId, (from, to): (Vec<u8>, Vec<u8>)) {
        let (before, place) = (before.0, self.staging.lock().count());
        self.moved.lock().push(StagedMove { before, place, table, from, to });
    }

    /// Forgets moves that were staged after a place.
    pub(super) fn unmove(&self, count: u64) {
        self.moved.lock().retain(|one| one.place <= count);
    }

    /// Takes what others are to know of the keys that were changed by what is staged.
    ///
    /// # Errors
    ///
    /// Those of reading what was spilled.
    pub(super) fn net_moves(&self, staging: &Staging) -> Result<Vec<NetMove>> {
        let moved = std::mem::take(&mut *self.moved.lock());
        net(moved, |table, row, after| staging.deletion_after(table, row, after))
    }

    /// Notes that the row is about to be deleted whose lock was taken for that.
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

    /// Forgets deletions that were staged after a place, of so many edits.
    pub(super) fn undelete(&self, count: u64, through: u64) {
        let held = self.held.lock();
        if let Some(spilled) = &held.spilled {
            spilled.undelete((count, through), &self.engine.locks);
        }
        for list in &held.lists {
            if let Err(error) = list.undelete(count, &self.engine.locks) {
                tracing::warn!(%error, "a deletion that is undone stays noted");
            }
        }
        drop(held);
        let mut deleted = self.deleted.lock();
        let kept = deleted.partition_point(|one| one.before < count);
        for StagedDeletion { key, .. } in deleted.drain(kept..) {
            self.engine.locks.set_deleted(self.owner, key, false);
        }
    }

    /// Returns whether a row has got another key since a snapshot.
    pub(super) fn has_moved(&self, table: TableId, row: &[u8], since: Sequence) -> bool {
        let moves = &self.engine.moves;
        !moves.is_empty() && moves.next(LockKey::new(table, row), since).is_some()
    }

    /// Follows a row that a statement saw and that is locked, with what came of that, to the key
    /// that it has by now. The lock of a key that the row does not have any more is given back.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::lock_row`]; [`Error::Serialization`] if the row is gone, and so many
    /// rows got other keys since that it may be one of them.
    pub fn follow_row(
        &self,
        (table, row, mut lock): (TableId, &[u8], SeenLock),
        (mode, wait): (LockMode, LockWait),
        view: &StatementView,
    ) -> Result<FollowedRow> {
        let moves = &self.engine.moves;
        let mut after: Sequence = view.sequence();
        let mut key: Option<Vec<u8>> = None;
        while lock.row != SeenRow::Skipped && !moves.is_empty() {
            let present = key.as_deref().unwrap_or(row);
            let Some((at, to)) = moves.next(LockKey::new(table, present), after) else { break };
            self.give_back(table, present, lock)?;
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
