//! Test scripts of the store under `tests/scripts`, and test cases that need threads or
//! randomness.
//!
//! A script consists of blocks of `commands`, `---`, `answer`, separated by empty lines; lines
//! that begin with `#` are comments. `BENNU_REGOLD=1 cargo test -p bennu-store` records the
//! answers again; review them then. Every script runs in a separate environment with a fixed
//! clock, so that commit times are reproducible. Unknown arguments of a command are rejected.

#![allow(clippy::disallowed_methods, reason = "tests use the system directly")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cases;

/// The allocator of the server, which affects the size of the process (`cases/memory.rs`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use store::cell::CellType;
use store::descriptor::KeepDeletedCells;
use store::env::fault::{FaultEnv, Unsynced};
use store::error::Veto;
use store::observer::{
    CoprocessorLimits, Hook, Hooks, ObserverContext, RegionObserver, TableContext,
};
use store::transaction::{Isolation, LockMode, LockWait, Savepoint, TransactionOptions};
use store::{
    CellBatch, Edit, Error, FamilyDescriptor, Get, Mutation, Options, Store, TableDescriptor,
    TableId, Timestamp, Transaction,
};

#[test]
fn scripts() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut paths = Vec::new();
    collect(&directory, &mut paths);
    assert!(paths.len() >= 10, "scripts are missing: {paths:?}");
    let mut wrong = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let answered = ScriptRun::new().answer(&text);
        if answered == text {
            continue;
        }
        if std::env::var_os("BENNU_REGOLD").is_some() {
            std::fs::write(&path, answered).unwrap();
        } else {
            wrong.push(format!("{}\n{}", path.display(), difference(&text, &answered)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn collect(directory: &Path, paths: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() { collect(&entry, paths) } else { paths.push(entry) }
    }
}

fn difference(expected: &str, found: &str) -> String {
    let mut out = String::new();
    let mut expected = expected.lines();
    let mut found = found.lines();
    for number in 1.. {
        let (a, b) = (expected.next(), found.next());
        if a.is_none() && b.is_none() {
            break;
        }
        if a != b {
            let (a, b) = (a.unwrap_or("(end)"), b.unwrap_or("(end)"));
            writeln!(
                out,
                "  line {number}: expected {a:?}\n  {:width$}       found {b:?}",
                "",
                width = number.to_string().len()
            )
            .unwrap();
            break;
        }
    }
    out
}

use cases::script_hooks::Watchers;

/// A store with its sessions.
struct ScriptRun {
    env: FaultEnv,
    store: Option<Arc<Store>>,
    sessions: BTreeMap<String, Session>,
    tables: BTreeMap<String, TableId>,
    families: BTreeMap<TableId, Vec<String>>,
    observers: BTreeMap<TableId, Vec<Attached>>,
    trace: Arc<Mutex<Vec<String>>>,
    watchers: Watchers,
}

/// An observer with its priority.
type Attached = (i32, Arc<dyn RegionObserver>);

struct Session {
    transaction: Transaction,
    savepoints: BTreeMap<String, Savepoint>,
}

/// The words of a command, taken one by one; remaining words are rejected.
struct Words<'a> {
    positional: std::collections::VecDeque<&'a str>,
    named: BTreeMap<&'a str, &'a str>,
}

impl<'a> Words<'a> {
    fn new(line: &'a str) -> Words<'a> {
        let (named, positional) =
            line.split_whitespace().partition::<Vec<_>, _>(|w| w.contains('='));
        let named = named.into_iter().map(|word| word.split_once('=').unwrap()).collect();
        Words { positional: positional.into(), named }
    }

    fn next(&mut self, what: &str) -> Result<&'a str, String> {
        self.positional.pop_front().ok_or_else(|| format!("{what} is missing"))
    }

    fn flag(&mut self, name: &str) -> bool {
        let found = self.positional.iter().position(|word| *word == name);
        found.map(|index| self.positional.remove(index)).is_some()
    }

    fn at(&mut self) -> Result<Option<Timestamp>, String> {
        let found = self.positional.iter().position(|word| word.starts_with('@'));
        let Some(word) = found.and_then(|index| self.positional.remove(index)) else {
            return Ok(None);
        };
        word[1..].parse().map(|at| Some(Timestamp(at))).map_err(|_| format!("bad time {word}"))
    }

    fn number<T: std::str::FromStr>(&mut self, name: &str, default: T) -> Result<T, String> {
        match self.named.remove(name) {
            None => Ok(default),
            Some(word) => word.parse().map_err(|_| format!("bad {name} {word}")),
        }
    }

    fn end(self) -> Result<(), String> {
        match self.positional.front().or(self.named.keys().next()) {
            None => Ok(()),
            Some(word) => Err(format!("unknown word {word}")),
        }
    }
}

type Answer = Result<String, String>;

fn shown(error: Error) -> String {
    match error {
        Error::Vetoed(veto) => format!("vetoed by {}: {}", veto.coprocessor, veto.message),
        Error::RowExists { row, .. } => format!("row {} exists", String::from_utf8_lossy(&row)),
        other => other.to_string(),
    }
}

impl ScriptRun {
    fn new() -> ScriptRun {
        let env = FaultEnv::new(1);
        let mut world = ScriptRun {
            env,
            store: None,
            sessions: BTreeMap::new(),
            tables: BTreeMap::new(),
            families: BTreeMap::new(),
            observers: BTreeMap::new(),
            trace: Arc::default(),
            watchers: Watchers::default(),
        };
        world.open().unwrap();
        world
    }

    fn open(&mut self) -> Result<(), String> {
        let options = Options {
            env: Arc::new(self.env.clone()),
            memory_bytes: 16 << 20,
            staged_bytes_max: std::env::var_os("BENNU_SPILL").map(|_| 0),
            coprocessors: CoprocessorLimits {
                failures_max: self.watchers.failures_max(),
                ..CoprocessorLimits::default()
            },
            ..Options::default()
        };
        self.store = Some(Store::open(Path::new("/data"), options).map_err(shown)?);
        Ok(())
    }

    fn store(&self) -> &Arc<Store> {
        self.store.as_ref().unwrap()
    }

    fn answer(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut answer: Option<String> = None;
        let mut in_answer = false;
        for line in text.lines() {
            if in_answer {
                if !line.is_empty() {
                    continue;
                }
                in_answer = false;
            }
            if line == "---" {
                let lines = answer.take().unwrap_or_default();
                out.push_str("---\n");
                out.push_str(if lines.is_empty() { "ok\n" } else { &lines });
                in_answer = true;
                continue;
            }
            out.push_str(line);
            out.push('\n');
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let answered = self.run(line).unwrap_or_else(|error| format!("error: {error}\n"));
            answer.get_or_insert_default().push_str(&answered);
        }
        out
    }

    fn run(&mut self, line: &str) -> Answer {
        let (session, line) = match line.split_once(": ") {
            Some((session, line)) => (Some(session), line),
            None => (None, line),
        };
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut words = Words::new(rest);
        if let Some(answer) = self.run_on_store(verb, &mut words) {
            return answer.and_then(|text| words.end().map(|()| text));
        }
        let Some(session) = session else {
            // A single command is a separate transaction.
            let transaction = self.store().begin(TransactionOptions::default());
            transaction.begin_statement();
            let (mutation, text) = self.run_in(&transaction, verb, &mut words)?;
            words.end()?;
            if mutation {
                transaction.commit().and_then(|c| c.durable.wait()).map_err(shown)?;
            }
            return Ok(text);
        };
        let answer = self.run_in_session(session, verb, &mut words)?;
        words.end().map(|()| answer)
    }

    fn run_in_session(&mut self, name: &str, verb: &str, words: &mut Words<'_>) -> Answer {
        if verb == "begin" {
            let isolation = match words.flag("repeatable-read") {
                true => Isolation::RepeatableRead,
                false => Isolation::ReadCommitted,
            };
            let options = TransactionOptions {
                isolation,
                lock_timeout: Some(Duration::from_millis(20)),
                ..TransactionOptions::default()
            };
            let transaction = self.store().begin(options);
            transaction.begin_statement();
            let session = Session { transaction, savepoints: BTreeMap::new() };
            self.sessions.insert(name.to_owned(), session);
            return Ok(String::new());
        }
        let mut session = self.sessions.remove(name).ok_or_else(|| format!("no session {name}"))?;
        match verb {
            "commit" => {
                let commit = session.transaction.commit().map_err(shown)?;
                commit.durable.wait().map_err(shown)?;
                return Ok(format!("committed at {}\n", commit.timestamp.0));
            }
            "rollback" => {
                session.transaction.rollback();
                return Ok(String::new());
            }
            "savepoint" => {
                let savepoint = session.transaction.savepoint();
                session.savepoints.insert(words.next("name")?.to_owned(), savepoint);
            }
            "rollback-to" => {
                let savepoint = session.savepoints.get(words.next("name")?);
                session.transaction.rollback_to(*savepoint.ok_or("no such savepoint")?);
            }
            _ => {
                session.transaction.begin_statement();
                let answer = self.run_in(&session.transaction, verb, words);
                self.sessions.insert(name.to_owned(), session);
                return answer.map(|(_, text)| text);
            }
        }
        self.sessions.insert(name.to_owned(), session);
        Ok(String::new())
    }

    /// Commands that are not part of a transaction.
    fn run_on_store(&mut self, verb: &str, words: &mut Words<'_>) -> Option<Answer> {
        Some(match verb {
            "create" => self.create(words),
            "drop" => self.table(words).and_then(|table| {
                self.store().drop_table(table).map_err(shown)?;
                Ok(String::new())
            }),
            "flush" => self.table(words).and_then(|table| {
                let done = self.store().flush_table(table).map_err(shown)?;
                let files = if done.files_out == 1 { "file" } else { "files" };
                Ok(format!("flushed {} cells to {} {files}\n", done.cells_out, done.files_out))
            }),
            "compact" => self.table(words).and_then(|table| {
                let major = words.flag("major");
                let done = self.store().compact_table(table, major).map_err(shown)?;
                Ok(format!("kept {} of {} cells\n", done.cells_out, done.cells_in))
            }),
            "reopen" => {
                self.sessions.clear();
                self.store = None;
                self.open().map(|()| String::new())
            }
            "crash" => {
                self.sessions.clear();
                let after = self.env.after_crash(Unsynced::Lost);
                self.store = None;
                self.env = after;
                self.open().map(|()| String::new())
            }
            "clock" => words.at().and_then(|at| {
                self.env.set_now(at.ok_or("time is missing")?.0);
                Ok(String::new())
            }),
            "regions" => self.regions(words),
            "observe" => self.observe(words),
            "trace" => Ok(self.trace.lock().drain(..).map(|line| line + "\n").collect()),
            _ => return self.run_hooks(verb, words),
        })
    }

    fn table(&self, words: &mut Words<'_>) -> Result<TableId, String> {
        let name = words.next("table")?;
        self.tables.get(name).copied().ok_or_else(|| format!("no table {name}"))
    }

    fn create(&mut self, words: &mut Words<'_>) -> Answer {
        let name = words.next("table")?;
        let id = TableId(self.tables.len() as u32 + 1);
        let families = words.named.remove("families").unwrap_or("d");
        let names: Vec<String> = families.split(',').map(str::to_owned).collect();
        let versions = words.number("versions", 1)?;
        let min_versions = words.number("min_versions", 0)?;
        let ttl = words.number("ttl", 0)?;
        let keep_deleted_cells = match words.named.remove("keep_deleted") {
            None => KeepDeletedCells::False,
            Some("true") => KeepDeletedCells::True,
            Some("ttl") => KeepDeletedCells::Ttl,
            Some(other) => return Err(format!("bad keep_deleted {other}")),
        };
        let delete_purge_delay = Duration::from_micros(words.number("purge_delay", 0)?);
        let split = words.named.remove("split").unwrap_or("");
        let descriptor = TableDescriptor {
            region_replication: words.number("replication", 1)?,
            split_points: split.split(',').filter(|s| !s.is_empty()).map(Vec::from).collect(),
            ..TableDescriptor::new(
                id,
                name.to_owned(),
                names
                    .iter()
                    .map(|family| FamilyDescriptor {
                        versions,
                        min_versions,
                        ttl: (ttl > 0).then(|| Duration::from_micros(ttl)),
                        keep_deleted_cells,
                        delete_purge_delay,
                        ..FamilyDescriptor::new(family.as_str())
                    })
                    .collect(),
            )
        };
        self.store().create_table(descriptor).map_err(shown)?;
        self.tables.insert(name.to_owned(), id);
        self.families.insert(id, names);
        Ok(String::new())
    }

    fn regions(&self, words: &mut Words<'_>) -> Answer {
        let table = self.table(words)?;
        let mut out = String::new();
        for region in self.store().regions(table).map_err(shown)? {
            let text = |row: &[u8]| String::from_utf8_lossy(row).into_owned();
            let stop = region.stop.as_deref().map_or("end".to_owned(), text);
            let start = if region.start.is_empty() { "start".into() } else { text(&region.start) };
            let written = region.load.rows_written;
            writeln!(out, "{start} .. {stop} {written} rows written").unwrap();
        }
        Ok(out)
    }

    fn observe(&mut self, words: &mut Words<'_>) -> Answer {
        let table = self.table(words)?;
        let priority = words.number("priority", 100)?;
        let name = words.next("name")?.to_owned();
        let observer = TestObserver {
            name,
            trace: Arc::clone(&self.trace),
            veto: words.named.remove("veto").map(str::to_owned),
            copy: match words.named.remove("copy") {
                Some(copy) => Some(*self.tables.get(copy).ok_or("no such table")?),
                None => None,
            },
            append: words.named.remove("append").map(str::to_owned),
            panics: words.flag("panics"),
        };
        let observers = self.observers.entry(table).or_default();
        observers.push((priority, Arc::new(observer)));
        let observers = observers.clone();
        self.store().set_observers(table, observers).map_err(shown)?;
        Ok(String::new())
    }

    /// Runs commands of a transaction. Returns whether the command writes, and its answer.
    fn run_in(
        &self,
        transaction: &Transaction,
        verb: &str,
        words: &mut Words<'_>,
    ) -> Result<(bool, String), String> {
        match verb {
            "put"
            | "delete-row"
            | "delete-family"
            | "delete-column"
            | "delete-version"
            | "delete-family-version" => {
                let table = self.table(words)?;
                let mutation = self.mutation(verb, table, words)?;
                transaction.mutate(table, vec![mutation]).map_err(shown)?;
                Ok((true, String::new()))
            }
            "change" => self.change(transaction, words).map(|text| (true, text)),
            "put-all" => {
                let table = self.table(words)?;
                let column = self.column(table, words.next("column")?)?;
                let absent = words.flag("absent");
                let mut mutations = Vec::new();
                while let Some(word) = words.positional.pop_front() {
                    let (row, value) = word.split_once('/').ok_or("expected row/value")?;
                    let mut mutation =
                        Mutation::new(row).put(column.0, column.1.clone(), value.into());
                    if absent {
                        mutation = mutation.expect_absent();
                    }
                    mutations.push(mutation);
                }
                transaction.mutate(table, mutations).map_err(shown)?;
                Ok((true, String::new()))
            }
            "get" | "get-locked" | "exists" => {
                self.get(transaction, verb, words).map(|text| (false, text))
            }
            "scan-once" => self.scan_once(transaction, words).map(|text| (false, text)),
            "scan" | "raw-scan" => {
                self.scan(transaction, verb == "raw-scan", words).map(|text| (false, text))
            }
            "lock" => {
                let table = self.table(words)?;
                let row = words.next("row")?;
                let shared = words.flag("shared");
                let mode = if shared { LockMode::Shared } else { LockMode::Exclusive };
                let wait = match (words.flag("nowait"), words.flag("skip")) {
                    (true, _) => LockWait::NoWait,
                    (_, true) => LockWait::Skip,
                    _ => LockWait::Wait,
                };
                let locked =
                    transaction.lock_row(table, row.as_bytes(), mode, wait).map_err(shown)?;
                Ok((false, if locked { "locked\n".into() } else { "skipped\n".into() }))
            }
            other => Err(format!("unknown command {other}")),
        }
    }

    fn mutation(
        &self,
        verb: &str,
        table: TableId,
        words: &mut Words<'_>,
    ) -> Result<Mutation, String> {
        let mut mutation = Mutation::new(words.next("row")?);
        let timestamp = words.at()?;
        if words.flag("absent") {
            mutation = mutation.expect_absent();
        }
        Ok(mutation.with(self.edit(verb, table, timestamp, words)?))
    }

    fn column(&self, table: TableId, word: &str) -> Result<(u8, Vec<u8>), String> {
        let (family, qualifier) = word.split_once(':').unwrap_or((word, ""));
        let families = &self.families[&table];
        let index = families.iter().position(|name| name == family);
        Ok((index.ok_or_else(|| format!("no family {family}"))? as u8, qualifier.into()))
    }

    fn show(&self, table: TableId, batch: &CellBatch, raw: bool) -> String {
        let mut out = String::new();
        for cell in batch.rows().flat_map(|row| row.cells()) {
            let row = String::from_utf8_lossy(cell.row);
            let family = &self.families[&table][usize::from(cell.family)];
            let column = match String::from_utf8_lossy(cell.qualifier) {
                qualifier if qualifier.is_empty() => family.clone(),
                qualifier => format!("{family}:{qualifier}"),
            };
            let value = cases::script_writes::shown_value(cell.value);
            let at = cell.timestamp.0;
            let said = match (raw, cell.cell_type) {
                (false, _) => format!("= {value}"),
                (true, CellType::Put | CellType::ExpiringPut) => match cell.ttl {
                    None => format!("put {value}"),
                    Some(ttl) => format!("put {value} ttl={}", ttl.as_millis()),
                },
                (true, CellType::Delete) => "delete".into(),
                (true, CellType::DeleteColumn) => "delete-column".into(),
                (true, CellType::DeleteFamily) => "delete-family".into(),
                (true, CellType::DeleteFamilyVersion) => "delete-family-version".into(),
            };
            writeln!(out, "{row} {column} @{at} {said}").unwrap();
        }
        out
    }
}

/// An observer whose actions a script defines.
struct TestObserver {
    name: String,
    trace: Arc<Mutex<Vec<String>>>,
    /// Vetoes this value.
    veto: Option<String>,
    /// Also puts every row into this table.
    copy: Option<TableId>,
    /// Appends this to every value.
    append: Option<String>,
    panics: bool,
}

impl RegionObserver for TestObserver {
    fn name(&self) -> &str {
        &self.name
    }

    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::PreBatch, Hook::PostBatch])
    }

    fn pre_batch(
        &self,
        context: &dyn ObserverContext,
        batch: &mut [Mutation],
    ) -> store::Result<()> {
        assert!(!self.panics, "told to");
        for mutation in batch {
            let row = String::from_utf8_lossy(&mutation.row).into_owned();
            let mut before = CellBatch::new();
            let found = context.get(context.table(), &Get::new(row.as_str()), &mut before)?;
            let before = match found {
                true => String::from_utf8_lossy(before.row(0).cells().next().unwrap().value).into(),
                false => "nothing".to_owned(),
            };
            self.trace.lock().push(format!("{}: {row} was {before}", self.name));
            let mut copied = Mutation::new(row.as_str());
            for edit in &mut mutation.edits {
                let Edit::Put { value, .. } = edit else { continue };
                if self.veto.as_ref().is_some_and(|veto| veto.as_bytes() == value.as_slice()) {
                    return Err(Error::Vetoed(Box::new(Veto {
                        coprocessor: self.name.clone(),
                        message: format!("no {} here", String::from_utf8_lossy(value)),
                        ..Veto::default()
                    })));
                }
                value.extend_from_slice(self.append.as_deref().unwrap_or("").as_bytes());
                copied = copied.put(0, "copy", value.clone());
            }
            if let Some(copy) = self.copy {
                context.add(copy, vec![copied])?;
            }
        }
        Ok(())
    }

    fn post_batch(&self, _context: &TableContext<'_>, batch: &[Mutation]) -> store::Result<()> {
        self.trace.lock().push(format!("{}: committed {}", self.name, batch.len()));
        Ok(())
    }
}
