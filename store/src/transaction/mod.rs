//! Transactions: a snapshot for reads, staged writes, row locks, and one log record at commit.
//!
//! Methods take `&self`, so that a scan can continue while rows are staged and endpoints of
//! several regions can read in parallel; a transaction still belongs to one client at a time.
//!
//! Staged writes are in `staging`. `write` stages a batch, `row` a row mutation; `collapse`
//! computes the final state that a commit writes; `endpoint` calls endpoints.

mod request;
mod serializable;
mod snapshot_export;
mod progression;
mod spill;
mod staging;
mod snapshot_check;
mod final_state;
mod spilled_commit;
mod row_lock;
mod write;
mod lock_lists;
mod key_change_following;
mod memory;
mod row;
mod scan_partitions;
mod endpoint;
mod reader;
mod read_locks;
mod unqueued_lock;
mod prepared;

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::admission::{StatementTurn, StatementWork, StopFlags, count_rows};
use crate::cell::{CellBatch, RowRef, Sequence, Timestamp};
use crate::descriptor::{Durability, TableId};
use crate::engine::{CommitClock, CommitWrites, Engine};
use crate::error::{Error, Result};
use crate::family_store::ReadSpec;
use crate::key_changes::StagedKeyChange;
use crate::lock::{ADVISORY_LOCKS, HeldLocks, LockKey, Owner, READ, ReadLocks, TransactionEnd};
use crate::observer::{BatchOutcome, Hooks, RegionChain};
use crate::quota::{Access, Quota};
use crate::read_path::ReadCaller;
use crate::scan::{CellWindow, Get, Scan, TimeRange};
use crate::serializable::ReadTracker;
use crate::snapshot::TimelineProgress;
use crate::snapshot::{Snapshot, SnapshotPurpose};
use crate::staged::StagedFamilies;
use crate::table::Table;
use crate::transaction::final_state::collapse;
use crate::transaction::request::TransactionRequest;
use crate::transaction::staging::{ObservedBatch, Staging};
use crate::wal::DurableTicket;

use crate::lock_mode::ModeSet;
pub use crate::lock_mode::{LockMode, TableLockMode};
pub use crate::mutation::{
    Consistency, Edit, LockWait, Locking, Mutation, PreviousRow, RowExpectation,
};
pub use crate::scanner::Scanner;
pub use crate::serializable::SerializableMode;
pub use endpoint::AttachedEndpoint;
pub use key_change_following::FollowedRow;
use key_change_following::StagedDeletion;
pub use prepared::PreparedTransaction;
pub use reader::{Parallelism, RowReadAhead, StatementView, TableReader};
pub use row_lock::{SeenLock, SeenRow};
pub use scan_partitions::PartitionRange;
pub use snapshot_check::NewestReads;

/// Isolation level: the snapshot that statements read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// A snapshot for each statement.
    ReadCommitted,
    /// One snapshot, taken by the first statement; a row changed after it cannot be written.
    RepeatableRead,
    /// As `RepeatableRead`, and aborts transactions whose reads fit no serial order.
    Serializable(SerializableMode),
}

impl Isolation {
    /// Returns whether all statements of a transaction see one snapshot.
    pub fn is_repeatable(self) -> bool {
        self != Isolation::ReadCommitted
    }
}

/// Options of a transaction.
#[derive(Clone)]
pub struct TransactionOptions {
    /// Isolation level.
    pub isolation: Isolation,
    /// Rejects writes.
    pub read_only: bool,
    /// Durability of the commit; `None`: the strongest one among the tables written.
    pub durability: Option<Durability>,
    /// Copies of a region that reads may use.
    pub consistency: Consistency,
    /// Maximal wait for a row lock; `None`: no limit.
    pub lock_timeout: Option<Duration>,
    /// Wait for a row lock before the deadlock check.
    pub deadlock_timeout: Duration,
    /// Set by another thread to stop the running statement with
    /// [`Error::Cancelled`].
    pub cancelled: Arc<AtomicBool>,
    /// Name of the writing user, for observers; empty if unknown.
    pub user: Arc<str>,
    /// Quotas of the role and the database, which apply in addition to those of tables.
    pub quotas: [Option<Arc<Quota>>; 2],
    /// List in which the session notes its read locks ([`Transaction::lock_to_read`]); `None`:
    /// they are taken in the lock table.
    pub reads: Option<Arc<ReadLocks>>,
    /// Progress of the session, which its TIMELINE reads include.
    pub progress: Arc<TimelineProgress>,
}

impl Default for TransactionOptions {
    fn default() -> TransactionOptions {
        TransactionOptions {
            isolation: Isolation::ReadCommitted,
            read_only: false,
            durability: None,
            consistency: Consistency::Strong,
            lock_timeout: None,
            deadlock_timeout: DEADLOCK_TIMEOUT,
            cancelled: Arc::default(),
            user: Arc::from(""),
            quotas: [None, None],
            reads: None,
            progress: Arc::default(),
        }
    }
}

/// Most waits end before that; a deadlock check blocks all lock requests for some microseconds.
const DEADLOCK_TIMEOUT: Duration = Duration::from_millis(10);

/// The [`TransactionOptions`] that may change while the transaction is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionLimits {
    /// [`TransactionOptions::lock_timeout`], of waits that begin from now on.
    pub lock_timeout: Option<Duration>,
    /// [`TransactionOptions::deadlock_timeout`], of waits that begin from now on.
    pub deadlock_timeout: Duration,
    /// [`TransactionOptions::durability`], of the commit.
    pub durability: Option<Durability>,
    /// [`TransactionOptions::consistency`], of reads from now on.
    pub consistency: Consistency,
}

/// A savepoint: the number of edits staged before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Savepoint(pub(crate) u64);

/// A position in the list of a transaction's locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockPlace {
    held: u64,
    listed: u64,
    strengthened: usize,
    reads: usize,
}

/// A commit that was applied.
pub struct Commit {
    /// Its sequence; `None` if nothing was written.
    pub sequence: Option<Sequence>,
    /// Its time.
    pub timestamp: Timestamp,
    /// Ready when the commit, and every commit that the transaction has seen, is durable and
    /// visible to new snapshots.
    pub durable: DurableTicket,
}

/// An open transaction. Dropping it rolls it back.
pub struct Transaction {
    engine: Arc<Engine>,
    /// Keeps the store from stopping while the transaction is open.
    _store: Arc<dyn Any + Send + Sync>,
    options: TransactionOptions,
    owner: Owner,
    statement: Mutex<StatementSnapshot>,
    staging: Mutex<Staging>,
    /// True once anything was staged: lets reads skip `staging` before.
    staged: AtomicBool,
    /// Number of nested statements so far.
    inner_statements: AtomicU64,
    /// Execution slots and work of the present statement.
    work: Arc<StatementWork>,
    request: TransactionRequest,
    held: Mutex<HeldLocks>,
    /// True if `held` has lock lists.
    has_lists: AtomicBool,
    /// Locks that it already had when it took them in a further mode.
    strengthened: Mutex<Vec<(LockKey, ModeSet)>>,
    /// The commit that its next snapshot must include, because of the locks that it took.
    floor: AtomicU64,
    /// Number of snapshots that it has exported.
    exported: AtomicU32,
    /// Tracker of its reads, at SERIALIZABLE.
    tracker: Option<Arc<ReadTracker>>,
    limits: Mutex<TransactionLimits>,
    /// Rows whose key it has changed.
    moved: Mutex<Vec<StagedKeyChange>>,
    /// Rows that it has deleted and marked so in the lock table.
    deleted: Mutex<Vec<StagedDeletion>>,
    /// True if the lock table knows its session.
    has_session: AtomicBool,
}

/// Snapshot and staged writes that reads of the present statement see.
struct StatementSnapshot {
    snapshot: Option<Arc<Snapshot>>,
    /// Newer snapshot that is read instead; see [`Transaction::read_newest`].
    newest: Option<Arc<Snapshot>>,
    staged_through: Sequence,
    now_micros: i64,
}

impl StatementSnapshot {
    /// Returns the snapshot that is read, if there is one.
    fn shown(&self) -> Option<&Arc<Snapshot>> {
        self.newest.as_ref().or(self.snapshot.as_ref())
    }

    /// Returns the read specification for the newest versions.
    fn spec(&self, snapshot: Sequence) -> ReadSpec {
        ReadSpec {
            snapshot,
            staged_through: self.staged_through,
            time_range: TimeRange::ALL,
            max_versions: 1,
            raw: false,
            now_micros: self.now_micros,
        }
    }
}

/// Above every committed sequence and below every staged one.
const NEWEST_COMMIT: Sequence = Sequence(Sequence::STAGED - 1);
/// Above every staged sequence.
const ALL_STAGED: Sequence = Sequence(u64::MAX);

impl Transaction {
    /// Begins a transaction.
    pub(crate) fn begin(
        engine: Arc<Engine>,
        store: Arc<dyn Any + Send + Sync>,
        mut options: TransactionOptions,
    ) -> Transaction {
        let owner = engine.new_owner();
        let tracker = serializable::tracker(&engine, &mut options);
        let statement = StatementSnapshot {
            snapshot: None,
            newest: None,
            staged_through: Sequence(Sequence::STAGED),
            now_micros: 0,
        };
        let limits = TransactionLimits {
            lock_timeout: options.lock_timeout,
            deadlock_timeout: options.deadlock_timeout,
            durability: options.durability,
            consistency: options.consistency,
        };
        Transaction {
            engine,
            _store: store,
            options,
            owner,
            statement: Mutex::new(statement),
            staging: Mutex::default(),
            staged: AtomicBool::new(false),
            inner_statements: AtomicU64::new(0),
            work: Arc::default(),
            request: TransactionRequest::default(),
            held: Mutex::default(),
            has_lists: AtomicBool::new(false),
            strengthened: Mutex::default(),
            floor: AtomicU64::new(0),
            exported: AtomicU32::new(0),
            tracker,
            limits: Mutex::new(limits),
            moved: Mutex::default(),
            deleted: Mutex::default(),
            has_session: AtomicBool::new(false),
        }
    }

    /// Returns the isolation level.
    pub fn isolation(&self) -> Isolation {
        self.options.isolation
    }

    /// Returns the number of the transaction, unique while the store is open.
    pub fn id(&self) -> u64 {
        self.owner.0
    }

    /// Changes limits, effective from the next wait.
    pub fn set_limits(&self, limits: TransactionLimits) {
        *self.limits.lock() = limits;
    }

    /// Returns the consistency of reads. A SERIALIZABLE transaction must read the primary, which
    /// it tracks.
    fn consistency(&self) -> Consistency {
        match self.tracker {
            Some(_) => Consistency::Strong,
            None => self.limits.lock().consistency,
        }
    }

    /// Joins the transaction to a session that may hold session-level locks
    /// ([`Store::lock_for_session`](crate::Store::lock_for_session)): for deadlock detection,
    /// waiting for a lock of one is waiting for both.
    pub fn join_session(&self, session: u32) {
        if !self.has_session.swap(true, Ordering::Relaxed) {
            self.engine.locks.join(self.owner, Owner::session(session));
        }
    }

    /// Takes over a lock of its session ([`Store::lock_for_session`]), in all modes.
    ///
    /// [`Store::lock_for_session`]: crate::Store::lock_for_session
    pub fn adopt_session_lock(&self, session: u32, key: &[u8]) {
        let key = LockKey::new(ADVISORY_LOCKS, key);
        if self.engine.locks.hand_over(key, Owner::session(session), self.owner) {
            self.held.lock().push(key);
        }
    }

    /// Begins a statement: at READ COMMITTED takes a new snapshot. Writes of the transaction so far
    /// become visible to the reads that follow; writes staged from now on are not visible to them
    /// until the next call (a statement does not see its own effects).
    ///
    /// The snapshot includes the commits of the previous holders of the transaction's locks, and
    /// waits until they are durable. If that fails, the first read of the statement returns the
    /// error.
    pub fn begin_statement(&self) {
        self.begin_without_snapshot();
        self.see_what_is_there();
    }

    /// Begins a statement that may read nothing, such as one that only takes locks: the first
    /// read takes the snapshot, if there is one.
    pub fn begin_without_snapshot(&self) {
        self.work.end_statement();
        self.request.clear();
        let mut statement = self.statement.lock();
        statement.staged_through = self.staged_through();
        if self.options.isolation == Isolation::ReadCommitted {
            statement.snapshot = None;
        }
    }

    /// At READ COMMITTED, takes another snapshot for the present statement if it does not include
    /// the commits of the previous holders of locks that the transaction took since the statement
    /// began.
    pub fn refresh_statement(&self) {
        let floor = self.required_commit();
        let shown = self.statement.lock().snapshot.as_ref().map(|snapshot| snapshot.oldest());
        if self.options.isolation == Isolation::ReadCommitted
            && shown.is_some_and(|shown| shown < floor)
        {
            let mut statement = self.statement.lock();
            statement.snapshot = None;
            // A failure is retried by the next read.
            drop(self.take_snapshot(&mut statement));
        }
    }

    /// Begins a nested statement, part of the same request: see
    /// [`Transaction::begin_statement`]. [`Transaction::resume_statement`] ends it.
    pub fn begin_inner_statement(&self) {
        self.inner_statements.fetch_add(1, Ordering::Relaxed);
        self.see_what_is_there();
    }

    /// Returns the number of nested statements so far.
    pub fn inner_statements(&self) -> u64 {
        self.inner_statements.load(Ordering::Relaxed)
    }

    fn see_what_is_there(&self) {
        let staged_through = self.staged_through();
        let mut statement = self.statement.lock();
        statement.staged_through = staged_through;
        if self.options.isolation == Isolation::ReadCommitted || statement.snapshot.is_none() {
            statement.snapshot = None;
            // A failure is retried by the next read.
            drop(self.take_snapshot(&mut statement));
        }
    }

    fn staged_through(&self) -> Sequence {
        match self.staged.load(Ordering::Acquire) {
            true => self.staging.lock().last_sequence(),
            false => Sequence(Sequence::STAGED),
        }
    }

    /// Returns the progress of its session.
    pub fn progress(&self) -> &TimelineProgress {
        &self.options.progress
    }

    /// Returns the commit that the next snapshot must include.
    pub fn required_commit(&self) -> Sequence {
        Sequence(self.floor.load(Ordering::Acquire))
    }

    /// Requires the next snapshot to include the commits up to `sequence`: something that was
    /// granted or read outside of the store's locks depends on them.
    pub fn require_commit(&self, sequence: Sequence) {
        self.floor.fetch_max(sequence.0, Ordering::AcqRel);
    }

    /// Returns a ticket for commits that the transaction may have seen and that are not durable
    /// yet, because it holds the locks of their transactions. No answer may reach the client
    /// before it is ready. `None` if all are durable.
    pub fn seen_durable(&self) -> Option<DurableTicket> {
        let floor = self.required_commit();
        (self.engine.wal.durable() < floor).then(|| self.engine.wal.wait_for(floor))
    }

    /// Requests an execution slot for work on the present statement: see [`crate::admission`].
    pub fn turn(&self) -> StatementTurn {
        let stop = StopFlags::from_iter([Arc::clone(&self.options.cancelled)]);
        self.engine.admission.turn(&self.work, stop)
    }

    /// Returns an error once the present statement is cancelled.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`].
    pub fn check_cancelled(&self) -> Result<()> {
        match self.options.cancelled.load(Ordering::Relaxed) {
            true => Err(Error::Cancelled),
            false => Ok(()),
        }
    }

    fn take_snapshot(&self, statement: &mut StatementSnapshot) -> Result<Arc<Snapshot>> {
        let floor = match self.consistency() {
            Consistency::Strong => self.required_commit(),
            Consistency::Timeline { .. } => self.timeline_floor(),
        };
        self.engine.wait_visible(floor, &self.options.cancelled)?;
        let purpose = match self.options.isolation {
            Isolation::ReadCommitted => SnapshotPurpose::Statement,
            Isolation::RepeatableRead | Isolation::Serializable(_) => SnapshotPurpose::Transaction,
        };
        let snapshot = Arc::new(self.open_snapshot(purpose)?);
        if let Some(fixed) = snapshot.fixed() {
            self.options.progress.see(fixed);
        }
        statement.now_micros = snapshot.opened_micros();
        statement.snapshot = Some(Arc::clone(&snapshot));
        Ok(snapshot)
    }

    /// Returns the commit that a TIMELINE snapshot must include: what the session has made or
    /// seen, and the catalog.
    fn timeline_floor(&self) -> Sequence {
        let seen = self.options.progress.seen().max(self.engine.reads.feed.required());
        self.required_commit().max(seen)
    }

    fn staged_of(&self, table: TableId) -> Result<Option<StagedFamilies>> {
        if !self.staged.load(Ordering::Acquire) {
            return Ok(None);
        }
        let staging = self.staging.lock();
        staging.check()?;
        Ok(staging.families_of(table).cloned())
    }

    /// Appends one row to `out`; returns whether it exists.
    pub fn get(&self, table: TableId, get: &Get, out: &mut CellBatch) -> Result<bool> {
        let table = self.engine.table(table)?;
        let charged = self.touch(&table, Access::Read)?;
        let bytes_before = out.byte_count();
        let found = match table.observers().chain_for(Hooks::GET) {
            None => self.read_row(&table, get, out),
            Some(chain) => chain.around_get(get, out, |get, row| self.read_row(&table, get, row)),
        };
        self.charge_read(&charged, out, bytes_before);
        found
    }

    /// Reads a row without calling observers.
    fn read_row(&self, table: &Table, get: &Get, out: &mut CellBatch) -> Result<bool> {
        let view = self.view()?;
        let (time_range, max_versions) = (get.time_range, get.max_versions);
        let spec = ReadSpec { time_range, max_versions, ..view.spec };
        self.note_row(table.id(), &get.row);
        let staged = self.staged_of(table.id())?;
        let asked = (get, &spec, Some(&*view.snapshot));
        let found = self.get_in(table, asked, staged.as_ref(), out)?;
        self.check_snapshot()?;
        count_rows(1)?;
        Ok(found)
    }

    /// Checks, after a read, that the statement's snapshot was open throughout.
    fn check_snapshot(&self) -> Result<()> {
        self.statement.lock().shown().map_or(Ok(()), |snapshot| snapshot.check())
    }

    /// Returns whether a row exists, within the limits of `get`. Reads no more than the first
    /// cell of each family, unless a filter or an offset requires more.
    pub fn exists(&self, table: TableId, get: &Get) -> Result<bool> {
        let table = self.engine.table(table)?;
        match table.observers().chain_for(Hooks::EXISTS) {
            None => self.look_for_row(&table, get),
            Some(chain) => chain.around_exists(get, |get| self.look_for_row(&table, get)),
        }
    }

    fn look_for_row(&self, table: &Table, get: &Get) -> Result<bool> {
        let mut found = CellBatch::new();
        match (&get.filter, get.cells.offset) {
            (None, 0) => {
                let cells = CellWindow { limit: get.cells.limit.min(1), ..get.cells };
                self.read_row(table, &Get { cells, ..get.clone() }, &mut found)
            }
            _ => self.read_row(table, get, &mut found),
        }
    }

    /// Appends the existing rows to `out`, in the order of `gets`.
    pub fn multi_get(&self, table: TableId, gets: &[Get], out: &mut CellBatch) -> Result<()> {
        self.reader(table)?.multi_get(gets, out)
    }

    /// Reads a row at a snapshot, or the newest commits at the primary.
    fn get_in(
        &self,
        table: &Table,
        (get, spec, snapshot): (&Get, &ReadSpec, Option<&Snapshot>),
        staged: Option<&StagedFamilies>,
        out: &mut CellBatch,
    ) -> Result<bool> {
        let cancelled = [&*self.options.cancelled];
        let consistency = snapshot.map_or(Consistency::Strong, |_| self.consistency());
        let caller = ReadCaller { consistency, snapshot, cancelled: &cancelled };
        reader::get_in(&self.engine.reads, (table, &caller), (get, spec), staged, out)
    }

    /// Returns the highest timestamp that a client may choose: commits from now on have higher
    /// ones, unless the clock of the machine is set back.
    pub fn present(&self) -> Timestamp {
        let now = Timestamp(self.engine.options().env.now_micros());
        now.max(self.engine.last_timestamp())
    }

    /// Opens a scan over all regions of its range, in row order.
    pub fn scan(&self, table: TableId, scan: Scan) -> Result<Scanner> {
        self.reader(table)?.scan(scan)
    }

    /// Marks a table as private to the transaction, which has created it: its rows need no locks
    /// until the transaction ends.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`].
    pub fn created_table(&self, table: TableId) -> Result<()> {
        self.engine.table(table)?.make_private_to(self.owner);
        Ok(())
    }

    /// Returns whether another transaction has changed a row, which this one has locked, after
    /// the snapshot of a statement.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`], [`Error::Io`], [`Error::Corrupt`].
    pub fn is_newer(&self, table: TableId, row: &[u8], view: &StatementView) -> Result<bool> {
        let newer = is_newer(&*self.engine.table(table)?, row, view.sequence())?;
        view.check()?;
        Ok(newer)
    }

    /// Appends the current state of a row that this transaction has locked: all its own writes
    /// over the newest applied commit. Returns whether the row exists.
    pub fn get_locked(&self, table: TableId, get: &Get, out: &mut CellBatch) -> Result<bool> {
        let table = self.engine.table(table)?;
        self.get_newest(&table, get, out)
    }

    /// Returns whether a row that this transaction has locked exists, as
    /// [`Transaction::get_locked`] does. Reads no more than the first cell of each family.
    pub fn exists_locked(&self, table: TableId, row: &[u8]) -> Result<bool> {
        self.exists_newest(&*self.engine.table(table)?, row)
    }

    fn exists_newest(&self, table: &Table, row: &[u8]) -> Result<bool> {
        self.get_newest(table, &Get::of_existence(row), &mut CellBatch::new())
    }

    /// Reads rows as [`Transaction::get_locked`] does, and returns the results of `each` over
    /// them; `None` for a row that does not exist.
    pub fn multi_get_locked<T, E: From<Error>>(
        &self,
        table: TableId,
        rows: &[&[u8]],
        mut each: impl FnMut(Option<RowRef<'_>>) -> std::result::Result<T, E>,
    ) -> std::result::Result<Vec<T>, E> {
        let table = self.engine.table(table)?;
        let mut cells = CellBatch::new();
        let read = |row: &&[u8]| {
            cells.clear();
            let found = self.get_newest(&table, &Get::new(*row), &mut cells)?;
            each(found.then(|| cells.row(0)))
        };
        rows.iter().map(read).collect()
    }

    fn get_newest(&self, table: &Table, get: &Get, out: &mut CellBatch) -> Result<bool> {
        let spec = self.newest_spec(get);
        self.note_newest(table, &get.row)?;
        let staged = self.staged_of(table.id())?;
        self.get_in(table, (get, &spec, None), staged.as_ref(), out)
    }

    /// Returns the read specification for the current state of a locked row.
    fn newest_spec(&self, get: &Get) -> ReadSpec {
        ReadSpec {
            snapshot: NEWEST_COMMIT,
            staged_through: ALL_STAGED,
            time_range: get.time_range,
            max_versions: get.max_versions,
            raw: false,
            now_micros: self.engine.options().env.now_micros(),
        }
    }

    /// Creates a savepoint.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint(self.staging.lock().count())
    }

    /// Returns whether the transaction has changed a row after a savepoint.
    ///
    /// # Errors
    ///
    /// Errors of reading spilled cells.
    pub fn has_changed(&self, table: TableId, row: &[u8], since: Savepoint) -> Result<bool> {
        self.staging.lock().has_changed(table, row, since.0)
    }

    /// Returns the number of the first deletion of a row that was staged after a savepoint.
    ///
    /// # Errors
    ///
    /// Errors of reading spilled cells.
    pub fn deletion_after(
        &self,
        table: TableId,
        row: &[u8],
        since: Savepoint,
    ) -> Result<Option<Savepoint>> {
        let deletion = self.staging.lock().deletion_after(table, row, since.0)?;
        Ok(deletion.map(Savepoint))
    }

    /// Releases the locks, and the modes of locks, that it took after a position. Writes staged
    /// under them must have been undone before.
    pub fn release_locks_after(&self, place: LockPlace) {
        let mut strengthened = self.strengthened.lock();
        let kept = place.strengthened.min(strengthened.len());
        let weaker = strengthened.split_off(kept);
        drop(strengthened);
        let mut held = self.held.lock();
        let (locks, seen) = (&self.engine.locks, self.required_commit());
        let mut released = held.split_off(place.held);
        if let Some(spilled) = &held.spilled {
            released.extend(locks.release_spilled(spilled, place.held, seen));
        }
        released.extend(self.release_listed(&held, place.listed));
        drop(held);
        self.forget_reads_after(place.reads, |kept, forgotten| {
            // In the mode before the first strengthening.
            for (key, mut before) in weaker.into_iter().rev() {
                match () {
                    () if kept.contains(&key) => before.add(READ),
                    () if forgotten.contains(&key) => before.remove(READ),
                    () => {}
                }
                locks.weaken(self.owner, key, before, seen);
            }
            released.retain(|key| {
                let is_read = kept.contains(key);
                if is_read {
                    locks.weaken(self.owner, *key, ModeSet::of(READ), seen);
                }
                !is_read
            });
            locks.release(self.owner, released, (TransactionEnd::Undone, seen));
            for key in forgotten {
                if let Some((_, mut modes, _)) = locks.held(self.owner, *key) {
                    modes.remove(READ);
                    locks.weaken(self.owner, *key, modes, seen);
                }
            }
        });
    }

    /// Undoes the writes staged after the savepoint. Locks stay.
    pub fn rollback_to(&self, savepoint: Savepoint) {
        self.unstage(savepoint.0);
    }

    /// Undoes all but the first `count` edits.
    fn unstage(&self, count: u64) {
        let mut staging = self.staging.lock();
        let undone = staging.roll_back_to(count, &self.engine.spill);
        // A decrease is never rejected.
        drop(self.charge(&mut staging));
        // Later deletions get higher numbers than the undone ones.
        let through = staging.skip();
        drop(staging);
        self.unmove(count);
        self.undelete(count, through);
        tell(&undone, BatchOutcome::Undone);
    }

    /// Commits: one record, applied to the memstores on return; durable once the ticket is ready.
    ///
    /// # Errors
    ///
    /// Nothing is committed then: [`Error::NoSuchTable`] if a table was dropped meanwhile,
    /// [`Error::Cancelled`] before the commit had its sequence, [`Error::ShutDown`],
    /// [`Error::Io`] if an earlier drop of a table failed and its outcome is still unknown,
    /// [`Error::Corrupt`] if a region that is written lacks a file. The transaction must be
    /// rolled back then. After a commit it is empty and must not be used.
    pub fn commit(&self) -> Result<Commit> {
        let mut staging = std::mem::take(&mut *self.staging.lock());
        let kept = staging.take_kept();
        let moved = self.net_moves(&staging).inspect_err(|_| tell(&kept, BatchOutcome::Undone))?;
        let written = self.write(staging).inspect_err(|_| tell(&kept, BatchOutcome::Undone))?;
        kept.iter().for_each(ObservedBatch::committed);
        if let Some(place) = written {
            self.require_commit(place.sequence);
            self.options.progress.make(place.sequence);
            key_change_following::publish(&self.engine, moved, place.sequence);
        }
        self.release(TransactionEnd::Committed);
        tell(&kept, BatchOutcome::Committed);
        let Some(place) = written else {
            let timestamp = self.engine.last_timestamp();
            let durable = self.engine.wal.wait_for(self.required_commit());
            return Ok(Commit { sequence: None, timestamp, durable });
        };
        // Other threads may still be applying earlier commits, which new snapshots include.
        self.engine.wait_applied(place.sequence);
        let durable = self.engine.wal.wait_for(place.sequence);
        Ok(Commit { sequence: Some(place.sequence), timestamp: place.timestamp, durable })
    }

    /// Writes the staged edits; returns the commit's clock, `None` if there are none.
    fn write(&self, mut staging: Staging) -> Result<Option<CommitClock>> {
        if staging.is_empty() {
            return self.validate(&CommitWrites::default()).map(|_| None);
        }
        if staging.is_spilled() {
            return self.write_spilled(staging);
        }
        if let Some(charge) = &mut staging.charge {
            charge.begin_commit();
        }
        let writes = prepare_writes(&self.engine, &staging, &self.options.cancelled)?;
        let durability = self.durability(&staging);
        let _charge = staging.charge.take();
        // Its cells are in `writes`, and about to be copied twice.
        drop(staging);
        let pending = self.validate(&writes)?;
        let place = self.engine.commit(writes, durability)?;
        if let Some(pending) = pending {
            pending.committed(place.sequence);
        }
        Ok(Some(place))
    }

    fn durability(&self, staging: &Staging) -> Durability {
        let rank = |durability: &Durability| match durability {
            Durability::SyncWal => 2,
            Durability::AsyncWal => 1,
            Durability::SkipWal => 0,
        };
        let tables = staging.tables();
        let of_tables = tables.iter().map(|staged| staged.table.descriptor().durability);
        let strongest = of_tables.max_by_key(rank).unwrap_or(Durability::SyncWal);
        match self.limits.lock().durability.unwrap_or(strongest) {
            // Writes to several tables that depend on each other are lost together, or not at
            // all.
            Durability::SkipWal if tables.iter().any(|staged| staged.table.is_logged()) => {
                Durability::AsyncWal
            }
            chosen => chosen,
        }
    }

    /// Releases the locks; the present statement ends too.
    fn release(&self, end: TransactionEnd) {
        self.work.end_statement();
        self.end_tracking();
        self.end_exports();
        let mut held = std::mem::take(&mut *self.held.lock());
        let mut keys = held.take();
        if let Some(spilled) = &held.spilled {
            keys.extend(self.engine.locks.end_spilled(spilled, self.required_commit()));
        }
        for list in &held.lists {
            keys.extend(self.engine.locks.end_list(list, self.required_commit()));
        }
        self.has_lists.store(false, Ordering::Relaxed);
        keys.extend(self.end_reads());
        self.strengthened.lock().clear();
        self.deleted.lock().clear();
        self.engine.locks.release(self.owner, keys, (end, self.required_commit()));
        self.engine.locks.end(self.owner);
        if self.has_session.swap(false, Ordering::Relaxed) {
            self.engine.locks.leave(self.owner);
        }
    }

    /// Discards all staged writes and releases the locks.
    pub fn rollback(&self) {
        let mut staging = std::mem::take(&mut *self.staging.lock());
        tell(&staging.take_kept(), BatchOutcome::Undone);
        self.moved.lock().clear();
        self.release(TransactionEnd::Undone);
    }

    /// Returns the open snapshot, of the current or the last statement; `None` if nothing was
    /// read yet.
    pub fn present_snapshot(&self) -> Option<Sequence> {
        self.statement.lock().snapshot.as_ref().map(|snapshot| snapshot.oldest())
    }

    /// Returns the snapshot of the current statement.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] or [`Error::LogFailed`] if none could be taken.
    pub fn snapshot(&self) -> Result<Sequence> {
        Ok(self.view()?.sequence())
    }

    /// Returns whether anything was staged.
    pub fn has_writes(&self) -> bool {
        self.staged.load(Ordering::Acquire) && !self.staging.lock().is_empty()
    }
}

/// Returns the cells to write, after waiting for memory and for the outcome of failed table
/// drops.
fn prepare_writes(
    engine: &Engine,
    staging: &Staging,
    cancelled: &AtomicBool,
) -> Result<CommitWrites> {
    let blocking = &*engine.options().blocking;
    engine.pressure.wait_for_memory(cancelled, blocking)?;
    engine.settle_tables()?;
    let mut writes = CommitWrites::default();
    for staged in staging.tables() {
        // It may have been dropped and even re-created meanwhile.
        let present = engine.table(staged.table.id())?;
        if !Arc::ptr_eq(&present, &staged.table) {
            return Err(Error::NoSuchTable(staged.table.id()));
        }
        collapse(staged, &mut writes, cancelled)?;
    }
    for part in &writes.regions {
        part.region.check_whole()?;
        part.region.service().enter(None, &[cancelled], blocking)?;
        engine.wait_for_files(part, cancelled)?;
    }
    Ok(writes)
}

/// Returns whether a row was changed after a snapshot.
fn is_newer(table: &Table, row: &[u8], snapshot: Sequence) -> Result<bool> {
    let map = table.regions();
    let region = map.of_row(row);
    for family in 0..region.family_count() {
        let Some(view) = region.view(family) else { continue };
        if view.newest_sequence(row)?.is_some_and(|newest| newest > snapshot) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Drop for Transaction {
    fn drop(&mut self) {
        tell(&self.staging.get_mut().take_kept(), BatchOutcome::Undone);
        self.release(TransactionEnd::Undone);
    }
}

/// Calls the observers of a table before a scan, which they may change; returns them if they also
/// observe its rows.
fn show_scan(table: &Table, scan: &mut Scan) -> Result<Option<Arc<RegionChain>>> {
    let observers = table.observers().chain_for(Hooks::SCAN);
    observers.iter().try_for_each(|chain| chain.pre_scanner_open(scan))?;
    Ok(observers)
}

/// Reports the outcome of batches to their observers.
fn tell(kept: &[ObservedBatch], fate: BatchOutcome) {
    kept.iter().for_each(|kept| kept.ended(fate));
}
