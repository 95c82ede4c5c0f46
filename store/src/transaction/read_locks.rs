//! Table locks under which a transaction reads.

use smallvec::SmallVec;

use crate::error::Result;
use crate::lock::{LockKey, LockName, LockOutcome, READ, WaitPolicy};
use crate::mutation::LockWait;
use crate::transaction::Transaction;

impl Transaction {
    /// Locks tables, by the names of their locks, against exclusive locks, until the transaction
    /// ends. Returns whether another transaction may have delayed one of them.
    ///
    /// # Errors
    ///
    /// [`Error::Deadlock`](crate::Error::Deadlock),
    /// [`Error::LockNotAvailable`](crate::Error::LockNotAvailable),
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn lock_to_read(&self, locks: &[LockName]) -> Result<bool> {
        let mut had_to_ask = false;
        for lock in locks {
            let noted = self.options.reads.as_ref();
            if !noted.is_some_and(|list| self.engine.locks.readers.note(list, self.owner, *lock)) {
                self.ask_to_read(*lock)?;
                had_to_ask = true;
            }
        }
        Ok(had_to_ask)
    }

    /// Returns whether the transaction holds a lock, even if only
    /// [to read](Transaction::lock_to_read).
    pub fn holds(&self, lock: LockName) -> bool {
        self.engine.locks.held(self.owner, lock.key).is_some()
            || self.options.reads.as_ref().is_some_and(|list| list.reads(self.owner, lock))
    }

    /// Returns the policy of a wait for a lock under which nothing is changed.
    pub(super) fn wait_policy(&self) -> WaitPolicy<'_> {
        let limits = *self.limits.lock();
        WaitPolicy {
            wait: LockWait::Wait,
            changes: false,
            timeout: limits.lock_timeout,
            deadlock_after: limits.deadlock_timeout,
            cancelled: &self.options.cancelled,
            blocking: &*self.engine.options().blocking,
            on_wait: &|| {},
        }
    }

    #[cold]
    fn ask_to_read(&self, lock: LockName) -> Result<()> {
        let patience = self.wait_policy();
        let grant =
            self.engine.locks.lock_key(self.owner, (lock.key, lock.table), READ, patience)?;
        self.require_commit(grant.mark);
        match &self.options.reads {
            Some(list) => list.add_held(self.owner, lock),
            None if grant.taken == LockOutcome::New => self.held.lock().push(lock.key),
            None => {}
        }
        Ok(())
    }

    /// Returns the number of locks that it reads under.
    pub(super) fn read_count(&self) -> usize {
        self.options.reads.as_ref().map_or(0, |list| list.count(self.owner))
    }

    /// Removes all but the first `kept_count` read locks, and calls `act` with the retained and
    /// the removed locks that are in the lock table; both stay unchanged during the call.
    pub(super) fn forget_reads_after(
        &self,
        kept_count: usize,
        act: impl FnOnce(&[LockKey], &[LockKey]),
    ) {
        match &self.options.reads {
            Some(list) => list.forget_after(self.owner, kept_count, act),
            None => act(&[], &[]),
        }
    }

    /// Removes all read locks; returns those that are in the lock table.
    pub(super) fn end_reads(&self) -> SmallVec<[LockKey; 4]> {
        self.options.reads.as_ref().map(|list| list.end(self.owner)).unwrap_or_default()
    }

    /// Moves the read locks to the lock table, and returns them.
    pub(super) fn take_reads(&self) -> SmallVec<[LockKey; 4]> {
        if let Some(list) = &self.options.reads {
            self.engine.locks.hold_reads(list, self.owner);
        }
        self.end_reads()
    }
}
