//! Following of an index: changes the entries of rows that commits have changed, after the commits.
//!
//! The caller knows a superset of the rows that changed between two snapshots. Each row is read
//! with both, and the difference of its entries is written, as the [observer](super::observer)
//! does within the commit. Entries of rows without a change stay as they are.
//!
//! An index that is followed is not unique, so no two rows share an entry.

use store::transaction::TableReader;
use store::{CellBatch, Get, Mutation, RowRef, TableId};
use types::expr::EvalContext;
use types::rowcode::RowLayout;

use super::observer::IndexObserver;
use crate::change::{Change, RowState};
use crate::row::ReadColumns;
use crate::violation;

/// Bytes of rows that are read at a time.
const BYTES_AT_ONCE: usize = 4 << 20;

/// Passes the mutations of some indexes of a table to `write`, for rows that may have changed
/// between the snapshots of two readers. The rows ascend.
///
/// # Errors
///
/// Errors of functional keys, of the store, and of `write`.
pub fn follow_rows(
    indexes: &[IndexObserver],
    (before, after): (&TableReader, &TableReader),
    rows: &[Vec<u8>],
    context: &EvalContext,
    mut write: impl FnMut(TableId, Vec<Mutation>) -> store::Result<()>,
) -> store::Result<()> {
    let Some(first) = indexes.first() else { return Ok(()) };
    let layout = &first.spec().base_layout;
    let columns = ReadColumns::of_whole_rows(layout);
    let gets: Vec<Get> = rows.iter().map(|row| columns.get(Get::new(row.as_slice()))).collect();
    let mut done = 0;
    while let Some(gets) = gets.get(done..).filter(|left| !left.is_empty()) {
        let (mut old, mut new) = (CellBatch::new(), CellBatch::new());
        let count = before.multi_get_some(gets, BYTES_AT_ONCE, &mut old)?;
        let count = after.multi_get_some(&gets[..count], BYTES_AT_ONCE, &mut new)?;
        let rows = &rows[done..done + count];
        done += count;
        let changes = changes_of(rows, (&old, &new), layout);
        for index in indexes {
            let mutations = index
                .mutations(&changes, context)
                .map_err(|error| violation::value_error(&index.spec().name, error))?;
            if !mutations.is_empty() {
                write(index.spec().store_table, mutations)?;
            }
        }
    }
    Ok(())
}

/// Returns the changes of ascending rows between two reads of them, which may have others.
fn changes_of<'a>(
    rows: &'a [Vec<u8>],
    (old, new): (&'a CellBatch, &'a CellBatch),
    layout: &RowLayout,
) -> Vec<Change<'a>> {
    let mut old_rows = old.rows().peekable();
    let mut new_rows = new.rows().peekable();
    let mut changes = Vec::with_capacity(rows.len());
    for row in rows {
        let row = row.as_slice();
        let old = state_of(old_rows.next_if(|found| found.key() == row), layout);
        let new = state_of(new_rows.next_if(|found| found.key() == row), layout);
        if old != new {
            changes.push(Change { row, old, new, timestamp: None });
        }
    }
    changes
}

fn state_of<'a>(row: Option<RowRef<'a>>, layout: &RowLayout) -> RowState<'a> {
    row.map_or_else(|| RowState::absent(layout), |row| RowState::of(&row, layout))
}
