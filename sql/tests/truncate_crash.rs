//! Fault injection: crashes during TRUNCATE, after each number of disk operations.
//!
//! Afterwards the table must have all of its rows, or those that the same transaction inserted
//! after TRUNCATE; the index must agree, and nothing of the other state may remain.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::path::Path;
use std::sync::Arc;

use sql::engine::Engine;
use sql::session::{Session, SessionOptions};
use sql::{EngineOptions, Error};
use store::env::fault::{FaultEnv, Unsynced};
use store::{Options, Store};

use crate::server::rows;

const FILL: &str = "CREATE TABLE t (id serial PRIMARY KEY, v int UNIQUE); \
                    INSERT INTO t (v) SELECT n FROM generate_series(1, 20) AS n";
const TRUNCATE: &str = "BEGIN; TRUNCATE t RESTART IDENTITY; INSERT INTO t (v) VALUES (7); COMMIT";

fn open(env: &FaultEnv) -> Result<Arc<Engine>, Error> {
    let options = Options { env: Arc::new(env.clone()), ..Options::default() };
    Engine::open(Store::open(Path::new("/data"), options)?, EngineOptions::default())
}

fn run(engine: &Arc<Engine>, sql: &str) -> Result<Vec<String>, Error> {
    let mut session = Session::open(engine, SessionOptions { user: "ann".to_owned() });
    let mut found = Vec::new();
    rows(&mut session, sql, &mut |row| found.push(row))?;
    Ok(found)
}

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
    for unsynced in [Unsynced::Lost, Unsynced::Kept] {
        for operations in 0.. {
            let env = FaultEnv::new(operations);
            let engine = open(&env).unwrap();
            run(&engine, FILL).unwrap();
            env.fail_after(operations);
            let done = run(&engine, TRUNCATE).is_ok();
            let after = env.after_crash(unsynced);
            let emptied = check(&open(&after).unwrap());
            assert!(emptied || !done, "acknowledged, and lost after {operations} operations");
            seen[usize::from(emptied)] = true;
            drop(engine);
            if done {
                break;
            }
            assert!(operations < 1_000, "the statement never ends well");
        }
    }
    assert_eq!(seen, [true, true]);
}
