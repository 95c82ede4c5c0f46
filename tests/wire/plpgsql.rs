//! Tests of PL/pgSQL over the wire: notices, errors, and cancellation.

use std::time::Duration;

use crate::harness::{TestServer, connect};
use crate::raw::{Frames, Raw, kinds, rows, sqlstate};

#[test]
fn notices_have_their_severity_and_fields() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    let answer = raw.query(
        "DO $$ BEGIN RAISE NOTICE 'one %', 1; RAISE WARNING USING MESSAGE = 'two', DETAIL = 'd', \
         HINT = 'h', ERRCODE = 'unique_violation', TABLE = 't', COLUMN = 'c'; RAISE DEBUG 'no'; \
         RAISE INFO 'i'; END $$",
    );
    assert_eq!(kinds(&answer), "NNNCZ");
    let field = |at: usize, code: u8| answer[at].field(code);
    assert_eq!(field(0, b'S').as_deref(), Some("NOTICE"));
    assert_eq!(field(0, b'C').as_deref(), Some("00000"));
    assert_eq!(field(0, b'M').as_deref(), Some("one 1"));
    let context = "PL/pgSQL function inline_code_block line 1 at RAISE";
    assert_eq!(field(0, b'W').as_deref(), Some(context));
    assert_eq!(field(1, b'S').as_deref(), Some("WARNING"));
    let all: Vec<String> = [b'C', b'M', b'D', b'H', b't', b'c']
        .into_iter()
        .filter_map(|code| field(1, code))
        .collect();
    assert_eq!(all, ["23505", "two", "d", "h", "t", "c"]);
    assert_eq!(field(2, b'S').as_deref(), Some("INFO"));
    assert_eq!(answer[3].tag(), "DO");
}

#[test]
fn error_context_names_statement_of_body() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    let answer = raw.query("DO $$\nBEGIN\n  PERFORM nowhere;\nEND $$");
    let error = answer.iter().find(|message| message.kind == b'E').expect("an error");
    assert_eq!(error.field(b'C').as_deref(), Some("42703"));
    assert_eq!(error.field(b'q').as_deref(), Some("SELECT nowhere"));
    assert_eq!(error.field(b'p').as_deref(), Some("8"));
    assert_eq!(error.field(b'P'), None);
    let context = "PL/pgSQL function inline_code_block line 3 at PERFORM";
    assert_eq!(error.field(b'W').as_deref(), Some(context));
    let answer = raw.query("DO $$ BEGIN IF true RETURN; END IF; END $$");
    let error = answer.iter().find(|message| message.kind == b'E').expect("an error");
    assert_eq!(error.field(b'C').as_deref(), Some("42601"));
    assert_eq!(error.field(b'P').as_deref(), Some("27"));
}

#[test]
fn exception_block_rolls_back_ddl_and_settings() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    let answer = raw.query(
        "DO $$ BEGIN \
         BEGIN CREATE TABLE gone (a int); SET application_name = 'gone'; RAISE EXCEPTION 'x'; \
         EXCEPTION WHEN OTHERS THEN CREATE TABLE stays (a int); END; END $$",
    );
    assert_eq!(kinds(&answer), "CZ");
    let query = "SELECT to_regclass('gone')::text, to_regclass('stays')::text, \
                 current_setting('application_name')";
    let row = rows(&raw.query(query)).remove(0);
    assert_eq!(row, [None, Some("stays".to_owned()), Some(String::new())]);
}

#[test]
fn procedure_commit_is_permanent() {
    let server = TestServer::start();
    let (mut raw, mut other) = (Raw::login(server.address()), Raw::login(server.address()));
    raw.query("CREATE TABLE t (a int)");
    raw.query(
        "CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (1); COMMIT; \
         INSERT INTO t VALUES (2); RAISE EXCEPTION 'end'; END $$",
    );
    assert_eq!(sqlstate(&raw.query("CALL p()")).as_deref(), Some("P0001"));
    let one = [[Some("1".to_owned())]];
    assert_eq!(rows(&other.query("SELECT a FROM t")), one);
    assert_eq!(sqlstate(&raw.query("BEGIN; CALL p()")).as_deref(), Some("2D000"));
    raw.query("ROLLBACK");
    assert_eq!(rows(&raw.query("SELECT a FROM t")), one);
}

#[tokio::test]
async fn loops_respect_cancel_and_timeout() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    let token = client.cancel_token();
    let endless = async { client.batch_execute("DO $$ BEGIN LOOP END LOOP; END $$").await };
    tokio::pin!(endless);
    // An early cancel request has no effect, so it is repeated.
    let error = loop {
        tokio::select! {
            result = &mut endless => break result.unwrap_err(),
            () = tokio::time::sleep(Duration::from_millis(20)) => {
                token.cancel_query(tokio_postgres::NoTls).await.unwrap();
            }
        }
    };
    assert_eq!(error.code().map(|code| code.code()), Some("57014"));
    let body = "SET statement_timeout = '50ms'; \
                DO $$ BEGIN LOOP BEGIN PERFORM 1; EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; \
                END $$";
    let error = client.batch_execute(body).await.unwrap_err();
    assert_eq!(error.code().map(|code| code.code()), Some("57014"));
    let message = error.as_db_error().map(|error| error.message().to_owned());
    assert_eq!(message.as_deref(), Some("canceling statement due to statement timeout"));
}

#[test]
fn notices_are_sent_when_raised() {
    let server = TestServer::start();
    let mut other = Raw::login(server.address());
    let mut raw = Raw::login(server.address());
    raw.query(
        "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'waits'; \
         PERFORM pg_advisory_lock(1); PERFORM pg_advisory_unlock(1); RAISE NOTICE 'goes on'; \
         RETURN 7; END $$",
    );
    let simple = |text: &str| Frames::new().query(text);
    let extended = Frames::new().parse("", "SELECT f()").bind("", "", &[]).execute("", 0).sync();
    let all = [
        (simple("DO $$ BEGIN PERFORM f(); END $$"), "", "NCZ"),
        (simple("SELECT 1; SELECT f()"), "TDCT", "NDCZ"),
        (extended, "12", "NDCZ"),
    ];
    for (frames, before, behind) in all {
        other.query("SELECT pg_advisory_lock(1)");
        raw.send(&frames.0);
        // Only this session can unblock it.
        let mut got: Vec<_> = (0..=before.len()).map(|_| raw.read().unwrap()).collect();
        let notice = got.pop().unwrap();
        assert_eq!((kinds(&got).as_str(), notice.kind), (before, b'N'));
        assert_eq!(notice.field(b'M').as_deref(), Some("waits"));
        other.query("SELECT pg_advisory_unlock(1)");
        assert_eq!(kinds(&raw.until_ready()), behind);
    }
}

#[test]
fn unread_notices_do_not_block_statement() {
    let server = TestServer::start();
    let (mut raw, mut other) = (Raw::login(server.address()), Raw::login(server.address()));
    other.query("CREATE TABLE t (a int)");
    let body = "DO $$ BEGIN FOR i IN 1..20000 LOOP RAISE NOTICE '% %', i, repeat('x', 1000); \
                END LOOP; INSERT INTO t VALUES (1); END $$";
    raw.send(&Frames::new().query(body).0);
    // It ends although the client does not read.
    while rows(&other.query("SELECT a FROM t")).is_empty() {}
    let answer = raw.until_ready();
    assert_eq!(answer.len(), 20_002);
    for (at, notice) in answer[..20_000].iter().enumerate() {
        assert!(notice.field(b'M').unwrap().starts_with(&format!("{} x", at + 1)));
    }
}
