//! Huge values: statements over them end at their timeout, even within one function call;
//! expensive constants are not computed by PREPARE and EXPLAIN.

use sql::EngineOptions;

use crate::server::Server;

/// Each takes seconds; none may allocate its whole value.
const HUGE: &[&str] = &[
    "select length(repeat('abc', 330000000))",
    "select length(lpad('x', 260000000, 'ab'))",
    "select length(upper(repeat('abc', 330000000)))",
    "select length(replace(repeat('abc', 330000000), 'b', 'x'))",
    "select md5(repeat('abc', 330000000))",
    "select length(repeat('a', 500000000) || repeat('b', 500000000))",
    "select array_length(array_fill(1, array[100000000]), 1)",
    "select array_length(array_agg(i), 1) from generate_series(1, 100000000) i",
    "select length(string_agg(repeat('a', 100000000), ',')) from generate_series(1, 9)",
    "select jsonb_array_length(('[' || repeat('1,', 400000000) || '1]')::jsonb)",
    "select length(repeat('ab', 400000000)::bytea::text)",
    "select factorial(32000) * factorial(32000) is null",
    "select count(*) from string_to_table(repeat('a,', 400000000), ',')",
    "select repeat('x', 1000000000)",
    "values (repeat('x', 1000000000))",
    "select repeat('a', 300000000) ~ 'a*b'",
    "select repeat('a', 300000000) similar to 'a*b'",
    "select length(regexp_replace(repeat('a', 300000000), 'a+b', 'x'))",
    "select count(*) from regexp_split_to_table(repeat('a', 300000000), '[b-z]+')",
    "select case when length(repeat('x', 1000000000)) > 1 then 1 end",
];

#[test]
fn call_on_huge_value_respects_timeout() {
    let mut server = Server::start(EngineOptions::default);
    server.run("s", "set statement_timeout = 20");
    for statement in HUGE {
        let answer = server.run("s", statement);
        assert!(answer.contains("57014"), "{statement}: {answer:.200}");
    }
}

#[test]
fn huge_constants_are_not_folded_at_planning() {
    let mut server = Server::start(EngineOptions::default);
    server.run("s", "set statement_timeout = 5000");
    for statement in HUGE {
        for before in ["explain", "prepare p as"] {
            let answer = server.run("s", &format!("{before} {statement}"));
            assert!(!answer.contains("57014"), "{before} {statement}: {answer:.200}");
        }
        server.run("s", "deallocate p");
    }
    let answer = server.run("s", "create table t (a text default repeat('x', 1000000000))");
    assert!(!answer.contains("57014"), "{answer:.200}");
}
