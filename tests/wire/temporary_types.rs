//! Tests of types and domains in `pg_temp`: they belong to the session and are dropped with it.

use crate::harness::TestServer;
use crate::raw::{Raw, rows, sqlstate};

#[test]
fn pg_temp_types_are_session_local() {
    let server = TestServer::start();
    let (mut raw, mut other) = (Raw::login(server.address()), Raw::login(server.address()));
    for sql in [
        "CREATE TYPE pg_temp.c AS (a int)",
        "CREATE DOMAIN pg_temp.d AS int CHECK (VALUE > 0)",
        "CREATE TYPE pg_temp.e AS ENUM ('a', 'b')",
        "CREATE TEMP TABLE t (x c, y d, z pg_temp.e)",
        "INSERT INTO t VALUES (ROW(1), 5, 'b')",
        "ALTER DOMAIN pg_temp.d ADD CHECK (VALUE < 10)",
    ] {
        assert_eq!(sqlstate(&raw.query(sql)), None, "{sql}");
    }
    let values = |raw: &mut Raw, sql: &str| -> Vec<String> {
        rows(&raw.query(sql)).into_iter().flatten().flatten().collect()
    };
    assert_eq!(values(&mut raw, "SELECT * FROM t"), ["(1)", "5", "b"]);
    let literals = "SELECT ROW(1)::pg_temp.c, 5::d, 'a'::e, '{a}'::e[]";
    assert_eq!(values(&mut raw, literals), ["(1)", "5", "a", "{a}"]);
    assert_eq!(values(&mut raw, "SELECT pg_typeof(5::pg_temp.d)"), ["d"]);
    assert_eq!(sqlstate(&raw.query("SELECT 0::d")).as_deref(), Some("23514"));
    for sql in ["SELECT 5::pg_temp.d", "SELECT 5::d", "DROP TYPE pg_temp.e"] {
        assert_eq!(sqlstate(&other.query(sql)).as_deref(), Some("42704"), "{sql}");
    }
    assert_eq!(sqlstate(&other.query("CREATE DOMAIN pg_temp.d AS text")), None);
    assert_eq!(values(&mut other, "SELECT pg_typeof('x'::d)"), ["d"]);
    assert_eq!(sqlstate(&raw.query("DROP TYPE pg_temp.e CASCADE")), None);
    assert_eq!(sqlstate(&raw.query("DISCARD TEMP")), None);
    assert_eq!(sqlstate(&raw.query("SELECT 5::pg_temp.d")).as_deref(), Some("42704"));
    let left = "SELECT count(*) FROM pg_type WHERE typname IN ('c', 'd', 'e')";
    assert_eq!(values(&mut raw, left), ["1"]);
}
