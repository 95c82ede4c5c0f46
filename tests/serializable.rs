//! SERIALIZABLE as clients see it: what commits has a serial order that explains all that was read.
//!
//! * `orders`: sessions whose steps are put in every order; what they return is compared with what
//!   they return one after the other.
//! * `random`: many clients at once, and a search for cycles in what they have seen.

mod orders;
mod random;

use tokio_postgres::{Client, SimpleQueryMessage};

/// Runs statements; returns the rows of the last as text, or the code of the error.
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
