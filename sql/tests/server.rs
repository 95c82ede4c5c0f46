//! Test server: an engine in a temporary directory, with named sessions.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use coprocessors::index::{CheckCounts, IndexCheck, check};
use sql::catalog::name::ObjectName;
use sql::catalog::table::Index;
use sql::engine::Engine;
use sql::session::{Execution, Session, SessionOptions, parse};
use sql::{EngineOptions, Error};
use store::transaction::TransactionOptions;
use store::{Options, Store};
use types::expr::EvalContext;
use types::{Batch, DataType};

/// An open engine.
pub(crate) struct Server {
    directory: tempfile::TempDir,
    options: fn() -> EngineOptions,
    /// `None` while it is reopened.
    engine: Option<Arc<Engine>>,
    sessions: BTreeMap<String, Session>,
}

impl Server {
    /// Opens an engine in a new directory.
    pub(crate) fn start(options: fn() -> EngineOptions) -> Server {
        let directory = tempfile::tempdir().unwrap();
        let engine = Some(open(directory.path(), options()).unwrap());
        Server { directory, options, engine, sessions: BTreeMap::new() }
    }

    /// Closes all sessions and the engine, and reopens it on the same data.
    pub(crate) fn restart(&mut self) {
        self.restart_with(self.options);
    }

    /// Like [`Server::restart`], with other coprocessors.
    pub(crate) fn restart_with(&mut self, options: fn() -> EngineOptions) {
        self.options = options;
        self.sessions.clear();
        self.engine().store().shut_down().unwrap();
        // The directory is locked until the old store is dropped.
        self.engine = None;
        self.engine = Some(open(self.directory.path(), options()).unwrap());
    }

    /// Returns the engine.
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        self.engine.as_ref().expect("it is opened")
    }

    /// Opens a session that belongs to the caller.
    pub(crate) fn session(&self) -> Session {
        Session::open(self.engine(), SessionOptions { user: "bennu".to_owned() })
    }

    /// Ends a session.
    pub(crate) fn end(&mut self, session: &str) {
        self.sessions.remove(session);
    }

    /// Executes SQL in a session as one message, and returns the output for the client.
    pub(crate) fn run(&mut self, session: &str, text: &str) -> String {
        if !self.sessions.contains_key(session) {
            let opened = self.session();
            self.sessions.insert(session.to_owned(), opened);
        }
        let session = self.sessions.get_mut(session).expect("it was opened");
        answer(session, text)
    }
}

fn open(directory: &Path, options: EngineOptions) -> Result<Arc<Engine>, Error> {
    Engine::open(Store::open(directory, Options::default())?, options)
}

/// Compares the indexes of a table with its rows; returns their names and differences.
pub(crate) fn index_differences(engine: &Engine, table: &str) -> Vec<(String, CheckCounts)> {
    let catalog = engine.catalog();
    let table = catalog.table_named(&ObjectName::public(table)).unwrap();
    engine.store().wait_for_commits().unwrap();
    let transaction = engine.store().begin(TransactionOptions::default());
    transaction.begin_statement();
    let compared = |index: &Arc<Index>| {
        let inputs = IndexCheck {
            views: None,
            transaction: &transaction,
            base_table: table.id,
            spec: &index.spec,
            context: &EvalContext::default(),
            column_names: &table.index_column_names(index),
        };
        (index.name.clone(), check(&inputs, |_| Ok::<_, Error>(())).unwrap())
    };
    table.indexes.iter().map(compared).collect()
}

/// Executes the statements of a message. Rows have `|` between columns; errors and notices are
/// lines.
pub(crate) fn answer(session: &mut Session, text: &str) -> String {
    let mut out = String::new();
    let result = rows(session, text, &mut |row| {
        let _ = writeln!(out, "{row}");
    });
    let mut notices = String::new();
    for notice in session.take_notices() {
        let _ = writeln!(notices, "{}: {}", notice.severity.to_lowercase(), notice.error.message);
    }
    out.insert_str(0, &notices);
    if let Err(error) = result {
        let _ = writeln!(out, "error {}: {}", error.sqlstate, error.message);
        for (label, line) in [("detail", error.detail), ("hint", error.hint)] {
            if let Some(line) = line {
                let _ = writeln!(out, "{label}: {line}");
            }
        }
    }
    if out.is_empty() { "ok\n".to_owned() } else { out }
}

/// Executes the statements of a message and passes each row as text to `show`.
///
/// # Errors
///
/// The first error; the implicit transaction is then rolled back.
pub(crate) fn rows(
    session: &mut Session,
    text: &str,
    show: &mut dyn FnMut(String),
) -> Result<(), Error> {
    if let Err(mut error) = run_all(session, text, show) {
        session.fail(&mut error);
        return Err(error);
    }
    let ticket = session.take_ticket();
    for ticket in ticket.into_iter().chain(session.end_implicit()?) {
        ticket.wait()?;
    }
    Ok(())
}

fn run_all(session: &mut Session, text: &str, show: &mut dyn FnMut(String)) -> Result<(), Error> {
    for parsed in parse(text)? {
        let prepared = session.prepare(&parsed, &[])?;
        let execution = session.execute(&prepared, Vec::new())?;
        if let Execution::Rows(mut rows) | Execution::CopyOut(mut rows, _) = execution {
            let types: Vec<DataType> =
                rows.columns().iter().map(|column| column.sql_type.base.clone()).collect();
            while let Some(batch) = rows.next_batch(1_000)? {
                (0..batch.row_count).for_each(|row| show(row_text(&batch, row, &types, session)));
            }
        }
    }
    Ok(())
}

fn row_text(batch: &Batch, row: usize, types: &[DataType], session: &Session) -> String {
    let values = batch.row(row);
    let shown = values.iter().zip(types).map(|(value, data_type)| {
        if value.is_null() {
            return "NULL".to_owned();
        }
        let mut bytes = Vec::new();
        types::text::write_short(value, data_type, &session.text_style(), &mut bytes);
        String::from_utf8(bytes).unwrap()
    });
    shown.collect::<Vec<_>>().join("|")
}
