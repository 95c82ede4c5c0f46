//! Planning time must be linear in the size of the statement.

use std::fmt::Write as _;
use std::fs;

use sql::parser::parse_statements;

use crate::queries::database::Database;

/// Callback that returns a statement of a given size.
type Statement = fn(usize) -> String;

/// Returns the CPU time of this thread in seconds, which excludes other threads.
fn time_on_processor() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// Returns the planning time of a statement. It is planned repeatedly, as the clock has a low
/// resolution.
fn planning_time(database: &Database, sql: &str) -> f64 {
    let parsed = parse_statements(sql).unwrap();
    let start = time_on_processor();
    for times in 1.. {
        database.plan(&parsed[0].statement, &[]).unwrap();
        let time = time_on_processor() - start;
        if time > 0.1 {
            return time / f64::from(times);
        }
    }
    unreachable!("time goes on")
}

fn list(count: usize, separator: &str, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<String>>().join(separator)
}

#[test]
fn planning_time_grows_linearly_with_statement() {
    let mut database = Database::default();
    let mut tables = String::from(
        "create table t (a int, b int, c int, d int, primary key (a, b));
         create index t_c on t (c); create index t_d on t (d, c) include (b);",
    );
    (0..40).for_each(|n| {
        let _ = write!(tables, "create table x{n} (id int primary key, v int);");
    });
    database.script(&tables);
    let statements: [(&str, usize, Statement); 5] = [
        ("items of a list", 1_000, |n| {
            format!("select * from t where c in ({}) and d > 0", list(n, ",", |i| i.to_string()))
        }),
        ("alternatives", 500, |n| {
            format!("select * from t where {}", list(n, " or ", |i| format!("c = {i}")))
        }),
        ("conditions", 200, |n| {
            let condition = |i| format!("t.c <> {i} and t.d + x0.v <> {i} and x0.v > {i}");
            format!("select * from t, x0 where t.a = x0.id and {}", list(n, " and ", condition))
        }),
        ("equalities", 200, |n| {
            let condition = |i| format!("t.c + {i} = x0.v and x0.v = t.d - {i}");
            format!("select * from t, x0 where {}", list(n, " and ", condition))
        }),
        ("tables", 10, |n| {
            let on = list(n - 1, " and ", |i| format!("x{i}.v = x{}.id", i + 1));
            format!("select * from {} where {on}", list(n, ",", |i| format!("x{i}")))
        }),
    ];
    let mut slow = Vec::new();
    for (what, count, statement) in statements {
        let (once, four): (f64, f64) =
            [count, 4 * count].map(|count| planning_time(&database, &statement(count))).into();
        println!("{what}: {count}: {:.2} ms, four times as many: {:.2} ms", once * 1e3, four * 1e3);
        if four > once * 9.0 {
            slow.push(format!("{what}: {once} s, then {four} s"));
        }
    }
    assert!(slow.is_empty(), "{}", slow.join("\n"));
}

#[test]
fn subplans_below_sorts_are_planned_once() {
    let mut database = Database::default();
    database.script("create table t (a int primary key, b int, c int); create index t_c on t (c);");
    let joined = (0..12).fold("select a, b from t".to_owned(), |query, n| {
        format!(
            "select t.a, x.b + {n} as b from t join ({query} limit 9) as x on x.b = t.c \
             order by t.b, x.b"
        )
    });
    let lateral = (0..12).fold("select a as k from t".to_owned(), |query, n| {
        format!(
            "select o{n}.a as k from t as o{n}, \
             lateral (select k from ({query}) as q where q.k > o{n}.b limit 5) as x \
             order by x.k, o{n}.b"
        )
    });
    let applied = (0..12).fold("select a as k from t".to_owned(), |query, n| {
        format!(
            "select o{n}.a as k from t as o{n} where o{n}.b > \
             all (select k from ({query}) as q where q.k <> o{n}.c limit 9) order by o{n}.b"
        )
    });
    for query in [joined, lateral, applied] {
        let time = planning_time(&database, &query);
        println!("{:.2} ms", time * 1e3);
        assert!(time < 0.1, "{time} s: {query}");
    }
}
