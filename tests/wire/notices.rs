//! Notices of definitions: names, values and options that are not used as written.

use crate::harness::TestServer;
use crate::raw::{Raw, kinds};

/// Runs a statement and returns the messages of its notices.
fn notices(raw: &mut Raw, statement: &str) -> Vec<String> {
    let answer = raw.query(statement);
    assert!(!kinds(&answer).contains('E'), "{statement}: {:?}", answer[0].field(b'M'));
    let notices = answer.iter().filter(|message| message.kind == b'N');
    notices.filter_map(|notice| notice.field(b'M')).collect()
}

#[test]
fn key_name_in_use_is_replaced_with_notice() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    let first = "CREATE TABLE a (id int, CONSTRAINT pk PRIMARY KEY (id))";
    assert_eq!(notices(&mut raw, first), [""; 0]);
    let second = "CREATE TABLE b (id int, CONSTRAINT pk PRIMARY KEY (id))";
    assert_eq!(
        notices(&mut raw, second),
        ["relation \"pk\" already exists, primary key of table \"b\" is named \"b_pkey\""]
    );
}

#[test]
fn options_without_effect_have_notices() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    let create = "CREATE IMMUTABLE TABLE t (id int PRIMARY KEY) COMPRESSION = 'GZ', VERSIONS = 2, \
                  DISABLE_WAL = true, NULLABLE_KEY = true";
    let immutable = "option IMMUTABLE_ROWS is stored and has no effect";
    assert_eq!(
        notices(&mut raw, create),
        ["COMPRESSION GZ is not available, ZSTD is used", immutable]
    );
    assert_eq!(notices(&mut raw, "ALTER TABLE t SET IMMUTABLE_ROWS = false"), [immutable]);
    let encoding = "DATA_BLOCK_ENCODING PREFIX is not available, ROW is used";
    assert_eq!(notices(&mut raw, "ALTER TABLE t SET DATA_BLOCK_ENCODING = 'PREFIX'"), [encoding]);
    assert_eq!(notices(&mut raw, "ALTER TABLE t RESET (immutable_rows)"), [""; 0]);
}

#[test]
fn created_schema_has_notice() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    raw.query("SET phoenix_compatibility = on");
    let create = "CREATE TABLE depot.bin (id int PRIMARY KEY)";
    assert_eq!(notices(&mut raw, create), ["schema \"depot\" was created"]);
    assert_eq!(notices(&mut raw, "CREATE TABLE depot.box (id int PRIMARY KEY)"), [""; 0]);
}
