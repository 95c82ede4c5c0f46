//! Tests of when answers are sent: errors at once, and the results of Sync, Query and Flush
//! before the next message is processed.

use std::net::SocketAddr;

use crate::harness::TestServer;
use crate::raw::{Frames, Raw, kinds, rows, sqlstate};

fn flush(frames: Frames) -> Frames {
    frames.frame(b'H', &[])
}

/// Reads exactly `count` messages.
fn read(raw: &mut Raw, count: usize) -> String {
    let messages: Vec<_> = (0..count).map(|_| raw.read().expect("an answer")).collect();
    kinds(&messages)
}

/// Returns a client that holds the lock of the only row of `t`.
fn lock_row(address: SocketAddr) -> Raw {
    let mut holder = Raw::login(address);
    holder.query("CREATE TABLE t (a int PRIMARY KEY, b int)");
    holder.query("INSERT INTO t VALUES (1, 0)");
    holder.query("BEGIN");
    assert_eq!(kinds(&holder.query("UPDATE t SET b = 1 WHERE a = 1")), "CZ");
    holder
}

const WAITS: &str = "UPDATE t SET b = b + 10 WHERE a = 1";

#[test]
fn failing_constant_is_reported_at_bind() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    raw.query("CREATE TABLE empty (a int)");
    assert_eq!(kinds(&raw.query("SELECT 1 / 0 FROM empty")), "EZ");
    let parsed = Frames::new().parse("s", "SELECT 1 / $1::int FROM empty").describe(b'S', "s");
    raw.send(&parsed.sync().0);
    assert_eq!(kinds(&raw.until_ready()), "1tTZ");
    for (value, answer) in [("0", "EZ"), ("1", "2CZ")] {
        raw.send(&Frames::new().bind("", "s", &[Some(value)]).execute("", 0).sync().0);
        assert_eq!(kinds(&raw.until_ready()), answer, "{value}");
    }
}

#[test]
fn error_is_sent_before_sync() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    let good = Frames::new().parse("good", "SELECT 1 / $1::int");
    raw.send(&good.sync().0);
    assert_eq!(kinds(&raw.until_ready()), "1Z");
    let bound = |value| Frames::new().bind("", "good", &[Some(value)]);
    let cases = [
        ("42601", "", Frames::new().parse("", "SELEC 1")),
        ("42P01", "", Frames::new().parse("", "SELECT * FROM nothing")),
        ("42P05", "", Frames::new().parse("good", "SELECT 1")),
        ("26000", "", Frames::new().bind("", "nothing", &[])),
        ("22P02", "", bound("x")),
        ("08P01", "", Frames::new().bind("", "good", &[])),
        ("26000", "", Frames::new().describe(b'S', "nothing")),
        ("34000", "", Frames::new().describe(b'P', "nothing")),
        ("34000", "", Frames::new().execute("nothing", 0)),
        ("22012", "", bound("0").execute("", 0)),
        ("55000", "12C", {
            let once = Frames::new().parse("", "SET lock_timeout = 0").bind("", "", &[]);
            once.execute("", 0).execute("", 0)
        }),
    ];
    for in_block in [false, true] {
        for (code, before, frames) in &cases {
            if in_block {
                raw.query("BEGIN");
            }
            raw.send(&frames.0);
            let mut answer = Vec::new();
            while answer.last().is_none_or(|last: &crate::raw::Message| last.kind != b'E') {
                answer.push(raw.read().expect("an answer"));
            }
            assert_eq!(kinds(&answer), format!("{before}E"), "{code}");
            assert_eq!(sqlstate(&answer).as_deref(), Some(*code));
            // Following messages up to Sync are skipped, including Flush.
            raw.send(&flush(bound("1").execute("", 0)).sync().0);
            assert_eq!(kinds(&raw.until_ready()), "Z", "{code}");
            raw.query("ROLLBACK");
        }
    }
    raw.send(&bound("1").execute("", 0).sync().0);
    assert_eq!(kinds(&raw.until_ready()), "2DCZ");
}

#[test]
fn copy_error_is_sent_immediately() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    raw.query("CREATE TABLE c (a int)");
    let copy = || Frames::new().parse("", "COPY c FROM STDIN").bind("", "", &[]).execute("", 0);
    raw.send(&copy().0);
    assert_eq!(read(&mut raw, 3), "12G");
    raw.send(&Frames::new().frame(b'f', b"enough\0").0);
    assert_eq!(read(&mut raw, 1), "E");
    raw.send(&flush(Frames::new().frame(b'd', b"1\n")).sync().0);
    assert_eq!(kinds(&raw.until_ready()), "Z");
    raw.send(&copy().0);
    assert_eq!(read(&mut raw, 3), "12G");
    raw.send(&Frames::new().frame(b'd', b"x\n").frame(b'c', &[]).0);
    assert_eq!(read(&mut raw, 1), "E");
    raw.send(&Frames::new().sync().0);
    assert_eq!(kinds(&raw.until_ready()), "Z");
}

#[test]
fn flush_sends_pending_responses() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    raw.send(&flush(Frames::new().parse("", "SELECT 1")).0);
    assert_eq!(read(&mut raw, 1), "1");
    raw.send(&flush(Frames::new().bind("p", "", &[]).describe(b'P', "p")).0);
    assert_eq!(read(&mut raw, 2), "2T");
    raw.send(&flush(Frames::new().execute("p", 0)).0);
    assert_eq!(read(&mut raw, 2), "DC");
    raw.send(&flush(Frames::new().frame(b'C', b"Pp\0")).0);
    assert_eq!(read(&mut raw, 1), "3");
    raw.send(&Frames::new().sync().0);
    assert_eq!(kinds(&raw.until_ready()), "Z");
}

#[test]
fn responses_do_not_wait_for_next_message() {
    let server = TestServer::start();
    let mut holder = lock_row(server.address());
    let select = || Frames::new().parse("", "SELECT 7").bind("", "", &[]).execute("", 0);
    let update = || Frames::new().parse("", WAITS).bind("", "", &[]).execute("", 0);
    // Messages sent in one write, and those answered while the others wait for the lock.
    let pipelines = [
        (Frames::new().query("SELECT 7").query(WAITS), "TDCZ", "CZ"),
        (Frames::new().query("SELECT nothing").query(WAITS), "EZ", "CZ"),
        (Frames::new().query("").query(WAITS), "IZ", "CZ"),
        (Frames([select().sync().0, update().sync().0].concat()), "12DCZ", "12CZ"),
        (Frames([flush(select()).0, update().sync().0].concat()), "12DC", "12CZ"),
        (
            Frames([Frames::new().parse("", "SELEC").sync().0, update().sync().0].concat()),
            "EZ",
            "12CZ",
        ),
    ];
    let mut waiters: Vec<Raw> = Vec::new();
    for (frames, at_once, _) in &pipelines {
        let mut raw = Raw::login(server.address());
        raw.send(&frames.0);
        assert_eq!(read(&mut raw, at_once.len()), *at_once);
        waiters.push(raw);
    }
    // A client may send its first statements together with the startup packet.
    let mut raw = Raw::connect(server.address());
    let startup = crate::raw::startup(&[("user", "bennu"), ("database", "bennu")]);
    raw.send(&[startup, Frames::new().query(WAITS).0].concat());
    assert!(kinds(&raw.until_ready()).ends_with("KZ"));
    assert_eq!(kinds(&holder.query("COMMIT")), "CZ");
    for (raw, (_, _, later)) in waiters.iter_mut().zip(&pipelines) {
        assert_eq!(kinds(&raw.until_ready()), *later);
    }
    assert_eq!(kinds(&raw.until_ready()), "CZ");
    let count = 1 + 10 * (waiters.len() + 1);
    assert_eq!(rows(&holder.query("SELECT b FROM t")), [[Some(count.to_string())]]);
}
