//! Stored SQL texts that cannot be parsed: they fail where they are used, and nothing else does.
//! A catalog of another version is refused as a whole.
//!
//! The records are derived from present ones, with changed texts.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::sync::Arc;

use sql::catalog::domain::{DOMAINS_PREFIX, DomainRecord};
use sql::catalog::function::{FUNCTIONS_PREFIX, FunctionRecord};
use sql::catalog::record::{
    CATALOG_TABLE, INITIALIZED_KEY, IndexRecord, TABLES_PREFIX, TableRecord, VIEWS_PREFIX,
    ViewRecord, decode, encode,
};
use sql::{Engine, EngineOptions};
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
    let mut record: TableRecord = decode(bytes).unwrap();
    for column in &mut record.columns {
        column.default.iter_mut().chain(&mut column.generated).for_each(change);
    }
    record.checks.iter_mut().map(|check| &mut check.predicate).for_each(change);
    record.indexes.iter_mut().flat_map(IndexRecord::texts_mut).for_each(change);
    encode(&record)
}

fn domain(bytes: &[u8], change: Change<'_>) -> Vec<u8> {
    let mut record: DomainRecord = decode(bytes).unwrap();
    record.default.iter_mut().for_each(change);
    record.checks.iter_mut().map(|check| &mut check.predicate).for_each(change);
    encode(&record)
}

fn view(bytes: &[u8], change: Change<'_>) -> Vec<u8> {
    let mut record: ViewRecord = decode(bytes).unwrap();
    change(&mut record.text);
    record.columns.iter_mut().flat_map(|column| &mut column.default).for_each(change);
    encode(&record)
}

fn function(bytes: &[u8], change: Change<'_>) -> Vec<u8> {
    let mut record: FunctionRecord = decode(bytes).unwrap();
    change(&mut record.body);
    record.parameters.iter_mut().flat_map(|one| &mut one.default).for_each(change);
    encode(&record)
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
fn unreadable_catalog_text_fails_only_when_used() {
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

#[test]
fn other_catalog_version_is_rejected() {
    let server = Server::start(EngineOptions::default);
    let store = Arc::clone(server.engine().store());
    let number = |version: u32| version.to_be_bytes().to_vec();
    for (value, version) in [(Vec::new(), "1"), (number(2), "2"), (number(4), "4")] {
        let transaction = store.begin(TransactionOptions::default());
        transaction.begin_statement();
        let row = Mutation::new(INITIALIZED_KEY.to_vec()).put(0, Vec::new(), value);
        transaction.mutate(CATALOG_TABLE, vec![row]).unwrap();
        transaction.commit().unwrap().durable.wait().unwrap();
        let refused = Engine::open(Arc::clone(&store), EngineOptions::default()).err().unwrap();
        assert_eq!(refused.sqlstate, "0A000");
        assert!(refused.message.contains(&format!("version {version}, ")), "{}", refused.message);
    }
}
