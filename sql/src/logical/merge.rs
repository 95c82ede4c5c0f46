//! MERGE: its logical plan.

use std::sync::Arc;

use types::expr::Expr;

use crate::catalog::table::Table;
use crate::logical::{Assignment, Logical, RowAtHand, RowCheck};

/// MERGE statement. Its expressions are over the source's columns.
#[derive(Debug, Clone)]
pub struct Merge {
    /// The table.
    pub table: Arc<Table>,
    /// Source: all columns of the table in table order, NULL for an unmatched row, then those of
    /// USING and of subqueries. Unless the statement is idle, it is a [`Logical::LockRows`],
    /// which has the re-evaluation of a row after the table's row is locked; only rows that are
    /// changed are locked.
    pub source: Logical,
    /// Number of source columns that the clauses refer to; the following ones are for locking.
    pub width: usize,
    /// Policies of written rows.
    pub checks: Vec<RowCheck>,
    /// WHEN clauses; the first one whose condition holds applies.
    pub clauses: Vec<MergeClause>,
}

impl Merge {
    /// Returns the row-at-hand plans of the policies.
    pub fn given_rows_mut(&mut self) -> impl Iterator<Item = &mut RowAtHand> {
        self.checks.iter_mut().flat_map(|check| &mut check.row).map(Box::as_mut)
    }

    /// Returns whether all actions are DO NOTHING.
    pub fn is_idle(&self) -> bool {
        self.clauses.iter().all(|clause| matches!(clause.action, MergeAction::Nothing))
    }
}

/// `WHEN [NOT] MATCHED [AND condition] THEN action`
#[derive(Debug, Clone)]
pub struct MergeClause {
    /// True for WHEN MATCHED.
    pub matched: bool,
    /// Condition; `None`: always.
    pub condition: Option<Expr>,
    /// Action.
    pub action: MergeAction,
}

/// Action of a WHEN clause.
#[derive(Debug, Clone)]
pub enum MergeAction {
    /// DO NOTHING.
    Nothing,
    /// DELETE of the table's row.
    Delete,
    /// UPDATE of the table's row.
    Update(Vec<Assignment>),
    /// INSERT of a row: its values in table order.
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
