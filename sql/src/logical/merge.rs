//! MERGE.

use std::sync::Arc;

use types::expr::Expr;

use crate::catalog::table::Table;
use crate::logical::{Assignment, Logical};

/// MERGE. Its expressions are over the source's columns.
#[derive(Debug, Clone)]
pub struct Merge {
    /// The table.
    pub table: Arc<Table>,
    /// Yields all columns of the table, in table order, NULL for a row without a match, then those
    /// of USING and what subqueries add. Unless it is idle, it is a [`Logical::LockRows`], which
    /// says how a row is made again once the table's row is locked; only rows that are changed are.
    pub source: Logical,
    /// How many of the source's columns the clauses are over; those behind them are held.
    pub width: usize,
    /// What is done with a row: what the first clause says that holds.
    pub clauses: Vec<MergeClause>,
}

impl Merge {
    /// Returns whether there is nothing that it would do.
    pub fn is_idle(&self) -> bool {
        self.clauses.iter().all(|clause| matches!(clause.action, MergeAction::Nothing))
    }
}

/// `WHEN [NOT] MATCHED [AND condition] THEN action`
#[derive(Debug, Clone)]
pub struct MergeClause {
    /// Whether it is of rows that match one of the table.
    pub matched: bool,
    /// Boolean; `None`: always.
    pub condition: Option<Expr>,
    /// What is done.
    pub action: MergeAction,
}

/// What MERGE does with a row.
#[derive(Debug, Clone)]
pub enum MergeAction {
    /// Nothing.
    Nothing,
    /// The table's row is deleted.
    Delete,
    /// Columns of the table's row are set.
    Update(Vec<Assignment>),
    /// A row is inserted: its values in table order.
    Insert(Vec<Expr>),
}

impl MergeAction {
    /// Returns its expressions.
    pub fn expressions_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let (assignments, values): (&mut [Assignment], &mut [Expr]) = match self {
            MergeAction::Nothing | MergeAction::Delete => (&mut [], &mut []),
            MergeAction::Update(assignments) => (assignments, &mut []),
            MergeAction::Insert(values) => (&mut [], values),
        };
        assignments.iter_mut().map(|assignment| &mut assignment.value).chain(values)
    }

    /// Returns its expressions.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let (assignments, values): (&[Assignment], &[Expr]) = match self {
            MergeAction::Nothing | MergeAction::Delete => (&[], &[]),
            MergeAction::Update(assignments) => (assignments, &[]),
            MergeAction::Insert(values) => (&[], values),
        };
        assignments.iter().map(|assignment| &assignment.value).chain(values)
    }
}

impl MergeClause {
    /// Calls `visit` on each of its expressions.
    pub fn for_each_expression_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        self.condition.iter_mut().for_each(&mut *visit);
        self.action.expressions_mut().for_each(visit);
    }
}
