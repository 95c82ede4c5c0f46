//! Tests of malformed frames: the connection ends or gets an error; the server continues.

use std::net::SocketAddr;

use crate::harness::TestServer;
use crate::raw::{Frames, Raw, kinds, rows, sqlstate, startup, text};

fn assert_alive(address: SocketAddr) {
    let answer = Raw::login(address).query("SELECT 1");
    assert_eq!(kinds(&answer), "TDCZ");
}

/// Returns frames whose contents do not match their length or type.
fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    let frame = |kind: u8, body: &[u8]| Frames::new().frame(kind, body).0;
    let with_length =
        |kind: u8, length: u32, body: &[u8]| [&[kind][..], &length.to_be_bytes(), body].concat();
    vec![
        ("query without terminator", frame(b'Q', b"SELECT 1")),
        ("query of no bytes", frame(b'Q', b"")),
        ("query with bytes after the terminator", frame(b'Q', b"SELECT 1\0SELECT 2\0")),
        ("length below four", with_length(b'Q', 3, b"")),
        ("length of nothing", with_length(b'Q', 0, b"")),
        ("negative length", with_length(b'Q', u32::MAX, b"SELECT 1\0")),
        ("huge length", with_length(b'P', 0x7fff_ffff, b"")),
        ("sync with a body", frame(b'S', b"x")),
        ("parse without a query", frame(b'P', b"name\0")),
        ("parse with fewer types than it says", frame(b'P', b"\0SELECT 1\0\0\x05\0\0")),
        ("parse with a negative number of types", frame(b'P', b"\0SELECT 1\0\xff\xff")),
        ("bind of nothing", frame(b'B', b"")),
        ("bind that ends in its formats", frame(b'B', b"\0\0\0\x05\0")),
        ("bind with a parameter beyond the end", {
            frame(b'B', &[&b"\0\0\0\0\0\x01"[..], &1_000_000_u32.to_be_bytes(), b"x"].concat())
        }),
        ("bind with a parameter of length -2", {
            frame(b'B', &[&b"\0\0\0\0\0\x01"[..], &(-2_i32).to_be_bytes(), b"\0\0"].concat())
        }),
        ("bind with more parameters than bytes", frame(b'B', b"\0\0\0\0\x7f\xff\0\0")),
        ("describe of no kind", frame(b'D', b"")),
        ("describe of an unknown kind", frame(b'D', b"X\0")),
        ("describe without terminator", frame(b'D', b"Sname")),
        ("execute that is short", frame(b'E', b"\0\0")),
        ("close of nothing", frame(b'C', b"")),
        ("copy data outside of COPY, then rubbish", [frame(b'd', b"x"), vec![0; 5]].concat()),
        ("password after login", frame(b'p', b"secret\0")),
        ("function call", frame(b'F', b"\0\0\0\0")),
        ("unknown type", frame(b'?', b"")),
        ("zeros", vec![0; 64]),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec()),
    ]
}

#[test]
fn malformed_frames_after_login_end_at_most_their_connection() {
    let server = TestServer::start();
    for (what, bytes) in malformed() {
        let mut raw = Raw::login(server.address());
        raw.try_send(&bytes);
        raw.try_send(&Frames::new().sync().0);
        raw.finish();
        // The answer is well-formed, and ends.
        while let Some(message) = raw.read() {
            assert!(b"EZNSTDC123nt".contains(&message.kind), "{what}: {message:?}");
        }
        assert_alive(server.address());
    }
}

#[test]
fn malformed_frames_before_login_end_at_most_their_connection() {
    let server = TestServer::start();
    let mut first: Vec<Vec<u8>> = malformed().into_iter().map(|(_, bytes)| bytes).collect();
    let packet = |length: u32, body: &[u8]| [&length.to_be_bytes()[..], body].concat();
    first.push(packet(3, b""));
    first.push(packet(8, &[0; 4]));
    first.push(packet(9, &[0, 3, 0, 0, 1]));
    first.push(packet(16, b"\0\x03\0\0user\0bennu"));
    first.push(packet(u32::MAX, b"\0\x03\0\0"));
    first.push(packet(8, &196_608_u32.to_be_bytes()));
    for bytes in first {
        let mut raw = Raw::connect(server.address());
        raw.try_send(&bytes);
        raw.finish();
        while let Some(message) = raw.read() {
            assert_eq!(message.kind, b'E', "{bytes:?}: {message:?}");
        }
    }
    assert_alive(server.address());
}

#[test]
fn server_survives_random_bytes() {
    let server = TestServer::start();
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut state = seed | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..200 {
        let mut raw = if round % 4 == 0 {
            Raw::connect(server.address())
        } else {
            Raw::login(server.address())
        };
        let kinds = b"QPBDECHSXdcfp";
        let mut frames = Frames::new();
        for _ in 0..1 + random() % 4 {
            let body: Vec<u8> = (0..random() % 40).map(|_| (random() % 4) as u8 * 33).collect();
            frames = frames.frame(kinds[random() as usize % kinds.len()], &body);
        }
        raw.try_send(&frames.0);
        raw.finish();
        while raw.read().is_some() {}
    }
    assert_alive(server.address());
}

#[test]
fn oversized_startup_packet_is_rejected_unread() {
    let server = TestServer::start();
    let long = "x".repeat(100_000);
    let mut raw = Raw::connect(server.address());
    raw.try_send(&startup(&[("user", "bennu"), ("application_name", &long)]));
    raw.finish();
    while let Some(message) = raw.read() {
        assert_eq!(message.kind, b'E');
    }
    assert_alive(server.address());
}

#[test]
fn unknown_database_and_protocol_are_rejected() {
    let server = TestServer::start();
    let mut raw = Raw::connect(server.address());
    raw.send(&startup(&[("user", "bennu"), ("database", "nowhere")]));
    let answer = raw.until_ready();
    assert_eq!(sqlstate(&answer).as_deref(), Some("3D000"));
    let error = answer.iter().find(|message| message.kind == b'E').unwrap();
    assert_eq!(error.field(b'M').unwrap(), "database \"nowhere\" does not exist");
    assert_eq!(error.field(b'S').unwrap(), "FATAL");

    let mut raw = Raw::connect(server.address());
    raw.send(&[&8_u32.to_be_bytes()[..], &131_072_u32.to_be_bytes()].concat());
    assert_eq!(sqlstate(&raw.until_ready()).as_deref(), Some("0A000"));

    let mut raw = Raw::connect(server.address());
    raw.send(&startup(&[("user", "bennu"), ("nothing_known", "1")]));
    assert_eq!(sqlstate(&raw.until_ready()).as_deref(), Some("42704"));
}

#[test]
fn error_skips_messages_until_sync() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    let bad = Frames::new().parse("", "SELECT nothing").bind("", "", &[]).execute("", 0).sync();
    let good = bad.parse("", "SELECT 1").bind("", "", &[]).execute("", 0).sync();
    raw.send(&good.0);
    assert_eq!(kinds(&raw.until_ready()), "EZ");
    assert_eq!(kinds(&raw.until_ready()), "12DCZ");
}

#[test]
fn pipelined_batch_is_one_transaction_and_write() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    raw.query("CREATE TABLE t (a int PRIMARY KEY, b int)");
    raw.query("INSERT INTO t VALUES (1, 10), (2, 20)");

    // Parse, Bind, Describe, Execute, Sync: the answers arrive together.
    let reads = raw.reads;
    let one = Frames::new().parse("", "SELECT b FROM t WHERE a = $1").bind("", "", &[Some("2")]);
    raw.send(&one.describe(b'P', "").execute("", 0).sync().0);
    assert_eq!(kinds(&raw.until_ready()), "12TDCZ");
    assert_eq!(raw.reads - reads, 1, "more than one write for a batch");

    // Twenty statements before one Sync.
    let mut batch = Frames::new().parse("add", "UPDATE t SET b = b + $1 WHERE a = 1");
    for number in 0..20 {
        batch = batch.bind("", "add", &[Some(&number.to_string())]).execute("", 0);
    }
    let reads = raw.reads;
    raw.send(&batch.sync().0);
    let answer = raw.until_ready();
    assert_eq!(kinds(&answer), format!("1{}Z", "2C".repeat(20)));
    assert_eq!(raw.reads - reads, 1, "more than one write for a batch");
    assert_eq!(rows(&raw.query("SELECT b FROM t WHERE a = 1")), [[Some("200".to_owned())]]);

    // An error at the end undoes what came before it in the batch.
    let batch = Frames::new().bind("", "add", &[Some("5")]).execute("", 0);
    let batch = batch.parse("", "INSERT INTO t VALUES (1, 1)").bind("", "", &[]).execute("", 0);
    raw.send(&batch.sync().0);
    let answer = raw.until_ready();
    assert_eq!(kinds(&answer), "2C12EZ");
    assert_eq!(sqlstate(&answer).as_deref(), Some("23505"));
    assert_eq!(rows(&raw.query("SELECT b FROM t WHERE a = 1")), [[Some("200".to_owned())]]);
}

#[test]
fn portals_return_rows_in_parts() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    let values = Frames::new().parse("", "SELECT * FROM (VALUES (1), (2), (3), (4), (5)) AS v (a)");
    let parts = values.bind("p", "", &[]).execute("p", 2).execute("p", 2).execute("p", 2);
    raw.send(&parts.sync().0);
    let answer = raw.until_ready();
    assert_eq!(kinds(&answer), "12DDsDDsDCZ");
    assert_eq!(rows(&answer)[4], [Some("5".to_owned())]);
    // The portal was closed with the transaction.
    raw.send(&Frames::new().execute("p", 2).sync().0);
    assert_eq!(sqlstate(&raw.until_ready()).as_deref(), Some("34000"));
}

#[test]
fn empty_statements_and_unknown_names_are_handled() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    assert_eq!(kinds(&raw.query("")), "IZ");
    assert_eq!(kinds(&raw.query(" ; ; ")), "IZ");
    raw.send(&Frames::new().parse("", "").bind("", "", &[]).execute("", 0).sync().0);
    assert_eq!(kinds(&raw.until_ready()), "12IZ");
    raw.send(&Frames::new().bind("", "nothing", &[]).sync().0);
    assert_eq!(sqlstate(&raw.until_ready()).as_deref(), Some("26000"));
    raw.send(&Frames::new().describe(b'P', "nothing").sync().0);
    assert_eq!(sqlstate(&raw.until_ready()).as_deref(), Some("34000"));
    raw.send(&Frames::new().parse("", "SELECT 1; SELECT 2").sync().0);
    assert_eq!(sqlstate(&raw.until_ready()).as_deref(), Some("42601"));
    raw.send(&Frames::new().parse("", "SELECT $1::int").bind("", "", &[]).sync().0);
    assert_eq!(sqlstate(&raw.until_ready()).as_deref(), Some("08P01"));
    // Several statements in one simple query: the rows of each, and one transaction.
    let answer = raw.query("SELECT 1; SELECT 2; SELECT nothing; SELECT 3");
    assert_eq!(kinds(&answer), "TDCTDCEZ");
    raw.send(&Frames::new().frame(b'X', &[]).0);
    assert!(raw.read().is_none(), "Terminate ends the connection");
    assert_eq!(text("a"), [b'a', 0]);
}
