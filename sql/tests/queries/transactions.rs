//! Concurrent statements: locks, re-evaluation, old versions, cancellation, and the row sink of
//! COPY.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use sql::exec::insert::RowSink;
use sql::parser::parse_statements;
use store::Transaction;
use types::Datum;

use crate::queries::database::{Database, commit, context, stop_flag};

fn database(script: &str) -> Database {
    let mut database = Database::default();
    let answer = database.script(script);
    assert!(!answer.contains("error"), "{answer}");
    database
}

fn counters() -> Database {
    database(
        "create table t (id int primary key, n bigint, note text) versions = 5;
         create index t_n on t (n);
         insert into t values (1, 0, 'a'), (2, 0, 'b'), (3, 7, 'c')",
    )
}

#[test]
fn concurrent_increments_of_row_are_not_lost() {
    let mut database = counters();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    let transaction = database.begin();
                    let sql = "update t set n = n + 1 where id = $1";
                    let answer = database.within(&transaction, sql, vec![Datum::Int4(1)]);
                    assert_eq!(answer.unwrap(), "1 rows\n");
                    commit(&transaction).unwrap();
                }
            });
        }
    });
    assert_eq!(database.query("select n from t where id = 1").unwrap(), ["100"]);
    assert_eq!(database.query("select id from t where n = 100").unwrap(), ["1"]);
}

#[test]
fn changed_row_is_re_evaluated() {
    let mut database = counters();
    let first = database.begin();
    database.within(&first, "update t set n = 5 where id = 1", Vec::new()).unwrap();
    thread::scope(|scope| {
        let second = scope.spawn(|| {
            let transaction = database.begin();
            let sql = "update t set note = 'seen' where n = 0 returning id";
            let answer = database.within(&transaction, sql, Vec::new()).unwrap();
            commit(&transaction).unwrap();
            answer
        });
        commit(&first).unwrap();
        // Row 1 was no longer 0 when its lock was granted, unless the first commit came first.
        assert_eq!(second.join().unwrap(), "2\n1 rows\n");
    });
    assert_eq!(database.query("select note from t where id = 1").unwrap(), ["a"]);
}

#[test]
fn locked_rows_are_skipped_or_rejected() {
    let database = counters();
    let first = database.begin();
    let sql = "select id from t where n = 0 order by id limit 1 for update skip locked";
    let mut found: Vec<String> = vec![database.within(&first, sql, Vec::new()).unwrap()];
    let second = database.begin();
    found.push(database.within(&second, sql, Vec::new()).unwrap());
    assert_eq!(found, ["1\n", "2\n"]);
    let error = database
        .within(&second, "select * from t where id = 1 for update nowait", Vec::new())
        .unwrap_err();
    assert_eq!(error.sqlstate, "55P03");
    assert_eq!(error.message, "could not obtain lock on row in relation \"t\"");
}

#[test]
fn for_update_with_limit_locks_only_returned_rows() {
    let database = database(
        "create table jobs (id int primary key, state text, due int);
         create index jobs_state on jobs (state);
         insert into jobs select i, 'new', (i * 37) % 101 from generate_series(1, 100) as s (i)",
    );
    let (first, second) = (database.begin(), database.begin());
    let next = |transaction: &Arc<Transaction>, limit: &str| {
        let sql = format!(
            "select id, due from jobs where state = 'new' order by due, id {limit} for update \
             skip locked"
        );
        database.within(transaction, &sql, Vec::new()).unwrap()
    };
    assert_eq!(next(&first, "limit 2"), "71|1\n41|2\n");
    assert_eq!(next(&second, "limit 1 offset 1"), "82|4\n", "11|3 is locked and left out");
    assert_eq!(next(&first, "limit 3"), "71|1\n41|2\n52|5\n", "one's own locks are no obstacle");
    let third = database.begin();
    let change = "update jobs set due = 0 where due > 10";
    assert_eq!(database.within(&third, change, Vec::new()).unwrap(), "90 rows\n");
}

#[test]
fn own_writes_are_visible_through_indexes_and_aggregates() {
    let database = counters();
    let transaction = database.begin();
    let run = |sql: &str| database.within(&transaction, sql, Vec::new()).unwrap();
    run("insert into t values (4, 7, 'd')");
    run("delete from t where id = 3");
    assert_eq!(run("select id from t where n = 7"), "4\n");
    assert_eq!(run("select count(*), sum(n) from t"), "3|7\n");
    // A statement does not see its own writes.
    assert_eq!(run("insert into t select id + 10, n, note from t"), "3 rows\n");
    let sql = "update t set id = id + 1 where id = 11";
    assert_eq!(database.within(&transaction, sql, Vec::new()).unwrap_err().sqlstate, "23505");
}

#[test]
fn system_time_query_reads_old_versions() {
    let mut database = counters();
    let then = database.query("select _timestamp from t where id = 1").unwrap().remove(0);
    database.query("update t set n = 42 where id = 1").unwrap();
    let sql = format!("select id, n from t for system_time as of '{then}'");
    assert_eq!(database.query(&sql).unwrap(), ["1|0", "2|0", "3|7"]);
    assert_eq!(database.query("select id, n from t").unwrap(), ["1|42", "2|0", "3|7"]);
    let by_index = format!("select id from t for system_time as of '{then}' where n = 0");
    assert_eq!(database.query(&by_index).unwrap(), ["1", "2"]);
}

#[test]
fn cancelled_statement_stops() {
    let database = counters();
    let transaction = database.begin();
    let parsed = parse_statements("select count(distinct a.n) from t a, t b").unwrap();
    let plan = Arc::new(database.plan(&parsed[0].statement, &[]).unwrap());
    transaction.begin_statement();
    let context = context(&transaction, Vec::new());
    stop_flag(&context).store(true, Ordering::Relaxed);
    let mut rows = sql::exec::open(&plan, context).unwrap();
    assert_eq!(rows.next().unwrap_err().sqlstate, "57014");
}

#[test]
fn row_sink_stages_rows_and_reports_duplicates() {
    let mut database = counters();
    let transaction = database.begin();
    transaction.begin_statement();
    let table = Arc::clone(database.table("t"));
    let row = |id: i32| [Datum::Int4(id), Datum::Int8(i64::from(id)), Datum::text("copied")];
    let mut sink = RowSink::new(Arc::clone(&table), context(&transaction, Vec::new())).unwrap();
    (10..3010).for_each(|id| sink.push(&mut row(id)).unwrap());
    assert_eq!(sink.finish().unwrap(), 3000);
    let mut sink = RowSink::new(Arc::clone(&table), context(&transaction, Vec::new())).unwrap();
    sink.push(&mut row(5000)).unwrap();
    sink.push(&mut row(2500)).unwrap();
    let error = sink.finish().unwrap_err();
    assert_eq!(error.message, "duplicate key value violates unique constraint \"t_pkey\"");
    assert_eq!(error.detail.as_deref(), Some("Key (id)=(2500) already exists."));
    // The session undoes the staged writes of a failed statement.
    let failing = database.begin();
    failing.begin_statement();
    let mut sink = RowSink::new(table, context(&failing, Vec::new())).unwrap();
    [7000, 6000, 7000].iter().for_each(|&id| sink.push(&mut row(id)).unwrap());
    assert_eq!(sink.finish().unwrap_err().sqlstate, "23505");
    drop(failing);
    commit(&transaction).unwrap();
    assert_eq!(database.query("select count(*) from t").unwrap(), ["3003"]);
    assert_eq!(database.query("select id from t where n = 3000").unwrap(), ["3000"]);
}
