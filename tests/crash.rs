//! Crash test: kill -9 under load; acknowledged transactions are present, and all others are
//! atomic.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;
use tokio_postgres::{Client, NoTls};

use crate::harness::{Process, connect, connection_string};

const ROUNDS: u64 = 4;
const CLIENTS: u64 = 6;
/// Transactions that are acknowledged in a round before the server is killed.
const ACKNOWLEDGED_PER_ROUND: u64 = 150;

const TABLES: &str = "\
CREATE TABLE entry (client bigint, number bigint, kind text, PRIMARY KEY (client, number))
    SALT_BUCKETS = 3;
CREATE INDEX entry_kind ON entry (kind) INCLUDE (number);
CREATE TABLE mirror (id text PRIMARY KEY, number bigint);
CREATE UNIQUE INDEX mirror_number ON mirror (number, id);
CREATE TABLE counter (client bigint PRIMARY KEY, n bigint NOT NULL);
CREATE TABLE total (id int PRIMARY KEY, n bigint NOT NULL);
INSERT INTO total VALUES (1, 0)";

/// Acknowledgements received by the clients.
#[derive(Default)]
struct AcknowledgedWrites {
    /// For each client, the number of its last transaction that was acknowledged.
    last: BTreeMap<u64, u64>,
}

/// Runs transactions until the connection breaks; returns the number of the last acknowledged
/// one.
async fn write(
    address: SocketAddr,
    client_number: u64,
    first: u64,
    acknowledged: Arc<AtomicU64>,
    enough: Arc<Notify>,
) -> u64 {
    let mut last = first - 1;
    let Ok((client, connection)) =
        tokio_postgres::connect(&connection_string(address), NoTls).await
    else {
        return last;
    };
    tokio::spawn(connection);
    loop {
        if transaction(&client, client_number, last + 1).await.is_err() {
            return last;
        }
        last += 1;
        if acknowledged.fetch_add(1, Ordering::Relaxed) + 1 >= ACKNOWLEDGED_PER_ROUND {
            enough.notify_one();
        }
    }
}

async fn transaction(
    client: &Client,
    client_number: u64,
    number: u64,
) -> Result<(), tokio_postgres::Error> {
    let kind = format!("kind {}", number % 5);
    client
        .batch_execute(&format!(
            "BEGIN; \
             INSERT INTO entry VALUES ({client_number}, {number}, '{kind}'); \
             INSERT INTO mirror VALUES ('{client_number}/{number}', {number}); \
             INSERT INTO counter VALUES ({client_number}, 1) \
                ON CONFLICT (client) DO UPDATE SET n = counter.n + 1; \
             UPDATE total SET n = n + 1 WHERE id = 1; \
             COMMIT"
        ))
        .await
}

async fn number(client: &Client, sql: &str) -> u64 {
    let row = client.query_one(sql, &[]).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    row.get::<_, Option<i64>>(0).unwrap_or(0) as u64
}

async fn check(client: &Client, acknowledged: &AcknowledgedWrites) -> BTreeMap<u64, u64> {
    let mut found = BTreeMap::new();
    let mut sum = 0;
    for client_number in 0..CLIENTS {
        let of = format!("FROM entry WHERE client = {client_number}");
        let count = number(client, &format!("SELECT count(*) {of}")).await;
        let last = number(client, &format!("SELECT max(number) {of}")).await;
        assert_eq!(count, last, "client {client_number}: a hole in its rows");
        let told = acknowledged.last.get(&client_number).copied().unwrap_or(0);
        assert!(last >= told, "client {client_number}: {told} acknowledged, {last} there");
        assert!(last <= told + 1, "client {client_number}: a row that was never written");
        let counted = format!("SELECT n FROM counter WHERE client = {client_number}");
        let rows = client.query(&counted, &[]).await.unwrap();
        let counter = rows.first().map_or(0, |row| row.get::<_, i64>(0) as u64);
        assert_eq!(counter, last, "client {client_number}: counter and rows differ");
        found.insert(client_number, last);
        sum += last;
    }
    assert_eq!(number(client, "SELECT n FROM total").await, sum, "the hot counter");
    assert_eq!(number(client, "SELECT count(*) FROM mirror").await, sum, "the second table");
    let joined = "SELECT count(*) FROM entry e JOIN mirror m \
                  ON m.id = e.client || '/' || e.number AND m.number = e.number";
    assert_eq!(number(client, joined).await, sum, "rows of the two tables");
    // The index and the rows are consistent.
    for kind in 0..5 {
        let of =
            format!("client * 1000000 + number FROM entry WHERE kind = 'kind {kind}' ORDER BY 1");
        let by_index = client
            .query(&format!("SELECT /*+ INDEX(entry entry_kind) */ {of}"), &[])
            .await
            .unwrap();
        let by_scan = client.query(&format!("SELECT /*+ NO_INDEX */ {of}"), &[]).await.unwrap();
        let values = |rows: &[tokio_postgres::Row]| -> Vec<i64> {
            rows.iter().map(|row| row.get(0)).collect()
        };
        assert_eq!(values(&by_index), values(&by_scan), "kind {kind}");
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_transactions_survive_kill_atomically() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Process::serve(directory.path());
    connect(server.address()).await.batch_execute(TABLES).await.unwrap();
    let mut state = AcknowledgedWrites::default();
    for round in 0..ROUNDS {
        let count = Arc::new(AtomicU64::new(0));
        let enough = Arc::new(Notify::new());
        let mut writers = Vec::new();
        for client_number in 0..CLIENTS {
            let first = state.last.get(&client_number).copied().unwrap_or(0) + 1;
            let task = write(
                server.address(),
                client_number,
                first,
                Arc::clone(&count),
                Arc::clone(&enough),
            );
            writers.push((client_number, tokio::spawn(task)));
        }
        enough.notified().await;
        if round % 2 == 1 {
            // Some data is in store files, some in the log.
            let other = connect(server.address()).await;
            other.batch_execute("FLUSH entry; FLUSH total").await.unwrap();
        }
        server = server.kill_and_restart();
        for (client_number, writer) in writers {
            state.last.insert(client_number, writer.await.unwrap());
        }
        let client = connect(server.address()).await;
        // The outcome of unacknowledged transactions was unknown; now it is determined.
        state.last = check(&client, &state).await;
    }
    let (status, _) = server.terminate();
    assert!(status.success());
}
