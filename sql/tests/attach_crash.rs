//! Fault injection: crashes during ATTACH and DETACH COPROCESSOR.
//!
//! The machine crashes after each number of disk operations, and between the statement and its
//! commit. The table must be consistent afterwards: the coprocessor is attached or not, and its
//! summary is correct.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::sync::Arc;

use sql::engine::Engine;
use sql::session::Session;
use store::env::fault::{FaultEnv, Unsynced};

use crate::crashes::{after_each_operation_and_write, open, query, session};
use crate::server::answer;

const ATTACH: &str = "ALTER TABLE t ATTACH COPROCESSOR summary \
                      WITH (table = 's', group_by = 'g', sum = 'v')";
const DETACH: &str = "ALTER TABLE t DETACH COPROCESSOR summary";
const FILL: &str = "CREATE TABLE t (id int PRIMARY KEY, g int, v int); \
                    INSERT INTO t SELECT n, n % 3, n FROM generate_series(1, 20) AS n";

fn is_attached(session: &mut Session) -> bool {
    let sql = "SELECT state FROM bennu.coprocessors WHERE table_name = 't' AND name = 'summary'";
    match query(session, sql).as_slice() {
        [] => false,
        [state] => {
            assert_eq!(state, "active");
            true
        }
        more => panic!("{more:?}"),
    }
}

fn check_summary(session: &mut Session) {
    let kept = query(session, "SELECT g, row_count, v_count, v_sum FROM s ORDER BY g");
    let counted = "SELECT g, count(*), count(v), sum(v) FROM t GROUP BY g ORDER BY g";
    assert_eq!(kept, query(session, counted));
    assert!(!kept.is_empty());
}

/// Checks that the table is consistent, and remains so after further changes.
fn check(engine: &Arc<Engine>) -> bool {
    let session = &mut session(engine);
    let attached = is_attached(session);
    if attached {
        check_summary(session);
        let refused = answer(session, "DELETE FROM s");
        assert!(refused.starts_with("error 55000"), "{refused}");
    }
    query(session, "INSERT INTO t VALUES (100, 7, 1); DELETE FROM t WHERE id = 1");
    if attached {
        check_summary(session);
        query(session, DETACH);
    }
    // A leftover target table must not block another ATTACH.
    query(session, "DROP TABLE IF EXISTS s");
    query(session, ATTACH);
    check_summary(session);
    attached
}

/// Crashes after each number of disk operations of a statement.
fn crash_at_every_step(before: &str, statement: &str, attached_after: bool) {
    let mut seen = [false; 2];
    after_each_operation_and_write(&[FILL, before], statement, &mut |engine, done| {
        let attached = check(engine);
        assert!(!done || attached == attached_after, "{statement} was acknowledged");
        seen[usize::from(attached)] = true;
    });
    assert_eq!(seen, [true, true], "both states were found");
}

#[test]
fn attach_is_atomic_under_crash() {
    crash_at_every_step("SELECT 1", ATTACH, true);
}

#[test]
fn detach_is_atomic_under_crash() {
    crash_at_every_step(ATTACH, DETACH, false);
}

#[test]
fn crash_before_commit_undoes_attach_and_detach() {
    for (before, statement) in [("SELECT 1", ATTACH), (ATTACH, DETACH)] {
        for flushes in [false, true] {
            let env = FaultEnv::new(7);
            let engine = open(&env).unwrap();
            let mut session = session(&engine);
            query(&mut session, FILL);
            query(&mut session, before);
            let was_attached = is_attached(&mut session);
            query(&mut session, &format!("BEGIN; {statement}; INSERT INTO t VALUES (50, 5, 5)"));
            assert_ne!(is_attached(&mut session), was_attached);
            if flushes {
                // Store files and the manifest change in the meantime.
                query(&mut self::session(&engine), "FLUSH t");
            }
            env.crash();
            drop(session);
            drop(engine);
            let engine = open(&env.after_crash(Unsynced::Kept)).unwrap();
            let count = query(&mut self::session(&engine), "SELECT count(*) FROM t");
            assert_eq!(count, ["20"]);
            assert_eq!(check(&engine), was_attached, "{statement}");
        }
    }
}
