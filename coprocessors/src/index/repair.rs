//! Index repair: corrects the differences that a [check](super::verify) has found, with concurrent
//! writers.
//!
//! Each difference is examined again under the locks that writers take: of the row, then, in a
//! unique index, of the entry. So the entry is that of the newest version of the row, also if
//! writers changed it after the snapshot of the check.
//!
//! While a unique entry is locked, no transaction can give another row its key, or take it away
//! from one. So the row that the stored entry names is read without a lock.

use std::sync::Arc;

use store::transaction::{LockMode, LockWait, Locking, RowExpectation};
use store::wal::DurableTicket;
use store::{CellBatch, Edit, Get, Mutation, TableId, Transaction};
use types::expr::EvalContext;

use super::IndexSpec;
use super::entry::{EntryCell, EntryCells, base_key, cells_of, entries_equal};
use super::fill::LockedRows;
use super::verify::IndexDifference;

/// Differences that one transaction corrects at most.
const REPAIR_ROWS: usize = 100;

/// Outcome of the repair of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairOutcome {
    /// The index was changed.
    Corrected,
    /// Index and table agree meanwhile.
    Unneeded,
    /// Another row has the unique key: the index cannot have both.
    Duplicate,
}

/// Corrects differences of an index with concurrent writers, and returns the outcome of each, with
/// the durability of the last commit. Transactions are begun by `begin`.
///
/// # Errors
///
/// Those of locks and of functional keys; differences before the failed one may be corrected.
pub fn repair(
    begin: &dyn Fn() -> Arc<Transaction>,
    (base_table, spec): (TableId, &IndexSpec),
    context: &EvalContext,
    differences: &[IndexDifference],
) -> store::Result<(Vec<RepairOutcome>, Option<DurableTicket>)> {
    let mut repair = Repair { rows: LockedRows::new(base_table, spec, context)?, spec };
    let (mut outcomes, mut durable) = (Vec::with_capacity(differences.len()), None);
    while outcomes.len() < differences.len() {
        let transaction = begin();
        transaction.begin_statement();
        let first = outcomes.len();
        for difference in differences[first..].iter().take(REPAIR_ROWS) {
            let wait = if outcomes.len() == first { LockWait::Wait } else { LockWait::Skip };
            match repair.correct(&transaction, difference, wait) {
                Ok(Some(outcome)) => outcomes.push(outcome),
                Ok(None) => break,
                Err(store::Error::Deadlock { .. }) => {
                    transaction.rollback();
                    outcomes.truncate(first);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        if outcomes.len() > first {
            durable = Some(transaction.commit()?.durable);
        }
    }
    Ok((outcomes, durable))
}

struct Repair<'s> {
    rows: LockedRows<'s>,
    spec: &'s IndexSpec,
}

impl Repair<'_> {
    /// Corrects one difference; `None` if a lock was not available.
    fn correct(
        &mut self,
        transaction: &Transaction,
        difference: &IndexDifference,
        wait: LockWait,
    ) -> store::Result<Option<RepairOutcome>> {
        let Some(row_key) = &difference.row_key else {
            return self.delete_unreadable(transaction, &difference.entry_key, wait);
        };
        if !self.rows.lock(transaction, row_key, wait)? {
            return Ok(None);
        }
        let mut expected = self.rows.entries(transaction, row_key)?;
        let mut outcome = RepairOutcome::Unneeded;
        match expected.iter().position(|entry| entry.row == difference.entry_key) {
            Some(at) => expected = vec![expected.swap_remove(at)],
            None => {
                let stray = (row_key.as_slice(), difference.entry_key.as_slice());
                match self.delete_stray(transaction, stray, wait)? {
                    None => return Ok(None),
                    Some(deleted) => outcome = deleted,
                }
            }
        }
        for entry in expected {
            match self.put(transaction, (row_key, entry), wait)? {
                None => return Ok(None),
                Some(RepairOutcome::Unneeded) => {}
                Some(put) => outcome = put,
            }
        }
        Ok(Some(outcome))
    }

    /// Locks an entry as writers do, and reads it; `None` if the lock was not available.
    fn read_entry(
        &self,
        transaction: &Transaction,
        (key, is_locked): (&[u8], bool),
        wait: LockWait,
    ) -> store::Result<Option<CellBatch>> {
        let (table, mut found) = (self.spec.store_table, CellBatch::new());
        if is_locked && !transaction.lock_row(table, key, LockMode::Exclusive, wait)? {
            return Ok(None);
        }
        transaction.get_locked(table, &Get::new(key.to_vec()), &mut found)?;
        Ok(Some(found))
    }

    /// Deletes an entry of a locked row that is not the row's.
    fn delete_stray(
        &self,
        transaction: &Transaction,
        (row_key, entry_key): (&[u8], &[u8]),
        wait: LockWait,
    ) -> store::Result<Option<RepairOutcome>> {
        let at = (entry_key, self.spec.unique);
        let Some(found) = self.read_entry(transaction, at, wait)? else { return Ok(None) };
        // In a unique index the entry may be that of another row now.
        let names_row = |entry| base_key(self.spec, &entry).is_ok_and(|key| key == row_key);
        if found.row_count() == 0 || !names_row(found.row(0)) {
            return Ok(Some(RepairOutcome::Unneeded));
        }
        self.delete(transaction, entry_key).map(Some)
    }

    /// Deletes an entry that names no row.
    fn delete_unreadable(
        &self,
        transaction: &Transaction,
        entry_key: &[u8],
        wait: LockWait,
    ) -> store::Result<Option<RepairOutcome>> {
        let found = self.read_entry(transaction, (entry_key, true), wait)?;
        let Some(found) = found else { return Ok(None) };
        if found.row_count() == 0 || base_key(self.spec, &found.row(0)).is_ok() {
            return Ok(Some(RepairOutcome::Unneeded));
        }
        self.delete(transaction, entry_key).map(Some)
    }

    fn delete(&self, transaction: &Transaction, key: &[u8]) -> store::Result<RepairOutcome> {
        let locking = Locking::Covered;
        let delete = Mutation { locking, ..Mutation::new(key.to_vec()).delete_row() };
        transaction.mutate(self.spec.store_table, vec![delete])?;
        Ok(RepairOutcome::Corrected)
    }

    /// Writes the entry of a locked row, unless it is stored like this.
    fn put(
        &mut self,
        transaction: &Transaction,
        (row_key, mut entry): (&[u8], Mutation),
        wait: LockWait,
    ) -> store::Result<Option<RepairOutcome>> {
        let has_lock = entry.expect == RowExpectation::Absent;
        let found = self.read_entry(transaction, (&entry.row, has_lock), wait)?;
        let Some(found) = found else { return Ok(None) };
        let is_stored = found.row_count() > 0;
        if is_stored {
            let stored = found.row(0);
            let owner = base_key(self.spec, &stored).ok();
            if owner.as_deref() == Some(row_key) {
                let cells = cells_of_put(self.spec, &entry);
                if entries_equal(self.spec, &cells_of(self.spec, &stored), &cells) {
                    return Ok(Some(RepairOutcome::Unneeded));
                }
            } else if let Some(owner) = owner {
                let of_owner = self.rows.entries(transaction, &owner)?;
                if of_owner.iter().any(|other| other.row == entry.row) {
                    return Ok(Some(RepairOutcome::Duplicate));
                }
            }
        }
        if is_stored && !matches!(entry.edits.first(), Some(Edit::DeleteRow { .. })) {
            entry.edits.insert(0, Edit::DeleteRow { timestamp: None });
        }
        let (locking, expect) = (Locking::Covered, RowExpectation::Anything);
        transaction.mutate(self.spec.store_table, vec![Mutation { locking, expect, ..entry }])?;
        Ok(Some(RepairOutcome::Corrected))
    }
}

/// Returns the cells that the put of an entry writes.
fn cells_of_put(spec: &IndexSpec, entry: &Mutation) -> EntryCells {
    let mut cells = EntryCells::from_elem(None, spec.layout.family_count);
    for edit in &entry.edits {
        let Edit::Put { family, timestamp, value, ttl, .. } = edit else { continue };
        let timestamp = timestamp.unwrap_or(store::Timestamp::LATEST);
        cells[usize::from(*family)] =
            Some(EntryCell { value: value.clone(), timestamp, ttl: *ttl });
    }
    cells
}
