//! Store and engine together: an open data directory that sessions can be opened on.
//!
//! What the server, the shell, the demo, tests and embedding programs start from.

use std::path::Path;
use std::sync::Arc;

use sql::session::{Session, SessionOptions};
use sql::{Engine, EngineOptions};
use store::{Options, Store};

use crate::error::Result;

/// Bytes of log that are left for the next start to replay: a few hundredths of a second.
const REPLAY_BYTES_MAX: u64 = 4 << 20;

/// The user of sessions that name none.
pub const DEFAULT_USER: &str = "bennu";

/// An open data directory.
#[derive(Clone)]
pub struct Database {
    engine: Arc<Engine>,
}

impl Database {
    /// Opens a data directory, creating it if need be.
    ///
    /// # Errors
    ///
    /// What the store reports: the directory is in use, damaged or not accessible.
    pub fn open(directory: &Path, options: Options) -> Result<Database> {
        Database::open_with(directory, options, EngineOptions::default())
    }

    /// Opens a data directory with coprocessors of the program's own, or of the server.
    ///
    /// # Errors
    ///
    /// As for [`Database::open`], and what is wrong with coprocessors of the server.
    pub fn open_with(
        directory: &Path,
        options: Options,
        engine: EngineOptions,
    ) -> Result<Database> {
        let store = Store::open(directory, options)?;
        Ok(Database { engine: Engine::open(store, engine)? })
    }

    /// Opens a session.
    pub fn session(&self, user: &str) -> Session {
        Session::open(&self.engine, SessionOptions { user: user.to_owned() })
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Gives back what sequences have reserved, flushes what the next start would have to replay,
    /// syncs the log and stops background work.
    /// Sessions that are still open get errors.
    ///
    /// # Errors
    ///
    /// If the log cannot be synced.
    pub fn shut_down(&self) -> Result<()> {
        if let Err(error) = self.engine.give_back() {
            // Those values are left out.
            tracing::warn!(%error, "could not give back values of sequences before the stop");
        }
        let store = self.engine.store();
        if store.status().log_bytes > REPLAY_BYTES_MAX
            && let Err(error) = store.flush_all()
        {
            // The log holds everything; the next start is only slower.
            tracing::warn!(%error, "could not flush before the stop");
        }
        Ok(store.shut_down()?)
    }
}
