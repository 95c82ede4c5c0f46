//! Prepared statements follow the size of their tables; statistics are kept.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::sync::Arc;

use sql::EngineOptions;
use sql::session::{Execution, Prepared, Session, parse};

use crate::server::{Server, rows};

fn run(session: &mut Session, text: &str) {
    rows(session, text, &mut drop).unwrap();
}

fn execute(session: &mut Session, prepared: &Arc<Prepared>) -> usize {
    let Execution::Rows(mut rows) = session.execute(prepared, Vec::new()).unwrap() else {
        panic!("it is a query")
    };
    let mut count = 0;
    while let Some(batch) = rows.next_batch(1_000).unwrap() {
        count += batch.row_count;
    }
    drop(rows);
    session.end_implicit().unwrap();
    count
}

#[test]
fn a_join_of_empty_tables_is_planned_again_when_they_have_grown() {
    let server = Server::start(EngineOptions::default);
    let mut session = server.session();
    run(
        &mut session,
        "create table little (id int primary key, big_id int);
         create table big (id int primary key, v int);
         insert into little values (1, 7), (2, 8)",
    );
    let query = "select l.id, b.v from little l join big b on b.id = l.big_id";
    let prepared = session.prepare(&parse(query).unwrap()[0], &[]).unwrap();
    assert_eq!(execute(&mut session, &prepared), 0);
    let small = prepared.summary().unwrap();
    assert!(small.contains("Hash join"), "{small}");
    run(&mut session, "insert into big select g, g from generate_series(1, 500) g");
    assert_eq!(execute(&mut session, &prepared), 2);
    assert_eq!(prepared.summary().unwrap(), small, "a little more is nothing");
    run(&mut session, "insert into big select g, g from generate_series(501, 5000) g");
    assert_eq!(execute(&mut session, &prepared), 2);
    let large = prepared.summary().unwrap();
    assert!(large.contains("Lookup join"), "{large}");
}

#[test]
fn statistics_outlive_a_restart_and_go_with_their_table() {
    let mut server = Server::start(EngineOptions::default);
    let create = "create table t (a int primary key, b int)";
    server.run("s", create);
    server.run("s", "insert into t select g, g % 4 from generate_series(1, 40000) g");
    server.run("s", "analyze t");
    let query = "select column_name, rows, null_fraction, distinct_values, most_common_values
                 from bennu.statistics order by 1";
    let shown = server.run("s", query);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], "a|40000|0|40000|NULL", "{shown}");
    assert!(lines[1].starts_with("b|40000|0|4|("), "{shown}");
    server.restart();
    assert_eq!(server.run("s", query), shown);
    server.run("s", "drop table t");
    server.run("s", create);
    assert!(!server.run("s", query).contains("40000"));
    server.restart();
    assert!(!server.run("s", query).contains("40000"));
}
