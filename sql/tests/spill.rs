//! Spilling: statements that exceed `work_mem` give the same results as in memory, and leave no
//! temporary files.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use sql::EngineOptions;
use sql::session::{Execution, Session, parse};

use crate::server::Server;

/// Number of rows of the large table.
const ROWS: usize = 5_000;

fn rows(session: &mut Session, text: &str) -> Result<Vec<String>, sql::error::Error> {
    let mut found = Vec::new();
    for parsed in parse(text)? {
        let prepared = session.prepare(&parsed, &[])?;
        if let Execution::Rows(mut rows) = session.execute(&prepared, Vec::new())? {
            while let Some(batch) = rows.next_batch(1000)? {
                found.extend((0..batch.row_count).map(|row| format!("{:?}", batch.row(row))));
            }
        }
        if let Some(ticket) = session.end_implicit()? {
            ticket.wait()?;
        }
    }
    Ok(found)
}

fn server() -> (Server, Session) {
    let server = Server::start(EngineOptions::default);
    let mut session = server.session();
    let create =
        "CREATE TABLE t (a int PRIMARY KEY, b int, c text, d numeric, e char(4), f float8)";
    rows(&mut session, create).unwrap();
    let numbers: Vec<usize> = (0..ROWS).collect();
    for some in numbers.chunks(2_000) {
        let values: Vec<String> = some
            .iter()
            .map(|&n| {
                let (b, c, d) = (n * 7919 % 1000, n * 104_729 % ROWS, n * 31 % 777);
                match n % 11 {
                    0 => format!("({n}, NULL, NULL, {d}.50, 'x', NULL)"),
                    _ => format!("({n}, {b}, 'text {c:06}', {d}.5, 'y  ', {c} / 7.0)"),
                }
            })
            .collect();
        rows(&mut session, &format!("INSERT INTO t VALUES {}", values.join(", "))).unwrap();
    }
    (server, session)
}

/// Returns the results with large and with small `work_mem`; fails if the second execution did
/// not spill.
fn both(server: &Server, session: &mut Session, query: &str) -> [Vec<String>; 2] {
    rows(session, "SET work_mem = '1GB'").unwrap();
    let roomy = rows(session, query).unwrap();
    rows(session, "SET work_mem = '64kB'").unwrap();
    let tight = rows(session, query).unwrap();
    let explained = rows(session, &format!("EXPLAIN ANALYZE {query}")).unwrap();
    assert!(explained.iter().any(|line| line.contains("Temp Written:")), "{query} {explained:?}");
    let left: Vec<_> = std::fs::read_dir(server.engine().store().directory().join("spill"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(left.is_empty(), "{query} left {left:?}");
    [roomy, tight]
}

#[test]
fn sorts_spill() {
    let (server, mut session) = server();
    let queries = [
        "SELECT * FROM t ORDER BY c, a",
        "SELECT a, c FROM t ORDER BY c DESC NULLS FIRST, d, a",
        "SELECT d, e, a FROM t ORDER BY e DESC, d, b NULLS FIRST, a DESC",
        "SELECT a FROM t ORDER BY abs(f - 100), a",
        // More rows than the row limit of a top-N in the regions.
        "SELECT c, a FROM t ORDER BY c, a OFFSET 1000 LIMIT 3000",
        "SELECT DISTINCT ON (d) d, a, c FROM (SELECT * FROM t UNION ALL SELECT * FROM t) AS u \
         ORDER BY d, a",
        // Many equal rows: they retain the order of the table.
        "SELECT e, a FROM t ORDER BY e",
    ];
    for query in queries {
        let [roomy, tight] = both(&server, &mut session, query);
        assert!(roomy.len() > 700);
        assert_eq!(roomy, tight, "{query}");
    }
}

#[test]
fn groups_spill() {
    let (server, mut session) = server();
    let aggregates = "count(*), sum(d), avg(f), min(c), max(e), count(DISTINCT b), sum(DISTINCT d), \
                      count(b) FILTER (WHERE a > 100)";
    // Aggregation in the regions, and over rows of the session.
    for from in ["t", "(SELECT * FROM t ORDER BY a) AS s"] {
        for keys in ["a", "c, e"] {
            let query = format!("SELECT {keys}, {aggregates} FROM {from} GROUP BY {keys}");
            let [mut roomy, mut tight] = both(&server, &mut session, &query);
            roomy.sort_unstable();
            tight.sort_unstable();
            assert!(roomy.len() > 700, "{query}: {} groups", roomy.len());
            assert_eq!(roomy, tight, "{query}");
        }
    }
}

#[test]
fn groups_that_exceed_memory_once_spill() {
    let (server, mut session) = server();
    // All rows are in one batch.
    let from = "(SELECT b % 50 AS k, repeat(c, 30) AS c FROM t WHERE a < 500 OFFSET 0) AS s";
    for aggregate in ["array_agg(c ORDER BY c DESC)", "string_agg(DISTINCT c, '/')"] {
        for keys in ["k", "GROUPING SETS ((k), (k, left(c, 1)))"] {
            let query = format!("SELECT k, {aggregate} FROM {from} GROUP BY {keys}");
            let [mut roomy, mut tight] = both(&server, &mut session, &query);
            roomy.sort_unstable();
            tight.sort_unstable();
            assert!(roomy.len() > 50, "{query}: {} groups", roomy.len());
            assert_eq!(roomy, tight, "{query}");
        }
    }
}

#[test]
fn grouping_sets_spill() {
    let (server, mut session) = server();
    // Aggregation by the keys of all sets in the regions, by sets without all keys, and over rows
    // of the session.
    for (keys, from) in [
        ("ROLLUP (c, a)", "t"),
        ("GROUPING SETS (a, c, ())", "t"),
        ("CUBE (c, a)", "(SELECT * FROM t ORDER BY a) AS s"),
    ] {
        let query = format!(
            "SELECT a, c, grouping(a, c), count(*), sum(d), max(e), count(DISTINCT b) \
             FROM {from} GROUP BY {keys}"
        );
        let [mut roomy, mut tight] = both(&server, &mut session, &query);
        roomy.sort_unstable();
        tight.sort_unstable();
        assert!(roomy.len() > ROWS, "{query}: {} groups", roomy.len());
        assert_eq!(roomy, tight, "{query}");
    }
}

#[test]
fn distinct_rows_spill() {
    let (server, mut session) = server();
    let (left, right) =
        ("SELECT c, d FROM t WHERE a % 3 <> 0", "SELECT c, d FROM t WHERE a % 5 <> 0");
    let twice = format!("SELECT * FROM ({left} UNION ALL {left}) AS l");
    let mut queries = vec![
        format!("SELECT DISTINCT * FROM ({twice}) AS t LIMIT 3000"),
        format!("{left} UNION {right}"),
    ];
    for operator in ["INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"] {
        queries.push(format!("{twice} {operator} {right}"));
    }
    for query in &queries {
        let [mut roomy, mut tight] = both(&server, &mut session, query);
        if query.contains("LIMIT") {
            tight.sort_unstable();
            tight.dedup();
            assert_eq!(tight.len(), 3000, "{query}");
            continue;
        }
        roomy.sort_unstable();
        tight.sort_unstable();
        assert!(roomy.len() > 500, "{query}: {} rows", roomy.len());
        assert_eq!(roomy, tight, "{query}");
    }
}

#[test]
fn ordered_aggregates_spill() {
    let (server, mut session) = server();
    let aggregates = "array_agg(a ORDER BY a DESC), string_agg(c, '/' ORDER BY b DESC, a), \
                      json_agg(DISTINCT d), jsonb_object_agg(a, c ORDER BY a), sum(f ORDER BY a), \
                      percentile_disc(0.3) WITHIN GROUP (ORDER BY d), count(*), \
                      mode() WITHIN GROUP (ORDER BY e), rank(100) WITHIN GROUP (ORDER BY b)";
    // Sorted input is aggregated in its order.
    let plain = "array_agg(a), string_agg(c, ','), jsonb_agg(b)";
    let sorted = "(SELECT * FROM t ORDER BY c DESC, a) AS s";
    for (aggregates, from) in [(aggregates, "t"), (aggregates, sorted), (plain, sorted)] {
        let query = format!("SELECT b % 100, {aggregates} FROM {from} GROUP BY 1");
        let [mut roomy, mut tight] = both(&server, &mut session, &query);
        roomy.sort_unstable();
        tight.sort_unstable();
        assert_eq!(roomy.len(), 101, "{query}");
        assert_eq!(roomy, tight, "{query}");
    }
}

#[test]
fn joins_spill() {
    let (server, mut session) = server();
    let kinds = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"].map(|kind| {
        format!(
            "SELECT l.a, l.c, r.a, r.c FROM (SELECT * FROM t WHERE a % 3 <> 0) AS l {kind} \
             (SELECT * FROM t WHERE a % 5 <> 0) AS r ON l.c = r.c AND l.d <= r.d"
        )
    });
    let half = ["EXISTS", "NOT EXISTS"].map(|exists| {
        format!(
            "SELECT a, c FROM t AS l WHERE a % 3 <> 0 AND \
             {exists} (SELECT 1 FROM t AS r WHERE r.c = l.c AND a % 5 <> 0)"
        )
    });
    // The right side of the first join exceeds memory, that of the second does not.
    let two = ["JOIN", "LEFT JOIN"].map(|kind| {
        format!(
            "SELECT l.a, r.a, s.d FROM t AS l {kind} t AS r ON r.c = l.c \
             {kind} (SELECT b, d FROM t WHERE a < 40) AS s ON s.b = l.b + r.a % 2"
        )
    });
    for query in kinds.iter().chain(&half).chain(&two) {
        let [mut roomy, mut tight] = both(&server, &mut session, query);
        roomy.sort_unstable();
        tight.sort_unstable();
        assert!(roomy.len() > 90, "{query}: {} rows", roomy.len());
        assert_eq!(roomy, tight, "{query}");
    }
}

#[test]
fn windows_spill() {
    let (server, mut session) = server();
    let calls =
        "row_number() OVER w, sum(b) OVER w, lag(d) OVER w, count(*) OVER (w GROUPS 3 PRECEDING)";
    let queries = [
        // One partition in key order, without a sort.
        format!("SELECT *, {calls} FROM t WINDOW w AS (ORDER BY a)"),
        // Several partitions in a batch and several batches in a partition.
        format!("SELECT *, {calls} FROM t WINDOW w AS (PARTITION BY a / 1700 ORDER BY a)"),
        "SELECT c, last_value(e) OVER (PARTITION BY a / 3), a FROM t".to_owned(),
        "SELECT *, cume_dist() OVER (ORDER BY b, a), ntile(7) OVER () FROM t ORDER BY a".to_owned(),
    ];
    for query in queries {
        let [roomy, tight] = both(&server, &mut session, &query);
        assert_eq!(roomy.len(), ROWS);
        assert_eq!(roomy, tight, "{query}");
    }
}

#[test]
fn recursive_unions_spill() {
    let (server, mut session) = server();
    let queries = [
        // Most rows of an iteration are duplicates.
        "WITH RECURSIVE r AS (SELECT a, c, d FROM t WHERE a < 500 UNION SELECT t.a, t.c, t.d \
         FROM r, LATERAL (VALUES (3 * r.a + 1), (r.a / 2), (r.a + 1)) AS v (n), t \
         WHERE t.a = v.n % 5000) SELECT * FROM r",
        // One row per iteration, no duplicates.
        "WITH RECURSIVE r AS (SELECT 1 AS n, 'text 1' AS c UNION SELECT n + 1, 'text ' || n + 1 \
         FROM r WHERE n < 5000) SELECT * FROM r",
    ];
    for query in queries {
        let [mut roomy, mut tight] = both(&server, &mut session, query);
        assert_eq!(roomy.len(), ROWS, "{query}");
        roomy.sort_unstable();
        tight.sort_unstable();
        assert_eq!(roomy, tight, "{query}");
    }
}

#[test]
fn abandoned_spill_leaves_no_files() {
    let (server, mut session) = server();
    rows(&mut session, "SET work_mem = '64kB'; SET temp_file_limit = '64kB'").unwrap();
    let given_up = rows(&mut session, "SELECT * FROM t ORDER BY c").map(|rows| rows.len());
    let error = given_up.unwrap_err();
    assert_eq!(error.sqlstate, "53400", "{error:?}");
    rows(&mut session, "ROLLBACK; SET temp_file_limit = -1").unwrap();
    let mut parsed = parse("SELECT * FROM t ORDER BY c").unwrap();
    let prepared = session.prepare(&parsed.remove(0), &[]).unwrap();
    let Execution::Rows(mut some) = session.execute(&prepared, Vec::new()).unwrap() else {
        panic!("a query yields rows")
    };
    assert_eq!(some.next_batch(10).unwrap().map(|batch| batch.row_count), Some(10));
    let spilled = server.engine().store().directory().join("spill");
    assert!(std::fs::read_dir(&spilled).unwrap().count() > 0);
    drop(some);
    assert_eq!(std::fs::read_dir(&spilled).unwrap().count(), 0);
}
