//! Hidden keys of new rows in a table without a primary key.

use std::ops::Range;

use store::TableId;
use types::Datum;

use crate::catalog::table::Table;
use crate::error::Result;
use crate::exec::Context;

/// Maximum number of ids that a statement takes at once.
const TAKEN_MAX: u64 = 1_024;

/// Allocator of hidden keys for one statement's inserts into a table; unused for a table with a
/// primary key.
pub(super) struct RowIdAllocator {
    /// Table and its hidden column.
    of: Option<(TableId, usize)>,
    free: Range<u64>,
    /// Number of ids to take next, which doubles each time.
    take: u64,
}

impl RowIdAllocator {
    /// Returns the allocator for new rows of a table.
    pub(super) fn new(table: &Table) -> RowIdAllocator {
        let of = table.row_id_column().map(|column| (table.id, column));
        RowIdAllocator { of, free: 0..0, take: 1 }
    }

    /// Sets the hidden key of a row in table order.
    pub(super) fn assign(&mut self, row: &mut [Datum], context: &Context) -> Result<()> {
        let Some((table, column)) = self.of else { return Ok(()) };
        if self.free.is_empty() {
            self.free = context.system.row_ids(table, self.take)?;
            debug_assert!(!self.free.is_empty(), "no hidden keys for table {}", table.0);
            self.take = TAKEN_MAX.min(self.take * 2);
        }
        row[column] = Datum::Int8(self.free.start as i64);
        self.free.start += 1;
        Ok(())
    }
}
