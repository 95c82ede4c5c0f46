//! Statements that change data, run to their end.
//!
//! The parts of WITH that are read come first, in their order; those that change data run to their
//! end then, queries are computed as far as something reads them. What changes data and is not read
//! comes after the statement itself, the last one first, as PostgreSQL does it
//! (`ExecPostprocessPlan`). All see what the statement saw when it began, so it matters only to
//! which of them changes a row first.

use std::sync::Arc;

use crate::error::Result;
use crate::exec::cte::KeptRows;
use crate::exec::{Context, ModifyOutcome, build, delete, insert, merge, update};
use crate::plan::{Node, Plan, PlanStep, Root};

/// Runs a plan that changes data. What it staged before an error stays staged: the caller rolls
/// back to the savepoint it took before the statement.
///
/// # Errors
///
/// 23505 for duplicate keys, what observers refuse, 40001 and 40P01.
pub fn modify(plan: &Arc<Plan>, context: Context) -> Result<ModifyOutcome> {
    let context = Arc::new(context.prepared_for(plan)?);
    if plan.before.is_empty() {
        return run(&plan.root, &context);
    }
    let mut parts = Parts { parts: &plan.before, context, done: vec![false; plan.before.len()] };
    parts.make_ready_for(&plan.root)?;
    let outcome = run(&plan.root, &parts.context)?;
    for at in (0..plan.before.len()).rev() {
        if !matches!(plan.before[at].root, Root::Query(_)) {
            parts.make_ready(at)?;
        }
    }
    Ok(outcome)
}

/// The parts of WITH of a statement that runs.
struct Parts<'a> {
    parts: &'a [PlanStep],
    /// Has the rows of those that are done.
    context: Arc<Context>,
    done: Vec<bool>,
}

impl Parts<'_> {
    /// Has all there that a step reads.
    fn make_ready_for(&mut self, root: &Root) -> Result<()> {
        let reads = root.named_reads();
        for at in 0..self.parts.len() {
            if reads.contains(&self.parts[at].id) {
                self.make_ready(at)?;
            }
        }
        Ok(())
    }

    /// Has the rows of a part there, and what it changes done.
    fn make_ready(&mut self, at: usize) -> Result<()> {
        if std::mem::replace(&mut self.done[at], true) {
            return Ok(());
        }
        let PlanStep { id, root, .. } = &self.parts[at];
        self.make_ready_for(root)?;
        let rows = match root {
            Root::Query(node) => KeptRows::closed(node, &self.context),
            change => KeptRows::ready(run(change, &self.context)?.returning),
        };
        self.context = self.context.with_rows(*id, Arc::new(rows));
        Ok(())
    }
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
    while let Some(batch) = operator.next()? {
        context.check()?;
        outcome.row_count += batch.row_count as u64;
        outcome.returning.push(batch, &context.room())?;
    }
    Ok(outcome)
}
