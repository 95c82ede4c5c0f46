//! The catalog changes of a transaction, shared by its session and the functions that its
//! statements call.
//!
//! While a DDL statement runs, functions that it calls see the catalog as of its start.

use std::sync::Arc;

use parking_lot::Mutex;
use store::{Transaction, memory};

use crate::catalog::Catalog;
use crate::ddl::CatalogChanges;
use crate::engine::Engine;
use crate::error::{Error, Result};

/// The shared [`CatalogChanges`] of a transaction.
#[derive(Clone, Default)]
pub struct SharedChanges(Arc<Mutex<CatalogChanges>>);

impl SharedChanges {
    /// Returns the catalog that statements of the transaction see: the newest one with its
    /// changes.
    pub fn catalog(&self, engine: &Engine) -> Arc<Catalog> {
        let mut changes = self.0.lock();
        if let Err(error) = changes.rebase(engine) {
            // The next DDL statement or the commit reports the error.
            tracing::debug!(%error, "could not rebase the catalog changes of a transaction");
        }
        changes.catalog(engine)
    }

    /// Applies the changes to the newest catalog.
    ///
    /// # Errors
    ///
    /// 40001 if another transaction has changed the same entry.
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

    /// Runs a DDL statement.
    ///
    /// # Errors
    ///
    /// Those of `run`; 40001 if another transaction has changed the same entry; 0A000 if a
    /// function that it called has changed the catalog as well.
    pub fn define<T>(
        &self,
        engine: &Engine,
        run: impl FnOnce(&mut CatalogChanges) -> Result<T>,
    ) -> Result<T> {
        let (mut changes, is_outermost) = {
            let mut shared = self.0.lock();
            let is_outermost = shared.begin_definition(engine)?;
            let seen = shared.reader_view();
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
        // They must be dropped or restored when the transaction is undone.
        shared.created.extend(within.created);
        shared.touched.extend(within.touched);
        let hint = "Call the function in a separate statement.";
        result.and(Err(Error::not_supported("a DDL statement within a DDL statement", hint)))
    }

    /// Counts bytes that the definitions of the transaction have taken from the session's account.
    pub fn count_bytes(&self, bytes: i64) {
        self.0.lock().bytes += bytes;
    }

    /// Sets a savepoint; returns its number.
    pub fn savepoint(&self) -> usize {
        let mut changes = self.0.lock();
        changes.savepoint();
        changes.savepoints.len() - 1
    }

    /// Releases a savepoint and those after it.
    pub fn release(&self, number: usize) {
        self.0.lock().savepoints.truncate(number);
    }

    /// Undoes the changes since a savepoint, which remains.
    pub fn rollback_to(&self, engine: &Engine, number: usize) {
        let mut changes = self.0.lock();
        let ((), bytes) = memory::measure(|| changes.rollback_to(engine, number));
        changes.bytes += bytes as i64;
    }

    /// Undoes all changes and rolls the transaction back.
    pub fn rollback(&self, engine: &Engine, transaction: &Transaction) {
        let mut changes = std::mem::take(&mut *self.0.lock());
        changes.rollback(engine, transaction);
    }

    /// Publishes the changes to all sessions. Called after the commit; `publishing` must be held
    /// since before the commit.
    pub fn publish(&self, engine: &Engine, transaction: &Transaction) {
        let mut changes = std::mem::take(&mut *self.0.lock());
        changes.publish(engine, transaction);
    }
}
