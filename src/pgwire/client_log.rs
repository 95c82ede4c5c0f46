//! Client log: connections, disconnections, failed logins and statements of clients.
//!
//! Failed logins are always logged; connections, disconnections and statements according to
//! `log_connections`, `log_disconnections` and `log_statement`, as in PostgreSQL. All entries
//! have the target [`TARGET`], so that `BENNU_LOG` can filter them separately, and the client's
//! address, user and database.

use std::net::SocketAddr;
use std::time::Duration;

use crate::config::LogOptions;

/// The log target of entries about clients.
pub(crate) const TARGET: &str = "bennu::clients";

/// A client in log entries.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// Its address.
    pub(crate) address: SocketAddr,
    /// Its user; empty before the startup packet.
    pub(crate) user: String,
    /// Its database; empty before the startup packet.
    pub(crate) database: String,
    /// Its session's number; 0 before login.
    pub(crate) process_id: i32,
}

impl Client {
    /// Returns a client before its startup packet.
    pub(crate) fn new(address: SocketAddr) -> Client {
        Client { address, user: String::new(), database: String::new(), process_id: 0 }
    }

    /// Logs the connection.
    pub(crate) fn log_connected(&self, options: &LogOptions) {
        if options.connections {
            tracing::info!(target: TARGET, address = %self.address, "connection received");
        }
    }

    /// Logs the successful login.
    pub(crate) fn authorized(&self, options: &LogOptions, application: &str, is_encrypted: bool) {
        if options.connections {
            let Client { address, user, database, process_id } = self;
            tracing::info!(
                target: TARGET, %address, user, database, process_id, application,
                tls = is_encrypted, "connection authorized"
            );
        }
    }

    /// Logs the failed login.
    pub(crate) fn login_failed(&self, reason: &str) {
        let Client { address, user, database, .. } = self;
        tracing::warn!(target: TARGET, %address, user, database, reason, "login failed");
    }

    /// Logs the disconnection with the duration of the session.
    pub(crate) fn disconnected(&self, options: &LogOptions, session_time: Duration) {
        if options.disconnections {
            let Client { address, user, database, process_id } = self;
            let session_time = format!("{:.3}s", session_time.as_secs_f64());
            tracing::info!(
                target: TARGET, %address, user, database, process_id, session_time, "disconnection"
            );
        }
    }

    /// Logs a statement. `name` is the portal's name in the extended protocol.
    pub(crate) fn log_statement(&self, text: &str, name: Option<&str>) {
        let Client { address, user, database, process_id } = self;
        match name {
            None => tracing::info!(
                target: TARGET, %address, user, database, process_id, statement = text, "statement"
            ),
            Some(name) => tracing::info!(
                target: TARGET, %address, user, database, process_id, name, statement = text,
                "execute"
            ),
        }
    }
}
