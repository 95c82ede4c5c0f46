//! Deferrable UNIQUE constraints across sessions: a concurrent writer of the same key waits, and
//! then fails.

use sql::EngineOptions;

use crate::server::Server;

const WAITED: &str = "error 55P03: canceling statement due to lock timeout\n";

fn server() -> Server {
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE TABLE t (id int PRIMARY KEY, n int UNIQUE DEFERRABLE)");
    server.run("a", "INSERT INTO t VALUES (1, 1), (2, 2)");
    server.run("b", "SET lock_timeout = '20ms'");
    server
}

#[test]
fn second_writer_of_unique_key_waits() {
    let mut server = server();
    server.run("a", "BEGIN; INSERT INTO t VALUES (3, 3)");
    assert_eq!(server.run("b", "INSERT INTO t VALUES (4, 3)"), WAITED);
    assert_eq!(server.run("b", "INSERT INTO t VALUES (4, 4)"), "ok\n");
    server.run("a", "COMMIT");
    assert!(server.run("b", "INSERT INTO t VALUES (5, 3)").contains("23505"));
    server.run("a", "BEGIN; SET CONSTRAINTS ALL DEFERRED; INSERT INTO t VALUES (6, 4)");
    assert_eq!(server.run("b", "UPDATE t SET n = 4 WHERE id = 1"), WAITED);
    assert!(server.run("a", "COMMIT").contains("23505"));
    assert_eq!(server.run("b", "SELECT count(*) FROM t"), "4\n");
}

#[test]
fn unique_check_sees_rows_newer_than_snapshot() {
    let mut server = server();
    server.run("a", "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t");
    server.run("b", "INSERT INTO t VALUES (3, 3)");
    assert!(server.run("a", "INSERT INTO t VALUES (4, 3)").contains("23505"));
    server.run("a", "ROLLBACK");
    server.run("a", "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t");
    server.run("b", "DELETE FROM t WHERE id = 3");
    assert_eq!(server.run("a", "INSERT INTO t VALUES (4, 3); COMMIT"), "ok\n");
    server.restart();
    assert!(server.run("a", "INSERT INTO t VALUES (5, 3)").contains("23505"));
    assert_eq!(server.run("a", "UPDATE t SET n = n + 1"), "ok\n");
}
