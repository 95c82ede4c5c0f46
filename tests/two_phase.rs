//! Tests of two-phase commit across a crash of the server.

use tokio_postgres::Client;

use crate::harness::{Process, connect};
use crate::serializable::run;

async fn rows(client: &Client, sql: &str) -> Vec<String> {
    run(client, sql).await.unwrap()
}

async fn run_all(client: &Client, statements: &[&str]) {
    for statement in statements {
        run(client, statement).await.unwrap_or_else(|code| panic!("{statement}: {code}"));
    }
}

const PREPARED: &str = "SELECT gid FROM pg_prepared_xacts ORDER BY gid";

#[tokio::test]
async fn prepared_transaction_survives_sigkill_with_locks() {
    let directory = tempfile::tempdir().unwrap();
    let server = Process::serve(directory.path());
    let client = connect(server.address()).await;
    run_all(
        &client,
        &[
            "CREATE TABLE t (id int PRIMARY KEY, v text, g int); CREATE INDEX t_g ON t (g)",
            "CREATE TABLE u (v text UNIQUE) SALT_BUCKETS = 3",
            "INSERT INTO t SELECT i, 'row ' || i, i % 3 FROM generate_series(1, 20) i",
            "BEGIN",
            "UPDATE t SET v = 'changed', g = 7 WHERE id <= 3",
            "DELETE FROM t WHERE id = 4",
            "INSERT INTO t VALUES (21, 'new', 7)",
            "INSERT INTO u SELECT 'u ' || i FROM generate_series(1, 30) i",
            "SELECT * FROM t WHERE id = 10 FOR UPDATE",
            "PREPARE TRANSACTION 'kept'",
            "BEGIN; UPDATE t SET v = 'never' WHERE id = 15; PREPARE TRANSACTION 'undone'",
            "BEGIN; UPDATE t SET v = 'early' WHERE id = 16; PREPARE TRANSACTION 'early'",
            "COMMIT PREPARED 'early'",
        ],
    )
    .await;
    let server = server.kill_and_restart();
    let client = connect(server.address()).await;
    assert_eq!(rows(&client, PREPARED).await, ["kept", "undone"]);
    assert_eq!(rows(&client, "SELECT v FROM t WHERE id = 16").await, ["early"]);
    assert_eq!(rows(&client, "SELECT count(*) FROM t WHERE g = 7").await, ["0"]);
    run(&client, "SET lock_timeout = '100ms'").await.unwrap();
    for blocked in [
        "UPDATE t SET v = 'x' WHERE id = 1",
        "SELECT * FROM t WHERE id = 10 FOR UPDATE",
        "UPDATE t SET v = 'x' WHERE id = 15",
        "INSERT INTO u VALUES ('u 5')",
        "ALTER TABLE t ADD COLUMN w int",
        "DROP TABLE u",
    ] {
        assert_eq!(run(&client, blocked).await, Err("55P03".to_owned()), "{blocked}");
    }
    run_all(&client, &["UPDATE t SET v = 'free' WHERE id = 11", "FLUSH t", "COMPACT t"]).await;
    run_all(&client, &["ALTER TABLE t SPLIT AT (8)", "ROLLBACK PREPARED 'undone'"]).await;
    let server = server.kill_and_restart();
    let client = connect(server.address()).await;
    assert_eq!(rows(&client, PREPARED).await, ["kept"]);
    run_all(&client, &["UPDATE t SET v = 'after' WHERE id = 15", "COMMIT PREPARED 'kept'"]).await;
    let check = async |client: &Client| {
        assert!(rows(client, PREPARED).await.is_empty());
        let query = "SELECT id, v FROM t WHERE id IN (1, 4, 11, 15, 16, 21) ORDER BY id";
        let expected = ["1|changed", "11|free", "15|after", "16|early", "21|new"];
        assert_eq!(rows(client, query).await, expected);
        let by_index = "/*+ INDEX(t t_g) */ SELECT id FROM t WHERE g = 7 ORDER BY id";
        assert_eq!(rows(client, by_index).await, ["1", "2", "3", "21"]);
        assert_eq!(rows(client, "SELECT count(*) FROM u").await, ["30"]);
    };
    check(&client).await;
    let server = server.kill_and_restart();
    let client = connect(server.address()).await;
    check(&client).await;
    run_all(&client, &["UPDATE t SET v = 'x'", "DROP TABLE u"]).await;
}

#[tokio::test]
async fn large_prepared_transaction_survives_flush_and_restart() {
    let directory = tempfile::tempdir().unwrap();
    let server = Process::serve(directory.path());
    let client = connect(server.address()).await;
    run_all(
        &client,
        &[
            "CREATE TABLE t (id int PRIMARY KEY, v text)",
            "BEGIN",
            "INSERT INTO t SELECT i, repeat('x', 1000) || i FROM generate_series(1, 3000) i",
            "PREPARE TRANSACTION 'large'",
            "CREATE TABLE other (id int PRIMARY KEY)",
            "INSERT INTO other SELECT generate_series(1, 1000)",
            "FLUSH t",
            "FLUSH other",
        ],
    )
    .await;
    drop(client);
    assert!(server.terminate().0.success());
    let server = Process::serve(directory.path());
    let client = connect(server.address()).await;
    assert_eq!(rows(&client, "SELECT count(*) FROM t").await, ["0"]);
    run(&client, "COMMIT PREPARED 'large'").await.unwrap();
    let sum = "SELECT count(*), sum(length(v)) FROM t";
    let expected = rows(&client, sum).await;
    assert!(expected[0].starts_with("3000|"), "{expected:?}");
    let server = server.kill_and_restart();
    let client = connect(server.address()).await;
    assert_eq!(rows(&client, sum).await, expected);
}

#[tokio::test]
async fn prepared_serializable_transaction_prevents_anomalies_after_restart() {
    let directory = tempfile::tempdir().unwrap();
    let server = Process::serve(directory.path());
    let client = connect(server.address()).await;
    run_all(
        &client,
        &[
            "CREATE TABLE t (id int PRIMARY KEY, v int)",
            "INSERT INTO t SELECT i, 0 FROM generate_series(1, 9) i",
            "BEGIN ISOLATION LEVEL SERIALIZABLE",
            "SELECT v FROM t WHERE id = 1",
            "UPDATE t SET v = 1 WHERE id = 2",
            "PREPARE TRANSACTION 'skew'",
        ],
    )
    .await;
    let server = server.kill_and_restart();
    let client = connect(server.address()).await;
    let skew = [
        "BEGIN ISOLATION LEVEL SERIALIZABLE",
        "SELECT v FROM t WHERE id = 2",
        "UPDATE t SET v = 1 WHERE id = 1",
    ];
    run_all(&client, &skew[..2]).await;
    assert_eq!(run(&client, skew[2]).await, Err("40001".to_owned()));
    run_all(&client, &["ROLLBACK", "COMMIT PREPARED 'skew'"]).await;
    run_all(&client, &skew).await;
    run(&client, "COMMIT").await.unwrap();
}

#[tokio::test]
async fn transaction_using_temporary_objects_cannot_be_prepared() {
    let directory = tempfile::tempdir().unwrap();
    let server = Process::serve(directory.path());
    let client = connect(server.address()).await;
    run_all(&client, &["CREATE TEMP TABLE t (a int)"]).await;
    let uses = ["SELECT a FROM t", "INSERT INTO t VALUES (1)", "LOCK t IN ACCESS SHARE MODE"];
    for one in uses {
        run_all(&client, &["BEGIN", one]).await;
        let prepared = run(&client, "PREPARE TRANSACTION 'p'").await;
        assert_eq!(prepared, Err("0A000".to_owned()), "{one}");
    }
    // None of them holds its lock any longer.
    run_all(&client, &["BEGIN", "LOCK t", "COMMIT", "DROP TABLE t"]).await;
}
