//! Every key word of PostgreSQL in every syntactic position of a name, on bennu and PostgreSQL.
//!
//! The words are those of `pg_get_keywords()` and some of bennu's own statements. The test
//! compares SQLSTATEs, and names and types of columns. It is ignored: it needs a PostgreSQL 15 at
//! `BENNU_ORACLE`. `BENNU_SERVER` is the address of a bennu instead of one in the test's process,
//! `BENNU_ONLY` selects positions that contain a text.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::harness::TestServer;
use crate::raw::{Frames, Raw, rows};

/// Objects for the statements.
const SETUP: &[&str] = &[
    "DROP TABLE IF EXISTS k CASCADE",
    "DROP TYPE IF EXISTS pair CASCADE",
    "CREATE TABLE k (a integer PRIMARY KEY, b text)",
    "CREATE TYPE pair AS (a integer, b text)",
];

/// Key words of bennu's own statements, which PostgreSQL does not know.
const OWN: &[&str] = &[
    "async",
    "compact",
    "duplicate",
    "flush",
    "major",
    "salt_buckets",
    "split",
    "system_time",
    "upsert",
    "qualify",
    "top",
    "sample",
    "final",
    "version",
];

/// Statements with `$` for the name; those with a leading minus sign have no permanent effect.
const PLACES: &[&str] = &[
    "-SELECT $ FROM (SELECT 1 AS \"$\") AS x",
    "-SELECT x.$ FROM (SELECT 1 AS \"$\") AS x",
    "-SELECT $.a FROM (SELECT 1 AS a) AS \"$\"",
    "-SELECT $.* FROM (SELECT 1 AS a) AS \"$\"",
    "-SELECT 1 + $ FROM (SELECT 1 AS \"$\") AS x",
    "-SELECT ($) FROM (SELECT 1 AS \"$\") AS x",
    "-SELECT a FROM (SELECT 1 AS a, 2 AS \"$\") AS x ORDER BY $, a",
    "-SELECT count(*) FROM (SELECT 1 AS a, 2 AS \"$\") AS x GROUP BY $",
    "-SELECT count(*) FROM (SELECT 1 AS a, 2 AS \"$\") AS x WHERE $ = 2",
    "-SELECT (NULL::pair).$",
    "-SELECT 1 AS $",
    "-SELECT 1 $",
    "-SELECT 1 $, 2 b",
    "-SELECT a $ FROM k",
    "-SELECT (1) $ FROM k WHERE true",
    "-SELECT 'x' $",
    "-SELECT 1::int $",
    "-SELECT abs(1) $",
    "-SELECT 1 FROM (SELECT 1) AS $",
    "-SELECT 1 FROM (SELECT 1) $",
    "-SELECT 1 FROM (SELECT 1) $ (a)",
    "-SELECT 1 FROM (SELECT 1) x ($)",
    "-SELECT 1 FROM k AS $",
    "-SELECT 1 FROM k $",
    "-SELECT 1 FROM k $ WHERE true",
    "-SELECT 1 FROM k $, k y",
    "-SELECT 1 FROM k $ JOIN k y ON true",
    "-SELECT 1 FROM k $ (a, b)",
    "-SELECT 1 FROM k JOIN k $ ON true",
    "-SELECT 1 FROM generate_series(1, 2) $",
    "-SELECT 1 FROM generate_series(1, 2) AS $ (a)",
    "-SELECT 1 FROM k JOIN k y USING ($)",
    "-SELECT 1 FROM $",
    "-SELECT 1 FROM public.$",
    "-SELECT 1 FROM $.x",
    "-SELECT 1 FROM $(1)",
    "-WITH $ AS (SELECT 1) SELECT 1 FROM \"$\"",
    "-WITH x ($) AS (SELECT 1) SELECT * FROM x",
    "-SELECT $(1)",
    "-SELECT $()",
    "-SELECT public.$(1)",
    "-SELECT $.f(1)",
    "-SELECT abs($ => 1)",
    "-SELECT count(*) OVER $ FROM k WINDOW \"$\" AS (ORDER BY a)",
    "-SELECT count(*) OVER \"$\" FROM k WINDOW $ AS (ORDER BY a)",
    "-SELECT CAST(NULL AS $)",
    "-SELECT NULL::$",
    "-SELECT NULL::public.$",
    "-SELECT $ 'x'",
    "-SELECT 'a' COLLATE $",
    "-INSERT INTO k ($) VALUES (1)",
    "-INSERT INTO k AS $ VALUES (1)",
    "-INSERT INTO $ VALUES (1)",
    "-INSERT INTO $ (a) VALUES (1)",
    "-INSERT INTO k VALUES (1) ON CONFLICT ($) DO NOTHING",
    "-INSERT INTO k VALUES (1) ON CONFLICT ON CONSTRAINT $ DO NOTHING",
    "INSERT INTO k VALUES (1) RETURNING a $",
    "-UPDATE k SET $ = 1",
    "-UPDATE $ SET a = 1",
    "-UPDATE k $ SET a = 1",
    "-UPDATE k AS $ SET a = 1",
    "-DELETE FROM $",
    "-DELETE FROM k $",
    "-DELETE FROM k $ WHERE true",
    "-DELETE FROM k USING k $",
    "-MERGE INTO k $ USING k y ON false WHEN MATCHED THEN DELETE",
    "CREATE TABLE t ($ int)",
    "CREATE TABLE t (a int, $ int)",
    "CREATE TABLE t (\"$\" int, PRIMARY KEY ($))",
    "CREATE TABLE $ (a int)",
    "CREATE TABLE public.$ (a int)",
    "CREATE TABLE $ AS SELECT 1 AS a",
    "CREATE TABLE t ($) AS SELECT 1 AS a",
    "CREATE TABLE t (a int CONSTRAINT $ CHECK (a > 0))",
    "CREATE TABLE t (a int, CONSTRAINT $ UNIQUE (a))",
    "CREATE TABLE t (a int REFERENCES $)",
    "CREATE TABLE t (a int REFERENCES k ($))",
    "CREATE TABLE t (a $)",
    "CREATE TABLE t (a public.$)",
    "CREATE TABLE t (LIKE $)",
    "CREATE TABLE t (a text COLLATE $)",
    "CREATE INDEX $ ON k (b)",
    "CREATE INDEX ON k ($)",
    "CREATE INDEX ON k (b $)",
    "CREATE INDEX ON k (b) INCLUDE ($)",
    "CREATE VIEW $ AS SELECT 1 AS a",
    "CREATE VIEW v ($) AS SELECT 1 AS a",
    "CREATE VIEW public.$ AS SELECT 1 AS a",
    "CREATE MATERIALIZED VIEW $ AS SELECT 1 AS a",
    "CREATE SEQUENCE $",
    "CREATE SEQUENCE s OWNED BY k.$",
    "CREATE SEQUENCE s AS $",
    "CREATE SCHEMA $",
    "CREATE DOMAIN $ AS int",
    "CREATE DOMAIN d AS $",
    "CREATE DOMAIN d AS int CONSTRAINT $ CHECK (VALUE > 0)",
    "CREATE TYPE $ AS ENUM ('a')",
    "CREATE TYPE $ AS (a int)",
    "CREATE TYPE t AS ($ int)",
    "CREATE FUNCTION $(int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION public.$(int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION f($ int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION f(int) RETURNS TABLE ($ int) LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION f($) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION f() RETURNS $ LANGUAGE sql AS 'SELECT 1'",
    "CREATE PROCEDURE $(int) LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION f(int) RETURNS int LANGUAGE $ AS 'SELECT 1'",
    "-CALL $(1)",
    "DROP TABLE $",
    "DROP TABLE k, $",
    "DROP VIEW $",
    "DROP SEQUENCE $",
    "DROP INDEX $",
    "DROP SCHEMA $",
    "DROP TYPE $",
    "DROP DOMAIN $",
    "DROP FUNCTION $(int)",
    "DROP FUNCTION $",
    "TRUNCATE $",
    "ALTER TABLE $ ADD c int",
    "ALTER TABLE k ADD $ int",
    "ALTER TABLE k ADD COLUMN $ int",
    "ALTER TABLE k DROP $",
    "ALTER TABLE k DROP COLUMN $",
    "ALTER TABLE k RENAME a TO $",
    "ALTER TABLE k RENAME $ TO c",
    "ALTER TABLE k RENAME TO $",
    "ALTER TABLE k ALTER $ SET NOT NULL",
    "ALTER TABLE k ADD CONSTRAINT $ CHECK (a > 0)",
    "ALTER TABLE k DROP CONSTRAINT $",
    "ALTER TABLE k ALTER b TYPE $",
    "ALTER TABLE k SET SCHEMA $",
    "ALTER SEQUENCE $ RESTART",
    "ALTER SCHEMA public RENAME TO $",
    "ALTER TYPE pair ADD ATTRIBUTE $ int",
    "ALTER TYPE pair RENAME TO $",
    "ALTER INDEX k_pkey RENAME TO $",
    "COMMENT ON TABLE $ IS 'x'",
    "COMMENT ON COLUMN k.$ IS 'x'",
    "COMMENT ON COLUMN $.a IS 'x'",
    "PREPARE $ AS SELECT 1",
    "EXECUTE $",
    "DEALLOCATE $",
    "DECLARE $ CURSOR FOR SELECT 1",
    "FETCH $",
    "FETCH 1 FROM $",
    "CLOSE $",
    "SAVEPOINT $",
    "ROLLBACK TO $",
    "RELEASE $",
    "-COPY $ TO STDOUT",
    "-COPY k ($) TO STDOUT",
    "ANALYZE $",
    "ANALYZE k ($)",
    "LOCK TABLE $",
    "SET ROLE $",
    "SET SESSION AUTHORIZATION $",
    "SET search_path = $",
    "SET x.$ = 1",
    "REFRESH MATERIALIZED VIEW $",
    "SELECT 1 FROM k FOR UPDATE OF $",
];

/// Intended or accepted differences: a part of the statement, words (or none for all), and the
/// reason.
const DIFFERS: &[(&str, &str, &str)] = &[
    ("", "xml binary trigger", "types that bennu refuses, some with a hint"),
    ("", "double", "Phoenix's name of a type, which PostgreSQL has for users"),
    ("", "values", "42704 as the name of a type, where PostgreSQL has a syntax error"),
    ("", "isnull", "an operator behind words such as TYPE and RETURNS"),
    ("", "select", "SELECT without a list of columns behind AS"),
    ("1::int $", "array", "int ARRAY"),
    ("(NULL::pair).$", "mode", "the function of a field of that name"),
    (
        "$(",
        "array coalesce cube current_time current_timestamp greatest grouping least localtime \
         localtimestamp normalize operator overlay rollup row substring table trim xmlconcat mode \
         name text",
        "calls with a syntax of their own: another error, or 0A000 in FROM",
    ),
    (
        "FROM $",
        "current_catalog current_date current_role current_schema current_time current_timestamp \
         current_user localtime localtimestamp session_user user",
        "calls without parentheses in FROM",
    ),
    (" $ (a", "having limit offset tablesample where with", "another error first"),
    ("abs($ =>", "", "any word may name an argument: bennu's own functions have such names"),
    ("SELECT $ 'x'", "fetch nchar", "a name in front of a text"),
    ("ON CONFLICT ($)", "false null true", "another error"),
    ("DELETE FROM k", "limit order", "Phoenix's clauses, refused with a hint"),
    ("CREATE INDEX ON k (", "between false isnull notnull null true", "operator classes"),
    (
        "INCLUDE ($)",
        "current_catalog current_date current_role current_schema current_time current_timestamp \
         current_user localtime localtimestamp session_user user",
        "0A000 in PostgreSQL for what is an expression",
    ),
    ("CREATE FUNCTION f", "null setof", "another error"),
    ("DROP TYPE $", "dec float nchar", "names of types that are several"),
    ("DROP DOMAIN $", "dec float nchar", "names of types that are several"),
    (
        "DROP FUNCTION $",
        "current_schema family left normalize replace right strip system version xml xmlexists bit \
         char extract interval like name numeric overlaps overlay position substring text time \
         timestamp varchar mode",
        "functions of the catalog cannot be named without arguments",
    ),
    ("ALTER TABLE $", "only", "another error"),
    ("ALTER $ SET", "column", "another error"),
    ("ALTER b TYPE $", "unknown", "another error"),
    ("ANALYZE $", "verbose", "VERBOSE is refused"),
    ("ANALYZE k ($)", "", "lists of columns are refused"),
];

/// Returns whether a difference is intended.
fn is_intended(place: &str, word: &str) -> bool {
    DIFFERS.iter().any(|(part, words, _)| {
        place.contains(part)
            && (words.is_empty() || words.split_whitespace().any(|one| one == word))
    })
}

/// Answer of a server: columns, SQLSTATE and message.
type Answer = (Vec<(String, u32)>, String, String);

fn answer(raw: &mut Raw) -> Answer {
    let messages = raw.until_ready();
    assert!(messages.last().is_some_and(|last| last.kind == b'Z'), "the server hung up");
    let error = messages.iter().find(|message| message.kind == b'E');
    let field = |code| error.and_then(|error| error.field(code)).unwrap_or_default();
    let columns = messages.iter().find(|message| message.kind == b'T');
    let columns = columns.map(|columns| columns.columns()).unwrap_or_default();
    (columns, field(b'C'), field(b'M'))
}

fn ask(raw: &mut Raw, statements: &[(String, bool)]) -> Vec<Answer> {
    let frames = statements.iter().fold(Frames::new(), |frames, (sql, lasts)| match lasts {
        true => frames.query("BEGIN").query(sql).query("ROLLBACK"),
        false => frames.query(sql),
    });
    raw.send(&frames.0);
    let answers = statements.iter().map(|(_, lasts)| {
        if *lasts {
            answer(raw);
        }
        let given = answer(raw);
        if *lasts {
            answer(raw);
        }
        given
    });
    answers.collect()
}

fn login(address: SocketAddr) -> Raw {
    let mut raw = Raw::login(address);
    for sql in SETUP {
        let messages = raw.query(sql);
        assert!(messages.iter().all(|message| message.kind != b'E'), "{sql}: {messages:?}");
    }
    raw
}

#[test]
#[ignore = "needs a PostgreSQL 15 at BENNU_ORACLE"]
fn key_words_are_accepted_as_names_like_postgresql() {
    let only = std::env::var("BENNU_ONLY").unwrap_or_default();
    let oracle = std::env::var("BENNU_ORACLE").unwrap().parse().unwrap();
    let own = std::env::var("BENNU_SERVER").map(|address| address.parse().unwrap());
    let server = own.is_err().then(TestServer::start);
    let address = server.as_ref().map_or_else(|| own.unwrap(), TestServer::address);
    let (mut ours, mut theirs) = (login(address), login(oracle));
    let words = rows(&theirs.query("SELECT word FROM pg_get_keywords() ORDER BY 1"));
    let mut words: Vec<String> = words.into_iter().flatten().flatten().collect();
    words.extend(OWN.iter().map(|word| (*word).to_owned()));
    let (mut count, mut differing) = (0, 0);
    for place in PLACES.iter().filter(|place| place.contains(&only)) {
        let lasts = !place.starts_with('-');
        let sql = place.trim_start_matches('-');
        let statements: Vec<_> = words.iter().map(|word| (sql.replace('$', word), lasts)).collect();
        let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (words, statements) in words.chunks(50).zip(statements.chunks(50)) {
            let answers = ask(&mut ours, statements).into_iter().zip(ask(&mut theirs, statements));
            for (word, (one, other)) in words.iter().zip(answers) {
                count += 1;
                if (&one.0, &one.1) == (&other.0, &other.1) || is_intended(place, word) {
                    continue;
                }
                differing += 1;
                let kind = match one.1 == other.1 {
                    true => format!("{:?}, {:?}", one.0, other.0),
                    false => format!("ours {:5}, theirs {:5}", one.1, other.1),
                };
                found.entry(kind).or_default().push(word);
            }
        }
        for (kind, words) in found {
            println!("{sql}\n    {kind}: {}", words.join(" "));
        }
    }
    println!("{differing} of {count} statements differ");
    assert_eq!(differing, 0, "statements differ");
}
