//! Locks of catalog objects and names, which order DDL statements of concurrent transactions.
//!
//! A DDL statement works on the catalog as of its start. The set of its changes is known when it
//! finishes, and is locked then, until the end of the transaction:
//!
//! * the names that it uses for objects, exclusively: a statement that uses the same name waits,
//!   and then finds the name in use or not;
//! * the objects that it has changed or dropped, exclusively;
//! * the objects to which it has added references, shared: the schema, types, functions, tables.
//!
//! If a lock is not available, or another transaction has published a conflicting change
//! meanwhile, the statement is undone, waits, and runs again from its beginning on the newest
//! catalog. A table is locked before its observers change, because these take effect immediately
//! ([`Ddl::lock_observed_table`]).
//!
//! The locks are rows of the shared catalog that do not exist. Those of objects and names of a
//! database have its number.
//!
//! Tables and sequences also have locks in the eight table lock modes, which other statements
//! acquire, too ([`Ddl::lock_relation`]).
//!
//! Source: PostgreSQL's locks of pg_depend's objects, and the waits of unique indexes of system
//! catalogs. Difference: PostgreSQL lets two transactions change a table concurrently if their
//! lock modes allow it, as for two CREATE INDEX; here the second one waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use store::transaction::{LockMode, LockWait, TableLockMode};

use crate::catalog::difference::TakenName;
use crate::catalog::object::references::ReferenceScope;
use crate::catalog::record::CATALOG_TABLE;
use crate::catalog::{Catalog, CatalogEntry, ObjectId};
use crate::ddl::Ddl;
use crate::error::{Error, Result, sqlstate};

/// The mode for changed objects. It is not the strongest one, which also excludes readers.
const CHANGED_MODE: TableLockMode = TableLockMode::Exclusive;
/// The mode for referenced objects.
const REFERENCED_MODE: TableLockMode = TableLockMode::RowShare;

/// The reason why a DDL statement must run again.
#[derive(Debug, Clone)]
pub enum RetryReason {
    /// Others hold a lock: the row of the catalog table, and the requested mode.
    Lock(Vec<u8>, TableLockMode),
    /// The same; the wait must not block later requests.
    LockBeside(Vec<u8>, TableLockMode),
    /// Others have changed objects that it depends on.
    Outdated,
}

impl Ddl<'_> {
    /// Locks a table whose observers are about to change, and records it.
    ///
    /// # Errors
    ///
    /// Those that make the statement run again.
    pub(super) fn lock_observed_table(&mut self, table: u32) -> Result<()> {
        let (_, base) = self.changes.before(self.engine);
        if let Some(known) = base.table(table) {
            self.lock_catalog_row(object_lock(self.engine.database, table), CHANGED_MODE)?;
            let newest = self.published();
            if !newest.table(table).is_some_and(|newest| Arc::ptr_eq(newest, known)) {
                return Err(self.outdated());
            }
        }
        self.changes.touched.push(table);
        Ok(())
    }

    /// Locks the objects that the statement has changed or references, and checks that they have
    /// not changed since it began.
    ///
    /// # Errors
    ///
    /// Those that make the statement run again.
    pub fn finish(&mut self) -> Result<()> {
        let (started, base) = self.changes.before(self.engine);
        let own = self.changes.catalog(self.engine);
        if Arc::ptr_eq(&started, &own) {
            return Ok(());
        }
        // They are locked in key order, which makes deadlocks rare.
        for (row, mode) in wanted_locks(self.engine.database, (&base, &started, &own)) {
            self.lock_catalog_row(row, mode)?;
        }
        let newest = self.published();
        if !Arc::ptr_eq(&newest, &base)
            && Catalog::conflict(&base, &own, &newest, ReferenceScope::Possible).is_some()
        {
            return Err(self.outdated());
        }
        Ok(())
    }

    /// Locks a row of the catalog table, or stops if the lock is not available.
    pub(super) fn lock_catalog_row(&mut self, row: Vec<u8>, mode: TableLockMode) -> Result<()> {
        let wait = if self.stops_at_locks { LockWait::NoWait } else { LockWait::Wait };
        let locked =
            self.transaction.lock_present_row(CATALOG_TABLE, &row, LockMode::Table(mode), wait);
        let locked: Result<bool> = locked.map_err(Error::from);
        if self.stops_at_locks
            && locked.as_ref().is_err_and(|error| error.sqlstate == sqlstate::LOCK_NOT_AVAILABLE)
        {
            self.retry_reason = Some(RetryReason::Lock(row, mode));
        }
        locked.map(drop)
    }

    /// Returns the published catalog, after transactions that have released their locks have
    /// published their changes.
    fn published(&self) -> Arc<Catalog> {
        if self.engine.publishing.is_locked() {
            drop(self.engine.publishing.lock());
        }
        self.engine.catalog()
    }

    fn outdated(&mut self) -> Error {
        self.retry_reason = Some(RetryReason::Outdated);
        err!(SERIALIZATION_FAILURE: "could not serialize access due to concurrent definitions")
    }
}

/// Returns the locks that a DDL statement needs, each in the strongest mode.
fn wanted_locks(
    database: u32,
    (base, started, own): (&Catalog, &Catalog, &Catalog),
) -> BTreeMap<Vec<u8>, TableLockMode> {
    let mut wanted = BTreeMap::new();
    for entry in own.difference(started) {
        for number in own.new_references(started, &entry, ReferenceScope::Possible) {
            // Objects created by the transaction itself are not visible to others.
            if base.has(number) {
                let is_shared = [ObjectId::Role(number), ObjectId::Database(number)]
                    .into_iter()
                    .any(|id| base.object(&CatalogEntry::Object(id)).is_some());
                let database = if is_shared { 0 } else { database };
                wanted.entry(object_lock(database, number)).or_insert(REFERENCED_MODE);
            }
        }
        if let Some(id) = entry.object_id().filter(|id| base.has(id.number())) {
            let database = if id.is_shared() { 0 } else { database };
            wanted.insert(object_lock(database, id.number()), CHANGED_MODE);
        }
        for name in own.new_names(started, &entry) {
            wanted.insert(name_lock(database, &name), CHANGED_MODE);
        }
    }
    wanted
}

/// Returns the row of the shared catalog that represents the lock of an object in a database; 0 for
/// a shared object.
fn object_lock(database: u32, number: u32) -> Vec<u8> {
    [b"w", database.to_be_bytes().as_slice(), &number.to_be_bytes()].concat()
}

/// Returns the row of the shared catalog that represents the lock of a name in a database.
fn name_lock(database: u32, name: &TakenName) -> Vec<u8> {
    let (kind, schema, text, types) = match name {
        TakenName::Schema(name) => (b's', "", name.as_str(), [].as_slice()),
        TakenName::Role(name) => (b'g', "", name.as_str(), [].as_slice()),
        TakenName::Extension(number) => (b'x', "", "", std::slice::from_ref(number)),
        TakenName::Database(name) => (b'd', "", name.as_str(), [].as_slice()),
        TakenName::Relation(schema, name) => (b'r', schema.as_str(), name.as_str(), [].as_slice()),
        TakenName::Function(schema, name, types) => {
            (b'f', schema.as_str(), name.as_str(), types.as_slice())
        }
    };
    let mut row = vec![b'z', kind];
    row.extend(if name.is_shared() { 0 } else { database }.to_be_bytes());
    for part in [schema, text] {
        row.extend_from_slice(part.as_bytes());
        row.push(0);
    }
    types.iter().for_each(|oid| row.extend(oid.to_be_bytes()));
    row
}
