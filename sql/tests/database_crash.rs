//! Fault injection: crashes during CREATE DATABASE with a template and DROP DATABASE, after each
//! number of disk operations.
//!
//! Afterwards a database exists with all that it has, or not at all, and the template is unchanged.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::sync::Arc;

use sql::engine::Engine;

use crate::crashes::{after_each_operation, run};

const FILL: &str = "CREATE TABLE t (id serial PRIMARY KEY, v int UNIQUE); \
                    INSERT INTO t (v) SELECT n FROM generate_series(1, 20) AS n; \
                    CREATE TABLE l (id int PRIMARY KEY, v int) SALT_BUCKETS = 2; \
                    CREATE LOCAL INDEX ON l (v); INSERT INTO l VALUES (1, 5), (2, 6)";
const CREATE: &str = "CREATE DATABASE copy TEMPLATE bennu";
/// The catalog, two tables and two indexes.
const TABLES: usize = 5;

/// Checks the content of a database.
fn check_rows(engine: &Arc<Engine>) {
    assert_eq!(run(engine, "SELECT count(*), sum(v) FROM t").unwrap(), ["20|210"]);
    assert_eq!(run(engine, "SELECT id FROM t WHERE v = 7").unwrap(), ["7"]);
    assert_eq!(run(engine, "SELECT id FROM l WHERE v = 6").unwrap(), ["2"]);
    let next = run(engine, "INSERT INTO t (v) VALUES (100) RETURNING id").unwrap();
    assert!(next[0].parse::<i32>().unwrap() > 20, "{next:?}");
}

/// Checks the default database and its copy; returns whether there is one.
fn check(engine: &Arc<Engine>) -> bool {
    let named = run(engine, "SELECT count(*) FROM pg_database WHERE datname = 'copy'").unwrap();
    let is_there = named == ["1"];
    // The start removes all other store tables.
    let count = if is_there { 2 * TABLES } else { TABLES };
    assert_eq!(engine.store().tables().len(), count);
    if is_there {
        check_rows(&engine.open_database("copy").unwrap());
    }
    check_rows(engine);
    is_there
}

#[test]
fn copy_of_template_is_atomic_under_crash() {
    let mut seen = [false, false];
    after_each_operation(&[FILL], CREATE, &mut |engine, done| {
        let is_there = check(engine);
        assert!(is_there || !done, "acknowledged, and lost");
        seen[usize::from(is_there)] = true;
    });
    assert_eq!(seen, [true, true]);
}

#[test]
fn drop_of_database_is_atomic_under_crash() {
    let mut seen = [false, false];
    after_each_operation(&[FILL, CREATE], "DROP DATABASE copy", &mut |engine, done| {
        let is_there = check(engine);
        assert!(!is_there || !done, "acknowledged, and there again");
        seen[usize::from(is_there)] = true;
    });
    assert_eq!(seen, [true, true]);
}
