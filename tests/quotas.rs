//! Tests of the quotas of tables and roles.

use bennu::Database;
use tokio_postgres::{Client, NoTls};

use crate::harness::{TestServer, connect, connection_string};

/// Runs a statement that must be rejected; returns code, message, detail and hint.
async fn refused(client: &Client, statement: &str) -> [String; 4] {
    let done = client.batch_execute(statement).await;
    let error = done.expect_err(statement);
    let error = error.as_db_error().expect("the server says so").clone();
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    [
        error.code().code().to_owned(),
        error.message().to_owned(),
        text(error.detail()),
        text(error.hint()),
    ]
}

async fn rows(client: &Client, query: &str) -> Vec<String> {
    let rows = client.simple_query(query).await.unwrap();
    let text = |row: &tokio_postgres::SimpleQueryRow| {
        let values = (0..row.len()).map(|at| row.get(at).unwrap_or("NULL"));
        values.collect::<Vec<_>>().join(" ")
    };
    rows.iter()
        .filter_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => Some(text(row)),
            _ => None,
        })
        .collect()
}

async fn table(client: &Client) {
    client.batch_execute("CREATE TABLE t (a int PRIMARY KEY, b text)").await.unwrap();
    client.batch_execute("CREATE INDEX t_b ON t (b)").await.unwrap();
    client
        .batch_execute("INSERT INTO t SELECT n, 'row ' || n FROM generate_series(1, 100) AS g(n)")
        .await
        .unwrap();
}

#[tokio::test]
async fn table_quota_error_reports_retry_time() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    table(&client).await;
    client.batch_execute("ALTER TABLE t SET (max_read_bytes_per_second = 1)").await.unwrap();
    // The bytes read are known only afterwards and are then charged: for ten seconds.
    client.batch_execute("SELECT * FROM t").await.unwrap();
    for statement in [
        "SELECT b FROM t WHERE a = 1",
        "SELECT count(*) FROM t",
        "SELECT count(*) FROM t WHERE b = 'row 1'",
        "SELECT b FROM t WHERE b = 'row 1'",
        "UPDATE t SET b = 'x' WHERE b = 'row 1'",
        "COPY t TO STDOUT",
    ] {
        let [code, message, detail, hint] = refused(&client, statement).await;
        assert_eq!(code, "53400", "{statement}");
        assert_eq!(message, "quota of table \"t\" exceeded");
        assert_eq!(detail, "max_read_bytes_per_second is 1.");
        let millis = hint.strip_prefix("Retry after ").and_then(|rest| rest.strip_suffix(" ms."));
        let millis: u64 = millis.expect(&hint).parse().unwrap();
        assert!((1..=10_001).contains(&millis), "{hint}");
    }
    client.batch_execute("INSERT INTO t VALUES (1000, 'x')").await.unwrap();
    client.batch_execute("CREATE INDEX t_a ON t (b, a)").await.unwrap();
    let query =
        "SELECT kind, name, quota, per_second, available < 0, rejected > 0 FROM bennu.quotas";
    assert_eq!(rows(&client, query).await, ["table t max_read_bytes_per_second 1 t t"]);
    client.batch_execute("ALTER TABLE t RESET (max_read_bytes_per_second)").await.unwrap();
    client.batch_execute("SELECT * FROM t").await.unwrap();
    assert!(rows(&client, query).await.is_empty());
}

#[tokio::test]
async fn role_quota_affects_only_that_role() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    table(&client).await;
    client.batch_execute("CREATE USER batch; GRANT ALL ON t TO batch").await.unwrap();
    client.batch_execute("ALTER ROLE batch SET max_write_bytes_per_second = '1 kB'").await.unwrap();
    let batch = connection_string(server.address()).replace("user=bennu", "user=batch");
    let (batch, connection) = tokio_postgres::connect(&batch, NoTls).await.unwrap();
    tokio::spawn(connection);
    let insert = "UPSERT INTO t SELECT n, 'new' FROM generate_series(1, 1000) AS g(n)";
    batch.batch_execute(insert).await.unwrap();
    let [code, message, ..] = refused(&batch, "DELETE FROM t WHERE a = 1").await;
    assert_eq!((code.as_str(), message.as_str()), ("53400", "quota of role \"batch\" exceeded"));
    let [code, ..] = refused(&batch, "INSERT INTO t VALUES (-1, 'x')").await;
    assert_eq!(code, "53400");
    batch.batch_execute("SELECT * FROM t WHERE a = 1").await.unwrap();
    client.batch_execute("DELETE FROM t WHERE a = 1").await.unwrap();
    client.batch_execute("ALTER ROLE batch RESET ALL").await.unwrap();
    batch.batch_execute("DELETE FROM t WHERE a = 2").await.unwrap();
}

#[tokio::test]
async fn requests_are_rejected_after_quota_burst() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    table(&client).await;
    client.batch_execute("ALTER TABLE t SET (max_requests_per_second = 1)").await.unwrap();
    let mut refusals = 0;
    for _ in 0..1_000 {
        match client.batch_execute("SELECT b FROM t WHERE a = 1").await {
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error.code().unwrap().code(), "53400");
                refusals += 1;
            }
        }
        if refusals > 0 {
            return;
        }
    }
    panic!("a thousand requests were let in at one a second");
}

#[tokio::test]
async fn quotas_are_transactional_and_survive_restart() {
    let directory = tempfile::tempdir().unwrap();
    let run = |database: &Database, text: &str| {
        let mut session = database.session("bennu");
        let outcome = bennu::statement::run(&mut session, text).map_err(|error| error.to_string());
        outcome.map(|outcome| outcome.rows.map_or(0, |rows| rows.row_count()))
    };
    let open = || Database::open(directory.path(), bennu::server::options(64 << 20)).unwrap();
    let database = open();
    run(&database, "CREATE TABLE t (a int PRIMARY KEY); CREATE TABLE u (a int PRIMARY KEY)")
        .unwrap();
    run(&database, "BEGIN; ALTER TABLE t SET (max_requests_per_second = 5); ROLLBACK").unwrap();
    let quotas = "SELECT * FROM bennu.quotas";
    assert_eq!(run(&database, quotas), Ok(0));
    run(
        &database,
        "ALTER TABLE t SET (max_requests_per_second = 5, MAX_READ_BYTES_PER_SECOND = '2MB')",
    )
    .unwrap();
    run(&database, "ALTER TABLE u SET (max_requests_per_second = 7)").unwrap();
    run(&database, "CREATE ROLE r").unwrap();
    run(&database, "ALTER ROLE r SET max_requests_per_second TO 9").unwrap();
    run(&database, "DROP TABLE u").unwrap();
    database.shut_down().unwrap();
    drop(database);
    let database = open();
    assert_eq!(run(&database, quotas), Ok(3));
    let limits = "SELECT 1 FROM bennu.quotas WHERE (name, per_second) IN (('t', 5), ('t', 2097152), ('r', 9))";
    assert_eq!(run(&database, limits), Ok(3));
    for (statement, message) in [
        ("ALTER TABLE t SET (max_requests_per_second = 0)", "invalid value for parameter"),
        ("ALTER TABLE t SET (max_requests_per_second = many)", "invalid value for parameter"),
        ("ALTER TABLE t SET (split_regions = 5)", "not supported"),
        ("ALTER TABLE t RESET (colour)", "unrecognized parameter"),
        ("ALTER TABLE nothing SET (max_requests_per_second = 1)", "does not exist"),
    ] {
        let error = run(&database, statement).unwrap_err();
        assert!(error.contains(message), "{statement}: {error}");
    }
    database.shut_down().unwrap();
}

#[tokio::test]
async fn schema_quota_covers_its_tables() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    table(&client).await;
    let run = async |statement: &str| client.batch_execute(statement).await.expect(statement);
    run("CREATE SCHEMA s; CREATE TABLE s.a (i int PRIMARY KEY); INSERT INTO s.a VALUES (1)").await;
    run("ALTER TABLE s.a SET (max_write_bytes_per_second = 1)").await;
    run("ALTER SCHEMA s SET (max_read_bytes_per_second = 1)").await;
    run("SELECT * FROM s.a").await;
    run("CREATE TABLE s.later (i int PRIMARY KEY)").await;
    for statement in ["SELECT * FROM s.a", "SELECT * FROM s.later"] {
        let [code, message, detail, _] = refused(&client, statement).await;
        assert_eq!(code, "53400", "{statement}");
        assert_eq!(message, "quota of schema \"s\" exceeded");
        assert_eq!(detail, "max_read_bytes_per_second is 1.");
    }
    // Tables of other schemas have none; the quota of a table remains in force beside it.
    run("SELECT * FROM t").await;
    run("INSERT INTO s.a VALUES (2)").await;
    let [_, message, ..] = refused(&client, "INSERT INTO s.a VALUES (3)").await;
    assert_eq!(message, "quota of table \"a\" exceeded");
    let query = "SELECT kind, name, quota FROM bennu.quotas ORDER BY kind";
    let both = ["schema s max_read_bytes_per_second", "table s.a max_write_bytes_per_second"];
    assert_eq!(rows(&client, query).await, both);
    // A table that leaves the schema leaves its quota.
    run("ALTER TABLE s.later SET SCHEMA public").await;
    run("SELECT * FROM later").await;
    let [code, message, ..] = refused(&client, "ALTER SCHEMA s SET (salt_buckets = 2)").await;
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("0A000", "changing \"salt_buckets\" is not supported")
    );
    assert_eq!(
        refused(&client, "ALTER SCHEMA none RESET (max_read_bytes_per_second)").await[0],
        "3F000"
    );
    run("CREATE USER guest; SET ROLE guest").await;
    let statement = "ALTER SCHEMA s RESET (max_read_bytes_per_second)";
    assert_eq!(refused(&client, statement).await[0], "42501");
    run("RESET ROLE").await;
    run("DROP SCHEMA s CASCADE").await;
    run("CREATE SCHEMA s; CREATE TABLE s.a AS SELECT 1 AS i").await;
    run("SELECT * FROM s.a; SELECT * FROM s.a").await;
    assert!(rows(&client, query).await.is_empty());
}
