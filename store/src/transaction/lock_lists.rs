//! Row locks of a transaction, and its ordered lists of row locks: see [`crate::lock`].

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use crate::descriptor::TableId;
use crate::error::Result;
use crate::lock::{HeldLocks, ListedLockOutcome, LockKey};
use crate::lock_mode::LockMode;
use crate::table::Table;
use crate::transaction::{LockPlace, Transaction};

/// Number of locks from which further ones of a table may go to a list.
const LISTED_FROM: usize = 1024;
/// Maximal number of lists of one transaction.
const LISTS_MAX: usize = 4;

impl Transaction {
    /// Returns whether it has locked a row in a mode.
    pub fn has_lock(&self, table: TableId, row: &[u8], mode: LockMode) -> bool {
        let held = self.engine.locks.held(self.owner, LockKey::new(table, row));
        held.is_some_and(|(_, modes, _)| modes.covers(mode)) || self.has_listed(table, row, mode)
    }

    /// Returns the current position in the list of its locks, to which they can be released
    /// later.
    pub fn lock_place(&self) -> LockPlace {
        let strengthened = self.strengthened.lock().len();
        let reads = self.read_count();
        let mut held = self.held.lock();
        let listed = held.lock_places;
        held.lock_places += 1;
        LockPlace { held: held.mark(), listed, strengthened, reads }
    }

    /// Takes a row lock that may be added to a list.
    pub(super) fn take_listed(
        &self,
        table: &Table,
        row: &[u8],
        mode: LockMode,
    ) -> Result<ListedLockOutcome> {
        if !self.has_lists.load(Ordering::Relaxed) {
            return Ok(ListedLockOutcome::Elsewhere);
        }
        let held = self.held.lock();
        let Some(list) = held.list_of(table.id()) else { return Ok(ListedLockOutcome::Elsewhere) };
        list.take(row, (mode, held.lock_places), &self.engine.locks)
    }

    /// Removes a lock from its list if it was added last. Returns whether it has an entry in the
    /// lock table.
    pub(super) fn take_back_listed(
        &self,
        held: &HeldLocks,
        table: TableId,
        row: &[u8],
    ) -> Result<bool> {
        held.list_of(table).map_or(Ok(false), |list| list.take_back(row))
    }

    /// Starts a list of the row locks of a table once the transaction has taken many.
    pub(super) fn list_locks(&self, table: &Table, mode: LockMode, held: &mut HeldLocks) {
        let is_strong = matches!(mode, LockMode::NoKeyExclusive | LockMode::Exclusive);
        // The search for locks of others takes time proportional to their number.
        let is_time = held.count() >= LISTED_FROM && held.count().is_power_of_two();
        let has_room = held.lists.len() < LISTS_MAX && held.list_of(table.id()).is_none();
        if !is_strong || !is_time || !has_room {
            return;
        }
        if let Some((list, mark)) = self.engine.locks.open_list(self.owner, (table.id(), mode)) {
            self.require_commit(mark);
            held.lists.push(list);
            self.has_lists.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether a list has the lock of a row in a mode.
    pub(super) fn has_listed(&self, table: TableId, row: &[u8], mode: LockMode) -> bool {
        let held = self.held.lock();
        // A list that cannot be read counts as lacking the lock: the caller takes it again.
        held.list_of(table).is_some_and(|list| list.has(row, mode).unwrap_or(false))
    }

    /// Marks a row whose lock is in a list as deleted. Returns whether it is in one.
    pub(super) fn note_listed_deleted(&self, table: &Table, row: &[u8]) -> bool {
        if !self.has_lists.load(Ordering::Relaxed) {
            return false;
        }
        let held = self.held.lock();
        let Some(list) = held.list_of(table.id()) else { return false };
        let edits = self.staging.lock().count();
        list.set_deleted(row, edits, &self.engine.locks).unwrap_or_else(|error| {
            tracing::warn!(%error, "could not record a deletion");
            false
        })
    }

    /// Dissolves all lists; their locks move to the lock table.
    pub(super) fn dissolve_lists(&self) -> Result<()> {
        let mut held = self.held.lock();
        for list in std::mem::take(&mut held.lists) {
            match self.engine.locks.dissolve_list(&list) {
                Ok(keys) => {
                    let before: HashSet<LockKey> = held.keys().collect();
                    let new = keys.into_iter().filter(|key| !before.contains(key));
                    new.for_each(|key| held.push(key));
                }
                Err(error) => {
                    held.lists.push(list);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Releases the locks of lists that were taken after a position. Returns those that have
    /// entries in the lock table.
    pub(super) fn release_listed(&self, held: &HeldLocks, place: u64) -> Vec<LockKey> {
        let (locks, seen) = (&self.engine.locks, self.required_commit());
        let mut released: Vec<LockKey> = Vec::new();
        for list in &held.lists {
            released.extend(locks.release_listed(list, place, seen));
        }
        if !released.is_empty() {
            // Locks that it also held outside of the list before.
            let before: HashSet<LockKey> = held.keys().collect();
            released.retain(|key| !before.contains(key));
        }
        released
    }

    /// Writes lists to disk if they take more than `most` bytes.
    pub(super) fn spill_lists(&self, held: &HeldLocks, most: u64) -> Result<()> {
        held.lists.iter().try_for_each(|list| list.spill(most, &self.engine.spill))
    }
}
