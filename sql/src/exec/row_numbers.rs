//! The hidden keys of new rows of a table without a primary key.

use std::ops::Range;

use store::TableId;
use types::Datum;

use crate::catalog::table::Table;
use crate::error::Result;
use crate::exec::Context;

/// Most numbers that a statement takes at once.
const TAKEN_MAX: u64 = 1_024;

/// Numbers for the rows that one statement inserts into a table; none for a table with a primary
/// key.
pub(super) struct RowNumbers {
    /// The table and its hidden column.
    of: Option<(TableId, usize)>,
    free: Range<u64>,
    /// How many to take next: few for a statement that inserts few.
    take: u64,
}

impl RowNumbers {
    /// Returns numbers for new rows of a table.
    pub(super) fn new(table: &Table) -> RowNumbers {
        let of = table.row_id_column().map(|column| (table.id, column));
        RowNumbers { of, free: 0..0, take: 1 }
    }

    /// Returns whether the table's rows are numbered here.
    pub(super) fn are_given(&self) -> bool {
        self.of.is_some()
    }

    /// Puts the next number into a row in table order.
    pub(super) fn number(&mut self, row: &mut [Datum], context: &Context) -> Result<()> {
        let Some((table, column)) = self.of else { return Ok(()) };
        if self.free.is_empty() {
            self.free = context.system.row_ids(table, self.take)?;
            self.take = TAKEN_MAX.min(self.take * 2);
        }
        row[column] = Datum::Int8(self.free.start as i64);
        self.free.start += 1;
        Ok(())
    }
}
