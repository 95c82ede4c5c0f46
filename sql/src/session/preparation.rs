//! Preparation of statements: parsing and planning of client texts under `statement_timeout`.
//! Limits of a session.

use std::sync::Arc;

use types::SqlType;

use crate::ast::Statement;
use crate::error::{Error, Result};
use crate::logical::ParameterTypes;
use crate::parser::ParsedStatement;
use crate::rows::with_cancel_reason;
use crate::session::plan_cache::PlanCacheKey;
use crate::session::prepared::{self, CachedStatement, PreparedKind, PreparedStatement};
use crate::session::{ParsedRequest, Session, TransactionStatus, parse};
use crate::session_objects::ExecutionCounter;

impl Session {
    /// Splits SQL text from the client into its statements, and starts the statement timeout.
    ///
    /// # Errors
    ///
    /// 42601 and other syntax errors with a position; 57014.
    pub fn parse(&mut self, sql: &str) -> Result<Vec<ParsedRequest>> {
        self.start_clock();
        self.is_timed = true;
        let _scope = self.stop.interrupt().enter_planning();
        parse(sql).map_err(|error| self.ended(error))
    }

    /// Starts a statement's clock: clears its cancel flag and starts its timeout.
    pub(super) fn start_clock(&self) {
        self.stop.begin_statement();
        if let Some(timeout) = self.settings.parsed().statement_timeout {
            self.engine.timer.stop_after(timeout, &self.stop);
        }
    }

    /// Returns the error of a text that was not parsed; if parsing was cancelled, the reason.
    fn ended(&self, error: Error) -> Error {
        let error = match self.stop.interrupt().check() {
            Ok(()) => error,
            Err(stopped) => Error::from(stopped),
        };
        with_cancel_reason(error, &self.stop)
    }

    /// Marks the requests of the client as answered: the next statement starts another clock.
    pub fn stop_clock(&mut self) {
        self.is_timed = false;
    }

    /// Checks that the role of a new session has no more sessions than its CONNECTION LIMIT allows.
    ///
    /// # Errors
    ///
    /// 53300 if it has more. A superuser has no limit.
    pub fn check_connection_limit(&self) -> Result<()> {
        let (catalog, number) = (self.catalog(), self.activity.role.number);
        let Some(role) = catalog.role(number) else { return Ok(()) };
        let Some(limit) = role.connection_limit else { return Ok(()) };
        if catalog.is_superuser(number) || self.engine.sessions.count_of(number) <= limit as usize {
            return Ok(());
        }
        bail!(TOO_MANY_CONNECTIONS: "too many connections for role \"{}\"", role.name)
    }

    /// Returns the idle timeout and its error; `None`: no limit.
    pub fn idle_limit(&self) -> Option<(std::time::Duration, Error)> {
        let parsed = self.settings.parsed();
        let (limit, code, what) = match self.transaction_status() {
            TransactionStatus::Idle => (parsed.idle_session_timeout?, "57P05", "idle-session"),
            TransactionStatus::InBlock | TransactionStatus::Failed => {
                let limit = parsed.idle_in_transaction_session_timeout?;
                (limit, "25P03", "idle-in-transaction")
            }
        };
        Some((limit, Error::new(code, format!("terminating connection due to {what} timeout"))))
    }

    /// Sets a callback for the termination by another session: [`Session::is_terminated`].
    pub fn on_terminate(&self, wake: impl Fn() + Send + Sync + 'static) {
        self.stop.on_terminate(Box::new(wake));
    }

    /// Returns whether another session has terminated this one: no more statements are executed.
    pub fn is_terminated(&self) -> bool {
        self.stop.is_terminated()
    }

    /// Binds and plans a statement. `types`: the client's parameter types, `None` where it leaves
    /// them open; may be shorter than the list of parameters.
    ///
    /// # Errors
    ///
    /// Errors of the statement, with their positions in the text.
    pub fn prepare(
        &mut self,
        parsed: &ParsedRequest,
        types: &[Option<SqlType>],
    ) -> Result<Arc<PreparedStatement>> {
        let _scope = self.stop.interrupt().enter_planning();
        self.plan_statement(parsed, types).map_err(|error| with_cancel_reason(error, &self.stop))
    }

    fn plan_statement(
        &mut self,
        parsed: &ParsedRequest,
        types: &[Option<SqlType>],
    ) -> Result<Arc<PreparedStatement>> {
        let statement = &parsed.statement.statement;
        self.check_memory()?;
        self.take_over_settings()?;
        self.check_accepted(statement)?;
        self.follow_search_path();
        let parsed = Arc::clone(&parsed.statement);
        if !parsed.databases.is_empty() {
            let catalog = self.catalog();
            let present = catalog.current_database();
            parsed.databases.iter().try_for_each(|database| database.check(present))?;
        }
        if prepared::is_planned(statement) {
            let statement = self.with_planning(|planning| {
                let given: Option<Vec<SqlType>> = types.iter().cloned().collect();
                let (text, path) = (parsed.text.as_str(), planning.state.search_path);
                let known = given.and_then(|types| {
                    planning.plans.find(&PlanCacheKey::of_statement(text, &types, path))
                });
                // Errors of a statement have positions in its script.
                let known = known.filter(|known: &Arc<CachedStatement>| {
                    known.text.offset() == parsed.text.offset() && known.planned(planning).is_ok()
                });
                match known {
                    Some(known) => Ok(known),
                    None => CachedStatement::new(planning, &parsed, types).map(Arc::new),
                }
            })?;
            return Ok(Arc::new(PreparedStatement::of(statement)));
        }
        let columns = match statement {
            Statement::Execute { name, .. } => self.statement(&name.value)?.columns.clone(),
            Statement::Fetch { cursor, moves: false, .. } => {
                Some(self.cursors.columns(&cursor.value)?)
            }
            _ => prepared::utility_columns(statement).map(Arc::from),
        };
        let parameter_types = self.utility_parameters(&parsed, types)?;
        let (text, runs) = (parsed.text.clone(), ExecutionCounter::default());
        let kind = PreparedKind::Utility(parsed);
        Ok(Arc::new(PreparedStatement { parameter_types, columns, text, kind, runs }))
    }

    /// Returns the parameter types of the query within a utility statement.
    fn utility_parameters(
        &mut self,
        parsed: &ParsedStatement,
        types: &[Option<SqlType>],
    ) -> Result<ParameterTypes> {
        if !parsed.text.as_str().contains('$') {
            return Ok(Vec::new());
        }
        let mut next = &parsed.statement;
        let planned = loop {
            next = match next {
                Statement::Explain(explain) => &explain.statement,
                Statement::CreateTableAs(create) => &create.query,
                Statement::DeclareCursor(cursor) => {
                    break self
                        .with_planning(|planning| planning.plan_cursor(cursor, types, None))?;
                }
                query if prepared::is_planned(query) => {
                    break self.with_planning(|planning| planning.plan(query, types))?;
                }
                _ => return Ok(Vec::new()),
            };
        };
        Ok(planned.parameter_types)
    }
}
