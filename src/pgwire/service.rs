//! State that all connections of a server share.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::config::LogOptions;
use crate::database::Database;
use crate::pgwire::authentication::Authentication;
use crate::pgwire::cancel::CancelRegistry;
use crate::pgwire::incoming::IncomingMessages;
use crate::pgwire::login_throttle::LoginThrottle;

/// State that all connections of a server share.
pub(crate) struct Service {
    /// Where sessions are opened.
    pub(crate) database: Database,
    /// How TLS is set up, if it is offered.
    pub(crate) tls: Option<TlsAcceptor>,
    /// Clients that do not use TLS are turned away.
    pub(crate) tls_required: bool,
    /// Who may come in.
    pub(crate) authentication: Authentication,
    /// The open sessions.
    pub(crate) cancels: Arc<CancelRegistry>,
    /// Their messages that have come in part.
    pub(crate) incoming: Arc<IncomingMessages>,
    /// Startup slots and failed logins.
    pub(crate) login_throttle: Arc<LoginThrottle>,
    /// How many sessions there may be.
    pub(crate) connections_max: usize,
    /// What is logged of clients.
    pub(crate) log: LogOptions,
    /// Turns true when the server stops.
    pub(crate) stopping: watch::Receiver<bool>,
}
