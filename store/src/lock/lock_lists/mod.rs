//! Listed row locks: a transaction that locks very many rows of a table in row order keeps them
//! in a compact list instead of the lock table.
//!
//! While no other transaction requests a row lock of the table, such a lock costs some bytes at
//! the end of the list. A request of another transaction first searches the list and closes it:
//! the owner takes further locks in the lock table. If the list contains the requested row, its
//! entry is restored to the lock table and is then an ordinary lock: queues, modes, deadlocks,
//! views.
//!
//! ```text
//!   owner:  list registered (version + 1), then: has another one a lock of the table? no list
//!           [ list open? row added : lock ]
//!   other:  [ list closed, row in it? entry restored to the table ], shard locked
//!           [ version changed? again ], lock
//! ```
//!
//! # Invariants
//!
//! 1. A restored entry stays until its transaction releases it.
//! 2. A deleted row is in the list; rows and deleted rows ascend.
//!
//! Debug assertions check 1 when the list ends, and 2 when a deletion is noted
//! ([`OrderedRows`] checks the order).
//!
//! While a list is open, only its owner has row locks of its table: [`LockTable::open_list`] checks
//! it, and others close the list first. Rows are added and the list is closed under its mutex. The
//! owner has received the release marks of the table's locks when the list was opened. No other
//! transaction has held such a lock since. Lock order: a list, then shards.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::cell::Sequence;
use crate::descriptor::TableId;
use crate::error::Result;
use crate::lock::entry::LockEntry;
use crate::lock::ordered_rows::OrderedRows;
use crate::lock::{LockKey, LockTable, Owner};
use crate::lock_mode::{LockMode, ModeSet};
use crate::spill::SpillDirectory;

/// Look-ups without a match after which further ones are skipped.
const MISSES_MAX: u64 = 64;

/// Rows locked in a stronger mode after which the list is closed.
const STRENGTHENED_MAX: u64 = 64;

/// Registry of the lists of all transactions.
#[derive(Default)]
pub(super) struct LockListRegistry {
    lists: RwLock<Vec<Arc<LockList>>>,
    /// Number of lists.
    count: AtomicUsize,
    /// Number of lists ever registered.
    version: AtomicU64,
}

/// The locks of rows of one table that a transaction holds in one mode.
pub(crate) struct LockList {
    owner: Owner,
    table: TableId,
    mode: LockMode,
    state: Mutex<ListState>,
}

#[derive(Default)]
struct ListState {
    is_closed: bool,
    has_ended: bool,
    rows: OrderedRows,
    /// Number of the owner's requests for a row before the list's end that is not in it.
    misses: u64,
    /// Number of the owner's requests for a stronger lock of a row in the list.
    strengthened: u64,
    /// For each lock position, the number of rows when the first one was added after it.
    places: Vec<(u64, u64)>,
    /// The rows that are deleted.
    deleted: OrderedRows,
    /// For each edit count, the number of deleted rows when the first one was added after it.
    deletions: Vec<(u64, u64)>,
    /// Rows whose entries were restored to the lock table.
    restored: HashMap<LockKey, Vec<u8>>,
}

/// Outcome of a request of a list's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListedLockOutcome {
    /// The lock was in the list before.
    Held,
    /// The lock was added to the list.
    Added,
    /// The lock must be taken in the lock table.
    Elsewhere,
}

impl ListState {
    fn all_rows(&mut self) -> [&mut OrderedRows; 2] {
        [&mut self.rows, &mut self.deleted]
    }
}

impl LockList {
    /// Returns the table of the rows.
    pub(crate) fn table(&self) -> TableId {
        self.table
    }

    /// Returns the bytes of memory in use.
    pub(crate) fn held_bytes(&self) -> u64 {
        let state = self.state.lock();
        (state.rows.held_bytes() + state.deleted.held_bytes()) as u64
    }

    /// Writes full chunks to disk if they take more than `most` bytes.
    ///
    /// # Errors
    ///
    /// Errors of writing; some of the chunks may have been written.
    pub(crate) fn spill(&self, most: u64, files: &SpillDirectory) -> Result<()> {
        let mut state = self.state.lock();
        for rows in state.all_rows() {
            if rows.spillable_bytes() as u64 > most {
                rows.spill(files)?;
            }
        }
        Ok(())
    }

    /// Takes a lock after a position, if the list can hold it.
    ///
    /// # Errors
    ///
    /// Errors of reading spilled rows.
    pub(crate) fn take(
        &self,
        row: &[u8],
        (mode, place): (LockMode, u64),
        table: &LockTable,
    ) -> Result<ListedLockOutcome> {
        let mut state = self.state.lock();
        debug_assert!(!state.has_ended, "a lock is taken after the end of the transaction");
        let is_covered = ModeSet::of(self.mode).covers(mode);
        if state.rows.is_before(row) {
            if state.is_closed || mode != self.mode {
                return Ok(ListedLockOutcome::Elsewhere);
            }
            if state.places.last().is_none_or(|(last, _)| *last < place) {
                let count = state.rows.count();
                state.places.push((place, count));
            }
            state.rows.push(row);
            return Ok(ListedLockOutcome::Added);
        }
        // With rows in another order, look-ups rarely match, and may be skipped: the owner may
        // have both a row in its list and an entry.
        let is_in_vain = state.misses > MISSES_MAX && state.misses > state.rows.count();
        if is_in_vain || !state.rows.contains(row)? {
            state.misses += 1;
            return Ok(ListedLockOutcome::Elsewhere);
        }
        if is_covered {
            return Ok(ListedLockOutcome::Held);
        }
        // A stronger mode needs an entry. A statement that needs them for all rows, as an UPDATE
        // of keys does, is better off with entries, which can be spilled.
        state.strengthened += 1;
        state.is_closed |= state.strengthened > STRENGTHENED_MAX;
        let key = LockKey::new(self.table, row);
        self.restore(&mut state, key, row, table)?;
        Ok(ListedLockOutcome::Elsewhere)
    }

    /// Removes the last lock, if it is that of `row`. Returns whether the lock has an entry in
    /// the lock table.
    ///
    /// # Errors
    ///
    /// Errors of reading spilled rows.
    pub(crate) fn take_back(&self, row: &[u8]) -> Result<bool> {
        let mut state = self.state.lock();
        if !state.rows.is_last(row) {
            return Ok(false);
        }
        let count = state.rows.count() - 1;
        state.rows.truncate(count)?;
        Ok(state.restored.remove(&LockKey::new(self.table, row)).is_some())
    }

    /// Returns whether the list has the lock of a row in this mode or a stronger one.
    ///
    /// # Errors
    ///
    /// Errors of reading spilled rows.
    pub(crate) fn has(&self, row: &[u8], mode: LockMode) -> Result<bool> {
        Ok(ModeSet::of(self.mode).covers(mode) && self.state.lock().rows.contains(row)?)
    }

    /// Marks a row as deleted after `edits` edits. Returns whether the list contains it.
    ///
    /// # Errors
    ///
    /// Errors of reading spilled rows.
    pub(crate) fn set_deleted(&self, row: &[u8], edits: u64, table: &LockTable) -> Result<bool> {
        let mut state = self.state.lock();
        if !state.rows.contains(row)? {
            return Ok(false);
        }
        let key = LockKey::new(self.table, row);
        if !state.deleted.is_before(row) {
            if state.deleted.contains(row)? {
                return Ok(true);
            }
            self.restore(&mut state, key, row, table)?;
            return Ok(false);
        }
        if state.deletions.last().is_none_or(|(last, _)| *last < edits) {
            let count = state.deleted.count();
            state.deletions.push((edits, count));
        }
        state.deleted.push(row);
        debug_assert!(state.deleted.count() <= state.rows.count(), "a deleted row is not listed");
        if state.restored.contains_key(&key) {
            table.set_deleted(self.owner, key, true);
        }
        Ok(true)
    }

    /// Removes the deletion marks made after `edits` edits.
    ///
    /// # Errors
    ///
    /// Errors of reading spilled rows.
    pub(crate) fn undelete(&self, edits: u64, table: &LockTable) -> Result<()> {
        let mut state = self.state.lock();
        let kept = state.deletions.partition_point(|(after, _)| *after < edits);
        let Some((_, count)) = state.deletions.get(kept).copied() else { return Ok(()) };
        let ListState { deleted, restored, deletions, .. } = &mut *state;
        for (key, row) in restored.iter() {
            // A row that was deleted before stays so: it is among the first `count`.
            if deleted.contains(row)? {
                table.set_deleted(self.owner, *key, false);
            }
        }
        deleted.truncate(count)?;
        deletions.truncate(kept);
        for (key, row) in restored.iter() {
            if deleted.contains(row)? {
                table.set_deleted(self.owner, *key, true);
            }
        }
        Ok(())
    }

    /// Restores the entry of a row of the list to the lock table.
    fn restore(
        &self,
        state: &mut ListState,
        key: LockKey,
        row: &[u8],
        table: &LockTable,
    ) -> Result<()> {
        let Entry::Vacant(restored) = state.restored.entry(key) else { return Ok(()) };
        let is_deleted = state.deleted.contains(row)?;
        restored.insert(row.to_vec());
        let mut shard = table.shards[key.shard()].lock();
        let entry = match shard.entries.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(vacant) => {
                vacant.insert(LockEntry::new(self.table, self.owner, self.mode))
            }
        };
        entry.hold(self.owner, self.mode);
        // The row may have been changed.
        entry.note_change(true);
        if is_deleted {
            entry.set_deleted(self.owner, true);
        }
        Ok(())
    }

    /// Removes the locks that were taken after a position. Returns those that have entries.
    fn take_after(&self, place: u64) -> Result<Vec<LockKey>> {
        let mut state = self.state.lock();
        let kept = state.places.partition_point(|(after, _)| *after <= place);
        let Some((_, count)) = state.places.get(kept).copied() else { return Ok(Vec::new()) };
        let ListState { rows, restored, places, .. } = &mut *state;
        rows.truncate(count)?;
        places.truncate(kept);
        let mut is_gone = |row: &Vec<u8>| !rows.contains(row).unwrap_or(true);
        Ok(restored.extract_if(|_, row| is_gone(row)).map(|(key, _)| key).collect())
    }
}

impl LockTable {
    /// Opens a list of locks of a table, unless another transaction has row locks in it. Returns
    /// the list, and the commit that its owner must see.
    pub(crate) fn open_list(
        &self,
        owner: Owner,
        (table, mode): (TableId, LockMode),
    ) -> Option<(Arc<LockList>, Sequence)> {
        if self.has_list(table) || self.has_spilled(table) {
            return None;
        }
        let list = Arc::new(LockList { owner, table, mode, state: Mutex::default() });
        let mut lists = self.listed.lists.write();
        if lists.iter().any(|other| other.table == table) {
            return None;
        }
        lists.push(Arc::clone(&list));
        self.listed.count.fetch_add(1, Ordering::SeqCst);
        self.listed.version.fetch_add(1, Ordering::SeqCst);
        drop(lists);
        let mut mark = Sequence(0);
        for shard in &self.shards {
            let shard = shard.lock();
            let is_of_other = |entry: &LockEntry| {
                entry.table() == table
                    && (entry.holders().any(|(holder, _)| holder != owner)
                        || entry.queue().next().is_some())
            };
            if shard.entries.values().any(is_of_other) {
                drop(shard);
                self.remove_list(&list);
                return None;
            }
            for earlier in mode.conflicting() {
                mark = shard.marks[earlier.index()].iter().copied().fold(mark, Sequence::max);
            }
        }
        // Locks that were spilled meanwhile were held when the list was opened.
        if self.has_spilled(table) {
            self.remove_list(&list);
            return None;
        }
        Some((list, mark))
    }

    /// Asserts, in debug builds, that restored locks have entries of their owner.
    pub(super) fn check_restored<'k>(
        &self,
        owner: Owner,
        restored: impl Iterator<Item = &'k LockKey>,
    ) {
        if cfg!(debug_assertions) {
            for key in restored {
                let shard = self.shards[key.shard()].lock();
                let is_held = shard.entries.get(key).is_some_and(|e| e.modes_of(owner).is_some());
                assert!(is_held, "a restored lock of {owner} was released before its end");
            }
        }
    }

    fn remove_list(&self, list: &Arc<LockList>) {
        let mut lists = self.listed.lists.write();
        let before = lists.len();
        lists.retain(|other| !Arc::ptr_eq(other, list));
        self.listed.count.fetch_sub(before - lists.len(), Ordering::SeqCst);
    }

    /// Returns the number of lists ever registered.
    pub(super) fn lists_opened(&self) -> u64 {
        self.listed.version.load(Ordering::SeqCst)
    }

    /// Returns whether there is a list for a table.
    pub(super) fn has_list(&self, table: TableId) -> bool {
        self.listed.count.load(Ordering::SeqCst) > 0
            && self.listed.lists.read().iter().any(|list| list.table == table)
    }

    /// Closes the lists of owners other than `owner` for the table of a row, and restores the
    /// row's entry if a list contains it.
    ///
    /// # Errors
    ///
    /// Errors of reading spilled rows.
    pub(super) fn restore_listed(
        &self,
        owner: Owner,
        (key, table): (LockKey, TableId),
        row: &[u8],
    ) -> Result<()> {
        if self.listed.count.load(Ordering::SeqCst) == 0 {
            return Ok(());
        }
        let is_of_other = |list: &&Arc<LockList>| list.table == table && list.owner != owner;
        let lists: Vec<_> = self.listed.lists.read().iter().filter(is_of_other).cloned().collect();
        for list in lists {
            let mut state = list.state.lock();
            state.is_closed = true;
            if !state.has_ended && state.rows.contains(row)? {
                list.restore(&mut state, key, row, self)?;
            }
        }
        Ok(())
    }

    /// Releases the locks of a list that were taken after a position. Returns those with entries
    /// in the lock table.
    pub(crate) fn release_listed(
        &self,
        list: &LockList,
        place: u64,
        mark: Sequence,
    ) -> Vec<LockKey> {
        self.raise_marks_of(ModeSet::of(list.mode), mark);
        list.take_after(place).unwrap_or_else(|error| {
            tracing::warn!(%error, "could not release locks acquired after a savepoint");
            Vec::new()
        })
    }

    /// Releases all locks of a list, at the end of its transaction. Returns those with entries in
    /// the lock table.
    pub(crate) fn end_list(&self, list: &Arc<LockList>, mark: Sequence) -> Vec<LockKey> {
        self.raise_marks_of(ModeSet::of(list.mode), mark);
        let mut state = list.state.lock();
        state.has_ended = true;
        let ended =
            std::mem::replace(&mut *state, ListState { has_ended: true, ..ListState::default() });
        drop(state);
        self.remove_list(list);
        self.check_restored(list.owner, ended.restored.keys());
        ended.restored.into_keys().collect()
    }

    /// Restores all locks of a list to the lock table, and ends the list. Returns them.
    ///
    /// # Errors
    ///
    /// Errors of reading spilled rows; the list is unchanged then.
    pub(crate) fn dissolve_list(&self, list: &Arc<LockList>) -> Result<Vec<LockKey>> {
        let mut state = list.state.lock();
        let mut rows = Vec::new();
        state.rows.for_each(|row| rows.push(row.to_vec()))?;
        for row in rows {
            let key = LockKey::new(list.table, &row);
            list.restore(&mut state, key, &row, self)?;
        }
        drop(state);
        // The entries stay regardless of the list.
        Ok(self.end_list(list, Sequence(0)))
    }

    /// Returns the number of locks that are only in lists.
    pub(super) fn listed_count(&self) -> usize {
        let count = |list: &Arc<LockList>| {
            let state = list.state.lock();
            state.rows.count() as usize - state.restored.len()
        };
        self.listed.lists.read().iter().map(count).sum()
    }

    /// Raises the marks of all locks, before locks without entries are dropped: their next
    /// holders must see `mark`.
    pub(super) fn raise_marks_of(&self, modes: ModeSet, mark: Sequence) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            for mode in modes.iter() {
                shard.marks[mode.index()].iter_mut().for_each(|raised| *raised = mark.max(*raised));
            }
        }
    }
}

#[cfg(test)]
mod tests;
