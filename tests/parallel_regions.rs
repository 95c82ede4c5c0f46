//! Parallel work on regions: endpoint calls and scans, observed and stopped by other sessions.

use std::time::Duration;

use sql::catalog::name::ObjectName;
use store::descriptor::RegionId;
use store::store::HoldGuard;
use tokio_postgres::{Client, NoTls};

use crate::harness::{TestServer, connect};
use crate::raw::{Frames, Raw};

/// Returns the regions of a table, in order.
fn regions(server: &TestServer, table: &str) -> Vec<RegionId> {
    let engine = server.database().engine();
    let catalog = engine.catalog();
    let table = catalog.table_named(&ObjectName::public(table)).expect("the table is there");
    engine.store().regions(table.id).unwrap().iter().map(|region| region.region).collect()
}

/// Blocks a region.
fn hold(server: &TestServer, region: RegionId) -> HoldGuard {
    server.database().engine().store().hold_region(region, Duration::from_secs(600)).unwrap()
}

/// Runs a query of one row until it returns the expected value.
async fn wait_for_row(client: &Client, query: &str, expected: &str) {
    loop {
        let row = client.query_opt(query, &[]).await.unwrap();
        if row.is_some_and(|row| row.get::<_, String>(0) == expected) {
            return;
        }
    }
}

const CALLS: &str = "SELECT table_name || ' ' || endpoint || ' ' || rows_read || ' ' || \
                     regions_done || ' of ' || regions FROM bennu.endpoint_calls";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoint_progress_is_visible_and_call_is_cancellable() {
    let server = TestServer::start();
    let (caller, other) = (connect(server.address()).await, connect(server.address()).await);
    caller
        .batch_execute(
            "CREATE TABLE t (a int PRIMARY KEY) SPLIT ON (100, 200);
             INSERT INTO t SELECT i FROM generate_series(1, 250) AS x (i)",
        )
        .await
        .unwrap();
    let guard = hold(&server, regions(&server, "t")[1]);
    let token = caller.cancel_token();
    let call = tokio::spawn(async move {
        let count = caller.query_one("SELECT count(*) FROM t", &[]).await;
        (caller, count)
    });
    wait_for_row(&other, CALLS, "t aggregate 99 1 of 3").await;
    token.cancel_query(NoTls).await.unwrap();
    let (caller, count) = call.await.unwrap();
    assert_eq!(count.unwrap_err().as_db_error().unwrap().code().code(), "57014");
    assert!(other.query_opt(CALLS, &[]).await.unwrap().is_none());
    drop(guard);
    let row = caller.query_one("SELECT count(*) FROM t", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 250);
}

/// Rows of the table of [`wide_table`], in four regions.
const ROWS: u64 = 40_000;

/// Creates a table whose result far exceeds the socket buffers.
async fn wide_table(client: &Client) {
    client
        .batch_execute(
            "CREATE TABLE t (a int PRIMARY KEY) SPLIT ON (10000, 20000, 30000);
             INSERT INTO t SELECT i FROM generate_series(0, 39999) AS x (i)",
        )
        .await
        .unwrap();
}

const WIDE_QUERY: &str = "SELECT repeat('x', 3000), a FROM t";

fn rows_read(server: &TestServer) -> u64 {
    let engine = server.database().engine();
    let table =
        engine.catalog().table_named(&ObjectName::public("t")).expect("the table is there").id;
    engine.store().regions(table).unwrap().iter().map(|region| region.load.rows_read).sum()
}

/// Waits until the number of rows read has not changed during five hundred queries of another
/// session.
async fn wait_for_idle_readers(server: &TestServer, other: &Client) -> u64 {
    loop {
        let before = rows_read(server);
        for _ in 0..500 {
            other.batch_execute("SELECT 1").await.unwrap();
        }
        if before > 0 && rows_read(server) == before {
            return before;
        }
    }
}

/// Waits until no statement is open.
async fn wait_for_end(server: &TestServer, other: &Client) {
    while !server.database().engine().store().snapshots().is_empty() {
        other.batch_execute("SELECT 1").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalled_client_stops_read_ahead() {
    let server = TestServer::start();
    let other = connect(server.address()).await;
    wide_table(&other).await;
    let mut stalled = Raw::login(server.address());
    stalled.send(&Frames::new().query(WIDE_QUERY).0);
    // The client does not read at all at first, then pauses: region threads have joined in by
    // then.
    let read = wait_for_idle_readers(&server, &other).await;
    assert!(read < ROWS / 2, "{read}");
    (0..5_000).for_each(|_| drop(stalled.read().unwrap()));
    let read = wait_for_idle_readers(&server, &other).await;
    // Rows read by the client, rows in socket buffers, and four batches of each region.
    assert!((5_000..ROWS / 4 * 3).contains(&read), "{read}");
    let ahead = server.database().engine().store().status().read_ahead_bytes;
    assert!((1..=5 << 20).contains(&ahead), "{ahead}");
    // The client disconnects.
    drop(stalled);
    wait_for_end(&server, &other).await;
    assert_eq!(rows_read(&server), read, "nothing was read for nobody");
    assert_eq!(server.database().engine().store().status().read_ahead_bytes, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_cursor_stops_read_ahead() {
    let server = TestServer::start();
    let (mut client, other) = (connect(server.address()).await, connect(server.address()).await);
    wide_table(&client).await;
    let transaction = client.transaction().await.unwrap();
    let portal = transaction.bind(WIDE_QUERY, &[]).await.unwrap();
    let mut seen = 0;
    while seen < 5_000 {
        seen += transaction.query_portal(&portal, 500).await.unwrap().len();
    }
    let read = wait_for_idle_readers(&server, &other).await;
    assert!((5_000..ROWS).contains(&read), "{read}");
    drop(portal);
    transaction.commit().await.unwrap();
    wait_for_end(&server, &other).await;
    assert_eq!(rows_read(&server), read);
}
