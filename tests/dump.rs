//! `pg_dump` and `pg_restore`, where they are installed: a database with all kinds of objects is
//! restored identically from each dump format.
//!
//! With the address of a PostgreSQL in `BENNU_ORACLE` (with user and database `bennu`, trust
//! authentication) the ignored test moves dumps in both directions.

use std::path::Path;
use std::process::Command;

use crate::harness::TestServer;

const SCHEMA: &str = include_str!("dump/schema.sql");

/// Definitions that only bennu supports.
const OWN: &str = r#"
CREATE TABLE own (id int, n int, note text, PRIMARY KEY (id))
  WITH (salt_buckets = 4, storage = cell, versions = 3, ttl = '30 days', f.versions = 2,
        column_families = 'f(note)');
INSERT INTO own SELECT g, g, 'n' || g FROM generate_series(1, 100) g;
CREATE INDEX own_n ON own (n) SALT_BUCKETS = 3;
CREATE TABLE named (id int PRIMARY KEY, a int, b int, c int, d int)
  WITH (column_families = '"x,y"(a), "q""{}"(b), "dotted.G h"(c), "back\slash''"(d)', "x,y.ttl" = '60 seconds',
        "q""{}.versions" = 2, "dotted.G h.versions" = 3, "back\slash'.ttl" = '1 day');
CREATE TABLE same_names (id int PRIMARY KEY, FAMILY f (x int UNIQUE, y int) WITH (versions = 2),
  FAMILY "G.h" (x text CHECK ("G.h".x <> f.x::text)), f.z int GENERATED ALWAYS AS (f.x + 1) STORED);
ALTER TABLE same_names ADD COLUMN "G.h".y int;
INSERT INTO same_names (id, f.x, "G.h".x, y, "G.h".y) VALUES (1, 2, 'three', 4, 5);
CREATE INDEX ON same_names ("G.h".x) INCLUDE (f.y) WHERE f.x > 0;
CREATE VIEW of_same_names AS SELECT id, f.*, "G.h".x AS other FROM same_names WHERE f.x = 2;
COMMENT ON COLUMN same_names."G.h".x IS 'x of G.h';
"#;

/// Source or target of a dump.
struct DumpEndpoint<'a> {
    host: String,
    port: String,
    database: &'a str,
}

impl DumpEndpoint<'_> {
    fn of(server: &TestServer) -> DumpEndpoint<'static> {
        let address = server.address();
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        DumpEndpoint { host, port, database: "bennu" }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PG")) {
            command.env_remove(name);
        }
        command.env("PGHOST", &self.host).env("PGPORT", &self.port);
        command.env("PGUSER", "bennu").env("PGDATABASE", self.database);
        command
    }

    fn psql(&self, arguments: &[&str]) {
        run(self.command("psql").args(["-X", "-q", "-v", "ON_ERROR_STOP=1"]).args(arguments));
    }

    fn dump(&self, arguments: &[&str], file: &Path) {
        run(self.command("pg_dump").args(arguments).arg("-f").arg(file));
    }

    /// Restores a dump of any format.
    fn restore(&self, format: &str, file: &Path) {
        match format {
            "plain" => self.psql(&["-f", &file.display().to_string()]),
            _ => drop(run(self
                .command("pg_restore")
                .args(["--exit-on-error", "-d", self.database])
                .arg(file))),
        }
    }

    /// Returns the contents of a dump, without comments and values that differ between runs.
    fn contents(&self, file: &Path) -> String {
        self.dump(&[], file);
        let text = std::fs::read_to_string(file).unwrap();
        let is_said = |line: &&str| {
            !line.is_empty()
                && !line.starts_with("--")
                && !line.starts_with("\\restrict")
                && !line.starts_with("\\unrestrict")
        };
        text.lines().filter(is_said).collect::<Vec<_>>().join("\n")
    }
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {errors}");
    errors
}

fn installed() -> bool {
    let found = ["psql", "pg_dump", "pg_restore"].iter().all(|program| {
        let version = Command::new(program).arg("--version").output();
        let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        version.is_ok_and(|version| version.contains(" 15."))
    });
    if !found {
        println!("skipped: pg_dump, pg_restore and psql 15 are not installed");
    }
    found
}

#[test]
fn data_only_restore_works_with_disabled_triggers() {
    if !installed() {
        return;
    }
    let (server, target) = (TestServer::start(), TestServer::start());
    let (source, target) = (DumpEndpoint::of(&server), DumpEndpoint::of(&target));
    let tables = "CREATE TABLE a (id int PRIMARY KEY, b int); CREATE TABLE b (id int PRIMARY KEY);\
                  ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES b";
    source.psql(&["-c", tables, "-c", "INSERT INTO b VALUES (1); INSERT INTO a VALUES (1, 1)"]);
    target.psql(&["-c", tables]);
    for (format, id) in [("plain", 1), ("custom", 2)] {
        let file = server.directory().join(format!("data.{format}"));
        let options = ["-F", format, "--data-only"];
        source.dump(&[&options[..], &["--disable-triggers"]].concat(), &file);
        match format {
            "plain" => target.psql(&["-f", &file.display().to_string()]),
            _ => {
                let mut restore = target.command("pg_restore");
                restore.args(["--exit-on-error", "--data-only", "--disable-triggers", "-d"]);
                run(restore.arg(target.database).arg(&file));
            }
        }
        target.psql(&["-c", "DELETE FROM a; DELETE FROM b"]);
        let wrong = format!("INSERT INTO a VALUES ({id}, {id})");
        let output = target.command("psql").args(["-X", "-c", &wrong]).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stderr).contains("a_b_fkey"), "{output:?}");
    }
}

#[test]
fn dump_and_restore_round_trips() {
    if !installed() {
        return;
    }
    let server = TestServer::start();
    let source = DumpEndpoint::of(&server);
    let schema = server.directory().join("schema.sql");
    std::fs::write(&schema, [SCHEMA, OWN].concat()).unwrap();
    source.psql(&["-o", "/dev/null", "-f", &schema.display().to_string()]);
    let file = server.directory().join("contents.sql");
    let before = source.contents(&file);
    assert!(
        before.contains("WITH (salt_buckets='4', column_families='f(note)', storage=cell"),
        "{before}"
    );
    assert!(before.contains("USING btree (n) WITH (salt_buckets='3')"), "{before}");
    let forms: [(&str, &[&str]); 3] =
        [("plain", &["--inserts"]), ("custom", &[]), ("directory", &["--no-owner", "-j", "4"])];
    for (format, options) in forms {
        let dump = server.directory().join(format!("dump.{format}"));
        source.dump(&[&["-F", format], options].concat(), &dump);
        let target = TestServer::start();
        let target = DumpEndpoint::of(&target);
        target.restore(format, &dump);
        assert_eq!(target.contents(&file), before, "{format} {options:?}");
    }
    // The two sections of a dump.
    let target = TestServer::start();
    let target = DumpEndpoint::of(&target);
    for part in ["pre-data", "data", "post-data"] {
        source.dump(&["--section", part], &file);
        target.restore("plain", &file);
    }
    assert_eq!(target.contents(&file), before);
}

#[test]
fn maintenance_programs_succeed() {
    if !installed() {
        return;
    }
    let server = TestServer::start();
    let source = DumpEndpoint::of(&server);
    let schema = server.directory().join("schema.sql");
    std::fs::write(&schema, [SCHEMA, OWN].concat()).unwrap();
    source.psql(&["-o", "/dev/null", "-f", &schema.display().to_string()]);
    let file = server.directory().join("all.sql");
    run(source.command("pg_dumpall").arg("-f").arg(&file));
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("CREATE ROLE bennu") && text.contains("CREATE EXTENSION"), "{text}");
    let programs: [(&str, &[&str]); 5] = [
        ("vacuumdb", &["--all", "--analyze"]),
        ("vacuumdb", &["--all", "--analyze-in-stages"]),
        ("vacuumdb", &["--all", "--full", "-j", "2"]),
        ("reindexdb", &["--all"]),
        ("reindexdb", &["--all", "--concurrently"]),
    ];
    for (program, options) in programs {
        run(source.command(program).args(options).arg("--quiet"));
    }
}

#[test]
#[ignore = "needs a PostgreSQL in BENNU_ORACLE"]
fn dump_round_trips_through_postgresql() {
    let oracle = std::env::var("BENNU_ORACLE").expect("the address of a PostgreSQL");
    let (host, port) = oracle.split_once(':').expect("host and port");
    let place = |database| DumpEndpoint { host: host.to_owned(), port: port.to_owned(), database };
    let database = "bennu_dump_test";
    place("bennu").psql(&["-c", &format!("DROP DATABASE IF EXISTS {database}")]);
    place("bennu").psql(&["-c", &format!("CREATE DATABASE {database}")]);
    let server = TestServer::start();
    let (source, oracle) = (DumpEndpoint::of(&server), place(database));
    let schema = server.directory().join("schema.sql");
    std::fs::write(&schema, SCHEMA).unwrap();
    source.psql(&["-o", "/dev/null", "-f", &schema.display().to_string()]);
    let (file, dump) = (server.directory().join("contents.sql"), server.directory().join("dump"));
    let before = source.contents(&file);
    source.dump(&["-F", "custom"], &dump);
    oracle.restore("custom", &dump);
    assert_eq!(oracle.contents(&file), before, "in PostgreSQL");
    oracle.dump(&["-F", "directory"], &server.directory().join("back"));
    let target = TestServer::start();
    let target = DumpEndpoint::of(&target);
    target.restore("directory", &server.directory().join("back"));
    assert_eq!(target.contents(&file), before, "back in bennu");
    place("bennu").psql(&["-c", &format!("DROP DATABASE {database}")]);
}
