//! DELETE: locks and deletes the rows of its source.

use std::sync::Arc;

use store::CellBatch;

use crate::error::Result;
use crate::exec::row_writer::{RowWriter, previous};
use crate::exec::target_rows::{
    ConditionRecheck, ReturningCollector, TargetChange, TargetSource, refuse_changed, take_target,
};
use crate::exec::{Context, ModifyOutcome};
use crate::plan::DeletePlan;

/// Executes a DELETE.
pub(super) fn run(plan: &DeletePlan, context: &Arc<Context>) -> Result<ModifyOutcome> {
    let table = &plan.table;
    let mut targets = TargetSource::open(table, &plan.source, context)?;
    let mut returned = ReturningCollector::new(&plan.returning);
    let mut writer = RowWriter::new(table);
    let recheck = ConditionRecheck::new(&plan.recheck, plan.reads_timestamp);
    let mut cells = CellBatch::new();
    let change = TargetChange::Delete;
    let mut row_count = 0;
    while let Some(mut target) = targets.next()? {
        writer.flush_row(&target.key, context)?;
        let Some(row) = take_target(table, (&mut target, change), &recheck, &mut cells, context)?
        else {
            continue;
        };
        refuse_changed((table, &target.key), "deleted", context)?;
        writer.delete(target.key, previous(table, &mut cells), context)?;
        context.row_changed(table, Some(&row), None)?;
        returned.add(&row, context)?;
        row_count += 1;
    }
    writer.flush(context)?;
    Ok(ModifyOutcome { row_count, returning: returned.finish(context)? })
}
