//! Tests of statements through tokio-postgres: preparation, errors, transactions, cancellation,
//! versions.

use std::time::{Duration, Instant};

use tokio_postgres::error::ErrorPosition;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls};

use crate::harness::{TestServer, connect};
use crate::raw::{Frames, Raw, kinds, sqlstate};

async fn count(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn prepared_statements_have_types_and_follow_schema() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    client.batch_execute("CREATE TABLE t (a int PRIMARY KEY, b text, c numeric)").await.unwrap();
    let insert = client.prepare("INSERT INTO t (a, b) VALUES ($1, $2)").await.unwrap();
    assert_eq!(insert.params(), [Type::INT4, Type::TEXT]);
    assert!(insert.columns().is_empty());
    for number in 0..10 {
        assert_eq!(client.execute(&insert, &[&number, &"x"]).await.unwrap(), 1);
    }
    let select = client.prepare("SELECT b, a + $1 AS more FROM t WHERE a >= $2").await.unwrap();
    assert_eq!(select.params(), [Type::INT4, Type::INT4]);
    let columns: Vec<_> = select.columns().iter().map(|c| (c.name(), c.type_().clone())).collect();
    assert_eq!(columns, [("b", Type::TEXT), ("more", Type::INT4)]);
    assert_eq!(client.query(&select, &[&1, &8]).await.unwrap().len(), 2);
    // A new index does not invalidate it; a table of the same name with other columns does.
    client.batch_execute("CREATE INDEX ON t (b)").await.unwrap();
    assert_eq!(client.query(&select, &[&1, &8]).await.unwrap().len(), 2);
    client
        .batch_execute("DROP TABLE t; CREATE TABLE t (a bigint PRIMARY KEY, b int)")
        .await
        .unwrap();
    let error = client.query(&select, &[&1, &8]).await.unwrap_err();
    let code = error.as_db_error().unwrap().code().code().to_owned();
    assert_eq!(code, "0A000", "cached plan must not change result type");
}

#[tokio::test]
async fn errors_have_fields_and_positions() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    client
        .batch_execute(
            "CREATE TABLE t (a int PRIMARY KEY, b int NOT NULL CONSTRAINT low CHECK (b < 9), \
             c text UNIQUE)",
        )
        .await
        .unwrap();
    client.batch_execute("INSERT INTO t VALUES (1, 1, 'x')").await.unwrap();

    let error = client.execute("INSERT INTO t VALUES (1, 2, 'y')", &[]).await.unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.severity(), "ERROR");
    assert_eq!(error.code().code(), "23505");
    assert_eq!(error.detail(), Some("Key (a)=(1) already exists."));
    assert_eq!(error.table(), Some("t"));
    assert_eq!(error.constraint(), Some("t_pkey"));

    let error = client.execute("INSERT INTO t VALUES (2, 2, 'x')", &[]).await.unwrap_err();
    assert_eq!(error.as_db_error().unwrap().constraint(), Some("t_c_key"));

    let error = client.execute("INSERT INTO t VALUES (2, 9, 'z')", &[]).await.unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), "23514");
    assert_eq!(error.constraint(), Some("low"));
    assert_eq!(error.table(), Some("t"));

    let error = client.execute("INSERT INTO t VALUES (2, NULL)", &[]).await.unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), "23502");
    assert_eq!(error.column(), Some("b"));

    // Positions count characters, from 1, also after multi-byte characters.
    for (sql, place) in [
        ("SELECT nothing FROM t", 8),
        ("SELECT a FROM nowhere", 15),
        ("SELECT 'é€😀', nothing FROM t", 15),
        ("SELECT a FRO t WHERE", 14),
        ("SELECT a\n  FROM t\n WHERE z = 1", 26),
        ("SELECT nofunction(1)", 8),
        ("SELECT 'nope'::regclass", 8),
        ("SELECT nextval('nope') FROM t", 16),
        ("SELECT a, (SELECT 1, 2) FROM t", 11),
        ("CREATE TABLE u (a int CHECK (EXISTS (SELECT 1)))", 30),
    ] {
        let error = client.query(sql, &[]).await.unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!(error.position(), Some(&ErrorPosition::Original(place)), "{sql}");
    }
}

#[tokio::test]
async fn driver_transactions_work() {
    let server = TestServer::start();
    let mut client = connect(server.address()).await;
    let other = connect(server.address()).await;
    client.batch_execute("CREATE TABLE t (a int PRIMARY KEY)").await.unwrap();
    let transaction = client.transaction().await.unwrap();
    transaction.execute("INSERT INTO t VALUES (1)", &[]).await.unwrap();
    assert_eq!(count(&other, "SELECT count(*) FROM t").await, 0);
    transaction.rollback().await.unwrap();
    let mut transaction = client.transaction().await.unwrap();
    transaction.execute("INSERT INTO t VALUES (2)", &[]).await.unwrap();
    let savepoint = transaction.transaction().await.unwrap();
    savepoint.execute("INSERT INTO t VALUES (2)", &[]).await.unwrap_err();
    savepoint.rollback().await.unwrap();
    transaction.execute("INSERT INTO t VALUES (3)", &[]).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(count(&other, "SELECT count(*) FROM t").await, 2);
    // Dropping the transaction rolls it back.
    let transaction = client.transaction().await.unwrap();
    transaction.execute("DELETE FROM t", &[]).await.unwrap();
    drop(transaction);
    assert_eq!(count(&client, "SELECT count(*) FROM t").await, 2);
    // Portals with a row limit.
    let transaction = client.transaction().await.unwrap();
    let portal = transaction.bind("SELECT a FROM t ORDER BY a", &[]).await.unwrap();
    assert_eq!(transaction.query_portal(&portal, 1).await.unwrap().len(), 1);
    assert_eq!(transaction.query_portal(&portal, 1).await.unwrap()[0].get::<_, i32>(0), 3);
    assert_eq!(transaction.query_portal(&portal, 1).await.unwrap().len(), 0);
    transaction.commit().await.unwrap();
}

#[tokio::test]
async fn portal_keeps_its_snapshot() {
    let server = TestServer::start();
    let mut client = connect(server.address()).await;
    let other = connect(server.address()).await;
    client
        .batch_execute("CREATE TABLE t (a int PRIMARY KEY, b int, c int); CREATE INDEX i ON t (b)")
        .await
        .unwrap();
    // More rows than one batch, fewer than are read in parallel.
    let rows: Vec<String> = (0..3000).map(|a| format!("({a}, {}, 0)", a % 7)).collect();
    let insert = format!("INSERT INTO t VALUES {}", rows.join(", "));
    let keys: Vec<String> = (0..3000).map(|a| a.to_string()).collect();
    let by_key = format!("SELECT c FROM t WHERE a IN ({})", keys.join(", "));
    let by_index = "SELECT /*+ INDEX(t i) */ c FROM t WHERE b >= 0";
    for select in [by_index, &by_key] {
        client.batch_execute(&insert).await.unwrap();
        let transaction = client.transaction().await.unwrap();
        let portal = transaction.bind(select, &[]).await.unwrap();
        assert_eq!(transaction.query_portal(&portal, 1).await.unwrap().len(), 1);
        other.batch_execute("UPDATE t SET c = 1; DELETE FROM t WHERE a % 2 = 0").await.unwrap();
        // Changes of another snapshot and of the transaction itself are invisible to the portal.
        transaction.batch_execute("DELETE FROM t WHERE a % 5 = 0").await.unwrap();
        let rest = transaction.query_portal(&portal, 0).await.unwrap();
        assert_eq!(rest.len(), 2999);
        assert!(rest.iter().all(|row| row.get::<_, i32>(0) == 0));
        transaction.batch_execute("DELETE FROM t").await.unwrap();
        transaction.commit().await.unwrap();
    }
}

#[tokio::test]
async fn broken_connection_rolls_back_and_releases_locks() {
    let server = TestServer::start();
    let (client, connection) =
        tokio_postgres::connect(&crate::harness::connection_string(server.address()), NoTls)
            .await
            .unwrap();
    let driver = tokio::spawn(connection);
    client.batch_execute("CREATE TABLE t (a int PRIMARY KEY, b int)").await.unwrap();
    client.batch_execute("INSERT INTO t VALUES (1, 1)").await.unwrap();
    client.batch_execute("BEGIN; UPDATE t SET b = 2").await.unwrap();
    driver.abort();
    let other = connect(server.address()).await;
    other.batch_execute("SET statement_timeout = '30s'").await.unwrap();
    // Waits until the server has detected the disconnect.
    assert_eq!(other.execute("UPDATE t SET b = b + 10", &[]).await.unwrap(), 1);
    assert_eq!(count(&other, "SELECT b::bigint FROM t").await, 11);
}

/// A query that would run for hours.
const ENDLESS: &str =
    "SELECT count(*) FROM t a, t b, t c, t d, t e, t f WHERE a.a + b.a + c.a = -1";

#[tokio::test]
async fn running_statements_respect_cancel_and_timeout() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    client.batch_execute("CREATE TABLE t (a int PRIMARY KEY)").await.unwrap();
    let insert = client.prepare("INSERT INTO t VALUES ($1)").await.unwrap();
    for number in 0..100 {
        client.execute(&insert, &[&number]).await.unwrap();
    }
    let token = client.cancel_token();
    let query = async { client.query(ENDLESS, &[]).await };
    tokio::pin!(query);
    // An early cancel request has no effect, so it is repeated.
    let error = loop {
        tokio::select! {
            result = &mut query => break result.unwrap_err(),
            () = tokio::time::sleep(Duration::from_millis(20)) => {
                token.cancel_query(NoTls).await.unwrap();
            }
        }
    };
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), "57014");
    assert_eq!(error.message(), "canceling statement due to user request");
    client.batch_execute("SET statement_timeout = '50ms'").await.unwrap();
    let error = client.query(ENDLESS, &[]).await.unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), "57014");
    assert_eq!(error.message(), "canceling statement due to statement timeout");
    // A single long computation is cancelled, too.
    let search = "SELECT regexp_split_to_array(repeat('ab', 3000), '(.*)(.*)\\1\\2x')";
    let began = Instant::now();
    let error = client.query(search, &[]).await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "57014");
    assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
    client.batch_execute("SET statement_timeout = 0").await.unwrap();
    assert_eq!(count(&client, "SELECT count(*) FROM t").await, 100);
}

#[tokio::test]
async fn statement_of_disconnected_client_ends() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    client.batch_execute("CREATE TABLE t (a int PRIMARY KEY)").await.unwrap();
    client.batch_execute("INSERT INTO t SELECT generate_series(1, 100)").await.unwrap();
    let running = format!("SELECT count(*) FROM pg_stat_activity WHERE query = '{ENDLESS}'");
    let mut gone = Raw::login(server.address());
    gone.send(&Frames::new().query(ENDLESS).0);
    await_count(&client, &running, 1).await;
    drop(gone);
    await_count(&client, &running, 0).await;
}

/// Runs a count until it has the expected value.
async fn await_count(client: &Client, sql: &str, expected: i64) {
    let reached = async {
        while count(client, sql).await != expected {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reached).await.expect(sql);
}

#[tokio::test]
async fn old_versions_are_readable_by_system_time() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    client
        .batch_execute(
            "CREATE TABLE t (a int PRIMARY KEY, b text) VERSIONS = 5, KEEP_DELETED_CELLS = TRUE; \
             CREATE TABLE forgets (a int PRIMARY KEY, b text) VERSIONS = 5",
        )
        .await
        .unwrap();
    let mut times = Vec::new();
    for value in ["one", "two", "three"] {
        client.execute("UPSERT INTO t VALUES (1, $1)", &[&value]).await.unwrap();
        client.execute("UPSERT INTO forgets VALUES (1, $1)", &[&value]).await.unwrap();
        let row = client.query_one("SELECT _timestamp::text FROM forgets", &[]).await.unwrap();
        times.push(row.get::<_, String>(0));
    }
    let at = |table: &str, time: &str| {
        format!("SELECT b FROM {table} FOR SYSTEM_TIME AS OF '{time}' WHERE a = 1")
    };
    for round in ["in memory", "in files", "deleted", "deleted, in files"] {
        for (time, value) in times.iter().zip(["one", "two", "three"]) {
            let rows = client.query(&at("t", time), &[]).await.unwrap();
            assert_eq!(rows.len(), 1, "{round}, {time}");
            assert_eq!(rows[0].get::<_, String>(0), value, "{round}");
            // Deleted rows can be read until they are purged, unless the table retains them.
            let rows = client.query(&at("forgets", time), &[]).await;
            match (round, rows) {
                ("deleted, in files", Err(error)) => {
                    let error = error.as_db_error().unwrap();
                    assert_eq!(error.code().code(), "72000", "{error}");
                }
                (_, rows) => assert_eq!(rows.unwrap()[0].get::<_, String>(0), value, "{round}"),
            }
        }
        match round {
            "in files" => client.batch_execute("DELETE FROM t; DELETE FROM forgets").await.unwrap(),
            _ => client
                .batch_execute("FLUSH t; MAJOR COMPACT t; FLUSH forgets; MAJOR COMPACT forgets")
                .await
                .unwrap(),
        }
    }
    assert!(client.query("SELECT * FROM t", &[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn concurrent_client_increments_are_not_lost() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    client
        .batch_execute("CREATE TABLE hits (page text PRIMARY KEY, n bigint NOT NULL)")
        .await
        .unwrap();
    let mut tasks = Vec::new();
    for _ in 0..16 {
        let address = server.address();
        tasks.push(tokio::spawn(async move {
            let client = connect(address).await;
            let sql = "INSERT INTO hits VALUES ('a', 1) \
                       ON CONFLICT (page) DO UPDATE SET n = hits.n + 1";
            let statement = client.prepare(sql).await.unwrap();
            for _ in 0..25 {
                client.execute(&statement, &[]).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(count(&client, "SELECT n FROM hits").await, 400);
}

#[tokio::test]
async fn arrays_are_parameters_and_results() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    client
        .batch_execute(
            "CREATE TABLE t (a int PRIMARY KEY, b text[]);
             INSERT INTO t SELECT i, ARRAY['x', NULL] FROM generate_series(1, 5) AS s (i)",
        )
        .await
        .unwrap();
    let wanted = vec![5, 2, 9];
    let query = "SELECT a FROM t WHERE a = ANY ($1) ORDER BY a";
    let rows = client.query(query, &[&wanted]).await.unwrap();
    let found: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(found, [2, 5]);
    let query = "SELECT a FROM t WHERE a <> ALL ($1) ORDER BY a";
    let rows = client.query(query, &[&wanted]).await.unwrap();
    let found: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(found, [1, 3, 4]);
    let texts = vec![Some("y,\"z\""), None];
    let update = "UPDATE t SET b = b || $1 WHERE a = 1 RETURNING b";
    let row = client.query_one(update, &[&texts]).await.unwrap();
    let stored: Vec<Option<String>> = row.get(0);
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(stored, [text("x"), None, text("y,\"z\""), None]);
    let error = client.query("SELECT $1::text[]", &[&vec![1_i64]]).await.unwrap_err();
    assert!(error.as_db_error().is_none(), "the driver knows the type: {error}");
}

#[test]
fn sql_cursor_is_described_as_portal() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    raw.query("BEGIN; DECLARE c CURSOR FOR SELECT 1 AS one, 'x' AS two");
    raw.send(&Frames::new().describe(b'P', "c").sync().0);
    let messages = raw.until_ready();
    assert_eq!(kinds(&messages), "TZ");
    assert_eq!(messages[0].columns(), [("one".to_owned(), 23), ("two".to_owned(), 25)]);
    raw.query("CLOSE c");
    raw.send(&Frames::new().describe(b'P', "c").sync().0);
    assert_eq!(sqlstate(&raw.until_ready()).as_deref(), Some("34000"));
}

#[test]
fn client_encoding_accepts_alternative_spellings() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    for spelling in ["'utf-8'", "UTF_8", "unicode"] {
        let sql = format!("SET client_encoding = '{}'", spelling.replace('\'', "''"));
        assert_eq!(kinds(&raw.query(&sql)), "CZ", "{spelling}");
    }
    assert_eq!(
        sqlstate(&raw.query("SET client_encoding = 'mule_internal'")).as_deref(),
        Some("0A000")
    );
    assert_eq!(sqlstate(&raw.query("SET client_encoding = 'klingon'")).as_deref(), Some("22023"));
}

#[test]
fn domain_parameters_are_checked_at_bind() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    raw.query("CREATE DOMAIN pos AS int CHECK (value > 0)");
    raw.query("PREPARE p(pos) AS SELECT 1 WHERE $1 IS NULL");
    let bound = |value| Frames::new().bind("", "p", &[value]).execute("", 0).sync().0;
    raw.send(&bound(Some("1")));
    assert_eq!(kinds(&raw.until_ready()), "2CZ");
    raw.send(&bound(Some("-1")));
    let answer = raw.until_ready();
    assert_eq!((kinds(&answer).as_str(), sqlstate(&answer).as_deref()), ("EZ", Some("23514")));
}

/// Returns the code and the message of the error of some statements.
async fn failure_of(client: &Client, text: &str) -> (String, String) {
    let error = client.batch_execute(text).await.expect_err(text);
    let error = error.as_db_error().expect("an error of the server");
    (error.code().code().to_owned(), error.message().to_owned())
}

#[tokio::test]
async fn multi_statement_message_is_transaction_block() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    for text in ["SELECT 1; VACUUM", "VACUUM; SELECT 1", "SELECT 1; COMMIT; VACUUM"] {
        let (code, message) = failure_of(&client, text).await;
        assert_eq!((&*code, &*message), ("25001", "VACUUM cannot run inside a transaction block"));
    }
    client.batch_execute("VACUUM").await.unwrap();
    let created = "CREATE TABLE t (a int); LOCK TABLE t; DECLARE c CURSOR FOR SELECT 1; FETCH c";
    client.batch_execute(created).await.unwrap();
    for (text, code) in [("LOCK TABLE t", "25P01"), ("FETCH c", "34000")] {
        assert_eq!(failure_of(&client, text).await.0, code);
    }
    let limited = "SET LOCAL statement_timeout = 1234; SHOW statement_timeout";
    for (text, shown) in [(limited, "1234ms"), ("SHOW statement_timeout", "0")] {
        let messages = client.simple_query(text).await.unwrap();
        let row = messages.iter().find_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        assert_eq!(row, Some(shown));
    }
    let (code, _) = failure_of(&client, "SET TRANSACTION READ ONLY; DELETE FROM t").await;
    assert_eq!(code, "25006");
    client.batch_execute("DELETE FROM t").await.unwrap();
}

#[tokio::test]
async fn cancel_works_during_parsing_and_planning() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    let prepared = client.prepare("SELECT 1").await.unwrap();
    let list: Vec<String> = (0..200_000).map(|number: u32| number.to_string()).collect();
    let large = format!("SELECT 1 WHERE 5 IN ({})", list.join(","));
    client.batch_execute("SET statement_timeout = '50ms'").await.unwrap();
    for _ in 0..2 {
        let stopped = |error: tokio_postgres::Error| {
            let error = error.as_db_error().expect("the server has answered").clone();
            assert_eq!(error.message(), "canceling statement due to statement timeout");
        };
        stopped(client.batch_execute(&large).await.unwrap_err());
        stopped(client.prepare(&large).await.map(drop).unwrap_err());
        // The timeout of a statement prepared earlier starts with its execution.
        client.query_one(&prepared, &[]).await.unwrap();
    }
    client.batch_execute("SET statement_timeout = 0").await.unwrap();
    // A cancel request that is early has no effect, and on a busy machine one may be late.
    for attempt in 1.. {
        let cancel = client.cancel_token();
        let stopped = {
            let mut waiting = std::pin::pin!(client.batch_execute(&large));
            loop {
                tokio::select! {
                    biased;
                    stopped = &mut waiting => break stopped,
                    sent = cancel.cancel_query(NoTls) => sent.unwrap(),
                }
            }
        };
        if let Err(error) = stopped {
            assert_eq!(error.code().map(|code| code.code()), Some("57014"));
            return;
        }
        assert!(attempt < 20, "no cancel request stopped the statement");
    }
}
