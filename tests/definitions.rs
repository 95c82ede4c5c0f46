//! Random concurrent DDL in transactions with savepoints and rollbacks, with kill -9 in between:
//! the catalog must have exactly the committed definitions.
//!
//! Each definition records its effect in a table, in the same transaction. After each kill the
//! catalog and that table must agree, acknowledged transactions must be present, and all objects
//! must be usable. A debug build checks the whole catalog whenever one is published.
//!
//! `BENNU_DEFINITIONS=600` runs for this number of seconds.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio_postgres::{Client, NoTls};

use crate::harness::{Process, connect, connection_string};

const ROUNDS: u64 = 3;
const CLIENTS: u64 = 6;
/// Transactions that are acknowledged in a round before the server is killed.
const ACKNOWLEDGED_PER_ROUND: u64 = 60;
/// Names of each kind; few, so that sessions conflict.
const NAMES: u64 = 5;

const SETUP: &str = "\
CREATE SCHEMA model;
CREATE TABLE model.object (kind text, name text, parent text, columns bigint,
    PRIMARY KEY (kind, name));
CREATE TABLE model.done (id text PRIMARY KEY)";

/// Expected errors of definitions: duplicate or missing names, dependents, deadlocks.
const EXPECTED: [&str; 11] = [
    "42P07", "42710", "42P01", "42704", "3F000", "42P06", "2BP01", "40P01", "42883", "42723",
    "42701",
];

/// Seeded random number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Returns a definition, and its change of the model.
#[expect(clippy::too_many_lines, reason = "a list")]
fn definition(random: &mut Random) -> (String, String) {
    let place = ["public", "public", "public", "s_0", "s_1"][random.below(5) as usize];
    let mut one = |letter: &str| format!("{letter}_{}", random.below(NAMES));
    let (table, other, column) = (one("t"), one("t"), one("c"));
    let (view, kind, function) = (one("v"), one("e"), one("f"));
    let (index, sequence, schema) = (one("i"), one("q"), format!("s_{}", random.below(2)));
    let full = format!("{place}.{table}");
    let create = |kind: &str, name: &str, parent: &str, columns: u64| {
        format!("INSERT INTO model.object VALUES ('{kind}', '{name}', '{parent}', {columns})")
    };
    let drop = |kind: &str, name: &str| {
        format!("DELETE FROM model.object WHERE kind = '{kind}' AND name = '{name}'")
    };
    match random.below(20) {
        0..=3 => {
            (format!("CREATE TABLE {full} (id serial PRIMARY KEY)"), create("r", &full, place, 1))
        }
        4 => (
            format!("CREATE TABLE {full} (id serial PRIMARY KEY, a int REFERENCES public.{other})"),
            create("r", &full, place, 2),
        ),
        5 => (
            format!(
                "CREATE TABLE {full} (id serial PRIMARY KEY, a public.{kind}, \
                     CHECK (public.{function}(id) > 0))"
            ),
            create("r", &full, place, 2),
        ),
        6 => (
            format!("ALTER TABLE {full} ADD COLUMN {column} int"),
            format!(
                "UPDATE model.object SET columns = columns + 1 \
                     WHERE kind = 'r' AND name = '{full}'"
            ),
        ),
        7 | 8 => (
            format!("DROP TABLE {full}"),
            format!("{}; DELETE FROM model.object WHERE parent = '{full}'", drop("r", &full)),
        ),
        9 => (
            format!("ALTER TABLE {full} RENAME TO {other}"),
            format!(
                "UPDATE model.object SET parent = '{place}.{other}' WHERE parent = '{full}'; \
                     UPDATE model.object SET name = '{place}.{other}' \
                     WHERE kind = 'r' AND name = '{full}'"
            ),
        ),
        10 => (
            format!("CREATE INDEX {index} ON {full} (id)"),
            create("i", &format!("{place}.{index}"), &full, 1),
        ),
        11 => (format!("DROP INDEX {place}.{index}"), drop("i", &format!("{place}.{index}"))),
        12 => (
            format!("CREATE VIEW public.{view} AS SELECT id FROM {full}"),
            create("v", &format!("public.{view}"), "public", 1),
        ),
        13 => (format!("DROP VIEW public.{view}"), drop("v", &format!("public.{view}"))),
        14 => (
            format!("CREATE TYPE public.{kind} AS ENUM ('x')"),
            create("e", &format!("public.{kind}"), "public", 0),
        ),
        15 => (format!("DROP TYPE public.{kind}"), drop("e", &format!("public.{kind}"))),
        16 => (
            format!(
                "CREATE FUNCTION public.{function}(int) RETURNS int IMMUTABLE LANGUAGE sql \
                     AS 'SELECT $1'"
            ),
            create("f", &format!("public.{function}"), "public", 0),
        ),
        17 => (
            format!("DROP FUNCTION public.{function}(int)"),
            drop("f", &format!("public.{function}")),
        ),
        18 => match random.below(3) {
            0 => (format!("CREATE SCHEMA {schema}"), create("n", &schema, "", 0)),
            1 => (format!("DROP SCHEMA {schema}"), drop("n", &schema)),
            _ => (format!("COMMENT ON TABLE {full} IS 'text'"), "SELECT 1".to_owned()),
        },
        _ => match random.below(2) {
            0 => (
                format!("CREATE SEQUENCE {place}.{sequence}"),
                create("S", &format!("{place}.{sequence}"), place, 0),
            ),
            _ => (
                format!("DROP SEQUENCE {place}.{sequence}"),
                drop("S", &format!("{place}.{sequence}")),
            ),
        },
    }
}

/// Outcome of a transaction.
enum Outcome {
    Acknowledged,
    RolledBack,
    /// The connection broke.
    Broken,
}

/// Runs one statement; returns `None` for an expected error.
async fn run(client: &Client, sql: &str) -> Result<Option<()>, Outcome> {
    match client.batch_execute(sql).await {
        Ok(()) => Ok(Some(())),
        Err(error) => match error.as_db_error() {
            None => Err(Outcome::Broken),
            Some(error) => {
                let code = error.code().code();
                assert!(EXPECTED.contains(&code), "{sql}: {code} {}", error.message());
                Ok(None)
            }
        },
    }
}

async fn transaction(client: &Client, random: &mut Random, id: &str) -> Result<Outcome, Outcome> {
    run(client, "BEGIN").await?;
    let mut has_temporary = false;
    for _ in 0..1 + random.below(5) {
        run(client, "SAVEPOINT one").await?;
        let (sql, model) = definition(random);
        let mut done = run(client, &sql).await?;
        if done.is_some() {
            done = run(client, &model).await?;
        }
        if done.is_none() || random.below(6) == 0 {
            run(client, "ROLLBACK TO one").await?;
        }
        if !has_temporary && random.below(4) == 0 {
            has_temporary = true;
            run(client, "CREATE TEMP TABLE own (id int PRIMARY KEY) ON COMMIT DROP").await?;
            run(client, "INSERT INTO own VALUES (1)").await?;
        }
    }
    if random.below(4) == 0 {
        run(client, "ROLLBACK").await?;
        return Ok(Outcome::RolledBack);
    }
    run(client, &format!("INSERT INTO model.done VALUES ('{id}')")).await?;
    run(client, "COMMIT").await?;
    Ok(Outcome::Acknowledged)
}

/// State shared by the clients of a round.
#[derive(Default)]
struct Round {
    acknowledged: AtomicU64,
    enough: Notify,
    killed: AtomicBool,
}

/// Runs transactions until the connection breaks; returns the acknowledged ones.
async fn define(address: SocketAddr, seed: u64, name: String, round: Arc<Round>) -> Vec<String> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut acknowledged = Vec::new();
    let connected = tokio_postgres::connect(&connection_string(address), NoTls).await;
    let Ok((client, connection)) = connected else { return acknowledged };
    tokio::spawn(connection);
    for number in 0.. {
        let id = format!("{name}/{number}");
        match transaction(&client, &mut random, &id).await {
            Ok(Outcome::Acknowledged) => {
                acknowledged.push(id);
                if round.acknowledged.fetch_add(1, Ordering::Relaxed) + 1 >= ACKNOWLEDGED_PER_ROUND
                {
                    round.enough.notify_one();
                }
            }
            Ok(_) => {}
            Err(_) => {
                let killed = round.killed.load(Ordering::SeqCst);
                assert!(killed, "{name}: the connection broke before the server was killed");
                break;
            }
        }
    }
    acknowledged
}

async fn lines(client: &Client, sql: &str) -> BTreeSet<String> {
    let rows = client.query(sql, &[]).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    rows.iter().map(|row| row.get(0)).collect()
}

/// Compares the catalog with the model, and uses all objects.
async fn check(client: &Client, acknowledged: &BTreeSet<String>) {
    let done = lines(client, "SELECT id FROM model.done").await;
    let lost: Vec<&String> = acknowledged.difference(&done).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    let model = "SELECT kind || ' ' || name || ' ' || columns FROM model.object";
    let catalog = "\
        SELECT c.relkind::text || ' ' || n.nspname || '.' || c.relname || ' ' || CASE c.relkind
                WHEN 'S' THEN 0 ELSE (SELECT count(*) FROM pg_attribute a
                    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) END
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname IN ('public', 's_0', 's_1') AND c.relkind <> 'c'
                AND c.relname ~ '^[a-z]_[0-9]$'
        UNION ALL SELECT 'e public.' || typname || ' 0' FROM pg_type WHERE typtype = 'e'
        UNION ALL SELECT 'f public.' || proname || ' 0' FROM pg_proc WHERE proname ~ '^f_[0-9]$'
        UNION ALL SELECT 'n ' || nspname || ' 0' FROM pg_namespace WHERE nspname ~ '^s_[0-9]$'";
    assert_eq!(lines(client, catalog).await, lines(client, model).await, "catalog and model");
    let mut uses = String::new();
    for one in lines(client, model).await {
        let (kind, name) = one.split_once(' ').unwrap();
        let name = name.rsplit_once(' ').unwrap().0;
        let _ = match kind {
            "r" => {
                writeln!(uses, "INSERT INTO {name} DEFAULT VALUES; SELECT count(*) FROM {name};")
            }
            "v" => writeln!(uses, "SELECT * FROM {name};"),
            "f" => writeln!(uses, "SELECT {name}(1);"),
            "e" => writeln!(uses, "SELECT 'x'::{name};"),
            "S" => writeln!(uses, "SELECT nextval('{name}');"),
            _ => Ok(()),
        };
    }
    client.batch_execute(&uses).await.unwrap_or_else(|error| panic!("{uses}: {error:?}"));
    // Causes a check of the whole catalog.
    client.batch_execute("CREATE TABLE model.last (); DROP TABLE model.last").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn catalog_matches_committed_definitions_after_crash() {
    let seconds = std::env::var("BENNU_DEFINITIONS").ok().and_then(|one| one.parse().ok());
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let seed = std::env::var("BENNU_SEED").ok().and_then(|one| one.parse().ok()).unwrap_or(1);
    println!("BENNU_SEED={seed}");
    let directory = tempfile::tempdir().unwrap();
    let mut server = Process::serve(directory.path());
    connect(server.address()).await.batch_execute(SETUP).await.unwrap();
    let mut acknowledged = BTreeSet::new();
    for number in 0.. {
        let is_over = until.map_or(number >= ROUNDS, |until| Instant::now() >= until);
        if is_over {
            break;
        }
        let round = Arc::new(Round::default());
        let mut clients = Vec::new();
        for client in 0..CLIENTS {
            let seed = seed * 1_000_003 + number * CLIENTS + client + 1;
            let name = format!("{number}/{client}");
            clients.push(tokio::spawn(define(server.address(), seed, name, Arc::clone(&round))));
        }
        let enough = tokio::time::timeout(Duration::from_secs(120), round.enough.notified()).await;
        if enough.is_err() {
            let client = connect(server.address()).await;
            let waiting = "SELECT pid || ' ' || state || ' ' || query FROM pg_stat_activity";
            panic!("nobody gets on: {:?}", lines(&client, waiting).await);
        }
        round.killed.store(true, Ordering::SeqCst);
        server = server.kill_and_restart();
        for client in clients {
            acknowledged.extend(client.await.unwrap());
        }
        check(&connect(server.address()).await, &acknowledged).await;
    }
}
