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
use crate::catalog::database::DatabaseRecord;
use crate::catalog::name::is_temporary;
use crate::catalog::record::CoprocessorRecord;
use crate::ddl::{CatalogChanges, Ddl};
use crate::engine::{Cluster, Engine};
use crate::error::{Error, Result};
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
    /// Opens the default database of a store: loads its catalog, attaches the coprocessors of its
    /// tables and removes what crashed DDL statements left behind. Other databases are opened by
    /// [`Engine::open_database`]; those with index builds or followed indexes are opened now.
    ///
    /// If the registry lacks a coprocessor of a table, the engine still opens; writes to that
    /// table are rejected until the coprocessor is detached.
    ///
    /// # Errors
    ///
    /// Errors of the store, a damaged catalog, and errors of the coprocessors of the server.
    pub fn open(store: Arc<Store>, options: EngineOptions) -> Result<Arc<Engine>> {
        let EngineOptions { registry, server_coprocessors } = options;
        let coprocessors = CoprocessorRegistry::new(registry, server_coprocessors, store.env())?;
        let cluster = Arc::new(Cluster::load(store, coprocessors)?);
        let [default, ..] = DatabaseRecord::initial();
        let engine = Arc::new(Engine::load(Arc::clone(&cluster), &default)?);
        cluster.databases.set_default(&engine);
        engine.attach_all()?;
        for database in engine.catalog().databases() {
            if database.oid != default.oid && cluster.has_work(database.catalog_table())? {
                engine.open_other(database)?;
            }
        }
        cluster.store().release_recovered_versions();
        engine.drop_left_temporary()?;
        Ok(engine)
    }

    /// Opens another database of the cluster, unless it is open.
    ///
    /// # Errors
    ///
    /// 3D000 if there is none of this name; 55000 if it accepts no connections; as for
    /// [`Engine::open`].
    pub fn open_database(self: &Arc<Self>, name: &str) -> Result<Arc<Engine>> {
        let catalog = self.catalog();
        let Some(database) = catalog.database_named(name) else {
            bail!(INVALID_CATALOG_NAME: "database \"{name}\" does not exist");
        };
        if database.rejects_connections {
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE: "database \"{name}\" is not currently accepting connections");
        }
        if database.oid == self.database { Ok(Arc::clone(self)) } else { self.open_other(database) }
    }

    fn open_other(&self, database: &DatabaseRecord) -> Result<Arc<Engine>> {
        let (cluster, number) = (self.cluster(), database.oid);
        if let Some(engine) = cluster.databases.get(number) {
            return Ok(engine);
        }
        let _opening = cluster.opening.lock();
        if let Some(engine) = cluster.databases.get(number) {
            return Ok(engine);
        }
        let engine = {
            // No shared object changes between the reading and the registration.
            let _publishing = cluster.publishing.lock();
            let Some(database) = self.catalog().database(number).cloned() else {
                bail!(INVALID_CATALOG_NAME: "database \"{}\" does not exist", database.name);
            };
            let engine = Arc::new(Engine::load(Arc::clone(cluster), &database)?);
            cluster.databases.add(number, &engine);
            engine
        };
        let opened = engine.attach_all().and_then(|()| engine.drop_left_temporary());
        match opened {
            Ok(()) => cluster.databases.set_ready(number),
            Err(_) => drop(cluster.databases.close(number)),
        }
        opened.map(|()| engine)
    }

    /// Attaches the observers of the tables, and follows eventual indexes.
    fn attach_all(&self) -> Result<()> {
        if self.coprocessors.has_server_coprocessors() {
            self.prepare_server_targets()?;
        }
        let catalog = self.catalog();
        for table in catalog.tables() {
            self.attach_observers(table, &catalog)?;
        }
        self.resume_followers()
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
            changes_others: false,
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
