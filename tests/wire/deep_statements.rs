//! Statements as deep as the limits allow have an answer, deeper ones are refused: the stack holds,
//! whatever of it one step of binding, planning or evaluation takes.

use crate::harness::TestServer;
use crate::raw::{Frames, Raw, sqlstate};

/// Parentheses within each other, each of them the left end of a chain.
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
fn deep_statements_have_an_answer_or_are_refused() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    raw.query("create table one (a int, b text); insert into one values (1, 'x')");
    let fit = [
        format!("select {}", nested(2, 249, " + 1", "1")),
        format!("select {}", nested(55, 8, " + 1", "1")),
        format!("select {} from one", nested(2, 245, " + 1", "a")),
        format!("select a from one where {} > 1", nested(2, 245, " + 1", "a")),
        format!("select {} from one", nested(2, 245, " || b", "b")),
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
        format!("select {}", nested(3, 249, " + 1", "1")),
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
