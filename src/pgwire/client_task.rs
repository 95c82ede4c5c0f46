//! A client from its first byte to its last, as a task: it waits for what may never come, and lends
//! the session a thread while there is something to do.
//!
//! ```text
//!   accepted ── start ──> idle ── bytes ──> a thread works ──┬── nothing comes ──> idle
//!      (task)    (task)  (task)              (Connection)    └── the end
//! ```
//!
//! While a client is on its way in, and while a session waits for its client, there is no thread of
//! theirs: a connection that sends nothing costs its memory.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sql::error::sqlstate;
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio::task::spawn_blocking;

use crate::pgwire::addresses::Starting;
use crate::pgwire::client_log::Client;
use crate::pgwire::connection::{Connection, PATIENCE, Worked, going_down};
use crate::pgwire::failure::{Failure, Result, panic_message};
use crate::pgwire::message::{Output, Severity};
use crate::pgwire::service::Service;
use crate::pgwire::start_channel::StartChannel;
use crate::pgwire::startup;
use crate::pgwire::startup::{Started, TOO_MANY_CLIENTS, TOO_MANY_CONNECTIONS};

/// How long a client may take to get through the start.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a client may take to take its last error.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// What a client is told whose place on the way in was taken by another one.
const PLACE_LOST: &str = "too many clients are on their way in, and this one takes longest";

/// The classes of errors that say that a client may not come in: it is not who it says it is, or
/// there is no such database.
const NOT_LET_IN: [&str; 2] = ["28", "3D"];

/// Ready when the server stops.
type Stopping = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Serves a client from its first byte to its last. `starting` is given back once it is let in.
pub(crate) async fn serve(
    (stream, address): (TcpStream, SocketAddr),
    service: Arc<Service>,
    starting: Starting,
) {
    let began = Instant::now();
    let mut client = Client::at(address);
    client.connected(&service.log);
    let mut channel = StartChannel::new(stream);
    let mut stopping = stopped(service.stopping.clone());
    let started = tokio::select! {
        biased;
        () = &mut stopping => Err(going_down()),
        () = starting.lost() => Err(Failure::fatal(TOO_MANY_CONNECTIONS, PLACE_LOST)),
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
        Ok(Some(Started { session, registration })) => {
            let terminated = Arc::new(Notify::new());
            let (notified, ended) = (Arc::clone(&terminated), registration.connection());
            session.on_terminate(move || {
                notified.notify_one();
                ended.end();
            });
            let channel = match channel.into_channel(PATIENCE, registration.connection()) {
                Ok(channel) => channel,
                Err(error) => return tracing::debug!(%error, "a client is gone"),
            };
            let sessions = (session, registration);
            let connection = Connection::new(channel, sessions, service, (client, began));
            work(connection, stopping, &terminated).await;
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

/// Has a connection work whenever its client sends something, until it ends.
async fn work(connection: Box<Connection>, mut stopping: Stopping, terminated: &Notify) {
    let mut worked = on_thread(move || connection.begin()).await;
    while let Worked::Idle(connection) = worked {
        worked = match wait(&connection, &mut stopping, terminated).await {
            Ok(()) => on_thread(move || connection.work()).await,
            Err(failure) => on_thread(move || connection.end(Err(failure))).await,
        };
    }
}

/// Runs a part of a connection's work on a thread.
async fn on_thread(part: impl FnOnce() -> Worked + Send + 'static) -> Worked {
    match spawn_blocking(part).await {
        Ok(worked) => worked,
        Err(error) => {
            if let Ok(panic) = error.try_into_panic() {
                let panic = panic_message(panic.as_ref());
                tracing::error!(panic, "a connection has panicked");
            }
            Worked::Ended
        }
    }
}

/// Waits until an idle client sends something, or leaves.
async fn wait(connection: &Connection, stopping: &mut Stopping, terminated: &Notify) -> Result<()> {
    let socket = connection.watched()?;
    let limit = connection.idle_limit();
    tokio::select! {
        biased;
        () = stopping => Err(going_down()),
        () = terminated.notified() => Err(going_down()),
        ready = socket.readable() => Ok(ready?),
        // The system may not have been asked yet whether there is something.
        error = idle_too_long(limit) => match connection.has_bytes() {
            true => Ok(()),
            false => Err(Failure::Fatal(Box::new(error))),
        },
    }
}

/// Turns a client away because there are too many, without waiting for it.
pub(crate) fn refuse(stream: &TcpStream) {
    let mut output = Output::default();
    let error = sql::Error::new(TOO_MANY_CONNECTIONS, TOO_MANY_CLIENTS);
    output.put_error(Severity::Fatal, &error);
    // If the socket does not take it at once, the end of the connection says enough.
    let _ = stream.try_write(&output.bytes);
}

fn stopped(mut stopping: watch::Receiver<bool>) -> Stopping {
    Box::pin(async move {
        // A server that is gone stops, too.
        let _ = stopping.wait_for(|stopping| *stopping).await;
    })
}

/// Returns the error with which an idle session ends, when its time is up.
async fn idle_too_long(limit: Option<(Instant, sql::Error)>) -> sql::Error {
    match limit {
        Some((limit, error)) => {
            tokio::time::sleep_until(limit.into()).await;
            error
        }
        None => std::future::pending().await,
    }
}

/// Tells a client that was not let in why.
async fn end(mut channel: StartChannel, failure: Failure) {
    let error = match failure {
        Failure::Statement(error) | Failure::Fatal(error) => error,
        Failure::Gone(error) => {
            tracing::debug!(%error, "a client is gone");
            return;
        }
    };
    tracing::info!(sqlstate = &*error.sqlstate, message = error.message, "a connection ends");
    channel.output().put_error(Severity::Fatal, &error);
    // A client that does not read is not waited for.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, channel.close()).await;
}
