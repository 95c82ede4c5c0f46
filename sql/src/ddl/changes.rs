//! Catalog changes of a transaction: a difference over the catalog that was published when its
//! last DDL statement began.
//!
//! ```text
//!   published:   base ─────────▶ newest
//!                  └─▶ catalog      └─▶ catalog, rebased
//! ```
//!
//! A statement sees the newest published catalog with the changes of its transaction
//! ([`CatalogChanges::rebase`]). A DDL statement sees one catalog from beginning to end, even if a
//! newer one is published meanwhile; its locks, and its checks at the end
//! ([`object_locks`](super::object_locks)), compensate for that.

use std::collections::BTreeSet;
use std::sync::Arc;

use store::memory::{self, AccountId};
use store::{TableId, Transaction};

use crate::catalog::Catalog;
use crate::catalog::object::references::ReferenceScope;
use crate::database_slots::DatabaseClaim;
use crate::engine::Engine;
use crate::error::{Error, Result};

/// The effects of the DDL statements of an open transaction.
#[derive(Default)]
pub struct CatalogChanges {
    /// The catalog of this transaction; `None` without changes.
    catalog: Option<Arc<Catalog>>,
    /// The published catalog that it is based on.
    base: Option<Arc<Catalog>>,
    /// The catalog at the start of the DDL statement that is running.
    started: Option<Arc<Catalog>>,
    /// Tables created in the store, to be dropped by a rollback.
    pub(super) created: Vec<TableId>,
    /// Tables to drop from the store after the commit.
    pub(super) dropped: Vec<TableId>,
    /// Sequences whose state is deleted after the commit.
    pub(super) dropped_sequences: Vec<u32>,
    /// Tables whose observers were changed.
    pub(super) touched: Vec<u32>,
    /// Tables whose descriptor is applied to the store after the commit.
    pub(super) altered: Vec<u32>,
    /// The savepoints.
    pub(super) savepoints: Vec<SavepointMark>,
    /// Bytes of the definitions, here and in the store, which are charged to the session until
    /// they are published.
    pub(super) bytes: i64,
    /// Databases that other sessions cannot use until the end of the transaction.
    pub(super) claims: Vec<DatabaseClaim<Engine>>,
}

/// The state of [`CatalogChanges`] at a savepoint.
pub(super) struct SavepointMark {
    catalog: Option<Arc<Catalog>>,
    base: Option<Arc<Catalog>>,
    created: usize,
    dropped: usize,
    dropped_sequences: usize,
    touched: usize,
    altered: usize,
}

impl CatalogChanges {
    /// Returns the catalog that statements of this transaction see.
    pub fn catalog(&self, engine: &Engine) -> Arc<Catalog> {
        let own = self.catalog.as_ref().or(self.started.as_ref());
        own.cloned().unwrap_or_else(|| engine.catalog())
    }

    /// Returns the catalog at the start of the DDL statement that is running, and the published
    /// catalog that it is based on.
    pub(super) fn before(&self, engine: &Engine) -> (Arc<Catalog>, Arc<Catalog>) {
        let base = self.base.clone().unwrap_or_else(|| engine.catalog());
        (self.started.clone().unwrap_or_else(|| Arc::clone(&base)), base)
    }

    pub(super) fn set_catalog(&mut self, catalog: Catalog) {
        self.catalog = Some(Arc::new(catalog));
    }

    /// Begins a DDL statement, which sees one catalog until [`CatalogChanges::end_definition`];
    /// returns whether it is the outermost one.
    ///
    /// # Errors
    ///
    /// Those of [`CatalogChanges::rebase`].
    pub fn begin_definition(&mut self, engine: &Engine) -> Result<bool> {
        if self.started.is_some() {
            return Ok(false);
        }
        self.rebase(engine)?;
        if self.catalog.is_none() {
            self.base = Some(engine.catalog());
        }
        self.started = self.catalog.clone().or_else(|| self.base.clone());
        Ok(true)
    }

    /// Ends the DDL statement begun by [`CatalogChanges::begin_definition`].
    pub fn end_definition(&mut self) {
        self.started = None;
    }

    /// Applies the changes to the newest catalog, if another one was published since.
    ///
    /// # Errors
    ///
    /// 40001 if another transaction has changed an entry that this one has changed or references.
    /// The locks of DDL statements prevent that.
    pub fn rebase(&mut self, engine: &Engine) -> Result<()> {
        let (Some(own), Some(base), None) = (&self.catalog, &self.base, &self.started) else {
            return Ok(());
        };
        let newest = engine.catalog();
        if Arc::ptr_eq(base, &newest) {
            return Ok(());
        }
        if let Some(entry) = Catalog::conflict(base, own, &newest, ReferenceScope::Declared) {
            tracing::error!(?entry, "two transactions changed the same catalog entry");
            bail!(SERIALIZATION_FAILURE: "could not serialize access due to concurrent definitions";
                hint "Retry the transaction.");
        }
        let rebased = newest.with_entries(own, &own.difference(base));
        debug_assert_eq!(rebased.check(), Ok(()), "a catalog with the changes of a transaction");
        self.catalog = Some(Arc::new(rebased));
        self.base = Some(newest);
        Ok(())
    }

    /// Returns the part that a reader needs.
    pub fn reader_view(&self) -> CatalogChanges {
        CatalogChanges {
            catalog: self.catalog.clone(),
            base: self.base.clone(),
            started: self.started.clone(),
            dropped: self.dropped.clone(),
            ..CatalogChanges::default()
        }
    }

    /// Returns whether the transaction has changed the catalog.
    pub fn is_empty(&self) -> bool {
        self.catalog.is_none()
    }

    /// Returns whether it has the same catalog as another one.
    pub(super) fn is_same(&self, other: Option<&Arc<Catalog>>) -> bool {
        match (&self.catalog, other) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (own, other) => own.is_none() && other.is_none(),
        }
    }

    /// Returns the transaction's own catalog, if it has changed anything.
    pub(super) fn own(&self) -> Option<Arc<Catalog>> {
        self.catalog.clone()
    }

    /// Returns whether the transaction has created a store table: a new table, or the new rows of
    /// one that it has truncated.
    pub fn creates(&self, table: TableId) -> bool {
        self.created.contains(&table)
    }

    /// Returns whether the transaction has claimed a database.
    pub(super) fn has_claim(&self, database: u32) -> bool {
        self.claims.iter().any(|claim| claim.database() == database)
    }

    /// Returns whether the transaction has dropped a table.
    pub fn drops(&self, table: TableId) -> bool {
        self.dropped.contains(&table)
    }

    /// Sets a savepoint.
    pub(super) fn savepoint(&mut self) {
        let mark = SavepointMark {
            catalog: self.catalog.clone(),
            base: self.base.clone(),
            created: self.created.len(),
            dropped: self.dropped.len(),
            dropped_sequences: self.dropped_sequences.len(),
            touched: self.touched.len(),
            altered: self.altered.len(),
        };
        self.savepoints.push(mark);
    }

    /// Undoes the changes since a savepoint, which remains.
    pub(super) fn rollback_to(&mut self, engine: &Engine, number: usize) {
        debug_assert!(number < self.savepoints.len(), "savepoint {number} was released");
        self.savepoints.truncate(number + 1);
        let Some(mark) = self.savepoints.last() else { return };
        debug_assert!(
            self.dropped.len() >= mark.dropped && self.altered.len() >= mark.altered,
            "a savepoint with more changes than its transaction"
        );
        let undone = std::mem::replace(&mut self.catalog, mark.catalog.clone());
        self.base.clone_from(&mark.base);
        self.dropped.truncate(mark.dropped);
        self.dropped_sequences.truncate(mark.dropped_sequences);
        let altered = self.altered.split_off(mark.altered);
        let created = self.created.split_off(mark.created);
        let touched = mark.touched;
        // The next DDL statement or the commit reports the error.
        let _ = self.rebase(engine);
        forget_sequences(engine, undone.as_deref(), &self.catalog(engine));
        drop_added_families(engine, &self.catalog(engine), &altered);
        self.restore_observers(engine);
        // The next holder of their locks attaches other observers.
        self.touched.truncate(touched);
        engine.drop_tables(&created);
    }

    /// Undoes all changes and rolls the transaction back.
    pub fn rollback(&mut self, engine: &Engine, transaction: &Transaction) {
        let changes = std::mem::take(self);
        let restored = CatalogChanges { touched: changes.touched, ..CatalogChanges::default() };
        // Before the locks are released: the next holder of a table's lock must find the table's
        // own observers and families.
        restored.restore_observers(engine);
        drop_added_families(engine, &engine.catalog(), &changes.altered);
        forget_sequences(engine, changes.catalog.as_deref(), &engine.catalog());
        transaction.rollback();
        engine.drop_tables(&changes.created);
    }

    /// Publishes the changes to all sessions. Called after the commit; `publishing` must be held
    /// since before the commit and the rebase.
    pub fn publish(&mut self, engine: &Engine, transaction: &Transaction) {
        let changes = std::mem::take(self);
        memory::give_to_server(changes.bytes);
        let _server = AccountId::SERVER.enter();
        if let Some(catalog) = changes.catalog {
            apply_descriptors(engine, &catalog, &changes.altered);
            engine.publish(catalog, transaction.required_commit());
        }
        engine.drop_when_unreferenced(changes.dropped, transaction);
        forget_sequence_states(engine, &changes.dropped_sequences);
    }

    /// Attaches the observers of the touched tables according to the visible catalog.
    fn restore_observers(&self, engine: &Engine) {
        let catalog = self.catalog(engine);
        for id in &self.touched {
            let Some(table) = catalog.table(*id) else { continue };
            if let Err(error) = engine.attach_observers(table, &catalog) {
                let table = &table.name;
                tracing::error!(%table, %error, "could not restore the observers of a table");
            }
        }
    }
}

/// Deletes the states of the sequences that only an undone catalog has.
fn forget_sequences(engine: &Engine, undone: Option<&Catalog>, kept: &Catalog) {
    let Some(undone) = undone else { return };
    let published = engine.catalog();
    let created = undone.difference(kept).into_iter().filter_map(|entry| {
        let number = entry.object_id()?.number();
        let id = undone.sequence(number)?.id;
        let has_it = |one: &Catalog| one.sequence(number).is_some_and(|known| known.id == id);
        (!has_it(kept) && !has_it(&published)).then_some(id)
    });
    forget_sequence_states(engine, &created.collect::<Vec<_>>());
}

fn forget_sequence_states(engine: &Engine, ids: &[u32]) {
    if ids.is_empty() {
        return;
    }
    if let Err(error) = engine.sequences.forget(ids) {
        tracing::warn!(sequences = ?ids, %error, "could not remove the states of sequences");
    }
}

/// Applies the descriptors of these tables to the store. Failures are retried at the next start.
fn apply_descriptors(engine: &Engine, catalog: &Catalog, tables: &[u32]) {
    let tables: BTreeSet<u32> = tables.iter().copied().collect();
    let records = tables.iter().filter_map(|table| catalog.record(*table));
    if let Err(error) = engine.apply_descriptors(records) {
        tracing::error!(?tables, %error, "could not apply table descriptors to the store");
    }
}

/// Drops the column families that undone statements have added to these tables in the store.
/// Failures are retried at the next start.
fn drop_added_families(engine: &Engine, catalog: &Catalog, tables: &[u32]) {
    let tables: BTreeSet<u32> = tables.iter().copied().collect();
    for record in tables.iter().filter_map(|table| catalog.record(*table)) {
        if let Err(error) = engine.drop_families_behind(&record.descriptor) {
            tracing::error!(table = %record.name, %error, "could not drop column families");
        }
    }
}
