//! Foreign keys across sessions: the later of two conflicting transactions waits, and then sees
//! the other's changes.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::sync::Arc;

use sql::EngineOptions;

use crate::server::{Server, answer};

const TABLES: &str = "CREATE TABLE parent (id int PRIMARY KEY, code int UNIQUE, note text);
    CREATE TABLE child (id bigserial PRIMARY KEY, parent int REFERENCES parent,
        code int REFERENCES parent (code));
    INSERT INTO parent SELECT n, n FROM generate_series(1, 9) AS n";

const WAITED: &str = "error 55P03: canceling statement due to lock timeout\n";

fn server() -> Server {
    let mut server = Server::start(EngineOptions::default);
    assert_eq!(server.run("a", TABLES), "ok\n");
    server.run("b", "SET lock_timeout = '20ms'");
    server
}

fn code(answer: &str) -> &str {
    answer.split(':').next().unwrap()
}

#[test]
fn delete_of_parent_waits_for_inserting_child() {
    let mut server = server();
    server.run("a", "BEGIN; INSERT INTO child (parent) VALUES (1)");
    assert_eq!(server.run("b", "DELETE FROM parent WHERE id = 1"), WAITED);
    assert_eq!(server.run("b", "UPDATE parent SET id = 100 WHERE id = 1"), WAITED);
    // Columns that are not part of a referenceable key can be updated without waiting.
    assert_eq!(server.run("b", "UPDATE parent SET note = 'x' WHERE id = 1"), "ok\n");
    assert_eq!(server.run("b", "UPDATE parent SET code = 100 WHERE id = 1"), WAITED);
    server.run("a", "COMMIT");
    assert_eq!(code(&server.run("b", "DELETE FROM parent WHERE id = 1")), "error 23503");
    server.run("a", "BEGIN; INSERT INTO child (code) VALUES (2)");
    assert_eq!(server.run("b", "UPDATE parent SET code = 200 WHERE id = 2"), WAITED);
    server.run("a", "ROLLBACK");
    assert_eq!(server.run("b", "UPDATE parent SET code = 200 WHERE id = 2"), "ok\n");
}

#[test]
fn insert_of_child_waits_for_deleting_parent() {
    let mut server = server();
    server.run("a", "BEGIN; DELETE FROM parent WHERE id = 2");
    assert_eq!(server.run("b", "INSERT INTO child (parent) VALUES (2)"), WAITED);
    assert_eq!(server.run("b", "INSERT INTO child (code) VALUES (2)"), WAITED);
    server.run("a", "COMMIT");
    assert_eq!(code(&server.run("b", "INSERT INTO child (parent) VALUES (2)")), "error 23503");
    server.run("a", "BEGIN; DELETE FROM parent WHERE id = 3; ROLLBACK");
    assert_eq!(server.run("b", "INSERT INTO child (parent) VALUES (3)"), "ok\n");
}

#[test]
fn delete_of_parent_fails_for_child_newer_than_snapshot() {
    let mut server = server();
    server.run("b", "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM child");
    server.run("a", "INSERT INTO child (parent) VALUES (4)");
    assert_eq!(code(&server.run("b", "DELETE FROM parent WHERE id = 4")), "error 23503");
    server.run("b", "ROLLBACK");
    // A row that the transaction itself has deleted is no reference.
    server.run("b", "BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_eq!(server.run("b", "DELETE FROM child; DELETE FROM parent WHERE id = 4"), "ok\n");
    assert_eq!(server.run("b", "COMMIT"), "ok\n");
}

#[test]
fn alter_table_waits_for_foreign_key_writers() {
    let mut server = server();
    server.run("a", "BEGIN; INSERT INTO child (parent) VALUES (5)");
    assert_eq!(server.run("b", "ALTER TABLE parent ALTER COLUMN note TYPE varchar(3)"), WAITED);
    server.run("a", "COMMIT");
    server.run("a", "BEGIN; DELETE FROM parent WHERE id = 6");
    assert_eq!(server.run("b", "CREATE TABLE other (id int REFERENCES parent)"), WAITED);
    server.run("a", "COMMIT");
}

#[test]
fn foreign_keys_survive_restart() {
    let mut server = server();
    server.restart();
    assert_eq!(code(&server.run("a", "INSERT INTO child (parent) VALUES (99)")), "error 23503");
    server.run("a", "INSERT INTO child (parent) VALUES (1)");
    assert_eq!(code(&server.run("a", "DELETE FROM parent WHERE id = 1")), "error 23503");
}

#[test]
fn concurrent_sessions_leave_no_orphans() {
    const ROUNDS: u64 = 150;
    let server = Arc::new(server());
    let threads: Vec<_> = (0..3_u64)
        .map(|thread| {
            let server = Arc::clone(&server);
            std::thread::spawn(move || {
                let mut session = server.session();
                let mut chance = 88_172_645_463_325_252 ^ (thread << 32);
                for _ in 0..ROUNDS {
                    chance ^= chance << 13;
                    chance ^= chance >> 7;
                    chance ^= chance << 17;
                    let row = chance % 9 + 1;
                    let sql = match (chance >> 8) % 5 {
                        0 => format!("INSERT INTO parent VALUES ({row}, {row})"),
                        1 => format!("DELETE FROM parent WHERE id = {row}"),
                        2 => format!("INSERT INTO child (parent) VALUES ({row})"),
                        3 => format!("INSERT INTO child (code) VALUES ({row})"),
                        _ => format!("DELETE FROM child WHERE {row} IN (parent, code)"),
                    };
                    let answer = answer(&mut session, &sql);
                    let allowed = ["ok\n", "error 23503", "error 23505", "error 40P01"];
                    assert!(allowed.contains(&code(&answer)), "{sql}: {answer}");
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let mut session = server.session();
    let orphans = "SELECT count(*) FROM child LEFT JOIN parent p ON p.id = child.parent
        LEFT JOIN parent c ON c.code = child.code
        WHERE (child.parent IS NOT NULL AND p.id IS NULL)
           OR (child.code IS NOT NULL AND c.id IS NULL)";
    assert_eq!(answer(&mut session, orphans), "0\n");
}
