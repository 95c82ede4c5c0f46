//! MERGE: rows of a source, each with the row of the table that it matches or none.
//!
//! What becomes of a row is decided by the version of the table's row that the statement sees. If
//! that row is to be changed, it is locked and read again; where it has changed meanwhile the
//! condition of the join and the WHEN clauses are looked at anew, and a row that is gone, or does
//! not match any more, is one without a match.

use std::sync::Arc;

use ahash::AHashSet;
use store::CellBatch;
use types::Datum;
use types::expr::Expr;

use crate::error::{Error, Result, sqlstate};
use crate::exec::row::{RowWriter, previous};
use crate::exec::row_numbers::RowNumbers;
use crate::exec::target::{lock_and_read, refuse_changed};
use crate::exec::{Context, ModifyOutcome, build, memory, update};
use crate::logical::{MergeAction, MergeClause};
use crate::plan::MergePlan;

/// Runs a MERGE to its end.
pub(super) fn run(plan: &MergePlan, context: &Arc<Context>) -> Result<ModifyOutcome> {
    let mut source = build(&plan.source, context)?;
    let mut merge = Merge {
        plan,
        context,
        writer: RowWriter::new(&plan.table),
        numbers: RowNumbers::new(&plan.table),
        cells: CellBatch::new(),
        touched: AHashSet::new(),
        touched_bytes: 0,
        row_count: 0,
    };
    while let Some(batch) = source.next()? {
        context.check()?;
        for row in 0..batch.row_count {
            merge.row(batch.row(row))?;
        }
    }
    merge.writer.flush(context)?;
    Ok(ModifyOutcome { row_count: merge.row_count, returning: Vec::new() })
}

/// A running MERGE.
struct Merge<'a> {
    plan: &'a MergePlan,
    context: &'a Context,
    writer: RowWriter,
    numbers: RowNumbers,
    cells: CellBatch,
    /// Keys of the rows that were updated or deleted.
    touched: AHashSet<Vec<u8>>,
    touched_bytes: usize,
    row_count: u64,
}

impl<'a> Merge<'a> {
    /// Does what is to be done with a row: the table's columns, NULL without a match, then those of
    /// the source.
    fn row(&mut self, mut row: Vec<Datum>) -> Result<()> {
        let table = &self.plan.table;
        let width = table.columns.len();
        // Columns of a key are never NULL.
        let matched = table.key_columns().next().is_some_and(|key| !row[key].is_null());
        if matched {
            let Some(action) = self.chosen(true, &row)? else { return Ok(()) };
            if self.change(&mut row, action)? {
                return Ok(());
            }
            row[..width].fill(Datum::Null);
        }
        let action = self.chosen(false, &row)?;
        if let Some(MergeAction::Insert(values)) = action {
            let mut new = Vec::with_capacity(width);
            for value in values {
                new.push(value.eval_row(&row, &self.context.eval)?);
            }
            self.numbers.number(&mut new, self.context)?;
            table.generate(&mut new, &self.context.eval)?;
            self.writer.insert(&new, self.context)?;
            self.context.row_changed(table, None, Some(&new))?;
            self.row_count += 1;
        }
        Ok(())
    }

    /// Returns what the first clause that holds says; `None` if that is nothing.
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

    /// Updates or deletes the table's row that was matched; returns whether it still matches.
    fn change(&mut self, row: &mut [Datum], action: &MergeAction) -> Result<bool> {
        let plan = self.plan;
        let (table, width) = (&plan.table, plan.table.columns.len());
        let key = table.layout.encode_key(&row[..width])?;
        self.touched_bytes += key.len() + size_of::<Vec<u8>>();
        memory::check(self.touched_bytes, self.context.work_mem)?;
        if !self.touched.insert(key.clone()) {
            let message = "MERGE command cannot affect row a second time";
            return Err(Error::new(sqlstate::CARDINALITY_VIOLATION, message).with_hint(
                "Ensure that not more than one source row matches any one target row.",
            ));
        }
        self.writer.flush_row(&key, self.context)?;
        let newest = lock_and_read(table, &key, &mut self.cells, self.context)?;
        let Some(newest) = newest else { return Ok(false) };
        let mut action = Some(action);
        if newest != row[..width] {
            row[..width].clone_from_slice(&newest);
            if !holds(&plan.recheck, row, self.context)? {
                return Ok(false);
            }
            action = self.chosen(true, row)?;
        }
        let (writer, cells) = (&mut self.writer, &mut self.cells);
        match action {
            Some(MergeAction::Update(assignments)) => {
                let mut new = newest.clone();
                update::assign(table, assignments, row, &mut new, self.context)?;
                refuse_changed((table, &key), "updated or deleted", self.context)?;
                self.context.row_changed(table, Some(&newest), Some(&new))?;
                update::write(table, writer, key, &new, assignments, cells, self.context)?;
                self.row_count += 1;
            }
            Some(MergeAction::Delete) => {
                refuse_changed((table, &key), "updated or deleted", self.context)?;
                writer.delete(key, previous(table, cells), self.context)?;
                self.context.row_changed(table, Some(&newest), None)?;
                self.row_count += 1;
            }
            _ => {}
        }
        Ok(true)
    }
}

fn holds(condition: &Option<Expr>, row: &[Datum], context: &Context) -> Result<bool> {
    match condition {
        None => Ok(true),
        Some(condition) => Ok(condition.eval_row(row, &context.eval)?.as_bool() == Some(true)),
    }
}
