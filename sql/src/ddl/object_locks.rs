//! Locks of objects and names, which definitions of several transactions wait for each other by.
//!
//! A definition works on the catalog as it has found it. What it has changed is known when it has
//! done its work, and is locked then, until the transaction ends:
//!
//! * the names that it has given, exclusively: whoever gives the same name waits, and finds it
//!   taken or free;
//! * the objects that it has changed or dropped, exclusively;
//! * the objects that it has made something refer to, shared: the schema, types, functions, tables.
//!
//! If a lock is not free, or somebody else has published a change in between that touches on its
//! own, the definition is undone, waits, and is run again from its beginning on the newest catalog.
//! A table is locked before its observers are changed, as those take effect at once
//! ([`Ddl::touch`]).
//!
//! Tables and sequences have locks of their own, in eight modes, that statements take as well
//! ([`Ddl::lock_relation`]).
//!
//! Source: PostgreSQL's locks of pg_depend's objects, and the waits of unique indexes of system
//! catalogs. There a table may be changed by two transactions at once where the modes of its lock
//! allow that, as by two CREATE INDEX; here the second one waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use store::transaction::{LockMode, LockWait, TableLockMode};

use crate::catalog::Catalog;
use crate::catalog::difference::TakenName;
use crate::catalog::record::CATALOG_TABLE;
use crate::catalog::references::References;
use crate::ddl::Ddl;
use crate::error::{Error, Result, sqlstate};

/// The mode of what is changed: not the strongest one, which looks at what all sessions read.
const ALONE: TableLockMode = TableLockMode::Exclusive;
/// The mode of what is referred to.
const BESIDE: TableLockMode = TableLockMode::RowShare;

/// Why a definition is to be run again.
#[derive(Debug, Clone)]
pub enum GaveUp {
    /// Others hold a lock: a row of the catalog table, and the mode that is wanted.
    Lock(Vec<u8>, TableLockMode),
    /// Likewise; the wait is not to hold up those who come later.
    LockBeside(Vec<u8>, TableLockMode),
    /// Others have changed what it has built on.
    Outdated,
}

impl Ddl<'_> {
    /// Locks a table whose observers are about to be changed, and notes it.
    ///
    /// # Errors
    ///
    /// Those of a definition that is to be run again.
    pub(super) fn touch(&mut self, table: u32) -> Result<()> {
        let (_, base) = self.changes.before(self.engine);
        if let Some(known) = base.table(table) {
            self.lock_catalog_row(object_lock(table), ALONE)?;
            let newest = self.published();
            if !newest.table(table).is_some_and(|newest| Arc::ptr_eq(newest, known)) {
                return Err(self.outdated());
            }
        }
        self.changes.touched.push(table);
        Ok(())
    }

    /// Locks what the definition has changed and refers to, and sees to it that nobody has changed
    /// it since the definition began.
    ///
    /// # Errors
    ///
    /// Those of a definition that is to be run again.
    pub fn finish(&mut self) -> Result<()> {
        let (started, base) = self.changes.before(self.engine);
        let own = self.changes.catalog(self.engine);
        if Arc::ptr_eq(&started, &own) {
            return Ok(());
        }
        // In the order of their names, so that two definitions wait for each other seldom.
        for (row, mode) in wanted_locks(&base, &started, &own) {
            self.lock_catalog_row(row, mode)?;
        }
        let newest = self.published();
        if !Arc::ptr_eq(&newest, &base)
            && Catalog::conflict(&base, &own, &newest, References::Possible).is_some()
        {
            return Err(self.outdated());
        }
        Ok(())
    }

    /// Locks a row of the catalog table, or gives up if that would take a wait.
    pub(super) fn lock_catalog_row(&mut self, row: Vec<u8>, mode: TableLockMode) -> Result<()> {
        let wait = if self.gives_up { LockWait::NoWait } else { LockWait::Wait };
        let locked =
            self.transaction.lock_present_row(CATALOG_TABLE, &row, LockMode::Table(mode), wait);
        let locked: Result<bool> = locked.map_err(Error::from);
        if self.gives_up
            && locked.as_ref().is_err_and(|error| error.sqlstate == sqlstate::LOCK_NOT_AVAILABLE)
        {
            self.gave_up_for = Some(GaveUp::Lock(row, mode));
        }
        locked.map(drop)
    }

    /// Returns the catalog as it is published when those have done so who have given locks back.
    fn published(&self) -> Arc<Catalog> {
        if self.engine.publishing.is_locked() {
            drop(self.engine.publishing.lock());
        }
        self.engine.catalog()
    }

    fn outdated(&mut self) -> Error {
        self.gave_up_for = Some(GaveUp::Outdated);
        let message = "could not serialize access due to concurrent definitions";
        Error::new(sqlstate::SERIALIZATION_FAILURE, message)
    }
}

/// Returns the locks that a definition needs, each in the strongest mode.
fn wanted_locks(
    base: &Catalog,
    started: &Catalog,
    own: &Catalog,
) -> BTreeMap<Vec<u8>, TableLockMode> {
    let mut wanted = BTreeMap::new();
    for entry in own.difference(started) {
        for number in own.new_references(started, &entry, References::Possible) {
            // Nobody else knows what the transaction itself has created.
            if base.has(number) {
                wanted.entry(object_lock(number)).or_insert(BESIDE);
            }
        }
        if let Some(number) = entry.number().filter(|number| base.has(*number)) {
            wanted.insert(object_lock(number), ALONE);
        }
        for name in own.new_names(started, &entry) {
            wanted.insert(name_lock(&name), ALONE);
        }
    }
    wanted
}

/// Returns the row of the catalog table whose lock stands for an object.
fn object_lock(number: u32) -> Vec<u8> {
    [b"w", number.to_be_bytes().as_slice()].concat()
}

/// Returns the row of the catalog table whose lock stands for a name.
fn name_lock(name: &TakenName) -> Vec<u8> {
    let (kind, schema, name, types) = match name {
        TakenName::Schema(name) => (b's', "", name.as_str(), [].as_slice()),
        TakenName::Extension(number) => (b'x', "", "", std::slice::from_ref(number)),
        TakenName::Relation(schema, name) => (b'r', schema.as_str(), name.as_str(), [].as_slice()),
        TakenName::Function(schema, name, types) => {
            (b'f', schema.as_str(), name.as_str(), types.as_slice())
        }
    };
    let mut row = vec![b'z', kind];
    for part in [schema, name] {
        row.extend_from_slice(part.as_bytes());
        row.push(0);
    }
    types.iter().for_each(|oid| row.extend(oid.to_be_bytes()));
    row
}
