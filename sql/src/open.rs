//! Opening of an engine on a store, with the coprocessors of a program.
//!
//! [`Engine::open`] loads the catalog, attaches the observers of all tables, and removes what a
//! crash left: unfinished DDL and temporary objects.

use std::sync::Arc;

use coprocessors::registry::Registry;
use store::Store;
use store::transaction::{TableLockMode, TransactionOptions};
use types::expr::EvalContext;

use crate::binder::EmptySystemCatalog;
use crate::catalog::name::is_temporary;
use crate::catalog::record::CoprocessorRecord;
use crate::ddl::{CatalogChanges, Ddl};
use crate::engine::Engine;
use crate::error::Result;
use crate::table_coprocessors::CoprocessorRegistry;

/// Options of an engine that are not stored.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Coprocessors that ATTACH COPROCESSOR accepts. A program adds its own with
    /// [`Registry::add`]; see `examples/coprocessor.rs`.
    pub registry: Registry,
    /// Coprocessors of the server, on all tables. The tables that they write to are created with
    /// the first table that they observe.
    pub server_coprocessors: Vec<CoprocessorRecord>,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            registry: coprocessors::builtin::registry(),
            server_coprocessors: Vec::new(),
        }
    }
}

impl Engine {
    /// Loads the catalog of a store, attaches the coprocessors of its tables and removes what a
    /// crashed DDL statement left behind.
    ///
    /// If the registry lacks a coprocessor of a table, the engine still opens; writes to that
    /// table are rejected until the coprocessor is detached.
    ///
    /// # Errors
    ///
    /// Errors of the store, a damaged catalog, and errors of the coprocessors of the server.
    pub fn open(store: Arc<Store>, options: EngineOptions) -> Result<Arc<Engine>> {
        let EngineOptions { registry, server_coprocessors } = options;
        let has_server_coprocessors = !server_coprocessors.is_empty();
        let coprocessors = CoprocessorRegistry::new(registry, server_coprocessors, store.env())?;
        let engine = Arc::new(Engine::load(store, coprocessors)?);
        if has_server_coprocessors {
            engine.prepare_server_targets()?;
        }
        let catalog = engine.catalog();
        for table in catalog.tables() {
            engine.attach_observers(table, &catalog)?;
        }
        engine.resume_followers()?;
        engine.drop_left_temporary()?;
        Ok(engine)
    }

    /// Drops the temporary objects of sessions that a crash ended.
    fn drop_left_temporary(&self) -> Result<()> {
        let catalog = self.catalog();
        let names = catalog.schemas().map(|schema| schema.name.clone());
        let left: Vec<String> = names.filter(|name| is_temporary(name)).collect();
        self.define(|ddl| left.iter().try_for_each(|schema| ddl.drop_temporary(schema)))
    }

    /// Creates the tables that coprocessors of the server write to.
    fn prepare_server_targets(&self) -> Result<()> {
        let catalog = self.catalog();
        self.define(|ddl| {
            catalog.tables().into_iter().try_for_each(|table| ddl.prepare_server_targets(table))
        })
    }

    /// Changes the catalog in a separate transaction.
    fn define(&self, change: impl FnOnce(&mut Ddl<'_>) -> Result<()>) -> Result<()> {
        let transaction = Arc::new(self.store().begin(TransactionOptions::default()));
        transaction.begin_statement();
        let mut changes = CatalogChanges::default();
        changes.begin_definition(self)?;
        let changed = change(&mut Ddl {
            engine: self,
            transaction: &transaction,
            changes: &mut changes,
            eval: EvalContext::default(),
            roles: Default::default(),
            path: Arc::default(),
            system: Box::new(EmptySystemCatalog),
            settings: None,
            notices: Vec::new(),
            stale_indexes: Vec::new(),
            stops_at_locks: false,
            index_drop_mode: TableLockMode::AccessExclusive,
            retry_reason: None,
            waits_without_queueing: false,
            pending: Vec::new(),
            process_id: 0,
        });
        let _publishing = self.publishing.lock();
        let committed = changed.and_then(|()| {
            transaction.commit()?.durable.wait()?;
            Ok(())
        });
        match committed {
            Ok(()) => changes.publish(self, &transaction),
            Err(_) => changes.rollback(self, &transaction),
        }
        committed
    }
}
