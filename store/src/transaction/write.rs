//! How a batch gets into a transaction: locks, expectations, observers, staging.
//!
//! # Invariants
//!
//! 1. A batch that observers see, or that expects anything, names no row twice: where a row comes
//!    again the batch is cut in two, so that the state before a mutation is always what was staged
//!    before it.
//! 2. A batch is staged whole, with what observers added to it, or not at all.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::cell::CellBatch;
use crate::cell::{ROW_BYTES_MAX, Timestamp};
use crate::descriptor::TableId;
use crate::error::{Error, Result};
use crate::lock::Taken;
use crate::mutation::{Edit, Expect, LockMode, LockWait, Locking, Mutation, Previous};
use crate::observer::ObserverContext;
use crate::scan::Get;
use crate::table::Table;
use crate::transaction::Transaction;

/// How far observers may call each other: index of a table whose index table has observers …
const OBSERVER_DEPTH_MAX: usize = 16;

/// What the observers of a batch are given.
struct Observed<'a> {
    transaction: &'a Transaction,
    table: TableId,
    depth: usize,
}

impl Transaction {
    /// Locks the rows, checks expectations, runs the observers and stages the edits.
    ///
    /// # Errors
    ///
    /// Nothing of the batch is staged then; locks stay until the end of the transaction.
    pub fn mutate(&self, table: TableId, mutations: Vec<Mutation>) -> Result<()> {
        self.check_writable()?;
        let before = self.staging.lock().count();
        let staged = self.stage_batch(table, mutations, 0);
        if staged.is_err() {
            self.unstage(before);
        }
        staged
    }

    /// Returns an error if the transaction may only read.
    pub(super) fn check_writable(&self) -> Result<()> {
        if self.options.read_only {
            return Err(Error::InvalidRequest("cannot write in a read-only transaction".into()));
        }
        Ok(())
    }

    fn stage_batch(&self, table: TableId, mutations: Vec<Mutation>, depth: usize) -> Result<()> {
        let table = self.engine.table(table)?;
        if depth > OBSERVER_DEPTH_MAX {
            return Err(Error::InvalidRequest(format!(
                "observers of table \"{}\" call each other more than {OBSERVER_DEPTH_MAX} deep",
                table.descriptor().name
            )));
        }
        check_batch(&table, &mutations)?;
        let mut rest = mutations;
        while !rest.is_empty() {
            let cut = self.lock_batch(&table, &rest)?;
            let mut batch = rest;
            rest = if cut < batch.len() { batch.split_off(cut) } else { Vec::new() };
            self.check_expectations(&table, &mut batch)?;
            self.observe_and_stage(&table, batch, depth)?;
        }
        Ok(())
    }

    /// Locks rows from the front of the batch until one comes for the second time; returns how
    /// many.
    fn lock_batch(&self, table: &Table, batch: &[Mutation]) -> Result<usize> {
        let observed = table.is_observed();
        let mut seen: HashSet<&[u8], ahash::RandomState> = HashSet::default();
        let mut seen_count = 0;
        for (index, mutation) in batch.iter().enumerate() {
            let taken = match mutation.locking {
                Locking::Row => {
                    self.lock_in(table, &mutation.row, LockMode::Exclusive, LockWait::Wait)?
                }
                Locking::Covered => Taken::Held,
            };
            // A row whose lock is new cannot have been here before.
            let distinct_wanted = observed || mutation.expect == Expect::Absent;
            if taken == Taken::Held && distinct_wanted && batch.len() > 1 {
                seen.extend(batch[seen_count..index].iter().map(|earlier| earlier.row.as_slice()));
                seen_count = index;
                if seen.contains(mutation.row.as_slice()) {
                    return Ok(index);
                }
            }
        }
        Ok(batch.len())
    }

    fn check_expectations(&self, table: &Table, batch: &mut [Mutation]) -> Result<()> {
        let mut found = CellBatch::new();
        let mut get = Get::new(Vec::new());
        for mutation in batch.iter_mut().filter(|mutation| mutation.expect == Expect::Absent) {
            found.clear();
            get.row.clear();
            get.row.extend_from_slice(&mutation.row);
            if self.get_newest(table, &get, &mut found)? {
                return Err(Error::RowExists { table: table.id(), row: mutation.row.clone() });
            }
            mutation.previous = Previous::Absent;
        }
        Ok(())
    }

    fn observe_and_stage(
        &self,
        table: &Arc<Table>,
        mut batch: Vec<Mutation>,
        depth: usize,
    ) -> Result<()> {
        let chain = table.chain();
        if !chain.is_empty() {
            let context = Observed { transaction: self, table: table.id(), depth };
            chain.pre_batch(&context, &mut batch)?;
            check_batch(table, &batch)?;
        }
        let mut staging = self.staging.lock();
        self.staged.store(true, Ordering::Release);
        staging.stage(table, &batch);
        if chain.wants_post_batch() {
            staging.keep(table.id(), chain, batch);
        }
        self.charge(&mut staging)
    }
}

impl ObserverContext for Observed<'_> {
    fn table(&self) -> TableId {
        self.table
    }

    fn get(&self, table: TableId, get: &Get, out: &mut CellBatch) -> Result<bool> {
        self.transaction.get_locked(table, get, out)
    }

    fn lock(&self, table: TableId, row: &[u8]) -> Result<()> {
        self.transaction.lock_row(table, row, LockMode::Exclusive, LockWait::Wait)?;
        Ok(())
    }

    fn add(&self, table: TableId, mutations: Vec<Mutation>) -> Result<()> {
        self.transaction.stage_batch(table, mutations, self.depth + 1)
    }
}

/// Checks that rows and families are such as the table can have.
fn check_batch(table: &Table, batch: &[Mutation]) -> Result<()> {
    let descriptor = table.descriptor();
    let family_count = descriptor.families.len();
    for mutation in batch {
        if mutation.row.len() > ROW_BYTES_MAX {
            return Err(Error::InvalidRequest(format!(
                "row key of {} bytes is longer than {ROW_BYTES_MAX} bytes",
                mutation.row.len()
            )));
        }
        for edit in &mutation.edits {
            let family = edit.family().unwrap_or(0);
            if usize::from(family) >= family_count {
                return Err(Error::InvalidRequest(format!(
                    "table \"{}\" has no column family {family}",
                    descriptor.name
                )));
            }
            check_edit(edit)?;
        }
    }
    Ok(())
}

fn check_edit(edit: &Edit) -> Result<()> {
    match edit {
        // What the same transaction has put at the commit time.
        Edit::DeleteVersion { .. } | Edit::DeleteFamilyVersion { .. } => Ok(()),
        _ if edit.timestamp() == Some(Timestamp::LATEST) => Err(Error::InvalidRequest(
            "the highest timestamp stands for the time of the commit".into(),
        )),
        Edit::Put { ttl: Some(ttl), .. } if ttl.as_millis() == 0 => {
            Err(Error::InvalidRequest("the TTL of a cell is at least one millisecond".into()))
        }
        _ => Ok(()),
    }
}
