//! Fault injection: crashes during a change of SALT_BUCKETS, after each number of disk operations.
//!
//! Afterwards the table, or the index, must have either number of buckets, and all of its rows and
//! their history, and nothing of the other form may remain.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::sync::Arc;

use sql::engine::Engine;
use store::env::fault::FaultEnv;

use crate::crashes::{after_each_operation, open, run};

/// Rows in memstores, and in files; a table without a primary key.
const FILL: [&str; 8] = [
    "CREATE TABLE t (id int PRIMARY KEY, v int, g.w int) WITH (salt_buckets = 2, versions = 5)",
    "CREATE INDEX t_v ON t (v)",
    "INSERT INTO t SELECT n, n, n FROM generate_series(1, 20) AS n",
    "FLUSH t",
    "UPDATE t SET v = v + 100 WHERE id <= 10",
    "DELETE FROM t WHERE id = 20",
    "CREATE TABLE log (line int) WITH (salt_buckets = 2)",
    "INSERT INTO log SELECT n FROM generate_series(1, 20) AS n",
];

/// Checks table, index and history, and returns the number of buckets.
fn check(engine: &Arc<Engine>, of: &str) -> usize {
    let ask = |sql: &str| run(engine, sql).unwrap();
    assert_eq!(ask("SELECT count(*), sum(v), sum(w) FROM t"), ["19|1190|190"]);
    assert_eq!(ask("SELECT id FROM t WHERE v = 103"), ["3"]);
    assert_eq!(ask("SELECT count(*) FROM t WHERE v > 100"), ["10"]);
    let versions = "SELECT count(*) FROM t FOR SYSTEM_TIME ALL WHERE id = 3";
    assert_eq!(ask(versions), ["2"]);
    ask("INSERT INTO log VALUES (21)");
    assert_eq!(ask("SELECT count(*), sum(line) FROM log"), ["21|231"]);
    // The catalog, two tables and an index: the start removes all other store tables.
    assert_eq!(engine.store().tables().len(), 4);
    let regions = ask(&format!("SELECT count(*) FROM bennu.regions WHERE table_name = '{of}'"));
    let buckets = format!(
        "SELECT substring(reloptions::text, 'salt_buckets=([0-9]+)') FROM pg_class \
         WHERE relname = '{of}'"
    );
    let buckets = ask(&buckets)[0].parse().unwrap_or(0);
    assert_eq!(regions[0].parse::<usize>().unwrap(), buckets.max(1));
    buckets
}

fn crash(statement: &str, (of, expected): (&str, [usize; 2])) {
    let mut seen = [false, false];
    after_each_operation(&FILL, statement, &mut |engine, done| {
        let buckets = check(engine, of);
        let is_changed = buckets == expected[1];
        assert!(is_changed || buckets == expected[0], "{buckets}");
        assert!(is_changed || !done, "acknowledged, and lost");
        seen[usize::from(is_changed)] = true;
    });
    assert_eq!(seen, [true, true]);
}

#[test]
fn change_of_salt_is_atomic_under_crash() {
    crash("ALTER TABLE t SET (salt_buckets = 3)", ("t", [2, 3]));
    crash("ALTER TABLE t SET (salt_buckets = 0)", ("t", [2, 0]));
    crash("ALTER TABLE log SET (salt_buckets = 1)", ("log", [2, 1]));
}

#[test]
fn change_of_salt_requires_disk_space() {
    let env = FaultEnv::new(1);
    let engine = open(&env).unwrap();
    FILL.iter().for_each(|sql| drop(run(&engine, sql).unwrap()));
    run(&engine, "INSERT INTO t SELECT n, n, n FROM generate_series(21, 20000) AS n").unwrap();
    for (statement, index) in [
        ("ALTER TABLE t SET (salt_buckets = 3)", false),
        ("ALTER INDEX t_v SET (salt_buckets = 3)", true),
    ] {
        env.leave_room(200 << 10);
        let error = run(&engine, statement).unwrap_err();
        assert_eq!(error.sqlstate, "53100", "{error}");
        assert!(error.message.contains("MiB"), "{error}");
        env.leave_room(1 << 30);
        assert_eq!(run(&engine, "SELECT count(*) FROM t").unwrap(), ["19999"]);
        run(&engine, statement).unwrap();
        let of = if index { "t_v" } else { "t" };
        let regions = format!("SELECT count(*) FROM bennu.regions WHERE table_name = '{of}'");
        assert_eq!(run(&engine, &regions).unwrap(), ["3"]);
    }
    assert_eq!(run(&engine, "SELECT count(*) FROM t").unwrap(), ["19999"]);
}
