//! What a transaction has done to the catalog, shared by its session and the functions that its
//! statements call.
//!
//! A definition works on what was done so far: what a function sees that it calls is the catalog as
//! it was before.

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
    /// Returns the catalog that statements of the transaction see: the newest one with its changes.
    pub fn catalog(&self, engine: &Engine) -> Arc<Catalog> {
        let mut changes = self.0.lock();
        if let Err(error) = changes.rebase(engine) {
            // The next definition reports it, or the commit.
            tracing::debug!(%error, "a transaction sees the catalog as it was");
        }
        changes.catalog(engine)
    }

    /// Applies the changes to the newest catalog.
    ///
    /// # Errors
    ///
    /// 40001 if somebody else has changed the same.
    pub fn rebase(&self, engine: &Engine) -> Result<()> {
        self.0.lock().rebase(engine)
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
    /// Those of `run`; 40001 if somebody else has changed the same; 0A000 if a function that it
    /// called has changed the catalog as well.
    pub fn define<T>(
        &self,
        engine: &Engine,
        run: impl FnOnce(&mut Changes) -> Result<T>,
    ) -> Result<T> {
        let (mut changes, is_outermost) = {
            let mut shared = self.0.lock();
            let is_outermost = shared.begin_definition(engine)?;
            let seen = shared.seen();
            (std::mem::replace(&mut *shared, seen), is_outermost)
        };
        let before = changes.own();
        let result = run(&mut changes);
        if is_outermost {
            changes.end_definition();
        }
        let mut shared = self.0.lock();
        let within = std::mem::replace(&mut *shared, changes);
        if within.is_same(before.as_ref()) {
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
