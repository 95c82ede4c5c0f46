//! Tests of nesting limits: statements as deep as the limits are answered, deeper ones rejected,
//! without a stack overflow in any phase of binding, planning or evaluation.

use crate::harness::TestServer;
use crate::raw::{Frames, Raw, sqlstate};

/// Returns nested parentheses, each of which is the left end of a chain of operators.
fn nested(levels: usize, operators: usize, operator: &str, innermost: &str) -> String {
    let around = |inside: String, _| format!("({inside}){}", operator.repeat(operators));
    (0..levels).fold(innermost.to_owned(), around)
}

fn queries(operator: &str, count: usize) -> String {
    format!("select 1 {}", format!("{operator} select 2 ").repeat(count))
}

fn joins(prefix: char, count: usize) -> String {
    (0..count).map(|i| format!(" cross join one as {prefix}{i}")).collect()
}

#[test]
fn deep_statements_run_or_are_rejected() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    raw.query("create table one (a int, b text); insert into one values (1, 'x')");
    let fit = [
        format!("select 1{}", " + 1".repeat(1_000)),
        format!("select {}", nested(2, 499, " + 1", "1")),
        format!("select {}", nested(55, 17, " + 1", "1")),
        format!("select {} from one", nested(2, 495, " + 1", "a")),
        format!("select a from one where {} > 1", nested(2, 495, " + 1", "a")),
        format!("select {} from one", nested(2, 495, " || b", "b")),
        format!("select a{} from one", "::bigint::int".repeat(500)),
        format!("select now(){}", " at time zone 'utc'".repeat(1_000)),
        format!("select a from one where a = 0{}", " or a = 1 and b = 'x'".repeat(20_000)),
        format!("select a from one where a in (0{})", ", 1".repeat(30_000)),
        format!("select count(*) from (values (1, 'x'){}) as v", ", (2, 'y')".repeat(20_000)),
        format!("select {}1{}", "case when true then ".repeat(60), " end".repeat(60)),
        format!("select * from {}one{}", "(select * from ".repeat(60), ") as x".repeat(60)),
        queries("except", 249),
        format!("({}) {}", queries("except", 240), "except select 3 ".repeat(240)),
        queries("intersect select 1 union", 240),
        format!("select count(*) from (one as z{}){}", joins('a', 240), joins('b', 240)),
    ];
    for statement in fit {
        let answer = raw.query(&statement);
        assert_eq!(sqlstate(&answer), None, "{statement:.60}");
        let frames = Frames::new().parse("", &statement).bind("", "", &[]).describe(b'P', "");
        raw.send(&frames.execute("", 0).sync().0);
        assert_eq!(sqlstate(&raw.until_ready()), None, "{statement:.60}");
    }
    let refused = [
        format!("select {}", nested(60, 200, " + 1", "1")),
        format!("select {}", nested(3, 499, " + 1", "1")),
        format!("select 1{}", " + 1".repeat(1_000_000)),
        queries("except", 100_000),
    ];
    for statement in refused {
        assert_eq!(sqlstate(&raw.query(&statement)).as_deref(), Some("54001"), "{statement:.60}");
        raw.send(&Frames::new().parse("", &statement).sync().0);
        let answer = sqlstate(&raw.until_ready());
        assert_eq!(answer.as_deref(), Some("54001"), "{statement:.60}");
    }
}

#[test]
fn stored_expressions_may_be_deep() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    let sum = format!("a{}", " + a".repeat(900));
    let script = [
        format!("create table deep (a int, check ({sum} > 1))"),
        format!("alter table deep add s int generated always as ({sum}) stored"),
        format!("create index on deep (({sum}))"),
        format!("create view seen as select {sum} as s from deep where {sum} > 1"),
        format!("create function f (a int) returns int language sql as 'select 1; select {sum}'"),
        "create function g (n int) returns int language sql as \
         'select 1; select case when n > 300 then f(n) else g(n + 1) end'"
            .to_owned(),
        "insert into deep (a) select generate_series(1, 20)".to_owned(),
        "update deep set a = a + 1".to_owned(),
        format!("select * from deep where {sum} = 901 * 3"),
        "select pg_get_viewdef('seen'), sum(s) from seen".to_owned(),
        "select g(1)".to_owned(),
    ];
    for statement in script {
        assert_eq!(sqlstate(&raw.query(&statement)), None, "{statement:.60}");
    }
}
