//! Row locks that wait without blocking later requests for the same row.

use std::time::Duration;

use crate::descriptor::TableId;
use crate::env::process::monotonic_now;
use crate::error::{Error, Result};
use crate::lock::LockKey;
use crate::lock_mode::LockMode;
use crate::mutation::LockWait;
use crate::transaction::{Transaction, TransactionLimits};

/// Maximal time that other requests are blocked at once.
const BRIEFLY: Duration = Duration::from_millis(50);

impl Transaction {
    /// Locks a row as [`Transaction::lock_present_row`] does, but waits for the end of the
    /// present holders without a place in the lock queue, then requests the lock for some
    /// milliseconds, and repeats both until it is granted. Later requests are thus blocked only
    /// for these milliseconds.
    ///
    /// # Errors
    ///
    /// [`Error::Deadlock`], [`Error::LockNotAvailable`], [`Error::Cancelled`].
    pub fn lock_without_queueing(&self, table: TableId, row: &[u8], mode: LockMode) -> Result<()> {
        let limits = *self.limits.lock();
        let since = monotonic_now();
        let key = LockKey::new(table, row);
        loop {
            for other in self.engine.locks.holders_against(self.owner, key, mode) {
                self.engine.locks.await_end(self.owner, other, (key, mode), self.wait_policy())?;
            }
            let lock_timeout = Some(limits.lock_timeout.map_or(BRIEFLY, |most| most.min(BRIEFLY)));
            self.set_limits(TransactionLimits { lock_timeout, ..limits });
            let taken = self.lock_present_row(table, row, mode, LockWait::Wait);
            self.set_limits(limits);
            match taken {
                Err(Error::LockNotAvailable { timed_out: true, .. })
                    if limits.lock_timeout.is_none_or(|most| since.elapsed() < most) => {}
                taken => return taken.map(drop),
            }
        }
    }
}
