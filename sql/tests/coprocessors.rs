//! Coprocessor scripts: ATTACH and DETACH COPROCESSOR, and the shipped coprocessors.
//!
//! `coprocessors/*.txt`: cases separated by blank lines; a case is comments (`#`), SQL, a line
//! `---`, and the expected output. A first line `@b` runs the case in session b; the line
//! `@restart` alone reopens the engine, `@restart without` with a registry that lacks `refuse`
//! and `tally`. Each file begins without tables. `BENNU_REGOLD=1` rewrites the expected output.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use coprocessors::registry::{
    ArgumentKind, Attachment, CoprocessorFactory, Parameter, ParameterRequirement,
};
use sql::EngineOptions;
use sql::catalog::record::{CoprocessorKind, CoprocessorRecord};
use store::Mutation;
use store::error::Veto;
use store::observer::{Hook, Hooks, ObserverContext, RegionObserver};

use crate::server::Server;
use crate::tally::Tally;

/// Observer that rejects every write, for tests of the execution order of coprocessors.
struct Refuse {
    name: String,
    message: String,
    code: String,
}

struct RefuseFactory;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "message",
        kind: ArgumentKind::Text,
        need: ParameterRequirement::Default("refused"),
        about: "what to say",
    },
    Parameter {
        name: "code",
        kind: ArgumentKind::Text,
        need: ParameterRequirement::Default("23514"),
        about: "its SQLSTATE",
    },
];

impl CoprocessorFactory for RefuseFactory {
    fn name(&self) -> &str {
        "refuse"
    }

    fn about(&self) -> &str {
        "refuses every write"
    }

    fn parameters(&self) -> &[Parameter] {
        PARAMETERS
    }

    fn build(&self, attachment: &Attachment<'_>) -> types::Result<Arc<dyn RegionObserver>> {
        let text = |name| attachment.arguments.text(name).unwrap_or_default().to_owned();
        let name = attachment.name.to_owned();
        Ok(Arc::new(Refuse { name, message: text("message"), code: text("code") }))
    }
}

impl RegionObserver for Refuse {
    fn name(&self) -> &str {
        &self.name
    }

    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::PreBatch])
    }

    fn pre_batch(&self, _: &dyn ObserverContext, _: &mut [Mutation]) -> store::Result<()> {
        assert!(self.message != "panic", "as it was told");
        Err(store::Error::Vetoed(Box::new(Veto {
            coprocessor: self.name.clone(),
            code: self.code.clone(),
            message: self.message.clone(),
            ..Veto::default()
        })))
    }
}

fn options_with_refuse() -> EngineOptions {
    let mut options = EngineOptions::default();
    options.registry.add(Arc::new(RefuseFactory));
    options.registry.add_endpoint(Arc::new(Tally));
    options
}

#[test]
fn scripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/coprocessors");
    let record = std::env::var_os("BENNU_REGOLD").is_some();
    let mut wrong = Vec::new();
    let mut count = 0;
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let script = fs::read_to_string(&path).unwrap();
        let mut server = Server::start(options_with_refuse);
        let mut recorded = String::new();
        for case in script.split("\n\n").map(str::trim).filter(|case| !case.is_empty()) {
            let (question, expected) = case.split_once("\n---").unwrap_or((case, ""));
            let lines: Vec<&str> = question.lines().filter(|line| !line.starts_with('#')).collect();
            let answer = case_answer(&mut server, &lines);
            count += usize::from(!lines.is_empty());
            if answer.trim() != expected.trim() {
                wrong.push(format!("{}\n{question}\n---\n{answer}", path.display()));
            }
            let divider = if lines.is_empty() { "" } else { "\n---\n" };
            let _ = write!(recorded, "{question}{divider}{}\n\n", answer.trim());
        }
        if record {
            fs::write(&path, recorded.trim_end().to_owned() + "\n").unwrap();
        }
    }
    assert!(count > 0, "no script was found");
    assert!(record || wrong.is_empty(), "answers differ:\n{}", wrong.join("\n\n"));
}

fn case_answer(server: &mut Server, lines: &[&str]) -> String {
    match lines {
        [] => String::new(),
        ["@restart"] => {
            server.restart_with(options_with_refuse);
            "ok\n".to_owned()
        }
        ["@restart without"] => {
            server.restart_with(EngineOptions::default);
            "ok\n".to_owned()
        }
        [first, rest @ ..] => match first.strip_prefix('@') {
            Some(session) => server.run(session, &rest.join("\n")),
            None => server.run("a", &lines.join("\n")),
        },
    }
}

fn audit_on_every_table() -> EngineOptions {
    EngineOptions {
        server_coprocessors: vec![CoprocessorRecord {
            name: "audit".to_owned(),
            coprocessor: "audit".to_owned(),
            kind: CoprocessorKind::Observer,
            priority: 500,
            arguments: vec![("table".to_owned(), "everything".to_owned())],
            unknown: Default::default(),
        }],
        ..EngineOptions::default()
    }
}

#[test]
fn server_coprocessors_observe_all_tables_except_target() {
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE TABLE old (id int PRIMARY KEY)");
    server.run("a", "INSERT INTO old VALUES (1)");
    server.restart_with(audit_on_every_table);
    assert_eq!(server.run("a", "SELECT count(*) FROM everything"), "0\n");
    server.run("a", "CREATE TABLE new (id int PRIMARY KEY)");
    server.run("a", "INSERT INTO new VALUES (2); INSERT INTO old VALUES (3)");
    let log = "SELECT table_name, row_key FROM everything ORDER BY table_name";
    let entries = "new|{\"id\": 2}\nold|{\"id\": 3}\n";
    assert_eq!(server.run("a", log), entries);
    let view = "SELECT table_name, scope, priority, state FROM bennu.coprocessors \
                WHERE coprocessor = 'audit'";
    assert_eq!(server.run("a", view), "new|server|500|active\nold|server|500|active\n");
    let refused = server.run("a", "DROP TABLE everything");
    assert!(refused.starts_with("error 2BP01: cannot drop table everything because"), "{refused}");
    let taken = server.run("a", "ALTER TABLE new ATTACH COPROCESSOR audit");
    assert!(taken.starts_with("error 42710: "), "{taken}");
    // Without the server's coprocessor, the table is an ordinary one.
    server.restart_with(EngineOptions::default);
    server.run("a", "INSERT INTO new VALUES (4)");
    assert_eq!(server.run("a", log), entries);
    assert_eq!(server.run("a", "DROP TABLE everything"), "ok\n");
}

#[test]
fn invalid_server_coprocessor_prevents_start() {
    let opened = |coprocessor: &str, argument: &str| {
        let directory = tempfile::tempdir().unwrap();
        let store = store::Store::open(directory.path(), store::Options::default()).unwrap();
        let options = EngineOptions {
            server_coprocessors: vec![CoprocessorRecord {
                name: "one".to_owned(),
                coprocessor: coprocessor.to_owned(),
                kind: CoprocessorKind::Observer,
                priority: 500,
                arguments: vec![(argument.to_owned(), "x".to_owned())],
                unknown: Default::default(),
            }],
            ..EngineOptions::default()
        };
        match sql::engine::Engine::open(store, options) {
            Ok(_) => "it opened".to_owned(),
            Err(error) => format!("{} {}", error.sqlstate, error.message),
        }
    };
    assert_eq!(opened("nobody", "table"), "42704 coprocessor \"nobody\" does not exist");
    assert_eq!(
        opened("summary", "table"),
        "22023 coprocessor \"summary\" cannot be attached to all tables"
    );
    assert_eq!(
        opened("audit", "colour"),
        "22023 coprocessor \"audit\" has no parameter \"colour\""
    );
    assert!(opened("audit", "columns").starts_with("42703 "));
}

#[test]
fn row_expires_at_time_in_column() {
    let env = store::env::fault::FaultEnv::new(7);
    let options = store::Options { env: Arc::new(env.clone()), ..store::Options::default() };
    let store = store::Store::open(Path::new("data"), options).unwrap();
    let engine = sql::engine::Engine::open(store, EngineOptions::default()).unwrap();
    let mut session = sql::session::Session::open(
        &engine,
        sql::session::SessionOptions { user: "bennu".to_owned() },
    );
    let mut ask = |sql: &str| crate::server::answer(&mut session, sql);
    let second = |n: i64| env.set_now(1_700_000_000_000_000 + n * 1_000_000);
    let at = |n: i64| format!("to_timestamp({})", 1_700_000_000 + n);
    second(0);
    ask(
        "CREATE TABLE t (id int PRIMARY KEY, until timestamptz, name text, f.more text) WITH (versions = 5)",
    );
    // A row from before the ATTACH.
    assert_eq!(ask(&format!("INSERT INTO t VALUES (1, {}, 'old', 'x')", at(50))), "ok\n");
    let attach =
        "ALTER TABLE t ATTACH COPROCESSOR ttl_by_column WITH (column = 'until', after = 10)";
    assert_eq!(ask(attach), "ok\n");
    let insert = |id: i64, n: i64| format!("INSERT INTO t VALUES ({id}, {}, 'new', 'y')", at(n));
    assert_eq!(ask(&insert(2, 100)), "ok\n");
    assert_eq!(ask(&insert(3, 100)), "ok\n");
    assert_eq!(ask(&insert(4, 100)), "ok\n");
    // Earlier, later and no expiry; in one family only.
    assert_eq!(ask(&format!("UPDATE t SET until = {} WHERE id = 2", at(60))), "ok\n");
    assert_eq!(ask(&format!("UPDATE t SET until = {} WHERE id = 3", at(200))), "ok\n");
    assert_eq!(ask("UPDATE t SET until = NULL WHERE id = 4"), "ok\n");
    let all = "SELECT id, name, more FROM t ORDER BY id";
    let rows = ["1|old|x\n", "2|new|y\n", "3|new|y\n", "4|new|y\n"];
    for flushed in [false, true] {
        if flushed {
            ask("FLUSH t");
        }
        assert_eq!(ask(all), rows.concat());
    }
    for (now, left) in [(59, 0), (61, 1), (69, 1), (71, 2), (150, 2), (211, 3)] {
        second(now);
        assert_eq!(ask(all), rows[left..].concat(), "after {now} seconds");
        assert_eq!(ask("SELECT count(*) FROM t"), format!("{}\n", 4 - left));
        let one = ask(&format!("SELECT id FROM t WHERE id = {}", left + 1));
        assert_eq!(one, format!("{}\n", left + 1));
        if now == 150 {
            ask("MAJOR COMPACT t");
            assert_eq!(ask(all), rows[left..].concat(), "compacted");
        }
    }
    // The key is free again, even if old cells of the row remain.
    assert_eq!(ask(&insert(3, 300)), "ok\n");
    assert_eq!(ask("SELECT id FROM t ORDER BY id"), "3\n4\n");
    ask("FLUSH t; MAJOR COMPACT t");
    assert_eq!(ask("SELECT count(*) FROM cells('t', true, 9)"), "4\n");
}

#[test]
fn coprocessor_limits_follow_server_options() {
    let directory = tempfile::tempdir().unwrap();
    let time = Some(std::time::Duration::from_millis(1_500));
    let coprocessors = store::observer::CoprocessorLimits { time, failures_max: 2 };
    let options = store::Options { coprocessors, ..store::Options::default() };
    let store = store::Store::open(directory.path(), options).unwrap();
    let engine = sql::engine::Engine::open(store, options_with_refuse()).unwrap();
    let user = "ann".to_owned();
    let mut session = sql::session::Session::open(&engine, sql::session::SessionOptions { user });
    let mut ask = |sql: &str| crate::server::answer(&mut session, sql);
    let shown =
        "SELECT name, setting FROM bennu.settings WHERE name LIKE 'coprocessor%' ORDER BY 1";
    assert_eq!(ask(shown), "coprocessor_failures_max|2\ncoprocessor_time_limit|1500ms\n");
    assert_eq!(ask("SHOW coprocessor_time_limit"), "1500ms\n");
    assert!(ask("SET coprocessor_failures_max = 3").starts_with("error 55P02"));
    ask("CREATE TABLE t (id int PRIMARY KEY)");
    ask("ALTER TABLE t ATTACH COPROCESSOR refuse WITH (message = 'panic')");
    for _ in 0..2 {
        assert!(ask("INSERT INTO t VALUES (1)").starts_with("error 38000"));
    }
    assert_eq!(ask("INSERT INTO t VALUES (1)"), "ok\n", "it is suspended");
}
