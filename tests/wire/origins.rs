//! Tests of origins in RowDescription and errors: OIDs of `pg_class`, column numbers, schemas.

use crate::harness::TestServer;
use crate::raw::{Frames, Message, Raw, kinds, rows};

/// Returns the table OID and the column number of each result column.
fn origins(message: &Message) -> Vec<(u32, i16)> {
    let mut rest = &message.body[2..];
    let mut origins = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == 0).unwrap();
        let fixed = &rest[end + 1..];
        let oid = u32::from_be_bytes(fixed[..4].try_into().unwrap());
        origins.push((oid, i16::from_be_bytes(fixed[4..6].try_into().unwrap())));
        rest = &fixed[18..];
    }
    origins
}

fn oid_of(raw: &mut Raw, relation: &str) -> u32 {
    let answer = raw.query(&format!("SELECT '{relation}'::regclass::oid"));
    rows(&answer)[0][0].as_ref().unwrap().parse().unwrap()
}

#[test]
fn row_description_refers_to_pg_class() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    raw.query("CREATE SCHEMA s");
    raw.query("CREATE TABLE s.t (dropped int, a int, b text)");
    raw.query("ALTER TABLE s.t DROP COLUMN dropped");
    raw.query("CREATE TABLE k (a int, b int PRIMARY KEY)");
    raw.query("CREATE VIEW v AS SELECT b, a FROM k");
    raw.query("CREATE MATERIALIZED VIEW m AS SELECT b, a FROM k");
    // TRUNCATE replaces the storage of a table, but not its OID.
    raw.query("TRUNCATE k");
    let of = |oid: u32, numbers: &[i16]| -> Vec<(u32, i16)> {
        numbers.iter().map(|number| (oid, *number)).collect()
    };
    let (t, k) = (oid_of(&mut raw, "s.t"), oid_of(&mut raw, "k"));
    let (v, m) = (oid_of(&mut raw, "v"), oid_of(&mut raw, "m"));
    let none = (0, 0);
    let cases = [
        ("SELECT * FROM s.t", of(t, &[2, 3])),
        ("SELECT b, a + 1, a FROM k", vec![(k, 2), none, (k, 1)]),
        ("SELECT * FROM v", of(v, &[1, 2])),
        ("SELECT x.a FROM v AS x", of(v, &[2])),
        ("SELECT * FROM m", of(m, &[1, 2])),
        ("SELECT q.b FROM (SELECT * FROM k) AS q", of(k, &[2])),
        ("WITH q AS (SELECT * FROM k) SELECT b FROM q", of(k, &[2])),
        ("SELECT k.a, t.b FROM k JOIN s.t USING (a)", vec![(k, 1), (t, 3)]),
        ("INSERT INTO k VALUES (1, 2) RETURNING b, a", of(k, &[2, 1])),
        ("SELECT relname, oid FROM pg_class", vec![(1259, 2), (1259, 1)]),
        ("SELECT a FROM k UNION SELECT a FROM k", vec![none]),
        ("SELECT count(a) FROM k", vec![none]),
    ];
    for (sql, expected) in cases {
        let simple = raw.query(sql);
        assert_eq!(origins(&simple[0]), expected, "{sql}");
        raw.query("DELETE FROM k");
        raw.send(&Frames::new().parse("", sql).describe(b'S', "").sync().0);
        let described = raw.until_ready();
        assert_eq!(kinds(&described), "1tTZ");
        assert_eq!(origins(&described[2]), expected, "{sql}");
    }
}

#[test]
fn constraint_errors_name_schema_of_table() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    for sql in [
        "CREATE SCHEMA s",
        "CREATE TABLE s.t (a int PRIMARY KEY, b int NOT NULL, c int CHECK (c > 0), d int UNIQUE)",
        "CREATE TABLE s.r (a int REFERENCES s.t)",
        "CREATE TABLE s.l (a int UNIQUE DEFERRABLE INITIALLY DEFERRED)",
        "CREATE TEMP TABLE t (a int NOT NULL)",
        "INSERT INTO s.t VALUES (1, 1, 1, 1)",
        "INSERT INTO s.r VALUES (1)",
        "CREATE DOMAIN s.d AS int CHECK (VALUE > 0)",
    ] {
        assert!(kinds(&raw.query(sql)).ends_with("CZ"), "{sql}");
    }
    let find = "SELECT relnamespace::regnamespace FROM pg_class WHERE oid = 't'::regclass";
    let temporary = rows(&raw.query(find))[0][0].clone().unwrap();
    // SQLSTATE, schema, table, column, constraint, type.
    let cases = [
        ("INSERT INTO s.t VALUES (1, 1)", "23505|s|t||t_pkey|"),
        ("INSERT INTO s.t VALUES (2, 1, 1, 1)", "23505|s|t||t_d_key|"),
        ("INSERT INTO s.t VALUES (2)", "23502|s|t|b||"),
        ("INSERT INTO s.t VALUES (2, 1, 0)", "23514|s|t||t_c_check|"),
        ("UPDATE s.t SET a = 3", "23503|s|r||r_a_fkey|"),
        ("INSERT INTO s.r VALUES (7)", "23503|s|r||r_a_fkey|"),
        ("INSERT INTO s.l VALUES (1), (1)", "23505|s|l||l_a_key|"),
        ("INSERT INTO t VALUES (NULL)", "23502|TEMP|t|a||"),
        ("SELECT 0::s.d", "23514|s|||d_check|d"),
        ("ALTER TABLE s.t ADD CHECK (a > 5)", "23514|s|t||t_a_check|"),
        (
            "ALTER TABLE s.t ALTER c SET NOT NULL; ALTER TABLE s.t ADD e int NOT NULL",
            "23502|s|t|e||",
        ),
    ];
    for (sql, expected) in cases {
        let answer = raw.query(sql);
        let error = answer.iter().find(|message| message.kind == b'E').expect(sql);
        let field = |code| error.field(code).unwrap_or_default();
        let fields = [b'C', b's', b't', b'c', b'n', b'd'].map(field).join("|");
        assert_eq!(fields, expected.replace("TEMP", &temporary), "{sql}");
    }
}

#[test]
fn cached_plan_error_names_routine() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    raw.query("CREATE TABLE t (a int)");
    raw.send(&Frames::new().parse("p", "SELECT * FROM t").sync().0);
    assert_eq!(kinds(&raw.until_ready()), "1Z");
    raw.query("ALTER TABLE t ADD b int");
    raw.send(&Frames::new().bind("", "p", &[]).execute("", 0).sync().0);
    let answer = raw.until_ready();
    let error = answer.iter().find(|message| message.kind == b'E').unwrap();
    assert_eq!(error.field(b'C').as_deref(), Some("0A000"));
    assert_eq!(error.field(b'R').as_deref(), Some("RevalidateCachedQuery"));
}

#[test]
fn prepared_statement_follows_type_change() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    raw.query("CREATE TYPE pair AS (x int, y int)");
    raw.query("CREATE TABLE t (a int PRIMARY KEY, b pair)");
    raw.query("INSERT INTO t VALUES (1, (2, 3))");
    for name in ["all", "point", "change"] {
        let sql = match name {
            "all" => "SELECT b FROM t",
            "point" => "SELECT b FROM t WHERE a = 1",
            _ => "UPDATE t SET a = a RETURNING b",
        };
        raw.send(&Frames::new().parse(name, sql).sync().0);
        assert_eq!(kinds(&raw.until_ready()), "1Z");
    }
    raw.query("ALTER TYPE pair ADD ATTRIBUTE z text");
    for name in ["all", "point", "change"] {
        raw.send(&Frames::new().bind("", name, &[]).execute("", 0).sync().0);
        assert_eq!(rows(&raw.until_ready()), [[Some("(2,3,)".to_owned())]], "{name}");
    }
}

#[test]
fn rolled_back_table_does_not_reuse_oid() {
    let server = TestServer::start();
    let (mut raw, mut other) = (Raw::login(server.address()), Raw::login(server.address()));
    raw.query("BEGIN");
    raw.query("CREATE TABLE t (a int PRIMARY KEY)");
    let first = oid_of(&mut raw, "t");
    raw.query("SAVEPOINT s");
    raw.query("CREATE TABLE u (a int PRIMARY KEY)");
    raw.query("ROLLBACK TO s");
    raw.query("CREATE TABLE u (a int PRIMARY KEY)");
    raw.query("ROLLBACK");
    raw.query("CREATE TABLE t (a int PRIMARY KEY)");
    assert!(oid_of(&mut raw, "t") > first);
    // A session can log in while the tables of another are still being dropped.
    for round in 0..10 {
        raw.query("BEGIN");
        for table in 0..10 {
            raw.query(&format!("CREATE TABLE r{table} (a int UNIQUE, b int UNIQUE)"));
        }
        let columns: Vec<String> = (0..20).map(|column| format!("c{column} int UNIQUE")).collect();
        let create = format!("CREATE TABLE o{round} ({})", columns.join(", "));
        other.send(&Frames::new().query(&create).0);
        raw.query("ROLLBACK");
        assert_eq!(kinds(&other.until_ready()), "CZ", "{round}");
    }
}

#[test]
fn binary_copy_header_is_sent_with_first_row() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    raw.query("CREATE TABLE t (a int)");
    let copy = "COPY t TO STDOUT (FORMAT binary)";
    let empty = raw.query(copy);
    assert_eq!(kinds(&empty), "HdcCZ");
    assert!(empty[1].body.starts_with(b"PGCOPY\n\xff\r\n\0") && empty[1].body.len() == 21);
    raw.query("INSERT INTO t VALUES (1), (2)");
    let two = raw.query(copy);
    assert_eq!(kinds(&two), "HdddcCZ");
    let lengths: Vec<usize> = two[1..4].iter().map(|message| message.body.len()).collect();
    assert_eq!(lengths, [29, 10, 2]);
}

#[test]
fn catalog_char_columns_have_char_type() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    let answer = raw
        .query("SELECT relkind, relpersistence FROM pg_class WHERE relkind IN ('r', 'v') LIMIT 1");
    let types: Vec<u32> = answer[0].columns().into_iter().map(|(_, oid)| oid).collect();
    assert_eq!(types, [18, 18]);
    let sql = "SELECT relkind FROM pg_class WHERE relname = 'pg_class' AND relkind = ANY ($1)";
    raw.send(&Frames::new().parse("", sql).bind("", "", &[Some("{r,v}")]).execute("", 0).sync().0);
    assert_eq!(rows(&raw.until_ready()), [[Some("r".to_owned())]]);
}

#[test]
fn defaults_depend_on_their_sequences() {
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    raw.query("CREATE TABLE t (a serial, c int DEFAULT 7)");
    raw.query("ALTER TABLE t ADD b int DEFAULT nextval('t_a_seq')");
    // As Rails finds the sequence of a primary key, and what a serial column adds to that.
    let find = "SELECT a.attname, d.deptype FROM pg_depend d \
                JOIN pg_attrdef f ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid \
                JOIN pg_attribute a ON a.attrelid = f.adrelid AND a.attnum = f.adnum \
                WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = 't_a_seq'::regclass \
                ORDER BY 1";
    let found: Vec<_> = rows(&raw.query(find)).into_iter().flatten().flatten().collect();
    assert_eq!(found, ["a", "n", "b", "n"]);
    let owned = "SELECT refobjsubid, deptype FROM pg_depend \
                 WHERE objid = 't_a_seq'::regclass AND refobjid = 't'::regclass";
    let found: Vec<_> = rows(&raw.query(owned)).into_iter().flatten().flatten().collect();
    assert_eq!(found, ["1", "a"]);
}
