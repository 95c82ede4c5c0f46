//! UPDATE. New values are computed from the newest version of the row, under its lock.

use std::sync::Arc;

use ahash::AHashSet;
use store::CellBatch;
use store::transaction::{LockMode, LockWait};
use types::Datum;

use crate::catalog::table::Table;
use crate::error::Result;
use crate::exec::row_writer::{RowWriter, WrittenFamilies, previous};
use crate::exec::target_rows::{
    ConditionRecheck, ReturningCollector, TargetChange, TargetSource, check_views, refuse_changed,
    take_target,
};
use crate::exec::{Context, ModifyOutcome, memory};
use crate::logical::Assignment;
use crate::plan::UpdatePlan;

/// Executes an UPDATE.
pub(super) fn run(plan: &UpdatePlan, context: &Arc<Context>) -> Result<ModifyOutcome> {
    let table = &plan.table;
    let mut targets = TargetSource::open(table, &plan.source, context)?;
    let mut returned = ReturningCollector::new(&plan.returning);
    let mut writer = RowWriter::new(table);
    let recheck = ConditionRecheck::new(&plan.recheck, plan.reads_timestamp);
    let mut cells = CellBatch::new();
    let change = TargetChange::Update;
    let mut row_count = 0;
    let mut seen = AHashSet::new();
    let mut seen_bytes = 0;
    while let Some(mut target) = targets.next()? {
        if plan.repeats {
            seen_bytes += target.key.len() + size_of::<Vec<u8>>();
            memory::check(seen_bytes, context.work_mem())?;
            if !seen.insert(target.key.clone()) {
                continue;
            }
        }
        writer.flush_row(&target.key, context)?;
        let Some(row) = take_target(table, (&mut target, change), &recheck, &mut cells, context)?
        else {
            continue;
        };
        let mut new = row[..table.columns.len()].to_vec();
        assign(table, &plan.assignments, &row, &mut new, context)?;
        refuse_changed((table, &target.key), "updated", context)?;
        context.row_changed(table, Some(&row), Some(&new))?;
        let change = RowUpdate { old: &row, new: &new, assignments: &plan.assignments };
        write(table, &mut writer, target.key, change, &mut cells, context)?;
        check_views(&plan.checks, &new, &mut writer, context)?;
        if plan.returning.is_some() {
            new.extend_from_slice(&row[table.columns.len()..]);
        }
        returned.add(&new, context)?;
        row_count += 1;
    }
    writer.flush(context)?;
    Ok(ModifyOutcome { row_count, returning: returned.finish(context)? })
}

/// Computes the assigned columns of `new` from `row`, and the generated columns from `new`.
pub(super) fn assign(
    table: &Table,
    assignments: &[Assignment],
    row: &[Datum],
    new: &mut [Datum],
    context: &Context,
) -> Result<()> {
    for assignment in assignments {
        new[assignment.column] = assignment.value.eval_row(row, &context.eval)?;
    }
    Ok(table.generate(&mut new[..table.columns.len()], &context.eval)?)
}

/// Strengthens the lock of a row to exclusive, if the update changes columns that foreign keys
/// can reference.
pub(super) fn lock_for_key_update(
    (table, key): (&Table, &[u8]),
    old: &[Datum],
    new: &[Datum],
    context: &Context,
) -> Result<()> {
    let mut columns = (0..table.columns.len()).filter(|&column| table.is_referable(column));
    if columns.any(|column| old[column] != new[column]) {
        context.transaction.lock_row(table.id, key, LockMode::Exclusive, LockWait::Wait)?;
    }
    Ok(())
}

/// Old and new values of a row, and the assignments.
pub(super) struct RowUpdate<'a> {
    pub(super) old: &'a [Datum],
    pub(super) new: &'a [Datum],
    pub(super) assignments: &'a [Assignment],
}

/// Stages the new version of a row that is locked and was read into `cells`; a new key means a
/// delete and an insert.
pub(super) fn write(
    table: &Table,
    writer: &mut RowWriter,
    key: Vec<u8>,
    change: RowUpdate<'_>,
    cells: &mut CellBatch,
    context: &Context,
) -> Result<()> {
    let RowUpdate { old, new, assignments } = change;
    lock_for_key_update((table, &key), old, new, context)?;
    let previous = previous(table, cells);
    let same = |column: usize| old[column] == new[column];
    if table.key_columns().all(same) || table.layout.encode_key(new)? == key {
        let written = assignments.iter().map(|assignment| assignment.column);
        let written = WrittenFamilies::by_change(table, written);
        return writer.overwrite((key, written), new, previous, context);
    }
    writer.flush(context)?;
    let (to, from) = (table.layout.encode_key(new)?, key.clone());
    let before = context.transaction.savepoint();
    // One after the other: the new key may be that of a row updated before.
    writer.delete_for_key_update(key, previous, context)?;
    writer.flush(context)?;
    writer.insert(new, context)?;
    writer.flush(context)?;
    context.transaction.note_move(before, table.id, (from.clone(), to.clone()));
    context.key_updates.note(&context.transaction, before, (table.id, from), to, context.work_mem())
}
