//! Migration of stored SQL texts: data directories of older versions, whose texts use words as
//! names that are keywords now, and operators that are tokenised differently.
//!
//! The records are derived from present ones: objects are created with quoted names, and their
//! records are rewritten without quotes, as an older version stored them.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::sync::Arc;

use sql::EngineOptions;
use sql::catalog::domain::DOMAINS_PREFIX;
use sql::catalog::function::{FUNCTIONS_PREFIX, decode_function, encode_function};
use sql::catalog::record::{CATALOG_TABLE, IndexRecord, TABLES_PREFIX, VIEWS_PREFIX};
use sql::catalog::record_extension::{
    decode_domain, decode_table, decode_view, encode_domain, encode_table, encode_view,
};
use store::transaction::TransactionOptions;
use store::{CellBatch, Mutation, Scan, Store};
use types::keycode::prefix_end;

use crate::server::Server;

/// Change of the texts in a record.
type Change<'a> = &'a dyn Fn(&mut String);

/// Callback that returns the bytes of a record with changed texts.
type Written = fn(&[u8], Change<'_>) -> Vec<u8>;

/// Rewrites all records with changed texts.
fn rewrite(store: &Arc<Store>, change: Change<'_>) {
    let transaction = store.begin(TransactionOptions::default());
    transaction.begin_statement();
    let kinds: [(&[u8], Written); 4] = [
        (TABLES_PREFIX, table),
        (DOMAINS_PREFIX, domain),
        (VIEWS_PREFIX, view),
        (FUNCTIONS_PREFIX, function),
    ];
    for (prefix, written) in kinds {
        let range = Scan::range(prefix.to_vec(), prefix_end(prefix));
        let mut scanner = transaction.scan(CATALOG_TABLE, range).unwrap();
        let (mut batch, mut changed) = (CellBatch::new(), Vec::new());
        while scanner.next_batch(1_000, &mut batch).unwrap() {
            for row in batch.rows() {
                let bytes = written(row.value(0, b"").unwrap(), change);
                changed.push(Mutation::new(row.key().to_vec()).put(0, Vec::new(), bytes));
            }
        }
        transaction.mutate(CATALOG_TABLE, changed).unwrap();
    }
    transaction.commit().unwrap().durable.wait().unwrap();
}

fn table(bytes: &[u8], change: Change<'_>) -> Vec<u8> {
    let mut record = decode_table(bytes).unwrap();
    for column in &mut record.columns {
        column.default.iter_mut().chain(&mut column.generated).for_each(change);
    }
    record.checks.iter_mut().map(|check| &mut check.predicate).for_each(change);
    record.indexes.iter_mut().flat_map(IndexRecord::texts_mut).for_each(change);
    encode_table(&record)
}

fn domain(bytes: &[u8], change: Change<'_>) -> Vec<u8> {
    let mut record = decode_domain(bytes).unwrap();
    record.default.iter_mut().for_each(change);
    record.checks.iter_mut().map(|check| &mut check.predicate).for_each(change);
    encode_domain(&record)
}

fn view(bytes: &[u8], change: Change<'_>) -> Vec<u8> {
    let mut record = decode_view(bytes).unwrap();
    change(&mut record.text);
    record.columns.iter_mut().flat_map(|column| &mut column.default.0).for_each(change);
    encode_view(&record)
}

fn function(bytes: &[u8], change: Change<'_>) -> Vec<u8> {
    let mut record = decode_function(bytes).unwrap();
    change(&mut record.body);
    record.parameters.iter_mut().flat_map(|one| &mut one.default).for_each(change);
    encode_function(&record)
}

/// Objects of every kind with a stored text, with keywords as names.
const OBJECTS: &[&str] = &[
    "CREATE FUNCTION \"extract\"(int) RETURNS int LANGUAGE sql AS 'SELECT $1 + 1'",
    "CREATE DOMAIN d AS int DEFAULT \"extract\"(4) CHECK (\"extract\"(VALUE) > 1)",
    "CREATE TABLE t (\"binary\" int UNIQUE CHECK (\"binary\" > 0), \
     \"verbose\" text DEFAULT 'x', \
     made int GENERATED ALWAYS AS (\"binary\" * 2) STORED, \
     given int DEFAULT \"extract\"(6), of_domain d, \
     CHECK (\"binary\" % -7 < 50), CHECK (\"binary\" < 100 OR lower(\"verbose\") = 'much'))",
    "CREATE INDEX by_text ON t (lower(\"verbose\"), (\"binary\" + 1)) WHERE \"binary\" <> 9",
    "CREATE VIEW v AS SELECT \"freeze\".\"binary\" AS \"freeze\", \"verbose\" \
     FROM t AS \"freeze\" WHERE \"binary\" IS NOT NULL ORDER BY \"binary\"",
    "ALTER VIEW v ALTER \"freeze\" SET DEFAULT \"extract\"(7)",
    "CREATE MATERIALIZED VIEW m AS SELECT sum(\"binary\") AS \"sum\" FROM t",
    "CREATE FUNCTION f(\"collation\" int, b int DEFAULT \"extract\"(0)) RETURNS int LANGUAGE sql \
     AS 'UPDATE t SET \"verbose\" = ''much'' WHERE \"binary\" = \"collation\"; \
     SELECT max(\"binary\") + b FROM t AS \"natural\"'",
];

/// Returns the output of statements that use all objects.
fn answers(server: &mut Server) -> String {
    [
        "INSERT INTO t (\"binary\") VALUES (1), (2) RETURNING made, given, of_domain",
        "INSERT INTO t (\"binary\") VALUES (0)",
        "INSERT INTO t (\"binary\") VALUES (1)",
        "INSERT INTO t (\"binary\") VALUES (100)",
        "INSERT INTO t (of_domain) VALUES (0)",
        "SELECT f(2)",
        "SELECT \"binary\" FROM t WHERE lower(\"verbose\") = 'much' AND \"binary\" <> 9",
        "SELECT * FROM v",
        "INSERT INTO v (\"verbose\") VALUES ('y') RETURNING \"freeze\"",
        "REFRESH MATERIALIZED VIEW m",
        "SELECT \"sum\" FROM m",
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint ORDER BY conname",
        "SELECT pg_get_indexdef('by_text'::regclass), pg_get_viewdef('v'::regclass)",
        "ALTER TABLE t RENAME \"verbose\" TO \"concurrently\"",
        "SELECT pg_get_indexdef('by_text'::regclass), pg_get_viewdef('v'::regclass)",
        "DELETE FROM t",
        "ALTER TABLE t RENAME \"concurrently\" TO \"verbose\"",
    ]
    .map(|sql| server.run("a", sql))
    .concat()
}

#[test]
fn words_that_were_names_are_names_in_what_is_stored() {
    let mut server = Server::start(EngineOptions::default);
    for sql in OBJECTS {
        assert_eq!(server.run("a", sql), "ok\n", "{sql}");
    }
    let today = answers(&mut server);
    assert!(today.contains("2|7|5\n4|7|5\n") && today.contains("23514"), "{today}");
    rewrite(server.engine().store(), &|text| {
        assert!(text.contains('"') || !text.contains("binary"), "{text}");
        *text = text.replace('"', "").replace("% -", "%-");
    });
    server.restart();
    assert_eq!(answers(&mut server), today);
    // Texts of statements are parsed strictly.
    let refused = server.run("a", "SELECT binary FROM t");
    assert!(refused.contains("42601: syntax error at or near \"binary\""), "{refused}");
    // Altering an object stores its text with quotes, so the next start migrates fewer texts.
    server.restart();
    assert_eq!(answers(&mut server), today);
}

/// Objects with texts; those with this number will be damaged.
const DAMAGED: &[&str] = &[
    "CREATE DOMAIN d AS int CHECK (VALUE <> 7777); \
     CREATE TABLE of_domain (a d); INSERT INTO of_domain VALUES (1)",
    "CREATE TABLE checked (a int CONSTRAINT many CHECK (a <> 7777) \
     CONSTRAINT more CHECK (a < 7777)); INSERT INTO checked VALUES (1)",
    "CREATE TABLE given (a int DEFAULT 7777, b int)",
    "CREATE TABLE made (a int, b int GENERATED ALWAYS AS (a + 7777) STORED); \
     INSERT INTO made VALUES (1)",
    "CREATE TABLE indexed (a int); INSERT INTO indexed VALUES (1); \
     CREATE INDEX by_more ON indexed ((a + 7777)); CREATE INDEX most ON indexed (a) WHERE a <> 7777",
    "CREATE VIEW v AS SELECT a FROM checked WHERE a <> 7777; CREATE VIEW w AS SELECT a FROM v",
    "CREATE MATERIALIZED VIEW m AS SELECT a FROM checked WHERE a <> 7777",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 7777'",
];

#[test]
fn what_cannot_be_read_fails_where_it_is_used() {
    let mut server = Server::start(EngineOptions::default);
    for sql in DAMAGED {
        assert_eq!(server.run("a", sql), "ok\n", "{sql}");
    }
    rewrite(server.engine().store(), &|text| *text = text.replace("7777", "7777 7777"));
    server.restart();
    for (table, rows) in [
        ("of_domain", "1\n"),
        ("checked", "1\n"),
        ("given", "ok\n"),
        ("made", "1|7778\n"),
        ("indexed WHERE a = 1 AND a <> 7777 AND a + 7777 > 0", "1\n"),
        ("m", "1\n"),
    ] {
        assert_eq!(server.run("a", &format!("SELECT * FROM {table}")), rows, "{table}");
    }
    let damaged = "error XX001: ";
    for (sql, message) in [
        ("INSERT INTO of_domain VALUES (2)", "\"VALUE <> 7777 7777\" cannot be read: syntax error"),
        ("UPDATE checked SET a = 2", "\"a <> 7777 7777\" cannot be read: syntax error"),
        ("INSERT INTO given (b) VALUES (1)", "\"7777 7777\" cannot be read: syntax error"),
        ("INSERT INTO made VALUES (2)", "\"a + 7777 7777\" cannot be read: syntax error"),
        ("DELETE FROM indexed", "cannot be read: syntax error"),
        ("SELECT * FROM w", "the query of view \"v\" cannot be read: syntax error"),
        ("REFRESH MATERIALIZED VIEW m", "the query of view \"m\" cannot be read: syntax error"),
        ("SELECT f()", "the body of function \"f\" cannot be read: syntax error"),
    ] {
        let refused = server.run("a", sql);
        assert!(refused.starts_with(damaged) && refused.contains(message), "{sql}: {refused}");
    }
    for sql in [
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint",
        "SELECT pg_get_indexdef(indexrelid) FROM pg_index",
        "SELECT * FROM pg_views WHERE schemaname = 'public'",
        "SELECT * FROM pg_matviews",
        "SELECT * FROM information_schema.columns WHERE table_schema = 'public'",
        "SELECT * FROM information_schema.views WHERE table_schema = 'public'",
        "SELECT * FROM information_schema.check_constraints",
        "SELECT pg_get_functiondef('f'::regproc)",
        "SELECT prosrc FROM pg_proc WHERE proname = 'f'",
    ] {
        let shown = server.run("a", sql);
        assert!(!shown.contains("error"), "{sql}: {shown}");
    }
    for sql in [
        "INSERT INTO given VALUES (1, 1)",
        "ALTER DOMAIN d DROP CONSTRAINT d_check; INSERT INTO of_domain VALUES (7777)",
        "ALTER TABLE checked DROP CONSTRAINT many; ALTER TABLE checked DROP CONSTRAINT more; \
         UPDATE checked SET a = 7777",
        "ALTER TABLE given ALTER a DROP DEFAULT; INSERT INTO given (b) VALUES (1)",
        "ALTER TABLE made DROP COLUMN b; INSERT INTO made VALUES (2)",
        "DROP INDEX by_more, most; DELETE FROM indexed",
        "CREATE OR REPLACE VIEW v AS SELECT a FROM checked",
        "DROP MATERIALIZED VIEW m",
        "DROP FUNCTION f()",
    ] {
        assert_eq!(server.run("a", sql), "ok\n", "{sql}");
    }
    server.restart();
    assert_eq!(server.run("a", "SELECT * FROM w"), "7777\n");
    assert_eq!(server.run("a", "INSERT INTO given (b) VALUES (1) RETURNING a"), "NULL\n");
}
