//! CHECK STORE: damage of any block of a store file is listed, and queries of other files go on.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::path::PathBuf;

use store::env::fault::FaultEnv;

use crate::crashes::{open, run};

#[test]
fn damaged_store_files_are_listed() {
    let env = FaultEnv::new(1);
    let engine = open(&env).unwrap();
    for statement in [
        "CREATE TABLE t (id int PRIMARY KEY, a int, f.b text)",
        "CREATE INDEX t_a ON t (a)",
        "INSERT INTO t SELECT n, n % 7, repeat('x', n % 90) FROM generate_series(1, 3000) AS n",
        "FLUSH t",
    ] {
        run(&engine, statement).unwrap();
    }
    let files: Vec<PathBuf> = env.paths().into_iter().filter(|path| is_store_file(path)).collect();
    assert!(files.len() >= 3, "{files:?}");
    assert!(run(&engine, "CHECK STORE").unwrap().is_empty());
    for (damaged, path) in files.iter().enumerate() {
        let bit_count = env.bytes(path).unwrap().len() * 8;
        env.flip(path, bit_count * (damaged + 1) / (files.len() + 2));
        let found = run(&engine, "CHECK STORE").unwrap();
        assert_eq!(found.len(), damaged + 1, "{found:?}");
        assert!(found.iter().all(|row| row.contains("checksum")), "{found:?}");
    }
    assert_eq!(run(&engine, "CHECK STORE LIMIT 1").unwrap().len(), 1);
    let of_table = run(&engine, "CHECK STORE t").unwrap();
    let columns: Vec<Vec<&str>> = of_table.iter().map(|row| row.split('|').collect()).collect();
    let named: Vec<(&str, &str)> = columns.iter().map(|row| (row[0], row[2])).collect();
    assert_eq!(named, [("t", "0"), ("t", "f"), ("t_a", "0")]);
}

fn is_store_file(path: &std::path::Path) -> bool {
    path.extension().is_some_and(|extension| extension == "store")
}
