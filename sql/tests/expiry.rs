//! Model checking of expiry: TTLs of families and cells, all kinds of indexes, and a simulated
//! clock.
//!
//! Every access path must return the rows of the model, before and after flushes, compactions,
//! splits, restarts, crashes and ALTER TABLE. Time-travel queries return the states that the
//! model recorded, or errors where versions may have been dropped.
//!
//! `BENNU_SEED=n` repeats a case, `BENNU_CASES=n` multiplies their number.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::collections::BTreeMap;
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
const CASES: u64 = 4;
/// Number of steps of a case.
const STEPS: usize = 30;
/// Initial time, in seconds of the Unix epoch.
const BEGIN: i64 = 1_700_000_000;
/// Columns besides the key.
const COLUMNS: [&str; 4] = ["x", "y", "z", "w"];
/// Exclusive upper bound of keys.
const KEYS: usize = 7;
/// Exclusive upper bound of values.
const VALUES: usize = 4;

type Values = [Option<i32>; 4];

/// Random case: a table and its indexes.
struct Case {
    /// Family of each column.
    families: [usize; 4],
    /// TTL of each family in seconds; cells expire half a second later, so that no clock value is
    /// ambiguous.
    ttls: Vec<Option<i64>>,
    /// TTLs that ALTER TABLE has replaced, with the second of the change.
    retired: Vec<(i64, Vec<Option<i64>>)>,
    min_versions: Vec<u32>,
    /// True if rows expire at the time in a column.
    by_column: bool,
    durability: &'static str,
    create: String,
    indexes: Vec<String>,
    /// Column of the unique index.
    unique: Option<usize>,
}

/// Cell of a family in the model.
#[derive(Debug, Clone)]
struct Cell {
    values: Values,
    written: i64,
    /// Second after which a cell with a TTL has expired.
    until: Option<i64>,
}

/// Model: cells by key and family.
type Model = BTreeMap<i32, Vec<Option<Cell>>>;

impl Case {
    fn draw(random: &mut Random) -> Case {
        // With a cell for each column, each has a family of its own: the model knows families only.
        let column_cells = random.chance(30);
        let family_count = if column_cells { 4 } else { 1 + random.below(3) };
        let mut families = [0; 4];
        for (column, family) in families.iter_mut().enumerate() {
            *family = if column < family_count { column } else { random.below(family_count) };
        }
        let by_column = random.chance(25);
        let ttl = |random: &mut Random| random.chance(60).then(|| random.from(1..8));
        let ttls: Vec<Option<i64>> =
            (0..family_count).map(|_| if by_column { None } else { ttl(random) }).collect();
        let min_versions: Vec<u32> =
            (0..family_count).map(|_| u32::from(random.chance(12))).collect();
        let durability = ["SYNC_WAL", "SYNC_WAL", "ASYNC_WAL", "SKIP_WAL"][random.below(4)];
        let mut create = "CREATE TABLE t (id int PRIMARY KEY".to_owned();
        for (column, family) in COLUMNS.iter().zip(families) {
            let _ = write!(create, ", f{family}.{column} int");
        }
        if by_column {
            create.push_str(", f0.until timestamptz");
        }
        let storage = if column_cells { "CELL" } else { "ROW" };
        let _ = write!(create, ") DURABILITY = {durability}, STORAGE = {storage}");
        for (family, (ttl, min)) in ttls.iter().zip(&min_versions).enumerate() {
            let versions = random.from(1..4);
            let _ = write!(create, ", f{family}.VERSIONS = {versions}");
            if let Some(ttl) = ttl {
                let _ = write!(create, ", f{family}.TTL = '{ttl}500 milliseconds'");
            }
            if *min > 0 {
                let _ = write!(create, ", f{family}.MIN_VERSIONS = {min}");
            }
        }
        if random.chance(25) {
            create.push_str(", SALT_BUCKETS = 3");
        }
        let unique = random.chance(50).then(|| random.below(4));
        let mut indexes = Vec::new();
        for kind in 0..8 {
            if random.chance(35) {
                indexes.push(index(random, kind));
            }
        }
        if let Some(column) = unique {
            let include = COLUMNS[random.below(4)];
            let salt = if random.chance(40) { " WITH (salt_buckets = 3)" } else { "" };
            let column = COLUMNS[column];
            indexes.push(format!("UNIQUE INDEX u ON t ({column}) INCLUDE ({include}){salt}"));
        }
        let retired = Vec::new();
        Case {
            families,
            ttls,
            retired,
            min_versions,
            by_column,
            durability,
            create,
            indexes,
            unique,
        }
    }

    /// Returns whether a cell is live at a time.
    fn is_live(&self, cell: &Cell, family: usize, now: i64) -> bool {
        let survives = |ttls: &[Option<i64>], at: i64| {
            let ttl = ttls[family].filter(|_| self.min_versions[family] == 0);
            ttl.is_none_or(|ttl| at - cell.written <= ttl)
        };
        let mut later = self.retired.iter().skip_while(|(until, _)| *until <= now);
        survives(later.next().map_or(&self.ttls, |(_, ttls)| ttls), now)
            && self
                .retired
                .iter()
                .take_while(|(until, _)| *until <= now)
                .all(|(until, ttls)| survives(ttls, *until))
            && cell.until.is_none_or(|until| now <= until)
    }

    /// Returns the values of a row at a time; `None` if it does not exist.
    fn row(&self, cells: &[Option<Cell>], now: i64) -> Option<Values> {
        let live =
            |family: usize| cells[family].as_ref().filter(|cell| self.is_live(cell, family, now));
        (0..self.ttls.len()).find_map(live)?;
        let mut values = [None; 4];
        for (column, value) in values.iter_mut().enumerate() {
            *value = live(self.families[column]).and_then(|cell| cell.values[column]);
        }
        Some(values)
    }

    fn rows(&self, model: &Model, now: i64) -> BTreeMap<i32, Values> {
        model.iter().filter_map(|(id, cells)| Some((*id, self.row(cells, now)?))).collect()
    }
}

fn index(random: &mut Random, kind: usize) -> String {
    let mut column = || COLUMNS[random.below(4)];
    let (a, b, c) = (column(), column(), column());
    match kind {
        0 => format!("INDEX i0 ON t ({a})"),
        1 => format!("INDEX i1 ON t ({a}) INCLUDE ({b}, {c})"),
        2 => format!("INDEX i2 ON t ({a}, {b} DESC) INCLUDE ({c})"),
        3 => format!("INDEX i3 ON t ((coalesce({a}, 2)))"),
        4 => format!("INDEX i4 ON t (abs({a})) INCLUDE ({b})"),
        5 => format!("INDEX i5 ON t ({a}) WHERE {b} > 1"),
        6 => format!("INDEX i6 ON t ({a}) WHERE {b} IS NULL"),
        _ => format!("INDEX i7 ON t (id DESC) INCLUDE ({a}, {b})"),
    }
}

/// A table under test, and its model.
struct Run {
    seed: u64,
    case: Case,
    random: Random,
    env: FaultEnv,
    engine: Option<Arc<Engine>>,
    session: Option<Session>,
    model: Model,
    now: i64,
    log: Vec<String>,
    past: Past,
    /// Columns whose type was changed to bigint.
    wide: [bool; 4],
}

/// Previous states of the table.
#[derive(Default)]
struct Past {
    /// State at the end of each second.
    states: BTreeMap<i64, Model>,
    /// Second in which the table was created, truncated or rewritten.
    begin: i64,
    /// Second from which on the states are known: a crash may have lost earlier ones.
    known_from: i64,
    /// Second in which the present column w was added.
    w_begin: i64,
    /// True if versions may have been dropped.
    was_rewritten: bool,
}

fn open(env: &FaultEnv) -> Arc<Engine> {
    let options = Options { env: Arc::new(env.clone()), ..Options::default() };
    let store = Store::open(Path::new("/data"), options).unwrap();
    Engine::open(store, EngineOptions::default()).unwrap()
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut random = Random(seed);
        let case = Case::draw(&mut random);
        let env = FaultEnv::new(seed);
        env.set_now(BEGIN * 1_000_000);
        let engine = open(&env);
        let mut run = Run {
            seed,
            random,
            session: Some(session(&engine)),
            engine: Some(engine),
            env,
            model: Model::new(),
            now: BEGIN,
            log: Vec::new(),
            past: Past { begin: BEGIN, known_from: BEGIN, w_begin: BEGIN, ..Past::default() },
            wide: [false; 4],
            case,
        };
        let create = run.case.create.clone();
        run.execute(&create);
        if run.case.by_column {
            run.execute("ALTER TABLE t ATTACH COPROCESSOR ttl_by_column WITH (column = 'until')");
        }
        let (first, late): (Vec<_>, Vec<_>) = {
            let indexes = run.case.indexes.clone();
            indexes.into_iter().partition(|_| run.random.chance(80))
        };
        first.iter().for_each(|index| run.create_index(index));
        run.case.indexes.retain(|index| first.contains(index));
        for step in 0..STEPS {
            run.step();
            let (now, state) = (run.now, run.model.clone());
            run.past.states.insert(now, state);
            run.check();
            run.check_past();
            if step == STEPS / 2 {
                for index in &late {
                    // The index may be rejected, and is then removed.
                    run.case.indexes.push(index.clone());
                    run.create_index(index);
                }
                run.check();
            }
        }
        run
    }

    /// Records a flush: an index build flushes the table's rows.
    fn note_flush_of_unlogged(&mut self) {
        self.past.was_rewritten |= self.case.durability == "SKIP_WAL";
    }

    fn create_index(&mut self, index: &str) {
        self.note_flush_of_unlogged();
        let said = self.ask(&format!("CREATE {index}"));
        let refused = said.starts_with("error 0A000") || said.starts_with("error 23505");
        if said != "ok\n" {
            assert!(refused, "{said}{}", self.shown());
            self.case.indexes.retain(|one| one != index);
            if index.starts_with("UNIQUE") {
                self.case.unique = None;
            }
        }
    }

    fn shown(&self) -> String {
        format!("\nBENNU_SEED={}\n{}", self.seed, self.log.join(";\n"))
    }

    fn ask(&mut self, sql: &str) -> String {
        if !sql.starts_with("SELECT") && !sql.starts_with("COPY") {
            self.log.push(sql.to_owned());
        }
        answer(self.session.as_mut().unwrap(), sql)
    }

    fn execute(&mut self, sql: &str) {
        let said = self.ask(sql);
        assert_eq!(said, "ok\n", "{sql}{}", self.shown());
    }

    fn value(&mut self) -> Option<i32> {
        self.random.chance(85).then(|| self.random.below(VALUES) as i32)
    }

    fn step(&mut self) {
        match self.random.below(22) {
            0..4 => self.insert(),
            4..9 => self.update(),
            9 => self.move_row(),
            10 => self.upsert(),
            11 => self.delete(),
            12 => self.roll_back(),
            13..17 => self.wait(),
            17 => self.rewrite(),
            18 => {
                self.note_flush_of_unlogged();
                self.execute("REINDEX TABLE t");
            }
            19 | 20 => self.alter(),
            _ => self.restart(),
        }
    }

    fn wait(&mut self) {
        self.now += self.random.from(1..4);
        self.log.push(format!("-- {} s", self.now - BEGIN));
        self.env.set_now(self.now * 1_000_000);
    }

    fn rewrite(&mut self) {
        let table = match self.random.below(6) {
            0 => "FLUSH t",
            1 => "FLUSH t; COMPACT t",
            2 => "FLUSH t; MAJOR COMPACT t",
            3 => "ALTER TABLE t SPLIT AT (3)",
            4 => "ALTER TABLE t SET (salt_buckets = 3)",
            _ => "ALTER TABLE t SET (salt_buckets = 0)",
        };
        let said = self.ask(table);
        self.past.was_rewritten = true;
        let may_be = said == "ok\n" || table.contains("SPLIT");
        assert!(may_be, "{table}: {said}{}", self.shown());
    }

    fn restart(&mut self) {
        let crash = self.random.chance(50);
        self.session = None;
        let engine = self.engine.take().unwrap();
        let keeps_all = !crash || self.case.durability == "SYNC_WAL";
        if crash {
            // The machine crashes, or only the process.
            let unsynced = match self.random.below(3) {
                0 => Unsynced::Lost,
                1 => Unsynced::Torn,
                _ => Unsynced::Kept,
            };
            self.log.push(format!("-- crash: {unsynced:?}"));
            self.env = self.env.after_crash(unsynced);
            self.env.set_now(self.now * 1_000_000);
        } else {
            self.log.push("-- restart".to_owned());
            self.past.was_rewritten = true;
            engine.store().flush_all().unwrap();
            engine.store().shut_down().unwrap();
        }
        drop(engine);
        let engine = open(&self.env);
        self.session = Some(session(&engine));
        self.engine = Some(engine);
        if !keeps_all {
            // Rows that were not flushed are lost, together with their index entries.
            self.check_indexes();
            self.execute("DELETE FROM t");
            self.model.clear();
            self.past.states.clear();
            self.past.known_from = self.now;
        }
    }

    /// Alters the table. Skipped if its rows expire by a column, where most changes are rejected.
    fn alter(&mut self) {
        if self.case.by_column {
            return;
        }
        let column = self.random.below(4);
        let name = COLUMNS[column];
        match self.random.below(5) {
            4 => self.change_ttl(),
            0 => {
                let wide = !self.wide[column];
                let to = if wide { "bigint" } else { "int" };
                if self.alters(&format!("ALTER TABLE t ALTER COLUMN {name} TYPE {to}")) {
                    self.wide[column] = wide;
                    self.reset_history();
                }
            }
            1 => self.add_random_column(),
            2 => {
                self.execute("TRUNCATE t");
                self.model.clear();
                self.reset_history();
            }
            _ => self.replace_w(),
        }
    }

    /// Changes TTL and VERSIONS of a family. Rejected if entries of an index could not expire.
    fn change_ttl(&mut self) {
        let family = self.random.below(self.case.ttls.len());
        let (versions, seconds) = (self.random.from(1..4), self.random.from(1..8));
        let ttl = self.random.chance(70).then_some(seconds);
        let value = ttl.map_or("forever".to_owned(), |ttl| format!("{ttl}500 milliseconds"));
        let set = format!("SET (ttl = '{value}', versions = {versions})");
        if family == 0 && self.case.ttls[0].is_none() {
            // Rows written until now may have no cell in families whose values are NULL.
            self.execute("UPDATE t SET x = x, y = y, z = z, w = w");
            for (id, values) in self.live() {
                self.put(id, values, None, &self.all_families());
            }
        }
        if self.alters(&format!("ALTER TABLE t ALTER FAMILY f{family} {set}")) {
            let before = self.case.ttls.clone();
            self.case.retired.push((self.now, before));
            self.case.ttls[family] = ttl;
        }
    }

    /// Executes an ALTER TABLE and returns whether it was executed, possibly with a notice; it
    /// may be rejected.
    fn alters(&mut self, sql: &str) -> bool {
        let said = self.ask(sql);
        let is_done = said == "ok\n" || said.starts_with("notice: history of table \"t\" restarts");
        assert!(is_done || said.starts_with("error 0A000"), "{sql}: {said}{}", self.shown());
        is_done
    }

    fn reset_history(&mut self) {
        let (begin, w_begin) = (self.now, self.past.w_begin);
        self.past = Past { begin, known_from: begin, w_begin, ..Past::default() };
    }

    /// Adds a column with a different value in each row: expired families get a cell.
    fn add_random_column(&mut self) {
        let family = self.random.below(self.case.ttls.len());
        if self.live().is_empty() {
            // An empty table is not rewritten.
            return;
        }
        let name = format!("r{}", self.log.len());
        if !self
            .alters(&format!("ALTER TABLE t ADD COLUMN f{family}.{name} float8 DEFAULT random()"))
        {
            return;
        }
        self.reset_history();
        let now = self.now;
        for id in self.live().into_keys() {
            let cells = self.model.get_mut(&id).unwrap();
            let is_live =
                cells[family].as_ref().is_some_and(|cell| self.case.is_live(cell, family, now));
            if !is_live {
                let fresh = Cell { values: [None; 4], written: now, until: None };
                cells[family] = Some(fresh);
            }
        }
    }

    /// Replaces column w by another one, unless an index uses it.
    fn replace_w(&mut self) {
        let names = |index: &String| {
            index.split(|c: char| !c.is_alphanumeric()).any(|word| word == COLUMNS[3])
        };
        if self.case.indexes.iter().any(names) {
            return;
        }
        let family = self.case.families[3];
        self.execute("ALTER TABLE t DROP COLUMN w");
        self.execute(&format!("ALTER TABLE t ADD COLUMN f{family}.w int"));
        self.wide[3] = false;
        self.past.w_begin = self.now;
        for cell in self.model.values_mut().filter_map(|cells| cells[family].as_mut()) {
            cell.values[3] = None;
        }
    }

    /// Compares a previous state with the model.
    fn check_past(&mut self) {
        let second = self.random.from(self.past.begin - 2..self.now + 1);
        let as_of = format!("FROM t FOR SYSTEM_TIME AS OF to_timestamp({second}.25)");
        let all = format!("SELECT id, x, y, z, w {as_of} ORDER BY id");
        if second < self.past.begin {
            let said = self.ask(&all);
            assert!(said.starts_with("error 72000"), "{all}: {said}{}", self.shown());
            return;
        }
        if second < self.past.known_from {
            return;
        }
        let state = self.past.states.range(..=second).next_back();
        let state = state.map(|(_, state)| state.clone()).unwrap_or_default();
        let live = self.case.rows(&state, second);
        if second < self.past.w_begin {
            let said = self.ask(&all);
            assert!(said.starts_with("error 72000"), "{all}: {said}{}", self.shown());
        } else {
            self.assert_past(&all, &rows_of(&live, 4));
        }
        self.assert_past(&format!("SELECT id, x, y, z {as_of} ORDER BY id"), &rows_of(&live, 3));
        self.assert_past(&format!("SELECT count(*) {as_of}"), &format!("{}\n", live.len()));
        let id = self.random.below(KEYS) as i32;
        let one: BTreeMap<i32, Values> =
            live.get_key_value(&id).map(|(id, row)| (*id, *row)).into_iter().collect();
        self.assert_past(&format!("SELECT id, x, y, z {as_of} WHERE id = {id}"), &rows_of(&one, 3));
        let column = self.random.below(3);
        let value = self.random.below(VALUES) as i32;
        let with: BTreeMap<i32, Values> =
            live.into_iter().filter(|(_, row)| row[column] == Some(value)).collect();
        let name = COLUMNS[column];
        let sql = format!("SELECT id, x, y, z {as_of} WHERE {name} = {value} ORDER BY id");
        self.assert_past(&sql, &rows_of(&with, 3));
        self.assert_past(
            &format!("SELECT id {as_of} WHERE {name} = {value} ORDER BY id"),
            &rows_of(&with, 0),
        );
    }

    /// Asserts the rows of a previous state, or an error if versions may have been dropped.
    fn assert_past(&mut self, sql: &str, expected: &str) {
        let said = self.ask(sql);
        if said.starts_with("error 72000") && self.past.was_rewritten {
            return;
        }
        let expected = if expected.is_empty() { "ok\n" } else { expected };
        assert_eq!(said, expected, "{sql} at {} s{}", self.now - BEGIN, self.shown());
    }

    fn live(&self) -> BTreeMap<i32, Values> {
        self.case.rows(&self.model, self.now)
    }

    /// Returns whether a row with these values would violate the unique index.
    fn collides(&self, id: i32, values: &Values) -> bool {
        let Some(column) = self.case.unique.filter(|_| self.has_unique()) else { return false };
        values[column].is_some()
            && self.live().iter().any(|(other, row)| *other != id && row[column] == values[column])
    }

    fn has_unique(&self) -> bool {
        self.case.indexes.iter().any(|index| index.starts_with("UNIQUE"))
    }

    fn until(&mut self) -> Option<i64> {
        if !self.case.by_column || self.random.chance(30) {
            return None;
        }
        Some(self.now + self.random.from(0..8))
    }

    /// Writes families of a row to the model.
    fn put(&mut self, id: i32, values: Values, until: Option<i64>, written: &[usize]) {
        let count = self.case.ttls.len();
        let row = self.model.entry(id).or_insert_with(|| vec![None; count]);
        for &family in written {
            row[family] = Some(Cell { values, written: self.now, until });
        }
    }

    fn all_families(&self) -> Vec<usize> {
        (0..self.case.ttls.len()).collect()
    }

    fn insert(&mut self) {
        let id = self.random.below(KEYS) as i32;
        let values: Values = std::array::from_fn(|_| self.value());
        let until = self.until();
        let ignores = self.random.chance(25);
        let mut list: Vec<String> = values.iter().map(|value| shown(*value)).collect();
        if self.case.by_column {
            list.push(time(until));
        }
        let ending = if ignores { " ON CONFLICT DO NOTHING" } else { "" };
        let names = if self.case.by_column { "id, x, y, z, w, until" } else { "id, x, y, z, w" };
        let values_list = list.join(", ");
        let sql = format!("INSERT INTO t ({names}) VALUES ({id}, {values_list}){ending}");
        let taken = self.live().contains_key(&id) || self.collides(id, &values);
        self.changes(&sql, taken && !ignores);
        if !taken {
            self.model.remove(&id);
            self.put(id, values, until, &self.all_families());
        }
    }

    fn changes(&mut self, sql: &str, fails: bool) {
        let said = self.ask(sql);
        let as_expected = if fails { said.starts_with("error 23505") } else { said == "ok\n" };
        assert!(as_expected, "{sql}: {said}expected error: {fails}{}", self.shown());
    }

    fn update(&mut self) {
        let id = self.random.below(KEYS) as i32;
        let mut columns: Vec<usize> = (0..4).filter(|_| self.random.chance(35)).collect();
        if columns.is_empty() {
            columns.push(self.random.below(4));
        }
        let news: Vec<(usize, Option<i32>)> =
            columns.iter().map(|&column| (column, self.value())).collect();
        let mut set: Vec<String> = news
            .iter()
            .map(|(column, value)| format!("{} = {}", COLUMNS[*column], shown(*value)))
            .collect();
        let until = self.until();
        if self.case.by_column {
            set.push(format!("until = {}", time(until)));
        }
        let sql = format!("UPDATE t SET {} WHERE id = {id}", set.join(", "));
        let Some(mut values) = self.live().get(&id).copied() else {
            self.changes(&sql, false);
            return;
        };
        news.iter().for_each(|(column, value)| values[*column] = *value);
        let fails = self.collides(id, &values);
        self.changes(&sql, fails);
        if !fails {
            let mut written: Vec<usize> =
                columns.iter().map(|column| self.case.families[*column]).collect();
            if self.case.by_column {
                written = self.all_families();
            }
            self.put(id, values, until, &written);
        }
    }

    fn move_row(&mut self) {
        let (id, to) = (self.random.below(KEYS) as i32, self.random.below(KEYS) as i32);
        let sql = format!("UPDATE t SET id = {to} WHERE id = {id}");
        if self.case.by_column || id == to {
            return;
        }
        let live = self.live();
        let Some(values) = live.get(&id).copied() else { return self.changes(&sql, false) };
        let fails = live.contains_key(&to);
        self.changes(&sql, fails);
        if !fails {
            self.model.remove(&id);
            self.model.remove(&to);
            self.put(to, values, None, &self.all_families());
        }
    }

    fn upsert(&mut self) {
        let id = self.random.below(KEYS) as i32;
        let column = self.random.below(4);
        let value = self.value();
        if self.case.by_column {
            return;
        }
        let sql =
            format!("UPSERT INTO t (id, {}) VALUES ({id}, {})", COLUMNS[column], shown(value));
        let old = self.live().get(&id).copied();
        let mut values = old.unwrap_or_default();
        values[column] = value;
        let fails = self.collides(id, &values);
        self.changes(&sql, fails);
        if !fails && old.is_some() {
            self.put(id, values, None, &[self.case.families[column]]);
        } else if !fails {
            self.model.remove(&id);
            self.put(id, values, None, &self.all_families());
        }
    }

    fn delete(&mut self) {
        let value = self.random.below(VALUES) as i32;
        let column = self.random.below(4);
        let sql = format!("DELETE FROM t WHERE {} = {value}", COLUMNS[column]);
        let gone: Vec<i32> = self
            .live()
            .into_iter()
            .filter(|(_, row)| row[column] == Some(value))
            .map(|(id, _)| id)
            .collect();
        self.changes(&sql, false);
        gone.iter().for_each(|id| drop(self.model.remove(id)));
    }

    fn roll_back(&mut self) {
        let (id, value) = (self.random.below(KEYS), shown(self.value()));
        self.log.push("-- rolled back".to_owned());
        let column = COLUMNS[self.random.below(4)];
        let changes = format!("UPDATE t SET {column} = {value} WHERE id = {id}");
        self.ask(&format!("BEGIN; {changes}; DELETE FROM t WHERE id = {id}; ROLLBACK"));
        if self.session.as_ref().is_some() {
            self.ask("ROLLBACK");
        }
    }

    /// Compares every access path with the model.
    fn check(&mut self) {
        let live = self.live();
        let line = |(id, row): (&i32, &Values)| {
            let values =
                row.map(|value| value.map_or("NULL".to_owned(), |value| value.to_string()));
            format!("{id}|{}\n", values.join("|"))
        };
        let all: String = live.iter().map(line).collect();
        self.expects("SELECT id, x, y, z, w FROM t ORDER BY id", &all);
        self.check_copy(&all);
        self.expects("SELECT count(*) FROM t", &format!("{}\n", live.len()));
        let ids: String = live.keys().map(|id| format!("{id}\n")).collect();
        self.expects("SELECT id FROM t ORDER BY id", &ids);
        for id in 0..KEYS as i32 {
            let one: String = live.get_key_value(&id).into_iter().map(line).collect();
            let sql = format!("SELECT id, x, y, z, w FROM t WHERE id = {id}");
            self.expects(&sql, if one.is_empty() { "ok\n" } else { &one });
        }
        for column in 0..4 {
            self.check_column(column, &live);
        }
        self.check_indexes();
    }

    /// Compares COPY output, which has bucket order for salted tables.
    fn check_copy(&mut self, expected: &str) {
        let copied = self.ask("COPY t (id, x, y, z, w) TO STDOUT");
        let mut lines: Vec<&str> = copied.lines().filter(|line| *line != "ok").collect();
        lines.sort_unstable();
        let expected: Vec<&str> = expected.lines().collect();
        assert_eq!(lines, expected, "COPY at {} s{}", self.now - BEGIN, self.shown());
    }

    fn check_column(&mut self, column: usize, live: &BTreeMap<i32, Values>) {
        let name = COLUMNS[column];
        let other = (column + 1) % 4;
        let sum: i32 = live.values().filter_map(|row| row[column]).sum();
        let count = live.values().filter(|row| row[column].is_some()).count();
        let sum = if count == 0 { "NULL".to_owned() } else { sum.to_string() };
        self.expects(
            &format!("SELECT sum({name}), count({name}) FROM t"),
            &format!("{sum}|{count}\n"),
        );
        let value = self.random.below(VALUES) as i32;
        let is = |row: &Values, wanted: i32| row[column] == Some(wanted);
        type Condition<'a> = (String, Box<dyn Fn(&Values) -> bool + 'a>);
        let conditions: [Condition<'_>; 7] = [
            (format!("{name} = {value}"), Box::new(|row| is(row, value))),
            (format!("{name} IS NULL"), Box::new(|row| row[column].is_none())),
            (
                format!("coalesce({name}, 2) = 2"),
                Box::new(|row| row[column].is_none_or(|v| v == 2)),
            ),
            (format!("abs({name}) = {value}"), Box::new(|row| is(row, value))),
            (
                format!("{name} >= {value} AND {} > 1", COLUMNS[other]),
                Box::new(|row| {
                    row[column].is_some_and(|v| v >= value) && row[other].is_some_and(|v| v > 1)
                }),
            ),
            (
                format!("{name} = {value} AND {} IS NULL", COLUMNS[other]),
                Box::new(|row| is(row, value) && row[other].is_none()),
            ),
            (format!("{name} IN (1, 3)"), Box::new(|row| is(row, 1) || is(row, 3))),
        ];
        let hints: Vec<String> = self.case.indexes.iter().map(|index| hint(index)).collect();
        for (condition, holds) in &conditions {
            if !self.random.chance(25) {
                continue;
            }
            let found: Vec<(&i32, &Values)> = live.iter().filter(|(_, row)| holds(row)).collect();
            let count = format!("{}\n", found.len());
            let pairs = |other: usize| -> String {
                let shown = |value: Option<i32>| value.map_or("NULL".to_owned(), |v| v.to_string());
                let lines = found.iter().map(|(id, row)| {
                    format!("{id}|{}|{}\n", shown(row[column]), shown(row[other]))
                });
                let lines: String = lines.collect();
                if lines.is_empty() { "ok\n".to_owned() } else { lines }
            };
            for hint in hints.iter().map(String::as_str).chain(["", "/*+ NO_INDEX */ "]) {
                self.expects(&format!("SELECT {hint}count(*) FROM t WHERE {condition}"), &count);
                let with = COLUMNS[other];
                let sql =
                    format!("SELECT {hint}id, {name}, {with} FROM t WHERE {condition} ORDER BY id");
                self.expects(&sql, &pairs(other));
            }
        }
        self.check_groups(column, live, &hints);
        let mut sorted: Vec<Option<i32>> = live.values().map(|row| row[column]).collect();
        sorted.sort_by_key(|value| (value.is_none(), *value));
        let sorted: String = sorted
            .iter()
            .take(3)
            .map(|v| v.map_or("NULL\n".to_owned(), |v| format!("{v}\n")))
            .collect();
        let sorted = if sorted.is_empty() { "ok\n".to_owned() } else { sorted };
        self.expects(&format!("SELECT {name} FROM t ORDER BY {name} LIMIT 3"), &sorted);
    }

    /// Compares distinct values, and first and last rows of groups, with the model. The hints have
    /// them read by distinct prefix scans.
    fn check_groups(&mut self, column: usize, live: &BTreeMap<i32, Values>, hints: &[String]) {
        let name = COLUMNS[column];
        let mut groups: BTreeMap<i32, (i32, i32)> = BTreeMap::new();
        for (id, row) in live {
            if let Some(value) = row[column] {
                groups.entry(value).and_modify(|(_, last)| *last = *id).or_insert((*id, *id));
            }
        }
        let lines = |line: &dyn Fn(i32, i32, i32) -> String| -> String {
            groups.iter().map(|(value, (first, last))| line(*value, *first, *last)).collect()
        };
        let values = lines(&|value, _, _| format!("{value}\n"));
        let extremes = lines(&|value, first, last| format!("{value}|{first}|{last}\n"));
        let lasts = lines(&|value, _, last| format!("{value}|{last}\n"));
        for hint in hints.iter().map(String::as_str).chain([""]) {
            let rows = format!("FROM t WHERE {name} IS NOT NULL");
            let by = format!("GROUP BY {name} ORDER BY {name}");
            self.expects(&format!("SELECT {hint}min({name}) {rows} {by}"), &values);
            self.expects(&format!("SELECT {hint}DISTINCT {name} {rows} ORDER BY {name}"), &values);
            let sql = format!("SELECT {hint}{name}, min(id), max(id) {rows} {by}");
            self.expects(&sql, &extremes);
            let on = format!("{hint}DISTINCT ON ({name}) {name}, id");
            self.expects(&format!("SELECT {on} {rows} ORDER BY {name}, id DESC"), &lasts);
        }
    }

    fn expects(&mut self, sql: &str, expected: &str) {
        let said = self.ask(sql);
        let expected = if expected.is_empty() { "ok\n" } else { expected };
        if said != expected {
            let plan = self.ask(&format!("EXPLAIN {sql}"));
            panic!(
                "{sql}\nsaid {said}expected {expected}{plan}at {} s{}",
                self.now - BEGIN,
                self.shown()
            );
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

/// Returns rows as text, with the first `columns` columns.
fn rows_of(rows: &BTreeMap<i32, Values>, columns: usize) -> String {
    let line = |(id, row): (&i32, &Values)| {
        let values = row[..columns].iter().map(|value| format!("|{}", shown(*value)));
        format!("{id}{}\n", values.collect::<String>())
    };
    rows.iter().map(line).collect()
}

fn session(engine: &Arc<Engine>) -> Session {
    Session::open(engine, SessionOptions { user: "bennu".to_owned() })
}

fn shown(value: Option<i32>) -> String {
    value.map_or("NULL".to_owned(), |value| value.to_string())
}

fn time(until: Option<i64>) -> String {
    until.map_or("NULL".to_owned(), |until| format!("to_timestamp({until}.5)"))
}

fn hint(index: &str) -> String {
    let name = index.split("INDEX ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    format!("/*+ INDEX(t {name}) */ ")
}

#[test]
fn expired_rows_are_hidden_on_every_access_path() {
    if let Some(seed) = number("BENNU_SEED") {
        drop(Run::new(seed));
        return;
    }
    // An UPSERT of one column into a row that another family outlives; an index of the key alone
    // over columns with cells and TTLs of their own.
    for seed in [32, 84] {
        drop(Run::new(seed));
    }
    for seed in 0..CASES * number("BENNU_CASES").unwrap_or(1) {
        drop(Run::new(seed));
    }
}
