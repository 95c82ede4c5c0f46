//! Fault injection: crashes during online index builds, after each number of disk operations, and a
//! disk that fills up.
//!
//! After a crash the index is absent, or its build resumes and completes. Nothing else remains.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use sql::engine::Engine;
use store::env::fault::FaultEnv;

use crate::crashes::{after_each_operation, open, run, session};
use crate::server::index_differences;

/// Rows in files and in memstores; several batches of a build.
const FILL: [&str; 4] = [
    "CREATE TABLE t (id int PRIMARY KEY, v int, b text)",
    "INSERT INTO t SELECT n, n, 'b' || n FROM generate_series(1, 2500) AS n",
    "FLUSH t",
    "UPDATE t SET v = v + 1 WHERE id <= 10",
];

fn build_due(engine: &Arc<Engine>) -> usize {
    session(engine).build_due().unwrap()
}

fn indexes(engine: &Arc<Engine>) -> Vec<String> {
    run(engine, "SELECT index_name, state FROM bennu.indexes ORDER BY 1").unwrap()
}

/// Asserts that nothing is left to build, that indexes and table agree, and that only their store
/// tables and that of the catalog exist.
fn check(engine: &Arc<Engine>, expected: &[&str]) {
    assert_eq!(build_due(engine), 0);
    assert_eq!(indexes(engine), expected);
    assert_eq!(run(engine, "SELECT count(*), sum(v) FROM t").unwrap(), ["2500|3126260"]);
    for (index, counts) in index_differences(engine, "t") {
        assert_eq!((counts.row_count, counts.differences()), (2500, 0), "{index}");
    }
    assert_eq!(engine.store().tables().len(), 2 + expected.len());
}

#[test]
fn interrupted_index_build_resumes() {
    let mut resumed = 0;
    let create = "CREATE UNIQUE INDEX CONCURRENTLY i ON t (v, b) INCLUDE (id)";
    after_each_operation(&FILL, create, &mut |engine, done| {
        let before = indexes(engine);
        assert!(!done || before == ["i|active"], "{before:?}");
        let rows_done = "SELECT rows_done FROM bennu.indexes WHERE rows_done > 0";
        let is_advanced = !run(engine, rows_done).unwrap().is_empty();
        match before.first().map(String::as_str) {
            None => check(engine, &[]),
            Some("i|building") => {
                assert_eq!(run(engine, "SELECT id FROM t WHERE v = 77").unwrap(), ["77"]);
                assert_eq!(build_due(engine), 1);
                resumed += usize::from(is_advanced);
                check(engine, &["i|active"]);
            }
            Some(_) => check(engine, &["i|active"]),
        }
    });
    assert!(resumed > 0, "no crash between two batches");
}

#[test]
fn interrupted_rebuild_resumes() {
    let setup: Vec<&str> = FILL.into_iter().chain(["CREATE INDEX i ON t (v)"]).collect();
    for statement in ["REINDEX INDEX CONCURRENTLY i", "ALTER INDEX i SET (salt_buckets = 3)"] {
        let mut resumed = 0;
        after_each_operation(&setup, statement, &mut |engine, done| {
            let before = indexes(engine);
            if before == ["i|active", "i_ccnew|building"] {
                assert!(!done);
                assert_eq!(build_due(engine), 1);
                resumed += 1;
            } else {
                assert_eq!(before, ["i|active"]);
            }
            check(engine, &["i|active"]);
        });
        assert!(resumed > 0);
    }
}

#[test]
fn index_build_resumes_after_its_last_batch() {
    let env = FaultEnv::new(1);
    let engine = open(&env).unwrap();
    FILL.iter().for_each(|sql| drop(run(&engine, sql).unwrap()));
    run(&engine, "CREATE INDEX i ON t (v) INCLUDE (b) ASYNC").unwrap();
    assert_eq!(indexes(&engine), ["i|building"]);
    // The first two batches are marked as done, and are then missing.
    let mut build = engine.due_builds().unwrap().remove(0);
    let catalog = engine.catalog();
    let table = catalog.tables()[0];
    build.next_row = table.layout.encode_key_values(&[types::Datum::Int4(2001)]).unwrap();
    build.row_count = 2000;
    let transaction = engine.store().begin(Default::default());
    transaction.begin_statement();
    transaction.mutate(sql::catalog::record::CATALOG_TABLE, vec![build.row()]).unwrap();
    transaction.commit().unwrap().durable.wait().unwrap();
    drop(engine);
    let engine = open(&env.after_crash(store::env::fault::Unsynced::Lost)).unwrap();
    let progress = "SELECT rows_done FROM bennu.indexes";
    assert_eq!(run(&engine, progress).unwrap(), ["2000"]);
    assert_eq!(build_due(&engine), 1);
    let counts = index_differences(&engine, "t").remove(0).1;
    assert_eq!((counts.entry_count, counts.missing), (500, 2000));
}

#[test]
fn failed_background_build_remains_invalid_with_its_error() {
    let env = FaultEnv::new(1);
    let engine = open(&env).unwrap();
    FILL.iter().for_each(|sql| drop(run(&engine, sql).unwrap()));
    run(&engine, "UPDATE t SET v = 7 WHERE id > 2400").unwrap();
    run(&engine, "CREATE UNIQUE INDEX i ON t (v) ASYNC").unwrap();
    run(&engine, "CREATE INDEX j ON t (v) ASYNC").unwrap();
    assert_eq!(build_due(&engine), 1);
    let state = "SELECT index_name, state, error FROM bennu.indexes ORDER BY 1";
    let failed = "i|failed|could not create unique index \"i\"";
    assert_eq!(run(&engine, state).unwrap(), [failed, "j|active|NULL"]);
    assert_eq!(build_due(&engine), 0);
    run(&engine, "UPDATE t SET v = -id WHERE id > 2400 OR id <= 11").unwrap();
    run(&engine, "REINDEX INDEX i").unwrap();
    assert_eq!(run(&engine, state).unwrap(), ["i|active|NULL", "j|active|NULL"]);
    for (index, counts) in index_differences(&engine, "t") {
        assert_eq!(counts.differences(), 0, "{index}");
    }
    run(&engine, "CREATE INDEX k ON t (b) ASYNC").unwrap();
    run(&engine, "TRUNCATE t").unwrap();
    run(&engine, "INSERT INTO t SELECT n, n, 'c' || n FROM generate_series(1, 9) AS n").unwrap();
    assert_eq!(build_due(&engine), 1);
    assert_eq!(run(&engine, "SELECT v FROM t WHERE b = 'c4'").unwrap(), ["4"]);
    run(&engine, "CREATE INDEX l ON t (b) ASYNC").unwrap();
    run(&engine, "DROP TABLE t").unwrap();
    assert_eq!((build_due(&engine), engine.due_builds().unwrap().len()), (1, 0));
}

#[test]
fn full_disk_ends_index_build_without_leftovers() {
    let env = FaultEnv::new(1);
    let engine = open(&env).unwrap();
    FILL.iter().for_each(|sql| drop(run(&engine, sql).unwrap()));
    run(
        &engine,
        "INSERT INTO t SELECT n, n, repeat('x', 200) || n FROM generate_series(2501, 20000) AS n",
    )
    .unwrap();
    let sums = run(&engine, "SELECT count(*), sum(v) FROM t").unwrap();
    for statement in ["CREATE INDEX i ON t (b)", "CREATE INDEX CONCURRENTLY i ON t (b, v)"] {
        env.leave_room(200 << 10);
        let error = run(&engine, statement).unwrap_err();
        assert_eq!(error.sqlstate, "53100", "{statement}: {error}");
        env.leave_room(1 << 30);
        // The log is written again, and the index dropped, within half a second.
        let deadline = Instant::now() + Duration::from_secs(60);
        while !indexes(&engine).is_empty() {
            assert!(Instant::now() < deadline, "{statement}");
            let _ = session(&engine).build_due();
            std::thread::yield_now();
        }
        assert!(engine.due_builds().unwrap().is_empty());
        assert_eq!(run(&engine, "SELECT count(*), sum(v) FROM t").unwrap(), sums);
        run(&engine, statement).unwrap();
        run(&engine, "DROP INDEX i").unwrap();
    }
}
