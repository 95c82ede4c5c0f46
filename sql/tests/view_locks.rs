//! FOR UPDATE through views and queries in FROM locks the rows of the tables below.

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
