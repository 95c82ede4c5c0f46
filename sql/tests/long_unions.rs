//! Long UNION chains: chains of a thousand are executed; longer ones are rejected at any length.

use sql::EngineOptions;

use crate::server::Server;

fn chain(between: &str, count: usize) -> String {
    let parts: Vec<String> = (1..=count).map(|i| format!("select {}", i / 2)).collect();
    parts.join(between)
}

#[test]
fn thousand_unions_are_executed() {
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
fn longer_union_chains_are_rejected() {
    let mut server = Server::start(EngineOptions::default);
    for count in [1002, 5_000, 1_000_000] {
        let answer = server.run("s", &chain(" union all ", count));
        assert!(answer.contains("54001"), "{answer:.300}");
    }
}

/// Returns a chain of two alternating operators, which could lead to nested nodes.
fn alternating(operators: [&str; 2], count: usize, value: impl Fn(usize) -> String) -> String {
    let mut text = format!("select {}", value(0));
    for i in 1..=count {
        text.push_str(&format!(" {} select {}", operators[i % 2], value(i)));
    }
    text
}

#[test]
fn nested_union_chains_are_flattened_or_rejected() {
    let mut server = Server::start(EngineOptions::default);
    let number = |i: usize| i.to_string();
    for operators in [["union", "union all"], ["union all", "union"]] {
        let chain = alternating(operators, 1000, number);
        let answer = server.run("s", &format!("select 'rows: ' || count(*) from ({chain}) x"));
        assert!(answer.contains("rows: 1001"), "{answer:.300}");
    }
    // Each operator widens the type of one of many columns.
    let wide = |i: usize| {
        let one = |c| if c < i { "1::bigint".to_owned() } else { "1".to_owned() };
        (0..300).map(one).collect::<Vec<_>>().join(", ")
    };
    let chain = alternating(["union", "union"], 300, wide);
    assert!(server.run("s", &chain).contains("54001"));
    let chain = alternating(["union", "except"], 490, number);
    let answer = server.run("s", &chain);
    assert!(answer.contains("54001"), "{answer:.300}");
    let opened = "(".repeat(60);
    let level = format!("{})", " except select 1".repeat(200));
    let answer = server.run("s", &format!("{opened}select 1{}", level.repeat(60)));
    assert!(answer.contains("54001"), "{answer:.300}");
}
