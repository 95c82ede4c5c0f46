//! Row locks of a scan (FOR UPDATE, FOR SHARE): rows are locked, re-read and re-evaluated.
//!
//! The newest version of a row is returned (EvalPlanQual). At REPEATABLE READ the version of the
//! snapshot is returned: FOR KEY SHARE also accepts rows whose non-key columns were updated.
//!
//! A row that the own transaction has changed since the statement began is skipped, unless the
//! statement itself changes it: by a statement after DECLARE, by a function, or by data-changing
//! WITH. Source: PostgreSQL's `ExecLockRows`.

use std::collections::VecDeque;
use std::sync::Arc;

use coprocessors::rows::{FilteredDecoder, StoredRows};
use store::CellBatch;
use store::transaction::{FollowedRow, LockMode, SeenLock, SeenRow, StatementView};
use types::{Batch, Vector};

use crate::catalog::table::Table;
use crate::error::{Error, Result};
use crate::exec::Context;
use crate::exec::row_writer::unpack;
use crate::logical::{RowLock, pseudo_column_type};
use crate::plan::scan::{ScanLock, ScanNode};

/// Takes keys from the front of `keys` and locks their rows until `limit` of them qualify;
/// returns the `read` columns of these. A cursor locks one row at a time: the others are locked
/// when they are fetched.
pub(super) fn lock_rows(
    node: &ScanNode,
    lock: &ScanLock,
    keys: &mut VecDeque<Vec<u8>>,
    limit: u64,
    context: &Context,
) -> Result<Batch> {
    let read = node.lookup.as_ref().map_or(&node.read, |lookup| &lookup.read);
    let decoder = FilteredDecoder::new(&node.table.layout, read, lock.recheck.as_ref())?;
    let mut stored = StoredRows::new();
    let mut rows: Vec<Vector> = node_vectors(node, read);
    let mut row_count = 0_u64;
    let limit = if context.locks_one_by_one { limit.min(1) } else { limit };
    while row_count < limit
        && let Some(key) = keys.pop_front()
    {
        context.check()?;
        let table = node.table.id;
        let Some(locked) = take_lock((&node.table, key), lock.lock, context)? else { continue };
        stored.clear();
        let get = node.table.get(locked.key.as_slice());
        stored.add_cells(|cells| {
            let transaction = &context.transaction;
            match transaction.isolation().is_repeatable() {
                true => transaction.get(table, &get, cells).map(drop),
                false => transaction.get_locked(table, &get, cells).map(drop),
            }
        })?;
        if stored.is_empty() {
            locked.release(&node.table, context)?;
            continue;
        }
        let Some(row) = decoder.decode(&stored, &context.eval)? else { continue };
        rows.iter_mut().zip(&row.batch.columns).for_each(|(all, one)| all.append(one));
        row_count += 1;
    }
    let columns = rows.into_iter().map(Arc::new).collect();
    Ok(Batch { columns, row_count: row_count as usize })
}

fn node_vectors(node: &ScanNode, read: &[usize]) -> Vec<Vector> {
    let vector = |&column: &usize| match pseudo_column_type(column) {
        Some(data_type) => Vector::new(&data_type, 0),
        None => Vector::new(&node.table.layout.columns[column].data_type, 0),
    };
    read.iter().map(vector).collect()
}

/// A row that a statement has locked.
pub(super) struct LockedRow {
    /// Its present key.
    pub(super) key: Vec<u8>,
    /// Lock of its previous key.
    lock: Option<SeenLock>,
    /// True if the transaction itself has changed it since the statement began.
    pub(super) is_own: bool,
}

impl LockedRow {
    /// Releases the lock, as the row was deleted.
    pub(super) fn release(&self, table: &Table, context: &Context) -> Result<()> {
        match self.lock {
            Some(lock) => Ok(context.transaction.release_row_lock(table.id, &self.key, lock)?),
            None => Ok(()),
        }
    }
}

/// Locks a row and returns it; `None` if it is skipped or not visible to the statement.
///
/// # Errors
///
/// 55P03 with the name of the table, as in PostgreSQL; 40001; errors that end a wait.
pub(super) fn take_lock(
    (table, mut key): (&Table, Vec<u8>),
    lock: RowLock,
    context: &Context,
) -> Result<Option<LockedRow>> {
    let transaction = &context.transaction;
    let seen = transaction.lock_seen_row(table.id, &key, lock.mode(), lock.wait);
    let seen = seen.map_err(|error| said_of_lock(error, table, lock))?;
    if seen.row == SeenRow::Skipped {
        return Ok(None);
    }
    let mut held = Some(seen);
    if let Some(view) = context.view.get() {
        let row = (table.id, key.as_slice(), seen);
        let followed = transaction.follow_row(row, (lock.mode(), lock.wait), view);
        match followed.map_err(|error| said_of_lock(error, table, lock))? {
            FollowedRow::Same => {}
            FollowedRow::Moved(to) => (key, held) = (to, None),
            FollowedRow::Gone | FollowedRow::Skipped => return Ok(None),
        }
    }
    check_key((table, &key), lock, context)?;
    // The statement does not see later changes of its own transaction.
    let since = context.view.get().map(StatementView::place);
    let is_own = match since {
        Some(since) => transaction.has_changed(table.id, &key, since)?,
        None => false,
    };
    Ok((!is_own || lock.for_change).then_some(LockedRow { key, lock: held, is_own }))
}

/// Checks, at REPEATABLE READ, that a row locked FOR KEY SHARE has the keys that the snapshot
/// shows: the store only compares the row key.
fn check_key((table, key): (&Table, &[u8]), lock: RowLock, context: &Context) -> Result<()> {
    let transaction = &context.transaction;
    let Some(view) = context.view.get() else { return Ok(()) };
    if !transaction.isolation().is_repeatable()
        || lock.mode() != LockMode::KeyShared
        || !transaction.is_newer(table.id, key, view)?
    {
        return Ok(());
    }
    let get = table.get(key);
    let (mut seen, mut newest) = (CellBatch::new(), CellBatch::new());
    transaction.get(table.id, &get, &mut seen)?;
    transaction.get_locked(table.id, &get, &mut newest)?;
    let (seen, newest) = (unpack(table, &seen)?, unpack(table, &newest)?);
    let mut keys = (0..table.columns.len()).filter(|&column| table.is_referable(column));
    match keys.all(|column| seen[column] == newest[column]) {
        true => Ok(()),
        false => {
            let detail = "due to concurrent update".to_owned();
            Err(store::Error::Serialization { detail }.into())
        }
    }
}

/// Returns the error of a lock with the words of PostgreSQL, whose row locks, unlike UPDATE and
/// DELETE, report a deleted row as an update.
fn said_of_lock(error: store::Error, table: &Table, lock: RowLock) -> Error {
    use store::Error as Store;
    let message = match &error {
        Store::LockNotAvailable { timed_out: false, .. } => {
            format!("could not obtain lock on row in relation \"{}\"", table.name)
        }
        Store::Serialization { .. } if !lock.for_change => {
            "could not serialize access due to concurrent update".to_owned()
        }
        _ => return Error::from(error),
    };
    Error { message, ..Error::from(error) }
}
