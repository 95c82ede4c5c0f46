//! Procedural bodies: DO, and functions and procedures in PL/pgSQL.
//!
//! A body is read once ([`compiled`]) and run by the session that it belongs to, statement by
//! statement, in the transaction of the statement that calls it. Its expressions and statements are
//! bound and planned when they come first, and again only when the catalog or the fields of a
//! record have changed ([`evaluation`]). An expression that needs no query is computed in place.
//!
//! A block with EXCEPTION is a savepoint: it is released, or rolled back with definitions, locks
//! and settings, before a handler runs ([`control`]).
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

pub(super) use function::BodyCache;

use std::sync::Arc;

use types::expr::EvalContext;
use types::{Datum, SqlType};

use crate::ast;
use crate::binder::VariableShape;
use crate::catalog::Catalog;
use crate::ddl::body_error;
use crate::error::{Error, Result, sqlstate};
use crate::exec::memory;
use crate::plpgsql::tree::Step;
use crate::plpgsql::{self, Returning};
use crate::session::plpgsql::compiled::Compiled;
use crate::session::plpgsql::control::Flow;
use crate::session::{Notice, Session};

/// What errors in DO say that they come from.
const INLINE: &str = "inline_code_block";

/// A body that is being run.
struct Run<'s> {
    session: &'s mut Session,
    compiled: Arc<Compiled>,
    /// The values of the variables.
    values: Vec<Datum>,
    /// What the variables are by now.
    shapes: Arc<Vec<VariableShape>>,
    /// What expressions are computed with, while nothing changes it.
    world: Option<World>,
    /// Which changes of settings these are.
    settings_seen: u64,
    /// The statement at hand.
    at: At,
    /// The context of the error that is on its way is complete.
    is_placed: bool,
    row_count: u64,
    /// The errors that are being handled, the innermost last.
    caught: Vec<Error>,
    /// What RETURN has returned.
    returned: Option<(Datum, SqlType)>,
    /// The rows that were returned.
    rows: Vec<Vec<Datum>>,
    /// What these take in memory.
    row_bytes: usize,
}

/// What expressions are computed with.
struct World {
    catalog: Arc<Catalog>,
    eval: EvalContext,
}

/// Body and expression context of the last call of a function, for the next call by the same
/// statement.
#[derive(Default)]
pub(super) struct LastCall {
    /// The body.
    body: Option<function::CalledBody>,
    /// The context of its expressions, and the number of the change of settings before it.
    world: Option<(World, u64)>,
}

/// Where a body is.
#[derive(Clone, Copy)]
struct At {
    line: u32,
    what: &'static str,
    /// It is between statements.
    is_during: bool,
}

impl Session {
    /// Runs DO.
    pub(super) fn run_do(&mut self, block: &ast::DoBlock) -> Result<()> {
        match block.language.as_str() {
            "plpgsql" => {}
            "sql" | "internal" | "c" => {
                let message = format!(
                    "language \"{}\" does not support inline code execution",
                    block.language
                );
                return Err(Error::new(sqlstate::FEATURE_NOT_SUPPORTED, message));
            }
            other => {
                let message = format!("language \"{other}\" does not exist");
                return Err(Error::new(sqlstate::UNDEFINED_OBJECT, message));
            }
        }
        let read = plpgsql::parse_body(&block.body, INLINE, &[], (Returning::Nothing, false));
        let body = read.map_err(|error| body_error(error, INLINE, &block.body, block.place))?;
        self.begin_request();
        let compiled = Arc::new(self.compiled_body(body, INLINE, &[])?);
        self.ends_transactions = true;
        let result = self.in_running_body(|session| Run::new(session, compiled).run(Vec::new()));
        self.ends_transactions = false;
        result
    }

    /// Runs something of a body.
    pub(super) fn in_running_body<T>(&mut self, run: impl FnOnce(&mut Session) -> T) -> T {
        self.body_depth += 1;
        let result = run(self);
        self.body_depth -= 1;
        result
    }

    /// Tells the client what it is to be told, if that can be done now; returns whether nothing is
    /// left. What was read for it is durable by then.
    fn send_notices(&mut self) -> Result<bool> {
        if self.notices.lock().is_empty() {
            return Ok(true);
        }
        let Some(sink) = self.notice_sink.clone() else { return Ok(false) };
        for ticket in [self.ticket.take(), self.seen()].into_iter().flatten() {
            ticket.wait()?;
        }
        let mut notices = self.notices.lock();
        let is_sent = sink(&notices);
        if is_sent {
            notices.clear();
        }
        Ok(is_sent)
    }

    /// Tells the client something, if it wants to know.
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

impl<'s> Run<'s> {
    fn new(session: &'s mut Session, compiled: Arc<Compiled>) -> Run<'s> {
        let shapes = Arc::clone(&compiled.shapes);
        let settings_seen = match session.changed.count() {
            0 => session.changed.generation(),
            _ => u64::MAX,
        };
        let world = session.last_call.world.take().filter(|(world, settings)| {
            *settings == settings_seen && Arc::ptr_eq(&world.catalog, &session.catalog())
        });
        let world = world.map(|(world, _)| world);
        Run {
            settings_seen,
            session,
            values: vec![Datum::Null; shapes.len()],
            shapes,
            compiled,
            world,
            at: At { line: 0, what: "", is_during: true },
            is_placed: false,
            row_count: 0,
            caught: Vec::new(),
            returned: None,
            rows: Vec::new(),
            row_bytes: 0,
        }
    }

    /// Runs the body.
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
            Ok(Flow::Return | Flow::Next | Flow::Exit(_) | Flow::Continue(_)) => Ok(()),
            Err(error) => Err(self.placed(error)),
        }
    }

    /// Leaves to the next call what expressions were computed with; a session that is no inner one
    /// outlives the transaction.
    fn leave_world(&mut self) {
        if let Some(world) = self.world.take().filter(|_| self.session.is_inner()) {
            self.session.last_call.world = Some((world, self.settings_seen));
        }
    }

    fn set_found(&mut self, found: bool) {
        self.values[self.compiled.body.found] = Datum::Bool(found);
    }

    /// Notes which statement is at hand.
    fn enter(&mut self, step: &Step) {
        self.at = At { line: step.line, what: step.name(), is_during: false };
    }

    /// Returns an error with its context in this body.
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

    /// Returns the line of CONTEXT for the statement at hand.
    fn context_here(&self) -> String {
        let At { line, what, is_during } = self.at;
        let label = &self.compiled.label;
        match (is_during, line) {
            (true, 0) if what.is_empty() => format!("PL/pgSQL function {label}"),
            (true, 0) => format!("PL/pgSQL function {label} {what}"),
            (true, line) => format!("PL/pgSQL function {label} line {line} {what}"),
            (false, line) => format!("PL/pgSQL function {label} line {line} at {what}"),
        }
    }
}
