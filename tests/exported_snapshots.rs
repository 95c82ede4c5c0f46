//! Snapshots shared by sessions: `pg_export_snapshot()` and `SET TRANSACTION SNAPSHOT`.

use tokio_postgres::Client;

use crate::harness::{TestServer, connect};
use crate::serializable::run;

async fn one(client: &Client, sql: &str) -> String {
    run(client, sql).await.unwrap_or_else(|code| panic!("{sql}: {code}")).remove(0)
}

#[tokio::test]
async fn exported_snapshot_is_shared_until_transactions_end() {
    let server = TestServer::start();
    let (leader, worker) = (connect(server.address()).await, connect(server.address()).await);
    let other = connect(server.address()).await;
    run(&other, "CREATE TABLE t (id int PRIMARY KEY)").await.unwrap();
    run(&other, "INSERT INTO t VALUES (1), (2)").await.unwrap();
    run(&leader, "BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
    let name = one(&leader, "SELECT pg_export_snapshot()").await;
    run(&leader, "INSERT INTO t VALUES (10)").await.unwrap();
    run(&other, "INSERT INTO t VALUES (3); DELETE FROM t WHERE id = 1").await.unwrap();
    let import = format!("SET TRANSACTION SNAPSHOT '{name}'");
    run(&worker, "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY").await.unwrap();
    run(&worker, &import).await.unwrap();
    let rows = "SELECT string_agg(id::text, ' ' ORDER BY id) FROM t";
    assert_eq!(one(&worker, rows).await, "1 2");
    run(&leader, "COMMIT").await.unwrap();
    run(&other, "FLUSH t; MAJOR COMPACT t").await.unwrap();
    assert_eq!(one(&worker, rows).await, "1 2");
    assert_eq!(one(&other, rows).await, "2 3 10");
    run(&worker, "COMMIT").await.unwrap();
    run(&worker, "BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
    assert_eq!(run(&worker, &import).await, Err("22023".to_owned()));
}

#[tokio::test]
async fn snapshot_import_requires_repeatable_read_before_first_query() {
    let server = TestServer::start();
    let (leader, worker) = (connect(server.address()).await, connect(server.address()).await);
    run(&leader, "BEGIN").await.unwrap();
    let import = |name: &str| format!("SET TRANSACTION SNAPSHOT '{name}'");
    let name = one(&leader, "SELECT pg_export_snapshot()").await;
    for (begin, statement, code) in [
        ("BEGIN", import(&name), "0A000"),
        ("BEGIN ISOLATION LEVEL SERIALIZABLE", import(&name), "0A000"),
        ("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1", import(&name), "25001"),
        ("BEGIN ISOLATION LEVEL REPEATABLE READ; SAVEPOINT s", import(&name), "25001"),
        ("BEGIN ISOLATION LEVEL REPEATABLE READ", import("00000000-00000001-1"), "22023"),
        ("BEGIN ISOLATION LEVEL REPEATABLE READ", import("../pg_hba.conf"), "22023"),
    ] {
        run(&worker, begin).await.unwrap();
        assert_eq!(run(&worker, &statement).await, Err(code.to_owned()), "{begin}");
        run(&worker, "ROLLBACK").await.unwrap();
    }
    run(&leader, "SAVEPOINT s; SELECT 1 / 0").await.unwrap_err();
    run(&leader, "ROLLBACK").await.unwrap();
    run(&worker, "BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
    assert_eq!(run(&worker, &import(&name)).await, Err("22023".to_owned()));
}
