//! Spilled row locks: locks of a transaction that has locked very many rows, written to disk.
//!
//! The locks of rows without waiters or other holders are written to sorted runs of fixed-size
//! records, and their entries are removed from the lock table. A later request for a lock of that
//! table first searches the runs of all other transactions and restores the entry that it finds,
//! which is then an ordinary lock: queues, modes, deadlocks, views.
//!
//! ```text
//!   owner:  run written, registered (version + 1), then entries removed
//!   other:  [ searches the runs : entry restored ], shard locked [ version changed? again ], lock
//! ```
//!
//! The owner itself does not search: it locks such a row again as if it were new.
//!
//! # Invariants
//!
//! 1. An entry is removed after its run is registered, under the lock of its shard; a request
//!    that finds it missing finds the run.
//! 2. A restored entry stays until its transaction releases it.
//!
//! Debug assertions check 1 before entries are removed, and 2 when the transaction ends. Lock
//! order: the runs of a transaction, then shards.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use smallvec::SmallVec;

use crate::cell::Sequence;
use crate::descriptor::TableId;
use crate::env::{Env, ReadFile};
use crate::error::{Error, Result};
use crate::lock::entry::LockEntry;
use crate::lock::{LockKey, LockList, LockTable, Owner};
use crate::lock_mode::{LockMode, ModeSet};
use crate::spill::SpillDirectory;

/// Bytes of a record: key, table, modes, edits before its deletion, position.
const RECORD_BYTES: usize = 16 + 4 + 2 + 8 + 8;
/// Records per read.
const BLOCK_RECORDS: usize = 128;
/// Value for a row that is not deleted.
const NOT_DELETED: u64 = u64::MAX;

/// Registry of the transactions that have spilled locks.
#[derive(Default)]
pub(super) struct SpilledLockRegistry {
    lists: RwLock<Vec<Arc<SpilledLocks>>>,
    /// Number of runs ever registered. While it is 0, requests skip the search.
    version: AtomicU64,
}

/// The locks that a transaction has spilled.
pub(crate) struct SpilledLocks {
    owner: Owner,
    files: Arc<SpillDirectory>,
    locks: Mutex<Locks>,
}

#[derive(Default)]
struct Locks {
    has_ended: bool,
    runs: Vec<LockRun>,
    /// Restored locks, with their records.
    restored: HashMap<LockKey, Record>,
    /// Ranges of edits that are undone: from, to.
    undone: Vec<(u64, u64)>,
}

/// A spilled lock.
#[derive(Clone, Copy)]
struct Record {
    key: LockKey,
    table: TableId,
    modes: ModeSet,
    /// Edits before the deletion of the row.
    deleted_after: u64,
    /// Position among the locks of the transaction.
    place: u64,
}

/// File of locks in key order.
struct LockRun {
    file: Arc<dyn ReadFile>,
    path: std::path::PathBuf,
    env: Arc<dyn Env>,
    count: usize,
    tables: HashSet<TableId>,
    /// Union of the modes.
    modes: ModeSet,
    /// The lowest and the highest position.
    places: (u64, u64),
    /// The first key of each block, and its checksum.
    blocks: Vec<(u64, u32)>,
}

impl Drop for LockRun {
    fn drop(&mut self) {
        // If that fails, the next opening removes it.
        if let Err(error) = self.env.remove(&self.path) {
            tracing::warn!(%error, "could not remove spilled locks");
        }
    }
}

impl Record {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.key.to_bytes());
        out.extend_from_slice(&self.table.0.to_le_bytes());
        out.extend_from_slice(&self.modes.bits().to_le_bytes());
        out.extend_from_slice(&self.deleted_after.to_le_bytes());
        out.extend_from_slice(&self.place.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<Record> {
        let (key, rest) = bytes.split_first_chunk::<16>()?;
        let (table, rest) = rest.split_first_chunk::<4>()?;
        let (modes, rest) = rest.split_first_chunk::<2>()?;
        let (deleted_after, rest) = rest.split_first_chunk::<8>()?;
        let (place, _) = rest.split_first_chunk::<8>()?;
        Some(Record {
            key: LockKey::from_bytes(*key),
            table: TableId(u32::from_le_bytes(*table)),
            modes: ModeSet::from_bits(u16::from_le_bytes(*modes)),
            deleted_after: u64::from_le_bytes(*deleted_after),
            place: u64::from_le_bytes(*place),
        })
    }
}

impl LockRun {
    /// Writes records, which must be in key order.
    fn write(files: &SpillDirectory, records: &[Record]) -> Result<LockRun> {
        let order = |record: &Record| (record.key.high, record.key.low);
        debug_assert!(
            records.is_sorted_by(|one, next| order(one) < order(next)),
            "a run has each lock once, in key order"
        );
        let (env, path) = (Arc::clone(files.env()), files.name_file()?.1);
        let mut blocks = Vec::with_capacity(records.len().div_ceil(BLOCK_RECORDS));
        let mut write = || {
            let mut file = env.create(&path)?;
            let mut bytes = Vec::with_capacity(BLOCK_RECORDS * RECORD_BYTES);
            for block in records.chunks(BLOCK_RECORDS) {
                bytes.clear();
                block.iter().for_each(|record| record.encode(&mut bytes));
                assert_eq!(bytes.len(), block.len() * RECORD_BYTES, "records have one length");
                blocks.push((block[0].key.high, crc32c::crc32c(&bytes)));
                file.append(&bytes)?;
            }
            drop(file);
            env.open(&path)
        };
        let file = write().inspect_err(|_| {
            // The file may not exist.
            let _ = env.remove(&path);
        })?;
        let places = records.iter().map(|record| record.place);
        let mut modes = ModeSet::default();
        records.iter().flat_map(|record| record.modes.iter()).for_each(|mode| modes.add(mode));
        Ok(LockRun {
            file,
            path,
            env,
            count: records.len(),
            tables: records.iter().map(|record| record.table).collect(),
            modes,
            places: (places.clone().min().unwrap_or(0), places.max().unwrap_or(0)),
            blocks,
        })
    }

    fn read_block(&self, index: usize) -> Result<Vec<Record>> {
        let first = index * BLOCK_RECORDS;
        let count = BLOCK_RECORDS.min(self.count - first);
        let mut bytes = vec![0; count * RECORD_BYTES];
        let offset = (first * RECORD_BYTES) as u64;
        self.file.read_at(offset, &mut bytes)?;
        if crc32c::crc32c(&bytes) != self.blocks[index].1 {
            return Err(Error::corrupt(&self.path, offset, "spilled locks are damaged"));
        }
        Ok(bytes.chunks_exact(RECORD_BYTES).filter_map(Record::decode).collect())
    }

    fn find(&self, key: LockKey) -> Result<Option<Record>> {
        // Keys of one block may continue in the next.
        let from = self.blocks.partition_point(|(first, _)| *first < key.high).saturating_sub(1);
        for index in from..self.blocks.len() {
            if self.blocks[index].0 > key.high {
                break;
            }
            let block = self.read_block(index)?;
            if let Some(record) = block.into_iter().find(|record| record.key == key) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Writes a new run of the locks with positions below `place`.
    fn before(&self, place: u64, files: &SpillDirectory) -> Result<LockRun> {
        let mut kept = Vec::new();
        for index in 0..self.blocks.len() {
            kept.extend(self.read_block(index)?.into_iter().filter(|lock| lock.place < place));
        }
        LockRun::write(files, &kept)
    }
}

impl Locks {
    fn find(&self, key: LockKey, table: TableId) -> Result<Option<Record>> {
        // A row that was locked again after it was spilled is in several runs.
        let mut found: Option<Record> = None;
        for run in self.runs.iter().filter(|run| run.tables.contains(&table)) {
            let Some(record) = run.find(key)? else { continue };
            let Some(found) = &mut found else {
                found = Some(record);
                continue;
            };
            record.modes.iter().for_each(|mode| found.modes.add(mode));
            found.place = found.place.min(record.place);
            if !self.has_deleted(found) {
                found.deleted_after = record.deleted_after;
            }
        }
        Ok(found)
    }

    fn has_deleted(&self, record: &Record) -> bool {
        let at = record.deleted_after;
        at != NOT_DELETED && !self.undone.iter().any(|(from, to)| (*from..=*to).contains(&at))
    }

    fn modes(&self) -> ModeSet {
        let mut modes = ModeSet::default();
        self.runs.iter().flat_map(|run| run.modes.iter()).for_each(|mode| modes.add(mode));
        modes
    }
}

impl SpilledLocks {
    /// Clears the deletion flags of rows deleted between `from` and `to` edits.
    pub(crate) fn undelete(&self, (from, to): (u64, u64), table: &LockTable) {
        let mut locks = self.locks.lock();
        locks.undone.push((from, to));
        for record in
            locks.restored.values().filter(|record| (from..=to).contains(&record.deleted_after))
        {
            table.set_deleted(self.owner, record.key, false);
        }
    }

    /// Removes the locks from a position on from the runs. Returns those with restored entries.
    ///
    /// # Errors
    ///
    /// Errors of rewriting a run; the locks are unchanged then.
    fn take_from(&self, place: u64) -> Result<Vec<LockKey>> {
        let mut locks = self.locks.lock();
        let straddles = |run: &LockRun| run.places.0 < place && run.places.1 >= place;
        let cut = locks.runs.iter().position(straddles);
        let before = cut.map(|index| locks.runs[index].before(place, &self.files)).transpose()?;
        locks.runs.retain(|run| run.places.1 < place);
        locks.runs.extend(before);
        let restored = locks.restored.extract_if(|_, record| record.place >= place);
        Ok(restored.map(|(key, _)| key).collect())
    }
}

/// Number of recent locks searched for the one that a statement has just taken.
const LAST_LOCKS: usize = 16;

/// The locks of a transaction, in the order in which they were taken: in the lock table, spilled,
/// or in lists.
#[derive(Default)]
pub(crate) struct HeldLocks {
    keys: Vec<LockKey>,
    /// Number of locks before the first of `keys`.
    before: u64,
    /// Locks before `keys` that could not be spilled, by position.
    pinned: Vec<(u64, LockKey)>,
    /// The spilled locks.
    pub(crate) spilled: Option<Arc<SpilledLocks>>,
    /// The lists of row locks, one per table.
    pub(crate) lists: SmallVec<[Arc<LockList>; 1]>,
    /// Number of positions requested so far.
    pub(crate) lock_places: u64,
    /// The last position that may be rolled back to.
    marked: u64,
}

impl HeldLocks {
    /// Adds a lock.
    pub(crate) fn push(&mut self, key: LockKey) {
        self.keys.push(key);
    }

    /// Returns the locks in memory, in no particular order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = LockKey> + '_ {
        self.keys.iter().copied().chain(self.pinned())
    }

    /// Returns the list of the locks of a table.
    pub(crate) fn list_of(&self, table: TableId) -> Option<&Arc<LockList>> {
        self.lists.iter().find(|list| list.table() == table)
    }

    /// Returns the bytes of memory that lists take.
    pub(crate) fn listed_bytes(&self) -> u64 {
        self.lists.iter().map(|list| list.held_bytes()).sum()
    }

    /// Returns the position behind the last lock.
    pub(crate) fn place(&self) -> u64 {
        self.before + self.keys.len() as u64
    }

    /// Returns that position, and marks it as one that may be rolled back to.
    pub(crate) fn mark(&mut self) -> u64 {
        self.marked = self.place();
        self.marked
    }

    /// Returns whether a lock is among the last few, and was taken after all marked positions: it
    /// is released completely then, regardless of its mode.
    pub(crate) fn is_unmarked(&self, key: LockKey) -> bool {
        let first = usize::try_from(self.marked.saturating_sub(self.before)).unwrap_or(usize::MAX);
        let unmarked = self.keys.get(first..).unwrap_or_default();
        unmarked.iter().rev().take(LAST_LOCKS).any(|taken| *taken == key)
    }

    /// Removes a lock if it is among the last few and was taken after all marked positions.
    /// Returns whether it was removed.
    pub(crate) fn take_back(&mut self, key: LockKey) -> bool {
        let first = usize::try_from(self.marked.saturating_sub(self.before)).unwrap_or(usize::MAX);
        let first = first.max(self.keys.len().saturating_sub(LAST_LOCKS));
        let unmarked = self.keys.get(first..).unwrap_or_default();
        let Some(at) = unmarked.iter().rposition(|taken| *taken == key) else { return false };
        self.keys.remove(first + at);
        true
    }

    /// Returns the number of locks in memory.
    pub(crate) fn count(&self) -> usize {
        self.keys.len() + self.pinned.len()
    }

    /// Returns the number of locks that may be spilled.
    pub(crate) fn spillable(&self) -> usize {
        self.keys.len()
    }

    /// Removes and returns the locks from a position on.
    pub(crate) fn split_off(&mut self, place: u64) -> Vec<LockKey> {
        let at = usize::try_from(place.saturating_sub(self.before)).unwrap_or(usize::MAX);
        let mut taken = self.keys.split_off(at.min(self.keys.len()));
        let pinned = self.pinned.partition_point(|(at, _)| *at < place);
        taken.extend(self.pinned.drain(pinned..).map(|(_, key)| key));
        taken
    }

    /// Returns the locks that cannot be spilled.
    pub(crate) fn pinned(&self) -> impl Iterator<Item = LockKey> + '_ {
        self.pinned.iter().map(|(_, key)| *key)
    }

    /// Removes and returns all locks.
    pub(crate) fn take(&mut self) -> Vec<LockKey> {
        self.split_off(0)
    }
}

impl LockTable {
    /// Writes the row locks of a transaction that have no waiters or other holders to a run, and
    /// removes their entries. `deleted` are the rows that it has deleted, with the edits before;
    /// pinned locks stay in memory.
    ///
    /// # Errors
    ///
    /// Errors of writing; the locks are unchanged then.
    pub(crate) fn spill(
        &self,
        owner: Owner,
        held: &mut HeldLocks,
        (deleted, pinned): (&HashMap<LockKey, u64>, &HashSet<LockKey>),
        files: &Arc<SpillDirectory>,
    ) -> Result<()> {
        let mut records = Vec::with_capacity(held.keys.len());
        for (index, key) in held.keys.iter().enumerate() {
            if pinned.contains(key) {
                continue;
            }
            let shard = self.shards[key.shard()].lock();
            let found = shard.entries.get(key).and_then(|entry| entry.of_row_alone(owner));
            let Some((table, modes)) = found else { continue };
            let deleted_after = deleted.get(key).copied().unwrap_or(NOT_DELETED);
            let place = held.before + index as u64;
            records.push(Record { key: *key, table, modes, deleted_after, place });
        }
        if records.is_empty() {
            return Ok(());
        }
        records.sort_unstable_by_key(|record| (record.key.high, record.key.low));
        let run = LockRun::write(files, &records)?;
        let list = held.spilled.get_or_insert_with(|| {
            let (files, locks) = (Arc::clone(files), Mutex::default());
            let list = Arc::new(SpilledLocks { owner, files, locks });
            self.spilled.lists.write().push(Arc::clone(&list));
            list
        });
        list.locks.lock().runs.push(run);
        self.spilled.version.fetch_add(1, Ordering::SeqCst);
        debug_assert!(
            self.spilled.lists.read().iter().any(|other| Arc::ptr_eq(other, list)),
            "requests do not find the run"
        );
        let mut spilled: HashSet<LockKey> = HashSet::with_capacity(records.len());
        for record in records {
            let mut shard = self.shards[record.key.shard()].lock();
            if let Entry::Occupied(entry) = shard.entries.entry(record.key)
                && entry.get().of_row_alone(owner) == Some((record.table, record.modes))
            {
                entry.remove();
                spilled.insert(record.key);
            }
        }
        let before = held.before;
        held.before = held.place();
        let left = std::mem::take(&mut held.keys).into_iter().enumerate();
        let left = left.filter(|(_, key)| !spilled.contains(key));
        held.pinned.extend(left.map(|(index, key)| (before + index as u64, key)));
        debug_assert!(
            held.pinned.is_sorted_by(|(one, _), (next, _)| one < next),
            "pinned locks are in the order of their positions"
        );
        Ok(())
    }

    /// Returns the number of runs ever registered.
    pub(super) fn spills(&self) -> u64 {
        self.spilled.version.load(Ordering::SeqCst)
    }

    /// Restores the entries that owners other than `owner` have spilled for a lock.
    ///
    /// # Errors
    ///
    /// Errors of reading.
    pub(super) fn restore(&self, owner: Owner, (key, table): (LockKey, TableId)) -> Result<()> {
        if self.spills() == 0 {
            return Ok(());
        }
        let lists = self.spilled.lists.read().clone();
        for list in lists.iter().filter(|list| list.owner != owner) {
            let mut locks = list.locks.lock();
            if locks.has_ended || locks.restored.contains_key(&key) {
                continue;
            }
            let Some(record) = locks.find(key, table)? else { continue };
            let mut shard = self.shards[key.shard()].lock();
            let entry = match shard.entries.entry(key) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(vacant) => {
                    let mode = record.modes.iter().last().unwrap_or(LockMode::Exclusive);
                    vacant.insert(LockEntry::new(table, list.owner, mode))
                }
            };
            record.modes.iter().for_each(|mode| entry.hold(list.owner, mode));
            // The row may have been changed.
            entry.note_change(record.modes.covers(LockMode::NoKeyExclusive));
            if locks.has_deleted(&record) {
                entry.set_deleted(list.owner, true);
            }
            drop(shard);
            locks.restored.insert(key, record);
        }
        Ok(())
    }

    /// Returns a lock that a transaction has spilled. One that cannot be read counts as missing:
    /// the caller takes it again.
    pub(super) fn held_spilled(
        &self,
        owner: Owner,
        key: LockKey,
    ) -> Option<(TableId, ModeSet, bool)> {
        if self.spills() == 0 {
            return None;
        }
        let lists = self.spilled.lists.read().clone();
        let list = lists.iter().find(|list| list.owner == owner)?;
        let locks = list.locks.lock();
        let table = locks.runs.iter().find_map(|run| Some(run.find(key).ok()??.table))?;
        let found = locks.find(key, table).ok()??;
        Some((found.table, found.modes, locks.has_deleted(&found)))
    }

    /// Returns whether a transaction has spilled locks of a table.
    pub(super) fn has_spilled(&self, table: TableId) -> bool {
        self.spills() > 0
            && self
                .spilled
                .lists
                .read()
                .iter()
                .any(|list| list.locks.lock().runs.iter().any(|run| run.tables.contains(&table)))
    }

    /// Releases the locks that a transaction has spilled from a position on. Returns those with
    /// restored entries.
    pub(crate) fn release_spilled(
        &self,
        list: &SpilledLocks,
        place: u64,
        mark: Sequence,
    ) -> Vec<LockKey> {
        self.raise_all_marks(list, mark);
        list.take_from(place).unwrap_or_else(|error| {
            tracing::warn!(%error, "could not release locks acquired after a savepoint");
            Vec::new()
        })
    }

    /// Releases all locks that a transaction has spilled, at its end. Returns those with restored
    /// entries.
    pub(crate) fn end_spilled(&self, list: &SpilledLocks, mark: Sequence) -> Vec<LockKey> {
        self.raise_all_marks(list, mark);
        let mut locks = list.locks.lock();
        locks.has_ended = true;
        let restored = std::mem::take(&mut locks.restored);
        let runs = std::mem::take(&mut locks.runs);
        drop(locks);
        self.spilled.lists.write().retain(|other| other.owner != list.owner);
        drop(runs);
        self.check_restored(list.owner, restored.keys());
        restored.into_keys().collect()
    }

    /// Raises the marks before spilled locks are dropped: their next holders must see `mark`.
    fn raise_all_marks(&self, list: &SpilledLocks, mark: Sequence) {
        let modes = list.locks.lock().modes();
        self.raise_marks_of(modes, mark);
    }
}
