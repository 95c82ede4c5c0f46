//! Program that embeds bennu: SQL without a server, and the store below it as a library.
//!
//! Run it with `cargo run --example embedded`.

#![allow(clippy::disallowed_methods, reason = "tests use the system directly")]

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use bennu::{Database, Result, statement};
use store::descriptor::SplitOptions;
use store::transaction::{Commit, TransactionOptions};
use store::{
    CellBatch, ColumnName, Condition, Edit, FamilyDescriptor, Get, Mutation, Options, RowMutation,
    Scan, Store, TableDescriptor, TableId, TimeRange, Timestamp, Transaction,
};

fn main() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let mut out = std::io::stdout().lock();
    with_sql(&directory.path().join("database"), &mut out)?;
    with_cells(&directory.path().join("cells"), &mut out)
}

/// Opens a database in this process and runs statements in a session.
fn with_sql(directory: &Path, out: &mut impl Write) -> Result<()> {
    let database = Database::open(directory, Options::default())?;
    let mut session = database.session("bennu");
    statement::run(
        &mut session,
        "CREATE TABLE visit (page text, day date, visitors bigint, PRIMARY KEY (page, day DESC));
         INSERT INTO visit VALUES ('home', '2024-05-01', 10), ('home', '2024-05-02', 12),
             ('about', '2024-05-02', 3);
         INSERT INTO visit VALUES ('home', '2024-05-02', 1)
             ON CONFLICT (page, day) DO UPDATE SET visitors = visit.visitors + excluded.visitors;",
    )?;
    let totals = "SELECT page, sum(visitors) AS visitors FROM visit GROUP BY page ORDER BY page";
    if let Some(rows) = statement::run(&mut session, totals)?.rows {
        writeln!(out, "{}", rows.render(10))?;
        for row in 0..rows.row_count() {
            writeln!(out, "page {:?}", rows.cell(row, 0).unwrap_or("NULL"))?;
        }
    }
    drop(session);
    database.shut_down()
}

/// The only table of the store, and the index of its only family.
const NOTES: TableId = TableId(1);
const TEXT: u8 = 0;

/// Writes and reads cells: rows, columns and versions as bytes.
fn with_cells(directory: &Path, out: &mut impl Write) -> Result<()> {
    let store = Store::open(directory, Options::default())?;
    let mut family = FamilyDescriptor::new("text");
    family.versions = 3;
    store.create_table(TableDescriptor {
        split_points: vec![b"m".to_vec()],
        split: SplitOptions::default(),
        ..TableDescriptor::new(NOTES, "notes", vec![family])
    })?;

    // A version may be specified; the default is the time of the commit.
    for (micros, value) in [(1_000, "draft"), (2_000, "second draft")] {
        let mut mutation = Mutation::new(*b"apple");
        mutation.edits.push(Edit::Put {
            family: TEXT,
            qualifier: b"body".to_vec(),
            timestamp: Some(Timestamp(micros)),
            value: value.into(),
            ttl: None,
        });
        write(&store, vec![mutation])?;
    }
    // A commit is atomic across rows, tables and regions.
    let last = write(
        &store,
        vec![
            Mutation::new(*b"apple").put(TEXT, *b"body", b"final".to_vec()),
            Mutation::new(*b"zebra").put(TEXT, *b"body", b"stripes".to_vec()),
        ],
    )?;
    writeln!(out, "\ncommitted at {} microseconds", last.0)?;

    // Read-modify-write operations run under the lock of the row: counters, appends, conditions.
    let counted = store.begin(TransactionOptions::default());
    let reads = ColumnName::new(TEXT, *b"reads");
    counted.increment(NOTES, b"apple", reads.clone(), 2)?;
    let once = Condition::Absent(ColumnName::new(TEXT, *b"first_reader"));
    let first =
        RowMutation::new(*b"apple").put(ColumnName::new(TEXT, *b"first_reader"), *b"newton");
    for _ in 0..2 {
        let done =
            counted.check_and_mutate(NOTES, &once, first.clone().increment(reads.clone(), 1))?;
        writeln!(out, "first reader: {}", if done.is_some() { "noted" } else { "known already" })?;
    }
    counted.commit()?.durable.wait()?;

    let reader = read(&store);
    let mut batch = CellBatch::new();
    reader.get(NOTES, &Get::new(*b"apple"), &mut batch)?;
    writeln!(out, "now: {}", show(&batch))?;

    let past = Get { time_range: TimeRange::as_of(Timestamp(1_500)), ..Get::new(*b"apple") };
    batch.clear();
    reader.get(NOTES, &past, &mut batch)?;
    writeln!(out, "as of 1,500: {}", show(&batch))?;

    let all_versions = Scan { max_versions: 3, ..Scan::all() };
    let mut scanner = reader.scan(NOTES, all_versions)?;
    batch.clear();
    while scanner.next_batch(100, &mut batch)? {
        writeln!(out, "scan, all versions: {}", show(&batch))?;
    }
    Ok(store.shut_down()?)
}

/// Commits mutations, waits until they are durable, and returns their version.
fn write(store: &Arc<Store>, mutations: Vec<Mutation>) -> Result<Timestamp> {
    let transaction = store.begin(TransactionOptions::default());
    transaction.mutate(NOTES, mutations)?;
    let Commit { timestamp, durable, .. } = transaction.commit()?;
    durable.wait()?;
    Ok(timestamp)
}

/// Begins a transaction that reads the latest commits.
fn read(store: &Arc<Store>) -> Transaction {
    let transaction =
        store.begin(TransactionOptions { read_only: true, ..TransactionOptions::default() });
    transaction.begin_statement();
    transaction
}

/// Formats cells as `row/qualifier@timestamp=value`, without times of commits.
fn show(batch: &CellBatch) -> String {
    let cells = batch.rows().flat_map(|row| row.cells());
    let words = cells.map(|cell| {
        let at = match cell.timestamp.0 {
            micros @ 0..10_000 => format!("@{micros}"),
            _ => String::new(),
        };
        let text = String::from_utf8_lossy;
        let value = match <[u8; 8]>::try_from(cell.value) {
            Ok(number) if number[0] == 0 => i64::from_be_bytes(number).to_string().into(),
            _ => text(cell.value),
        };
        format!("{}/{}{at}={value}", text(cell.row), text(cell.qualifier))
    });
    words.collect::<Vec<_>>().join(", ")
}
