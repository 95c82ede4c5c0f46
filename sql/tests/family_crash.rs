//! Fault injection: crashes during ADD FAMILY and DROP FAMILY, after each number of disk
//! operations.
//!
//! Afterwards catalog and store must have the same families, and a family that was dropped and
//! added again must have no cell of the former one.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::sync::Arc;

use sql::engine::Engine;

use crate::crashes::{after_each_operation, run};

/// Rows in memstores, and in files.
const FILL: &str = "CREATE TABLE t (id int PRIMARY KEY, v int, g.w int, h.x int); \
                    CREATE INDEX t_v ON t (v) INCLUDE (w); \
                    INSERT INTO t SELECT n, n, n, n FROM generate_series(1, 5) AS n; \
                    FLUSH t; \
                    INSERT INTO t SELECT n, n, n, n FROM generate_series(6, 9) AS n";
const ALTER: [&str; 3] = [
    "ALTER TABLE t DROP FAMILY g CASCADE",
    "FLUSH t; MAJOR COMPACT t",
    "ALTER TABLE t ADD FAMILY g (versions = 3), ADD COLUMN g.w int",
];

/// Checks the agreement of catalog and store, and returns the number of families.
fn check(engine: &Arc<Engine>) -> usize {
    let families = "SELECT string_agg(family, ',' ORDER BY family) FROM bennu.families \
                    WHERE table_name = 't'";
    let of_store = run(engine, families).unwrap().concat();
    let sums = "SELECT count(*), sum(v), sum(x) FROM t";
    assert_eq!(run(engine, sums).unwrap(), ["9|45|45"]);
    let of_cells = "SELECT string_agg(DISTINCT family, ',' ORDER BY family) FROM cells('t')";
    let of_cells = run(engine, of_cells).unwrap().concat();
    let has_column = run(engine, "SELECT sum(w) FROM t");
    match (of_store.as_str(), has_column) {
        ("0,g,h", Ok(sum)) if sum == ["45"] => assert_eq!(of_cells, "0,g,h"),
        ("0,h", Err(_)) => assert_eq!(of_cells, "0,h"),
        // Added again.
        ("0,g,h", Ok(sum)) => {
            assert_eq!((sum, of_cells.as_str()), (vec!["NULL".to_owned()], "0,h"));
            run(engine, "INSERT INTO t VALUES (10, 10, 10, 10)").unwrap();
            assert_eq!(run(engine, "SELECT sum(w) FROM t").unwrap(), ["10"]);
        }
        other => panic!("{other:?}"),
    }
    engine.store().table_bytes(engine.store().tables().last().unwrap().id).unwrap();
    of_store.split(',').count()
}

#[test]
fn families_of_catalog_and_store_agree_after_crash() {
    for (number, alter) in ALTER.iter().enumerate() {
        let setup: Vec<&str> = [FILL].into_iter().chain(ALTER[..number].iter().copied()).collect();
        after_each_operation(&setup, alter, &mut |engine, done| {
            let families = check(engine);
            assert!(!done || families == [2, 2, 3][number], "{alter}: lost");
        });
    }
}
