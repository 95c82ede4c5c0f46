//! Session of a client on a database: its connection limit and its settings.

use std::sync::Arc;

use crate::catalog::access::object_access::AccessSubject;
use crate::catalog::access::privilege::CONNECT;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::session::{Session, SessionOptions};

impl Session {
    /// Opens a session of a client on the engine of a database.
    ///
    ///
    /// # Errors
    ///
    /// 3D000 if the database was dropped meanwhile; 42501 without the privilege CONNECT; 53300 if
    /// it has as many sessions as its CONNECTION LIMIT.
    pub fn connect(engine: &Arc<Engine>, options: SessionOptions) -> Result<Session> {
        let session = Session::open(engine, options);
        let Some(record) = engine.record().filter(|_| engine.is_open()) else {
            bail!(INVALID_CATALOG_NAME: "the database of the connection was dropped");
        };
        let (catalog, role) = (session.catalog(), session.activity.role.number);
        let subject = AccessSubject::Database(record.oid);
        if catalog.privileges_on(role, subject).0 & CONNECT == 0 {
            bail!(INSUFFICIENT_PRIVILEGE: "permission denied for database \"{}\"", record.name;
                detail "User does not have CONNECT privilege.");
        }
        let others = engine.sessions.others_in(record.oid, session.process_id);
        if record.connection_limit.is_some_and(|limit| others >= limit as usize) {
            bail!(TOO_MANY_CONNECTIONS: "too many connections for database \"{}\"", record.name);
        }
        Ok(session)
    }

    /// Applies the settings of the database, of the role, and of the role in the database, after
    /// those of the server. Who stored them had the right to, so the session needs none.
    pub fn apply_stored_settings(&mut self) {
        let catalog = self.catalog();
        let role = catalog.role(self.settings.roles().authenticated.number);
        let mut stored = self.engine.record().map_or_else(Vec::new, |one| one.settings.clone());
        if let Some(role) = role {
            stored.extend(role.settings_in(self.engine.database).cloned());
        }
        for (name, value) in stored {
            if let Err(error) = self.settings.set_stored(&catalog, &name, &value) {
                self.notice("WARNING", error);
            }
        }
    }
}
