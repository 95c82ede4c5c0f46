//! Property test of parallel scans: they return the rows of a serial scan, in its order if one is
//! required, over uncommitted writes and concurrent region splits and merges; and they read no
//! more than requested.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use proptest::prelude::*;
use sql::exec::{self, Operator};
use sql::parser::parse_statements;
use store::store::SplitPoint;
use store::{Options, Store, Transaction};
use types::Datum;

use crate::queries::database::{Database, context, stop_flag};

const SCRIPT: &str = "
    create table plain (a int, b int, c text, primary key (a, b)) with (regions = 5);
    create index plain_c on plain (c, b) salt_buckets = 2;
    create table salted (a int, b int, c text, primary key (a, b)) salt_buckets = 2;
    create table down (a int, b int, c text, primary key (a desc, b)) salt_buckets = 2;
    insert into plain select x, y, 'c' || (x * 7 + y) % 9
        from generate_series(1, 50) as s (x), generate_series(1, 120) as t (y);
    insert into salted select a, b, c from plain where b <= 60;
    insert into down select a, b, c from plain where b <= 60";

/// Two databases with the same rows: one with serial scans, one with region threads.
struct Pair {
    alone: Database,
    together: Database,
}

fn database(region_threads: usize, parallel_after_rows: u64) -> Database {
    let options = Options {
        region_threads,
        parallel_after_rows,
        parallel_piece_bytes: 1,
        ..Options::default()
    };
    let mut database = Database::with(options);
    let answer = database.script(SCRIPT);
    assert!(!answer.contains("error"), "{answer}");
    database
}

impl Pair {
    fn new(parallel_after_rows: u64) -> Mutex<Pair> {
        let together = database(3, parallel_after_rows);
        Mutex::new(Pair { alone: database(1, parallel_after_rows), together })
    }

    /// Executes a statement in both, in separate transactions.
    fn run(&mut self, sql: &str) {
        let answers = [&mut self.alone, &mut self.together].map(|database| database.script(sql));
        assert_eq!(answers[0], answers[1], "{sql}");
    }
}

/// Random query.
#[derive(Debug, Clone)]
struct Query {
    table: &'static str,
    columns: &'static str,
    filter: &'static str,
    order: &'static str,
    limit: Option<u16>,
}

impl Query {
    fn text(&self) -> String {
        let Query { table, columns, filter, order, limit } = self;
        let limit = limit.map_or(String::new(), |limit| format!(" limit {limit}"));
        format!("select {columns} from {table}{filter}{order}{limit}")
    }
}

fn query() -> impl Strategy<Value = Query> {
    let table = prop::sample::select(vec!["plain", "plain", "salted", "down"]);
    let columns = prop::sample::select(vec!["a, b, c", "c, a", "b"]);
    let filter = prop::sample::select(vec![
        "",
        "",
        " where b % 7 = 3",
        " where a > 7 and a <= 33",
        " where a in (1, 12, 13, 49)",
        " where c = 'c3'",
        " where c >= 'c2' and c < 'c5' and b % 2 = 0",
        " where c = 'none'",
    ]);
    let order = prop::sample::select(vec!["", "", " order by a, b", " order by a desc, b desc"]);
    let limit = prop::option::of(1..7000_u16);
    (table, columns, filter, order, limit).prop_map(|(table, columns, filter, order, limit)| {
        Query { table, columns, filter, order, limit }
    })
}

/// Events before the transaction's scan, and in other transactions during the fetch.
#[derive(Debug, Clone)]
enum Event {
    Split(u8, u8),
    Merge(u8),
    Insert(u8),
}

fn events() -> impl Strategy<Value = Vec<(u8, Event)>> {
    let event = prop_oneof![
        (1..50_u8, 1..120_u8).prop_map(|(a, b)| Event::Split(a, b)),
        any::<u8>().prop_map(Event::Merge),
        (1..50_u8).prop_map(Event::Insert),
    ];
    prop::collection::vec((0..6_u8, event), 0..4)
}

/// Own writes; none affects a row of [`Event::Insert`], whose writer would wait.
const OWN: &[&str] = &[
    "delete from plain where b = 17",
    "update plain set c = 'c3' where a = 12 and b < 1000",
    "insert into plain select x, 500, 'own' from generate_series(1, 50) as s (x)",
    "delete from salted where (a = 9 or b > 100) and b < 1000",
    "insert into salted select x, y, 'c3' from generate_series(60, 70) as s (x), \
     generate_series(1, 90) as t (y)",
    "update down set b = b + 1000 where a = 30 and b < 1000",
];

fn open(database: &Database, transaction: &Arc<Transaction>, sql: &str) -> Box<dyn Operator> {
    let parsed = parse_statements(sql).unwrap();
    let plan = Arc::new(database.plan(&parsed[0].statement, &[]).unwrap());
    transaction.begin_statement();
    exec::open(&plan, context(transaction, Vec::new())).unwrap()
}

/// Executes a query in a transaction to its end; `between` is called before each batch.
fn fetch(
    database: &Database,
    transaction: &Arc<Transaction>,
    sql: &str,
    between: &mut dyn FnMut(u8),
) -> Vec<Vec<Datum>> {
    let mut operator = open(database, transaction, sql);
    let mut rows = Vec::new();
    let mut batches = 0;
    loop {
        between(batches);
        batches = batches.saturating_add(1);
        let Some(batch) = operator.next().unwrap() else { return rows };
        rows.extend((0..batch.row_count).map(|row| batch.row(row)));
    }
}

fn texts(rows: Vec<Vec<Datum>>) -> Vec<String> {
    rows.iter().map(|row| format!("{row:?}")).collect()
}

fn apply_event(pair: &mut Pair, table: &str, event: &Event) {
    let store = pair.together.open();
    let table = Arc::clone(pair.together.table(table));
    match event {
        Event::Split(a, b) => {
            let key = [Datum::Int4(i32::from(*a)), Datum::Int4(i32::from(*b))];
            let mut row = table.layout.encode_key_values(&key).unwrap();
            if table.layout.salt_buckets > 0 && row.first() != Some(&2) {
                row[0] = a % table.layout.salt_buckets as u8;
            }
            // Rejected if a region already begins there.
            let _ = store.split_region(table.id, SplitPoint::At(row));
        }
        Event::Merge(at) => {
            let regions = store.regions(table.id).unwrap();
            let at = usize::from(*at) % regions.len();
            let merged: Vec<_> =
                regions.iter().skip(at).take(2).map(|region| region.region).collect();
            let _ = store.merge_regions(table.id, &merged);
        }
        // New rows among existing ones, which the open snapshot must not see.
        Event::Insert(a) => {
            pair.run(&format!("upsert into {} values ({a}, 2000, 'later')", table.name));
        }
    }
}

fn check(
    pair: &mut Pair,
    query: &Query,
    own: &[&'static str],
    events: &[(u8, Event)],
) -> Result<(), TestCaseError> {
    let sql = query.text();
    let transactions = [pair.alone.begin(), pair.together.begin()];
    for statement in own {
        let one = pair.alone.within(&transactions[0], statement, Vec::new()).unwrap();
        let other = pair.together.within(&transactions[1], statement, Vec::new()).unwrap();
        prop_assert_eq!(one, other);
    }
    let expected = texts(fetch(&pair.alone, &transactions[0], &sql, &mut |_| ()));
    // Both snapshots are equal: the events occur after both were opened.
    let mut operator = open(&pair.together, &transactions[1], &sql);
    let mut found = Vec::new();
    for batch in 0..=u8::MAX {
        let due = events.iter().filter(|(when, _)| *when == batch);
        due.for_each(|(_, event)| apply_event(pair, query.table, event));
        // Another statement of the session begins, as with two cursors; the open scan must not be
        // affected.
        transactions[1].begin_statement();
        let Some(batch) = operator.next().unwrap() else { break };
        found.extend((0..batch.row_count).map(|row| format!("{:?}", batch.row(row))));
    }
    drop(operator);
    if query.order.is_empty() {
        let whole = Query { limit: None, ..query.clone() };
        let all = texts(fetch(&pair.alone, &transactions[0], &whole.text(), &mut |_| ()));
        // The rows of later inserts are visible to this query.
        let all: BTreeSet<String> = all.into_iter().collect();
        prop_assert_eq!(found.len(), expected.len(), "{}", &sql);
        prop_assert!(found.iter().all(|row| all.contains(row)), "{}", &sql);
        if query.limit.is_none() {
            found.sort();
            let mut expected = expected;
            expected.sort();
            prop_assert_eq!(found, expected, "{}", &sql);
        }
    } else {
        prop_assert_eq!(found, expected, "{}", &sql);
    }
    let read_ahead = pair.together.open().status().read_ahead_bytes;
    prop_assert_eq!(read_ahead, 0, "what was dropped is not counted any more");
    Ok(())
}

#[test]
fn parallel_scan_matches_serial_scan() {
    for parallel_after_rows in [0, 1500] {
        let pair = Pair::new(parallel_after_rows);
        pair.lock().together.open().flush_all().unwrap();
        let own = prop::sample::subsequence(OWN.to_vec(), 0..=3);
        let cases = (query(), own, events());
        let config = ProptestConfig { cases: 40, max_shrink_iters: 200, ..Default::default() };
        let mut runner = proptest::test_runner::TestRunner::new(config);
        let run = runner
            .run(&cases, |(query, own, events)| check(&mut pair.lock(), &query, &own, &events));
        run.unwrap_or_else(|error| panic!("{error}"));
    }
}

fn rows_read(store: &Store, database: &Database, table: &str) -> u64 {
    let regions = store.regions(database.table(table).id).unwrap();
    regions.iter().map(|region| region.load.rows_read).sum()
}

/// Waits until no reader has an open snapshot.
fn wait_for_readers(store: &Store) {
    while !store.snapshots().is_empty() {
        std::thread::yield_now();
    }
}

/// Returns the number of rows that a query has read when `act` returns.
fn read_by(sql: &str, after_rows: u64, act: impl FnOnce(&mut dyn Operator)) -> u64 {
    let mut database = database(3, after_rows);
    let store = database.open();
    let before = rows_read(&store, &database, "plain") + rows_read(&store, &database, "salted");
    let transaction = database.begin();
    let mut operator = open(&database, &transaction, sql);
    act(operator.as_mut());
    drop(operator);
    drop(transaction);
    wait_for_readers(&store);
    let after = rows_read(&store, &database, "plain") + rows_read(&store, &database, "salted");
    assert_eq!(store.status().read_ahead_bytes, 0);
    after - before
}

#[test]
fn abandoned_scan_stops_reading() {
    let nothing = |_: &mut dyn Operator| ();
    let first = |operator: &mut dyn Operator| assert!(operator.next().unwrap().is_some());
    let all = |operator: &mut dyn Operator| while operator.next().unwrap().is_some() {};
    assert_eq!(read_by("select * from plain", 0, nothing), 0);
    assert_eq!(read_by("select * from plain", 0, all), 6000);
    assert_eq!(read_by("select * from salted order by a, b", 0, all), 3000);
    // At most four of five regions of 1,200 rows are started.
    let read = read_by("select * from plain", 0, first);
    assert!((1..=4800).contains(&read), "{read}");
    // A limit that the session reaches alone does not start region threads.
    assert_eq!(read_by("select * from plain limit 10", 100, all), 10);
    let read = read_by("select * from plain where b > 0 limit 30", 100, all);
    assert!(read <= 100, "{read}");
}

#[test]
fn cancelled_statement_stops_region_threads() {
    let mut database = database(3, 0);
    let store = database.open();
    let transaction = database.begin();
    transaction.begin_statement();
    let parsed = parse_statements("select * from plain").unwrap();
    let plan = Arc::new(database.plan(&parsed[0].statement, &[]).unwrap());
    let context = context(&transaction, Vec::new());
    let cancelled = stop_flag(&context);
    let mut operator = exec::open(&plan, context).unwrap();
    operator.next().unwrap();
    cancelled.store(true, Ordering::SeqCst);
    assert_eq!(operator.next().unwrap_err().sqlstate, "57014");
    drop((operator, transaction));
    wait_for_readers(&store);
    assert_eq!(store.status().read_ahead_bytes, 0);
}

#[test]
fn region_error_fails_statement() {
    let mut database = database(3, 0);
    let failed = database.query("select a from plain where 100 / (a - 47) > 0 and b > 0");
    assert_eq!(failed.unwrap_err().sqlstate, "22012");
    assert_eq!(database.query("select a from plain where b = 7").unwrap().len(), 50);
}

#[test]
fn region_threads_evaluate_correlated_subqueries() {
    let [mut alone, mut together] = [database(1, 0), database(3, 0)];
    for sql in [
        "select a, b, (select sum(p.b) from plain as p where p.c = s.c and p.b < s.a) from salted as s",
        "select a, b from plain as s
         where b > (select count(*) from plain as p where p.a = s.a and p.b % 7 > s.b % 7)",
        "select a, array(select p.b from plain as p where p.a = s.a and p.b < s.b order by 1)
         from salted as s where b < 9",
    ] {
        let [expected, found] = [&mut alone, &mut together].map(|database| {
            let mut rows = database.query(sql).unwrap();
            rows.sort();
            rows
        });
        assert!(expected.len() > 100, "{sql}");
        assert_eq!(found, expected, "{sql}");
    }
    let failed = together
        .query("select (select 1 / (p.a - s.a) from plain as p where p.a >= s.a) from salted as s");
    assert!(["22012", "21000"].contains(&&*failed.unwrap_err().sqlstate));
}
