//! Index check: compares an index with its table in both directions.

use ahash::AHashMap;
use store::{CellBatch, Get, Scan, TableId, Transaction};
use types::expr::EvalContext;

use super::IndexSpec;
use super::entry::{EntryCells, EntryWriter, base_key, base_reads, cells_of, entries_equal};
use crate::change::RowState;
use crate::row::ReadColumns;
use crate::violation;

/// Rows that are compared at a time.
const CHECK_ROWS: usize = 1000;

/// Differences between an index and its table. An entry that expires at another time than its row
/// counts as one with other values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IndexDifference {
    /// Rows of the table.
    pub row_count: u64,
    /// Entries of the index.
    pub entry_count: u64,
    /// Rows whose entry is missing or has other values.
    pub missing: u64,
    /// Entries without a matching row.
    pub extra: u64,
}

/// Compares an index with its table under the transaction's snapshot.
///
/// # Errors
///
/// `XX001` if rows do not decode; errors of functional keys.
pub fn check(
    transaction: &Transaction,
    base_table: TableId,
    spec: &IndexSpec,
) -> store::Result<IndexDifference> {
    let mut difference = IndexDifference::default();
    check_rows(transaction, base_table, spec, &mut difference)?;
    check_entries(transaction, base_table, spec, &mut difference)?;
    Ok(difference)
}

fn check_rows(
    transaction: &Transaction,
    base_table: TableId,
    spec: &IndexSpec,
    difference: &mut IndexDifference,
) -> store::Result<()> {
    let mut scanner = transaction.scan(base_table, base_reads(spec).scan(Scan::all()))?;
    let value_error = |error| violation::value_error(&spec.name, error);
    let context = EvalContext::default();
    let mut writer = EntryWriter::new(spec, &context).map_err(value_error)?;
    let mut rows = CellBatch::new();
    let mut found = CellBatch::new();
    while scanner.next_batch(CHECK_ROWS, &mut rows)? {
        difference.row_count += rows.row_count() as u64;
        let mut gets = Vec::with_capacity(rows.row_count());
        let mut wanted: Vec<EntryCells> = Vec::with_capacity(rows.row_count());
        for row in rows.rows() {
            let state = RowState::of(&row, &spec.base_layout);
            if !writer.read(row.key(), &state).map_err(value_error)? {
                continue;
            }
            gets.push(Get::new(writer.key(row.key()).map_err(value_error)?));
            wanted.push(writer.cells(&state).map_err(value_error)?);
        }
        found.clear();
        transaction.multi_get(spec.store_table, &gets, &mut found)?;
        let entries: AHashMap<&[u8], EntryCells> =
            found.rows().map(|entry| (entry.key(), cells_of(spec, &entry))).collect();
        let is_missing = |(get, wanted): &(&Get, &EntryCells)| {
            let entry = entries.get(get.row.as_slice());
            entry.is_none_or(|entry| !entries_equal(spec, entry, wanted))
        };
        difference.missing += gets.iter().zip(&wanted).filter(is_missing).count() as u64;
    }
    Ok(())
}

fn check_entries(
    transaction: &Transaction,
    base_table: TableId,
    spec: &IndexSpec,
    difference: &mut IndexDifference,
) -> store::Result<()> {
    let whole_row = ReadColumns::of_whole_rows(&spec.base_layout);
    let mut scanner = transaction.scan(spec.store_table, Scan::all())?;
    let value_error = |error| violation::value_error(&spec.name, error);
    let context = EvalContext::default();
    let mut writer = EntryWriter::new(spec, &context).map_err(value_error)?;
    let mut entries = CellBatch::new();
    let mut found = CellBatch::new();
    while scanner.next_batch(CHECK_ROWS, &mut entries)? {
        difference.entry_count += entries.row_count() as u64;
        let mut gets = Vec::with_capacity(entries.row_count());
        for entry in entries.rows() {
            let key = base_key(spec, &entry).map_err(value_error)?;
            gets.push(whole_row.get(Get::new(key)));
        }
        found.clear();
        transaction.multi_get(base_table, &gets, &mut found)?;
        let mut expected: AHashMap<&[u8], Vec<u8>> = AHashMap::with_capacity(found.row_count());
        for row in found.rows() {
            let state = RowState::of(&row, &spec.base_layout);
            if !writer.read(row.key(), &state).map_err(value_error)? {
                continue;
            }
            expected.insert(row.key(), writer.key(row.key()).map_err(value_error)?);
        }
        for (entry, get) in entries.rows().zip(&gets) {
            let is_of_row = expected.get(get.row.as_slice()).is_some_and(|key| key == entry.key());
            difference.extra += u64::from(!is_of_row);
        }
    }
    Ok(())
}
