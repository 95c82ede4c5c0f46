//! Prepared transactions: the first half of two-phase commit.
//!
//! [`Transaction::prepare`] makes all checks of a commit and returns a [`PreparedTransaction`],
//! which belongs to no client: staged cells and row locks. Only a write to the log can still
//! fail. The caller stores its encoded form ([`PreparedTransaction::encode`]) as rows of a table
//! before it answers the client; [`Store::recover_prepared`](crate::Store::recover_prepared)
//! re-creates the transaction with its locks after a restart. Its commit deletes these rows in
//! the same log record. So the log, flushes and checkpoints need no special handling: prepared
//! transactions are ordinary rows until they end. The byte format is in
//! `docs/formats/prepared-transaction.md`.
//!
//! # Invariants
//!
//! 1. It is either prepared, with all cells and locks, or ended, with none.
//! 2. A commit that fails leaves it prepared.
//! 3. A SERIALIZABLE one stays listed as pending until it ends: see [`crate::serializable`], which
//!    asserts it in debug builds.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::Mutex;

use crate::codec::{Input, push_varint};
use crate::descriptor::{Durability, TableId};
use crate::engine::{Engine, UNPLACED};
use crate::error::{Error, Result};
use crate::key_changes::NetKeyChange;
use crate::lock::{LockKey, LockOutcome, Owner, TransactionEnd, WaitPolicy};
use crate::lock_mode::{LockMode, ModeSet};
use crate::mutation::{LockWait, Mutation};
use crate::observer::BatchOutcome;
use crate::transaction::key_change_following::publish;
use crate::transaction::staging::{ObservedBatch, Staging};
use crate::transaction::{Commit, Transaction, prepare_writes, serializable, tell};
use crate::wal::Cells;

/// The version of the encoding.
const VERSION: u8 = 2;
/// Flag of the mode of a row lock: the row is deleted.
const DELETED: u8 = 0x80;
/// Flag of a transaction that is SERIALIZABLE.
const SERIALIZABLE: u8 = 1;
/// A prepared transaction cannot be cancelled.
static NEVER: AtomicBool = AtomicBool::new(false);

/// A transaction that any session may commit or roll back, at any time. Dropping it does not end
/// it: its locks stay until the store is closed.
pub struct PreparedTransaction {
    engine: Arc<Engine>,
    /// Keeps the store from stopping.
    _store: Arc<dyn Any + Send + Sync>,
    owner: Owner,
    is_serializable: bool,
    /// `None` once it has ended.
    work: Mutex<Option<PreparedWork>>,
}

struct PreparedWork {
    staging: Staging,
    held: Vec<LockKey>,
    /// Rows whose key it has changed.
    moved: Vec<NetKeyChange>,
}

impl Transaction {
    /// Prepares the transaction. Its staged writes and locks move to the prepared one; this one
    /// is empty and must not be used.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::commit`]; the transaction must be rolled back then.
    pub fn prepare(&self) -> Result<PreparedTransaction> {
        let mut staging = std::mem::take(&mut *self.staging.lock());
        if staging.is_spilled() || self.held.lock().spilled.is_some() {
            tell(&staging.take_kept(), BatchOutcome::Undone);
            return Err(Error::PreparedTooLarge);
        }
        if let Err(error) = self.dissolve_lists() {
            tell(&staging.take_kept(), BatchOutcome::Undone);
            return Err(error);
        }
        let validated = prepare_writes(&self.engine, &staging, &self.options.cancelled)
            .and_then(|writes| self.validate(&writes));
        let pending = match validated {
            Ok(pending) => pending,
            Err(error) => {
                tell(&staging.take_kept(), BatchOutcome::Undone);
                return Err(error);
            }
        };
        let is_serializable = pending.is_some();
        if let Some(pending) = pending {
            pending.leave();
        }
        self.statement.lock().snapshot = None;
        let mut held = self.held.lock().take();
        for key in self.take_reads() {
            if !held.contains(&key) {
                held.push(key);
            }
        }
        let moved = self.net_moves(&staging)?;
        self.release(TransactionEnd::Undone);
        Ok(PreparedTransaction {
            engine: Arc::clone(&self.engine),
            _store: Arc::clone(&self._store),
            owner: self.owner,
            is_serializable,
            work: Mutex::new(Some(PreparedWork { staging, held, moved })),
        })
    }
}

impl PreparedTransaction {
    /// Returns the number of the transaction, unique while the store is open.
    pub fn id(&self) -> u64 {
        self.owner.0
    }

    /// Returns the tables that it writes to.
    pub fn tables(&self) -> Vec<TableId> {
        let work = self.work.lock();
        let staged = work.iter().flat_map(|work| work.staging.tables());
        staged.map(|staged| staged.table.id()).collect()
    }

    /// Encodes the transaction for recovery after a restart.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if it has ended.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let work = self.work.lock();
        let Some(PreparedWork { staging, held, moved }) = &*work else { return Err(ended()) };
        let mut bytes = vec![VERSION, if self.is_serializable { SERIALIZABLE } else { 0 }];
        let of_lock = |key: &LockKey| Some((self.engine.locks.held(self.owner, *key)?, *key));
        let locks =
            held.iter().filter_map(of_lock).flat_map(|((table, modes, is_deleted), key)| {
                modes.shown().map(move |mode| (table, mode, is_deleted, key))
            });
        let locks: Vec<_> = locks.collect();
        push_varint(&mut bytes, locks.len() as u64);
        for (table, mode, is_deleted, key) in locks {
            bytes.push(mode.index() as u8 | if is_deleted { DELETED } else { 0 });
            push_varint(&mut bytes, u64::from(table.0));
            bytes.extend_from_slice(&key.to_bytes());
        }
        let writes = prepare_writes(&self.engine, staging, &NEVER)?;
        push_varint(&mut bytes, writes.regions.len() as u64);
        for part in &writes.regions {
            push_varint(&mut bytes, u64::from(part.region.table().0));
            push_varint(&mut bytes, part.cells.bytes().len() as u64);
            bytes.extend_from_slice(part.cells.bytes());
        }
        push_varint(&mut bytes, moved.len() as u64);
        for NetKeyChange { table, from, to } in moved {
            push_varint(&mut bytes, u64::from(table.0));
            // Keys are never empty.
            for key in [from.as_slice(), to.as_deref().unwrap_or_default()] {
                push_varint(&mut bytes, key.len() as u64);
                bytes.extend_from_slice(key);
            }
        }
        Ok(bytes)
    }

    /// Re-creates a prepared transaction from its encoding, with its locks.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if the bytes are malformed; [`Error::NoSuchTable`];
    /// [`Error::LockNotAvailable`] if another transaction has one of its locks.
    pub(crate) fn recover(
        engine: &Arc<Engine>,
        store: Arc<dyn Any + Send + Sync>,
        bytes: &[u8],
    ) -> Result<PreparedTransaction> {
        let owner = engine.new_owner();
        let mut input = Input { bytes };
        let mut read = || read_prepared(engine, owner, &mut input);
        let Some((is_serializable, work)) = read()?.filter(|_| input.bytes.is_empty()) else {
            let detail = "malformed prepared transaction, or unsupported version";
            return Err(Error::InvalidRequest(detail.into()));
        };
        if is_serializable {
            let writes = prepare_writes(engine, &work.staging, &NEVER)?;
            serializable::recover(engine, owner, &writes);
        }
        let work = Mutex::new(Some(work));
        let engine = Arc::clone(engine);
        Ok(PreparedTransaction { engine, _store: store, owner, is_serializable, work })
    }

    /// Commits, and deletes the rows of a table that store its encoding in the same commit.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::commit`]: it stays prepared then.
    pub fn commit(&self, (table, rows): (TableId, Vec<Vec<u8>>)) -> Result<Commit> {
        let mut slot = self.work.lock();
        let Some(work) = slot.as_mut() else { return Err(ended()) };
        let table = self.engine.table(table)?;
        let before = work.staging.count();
        let batch: Vec<Mutation> =
            rows.into_iter().map(|row| Mutation::new(row).delete_row()).collect();
        work.staging.stage(&table, &batch);
        let writes = prepare_writes(&self.engine, &work.staging, &NEVER);
        let committed = writes.and_then(|writes| self.engine.commit(writes, Durability::SyncWal));
        let place = match committed {
            Ok(place) => place,
            Err(error) => {
                drop(work.staging.roll_back_to(before, &self.engine.spill));
                return Err(error);
            }
        };
        let Some(PreparedWork { mut staging, held, moved }) = slot.take() else {
            return Err(ended());
        };
        drop(slot);
        let kept = staging.take_kept();
        kept.iter().for_each(ObservedBatch::committed);
        if self.is_serializable {
            self.engine.serializable.committed(self.owner.0, place.sequence);
        }
        publish(&self.engine, moved, place.sequence);
        self.engine.locks.release(self.owner, held, (TransactionEnd::Committed, place.sequence));
        self.engine.locks.end(self.owner);
        tell(&kept, BatchOutcome::Committed);
        self.engine.wait_applied(place.sequence);
        let durable = self.engine.wal.wait_for(place.sequence);
        Ok(Commit { sequence: Some(place.sequence), timestamp: place.timestamp, durable })
    }

    /// Discards its staged writes and releases its locks. The rows that store its encoding must
    /// have been deleted before.
    pub fn rollback(&self) {
        let Some(PreparedWork { mut staging, held, .. }) = self.work.lock().take() else { return };
        tell(&staging.take_kept(), BatchOutcome::Undone);
        if self.is_serializable {
            self.engine.serializable.abandon(self.owner.0);
        }
        let seen = self.engine.clock().sequence;
        self.engine.locks.release(self.owner, held, (TransactionEnd::Undone, seen));
        self.engine.locks.end(self.owner);
    }
}

fn ended() -> Error {
    Error::InvalidRequest("prepared transaction has already ended".into())
}

/// Decodes the output of [`PreparedTransaction::encode`], and takes the locks; `None` if it is
/// malformed.
fn read_prepared(
    engine: &Engine,
    owner: Owner,
    input: &mut Input<'_>,
) -> Result<Option<(bool, PreparedWork)>> {
    let Some([version, flags]) = input.array() else { return Ok(None) };
    if version != VERSION {
        return Ok(None);
    }
    let Some(lock_count) = input.varint() else { return Ok(None) };
    let mut held = Vec::new();
    for _ in 0..lock_count {
        let Some([mode]) = input.array() else { return Ok(None) };
        let (mode, is_deleted) = (usize::from(mode & !DELETED), mode & DELETED != 0);
        let Some(mode) = LockMode::ALL.get(mode) else { return Ok(None) };
        let Some(table) = read_table(input) else { return Ok(None) };
        let Some(key) = input.array().map(LockKey::from_bytes) else { return Ok(None) };
        let patience = WaitPolicy {
            wait: LockWait::NoWait,
            changes: ModeSet::of(*mode).covers(LockMode::NoKeyExclusive),
            timeout: None,
            deadlock_after: Duration::ZERO,
            cancelled: &NEVER,
            blocking: &*engine.options().blocking,
            on_wait: &|| (),
        };
        let grant = engine.locks.lock_key(owner, (key, table), *mode, patience)?;
        if grant.taken == LockOutcome::New {
            held.push(key);
        }
        engine.locks.set_deleted(owner, key, is_deleted);
    }
    let Some(part_count) = input.varint() else { return Ok(None) };
    let mut staging = Staging::default();
    for _ in 0..part_count {
        let Some(table) = read_table(input) else { return Ok(None) };
        let Some(bytes) = input.slice() else { return Ok(None) };
        let table = engine.table(table)?;
        let Some(cells) = Cells::parse(bytes, UNPLACED) else { return Ok(None) };
        staging.restore(&table, cells);
    }
    let Some(moved) = read_moves(input) else { return Ok(None) };
    Ok(Some((flags & SERIALIZABLE != 0, PreparedWork { staging, held, moved })))
}

fn read_moves(input: &mut Input<'_>) -> Option<Vec<NetKeyChange>> {
    let count = input.varint()?;
    let one = |_| {
        let table = read_table(input)?;
        let (from, to) = (input.slice()?.to_vec(), input.slice()?);
        Some(NetKeyChange { table, from, to: (!to.is_empty()).then(|| to.to_vec()) })
    };
    (0..count).map(one).collect()
}

fn read_table(input: &mut Input<'_>) -> Option<TableId> {
    u32::try_from(input.varint()?).ok().map(TableId)
}
