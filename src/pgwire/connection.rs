//! Connection of a logged-in client: reads messages, runs them in the session, and sends the
//! answers.
//!
//! It runs on its own thread and blocks on the client, on locks and on the log. If the client
//! sends nothing for [`IDLE_THREAD_TIMEOUT`], the thread is released and
//! [`client_task`](crate::pgwire::client_task) waits for the next message.
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
//! 1. The completion of a commit is sent only after its ticket reports that the log is durable.
//! 2. No result is buffered whole: rows are encoded until the output is full, then sent.
//! 3. A thread is released only between two statements, when every received message has been
//!    answered; [`Connection::work`] asserts it in debug builds. Answers may still be buffered.
//! 4. The answers to Sync, Query and Flush, and errors, are sent before the next message is
//!    processed, even if it has already arrived: it may block.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pgwire::messages::PgWireFrontendMessage as Message;
use pgwire::messages::response::{
    CommandComplete, ReadyForQuery, TransactionStatus as ReadyStatus,
};
use sql::error::sqlstate;
use sql::logical::OutputColumn;
use sql::session::rows::{Completion, ResultRows};
use sql::session::{Execution, PreparedStatement, Session, TransactionStatus};
use store::env::process::monotonic_now;
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
use crate::pgwire::message::{Output, Severity};
use crate::pgwire::row::{Formats, RowEncoder};
use crate::pgwire::service::Service;
use crate::pgwire::shared_channel::SharedChannel;

/// Time for which a session keeps its thread while its client sends nothing: long enough for an
/// active client, and short for an idle one, whose next message costs the start of a thread.
pub(super) const IDLE_THREAD_TIMEOUT: Duration = Duration::from_millis(200);
/// Time limit for sending the last error.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The connection of a logged-in client.
pub(crate) struct Connection {
    pub(super) channel: SharedChannel,
    pub(super) session: Session,
    pub(super) unnamed: Option<UnnamedStatement>,
    /// Set after an error in the extended protocol, until Sync.
    skipping: bool,
    service: Arc<Service>,
    /// The message that is being received.
    incoming: IncomingMessage,
    /// Time at which ReadyForQuery was sent, if it was the last message: idle timeouts count from
    /// it.
    ready: Option<Instant>,
    /// The client in log entries.
    pub(super) client: Client,
    began: Instant,
    _registration: Registration,
}

/// Types of two messages.
const SIMPLE_QUERY: u8 = b'Q';
const COPY_FAIL: u8 = b'f';

/// The next action after a message was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageOutcome {
    Message,
    End,
}

/// Input of a connection.
enum ConnectionInput {
    Frame(Frame),
    /// The client has sent nothing for [`IDLE_THREAD_TIMEOUT`].
    Nothing,
    /// The client has disconnected.
    End,
}

/// The state in which a connection releases its thread.
pub(crate) enum WorkOutcome {
    /// The client is idle.
    Idle(Box<Connection>),
    /// The connection has ended.
    Ended,
}

/// Returns the failure of a connection that ends because the server stops or another session has
/// terminated it.
pub(super) fn shutdown_failure() -> Failure {
    Failure::fatal(sqlstate::ADMIN_SHUTDOWN, "terminating connection due to administrator command")
}

impl Connection {
    /// Creates the connection of a client that has just logged in.
    pub(super) fn new(
        channel: Channel,
        (mut session, registration): (Session, Registration),
        service: Arc<Service>,
        (client, began): (Client, Instant),
    ) -> Box<Connection> {
        let channel = SharedChannel::new(channel);
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

    /// Reports the successful login to the client.
    pub(super) fn begin(mut self: Box<Connection>) -> WorkOutcome {
        let _account = self.session.memory_account().enter();
        let sent = self.put_ready().and_then(|()| Ok(self.channel.flush()?));
        match sent {
            Ok(()) => self.work(),
            Err(failure) => self.end(Err(failure)),
        }
    }

    /// Answers the client's messages until it is idle.
    pub(super) fn work(mut self: Box<Connection>) -> WorkOutcome {
        let _account = self.session.memory_account().enter();
        if let Err(error) = self.channel.block() {
            return self.end(Err(error.into()));
        }
        loop {
            let next = match self.next_input_or_notification() {
                Ok(ConnectionInput::Frame(Frame::Message(message))) => self.answer(message),
                Ok(ConnectionInput::Frame(Frame::Unreadable { kind, error })) => {
                    self.answer_unreadable(kind, error)
                }
                Ok(ConnectionInput::Nothing) => {
                    debug_assert!(!self.channel.holds_message(), "a message was not answered");
                    return WorkOutcome::Idle(self);
                }
                Ok(ConnectionInput::End) => Ok(MessageOutcome::End),
                Err(failure) => Err(failure),
            };
            match next {
                Ok(MessageOutcome::Message) => store::memory::give_back(),
                Ok(MessageOutcome::End) => return self.end(Ok(())),
                Err(failure) => return self.end(Err(failure)),
            }
        }
    }

    /// Ends the connection and reports the reason to the client.
    pub(super) fn end(self: Box<Connection>, result: Result<()>) -> WorkOutcome {
        let _ = self.channel.block();
        let _account = self.session.memory_account().enter();
        // Releases the session's resources before the client is informed; this may take a while.
        let Connection { mut channel, session, client, service, began, .. } = *self;
        let _ = run(move || {
            drop(session);
            Ok(())
        });
        client.disconnected(&service.log, began.elapsed());
        match result {
            Ok(()) => {}
            Err(Failure::Gone(error)) => tracing::debug!(%error, "client disconnected"),
            Err(Failure::Statement(error) | Failure::Fatal(error)) => {
                let message = error.message.as_str();
                tracing::info!(sqlstate = &*error.sqlstate, message, "terminating connection");
                channel.output().put_error(Severity::Fatal, &error);
                channel.into_channel().close(CLOSE_TIMEOUT);
            }
        }
        WorkOutcome::Ended
    }

    /// Returns the client's socket, for waiting for data; [`Connection::work`] makes it block
    /// again.
    pub(super) fn duplicate_socket(&self) -> io::Result<TcpStream> {
        self.channel.duplicate_socket()
    }

    /// Returns whether the client has sent data, while the socket is
    /// [watched](Connection::duplicate_socket).
    pub(super) fn has_bytes(&self) -> bool {
        self.channel.has_bytes()
    }

    /// Returns the time of the next idle timeout, and its error.
    pub(super) fn idle_limit(&self) -> Option<(Instant, sql::Error)> {
        let (limit, error) = self.session.idle_limit()?;
        Some((self.ready?.checked_add(limit)?, error))
    }

    /// Returns the next message between two statements. A session that listens sends its
    /// notifications and does not keep its thread: only the task of the client waits for both
    /// messages and notifications.
    fn next_input_or_notification(&mut self) -> Result<ConnectionInput> {
        if !self.session.awaits_notifications() {
            return self.next_input(Channel::read);
        }
        self.put_notifications()?;
        self.channel.flush()?;
        self.next_input(Channel::read_arrived)
    }

    /// Sends the notifications that have arrived, except within a transaction block. Those that
    /// arrive meanwhile are left for later, so that the client is not kept waiting.
    fn put_notifications(&mut self) -> Result<()> {
        let end = self.session.notification_end();
        loop {
            let notifications = self.session.take_notifications(end, OUTPUT_BYTES);
            if notifications.is_empty() {
                return Ok(());
            }
            let output = self.output();
            notifications.iter().for_each(|notification| output.put_notification(notification));
            self.channel.flush_if_full()?;
        }
    }

    /// Returns the next message; waits for it for [`IDLE_THREAD_TIMEOUT`], or less if the idle
    /// timeout is near. `read` reads from the client.
    fn next_input(
        &mut self,
        read: fn(&mut Channel) -> io::Result<ReadOutcome>,
    ) -> Result<ConnectionInput> {
        loop {
            self.incoming.check()?;
            if self.is_terminating() {
                return Err(shutdown_failure());
            }
            let encoding = self.session.client_encoding();
            if let Some(frame) = self.channel.take(Phase::Session, encoding)? {
                self.ready = None;
                self.incoming.end();
                return Ok(ConnectionInput::Frame(frame));
            }
            let (bytes, announced) = self.channel.incoming();
            self.incoming.record(bytes, announced)?;
            let is_near = |(limit, _)| limit < monotonic_now() + IDLE_THREAD_TIMEOUT;
            let read = match self.idle_limit().is_some_and(is_near) {
                // A read that waits would end after the idle timeout.
                true => Channel::read_arrived,
                false => read,
            };
            match read(&mut self.channel)? {
                ReadOutcome::Bytes => {}
                ReadOutcome::End if self.incoming.check().is_err() => {}
                // Terminating a session shuts its socket down for reading.
                ReadOutcome::End if self.is_terminating() => return Err(shutdown_failure()),
                ReadOutcome::End => return Ok(ConnectionInput::End),
                ReadOutcome::Nothing => return Ok(ConnectionInput::Nothing),
            }
        }
    }

    /// Returns the next message; waits without a limit. `None` if the client has disconnected.
    pub(super) fn next_message(&mut self) -> Result<Option<Frame>> {
        loop {
            match self.next_input(Channel::read)? {
                ConnectionInput::Frame(frame) => return Ok(Some(frame)),
                ConnectionInput::Nothing => {}
                ConnectionInput::End => return Ok(None),
            }
        }
    }

    /// Returns whether the server stops or another session has terminated this one.
    pub(super) fn is_terminating(&self) -> bool {
        self.session.is_terminated() || *self.service.stopping.borrow()
    }

    fn answer(&mut self, message: Message) -> Result<MessageOutcome> {
        match message {
            Message::Terminate(_) => return Ok(MessageOutcome::End),
            Message::Sync(_) => {
                self.skipping = false;
                let result = self.sync();
                self.report(result)?;
                self.put_ready()?;
                self.channel.flush()?;
            }
            _ if self.skipping => {}
            Message::Query(query) => {
                let result = self.simple_query(&query.query);
                self.report(result)?;
                self.put_ready()?;
                self.channel.flush()?;
            }
            // Remaining messages of a failed COPY.
            Message::CopyData(_) | Message::CopyDone(_) | Message::CopyFail(_) => {}
            message => {
                let result = self.extended(message);
                self.skipping = matches!(result, Err(Failure::Statement(_)));
                self.report(result)?;
                if self.skipping {
                    // The client may wait for the error before it sends Sync.
                    self.channel.flush()?;
                }
            }
        }
        self.channel.flush_if_full()?;
        Ok(MessageOutcome::Message)
    }

    /// Answers a message whose text is not valid in the client's encoding with a statement error.
    fn answer_unreadable(&mut self, kind: u8, error: types::Error) -> Result<MessageOutcome> {
        // Remaining messages of a failed COPY.
        if self.skipping || kind == COPY_FAIL {
            return Ok(MessageOutcome::Message);
        }
        self.report(Err(sql::Error::from(error).into()))?;
        match kind {
            SIMPLE_QUERY => self.put_ready()?,
            _ => self.skipping = true,
        }
        self.channel.flush()?;
        Ok(MessageOutcome::Message)
    }

    /// Reports a failed statement to the client; other failures are returned.
    fn report(&mut self, result: Result<()>) -> Result<()> {
        let mut error = match result {
            // Statements are cancelled when the server stops.
            Err(Failure::Statement(error))
                if error.sqlstate == sqlstate::QUERY_CANCELED
                    && *self.service.stopping.borrow() =>
            {
                return Err(shutdown_failure());
            }
            Err(Failure::Statement(_)) if self.session.is_terminated() => {
                return Err(shutdown_failure());
            }
            Err(Failure::Statement(error)) => error,
            other => return other,
        };
        let session = &mut self.session;
        run(|| {
            session.fail(&mut error);
            Ok(())
        })?;
        // The statement has failed, whether or not the log becomes durable.
        let _ = self.wait_statement_durable();
        self.put_notices();
        self.output().put_error(Severity::Error, &error);
        Ok(())
    }

    /// Appends ReadyForQuery, after notifications and ParameterStatus for changed settings.
    fn put_ready(&mut self) -> Result<()> {
        if self.session.awaits_notifications() {
            self.put_notifications()?;
        }
        for (name, value) in self.session.take_changed_reported() {
            self.output().put_parameter_status(name, &value);
        }
        let status = match self.session.transaction_status() {
            TransactionStatus::Idle => ReadyStatus::Idle,
            TransactionStatus::InBlock => ReadyStatus::Transaction,
            TransactionStatus::Failed => ReadyStatus::Error,
        };
        self.session.stop_clock();
        self.channel.output().put(&ReadyForQuery::new(status));
        self.ready = Some(monotonic_now());
        Ok(())
    }

    pub(super) fn put_notices(&mut self) {
        for notice in self.session.take_notices() {
            self.output().put_notice(&notice);
        }
    }

    /// Returns the output, with the client's present encoding.
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
        prepared: &Arc<PreparedStatement>,
        parameters: Vec<Datum>,
    ) -> Result<Execution> {
        // Sets the encoding for notices.
        self.output();
        self.channel.lend(|| run(|| self.session.execute(prepared, parameters)))
    }

    /// Sends the rows of a result, at most `row_limit`. Returns whether all rows were sent.
    pub(super) fn send_rows(
        &mut self,
        rows: &mut ResultRows,
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
                    self.wait_seen_commits_durable()?;
                }
                self.channel.flush_if_full()?;
            }
        }
        Ok(false)
    }

    /// Ends the implicit transaction, if one is open, and its portals.
    pub(super) fn end_implicit(&mut self) -> Result<()> {
        let ticket = run(|| self.session.end_implicit())?;
        self.wait_durable(ticket)
    }

    /// Waits until the commit of the last statement, if any, is durable.
    pub(super) fn wait_statement_durable(&mut self) -> Result<()> {
        let ticket = self.session.take_ticket();
        self.wait_durable(ticket)
    }

    /// Waits until all commits that the open transaction has seen are durable.
    pub(super) fn wait_seen_commits_durable(&mut self) -> Result<()> {
        let ticket = self.session.durability_of_reads();
        self.wait_durable(ticket)
    }

    fn wait_durable(&mut self, ticket: Option<DurableTicket>) -> Result<()> {
        let Some(ticket) = ticket else { return Ok(()) };
        Ok(ticket.wait().map_err(sql::Error::from)?)
    }
}
