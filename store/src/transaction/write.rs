//! Staging of a batch of mutations: row locks, expectations, observers, staged cells.
//!
//! # Invariants
//!
//! 1. A batch with observers names no row twice, and none names a row before a mutation that
//!    expects it to be absent: at a repeated row the batch is cut in two, so that the state before
//!    a mutation is always the state staged before it. Asserted in debug builds.
//! 2. A batch is staged completely, with the mutations that observers added, or not at all:
//!    [`Transaction::mutate`] rolls back to the edits before it.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::admission::count_rows;
use crate::cell::CellBatch;
use crate::cell::{ROW_BYTES_MAX, Timestamp};
use crate::descriptor::TableId;
use crate::error::{Error, Result};
use crate::lock::LockOutcome;
use crate::lock_mode::LockMode;
use crate::mutation::{Edit, LockWait, Locking, Mutation, PreviousRow, RowExpectation};
use crate::observer::{
    Attachment, BatchOutcome, Caller, Hooks, ObservedTransaction, RegionChain, Write,
};
use crate::scan::Get;
use crate::staged::StagedFamilies;
use crate::table::Table;
use crate::transaction::Transaction;
use crate::transaction::row_lock::{RowLock, RowLockRequest};

/// Number of new rows from which it pays to check whether they are all behind the existing rows.
const LOOK_ONCE_MUTATIONS: usize = 8;

/// Origin of a batch.
#[derive(Clone, Copy)]
pub(super) enum BatchOrigin<'a> {
    /// From the client, with its attachment for observers.
    Client(Option<Attachment<'a>>),
    /// From a row mutation whose increments and appends observers have already seen.
    RowChange,
    /// Added by a coprocessor.
    Coprocessor(&'a Caller<'a>),
}

impl Transaction {
    /// Locks the rows, checks expectations, runs the observers and stages the edits.
    ///
    /// # Errors
    ///
    /// Nothing of the batch is staged then; the locks stay until the end of the transaction.
    pub fn mutate(&self, table: TableId, mutations: Vec<Mutation>) -> Result<()> {
        self.mutate_for(table, mutations, None)
    }

    /// As [`Transaction::mutate`], with an [`Attachment`] for the observers: those of the table,
    /// and those of tables to which they add mutations.
    ///
    /// # Errors
    ///
    /// As [`Transaction::mutate`].
    pub fn mutate_with(
        &self,
        table: TableId,
        mutations: Vec<Mutation>,
        attachment: Attachment<'_>,
    ) -> Result<()> {
        self.mutate_for(table, mutations, Some(attachment))
    }

    fn mutate_for(
        &self,
        table: TableId,
        mutations: Vec<Mutation>,
        attachment: Option<Attachment<'_>>,
    ) -> Result<()> {
        self.check_writable()?;
        count_rows(mutations.len() as u64)?;
        let touched = self.engine.table(table)?;
        self.touch_for(&touched, &mutations)?;
        self.stage_or_not(table, mutations, BatchOrigin::Client(attachment))
    }

    fn stage_or_not(
        &self,
        table: TableId,
        mutations: Vec<Mutation>,
        origin: BatchOrigin<'_>,
    ) -> Result<()> {
        let before = self.staging.lock().count();
        let staged = self.stage_batch(table, mutations, origin);
        if staged.is_err() {
            self.unstage(before);
        }
        staged
    }

    /// Returns an error if the transaction is read-only.
    pub(super) fn check_writable(&self) -> Result<()> {
        if self.options.read_only {
            return Err(Error::InvalidRequest("cannot write in a read-only transaction".into()));
        }
        Ok(())
    }

    /// Stages a batch; after an error a part of it may be staged.
    pub(super) fn stage_batch(
        &self,
        table: TableId,
        mutations: Vec<Mutation>,
        origin: BatchOrigin<'_>,
    ) -> Result<()> {
        let table = self.engine.table(table)?;
        let (caller, attachment) = match origin {
            BatchOrigin::Coprocessor(caller) => (Some(caller), caller.attachment),
            BatchOrigin::Client(attachment) => (None, attachment),
            BatchOrigin::RowChange => (None, None),
        };
        caller.map_or(Ok(()), Caller::check_depth)?;
        check_batch(&table, &mutations)?;
        let chain = table.observers().chain_for(Hooks::WRITE);
        let observers =
            chain.as_ref().map(|chain| (chain, Write { attachment, ..self.as_write(caller) }));
        let mut rest = mutations;
        if let Some((chain, write)) = observers
            && !matches!(origin, BatchOrigin::RowChange)
        {
            chain.pre_mutations(write, &mut rest)?;
            check_batch(&table, &rest)?;
        }
        while !rest.is_empty() {
            let cut = self.lock_batch(&table, &rest, observers.is_some())?;
            let mut batch = rest;
            rest = if cut < batch.len() { batch.split_off(cut) } else { Vec::new() };
            debug_assert!(names_rows_once(&batch, observers.is_some()), "a row is repeated");
            self.check_expectations(&table, &mut batch)?;
            self.observe_and_stage(&table, batch, observers)?;
        }
        Ok(())
    }

    /// Returns the handle by which observers of a write access the transaction.
    pub(super) fn as_write<'a>(&'a self, caller: Option<&'a Caller<'a>>) -> Write<'a> {
        Write { transaction: self, caller, attachment: None }
    }

    /// Locks rows from the front of the batch until one occurs for the second time; returns their
    /// number.
    fn lock_batch(&self, table: &Table, batch: &[Mutation], observed: bool) -> Result<usize> {
        let mut seen: HashSet<&[u8], ahash::RandomState> = HashSet::default();
        let mut seen_count = 0;
        let mut ascends = true;
        for (index, mutation) in batch.iter().enumerate() {
            ascends &= index == 0 || batch[index - 1].row < mutation.row;
            let Some(lock) = self.lock_mutation(table, mutation, index == 0)? else {
                return Ok(index);
            };
            let taken = lock.taken;
            // A row whose lock is new, or that is above all others, cannot have occurred before.
            let distinct_wanted = observed || mutation.expect == RowExpectation::Absent;
            if taken == LockOutcome::Held && distinct_wanted && !ascends {
                seen.extend(batch[seen_count..index].iter().map(|earlier| earlier.row.as_slice()));
                seen_count = index;
                if seen.contains(mutation.row.as_slice()) {
                    return Ok(index);
                }
            }
        }
        Ok(batch.len())
    }

    /// Takes the lock of a mutation. Returns `None` if the lock of a new row is not free and the
    /// mutation is not the `first` of its batch: the preceding ones are staged before the wait,
    /// so that their errors come first.
    fn lock_mutation(
        &self,
        table: &Table,
        mutation: &Mutation,
        first: bool,
    ) -> Result<Option<RowLock>> {
        let row = mutation.row.as_slice();
        let alone = RowLockRequest::change(LockMode::Exclusive);
        let lock = match mutation.locking {
            Locking::Covered => RowLock::COVERED,
            Locking::Row | Locking::RowKeepsKey | Locking::RowGoes
                if mutation.expect == RowExpectation::Absent =>
            {
                return self.lock_new_row(table, mutation, first);
            }
            Locking::RowKeepsKey => {
                self.lock_in(table, row, RowLockRequest::change(LockMode::NoKeyExclusive))?
            }
            Locking::Row => self.lock_in(table, row, alone)?,
            Locking::RowGoes => {
                let lock = self.lock_in(table, row, alone)?;
                self.note_deleted(table, row);
                lock
            }
            Locking::Entry => self.lock_newest_row(table, row, alone)?,
        };
        Ok(Some(lock))
    }

    /// Locks the key of a new row. A row that was committed since the snapshot conflicts with it;
    /// one that was deleted does not. No foreign key can refer to a new row before the commit, so
    /// the weaker mode suffices. An existing row is an error at once, even if another transaction
    /// has locked it, unless that transaction has changed it.
    fn lock_new_row(
        &self,
        table: &Table,
        mutation: &Mutation,
        first: bool,
    ) -> Result<Option<RowLock>> {
        let (row, mode) = (mutation.row.as_slice(), LockMode::NoKeyExclusive);
        let lock = self.lock_newest_row(table, row, RowLockRequest::lock(mode, LockWait::Skip))?;
        if lock.taken != LockOutcome::Skipped {
            return Ok(Some(lock));
        }
        if !first {
            return Ok(None);
        }
        if self.is_taken(table, row)? {
            return Err(row_exists(table, mutation));
        }
        self.lock_newest_row(table, row, RowLockRequest::lock(mode, LockWait::Wait)).map(Some)
    }

    fn check_expectations(&self, table: &Table, batch: &mut [Mutation]) -> Result<()> {
        let mut found = CellBatch::new();
        let mut get = Get::of_existence(Vec::new());
        let (spec, staged) = (self.newest_spec(&get), self.staged_of(table.id())?);
        if self.are_behind_all(table, batch, staged.as_ref()) {
            batch.iter_mut().for_each(|mutation| mutation.previous = PreviousRow::Absent);
            return Ok(());
        }
        for mutation in
            batch.iter_mut().filter(|mutation| mutation.expect == RowExpectation::Absent)
        {
            found.clear();
            get.row.clear();
            get.row.extend_from_slice(&mutation.row);
            let asked = (&get, &spec, None);
            self.check_newer(table, &get.row)?;
            if self.get_in(table, asked, staged.as_ref(), &mut found)? {
                self.note_row(table.id(), &get.row);
                return Err(row_exists(table, mutation));
            }
            mutation.previous = PreviousRow::Absent;
        }
        Ok(())
    }

    /// Returns whether all rows of a batch are expected to be absent, and no row of their region
    /// was ever written at or above the first of them.
    fn are_behind_all(
        &self,
        table: &Table,
        batch: &[Mutation],
        staged: Option<&StagedFamilies>,
    ) -> bool {
        let is_plain = self.tracker.is_none()
            && batch.len() >= LOOK_ONCE_MUTATIONS
            && batch.iter().all(|mutation| mutation.expect == RowExpectation::Absent)
            && batch.is_sorted_by(|one, next| one.row < next.row);
        let ([first, .., last], true) = (batch, is_plain) else { return false };
        let staged = staged.into_iter().flatten().flatten();
        if !staged.into_iter().all(|family| family.ends_before(&first.row)) {
            return false;
        }
        let map = table.regions();
        if map.is_colocated() {
            return false;
        }
        let region = map.of_row(&first.row);
        if region.stop().is_some_and(|stop| last.row.as_slice() >= stop) {
            return false;
        }
        let mut families = 0..region.family_count();
        let are_behind = families.all(|family| {
            let view = region.view(family).filter(|view| view.damage.is_none());
            view.is_some_and(|view| view.ends_before(&first.row))
        });
        are_behind && !region.is_dropped()
    }

    fn observe_and_stage(
        &self,
        table: &Arc<Table>,
        mut batch: Vec<Mutation>,
        observers: Option<(&Arc<RegionChain>, Write<'_>)>,
    ) -> Result<()> {
        self.check_writes(table.id(), &batch)?;
        if let Some((chain, write)) = observers {
            let agreed = chain.pre_batch(write, &mut batch);
            if let Err(error) = agreed.and_then(|()| check_batch(table, &batch)) {
                chain.post_mutations(&batch, BatchOutcome::Undone);
                return Err(error);
            }
        }
        let mut staging = self.staging.lock();
        self.staged.store(true, Ordering::Release);
        staging.stage(table, &batch);
        if let Some((chain, _)) = observers
            && chain.wants(Hooks::AFTER_WRITE)
        {
            staging.keep(Arc::clone(chain), batch);
        }
        self.charge(&mut staging)?;
        drop(staging);
        self.spill_locks()
    }
}

impl ObservedTransaction for Transaction {
    fn newest(&self, table: TableId, get: &Get, out: &mut CellBatch) -> Result<bool> {
        self.get_locked(table, get, out)
    }

    fn lock_exclusively(&self, table: TableId, row: &[u8]) -> Result<()> {
        self.lock_row(table, row, LockMode::Exclusive, LockWait::Wait).map(drop)
    }

    fn stage(&self, table: TableId, mutations: Vec<Mutation>, by: &Caller<'_>) -> Result<()> {
        self.stage_or_not(table, mutations, BatchOrigin::Coprocessor(by))
    }

    fn user(&self) -> &str {
        &self.options.user
    }

    fn check_cancelled(&self) -> Result<()> {
        Transaction::check_cancelled(self)
    }
}

/// Returns whether no row is repeated where its previous state matters.
fn names_rows_once(batch: &[Mutation], is_observed: bool) -> bool {
    let mut seen: HashSet<&[u8], ahash::RandomState> = HashSet::default();
    batch.iter().all(|mutation| {
        let is_new = seen.insert(mutation.row.as_slice());
        is_new || !is_observed && mutation.expect != RowExpectation::Absent
    })
}

/// Returns the error for a row that was expected to be absent.
fn row_exists(table: &Table, mutation: &Mutation) -> Error {
    Error::RowExists { table: table.id(), row: mutation.row.clone(), puts: mutation.puts() }
}

/// Checks that the table allows these rows and families.
fn check_batch(table: &Table, batch: &[Mutation]) -> Result<()> {
    let descriptor = table.descriptor();
    let family_count = descriptor.families.len();
    for mutation in batch {
        if mutation.row.len() > ROW_BYTES_MAX {
            return Err(Error::KeyTooLong { bytes: mutation.row.len(), limit: ROW_BYTES_MAX });
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
        // Deletes a version that the same transaction has put at the commit time.
        Edit::DeleteVersion { .. } | Edit::DeleteFamilyVersion { .. } => Ok(()),
        _ if edit.timestamp() == Some(Timestamp::LATEST) => Err(Error::InvalidRequest(
            "the highest timestamp is reserved for the commit time".into(),
        )),
        Edit::Put { ttl: Some(ttl), .. } if ttl.as_millis() == 0 => {
            Err(Error::InvalidRequest("cell TTL must be at least one millisecond".into()))
        }
        _ => Ok(()),
    }
}
