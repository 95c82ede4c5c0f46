//! PL/pgSQL interpreter: DO blocks, functions and procedures.
//!
//! A body is compiled once ([`compiled`]) and interpreted by its session, statement by statement,
//! in the transaction of the calling statement. Its expressions and statements are bound and
//! planned at their first execution, and again only when the catalog or the fields of a record
//! have changed ([`evaluation`]). An expression without a query is evaluated directly.
//!
//! A block with EXCEPTION is a savepoint: it is released, or rolled back with its DDL, locks and
//! settings before a handler is executed ([`control`]).
//!
//! Source: PostgreSQL's pl_exec.c.

mod assignment;
mod compiled;
mod control;
mod cursors;
mod evaluation;
mod function;
mod loops;
mod messages;
mod results;
mod statements;
mod subtransaction;

use std::sync::Arc;

use store::Sequence;
use types::expr::{EvalContext, Routine};
use types::{Datum, SqlType};

use crate::ast;
use crate::binder::VariableSignature;
use crate::catalog::Catalog;
use crate::ddl::body_error;
use crate::error::{Error, Result};
use crate::exec::memory;
use crate::plpgsql::body_tree::PlpgsqlStatement;
use crate::plpgsql::{self, ReturnKind};
use crate::session::plpgsql::compiled::CompiledBody;
use crate::session::plpgsql::control::ControlFlow;
use crate::session::{Notice, Session};

/// Function name in the CONTEXT of errors in DO.
const INLINE: &str = "inline_code_block";

/// Execution state of a body.
struct BodyExecution<'s> {
    session: &'s mut Session,
    compiled: Arc<CompiledBody>,
    /// Values of the variables.
    values: Vec<Datum>,
    /// Present types of the variables.
    shapes: Arc<Vec<VariableSignature>>,
    /// Evaluation context of expressions, while it is valid.
    world: Option<ExpressionContext>,
    /// Generation of the changed settings that `world` has.
    settings_seen: u64,
    /// Current statement.
    at: BodyPosition,
    /// True if the CONTEXT of the propagating error is complete.
    is_placed: bool,
    row_count: u64,
    /// Errors in process of handling, the innermost last.
    caught: Vec<Error>,
    /// Value of RETURN.
    returned: Option<(Datum, SqlType)>,
    /// Rows of RETURN NEXT and RETURN QUERY.
    rows: Vec<Vec<Datum>>,
    /// Size of these rows in bytes.
    row_bytes: usize,
}

/// Evaluation context of expressions.
struct ExpressionContext {
    catalog: Arc<Catalog>,
    /// Snapshot of the transaction, if it does not see all indexes.
    old_snapshot: Option<Sequence>,
    eval: EvalContext,
}

/// Body and expression context of the last function call, reused by the next call of the same
/// statement.
#[derive(Default)]
pub(super) struct LastCall {
    /// Function with the types of the call, and its compiled body.
    body: Option<(Routine, Arc<CompiledBody>)>,
    /// Evaluation context, and the generation of the changed settings that it has.
    world: Option<(ExpressionContext, u64)>,
}

/// Current position in a body.
#[derive(Clone, Copy)]
struct BodyPosition {
    line: u32,
    what: &'static str,
    /// True if it is between statements.
    is_during: bool,
}

impl Session {
    /// Executes DO.
    pub(super) fn run_do(&mut self, block: &ast::DoBlock) -> Result<()> {
        match block.language.as_str() {
            "plpgsql" => {}
            "sql" | "internal" | "c" => {
                bail!(FEATURE_NOT_SUPPORTED: "language \"{}\" does not support inline code execution", block.language);
            }
            other => bail!(UNDEFINED_OBJECT: "language \"{other}\" does not exist"),
        }
        let read = plpgsql::parse_body(&block.body, INLINE, &[], (ReturnKind::Nothing, false));
        let body = read.map_err(|error| body_error(error, INLINE, &block.body, block.place))?;
        self.begin_request();
        let compiled = Arc::new(self.compiled_body(body, INLINE, &[])?);
        self.ends_transactions = true;
        let result =
            self.in_running_body(|session| BodyExecution::new(session, compiled).run(Vec::new()));
        self.ends_transactions = false;
        result
    }

    /// Executes a part of a body, counting the nesting depth.
    pub(super) fn in_running_body<T>(&mut self, run: impl FnOnce(&mut Session) -> T) -> T {
        self.body_depth += 1;
        let result = run(self);
        self.body_depth -= 1;
        result
    }

    /// Sends pending notices to the client, if that is possible now; returns whether none is
    /// left. Waits until what the transaction has read is durable.
    fn send_notices(&mut self) -> Result<bool> {
        if self.notices.lock().is_empty() {
            return Ok(true);
        }
        let Some(sink) = self.notice_sink.clone() else { return Ok(false) };
        for ticket in [self.ticket.take(), self.durability_of_reads()].into_iter().flatten() {
            ticket.wait()?;
        }
        let mut notices = self.notices.lock();
        let is_sent = sink(&notices);
        if is_sent {
            notices.clear();
        }
        Ok(is_sent)
    }

    /// Raises a notice, if the client wants its severity.
    fn raise_notice(&mut self, severity: &'static str, error: Error) -> Result<()> {
        let work_mem = self.settings.parsed().work_mem_bytes;
        self.notice(severity, error);
        if self.send_notices()? {
            return Ok(());
        }
        let bytes = |one: &Notice| size_of::<Notice>() + one.error.message.len();
        let notices = self.notices.lock();
        match notices.len().is_multiple_of(4_096) {
            true => memory::check(notices.iter().map(bytes).sum(), work_mem),
            false => Ok(()),
        }
    }
}

impl<'s> BodyExecution<'s> {
    fn new(session: &'s mut Session, compiled: Arc<CompiledBody>) -> BodyExecution<'s> {
        let shapes = Arc::clone(&compiled.shapes);
        let settings_seen = match session.changed.count() {
            0 => session.changed.generation(),
            _ => u64::MAX,
        };
        let world = session.last_call.world.take().filter(|(world, settings)| {
            *settings == settings_seen && Arc::ptr_eq(&world.catalog, &session.catalog())
        });
        let world = world.map(|(world, _)| world);
        BodyExecution {
            settings_seen,
            session,
            values: vec![Datum::Null; shapes.len()],
            shapes,
            compiled,
            world,
            at: BodyPosition { line: 0, what: "", is_during: true },
            is_placed: false,
            row_count: 0,
            caught: Vec::new(),
            returned: None,
            rows: Vec::new(),
            row_bytes: 0,
        }
    }

    /// Executes the body.
    fn run(&mut self, arguments: Vec<Datum>) -> Result<()> {
        for (number, value) in arguments.into_iter().enumerate() {
            if let Datum::Nested(types::datum::Nested::Record(record)) = &value
                && self.shapes[number].is_record()
            {
                self.set_fields(number, Some(Arc::clone(&record.fields)));
            }
            self.values[number] = value;
        }
        self.set_found(false);
        let compiled = Arc::clone(&self.compiled);
        let _turn = self.session.open.as_ref().map(|open| open.transaction.turn());
        match self.step(&compiled.body.block) {
            Ok(
                ControlFlow::Return
                | ControlFlow::Next
                | ControlFlow::Exit(_)
                | ControlFlow::Continue(_),
            ) => Ok(()),
            Err(error) => Err(self.placed(error)),
        }
    }

    /// Stores the evaluation context for the next call. Only in an inner session, as others
    /// outlive the transaction, and not with the settings of a function.
    fn leave_world(&mut self) {
        let is_kept = self.session.is_inner() && self.settings_seen != u64::MAX;
        if let Some(world) = self.world.take().filter(|_| is_kept) {
            self.session.last_call.world = Some((world, self.settings_seen));
        }
    }

    fn set_found(&mut self, found: bool) {
        self.values[self.compiled.body.found] = Datum::Bool(found);
    }

    /// Sets the current statement.
    fn enter(&mut self, step: &PlpgsqlStatement) {
        self.at = BodyPosition { line: step.line, what: step.name(), is_during: false };
    }

    /// Adds the position in this body to the CONTEXT of an error.
    fn placed(&mut self, error: Error) -> Error {
        if std::mem::replace(&mut self.is_placed, true) {
            return error;
        }
        let here = self.context_here();
        let context = match error.context {
            Some(context) => format!("{context}\n{here}"),
            None => here,
        };
        Error { context: Some(context), ..error }
    }

    /// Returns the line of CONTEXT for the current statement.
    fn context_here(&self) -> String {
        let BodyPosition { line, what, is_during } = self.at;
        let label = &self.compiled.label;
        match (is_during, line) {
            (true, 0) if what.is_empty() => format!("PL/pgSQL function {label}"),
            (true, 0) => format!("PL/pgSQL function {label} {what}"),
            (true, line) => format!("PL/pgSQL function {label} line {line} {what}"),
            (false, line) => format!("PL/pgSQL function {label} line {line} at {what}"),
        }
    }
}
