//! Begin of the history of tables, for time travel: marks in the catalog and the cells that the
//! store has dropped.

use store::{CellBatch, Get, Timestamp};

use crate::catalog::history_marks::{dropped_column_key, history_key, index_history_key};
use crate::catalog::table::{Index, Table};
use crate::error::Result;
use crate::exec::HistoryBegin;
use crate::system::SystemContext;

/// Returns the begin of the history of a table for queries that read these columns.
pub(super) fn history_begin(
    source: &SystemContext,
    table: &Table,
    columns: &[usize],
) -> Result<HistoryBegin> {
    let mut defined = marked(source, history_key(table.oid))?;
    for &column in columns {
        let key = dropped_column_key(table.oid, &table.columns[column].name);
        defined = defined.max(marked(source, key)?);
    }
    let retained = source.engine.store().history_begin(table.id)?;
    Ok(HistoryBegin { defined, retained })
}

/// Returns the first time that the history of an index includes: its mark, or the end of the
/// versions that retention has dropped.
pub(super) fn index_history_begin(
    source: &SystemContext,
    table: &Table,
    index: &Index,
) -> Result<Timestamp> {
    if table.client_timestamps {
        // An entry may be written after later versions of its row.
        return Ok(Timestamp::LATEST);
    }
    match marked(source, index_history_key(table.oid, index.oid))? {
        Timestamp(i64::MIN) => Ok(Timestamp::LATEST),
        defined => {
            let retained = source.engine.store().history_begin(index.spec.store_table)?;
            Ok(defined.max(retained))
        }
    }
}

/// Returns the timestamp of a mark: that of the present transaction or the newest committed one,
/// since the catalog may be newer than the snapshot of a transaction.
fn marked(source: &SystemContext, key: Vec<u8>) -> Result<Timestamp> {
    let (get, mut found) = (Get::new(key), CellBatch::new());
    source.transaction.get(source.engine.catalog_table, &get, &mut found)?;
    source.engine.store().get(source.engine.catalog_table, &get, &mut found)?;
    let times = found.rows().flat_map(|row| row.cells()).map(|cell| cell.timestamp);
    Ok(times.max().unwrap_or(Timestamp(i64::MIN)))
}
