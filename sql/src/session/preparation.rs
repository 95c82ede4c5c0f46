//! Preparation of statements: parsing and planning of client texts under `statement_timeout`.

use std::sync::Arc;

use types::SqlType;

use crate::ast::Statement;
use crate::error::{Error, Result};
use crate::logical::ParameterTypes;
use crate::parser::ParsedStatement;
use crate::rows::with_cancel_reason;
use crate::session::plan_cache::PlanCacheKey;
use crate::session::prepared::{self, CachedStatement, PreparedKind, PreparedStatement};
use crate::session::{ParsedRequest, Session, parse};
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
