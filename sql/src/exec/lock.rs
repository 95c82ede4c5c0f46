//! FOR UPDATE and its kin: rows are locked, read again, checked again, and yielded as they are now.
//!
//! A row that its own transaction has changed since the statement began is left out: by a statement
//! after DECLARE, by a function, or by a part of WITH. Source: PostgreSQL's `ExecLockRows`.

use std::collections::VecDeque;
use std::sync::Arc;

use coprocessors::rows::{FilteredDecoder, StoredRows};
use store::Get;
use store::transaction::StatementView;
use types::{Batch, Vector};

use crate::error::{Error, Result};
use crate::exec::Context;
use crate::logical::TIMESTAMP_COLUMN;
use crate::plan::scan::{LockRows, ScanNode};

/// Takes keys from the front of `keys` and locks their rows until `limit` of them are still wanted;
/// returns the `read` columns of these. A cursor takes one at a time: the others are locked when
/// they are fetched.
pub(super) fn lock_rows(
    node: &ScanNode,
    lock: &LockRows,
    keys: &mut VecDeque<Vec<u8>>,
    limit: u64,
    context: &Context,
) -> Result<Batch> {
    let read = node.lookup.as_ref().map_or(&node.read, |lookup| &lookup.read);
    let decoder = FilteredDecoder::new(&node.table.layout, read, lock.recheck.as_ref())?;
    let mut stored = StoredRows::new();
    let mut rows: Vec<Vector> = node_vectors(node, read);
    let mut row_count = 0_u64;
    let since = context.view.get().map(StatementView::place);
    let limit = if context.locks_one_by_one { limit.min(1) } else { limit };
    while row_count < limit
        && let Some(key) = keys.pop_front()
    {
        let key = key.as_slice();
        context.check()?;
        let table = node.table.id;
        let locked = context.transaction.lock_row(table, key, lock.lock.mode(), lock.lock.wait);
        if !locked.map_err(|error| name_table(error, node))? {
            continue;
        }
        // What the transaction itself has made of the row since is not what the statement sees.
        if since.is_some_and(|since| context.transaction.has_changed(table, key, since)) {
            continue;
        }
        stored.clear();
        let get = Get::new(key);
        stored.add_cells(|cells| context.transaction.get_locked(table, &get, cells).map(drop))?;
        let Some(row) = decoder.decode(&stored, &context.eval)? else { continue };
        rows.iter_mut().zip(&row.batch.columns).for_each(|(all, one)| all.append(one));
        row_count += 1;
    }
    let columns = rows.into_iter().map(Arc::new).collect();
    Ok(Batch { columns, row_count: row_count as usize })
}

fn node_vectors(node: &ScanNode, read: &[usize]) -> Vec<Vector> {
    let vector = |&column: &usize| match column {
        TIMESTAMP_COLUMN => Vector::new(types::DataType::Timestamptz, 0),
        column => Vector::new(node.table.layout.columns[column].data_type, 0),
    };
    read.iter().map(vector).collect()
}

/// NOWAIT fails with the name of the table, as PostgreSQL says it.
fn name_table(error: store::Error, node: &ScanNode) -> Error {
    let refused = matches!(error, store::Error::LockNotAvailable { timed_out: false, .. });
    let mut error = Error::from(error);
    if refused {
        error.message = format!("could not obtain lock on row in relation \"{}\"", node.table.name);
    }
    error
}
