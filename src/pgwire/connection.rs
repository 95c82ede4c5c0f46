//! The session's side of a connection: messages in, answers out, on a thread that has nothing else
//! to do and waits where it has to, for the client, for locks and for the log. A client that sends
//! nothing for [`PATIENCE`] gives the thread back; [`client_task`](crate::pgwire::client_task)
//! waits for its next message.
//!
//! ```text
//!   start ──> ReadyForQuery ──> message ──┬─ simple query ──────────────┐
//!                   ^                     ├─ Parse, Bind, …, Sync ──────┤
//!                   │                     └─ error: skip until Sync ────┤
//!                   └───────────────────────────────────────────────────┘
//! ```
//!
//! # Invariants
//!
//! 1. What a commit promised is sent only after its ticket says that the log is durable.
//! 2. No result is held whole: rows are encoded until the output is full, then sent.
//! 3. A connection gives its thread back only between two statements, with nothing read that was
//!    not answered.
//! 4. The answers to Sync, Query and Flush, and errors, are sent before the next message is looked
//!    at, even if it has come already: it may have to wait for something.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pgwire::messages::PgWireFrontendMessage as Message;
use pgwire::messages::response::{
    CommandComplete, ReadyForQuery, TransactionStatus as ReadyStatus,
};
use sql::error::sqlstate;
use sql::logical::OutputColumn;
use sql::session::rows::{Completion, Rows};
use sql::session::{Execution, Prepared, Session, TransactionStatus};
use store::wal::DurableTicket;
use tokio::net::TcpStream;
use types::Datum;

use crate::pgwire::cancel::Registration;
use crate::pgwire::channel::{Channel, OUTPUT_BYTES, ReadOutcome};
use crate::pgwire::client_log::Client;
use crate::pgwire::extended::UnnamedStatement;
use crate::pgwire::failure::{Failure, Result, run};
use crate::pgwire::frame::{Frame, Phase};
use crate::pgwire::incoming::IncomingMessage;
use crate::pgwire::lent::LentChannel;
use crate::pgwire::message::{Output, Severity};
use crate::pgwire::row::{Formats, RowEncoder};
use crate::pgwire::service::Service;

/// How long a session keeps its thread while its client sends nothing: long enough for a client
/// that is at work, and short beside what starting a thread for the next message costs.
pub(super) const PATIENCE: Duration = Duration::from_millis(200);
/// How long a client may take to take its last error.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection whose client has been let in.
pub(crate) struct Connection {
    pub(super) channel: LentChannel,
    pub(super) session: Session,
    pub(super) unnamed: Option<UnnamedStatement>,
    /// After an error in the extended protocol, until Sync.
    skipping: bool,
    service: Arc<Service>,
    /// The message that is coming.
    incoming: IncomingMessage,
    /// When ReadyForQuery was sent, if it was the last message: the client's next one may be waited
    /// for only so long.
    ready: Option<Instant>,
    /// As the log names it.
    pub(super) client: Client,
    began: Instant,
    _registration: Registration,
}

/// The types of two messages.
const SIMPLE_QUERY: u8 = b'Q';
const COPY_FAIL: u8 = b'f';

/// Why the answering of messages stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Message,
    End,
}

/// What there is to be done next.
enum Input {
    Frame(Frame),
    /// The client has sent nothing for [`PATIENCE`].
    Nothing,
    /// The client has left.
    End,
}

/// How a connection gives its thread back.
pub(crate) enum Worked {
    /// Its client sends nothing.
    Idle(Box<Connection>),
    /// It has ended.
    Ended,
}

/// Returns the failure that ends a connection because the server stops, or another session wants
/// that.
pub(super) fn going_down() -> Failure {
    Failure::fatal(sqlstate::ADMIN_SHUTDOWN, "terminating connection due to administrator command")
}

impl Connection {
    /// Returns the connection of a client that has just been let in.
    pub(super) fn new(
        channel: Channel,
        (mut session, registration): (Session, Registration),
        service: Arc<Service>,
        (client, began): (Client, Instant),
    ) -> Box<Connection> {
        let channel = LentChannel::new(channel);
        session.on_notices(channel.sink());
        let incoming = service.incoming.of(session.process_id(), registration.connection());
        Box::new(Connection {
            channel,
            session,
            unnamed: None,
            skipping: false,
            service,
            incoming,
            ready: None,
            client,
            began,
            _registration: registration,
        })
    }

    /// Tells the client that it has been let in.
    pub(super) fn begin(mut self: Box<Connection>) -> Worked {
        let _account = self.session.memory_account().enter();
        self.put_ready();
        match self.channel.flush() {
            Ok(()) => self.work(),
            Err(error) => self.end(Err(error.into())),
        }
    }

    /// Answers the client's messages until it sends no more.
    pub(super) fn work(mut self: Box<Connection>) -> Worked {
        let _account = self.session.memory_account().enter();
        if let Err(error) = self.channel.block() {
            return self.end(Err(error.into()));
        }
        loop {
            let next = match self.next_input() {
                Ok(Input::Frame(Frame::Message(message))) => self.answer(message),
                Ok(Input::Frame(Frame::Unreadable { kind, error })) => {
                    self.answer_unreadable(kind, error)
                }
                Ok(Input::Nothing) => return Worked::Idle(self),
                Ok(Input::End) => Ok(Next::End),
                Err(failure) => Err(failure),
            };
            match next {
                Ok(Next::Message) => store::memory::give_back(),
                Ok(Next::End) => return self.end(Ok(())),
                Err(failure) => return self.end(Err(failure)),
            }
        }
    }

    /// Ends the connection, for a reason that the client is told.
    pub(super) fn end(self: Box<Connection>, result: Result<()>) -> Worked {
        let _ = self.channel.block();
        let _account = self.session.memory_account().enter();
        // What the session holds is let go before the client is told; that may take a while.
        let Connection { mut channel, session, client, service, began, .. } = *self;
        let _ = run(move || {
            drop(session);
            Ok(())
        });
        client.disconnected(&service.log, began.elapsed());
        match result {
            Ok(()) => {}
            Err(Failure::Gone(error)) => tracing::debug!(%error, "a client is gone"),
            Err(Failure::Statement(error) | Failure::Fatal(error)) => {
                let message = error.message.as_str();
                tracing::info!(sqlstate = &*error.sqlstate, message, "a connection ends");
                channel.output().put_error(Severity::Fatal, &error);
                channel.into_channel().close(CLOSE_TIMEOUT);
            }
        }
        Worked::Ended
    }

    /// Returns the client's socket, to wait for what it sends; [`Connection::work`] takes it back.
    pub(super) fn watched(&self) -> io::Result<TcpStream> {
        self.channel.watched()
    }

    /// Returns whether the client has sent something, while the socket is
    /// [watched](Connection::watched).
    pub(super) fn has_bytes(&self) -> bool {
        self.channel.has_bytes()
    }

    /// Returns until when the client may wait with its next statement, and the error with which the
    /// session ends then.
    pub(super) fn idle_limit(&self) -> Option<(Instant, sql::Error)> {
        let (limit, error) = self.session.idle_limit()?;
        Some((self.ready?.checked_add(limit)?, error))
    }

    /// Returns the next message; waits for it for [`PATIENCE`], if the client may be idle so long.
    fn next_input(&mut self) -> Result<Input> {
        loop {
            self.incoming.check()?;
            if self.is_to_end() {
                return Err(going_down());
            }
            let encoding = self.session.client_encoding();
            if let Some(frame) = self.channel.take(Phase::Session, encoding)? {
                self.ready = None;
                self.incoming.end();
                return Ok(Input::Frame(frame));
            }
            let (bytes, announced) = self.channel.incoming();
            self.incoming.note(bytes, announced)?;
            if self.idle_limit().is_some_and(|(limit, _)| limit < Instant::now() + PATIENCE) {
                // A read would give up too late.
                return Ok(Input::Nothing);
            }
            match self.channel.read()? {
                ReadOutcome::Bytes => {}
                ReadOutcome::End if self.incoming.check().is_err() => {}
                // Whoever ends sessions closes what they read from.
                ReadOutcome::End if self.is_to_end() => return Err(going_down()),
                ReadOutcome::End => return Ok(Input::End),
                ReadOutcome::Nothing => return Ok(Input::Nothing),
            }
        }
    }

    /// Returns the next message; waits for it as long as it takes. Nothing, if the client has left.
    pub(super) fn next_message(&mut self) -> Result<Option<Frame>> {
        loop {
            match self.next_input()? {
                Input::Frame(frame) => return Ok(Some(frame)),
                Input::Nothing => {}
                Input::End => return Ok(None),
            }
        }
    }

    /// Returns whether the server stops, or another session has ended this one.
    pub(super) fn is_to_end(&self) -> bool {
        self.session.is_terminated() || *self.service.stopping.borrow()
    }

    fn answer(&mut self, message: Message) -> Result<Next> {
        match message {
            Message::Terminate(_) => return Ok(Next::End),
            Message::Sync(_) => {
                self.skipping = false;
                let result = self.sync();
                self.report(result)?;
                self.put_ready();
                self.channel.flush()?;
            }
            _ if self.skipping => {}
            Message::Query(query) => {
                let result = self.simple_query(&query.query);
                self.report(result)?;
                self.put_ready();
                self.channel.flush()?;
            }
            // What is left of a COPY that has failed.
            Message::CopyData(_) | Message::CopyDone(_) | Message::CopyFail(_) => {}
            message => {
                let result = self.extended(message);
                self.skipping = matches!(result, Err(Failure::Statement(_)));
                self.report(result)?;
                if self.skipping {
                    // The client may wait for it before it sends Sync.
                    self.channel.flush()?;
                }
            }
        }
        self.channel.relieve()?;
        Ok(Next::Message)
    }

    /// Answers a message whose text cannot be read: a statement that fails.
    fn answer_unreadable(&mut self, kind: u8, error: types::Error) -> Result<Next> {
        // What is left of a COPY that has failed.
        if self.skipping || kind == COPY_FAIL {
            return Ok(Next::Message);
        }
        self.report(Err(sql::Error::from(error).into()))?;
        match kind {
            SIMPLE_QUERY => self.put_ready(),
            _ => self.skipping = true,
        }
        self.channel.flush()?;
        Ok(Next::Message)
    }

    /// Tells the client that a statement has failed; anything worse is passed on.
    fn report(&mut self, result: Result<()>) -> Result<()> {
        let mut error = match result {
            // Statements are cancelled when the server stops.
            Err(Failure::Statement(error))
                if error.sqlstate == sqlstate::QUERY_CANCELED
                    && *self.service.stopping.borrow() =>
            {
                return Err(going_down());
            }
            Err(Failure::Statement(_)) if self.session.is_terminated() => {
                return Err(going_down());
            }
            Err(Failure::Statement(error)) => error,
            other => return other,
        };
        let session = &mut self.session;
        run(|| {
            session.fail(&mut error);
            Ok(())
        })?;
        // Whatever becomes of the log, the statement has failed.
        let _ = self.settle_statement();
        self.put_notices();
        self.output().put_error(Severity::Error, &error);
        Ok(())
    }

    /// Puts ReadyForQuery, after settings that have changed.
    fn put_ready(&mut self) {
        for (name, value) in self.session.take_reported() {
            self.output().put_parameter_status(name, &value);
        }
        let status = match self.session.transaction_status() {
            TransactionStatus::Idle => ReadyStatus::Idle,
            TransactionStatus::InBlock => ReadyStatus::Transaction,
            TransactionStatus::Failed => ReadyStatus::Error,
        };
        self.session.end_time();
        self.channel.output().put(&ReadyForQuery::new(status));
        self.ready = Some(Instant::now());
    }

    pub(super) fn put_notices(&mut self) {
        for notice in self.session.take_notices() {
            self.output().put_notice(&notice);
        }
    }

    /// Returns the output, in the encoding that the client has now.
    fn output(&mut self) -> &mut Output {
        let output = self.channel.output();
        output.encoding = self.session.client_encoding();
        output
    }

    pub(super) fn put_row_description(
        &mut self,
        columns: &[OutputColumn],
        formats: &Formats,
    ) -> sql::Result<()> {
        let origins = self.session.origins(columns);
        self.output().put_row_description(columns, &origins, formats)
    }

    pub(super) fn put_completion(&mut self, completion: Completion) {
        self.channel.output().put(&CommandComplete::new(completion.tag));
    }

    /// Starts a statement.
    pub(super) fn start_statement(
        &mut self,
        prepared: &Arc<Prepared>,
        parameters: Vec<Datum>,
    ) -> Result<Execution> {
        // Notices are put into the encoding of the client.
        self.output();
        self.channel.lend(|| run(|| self.session.execute(prepared, parameters)))
    }

    /// Sends the rows of a result, `row_limit` at most. Returns whether that was all of them.
    pub(super) fn send_rows(
        &mut self,
        rows: &mut Rows,
        encoder: &RowEncoder,
        mut row_limit: usize,
    ) -> Result<bool> {
        let style = rows.style(self.session.text_style());
        while row_limit > 0 {
            let Some(batch) = self.channel.lend(|| run(|| rows.next_batch(row_limit)))? else {
                return Ok(true);
            };
            row_limit -= batch.row_count.min(row_limit);
            let mut row = 0;
            while row < batch.row_count {
                let out = &mut self.channel.output().bytes;
                let written = encoder.write_rows(&batch, row, &style, OUTPUT_BYTES, out);
                row = written.map_err(|error| rows.failure(error))?;
                if self.channel.is_full() {
                    self.settle_seen()?;
                }
                self.channel.relieve()?;
            }
        }
        Ok(false)
    }

    /// Ends the implicit transaction, if one is open. Its portals end with it.
    pub(super) fn end_implicit(&mut self) -> Result<()> {
        let ticket = run(|| self.session.end_implicit())?;
        self.settle(ticket)
    }

    /// Waits for the commit that the last statement made, if it made one.
    pub(super) fn settle_statement(&mut self) -> Result<()> {
        let ticket = self.session.take_ticket();
        self.settle(ticket)
    }

    /// Waits until all is durable that the open transaction has seen.
    pub(super) fn settle_seen(&mut self) -> Result<()> {
        let ticket = self.session.seen();
        self.settle(ticket)
    }

    fn settle(&mut self, ticket: Option<DurableTicket>) -> Result<()> {
        let Some(ticket) = ticket else { return Ok(()) };
        Ok(ticket.wait().map_err(sql::Error::from)?)
    }
}
