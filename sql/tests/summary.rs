//! Property test of the coprocessor `summary` and of maintained views: they equal GROUP BY after
//! any history of inserts, updates, deletes, savepoints and rollbacks, within transactions and
//! after them, at times in the past, and with concurrent sessions.

use proptest::prelude::*;
use sql::EngineOptions;
use sql::session::Session;

use crate::server::{Server, rows};

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, g int, h text, v int, n numeric(12,2)) \
                     WITH (versions = 1000, keep_deleted_cells = true)";
const ATTACH: &str = "ALTER TABLE t ATTACH COPROCESSOR summary \
                      WITH (table = 's', group_by = 'g, h', sum = 'v, n')";
const KEPT: &str = "SELECT * FROM s ORDER BY g, h";
const COUNTED: &str = "SELECT g, h, count(*), count(v), sum(v), count(n), sum(n) FROM t \
                       GROUP BY g, h ORDER BY g, h";

const VIEW: &str = "CREATE MATERIALIZED VIEW m \
                    WITH (maintained = true, versions = 1000, keep_deleted_cells = true) AS ";
/// Query of the view, without its end.
const GROUPS: &str = "SELECT g, h, count(*) AS c, count(v) AS cv, sum(v) AS sv, avg(n) AS an, \
                      min(v) AS lo, max(n) AS hi, count(DISTINCT v % 4) AS d FROM t";
const GROUPS_END: &str = "WHERE v IS NULL OR v % 3 <> 0 GROUP BY g, h";
/// Query that can be answered from the view.
const ADDED: &str = "SELECT h, count(*), sum(v), min(v), max(n) FROM t \
                     WHERE (v IS NULL OR v % 3 <> 0) AND (g > 0 OR g IS NULL) GROUP BY h ORDER BY h";

/// Change of the table, or transaction statement.
#[derive(Debug, Clone)]
enum Step {
    Insert(i32, [Option<i32>; 4]),
    Upsert(i32, [Option<i32>; 4]),
    SetGroup(i32, i32, Option<i32>),
    Add(i32, i32),
    Delete(i32, i32),
    Begin,
    Savepoint,
    RollbackTo,
    Commit,
    Rollback,
    Compact,
    Split,
    Truncate,
    Refresh,
}

fn number(value: Option<i32>) -> String {
    value.map_or("NULL".to_owned(), |value| value.to_string())
}

fn values(id: i32, [g, h, v, n]: [Option<i32>; 4]) -> String {
    let h = h.map_or("NULL".to_owned(), |h| format!("'h{h}'"));
    format!("({id}, {}, {h}, {}, {})", number(g), number(v), number(n))
}

impl Step {
    fn sql(&self) -> String {
        match self {
            Step::Insert(id, row) => format!(
                "INSERT INTO t VALUES {}, {}",
                values(*id, *row),
                values(id + 100, [row[1], row[0], row[3], row[2]])
            ),
            Step::Upsert(id, row) => format!("UPSERT INTO t VALUES {}", values(*id, *row)),
            Step::SetGroup(from, to, group) => {
                format!("UPDATE t SET g = {} WHERE id BETWEEN {from} AND {to}", number(*group))
            }
            Step::Add(from, more) => {
                format!("UPDATE t SET v = v + {more}, n = n - {more}.25 WHERE id >= {from}")
            }
            Step::Delete(from, to) => format!("DELETE FROM t WHERE id BETWEEN {from} AND {to}"),
            Step::Begin => "BEGIN".to_owned(),
            Step::Savepoint => "SAVEPOINT p".to_owned(),
            Step::RollbackTo => "ROLLBACK TO p".to_owned(),
            Step::Commit => "COMMIT".to_owned(),
            Step::Rollback => "ROLLBACK".to_owned(),
            Step::Compact => {
                "FLUSH t; FLUSH s; MAJOR COMPACT s; FLUSH m; MAJOR COMPACT m".to_owned()
            }
            Step::Split => "ALTER TABLE t SPLIT; ALTER TABLE m SPLIT".to_owned(),
            Step::Truncate => "TRUNCATE t".to_owned(),
            Step::Refresh => "REFRESH MATERIALIZED VIEW m".to_owned(),
        }
    }
}

fn row() -> impl Strategy<Value = [Option<i32>; 4]> {
    let small = || proptest::option::weighted(0.8, 0..3);
    let value = || proptest::option::weighted(0.8, -1_000_000..1_000_000);
    (small(), small(), value(), value()).prop_map(|(g, h, v, n)| [g, h, v, n])
}

fn step() -> impl Strategy<Value = Step> {
    let id = || 0..30;
    prop_oneof![
        6 => (id(), row()).prop_map(|(id, row)| Step::Insert(id, row)),
        6 => (id(), row()).prop_map(|(id, row)| Step::Upsert(id, row)),
        4 => (id(), id(), proptest::option::weighted(0.8, 0..3))
            .prop_map(|(from, to, group)| Step::SetGroup(from, to, group)),
        3 => (id(), -500..500).prop_map(|(from, more)| Step::Add(from, more)),
        4 => (0..130, 0..130).prop_map(|(from, to)| Step::Delete(from, to)),
        3 => Just(Step::Begin),
        2 => Just(Step::Savepoint),
        2 => Just(Step::RollbackTo),
        2 => Just(Step::Commit),
        2 => Just(Step::Rollback),
        1 => Just(Step::Compact),
        1 => Just(Step::Split),
    ]
}

fn query(session: &mut Session, sql: &str) -> Vec<String> {
    let mut found = Vec::new();
    rows(session, sql, &mut |row| found.push(row)).unwrap_or_else(|error| panic!("{sql}: {error}"));
    found
}

/// Compares summary, view and GROUP BY, unless the transaction has failed.
fn check(session: &mut Session, after: &str) {
    use sql::session::TransactionStatus;
    if session.transaction_status() == TransactionStatus::Failed {
        return;
    }
    if query(session, "SELECT count(*) FROM pg_class WHERE relname = 's'") == ["1"] {
        assert_eq!(query(session, KEPT), query(session, COUNTED), "after {after}");
    }
    check_view(session, "", after);
    let answer = query(session, ADDED);
    let plan = query(session, &format!("EXPLAIN {ADDED}")).join("\n");
    assert!(plan.contains("in place of t"), "{plan}");
    query(session, "SET enable_maintained_views = off");
    assert_eq!(answer, query(session, ADDED), "after {after}");
    query(session, "SET enable_maintained_views = on");
}

/// Compares the view with its query at a time, and the query of the view with that of the table.
fn check_view(session: &mut Session, time: &str, after: &str) {
    query(session, "SET enable_maintained_views = off");
    let kept = query(session, &format!("SELECT * FROM m {time} ORDER BY g, h"));
    let counted = query(session, &format!("{GROUPS} {time} {GROUPS_END} ORDER BY g, h"));
    assert_eq!(kept, counted, "{time} after {after}");
    query(session, "SET enable_maintained_views = on");
}

/// Returns the clause of a read at this time, outside of transactions.
fn time_of_commit(session: &mut Session) -> Option<String> {
    use sql::session::TransactionStatus;
    if session.transaction_status() != TransactionStatus::Idle {
        return None;
    }
    let now = query(session, "SELECT clock_timestamp()::text");
    Some(format!("FOR SYSTEM_TIME AS OF '{}'", now[0]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn summary_table_matches_group_by(
        before in proptest::collection::vec(step(), 0..8),
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let mut server = Server::start(EngineOptions::default);
        let mut session = server.session();
        query(&mut session, TABLE);
        for step in &before {
            // Errors (duplicate keys, no transaction) are expected.
            let _ = rows(&mut session, &step.sql(), &mut |_| {});
        }
        let _ = rows(&mut session, "ROLLBACK", &mut |_| {});
        query(&mut session, ATTACH);
        query(&mut session, &format!("{VIEW} {GROUPS} {GROUPS_END}"));
        check(&mut session, "attach");
        let mut times = Vec::new();
        for step in &steps {
            let sql = step.sql();
            let _ = rows(&mut session, &sql, &mut |_| {});
            check(&mut session, &sql);
            times.extend(time_of_commit(&mut session));
        }
        let _ = rows(&mut session, "ROLLBACK", &mut |_| {});
        times.iter().for_each(|time| check_view(&mut session, time, "all of it"));
        drop(session);
        server.restart();
        check(&mut server.session(), "restart");
        times.iter().for_each(|time| check_view(&mut server.session(), time, "restart"));
    }

    #[test]
    fn maintained_view_matches_query_with_truncate_and_refresh(
        steps in proptest::collection::vec(
            prop_oneof![
                8 => step(),
                1 => Just(Step::Truncate),
                1 => Just(Step::Refresh),
            ],
            1..40,
        ),
    ) {
        let mut server = Server::start(EngineOptions::default);
        let mut session = server.session();
        query(&mut session, TABLE);
        query(&mut session, &format!("{VIEW} {GROUPS} {GROUPS_END}"));
        for step in &steps {
            let sql = step.sql();
            let _ = rows(&mut session, &sql, &mut |_| {});
            check(&mut session, &sql);
        }
        drop(session);
        server.restart();
        check(&mut server.session(), "restart");
    }
}

/// Linear congruential generator, sufficient to vary the sessions.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: i32) -> i32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % limit as u64) as i32
    }

    fn nullable(&mut self, limit: i32) -> Option<i32> {
        (self.below(5) > 0).then(|| self.below(limit))
    }

    fn row(&mut self) -> [Option<i32>; 4] {
        [self.nullable(3), self.nullable(2), self.nullable(1000), self.nullable(1000)]
    }

    fn step(&mut self) -> Step {
        let id = self.below(20);
        match self.below(5) {
            0 | 1 => Step::Upsert(id, self.row()),
            2 => Step::SetGroup(id, id + 3, self.nullable(3)),
            3 => Step::Add(id.max(15), self.below(100)),
            _ => Step::Delete(id, id + 1),
        }
    }
}

#[test]
fn maintained_view_is_filled_in_several_steps() {
    let mut server = Server::start(EngineOptions::default);
    let mut session = server.session();
    query(&mut session, TABLE);
    let insert = "INSERT INTO t SELECT i, i % 6000, NULL, i, i FROM generate_series(1, 18000) AS i";
    query(&mut session, insert);
    query(&mut session, &format!("{VIEW} {GROUPS} {GROUPS_END}"));
    check_view(&mut session, "", "creation");
    query(&mut session, "REFRESH MATERIALIZED VIEW m");
    check_view(&mut session, "", "refresh");
    drop(session);
    server.restart();
    check_view(&mut server.session(), "", "restart");
}

#[test]
fn summary_table_matches_group_by_after_concurrent_sessions() {
    const SESSIONS: u64 = 4;
    const TRANSACTIONS: usize = 60;
    let mut server = Server::start(EngineOptions::default);
    server.run("a", TABLE);
    assert!(server.run("a", ATTACH).starts_with("notice"));
    server.run("a", &format!("{VIEW} {GROUPS} {GROUPS_END}"));
    let committed: usize = std::thread::scope(|scope| {
        let sessions: Vec<_> = (1..=SESSIONS)
            .map(|seed| {
                let mut session = server.session();
                scope.spawn(move || {
                    let mut random = Random(seed);
                    (0..TRANSACTIONS).filter(|_| transaction(&mut session, &mut random)).count()
                })
            })
            .collect();
        sessions.into_iter().map(|session| session.join().unwrap()).sum()
    });
    // Deadlocks are expected, but most transactions must commit.
    assert!(committed * 2 > SESSIONS as usize * TRANSACTIONS, "{committed} were committed");
    check(&mut server.session(), "all of it");
    assert!(!query(&mut server.session(), KEPT).is_empty());
}

/// Executes a few steps and commits, or sometimes rolls back. Returns whether it committed.
fn transaction(session: &mut Session, random: &mut Random) -> bool {
    query(session, "BEGIN");
    for _ in 0..=random.below(4) {
        if let Err(error) = rows(session, &random.step().sql(), &mut |_| {}) {
            assert_eq!(error.sqlstate, "40P01", "{error}");
            query(session, "ROLLBACK");
            return false;
        }
    }
    let is_kept = random.below(5) > 0;
    query(session, if is_kept { "COMMIT" } else { "ROLLBACK" });
    // Also within the transaction: a statement reads both tables in one snapshot.
    let differing = "SELECT count(*) FROM s JOIN \
                     (SELECT g, h, count(*) AS c, sum(v) AS v FROM t GROUP BY g, h) AS x \
                     ON s.g = x.g AND s.h = x.h WHERE s.row_count <> x.c OR s.v_sum <> x.v";
    assert_eq!(query(session, differing), ["0"]);
    is_kept
}
