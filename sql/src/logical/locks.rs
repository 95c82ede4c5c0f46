//! Row locks of SELECT: tables, lock modes and the re-evaluation of changed rows.
//!
//! The output of joins, filters and sorts contains the keys of the tables to be locked as
//! additional columns up to [`LockRows`]. If a table's row has changed since the statement's
//! snapshot, it is re-read, and the whole row is re-evaluated by [`LockRows::re_evaluation`], in
//! which each table is replaced by the current row.
//!
//! Source: PostgreSQL's `ExecLockRows` (nodeLockRows.c) and `EvalPlanQual` (execMain.c).

use std::sync::Arc;

use store::transaction::{LockMode, LockWait};

use crate::ast::LockStrength;
use crate::catalog::table::Table;
use crate::logical::Logical;

/// Row-locking clause: FOR UPDATE, FOR NO KEY UPDATE, FOR SHARE or FOR KEY SHARE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLock {
    /// Lock strength.
    pub strength: LockStrength,
    /// Behaviour for a held lock: wait, NOWAIT or SKIP LOCKED.
    pub wait: LockWait,
    /// True if the statement changes the rows: rows that its own transaction has changed
    /// meanwhile are not skipped, so that the change can reject them.
    pub for_change: bool,
}

impl RowLock {
    /// Returns the lock mode.
    pub fn mode(&self) -> LockMode {
        match self.strength {
            LockStrength::Update => LockMode::Exclusive,
            LockStrength::NoKeyUpdate => LockMode::NoKeyExclusive,
            LockStrength::Share => LockMode::Shared,
            LockStrength::KeyShare => LockMode::KeyShared,
        }
    }
}

/// LockRows node: locks rows as they are read. Output: the columns of the input.
#[derive(Debug, Clone, PartialEq)]
pub struct LockRows {
    /// Input.
    pub input: Box<Logical>,
    /// Re-evaluates a row with the newest table rows, if it still qualifies: as many columns as
    /// the input, over the parameters of `locked_tables`.
    pub re_evaluation: Box<Logical>,
    /// Locked tables and copied columns.
    pub locked_tables: LockedTables,
}

/// Locked tables of a row, and the parameters of its re-evaluation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LockedTables {
    /// Locked tables, in locking order.
    pub tables: Vec<LockedTable>,
    /// Parameters and their columns: values of the row from tables and queries that are not
    /// locked.
    pub copies: Vec<(usize, usize)>,
}

/// Locked table of [`LockedTables`].
#[derive(Debug, Clone, PartialEq)]
pub struct LockedTable {
    /// The table.
    pub table: Arc<Table>,
    /// Alias in the statement.
    pub alias: String,
    /// Lock.
    pub lock: RowLock,
    /// Columns of its key, in key order.
    pub key: Vec<usize>,
    /// Parameters, and the columns of its newest row that set them.
    pub newest: Vec<(usize, usize)>,
}

impl LockedTables {
    /// Returns the columns that it needs.
    pub fn needed(&self) -> impl Iterator<Item = usize> {
        let copied = self.copies.iter().map(|(_, column)| *column);
        self.tables.iter().flat_map(|table| &table.key).copied().chain(copied)
    }

    /// Renumbers the columns that it needs.
    pub fn renumber(&mut self, place: &dyn Fn(usize) -> usize) {
        for column in self.tables.iter_mut().flat_map(|table| &mut table.key) {
            *column = place(*column);
        }
        for (_, column) in &mut self.copies {
            *column = place(*column);
        }
    }

    /// Adds the locks of other rows, whose columns follow `first` columns.
    pub fn extend(&mut self, mut other: LockedTables, first: usize) {
        other.renumber(&|column| first + column);
        self.tables.extend(other.tables);
        self.copies.extend(other.copies);
    }

    /// Calls `visit` on each parameter that it sets.
    pub fn for_each_parameter_mut(&mut self, visit: &mut dyn FnMut(&mut usize)) {
        let newest = self.tables.iter_mut().flat_map(|table| &mut table.newest);
        newest.chain(&mut self.copies).for_each(|(parameter, _)| visit(parameter));
    }

    /// Retains only the parameters that are used.
    pub fn retain_parameters(&mut self, wanted: &dyn Fn(usize) -> bool) {
        for table in &mut self.tables {
            table.newest.retain(|(parameter, _)| wanted(*parameter));
        }
        self.copies.retain(|(parameter, _)| wanted(*parameter));
    }
}
