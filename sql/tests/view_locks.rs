//! FOR UPDATE through views, queries in FROM and joins locks the rows of the tables below.

use std::thread;
use std::time::Duration;

use sql::EngineOptions;

use crate::server::Server;

#[test]
fn rows_below_views_and_queries_are_locked() {
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1)");
    server.run("a", "CREATE VIEW v AS SELECT id AS key, n FROM t WHERE n > 0");
    server.run("a", "CREATE VIEW w AS SELECT key FROM v x WHERE EXISTS (SELECT 1 FROM t)");
    server.run("b", "SET lock_timeout = '20ms'");
    let waited = "error 55P03: canceling statement due to lock timeout\n";
    for source in ["v", "w", "w AS other", "(SELECT id AS key FROM t) AS s", "(TABLE v) AS s"] {
        let locks = format!("BEGIN; SELECT key FROM {source} WHERE key = 1 FOR UPDATE");
        assert_eq!(server.run("a", &locks), "1\n");
        assert_eq!(server.run("b", "UPDATE t SET n = 2 WHERE id = 1"), waited, "{source}");
        server.run("a", "ROLLBACK");
        assert_eq!(server.run("b", "UPDATE t SET n = 2 WHERE id = 1"), "ok\n", "{source}");
    }
    // A join locks what OF names.
    server.run("a", "CREATE TABLE u (id int PRIMARY KEY); INSERT INTO u VALUES (1)");
    server.run("a", "BEGIN; SELECT 1 FROM u JOIN v ON v.key = u.id FOR UPDATE OF u");
    assert_eq!(server.run("b", "UPDATE t SET n = 3 WHERE id = 1"), "ok\n");
    assert_eq!(server.run("b", "DELETE FROM u"), waited);
}

#[test]
fn a_row_that_was_waited_for_is_joined_anew() {
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE TABLE o (id int PRIMARY KEY, c int, note text)");
    server.run("a", "CREATE TABLE c (id int PRIMARY KEY, name text)");
    server.run("a", "INSERT INTO c VALUES (1, 'one'), (2, 'two')");
    server.run("a", "INSERT INTO o VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c')");
    let asked = [
        (
            "SELECT o.id, note, name FROM o JOIN c ON c.id = o.c ORDER BY o.id FOR UPDATE OF o",
            "1|A|one\n3|c|two\n",
        ),
        (
            "SELECT o.id, note FROM o WHERE c IN (SELECT id FROM c) AND note < 'z' FOR UPDATE",
            "1|A\n2|b\n3|c\n",
        ),
        ("SELECT o.id, note FROM o WHERE c = 1 ORDER BY note DESC LIMIT 1 FOR UPDATE", "1|A\n"),
        ("SELECT o.id, name FROM o, c WHERE o.c = c.id LIMIT 1 FOR SHARE OF o", "1|one\n"),
    ];
    for (query, answer) in asked {
        server.run(
            "a",
            "BEGIN; UPDATE o SET note = 'A' WHERE id = 1; UPDATE o SET c = 2 WHERE id = 2",
        );
        let mut waiting = server.session();
        let waits = thread::spawn(move || crate::server::answer(&mut waiting, query));
        thread::sleep(Duration::from_millis(100));
        assert!(!waits.is_finished(), "{query}");
        server.run("a", "COMMIT");
        assert_eq!(waits.join().unwrap(), answer, "{query}");
        server.run("a", "UPDATE o SET note = 'a' WHERE id = 1; UPDATE o SET c = 1 WHERE id = 2");
    }
}

#[test]
fn a_change_whose_condition_or_value_is_a_subquery_is_made_anew() {
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE TABLE o (id int PRIMARY KEY, c int, note text)");
    server.run("a", "CREATE TABLE c (id int PRIMARY KEY, name text)");
    server.run("a", "INSERT INTO c VALUES (1, 'one'), (2, 'two')");
    let asked = [
        (
            "UPDATE o SET note = note || '!' WHERE c IN (SELECT id FROM c WHERE name = 'one') \
             RETURNING id, note",
            "2|b!\n",
        ),
        (
            "DELETE FROM o WHERE EXISTS (SELECT FROM c WHERE c.id = o.c AND name = 'one') \
             RETURNING id",
            "2\n",
        ),
        (
            "UPDATE o SET note = (SELECT name FROM c WHERE c.id = o.c) WHERE id < 3 \
             RETURNING id, note",
            "1|two\n2|one\n",
        ),
        (
            "UPDATE o SET note = name FROM c WHERE o.c = c.id AND o.id < 3 \
             AND c.id = (SELECT min(id) FROM c) RETURNING o.id, note",
            "2|one\n",
        ),
        ("DELETE FROM o USING c WHERE o.c = (SELECT min(id) FROM c) RETURNING o.id", "2\n"),
    ];
    for (change, answer) in asked {
        server
            .run("a", "DELETE FROM o; INSERT INTO o VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c')");
        server.run("a", "BEGIN; UPDATE o SET c = 2 WHERE id = 1");
        let mut waiting = server.session();
        let waits = thread::spawn(move || crate::server::answer(&mut waiting, change));
        thread::sleep(Duration::from_millis(100));
        assert!(!waits.is_finished(), "{change}");
        server.run("a", "COMMIT");
        assert_eq!(waits.join().unwrap(), answer, "{change}");
    }
}
