//! An open data directory: store and engine, on which sessions are opened.
//!
//! The server, the shell, the demo, tests and embedding programs start from it.

use std::path::Path;
use std::sync::Arc;

use sql::session::{Session, SessionOptions};
use sql::{Engine, EngineOptions};
use store::{Options, Store};

use crate::error::Result;

/// Maximum bytes of log that a shutdown leaves for replay at the next start: some tens of
/// milliseconds.
const REPLAY_BYTES_MAX: u64 = 4 << 20;

/// User of sessions that were opened without one.
pub const DEFAULT_USER: &str = "bennu";

/// The default database.
pub const DEFAULT_DATABASE: &str = "bennu";

/// An open data directory.
#[derive(Clone)]
pub struct Database {
    engine: Arc<Engine>,
}

impl Database {
    /// Opens a data directory and creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// Errors of the store: the directory is in use, corrupt or not accessible.
    pub fn open(directory: &Path, options: Options) -> Result<Database> {
        Database::open_with(directory, options, EngineOptions::default())
    }

    /// Opens a data directory with additional coprocessors of the program or the server.
    ///
    /// # Errors
    ///
    /// As for [`Database::open`], and errors of the server's coprocessors.
    pub fn open_with(
        directory: &Path,
        options: Options,
        engine: EngineOptions,
    ) -> Result<Database> {
        let options = Options { holds_recovered_versions: true, ..options };
        let store = Store::open(directory, options)?;
        Ok(Database { engine: Engine::open(store, engine)? })
    }

    /// Opens a session on the default database.
    pub fn session(&self, user: &str) -> Session {
        Session::open(&self.engine, SessionOptions { user: user.to_owned() })
    }

    /// Opens a session on a database, which is opened if it is not open.
    ///
    /// # Errors
    ///
    /// 3D000 if it does not exist, 55000 if it accepts no connections, 53300 above its connection
    /// limit; errors of the store.
    pub fn connect(&self, database: &str, user: &str) -> sql::Result<Session> {
        let engine = self.engine.open_database(database)?;
        Session::connect(&engine, SessionOptions { user: user.to_owned() })
    }

    /// Returns whether a database exists.
    pub fn has_database(&self, name: &str) -> bool {
        self.engine.catalog().database_named(name).is_some()
    }

    /// Returns the engine of the default database.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Returns the reserved values of sequences, flushes memstores if the log is long, syncs the
    /// log and stops background work. Sessions that are still open get errors.
    ///
    /// # Errors
    ///
    /// If the log cannot be synced.
    pub fn shut_down(&self) -> Result<()> {
        if let Err(error) = self.engine.return_reserved() {
            // The reserved values are skipped.
            tracing::warn!(%error, "could not return cached sequence values at shutdown");
        }
        let store = self.engine.store();
        if store.status().log_bytes > REPLAY_BYTES_MAX
            && let Err(error) = store.flush_all()
        {
            // The log holds all commits; the next start only takes longer.
            tracing::warn!(%error, "could not flush memstores at shutdown");
        }
        Ok(store.shut_down()?)
    }
}
