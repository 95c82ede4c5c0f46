//! Fills an index from the rows that are there already.

use store::transaction::{Expect, Locking};
use store::{CellBatch, Mutation, Scan, TableId, Transaction};

use super::IndexSpec;
use super::entry::{EntryWriter, base_columns, duplicate_veto};
use crate::change::RowState;
use crate::row;
use crate::violation::{self, DuplicateKey};

/// Rows that are read, and entries that are staged, at a time.
const BUILD_ROWS: usize = 1000;

/// Fills the index from all rows of the base table, region by region, in the caller's transaction,
/// and returns the number of entries.
///
/// The caller keeps other writers away from the table until it has committed: entries take no
/// locks.
///
/// # Errors
///
/// `23505` `could not create unique index "i"` if a key occurs twice; what a functional key raises.
pub fn index_build(
    transaction: &Transaction,
    base_table: TableId,
    spec: &IndexSpec,
) -> store::Result<u64> {
    let families = row::families_of(&spec.base_layout, &base_columns(spec));
    let mut scanner = transaction.scan(base_table, Scan { families, ..Scan::all() })?;
    let mut writer =
        EntryWriter::new(spec).map_err(|error| violation::value_error(&spec.name, error))?;
    let mut rows = CellBatch::new();
    let mut entry_count = 0;
    while scanner.next_batch(BUILD_ROWS, &mut rows)? {
        let entries = entries(spec, &mut writer, &rows)?;
        entry_count += entries.len() as u64;
        match transaction.mutate(spec.store_table, entries) {
            Err(store::Error::RowExists { table, row }) if table == spec.store_table => {
                return Err(duplicated(spec, &row));
            }
            outcome => outcome?,
        }
    }
    Ok(entry_count)
}

/// Returns the entries of some rows, in key order.
fn entries(
    spec: &IndexSpec,
    writer: &mut EntryWriter<'_>,
    rows: &CellBatch,
) -> store::Result<Vec<Mutation>> {
    let mut entries = Vec::with_capacity(rows.row_count());
    for row in rows.rows() {
        let state = RowState::of(&row, spec.base_layout.family_count);
        let entry = entry(writer, row.key(), &state)
            .map_err(|error| violation::value_error(&spec.name, error))?;
        entries.extend(entry.map(|entry| Mutation { locking: Locking::Covered, ..entry }));
    }
    entries.sort_unstable_by(|a, b| a.row.cmp(&b.row));
    let is_twice =
        |pair: &&[Mutation]| pair[0].expect == Expect::Absent && pair[0].row == pair[1].row;
    match entries.windows(2).find(is_twice) {
        Some(pair) => Err(duplicated(spec, &pair[0].row)),
        None => Ok(entries),
    }
}

/// Returns the entry of a row, if it has one.
fn entry(
    writer: &mut EntryWriter<'_>,
    row_key: &[u8],
    state: &RowState<'_>,
) -> types::Result<Option<Mutation>> {
    if !writer.read(row_key, &state.packed())? {
        return Ok(None);
    }
    let key = writer.key(row_key)?;
    Ok(Some(writer.put(key, state.timestamp())?))
}

fn duplicated(spec: &IndexSpec, index_key: &[u8]) -> store::Error {
    match duplicate_veto(spec, index_key, None, |key: &DuplicateKey<'_>| key.duplicated(&spec.name))
    {
        Ok(veto) => store::Error::Vetoed(Box::new(veto)),
        Err(error) => violation::value_error(&spec.name, error),
    }
}
