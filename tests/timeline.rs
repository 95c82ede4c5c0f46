//! Tests of TIMELINE: reads go to a replica if the primary region does not answer.

use sql::catalog::name::ObjectName;
use std::time::Duration;

use store::store::HoldGuard;
use tokio_postgres::Client;

use crate::harness::{TestServer, connect};
use crate::raw::{Message, Raw};

/// Blocks the first region of a table.
fn hold(server: &TestServer, table: &str) -> HoldGuard {
    hold_for(server, table, Duration::from_secs(600))
}

/// Blocks the first region of a table, at most for `limit`.
fn hold_for(server: &TestServer, table: &str, limit: Duration) -> HoldGuard {
    let engine = server.database().engine();
    let catalog = engine.catalog();
    let table = catalog.table_named(&ObjectName::public(table)).expect("the table is there");
    let region = engine.store().regions(table.id).unwrap()[0].region;
    engine.store().hold_region(region, limit).unwrap()
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

/// Sets the consistency of a session to TIMELINE.
async fn use_timeline(client: &Client) {
    let settings = "SET consistency = 'TIMELINE'; SET primary_call_timeout = '5ms'";
    client.batch_execute(settings).await.unwrap();
}

async fn number(client: &Client, query: &str) -> i64 {
    client.query_one(query, &[]).await.unwrap().get(0)
}

/// Lets replicas fall behind, and holds a region.
fn hold_behind(server: &TestServer, table: &str) -> (HoldGuard, HoldGuard) {
    let lag = server.database().engine().store().hold_replicas(Duration::from_secs(600));
    (lag, hold(server, table))
}

/// Waits until the replicas have all commits.
async fn caught_up(client: &Client) {
    let lag = "SELECT coalesce(max(lag_commits), 0) FROM bennu.replicas";
    while number(client, lag).await > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statement_over_two_regions_reads_one_state() {
    let server = TestServer::start();
    let strong = connect(server.address()).await;
    let create = "CREATE TABLE t (a int PRIMARY KEY, b int8) \
                  WITH (region_replication = 2) SPLIT ON (10)";
    strong.batch_execute(create).await.unwrap();
    strong.batch_execute("INSERT INTO t VALUES (1, 100), (20, 0)").await.unwrap();
    let timeline = connect(server.address()).await;
    use_timeline(&timeline).await;
    caught_up(&strong).await;
    let lag = server.database().engine().store().hold_replicas(Duration::from_secs(600));
    strong.batch_execute("UPDATE t SET b = 100 - b").await.unwrap();
    // The first region does not answer; the second one does, with newer rows.
    let held = hold(&server, "t");
    assert_eq!(number(&timeline, "SELECT sum(b)::int8 FROM t").await, 100);
    assert_eq!(number(&timeline, "SELECT b FROM t WHERE a = 1").await, 100, "as before");
    let both = "SELECT (SELECT b FROM t WHERE a = 1) + (SELECT b FROM t WHERE a = 20)";
    assert_eq!(number(&timeline, both).await, 100);
    drop((held, lag));
    assert_eq!(number(&timeline, "SELECT b FROM t WHERE a = 1").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_of_timeline_session_include_own_commits() {
    let server = TestServer::start();
    let other = table_with_replica(&server).await;
    let timeline = connect(server.address()).await;
    use_timeline(&timeline).await;
    caught_up(&other).await;
    let (lag, held) = hold_behind(&server, "t");
    drop(held);
    other.batch_execute("INSERT INTO t VALUES (3, 'three')").await.unwrap();
    assert_eq!(number(&timeline, "SELECT count(*) FROM t").await, 3, "the primary answers");
    // It does not answer any more, and the replica has two rows.
    let held = hold(&server, "t");
    let count = "SELECT count(*) FROM t";
    let waiting = tokio::spawn(async move { (number(&timeline, count).await, timeline) });
    let fresh = connect(server.address()).await;
    use_timeline(&fresh).await;
    assert_eq!(number(&fresh, "SELECT count(*) FROM t").await, 2, "of a session without past");
    assert!(!waiting.is_finished(), "the session has seen the third row");
    drop(lag);
    let (count, timeline) = waiting.await.unwrap();
    assert_eq!(count, 3);
    drop(held);
    // Its own commit.
    caught_up(&other).await;
    let (lag, held) = hold_behind(&server, "t");
    drop(held);
    timeline.batch_execute("INSERT INTO t VALUES (4, 'four')").await.unwrap();
    let held = hold(&server, "t");
    timeline.batch_execute("SET statement_timeout = '50ms'").await.unwrap();
    let error = timeline.query_one("SELECT count(*) FROM t", &[]).await.unwrap_err();
    assert_eq!(error.as_db_error().unwrap().code().code(), "57014");
    drop((lag, held));
    assert_eq!(number(&timeline, "SELECT count(*) FROM t").await, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_and_checks_of_timeline_session_miss_no_rows() {
    let server = TestServer::start();
    let other = connect(server.address()).await;
    let schema = "CREATE TABLE p (a int PRIMARY KEY) WITH (region_replication = 2);
                  CREATE TABLE c (a int PRIMARY KEY, p int REFERENCES p)
                      WITH (region_replication = 2);
                  INSERT INTO p VALUES (1), (2)";
    other.batch_execute(schema).await.unwrap();
    caught_up(&other).await;
    let timeline = connect(server.address()).await;
    use_timeline(&timeline).await;
    let _lag = server.database().engine().store().hold_replicas(Duration::from_secs(600));
    other.batch_execute("INSERT INTO c VALUES (10, 1), (-20, 1)").await.unwrap();
    // While the table is held, only replicas answer, and they have no rows.
    let held = hold(&server, "c");
    assert_eq!(number(&timeline, "SELECT count(*) FROM c").await, 0);
    drop(held);
    let brief = Duration::from_millis(60);
    for (statement, rows) in [
        ("SELECT a FROM c FOR UPDATE", 2),
        ("UPDATE c SET p = 1", 2),
        ("CREATE TABLE d AS TABLE c", 2),
    ] {
        let timeline = connect(server.address()).await;
        use_timeline(&timeline).await;
        let _held = hold_for(&server, "c", brief);
        assert_eq!(timeline.execute(statement, &[]).await.unwrap(), rows, "{statement}");
    }
    for (statement, code) in
        [("DELETE FROM p WHERE a = 1", "23503"), ("ALTER TABLE c ADD CHECK (a > 0)", "23514")]
    {
        let timeline = connect(server.address()).await;
        use_timeline(&timeline).await;
        let _held = hold_for(&server, "c", brief);
        let refused = timeline.batch_execute(statement).await.unwrap_err();
        assert_eq!(refused.as_db_error().unwrap().code().code(), code);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transaction_of_timeline_session_reads_one_state() {
    let server = TestServer::start();
    let other = table_with_replica(&server).await;
    let timeline = connect(server.address()).await;
    use_timeline(&timeline).await;
    caught_up(&other).await;
    let (_lag, held) = hold_behind(&server, "t");
    let insert = tokio::spawn(async move {
        other.batch_execute("INSERT INTO t VALUES (3, 'three')").await.unwrap();
        other
    });
    timeline.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
    assert_eq!(number(&timeline, "SELECT count(*) FROM t").await, 2);
    drop(held);
    drop(insert.await.unwrap());
    assert_eq!(number(&timeline, "SELECT count(*) FROM t").await, 2, "at the primary");
    timeline.batch_execute("COMMIT").await.unwrap();
    assert_eq!(number(&timeline, "SELECT count(*) FROM t").await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_table_and_index_are_there_at_replicas() {
    let server = TestServer::start();
    let other = table_with_replica(&server).await;
    caught_up(&other).await;
    let timeline = connect(server.address()).await;
    use_timeline(&timeline).await;
    let engine = server.database().engine();
    let lag = engine.store().hold_replicas(Duration::from_secs(600));
    other.batch_execute("CREATE INDEX i ON t (b)").await.unwrap();
    let catalog = engine.catalog();
    let table = catalog.table_named(&ObjectName::public("t")).unwrap();
    let region = engine.store().regions(table.indexes[0].spec.store_table).unwrap()[0].region;
    let held = engine.store().hold_region(region, Duration::from_secs(600)).unwrap();
    let query = "SELECT /*+ INDEX(t i) */ count(*) FROM t WHERE b = 'two'";
    let waiting = tokio::spawn(async move { number(&timeline, query).await });
    let running = "SELECT count(*) FROM pg_stat_activity \
        WHERE state = 'active' AND query LIKE 'SELECT /*+ INDEX%'";
    while number(&other, running).await == 0 {}
    drop((lag, held));
    assert_eq!(waiting.await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn max_staleness_waits_for_primary() {
    let server = TestServer::start();
    let other = table_with_replica(&server).await;
    caught_up(&other).await;
    let timeline = connect(server.address()).await;
    use_timeline(&timeline).await;
    let (_lag, held) = hold_behind(&server, "t");
    drop(held);
    other.batch_execute("INSERT INTO t VALUES (3, 'three')").await.unwrap();
    let held = hold(&server, "t");
    timeline.batch_execute("SET max_staleness = '1h'").await.unwrap();
    assert_eq!(number(&timeline, "SELECT count(*) FROM t").await, 2);
    timeline.batch_execute("SET max_staleness = 0; SET statement_timeout = '100ms'").await.unwrap();
    let error = timeline.query_one("SELECT count(*) FROM t", &[]).await.unwrap_err();
    assert_eq!(error.as_db_error().unwrap().code().code(), "57014");
    timeline.batch_execute("SET statement_timeout = 0").await.unwrap();
    let query = "SELECT count(*) FROM t";
    let waiting = tokio::spawn(async move { number(&timeline, query).await });
    drop(held);
    assert_eq!(waiting.await.unwrap(), 3);
}

fn notices(messages: &[Message]) -> Vec<&Message> {
    messages.iter().filter(|message| message.kind == b'N').collect()
}

fn rows(messages: &[Message]) -> Vec<Vec<Option<String>>> {
    messages.iter().filter(|message| message.kind == b'D').map(Message::values).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stale_read_reaches_client_as_notice_and_settings() {
    let server = TestServer::start();
    let other = table_with_replica(&server).await;
    caught_up(&other).await;
    let mut timeline = Raw::login(server.address());
    timeline.query("SET consistency = 'TIMELINE'; SET primary_call_timeout = '5ms'");
    let last = "SELECT current_setting('last_read_stale'), \
                current_setting('last_read_staleness') <> '0'";
    let shown = |stale: &str, age: &str| vec![vec![Some(stale.to_owned()), Some(age.to_owned())]];
    assert_eq!(rows(&timeline.query(last)), shown("off", "f"));
    timeline.query("SET timeline_notice = on");
    assert!(notices(&timeline.query("SELECT count(*) FROM t")).is_empty());
    other.batch_execute("SELECT hold_replicas('1min')").await.unwrap();
    other.batch_execute("INSERT INTO t VALUES (3, 'three')").await.unwrap();
    let hold = "SELECT hold_primary(region, '1min') FROM bennu.regions WHERE table_name = 't'";
    other.batch_execute(hold).await.unwrap();
    let answer = timeline.query("BEGIN; SELECT count(*) FROM t; ROLLBACK");
    let [notice] = notices(&answer)[..] else { panic!("one notice") };
    assert_eq!(notice.field(b'M').unwrap(), "region replica 1 has answered");
    let detail = notice.field(b'D').unwrap();
    assert!(detail.starts_with("The snapshot lacks commits of the last "), "{detail}");
    assert_eq!(rows(&timeline.query(last)), shown("on", "t"), "after ROLLBACK, too");
    let explained = timeline.query("EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM t WHERE a = 3");
    let is_told = |line: &Vec<Option<String>>| {
        line[0].as_ref().unwrap().starts_with("Timeline: replica=1 requests=1 staleness=")
    };
    assert!(rows(&explained).iter().any(is_told), "{:?}", rows(&explained));
    assert_eq!(notices(&explained).len(), 1);
    let document = "EXPLAIN (ANALYZE, COSTS OFF, FORMAT YAML) SELECT * FROM t WHERE a = 3";
    let document = rows(&timeline.query(document))[0][0].clone().unwrap();
    assert!(document.contains("\n  Replica Requests: 1\n  Staleness: "), "{document}");
    // The end of the session ends its holds.
    drop(other);
    let client = connect(server.address()).await;
    let held = "SELECT count(*) FROM bennu.regions WHERE held_until > now()";
    while number(&client, held).await > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    caught_up(&client).await;
    assert!(notices(&timeline.query("SELECT count(*) FROM t")).is_empty());
    assert_eq!(rows(&timeline.query(last)), shown("off", "f"));
}
