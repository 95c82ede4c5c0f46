//! SQLite's sqllogictest corpus over the wire, by SQLite's rules.
//!
//! The corpus is next to the checkout, in `../shared/slt/sqlite`, or in the folder
//! `BENNU_SLT_SQLITE`; its README has the rules. `tests/run-sqlite-corpus` runs all of it, or
//! some files; the test runs a sample. Some hundred records of it are in `tests/slt/sqlite`, and
//! are always run.
//!
//! Records in `pg-deviations.txt` are skipped: for these PostgreSQL's answer differs from the
//! file's.

mod record;
mod run;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::harness::TestServer;
use crate::raw::Raw;
use crate::sqlite::record::{Expected, Record};
use crate::sqlite::run::{FileOutcome, Protocol};

/// Time limit of a statement, which then fails.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(300);

/// Failures of one kind that are shown for one file.
const SHOWN: usize = 2;

/// A folder of script files.
struct Corpus {
    folder: PathBuf,
    /// `path:line` of the skipped records.
    left_out: BTreeSet<String>,
}

impl Corpus {
    fn open(folder: &Path) -> Corpus {
        let left_out = std::fs::read_to_string(folder.join("pg-deviations.txt")).unwrap();
        let left_out = left_out.lines().filter(|line| !line.starts_with('#'));
        let left_out = left_out.map(str::to_owned).collect();
        Corpus { folder: folder.to_owned(), left_out }
    }

    /// Returns the paths of all files below the folder, in order.
    fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "slt") {
                    let name = path.strip_prefix(&self.folder).unwrap();
                    files.push(name.to_str().unwrap().to_owned());
                }
            }
        }
        files.sort();
        files
    }

    /// Returns the records of a file, without skipped ones.
    fn records(&self, file: &str) -> Vec<Record> {
        let text = std::fs::read_to_string(self.folder.join(file)).unwrap();
        let mut records = record::parse(&text).unwrap_or_else(|error| panic!("{file}:{error}"));
        records.retain(|record| !self.left_out.contains(&format!("{file}:{}", record.line)));
        records
    }
}

/// Returns the folder of the corpus.
fn folder() -> PathBuf {
    match std::env::var_os("BENNU_SLT_SQLITE") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/slt/sqlite"),
    }
}

/// Runs records on a new database, or on that of another server, whose tables are dropped.
fn run_file(
    server: Option<SocketAddr>,
    protocol: Protocol,
    file: &str,
    records: impl Iterator<Item = Record>,
) -> FileOutcome {
    let own = server.is_none().then(TestServer::start);
    let address = own.as_ref().map_or_else(|| server.unwrap(), TestServer::address);
    let mut connection = Raw::login(address);
    connection.set_patience(2 * STATEMENT_TIMEOUT);
    if own.is_none() {
        connection.query("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    }
    let timeout = STATEMENT_TIMEOUT.as_millis();
    connection.query(&format!("SET statement_timeout = {timeout}"));
    run::run(&mut connection, protocol, file, records)
}

/// Prints some failures of each kind.
fn show_failures(outcome: &FileOutcome) {
    for (kind, failures) in &outcome.failures {
        println!("  {} × {kind}", failures.len());
        for failure in failures.iter().take(SHOWN) {
            println!("    {}", failure.replace('\n', "\n    "));
        }
    }
}

/// Returns every `query_step`-th query of a file, and all other statements.
fn sampled(records: Vec<Record>, query_step: usize) -> impl Iterator<Item = Record> {
    let mut queries = 0;
    records.into_iter().filter(move |record| {
        let is_query = matches!(record.expected, Expected::Rows { .. });
        queries += usize::from(is_query);
        !is_query || queries % query_step == 0
    })
}

#[test]
fn bundled_sqlite_records_pass() {
    let corpus = Corpus::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt/sqlite"));
    for protocol in [Protocol::Simple, Protocol::Extended] {
        let mut failure_count = 0;
        for file in corpus.files() {
            let records = corpus.records(&file);
            assert!(!records.is_empty(), "{file}");
            let outcome = run_file(None, protocol, &file, records.into_iter());
            show_failures(&outcome);
            failure_count += outcome.failure_count();
        }
        assert_eq!(failure_count, 0, "{protocol:?}");
    }
}

/// Sampled queries of a file, and the maximum number of records up to the last of them.
const SAMPLE: (usize, usize) = (30, 400);

/// Returns the first records of a file; `None` if too many statements precede the queries.
fn sample(records: Vec<Record>) -> Option<Vec<Record>> {
    let (query_count, record_count) = SAMPLE;
    let is_query = |record: &Record| matches!(record.expected, Expected::Rows { .. });
    let queries = records.iter().enumerate().filter(|(_, record)| is_query(record));
    let last = queries.take(query_count).last()?.0;
    (last < record_count).then(|| records.into_iter().take(last + 1).collect())
}

#[test]
fn sqlite_corpus_sample() {
    let folder = folder();
    if !folder.is_dir() {
        println!("skipped: no corpus in {}", folder.display());
        return;
    }
    let corpus = Corpus::open(&folder);
    let protocols = [Protocol::Simple, Protocol::Extended];
    // Each file runs with one of the protocols: half a minute instead of a whole one.
    let files: Vec<(String, Protocol)> =
        corpus.files().into_iter().zip(protocols.into_iter().cycle()).collect();
    let next = AtomicUsize::new(0);
    let failure_count = AtomicUsize::new(0);
    let work = || {
        while let Some((file, protocol)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Some(records) = sample(corpus.records(file)) else { continue };
            let outcome = run_file(None, *protocol, file, records.into_iter());
            show_failures(&outcome);
            failure_count.fetch_add(outcome.failure_count(), Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    assert_eq!(failure_count.into_inner(), 0);
}

#[test]
#[ignore = "takes long; see tests/run-sqlite-corpus"]
fn whole_sqlite_corpus() {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let server = variable("BENNU_SLT_SERVER").map(|address| address.parse().unwrap());
    let words: Vec<String> = variable("BENNU_SLT_FILES")
        .map(|words| words.split_whitespace().map(str::to_owned).collect())
        .unwrap_or_default();
    let query_step = variable("BENNU_SLT_QUERY_STEP").map_or(1, |step| step.parse().unwrap());
    let protocols = match variable("BENNU_SLT_PROTOCOL").as_deref() {
        None => vec![Protocol::Simple, Protocol::Extended],
        Some("simple") => vec![Protocol::Simple],
        Some("extended") => vec![Protocol::Extended],
        Some(other) => panic!("no protocol {other}"),
    };
    let corpus = Corpus::open(&folder());
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let (mut record_count, mut seconds) = (0, 0.0);
    println!("{:>8} {:>8} {:>9} {:>18}  file", "records", "failed", "seconds", "slowest (line)");
    for protocol in protocols {
        for file in corpus.files() {
            if !words.is_empty() && !words.iter().any(|word| file.contains(word.as_str())) {
                continue;
            }
            let records = sampled(corpus.records(&file), query_step);
            let began = Instant::now();
            let outcome = run_file(server, protocol, &file, records);
            let took = began.elapsed().as_secs_f64();
            let failed = outcome.failure_count();
            let (line, slowest) = outcome.slowest;
            let slowest = format!("{:.3} ({line})", slowest.as_secs_f64());
            println!("{:>8} {failed:>8} {took:>9.2} {slowest:>18}  {file}", outcome.record_count);
            show_failures(&outcome);
            record_count += outcome.record_count;
            seconds += took;
            for (kind, failures) in &outcome.failures {
                *kinds.entry(kind.clone()).or_default() += failures.len();
            }
        }
    }
    let failed: usize = kinds.values().sum();
    println!("{record_count:>8} {failed:>8} {seconds:>9.2}  in all");
    for (kind, count) in &kinds {
        println!("{count:>8} × {kind}");
    }
    assert_eq!(failed, 0);
}
