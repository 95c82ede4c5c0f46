//! Errors of duplicate keys, with PostgreSQL's messages.

use coprocessors::constraint::duplicate_key_veto;
use store::error::RejectedPut;

use crate::catalog::table::Table;
use crate::error::Error;
use crate::exec::Context;

/// Returns the error of a store call on a table; an existing row violates the primary key.
pub(super) fn of_store(error: store::Error, table: &Table, context: &Context) -> Error {
    match error {
        store::Error::RowExists { table: store_table, row, puts } if store_table == table.id => {
            duplicate(table, (&row, &puts), context)
        }
        error => Error::from(error),
    }
}

/// Returns the error of a row with a duplicate primary key.
pub(super) fn duplicate(table: &Table, row: (&[u8], &[RejectedPut]), context: &Context) -> Error {
    let veto = duplicate_key_veto(&table.constraints, row, &context.eval.style);
    Error::from(store::Error::Vetoed(Box::new(veto)))
}
