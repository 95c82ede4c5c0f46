//! Tests of admission control: long statements with few execution slots, short statements, and
//! locks.

use std::time::Duration;

use sql::catalog::name::ObjectName;
use store::Store;
use store::admission::AdmissionStatus;
use store::options::AdmissionOptions;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

use crate::harness::{Setup, TestServer, connect};

/// A query that runs until it is cancelled.
const ENDLESS: &str = "SELECT max(md5(i::text)) FROM generate_series(1, 1000000000) AS g(i)";

/// Starts a server with one execution slot.
fn server_with_one_slot() -> TestServer {
    let admission = AdmissionOptions { handlers: 1 };
    TestServer::start_with(Setup { admission, ..Setup::default() })
}

fn store(server: &TestServer) -> &std::sync::Arc<Store> {
    server.database().engine().store()
}

async fn await_status(server: &TestServer, reached: impl Fn(AdmissionStatus) -> bool) {
    while !reached(store(server).admission()) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn client_with_rows(server: &TestServer) -> Client {
    let client = connect(server.address()).await;
    client.batch_execute("CREATE TABLE t (a int PRIMARY KEY, b int)").await.unwrap();
    client.batch_execute("INSERT INTO t VALUES (1, 10), (2, 20)").await.unwrap();
    client
}

/// Runs statements without an end, until they are cancelled.
async fn run_endless(server: &TestServer, statements: &[&'static str]) -> BusySession {
    let mut running = Vec::new();
    for &statement in statements {
        let client = connect(server.address()).await;
        let cancel = client.cancel_token();
        let task = tokio::spawn(async move {
            let error = client.batch_execute(statement).await.unwrap_err();
            assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED), "{statement}: {error:?}");
        });
        running.push((cancel, task));
    }
    BusySession { running }
}

struct BusySession {
    running: Vec<(tokio_postgres::CancelToken, tokio::task::JoinHandle<()>)>,
}

impl BusySession {
    async fn cancel(self) {
        for (cancel, task) in self.running {
            cancel.cancel_query(NoTls).await.unwrap();
            task.await.unwrap();
        }
    }
}

#[tokio::test]
async fn long_statements_queue_but_short_ones_do_not() {
    let server = server_with_one_slot();
    let client = client_with_rows(&server).await;
    let computing = run_endless(&server, &[ENDLESS, ENDLESS, ENDLESS]).await;
    await_status(&server, |status| status.queued >= 2 && status.waited >= 10).await;
    // Each of these would wait for at least a second if it needed the slot.
    for _ in 0..20 {
        let row = client.query_one("SELECT b FROM t WHERE a = 1", &[]).await.unwrap();
        assert_eq!(row.get::<_, i32>(0), 10);
        client.batch_execute("UPDATE t SET b = 20 WHERE a = 2").await.unwrap();
    }
    let row =
        client.query_one("SELECT slots, active, queued FROM bennu.admission", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 1);
    assert!((1..=3).contains(&(row.get::<_, i64>(1) + row.get::<_, i64>(2))));
    computing.cancel().await;
    await_status(&server, |status| (status.active, status.queued) == (0, 0)).await;
}

#[tokio::test]
async fn all_computations_acquire_and_release_slots() {
    let server = server_with_one_slot();
    let rows = connect(server.address()).await;
    rows.batch_execute("CREATE TABLE big (a int PRIMARY KEY, b text)").await.unwrap();
    let insert = "INSERT INTO big SELECT n, md5(n::text) FROM generate_series(1, 3000) AS g(n)";
    rows.batch_execute(insert).await.unwrap();
    let kinds = [
        ENDLESS,
        "SELECT count(*) FROM big x, big y, big z WHERE x.b || y.b > z.b",
        "WITH RECURSIVE r(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r",
        "DO 'BEGIN LOOP END LOOP; END'",
        "SELECT sum(row_number) FROM (SELECT row_number() OVER (ORDER BY x.b, y.b) FROM big x, big y) w",
        "SELECT count(*) FROM generate_series(1, 1000000) WHERE sqrt(repeat('9', 4000)::numeric) > 0",
    ];
    for kind in kinds {
        let computing = run_endless(&server, &[kind, kind]).await;
        let before = store(&server).admission().waited;
        await_status(&server, |status| status.waited > before + 2).await;
        computing.cancel().await;
        await_status(&server, |status| (status.active, status.queued) == (0, 0)).await;
    }
}

#[tokio::test]
async fn slot_wait_ends_at_statement_timeout() {
    let server = server_with_one_slot();
    let client = client_with_rows(&server).await;
    let computing = run_endless(&server, &[ENDLESS, ENDLESS]).await;
    await_status(&server, |status| status.queued == 1).await;
    client.batch_execute("SET statement_timeout = 50").await.unwrap();
    let error = client.batch_execute(ENDLESS).await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
    assert!(error.as_db_error().unwrap().message().ends_with("statement timeout"));
    computing.cancel().await;
}

#[tokio::test]
async fn lock_wait_releases_execution_slot() {
    let server = server_with_one_slot();
    let first = client_with_rows(&server).await;
    first.batch_execute("BEGIN; UPDATE t SET b = 11 WHERE a = 1").await.unwrap();
    let second = connect(server.address()).await;
    let waiting = tokio::spawn(async move {
        // The statement is long when it reaches the lock.
        let update = "UPDATE t SET b = b + (SELECT count(md5(i::text)) FROM generate_series(1, 300000) AS g(i))::int WHERE a = 1";
        second.batch_execute(update).await.unwrap();
        second
    });
    let lock_waits = || -> u64 {
        let catalog = server.database().engine().catalog();
        let regions = store(&server)
            .regions(catalog.table_named(&ObjectName::public("t")).unwrap().id)
            .unwrap();
        regions.iter().map(|region| region.load.lock_waits).sum()
    };
    while lock_waits() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(store(&server).admission().admitted > 0, "it was long");
    assert_eq!(store(&server).admission().active, 0);
    first.batch_execute("UPDATE t SET b = 21 WHERE a = 2; COMMIT").await.unwrap();
    let second = waiting.await.unwrap();
    let row = second.query_one("SELECT sum(b) FROM t", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 11 + 300_000 + 21);
}

#[tokio::test]
async fn long_scans_of_many_clients_complete() {
    let server = server_with_one_slot();
    let client = connect(server.address()).await;
    client
        .batch_execute("CREATE TABLE t (a int PRIMARY KEY, b int) SALT_BUCKETS = 4")
        .await
        .unwrap();
    let insert = "INSERT INTO t SELECT n, 1 FROM generate_series(1, 30000) AS g(n)";
    client.batch_execute(insert).await.unwrap();
    let mut running = Vec::new();
    for query in ["SELECT sum(b) FROM t", "SELECT count(*) FROM t WHERE b < a ORDER BY 1"].repeat(3)
    {
        let client = connect(server.address()).await;
        running.push(tokio::spawn(async move {
            client.query_one(query, &[]).await.unwrap().get::<_, i64>(0)
        }));
    }
    for (place, query) in running.into_iter().enumerate() {
        assert_eq!(query.await.unwrap(), if place % 2 == 0 { 30_000 } else { 29_999 });
    }
    assert_eq!(store(&server).admission().active, 0);
}
