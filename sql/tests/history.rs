//! Time travel: `FOR SYSTEM_TIME AS OF` returns the state of that time, or the first time that is
//! available.
//!
//! `BENNU_SEED=n` repeats a random case, `BENNU_CASES=n` multiplies their number.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::path::Path;
use std::sync::Arc;

use sql::EngineOptions;
use sql::engine::Engine;
use sql::session::{Session, SessionOptions};
use store::env::fault::{FaultEnv, Unsynced};
use store::{Options, Store};

use crate::random::Random;
use crate::server::answer;

/// Initial time, in seconds of the Unix epoch.
const BEGIN: i64 = 1_700_000_000;

/// Database with a simulated clock: each statement is executed one second after the one before.
struct Database {
    env: FaultEnv,
    engine: Option<Arc<Engine>>,
    session: Option<Session>,
    now: i64,
}

impl Database {
    fn new() -> Database {
        let env = FaultEnv::new(1);
        env.set_now(BEGIN * 1_000_000);
        let mut database = Database { env, engine: None, session: None, now: 0 };
        database.open();
        database
    }

    fn open(&mut self) {
        let options = Options { env: Arc::new(self.env.clone()), ..Options::default() };
        let store = Store::open(Path::new("/data"), options).unwrap();
        let engine = Engine::open(store, EngineOptions::default()).unwrap();
        self.session = Some(Session::open(&engine, SessionOptions { user: "bennu".to_owned() }));
        self.engine = Some(engine);
    }

    fn close(&mut self) {
        self.session = None;
        self.engine.take().unwrap().store().shut_down().unwrap();
    }

    fn crash(&mut self) {
        self.env = self.env.after_crash(Unsynced::Lost);
        self.env.set_now((BEGIN + self.now) * 1_000_000);
        (self.session, self.engine) = (None, None);
        self.open();
    }

    /// Executes a statement one second later, and returns the second.
    fn execute(&mut self, sql: &str) -> i64 {
        self.now += 1;
        self.env.set_now((BEGIN + self.now) * 1_000_000);
        let said = self.ask(sql);
        assert!(!said.contains("error"), "{sql}: {said}");
        self.now
    }

    fn ask(&mut self, sql: &str) -> String {
        answer(self.session.as_mut().unwrap(), sql)
    }

    /// Returns the rows of a table half a second after a statement, separated by spaces, or the
    /// second in which the history begins.
    fn at(&mut self, what: &str, table: &str, second: i64) -> String {
        let time = format!("to_timestamp({}.5)", BEGIN + second);
        let sql = format!("SELECT {what} FROM {table} FOR SYSTEM_TIME AS OF {time} ORDER BY 1");
        let said = self.ask(&sql);
        let Some(rest) = said.strip_prefix("error 72000: ") else {
            assert!(!said.starts_with("error"), "{said}");
            return said.trim_end().replace('\n', " ");
        };
        let named = format!("history of table \"{table}\" begins at ");
        let begin = rest.strip_prefix(&named).unwrap_or_else(|| panic!("{said}"));
        let begin = begin.split(", after").next().unwrap();
        let second = self.ask(&format!("SELECT extract(epoch FROM '{begin}'::timestamptz)"));
        let second = second.trim_end().parse::<f64>().unwrap() - BEGIN as f64;
        format!("from {second:.1}")
    }
}

#[test]
fn dropped_history_is_error_with_earliest_time() {
    let mut database = Database::new();
    let created = database.execute("CREATE TABLE t (k int PRIMARY KEY, x int)");
    let inserted = database.execute("INSERT INTO t VALUES (1, 10), (2, 20)");
    let updated = database.execute("UPDATE t SET x = 11 WHERE k = 1");
    let deleted = database.execute("DELETE FROM t WHERE k = 2");
    assert_eq!(database.at("k, x", "t", created - 1), "from 1.0");
    assert_eq!(database.at("k, x", "t", created), "ok");
    // Versions in the memstore are available, even after later changes.
    assert_eq!(database.at("k, x", "t", inserted), "1|10 2|20");
    assert_eq!(database.at("k, x", "t", updated), "1|11 2|20");
    assert_eq!(database.at("k, x", "t", deleted), "1|11");
    let null = database.ask("SELECT * FROM t FOR SYSTEM_TIME AS OF NULL");
    assert_eq!(null, "error 22004: argument of FOR SYSTEM_TIME AS OF must not be null\n");
    database.execute("FLUSH t");
    for round in ["flushed", "opened again", "after a crash", "compacted", "split", "merged"] {
        match round {
            "opened again" => {
                database.close();
                database.open();
            }
            "after a crash" => database.crash(),
            "compacted" => drop(database.execute("MAJOR COMPACT t")),
            "split" => drop(database.execute("ALTER TABLE t SPLIT AT (2)")),
            "merged" => {
                database.execute("MAJOR COMPACT t");
                let regions = "SELECT region FROM bennu.regions WHERE table_name = 't'";
                let ids = database.ask(regions).trim_end().replace('\n', ", ");
                database.execute(&format!("ALTER TABLE t MERGE REGIONS {ids}"));
            }
            _ => {}
        }
        assert_eq!(database.at("k, x", "t", created - 1), "from 4.0", "{round}");
        assert_eq!(database.at("k, x", "t", inserted), "from 4.0", "{round}");
        assert_eq!(database.at("k, x", "t", updated), "from 4.0", "{round}");
        assert_eq!(database.at("k, x", "t", deleted), "1|11", "{round}");
        let now = database.now;
        assert_eq!(database.at("k, x", "t", now), "1|11", "{round}");
    }
}

#[test]
fn history_depends_on_versions_ttl_and_region() {
    let mut database = Database::new();
    database.execute(
        "CREATE TABLE t (k int PRIMARY KEY, a.x int, b.y int) a.VERSIONS = 2, b.TTL = 9 \
         SPLIT ON ((10))",
    );
    let first = database.execute("INSERT INTO t VALUES (1, 1, 1), (11, 1, 1)");
    let second = database.execute("UPDATE t SET x = 2 WHERE k = 1");
    let third = database.execute("UPDATE t SET x = 3 WHERE k = 1");
    database.execute("FLUSH t");
    // Two of the three versions of family a in the first region remain.
    assert_eq!(database.at("k, x", "t", first), "from 3.0");
    assert_eq!(database.at("k, x", "t", second), "1|2 11|1");
    assert_eq!(database.at("k, x", "t", third), "1|3 11|1");
    assert_eq!(database.at("y", "t", first), "from 3.0", "a row may have a cell in each family");
    let later = "SELECT x FROM t FOR SYSTEM_TIME AS OF to_timestamp(1700000002.5) WHERE k = 11";
    assert_eq!(database.ask(later), "1\n", "the second region has dropped nothing");
    // Completely expired files are removed automatically, but not while a snapshot reads them.
    let engine = Arc::clone(database.engine.as_ref().unwrap());
    let mut reader = Session::open(&engine, SessionOptions { user: "bennu".to_owned() });
    assert_eq!(answer(&mut reader, "BEGIN ISOLATION LEVEL REPEATABLE READ"), "ok\n");
    assert_eq!(answer(&mut reader, "SELECT y FROM t"), "1\n1\n");
    for _ in 0..10 {
        database.execute("SELECT 1");
    }
    let now = database.now;
    assert_eq!(database.at("k, x, y", "t", now), "1|3|NULL 11|1|NULL");
    assert_eq!(database.at("k, x, y", "t", third), "1|3|1 11|1|1", "it is there still");
    assert_eq!(answer(&mut reader, "ROLLBACK"), "ok\n");
    database.execute("MAJOR COMPACT t");
    assert_eq!(database.at("k, x, y", "t", third), "from 11.0", "when family b has expired");
    assert_eq!(database.at("k, x, y", "t", 11), "1|3|NULL 11|1|NULL");
}

#[test]
fn table_rewrite_keeps_timestamps_and_restarts_history() {
    let mut database = Database::new();
    database
        .execute("CREATE TABLE t (k int PRIMARY KEY, a.x int, b.y int) VERSIONS = 9, b.TTL = 20");
    let inserted = database.execute("INSERT INTO t VALUES (1, 10, 100)");
    let updated = database.execute("UPDATE t SET x = 11");
    let times = database.ask("SELECT _timestamp FROM t");
    let notice = "notice: history of table \"t\" restarts because its rows are rewritten\n";
    let rewrites = [
        "ALTER TABLE t ALTER x TYPE text",
        "ALTER TABLE t ADD COLUMN a.r float8 DEFAULT random()",
        "ALTER TABLE t ADD COLUMN a.i int GENERATED ALWAYS AS IDENTITY",
        "ALTER TABLE t ADD COLUMN a.g int GENERATED ALWAYS AS (y + 1) STORED",
        "ALTER TABLE t DROP CONSTRAINT t_pkey",
        "ALTER TABLE t ADD PRIMARY KEY (k)",
    ];
    for rewrite in rewrites {
        let before = database.now;
        assert_eq!(database.at("k, x, y", "t", before), "1|11|100");
        database.now += 1;
        database.env.set_now((BEGIN + database.now) * 1_000_000);
        assert_eq!(database.ask(rewrite), notice, "{rewrite}");
        let rewritten = database.now;
        assert_eq!(database.ask("SELECT _timestamp FROM t"), times, "{rewrite}");
        assert_eq!(database.at("k, x, y", "t", inserted), format!("from {rewritten}.0"));
        assert_eq!(database.at("k, x, y", "t", updated), format!("from {rewritten}.0"));
        assert_eq!(database.at("k, x, y", "t", rewritten), "1|11|100", "{rewrite}");
    }
    let not_written = database.execute("ALTER TABLE t ALTER x TYPE varchar");
    assert_eq!(database.at("k, x, y", "t", not_written - 1), "1|11|100");
    // The TTL starts when the row was written, not when it was rewritten.
    while database.now < inserted + 20 {
        database.execute("SELECT 1");
    }
    assert_eq!(database.ask("SELECT y FROM t"), "100\n");
    database.execute("SELECT 1");
    assert_eq!(database.ask("SELECT y FROM t"), "NULL\n");
}

#[test]
fn truncate_restarts_history_at_commit() {
    let mut database = Database::new();
    database.execute("CREATE TABLE t (k int PRIMARY KEY)");
    let inserted = database.execute("INSERT INTO t VALUES (1)");
    database.execute("BEGIN; TRUNCATE t");
    let said = database.ask("SELECT * FROM t FOR SYSTEM_TIME AS OF now()");
    assert!(said.contains("history of table \"t\" begins with this transaction"), "{said}");
    database.execute("ROLLBACK");
    assert_eq!(database.at("k", "t", inserted), "1");
    database.execute("BEGIN; TRUNCATE t");
    let between = database.execute("SELECT 1");
    let truncated = database.execute("COMMIT");
    assert_eq!(database.at("k", "t", between), format!("from {truncated}.0"));
    assert_eq!(database.at("k", "t", truncated), "ok");
    database.execute("DROP TABLE t");
    let created = database.execute("CREATE TABLE t (k int PRIMARY KEY)");
    assert_eq!(database.at("k", "t", inserted), format!("from {created}.0"));
}

#[test]
fn readded_column_hides_history_of_dropped_column() {
    let mut database = Database::new();
    database.execute("CREATE TABLE t (k int PRIMARY KEY, x int, y int)");
    let inserted = database.execute("INSERT INTO t VALUES (1, 10, 100)");
    let dropped = database.execute("ALTER TABLE t DROP COLUMN x");
    let added = database.execute("ALTER TABLE t ADD COLUMN x int DEFAULT 7");
    assert_eq!(database.at("k, y", "t", inserted), "1|100");
    assert_eq!(database.at("k, x, y", "t", inserted), format!("from {dropped}.0"));
    assert_eq!(database.at("k, x", "t", dropped), "1|7", "rows of then in columns of today");
    assert_eq!(database.at("k, x", "t", added), "1|7");
    database.execute("ALTER TABLE t ADD COLUMN z int");
    assert_eq!(database.at("k, y, z", "t", inserted), "1|100|NULL");
}

#[test]
fn lookup_join_history_error_names_table() {
    let mut database = Database::new();
    database.execute("CREATE TABLE t (k int PRIMARY KEY, x int)");
    database.execute("CREATE TABLE few (k int PRIMARY KEY)");
    database.execute("INSERT INTO t SELECT g, g FROM generate_series(1, 2000) g");
    let filled = database.execute("INSERT INTO few VALUES (7), (8)");
    database.execute("UPDATE t SET x = 0 WHERE k = 7");
    let join = format!(
        "SELECT few.k, t.x FROM few JOIN t FOR SYSTEM_TIME AS OF to_timestamp({}.5) \
         ON t.k = few.k ORDER BY 1",
        BEGIN + filled
    );
    assert_eq!(database.ask(&join), "7|7\n8|8\n");
    database.execute("FLUSH t");
    let said = database.ask(&join);
    assert!(said.starts_with("error 72000: history of table \"t\" begins at "), "{said}");
}

/// Statements that change the rows, the indexes or the options of table `t`.
fn random_change(random: &mut Random) -> String {
    let id = random.from(1..40);
    let (k, v, w) = (random.below(8), random.below(5), random.below(9));
    match random.below(20) {
        0..=6 => format!("UPSERT INTO t VALUES ({id}, {k}, 'v{v}', {w})"),
        7 => format!("UPDATE t SET k = {k} WHERE w < {v}"),
        8 => format!("UPDATE t SET v = 'v{v}' WHERE id = {id}"),
        9 => format!("UPDATE t SET w = {w} WHERE k = {k}"),
        10 => format!("UPDATE t SET id = id WHERE k = {k}"),
        11 => format!("DELETE FROM t WHERE id = {id}"),
        12 => format!("DELETE FROM t WHERE k = {k} AND w > 5"),
        13 | 14 => "FLUSH t".to_owned(),
        15 => "COMPACT t".to_owned(),
        16 => "MAJOR COMPACT t".to_owned(),
        17 if random.chance(50) => "CREATE INDEX IF NOT EXISTS t_n ON t (w, k)".to_owned(),
        17 => "DROP INDEX IF EXISTS t_n".to_owned(),
        18 if random.chance(30) => "REINDEX TABLE t".to_owned(),
        18 => "ANALYZE t".to_owned(),
        _ => format!("ALTER TABLE t SET (versions = {})", [1, 2, 4, 9][random.below(4)]),
    }
}

/// Compares time travel reads that may use an index with those that scan the table, at random
/// seconds between random changes. The table may have a shorter history than an index, not the
/// other way round.
fn compare_time_travel(seed: u64) {
    let mut random = Random(seed);
    let mut database = Database::new();
    let options = [
        "versions = 4, keep_deleted_cells = true",
        "versions = 2",
        "versions = 1",
        "versions = 3, ttl = '9 s', keep_deleted_cells = true",
        "versions = 50, keep_deleted_cells = true",
        "versions = 50, keep_deleted_cells = 'ttl', ttl = '15 s'",
    ][random.below(6)];
    database.execute(&format!(
        "CREATE TABLE t (id int PRIMARY KEY, k int, v text, w int) WITH ({options})"
    ));
    for index in ["t (k)", "t (v) INCLUDE (w)", "t (w) WHERE k > 3", "t ((k + w)) INCLUDE (v)"] {
        if random.chance(80) {
            database.execute(&format!("CREATE INDEX ON {index}"));
        }
    }
    for _ in 0..120 {
        let change = random_change(&mut random);
        let second = database.execute(&change) - random.from(0..25);
        if second < 1 {
            continue;
        }
        let (k, v, w) = (random.below(8), random.below(5), random.below(9));
        let condition = match random.below(7) {
            0 => format!("k = {k}"),
            1 => format!("k IN (1, {k})"),
            2 => format!("v = 'v{v}'"),
            3 => format!("w = {w} AND k > 3"),
            4 => format!("k + w = {}", k + v),
            5 => "k BETWEEN 2 AND 4 AND v = 'v1'".to_owned(),
            _ => format!("w = {w}"),
        };
        let columns = ["id, k, v, w", "id, w", "v, w", "id, _timestamp"][random.below(4)];
        let mut ask = |hint: &str| {
            database.ask(&format!(
                "SELECT {hint} {columns} FROM t FOR SYSTEM_TIME AS OF to_timestamp({}.5) \
                 WHERE {condition} ORDER BY 1, 2",
                BEGIN + second
            ))
        };
        let (by_index, by_scan) = (ask(""), ask("/*+ NO_INDEX */"));
        let is_too_early = |answer: &str| answer.starts_with("error 72000");
        if !(is_too_early(&by_scan)) {
            let context = format!("seed {seed}, {options}, {change}, {condition}, {second}");
            assert_eq!(by_index, by_scan, "{context}");
        }
    }
}

#[test]
fn time_travel_by_index_matches_scan() {
    let times = std::env::var("BENNU_CASES").map_or(1, |text| text.parse().unwrap());
    match std::env::var("BENNU_SEED") {
        Ok(seed) => compare_time_travel(seed.parse().unwrap()),
        Err(_) => (0..12 * times).for_each(compare_time_travel),
    }
}

/// Executes random changes in two databases, one of which also changes the number of salt buckets
/// of table and index, and compares their states at random seconds, and those of old snapshots.
fn compare_salted(seed: u64) {
    let mut random = Random(seed);
    let (mut salted, mut plain) = (Database::new(), Database::new());
    let options = [
        "versions = 4, keep_deleted_cells = true",
        "versions = 2",
        "versions = 3, ttl = '9 s', keep_deleted_cells = true",
        "versions = 50, keep_deleted_cells = 'ttl', ttl = '15 s'",
    ][random.below(4)];
    for database in [&mut salted, &mut plain] {
        database.execute(&format!(
            "CREATE TABLE t (id int PRIMARY KEY, k int, v text, f.w int) WITH ({options})"
        ));
        database.execute("CREATE INDEX t_k ON t (k)");
    }
    let all = "SELECT id, k, v, w FROM t ORDER BY 1";
    let mut reader: Option<(Session, String)> = None;
    for step in 0..80 {
        let context = |salted: &Database| format!("seed {seed}, {options}, {step}, {}", salted.now);
        if random.chance(12) {
            let buckets = [0, 1, 2, 3, 5, 16][random.below(6)];
            let of = ["TABLE t", "INDEX t_k"][usize::from(random.chance(25))];
            salted.execute(&format!("ALTER {of} SET (salt_buckets = {buckets})"));
            plain.execute("SELECT 1");
        } else if random.chance(6) {
            reader = None;
            match random.chance(50) {
                true => salted.crash(),
                false => {
                    salted.close();
                    salted.open();
                }
            }
        } else {
            let change = random_change(&mut random);
            if change.contains("INDEX") {
                // It would wait for the reader.
                reader = None;
            }
            salted.execute(&change);
            plain.execute(&change);
        }
        assert_eq!(salted.ask(all), plain.ask(all), "{}", context(&salted));
        match &mut reader {
            Some((session, then)) => {
                assert_eq!(answer(session, all), *then, "{}", context(&salted));
                if random.chance(20) {
                    reader = None;
                }
            }
            None if random.chance(20) => {
                let engine = Arc::clone(salted.engine.as_ref().unwrap());
                let options = SessionOptions { user: "bennu".to_owned() };
                let mut session = Session::open(&engine, options);
                answer(&mut session, "BEGIN ISOLATION LEVEL REPEATABLE READ");
                let then = answer(&mut session, all);
                reader = Some((session, then));
            }
            None => {}
        }
        let second = salted.now - random.from(0..25);
        let condition = ["true", "k = 3", "id = 7"][random.below(3)];
        let sql = format!(
            "SELECT id, k, v, w, _timestamp FROM t FOR SYSTEM_TIME AS OF to_timestamp({}.5) \
             WHERE {condition} ORDER BY 1",
            BEGIN + second.max(1)
        );
        let said = [salted.ask(&sql), plain.ask(&sql)];
        if said.iter().all(|said| !said.starts_with("error 72000")) {
            assert_eq!(said[0], said[1], "{sql}, {}", context(&salted));
        }
    }
}

#[test]
fn history_continues_under_other_salt() {
    let times = std::env::var("BENNU_CASES").map_or(1, |text| text.parse().unwrap());
    match std::env::var("BENNU_SEED") {
        Ok(seed) => compare_salted(seed.parse().unwrap()),
        Err(_) => (0..12 * times).for_each(compare_salted),
    }
}

#[test]
fn change_of_salt_keeps_history() {
    let mut database = Database::new();
    database.execute(
        "CREATE TABLE t (k int PRIMARY KEY, x int) WITH (versions = 9, keep_deleted_cells = true)",
    );
    let inserted = database.execute("INSERT INTO t VALUES (1, 10), (2, 20)");
    let updated = database.execute("UPDATE t SET x = 11 WHERE k = 1");
    let deleted = database.execute("DELETE FROM t WHERE k = 2");
    for buckets in [4, 7, 1, 0] {
        database.execute(&format!("ALTER TABLE t SET (salt_buckets = {buckets})"));
        for rewrite in ["SELECT 1", "FLUSH t", "MAJOR COMPACT t"] {
            database.execute(rewrite);
            assert_eq!(database.at("k, x", "t", inserted), "1|10 2|20", "{buckets}, {rewrite}");
            assert_eq!(database.at("k, x", "t", updated), "1|11 2|20", "{buckets}, {rewrite}");
            assert_eq!(database.at("k, x", "t", deleted), "1|11", "{buckets}, {rewrite}");
        }
    }
}
