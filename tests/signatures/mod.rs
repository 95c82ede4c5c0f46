//! All functions, operators and casts of PostgreSQL's catalogs over bennu's types, called on both
//! servers.
//!
//! The test covers functions, aggregates, window functions ([`catalog`] reads pg_proc), operators
//! (pg_operator) and casts between all types, each with a few values for every argument
//! ([`samples`], [`calls`]); and a list of texts as input of every type. It compares values,
//! names and types of the columns, SQLSTATEs, and messages.
//!
//! The test is ignored: it needs a PostgreSQL 15 at `BENNU_ORACLE`. `BENNU_SERVER` is the address
//! of a bennu instead of one in the test's process, `BENNU_ONLY` selects names that contain a
//! text, `BENNU_CASES` is a factor for the number of calls.

mod binary;
mod calls;
mod catalog;
mod samples;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use crate::harness::TestServer;
use crate::raw::{Frames, Message, Raw, rows};
use crate::signatures::catalog::Signature;

/// Pipelined statements.
const WINDOW: usize = 50;
/// Examples that are shown for each kind of difference.
const EXAMPLES: usize = 2;

/// Types and settings for the calls.
const SETUP: &[&str] = &[
    "DROP TYPE IF EXISTS mood, pair CASCADE",
    "DROP DOMAIN IF EXISTS positive",
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')",
    "CREATE TYPE pair AS (a integer, b text)",
    "CREATE DOMAIN positive AS integer CHECK (VALUE > 0)",
    "SET TimeZone = 'America/New_York'",
    "SET statement_timeout = 5000",
];

/// Answer of a server.
#[derive(Debug, Clone, Default, PartialEq)]
struct Answer {
    columns: Vec<(String, u32)>,
    rows: Vec<Vec<Option<String>>>,
    code: String,
    message: String,
}

/// First OID of user-defined types, which differ between servers.
const FIRST_OF_USERS: u32 = 16384;

impl Answer {
    fn of(messages: &[Message]) -> Answer {
        let error = messages.iter().find(|message| message.kind == b'E');
        let field = |code| error.and_then(|error| error.field(code)).unwrap_or_default();
        let columns = messages.iter().find(|message| message.kind == b'T').map(Message::columns);
        let columns = columns.unwrap_or_default().into_iter();
        Answer {
            columns: columns.map(|(name, oid)| (name, oid.min(FIRST_OF_USERS))).collect(),
            rows: rows(messages),
            code: field(b'C'),
            message: field(b'M'),
        }
    }

    fn text(&self) -> String {
        if !self.code.is_empty() {
            return format!("{}: {}", self.code, self.message);
        }
        let types = self.columns.iter().map(|(name, oid)| format!("{name}:{oid}"));
        let types = types.collect::<Vec<_>>().join(",");
        let values = self.rows.iter().take(8).map(|row| {
            let values = row.iter().map(|value| value.clone().unwrap_or_else(|| "NULL".to_owned()));
            values.collect::<Vec<_>>().join("|")
        });
        let values = values.collect::<Vec<_>>().join(" / ");
        let short: String = values.chars().take(300).collect();
        format!("{short}  [{types}]")
    }
}

/// Intended differences: the beginning of the signature, a part of the statement or of
/// PostgreSQL's answer, and the reason.
const DIFFERS: &[(&str, &str, &str)] = &[
    ("age(timestamp", "infinity", "22008, where PostgreSQL takes infinity for a number"),
    ("money / ", "'-1'", "22003, where PostgreSQL's division fails in hardware"),
    ("age(xid)", "", "transactions have no horizon that they come closer to"),
    ("currtid2(", "", "rows have no places"),
    ("make_interval(", "2147483647", "22008 of fields too large, where PostgreSQL's wrap round"),
    ("make_interval(", "2147483648", "22008 of fields too large, where PostgreSQL's wrap round"),
    ("make_interval(", "1.7e308", "22008 of fields too large, where PostgreSQL's wrap round"),
    ("cbrt(", ".", "the last digit is the C library's, and ours is the better one"),
    ("||/ ", ".", "as of cbrt()"),
    ("cbrt(", "5e-324", "likewise"),
    ("||/ ", "5e-324", "likewise"),
    ("avg(double precision)", "22003", "PostgreSQL adds the squares up, too, which overflow"),
    ("regproc::", "'int4in'", "functions of the catalog have numbers of bennu's own"),
    ("regprocedure::", "'abs(integer)'", "as of regproc"),
    ("regoper::", "'||/'", "as of regproc"),
    ("regoperator::", "integer)", "as of regproc"),
    ("bigint::regproc", "'40'", "as of regproc"),
    ("text read as regproc", "'101'", "as of regproc"),
    ("text read as regtype", "pg_class", "relations of the catalog have no types of their rows"),
    ("text read as regnamespace", "'bennu'", "bennu has a schema of this name"),
    ("\"char\"::char(3)", "''", "PostgreSQL's value is a zero byte, which ends the text"),
];

/// Returns whether a difference is intended.
fn is_intended(title: &str, sql: &str, theirs: &Answer) -> bool {
    DIFFERS.iter().any(|(beginning, part, _)| {
        title.starts_with(beginning) && (sql.contains(part) || theirs.code == *part)
    })
}

/// Returns the kind of a difference, if there is one.
fn difference(ours: &Answer, theirs: &Answer) -> Option<&'static str> {
    match (ours.code.as_str(), theirs.code.as_str()) {
        // PostgreSQL computes all rows of a function in FROM before it returns the first.
        (_, "57014") => None,
        ("", "") if ours.columns != theirs.columns => Some("column"),
        ("", "") => (ours.rows != theirs.rows).then_some("value"),
        ("42883", other) if other != "42883" => Some("missing"),
        ("0A000", other) if other != "0A000" => Some("refused"),
        ("", _) => Some("only theirs fails"),
        (_, "") => Some("only ours fails"),
        (one, other) if one != other => Some("SQLSTATE"),
        _ => (ours.message != theirs.message).then_some("message"),
    }
}

/// The two servers.
struct Pair {
    ours: Raw,
    theirs: Raw,
}

impl Pair {
    fn new(ours: SocketAddr, theirs: SocketAddr) -> Pair {
        let mut pair = Pair { ours: Raw::login(ours), theirs: Raw::login(theirs) };
        for sql in SETUP {
            let answers = pair.ask(&[(*sql).to_owned()]);
            let [(one, other)] = answers.as_slice() else { unreachable!("one statement was sent") };
            assert!(one.code.is_empty() && other.code.is_empty(), "{sql}: {one:?} {other:?}");
        }
        pair
    }

    /// Runs statements on both servers.
    fn ask(&mut self, statements: &[String]) -> Vec<(Answer, Answer)> {
        let frames = statements.iter().fold(Frames::new(), |frames, sql| frames.query(sql));
        self.ours.send(&frames.0);
        self.theirs.send(&frames.0);
        let answers = statements.iter().map(|sql| {
            let [ours, theirs] = [&mut self.ours, &mut self.theirs].map(|raw| {
                let messages = raw.until_ready();
                let ready = messages.last().is_some_and(|last| last.kind == b'Z');
                assert!(ready, "the server hung up: {sql}");
                Answer::of(&messages)
            });
            (ours, theirs)
        });
        answers.collect()
    }

    fn rows(&mut self, sql: &str) -> Vec<Vec<Option<String>>> {
        let messages = self.theirs.query(sql);
        assert!(!messages.iter().any(|message| message.kind == b'E'), "{sql}: {messages:?}");
        rows(&messages)
    }
}

/// Differences by signature.
#[derive(Default)]
struct Report {
    /// Number and examples by signature and kind.
    found: BTreeMap<(String, &'static str), (usize, Vec<String>)>,
    statement_counts: BTreeMap<String, usize>,
    /// Number of intended differences.
    meant: usize,
}

/// Kinds of differences, in order of output.
const KINDS: [&str; 8] = [
    "value",
    "column",
    "only ours fails",
    "only theirs fails",
    "SQLSTATE",
    "refused",
    "missing",
    "message",
];

impl Report {
    fn compare(&mut self, pair: &mut Pair, title: &str, statements: &[String]) {
        for window in statements.chunks(WINDOW) {
            for ((ours, theirs), sql) in pair.ask(window).iter().zip(window) {
                let Some(kind) = difference(ours, theirs) else { continue };
                if is_intended(title, sql, theirs) {
                    self.meant += 1;
                    continue;
                }
                let found = self.found.entry((title.to_owned(), kind)).or_default();
                found.0 += 1;
                if found.1.len() < EXAMPLES {
                    let text = format!(
                        "    {sql}\n      ours   {}\n      theirs {}",
                        ours.text(),
                        theirs.text()
                    );
                    found.1.push(text);
                }
            }
        }
        *self.statement_counts.entry(title.to_owned()).or_default() += statements.len();
    }

    /// Prints the differences and returns the number of those in more than the message.
    fn print(&self) -> usize {
        let statements: usize = self.statement_counts.values().sum();
        let total = |wanted: &str| {
            let of = self.found.iter().filter(|((_, kind), _)| *kind == wanted);
            of.fold((0, 0), |(signatures, calls), (_, (count, _))| (signatures + 1, calls + count))
        };
        let mut differing = 0;
        for kind in KINDS {
            println!("\n==== {kind}");
            for ((title, of), (count, examples)) in &self.found {
                if *of != kind {
                    continue;
                }
                println!("{title}: {count} of {}", self.statement_counts[title]);
                if kind != "missing" || *count < self.statement_counts[title] {
                    examples.iter().for_each(|example| println!("{example}"));
                }
            }
        }
        println!("\n{} signatures, {statements} statements", self.statement_counts.len());
        println!("meant: {} statements", self.meant);
        for kind in KINDS {
            let (signatures, calls) = total(kind);
            println!("{kind}: {signatures} signatures, {calls} statements");
            differing += if kind == "message" { 0 } else { calls };
        }
        differing
    }
}

/// Returns all signatures to call.
fn signatures(pair: &mut Pair) -> Vec<Signature> {
    let mut all: Vec<Signature> = Vec::new();
    for row in pair.rows(&catalog::functions_query()) {
        all.extend(catalog::function(&row));
    }
    for row in pair.rows(catalog::OPERATORS_QUERY) {
        all.extend(catalog::operator(&row));
    }
    let sources = samples::CASTABLE
        .iter()
        .filter(|of| !of.contains('(') && !samples::literals(of).is_empty());
    let sources: Vec<&&str> = sources.collect();
    for source in sources {
        let targets = samples::CASTABLE.iter();
        all.extend(targets.map(|target| catalog::cast(source, target)));
    }
    all
}

/// Returns the servers, and the one of this process, which must be retained.
fn servers() -> (Pair, Option<TestServer>) {
    let oracle = std::env::var("BENNU_ORACLE").unwrap().parse().unwrap();
    let own = std::env::var("BENNU_SERVER").map(|address| address.parse().unwrap());
    let server = own.is_err().then(TestServer::start);
    let address = server.as_ref().map_or_else(|| own.unwrap(), TestServer::address);
    (Pair::new(address, oracle), server)
}

#[test]
#[ignore = "needs a PostgreSQL 15 at BENNU_ORACLE"]
fn binary_forms_match_postgresql() {
    let (mut pair, _server) = servers();
    let (found, count) = binary::differences(&mut pair);
    found.iter().for_each(|text| println!("{text}"));
    println!("{} of {count} values differ", found.len());
    assert!(found.is_empty());
}

#[test]
#[ignore = "needs a PostgreSQL 15 at BENNU_ORACLE"]
fn signatures_match_postgresql() {
    let only = std::env::var("BENNU_ONLY").unwrap_or_default();
    let scale = std::env::var("BENNU_CASES").map_or(1, |scale| scale.parse().unwrap());
    let (mut pair, _server) = servers();
    pair.ours.set_patience(Duration::from_secs(60));
    let mut report = Report::default();
    for signature in signatures(&mut pair) {
        let title = signature.to_string();
        if title.contains(&only) {
            report.compare(&mut pair, &title, &calls::statements(&signature, scale));
        }
    }
    for target in samples::CASTABLE {
        let title = format!("text read as {target}");
        if title.contains(&only) {
            report.compare(&mut pair, &title, &calls::read_as(target));
        }
    }
    assert_eq!(report.print(), 0, "statements differ");
}
