//! EXPLAIN (ANALYZE, BUFFERS): read statistics of the session thread and of region threads.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use sql::EngineOptions;

use crate::server::{Server, rows};

fn explained(server: &Server, query: &str) -> Vec<String> {
    let mut session = server.session();
    let mut lines = Vec::new();
    let text = format!("explain (analyze, buffers, timing off) {query}");
    rows(&mut session, &text, &mut |row| lines.push(row)).unwrap();
    lines
}

/// Returns the number after a name, in the first line that has it.
fn counter(lines: &[String], name: &str) -> u64 {
    let mut found = lines.iter().filter_map(|line| line.split_once(name));
    let digits = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>();
    found.next().map_or(0, |(_, rest)| digits(rest).parse().unwrap())
}

#[test]
fn explain_counts_blocks_and_files() {
    let mut server = Server::start(EngineOptions::default);
    server.run("s", "create table t (a int primary key, b text) split on (10000, 20000)");
    for part in ["1, 30000, 2", "2, 30000, 2"] {
        server.run(
            "s",
            &format!("insert into t select g, repeat('x', 50) from generate_series({part}) g"),
        );
        server.run("s", "flush t");
    }
    let all = explained(&server, "select count(b) from t");
    let blocks = counter(&all, "hit=") + counter(&all, "read=");
    assert!(blocks > 30, "{all:?}");
    assert_eq!(counter(&all, "Cells: "), 30_000, "{all:?}");
    let of_regions: Vec<&String> = all.iter().filter(|line| line.starts_with("Region ")).collect();
    let rows = of_regions.iter().map(|line| counter(&[line.to_string()], "rows="));
    assert_eq!(rows.collect::<Vec<_>>(), [9_999, 10_000, 10_001], "{all:?}");
    let in_regions =
        |name: &str| of_regions.iter().map(|line| counter(&[line.to_string()], name)).sum::<u64>();
    assert_eq!(in_regions("hit=") + in_regions("read="), blocks, "{all:?}");
    assert_eq!(in_regions("Cells: "), 30_000, "{all:?}");
    let again = explained(&server, "select count(b) from t");
    assert_eq!(counter(&again, "read="), 0, "{again:?}");
    assert!(counter(&again, "hit=") > 30, "{again:?}");
    let in_session = explained(&server, "select b from t where b <> 'y'");
    assert!(counter(&in_session, "hit=") > 30, "{in_session:?}");
    // Odd keys are only in the first file, which the Bloom filter of the second one excludes.
    let point = explained(&server, "select b from t where a = 15001");
    assert!((1..=4).contains(&counter(&point, "hit=")), "{point:?}");
    assert_eq!(counter(&point, "filter="), 1, "{point:?}");
    let region = point.iter().find(|line| line.starts_with("Region ")).unwrap();
    assert!(region.ends_with("Cells: 1, Files skipped: filter=1"), "{point:?}");
    assert_eq!(counter(&point, "Cells: "), 1, "{point:?}");
    let plain = explained(&server, "select 1");
    assert!(!plain.iter().any(|line| line.contains("Buffers")), "{plain:?}");
}

/// The checks of an INSERT and of a reference need one cell of the row, of however many it has.
#[test]
fn existence_of_a_row_is_read_from_one_cell() {
    let mut server = Server::start(EngineOptions::default);
    let columns: Vec<String> = (1..=200).map(|number| format!("c{number} int default 1")).collect();
    let columns = columns.join(", ");
    server.run("s", &format!("create table w (id int primary key, {columns}) storage = cell"));
    server.run("s", "create table r (w int references w)");
    server.run("s", "insert into w (id) values (1)");
    server.run("s", "flush w");
    let cells = |statement: &str| counter(&explained(&server, statement), "Cells: ");
    assert_eq!(cells("select * from w where id = 1"), 201);
    for insert in [
        "insert into w (id) values (1) on conflict do nothing",
        "insert into w (id) select 1 on conflict (id) do nothing",
        "insert into r values (1)",
    ] {
        let read = cells(insert);
        assert!((1..=8).contains(&read), "{insert}: {read}");
    }
}
