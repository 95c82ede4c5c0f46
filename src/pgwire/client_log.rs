//! What the server's log says of clients: who came and went, whose login failed, what they ran.
//!
//! Failed logins are always logged; connections, their ends and statements if `log_connections`,
//! `log_disconnections` and `log_statement` say so, as in PostgreSQL. All of it has the target
//! [`TARGET`], so that `BENNU_LOG` can choose it apart from the rest, and names the client's
//! address, its user and its database.

use std::net::SocketAddr;
use std::time::Duration;

use crate::config::LogOptions;

/// The target of what is logged of clients.
pub(crate) const TARGET: &str = "bennu::clients";

/// Whom an entry is about.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// Where it connects from.
    pub(crate) address: SocketAddr,
    /// The user that it names; empty until it does.
    pub(crate) user: String,
    /// The database that it names; empty until it does.
    pub(crate) database: String,
    /// The number of its session; 0 until there is one.
    pub(crate) process_id: i32,
}

impl Client {
    /// Returns a client that has said nothing yet.
    pub(crate) fn at(address: SocketAddr) -> Client {
        Client { address, user: String::new(), database: String::new(), process_id: 0 }
    }

    /// Logs that it has connected.
    pub(crate) fn connected(&self, options: &LogOptions) {
        if options.connections {
            tracing::info!(target: TARGET, address = %self.address, "connection received");
        }
    }

    /// Logs that it was let in.
    pub(crate) fn authorized(&self, options: &LogOptions, application: &str, is_encrypted: bool) {
        if options.connections {
            let Client { address, user, database, process_id } = self;
            tracing::info!(
                target: TARGET, %address, user, database, process_id, application,
                tls = is_encrypted, "connection authorized"
            );
        }
    }

    /// Logs that it could not prove who it is.
    pub(crate) fn login_failed(&self, reason: &str) {
        let Client { address, user, database, .. } = self;
        tracing::warn!(target: TARGET, %address, user, database, reason, "login failed");
    }

    /// Logs that it is gone after so much time.
    pub(crate) fn disconnected(&self, options: &LogOptions, session_time: Duration) {
        if options.disconnections {
            let Client { address, user, database, process_id } = self;
            let session_time = format!("{:.3}s", session_time.as_secs_f64());
            tracing::info!(
                target: TARGET, %address, user, database, process_id, session_time, "disconnection"
            );
        }
    }

    /// Logs a statement. `name`: that of the portal, if it runs by the extended protocol.
    pub(crate) fn runs(&self, text: &str, name: Option<&str>) {
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
