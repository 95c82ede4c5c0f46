//! Tests of client encodings: text is converted on the wire; invalid text fails a statement.

use crate::harness::TestServer;
use crate::raw::{Frames, Message, Raw, kinds, rows, sqlstate, startup};

/// Connects a client with its encoding in the startup packet.
fn login(server: &TestServer, encoding: &str) -> Raw {
    let mut raw = Raw::connect(server.address());
    raw.send(&startup(&[("user", "bennu"), ("client_encoding", encoding)]));
    let greeting = raw.until_ready();
    assert_eq!(greeting.last().map(|message| message.kind), Some(b'Z'), "{greeting:?}");
    raw
}

fn query(raw: &mut Raw, sql: &[u8]) -> Vec<Message> {
    raw.send(&Frames::new().frame(b'Q', &[sql, b"\0"].concat()).0);
    raw.until_ready()
}

/// Returns the first value of the first row.
fn value(messages: &[Message]) -> Vec<u8> {
    let row = messages.iter().find(|message| message.kind == b'D');
    row.unwrap_or_else(|| panic!("no row: {messages:?}")).bytes()[0].clone().unwrap()
}

/// Returns the body of a Bind with one parameter and a result in the same format.
fn bind(parameter: &[u8], binary: bool) -> Vec<u8> {
    let code = [0, 1, 0, u8::from(binary)];
    let length = (parameter.len() as u32).to_be_bytes();
    [&b"\0\0"[..], &code, &[0, 1], &length, parameter, &code].concat()
}

#[test]
fn text_round_trips_in_client_encoding() {
    let server = TestServer::start();
    for (encoding, bytes, text) in [
        ("LATIN1", &b"\xe9"[..], "é"),
        ("latin9", b"\xa4", "€"),
        ("WIN1252", b"\x80", "€"),
        ("KOI8R", b"\xd1", "я"),
        ("EUC_JP", b"\xa4\xa2", "あ"),
        ("sjis", b"\x83\x5c", "ソ"),
        ("GBK", b"\x81\x5c", "乗"),
        ("SQL_ASCII", b"\xc3\xa9", "é"),
    ] {
        let mut raw = login(&server, encoding);
        let length =
            query(&mut raw, &[b"SELECT length('", bytes, b"'), ascii('", bytes, b"')"].concat());
        let code = (text.chars().next().unwrap() as u32).to_string();
        assert_eq!(rows(&length), [[Some("1".to_owned()), Some(code)]], "{encoding}");
        let answer = query(&mut raw, &[b"SELECT '", bytes, b"' AS ", bytes].concat());
        assert_eq!(value(&answer), bytes, "{encoding}");
        assert!(answer[0].body[2..].starts_with(&[bytes, b"\0"].concat()), "{encoding}");
        let missing = query(&mut raw, &[b"SELECT * FROM ", bytes].concat());
        let message = [b"Mrelation \"", bytes, b"\" does not exist\0"].concat();
        assert!(missing[0].body.windows(message.len()).any(|part| part == message), "{missing:?}");
        for (binary, sql) in [(false, "SELECT $1::text"), (true, "SELECT $1::varchar")] {
            let parse = Frames::new().parse("", sql);
            raw.send(&parse.frame(b'B', &bind(bytes, binary)).execute("", 0).sync().0);
            assert_eq!(value(&raw.until_ready()), bytes, "{encoding} {binary}");
        }
    }
}

#[test]
fn invalid_encoded_text_fails_only_statement() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    for sql in [&b"SELECT '\xe9'"[..], b"SELECT '\xc3("] {
        let answer = query(&mut raw, sql);
        assert_eq!((kinds(&answer).as_str(), sqlstate(&answer).as_deref()), ("EZ", Some("22021")));
    }
    query(&mut raw, b"BEGIN");
    assert_eq!(kinds(&query(&mut raw, b"SELECT '\xff'")), "EZ");
    assert_eq!(sqlstate(&query(&mut raw, b"SELECT 1")).as_deref(), Some("25P02"));
    query(&mut raw, b"ROLLBACK");
    let good = Frames::new().parse("", "SELECT $1::text");
    for (frames, before) in [
        (Frames::new().frame(b'P', b"\0SELECT '\xe9'\0\0\0"), ""),
        (Frames::new().frame(b'P', b"\xe9\0SELECT 1\0\0\0"), ""),
        (good.clone().frame(b'B', b"\xe9\0\0\0\0\0\0\0\0"), "1"),
        (good.clone().frame(b'B', &bind(b"\xe9", false)), "1"),
        (good.clone().frame(b'B', &bind(b"\xe9", true)), "1"),
        (good.clone().frame(b'B', &bind(b"a\0", false)), "1"),
        (good.frame(b'D', b"S\xe9\0"), "1"),
        (Frames::new().frame(b'E', b"\xe9\0\0\0\0\0"), ""),
        (Frames::new().frame(b'C', b"S\xe9\0"), ""),
    ] {
        // Following messages are skipped, even if they are invalid.
        raw.send(&frames.frame(b'P', b"\0\xff\0\0\0").execute("", 0).sync().0);
        let answer = raw.until_ready();
        assert_eq!(kinds(&answer), format!("{before}EZ"));
        assert_eq!(sqlstate(&answer).as_deref(), Some("22021"), "{answer:?}");
    }
    assert_eq!(rows(&query(&mut raw, b"SELECT 7")), [[Some("7".to_owned())]]);
}

#[test]
fn unencodable_character_is_error() {
    let server = TestServer::start();
    let mut raw = login(&server, "LATIN1");
    let answer = query(&mut raw, b"SELECT chr(code) FROM (VALUES (65), (8364)) AS t (code)");
    assert_eq!((kinds(&answer).as_str(), sqlstate(&answer).as_deref()), ("TDEZ", Some("22P05")));
    let answer = query(&mut raw, b"SELECT 1 AS U&\"\\20ac\"");
    assert_eq!((kinds(&answer).as_str(), sqlstate(&answer).as_deref()), ("EZ", Some("22P05")));
    // Errors are always sent, with `?` for characters that the encoding lacks.
    let answer = query(&mut raw, b"SELECT U&\"\\20ac\"");
    assert_eq!(sqlstate(&answer).as_deref(), Some("42703"));
    assert_eq!(answer[0].field(b'M').as_deref(), Some("column \"?\" does not exist"));
    assert_eq!(rows(&query(&mut raw, b"SELECT 7")), [[Some("7".to_owned())]]);
}

#[test]
fn client_encoding_can_change_at_any_statement() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    let answer =
        query(&mut raw, b"SET NAMES 'latin1'; SELECT chr(233); SELECT pg_client_encoding()");
    assert_eq!(kinds(&answer), "CTDCTDCSZ");
    assert_eq!(value(&answer), b"\xe9");
    assert_eq!(answer[7].body, b"client_encoding\0LATIN1\0");
    // A setting changed by a function is reported at the end of its statement, in the extended
    // protocol, too.
    let set = Frames::new().parse("", "SELECT set_config('client_encoding', 'win1252', false)");
    raw.send(&set.bind("", "", &[]).execute("", 0).sync().0);
    let answer = raw.until_ready();
    assert_eq!(kinds(&answer), "12DCSZ");
    assert_eq!(value(&query(&mut raw, b"SELECT '\x80'")), b"\x80");
    query(&mut raw, b"BEGIN; SET LOCAL client_encoding = 'UTF8'");
    assert_eq!(value(&query(&mut raw, b"SELECT chr(233)")), b"\xc3\xa9");
    let answer = query(&mut raw, b"COMMIT");
    assert_eq!(kinds(&answer), "CSZ");
    assert_eq!(value(&query(&mut raw, b"SELECT chr(233)")), b"\xe9");
    // A function in a failed statement has no effect on settings.
    query(&mut raw, b"SELECT set_config('client_encoding', 'UTF8', false), 1 / 0");
    assert_eq!(value(&query(&mut raw, b"SHOW client_encoding")), b"WIN1252");
}

fn copy_in(raw: &mut Raw, sql: &str, data: &[&[u8]]) -> Vec<Message> {
    raw.send(&Frames::new().query(sql).0);
    assert_eq!(raw.read().map(|message| message.kind), Some(b'G'));
    let mut frames = Frames::new();
    for bytes in data {
        frames = frames.frame(b'd', bytes);
    }
    raw.send(&frames.frame(b'c', b"").0);
    raw.until_ready()
}

fn copied(answer: &[Message]) -> Vec<u8> {
    answer.iter().filter(|one| one.kind == b'd').flat_map(|one| one.body.clone()).collect()
}

#[test]
fn copy_uses_client_encoding() {
    let server = TestServer::start();
    let mut raw = login(&server, "sjis");
    query(&mut raw, b"CREATE TABLE t (a text)");
    // The second byte of the character is a backslash; a message may end between the two.
    let answer = copy_in(&mut raw, "COPY t FROM STDIN", &[b"\x83", b"\\\n\\\\", b"\\t\n"]);
    assert_eq!(kinds(&answer), "CZ", "{answer:?}");
    let answer = copy_in(&mut raw, "COPY t FROM STDIN (ENCODING 'latin1')", &[b"\xe9\n"]);
    assert_eq!(kinds(&answer), "CZ");
    assert_eq!(
        copied(&query(&mut raw, b"COPY (SELECT a FROM t LIMIT 2) TO STDOUT")),
        b"\x83\\\n\\\\\\t\n"
    );
    let out = query(&mut raw, b"COPY t TO STDOUT (FORMAT csv, ENCODING 'UTF8')");
    assert_eq!(String::from_utf8(copied(&out)).unwrap(), "ソ\n\\\t\né\n");
    assert_eq!(sqlstate(&query(&mut raw, b"COPY t TO STDOUT")).as_deref(), Some("22P05"));
    let unknown = query(&mut raw, b"COPY t TO STDOUT (ENCODING 'klingon')");
    assert_eq!(sqlstate(&unknown).as_deref(), Some("22023"));
    // The lines before the invalid one are counted.
    for (data, code) in [(&[&b"a\n\x83"[..], b"\x10\n"][..], "22021"), (&[b"a\nb\x83"], "22021")] {
        let answer = copy_in(&mut raw, "COPY t FROM STDIN", data);
        assert_eq!(sqlstate(&answer).as_deref(), Some(code));
        assert_eq!(answer[0].field(b'W').map(|at| at.starts_with("COPY t, line 2")), Some(true));
    }
    assert_eq!(rows(&query(&mut raw, b"SELECT count(*) FROM t")), [[Some("3".to_owned())]]);
}
