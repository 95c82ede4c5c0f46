//! Online index builds: CREATE INDEX and REINDEX CONCURRENTLY with concurrent writers lose and
//! duplicate no entry, and block no writer.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use coprocessors::index::CheckCounts;
use sql::EngineOptions;
use sql::engine::Engine;

use crate::server::{Server, answer, index_differences};

/// Asserts that each index of table `t` has exactly the entries of its rows; returns their total
/// number.
fn check_indexes(engine: &Arc<Engine>) -> u64 {
    let entries = |(index, found): (String, CheckCounts)| {
        assert_eq!(found.differences(), 0, "{index}: {found:?}");
        found.entry_count
    };
    index_differences(engine, "t").into_iter().map(entries).sum()
}

#[test]
fn concurrent_index_build_is_complete_under_writes() {
    let mut server = Server::start(EngineOptions::default);
    server.run(
        "a",
        "CREATE TABLE t (id int PRIMARY KEY, a int, b text);
         INSERT INTO t SELECT n, n % 100, 'b' || n FROM generate_series(1, 4000) AS n",
    );
    let (done, written) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut writers = [server.session(), server.session()];
    let mut builder = server.session();
    thread::scope(|scope| {
        let (done, written) = (&done, &written);
        for (number, session) in writers.iter_mut().enumerate() {
            scope.spawn(move || {
                let mut n = 0;
                while !done.load(Ordering::SeqCst) {
                    n = (n + 37) % 4000;
                    let (id, new) = (n + 1, 10_000 + n * 2 + number);
                    let statements = [
                        format!("UPDATE t SET a = a + 1, b = b || '.' WHERE id = {id}"),
                        format!("DELETE FROM t WHERE id = {id}"),
                        format!("INSERT INTO t VALUES ({new}, 5, 'n{new}') ON CONFLICT DO NOTHING"),
                        format!("INSERT INTO t VALUES ({id}, 7, 'm{id}') ON CONFLICT DO NOTHING"),
                    ];
                    for statement in statements {
                        assert_eq!(answer(session, &statement), "ok\n", "{statement}");
                    }
                    written.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let run = |session: &mut _, statement: &str| {
            assert_eq!(answer(session, statement), "ok\n", "{statement}");
        };
        while written.load(Ordering::SeqCst) < 20 {
            thread::yield_now();
        }
        run(&mut builder, "CREATE INDEX CONCURRENTLY t_a ON t (a)");
        run(&mut builder, "CREATE UNIQUE INDEX CONCURRENTLY t_b ON t (b) WHERE a <> 3");
        run(&mut builder, "CREATE INDEX CONCURRENTLY t_f ON t (lower(b), a DESC)");
        run(&mut builder, "REINDEX TABLE CONCURRENTLY t");
        done.store(true, Ordering::SeqCst);
    });
    assert!(check_indexes(server.engine()) > 10_000);
    let valid = "SELECT indexrelid::regclass FROM pg_index
        WHERE indrelid = 't'::regclass AND indisvalid ORDER BY 1::text";
    assert_eq!(server.run("a", valid), "t_a\nt_b\nt_f\nt_pkey\n");
}

#[test]
fn writers_do_not_wait_for_blocked_index_build() {
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE TABLE t (id int PRIMARY KEY, a int)");
    server.run("a", "INSERT INTO t SELECT n, n FROM generate_series(1, 50) AS n");
    // As in PostgreSQL, the build waits for this writer to end, and does not block later writers.
    server.run("b", "SET lock_timeout = '50ms'");
    server.run("a", "BEGIN; UPDATE t SET a = -1 WHERE id = 20");
    let waited = "error 55P03: canceling statement due to lock timeout\n";
    assert_eq!(server.run("b", "CREATE INDEX CONCURRENTLY i ON t (a)"), waited);
    assert_eq!(server.run("c", "UPDATE t SET a = -2 WHERE id = 21"), "ok\n");
    server.run("a", "COMMIT");
    assert_eq!(server.run("b", "CREATE INDEX CONCURRENTLY i ON t (a)"), "ok\n");
    assert_eq!(server.run("c", "SELECT id FROM t WHERE a < 0 ORDER BY a"), "21\n20\n");
    assert_eq!(check_indexes(server.engine()), 50);
}

#[test]
fn failed_concurrent_unique_index_is_removed() {
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE TABLE t (id int PRIMARY KEY, a int)");
    server.run("a", "INSERT INTO t SELECT n, n % 40 FROM generate_series(1, 50) AS n");
    let refused = server.run("a", "CREATE UNIQUE INDEX CONCURRENTLY i ON t (a)");
    assert!(refused.contains("23505: could not create unique index \"i\""), "{refused}");
    assert!(refused.contains("is duplicated"), "{refused}");
    assert_eq!(server.run("a", "SELECT count(*) FROM pg_index WHERE NOT indisvalid"), "0\n");
    assert_eq!(server.run("a", "INSERT INTO t VALUES (60, 5)"), "ok\n");
    server.restart();
    assert_eq!(server.run("a", "CREATE INDEX CONCURRENTLY i ON t (a)"), "ok\n");
    assert_eq!(check_indexes(server.engine()), 51);
}

#[test]
fn lock_table_conflicts_match_postgresql() {
    let modes = [
        "ACCESS SHARE",
        "ROW SHARE",
        "ROW EXCLUSIVE",
        "SHARE UPDATE EXCLUSIVE",
        "SHARE",
        "SHARE ROW EXCLUSIVE",
        "EXCLUSIVE",
        "ACCESS EXCLUSIVE",
    ];
    // Conflicts of table-level locks: PostgreSQL's table 13.2.
    let conflicts = [
        "0000000X", "000000XX", "0000XXXX", "000XXXXX", "00XX0XXX", "00XXXXXX", "0XXXXXXX",
        "XXXXXXXX",
    ];
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE TABLE t (id int PRIMARY KEY)");
    for (held, row) in modes.iter().zip(conflicts) {
        for (wanted, expected) in modes.iter().zip(row.chars()) {
            server.run("a", &format!("BEGIN; LOCK TABLE t IN {held} MODE"));
            let refused = server.run("b", &format!("BEGIN; LOCK t IN {wanted} MODE NOWAIT"));
            let expected = match expected {
                '0' => "ok\n",
                _ => "error 55P03: could not obtain lock on relation \"t\"\n",
            };
            assert_eq!(refused, expected, "{held}, {wanted}");
            server.run("b", "ROLLBACK");
            server.run("a", "ROLLBACK");
        }
    }
    server.run("b", "SET lock_timeout = '20ms'");
    server.run("a", "BEGIN; LOCK TABLE t IN SHARE MODE");
    let waited = "error 55P03: canceling statement due to lock timeout\n";
    assert_eq!(server.run("b", "INSERT INTO t VALUES (1)"), waited);
    assert_eq!(server.run("b", "SELECT count(*) FROM t"), "0\n");
    assert_eq!(server.run("a", "INSERT INTO t VALUES (1); COMMIT"), "ok\n");
    assert_eq!(server.run("b", "SELECT count(*) FROM t"), "1\n");
}
