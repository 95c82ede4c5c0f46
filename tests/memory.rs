//! Memory limit of the real server with `--memory 256MB`: a short version of `benches/memory`.
//!
//! The limits include a margin for a debug build, whose program takes some 60 MiB.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::SinkExt;
use tokio_postgres::Client;

use crate::harness::{Process, connect};
use crate::raw::{Raw, sqlstate};

/// 1.25 times `--memory`, plus the additional size of a debug build.
const PEAK_BYTES: u64 = (320 + 48) << 20;
/// More than an idle server uses, and less than any of the statements does.
const IDLE_BYTES: u64 = 130 << 20;
/// Time until the system has the memory back, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns a query of rows of about a kilobyte.
fn rows(count: usize) -> String {
    format!("SELECT i, md5(i::text) || repeat('x', 970) AS t FROM generate_series(1, {count}) i")
}

/// Runs a statement; returns the SQLSTATE and the detail of its error.
async fn run(client: &Client, text: &str) -> Result<(), (String, String)> {
    client.batch_execute(text).await.map_err(|error| {
        let error = error.as_db_error().expect("the server lives");
        (error.code().code().to_owned(), error.detail().unwrap_or_default().to_owned())
    })
}

fn run_on_server(test: impl AsyncFnOnce(&Process, &Client)) {
    let directory = tempfile::tempdir().unwrap();
    let process = Process::serve(directory.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = connect(process.address()).await;
        test(&process, &client).await;
    });
    let peak = process.peak_bytes();
    assert!(peak <= PEAK_BYTES, "the peak is {} MiB", peak >> 20);
}

#[test]
fn materialized_rows_spill_to_disk() {
    run_on_server(async |_, client| {
        let with = format!("WITH c AS MATERIALIZED ({}) SELECT count(*) FROM c", rows(300_000));
        run(client, &format!("{with} WHERE (SELECT max(i) FROM c) > 0")).await.unwrap();
        let held = format!("DECLARE h CURSOR WITH HOLD FOR {}", rows(300_000));
        run(client, &held).await.unwrap();
        let fetched = client.simple_query("MOVE 299999 FROM h; FETCH 2 FROM h").await.unwrap();
        assert!(format!("{fetched:?}").contains("300000"), "{fetched:?}");
        run(client, "CLOSE h").await.unwrap();
        // The rows that UNION compares, and one window partition.
        let with = format!("WITH RECURSIVE r AS (SELECT * FROM ({}) s UNION SELECT", rows(250_000));
        let recursive = format!("{with} -i, t FROM r WHERE i % 100 = 0) SELECT count(*) FROM r");
        let window = format!(
            "SELECT row_number() OVER () n, lead(t) OVER () t, s.t u FROM ({}) s",
            rows(250_000)
        );
        let window = format!("SELECT count(t || u) FROM ({window} OFFSET 0) s WHERE n > 0");
        for (query, count) in [(recursive, 252_500), (window, 249_999)] {
            let found = client.query_one(&query, &[]).await;
            let found = found.unwrap_or_else(|error| panic!("{query}: {error:?}"));
            assert_eq!(found.get::<_, i64>(0), count, "{query}");
        }
    });
}

#[test]
fn megabyte_values_are_processed_in_small_batches() {
    const VALUES: usize = 40;
    let directory = tempfile::tempdir().unwrap();
    let process = Process::serve_with(directory.path(), &["--memory", "96MB"]);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = connect(process.address()).await;
        run(&client, "CREATE TABLE big (a int PRIMARY KEY, t text)").await.unwrap();
        let mut sink = Box::pin(client.copy_in("COPY big FROM STDIN").await.unwrap());
        for number in 0..VALUES {
            let line = format!("{number}\t{number}{}\n", "abcdefghij".repeat(100_000));
            sink.send(Bytes::from(line)).await.unwrap();
        }
        assert_eq!(sink.as_mut().finish().await.unwrap(), VALUES as u64);
        let series = format!("generate_series(101, {})", 100 + VALUES);
        for text in [
            &format!("INSERT INTO big SELECT i, i || repeat('x', 1000000) FROM {series} i"),
            "CREATE TABLE other AS SELECT * FROM big",
            "CREATE INDEX ON other ((a % 7))",
            "UPDATE big SET t = t || 'x' WHERE a > 100",
            "INSERT INTO other SELECT a + 1000, t FROM big WHERE a < 20",
        ] {
            run(&client, text).await.unwrap();
        }
        for (query, count) in [
            ("SELECT t FROM big ORDER BY t", 2 * VALUES),
            ("SELECT a.t FROM big a JOIN big b USING (t)", 2 * VALUES),
            ("SELECT a.t, b.t FROM big a JOIN big b ON a.a = b.a", 2 * VALUES),
            ("SELECT t, count(*) FROM big GROUP BY t", 2 * VALUES),
            ("SELECT t, generate_series(1, 50) FROM big WHERE a < 2", 100),
            ("SELECT s.t FROM other x, LATERAL (SELECT t FROM big WHERE a < x.a - 1000) s", 190),
            ("SELECT lag(t) OVER (PARTITION BY a) FROM big", 2 * VALUES),
        ] {
            let counted = format!("SELECT count(*) FROM ({query} OFFSET 0) s");
            let found = client.query_one(&counted, &[]).await.unwrap().get::<_, i64>(0);
            assert_eq!(found, count as i64, "{query}");
        }
        run(&client, "ALTER TABLE big ALTER a TYPE bigint").await.unwrap();
    });
    let peak = process.peak_bytes();
    assert!(peak <= (96 + 24 + 40) << 20, "the peak is {} MiB", peak >> 20);
}

#[test]
fn joins_and_windows_of_megabyte_values_stay_within_memory() {
    const VALUES: i64 = 150;
    let directory = tempfile::tempdir().unwrap();
    let process = Process::serve_with(directory.path(), &["--memory", "96MB"]);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = connect(process.address()).await;
        let series = format!("generate_series(1, {VALUES})");
        for text in [
            "CREATE TABLE big (a int PRIMARY KEY, k int, t text)",
            &format!("INSERT INTO big SELECT i, 1, i || repeat('x', 1000000) FROM {series} i"),
            "CREATE TABLE few (i int PRIMARY KEY, k int)",
            &format!("INSERT INTO few SELECT i, 1 FROM {series} i"),
            "CREATE INDEX ON big (k)",
        ] {
            run(&client, text).await.unwrap();
        }
        for (query, count) in [
            // Index look-ups by key; then all rows for one left row.
            ("SELECT t FROM few JOIN big ON a = i", VALUES),
            ("SELECT t FROM few LEFT JOIN big ON a = i + 1 ORDER BY i LIMIT 1000", VALUES - 1),
            ("SELECT t FROM few f LEFT JOIN big b ON b.k = f.k WHERE i = 1", VALUES),
            ("SELECT i FROM few f WHERE i < 9 AND EXISTS (SELECT FROM big WHERE a = i AND t > '')", 8),
            // A hash table with one key.
            ("SELECT t FROM (SELECT * FROM few WHERE i < 4) f LEFT JOIN big b USING (k)", 3 * VALUES),
            // A cross join.
            ("SELECT t FROM generate_series(1, 3) i LEFT JOIN big ON length(t) > i", 3 * VALUES),
            ("SELECT t FROM generate_series(1, 3) i FULL JOIN big ON a = i AND t > ''", VALUES),
            ("SELECT i FROM generate_series(1, 3) i WHERE NOT EXISTS (SELECT FROM big WHERE t < i || '')", 1),
            // Values of subqueries.
            ("SELECT (SELECT t FROM big WHERE a = i AND i > 0 LIMIT 1) t FROM few", VALUES),
            ("SELECT repeat(t || i, 2) t FROM few JOIN big ON a = i", VALUES),
            // Values at other rows of one window partition.
            ("SELECT lag(t) OVER (ORDER BY a) t FROM big", VALUES - 1),
            ("SELECT lead(t, 70, 'none') OVER (PARTITION BY k ORDER BY a DESC) t FROM big", VALUES),
            ("SELECT nth_value(t, 100) OVER () t FROM big", VALUES),
        ] {
            let column = if query.starts_with("SELECT i ") { "i" } else { "t" };
            let counted = format!("SELECT count({column}) FROM ({query} OFFSET 0) s");
            let counted = counted.replace("LIMIT 1000 OFFSET 0", "LIMIT 1000");
            let found = client.query_one(&counted, &[]).await;
            let found = found.unwrap_or_else(|error| panic!("{query}: {error:?}"));
            assert_eq!(found.get::<_, i64>(0), count, "{query}");
        }
    });
    let peak = process.peak_bytes();
    assert!(peak <= (96 + 24 + 40) << 20, "the peak is {} MiB", peak >> 20);
}

#[test]
fn evicted_plans_of_idle_sessions_are_replanned() {
    const SESSIONS: usize = 10;
    run_on_server(async |process, client| {
        let list: Vec<String> = (0..500_000).map(|i| (3 * i).to_string()).collect();
        let text = format!(
            "SELECT count(*) FROM generate_series(1, 3000) i WHERE i IN ({}) AND i > $1::int",
            list.join(", ")
        );
        let mut prepared = Vec::new();
        for _ in 0..SESSIONS {
            let client = connect(process.address()).await;
            let statement = client.prepare(&text).await.unwrap();
            prepared.push((client, statement));
        }
        let sorted = format!("SELECT t FROM ({}) s ORDER BY t OFFSET 1", rows(30_000));
        run(client, &format!("SELECT count(*) FROM ({sorted}) s")).await.unwrap();
        for (client, statement) in &prepared {
            let found = client.query_one(statement, &[&0]).await.unwrap().get::<_, i64>(0);
            assert_eq!(found, 1000);
        }
    });
}

#[test]
fn plans_of_functions_are_bounded() {
    /// A 16th of the memory, the largest plan, and what else a session holds.
    const HELD_BYTES: i64 = (16 + 4 + 4) << 20;
    run_on_server(async |process, client| {
        let list: Vec<String> = (0..20_000).map(|i| (3 * i).to_string()).collect();
        let view = format!(
            "CREATE VIEW v AS SELECT i FROM generate_series(1, 90) i WHERE i IN ({})",
            list.join(", ")
        );
        run(client, &view).await.unwrap();
        let caller = connect(process.address()).await;
        for at in 0..30 {
            for (language, body) in [
                ("sql", format!("SELECT count(*) + {at} FROM v")),
                ("plpgsql", format!("BEGIN RETURN (SELECT count(*) + {at} FROM v); END")),
            ] {
                let function = format!("{language}_{at}");
                let text = format!(
                    "CREATE FUNCTION {function}() RETURNS bigint LANGUAGE {language} AS '{body}'"
                );
                run(client, &text).await.unwrap();
            }
        }
        for language in ["sql", "plpgsql", "sql"] {
            for at in 0..30 {
                let called = format!("SELECT {language}_{at}()");
                let count = caller.query_one(&called, &[]).await.unwrap().get::<_, i64>(0);
                assert_eq!(count, 30 + at);
            }
            let held = "SELECT bytes FROM bennu.memory WHERE session = pg_backend_pid()";
            let held = caller.query_one(held, &[]).await.unwrap().get::<_, i64>(0);
            assert!(held < HELD_BYTES, "the session holds {} MiB", held >> 20);
        }
    });
}

#[test]
fn definitions_are_charged_to_session_until_commit() {
    /// More than a session needs without definitions, and less than these definitions need.
    const HELD_BYTES: i64 = 2 << 20;
    run_on_server(async |_, client| {
        let create = "DO $$ BEGIN FOR i IN 1..200 LOOP EXECUTE 'CREATE TABLE t' || i || ' (k int PRIMARY KEY, ' \
                      || (SELECT string_agg('c' || c || ' int', ', ') FROM generate_series(1, 40) c) || ')'; \
                      END LOOP; END $$";
        let held = async || {
            let held = "SELECT bytes FROM bennu.memory WHERE session = pg_backend_pid()";
            client.query_one(held, &[]).await.unwrap().get::<_, i64>(0)
        };
        for end in ["ROLLBACK", "COMMIT"] {
            run(client, "BEGIN").await.unwrap();
            run(client, create).await.unwrap();
            let open = held().await;
            assert!(open > HELD_BYTES, "the transaction holds {} KiB", open >> 10);
            run(client, end).await.unwrap();
            let left = held().await;
            assert!(left < HELD_BYTES, "after {end} the session holds {} KiB", left >> 10);
        }
        let server = "SELECT bytes FROM bennu.memory WHERE component = 'server'";
        let server = client.query_one(server, &[]).await.unwrap().get::<_, i64>(0);
        assert!(server > HELD_BYTES, "the server holds {} KiB", server >> 10);
    });
}

#[test]
fn failed_allocation_ends_only_statement() {
    let directory = tempfile::tempdir().unwrap();
    let process = Process::serve_limited(directory.path(), "-v 2500000", &["--memory", "4GB"]);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = connect(process.address()).await;
        for text in [
            "SELECT length(repeat('x', 1000000000) || 'y')",
            "SELECT length(string_agg(repeat('x', 1000000), '')) FROM generate_series(1, 1000)",
            "SELECT length(replace(repeat('x', 100000000), 'x', 'abcdefghi'))",
            "SELECT length(array_to_string(array_fill(1, ARRAY[100000000]), ','))",
            "SELECT length(encode(repeat('x', 900000000)::bytea, 'hex'))",
        ] {
            let (code, detail) = run(&client, text).await.unwrap_err();
            assert_eq!(code, "53200", "{text}: {detail}");
            run(&client, "SELECT 1").await.unwrap();
        }
    });
}

#[test]
fn largest_statement_fails_and_releases_memory() {
    run_on_server(async |process, client| {
        let grown = "DO $$ DECLARE s text := repeat('x', 1000000); BEGIN FOR i IN 1..9 LOOP \
                     s := s || s; END LOOP; END $$";
        let gathered = format!("SELECT array_agg(t) FROM ({}) s", rows(1_000_000));
        let listed = format!("SELECT 1 WHERE 1 IN ({}0)", "7+0,".repeat(700_000));
        let window =
            format!("SELECT count(x) FROM (SELECT min(t) OVER () x FROM ({}) s) s", rows(600_000));
        for text in [grown, &gathered, &listed, &window] {
            let small = connect(process.address()).await;
            let (code, detail) = run(client, text).await.unwrap_err();
            assert_eq!(code, "53200", "{detail}");
            assert!(detail.contains("MiB"), "{detail}");
            run(&small, "SELECT 1").await.unwrap();
            let began = Instant::now();
            while process.resident_bytes() > IDLE_BYTES {
                let waited = began.elapsed();
                assert!(waited < PATIENCE, "{} MiB left", process.resident_bytes() >> 20);
                run(&small, "SELECT pg_sleep(0.01)").await.unwrap();
            }
        }
        let shown =
            "SELECT bytes FROM bennu.memory WHERE component = 'total' AND bytes < limit_bytes";
        assert_eq!(client.query(shown, &[]).await.unwrap().len(), 1);
    });
}

#[test]
fn endless_copy_line_fails_with_out_of_memory() {
    run_on_server(async |_, client| {
        run(client, "CREATE TABLE line (t text)").await.unwrap();
        let mut sink = Box::pin(client.copy_in("COPY line FROM STDIN").await.unwrap());
        let part = Bytes::from(vec![b'x'; 1 << 20]);
        let mut failed = None;
        for _ in 0..400 {
            if let Err(error) = sink.send(part.clone()).await {
                failed = Some(error);
                break;
            }
        }
        let error = match failed {
            Some(error) => error,
            None => sink.as_mut().finish().await.unwrap_err(),
        };
        assert_eq!(error.code().map(|code| code.code()), Some("53200"), "{error}");
        run(client, "SELECT 1").await.unwrap();
    });
}

#[test]
fn long_constant_lists_use_memory_near_text_size() {
    let list = |count: i32, item: &dyn Fn(i32) -> String| {
        (0..count).map(item).collect::<Vec<String>>().join(", ")
    };
    run_on_server(async |_, client| {
        run(client, "CREATE TABLE listed (a int PRIMARY KEY, b varchar(9), c int DEFAULT 7)")
            .await
            .unwrap();
        let rows = list(60_000, &|i| format!("({i}, 'too long {i}')"));
        let failed = run(client, &format!("INSERT INTO listed (a, b) VALUES {rows}")).await;
        assert_eq!(failed.unwrap_err().0, "22001");
        let rows = list(60_000, &|i| format!("({i}, 'n''{i}')"));
        run(client, &format!("INSERT INTO listed (a, b) VALUES {rows}")).await.unwrap();
        let numbers = list(500_000, &|i| (2 * i - 100).to_string());
        let texts = list(5_000, &|i| format!("'n''{i}'"));
        let mixed = list(150_000, &|i| format!("({i}, {}, NULL, 'x')", 50_000 * i64::from(i)));
        for (query, answer) in [
            ("SELECT format('%s %s %s', count(*), min(b), sum(c)) FROM listed", "60000 n'0 420000"),
            (&format!("SELECT count(*)::text FROM listed WHERE a IN ({numbers})"), "30000"),
            (
                &format!("SELECT format('%s', count(*)) FROM listed WHERE b NOT IN ({texts}, 'x')"),
                "55000",
            ),
            (
                &format!(
                    "SELECT format('%s %s %s %s', count(*), sum(v), max(pg_typeof(v)::text), \
                     count(n)) \
                     FROM (VALUES {mixed}) t (i, v, n, x) WHERE x = 'x'"
                ),
                "150000 562496250000000 bigint 0",
            ),
            (
                &format!("SELECT (1.5 IN ({numbers}, 1.5))::text || (NULL IN ({numbers}) IS NULL)"),
                "truetrue",
            ),
        ] {
            let found = client.simple_query(query).await.unwrap();
            assert!(format!("{found:?}").contains(answer), "{answer}: {found:?}");
        }
    });
}

#[test]
fn partial_messages_share_memory_limit() {
    /// Sends the beginning of a Bind message of this size.
    fn begin(raw: &mut Raw, mebibytes: u32) {
        raw.try_send(&[&[b'B'][..], &(mebibytes << 20).to_be_bytes()].concat());
    }

    run_on_server(async |process, client| {
        // A message above the limit of all messages is rejected before it arrives.
        let mut raw = Raw::login(process.address());
        begin(&mut raw, 900);
        assert_eq!(sqlstate(&raw.until_ready()).as_deref(), Some("53200"));
        let part = vec![b'x'; 1 << 20];
        // A message within the limit arrives completely, and is malformed.
        let mut raw = Raw::login(process.address());
        begin(&mut raw, 100);
        (0..100).for_each(|_| raw.try_send(&part));
        assert_eq!(sqlstate(&raw.until_ready()).as_deref(), Some("08P01"));
        let mut clients: Vec<Raw> = (0..4).map(|_| Raw::login(process.address())).collect();
        for raw in &mut clients {
            begin(raw, 100);
            (0..50).for_each(|_| raw.try_send(&part));
        }
        let ordered = format!("SELECT t FROM ({}) s ORDER BY t OFFSET 1", rows(30_000));
        run(client, &format!("SELECT count(*) FROM ({ordered}) s")).await.unwrap();
        let began = Instant::now();
        let open = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle'";
        while client.query_one(open, &[]).await.unwrap().get::<_, i64>(0) >= 4 {
            assert!(began.elapsed() < PATIENCE, "no connection has ended");
            run(client, "SELECT pg_sleep(0.01)").await.unwrap();
        }
    });
}

#[test]
fn failed_message_allocation_ends_only_its_connection() {
    let directory = tempfile::tempdir().unwrap();
    let process = Process::serve_limited(directory.path(), "-v 2500000", &["--memory", "4GB"]);
    let part = vec![b'x'; 1 << 20];
    let mut clients: Vec<Raw> = (0..2).map(|_| Raw::login(process.address())).collect();
    for raw in &mut clients {
        raw.set_patience(PATIENCE);
        raw.try_send(&[&[b'B'][..], &(1000_u32 << 20).to_be_bytes()].concat());
        (0..520).for_each(|_| raw.try_send(&part));
    }
    // Both together exceed the address space.
    assert_eq!(sqlstate(&clients[1].until_ready()).as_deref(), Some("53200"));
    drop(clients);
    let answer = Raw::login(process.address()).query("SELECT 1");
    assert!(answer.iter().any(|message| message.kind == b'D'), "{answer:?}");
}
