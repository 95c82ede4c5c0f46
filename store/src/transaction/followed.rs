//! Following rows to the keys that other transactions have given them.

use crate::cell::{CellBatch, Sequence};
use crate::descriptor::TableId;
use crate::engine::CommitClock;
use crate::error::{Error, Result};
use crate::lock::LockKey;
use crate::moves::StagedMove;
use crate::mutation::{LockMode, LockWait};
use crate::region::Surroundings;
use crate::scan::Get;
use crate::transaction::{Savepoint, StatementView, Transaction};

/// What has become of a row that a statement saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowedRow {
    /// It has the key that it had, unless it is gone.
    Same,
    /// It has another key; the row there is locked, too.
    Moved(Vec<u8>),
    /// It has another key, and somebody else has locked it there.
    Skipped,
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
        if let Some(commit) = commit
            && !moved.is_empty()
        {
            let horizon = || self.engine.horizon().snapshot;
            self.engine.moves.add(moved, commit.sequence, horizon);
        }
    }

    /// Follows a row that a statement saw and that is locked to the key that it has by now.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::lock_row`]; [`Error::Serialization`] if the row is gone, and so many
    /// rows got other keys since that it may be one of them.
    pub fn follow_row(
        &self,
        table: TableId,
        row: &[u8],
        (mode, wait): (LockMode, LockWait),
        view: &StatementView,
    ) -> Result<FollowedRow> {
        let moves = &self.engine.moves;
        if moves.is_empty() {
            return Ok(FollowedRow::Same);
        }
        let mut after: Sequence = view.sequence();
        let mut followed = FollowedRow::Same;
        loop {
            let present = match &followed {
                FollowedRow::Moved(key) => key.as_slice(),
                _ => row,
            };
            let Some((at, to)) = moves.next(LockKey::new(table, present), after) else { break };
            if !self.lock_row(table, &to, mode, wait)? {
                return Ok(FollowedRow::Skipped);
            }
            (after, followed) = (at, FollowedRow::Moved(to));
        }
        let is_lost = moves.lost() > view.sequence() && followed == FollowedRow::Same;
        if is_lost {
            let mut cells = CellBatch::new();
            if !self.get_locked(table, &Get::new(row), &mut cells)? {
                let detail = "due to concurrent update of many keys".to_owned();
                return Err(Error::Serialization { detail });
            }
        }
        Ok(followed)
    }
}
