//! The engine: a store, its catalog, and what all sessions share.

use std::sync::Arc;

use arc_swap::ArcSwap;
use coprocessors::constraint::ConstraintObserver;
use coprocessors::index::IndexObserver;
use parking_lot::Mutex;
use store::descriptor::Durability;
use store::descriptor::SplitOptions;
use store::observer::RegionObserver;
use store::transaction::TransactionOptions;
use store::{CellBatch, FamilyDescriptor, Scan, Store, TableDescriptor};

use crate::assemble;
use crate::catalog::Catalog;
use crate::catalog::record::{CATALOG_TABLE, FIRST_USER_TABLE, TableRecord};
use crate::catalog::table::Table;
use crate::error::Result;
use crate::timer::Timer;

/// Where constraints stand in the chain of observers.
const CONSTRAINT_PRIORITY: i32 = 100;
/// Where indexes stand: after the constraints, so that a refused row costs no index look-up.
const INDEX_PRIORITY: i32 = 200;

/// A database: one for each open store.
pub struct Engine {
    store: Arc<Store>,
    catalog: ArcSwap<Catalog>,
    /// Held from the commit of a DDL transaction until its catalog is published.
    pub(crate) publishing: Mutex<()>,
    /// Stops statements that run for too long.
    pub(crate) timer: Timer,
}

impl Engine {
    /// Reads the catalog of a store, attaches the coprocessors of its tables and removes what a
    /// crashed DDL statement left behind.
    pub fn open(store: Arc<Store>) -> Result<Arc<Engine>> {
        if !store.tables().iter().any(|table| table.id == CATALOG_TABLE) {
            store.create_table(catalog_descriptor())?;
        }
        let mut catalog = Catalog::default();
        for record in read_records(&store)? {
            catalog = catalog.with_stored(assemble::table(&record)?, record);
        }
        remove_orphans(&store, &catalog)?;
        let engine = Engine {
            store,
            catalog: ArcSwap::from_pointee(catalog),
            publishing: Mutex::new(()),
            timer: Timer::default(),
        };
        for table in engine.catalog().tables() {
            engine.attach_observers(table)?;
        }
        Ok(Arc::new(engine))
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns the catalog as it was committed last.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// Makes a committed catalog the current one; the caller holds `publishing`.
    pub(crate) fn publish(&self, catalog: Arc<Catalog>) {
        self.catalog.store(catalog);
    }

    /// Attaches to a table in the store what keeps its constraints and indexes.
    pub(crate) fn attach_observers(&self, table: &Table) -> Result<()> {
        let mut observers: Vec<(i32, Arc<dyn RegionObserver>)> = Vec::new();
        let constraints = &table.constraints;
        if !constraints.not_null.is_empty() || !constraints.checks.is_empty() {
            let observer = ConstraintObserver::new(constraints.as_ref().clone());
            observers.push((CONSTRAINT_PRIORITY, Arc::new(observer)));
        }
        for index in &table.indexes {
            let observer = IndexObserver::new(Arc::clone(&index.spec));
            observers.push((INDEX_PRIORITY, Arc::new(observer)));
        }
        self.store.set_observers(table.id, observers)?;
        Ok(())
    }
}

fn catalog_descriptor() -> TableDescriptor {
    TableDescriptor {
        id: CATALOG_TABLE,
        name: "bennu.catalog".to_owned(),
        families: vec![FamilyDescriptor::new("0")],
        region_replication: 1,
        durability: Durability::SyncWal,
        split_points: Vec::new(),
        memstore_flush_bytes: None,
        split: SplitOptions::disabled(),
    }
}

fn read_records(store: &Arc<Store>) -> Result<Vec<TableRecord>> {
    let transaction =
        store.begin(TransactionOptions { read_only: true, ..TransactionOptions::default() });
    transaction.begin_statement();
    let mut scanner =
        transaction.scan(CATALOG_TABLE, Scan::range(b"t".to_vec(), Some(b"u".to_vec())))?;
    let mut batch = CellBatch::new();
    let mut records = Vec::new();
    while scanner.next_batch(1_000, &mut batch)? {
        for row in batch.rows() {
            records.push(TableRecord::decode(row.value(0, b"").unwrap_or_default())?);
        }
    }
    Ok(records)
}

/// Drops tables of the store that no catalog entry names: a DDL statement was cut short.
fn remove_orphans(store: &Store, catalog: &Catalog) -> Result<()> {
    for descriptor in store.tables() {
        let known = catalog.tables().iter().any(|table| {
            table.id == descriptor.id
                || table.indexes.iter().any(|index| index.spec.store_table == descriptor.id)
        });
        if !known && descriptor.id.0 >= FIRST_USER_TABLE {
            tracing::info!(table = %descriptor.name, "removing what an unfinished statement left");
            store.drop_table(descriptor.id)?;
        }
    }
    Ok(())
}
