//! What a transaction has done to the catalog, shared by its session and the functions that its
//! statements call.
//!
//! A definition works on what was done so far, and nobody else does meanwhile: what a function sees
//! that it calls is the catalog as it was before.

use std::sync::Arc;

use parking_lot::Mutex;
use store::Transaction;

use crate::catalog::Catalog;
use crate::ddl::Changes;
use crate::engine::Engine;
use crate::error::{Error, Result};

/// See the module.
#[derive(Clone, Default)]
pub struct SharedChanges(Arc<Mutex<Changes>>);

impl SharedChanges {
    /// Returns the catalog that statements of the transaction see.
    pub fn catalog(&self, engine: &Engine) -> Arc<Catalog> {
        self.0.lock().catalog(engine)
    }

    /// Returns whether the transaction has not changed the catalog.
    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Returns whether the transaction has dropped a table.
    pub fn drops(&self, table: store::TableId) -> bool {
        self.0.lock().drops(table)
    }

    /// Returns whether the transaction has created a table of the store.
    pub fn creates(&self, table: store::TableId) -> bool {
        self.0.lock().creates(table)
    }

    /// Changes the catalog.
    ///
    /// # Errors
    ///
    /// Those of `run`; 0A000 if a function that it called has changed the catalog as well.
    pub fn define<T>(&self, run: impl FnOnce(&mut Changes) -> Result<T>) -> Result<T> {
        let mut changes = {
            let mut shared = self.0.lock();
            let seen = shared.seen();
            std::mem::replace(&mut *shared, seen)
        };
        let before = changes.catalog.clone();
        let result = run(&mut changes);
        let mut shared = self.0.lock();
        let within = std::mem::replace(&mut *shared, changes);
        let is_same = match (&within.catalog, &before) {
            (Some(now), Some(before)) => Arc::ptr_eq(now, before),
            (now, before) => now.is_none() && before.is_none(),
        };
        if is_same {
            return result;
        }
        // They are to go when the transaction is undone.
        shared.created.extend(within.created);
        shared.touched.extend(within.touched);
        let hint = "Call the function in a statement of its own.";
        result.and(Err(Error::not_supported("a definition within a definition", hint)))
    }

    /// Notes a savepoint; returns its number.
    pub fn savepoint(&self) -> usize {
        let mut changes = self.0.lock();
        changes.savepoint();
        changes.savepoints.len() - 1
    }

    /// Forgets a savepoint and those after it.
    pub fn release(&self, number: usize) {
        self.0.lock().savepoints.truncate(number);
    }

    /// Takes back what was done after a savepoint, which stays.
    pub fn rollback_to(&self, engine: &Engine, number: usize) {
        self.0.lock().rollback_to(engine, number);
    }

    /// Takes everything back and rolls the transaction back.
    pub fn rollback(&self, engine: &Engine, transaction: &Transaction) {
        let mut changes = std::mem::take(&mut *self.0.lock());
        changes.rollback(engine, transaction);
    }

    /// Makes the changes those of all sessions; called after the commit with `publishing` held
    /// since before it.
    pub fn publish(&self, engine: &Engine, transaction: &Transaction) {
        let mut changes = std::mem::take(&mut *self.0.lock());
        changes.publish(engine, transaction);
    }
}
