//! UPDATE and DELETE. Each target row is locked and its newest version is read and changed.

use std::sync::Arc;

use ahash::AHashSet;

use crate::error::Result;
use crate::exec::row_changes::RowChanges;
use crate::exec::row_writer::CellStamp;
use crate::exec::target_rows::{ConditionRecheck, TargetChange, TargetSource, take_target};
use crate::exec::{Context, ModifyOutcome, memory};
use crate::plan::RowChangePlan;

/// Executes an UPDATE or a DELETE.
pub(super) fn run(plan: &RowChangePlan, context: &Arc<Context>) -> Result<ModifyOutcome> {
    let table = &plan.table;
    let change = match plan.assignments {
        Some(_) => TargetChange::Update,
        None => TargetChange::Delete,
    };
    let mut targets = TargetSource::open(table, &plan.source, context)?;
    let recheck = ConditionRecheck::new(&plan.recheck, plan.reads_timestamp);
    let mut changes = RowChanges::new(table, change.done(), &plan.checks, plan.returning.as_ref());
    changes.writer.stamp = CellStamp::of(&plan.attributes, context)?;
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
        changes.writer.flush_row(&target.key, context)?;
        let taken = match table.is_view {
            // The plan yields whole rows, which are not locked.
            true => Some(std::mem::take(&mut target.extra)),
            false => {
                take_target(table, (&mut target, change), &recheck, &mut changes.cells, context)?
            }
        };
        let Some(mut row) = taken else { continue };
        match &plan.assignments {
            Some(assignments) => {
                let new = changes.update(target.key, (&row, &row), assignments, context)?;
                let Some(new) = new else { continue };
                row.splice(..new.len(), new);
            }
            None if !changes.delete(target.key, &row, context)? => continue,
            None => {}
        }
        changes.add(&row, context)?;
    }
    changes.finish(context)
}
