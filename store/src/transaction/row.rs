//! Row mutations: increments, appends and conditional changes, evaluated under the row lock and
//! turned into puts and markers, which are staged like any other mutation, through the observers.
//!
//! # Timestamps
//!
//! A result of an increment or append, and an edit under a condition on a column, must not lie
//! below the version that was read. Usually the commit time is above it. If the version read lies
//! in the future, an increment or append is written one microsecond above it, and an edit under a
//! condition at its timestamp, unless it has an explicit one.

use crate::cell::{CellBatch, CellRef, Timestamp};
use crate::descriptor::TableId;
use crate::error::{Error, Result};
use crate::lock_mode::LockMode;
use crate::mutation::{Edit, Mutation};
use crate::observer::{Flow, Hooks, RegionChain};
use crate::row_mutation::{ColumnName, Condition, RowChange, RowMutation, WrittenValue};
use crate::scan::{Get, TimeRange};
use crate::table::Table;
use crate::transaction::Transaction;
use crate::transaction::row_lock::RowLockRequest;
use crate::transaction::write::BatchOrigin;

/// A row mutation in execution.
struct RowMutationRun<'a> {
    transaction: &'a Transaction,
    table: &'a Table,
    /// Time range of the versions to read.
    time_range: TimeRange,
    /// Timestamp of edits without one; `None` for the commit time.
    timestamp: Option<Timestamp>,
    /// True if observers have seen the original changes.
    is_seen: bool,
    /// Edits that are not staged yet.
    pending: Mutation,
    written: Vec<WrittenValue>,
}

impl Transaction {
    /// Applies changes to one row, in their order, under its lock; returns the values that
    /// increments and appends have written.
    ///
    /// # Errors
    ///
    /// Nothing is staged then. [`Error::InvalidRequest`] if a value to increment is not 8 bytes
    /// long; those of [`Transaction::mutate`].
    pub fn mutate_row(&self, table: TableId, mutation: RowMutation) -> Result<Vec<WrittenValue>> {
        let written = self.change_row(table, None, mutation)?;
        Ok(written.unwrap_or_default())
    }

    /// Changes one row as [`Transaction::mutate_row`] does, if a condition holds for it under its
    /// lock; otherwise returns `None`.
    ///
    /// # Errors
    ///
    /// As [`Transaction::mutate_row`].
    pub fn check_and_mutate(
        &self,
        table: TableId,
        condition: &Condition,
        mutation: RowMutation,
    ) -> Result<Option<Vec<WrittenValue>>> {
        self.change_row(table, Some(condition), mutation)
    }

    /// Adds to a 64-bit big-endian integer; returns the sum.
    ///
    /// # Errors
    ///
    /// As [`Transaction::mutate_row`].
    pub fn increment(
        &self,
        table: TableId,
        row: &[u8],
        column: ColumnName,
        amount: i64,
    ) -> Result<i64> {
        let written = self.mutate_row(table, RowMutation::new(row).increment(column, amount))?;
        let sum = written.first().and_then(WrittenValue::number);
        sum.ok_or_else(|| {
            Error::InvalidRequest(
                "coprocessor returned a non-numeric result for an increment".into(),
            )
        })
    }

    /// Appends bytes to a value; returns the new value.
    ///
    /// # Errors
    ///
    /// As [`Transaction::mutate_row`].
    pub fn append(
        &self,
        table: TableId,
        row: &[u8],
        column: ColumnName,
        value: &[u8],
    ) -> Result<Vec<u8>> {
        let written = self.mutate_row(table, RowMutation::new(row).append(column, value))?;
        Ok(written.into_iter().next().map(|written| written.value).unwrap_or_default())
    }

    fn change_row(
        &self,
        table: TableId,
        condition: Option<&Condition>,
        mutation: RowMutation,
    ) -> Result<Option<Vec<WrittenValue>>> {
        let table = self.engine.table(table)?;
        self.check_writable()?;
        self.lock_in(&table, &mutation.row, RowLockRequest::change(LockMode::Exclusive))?;
        let before = self.staging.lock().count();
        let done = match table.observers().chain_for(Hooks::ROW_CHANGE) {
            None => self.check_and_change(&table, None, condition, mutation),
            Some(chain) => self.change_observed(&table, &chain, condition, mutation),
        };
        if done.is_err() {
            self.unstage(before);
        }
        done
    }

    /// Changes a row, with the hooks around the check of a condition.
    fn change_observed(
        &self,
        table: &Table,
        chain: &RegionChain,
        condition: Option<&Condition>,
        mut mutation: RowMutation,
    ) -> Result<Option<Vec<WrittenValue>>> {
        let Some(condition) = condition else {
            return self.check_and_change(table, Some(chain), None, mutation);
        };
        let (mut condition, row) = (condition.clone(), mutation.row.clone());
        let write = self.as_write(None);
        let flow = chain.pre_check_and_mutate(write, &mut condition, &mut mutation)?;
        if let Flow::Bypass(answer) = flow {
            return Ok(answer);
        }
        check_row(&row, &mutation)?;
        let mut result = self.check_and_change(table, Some(chain), Some(&condition), mutation)?;
        chain.post_check_and_mutate(write, &condition, &mut result)?;
        Ok(result)
    }

    fn check_and_change(
        &self,
        table: &Table,
        chain: Option<&RegionChain>,
        condition: Option<&Condition>,
        mut mutation: RowMutation,
    ) -> Result<Option<Vec<WrittenValue>>> {
        let mut work = RowMutationRun {
            transaction: self,
            table,
            time_range: mutation.time_range,
            timestamp: None,
            is_seen: mutation.changes.iter().any(RowChange::reads_value),
            pending: Mutation::new(mutation.row.as_slice()),
            written: Vec::new(),
        };
        if let Some(condition) = condition
            && !work.holds(condition)?
        {
            return Ok(None);
        }
        let Some(chain) = chain else {
            work.run(mutation.changes, mutation.ttl)?;
            return Ok(Some(work.written));
        };
        let (write, row) = (self.as_write(None), mutation.row.clone());
        if let Flow::Bypass(written) = chain.pre_row_mutation(write, &mut mutation)? {
            return Ok(Some(written));
        }
        check_row(&row, &mutation)?;
        work.time_range = mutation.time_range;
        work.is_seen = mutation.changes.iter().any(RowChange::reads_value);
        work.run(mutation.changes.clone(), mutation.ttl)?;
        let mut written = work.written;
        chain.post_row_mutation(write, &mutation, &mut written)?;
        Ok(Some(written))
    }
}

/// Checks that observers have not replaced the locked row by another one.
fn check_row(locked: &[u8], mutation: &RowMutation) -> Result<()> {
    match mutation.row == locked {
        true => Ok(()),
        false => {
            Err(Error::InvalidRequest("coprocessor cannot change the row of a row mutation".into()))
        }
    }
}

impl RowMutationRun<'_> {
    fn holds(&mut self, condition: &Condition) -> Result<bool> {
        let mut row = CellBatch::new();
        match condition {
            Condition::Absent(column) => Ok(self.read(column, &mut row)?.is_none()),
            Condition::Value { column, op, value } => {
                let Some(cell) = self.read(column, &mut row)? else { return Ok(false) };
                if self.is_ahead(cell.timestamp) {
                    self.timestamp = Some(cell.timestamp);
                }
                Ok(op.holds(cell.value.cmp(value)))
            }
            Condition::Row(filter) => {
                let get = Get { filter: Some(filter.clone()), ..self.get() };
                self.transaction.get_newest(self.table, &get, &mut row)
            }
        }
    }

    /// Returns a get for the row.
    fn get(&self) -> Get {
        Get { time_range: self.time_range, ..Get::new(self.pending.row.as_slice()) }
    }

    fn run(&mut self, changes: Vec<RowChange>, ttl: Option<std::time::Duration>) -> Result<()> {
        for change in changes {
            match change {
                RowChange::Edit(edit) => {
                    let edit = self.timed(edit);
                    self.pending.edits.push(edit);
                }
                RowChange::Increment { column, amount } => {
                    self.replace(column, ttl, |old| incremented(old, amount))?;
                }
                RowChange::Append { column, value } => {
                    self.replace(
                        column,
                        ttl,
                        |old| Ok([old.unwrap_or_default(), &value].concat()),
                    )?;
                }
                RowChange::DeleteNewest { column } => self.delete_newest(column)?,
            }
        }
        self.stage()
    }

    /// Reads a column, including the effects of the changes so far.
    fn read<'b>(
        &mut self,
        column: &ColumnName,
        row: &'b mut CellBatch,
    ) -> Result<Option<CellRef<'b>>> {
        if self.pending.edits.iter().any(|edit| touches(edit, column)) {
            self.stage()?;
        }
        row.clear();
        let get = self.get().column(column.family, column.qualifier.as_slice());
        if !self.transaction.get_newest(self.table, &get, row)? {
            return Ok(None);
        }
        let row: &CellBatch = row;
        Ok(row.row(0).cells().next())
    }

    /// Puts the value that `change` computes from the newest value of a column.
    fn replace(
        &mut self,
        column: ColumnName,
        ttl: Option<std::time::Duration>,
        change: impl FnOnce(Option<&[u8]>) -> Result<Vec<u8>>,
    ) -> Result<()> {
        let mut row = CellBatch::new();
        let old = self.read(&column, &mut row)?;
        let value = change(old.map(|cell| cell.value))?;
        let ahead = old.map(|cell| cell.timestamp).filter(|at| self.is_ahead(*at));
        self.pending.edits.push(Edit::Put {
            family: column.family,
            qualifier: column.qualifier.clone(),
            // A timestamp that is too high is rejected like any other.
            timestamp: ahead.map(|at| Timestamp(at.0.saturating_add(1))).or(self.timestamp),
            value: value.clone(),
            ttl: ttl.or(old.and_then(|cell| cell.ttl)),
        });
        self.written.push(WrittenValue { column, value });
        Ok(())
    }

    fn delete_newest(&mut self, column: ColumnName) -> Result<()> {
        let mut row = CellBatch::new();
        let Some(cell) = self.read(&column, &mut row)? else { return Ok(()) };
        let (timestamp, staged) = (cell.timestamp, cell.sequence.is_staged());
        let ColumnName { family, qualifier } = column;
        let versions = self.table.descriptor().families[usize::from(family)].versions;
        self.pending.edits.push(if staged && versions == 1 {
            // A put that its own transaction deletes is not part of the commit, so it would not
            // have evicted the version before it.
            let own = (timestamp != Timestamp::LATEST).then_some(timestamp);
            Edit::DeleteColumn { family, qualifier, timestamp: own }
        } else {
            Edit::DeleteVersion { family, qualifier, timestamp }
        });
        Ok(())
    }

    /// Returns whether a committed version may be above the timestamp of the coming commit.
    fn is_ahead(&self, timestamp: Timestamp) -> bool {
        timestamp != Timestamp::LATEST && timestamp > self.transaction.engine.last_timestamp()
    }

    /// Gives an edit without a timestamp that of the version that the condition has read.
    fn timed(&self, mut edit: Edit) -> Edit {
        match &mut edit {
            Edit::Put { timestamp, .. }
            | Edit::DeleteRow { timestamp }
            | Edit::DeleteFamily { timestamp, .. }
            | Edit::DeleteColumn { timestamp, .. } => *timestamp = timestamp.or(self.timestamp),
            Edit::DeleteVersion { .. } | Edit::DeleteFamilyVersion { .. } => {}
        }
        edit
    }

    fn stage(&mut self) -> Result<()> {
        if self.pending.edits.is_empty() {
            return Ok(());
        }
        let rest = Mutation::new(self.pending.row.as_slice());
        let staged = std::mem::replace(&mut self.pending, rest);
        let origin = if self.is_seen { BatchOrigin::RowChange } else { BatchOrigin::Client(None) };
        self.transaction.stage_batch(self.table.id(), vec![staged], origin)
    }
}

fn incremented(old: Option<&[u8]>, amount: i64) -> Result<Vec<u8>> {
    let number = match old {
        None => 0,
        Some(bytes) => i64::from_be_bytes(bytes.try_into().map_err(|_| {
            Error::InvalidRequest(format!(
                "cannot increment a value of {} bytes: counters have 8 bytes",
                bytes.len()
            ))
        })?),
    };
    Ok(number.wrapping_add(amount).to_be_bytes().to_vec())
}

/// Returns whether an edit may change the value of a column.
fn touches(edit: &Edit, column: &ColumnName) -> bool {
    match edit {
        Edit::DeleteRow { .. } => true,
        Edit::DeleteFamily { family, .. } | Edit::DeleteFamilyVersion { family, .. } => {
            *family == column.family
        }
        Edit::Put { family, qualifier, .. }
        | Edit::DeleteColumn { family, qualifier, .. }
        | Edit::DeleteVersion { family, qualifier, .. } => {
            *family == column.family && *qualifier == column.qualifier
        }
    }
}
