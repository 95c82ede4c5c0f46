//! Hints and details that recommend a statement: the recommended statement must be supported.
//!
//! The test searches the sources for sentences that contain the first word of a statement. Each
//! must be listed here, with statements that follow its recommendation; the test runs them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::TestServer;
use crate::raw::{Raw, sqlstate};

/// First words of statements.
const VERBS: &[&str] = &[
    "ALTER", "ANALYZE", "CALL", "COMMENT", "COMMIT", "COPY", "CREATE", "DELETE", "DROP", "EXPLAIN",
    "FLUSH", "INSERT", "LOCK", "MERGE", "PREPARE", "REFRESH", "REINDEX", "RESET", "ROLLBACK",
    "SELECT", "SET", "TABLE", "TRUNCATE", "UPDATE", "UPSERT", "VACUUM",
];

const SETUP: &str = "
CREATE TYPE pair AS (a int, b text);
CREATE TYPE mood AS ENUM ('sad');
CREATE TABLE t (id int PRIMARY KEY, v int, g text, c pair, m mood, w int GENERATED ALWAYS AS (v * 2) STORED);
CREATE TABLE watched (id int PRIMARY KEY, g text NOT NULL);
CREATE TABLE child (id int PRIMARY KEY, t int REFERENCES t);
CREATE INDEX t_v ON t (v);
CREATE VIEW view AS SELECT id AS a FROM t;
CREATE MATERIALIZED VIEW stored AS SELECT id FROM t;
CREATE TABLE counted (id int PRIMARY KEY, g int);
CREATE MATERIALIZED VIEW groups WITH (maintained = true) AS SELECT g, count(*) FROM counted GROUP BY g;
CREATE PROCEDURE p() LANGUAGE sql AS '';
CREATE FUNCTION called() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
INSERT INTO t (id, v) VALUES (1, 1);
";

/// Parts of sentences, and the statements that they recommend.
const ADVICE: &[(&str, &[&str])] = &[
    ("Declare the columns with ALTER TABLE.", &["ALTER TABLE t ADD declared int"]),
    ("Use SELECT pg_get_viewdef('{name}').", &["SELECT pg_get_viewdef('view')"]),
    (
        "Use SELECT, or a role with BYPASSRLS.",
        &["SELECT * FROM t", "CREATE ROLE reads_all BYPASSRLS"],
    ),
    (
        "use ALTER TABLE NO FORCE ROW LEVEL SECURITY.",
        &["ALTER TABLE t NO FORCE ROW LEVEL SECURITY"],
    ),
    ("Use INSERT statements instead.", &["INSERT INTO t (id, v) VALUES (77, 1)"]),
    (
        "To enable copying to a view, provide an INSTEAD OF INSERT trigger.",
        &["CREATE TRIGGER takes INSTEAD OF INSERT ON view FOR EACH ROW EXECUTE FUNCTION called()"],
    ),
    (
        "Use ALTER DATABASE … SET for each database.",
        &["ALTER DATABASE bennu SET work_mem = '64MB'", "ALTER DATABASE bennu RESET work_mem"],
    ),
    ("Use UPSERT.", &["UPSERT INTO t (id, v) VALUES (2, 2)"]),
    (
        "ALTER TABLE … ATTACH COPROCESSOR",
        &["ALTER TABLE watched ATTACH COPROCESSOR summary WITH (table = 'sums', group_by = 'g')"],
    ),
    (
        "Detach it first: ALTER TABLE {} DETACH COPROCESSOR {}.",
        &["ALTER TABLE watched DETACH COPROCESSOR summary"],
    ),
    (
        "Use ALTER TABLE {} SET (salt_buckets = {buckets}).",
        &["ALTER TABLE watched SET (salt_buckets = 2)"],
    ),
    (
        "Use ALTER TABLE {name} SET ({option}).",
        &[
            "CREATE TABLE measure (id int PRIMARY KEY)",
            "ALTER TABLE measure SET (timestamps = 'client')",
            "CREATE TABLE token (id int PRIMARY KEY)",
            "ALTER TABLE token SET (cell_ttl = true)",
        ],
    ),
    (
        "Use UPSERT without ON DUPLICATE KEY.",
        &["UPSERT INTO measure VALUES (1) WITH TIMESTAMP '2026-01-01'"],
    ),
    ("To call a function, use SELECT.", &["SELECT length('a')"]),
    ("To call a procedure, use CALL.", &["CALL p()"]),
    (
        "Re-create it with CREATE OR REPLACE FUNCTION.",
        &["CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'"],
    ),
    (
        "SELECT or INSERT/UPDATE/DELETE RETURNING",
        &[
            "CREATE FUNCTION g() RETURNS int LANGUAGE sql AS 'UPDATE t SET v = 2 RETURNING v'",
            "CREATE FUNCTION h() RETURNS int LANGUAGE sql AS 'DELETE FROM child RETURNING id'",
        ],
    ),
    ("RESET as_of to write.", &["RESET as_of", "INSERT INTO t (id) VALUES (1001)"]),
    ("Read it with SELECT after the commit", &["SELECT _timestamp FROM t"]),
    (
        "Add the expression/function to every SELECT",
        &["SELECT id, id + 1 FROM t UNION SELECT v, v + 1 FROM t ORDER BY 2"],
    ),
    (
        "UPDATE t SET v = 2 WHERE id = 1 AND _timestamp = '2024-05-01 12:00:00.123456+00'",
        &["UPDATE t SET v = 2 WHERE id = 1 AND _timestamp = '2024-05-01 12:00:00.123456+00'"],
    ),
    (
        "Create an enum (CREATE TYPE … AS ENUM (…))",
        &[
            "CREATE TYPE own_enum AS ENUM ('a')",
            "CREATE TYPE own_composite AS (a int)",
            "CREATE DOMAIN own_domain AS int",
        ],
    ),
    (
        "Use DROP ... CASCADE to drop the dependent objects too.",
        &["CREATE TABLE a (id int)", "CREATE VIEW b AS SELECT * FROM a", "DROP TABLE a CASCADE"],
    ),
    (
        "Use DROP {} to remove {an} {other}.",
        &[
            "DROP VIEW view",
            "CREATE VIEW view AS SELECT id AS a FROM t",
            "DROP MATERIALIZED VIEW stored",
            "CREATE MATERIALIZED VIEW stored AS SELECT id FROM t",
            "DROP INDEX t_v",
            "CREATE INDEX t_v ON t (v)",
        ],
    ),
    (
        "Use ALTER TABLE instead.",
        &["CREATE TABLE c (id int)", "ALTER TABLE c RENAME id TO a", "ALTER TABLE c RENAME TO d"],
    ),
    ("or use TRUNCATE ... CASCADE", &["TRUNCATE t CASCADE", "INSERT INTO t (id, v) VALUES (1, 1)"]),
    ("Use DROP FUNCTION {shown} first.", &["DROP FUNCTION IF EXISTS f()"]),
    (
        "Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead.",
        &["ALTER TABLE t ALTER COLUMN w DROP EXPRESSION"],
    ),
    (
        "RESET the other",
        &[
            "ALTER TABLE t SET (normalizer_target_region_size = '1GB')",
            "ALTER TABLE t RESET (normalizer_target_region_size)",
            "ALTER TABLE t SET (normalizer_target_region_count = 4)",
        ],
    ),
    (
        "Use RESET to remove the quota",
        &[
            "ALTER TABLE t SET (max_read_bytes_per_second = '10MB')",
            "ALTER TABLE t RESET (max_read_bytes_per_second)",
        ],
    ),
    (
        "Use ALTER TABLE t ALTER FAMILY f SET (…).",
        &[
            "CREATE TABLE of_family (id int, f.a int)",
            "ALTER TABLE of_family ALTER FAMILY f SET (versions = 2)",
        ],
    ),
    ("Use FLUSH, then MAJOR COMPACT.", &["FLUSH t", "MAJOR COMPACT t"]),
    (
        "Use ALTER TABLE … ADD FAMILY first.",
        &["ALTER TABLE of_family ADD FAMILY g (), ADD COLUMN g.b int"],
    ),
    (
        "Use ALTER TABLE t ADD FAMILY f () for a family without columns.",
        &["ALTER TABLE of_family ADD FAMILY without_columns ()"],
    ),
    (
        "Qualify it with the table: SELECT t.f.* FROM t.",
        &["SELECT of_family.f.* FROM of_family, of_family AS other"],
    ),
    (
        "Use ALTER TABLE … SET LOGGED.",
        &["CREATE UNLOGGED TABLE loose (id int)", "ALTER TABLE loose SET LOGGED"],
    ),
    ("DELETE FROM", &["DELETE FROM child"]),
    (
        "Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.",
        &["ALTER VIEW view RENAME COLUMN a TO b"],
    ),
    ("use SET for the others", &["SET work_mem = '8MB'"]),
    ("Use ALTER COLUMN … SET STORAGE.", &["ALTER TABLE t ALTER COLUMN g SET STORAGE PLAIN"]),
    ("COPY … FROM STDIN or TO STDOUT", &["COPY t TO STDOUT"]),
    ("COPY FROM STDIN and COPY TO STDOUT", &["COPY t TO STDOUT"]),
    ("Try the COPY (SELECT ...) TO variant.", &["COPY (SELECT * FROM view) TO STDOUT"]),
    ("Assign the whole field: SET c.f = ROW(…).", &["UPDATE t SET c.a = 1"]),
    (
        "Use OLD TABLE or NEW TABLE for naming transition tables.",
        &[
            "CREATE TRIGGER rows AFTER INSERT ON t REFERENCING NEW TABLE AS n EXECUTE FUNCTION called()",
        ],
    ),
    (
        "Use CREATE TRIGGER.",
        &["CREATE TRIGGER after_v AFTER INSERT ON t EXECUTE FUNCTION called()"],
    ),
    (
        "Set log_statement to ddl, or use CREATE TRIGGER for the rows of a table.",
        &[
            "SET log_statement = ddl",
            "CREATE TRIGGER row AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION called()",
        ],
    ),
    (
        "Use DROP TRIGGER, then CREATE CONSTRAINT TRIGGER.",
        &[
            "CREATE CONSTRAINT TRIGGER c AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION called()",
            "DROP TRIGGER c ON t",
        ],
    ),
    ("Create a global index: CREATE UNIQUE INDEX.", &["CREATE UNIQUE INDEX ON t (v)"]),
    (
        "Change those of the table: ALTER TABLE {} SET (…).",
        &["ALTER TABLE watched SET (salt_buckets = 3)"],
    ),
    ("Use FLUSH table", &["FLUSH t"]),
    ("Use CREATE TABLE … (LIKE table).", &["CREATE TABLE alike (LIKE t)"]),
    (
        "Use CREATE TABLE … SPLIT ON (…)",
        &["CREATE TABLE pre_split (id int PRIMARY KEY) SPLIT ON (10)"],
    ),
    (
        "Use CREATE FUNCTION with LANGUAGE sql or LANGUAGE plpgsql.",
        &["CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql AS 'SELECT $1 * 2'"],
    ),
    (
        "Read the changes with SELECT … FROM t FOR SYSTEM_TIME FROM … TO ….",
        &["SELECT v, _operation FROM t FOR SYSTEM_TIME FROM now() - interval '1 ms' TO now()"],
    ),
    ("Add the columns to the table with ALTER TABLE … ADD.", &["ALTER TABLE t ADD own int"]),
    ("Use CREATE OR REPLACE VIEW.", &["CREATE OR REPLACE VIEW replaced AS SELECT id FROM t"]),
    (
        "Use a subquery: WHERE column IN (SELECT column … LIMIT n).",
        &["DELETE FROM child WHERE id IN (SELECT id FROM child LIMIT 1)"],
    ),
    ("Use EXPLAIN (ANALYZE, BUFFERS).", &["EXPLAIN (ANALYZE, BUFFERS) SELECT * FROM t"]),
    (
        "Use ANALYZE, BUFFERS, COSTS, FORMAT, SETTINGS, SUMMARY, TIMING or VERBOSE.",
        &[
            "EXPLAIN (ANALYZE, BUFFERS, COSTS, FORMAT json, SETTINGS, SUMMARY, TIMING, VERBOSE) SELECT 1",
        ],
    ),
    (
        "Use DROP EXTENSION and CREATE EXTENSION.",
        &[
            "CREATE EXTENSION pgcrypto",
            "DROP EXTENSION pgcrypto",
            "CREATE EXTENSION pgcrypto SCHEMA public",
        ],
    ),
    (
        "Use UPSERT … ON DUPLICATE KEY UPDATE",
        &["UPSERT INTO child VALUES (1, 1) ON DUPLICATE KEY UPDATE t = 1"],
    ),
    ("discard the results of a SELECT", &["DO 'BEGIN PERFORM 1; END'"]),
    (
        "EXECUTE ... INTO or EXECUTE CREATE TABLE ... AS",
        &[
            "DO $$ DECLARE i int; BEGIN EXECUTE 'SELECT 1' INTO i; EXECUTE 'CREATE TABLE z AS SELECT 1'; END $$",
        ],
    ),
    ("Use the REFRESH MATERIALIZED VIEW command.", &["REFRESH MATERIALIZED VIEW stored"]),
    (
        "Use REFRESH MATERIALIZED VIEW, which computes its rows again.",
        &["REFRESH MATERIALIZED VIEW groups"],
    ),
    ("REFRESH without CONCURRENTLY computes them again.", &["REFRESH MATERIALIZED VIEW groups"]),
    (
        "Leave out the option maintained, and use REFRESH MATERIALIZED VIEW.",
        &[
            "CREATE MATERIALIZED VIEW joined AS SELECT c.g, count(*) FROM counted c JOIN t USING (id) GROUP BY 1",
            "REFRESH MATERIALIZED VIEW joined",
        ],
    ),
    ("Delete old rows with DELETE instead of a TTL.", &["DELETE FROM counted WHERE id < 10"]),
    (
        "correct the indexes of tables that lost data: CHECK TABLE … REPAIR",
        &["CHECK TABLE t REPAIR", "CHECK INDEX t_v REPAIR"],
    ),
    ("Rebuild it with REINDEX INDEX.", &["REINDEX INDEX t_v"]),
    ("Rebuild it with ALTER INDEX … REBUILD.", &["ALTER INDEX t_v ON t REBUILD"]),
    ("Use ALTER INDEX … REBUILD.", &["ALTER INDEX t_v ON t REBUILD"]),
    ("Use ALTER INDEX … CONSISTENCY = STRONG first.", &["ALTER INDEX t_v CONSISTENCY = STRONG"]),
    (
        "Use ALTER INDEX … CONSISTENCY = STRONG or EVENTUAL.",
        &["ALTER INDEX t_v CONSISTENCY = EVENTUAL", "ALTER INDEX t_v CONSISTENCY = STRONG"],
    ),
    (
        "Use ALTER INDEX … UNUSABLE, or drop the index.",
        &["ALTER INDEX t_v UNUSABLE", "ALTER INDEX t_v USABLE"],
    ),
];

/// Sentences with such a word that recommend no statement.
const NO_ADVICE: &[&str] = &[
    "Views cannot have TRUNCATE triggers",
    "Check routine bodies during CREATE FUNCTION and CREATE PROCEDURE",
    "The name is used both as MERGE target table and data source.",
    "Generated columns cannot be used in COPY.",
    "do not have the same ON COMMIT setting",
    "bytes in one message, or use COPY",
];

fn sources() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = ["src", "sql/src", "store/src", "coprocessors/src", "types/src"];
    let mut folders: Vec<PathBuf> = crates.iter().map(|folder| root.join(folder)).collect();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_source = path.extension().is_some_and(|extension| extension == "rs");
            match path.is_dir() {
                true => folders.push(path),
                false if is_source && path.file_stem().is_some_and(|name| name != "tests") => {
                    files.push(path)
                }
                false => {}
            }
        }
    }
    files
}

/// Returns the string literals of a source file, without those of its tests.
fn literals(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: String = lines.flat_map(|line| [line, "\n"]).collect();
    let (mut found, mut rest) = (Vec::new(), code.chars().peekable());
    while let Some(next) = rest.next() {
        match next {
            '\'' if rest.peek() == Some(&'"') => drop(rest.next()),
            '"' => {
                let mut literal = String::new();
                while let Some(part) = rest.next().filter(|part| *part != '"') {
                    match part {
                        '\\' => match rest.next() {
                            Some('\n') => {
                                while rest.next_if(|part| part.is_whitespace()).is_some() {}
                            }
                            escaped => literal.extend(escaped),
                        },
                        part => literal.push(part),
                    }
                }
                found.push(literal);
            }
            _ => {}
        }
    }
    found
}

/// Returns whether a literal is a sentence that contains the first word of a statement.
fn may_advise(literal: &str) -> bool {
    let is_sentence = literal.starts_with(char::is_uppercase) && literal.ends_with('.');
    let mut words = literal.split(|part: char| !part.is_alphanumeric() && part != '_');
    (is_sentence || literal.starts_with("correct the indexes"))
        && words.any(|word| VERBS.contains(&word))
}

#[test]
fn statements_advised_by_hints_are_accepted() {
    let mut sentences: Vec<String> = Vec::new();
    for file in sources() {
        let source = fs::read_to_string(&file).unwrap();
        sentences.extend(literals(&source).into_iter().filter(|literal| may_advise(literal)));
    }
    let known = |sentence: &str| {
        ADVICE.iter().any(|(part, _)| sentence.contains(part))
            || NO_ADVICE.iter().any(|part| sentence.contains(part))
    };
    let unknown: Vec<&String> = sentences.iter().filter(|sentence| !known(sentence)).collect();
    assert!(unknown.is_empty(), "sentences without statements that try them: {unknown:#?}");
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    assert_eq!(sqlstate(&raw.query(SETUP)), None);
    for (advice, statements) in ADVICE {
        let is_given = sentences.iter().any(|sentence| sentence.contains(advice));
        assert!(is_given, "no hint says \"{advice}\"");
        for statement in *statements {
            assert_eq!(sqlstate(&raw.query(statement)), None, "{advice}: {statement}");
        }
    }
}
