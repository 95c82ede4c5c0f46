//! Memory accounting of a transaction, and spilling of staged cells and row locks.

use std::collections::HashSet;

use crate::error::Result;
use crate::lock::LockKey;
use crate::memory_limits::TransactionMemory;
use crate::transaction::Transaction;
use crate::transaction::key_change_following::StagedDeletion;
use crate::transaction::staging::Staging;

/// Bytes of one lock in the lock table and in the transaction's list.
const LOCK_BYTES: u64 = 80;
/// Change of a transaction's bytes from which the shared memory accounting is updated: smaller
/// changes avoid the contention.
const CHARGE_STEP_BYTES: u64 = 16 << 10;
/// Maximal number of locks per spill, because sorting and writing them cannot be interrupted.
const SPILLED_LOCKS_MAX: u64 = 1 << 18;
/// Fraction (one in so many) of the byte limit from which a transaction spills when memory is
/// short.
const SPILLS_LEAST: u64 = 4;

impl Transaction {
    /// Updates the memory accounting of the transaction, if its bytes have changed considerably.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the limit is exceeded.
    pub(super) fn charge(&self, staging: &mut Staging) -> Result<()> {
        let others = self.lock_bytes();
        if staging.memstore_bytes() > self.spill_bytes() {
            self.spill(staging)?;
        }
        let bytes = staging.held_bytes() + others;
        let before = staging.charge.as_ref().map_or(0, TransactionMemory::bytes);
        if bytes.abs_diff(before) < CHARGE_STEP_BYTES {
            return Ok(());
        }
        let pressure = &self.engine.pressure;
        let charge = staging.charge.get_or_insert_with(|| TransactionMemory::new(pressure));
        let held = charge.hold(bytes);
        if held.is_ok() || staging.memstore_bytes() < self.spill_bytes() / SPILLS_LEAST {
            return held;
        }
        // Memory is short: spill and account again.
        self.spill(staging)?;
        let bytes = staging.held_bytes() + others;
        staging.charge.as_mut().map_or(Ok(()), |charge| charge.hold(bytes))
    }

    /// Returns the bytes in memory of staged cells and of locks.
    pub fn held_bytes(&self) -> u64 {
        let staged = self.staging.lock().held_bytes();
        staged + self.lock_bytes()
    }

    /// Returns the bytes in memory of locks, and of deletions.
    fn lock_bytes(&self) -> u64 {
        let held = self.held.lock();
        let (locks, listed) = (held.count() as u64, held.listed_bytes());
        drop(held);
        let deleted = (self.deleted.lock().len() * size_of::<StagedDeletion>()) as u64;
        locks * LOCK_BYTES + listed + deleted
    }

    /// Returns the limit of bytes of staged cells in memory.
    fn spill_bytes(&self) -> u64 {
        let chosen = self.engine.options().staged_bytes_max;
        chosen.unwrap_or_else(|| self.engine.pressure.staged_bytes_max())
    }

    /// Writes the row locks to a sorted run if there are many. Must not be called between locking
    /// a row and the check whether the row occurred before in its batch.
    pub(super) fn spill_locks(&self) -> Result<()> {
        let most = match self.engine.options().staged_bytes_max {
            Some(bytes) => bytes / LOCK_BYTES,
            None => self.engine.pressure.staged_bytes_max() / 2 / LOCK_BYTES,
        };
        let listed_bytes_max = most * LOCK_BYTES;
        let most = most.min(SPILLED_LOCKS_MAX);
        let mut held = self.held.lock();
        self.spill_lists(&held, listed_bytes_max)?;
        if (held.spillable() as u64) <= most {
            return Ok(());
        }
        let mut deleted = self.deleted.lock();
        let places = deleted.iter().map(|deletion| (deletion.key, deletion.before)).collect();
        let pinned = self.strengthened.lock().iter().map(|(key, _)| *key).collect();
        let (locks, files) = (&self.engine.locks, &self.engine.spill);
        locks.spill(self.owner, &mut held, (&places, &pinned), files)?;
        let left: HashSet<LockKey> = held.pinned().collect();
        deleted.retain(|deletion| left.contains(&deletion.key));
        Ok(())
    }

    /// Writes the staged cells to sorted runs, unless observers of the log need to see complete
    /// commits.
    #[cold]
    fn spill(&self, staging: &mut Staging) -> Result<()> {
        match self.engine.observers.of_commits() {
            Some(_) => Ok(()),
            None => staging.spill(&self.engine.spill, &self.options.cancelled),
        }
    }
}
