//! The engine: a store, its catalog, and the sessions on it.

use std::sync::Arc;

use store::Store;

use crate::error::Result;
use crate::session::Session;

/// A database: one for each open store.
pub struct Engine {
    _private: (),
}

/// Who a session belongs to.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// The user.
    pub user: String,
    /// `application_name`
    pub application_name: String,
}

impl Engine {
    /// Reads the catalog of a store, attaches the coprocessors of its tables and removes what a
    /// crashed DDL statement left behind.
    pub fn open(store: Arc<Store>) -> Result<Arc<Engine>> {
        let _ = store;
        todo!("sql/engine")
    }

    /// Opens a session.
    pub fn session(self: &Arc<Engine>, options: SessionOptions) -> Session {
        let _ = options;
        todo!("sql/engine")
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<Store> {
        todo!("sql/engine")
    }
}
