//! FOR UPDATE and its kin: rows are locked, read again, checked again, and yielded as they are now.

use std::sync::Arc;

use coprocessors::rows::{FilteredDecoder, StoredRows};
use store::Get;
use types::{Batch, Vector};

use crate::error::{Error, Result};
use crate::exec::Context;
use crate::logical::TIMESTAMP_COLUMN;
use crate::plan::scan::{LockRows, ScanNode};

/// Locks the rows of these keys, at most `limit` of them, and returns the `read` columns of those
/// that are still wanted.
pub(super) fn lock_rows(
    node: &ScanNode,
    lock: &LockRows,
    keys: &[Vec<u8>],
    limit: u64,
    context: &Context,
) -> Result<Batch> {
    let read = node.lookup.as_ref().map_or(&node.read, |lookup| &lookup.read);
    let decoder = FilteredDecoder::new(&node.table.layout, read, lock.recheck.as_ref())?;
    let mut stored = StoredRows::new();
    let mut rows: Vec<Vector> = node_vectors(node, read);
    let mut row_count = 0;
    for key in keys {
        if row_count as u64 >= limit {
            break;
        }
        context.check()?;
        let table = node.table.id;
        let locked = context.transaction.lock_row(table, key, lock.lock.mode, lock.lock.wait);
        if !locked.map_err(|error| name_table(error, node))? {
            continue;
        }
        stored.clear();
        let get = Get::new(key.as_slice());
        stored.add_cells(|cells| context.transaction.get_locked(table, &get, cells).map(drop))?;
        let Some(row) = decoder.decode(&stored, &context.eval)? else { continue };
        rows.iter_mut().zip(&row.batch.columns).for_each(|(all, one)| all.append(one));
        row_count += 1;
    }
    Ok(Batch { columns: rows.into_iter().map(Arc::new).collect(), row_count })
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
