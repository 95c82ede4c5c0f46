//! Large statements: they are executed or rejected, without a crash of the server.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use sql::EngineOptions;

use crate::server::Server;

type Statement = fn(usize) -> String;

/// Statements with `n` parts, each of which is a node of the plan.
const DEEP: &[(&str, Statement)] = &[
    ("entries of FROM", |n| format!("SELECT count(*) FROM {}", list(n, "(VALUES (#)) v#", ", "))),
    ("LATERAL", |n| {
        format!("SELECT count(*) FROM d {}", list(n, ", LATERAL (SELECT a + #) l#", ""))
    }),
    ("subqueries", |n| format!("SELECT {}", list(n, "(SELECT a + # FROM d)", ", "))),
    ("correlated ones", |n| {
        format!(
            "SELECT 1 FROM d WHERE {}",
            list(n, "EXISTS (SELECT FROM d x WHERE a <> d.a + #)", " OR ")
        )
    }),
    ("windows", |n| format!("SELECT {} FROM d", list(n, "sum(a) OVER (ORDER BY a + #)", ", "))),
    ("rows with subqueries", |n| format!("VALUES {}", list(n, "((SELECT a + # FROM d))", ", "))),
    ("queries of WITH", |n| {
        format!("WITH {} SELECT * FROM c1", list(n, "c# AS MATERIALIZED (SELECT #)", ", "))
    }),
    ("one of the other", |n| {
        let chain = list(n - 1, "c# AS (SELECT x + 1 AS x FROM c~)", ", ");
        format!("WITH c0 AS (SELECT 1 AS x), {chain} SELECT * FROM c{}", n - 1)
    }),
    ("one of the other, twice", |n| {
        let chain = list(n - 1, "c# AS (SELECT 1 / nullif(x, 0) + x AS x FROM c~)", ", ");
        format!("WITH c0 AS (SELECT a AS x FROM d), {chain} SELECT * FROM c{}", n - 1)
    }),
];

/// Lists with `n` entries.
const WIDE: &[(&str, Statement)] = &[
    ("a select list", |n| format!("SELECT {}", list(n, "#", ", "))),
    ("VALUES", |n| format!("VALUES ({})", list(n, "#", ", "))),
    ("RETURNING", |n| format!("INSERT INTO d VALUES (2) RETURNING {}", list(n, "#", ", "))),
    ("ORDER BY", |n| format!("SELECT FROM d ORDER BY {}", list(n, "a + #", ", "))),
    ("GROUP BY", |n| format!("SELECT FROM d GROUP BY {}", list(n, "a + #", ", "))),
];

/// Returns a list of parts, in which `#` is the number of the part and `~` the number before.
fn list(count: usize, part: &str, between: &str) -> String {
    let part = |number: usize| {
        part.replace('#', &number.to_string()).replace('~', &(number - 1).to_string())
    };
    (1..=count).map(part).collect::<Vec<_>>().join(between)
}

#[test]
fn large_statements_run_or_are_rejected() {
    let run = || {
        let mut server = Server::start(EngineOptions::default);
        server.run("s", "CREATE TABLE d (a int); INSERT INTO d VALUES (1)");
        for (what, statement) in DEEP {
            assert!(!server.run("s", &statement(300)).contains("error"), "{what}");
            for count in [1_001, 5_000] {
                let refused = server.run("s", &statement(count));
                assert!(
                    refused.starts_with("error 54001: stack depth limit"),
                    "{what}: {refused:.200}"
                );
            }
        }
        for (what, statement) in WIDE {
            assert!(!server.run("s", &statement(1_664)).contains("error"), "{what}");
            let refused = server.run("s", &statement(1_665));
            let message = "error 54011: target lists can have at most 1664 entries\n";
            assert_eq!(refused, message, "{what}");
        }
    };
    // Stack size of connection threads in a debug build.
    let thread = std::thread::Builder::new().stack_size(256 << 20).spawn(run).unwrap();
    thread.join().unwrap();
}
