//! Locks of sessions, and what system views show of all locks.
//!
//! A session holds locks beside those of its transactions, for as long as it likes: advisory locks.
//! They stand in the table of row locks ([`crate::lock`]), so that a circle of both is found.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::cell::Sequence;
use crate::descriptor::TableId;
use crate::error::Result;
use crate::lock::{
    ADVISORY_LOCKS, LockKey, LockName, LockOwner, LockStatus, Owner, Patience, ReadLocks, Taken,
};
use crate::lock_mode::{LockMode, ModeSet};
use crate::mutation::LockWait;
use crate::store::Store;

/// How a session waits for a lock.
#[derive(Clone, Copy)]
pub struct SessionWait<'a> {
    /// Whether to wait at all.
    pub wait: LockWait,
    /// For how long; `None`: for ever.
    pub lock_timeout: Option<Duration>,
    /// After how long to look for a deadlock.
    pub deadlock_timeout: Duration,
    /// Ends the wait when set.
    pub cancelled: &'a AtomicBool,
}

impl Store {
    /// Returns the locks that somebody waits for: who has them and who waits.
    pub fn contended_locks(&self) -> Vec<LockStatus> {
        self.engine().locks.contended()
    }

    /// Returns the list of a new session, which notes there what it reads
    /// ([`TransactionOptions::reads`](crate::transaction::TransactionOptions::reads)).
    pub fn read_locks(&self) -> Arc<ReadLocks> {
        self.engine().locks.readers.list()
    }

    /// Returns who reads under which lock, where nobody wants it alone.
    pub fn noted_reads(&self) -> Vec<(LockOwner, LockName)> {
        let noted = self.engine().locks.readers.noted();
        noted.into_iter().map(|(owner, lock)| (owner.shown(), lock)).collect()
    }

    /// Returns who has the lock of a row and who waits for it.
    pub fn lock_status(&self, table: TableId, row: &[u8]) -> Vec<LockStatus> {
        self.engine().locks.status(table, row)
    }

    /// Takes a lock for a session, which holds it beside those of its transactions; returns up to
    /// which commit what the session reads from now on is to show
    /// ([`raise_floor`](crate::Transaction::raise_floor)), `None` if the lock was to be skipped.
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
        let patience = Patience {
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
        Ok((grant.taken != Taken::Skipped).then_some(grant.mark))
    }

    /// Makes a lock of a session weaker, or gives it back. `seen`: up to which commit the session
    /// has seen or made any.
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
