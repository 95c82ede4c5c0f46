//! Tests of several databases in one server: isolation, names, settings, sessions in the way, and
//! crashes.

use std::net::SocketAddr;
use std::path::Path;

use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use crate::harness::{Process, TestServer, connect};

/// Connects to a database as a user; the error has its code.
async fn to(address: SocketAddr, database: &str, user: &str) -> Result<Client, String> {
    let (host, port) = (address.ip(), address.port());
    let config = format!("host={host} port={port} user={user} dbname={database}");
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.map_err(|error| {
        error.code().map_or_else(|| error.to_string(), |code| code.code().to_owned())
    })?;
    tokio::spawn(connection);
    Ok(client)
}

/// Runs statements and returns the rows; the error is its code, or empty for a lost connection.
async fn run(client: &Client, sql: &str) -> Result<Vec<String>, String> {
    let done = client.simple_query(sql).await;
    let messages =
        done.map_err(|error| error.code().map_or_else(String::new, |code| code.code().to_owned()))?;
    let text = |row: &tokio_postgres::SimpleQueryRow| {
        let values = (0..row.len()).map(|at| row.get(at).unwrap_or("NULL"));
        values.collect::<Vec<_>>().join("|")
    };
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(text(row)),
        _ => None,
    });
    Ok(rows.collect())
}

async fn database(address: SocketAddr, name: &str) -> Client {
    to(address, name, "bennu").await.unwrap_or_else(|code| panic!("{name}: {code}"))
}

async fn rows(client: &Client, sql: &str) -> Vec<String> {
    run(client, sql).await.unwrap_or_else(|code| panic!("{sql}: {code}"))
}

async fn all(client: &Client, statements: &[&str]) {
    for statement in statements {
        rows(client, statement).await;
    }
}

async fn code(client: &Client, sql: &str) -> String {
    run(client, sql).await.expect_err(sql)
}

#[tokio::test]
async fn databases_have_separate_objects() {
    let server = TestServer::start();
    let first = connect(server.address()).await;
    all(&first, &["CREATE DATABASE shop", "CREATE TABLE t (id int PRIMARY KEY)"]).await;
    all(&first, &["INSERT INTO t VALUES (1)", "CREATE SEQUENCE s", "SELECT nextval('s')"]).await;
    let shop = database(server.address(), "shop").await;
    assert_eq!(rows(&shop, "SELECT current_database()").await, ["shop"]);
    assert_eq!(code(&shop, "SELECT * FROM t").await, "42P01");
    all(&shop, &["CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE INDEX ON t (v)"]).await;
    all(&shop, &["INSERT INTO t VALUES (7, 'x')", "CREATE SEQUENCE s START 50"]).await;
    assert_eq!(rows(&shop, "SELECT nextval('s')").await, ["50"]);
    assert_eq!(rows(&first, "SELECT nextval('s')").await, ["2"]);
    assert_eq!(rows(&first, "SELECT id FROM t").await, ["1"]);
    assert_eq!(rows(&shop, "SELECT id FROM t WHERE v = 'x'").await, ["7"]);
    let catalogs = "SELECT DISTINCT table_catalog FROM information_schema.tables";
    assert_eq!(rows(&shop, catalogs).await, ["shop"]);
    assert_eq!(rows(&first, catalogs).await, ["bennu"]);
    // A shared object is visible everywhere at once; other objects are not.
    all(&shop, &["CREATE DATABASE depot", "CREATE SCHEMA own"]).await;
    let named = "SELECT count(*) FROM pg_database WHERE datname = 'depot'";
    assert_eq!(rows(&first, named).await, ["1"]);
    assert_eq!(
        rows(&first, "SELECT count(*) FROM pg_namespace WHERE nspname = 'own'").await,
        ["0"]
    );
    let activity = "SELECT datname FROM pg_stat_activity ORDER BY 1";
    assert_eq!(rows(&first, activity).await, ["bennu", "shop"]);
}

#[tokio::test]
async fn database_names_are_checked_at_connection() {
    let server = TestServer::start();
    let address = server.address();
    assert_eq!(to(address, "nowhere", "bennu").await.err().unwrap(), "3D000");
    assert_eq!(to(address, "template0", "bennu").await.err().unwrap(), "55000");
    for name in ["postgres", "template1"] {
        let client = database(address, name).await;
        assert_eq!(rows(&client, "SELECT current_database()").await, [name]);
    }
    // The name of the user is an alias of the default database, until a database has it.
    let ann = to(address, "ann", "ann").await.unwrap();
    assert_eq!(rows(&ann, "SELECT current_database()").await, ["bennu"]);
    rows(&ann, "CREATE DATABASE ann").await;
    let own = to(address, "ann", "ann").await.unwrap();
    assert_eq!(rows(&own, "SELECT current_database()").await, ["ann"]);
    all(&ann, &["CREATE DATABASE small CONNECTION LIMIT 1"]).await;
    let _only = database(address, "small").await;
    assert_eq!(to(address, "small", "bennu").await.err().unwrap(), "53300");
    all(&ann, &["ALTER DATABASE ann ALLOW_CONNECTIONS false"]).await;
    assert_eq!(to(address, "ann", "ann").await.err().unwrap(), "55000");
}

#[tokio::test]
async fn database_in_use_is_not_dropped_or_renamed() {
    let server = TestServer::start();
    let first = connect(server.address()).await;
    all(&first, &["CREATE DATABASE shop"]).await;
    let shop = database(server.address(), "shop").await;
    all(&shop, &["CREATE TABLE t (id int PRIMARY KEY)"]).await;
    for statement in
        ["DROP DATABASE shop", "ALTER DATABASE shop RENAME TO x", "CREATE DATABASE y TEMPLATE shop"]
    {
        assert_eq!(code(&first, statement).await, "55006", "{statement}");
    }
    assert_eq!(code(&shop, "DROP DATABASE shop").await, "55006");
    all(&first, &["DROP DATABASE shop WITH (FORCE)"]).await;
    assert!(run(&shop, "SELECT 1").await.is_err(), "the session was terminated");
    assert_eq!(to(server.address(), "shop", "bennu").await.err().unwrap(), "3D000");
    // The next one of this name is empty.
    all(&first, &["CREATE DATABASE shop"]).await;
    let shop = database(server.address(), "shop").await;
    assert_eq!(code(&shop, "SELECT * FROM t").await, "42P01");
}

#[tokio::test]
async fn session_that_ends_soon_is_awaited() {
    let server = TestServer::start();
    let first = connect(server.address()).await;
    all(&first, &["CREATE DATABASE shop"]).await;
    let shop = database(server.address(), "shop").await;
    rows(&shop, "SELECT 1").await;
    tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        drop(shop);
    });
    all(&first, &["DROP DATABASE shop"]).await;
}

#[tokio::test]
async fn advisory_locks_are_of_one_database() {
    let server = TestServer::start();
    let first = connect(server.address()).await;
    all(&first, &["CREATE DATABASE shop"]).await;
    let shop = database(server.address(), "shop").await;
    let lock = "SELECT pg_try_advisory_lock(1), pg_try_advisory_lock(2, 3)";
    assert_eq!(rows(&first, lock).await, ["t|t"]);
    assert_eq!(rows(&shop, lock).await, ["t|t"]);
    let other = connect(server.address()).await;
    assert_eq!(rows(&other, lock).await, ["f|f"]);
    let of = "SELECT DISTINCT d.datname FROM pg_locks l JOIN pg_database d ON d.oid = l.database
        WHERE locktype = 'advisory' ORDER BY 1";
    assert_eq!(rows(&first, of).await, ["bennu", "shop"]);
}

#[tokio::test]
async fn prepared_transaction_is_of_one_database() {
    let directory = tempfile::tempdir().unwrap();
    let server = Process::serve(directory.path());
    let first = connect(server.address()).await;
    all(&first, &["CREATE DATABASE shop"]).await;
    let shop = database(server.address(), "shop").await;
    all(&shop, &["CREATE TABLE t (id int PRIMARY KEY)", "BEGIN", "INSERT INTO t VALUES (1)"]).await;
    all(&shop, &["PREPARE TRANSACTION 'p'"]).await;
    let server = server.kill_and_restart();
    let first = connect(server.address()).await;
    assert_eq!(rows(&first, "SELECT gid, database FROM pg_prepared_xacts").await, ["p|shop"]);
    assert_eq!(code(&first, "COMMIT PREPARED 'p'").await, "0A000");
    assert_eq!(code(&first, "DROP DATABASE shop").await, "55006");
    assert_eq!(code(&first, "DROP DATABASE shop WITH (FORCE)").await, "55006");
    let shop = database(server.address(), "shop").await;
    all(&shop, &["COMMIT PREPARED 'p'"]).await;
    assert_eq!(rows(&shop, "SELECT id FROM t").await, ["1"]);
    drop(shop);
    all(&first, &["DROP DATABASE shop"]).await;
}

#[tokio::test]
async fn settings_of_database_apply_at_connection() {
    let server = TestServer::start();
    let first = connect(server.address()).await;
    all(&first, &["CREATE DATABASE shop", "ALTER DATABASE shop SET work_mem = '8MB'"]).await;
    all(&first, &["ALTER DATABASE shop SET search_path = sales, public"]).await;
    all(&first, &["ALTER DATABASE shop SET statement_timeout TO '7s'"]).await;
    all(&first, &["ALTER DATABASE shop RESET statement_timeout"]).await;
    all(&first, &["ALTER DATABASE shop SET consistency = 'timeline'"]).await;
    let shop = database(server.address(), "shop").await;
    assert_eq!(rows(&shop, "SHOW work_mem").await, ["8MB"]);
    assert_eq!(rows(&shop, "SHOW search_path").await, ["sales, public"]);
    assert_eq!(rows(&shop, "SHOW statement_timeout").await, ["0"]);
    assert_eq!(rows(&shop, "SHOW consistency").await, ["TIMELINE"]);
    all(&shop, &["CREATE SCHEMA sales", "CREATE TABLE t (a int)", "SET work_mem = '1MB'"]).await;
    let schema = "SELECT schemaname FROM pg_tables WHERE tablename = 't'";
    assert_eq!(rows(&shop, schema).await, ["sales"]);
    all(&shop, &["RESET work_mem"]).await;
    assert_eq!(rows(&shop, "SHOW work_mem").await, ["8MB"]);
    all(&first, &["ALTER DATABASE shop RESET ALL"]).await;
    let shop = database(server.address(), "shop").await;
    assert_ne!(rows(&shop, "SHOW work_mem").await, ["8MB"]);
}

/// Returns the number of region directories.
fn region_count(directory: &Path) -> usize {
    std::fs::read_dir(directory.join("regions")).unwrap().count()
}

#[tokio::test]
async fn databases_survive_sigkill_without_orphans() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Process::serve(directory.path());
    let client = connect(server.address()).await;
    all(&client, &["CREATE DATABASE kept"]).await;
    let kept = database(server.address(), "kept").await;
    all(&kept, &["CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)"]).await;
    drop((client, kept));
    for round in 0..6 {
        let client = connect(server.address()).await;
        let killed = tokio::spawn(async move {
            for n in 0.. {
                let name = format!("d{round}_{n}");
                if run(&client, &format!("CREATE DATABASE {name}")).await.is_err()
                    || run(&client, &format!("DROP DATABASE {name}")).await.is_err()
                {
                    return;
                }
            }
        });
        let other = database(server.address(), "kept").await;
        for n in 0..3 {
            rows(&other, &format!("CREATE TABLE IF NOT EXISTS t{n} (id int PRIMARY KEY)")).await;
        }
        server = server.kill_and_restart();
        killed.await.unwrap();
        let client = connect(server.address()).await;
        let left = "SELECT datname FROM pg_database WHERE datname LIKE 'd%' ORDER BY 1";
        for name in rows(&client, left).await {
            all(&client, &[&format!("DROP DATABASE {name}")]).await;
        }
        let kept = database(server.address(), "kept").await;
        assert_eq!(rows(&kept, "SELECT id FROM t").await, ["1"]);
    }
    let server = server.kill_and_restart();
    // The catalogs of two databases, and the tables of one.
    assert_eq!(region_count(directory.path()), 2 + 4);
    let kept = database(server.address(), "kept").await;
    assert_eq!(
        rows(&kept, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").await,
        ["4"]
    );
}

const TEMPLATE: [&str; 12] = [
    "CREATE TABLE t (id serial PRIMARY KEY, v text, n int)",
    "CREATE INDEX t_v ON t (v) INCLUDE (n)",
    "CREATE LOCAL INDEX t_n ON t (n)",
    "INSERT INTO t (v, n) SELECT 'v' || i, i % 10 FROM generate_series(1, 1000) i",
    "CREATE TABLE keyless (a int)",
    "INSERT INTO keyless VALUES (1), (2)",
    "CREATE VIEW w AS SELECT n, count(*) AS c FROM t GROUP BY n",
    "CREATE FUNCTION f(int) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM t WHERE n = $1'",
    "CREATE TYPE mood AS ENUM ('sad', 'glad')",
    "CREATE TABLE u (m mood PRIMARY KEY, t_id int REFERENCES t) SALT_BUCKETS = 3; INSERT INTO u VALUES ('glad', 5)",
    "COMMENT ON TABLE t IS 'from the template'; ALTER TABLE t SPLIT AT (500)",
    "ANALYZE; CREATE MATERIALIZED VIEW m WITH (maintained = true) AS SELECT n, count(*) FROM t GROUP BY n",
];

/// Checks the content that [`TEMPLATE`] makes, with a number of rows in `t`.
async fn check_template(client: &Client, count: usize) {
    let counts = "SELECT count(*), (SELECT count(*) FROM keyless), (SELECT sum(c) FROM w),
        (SELECT sum(count) FROM m) FROM t";
    assert_eq!(rows(client, counts).await, [format!("{count}|2|{count}|{count}")]);
    let found =
        "SELECT id FROM t WHERE v = 'v77'; SELECT f(7); SELECT t_id FROM u WHERE m = 'glad'";
    assert_eq!(rows(client, found).await, ["77", "100", "5"]);
    let comment = "SELECT obj_description('t'::regclass)";
    assert_eq!(rows(client, comment).await, ["from the template"]);
    for checked in rows(client, "CHECK TABLE t").await {
        assert!(!checked.contains("missing"), "{checked}");
    }
}

#[tokio::test]
async fn copy_of_template_is_independent() {
    let directory = tempfile::tempdir().unwrap();
    let server = Process::serve(directory.path());
    let first = connect(server.address()).await;
    all(&first, &["CREATE DATABASE shop"]).await;
    let shop = database(server.address(), "shop").await;
    all(&shop, &TEMPLATE).await;
    // Some cells are in files, some in memory.
    all(&shop, &["FLUSH t", "UPDATE t SET v = v WHERE id <= 100"]).await;
    drop(shop);
    all(&first, &["CREATE DATABASE copy TEMPLATE shop"]).await;
    let copy = database(server.address(), "copy").await;
    check_template(&copy, 1000).await;
    let shop = database(server.address(), "shop").await;
    let fresh = "SELECT nextval('t_id_seq') > 1000";
    assert_eq!(rows(&copy, fresh).await, ["t"]);
    all(&copy, &["INSERT INTO t (v, n) VALUES ('new', 3)", "INSERT INTO keyless VALUES (3)"]).await;
    all(&copy, &["DELETE FROM keyless WHERE a = 3", "DELETE FROM t WHERE v = 'new'"]).await;
    all(&copy, &["DROP INDEX t_n", "ALTER TABLE t ADD COLUMN more int DEFAULT 7"]).await;
    check_template(&shop, 1000).await;
    assert_eq!(rows(&shop, fresh).await, ["t"]);
    all(&shop, &["DELETE FROM t WHERE id > 900", "MAJOR COMPACT t"]).await;
    check_template(&copy, 1000).await;
    all(&copy, &["MAJOR COMPACT t"]).await;
    check_template(&copy, 1000).await;
    drop(shop);
    all(&first, &["DROP DATABASE shop"]).await;
    check_template(&copy, 1000).await;
    drop((first, copy));
    let server = server.kill_and_restart();
    let copy = database(server.address(), "copy").await;
    check_template(&copy, 1000).await;
    assert_eq!(rows(&copy, "SELECT sum(more) FROM t").await, ["7000"]);
}

#[tokio::test]
async fn copy_follows_eventual_indexes_and_objects_of_template1() {
    let server = TestServer::start();
    let first = connect(server.address()).await;
    let template = database(server.address(), "template1").await;
    all(&template, &["CREATE TABLE t (id int PRIMARY KEY, v int)"]).await;
    all(&template, &["CREATE INDEX t_v ON t (v) CONSISTENCY = EVENTUAL"]).await;
    all(&template, &["INSERT INTO t SELECT i, i FROM generate_series(1, 50) i"]).await;
    drop(template);
    all(&first, &["CREATE DATABASE shop"]).await;
    let shop = database(server.address(), "shop").await;
    all(&shop, &["INSERT INTO t VALUES (51, 51)"]).await;
    assert_eq!(rows(&shop, "SELECT count(*) FROM t WHERE v >= 50").await, ["2"]);
    for _ in 0..100 {
        let followed = "SELECT lag_commits IS NOT NULL FROM bennu.indexes WHERE index_name = 't_v'";
        if rows(&shop, followed).await == ["t"] {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(rows(&shop, "SELECT wait_for_index('t_v')").await.len(), 1);
    assert_eq!(rows(&shop, "SELECT count(*) FROM t WHERE v >= 50").await, ["2"]);
}

#[tokio::test]
async fn names_of_other_databases_are_rejected() {
    let server = TestServer::start();
    let first = connect(server.address()).await;
    all(&first, &["CREATE DATABASE shop"]).await;
    let shop = database(server.address(), "shop").await;
    all(&shop, &["CREATE TABLE shop.public.t (id int PRIMARY KEY)"]).await;
    all(&shop, &["INSERT INTO shop.public.t VALUES (1)"]).await;
    let own = "SELECT shop.public.t.id FROM shop.public.t WHERE shop.pg_catalog.abs(-1) = 1";
    assert_eq!(rows(&shop, own).await, ["1"]);
    assert_eq!(rows(&shop, "SELECT 'shop.public.t'::regclass").await, ["t"]);
    for other in [
        "SELECT * FROM bennu.public.t",
        "INSERT INTO bennu.public.t VALUES (1)",
        "SELECT bennu.pg_catalog.abs(1)",
        "DROP TABLE bennu.public.t",
    ] {
        assert_eq!(code(&shop, other).await, "0A000", "{other}");
    }
}

#[tokio::test]
async fn quota_of_database_limits_its_sessions() {
    let server = TestServer::start();
    let first = connect(server.address()).await;
    all(&first, &["CREATE DATABASE shop", "CREATE TABLE t (id int PRIMARY KEY)"]).await;
    all(&first, &["ALTER DATABASE shop SET max_requests_per_second = 1"]).await;
    let shown = "SELECT kind, name, per_second FROM bennu.quotas";
    assert_eq!(rows(&first, shown).await, ["database|shop|1"]);
    let shop = database(server.address(), "shop").await;
    all(&shop, &["CREATE TABLE t (id int PRIMARY KEY)"]).await;
    let mut codes = Vec::new();
    for _ in 0..5 {
        codes.extend(run(&shop, "SELECT count(*) FROM t").await.err());
        rows(&first, "SELECT count(*) FROM t").await;
    }
    assert!(codes.len() >= 3 && codes.iter().all(|code| code == "53400"), "{codes:?}");
    all(&first, &["ALTER DATABASE shop RESET max_requests_per_second"]).await;
    all(&shop, &["SELECT count(*) FROM t", "SELECT count(*) FROM t"]).await;
}

#[tokio::test]
async fn owner_and_createdb_are_needed() {
    let server = TestServer::start();
    let first = connect(server.address()).await;
    all(&first, &["CREATE ROLE ann LOGIN", "CREATE ROLE bob LOGIN CREATEDB"]).await;
    all(&first, &["CREATE DATABASE main_shop"]).await;
    let ann = to(server.address(), "bennu", "ann").await.unwrap();
    let bob = to(server.address(), "bennu", "bob").await.unwrap();
    assert_eq!(code(&ann, "CREATE DATABASE a").await, "42501");
    assert_eq!(code(&bob, "CREATE DATABASE b TEMPLATE main_shop").await, "42501");
    assert_eq!(code(&bob, "CREATE DATABASE b OWNER ann").await, "42501");
    all(&bob, &["CREATE DATABASE b"]).await;
    let owner = "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'b'";
    assert_eq!(rows(&first, owner).await, ["bob"]);
    for statement in ["DROP DATABASE b", "ALTER DATABASE b SET work_mem = '1MB'"] {
        assert_eq!(code(&ann, statement).await, "42501", "{statement}");
    }
    assert_eq!(code(&bob, "ALTER DATABASE main_shop RENAME TO x").await, "42501");
    assert_eq!(code(&first, "DROP ROLE bob").await, "2BP01");
    all(&first, &["ALTER DATABASE b OWNER TO ann"]).await;
    assert_eq!(rows(&first, owner).await, ["ann"]);
    all(&ann, &["DROP DATABASE b"]).await;
    // A role is known in all databases at once.
    let shop = database(server.address(), "main_shop").await;
    all(&shop, &["CREATE ROLE eve"]).await;
    assert_eq!(rows(&first, "SELECT count(*) FROM pg_roles WHERE rolname = 'eve'").await, ["1"]);
    assert_eq!(code(&first, "CREATE ROLE eve").await, "42710");
    // Its policies count, too.
    all(&shop, &["CREATE TABLE secret (a int)", "CREATE POLICY own ON secret TO eve"]).await;
    assert_eq!(code(&first, "DROP ROLE eve").await, "2BP01");
    all(&shop, &["DROP POLICY own ON secret"]).await;
    all(&first, &["DROP ROLE eve"]).await;
}

#[tokio::test]
async fn sessions_begin_with_settings_of_their_role() {
    let server = TestServer::start();
    let first = connect(server.address()).await;
    let statements = [
        "CREATE DATABASE shop",
        "CREATE ROLE ann LOGIN",
        "ALTER DATABASE shop SET work_mem = '1MB'",
        "ALTER DATABASE shop SET log_statement = 'ddl'",
        "ALTER DATABASE shop SET statement_timeout = '7s'",
        "ALTER ROLE ann SET work_mem = '2MB'",
        "ALTER ROLE ann SET consistency = 'TIMELINE'",
        "ALTER ROLE ann SET lock_timeout = '3s'",
        "ALTER ROLE ann IN DATABASE shop SET lock_timeout = '5s'",
    ];
    all(&first, &statements).await;
    let settings =
        ["work_mem", "statement_timeout", "lock_timeout", "consistency", "log_statement"];
    let show = |client: Client| async move {
        let mut shown = Vec::new();
        for name in settings {
            shown.extend(rows(&client, &format!("SHOW {name}")).await);
        }
        shown.join(" ")
    };
    let bennu = show(database(server.address(), "shop").await).await;
    assert_eq!(bennu, "1MB 7s 0 STRONG ddl");
    let ann = show(to(server.address(), "shop", "ann").await.unwrap()).await;
    assert_eq!(ann, "2MB 7s 5s TIMELINE ddl");
    let elsewhere = show(to(server.address(), "bennu", "ann").await.unwrap()).await;
    assert_eq!(elsewhere, "2MB 0 3s TIMELINE none");
    // RESET restores the stored value, and a setting that was dropped is a warning.
    let ann = to(server.address(), "shop", "ann").await.unwrap();
    all(&ann, &["SET work_mem = '9MB'", "RESET work_mem"]).await;
    assert_eq!(rows(&ann, "SHOW work_mem").await, ["2MB"]);
}
