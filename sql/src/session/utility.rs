//! Utility statements: transactions, settings, DDL, COPY, PREPARE and maintenance commands.
//!
//! [`Session::execute`] calls it for statements without a plan. DDL is executed optimistically:
//! an attempt that would have to wait for a lock, or that finds an outdated catalog, is undone
//! and restarted after the wait, so that it never holds catalog changes while it waits.

use std::sync::Arc;

use store::transaction::{LockMode, LockWait};
use store::{Sequence, TableId};
use types::expr::{EvalContext, Expr};
use types::{Datum, SqlType};

use crate::activity::SessionPlans;
use crate::advisory::AdvisoryLevel;
use crate::ast;
use crate::ast::{
    AlterTableAction, DatabaseStatement, SetScope, Statement, TriggerEvent, TypeStatement,
};
use crate::binder::{self, NameContext, SessionConstants, TableClause};
use crate::catalog::record::CATALOG_TABLE;
use crate::catalog::table::Table;
use crate::catalog::trigger::Trigger;
use crate::ddl;
use crate::ddl::{Ddl, RetryReason};
use crate::engine::Engine;
use crate::error::{Error, Result, sqlstate};
use crate::exec;
use crate::parser::ParsedStatement;
use crate::rows::{CommandTag, Completion, ResultRows};
use crate::session::notifications::is_notification;
use crate::session::prepared::{PlannedQuery, PreparedKind, PreparedStatement};
use crate::session::statement_executor::StatementExecutor;
use crate::session::transaction::OpenTransaction;
use crate::session::two_phase::is_two_phase;
use crate::session::{Execution, Notice, ParsedRequest, Session};
use crate::settings::{Settings, TransactionModeSet};
use crate::system::{SystemNames, is_catalog_table};

impl Session {
    /// Executes a utility statement.
    pub(super) fn run_utility(&mut self, parsed: &Arc<ParsedStatement>) -> Result<Execution> {
        self.audit_utility(parsed);
        let before = self.primary_only;
        self.worker.primary_only = !may_read_replicas(&parsed.statement);
        let done = self.run_utility_within(parsed);
        self.worker.primary_only = before;
        done
    }

    fn run_utility_within(&mut self, parsed: &Arc<ParsedStatement>) -> Result<Execution> {
        let statement = &parsed.statement;
        let tag = statement.tag();
        match statement {
            Statement::Begin { .. }
            | Statement::Commit { .. }
            | Statement::Rollback { .. }
            | Statement::Savepoint(_)
            | Statement::RollbackTo(_)
            | Statement::Release(_)
            | Statement::SetTransaction(_)
            | Statement::SetSnapshot(_) => return self.run_transaction(statement),
            other if is_two_phase(other) => return self.run_two_phase(statement),
            Statement::CreateIndex(create) if create.concurrently && !create.is_async => {
                self.create_concurrently(create)?;
            }
            Statement::Truncate(truncate) => self.run_truncate(statement, truncate)?,
            ddl if is_ddl(ddl) => self.run_ddl(ddl)?,
            Statement::Do(block) => self.run_do(block)?,
            Statement::Reindex(reindex) => self.run_reindex(reindex)?,
            Statement::Check(check) => return self.run_check(check),
            Statement::CheckStore(check) => return self.run_check_store(check),
            Statement::LockTables(lock) => self.run_lock(lock)?,
            Statement::DiscardTemp => self.discard_temporary()?,
            Statement::CreateTableAs(create) => return self.run_create_as(create),
            Statement::Refresh(refresh) => self.run_refresh(refresh)?,
            Statement::Set(set) => self.run_set(set)?,
            Statement::AlterSession { name, value } => {
                self.assign(&name.value, Some(&value.text()), SetScope::Session)?;
            }
            Statement::SetSessionCharacteristics(modes) => self.set_characteristics(modes)?,
            Statement::Show(name) => return self.run_show(name.as_ref()),
            Statement::Reset(None) => self.settings.reset_all()?,
            Statement::Reset(Some(name)) => self.assign(&name.value, None, SetScope::Session)?,
            Statement::DiscardAll => self.discard_all()?,
            Statement::DiscardPlans => self.plan_cache.drop_plans(),
            Statement::DiscardSequences => self.sequences.discard(),
            Statement::Explain(explain) => return self.run_explain(explain),
            Statement::Copy(copy) => return self.run_copy(parsed, copy),
            Statement::Prepare(prepare) => self.run_prepare(parsed, prepare)?,
            Statement::Execute { name, arguments } => {
                return self.run_execute(&name.value, arguments);
            }
            Statement::Deallocate(None) => self.forget_statements(),
            Statement::Deallocate(Some(name)) if self.forget_statement(&name.value) => {}
            Statement::Deallocate(Some(name)) => self.statement(&name.value).map(drop)?,
            Statement::Flush(table) => self.run_flush(table)?,
            Statement::Compact { table, major } => {
                self.compact(&*self.owned_table(table)?, *major)?
            }
            Statement::AlterTable(alter) => match &alter.action {
                AlterTableAction::Regions(action) => {
                    self.alter_table_regions(&alter.name, action)?
                }
                _ => self.run_ddl(statement)?,
            },
            Statement::AlterIndex(alter) => self.alter_index(alter)?,
            Statement::Vacuum { tables, full, analyze } => {
                self.reject_in_block("VACUUM")?;
                self.run_vacuum(tables, *full, *analyze)?;
            }
            Statement::Analyze(tables) => self.run_analyze(tables)?,
            Statement::DeclareCursor(_) | Statement::Fetch { .. } | Statement::Close(_) => {
                return self.run_cursor(parsed, statement);
            }
            other if is_notification(other) => self.run_notification(other)?,
            Statement::SetConstraints(set) => self.run_set_constraints(set)?,
            _ => bail!(FEATURE_NOT_SUPPORTED: "{tag} is not supported"),
        }
        Ok(Execution::Done(Completion::new(tag)))
    }

    fn run_flush(&mut self, table: &ast::TableName) -> Result<()> {
        let (table, stop) = (self.owned_table(table)?, &self.stop.stop);
        self.for_each_store_table(&table, |store, id| store.flush_until(id, stop))
    }

    fn run_transaction(&mut self, statement: &Statement) -> Result<Execution> {
        let done = |tag: &str| Ok(Execution::Done(Completion::new(tag)));
        let in_block = self.open.as_ref().is_some_and(|open| open.in_block);
        match statement {
            Statement::Begin { modes, .. } => self.run_begin(modes)?,
            Statement::Commit { chain } => {
                let modes = self.chained(*chain, statement)?;
                let failed = self.open.as_ref().is_some_and(|open| open.failed);
                if !in_block {
                    self.warn(
                        sqlstate::NO_ACTIVE_SQL_TRANSACTION,
                        "there is no transaction in progress",
                    );
                }
                if failed {
                    self.rollback();
                    self.begin_chained(modes);
                    return done("ROLLBACK");
                }
                self.ticket = self.commit()?;
                self.begin_chained(modes);
            }
            Statement::Rollback { chain } => {
                let modes = self.chained(*chain, statement)?;
                if !in_block {
                    self.warn(
                        sqlstate::NO_ACTIVE_SQL_TRANSACTION,
                        "there is no transaction in progress",
                    );
                }
                self.rollback();
                self.begin_chained(modes);
            }
            Statement::SetTransaction(modes) if self.is_in_block() => self.run_modes(modes)?,
            Statement::SetSnapshot(name) if in_block || self.body_depth > 0 => {
                if let Some(open) = &mut self.worker.open {
                    open.import_snapshot(name)?;
                }
            }
            Statement::SetTransaction(_) | Statement::SetSnapshot(_) => self.warn(
                sqlstate::NO_ACTIVE_SQL_TRANSACTION,
                "SET TRANSACTION can only be used in transaction blocks",
            ),
            _ => self.run_savepoint(statement)?,
        }
        done(statement.tag())
    }

    /// Returns the modes of the transaction that AND CHAIN begins.
    fn chained(&self, chain: bool, statement: &Statement) -> Result<Option<TransactionModeSet>> {
        if !chain {
            return Ok(None);
        }
        match self.open.as_ref().filter(|open| open.in_block) {
            Some(open) => Ok(Some(open.modes)),
            None => {
                bail!(NO_ACTIVE_SQL_TRANSACTION: "{} AND CHAIN can only be used in transaction blocks", statement.tag())
            }
        }
    }

    fn begin_chained(&mut self, modes: Option<TransactionModeSet>) {
        if let Some(modes) = modes {
            let mut open =
                OpenTransaction::begin(&self.engine, &self.settings, modes, self.handles());
            open.in_block = true;
            self.open = Some(open);
        }
    }

    fn run_begin(&mut self, modes: &ast::TransactionModes) -> Result<()> {
        if self.open.as_ref().is_some_and(|open| open.in_block) {
            self.warn(
                sqlstate::ACTIVE_SQL_TRANSACTION,
                "there is already a transaction in progress",
            );
            return self.run_modes(modes);
        }
        let modes = self.settings.parsed().default_modes.with(modes);
        let open = self.worker.begin_with(modes)?;
        open.in_block = true;
        Ok(())
    }

    fn run_modes(&mut self, modes: &ast::TransactionModes) -> Result<()> {
        let now = self.open.as_ref().map(|open| open.modes);
        let now = now.unwrap_or_else(|| self.settings.parsed().default_modes);
        self.worker.begin_with(now.with(modes))?;
        self.report_modes()
    }

    fn run_savepoint(&mut self, statement: &Statement) -> Result<()> {
        let Session {
            worker: StatementExecutor { environment: around, settings, open, .. },
            cursors,
            ..
        } = self;
        let Some(open) = open.as_mut().filter(|open| open.in_block) else {
            bail!(NO_ACTIVE_SQL_TRANSACTION: "{} can only be used in transaction blocks", savepoint_word(statement));
        };
        match statement {
            Statement::Savepoint(name) => open.savepoint(&name.value, settings),
            Statement::Release(name) => {
                open.release(&name.value)?;
                cursors.release(open.savepoint_count());
            }
            Statement::RollbackTo(name) => {
                *settings = open.rollback_to(&around.engine, &name.value)?;
                cursors.rollback_to(open.savepoint_count());
            }
            _ => unreachable!("the caller passes savepoint statements only"),
        }
        Ok(())
    }

    fn run_ddl(&mut self, statement: &Statement) -> Result<()> {
        if let Statement::Drop(drop) = statement {
            self.check_drop_concurrently(drop)?;
        }
        if let Statement::Database(database) = statement {
            match **database {
                DatabaseStatement::Alter { .. } => {}
                _ => self.reject_in_block(statement.tag())?,
            }
        }
        self.check_not_in_use(statement)?;
        if self.alter_salt(statement)? {
            return Ok(());
        }
        let open = self.begin_statement();
        let repeatable = open.modes.is_repeatable();
        // They read existing rows, and must see all of them.
        let reads = match statement {
            Statement::CreateIndex(_) | Statement::AlterTable(_) => true,
            Statement::Type(statement) => matches!(**statement, TypeStatement::AlterDomain(_)),
            _ => false,
        };
        if repeatable && reads {
            return Err(Error::not_supported(
                format!("{} at REPEATABLE READ", statement.tag()),
                "Use a READ COMMITTED transaction.",
            ));
        }
        let (system, constants) = (Arc::clone(&self.engine), self.constants.clone());
        self.in_ddl(statement.tag(), |ddl| define(ddl, statement, (&system, &constants)))
    }

    /// Executes TRUNCATE with its triggers.
    fn run_truncate(&mut self, statement: &Statement, truncate: &ast::Truncate) -> Result<()> {
        let tables = self.in_ddl(statement.tag(), |ddl| ddl.tables_to_truncate(truncate))?;
        let of_event =
            |trigger: &Arc<Trigger>| trigger.record.events.contains(&TriggerEvent::Truncate);
        if !tables.iter().any(|table| table.triggers.iter().any(of_event)) {
            return self.run_ddl(statement);
        }
        let ids: Vec<TableId> = tables.iter().map(|table| table.id).collect();
        let queue = self.constraint_queue(&ids)?;
        for is_after in [false, true] {
            let open = self.open.as_ref().expect("a statement was begun");
            let context =
                exec::Context { constraint_queue: queue.clone(), ..self.context(open, Vec::new()) };
            for table in &tables {
                let event = (TriggerEvent::Truncate, [].as_slice());
                match is_after {
                    false => context.call_before_statement(table, event)?,
                    true => context.queue_after_statement(table, event)?,
                }
            }
            if !is_after {
                self.run_ddl(statement)?;
            }
        }
        self.process_queue(queue)
    }

    /// Executes a DDL operation.
    pub(super) fn in_ddl<T>(
        &mut self,
        tag: &str,
        run: impl FnMut(&mut Ddl<'_>) -> Result<T>,
    ) -> Result<T> {
        self.check_may_define(tag)?;
        self.in_any_ddl(run)
    }

    /// Rejects DDL in a read-only transaction.
    pub(super) fn check_may_define(&mut self, tag: &str) -> Result<()> {
        self.begin_statement();
        match self.is_read_only() {
            true => Err(self.read_only(tag)),
            false => Ok(()),
        }
    }

    /// Executes a catalog change that is also allowed in a read-only transaction.
    pub(super) fn in_any_ddl<T>(
        &mut self,
        mut run: impl FnMut(&mut Ddl<'_>) -> Result<T>,
    ) -> Result<T> {
        let (done, stale) = self.with_ddl(|ddl| {
            let done = run(ddl)?;
            Ok((done, std::mem::take(&mut ddl.stale_indexes)))
        })?;
        // Functions now have the definitions that the statement gave them.
        for index in stale {
            self.with_ddl(|ddl| {
                // Indexes of other owners call the function, too.
                ddl.changes_others = true;
                ddl.rebuild_index(index, false)
            })?;
        }
        Ok(done)
    }

    fn with_ddl<T>(&mut self, mut run: impl FnMut(&mut Ddl<'_>) -> Result<T>) -> Result<T> {
        loop {
            match self.try_ddl(&mut run)? {
                DdlOutcome::Done(done) => return Ok(done),
                // Restart: the previous lock holder may have changed what the names refer to.
                DdlOutcome::GaveUp(RetryReason::Lock(row, mode)) => {
                    let open = self.open.as_ref().expect("a statement was begun");
                    let (mode, wait) = (LockMode::Table(mode), LockWait::Wait);
                    open.transaction.lock_present_row(CATALOG_TABLE, &row, mode, wait)?;
                    self.wait_for_publication();
                }
                DdlOutcome::GaveUp(RetryReason::LockBeside(row, mode)) => {
                    let open = self.open.as_ref().expect("a statement was begun");
                    let mode = LockMode::Table(mode);
                    open.transaction.lock_without_queueing(CATALOG_TABLE, &row, mode)?;
                    self.wait_for_publication();
                }
                // Each conflict means progress of another session, so the loop ends, but it may
                // take long.
                DdlOutcome::GaveUp(RetryReason::Outdated) => self.stop.interrupt().check()?,
            }
        }
    }

    /// Executes a DDL operation; undoes it and returns if it would wait for a lock, or if its
    /// catalog is outdated.
    fn try_ddl<T>(
        &mut self,
        run: &mut impl FnMut(&mut Ddl<'_>) -> Result<T>,
    ) -> Result<DdlOutcome<T>> {
        self.begin_statement();
        let eval = self.open.as_ref().map(|open| self.eval_context(open, Vec::new()));
        let eval = eval.unwrap_or_default();
        let process_id = self.process_id;
        let StatementExecutor { environment: around, open, settings, .. } = &mut self.worker;
        let open = open.as_mut().expect("a statement was begun");
        let mark = open.mark_definition();
        let mut gave_up = None;
        let done = open.define(&around.engine, &around.constants, eval, |ddl| {
            (ddl.settings, ddl.stops_at_locks) = (Some(settings.clone()), true);
            ddl.process_id = process_id;
            let done = run(ddl).and_then(|done| ddl.finish().map(|()| done));
            gave_up = ddl.retry_reason.take();
            Ok((done?, std::mem::take(&mut ddl.notices)))
        });
        if let (Err(_), Some(gave_up)) = (&done, gave_up) {
            open.undo_definition(&around.engine, mark);
            return Ok(DdlOutcome::GaveUp(gave_up));
        }
        open.forget_mark(&mark);
        let (done, notices) = done?;
        for notice in notices {
            let is_warning = notice.sqlstate.starts_with("01")
                || notice.sqlstate == sqlstate::INVALID_PARAMETER_VALUE;
            self.notice(if is_warning { "WARNING" } else { "NOTICE" }, notice);
        }
        Ok(DdlOutcome::Done(done))
    }

    fn run_set(&mut self, set: &ast::SetVariable) -> Result<()> {
        self.assign(&set.name.value, Settings::given(set).as_deref(), set.scope)
    }

    pub(super) fn assign(
        &mut self,
        name: &str,
        value: Option<&str>,
        scope: SetScope,
    ) -> Result<()> {
        if scope == SetScope::Local && !self.is_in_block() {
            self.warn(
                sqlstate::NO_ACTIVE_SQL_TRANSACTION,
                "SET LOCAL can only be used in transaction blocks",
            );
            return Ok(());
        }
        if scope == SetScope::Local && self.open.is_none() {
            // First of several statements in a query message.
            self.worker.begin_with(self.settings.parsed().default_modes)?;
        }
        if Settings::is_transaction_mode(name) {
            return self.assign_mode(name, value);
        }
        let (catalog, before) = (self.catalog(), self.settings.clone());
        if self.is_inner() {
            // The session applies it at the end of the statement that called the function.
            let StatementExecutor { environment: around, settings, .. } = &self.worker;
            around.changed.set((&catalog, settings), name, value, scope == SetScope::Local)?;
        }
        self.settings.set_with(&catalog, name, value)?;
        self.notice_truncation(name, value.unwrap_or_default());
        if scope == SetScope::Local
            && let Some(open) = &mut self.open
        {
            open.note_local(name, before);
        }
        Ok(())
    }

    /// Raises a notice if a value was truncated to the length of a name.
    pub(super) fn notice_truncation(&mut self, name: &str, value: &str) {
        if let Some(cut) = Settings::truncated(name, value) {
            let message = format!("identifier \"{value}\" will be truncated to \"{cut}\"");
            self.notices
                .lock()
                .push(Notice { severity: "NOTICE", error: err!(NAME_TOO_LONG: message) });
        }
    }

    /// Sets a mode of the current transaction, as SET TRANSACTION does; without effect if there
    /// is none.
    fn assign_mode(&mut self, name: &str, value: Option<&str>) -> Result<()> {
        let mut tried = self.settings.clone();
        tried.set(name, value)?;
        let (name, value) = tried.show(name)?;
        let Some(open) = &self.open else { return Ok(()) };
        let mut given = ast::TransactionModes::default();
        match name {
            "transaction_isolation" => given.isolation = ast::IsolationLevel::named(value),
            "transaction_read_only" => given.read_only = Some(value == "on"),
            _ => given.deferrable = Some(value == "on"),
        }
        let modes = open.modes.with(&given);
        self.worker.begin_with(modes)?;
        self.report_modes()
    }

    /// Reports a changed transaction mode to the session of the calling statement.
    pub(super) fn report_modes(&mut self) -> Result<()> {
        let Some(open) = self.open.as_ref().filter(|_| self.is_inner()) else { return Ok(()) };
        let value = if open.modes.read_only { "on" } else { "off" };
        let before = (&*self.catalog(), &self.settings);
        self.changed.set(before, "transaction_read_only", Some(value), true).map(drop)
    }

    fn set_characteristics(&mut self, modes: &ast::TransactionModes) -> Result<()> {
        let modes = self.settings.parsed().default_modes.with(modes);
        let word = |on| Some(if on { "on" } else { "off" });
        let isolation = Some(modes.isolation.name());
        self.settings.set("default_transaction_isolation", isolation)?;
        self.settings.set("default_transaction_read_only", word(modes.read_only))?;
        self.settings.set("default_transaction_deferrable", word(modes.deferrable))
    }

    fn run_show(&mut self, name: Option<&ast::Ident>) -> Result<Execution> {
        let stop = Arc::clone(&self.stop);
        let tag = CommandTag::Fixed("SHOW".to_owned());
        let modes = self
            .open
            .as_ref()
            .map_or_else(|| self.settings.parsed().default_modes, |open| open.modes);
        let mut settings = self.settings.clone();
        modes.show_in(&mut settings);
        let Some(name) = name else {
            let rows: Vec<Vec<String>> = settings
                .show_all()
                .map(|(name, value, about)| vec![name.into(), value.into(), about.into()])
                .collect();
            let columns = ["name", "setting", "description"];
            return Ok(Execution::Rows(ResultRows::of_text(&columns, &rows, tag, stop)));
        };
        let (title, value) = settings.show(&name.value)?;
        let rows = [vec![value.to_owned()]];
        Ok(Execution::Rows(ResultRows::of_text(&[title], &rows, tag, stop)))
    }

    fn discard_all(&mut self) -> Result<()> {
        self.reject_in_block("DISCARD ALL")?;
        let catalog = self.catalog();
        self.settings.set_with(&catalog, "session_authorization", None)?;
        self.settings.reset_all()?;
        self.cursors.clear();
        self.forget_statements();
        self.plan_cache.drop_plans();
        self.sequences.discard();
        self.drop_temporary();
        self.locks.release_all(AdvisoryLevel::Session, Sequence(0));
        self.notifications.unlisten_all();
        self.objects.release_holds();
        Ok(())
    }

    fn run_prepare(&mut self, parsed: &Arc<ParsedStatement>, prepare: &ast::Prepare) -> Result<()> {
        let catalog = self.catalog();
        let path = self.constants.search_path();
        let named = prepare.types.iter().map(|name| catalog.type_named(name, path));
        let types: Vec<_> = named.map(|of| of.map(Some)).collect::<Result<_>>()?;
        let statement = ParsedStatement {
            statement: prepare.statement.clone(),
            ..ParsedStatement::clone(parsed)
        };
        let prepared = self.prepare(&ParsedRequest { statement: Arc::new(statement) }, &types)?;
        self.keep_named(&prepare.name.value, prepared, true)
    }

    fn run_execute(&mut self, name: &str, arguments: &[ast::Expr]) -> Result<Execution> {
        let (prepared, parameters) = self.prepared_call(name, arguments)?;
        match &prepared.kind {
            PreparedKind::Planned(_) => {
                self.check_constants(&prepared, &parameters)?;
                self.run_prepared(&prepared, parameters)
            }
            PreparedKind::Utility(parsed) => self.run_utility(parsed),
        }
    }

    /// Returns the query of a statement: for EXECUTE, the prepared statement.
    pub(super) fn query_of(&mut self, statement: &Statement) -> Result<PlannedQuery> {
        let Statement::Execute { name, arguments } = statement else {
            let statement = statement.clone();
            let (types, values) = (self.bound.types.clone(), self.bound.values.clone());
            return Ok(PlannedQuery { statement, types, values });
        };
        let (prepared, values) = self.prepared_call(&name.value, arguments)?;
        let types = prepared.parameter_types.iter().cloned().map(Some).collect();
        let statement = prepared.parsed()?.statement;
        Ok(PlannedQuery { statement, types, values })
    }

    /// Returns the prepared statement of EXECUTE, and its parameter values.
    fn prepared_call(
        &mut self,
        name: &str,
        arguments: &[ast::Expr],
    ) -> Result<(Arc<PreparedStatement>, Vec<Datum>)> {
        let prepared = Arc::clone(self.statement(name)?);
        if arguments.len() != prepared.parameter_types.len() {
            bail!(SYNTAX_ERROR: "wrong number of parameters for prepared statement \"{name}\"";
                detail "Expected {} parameters but got {}.", prepared.parameter_types.len(), arguments.len());
        }
        if arguments.is_empty() {
            return Ok((prepared, Vec::new()));
        }
        self.begin_statement();
        let open = self.open.as_ref().expect("a statement was begun");
        let context = self.eval_context(open, Vec::new());
        let mut parameters = Vec::with_capacity(arguments.len());
        let catalog = self.catalog();
        let names = NameContext {
            catalog: &catalog,
            path: self.constants.search_path(),
            session: None,
            families: None,
        };
        let types = prepared.parameter_types.iter();
        for (number, (argument, sql_type)) in (1..).zip(arguments.iter().zip(types)) {
            let target = Some(sql_type);
            let clause = TableClause::ExecuteParameter;
            let bound =
                binder::bind_table_expression(clause, argument, &[], target.cloned(), names);
            let bound =
                bound.map_err(|error| match error.message.strip_prefix("parameter of") {
                    Some(rest) => {
                        Error { message: format!("parameter ${number} of{rest}"), ..error }
                    }
                    None => error,
                })?;
            parameters.push(bound.eval_row(&[], &context)?);
        }
        Ok((prepared, parameters))
    }

    /// Checks the parameter values of a prepared statement by the domains of their types.
    ///
    /// # Errors
    ///
    /// 23514 and 23502.
    pub fn checked_parameters(
        &self,
        prepared: &PreparedStatement,
        values: Vec<Datum>,
    ) -> Result<Vec<Datum>> {
        if prepared.parameter_types.iter().all(|sql_type| sql_type.domain.is_none()) {
            return Ok(values);
        }
        let context = EvalContext { style: self.text_style(), ..EvalContext::default() };
        let catalog = self.catalog();
        let names = NameContext {
            catalog: &catalog,
            path: self.constants.search_path(),
            session: None,
            families: None,
        };
        let types = prepared.parameter_types.iter();
        let check = |(value, sql_type): (Datum, &SqlType)| {
            let given = Expr::Constant { value, data_type: sql_type.base.clone() };
            let checked = binder::bind_as_domain(given, sql_type, names)?;
            Ok(checked.eval_row(&[], &context)?)
        };
        values.into_iter().zip(types).map(check).collect()
    }

    fn run_vacuum(&mut self, tables: &[ast::TableName], full: bool, analyze: bool) -> Result<()> {
        for table in self.maintained(tables, "vacuum")? {
            self.compact(&table, full)?;
        }
        if analyze { self.run_analyze(tables) } else { Ok(()) }
    }

    /// Returns the tables that a statement names, or all if it names none, as far as the current
    /// role owns them. The others are only warnings.
    pub(super) fn maintained(
        &self,
        tables: &[ast::TableName],
        verb: &str,
    ) -> Result<Vec<Arc<Table>>> {
        let mut found: Vec<Arc<Table>> = match tables {
            [] => self.with_planning(|planning| {
                Ok(planning.catalog.tables().into_iter().cloned().collect())
            })?,
            named => {
                let stored = |name: &&ast::TableName| !self.names_catalog_table(name);
                named
                    .iter()
                    .filter(stored)
                    .map(|name| self.table(name))
                    .collect::<Result<Vec<_>>>()?
            }
        };
        found.retain(|table| {
            let is_own = self.check_owns(table).is_ok();
            if !is_own && !tables.is_empty() {
                let name = &table.name;
                let error = err!(WARNING: "permission denied to {verb} \"{name}\", skipping it");
                self.notices.lock().push(Notice { severity: "WARNING", error });
            }
            is_own
        });
        Ok(found)
    }

    /// Returns a table by name, which the current role must own.
    pub(super) fn owned_table(&self, name: &ast::TableName) -> Result<Arc<Table>> {
        let table = self.table(name)?;
        self.check_owns(&table)?;
        Ok(table)
    }

    /// Returns whether a name is that of a system catalog, which is computed and has no stored
    /// rows.
    fn names_catalog_table(&self, name: &ast::TableName) -> bool {
        let path = self.constants.search_path();
        self.catalog().find(name, path).is_none() && is_catalog_table(name)
    }

    /// Returns a table by name, resolved by the session's catalog and search path.
    pub(super) fn table(&self, name: &ast::TableName) -> Result<Arc<Table>> {
        let path = self.constants.search_path();
        self.with_planning(|planning| {
            let table = planning.catalog.find_table(name, path).cloned();
            table.ok_or_else(|| ddl::no_table(planning.catalog, name, path))
        })
    }

    /// Compacts the store tables of a table and its indexes.
    fn compact(&self, table: &Table, major: bool) -> Result<()> {
        let stop = &self.stop.stop;
        self.for_each_store_table(table, |store, id| store.compact_until(id, major, stop).map(drop))
    }

    fn for_each_store_table(
        &self,
        table: &Table,
        act: impl Fn(&store::Store, TableId) -> store::Result<()>,
    ) -> Result<()> {
        act(self.engine.store(), table.id)?;
        for index in &table.indexes {
            act(self.engine.store(), index.spec.store_table)?;
        }
        Ok(())
    }

    pub(super) fn warn(&mut self, code: &'static str, message: &str) {
        self.notice("WARNING", Error::new(code, message));
    }
}

/// Outcome of a DDL attempt.
enum DdlOutcome<T> {
    /// Executed.
    Done(T),
    /// Given up, to be retried.
    GaveUp(RetryReason),
}

/// Executes a statement that changes the catalog.
fn define(
    ddl: &mut Ddl<'_>,
    statement: &Statement,
    (system, constants): (&Arc<Engine>, &SessionConstants),
) -> Result<()> {
    match statement {
        Statement::CreateTable(create) => ddl.create_table(create).map(|_| ()),
        Statement::CreateSchema(create) => define_schema(ddl, create, (system, constants)),
        Statement::Database(statement) => ddl.change_databases(statement),
        Statement::Extension(statement) => ddl.change_extensions(statement),
        Statement::Role(statement) => ddl.change_roles(statement),
        Statement::Grant(grant) => ddl.change_privileges(grant),
        Statement::Owned(statement) => ddl.change_owned(statement),
        Statement::DropNothing(drop) => ddl.drop_nothing(drop),
        Statement::Drop(drop) => ddl.drop(drop),
        Statement::Rename(rename) => ddl.rename(rename),
        Statement::Truncate(truncate) => ddl.truncate(truncate),
        Statement::Comment(comment) => ddl.comment_on(comment),
        Statement::AlterTable(alter) => match &alter.action {
            AlterTableAction::Changes(changes) => ddl.alter_columns(alter, changes),
            AlterTableAction::ViewOptions(options) => ddl.alter_view_options(alter, options),
            _ => ddl.alter_coprocessors(alter),
        },
        Statement::CreateView(create) => {
            let catalog = ddl.catalog();
            let style = ddl.literal_style().clone();
            let definition = binder::bind_view_definition(
                &create.query,
                &catalog,
                &SystemNames::of(system),
                (constants, &style),
            )?;
            match ddl.place_view(&catalog, create, &definition)? {
                Some(placed) => ddl.create_view(&placed, definition),
                None => ddl.create_view(create, definition),
            }
        }
        Statement::Type(statement) => ddl.change_types(statement),
        Statement::Function(statement) => ddl.change_functions(statement),
        Statement::Trigger(statement) => ddl.change_triggers(statement),
        Statement::Policy(statement) => {
            ddl.change_policies(statement, (&SystemNames::of(system), constants))
        }
        Statement::CreateSequence(create) => ddl.create_sequence(create),
        Statement::AlterSequence(alter) => ddl.alter_sequence(alter),
        Statement::CreateIndex(create) => ddl.create_index(create),
        Statement::AlterOptions(alter) => ddl.alter_options(alter),
        _ => unreachable!("the caller passes DDL statements only"),
    }
}

/// Creates a schema and its elements: unqualified names are resolved in it first.
fn define_schema(
    ddl: &mut Ddl<'_>,
    create: &ast::CreateSchema,
    (system, constants): (&Arc<Engine>, &SessionConstants),
) -> Result<()> {
    let schema = ddl.create_schema(create)?;
    if create.elements.is_empty() {
        return Ok(());
    }
    let path = Arc::new(constants.search_path().with_first(&schema));
    let mut within = constants.clone();
    within.set_search_path(Arc::clone(&path));
    let outside = std::mem::replace(&mut ddl.path, path);
    let roles = ddl.become_owner(create)?;
    create.elements.iter().try_for_each(|element| define(ddl, element, (system, &within)))?;
    (ddl.path, ddl.roles) = (outside, roles);
    Ok(())
}

/// Returns whether a utility statement runs a query that may read replicas. Others, such as those
/// that check or index the rows of a table, must not miss any.
fn may_read_replicas(statement: &Statement) -> bool {
    match statement {
        Statement::Explain(explain) => !matches!(explain.statement, Statement::CreateTableAs(_)),
        Statement::Copy(_)
        | Statement::Execute { .. }
        | Statement::Do(_)
        | Statement::DeclareCursor(_)
        | Statement::Fetch { .. } => true,
        _ => false,
    }
}

/// Returns whether a statement only changes the catalog. ALTER TABLE may do more.
fn is_ddl(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::CreateTable(_)
            | Statement::CreateSchema(_)
            | Statement::Database(_)
            | Statement::Extension(_)
            | Statement::Role(_)
            | Statement::Grant(_)
            | Statement::Owned(_)
            | Statement::DropNothing(_)
            | Statement::Drop(_)
            | Statement::Rename(_)
            | Statement::Truncate(_)
            | Statement::Comment(_)
            | Statement::CreateView(_)
            | Statement::CreateSequence(_)
            | Statement::AlterSequence(_)
            | Statement::Type(_)
            | Statement::Function(_)
            | Statement::Trigger(_)
            | Statement::Policy(_)
            | Statement::CreateIndex(_)
            | Statement::AlterOptions(_)
    )
}

fn savepoint_word(statement: &Statement) -> &'static str {
    match statement {
        Statement::Savepoint(_) => "SAVEPOINT",
        Statement::Release(_) => "RELEASE SAVEPOINT",
        _ => "ROLLBACK TO SAVEPOINT",
    }
}
