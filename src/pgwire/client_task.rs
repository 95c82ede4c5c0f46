//! Client task: serves a client from connect to disconnect.
//!
//! ```text
//!   accepted ── start ──> idle ── data ──> a thread works ──┬── timeout ──> idle
//!      (task)    (task)  (task)             (Connection)    └── end
//! ```
//!
//! A client before login and an idle session are asynchronous tasks without a thread, so that an
//! idle connection costs only its memory. A thread runs the session while its client sends
//! messages.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sql::error::sqlstate;
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio::task::spawn_blocking;

use store::env::process::monotonic_now;

use crate::pgwire::client_log::Client;
use crate::pgwire::connection::{Connection, IDLE_THREAD_TIMEOUT, WorkOutcome, shutdown_failure};
use crate::pgwire::failure::{Failure, Result, is_out_of_descriptors, panic_message};
use crate::pgwire::login_throttle::StartupSlot;
use crate::pgwire::message::{Output, Severity};
use crate::pgwire::service::Service;
use crate::pgwire::start_channel::StartChannel;
use crate::pgwire::startup;
use crate::pgwire::startup::{StartedSession, TOO_MANY_CLIENTS};

/// Time limit for the login.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit for sending the last error.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause between polls of an idle client when the process has no free descriptor.
const NO_DESCRIPTOR_PAUSE: Duration = Duration::from_millis(50);

/// Message to a client whose startup slot was taken over by another client.
const SLOT_PREEMPTED: &str = "terminating connection because too many clients are logging in";

/// SQLSTATE classes of rejected logins: invalid authorization, and unknown database.
const NOT_LET_IN: [&str; 2] = ["28", "3D"];

/// Completes when the server stops.
type Stopping = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Serves a client from connect to disconnect. Its startup slot is released after the login.
pub(crate) async fn serve(
    (stream, address): (TcpStream, SocketAddr),
    service: Arc<Service>,
    slot: StartupSlot,
) {
    let began = monotonic_now();
    let mut client = Client::new(address);
    client.log_connected(&service.log);
    let mut channel = StartChannel::new(stream);
    let mut stopping = stopped(service.stopping.clone());
    let started = tokio::select! {
        biased;
        () = &mut stopping => Err(shutdown_failure()),
        () = slot.preempted() => Err(Failure::fatal(sqlstate::TOO_MANY_CONNECTIONS, SLOT_PREEMPTED)),
        started = tokio::time::timeout(
            START_TIMEOUT,
            startup::start(&mut channel, &service, (&mut client, &slot)),
        ) => {
            let late = || Failure::fatal(sqlstate::QUERY_CANCELED, "startup took too long");
            started.unwrap_or_else(|_| Err(late()))
        }
    };
    drop(slot);
    match started {
        Ok(Some(StartedSession { session, registration })) => {
            let (terminated, awake) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
            let notify = Arc::clone(&awake);
            session.on_notification(move || notify.notify_one());
            let (notified, ended) = (Arc::clone(&terminated), registration.connection());
            session.on_terminate(move || {
                notified.notify_one();
                ended.end();
            });
            let channel = match channel.into_channel(IDLE_THREAD_TIMEOUT, registration.connection())
            {
                Ok(channel) => channel,
                Err(error) => return tracing::debug!(%error, "client disconnected"),
            };
            let sessions = (session, registration);
            let connection = Connection::new(channel, sessions, service, (client, began));
            work(connection, stopping, (&terminated, &awake)).await;
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

/// Runs a connection on a thread whenever its client sends data or a notification arrives, until it
/// ends. `signals`: termination by another session, and notifications.
async fn work(connection: Box<Connection>, mut stopping: Stopping, signals: (&Notify, &Notify)) {
    let mut worked = on_thread(move || connection.begin()).await;
    while let WorkOutcome::Idle(connection) = worked {
        worked = match wait(&connection, &mut stopping, signals).await {
            Ok(()) => on_thread(move || connection.work()).await,
            Err(failure) => on_thread(move || connection.end(Err(failure))).await,
        };
    }
}

/// Runs a part of a connection's work on a thread.
async fn on_thread(part: impl FnOnce() -> WorkOutcome + Send + 'static) -> WorkOutcome {
    match spawn_blocking(part).await {
        Ok(worked) => worked,
        Err(error) => {
            if let Ok(panic) = error.try_into_panic() {
                let panic = panic_message(panic.as_ref());
                tracing::error!(panic, "connection task panicked");
            }
            WorkOutcome::Ended
        }
    }
}

/// Waits until an idle client sends something or disconnects, or a notification arrives.
async fn wait(
    connection: &Connection,
    stopping: &mut Stopping,
    (terminated, awake): (&Notify, &Notify),
) -> Result<()> {
    let socket = match connection.duplicate_socket() {
        // Without a descriptor for waiting, the socket is polled by a thread at intervals.
        Err(error) if is_out_of_descriptors(&error) => {
            tokio::time::sleep(NO_DESCRIPTOR_PAUSE).await;
            return Ok(());
        }
        socket => socket?,
    };
    let limit = connection.idle_limit();
    tokio::select! {
        biased;
        () = stopping => Err(shutdown_failure()),
        () = terminated.notified() => Err(shutdown_failure()),
        ready = socket.readable() => Ok(ready?),
        () = awake.notified() => Ok(()),
        // The readiness event may not have been processed yet.
        error = idle_too_long(limit) => match connection.has_bytes() {
            true => Ok(()),
            false => Err(Failure::Fatal(Box::new(error))),
        },
    }
}

/// Rejects a client for which the process has no file descriptors, without blocking.
pub(crate) fn reject(stream: &TcpStream) {
    let mut output = Output::default();
    let error = sql::Error::new(sqlstate::TOO_MANY_CONNECTIONS, TOO_MANY_CLIENTS)
        .with_detail("The server has no file descriptors left.");
    output.put_error(Severity::Fatal, &error);
    // If the socket does not accept it at once, closing the connection suffices.
    let _ = stream.try_write(&output.bytes);
}

fn stopped(mut stopping: watch::Receiver<bool>) -> Stopping {
    Box::pin(async move {
        // A dropped server counts as stopped.
        let _ = stopping.wait_for(|stopping| *stopping).await;
    })
}

/// Returns the error of an idle timeout, when its time has come.
async fn idle_too_long(limit: Option<(Instant, sql::Error)>) -> sql::Error {
    match limit {
        Some((limit, error)) => {
            tokio::time::sleep_until(limit.into()).await;
            error
        }
        None => std::future::pending().await,
    }
}

/// Reports the reason to a client whose login failed.
async fn end(mut channel: StartChannel, failure: Failure) {
    let error = match failure {
        Failure::Statement(error) | Failure::Fatal(error) => error,
        Failure::Gone(error) => {
            tracing::debug!(%error, "client disconnected");
            return;
        }
    };
    tracing::info!(sqlstate = &*error.sqlstate, message = error.message, "terminating connection");
    channel.output().put_error(Severity::Fatal, &error);
    // A client that does not read is abandoned after the time limit.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, channel.close()).await;
}
