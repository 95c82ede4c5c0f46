//! Fills an index from the rows that are there already: at once, while nobody writes to the table,
//! or row by row beside writers, who keep the index from the start.

use std::sync::Arc;

use store::transaction::{Expect, LockMode, LockWait, Locking};
use store::{CellBatch, Get, Mutation, Scan, TableId, Transaction};

use types::expr::EvalContext;
use types::text::TextStyle;

use super::IndexSpec;
use super::entry::{EntryWriter, after_index_keys, base_families, base_key, duplicate_veto};
use crate::change::RowState;
use crate::violation::{self, DuplicateKey};

/// Rows that are read, and entries that are staged, at a time.
const BUILD_ROWS: usize = 1000;

/// A row key, and what is put there: families and values.
type Entry = (Vec<u8>, Vec<(u8, Vec<u8>)>);

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
    context: &EvalContext,
) -> store::Result<u64> {
    let families = base_families(spec);
    let mut scanner = transaction.scan(base_table, Scan { families, ..Scan::all() })?;
    let mut writer = EntryWriter::new(spec, context)
        .map_err(|error| violation::value_error(&spec.name, error))?;
    let mut rows = CellBatch::new();
    let mut entry_count = 0;
    while scanner.next_batch(BUILD_ROWS, &mut rows)? {
        let entries = entries(spec, &mut writer, &rows)?;
        entry_count += entries.len() as u64;
        match transaction.mutate(spec.store_table, entries) {
            Err(store::Error::RowExists { table, row, puts }) if table == spec.store_table => {
                return Err(duplicated(spec, (&row, &puts), &context.style));
            }
            outcome => outcome?,
        }
    }
    if spec.unique_later
        && let Some((index_key, puts)) = first_duplicate(transaction, spec)?
    {
        return Err(duplicated(spec, (&index_key, &puts), &context.style));
    }
    Ok(entry_count)
}

/// Returns the row key, and the values, of an entry whose index keys another one has.
fn first_duplicate(transaction: &Transaction, spec: &IndexSpec) -> store::Result<Option<Entry>> {
    let value_error = |error| violation::value_error(&spec.name, error);
    // The entries are of this transaction.
    transaction.begin_statement();
    let mut scanner = transaction.scan(spec.store_table, Scan::all())?;
    let mut entries = CellBatch::new();
    let mut last = Vec::new();
    while scanner.next_batch(BUILD_ROWS, &mut entries)? {
        for entry in entries.rows() {
            let key = entry.key();
            let rest = after_index_keys(spec, key).map_err(value_error)?;
            let keys = &key[..key.len() - rest.len()];
            let values = spec.layout.decode_key(key).map_err(value_error)?;
            if keys == last.as_slice() && !spec.are_apart(&values[..spec.keys.len()]) {
                let puts = entry.cells().map(|cell| (cell.family, cell.value.to_vec()));
                return Ok(Some((key.to_vec(), puts.collect())));
            }
            keys.clone_into(&mut last);
        }
    }
    Ok(None)
}

/// Fills an index that the table's observers keep already, beside writers, and returns the number
/// of rows that were looked at.
///
/// Rows are taken in pieces, each in a transaction of its own that `begin` returns: a row is
/// locked, and its entry computed from its newest version, so that no entry of an older one comes
/// back. Whoever is to wait for a row holds no other.
///
/// # Errors
///
/// As [`index_build`]; the index has some entries then.
pub fn index_fill(
    begin: &dyn Fn() -> Arc<Transaction>,
    base_table: TableId,
    spec: &IndexSpec,
    context: &EvalContext,
) -> store::Result<u64> {
    let reader = begin();
    reader.begin_statement();
    let families = base_families(spec);
    let mut scanner = reader.scan(base_table, Scan { families, ..Scan::all() })?;
    let mut filler = Filler {
        base_table,
        spec,
        writer: EntryWriter::new(spec, context)
            .map_err(|error| violation::value_error(&spec.name, error))?,
        cells: CellBatch::new(),
    };
    let mut rows = CellBatch::new();
    let mut row_count = 0;
    while scanner.next_batch(BUILD_ROWS, &mut rows)? {
        row_count += rows.row_count() as u64;
        let keys: Vec<&[u8]> = rows.rows().map(|row| row.key()).collect();
        let mut done = 0;
        while done < keys.len() {
            let transaction = begin();
            transaction.begin_statement();
            done += filler.fill(&transaction, &keys[done..])?;
            transaction.commit()?;
        }
    }
    Ok(row_count)
}

/// Writes entries of rows beside others who write.
struct Filler<'s> {
    base_table: TableId,
    spec: &'s IndexSpec,
    writer: EntryWriter<'s>,
    cells: CellBatch,
}

impl Filler<'_> {
    /// Writes the entries of the first of some rows; returns of how many. It ends before a row that
    /// another transaction has locked, unless that is the first.
    fn fill(&mut self, transaction: &Transaction, keys: &[&[u8]]) -> store::Result<usize> {
        for (done, key) in keys.iter().enumerate() {
            let wait = if done == 0 { LockWait::Wait } else { LockWait::Skip };
            if !transaction.lock_row(self.base_table, key, LockMode::Exclusive, wait)? {
                return Ok(done);
            }
            self.cells.clear();
            let get = Get::new(key.to_vec());
            if transaction.get_locked(self.base_table, &get, &mut self.cells)? {
                self.add(transaction, key)?;
            }
        }
        Ok(keys.len())
    }

    /// Writes the entry of the row in `cells`, if it has one and it is not there.
    fn add(&mut self, transaction: &Transaction, row_key: &[u8]) -> store::Result<()> {
        let value_error = |error| violation::value_error(&self.spec.name, error);
        let state = RowState::of(&self.cells.row(0), self.spec.base_layout.family_count);
        let entry = entry(&mut self.writer, row_key, &state).map_err(value_error)?;
        let Some(entry) = entry else { return Ok(()) };
        if entry.expect == Expect::Absent {
            let (table, mut found) = (self.spec.store_table, CellBatch::new());
            transaction.lock_row(table, &entry.row, LockMode::Exclusive, LockWait::Wait)?;
            if transaction.get_locked(table, &Get::new(entry.row.clone()), &mut found)? {
                let owner = base_key(self.spec, &found.row(0)).map_err(value_error)?;
                return match owner == row_key {
                    true => Ok(()),
                    false => {
                        Err(duplicated(self.spec, (&entry.row, &entry.puts()), self.writer.style()))
                    }
                };
            }
        }
        let covered = Mutation { locking: Locking::Covered, expect: Expect::Anything, ..entry };
        transaction.mutate(self.spec.store_table, vec![covered]).map(drop)
    }
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
        Some(pair) => Err(duplicated(spec, (&pair[0].row, &pair[0].puts()), writer.style())),
        None => Ok(entries),
    }
}

/// Returns the entry of a row, if it has one.
fn entry(
    writer: &mut EntryWriter<'_>,
    row_key: &[u8],
    state: &RowState<'_>,
) -> types::Result<Option<Mutation>> {
    if !writer.read(row_key, state)? {
        return Ok(None);
    }
    let key = writer.key(row_key)?;
    Ok(Some(writer.put(key, state)?))
}

fn duplicated(
    spec: &IndexSpec,
    (index_key, puts): (&[u8], &[(u8, Vec<u8>)]),
    style: &TextStyle,
) -> store::Error {
    let packed = puts.iter().find(|(family, _)| *family == 0).map(|(_, value)| value.as_slice());
    let veto = spec.layout.unpack(index_key, &[packed]).and_then(|values| {
        let duplicated = |key: &DuplicateKey<'_>| key.duplicated(&spec.name);
        duplicate_veto(spec, index_key, (Some(&values), style), duplicated)
    });
    match veto {
        Ok(veto) => store::Error::Vetoed(Box::new(veto)),
        Err(error) => violation::value_error(&spec.name, error),
    }
}
