//! Columnar blocks: DATA_BLOCK_ENCODING = COLUMNAR must not change any query result.

use std::sync::Arc;

use sql::engine::Engine;
use sql::session::{Execution, Session, SessionOptions, parse};
use store::{Options, Store};

fn run(session: &mut Session, text: &str) -> Result<Vec<String>, sql::error::Error> {
    let mut found = Vec::new();
    for parsed in parse(text)? {
        let prepared = session.prepare(&parsed, &[])?;
        if let Execution::Rows(mut rows) = session.execute(&prepared, Vec::new())? {
            while let Some(batch) = rows.next_batch(100)? {
                found.extend((0..batch.row_count).map(|row| format!("{:?}", batch.row(row))));
            }
        }
        if let Some(ticket) = session.end_implicit()? {
            ticket.wait()?;
        }
    }
    Ok(found)
}

/// A table of row blocks and one of columnar blocks, on which statements must give the same
/// results; `$` is the table name.
struct Both {
    session: Session,
    // Dropped last.
    _engine: Arc<Engine>,
    _directory: tempfile::TempDir,
}

impl Both {
    /// Creates both tables with these columns; `split` follows their options.
    fn of(columns: &str, split: &str) -> Both {
        let directory = tempfile::tempdir().expect("there is a place for files");
        let store = Store::open(directory.path(), Options::default()).expect("it opens");
        let engine = Engine::open(store, sql::EngineOptions::default()).expect("it opens");
        let session = Session::open(&engine, SessionOptions { user: "bennu".to_owned() });
        let mut both = Both { session, _engine: engine, _directory: directory };
        for (table, encoding) in [("r", "ROW"), ("c", "COLUMNAR")] {
            let text = format!(
                "CREATE TABLE {table} ({columns}) DATA_BLOCK_ENCODING = '{encoding}', \
                 f.DATA_BLOCK_ENCODING = 'ROW' {split}"
            );
            run(&mut both.session, &text).expect("the table is made");
        }
        both
    }

    fn run(&mut self, text: &str) -> Vec<String> {
        let session = &mut self.session;
        let [rows, columnar] = ["r", "c"].map(|table| {
            let text = text.replace('$', table);
            run(session, &text).unwrap_or_else(|error| panic!("{text}: {error:?}"))
        });
        assert_eq!(rows, columnar, "{text}");
        rows
    }

    /// Compares the results of these queries. `state`: description for failures.
    fn ask(&mut self, state: &str, questions: &[&str]) {
        for question in questions {
            let rows = self.run(question);
            assert!(!rows.is_empty(), "{state}: {question}");
        }
    }
}

/// Plain scans, filters of low and high selectivity, and nodes above them.
const SCANS: [&str; 15] = [
    "SELECT id, g, v, t, n, d FROM $ ORDER BY id",
    "SELECT x, t FROM $ WHERE d > '2020-06-01' ORDER BY id",
    "SELECT t, id FROM $ WHERE g = 3 ORDER BY id",
    "SELECT n, v FROM $ WHERE id % 50 = 7 AND t <> '' ORDER BY id",
    "SELECT d, n FROM $ WHERE g >= 0 OR g IS NULL ORDER BY id",
    "SELECT t FROM $ WHERE n IS NULL ORDER BY id",
    "SELECT id, t FROM $ WHERE id BETWEEN 95 AND 305 ORDER BY id",
    "SELECT id FROM $ WHERE v > 100 ORDER BY id DESC LIMIT 7",
    "SELECT id, t FROM $ WHERE n > 3 ORDER BY id LIMIT 5 OFFSET 2",
    "SELECT a.id, b.t FROM $ AS a JOIN $ AS b ON a.id = b.v / 1000 WHERE b.g < 4 ORDER BY 1",
    "SELECT a.g, count(*), sum(b.n) FROM $ AS a JOIN $ AS b ON a.id = b.id GROUP BY a.g ORDER BY 1",
    "SELECT g, count(DISTINCT t), max(d) FROM $ WHERE id % 3 = 1 GROUP BY g ORDER BY g",
    "SELECT count(*) FROM $ WHERE _timestamp > now() - interval '1 hour'",
    "SELECT id, v FROM $ WHERE t LIKE '%9' ORDER BY v DESC NULLS LAST, id LIMIT 10",
    "SELECT count(*), sum(id), min(d), max(n) FROM $",
];

fn values(ids: std::ops::Range<i32>) -> String {
    let row = |n: i32| {
        let or_null =
            |nth: i32, value: String| if n % nth == 0 { "NULL".to_owned() } else { value };
        format!(
            "({n}, {}, {}, 'text {n}', {}, {})",
            or_null(13, (n % 10).to_string()),
            or_null(7, (n * 1000).to_string()),
            or_null(11, format!("{}.{:02}", n % 40, n % 100)),
            or_null(17, format!("date '2020-01-01' + {}", n % 900)),
        )
    };
    ids.map(row).collect::<Vec<_>>().join(", ")
}

const COLUMNS: &str =
    "id int PRIMARY KEY, g int, v bigint, t text, n numeric(12, 2), d date, f.x int DEFAULT 1";

/// Compares scans over store files, the memstore and uncommitted writes.
fn check_scans_at_all_locations(split: &str) {
    let mut both = Both::of(COLUMNS, split);
    both.run(&format!("INSERT INTO $ VALUES {}", values(0..700)));
    both.ask("in the memstore", &SCANS);
    both.run("FLUSH $");
    both.ask("in a file", &SCANS);
    both.run("UPDATE $ SET t = 'new ' || id, n = NULL WHERE id % 29 = 0");
    both.run("DELETE FROM $ WHERE id % 31 = 0");
    both.run(&format!("INSERT INTO $ VALUES {}", values(1000..1100)));
    both.ask("under a memstore", &SCANS);
    both.run("FLUSH $");
    both.ask("in two files", &SCANS);
    both.run("BEGIN");
    both.run("DELETE FROM $ WHERE id BETWEEN 200 AND 220");
    both.run("UPDATE $ SET v = -v WHERE id % 100 = 1");
    both.run(&format!("INSERT INTO $ VALUES {}", values(2000..2020)));
    both.ask("under the transaction's own rows", &SCANS);
    both.run("SELECT id, t FROM $ WHERE g = 5 AND id < 300 ORDER BY id FOR UPDATE");
    both.run("ROLLBACK");
    both.run("MAJOR COMPACT $");
    both.ask("after a major compaction", &SCANS);
    both.run("ALTER TABLE $ ADD COLUMN f.e int DEFAULT 5");
    both.run("ALTER TABLE $ ADD COLUMN h int DEFAULT 6");
    both.run("INSERT INTO $ SELECT id + 5000, g, v, t, n, d, id, id, id FROM $ WHERE id < 50");
    let of_two_schemas = [
        "SELECT * FROM $ ORDER BY id",
        "SELECT e, count(*), sum(n) FROM $ GROUP BY e ORDER BY e",
        "SELECT h, count(*), sum(id) FROM $ WHERE h <> 7 GROUP BY h ORDER BY h",
    ];
    both.ask("in two schemas", &of_two_schemas);
    both.run("FLUSH $");
    both.ask("in files of two schemas", &of_two_schemas);
    both.run("ALTER TABLE $ DROP COLUMN g");
    both.ask(
        "without a column",
        &["SELECT * FROM $ ORDER BY id", "SELECT t FROM $ WHERE x > 9 ORDER BY id"],
    );
    both.run("MAJOR COMPACT $");
    both.ask("without a column, rewritten", &of_two_schemas);
}

#[test]
fn scans_of_one_region() {
    check_scans_at_all_locations("");
}

#[test]
fn scans_of_several_regions() {
    check_scans_at_all_locations("SPLIT ON (100, 300, 650)");
}

#[test]
fn scans_of_salt_buckets() {
    check_scans_at_all_locations(", SALT_BUCKETS = 3");
}

#[test]
fn columnar_blocks_match_row_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path(), Options::default()).unwrap();
    let engine = Engine::open(Arc::clone(&store), sql::EngineOptions::default()).unwrap();
    let mut session = Session::open(&engine, SessionOptions { user: "bennu".to_owned() });
    let columns = "(id int PRIMARY KEY, g int, v bigint, t text)";
    let mut create = |table: &str, options: &str| {
        run(&mut session, &format!("CREATE TABLE {table} {columns} WITH ({options})"))
    };
    create("r", "DATA_BLOCK_ENCODING = 'ROW', versions = 3").unwrap();
    create("c", "DATA_BLOCK_ENCODING = 'COLUMNAR', compression = 'none', versions = 3").unwrap();
    let refused = create("d", "data_block_encoding = 'sparse'").unwrap_err();
    assert_eq!(refused.sqlstate, "22023");
    let values: Vec<String> = (0..500)
        .map(|n| match n % 7 {
            0 => format!("({n}, {}, NULL, 'text {n}')", n % 10),
            _ => format!("({n}, {}, {}, 'text {n}')", n % 10, n * 1000),
        })
        .collect();
    let mut both = |text: &str| {
        let [rows, columnar] =
            ["r", "c"].map(|table| run(&mut session, &text.replace('$', table)).unwrap());
        assert_eq!(rows, columnar, "{text}");
        rows
    };
    both(&format!("INSERT INTO $ VALUES {}", values.join(", ")));
    let questions = [
        "SELECT count(*), sum(v), count(v), min(t), max(id) FROM $",
        "SELECT g, sum(v), count(*) FROM $ WHERE id >= 135 GROUP BY g ORDER BY g",
        "SELECT sum(v) FROM $ WHERE t < 'text 3' AND id < 400",
        "SELECT * FROM $ WHERE id = 43",
        "SELECT t, v FROM $ WHERE g = 3 ORDER BY id DESC",
    ];
    let count = |rows: &[String]| rows[0].clone();
    for change in [
        "FLUSH $",
        "UPDATE $ SET v = 1 WHERE id < 20",
        "DELETE FROM $ WHERE id % 50 = 0",
        "FLUSH $",
        "MAJOR COMPACT $",
        "DELETE FROM $ WHERE id = 43",
    ] {
        both(change);
        let answers: Vec<Vec<String>> = questions.iter().map(|question| both(question)).collect();
        assert!(count(&answers[0]).starts_with("[Int8("), "{answers:?}");
    }
    assert_eq!(both("SELECT count(*) FROM $"), ["[Int8(489)]"]);
}
