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
    let options = Options { env: Arc::new(env.clone()), ..Options::default() };
    Engine::open(Store::open(Path::new("/data"), options)?, EngineOptions::default())
}

pub(crate) fn run(engine: &Arc<Engine>, sql: &str) -> Result<Vec<String>, Error> {
    let mut session = Session::open(engine, SessionOptions { user: "ann".to_owned() });
    let mut found = Vec::new();
    rows(&mut session, sql, &mut |row| found.push(row))?;
    Ok(found)
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
