//! All interleavings of the steps of some sessions.
//!
//! The scenarios are the known anomalies of snapshot isolation (write skew, the receipt report of
//! Fekete, O'Neil and O'Neil, phantoms and so on). A session whose step fails is rolled back. The
//! outcome must equal that of some serial order of the committed sessions: the same rows in each
//! of their steps, and the same tables at the end.

use std::collections::HashMap;

use tokio_postgres::Client;

use crate::harness::{TestServer, connect};
use crate::serializable::run;

/// A scenario: sessions and their initial state.
struct InterleavingScenario {
    /// Creates the tables.
    schema: &'static str,
    /// Fills the tables before each order.
    fill: &'static str,
    /// The steps of each session, between BEGIN and COMMIT.
    sessions: &'static [&'static [&'static str]],
    /// Reads the tables at the end.
    end: &'static str,
}

/// Outcome of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    /// The rows of each step of a session; `None` if it did not commit.
    sessions: Vec<Option<Vec<Vec<String>>>>,
    end: Vec<String>,
}

/// Number of interleavings, and of sessions that did not commit in them.
#[derive(Debug, Default)]
struct Count {
    orders: usize,
    aborted: usize,
}

struct ScenarioRun<'a> {
    story: &'a InterleavingScenario,
    admin: Client,
    clients: Vec<Client>,
    serial: HashMap<Vec<usize>, Outcome>,
}

impl ScenarioRun<'_> {
    async fn begin(&self) {
        run(&self.admin, self.story.fill).await.unwrap();
        for client in &self.clients {
            run(client, "BEGIN ISOLATION LEVEL SERIALIZABLE").await.unwrap();
        }
    }

    async fn end(&self) -> Vec<String> {
        for client in &self.clients {
            run(client, "ROLLBACK").await.unwrap();
        }
        run(&self.admin, self.story.end).await.unwrap()
    }

    /// Runs the steps in an order of sessions; each session commits after its last step.
    async fn play(&self, order: &[usize]) -> Outcome {
        self.begin().await;
        let count = self.clients.len();
        let (mut sessions, mut next) = (vec![Some(Vec::new()); count], vec![0; count]);
        for &session in order {
            let steps = self.story.sessions[session];
            let step = steps.get(next[session]).copied().unwrap_or("COMMIT");
            next[session] += 1;
            let Some(seen) = &mut sessions[session] else { continue };
            match run(&self.clients[session], step).await {
                Ok(mut rows) => {
                    rows.sort();
                    seen.push(rows);
                }
                Err(code) => {
                    let expected = ["40001", "40P01", "55P03", "23505", "23503"];
                    assert!(expected.contains(&&*code), "{step}: {code}");
                    sessions[session] = None;
                    // Sessions that wait for it continue.
                    run(&self.clients[session], "ROLLBACK").await.unwrap();
                    run(&self.clients[session], "BEGIN").await.unwrap();
                }
            }
        }
        Outcome { sessions, end: self.end().await }
    }

    /// Returns the outcome of some sessions in serial execution.
    async fn serially(&mut self, sessions: &[usize]) -> Outcome {
        if let Some(known) = self.serial.get(sessions) {
            return known.clone();
        }
        let steps = |&session: &usize| vec![session; self.story.sessions[session].len() + 1];
        let order: Vec<usize> = sessions.iter().flat_map(steps).collect();
        let mut outcome = self.play(&order).await;
        for (session, seen) in outcome.sessions.iter_mut().enumerate() {
            assert!(!sessions.contains(&session) || seen.is_some(), "a serial order {sessions:?}");
            if !sessions.contains(&session) {
                *seen = None;
            }
        }
        self.serial.insert(sessions.to_vec(), outcome.clone());
        outcome
    }
}

/// Runs all interleavings of a scenario, or every `stride`th.
async fn play_all(story: &InterleavingScenario, stride: usize) -> Count {
    let server = TestServer::start();
    let admin = connect(server.address()).await;
    run(&admin, story.schema).await.unwrap();
    let mut clients = Vec::new();
    for _ in story.sessions {
        let client = connect(server.address()).await;
        // A lock is held by a session whose next step is later in the order, so waiting is
        // useless.
        run(&client, "SET lock_timeout = '20ms'").await.unwrap();
        clients.push(client);
    }
    for client in clients.iter().chain([&admin]) {
        run(client, "SET synchronous_commit = off").await.unwrap();
    }
    let mut stage = ScenarioRun { story, admin, clients, serial: HashMap::new() };
    let lengths: Vec<usize> = story.sessions.iter().map(|steps| steps.len() + 1).collect();
    let mut count = Count::default();
    for order in interleavings(&lengths).into_iter().step_by(stride) {
        let outcome = stage.play(&order).await;
        let committed: Vec<usize> =
            (0..lengths.len()).filter(|at| outcome.sessions[*at].is_some()).collect();
        count.orders += 1;
        count.aborted += lengths.len() - committed.len();
        let mut explained = false;
        for serial in permutations(&committed) {
            explained |= stage.serially(&serial).await == outcome;
        }
        assert!(explained, "no serial order of {committed:?} explains {order:?}: {outcome:#?}");
    }
    count
}

/// Returns all interleavings of sessions with these numbers of steps.
fn interleavings(lengths: &[usize]) -> Vec<Vec<usize>> {
    if lengths.iter().all(|length| *length == 0) {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for session in (0..lengths.len()).filter(|session| lengths[*session] > 0) {
        let mut rest = lengths.to_vec();
        rest[session] -= 1;
        for mut order in interleavings(&rest) {
            order.insert(0, session);
            all.push(order);
        }
    }
    all
}

fn permutations(of: &[usize]) -> Vec<Vec<usize>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for first in of {
        let rest: Vec<usize> = of.iter().copied().filter(|other| other != first).collect();
        for mut order in permutations(&rest) {
            order.insert(0, *first);
            all.push(order);
        }
    }
    all
}

/// Runs a scenario and prints the counts.
async fn run_and_report(name: &str, story: InterleavingScenario, stride: usize) -> Count {
    let all = std::env::var_os("BENNU_SERIALIZABLE_ORDERS").is_some();
    let count = play_all(&story, if all { 1 } else { stride }).await;
    println!("{name}: {count:?}");
    count
}

#[tokio::test]
async fn write_skew_of_rows_read_by_key() {
    let story = InterleavingScenario {
        schema: "CREATE TABLE doctor (name text PRIMARY KEY, on_call bool)",
        fill: "DELETE FROM doctor; INSERT INTO doctor VALUES ('ann', true), ('bob', true)",
        sessions: &[
            &[
                "SELECT on_call FROM doctor WHERE name = 'bob'",
                "UPDATE doctor SET on_call = false WHERE name = 'ann'",
            ],
            &[
                "SELECT on_call FROM doctor WHERE name = 'ann'",
                "UPDATE doctor SET on_call = false WHERE name = 'bob'",
            ],
        ],
        end: "SELECT * FROM doctor ORDER BY name",
    };
    let count = run_and_report("rows by key", story, 1).await;
    // One of the two aborts where they overlap in both directions; none in serial orders.
    assert!(count.orders == 20 && (1..=18).contains(&count.aborted), "{count:?}");
}

#[tokio::test]
async fn write_skew_of_scan() {
    let story = InterleavingScenario {
        schema: "CREATE TABLE dot (id int PRIMARY KEY, color text)",
        fill: "DELETE FROM dot; INSERT INTO dot SELECT i, CASE i % 2 WHEN 0 THEN 'white' ELSE \
               'black' END FROM generate_series(1, 6) i",
        sessions: &[
            &["UPDATE dot SET color = 'black' WHERE color = 'white'"],
            &["UPDATE dot SET color = 'white' WHERE color = 'black'"],
        ],
        end: "SELECT * FROM dot ORDER BY id",
    };
    let count = run_and_report("scan", story, 1).await;
    assert_eq!((count.orders, count.aborted), (6, 4));
}

#[tokio::test]
async fn write_skew_of_aggregates() {
    let story = InterleavingScenario {
        schema: "CREATE TABLE account (id int PRIMARY KEY, kind text, balance int)",
        fill: "DELETE FROM account; INSERT INTO account VALUES (1, 'saving', 500), (2, 'checking', 500)",
        sessions: &[
            &[
                "SELECT sum(balance) FROM account",
                "UPDATE account SET balance = balance - 700 WHERE id = 1",
            ],
            &[
                "SELECT sum(balance), count(*) FROM account",
                "UPDATE account SET balance = balance - 700 WHERE id = 2",
            ],
        ],
        end: "SELECT * FROM account ORDER BY id",
    };
    let count = run_and_report("sum", story, 1).await;
    assert!(count.aborted > 0, "{count:?}");
}

#[tokio::test]
async fn phantoms_found_by_index_count() {
    let story = InterleavingScenario {
        schema: "CREATE TABLE task (id int PRIMARY KEY, person int, hours int); \
                 CREATE INDEX task_person ON task (person)",
        fill: "DELETE FROM task; INSERT INTO task VALUES (1, 1, 3), (2, 1, 4), (3, 2, 5)",
        sessions: &[
            &["SELECT count(*) FROM task WHERE person = 1", "INSERT INTO task VALUES (11, 1, 1)"],
            &["SELECT sum(hours) FROM task WHERE person = 1", "INSERT INTO task VALUES (12, 1, 1)"],
            &["SELECT id FROM task WHERE person = 2", "DELETE FROM task WHERE id = 3"],
        ],
        end: "SELECT * FROM task ORDER BY id",
    };
    let count = run_and_report("phantoms by index", story, 16).await;
    assert!(count.aborted > 0, "{count:?}");
}

#[tokio::test]
async fn absent_rows_read_by_key() {
    let story = InterleavingScenario {
        schema: "CREATE TABLE seat (id int PRIMARY KEY, owner text)",
        fill: "DELETE FROM seat",
        sessions: &[
            &["SELECT * FROM seat WHERE id = 1", "INSERT INTO seat VALUES (2, 'one')"],
            &["SELECT * FROM seat WHERE id = 2", "INSERT INTO seat VALUES (1, 'two')"],
        ],
        end: "SELECT * FROM seat ORDER BY id",
    };
    let count = run_and_report("absent rows", story, 1).await;
    assert!((1..=18).contains(&count.aborted), "{count:?}");
}

#[tokio::test]
async fn read_only_anomaly_of_batch_report() {
    // Only the reader makes it an anomaly: without it the other two have a serial order.
    let story = InterleavingScenario {
        schema: "CREATE TABLE control (id int PRIMARY KEY, batch int); \
                 CREATE TABLE receipt (no int PRIMARY KEY, batch int)",
        fill: "DELETE FROM receipt; DELETE FROM control; INSERT INTO control VALUES (1, 1)",
        sessions: &[
            &["INSERT INTO receipt SELECT 1, batch FROM control WHERE id = 1 RETURNING batch"],
            &["UPDATE control SET batch = 2 WHERE id = 1"],
            &["SELECT batch FROM control WHERE id = 1", "SELECT * FROM receipt WHERE batch = 1"],
        ],
        end: "SELECT batch, no FROM receipt UNION ALL SELECT batch, NULL FROM control",
    };
    let count = run_and_report("receipt report", story, 1).await;
    // Few of 210 orders are anomalies: writer, closer and reader overlap, and the closer commits
    // first.
    assert!(count.orders == 210 && (1..=20).contains(&count.aborted), "{count:?}");
}

#[tokio::test]
async fn read_only_anomaly_between_accounts() {
    let story = InterleavingScenario {
        schema: "CREATE TABLE account (id text PRIMARY KEY, balance int)",
        fill: "DELETE FROM account; INSERT INTO account VALUES ('x', 0), ('y', 0)",
        sessions: &[
            &[
                "SELECT balance FROM account ORDER BY id",
                "UPDATE account SET balance = -11 WHERE id = 'x'",
            ],
            &["UPDATE account SET balance = 20 WHERE id = 'y'"],
            &["SELECT id, balance FROM account WHERE id IN ('x', 'y')"],
        ],
        end: "SELECT * FROM account ORDER BY id",
    };
    let count = run_and_report("read-only anomaly", story, 2).await;
    assert!(count.aborted > 0, "{count:?}");
}

#[tokio::test]
async fn temporal_range_constraint() {
    let story = InterleavingScenario {
        schema: "CREATE TABLE statute (id int PRIMARY KEY, title text, valid_from date, valid_to date); \
                 CREATE TABLE offence (no int PRIMARY KEY, statute int, day date)",
        fill: "DELETE FROM offence; DELETE FROM statute; \
               INSERT INTO statute VALUES (1, 'speeding', '2000-01-01', NULL)",
        sessions: &[
            &[
                "SELECT count(*) FROM statute WHERE id = 1 AND valid_from <= '2009-05-15' AND \
                 (valid_to IS NULL OR valid_to > '2009-05-15')",
                "INSERT INTO offence VALUES (1, 1, '2009-05-15')",
            ],
            &[
                "SELECT count(*) FROM offence WHERE statute = 1 AND day >= '2008-01-01'",
                "DELETE FROM statute WHERE id = 1",
            ],
        ],
        end: "SELECT 'statute', id FROM statute UNION ALL SELECT 'offence', no FROM offence",
    };
    let count = run_and_report("temporal ranges", story, 1).await;
    assert!((1..=18).contains(&count.aborted), "{count:?}");
}

#[tokio::test]
async fn project_manager_constraint() {
    let story = InterleavingScenario {
        schema: "CREATE TABLE person (id int PRIMARY KEY, name text, manages bool); \
                 CREATE TABLE project (id int PRIMARY KEY, manager int)",
        fill: "DELETE FROM project; DELETE FROM person; INSERT INTO person VALUES (1, 'ann', true)",
        sessions: &[
            &[
                "SELECT count(*) FROM person WHERE id = 1 AND manages",
                "INSERT INTO project VALUES (101, 1)",
            ],
            &[
                "SELECT count(*) FROM project WHERE manager = 1",
                "UPDATE person SET manages = false WHERE id = 1",
            ],
        ],
        end: "SELECT p.id, q.id, manages FROM person p LEFT JOIN project q ON q.manager = p.id",
    };
    let count = run_and_report("project manager", story, 1).await;
    assert!((1..=18).contains(&count.aborted), "{count:?}");
}

#[tokio::test]
async fn room_booking_overlap() {
    let story = InterleavingScenario {
        schema: "CREATE TABLE room (id text, starts int, ends int, title text, PRIMARY KEY (id, starts))",
        fill: "DELETE FROM room; INSERT INTO room VALUES ('101', 13, 14, 'Bob')",
        sessions: &[
            &[
                "SELECT count(*) FROM room WHERE id = '101' AND starts < 13 AND ends > 12",
                "UPDATE room SET starts = 12, ends = 13 WHERE id = '101' AND starts = 13",
            ],
            &[
                "SELECT count(*) FROM room WHERE id = '101' AND starts < 13 AND ends > 12",
                "INSERT INTO room VALUES ('101', 11, 13, 'Carol')",
            ],
        ],
        end: "SELECT * FROM room ORDER BY starts",
    };
    let count = run_and_report("classroom scheduling", story, 1).await;
    assert!((1..=18).contains(&count.aborted), "{count:?}");
}

#[tokio::test]
async fn write_skew_of_joins() {
    let story = InterleavingScenario {
        schema: "CREATE TABLE a (id int PRIMARY KEY, v int); CREATE TABLE b (id int PRIMARY KEY, v int)",
        fill: "DELETE FROM a; DELETE FROM b; INSERT INTO a VALUES (1, 1), (2, 2); \
               INSERT INTO b VALUES (1, 1), (2, 2)",
        sessions: &[
            &[
                "SELECT a.v, b.v FROM a JOIN b ON a.id = b.id WHERE a.id = 1",
                "UPDATE a SET v = 10 WHERE id = 2",
            ],
            &[
                "SELECT a.v, b.v FROM a LEFT JOIN b ON a.v = b.v",
                "UPDATE b SET v = 20 WHERE id = 1",
            ],
        ],
        end: "SELECT * FROM a UNION ALL SELECT * FROM b",
    };
    let count = run_and_report("joins", story, 1).await;
    assert!((1..=18).contains(&count.aborted), "{count:?}");
}

#[tokio::test]
async fn application_checked_references() {
    let story = InterleavingScenario {
        schema: "CREATE TABLE parent (id int PRIMARY KEY); \
                 CREATE TABLE child (id int PRIMARY KEY, parent int)",
        fill: "DELETE FROM child; DELETE FROM parent; INSERT INTO parent VALUES (1)",
        sessions: &[
            &["SELECT 1 FROM parent WHERE id = 1", "INSERT INTO child VALUES (1, 1)"],
            &["SELECT 1 FROM child WHERE parent = 1", "DELETE FROM parent WHERE id = 1"],
            &["SELECT count(*) FROM parent", "SELECT count(*) FROM child"],
        ],
        end: "SELECT 'parent', id FROM parent UNION ALL SELECT 'child', id FROM child",
    };
    let count = run_and_report("referential integrity", story, 16).await;
    assert!(count.aborted > 0, "{count:?}");
}

#[tokio::test]
async fn conflict_on_older_row_version() {
    let story = InterleavingScenario {
        schema: "CREATE TABLE t (id int PRIMARY KEY, v text)",
        fill: "DELETE FROM t; INSERT INTO t SELECT i, 'x' FROM generate_series(1, 4) i",
        sessions: &[
            &["SELECT v FROM t WHERE id = 1", "UPDATE t SET v = 'one' WHERE id = 4"],
            &["UPDATE t SET v = 'two' WHERE id = 1"],
            &[
                "UPDATE t SET v = v || 'three' WHERE id = 1",
                "UPDATE t SET v = 'three' WHERE id = 2",
            ],
            &["SELECT v FROM t WHERE id = 2", "SELECT v FROM t WHERE id = 4"],
        ],
        end: "SELECT * FROM t ORDER BY id",
    };
    let count = run_and_report("several versions", story, 1001).await;
    assert!(count.orders > 20, "{count:?}");
}

#[tokio::test]
async fn write_skew_of_index_only_scans() {
    let story = InterleavingScenario {
        schema: "CREATE TABLE tablea (id int PRIMARY KEY, n int); CREATE INDEX a_n ON tablea (n); \
                 CREATE TABLE tableb (id int PRIMARY KEY, n int); CREATE INDEX b_n ON tableb (n)",
        fill: "DELETE FROM tablea; DELETE FROM tableb; \
               INSERT INTO tablea SELECT i, i FROM generate_series(1, 50) i; \
               INSERT INTO tableb SELECT i, i FROM generate_series(1, 50) i",
        sessions: &[
            &["SELECT n FROM tablea WHERE n BETWEEN 10 AND 20", "DELETE FROM tableb WHERE n = 25"],
            &["SELECT n FROM tableb WHERE n BETWEEN 20 AND 30", "DELETE FROM tablea WHERE n = 15"],
        ],
        end: "SELECT count(*), sum(n) FROM tablea UNION ALL SELECT count(*), sum(n) FROM tableb",
    };
    let count = run_and_report("index only", story, 1).await;
    assert!((1..=18).contains(&count.aborted), "{count:?}");
}

#[tokio::test]
async fn disjoint_ranges_do_not_abort() {
    let story = InterleavingScenario {
        schema: "CREATE TABLE t (id int PRIMARY KEY, n int); CREATE INDEX t_n ON t (n)",
        fill: "DELETE FROM t; INSERT INTO t SELECT i, i FROM generate_series(1, 60) i",
        sessions: &[
            &[
                "SELECT sum(n) FROM t WHERE id BETWEEN 1 AND 20",
                "UPDATE t SET n = n + 100 WHERE id = 5",
            ],
            &[
                "SELECT sum(n) FROM t WHERE id BETWEEN 21 AND 40",
                "UPDATE t SET n = n + 100 WHERE id = 25",
            ],
        ],
        end: "SELECT sum(n) FROM t",
    };
    let count = run_and_report("ranges apart", story, 1).await;
    assert_eq!((count.orders, count.aborted), (20, 0));
}

#[tokio::test]
async fn unique_keys_checked_before_insert() {
    let story = InterleavingScenario {
        schema: "CREATE TABLE invoice (year int, no int, PRIMARY KEY (year, no)); \
                 CREATE TABLE note (id int PRIMARY KEY, mail text UNIQUE)",
        fill: "DELETE FROM invoice; DELETE FROM note; INSERT INTO invoice VALUES (2016, 1), (2016, 2)",
        sessions: &[
            &[
                "SELECT coalesce(max(no) + 1, 1) FROM invoice WHERE year = 2016",
                "INSERT INTO invoice VALUES (2016, 3)",
                "INSERT INTO note VALUES (1, 'a')",
            ],
            &[
                "SELECT id FROM note WHERE mail = 'a'",
                "INSERT INTO note VALUES (2, 'b')",
                "INSERT INTO invoice VALUES (2016, 4)",
            ],
        ],
        end: "SELECT year::text, no::text FROM invoice UNION ALL SELECT mail, id::text FROM note",
    };
    let count = run_and_report("unique keys", story, 1).await;
    assert!(count.aborted > 0, "{count:?}");
}

#[tokio::test]
async fn insert_of_key_read_as_absent_is_serialization_failure() {
    let server = TestServer::start();
    let [one, two] = [connect(server.address()).await, connect(server.address()).await];
    run(&one, "CREATE TABLE t (id int PRIMARY KEY, mail text UNIQUE)").await.unwrap();
    for (looks, inserts, code) in [
        ("SELECT * FROM t WHERE id = 1", "INSERT INTO t VALUES (1, 'x')", "40001"),
        ("SELECT * FROM t WHERE mail = 'a'", "INSERT INTO t VALUES (2, 'a')", "40001"),
        ("SELECT 1", "INSERT INTO t VALUES (1, 'x')", "23505"),
        ("SELECT count(*) FROM t WHERE id > 5", "INSERT INTO t VALUES (2, 'a')", "23505"),
    ] {
        run(&one, "DELETE FROM t").await.unwrap();
        for client in [&one, &two] {
            run(client, "BEGIN ISOLATION LEVEL SERIALIZABLE").await.unwrap();
            run(client, looks).await.unwrap();
        }
        run(&one, "INSERT INTO t VALUES (1, 'a')").await.unwrap();
        run(&one, "COMMIT").await.unwrap();
        assert_eq!(run(&two, inserts).await, Err(code.to_owned()), "{looks}; {inserts}");
        run(&two, "ROLLBACK").await.unwrap();
    }
}

#[tokio::test]
async fn reads_in_rolled_back_savepoint_are_tracked() {
    let server = TestServer::start();
    let [one, two] = [connect(server.address()).await, connect(server.address()).await];
    run(&one, "CREATE TABLE t (id int PRIMARY KEY, v int)").await.unwrap();
    run(&one, "INSERT INTO t VALUES (1, 0), (2, 0)").await.unwrap();
    for client in [&one, &two] {
        run(client, "BEGIN ISOLATION LEVEL SERIALIZABLE").await.unwrap();
    }
    run(&one, "SAVEPOINT s; SELECT v FROM t WHERE id = 1; UPDATE t SET v = 9 WHERE id = 1")
        .await
        .unwrap();
    run(&one, "ROLLBACK TO s; UPDATE t SET v = 1 WHERE id = 2").await.unwrap();
    run(&two, "SELECT v FROM t WHERE id = 2").await.unwrap();
    run(&two, "UPDATE t SET v = 1 WHERE id = 1").await.unwrap();
    run(&two, "COMMIT").await.unwrap();
    assert_eq!(run(&one, "COMMIT").await, Err("40001".to_owned()));
}

#[tokio::test]
async fn weaker_isolation_levels_are_not_tracked() {
    let server = TestServer::start();
    let [one, two] = [connect(server.address()).await, connect(server.address()).await];
    run(&one, "CREATE TABLE t (id int PRIMARY KEY, v int)").await.unwrap();
    run(&one, "INSERT INTO t VALUES (1, 0), (2, 0)").await.unwrap();
    run(&one, "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT * FROM t").await.unwrap();
    run(&two, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM t").await.unwrap();
    run(&one, "UPDATE t SET v = 1 WHERE id = 1; COMMIT").await.unwrap();
    run(&two, "UPDATE t SET v = 1 WHERE id = 2; COMMIT").await.unwrap();
}
