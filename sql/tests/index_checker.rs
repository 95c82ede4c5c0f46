//! Checker of every kind of index: sessions write, one changes indexes and regions, one builds
//! what is due, and one compares each index with its table at snapshots. Then the process crashes,
//! builds resume, and all is compared again.
//!
//! The bug classes of secondary indexes that this covers: updates concurrent with a change of the
//! state of an index, with its build, and with splits; entries of rolled-back writes; keys that
//! become NULL; deletes before a compaction.
//!
//! `BENNU_CASES=n` multiplies the number of rounds, `BENNU_SEED=n` is the first seed.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use sql::engine::Engine;
use sql::session::Session;
use store::env::fault::{FaultEnv, Unsynced};

use crate::crashes::{self, open, run};
use crate::random::{Random, number};
use crate::server::answer;

/// Number of rounds, each of which ends with a crash.
const ROUNDS: u64 = 4;
/// Number of writing sessions.
const WRITERS: u64 = 6;
/// Number of statements of each in a round.
const STATEMENTS: usize = 60;
/// Exclusive upper bound of keys.
const KEYS: i64 = 400;

/// The indexes, each with its definition; `{}` is the place of CONCURRENTLY.
const INDEXES: [(&str, &str); 14] = [
    ("i_plain", "CREATE INDEX {} i_plain ON t (a)"),
    ("i_covering", "CREATE INDEX {} i_covering ON t (b DESC, a) INCLUDE (n, x)"),
    ("i_unique", "CREATE UNIQUE INDEX {} i_unique ON t (u)"),
    ("i_function", "CREATE INDEX {} i_function ON t (lower(b), (a + 1))"),
    ("i_partial", "CREATE INDEX {} i_partial ON t (n) WHERE a > 5"),
    (
        "i_unique_partial",
        "CREATE UNIQUE INDEX {} i_unique_partial ON t (b, id) WHERE n IS NOT NULL",
    ),
    ("i_salted", "CREATE INDEX {} i_salted ON t (a, b) WITH (salt_buckets = 4)"),
    ("i_tags", "CREATE INDEX {} i_tags ON t USING gin (tags)"),
    ("i_document", "CREATE INDEX {} i_document ON t USING gin (x)"),
    (
        "i_eventual",
        "CREATE INDEX {} i_eventual ON t (n, a DESC) INCLUDE (b) CONSISTENCY = EVENTUAL",
    ),
    (
        "i_eventual_partial",
        "CREATE INDEX {} i_eventual_partial ON t (upper(b)) WITH (salt_buckets = 2)
         WHERE a < 8 CONSISTENCY = EVENTUAL",
    ),
    (
        "i_eventual_tags",
        "CREATE INDEX {} i_eventual_tags ON t USING gin (tags) CONSISTENCY = EVENTUAL",
    ),
    ("i_paths", "CREATE INDEX {} i_paths ON t USING gin (x jsonb_path_ops) WHERE a < 9"),
    ("i_trigrams", "CREATE INDEX {} i_trigrams ON t USING gin (b gin_trgm_ops)"),
];

/// Local indexes. While there is one, the salt buckets of the table cannot be changed.
const LOCAL_INDEXES: [(&str, &str); 3] = [
    ("i_local", "CREATE LOCAL INDEX {} i_local ON t (a, b) INCLUDE (n)"),
    (
        "i_local_unique",
        "CREATE UNIQUE LOCAL INDEX {} i_local_unique ON t (u, id) WHERE n IS NOT NULL",
    ),
    ("i_local_tags", "CREATE LOCAL INDEX {} i_local_tags ON t USING gin (tags)"),
];

/// Errors of statements that conflict with other sessions.
const CONFLICTS: [&str; 3] = ["40001", "40P01", "23505"];

/// Errors of definitions that do not fit the state of an index; 22023: a region of one row,
/// which has no split point.
const STATES: [&str; 7] = ["55000", "55006", "42704", "42P01", "42P07", "0A000", "22023"];

fn session(engine: &Arc<Engine>) -> Session {
    let mut session = crashes::session(engine);
    assert_eq!(answer(&mut session, "SET lock_timeout = '60s'"), "ok\n");
    session
}

/// Executes a statement, which may fail with one of some errors.
fn execute(session: &mut Session, statement: &str, allowed: &[&[&str]]) {
    let said = answer(session, statement);
    let Some(at) = said.find("error ") else { return };
    let state = &said[at + 6..at + 11];
    let is_allowed = allowed.iter().any(|some| some.contains(&state));
    assert!(is_allowed, "{statement}: {said}");
}

fn write(random: &mut Random, own: u64) -> String {
    let id = random.from(0..KEYS);
    let (a, n) = (random.below(12), random.below(30));
    let text = ["'X'", "'x'", "''", "NULL", "'long ' || repeat('y', 200)"][random.below(5)];
    let tags = ["'{}'", "'{1,2}'", "'{2,NULL,7}'", "NULL"][random.below(4)];
    let json = [
        "'{\"k\": [1, \"two\"], \"m\": null}'",
        "'[]'",
        "'{\"k\": {\"k\": 1}}'",
        "NULL",
        "'\"scalar\"'",
    ][random.below(5)];
    // Most values of the unique column are the writer's own.
    let unique = if random.chance(90) { id * 10 + own as i64 } else { -id };
    let row = format!("({id}, {a}, {text}, nullif({n}, 7), {unique}, {tags}, {json})");
    let upsert = format!(
        "INSERT INTO t VALUES {row} ON CONFLICT (id) DO UPDATE
         SET a = excluded.a, b = excluded.b, n = excluded.n, tags = excluded.tags, x = excluded.x"
    );
    match random.below(10) {
        0..3 => upsert,
        3 => format!("UPDATE t SET a = a + 1, n = NULL WHERE id BETWEEN {id} AND {id} + 9"),
        4 => format!("DELETE FROM t WHERE id BETWEEN {id} AND {id} + 3"),
        5 => format!("UPDATE t SET tags = tags || {n}, x = {json} WHERE a = {a} AND id > {id}"),
        6 => format!(
            "BEGIN; {upsert}; SAVEPOINT s; DELETE FROM t WHERE id < 20; ROLLBACK TO s; COMMIT"
        ),
        7 => format!("BEGIN; UPDATE t SET b = {text} WHERE n = {n}; ROLLBACK"),
        8 => format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ; UPDATE t SET n = {n} WHERE id = {id}; {upsert}; COMMIT"
        ),
        _ => format!("UPSERT INTO t (id, a, tags) VALUES ({id}, {a}, {tags})"),
    }
}

fn define(random: &mut Random, indexes: &[(&str, &str)]) -> String {
    let (name, definition) = indexes[random.below(indexes.len())];
    let buckets = random.below(4);
    match random.below(18) {
        16 => format!(
            "ALTER INDEX i_eventual CONSISTENCY = {}",
            ["STRONG", "EVENTUAL"][random.below(2)]
        ),
        17 => format!("DROP INDEX i_eventual{}", ["", "_partial", "_tags"][random.below(3)]),
        0..3 => definition.replace("{}", "CONCURRENTLY"),
        3 => definition.replace("{}", ""),
        4 => definition.replace("{}", "") + " ASYNC",
        5 => format!("DROP INDEX {name}"),
        6 => format!("REINDEX INDEX CONCURRENTLY {name}"),
        7 => format!("ALTER INDEX {name} ON t REBUILD"),
        8 => format!("ALTER INDEX {name} ON t REBUILD ASYNC"),
        9 => format!("ALTER INDEX {name} ON t DISABLE"),
        10 => format!("ALTER INDEX {name} ON t UNUSABLE"),
        11 => format!("ALTER INDEX {name} ON t USABLE"),
        12 => format!("ALTER INDEX {name} SET (salt_buckets = {buckets})"),
        13 => format!("ALTER TABLE t SET (salt_buckets = {buckets})"),
        14 => format!("FLUSH t; ALTER {} SPLIT", ["TABLE t", "INDEX i_plain"][random.below(2)]),
        _ => ["FLUSH t", "COMPACT t", "MAJOR COMPACT t", "REINDEX TABLE t"][random.below(4)]
            .to_owned(),
    }
}

/// Asserts that CHECK TABLE finds no difference.
pub(crate) fn check(session: &mut Session) {
    let found = answer(session, "CHECK TABLE t");
    if found.contains("error 55000") {
        // An eventual index was lost, because its table has other salt buckets.
        return;
    }
    let is_difference = |line: &&str| line.contains('|');
    assert_eq!(found.lines().find(is_difference), None, "{found}");
    assert!(!found.contains("error "), "{found}");
}

/// Asserts that queries by each index find the rows that a scan finds.
fn compare_answers(engine: &Arc<Engine>) {
    for condition in [
        "a = 3",
        "b = 'x'",
        "lower(b) = 'x' AND a + 1 > 4",
        "n > 10 AND a > 5",
        "u BETWEEN 100 AND 900",
        "b = '' AND n IS NOT NULL",
        "a = 3 AND b = 'X'",
        "a = 3 AND id < 30",
        "n = 3",
        "upper(b) = 'X' AND a < 8",
        "tags @> '{2}'",
        "tags @> '{2}' AND id BETWEEN 10 AND 60",
        "x @> '{\"k\": [1]}'",
        "x @> '{\"k\": {\"k\": 1}}' AND a < 9",
        "x ? 'scalar'",
    ] {
        let by = |hint: &str| {
            let query = format!("SELECT {hint} id, a, n FROM t WHERE {condition} ORDER BY id");
            run(engine, &query).unwrap()
        };
        assert_eq!(by(""), by("/*+ NO_INDEX */"), "{condition}");
    }
}

/// Follows the commits until no index lacks one.
fn follow(engine: &Engine, session: &mut Session) {
    while engine.followers_are_behind() {
        session.follow_due().unwrap();
    }
}

/// Builds and hands over all indexes, and lets them catch up. An index whose table was rewritten is
/// found to be lost when it is followed, and is rebuilt.
pub(crate) fn settle(engine: &Arc<Engine>) {
    let mut session = session(engine);
    loop {
        follow(engine, &mut session);
        if !engine.has_handovers() && engine.due_builds().unwrap().is_empty() {
            return;
        }
        session.build_due().unwrap();
        session.hand_over_due().unwrap();
    }
}

fn round(env: &FaultEnv, random: &mut Random, indexes: &[(&str, &str)]) {
    let engine = open(env).unwrap();
    let (is_written, done) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let seeds: Vec<u64> = (0..WRITERS + 1).map(|_| random.next()).collect();
        let (engine, is_written, done) = (&engine, &is_written, &done);
        let until_done = |mut step: Box<dyn FnMut() + Send>| {
            scope.spawn(move || {
                while !done.load(Ordering::SeqCst) {
                    step();
                }
            });
        };
        let writers: Vec<_> = (0..WRITERS)
            .map(|own| {
                let mut random = Random(seeds[own as usize]);
                scope.spawn(move || {
                    let mut session = session(engine);
                    for _ in 0..STATEMENTS {
                        execute(&mut session, &write(&mut random, own), &[&CONFLICTS]);
                        // A failed message leaves its transaction block open.
                        let _ = answer(&mut session, "ROLLBACK");
                    }
                })
            })
            .collect();
        let (mut random, mut definer) = (Random(seeds[WRITERS as usize]), session(engine));
        until_done(Box::new(move || {
            execute(&mut definer, &define(&mut random, indexes), &[&CONFLICTS, &STATES]);
        }));
        let mut builder = session(engine);
        until_done(Box::new(move || {
            builder.build_due().unwrap();
            thread::yield_now();
        }));
        let mut follower = session(engine);
        until_done(Box::new(move || {
            // The store table of an index may have been dropped meanwhile.
            drop(follower.follow_due());
            thread::sleep(Duration::from_millis(1));
        }));
        let mut server = session(engine);
        until_done(Box::new(move || {
            server.hand_over_due().unwrap();
            thread::yield_now();
        }));
        let mut checker = session(engine);
        let checks = scope.spawn(move || {
            while !is_written.load(Ordering::SeqCst) {
                check(&mut checker);
            }
        });
        let panicked = writers.into_iter().filter_map(|writer| writer.join().err()).next();
        is_written.store(true, Ordering::SeqCst);
        // It waits for the follower.
        let panicked = panicked.or(checks.join().err());
        done.store(true, Ordering::SeqCst);
        if let Some(panic) = panicked {
            std::panic::resume_unwind(panic);
        }
    });
    settle(&engine);
    compare_answers(&engine);
}

#[test]
fn indexes_agree_with_table_beside_writers_and_crashes() {
    let first = number("BENNU_SEED").unwrap_or(1);
    for seed in first..first + ROUNDS.div_ceil(4) * number("BENNU_CASES").unwrap_or(1) {
        let mut random = Random(seed);
        let mut env = FaultEnv::new(seed);
        let storage = ["row", "cell"][random.below(2)];
        let engine = open(&env).unwrap();
        let create = format!(
            "CREATE TABLE t (id int PRIMARY KEY, a int, b text, n int, u bigint, tags int[], x jsonb)
             WITH (storage = '{storage}')"
        );
        run(&engine, &create).unwrap();
        let locals = &LOCAL_INDEXES[..if seed % 2 == 0 { 0 } else { LOCAL_INDEXES.len() }];
        let indexes = [&INDEXES[..], locals].concat();
        for (_, definition) in &indexes {
            run(&engine, &definition.replace("{}", "")).unwrap();
        }
        drop(engine);
        for _ in 0..ROUNDS {
            round(&env, &mut random, &indexes);
            let unsynced = [Unsynced::Lost, Unsynced::Kept][random.below(2)];
            env = env.after_crash(unsynced);
            let engine = open(&env).unwrap();
            let mut own = session(&engine);
            follow(&engine, &mut own);
            check(&mut own);
            settle(&engine);
            check(&mut own);
            compare_answers(&engine);
        }
    }
}
