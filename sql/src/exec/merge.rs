//! MERGE: rows of a source, each joined with the matching row of the target table or none.
//!
//! The WHEN clause of a row is chosen by the version of the target row that the statement sees. A
//! target row to be changed is locked and re-read; if it has changed, the joined row is
//! re-evaluated with its subqueries, and the clause is chosen again. A row that was deleted or
//! does not match any more counts as not matched.

use std::sync::Arc;

use ahash::AHashSet;
use store::transaction::LockMode;
use types::expr::Expr;
use types::{Batch, Datum};

use crate::error::{Error, Result};
use crate::exec::lock_rows::re_evaluate;
use crate::exec::row_changes::RowChanges;
use crate::exec::target_rows::lock_seen;
use crate::exec::{Context, ModifyOutcome, build, memory};
use crate::logical::{CheckTime, MergeAction, MergeClause};
use crate::plan::MergePlan;

/// Executes a MERGE.
pub(super) fn run(plan: &MergePlan, context: &Arc<Context>) -> Result<ModifyOutcome> {
    let mut source = build(&plan.source, context)?;
    let mut merge = Merge {
        plan,
        context,
        changes: RowChanges::new(&plan.table, "updated or deleted", &plan.checks, None),
        touched: AHashSet::new(),
        touched_bytes: 0,
    };
    while let Some(batch) = source.next()? {
        context.check()?;
        for row in 0..batch.row_count {
            merge.row(&batch, row)?;
        }
    }
    merge.changes.finish(context)
}

/// State of a running MERGE.
struct Merge<'a> {
    plan: &'a MergePlan,
    context: &'a Context,
    changes: RowChanges<'a>,
    /// Keys of the rows that were updated or deleted.
    touched: AHashSet<Vec<u8>>,
    touched_bytes: usize,
}

impl<'a> Merge<'a> {
    /// Processes a joined row: the table's columns, NULL if not matched, then those of the
    /// source.
    fn row(&mut self, batch: &Batch, index: usize) -> Result<()> {
        let mut row = batch.row(index);
        if self.is_matched(&row) {
            let Some(action) = self.chosen(true, &row)? else { return Ok(()) };
            match self.change(row, (batch, index), action)? {
                None => return Ok(()),
                Some(unmatched) => row = unmatched,
            }
        }
        let action = self.chosen(false, &row)?;
        if let Some(MergeAction::Insert(values)) = action {
            let mut new = Vec::with_capacity(values.len());
            for value in values {
                new.push(value.eval_row(&row, &self.context.eval)?);
            }
            if !self.changes.complete(&mut new, self.context)? {
                return Ok(());
            }
            self.changes.insert(&new, self.context)?;
            self.changes.add(&new, self.context)?;
        }
        Ok(())
    }

    /// Returns the action of the first clause whose condition holds; `None` for DO NOTHING.
    fn chosen(&self, matched: bool, row: &[Datum]) -> Result<Option<&'a MergeAction>> {
        for clause in self.plan.clauses.iter().filter(|clause| clause.matched == matched) {
            let MergeClause { condition, action, .. } = clause;
            if holds(condition, row, self.context)? {
                return Ok(match action {
                    MergeAction::Nothing => None,
                    action => Some(action),
                });
            }
        }
        Ok(None)
    }

    /// Returns whether a row is matched: key columns are never NULL.
    fn is_matched(&self, row: &[Datum]) -> bool {
        self.plan.table.key_columns().next().is_some_and(|key| !row[key].is_null())
    }

    /// Updates or deletes the matched target row; returns the row if it turns out to be not
    /// matched.
    fn change(
        &mut self,
        mut row: Vec<Datum>,
        of: (&Batch, usize),
        action: &MergeAction,
    ) -> Result<Option<Vec<Datum>>> {
        let (table, width) = (&self.plan.table, self.plan.table.columns.len());
        let key = table.layout.encode_key(&row[..width])?;
        self.touch(&key)?;
        self.changes.writer.flush_row(&key, self.context)?;
        let mode = match action {
            MergeAction::Delete => LockMode::Exclusive,
            _ => LockMode::NoKeyExclusive,
        };
        let seen = lock_seen((table, &key), mode, &mut self.changes.cells, self.context)?;
        let Some(newest) = seen.row else {
            return self.again(&vec![Datum::Null; width], of);
        };
        let key = seen.moved_to.unwrap_or(key);
        self.context.claims_row(table.id, &key);
        let mut action = Some(action);
        if newest != row[..width] {
            let Some(again) = self.again(&newest, of)? else { return Ok(None) };
            row = again;
            if !self.is_matched(&row) {
                return Ok(Some(row));
            }
            action = self.chosen(true, &row)?;
        }
        let changes = &mut self.changes;
        match action {
            Some(MergeAction::Update(set)) => {
                changes.check(CheckTime::MergeUpdate, &newest, self.context)?;
                if changes.update(key, (&newest, &row), set, self.context)?.is_none() {
                    return Ok(None);
                }
            }
            Some(MergeAction::Delete) => {
                changes.check(CheckTime::MergeDelete, &newest, self.context)?;
                if !changes.delete(key, &newest, self.context)? {
                    return Ok(None);
                }
            }
            _ => return Ok(None),
        }
        changes.add(&newest, self.context)?;
        Ok(None)
    }

    /// Records the change of a row, which may be changed only once.
    fn touch(&mut self, key: &[u8]) -> Result<()> {
        self.touched_bytes += key.len() + size_of::<Vec<u8>>();
        memory::check(self.touched_bytes, self.context.work_mem())?;
        let is_first = self.context.claims_row(self.plan.table.id, key);
        if self.touched.insert(key.to_vec()) && is_first {
            return Ok(());
        }
        bail!(CARDINALITY_VIOLATION: "MERGE command cannot affect row a second time";
            hint "Ensure that not more than one source row matches any one target row.")
    }

    /// Re-evaluates a row with the newest target row; `None` if no action applies.
    fn again(&self, newest: &[Datum], (batch, row): (&Batch, usize)) -> Result<Option<Vec<Datum>>> {
        let Some(held) = &self.plan.held else {
            let mut row = batch.row(row);
            row[..newest.len()].clone_from_slice(newest);
            return Ok(Some(row));
        };
        let wanted = held.tables.iter().flat_map(|table| &table.newest);
        let values = wanted.map(|&(_, column)| newest[column].clone()).collect();
        let made = re_evaluate(held, values, (batch, row), self.context)?;
        Ok(made.map(|made| made.row(0)))
    }
}

fn holds(condition: &Option<Expr>, row: &[Datum], context: &Context) -> Result<bool> {
    match condition {
        None => Ok(true),
        Some(condition) => Ok(condition.eval_row(row, &context.eval)?.as_bool() == Some(true)),
    }
}
