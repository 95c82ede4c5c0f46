//! Eventual indexes under crashes: after each number of disk operations of rounds, flushes and
//! compactions; after an opening without former versions; after commits whose rows the log does
//! not have.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::path::Path;
use std::sync::Arc;

use sql::EngineOptions;
use sql::engine::Engine;
use sql::session::{Session, SessionOptions};
use store::env::fault::{FaultEnv, Unsynced};
use store::{Options, Store};

use crate::crashes::{open, run};
use crate::index_checker::{check, settle};
use crate::server::rows;

const CREATE: &str = "CREATE TABLE t (id int PRIMARY KEY, a int, b text);
    INSERT INTO t SELECT n, n % 5, 'b' || n FROM generate_series(1, 30) AS n;
    CREATE INDEX t_a ON t (a) INCLUDE (b) CONSISTENCY = EVENTUAL;
    CREATE INDEX t_b ON t (b) WHERE a < 4 CONSISTENCY = EVENTUAL";

/// Step between the numbers of disk operations: about 100 are tried.
const OPERATIONS_STEP: usize = 7;

/// Statements; `None` is a round of the server.
const STEPS: [Option<&str>; 12] = [
    Some("UPDATE t SET a = a + 1 WHERE id < 10; DELETE FROM t WHERE id > 25"),
    Some("FLUSH t"),
    None,
    Some("UPDATE t SET a = a - 1, b = NULL WHERE id < 5"),
    None,
    Some("UPDATE t SET a = 7 WHERE id < 8; INSERT INTO t VALUES (100, 7, 'x')"),
    Some("FLUSH t"),
    Some("MAJOR COMPACT t"),
    Some("UPDATE t SET a = 8, b = 'y' WHERE id < 3; DELETE FROM t WHERE id = 4"),
    None,
    Some("FLUSH t; MAJOR COMPACT t"),
    None,
];

fn session(engine: &Arc<Engine>) -> Session {
    Session::open(engine, SessionOptions { user: "ann".to_owned() })
}

/// Executes the steps until one fails; returns whether none did.
fn steps(engine: &Arc<Engine>) -> bool {
    let mut server = session(engine);
    STEPS.iter().all(|step| match step {
        Some(statement) => run(engine, statement).is_ok(),
        None => server.follow_due().is_ok(),
    })
}

/// Asserts that the indexes are followed, catch up, and agree with the table.
fn check_all(engine: &Arc<Engine>, name: &str) {
    settle(engine);
    check(&mut session(engine));
    let followed =
        "SELECT count(*) FROM bennu.indexes WHERE lag_commits IS NOT NULL AND state = 'active'";
    assert_eq!(run(engine, followed).unwrap(), ["2"], "{name}");
    for condition in ["a = 1", "a = 7", "a > 1", "b = 'b3' AND a < 4", "b IS NULL AND a < 4"] {
        let by = |hint: &str| {
            run(engine, &format!("SELECT {hint} id, b FROM t WHERE {condition} ORDER BY id"))
                .unwrap()
        };
        assert_eq!(by("/*+ INDEX(t t_a t_b) */"), by("/*+ NO_INDEX */"), "{name}: {condition}");
    }
}

#[test]
fn eventual_index_survives_crash_at_any_operation() {
    for unsynced in [Unsynced::Lost, Unsynced::Kept] {
        for operations in (unsynced as u64..).step_by(OPERATIONS_STEP) {
            let env = FaultEnv::new(operations);
            let engine = open(&env).unwrap();
            run(&engine, CREATE).unwrap();
            settle(&engine);
            env.fail_after(operations);
            let done = steps(&engine);
            let after = env.after_crash(unsynced);
            let reopened = open(&after).unwrap();
            let name = format!("{unsynced:?}, {operations}");
            check_all(&reopened, &name);
            run(&reopened, "UPDATE t SET a = a + 1, b = b || 'z'; DELETE FROM t WHERE id = 1")
                .unwrap();
            check_all(&reopened, &name);
            drop(engine);
            if done {
                break;
            }
            assert!(operations < 1_000, "the steps never end well");
        }
    }
}

#[test]
fn index_without_former_versions_is_rebuilt() {
    let env = FaultEnv::new(1);
    let engine = open(&env).unwrap();
    run(&engine, CREATE).unwrap();
    settle(&engine);
    run(&engine, "UPDATE t SET a = a + 1").unwrap();
    drop(engine);
    let options = Options { env: Arc::new(env.after_crash(Unsynced::Kept)), ..Options::default() };
    let store = Store::open(Path::new("/data"), options).unwrap();
    let engine = Engine::open(store, EngineOptions::default()).unwrap();
    assert!(engine.has_handovers());
    let query = "SELECT count(*) FROM bennu.indexes WHERE lag_commits IS NOT NULL";
    assert_eq!(run(&engine, query).unwrap(), ["0"]);
    check_all(&engine, "rebuilt");
}

#[test]
fn commits_larger_than_memory_are_followed() {
    let options = Options {
        env: Arc::new(FaultEnv::new(1)),
        staged_bytes_max: Some(64 << 10),
        holds_recovered_versions: true,
        ..Options::default()
    };
    let store = Store::open(Path::new("/data"), options).unwrap();
    let engine = Engine::open(store, EngineOptions::default()).unwrap();
    run(&engine, CREATE).unwrap();
    settle(&engine);
    let fill = "INSERT INTO t SELECT n, n % 11, 'b' || n FROM generate_series(1000, 9000) AS n";
    run(&engine, fill).unwrap();
    run(&engine, "UPDATE t SET a = a + 1").unwrap();
    check_all(&engine, "spilled");
}

/// An older snapshot sees the entries of the position that the index had then.
#[test]
fn older_snapshot_does_not_read_index_that_became_strong() {
    let engine = open(&FaultEnv::new(1)).unwrap();
    run(&engine, CREATE).unwrap();
    settle(&engine);
    run(&engine, "UPDATE t SET a = 9 WHERE id < 5").unwrap();
    let mut older = session(&engine);
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t WHERE id = 1";
    assert_eq!(rows_of(&mut older, begin), ["1"]);
    run(&engine, "ALTER INDEX t_a CONSISTENCY = STRONG").unwrap();
    let query = "SELECT /*+ INDEX(t t_a) */ count(*) FROM t WHERE a = 9";
    assert_eq!(rows_of(&mut older, query), ["4"]);
    assert_eq!(run(&engine, query).unwrap(), ["4"]);
}

fn rows_of(session: &mut Session, query: &str) -> Vec<String> {
    let mut found = Vec::new();
    rows(session, query, &mut |row| found.push(row)).unwrap();
    found
}

#[test]
fn index_that_lags_by_an_hour_is_rebuilt() {
    let env = FaultEnv::new(1);
    let engine = open(&env).unwrap();
    run(&engine, CREATE).unwrap();
    settle(&engine);
    env.set_now(env.now() + 2 * 3_600_000_000);
    assert!(!engine.has_handovers() && !engine.followers_are_behind(), "it lacks no commit");
    run(&engine, "INSERT INTO t VALUES (200, 1, 'y')").unwrap();
    session(&engine).follow_due().unwrap();
    run(&engine, "UPDATE t SET a = a + 1").unwrap();
    env.set_now(env.now() + 1_800_000_000);
    assert!(!engine.has_handovers());
    env.set_now(env.now() + 1_900_000_000);
    assert!(engine.has_handovers());
    session(&engine).hand_over_due().unwrap();
    let states =
        "SELECT string_agg(state, ' ') FROM bennu.indexes WHERE index_name IN ('t_a', 't_b')";
    assert_eq!(run(&engine, states).unwrap(), ["disabled disabled"]);
    check_all(&engine, "rebuilt");
}
