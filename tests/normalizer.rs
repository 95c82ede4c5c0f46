//! Tests of the periodic normaliser of a server.

use std::time::{Duration, Instant};

use tokio_postgres::{Client, SimpleQueryMessage};

use crate::harness::{Process, connect};

/// Returns the first column of the first row.
async fn value(client: &Client, query: &str) -> String {
    let messages = client.simple_query(query).await.unwrap();
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    row.unwrap().get(0).unwrap().to_owned()
}

async fn await_value(client: &Client, query: &str, expected: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let found = value(client, query).await;
        if found == expected {
            return;
        }
        assert!(Instant::now() < deadline, "{query}: {found}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

const REGIONS: &str =
    "SELECT string_agg(table_name || ' ' || regions, ', ' ORDER BY table_name) FROM bennu.tables";

#[tokio::test]
async fn enabled_tables_are_normalized_periodically() {
    let root = tempfile::tempdir().unwrap();
    let define = "CREATE TABLE off (a int PRIMARY KEY) SPLIT ON ((1), (2), (3)); \
        CREATE TABLE \"on\" (a int PRIMARY KEY, b int) WITH (normalization_enabled = true) SPLIT ON ((1), (2), (3)); \
        CREATE INDEX on_b ON \"on\" (b); ALTER INDEX on_b SPLIT AT (5), (6)";
    let data = root.path().join("data");
    // Young regions stay.
    let server = Process::serve_with(&data, &["--normalizer-period", "10ms"]);
    let client = connect(server.address()).await;
    client.batch_execute(define).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(value(&client, REGIONS).await, "off 4, on 4");
    drop((client, server));
    let settings = ["--normalizer-period", "10ms", "--normalizer-min-age", "0"];
    let server = Process::serve_with(&data, &settings);
    let client = connect(server.address()).await;
    await_value(&client, REGIONS, "off 4, on 1").await;
    let index = "SELECT count(*) FROM bennu.regions WHERE table_name = 'on_b'";
    await_value(&client, index, "1").await;
    // Enabled online; a dropped table does not stop it.
    client.batch_execute("DROP TABLE \"on\"").await.unwrap();
    client.batch_execute("ALTER TABLE off SET NORMALIZATION_ENABLED = true").await.unwrap();
    await_value(&client, REGIONS, "off 1").await;
}
