//! One client's view of the engine: settings, transaction, prepared statements, running statements.
//!
//! Free of sockets and messages: the server, the shell and embedding programs drive it alike.
//!
//! # Transactions
//!
//! Statements outside BEGIN … COMMIT run in an implicit transaction that lasts until
//! [`Session::end_implicit`], which the wire calls at the end of a simple query message or at Sync.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use store::wal::DurableTicket;
use types::{Batch, DataType, Datum};

use crate::error::{Error, Result};
use crate::logical::OutputColumn;

/// Stops the running statement of a session from another thread.
#[derive(Debug, Clone, Default)]
pub struct CancelHandle {
    flag: Arc<AtomicBool>,
}

impl CancelHandle {
    /// Asks the running statement to stop with SQLSTATE 57014; nothing if none is running.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }
}

/// What ReadyForQuery reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatus {
    /// Not in a transaction block.
    Idle,
    /// In a transaction block.
    InBlock,
    /// In a block that an error has ended; only ROLLBACK is accepted.
    Failed,
}

/// A statement that was parsed, bound and planned.
pub struct Prepared {
    /// Types of the parameters, `$1` first.
    pub parameter_types: Vec<DataType>,
    /// Columns of the result; `None` for a statement that returns no rows.
    pub columns: Option<Vec<OutputColumn>>,
}

/// A statement that was started.
pub enum Execution {
    /// It yields rows; read them to the end.
    Rows(Rows),
    /// It is done.
    Done(Completion),
    /// COPY … FROM STDIN: feed it.
    CopyIn(Box<CopyIn>),
}

/// What CommandComplete says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The command tag, for example `INSERT 0 1`; empty for an empty statement.
    pub tag: String,
}

/// Rows of a running statement. Independent of the session, so that several portals can be open.
pub struct Rows {
    _private: (),
}

impl Rows {
    /// Returns the columns.
    pub fn columns(&self) -> &[OutputColumn] {
        todo!("sql/session")
    }

    /// Returns the next rows, at most `row_limit`; `None` at the end.
    pub fn next_batch(&mut self, row_limit: usize) -> Result<Option<Batch>> {
        let _ = row_limit;
        todo!("sql/session")
    }

    /// Returns the completion: the tag counts the rows that were returned.
    pub fn completion(&self) -> Completion {
        todo!("sql/session")
    }
}

/// A running COPY … FROM STDIN.
pub struct CopyIn {
    /// The format of the data.
    pub format: CopyFormat,
    _private: (),
}

/// The format of COPY data; the wire layer splits it into fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyFormat {
    /// CSV; otherwise PostgreSQL's text format.
    pub csv: bool,
    /// Between fields.
    pub delimiter: u8,
    /// The text that stands for NULL.
    pub null: String,
    /// The first line is a header and is skipped.
    pub header: bool,
    /// CSV: around fields.
    pub quote: u8,
    /// CSV: before a quote inside a field.
    pub escape: u8,
    /// Number of columns of the data.
    pub column_count: usize,
}

impl CopyIn {
    /// Adds a row; `None` is NULL. `line` is the line of the data, from 1, for messages.
    ///
    /// # Errors
    ///
    /// With CONTEXT `COPY t, line 3, column dep_time: "abc"`.
    pub fn push_row(&mut self, line: u64, fields: &[Option<&str>]) -> Result<()> {
        let _ = (line, fields);
        todo!("sql/session")
    }

    /// Stages what is left and returns the tag, for example `COPY 336776`.
    pub fn finish(self) -> Result<Completion> {
        todo!("sql/session")
    }
}

/// A notice for the client, between messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// `NOTICE` or `WARNING`.
    pub severity: &'static str,
    /// Code, message, hint.
    pub error: Error,
}

/// One client's session.
pub struct Session {
    _private: (),
}

impl Session {
    /// Splits a simple query string into its statements, parsed.
    pub fn parse(&mut self, sql: &str) -> Result<Vec<Parsed>> {
        let _ = sql;
        todo!("sql/session")
    }

    /// Binds and plans a statement. `types` are the client's parameter types, `None` where it leaves
    /// them open; may be shorter than the list of parameters.
    pub fn prepare(
        &mut self,
        statement: &Parsed,
        types: &[Option<DataType>],
    ) -> Result<Arc<Prepared>> {
        let _ = (statement, types);
        todo!("sql/session")
    }

    /// Starts a statement, in the open transaction or in an implicit one.
    ///
    /// After an error the caller calls [`Session::fail`].
    pub fn execute(
        &mut self,
        prepared: &Arc<Prepared>,
        parameters: Vec<Datum>,
    ) -> Result<Execution> {
        let _ = (prepared, parameters);
        todo!("sql/session")
    }

    /// Ends the implicit transaction, if one is open, with a commit. The ticket is to be awaited
    /// before the client is told.
    pub fn end_implicit(&mut self) -> Result<Option<DurableTicket>> {
        todo!("sql/session")
    }

    /// Takes the ticket of a COMMIT that [`Session::execute`] ran, to be awaited before the client is
    /// told.
    pub fn take_ticket(&mut self) -> Option<DurableTicket> {
        todo!("sql/session")
    }

    /// After an error: rolls the implicit transaction back, or marks the block as failed.
    pub fn fail(&mut self) {
        todo!("sql/session")
    }

    /// Returns what ReadyForQuery reports.
    pub fn transaction_status(&self) -> TransactionStatus {
        todo!("sql/session")
    }

    /// Returns the handle that a cancel request uses.
    pub fn cancel_handle(&self) -> CancelHandle {
        todo!("sql/session")
    }

    /// Sets a setting by name, as a start-up parameter does.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let _ = (name, value);
        todo!("sql/session")
    }

    /// Returns settings that the client is to be told of (ParameterStatus) and that have changed
    /// since the last call; at first all of them.
    pub fn take_reported(&mut self) -> Vec<(String, String)> {
        todo!("sql/session")
    }

    /// Returns the notices gathered since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        todo!("sql/session")
    }

    /// Returns how values are written as text now (time zone, bytea).
    pub fn text_style(&self) -> &types::text::TextStyle {
        todo!("sql/session")
    }
}

/// A parsed statement.
pub struct Parsed {
    _private: (),
}
