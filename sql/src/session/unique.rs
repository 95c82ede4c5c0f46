//! UNIQUE constraints that are deferrable: keys that rows have got are looked at when the statement
//! has done its work, and those that more than one row has then, again when the transaction ends,
//! if the constraint is deferred.
//!
//! Whoever looks at a key takes its lock first and keeps it: of two transactions that write one key
//! the later one waits, and then sees the row of the other.

use std::sync::Arc;

use ahash::AHashSet;
use coprocessors::index::duplicate_key;
use coprocessors::row::packed_cells;
use store::transaction::{Isolation, LockMode, LockWait, Transaction, TransactionOptions};
use store::{CellBatch, Get, Scan};
use types::keycode::prefix_end;
use types::text::TextStyle;

use crate::catalog::table::Index;
use crate::ddl::index_of;
use crate::error::{Error, Result};
use crate::exec::watch::NewKey;
use crate::session::worker::Worker;

/// Entries of a key that are read at a time.
const ENTRIES_AT_ONCE: usize = 100;

impl Worker {
    /// Looks at keys that rows have got; puts off what deferred constraints find.
    ///
    /// # Errors
    ///
    /// 23505 if two rows have one.
    pub(super) fn settle_keys(&mut self, keys: Vec<NewKey>) -> Result<()> {
        for (key, error) in self.shared_keys(&keys)? {
            let deferred = self.is_key_deferred(&key);
            match &self.open {
                Some(open) if deferred => open.held.lock().deferred.put_off_key(key),
                _ => return Err(error),
            }
        }
        Ok(())
    }

    /// Looks again at keys that were put off: all of them, or those that are not deferred any more.
    pub(super) fn settle_late_keys(&mut self, all: bool) -> Result<()> {
        let Some(open) = &self.open else { return Ok(()) };
        let late = open.held.lock().deferred.take_late_keys();
        let (due, rest): (Vec<NewKey>, Vec<NewKey>) =
            late.into_iter().partition(|key| all || !self.is_key_deferred(key));
        if let Some(open) = &self.open {
            let deferred = &mut open.held.lock().deferred;
            rest.into_iter().for_each(|key| deferred.put_off_key(key));
        }
        match self.shared_keys(&due)?.pop() {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    fn is_key_deferred(&self, key: &NewKey) -> bool {
        let catalog = self.catalog();
        let (Some((_, index)), Some(open)) =
            (index_of(&catalog, (key.table, key.index)), &self.open)
        else {
            return false;
        };
        open.held.lock().deferred.is_deferred(key.table, &index.name, index.deferral)
    }

    /// Returns the keys that more than one row has, each with the error that says so.
    fn shared_keys(&mut self, keys: &[NewKey]) -> Result<Vec<(NewKey, Error)>> {
        let mut shared = Vec::new();
        if keys.is_empty() {
            return Ok(shared);
        }
        self.begin_statement();
        let catalog = self.catalog();
        let Some(open) = &self.open else { return Ok(shared) };
        let transaction = Arc::clone(&open.transaction);
        let is_repeatable = open.is_repeatable();
        let index = |key: &NewKey| index_of(&catalog, (key.table, key.index));
        for key in keys {
            let Some((_, index)) = index(key) else { continue };
            let lock = [key.prefix.as_slice(), b"\0key"].concat();
            let table = index.spec.store_table;
            transaction.lock_row(table, &lock, LockMode::Exclusive, LockWait::Wait)?;
        }
        transaction.begin_statement();
        // What was committed since the snapshot counts, too.
        let latest = is_repeatable.then(|| {
            let options = TransactionOptions {
                isolation: Isolation::ReadCommitted,
                read_only: true,
                ..TransactionOptions::default()
            };
            let latest = self.engine.store().begin(options);
            latest.raise_floor(transaction.floor());
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

/// Returns the error of the second entry of a key, if it has one.
fn second_entry(
    index: &Index,
    key: &NewKey,
    own: &Transaction,
    latest: Option<&Transaction>,
    style: &TextStyle,
) -> Result<Option<Error>> {
    let table = index.spec.store_table;
    let mut found: AHashSet<Vec<u8>> = AHashSet::new();
    let (mut entries, mut cells) = (CellBatch::new(), CellBatch::new());
    for transaction in [Some(own), latest].into_iter().flatten() {
        let range = Scan::range(key.prefix.clone(), prefix_end(&key.prefix));
        let mut scanner = transaction.scan(table, range)?;
        while scanner.next_batch(ENTRIES_AT_ONCE, &mut entries)? {
            for entry in entries.rows() {
                cells.clear();
                // It may have gone since, or be gone for this transaction only.
                if latest.is_none() || own.get_locked(table, &Get::new(entry.key()), &mut cells)? {
                    found.insert(entry.key().to_vec());
                }
                if found.len() > 1 {
                    let packed = packed_cells(&entry, 1)[0];
                    return Ok(Some(
                        duplicate_key(&index.spec, (entry.key(), packed), style).into(),
                    ));
                }
            }
        }
    }
    Ok(None)
}
