//! Model checking of timestamps and TTLs that clients set: puts, deletes up to a time and of one
//! version, in any order of time, with a simulated clock.
//!
//! The model replays the writes of a row in the order of their commits (decision 1). Every access
//! path must agree with it, before and after flushes, compactions, splits, changes of VERSIONS and
//! of salt buckets, restarts and crashes: gets, scans, counts and sums in the regions, indexes,
//! `cells()`, and `AS OF` any time.
//!
//! `BENNU_SEED=n` repeats a case, `BENNU_CASES=n` multiplies their number.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use sql::EngineOptions;
use sql::engine::Engine;
use sql::session::{Session, SessionOptions};
use store::env::fault::{FaultEnv, Unsynced};
use store::{Options, Store};

use crate::random::{Random, number};
use crate::server::{answer, index_differences};

/// Number of cases in a run of all tests.
const CASES: u64 = 12;
/// Number of steps of a case.
const STEPS: usize = 40;
/// Initial time, in seconds of the Unix epoch.
const BEGIN: i64 = 1_700_000_000;
/// Exclusive upper bound of keys.
const KEYS: i32 = 5;
/// Exclusive upper bound of values.
const VALUES: usize = 4;

type Values = [Option<i32>; 2];

/// A write of the cell of one family of one row.
#[derive(Debug, Clone, Copy)]
struct Write {
    /// Its timestamp, in seconds.
    at: i64,
    kind: WriteKind,
}

#[derive(Debug, Clone, Copy)]
enum WriteKind {
    /// `ttl`: the age in seconds after which the version has expired.
    Put { values: Values, ttl: Option<i64> },
    /// Deletes the versions up to the timestamp.
    Delete,
    /// Deletes the version with the timestamp.
    DeleteVersion,
    /// ALTER TABLE has set VERSIONS: what the former value ended stays ended.
    Retain { versions: usize },
}

/// A version of a cell.
#[derive(Debug, Clone, Copy)]
struct Version {
    at: i64,
    values: Values,
    ttl: Option<i64>,
}

/// Replays writes up to a time, with a first value of VERSIONS; returns the live versions at that
/// time, the newest first.
fn replay(writes: &[Write], mut versions: usize, time: i64) -> Vec<Version> {
    let mut live: BTreeMap<i64, Version> = BTreeMap::new();
    for write in writes.iter().filter(|write| write.at <= time) {
        let at = write.at;
        match write.kind {
            WriteKind::Put { values, ttl } => {
                live.insert(at, Version { at, values, ttl });
                if live.len() > versions {
                    live.pop_first();
                }
            }
            WriteKind::Delete => live.retain(|own, _| *own > at),
            WriteKind::DeleteVersion => drop(live.remove(&at)),
            WriteKind::Retain { versions: changed } => {
                versions = changed;
                while live.len() > versions {
                    live.pop_first();
                }
            }
        }
    }
    let is_live = |version: &&Version| version.ttl.is_none_or(|ttl| time - version.at <= ttl);
    live.values().rev().filter(is_live).copied().collect()
}

/// A table under test, and its model: the writes of each family of each row, in the order of
/// commits.
struct Run {
    seed: u64,
    random: Random,
    env: FaultEnv,
    engine: Option<Arc<Engine>>,
    session: Option<Session>,
    now: i64,
    log: Vec<String>,
    /// The table has CELL_TTL, otherwise TIMESTAMPS = CLIENT.
    has_ttl: bool,
    /// STORAGE = CELL.
    has_column_cells: bool,
    /// The family of each column; with STORAGE = CELL, its cell.
    families: [usize; 2],
    /// The first value of VERSIONS.
    versions: usize,
    /// True if ALTER TABLE has changed VERSIONS: the model has the states of the present only.
    was_altered: bool,
    indexes: Vec<&'static str>,
    model: BTreeMap<i32, Vec<Vec<Write>>>,
    /// True if versions may have been dropped.
    was_rewritten: bool,
    /// Rows of which a version was deleted after that: it may have hidden a dropped one, which the
    /// model exposes in the past.
    exposed: BTreeSet<i32>,
}

fn open(env: &FaultEnv) -> (Arc<Engine>, Session) {
    let options = Options { env: Arc::new(env.clone()), ..Options::default() };
    let store = Store::open(Path::new("/data"), options).unwrap();
    let engine = Engine::open(store, EngineOptions::default()).unwrap();
    let session = Session::open(&engine, SessionOptions { user: "bennu".to_owned() });
    (engine, session)
}

fn shown(value: Option<i32>) -> String {
    value.map_or("NULL".to_owned(), |value| value.to_string())
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut random = Random(seed);
        let env = FaultEnv::new(seed);
        env.set_now(BEGIN * 1_000_000);
        let (engine, session) = open(&env);
        let has_ttl = random.chance(25);
        let has_column_cells = random.chance(30);
        let mut run = Run {
            seed,
            has_ttl,
            has_column_cells,
            families: [0, usize::from(has_column_cells || random.chance(30))],
            versions: [1, 2, 3, 50][random.below(4)],
            was_altered: false,
            indexes: Vec::new(),
            random,
            env,
            engine: Some(engine),
            session: Some(session),
            now: BEGIN,
            log: Vec::new(),
            model: BTreeMap::new(),
            was_rewritten: false,
            exposed: BTreeSet::new(),
        };
        let has_families = run.families[1] == 1 && !has_column_cells;
        let names = ["x int, y int", "a.x int, b.y int"][usize::from(has_families)];
        let mut options = format!("versions = {}", run.versions);
        options.push_str([", timestamps = 'client'", ", cell_ttl = true"][usize::from(has_ttl)]);
        if run.random.chance(25) {
            options.push_str(", salt_buckets = 3");
        }
        if run.has_column_cells {
            options.push_str(", storage = 'cell'");
        }
        run.execute(&format!("CREATE TABLE t (id int PRIMARY KEY, {names}) WITH ({options})"));
        for index in ["(x)", "(y) INCLUDE (x)", "(x, y DESC)", "(x) WHERE y > 1"] {
            if run.random.chance(40) {
                run.execute(&format!("CREATE INDEX i{} ON t {index}", run.indexes.len()));
                run.indexes.push(index);
            }
        }
        for _ in 0..STEPS {
            run.step();
            run.check();
            if !run.was_altered {
                run.check_past();
            }
        }
        run
    }

    fn shown(&self) -> String {
        format!("\nBENNU_SEED={}\n{}", self.seed, self.log.join(";\n"))
    }

    fn ask(&mut self, sql: &str) -> String {
        if !sql.starts_with("SELECT") {
            self.log.push(sql.to_owned());
        }
        answer(self.session.as_mut().unwrap(), sql)
    }

    fn execute(&mut self, sql: &str) {
        let said = self.ask(sql);
        assert_eq!(said, "ok\n", "{sql}{}", self.shown());
    }

    fn tick(&mut self) {
        self.now += self.random.from(1..4);
        self.env.set_now(self.now * 1_000_000);
        self.log.push(format!("-- {}", self.now));
    }

    fn values(&mut self) -> Values {
        let random = &mut self.random;
        std::array::from_fn(|_| random.chance(80).then(|| random.below(VALUES) as i32))
    }

    /// Returns a time, often one that a version has.
    fn time(&mut self) -> i64 {
        let known: Vec<i64> = self.model.values().flatten().flatten().map(|w| w.at).collect();
        match known.len() {
            0 => self.now - self.random.from(0..20),
            _ if self.random.chance(50) => self.now - self.random.from(0..20),
            count => known[self.random.below(count)],
        }
    }

    fn write(&mut self, id: i32, family: usize, at: i64, kind: WriteKind) {
        let count = self.families[1] + 1;
        let row = self.model.entry(id).or_insert_with(|| vec![Vec::new(); count]);
        row[family].push(Write { at, kind });
    }

    fn write_all(&mut self, id: i32, at: i64, kind: WriteKind) {
        (0..=self.families[1]).for_each(|family| self.write(id, family, at, kind));
    }

    /// Returns a row at a time.
    fn row(&self, id: i32, time: i64) -> Option<Values> {
        let row = self.model.get(&id)?;
        let newest: Vec<Option<Version>> =
            row.iter().map(|w| replay(w, self.versions, time).first().copied()).collect();
        newest.iter().flatten().next()?;
        let value = |column: usize| newest[self.families[column]]?.values[column];
        Some([value(0), value(1)])
    }

    fn rows(&self, time: i64) -> BTreeMap<i32, Values> {
        (0..KEYS).filter_map(|id| Some((id, self.row(id, time)?))).collect()
    }

    fn step(&mut self) {
        let id = self.random.below(KEYS as usize) as i32;
        self.tick();
        match self.random.below(20) {
            0..5 => self.put(id),
            5 | 6 => self.put_column(id),
            7 | 8 => self.update(id),
            9 | 10 => self.delete(id),
            11..14 => self.delete_versions(id),
            14 | 15 => self.tick(),
            16 | 17 => self.rewrite(),
            18 => self.alter(),
            _ => self.restart(),
        }
    }

    fn put(&mut self, id: i32) {
        let values = self.values();
        let list = format!("({id}, {}, {})", shown(values[0]), shown(values[1]));
        let ttl = (self.has_ttl && self.random.chance(50)).then(|| self.random.from(1..9));
        let at = (!self.has_ttl && self.random.chance(70)).then(|| self.time());
        let mut attributes: Vec<String> = Vec::new();
        attributes.extend(at.map(|at| format!("TIMESTAMP to_timestamp({at})")));
        attributes.extend(ttl.map(|ttl| format!("TTL '{ttl}500 milliseconds'")));
        let with = if attributes.is_empty() { "" } else { " WITH " };
        let sql = format!("UPSERT INTO t VALUES {list}{with}{}", attributes.join(", "));
        self.execute(&sql);
        let at = at.unwrap_or(self.now);
        if ttl.is_some() {
            self.write_all(id, at, WriteKind::Delete);
        }
        self.write_all(id, at, WriteKind::Put { values, ttl });
    }

    /// Puts one of the columns, with a timestamp or a TTL.
    fn put_column(&mut self, id: i32) {
        let (column, mut at, mut ttl) = (self.random.below(2), self.now, None);
        let value = self.values()[column];
        let (name, shown) = (["x", "y"][column], shown(value));
        let mut sql = format!("UPSERT INTO t (id, {name}) VALUES ({id}, {shown})");
        if self.random.chance(70) {
            if self.has_ttl {
                ttl = Some(self.random.from(1..9));
                let _ = write!(sql, " WITH TTL '{}500 milliseconds'", ttl.unwrap());
            } else {
                at = self.time();
                let _ = write!(sql, " WITH TIMESTAMP to_timestamp({at})");
            }
        }
        if self.families[1] == 0 && sql.contains("TIMESTAMP") {
            let said = self.ask(&sql);
            assert!(said.starts_with("error 0A000"), "{sql}: {said}{}", self.shown());
            return;
        }
        self.execute(&sql);
        let old = self.row(id, self.now);
        let mut values = old.unwrap_or_default();
        values[column] = value;
        let kind = WriteKind::Put { values, ttl };
        if ttl.is_some() {
            self.write_all(id, at, WriteKind::Delete);
            self.write_all(id, at, kind);
            return;
        }
        match (old, self.families[1]) {
            (_, 0) => self.write(id, 0, at, kind),
            (None, _) if !self.has_column_cells => {
                self.write(id, 0, at, kind);
                // A new row with a TTL has a cell in each family.
                if values[1].is_some() || self.has_ttl {
                    self.write(id, 1, at, kind);
                }
            }
            _ => self.write(id, self.families[column], at, kind),
        }
    }

    fn update(&mut self, id: i32) {
        let column = self.random.below(2);
        let value = self.values()[column];
        let name = ["x", "y"][column];
        self.execute(&format!("UPDATE t SET {name} = {} WHERE id = {id}", shown(value)));
        if let Some(mut values) = self.row(id, self.now) {
            values[column] = value;
            let kind = WriteKind::Put { values, ttl: None };
            self.write(id, self.families[column], self.now, kind);
        }
    }

    fn delete(&mut self, id: i32) {
        self.execute(&format!("DELETE FROM t WHERE id = {id}"));
        if self.row(id, self.now).is_some() {
            self.write_all(id, self.now, WriteKind::Delete);
        }
    }

    fn delete_versions(&mut self, id: i32) {
        let at = self.time();
        let (word, kind) = match self.random.chance(50) {
            true => ("VERSION", WriteKind::DeleteVersion),
            false => ("TIMESTAMP", WriteKind::Delete),
        };
        let sql = format!("DELETE FROM t WHERE id = {id} WITH {word} to_timestamp({at})");
        let said = self.ask(&sql);
        if self.has_ttl {
            assert!(said.starts_with("error 55000"), "{sql}: {said}{}", self.shown());
            return;
        }
        assert_eq!(said, "ok\n", "{sql}{}", self.shown());
        if self.row(id, self.now).is_some() {
            self.write_all(id, at, kind);
            if self.was_rewritten && word == "VERSION" {
                self.exposed.insert(id);
            }
        }
    }

    fn rewrite(&mut self) {
        let statement = match self.random.below(5) {
            0 | 1 => "FLUSH t",
            2 => "COMPACT t",
            3 => "MAJOR COMPACT t",
            _ => "ALTER TABLE t SPLIT AT (3)",
        };
        let said = self.ask(statement);
        self.was_rewritten = true;
        assert!(said == "ok\n" || statement.contains("SPLIT"), "{statement}: {said}");
    }

    /// Changes VERSIONS, or the number of salt buckets of the table or of an index.
    fn alter(&mut self) {
        let buckets = self.random.below(4);
        // The copy of the rows leaves out versions that the rules end.
        self.was_rewritten = true;
        match self.random.below(4) {
            0 => {
                let versions = 1 + self.random.below(4);
                self.execute(&format!("ALTER TABLE t SET (versions = {versions})"));
                self.was_altered = true;
                for id in 0..KEYS {
                    self.write_all(id, self.now, WriteKind::Retain { versions });
                }
            }
            1 | 2 if !self.indexes.is_empty() => {
                let index = self.random.below(self.indexes.len());
                self.execute(&format!("ALTER INDEX i{index} SET (salt_buckets = {buckets})"));
            }
            _ => self.execute(&format!("ALTER TABLE t SET (salt_buckets = {buckets})")),
        }
    }

    fn restart(&mut self) {
        self.session = None;
        let engine = self.engine.take().unwrap();
        if self.random.chance(50) {
            self.log.push("-- crash".to_owned());
            self.env = self.env.after_crash(Unsynced::Lost);
            self.env.set_now(self.now * 1_000_000);
        } else {
            self.log.push("-- restart".to_owned());
            self.was_rewritten = true;
            engine.store().flush_all().unwrap();
            engine.store().shut_down().unwrap();
        }
        drop(engine);
        let (engine, session) = open(&self.env);
        (self.engine, self.session) = (Some(engine), Some(session));
    }

    fn expects(&mut self, sql: &str, expected: &str) {
        let said = self.ask(sql);
        let expected = if expected.is_empty() { "ok\n" } else { expected };
        assert_eq!(said, expected, "{sql} at {}{}", self.now, self.shown());
    }

    /// Compares the access paths to the present with the model.
    fn check(&mut self) {
        let rows = self.rows(self.now);
        self.expects("SELECT id, x, y FROM t ORDER BY id", &text(&rows));
        self.expects("SELECT count(*) FROM t", &format!("{}\n", rows.len()));
        let sum: Vec<i32> = rows.values().filter_map(|row| row[1]).collect();
        let shown_sum = shown((!sum.is_empty()).then(|| sum.iter().sum()));
        self.expects("SELECT sum(y), count(y) FROM t", &format!("{shown_sum}|{}\n", sum.len()));
        let id = self.random.below(KEYS as usize) as i32;
        let only = |keep: &dyn Fn(i32, &Values) -> bool| -> BTreeMap<i32, Values> {
            rows.iter().filter(|(id, row)| keep(**id, row)).map(|(id, row)| (*id, *row)).collect()
        };
        let one = text(&only(&|own, _| own == id));
        self.expects(&format!("SELECT id, x, y FROM t WHERE id = {id}"), &one);
        let value = self.random.below(VALUES) as i32;
        for (column, name) in ["x", "y"].into_iter().enumerate() {
            let with = text(&only(&|_, row| row[column] == Some(value)));
            let condition = format!("FROM t WHERE {name} = {value} ORDER BY id");
            self.expects(&format!("SELECT id, x, y {condition}"), &with);
            self.expects(&format!("SELECT /*+ NO_INDEX */ id, x, y {condition}"), &with);
        }
        let with = text(&only(&|_, row| row[0] == Some(value) && row[1] > Some(1)));
        self.expects(
            &format!("SELECT id, x, y FROM t WHERE x = {value} AND y > 1 ORDER BY id"),
            &with,
        );
        if !self.has_column_cells {
            self.check_cells(id);
        }
        self.check_indexes();
    }

    /// Compares the versions that `cells` lists with the model.
    fn check_cells(&mut self, id: i32) {
        let families = self.model.get(&id).cloned().unwrap_or_default();
        let mut expected = String::new();
        for (family, writes) in families.iter().enumerate() {
            for version in replay(writes, self.versions, self.now) {
                let shown: Vec<String> = (0..2)
                    .filter(|column| self.families[*column] == family)
                    .map(|column| version.values[column])
                    .map(|value| value.map_or("null".to_owned(), |value| value.to_string()))
                    .collect();
                let names = [["x", "y"], ["x", ""], ["y", ""]];
                let names = names[if self.families[1] == 0 { 0 } else { family + 1 }];
                let columns: Vec<String> =
                    names.iter().zip(&shown).map(|(n, v)| format!("\"{n}\": {v}")).collect();
                let _ = writeln!(expected, "{}|{{{}}}", version.at, columns.join(", "));
            }
        }
        let sql = format!(
            "SELECT extract(epoch FROM timestamp)::bigint, columns \
             FROM cells('t', versions => 100, start => {id}, stop => {})",
            id + 1
        );
        self.expects(&sql, &expected);
    }

    /// Compares the state of a random time with the model; an error if versions may have been
    /// dropped.
    fn check_past(&mut self) {
        let time = self.time();
        if self.has_ttl && time <= BEGIN {
            // Before the table was created.
            return;
        }
        let mut rows = self.rows(time);
        rows.retain(|id, _| !self.exposed.contains(id));
        let mut others = "id NOT IN (-1".to_owned();
        for id in &self.exposed {
            let _ = write!(others, ", {id}");
        }
        let as_of = format!("FROM t FOR SYSTEM_TIME AS OF to_timestamp({time})");
        let value = self.random.below(VALUES) as i32;
        let with: BTreeMap<i32, Values> =
            rows.iter().filter(|(_, r)| r[0] == Some(value)).map(|(i, r)| (*i, *r)).collect();
        for (sql, expected) in [
            (format!("SELECT id, x, y {as_of} WHERE {others}) ORDER BY id"), text(&rows)),
            (
                format!("SELECT id, x, y {as_of} WHERE x = {value} AND {others}) ORDER BY id"),
                text(&with),
            ),
            (format!("SELECT count(*) {as_of} WHERE {others})"), format!("{}\n", rows.len())),
        ] {
            let said = self.ask(&sql);
            let expected = if expected.is_empty() { "ok\n".to_owned() } else { expected };
            if !(self.was_rewritten && said.starts_with("error 72000")) {
                assert_eq!(said, expected, "{sql} at {}{}", self.now, self.shown());
            }
        }
    }

    /// Asserts that each index has exactly the entries of the rows.
    fn check_indexes(&self) {
        let engine = self.engine.as_ref().unwrap();
        for (index, found) in index_differences(engine, "t") {
            assert_eq!(found.differences(), 0, "{index}: {found:?}{}", self.shown());
        }
    }
}

fn text(rows: &BTreeMap<i32, Values>) -> String {
    let line = |(id, row): (&i32, &Values)| format!("{id}|{}|{}\n", shown(row[0]), shown(row[1]));
    rows.iter().map(line).collect()
}

#[test]
fn client_timestamps_match_model_on_every_access_path() {
    if let Some(seed) = number("BENNU_SEED") {
        drop(Run::new(seed));
        return;
    }
    for seed in 0..CASES * number("BENNU_CASES").unwrap_or(1) {
        drop(Run::new(seed));
    }
}
