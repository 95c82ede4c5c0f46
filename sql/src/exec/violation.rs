//! Duplicate keys, in PostgreSQL's words.

use types::Datum;
use types::text::TextStyle;

use crate::catalog::table::Table;
use crate::error::{Error, sqlstate};

/// Returns the error of a store call on a table; a row that exists violates the primary key.
pub(super) fn of_store(error: store::Error, table: &Table) -> Error {
    match error {
        store::Error::RowExists { table: store_table, row } if store_table == table.id => {
            duplicate(table, &row)
        }
        error => Error::from(error),
    }
}

/// Returns the error of a row whose primary key is taken.
pub(super) fn duplicate(table: &Table, row: &[u8]) -> Error {
    let mut error = Error::new(
        sqlstate::UNIQUE_VIOLATION,
        format!("duplicate key value violates unique constraint \"{}\"", table.primary_key_name),
    );
    error.table = Some(table.name.clone());
    error.constraint = Some(table.primary_key_name.clone());
    if let Ok(values) = table.layout.decode_key(row) {
        let names: Vec<&str> =
            table.key_columns().map(|column| table.columns[column].name.as_str()).collect();
        let texts: Vec<String> = table
            .key_columns()
            .zip(&values)
            .map(|(column, value)| text(value, table.layout.columns[column].data_type))
            .collect();
        let (names, texts) = (names.join(", "), texts.join(", "));
        error = error.with_detail(format!("Key ({names})=({texts}) already exists."));
    }
    error
}

fn text(value: &Datum, data_type: types::DataType) -> String {
    if value.is_null() {
        return "null".to_owned();
    }
    let mut bytes = Vec::new();
    types::text::write(value, data_type, &TextStyle::default(), &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}
