//! PL/pgSQL function and procedure calls.
//!
//! A function that a statement calls is executed by an inner session, which shares the
//! transaction, cursors, notices and locks of the session and has its own settings; the session
//! takes these over at the end of the statement. A procedure of a CALL statement is executed by
//! the session itself, and may end the transaction.
//!
//! Source: PostgreSQL's `plpgsql_exec_function` (pl_exec.c).

use std::sync::Arc;

use ahash::{AHashMap, AHashSet};
use types::expr::Routine;
use types::{DataType, Datum, SqlType};

use crate::ast::Language;
use crate::catalog::function::{DeclaredMode, Function};
use crate::ddl::parse_body;
use crate::error::{Error, Result};
use crate::session::Session;
use crate::session::cursors::Cursors;
use crate::session::plan_cache::{CachedPlan, PlanCacheKey};
use crate::session::plpgsql::compiled::CompiledBody;
use crate::session::plpgsql::results::ResultShape;
use crate::session::plpgsql::statements::fields_of;
use crate::session::plpgsql::{BodyExecution, LastCall};
use crate::session::prepared::{BoundParameters, StatementPlan};
use crate::session::routine_calls::{DEPTH_MAX, RED_ZONE_BYTES, STACK_BYTES, too_deep};
use crate::session::statement_executor::{SnapshotPolicy, StatementExecutor};

impl Session {
    /// Returns an inner session, which executes bodies within a statement.
    pub(in crate::session) fn inner(worker: StatementExecutor) -> Session {
        let around = &worker.environment;
        let open = Arc::clone(&around.open_cursors);
        let cursors = Cursors::of_function(open);
        Session {
            worker,
            statements: AHashMap::new(),
            empty_statements: AHashSet::new(),
            cursors,
            bound: BoundParameters::default(),
            is_timed: false,
            reported: Vec::new(),
            ticket: None,
            ends_transactions: false,
            body_depth: 0,
            last_call: LastCall::default(),
        }
    }

    /// Returns whether it is an inner session.
    pub(in crate::session) fn is_inner(&self) -> bool {
        !matches!(self.snapshots, SnapshotPolicy::Session)
    }

    /// Executes a call and returns its rows: at most one if the function does not return a set.
    pub(in crate::session) fn call_body(
        &mut self,
        function: &Arc<Function>,
        routine: &Routine,
        arguments: Vec<Datum>,
    ) -> Result<Vec<Vec<Datum>>> {
        if function.is_trigger() && routine.parameters.is_empty() {
            let name = &function.record.name;
            let context = format!("compilation of PL/pgSQL function \"{name}\" near line 1");
            let error =
                err!(FEATURE_NOT_SUPPORTED: "trigger functions can only be called as triggers");
            return Err(Error { context: Some(context), ..error });
        }
        let compiled = self.compiled_function(function, routine)?;
        self.in_running_body(|session| {
            let mut run = BodyExecution::new(session, Arc::clone(&compiled));
            let outs = &compiled.result.outs;
            let arguments = match outs.is_empty() {
                true => arguments,
                false => with_outs(function, arguments),
            };
            run.run(arguments)?;
            if function.is_trigger() {
                let row = run.trigger_row(routine).map_err(|error| run.placed(error))?;
                run.leave_world();
                return Ok(vec![vec![row]]);
            }
            if function.record.is_procedure() && outs.is_empty() {
                return Ok(Vec::new());
            }
            let rows = run.result_rows(function.is_set()).map_err(|error| run.placed(error))?;
            run.leave_world();
            Ok(rows)
        })
    }

    /// Returns the compiled body of a function.
    fn compiled_function(
        &mut self,
        function: &Function,
        routine: &Routine,
    ) -> Result<Arc<CompiledBody>> {
        let catalog = self.catalog();
        if let Some((of, body)) = &self.last_call.body
            && *of == *routine
            && body.is_current(&self.planning_state(catalog.version, None))
        {
            self.plan_cache.touch(&body.usage);
            return Ok(Arc::clone(body));
        }
        let path = self.constants.search_path();
        let body = self.cached_plan(PlanCacheKey::of_call(routine, path), |_| {
            let more = routine.fields.iter().filter(|_| function.is_trigger());
            let more = more.flat_map(|fields| fields.iter().map(|(name, _)| name.to_string()));
            let more: Vec<String> = more.collect();
            let body = parse_body(function, (&function.record.body, None), &more)?;
            let label = catalog.display_function(function, path);
            let mut compiled =
                self.compiled_body(body, &label, &parameter_types(function, routine))?;
            compiled.result = result_of(function, routine);
            Ok(compiled)
        })?;
        self.last_call.body = Some((routine.clone(), Arc::clone(&body)));
        Ok(body)
    }
}

impl Session {
    /// Executes CALL of a PL/pgSQL procedure in the session itself and returns its rows; `None`
    /// for any other procedure.
    pub(in crate::session) fn call_in_session(
        &mut self,
        planned: &StatementPlan,
        parameters: Vec<Datum>,
    ) -> Result<Option<Vec<Vec<Datum>>>> {
        let Some((routine, arguments)) = planned.plan.called().filter(|_| !self.is_inner()) else {
            return Ok(None);
        };
        let catalog = self.catalog();
        let function = catalog.function(routine.number);
        // A procedure with SET clauses or SECURITY DEFINER cannot end the transaction and is
        // executed like a function.
        let is_own = |one: &&Arc<Function>| {
            one.record.language == Language::PlPgSql && !one.record.has_own_environment()
        };
        let Some(function) = function.filter(is_own) else {
            return Ok(None);
        };
        if self.body_depth >= DEPTH_MAX {
            return Err(too_deep());
        }
        self.begin_request();
        let Some(open) = &self.open else { return Ok(None) };
        let eval = self.eval_context(open, parameters);
        let values = arguments.iter().map(|argument| argument.eval_row(&[], &eval));
        let values = values.collect::<types::Result<Vec<Datum>>>()?;
        // A nested CALL may end the transaction if the outer one may.
        let may_end = self.body_depth == 0 || self.ends_transactions;
        let before = std::mem::replace(&mut self.ends_transactions, may_end);
        let call = || self.call_body(function, routine, values);
        let rows = stacker::maybe_grow(RED_ZONE_BYTES, STACK_BYTES, call);
        self.ends_transactions = before;
        rows.map(Some)
    }
}

/// Returns the values of all parameters, with NULL for OUT parameters.
fn with_outs(function: &Function, arguments: Vec<Datum>) -> Vec<Datum> {
    let mut arguments = arguments.into_iter();
    let taken = function.record.declared().into_iter().map(|one| match one.mode {
        DeclaredMode::Out | DeclaredMode::Table => Datum::Null,
        DeclaredMode::In | DeclaredMode::InOut | DeclaredMode::Variadic => {
            arguments.next().unwrap_or(Datum::Null)
        }
    });
    taken.collect()
}

/// Returns the parameter types of a body in a call.
fn parameter_types(function: &Function, routine: &Routine) -> Vec<SqlType> {
    if function.is_trigger() {
        return routine.parameters.iter().map(SqlType::from).collect();
    }
    let mut taken = function.parameters.iter().zip(&routine.parameters);
    let mut given = columns_of(function, routine).into_iter();
    let of = |declared: &SqlType, base: &DataType| {
        if declared.base == *base { declared.clone() } else { SqlType::from(base) }
    };
    let declared = function.record.declared();
    let types = declared.iter().map(|one| match one.mode {
        DeclaredMode::In | DeclaredMode::Variadic => {
            taken.next().map(|(declared, base)| of(declared, base))
        }
        DeclaredMode::InOut => {
            given.next();
            taken.next().map(|(declared, base)| of(declared, base))
        }
        DeclaredMode::Out | DeclaredMode::Table => given.next().map(|(_, of)| of),
    });
    types.map(|of| of.unwrap_or(DataType::Text.into())).collect()
}

/// Returns the result columns of a function in a call.
fn columns_of(function: &Function, routine: &Routine) -> Vec<(String, SqlType)> {
    let declared = |at: usize, base: DataType| {
        let declared = function.columns.get(at).map(|(_, of)| of.clone());
        declared.filter(|of| of.base == base).unwrap_or_else(|| base.into())
    };
    match &routine.fields {
        Some(fields) => {
            let fields = fields.iter().enumerate();
            fields
                .map(|(at, (name, base))| (name.to_string(), declared(at, base.clone())))
                .collect()
        }
        None => vec![(String::new(), declared(0, routine.result.clone()))],
    }
}

/// Returns the result type of a call.
fn result_of(function: &Function, routine: &Routine) -> ResultShape {
    if function.is_trigger() {
        return ResultShape::default();
    }
    let columns = columns_of(function, routine);
    let declared = function.record.declared();
    let outs = declared.iter().enumerate();
    let outs =
        outs.filter(|(_, one)| !matches!(one.mode, DeclaredMode::In | DeclaredMode::Variadic));
    let outs: Vec<usize> = outs.map(|(at, _)| at).collect();
    let value = match (&routine.fields, columns.as_slice()) {
        (None, [(_, of)]) => Some(of.clone()),
        _ => None,
    };
    ResultShape { value, columns, outs }
}

impl BodyExecution<'_> {
    /// Returns the row that the body of a trigger function returns, of the row type of its table;
    /// NULL for a statement trigger.
    fn trigger_row(&mut self, routine: &Routine) -> Result<Datum> {
        let Some((value, of)) = self.returned.take() else {
            self.at = super::BodyPosition { line: 0, what: "", is_during: true };
            bail!(FUNCTION_EXECUTED_NO_RETURN_STATEMENT: "control reached end of trigger procedure without RETURN")
        };
        let is_row = routine.result == DataType::Trigger;
        let to = routine.parameters.first().map(SqlType::from);
        let Some(to) = to.filter(|_| !value.is_null()) else { return Ok(Datum::Null) };
        if fields_of(&value).is_some() {
            if !is_row {
                return Ok(Datum::Null);
            }
            let what = "during function exit";
            self.at = super::BodyPosition { line: 0, what, is_during: true };
        }
        let message = "returned row structure does not match the structure of the triggering table";
        self.as_row(value, &of, &to, message)
    }

    /// Returns the result rows of the body.
    fn result_rows(&mut self, is_set: bool) -> Result<Vec<Vec<Datum>>> {
        if is_set {
            return Ok(std::mem::take(&mut self.rows));
        }
        let compiled = Arc::clone(&self.compiled);
        let result = &compiled.result;
        if !result.outs.is_empty() {
            return Ok(vec![self.out_row()?]);
        }
        if result.value.as_ref().is_none_or(|of| of.base == DataType::Void)
            && result.columns.len() <= 1
        {
            // Value of type void.
            return Ok(vec![vec![Datum::text("")]]);
        }
        match self.returned.take() {
            Some((value, of)) => {
                let what = "while casting return value to function's return type";
                self.at = super::BodyPosition { line: 0, what, is_during: true };
                Ok(vec![self.row_of_value(value, &of)?])
            }
            None => {
                let message = "control reached end of function without RETURN";
                self.at = super::BodyPosition { line: 0, what: "", is_during: true };
                bail!(FUNCTION_EXECUTED_NO_RETURN_STATEMENT: message)
            }
        }
    }
}
