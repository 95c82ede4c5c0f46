//! Statements that change data, run to their end.
//!
//! The parts of WITH come first, in their order. Those that change data run to their end whether
//! their rows are read or not; queries are computed as far as something reads them. All see what
//! the statement saw when it began, so it does not matter to what they read which of them comes
//! first.

use std::sync::Arc;

use crate::error::Result;
use crate::exec::cte::KeptRows;
use crate::exec::{Context, ModifyOutcome, build, delete, insert, memory, merge, update};
use crate::plan::{Node, Plan, Root};

/// Runs a plan that changes data. What it staged before an error stays staged: the caller rolls
/// back to the savepoint it took before the statement.
///
/// # Errors
///
/// 23505 for duplicate keys, what observers refuse, 40001 and 40P01.
pub fn modify(plan: &Arc<Plan>, context: Context) -> Result<ModifyOutcome> {
    let mut context = Arc::new(context.prepared_for(plan));
    for part in &plan.before {
        let rows = match &part.root {
            Root::Query(node) => KeptRows::closed(node, &context),
            change => KeptRows::ready(run(change, &context)?.returning),
        };
        context = context.with_rows(part.id, Arc::new(rows));
    }
    run(&plan.root, &context)
}

fn run(root: &Root, context: &Arc<Context>) -> Result<ModifyOutcome> {
    match root {
        Root::Insert(insert) => insert::run(insert, context),
        Root::Update(update) => update::run(update, context),
        Root::Delete(delete) => delete::run(delete, context),
        Root::Merge(merge) => merge::run(merge, context),
        Root::Query(node) => read(node, context),
    }
}

/// Reads the rows of a query, of which there is one for each row of the change that it is of.
fn read(node: &Node, context: &Arc<Context>) -> Result<ModifyOutcome> {
    let mut operator = build(node, context)?;
    let mut outcome = ModifyOutcome::default();
    let mut bytes = 0;
    while let Some(batch) = operator.next()? {
        context.check()?;
        bytes += batch.columns.iter().map(|column| column.byte_count()).sum::<usize>();
        memory::check(bytes, context.work_mem)?;
        outcome.row_count += batch.row_count as u64;
        outcome.returning.push(batch);
    }
    Ok(outcome)
}
