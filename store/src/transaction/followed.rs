//! Following rows to the keys that other transactions have given them.

use crate::cell::{CellBatch, Sequence};
use crate::descriptor::TableId;
use crate::engine::{CommitClock, Engine};
use crate::error::{Error, Result};
use crate::lock::LockKey;
use crate::lock_mode::LockMode;
use crate::moves::{NetMove, StagedMove, net};
use crate::mutation::LockWait;
use crate::region::Surroundings;
use crate::scan::Get;
use crate::transaction::{Savepoint, SeenRow, StatementView, Transaction};

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

/// Tells others of the keys that a commit has changed, whose locks are still held.
pub(super) fn publish(engine: &Engine, moved: Vec<NetMove>, commit: Sequence) {
    if !moved.is_empty() {
        engine.moves.add(moved, commit, || engine.horizon().snapshot);
    }
}

impl Transaction {
    /// Prepares to give a row another key, before the row is deleted: returns whether the row is
    /// one that others do not know, as the transaction has deleted the one that had the key.
    pub fn begin_move(&self, table: TableId, from: &[u8]) -> bool {
        self.deletion_after(table, from, Savepoint(0)).is_some()
    }

    /// Notes that a row got another key by what was staged: who waits for it is to go on with it.
    /// `is_new`: what [`Transaction::begin_move`] has returned.
    pub fn note_move(&self, table: TableId, from: Vec<u8>, to: Vec<u8>, is_new: bool) {
        let place = self.staging.lock().count();
        self.moved.lock().push(StagedMove { place, table, from, to, is_new });
    }

    /// Forgets moves that were staged after a place.
    pub(super) fn unmove(&self, count: u64) {
        self.moved.lock().retain(|one| one.place <= count);
    }

    /// Tells others of the keys that the commit has changed, whose locks are still held.
    pub(super) fn publish_moves(&self, commit: Option<CommitClock>) {
        let moved = std::mem::take(&mut *self.moved.lock());
        if let Some(commit) = commit {
            publish(&self.engine, net(moved), commit.sequence);
        }
    }

    /// Returns whether a row has got another key since a snapshot.
    pub(super) fn has_moved(&self, table: TableId, row: &[u8], since: Sequence) -> bool {
        let moves = &self.engine.moves;
        !moves.is_empty() && moves.next(LockKey::new(table, row), since).is_some()
    }

    /// Follows a row that a statement saw and that is locked, with what came of that, to the key
    /// that it has by now.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::lock_row`]; [`Error::Serialization`] if the row is gone, and so many
    /// rows got other keys since that it may be one of them.
    pub fn follow_row(
        &self,
        (table, row, mut seen): (TableId, &[u8], SeenRow),
        (mode, wait): (LockMode, LockWait),
        view: &StatementView,
    ) -> Result<FollowedRow> {
        let moves = &self.engine.moves;
        let mut after: Sequence = view.sequence();
        let mut key: Option<Vec<u8>> = None;
        while seen != SeenRow::Skipped && !moves.is_empty() {
            let present = LockKey::new(table, key.as_deref().unwrap_or(row));
            let Some((at, to)) = moves.next(present, after) else { break };
            seen = self.lock_seen_row(table, &to, mode, wait)?;
            (after, key) = (at, Some(to));
        }
        if key.is_none() && moves.lost() > view.sequence() {
            let mut cells = CellBatch::new();
            if !self.get_locked(table, &Get::new(row), &mut cells)? {
                let detail = "due to concurrent update of many keys".to_owned();
                return Err(Error::Serialization { detail });
            }
        }
        Ok(match (seen, key) {
            (SeenRow::Skipped, _) => FollowedRow::Skipped,
            (SeenRow::Gone, _) => FollowedRow::Gone,
            (SeenRow::Locked, None) => FollowedRow::Same,
            (SeenRow::Locked, Some(key)) => FollowedRow::Moved(key),
        })
    }
}
