//! Row locks of a transaction that takes those of very many rows of a table, in the order of the
//! rows: a list of rows instead of entries in the table of locks.
//!
//! While nobody else wants a row of the table, such a lock costs some bytes at the end of the list.
//! Who comes and wants one looks into the list first. That closes it: its owner takes further locks
//! in the table of locks, as everybody does. If the row is in the list, its entry is put into the
//! table; from then on all is as with any lock: queues, modes, deadlocks, views.
//!
//! ```text
//!   owner:  list listed (version + 1), then: has anybody else a lock of the table? no list
//!           [ list open? row added : lock ]
//!   other:  [ list closed, row in it? entry put into the table ], shard locked
//!           [ version changed? again ], lock
//! ```
//!
//! # Invariants
//!
//! 1. While a list is open, nobody but its owner has a lock of a row of its table. A row is added
//!    under the lock of the list, and so is the list closed.
//! 2. An entry that was made for a row of a list stays until its transaction gives it back.
//! 3. Lock order: a list, then shards.
//! 4. What the last holders of the table's locks have committed when the list was opened, its owner
//!    was told then. Nobody else had one since.

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

/// Rows that are not found before no others are looked for.
const MISSES_MAX: u64 = 64;

/// Rows of which a stronger lock is wanted before no others are added.
const STRENGTHENED_MAX: u64 = 64;

/// The lists of all transactions.
#[derive(Default)]
pub(super) struct Listed {
    lists: RwLock<Vec<Arc<LockList>>>,
    /// How many there are.
    count: AtomicUsize,
    /// How many there ever were.
    version: AtomicU64,
}

/// The locks of rows of one table that a transaction has in one mode.
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
    /// How often its owner wanted the lock of a row before its end that is not in it.
    misses: u64,
    /// How often its owner wanted a stronger lock of a row that is in it.
    strengthened: u64,
    /// The number of rows when the first one was added after a place, by place.
    places: Vec<(u64, u64)>,
    /// Those of the rows that are deleted.
    deleted: OrderedRows,
    /// The number of deleted rows when the first was added after so many edits, by edits.
    deletions: Vec<(u64, u64)>,
    /// Rows whose entries are in the table of locks.
    restored: HashMap<LockKey, Vec<u8>>,
}

/// What a list says of a lock that its owner wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListedLock {
    /// It had it before.
    Held,
    /// It was added.
    Added,
    /// It is to be taken in the table of locks.
    Elsewhere,
}

impl ListState {
    fn all_rows(&mut self) -> [&mut OrderedRows; 2] {
        [&mut self.rows, &mut self.deleted]
    }
}

impl LockList {
    /// Returns the table of which the rows are.
    pub(crate) fn table(&self) -> TableId {
        self.table
    }

    /// Returns the bytes of memory that it takes.
    pub(crate) fn held_bytes(&self) -> u64 {
        let state = self.state.lock();
        (state.rows.held_bytes() + state.deleted.held_bytes()) as u64
    }

    /// Writes most of it to disk once that takes more than `most` bytes.
    ///
    /// # Errors
    ///
    /// Those of writing; it is as it was then, or some of it is.
    pub(crate) fn spill(&self, most: u64, files: &SpillDirectory) -> Result<()> {
        let mut state = self.state.lock();
        for rows in state.all_rows() {
            if rows.spillable_bytes() as u64 > most {
                rows.spill(files)?;
            }
        }
        Ok(())
    }

    /// Takes a lock after a place, if it can be one of the list.
    ///
    /// # Errors
    ///
    /// Those of reading what was spilled.
    pub(crate) fn take(
        &self,
        row: &[u8],
        (mode, place): (LockMode, u64),
        table: &LockTable,
    ) -> Result<ListedLock> {
        let mut state = self.state.lock();
        let is_covered = ModeSet::of(self.mode).covers(mode);
        if state.rows.is_before(row) {
            if state.is_closed || mode != self.mode {
                return Ok(ListedLock::Elsewhere);
            }
            if state.places.last().is_none_or(|(last, _)| *last < place) {
                let count = state.rows.count();
                state.places.push((place, count));
            }
            state.rows.push(row);
            return Ok(ListedLock::Added);
        }
        // Rows that come in another order are hardly ever in it, and need not be found: the owner
        // may have both, a row in its list and an entry.
        let is_in_vain = state.misses > MISSES_MAX && state.misses > state.rows.count();
        if is_in_vain || !state.rows.contains(row)? {
            state.misses += 1;
            return Ok(ListedLock::Elsewhere);
        }
        if is_covered {
            return Ok(ListedLock::Held);
        }
        // A stronger one is a mode of an entry. A statement that wants them of all rows, as an
        // UPDATE of keys does, had better take entries, which can be spilled.
        state.strengthened += 1;
        state.is_closed |= state.strengthened > STRENGTHENED_MAX;
        let key = LockKey::new(self.table, row);
        self.restore(&mut state, key, row, table)?;
        Ok(ListedLock::Elsewhere)
    }

    /// Takes the lock out that was added last, if it is that of a row. Returns whether the lock has
    /// an entry in the table of locks.
    ///
    /// # Errors
    ///
    /// Those of reading what was spilled.
    pub(crate) fn take_back(&self, row: &[u8]) -> Result<bool> {
        let mut state = self.state.lock();
        if !state.rows.is_last(row) {
            return Ok(false);
        }
        let count = state.rows.count() - 1;
        state.rows.truncate(count)?;
        Ok(state.restored.remove(&LockKey::new(self.table, row)).is_some())
    }

    /// Returns whether it has the lock of a row in a mode, or a stronger one.
    ///
    /// # Errors
    ///
    /// Those of reading what was spilled.
    pub(crate) fn has(&self, row: &[u8], mode: LockMode) -> Result<bool> {
        Ok(ModeSet::of(self.mode).covers(mode) && self.state.lock().rows.contains(row)?)
    }

    /// Notes that a row was deleted after so many edits. Returns whether it is one of the list.
    ///
    /// # Errors
    ///
    /// Those of reading what was spilled.
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
        if state.restored.contains_key(&key) {
            table.set_deleted(self.owner, key, true);
        }
        Ok(true)
    }

    /// Forgets the deletions after so many edits.
    ///
    /// # Errors
    ///
    /// Those of reading what was spilled.
    pub(crate) fn undelete(&self, edits: u64, table: &LockTable) -> Result<()> {
        let mut state = self.state.lock();
        let kept = state.deletions.partition_point(|(after, _)| *after < edits);
        let Some((_, count)) = state.deletions.get(kept).copied() else { return Ok(()) };
        let ListState { deleted, restored, deletions, .. } = &mut *state;
        for (key, row) in restored.iter() {
            // What was deleted before stays: it is among the first.
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

    /// Makes an entry of a row of the list.
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
        // It may be.
        entry.note_change(true);
        if is_deleted {
            entry.set_deleted(self.owner, true);
        }
        Ok(())
    }

    /// Takes the locks out that were taken after a place. Returns those that have entries.
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
    /// Begins a list of locks of a table, unless somebody else has one. Returns it, and what its
    /// owner has to see that others have committed.
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
        // Who has spilled locks meanwhile had them when the list was opened.
        if self.has_spilled(table) {
            self.remove_list(&list);
            return None;
        }
        Some((list, mark))
    }

    fn remove_list(&self, list: &Arc<LockList>) {
        let mut lists = self.listed.lists.write();
        let before = lists.len();
        lists.retain(|other| !Arc::ptr_eq(other, list));
        self.listed.count.fetch_sub(before - lists.len(), Ordering::SeqCst);
    }

    /// Returns how many lists there ever were.
    pub(super) fn lists_opened(&self) -> u64 {
        self.listed.version.load(Ordering::SeqCst)
    }

    /// Returns whether somebody has a list of a table.
    pub(super) fn has_list(&self, table: TableId) -> bool {
        self.listed.count.load(Ordering::SeqCst) > 0
            && self.listed.lists.read().iter().any(|list| list.table == table)
    }

    /// Closes the lists that others than `owner` have of the table of a row, and makes an entry of
    /// the row if it is in one.
    ///
    /// # Errors
    ///
    /// Those of reading what was spilled.
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

    /// Gives back the locks of a list that were taken after a place. Returns those whose entries
    /// are in the table.
    pub(crate) fn release_listed(
        &self,
        list: &LockList,
        place: u64,
        mark: Sequence,
    ) -> Vec<LockKey> {
        self.raise_marks_of(ModeSet::of(list.mode), mark);
        list.take_after(place).unwrap_or_else(|error| {
            tracing::warn!(%error, "locks taken after a savepoint stay");
            Vec::new()
        })
    }

    /// Gives back all locks of a list, at the end of its transaction. Returns those whose entries
    /// are in the table.
    pub(crate) fn end_list(&self, list: &Arc<LockList>, mark: Sequence) -> Vec<LockKey> {
        self.raise_marks_of(ModeSet::of(list.mode), mark);
        let mut state = list.state.lock();
        state.has_ended = true;
        let ended =
            std::mem::replace(&mut *state, ListState { has_ended: true, ..ListState::default() });
        drop(state);
        self.remove_list(list);
        ended.restored.into_keys().collect()
    }

    /// Makes entries of all locks of a list, which ends. Returns them.
    ///
    /// # Errors
    ///
    /// Those of reading what was spilled; the list is as it was then.
    pub(crate) fn dissolve_list(&self, list: &Arc<LockList>) -> Result<Vec<LockKey>> {
        let mut state = list.state.lock();
        let mut rows = Vec::new();
        state.rows.for_each(|row| rows.push(row.to_vec()))?;
        for row in rows {
            let key = LockKey::new(list.table, &row);
            list.restore(&mut state, key, &row, self)?;
        }
        drop(state);
        // They stay, whatever becomes of the list.
        Ok(self.end_list(list, Sequence(0)))
    }

    /// Returns how many locks are in lists and not in the table.
    pub(super) fn listed_count(&self) -> usize {
        let count = |list: &Arc<LockList>| {
            let state = list.state.lock();
            state.rows.count() as usize - state.restored.len()
        };
        self.listed.lists.read().iter().map(count).sum()
    }

    /// Before nobody finds locks any more that have no entries: who has one of them next has to see
    /// `mark`.
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
