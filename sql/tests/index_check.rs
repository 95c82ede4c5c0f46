//! CHECK INDEX and CHECK TABLE: differences that are written to the store behind the index are
//! found, listed and corrected, also while others write.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use coprocessors::index::index_entry;
use sql::EngineOptions;
use sql::catalog::name::ObjectName;
use sql::catalog::table::Index;
use sql::engine::Engine;
use store::transaction::{Locking, RowExpectation, TransactionOptions};
use store::{CellBatch, Mutation, Scan};
use types::Datum;

use crate::server::{Server, answer, index_differences};

fn index(engine: &Engine, name: &str) -> Arc<Index> {
    let catalog = engine.catalog();
    let table = catalog.table_named(&ObjectName::public("t")).unwrap();
    Arc::clone(table.indexes.iter().find(|index| index.name == name).unwrap())
}

/// Writes to the store table of an index, behind the observers of its table.
fn write(engine: &Engine, index: &Index, mutations: Vec<Mutation>) {
    let transaction = engine.store().begin(TransactionOptions::default());
    transaction.begin_statement();
    transaction.mutate(index.spec.store_table, mutations).unwrap();
    transaction.commit().unwrap().durable.wait().unwrap();
}

/// Returns the put of the entry that a row would have.
fn entry(index: &Index, (id, a, b): (i32, i32, &str)) -> Mutation {
    let row = [Datum::Int4(id), Datum::Int4(a), Datum::text(b)];
    let entry = index_entry(&index.spec, &row).unwrap().unwrap();
    Mutation { locking: Locking::Row, expect: RowExpectation::Anything, ..entry }
}

fn delete_entry(index: &Index, row: (i32, i32, &str)) -> Mutation {
    Mutation::new(entry(index, row).row).delete_row()
}

/// Returns the keys of all entries.
fn entry_keys(engine: &Engine, index: &Index) -> Vec<Vec<u8>> {
    let transaction = engine.store().begin(TransactionOptions::default());
    transaction.begin_statement();
    let mut scanner = transaction.scan(index.spec.store_table, Scan::all()).unwrap();
    let (mut keys, mut entries) = (Vec::new(), CellBatch::new());
    while scanner.next_batch(1000, &mut entries).unwrap() {
        keys.extend(entries.rows().map(|entry| entry.key().to_vec()));
    }
    keys
}

fn server() -> Server {
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE TABLE t (id int PRIMARY KEY, a int, b text)");
    server
}

#[test]
fn differences_are_listed_and_corrected() {
    let mut server = server();
    server.run("a", "INSERT INTO t SELECT n, n * 10, 'b' || n FROM generate_series(1, 5) AS n");
    server.run("a", "CREATE INDEX t_a ON t (a DESC) INCLUDE (b)");
    server.run("a", "CREATE UNIQUE INDEX t_b ON t (lower(b)) WHERE a > 10");
    assert_eq!(
        server.run("a", "CHECK TABLE t"),
        "info: index \"t_a\": 5 rows, 5 entries; 0 missing, 0 extra, 0 different, 0 duplicate\n\
         info: index \"t_b\": 5 rows, 4 entries; 0 missing, 0 extra, 0 different, 0 duplicate\n"
    );
    let (plain, unique) = (index(server.engine(), "t_a"), index(server.engine(), "t_b"));
    let broken = vec![
        delete_entry(&plain, (1, 10, "b1")),
        entry(&plain, (2, 20, "other")),
        entry(&plain, (9, 90, "b9")),
    ];
    write(server.engine(), &plain, broken);
    let long = "x".repeat(100);
    let broken = vec![entry(&unique, (4, 40, "b3")), entry(&unique, (4, 40, &long))];
    write(server.engine(), &unique, broken);
    let cut = format!("(lower(b), id)=({}..., 4)", "x".repeat(64));
    let found = server.run("a", "CHECK INDEX t_a ON t");
    let expected = "\
t_a|extra|(id)=(9)|(a, id, b)=(90, 9, b9)|NULL|NULL
t_a|missing|(id)=(1)|NULL|(a, id, b)=(10, 1, b1)|NULL
t_a|differs|(id)=(2)|(a, id, b)=(20, 2, other)|(a, id, b)=(20, 2, b2)|NULL
";
    assert!(found.contains("1 missing, 1 extra, 1 different, 0 duplicate"), "{found}");
    let rows = |found: &str| {
        let mut rows: Vec<&str> = found.lines().filter(|line| line.contains('|')).collect();
        rows.sort_unstable();
        rows.join("\n")
    };
    assert_eq!(rows(&found), rows(expected));
    let found = server.run("a", "CHECK TABLE public.t REPAIR LIMIT 5");
    assert!(found.contains("5 of 6 differences are listed"), "{found}");
    assert!(found.contains("1 different, 0 duplicate, 3 corrected"), "{found}");
    assert!(found.contains("2 extra, 1 different, 0 duplicate, 3 corrected"), "{found}");
    assert!(found.contains(&format!("{cut}|(lower(b), id)=(b4, 4)|t")), "{found}");
    assert_eq!(rows(&found).lines().count(), 5);
    let again = server.run("a", "CHECK TABLE t");
    assert_eq!(again.lines().count(), 2, "{again}");
    server.restart();
    assert!(index_differences(server.engine(), "t").iter().all(|one| one.1.differences() == 0));
}

#[test]
fn repair_reports_duplicates() {
    let mut server = server();
    server.run("a", "INSERT INTO t SELECT n, n, 'b' FROM generate_series(1, 5) AS n");
    server.run("a", "CREATE UNIQUE INDEX t_a ON t (a)");
    let unique = index(server.engine(), "t_a");
    write(server.engine(), &unique, vec![delete_entry(&unique, (1, 1, ""))]);
    assert_eq!(server.run("a", "UPDATE t SET a = 1 WHERE id = 2"), "ok\n");
    for _ in 0..2 {
        let found = server.run("a", "CHECK INDEX t_a REPAIR");
        assert!(
            found.contains("0 missing, 0 extra, 0 different, 1 duplicate, 0 corrected"),
            "{found}"
        );
        assert!(
            found.contains("t_a|duplicate|(id)=(1)|(a, id)=(1, 2)|(a, id)=(1, 1)|f\n"),
            "{found}"
        );
    }
    server.run("a", "UPDATE t SET a = 7 WHERE id = 2");
    let found = server.run("a", "CHECK INDEX t_a REPAIR");
    assert!(found.contains("1 missing, 0 extra, 0 different, 0 duplicate, 1 corrected"), "{found}");
    assert_eq!(server.run("a", "SELECT id FROM t WHERE a = 1"), "1\n");
}

#[test]
fn repair_is_right_with_concurrent_writers() {
    let mut server = server();
    server.run("a", "INSERT INTO t SELECT n, n, 'b' || n FROM generate_series(1, 3000) AS n");
    server.run("a", "CREATE INDEX t_a ON t (a) INCLUDE (b)");
    server.run("a", "CREATE UNIQUE INDEX t_b ON t (b) WITH (salt_buckets = 3)");
    for name in ["t_a", "t_b"] {
        let index = index(server.engine(), name);
        let lost = entry_keys(server.engine(), &index).into_iter().step_by(2);
        let lost = lost.map(|key| Mutation::new(key).delete_row());
        let stray = (1..900).map(|id| entry(&index, (id, id + 50_000, &format!("s{id}"))));
        let all = lost.chain(stray).collect();
        write(server.engine(), &index, all);
    }
    let done = AtomicBool::new(false);
    let mut writers = [server.session(), server.session()];
    let mut repairer = server.session();
    thread::scope(|scope| {
        let done = &done;
        for (number, session) in writers.iter_mut().enumerate() {
            scope.spawn(move || {
                let mut n = 0;
                while !done.load(Ordering::SeqCst) {
                    n = (n + 37) % 3000;
                    let id = n + 1;
                    for statement in [
                        format!("UPDATE t SET a = a + 1, b = b || '.{number}' WHERE id = {id}"),
                        format!("DELETE FROM t WHERE id = {id}"),
                        format!("INSERT INTO t VALUES ({id}, 7, 'm{id}') ON CONFLICT DO NOTHING"),
                    ] {
                        assert_eq!(answer(session, &statement), "ok\n", "{statement}");
                    }
                }
            });
        }
        for _ in 0..2 {
            let found = answer(&mut repairer, "CHECK TABLE t REPAIR LIMIT 0");
            assert!(!found.contains("error"), "{found}");
        }
        done.store(true, Ordering::SeqCst);
    });
    for (index, counts) in index_differences(server.engine(), "t") {
        assert_eq!(counts.differences(), 0, "{index}: {counts:?}");
    }
}

#[test]
fn check_waits_for_no_row_lock() {
    let mut server = server();
    server.run("a", "INSERT INTO t SELECT n, n, 'b' FROM generate_series(1, 5) AS n");
    server.run("a", "CREATE INDEX t_a ON t (a)");
    server.run("b", "BEGIN; UPDATE t SET a = 70 WHERE id = 3");
    let found = server.run("a", "SET lock_timeout = '50ms'; CHECK TABLE t REPAIR");
    assert!(found.contains("5 rows, 5 entries; 0 missing, 0 extra"), "{found}");
    let own = server.run("b", "CHECK INDEX t_a");
    assert!(own.contains("5 rows, 5 entries; 0 missing, 0 extra"), "{own}");
    let plain = index(server.engine(), "t_a");
    write(server.engine(), &plain, vec![delete_entry(&plain, (3, 3, "b"))]);
    let waited = server.run("a", "CHECK TABLE t REPAIR");
    assert_eq!(waited, "error 55P03: canceling statement due to lock timeout\n");
    server.run("b", "COMMIT");
    assert_eq!(server.run("a", "CHECK TABLE t").lines().count(), 1);
    assert_eq!(server.run("b", "SELECT id FROM t WHERE a = 70"), "3\n");
}
