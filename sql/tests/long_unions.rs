//! Chains of a thousand UNIONs have an answer; longer ones are refused, of whatever length.

use sql::EngineOptions;

use crate::server::Server;

fn chain(between: &str, count: usize) -> String {
    let parts: Vec<String> = (1..=count).map(|i| format!("select {}", i / 2)).collect();
    parts.join(between)
}

#[test]
fn a_thousand_unions_have_an_answer() {
    let mut server = Server::start(EngineOptions::default);
    for (between, rows) in [(" union all ", 1001), (" union ", 501)] {
        let statement = format!("select 'rows: ' || count(*) from ({}) x", chain(between, 1001));
        let answer = server.run("s", &statement);
        assert!(answer.contains(&format!("rows: {rows}")), "{answer:.300}");
        server.run("s", &format!("prepare p as {statement}"));
        let answer = server.run("s", "execute p");
        assert!(answer.contains(&format!("rows: {rows}")), "{answer:.300}");
        server.run("s", "deallocate p");
    }
    let mixed = [" union all ", " union "].map(|between| chain(between, 400)).join(" union all ");
    let answer = server.run("s", &format!("select 'rows: ' || count(*) from ({mixed}) x"));
    assert!(answer.contains("rows: 201"), "{answer:.300}");
}

#[test]
fn longer_ones_are_refused() {
    let mut server = Server::start(EngineOptions::default);
    for count in [1002, 5_000, 1_000_000] {
        let answer = server.run("s", &chain(" union all ", count));
        assert!(answer.contains("54001"), "{answer:.300}");
    }
}
