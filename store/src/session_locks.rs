//! Session-level locks (advisory locks), and the lock status for system views.
//!
//! A session holds locks in addition to those of its transactions, until it releases them or
//! ends. They are in the lock table ([`crate::lock`]), so that deadlocks between both kinds are
//! detected.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::cell::Sequence;
use crate::descriptor::TableId;
use crate::error::Result;
use crate::lock::{
    ADVISORY_LOCKS, LockKey, LockName, LockOutcome, LockOwner, LockStatus, Owner, ReadLocks,
    WaitPolicy,
};
use crate::lock_mode::{LockMode, ModeSet};
use crate::mutation::LockWait;
use crate::store::Store;

/// Wait policy of a session for a lock.
#[derive(Clone, Copy)]
pub struct SessionWait<'a> {
    /// Wait, fail or skip.
    pub wait: LockWait,
    /// Maximal wait; `None`: no limit.
    pub lock_timeout: Option<Duration>,
    /// Wait before the deadlock check.
    pub deadlock_timeout: Duration,
    /// Ends the wait when set.
    pub cancelled: &'a AtomicBool,
}

impl Store {
    /// Returns the locks with waiters: holders and waiters.
    pub fn contended_locks(&self) -> Vec<LockStatus> {
        self.engine().locks.contended()
    }

    /// Returns the list for the read locks of a new session
    /// ([`TransactionOptions::reads`](crate::transaction::TransactionOptions::reads)).
    pub fn read_locks(&self) -> Arc<ReadLocks> {
        self.engine().locks.readers.list()
    }

    /// Returns the read locks that are only in the lists of sessions, with their owners.
    pub fn noted_reads(&self) -> Vec<(LockOwner, LockName)> {
        let noted = self.engine().locks.readers.noted();
        noted.into_iter().map(|(owner, lock)| (owner.shown(), lock)).collect()
    }

    /// Returns the holders of and the waiters for the lock of a row.
    pub fn lock_status(&self, table: TableId, row: &[u8]) -> Vec<LockStatus> {
        self.engine().locks.status(table, row)
    }

    /// Takes a lock for a session, in addition to those of its transactions; returns the commit
    /// that later reads of the session must include
    /// ([`require_commit`](crate::Transaction::require_commit)), `None` if the lock was skipped.
    ///
    /// # Errors
    ///
    /// [`Deadlock`](crate::Error::Deadlock), [`LockNotAvailable`](crate::Error::LockNotAvailable),
    /// [`Cancelled`](crate::Error::Cancelled).
    pub fn lock_for_session(
        &self,
        session: u32,
        key: &[u8],
        mode: LockMode,
        wait: SessionWait<'_>,
    ) -> Result<Option<Sequence>> {
        let patience = WaitPolicy {
            wait: wait.wait,
            changes: false,
            timeout: wait.lock_timeout,
            deadlock_after: wait.deadlock_timeout,
            cancelled: wait.cancelled,
            blocking: &*self.engine().options().blocking,
            on_wait: &|| {},
        };
        let owner = Owner::session(session);
        let grant = self.engine().locks.lock(owner, (ADVISORY_LOCKS, key), mode, patience)?;
        Ok((grant.taken != LockOutcome::Skipped).then_some(grant.mark))
    }

    /// Weakens or releases a lock of a session. `seen` is the highest commit that the session has
    /// seen or made.
    pub fn unlock_for_session(
        &self,
        session: u32,
        key: &[u8],
        to: Option<LockMode>,
        seen: Sequence,
    ) {
        let key = LockKey::new(ADVISORY_LOCKS, key);
        self.engine().locks.weaken(
            Owner::session(session),
            key,
            to.map(ModeSet::of).unwrap_or_default(),
            seen,
        );
    }
}
