//! Tests of SERIALIZABLE: committed transactions have a serial order that explains all reads.
//!
//! * `interleavings`: all interleavings of the steps of some sessions; the results are compared
//!   with those of serial execution.
//! * `random`: many concurrent clients, and a search for cycles in their histories.

mod interleavings;
mod random;

use tokio_postgres::{Client, SimpleQueryMessage};

/// Runs statements; returns the rows of the last as text, or the SQLSTATE.
pub(crate) async fn run(client: &Client, sql: &str) -> Result<Vec<String>, String> {
    let done = client.simple_query(sql).await;
    let messages = done.map_err(|error| match error.as_db_error() {
        Some(error) => error.code().code().to_owned(),
        None => panic!("{sql}: {error}"),
    })?;
    let text = |row: &tokio_postgres::SimpleQueryRow| {
        let values = (0..row.len()).map(|at| row.get(at).unwrap_or("NULL"));
        values.collect::<Vec<_>>().join("|")
    };
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(text(row)),
        _ => None,
    });
    Ok(rows.collect())
}
