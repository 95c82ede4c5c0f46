//! One client's connection: messages in, answers out, until either side ends it.
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
//! 3. Whatever may take long runs where it does not hold up the thread's other clients.
//! 4. The answers to Sync, Query and Flush, and errors, are sent before the next message is looked
//!    at, even if it has come already: it may have to wait for something.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

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
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use types::Datum;

use crate::pgwire::addresses::Starting;
use crate::pgwire::cancel::Registration;
use crate::pgwire::channel::{Channel, OUTPUT_BYTES};
use crate::pgwire::client_log::Client;
use crate::pgwire::extended::UnnamedStatement;
use crate::pgwire::failure::{Duration, Failure, Result, run};
use crate::pgwire::frame::{Frame, Phase};
use crate::pgwire::message::{Output, Severity};
use crate::pgwire::row::{Formats, RowEncoder};
use crate::pgwire::service::Service;
use crate::pgwire::startup;

/// How long a client may take to get through the start.
const START_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);
/// How long a client may take to take its last error.
const CLOSE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

/// A connection whose client has been let in.
pub(crate) struct Connection {
    pub(super) channel: Channel,
    pub(super) session: Session,
    pub(super) unnamed: Option<UnnamedStatement>,
    /// After an error in the extended protocol, until Sync.
    skipping: bool,
    /// The open transaction may have changed much: its commit may take long.
    pub(super) large_change: bool,
    service: Arc<Service>,
    /// Ready when the server stops.
    stopping: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Notified when another session has ended this one.
    terminated: Arc<Notify>,
    /// ReadyForQuery was the last message: the client's next one may be waited for only so long.
    ready: bool,
    /// As the log names it.
    pub(super) client: Client,
    began: Instant,
    _registration: Registration,
}

/// The types of two messages.
const SIMPLE_QUERY: u8 = b'Q';
const COPY_FAIL: u8 = b'f';

/// Whether the connection goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Message,
    End,
}

/// Serves a client from its first byte to its last. `starting` is given back once it is let in.
pub(crate) async fn serve(
    (stream, address): (TcpStream, SocketAddr),
    service: Arc<Service>,
    starting: Starting,
) {
    let began = Instant::now();
    let mut client = Client::at(address);
    client.connected(&service.log);
    let mut channel = Channel::new(stream);
    let mut stopping = stopped(service.stopping.clone());
    let started = tokio::select! {
        biased;
        () = &mut stopping => Err(going_down()),
        started = tokio::time::timeout(
            START_TIMEOUT,
            startup::start(&mut channel, &service, (&mut client, &starting)),
        ) => {
            let late = || Failure::fatal(sqlstate::QUERY_CANCELED, "startup took too long");
            started.unwrap_or_else(|_| Err(late()))
        }
    };
    drop(starting);
    match started {
        Ok(Some(started)) => {
            let terminated = Arc::new(Notify::new());
            let notified = Arc::clone(&terminated);
            started.session.on_terminate(move || notified.notify_one());
            let connection = Connection {
                channel,
                session: started.session,
                unnamed: None,
                skipping: false,
                large_change: false,
                service,
                stopping,
                terminated,
                ready: false,
                client,
                began,
                _registration: started.registration,
            };
            connection.serve().await;
        }
        Ok(None) => {}
        Err(failure) => {
            if let Failure::Fatal(error) = &failure
                && NOT_LET_IN.iter().any(|class| error.sqlstate.starts_with(class))
            {
                client.login_failed(&error.message);
            }
            end(channel, failure).await;
        }
    }
}

/// The classes of errors that say that a client may not come in: it is not who it says it is, or
/// there is no such database.
const NOT_LET_IN: [&str; 2] = ["28", "3D"];

/// Turns a client away because there are too many, without waiting for it.
pub(crate) fn refuse(stream: &TcpStream) {
    let mut output = Output::default();
    let error = sql::Error::new("53300", "sorry, too many clients already");
    output.put_error(Severity::Fatal, &error);
    // If the socket does not take it at once, the end of the connection says enough.
    let _ = stream.try_write(&output.bytes);
}

fn stopped(mut stopping: watch::Receiver<bool>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        // A server that is gone stops, too.
        let _ = stopping.wait_for(|stopping| *stopping).await;
    })
}

/// Returns the error with which an idle session ends, when its time is up.
async fn idle_too_long(limit: Option<(std::time::Duration, sql::Error)>) -> sql::Error {
    match limit {
        Some((limit, error)) => {
            tokio::time::sleep(limit).await;
            error
        }
        None => std::future::pending().await,
    }
}

fn going_down() -> Failure {
    Failure::fatal(sqlstate::ADMIN_SHUTDOWN, "terminating connection due to administrator command")
}

/// Tells a client why its connection ends.
async fn end(mut channel: Channel, failure: Failure) {
    let error = match failure {
        Failure::Statement(error) | Failure::Fatal(error) => error,
        Failure::Gone(error) => {
            tracing::debug!(%error, "a client is gone");
            return;
        }
    };
    tracing::info!(sqlstate = &*error.sqlstate, message = error.message, "a connection ends");
    channel.output.put_error(Severity::Fatal, &error);
    // A client that does not read is not waited for.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, channel.close()).await;
}

impl Connection {
    async fn serve(mut self) {
        let result = self.answer_all().await;
        // What the session holds is let go before the client is told; that may take a while.
        let Connection { channel, session, client, service, began, .. } = self;
        let _ = run(Duration::Long, move || {
            drop(session);
            Ok(())
        });
        client.disconnected(&service.log, began.elapsed());
        if let Err(failure) = result {
            end(channel, failure).await;
        }
    }

    /// Answers the client's messages until it leaves.
    async fn answer_all(&mut self) -> Result<()> {
        self.put_ready();
        self.channel.flush().await?;
        while let Some(frame) = self.next_message().await? {
            let next = match frame {
                Frame::Message(message) => self.answer(message).await?,
                Frame::Unreadable { kind, error } => self.answer_unreadable(kind, error).await?,
            };
            if next == Next::End {
                break;
            }
        }
        Ok(())
    }

    /// Returns the next message; nothing if the client has left.
    pub(super) async fn next_message(&mut self) -> Result<Option<Frame>> {
        let ready = std::mem::take(&mut self.ready);
        loop {
            if self.session.is_terminated() {
                return Err(going_down());
            }
            let encoding = self.session.client_encoding();
            if let Some(frame) = self.channel.take(Phase::Session, encoding)? {
                return Ok(Some(frame));
            }
            let limit = if ready { self.session.idle_limit() } else { None };
            tokio::select! {
                biased;
                () = &mut self.stopping => return Err(going_down()),
                () = self.terminated.notified() => {}
                read = self.channel.read() => if !read? {
                    return Ok(None);
                },
                error = idle_too_long(limit) => return Err(Failure::Fatal(Box::new(error))),
            }
        }
    }

    async fn answer(&mut self, message: Message) -> Result<Next> {
        match message {
            Message::Terminate(_) => return Ok(Next::End),
            Message::Sync(_) => {
                self.skipping = false;
                let result = self.sync().await;
                self.report(result).await?;
                self.put_ready();
                self.channel.flush().await?;
            }
            _ if self.skipping => {}
            Message::Query(query) => {
                let result = self.simple_query(&query.query).await;
                self.report(result).await?;
                self.put_ready();
                self.channel.flush().await?;
            }
            // What is left of a COPY that has failed.
            Message::CopyData(_) | Message::CopyDone(_) | Message::CopyFail(_) => {}
            message => {
                let result = self.extended(message).await;
                self.skipping = matches!(result, Err(Failure::Statement(_)));
                self.report(result).await?;
                if self.skipping {
                    // The client may wait for it before it sends Sync.
                    self.channel.flush().await?;
                }
            }
        }
        self.channel.relieve().await?;
        Ok(Next::Message)
    }

    /// Answers a message whose text cannot be read: a statement that fails.
    async fn answer_unreadable(&mut self, kind: u8, error: types::Error) -> Result<Next> {
        // What is left of a COPY that has failed.
        if self.skipping || kind == COPY_FAIL {
            return Ok(Next::Message);
        }
        self.report(Err(sql::Error::from(error).into())).await?;
        match kind {
            SIMPLE_QUERY => self.put_ready(),
            _ => self.skipping = true,
        }
        self.channel.flush().await?;
        Ok(Next::Message)
    }

    /// Tells the client that a statement has failed; anything worse is passed on.
    async fn report(&mut self, result: Result<()>) -> Result<()> {
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
        run(Duration::Long, || {
            session.fail(&mut error);
            Ok(())
        })?;
        // Whatever becomes of the log, the statement has failed.
        drop(self.settle_statement().await);
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
        self.channel.output.put(&ReadyForQuery::new(status));
        self.ready = true;
    }

    pub(super) fn put_notices(&mut self) {
        for notice in self.session.take_notices() {
            self.output().put_notice(&notice);
        }
    }

    /// Returns the output, in the encoding that the client has now.
    fn output(&mut self) -> &mut Output {
        self.channel.output.encoding = self.session.client_encoding();
        &mut self.channel.output
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
        self.channel.output.put(&CommandComplete::new(completion.tag));
    }

    /// Returns how long running a statement may take: the one switch between the thread of the
    /// connection and a thread of its own.
    pub(super) fn duration_of(&self, prepared: &Prepared) -> Duration {
        let brief = prepared.is_brief() && !self.large_change;
        if brief { Duration::Short } else { Duration::Long }
    }

    /// Starts a statement.
    pub(super) fn start_statement(
        &mut self,
        prepared: &Arc<Prepared>,
        parameters: Vec<Datum>,
        duration: Duration,
    ) -> Result<Execution> {
        let session = &mut self.session;
        let execution = run(duration, || session.execute(prepared, parameters))?;
        let reads = matches!(execution, Execution::Rows(_) | Execution::CopyOut(..));
        self.large_change |= duration == Duration::Long && !reads;
        Ok(execution)
    }

    /// Sends the rows of a result, `row_limit` at most. Returns whether that was all of them.
    pub(super) async fn send_rows(
        &mut self,
        rows: &mut Rows,
        encoder: &RowEncoder,
        mut row_limit: usize,
        duration: Duration,
    ) -> Result<bool> {
        let style = rows.style(self.session.text_style());
        while row_limit > 0 {
            let Some(batch) = run(duration, || rows.next_batch(row_limit))? else {
                return Ok(true);
            };
            row_limit -= batch.row_count.min(row_limit);
            let mut row = 0;
            while row < batch.row_count {
                let out = &mut self.channel.output.bytes;
                let written = encoder.write_rows(&batch, row, &style, OUTPUT_BYTES, out);
                row = written.map_err(|error| rows.failure(error))?;
                if self.channel.is_full() {
                    self.settle_seen().await?;
                }
                self.channel.relieve().await?;
            }
        }
        Ok(false)
    }

    /// Ends the implicit transaction, if one is open. Its portals end with it.
    pub(super) async fn end_implicit(&mut self) -> Result<()> {
        let duration = if self.large_change { Duration::Long } else { Duration::Short };
        let session = &mut self.session;
        let ticket = run(duration, || session.end_implicit())?;
        self.large_change &= self.session.transaction_status() != TransactionStatus::Idle;
        self.settle(ticket).await
    }

    /// Waits for the commit that the last statement made, if it made one.
    pub(super) async fn settle_statement(&mut self) -> Result<()> {
        let ticket = self.session.take_ticket();
        self.settle(ticket).await
    }

    /// Waits until all is durable that the open transaction has seen.
    pub(super) async fn settle_seen(&mut self) -> Result<()> {
        let ticket = self.session.seen();
        self.settle(ticket).await
    }

    async fn settle(&mut self, ticket: Option<DurableTicket>) -> Result<()> {
        let Some(ticket) = ticket else { return Ok(()) };
        if ticket.is_ready() {
            return Ok(());
        }
        Ok(ticket.await.map_err(sql::Error::from)?)
    }
}
