//! Lost update tests: concurrent clients lock, read and write; no increment is lost with any kind
//! of lock.
//!
//! The disk is slow, so that a lock is passed on long before the commit of its holder is durable:
//! the next holder must nevertheless see that commit, in other rows, too.

use std::time::Duration;

use tokio_postgres::{Client, SimpleQueryMessage};

use crate::harness::{Setup, TestServer, connect};

/// Duration of a sync.
const SYNC: Duration = Duration::from_millis(2);
const CLIENTS: usize = 4;
const ROUNDS: usize = 20;

const TABLES: &str = "CREATE TABLE mx (id int PRIMARY KEY, v int); INSERT INTO mx VALUES (1, 0);
    CREATE TABLE ctr (id int PRIMARY KEY, n int); INSERT INTO ctr VALUES (1, 0);
    CREATE TABLE u (id int PRIMARY KEY, k text UNIQUE, n int);
    CREATE TABLE parent (id int PRIMARY KEY, n int); INSERT INTO parent VALUES (1, 0);
    CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent);
    CREATE FUNCTION bump() RETURNS int LANGUAGE sql VOLATILE AS $$
        SELECT v FROM mx WHERE id = 1 FOR UPDATE;
        UPDATE ctr SET n = (SELECT n FROM ctr WHERE id = 1) + 1 WHERE id = 1 RETURNING n;
    $$";

const READ: &str = "SELECT n FROM ctr WHERE id = 1";

/// Runs statements; returns the first value of the last one with rows.
async fn value(client: &Client, text: &str) -> Option<String> {
    let messages = client.simple_query(text).await.unwrap();
    messages.iter().rev().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    })
}

/// Increments the counter with a value computed by the client.
async fn increment(client: &Client) {
    let read: i64 = value(client, READ).await.unwrap().parse().unwrap();
    client.batch_execute(&format!("UPDATE ctr SET n = {} WHERE id = 1", read + 1)).await.unwrap();
}

/// Increments the counter concurrently, with `step` on each client; returns its final value.
async fn final_count<F>(step: impl Fn(Client) -> F) -> i64
where
    F: Future<Output = Client> + Send + 'static,
{
    let server = TestServer::start_with(Setup { sync_time: Some(SYNC), ..Setup::default() });
    let first = connect(server.address()).await;
    first.batch_execute(TABLES).await.unwrap();
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(connect(server.address()).await);
    }
    for _ in 0..ROUNDS {
        let running: Vec<_> = clients.drain(..).map(|client| tokio::spawn(step(client))).collect();
        for client in running {
            clients.push(client.await.unwrap());
        }
    }
    value(&first, READ).await.unwrap().parse().unwrap()
}

const ALL: i64 = (CLIENTS * ROUNDS) as i64;

/// As [`final_count`], in a block that begins with these statements.
async fn count_after(lock: &'static [&'static str]) -> i64 {
    final_count(move |client| async move {
        for statement in lock {
            client.batch_execute(statement).await.unwrap();
        }
        increment(&client).await;
        client.batch_execute("COMMIT").await.unwrap();
        client
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_lock_protects_unlocked_rows() {
    assert_eq!(count_after(&["BEGIN", "SELECT v FROM mx WHERE id = 1 FOR UPDATE"]).await, ALL);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn table_lock_protects_rows_of_other_table() {
    assert_eq!(count_after(&["BEGIN", "LOCK TABLE mx IN EXCLUSIVE MODE"]).await, ALL);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshot_is_taken_after_first_lock() {
    let lock = ["BEGIN ISOLATION LEVEL REPEATABLE READ", "LOCK TABLE ctr IN EXCLUSIVE MODE"];
    let lock: &'static [&'static str] = Box::leak(Box::new(lock));
    assert_eq!(count_after(lock).await, ALL);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transaction_advisory_lock_protects_rows() {
    assert_eq!(count_after(&["BEGIN", "SELECT pg_advisory_xact_lock(1)"]).await, ALL);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_advisory_lock_protects_rows() {
    let end = final_count(|client| async move {
        client.batch_execute("SELECT pg_advisory_lock(1)").await.unwrap();
        increment(&client).await;
        client.batch_execute("SELECT pg_advisory_unlock(1)").await.unwrap();
        client
    });
    assert_eq!(end.await, ALL);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updated_row_protects_other_rows_and_is_visible() {
    let end = final_count(|client| async move {
        client.batch_execute("BEGIN").await.unwrap();
        let updated = value(&client, "UPDATE mx SET v = v + 1 WHERE id = 1 RETURNING v").await;
        assert_eq!(value(&client, "SELECT v FROM mx WHERE id = 1").await, updated);
        increment(&client).await;
        client.batch_execute("COMMIT").await.unwrap();
        client
    });
    assert_eq!(end.await, ALL);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upserted_row_is_found_by_secondary_index() {
    let upsert = "INSERT INTO u VALUES (1, 'k', 1) \
                  ON CONFLICT (id) DO UPDATE SET k = 'k' || u.n, n = u.n + 1 RETURNING k";
    let end = final_count(move |client| async move {
        client.batch_execute("BEGIN").await.unwrap();
        let key = value(&client, upsert).await.unwrap();
        let found = value(&client, &format!("SELECT count(*) FROM u WHERE k = '{key}'")).await;
        assert_eq!(found.as_deref(), Some("1"));
        let found = value(&client, &format!("SELECT k FROM u WHERE k = '{key}'")).await;
        assert_eq!(found.unwrap(), key);
        increment(&client).await;
        client.batch_execute("COMMIT").await.unwrap();
        client
    });
    assert_eq!(end.await, ALL);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn function_statements_see_rows_protected_by_lock() {
    let end = final_count(|client| async move {
        client.batch_execute("SELECT bump()").await.unwrap();
        client
    });
    assert_eq!(end.await, ALL);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn multi_statement_message_sees_rows_protected_by_lock() {
    let end = final_count(|client| async move {
        let text = "BEGIN; SELECT v FROM mx WHERE id = 1 FOR UPDATE; \
                    UPDATE ctr SET n = (SELECT n FROM ctr WHERE id = 1) + 1 WHERE id = 1; COMMIT";
        client.batch_execute(text).await.unwrap();
        client
    });
    assert_eq!(end.await, ALL);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parent_row_lock_protects_child_rows() {
    // The number of children is read after locking the parent, and each client adds one.
    let end = final_count(|client| async move {
        client.batch_execute("BEGIN; SELECT n FROM parent WHERE id = 1 FOR UPDATE").await.unwrap();
        let count = value(&client, "SELECT count(*) FROM child WHERE parent = 1").await.unwrap();
        client.batch_execute(&format!("INSERT INTO child VALUES ({count}, 1)")).await.unwrap();
        increment(&client).await;
        client.batch_execute("COMMIT").await.unwrap();
        client
    });
    assert_eq!(end.await, ALL);
}
