//! Tests of protocol portals and SQL cursors: they share one namespace, and each can be used as
//! the other.
//!
//! All answers are those of PostgreSQL 15.

use crate::harness::TestServer;
use crate::raw::{Frames, Message, Raw, kinds, rows, sqlstate};

const FIVE: &str = "SELECT g FROM generate_series(1, 5) AS g";

fn replies(raw: &mut Raw, frames: Frames) -> Vec<Message> {
    raw.send(&frames.sync().0);
    raw.until_ready()
}

/// Returns the first values of all rows, then the last command tag, or `s` if suspended.
fn outcome(messages: &[Message]) -> String {
    let mut parts: Vec<String> =
        rows(messages).into_iter().map(|row| row[0].clone().unwrap_or_default()).collect();
    parts.extend(messages.iter().filter_map(|message| match message.kind {
        b'C' => Some(message.tag()),
        b's' => Some("s".to_owned()),
        b'E' => message.field(b'C'),
        _ => None,
    }));
    parts.join(" ")
}

fn bound(portal: &str, sql: &str) -> Frames {
    Frames::new().parse("", sql).bind(portal, "", &[])
}

fn close(kind: u8, name: &str) -> Frames {
    Frames::new().frame(b'C', &[vec![kind], crate::raw::text(name)].concat())
}

#[test]
fn execute_reads_from_sql_cursor() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    raw.query("BEGIN");
    raw.query(&format!("DECLARE c CURSOR FOR {FIVE}"));
    let parts = Frames::new().describe(b'P', "c").execute("c", 2).execute("c", 2);
    let answer = replies(&mut raw, parts.execute("c", 2).execute("c", 2));
    assert_eq!(kinds(&answer), "TDDsDDsDCCZ");
    assert_eq!(outcome(&answer), "1 2 3 4 5 s s SELECT 1 SELECT 0");
    assert_eq!(outcome(&raw.query("FETCH ALL FROM c")), "FETCH 0");
    assert_eq!(outcome(&raw.query("FETCH PRIOR FROM c")), "5 FETCH 1");
    raw.query("CLOSE c");
    raw.query(&format!("DECLARE c SCROLL CURSOR FOR {FIVE}"));
    assert_eq!(outcome(&replies(&mut raw, Frames::new().execute("c", 2))), "1 2 s");
    assert_eq!(outcome(&raw.query("FETCH PRIOR FROM c")), "1 FETCH 1");
    assert_eq!(outcome(&replies(&mut raw, Frames::new().execute("c", 2))), "2 3 s");
    assert_eq!(outcome(&raw.query("MOVE ABSOLUTE 4 c")), "MOVE 1");
    assert_eq!(outcome(&replies(&mut raw, Frames::new().execute("c", 0))), "5 SELECT 1");
    // A protocol Close closes it, too.
    assert_eq!(kinds(&replies(&mut raw, close(b'P', "c"))), "3Z");
    assert_eq!(outcome(&raw.query("FETCH c")), "34000");
    raw.query("ROLLBACK");
    // A cursor WITH HOLD outlives its transaction.
    raw.query(&format!("DECLARE h CURSOR WITH HOLD FOR {FIVE}"));
    assert_eq!(outcome(&replies(&mut raw, Frames::new().execute("h", 2))), "1 2 s");
    assert_eq!(outcome(&replies(&mut raw, Frames::new().execute("h", 1))), "3 s");
    assert_eq!(kinds(&replies(&mut raw, close(b'P', "h"))), "3Z");
    assert_eq!(outcome(&raw.query("FETCH h")), "34000");
    // More rows than one batch.
    raw.query("BEGIN");
    raw.query("DECLARE c CURSOR FOR SELECT g FROM generate_series(1, 5000) AS g");
    let answer = replies(&mut raw, Frames::new().execute("c", 2048).execute("c", 0));
    assert_eq!(rows(&answer).len(), 5_000);
    assert!(outcome(&answer).ends_with("s SELECT 2952"));
}

#[test]
fn cursors_and_portals_share_name_space() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    for (first, second) in [(true, false), (false, true), (false, false)] {
        raw.query("BEGIN");
        let mut open = |is_cursor: bool| match is_cursor {
            true => raw.query(&format!("DECLARE c CURSOR FOR {FIVE}")),
            false => replies(&mut raw, bound("c", FIVE)),
        };
        assert_eq!(sqlstate(&open(first)), None);
        let answer = open(second);
        assert_eq!(sqlstate(&answer).as_deref(), Some("42P03"));
        let error = answer.iter().find(|message| message.kind == b'E').unwrap();
        assert_eq!(error.field(b'M').unwrap(), "cursor \"c\" already exists");
        raw.query("ROLLBACK");
    }
}

#[test]
fn fetch_reads_from_portal() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    raw.query("CREATE TABLE t (a int)");
    raw.query("BEGIN");
    assert_eq!(outcome(&replies(&mut raw, bound("p", FIVE).execute("p", 2))), "1 2 s");
    let fetched = raw.query("FETCH 2 FROM p");
    assert_eq!(kinds(&fetched), "TDDCZ");
    assert_eq!(outcome(&fetched), "3 4 FETCH 2");
    assert_eq!(outcome(&replies(&mut raw, Frames::new().execute("p", 0))), "5 SELECT 1");
    assert_eq!(outcome(&raw.query("FETCH 2 FROM p")), "FETCH 0");
    let prior = raw.query("FETCH PRIOR FROM p");
    assert_eq!(sqlstate(&prior).as_deref(), Some("55000"));
    raw.query("ROLLBACK");
    // A portal that was not executed yet.
    raw.query("BEGIN");
    replies(&mut raw, bound("p", FIVE));
    assert_eq!(outcome(&raw.query("FETCH 2 FROM p")), "1 2 FETCH 2");
    assert_eq!(outcome(&raw.query("MOVE 1 FROM p")), "MOVE 1");
    assert_eq!(outcome(&replies(&mut raw, Frames::new().execute("p", 1))), "4 s");
    assert_eq!(outcome(&raw.query("CLOSE p")), "CLOSE CURSOR");
    let gone = replies(&mut raw, Frames::new().execute("p", 1));
    assert_eq!(sqlstate(&gone).as_deref(), Some("34000"));
    raw.query("ROLLBACK");
    // Portals that change data, and others.
    raw.query("BEGIN");
    replies(&mut raw, bound("p", "INSERT INTO t VALUES (1), (2), (3) RETURNING a"));
    assert_eq!(outcome(&raw.query("FETCH 2 FROM p")), "1 2 FETCH 2");
    assert_eq!(outcome(&raw.query("SELECT count(*) FROM t")), "3 SELECT 1");
    replies(&mut raw, bound("q", "SHOW lock_timeout"));
    assert_eq!(outcome(&raw.query("FETCH 2 FROM q")), "0 FETCH 1");
    replies(&mut raw, bound("r", "INSERT INTO t VALUES (1)"));
    assert!(sqlstate(&raw.query("FETCH r")).is_some());
    raw.query("ROLLBACK");
}

#[test]
fn pg_cursors_lists_cursors_and_portals() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    raw.query("BEGIN");
    raw.query("DECLARE c SCROLL CURSOR FOR SELECT 1");
    replies(&mut raw, bound("p", "SELECT 2"));
    let list = "SELECT name || ':' || statement || ':' || is_scrollable FROM pg_cursors ORDER BY 1";
    let expected = ["c:DECLARE c SCROLL CURSOR FOR SELECT 1:true", "p:SELECT 2:false"];
    assert_eq!(outcome(&raw.query(list)), format!("{} SELECT 2", expected.join(" ")));
    let own = rows(&replies(&mut raw, bound("", list).execute("", 0)));
    assert_eq!(own.len(), 3, "a portal without a name is one: {own:?}");
    raw.query("CLOSE ALL");
    assert_eq!(outcome(&raw.query("SELECT count(*) FROM pg_cursors")), "0 SELECT 1");
    assert_eq!(
        sqlstate(&replies(&mut raw, Frames::new().execute("p", 0))).as_deref(),
        Some("34000")
    );
    raw.query("ROLLBACK");
    replies(&mut raw, bound("p", "SELECT 2"));
    assert_eq!(outcome(&raw.query("SELECT count(*) FROM pg_cursors")), "0 SELECT 1");
}

#[test]
fn portal_is_closed_by_rollback_to_earlier_savepoint() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    raw.query("BEGIN");
    replies(&mut raw, bound("before", FIVE).execute("before", 1));
    raw.query("SAVEPOINT s");
    replies(&mut raw, bound("behind", FIVE).execute("behind", 1));
    raw.query("SELECT 1 / 0");
    let refused = |answer: &[Message]| assert_eq!(sqlstate(answer).as_deref(), Some("25P02"));
    refused(&replies(&mut raw, Frames::new().describe(b'P', "before")));
    refused(&replies(&mut raw, Frames::new().execute("before", 1)));
    refused(&raw.query("FETCH before"));
    raw.query("ROLLBACK TO s");
    assert_eq!(outcome(&replies(&mut raw, Frames::new().execute("before", 1))), "2 s");
    let gone = replies(&mut raw, Frames::new().execute("behind", 1));
    assert_eq!(sqlstate(&gone).as_deref(), Some("34000"));
    raw.query("ROLLBACK");
    // A failed portal exists, but cannot be executed.
    raw.query("BEGIN; SAVEPOINT s");
    let fails = "SELECT 1 / (3 - g) FROM generate_series(1, 5) AS g";
    let failed = replies(&mut raw, bound("fails", fails).execute("fails", 0));
    assert_eq!(sqlstate(&failed).as_deref(), Some("22012"));
    refused(&replies(&mut raw, Frames::new().execute("fails", 1)));
    raw.query("ROLLBACK");
    // Bind of statements that were prepared before the block failed.
    replies(&mut raw, Frames::new().parse("five", FIVE).parse("back", "ROLLBACK"));
    raw.query("BEGIN; SELECT 1 / 0");
    refused(&replies(&mut raw, Frames::new().bind("", "five", &[])));
    refused(&replies(&mut raw, Frames::new().describe(b'S', "five")));
    let back = replies(&mut raw, Frames::new().bind("", "back", &[]).execute("", 0));
    assert_eq!(kinds(&back), "2CZ");
}

#[test]
fn utility_statements_with_query_accept_parameters() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    raw.query("BEGIN");
    let sql = "DECLARE c CURSOR FOR SELECT g, $2 FROM generate_series(1, $1) AS g";
    let frames = Frames::new().parse("d", sql).describe(b'S', "d");
    let answer = replies(&mut raw, frames.bind("", "d", &[Some("3"), Some("x")]).execute("", 0));
    assert_eq!(kinds(&answer), "1tn2CZ");
    assert_eq!(
        answer[1].body,
        [&[0, 2][..], &23_u32.to_be_bytes(), &25_u32.to_be_bytes()].concat()
    );
    let x = |g: &str| vec![Some(g.to_owned()), Some("x".to_owned())];
    assert_eq!(rows(&raw.query("FETCH ALL c")), [x("1"), x("2"), x("3")]);
    raw.query("ROLLBACK");
    raw.query("BEGIN");
    let simple = raw.query(sql);
    assert_eq!(sqlstate(&simple).as_deref(), Some("42P02"));
    raw.query("ROLLBACK");
    let create = Frames::new().parse("", "CREATE TABLE t AS SELECT $1::int AS a, $2 AS b");
    let create = create.describe(b'S', "").bind("", "", &[Some("3"), Some("y")]).execute("", 0);
    let answer = replies(&mut raw, create);
    assert_eq!((kinds(&answer).as_str(), outcome(&answer).as_str()), ("1tn2CZ", "SELECT 1"));
    assert_eq!(rows(&raw.query("SELECT * FROM t")), [[Some("3".to_owned()), Some("y".to_owned())]]);
    let explain = Frames::new().parse("", "EXPLAIN ANALYZE DELETE FROM t WHERE a = $1");
    let answer = replies(&mut raw, explain.bind("", "", &[Some("3")]).execute("", 0));
    assert_eq!(sqlstate(&answer), None);
    assert_eq!(outcome(&raw.query("SELECT count(*) FROM t")), "0 SELECT 1");
}

#[test]
fn empty_prepared_statements_are_deallocated() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    for forget in ["DEALLOCATE e", "DEALLOCATE ALL", "DISCARD ALL"] {
        assert_eq!(kinds(&replies(&mut raw, Frames::new().parse("e", ""))), "1Z");
        let twice = replies(&mut raw, Frames::new().parse("e", "SELECT 1"));
        assert_eq!(sqlstate(&twice).as_deref(), Some("42P05"));
        assert_eq!(sqlstate(&raw.query(forget)), None, "{forget}");
        let gone = replies(&mut raw, Frames::new().bind("", "e", &[]));
        assert_eq!(sqlstate(&gone).as_deref(), Some("26000"), "{forget}");
    }
}
