//! The matrix of privileges: each access path to each kind of object, with and without the
//! privilege that it needs. The cases are generated from the table of paths.

use futures_util::StreamExt;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use crate::harness::{TestServer, connect, connection_string};

/// The objects, by kind, with the relation or function that paths name.
const OBJECTS: &str = "
    CREATE TABLE t (a int PRIMARY KEY, b text);
    INSERT INTO t SELECT n, 'x' FROM generate_series(1, 9) g(n);
    CREATE INDEX t_b ON t (b);
    CREATE VIEW v AS SELECT a, b FROM t;
    CREATE MATERIALIZED VIEW m AS SELECT a, b FROM t;
    CREATE SEQUENCE s;
    CREATE FUNCTION f() RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 1';
    CREATE PROCEDURE p() LANGUAGE sql AS 'SELECT 1';
    CREATE SCHEMA own;
    CREATE TABLE own.t (a int PRIMARY KEY, b text);
    GRANT SELECT ON own.t TO eve;
    CREATE TABLE note (a int, b text);
    GRANT INSERT, SELECT ON note TO eve;
    GRANT CREATE, USAGE ON SCHEMA public TO eve;
    CREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
    CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION fires();
    CREATE FUNCTION as_owner() RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT count(*) FROM t';
    CREATE FUNCTION rows_as_owner() RETURNS SETOF t LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT * FROM t';
    CREATE FUNCTION writes_as_owner() RETURNS int LANGUAGE plpgsql SECURITY DEFINER
        AS 'BEGIN UPDATE t SET b = ''z''; RETURN 1; END';
    CREATE PROCEDURE deletes_as_owner() LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN DELETE FROM t WHERE a > 100; END';
    CREATE VIEW i WITH (security_invoker = true) AS SELECT a, b FROM t;
    CREATE VIEW over_i AS SELECT a, b FROM i;
    CREATE DOMAIN amount AS int;
    REVOKE USAGE ON TYPE amount FROM PUBLIC;
    REVOKE EXECUTE ON ALL ROUTINES IN SCHEMA public FROM PUBLIC;
    CREATE FUNCTION reads_t() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM t); END';
    CREATE FUNCTION reads_v() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM v); END';
    CREATE FUNCTION reads_m() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM m); END';
    CREATE FUNCTION reads_s() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM s); END';";

/// The kinds of relations of a path, by their names in [`OBJECTS`].
const ALL: &[&str] = &["t", "v", "m", "s"];
const WITH_COLUMNS: &[&str] = &["t", "v", "m"];
const WRITABLE: &[&str] = &["t", "v"];
const TABLE: &[&str] = &["t"];

/// Views that need the privileges on `t`, too, of the role that reads them.
const OF_INVOKER: &[&str] = &["i", "over_i"];

/// The paths to relations: privilege, relations, and the statements, in which `{}` is the relation.
const PATHS: &[(&str, &[&str], &str)] = &[
    ("SELECT", ALL, "SELECT * FROM {}"),
    ("SELECT", ALL, "SELECT count(*) FROM {}"),
    ("SELECT", ALL, "SELECT 1 WHERE EXISTS (SELECT FROM {})"),
    ("SELECT", ALL, "WITH q AS (SELECT * FROM {}) SELECT count(*) FROM q"),
    ("SELECT", ALL, "SELECT count(*) FROM note LEFT JOIN {} x ON true"),
    ("SELECT", ALL, "SELECT (SELECT count(*) FROM {})"),
    ("SELECT", ALL, "TABLE {}"),
    ("SELECT", ALL, "EXPLAIN SELECT * FROM {}"),
    ("SELECT", ALL, "EXPLAIN ANALYZE SELECT * FROM {}"),
    ("SELECT", ALL, "DO 'BEGIN PERFORM count(*) FROM {}; END'"),
    ("SELECT", ALL, "DO 'DECLARE n bigint; BEGIN EXECUTE ''SELECT count(*) FROM {}'' INTO n; END'"),
    ("SELECT", ALL, "SELECT reads_{}()"),
    ("SELECT", ALL, "BEGIN;; DECLARE c CURSOR FOR SELECT * FROM {};; FETCH ALL FROM c;; COMMIT"),
    ("SELECT", ALL, "PREPARE q AS SELECT * FROM {};; EXECUTE q;; DEALLOCATE q"),
    ("SELECT", ALL, "CREATE TEMPORARY TABLE made AS SELECT * FROM {};; DROP TABLE made"),
    ("SELECT", WITH_COLUMNS, "INSERT INTO note SELECT a, b FROM {}"),
    ("SELECT", WITH_COLUMNS, "SELECT a FROM {} WHERE a = 1"),
    ("SELECT", WITH_COLUMNS, "SELECT x FROM {} x"),
    ("SELECT", WITH_COLUMNS, "SELECT b FROM {} UNION ALL SELECT 'x'"),
    ("SELECT", WITH_COLUMNS, "SELECT max(a) OVER () FROM {}"),
    ("SELECT", WITH_COLUMNS, "COPY (SELECT * FROM {}) TO STDOUT"),
    ("SELECT", WITH_COLUMNS, "SET consistency = timeline;; SELECT * FROM {};; RESET consistency"),
    ("SELECT", TABLE, "SELECT * FROM {} FOR SYSTEM_TIME AS OF now()"),
    ("SELECT", TABLE, "SELECT * FROM {} FOR SYSTEM_TIME ALL"),
    ("SELECT", TABLE, "SELECT * FROM cells('{}')"),
    ("SELECT", TABLE, "COPY {} TO STDOUT"),
    ("SELECT", TABLE, "SELECT * FROM {} TABLESAMPLE SYSTEM (100)"),
    ("SELECT", TABLE, "SELECT a FROM {} WHERE b = 'x' ORDER BY a LIMIT 1"),
    ("SELECT", TABLE, "BEGIN;; LOCK TABLE {} IN ACCESS SHARE MODE;; COMMIT"),
    ("SELECT, UPDATE", TABLE, "SELECT a FROM {} FOR UPDATE"),
    ("SELECT, UPDATE", TABLE, "SELECT a FROM {} FOR KEY SHARE"),
    ("UPDATE", TABLE, "BEGIN;; LOCK TABLE {} IN EXCLUSIVE MODE;; COMMIT"),
    ("INSERT", WRITABLE, "BEGIN;; INSERT INTO {} VALUES (100, 'y');; ROLLBACK"),
    ("INSERT", WRITABLE, "BEGIN;; INSERT INTO {} SELECT 101, 'y';; ROLLBACK"),
    ("INSERT", TABLE, "BEGIN;; INSERT INTO {} VALUES (1, 'y') ON CONFLICT DO NOTHING;; ROLLBACK"),
    ("INSERT, UPDATE", TABLE, "BEGIN;; UPSERT INTO {} VALUES (1, 'y');; ROLLBACK"),
    ("UPDATE", WRITABLE, "BEGIN;; UPDATE {} SET b = 'y';; ROLLBACK"),
    ("SELECT, UPDATE", WRITABLE, "BEGIN;; UPDATE {} SET b = 'y' WHERE a = 1;; ROLLBACK"),
    ("SELECT, UPDATE", WRITABLE, "BEGIN;; UPDATE {} SET a = a + 100;; ROLLBACK"),
    ("DELETE", WRITABLE, "BEGIN;; DELETE FROM {};; ROLLBACK"),
    ("SELECT, DELETE", WRITABLE, "BEGIN;; DELETE FROM {} WHERE a = 1;; ROLLBACK"),
    (
        "SELECT, DELETE",
        TABLE,
        "BEGIN;; WITH d AS (DELETE FROM {} RETURNING a) SELECT * FROM d;; ROLLBACK",
    ),
    (
        "SELECT, DELETE",
        TABLE,
        "BEGIN;; MERGE INTO {} USING (VALUES (1)) n (k) ON a = k WHEN MATCHED THEN DELETE;; ROLLBACK",
    ),
    (
        "SELECT, UPDATE",
        TABLE,
        "BEGIN;; MERGE INTO {} USING (VALUES (1)) n (k) ON a = k WHEN MATCHED THEN UPDATE SET b = 'z';; ROLLBACK",
    ),
    (
        "SELECT, INSERT",
        TABLE,
        "BEGIN;; MERGE INTO {} USING (VALUES (200)) n (k) ON a = k WHEN NOT MATCHED THEN INSERT VALUES (k, 'z');; ROLLBACK",
    ),
    ("TRUNCATE", TABLE, "BEGIN;; TRUNCATE {};; ROLLBACK"),
    ("REFERENCES", TABLE, "BEGIN;; CREATE TABLE child (a int REFERENCES {});; ROLLBACK"),
    ("UPDATE", &["s"], "SELECT nextval('{}')"),
    ("USAGE", &["s"], "SELECT nextval('{}')"),
    ("SELECT", &["s"], "SELECT nextval('s'), currval('{}')"),
    ("UPDATE", &["s"], "SELECT setval('{}', 5)"),
];

/// The paths to other objects: what is granted, and the statements.
const OTHERS: &[(&str, &str)] = &[
    ("EXECUTE ON FUNCTION f()", "SELECT f()"),
    ("EXECUTE ON FUNCTION f()", "SELECT * FROM f()"),
    ("EXECUTE ON FUNCTION f()", "DO 'BEGIN PERFORM f(); END'"),
    ("EXECUTE ON PROCEDURE p()", "CALL p()"),
    ("EXECUTE ON FUNCTION as_owner()", "SELECT as_owner()"),
    ("EXECUTE ON FUNCTION as_owner()", "SELECT a FROM note WHERE as_owner() = 9"),
    ("EXECUTE ON FUNCTION rows_as_owner()", "SELECT * FROM rows_as_owner()"),
    ("EXECUTE ON FUNCTION rows_as_owner()", "SELECT count(*) FROM rows_as_owner() WHERE a = 1"),
    ("EXECUTE ON FUNCTION writes_as_owner()", "BEGIN;; SELECT writes_as_owner();; ROLLBACK"),
    ("EXECUTE ON PROCEDURE deletes_as_owner()", "CALL deletes_as_owner()"),
    ("EXECUTE ON PROCEDURE deletes_as_owner()", "DO 'BEGIN CALL deletes_as_owner(); END'"),
    ("USAGE ON TYPE amount", "BEGIN;; CREATE TABLE x (a amount);; ROLLBACK"),
    ("USAGE ON TYPE amount", "BEGIN;; CREATE DOMAIN x AS amount;; ROLLBACK"),
    ("USAGE ON TYPE amount", "BEGIN;; CREATE TYPE x AS (a amount);; ROLLBACK"),
    ("USAGE ON TYPE amount", "BEGIN;; CREATE VIEW x AS SELECT 1::amount AS a;; ROLLBACK"),
    (
        "USAGE ON TYPE amount",
        "BEGIN;; CREATE FUNCTION x(amount) RETURNS int LANGUAGE sql AS 'SELECT 1';; ROLLBACK",
    ),
    (
        "USAGE ON TYPE amount",
        "BEGIN;; CREATE TABLE x (a int);; ALTER TABLE x ADD b amount[];; ROLLBACK",
    ),
    ("USAGE ON SCHEMA own", "SELECT * FROM own.t"),
    ("CREATE ON SCHEMA own", "BEGIN;; CREATE TABLE own.x (a int);; ROLLBACK"),
    ("CREATE ON SCHEMA own", "BEGIN;; CREATE SEQUENCE own.x;; ROLLBACK"),
    ("CREATE ON SCHEMA own", "BEGIN;; CREATE TYPE own.x AS ENUM ('a');; ROLLBACK"),
    ("CREATE ON SCHEMA own", "BEGIN;; CREATE VIEW own.x AS SELECT 1 AS a;; ROLLBACK"),
    (
        "CREATE ON SCHEMA own",
        "BEGIN;; CREATE FUNCTION own.x() RETURNS int LANGUAGE sql AS 'SELECT 1';; ROLLBACK",
    ),
    ("CREATE ON DATABASE bennu", "BEGIN;; CREATE SCHEMA x;; ROLLBACK"),
    ("SELECT (a, b) ON t", "SELECT * FROM t"),
    ("SELECT (b) ON t", "SELECT b FROM t"),
    ("SELECT (b) ON t", "SELECT count(*) FROM t"),
    ("UPDATE (b) ON t", "BEGIN;; UPDATE t SET b = 'y';; ROLLBACK"),
    ("INSERT (a) ON t", "BEGIN;; INSERT INTO t (a) VALUES (300);; ROLLBACK"),
];

/// Objects that are created later: what is granted on their kind, their definition, and a path to
/// one of them.
const FUTURE: &[(&str, &str, &str)] = &[
    ("SELECT ON TABLES", "TABLE x (a int)", "SELECT * FROM x"),
    ("INSERT ON TABLES", "TABLE x (a int)", "INSERT INTO x VALUES (1)"),
    ("SELECT ON TABLES", "VIEW x AS SELECT 1 AS a", "SELECT * FROM x"),
    ("SELECT ON TABLES", "MATERIALIZED VIEW x AS SELECT 1 AS a", "SELECT * FROM x"),
    ("USAGE ON SEQUENCES", "SEQUENCE x", "SELECT nextval('x')"),
    ("EXECUTE ON FUNCTIONS", "FUNCTION x() RETURNS int LANGUAGE sql AS 'SELECT 1'", "SELECT x()"),
    ("EXECUTE ON ROUTINES", "PROCEDURE x() LANGUAGE sql AS 'SELECT 1'", "CALL x()"),
    ("USAGE ON TYPES", "TYPE x AS ENUM ('a')", "BEGIN;; CREATE TABLE y (a x);; ROLLBACK"),
    ("USAGE ON TYPES", "DOMAIN x AS int", "BEGIN;; CREATE TABLE y (a x);; ROLLBACK"),
    ("CREATE ON SCHEMAS", "SCHEMA x", "BEGIN;; CREATE TABLE x.y (a int);; ROLLBACK"),
];

/// Statements that only the owner may execute.
const OF_OWNER: &[&str] = &[
    "ALTER TABLE t ADD c int",
    "ALTER TABLE t ALTER b SET DEFAULT 'x'",
    "ALTER TABLE t RENAME TO x",
    "ALTER TABLE t RENAME a TO x",
    "ALTER TABLE t SET SCHEMA own",
    "ALTER TABLE t OWNER TO eve",
    "ALTER TABLE t SET (max_requests_per_second = 5)",
    "ALTER TABLE t DISABLE TRIGGER ALL",
    "DROP TRIGGER g ON t",
    "ALTER TRIGGER g ON t RENAME TO x",
    "COMMENT ON TRIGGER g ON t IS 'x'",
    "COMMENT ON INDEX t_b IS 'x'",
    "ALTER TABLE t SPLIT AT (5)",
    "ALTER TABLE t ATTACH COPROCESSOR audit",
    "CREATE INDEX ON t (a, b)",
    "DROP INDEX t_b",
    "ALTER INDEX t_b RENAME TO x",
    "REINDEX TABLE t",
    "REINDEX INDEX t_b",
    "CHECK TABLE t",
    "CHECK INDEX t_b",
    "CHECK STORE t",
    "FLUSH t",
    "COMPACT t",
    "MAJOR COMPACT t",
    "COMMENT ON TABLE t IS 'x'",
    "COMMENT ON COLUMN t.a IS 'x'",
    "DROP TABLE t CASCADE",
    "DROP VIEW v",
    "CREATE OR REPLACE VIEW v AS SELECT a, b FROM t",
    "ALTER VIEW v RENAME TO x",
    "REFRESH MATERIALIZED VIEW m",
    "DROP MATERIALIZED VIEW m",
    "ALTER SEQUENCE s RESTART",
    "DROP SEQUENCE s",
    "DROP FUNCTION f()",
    "ALTER FUNCTION f() STABLE",
    "CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 2'",
    "DROP SCHEMA own CASCADE",
    "ALTER SCHEMA own RENAME TO x",
    "GRANT SELECT ON t TO eve",
    "GRANT EXECUTE ON FUNCTION f() TO eve",
    "GRANT USAGE ON SCHEMA own TO eve",
];

/// Runs statements; returns whether they were allowed.
async fn is_allowed(client: &Client, statements: &str) -> Result<bool, String> {
    let mut outcome = Ok(true);
    for statement in statements.split(";; ") {
        let outcome_of = match statement.starts_with("COPY") {
            true => copied(client, statement).await,
            false => client.simple_query(statement).await.map(drop),
        };
        if let Err(error) = outcome_of {
            let code = error.code().map_or("", |code| code.code()).to_owned();
            outcome = match code.as_str() {
                "42501" => Ok(false),
                _ => Err(format!("{statement}: {error:?}")),
            };
            break;
        }
    }
    let _ = client.batch_execute("ROLLBACK; DEALLOCATE ALL; RESET consistency").await;
    outcome
}

/// Connects as `eve`, sends no rows to a COPY FROM, and returns the SQLSTATE of its error.
async fn copy_in_code(server: &TestServer, statement: &str) -> Option<String> {
    // The driver does not use a connection again after such an error.
    let eve = connect_as_eve(server).await;
    let copy = async {
        let mut sink = std::pin::pin!(eve.copy_in::<_, bytes::Bytes>(statement).await?);
        sink.as_mut().finish().await
    };
    let error = copy.await.err()?;
    Some(error.code().map_or_else(|| error.to_string(), |code| code.code().to_owned()))
}

/// Reads the rows of COPY TO.
async fn copied(client: &Client, statement: &str) -> Result<(), tokio_postgres::Error> {
    let mut rows = std::pin::pin!(client.copy_out(statement).await?);
    while let Some(row) = rows.next().await {
        row?;
    }
    Ok(())
}

/// Starts a server with the objects; returns it with a session of the owner and one of `eve`.
async fn start() -> (TestServer, Client, Client) {
    let server = TestServer::start();
    let root = connect(server.address()).await;
    root.batch_execute("CREATE USER eve").await.unwrap();
    root.batch_execute(OBJECTS).await.unwrap();
    root.batch_execute(
        "GRANT EXECUTE ON FUNCTION reads_t(), reads_v(), reads_m(), reads_s() TO eve",
    )
    .await
    .unwrap();
    let eve = connect_as_eve(&server).await;
    (server, root, eve)
}

async fn connect_as_eve(server: &TestServer) -> Client {
    let config = connection_string(server.address()).replace("user=bennu", "user=eve");
    let (eve, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
    tokio::spawn(connection);
    eve
}

/// Paths of COPY FROM: privilege, relation, and statement.
const COPIES_IN: &[(&str, &str, &str)] = &[
    ("INSERT", "t", "COPY t FROM STDIN"),
    ("INSERT", "t", "COPY t (b, a) FROM STDIN WHERE a > 0"),
    ("INSERT (a)", "t", "COPY t (a) FROM STDIN"),
    ("INSERT (a), INSERT (b)", "t", "COPY t FROM STDIN (FORMAT csv)"),
    ("INSERT", "added", "COPY added FROM STDIN"),
];

#[tokio::test]
async fn copy_from_needs_insert() {
    let (server, root, _eve) = start().await;
    let view = "CREATE VIEW added AS SELECT a, b FROM t;
        CREATE TRIGGER fires INSTEAD OF INSERT ON added FOR EACH ROW EXECUTE FUNCTION fires()";
    root.batch_execute(view).await.unwrap();
    for (privilege, relation, statement) in COPIES_IN {
        root.batch_execute(&format!("GRANT SELECT, UPDATE ON {relation} TO eve")).await.unwrap();
        let denied = copy_in_code(&server, statement).await;
        assert_eq!(denied.as_deref(), Some("42501"), "{statement}");
        root.batch_execute(&format!("GRANT {privilege} ON {relation} TO eve")).await.unwrap();
        assert_eq!(copy_in_code(&server, statement).await, None, "{statement}");
        root.batch_execute(&format!("REVOKE ALL ON {relation} FROM eve")).await.unwrap();
    }
}

#[tokio::test]
async fn access_paths_need_their_privilege() {
    let (_server, root, eve) = start().await;
    let mut cases: Vec<(Vec<String>, String)> = Vec::new();
    for (privileges, relations, path) in PATHS {
        for relation in *relations {
            let granted = privileges.split(", ").map(|one| format!("{one} ON {relation}"));
            let path = path.replace("{}", relation);
            // The value of a sequence is defined by another privilege.
            let granted = granted.chain(path.contains("currval").then(|| "USAGE ON s".to_owned()));
            cases.push((granted.collect(), path));
        }
        for view in OF_INVOKER.iter().filter(|_| relations.contains(&"v")) {
            let all = privileges.split(", ").flat_map(|one| [*view, "t"].map(|of| (one, of)));
            let granted = all.map(|(one, of)| format!("{one} ON {of}")).collect();
            if !path.contains("reads_") {
                cases.push((granted, path.replace("{}", view)));
            }
        }
    }
    cases.extend(
        OTHERS.iter().map(|(granted, path)| (vec![(*granted).to_owned()], (*path).to_owned())),
    );
    assert!(cases.len() > 100, "{} cases", cases.len());
    let mut wrong = Vec::new();
    for (granted, path) in &cases {
        // All privileges but one are not enough.
        for missing in 0..granted.len() {
            let others = granted.iter().enumerate().filter(|(at, _)| *at != missing);
            let others: Vec<&String> = others.map(|(_, one)| one).collect();
            for one in &others {
                root.batch_execute(&format!("GRANT {one} TO eve")).await.unwrap();
            }
            let outcome = is_allowed(&eve, path).await;
            if outcome != Ok(false) && !path.contains("currval") {
                wrong.push(format!("without {}: {outcome:?} {path}", granted[missing]));
            }
            for one in &others {
                root.batch_execute(&format!("REVOKE {one} FROM eve")).await.unwrap();
            }
        }
        for one in granted {
            root.batch_execute(&format!("GRANT {one} TO eve")).await.unwrap();
        }
        // A schema has to be visible to create something in it.
        let outcome = is_allowed(&eve, path).await;
        if outcome != Ok(true) {
            wrong.push(format!("with {granted:?}: {outcome:?} {path}"));
        }
        for one in granted {
            root.batch_execute(&format!("REVOKE {one} FROM eve")).await.unwrap();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn definitions_need_the_owner() {
    let (_server, root, eve) = start().await;
    let all = "GRANT ALL ON t, v, m TO eve; GRANT ALL ON SEQUENCE s TO eve; GRANT ALL ON FUNCTION f() TO eve;
        GRANT ALL ON SCHEMA public TO eve; GRANT USAGE ON SCHEMA own TO eve";
    root.batch_execute(all).await.unwrap();
    let mut wrong = Vec::new();
    for statement in OF_OWNER {
        let outcome = eve.simple_query(statement).await;
        let code = outcome.as_ref().err().and_then(|error| error.code());
        // A grant of a role that has privileges, but no grant options, is a warning.
        let is_grant = statement.starts_with("GRANT");
        if code.map(|code| code.code()) != Some("42501") && !is_grant {
            wrong.push(format!("{statement}: {outcome:?}"));
        }
    }
    let granted = "SELECT has_table_privilege('eve', 't', 'select with grant option')";
    assert!(!root.query_one(granted, &[]).await.unwrap().get::<_, bool>(0));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The owner may do the same. Those that drop or rename are not repeated.
    root.batch_execute("GRANT CREATE ON DATABASE bennu TO eve; GRANT CREATE ON SCHEMA own TO eve")
        .await
        .unwrap();
    for object in ["TABLE t", "VIEW v", "MATERIALIZED VIEW m", "SEQUENCE s", "FUNCTION f()"] {
        root.batch_execute(&format!("ALTER {object} OWNER TO eve")).await.unwrap();
    }
    for statement in OF_OWNER.iter().filter(|one| {
        !one.contains("own")
            && !one.contains("RENAME")
            && !one.contains("DROP")
            && !one.contains("COPROCESSOR")
    }) {
        eve.simple_query(statement).await.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
}

/// The paths to all rows of table `t`: the last statement returns or changes them, or returns their
/// number as column `count`.
const ROWS: &[&str] = &[
    "SELECT * FROM t",
    "SELECT count(*) FROM t",
    "SELECT count(b) FROM t WHERE b = 'x'",
    "SELECT count(*) FROM t WHERE b >= 'a' AND a > 0",
    "SELECT sum(1) AS count FROM t",
    "SELECT max(count) AS count FROM (SELECT count(*) FROM t GROUP BY b) q",
    "SELECT b FROM t WHERE b = 'x'",
    "SELECT b FROM t ORDER BY b",
    "SELECT a FROM t WHERE b = 'x' ORDER BY a LIMIT 100",
    "SELECT a FROM t WHERE a IN (1, 2, 3, 4, 5, 6, 7, 8, 9)",
    "SELECT a FROM t WHERE a BETWEEN 1 AND 9 ORDER BY a DESC",
    "SELECT a FROM t WHERE a < 5 OR b = 'x'",
    "SELECT a FROM t WHERE b LIKE 'x%'",
    "SELECT DISTINCT a FROM t",
    "SELECT a FROM t UNION SELECT a FROM t",
    "SELECT a FROM t INTERSECT SELECT a FROM t",
    "SELECT row_number() OVER (ORDER BY a) FROM t",
    "SELECT unnest(array[a]) FROM t",
    "SELECT t FROM t",
    "TABLE t",
    "SELECT (SELECT count(*) FROM t) AS count",
    "SELECT n FROM generate_series(1, 9) g(n) WHERE EXISTS (SELECT FROM t WHERE a = n)",
    "SELECT n FROM generate_series(1, 9) g(n) WHERE n IN (SELECT a FROM t)",
    "SELECT n FROM generate_series(1, 9) g(n) JOIN t ON a = n",
    "SELECT n FROM generate_series(1, 9) g(n), LATERAL (SELECT a FROM t WHERE a = n) q",
    "SELECT count(a) FROM generate_series(1, 9) g(n) LEFT JOIN t ON a = n",
    "SELECT x.a FROM t x JOIN t y USING (a)",
    "WITH q AS MATERIALIZED (SELECT * FROM t) SELECT count(*) FROM q",
    "WITH RECURSIVE q AS (SELECT a FROM t UNION SELECT a FROM t) SELECT count(*) FROM q",
    "SELECT reads_t() AS count",
    "BEGIN;; DECLARE c SCROLL CURSOR FOR SELECT * FROM t;; FETCH ALL FROM c",
    "PREPARE q AS SELECT * FROM t WHERE a > $1;; EXECUTE q (0)",
    "CREATE TEMPORARY TABLE made AS SELECT * FROM t;; SELECT count(*) FROM made;; DROP TABLE made",
    "BEGIN;; INSERT INTO note SELECT a, b FROM t",
    "SET consistency = timeline;; SELECT * FROM t",
    "SELECT * FROM t FOR SYSTEM_TIME AS OF now()",
    "SELECT * FROM t FOR SYSTEM_TIME ALL",
    "BEGIN;; SELECT set_config('as_of', now()::text, true);; SELECT * FROM t",
    "SELECT * FROM t TABLESAMPLE SYSTEM (100)",
    "SELECT * FROM t TABLESAMPLE BERNOULLI (100)",
    "SELECT a FROM t FOR UPDATE",
    "SELECT a FROM t FOR KEY SHARE",
    "SELECT a FROM t ORDER BY b FOR SHARE SKIP LOCKED",
    "COPY t TO STDOUT",
    "COPY (SELECT * FROM t) TO STDOUT",
    "BEGIN;; UPDATE t SET b = 'y'",
    "BEGIN;; UPDATE t SET b = b || 'y' WHERE b = 'x'",
    "BEGIN;; UPDATE t SET b = q.b FROM t q WHERE t.a = q.a",
    "BEGIN;; DELETE FROM t",
    "BEGIN;; DELETE FROM t WHERE b LIKE 'x'",
    "BEGIN;; DELETE FROM t USING generate_series(1, 9) g(n) WHERE a = n",
    "BEGIN;; WITH d AS (DELETE FROM t RETURNING a) SELECT * FROM d",
    "BEGIN;; WITH d AS (UPDATE t SET b = 'z' RETURNING a) SELECT count(*) FROM d",
    "BEGIN;; MERGE INTO t USING generate_series(1, 9) g(n) ON a = n WHEN MATCHED THEN DELETE",
    "BEGIN;; MERGE INTO t USING generate_series(1, 9) g(n) ON a = n WHEN MATCHED THEN UPDATE SET b = 'z'",
];

/// Statements that policies do not filter: they are rejected where policies apply.
const UNFILTERED: &[&str] = &[
    "SELECT * FROM cells('t')",
    "SELECT * FROM cells('t', raw => true, versions => 10)",
    "SELECT * FROM cells('t_b')",
    "SET row_security = off;; SELECT * FROM t",
    "SET row_security = off;; COPY t TO STDOUT",
    "BEGIN;; SET LOCAL row_security = off;; UPDATE t SET b = 'y'",
    "BEGIN;; SET LOCAL row_security = off;; INSERT INTO t VALUES (100, 'y')",
    "BEGIN;; INSERT INTO t VALUES (100, 'y')",
    "BEGIN;; INSERT INTO t VALUES (7, 'y') ON CONFLICT (a) DO UPDATE SET b = 'y'",
    "BEGIN;; UPSERT INTO t VALUES (7, 'y')",
    "BEGIN;; UPSERT INTO t VALUES (7, 'y') ON DUPLICATE KEY UPDATE b = 'y'",
    "BEGIN;; UPDATE t SET a = a + 100",
    "BEGIN;; MERGE INTO t USING (VALUES (100)) n (k) ON a = k WHEN NOT MATCHED THEN INSERT VALUES (k, 'z')",
];

/// Runs statements; returns the number of rows of the last one.
async fn rows_of(client: &Client, statements: &str) -> Result<u64, String> {
    let mut count = 0;
    for statement in statements.split(";; ").filter(|one| !one.starts_with("DROP")) {
        let failed = |error: tokio_postgres::Error| {
            let code = error.code().map_or("", |code| code.code());
            format!("{code} {statement}: {error}")
        };
        if statement.starts_with("COPY") {
            let rows = client.copy_out(statement).await.map_err(failed)?;
            let rows: Vec<_> = rows.collect().await;
            let bytes = rows.into_iter().map(|row| row.map(|row| row.to_vec()));
            let text = bytes.collect::<Result<Vec<_>, _>>().map_err(failed)?.concat();
            count = text.iter().filter(|byte| **byte == b'\n').count() as u64;
            continue;
        }
        let messages = client.simple_query(statement).await.map_err(failed)?;
        let counted = messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.try_get("count").ok().flatten()?.parse().ok(),
            _ => None,
        });
        let done = messages.iter().find_map(|message| match message {
            SimpleQueryMessage::CommandComplete(rows) => Some(*rows),
            _ => None,
        });
        count = counted.or(done).unwrap_or(0);
    }
    Ok(count)
}

/// Each access path to the rows of a table sees those that the policies let through: before
/// and after they are enabled, with a subquery in the policy, and as a role that bypasses them.
#[tokio::test]
async fn policies_filter_access_paths() {
    let (_server, root, eve) = start().await;
    root.batch_execute(
        "GRANT ALL ON t, note TO eve; CREATE TABLE seen (a int PRIMARY KEY); INSERT INTO seen VALUES (1), (2), (3);
        GRANT SELECT ON seen TO eve; CREATE POLICY p ON t USING (a <= 3); ANALYZE t",
    )
    .await
    .unwrap();
    let reset = "ROLLBACK; DEALLOCATE ALL; RESET consistency; RESET row_security; DROP TABLE IF EXISTS made";
    let mut wrong = Vec::new();
    for (change, is_filtered) in [
        ("SELECT", false),
        ("ALTER TABLE t ENABLE ROW LEVEL SECURITY", true),
        ("ALTER ROLE eve BYPASSRLS", false),
        ("ALTER ROLE eve NOBYPASSRLS", true),
        ("ALTER POLICY p ON t USING (a IN (SELECT a FROM seen))", true),
        ("ALTER TABLE t DISABLE ROW LEVEL SECURITY", false),
    ] {
        root.batch_execute(change).await.unwrap();
        for path in ROWS {
            let expected = Ok(if is_filtered { 3 } else { 9 });
            let outcome = rows_of(&eve, path).await;
            let _ = eve.batch_execute(reset).await;
            if outcome != expected {
                wrong.push(format!("{change}: {outcome:?} {path}"));
            }
        }
        for path in UNFILTERED {
            let outcome = rows_of(&eve, path).await;
            let _ = eve.batch_execute(reset).await;
            let is_denied = outcome.as_ref().is_err_and(|error| error.starts_with("42501"));
            if outcome.is_ok() == is_filtered || is_denied != is_filtered {
                wrong.push(format!("{change}: {outcome:?} {path}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A plan that was made before a REVOKE is not executed after it, over either protocol.
#[tokio::test]
async fn prepared_statements_see_revokes() {
    let (_server, root, eve) = start().await;
    root.batch_execute("GRANT SELECT ON t TO eve").await.unwrap();
    let prepared = eve.prepare("SELECT b FROM t WHERE a = $1").await.unwrap();
    for round in 0..3 {
        let row = eve.query_one(&prepared, &[&1]).await.unwrap();
        assert_eq!(row.get::<_, &str>(0), "x");
        root.batch_execute("REVOKE SELECT ON t FROM eve").await.unwrap();
        let error = eve.query_one(&prepared, &[&1]).await.unwrap_err();
        assert_eq!(error.code().map(|code| code.code()), Some("42501"), "round {round}");
        root.batch_execute("GRANT SELECT ON t TO eve").await.unwrap();
    }
}

/// Attempts to get privileges by other means than a GRANT.
#[tokio::test]
async fn privileges_are_not_gained_by_detours() {
    let (_server, root, eve) = start().await;
    root.batch_execute("CREATE ROLE boss SUPERUSER; CREATE ROLE other").await.unwrap();
    for attempt in [
        "SET ROLE boss",
        "SET ROLE other",
        "SET SESSION AUTHORIZATION boss",
        "SELECT set_config('role', 'boss', false)",
        "SELECT set_config('session_authorization', 'boss', true)",
        "DO 'BEGIN SET LOCAL ROLE boss; END'",
        "CREATE FUNCTION as_boss() RETURNS int LANGUAGE sql SET role = 'boss' AS 'SELECT 1'",
        "GRANT boss TO eve",
        "ALTER ROLE eve SUPERUSER",
        "ALTER ROLE boss PASSWORD 'mine'",
        "CREATE ROLE helper SUPERUSER",
        "CREATE SCHEMA AUTHORIZATION boss",
        "SELECT passwd FROM pg_shadow",
        "SELECT rolpassword FROM pg_authid",
        "SET session_replication_role = replica",
        "SET log_statement = 'none'",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'bennu'",
    ] {
        let allowed = is_allowed(&eve, attempt).await;
        assert_eq!(allowed, Ok(false), "{attempt}");
    }
    // A view of one's own has one's own privileges only.
    eve.batch_execute("CREATE VIEW mine AS SELECT * FROM t").await.unwrap();
    assert_eq!(is_allowed(&eve, "SELECT * FROM mine").await, Ok(false));
    root.batch_execute("GRANT SELECT ON mine TO other").await.unwrap();
    assert_eq!(is_allowed(&root, "SET ROLE other;; SELECT * FROM mine").await, Ok(false));
    root.batch_execute("RESET ROLE").await.unwrap();
    // The text of an internal statement of foreign keys has no privileges of its own.
    let internal = "SELECT 1 FROM public.t WHERE a = $1 LIMIT 1";
    root.batch_execute("CREATE TABLE child (a int PRIMARY KEY, t int REFERENCES t)").await.unwrap();
    root.batch_execute("GRANT DELETE ON t TO eve").await.unwrap();
    eve.batch_execute("BEGIN; DELETE FROM t; ROLLBACK").await.unwrap();
    let refused = eve.query(internal, &[&1]).await.unwrap_err();
    assert_eq!(refused.code().map(|code| code.code()), Some("42501"));
    // Statistics show no values.
    root.batch_execute("ANALYZE t").await.unwrap();
    let shown = "SELECT count(*) FROM pg_stats WHERE tablename = 't'";
    assert_eq!(eve.query_one(shown, &[]).await.unwrap().get::<_, i64>(0), 0);
    assert_ne!(root.query_one(shown, &[]).await.unwrap().get::<_, i64>(0), 0);
}

/// CREATE TRIGGER needs TRIGGER of the table and EXECUTE of the function, as PostgreSQL's does.
#[tokio::test]
async fn triggers_need_privileges_of_table_and_function() {
    let (_server, root, eve) = start().await;
    let create = "BEGIN;; CREATE TRIGGER own AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION fires();; ROLLBACK";
    for (grant, expected) in [
        ("SELECT", false),
        ("GRANT EXECUTE ON FUNCTION fires() TO eve", false),
        ("GRANT TRIGGER ON t TO eve", true),
        ("REVOKE EXECUTE ON FUNCTION fires() FROM eve", false),
    ] {
        root.batch_execute(grant).await.unwrap();
        assert_eq!(is_allowed(&eve, create).await, Ok(expected), "{grant}");
    }
}

#[tokio::test]
async fn default_privileges_apply_to_new_objects() {
    let (_server, root, eve) = start().await;
    let nothing = "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
        ALTER DEFAULT PRIVILEGES REVOKE USAGE ON TYPES FROM PUBLIC";
    root.batch_execute(nothing).await.unwrap();
    let mut wrong = Vec::new();
    for scope in ["", "IN SCHEMA public "] {
        for (granted, definition, path) in FUTURE {
            if granted.contains("SCHEMAS") && !scope.is_empty() {
                continue;
            }
            let (verb, kind) =
                (format!("{scope}GRANT {granted} TO eve"), definition.split(' ').next());
            let kind = kind.filter(|kind| *kind != "MATERIALIZED").unwrap_or("MATERIALIZED VIEW");
            let back = format!("{scope}REVOKE {granted} FROM eve");
            for (change, expected) in [(None, false), (Some(&verb), true), (Some(&back), false)] {
                if let Some(change) = change {
                    root.batch_execute(&format!("ALTER DEFAULT PRIVILEGES {change}"))
                        .await
                        .unwrap();
                }
                root.batch_execute(&format!("CREATE {definition}")).await.unwrap();
                if granted.contains("SCHEMAS") {
                    root.batch_execute("GRANT USAGE ON SCHEMA x TO eve").await.unwrap();
                }
                let outcome = is_allowed(&eve, path).await;
                if outcome != Ok(expected) {
                    wrong.push(format!("{change:?} {definition}: {outcome:?} {path}"));
                }
                root.batch_execute(&format!("DROP {kind} x")).await.unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A connection needs CONNECT on its database, and a temporary object TEMPORARY.
#[tokio::test]
async fn privileges_on_databases_are_checked() {
    let (server, root, eve) = start().await;
    root.batch_execute("CREATE DATABASE shop").await.unwrap();
    root.batch_execute("REVOKE ALL ON DATABASE shop, bennu FROM PUBLIC").await.unwrap();
    let config = |user: &str, database: &str| {
        let config = connection_string(server.address());
        config.replace("user=bennu", &format!("user={user}")) + &format!(" dbname={database}")
    };
    for database in ["shop", "bennu"] {
        let refused = tokio_postgres::connect(&config("eve", database), NoTls).await.err().unwrap();
        let refused = refused.as_db_error().unwrap();
        assert_eq!(refused.code().code(), "42501");
        assert_eq!(refused.message(), format!("permission denied for database \"{database}\""));
        assert!(tokio_postgres::connect(&config("bennu", database), NoTls).await.is_ok());
    }
    let temporary = "BEGIN;; CREATE TEMPORARY TABLE x (a int);; ROLLBACK";
    assert_eq!(is_allowed(&eve, temporary).await, Ok(false));
    root.batch_execute("GRANT CONNECT ON DATABASE shop TO eve").await.unwrap();
    root.batch_execute("GRANT TEMPORARY ON DATABASE bennu TO eve").await.unwrap();
    assert!(tokio_postgres::connect(&config("eve", "shop"), NoTls).await.is_ok());
    assert!(tokio_postgres::connect(&config("eve", "bennu"), NoTls).await.is_err());
    assert_eq!(is_allowed(&eve, temporary).await, Ok(true));
    // Another database has objects of the role.
    let (shop, connection) =
        tokio_postgres::connect(&config("bennu", "shop"), NoTls).await.unwrap();
    tokio::spawn(connection);
    shop.batch_execute("CREATE ROLE ben; CREATE TABLE x (a int); GRANT SELECT ON x TO ben")
        .await
        .unwrap();
    let refused = root.batch_execute("DROP ROLE ben").await.unwrap_err();
    let refused = refused.as_db_error().unwrap();
    assert_eq!(refused.code().code(), "2BP01");
    assert_eq!(refused.detail(), Some("1 object in database shop"));
    shop.batch_execute("DROP OWNED BY ben").await.unwrap();
    root.batch_execute("DROP ROLE ben").await.unwrap();
}

/// Another role than that which prepared a transaction cannot end it, unless it is a superuser.
#[tokio::test]
async fn prepared_transactions_are_ended_by_their_role() {
    let (_server, root, eve) = start().await;
    root.batch_execute("CREATE ROLE ben").await.unwrap();
    let prepare =
        |gid: &str| format!("BEGIN; INSERT INTO note VALUES (1); PREPARE TRANSACTION '{gid}'");
    for gid in ["a", "b", "c"] {
        eve.batch_execute(&prepare(gid)).await.unwrap();
    }
    root.batch_execute(&prepare("of_root")).await.unwrap();
    let owners = "SELECT string_agg(gid || ' ' || owner, ', ' ORDER BY gid) FROM pg_prepared_xacts";
    let shown: String = root.query_one(owners, &[]).await.unwrap().get(0);
    assert_eq!(shown, "a eve, b eve, c eve, of_root bennu");
    for end in ["COMMIT PREPARED 'of_root'", "ROLLBACK PREPARED 'of_root'"] {
        assert_eq!(is_allowed(&eve, end).await, Ok(false), "{end}");
    }
    root.batch_execute("SET ROLE ben").await.unwrap();
    assert_eq!(is_allowed(&root, "COMMIT PREPARED 'a'").await, Ok(false));
    root.batch_execute("RESET ROLE").await.unwrap();
    for (client, end) in [
        (&eve, "COMMIT PREPARED 'a'"),
        (&eve, "ROLLBACK PREPARED 'b'"),
        (&root, "COMMIT PREPARED 'c'"),
        (&root, "ROLLBACK PREPARED 'of_root'"),
    ] {
        assert_eq!(is_allowed(client, end).await, Ok(true), "{end}");
    }
}
