//! Admission: statements that wait for a handler, with locks and without.

use sql::catalog::name::ObjectName;
use std::time::Duration;

use store::admission::{Turn, Work};
use store::options::AdmissionOptions;
use store::{Store, Transaction};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

use crate::harness::{Setup, TestServer, connect};

/// A server that works on one thing at a time.
fn server_with_one_handler() -> TestServer {
    let admission = AdmissionOptions { handlers: 1, read_ratio: 0.0, scan_ratio: 0.0 };
    TestServer::start_with(Setup { admission, ..Setup::default() })
}

fn store(server: &TestServer) -> &std::sync::Arc<Store> {
    server.database().engine().store()
}

/// Takes the only handler for as long as it lives.
fn take_handler(transaction: &Transaction) -> Turn {
    transaction.turn(Work::Read).unwrap()
}

async fn until_queued(server: &TestServer, count: usize) {
    while store(server).admission()[0].queued != count {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn client_with_rows(server: &TestServer) -> Client {
    let client = connect(server.address()).await;
    client.batch_execute("CREATE TABLE t (a int PRIMARY KEY, b int)").await.unwrap();
    client.batch_execute("INSERT INTO t VALUES (1, 10), (2, 20)").await.unwrap();
    client
}

#[tokio::test]
async fn who_waits_for_a_handler_is_stopped_by_time_and_by_the_client() {
    let server = server_with_one_handler();
    let client = client_with_rows(&server).await;
    let row = client.query_one("SHOW handlers", &[]).await.unwrap();
    assert_eq!(row.get::<_, &str>(0), "1");
    let holder = store(&server).begin(Default::default());
    let turn = take_handler(&holder);
    client.batch_execute("SET statement_timeout = 20").await.unwrap();
    for statement in ["SELECT b FROM t WHERE a = 1", "UPDATE t SET b = 0", "SELECT sum(b) FROM t"] {
        let error = client.batch_execute(statement).await.unwrap_err();
        assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED), "{statement}");
        assert!(error.as_db_error().unwrap().message().ends_with("statement timeout"));
    }
    client.batch_execute("SET statement_timeout = 0").await.unwrap();
    let cancel = client.cancel_token();
    let waiting = tokio::spawn(async move {
        let error = client.batch_execute("INSERT INTO t VALUES (3, 30)").await.unwrap_err();
        assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
        client
    });
    until_queued(&server, 1).await;
    cancel.cancel_query(NoTls).await.unwrap();
    let client = waiting.await.unwrap();
    drop(turn);
    let row = client.query_one("SELECT sum(b) FROM t", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 30);
    let row = client
        .query_one("SELECT queue, handlers, active, queued FROM bennu.admission", &[])
        .await
        .unwrap();
    assert_eq!((row.get::<_, &str>(0), row.get::<_, i64>(1)), ("all", 1));
    assert_eq!((row.get::<_, i64>(2), row.get::<_, i64>(3)), (1, 0), "the statement itself");
}

#[tokio::test]
async fn who_waits_for_a_lock_leaves_the_handler_to_others() {
    let server = server_with_one_handler();
    let first = client_with_rows(&server).await;
    first.batch_execute("BEGIN; UPDATE t SET b = 11 WHERE a = 1").await.unwrap();
    let second = connect(server.address()).await;
    let waiting = tokio::spawn(async move {
        second.batch_execute("UPDATE t SET b = b + 1 WHERE a = 1").await.unwrap();
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
    // With the handler held by the one that waits, this would wait for it, and it for this.
    first.batch_execute("UPDATE t SET b = 21 WHERE a = 2; COMMIT").await.unwrap();
    let second = waiting.await.unwrap();
    let row = second.query_one("SELECT sum(b) FROM t", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 12 + 21);
}

#[tokio::test]
async fn long_reads_of_many_clients_end() {
    let server = server_with_one_handler();
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
    let row = client.query_one("SELECT admitted > 6 FROM bennu.admission", &[]).await.unwrap();
    assert!(row.get::<_, bool>(0));
}
