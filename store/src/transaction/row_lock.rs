//! Row locks of a transaction: locks of rows that a statement has seen, locks of keys to be
//! inserted, and release of locks that turn out to be unnecessary.
//!
//! A lock belongs to a key, whether a row exists or not. A lock that is granted after its row was
//! deleted protects nothing, and would block an insert of the key, so it is released
//! ([`Transaction::release_row_lock`]). Likewise, an insert of a key whose row exists fails without
//! waiting for the row's lock, unless the lock holder has changed or deleted the row
//! ([`Transaction::lock_absent_row`]). Source: PostgreSQL's `heap_lock_tuple`, which does not
//! lock a deleted row, and `_bt_check_unique`, which waits only for transactions that insert,
//! update or delete a row.

use crate::descriptor::TableId;
use crate::error::Result;
use crate::lock::{ListedLockOutcome, LockKey, LockOutcome, TransactionEnd, WaitPolicy};
use crate::lock_mode::LockMode;
use crate::mutation::LockWait;
use crate::table::Table;
use crate::transaction::Transaction;

/// Number of locks after which memory is accounted, if nothing is staged meanwhile.
const CHARGE_STEP_LOCKS: usize = 1024;

/// State of the lock of a row that a statement has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenRow {
    /// The transaction has the lock.
    Locked,
    /// The row was deleted while the transaction waited for the lock; another row may have its
    /// key. The lock was released, unless the transaction had it before.
    Gone,
    /// Another transaction holds it, and the request was to skip such rows.
    Skipped,
}

/// The outcome of a request for the lock of a row that a statement has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenLock {
    /// State of the lock.
    pub row: SeenRow,
    /// True if the transaction did not have the lock before.
    is_new: bool,
}

/// The outcome of a request for the lock of a row.
#[derive(Clone, Copy)]
pub(super) struct RowLock {
    pub(super) taken: LockOutcome,
    /// True if the row that was waited for was deleted.
    pub(super) is_gone: bool,
    /// True if the transaction did not have the lock before.
    pub(super) is_new: bool,
}

/// A request for the lock of a row.
#[derive(Clone, Copy)]
pub(super) struct RowLockRequest {
    pub(super) mode: LockMode,
    pub(super) wait: LockWait,
    /// True if the row exists, and is changed or deleted under the lock.
    pub(super) changes: bool,
}

impl RowLockRequest {
    /// Returns a request for a lock without a change.
    pub(super) fn lock(mode: LockMode, wait: LockWait) -> RowLockRequest {
        RowLockRequest { mode, wait, changes: false }
    }

    /// Returns a request for the lock of an existing row that is about to be changed.
    pub(super) fn change(mode: LockMode) -> RowLockRequest {
        RowLockRequest { mode, wait: LockWait::Wait, changes: true }
    }
}

impl RowLock {
    /// Outcome for a row that needs no lock, or is covered by another lock.
    pub(super) const COVERED: RowLock =
        RowLock { taken: LockOutcome::Held, is_gone: false, is_new: false };
}

impl Transaction {
    /// Locks a row until the end of the transaction. Returns `false` only with
    /// [`LockWait::Skip`].
    ///
    /// # Errors
    ///
    /// At REPEATABLE READ, [`Serialization`](crate::Error::Serialization) if the row was changed
    /// after the snapshot.
    pub fn lock_row(
        &self,
        table: TableId,
        row: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<bool> {
        let table = self.engine.table(table)?;
        let lock = self.lock_in(&table, row, RowLockRequest::lock(mode, wait))?;
        self.spill_locks()?;
        Ok(lock.taken != LockOutcome::Skipped)
    }

    /// Locks a row as [`Transaction::lock_row`] does, which the present statement has seen. At
    /// REPEATABLE READ a row locked as [`LockMode::KeyShared`] may be newer than the snapshot
    /// ([`Transaction::is_newer`]), provided that it has the same row key.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::lock_row`].
    pub fn lock_seen_row(
        &self,
        table: TableId,
        row: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<SeenLock> {
        let table = self.engine.table(table)?;
        let lock = self.lock_in(&table, row, RowLockRequest::lock(mode, wait))?;
        let seen = match lock.taken {
            LockOutcome::Skipped => SeenRow::Skipped,
            LockOutcome::New | LockOutcome::Held if lock.is_gone => {
                self.give_back_lock(&table, row, lock.is_new)?;
                SeenRow::Gone
            }
            LockOutcome::New | LockOutcome::Held => SeenRow::Locked,
        };
        self.spill_locks()?;
        Ok(SeenLock { row: seen, is_new: lock.is_new && seen == SeenRow::Locked })
    }

    /// Releases the lock of a row that was deleted, or that a statement does not need after all,
    /// if it was new and is among the last few that the transaction has taken. Nothing may be
    /// staged under it.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`](crate::Error::NoSuchTable); errors of reading spilled locks.
    pub fn release_row_lock(&self, table: TableId, row: &[u8], lock: SeenLock) -> Result<()> {
        if !lock.is_new {
            return Ok(());
        }
        self.give_back_lock(&*self.engine.table(table)?, row, lock.is_new)
    }

    fn give_back_lock(&self, table: &Table, row: &[u8], is_new: bool) -> Result<()> {
        if !is_new {
            return Ok(());
        }
        let key = LockKey::new(table.id(), row);
        let mut held = self.held.lock();
        let is_entry = held.take_back(key) || self.take_back_listed(&held, table.id(), row)?;
        drop(held);
        if is_entry {
            self.engine.locks.release(
                self.owner,
                vec![key],
                (TransactionEnd::Undone, self.required_commit()),
            );
        }
        Ok(())
    }

    /// Locks the key of an absent row, which is to be inserted. Returns `false`, without the
    /// lock, if the row exists, staged by this transaction or committed. Waits for other open
    /// transactions that have inserted, changed or deleted it.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::lock_present_row`]; errors of reading the row.
    pub fn lock_absent_row(&self, table: TableId, row: &[u8]) -> Result<bool> {
        let table = self.engine.table(table)?;
        if self.is_taken(&table, row)? {
            return Ok(false);
        }
        let request = RowLockRequest::lock(LockMode::NoKeyExclusive, LockWait::Wait);
        let lock = self.lock_newest_row(&table, row, request)?;
        let is_absent = !self.exists_newest(&table, row)?;
        if !is_absent {
            self.give_back_lock(&table, row, lock.is_new)?;
        }
        self.spill_locks()?;
        Ok(is_absent)
    }

    /// Returns whether the row exists and no other open transaction has changed it.
    pub(super) fn is_taken(&self, table: &Table, row: &[u8]) -> Result<bool> {
        // In this order: a row that is deleted after the check still exists in the read.
        let is_changed = !table.is_private_to(self.owner)
            && self.engine.locks.is_changed_by_other(self.owner, (table.id(), row))?;
        Ok(!is_changed && self.exists_newest(table, row)?)
    }

    /// Locks a row until the end of the transaction, even if it has changed since the snapshot;
    /// the transaction reads its newest version ([`Transaction::get_locked`]). Returns `false`
    /// only with [`LockWait::Skip`].
    ///
    /// # Errors
    ///
    /// [`Deadlock`](crate::Error::Deadlock), [`LockNotAvailable`](crate::Error::LockNotAvailable),
    /// [`Cancelled`](crate::Error::Cancelled).
    pub fn lock_present_row(
        &self,
        table: TableId,
        row: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<bool> {
        let table = self.engine.table(table)?;
        let lock = self.lock_newest_row(&table, row, RowLockRequest::lock(mode, wait))?;
        self.spill_locks()?;
        Ok(lock.taken != LockOutcome::Skipped)
    }

    /// Locks rows as [`Transaction::lock_present_row`] does, in this order, and waits for each.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::lock_present_row`].
    pub fn lock_present_rows(&self, table: TableId, rows: &[&[u8]], mode: LockMode) -> Result<()> {
        let table = self.engine.table(table)?;
        for row in rows {
            self.lock_newest_row(&table, row, RowLockRequest::lock(mode, LockWait::Wait))?;
        }
        self.spill_locks()
    }

    /// Locks a row; at REPEATABLE READ checks that it is unchanged since the snapshot.
    pub(super) fn lock_in(
        &self,
        table: &Table,
        row: &[u8],
        request: RowLockRequest,
    ) -> Result<RowLock> {
        let lock = self.lock_newest_row(table, row, request)?;
        if lock.taken != LockOutcome::Skipped && self.options.isolation.is_repeatable() {
            self.check_unchanged(table, row, (request.mode, lock.is_gone))?;
        }
        Ok(lock)
    }

    /// Locks a row, even if it has changed since the snapshot.
    pub(super) fn lock_newest_row(
        &self,
        table: &Table,
        row: &[u8],
        request: RowLockRequest,
    ) -> Result<RowLock> {
        let RowLockRequest { mode, wait, changes } = request;
        if table.is_private_to(self.owner) {
            return Ok(RowLock::COVERED);
        }
        match self.take_listed(table, row, mode)? {
            ListedLockOutcome::Elsewhere => {}
            listed => {
                return Ok(RowLock {
                    is_new: listed == ListedLockOutcome::Added,
                    ..RowLock::COVERED
                });
            }
        }
        let limits = *self.limits.lock();
        let patience = WaitPolicy {
            wait,
            changes,
            timeout: limits.lock_timeout,
            deadlock_after: limits.deadlock_timeout,
            cancelled: &self.options.cancelled,
            blocking: &*self.engine.options().blocking,
            on_wait: &|| table.regions().of_row(row).load().lock_wait(),
        };
        let asked = (table.id(), row);
        let grant = self.engine.locks.lock(self.owner, asked, mode, patience)?;
        self.require_commit(grant.mark);
        // UPDATE locks a row, and then its key if it changes.
        if let Some(before) = grant.before
            && !self.held.lock().is_unmarked(grant.key)
        {
            self.strengthened.lock().push((grant.key, before));
        }
        if grant.taken == LockOutcome::New {
            let mut held = self.held.lock();
            held.push(grant.key);
            let counts = held.count().is_multiple_of(CHARGE_STEP_LOCKS);
            if counts {
                self.list_locks(table, mode, &mut held);
            }
            drop(held);
            if counts {
                self.charge(&mut self.staging.lock())?;
            }
        }
        let is_new = grant.taken == LockOutcome::New;
        Ok(RowLock { taken: grant.taken, is_gone: grant.row_was_deleted, is_new })
    }
}
