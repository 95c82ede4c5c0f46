//! Transaction of a session: implicit or a block, with its DDL changes, settings and savepoints.
//!
//! It combines the store transaction with the state that must follow its outcome: catalog
//! changes, SET and SET LOCAL values, advisory locks, deferred constraints,
//! notifications and moved cursor rows.

use std::sync::Arc;

use parking_lot::Mutex;
use store::descriptor::Durability;
use store::memory;
use store::transaction::{
    Consistency, LockPlace, Savepoint, TableLockMode, TransactionLimits, TransactionOptions,
};
use store::wal::DurableTicket;
use store::{ReadLocks, TableId, TimelineProgress, Transaction};
use types::context::EvalContext;

use crate::advisory::SessionLocks;
use crate::ast::IsolationLevel;
use crate::binder::SessionConstants;
use crate::catalog::access::role::SessionRoles;
use crate::catalog::name::SearchPath;
use crate::ddl::{self, Ddl, SharedChanges};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::exec::key_updates::KeyUpdates;
use crate::notifications::SessionNotifications;
use crate::parser;
use crate::session::deferred_constraints::DeferredConstraints;
use crate::settings::{Settings, TransactionModeSet};
use crate::system::{SystemNames, exported_named};
use crate::table_coprocessors::AttachedCoprocessor;

use crate::timer::StopFlag;

/// An open transaction.
pub(crate) struct OpenTransaction {
    /// Store transaction.
    pub transaction: Arc<Transaction>,
    /// Catalog changes of its DDL statements.
    pub changes: SharedChanges,
    /// True within BEGIN; otherwise the transaction ends with the message.
    pub in_block: bool,
    /// True after an error; only ROLLBACK is accepted.
    pub failed: bool,
    /// True once a statement has read or written in it.
    pub used: bool,
    /// True for the view of a function's statements on the calling statement's transaction.
    pub is_in_function: bool,
    /// Transaction modes.
    pub modes: TransactionModeSet,
    /// `now()`: microseconds since 2000-01-01 UTC.
    pub started: i64,
    /// Settings to restore on rollback.
    settings_before: Settings,
    /// Values to restore at the end of the transaction, for SET LOCAL.
    local: Vec<(String, Settings)>,
    savepoints: Vec<NamedSavepoint>,
    /// Number of savepoints of the session and of calling functions.
    savepoints_around: usize,
    /// Rows whose keys were updated, for cursors.
    pub key_updates: Arc<KeyUpdates>,
    /// State that is shared with statements of functions.
    pub constraints: Arc<Mutex<TransactionConstraints>>,
    /// Advisory locks of the session.
    advisory: Arc<SessionLocks>,
    /// Notifications of the session.
    notifications: Arc<SessionNotifications>,
}

/// Session state that a transaction uses.
#[derive(Clone, Copy)]
pub(crate) struct SessionHandles<'a> {
    /// Cancel flag of its statements.
    pub stop: &'a StopFlag,
    /// Registry of the tables that it reads.
    pub reads: &'a Arc<ReadLocks>,
    /// Commits that the session has made or read.
    pub progress: &'a Arc<TimelineProgress>,
    /// Advisory locks.
    pub advisory: &'a Arc<SessionLocks>,
    /// Notifications.
    pub notifications: &'a Arc<SessionNotifications>,
}

/// Table locks and deferred checks of a transaction.
#[derive(Default)]
pub(crate) struct TransactionConstraints {
    /// Locked tables and lock modes.
    tables: Vec<(TableId, TableLockMode)>,
    /// Deferred-constraint state.
    pub deferred: DeferredConstraints,
    /// Tables that running statements with triggers or foreign keys change.
    pub in_use: Vec<TableId>,
}

/// Transaction state that statements of functions share.
#[derive(Clone)]
pub(super) struct SharedTransactionState {
    changes: SharedChanges,
    modes: TransactionModeSet,
    started: i64,
    moved: Arc<KeyUpdates>,
    held: Arc<Mutex<TransactionConstraints>>,
    advisory: Arc<SessionLocks>,
    notifications: Arc<SessionNotifications>,
    savepoint_count: usize,
}

struct NamedSavepoint {
    name: String,
    savepoint: Savepoint,
    /// Savepoint number of the catalog changes.
    mark: usize,
    settings: Settings,
    deferred: DeferredConstraints,
    read_only: bool,
    locks: LockCounts,
}

/// State before a DDL statement.
pub(crate) struct DdlSavepoint {
    savepoint: Savepoint,
    mark: usize,
    locks: LockCounts,
}

/// Numbers of held locks: of the store, of tables among them, and advisory ones; and of pending
/// notifications.
#[derive(Clone, Copy)]
struct LockCounts {
    all: LockPlace,
    of_tables: usize,
    advisory: usize,
    notifications: usize,
}

impl OpenTransaction {
    /// Begins a transaction.
    pub(crate) fn begin(
        engine: &Engine,
        settings: &Settings,
        modes: TransactionModeSet,
        session: SessionHandles<'_>,
    ) -> OpenTransaction {
        OpenTransaction {
            transaction: begin_in_store(engine, settings, modes, session),
            changes: SharedChanges::default(),
            in_block: false,
            failed: false,
            used: false,
            is_in_function: false,
            modes,
            started: now(engine),
            settings_before: settings.clone(),
            local: Vec::new(),
            savepoints: Vec::new(),
            savepoints_around: 0,
            key_updates: Arc::default(),
            constraints: Arc::default(),
            advisory: Arc::clone(session.advisory),
            notifications: Arc::clone(session.notifications),
        }
    }

    /// Returns the transaction as statements of functions see it.
    pub(super) fn for_function(
        seen: &SharedTransactionState,
        settings: &Settings,
        transaction: &Arc<Transaction>,
    ) -> OpenTransaction {
        OpenTransaction {
            transaction: Arc::clone(transaction),
            changes: seen.changes.clone(),
            in_block: true,
            failed: false,
            used: true,
            is_in_function: true,
            modes: seen.modes,
            started: seen.started,
            settings_before: settings.clone(),
            local: Vec::new(),
            savepoints: Vec::new(),
            savepoints_around: seen.savepoint_count,
            key_updates: Arc::clone(&seen.moved),
            constraints: Arc::clone(&seen.held),
            advisory: Arc::clone(&seen.advisory),
            notifications: Arc::clone(&seen.notifications),
        }
    }

    /// Returns the state that statements of functions share.
    pub(super) fn shared_state(&self) -> SharedTransactionState {
        SharedTransactionState {
            changes: self.changes.clone(),
            modes: self.modes,
            started: self.started,
            moved: Arc::clone(&self.key_updates),
            held: Arc::clone(&self.constraints),
            advisory: Arc::clone(&self.advisory),
            notifications: Arc::clone(&self.notifications),
            savepoint_count: self.savepoint_count(),
        }
    }

    /// Executes a DDL operation in it.
    pub(super) fn define<T>(
        &self,
        engine: &Engine,
        constants: &SessionConstants,
        eval: EvalContext,
        run: impl FnOnce(&mut Ddl<'_>) -> Result<T>,
    ) -> Result<T> {
        let held = || self.transaction.held_bytes().cast_signed();
        let held_before = held();
        let (done, bytes) = memory::measure(|| {
            self.changes
                .define(engine, |changes| run(&mut self.ddl(engine, constants, eval, changes)))
        });
        // Staged cells and locks end with the transaction.
        self.changes.count_bytes(bytes as i64 - (held() - held_before));
        done
    }

    fn ddl<'a>(
        &'a self,
        engine: &'a Engine,
        constants: &SessionConstants,
        eval: EvalContext,
        changes: &'a mut ddl::CatalogChanges,
    ) -> Ddl<'a> {
        Ddl {
            engine,
            transaction: &self.transaction,
            changes,
            eval,
            // What definitions store is read without the setting of the session.
            path: match constants.search_path() {
                path if path.ignores_case() => {
                    Arc::new(SearchPath::clone(path).with_ignored_case(false))
                }
                path => Arc::clone(path),
            },
            roles: SessionRoles::clone(constants.roles()),
            system: Box::new(SystemNames::of(engine)),
            settings: None,
            notices: Vec::new(),
            stale_indexes: Vec::new(),
            stops_at_locks: false,
            index_drop_mode: TableLockMode::AccessExclusive,
            retry_reason: None,
            waits_without_queueing: false,
            pending: self.constraints.lock().deferred.tables(),
            process_id: 0,
            changes_others: false,
        }
    }

    /// Changes the modes of a transaction that has done nothing yet.
    pub(crate) fn set_modes(
        &mut self,
        engine: &Engine,
        settings: &Settings,
        modes: TransactionModeSet,
        session: SessionHandles<'_>,
    ) -> Result<()> {
        if self.used && modes.isolation != self.modes.isolation {
            bail!(ACTIVE_SQL_TRANSACTION: "SET TRANSACTION ISOLATION LEVEL must be called before any query");
        }
        if !self.savepoints.is_empty() && modes.isolation != self.modes.isolation {
            bail!(ACTIVE_SQL_TRANSACTION: "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction");
        }
        self.check_deferrable(modes)?;
        let opens = self.modes.read_only && !modes.read_only;
        if opens && !self.savepoints.is_empty() {
            bail!(ACTIVE_SQL_TRANSACTION: "cannot set transaction read-write mode inside a read-only transaction");
        }
        if self.used && opens {
            bail!(ACTIVE_SQL_TRANSACTION: "transaction read-write mode must be set before any query");
        }
        if !self.used && self.savepoints.is_empty() {
            self.transaction = begin_in_store(engine, settings, modes, session);
        }
        self.modes = modes;
        Ok(())
    }

    /// Imports a snapshot that another transaction has exported.
    ///
    /// # Errors
    ///
    /// As in PostgreSQL: 25001 after the first query, 22023 if there is no such snapshot; 0A000
    /// unless it is at REPEATABLE READ.
    pub(crate) fn import_snapshot(&mut self, name: &str) -> Result<()> {
        if self.used || !self.savepoints.is_empty() {
            bail!(ACTIVE_SQL_TRANSACTION: "SET TRANSACTION SNAPSHOT must be called before any query");
        }
        match self.modes.isolation {
            IsolationLevel::RepeatableRead => {}
            IsolationLevel::Serializable => {
                let what = "SET TRANSACTION SNAPSHOT at SERIALIZABLE";
                return Err(Error::not_supported(what, "Use REPEATABLE READ."));
            }
            _ => {
                bail!(FEATURE_NOT_SUPPORTED: "a snapshot-importing transaction must have isolation level SERIALIZABLE or \
                    REPEATABLE READ");
            }
        }
        let found = exported_named(name).is_some_and(|one| self.transaction.import_snapshot(one));
        if !found {
            bail!(INVALID_PARAMETER_VALUE: "invalid snapshot identifier: \"{name}\"");
        }
        self.used = true;
        Ok(())
    }

    fn check_deferrable(&self, modes: TransactionModeSet) -> Result<()> {
        let why = match modes.deferrable != self.modes.deferrable {
            true if !self.savepoints.is_empty() => "cannot be called within a subtransaction",
            true if self.used => "must be called before any query",
            _ => return Ok(()),
        };
        bail!(ACTIVE_SQL_TRANSACTION: "SET TRANSACTION [NOT] DEFERRABLE {why}")
    }

    /// Locks a table that a statement writes to against DDL, with the tables that its
    /// coprocessors write to.
    ///
    /// # Errors
    ///
    /// `55000` if only a coprocessor may write to the table.
    pub(crate) fn lock_for_write(&mut self, engine: &Engine, table: TableId) -> Result<()> {
        self.lock_shared(engine, table, TableLockMode::RowExclusive)?;
        // Attaching or detaching such a coprocessor needs the table's exclusive lock.
        match engine.exclusive_writer_of(table) {
            // Its rows remain when its source table is dropped.
            Some((source, _)) if self.changes.drops(source) => Ok(()),
            Some((_, keeper)) => Err(kept(&keeper)),
            None => Ok(()),
        }
    }

    /// Returns whether all its statements use one snapshot.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.modes.is_repeatable()
    }

    /// Locks a table, and those that its coprocessors write to, against DDL: `ROW EXCLUSIVE` for
    /// writing, `ROW SHARE` for row locks.
    pub(crate) fn lock_shared(
        &mut self,
        engine: &Engine,
        table: TableId,
        mode: TableLockMode,
    ) -> Result<()> {
        if self.constraints.lock().tables.contains(&(table, mode)) {
            return Ok(());
        }
        ddl::lock_table(&self.transaction, table, mode)?;
        self.constraints.lock().tables.push((table, mode));
        if mode == TableLockMode::RowShare {
            return Ok(());
        }
        // The lock prevents further ATTACH to the table.
        for attached in engine.attached(table).iter().flat_map(|known| known.iter()) {
            for &target in &attached.writes {
                self.lock_shared(engine, target, mode)?;
            }
        }
        Ok(())
    }

    /// Records the settings with the value to restore for SET LOCAL at the end of the transaction.
    pub(crate) fn note_local(&mut self, name: &str, before: Settings) {
        if !self.local.iter().any(|(known, _)| known == name) {
            self.local.push((name.to_owned(), before));
        }
    }

    /// Returns whether it has locked a table for writing.
    pub(crate) fn has_locked(&self, table: TableId) -> bool {
        self.constraints.lock().tables.contains(&(table, TableLockMode::RowExclusive))
    }

    /// Returns the number of savepoints.
    pub(crate) fn savepoint_count(&self) -> usize {
        self.savepoints_around + self.savepoints.len()
    }

    /// Creates a savepoint.
    pub(crate) fn savepoint(&mut self, name: &str, settings: &Settings) {
        debug_assert!(!self.failed, "a savepoint in a failed transaction");
        let savepoint = self.transaction.savepoint();
        let mark = self.changes.savepoint();
        let settings = settings.clone();
        let (name, deferred) = (name.to_owned(), self.constraints.lock().deferred.clone());
        let read_only = self.modes.read_only;
        let locks = self.locks();
        let marked = NamedSavepoint { name, savepoint, mark, settings, deferred, read_only, locks };
        self.savepoints.push(marked);
    }

    /// Records the state before a DDL statement.
    pub(crate) fn mark_definition(&mut self) -> DdlSavepoint {
        let savepoint = self.transaction.savepoint();
        let mark = self.changes.savepoint();
        let locks = self.locks();
        DdlSavepoint { savepoint, mark, locks }
    }

    /// Undoes a DDL statement and releases its locks.
    pub(crate) fn undo_definition(&mut self, engine: &Engine, mark: DdlSavepoint) {
        self.transaction.rollback_to(mark.savepoint);
        self.changes.rollback_to(engine, mark.mark);
        self.forget_mark(&mark);
        self.release_after(mark.locks);
    }

    /// Discards the state before a DDL statement.
    pub(crate) fn forget_mark(&self, mark: &DdlSavepoint) {
        self.changes.release(mark.mark);
    }

    /// Marks the transaction as failed. As in PostgreSQL, changes since the last savepoint are
    /// undone now, so that their locks are released before the client sends ROLLBACK.
    pub(crate) fn fail(&mut self, engine: &Engine) {
        self.failed = true;
        let last = self.savepoints.last().map(|last| (last.savepoint, last.mark, last.locks));
        match last {
            Some((savepoint, mark, locks)) => {
                self.transaction.rollback_to(savepoint);
                self.changes.rollback_to(engine, mark);
                self.release_after(locks);
            }
            None => {
                self.changes.rollback(engine, &self.transaction);
                self.constraints.lock().tables.clear();
                self.notifications.discard_after(0);
            }
        }
    }

    /// Returns the present lock counts.
    fn locks(&self) -> LockCounts {
        let of_tables = self.constraints.lock().tables.len();
        let all = self.transaction.lock_place();
        let advisory = self.advisory.acquisition_count();
        LockCounts { all, of_tables, advisory, notifications: self.notifications.action_count() }
    }

    /// Releases the locks that were acquired after `locks`. The changes under them, DDL included,
    /// must have been undone.
    fn release_after(&self, locks: LockCounts) {
        let mut constraints = self.constraints.lock();
        let count = constraints.tables.len();
        debug_assert!(count >= locks.of_tables, "locks of tables were released before");
        constraints.tables.truncate(locks.of_tables);
        drop(constraints);
        self.transaction.release_locks_after(locks.all);
        self.advisory.release_after(locks.advisory, self.transaction.required_commit());
        self.notifications.discard_after(locks.notifications);
    }

    /// Rolls back to a savepoint, which remains. Returns the settings at the savepoint.
    pub(crate) fn rollback_to(&mut self, engine: &Engine, name: &str) -> Result<Settings> {
        let position = self.find_savepoint(name)?;
        self.savepoints.truncate(position + 1);
        let target = &self.savepoints[position];
        self.transaction.rollback_to(target.savepoint);
        self.changes.rollback_to(engine, target.mark);
        self.failed = false;
        self.release_after(target.locks);
        let target = &self.savepoints[position];
        self.modes.read_only = target.read_only;
        self.constraints.lock().deferred = target.deferred.clone();
        Ok(target.settings.clone())
    }

    /// Releases a savepoint and those after it.
    pub(crate) fn release(&mut self, name: &str) -> Result<()> {
        let position = self.find_savepoint(name)?;
        // The read-only mode at the savepoint is restored, as in PostgreSQL.
        self.modes.read_only = self.savepoints[position].read_only;
        self.changes.release(self.savepoints[position].mark);
        self.savepoints.truncate(position);
        Ok(())
    }

    fn find_savepoint(&self, name: &str) -> Result<usize> {
        self.savepoints.iter().rposition(|savepoint| savepoint.name == name).ok_or_else(
            || err!(INVALID_SAVEPOINT_SPECIFICATION: "savepoint \"{name}\" does not exist"),
        )
    }

    /// Ends the session's part after PREPARE TRANSACTION: restores the settings of SET LOCAL.
    pub(crate) fn detach(mut self, settings: &mut Settings) -> Result<()> {
        let local = std::mem::take(&mut self.local);
        local.into_iter().try_for_each(|(name, before)| settings.restore(&name, &before))
    }

    /// Commits. The ticket must be awaited before the client gets a reply.
    pub(crate) fn commit(
        mut self,
        engine: &Engine,
        settings: &mut Settings,
    ) -> Result<Option<DurableTicket>> {
        assert!(!self.failed, "a failed transaction is committed");
        assert!(!self.is_in_function, "a function commits the transaction of its caller");
        let result = self.commit_changes(engine);
        match &result {
            Ok(_) => {
                for (name, before) in std::mem::take(&mut self.local) {
                    settings.restore(&name, &before)?;
                }
            }
            Err(_) => *settings = self.settings_before.clone(),
        }
        result
    }

    fn commit_changes(&mut self, engine: &Engine) -> Result<Option<DurableTicket>> {
        let notifications = Arc::clone(&self.notifications);
        let publication = notifications.begin_commit();
        let publication =
            publication.inspect_err(|_| self.changes.rollback(engine, &self.transaction))?;
        let durable = self.commit_transaction(engine)?;
        if let Some(publication) = publication {
            notifications.publish(publication, durable.as_ref());
        }
        Ok(durable)
    }

    fn commit_transaction(&mut self, engine: &Engine) -> Result<Option<DurableTicket>> {
        if self.changes.is_empty() {
            let commit = self.transaction.commit()?;
            return Ok(Some(commit.durable));
        }
        let _publishing = engine.publishing.lock();
        let committed = self.changes.rebase(engine).and_then(|()| {
            self.transaction.commit()?.durable.wait()?;
            Ok(())
        });
        match committed {
            Ok(()) => self.changes.publish(engine, &self.transaction),
            Err(_) => self.changes.rollback(engine, &self.transaction),
        }
        committed.map(|()| None)
    }

    /// Rolls back, including the settings that were changed in it.
    pub(crate) fn rollback(self, engine: &Engine, settings: &mut Settings) {
        self.changes.rollback(engine, &self.transaction);
        self.notifications.discard_after(0);
        *settings = self.settings_before;
    }
}

/// Returns the error of a write to rows that a coprocessor maintains exclusively.
fn kept(keeper: &AttachedCoprocessor) -> Error {
    let (name, table) = (&keeper.record.name, &keeper.table);
    err!(OBJECT_NOT_IN_PREREQUISITE_STATE: "cannot modify rows that coprocessor \"{name}\" of table \"{table}\" maintains";
        hint "Detach it first: ALTER TABLE {} DETACH COPROCESSOR {}.", parser::quoted(table), parser::quoted(name))
}

/// Returns the current time in microseconds since 2000-01-01 UTC.
pub(crate) fn now(engine: &Engine) -> i64 {
    engine.store().now_micros() - types::datetime::UNIX_EPOCH_SECONDS * 1_000_000
}

/// Begins the store transaction, and records its number for other sessions.
fn begin_in_store(
    engine: &Engine,
    settings: &Settings,
    modes: TransactionModeSet,
    session: SessionHandles<'_>,
) -> Arc<Transaction> {
    let transaction = Arc::new(engine.store().begin(options(engine, settings, modes, session)));
    session.stop.set_transaction(transaction.id());
    transaction
}

/// Returns the limits of a transaction from the present settings.
pub(super) fn limits(settings: &Settings) -> TransactionLimits {
    let parsed = settings.parsed();
    TransactionLimits {
        lock_timeout: parsed.lock_timeout,
        deadlock_timeout: parsed.deadlock_timeout,
        durability: parsed.is_commit_asynchronous.then_some(Durability::AsyncWal),
        consistency: parsed.consistency,
    }
}

/// As `limits`, for statements and checks that must read the primaries.
pub(super) fn primary_limits(settings: &Settings) -> TransactionLimits {
    TransactionLimits { consistency: Consistency::Strong, ..limits(settings) }
}

fn options(
    engine: &Engine,
    settings: &Settings,
    modes: TransactionModeSet,
    session: SessionHandles<'_>,
) -> TransactionOptions {
    let role = &settings.roles().session.name;
    // A statement that may read replicas sets others.
    let TransactionLimits { lock_timeout, deadlock_timeout, durability, consistency } =
        primary_limits(settings);
    TransactionOptions {
        isolation: modes.store_isolation(),
        // Read-only mode is checked by the statement executor: temporary tables may be written.
        read_only: false,
        durability,
        consistency,
        lock_timeout,
        deadlock_timeout,
        cancelled: Arc::clone(&session.stop.stop),
        reads: Some(Arc::clone(session.reads)),
        progress: Arc::clone(session.progress),
        user: Arc::clone(role),
        quotas: [engine.quotas.of_role(role), engine.quotas.of_database(engine.database)],
    }
}
