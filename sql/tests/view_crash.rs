//! Fault injection: crashes during statements about maintained views, and during writes to their
//! tables.
//!
//! The machine crashes after each number of disk operations. The view must equal its query
//! afterwards, and be maintained if it exists.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::path::Path;
use std::sync::Arc;

use sql::engine::Engine;
use sql::session::{Session, SessionOptions};
use sql::{EngineOptions, Error};
use store::env::fault::{FaultEnv, Unsynced};
use store::{Options, Store};

use crate::server::rows;

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, g int, v int); \
                     INSERT INTO t SELECT n, n % 3, n FROM generate_series(1, 20) AS n";
const VIEW: &str = "CREATE MATERIALIZED VIEW m WITH (maintained = true) AS \
                    SELECT g, count(*), sum(v), min(v), max(v), count(DISTINCT v % 2) AS d \
                    FROM t GROUP BY g";
const QUERY: &str = "SELECT g, count(*), sum(v), min(v), max(v), count(DISTINCT v % 2) FROM t GROUP BY g ORDER BY g";

fn open(env: &FaultEnv) -> Result<Arc<Engine>, Error> {
    let options = Options { env: Arc::new(env.clone()), ..Options::default() };
    Engine::open(Store::open(Path::new("/data"), options)?, EngineOptions::default())
}

fn session(engine: &Arc<Engine>) -> Session {
    Session::open(engine, SessionOptions { user: "ann".to_owned() })
}

fn run(session: &mut Session, sql: &str) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    rows(session, sql, &mut |row| found.push(row))?;
    Ok(found)
}

fn query(session: &mut Session, sql: &str) -> Vec<String> {
    run(session, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

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
    for step in 0.. {
        let env = FaultEnv::new(step);
        let engine = open(&env).unwrap();
        let mut session = session(&engine);
        query(&mut session, TABLE);
        query(&mut session, before);
        env.fail_after(step);
        let done = run(&mut session, statement).is_ok();
        let written = run(&mut session, "INSERT INTO t VALUES (50, 5, 5)").is_ok();
        drop(session);
        drop(engine);
        for unsynced in [Unsynced::Lost, Unsynced::Torn, Unsynced::Kept] {
            let engine = open(&env.after_crash(unsynced)).unwrap();
            let mut session = self::session(&engine);
            let found = query(&mut session, "SELECT count(*) FROM t WHERE id = 50");
            assert!(!written || found == ["1"], "step {step}: an acknowledged row is lost");
            let exists = check(&mut session);
            assert!(!done || exists == exists_after, "step {step}: it was acknowledged");
        }
        if done && written {
            break;
        }
        assert!(step < 500, "there is no end to it");
    }
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
