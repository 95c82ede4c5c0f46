//! Regions worked on side by side: calls of endpoints and scans that others watch and stop.

use store::descriptor::RegionId;
use store::store::HoldGuard;
use tokio_postgres::{Client, NoTls};

use crate::harness::{TestServer, connect};

/// Returns the regions of a table, in order.
fn regions(server: &TestServer, table: &str) -> Vec<RegionId> {
    let engine = server.database().engine();
    let catalog = engine.catalog();
    let table = catalog.table(table).expect("the table is there");
    engine.store().regions(table.id).unwrap().iter().map(|region| region.region).collect()
}

/// Stops a region from answering.
fn hold(server: &TestServer, region: RegionId) -> HoldGuard {
    server.database().engine().store().hold_region(region).unwrap()
}

/// Asks for one row until it is this one.
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
async fn another_session_sees_how_far_a_call_is_and_stops_it() {
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
