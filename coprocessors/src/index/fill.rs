//! Index fill: adds the entries of existing rows to an index that the table's observers already
//! maintain, with concurrent writers (CREATE INDEX CONCURRENTLY).

use std::sync::Arc;

use store::transaction::{LockMode, LockWait, Locking, RowExpectation};
use store::{CellBatch, Get, Mutation, Scan, TableId, Transaction};
use types::expr::EvalContext;

use super::IndexSpec;
use super::build::duplicated;
use super::entry::{EntryWriter, base_key, base_reads};
use crate::change::RowState;
use crate::row::ReadColumns;
use crate::violation;

/// Rows that are read at a time.
const FILL_ROWS: usize = 1000;

/// Inputs of an index fill.
#[derive(Clone, Copy)]
pub struct IndexFill<'a> {
    /// The table.
    pub base_table: TableId,
    /// The index.
    pub spec: &'a IndexSpec,
    /// Evaluation context of expressions.
    pub context: &'a EvalContext,
    /// First row whose entry may be missing.
    pub first_row: &'a [u8],
}

/// Fills an index that the table's observers already maintain, with concurrent writers.
///
/// Rows are processed in batches, each in its own transaction, which `begin` returns. A row is
/// locked and its entry computed from its newest version, so that no entry of an older version is
/// written. A transaction that waits for a row lock holds no other.
///
/// `note` is called in the transaction that completes a batch, with its last row and the number of
/// rows so far.
///
/// # Errors
///
/// As [`index_build`](super::index_build), and those of `note`; the index is then partially filled.
pub fn index_fill(
    begin: &dyn Fn() -> Arc<Transaction>,
    inputs: &IndexFill<'_>,
    mut note: impl FnMut(&Transaction, &[u8], u64) -> store::Result<()>,
) -> store::Result<()> {
    let IndexFill { base_table, spec, context, first_row } = *inputs;
    let reader = begin();
    reader.begin_statement();
    let range = Scan::range(first_row.to_vec(), None);
    let mut scanner = reader.scan(base_table, base_reads(spec).scan(range))?;
    let mut rows_of = LockedRows::new(base_table, spec, context)?;
    let mut rows = CellBatch::new();
    let mut row_count = 0;
    while scanner.next_batch(FILL_ROWS, &mut rows)? {
        row_count += rows.row_count() as u64;
        let keys: Vec<&[u8]> = rows.rows().map(|row| row.key()).collect();
        let mut done = 0;
        while done < keys.len() {
            let transaction = begin();
            transaction.begin_statement();
            done += fill(&mut rows_of, &transaction, &keys[done..])?;
            if let Some(last) = keys.last().filter(|_| done == keys.len()) {
                note(&transaction, last, row_count)?;
            }
            transaction.commit()?;
        }
    }
    Ok(())
}

/// Writes the entries of the first of some rows and returns their number. Stops before a row that
/// another transaction has locked; waits if that is the first.
fn fill(
    rows: &mut LockedRows<'_>,
    transaction: &Transaction,
    keys: &[&[u8]],
) -> store::Result<usize> {
    for (done, key) in keys.iter().enumerate() {
        let wait = if done == 0 { LockWait::Wait } else { LockWait::Skip };
        if !rows.lock(transaction, key, wait)? {
            return Ok(done);
        }
        let entries = rows.entries(transaction, key)?;
        add(rows, transaction, (key, entries))?;
    }
    Ok(keys.len())
}

/// Writes the entries of a locked row, except for a unique one that exists.
fn add(
    rows: &LockedRows<'_>,
    transaction: &Transaction,
    (row_key, mut entries): (&[u8], Vec<Mutation>),
) -> store::Result<()> {
    let (spec, table) = (rows.spec, rows.spec.store_table);
    if let [entry] = entries.as_slice()
        && entry.expect == RowExpectation::Absent
    {
        let mut found = CellBatch::new();
        transaction.lock_row(table, &entry.row, LockMode::Exclusive, LockWait::Wait)?;
        if transaction.get_locked(table, &Get::new(entry.row.clone()), &mut found)? {
            let owner = base_key(spec, &found.row(0));
            return match owner.map_err(|error| rows.value_error(error))? == row_key {
                true => Ok(()),
                false => Err(duplicated(spec, (&entry.row, &entry.puts()), rows.writer.style())),
            };
        }
    }
    for entry in &mut entries {
        (entry.locking, entry.expect) = (Locking::Covered, RowExpectation::Anything);
    }
    match entries.is_empty() {
        true => Ok(()),
        false => transaction.mutate(table, entries).map(drop),
    }
}

/// Rows of the base table that a transaction locks one by one, and their entries.
pub(super) struct LockedRows<'s> {
    base_table: TableId,
    pub(super) spec: &'s IndexSpec,
    pub(super) writer: EntryWriter<'s>,
    reads: ReadColumns,
    cells: CellBatch,
}

impl<'s> LockedRows<'s> {
    pub(super) fn new(
        base_table: TableId,
        spec: &'s IndexSpec,
        context: &'s EvalContext,
    ) -> store::Result<LockedRows<'s>> {
        let writer = EntryWriter::new(spec, context)
            .map_err(|error| violation::value_error(&spec.name, error))?;
        let reads = ReadColumns::of_whole_rows(&spec.base_layout);
        Ok(LockedRows { base_table, spec, writer, reads, cells: CellBatch::new() })
    }

    /// Locks a row, as [`Transaction::lock_row`] does.
    pub(super) fn lock(
        &self,
        transaction: &Transaction,
        row_key: &[u8],
        wait: LockWait,
    ) -> store::Result<bool> {
        transaction.lock_row(self.base_table, row_key, LockMode::Exclusive, wait)
    }

    /// Returns the puts of the entries of a locked row.
    pub(super) fn entries(
        &mut self,
        transaction: &Transaction,
        row_key: &[u8],
    ) -> store::Result<Vec<Mutation>> {
        self.cells.clear();
        let get = self.reads.get(Get::new(row_key.to_vec()));
        if !transaction.get_locked(self.base_table, &get, &mut self.cells)? {
            return Ok(Vec::new());
        }
        let state = RowState::of(&self.cells.row(0), &self.spec.base_layout);
        let writer = &mut self.writer;
        let mut entries = || {
            if !writer.read(row_key, &state)? {
                return Ok(Vec::new());
            }
            let cells = writer.cells(&state)?;
            let keys = writer.entry_keys(row_key)?.into_iter();
            Ok(keys.map(|key| writer.put(key, cells.clone())).collect())
        };
        entries().map_err(|error| violation::value_error(&self.spec.name, error))
    }

    pub(super) fn value_error(&self, error: types::Error) -> store::Error {
        violation::value_error(&self.spec.name, error)
    }
}
