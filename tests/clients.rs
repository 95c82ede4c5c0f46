//! Tests with psql and pgbench, where they are installed.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::harness::TestServer;

/// Returns whether a client program is installed; otherwise prints that the test is skipped.
pub(crate) fn installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}

fn client(program: &str, server: &TestServer) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PG")) {
        command.env_remove(name);
    }
    command
        .env("PGHOST", server.address().ip().to_string())
        .env("PGPORT", server.address().port().to_string())
        .env("PGUSER", "bennu")
        .env("PGDATABASE", "bennu")
        .env("PSQL_PAGER", "")
        .env("PSQLRC", "/dev/null")
        .current_dir(server.directory());
    command
}

fn psql(server: &TestServer, arguments: &[&str], input: &str) -> Output {
    let mut child = client("psql", server)
        .arg("-X")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs a script that must succeed and returns psql's output.
fn answer(server: &TestServer, arguments: &[&str], input: &str) -> String {
    let output = psql(server, arguments, input);
    assert_eq!(text(&output.stderr), "", "{input}");
    assert!(output.status.success(), "{input}");
    text(&output.stdout)
}

/// Runs psql's catalog queries for its commands, with the same output as PostgreSQL.
#[test]
#[expect(clippy::too_many_lines, reason = "what psql asks, one after the other")]
fn psql_describe_commands_match_postgresql() {
    if !installed("psql") {
        return;
    }
    let server = TestServer::start();
    let script = "\
CREATE TYPE mood AS ENUM ('a', 'b');
CREATE TABLE t (a int PRIMARY KEY, b text DEFAULT 'x', c varchar(10) NOT NULL, CHECK (a > 0), UNIQUE (b));
CREATE INDEX t_c ON t (lower(c) DESC, a) INCLUDE (b);
CREATE TABLE u (id serial PRIMARY KEY, m mood, n bigint GENERATED ALWAYS AS IDENTITY,
  a int REFERENCES t);
CREATE VIEW v AS SELECT a, b FROM t;
";
    answer(&server, &["-q"], script);
    let described = answer(&server, &["-q"], "\\d t\n\\d u\n");
    let expected = r#"                         Table "public.t"
 Column |         Type          | Collation | Nullable |  Default  
--------+-----------------------+-----------+----------+-----------
 a      | integer               |           | not null | 
 b      | text                  |           |          | 'x'::text
 c      | character varying(10) |           | not null | 
Indexes:
    "t_pkey" PRIMARY KEY, btree (a)
    "t_b_key" UNIQUE CONSTRAINT, btree (b)
    "t_c" btree (lower(c::text) DESC, a) INCLUDE (b)
Check constraints:
    "t_a_check" CHECK (a > 0)
Referenced by:
    TABLE "u" CONSTRAINT "u_a_fkey" FOREIGN KEY (a) REFERENCES t(a)

                            Table "public.u"
 Column |  Type   | Collation | Nullable |            Default            
--------+---------+-----------+----------+-------------------------------
 id     | integer |           | not null | nextval('u_id_seq'::regclass)
 m      | mood    |           |          | 
 n      | bigint  |           | not null | generated always as identity
 a      | integer |           |          | 
Indexes:
    "u_pkey" PRIMARY KEY, btree (id)
Foreign-key constraints:
    "u_a_fkey" FOREIGN KEY (a) REFERENCES t(a)

"#;
    assert_eq!(described, expected);
    let listed = answer(&server, &["-q", "-A", "-t"], "\\d\n\\di\n\\dT\n\\du\n\\dn public\n");
    let expected = "\
public|t|table|bennu
public|u|table|bennu
public|u_id_seq|sequence|bennu
public|u_n_seq|sequence|bennu
public|v|view|bennu
public|t_b_key|index|bennu|t
public|t_c|index|bennu|t
public|t_pkey|index|bennu|t
public|u_pkey|index|bennu|u
public|mood|
bennu|Superuser, Create role, Create DB, Replication, Bypass RLS|{}
public|pg_database_owner
";
    assert_eq!(listed, expected);
    // No command fails, regardless of its result.
    for command in [
        "\\d+ t",
        "\\d+ v",
        "\\d t_c",
        "\\d u_id_seq",
        "\\d pg_class",
        "\\dt+",
        "\\di+",
        "\\dv+",
        "\\ds+",
        "\\dn+",
        "\\df",
        "\\df+ lower",
        "\\da",
        "\\dT+",
        "\\dD",
        "\\dp",
        "\\l+",
        "\\dx",
        "\\db",
        "\\dC",
        "\\do ||",
        "\\dO",
        "\\dc",
        "\\dy",
        "\\dRp",
        "\\dX",
        "\\dP",
        "\\dA",
        "\\dS",
        "\\sv v",
    ] {
        answer(&server, &["-q"], &format!("{command}\n"));
    }
}

#[test]
fn psql_output_formats_work() {
    if !installed("psql") {
        return;
    }
    let server = TestServer::start();
    let script = "\
CREATE TABLE t (a int PRIMARY KEY, b text, c numeric);
INSERT INTO t VALUES (1, 'one', 1.50), (2, NULL, -2);
SELECT * FROM t ORDER BY a;
\\pset null '<null>'
\\pset format csv
SELECT * FROM t ORDER BY a;
\\pset format unaligned
\\pset fieldsep ;
SELECT a, b FROM t ORDER BY a;
\\pset format html
SELECT a FROM t WHERE a = 1;
\\x on
\\pset format aligned
SELECT a, b FROM t WHERE a = 2;
";
    let expected = " a |  b  |  c   \n---+-----+------\n 1 | one | 1.50\n \
2 |     |   -2\n(2 rows)\n\n\
a,b,c\n1,one,1.50\n2,<null>,-2\n\
a;b\n1;one\n2;<null>\n(2 rows)\n\
<table border=\"1\">\n  <tr>\n    <th align=\"center\">a</th>\n  </tr>\n  <tr valign=\"top\">\n    \
<td align=\"right\">1</td>\n  </tr>\n</table>\n<p>(1 row)<br />\n</p>\n\
-[ RECORD 1 ]\na | 2\nb | <null>\n\n";
    assert_eq!(answer(&server, &["-q"], script), expected);
}

#[test]
fn psql_copy_round_trips_files() {
    if !installed("psql") {
        return;
    }
    let server = TestServer::start();
    let file = server.directory().join("rows.csv");
    std::fs::write(&file, "id,name\n1,Ann\n2,\"Bob, \"\"B\"\"\"\n3,\n").unwrap();
    let script = "\
CREATE TABLE t (id int PRIMARY KEY, name text);
\\copy t FROM 'rows.csv' WITH (FORMAT csv, HEADER)
SELECT count(*), count(name) FROM t;
\\copy t TO 'out.txt'
\\copy t (name) TO STDOUT WITH (FORMAT csv)
";
    let printed = answer(&server, &["-At"], script);
    assert_eq!(printed, "CREATE TABLE\nCOPY 3\n3|2\nCOPY 3\nAnn\n\"Bob, \"\"B\"\"\"\n\n");
    let out = std::fs::read_to_string(server.directory().join("out.txt")).unwrap();
    assert_eq!(out, "1\tAnn\n2\tBob, \"B\"\n3\t\\N\n");

    std::fs::write(&file, "4,Dan\nfive,Eve\n").unwrap();
    let output = psql(&server, &["-At"], "\\copy t FROM 'rows.csv' CSV\nSELECT count(*) FROM t;\n");
    let errors = text(&output.stderr);
    assert!(errors.contains("invalid input syntax for type integer: \"five\""), "{errors}");
    assert!(errors.contains("CONTEXT:  COPY t, line 2, column id: \"five\""), "{errors}");
    assert_eq!(text(&output.stdout), "3\n");
}

#[test]
fn psql_shows_error_positions() {
    if !installed("psql") {
        return;
    }
    let server = TestServer::start();
    let output = psql(&server, &["-At"], "SELECT 1;\nSELECT nothing\n  FROM nowhere;\nSELECT 2;\n");
    let errors = text(&output.stderr);
    assert!(errors.contains("ERROR:  relation \"nowhere\" does not exist"), "{errors}");
    assert!(errors.contains("LINE 2:   FROM nowhere;\n               ^"), "{errors}");
    assert_eq!(text(&output.stdout), "1\n2\n");
    // Several statements in one message are atomic.
    let several = "CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1); SELECT 1 / 0";
    let output = psql(&server, &["-At", "-c", several], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("division by zero"));
    let output = psql(&server, &["-At", "-c", "SELECT * FROM t"], "");
    assert!(text(&output.stderr).contains("relation \"t\" does not exist"));
    let script = "BEGIN; SELECT 1 / 0; SELECT 3; COMMIT;";
    let output = psql(&server, &["-At", "-v", "ON_ERROR_STOP=1"], script);
    assert_eq!(output.status.code(), Some(3));
    // psql requests the server's version and encoding.
    let printed =
        answer(&server, &["-At"], "\\echo :SERVER_VERSION_NAME :ENCODING :DBNAME :USER\n");
    assert!(printed.starts_with("15.0"), "{printed}");
    assert!(printed.ends_with("UTF8 bennu bennu\n"), "{printed}");
}

#[test]
fn pgbench_runs_in_all_modes() {
    if !installed("pgbench") {
        return;
    }
    let server = TestServer::start();
    answer(
        &server,
        &["-q"],
        "CREATE TABLE t (id int PRIMARY KEY, n bigint NOT NULL);\n\
         INSERT INTO t VALUES (1, 0), (2, 0), (3, 0), (4, 0);\n",
    );
    let script = server.directory().join("bench.sql");
    std::fs::write(
        &script,
        "\\set id random(1, 4)\nBEGIN;\nUPDATE t SET n = n + 1 WHERE id = :id;\n\
         SELECT n FROM t WHERE id = :id;\nEND;\n",
    )
    .unwrap();
    for mode in ["simple", "extended", "prepared"] {
        let output = client("pgbench", &server)
            .args(["-n", "-c", "4", "-j", "2", "-t", "25", "-M", mode, "-f"])
            .arg(&script)
            .output()
            .unwrap();
        let printed = text(&output.stdout);
        assert!(output.status.success(), "{mode}: {}", text(&output.stderr));
        assert!(
            printed.contains("number of transactions actually processed: 100/100"),
            "{printed}"
        );
    }
    assert_eq!(answer(&server, &["-At"], "SELECT sum(n) FROM t;"), "300\n");
}

#[test]
fn pgbench_initialises_and_runs_builtin_scripts() {
    if !installed("pgbench") {
        return;
    }
    let server = TestServer::start();
    for steps in ["dtgvpf", "dtGvp"] {
        let output = client("pgbench", &server)
            .args(["-i", "-q", "-I", steps, "--foreign-keys", "--unlogged-tables", "-F", "90"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{steps}: {}", text(&output.stderr));
    }
    for script in ["tpcb-like", "simple-update", "select-only"] {
        let mode = if script == "tpcb-like" { "prepared" } else { "extended" };
        let output = client("pgbench", &server)
            .args(["-n", "-c", "2", "-t", "10", "-M", mode, "-b", script])
            .output()
            .unwrap();
        assert!(output.status.success(), "{script}: {}", text(&output.stderr));
    }
    let query = "SELECT count(*), sum(abalance) = (SELECT sum(delta) FROM pgbench_history) \
                 FROM pgbench_accounts;";
    assert_eq!(answer(&server, &["-At"], query), "100000|t\n");
}
