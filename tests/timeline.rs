//! Tests of TIMELINE: reads go to a replica if the primary region does not answer.

use sql::catalog::name::ObjectName;
use std::time::Duration;

use store::store::HoldGuard;
use tokio_postgres::Client;

use crate::harness::{TestServer, connect};

/// Blocks the first region of a table.
fn hold(server: &TestServer, table: &str) -> HoldGuard {
    let engine = server.database().engine();
    let catalog = engine.catalog();
    let table = catalog.table_named(&ObjectName::public(table)).expect("the table is there");
    let region = engine.store().regions(table.id).unwrap()[0].region;
    engine.store().hold_region(region).unwrap()
}

async fn table_with_replica(server: &TestServer) -> Client {
    let client = connect(server.address()).await;
    client
        .batch_execute("CREATE TABLE t (a int PRIMARY KEY, b text) REGION_REPLICATION = 2")
        .await
        .unwrap();
    client.batch_execute("INSERT INTO t VALUES (1, 'one'), (2, 'two')").await.unwrap();
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timeline_session_reads_from_replica() {
    let server = TestServer::start();
    let timeline = table_with_replica(&server).await;
    timeline.batch_execute("ALTER SESSION SET CONSISTENCY = 'TIMELINE'").await.unwrap();
    timeline.batch_execute("SET primary_call_timeout = '20ms'").await.unwrap();
    let guard = hold(&server, "t");
    let rows = timeline.query("SELECT b FROM t ORDER BY a", &[]).await.unwrap();
    let values: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(values, ["one", "two"]);
    let row = timeline.query_one("SELECT b FROM t WHERE a = 2", &[]).await.unwrap();
    assert_eq!(row.get::<_, String>(0), "two");
    let row = timeline.query_one("SELECT count(*) FROM t", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 2);
    drop(guard);
    timeline.batch_execute("INSERT INTO t VALUES (3, 'three')").await.unwrap();
    let row = timeline.query_one("SELECT count(*) FROM t", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strong_session_waits_for_primary() {
    let server = TestServer::start();
    let strong = table_with_replica(&server).await;
    let timeline = connect(server.address()).await;
    timeline.batch_execute("SET consistency = 'TIMELINE'").await.unwrap();
    let guard = hold(&server, "t");
    let waiting = tokio::spawn(async move {
        strong.query_one("SELECT count(*) FROM t", &[]).await.map(|row| row.get::<_, i64>(0))
    });
    // When the replica has answered, the strong read has been running for long.
    timeline.query_one("SELECT count(*) FROM t", &[]).await.unwrap();
    assert!(!waiting.is_finished(), "a strong read does not go to a replica");
    drop(guard);
    assert_eq!(waiting.await.unwrap().unwrap(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strong_read_times_out_and_session_continues() {
    let server = TestServer::start();
    let strong = table_with_replica(&server).await;
    strong.batch_execute("SET statement_timeout = '100ms'").await.unwrap();
    let guard = hold(&server, "t");
    let error = tokio::time::timeout(
        Duration::from_secs(30),
        strong.query_one("SELECT count(*) FROM t", &[]),
    )
    .await
    .expect("the time-out is kept")
    .unwrap_err();
    assert_eq!(error.as_db_error().unwrap().code().code(), "57014");
    drop(guard);
    let row = strong.query_one("SELECT count(*) FROM t", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 2);
}
