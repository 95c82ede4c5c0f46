//! SQL statements in PL/pgSQL: static SQL, EXECUTE, CALL, COMMIT and ROLLBACK, and RETURN
//! statements.
//!
//! Planned statements are started by the evaluation module, utility statements by the session;
//! this module assigns their rows to the targets of INTO, sets FOUND and ROW_COUNT, and adds the
//! statement to the CONTEXT of errors.

use std::sync::Arc;

use types::datum::Nested;
use types::{Datum, SqlType};

use crate::ast::Statement;
use crate::binder::BodyTarget;
use crate::error::{Error, Result, SourceLocation, sqlstate};
use crate::parser::{self, ParsedStatement};
use crate::plpgsql::body_tree::{BodyQuery, CallTargets, DynamicQuery, IntoClause, SqlFragment};
use crate::session::plpgsql::BodyExecution;
use crate::session::plpgsql::evaluation::{StatementOutcome, is_planned, within};
use crate::session::statement_executor::SnapshotPolicy;
use crate::session::{Execution, Session};

impl BodyExecution<'_> {
    /// Executes an SQL statement of the body.
    pub(super) fn sql(&mut self, fragment: &SqlFragment, into: Option<&IntoClause>) -> Result<()> {
        let result = self.run_sql(fragment, into);
        result.map_err(|error| self.of_sql(error, fragment))
    }

    fn of_sql(&self, error: Error, fragment: &SqlFragment) -> Error {
        match is_own(&error) || is_named(&error, &fragment.text) {
            true => error,
            false => self.of_fragment(error, fragment),
        }
    }

    fn run_sql(&mut self, fragment: &SqlFragment, into: Option<&IntoClause>) -> Result<()> {
        let statement = &fragment.statement.statement;
        let mut outcome = match is_planned(statement) {
            true => self.start(fragment, BodyTarget::Any)?,
            false => self.utility(&fragment.statement)?,
        };
        let is_query = matches!(statement, Statement::Query(_));
        if into.is_none() && is_query {
            let message = "query has no destination for result data";
            let hint = "If you want to discard the results of a SELECT, use PERFORM instead.";
            return Err(own(sqlstate::SYNTAX_ERROR, message).with_hint(hint));
        }
        if into.is_none() && outcome.changes && outcome.rows.is_some() {
            let message = "query has no destination for result data";
            return Err(own(sqlstate::SYNTAX_ERROR, message));
        }
        self.finish(&mut outcome, into, is_planned(statement))
    }

    /// Reads the rows of a statement into its targets, and sets ROW_COUNT and FOUND.
    fn finish(
        &mut self,
        outcome: &mut StatementOutcome,
        into: Option<&IntoClause>,
        sets_found: bool,
    ) -> Result<()> {
        let count = match into {
            Some(into) => self.take_into(outcome, into)?,
            None => outcome.exhaust()?,
        };
        self.renew();
        self.row_count = count;
        if sets_found || into.is_some() {
            self.set_found(count > 0);
        }
        Ok(())
    }

    /// Assigns the row of a statement; returns the number of rows.
    fn take_into(&mut self, outcome: &mut StatementOutcome, into: &IntoClause) -> Result<u64> {
        if outcome.rows.is_none() {
            let message = "INTO used with a command that cannot return data";
            return Err(own(sqlstate::SYNTAX_ERROR, message));
        }
        let columns = outcome.columns();
        let row = outcome.next_row()?;
        let is_one = into.strict || (outcome.changes && !outcome.is_dynamic);
        if row.is_none() && into.strict {
            return Err(own(sqlstate::NO_DATA_FOUND, "query returned no rows"));
        }
        if is_one && outcome.next_row()?.is_some() {
            let message = "query returned more than one row";
            let hint = "Make sure the query returns a single row, or use LIMIT 1.";
            return Err(own(sqlstate::TOO_MANY_ROWS, message).with_hint(hint));
        }
        let count = match outcome.changes {
            true => outcome.row_count,
            false => u64::from(row.is_some()),
        };
        self.renew();
        self.assign_row(into, &columns, row)?;
        Ok(count)
    }

    pub(super) fn perform(&mut self, fragment: &SqlFragment) -> Result<()> {
        let run = |run: &mut BodyExecution<'_>| {
            let mut outcome = run.start(fragment, BodyTarget::Any)?;
            run.finish(&mut outcome, None, true)
        };
        let result = run(self);
        result.map_err(|error| self.of_sql(error, fragment))
    }

    /// Executes a utility statement.
    fn utility(&mut self, parsed: &Arc<ParsedStatement>) -> Result<StatementOutcome> {
        self.session.check_in_body(&parsed.statement)?;
        self.session.send_notices()?;
        let noticed = self.session.notices.lock().len();
        let execution = self.session.run_within(parsed)?;
        self.reset();
        let context = format!("SQL statement \"{}\"\n{}", parsed.text, self.context_here());
        for notice in self.session.notices.lock().iter_mut().skip(noticed) {
            notice.error.context.get_or_insert_with(|| context.clone());
        }
        Ok(match execution {
            Execution::Rows(rows) => StatementOutcome {
                rows: Some(rows),
                row_count: 0,
                changes: false,
                is_dynamic: false,
            },
            Execution::Done(completion) => {
                let count = completion.tag.rsplit(' ').next().and_then(|word| word.parse().ok());
                StatementOutcome { row_count: count.unwrap_or(0), ..StatementOutcome::done() }
            }
            Execution::CopyIn(_) | Execution::CopyOut(..) => {
                let message = "cannot COPY to/from client in PL/pgSQL";
                return Err(own(sqlstate::FEATURE_NOT_SUPPORTED, message));
            }
        })
    }

    /// Executes EXECUTE.
    pub(super) fn execute_text(
        &mut self,
        dynamic: &DynamicQuery,
        into: Option<&IntoClause>,
    ) -> Result<()> {
        let (text, parameters) = self.dynamic(dynamic)?;
        let found = self.values[self.compiled.body.found].clone();
        let run = |run: &mut BodyExecution<'_>| {
            let statements = parser::parse_statements(&text)?;
            let Some((last, others)) = statements.split_last() else { return Ok(()) };
            for statement in others {
                let mut outcome = run.dynamic_outcome(statement, &parameters)?;
                run.finish(&mut outcome, None, false)?;
            }
            let mut outcome = run.dynamic_outcome(last, &parameters)?;
            outcome.is_dynamic = true;
            run.finish(&mut outcome, into, false)
        };
        let result = run(self);
        // EXECUTE does not change FOUND.
        self.values[self.compiled.body.found] = found;
        result.map_err(|error| of_text(error, &text))
    }

    /// Returns the text of EXECUTE, and the values of USING with their types.
    pub(super) fn dynamic(
        &mut self,
        dynamic: &DynamicQuery,
    ) -> Result<(String, Vec<(Datum, SqlType)>)> {
        let (text, sql_type) = self.value(&dynamic.text, BodyTarget::Any)?;
        if text.is_null() {
            bail!(NULL_VALUE_NOT_ALLOWED: "query string argument of EXECUTE is null");
        }
        let text = self.written(&text, &sql_type)?;
        let values = dynamic.using.iter().map(|value| self.value(value, BodyTarget::Any));
        let values = values.collect::<Result<Vec<(Datum, SqlType)>>>()?;
        Ok((text, values))
    }

    /// Starts a statement of EXECUTE.
    fn dynamic_outcome(
        &mut self,
        parsed: &ParsedStatement,
        parameters: &[(Datum, SqlType)],
    ) -> Result<StatementOutcome> {
        let statement = &parsed.statement;
        if let Statement::CreateTableAs(create) = statement
            && create.made == crate::ast::CreateAsKind::Into
        {
            bail!(FEATURE_NOT_SUPPORTED: "EXECUTE of SELECT ... INTO is not implemented";
                hint "You might want to use EXECUTE ... INTO or EXECUTE CREATE TABLE ... AS instead.");
        }
        if !is_planned(statement) {
            return self.utility(&Arc::new(parsed.clone()));
        }
        let types: Vec<Option<SqlType>> =
            parameters.iter().map(|(_, of)| Some(of.clone())).collect();
        loop {
            self.renew();
            let planned =
                self.session.with_planning(|planning| planning.plan(statement, &types))?;
            if planned.parameter_types.len() > parameters.len() {
                let number = planned.parameter_types.len();
                bail!(UNDEFINED_PARAMETER: "there is no parameter ${number}");
            }
            if !self.session.begin_embedded(&planned.planned)? {
                continue;
            }
            let values = parameters.iter().map(|(value, _)| value.clone()).collect();
            let mut values: Vec<Datum> = values;
            planned.planned.constants.check(&values)?;
            values.resize(planned.planned.parameter_count.max(values.len()), Datum::Null);
            self.session.bind_current_row(&planned.planned, &mut values)?;
            return self.session.run_embedded(&planned, values, statement.tag());
        }
    }

    /// Starts a query that returns rows.
    pub(super) fn open_query(&mut self, query: &BodyQuery) -> Result<StatementOutcome> {
        match query {
            BodyQuery::Fixed(fragment) => {
                let outcome = self.open_fixed(fragment);
                outcome.map_err(|error| self.of_sql(error, fragment))
            }
            BodyQuery::Dynamic(dynamic) => {
                let (text, parameters) = self.dynamic(dynamic)?;
                let outcome = self.open_text(&text, &parameters);
                outcome.map_err(|error| of_text(error, &text))
            }
        }
    }

    fn open_fixed(&mut self, fragment: &SqlFragment) -> Result<StatementOutcome> {
        let statement = &fragment.statement.statement;
        let outcome = match is_planned(statement) {
            true => self.start(fragment, BodyTarget::Any)?,
            false => self.utility(&fragment.statement)?,
        };
        with_rows(outcome, statement)
    }

    fn open_text(
        &mut self,
        text: &str,
        parameters: &[(Datum, SqlType)],
    ) -> Result<StatementOutcome> {
        let mut statements = parser::parse_statements(text)?;
        let (Some(statement), true) = (statements.pop(), statements.is_empty()) else {
            bail!(INVALID_CURSOR_DEFINITION: "cannot open multi-query plan as cursor");
        };
        let outcome = self.dynamic_outcome(&statement, parameters)?;
        with_rows(outcome, &statement.statement)
    }

    /// Executes CALL.
    pub(super) fn call_procedure(
        &mut self,
        fragment: &SqlFragment,
        targets: &CallTargets,
    ) -> Result<()> {
        let Statement::Call(call) = &fragment.statement.statement else {
            return self.sql(fragment, None);
        };
        let result = self.run_call_statement(fragment, call, targets);
        result.map_err(|error| self.of_sql(error, fragment))
    }

    fn run_call_statement(
        &mut self,
        fragment: &SqlFragment,
        call: &crate::ast::FunctionCall,
        targets: &CallTargets,
    ) -> Result<()> {
        let given_back = self.session.given_back(call, targets.len());
        let mut outcome = match self.call_in_session(fragment)? {
            Some(called) => called,
            None => self.start(fragment, BodyTarget::Any)?,
        };
        let columns = outcome.columns();
        let row = outcome.next_row()?;
        outcome.exhaust()?;
        self.renew();
        let Some(row) = row else { return Ok(()) };
        for (value, (column, (at, name))) in row.into_iter().zip(columns.iter().zip(given_back)) {
            let Some(Some(target)) = targets.get(at) else {
                let message = format!(
                    "procedure parameter \"{name}\" is an output parameter but corresponding \
                     argument is not writable"
                );
                return Err(own(sqlstate::SYNTAX_ERROR, &message));
            };
            self.assign(target, value, &column.sql_type)?;
        }
        Ok(())
    }

    /// Executes COMMIT or ROLLBACK, and begins another transaction.
    pub(super) fn end_transaction(&mut self, commits: bool, chain: bool) -> Result<()> {
        let is_session = matches!(self.session.snapshots, SnapshotPolicy::Session);
        let Some(open) = self.session.open.as_ref().filter(|_| is_session) else {
            bail!(INVALID_TRANSACTION_TERMINATION: "invalid transaction termination");
        };
        if open.in_block || !self.session.ends_transactions {
            bail!(INVALID_TRANSACTION_TERMINATION: "invalid transaction termination");
        }
        if open.savepoint_count() > 0 {
            let verb = if commits { "commit" } else { "roll back" };
            bail!(INVALID_TRANSACTION_TERMINATION: "cannot {verb} while a subtransaction is active");
        }
        let modes = open.modes;
        if commits {
            let ticket = self.session.commit()?;
            self.session.await_also(ticket);
        } else {
            self.session.rollback();
        }
        let modes = if chain { modes } else { self.session.settings.parsed().default_modes };
        // The next statement takes the snapshot: SET TRANSACTION may come before it.
        self.session.worker.begin_with(modes)?;
        self.reset();
        Ok(())
    }

    // ---- results ----

    /// Stores the value of RETURN.
    pub(super) fn set_returned(&mut self, value: Option<&SqlFragment>) -> Result<()> {
        if let Some(value) = value {
            let compiled = Arc::clone(&self.compiled);
            let target = compiled.result.target();
            self.returned = Some(self.value(value, target)?);
        }
        Ok(())
    }

    pub(super) fn return_next(&mut self, value: Option<&SqlFragment>) -> Result<()> {
        let row = match value {
            None => self.out_row()?,
            Some(value) => {
                let compiled = Arc::clone(&self.compiled);
                let target = compiled.result.target();
                let (value, of) = self.value(value, target)?;
                self.row_of_value(value, &of)?
            }
        };
        self.add_row(row)
    }

    pub(super) fn return_query(&mut self, query: &BodyQuery) -> Result<()> {
        let mut outcome = self.open_query(query)?;
        let types: Vec<SqlType> =
            outcome.columns().iter().map(|one| one.sql_type.clone()).collect();
        self.check_result_columns(&types).map_err(|error| match query {
            BodyQuery::Fixed(fragment) => self.of_fragment(error, fragment),
            BodyQuery::Dynamic(_) => error,
        })?;
        let mut count = 0;
        if let Some(rows) = &mut outcome.rows {
            while let Some(batch) = rows.next_batch(usize::MAX)? {
                count += batch.row_count as u64;
                for number in 0..batch.row_count {
                    let row = self.row_of_columns(batch.row(number), &types)?;
                    self.add_row(row)?;
                }
            }
        }
        self.renew();
        self.row_count = count;
        self.set_found(count > 0);
        Ok(())
    }
}

fn with_rows(outcome: StatementOutcome, statement: &Statement) -> Result<StatementOutcome> {
    if outcome.rows.is_some() {
        return Ok(outcome);
    }
    bail!(INVALID_CURSOR_DEFINITION: "cannot open {} query as cursor", statement.tag())
}

/// Returns the fields of a composite value.
pub(super) fn fields_of(value: &Datum) -> Option<(Vec<SqlType>, Vec<Datum>)> {
    let Datum::Nested(Nested::Record(record)) = value else { return None };
    let types = record.fields.iter().map(|(_, base)| SqlType::from(base)).collect();
    Some((types, record.values.clone()))
}

/// Returns whether a statement only changes settings and reads nothing.
fn is_setting(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Set(_) | Statement::SetTransaction(_) | Statement::SetSnapshot(_)
    )
}

/// Source location of errors that the body raises about a statement.
static RAISED_AT: SourceLocation =
    SourceLocation { file: file!(), line: line!(), routine: "exec_stmt_execsql" };

/// Returns an error that the body, not the statement, raises.
fn own(code: &'static str, message: &str) -> Error {
    Error { raised_at: Some(&RAISED_AT), ..Error::new(code, message) }
}

fn is_own(error: &Error) -> bool {
    error.raised_at == Some(&RAISED_AT) && error.context.is_none()
}

/// Adds the text of EXECUTE to the error of a statement.
fn of_text(error: Error, text: &str) -> Error {
    if is_own(&error) || is_named(&error, text) {
        return error;
    }
    match error.position {
        Some(position) => {
            let internal = Some(Box::new((position, text.to_owned())));
            Error { position: None, internal, ..error }
        }
        None => within(error, "SQL statement", text),
    }
}

/// Returns whether an error already names a statement.
fn is_named(error: &Error, text: &str) -> bool {
    let in_context = error.context.as_ref().is_some_and(|context| {
        context.lines().last().is_some_and(|last| last.ends_with(&format!("\"{text}\"")))
    });
    in_context || error.internal.as_ref().is_some_and(|internal| internal.1 == *text)
}

impl Session {
    /// Rejects statements that are not allowed in a body.
    fn check_in_body(&self, statement: &Statement) -> Result<()> {
        let refused = match statement {
            Statement::Begin { .. }
            | Statement::Commit { .. }
            | Statement::Rollback { .. }
            | Statement::Savepoint(_)
            | Statement::RollbackTo(_)
            | Statement::Release(_)
            | Statement::PrepareTransaction(_)
            | Statement::CommitPrepared(_)
            | Statement::RollbackPrepared(_) => {
                let message = "unsupported transaction command in PL/pgSQL";
                return Err(own(sqlstate::FEATURE_NOT_SUPPORTED, message));
            }
            Statement::Copy(_) => {
                let message = "cannot COPY to/from client in PL/pgSQL";
                return Err(own(sqlstate::FEATURE_NOT_SUPPORTED, message));
            }
            Statement::CreateIndex(create) => create.concurrently,
            Statement::Drop(drop) => drop.concurrently,
            Statement::Vacuum { .. } | Statement::DiscardAll => true,
            _ => false,
        };
        if refused {
            bail!(ACTIVE_SQL_TRANSACTION: "{} cannot be executed from a function", statement.tag());
        }
        Ok(())
    }

    /// Executes a utility statement within another statement.
    fn run_within(&mut self, parsed: &Arc<ParsedStatement>) -> Result<Execution> {
        self.follow_search_path();
        if !is_setting(&parsed.statement) {
            self.begin_request();
        }
        self.run_utility(parsed)
    }

    /// Returns the CALL arguments that receive OUT values, with the names of the parameters.
    fn given_back(&self, call: &crate::ast::FunctionCall, count: usize) -> Vec<(usize, String)> {
        use crate::catalog::function::DeclaredMode;
        let schema = call.name.schema.as_ref().map(|schema| schema.value.as_str());
        let path = self.constants.search_path();
        let named = self.catalog().functions_named(schema, &call.name.name.value, path);
        let mut procedures = named.iter().filter(|one| one.record.is_procedure());
        let found = procedures.find(|one| one.record.declared().len() >= count);
        let Some(found) = found else { return Vec::new() };
        let declared = found.record.declared();
        let outs = declared.iter().enumerate();
        let outs =
            outs.filter(|(_, one)| matches!(one.mode, DeclaredMode::Out | DeclaredMode::InOut));
        outs.map(|(at, one)| {
            let named = call.arguments.iter().position(|argument| {
                argument.name.as_ref().is_some_and(|name| name.value == one.name)
            });
            (named.unwrap_or(at), one.name.to_owned())
        })
        .collect()
    }
}
