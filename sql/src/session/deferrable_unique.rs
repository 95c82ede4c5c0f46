//! Deferrable UNIQUE constraints: duplicate checks after the statement and at commit.
//!
//! New keys are checked at the end of the statement; duplicates of a deferred constraint are
//! checked again at the end of the transaction.
//!
//! A check locks the key first, until the end of the transaction: of two transactions that write
//! one key, the later one waits and then sees the other's row.

use std::sync::Arc;

use ahash::AHashSet;
use coprocessors::index::duplicate_key;
use coprocessors::row::packed_cells;
use store::transaction::{Isolation, LockMode, LockWait, Transaction, TransactionOptions};
use store::{CellBatch, Scan};
use types::keycode::prefix_end;
use types::text::TextStyle;

use crate::catalog::table::Index;
use crate::ddl::index_of;
use crate::error::{Error, Result};
use crate::exec::constraint_queue::DeferrableKey;
use crate::session::statement_executor::StatementExecutor;

/// Number of index entries read at a time.
const ENTRIES_AT_ONCE: usize = 100;

impl StatementExecutor {
    /// Checks new keys; queues the duplicates of deferred constraints.
    ///
    /// # Errors
    ///
    /// 23505 for a duplicate key.
    pub(super) fn check_keys(&mut self, keys: Vec<DeferrableKey>) -> Result<()> {
        for (key, error) in self.shared_keys(&keys)? {
            let deferred = self.is_key_deferred(&key);
            match &self.open {
                Some(open) if deferred => open.constraints.lock().deferred.defer_key(key),
                _ => return Err(error),
            }
        }
        Ok(())
    }

    /// Checks queued keys again: all of them, or those of constraints that are no longer
    /// deferred.
    pub(super) fn check_deferred_keys(&mut self, all: bool) -> Result<()> {
        let Some(open) = &self.open else { return Ok(()) };
        let late = open.constraints.lock().deferred.take_keys();
        let (due, rest): (Vec<DeferrableKey>, Vec<DeferrableKey>) =
            late.into_iter().partition(|key| all || !self.is_key_deferred(key));
        if let Some(open) = &self.open {
            let deferred = &mut open.constraints.lock().deferred;
            rest.into_iter().for_each(|key| deferred.defer_key(key));
        }
        match self.shared_keys(&due)?.pop() {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    fn is_key_deferred(&self, key: &DeferrableKey) -> bool {
        let catalog = self.catalog();
        let (Some((_, index)), Some(open)) =
            (index_of(&catalog, (key.table, key.index)), &self.open)
        else {
            return false;
        };
        open.constraints.lock().deferred.is_deferred(key.table, &index.name, index.deferral)
    }

    /// Returns the duplicate keys, each with its error.
    fn shared_keys(&mut self, keys: &[DeferrableKey]) -> Result<Vec<(DeferrableKey, Error)>> {
        let mut shared = Vec::new();
        if keys.is_empty() {
            return Ok(shared);
        }
        self.begin_statement();
        let catalog = self.catalog();
        let Some(open) = &self.open else { return Ok(shared) };
        let transaction = Arc::clone(&open.transaction);
        let is_repeatable = open.is_repeatable();
        let index = |key: &DeferrableKey| index_of(&catalog, (key.table, key.index));
        for key in keys {
            let Some((_, index)) = index(key) else { continue };
            let lock = [key.prefix.as_slice(), b"\0key"].concat();
            let table = index.spec.store_table;
            transaction.lock_row(table, &lock, LockMode::Exclusive, LockWait::Wait)?;
        }
        transaction.begin_statement();
        transaction.view()?.fix();
        // Rows that were committed after the snapshot count, too.
        let latest = is_repeatable.then(|| {
            let options = TransactionOptions {
                isolation: Isolation::ReadCommitted,
                read_only: true,
                ..TransactionOptions::default()
            };
            let latest = self.engine.store().begin(options);
            latest.require_commit(transaction.required_commit());
            latest.begin_statement();
            latest
        });
        for key in keys {
            let Some((_, index)) = index(key) else { continue };
            if let Some(error) =
                second_entry(&index, key, &transaction, latest.as_ref(), self.settings.style())?
            {
                shared.push((key.clone(), error));
            }
        }
        Ok(shared)
    }
}

/// Returns the error of a duplicate key, if the key has a second entry.
fn second_entry(
    index: &Index,
    key: &DeferrableKey,
    own: &Transaction,
    latest: Option<&Transaction>,
    style: &TextStyle,
) -> Result<Option<Error>> {
    let table = index.spec.store_table;
    let mut found: AHashSet<Vec<u8>> = AHashSet::new();
    let mut entries = CellBatch::new();
    for transaction in [Some(own), latest].into_iter().flatten() {
        let range = Scan::range(key.prefix.clone(), prefix_end(&key.prefix));
        let mut scanner = transaction.scan(table, range)?;
        while scanner.next_batch(ENTRIES_AT_ONCE, &mut entries)? {
            for entry in entries.rows() {
                // It may have been deleted since, or by this transaction.
                if latest.is_none() || own.exists_locked(table, entry.key())? {
                    found.insert(entry.key().to_vec());
                }
                if found.len() > 1 {
                    let packed = packed_cells(&entry, &index.spec.layout)[0];
                    return Ok(Some(
                        duplicate_key(&index.spec, (entry.key(), packed), style).into(),
                    ));
                }
            }
        }
    }
    Ok(None)
}
