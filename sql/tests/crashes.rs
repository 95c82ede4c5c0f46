//! Crashes of an engine after each number of disk operations of a statement.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::path::Path;
use std::sync::Arc;

use sql::engine::Engine;
use sql::session::{Session, SessionOptions};
use sql::{EngineOptions, Error};
use store::env::fault::{FaultEnv, Unsynced};
use store::{Options, Store};

use crate::server::rows;

pub(crate) fn open(env: &FaultEnv) -> Result<Arc<Engine>, Error> {
    let options = Options {
        env: Arc::new(env.clone()),
        holds_recovered_versions: true,
        ..Options::default()
    };
    Engine::open(Store::open(Path::new("/data"), options)?, EngineOptions::default())
}

pub(crate) fn session(engine: &Arc<Engine>) -> Session {
    Session::open(engine, SessionOptions { user: "ann".to_owned() })
}

/// Executes statements in a session of their own.
pub(crate) fn run(engine: &Arc<Engine>, sql: &str) -> Result<Vec<String>, Error> {
    run_in(&mut session(engine), sql)
}

fn run_in(session: &mut Session, sql: &str) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    rows(session, sql, &mut |row| found.push(row))?;
    Ok(found)
}

/// Executes statements that do not fail.
pub(crate) fn query(session: &mut Session, sql: &str) -> Vec<String> {
    run_in(session, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// Executes `statement` after `setup`, which creates table `t` of three numbers, then an INSERT,
/// and crashes after each number of disk operations. Asserts that an acknowledged row is not lost;
/// `check` is given the engine that is opened afterwards, and whether the statement succeeded.
pub(crate) fn after_each_operation_and_write(
    setup: &[&str],
    statement: &str,
    check: &mut dyn FnMut(&Arc<Engine>, bool),
) {
    for operations in 0.. {
        let env = FaultEnv::new(operations);
        let engine = open(&env).unwrap();
        let mut session = session(&engine);
        setup.iter().for_each(|earlier| drop(query(&mut session, earlier)));
        env.fail_after(operations);
        let done = run_in(&mut session, statement).is_ok();
        let written = run_in(&mut session, "INSERT INTO t VALUES (50, 5, 5)").is_ok();
        drop(session);
        drop(engine);
        for unsynced in [Unsynced::Lost, Unsynced::Torn, Unsynced::Kept] {
            let engine = open(&env.after_crash(unsynced)).unwrap();
            let found = run(&engine, "SELECT count(*) FROM t WHERE id = 50").unwrap();
            assert!(!written || found == ["1"], "{operations}: an acknowledged row is lost");
            check(&engine, done);
        }
        if done && written {
            break;
        }
        assert!(operations < 500, "the statement never ends well");
    }
}

/// Executes `statement` after `setup`, and crashes after each number of its disk operations;
/// `check` is given the engine that is opened afterwards, and whether the statement succeeded.
pub(crate) fn after_each_operation(
    setup: &[&str],
    statement: &str,
    check: &mut dyn FnMut(&Arc<Engine>, bool),
) {
    for unsynced in [Unsynced::Lost, Unsynced::Kept] {
        for operations in 0.. {
            let env = FaultEnv::new(operations);
            let engine = open(&env).unwrap();
            setup.iter().for_each(|earlier| drop(run(&engine, earlier).unwrap()));
            env.fail_after(operations);
            let done = run(&engine, statement).is_ok();
            let after = env.after_crash(unsynced);
            check(&open(&after).unwrap(), done);
            drop(engine);
            if done {
                break;
            }
            assert!(operations < 1_000, "the statement never ends well");
        }
    }
}
