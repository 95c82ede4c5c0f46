//! Durability of definitions: after a restart exactly the committed ones exist.

use sql::EngineOptions;

use crate::server::Server;

#[test]
fn hidden_keys_continue_after_restart() {
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE TABLE t (a int); INSERT INTO t VALUES (1), (1)");
    for _ in 0..3 {
        server.restart();
        assert_eq!(server.run("a", "INSERT INTO t VALUES (1), (2)"), "ok\n");
    }
    assert_eq!(server.run("a", "SELECT a, count(*) FROM t GROUP BY a ORDER BY a"), "1|5\n2|3\n");
    server.run("a", "DROP TABLE t; CREATE TABLE t (a int)");
    server.restart();
    assert_eq!(server.run("a", "INSERT INTO t VALUES (7) RETURNING a"), "7\n");
}

#[test]
fn views_survive_restart() {
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'one')");
    server.run("a", "CREATE VIEW v (x) AS SELECT * FROM t; CREATE VIEW w AS SELECT x FROM v");
    server.run("a", "CREATE VIEW gone AS SELECT 1; DROP VIEW gone");
    server.run("a", "BEGIN; CREATE VIEW never AS SELECT 1; ROLLBACK");
    server.restart();
    assert_eq!(server.run("a", "SELECT * FROM v"), "1|one\n");
    assert_eq!(server.run("a", "SELECT view_name FROM bennu.views ORDER BY 1"), "v\nw\n");
    let refused = server.run("a", "DROP TABLE t");
    assert!(refused.contains("2BP01"), "{refused}");
    assert!(refused.contains("view v depends on table t\nview w depends on view v"), "{refused}");
}

#[test]
fn view_nesting_is_limited() {
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE VIEW v0 AS SELECT 1 AS a");
    let mut made = 0;
    let refused = loop {
        let answer =
            server.run("a", &format!("CREATE VIEW v{} AS SELECT a FROM v{made}", made + 1));
        if answer.contains("54001") {
            break answer;
        }
        made += 1;
        assert!(made < 100, "{answer}");
    };
    assert!(refused.contains("views are nested more than 32 deep"), "{refused}");
    assert_eq!(server.run("a", &format!("SELECT a FROM v{}", made - 1)), "1\n");
    assert!(server.run("a", "CREATE OR REPLACE VIEW v0 AS SELECT a FROM v3").contains("42P17"));
}

#[test]
fn sequences_continue_after_restart() {
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE SEQUENCE s; CREATE SEQUENCE small MAXVALUE 3; CREATE SEQUENCE gone");
    server.run("a", "SELECT nextval('gone'); DROP SEQUENCE gone; CREATE SEQUENCE gone");
    assert_eq!(server.run("a", "SELECT nextval('s'), nextval('small')"), "1|1\n");
    assert_eq!(server.run("a", "SELECT setval('gone', 7)"), "7\n");
    server.restart();
    // Reserved values are skipped, except near the end.
    assert_eq!(server.run("a", "SELECT nextval('s'), nextval('small')"), "33|2\n");
    assert_eq!(server.run("a", "SELECT nextval('gone')"), "8\n");
    // A clean shutdown returns them.
    server.engine().return_reserved().unwrap();
    server.restart();
    assert_eq!(server.run("a", "SELECT nextval('s'), nextval('small')"), "34|3\n");
    assert!(server.run("b", "SELECT lastval()").contains("55000"));
    assert!(server.run("b", "SELECT currval('s')").contains("55000"));
}

#[test]
fn sequence_is_shared_but_currval_is_per_session() {
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE TABLE t (id serial PRIMARY KEY, v text)");
    server.run("a", "BEGIN; INSERT INTO t (v) VALUES ('a')");
    assert_eq!(server.run("b", "INSERT INTO t (v) VALUES ('b') RETURNING id"), "2\n");
    assert_eq!(server.run("a", "SELECT lastval(), currval('t_id_seq')"), "1|1\n");
    assert_eq!(server.run("b", "SELECT lastval(), currval('t_id_seq')"), "2|2\n");
    server.run("a", "ROLLBACK");
    assert_eq!(server.run("a", "INSERT INTO t (v) VALUES ('a') RETURNING id"), "3\n");
}

#[test]
fn added_columns_survive_restart() {
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'one')");
    server.run("a", "ALTER TABLE t ADD COLUMN c numeric DEFAULT 1.50");
    server.run("a", "ALTER TABLE t ALTER COLUMN c SET DEFAULT 2; INSERT INTO t VALUES (2)");
    server.restart();
    assert_eq!(server.run("a", "SELECT * FROM t ORDER BY a"), "1|one|1.50\n2|NULL|2\n");
}

#[test]
fn writer_blocked_by_add_column_writes_new_column() {
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)");
    server.run("a", "BEGIN; ALTER TABLE t ADD COLUMN b int DEFAULT 5; UPDATE t SET b = 6");
    let mut writer = server.session();
    let waiting =
        std::thread::spawn(move || crate::server::answer(&mut writer, "UPDATE t SET a = a + 1"));
    // It waits for the table's lock, or starts later: the result must be the same.
    server.run("a", "COMMIT");
    assert_eq!(waiting.join().unwrap(), "ok\n");
    assert_eq!(server.run("a", "SELECT * FROM t"), "2|6\n");
}

#[test]
fn materialized_views_and_keys_survive_restart() {
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'one'), (2, 'two')");
    server.run("a", "ALTER TABLE t ADD PRIMARY KEY (a)");
    server.run("a", "CREATE TABLE u (a int REFERENCES t DEFERRABLE INITIALLY DEFERRED)");
    server
        .run("a", "CREATE TABLE n (a int UNIQUE NULLS NOT DISTINCT); INSERT INTO n VALUES (NULL)");
    server.run("a", "CREATE MATERIALIZED VIEW m AS SELECT * FROM t; INSERT INTO t VALUES (3)");
    server.run("a", "CREATE UNIQUE INDEX ON m (a)");
    server.run("a", "CREATE MATERIALIZED VIEW empty AS SELECT a FROM m WITH NO DATA");
    server.restart();
    assert_eq!(server.run("a", "SELECT * FROM m ORDER BY a"), "1|one\n2|two\n");
    assert!(server.run("a", "SELECT * FROM empty").contains("55000"));
    assert!(server.run("a", "INSERT INTO t VALUES (1)").contains("23505"));
    assert!(server.run("a", "INSERT INTO n VALUES (NULL)").contains("23505"));
    server.run("a", "BEGIN");
    assert_eq!(server.run("a", "INSERT INTO u VALUES (9)"), "ok\n");
    assert!(server.run("a", "COMMIT").contains("23503"));
    assert_eq!(server.run("a", "REFRESH MATERIALIZED VIEW CONCURRENTLY m"), "ok\n");
    assert_eq!(server.run("a", "REFRESH MATERIALIZED VIEW empty"), "ok\n");
    server.restart();
    assert_eq!(server.run("a", "SELECT count(*) FROM empty"), "3\n");
    assert!(server.run("a", "DROP TABLE t").contains("materialized view empty depends on"));
}

#[test]
fn concurrent_refresh_does_not_block_readers() {
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE TABLE t (a int); INSERT INTO t VALUES (1)");
    server.run("a", "CREATE MATERIALIZED VIEW m AS SELECT * FROM t; INSERT INTO t VALUES (2)");
    server.run("a", "CREATE UNIQUE INDEX ON m (a)");
    server.run("a", "BEGIN; REFRESH MATERIALIZED VIEW CONCURRENTLY m");
    assert_eq!(server.run("b", "SELECT count(*) FROM m"), "1\n");
    assert_eq!(server.run("a", "SELECT count(*) FROM m"), "2\n");
    server.run("a", "COMMIT");
    assert_eq!(server.run("b", "SELECT count(*) FROM m"), "2\n");
}

#[test]
fn deferred_foreign_key_sees_concurrent_changes() {
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE TABLE p (id int PRIMARY KEY); INSERT INTO p VALUES (1), (2)");
    server.run("a", "CREATE TABLE c (p int REFERENCES p DEFERRABLE INITIALLY DEFERRED)");
    // Another transaction inserts the key.
    server.run("a", "BEGIN; INSERT INTO c VALUES (3)");
    let mut other = server.session();
    let waiting =
        std::thread::spawn(move || crate::server::answer(&mut other, "INSERT INTO p VALUES (3)"));
    assert_eq!(waiting.join().unwrap(), "ok\n");
    assert_eq!(server.run("a", "COMMIT"), "ok\n");
    // The key is deleted while another transaction references it.
    server.run("a", "BEGIN; DELETE FROM c; INSERT INTO c VALUES (1)");
    assert_eq!(server.run("a", "COMMIT"), "ok\n");
    server.run("a", "BEGIN");
    assert_eq!(server.run("a", "DELETE FROM p WHERE id = 1"), "ok\n");
    assert!(server.run("a", "COMMIT").contains("23503"));
    assert_eq!(server.run("b", "SELECT count(*) FROM p"), "3\n");
}

#[test]
fn temporary_tables_are_dropped_with_session_and_server() {
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE TEMP TABLE x (a serial PRIMARY KEY); INSERT INTO x DEFAULT VALUES");
    server.run("b", "CREATE TEMP TABLE x (b text); CREATE TEMP VIEW y AS SELECT b FROM x");
    let there = "SELECT count(*) FROM pg_class WHERE relname IN ('x', 'y')";
    assert_eq!(server.run("c", there), "3\n");
    assert!(server.run("c", "SELECT * FROM x").contains("42P01"));
    server.end("a");
    assert_eq!(server.run("c", there), "2\n");
    server.restart();
    assert_eq!(server.run("c", there), "0\n");
    assert_eq!(
        server.run("c", "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'pg_temp%'"),
        "0\n"
    );
}

#[test]
fn show_create_table_restores_definitions() {
    let mut server = Server::start(EngineOptions::default);
    let tables = [
        "parent",
        "child",
        "reading",
        "\"Odd name\"",
        "keyless",
        "counter",
        "twice",
        "later",
        "left_over",
    ];
    let answer = server.run("a", SHOWN_TABLES);
    assert!(!answer.contains("error"), "{answer}");
    for table in tables {
        let text = server.run("a", &format!("SHOW CREATE TABLE {table}"));
        let (name, text) = text.trim_end().split_once('|').unwrap();
        assert_eq!(name, table);
        // Names are visible in the other schema, so that the text has no schemas either.
        server.run("b", "CREATE SCHEMA IF NOT EXISTS other; SET search_path = other");
        let answer = server.run("b", text);
        assert!(answer.lines().all(|line| line == "ok"), "{text}\n{answer}");
        let again = server.run("b", &format!("SHOW CREATE TABLE {table}"));
        assert_eq!(again.trim_end().split_once('|').unwrap().1, text);
    }
    let reading = server.run("a", "SHOW CREATE TABLE reading");
    for part in [
        "raw.payload bytea",
        "PRIMARY KEY (device, at DESC)",
        "salt_buckets='4'",
        "\"0.versions\"='3'",
        "\"raw.ttl\"='86400 seconds'",
        "CREATE INDEX reading_at ON reading USING btree (at DESC) WITH (salt_buckets='2')",
        "ATTACH COPROCESSOR audit AS log",
    ] {
        assert!(reading.contains(part), "{part}: {reading}");
    }
    server.run("a", "CREATE VIEW v AS SELECT 1 AS a");
    assert!(server.run("a", "SHOW CREATE TABLE v").contains("42809"));
    assert!(server.run("a", "SHOW CREATE TABLE absent").contains("42P01"));
    assert!(server.run("a", "SHOW CREATE TABLE other.child").contains("FOREIGN KEY"));
}

const SHOWN_TABLES: &str = "\
    CREATE TABLE parent (a int, b text COLLATE \"C\", PRIMARY KEY (a, b));
    CREATE TABLE child (id serial PRIMARY KEY, a int DEFAULT 1 + 2, b text NOT NULL DEFAULT 'it''s',
        n numeric(10, 2) CHECK (n > 0), double int GENERATED ALWAYS AS (a * 2) STORED,
        tags text[] DEFAULT '{}', CONSTRAINT one UNIQUE NULLS NOT DISTINCT (a, b),
        FOREIGN KEY (a, b) REFERENCES parent ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED);
    CREATE UNIQUE INDEX child_lower ON child (lower(b)) WHERE a > 0;
    ALTER TABLE child ADD CONSTRAINT later CHECK (a > 5) NOT VALID;
    CREATE TABLE seen (id bigint PRIMARY KEY);
    CREATE TABLE reading (device int, at timestamp, raw.payload bytea, raw.note varchar(20), celsius real,
        PRIMARY KEY (device, at DESC)) WITH (versions = 3, ttl = '1 day', salt_buckets = 4, compression = 'zstd');
    CREATE INDEX reading_at ON reading (at DESC) WITH (salt_buckets = 2);
    ALTER TABLE reading ALTER FAMILY raw SET (versions = 7);
    ALTER TABLE reading ATTACH COPROCESSOR audit AS log PRIORITY 20 WITH (table = 'reading_log');
    CREATE TABLE \"Odd name\" (\"select\" int PRIMARY KEY, \"F\".\"a b\" text) WITH (storage = cell);
    ALTER TABLE \"Odd name\" ADD FAMILY unused (ttl = 10);
    CREATE TABLE keyless (a int GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY -2 MAXVALUE 10), b int);
    CREATE SEQUENCE own AS int START 3 CYCLE MAXVALUE 30 CACHE 2;
    CREATE UNLOGGED TABLE counter (id bigint PRIMARY KEY DEFAULT nextval('own'), n bigint);
    ALTER SEQUENCE own OWNED BY counter.id;
    CREATE TABLE twice (id int PRIMARY KEY, x int, FAMILY f (x int, a int), FAMILY g (x text DEFAULT 'g'));
    CREATE TABLE later (id int PRIMARY KEY, f.x int);
    ALTER TABLE later ADD FAMILY g ();
    ALTER TABLE later ADD g.x int;
    CREATE TABLE left_over (id int PRIMARY KEY, g.x int, f.x int);
    ALTER TABLE left_over DROP FAMILY f CASCADE";
