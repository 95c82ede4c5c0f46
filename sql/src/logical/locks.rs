//! Row locks: which rows, how, and how they are checked again.
//!
//! Rows that come out of joins, filters and sorts carry the keys of the tables that are to be
//! locked as further columns up to [`LockRows`]. A row of a table that has changed since the
//! statement's snapshot is read again, and the whole row is made anew by [`LockRows::again`], in
//! which the one row at hand stands in the place of each table.
//!
//! Source: PostgreSQL's `ExecLockRows` (nodeLockRows.c) and `EvalPlanQual` (execMain.c).

use std::sync::Arc;

use store::transaction::{LockMode, LockWait};

use crate::ast::LockStrength;
use crate::catalog::table::Table;
use crate::logical::Logical;

/// `FOR UPDATE` and its kin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLock {
    /// How strong.
    pub strength: LockStrength,
    /// Wait, fail or skip.
    pub wait: LockWait,
    /// The statement changes the rows: one that its own transaction has changed meanwhile is not
    /// left out, but for the change to reject.
    pub for_change: bool,
}

impl RowLock {
    /// Returns the mode of the lock.
    pub fn mode(&self) -> LockMode {
        match self.strength {
            LockStrength::Update => LockMode::Exclusive,
            LockStrength::NoKeyUpdate => LockMode::NoKeyExclusive,
            LockStrength::Share => LockMode::Shared,
            LockStrength::KeyShare => LockMode::KeyShared,
        }
    }
}

/// Rows that are locked as they are taken. Output: the columns of the input.
#[derive(Debug, Clone, PartialEq)]
pub struct LockRows {
    /// Where the rows come from.
    pub input: Box<Logical>,
    /// Yields the row as it is now, if it is still wanted: as many columns as the input, over the
    /// parameters of `held`.
    pub again: Box<Logical>,
    /// What is locked.
    pub held: HeldRows,
}

/// What is locked of a row, and what it is made of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HeldRows {
    /// The tables whose rows are locked, in this order.
    pub tables: Vec<LockedTable>,
    /// Parameters, and the columns that they take: what the row has of tables and queries that are
    /// not locked.
    pub copies: Vec<(usize, usize)>,
}

/// A table of [`HeldRows`].
#[derive(Debug, Clone, PartialEq)]
pub struct LockedTable {
    /// The table.
    pub table: Arc<Table>,
    /// The name that it goes by in the statement.
    pub alias: String,
    /// The lock.
    pub lock: RowLock,
    /// The columns that are its key, in key order.
    pub key: Vec<usize>,
    /// Parameters, and the columns of the table that they take of its newest row.
    pub newest: Vec<(usize, usize)>,
}

impl HeldRows {
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

    /// Adds what is held of other rows, whose columns stand behind `first` others.
    pub fn extend(&mut self, mut other: HeldRows, first: usize) {
        other.renumber(&|column| first + column);
        self.tables.extend(other.tables);
        self.copies.extend(other.copies);
    }

    /// Calls `visit` on each parameter that it sets.
    pub fn for_each_parameter_mut(&mut self, visit: &mut dyn FnMut(&mut usize)) {
        let newest = self.tables.iter_mut().flat_map(|table| &mut table.newest);
        newest.chain(&mut self.copies).for_each(|(parameter, _)| visit(parameter));
    }

    /// Sets only the parameters that are wanted.
    pub fn retain_parameters(&mut self, wanted: &dyn Fn(usize) -> bool) {
        for table in &mut self.tables {
            table.newest.retain(|(parameter, _)| wanted(*parameter));
        }
        self.copies.retain(|(parameter, _)| wanted(*parameter));
    }
}
