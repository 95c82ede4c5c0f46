//! Fault injection: crashes during statements about maintained views, and during writes to their
//! tables.
//!
//! The machine crashes after each number of disk operations. The view must equal its query
//! afterwards, and be maintained if it exists.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use sql::session::Session;

use crate::crashes::{after_each_operation_and_write, query, session};

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, g int, v int); \
                     INSERT INTO t SELECT n, n % 3, n FROM generate_series(1, 20) AS n";
const VIEW: &str = "CREATE MATERIALIZED VIEW m WITH (maintained = true) AS \
                    SELECT g, count(*), sum(v), min(v), max(v), count(DISTINCT v % 2) AS d \
                    FROM t GROUP BY g";
const QUERY: &str = "SELECT g, count(*), sum(v), min(v), max(v), count(DISTINCT v % 2) FROM t GROUP BY g ORDER BY g";

/// Checks that the view equals its query, now and after further changes, if it exists. Returns
/// whether it does.
fn check(session: &mut Session) -> bool {
    query(session, "SET enable_maintained_views = off");
    if query(session, "SELECT count(*) FROM pg_matviews") == ["0"] {
        query(session, VIEW);
        check(session);
        return false;
    }
    assert_eq!(query(session, "SELECT * FROM m ORDER BY g"), query(session, QUERY));
    query(session, "DELETE FROM t WHERE id = 1; UPSERT INTO t VALUES (2, 7, 7), (100, 1, 5)");
    let rows = query(session, "SELECT * FROM m ORDER BY g");
    assert_eq!(rows, query(session, QUERY));
    assert!(!rows.is_empty());
    true
}

/// Crashes after each number of disk operations of a statement.
fn crash_at_every_step(before: &str, statement: &str, exists_after: bool) {
    after_each_operation_and_write(&[TABLE, before], statement, &mut |engine, done| {
        let exists = check(&mut session(engine));
        assert!(!done || exists == exists_after, "{statement} was acknowledged");
    });
}

#[test]
fn create_of_maintained_view_is_atomic_under_crash() {
    crash_at_every_step("SELECT 1", VIEW, true);
}

#[test]
fn drop_of_maintained_view_is_atomic_under_crash() {
    crash_at_every_step(VIEW, "DROP MATERIALIZED VIEW m", false);
}

#[test]
fn maintained_view_survives_crash_of_refresh() {
    crash_at_every_step(VIEW, "REFRESH MATERIALIZED VIEW m", true);
}

#[test]
fn maintained_view_survives_crash_of_truncate() {
    crash_at_every_step(VIEW, "TRUNCATE t", true);
}

#[test]
fn maintained_view_survives_crash_of_writes_and_flushes() {
    let writes =
        "UPDATE t SET g = g + 1 WHERE id < 10; FLUSH t; DELETE FROM t WHERE id = 20; FLUSH m";
    crash_at_every_step(VIEW, writes, true);
}
