//! Replanning of prepared statements when table sizes change, and persistence of statistics.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::sync::Arc;

use sql::EngineOptions;
use sql::catalog::name::ObjectName;
use sql::session::{Execution, PreparedStatement, Session, parse};

use crate::server::{Server, rows};

fn run(session: &mut Session, text: &str) {
    rows(session, text, &mut drop).unwrap();
}

fn execute(session: &mut Session, prepared: &Arc<PreparedStatement>) -> usize {
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
fn prepared_join_is_replanned_after_table_growth() {
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
fn repeated_query_text_reuses_plan_until_ddl() {
    let server = Server::start(EngineOptions::default);
    let mut session = server.session();
    run(&mut session, "create table t (id int primary key); insert into t values (1), (2)");
    let text = "select * from t";
    let send = |session: &mut Session| {
        let (prepared, cached) = match session.cached(text) {
            Some(prepared) => (prepared, true),
            None => (session.prepare(&parse(text).unwrap()[0], &[]).unwrap(), false),
        };
        if !cached {
            session.cache_plan(text, &prepared);
        }
        assert_eq!(execute(session, &prepared), 2);
        (cached, prepared.columns.as_ref().unwrap().len())
    };
    let sent: Vec<_> = (0..4).map(|_| send(&mut session)).collect();
    assert_eq!(sent, [(false, 1), (false, 1), (true, 1), (true, 1)]);
    run(&mut session, "alter table t add column b int");
    assert_eq!([send(&mut session), send(&mut session)], [(false, 2), (true, 2)]);
    run(&mut session, "begin; alter table t add column c int");
    assert_eq!(send(&mut session), (false, 3), "a transaction's own catalog");
    run(&mut session, "rollback");
    assert_eq!(send(&mut session), (false, 2));
    run(&mut session, "discard all");
    assert_eq!(send(&mut session), (false, 2));
}

#[test]
fn auto_analyze_processes_changed_tables() {
    let server = Server::start(EngineOptions::default);
    let mut session = server.session();
    run(
        &mut session,
        "create table t (a int primary key); create table little (a int primary key)",
    );
    assert_eq!(session.analyze_due().unwrap(), 0, "there is nothing to see");
    run(&mut session, "insert into t select * from generate_series(1, 1000)");
    run(&mut session, "insert into little values (1), (2)");
    assert_eq!(session.analyze_due().unwrap(), 1);
    assert_eq!(session.analyze_due().unwrap(), 0, "nothing has changed");
    run(&mut session, "insert into t select * from generate_series(1001, 1100)");
    assert_eq!(session.analyze_due().unwrap(), 0, "a tenth, and fifty rows, may change");
    run(&mut session, "insert into t select * from generate_series(1101, 1200)");
    assert_eq!(session.analyze_due().unwrap(), 1);
    let table = server.engine().catalog().table_named(&ObjectName::public("t")).unwrap().id;
    assert_eq!(server.engine().catalog().statistics(table).unwrap().rows, 1200);
}

#[test]
fn analyze_statistics_determine_access_path() {
    let server = Server::start(EngineOptions::default);
    let mut session = server.session();
    run(
        &mut session,
        "create table t (id int primary key, status text, customer int, at int, note text);
         insert into t select g, case when g % 100 = 0 then 'rare' else 'common' end, g % 1000, g, 'x'
         from generate_series(1, 20000) g;
         create index by_status on t (status);
         create index by_customer on t (customer);
         create index by_at on t (at)",
    );
    let cases = [
        ("status = 'common'", "full scan"),
        ("status = 'rare'", "by_status"),
        ("status = 'common' and customer = 7", "by_customer"),
        ("at > 100", "full scan"),
        ("at > 19900", "by_at"),
        ("at > $1", "by_at"),
        ("status = 'rare' and at > 10000", "by_status"),
        ("id = 5 and status = 'rare'", "point get"),
        ("true order by at limit 10", "by_at"),
        ("status = 'common' order by at limit 10", "by_at"),
        ("status = 'rare' order by at limit 10", "by_status"),
    ];
    let path = |session: &mut Session, condition: &str| {
        let query = format!("select note from t where {condition}");
        let prepared = session.prepare(&parse(&query).unwrap()[0], &[]).unwrap();
        prepared.summary().unwrap()
    };
    let by_rule = path(&mut session, "status = 'common'");
    assert!(by_rule.contains("by_status"), "{by_rule}");
    run(&mut session, "analyze t");
    for (condition, wanted) in cases {
        let summary = path(&mut session, condition);
        assert!(summary.contains(wanted), "{condition}: {summary}");
    }
    let hinted = "select /*+ INDEX(t by_status) */ note from t where status = 'common'";
    let prepared = session.prepare(&parse(hinted).unwrap()[0], &[]).unwrap();
    assert!(prepared.summary().unwrap().contains("by_status"));
}

#[test]
fn statistics_survive_restart_and_drop_with_table() {
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
