//! State that is shared by all connections of a server.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::config::LogOptions;
use crate::database::Database;
use crate::pgwire::authentication::Authentication;
use crate::pgwire::cancel::CancelRegistry;
use crate::pgwire::incoming::IncomingMessages;
use crate::pgwire::login_throttle::LoginThrottle;

/// State that is shared by all connections of a server.
pub(crate) struct Service {
    /// The database on which sessions are opened.
    pub(crate) database: Database,
    /// The TLS setup, if TLS is offered.
    pub(crate) tls: Option<TlsAcceptor>,
    /// Clients without TLS are rejected.
    pub(crate) tls_required: bool,
    /// The authentication method.
    pub(crate) authentication: Authentication,
    /// The open sessions.
    pub(crate) cancels: Arc<CancelRegistry>,
    /// Their incomplete messages.
    pub(crate) incoming: Arc<IncomingMessages>,
    /// Startup slots and failed logins.
    pub(crate) login_throttle: Arc<LoginThrottle>,
    /// Maximum number of sessions.
    pub(crate) connections_max: usize,
    /// Log settings for clients.
    pub(crate) log: LogOptions,
    /// Becomes true when the server stops.
    pub(crate) stopping: watch::Receiver<bool>,
}
