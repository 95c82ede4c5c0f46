//! Session of one client: settings, transaction, prepared statements and running statements.
//!
//! It is independent of sockets and messages: the server, the shell and embedding programs use
//! the same interface.
//!
//! # Transactions
//!
//! Statements outside BEGIN … COMMIT run in an implicit transaction that lasts until
//! [`Session::end_implicit`], which the wire layer calls at the end of a simple query message or
//! at Sync. After an error it calls [`Session::fail`].

mod notice;
mod analyze;
mod audit;
mod concurrent_indexes;
mod connection;
mod copies;
mod create_as;
mod cursors;
mod scroll;
mod deferred_constraints;
mod explain;
mod lock_tables;
mod materialized_views;
mod memory_use;
mod notifications;
mod plan_cache;
mod plpgsql;
mod plain_strings;
pub mod portals;
mod preparation;
mod prepared;
mod referential_actions;
mod row_security;
mod region_statements;
mod routine_calls;
mod sequences;
mod temporary_tables;
mod transaction;
mod two_phase;
mod deferrable_unique;
mod utility;
mod statement_executor;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use ahash::{AHashMap, AHashSet};
use store::Sequence;
use store::wal::DurableTicket;
use types::context::Sequences;
use types::encoding::Encoding;
use types::random::Random;
use types::system::CatalogHandle;
use types::text::TextStyle;
use types::{Batch, DataType, Datum, SqlType};

use crate::advisory::{AdvisoryLevel, SessionLocks};
use crate::ast::{SetScope, Statement};
use crate::batch_buffer::BatchBuffer;
use crate::catalog::access::role::SessionRole;
use crate::catalog::name::{BOOTSTRAP_ROLE, TEMP_PREFIX};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::exec;
use crate::logical::OutputColumn;
use crate::notifications::SessionNotifications;
use crate::parser::{self, ParsedStatement};
use crate::rows::{CommandTag, Completion, ResultRows, RunningPlan, with_cancel_reason};
use crate::session::cursors::{Cursors, OpenCursors};
use crate::session::plan_cache::{CachedPlan, PlanCache, PlanCacheKey};
use crate::session::prepared::{BoundParameters, CachedStatement, PreparedKind, StatementPlan};
use crate::session::routine_calls::CallStack;
use crate::session::sequences::SessionSequences;
use crate::session::statement_executor::{SessionEnvironment, SnapshotPolicy, StatementExecutor};
use crate::session_objects::StatementRow;
use crate::settings::Settings;
use crate::statement_log::LoggedStatements;
use crate::system::{CatalogNames, ChangedSetting, session_constants};
use crate::timer::StopFlag;

pub use crate::copy::{ColumnOptions, CopyFormat, CopyIn};
pub use crate::rows;
pub use crate::session::notice::{Notice, NoticeSink};
pub use crate::session::prepared::PreparedStatement;

/// Owner of a session.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// Name of its role; another name than that of a role stands for the bootstrap superuser.
    pub user: String,
}

/// Handle that cancels the running statement of a session from another thread.
#[derive(Debug, Clone)]
pub struct CancelHandle {
    flag: Arc<StopFlag>,
}

impl CancelHandle {
    /// Cancels the running statement with SQLSTATE 57014; without effect if none is running.
    pub fn cancel(&self) {
        self.flag.stop.store(true, Ordering::Relaxed);
    }
}

/// Transaction status for ReadyForQuery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatus {
    /// Not in a transaction block.
    Idle,
    /// In a transaction block.
    InBlock,
    /// In a failed transaction block; only ROLLBACK is accepted.
    Failed,
}

/// Result of a started statement.
pub enum Execution {
    /// Result rows, to be read to the end.
    Rows(ResultRows),
    /// Completion of a statement without rows.
    Done(Completion),
    /// COPY … FROM STDIN, which expects data.
    CopyIn(Box<CopyIn>),
    /// COPY … TO STDOUT: rows to be written in this format.
    CopyOut(ResultRows, CopyFormat),
}

/// A parsed statement. Cheap to clone.
#[derive(Clone)]
pub struct ParsedRequest {
    statement: Arc<ParsedStatement>,
}

impl ParsedRequest {
    /// Returns the command tag without counts, for example `SELECT`.
    pub fn tag(&self) -> &'static str {
        self.statement.statement.tag()
    }

    /// Returns the text of the statement, without a password in it.
    pub fn text(&self) -> &str {
        self.statement.text.as_str()
    }

    /// Returns the statement.
    pub fn statement(&self) -> &Statement {
        &self.statement.statement
    }
}

/// Splits SQL text into its statements.
///
/// # Errors
///
/// 42601 and other syntax errors with a position; no statement of the text was executed.
pub fn parse(sql: &str) -> Result<Vec<ParsedRequest>> {
    memory_use::check_text(sql)?;
    let statements = parser::parse_statements(sql)?;
    Ok(statements
        .into_iter()
        .map(|statement| ParsedRequest { statement: Arc::new(statement.without_password()) })
        .collect())
}

/// Session number in the process: the result of `pg_backend_pid()`.
static NEXT_PROCESS_ID: AtomicI32 = AtomicI32::new(1);

/// One client's session.
pub struct Session {
    /// Transaction and statement executor.
    worker: StatementExecutor,
    statements: AHashMap<String, Arc<PreparedStatement>>,
    /// Names of prepared statements with an empty text.
    empty_statements: AHashSet<String>,
    cursors: Cursors,
    /// Parameters of the running utility statement.
    bound: BoundParameters,
    /// True if the next statement's clock was started when it was parsed.
    is_timed: bool,
    /// Values of reported settings that were sent to the client.
    reported: Vec<(&'static str, Arc<str>)>,
    ticket: Option<DurableTicket>,
    /// True if the running statement may end its transaction and begin another.
    ends_transactions: bool,
    /// Nesting depth of procedural bodies.
    body_depth: usize,
    /// Body and expression context of the last function call.
    last_call: plpgsql::LastCall,
}

impl Deref for Session {
    type Target = StatementExecutor;

    fn deref(&self) -> &StatementExecutor {
        &self.worker
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut StatementExecutor {
        &mut self.worker
    }
}

impl Session {
    /// Opens a session on an engine.
    pub fn open(engine: &Arc<Engine>, options: SessionOptions) -> Session {
        let store = engine.store();
        let mut settings = Settings::new(store.admission_options(), store.coprocessor_limits());
        let catalog = engine.catalog();
        let bootstrap = catalog.role(BOOTSTRAP_ROLE);
        let role = catalog.role_named(&options.user).or(bootstrap);
        role.into_iter().for_each(|role| settings.open_as(&catalog, SessionRole::of(role)));
        let roles = Arc::clone(settings.roles());
        let process_id = NEXT_PROCESS_ID.fetch_add(1, Ordering::Relaxed);
        settings.set_temp_schema(&format!("{TEMP_PREFIX}{process_id}"));
        let mut sequences = SessionSequences::new(engine);
        sequences.set_search_path(Arc::new(settings.search_path()));
        let search_path = Arc::clone(&settings.parsed().search_path);
        let stop = Arc::default();
        let who = (process_id, &roles.session, engine.database);
        let plan_cache = Arc::<PlanCache>::default();
        let flags = (&stop, Arc::<PlanCache>::clone(&plan_cache) as _);
        let now = store.now_micros();
        let begin = || engine.sessions.begin(who, &settings, flags, now);
        let activity = engine.databases.begin_session(engine.database, begin);
        let locks = SessionLocks::new(Arc::clone(&engine.advisory), process_id);
        let around = SessionEnvironment {
            engine: Arc::clone(engine),
            constants: Arc::new(session_constants(engine, &settings, process_id)),
            shared_sequences: Sequences(Some(Arc::new(sequences.clone()))),
            sequences,
            random: Random::default(),
            locks: Arc::new(locks),
            notifications: Arc::new(SessionNotifications::new(&engine.notifications, process_id)),
            changed: Arc::default(),
            objects: Arc::default(),
            search_path,
            stop,
            reads: store.read_locks(),
            progress: Arc::default(),
            process_id,
            activity,
            notices: Arc::default(),
            notice_sink: None,
            open_cursors: OpenCursors::default(),
            plan_cache,
        };
        let open = Arc::clone(&around.open_cursors);
        let cursors = Cursors::of(Arc::clone(&around.objects), open);
        let (around, called) = (Arc::new(around), CallStack::default());
        Session {
            worker: StatementExecutor {
                environment: around,
                settings,
                open: None,
                call_stack: called,
                snapshots: SnapshotPolicy::Session,
                in_script: false,
                primary_only: false,
            },
            statements: AHashMap::new(),
            empty_statements: AHashSet::new(),
            cursors,
            bound: BoundParameters::default(),
            is_timed: false,
            reported: Vec::new(),
            ticket: None,
            ends_transactions: false,
            body_depth: 0,
            last_call: plpgsql::LastCall::default(),
        }
    }

    /// Returns the number of the session, unique in the process.
    pub fn process_id(&self) -> i32 {
        self.process_id
    }

    /// Returns the cached statement of a text, if its plan is still valid.
    pub fn cached(&mut self, text: &str) -> Option<Arc<PreparedStatement>> {
        self.follow_search_path();
        let key = PlanCacheKey::of_message(text, self.constants.search_path())?;
        let statement = self.plan_cache.find::<CachedStatement>(&key)?;
        let is_current = self.with_planning(|planning| Ok(statement.is_current(&planning.state)));
        is_current.ok()?.then(|| Arc::new(PreparedStatement::of(statement)))
    }

    /// Adds the plan of a message to the plan cache, if its text came before.
    pub fn cache_plan(&self, text: &str, prepared: &PreparedStatement) {
        let key = PlanCacheKey::of_message(text, self.constants.search_path());
        if let (Some(key), PreparedKind::Planned(statement)) = (key, &prepared.kind) {
            self.plan_cache.add_repeated(key, statement);
        }
    }

    /// Starts a statement, in the open transaction or in an implicit one.
    ///
    /// After an error the caller calls [`Session::fail`].
    ///
    /// # Errors
    ///
    /// Errors of the statement.
    pub fn execute(
        &mut self,
        prepared: &Arc<PreparedStatement>,
        parameters: Vec<Datum>,
    ) -> Result<Execution> {
        self.check_memory()?;
        if !std::mem::take(&mut self.is_timed) {
            self.start_clock();
        }
        let _scope = self.stop.interrupt().enter_planning();
        self.take_over_settings()?;
        self.show_last_read();
        self.activity.statement_started(
            &prepared.text,
            &self.settings,
            self.engine.store().now_micros(),
        );
        self.check_prepared_accepted(prepared)?;
        self.follow_search_path();
        let result = self.run_prepared(prepared, parameters);
        result.map_err(|error| with_cancel_reason(error, &self.stop))
    }

    /// Executes a statement within one that has been started.
    fn run_prepared(
        &mut self,
        prepared: &Arc<PreparedStatement>,
        parameters: Vec<Datum>,
    ) -> Result<Execution> {
        match &prepared.kind {
            PreparedKind::Planned(statement) => {
                prepared.runs.add();
                self.run_planned(statement, parameters)
            }
            PreparedKind::Utility(parsed) => {
                let types = prepared.parameter_types.iter().cloned().map(Some).collect();
                self.bound = BoundParameters { types, values: parameters };
                let result = self.run_utility(parsed);
                self.bound = BoundParameters::default();
                result
            }
        }
    }

    /// Finishes COPY … FROM STDIN.
    ///
    /// # Errors
    ///
    /// Errors of the rows that were not staged yet, and of their foreign keys.
    pub fn finish_copy(&mut self, copy: CopyIn) -> Result<Completion> {
        let watch = copy.watch();
        let completion = copy.finish()?;
        self.process_queue(watch)?;
        Ok(completion)
    }

    /// Applies the settings that functions of the last statement changed: `set_config()`.
    fn take_over_settings(&mut self) -> Result<()> {
        let in_block = self.is_in_block();
        let changed = self.changed.take();
        for (at, ChangedSetting { name, value, local, .. }) in changed.iter().enumerate() {
            // A mode that a subtransaction had set is replaced by a later entry.
            let is_replaced = Settings::is_transaction_mode(name)
                && changed[at + 1..].iter().any(|later| later.name == *name);
            match *local {
                _ if is_replaced => {}
                true if in_block => self.assign(name, value.as_deref(), SetScope::Local)?,
                // SET LOCAL outside a block ends with its statement.
                true => {}
                false => self.assign(name, value.as_deref(), SetScope::Session)?,
            }
        }
        Ok(())
    }

    /// Commits the implicit transaction, if one is open. The ticket must be awaited before the
    /// client gets a reply, also within a block, which may have read commits that are not durable
    /// yet.
    ///
    /// # Errors
    ///
    /// Error of the commit; the transaction is then rolled back.
    pub fn end_implicit(&mut self) -> Result<Option<DurableTicket>> {
        self.in_script = false;
        let ended = self.take_over_settings().and_then(|()| match &self.open {
            Some(open) if !open.in_block => self.commit(),
            _ => Ok(self.durability_of_reads()),
        });
        if self.open.is_none() {
            self.cursors.end_portals();
        }
        self.rest();
        ended.map_err(|error| with_cancel_reason(error, &self.stop))
    }

    /// Records in `pg_stat_activity` that the session waits for its client.
    fn rest(&self) {
        let state = match self.transaction_status() {
            TransactionStatus::Idle => "idle",
            TransactionStatus::InBlock => "idle in transaction",
            TransactionStatus::Failed => "idle in transaction (aborted)",
        };
        self.activity.set_idle(state, self.engine.store().now_micros());
    }

    /// Returns a ticket for the durability of what the open transaction has read, to be awaited
    /// before rows are sent; `None` if all of that is durable.
    pub fn durability_of_reads(&self) -> Option<DurableTicket> {
        self.open.as_ref().and_then(|open| open.transaction.seen_durable())
    }

    /// Adds a ticket to those that must be awaited before the reply.
    fn await_also(&mut self, ticket: Option<DurableTicket>) {
        let is_later =
            |known: &DurableTicket, new: &DurableTicket| known.sequence() >= new.sequence();
        self.ticket = match (self.ticket.take(), ticket) {
            (Some(known), Some(new)) if is_later(&known, &new) => Some(known),
            (known, new) => new.or(known),
        };
    }

    /// Takes the ticket of a COMMIT that [`Session::execute`] ran, to be awaited before the
    /// reply.
    pub fn take_ticket(&mut self) -> Option<DurableTicket> {
        self.ticket.take()
    }

    /// Handles an error: completes its message by the session's settings, and rolls the implicit
    /// transaction back or marks the block as failed.
    pub fn fail(&mut self, error: &mut Error) {
        *error = with_cancel_reason(std::mem::take(error), &self.stop);
        if !error.mentions.is_empty() {
            let (catalog, path) = (self.catalog(), self.settings.search_path());
            error.replace_type_names(|oid| catalog.shown_type_with(oid, -1, &path));
        }
        self.in_script = false;
        // Discards settings that the failed statement's functions changed.
        drop(self.changed.take());
        // The error may show values of rows that are not durable yet.
        let seen = self.durability_of_reads();
        self.await_also(seen);
        let engine = Arc::clone(&self.engine);
        match &mut self.open {
            Some(open) if open.in_block => {
                open.fail(&engine);
                // As in PostgreSQL, advisory locks are released before the client sends ROLLBACK.
                if open.savepoint_count() == 0 {
                    let floor = open.transaction.required_commit();
                    self.worker.environment.locks.release_all(AdvisoryLevel::Transaction, floor);
                }
            }
            Some(_) => self.rollback(),
            None => {}
        }
        self.rest();
    }

    /// Sets whether the statements up to the end of the transaction or message are several of one
    /// query message.
    pub fn set_in_script(&mut self, in_script: bool) {
        self.in_script = in_script;
    }

    /// Returns the transaction status for ReadyForQuery.
    pub fn transaction_status(&self) -> TransactionStatus {
        match &self.open {
            Some(open) if open.failed => TransactionStatus::Failed,
            Some(open) if open.in_block => TransactionStatus::InBlock,
            _ => TransactionStatus::Idle,
        }
    }

    /// Returns the handle for cancel requests.
    pub fn cancel_handle(&self) -> CancelHandle {
        CancelHandle { flag: Arc::clone(&self.stop) }
    }

    /// Sets a setting from a start-up parameter, which becomes the value that RESET restores.
    ///
    /// # Errors
    ///
    /// See [`Settings::set`].
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let catalog = self.catalog();
        self.settings.set_initial(&catalog, name, value)?;
        self.notice_truncation(name, value);
        Ok(())
    }

    /// Sets a setting from the server's options, including those that clients cannot change.
    pub fn set_of_server(&mut self, name: &str, value: &str) {
        self.settings.set_of_server(name, value);
    }

    /// Returns whether `log_statement` applies to a statement.
    pub fn is_logged(&self, statement: &Statement) -> bool {
        let logged = self.settings.logged_statements();
        if logged == LoggedStatements::None {
            return false;
        }
        let least = match statement {
            Statement::Execute { name, .. } => match self.statements.get(&name.value) {
                Some(prepared) => prepared.least_logged(),
                None => LoggedStatements::All,
            },
            statement => LoggedStatements::least_for(statement),
        };
        least <= logged
    }

    /// Returns whether `log_statement` applies to a prepared statement.
    pub fn is_prepared_logged(&self, prepared: &PreparedStatement) -> bool {
        match &prepared.kind {
            PreparedKind::Planned(statement) => {
                statement.least_logged <= self.settings.logged_statements()
            }
            PreparedKind::Utility(parsed) => self.is_logged(&parsed.statement),
        }
    }

    /// Returns the reported settings (ParameterStatus) that have changed since the last call; all
    /// of them at the first call.
    pub fn take_changed_reported(&mut self) -> Vec<(&'static str, Arc<str>)> {
        let unchanged = self
            .settings
            .reported()
            .zip(&self.reported)
            .all(|((_, now), (_, told))| Arc::ptr_eq(now, told) || now == told);
        if unchanged && !self.reported.is_empty() {
            return Vec::new();
        }
        let told = std::mem::take(&mut self.reported);
        self.reported =
            self.settings.reported().map(|(name, value)| (name, Arc::clone(value))).collect();
        self.reported.iter().filter(|entry| !told.contains(entry)).cloned().collect()
    }

    /// Sets the callback that sends notices of procedural bodies at once.
    pub fn on_notices(&mut self, sink: NoticeSink) {
        Arc::make_mut(&mut self.worker.environment).notice_sink = Some(sink);
    }

    /// Returns the encoding of the client's text.
    pub fn client_encoding(&self) -> &'static Encoding {
        self.settings.style().encoding
    }

    /// Returns the text format of values: time zone, bytea, names of OIDs.
    pub fn text_style(&self) -> TextStyle {
        let names = CatalogNames { catalog: self.catalog(), settings: self.settings.clone() };
        TextStyle { system: CatalogHandle(Some(Arc::new(names))), ..self.settings.style().clone() }
    }

    /// Returns the origin of each column for RowDescription: relation OID and column number;
    /// zeros if there is none.
    pub fn origins(&self, columns: &[OutputColumn]) -> Vec<(u32, i16)> {
        crate::system::origins(&self.catalog(), columns)
    }

    /// Returns the type with an OID that a client sent.
    pub fn type_with_oid(&self, oid: u32) -> Option<SqlType> {
        self.catalog().type_with_oid(oid)
    }

    /// Stores a prepared statement under a name; SQL and protocol share the names.
    ///
    /// # Errors
    ///
    /// 42P05 if the name is in use.
    pub fn store_statement(&mut self, name: &str, prepared: Arc<PreparedStatement>) -> Result<()> {
        self.keep_named(name, prepared, false)
    }

    /// Stores a prepared statement with an empty text.
    ///
    /// # Errors
    ///
    /// 42P05 if the name is in use.
    pub fn keep_empty_statement(&mut self, name: &str) -> Result<()> {
        self.check_statement_name(name)?;
        self.empty_statements.insert(name.to_owned());
        Ok(())
    }

    /// Returns whether a prepared statement of this name has an empty text.
    pub fn is_empty_statement(&self, name: &str) -> bool {
        self.empty_statements.contains(name)
    }

    fn check_statement_name(&self, name: &str) -> Result<()> {
        if !self.statements.contains_key(name) && !self.is_empty_statement(name) {
            return Ok(());
        }
        bail!(DUPLICATE_PREPARED_STATEMENT: "prepared statement \"{name}\" already exists")
    }

    fn keep_named(
        &mut self,
        name: &str,
        prepared: Arc<PreparedStatement>,
        from_sql: bool,
    ) -> Result<()> {
        self.check_statement_name(name)?;
        let shown = StatementRow {
            text: Arc::clone(&prepared.text.input),
            since: self.engine.store().now_micros(),
            parameter_types: prepared.parameter_types.clone(),
            from_sql,
            runs: prepared.runs.clone(),
        };
        self.objects.add_statement(name, shown);
        if let PreparedKind::Planned(statement) = &prepared.kind {
            self.plan_cache.add(statement.key(self.constants.search_path()), statement);
        }
        self.statements.insert(name.to_owned(), prepared);
        Ok(())
    }

    /// Returns a prepared statement by name.
    ///
    /// # Errors
    ///
    /// 26000 if there is none.
    pub fn statement(&self, name: &str) -> Result<&Arc<PreparedStatement>> {
        self.statements.get(name).ok_or_else(
            || err!(INVALID_SQL_STATEMENT_NAME: "prepared statement \"{name}\" does not exist"),
        )
    }

    /// Removes a prepared statement; returns whether there was one.
    pub fn forget_statement(&mut self, name: &str) -> bool {
        self.objects.retain_statements(|one| one != name);
        self.statements.remove(name).is_some() | self.empty_statements.remove(name)
    }

    fn forget_statements(&mut self) {
        self.objects.retain_statements(|_| false);
        self.statements.clear();
        self.empty_statements.clear();
    }

    /// Rejects a statement in a failed block unless it ends the block.
    fn check_accepted(&self, statement: &Statement) -> Result<()> {
        let ends = matches!(
            statement,
            Statement::Commit { .. }
                | Statement::Rollback { .. }
                | Statement::RollbackTo(_)
                | Statement::PrepareTransaction(_)
        );
        if ends || self.transaction_status() != TransactionStatus::Failed {
            return Ok(());
        }
        Err(aborted())
    }

    /// Rejects a prepared statement in a failed block unless it ends the block.
    fn check_prepared_accepted(&self, prepared: &PreparedStatement) -> Result<()> {
        match &prepared.kind {
            PreparedKind::Utility(parsed) => self.check_accepted(&parsed.statement),
            PreparedKind::Planned(_) if self.transaction_status() != TransactionStatus::Failed => {
                Ok(())
            }
            PreparedKind::Planned(_) => Err(aborted()),
        }
    }

    /// Raises the error of a constant expression that failed at planning, with the parameter
    /// values.
    fn check_constants(&self, prepared: &PreparedStatement, values: &[Datum]) -> Result<()> {
        let PreparedKind::Planned(statement) = &prepared.kind else { return Ok(()) };
        let planned = match statement.plan() {
            Some(planned) => planned,
            None => self.with_planning(|planning| statement.planned(planning))?,
        };
        planned.constants.check(values)
    }

    fn run_planned(
        &mut self,
        statement: &Arc<CachedStatement>,
        mut parameters: Vec<Datum>,
    ) -> Result<Execution> {
        let planned = self.with_planning(|planning| statement.planned(planning))?;
        if parameters.len() != statement.parameter_types.len() {
            bail!(PROTOCOL_VIOLATION: "bind message supplies {} parameters, but prepared statement requires {}",
                parameters.len(), statement.parameter_types.len());
        }
        // Those with parameters were checked when the parameters were bound.
        planned.constants.check_fixed()?;
        planned.notices.iter().for_each(|notice| self.notice("NOTICE", notice.clone()));
        parameters.resize(planned.parameter_count, Datum::Null);
        if statement.is_call {
            return self.run_call(statement, planned, parameters);
        }
        match planned.writes.is_empty() {
            true => self.run_query(statement, planned, parameters),
            false => self.run_change(statement, planned, parameters),
        }
    }

    fn run_query(
        &mut self,
        statement: &Arc<CachedStatement>,
        mut planned: Arc<StatementPlan>,
        mut parameters: Vec<Datum>,
    ) -> Result<Execution> {
        self.begin_request();
        self.lock_for_query(statement, &mut planned, &mut parameters)?;
        self.check_permitted(&planned, "SELECT")?;
        let open = self.open.as_ref().expect("a statement was begun");
        let mut context = self.context(open, parameters);
        let columns = planned.columns.clone().unwrap_or_else(|| Arc::from([]));
        let stop = Arc::clone(&self.stop);
        let _turn = context.transaction.turn();
        self.check_readiness(&planned)?;
        if let Some(row) = exec::point(&planned.plan, &mut context)? {
            return Ok(Execution::Rows(ResultRows::point(columns, row, stop)));
        }
        let transaction = Arc::clone(&context.transaction);
        let operator = RunningPlan { operator: exec::open(&planned.plan, context)?, transaction };
        Ok(Execution::Rows(ResultRows::streaming(
            columns,
            operator,
            CommandTag::Returned("SELECT"),
            stop,
        )))
    }

    /// Locks the tables of a query after its start, and replans if the catalog has changed before
    /// the locks were held.
    fn lock_for_query(
        &mut self,
        statement: &Arc<CachedStatement>,
        planned: &mut Arc<StatementPlan>,
        parameters: &mut Vec<Datum>,
    ) -> Result<()> {
        loop {
            self.lock_tables_of(planned)?;
            if !self.is_stale(planned) {
                return Ok(());
            }
            *planned = self.with_planning(|planning| statement.planned(planning))?;
            parameters.resize(planned.parameter_count, Datum::Null);
            self.see_as_planned();
        }
    }

    /// Locks the tables that a query reads or whose rows it locks.
    fn lock_tables_of(&mut self, planned: &StatementPlan) -> Result<()> {
        if self.lock_for_row_locks(planned)? {
            self.wait_for_publication();
        }
        self.lock_to_read(planned).map(drop)
    }

    /// Executes CALL to completion.
    fn run_call(
        &mut self,
        statement: &Arc<CachedStatement>,
        planned: Arc<StatementPlan>,
        parameters: Vec<Datum>,
    ) -> Result<Execution> {
        let mut batches = BatchBuffer::default();
        if let Some(rows) = self.call_in_session(&planned, parameters.clone())? {
            let columns = statement.columns.iter().flat_map(|columns| columns.iter());
            let types: Vec<DataType> = columns.map(|column| column.sql_type.base.clone()).collect();
            batches.push_small(Batch::from_rows(&types, &rows));
        } else {
            let Execution::Rows(mut rows) = self.run_query(statement, planned, parameters)? else {
                bail!(INTERNAL_ERROR: "CALL has no rows");
            };
            while let Some(batch) = rows.next_batch(usize::MAX)? {
                batches.push(batch, &self.buffer_limit())?;
            }
        }
        match &statement.columns {
            None => Ok(Execution::Done(Completion::new("CALL"))),
            Some(columns) => {
                let (columns, stop) = (Arc::clone(columns), Arc::clone(&self.stop));
                let tag = CommandTag::Fixed("CALL".to_owned());
                Ok(Execution::Rows(ResultRows::buffered(columns, batches, tag, stop)))
            }
        }
    }

    fn run_change(
        &mut self,
        statement: &Arc<CachedStatement>,
        mut planned: Arc<StatementPlan>,
        mut parameters: Vec<Datum>,
    ) -> Result<Execution> {
        let tag = statement.tag;
        self.begin_request();
        self.check_permitted(&planned, tag)?;
        let open = self.open.as_ref().expect("a statement was begun");
        let _turn = open.transaction.turn();
        for &table in &planned.writes {
            self.lock_for_write(table)?;
        }
        self.lock_to_read(&planned)?;
        // A transaction that this one waited for may have changed a table: replan.
        self.wait_for_publication();
        while self.is_stale(&planned) {
            let again = self.with_planning(|planning| statement.planned(planning))?;
            parameters.resize(again.parameter_count, Datum::Null);
            self.see_as_planned();
            self.check_permitted(&again, tag)?;
            for table in again.writes.iter().filter(|table| !planned.writes.contains(table)) {
                self.lock_for_write(*table)?;
            }
            self.lock_to_read(&again)?;
            self.wait_for_publication();
            planned = again;
        }
        self.bind_current_row(&planned, &mut parameters)?;
        let open = self.open.as_ref().expect("a statement was begun");
        let context = self.context(open, parameters);
        self.check_readiness(&planned)?;
        let outcome = self.modify(&planned, context)?;
        let tag = match tag {
            "INSERT" => format!("INSERT 0 {}", outcome.row_count),
            _ => format!("{tag} {}", outcome.row_count),
        };
        match &planned.columns {
            None => Ok(Execution::Done(Completion::new(tag))),
            Some(columns) => {
                let stop = Arc::clone(&self.stop);
                let columns = Arc::clone(columns);
                let rows =
                    ResultRows::buffered(columns, outcome.returning, CommandTag::Fixed(tag), stop);
                Ok(Execution::Rows(rows))
            }
        }
    }

    /// Takes a new snapshot for a replanned statement, so that it sees indexes that were built
    /// since.
    fn see_as_planned(&self) {
        if let Some(open) = self.open.as_ref().filter(|open| !open.is_repeatable()) {
            open.transaction.begin_statement();
        }
    }

    /// Returns whether the catalog has changed since a plan was made.
    fn is_stale(&self, planned: &StatementPlan) -> bool {
        self.catalog().version != planned.validity.catalog_version
    }

    fn commit(&mut self) -> Result<Option<DurableTicket>> {
        if let Err(error) = self.check_deferred(true).and_then(|()| self.end_temporary()) {
            self.rollback();
            return Err(error);
        }
        let Some(open) = self.open.take() else { return Ok(None) };
        open.transaction.set_limits(transaction::primary_limits(&self.settings));
        let floor = open.transaction.required_commit();
        let committed = open.commit(&self.worker.environment.engine, &mut self.worker.settings);
        self.cursors.end_transaction(committed.is_ok());
        let commit = committed.as_ref().ok().and_then(Option::as_ref).map(DurableTicket::sequence);
        self.locks.release_all(AdvisoryLevel::Transaction, commit.unwrap_or(floor));
        committed
    }

    fn rollback(&mut self) {
        self.cursors.end_transaction(false);
        if let Some(open) = self.open.take() {
            let floor = open.transaction.required_commit();
            open.rollback(&self.worker.environment.engine, &mut self.worker.settings);
            self.locks.release_all(AdvisoryLevel::Transaction, floor);
        }
    }

    fn notice(&mut self, severity: &'static str, error: Error) {
        if self.settings.wants_message(severity) {
            self.notices.lock().push(Notice { severity, error });
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !matches!(self.snapshots, SnapshotPolicy::Session) {
            return;
        }
        self.rollback();
        self.drop_temporary();
        self.locks.release_all(AdvisoryLevel::Session, Sequence(0));
        self.notifications.end();
        self.engine.sessions.end(self.process_id);
        self.engine.databases.end_session();
    }
}

/// Returns the error 25P02.
fn aborted() -> Error {
    err!(IN_FAILED_SQL_TRANSACTION: "current transaction is aborted, commands ignored until end of transaction block")
}

/// Returns the error 25006 of a write in a read-only transaction.
fn read_only(what: &str) -> Error {
    err!(READ_ONLY_SQL_TRANSACTION: "cannot execute {what} in a read-only transaction")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by a panic")]
mod tests {
    use std::time::Duration;

    use store::{Options, Store};

    use super::*;
    use crate::EngineOptions;

    fn open_session() -> (tempfile::TempDir, Arc<Engine>, Session) {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), Options::default()).unwrap();
        let engine = Engine::open(store, EngineOptions::default()).unwrap();
        let session = Session::open(&engine, SessionOptions { user: "bennu".to_owned() });
        (directory, engine, session)
    }

    /// Executes a statement; returns the number of rows.
    fn run(session: &mut Session, text: &str) -> usize {
        let prepared = session.prepare(&parse(text).unwrap()[0], &[]).unwrap();
        let mut count = 0;
        if let Execution::Rows(mut rows) = session.execute(&prepared, Vec::new()).unwrap() {
            while let Some(batch) = rows.next_batch(usize::MAX).unwrap() {
                count += batch.row_count;
            }
        }
        session.end_implicit().unwrap().map(DurableTicket::wait).transpose().unwrap();
        count
    }

    #[test]
    fn eviction_bounds_plans_of_functions_and_referential_checks() {
        const BYTES_MAX: usize = 32 << 10;
        let (_directory, _engine, mut session) = open_session();
        let cache = Arc::new(PlanCache::new(BYTES_MAX));
        Arc::make_mut(&mut session.worker.environment).plan_cache = Arc::clone(&cache);
        let numbers = 0..40;
        for at in numbers.clone() {
            for text in [
                format!("CREATE TABLE p{at} (a int PRIMARY KEY)"),
                format!("CREATE TABLE c{at} (a int REFERENCES p{at} ON DELETE CASCADE)"),
                format!("INSERT INTO p{at} VALUES (1), (2)"),
                format!("INSERT INTO c{at} VALUES (1), (2)"),
                format!(
                    "CREATE FUNCTION s{at}() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM c{at}'"
                ),
                format!(
                    "CREATE FUNCTION b{at}() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN s{at}(); END'"
                ),
            ] {
                run(&mut session, &text);
            }
        }
        for (left, kind) in [(1, "s"), (0, "b")] {
            run(&mut session, "DISCARD PLANS");
            for at in numbers.clone() {
                run(&mut session, &format!("DELETE FROM p{at} WHERE a > {left}"));
                assert!(cache.byte_count() <= BYTES_MAX, "plans of DELETE {at}");
            }
            let deletes = cache.byte_count();
            for at in numbers.clone() {
                let count = run(&mut session, &format!("SELECT 1 WHERE {kind}{at}() = {left}"));
                assert_eq!(count, 1);
                assert!(cache.byte_count() <= BYTES_MAX, "plans of function {kind}{at}");
            }
            assert!(deletes > BYTES_MAX / 2 && cache.byte_count() > BYTES_MAX / 2);
        }
    }

    #[test]
    fn commit_timeout_reports_statement_timeout() {
        let (_directory, engine, mut session) = open_session();
        for text in ["CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)"] {
            assert!(session.end_implicit().unwrap().is_none());
            let prepared = session.prepare(&parse(text).unwrap()[0], &[]).unwrap();
            session.execute(&prepared, Vec::new()).unwrap();
        }
        engine.timer.stop_after(Duration::ZERO, &session.stop);
        while !session.stop.timed_out() {
            std::thread::yield_now();
        }
        let error = session.end_implicit().err().unwrap();
        assert_eq!(error.sqlstate, types::sqlstate::QUERY_CANCELED);
        assert_eq!(error.message, "canceling statement due to statement timeout");
    }
}
