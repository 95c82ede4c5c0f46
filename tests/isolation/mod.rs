//! Isolation test scripts: named sessions whose steps run one at a time, with the expected waits.
//!
//! ```text
//! == dirty write
//! setup: create table test (id int primary key, value int)
//! a: begin isolation level read committed
//!    > BEGIN
//! a: update test set value = 11 where id = 1
//!    > UPDATE 1
//! b: update test set value = 12 where id = 1
//!    > waits
//! a: commit
//!    > COMMIT
//!    b> UPDATE 1
//! ```
//!
//! `==` begins a scenario, with an empty schema and new sessions. A step is sent when the
//! previous one has been answered or waits for a lock; `waits` is determined by the server
//! (`pg_blocking_pids()`), not by time. Below a step are its answer and those of sessions that it
//! has unblocked, in the order of their names. Rows have psql's unaligned format.
//!
//! `BENNU_ISOLATION_UPDATE=1 cargo test --test tests isolation::` records the answers, and
//! `BENNU_ISOLATION=name` selects one script. With a PostgreSQL at `BENNU_ORACLE` (user and
//! database `bennu`) the ignored test compares with it, or records its answers; it skips
//! scenarios whose title ends with `(onlyif bennu)`.

mod random;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::harness::TestServer;
use crate::raw::{Message, Raw};

/// Time limit of a step to be answered or to wait.
const PATIENCE: Duration = Duration::from_secs(180);
/// Interval of polling a session without an answer.
const LOOK: Duration = Duration::from_millis(2);
/// Time after which a blocked session counts as waiting: waits that end automatically (timeouts,
/// cancellation, PostgreSQL's deadlock detection) are shorter.
const WAITS: Duration = Duration::from_millis(200);
/// The schema of each scenario.
const SCHEMA: &str = "isolation_test";

/// A session on its own thread, which sends steps and returns their answers.
struct IsolationSession {
    process_id: String,
    steps: mpsc::Sender<String>,
    answers: mpsc::Receiver<Vec<String>>,
    /// A step was sent and not answered.
    pending: bool,
}

impl IsolationSession {
    fn open(address: SocketAddr) -> IsolationSession {
        let mut raw = Raw::login(address);
        raw.set_patience(PATIENCE);
        raw.query(&format!("set search_path = {SCHEMA}; set deadlock_timeout = '10ms'"));
        let process_id = single_value(&mut raw, "select pg_backend_pid()");
        let (steps, taken) = mpsc::channel::<String>();
        let (answered, answers) = mpsc::channel();
        std::thread::spawn(move || {
            for step in taken {
                if answered.send(answer_lines(&raw.query(&step))).is_err() {
                    break;
                }
            }
        });
        IsolationSession { process_id, steps, answers, pending: false }
    }
}

/// The sessions of a scenario, and one that queries the waits.
struct Scenario {
    address: SocketAddr,
    control: Raw,
    sessions: BTreeMap<String, IsolationSession>,
}

impl Scenario {
    fn begin(address: SocketAddr) -> Scenario {
        let mut control = Raw::login(address);
        control.query(&format!("drop schema if exists {SCHEMA} cascade"));
        let created = control.query(&format!("create schema {SCHEMA}"));
        assert_eq!(answer_lines(&created), ["CREATE SCHEMA"]);
        control.query(&format!("set search_path = {SCHEMA}"));
        Scenario { address, control, sessions: BTreeMap::new() }
    }

    fn set_up(&mut self, sql: &str) {
        let answer = answer_lines(&self.control.query(sql));
        assert!(!answer.iter().any(|line| line.starts_with("ERROR")), "setup: {sql}: {answer:?}");
    }

    /// Runs a step; returns the expected lines below it.
    fn step(&mut self, name: &str, sql: &str) -> Vec<String> {
        let address = self.address;
        let session =
            self.sessions.entry(name.to_owned()).or_insert_with(|| IsolationSession::open(address));
        if session.pending {
            return vec!["   > (not sent: the session waits)".to_owned()];
        }
        session.steps.send(sql.to_owned()).unwrap();
        session.pending = true;
        let own = self.await_answer(name).unwrap_or_else(|| vec!["waits".to_owned()]);
        let mut lines: Vec<String> = own.iter().map(|line| format!("   > {line}")).collect();
        let waiting: Vec<String> = self.sessions.keys().cloned().collect();
        for other in waiting {
            let freed = self.await_answer(&other).unwrap_or_default();
            lines.extend(freed.iter().map(|line| format!("   {other}> {line}")));
        }
        lines
    }

    /// Waits for the answer of a session and returns it; `None` if it waits for a lock or has no
    /// pending step.
    fn await_answer(&mut self, name: &str) -> Option<Vec<String>> {
        let session = self.sessions.get_mut(name).unwrap();
        let (begun, mut waits_since) = (Instant::now(), None);
        while session.pending {
            match session.answers.recv_timeout(LOOK) {
                Ok(answer) => {
                    session.pending = false;
                    return Some(answer);
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(gone) => panic!("{name}: {gone}"),
            }
            let blocked = format!(
                "select cardinality(pg_blocking_pids({0})) > 0 or \
                 cardinality(pg_safe_snapshot_blocking_pids({0})) > 0",
                session.process_id
            );
            let waits = single_value(&mut self.control, &blocked) == "t";
            let since = waits.then(|| *waits_since.get_or_insert_with(Instant::now));
            waits_since = since;
            if since.is_some_and(|since| since.elapsed() >= WAITS) {
                return None;
            }
            assert!(begun.elapsed() < PATIENCE, "{name} neither answers nor waits for anybody");
        }
        None
    }

    /// Ends the sessions, including waiting ones: the end of one may unblock another.
    fn end(mut self) {
        for session in self.sessions.values() {
            self.control.query(&format!("select pg_terminate_backend({})", session.process_id));
        }
        self.sessions.clear();
        self.control.query(&format!("drop schema if exists {SCHEMA} cascade"));
    }
}

fn single_value(raw: &mut Raw, sql: &str) -> String {
    let answer = raw.query(sql);
    let row = answer.iter().find(|message| message.kind == b'D');
    let row = row.unwrap_or_else(|| panic!("{sql}: {:?}", answer_lines(&answer)));
    row.values().remove(0).unwrap_or_default()
}

/// Returns rows, command tags and errors, one per line.
fn answer_lines(messages: &[Message]) -> Vec<String> {
    let mut lines = Vec::new();
    for message in messages {
        match message.kind {
            b'D' => {
                let values = message.values();
                let shown: Vec<&str> =
                    values.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect();
                lines.push(shown.join("|"));
            }
            b'C' => lines.push(message.tag()),
            b'E' => {
                let field = |code| message.field(code).unwrap_or_default();
                lines.push(format!("ERROR {}: {}", field(b'C'), field(b'M')));
            }
            b'N' => {
                let field = |code| message.field(code).unwrap_or_default();
                lines.push(format!("{}: {}", field(b'S'), field(b'M')));
            }
            _ => {}
        }
    }
    lines
}

/// The server that runs a script.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Oracle {
    Bennu,
    Postgres,
}

/// Runs a script; returns it with the actual answers.
fn run_script(script: &str, address: SocketAddr, server: Oracle) -> String {
    let mut out = String::new();
    let mut scenario: Option<Scenario> = None;
    let mut skipped = false;
    for line in script.lines() {
        if line.starts_with("   ") && !skipped {
            continue;
        }
        writeln!(out, "{line}").unwrap();
        if let Some(title) = line.strip_prefix("== ") {
            scenario.take().into_iter().for_each(Scenario::end);
            skipped = server == Oracle::Postgres && title.ends_with("(onlyif bennu)");
            scenario = (!skipped).then(|| Scenario::begin(address));
            continue;
        }
        let step = line.split_once(": ").filter(|_| !line.starts_with('#'));
        let (Some((name, sql)), Some(scenario)) = (step, &mut scenario) else { continue };
        match name {
            "setup" => scenario.set_up(sql),
            _ => {
                for line in scenario.step(name, sql) {
                    writeln!(out, "{line}").unwrap();
                }
            }
        }
    }
    scenario.into_iter().for_each(Scenario::end);
    out
}

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/isolation");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut scripts: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|kind| kind == "spec")).collect();
    if let Ok(only) = std::env::var("BENNU_ISOLATION") {
        scripts.retain(|path| path.file_stem().is_some_and(|name| name == only.as_str()));
    }
    scripts.sort();
    scripts
}

/// Runs a script and records its answers, or returns the differences.
fn check_script(path: &Path, address: SocketAddr, server: Oracle) -> Option<String> {
    let script = std::fs::read_to_string(path).unwrap();
    let ran = run_script(&script, address, server);
    if std::env::var_os("BENNU_ISOLATION_UPDATE").is_some() {
        std::fs::write(path, ran).unwrap();
        return None;
    }
    let mut differs = String::new();
    for (expected, actual) in script.split("\n== ").zip(ran.split("\n== ")) {
        let first = expected.lines().zip(actual.lines()).find(|(line, other)| line != other);
        if expected != actual {
            let (name, title) = (path.display(), expected.lines().next().unwrap_or_default());
            let (line, other) = first.unwrap_or(("", "(more or fewer lines)"));
            write!(differs, "{name}: {title}\n-{line}\n+{other}\n{actual}\n").unwrap();
        }
    }
    (!differs.is_empty()).then_some(differs)
}

#[test]
fn isolation_scripts_match_expected_output() {
    let check = |path: PathBuf| {
        let server = TestServer::start();
        check_script(&path, server.address(), Oracle::Bennu)
    };
    // The scripts run in parallel, because they wait most of the time.
    let failures: Vec<String> = std::thread::scope(|scope| {
        let running: Vec<_> =
            scripts().into_iter().map(|path| scope.spawn(move || check(path))).collect();
        running.into_iter().filter_map(|script| script.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
#[ignore = "needs a PostgreSQL 15 at BENNU_ORACLE"]
fn isolation_scripts_match_postgresql() {
    let address = std::env::var("BENNU_ORACLE").unwrap().parse().unwrap();
    let failures: Vec<String> =
        scripts().iter().filter_map(|path| check_script(path, address, Oracle::Postgres)).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
