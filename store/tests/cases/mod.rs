//! Test cases that need threads, randomness, or types that scripts do not have.

mod attached_endpoints;
mod bulk_loads;
mod changed_families;
mod colocated;
mod checkpoints;
mod compactions;
mod concurrent;
mod corpus;
mod damage;
mod direct;
mod directories;
mod endpoints;
mod faults;
pub(crate) mod filter_text;
mod histories;
mod load;
mod memory;
mod model;
mod normalizer;
mod observers;
mod policies;
mod prepared;
mod pressure;
mod quotas;
mod reads;
mod replicas;
mod reverse_scans;
mod script_reads;
pub(crate) mod script_hooks;
pub(crate) mod script_writes;
mod schedules;
mod snapshots;
mod splits;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use store::bulk_load::BulkCell;
use store::descriptor::DataBlockEncoding;
use store::env::fault::FaultEnv;
use store::layout::{SectionKind, ValuePiece, ValueShape};
use store::scanner::ScanStep;
use store::transaction::TransactionOptions;
use store::{
    CellBatch, CellType, FamilyDescriptor, Get, Mutation, Options, Result, Scan, Store,
    TableDescriptor, TableId, Transaction, ValueLayout,
};

/// The table of all cases.
const TABLE: TableId = TableId(1);

/// With `BENNU_SPILL` all transactions spill their staged cells.
fn staged_bytes_max() -> Option<u64> {
    std::env::var_os("BENNU_SPILL").map(|_| 0)
}

fn options(env: &FaultEnv) -> Options {
    let staged_bytes_max = staged_bytes_max();
    let env = Arc::new(env.clone());
    Options { env, memory_bytes: 16 << 20, staged_bytes_max, ..Options::default() }
}

fn open(env: &FaultEnv) -> Result<Arc<Store>> {
    Store::open(Path::new("/data"), options(env))
}

fn descriptor(split_points: &[&str], region_replication: u8) -> TableDescriptor {
    TableDescriptor {
        region_replication,
        split_points: split_points.iter().map(|point| point.as_bytes().to_vec()).collect(),
        ..TableDescriptor::new(TABLE, "t", vec![FamilyDescriptor::new("d")])
    }
}

fn begin(store: &Arc<Store>) -> Transaction {
    let transaction = store.begin(TransactionOptions::default());
    transaction.begin_statement();
    transaction
}

/// Rows with the value of the column that tests write, in order.
type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Returns the rows of a scan, each with its first value.
fn scanned(transaction: &Transaction, table: TableId, scan: Scan) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut scanner = transaction.scan(table, scan).unwrap();
    let (mut batch, mut rows) = (CellBatch::new(), Vec::new());
    while scanner.next_batch(3, &mut batch).unwrap() {
        rows.extend(batch.rows().map(|row| {
            (row.key().to_vec(), row.cells().next().map_or(Vec::new(), |cell| cell.value.to_vec()))
        }));
    }
    rows
}

/// Checks the rows of a table in both directions.
fn check_scans(transaction: &Transaction, table: TableId, rows: &Rows) {
    let mut expected: Vec<_> = rows.clone().into_iter().collect();
    assert_eq!(scanned(transaction, table, Scan::all()), expected);
    expected.reverse();
    assert_eq!(scanned(transaction, table, Scan { reverse: true, ..Scan::all() }), expected);
}

/// Loads rows of column `q` in bulk.
fn load_rows(store: &Arc<Store>, table: TableId, rows: &Rows) {
    let mut load = store.bulk_load(table).unwrap();
    for (row, value) in rows {
        let (family, qualifier, cell_type) = (0, &b"q"[..], CellType::Put);
        load.add(BulkCell { row, family, qualifier, timestamp: None, cell_type, value }).unwrap();
    }
    load.adopt().unwrap();
}

fn put(store: &Arc<Store>, row: &str, value: &str) {
    let transaction = begin(store);
    let mutation = Mutation::new(row).put(0, "q", value.into());
    transaction.mutate(TABLE, vec![mutation]).unwrap();
    transaction.commit().unwrap().durable.wait().unwrap();
}

fn get(transaction: &Transaction, row: &str) -> Result<Option<String>> {
    let mut out = CellBatch::new();
    transaction.get(TABLE, &Get::new(row), &mut out)?;
    Ok(value(&out))
}

fn value(batch: &CellBatch) -> Option<String> {
    let cell = batch.rows().next()?.cells().next()?;
    Some(String::from_utf8_lossy(cell.value).into_owned())
}

/// Returns all rows, read by row, and by columns where possible.
fn scan(transaction: &Transaction) -> Result<Vec<(String, String)>> {
    let rows = scan_rows(transaction)?;
    assert_eq!(scan_columns(transaction)?, rows, "by columns and by rows");
    Ok(rows)
}

/// Returns all rows by one scan: at a replica, the next scan may see more.
fn scan_rows(transaction: &Transaction) -> Result<Vec<(String, String)>> {
    let mut rows = Vec::new();
    let mut scanner = transaction.scan(TABLE, Scan::all())?;
    let mut batch = CellBatch::new();
    while scanner.next_batch(100, &mut batch)? {
        for cell in batch.rows().flat_map(|row| row.cells()) {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            rows.push((text(cell.row), text(cell.value)));
        }
    }
    Ok(rows)
}

/// As `scan_rows`, by columns where possible.
fn scan_columns(transaction: &Transaction) -> Result<Vec<(String, String)>> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut rows = Vec::new();
    let mut scanner = transaction.scan(TABLE, Scan::all())?;
    let mut batch = CellBatch::new();
    loop {
        match scanner.next_columns(100, &mut batch)? {
            ScanStep::End => return Ok(rows),
            ScanStep::Rows => {
                let cells = batch.rows().flat_map(|row| row.cells());
                rows.extend(cells.map(|cell| (text(cell.row), text(cell.value))));
            }
            ScanStep::Columns(slice) => {
                let (mut keys, mut ends) = (Vec::new(), vec![0]);
                slice.append_row_keys(0..slice.row_count(), &mut keys, &mut ends)?;
                for (row, bounds) in ends.windows(2).enumerate() {
                    let mut value = Vec::new();
                    slice.append_value(row, &mut value)?;
                    rows.push((text(&keys[bounds[0] as usize..bounds[1] as usize]), text(&value)));
                }
            }
        }
    }
}

/// A family of small columnar blocks; values of at least a byte match its layout.
fn columnar_family() -> FamilyDescriptor {
    let pieces = vec![ValuePiece::Fixed(0), ValuePiece::Rest(1)];
    FamilyDescriptor {
        data_block_encoding: DataBlockEncoding::Columnar,
        value_layout: ValueLayout {
            sections: vec![SectionKind::Fixed(1), SectionKind::Variable],
            shapes: vec![ValueShape { prefix: Vec::new(), pieces }],
        }
        .into(),
        block_bytes: 150,
        ..FamilyDescriptor::new("d")
    }
}
