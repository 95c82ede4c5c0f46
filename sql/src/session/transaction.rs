//! The transaction of a session: implicit or a block, with what it changed beside rows.

use std::sync::Arc;

use parking_lot::Mutex;
use store::descriptor::Durability;
use store::transaction::{
    LockPlace, Savepoint, TableLockMode, TransactionLimits, TransactionOptions,
};
use store::wal::DurableTicket;
use store::{ReadLocks, TableId, Transaction};
use types::context::EvalContext;

use crate::advisory::SessionLocks;
use crate::ast::IsolationLevel;
use crate::attach::Attached;
use crate::binder::SessionConstants;
use crate::ddl::{self, Ddl, SharedChanges};
use crate::engine::Engine;
use crate::error::{Error, Result, sqlstate};
use crate::exec::moved_rows::MovedRows;
use crate::parser;
use crate::session::deferred::Deferred;
use crate::settings::{Modes, Settings};
use crate::system::{SystemNames, exported_named};

use crate::timer::StopFlag;

/// An open transaction.
pub(crate) struct Open {
    /// The store's side of it.
    pub transaction: Arc<Transaction>,
    /// What DDL statements in it have done.
    pub changes: SharedChanges,
    /// BEGIN was said; otherwise it ends with the message.
    pub in_block: bool,
    /// An error has ended it; only ROLLBACK is accepted.
    pub failed: bool,
    /// A statement has read or written in it.
    pub used: bool,
    /// It is that of a statement which calls a function.
    pub is_inside: bool,
    /// Its modes.
    pub modes: Modes,
    /// `now()`: microseconds since 2000-01-01 UTC.
    pub started: i64,
    /// The settings to go back to on rollback.
    settings_before: Settings,
    /// Settings of SET LOCAL with the values to go back to at the end.
    local: Vec<(String, String)>,
    savepoints: Vec<NamedSavepoint>,
    /// How many there are of the session, and of functions around this one.
    savepoints_around: usize,
    /// The rows that got other keys, for its cursors.
    pub moved: Arc<MovedRows>,
    /// What statements of functions add to, too.
    pub held: Arc<Mutex<Held>>,
    /// The advisory locks of its session.
    advisory: Arc<SessionLocks>,
}

/// What a transaction shares with its session.
#[derive(Clone, Copy)]
pub(crate) struct SessionHandles<'a> {
    /// Stops its statements.
    pub stop: &'a StopFlag,
    /// Where it notes what it reads.
    pub reads: &'a Arc<ReadLocks>,
    /// Its advisory locks.
    pub advisory: &'a Arc<SessionLocks>,
}

/// What the statements of a transaction have left for its end.
#[derive(Default)]
pub(crate) struct Held {
    /// Tables that are locked against changes of themselves, and how.
    tables: Vec<(TableId, TableLockMode)>,
    /// What deferred constraints have found, and which are deferred.
    pub deferred: Deferred,
}

/// What statements of functions know of the transaction.
pub(super) struct Seen {
    changes: SharedChanges,
    modes: Modes,
    started: i64,
    moved: Arc<MovedRows>,
    held: Arc<Mutex<Held>>,
    advisory: Arc<SessionLocks>,
    savepoint_count: usize,
}

struct NamedSavepoint {
    name: String,
    savepoint: Savepoint,
    /// Its number among those of the catalog.
    mark: usize,
    settings: Settings,
    deferred: Deferred,
    read_only: bool,
    locks: Locks,
}

/// The place before a definition.
pub(crate) struct DefinitionMark {
    savepoint: Savepoint,
    mark: usize,
    locks: Locks,
}

/// How many locks there were: of the store, of tables among them, and advisory ones.
#[derive(Clone, Copy)]
struct Locks {
    all: LockPlace,
    of_tables: usize,
    advisory: usize,
}

impl Open {
    /// Begins a transaction.
    pub(crate) fn begin(
        engine: &Engine,
        settings: &Settings,
        modes: Modes,
        session: SessionHandles<'_>,
    ) -> Open {
        Open {
            transaction: begin_in_store(engine, settings, modes, session),
            changes: SharedChanges::default(),
            in_block: false,
            failed: false,
            used: false,
            is_inside: false,
            modes,
            started: now(engine),
            settings_before: settings.clone(),
            local: Vec::new(),
            savepoints: Vec::new(),
            savepoints_around: 0,
            moved: Arc::default(),
            held: Arc::default(),
            advisory: Arc::clone(session.advisory),
        }
    }

    /// Returns the same transaction as statements of functions see it.
    pub(super) fn inside(seen: &Seen, settings: &Settings, transaction: &Arc<Transaction>) -> Open {
        Open {
            transaction: Arc::clone(transaction),
            changes: seen.changes.clone(),
            in_block: true,
            failed: false,
            used: true,
            is_inside: true,
            modes: seen.modes,
            started: seen.started,
            settings_before: settings.clone(),
            local: Vec::new(),
            savepoints: Vec::new(),
            savepoints_around: seen.savepoint_count,
            moved: Arc::clone(&seen.moved),
            held: Arc::clone(&seen.held),
            advisory: Arc::clone(&seen.advisory),
        }
    }

    /// Returns what statements of functions are told of it.
    pub(super) fn seen(&self) -> Seen {
        Seen {
            changes: self.changes.clone(),
            modes: self.modes,
            started: self.started,
            moved: Arc::clone(&self.moved),
            held: Arc::clone(&self.held),
            advisory: Arc::clone(&self.advisory),
            savepoint_count: self.savepoint_count(),
        }
    }

    /// Defines things in it.
    pub(super) fn define<T>(
        &self,
        engine: &Engine,
        constants: &SessionConstants,
        eval: EvalContext,
        run: impl FnOnce(&mut Ddl<'_>) -> Result<T>,
    ) -> Result<T> {
        self.changes.define(engine, |changes| run(&mut self.ddl(engine, constants, eval, changes)))
    }

    fn ddl<'a>(
        &'a self,
        engine: &'a Engine,
        constants: &SessionConstants,
        eval: EvalContext,
        changes: &'a mut ddl::Changes,
    ) -> Ddl<'a> {
        Ddl {
            engine,
            transaction: &self.transaction,
            changes,
            eval,
            path: Arc::clone(constants.search_path()),
            user: match constants.value("current_user") {
                Some(types::Datum::Text(name)) => name.to_string(),
                _ => String::new(),
            },
            system: Box::new(SystemNames::of(engine)),
            settings: None,
            notices: Vec::new(),
            stale: Vec::new(),
            gives_up: false,
            index_drop_mode: TableLockMode::AccessExclusive,
            gave_up_for: None,
            waits_beside: false,
            pending: self.held.lock().deferred.tables(),
        }
    }

    /// Changes the modes of a transaction that nothing was done in yet.
    pub(crate) fn set_modes(
        &mut self,
        engine: &Engine,
        settings: &Settings,
        modes: Modes,
        session: SessionHandles<'_>,
    ) -> Result<()> {
        if self.used && modes.isolation != self.modes.isolation {
            return Err(Error::new(
                sqlstate::ACTIVE_SQL_TRANSACTION,
                "SET TRANSACTION ISOLATION LEVEL must be called before any query",
            ));
        }
        if !self.savepoints.is_empty() && modes.isolation != self.modes.isolation {
            return Err(Error::new(
                sqlstate::ACTIVE_SQL_TRANSACTION,
                "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction",
            ));
        }
        self.check_deferrable(modes)?;
        let opens = self.modes.read_only && !modes.read_only;
        if opens && !self.savepoints.is_empty() {
            return Err(Error::new(
                sqlstate::ACTIVE_SQL_TRANSACTION,
                "cannot set transaction read-write mode inside a read-only transaction",
            ));
        }
        if self.used && opens {
            return Err(Error::new(
                sqlstate::ACTIVE_SQL_TRANSACTION,
                "transaction read-write mode must be set before any query",
            ));
        }
        if !self.used && self.savepoints.is_empty() {
            self.transaction = begin_in_store(engine, settings, modes, session);
        }
        self.modes = modes;
        Ok(())
    }

    /// Has it see what another transaction has exported.
    ///
    /// # Errors
    ///
    /// PostgreSQL's: 25001 after the first query, 22023 if there is no such snapshot; 0A000 unless
    /// it is one at REPEATABLE READ.
    pub(crate) fn import_snapshot(&mut self, name: &str) -> Result<()> {
        if self.used || !self.savepoints.is_empty() {
            let message = "SET TRANSACTION SNAPSHOT must be called before any query";
            return Err(Error::new(sqlstate::ACTIVE_SQL_TRANSACTION, message));
        }
        match self.modes.isolation {
            IsolationLevel::RepeatableRead => {}
            IsolationLevel::Serializable => {
                let what = "SET TRANSACTION SNAPSHOT at SERIALIZABLE";
                return Err(Error::not_supported(what, "Use REPEATABLE READ."));
            }
            _ => {
                let message = "a snapshot-importing transaction must have isolation level \
                               SERIALIZABLE or REPEATABLE READ";
                return Err(Error::new(sqlstate::FEATURE_NOT_SUPPORTED, message));
            }
        }
        let found = exported_named(name).is_some_and(|one| self.transaction.import_snapshot(one));
        if !found {
            let message = format!("invalid snapshot identifier: \"{name}\"");
            return Err(Error::new(sqlstate::INVALID_PARAMETER_VALUE, message));
        }
        self.used = true;
        Ok(())
    }

    fn check_deferrable(&self, modes: Modes) -> Result<()> {
        let why = match modes.deferrable != self.modes.deferrable {
            true if !self.savepoints.is_empty() => "cannot be called within a subtransaction",
            true if self.used => "must be called before any query",
            _ => return Ok(()),
        };
        let message = format!("SET TRANSACTION [NOT] DEFERRABLE {why}");
        Err(Error::new(sqlstate::ACTIVE_SQL_TRANSACTION, message))
    }

    /// Locks a table that a statement is going to write to against changes of the table itself.
    /// So are the tables that its coprocessors write to.
    ///
    /// # Errors
    ///
    /// `55000` if only a coprocessor may write to the table.
    pub(crate) fn lock_for_write(&mut self, engine: &Engine, table: TableId) -> Result<()> {
        self.lock_shared(engine, table, TableLockMode::RowExclusive)?;
        // Who attaches such a coprocessor, or detaches it, holds the table's exclusive lock.
        match engine.keeper_of(table) {
            // Its rows stay when the table that they tell of is dropped.
            Some((source, _)) if self.changes.drops(source) => Ok(()),
            Some((_, keeper)) => Err(kept(&keeper)),
            None => Ok(()),
        }
    }

    /// Returns whether all its statements see one snapshot.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.modes.is_repeatable()
    }

    /// Locks a table, and those that its coprocessors write to, against changes of the tables
    /// themselves: as `ROW EXCLUSIVE` to write to it, as `ROW SHARE` to lock rows.
    pub(crate) fn lock_shared(
        &mut self,
        engine: &Engine,
        table: TableId,
        mode: TableLockMode,
    ) -> Result<()> {
        if self.held.lock().tables.contains(&(table, mode)) {
            return Ok(());
        }
        ddl::lock_table(&self.transaction, table, mode)?;
        self.held.lock().tables.push((table, mode));
        if mode == TableLockMode::RowShare {
            return Ok(());
        }
        // Nobody attaches to the table now.
        for attached in engine.attached(table).iter().flat_map(|known| known.iter()) {
            for &target in &attached.writes {
                self.lock_shared(engine, target, mode)?;
            }
        }
        Ok(())
    }

    /// Notes the value that a setting goes back to at the end of the transaction.
    pub(crate) fn note_local(&mut self, name: &str, value: &str) {
        if !self.local.iter().any(|(known, _)| known == name) {
            self.local.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Returns whether it has written to a table, or may.
    pub(crate) fn has_locked(&self, table: TableId) -> bool {
        self.held.lock().tables.contains(&(table, TableLockMode::RowExclusive))
    }

    /// Returns how many savepoints there are.
    pub(crate) fn savepoint_count(&self) -> usize {
        self.savepoints_around + self.savepoints.len()
    }

    /// Marks a savepoint.
    pub(crate) fn savepoint(&mut self, name: &str, settings: &Settings) {
        let savepoint = self.transaction.savepoint();
        let mark = self.changes.savepoint();
        let settings = settings.clone();
        let (name, deferred) = (name.to_owned(), self.held.lock().deferred.clone());
        let read_only = self.modes.read_only;
        let locks = self.locks();
        let marked = NamedSavepoint { name, savepoint, mark, settings, deferred, read_only, locks };
        self.savepoints.push(marked);
    }

    /// Marks the place before a definition.
    pub(crate) fn mark_definition(&mut self) -> DefinitionMark {
        let savepoint = self.transaction.savepoint();
        let mark = self.changes.savepoint();
        let locks = self.locks();
        DefinitionMark { savepoint, mark, locks }
    }

    /// Takes a definition back, with its locks.
    pub(crate) fn undo_definition(&mut self, engine: &Engine, mark: DefinitionMark) {
        self.transaction.rollback_to(mark.savepoint);
        self.changes.rollback_to(engine, mark.mark);
        self.forget_mark(&mark);
        self.release_after(mark.locks);
    }

    /// Forgets the place before a definition.
    pub(crate) fn forget_mark(&self, mark: &DefinitionMark) {
        self.changes.release(mark.mark);
    }

    /// Marks it as failed. As by PostgreSQL, what the block has done since its last savepoint is
    /// undone now, so that nobody waits for its locks until the client says ROLLBACK.
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
                self.held.lock().tables.clear();
            }
        }
    }

    /// Returns which locks it has.
    fn locks(&self) -> Locks {
        let of_tables = self.held.lock().tables.len();
        let all = self.transaction.lock_place();
        Locks { all, of_tables, advisory: self.advisory.place() }
    }

    /// Gives back the locks that it took after others. What was done under them is undone: what
    /// definitions have done as well, so that those that are left had theirs before.
    fn release_after(&self, locks: Locks) {
        self.held.lock().tables.truncate(locks.of_tables);
        self.transaction.release_locks_after(locks.all);
        self.advisory.release_after(locks.advisory, self.transaction.floor());
    }

    /// Goes back to a savepoint, which stays. Returns the settings as they were.
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
        self.held.lock().deferred = target.deferred.clone();
        Ok(target.settings.clone())
    }

    /// Forgets a savepoint and those after it.
    pub(crate) fn release(&mut self, name: &str) -> Result<()> {
        let position = self.find_savepoint(name)?;
        // What was read only behind a savepoint is so no longer, as in PostgreSQL.
        self.modes.read_only = self.savepoints[position].read_only;
        self.changes.release(self.savepoints[position].mark);
        self.savepoints.truncate(position);
        Ok(())
    }

    fn find_savepoint(&self, name: &str) -> Result<usize> {
        self.savepoints.iter().rposition(|savepoint| savepoint.name == name).ok_or_else(|| {
            Error::new(
                sqlstate::INVALID_SAVEPOINT_SPECIFICATION,
                format!("savepoint \"{name}\" does not exist"),
            )
        })
    }

    /// Ends with what it was after its transaction has been prepared: the settings of SET LOCAL go
    /// back.
    pub(crate) fn detach(mut self, settings: &mut Settings) -> Result<()> {
        let local = std::mem::take(&mut self.local);
        local.into_iter().try_for_each(|(name, value)| settings.set(&name, Some(&value)))
    }

    /// Commits. The ticket is to be awaited before the client is told.
    pub(crate) fn commit(
        mut self,
        engine: &Engine,
        settings: &mut Settings,
    ) -> Result<Option<DurableTicket>> {
        let result = self.commit_changes(engine);
        match &result {
            Ok(_) => {
                for (name, value) in std::mem::take(&mut self.local) {
                    settings.set(&name, Some(&value))?;
                }
            }
            Err(_) => *settings = self.settings_before.clone(),
        }
        result
    }

    fn commit_changes(&mut self, engine: &Engine) -> Result<Option<DurableTicket>> {
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

    /// Rolls back, with the settings that were changed in it.
    pub(crate) fn rollback(self, engine: &Engine, settings: &mut Settings) {
        self.changes.rollback(engine, &self.transaction);
        *settings = self.settings_before;
    }
}

/// Returns the refusal of a change of rows that a coprocessor keeps.
fn kept(keeper: &Attached) -> Error {
    let (name, table) = (&keeper.record.name, &keeper.table);
    Error::new(
        sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("cannot change rows that coprocessor \"{name}\" of table \"{table}\" keeps"),
    )
    .with_hint(format!(
        "Detach it first: ALTER TABLE {} DETACH COPROCESSOR {}.",
        parser::quoted(table),
        parser::quoted(name)
    ))
}

/// Returns microseconds since 2000-01-01 UTC.
pub(crate) fn now(engine: &Engine) -> i64 {
    engine.store().now_micros() - types::datetime::UNIX_EPOCH_SECONDS * 1_000_000
}

/// Begins the store's side of a transaction; others find the session by its number.
fn begin_in_store(
    engine: &Engine,
    settings: &Settings,
    modes: Modes,
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

fn options(
    engine: &Engine,
    settings: &Settings,
    modes: Modes,
    session: SessionHandles<'_>,
) -> TransactionOptions {
    let role = &settings.parsed().role;
    let TransactionLimits { lock_timeout, deadlock_timeout, durability, consistency } =
        limits(settings);
    TransactionOptions {
        isolation: modes.store_isolation(),
        // What may not be written to is known before: temporary tables may, and values of theirs.
        read_only: false,
        durability,
        consistency,
        lock_timeout,
        deadlock_timeout,
        cancelled: Arc::clone(&session.stop.stop),
        reads: Some(Arc::clone(session.reads)),
        user: Arc::clone(role),
        quota: engine.quotas.of_role(role),
    }
}
