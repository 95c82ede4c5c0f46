//! Sequence functions of a session: `nextval()`, `currval()`, `lastval()` and `setval()`.
//!
//! It resolves names by the search path, locks the sequence for the transaction, and takes values
//! from the engine's [`SequenceStates`](crate::sequences::SequenceStates).

use std::sync::{Arc, Weak};

use ahash::AHashMap;
use parking_lot::Mutex;
use store::Transaction;
use store::transaction::{LockWait, TableLockMode};
use types::context::SequenceSource;

use crate::catalog::access::object_access::AccessSubject;
use crate::catalog::access::privilege::{SELECT, UPDATE, USAGE};
use crate::catalog::name::{BOOTSTRAP_ROLE, SearchPath, is_temporary};
use crate::catalog::sequence::Sequence;
use crate::catalog::{Catalog, CatalogRelation};
use crate::ddl::{self, SharedChanges, undefined_table};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::parser;

/// Values that the session got, for `currval()` and `lastval()`.
#[derive(Debug, Default)]
struct SessionSequenceValues {
    values: AHashMap<u32, i64>,
    last: Option<u32>,
}

/// Sequence functions for the statements of a session. Cheap to clone.
#[derive(Clone)]
pub(super) struct SessionSequences {
    engine: Arc<Engine>,
    /// Catalog changes of the transaction, if there are any.
    changes: Option<SharedChanges>,
    /// True if the transaction is read-only.
    read_only: bool,
    /// Search path of sequence names.
    path: Arc<SearchPath>,
    seen: Arc<Mutex<SessionSequenceValues>>,
    /// Transaction of the current statement, which locks the sequences that it uses.
    transaction: Arc<Mutex<Weak<Transaction>>>,
}

impl SessionSequences {
    /// Returns the sequence functions of a new session.
    pub(super) fn new(engine: &Arc<Engine>) -> SessionSequences {
        let seen = Arc::default();
        let path = Arc::default();
        let (engine, transaction) = (Arc::clone(engine), Arc::default());
        SessionSequences { engine, changes: None, read_only: false, path, seen, transaction }
    }

    /// Sets the transaction that locks sequences.
    pub(super) fn enter(&self, transaction: &Arc<Transaction>) {
        let mut present = self.transaction.lock();
        if !std::ptr::eq(present.as_ptr(), Arc::as_ptr(transaction)) {
            *present = Arc::downgrade(transaction);
        }
    }

    /// Sets the search path of sequence names.
    pub(super) fn set_search_path(&mut self, path: Arc<SearchPath>) {
        self.path = path;
    }

    /// Returns the sequence functions with the catalog of a transaction.
    pub(super) fn within(&self, changes: Option<SharedChanges>, read_only: bool) -> Self {
        SessionSequences { changes, read_only, ..self.clone() }
    }

    fn catalog(&self) -> Arc<Catalog> {
        match &self.changes {
            Some(changes) => changes.catalog(&self.engine),
            None => self.engine.catalog(),
        }
    }

    /// Removes the session's values: DISCARD ALL.
    pub(super) fn discard(&self) {
        *self.seen.lock() = SessionSequenceValues::default();
    }

    fn find(&self, text: &str) -> Result<Arc<Sequence>> {
        let catalog = self.catalog();
        match catalog.find_text(text, &self.path)? {
            Some(CatalogRelation::Sequence(sequence)) => Ok(Arc::clone(sequence)),
            Some(other) => {
                bail!(WRONG_OBJECT_TYPE: "\"{}\" is not a sequence", other.name().name)
            }
            None => Err(Error {
                position: None,
                ..undefined_table(&parser::parse_relation_name(text)?)
            }),
        }
    }

    fn check_writable(&self, sequence: &Sequence, function: &str) -> Result<()> {
        match self.read_only && !is_temporary(&sequence.schema) {
            true => Err(super::read_only(&format!("{function}()"))),
            false => Ok(()),
        }
    }

    /// Checks that the current role has one of some privileges on a sequence. The sequence of an
    /// identity column belongs to its table.
    fn check_privilege(&self, sequence: &Sequence, wanted: u32) -> Result<()> {
        let (catalog, role) = (self.catalog(), self.path.role());
        let subject = AccessSubject::Relation(sequence.oid);
        if role == BOOTSTRAP_ROLE || catalog.privileges_on(role, subject).0 & wanted != 0 {
            return Ok(());
        }
        let identity = sequence.owned_by.and_then(|(table, column)| {
            catalog.table(table)?.columns.get(column as usize)?.identity
        });
        match identity {
            Some(_) => Ok(()),
            None => Err(catalog.denied(subject)),
        }
    }

    /// Returns a sequence and locks its definition until the transaction ends.
    fn find_locked(&self, text: &str) -> Result<Arc<Sequence>> {
        let mut sequence = self.find(text)?;
        let Some(transaction) = self.transaction.lock().upgrade() else { return Ok(sequence) };
        loop {
            let (id, mode) = (sequence.id, TableLockMode::RowExclusive);
            if ddl::has_relation_lock(&transaction, id, mode) {
                return Ok(sequence);
            }
            ddl::lock_relation(&transaction, id, mode, LockWait::Wait)?;
            // A previous holder of the lock publishes its catalog after releasing it.
            if self.engine.publishing.is_locked() {
                drop(self.engine.publishing.lock());
            }
            sequence = self.find(text)?;
        }
    }

    fn next_value(&self, name: &str) -> Result<i64> {
        let sequence = self.find_locked(name)?;
        self.check_privilege(&sequence, USAGE | UPDATE)?;
        self.check_writable(&sequence, "nextval")?;
        let value = self.engine.sequences.next(&sequence)?;
        let mut seen = self.seen.lock();
        seen.values.insert(sequence.id, value);
        seen.last = Some(sequence.id);
        Ok(value)
    }

    fn next_block_of(&self, name: &str, count: i64) -> Result<i64> {
        let sequence = self.find_locked(name)?;
        self.check_privilege(&sequence, USAGE | UPDATE)?;
        self.check_writable(&sequence, "nextval")?;
        let (first, last) = self.engine.sequences.next_block(&sequence, count)?;
        let mut seen = self.seen.lock();
        seen.values.insert(sequence.id, last);
        seen.last = Some(sequence.id);
        Ok(first)
    }

    fn current_value(&self, name: &str) -> Result<i64> {
        let sequence = self.find_locked(name)?;
        self.check_privilege(&sequence, USAGE | SELECT)?;
        self.seen.lock().values.get(&sequence.id).copied().ok_or_else(|| {
            err!(OBJECT_NOT_IN_PREREQUISITE_STATE: "currval of sequence \"{}\" is not yet defined in this session",
                sequence.name)
        })
    }

    fn last_value(&self) -> Result<i64> {
        let seen = self.seen.lock();
        let catalog = self.catalog();
        let is_there = |last: &u32| catalog.sequences().any(|one| one.id == *last);
        let last = seen.last.filter(is_there).and_then(|last| seen.values.get(&last));
        last.copied().ok_or_else(
            || err!(OBJECT_NOT_IN_PREREQUISITE_STATE: "lastval is not yet defined in this session"),
        )
    }

    fn set_value(&self, name: &str, value: i64, is_called: bool) -> Result<()> {
        let sequence = self.find_locked(name)?;
        self.check_privilege(&sequence, UPDATE)?;
        self.check_writable(&sequence, "setval")?;
        self.engine.sequences.set(&sequence, value, is_called)?;
        if is_called {
            self.seen.lock().values.insert(sequence.id, value);
        }
        Ok(())
    }
}

impl SequenceSource for SessionSequences {
    fn next(&self, name: &str) -> types::Result<i64> {
        self.next_value(name).map_err(Error::into_value_error)
    }

    fn next_block(&self, name: &str, count: i64) -> types::Result<i64> {
        self.next_block_of(name, count).map_err(Error::into_value_error)
    }

    fn current(&self, name: &str) -> types::Result<i64> {
        self.current_value(name).map_err(Error::into_value_error)
    }

    fn last(&self) -> types::Result<i64> {
        self.last_value().map_err(Error::into_value_error)
    }

    fn set(&self, name: &str, value: i64, is_called: bool) -> types::Result<()> {
        self.set_value(name, value, is_called).map_err(Error::into_value_error)
    }
}
