//! Tests of sessions that are terminated by others, and of idle timeouts.

use crate::harness::TestServer;
use crate::raw::{Raw, kinds, sqlstate};

/// Reads unsolicited messages up to the end of the connection.
fn final_sqlstate(raw: &mut Raw) -> Option<String> {
    let messages = raw.until_ready();
    assert_eq!(kinds(&messages), "E", "{messages:?}");
    assert_eq!(messages[0].field(b'S').as_deref(), Some("FATAL"));
    sqlstate(&messages)
}

#[test]
fn idle_session_timeouts_end_sessions() {
    let server = TestServer::start();
    let mut idle = Raw::login(server.address());
    idle.query("set idle_session_timeout = '20ms'");
    assert_eq!(final_sqlstate(&mut idle).as_deref(), Some("57P05"));

    let mut in_block = Raw::login(server.address());
    in_block.query("create table t (a int primary key)");
    in_block.query("set idle_in_transaction_session_timeout = '20ms'");
    in_block.query("begin; insert into t values (1)");
    assert_eq!(final_sqlstate(&mut in_block).as_deref(), Some("25P03"));

    // Its lock was released, and its row does not exist.
    let mut other = Raw::login(server.address());
    assert_eq!(kinds(&other.query("insert into t values (1)")), "CZ");
    // Sessions that are not idle do not end: a long statement, and the end of a failed block.
    other.query("set idle_session_timeout = '2s'; set idle_in_transaction_session_timeout = 0");
    let slow = other.query("begin; select pg_sleep(2.1); select 1/0");
    assert!(kinds(&slow).ends_with("EZ"), "{slow:?}");
    assert_eq!(kinds(&other.query("rollback; set idle_session_timeout = 0")), "CCZ");
}

#[test]
fn terminate_backend_ends_running_and_waiting_sessions() {
    let server = TestServer::start();
    let mut control = Raw::login(server.address());
    let terminate = |control: &mut Raw, pid: &str| {
        let answer = control.query(&format!("select pg_terminate_backend({pid}, 60000)"));
        assert_eq!(crate::raw::rows(&answer)[0][0].as_deref(), Some("t"));
    };
    let pid_of = |raw: &mut Raw| {
        crate::raw::rows(&raw.query("select pg_backend_pid()"))[0][0].clone().unwrap()
    };
    let mut idle = Raw::login(server.address());
    let pid = pid_of(&mut idle);
    idle.query("create temporary table of_the_session (a int)");
    let tables = "select count(*) from pg_class where relname = 'of_the_session'";
    let count = |control: &mut Raw| crate::raw::rows(&control.query(tables))[0][0].clone();
    assert_eq!(count(&mut control).as_deref(), Some("1"));
    terminate(&mut control, &pid);
    assert_eq!(final_sqlstate(&mut idle).as_deref(), Some("57P01"));
    while count(&mut control).as_deref() != Some("0") {}

    // Its client does not read: the session is blocked in sending.
    let mut silent = Raw::login(server.address());
    let pid = pid_of(&mut silent);
    let large = "select repeat('x', 100000) from generate_series(1, 100000)";
    silent.send(&crate::raw::Frames::new().query(large).0);
    let begun =
        format!("select count(*) from pg_stat_activity where pid = {pid} and query = $${large}$$");
    while crate::raw::rows(&control.query(&begun))[0][0].as_deref() != Some("1") {}
    terminate(&mut control, &pid);

    let mut working = Raw::login(server.address());
    let pid = pid_of(&mut working);
    working.send(&crate::raw::Frames::new().query("select pg_sleep(600)").0);
    let query = format!("select state from pg_stat_activity where pid = {pid}");
    while crate::raw::rows(&control.query(&query))[0][0].as_deref() != Some("active") {}
    terminate(&mut control, &pid);
    let messages = working.until_ready();
    assert_eq!(sqlstate(&messages).as_deref(), Some("57P01"), "{messages:?}");
    assert!(!kinds(&messages).contains('Z'), "{messages:?}");

    let gone = control.query(&format!("select pg_terminate_backend({pid})"));
    assert_eq!(crate::raw::rows(&gone)[0][0].as_deref(), Some("f"));
}
