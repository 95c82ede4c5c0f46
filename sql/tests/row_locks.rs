//! Row locks by FOR UPDATE and by data changes, below views, subqueries and joins; and the
//! re-evaluation of concurrently changed rows.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::thread;
use std::time::Duration;

use sql::EngineOptions;

use crate::server::{Server, answer};

#[test]
fn for_update_locks_rows_below_views_and_subqueries() {
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
    // A join locks the tables in OF.
    server.run("a", "CREATE TABLE u (id int PRIMARY KEY); INSERT INTO u VALUES (1)");
    server.run("a", "BEGIN; SELECT 1 FROM u JOIN v ON v.key = u.id FOR UPDATE OF u");
    assert_eq!(server.run("b", "UPDATE t SET n = 3 WHERE id = 1"), "ok\n");
    assert_eq!(server.run("b", "DELETE FROM u"), waited);
}

/// Returns a server with tables of orders and customers.
fn orders() -> Server {
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE TABLE o (id int PRIMARY KEY, c int, note text)");
    server.run("a", "CREATE TABLE c (id int PRIMARY KEY, name text)");
    server.run("a", "INSERT INTO c VALUES (1, 'one'), (2, 'two')");
    server
}

/// Returns the result of a statement that waits for a transaction with these changes of orders.
fn answer_after(server: &mut Server, changes: &str, statement: &'static str) -> String {
    let fresh = "DELETE FROM o; INSERT INTO o VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c')";
    assert_eq!(server.run("a", fresh), "ok\n");
    assert_eq!(server.run("a", &format!("BEGIN; {changes}")), "ok\n");
    let waits = "SELECT sum(lock_waits) FROM bennu.regions";
    let before = server.run("b", waits);
    let mut session = server.session();
    let waiting = thread::spawn(move || answer(&mut session, statement));
    while server.run("b", waits) == before {
        assert!(!waiting.is_finished(), "no wait: {statement}");
        thread::sleep(Duration::from_millis(1));
    }
    server.run("a", "COMMIT");
    waiting.join().unwrap()
}

#[test]
fn join_is_re_evaluated_after_lock_wait() {
    let mut server = orders();
    let changes = "UPDATE o SET note = 'A' WHERE id = 1; UPDATE o SET c = 2 WHERE id = 2";
    let asked = [
        (
            "SELECT o.id, note, name FROM o JOIN c ON c.id = o.c ORDER BY o.id FOR UPDATE OF o",
            "1|A|one\n3|c|two\n",
        ),
        (
            "SELECT o.id, note FROM o WHERE c IN (SELECT id FROM c) AND note < 'z' \
             ORDER BY id FOR UPDATE",
            "1|A\n2|b\n3|c\n",
        ),
        ("SELECT o.id, note FROM o WHERE c = 1 ORDER BY note DESC LIMIT 1 FOR UPDATE", "1|A\n"),
        ("SELECT o.id, name FROM o, c WHERE o.c = c.id LIMIT 1 FOR SHARE OF o", "1|one\n"),
    ];
    for (query, expected) in asked {
        assert_eq!(answer_after(&mut server, changes, query), expected, "{query}");
    }
}

#[test]
fn update_subqueries_are_re_evaluated_after_lock_wait() {
    let mut server = orders();
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
    for (change, expected) in asked {
        let moved = "UPDATE o SET c = 2 WHERE id = 1";
        assert_eq!(answer_after(&mut server, moved, change), expected, "{change}");
    }
}

#[test]
fn merge_subqueries_are_re_evaluated_after_lock_wait() {
    let mut server = orders();
    let moved = "UPDATE o SET c = 2, note = 'A' WHERE id = 1";
    let asked = [
        // Subquery in the join condition.
        (
            moved,
            "MERGE INTO o USING c ON o.c = c.id AND c.name = (SELECT 'one') \
             WHEN MATCHED THEN UPDATE SET note = note || '!'",
            "1|2|A\n2|1|b!\n3|2|c\n",
        ),
        (
            moved,
            "MERGE INTO o USING c ON o.c = c.id AND o.id = 1 AND c.name <> (SELECT 'two') \
             WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (c.id + 10, c.id, 'new')",
            "1|2|A\n2|1|b\n3|2|c\n11|1|new\n12|2|new\n",
        ),
        // Subquery over both tables.
        (
            moved,
            "MERGE INTO o USING (VALUES (1), (9)) v (x) \
             ON o.id = v.x AND EXISTS (SELECT FROM c WHERE c.id = o.c AND c.id = v.x) \
             WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (x + 10, x)",
            "1|2|A\n2|1|b\n3|2|c\n11|1|NULL\n19|9|NULL\n",
        ),
        // Subqueries in the clauses.
        (
            moved,
            "MERGE INTO o USING (SELECT 1 AS id) s ON o.id = s.id \
             WHEN MATCHED AND (SELECT name FROM c WHERE c.id = o.c) = 'one' THEN DELETE \
             WHEN MATCHED THEN UPDATE SET note = note || (SELECT name FROM c WHERE c.id = o.c)",
            "1|2|Atwo\n2|1|b\n3|2|c\n",
        ),
        // Deleted row.
        (
            "DELETE FROM o WHERE id = 1",
            "MERGE INTO o USING c ON o.id = c.id AND o.c = (SELECT 1) \
             WHEN MATCHED THEN UPDATE SET note = name \
             WHEN NOT MATCHED THEN INSERT VALUES (c.id, 9, (SELECT max(name) FROM c))",
            "1|9|two\n2|1|two\n3|2|c\n",
        ),
    ];
    for (changes, merge, expected) in asked {
        assert_eq!(answer_after(&mut server, changes, merge), "ok\n", "{merge}");
        assert_eq!(server.run("a", "SELECT * FROM o ORDER BY id"), expected, "{merge}");
    }
}
