//! Plan and query scripts.
//!
//! `plans/*.plan`: cases separated by blank lines; a case is comments (`#`), SQL, a line `---`,
//! and the plan for each EXPLAIN. `queries/*.txt`: likewise, executed on a store; the expected
//! output is rows. Each file begins without tables. A comment `# rows: table 1000` sets the row
//! count of a table. `BENNU_REGOLD=1` rewrites the expected output.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

mod database;
mod join_orders;
mod merge_joins;
mod paths;
mod planning_time;
mod schema;
mod parallel_scans;
mod transactions;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use database::Database;

#[test]
fn plans() {
    run("plans", "plan", |database, sql| database.plan_script(sql));
}

#[test]
fn answers() {
    run("queries", "txt", |database, sql| database.script(sql));
}

fn run(folder: &str, extension: &str, answer: fn(&mut Database, &str) -> String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let record = std::env::var_os("BENNU_REGOLD").is_some();
    let mut wrong = Vec::new();
    let mut count = 0;
    let mut paths: Vec<_> = fs::read_dir(folder)
        .expect("the scripts are readable")
        .map(|entry| entry.expect("the scripts are readable").path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    paths.sort();
    for path in paths {
        let mut database = Database::default();
        let script = fs::read_to_string(&path).expect("the scripts are readable");
        let mut recorded = String::new();
        for case in script.split("\n\n").map(str::trim).filter(|case| !case.is_empty()) {
            let (question, expected) = case.split_once("\n---").unwrap_or((case, ""));
            question.lines().for_each(|line| database.note_rows(line));
            let sql: Vec<&str> = question.lines().filter(|line| !line.starts_with('#')).collect();
            let sql = sql.join("\n");
            let answer = if sql.is_empty() { String::new() } else { answer(&mut database, &sql) };
            count += usize::from(!sql.is_empty());
            if answer.trim() != expected.trim() {
                wrong.push(format!("{}\n{question}\n---\n{answer}", path.display()));
            }
            let divider = if sql.is_empty() { "" } else { "\n---\n" };
            let _ = write!(recorded, "{question}{divider}{}\n\n", answer.trim());
        }
        if record {
            fs::write(&path, recorded.trim_end().to_owned() + "\n")
                .expect("the scripts are writable");
        }
    }
    assert!(count > 0, "no script was found");
    assert!(record || wrong.is_empty(), "answers differ:\n{}", wrong.join("\n\n"));
}
