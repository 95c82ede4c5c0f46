//! DATA_BLOCK_ENCODING = COLUMNAR changes how rows are stored, not what they are: every answer is
//! the same from a table of row blocks.

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

#[test]
fn answers_are_those_of_row_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path(), Options::default()).unwrap();
    let engine = Engine::open(Arc::clone(&store), sql::EngineOptions::default()).unwrap();
    let mut session = Session::open(&engine, SessionOptions { user: "bennu".to_owned() });
    let columns = "(id int PRIMARY KEY, g int, v bigint, t text)";
    let mut create = |table: &str, options: &str| {
        run(&mut session, &format!("CREATE TABLE {table} {columns} WITH ({options})"))
    };
    create("r", "versions = 3").unwrap();
    create("c", "DATA_BLOCK_ENCODING = 'COLUMNAR', compression = 'none', versions = 3").unwrap();
    let refused = create("d", "data_block_encoding = 'diff'").unwrap_err();
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
