//! Fault injection: crashes during TRUNCATE, after each number of disk operations.
//!
//! Afterwards the table must have all of its rows, or those that the same transaction inserted
//! after TRUNCATE; the index must agree, and nothing of the other state may remain.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::sync::Arc;

use sql::engine::Engine;

use crate::crashes::{after_each_operation, run};

const FILL: &str = "CREATE TABLE t (id serial PRIMARY KEY, v int UNIQUE); \
                    INSERT INTO t (v) SELECT n FROM generate_series(1, 20) AS n";
const TRUNCATE: &str = "BEGIN; TRUNCATE t RESTART IDENTITY; INSERT INTO t (v) VALUES (7); COMMIT";

/// Returns whether the table was truncated.
fn check(engine: &Arc<Engine>) -> bool {
    let emptied = match run(engine, "SELECT count(*) FROM t").unwrap()[0].as_str() {
        "1" => true,
        "20" => false,
        other => panic!("{other} rows"),
    };
    let of_seven = run(engine, "SELECT id FROM t WHERE v = 7").unwrap();
    assert_eq!(of_seven, [if emptied { "1" } else { "7" }]);
    // The catalog, the table, and its index: the start removes all other store tables.
    assert_eq!(engine.store().tables().len(), 3);
    let next = run(engine, "INSERT INTO t (v) VALUES (100) RETURNING id").unwrap();
    let next: i32 = next[0].parse().unwrap();
    assert!(next > if emptied { 1 } else { 20 }, "{next}");
    emptied
}

#[test]
fn truncate_is_atomic_under_crash() {
    let mut seen = [false, false];
    after_each_operation(&[FILL], TRUNCATE, &mut |engine, done| {
        let emptied = check(engine);
        assert!(emptied || !done, "acknowledged, and lost");
        seen[usize::from(emptied)] = true;
    });
    assert_eq!(seen, [true, true]);
}
