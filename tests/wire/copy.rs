//! Tests of COPY through tokio-postgres: both directions, and malformed lines.

use std::error::Error as StdError;
use std::pin::pin;

use futures_util::{SinkExt, StreamExt};
use tokio_postgres::error::DbError;
use tokio_postgres::{Client, Error};

use crate::harness::{TestServer, connect};

/// Sends data in chunks and returns the number of rows.
async fn copy_in(client: &Client, sql: &str, pieces: &[&'static str]) -> Result<u64, Error> {
    let mut sink = pin!(client.copy_in::<_, bytes::Bytes>(sql).await?);
    for piece in pieces {
        sink.send(bytes::Bytes::from_static(piece.as_bytes())).await?;
    }
    sink.finish().await
}

async fn copy_out(client: &Client, sql: &str) -> String {
    let mut stream = pin!(client.copy_out(sql).await.unwrap());
    let mut bytes = Vec::new();
    while let Some(piece) = stream.next().await {
        bytes.extend_from_slice(&piece.unwrap());
    }
    String::from_utf8(bytes).unwrap()
}

fn database_error(error: &Error) -> &DbError {
    error.as_db_error().unwrap_or_else(|| panic!("{error}: {:?}", error.source()))
}

async fn row_count(client: &Client) -> i64 {
    client.query_one("SELECT count(*) FROM t", &[]).await.unwrap().get(0)
}

const TABLE: &str =
    "CREATE TABLE t (a int PRIMARY KEY, b text DEFAULT 'b', c numeric(4,1) CHECK (c > 0))";

#[tokio::test]
async fn hidden_key_is_not_copied() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    client.batch_execute("CREATE TABLE t (a int, b text)").await.unwrap();
    let rows = "1\tone\n1\tone\n".repeat(1_500);
    let rows: &'static str = Box::leak(rows.into_boxed_str());
    assert_eq!(copy_in(&client, "COPY t FROM STDIN", &[rows]).await.unwrap(), 3_000);
    assert_eq!(copy_in(&client, "COPY t (b) FROM STDIN", &["two\n"]).await.unwrap(), 1);
    assert_eq!(row_count(&client).await, 3_001);
    let text = copy_out(&client, "COPY t TO STDOUT WITH (FORMAT csv, HEADER)").await;
    assert!(text.starts_with("a,b\n1,one\n1,one\n"), "{}", &text[..40]);
    assert!(text.ends_with("1,one\n,two\n"));
    let error = copy_in(&client, "COPY t FROM STDIN", &["1\tone\t3\n"]).await.unwrap_err();
    assert_eq!(database_error(&error).message(), "extra data after last expected column");
}

#[tokio::test]
async fn volatile_defaults_see_earlier_copied_rows() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    let definitions = "CREATE TABLE t (a int, b int);
        CREATE FUNCTION next_a() RETURNS int LANGUAGE sql AS 'SELECT coalesce(max(a), 0) + 1 FROM t';
        ALTER TABLE t ALTER a SET DEFAULT next_a();";
    client.batch_execute(definitions).await.unwrap();
    let rows = &["1\n2\n3\n"];
    assert_eq!(copy_in(&client, "COPY t (b) FROM STDIN", rows).await.unwrap(), 3);
    let filtered = "COPY t (b) FROM STDIN WHERE next_a() < 6";
    assert_eq!(copy_in(&client, filtered, rows).await.unwrap(), 2);
    assert_eq!(copy_out(&client, "COPY t TO STDOUT").await, "1\t1\n2\t2\n3\t3\n4\t1\n5\t2\n");
}

#[tokio::test]
async fn instead_of_triggers_take_copied_rows() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    let definitions = "CREATE TABLE t (a int PRIMARY KEY, b text);
        CREATE VIEW v AS SELECT a, upper(b) AS b, a * 2 AS c FROM t;
        ALTER VIEW v ALTER b SET DEFAULT 'none';
        CREATE VIEW plain AS SELECT a, b FROM t;
        CREATE FUNCTION add() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
            IF new.a = 3 THEN RETURN NULL; END IF;
            IF new.a > 10 THEN RAISE 'too large: %', new.a; END IF;
            INSERT INTO t SELECT new.a, new.b || count(*) FROM t;
            RETURN new;
        END$$;";
    client.batch_execute(definitions).await.unwrap();
    // The driver does not use a connection again after such an error.
    let other = connect(server.address()).await;
    let error = copy_in(&other, "COPY v (a) FROM STDIN", &["1\n"]).await.unwrap_err();
    let error = database_error(&error);
    assert_eq!((error.code().code(), error.message()), ("42809", "cannot copy to view \"v\""));
    assert!(error.hint().unwrap().contains("provide an INSTEAD OF INSERT trigger"), "{error:?}");
    let trigger = "CREATE TRIGGER add INSTEAD OF INSERT ON v FOR EACH ROW EXECUTE FUNCTION add()";
    client.batch_execute(trigger).await.unwrap();
    let rows = &["1\n2\n3\n7\n"];
    assert_eq!(copy_in(&client, "COPY v (a) FROM STDIN WHERE a < 5", rows).await.unwrap(), 3);
    assert_eq!(copy_in(&client, "COPY v FROM STDIN", &["8\tx\t0\n"]).await.unwrap(), 1);
    let found = copy_out(&client, "COPY (SELECT * FROM t ORDER BY a) TO STDOUT").await;
    assert_eq!(found, "1\tnone0\n2\tnone1\n8\tx2\n");
    let error = copy_in(&client, "COPY v (a) FROM STDIN", &["4\n11\n"]).await.unwrap_err();
    let error = database_error(&error);
    assert_eq!((error.code().code(), error.message()), ("P0001", "too large: 11"));
    assert!(error.where_().unwrap().contains("COPY v, line 2"), "{error:?}");
    let client = connect(server.address()).await;
    assert_eq!(row_count(&client).await, 3);
    let skip = "CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
            IF new.a = 3 THEN RETURN NULL; END IF; RETURN new; END$$;
        CREATE TRIGGER skip BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION skip();";
    client.batch_execute(skip).await.unwrap();
    assert_eq!(copy_in(&client, "COPY t FROM STDIN", &["3\tx\n4\ty\n"]).await.unwrap(), 1);
    let error = client.batch_execute("COPY plain TO STDOUT").await.unwrap_err();
    assert_eq!(database_error(&error).message(), "cannot copy from view \"plain\"");
}

#[tokio::test]
async fn text_and_csv_copy_round_trips() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    client.batch_execute(TABLE).await.unwrap();
    // Lines may be cut anywhere.
    let pieces = ["1\ton", "e\t1.5", "\n2\t\\N\t\\N\n3\ta\\tb\\\\\\nc", "\t2\n", "\\.\n"];
    assert_eq!(copy_in(&client, "COPY t FROM STDIN", &pieces).await.unwrap(), 3);
    let pieces = ["c,a\n0.3,10\n", ",11\n\"5\",12\n"];
    let csv = "COPY t (c, a) FROM STDIN WITH (FORMAT csv, HEADER)";
    assert_eq!(copy_in(&client, csv, &pieces).await.unwrap(), 3);
    assert_eq!(
        copy_out(&client, "COPY t TO STDOUT").await,
        "1\tone\t1.5\n2\t\\N\t\\N\n3\ta\\tb\\\\\\nc\t2.0\n10\tb\t0.3\n11\tb\t\\N\n12\tb\t5.0\n"
    );
    let csv = "COPY t (b, a) TO STDOUT WITH (FORMAT csv, HEADER, DELIMITER ';', NULL 'none')";
    assert_eq!(
        copy_out(&client, csv).await,
        "b;a\none;1\nnone;2\n\"a\tb\\\nc\";3\nb;10\nb;11\nb;12\n"
    );
}

#[tokio::test]
async fn copied_domain_values_are_checked() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    let types = "CREATE DOMAIN positive AS int CHECK (VALUE > 0); \
                 CREATE TYPE pair AS (a positive, b text); \
                 CREATE TABLE p (id int PRIMARY KEY, one pair, several pair[])";
    client.batch_execute(types).await.unwrap();
    let rows = "1\t(1,a)\t{\"(2,b)\",NULL}\n2\t\\N\t{}\n";
    assert_eq!(copy_in(&client, "COPY p FROM STDIN", &[rows]).await.unwrap(), 2);
    for row in ["3\t(0,a)\t{}\n", "3\t\\N\t{\"(-1,b)\"}\n"] {
        let error = copy_in(&client, "COPY p FROM STDIN", &[row]).await.unwrap_err();
        assert_eq!(error.code().unwrap().code(), "23514");
    }
    let all = copy_out(&client, "COPY p TO STDOUT").await;
    assert_eq!(all, "1\t(1,a)\t{\"(2,b)\",NULL}\n2\t\\N\t{}\n");
}

#[tokio::test]
async fn malformed_line_is_reported_and_nothing_loaded() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    client.batch_execute(TABLE).await.unwrap();
    client.batch_execute("INSERT INTO t VALUES (100, 'x', 1)").await.unwrap();
    let cases: [(&[&'static str], &str, &str, &str); 7] = [
        (
            &["1\tx\t1\n2\tx\tmany\n"],
            "22P02",
            "invalid input syntax for type numeric: \"many\"",
            "COPY t, line 2, column c: \"many\"",
        ),
        (&["1\tx\t1\n\n"], "22P02", "invalid input syntax for type integer: \"\"", "line 2"),
        (&["1\tx\n"], "22P04", "missing data for column \"c\"", "COPY t, line 1"),
        (&["1\tx\t1\n2\tx\t1\tz\n"], "22P04", "extra data after last expected column", "line 2"),
        (
            &["1\tx\t1\n2\tx\t-1\n3\tx\t1\n"],
            "23514",
            "new row for relation \"t\" violates check constraint \"t_c_check\"",
            "COPY t, lines 1 to 3",
        ),
        (
            &["1\tx\t1\n100\tx\t1\n"],
            "23505",
            "duplicate key value violates unique constraint \"t_pkey\"",
            "COPY t, lines 1 to 2",
        ),
        (
            &["\\N\tx\t1\n"],
            "23502",
            "null value in column \"a\" of relation \"t\" violates not-null constraint",
            "COPY t, line 1",
        ),
    ];
    for (pieces, code, message, context) in cases {
        let error = copy_in(&client, "COPY t FROM STDIN", pieces).await.unwrap_err();
        let error = database_error(&error);
        assert_eq!(error.message(), message, "{pieces:?}");
        assert_eq!(error.code().code(), code, "{pieces:?}");
        let place = error.where_().unwrap_or_default();
        assert!(place.contains(context), "{pieces:?}: {place:?}");
        assert_eq!(row_count(&client).await, 1, "{pieces:?}");
    }
}

#[tokio::test]
async fn aborted_copy_loads_nothing() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    client.batch_execute(TABLE).await.unwrap();
    {
        let mut sink = pin!(client.copy_in::<_, bytes::Bytes>("COPY t FROM STDIN").await.unwrap());
        sink.send(bytes::Bytes::from_static(b"1\tx\t1\n")).await.unwrap();
    }
    assert_eq!(row_count(&client).await, 0);
    // COPY takes part in transactions.
    client.batch_execute("BEGIN").await.unwrap();
    assert_eq!(copy_in(&client, "COPY t FROM STDIN", &["1\tx\t1\n"]).await.unwrap(), 1);
    assert_eq!(row_count(&client).await, 1);
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(row_count(&client).await, 0);
}

#[tokio::test]
async fn unsupported_copies_are_rejected() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    client.batch_execute(TABLE).await.unwrap();
    // Each case has its own connection, because after a rejected COPY the driver sends an
    // additional Sync.
    for (sql, code) in [
        ("COPY nowhere FROM STDIN", "42P01"),
        ("COPY t (nothing) FROM STDIN", "42703"),
        ("COPY t (a, a) FROM STDIN", "42701"),
        ("COPY t FROM STDIN WITH (FORMAT parquet)", "22023"),
        ("COPY t FROM STDIN WITH (DELIMITER 'ab')", "0A000"),
        ("COPY t FROM '/etc/passwd'", "0A000"),
    ] {
        let client = connect(server.address()).await;
        let Err(error) = copy_in(&client, sql, &[]).await else { panic!("{sql} was accepted") };
        assert!(error.as_db_error().is_some(), "{sql}: {error}");
        assert_eq!(database_error(&error).code().code(), code, "{sql}");
    }
}

#[tokio::test]
async fn query_result_is_copied_out() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    client
        .batch_execute("CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x'), (2, NULL)")
        .await
        .unwrap();
    let text = copy_out(&client, "COPY (SELECT b, a + 1 FROM t ORDER BY a) TO STDOUT").await;
    assert_eq!(text, "x\t2\n\\N\t3\n");
    let sql = "COPY (WITH w AS (VALUES (1, 'a,b')) TABLE w) TO STDOUT (FORMAT csv, HEADER)";
    assert_eq!(copy_out(&client, sql).await, "column1,column2\n1,\"a,b\"\n");
}

#[tokio::test]
async fn column_options_apply_to_named_columns() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    client.batch_execute("CREATE TABLE t (a text, b text, c int)").await.unwrap();
    let pieces = ["n,,5\nm,\"\",6\n"];
    let not_null = "COPY t FROM STDIN WITH (FORMAT csv, FORCE_NOT_NULL (b))";
    assert_eq!(copy_in(&client, not_null, &pieces).await.unwrap(), 2);
    let null = "COPY t FROM STDIN WITH (FORMAT csv, FORCE_NULL (a, b))";
    assert_eq!(copy_in(&client, null, &["\"\",\"\",7\n"]).await.unwrap(), 1);
    let header = "COPY t FROM STDIN WITH (FORMAT csv, HEADER match)";
    assert_eq!(copy_in(&client, header, &["a,b,c\nx,\"y\"\"z\",8\n"]).await.unwrap(), 1);
    let some = "COPY t FROM STDIN WHERE c > 9 AND a <> 'w'";
    assert_eq!(copy_in(&client, some, &["u\tv\t9\nw\tv\t10\nu\tv\t10\n"]).await.unwrap(), 1);
    let quoted =
        "COPY (SELECT * FROM t ORDER BY c) TO STDOUT WITH (FORMAT csv, FORCE_QUOTE (a, c))";
    assert_eq!(
        copy_out(&client, quoted).await,
        "\"n\",\"\",\"5\"\n\"m\",\"\",\"6\"\n,,\"7\"\n\"x\",\"y\"\"z\",\"8\"\n\"u\",v,\"10\"\n"
    );
    let all = "COPY (SELECT 1, 'a', NULL) TO STDOUT CSV FORCE QUOTE *";
    assert_eq!(copy_out(&client, all).await, "\"1\",\"a\",\n");
}

#[tokio::test]
async fn copy_option_and_header_errors_match_postgresql() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    client.batch_execute("CREATE TABLE t (a text, b text, c int)").await.unwrap();
    let cases = [
        ("FORMAT csv, HEADER match", "22P04", "got \"x\", expected \"b\""),
        ("HEADER match", "22P04", "wrong number of fields in header line: got 1, expected 3"),
        ("FORCE_NULL (a)", "0A000", "COPY force null available only in CSV mode"),
        ("FORMAT csv, FORCE_QUOTE *", "0A000", "COPY force quote only available using COPY TO"),
        ("FORMAT csv, FORCE_NULL (d)", "42P10", "FORCE_NULL column \"d\" not referenced by COPY"),
        ("FORMAT csv, FORMAT csv", "42601", "conflicting or redundant options"),
        ("FORMAT none", "22023", "COPY format \"none\" not recognized"),
        ("DELIMITER 'a'", "22023", "COPY delimiter cannot be \"a\""),
    ];
    for (options, code, message) in cases {
        let client = connect(server.address()).await;
        let sql = format!("COPY t FROM STDIN WITH ({options})");
        let error = copy_in(&client, &sql, &["a,x,c\n1,2,3\n"]).await.unwrap_err();
        let error = database_error(&error);
        assert_eq!(error.code().code(), code, "{options}: {error}");
        assert!(error.message().contains(message), "{options}: {error}");
    }
    assert_eq!(row_count(&client).await, 0);
}

/// PostgreSQL's binary output of the row (7, 'ab', NULL, 1.5).
const BINARY: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\
    \0\x04\0\0\0\x04\0\0\0\x07\0\0\0\x02ab\xff\xff\xff\xff\
    \0\0\0\x0c\0\x02\0\0\0\0\0\x01\0\x01\x13\x88\xff\xff";

async fn binary_out(client: &Client, sql: &str) -> Vec<u8> {
    let mut stream = pin!(client.copy_out(sql).await.unwrap());
    let mut bytes = Vec::new();
    while let Some(piece) = stream.next().await {
        bytes.extend_from_slice(&piece.unwrap());
    }
    bytes
}

async fn binary_in(client: &Client, sql: &str, pieces: &[&'static [u8]]) -> Result<u64, Error> {
    let mut sink = pin!(client.copy_in::<_, bytes::Bytes>(sql).await?);
    for piece in pieces {
        sink.send(bytes::Bytes::from_static(piece)).await?;
    }
    sink.finish().await
}

#[tokio::test]
async fn binary_copy_format_matches_postgresql() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    client.batch_execute("CREATE TABLE t (a int, b text, d int, c numeric(4,1))").await.unwrap();
    let from = "COPY t FROM STDIN (FORMAT binary)";
    let (first, rest) = BINARY.split_at(25);
    assert_eq!(binary_in(&client, from, &[first, rest]).await.unwrap(), 1);
    assert_eq!(binary_out(&client, "COPY t TO STDOUT BINARY").await, BINARY);
    let some = "COPY t (c, a) FROM STDIN (FORMAT binary)";
    let error = binary_in(&client, some, &[BINARY]).await.unwrap_err();
    let error = database_error(&error);
    assert_eq!(error.code().code(), "22P04");
    assert_eq!(error.message(), "row field count is 4, expected 2");
    assert_eq!(error.where_(), Some("COPY t, line 1"));
    let other = "COPY t (b, a, d, c) FROM STDIN (FORMAT binary)";
    let error = binary_in(&client, other, &[BINARY]).await.unwrap_err();
    let error = database_error(&error);
    assert_eq!(error.message(), "invalid byte sequence for encoding \"UTF8\": 0x00");
    assert_eq!(error.where_(), Some("COPY t, line 1, column b"));
    let error = binary_in(&client, from, &[b"1\tone\n"]).await.unwrap_err();
    assert_eq!(database_error(&error).message(), "COPY file signature not recognized");
    assert_eq!(row_count(&client).await, 1);
}

#[tokio::test]
async fn returning_rows_are_copied_out() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    client.batch_execute(TABLE).await.unwrap();
    let insert =
        "COPY (INSERT INTO t VALUES (1, 'x', 2), (2, 'y', 3) RETURNING a, c * 2) TO STDOUT";
    assert_eq!(copy_out(&client, insert).await, "1\t4.0\n2\t6.0\n");
    let update = "COPY (UPDATE t SET b = b || 1 WHERE a = 2 RETURNING b) TO STDOUT (FORMAT csv)";
    assert_eq!(copy_out(&client, update).await, "y1\n");
    let with = "COPY (WITH gone AS (DELETE FROM t RETURNING a) SELECT sum(a) FROM gone) TO STDOUT";
    assert_eq!(copy_out(&client, with).await, "3\n");
    assert_eq!(row_count(&client).await, 0);
    for (sql, message) in [
        ("COPY (DELETE FROM t) TO STDOUT", "COPY query must have a RETURNING clause"),
        ("COPY (SELECT 1 INTO u) TO STDOUT", "COPY (SELECT INTO) is not supported"),
    ] {
        let Err(error) = client.copy_out(sql).await else { panic!("{sql} was accepted") };
        assert_eq!(database_error(&error).message(), message);
    }
}

#[tokio::test]
async fn copy_errors_show_line() {
    let server = TestServer::start();
    let client = connect(server.address()).await;
    client.batch_execute(TABLE).await.unwrap();
    let long = "x".repeat(120);
    let long: &'static str = Box::leak(format!("1\t{long}\t1\t2\n").into_boxed_str());
    let shown = format!("COPY t, line 1: \"1\t{}...\"", "x".repeat(98));
    for (data, context) in [
        ("1\n", "COPY t, line 1: \"1\""),
        ("1\tx\t2\n2\ty\n", "COPY t, line 2: \"2\ty\""),
        (long, shown.as_str()),
        ("x\ty\t1\n", "COPY t, line 1, column a: \"x\""),
    ] {
        let error = copy_in(&client, "COPY t FROM STDIN", &[data]).await.unwrap_err();
        assert_eq!(database_error(&error).where_(), Some(context));
    }
}
